/*
 * tuned_smooth.h - depth images: what smoothing makes of the eight readings of a strip, all at once
 * (frame_smooth).
 */
#ifndef VXK_CPU_TUNED_SMOOTH_H
#define VXK_CPU_TUNED_SMOOTH_H

#include "lanes.h"

/* Lanes of vxk_obs_weight. */
VXK_FN_WOVEN vxk_f8 vxk_weight8(const struct vxk_frame *f, vxk_f8 d, vxk_f8 slope)
{
    const vxk_i8 most = (vxk_i8)vxk_bits8((uint32_t)f->weight_max), one = (vxk_i8)vxk_bits8(1);
    vxk_i8 w = vxk_rint8(vxk_min8(vxk_all8(f->weight_scale) * slope / (d * d), vxk_all8(1024.0f)));
    w = (vxk_i8)vxk_where8((vxk_m8)(w > one), (vxk_f8)w, (vxk_f8)one);
    return vxk_where8((vxk_m8)(w < most), (vxk_f8)w, (vxk_f8)most);
}

/* The bounds of a strip's two tiles: lane by lane in, the least and the largest of each four out. */
VXK_FN_WOVEN void vxk_least4(vxk_f8 a, float o[2])
{
    vxk_f8 b = vxk_min8(a, __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6));
    b = vxk_min8(b, __builtin_shufflevector(b, b, 2, 3, 0, 1, 6, 7, 4, 5));
    o[0] = b[0];
    o[1] = b[4];
}
VXK_FN_WOVEN void vxk_most4(vxk_f8 a, float o[2])
{
    vxk_f8 b = vxk_max8(a, __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6));
    b = vxk_max8(b, __builtin_shufflevector(b, b, 2, 3, 0, 1, 6, 7, 4, 5));
    o[0] = b[0];
    o[1] = b[4];
}

/* Lanes of vxk_smooth_solve and vxk_store_pixel, and the bounds of the strip: a whole one. */
VXK_FN_APART void vxk_smooth_end8(const struct vxk_frame_args *a, int row, int u0,
                                  const struct vxk_smooth_strip *s)
{
    const struct vxk_frame *f = &a->f;
    const uint32_t at = (uint32_t)(row * f->width + u0);
    const vxk_f8 none = vxk_all8(VXK_PIXEL_NONE), zero = vxk_all8(0.0f), one = vxk_all8(1.0f),
                 trunc = vxk_all8(f->trunc), area = vxk_all8((float)(s->step * s->step)),
                 raw = vxk_load8(a->s.depth + at), q0 = vxk_load8(s->q0), sqx = vxk_load8(s->sqx),
                 sqy = vxk_load8(s->sqy), most = vxk_load8(s->near);
    const vxk_f8 u = __builtin_convertvector((vxk_i8){0, 1, 2, 3, 4, 5, 6, 7} + u0, vxk_f8);
    vxk_i8 pairs;
    vxk_f8 n, suu, suv, svv, q, det, A, B, C, g, d, near, front, open, lo, hi, free_to, ahead, beyond, c[8],
        rows[8];
    vxk_m8 hit, thin;
    float hit_lo[2], hit_hi[2], free_all[2], free_any[2];
    __builtin_memcpy(&pairs, s->pairs, sizeof pairs);
    n = __builtin_convertvector(1 + 2 * (pairs & 255), vxk_f8);
    suu = area * __builtin_convertvector(pairs >> 8 & 255, vxk_f8);
    suv = area * __builtin_convertvector(pairs >> 24, vxk_f8);
    svv = area * __builtin_convertvector(pairs >> 16 & 255, vxk_f8);
    q = vxk_load8(s->sum) / n;
    det = 4.0f * (suu * svv - suv * suv);
    hit = vxk_less8(zero, q0);
    A = vxk_all8(f->fx * 2.0f) * (sqx * svv - sqy * suv) / det;
    B = vxk_all8(f->fy * 2.0f) * (sqy * suu - sqx * suv) / det;
    C = q - A * ((u - f->cx) / f->fx) - B * (((float)row - f->cy) / f->fy);
    g = q / vxk_sqrt8(A * A + B * B + C * C);
    g = vxk_min8(vxk_max8(g, vxk_all8(0.25f)), one);
    d = vxk_where8(hit, one / q, raw);
    g = vxk_where8(vxk_less8(zero, det * q0), g, one);
    near = vxk_min8(vxk_where8(vxk_less8(zero, most), one / most, vxk_all8(1e30f)), d);
    thin = vxk_less8(zero, near) & vxk_less8(near, d);
    front = vxk_where8(thin, near, -none);
    open = vxk_where8(vxk_less8(zero, d), vxk_all8(f->max_d), -none);
    ahead = vxk_where8(thin, near - trunc, none);
    beyond = vxk_where8(thin, near + trunc, -none);
    lo = vxk_where8(hit, d - trunc / g, vxk_where8(thin, vxk_max8(open, beyond), open));
    hi = vxk_where8(hit, d + trunc, -none);
    free_to = vxk_where8(hit, lo - vxk_all8(3.0f * f->noise) * d * d, open);
    c[0] = lo;
    c[1] = hi;
    c[2] = free_to;
    c[3] = front;
    c[4] = d;
    c[5] = g;
    c[6] = vxk_weight8(f, d, g);
    c[7] = vxk_weight8(f, front, one);
    vxk_transpose8(c, rows);
    for (int k = 0; k < 8; k++) {
        const int32_t to = vxk_pixel_place(f, u0 + k, row);
        __builtin_memcpy(&a->s.pixel[to], &rows[k], sizeof a->s.pixel[0]);
        __builtin_memcpy(&a->s.sample[to], (const char *)&rows[k] + sizeof a->s.pixel[0],
                         sizeof a->s.sample[0]);
    }
    vxk_least4(vxk_min8(vxk_where8(hit, lo, none), ahead), hit_lo);
    vxk_most4(vxk_max8(hi, beyond), hit_hi);
    vxk_least4(vxk_min8(free_to, ahead), free_all);
    vxk_most4(free_to, free_any);
    for (int k = 0; k < 2; k++) {
        struct vxk_bounds *b = &a->s.strip[row * f->n_tx[0] + u0 / VXK_TILE + k];
        b->hit_lo = hit_lo[k];
        b->hit_hi = hit_hi[k];
        b->free_all = free_all[k];
        b->free_any = free_any[k];
    }
}

static void vxk_cpu_frame_smooth(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    for (uint32_t i = begin; i < end; i++) {
        const int row = (int)i / a.f.n_strips, u0 = ((int)i - row * a.f.n_strips) * VXK_STRIP;
        const int n = vxk_mini(VXK_STRIP, a.f.width - u0);
        struct vxk_smooth_strip s;
        vxk_smooth_sum(&a, row, u0, n, &s);
        if (n == VXK_STRIP && !a.s.weight)
            vxk_smooth_end8(&a, row, u0, &s);
        else
            vxk_smooth_end(&a, row, u0, n, &s);
    }
}

#endif
