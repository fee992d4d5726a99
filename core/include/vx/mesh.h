/*
 * mesh.h - marching cubes of the newest epoch: shared vertices, normals, deterministic order.
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
 * it make no triangle; 0 = 1. Errors: VX_E_CANCELLED; VX_E_EXHAUSTED more than 2^32 - 1 vertices or
 * triangles, or scratch over the cap; VX_E_NOMEM; VX_E_DEVICE. Thread: any, beside the writer; blocks.
 */
vx_err vx_mesh_extract(struct vx_map *map, const struct vx_query_options *options, uint32_t min_weight,
                       struct vx_mesh *out, struct vx_reply *reply, struct vx_detail *detail);
void vx_mesh_fini(struct vx_mesh *mesh);

#endif
