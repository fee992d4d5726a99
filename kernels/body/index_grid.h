/*
 * index_grid.h - an index grid in device memory and how it is read.
 *
 * An index grid is a set of voxels, numbered; values lie in arrays of the caller ("sidecars") at the voxels'
 * numbers. It is immutable and flat: no pages, no versions.  Chunk, word, cell, leaf and voxel number n are
 * those of grid.h; only chunks with leaves and leaves with voxels exist.
 *
 * Order: chunks by key, leaves by (chunk, word, cell), voxels by (leaf, n).  A leaf's number is its word's
 * `first` plus the rank of its bit; a voxel's number is chunk_voxel[chunk] + first[leaf] + its rank in the
 * leaf.
 *
 * Sizes: 80 bytes a leaf, 1,040 bytes a chunk, 16 bytes a slot (at least 2 slots a chunk).
 */
#ifndef VXK_BODY_INDEX_GRID_H
#define VXK_BODY_INDEX_GRID_H

#include "grid.h"

enum { VXK_INDEX_MAX_CHUNKS = 1 << 20 };
#define VXK_NO_VOXEL 0xffffffffffffffffull

struct vxk_index_word { /* 32^3 voxels */
    uint64_t mask;      /* cells that are leaves */
    uint32_t first;     /* number of the word's first leaf; where mask is 0, of the next leaf there is */
    uint32_t before;    /* voxels of the chunk in the words before this one */
};
struct vxk_index_slot { /* of the table of chunks: open addressing, key VXK_NO_KEY = empty */
    uint64_t key;
    uint32_t chunk;
    uint32_t reserved;
};

/* Passed by value in kernel arguments. */
struct vxk_index_grid {
    uint64_t n_voxels;
    uint32_t n_leaves;
    uint32_t n_chunks;  /* at most VXK_INDEX_MAX_CHUNKS */
    uint32_t slot_mask; /* slots - 1; slots is a power of two */
    uint32_t reserved;
    const struct vxk_index_slot *slots; /* [slot_mask + 1] */
    const uint64_t *keys;               /* [n_chunks] ascending */
    const struct vxk_index_word *words; /* [64 n_chunks] */
    const uint64_t *chunk_voxel;        /* [n_chunks + 1] voxels before the chunk */
    const uint64_t *masks;              /* [8 n_leaves] */
    const uint64_t *prefix; /* [n_leaves] voxels before mask word i (i = 1..7): 9 bits at 9 (i - 1) */
    const uint32_t *first;  /* [n_leaves] voxels of the chunk before the leaf */
    const uint32_t *place;  /* [n_leaves] chunk << 12 | word << 6 | cell */
};

/* Slot of `key`, or the empty one where it would go.  The table is never full. */
VXK_FN uint32_t vxk_index_slot_of(const struct vxk_index_slot *slots, uint32_t slot_mask, uint64_t key)
{
    uint32_t i = (uint32_t)vxk_mix64(key) & slot_mask;
    while (slots[i].key != key && slots[i].key != VXK_NO_KEY)
        i = (i + 1) & slot_mask;
    return i;
}

/* Number of the chunk `key` or VXK_NONE. */
VXK_FN uint32_t vxk_index_chunk(const struct vxk_index_grid *g, uint64_t key)
{
    uint32_t i;
    if (!g->n_chunks)
        return VXK_NONE;
    i = vxk_index_slot_of(g->slots, g->slot_mask, key);
    return g->slots[i].key == key ? g->slots[i].chunk : VXK_NONE;
}

/* True for chunk coordinates inside the range of voxels. */
VXK_FN int vxk_index_in_range(int32_t x, int32_t y, int32_t z)
{
    return (uint32_t)(x + VXK_KEY_BIAS) < 2u * VXK_KEY_BIAS &&
           (uint32_t)(y + VXK_KEY_BIAS) < 2u * VXK_KEY_BIAS &&
           (uint32_t)(z + VXK_KEY_BIAS) < 2u * VXK_KEY_BIAS;
}

/* Number of the chunk at chunk coordinates, also for those outside the range (which no grid has). */
VXK_FN uint32_t vxk_index_chunk_at(const struct vxk_index_grid *g, int32_t x, int32_t y, int32_t z)
{
    return vxk_index_in_range(x, y, z) ? vxk_index_chunk(g, vxk_key(x, y, z)) : VXK_NONE;
}

/* Number of the leaf at a cell of a chunk (VXK_NONE as chunk is allowed), or VXK_NONE. */
VXK_FN uint32_t vxk_index_leaf(const struct vxk_index_grid *g, uint32_t chunk, uint32_t word, uint32_t cell)
{
    const struct vxk_index_word *w;
    if (chunk == VXK_NONE)
        return VXK_NONE;
    w = &g->words[(uint64_t)chunk * 64 + word];
    return w->mask >> cell & 1 ? w->first + vxk_popc64(w->mask & ((1ull << cell) - 1)) : VXK_NONE;
}

/* Number of the leaf that holds voxel (x, y, z), or VXK_NONE. */
VXK_FN uint32_t vxk_index_leaf_at(const struct vxk_index_grid *g, int32_t x, int32_t y, int32_t z)
{
    return vxk_index_leaf(g, vxk_index_chunk_at(g, x >> 7, y >> 7, z >> 7),
                          vxk_word_of((uint32_t)x & 127, (uint32_t)y & 127, (uint32_t)z & 127),
                          vxk_cell_of((uint32_t)x, (uint32_t)y, (uint32_t)z));
}

/* First voxel of a leaf. */
VXK_FN void vxk_index_origin(const struct vxk_index_grid *g, uint32_t leaf, int32_t *x, int32_t *y,
                             int32_t *z)
{
    uint32_t place = g->place[leaf], cx, cy, cz;
    vxk_key_xyz(g->keys[place >> 12], x, y, z);
    vxk_cell_base(place >> 6 & 63, place & 63, &cx, &cy, &cz);
    *x = *x * 128 + (int32_t)cx;
    *y = *y * 128 + (int32_t)cy;
    *z = *z * 128 + (int32_t)cz;
}

/* Number of a leaf's first voxel, and how many it has. */
VXK_FN uint64_t vxk_index_first(const struct vxk_index_grid *g, uint32_t leaf)
{
    return g->chunk_voxel[g->place[leaf] >> 12] + g->first[leaf];
}
VXK_FN uint32_t vxk_index_count(const struct vxk_index_grid *g, uint32_t leaf)
{
    return (uint32_t)(g->prefix[leaf] >> 54 & 511) + vxk_popc64(g->masks[(uint64_t)leaf * 8 + 7]);
}

/* Voxels of a leaf before its mask word i (0..7). */
VXK_FN uint32_t vxk_index_before(uint64_t prefix, uint32_t i)
{
    return i ? (uint32_t)(prefix >> (9 * (i - 1)) & 511) : 0;
}

/* Number of voxel (x, y, z), or VXK_NO_VOXEL. */
VXK_FN uint64_t vxk_index_voxel(const struct vxk_index_grid *g, int32_t x, int32_t y, int32_t z)
{
    uint32_t leaf = vxk_index_leaf_at(g, x, y, z), n = vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
    uint64_t mask;
    if (leaf == VXK_NONE)
        return VXK_NO_VOXEL;
    mask = g->masks[(uint64_t)leaf * 8 + (n >> 6)];
    if (!(mask >> (n & 63) & 1))
        return VXK_NO_VOXEL;
    return vxk_index_first(g, leaf) + vxk_index_before(g->prefix[leaf], n >> 6) +
           vxk_popc64(mask & ((1ull << (n & 63)) - 1));
}

#endif
