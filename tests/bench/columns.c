#include "columns.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *need(void *p)
{
    if (!p) {
        fputs("bench: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

/* ------------------------------------------------------------------ threads */

struct job {
    uint64_t n, next;
    void (*fn)(void *context, uint64_t i);
    void *context;
};

static void *work(void *arg)
{
    struct job *j = arg;
    for (;;) {
        const uint64_t i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
        if (i >= j->n)
            return NULL;
        j->fn(j->context, i);
    }
}

void bench_parallel(uint64_t n, void (*fn)(void *context, uint64_t i), void *context)
{
    struct job j = {.n = n, .fn = fn, .context = context};
    pthread_t thread[64];
    int n_threads = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1, started = 0;
    n_threads = n_threads > 64 ? 64 : n_threads;
    while (started < n_threads && (uint64_t)started < n &&
           pthread_create(&thread[started], NULL, work, &j) == 0)
        started++;
    work(&j);
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

/* ------------------------------------------------------------------ columns */

void runs_add(struct runs *r, int32_t lo, int32_t hi)
{
    if (lo >= hi)
        return;
    if (r->n == r->room) {
        r->room = r->room ? 2 * r->room : 16;
        r->run = need(realloc(r->run, r->room * sizeof *r->run));
    }
    r->run[r->n++] = (struct run){lo, hi};
}

struct making {
    struct columns *c;
    void (*fill)(void *context, int32_t x, int32_t y, struct runs *out);
    void *context;
};

static void make_row(void *context, uint64_t i)
{
    const struct making *m = context;
    struct column_row *row = &m->c->row[i];
    row->start = need(malloc(((size_t)m->c->ny + 1) * sizeof *row->start));
    for (int32_t y = 0; y < m->c->ny; y++) {
        row->start[y] = row->runs.n;
        m->fill(m->context, m->c->x0 + (int32_t)i, m->c->y0 + y, &row->runs);
    }
    row->start[m->c->ny] = row->runs.n;
}

struct columns columns_make(int32_t x0, int32_t y0, int32_t nx, int32_t ny,
                            void (*fill)(void *context, int32_t x, int32_t y, struct runs *out),
                            void *context)
{
    struct columns c = {x0, y0, nx, ny, need(calloc((size_t)nx, sizeof *c.row))};
    struct making m = {&c, fill, context};
    bench_parallel((uint64_t)nx, make_row, &m);
    return c;
}

void columns_free(struct columns *c)
{
    for (int32_t x = 0; x < c->nx; x++) {
        free(c->row[x].start);
        free(c->row[x].runs.run);
    }
    free(c->row);
    memset(c, 0, sizeof *c);
}

uint64_t columns_count(const struct columns *c)
{
    uint64_t n = 0;
    for (int32_t x = 0; x < c->nx; x++)
        for (uint32_t k = 0; k < c->row[x].runs.n; k++)
            n += (uint64_t)(c->row[x].runs.run[k].hi - c->row[x].runs.run[k].lo);
    return n;
}

/* Runs of a column; none outside. */
static const struct run *column(const struct columns *c, int32_t x, int32_t y, uint32_t *n)
{
    *n = 0;
    if (x < c->x0 || x >= c->x0 + c->nx || y < c->y0 || y >= c->y0 + c->ny)
        return NULL;
    const struct column_row *row = &c->row[x - c->x0];
    const uint32_t from = row->start[y - c->y0];
    *n = row->start[y - c->y0 + 1] - from;
    return row->runs.run + from;
}

bool columns_contain(const struct columns *c, int32_t x, int32_t y, int32_t z)
{
    uint32_t n, lo = 0;
    const struct run *r = column(c, x, y, &n);
    while (n > lo) { /* the first run that ends behind z */
        const uint32_t mid = (lo + n) / 2;
        if (r[mid].hi > z)
            n = mid;
        else
            lo = mid + 1;
    }
    const struct run *all = column(c, x, y, &n);
    return lo < n && all[lo].lo <= z;
}

/* ------------------------------------------------------------------ operators */

/* A column beside, moved by dz, and each run longer by `grow` at both ends (shorter: below 0). */
struct term {
    int32_t dx, dy, dz, grow;
};
struct combination {
    const struct columns *c;
    const struct term *term;
    int n_terms;
};

static int by_start(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Sorts the runs from `from` on and joins those that meet. */
static void join(struct runs *out, uint32_t from)
{
    uint32_t n = from;
    if (out->n - from > 24) {
        qsort(out->run + from, out->n - from, sizeof *out->run, by_start);
    } else {
        for (uint32_t i = from + 1; i < out->n; i++) {
            const struct run r = out->run[i];
            uint32_t k = i;
            for (; k > from && out->run[k - 1].lo > r.lo; k--)
                out->run[k] = out->run[k - 1];
            out->run[k] = r;
        }
    }
    for (uint32_t i = from; i < out->n; i++) {
        const struct run r = out->run[i];
        if (n > from && r.lo <= out->run[n - 1].hi)
            out->run[n - 1].hi = r.hi > out->run[n - 1].hi ? r.hi : out->run[n - 1].hi;
        else
            out->run[n++] = r;
    }
    out->n = n;
}

static void fill_union(void *context, int32_t x, int32_t y, struct runs *out)
{
    const struct combination *m = context;
    const uint32_t from = out->n;
    for (int k = 0; k < m->n_terms; k++) {
        const struct term *t = &m->term[k];
        uint32_t n;
        const struct run *r = column(m->c, x + t->dx, y + t->dy, &n);
        for (uint32_t i = 0; i < n; i++)
            runs_add(out, r[i].lo + t->dz - t->grow, r[i].hi + t->dz + t->grow);
    }
    join(out, from);
}

/* The runs from `from` on are cut down to what the term has too. */
static void cut(struct runs *out, uint32_t from, const struct run *r, uint32_t n, const struct term *t)
{
    struct runs both = {0};
    for (uint32_t i = from, k = 0; i < out->n && k < n;) {
        const int32_t lo = r[k].lo + t->dz - t->grow, hi = r[k].hi + t->dz + t->grow;
        const struct run a = out->run[i];
        runs_add(&both, a.lo > lo ? a.lo : lo, a.hi < hi ? a.hi : hi);
        if (a.hi < hi)
            i++;
        else
            k++;
    }
    out->n = from;
    for (uint32_t i = 0; i < both.n; i++)
        runs_add(out, both.run[i].lo, both.run[i].hi);
    free(both.run);
}

static void fill_intersection(void *context, int32_t x, int32_t y, struct runs *out)
{
    const struct combination *m = context;
    const uint32_t from = out->n;
    for (int k = 0; k < m->n_terms; k++) {
        const struct term *t = &m->term[k];
        uint32_t n;
        const struct run *r = column(m->c, x + t->dx, y + t->dy, &n);
        if (k > 0) {
            cut(out, from, r, n, t);
        } else {
            for (uint32_t i = 0; i < n; i++)
                runs_add(out, r[i].lo + t->dz - t->grow, r[i].hi + t->dz + t->grow);
        }
        if (out->n == from)
            return;
    }
}

/* Columns from the terms, in a frame wider by dx0, dy0 below and dx1, dy1 above. */
static struct columns combine(const struct columns *c, const struct term *term, int n_terms, bool all,
                              int32_t dx0, int32_t dx1, int32_t dy0, int32_t dy1)
{
    struct combination m = {c, term, n_terms};
    return columns_make(c->x0 - dx0, c->y0 - dy0, c->nx + dx0 + dx1, c->ny + dy0 + dy1,
                        all ? fill_intersection : fill_union, &m);
}

static struct columns neighbourhood(const struct columns *c, int shape, int radius, bool all)
{
    enum { MOST = 2 * 64 + 1 };
    struct term term[MOST];
    const int32_t sign = all ? -1 : 1, frame = all ? 0 : radius;
    int n = 0;
    if (shape == 26) { /* y and z, then x */
        for (int32_t d = -radius; d <= radius; d++)
            term[n++] = (struct term){0, d, 0, sign * radius};
        struct columns half = combine(c, term, n, all, 0, 0, frame, frame);
        n = 0;
        for (int32_t d = -radius; d <= radius; d++)
            term[n++] = (struct term){d, 0, 0, 0};
        struct columns out = combine(&half, term, n, all, frame, frame, 0, 0);
        columns_free(&half);
        return out;
    }
    for (int32_t x = -1; x <= 1; x++)
        for (int32_t y = -1; y <= 1; y++) {
            const int32_t steps = (x ? 1 : 0) + (y ? 1 : 0), most = shape == 6 ? 1 : 2;
            if (steps <= most)
                term[n++] = (struct term){x, y, 0, steps < most ? sign : 0};
        }
    return combine(c, term, n, all, frame, frame, frame, frame);
}

struct columns columns_dilate(const struct columns *c, int shape, int radius)
{
    return neighbourhood(c, shape, radius, false);
}

struct columns columns_erode(const struct columns *c, int shape, int radius)
{
    return neighbourhood(c, shape, radius, true);
}

static struct columns with_shifted(const struct columns *c, const int32_t shift[3], bool all)
{
    const struct term term[2] = {{0, 0, 0, 0}, {-shift[0], -shift[1], shift[2], 0}};
    return combine(c, term, 2, all, 0, shift[0], 0, shift[1]);
}

struct columns columns_merge_shifted(const struct columns *c, const int32_t shift[3])
{
    return with_shifted(c, shift, false);
}

struct columns columns_intersect_shifted(const struct columns *c, const int32_t shift[3])
{
    return with_shifted(c, shift, true);
}

static int32_t half_of(int32_t x)
{
    return x >= 0 ? x / 2 : -((1 - x) / 2);
}

static void fill_coarse(void *context, int32_t x, int32_t y, struct runs *out)
{
    const struct columns *c = context;
    const uint32_t from = out->n;
    for (int32_t k = 0; k < 4; k++) {
        uint32_t n;
        const struct run *r = column(c, 2 * x + (k >> 1), 2 * y + (k & 1), &n);
        for (uint32_t i = 0; i < n; i++)
            runs_add(out, half_of(r[i].lo), half_of(r[i].hi - 1) + 1);
    }
    join(out, from);
}

struct columns columns_coarsen(const struct columns *c)
{
    const int32_t x0 = half_of(c->x0), y0 = half_of(c->y0);
    return columns_make(x0, y0, half_of(c->x0 + c->nx - 1) - x0 + 1, half_of(c->y0 + c->ny - 1) - y0 + 1,
                        fill_coarse, (void *)(uintptr_t)c);
}
