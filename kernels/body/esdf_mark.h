/*
 * esdf_mark.h - which leaves a distance field needs.
 *
 * A *candidate* is a cell that the box around some cell's sites reaches within R; every leaf of the field,
 * and every cell that a pass goes through, is one.  Candidates are numbered by chunk key, word and cell, so
 * that all arrays of the build are indexed by candidate and hold nothing for the space between.
 */
#ifndef VXK_BODY_ESDF_MARK_H
#define VXK_BODY_ESDF_MARK_H

#include "esdf_cells.h"

/* Families of sites and of partial minima, bits. */
enum { VXK_ESDF_X = 1, VXK_ESDF_Y = 2, VXK_ESDF_Z = 4, VXK_ESDF_A = 1, VXK_ESDF_B = 2 };

/*
 * What a cell's sites span: for each axis the set of coordinates (0 .. 8) that an edge with a site touches,
 * 10 bits an axis, and the families from bit 32 on.  Element: cell i >> 6, row i & 63.
 */
struct vxk_esdf_span_args {
    struct vxk_samples samples;
    const struct vxk_records *records; /* [n] */
    uint64_t *span;                    /* [n] zero before */
};
VXK_FN void vxk_esdf_span(const struct vxk_esdf_span_args *a, uint32_t i)
{
    struct vxk_row_sites s;
    uint32_t x = i >> 3 & 7, y = i & 7, fx, fy, fz;
    vxk_row_find_sites(&a->samples, &a->records[i >> 6], i & 63, &s);
    if (!(s.x | s.y | s.z))
        return;
    fx = (s.x ? 3u : 1u) << x;
    fy = (s.y ? 3u : 1u) << y;
    fz = s.x | s.y | s.z | s.z << 1;
    vxk_atomic_or64(&a->span[i >> 6],
                    (uint64_t)fx | (uint64_t)fy << 10 | (uint64_t)fz << 20 |
                        (uint64_t)((s.x ? VXK_ESDF_X : 0) | (s.y ? VXK_ESDF_Y : 0) | (s.z ? VXK_ESDF_Z : 0))
                            << 32);
}
/* Voxels between span and [from, to] along an axis: 0 when they meet. */
VXK_FN int32_t vxk_span_gap(uint64_t span, uint32_t axis, int32_t from, int32_t to)
{
    uint32_t b = (uint32_t)(span >> (10 * axis)) & 1023;
    int32_t lo = (int32_t)vxk_ctz32(b), hi = 31 - (int32_t)vxk_clz32(b);
    return vxk_maxi(vxk_maxi(from - hi, lo - to), 0);
}

/* Inserts the chunks that hold a candidate.  Element: a cell of the map. */
struct vxk_esdf_chunks_args {
    const uint64_t *chunk_key; /* of the map's cells */
    const uint32_t *cells;
    const uint64_t *span;
    uint64_t *keys;     /* [slot_mask + 1] */
    uint64_t *found;    /* [capacity] the keys in any order */
    uint32_t *n;        /* how many; more than capacity = they did not fit */
    uint32_t slot_mask; /* at least 2 capacity slots */
    uint32_t capacity;
    uint32_t radius, reach;
};
VXK_FN void vxk_esdf_chunks(const struct vxk_esdf_chunks_args *a, uint32_t i)
{
    uint64_t span = a->span[i];
    int32_t x, y, z, kx, ky, kz, r = (int32_t)a->reach, r2 = (int32_t)(a->radius * a->radius);
    if (!span)
        return;
    vxk_place_xyz(a->cells[i] & 4095, &x, &y, &z);
    vxk_key_xyz(a->chunk_key[a->cells[i] >> 12], &kx, &ky, &kz);
    for (int32_t X = (x - r) >> 4; X <= (x + r) >> 4; X++)
        for (int32_t Y = (y - r) >> 4; Y <= (y + r) >> 4; Y++)
            for (int32_t Z = (z - r) >> 4; Z <= (z + r) >> 4; Z++) {
                /* The chunk's voxels, seen from the cell's first. */
                int32_t gx = vxk_span_gap(span, 0, X * 128 - x * 8, X * 128 - x * 8 + 127);
                int32_t gy = vxk_span_gap(span, 1, Y * 128 - y * 8, Y * 128 - y * 8 + 127);
                int32_t gz = vxk_span_gap(span, 2, Z * 128 - z * 8, Z * 128 - z * 8 + 127);
                int inserted;
                uint64_t key;
                if (gx * gx + gy * gy + gz * gz > r2 ||
                    !vxk_cell_key((kx + X) * 16, (ky + Y) * 16, (kz + Z) * 16, &key))
                    continue;
                if (vxk_load32(a->n) > a->capacity)
                    return;
                vxk_hash_insert(a->keys, a->slot_mask, key, &inserted);
                if (inserted) {
                    uint32_t n = vxk_atomic_add32(a->n, 1);
                    if (n < a->capacity)
                        a->found[n] = key;
                }
            }
}

/* Marks the candidates that a cell's sites reach.  Element: cell i / n_x, x offset i % n_x - reach; n_x = 2
 * reach + 1. */
struct vxk_esdf_mark_args {
    const uint64_t *chunk_key; /* of the map's cells */
    const uint32_t *cells;
    const uint64_t *span;
    const uint64_t *keys;
    const uint32_t *index;
    uint64_t *mask; /* [chunks * 64] zero before */
    uint32_t slot_mask;
    uint32_t radius, reach;
};
VXK_FN void vxk_esdf_mark(const struct vxk_esdf_mark_args *a, uint32_t i)
{
    uint32_t n_x = 2 * a->reach + 1, cell = i / n_x, chunk = VXK_NONE;
    uint64_t span = a->span[cell], last = VXK_NO_KEY;
    int32_t dx = (int32_t)(i % n_x) - (int32_t)a->reach, r = (int32_t)a->reach,
            r2 = (int32_t)(a->radius * a->radius);
    int32_t x, y, z, kx, ky, kz, gx;
    if (!span)
        return;
    gx = vxk_span_gap(span, 0, dx * 8, dx * 8 + 7);
    if (gx * gx > r2)
        return;
    vxk_place_xyz(a->cells[cell] & 4095, &x, &y, &z);
    vxk_key_xyz(a->chunk_key[a->cells[cell] >> 12], &kx, &ky, &kz);
    x += kx * 16 + dx;
    y += ky * 16;
    z += kz * 16;
    for (int32_t dy = -r; dy <= r; dy++) {
        int32_t gy = vxk_span_gap(span, 1, dy * 8, dy * 8 + 7);
        if (gx * gx + gy * gy > r2)
            continue;
        for (int32_t dz = -r; dz <= r; dz++) {
            int32_t gz = vxk_span_gap(span, 2, dz * 8, dz * 8 + 7);
            uint32_t place;
            uint64_t key, bit;
            if (gx * gx + gy * gy + gz * gz > r2 || !vxk_cell_key(x, y + dy, z + dz, &key))
                continue;
            if (key != last) {
                uint32_t slot = vxk_hash_find(a->keys, a->slot_mask, key);
                last = key;
                chunk = slot == VXK_NONE ? VXK_NONE : a->index[slot];
            }
            if (chunk == VXK_NONE)
                continue;
            place = chunk << 12 | vxk_place(x, y + dy, z + dz);
            bit = 1ull << (place & 63);
            if (!(vxk_load64(&a->mask[place >> 6]) & bit))
                vxk_atomic_or64(&a->mask[place >> 6], bit);
        }
    }
}

/* Families of sites that a candidate owns.  Element: a cell of the map. */
struct vxk_esdf_families_args {
    struct vxk_cells c;        /* the candidates */
    const uint64_t *chunk_key; /* of the map's cells */
    const uint32_t *cells;
    const uint64_t *span;
    uint8_t *sites; /* [candidates] zero before */
};
VXK_FN void vxk_esdf_families(const struct vxk_esdf_families_args *a, uint32_t i)
{
    uint32_t slot, k;
    if (!a->span[i])
        return;
    slot = vxk_hash_find(a->c.keys, a->c.slot_mask, a->chunk_key[a->cells[i] >> 12]);
    if (slot == VXK_NONE)
        return;
    k = vxk_cells_at(&a->c, a->c.index[slot] << 12 | (a->cells[i] & 4095));
    if (k != VXK_NONE)
        a->sites[k] = (uint8_t)(a->span[i] >> 32);
}

/* Which of gX, gY, gZ hold anything at a candidate: sites of the family along its own axis.  Element: a
 * candidate. */
struct vxk_esdf_lines_at_args {
    struct vxk_cells c; /* the candidates */
    const uint8_t *sites;
    uint8_t *lines; /* [candidates] */
    uint32_t reach;
};
VXK_FN void vxk_esdf_lines_at(const struct vxk_esdf_lines_at_args *a, uint32_t i)
{
    uint32_t place = a->c.place[i], out = 0;
    for (uint32_t axis = 0; axis < 3; axis++)
        for (int32_t d = -(int32_t)a->reach; d <= (int32_t)a->reach && !(out >> axis & 1); d++) {
            uint32_t k = vxk_cells_along(&a->c, place, axis, d);
            if (k != VXK_NONE && (a->sites[k] >> axis & 1))
                out |= 1u << axis;
        }
    a->lines[i] = (uint8_t)out;
}
/* Which of A (from gZ along y and gY along z) and B (from gX along z) hold anything.  Element: a candidate.
 */
struct vxk_esdf_planes_at_args {
    struct vxk_cells c; /* the candidates */
    const uint8_t *lines;
    uint8_t *planes; /* [candidates] */
    uint32_t reach;
};
VXK_FN void vxk_esdf_planes_at(const struct vxk_esdf_planes_at_args *a, uint32_t i)
{
    uint32_t place = a->c.place[i], out = 0;
    for (int32_t d = -(int32_t)a->reach; d <= (int32_t)a->reach; d++) {
        uint32_t k = vxk_cells_along(&a->c, place, 2, d);
        if (k != VXK_NONE)
            out |= (a->lines[k] & VXK_ESDF_Y ? VXK_ESDF_A : 0) | (a->lines[k] & VXK_ESDF_X ? VXK_ESDF_B : 0);
        k = vxk_cells_along(&a->c, place, 1, d);
        if (k != VXK_NONE)
            out |= a->lines[k] & VXK_ESDF_Z ? VXK_ESDF_A : 0;
    }
    a->planes[i] = (uint8_t)out;
}

#endif
