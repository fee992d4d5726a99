/*
 * esdf_pass.h - the three separable passes of the exact distance field.
 *
 * All distances are in 1/256 voxel; squares fit an int32.  A site has two integer coordinates, so
 *   pass 1  gX, gY, gZ = the nearest site of a family along the edge's own axis,
 *   pass 2  A = min(conv_y gZ^2, conv_z gY^2), B = conv_z gX^2, where conv = min over d of in + (256 d)^2,
 *   pass 3  d^2 = min(conv_x A, conv_y B).
 * A field is built in batches of leaves ("out").  Each batch lists the candidates whose planes (A, B), lines
 * (gX, gY, gZ) and sites it needs; arrays of a batch are indexed by the place in these lists.  Every array is
 * stored with the axis along which it is read next as the fastest, so that a row is 8 values in a run.
 */
#ifndef VXK_BODY_ESDF_PASS_H
#define VXK_BODY_ESDF_PASS_H

#include "esdf_mark.h"

enum {
    VXK_ESDF_INF = 0x3fffffff,
    VXK_ESDF_NO_SITE = 0xffff,
    VXK_ESDF_CLAIMED = 0xfffffffe /* slot: listed by an element of this launch */
};

/* Puts candidate k on a list unless it is on it. */
VXK_FN void vxk_esdf_claim(uint32_t *slot, uint32_t *list, uint32_t *n, uint32_t k)
{
    if (vxk_load32(&slot[k]) == VXK_NONE &&
        vxk_atomic_cas32(&slot[k], VXK_NONE, VXK_ESDF_CLAIMED) == VXK_NONE)
        list[vxk_atomic_add32(n, 1)] = k;
}
/* Gives the listed candidates their places, or takes them off again.  Element: an entry of the list. */
struct vxk_esdf_number_args {
    const uint32_t *list;
    uint32_t *slot;
    uint32_t release;
};
VXK_FN void vxk_esdf_number(const struct vxk_esdf_number_args *a, uint32_t i)
{
    a->slot[a->list[i]] = a->release ? VXK_NONE : i;
}

/*
 * Claims what the entries of a list read along one axis: the candidates within reach whose `have` has one of
 * `want`. Only entries whose own `mine` has `need` ask (need 0: all).  Element: an entry and an offset, i /
 * n, i % n - reach, n = 2 reach + 1.
 */
struct vxk_esdf_want_args {
    struct vxk_cells c;   /* the candidates */
    const uint32_t *list; /* NULL: entry e is candidate first + e */
    const uint8_t *mine;
    const uint8_t *have;
    uint32_t *slot, *claimed, *n;
    uint32_t reach, first, axis, need, want;
};
VXK_FN void vxk_esdf_want(const struct vxk_esdf_want_args *a, uint32_t i)
{
    uint32_t width = 2 * a->reach + 1, entry = i / width, k = a->list ? a->list[entry] : a->first + entry;
    if (a->need && !(a->mine[k] & a->need))
        return;
    k = vxk_cells_along(&a->c, a->c.place[k], a->axis, (int32_t)(i % width) - (int32_t)a->reach);
    if (k != VXK_NONE && (a->have[k] & a->want))
        vxk_esdf_claim(a->slot, a->claimed, a->n, k);
}
/* Where an entry reads along one axis: link[i] = place in the list that `slot` numbers, or VXK_NONE.  Element
 * as above. */
struct vxk_esdf_link_args {
    struct vxk_cells c; /* the candidates */
    const uint32_t *list;
    const uint8_t *have;
    const uint32_t *slot;
    uint32_t *link; /* [entries][2 reach + 1] */
    uint32_t reach, first, axis, want;
};
VXK_FN void vxk_esdf_link(const struct vxk_esdf_link_args *a, uint32_t i)
{
    uint32_t width = 2 * a->reach + 1, entry = i / width, k = a->list ? a->list[entry] : a->first + entry;
    k = vxk_cells_along(&a->c, a->c.place[k], a->axis, (int32_t)(i % width) - (int32_t)a->reach);
    a->link[i] = k != VXK_NONE && (a->have[k] & a->want) ? a->slot[k] : VXK_NONE;
}

/* f of every edge, 0 = no site: [entry][family][512], the edge's own axis fastest.  Element: entry i >> 6,
 * row i & 63. */
struct vxk_esdf_sites_args {
    struct vxk_samples samples;
    const struct vxk_records *records;
    uint8_t *sites;
};
VXK_FN void vxk_esdf_sites(const struct vxk_esdf_sites_args *a, uint32_t i)
{
    struct vxk_row_sites s;
    uint8_t *out = a->sites + (uint64_t)(i >> 6) * 1536;
    uint32_t x = i >> 3 & 7, y = i & 7;
    vxk_row_find_sites(&a->samples, &a->records[i >> 6], i & 63, &s);
    for (uint32_t z = 0; z < 8; z++) {
        out[y << 6 | z << 3 | x] = s.x >> z & 1 ? s.fx[z] : (uint8_t)0;
        out[512 + (x << 6 | z << 3 | y)] = s.y >> z & 1 ? s.fy[z] : (uint8_t)0;
        out[1024 + (x << 6 | y << 3 | z)] = s.z >> z & 1 ? s.fz[z] : (uint8_t)0;
    }
}

/*
 * Pass 1 for one family: distance of each voxel to the nearest site on its line, VXK_ESDF_NO_SITE = none
 * within reach. Element: entry i >> 6, line i & 63 (the two other axes in order).  Output order: see
 * stride_*.
 */
struct vxk_esdf_line_args {
    const uint8_t *sites; /* of this family: + 1536 an entry */
    const uint32_t *link; /* [entries][2 reach + 1] places in the list of site leaves */
    uint16_t *out;        /* + 1536 an entry */
    uint32_t reach;
    uint32_t stride_a, stride_b, stride_o; /* places of line >> 3, line & 7, and the voxel along the line */
};
VXK_FN void vxk_esdf_line(const struct vxk_esdf_line_args *a, uint32_t i)
{
    uint32_t entry = i >> 6, line = i & 63, width = 2 * a->reach + 1;
    const uint32_t *link = a->link + (uint64_t)entry * width;
    uint16_t *out = a->out + (uint64_t)entry * 1536 + (line >> 3) * a->stride_a + (line & 7) * a->stride_b;
    int32_t below = -(1 << 20), above = 1 << 20, best[8]; /* places of sites, from the entry's first voxel */
    uint32_t k, e;
    for (k = 0; k < 8; k++)
        best[k] = VXK_ESDF_NO_SITE;
    /* The last site before the entry, and the first behind it. */
    for (k = a->reach; k-- > 0 && below < -(1 << 19);) {
        const uint8_t *f =
            link[k] == VXK_NONE ? (const uint8_t *)0 : a->sites + (uint64_t)link[k] * 1536 + line * 8;
        for (e = 8; f && e-- > 0;)
            if (f[e]) {
                below = ((int32_t)(k * 8 + e) - (int32_t)a->reach * 8) * 256 + f[e];
                break;
            }
    }
    for (k = a->reach + 1; k < width && above > 1 << 19; k++) {
        const uint8_t *f =
            link[k] == VXK_NONE ? (const uint8_t *)0 : a->sites + (uint64_t)link[k] * 1536 + line * 8;
        for (e = 0; f && e < 8; e++)
            if (f[e]) {
                above = ((int32_t)(k * 8 + e) - (int32_t)a->reach * 8) * 256 + f[e];
                break;
            }
    }
    if (link[a->reach] == VXK_NONE) {
        for (e = 0; e < 8; e++)
            best[e] =
                vxk_mini(VXK_ESDF_NO_SITE, vxk_mini((int32_t)e * 256 - below, above - (int32_t)e * 256));
    } else {
        const uint8_t *f = a->sites + (uint64_t)link[a->reach] * 1536 + line * 8;
        for (e = 0; e < 8; e++) {
            best[e] = vxk_mini(best[e], (int32_t)e * 256 - below);
            if (f[e])
                below = (int32_t)e * 256 + f[e];
        }
        for (e = 8; e-- > 0;) {
            if (f[e])
                above = (int32_t)e * 256 + f[e];
            best[e] = vxk_mini(best[e], above - (int32_t)e * 256);
        }
    }
    for (e = 0; e < 8; e++)
        out[e * a->stride_o] = (uint16_t)best[e];
}

/* acc = min(acc, in + (256 d)^2) for the 8 voxels of a row; `at` = place of the value from the row's first
 * voxel. */
VXK_FN void vxk_esdf_accumulate(int32_t acc[8], int32_t in, int32_t at)
{
    int32_t base = in + at * at * 65536, step = at * 131072; /* (at - o)^2 = at^2 - 2 at o + o^2 */
    for (int32_t o = 0; o < 8; o++)
        acc[o] = vxk_mini(acc[o], base - step * o + o * o * 65536);
}
/*
 * One convolution.  in: rows of 8 along the axis, row r of an entry at r * 8; in16 (distances, squared here)
 * or in32. Values above `limit` can't matter.  out: int32 at (r >> 3) * stride_a + (r & 7) * stride_b + voxel
 * * stride_o, 512 an entry + out_offset; merge: minimum with what is there.  Element: entry i >> 6, row r = i
 * & 63.
 */
struct vxk_esdf_conv_args {
    const uint16_t *in16;
    const int32_t *in32;
    const uint32_t *link; /* [entries][2 reach + 1] */
    int32_t *out;
    uint32_t in_stride, out_stride; /* values an entry */
    uint32_t radius, reach;
    uint32_t stride_a, stride_b, stride_o;
    int32_t limit;
    uint32_t merge;
};
/* Squares of a row of the input; returns the least. */
VXK_FN int32_t vxk_esdf_row(const struct vxk_esdf_conv_args *a, uint64_t at, int32_t in[8])
{
    int32_t least = VXK_ESDF_INF;
    for (int32_t e = 0; e < 8; e++) {
        if (a->in32) {
            in[e] = a->in32[at + (uint32_t)e];
        } else {
            int32_t g = (int32_t)a->in16[at + (uint32_t)e];
            in[e] = g == VXK_ESDF_NO_SITE ? (int32_t)VXK_ESDF_INF : g * g;
        }
        least = vxk_mini(least, in[e]);
    }
    return least;
}
VXK_FN void vxk_esdf_conv(const struct vxk_esdf_conv_args *a, uint32_t i)
{
    uint32_t entry = i >> 6, row = i & 63, width = 2 * a->reach + 1;
    const uint32_t *link = a->link + (uint64_t)entry * width;
    int32_t *out =
        a->out + (uint64_t)entry * a->out_stride + (row >> 3) * a->stride_a + (row & 7) * a->stride_b;
    int32_t acc[8], in[8], any = 0;
    for (uint32_t o = 0; o < 8; o++)
        acc[o] = VXK_ESDF_INF;
    for (uint32_t k = 0; k < width; k++) {
        int32_t from = ((int32_t)k - (int32_t)a->reach) * 8, least;
        int32_t first = vxk_maxi(-(int32_t)a->radius - from, 0),
                last = vxk_mini((int32_t)a->radius + 7 - from, 7);
        if (link[k] == VXK_NONE)
            continue;
        least = vxk_esdf_row(a, (uint64_t)link[k] * a->in_stride + row * 8, in);
        if (least > a->limit)
            continue;
        for (int32_t e = first; e <= last; e++)
            vxk_esdf_accumulate(acc, in[e], from + e);
        any = 1;
    }
    if (a->merge) {
        for (uint32_t o = 0; any && o < 8; o++)
            out[o * a->stride_o] = vxk_mini(out[o * a->stride_o], acc[o]);
    } else {
        for (uint32_t o = 0; o < 8; o++)
            out[o * a->stride_o] = acc[o];
    }
}

/* exists[entry] = 1 when a voxel is within R.  Element: entry i >> 6, row i & 63 of the squared distances. */
struct vxk_esdf_exists_args {
    const int32_t *square; /* [entries][512] */
    uint32_t *exists;      /* [entries] zero before */
    int32_t limit;
};
VXK_FN void vxk_esdf_exists(const struct vxk_esdf_exists_args *a, uint32_t i)
{
    const int32_t *in = a->square + (uint64_t)i * 8;
    int32_t best = in[0];
    for (uint32_t o = 1; o < 8; o++)
        best = vxk_mini(best, in[o]);
    if (best <= a->limit)
        vxk_atomic_or32(&a->exists[i >> 6], 1);
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

/* Writes the leaves that exist and their numbers.  Element: entry i >> 6, row i & 63. */
struct vxk_esdf_finish_args {
    struct vxk_samples samples;
    const struct vxk_records *records; /* [entries] of vxk_esdf_lookup */
    const int32_t *square;
    const uint32_t *rank;  /* [entries + 1] leaves of the batch before the entry */
    const uint32_t *place; /* [entries] */
    uint32_t *table;       /* VXK_NONE before */
    uint16_t *const *pages;
    uint32_t first_leaf; /* number of the batch's first leaf */
    uint32_t scale;
    int32_t limit;
};
VXK_FN void vxk_esdf_finish(const struct vxk_esdf_finish_args *a, uint32_t i)
{
    uint32_t entry = i >> 6, row = i & 63, n = a->first_leaf + a->rank[entry],
             record = a->records[entry].self;
    const int32_t *in = a->square + (uint64_t)i * 8;
    uint32_t valid, minus, seen = 0;
    int32_t t[8];
    uint16_t *out;
    if (a->rank[entry + 1] == a->rank[entry])
        return;
    if (row == 0)
        a->table[a->place[entry]] = n;
    if (record == VXK_FREE_TILE)
        seen = 255;
    else if (record != VXK_NONE)
        seen = (uint32_t)(a->samples.grid.leaves[record].free[row >> 3] >> ((row & 7) << 3)) & 255;
    valid = vxk_row(&a->samples, record, row, t, &minus);
    out = a->pages[n / VXK_ESDF_PAGE] + (uint64_t)(n % VXK_ESDF_PAGE) * 512 + row * 8;
    for (uint32_t z = 0; z < 8; z++) {
        uint32_t state = minus >> z & 1            ? VXK_STATE_OCCUPIED
                         : (valid | seen) >> z & 1 ? VXK_STATE_FREE
                                                   : VXK_STATE_UNKNOWN;
        uint32_t m = in[z] <= a->limit ? vxk_esdf_magnitude(in[z], a->scale) : (uint32_t)VXK_ESDF_FAR;
        out[z] = (uint16_t)(state << 14 | m);
    }
}

#endif
