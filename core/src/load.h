/*
 * load.h - fills a new map from leaves in host memory (internal to core).
 *
 * Chunk by chunk: vx__loader_begin, then leaves and tiles in any order, until the next vx__loader_begin. Full
 * batches go to the device as they come; nothing is visible before vx__loader_publish, which makes all of it
 * the map's first epoch.  The map must be empty and unknown to anybody else; after an error it can only be
 * destroyed, which gives every page back.  The map's limit and the device's cap hold; the frame budget is for
 * frames and does not.
 */
#ifndef VX__LOAD_H
#define VX__LOAD_H

#include "map_internal.h"

struct vx__loader;

/* *out: destroy with vx__loader_destroy.  Errors: VX_E_NOMEM. */
vx_err vx__loader_create(struct vx_map *map, struct vx__loader **out, struct vx_detail *detail);
void vx__loader_destroy(struct vx__loader *loader);

/*
 * Begins chunk `at` (chunk coordinates); no chunk may come twice.
 * Errors (of the two below too): VX_E_EXHAUSTED limit or cap; VX_E_NOMEM; VX_E_DEVICE.
 */
vx_err vx__loader_begin(struct vx__loader *loader, const int32_t at[3], struct vx_detail *detail);
/*
 * A cell with active or free voxels; it becomes a leaf, or a tile when all of it is free.  place: word << 6 |
 * cell.  active, free_mask: [8] masks.  values: one for each active voxel, in voxel order; may be NULL when
 * there is none. Errors: VX_E_INVALID the cell came before, a voxel is active and free, or neither mask has a
 * bit.
 */
vx_err vx__loader_leaf(struct vx__loader *loader, uint32_t place, const uint64_t active[8],
                       const uint64_t free_mask[8], const uint32_t *values, struct vx_detail *detail);
/* Colours and labels of the leaf that came last, one for each active voxel; without this, and where the map
 * has no such channel, there are none.  Either may be NULL. */
void vx__loader_channels(struct vx__loader *loader, const uint32_t *colours, const uint16_t *labels);
/* Free tiles of a word, a bit a cell.  Errors: VX_E_INVALID a cell came before. */
vx_err vx__loader_tiles(struct vx__loader *loader, uint32_t word, uint64_t cells, struct vx_detail *detail);
/* Ends the last chunk and publishes epoch 1. */
vx_err vx__loader_publish(struct vx__loader *loader, struct vx_detail *detail);

#endif
