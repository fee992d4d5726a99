#include "topology_shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCATTERED = 1000000 };

static void *need(void *p)
{
    if (!p) {
        fputs("bench_topology: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

const char *shape_name(enum shape_kind kind)
{
    static const char *const name[SHAPE_KINDS] = {"shell3", "shell7", "rand25", "scatter", "tiles"};
    return name[kind];
}

int32_t shape_default_dim(enum shape_kind kind)
{
    static const int32_t dim[SHAPE_KINDS] = {256, 256, 512, 2048, 32768};
    return dim[kind];
}

uint64_t shape_hash(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

float shape_value(int32_t x, int32_t y, int32_t z)
{
    const uint32_t h = (uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca6bu ^ (uint32_t)z * 0xc2b2ae35u;
    return (float)((int32_t)((h ^ h >> 15) * 0x2c1b3c6du >> 22) - 512);
}

/* ------------------------------------------------------------------ columns of each shape */

static int32_t corner_of(int32_t dim)
{
    return SHAPE_AT - dim / 2;
}

/* Centres in half voxels from the middle, so that all is whole numbers: inner^2 < a^2 + b^2 + c^2 <= dim^2.
 */
static void fill_shell(void *context, int32_t x, int32_t y, struct runs *out)
{
    const struct shape *s = context;
    const int64_t dim = s->dim, thick = s->kind == SHAPE_SHELL3 ? 3 : 7, inner = dim - 2 * thick;
    const int64_t a = 2 * (x - (int64_t)corner_of(s->dim)) - (dim - 1),
                  b = 2 * (y - (int64_t)corner_of(s->dim)) - (dim - 1), ab = a * a + b * b;
    const int64_t most = dim * dim - ab, least = inner > 0 ? inner * inner - ab : -1;
    if (most < 1)
        return;
    int64_t hi = (int64_t)sqrt((double)most) + 1, lo = 0; /* |c| from lo to hi */
    while (hi * hi > most)
        hi--;
    if (least >= 0) {
        lo = (int64_t)sqrt((double)least);
        while (lo * lo <= least)
            lo++;
        while (lo > 0 && (lo - 1) * (lo - 1) > least)
            lo--;
    }
    /* c has dim - 1's parity; voxel z = corner + (c + dim - 1) / 2 */
    hi -= (hi ^ (dim - 1)) & 1;
    lo += (lo ^ (dim - 1)) & 1;
    if (hi < lo)
        return;
    const int32_t z0 = corner_of(s->dim), far_lo = z0 + (int32_t)((dim - 1 - hi) / 2),
                  far_hi = z0 + (int32_t)((dim - 1 - lo) / 2), near_lo = z0 + (int32_t)((dim - 1 + lo) / 2),
                  near_hi = z0 + (int32_t)((dim - 1 + hi) / 2);
    if (near_lo <= far_hi + 1) {
        runs_add(out, far_lo, near_hi + 1);
    } else {
        runs_add(out, far_lo, far_hi + 1);
        runs_add(out, near_lo, near_hi + 1);
    }
}

static void fill_random(void *context, int32_t x, int32_t y, struct runs *out)
{
    const struct shape *s = context;
    const int32_t z0 = corner_of(s->dim);
    int32_t from = -1;
    for (int32_t z = 0; z <= s->dim; z++) {
        const uint64_t place = ((uint64_t)s->seed << 60) ^
                               ((uint64_t)(uint32_t)x << 40 ^ (uint64_t)(uint32_t)y << 20 ^ (uint32_t)z);
        const bool in = z < s->dim && (shape_hash(place + 1) & 3) == 0;
        if (in && from < 0)
            from = z;
        if (!in && from >= 0) {
            runs_add(out, z0 + from, z0 + z);
            from = -1;
        }
    }
}

static void fill_tile(void *context, int32_t x, int32_t y, struct runs *out)
{
    (void)context;
    (void)x;
    (void)y;
    runs_add(out, SHAPE_AT, SHAPE_AT + SHAPE_TILE);
}

/* Scattered voxels, sorted. */
struct sorted {
    const int32_t (*point)[3];
    const uint64_t *order; /* (x, y, z) from the corner, 21 bits each */
    uint64_t n;
    int32_t corner;
};

static void fill_scatter(void *context, int32_t x, int32_t y, struct runs *out)
{
    const struct sorted *s = context;
    const uint64_t column = (uint64_t)(x - s->corner) << 42 | (uint64_t)(y - s->corner) << 21;
    uint64_t lo = 0, hi = s->n;
    while (lo < hi) {
        const uint64_t mid = (lo + hi) / 2;
        if (s->order[mid] < column)
            lo = mid + 1;
        else
            hi = mid;
    }
    const uint32_t first = out->n;
    for (; lo < s->n && s->order[lo] >> 21 == column >> 21; lo++) {
        const int32_t z = s->corner + (int32_t)(s->order[lo] & 0x1fffff);
        if (out->n > first && out->run[out->n - 1].hi >= z)
            out->run[out->n - 1].hi = z + 1; /* the next one, or the same again */
        else
            runs_add(out, z, z + 1);
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void make_scatter(struct shape *s)
{
    const int32_t corner = corner_of(s->dim);
    const uint64_t room = (uint64_t)s->dim * (uint64_t)s->dim * (uint64_t)s->dim / 64;
    s->n_points = room < SCATTERED ? room : SCATTERED;
    s->point = need(malloc(s->n_points * sizeof *s->point));
    uint64_t *order = need(malloc(s->n_points * sizeof *order));
    for (uint64_t i = 0; i < s->n_points; i++) {
        order[i] = 0;
        for (uint64_t k = 0; k < 3; k++) {
            const uint64_t x =
                (uint32_t)shape_hash(3 * i + k + 1 + ((uint64_t)s->seed << 40)) % (uint32_t)s->dim;
            s->point[i][k] = corner + (int32_t)x;
            order[i] = order[i] << 21 | x;
        }
    }
    qsort(order, s->n_points, sizeof *order, by_value);
    struct sorted sorted = {(const int32_t(*)[3])s->point, order, s->n_points, corner};
    s->columns = columns_make(corner, corner, s->dim, s->dim, fill_scatter, &sorted);
    free(order);
}

/* ------------------------------------------------------------------ points */

struct listing {
    struct shape *s;
    uint64_t *before; /* [nx] points in the rows before */
    int32_t (*source)[3];
    uint64_t step;
};

static void list_row(void *context, uint64_t i)
{
    const struct listing *l = context;
    const struct columns *c = &l->s->columns;
    const struct column_row *row = &c->row[i];
    int32_t(*out)[3] = l->s->point + l->before[i];
    for (int32_t y = 0; y < c->ny; y++)
        for (uint32_t k = row->start[y]; k < row->start[y + 1]; k++)
            for (int32_t z = row->runs.run[k].lo; z < row->runs.run[k].hi; z++, out++) {
                (*out)[0] = c->x0 + (int32_t)i;
                (*out)[1] = c->y0 + y;
                (*out)[2] = z;
            }
}

static void list_points(struct shape *s)
{
    const struct columns *c = &s->columns;
    struct listing l = {.s = s, .before = need(malloc((size_t)c->nx * sizeof *l.before))};
    uint64_t n = 0;
    for (int32_t x = 0; x < c->nx; x++) {
        l.before[x] = n;
        for (uint32_t k = 0; k < c->row[x].runs.n; k++)
            n += (uint64_t)(c->row[x].runs.run[k].hi - c->row[x].runs.run[k].lo);
    }
    s->n_points = n * (uint64_t)s->copies;
    s->point = need(malloc((s->n_points + 1) * sizeof *s->point));
    bench_parallel((uint64_t)c->nx, list_row, &l);
    free(l.before);
    for (uint64_t i = n; i < s->n_points; i++) {
        const uint64_t copy = i / n;
        const int32_t at[3] = {(int32_t)(copy / 16), (int32_t)(copy / 4 % 4), (int32_t)(copy % 4)};
        for (int k = 0; k < 3; k++)
            s->point[i][k] = s->point[i % n][k] + at[k] * s->dim;
    }
}

struct shape shape_make(enum shape_kind kind, int32_t dim, uint32_t seed, bool with_points)
{
    struct shape s = {.kind = kind, .dim = dim, .seed = seed, .copies = 1};
    const int32_t corner = corner_of(dim);
    switch (kind) {
    case SHAPE_SCATTER:
        make_scatter(&s);
        if (!with_points)
            shape_drop_points(&s);
        return s;
    case SHAPE_TILES:
        s.copies = SHAPE_TILES_A_SIDE * SHAPE_TILES_A_SIDE * SHAPE_TILES_A_SIDE;
        s.columns = columns_make(SHAPE_AT, SHAPE_AT, SHAPE_TILE, SHAPE_TILE, fill_tile, &s);
        break;
    case SHAPE_RAND25:
        s.columns = columns_make(corner, corner, dim, dim, fill_random, &s);
        break;
    default:
        s.columns = columns_make(corner, corner, dim, dim, fill_shell, &s);
    }
    if (with_points)
        list_points(&s);
    return s;
}

void shape_drop_points(struct shape *s)
{
    free(s->point);
    s->point = NULL;
}

void shape_free(struct shape *s)
{
    shape_drop_points(s);
    columns_free(&s->columns);
}

enum { PART = 1 << 16 };

static void permute_part(void *context, uint64_t part)
{
    const struct listing *l = context;
    const uint64_t n = l->s->n_points, end = (part + 1) * PART < n ? (part + 1) * PART : n;
    for (uint64_t i = part * PART; i < end; i++)
        memcpy(l->s->point[i], l->source[(uint64_t)((unsigned __int128)i * l->step % n)], 12);
}

void shape_scatter_points(struct shape *s)
{
    const uint64_t n = s->n_points;
    struct listing l = {.s = s, .source = s->point};
    if (n < 2)
        return;
    for (l.step = 2654435761ull % n | 1;; l.step += 2) { /* the next one that visits all */
        uint64_t a = n, b = l.step % n;
        while (b) {
            const uint64_t c = a % b;
            a = b;
            b = c;
        }
        if (a == 1)
            break;
    }
    s->point = need(malloc(n * sizeof *s->point));
    bench_parallel((n + PART - 1) / PART, permute_part, &l);
    free(l.source);
}

void shape_fold(const struct shape *s, const int32_t v[3], int32_t out[3])
{
    for (int k = 0; k < 3; k++) {
        const int32_t half = s->dim / 2, from = SHAPE_AT - half; /* copies of the tile are dim apart */
        out[k] = v[k];
        if (s->copies > 1 && v[k] >= from)
            out[k] = from + (v[k] - from) % s->dim;
    }
}
