/*
 * query_box.h - how many voxels of a box are free, occupied and unknown.
 *
 * A box is walked by words of 32^3 voxels, cells and rows: what is uniform costs one step.  64 elements share
 * a box.
 */
#ifndef VXK_BODY_QUERY_BOX_H
#define VXK_BODY_QUERY_BOX_H

#include "query_point.h"

struct vxk_box_answer { /* vx_box_answer */
    uint64_t n[3];      /* by what: free, occupied, unknown */
    uint32_t status, reserved;
};
enum { VXK_BOX_FREE, VXK_BOX_OCCUPIED, VXK_BOX_UNKNOWN };

struct vxk_query_boxes_args {
    struct vxk_query q;
    const float *boxes; /* [n][6] */
    struct vxk_box_answer *out;
};
struct vxk_box {
    int32_t lo[3], hi[3]; /* voxels */
};

/* The voxels whose cubes a box meets; *beyond = how many of them lie outside the voxel range.  False when it
 * is no box. */
VXK_FN int vxk_box_read(const struct vxk_query *q, const float *p, struct vxk_box *b, uint64_t *beyond)
{
    double all = 1.0, inside = 1.0;
    for (int a = 0; a < 3; a++) {
        double lo = ((double)p[a] + q->offset_m[a]) / q->voxel_m,
               hi = ((double)p[3 + a] + q->offset_m[a]) / q->voxel_m;
        double first, last;
        int64_t i, j;
        if (!(lo <= hi && lo > -1e12 && hi < 1e12))
            return 0;
        i = (int64_t)lo;
        first = (double)((double)i > lo ? i - 1 : i);
        j = (int64_t)hi;
        last = (double)((double)j > hi ? j - 1 : j);
        if (last == hi && last > first)
            last = last - 1.0; /* touches the next voxel and does not meet it */
        all = all * (last - first + 1.0);
        first = first < -134217728.0 ? -134217728.0 : first;
        last = last > 134217727.0 ? 134217727.0 : last;
        inside = inside * (last >= first ? last - first + 1.0 : 0.0);
        b->lo[a] = (int32_t)(first > 134217727.0 ? 134217727.0 : first);
        b->hi[a] = (int32_t)(last < -134217728.0 ? -134217728.0 : last);
    }
    *beyond = (uint64_t)(all - inside);
    if (inside == 0.0) /* clamped to the range's border, whose voxels it does not meet */
        b->hi[0] = b->lo[0] - 1;
    return 1;
}

/* Counts the voxels of a leaf within [lo, hi] (0 .. 7 on each axis). */
VXK_FN void vxk_box_leaf(const struct vxk_query *q, const struct vxk_leaf *l, const int32_t lo[3],
                         const int32_t hi[3], uint64_t n[3])
{
    uint32_t mask = (0xffu >> (7 - hi[2])) & (0xffu << lo[2]);
    for (int32_t x = lo[0]; x <= hi[0]; x++)
        for (int32_t y = lo[1]; y <= hi[1]; y++) {
            uint32_t row = (uint32_t)(x << 3 | y), shift = (row & 7) << 3;
            uint32_t active = (uint32_t)(l->active[row >> 3] >> shift) & mask,
                     seen = (uint32_t)(l->free[row >> 3] >> shift) & mask;
            n[VXK_BOX_FREE] += vxk_popc32(seen);
            n[VXK_BOX_UNKNOWN] += vxk_popc32(mask & ~(active | seen));
            for (; active; active &= active - 1) {
                uint32_t z = vxk_ctz32(active);
                uint32_t v = q->grid.values[vxk_leaf_value_index(l, vxk_leaf_rank(l, row << 3 | z))],
                         state = vxk_evidence(VXK_ACTIVE, v, q->occupancy);
                n[VXK_BOX_FREE] += state == VXK_STATE_FREE;
                n[VXK_BOX_OCCUPIED] += state == VXK_STATE_OCCUPIED;
                n[VXK_BOX_UNKNOWN] += state == VXK_STATE_UNKNOWN;
            }
        }
}
/* The part of [lo, hi] in the block of `size` voxels from `first`, from its first voxel: how many voxels. */
VXK_FN uint64_t vxk_box_clip(const int32_t lo[3], const int32_t hi[3], const int32_t first[3], int32_t size,
                             int32_t from[3], int32_t to[3])
{
    uint64_t n = 1;
    for (int a = 0; a < 3; a++) {
        from[a] = vxk_maxi(lo[a] - first[a], 0);
        to[a] = vxk_mini(hi[a] - first[a], size - 1);
        n *= from[a] <= to[a] ? (uint64_t)(to[a] - from[a] + 1) : 0;
    }
    return n;
}
/* The part of a box in a word whose first voxel is `first`. */
VXK_FN void vxk_box_word(const struct vxk_query *q, const struct vxk_word *w, const struct vxk_box *b,
                         const int32_t first[3], uint64_t n[3])
{
    int32_t from[3], to[3], at[3], lo[3], hi[3];
    uint64_t all = vxk_box_clip(b->lo, b->hi, first, 32, from, to);
    if (w->tile == ~0ull)
        n[VXK_BOX_FREE] += all;
    else if (!(w->tile | w->leaf))
        n[VXK_BOX_UNKNOWN] += all;
    if (w->tile == ~0ull || !(w->tile | w->leaf))
        return;
    for (int32_t x = from[0] >> 3; x <= to[0] >> 3; x++)
        for (int32_t y = from[1] >> 3; y <= to[1] >> 3; y++)
            for (int32_t z = from[2] >> 3; z <= to[2] >> 3; z++) {
                uint32_t cell = (uint32_t)(x << 4 | y << 2 | z);
                at[0] = x * 8;
                at[1] = y * 8;
                at[2] = z * 8;
                all = vxk_box_clip(from, to, at, 8, lo, hi);
                if (w->leaf >> cell & 1)
                    vxk_box_leaf(q, vxk_leaf_at(&q->grid, w, cell), lo, hi, n);
                else
                    n[w->tile >> cell & 1 ? VXK_BOX_FREE : VXK_BOX_UNKNOWN] += all;
            }
}
/* Element: box i >> 6, every 64th word of it from i & 63 on. */
VXK_FN void vxk_query_boxes(const struct vxk_query_boxes_args *a, uint32_t i)
{
    struct vxk_box_answer *out = &a->out[i >> 6];
    struct vxk_box b;
    uint64_t n[3], beyond, key;
    uint32_t part = i & 63, ny, nz, words;
    int32_t w[3], first[3], from[3], to[3];
    if (!vxk_box_read(&a->q, a->boxes + 6 * (uint64_t)(i >> 6), &b, &beyond)) {
        if (part == 0)
            out->status = VXK_Q_OUTSIDE;
        return;
    }
    n[0] = n[1] = n[2] = 0;
    if (part == 0 && beyond) {
        out->status = VXK_Q_OUTSIDE;
        n[VXK_BOX_UNKNOWN] = beyond;
    }
    words = b.lo[0] > b.hi[0] || b.lo[1] > b.hi[1] || b.lo[2] > b.hi[2]
                ? 0
                : (uint32_t)((b.hi[0] >> 5) - (b.lo[0] >> 5) + 1);
    ny = (uint32_t)((b.hi[1] >> 5) - (b.lo[1] >> 5) + 1);
    nz = (uint32_t)((b.hi[2] >> 5) - (b.lo[2] >> 5) + 1);
    for (uint32_t k = part; k < words * ny * nz; k += 64) {
        const struct vxk_chunk *c = (const struct vxk_chunk *)0;
        w[0] = (b.lo[0] >> 5) + (int32_t)(k / nz / ny);
        w[1] = (b.lo[1] >> 5) + (int32_t)(k / nz % ny);
        w[2] = (b.lo[2] >> 5) + (int32_t)(k % nz);
        for (int axis = 0; axis < 3; axis++)
            first[axis] = w[axis] * 32;
        if (vxk_cell_key(w[0] * 4, w[1] * 4, w[2] * 4, &key))
            c = vxk_find_chunk(&a->q.grid, key);
        if (c)
            vxk_box_word(&a->q, &c->word[(w[0] & 3) << 4 | (w[1] & 3) << 2 | (w[2] & 3)], &b, first, n);
        else
            n[VXK_BOX_UNKNOWN] += vxk_box_clip(b.lo, b.hi, first, 32, from, to);
    }
    for (int k = 0; k < 3; k++)
        if (n[k])
            vxk_atomic_add64(&out->n[k], n[k]);
}

#endif
