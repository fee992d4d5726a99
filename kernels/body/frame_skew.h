/*
 * frame_skew.h - scans whose sensor moved while it turned: a pose for every ray and for every column of bins.
 *
 * A ray starts where the sensor was at its time and its direction is turned as the sensor was then.  Bins are
 * in the axes that the sensor had at its reading, so a voxel has to know when the sensor looked its way: the
 * column that it falls into says the time, the time the pose, and the pose the column again.  It only chooses
 * which rays are asked; what a ray says is judged from its own origin.
 */
#ifndef VXK_BODY_FRAME_SKEW_H
#define VXK_BODY_FRAME_SKEW_H

#include "frame_depth.h"

#define VXK_PI 3.14159265f
/* Rays of one column may have left at other times than the one that its pose is of: a column or so. */
#define VXK_SKEW_SLACK 0.004f

/* Arc tangent from + - * / alone, so that every device rounds alike; error below 2e-5 rad.  It only chooses
 * bins. */
VXK_FN float vxk_atan2(float y, float x)
{
    float ax = vxk_abs(x), ay = vxk_abs(y), t = vxk_min(ax, ay) / vxk_max(vxk_max(ax, ay), 1e-30f), q = t * t,
          r;
    r = t *
        (0.99997726f +
         q * (-0.33262347f + q * (0.19354346f + q * (-0.11643287f + q * (0.05265332f + q * -0.01172120f)))));
    r = ay > ax ? 0.5f * VXK_PI - r : r;
    r = x < 0.0f ? VXK_PI - r : r;
    return y < 0.0f ? -r : r;
}

/* Row of an elevation: the nearest beam of a range image, even rows for point sets.  It only chooses a bin.
 */
VXK_FN int32_t vxk_lidar_row(const struct vxk_frame *f, const struct vxk_frame_space *s, float e)
{
    int32_t r = (int32_t)vxk_min(vxk_max((f->el_top - e) * f->el_scale, 0.0f), (float)f->el_last);
    return (int32_t)s->row_of[r];
}

/* Column of an azimuth in columns, within one turn; not yet clamped. */
VXK_FN float vxk_lidar_column(const struct vxk_frame *f, float az)
{
    float c = (az - f->az0) * f->az_scale + f->az_half;
    c = c < 0.0f ? c + f->az_turn : c;
    return c >= f->az_turn ? c - f->az_turn : c;
}

/* Rotation matrix of a unit quaternion x y z w. */
VXK_FN void vxk_turn_of(const float q[4], float R[9])
{
    float x = q[0], y = q[1], z = q[2], w = q[3];
    R[0] = 1.0f - 2.0f * (y * y + z * z);
    R[1] = 2.0f * (x * y - z * w);
    R[2] = 2.0f * (x * z + y * w);
    R[3] = 2.0f * (x * y + z * w);
    R[4] = 1.0f - 2.0f * (x * x + z * z);
    R[5] = 2.0f * (y * z - x * w);
    R[6] = 2.0f * (x * z - y * w);
    R[7] = 2.0f * (y * z + x * w);
    R[8] = 1.0f - 2.0f * (x * x + y * y);
}

/* Pose at `ns` after the first pose, between two knots. */
VXK_FN void vxk_skew_pose(const struct vxk_skew *k, uint32_t ns, float R[9], float t[3])
{
    uint32_t lo = 0, hi = k->n_segments, j;
    const struct vxk_knot *a, *b;
    float u, q[4], n2 = 0.0f, n;
    while (lo + 1 < hi) {
        uint32_t m = (lo + hi) / 2;
        if (k->pose_ns[m] <= ns)
            lo = m;
        else
            hi = m;
    }
    u = (float)(ns - k->pose_ns[lo]) / (float)(k->pose_ns[lo + 1] - k->pose_ns[lo]) * (float)k->steps;
    u = vxk_min(vxk_max(u, 0.0f), (float)k->steps);
    j = (uint32_t)u;
    if (j >= k->steps)
        j = k->steps - 1;
    u -= (float)j;
    a = &k->knot[lo * k->steps + j];
    b = a + 1;
    for (int i = 0; i < 4; i++) {
        q[i] = a->q[i] + (b->q[i] - a->q[i]) * u;
        n2 += q[i] * q[i];
    }
    n = 1.0f / vxk_sqrt(n2);
    for (int i = 0; i < 4; i++)
        q[i] *= n;
    for (int i = 0; i < 3; i++)
        t[i] = a->t[i] + (b->t[i] - a->t[i]) * u;
    vxk_turn_of(q, R);
}

/* Time of point or column i after the first pose. */
VXK_FN uint32_t vxk_skew_time(const struct vxk_skew *k, uint32_t i)
{
    return (uint32_t)k->time_ns[i] - (uint32_t)k->first_ns;
}

/* Pose of ray i: rotation, position in voxels from f.t.  Writes s.skew.origin. */
VXK_FN void vxk_ray_pose(const struct vxk_frame_args *a, uint32_t i, float R[9], float o[3])
{
    const struct vxk_skew *k = &a->s.skew;
    for (int j = 0; j < 9; j++)
        R[j] = a->f.R[j];
    o[0] = o[1] = o[2] = 0.0f;
    if (!k->on)
        return;
    if (a->f.bins_are_rays) {
        const struct vxk_column *c = &k->column[i % (uint32_t)a->f.width];
        for (int j = 0; j < 9; j++)
            R[j] = c->R[j];
        for (int j = 0; j < 3; j++)
            o[j] = c->t[j];
    } else {
        vxk_skew_pose(k, vxk_skew_time(k, i), R, o);
    }
    for (uint32_t j = 0; j < 3; j++)
        k->origin[3 * (uint64_t)i + j] = o[j];
}

/* Point i of a set fell into a column. */
VXK_FN void vxk_skew_note(const struct vxk_frame_args *a, uint32_t column, uint32_t i)
{
    const struct vxk_skew *k = &a->s.skew;
    uint32_t ns = vxk_skew_time(k, i), *early = &k->column_ns[column], *late = early + a->f.width;
    if (ns < vxk_peek32(early))
        vxk_atomic_min32(early, ns);
    if (ns > vxk_peek32(late))
        vxk_atomic_max32(late, ns);
}

/* Element: a column: its pose.  A point set's is that halfway between its first and last point. */
#define vxk_frame_column_args vxk_frame_args
VXK_FN void vxk_frame_column(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_skew *k = &a->s.skew;
    struct vxk_column *c = &k->column[i];
    uint32_t ns = k->pose_ns[k->n_segments] / 2; /* where f.R and f.t are */
    if (a->f.bins_are_rays)
        ns = vxk_skew_time(k, i);
    else if (k->column_ns[i] <= k->column_ns[i + (uint32_t)a->f.width])
        ns = k->column_ns[i] + (k->column_ns[i + (uint32_t)a->f.width] - k->column_ns[i]) / 2;
    vxk_skew_pose(k, ns, c->R, c->t);
}

/* The point p (map axes, from f.t) in the axes of a column. */
VXK_FN struct vxk_vec3 vxk_column_local(const struct vxk_column *c, const float p[3])
{
    struct vxk_vec3 r;
    float x = p[0] - c->t[0], y = p[1] - c->t[1], z = p[2] - c->t[2];
    r.x = c->R[0] * x + c->R[3] * y + c->R[6] * z;
    r.y = c->R[1] * x + c->R[4] * y + c->R[7] * z;
    r.z = c->R[2] * x + c->R[5] * y + c->R[8] * z;
    return r;
}

/* The column in which the sensor saw the point p (map axes, from f.t). */
VXK_FN uint32_t vxk_skew_column(const struct vxk_frame *f, const struct vxk_frame_space *s, const float p[3])
{
    struct vxk_vec3 q = vxk_to_sensor(f, p[0] + f->t[0], p[1] + f->t[1], p[2] + f->t[2]);
    int32_t c = 0;
    for (int step = 0;; step++) {
        c = (int32_t)vxk_min(vxk_max(vxk_lidar_column(f, vxk_atan2(q.y, q.x)), 0.0f), 1e6f);
        if (c >= f->width)
            c = f->full_turn ? 0 : f->width - 1;
        if (step == 2)
            return (uint32_t)c;
        q = vxk_column_local(&s->skew.column[c], p);
    }
}

#endif
