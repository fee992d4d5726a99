/*
 * esdf_field.h - the stored distance field and how to read it.
 *
 * A leaf covers 8^3 voxels (the map's cells) and exists when some voxel of it is within R of a surface.  A
 * voxel takes 16 bits: its state in the upper 2, its distance in the lower 14 in units of 1 / (256 K) voxel,
 * VXK_ESDF_FAR = nothing within R.  Leaves are found through a table of 4096 numbers a chunk, so that one
 * that comes or goes later moves no other.  A leaf also keeps a mark of the sites that its cell owns: what an
 * update compares with, and what reaches how far (a cell with sites always has a leaf).
 */
#ifndef VXK_BODY_ESDF_FIELD_H
#define VXK_BODY_ESDF_FIELD_H

#include "grid.h"

enum {
    VXK_ESDF_FAR = 0x3fff,
    VXK_ESDF_PAGE = 1024, /* leaves a page */
    VXK_ESDF_MAX_R = 63,
    VXK_CELLS_A_CHUNK = 4096
};

/* The sites of a cell in short: a sum of hashes over all of them, and what they span (vxk_esdf_span).  Equal
 * marks are equal sites but for one chance in 2^64. */
struct vxk_esdf_mark {
    uint64_t hash;
    uint64_t span; /* 0: no sites */
};
enum { VXK_ESDF_PAGE_BYTES = VXK_ESDF_PAGE * (512 * 2 + 16 + 4) /* leaves, their marks, their places */ };

/* State of a voxel: what was seen there, never derived from its neighbours.  The values of vx_state
 * (vx/query.h). */
enum { VXK_STATE_UNKNOWN = 0, VXK_STATE_FREE = 1, VXK_STATE_OCCUPIED = 2 };

/* What the cells of a word hold, a bit each.  Of a chunk that the field does not know: near and occupied 0,
 * unknown what is no free tile. */
struct vxk_outline {   /* 32 bytes */
    uint64_t near;     /* some voxel is within R of a surface: there is a leaf */
    uint64_t unknown;  /* some voxel is unknown */
    uint64_t occupied; /* some voxel is occupied */
    uint64_t made;     /* VXK_OUTLINE_MADE, or every bit of all four is set */
};
enum { VXK_OUTLINE_MADE = 0 };

struct vxk_esdf {
    const uint64_t *keys;              /* [slot_mask + 1] chunk keys, open addressing, VXK_NO_KEY = empty */
    const uint32_t *index;             /* [slot_mask + 1] number of the slot's chunk */
    const uint32_t *table;             /* [chunks][4096] leaf number by place in the chunk, or VXK_NONE */
    uint16_t *const *pages;            /* vxk_esdf_voxels */
    const struct vxk_outline *outline; /* [chunks][64] */
    uint32_t slot_mask;
    uint32_t radius; /* R, voxels */
    uint32_t scale;  /* K: 4, 2 or 1 */
    uint32_t reserved;
};

/* Place of a cell in its chunk: word << 6 | cell, from cell coordinates (voxel >> 3; only the low 4 bits
 * count). */
VXK_FN uint32_t vxk_place(int32_t x, int32_t y, int32_t z)
{
    uint32_t X = (uint32_t)x & 15, Y = (uint32_t)y & 15, Z = (uint32_t)z & 15;
    return (X >> 2 << 4 | Y >> 2 << 2 | Z >> 2) << 6 | (X & 3) << 4 | (Y & 3) << 2 | (Z & 3);
}
VXK_FN void vxk_place_xyz(uint32_t place, int32_t *x, int32_t *y, int32_t *z)
{
    uint32_t w = place >> 6, c = place & 63;
    *x = (int32_t)((w >> 4) << 2 | c >> 4);
    *y = (int32_t)((w >> 2 & 3) << 2 | (c >> 2 & 3));
    *z = (int32_t)((w & 3) << 2 | (c & 3));
}
/* Key of the chunk that holds a cell.  False when the cell is outside the voxel range. */
VXK_FN int vxk_cell_key(int32_t x, int32_t y, int32_t z, uint64_t *key)
{
    x >>= 4;
    y >>= 4;
    z >>= 4;
    if (x < -VXK_KEY_BIAS || x >= VXK_KEY_BIAS || y < -VXK_KEY_BIAS || y >= VXK_KEY_BIAS ||
        z < -VXK_KEY_BIAS || z >= VXK_KEY_BIAS)
        return 0;
    *key = vxk_key(x, y, z);
    return 1;
}

/* K of a radius: the finest unit whose 14 bits hold 256 R K. */
VXK_FN uint32_t vxk_esdf_scale(uint32_t radius)
{
    return radius <= 15 ? 4 : radius <= 31 ? 2 : 1;
}

/* The 512 voxels of leaf n, the mark of its cell's sites, and its place (chunk << 12 | place in the chunk;
 * VXK_NONE = the number is free). */
VXK_FN uint16_t *vxk_esdf_voxels(uint16_t *const *pages, uint32_t n)
{
    return pages[n / VXK_ESDF_PAGE] + (uint64_t)(n % VXK_ESDF_PAGE) * 512;
}
VXK_FN struct vxk_esdf_mark *vxk_esdf_mark_of(uint16_t *const *pages, uint32_t n)
{
    return (struct vxk_esdf_mark *)(void *)(pages[n / VXK_ESDF_PAGE] + (uint64_t)VXK_ESDF_PAGE * 512) +
           n % VXK_ESDF_PAGE;
}
VXK_FN uint32_t *vxk_esdf_place_of(uint16_t *const *pages, uint32_t n)
{
    return (uint32_t *)(void *)(pages[n / VXK_ESDF_PAGE] + (uint64_t)VXK_ESDF_PAGE * (512 + 8)) +
           n % VXK_ESDF_PAGE;
}

/* Number of the field's chunk `key`, or VXK_NONE.  Nobody writes the table while it is asked. */
VXK_FN uint32_t vxk_esdf_find(const struct vxk_esdf *e, uint64_t key)
{
    uint32_t i = (uint32_t)vxk_mix64(key) & e->slot_mask;
    for (uint32_t step = 0; step <= e->slot_mask; step++) {
        if (e->keys[i] == key)
            return e->index[i];
        if (e->keys[i] == VXK_NO_KEY)
            return VXK_NONE;
        i = (i + 1) & e->slot_mask;
    }
    return VXK_NONE;
}
/* The 512 voxels of a cell of chunk number `chunk`, or NULL when none of them is within R. */
VXK_FN const uint16_t *vxk_esdf_leaf_of(const struct vxk_esdf *e, uint32_t chunk, int32_t x, int32_t y,
                                        int32_t z)
{
    uint32_t n =
        chunk == VXK_NONE ? VXK_NONE : e->table[(uint64_t)chunk * VXK_CELLS_A_CHUNK + vxk_place(x, y, z)];
    return n == VXK_NONE ? (const uint16_t *)0 : vxk_esdf_voxels(e->pages, n);
}
/* The same from the cell alone. */
VXK_FN const uint16_t *vxk_esdf_leaf(const struct vxk_esdf *e, int32_t x, int32_t y, int32_t z)
{
    uint64_t key;
    if (!vxk_cell_key(x, y, z, &key))
        return (const uint16_t *)0;
    return vxk_esdf_leaf_of(e, vxk_esdf_find(e, key), x, y, z);
}

/* What the evidence of a voxel says: the sign of its distance (0 counts as outside) or of its log-odds (0
 * says nothing), else whether it was seen empty.  `voxel` and `value` are those of vxk_voxel. */
VXK_FN uint32_t vxk_evidence(int voxel, uint32_t value, uint32_t occupancy)
{
    int32_t t = vxk_tsdf_distance(value);
    if (voxel != VXK_ACTIVE)
        return voxel == VXK_FREE ? VXK_STATE_FREE : VXK_STATE_UNKNOWN;
    if (occupancy)
        return t > 0 ? VXK_STATE_OCCUPIED : t < 0 ? VXK_STATE_FREE : VXK_STATE_UNKNOWN;
    return t < 0 ? VXK_STATE_OCCUPIED : VXK_STATE_FREE;
}

#endif
