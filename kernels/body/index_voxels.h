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

/* Slot of the chunk `key`, added where it is new; VXK_NONE where there is no room.  Most keys are there. */
VXK_FN uint32_t vxk_index_find_slot(const struct vxk_index_build *b, uint64_t key)
{
    uint32_t slot = (uint32_t)vxk_mix64(key) & b->seen_mask;
    for (uint32_t step = 0; step < 4; step++) {
        uint64_t k = vxk_peek64(&b->seen[slot]);
        if (k == key)
            return slot;
        if (k == VXK_NO_KEY)
            break;
        slot = (slot + 1) & b->seen_mask;
    }
    return vxk_index_add_key(b, key);
}

/* Where among n coordinates (at most VXK_INDEX_RUN) one lies in another leaf, or with `rows` in another slice
 * of a leaf, than the one before it, as bits; bit 0 is set. */
VXK_FN uint32_t vxk_index_starts(const int32_t *ijk, uint32_t n, int32_t rows)
{
    uint32_t starts = 1;
    for (uint32_t i = 1; i < VXK_INDEX_RUN; i++) {
        const int32_t *at = ijk + 3 * i;
        if (i < n && ((at[0] ^ at[-3]) >> (rows ? 0 : 3) | ((at[1] ^ at[-2]) | (at[2] ^ at[-1])) >> 3))
            starts |= 1u << i;
    }
    return starts;
}

/* The chunks and cells of n > 0 coordinates: one step for each leaf. */
VXK_FN void vxk_index_mark_run(const struct vxk_index_voxels *a, const int32_t *ijk, uint32_t n)
{
    uint64_t key = VXK_NO_KEY;
    uint32_t slot = VXK_NONE;
    for (uint32_t left = vxk_index_starts(ijk, n, 0); left; left &= left - 1) {
        const int32_t *at = ijk + 3 * vxk_ctz32(left);
        int32_t x = at[0], y = at[1], z = at[2];
        uint64_t k = vxk_key(x >> 7, y >> 7, z >> 7);
        if (!vxk_index_in_range(x >> 7, y >> 7, z >> 7)) {
            vxk_atomic_add32(&a->b.counts->n_outside, 1);
            continue;
        }
        if (k != key)
            slot = vxk_index_find_slot(&a->b, k);
        key = k;
        if (slot != VXK_NONE)
            vxk_index_mark_cells(a, slot,
                                 vxk_word_of((uint32_t)x & 127, (uint32_t)y & 127, (uint32_t)z & 127),
                                 1ull << vxk_cell_of((uint32_t)x, (uint32_t)y, (uint32_t)z));
    }
}
/* Number of coordinates of run i. */
VXK_FN uint32_t vxk_index_run(const struct vxk_index_voxels *a, uint32_t i)
{
    uint64_t left = a->n - (uint64_t)i * VXK_INDEX_RUN;
    return left < VXK_INDEX_RUN ? (uint32_t)left : VXK_INDEX_RUN;
}

/* Element: a run of coordinates: its chunks and cells. */
struct vxk_index_voxels_chunks_args {
    struct vxk_index_voxels op;
};
VXK_FN void vxk_index_voxels_chunks(const struct vxk_index_voxels_chunks_args *args, uint32_t i)
{
    vxk_index_mark_run(&args->op, args->op.ijk + 3 * (uint64_t)i * VXK_INDEX_RUN,
                       vxk_index_run(&args->op, i));
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

/* The bits of n > 0 coordinates into the leaves' masks: one step for each slice of a leaf. */
VXK_FN void vxk_index_set_run(const struct vxk_index_voxels *a, const int32_t *ijk, uint32_t n)
{
    uint64_t key = VXK_NO_KEY;
    uint32_t chunk = 0, starts = vxk_index_starts(ijk, n, 1);
    for (uint32_t left = starts; left; left &= left - 1) {
        uint32_t i = vxk_ctz32(left), cell;
        uint64_t bits = 0, k;
        const int32_t *at = ijk + 3 * i;
        uint32_t x = (uint32_t)at[0], y = (uint32_t)at[1], z = (uint32_t)at[2];
        const struct vxk_index_word *in;
        do {
            bits |= 1ull << (((uint32_t)ijk[3 * i + 1] & 7) << 3 | ((uint32_t)ijk[3 * i + 2] & 7));
            i++;
        } while (i < n && !(starts >> i & 1));
        k = vxk_key((int32_t)x >> 7, (int32_t)y >> 7, (int32_t)z >> 7);
        if (k != key)
            chunk = a->chunk_of[vxk_index_seen_slot(&a->b, k)];
        key = k;
        in = &a->b.words[(uint64_t)chunk * 64 + vxk_word_of(x & 127, y & 127, z & 127)];
        cell = vxk_cell_of(x, y, z);
        vxk_atomic_or64(
            &a->b.masks[((uint64_t)in->first + vxk_popc64(in->mask & ((1ull << cell) - 1))) * 8 + (x & 7)],
            bits);
    }
}

/* Element: a run of coordinates: their bits into the leaves' masks, which are zero at the start. */
struct vxk_index_voxels_leaves_args {
    struct vxk_index_voxels op;
};
VXK_FN void vxk_index_voxels_leaves(const struct vxk_index_voxels_leaves_args *args, uint32_t i)
{
    if (args->op.b.counts->made_leaves && !args->op.b.counts->n_outside)
        vxk_index_set_run(&args->op, args->op.ijk + 3 * (uint64_t)i * VXK_INDEX_RUN,
                          vxk_index_run(&args->op, i));
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
