/*
 * grid.h - the map's data in device memory and how to read it.
 *
 * chunk   128^3 voxels.  Key = voxel coordinate >> 7 on each axis, packed 3 x 21 bits (vxk_key).
 * word    32^3 voxels, the sub-block: the unit of copy-on-write.  64 a chunk, number w = (X << 4 | Y << 2 |
 * Z) with X, Y, Z = 0..3 the sub-block's place in the chunk. cell    8^3 voxels.  64 a word, bit b = (x << 4
 * | y << 2 | z), x, y, z = 0..3 the cell's place in the word. A cell is unknown (neither mask), a free tile
 * (tile bit), or has a leaf record (leaf bit). leaf    record of a cell with active voxels, or of one that is
 * seen in part only (no active voxel, some free). Voxel number n = x << 6 | y << 3 | z (NanoVDB's order):
 * word x of a mask, bit y << 3 | z. page    leaf records and values live in fixed pages: 8 records or 256
 * values.  The r-th leaf of a word (r = rank of its bit) is record r & 7 of page word.page[r >> 3].  The
 * values of a word's active voxels are one running array in leaf order, cut into pages; leaf.page[] names the
 * (at most three) pages that a leaf's values are on and leaf.first its first value's place on page[0].
 * channel what a map with colour or labels keeps beside a value: value i has its colour in colours[i], its
 * label in labels[i].  A page of such a map's pool is these three pieces under one id, so that channels come,
 * stay and go with the values; the values of a map without channels are pages of a pool of their own.
 *
 * Every chunk version is immutable once its epoch is published.  `head` of the table is the newest version of
 * a chunk; older ones hang behind it by `prev`, so that a reader that pinned epoch E takes the first with
 * epoch <= E.
 */
#ifndef VXK_BODY_GRID_H
#define VXK_BODY_GRID_H

#include "../dev.h"

enum { VXK_LEAVES_A_PAGE = 8, VXK_VALUES_A_PAGE = 256, VXK_KEY_BIAS = 1 << 20 };
#define VXK_NO_KEY 0ull /* empty slot of a hash table; real keys have bit 63 set */

struct vxk_word {           /* 64 bytes: one cache line */
    uint64_t leaf;          /* cells that have a leaf record */
    uint64_t tile;          /* cells that are free as a whole; disjoint from leaf */
    uint32_t page[8];       /* leaf pages, VXK_NONE where unused */
    uint32_t n_active;      /* active voxels = values */
    uint32_t changed_epoch; /* epoch in which a mask or value last changed */
    uint32_t tick;          /* of the map's decay up to which its values have faded; 0: they never do */
    uint32_t seen;          /* tick in which a frame last said something here, less than 16 too early */
};

struct vxk_chunk { /* 4160 bytes */
    uint64_t key;
    uint32_t epoch;    /* in which this version was published */
    uint32_t prev;     /* older version or VXK_NONE; only followed by readers of an epoch before this one */
    uint32_t n_leaf;   /* leaf records, all words */
    uint32_t n_active; /* active voxels, all words */
    uint32_t n_tile;   /* free tiles */
    uint32_t reserved[9];
    struct vxk_word word[64];
};

struct vxk_leaf {       /* 152 bytes */
    uint64_t active[8]; /* has a value */
    uint64_t free[8];   /* was seen empty; disjoint from active */
    uint64_t prefix;    /* active voxels before mask word i (i = 1..7): 9 bits at 9 (i - 1) */
    uint32_t page[3];   /* value pages, VXK_NONE where unused */
    uint16_t first;     /* place of the first value on page[0], 0..255 */
    uint16_t n_active;  /* 0..512 */
};

/* What a kernel gets to read a map: bases of the device's arrays, the map's table, the pinned epoch. */
struct vxk_grid {
    const uint64_t *keys;  /* [slots] open addressing, VXK_NO_KEY = empty */
    const uint32_t *heads; /* [slots] newest version */
    uint32_t slot_mask;    /* slots - 1; slots is a power of two */
    uint32_t epoch;        /* readers see versions up to this one */
    const struct vxk_chunk *chunks;
    const struct vxk_leaf *leaves; /* page p = leaves[8 p ..] */
    const uint32_t *values;        /* page p = values[256 p ..]; TSDF: vxk_tsdf_* below */
    const uint32_t *colours;       /* beside the values, vxk_colour_*; NULL: the map has none */
    const uint16_t *labels;        /* likewise, vxk_label_* */
};

VXK_FN uint64_t vxk_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Chunk coordinates, each in [-2^20, 2^20), to key; ascending keys are ascending (x, y, z). */
VXK_FN uint64_t vxk_key(int32_t x, int32_t y, int32_t z)
{
    return 1ull << 63 | (uint64_t)(uint32_t)(x + VXK_KEY_BIAS) << 42 |
           (uint64_t)(uint32_t)(y + VXK_KEY_BIAS) << 21 | (uint64_t)(uint32_t)(z + VXK_KEY_BIAS);
}
VXK_FN void vxk_key_xyz(uint64_t key, int32_t *x, int32_t *y, int32_t *z)
{
    *x = (int32_t)(key >> 42 & 0x1fffff) - VXK_KEY_BIAS;
    *y = (int32_t)(key >> 21 & 0x1fffff) - VXK_KEY_BIAS;
    *z = (int32_t)(key & 0x1fffff) - VXK_KEY_BIAS;
}

/* Slot of `key` or VXK_NONE. */
VXK_FN uint32_t vxk_hash_find(const uint64_t *keys, uint32_t slot_mask, uint64_t key)
{
    uint32_t i = (uint32_t)vxk_mix64(key) & slot_mask;
    for (uint32_t step = 0; step <= slot_mask; step++) {
        uint64_t k = vxk_load64(&keys[i]); /* a writer may be adding keys of a newer epoch */
        if (k == key)
            return i;
        if (k == VXK_NO_KEY)
            return VXK_NONE;
        i = (i + 1) & slot_mask;
    }
    return VXK_NONE;
}

/* The same for a table that nobody changes in this launch. */
VXK_FN uint32_t vxk_hash_find_still(const uint64_t *keys, uint32_t slot_mask, uint64_t key)
{
    uint32_t i = (uint32_t)vxk_mix64(key) & slot_mask;
    for (uint32_t step = 0; step <= slot_mask; step++) {
        if (keys[i] == key)
            return i;
        if (keys[i] == VXK_NO_KEY)
            return VXK_NONE;
        i = (i + 1) & slot_mask;
    }
    return VXK_NONE;
}

/* Slot of `key`, inserted when missing (*inserted = 1); VXK_NONE when the table is full.  Any number of
 * elements may insert at once. */
VXK_FN uint32_t vxk_hash_insert(uint64_t *keys, uint32_t slot_mask, uint64_t key, int *inserted)
{
    uint32_t i = (uint32_t)vxk_mix64(key) & slot_mask;
    *inserted = 0;
    for (uint32_t step = 0; step <= slot_mask; step++) {
        uint64_t k = vxk_load64(&keys[i]);
        if (k == key)
            return i;
        if (k == VXK_NO_KEY) {
            k = vxk_atomic_cas64(&keys[i], VXK_NO_KEY, key);
            if (k == VXK_NO_KEY) {
                *inserted = 1;
                return i;
            }
            if (k == key)
                return i;
        }
        i = (i + 1) & slot_mask;
    }
    return VXK_NONE;
}

/* The version of chunk `key` that the pinned epoch sees, or NULL. */
VXK_FN const struct vxk_chunk *vxk_find_chunk(const struct vxk_grid *g, uint64_t key)
{
    uint32_t slot = vxk_hash_find(g->keys, g->slot_mask, key), v;
    if (slot == VXK_NONE)
        return (const struct vxk_chunk *)0;
    v = vxk_load32(&g->heads[slot]);
    while (v != VXK_NONE && g->chunks[v].epoch > g->epoch)
        v = g->chunks[v].prev;
    return v == VXK_NONE ? (const struct vxk_chunk *)0 : &g->chunks[v];
}

/* Place of a voxel (0..127 on each axis) in its chunk. */
VXK_FN uint32_t vxk_word_of(uint32_t x, uint32_t y, uint32_t z)
{
    return x >> 5 << 4 | y >> 5 << 2 | z >> 5;
}
VXK_FN uint32_t vxk_cell_of(uint32_t x, uint32_t y, uint32_t z)
{
    return (x >> 3 & 3) << 4 | (y >> 3 & 3) << 2 | (z >> 3 & 3);
}
VXK_FN uint32_t vxk_voxel_of(uint32_t x, uint32_t y, uint32_t z)
{
    return (x & 7) << 6 | (y & 7) << 3 | (z & 7);
}
/* First voxel (0..120) of a cell in its chunk. */
VXK_FN void vxk_cell_base(uint32_t w, uint32_t cell, uint32_t *x, uint32_t *y, uint32_t *z)
{
    *x = (w >> 4) << 5 | (cell >> 4) << 3;
    *y = (w >> 2 & 3) << 5 | (cell >> 2 & 3) << 3;
    *z = (w & 3) << 5 | (cell & 3) << 3;
}

/* Record of a cell whose leaf bit is set. */
VXK_FN const struct vxk_leaf *vxk_leaf_at(const struct vxk_grid *g, const struct vxk_word *w, uint32_t cell)
{
    uint32_t r = vxk_popc64(w->leaf & ((1ull << cell) - 1));
    return &g->leaves[(uint64_t)w->page[r >> 3] * VXK_LEAVES_A_PAGE + (r & 7)];
}

/* Place among its leaf's values of active voxel n. */
VXK_FN uint32_t vxk_leaf_rank(const struct vxk_leaf *l, uint32_t n)
{
    uint32_t i = n >> 6, before = i ? (uint32_t)(l->prefix >> (9 * (i - 1)) & 511) : 0;
    return before + vxk_popc64(l->active[i] & ((1ull << (n & 63)) - 1));
}
/* Index into grid.values of the leaf's k-th value. */
VXK_FN uint64_t vxk_leaf_value_index(const struct vxk_leaf *l, uint32_t k)
{
    uint32_t at = l->first + k;
    return (uint64_t)l->page[at >> 8] * VXK_VALUES_A_PAGE + (at & 255);
}

/* Evidence at a voxel. */
enum { VXK_UNKNOWN = 0, VXK_FREE = 1, VXK_ACTIVE = 2 };
/* State of voxel (x, y, z in 0..127) of a chunk version (NULL = unknown); VXK_ACTIVE also gives its value. */
VXK_FN int vxk_chunk_voxel(const struct vxk_grid *g, const struct vxk_chunk *c, uint32_t x, uint32_t y,
                           uint32_t z, uint32_t *value)
{
    const struct vxk_word *w;
    const struct vxk_leaf *l;
    uint32_t cell, n;
    if (!c)
        return VXK_UNKNOWN;
    w = &c->word[vxk_word_of(x, y, z)];
    cell = vxk_cell_of(x, y, z);
    if (w->tile >> cell & 1)
        return VXK_FREE;
    if (!(w->leaf >> cell & 1))
        return VXK_UNKNOWN;
    l = vxk_leaf_at(g, w, cell);
    n = vxk_voxel_of(x, y, z);
    if (l->active[n >> 6] >> (n & 63) & 1) {
        *value = g->values[vxk_leaf_value_index(l, vxk_leaf_rank(l, n))];
        return VXK_ACTIVE;
    }
    return l->free[n >> 6] >> (n & 63) & 1 ? VXK_FREE : VXK_UNKNOWN;
}
/* The same from voxel coordinates of the map, each in [-2^27, 2^27). */
VXK_FN int vxk_voxel(const struct vxk_grid *g, int32_t x, int32_t y, int32_t z, uint32_t *value)
{
    return vxk_chunk_voxel(g, vxk_find_chunk(g, vxk_key(x >> 7, y >> 7, z >> 7)), (uint32_t)x & 127,
                           (uint32_t)y & 127, (uint32_t)z & 127, value);
}

/* TSDF value: signed distance in units of tau_max / 32767 in the low 16 bits, weight in the next 8, and in
 * the top 8 how surely the voxel lies in front of a surface (frame_update.h). */
VXK_FN int32_t vxk_tsdf_distance(uint32_t v)
{
    return (int32_t)(int16_t)(uint16_t)(v & 0xffff);
}
VXK_FN uint32_t vxk_tsdf_weight(uint32_t v)
{
    return v >> 16 & 255;
}
VXK_FN uint32_t vxk_tsdf_front(uint32_t v)
{
    return v >> 24;
}
VXK_FN uint32_t vxk_tsdf_pack(int32_t t, uint32_t w)
{
    return (uint32_t)(uint16_t)(int16_t)t | w << 16;
}

/* Colour: red, green, blue in steps of half a level (0 .. 510), 9 bits each from bit 0, weight 0 .. 31 in
 * bits 27 .. 31; 0 = none yet. */
VXK_FN uint32_t vxk_colour_part(uint32_t c, uint32_t k)
{
    return c >> (9 * k) & 511;
}
VXK_FN uint32_t vxk_colour_weight(uint32_t c)
{
    return c >> 27;
}
/* Label in the low byte (0 = none), its confidence in the high one. */
VXK_FN uint32_t vxk_label_of(uint32_t l)
{
    return l & 255;
}
VXK_FN uint32_t vxk_label_trust(uint32_t l)
{
    return l >> 8;
}

#endif
