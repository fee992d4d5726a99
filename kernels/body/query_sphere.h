/*
 * query_sphere.h - clearance of spheres, and what the voxels that they meet are.
 *
 * The voxel cubes that a sphere meets are gone through by word, cell, slab and row.  The outlines say which
 * cells are worth it; a load of a slab's masks tells of 64 voxels.  Touching counts as meeting.
 */
#ifndef VXK_BODY_QUERY_SPHERE_H
#define VXK_BODY_QUERY_SPHERE_H

#include "query_outline.h"

struct vxk_ball {
    struct vxk_spot at;
    float r;       /* voxels */
    int32_t lo[3]; /* voxels whose cubes it can meet, from the centre's voxel */
    int32_t hi[3];
    uint32_t status; /* VXK_Q_TOUCHES_UNKNOWN, VXK_Q_COLLIDES: not looked for any more */
};
enum { VXK_BALL_ALL = VXK_Q_TOUCHES_UNKNOWN | VXK_Q_COLLIDES };

/* Distance from the centre to cubes from .. to along an axis, voxels from the centre's voxel. */
VXK_FN float vxk_ball_gap(const struct vxk_ball *b, int axis, int32_t from, int32_t to)
{
    float f = b->at.f[axis];
    return vxk_max(vxk_max((float)from - f, f - (float)(to + 1)), 0.0f);
}
/* Squared distance to the box of `size` voxels a side whose first voxel is `first`, from the centre's voxel.
 */
VXK_FN float vxk_ball_box(const struct vxk_ball *b, const int32_t first[3], int32_t size)
{
    float s = 0.0f;
    for (int a = 0; a < 3; a++) {
        float gap = vxk_ball_gap(b, a, first[a], first[a] + size - 1);
        s = s + gap * gap;
    }
    return s;
}

/* A row of a leaf whose first voxel is `first`: z from .. to, in the leaf. */
VXK_FN void vxk_ball_row(const struct vxk_query *q, struct vxk_ball *b, const struct vxk_leaf *l,
                         const int32_t first[3], uint32_t row, int32_t from, int32_t to)
{
    uint32_t shift = (row & 7) << 3, mask = (0xffu >> (7 - to)) & (0xffu << from);
    uint32_t active = (uint32_t)(l->active[row >> 3] >> shift) & mask,
             seen = (uint32_t)(l->free[row >> 3] >> shift) & mask;
    float cx = (float)(first[0] + (int32_t)(row >> 3)) + 0.5f - b->at.f[0],
          cy = (float)(first[1] + (int32_t)(row & 7)) + 0.5f - b->at.f[1];
    if ((active | seen) != mask)
        b->status |= VXK_Q_TOUCHES_UNKNOWN;
    if ((b->status & VXK_Q_COLLIDES) && !q->occupancy)
        return;
    for (; active; active &= active - 1) {
        uint32_t z = vxk_ctz32(active),
                 v = q->grid.values[vxk_leaf_value_index(l, vxk_leaf_rank(l, row << 3 | z))];
        uint32_t state = vxk_evidence(VXK_ACTIVE, v, q->occupancy);
        float cz = (float)(first[2] + (int32_t)z) + 0.5f - b->at.f[2];
        if (state == VXK_STATE_OCCUPIED && cx * cx + cy * cy + cz * cz <= b->r * b->r)
            b->status |= VXK_Q_COLLIDES;
        if (state == VXK_STATE_UNKNOWN)
            b->status |= VXK_Q_TOUCHES_UNKNOWN;
    }
}

/* The rows of a slab x (a leaf's mask words) that are worth a look, bit 8 y of each: with the surfaces found,
 * those that have voxels which are neither known to be free nor measured. */
VXK_FN uint64_t vxk_ball_slab(const struct vxk_query *q, const struct vxk_ball *b, const struct vxk_leaf *l,
                              int32_t x)
{
    uint64_t rows = b->status & VXK_Q_COLLIDES ? ~(l->active[x] | l->free[x]) : ~l->free[x];
    if (q->occupancy) /* a value may say nothing */
        rows = ~l->free[x];
    rows |= rows >> 4;
    rows |= rows >> 2;
    rows |= rows >> 1;
    return rows & 0x0101010101010101ull;
}

/* The rows of slab x of a leaf that the ball meets. */
VXK_FN void vxk_ball_leaf_slab(const struct vxk_query *q, struct vxk_ball *b, const struct vxk_leaf *l,
                               const int32_t first[3], int32_t x)
{
    float gx = vxk_ball_gap(b, 0, first[0] + x, first[0] + x);
    uint64_t rows = vxk_ball_slab(q, b, l, x);
    if (!rows)
        return;
    for (int32_t y = vxk_maxi(b->lo[1] - first[1], 0); y < 8 && first[1] + y <= b->hi[1]; y++) {
        float gy = vxk_ball_gap(b, 1, first[1] + y, first[1] + y), left = b->r * b->r - gx * gx - gy * gy, s;
        int32_t from, to;
        if (left < 0.0f || !(rows >> (8 * y) & 1))
            continue;
        s = vxk_sqrt(left);
        from = (int32_t)vxk_ceil(b->at.f[2] - s) - 1 - first[2];
        to = (int32_t)vxk_floor(b->at.f[2] + s) - first[2];
        from = vxk_maxi(from, 0);
        to = vxk_mini(to, 7);
        if (from <= to)
            vxk_ball_row(q, b, l, first, (uint32_t)(x << 3 | y), from, to);
        if (b->status == VXK_BALL_ALL)
            return;
    }
}
/* The slabs of a leaf that the ball meets. */
VXK_FN void vxk_ball_leaf(const struct vxk_query *q, struct vxk_ball *b, const struct vxk_leaf *l,
                          const int32_t first[3])
{
    for (int32_t x = vxk_maxi(b->lo[0] - first[0], 0);
         x < 8 && first[0] + x <= b->hi[0] && b->status != VXK_BALL_ALL; x++)
        vxk_ball_leaf_slab(q, b, l, first, x);
}

/* The cells among `cells` of a word that the ball meets; `first` = the word's first voxel, from the centre's
 * voxel. */
VXK_FN void vxk_ball_word(const struct vxk_query *q, struct vxk_ball *b, const struct vxk_word *w,
                          uint64_t cells, const int32_t first[3])
{
    for (; cells && b->status != VXK_BALL_ALL; cells &= cells - 1) {
        uint32_t cell = vxk_ctz64(cells);
        int32_t at[3];
        at[0] = first[0] + (int32_t)(cell >> 4) * 8;
        at[1] = first[1] + (int32_t)(cell >> 2 & 3) * 8;
        at[2] = first[2] + (int32_t)(cell & 3) * 8;
        if (vxk_ball_box(b, at, 8) > b->r * b->r)
            continue;
        if (w && (w->leaf >> cell & 1))
            vxk_ball_leaf(q, b, vxk_leaf_at(&q->grid, w, cell), at);
        else if (!w || !(w->tile >> cell & 1))
            b->status |= VXK_Q_TOUCHES_UNKNOWN;
    }
}

/* The voxels whose cubes the ball can meet. */
VXK_FN void vxk_ball_begin(struct vxk_ball *b, struct vxk_extent *box)
{
    for (int a = 0; a < 3; a++) {
        b->lo[a] = (int32_t)vxk_ceil(b->at.f[a] - b->r) - 1;
        b->hi[a] = (int32_t)vxk_floor(b->at.f[a] + b->r);
        box->lo[a] = b->at.v[a] + b->lo[a];
        box->hi[a] = b->at.v[a] + b->hi[a];
    }
}
/* The cells of the word at `base` that are worth a look by its outline. */
VXK_FN uint64_t vxk_ball_cells(const struct vxk_ball *b, const struct vxk_outline *o,
                               const struct vxk_extent *box, const int32_t base[3])
{
    uint64_t cells =
        (b->status & VXK_Q_TOUCHES_UNKNOWN ? 0 : o->unknown) | (b->status & VXK_Q_COLLIDES ? 0 : o->occupied);
    return cells & vxk_extent_cells(box, base);
}
/* Looks at these cells; c: the map's chunk, or NULL. */
VXK_FN void vxk_ball_look(const struct vxk_query *q, struct vxk_ball *b, const struct vxk_chunk *c,
                          uint64_t cells, const int32_t base[3])
{
    int32_t first[3];
    for (int a = 0; a < 3; a++)
        first[a] = base[a] - b->at.v[a];
    vxk_ball_word(q, b,
                  c ? &c->word[(base[0] >> 5 & 3) << 4 | (base[1] >> 5 & 3) << 2 | (base[2] >> 5 & 3)]
                    : (const struct vxk_word *)0,
                  cells, first);
}
/* Goes through the words that the ball meets. */
VXK_FN void vxk_ball_scan(const struct vxk_query *q, struct vxk_ball *b)
{
    struct vxk_esdf_cursor cursor;
    struct vxk_extent box;
    struct vxk_outline o;
    int32_t base[3];
    vxk_esdf_cursor_init(&cursor);
    vxk_ball_begin(b, &box);
    for (base[0] = box.lo[0] & ~31; base[0] <= box.hi[0]; base[0] += 32)
        for (base[1] = box.lo[1] & ~31; base[1] <= box.hi[1]; base[1] += 32)
            for (base[2] = box.lo[2] & ~31; base[2] <= box.hi[2]; base[2] += 32) {
                uint64_t cells;
                if (b->status == VXK_BALL_ALL)
                    return;
                vxk_outline_at(q, &cursor, base, &o);
                cells = vxk_ball_cells(b, &o, &box, base);
                if (cells)
                    vxk_ball_look(q, b,
                                  cursor.key == VXK_NO_KEY ? (const struct vxk_chunk *)0
                                                           : vxk_find_chunk(&q->grid, cursor.key),
                                  cells, base);
            }
}

/* Element: a sphere. */
struct vxk_query_spheres_args {
    struct vxk_query q;
    const float *spheres; /* [n][4] centre, radius (checked) */
    struct vxk_point_answer *out;
};
VXK_FN void vxk_query_spheres(const struct vxk_query_spheres_args *a, uint32_t i)
{
    const float *s = a->spheres + 4 * (uint64_t)i;
    struct vxk_point_answer *out = &a->out[i];
    struct vxk_ball b;
    float d, g[3];
    if (!vxk_locate(&a->q, s, &b.at)) {
        vxk_answer_nothing(&a->q, VXK_Q_OUTSIDE | VXK_Q_TOUCHES_UNKNOWN, out);
        return;
    }
    b.r = (float)((double)s[3] / a->q.voxel_m);
    out->status = vxk_probe(&a->q, &b.at, &d, g, &out->state);
    b.status = (out->status & VXK_Q_DISTANCE) && d <= b.r ? VXK_Q_COLLIDES : 0;
    vxk_ball_scan(&a->q, &b);
    out->status |= b.status;
    out->distance_m = out->status & VXK_Q_DISTANCE ? d * (float)a->q.voxel_m - s[3] : a->q.undefined;
    for (int k = 0; k < 3; k++)
        out->gradient[k] = g[k];
}

#endif
