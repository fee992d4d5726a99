/*
 * mesh_job.h - marching cubes over a set of cells: count, then emit (internal to core).
 *
 *     vx__mesh_begin -> the caller fills set, n_leaves and, if not all chunks are made, near -> vx__mesh_run
 *     -> the caller takes the arrays -> vx__mesh_end
 *
 * A set whose masks fit into the scratch is staged once; a larger one in batches of leaves, twice.  Every job
 * has a device queue of its own, so that neither frames nor queries wait for a mesh.
 */
#ifndef VX__MESH_JOB_H
#define VX__MESH_JOB_H

#include "body/mesh.h"
#include "cells.h"
#include "vx/mesh.h"
#include "work.h"

/* A list of a batch: targets, or sources. */
struct vx__mesh_level {
    uint32_t *slot, *list; /* [leaves] */
    uint32_t n;
};

struct vx__mesh_job {
    struct vx_map *map;
    struct vxk_queue *q;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    struct vx__snapshot snapshot;
    struct vxk_samples samples;
    struct vx__work work;

    struct vxk_cells set;
    uint32_t n_leaves;    /* of the set */
    const uint32_t *near; /* device: which chunks of the set are made (vxk_mesh_role); NULL: all */
    bool packed;          /* vertices as vxk_mesh_packed; what comes out stays on the device */
    const uint64_t *keys; /* host [n_chunks] of the set's chunks; may still be on its way until the first
                             wait; not needed when packed */
    uint32_t n_chunks;

    uint32_t *landing; /* page-locked [2]: what the host has to know, both with one wait */
    uint32_t size;     /* leaves of a batch */
    int32_t origin[3]; /* voxel; lower corner of all chunks */
    struct vx__mesh_level level[2];
    uint64_t budget;                /* bytes of scratch */
    uint32_t *count;                /* device: entries of the two lists */
    uint32_t *vertices, *triangles; /* device: [n_leaves + 1] counts, then running sums */

    /* What came out: one pinned block, or packed and among `work`. */
    uint32_t n_vertices, n_triangles;
    void *memory;
    float *vertex, *normal;       /* [n_vertices][3] unless packed */
    struct vxk_mesh_packed *pack; /* device [n_vertices] when packed */
    struct vxk_tint_answer *tint; /* the same of a map with colours or labels; else NULL */
    uint32_t *triangle;           /* [n_triangles][3] numbers of vertices */
};

/* Makes the queue and pins the newest epoch.  Errors: VX_E_INVALID min_weight; VX_E_STALE min_epoch;
 * VX_E_NOMEM; VX_E_DEVICE.  After an error there is nothing to end. */
vx_err vx__mesh_begin(struct vx__mesh_job *job, struct vx_map *map, const struct vx_query_options *options,
                      uint32_t min_weight, struct vx_detail *detail);
/* Errors: VX_E_CANCELLED; VX_E_EXHAUSTED; VX_E_NOMEM; VX_E_DEVICE. */
vx_err vx__mesh_run(struct vx__mesh_job *job);
vx_err vx__mesh_cancelled(const struct vx__mesh_job *job);
/*
 * Appends the records of a packed job's chunks to *out: body and counts of records, vertices and triangles.
 * near, bases: device, as vxk_mesh_records's.  Errors: VX_E_EXHAUSTED; VX_E_NOMEM; VX_E_DEVICE; *out is as it
 * was then.
 */
vx_err vx__mesh_records(struct vx__mesh_job *job, const uint32_t *near, const uint32_t *bases,
                        uint32_t n_chunks, bool complete, struct vx_mesh_chunks *out);
/* Frees what came out, if it was not taken (memory = NULL), and all the rest. */
void vx__mesh_end(struct vx__mesh_job *job);

#endif
