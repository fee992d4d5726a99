/*
 * index_voxels.h - element functions that make an index grid of coordinates, and coordinates of an index
 * grid.
 *
 * Both passes over the coordinates take runs of them: neighbours in the list are often neighbours in space,
 * and share a look-up and an atomic.
 */
#ifndef VXK_BODY_INDEX_VOXELS_H
#define VXK_BODY_INDEX_VOXELS_H

#include "index_build.h"

enum { VXK_INDEX_RUN = 8, VXK_INDEX_RANGE = 1 << 27 };

struct vxk_index_voxels {
    struct vxk_index_build b;
    const int32_t *ijk; /* [n][3] */
    uint64_t n;
    uint64_t *cells;    /* [64 (seen_mask + 1)] by slot of the chunk in `seen`; zero at the start */
    uint32_t *chunk_of; /* [seen_mask + 1] chunk number of a slot */
};

/* Slot of a key that is in `seen` for sure, or VXK_NONE where there was no room. */
VXK_FN uint32_t vxk_index_seen_slot(const struct vxk_index_build *b, uint64_t key)
{
    uint32_t i = (uint32_t)vxk_mix64(key) & b->seen_mask;
    for (uint32_t step = 0; step <= b->seen_mask; step++) {
        if (b->seen[i] == key)
            return i;
        if (b->seen[i] == VXK_NO_KEY)
            return VXK_NONE;
        i = (i + 1) & b->seen_mask;
    }
    return VXK_NONE;
}

/* Marks cells of a word of a slot, where they aren't yet. */
VXK_FN void vxk_index_mark_cells(const struct vxk_index_voxels *a, uint32_t slot, uint32_t word,
                                 uint64_t cells)
{
    uint64_t *at = &a->cells[(uint64_t)slot * 64 + word];
    if (cells & ~vxk_peek64(at))
        vxk_atomic_or64(at, cells);
}

/* Element: a run of coordinates: its chunks and cells. */
struct vxk_index_voxels_chunks_args {
    struct vxk_index_voxels op;
};
VXK_FN void vxk_index_voxels_chunks(const struct vxk_index_voxels_chunks_args *args, uint32_t i)
{
    const struct vxk_index_voxels *a = &args->op;
    uint64_t at = (uint64_t)i * VXK_INDEX_RUN, end = at + VXK_INDEX_RUN, key = VXK_NO_KEY, cells = 0;
    uint32_t slot = VXK_NONE, word = 0;
    for (end = end < a->n ? end : a->n; at < end; at++) {
        int32_t x = a->ijk[3 * at], y = a->ijk[3 * at + 1], z = a->ijk[3 * at + 2];
        uint32_t w;
        uint64_t k;
        if (!vxk_index_in_range(x >> 7, y >> 7, z >> 7)) {
            vxk_atomic_add32(&a->b.counts->n_outside, 1);
            continue;
        }
        k = vxk_key(x >> 7, y >> 7, z >> 7);
        w = vxk_word_of((uint32_t)x & 127, (uint32_t)y & 127, (uint32_t)z & 127);
        if (k != key || w != word) {
            if (slot != VXK_NONE)
                vxk_index_mark_cells(a, slot, word, cells);
            if (k != key) {
                slot = (uint32_t)vxk_mix64(k) & a->b.seen_mask;
                if (vxk_peek64(&a->b.seen[slot]) != k)
                    slot = vxk_index_add_key(&a->b, k);
            }
            key = k;
            word = w;
            cells = 0;
        }
        cells |= 1ull << vxk_cell_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
    }
    if (slot != VXK_NONE)
        vxk_index_mark_cells(a, slot, word, cells);
}

/* Element: a word of the result. */
struct vxk_index_voxels_words_args {
    struct vxk_index_voxels op;
};
VXK_FN void vxk_index_voxels_words(const struct vxk_index_voxels_words_args *args, uint32_t i)
{
    const struct vxk_index_voxels *a = &args->op;
    uint32_t slot = vxk_index_seen_slot(&a->b, a->b.keys[i >> 6]);
    if ((i & 63) == 0)
        a->chunk_of[slot] = i >> 6;
    vxk_index_set_cells(&a->b, i, a->cells[(uint64_t)slot * 64 + (i & 63)]);
}

/* Element: a run of coordinates: their bits into the leaves' masks, which are zero at the start. */
struct vxk_index_voxels_leaves_args {
    struct vxk_index_voxels op;
};
VXK_FN void vxk_index_voxels_leaves(const struct vxk_index_voxels_leaves_args *args, uint32_t i)
{
    const struct vxk_index_voxels *a = &args->op;
    uint64_t at = (uint64_t)i * VXK_INDEX_RUN, end = at + VXK_INDEX_RUN, key = VXK_NO_KEY, bits = 0, row = 0;
    uint32_t chunk = VXK_NONE, place = VXK_NONE, leaf = 0;
    if (!a->b.counts->made_leaves || a->b.counts->n_outside)
        return;
    for (end = end < a->n ? end : a->n; at < end; at++) {
        int32_t x = a->ijk[3 * at], y = a->ijk[3 * at + 1], z = a->ijk[3 * at + 2];
        uint64_t k = vxk_key(x >> 7, y >> 7, z >> 7);
        uint32_t p = vxk_word_of((uint32_t)x & 127, (uint32_t)y & 127, (uint32_t)z & 127) << 6 |
                     vxk_cell_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
        if (k != key || p != place || (row & 7) != ((uint64_t)(uint32_t)x & 7)) {
            if (bits)
                vxk_atomic_or64(&a->b.masks[row], bits);
            bits = 0;
            if (k != key)
                chunk = a->chunk_of[vxk_index_seen_slot(&a->b, k)];
            if (k != key || p != place) {
                const struct vxk_index_word *w = &a->b.words[(uint64_t)chunk * 64 + (p >> 6)];
                leaf = w->first + vxk_popc64(w->mask & ((1ull << (p & 63)) - 1));
            }
            key = k;
            place = p;
            row = (uint64_t)leaf * 8 + ((uint32_t)x & 7);
        }
        bits |= 1ull << (((uint32_t)y & 7) << 3 | ((uint32_t)z & 7));
    }
    if (bits)
        vxk_atomic_or64(&a->b.masks[row], bits);
}

/* Element: a leaf of the result: what goes with its masks. */
struct vxk_index_voxels_end_args {
    struct vxk_index_voxels op;
};
VXK_FN void vxk_index_voxels_end(const struct vxk_index_voxels_end_args *args, uint32_t i)
{
    uint64_t mask[8];
    for (uint32_t x = 0; x < 8; x++)
        mask[x] = args->op.b.masks[(uint64_t)i * 8 + x];
    vxk_index_put(&args->op.b, i, mask);
}

/* Element: a leaf: the coordinates of its voxels with a number in [from, to). */
struct vxk_index_coordinates_args {
    struct vxk_index_grid g;
    uint64_t from, to;
    int32_t *ijk; /* [to - from][3] */
};
VXK_FN void vxk_index_coordinates(const struct vxk_index_coordinates_args *a, uint32_t i)
{
    uint64_t v = vxk_index_first(&a->g, i);
    int32_t x, y, z;
    if (v >= a->to || v + vxk_index_count(&a->g, i) <= a->from)
        return;
    vxk_index_origin(&a->g, i, &x, &y, &z);
    for (int32_t s = 0; s < 8; s++)
        for (uint64_t m = a->g.masks[(uint64_t)i * 8 + (uint32_t)s]; m; m &= m - 1, v++) {
            int32_t n = (int32_t)vxk_ctz64(m);
            if (v < a->from || v >= a->to)
                continue;
            a->ijk[3 * (v - a->from)] = x + s;
            a->ijk[3 * (v - a->from) + 1] = y + (n >> 3);
            a->ijk[3 * (v - a->from) + 2] = z + (n & 7);
        }
}

#endif
