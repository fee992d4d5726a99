/*
 * mesh.h - marching cubes of the newest epoch: shared vertices, normals, deterministic order; whole, or chunk
 * by chunk and only what changed.
 */
#ifndef VX_MESH_H
#define VX_MESH_H

#include "vx/tint.h"

struct vx_mesh {
    double origin_m[3]; /* vertices are relative to it */
    uint32_t n_vertices;
    uint32_t n_triangles;
    float *vertices;       /* [n_vertices][3] m */
    float *normals;        /* [n_vertices][3] unit, out of the solid */
    uint32_t *triangles;   /* [n_triangles][3], counter-clockwise seen from outside */
    struct vx_tint *tints; /* [n_vertices] colours and labels; NULL: the map has none */
    void *owner_;          /* of the memory; vx_mesh_fini's */
};

/*
 * Meshes the map into *out (free with vx_mesh_fini, before the device is closed).  min_weight: corners below
 * it make no triangle; 0 = 1, at most 255. Errors: VX_E_INVALID min_weight; VX_E_CANCELLED; VX_E_EXHAUSTED
 * more than 2^32 - 1 vertices or triangles, or scratch over the cap; VX_E_NOMEM; VX_E_DEVICE. Thread: any,
 * beside the writer; blocks.
 */
vx_err vx_mesh_extract(struct vx_map *map, const struct vx_query_options *options, uint32_t min_weight,
                       struct vx_mesh *out, struct vx_reply *reply, struct vx_detail *detail);
void vx_mesh_fini(struct vx_mesh *mesh);

/* ------------------------------------------------------------------ chunk by chunk */

/* A record of the body: this head, the vertices, the triangles, all little endian.  What the wire carries. */
struct vx_mesh_chunk {   /* 24 bytes */
    int32_t chunk[3];    /* of 128^3 voxels: voxel coordinate >> 7 */
    uint32_t n_vertices; /* 0: the chunk has no surface (any more) */
    uint32_t n_triangles;
    uint16_t vertex_bytes; /* of a vertex: 12, or 20 in maps with colours or labels: a struct vx_tint behind
                              the normal */
    uint16_t index_bytes;  /* of a number in a triangle: 2 up to 65536 vertices, else 4; the triangles are
                              filled up to a multiple of 4 bytes */
};
struct vx_mesh_vertex {   /* 12 bytes */
    uint16_t position[3]; /* 1/256 voxel from the chunk's lower corner; exact */
    int16_t normal[3];    /* 1/32767; out of the solid */
};

struct vx_mesh_chunks {
    double origin_m[3]; /* lower corner of voxel (0, 0, 0) */
    double voxel_m;
    bool complete;     /* chunks that are not named have no surface; else they are as they were */
    uint32_t n_chunks; /* named, ascending by x, y, z */
    uint64_t n_vertices, n_triangles;
    uint8_t *body; /* records one after the other */
    uint64_t body_bytes;
    void *owner_;      /* of the body; vx_mesh_chunks_fini's */
    uint64_t n_cells;  /* cells of 8^3 voxels that were looked at, */
    uint32_t n_looked; /* and chunks; for measurements */
};

/* What is asked. */
struct vx_mesh_since {
    uint64_t epoch;      /* the caller has the mesh of this epoch; 0 = has nothing */
    const uint8_t *uuid; /* [16] of the map that this epoch was of; NULL = this one */
    bool has_region;     /* only chunks that meet the box */
    double min_m[3], max_m[3];
    uint32_t min_weight; /* as vx_mesh_extract */
};

/*
 * The chunks whose mesh may have changed since an epoch, each as a mesh of its own: the triangles of the
 * cells that its voxels own, with all their vertices.  Positions on a chunk's border are the same number in
 * both chunks, so that neighbours meet without a crack.  A chunk's bytes depend on its content and
 * surroundings alone: a caller that keeps the chunks by their place and replaces those that are named (all of
 * them when `complete`) has the same bytes as one that asks anew.  Region and min_weight must stay the same
 * meanwhile.
 *
 * An epoch that cannot be answered for - of another map, before the last clear, or too long ago in a map that
 * forgets - gives a complete answer.  Work follows what changed; of the rest of the map only the table of
 * chunks is read.  *out: free with vx_mesh_chunks_fini, before
 * the device is closed.  Errors: as vx_mesh_extract; VX_E_STALE the epoch is
 * in the future; VX_E_INVALID the region.  Thread: as vx_mesh_extract.
 */
vx_err vx_mesh_get_chunks(struct vx_map *map, const struct vx_query_options *options,
                          const struct vx_mesh_since *since, struct vx_mesh_chunks *out,
                          struct vx_reply *reply, struct vx_detail *detail);
void vx_mesh_chunks_fini(struct vx_mesh_chunks *chunks);

#endif
