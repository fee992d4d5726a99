/*
 * index_values.h - element functions that carry sidecar values from one index grid to another, and test them.
 *
 * The element is one slice (mask word) of a leaf: 8 a leaf.  Values are moved as bytes of their size;
 * arithmetic is done in int64 or float, in a fixed order.
 */
#ifndef VXK_BODY_INDEX_VALUES_H
#define VXK_BODY_INDEX_VALUES_H

#include "index_grid.h"

/* As enum vx_value. */
enum {
    VXK_V_U8,
    VXK_V_I8,
    VXK_V_U16,
    VXK_V_I16,
    VXK_V_U32,
    VXK_V_I32,
    VXK_V_F32,
    VXK_V_U64,
    VXK_V_F64,
    VXK_N_V
};
enum { VXK_INDEX_MAX_COMPONENTS = 16 }; /* a launch */

struct vxk_index_channel {
    uint8_t *data;
    uint64_t voxel_stride, component_stride; /* bytes */
};

VXK_FN uint32_t vxk_value_bytes(uint32_t type)
{
    return type <= VXK_V_I8 ? 1 : type <= VXK_V_I16 ? 2 : type <= VXK_V_F32 ? 4 : 8;
}
/* The bits of a value of 1, 2, 4 or 8 bytes. */
VXK_FN uint64_t vxk_value_get(const uint8_t *p, uint32_t bytes)
{
    return bytes == 4   ? *(const uint32_t *)(const void *)p
           : bytes == 1 ? *p
           : bytes == 2 ? *(const uint16_t *)(const void *)p
                        : *(const uint64_t *)(const void *)p;
}
VXK_FN void vxk_value_set(uint8_t *p, uint32_t bytes, uint64_t bits)
{
    if (bytes == 4)
        *(uint32_t *)(void *)p = (uint32_t)bits;
    else if (bytes == 1)
        *p = (uint8_t)bits;
    else if (bytes == 2)
        *(uint16_t *)(void *)p = (uint16_t)bits;
    else
        *(uint64_t *)(void *)p = bits;
}
/* Value of an integer type of at most 32 bits. */
VXK_FN int64_t vxk_value_int(uint64_t bits, uint32_t type)
{
    switch (type) {
    case VXK_V_I8:
        return (int8_t)(uint8_t)bits;
    case VXK_V_I16:
        return (int16_t)(uint16_t)bits;
    case VXK_V_I32:
        return (int32_t)(uint32_t)bits;
    default:
        return (int64_t)bits;
    }
}
union vxk_value_bits {
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
};
VXK_FN float vxk_value_float(uint64_t bits)
{
    union vxk_value_bits v;
    v.u32 = (uint32_t)bits;
    return v.f32;
}
VXK_FN uint64_t vxk_value_of_float(float f)
{
    union vxk_value_bits v;
    v.f32 = f;
    return f == f ? v.u32 : 0x7fc00000u; /* one NaN on every device */
}
/* sum / n to nearest, halves up; n > 0. */
VXK_FN int64_t vxk_value_mean(int64_t sum, int64_t n)
{
    int64_t a = 2 * sum + n, b = 2 * n, q = a / b;
    return q - (a % b < 0);
}

/* A place in a grid that was looked up, so that near ones need no table. */
struct vxk_index_cursor {
    int32_t x, y, z; /* of the leaf: coordinates >> 3 */
    uint32_t leaf, known;
    uint64_t first, prefix;
};
/* Number of voxel (x, y, z), or VXK_NO_VOXEL. */
VXK_FN uint64_t vxk_index_seek(const struct vxk_index_grid *g, struct vxk_index_cursor *c, int32_t x,
                               int32_t y, int32_t z)
{
    uint32_t n = vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
    uint64_t mask;
    if (!c->known || c->x != x >> 3 || c->y != y >> 3 || c->z != z >> 3) {
        c->known = 1;
        c->x = x >> 3;
        c->y = y >> 3;
        c->z = z >> 3;
        c->leaf = vxk_index_leaf_at(g, x, y, z);
        if (c->leaf != VXK_NONE) {
            c->first = vxk_index_first(g, c->leaf);
            c->prefix = g->prefix[c->leaf];
        }
    }
    if (c->leaf == VXK_NONE)
        return VXK_NO_VOXEL;
    mask = g->masks[(uint64_t)c->leaf * 8 + (n >> 6)];
    if (!(mask >> (n & 63) & 1))
        return VXK_NO_VOXEL;
    return c->first + vxk_index_before(c->prefix, n >> 6) + vxk_popc64(mask & ((1ull << (n & 63)) - 1));
}

/* From one sidecar to another. */
struct vxk_index_carry {
    struct vxk_index_grid src, dst;
    struct vxk_index_channel from, to;
    uint32_t type, n_components; /* at most VXK_INDEX_MAX_COMPONENTS */
    uint32_t first_leaf;         /* of dst: elements begin there */
    uint32_t how;                /* vxk_index_restrict, vxk_index_prolong: enum vx_restrict, vx_prolong */
    uint32_t fill;               /* voxels without a source get `initial` */
    uint32_t reserved;
    uint64_t initial[VXK_INDEX_MAX_COMPONENTS];
};
VXK_FN void vxk_index_copy_value(const struct vxk_index_carry *a, uint64_t from, uint64_t to)
{
    uint32_t bytes = vxk_value_bytes(a->type);
    for (uint32_t c = 0; c < a->n_components; c++)
        vxk_value_set(
            a->to.data + to * a->to.voxel_stride + c * a->to.component_stride, bytes,
            vxk_value_get(a->from.data + from * a->from.voxel_stride + c * a->from.component_stride, bytes));
}
VXK_FN void vxk_index_fill_value(const struct vxk_index_carry *a, uint64_t to)
{
    if (!a->fill)
        return;
    for (uint32_t c = 0; c < a->n_components; c++)
        vxk_value_set(a->to.data + to * a->to.voxel_stride + c * a->to.component_stride,
                      vxk_value_bytes(a->type), a->initial[c]);
}

/* Element: a slice of a leaf of dst. */
struct vxk_index_inject_args {
    struct vxk_index_carry op;
};
VXK_FN void vxk_index_inject(const struct vxk_index_inject_args *args, uint32_t i)
{
    const struct vxk_index_carry *a = &args->op;
    uint32_t leaf = a->first_leaf + (i >> 3), x = i & 7, place = a->dst.place[leaf];
    uint32_t other = vxk_index_leaf(&a->src, vxk_index_chunk(&a->src, a->dst.keys[place >> 12]),
                                    place >> 6 & 63, place & 63);
    uint64_t mask = a->dst.masks[(uint64_t)leaf * 8 + x], has = 0, from = 0;
    uint64_t to = vxk_index_first(&a->dst, leaf) + vxk_index_before(a->dst.prefix[leaf], x);
    if (other != VXK_NONE) {
        has = a->src.masks[(uint64_t)other * 8 + x];
        from = vxk_index_first(&a->src, other) + vxk_index_before(a->src.prefix[other], x);
    }
    for (; mask; mask &= mask - 1, to++) {
        uint64_t below = (mask & (~mask + 1)) - 1;
        if (has & (below + 1))
            vxk_index_copy_value(a, from + vxk_popc64(has & below), to);
        else
            vxk_index_fill_value(a, to);
    }
}

/* The children's values of one coarse voxel; child[k] = their numbers. */
VXK_FN uint64_t vxk_index_restrict_value(const struct vxk_index_carry *a, const uint64_t child[8], uint32_t c)
{
    uint32_t bytes = vxk_value_bytes(a->type), is_float = a->type == VXK_V_F32;
    int64_t n = 0, sum = 0, best = 0;
    float f_sum = 0, f_best = 0;
    uint64_t any = 0;
    int have = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint64_t bits;
        if (child[k] == VXK_NO_VOXEL)
            continue;
        bits = vxk_value_get(a->from.data + child[k] * a->from.voxel_stride + c * a->from.component_stride,
                             bytes);
        n++;
        if (is_float) {
            float f = vxk_value_float(bits);
            f_sum = f_sum + f;
            if (f == f && (!have || (a->how == 1 ? f < f_best : f > f_best))) {
                f_best = f;
                have = 1;
            }
            any |= f != 0;
        } else {
            int64_t v = vxk_value_int(bits, a->type);
            sum += v;
            if (!have || (a->how == 1 ? v < best : v > best))
                best = v;
            have = 1;
            any |= v != 0;
        }
    }
    if (a->how == 3)
        return is_float ? vxk_value_of_float(any ? 1.0f : 0.0f) : any;
    if (!is_float)
        return (uint64_t)(a->how == 0 ? vxk_value_mean(sum, n) : best);
    if (a->how == 0)
        return vxk_value_of_float(f_sum / (float)n);
    return have ? vxk_value_of_float(f_best) : 0x7fc00000u;
}

/* Element: a slice of a leaf of dst, the coarse grid. */
struct vxk_index_restrict_args {
    struct vxk_index_carry op;
};
VXK_FN void vxk_index_restrict(const struct vxk_index_restrict_args *args, uint32_t i)
{
    const struct vxk_index_carry *a = &args->op;
    uint32_t leaf = a->first_leaf + (i >> 3), s = i & 7;
    uint64_t to = vxk_index_first(&a->dst, leaf) + vxk_index_before(a->dst.prefix[leaf], s);
    struct vxk_index_cursor cursor = {0, 0, 0, 0, 0, 0, 0};
    int32_t x, y, z;
    vxk_index_origin(&a->dst, leaf, &x, &y, &z);
    for (uint64_t m = a->dst.masks[(uint64_t)leaf * 8 + s]; m; m &= m - 1, to++) {
        int32_t n = (int32_t)vxk_ctz64(m), cx = (x + (int32_t)s) * 2, cy = (y + (n >> 3)) * 2,
                cz = (z + (n & 7)) * 2;
        uint64_t child[8];
        int any = 0;
        for (int32_t k = 0; k < 8; k++) {
            child[k] = vxk_index_seek(&a->src, &cursor, cx + (k >> 2), cy + (k >> 1 & 1), cz + (k & 1));
            any |= child[k] != VXK_NO_VOXEL;
        }
        if (!any) {
            vxk_index_fill_value(a, to);
            continue;
        }
        for (uint32_t c = 0; c < a->n_components; c++)
            vxk_value_set(a->to.data + to * a->to.voxel_stride + c * a->to.component_stride,
                          vxk_value_bytes(a->type), vxk_index_restrict_value(a, child, c));
    }
}

/* The weighted values round one fine voxel; near[k] = the coarse voxels' numbers, weight[k] of 64. */
VXK_FN uint64_t vxk_index_prolong_value(const struct vxk_index_carry *a, const uint64_t near[8],
                                        const int32_t weight[8], uint32_t c)
{
    uint32_t bytes = vxk_value_bytes(a->type), is_float = a->type == VXK_V_F32;
    int64_t sum = 0, total = 0;
    float f_sum = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint64_t bits;
        if (near[k] == VXK_NO_VOXEL)
            continue;
        bits = vxk_value_get(a->from.data + near[k] * a->from.voxel_stride + c * a->from.component_stride,
                             bytes);
        total += weight[k];
        if (is_float)
            f_sum = f_sum + (float)weight[k] * vxk_value_float(bits);
        else
            sum += weight[k] * vxk_value_int(bits, a->type);
    }
    return is_float ? vxk_value_of_float(f_sum / (float)total) : (uint64_t)vxk_value_mean(sum, total);
}

/* Element: a slice of a leaf of dst, the fine grid. */
struct vxk_index_prolong_args {
    struct vxk_index_carry op;
};
VXK_FN void vxk_index_prolong(const struct vxk_index_prolong_args *args, uint32_t i)
{
    const struct vxk_index_carry *a = &args->op;
    uint32_t leaf = a->first_leaf + (i >> 3), s = i & 7;
    uint64_t to = vxk_index_first(&a->dst, leaf) + vxk_index_before(a->dst.prefix[leaf], s);
    struct vxk_index_cursor cursor = {0, 0, 0, 0, 0, 0, 0};
    int32_t x, y, z;
    vxk_index_origin(&a->dst, leaf, &x, &y, &z);
    x += (int32_t)s;
    for (uint64_t m = a->dst.masks[(uint64_t)leaf * 8 + s]; m; m &= m - 1, to++) {
        int32_t n = (int32_t)vxk_ctz64(m), fy = y + (n >> 3), fz = z + (n & 7), weight[8];
        int32_t bx = (x - 1) >> 1, by = (fy - 1) >> 1, bz = (fz - 1) >> 1; /* the lower of the two centres */
        uint64_t near[8], any = 0;
        if (a->how == 0) {
            uint64_t parent = vxk_index_seek(&a->src, &cursor, x >> 1, fy >> 1, fz >> 1);
            if (parent == VXK_NO_VOXEL)
                vxk_index_fill_value(a, to);
            else
                vxk_index_copy_value(a, parent, to);
            continue;
        }
        for (int32_t k = 0; k < 8; k++) {
            int32_t px = bx + (k >> 2), py = by + (k >> 1 & 1), pz = bz + (k & 1);
            near[k] = vxk_index_seek(&a->src, &cursor, px, py, pz);
            weight[k] = (px == x >> 1 ? 3 : 1) * (py == fy >> 1 ? 3 : 1) * (pz == fz >> 1 ? 3 : 1);
            any |= near[k] != VXK_NO_VOXEL;
        }
        if (!any) {
            vxk_index_fill_value(a, to);
            continue;
        }
        for (uint32_t c = 0; c < a->n_components; c++)
            vxk_value_set(a->to.data + to * a->to.voxel_stride + c * a->to.component_stride,
                          vxk_value_bytes(a->type), vxk_index_prolong_value(a, near, weight, c));
    }
}

/* Element: a slice of a leaf: which of its voxels' values compare true, for a prune. */
struct vxk_index_compare_args {
    struct vxk_index_grid g;
    struct vxk_index_channel from;
    uint64_t *keep;    /* [8 n_leaves] */
    double threshold;  /* all types but VXK_V_U64 */
    uint64_t whole;    /* VXK_V_U64 */
    uint32_t type, op; /* enum vx_compare */
    uint32_t first_leaf, reserved;
};
VXK_FN void vxk_index_compare(const struct vxk_index_compare_args *a, uint32_t i)
{
    uint32_t leaf = a->first_leaf + (i >> 3), x = i & 7, bytes = vxk_value_bytes(a->type);
    uint64_t v = vxk_index_first(&a->g, leaf) + vxk_index_before(a->g.prefix[leaf], x), keep = 0;
    for (uint64_t m = a->g.masks[(uint64_t)leaf * 8 + x]; m; m &= m - 1, v++) {
        union vxk_value_bits bits;
        int less, more, unlike;
        bits.u64 = vxk_value_get(a->from.data + v * a->from.voxel_stride, bytes);
        if (a->type == VXK_V_U64) {
            less = bits.u64 < a->whole;
            more = bits.u64 > a->whole;
            unlike = less | more;
        } else {
            double d = a->type == VXK_V_F64   ? bits.f64
                       : a->type == VXK_V_F32 ? (double)bits.f32
                                              : (double)vxk_value_int(bits.u64, a->type);
            less = d < a->threshold;
            more = d > a->threshold;
            unlike = !(d == a->threshold);
        }
        /* less, less or equal, greater, greater or equal, equal, not equal */
        if (a->op == 0   ? less
            : a->op == 1 ? less || !unlike
            : a->op == 2 ? more
            : a->op == 3 ? more || !unlike
            : a->op == 4 ? !unlike
                         : unlike)
            keep |= m & (~m + 1);
    }
    a->keep[(uint64_t)leaf * 8 + x] = keep;
}

#endif
