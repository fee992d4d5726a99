/*
 * half_edge.h - is a mesh of triangles a surface?  Shares no code with what makes meshes.
 *
 * Every triangle has three half edges, from corner to corner as it is wound.  A half edge whose opposite no
 * triangle has is a border.
 */
#ifndef HALF_EDGE_H
#define HALF_EDGE_H

#include <stdbool.h>
#include <stdint.h>

enum { HALF_EDGE_WORDS = 200 };

struct half_edge_facts {
    uint64_t n_vertices; /* used by triangles */
    uint64_t n_edges, n_border, n_triangles;
    uint64_t n_pinched; /* vertices where the surface meets itself at its border */
    int64_t euler;      /* vertices - edges + triangles */
};

/*
 * False, with words, unless: all numbers are below n_vertices, no triangle has a corner twice, every half
 * edge is used once (so no triangle comes twice, and neighbours are wound alike), every vertex is used, and
 * around every vertex the triangles make one closed fan, or open ones only (those end at the border). border:
 * called for every half edge without an opposite; may be NULL.
 */
bool half_edge_check(const uint32_t *triangles, uint32_t n_triangles, uint32_t n_vertices,
                     void (*border)(void *context, uint32_t from, uint32_t to), void *context,
                     struct half_edge_facts *out, char words[HALF_EDGE_WORDS]);

#endif
