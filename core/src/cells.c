/* cells.c - sets of numbered cells on the device. */
#include "cells.h"

#include "vxk.h"

#include <string.h>

void vx__samples(struct vx_map *map, const struct vx__snapshot *s, uint32_t min_weight,
                 struct vxk_samples *out)
{
    out->grid = s->grid;
    out->min_weight = min_weight ? min_weight : 1;
    out->occupancy = vx__map_params(map)->mode == VX_OCCUPANCY;
}

uint32_t vx__cells_slots(uint64_t n)
{
    uint64_t slots = 64;

    while (slots < 2 * n)
        slots *= 2;
    return (uint32_t)slots;
}

vx_err vx__cells_index(struct vx__work *w, const uint64_t *chunk_key, uint32_t n, uint64_t *keys,
                       uint32_t *index, uint32_t slots)
{
    struct vxk_cells_index_args a = {
        .chunk_key = chunk_key, .keys = keys, .index = index, .slot_mask = slots - 1};

    VX_TRY_RET(w->q->dev->ops->fill(w->q, keys, 0, slots * sizeof *keys));
    return VXK_LAUNCH(w->q, cells_index, &a, n);
}

vx_err vx__cells_number(struct vx__work *w, struct vxk_cells *set, uint32_t n_chunks, uint32_t *n)
{
    uint32_t words = n_chunks * 64;
    struct vxk_cells_count_args count = {.mask = set->mask};
    struct vxk_cells_list_args list = {.mask = set->mask};

    list.before = count.n = vx__work_get(w, words + 1ull, sizeof *count.n);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(w->q, cells_count, &count, words));
    VX_TRY_RET(w->q->dev->ops->scan_u32(w->q, count.n, count.n, words));
    VX_TRY_RET(vx__work_read(w, n, count.n + words, sizeof *n));
    list.place = vx__work_get(w, *n, sizeof *list.place);
    VX_TRY_RET(w->err);
    set->before = list.before;
    set->place = list.place;
    return VXK_LAUNCH(w->q, cells_list, &list, words);
}

vx_err vx__site_cells(struct vx__work *w, const struct vxk_samples *samples, const uint32_t *versions,
                      uint32_t n_versions, struct vxk_cells *set, uint32_t *n)
{
    struct vxk_site_cells_args a = {.samples = *samples, .versions = versions};
    uint32_t slots = vx__cells_slots(n_versions), *index;
    uint64_t *keys;

    memset(set, 0, sizeof *set);
    *n = 0;
    if (!n_versions)
        return VX_OK;
    if (n_versions > VX__CELLS_MAX_CHUNKS)
        return vx_fail(w->detail, VX_E_EXHAUSTED, "",
                       "the map has %u chunks; the most for a distance field or a mesh is %d", n_versions,
                       (int)VX__CELLS_MAX_CHUNKS);
    a.chunk_key = vx__work_get(w, n_versions, sizeof *a.chunk_key);
    a.mask = vx__work_get(w, n_versions * 64ull, sizeof *a.mask);
    keys = vx__work_get(w, slots, sizeof *keys);
    index = vx__work_get(w, slots, sizeof *index);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(w->q, site_cells, &a, n_versions * 64));
    VX_TRY_RET(vx__cells_index(w, a.chunk_key, n_versions, keys, index, slots));
    *set = (struct vxk_cells){
        .keys = keys, .index = index, .chunk_key = a.chunk_key, .mask = a.mask, .slot_mask = slots - 1};
    return vx__cells_number(w, set, n_versions, n);
}
