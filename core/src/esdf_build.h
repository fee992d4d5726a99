/*
 * esdf_build.h - what the parts of a distance field's build share (internal to core).
 */
#ifndef VX__ESDF_BUILD_H
#define VX__ESDF_BUILD_H

#include "esdf.h"

/* One of the lists of a batch: which candidates it holds, and where a candidate is on it. */
struct vx__esdf_level {
    uint32_t *slot; /* [candidates] */
    uint32_t *list; /* [candidates] */
    uint32_t n;
};

struct vx__esdf_build {
    struct vx_map *map;
    struct vxk_queue *q;
    const struct vx__snapshot *snapshot;
    struct vxk_samples samples;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    struct vx__esdf *esdf; /* the new one */
    struct vx__work work;

    uint32_t radius, reach, width; /* R; cells it spans; 2 reach + 1 */
    int32_t limit;                 /* (256 R)^2 */

    uint32_t *versions, n_versions;
    struct vxk_cells owners; /* the cells of the map that may own sites */
    uint32_t n_cells;
    uint64_t *span; /* [n_cells] vxk_esdf_span */

    struct vxk_cells c; /* the candidates */
    uint32_t n_candidates;
    uint8_t *sites, *lines, *planes; /* [candidates] what holds anything there */
    struct vx__esdf_level level[3];  /* of planes, lines, sites */
    uint32_t *count;                 /* device: entries of the three lists */
};

/* Fills the leaves of the candidates, in batches of bounded scratch (esdf_batch.c). */
vx_err vx__esdf_batches(struct vx__esdf_build *b);
/* Room for leaves 0 .. n-1 (esdf.c). */
vx_err vx__esdf_grow(struct vx__esdf_build *b, uint32_t n);

#endif
