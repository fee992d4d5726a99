/*
 * esdf_site.h - where the surface crosses the edges between voxel centres.
 *
 * A site is an edge v -> v + e_a whose ends both count (have at least the minimum weight) and differ in (t <
 * 0).  It lies at v + f / 256 e_a; the lower voxel owns it.  Distances and the mesh use the same sites.
 */
#ifndef VXK_BODY_ESDF_SITE_H
#define VXK_BODY_ESDF_SITE_H

#include "esdf_field.h"

/* f of an edge whose ends have the distances a and b, one of them negative and one not: 1 .. 255. */
VXK_FN uint32_t vxk_site(int32_t a, int32_t b)
{
    int32_t d = a > b ? a - b : b - a, f = (512 * (a < 0 ? -a : a) + d) / (2 * d);
    return (uint32_t)vxk_mini(vxk_maxi(f, 1), 255);
}

/*
 * A map read as signed samples.  TSDF maps: the distance of voxels whose weight is at least min_weight.
 * Occupancy maps: -1 where occupied, 1 where known free (by log-odds, free mask or tile), so that sites are
 * the middles of faces.
 */
struct vxk_samples {
    struct vxk_grid grid;
    uint32_t min_weight;
    uint32_t occupancy;
};

/* A cell's record number, when it has none but is free as a whole. */
#define VXK_FREE_TILE 0xfffffffeu

/* Number of a cell's leaf record, VXK_FREE_TILE, or VXK_NONE.  c may be NULL. */
VXK_FN uint32_t vxk_record(const struct vxk_chunk *c, uint32_t place)
{
    const struct vxk_word *w;
    uint32_t cell = place & 63, r;
    if (!c)
        return VXK_NONE;
    w = &c->word[place >> 6];
    if (!(w->leaf >> cell & 1))
        return w->tile >> cell & 1 ? VXK_FREE_TILE : VXK_NONE;
    r = vxk_popc64(w->leaf & ((1ull << cell) - 1));
    return w->page[r >> 3] * VXK_LEAVES_A_PAGE + (r & 7);
}

/* The record of the cell that lies (dx, dy, dz) cells from a place of chunk `c` (may be NULL; its key is
 * `key`). */
VXK_FN uint32_t vxk_record_near(const struct vxk_grid *g, const struct vxk_chunk *c, uint64_t key,
                                uint32_t place, int32_t dx, int32_t dy, int32_t dz)
{
    int32_t x, y, z, kx, ky, kz;
    vxk_place_xyz(place, &x, &y, &z);
    x += dx;
    y += dy;
    z += dz;
    if (((x | y | z) & ~15) != 0) {
        vxk_key_xyz(key, &kx, &ky, &kz);
        if (!vxk_cell_key(kx * 16 + x, ky * 16 + y, kz * 16 + z, &key))
            return VXK_NONE;
        c = vxk_find_chunk(g, key);
    }
    return vxk_record(c, vxk_place(x, y, z));
}

/* One value as a sample; false when it does not count. */
VXK_FN int vxk_value_sample(const struct vxk_samples *s, uint32_t v, int32_t *t)
{
    *t = vxk_tsdf_distance(v);
    if (!s->occupancy)
        return vxk_tsdf_weight(v) >= s->min_weight;
    if (*t == 0)
        return 0;
    *t = *t > 0 ? -1 : 1;
    return 1;
}

/* Samples of the row (x, y) = row >> 3, row & 7 of a record along z: the bits of those that count; *negative
 * = those of them below 0. */
VXK_FN uint32_t vxk_row(const struct vxk_samples *s, uint32_t record, uint32_t row, int32_t t[8],
                        uint32_t *negative)
{
    const struct vxk_leaf *l;
    uint32_t bits, left, k, valid = 0, minus = 0;
    *negative = 0;
    for (k = 0; k < 8; k++)
        t[k] = 1;
    if (record == VXK_NONE || record == VXK_FREE_TILE)
        return record == VXK_FREE_TILE && s->occupancy ? 255 : 0;
    l = &s->grid.leaves[record];
    bits = (uint32_t)(l->active[row >> 3] >> ((row & 7) << 3)) & 255;
    k = bits ? vxk_leaf_rank(l, row << 3) : 0;
    for (left = bits; left; left &= left - 1, k++) {
        uint32_t z = vxk_ctz32(left),
                 counts = (uint32_t)vxk_value_sample(s, s->grid.values[vxk_leaf_value_index(l, k)], &t[z]);
        valid |= counts << z;
        minus |= (counts & (uint32_t)(t[z] < 0)) << z;
    }
    if (s->occupancy)
        valid |= (uint32_t)(l->free[row >> 3] >> ((row & 7) << 3)) & 255;
    *negative = minus;
    return valid;
}

/* Sample of one voxel n of a record; false when it does not count. */
VXK_FN int vxk_sample(const struct vxk_samples *s, uint32_t record, uint32_t n, int32_t *t)
{
    const struct vxk_leaf *l;
    *t = 1;
    if (record == VXK_NONE || record == VXK_FREE_TILE)
        return record == VXK_FREE_TILE && s->occupancy;
    l = &s->grid.leaves[record];
    if (!(l->active[n >> 6] >> (n & 63) & 1))
        return s->occupancy && (l->free[n >> 6] >> (n & 63) & 1);
    return vxk_value_sample(s, s->grid.values[vxk_leaf_value_index(l, vxk_leaf_rank(l, n))], t);
}

/* Records of a cell and of its neighbours in +x, +y, +z. */
struct vxk_records {
    uint32_t self, x, y, z;
};

/* Sites that the row's eight voxels own, along x, y and z: bit per voxel, and f of each where set. */
struct vxk_row_sites {
    uint32_t x, y, z;
    uint8_t fx[8], fy[8], fz[8];
};
VXK_FN void vxk_row_find_sites(const struct vxk_samples *s, const struct vxk_records *r, uint32_t row,
                               struct vxk_row_sites *out)
{
    int32_t t[8], u[8], above;
    uint32_t valid, minus, v2, m2, left, x = row >> 3, y = row & 7;
    out->x = out->y = out->z = 0;
    valid = vxk_row(s, r->self, row, t, &minus);
    if (!valid)
        return;

    out->z = valid & valid >> 1 & (minus ^ minus >> 1);
    for (left = out->z; left; left &= left - 1) {
        uint32_t i = vxk_ctz32(left);
        out->fz[i] = (uint8_t)vxk_site(t[i], t[i + 1]);
    }
    if (valid >> 7 && vxk_sample(s, r->z, row << 3, &above) && (above < 0) != (t[7] < 0)) {
        out->z |= 0x80;
        out->fz[7] = (uint8_t)vxk_site(t[7], above);
    }

    v2 = vxk_row(s, y == 7 ? r->y : r->self, x << 3 | ((y + 1) & 7), u, &m2);
    out->y = valid & v2 & (minus ^ m2);
    for (left = out->y; left; left &= left - 1) {
        uint32_t i = vxk_ctz32(left);
        out->fy[i] = (uint8_t)vxk_site(t[i], u[i]);
    }

    v2 = vxk_row(s, x == 7 ? r->x : r->self, ((x + 1) & 7) << 3 | y, u, &m2);
    out->x = valid & v2 & (minus ^ m2);
    for (left = out->x; left; left &= left - 1) {
        uint32_t i = vxk_ctz32(left);
        out->fx[i] = (uint8_t)vxk_site(t[i], u[i]);
    }
}

#endif
