/*
 * esdf_outline.h - what the 64 cells of a word hold, in three masks: what lets a query decide at a glance.
 *
 * They belong to the field: a refresh makes them anew for the words that changed.  One load of 32 bytes tells
 * of 32^3 voxels whether a surface, an occupied voxel or an unknown one is to be reckoned with, cell by cell.
 */
#ifndef VXK_BODY_ESDF_OUTLINE_H
#define VXK_BODY_ESDF_OUTLINE_H

#include "esdf_world.h"

/* Begins the outlines of the words that changed, or were never made.  Element: chunk i >> 6, word i & 63. */
#define vxk_esdf_outline_args vxk_esdf_args
VXK_FN void vxk_esdf_outline(const struct vxk_esdf_args *a, uint32_t i)
{
    struct vxk_outline *o = &a->outline[i];
    const struct vxk_chunk *v;
    if (o->made == VXK_OUTLINE_MADE && !a->touched[i])
        return;
    v = vxk_esdf_chunk(a, i >> 6);
    o->unknown = v ? ~(v->word[i & 63].leaf | v->word[i & 63].tile) : ~0ull;
    o->occupied = 0;
    o->made = VXK_OUTLINE_MADE;
}

/* Adds what the dirty cells' voxels are.  Every cell with a record of a word that changed is dirty; the
 * others say what they said before.  Element: dirty cell i >> 3, its voxels with x = i & 7. */
#define vxk_esdf_outline_cells_args vxk_esdf_args
VXK_FN void vxk_esdf_outline_cells(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->cell[i >> 3], record = a->cell_records[i >> 3].self, x = i & 7, k;
    struct vxk_outline *o = &a->outline[place >> 6];
    const struct vxk_leaf *l;
    uint64_t left, bit = 1ull << (place & 63);
    int unknown, occupied = 0;
    if (record >= VXK_FREE_TILE)
        return;
    l = &a->samples.grid.leaves[record];
    left = l->active[x];
    unknown = (left | l->free[x]) != ~0ull;
    for (k = left ? vxk_leaf_rank(l, x << 6) : 0; left; left &= left - 1, k++) {
        uint32_t state = vxk_evidence(VXK_ACTIVE, a->samples.grid.values[vxk_leaf_value_index(l, k)],
                                      a->samples.occupancy);
        unknown |= state == VXK_STATE_UNKNOWN;
        occupied |= state == VXK_STATE_OCCUPIED;
    }
    if (unknown && !(vxk_relaxed64(&o->unknown) & bit))
        vxk_atomic_or64(&o->unknown, bit);
    if (occupied && !(vxk_relaxed64(&o->occupied) & bit))
        vxk_atomic_or64(&o->occupied, bit);
}

/* Ends an update: which cells have a leaf, and which words of the map hold something.  Element: chunk i >> 6,
 * word i & 63. */
#define vxk_esdf_remember_args vxk_esdf_args
VXK_FN void vxk_esdf_remember(const struct vxk_esdf_args *a, uint32_t i)
{
    const struct vxk_chunk *v = vxk_esdf_chunk(a, i >> 6);
    uint64_t near = 0;
    for (uint32_t cell = 0; cell < 64; cell++)
        near |= (uint64_t)(a->table[i << 6 | cell] != VXK_NONE) << cell;
    a->outline[i].near = near;
    a->held[i] = v && (v->word[i & 63].leaf | v->word[i & 63].tile) != 0;
}

#endif
