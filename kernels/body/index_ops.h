/*
 * index_ops.h - element functions of the operators on index grids: merge, prune, coarsen, refine, sets of two
 * grids, a map's layer.  For each operator: the chunks of the result, the cells of its words, the masks of
 * its leaves.
 */
#ifndef VXK_BODY_INDEX_OPS_H
#define VXK_BODY_INDEX_OPS_H

#include "index_build.h"

/* Leaf of g at `place` (its low 12 bits) of the chunk `key`, or VXK_NONE. */
VXK_FN uint32_t vxk_index_leaf_of(const struct vxk_index_grid *g, uint64_t key, uint32_t place)
{
    return vxk_index_leaf(g, vxk_index_chunk(g, key), place >> 6 & 63, place & 63);
}

/* -------------------------------------------------------------- merge */

enum { VXK_INDEX_MAX_MERGE = 8 };
struct vxk_index_merge {
    struct vxk_index_build b;
    uint32_t n;
    struct vxk_index_grid g[VXK_INDEX_MAX_MERGE];
};
/* Element: a chunk of one of the grids. */
struct vxk_index_merge_chunks_args {
    struct vxk_index_merge op;
};
VXK_FN void vxk_index_merge_chunks(const struct vxk_index_merge_chunks_args *args, uint32_t i)
{
    const struct vxk_index_merge *a = &args->op;
    uint32_t k = 0;
    while (i >= a->g[k].n_chunks)
        i -= a->g[k++].n_chunks;
    vxk_index_add_key(&a->b, a->g[k].keys[i]);
}
/* Element: a word of the result. */
struct vxk_index_merge_words_args {
    struct vxk_index_merge op;
};
VXK_FN void vxk_index_merge_words(const struct vxk_index_merge_words_args *args, uint32_t i)
{
    const struct vxk_index_merge *a = &args->op;
    uint64_t key = a->b.keys[i >> 6], mask = 0;
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t chunk = vxk_index_chunk(&a->g[k], key);
        if (chunk != VXK_NONE)
            mask |= a->g[k].words[(uint64_t)chunk * 64 + (i & 63)].mask;
    }
    vxk_index_set_cells(&a->b, i, mask);
}
/* Element: a leaf of the result. */
struct vxk_index_merge_leaves_args {
    struct vxk_index_merge op;
};
VXK_FN void vxk_index_merge_leaves(const struct vxk_index_merge_leaves_args *args, uint32_t i)
{
    const struct vxk_index_merge *a = &args->op;
    uint32_t place = a->b.place[i];
    uint64_t key = a->b.keys[place >> 12], mask[8];
    for (uint32_t x = 0; x < 8; x++)
        mask[x] = 0;
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t leaf = vxk_index_leaf_of(&a->g[k], key, place);
        if (leaf != VXK_NONE)
            for (uint32_t x = 0; x < 8; x++)
                mask[x] |= a->g[k].masks[(uint64_t)leaf * 8 + x];
    }
    vxk_index_put(&a->b, i, mask);
}

/* -------------------------------------------------------------- prune */

struct vxk_index_prune {
    struct vxk_index_build b;
    struct vxk_index_grid g;
    const uint64_t *keep; /* [8 n_leaves] of g */
    uint64_t *cells;      /* [64 n_chunks] of g: its leaves that stay; zero at the start */
    uint32_t *stays;      /* [n_chunks] of g: chunks that were added; zero at the start */
};
/* Element: a leaf of g. */
struct vxk_index_prune_chunks_args {
    struct vxk_index_prune op;
};
VXK_FN void vxk_index_prune_chunks(const struct vxk_index_prune_chunks_args *args, uint32_t i)
{
    const struct vxk_index_prune *a = &args->op;
    uint32_t place = a->g.place[i];
    uint64_t any = 0;
    for (uint32_t x = 0; x < 8; x++)
        any |= a->g.masks[(uint64_t)i * 8 + x] & a->keep[(uint64_t)i * 8 + x];
    if (!any)
        return;
    vxk_atomic_or64(&a->cells[place >> 6], 1ull << (place & 63));
    if (!vxk_relaxed32(&a->stays[place >> 12]) && !vxk_atomic_or32(&a->stays[place >> 12], 1))
        vxk_index_add_key(&a->b, a->g.keys[place >> 12]);
}
/* Element: a word of the result. */
struct vxk_index_prune_words_args {
    struct vxk_index_prune op;
};
VXK_FN void vxk_index_prune_words(const struct vxk_index_prune_words_args *args, uint32_t i)
{
    const struct vxk_index_prune *a = &args->op;
    uint32_t chunk = vxk_index_chunk(&a->g, a->b.keys[i >> 6]);
    vxk_index_set_cells(&a->b, i, a->cells[(uint64_t)chunk * 64 + (i & 63)]);
}
/* Element: a leaf of the result. */
struct vxk_index_prune_leaves_args {
    struct vxk_index_prune op;
};
VXK_FN void vxk_index_prune_leaves(const struct vxk_index_prune_leaves_args *args, uint32_t i)
{
    const struct vxk_index_prune *a = &args->op;
    uint32_t place = a->b.place[i], leaf = vxk_index_leaf_of(&a->g, a->b.keys[place >> 12], place);
    uint64_t mask[8];
    for (uint32_t x = 0; x < 8; x++)
        mask[x] = a->g.masks[(uint64_t)leaf * 8 + x] & a->keep[(uint64_t)leaf * 8 + x];
    vxk_index_put(&a->b, i, mask);
}

/* Element: a leaf of g: its voxels that are in `other`, or (differ) that are not; for a prune. */
struct vxk_index_common_args {
    struct vxk_index_grid g, other;
    uint64_t *keep; /* [8 n_leaves] */
    uint32_t differ;
};
VXK_FN void vxk_index_common(const struct vxk_index_common_args *a, uint32_t i)
{
    uint32_t place = a->g.place[i], leaf = vxk_index_leaf_of(&a->other, a->g.keys[place >> 12], place);
    uint64_t flip = a->differ ? ~0ull : 0;
    for (uint32_t x = 0; x < 8; x++)
        a->keep[(uint64_t)i * 8 + x] = (leaf == VXK_NONE ? 0 : a->other.masks[(uint64_t)leaf * 8 + x]) ^ flip;
}

/* -------------------------------------------------------------- coarsen */

struct vxk_index_coarsen {
    struct vxk_index_build b;
    struct vxk_index_grid g;
};
/* Number of child chunk (dx, dy, dz), each 0 or 1, of chunk `key` in g, or VXK_NONE. */
VXK_FN uint32_t vxk_index_child_chunk(const struct vxk_index_grid *g, uint64_t key, uint32_t dx, uint32_t dy,
                                      uint32_t dz)
{
    int32_t kx, ky, kz;
    vxk_key_xyz(key, &kx, &ky, &kz);
    return vxk_index_chunk_at(g, kx * 2 + (int32_t)dx, ky * 2 + (int32_t)dy, kz * 2 + (int32_t)dz);
}
/* Element: a chunk of g. */
struct vxk_index_coarsen_chunks_args {
    struct vxk_index_coarsen op;
};
VXK_FN void vxk_index_coarsen_chunks(const struct vxk_index_coarsen_chunks_args *args, uint32_t i)
{
    const struct vxk_index_coarsen *a = &args->op;
    int32_t kx, ky, kz;
    vxk_key_xyz(a->g.keys[i], &kx, &ky, &kz);
    vxk_index_add_chunk(&a->b, kx >> 1, ky >> 1, kz >> 1);
}
/* The 2^3 cells that 4^3 cells become, as bits x << 4 | y << 2 | z with x, y, z = 0..1. */
VXK_FN uint64_t vxk_index_half_cells(uint64_t m)
{
    uint64_t out = 0;
    m |= m >> 1;
    m |= m >> 4;
    m |= m >> 16;
    for (uint32_t k = 0; k < 8; k++)
        out |= (m >> (32 * (k >> 2) + 8 * (k >> 1 & 1) + 2 * (k & 1)) & 1)
               << (16 * (k >> 2) + 4 * (k >> 1 & 1) + (k & 1));
    return out;
}
/* Element: a word of the result, eight words of one chunk of g. */
struct vxk_index_coarsen_words_args {
    struct vxk_index_coarsen op;
};
VXK_FN void vxk_index_coarsen_words(const struct vxk_index_coarsen_words_args *args, uint32_t i)
{
    const struct vxk_index_coarsen *a = &args->op;
    uint32_t x = i >> 4 & 3, y = i >> 2 & 3, z = i & 3;
    uint32_t chunk = vxk_index_child_chunk(&a->g, a->b.keys[i >> 6], x >> 1, y >> 1, z >> 1);
    uint64_t mask = 0;
    if (chunk != VXK_NONE)
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t w =
                ((x & 1) * 2 + (k >> 2)) << 4 | ((y & 1) * 2 + (k >> 1 & 1)) << 2 | ((z & 1) * 2 + (k & 1));
            mask |= vxk_index_half_cells(a->g.words[(uint64_t)chunk * 64 + w].mask)
                    << (32 * (k >> 2) + 8 * (k >> 1 & 1) + 2 * (k & 1));
        }
    vxk_index_set_cells(&a->b, i, mask);
}
/* Two slices along x to one: 4 rows of 4 bits, row y in byte y. */
VXK_FN uint64_t vxk_index_half_slices(uint64_t u)
{
    u |= u >> 8;
    u = (u | u >> 1) & 0x0055005500550055ull;
    u = (u | u >> 1) & 0x0033003300330033ull;
    u = (u | u >> 2) & 0x000f000f000f000full;
    u = (u | u >> 8) & 0x00000f0f00000f0full;
    return (u | u >> 16) & 0x0f0f0f0full;
}
/* Element: a leaf of the result, eight leaves of one chunk of g. */
struct vxk_index_coarsen_leaves_args {
    struct vxk_index_coarsen op;
};
VXK_FN void vxk_index_coarsen_leaves(const struct vxk_index_coarsen_leaves_args *args, uint32_t i)
{
    const struct vxk_index_coarsen *a = &args->op;
    uint32_t place = a->b.place[i], chunk;
    int32_t x, y, z;
    uint64_t mask[8];
    vxk_index_cell_xyz(place, &x, &y, &z);
    chunk = vxk_index_child_chunk(&a->g, a->b.keys[place >> 12], (uint32_t)x >> 3, (uint32_t)y >> 3,
                                  (uint32_t)z >> 3);
    for (uint32_t k = 0; k < 8; k++)
        mask[k] = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t from =
            vxk_index_cell_place(((uint32_t)x * 2 & 15) + (k >> 2), ((uint32_t)y * 2 & 15) + (k >> 1 & 1),
                                 ((uint32_t)z * 2 & 15) + (k & 1));
        uint32_t leaf = vxk_index_leaf(&a->g, chunk, from >> 6, from & 63);
        if (leaf == VXK_NONE)
            continue;
        for (uint32_t s = 0; s < 4; s++) {
            uint64_t u = vxk_index_half_slices(a->g.masks[(uint64_t)leaf * 8 + 2 * s] |
                                               a->g.masks[(uint64_t)leaf * 8 + 2 * s + 1])
                         << (32 * (k >> 1 & 1) + 4 * (k & 1));
            if (k >> 2)
                mask[4 + s] |= u;
            else
                mask[s] |= u;
        }
    }
    vxk_index_put(&a->b, i, mask);
}

/* -------------------------------------------------------------- refine */

struct vxk_index_refine {
    struct vxk_index_build b;
    struct vxk_index_grid g;
};
/* Element: (chunk of g, child 0..7). */
struct vxk_index_refine_chunks_args {
    struct vxk_index_refine op;
};
VXK_FN void vxk_index_refine_chunks(const struct vxk_index_refine_chunks_args *args, uint32_t i)
{
    const struct vxk_index_refine *a = &args->op;
    uint32_t dx = i >> 2 & 1, dy = i >> 1 & 1, dz = i & 1;
    int32_t kx, ky, kz;
    uint64_t any = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t w = (dx * 2 + (k >> 2)) << 4 | (dy * 2 + (k >> 1 & 1)) << 2 | (dz * 2 + (k & 1));
        any |= a->g.words[(uint64_t)(i >> 3) * 64 + w].mask;
    }
    if (!any)
        return;
    vxk_key_xyz(a->g.keys[i >> 3], &kx, &ky, &kz);
    kx = kx * 2 + (int32_t)dx;
    ky = ky * 2 + (int32_t)dy;
    kz = kz * 2 + (int32_t)dz;
    if (vxk_index_in_range(kx, ky, kz))
        vxk_index_add_chunk(&a->b, kx, ky, kz);
    else
        vxk_atomic_add32(&a->b.counts->n_outside, 1);
}
/* Number of the chunk of g that `key` is a child of (it exists); *corner = its first cell in it: 0 or 8 an
 * axis. */
VXK_FN uint32_t vxk_index_parent_chunk(const struct vxk_index_grid *g, uint64_t key, uint32_t corner[3])
{
    int32_t kx, ky, kz;
    vxk_key_xyz(key, &kx, &ky, &kz);
    corner[0] = (uint32_t)(kx & 1) * 8;
    corner[1] = (uint32_t)(ky & 1) * 8;
    corner[2] = (uint32_t)(kz & 1) * 8;
    return vxk_index_chunk_at(g, kx >> 1, ky >> 1, kz >> 1);
}
/* Octants of a leaf with voxels, as cells of a word: bits x << 4 | y << 2 | z with x, y, z = 0..1. */
VXK_FN uint64_t vxk_index_octants(const uint64_t *mask)
{
    uint64_t out = 0;
    for (uint32_t x = 0; x < 2; x++) {
        uint64_t u = mask[4 * x] | mask[4 * x + 1] | mask[4 * x + 2] | mask[4 * x + 3];
        out |= (uint64_t)((u & 0x000000000f0f0f0full) != 0) << (16 * x);
        out |= (uint64_t)((u & 0x00000000f0f0f0f0ull) != 0) << (16 * x + 1);
        out |= (uint64_t)((u & 0x0f0f0f0f00000000ull) != 0) << (16 * x + 4);
        out |= (uint64_t)((u & 0xf0f0f0f000000000ull) != 0) << (16 * x + 5);
    }
    return out;
}
/* Element: a word of the result, eight leaves of g. */
struct vxk_index_refine_words_args {
    struct vxk_index_refine op;
};
VXK_FN void vxk_index_refine_words(const struct vxk_index_refine_words_args *args, uint32_t i)
{
    const struct vxk_index_refine *a = &args->op;
    uint32_t corner[3], chunk = vxk_index_parent_chunk(&a->g, a->b.keys[i >> 6], corner);
    uint64_t mask = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t from = vxk_index_cell_place(corner[0] + (i >> 4 & 3) * 2 + (k >> 2),
                                             corner[1] + (i >> 2 & 3) * 2 + (k >> 1 & 1),
                                             corner[2] + (i & 3) * 2 + (k & 1));
        uint32_t leaf = vxk_index_leaf(&a->g, chunk, from >> 6, from & 63);
        if (leaf != VXK_NONE)
            mask |= vxk_index_octants(a->g.masks + (uint64_t)leaf * 8)
                    << (32 * (k >> 2) + 8 * (k >> 1 & 1) + 2 * (k & 1));
    }
    vxk_index_set_cells(&a->b, i, mask);
}
/* A quarter of a slice, each of its 4 x 4 bits doubled both ways. */
VXK_FN uint64_t vxk_index_double_slice(uint64_t slice, uint32_t oy, uint32_t oz)
{
    uint64_t n = slice >> (32 * oy + 4 * oz) & 0x0f0f0f0full;
    n = (n | n << 2) & 0x33333333ull;
    n = (n | n << 1) & 0x55555555ull;
    n |= n << 1;
    n = (n | n << 16) & 0x0000ffff0000ffffull;
    n = (n | n << 8) & 0x00ff00ff00ff00ffull;
    return n | n << 8;
}
/* Element: a leaf of the result, an octant of a leaf of g. */
struct vxk_index_refine_leaves_args {
    struct vxk_index_refine op;
};
VXK_FN void vxk_index_refine_leaves(const struct vxk_index_refine_leaves_args *args, uint32_t i)
{
    const struct vxk_index_refine *a = &args->op;
    uint32_t place = a->b.place[i], corner[3], from, leaf;
    uint32_t chunk = vxk_index_parent_chunk(&a->g, a->b.keys[place >> 12], corner);
    int32_t x, y, z;
    uint64_t mask[8];
    vxk_index_cell_xyz(place, &x, &y, &z);
    from = vxk_index_cell_place(corner[0] + ((uint32_t)x >> 1), corner[1] + ((uint32_t)y >> 1),
                                corner[2] + ((uint32_t)z >> 1));
    leaf = vxk_index_leaf(&a->g, chunk, from >> 6, from & 63);
    for (uint32_t s = 0; s < 4; s++) {
        mask[2 * s] = vxk_index_double_slice(a->g.masks[(uint64_t)leaf * 8 + 4 * ((uint32_t)x & 1) + s],
                                             (uint32_t)y & 1, (uint32_t)z & 1);
        mask[2 * s + 1] = mask[2 * s];
    }
    vxk_index_put(&a->b, i, mask);
}

/* -------------------------------------------------------------- a map's layer */

struct vxk_index_layer {
    struct vxk_index_build b;
    struct vxk_grid map;
    const uint32_t *version; /* the map's chunks */
    uint32_t free;           /* the free voxels instead of the active ones */
};
/* Cells of a map's word that have voxels of the layer. */
VXK_FN uint64_t vxk_index_layer_cells(const struct vxk_index_layer *a, const struct vxk_word *w)
{
    uint64_t out = a->free ? w->tile : 0;
    for (uint64_t m = w->leaf; m; m &= m - 1) {
        const struct vxk_leaf *l = vxk_leaf_at(&a->map, w, vxk_ctz64(m));
        uint64_t any = 0;
        for (uint32_t x = 0; x < 8; x++)
            any |= a->free ? l->free[x] : l->active[x];
        if (any)
            out |= m & (~m + 1);
    }
    return out;
}
/* Element: a chunk of the map. */
struct vxk_index_layer_chunks_args {
    struct vxk_index_layer op;
};
VXK_FN void vxk_index_layer_chunks(const struct vxk_index_layer_chunks_args *args, uint32_t i)
{
    const struct vxk_index_layer *a = &args->op;
    const struct vxk_chunk *c = &a->map.chunks[a->version[i]];
    for (uint32_t w = 0; w < 64; w++)
        if (vxk_index_layer_cells(a, &c->word[w])) {
            vxk_index_add_key(&a->b, c->key);
            return;
        }
}
/* Element: a word of the result. */
struct vxk_index_layer_words_args {
    struct vxk_index_layer op;
};
VXK_FN void vxk_index_layer_words(const struct vxk_index_layer_words_args *args, uint32_t i)
{
    const struct vxk_index_layer *a = &args->op;
    const struct vxk_chunk *c = vxk_find_chunk(&a->map, a->b.keys[i >> 6]);
    vxk_index_set_cells(&a->b, i, vxk_index_layer_cells(a, &c->word[i & 63]));
}
/* Element: a leaf of the result. */
struct vxk_index_layer_leaves_args {
    struct vxk_index_layer op;
};
VXK_FN void vxk_index_layer_leaves(const struct vxk_index_layer_leaves_args *args, uint32_t i)
{
    const struct vxk_index_layer *a = &args->op;
    uint32_t place = a->b.place[i];
    const struct vxk_word *w = &vxk_find_chunk(&a->map, a->b.keys[place >> 12])->word[place >> 6 & 63];
    const struct vxk_leaf *l = (const struct vxk_leaf *)0;
    uint64_t mask[8];
    if (w->leaf >> (place & 63) & 1)
        l = vxk_leaf_at(&a->map, w, place & 63);
    for (uint32_t x = 0; x < 8; x++)
        mask[x] = !l ? ~0ull : a->free ? l->free[x] : l->active[x];
    vxk_index_put(&a->b, i, mask);
}

#endif
