/*
 * mesh_chunk.h - the mesh chunk by chunk: which chunks an epoch may have changed, and the cells that it takes
 * to make them anew.
 *
 * A chunk's triangles are those of the cells that its voxels own.  They read voxels from one below the chunk
 * (a slope) to two above it (the slope at a corner in the chunk above).  So a changed word concerns its own
 * chunk and, at the chunk's border, the neighbours that have something there.
 */
#ifndef VXK_BODY_MESH_CHUNK_H
#define VXK_BODY_MESH_CHUNK_H

#include "esdf_cells.h"
#include "mesh_mask.h"

/* Lists the chunks with a version since an epoch, in any order.  Element: a slot of the map's table. */
struct vxk_mesh_changed_args {
    struct vxk_grid g;
    uint64_t *key;            /* [slots] */
    uint32_t *version, *near; /* [slots]; near: zeros for vxk_mesh_dirty */
    uint32_t *n;
    uint32_t since;
};
VXK_FN void vxk_mesh_changed(const struct vxk_mesh_changed_args *a, uint32_t i)
{
    uint64_t key = vxk_load64(&a->g.keys[i]);
    const struct vxk_chunk *c = key == VXK_NO_KEY ? (const struct vxk_chunk *)0 : vxk_find_chunk(&a->g, key);
    uint32_t at;
    if (!c || c->epoch <= a->since)
        return;
    at = vxk_atomic_add32(a->n, 1);
    a->key[at] = key;
    a->version[at] = (uint32_t)(c - a->g.chunks);
    a->near[at] = 0;
}

/* Keys of chunk versions.  Element: a version. */
struct vxk_mesh_keys_args {
    struct vxk_grid g;
    const uint32_t *version;
    uint64_t *key;
};
VXK_FN void vxk_mesh_keys(const struct vxk_mesh_keys_args *a, uint32_t i)
{
    a->key[i] = a->g.chunks[a->version[i]].key;
}

/* True when a chunk has a cell that may own surface in a box of cells (0 .. 15 on each axis, both ends
 * included). */
VXK_FN int vxk_mesh_has_cells(const struct vxk_chunk *c, uint32_t tiles, const int32_t lo[3],
                              const int32_t hi[3])
{
    for (int32_t x = lo[0]; x <= hi[0]; x++)
        for (int32_t y = lo[1]; y <= hi[1]; y++)
            for (int32_t z = lo[2]; z <= hi[2]; z++) {
                uint32_t place = vxk_place(x, y, z);
                const struct vxk_word *w = &c->word[place >> 6];
                if ((w->leaf | (tiles ? w->tile : 0)) >> (place & 63) & 1)
                    return 1;
            }
    return 0;
}

/*
 * Whose triangles a changed chunk may have changed: bit (dx + 1) * 9 + (dy + 1) * 3 + dz + 1 for the chunk
 * (dx, dy, dz) from it, bit 13 for itself.  Element: (changed chunk * 64 + word) * 27 + bit.
 */
struct vxk_mesh_dirty_args {
    struct vxk_samples samples;
    const uint32_t *version;
    uint32_t *near; /* [changed chunks] zeros */
    uint32_t since;
};
VXK_FN void vxk_mesh_dirty(const struct vxk_mesh_dirty_args *a, uint32_t i)
{
    uint32_t b = i % 27, word = i / 27 & 63, chunk = i / (27 * 64);
    const struct vxk_chunk *c = &a->samples.grid.chunks[a->version[chunk]], *n;
    int32_t at[3], d[3], k[3], lo[3], hi[3];
    uint64_t key;
    int meets = b != 13;
    if (c->word[word].changed_epoch <= a->since)
        return;
    at[0] = (int32_t)(word >> 4);
    at[1] = (int32_t)(word >> 2 & 3);
    at[2] = (int32_t)(word & 3);
    vxk_key_xyz(c->key, &k[0], &k[1], &k[2]);
    vxk_mesh_offset(27, b, d);
    for (int s = 0; s < 3; s++) {
        meets = meets && (d[s] == 0 || at[s] == (d[s] < 0 ? 0 : 3));
        lo[s] = d[s] == 0 ? vxk_maxi(4 * at[s] - 1, 0) : d[s] < 0 ? 15 : 0;
        hi[s] = d[s] == 0 ? vxk_mini(4 * at[s] + 4, 15) : lo[s];
    }
    if (meets && vxk_cell_key((k[0] + d[0]) * 16, (k[1] + d[1]) * 16, (k[2] + d[2]) * 16, &key)) {
        n = vxk_find_chunk(&a->samples.grid, key);
        meets = n && vxk_mesh_has_cells(n, a->samples.occupancy, lo, hi);
    } else {
        meets = 0;
    }
    if (meets | (b == 13))
        vxk_atomic_or32(&a->near[chunk], 1u << b);
}

/* Cells 0 .. 3 of a word along an axis, as bits of `layers`, to the cells of the word. */
VXK_FN uint64_t vxk_mesh_layers(uint32_t layers, int axis)
{
    const uint64_t first[3] = {0xffffull, 0x000f000f000f000full, 0x1111111111111111ull};
    uint64_t out = 0;
    for (uint32_t k = 0; k < 4; k++)
        if (layers >> k & 1)
            out |= first[axis] << (axis == 0 ? 16 * k : axis == 1 ? 4 * k : k);
    return out;
}
/*
 * The cells that it takes to make chunks: all of theirs, and of those around one cell below and two above.
 * near[]: whose cells a chunk is wanted for, bits as above.  Element: chunk i >> 6, word i & 63.
 */
struct vxk_mesh_cells_args {
    struct vxk_samples samples;
    const uint64_t *chunk_key;
    const uint32_t *near;
    uint64_t *mask;
};
VXK_FN void vxk_mesh_cells(const struct vxk_mesh_cells_args *a, uint32_t i)
{
    const struct vxk_chunk *c = vxk_find_chunk(&a->samples.grid, a->chunk_key[i >> 6]);
    uint32_t word = i & 63, at[3];
    uint64_t wanted = 0;
    at[0] = word >> 4;
    at[1] = word >> 2 & 3;
    at[2] = word & 3;
    for (uint32_t b = 0; c && b < 27; b++) {
        uint64_t cells = ~0ull;
        int32_t d[3];
        if (!(a->near[i >> 6] >> b & 1))
            continue;
        vxk_mesh_offset(27, b, d);
        for (int s = 0; s < 3; s++) /* for the chunk above our last layer, for the one below our first two */
            if (d[s])
                cells &= vxk_mesh_layers(d[s] > 0 ? (at[s] == 3 ? 8u : 0u) : at[s] == 0 ? 3u : 0u, s);
        wanted |= cells;
    }
    a->mask[i] = wanted ? wanted & vxk_word_site_cells(&a->samples, c, word) : 0;
}

/* Where each chunk's vertices and triangles begin.  Element: a chunk, and one past the last. */
struct vxk_mesh_bases_args {
    const uint32_t *before; /* [chunks * 64 + 1] cells before a word */
    const uint32_t *vertices, *triangles;
    uint32_t *out; /* [chunks + 1][2] */
};
VXK_FN void vxk_mesh_bases(const struct vxk_mesh_bases_args *a, uint32_t i)
{
    uint32_t cell = a->before[i * 64];
    a->out[2 * i] = a->vertices[cell];
    a->out[2 * i + 1] = a->triangles[cell];
}

#endif
