/*
 * mesh_mask.h - marching cubes, first half: which edges carry a vertex and which cells a surface, in bit
 * masks.
 *
 * A mesh is made in batches of leaves (cells of 8^3 voxels; "cell" alone is a marching-cubes cell of 2^3
 * voxels).  A batch lists its targets (leaves whose masks it needs) and the sources (leaves whose signs those
 * read).  A voxel owns the cell above it and its three upper edges.
 */
#ifndef VXK_BODY_MESH_MASK_H
#define VXK_BODY_MESH_MASK_H

#include "esdf_cells.h"
#include "mesh_table.h"

/* Masks of a target: word x of a mask, bit y << 3 | z, as in leaf records. */
struct vxk_mesh_leaf {
    uint64_t edge[3][8]; /* the edge along the axis carries a vertex */
    uint64_t cell[8];    /* the cell has triangles */
    uint32_t before[8];  /* in the planes before x: vertices, triangles << 16 */
    uint32_t n;          /* in all: vertices, triangles << 16 */
    uint32_t reserved;
};

/* Place of leaf k of the map on a list; without a list every leaf is at its own number. */
VXK_FN uint32_t vxk_mesh_slot(const uint32_t *slot, uint32_t k)
{
    return slot ? slot[k] : k;
}

/* Lists the leaves around others.  Element: leaf i / n, neighbour i % n; n = 8: itself and the upper seven,
 * 27: all. */
struct vxk_mesh_claim_args {
    struct vxk_cells c;
    const uint32_t *list; /* NULL: leaf e is first + e */
    uint32_t *slot, *claimed, *n;
    uint32_t first;
    uint32_t neighbours; /* 1, 8 or 27 */
};
VXK_FN void vxk_mesh_offset(uint32_t neighbours, uint32_t k, int32_t d[3])
{
    if (neighbours == 27) {
        d[0] = (int32_t)(k / 9) - 1;
        d[1] = (int32_t)(k / 3 % 3) - 1;
        d[2] = (int32_t)(k % 3) - 1;
    } else {
        d[0] = (int32_t)(k >> 2);
        d[1] = (int32_t)(k >> 1 & 1);
        d[2] = (int32_t)(k & 1);
    }
}
VXK_FN void vxk_mesh_claim(const struct vxk_mesh_claim_args *a, uint32_t i)
{
    uint32_t e = i / a->neighbours, k = a->list ? a->list[e] : a->first + e;
    int32_t d[3];
    vxk_mesh_offset(a->neighbours, i % a->neighbours, d);
    k = vxk_cells_near(&a->c, a->c.place[k], d[0], d[1], d[2]);
    if (k != VXK_NONE)
        vxk_cells_claim(a->slot, a->claimed, a->n, k);
}
/* Where they are: link[i] = place in the list that `slot` numbers, or with slot NULL the leaf's number;
 * VXK_NONE. */
struct vxk_mesh_link_args {
    struct vxk_cells c;
    const uint32_t *list;
    const uint32_t *slot;
    uint32_t *link;
    uint32_t first;
    uint32_t neighbours;
};
VXK_FN void vxk_mesh_link(const struct vxk_mesh_link_args *a, uint32_t i)
{
    uint32_t e = i / a->neighbours, k = a->list ? a->list[e] : a->first + e;
    int32_t d[3];
    vxk_mesh_offset(a->neighbours, i % a->neighbours, d);
    k = vxk_cells_near(&a->c, a->c.place[k], d[0], d[1], d[2]);
    a->link[i] = k != VXK_NONE && a->slot ? a->slot[k] : k;
}

/* Signs of a source: byte row = the voxels along z that count, byte 64 + row = those of them that are
 * negative. Element: source i >> 6, row i & 63. */
struct vxk_mesh_signs_args {
    struct vxk_samples samples;
    const struct vxk_records *records;
    uint8_t *signs; /* [sources][128] */
};
VXK_FN void vxk_mesh_signs(const struct vxk_mesh_signs_args *a, uint32_t i)
{
    int32_t t[8];
    uint32_t minus, valid = vxk_row(&a->samples, a->records[i >> 6].self, i & 63, t, &minus);
    uint8_t *out = a->signs + (uint64_t)(i >> 6) * 128 + (i & 63);
    out[0] = (uint8_t)valid;
    out[64] = (uint8_t)minus;
}

/* Row (x, y) of a target, -1 .. 8: bit z + 1 for z = -1 .. 8.  link: 27 sources. */
VXK_FN void vxk_mesh_row(const uint8_t *signs, const uint32_t *link, int32_t x, int32_t y, uint32_t *valid,
                         uint32_t *minus)
{
    const uint32_t *l = link + ((x + 8) >> 3) * 9 + ((y + 8) >> 3) * 3;
    uint32_t row = (uint32_t)((x & 7) << 3 | (y & 7)), v = 0, m = 0;
    if (l[0] != VXK_NONE) {
        v = signs[(uint64_t)l[0] * 128 + row] >> 7;
        m = signs[(uint64_t)l[0] * 128 + 64 + row] >> 7;
    }
    if (l[1] != VXK_NONE) {
        v |= (uint32_t)signs[(uint64_t)l[1] * 128 + row] << 1;
        m |= (uint32_t)signs[(uint64_t)l[1] * 128 + 64 + row] << 1;
    }
    if (l[2] != VXK_NONE) {
        v |= (uint32_t)(signs[(uint64_t)l[2] * 128 + row] & 1) << 9;
        m |= (uint32_t)(signs[(uint64_t)l[2] * 128 + 64 + row] & 1) << 9;
    }
    *valid = v;
    *minus = m;
}

/* Case of the cell at bit z (0 .. 8) of four rows: (x, y), (x, y + 1), (x + 1, y), (x + 1, y + 1). */
VXK_FN uint32_t vxk_mesh_case(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t bit)
{
    return (a >> bit & 3) << 0 | (b >> bit & 3) << 2 | (c >> bit & 3) << 4 | (d >> bit & 3) << 6;
}

/* Masks and counts of plane x of a target.  A vertex counts only where one of the four cells around its edge
 * is whole. Element: target i >> 3, plane i & 7. */
struct vxk_mesh_masks_args {
    const uint8_t *signs;
    const uint32_t *link; /* [targets][27] */
    struct vxk_mesh_leaf *out;
};
VXK_FN void vxk_mesh_masks(const struct vxk_mesh_masks_args *a, uint32_t i)
{
    struct vxk_mesh_leaf *out = &a->out[i >> 3];
    const uint32_t *link = a->link + (uint64_t)(i >> 3) * 27;
    int32_t x = (int32_t)(i & 7);
    uint32_t v[3][10], m[3][10], whole[2][9], n_vertices = 0, n_triangles = 0, any = 0, all = 0x3ff;
    uint64_t edge[3], cell = 0;
    edge[0] = edge[1] = edge[2] = 0;
    for (int32_t p = 0; p < 3; p++)
        for (int32_t y = 0; y < 10; y++) {
            vxk_mesh_row(a->signs, link, x + p - 1, y - 1, &v[p][y], &m[p][y]);
            any |= m[p][y];
            all &= m[p][y];
        }
    if (any && all != 0x3ff) {
        for (uint32_t p = 0; p < 2; p++)
            for (uint32_t y = 0; y < 9; y++) {
                uint32_t c = v[p][y] & v[p][y + 1] & v[p + 1][y] & v[p + 1][y + 1];
                whole[p][y] = c & c >> 1; /* bit z + 1: the cell (x + p - 1, y - 1, z) has all its corners */
            }
        for (uint32_t y = 1; y < 9; y++) {
            uint32_t V = v[1][y], N = m[1][y], c = whole[1][y], ux = c | whole[1][y - 1],
                     uy = c | whole[0][y];
            uint32_t uz = ux | uy | whole[0][y - 1], shift = (y - 1) << 3;
            uint32_t ex = V & v[2][y] & (N ^ m[2][y]) & (ux | ux << 1),
                     ey = V & v[1][y + 1] & (N ^ m[1][y + 1]) & (uy | uy << 1);
            uint32_t ez = V & V >> 1 & (N ^ N >> 1) & uz;
            uint32_t one = N | m[1][y + 1] | m[2][y] | m[2][y + 1],
                     each = N & m[1][y + 1] & m[2][y] & m[2][y + 1], mixed;
            ex = ex >> 1 & 255;
            ey = ey >> 1 & 255;
            ez = ez >> 1 & 255;
            mixed = (c & (one | one >> 1) & ~(each & each >> 1)) >> 1 & 255;
            edge[0] |= (uint64_t)ex << shift;
            edge[1] |= (uint64_t)ey << shift;
            edge[2] |= (uint64_t)ez << shift;
            cell |= (uint64_t)mixed << shift;
            n_vertices += vxk_popc32(ex | ey << 8 | ez << 16);
            for (; mixed; mixed &= mixed - 1)
                n_triangles += vxk_mc_triangles(
                    vxk_mesh_case(N, m[1][y + 1], m[2][y], m[2][y + 1], vxk_ctz32(mixed) + 1));
        }
    }
    for (uint32_t k = 0; k < 3; k++)
        out->edge[k][x] = edge[k];
    out->cell[x] = cell;
    out->before[x] = n_vertices | n_triangles << 16;
}
/* Counts to running sums.  Element: a target. */
struct vxk_mesh_sums_args {
    struct vxk_mesh_leaf *leaf;
};
VXK_FN void vxk_mesh_sums(const struct vxk_mesh_sums_args *a, uint32_t i)
{
    struct vxk_mesh_leaf *l = &a->leaf[i];
    uint32_t sum = 0;
    for (uint32_t x = 0; x < 8; x++) {
        uint32_t n = l->before[x];
        l->before[x] = sum;
        sum += n;
    }
    l->n = sum;
}
/* What a cell of the set is to make: triangles in the chunks that are made, vertices there and one cell
 * above.  near: of the set's chunks, as vxk_mesh_dirty's; NULL: all make both. */
enum { VXK_MESH_TRIANGLES = 1, VXK_MESH_VERTICES = 2 };
VXK_FN uint32_t vxk_mesh_role(const struct vxk_cells *c, const uint32_t *near, uint32_t i)
{
    uint32_t place, role = 0;
    if (!near)
        return VXK_MESH_TRIANGLES | VXK_MESH_VERTICES;
    place = c->place[i];
    for (uint32_t b = 0; b < 8; b++) {
        uint32_t k =
            b ? vxk_cells_near(c, place, -(int32_t)(b >> 2), -(int32_t)(b >> 1 & 1), -(int32_t)(b & 1)) : i;
        if (k != VXK_NONE && near[c->place[k] >> 12] >> 13 & 1)
            role |= b ? VXK_MESH_VERTICES : VXK_MESH_TRIANGLES | VXK_MESH_VERTICES;
    }
    return role;
}
/* Counts of the batch's leaves, for the running sums of the whole map.  Element: a leaf of the batch. */
struct vxk_mesh_counts_args {
    const struct vxk_mesh_leaf *leaf;
    const uint32_t *slot;
    struct vxk_cells c; /* with near: of vxk_mesh_role */
    const uint32_t *near;
    uint32_t *vertices, *triangles; /* [leaves of the map] */
    uint32_t first;
};
VXK_FN void vxk_mesh_counts(const struct vxk_mesh_counts_args *a, uint32_t i)
{
    uint32_t n = a->leaf[vxk_mesh_slot(a->slot, a->first + i)].n,
             role = vxk_mesh_role(&a->c, a->near, a->first + i);
    a->vertices[a->first + i] = role & VXK_MESH_VERTICES ? n & 0xffff : 0;
    a->triangles[a->first + i] = role & VXK_MESH_TRIANGLES ? n >> 16 : 0;
}

#endif
