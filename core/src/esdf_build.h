/*
 * esdf_build.h - what the parts of a distance field's update share (internal to core).
 */
#ifndef VX__ESDF_BUILD_H
#define VX__ESDF_BUILD_H

#include "cells.h"
#include "esdf.h"

struct vx__esdf_build {
    struct vx_map *map;
    struct vxk_queue *q;
    const struct vx__snapshot *snapshot;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    struct vx__esdf *esdf;
    struct vx__work work;
    struct vxk_esdf_args a;     /* of the next launch */
    struct vxk_esdf_counters n; /* as last read */
    uint32_t width;             /* 2 reach + 1 */
};

/* Launches element function esdf_NAME with the build's arguments. */
#define VX__ESDF_RUN(b, name, count) VXK_LAUNCH((b)->q, esdf_##name, &(b)->a, (count))
/* The same with the count in a field of the device's counters, `per` elements each, at most `most` times. */
#define VX__ESDF_RUN_COUNTED(b, name, counter, per, most)                                                    \
    VXK_LAUNCH_COUNTED((b)->q, esdf_##name, &(b)->a, &(b)->a.n->counter, (per), (most) * (per))

/* Reads the counters into b->n; waits for the queue. */
vx_err vx__esdf_read(struct vx__esdf_build *b);
/* Room for more chunks, or for leaf numbers 0 .. n-1 (esdf.c).  Both keep what the field holds. */
vx_err vx__esdf_grow_chunks(struct vx__esdf_build *b, uint32_t n);
vx_err vx__esdf_grow_leaves(struct vx__esdf_build *b, uint64_t n);
/* Finds out what the update has to do: lists and counts (esdf_plan.c).  Nothing of the field changes but the
 * list of its chunks. */
vx_err vx__esdf_plan(struct vx__esdf_build *b);
/* Computes the leaves of all_out in batches of bounded scratch (esdf_batch.c). */
vx_err vx__esdf_batches(struct vx__esdf_build *b);

#endif
