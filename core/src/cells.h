/*
 * cells.h - sets of numbered cells on the device (internal to core; body/esdf_cells.h).
 */
#ifndef VX__CELLS_H
#define VX__CELLS_H

#include "body/esdf_cells.h"
#include "work.h"

enum { VX__CELLS_MAX_CHUNKS = 1 << 20 /* a place is chunk << 12 | cell */ };

/* The snapshot as signed samples; min_weight 0 = 1. */
void vx__samples(struct vx_map *map, const struct vx__snapshot *s, uint32_t min_weight,
                 struct vxk_samples *out);
/* Slots of a hash table for n chunks. */
uint32_t vx__cells_slots(uint64_t n);
/* Fills a chunk table of `slots` slots (device) from n sorted keys. */
vx_err vx__cells_index(struct vx__work *w, const uint64_t *chunk_key, uint32_t n, uint64_t *keys,
                       uint32_t *index, uint32_t slots);
/* Numbers the cells of set->mask (of n_chunks): set->before and set->place (blocks of w), *n.  Waits for the
 * queue. */
vx_err vx__cells_number(struct vx__work *w, struct vxk_cells *set, uint32_t n_chunks, uint32_t *n);
/* The cells that may own sites or surface (vxk_site_cells) of the versions: blocks of w.  Waits for the
 * queue. Errors: VX_E_EXHAUSTED more than VX__CELLS_MAX_CHUNKS chunks, or no room. */
vx_err vx__site_cells(struct vx__work *w, const struct vxk_samples *samples, const uint32_t *versions,
                      uint32_t n_versions, struct vxk_cells *set, uint32_t *n);

#endif
