#include "half_edge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct half {
    uint32_t from, to, third;
};

static int by_ends(const void *a, const void *b)
{
    const struct half *p = a, *q = b;
    if (p->from != q->from)
        return p->from < q->from ? -1 : 1;
    return p->to < q->to ? -1 : p->to > q->to;
}

static const struct half *find(const struct half *h, size_t n, uint32_t from, uint32_t to)
{
    const struct half wanted = {from, to, 0};
    return bsearch(&wanted, h, n, sizeof *h, by_ends);
}

/* Follows the fan from one of a vertex's half edges (h[0 .. n)) on, marks it, and gives its last one. */
static size_t follow(const struct half *h, size_t n, size_t at, uint8_t *seen)
{
    for (;;) {
        const struct half *next;
        seen[at] = 1;
        next = find(h, n, h[at].from, h[at].third);
        if (!next || seen[next - h])
            return at;
        at = (size_t)(next - h);
    }
}

/* The fans of one vertex, whose half edges are h[0 .. n) of all; false when they are no surface. */
static bool fans(const struct half *all, size_t n_all, const struct half *h, size_t n, uint8_t *seen,
                 struct half_edge_facts *out)
{
    size_t n_open = 0, n_closed = 0;
    memset(seen, 0, n);
    for (size_t i = 0; i < n; i++)
        if (!find(all, n_all, h[i].to, h[i].from)) {
            n_open++;
            follow(h, n, i, seen);
        }
    for (size_t i = 0; i < n; i++)
        if (!seen[i]) {
            n_closed++;
            follow(h, n, i, seen);
        }
    out->n_pinched += n_open > 1;
    return n_closed == 0 || n_closed + n_open == 1;
}

static bool gather(const uint32_t *t, uint32_t n_triangles, uint32_t n_vertices, struct half *h, char *words)
{
    for (uint32_t i = 0; i < n_triangles; i++)
        for (int k = 0; k < 3; k++) {
            const uint32_t *c = t + 3 * (size_t)i;
            h[3 * (size_t)i + (size_t)k] = (struct half){c[k], c[(k + 1) % 3], c[(k + 2) % 3]};
            if (c[k] >= n_vertices || c[k] == c[(k + 1) % 3]) {
                snprintf(words, HALF_EDGE_WORDS, "triangle %u has the corners %u %u %u of %u vertices", i,
                         c[0], c[1], c[2], n_vertices);
                return false;
            }
        }
    return true;
}

bool half_edge_check(const uint32_t *triangles, uint32_t n_triangles, uint32_t n_vertices,
                     void (*border)(void *context, uint32_t from, uint32_t to), void *context,
                     struct half_edge_facts *out, char words[HALF_EDGE_WORDS])
{
    const size_t n = 3 * (size_t)n_triangles;
    struct half *h = malloc((n + 1) * sizeof *h);
    uint8_t *seen = malloc(n + 1);
    bool good = h && seen;

    memset(out, 0, sizeof *out);
    snprintf(words, HALF_EDGE_WORDS, "%s", good ? "" : "no memory");
    good = good && gather(triangles, n_triangles, n_vertices, h, words);
    if (good)
        qsort(h, n, sizeof *h, by_ends);
    for (size_t i = 0; good && i < n; i++) {
        if (i && by_ends(&h[i - 1], &h[i]) == 0) {
            snprintf(words, HALF_EDGE_WORDS, "two triangles lie on one side of the edge %u-%u", h[i].from,
                     h[i].to);
            good = false;
        } else if (!find(h, n, h[i].to, h[i].from)) {
            out->n_border++;
            if (border)
                border(context, h[i].from, h[i].to);
        }
    }
    for (size_t i = 0, end; good && i < n; i = end) {
        for (end = i; end < n && h[end].from == h[i].from; end++)
            ;
        out->n_vertices++;
        good = fans(h, n, h + i, end - i, seen, out);
        if (!good)
            snprintf(words, HALF_EDGE_WORDS, "the surface meets itself at vertex %u", h[i].from);
    }
    if (good && out->n_vertices != n_vertices) {
        snprintf(words, HALF_EDGE_WORDS, "%llu of %u vertices belong to no triangle",
                 (unsigned long long)(n_vertices - out->n_vertices), n_vertices);
        good = false;
    }
    out->n_triangles = n_triangles;
    out->n_edges = (n + out->n_border) / 2;
    out->euler = (int64_t)out->n_vertices - (int64_t)out->n_edges + (int64_t)n_triangles;
    free(h);
    free(seen);
    return good;
}
