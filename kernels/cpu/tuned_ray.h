/*
 * tuned_ray.h - range images to rays and bins, eight readings of a row at a time.
 *
 * The ends of the rays are written to arrays of their own, with the columns on either side of a row again
 * beyond its ends, so that the neighbours of an end are loads without a question (tuned_normal.h).  Where
 * nothing ends there is a NAN, which no comparison holds for.
 */
#ifndef VXK_CPU_TUNED_RAY_H
#define VXK_CPU_TUNED_RAY_H

#include "lanes.h"

#include <math.h>

/* Eight readings in metres: voxels or a marker, as vxk_reading has them; counts by reason. */
VXK_FN_WOVEN vxk_f8 vxk_reading8(const struct vxk_frame *f, const float *m, uint64_t counts[VXK_N_COUNTS])
{
    const vxk_f8 metres = vxk_load8(m), d = metres * vxk_all8(f->inv_voxel);
    const vxk_m8 not_used = vxk_less8(vxk_all8(f->max_d), d) | vxk_less8(d, vxk_all8(f->min_d)) |
                            vxk_same8(metres, vxk_all8(f->no_return_m));
    float out[8];
    if (vxk_holds8(vxk_less8(vxk_all8(0.0f), metres) & ~not_used))
        return d;
    for (int k = 0; k < 8; k++) {
        int why;
        out[k] = vxk_reading(f, m[k], &why);
        counts[why]++;
    }
    return vxk_load8(out);
}

/* Rays i .. i + 7, which lie in one row of a range image. */
VXK_FN_WOVEN void vxk_ray8(const struct vxk_frame_args *a, uint32_t row, uint32_t column,
                           uint64_t counts[VXK_N_COUNTS])
{
    const struct vxk_frame *f = &a->f;
    const uint32_t width = (uint32_t)f->width, i = row * width + column,
                   raw_row = f->rows_rise ? (uint32_t)f->height - 1 - row : row;
    const float *b = a->s.beam, *e = b + 2 * width;
    const vxk_f8 across = vxk_all8(e[row]),
                 l[3] = {across * vxk_load8(b + column), across * vxk_load8(b + width + column),
                         vxk_all8(e[(uint32_t)f->height + row])};
    vxk_f8 c[8], r[8];
    c[3] = vxk_reading8(f, (const float *)a->image + raw_row * width + column, counts);
    for (int k = 0; k < 3; k++) {
        c[k] = f->R[3 * k] * l[0] + f->R[3 * k + 1] * l[1] + f->R[3 * k + 2] * l[2];
        c[4 + k] = -c[k];
    }
    c[7] = vxk_all8(-1.0f);
    vxk_store8(a->s.depth + i, c[3]);
    vxk_transpose8(c, r);
    for (uint32_t k = 0; k < 8; k++)
        vxk_store8(a->s.ray[i + k].d, r[k]);
}

static void vxk_cpu_frame_ray(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    const int wide = a.f.bins_are_rays && !a.s.skew.on && !a.f.edge && a.f.encoding == VXK_IMAGE_F32;
    uint64_t counts[VXK_N_COUNTS] = {0};
    uint32_t width = (uint32_t)a.f.width, row = begin / width, column = begin % width;
    for (uint32_t i = begin; i < end;) {
        uint32_t n = 1;
        if (wide && column + 8 <= width && i + 8 <= end) {
            vxk_ray8(&a, row, column, counts);
            n = 8;
        } else {
            counts[vxk_read_ray(&a, i)]++;
        }
        i += n;
        column += n;
        if (column == width) {
            column = 0;
            row++;
        }
    }
    for (int k = 0; k < VXK_N_COUNTS; k++)
        if (k != VXK_C_USED && counts[k])
            vxk_atomic_add64(&a.s.c->counts[k], counts[k]);
}

/* Where the ray of a bin ends. */
VXK_FN void vxk_end_of(const struct vxk_frame_args *a, uint32_t bin, float to[3])
{
    const struct vxk_ray *ray =
        vxk_bin_hits(&a->s, bin) ? &a->s.ray[vxk_bin_ray(&a->f, &a->s, (int32_t)bin)] : 0;
    for (int k = 0; k < 3; k++)
        to[k] = ray ? ray->d[k] * ray->r : NAN;
}

/* The ends of bins u0 .. u1 - 1 of a row. */
VXK_FN void vxk_row_ends(const struct vxk_frame_args *a, int32_t row, int32_t u0, int32_t u1)
{
    const int32_t width = a->f.width;
    for (int32_t u = u0; u < u1; u++) {
        const int64_t at = (int64_t)row * (int64_t)a->s.end_stride + VXK_END_APRON + u;
        float x[3];
        if (a->f.bins_are_rays && u1 - u >= 8 && u >= VXK_END_APRON && u + 8 <= width - VXK_END_APRON) {
            const float *record[8];
            vxk_f8 c[8];
            vxk_m8 hits;
            for (int32_t k = 0; k < 8; k++)
                record[k] = a->s.ray[row * width + u + k].d;
            vxk_columns8(record, c);
            hits = vxk_less8(vxk_all8(0.0f), c[3]) & vxk_less8(c[3], vxk_all8(VXK_D_OPEN));
            for (int k = 0; k < 3; k++)
                vxk_store8(a->s.end[k] + at, vxk_where8(hits, c[k] * c[3], vxk_all8(NAN)));
            u += 7;
            continue;
        }
        vxk_end_of(a, (uint32_t)(row * width + u), x);
        for (int k = 0; k < 3; k++) {
            const float beside = a->f.full_turn ? x[k] : NAN;
            a->s.end[k][at] = x[k];
            if (u < VXK_END_APRON)
                a->s.end[k][at + width] = beside;
            if (u >= width - VXK_END_APRON)
                a->s.end[k][at - width] = beside;
        }
    }
}

/* Elements are four bins of a row; a run of them in one row is done at once. */
static void vxk_cpu_frame_bins(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    const uint32_t tiles = (uint32_t)a.f.n_tx[0];
    for (uint32_t i = begin; i < end; i++)
        vxk_frame_bins(&a, i);
    if (!a.s.end[0] || a.s.skew.on || a.f.width < 2 * VXK_END_APRON)
        return;
    for (uint32_t i = begin; i < end;) {
        const uint32_t row = i / tiles, first = i - row * tiles, n = vxk_minu(end - i, tiles - first);
        vxk_row_ends(&a, (int32_t)row, (int32_t)(first * VXK_TILE),
                     vxk_mini((int32_t)((first + n) * VXK_TILE), a.f.width));
        i += n;
    }
}

#endif
