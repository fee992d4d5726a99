/*
 * query_box.h - how many voxels of boxes are free and how many occupied; the others are unknown.
 *
 * Boxes come in whole voxels.  What is uniform costs one step: a word of 32^3 voxels that holds no leaf, a
 * cell, a row.  A small box is looked up where it lies.  A large one is cut at the map's chunks: it costs
 * what the map holds inside it, not what it measures, and its parts go to the device a few leaves at a time.
 */
#ifndef VXK_BODY_QUERY_BOX_H
#define VXK_BODY_QUERY_BOX_H

#include "query_outline.h"

struct vxk_box_answer { /* vx_box_answer */
    uint64_t n[3];      /* free, occupied, unknown */
    uint32_t status, reserved;
};
/* What is counted of a box or part: fewer than 2^32 voxels. */
struct vxk_box_count {
    uint32_t free, occupied;
};

/* Counts the voxels of a leaf within [lo, hi] (0 .. 7 on each axis). */
VXK_FN void vxk_box_leaf(const struct vxk_query *q, const struct vxk_leaf *l, const int32_t lo[3],
                         const int32_t hi[3], struct vxk_box_count *n)
{
    uint32_t mask = (0xffu >> (7 - hi[2])) & (0xffu << lo[2]);
    for (int32_t x = lo[0]; x <= hi[0]; x++)
        for (int32_t y = lo[1]; y <= hi[1]; y++) {
            uint32_t row = (uint32_t)(x << 3 | y), shift = (row & 7) << 3;
            uint32_t active = (uint32_t)(l->active[row >> 3] >> shift) & mask;
            n->free += vxk_popc32((uint32_t)(l->free[row >> 3] >> shift) & mask);
            for (; active; active &= active - 1) {
                uint32_t z = vxk_ctz32(active);
                uint32_t v = q->grid.values[vxk_leaf_value_index(l, vxk_leaf_rank(l, row << 3 | z))],
                         state = vxk_evidence(VXK_ACTIVE, v, q->occupancy);
                n->free += state == VXK_STATE_FREE;
                n->occupied += state == VXK_STATE_OCCUPIED;
            }
        }
}
/* All of a leaf: its values lie in a row, on at most three pages. */
VXK_FN void vxk_box_whole_leaf(const struct vxk_query *q, const struct vxk_leaf *l, struct vxk_box_count *n)
{
    uint32_t below = 0, above = 0, zero;
    for (uint32_t x = 0; x < 8; x++)
        n->free += vxk_popc64(l->free[x]);
    for (uint32_t k = 0, run; k < l->n_active; k += run) {
        const uint32_t *v = &q->grid.values[vxk_leaf_value_index(l, k)];
        run = vxk_minu(256 - ((l->first + k) & 255), l->n_active - k);
        for (uint32_t j = 0; j < run; j++) {
            int32_t t = vxk_tsdf_distance(v[j]);
            below += t < 0;
            above += t > 0;
        }
    }
    zero = l->n_active - below - above; /* outside of a surface; log-odds of 0 say nothing */
    n->free += q->occupancy ? below : above + zero;
    n->occupied += q->occupancy ? above : below;
}
/* The voxels [from, to] (0 .. 31 on each axis) of a word, in the cells among `pick`. */
VXK_FN void vxk_box_word(const struct vxk_query *q, const struct vxk_word *w, uint64_t pick,
                         const int32_t from[3], const int32_t to[3], struct vxk_box_count *n)
{
    int32_t lo[3], hi[3], first[3], last[3];
    uint64_t whole, cells;
    for (int a = 0; a < 3; a++) {
        lo[a] = from[a] >> 3;
        hi[a] = to[a] >> 3;
        first[a] = (from[a] + 7) >> 3;
        last[a] = ((to[a] + 1) >> 3) - 1;
    }
    whole = vxk_cell_span(first, last);
    n->free += 512 * vxk_popc64(w->tile & whole & pick);
    cells = vxk_cell_span(lo, hi) & pick;
    for (cells &= w->leaf | (w->tile & ~whole); cells; cells &= cells - 1) {
        uint32_t cell = vxk_ctz64(cells), size = 1;
        if (w->leaf & whole & 1ull << cell) {
            vxk_box_whole_leaf(q, vxk_leaf_at(&q->grid, w, cell), n);
            continue;
        }
        for (int a = 0; a < 3; a++) {
            int32_t at = (int32_t)(cell >> (4 - 2 * a) & 3) * 8;
            lo[a] = vxk_maxi(from[a] - at, 0);
            hi[a] = vxk_mini(to[a] - at, 7);
            size *= (uint32_t)(hi[a] - lo[a] + 1);
        }
        if (w->leaf >> cell & 1)
            vxk_box_leaf(q, vxk_leaf_at(&q->grid, w, cell), lo, hi, n);
        else
            n->free += size;
    }
}
VXK_FN void vxk_box_add(struct vxk_box_count *to, const struct vxk_box_count *n)
{
    if (n->free)
        vxk_atomic_add32(&to->free, n->free);
    if (n->occupied)
        vxk_atomic_add32(&to->occupied, n->occupied);
}

/* Small boxes, of at most 4096 cells.  Element: box i >> 6, every 64th word of it from i & 63 on. */
struct vxk_query_boxes_args {
    struct vxk_query q;
    const struct vxk_extent *boxes; /* in the voxel range */
    struct vxk_box_count *out;      /* zeroed */
};
VXK_FN void vxk_query_boxes(const struct vxk_query_boxes_args *a, uint32_t i)
{
    const struct vxk_extent *b = &a->boxes[i >> 6];
    struct vxk_box_count n;
    uint32_t nx = (uint32_t)((b->hi[0] >> 5) - (b->lo[0] >> 5) + 1),
             ny = (uint32_t)((b->hi[1] >> 5) - (b->lo[1] >> 5) + 1),
             nz = (uint32_t)((b->hi[2] >> 5) - (b->lo[2] >> 5) + 1);
    n.free = n.occupied = 0;
    for (uint32_t k = i & 63; k < nx * ny * nz; k += 64) {
        const struct vxk_chunk *c;
        int32_t w[3], from[3], to[3];
        w[0] = (b->lo[0] >> 5) + (int32_t)(k / nz / ny);
        w[1] = (b->lo[1] >> 5) + (int32_t)(k / nz % ny);
        w[2] = (b->lo[2] >> 5) + (int32_t)(k % nz);
        c = vxk_find_chunk(&a->q.grid, vxk_key(w[0] >> 2, w[1] >> 2, w[2] >> 2));
        if (!c)
            continue;
        for (int axis = 0; axis < 3; axis++) {
            from[axis] = vxk_maxi(b->lo[axis] - w[axis] * 32, 0);
            to[axis] = vxk_mini(b->hi[axis] - w[axis] * 32, 31);
        }
        vxk_box_word(&a->q, &c->word[(w[0] & 3) << 4 | (w[1] & 3) << 2 | (w[2] & 3)], ~0ull, from, to, &n);
    }
    vxk_box_add(&a->out[i >> 6], &n);
}

/* The part of a box in a chunk, voxels 0 .. 127 on each axis. */
struct vxk_box_part {
    uint32_t version;
    uint8_t lo[3], hi[3], reserved[2];
};
/* Element: part i >> 8, word i >> 2 & 63 of its chunk, the cells of that with x = i & 3. */
struct vxk_query_box_parts_args {
    struct vxk_query q;
    const struct vxk_box_part *parts;
    struct vxk_box_count *out; /* zeroed */
};
VXK_FN void vxk_query_box_parts(const struct vxk_query_box_parts_args *a, uint32_t i)
{
    const struct vxk_box_part *p = &a->parts[i >> 8];
    uint32_t word = i >> 2 & 63, x = i & 3;
    const struct vxk_word *w = &a->q.grid.chunks[p->version].word[word];
    struct vxk_box_count n;
    int32_t from[3], to[3];
    for (int axis = 0; axis < 3; axis++) {
        int32_t first = (int32_t)(word >> (4 - 2 * axis) & 3) * 32;
        from[axis] = vxk_maxi((int32_t)p->lo[axis] - first, 0);
        to[axis] = vxk_mini((int32_t)p->hi[axis] - first, 31);
        if (from[axis] > to[axis])
            return;
    }
    if (!((w->leaf | w->tile) >> (16 * x) & 0xffff))
        return;
    n.free = n.occupied = 0;
    vxk_box_word(&a->q, w, 0xffffull << (16 * x), from, to, &n);
    vxk_box_add(&a->out[i >> 8], &n);
}

/* What there is to cut large boxes at.  Element: a chunk. */
struct vxk_box_chunk {
    uint64_t key;
    uint32_t version, n_leaf;
};
struct vxk_query_box_chunks_args {
    struct vxk_grid grid;
    const uint32_t *versions;
    struct vxk_box_chunk *out;
};
VXK_FN void vxk_query_box_chunks(const struct vxk_query_box_chunks_args *a, uint32_t i)
{
    const struct vxk_chunk *c = &a->grid.chunks[a->versions[i]];
    a->out[i].key = c->key;
    a->out[i].version = a->versions[i];
    a->out[i].n_leaf = c->n_leaf;
}

#endif
