/*
 * mesh_emit.h - marching cubes, second half: vertices, normals and triangles at the places that the counts
 * give.
 *
 * Order: leaves by chunk key, word and cell; in a leaf voxels in their order (x, y, z), a voxel's three edges
 * x, y, z.
 */
#ifndef VXK_BODY_MESH_EMIT_H
#define VXK_BODY_MESH_EMIT_H

#include "mesh_mask.h"
#include "query_tint.h"

/* Vertices of a leaf before the one on the edge of voxel (x, bit = y << 3 | z) along an axis. */
VXK_FN uint32_t vxk_mesh_rank(const struct vxk_mesh_leaf *l, uint32_t x, uint32_t bit, uint32_t axis)
{
    uint64_t below = (1ull << bit) - 1;
    uint32_t n = l->before[x] & 0xffff;
    for (uint32_t k = 0; k < 3; k++)
        n += vxk_popc64(l->edge[k][x] & below) + (k < axis ? (uint32_t)(l->edge[k][x] >> bit & 1) : 0);
    return n;
}

/* Lists a batch's vertices: batch leaf << 11 | axis << 9 | voxel.  Element: batch leaf i >> 3, plane i & 7.
 */
struct vxk_mesh_list_args {
    const struct vxk_mesh_leaf *leaf;
    const uint32_t *slot;
    const uint32_t *base; /* [leaves of the map + 1] vertices before the leaf */
    uint32_t *list;
    uint32_t first;      /* leaf of the map that is the batch's first */
    uint32_t first_base; /* base[first] */
};
VXK_FN void vxk_mesh_list(const struct vxk_mesh_list_args *a, uint32_t i)
{
    uint32_t e = i >> 3, x = i & 7;
    const struct vxk_mesh_leaf *l = &a->leaf[vxk_mesh_slot(a->slot, a->first + e)];
    uint64_t left = l->edge[0][x] | l->edge[1][x] | l->edge[2][x];
    uint32_t n = a->base[a->first + e] - a->first_base + (l->before[x] & 0xffff);
    if (a->base[a->first + e] == a->base[a->first + e + 1])
        return; /* it has none, or none is wanted */
    for (; left; left &= left - 1) {
        uint32_t bit = vxk_ctz64(left);
        for (uint32_t axis = 0; axis < 3; axis++)
            if (l->edge[axis][x] >> bit & 1)
                a->list[n++] = e << 11 | axis << 9 | x << 6 | bit;
    }
}

/* Where samples around a leaf come from: 27 sources and their records. */
struct vxk_mesh_around {
    const struct vxk_samples *samples;
    const uint32_t *link;
    const struct vxk_records *records;
};
/* Sample of the voxel at p (-1 .. 9 from the leaf's first); false when it does not count. */
VXK_FN int vxk_mesh_sample(const struct vxk_mesh_around *a, const int32_t p[3], int32_t *t)
{
    uint32_t s = a->link[((p[0] + 8) >> 3) * 9 + ((p[1] + 8) >> 3) * 3 + ((p[2] + 8) >> 3)];
    *t = 0;
    return s != VXK_NONE && vxk_sample(a->samples, a->records[s].self,
                                       vxk_voxel_of((uint32_t)p[0], (uint32_t)p[1], (uint32_t)p[2]), t);
}
/* Slope of the field at voxel p, whose sample is t, along an axis: from both neighbours, from one, or 0. */
VXK_FN float vxk_mesh_slope(const struct vxk_mesh_around *a, const int32_t p[3], int32_t t, int axis)
{
    int32_t q[3], below, above;
    int has_below, has_above;
    for (int k = 0; k < 3; k++)
        q[k] = p[k];
    q[axis] = p[axis] - 1;
    has_below = vxk_mesh_sample(a, q, &below);
    q[axis] = p[axis] + 1;
    has_above = vxk_mesh_sample(a, q, &above);
    if (has_below && has_above)
        return 0.5f * (float)(above - below);
    return has_above ? (float)(above - t) : has_below ? (float)(t - below) : 0.0f;
}

/* What a vertex needs to be made: lists of the batch and where its leaves are. */
struct vxk_mesh_vertex_from {
    struct vxk_samples samples;
    const uint32_t *list;
    const uint32_t *slot;              /* target of a leaf of the map */
    const uint32_t *link;              /* [targets][27] */
    const struct vxk_records *records; /* [sources] */
    const uint32_t *place;             /* [leaves of the map] */
    uint32_t first;
};
struct vxk_mesh_vertex {
    int32_t voxel[3]; /* lower end of its edge, in the chunk */
    int axis;
    uint32_t f;      /* of 256, along the edge */
    float normal[3]; /* unit */
};
VXK_FN void vxk_mesh_make_vertex(const struct vxk_mesh_vertex_from *a, uint32_t i,
                                 struct vxk_mesh_vertex *out)
{
    uint32_t code = a->list[i], leaf = a->first + (code >> 11);
    struct vxk_mesh_around around;
    int32_t p[3], q[3], c[3], t = 0, u = 0;
    float f, g[3], n;
    out->axis = (int)(code >> 9 & 3);
    around.samples = &a->samples;
    around.link = a->link + (uint64_t)vxk_mesh_slot(a->slot, leaf) * 27;
    around.records = a->records;
    vxk_place_xyz(a->place[leaf] & 4095, &c[0], &c[1], &c[2]);
    for (int b = 0; b < 3; b++) {
        p[b] = (int32_t)(code >> (6 - 3 * b) & 7);
        q[b] = p[b] + (b == out->axis);
        out->voxel[b] = c[b] * 8 + p[b];
    }
    vxk_mesh_sample(&around, p, &t);
    vxk_mesh_sample(&around, q, &u);
    out->f = vxk_site(t, u);
    f = (float)out->f / 256.0f;
    for (int b = 0; b < 3; b++) {
        float here = vxk_mesh_slope(&around, p, t, b), there = vxk_mesh_slope(&around, q, u, b);
        g[b] = here + f * (there - here);
    }
    n = vxk_sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    for (int b = 0; b < 3; b++) /* a field that is flat here still rises along the edge */
        out->normal[b] = n > 0.0f ? g[b] / n : b == out->axis ? (u > t ? 1.0f : -1.0f) : 0.0f;
}

/* Positions and normals.  Element: a vertex of the batch. */
struct vxk_mesh_vertices_args {
    struct vxk_mesh_vertex_from from;
    const uint64_t *chunk_key;
    float *vertices, *normals; /* [batch vertices][3] */
    double voxel_m;
    int32_t origin[3]; /* voxel at whose lower corner the mesh's origin is */
};
VXK_FN void vxk_mesh_vertices(const struct vxk_mesh_vertices_args *a, uint32_t i)
{
    uint32_t chunk = a->from.place[a->from.first + (a->from.list[i] >> 11)] >> 12;
    struct vxk_mesh_vertex v;
    int32_t k[3];
    vxk_mesh_make_vertex(&a->from, i, &v);
    vxk_key_xyz(a->chunk_key[chunk], &k[0], &k[1], &k[2]);
    for (int b = 0; b < 3; b++) {
        double at = (double)(k[b] * 128 + v.voxel[b] - a->origin[b]) + 0.5 +
                    (b == v.axis ? (double)((float)v.f / 256.0f) : 0.0);
        a->vertices[3 * (uint64_t)i + (uint32_t)b] = (float)(at * a->voxel_m);
        a->normals[3 * (uint64_t)i + (uint32_t)b] = v.normal[b];
    }
}

/*
 * The same in 12 bytes: the position in 1/256 voxel from the chunk's lower corner, which is exact, and the
 * normal in 1/32767.  Element: a vertex of the batch.
 */
struct vxk_mesh_packed {
    uint16_t position[3];
    int16_t normal[3];
};
struct vxk_mesh_pack_args {
    struct vxk_mesh_vertex_from from;
    struct vxk_mesh_packed *out; /* [batch vertices] */
};
VXK_FN void vxk_mesh_pack(const struct vxk_mesh_pack_args *a, uint32_t i)
{
    struct vxk_mesh_vertex v;
    vxk_mesh_make_vertex(&a->from, i, &v);
    for (int b = 0; b < 3; b++) {
        a->out[i].position[b] = (uint16_t)((uint32_t)v.voxel[b] * 256 + 128 + (b == v.axis ? v.f : 0u));
        a->out[i].normal[b] = (int16_t)vxk_rint(v.normal[b] * 32767.0f);
    }
}

/* Colour and label of the same vertices, between the two ends of their edges.  Element: as vxk_mesh_pack. */
struct vxk_mesh_tints_args {
    struct vxk_mesh_vertex_from from;
    const uint64_t *chunk_key;
    struct vxk_tint_answer *out; /* [batch vertices] */
};
VXK_FN void vxk_mesh_tints(const struct vxk_mesh_tints_args *a, uint32_t i)
{
    uint32_t chunk = a->from.place[a->from.first + (a->from.list[i] >> 11)] >> 12;
    struct vxk_mesh_vertex v;
    int32_t low[3];
    float f[3];
    vxk_mesh_make_vertex(&a->from, i, &v);
    vxk_key_xyz(a->chunk_key[chunk], &low[0], &low[1], &low[2]);
    for (int b = 0; b < 3; b++) {
        low[b] = low[b] * 128 + v.voxel[b];
        f[b] = b == v.axis ? (float)v.f / 256.0f : 0.0f;
    }
    vxk_tint_none(&a->out[i]);
    vxk_tint_between(&a->from.samples.grid, low, f, &a->out[i]);
}

/* Triangles.  Element: batch leaf i >> 3, plane i & 7. */
struct vxk_mesh_triangles_args {
    const struct vxk_mesh_leaf *leaf;
    const uint32_t *slot;
    const uint8_t *signs;
    const uint32_t *link;  /* [targets][27] sources */
    const uint32_t *above; /* [batch leaves][8] leaves of the map: itself and the upper seven */
    const uint32_t *vertex_base, *triangle_base; /* [leaves of the map + 1] */
    uint32_t *triangles;                         /* [batch triangles][3] */
    uint32_t first;
    uint32_t first_base; /* triangle_base[first] */
};
VXK_FN void vxk_mesh_triangles(const struct vxk_mesh_triangles_args *a, uint32_t i)
{
    uint32_t e = i >> 3, x = i & 7, target = vxk_mesh_slot(a->slot, a->first + e);
    const struct vxk_mesh_leaf *l = &a->leaf[target];
    const uint32_t *link = a->link + (uint64_t)target * 27, *above = a->above + (uint64_t)e * 8;
    uint32_t *out =
        a->triangles + 3 * (uint64_t)(a->triangle_base[a->first + e] - a->first_base + (l->before[x] >> 16));
    if (a->triangle_base[a->first + e] == a->triangle_base[a->first + e + 1])
        return; /* it has none, or none is wanted */
    for (uint32_t y = 0; y < 8; y++) {
        uint32_t left = (uint32_t)(l->cell[x] >> (y << 3)) & 255, m[4], v;
        for (uint32_t k = 0; left && k < 4; k++)
            vxk_mesh_row(a->signs, link, (int32_t)(x + (k >> 1)), (int32_t)(y + (k & 1)), &v, &m[k]);
        for (; left; left &= left - 1) {
            uint32_t z = vxk_ctz32(left), cell = vxk_mesh_case(m[0], m[1], m[2], m[3], z + 1),
                     n = 3 * vxk_mc_triangles(cell);
            for (uint32_t k = 0; k < n; k++) {
                uint32_t edge = vxk_mc_edge(cell, 0, k), corner = vxk_mc_edge_corner(edge);
                uint32_t vx = x + (corner >> 2), vy = y + (corner >> 1 & 1), vz = z + (corner & 1);
                uint32_t owner = above[(vx >> 3) << 2 | (vy >> 3) << 1 | vz >> 3];
                *out++ = a->vertex_base[owner] + vxk_mesh_rank(&a->leaf[vxk_mesh_slot(a->slot, owner)],
                                                               vx & 7, (vy & 7) << 3 | (vz & 7), edge >> 2);
            }
        }
    }
}

#endif
