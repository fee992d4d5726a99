/*
 * oracle_lidar.c - exact readings of a closed box: normals at the rays' ends, and distances of the voxels
 * near a wall.  Of flat ground: that it stays.
 *
 * Where a wall is seen far from its edges there is one right answer, with no rule of the pipeline in it: the
 * wall's normal and the distance to its plane.
 */
#include "core_test.h"
#include "frame_convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Half sides of the room, metres; its walls are axis-aligned in the map. */
static const double HALF[3] = {3.1, 2.6, 2.2};
static const double VOXEL = 0.1, TRUNCATION = 3;

static void rotate(const double R[9], const double l[3], double m[3])
{
    for (int k = 0; k < 3; k++)
        m[k] = R[3 * k] * l[0] + R[3 * k + 1] * l[1] + R[3 * k + 2] * l[2];
}

/* Distance from `from` along unit d to the wall, which wall (axis), and how far its nearest edge is from the
 * end point. */
static double cast(const double from[3], const double d[3], int *wall, double *edge)
{
    double r = 1e9;
    for (int k = 0; k < 3; k++) {
        double t = fabs(d[k]) < 1e-12 ? 1e9 : ((d[k] > 0 ? HALF[k] : -HALF[k]) - from[k]) / d[k];
        if (t < r) {
            r = t;
            *wall = k;
        }
    }
    *edge = 1e9;
    for (int k = 0; k < 3; k++)
        if (k != *wall)
            *edge = fmin(*edge, HALF[k] - fabs(from[k] + d[k] * r));
    return r;
}

struct room {
    struct test_frame t;
    double R[9], (*dir)[3];
    uint32_t n;
};

static void room_frame(struct room *o, enum vx_sensor sensor, uint64_t *seed)
{
    struct frame_shape shape = {
        .width = sensor == VX_DEPTH ? 320 : 720, .height = sensor == VX_DEPTH ? 240 : 64, .reach_m = 20};
    double at[3];
    for (int k = 0; k < 3; k++)
        at[k] = test_uniform(seed, -0.4, 0.4);
    test_frame_init(&o->t, sensor, seed, &shape, at);
    vx__rotation_from_quaternion(o->t.f.pose[0].rotation_xyzw, o->R);
    o->n = shape.width * shape.height;
    o->dir = malloc(o->n * sizeof *o->dir);
    ck_assert_ptr_nonnull(o->dir);
    if (sensor == VX_RANGE) {
        o->t.f.first_azimuth_rad = -3.141592653589793;
        o->t.f.azimuth_step_rad = 6.283185307179586 / shape.width;
        for (uint32_t v = 0; v < shape.height; v++)
            o->t.elevation[v] = (float)(0.7 - 1.4 * v / shape.height);
    }
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t u = i % shape.width, v = i / shape.width;
        double l[3], n = 0, r, edge;
        int wall;
        if (sensor == VX_DEPTH) {
            l[0] = (u - o->t.f.cx) / o->t.f.fx;
            l[1] = (v - o->t.f.cy) / o->t.f.fy;
            l[2] = 1;
        } else {
            double az = -3.141592653589793 + u * (6.283185307179586 / shape.width),
                   el = (double)(float)(0.7 - 1.4 * v / shape.height);
            l[0] = cos(el) * cos(az);
            l[1] = cos(el) * sin(az);
            l[2] = sin(el);
        }
        for (int k = 0; k < 3; k++)
            n += l[k] * l[k];
        for (int k = 0; k < 3; k++)
            l[k] /= sqrt(n);
        rotate(o->R, l, o->dir[i]);
        r = cast(at, o->dir[i], &wall, &edge);
        if (sensor == VX_POINTS)
            for (int k = 0; k < 3; k++)
                ((float *)o->t.data)[3 * i + (uint32_t)k] = (float)(l[k] * r);
        else
            ((float *)o->t.data)[i] = (float)(sensor == VX_DEPTH ? r * l[2] : r);
    }
}

static void room_fini(struct room *o)
{
    free(o->dir);
    test_frame_fini(&o->t);
}

static struct vx_map *integrate(struct vx_device *d, const struct room *o)
{
    struct vx_map_params p = test_params(VOXEL, VX_TSDF);
    struct vx_frame_result result;
    struct vx_map *map;
    p.truncation_voxels = TRUNCATION;
    map = test_map(d, &p);
    ck_ok(vx_map_integrate(map, &o->t.f, &result, NULL));
    ck_assert_uint_eq(result.counts.used, o->n);
    return map;
}

/* Normals of rays that end far from the walls' edges. */
START_TEST(normals)
{
    enum vx_sensor sensor = _i & 1 ? VX_POINTS : VX_RANGE;
    struct vx_device *d = test_device(512 << 20);
    uint64_t seed = test_seed + (uint64_t)_i, asked = 0, none = 0, wrong = 0;
    struct room o;
    struct vx_map *map;
    struct vxk_ray *ray;
    room_frame(&o, sensor, &seed);
    map = integrate(d, &o);
    ray = malloc(o.n * sizeof *ray);
    ck_assert_ptr_nonnull(ray);
    ck_ok(d->dev->ops->download(map->queue, ray, map->ws.ray.ptr, o.n * sizeof *ray));
    ck_ok(d->dev->ops->wait(map->queue));
    for (uint32_t i = 0; i < o.n; i++) {
        /* elevations fall with the row, as the kernels count them */
        double edge, dot = 0, r = cast(o.t.f.pose[0].position_m, o.dir[i], &(int){0}, &edge), nd = 0,
                     length = 0;
        int wall;
        cast(o.t.f.pose[0].position_m, o.dir[i], &wall, &edge);
        if (fabs((double)ray[i].r * VOXEL - r) > 1e-4)
            ck_abort_msg("ray %u: length %g instead of %g", i, (double)ray[i].r * VOXEL, r);
        for (int k = 0; k < 3; k++) {
            nd += (double)ray[i].n[k] * (double)ray[i].d[k];
            length += (double)ray[i].n[k] * (double)ray[i].n[k];
        }
        if (fabs(length - 1) > 1e-4 || fabs(nd - (double)ray[i].nd) > 1e-4 || nd > 0)
            ck_abort_msg("ray %u: normal of length %g, n.d %g, said %g", i, sqrt(length), nd,
                         (double)ray[i].nd);
        /* the outermost rows have neighbours on one side only: their normals lean towards the ray */
        if (edge < 0.8 || i / 720 < 3 || i / 720 >= 61)
            continue;
        asked++;
        none += ray[i].nd < -0.99999f && fabs(o.dir[i][wall]) < 0.999;
        dot = -(double)ray[i].n[wall] * (o.dir[i][wall] > 0 ? 1 : -1);
        wrong += dot < 0.999 && !(ray[i].nd < -0.99999f);
    }
    printf("%s: %llu rays on walls, %.1f %% without a normal, %.2f %% off by more than 2.5 degrees\n",
           sensor == VX_POINTS ? "points" : "range image", (unsigned long long)asked,
           100.0 * (double)none / (double)asked, 100.0 * (double)wrong / (double)asked);
    ck_assert_uint_gt(asked, 5000);
    ck_assert_msg((double)none < 0.15 * (double)asked, "too few normals");
    ck_assert_msg((double)wrong < 0.005 * (double)asked, "wrong normals");
    free(ray);
    vx_map_destroy(map);
    room_fini(&o);
    vx_device_close(d);
}
END_TEST

/* Stored distances of voxels near one wall and far from the others. */
START_TEST(distances)
{
    static const enum vx_sensor sensors[] = {VX_DEPTH, VX_RANGE, VX_POINTS};
    static const char *const names[] = {"depth", "range image", "points"};
    enum vx_sensor sensor = sensors[_i % 3];
    struct vx_device *d = test_device(512 << 20);
    uint64_t seed = test_seed + 10 + (uint64_t)_i, n = 0, far_off = 0;
    double sum = 0, signed_sum = 0;
    struct map_walk *w;
    struct room o;
    struct vx_map *map;
    room_frame(&o, sensor, &seed);
    map = integrate(d, &o);
    w = map_walk_newest(map);
    ck_assert_str_eq(w->fault, "");
    for (uint32_t i = 0; i < w->n_leaves; i++)
        for (int32_t v = 0; v < 512; v++) {
            const struct walk_leaf *l = &w->leaves[i];
            const double c[3] = {(l->at[0] + (v >> 6) + 0.5) * VOXEL, (l->at[1] + (v >> 3 & 7) + 0.5) * VOXEL,
                                 (l->at[2] + (v & 7) + 0.5) * VOXEL};
            double first = 1e9, second = 1e9, stored;
            if (!(l->active[v >> 6] >> (v & 63) & 1))
                continue;
            for (int k = 0; k < 3; k++) {
                double away = HALF[k] - fabs(c[k]);
                if (away < first) {
                    second = first;
                    first = away;
                } else {
                    second = fmin(second, away);
                }
            }
            /* within two voxels of a wall, and the others out of reach of smoothing and bands */
            if (fabs(first) > 2 * VOXEL || second < 0.8)
                continue;
            stored = (double)(int16_t)(l->value[v] & 0xffff) / 32767 * TRUNCATION - first / VOXEL;
            n++;
            sum += fabs(stored);
            signed_sum += stored;
            far_off += fabs(stored) > 0.25;
        }
    printf(
        "%s: %llu voxels near a wall, mean error %.4f, bias %.4f voxel, %.2f %% off by more than a quarter\n",
        names[_i % 3], (unsigned long long)n, sum / (double)n, signed_sum / (double)n,
        100.0 * (double)far_off / (double)n);
    ck_assert_uint_gt(n, 1000);
    ck_assert_msg(sum / (double)n < 0.06 && fabs(signed_sum / (double)n) < 0.04, "distances are off");
    ck_assert_msg((double)far_off < 0.03 * (double)n, "too many distances are off");
    map_walk_free(w);
    vx_map_destroy(map);
    room_fini(&o);
    vx_device_close(d);
}
END_TEST

/* A scan of flat ground at height GROUND from `x` metres along it, 1.8 m up: beams that see it at 25 to 1.5
 * degrees, and some above the horizon. */
static const double GROUND = 0.05;
static void ground_frame(struct test_frame *t, double x, uint64_t *seed)
{
    struct frame_shape shape = {.width = 900, .height = 48, .reach_m = 60};
    const double at[3] = {x, 0, GROUND + 1.8};
    test_frame_init(t, VX_RANGE, seed, &shape, at);
    memset(t->f.pose[0].rotation_xyzw, 0, sizeof t->f.pose[0].rotation_xyzw);
    t->f.pose[0].rotation_xyzw[3] = 1;
    t->f.first_azimuth_rad = -3.141592653589793;
    t->f.azimuth_step_rad = 6.283185307179586 / shape.width;
    for (uint32_t v = 0; v < shape.height; v++) {
        double el = 0.03 - 0.47 * v / shape.height;
        t->elevation[v] = (float)el;
        for (uint32_t u = 0; u < shape.width; u++)
            ((float *)t->data)[v * shape.width + u] = el < -0.026 ? (float)(-1.8 / sin(el)) : 0;
    }
}

/* Beams that graze the ground free nothing in it (occupancy maps). */
START_TEST(ground_stays)
{
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(VOXEL, VX_OCCUPANCY);
    struct vx_map *map = test_map(d, &p);
    uint64_t seed = test_seed + 20, occupied = 0, freed = 0, above = 0;
    struct map_walk *w;
    for (int i = 0; i < 8; i++) {
        struct vx_frame_result result;
        struct test_frame t;
        ground_frame(&t, 0.45 * i, &seed);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        ck_assert_uint_gt(result.counts.used, 900 * 40);
        test_frame_fini(&t);
    }
    w = map_walk_newest(map);
    ck_assert_str_eq(w->fault, "");
    for (uint32_t i = 0; i < w->n_leaves; i++)
        for (int32_t v = 0; v < 512; v++) {
            const struct walk_leaf *l = &w->leaves[i];
            const double x = (l->at[0] + (v >> 6) + 0.5) * VOXEL, y = (l->at[1] + (v >> 3 & 7) + 0.5) * VOXEL;
            const int32_t z = l->at[2] + (v & 7);
            const bool is_free = l->free[v >> 6] >> (v & 63) & 1;
            if (hypot(x - 1.6, y) > 25)
                continue;
            occupied += z == 0 && l->active[v >> 6] >> (v & 63) & 1 && (int16_t)(l->value[v] & 0xffff) > 0;
            freed += z == 0 && is_free;
            above += z > 0 && is_free;
        }
    printf("ground: %llu voxels occupied, %llu free, %llu free above it\n", (unsigned long long)occupied,
           (unsigned long long)freed, (unsigned long long)above);
    ck_assert_uint_gt(occupied, 20000);
    ck_assert_uint_gt(above, 20000);
    ck_assert_msg(freed * 1000 < occupied, "beams eat the ground");
    map_walk_free(w);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("lidar");
    ck_add(s, normals, 4);
    ck_add(s, distances, 6);
    ck_add(s, ground_stays, 1);
    return core_test_main(argc, argv, s);
}
