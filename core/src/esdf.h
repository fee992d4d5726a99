/*
 * esdf.h - the distance field that a map's readers keep (internal to core).
 *
 * It belongs to one epoch and is rebuilt when a query finds a newer one.  Building needs room for the new
 * field beside the old: when the cap refuses, the old one stays as it was.
 */
#ifndef VX__ESDF_H
#define VX__ESDF_H

#include "body/esdf_mark.h"
#include "cells.h"
#include "vx/query.h"

struct vx__esdf {
    struct vxk_esdf view; /* pass by value in kernel arguments */
    uint64_t epoch;
    uint32_t n_leaves, n_chunks;
    uint64_t bytes; /* device memory held */
    uint64_t *keys;
    uint32_t *index, *table;
    uint16_t **page_list; /* device copy of pages */
    uint16_t **pages;     /* host array of device blocks */
    uint32_t n_pages, max_pages;
};

/* R of a map in voxels: 1 .. VXK_ESDF_MAX_R. */
uint32_t vx__esdf_radius(const struct vx_map_params *params);
/*
 * The field of the snapshot's epoch, built when the kept one is of another epoch.
 *
 * rs: the locked reader state, owner of the field.  out: valid until the lock is given back.
 * Errors: VX_E_EXHAUSTED it does not fit (a field of an older epoch is kept); VX_E_CANCELLED; VX_E_NOMEM;
 * VX_E_DEVICE. Thread: the holder of the reader lock; blocks.
 */
vx_err vx__esdf_refresh(struct vx_map *map, struct vx__reader_state *rs, const struct vx__snapshot *s,
                        const struct vx_query_options *options, const struct vx__esdf **out,
                        struct vx_detail *detail);
/* True when the caller of a query gave it up. */
bool vx__cancelled(const struct vx_query_options *options);

#endif
