/*
 * mesh_store.h - what a client does with a mesh that comes chunk by chunk: keep, replace, remove, weld.
 *
 * Reads the records of MESH answers byte by byte (proto/README.md) and checks them on the way; shares no code
 * with what writes them.
 */
#ifndef MESH_STORE_H
#define MESH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MESH_STORE_WORDS = 200 };

struct mesh_piece {
    int32_t chunk[3];
    uint8_t *bytes; /* its record */
    size_t n_bytes;
};
struct mesh_store {
    struct mesh_piece *pieces; /* ascending by chunk */
    size_t n, room;
};

/* Takes an answer in.  False, with words, when it is malformed: a record that is cut short, chunks out of
 * order, a number out of range, a vertex that no triangle uses, a normal that is not of length 1. */
bool mesh_store_apply(struct mesh_store *store, const uint8_t *body, size_t n_bytes, uint32_t n_chunks,
                      bool complete, char words[MESH_STORE_WORDS]);
/* Byte for byte; *chunk: the first that differs. */
bool mesh_store_same(const struct mesh_store *a, const struct mesh_store *b, int32_t chunk[3]);
void mesh_store_fini(struct mesh_store *store);

/* One mesh of all chunks: vertices in 1/256 voxel from the centre of voxel (0, 0, 0), each once. */
struct mesh_welded {
    int64_t (*vertices)[3];
    uint32_t *triangles; /* [n_triangles][3] */
    uint32_t n_vertices, n_triangles;
};
void mesh_store_weld(const struct mesh_store *store, struct mesh_welded *out);
void mesh_welded_fini(struct mesh_welded *welded);
/* Turns each triangle so that its smallest corner (by place) comes first, and sorts them: equal meshes are
 * then equal arrays of [n_triangles][3][3]; the caller frees it. */
int64_t (*mesh_welded_triangles(const struct mesh_welded *welded))[3][3];

#endif
