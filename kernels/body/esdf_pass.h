/*
 * esdf_pass.h - the three separable passes of the exact distance field, over one batch of leaves.
 *
 * All distances are in 1/256 voxel; squares fit an int32.  A site has two integer coordinates, so
 *   pass 1  gX, gY, gZ = the nearest site of a family along the edge's own axis,
 *   pass 2  A = min(conv_y gZ^2, conv_z gY^2), B = conv_z gX^2, where conv = min over |d| <= R of in + (256
 * d)^2, pass 3  d^2 = min(conv_x A, conv_y B). A batch's list holds its leaves, then the cells whose planes
 * (A, B), lines (gX, gY, gZ) and sites those need; all arrays are indexed by the place in it.  Lines are
 * stored [family][u][v][c]: c along the edge's axis, v along the axis that pass 2 goes, so that both passes
 * work on runs of eight values.
 */
#ifndef VXK_BODY_ESDF_PASS_H
#define VXK_BODY_ESDF_PASS_H

#include "esdf_plan.h"

enum {
    VXK_ESDF_NO_SITE = 0x7fff, /* its square plus two of the largest offsets fits an int32 */
    VXK_ESDF_INF = 0x3fffffff
};

/* The leaves of the batch onto its list.  Element: a leaf. */
#define vxk_esdf_begin_args vxk_esdf_args
VXK_FN void vxk_esdf_begin(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->all_out[a->first + i];
    a->list[i] = place;
    a->slot[place] = i;
    if (i == 0)
        a->n->end[0] = a->n->end[1] = a->n_in_batch;
}
/* Puts the cells along the lines through an entry on the list: those that have a leaf, and for the last stage
 * sites of the family along the line.  Element: entry i / (3 n), axis i / n % 3, offset i % n - reach; n = 2
 * reach + 1. */
#define vxk_esdf_extend_args vxk_esdf_args
VXK_FN void vxk_esdf_extend(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t width = 2 * a->reach + 1, axis = i / width % 3, place = a->list[i / width / 3], leaf, n;
    int32_t d = (int32_t)(i % width) - (int32_t)a->reach;
    if (d == 0 || axis == (a->stage == 0 ? 2u : a->stage == 1 ? 0u : 3u))
        return; /* pass 3 goes along x and y, pass 2 along y and z */
    place = vxk_esdf_place_along(a, place, axis, d);
    if (place == VXK_NONE)
        return;
    leaf = a->table[place];
    if (leaf == VXK_NONE || vxk_load32(&a->slot[place]) != VXK_NONE)
        return;
    if (a->stage == 2 && !(vxk_esdf_mark_of(a->pages, leaf)->span >> (32 + axis) & 1))
        return;
    if (vxk_atomic_cas32(&a->slot[place], VXK_NONE, VXK_NONE - 1) != VXK_NONE)
        return;
    n = vxk_atomic_add32(&a->n->end[a->stage + 1], 1);
    a->list[n] = place;
    vxk_store32(&a->slot[place], n);
}
/* Where the next stage's entries begin.  Element: the only one. */
#define vxk_esdf_stage_args vxk_esdf_args
VXK_FN void vxk_esdf_stage(const struct vxk_esdf_args *a, uint32_t i)
{
    (void)i;
    a->n->end[a->stage + 1] = a->n->end[a->stage];
}
/* What the map and the field hold at an entry.  Element: an entry. */
#define vxk_esdf_enter_args vxk_esdf_args
VXK_FN void vxk_esdf_enter(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->list[i];
    vxk_esdf_records(a, place, &a->records[i]);
    a->site_has[i] = (uint32_t)(vxk_esdf_mark_of(a->pages, a->table[place])->span >> 32);
    a->line_has[i] = a->plane_has[i] = 0;
    if (i < a->n_in_batch)
        a->alive[i] = 0;
}
/* Entries along the three axes.  Element: as of esdf_extend. */
#define vxk_esdf_link_args vxk_esdf_args
VXK_FN void vxk_esdf_link(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t width = 2 * a->reach + 1, place = a->list[i / width / 3];
    place = vxk_esdf_place_along(a, place, i / width % 3, (int32_t)(i % width) - (int32_t)a->reach);
    a->link[i] = place == VXK_NONE ? VXK_NONE : a->slot[place];
}
/* Takes the entries off again.  Element: an entry. */
#define vxk_esdf_release_args vxk_esdf_args
VXK_FN void vxk_esdf_release(const struct vxk_esdf_args *a, uint32_t i)
{
    a->slot[a->list[i]] = VXK_NONE;
}

/* f of every edge, 0 = no site: [entry][family][512], the edge's own axis fastest.  Element: entry i >> 6,
 * row i & 63. */
#define vxk_esdf_sites_args vxk_esdf_args
VXK_FN void vxk_esdf_sites(const struct vxk_esdf_args *a, uint32_t i)
{
    struct vxk_row_sites s;
    uint8_t *out = a->sites + (uint64_t)(i >> 6) * 1536;
    uint32_t x = i >> 3 & 7, y = i & 7;
    if (!a->site_has[i >> 6])
        return;
    vxk_row_find_sites(&a->samples, &a->records[i >> 6], i & 63, &s);
    for (uint32_t z = 0; z < 8; z++) {
        out[y << 6 | z << 3 | x] = s.x >> z & 1 ? s.fx[z] : (uint8_t)0;
        out[512 + (x << 6 | z << 3 | y)] = s.y >> z & 1 ? s.fy[z] : (uint8_t)0;
        out[1024 + (x << 6 | y << 3 | z)] = s.z >> z & 1 ? s.fz[z] : (uint8_t)0;
    }
}

/* Pass 1: distance of each voxel of a line to the nearest site on it.  Element: entry i / 192, family i / 64
 * % 3, line i % 64 (u << 3 | v). */
#define vxk_esdf_line_args vxk_esdf_args
VXK_FN void vxk_esdf_line(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t entry = i / 192, family = i / 64 % 3, line = i & 63, width = 2 * a->reach + 1, any = 0, k, e;
    const uint32_t *link = a->link + ((uint64_t)entry * 3 + family) * width;
    const uint8_t *in = a->sites + 512 * family + line * 8;
    uint16_t *out = a->line + ((uint64_t)entry * 3 + family) * 512 + line * 8;
    int32_t best[8], most = (int32_t)a->radius * 256;
    for (e = 0; e < 8; e++)
        best[e] = VXK_ESDF_NO_SITE;
    for (k = 0; k < width; k++) {
        const uint8_t *f;
        if (link[k] == VXK_NONE || !(a->site_has[link[k]] >> family & 1))
            continue;
        any = 1;
        f = in + (uint64_t)link[k] * 1536;
        for (uint32_t s = 0; s < 8; s++)
            if (f[s]) {
                int32_t at = (((int32_t)k - (int32_t)a->reach) * 8 + (int32_t)s) * 256 + f[s];
                for (e = 0; e < 8; e++) {
                    int32_t d = at - (int32_t)e * 256;
                    best[e] = vxk_mini(best[e], d < 0 ? -d : d);
                }
            }
    }
    if (!any)
        return;
    any = 0;
    for (e = 0; e < 8; e++) {
        any |= (uint32_t)(best[e] <= most);
        out[e] = (uint16_t)(best[e] <= most ? best[e] : VXK_ESDF_NO_SITE);
    }
    if (any && !(vxk_load32(&a->line_has[entry]) >> family & 1))
        vxk_atomic_or32(&a->line_has[entry], 1u << family);
}

/* acc[v][c] = min of line[u][v'][c]^2 + (256 (v - v'))^2 over the entries along an axis: false when there are
 * none. */
VXK_FN int vxk_esdf_conv_line(const struct vxk_esdf_args *a, uint32_t entry, uint32_t axis, uint32_t family,
                              uint32_t u, int32_t acc[64])
{
    uint32_t width = 2 * a->reach + 1;
    const uint32_t *link = a->link + ((uint64_t)entry * 3 + axis) * width;
    int32_t r = (int32_t)a->radius;
    int any = 0;
    for (int32_t o = 0; o < 64; o++)
        acc[o] = VXK_ESDF_INF;
    for (uint32_t k = 0; k < width; k++) {
        int32_t from = ((int32_t)k - (int32_t)a->reach) * 8;
        const uint16_t *in;
        if (link[k] == VXK_NONE || !(a->line_has[link[k]] >> family & 1))
            continue;
        any = 1;
        in = a->line + ((uint64_t)link[k] * 3 + family) * 512 + u * 64;
        for (int32_t e = vxk_maxi(-r - from, 0); e <= vxk_mini(r + 7 - from, 7); e++) {
            int32_t square[8], at = from + e;
            for (int32_t c = 0; c < 8; c++) {
                int32_t g = (int32_t)in[e * 8 + c];
                square[c] = g * g;
            }
            for (int32_t o = vxk_maxi(at - r, 0); o <= vxk_mini(at + r, 7); o++)
                for (int32_t c = 0; c < 8; c++)
                    acc[o * 8 + c] = vxk_mini(acc[o * 8 + c], square[c] + (at - o) * (at - o) * 65536);
        }
    }
    return any;
}
/* Pass 2.  Element: entry i >> 4; i & 15 < 8: plane x of A, else plane y of B. */
#define vxk_esdf_plane_args vxk_esdf_args
VXK_FN void vxk_esdf_plane(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t entry = i >> 4, u = i & 7;
    int32_t *out = a->plane + (uint64_t)entry * 1024, zy[64], yz[64];
    int any, more;
    if (i & 8) {
        if (!vxk_esdf_conv_line(a, entry, 2, 0, u, zy)) /* [z][x] */
            return;
        for (uint32_t z = 0; z < 8; z++)
            for (uint32_t x = 0; x < 8; x++)
                out[512 + (x << 6 | u << 3 | z)] = zy[z * 8 + x];
        if (u == 0)
            vxk_atomic_or32(&a->plane_has[entry], VXK_ESDF_B);
        return;
    }
    any = vxk_esdf_conv_line(a, entry, 1, 2, u, yz);  /* [y][z] */
    more = vxk_esdf_conv_line(a, entry, 2, 1, u, zy); /* [z][y] */
    if (!any && !more)
        return;
    for (uint32_t y = 0; y < 8; y++)
        for (uint32_t z = 0; z < 8; z++)
            out[u << 6 | y << 3 | z] = vxk_mini(yz[y * 8 + z], zy[z * 8 + y]);
    if (u == 0)
        vxk_atomic_or32(&a->plane_has[entry], VXK_ESDF_A);
}

/* rint(sqrt(square) * scale), exactly. */
VXK_FN uint32_t vxk_esdf_magnitude(int32_t square, uint32_t scale)
{
    int64_t n = 4 * (int64_t)square * (int64_t)(scale * scale);
    int64_t m = vxk_rint(vxk_sqrt((float)square) * (float)scale);
    while ((2 * m + 1) * (2 * m + 1) <= n)
        m++;
    while (m > 0 && (2 * m - 1) * (2 * m - 1) > n)
        m--;
    return (uint32_t)m;
}
/* acc[z] = min of a row of eight + (256 d)^2 over the entries along an axis; `row` = the row's place in the
 * entry d = 0, `step` = from one to the next. */
VXK_FN void vxk_esdf_conv_plane(const struct vxk_esdf_args *a, uint32_t entry, uint32_t axis, uint32_t has,
                                uint32_t at, uint32_t row, uint32_t step, int32_t acc[8])
{
    uint32_t width = 2 * a->reach + 1;
    const uint32_t *link = a->link + ((uint64_t)entry * 3 + axis) * width;
    int32_t r = (int32_t)a->radius;
    for (uint32_t k = 0; k < width; k++) {
        int32_t from = ((int32_t)k - (int32_t)a->reach) * 8 - (int32_t)at;
        const int32_t *in;
        if (link[k] == VXK_NONE || !(a->plane_has[link[k]] & has))
            continue;
        in = a->plane + (uint64_t)link[k] * 1024 + row;
        for (int32_t e = vxk_maxi(-r - from, 0); e <= vxk_mini(r - from, 7); e++)
            for (int32_t z = 0; z < 8; z++)
                acc[z] =
                    vxk_mini(acc[z], in[(uint32_t)e * step + (uint32_t)z] + (from + e) * (from + e) * 65536);
    }
}
/* Pass 3, and the leaf as it is stored.  Element: entry i >> 6, row i & 63. */
#define vxk_esdf_finish_args vxk_esdf_args
VXK_FN void vxk_esdf_finish(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t entry = i >> 6, row = i & 63, x = row >> 3, y = row & 7, any = 0, known, occupied;
    uint16_t *out = vxk_esdf_voxels(a->pages, a->table[a->list[entry]]) + row * 8;
    int32_t acc[8];
    for (int32_t z = 0; z < 8; z++)
        acc[z] = VXK_ESDF_INF;
    vxk_esdf_conv_plane(a, entry, 0, VXK_ESDF_A, x, y << 3, 64, acc);
    vxk_esdf_conv_plane(a, entry, 1, VXK_ESDF_B, y, 512 + (x << 6), 8, acc);
    known = vxk_esdf_row_states(a, a->records[entry].self, row, &occupied);
    for (uint32_t z = 0; z < 8; z++) {
        uint32_t m = VXK_ESDF_FAR;
        if (acc[z] <= a->limit) {
            m = vxk_esdf_magnitude(acc[z], a->scale);
            any = 1;
        }
        out[z] = (uint16_t)(vxk_esdf_state(known, occupied, z) << 14 | m);
    }
    if (any && !vxk_load32(&a->alive[entry]))
        vxk_store32(&a->alive[entry], 1);
}

/* Gives back the leaves in which nothing is within R.  Element: a leaf of the batch. */
#define vxk_esdf_prune_args vxk_esdf_args
VXK_FN void vxk_esdf_prune(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->list[i], leaf = a->table[place];
    if (a->alive[i])
        return;
    a->free_leaf[a->n_free + vxk_atomic_add32(&a->n->n_pruned, 1)] = leaf;
    *vxk_esdf_place_of(a->pages, leaf) = VXK_NONE;
    a->table[place] = VXK_NONE;
}

#endif
