#include "mesh_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct head {
    int32_t chunk[3];
    uint32_t n_vertices, n_triangles;
    uint16_t vertex_bytes, index_bytes;
};

static void *need(void *p)
{
    if (!p) {
        fprintf(stderr, "mesh store: out of memory\n");
        abort();
    }
    return p;
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint16_t u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* Bytes of the record at p, 0 when there are not so many. */
static size_t read_head(const uint8_t *p, size_t left, struct head *h)
{
    size_t indices, n;
    if (left < 24)
        return 0;
    for (int a = 0; a < 3; a++)
        h->chunk[a] = (int32_t)u32(p + 4 * a);
    h->n_vertices = u32(p + 12);
    h->n_triangles = u32(p + 16);
    h->vertex_bytes = u16(p + 20);
    h->index_bytes = u16(p + 22);
    indices = (size_t)h->n_triangles * 3 * h->index_bytes;
    n = 24 + (size_t)h->n_vertices * h->vertex_bytes + (indices + 3) / 4 * 4;
    return n <= left ? n : 0;
}

static uint32_t index_at(const uint8_t *record, const struct head *h, size_t i)
{
    const uint8_t *p = record + 24 + (size_t)h->n_vertices * h->vertex_bytes + i * h->index_bytes;
    return h->index_bytes == 2 ? u16(p) : u32(p);
}

static int compare_chunks(const int32_t a[3], const int32_t b[3])
{
    for (int k = 0; k < 3; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

static const char *check_record(const uint8_t *record, const struct head *h)
{
    const size_t n = (size_t)h->n_triangles * 3;
    uint8_t *used;
    const char *fault = NULL;

    if (h->vertex_bytes < 12 || h->index_bytes != (h->n_vertices > 65536 ? 4 : 2))
        return "sizes of a vertex or of an index";
    if ((h->n_vertices == 0) != (h->n_triangles == 0))
        return "vertices without triangles";
    used = need(calloc(h->n_vertices + 1, 1));
    for (size_t i = 0; i < n && !fault; i++) {
        uint32_t v = index_at(record, h, i);
        fault = v >= h->n_vertices ? "an index out of range" : NULL;
        used[v < h->n_vertices ? v : 0] = 1;
    }
    for (uint32_t v = 0; v < h->n_vertices && !fault; v++) {
        const uint8_t *p = record + 24 + (size_t)v * h->vertex_bytes;
        double length = 0;
        for (int a = 0; a < 3; a++) {
            double c = (int16_t)u16(p + 6 + 2 * a) / 32767.0;
            length += c * c;
        }
        fault = !used[v] ? "a vertex that no triangle uses" : fabs(length - 1) > 1e-3 ? "a normal" : NULL;
    }
    free(used);
    return fault;
}

/* Place of a chunk among the pieces, or where it belongs. */
static size_t place_of(const struct mesh_store *s, const int32_t chunk[3])
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (compare_chunks(s->pieces[mid].chunk, chunk) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void put(struct mesh_store *s, const struct head *h, const uint8_t *record, size_t n)
{
    size_t at = place_of(s, h->chunk);
    bool there = at < s->n && compare_chunks(s->pieces[at].chunk, h->chunk) == 0;

    if (there) {
        free(s->pieces[at].bytes);
        if (!h->n_triangles) {
            memmove(s->pieces + at, s->pieces + at + 1, (--s->n - at) * sizeof *s->pieces);
            return;
        }
    } else {
        if (!h->n_triangles)
            return;
        if (s->n == s->room) {
            s->room = s->room ? 2 * s->room : 64;
            s->pieces = need(realloc(s->pieces, s->room * sizeof *s->pieces));
        }
        memmove(s->pieces + at + 1, s->pieces + at, (s->n++ - at) * sizeof *s->pieces);
    }
    memcpy(s->pieces[at].chunk, h->chunk, sizeof h->chunk);
    s->pieces[at].bytes = need(malloc(n));
    s->pieces[at].n_bytes = n;
    memcpy(s->pieces[at].bytes, record, n);
}

bool mesh_store_apply(struct mesh_store *store, const uint8_t *body, size_t n_bytes, uint32_t n_chunks,
                      bool complete, char words[MESH_STORE_WORDS])
{
    int32_t before[3] = {0, 0, 0};

    if (complete)
        mesh_store_fini(store);
    for (uint32_t i = 0; i < n_chunks; i++) {
        struct head h;
        size_t n = read_head(body, n_bytes, &h);
        const char *fault = n ? check_record(body, &h) : "a record that is cut short";
        if (!fault && i && compare_chunks(before, h.chunk) >= 0)
            fault = "chunks that do not ascend";
        if (fault) {
            snprintf(words, MESH_STORE_WORDS, "record %u of %u: %s", i, n_chunks, fault);
            return false;
        }
        put(store, &h, body, n);
        memcpy(before, h.chunk, sizeof before);
        body += n;
        n_bytes -= n;
    }
    if (n_bytes)
        snprintf(words, MESH_STORE_WORDS, "%zu bytes too many", n_bytes);
    return !n_bytes;
}

bool mesh_store_same(const struct mesh_store *a, const struct mesh_store *b, int32_t chunk[3])
{
    size_t i = 0;

    while (i < a->n && i < b->n && compare_chunks(a->pieces[i].chunk, b->pieces[i].chunk) == 0 &&
           a->pieces[i].n_bytes == b->pieces[i].n_bytes &&
           memcmp(a->pieces[i].bytes, b->pieces[i].bytes, a->pieces[i].n_bytes) == 0)
        i++;
    if (i == a->n && i == b->n)
        return true;
    memcpy(chunk, i < a->n ? a->pieces[i].chunk : b->pieces[i].chunk, 3 * sizeof *chunk);
    return false;
}

void mesh_store_fini(struct mesh_store *store)
{
    for (size_t i = 0; i < store->n; i++)
        free(store->pieces[i].bytes);
    free(store->pieces);
    memset(store, 0, sizeof *store);
}

/* ------------------------------------------------------------------ one mesh */

static int by_place(const void *a, const void *b)
{
    const int64_t *p = a, *q = b;
    for (int k = 0; k < 3; k++)
        if (p[k] != q[k])
            return p[k] < q[k] ? -1 : 1;
    return 0;
}

static void vertex_place(const uint8_t *record, const struct head *h, uint32_t v, int64_t out[3])
{
    for (int a = 0; a < 3; a++)
        out[a] = (int64_t)h->chunk[a] * 128 * 256 +
                 u16(record + 24 + (size_t)v * h->vertex_bytes + 2 * (size_t)a) - 128;
}

void mesh_store_weld(const struct mesh_store *store, struct mesh_welded *out)
{
    size_t n_all = 0, n_triangles = 0, n = 0;
    struct head h;

    for (size_t i = 0; i < store->n; i++) {
        (void)read_head(store->pieces[i].bytes, store->pieces[i].n_bytes, &h);
        n_all += h.n_vertices;
        n_triangles += h.n_triangles;
    }
    *out = (struct mesh_welded){.n_triangles = (uint32_t)n_triangles};
    out->vertices = need(malloc((n_all + 1) * sizeof *out->vertices));
    out->triangles = need(malloc((n_triangles + 1) * 3 * sizeof *out->triangles));
    for (size_t i = 0; i < store->n; i++) {
        (void)read_head(store->pieces[i].bytes, store->pieces[i].n_bytes, &h);
        for (uint32_t v = 0; v < h.n_vertices; v++)
            vertex_place(store->pieces[i].bytes, &h, v, out->vertices[n++]);
    }
    qsort(out->vertices, n, sizeof *out->vertices, by_place);
    for (size_t i = 0; i < n; i++)
        if (!out->n_vertices || by_place(out->vertices[out->n_vertices - 1], out->vertices[i]) != 0)
            memmove(out->vertices[out->n_vertices++], out->vertices[i], sizeof *out->vertices);
    n = 0;
    for (size_t i = 0; i < store->n; i++) {
        (void)read_head(store->pieces[i].bytes, store->pieces[i].n_bytes, &h);
        for (size_t k = 0; k < (size_t)h.n_triangles * 3; k++) {
            int64_t at[3];
            vertex_place(store->pieces[i].bytes, &h, index_at(store->pieces[i].bytes, &h, k), at);
            out->triangles[n++] = (uint32_t)((int64_t(*)[3])bsearch(at, out->vertices, out->n_vertices,
                                                                    sizeof *out->vertices, by_place) -
                                             out->vertices);
        }
    }
}

void mesh_welded_fini(struct mesh_welded *welded)
{
    free(welded->vertices);
    free(welded->triangles);
    memset(welded, 0, sizeof *welded);
}

static int by_triangle(const void *a, const void *b)
{
    const int64_t *p = a, *q = b;
    for (int k = 0; k < 9; k++)
        if (p[k] != q[k])
            return p[k] < q[k] ? -1 : 1;
    return 0;
}

int64_t (*mesh_welded_triangles(const struct mesh_welded *w))[3][3]
{
    int64_t(*out)[3][3] = need(malloc((w->n_triangles + 1) * sizeof *out));

    for (uint32_t i = 0; i < w->n_triangles; i++) {
        const uint32_t *t = w->triangles + 3 * (size_t)i;
        int first = 0;
        for (int k = 1; k < 3; k++)
            if (by_place(w->vertices[t[k]], w->vertices[t[first]]) < 0)
                first = k;
        for (int k = 0; k < 3; k++)
            memcpy(out[i][k], w->vertices[t[(first + k) % 3]], sizeof out[i][k]);
    }
    qsort(out, w->n_triangles, sizeof *out, by_triangle);
    return out;
}
