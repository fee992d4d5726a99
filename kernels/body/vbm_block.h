/*
 * vbm_block.h - the VoxelBlockManager: from a running voxel number back to leaf and voxel.
 *
 * The voxels of every chunk are cut into blocks of 128.  A block knows the leaf of its first voxel and has a
 * bit for each voxel with which a new leaf begins, so 128 threads find their voxels without a search.  Chunk
 * c (of all chunks of all grids of a batch) begins at block floor(voxels before it / 128) + c: room for
 * everyone without a scan, at the price of at most two blocks a chunk that hold nothing.
 *
 * 32 bytes a block, a quarter of a byte a voxel; built for a whole batch of grids in one launch.
 *
 * Source: Sifakis et al., "Dynamic GPU Sparse Grids and Voxel-sequential Processing in NanoVDB", 2026,
 * section 4.
 */
#ifndef VXK_BODY_VBM_BLOCK_H
#define VXK_BODY_VBM_BLOCK_H

#include "index_grid.h"

enum { VXK_VBM_WIDTH = 128, VXK_VBM_MAX_GRIDS = 256 };

struct vxk_vbm_block {
    /* bit t (t > 0): voxel t of the block is the first one of the next leaf.  Aligned: two stores a block. */
    VXK_ALIGN(16) uint64_t jump[2];
    uint64_t voxel; /* number of voxel 0, counted over the batch */
    uint32_t leaf;  /* leaf of voxel 0, in its grid */
    uint32_t info;  /* see below */
};
/* info: voxels of the leaf before voxel 0 (9 bits), voxels in the block (8 bits, 0 = unused), grid. */
VXK_FN uint32_t vxk_vbm_skip(const struct vxk_vbm_block *b)
{
    return b->info & 511;
}
VXK_FN uint32_t vxk_vbm_count(const struct vxk_vbm_block *b)
{
    return b->info >> 9 & 255;
}

/* A grid of a batch. */
struct vxk_vbm_grid {
    struct vxk_index_grid g;
    uint64_t voxel; /* voxels, leaves and chunks of the grids before it */
    uint32_t leaf, chunk;
};
struct vxk_vbm {
    const struct vxk_vbm_grid *grids; /* [n_grids]; not read when there is one */
    struct vxk_vbm_block *blocks;     /* [n_blocks] */
    uint32_t n_grids, n_blocks;
    uint32_t n_leaves, n_chunks; /* of the batch */
    struct vxk_vbm_grid one;     /* the grid, when there is one */
};
VXK_FN const struct vxk_vbm_grid *vxk_vbm_grid_at(const struct vxk_vbm *v, uint32_t k)
{
    return v->n_grids == 1 ? &v->one : &v->grids[k];
}
VXK_FN const struct vxk_vbm_grid *vxk_vbm_grid_of(const struct vxk_vbm *v, const struct vxk_vbm_block *b)
{
    return vxk_vbm_grid_at(v, b->info >> 17);
}
/* The grid that leaf i of the batch is of: the last that begins at it or before. */
VXK_FN uint32_t vxk_vbm_grid_of_leaf(const struct vxk_vbm *v, uint32_t i)
{
    uint32_t lo = 0, hi = v->n_grids;
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (v->grids[mid].leaf <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}
/* Block of the first voxel of chunk c of a grid. */
VXK_FN uint32_t vxk_vbm_first_block(const struct vxk_vbm_grid *vg, uint32_t c)
{
    return (uint32_t)((vg->voxel + vg->g.chunk_voxel[c]) / VXK_VBM_WIDTH) + vg->chunk + c;
}

/* ------------------------------------------------------------------ build */

/* Bits of the leaves after `leaf` that begin within the block whose first voxel is voxel p of the chunk. */
VXK_FN void vxk_vbm_jumps(const struct vxk_index_grid *g, uint32_t leaf, uint32_t p, uint64_t jump[2])
{
    uint64_t lo = 0, hi = 0;
    int more = 1;
    for (uint32_t next = leaf + 1; more; next += 4) {
        uint32_t at[4]; /* four loads that do not wait for each other */
        for (uint32_t k = 0; k < 4; k++)
            at[k] = next + k < g->n_leaves ? g->first[next + k] : 0;
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t t = at[k] - p;
            more &= at[k] != 0 && t < VXK_VBM_WIDTH; /* 0: the next chunk's first leaf, or none */
            lo |= (uint64_t)(more && t < 64) << (t & 63);
            hi |= (uint64_t)(more && t >= 64) << (t & 63);
        }
    }
    jump[0] = lo;
    jump[1] = hi;
}

/* Leaf `leaf` of grid k writes the blocks that begin in it, and after a chunk's last leaf the unused ones. */
VXK_FN void vxk_vbm_build_leaf(const struct vxk_vbm_grid *vg, struct vxk_vbm_block *blocks, uint32_t k,
                               uint32_t leaf)
{
    const struct vxk_index_grid *g = &vg->g;
    uint32_t c = g->place[leaf] >> 12, begin = g->first[leaf];
    uint64_t chunk_voxel = g->chunk_voxel[c];
    uint32_t n_chunk = (uint32_t)(g->chunk_voxel[c + 1] - chunk_voxel), end = n_chunk;
    uint32_t first_block = (uint32_t)((vg->voxel + chunk_voxel) / VXK_VBM_WIDTH) + vg->chunk + c, b;
    if (leaf + 1 < g->n_leaves && g->first[leaf + 1] != 0)
        end = g->first[leaf + 1];
    for (b = (begin + VXK_VBM_WIDTH - 1) / VXK_VBM_WIDTH; b * VXK_VBM_WIDTH < end; b++) {
        struct vxk_vbm_block block;
        uint32_t p = b * VXK_VBM_WIDTH;
        vxk_vbm_jumps(g, leaf, p, block.jump);
        block.voxel = vg->voxel + chunk_voxel + p;
        block.leaf = leaf;
        block.info = (p - begin) | vxk_minu(VXK_VBM_WIDTH, n_chunk - p) << 9 | k << 17;
        blocks[first_block + b] = block;
    }
    if (end == n_chunk) {
        uint32_t next = (uint32_t)((vg->voxel + chunk_voxel + n_chunk) / VXK_VBM_WIDTH) + vg->chunk + c + 1;
        for (b += first_block; b < next; b++) {
            struct vxk_vbm_block unused = {{0, 0}, 0, 0, 0};
            unused.info = k << 17;
            blocks[b] = unused;
        }
    }
}

/* Element: a leaf of the batch; launched over all of them. */
struct vxk_vbm_build_args {
    struct vxk_vbm v;
};
VXK_FN void vxk_vbm_build(const struct vxk_vbm_build_args *a, uint32_t i)
{
    if (a->v.n_grids == 1) { /* a branch of its own: what it reads lies in the arguments */
        vxk_vbm_build_leaf(&a->v.one, a->v.blocks, 0, i);
    } else {
        uint32_t k = vxk_vbm_grid_of_leaf(&a->v, i);
        vxk_vbm_build_leaf(&a->v.grids[k], a->v.blocks, k, i - a->v.grids[k].leaf);
    }
}

/* ------------------------------------------------------------------ decode: 128 threads, each its voxel */

/* Bits 0 .. t of 128. */
VXK_FN uint64_t vxk_vbm_upto(uint32_t t, uint32_t half)
{
    if (half ? t >= 127 : t >= 63)
        return ~0ull;
    if (half && t < 64)
        return 0;
    return (2ull << (t & 63)) - 1;
}

/* Leaf of voxel t of a block, t < its count; *rank = the voxel's place among those of the leaf. */
VXK_FN uint32_t vxk_vbm_leaf(const struct vxk_vbm_block *b, uint32_t t, uint32_t *rank)
{
    uint64_t lo = b->jump[0] & vxk_vbm_upto(t, 0), hi = b->jump[1] & vxk_vbm_upto(t, 1);
    *rank = hi ? t - 127 + vxk_clz64(hi) : lo ? t - 63 + vxk_clz64(lo) : t + vxk_vbm_skip(b);
    return b->leaf + vxk_popc64(lo) + vxk_popc64(hi);
}

/* Place of the r-th set bit (from 0), r < popc(m). */
VXK_FN uint32_t vxk_select64(uint64_t m, uint32_t r)
{
    uint32_t x = (uint32_t)m, n = vxk_popc32(x), at = 0;
    if (r >= n) {
        r -= n;
        x = (uint32_t)(m >> 32);
        at = 32;
    }
    for (uint32_t step = 16; step; step /= 2) {
        n = vxk_popc32(x & ((1u << step) - 1));
        if (r >= n) {
            r -= n;
            x >>= step;
            at += step;
        }
    }
    return at;
}

/* Number 0..511 of the voxel that is the rank-th of its leaf. */
VXK_FN uint32_t vxk_leaf_select(const struct vxk_index_grid *g, uint32_t leaf, uint32_t rank)
{
    uint64_t prefix = g->prefix[leaf];
    uint32_t w = 0;
    for (uint32_t i = 1; i < 8; i++)
        w += (uint32_t)(prefix >> (9 * (i - 1)) & 511) <= rank;
    return w << 6 | vxk_select64(g->masks[(uint64_t)leaf * 8 + w], rank - vxk_index_before(prefix, w));
}

/* ------------------------------------------------------------------ decode: one after the other */

struct vxk_vbm_cursor {
    const struct vxk_index_grid *g;
    uint64_t bits; /* of the mask word, from the voxel on */
    uint32_t leaf, word;
};
/* Begins in front of voxel 0; the block has voxels. */
VXK_FN void vxk_vbm_cursor_begin(struct vxk_vbm_cursor *c, const struct vxk_index_grid *g,
                                 const struct vxk_vbm_block *b)
{
    uint32_t skip = vxk_vbm_skip(b), n;
    c->g = g;
    c->leaf = b->leaf;
    c->word = 0;
    c->bits = g->masks[(uint64_t)b->leaf * 8];
    while ((n = vxk_popc64(c->bits)) <= skip) {
        skip -= n;
        c->bits = g->masks[(uint64_t)b->leaf * 8 + ++c->word];
    }
    while (skip--)
        c->bits &= c->bits - 1;
}
/* Number of the next voxel in leaf c->leaf; call it as many times as the block has voxels. */
VXK_FN uint32_t vxk_vbm_cursor_next(struct vxk_vbm_cursor *c)
{
    uint32_t n;
    while (!c->bits) {
        if (++c->word == 8) {
            c->word = 0;
            c->leaf++;
        }
        c->bits = c->g->masks[(uint64_t)c->leaf * 8 + c->word];
    }
    n = c->word << 6 | vxk_ctz64(c->bits);
    c->bits &= c->bits - 1;
    return n;
}

/* Element: a block; launched over all of them.  Coordinates of its voxels. */
struct vxk_vbm_ijk_args {
    struct vxk_vbm v;
    int32_t *ijk; /* [voxels of the batch][3] */
};
VXK_FN void vxk_vbm_ijk(const struct vxk_vbm_ijk_args *a, uint32_t i)
{
    const struct vxk_vbm_block *b = &a->v.blocks[i];
    const struct vxk_index_grid *g = &vxk_vbm_grid_of(&a->v, b)->g;
    uint32_t n = vxk_vbm_count(b), leaf = VXK_NONE;
    int32_t x = 0, y = 0, z = 0, *out = a->ijk + 3 * b->voxel;
    struct vxk_vbm_cursor c;
    if (!n)
        return;
    vxk_vbm_cursor_begin(&c, g, b);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t v = vxk_vbm_cursor_next(&c);
        if (c.leaf != leaf) {
            leaf = c.leaf;
            vxk_index_origin(g, leaf, &x, &y, &z);
        }
        out[3 * t] = x + (int32_t)(v >> 6);
        out[3 * t + 1] = y + (int32_t)(v >> 3 & 7);
        out[3 * t + 2] = z + (int32_t)(v & 7);
    }
}

#endif
