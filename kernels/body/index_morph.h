/*
 * index_morph.h - dilation and erosion of index grids, whole mask words at a time.
 *
 * A voxel reaches at most 8 voxels far, so a leaf reaches its 26 neighbours at most.  Direction d = (dx + 1)
 * * 9 + (dy + 1) * 3 + (dz + 1), each of dx, dy, dz in -1..1; 13 is the leaf itself.
 */
#ifndef VXK_BODY_INDEX_MORPH_H
#define VXK_BODY_INDEX_MORPH_H

#include "index_build.h"

/* Neighbourhoods, by their number of neighbours at radius 1. */
enum { VXK_MORPH_FACES = 6, VXK_MORPH_EDGES = 18, VXK_MORPH_BOX = 26 };
/* Directions that a neighbourhood can reach, as bits. */
enum { VXK_REACH_FACES = 0x0417410, VXK_REACH_EDGES = 0x2ebfeba, VXK_REACH_ALL = 0x7ffffff };
#define VXK_EVERY_BYTE 0x0101010101010101ull

VXK_FN uint32_t vxk_morph_reach(uint32_t shape)
{
    return shape == VXK_MORPH_FACES   ? VXK_REACH_FACES
           : shape == VXK_MORPH_EDGES ? VXK_REACH_EDGES
                                      : VXK_REACH_ALL;
}

/* A slice (byte y, bit z) widened by r along z; m and p are the slices of the neighbours at -z and +z. */
VXK_FN uint64_t vxk_morph_z(uint64_t c, uint64_t m, uint64_t p, uint32_t r)
{
    uint64_t out = c;
    for (uint32_t k = 1; k <= r; k++) {
        uint64_t up = VXK_EVERY_BYTE * (0xffu << k & 0xff), down = VXK_EVERY_BYTE * (0xffu >> k);
        out |= (c << k & up) | (m >> (8 - k) & ~up) | (c >> k & down) | (p << (8 - k) & ~down);
    }
    return out;
}
/* The same along y. */
VXK_FN uint64_t vxk_morph_y(uint64_t c, uint64_t m, uint64_t p, uint32_t r)
{
    uint64_t out = c;
    for (uint32_t k = 1; k <= r && k < 8; k++)
        out |= c << 8 * k | c >> 8 * k | m >> (64 - 8 * k) | p << (64 - 8 * k);
    return r == 8 ? out | m | p : out;
}

/* Directions in which a leaf's voxels reach, one bit each, bit 13 included. */
VXK_FN uint32_t vxk_morph_reach_of(const uint64_t mask[8], uint32_t shape, uint32_t r)
{
    uint64_t low = VXK_EVERY_BYTE * ((1u << r) - 1), high = VXK_EVERY_BYTE * (0xffu << (8 - r) & 0xff);
    uint64_t near_y = r == 8 ? ~0ull : (1ull << 8 * r) - 1, far_y = r == 8 ? ~0ull : ~0ull << (64 - 8 * r);
    uint64_t slice[3] = {0, 0, 0};
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 8; i++) {
        slice[1] |= mask[i];
        if (i < r)
            slice[0] |= mask[i];
        if (i >= 8 - r)
            slice[2] |= mask[i];
    }
    for (uint32_t x = 0; x < 3; x++)
        for (uint32_t y = 0; y < 3; y++) {
            uint64_t rows = slice[x] & (y == 0 ? near_y : y == 2 ? far_y : ~0ull);
            bits |= ((rows & low) != 0 ? 1u : 0) << (x * 9 + y * 3);
            bits |= (rows != 0 ? 2u : 0) << (x * 9 + y * 3);
            bits |= ((rows & high) != 0 ? 4u : 0) << (x * 9 + y * 3);
        }
    return bits & vxk_morph_reach(shape);
}

/* Number of the source leaf at cell (x, y, z), each -1..16, of the chunk at (kx, ky, kz), whose number is
 * `chunk`. */
VXK_FN uint32_t vxk_morph_leaf(const struct vxk_index_grid *g, uint32_t chunk, int32_t kx, int32_t ky,
                               int32_t kz, int32_t x, int32_t y, int32_t z)
{
    uint32_t place;
    if ((x | y | z) >> 4) /* also true for -1 */
        chunk = vxk_index_chunk_at(g, kx + (x >> 4), ky + (y >> 4), kz + (z >> 4));
    place = vxk_index_cell_place((uint32_t)x & 15, (uint32_t)y & 15, (uint32_t)z & 15);
    return vxk_index_leaf(g, chunk, place >> 6, place & 63);
}

/* The voxels of one leaf that the grid's voxels reach; with `flip` (all ones), that the voxels outside it
 * reach. place: of the leaf, in the chunk `key`, which the grid may lack. */
VXK_FN void vxk_morph_mask(const struct vxk_index_grid *g, uint64_t key, uint32_t place, uint32_t shape,
                           uint32_t r, uint64_t flip, uint64_t out[8])
{
    uint32_t chunk = vxk_index_chunk(g, key);
    int32_t kx, ky, kz, x, y, z;
    vxk_key_xyz(key, &kx, &ky, &kz);
    vxk_index_cell_xyz(place, &x, &y, &z);
    for (uint32_t i = 0; i < 8; i++)
        out[i] = 0;
    for (int32_t lx = -1; lx <= 1; lx++) {
        uint32_t leaf[9];
        for (int32_t k = 0; k < 9; k++)
            leaf[k] = vxk_morph_leaf(g, chunk, kx, ky, kz, x + lx, y + k / 3 - 1, z + k % 3 - 1);
        for (int32_t xs = lx < 0 ? 8 - (int32_t)r : 0; xs < (lx > 0 ? (int32_t)r : 8); xs++) {
            uint64_t m[9], zc, box, cross, centre, side;
            for (uint32_t k = 0; k < 9; k++)
                m[k] = (leaf[k] == VXK_NONE ? 0 : g->masks[(uint64_t)leaf[k] * 8 + (uint32_t)xs]) ^ flip;
            zc = vxk_morph_z(m[4], m[3], m[5], r);
            box = vxk_morph_y(zc, vxk_morph_z(m[1], m[0], m[2], r), vxk_morph_z(m[7], m[6], m[8], r), r);
            cross = zc | vxk_morph_y(m[4], m[1], m[7], 1);
            centre = shape == VXK_MORPH_FACES ? cross : box;
            side = shape == VXK_MORPH_FACES ? m[4] : shape == VXK_MORPH_EDGES ? cross : box;
            for (int32_t i = 0; i < 8; i++) {
                int32_t far = lx * 8 + xs - i;
                if (far == 0)
                    out[i] |= centre;
                else if (far <= (int32_t)r && far >= -(int32_t)r)
                    out[i] |= side;
            }
        }
    }
}

struct vxk_index_morph {
    struct vxk_index_build b;
    struct vxk_index_grid g;
    uint32_t *reach; /* [n_leaves] */
    uint32_t *to;    /* [n_chunks] directions, as chunks, that were added; zero at the start */
    uint32_t shape, radius;
};
/* Directions with dx = -1, dx = 1 and so on, as bits. */
enum {
    VXK_REACH_X_LOW = 0x1ff,
    VXK_REACH_X_HIGH = 0x1ff << 18,
    VXK_REACH_Y_LOW = 0x1c0e07,
    VXK_REACH_Y_HIGH = VXK_REACH_Y_LOW << 6,
    VXK_REACH_Z_LOW = 0x1249249,
    VXK_REACH_Z_HIGH = VXK_REACH_Z_LOW << 2
};
/* Chunk directions of a leaf's directions: 27 bits to 27 bits. */
VXK_FN uint32_t vxk_morph_chunks(uint32_t reach, uint32_t place)
{
    uint32_t to = 0, x_out, y_out, z_out;
    int32_t x, y, z;
    vxk_index_cell_xyz(place, &x, &y, &z);
    x_out = x == 0 ? VXK_REACH_X_LOW : x == 15 ? VXK_REACH_X_HIGH : 0;
    y_out = y == 0 ? VXK_REACH_Y_LOW : y == 15 ? VXK_REACH_Y_HIGH : 0;
    z_out = z == 0 ? VXK_REACH_Z_LOW : z == 15 ? VXK_REACH_Z_HIGH : 0;
    for (int32_t k = 0; k < 8; k++) {
        uint32_t part =
            reach & (k & 4 ? x_out : ~x_out) & (k & 2 ? y_out : ~y_out) & (k & 1 ? z_out : ~z_out);
        int32_t d = 13 + (k & 4 ? x == 0 ? -9 : 9 : 0) + (k & 2 ? y == 0 ? -3 : 3 : 0) +
                    (k & 1 ? z == 0 ? -1 : 1 : 0);
        if (part)
            to |= 1u << d;
    }
    return to;
}
/* Adds what `to` names and nobody added before. */
VXK_FN void vxk_morph_add_chunks(const struct vxk_index_morph *a, uint32_t chunk, uint32_t to)
{
    int32_t kx, ky, kz;
    if (!(to & ~vxk_relaxed32(&a->to[chunk])))
        return;
    to &= ~vxk_atomic_or32(&a->to[chunk], to);
    vxk_key_xyz(a->g.keys[chunk], &kx, &ky, &kz);
    for (; to; to &= to - 1) {
        int32_t d = (int32_t)vxk_ctz32(to);
        vxk_index_add_chunk(&a->b, kx + d / 9 - 1, ky + d / 3 % 3 - 1, kz + d % 3 - 1);
    }
}
/* Element: a leaf of g: where it reaches; adds the chunks of its directions. */
struct vxk_index_dilate_chunks_args {
    struct vxk_index_morph op;
};
VXK_FN void vxk_index_dilate_chunks(const struct vxk_index_dilate_chunks_args *args, uint32_t i)
{
    const struct vxk_index_morph *a = &args->op;
    uint64_t mask[8];
    uint32_t reach, place = a->g.place[i];
    for (uint32_t k = 0; k < 8; k++)
        mask[k] = a->g.masks[(uint64_t)i * 8 + k];
    reach = vxk_morph_reach_of(mask, a->shape, a->radius);
    a->reach[i] = reach;
    vxk_morph_add_chunks(a, place >> 12, vxk_morph_chunks(reach, place));
}

/* Adds cells to the word at word coordinates (x, y, z), each -1..4, of the chunk `key`. */
VXK_FN void vxk_morph_add_cells(const struct vxk_index_build *b, uint64_t key, int32_t x, int32_t y,
                                int32_t z, uint64_t cells)
{
    uint32_t chunk;
    if ((x | y | z) >> 2) {
        int32_t kx, ky, kz;
        vxk_key_xyz(key, &kx, &ky, &kz);
        kx += x >> 2;
        ky += y >> 2;
        kz += z >> 2;
        if (!vxk_index_in_range(kx, ky, kz))
            return; /* clipped */
        key = vxk_key(kx, ky, kz);
    }
    chunk = vxk_index_made_chunk(b, key);
    if (chunk != VXK_NONE) /* there was room */
        vxk_index_add_cells(b, chunk, (uint32_t)((x & 3) << 4 | (y & 3) << 2 | (z & 3)), cells);
}
/* Element: a word of g: the cells that its leaves reach, in the words round it. */
struct vxk_index_dilate_words_args {
    struct vxk_index_morph op;
};
VXK_FN void vxk_index_dilate_words(const struct vxk_index_dilate_words_args *args, uint32_t i)
{
    const struct vxk_index_morph *a = &args->op;
    struct vxk_index_word word = a->g.words[i];
    uint64_t cells[27], key = a->g.keys[i >> 6];
    uint32_t leaf = word.first;
    if (!word.mask)
        return;
    for (uint32_t k = 0; k < 27; k++)
        cells[k] = 0;
    for (uint64_t m = word.mask; m; m &= m - 1) {
        int32_t cell = (int32_t)vxk_ctz64(m);
        for (uint32_t reach = a->reach[leaf++]; reach; reach &= reach - 1) {
            int32_t d = (int32_t)vxk_ctz32(reach);
            int32_t x = (cell >> 4) + d / 9 - 1, y = (cell >> 2 & 3) + d / 3 % 3 - 1,
                    z = (cell & 3) + d % 3 - 1;
            cells[13 + (x >> 2) * 9 + (y >> 2) * 3 + (z >> 2)] |= 1ull
                                                                  << ((x & 3) << 4 | (y & 3) << 2 | (z & 3));
        }
    }
    for (int32_t d = 0; d < 27; d++)
        if (cells[d])
            vxk_morph_add_cells(&a->b, key, (int32_t)(i >> 4 & 3) + d / 9 - 1,
                                (int32_t)(i >> 2 & 3) + d / 3 % 3 - 1, (int32_t)(i & 3) + d % 3 - 1,
                                cells[d]);
}

/* Element: a leaf of the result. */
struct vxk_index_dilate_leaves_args {
    struct vxk_index_morph op;
};
VXK_FN void vxk_index_dilate_leaves(const struct vxk_index_dilate_leaves_args *args, uint32_t i)
{
    const struct vxk_index_morph *a = &args->op;
    uint64_t mask[8];
    uint32_t place = a->b.place[i];
    vxk_morph_mask(&a->g, a->b.keys[place >> 12], place, a->shape, a->radius, 0, mask);
    vxk_index_put(&a->b, i, mask);
}

/* Element: a leaf: the voxels whose whole neighbourhood is in the grid, for a prune. */
struct vxk_index_erode_args {
    struct vxk_index_grid g;
    uint64_t *keep; /* [8 n_leaves] */
    uint32_t shape, radius;
};
VXK_FN void vxk_index_erode(const struct vxk_index_erode_args *a, uint32_t i)
{
    uint64_t mask[8];
    uint32_t place = a->g.place[i];
    vxk_morph_mask(&a->g, a->g.keys[place >> 12], place, a->shape, a->radius, ~0ull, mask);
    for (uint32_t k = 0; k < 8; k++)
        a->keep[(uint64_t)i * 8 + k] = ~mask[k];
}

#endif
