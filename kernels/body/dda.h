/*
 * dda.h - walks the voxels that a ray meets, in order, and steps over boxes of voxels that hold nothing.
 *
 * The ray crosses plane k of axis a at t = (k - o_a) / d_a, computed from k alone and never summed up along
 * the way, so a voxel is met or missed no matter which boxes were stepped over before: a walk that skips
 * meets the very voxels of one that doesn't.  Planes crossed at the same t are crossed in the order of their
 * axes; a voxel that the ray only touches there is met for no length.
 *
 *     vxk_dda_begin(&w, o, d, t0, t1);
 *     do {
 *         size = how many voxels a side may be taken as one, a power of two: 1 is the voxel w.i alone;
 *         vxk_dda_span(&w, size);   -> the box holds the ray from w.t to w.t_exit
 *     } while (vxk_dda_step(&w, size));
 *
 * Source: Amanatides and Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing", 1987.
 */
#ifndef VXK_BODY_DDA_H
#define VXK_BODY_DDA_H

#include "../dev.h"

/* Walks stay within +-2^29 voxels on each axis, four times the range of maps: coordinates never overflow. */
#define VXK_DDA_REACH 536870912.0

struct vxk_dda {
    double o[3], d[3];
    double rate[3]; /* 1 / d; 0 on an axis along which the ray stands still */
    double t, t_exit, t_end;
    int32_t i[3]; /* voxel */
    int32_t axis; /* the box is left through a side of this axis; -1: the ray ends in it */
};

VXK_FN double vxk_dda_at(const struct vxk_dda *w, int a, int32_t plane)
{
    return ((double)plane - w->o[a]) * w->rate[a];
}

/* Has the ray crossed the plane by w->t?  `tie`: a plane at w->t itself counts. */
VXK_FN int vxk_dda_passed(const struct vxk_dda *w, int a, int32_t plane, int tie)
{
    double at = vxk_dda_at(w, a, plane);
    return at < w->t || (tie && at == w->t);
}

/* Coordinate at w->t, which is known to be in [first, last]: a guess, put right by the planes beside it. */
VXK_FN int32_t vxk_dda_locate(const struct vxk_dda *w, int a, int32_t first, int32_t last, int tie)
{
    double x = w->o[a] + w->d[a] * w->t;
    int32_t i = x <= (double)first ? first : x >= (double)last ? last : (int32_t)x;
    i -= (double)i > x && i > first;
    if (w->d[a] > 0.0) {
        while (i < last && vxk_dda_passed(w, a, i + 1, tie))
            i++;
        while (i > first && !vxk_dda_passed(w, a, i, tie))
            i--;
    } else if (w->d[a] < 0.0) {
        while (i > first && vxk_dda_passed(w, a, i, tie))
            i--;
        while (i < last && !vxk_dda_passed(w, a, i + 1, tie))
            i++;
    }
    return i;
}

/*
 * Begins the walk along o + t d for t in [t0, t1]; |d| need not be 1.  A start on a plane is in the voxel
 * above it.  0, and no walk, when the start is outside the reach or something isn't a number.
 */
VXK_FN int vxk_dda_begin(struct vxk_dda *w, const double o[3], const double d[3], double t0, double t1)
{
    const double reach = VXK_DDA_REACH;
    w->t = w->t_exit = t0;
    w->t_end = t1;
    w->axis = -1;
    for (int a = 0; a < 3; a++) {
        w->o[a] = w->d[a] = w->rate[a] = 0.0;
        w->i[a] = 0;
    }
    if (!(t0 <= t1))
        return 0;
    for (int a = 0; a < 3; a++) {
        double x = o[a] + d[a] * t0, out;
        if (!(x >= -reach && x < reach) || !(o[a] >= -4.0 * reach && o[a] <= 4.0 * reach))
            return 0;
        w->o[a] = o[a];
        w->d[a] = d[a];
        /* slower than 1e-30 voxel a unit is as good as still, and 1 / d stays finite */
        w->rate[a] = d[a] > 1e-30 || d[a] < -1e-30 ? 1.0 / d[a] : 0.0;
        if (w->rate[a] == 0.0) {
            w->d[a] = 0.0;
            w->i[a] = (int32_t)o[a] - ((double)(int32_t)o[a] > o[a]);
            continue;
        }
        w->i[a] = vxk_dda_locate(w, a, -(1 << 29), (1 << 29) - 1, d[a] > 0.0);
        out = ((d[a] > 0.0 ? reach - 1.0 : -reach) - o[a]) * w->rate[a];
        w->t_end = out < w->t_end ? out : w->t_end;
    }
    return 1;
}

/* Where the ray leaves the box of `size` voxels a side, a power of two, that holds w->i. */
VXK_FN void vxk_dda_span(struct vxk_dda *w, int32_t size)
{
    w->t_exit = w->t_end;
    w->axis = -1;
    for (int a = 0; a < 3; a++) {
        int32_t first = w->i[a] & -size;
        double at = vxk_dda_at(w, a, w->d[a] > 0.0 ? first + size : first);
        if (w->rate[a] != 0.0 && at < w->t_exit) {
            w->t_exit = at;
            w->axis = a;
        }
    }
}

/* Goes to the voxel behind the box of the last vxk_dda_span; 0 when the ray ended in it. */
VXK_FN int vxk_dda_step(struct vxk_dda *w, int32_t size)
{
    if (w->axis < 0)
        return 0;
    w->t = w->t_exit;
    for (int a = 0; a < 3; a++) {
        int32_t first = w->i[a] & -size;
        if (a == w->axis)
            w->i[a] = w->d[a] > 0.0 ? first + size : first - 1;
        else if (size > 1 && w->rate[a] != 0.0)
            w->i[a] = vxk_dda_locate(w, a, first, first + size - 1, a < w->axis);
    }
    return 1;
}

/* The walk cell by cell, of cells with edge `size`, from places in single precision: begins in the first. */
VXK_FN void vxk_dda_init(struct vxk_dda *w, const float o[3], const float d[3], float t0, float t1,
                         float size)
{
    double at[3], along[3];
    for (int a = 0; a < 3; a++) {
        at[a] = (double)o[a] / (double)size;
        along[a] = (double)d[a] / (double)size;
    }
    if (vxk_dda_begin(w, at, along, (double)t0, (double)t1))
        vxk_dda_span(w, 1);
}
/* To the next voxel; 0 when the ray ended in this one. */
VXK_FN int vxk_dda_next(struct vxk_dda *w)
{
    if (!vxk_dda_step(w, 1))
        return 0;
    vxk_dda_span(w, 1);
    return 1;
}

#endif
