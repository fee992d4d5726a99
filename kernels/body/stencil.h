/*
 * stencil.h - neighbours of the voxels of an index grid, and sums over them.
 *
 * A voxel's neighbours up to three steps away are in its leaf or in the up to 26 leaves round it.  Each leaf
 * is looked up when a neighbour in it is asked for, once for all voxels of a block that share it.
 */
#ifndef VXK_BODY_STENCIL_H
#define VXK_BODY_STENCIL_H

#include "vbm_block.h"

/* Number of the leaf (dx, dy, dz) cells (-1, 0, 1) from the one at `place`, or VXK_NONE. */
VXK_FN uint32_t vxk_index_beside(const struct vxk_index_grid *g, uint32_t place, int32_t dx, int32_t dy,
                                 int32_t dz)
{
    uint32_t chunk = place >> 12, w = place >> 6 & 63, cell = place & 63;
    int32_t x = (int32_t)(w >> 4 << 2 | cell >> 4) + dx, y = (int32_t)((w & 12) | (cell >> 2 & 3)) + dy,
            z = (int32_t)((w & 3) << 2 | (cell & 3)) + dz;
    if ((uint32_t)(x | y | z) >= 16) { /* in another chunk */
        int32_t cx, cy, cz;
        vxk_key_xyz(g->keys[chunk], &cx, &cy, &cz);
        chunk = vxk_index_chunk_at(g, cx + (x >> 4), cy + (y >> 4), cz + (z >> 4));
    }
    x &= 15;
    y &= 15;
    z &= 15;
    return vxk_index_leaf(g, chunk, (uint32_t)(x >> 2 << 4 | y >> 2 << 2 | z >> 2),
                          (uint32_t)((x & 3) << 4 | (y & 3) << 2 | (z & 3)));
}

/* Rank of voxel n in its leaf, or VXK_NONE when the leaf does not have it. */
VXK_FN uint32_t vxk_leaf_rank_of(const struct vxk_index_grid *g, uint32_t leaf, uint32_t n)
{
    uint64_t mask = g->masks[(uint64_t)leaf * 8 + (n >> 6)];
    if (!(mask >> (n & 63) & 1))
        return VXK_NONE;
    return vxk_index_before(g->prefix[leaf], n >> 6) + vxk_popc64(mask & ((1ull << (n & 63)) - 1));
}

/* A leaf and those round it, as far as they were asked for: leaf (dx, dy, dz) is entry 9 dx + 3 dy + dz + 13.
 */
struct vxk_near {
    uint64_t first[27]; /* its first voxel */
    uint32_t leaf[27];
    uint32_t known; /* a bit for each entry */
    uint32_t place;
};
VXK_FN void vxk_near_begin(struct vxk_near *n, const struct vxk_index_grid *g, uint32_t leaf)
{
    n->leaf[13] = leaf;
    n->first[13] = vxk_index_first(g, leaf);
    n->known = 1u << 13;
    n->place = g->place[leaf];
}
/* Number of the voxel at (x, y, z), counted from the leaf's first corner, each -8 .. 15; or VXK_NO_VOXEL. */
VXK_FN uint64_t vxk_near_voxel(struct vxk_near *n, const struct vxk_index_grid *g, int32_t x, int32_t y,
                               int32_t z)
{
    int32_t dx = x >> 3, dy = y >> 3, dz = z >> 3, e = 9 * dx + 3 * dy + dz + 13;
    uint32_t rank;
    if (!(n->known >> e & 1)) {
        n->known |= 1u << e;
        n->leaf[e] = vxk_index_beside(g, n->place, dx, dy, dz);
        n->first[e] = n->leaf[e] == VXK_NONE ? 0 : vxk_index_first(g, n->leaf[e]);
    }
    if (n->leaf[e] == VXK_NONE)
        return VXK_NO_VOXEL;
    rank = vxk_leaf_rank_of(g, n->leaf[e], vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z));
    return rank == VXK_NONE ? VXK_NO_VOXEL : n->first[e] + rank;
}

/* ------------------------------------------------------------------ weighted sums */

/*
 * Neighbourhoods: the faces; faces and edges; faces, edges and corners; three steps along each axis.  w[0] is
 * the weight of the voxel; w[1..3] those of faces, edges, corners, or of one, two, three steps.
 */
enum { VXK_SUM_FACES = 7, VXK_SUM_EDGES = 18, VXK_SUM_AXES = 19, VXK_SUM_BOX = 27 };

struct vxk_vbm_convolve_args {
    struct vxk_vbm v;
    const float *in; /* [voxels of the batch] */
    float *out;      /* the same; not `in` */
    float w[4];
    float missing; /* value of voxels that the grid doesn't have */
    uint32_t kind; /* VXK_SUM_* */
};

struct vxk_sum {
    const struct vxk_vbm_convolve_args *a;
    const struct vxk_vbm_grid *vg;
    struct vxk_near near;
    int32_t x, y, z; /* the voxel in its leaf */
};
VXK_FN float vxk_sum_tap(struct vxk_sum *s, int32_t dx, int32_t dy, int32_t dz)
{
    uint64_t v = vxk_near_voxel(&s->near, &s->vg->g, s->x + dx, s->y + dy, s->z + dz);
    return v == VXK_NO_VOXEL ? s->a->missing : s->a->in[s->vg->voxel + v];
}
/* The neighbours k steps along y and z in the plane dx, and the diagonal ones in it. */
VXK_FN float vxk_sum_cross(struct vxk_sum *s, int32_t dx, int32_t k)
{
    return (vxk_sum_tap(s, dx, -k, 0) + vxk_sum_tap(s, dx, k, 0)) +
           (vxk_sum_tap(s, dx, 0, -k) + vxk_sum_tap(s, dx, 0, k));
}
VXK_FN float vxk_sum_diagonals(struct vxk_sum *s, int32_t dx)
{
    return (vxk_sum_tap(s, dx, -1, -1) + vxk_sum_tap(s, dx, -1, 1)) +
           (vxk_sum_tap(s, dx, 1, -1) + vxk_sum_tap(s, dx, 1, 1));
}
/* The sum, in one order: by kind of neighbour, the plane of the voxel before those beside it. */
VXK_FN float vxk_sum(struct vxk_sum *s)
{
    const float *w = s->a->w;
    float r = w[0] * vxk_sum_tap(s, 0, 0, 0) +
              w[1] * (vxk_sum_cross(s, 0, 1) + (vxk_sum_tap(s, -1, 0, 0) + vxk_sum_tap(s, 1, 0, 0)));
    if (s->a->kind == VXK_SUM_AXES) {
        for (int32_t k = 2; k <= 3; k++)
            r = r + w[k] * (vxk_sum_cross(s, 0, k) + (vxk_sum_tap(s, -k, 0, 0) + vxk_sum_tap(s, k, 0, 0)));
        return r;
    }
    if (s->a->kind >= VXK_SUM_EDGES)
        r = r + w[2] * (vxk_sum_diagonals(s, 0) + (vxk_sum_cross(s, -1, 1) + vxk_sum_cross(s, 1, 1)));
    if (s->a->kind == VXK_SUM_BOX)
        r = r + w[3] * (vxk_sum_diagonals(s, -1) + vxk_sum_diagonals(s, 1));
    return r;
}

/* Element: a block; launched over all of them.  The weighted sum round each of its voxels. */
VXK_FN void vxk_vbm_convolve(const struct vxk_vbm_convolve_args *a, uint32_t i)
{
    const struct vxk_vbm_block *b = &a->v.blocks[i];
    uint32_t n = vxk_vbm_count(b), leaf = VXK_NONE;
    struct vxk_vbm_cursor c;
    struct vxk_sum s;
    if (!n)
        return;
    s.a = a;
    s.vg = vxk_vbm_grid_of(&a->v, b);
    vxk_vbm_cursor_begin(&c, &s.vg->g, b);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t v = vxk_vbm_cursor_next(&c);
        if (c.leaf != leaf) {
            leaf = c.leaf;
            vxk_near_begin(&s.near, &s.vg->g, leaf);
        }
        s.x = (int32_t)(v >> 6);
        s.y = (int32_t)(v >> 3 & 7);
        s.z = (int32_t)(v & 7);
        a->out[b->voxel + t] = vxk_sum(&s);
    }
}

#endif
