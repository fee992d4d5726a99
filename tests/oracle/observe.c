/* observe.c - a frame's sensor and readings, and places in a box of voxels, for the references. */
#include "observe.h"

#include <math.h>
#include <string.h>

size_t box_index(const struct box *b, const int32_t v[3])
{
    return ((size_t)(v[0] - b->lo[0]) * (size_t)b->n[1] + (size_t)(v[1] - b->lo[1])) * (size_t)b->n[2] +
           (size_t)(v[2] - b->lo[2]);
}

bool box_holds(const struct box *b, const int32_t v[3])
{
    for (int k = 0; k < 3; k++)
        if (v[k] < b->lo[k] || v[k] >= b->lo[k] + b->n[k])
            return false;
    return true;
}

void observe_rotation(const double q[4], double R[9])
{
    double x = q[0], y = q[1], z = q[2], w = q[3];
    /* v' = v + 2 u x (u x v + w v), for the three unit vectors */
    for (int c = 0; c < 3; c++) {
        double v[3] = {c == 0, c == 1, c == 2};
        double a[3] = {y * v[2] - z * v[1] + w * v[0], z * v[0] - x * v[2] + w * v[1],
                       x * v[1] - y * v[0] + w * v[2]};
        R[c] = v[0] + 2 * (y * a[2] - z * a[1]);
        R[3 + c] = v[1] + 2 * (z * a[0] - x * a[2]);
        R[6 + c] = v[2] + 2 * (x * a[1] - y * a[0]);
    }
}

void observe_sensor(struct sensor *s, const struct vx_map_params *p, const struct vx_frame *f)
{
    struct vxk_frame_args args;
    struct vx_detail detail;
    memset(&args, 0, sizeof args);
    ck_ok(vx__frame_convert(p, f, &args, &detail));
    s->k = args.f;
    observe_rotation(f->pose[0].rotation_xyzw, s->R);
    memcpy(s->origin_m, p->origin_m, sizeof s->origin_m);
    s->vs = p->voxel_size_m;
    s->weighting = p->weighting;
    for (int k = 0; k < 3; k++)
        s->t[k] = (f->pose[0].position_m[k] - p->origin_m[k]) / s->vs;
    s->trunc = p->mode == VX_TSDF ? p->truncation_voxels : 0.5;
    s->q_scale = 32767 / p->truncation_voxels;
    s->max_d = f->max_range_m / s->vs;
    s->min_d = f->min_range_m / s->vs;
}

enum kind observe_reading(const struct sensor *s, const struct vx_frame *f, double m, double *d, bool *unsure)
{
    *unsure = false;
    if (isnan(m) || m < 0)
        return INVALID;
    if (m == 0)
        return f->sensor != VX_DEPTH && !f->invalid_zero ? OPEN : INVALID;
    *d = m / s->vs;
    *unsure = fabs(*d - s->max_d) < EPS || fabs(*d - s->min_d) < EPS;
    return *d > s->max_d ? OPEN : *d < s->min_d ? INVALID : HIT;
}
