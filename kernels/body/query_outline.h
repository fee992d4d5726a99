/*
 * query_outline.h - what is around a place, cell by cell: from the outlines of the field's words.
 */
#ifndef VXK_BODY_QUERY_OUTLINE_H
#define VXK_BODY_QUERY_OUTLINE_H

#include "query_point.h"

/* What some cell of a box has. */
enum { VXK_NEAR = 1, VXK_HAS_OCCUPIED = 2, VXK_HAS_UNKNOWN = 4, VXK_AROUND_ALL = 7 };

/* Voxels, both ends included. */
struct vxk_extent {
    int32_t lo[3], hi[3];
};

/* The cells from .. to on each axis, 0 .. 3, of a word; none when some from is above its to. */
VXK_FN uint64_t vxk_cell_span(const int32_t from[3], const int32_t to[3])
{
    uint64_t x, y, z;
    if (from[0] > to[0] || from[1] > to[1] || from[2] > to[2])
        return 0;
    x = (~0ull << (16 * from[0])) & (~0ull >> (16 * (3 - to[0])));
    y = (0xffffu << (4 * from[1])) & (0xffffu >> (4 * (3 - to[1])));
    z = (0xfu << from[2]) & (0xfu >> (3 - to[2]));
    return x & y * 0x0001000100010001ull & z * 0x1111111111111111ull;
}
/* The cells of the word at `base` (its first voxel) that an extent meets. */
VXK_FN uint64_t vxk_extent_cells(const struct vxk_extent *e, const int32_t base[3])
{
    int32_t from[3], to[3];
    for (int a = 0; a < 3; a++) {
        from[a] = vxk_maxi(e->lo[a] - base[a], 0) >> 3;
        to[a] = vxk_mini(e->hi[a] - base[a], 31) >> 3;
    }
    return vxk_cell_span(from, to);
}

/* The outline of the word whose first voxel is `base`; the cursor remembers the chunk. */
VXK_FN void vxk_outline_at(const struct vxk_query *q, struct vxk_esdf_cursor *c, const int32_t base[3],
                           struct vxk_outline *out)
{
    uint32_t word =
        (uint32_t)(base[0] >> 5 & 3) << 4 | (uint32_t)(base[1] >> 5 & 3) << 2 | (uint32_t)(base[2] >> 5 & 3);
    const struct vxk_chunk *chunk;
    uint64_t key;
    out->near = out->occupied = out->made = 0;
    out->unknown = ~0ull;
    if (!vxk_cell_key(base[0] >> 3, base[1] >> 3, base[2] >> 3, &key))
        key = VXK_NO_KEY;
    if (key != c->key) {
        c->key = key;
        c->known = 0;
        c->chunk = key == VXK_NO_KEY ? VXK_NONE : vxk_esdf_find(&q->esdf, key);
    }
    if (c->chunk != VXK_NONE) {
        *out = q->esdf.outline[(uint64_t)c->chunk << 6 | word];
        return;
    }
    chunk = key == VXK_NO_KEY ? (const struct vxk_chunk *)0 : vxk_find_chunk(&q->grid, key);
    if (chunk)
        out->unknown = ~chunk->word[word].tile;
}

/* What the cells around have: near and occupied ones that meet `inner`, unknown ones that meet `outer`, which
 * holds it. */
VXK_FN uint32_t vxk_around(const struct vxk_query *q, const struct vxk_extent *inner,
                           const struct vxk_extent *outer)
{
    struct vxk_esdf_cursor cursor;
    struct vxk_outline o;
    uint32_t found = 0;
    int32_t base[3], w[3];
    vxk_esdf_cursor_init(&cursor);
    for (w[0] = outer->lo[0] >> 5; w[0] <= outer->hi[0] >> 5; w[0]++)
        for (w[1] = outer->lo[1] >> 5; w[1] <= outer->hi[1] >> 5; w[1]++)
            for (w[2] = outer->lo[2] >> 5; w[2] <= outer->hi[2] >> 5; w[2]++) {
                uint64_t cells;
                for (int a = 0; a < 3; a++)
                    base[a] = w[a] * 32;
                vxk_outline_at(q, &cursor, base, &o);
                found |= o.unknown & vxk_extent_cells(outer, base) ? VXK_HAS_UNKNOWN : 0;
                cells = vxk_extent_cells(inner, base);
                found |= (o.near & cells ? VXK_NEAR : 0) | (o.occupied & cells ? VXK_HAS_OCCUPIED : 0);
            }
    return found;
}

#endif
