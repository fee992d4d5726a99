#include "skew.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SPAN_NS 4000000000ll

static vx_err check_times(const struct vx_frame *f, struct vx_detail *detail)
{
    int64_t first = f->pose[0].offset_ns, last = f->pose[f->n_poses - 1].offset_ns;
    const char *what = f->sensor == VX_POINTS ? "point" : "column";
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    if (f->width && !f->time_ns)
        return vx_fail(detail, VX_E_INVALID, "time_ns",
                       "several poses need a time for every %s (or send one pose)", what);
    for (uint32_t i = 0; i < f->width; i++) {
        lo = f->time_ns[i] < lo ? f->time_ns[i] : lo;
        hi = f->time_ns[i] > hi ? f->time_ns[i] : hi;
    }
    if (f->width && (lo < first || hi > last))
        return vx_fail(
            detail, VX_E_INVALID, "time_ns",
            "the %ss are from %d to %d ns, the poses from %lld to %lld ns: send poses that enclose "
            "the scan",
            what, lo, hi, (long long)first, (long long)last);
    return VX_OK;
}

vx_err vx__skew_check(const struct vx_frame *f, struct vx_detail *detail)
{
    if (f->sensor == VX_DEPTH && f->n_poses > 1)
        return vx_fail(detail, VX_E_UNIMPLEMENTED, "pose",
                       "a depth image is taken as seen from one pose (no rolling shutter); send one pose");
    if (f->sensor == VX_DEPTH && f->time_ns)
        return vx_fail(detail, VX_E_INVALID, "time_ns", "a depth image has no times");
    if (f->n_poses < 2)
        return VX_OK;
    for (uint32_t i = 1; i < f->n_poses; i++)
        if (f->pose[i].offset_ns <= f->pose[i - 1].offset_ns)
            return vx_fail(detail, VX_E_INVALID, "pose.offset_ns",
                           "pose %u: offsets must rise, %lld ns follows %lld ns", i,
                           (long long)f->pose[i].offset_ns, (long long)f->pose[i - 1].offset_ns);
    if (f->pose[0].offset_ns < -MAX_SPAN_NS / 2 || f->pose[f->n_poses - 1].offset_ns > MAX_SPAN_NS / 2)
        return vx_fail(detail, VX_E_INVALID, "pose.offset_ns",
                       "the poses of one scan lie within 2 s of its stamp, got %lld to %lld ns",
                       (long long)f->pose[0].offset_ns, (long long)f->pose[f->n_poses - 1].offset_ns);
    return check_times(f, detail);
}

static void normalise(double q[4])
{
    double n = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int k = 0; k < 4; k++)
        q[k] /= n;
}

/* Knots a segment: a power of two. */
static uint32_t steps_of(const struct vx_frame *f)
{
    uint32_t steps = 1;
    while (steps * 2 * (f->n_poses - 1) <= VX__SKEW_KNOTS && steps < 256)
        steps *= 2;
    return steps;
}

/* q[i], between q[0] and q[n] (n a power of two), on the great circle. */
static void halve(double (*q)[4], uint32_t n)
{
    for (uint32_t step = n; step > 1; step /= 2)
        for (uint32_t i = 0; i < n; i += step) {
            for (int k = 0; k < 4; k++)
                q[i + step / 2][k] = q[i][k] + q[i + step][k];
            normalise(q[i + step / 2]);
        }
}

/* Rotations at all knots; returns their number. */
static uint32_t rotations(const struct vx_frame *f, double (*q)[4])
{
    uint32_t steps = steps_of(f), n = (f->n_poses - 1) * steps;
    for (uint32_t i = 0; i < f->n_poses; i++) {
        double *to = q[i * steps], dot = 0;
        for (int k = 0; k < 4; k++)
            to[k] = f->pose[i].rotation_xyzw[k];
        normalise(to);
        if (!i)
            continue;
        for (int k = 0; k < 4; k++)
            dot += to[k] * q[(i - 1) * steps][k];
        for (int k = 0; dot < 0 && k < 4; k++) /* q and -q are one rotation: the nearer one */
            to[k] = -to[k];
        halve(q + (i - 1) * steps, steps);
    }
    return n + 1;
}

static void position(const struct vx_frame *f, uint32_t knot, double p[3])
{
    uint32_t steps = steps_of(f), i = knot / steps, j = knot % steps;
    for (int k = 0; k < 3; k++) {
        double a = f->pose[i].position_m[k];
        p[k] = j ? a + (f->pose[i + 1].position_m[k] - a) * ((double)j / steps) : a;
    }
}

/* The knot nearest to the middle of the time. */
static uint32_t middle(const struct vx_frame *f)
{
    int64_t ns = (f->pose[0].offset_ns + f->pose[f->n_poses - 1].offset_ns) / 2;
    uint32_t steps = steps_of(f), i = 0;
    while (i + 2 < f->n_poses && f->pose[i + 1].offset_ns <= ns)
        i++;
    return i * steps + (uint32_t)((ns - f->pose[i].offset_ns) * steps /
                                  (f->pose[i + 1].offset_ns - f->pose[i].offset_ns));
}

struct vx_pose vx__skew_reference(const struct vx_frame *f, double voxel_m, struct vxk_frame *out)
{
    double q[VX__SKEW_KNOTS + 1][4], far2 = 0, turn = 0;
    struct vx_pose ref = {0};
    uint32_t n = rotations(f, q), at = middle(f);
    memcpy(ref.rotation_xyzw, q[at], sizeof ref.rotation_xyzw);
    position(f, at, ref.position_m);
    for (uint32_t i = 0; i < n; i++) {
        double p[3], d2 = 0, c2 = 0, x, angle;
        position(f, i, p);
        for (int k = 0; k < 3; k++)
            d2 += (p[k] - ref.position_m[k]) * (p[k] - ref.position_m[k]);
        for (int k = 0; k < 4; k++)
            c2 += (q[i][k] - q[at][k]) * (q[i][k] - q[at][k]);
        far2 = d2 > far2 ? d2 : far2;
        /* the turn is 4 asin(x): no more than 4 x / sqrt(1 - x^2), no more than 2 pi x */
        x = sqrt(c2) / 2;
        angle = 2 * 3.141592653589793 * x;
        if (x < 0.9 && 4 * x / sqrt(1 - x * x) < angle)
            angle = 4 * x / sqrt(1 - x * x);
        turn = angle > turn ? angle : turn;
    }
    out->skew_reach = (float)(sqrt(far2) / voxel_m * 1.000001 + 1e-3);
    out->skew_turn = (float)(turn * 1.000001 + 1e-5);
    return ref;
}

static void fill_table(const struct vx_map *map, const struct vx_frame *f, struct vx__skew_table *t)
{
    double q[VX__SKEW_KNOTS + 1][4], ref[3];
    uint32_t n = rotations(f, q);
    position(f, middle(f), ref);
    for (uint32_t i = 0; i < n; i++) {
        double p[3];
        position(f, i, p);
        for (int j = 0; j < 4; j++)
            t->knot[i].q[j] = (float)q[i][j];
        for (int j = 0; j < 3; j++)
            t->knot[i].t[j] = (float)((p[j] - ref[j]) / map->params.voxel_size_m);
        t->knot[i].reserved = 0;
    }
    for (uint32_t i = 0; i < f->n_poses; i++)
        t->pose_ns[i] = (uint32_t)(f->pose[i].offset_ns - f->pose[0].offset_ns);
}

vx_err vx__skew_prepare(struct vx_map *map, const struct vx_frame *f, struct vxk_frame_args *args,
                        struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    struct vxk_skew *s = &args->s.skew;
    uint64_t columns = (uint64_t)args->f.width, rays = (uint64_t)f->width * f->height;
    struct vx__skew_table *table;
    memset(s, 0, sizeof *s);
    if (f->n_poses < 2)
        return VX_OK;
    if (!w->skew_host)
        w->skew_host = malloc(sizeof *w->skew_host);
    if (!w->skew_host)
        return VX_E_NOMEM;
    VX_TRY_RET(vx__array_ensure(map, &w->skew_table, sizeof *w->skew_host, detail));
    VX_TRY_RET(vx__array_ensure(map, &w->skew_time, (uint64_t)f->width * 4, detail));
    VX_TRY_RET(vx__array_ensure(map, &w->skew_column, columns * (sizeof *s->column + 8), detail));
    VX_TRY_RET(vx__array_ensure(map, &w->skew_origin, rays * 12, detail));
    fill_table(map, f, w->skew_host);
    table = w->skew_table.ptr;
    s->on = 1;
    s->n_segments = f->n_poses - 1;
    s->steps = steps_of(f);
    s->first_ns = (int32_t)f->pose[0].offset_ns;
    s->pose_ns = table->pose_ns;
    s->knot = table->knot;
    s->time_ns = w->skew_time.ptr;
    s->column = w->skew_column.ptr;
    s->column_ns = (uint32_t *)(s->column + columns);
    s->origin = w->skew_origin.ptr;
    return VX_OK;
}

vx_err vx__skew_launch(struct vx_map *map, const struct vx_frame *f, const struct vxk_frame_args *args)
{
    const struct vx__workspace *w = &map->ws;
    const struct vxk_ops *ops = map->device->dev->ops;
    uint64_t bytes = (uint64_t)args->f.width * 4;
    VX_TRY_RET(ops->upload(map->queue, w->skew_table.ptr, w->skew_host, sizeof *w->skew_host));
    if (f->width)
        VX_TRY_RET(ops->upload(map->queue, w->skew_time.ptr, f->time_ns, (uint64_t)f->width * 4));
    if (f->sensor != VX_POINTS)
        return VX_OK;
    VX_TRY_RET(ops->fill(map->queue, args->s.skew.column_ns, 0xff, bytes));
    return ops->fill(map->queue, args->s.skew.column_ns + args->f.width, 0, bytes);
}
