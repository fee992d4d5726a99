/*
 * tuned_normal.h - normals at the ends of LiDAR rays, eight columns of a row at a time (frame_normal).
 */
#ifndef VXK_CPU_TUNED_NORMAL_H
#define VXK_CPU_TUNED_NORMAL_H

#include "tuned_ray.h"

/* Steps along a row or column that a neighbour may lie away (vxk_bin_neighbour). */
enum { VXK_SIDE_STEPS = 16 };

/* Vectors from eight ends to the first at least 0.4 voxels away in steps of `by`, at most n of them; none:
 * e[0] is NAN. */
VXK_FN_WOVEN void vxk_side8(const float *const p[3], int64_t by, int32_t n, const vxk_f8 from[3], vxk_m8 on,
                            vxk_f8 e[3])
{
    vxk_m8 found = ~on;
    e[0] = e[1] = e[2] = vxk_all8(NAN);
    for (int32_t k = 1; k <= n; k++) {
        vxk_f8 d[3];
        vxk_m8 take;
        for (int m = 0; m < 3; m++)
            d[m] = vxk_load8(p[m] + by * k) - from[m];
        take = (vxk_m8)(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] >= vxk_all8(0.4f * 0.4f)) & ~found;
        for (int m = 0; m < 3; m++)
            e[m] = vxk_where8(take, d[m], e[m]);
        found |= take;
        if (vxk_holds8(found))
            break;
    }
}

/* Tangents from the ends on either side (vxk_tangent): where there is one. */
VXK_FN_WOVEN vxk_m8 vxk_tangent8(const vxk_f8 p[3], const vxk_f8 q[3], vxk_f8 t[3])
{
    vxk_f8 s1 = p[0] * p[0] + p[1] * p[1] + p[2] * p[2], s2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    vxk_f8 dot = p[0] * -q[0] + p[1] * -q[1] + p[2] * -q[2], l2;
    vxk_m8 is = vxk_less8(vxk_all8(0.0f), dot) & (vxk_m8)(dot * dot >= vxk_all8(0.99f) * (s1 * s2));
    for (int k = 0; k < 3; k++)
        t[k] = p[k] - q[k];
    l2 = vxk_all8(1.0f) / vxk_sqrt8(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
    for (int k = 0; k < 3; k++)
        t[k] = t[k] * l2;
    return is;
}

/* Normals of bins `column` .. column + 7 of a row. */
VXK_FN_APART void vxk_normal8(const struct vxk_frame_args *a, int32_t row, int32_t column, uint32_t n)
{
    const int64_t at = (int64_t)row * (int64_t)a->s.end_stride + VXK_END_APRON + column,
                  stride = (int64_t)a->s.end_stride;
    const float *p[3] = {a->s.end[0] + at, a->s.end[1] + at, a->s.end[2] + at};
    const vxk_f8 from[3] = {vxk_load8(p[0]), vxk_load8(p[1]), vxk_load8(p[2])};
    const uint32_t bin = (uint32_t)(row * a->f.width + column);
    const float *record[8];
    vxk_f8 side[4][3], c[8], tu[3], tv[3], nu[3], nv[3], o[3], l, nd;
    vxk_m8 on = (vxk_m8)(from[0] == from[0]) & vxk_first8(n), u, v;
    uint32_t is[8], ray[8] = {0}, own = 0;
    float out[4][8];
    if (!vxk_some8(on))
        return;
    vxk_side8(p, 1, VXK_SIDE_STEPS, from, on, side[0]);
    vxk_side8(p, -1, VXK_SIDE_STEPS, from, on, side[1]);
    vxk_side8(p, stride, vxk_mini(VXK_SIDE_STEPS, a->f.height - 1 - row), from, on, side[2]);
    vxk_side8(p, -stride, vxk_mini(VXK_SIDE_STEPS, row), from, on, side[3]);
    u = vxk_tangent8(side[0], side[1], tu);
    v = vxk_tangent8(side[2], side[3], tv);
    on = on & (u | v);
    if (!vxk_some8(on))
        return;
    vxk_store_bits8(is, on);
    for (uint32_t k = 0; k < 8; k++)
        if (is[k])
            own = ray[k] = vxk_bin_ray(&a->f, &a->s, (int32_t)(bin + k));
    for (uint32_t k = 0; k < 8; k++) /* others' rays are being written */
        record[k] = a->s.ray[is[k] ? ray[k] : own].d;
    vxk_columns8(record, c);
    nu[0] = tu[1] * tv[2] - tu[2] * tv[1];
    nu[1] = tu[2] * tv[0] - tu[0] * tv[2];
    nu[2] = tu[0] * tv[1] - tu[1] * tv[0];
    for (int k = 0; k < 3; k++)
        tv[k] = vxk_where8(u, tu[k], tv[k]); /* the only one */
    l = c[0] * tv[0] + c[1] * tv[1] + c[2] * tv[2];
    for (int k = 0; k < 3; k++) {
        nv[k] = l * tv[k] - c[k];
        o[k] = vxk_where8(u & v, nu[k], nv[k]);
    }
    l = o[0] * o[0] + o[1] * o[1] + o[2] * o[2];
    on = on & vxk_less8(vxk_all8(1e-4f), l);
    nd = o[0] * c[0] + o[1] * c[1] + o[2] * c[2];
    l = vxk_where8(vxk_less8(vxk_all8(0.0f), nd), vxk_all8(-1.0f), vxk_all8(1.0f)) / vxk_sqrt8(l);
    nd = nd * l;
    on = on & (vxk_m8)(nd <= vxk_all8(-0.02f));
    for (int k = 0; k < 3; k++)
        vxk_store8(out[k], o[k] * l);
    vxk_store8(out[3], nd);
    vxk_store_bits8(is, on);
    for (uint32_t k = 0; k < 8; k++) {
        struct vxk_ray *to = &a->s.ray[ray[k]];
        if (!is[k])
            continue;
        for (int m = 0; m < 3; m++)
            to->n[m] = out[m][k];
        to->nd = out[3][k];
    }
}

static void vxk_cpu_frame_normal(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    if (!a.s.end[0] || a.s.skew.on || a.f.width < 2 * VXK_END_APRON) {
        for (uint32_t i = begin; i < end; i++)
            vxk_frame_normal(&a, i);
        return;
    }
    for (uint32_t i = begin; i < end;) {
        const int32_t row = (int32_t)(i / (uint32_t)a.f.width), column = (int32_t)(i % (uint32_t)a.f.width);
        const uint32_t n = vxk_minu(vxk_minu(8, end - i), (uint32_t)(a.f.width - column));
        vxk_normal8(&a, row, column, n);
        i += n;
    }
}

#endif
