/*
 * index_build.h - how an index grid is made: what all operators share.
 *
 * 1. An operator adds the keys of the chunks of its result (vxk_index_add_key), each at most once.
 * 2. index_rank puts them in order and fills the table.
 * 3. The operator sets the words' masks (vxk_index_add_cells counts the leaves of each chunk).
 * 4. index_scan_leaves, index_expand: leaves get numbers and places.
 * 5. The operator makes each leaf's masks (vxk_index_put).
 * 6. index_number, index_scan_voxels: voxels get numbers.
 *
 * The arguments of 1, 3 and 5 begin with the struct vxk_index_build and are the same for all three.
 *
 * Between 2 and 6 the host knows bounds only; numbers stay on the device.  What has no room is counted and
 * not written: the host sees it in `counts` and starts again with more.
 */
#ifndef VXK_BODY_INDEX_BUILD_H
#define VXK_BODY_INDEX_BUILD_H

#include "index_grid.h"

struct vxk_index_counts {
    uint32_t n_chunks;  /* found, also beyond the room */
    uint32_t n_outside; /* coordinates or chunks beyond the range */
    uint64_t n_leaves;  /* found, also beyond the room */
    uint64_t n_voxels;
    uint32_t made_chunks; /* what steps 4 to 6 work on: 0 where something had no room */
    uint32_t made_leaves;
    uint32_t reserved[8];
};

/* A grid in the making.  Zero at the start: counts, seen, chunk_leaf, slots, words. */
struct vxk_index_build {
    struct vxk_index_counts *counts;
    uint64_t *seen;       /* [seen_mask + 1] table of the keys found */
    uint64_t *found;      /* [chunk_room] the keys, in any order */
    uint32_t *chunk_leaf; /* [chunk_room + 1] leaves of the chunk, then leaves before it */
    uint32_t seen_mask, slot_mask, chunk_room, leaf_room;
    struct vxk_index_slot *slots;
    uint64_t *keys;
    struct vxk_index_word *words;
    uint64_t *chunk_voxel; /* [chunk_room + 1] */
    uint64_t *masks;
    uint64_t *prefix;
    uint32_t *first;
    uint32_t *place;
};

/* Slot of `key` in `seen`; the key is added when it is new.  VXK_NONE when there is no room.  (Keys alone are
 * shared here, so nothing needs the order that vxk_hash_insert keeps.) */
VXK_FN uint32_t vxk_index_add_key(const struct vxk_index_build *b, uint64_t key)
{
    uint32_t slot = (uint32_t)vxk_mix64(key) & b->seen_mask, at;
    for (uint32_t step = 0; step <= b->seen_mask; step++) {
        uint64_t k = vxk_relaxed64(&b->seen[slot]);
        if (k == key)
            return slot;
        if ((k == VXK_NO_KEY || step % 16 == 15) && vxk_relaxed32(&b->counts->n_chunks) > b->chunk_room)
            return VXK_NONE; /* a full table isn't searched to its end by everybody */
        if (k == VXK_NO_KEY) {
            k = vxk_atomic_cas64(&b->seen[slot], VXK_NO_KEY, key);
            if (k == VXK_NO_KEY) {
                at = vxk_atomic_add32(&b->counts->n_chunks, 1);
                if (at < b->chunk_room)
                    b->found[at] = key;
                return slot;
            }
        }
        if (k == key)
            return slot;
        slot = (slot + 1) & b->seen_mask;
    }
    return VXK_NONE; /* the table is full: of twice the room */
}

/* The same for chunk coordinates, which may be beyond the range: those are left out. */
VXK_FN void vxk_index_add_chunk(const struct vxk_index_build *b, int32_t x, int32_t y, int32_t z)
{
    if (vxk_index_in_range(x, y, z))
        vxk_index_add_key(b, vxk_key(x, y, z));
}

/* Number of chunk `key` in the grid in the making, or VXK_NONE. */
VXK_FN uint32_t vxk_index_made_chunk(const struct vxk_index_build *b, uint64_t key)
{
    uint32_t i = vxk_index_slot_of(b->slots, b->slot_mask, key);
    return b->slots[i].key == key ? b->slots[i].chunk : VXK_NONE;
}

/* Adds the cells of `mask` to a word; others may add to it too. */
VXK_FN void vxk_index_add_cells(const struct vxk_index_build *b, uint32_t chunk, uint32_t word, uint64_t mask)
{
    uint64_t *at = &b->words[(uint64_t)chunk * 64 + word].mask;
    mask &= ~vxk_atomic_or64(at, mask);
    if (mask)
        vxk_atomic_add32(&b->chunk_leaf[chunk], vxk_popc64(mask));
}

/* Sets a word that nobody else writes. */
VXK_FN void vxk_index_set_cells(const struct vxk_index_build *b, uint32_t i, uint64_t mask)
{
    b->words[i].mask = mask;
    if (mask)
        vxk_atomic_add32(&b->chunk_leaf[i >> 6], vxk_popc64(mask));
}

/* Writes a leaf: its masks, their prefix sums, and its number of voxels for step 6. */
VXK_FN void vxk_index_put(const struct vxk_index_build *b, uint32_t leaf, const uint64_t mask[8])
{
    uint64_t prefix = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < 8; i++) {
        if (i)
            prefix |= (uint64_t)n << (9 * (i - 1));
        n += vxk_popc64(mask[i]);
        b->masks[(uint64_t)leaf * 8 + i] = mask[i];
    }
    b->prefix[leaf] = prefix;
    b->first[leaf] = n;
}

/* Cells of a chunk: 0..15 on each axis, from and to (word, cell). */
VXK_FN void vxk_index_cell_xyz(uint32_t place, int32_t *x, int32_t *y, int32_t *z)
{
    *x = (int32_t)((place >> 10 & 3) << 2 | (place >> 4 & 3));
    *y = (int32_t)((place >> 8 & 3) << 2 | (place >> 2 & 3));
    *z = (int32_t)((place >> 6 & 3) << 2 | (place & 3));
}
VXK_FN uint32_t vxk_index_cell_place(uint32_t x, uint32_t y, uint32_t z)
{
    return (x >> 2) << 10 | (y >> 2) << 8 | (z >> 2) << 6 | (x & 3) << 4 | (y & 3) << 2 | (z & 3);
}

/* Element: 16 bytes of up to four regions, which become zero. */
struct vxk_index_clear_args {
    uint64_t *at[4];
    uint32_t n[4]; /* units of 16 bytes */
};
VXK_FN void vxk_index_clear(const struct vxk_index_clear_args *a, uint32_t i)
{
    for (uint32_t k = 0; k < 4; k++) {
        if (i < a->n[k]) {
            a->at[k][2 * (uint64_t)i] = 0;
            a->at[k][2 * (uint64_t)i + 1] = 0;
            return;
        }
        i -= a->n[k];
    }
}

/* Element: a key found: its place in the order, and into the table.  in_order: `found` is sorted already. */
struct vxk_index_rank_args {
    struct vxk_index_build b;
    uint32_t in_order;
};
VXK_FN void vxk_index_rank_put(const struct vxk_index_build *b, uint64_t key, uint32_t rank)
{
    uint32_t at = (uint32_t)vxk_mix64(key) & b->slot_mask;
    while (vxk_atomic_cas64(&b->slots[at].key, VXK_NO_KEY, key) != VXK_NO_KEY)
        at = (at + 1) & b->slot_mask;
    b->slots[at].chunk = rank;
    b->keys[rank] = key;
}
VXK_FN void vxk_index_rank(const struct vxk_index_rank_args *a, uint32_t i)
{
    uint32_t n = vxk_minu(a->b.counts->n_chunks, a->b.chunk_room), rank = 0;
    uint64_t key = a->b.found[i];
    if (a->in_order)
        rank = i;
    else
        for (uint32_t k = 0; k < n; k++)
            rank += a->b.found[k] < key;
    vxk_index_rank_put(&a->b, key, rank);
}

/* One element: leaves of each chunk to leaves before it; whether all has room. */
struct vxk_index_scan_leaves_args {
    struct vxk_index_build b;
};
VXK_FN void vxk_index_scan_end(const struct vxk_index_build *b, uint64_t n_leaves)
{
    struct vxk_index_counts *c = b->counts;
    int room = c->n_chunks <= b->chunk_room && n_leaves <= b->leaf_room;
    c->n_leaves = n_leaves;
    c->made_chunks = room ? c->n_chunks : 0;
    c->made_leaves = room ? (uint32_t)n_leaves : 0;
}
VXK_FN void vxk_index_scan_leaves(const struct vxk_index_scan_leaves_args *a, uint32_t i)
{
    const struct vxk_index_build *b = &a->b;
    uint32_t n = vxk_minu(b->counts->n_chunks, b->chunk_room);
    uint64_t before = 0;
    (void)i;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t own = b->chunk_leaf[c];
        b->chunk_leaf[c] = (uint32_t)before;
        before += own;
    }
    b->chunk_leaf[n] = (uint32_t)before;
    vxk_index_scan_end(b, before);
}

/* Element: a chunk: first leaf of its words, place of its leaves. */
struct vxk_index_expand_args {
    struct vxk_index_build b;
};
VXK_FN void vxk_index_expand(const struct vxk_index_expand_args *a, uint32_t c)
{
    uint32_t at = a->b.chunk_leaf[c];
    for (uint32_t w = 0; w < 64; w++) {
        struct vxk_index_word *word = &a->b.words[(uint64_t)c * 64 + w];
        word->first = at;
        for (uint64_t m = word->mask; m; m &= m - 1)
            a->b.place[at++] = c << 12 | w << 6 | vxk_ctz64(m);
    }
}

/* Element: a chunk: voxels before each of its words and leaves; its own number for the scan. */
struct vxk_index_number_args {
    struct vxk_index_build b;
};
VXK_FN void vxk_index_number(const struct vxk_index_number_args *a, uint32_t c)
{
    uint32_t leaf = a->b.chunk_leaf[c], before = 0;
    for (uint32_t w = 0; w < 64; w++) {
        struct vxk_index_word *word = &a->b.words[(uint64_t)c * 64 + w];
        word->before = before;
        for (uint32_t end = leaf + vxk_popc64(word->mask); leaf < end; leaf++) {
            uint32_t own = a->b.first[leaf];
            a->b.first[leaf] = before;
            before += own;
        }
    }
    a->b.chunk_voxel[c] = before;
}

/* One element: voxels of each chunk to voxels before it. */
struct vxk_index_scan_voxels_args {
    struct vxk_index_build b;
};
VXK_FN void vxk_index_scan_voxels(const struct vxk_index_scan_voxels_args *a, uint32_t i)
{
    uint32_t n = a->b.counts->made_chunks;
    uint64_t before = 0;
    (void)i;
    for (uint32_t c = 0; c < n; c++) {
        uint64_t own = a->b.chunk_voxel[c];
        a->b.chunk_voxel[c] = before;
        before += own;
    }
    a->b.chunk_voxel[n] = before;
    a->b.counts->n_voxels = before;
}

#endif
