/*
 * changed_scene.c - what leaves the scene leaves the map.
 *
 * A sensor that stands still sees a box for a while, in front of a wall or of the open sky; then the box is
 * gone.  After ten frames nothing of it is left: no voxel in its place is occupied, none is behind a surface.
 * And a wall that moves is followed, towards the sensor and away from it.
 */
#include "core_test.h"

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 200, HEIGHT = 100, N_BEFORE = 40, N_AFTER = 10, N_MOVES = 4 };

/* The scene along the axis `forward` of the sensor, in metres; side: the other two axes. */
struct setting {
    bool depth;
    enum vx_weighting weighting;
    double voxel_m, wall_m, box_near_m, box_far_m, box_half_m, noise; /* wall_m: INFINITY, none */
};
static const struct setting DEPTH_CAMERA = {true, VX_WEIGHT_INVERSE_SQUARE, 0.05, 4.2, 2.2, 2.7, 0.4, 0.0012},
                            LIDAR = {false, VX_WEIGHT_INVERSE_SQUARE, 0.3, 16, 8, 9.5, 1.5, 0.02};

static float elevation[HEIGHT];

/* Distance along the unit-forward direction (1, side 0, side 1) at which the scene is met, in `forward`
 * units; a box whose middle line is the forward axis. */
static double meet(const struct setting *s, bool box, double a, double b)
{
    if (box && fabs(a) * s->box_near_m <= s->box_half_m && fabs(b) * s->box_near_m <= s->box_half_m)
        return s->box_near_m;
    return s->wall_m;
}

static void look(const struct setting *s, bool box, uint64_t *seed, struct vx_frame *f, float *data)
{
    const double range = s->wall_m < 1e9 ? 2 * s->wall_m : 4 * s->box_far_m, px = 0.9 * WIDTH,
                 step = s->depth ? 0 : 1.0 / WIDTH;
    *f = (struct vx_frame){.sensor = s->depth ? VX_DEPTH : VX_RANGE,
                           .n_poses = 1,
                           .width = WIDTH,
                           .height = HEIGHT,
                           .fx = px,
                           .fy = px,
                           .cx = (WIDTH - 1) / 2.0,
                           .cy = (HEIGHT - 1) / 2.0,
                           .data = data,
                           .data_bytes = (uint64_t)WIDTH * HEIGHT * 4,
                           .first_azimuth_rad = -0.5,
                           .azimuth_step_rad = step,
                           .elevation_rad = elevation,
                           .max_range_m = range,
                           .no_return_value = NAN};
    f->pose[0].rotation_xyzw[3] = 1;
    for (int v = 0; v < HEIGHT; v++)
        for (int u = 0; u < WIDTH; u++) {
            double az = -0.5 + u * step, a = s->depth ? (u - f->cx) / px : tan(az),
                   b = s->depth ? (v - f->cy) / px : tan((double)elevation[v]) / cos(az);
            double d = meet(s, box, a, b), r = s->depth ? d : d * sqrt(1 + a * a + b * b);
            r += test_uniform(seed, -1.7, 1.7) * (s->depth ? s->noise * r * r : s->noise);
            data[v * WIDTH + u] = isfinite(r) && r < range ? (float)r : s->depth ? INFINITY : 0;
        }
}

/* Cases: bit 0: tsdf; bit 1: which of two scenes; then depth camera, LiDAR, and the former by constant
 * weights, which occupancy maps know nothing of. */
enum { N_CASES = 10 };
static struct setting setting_of(int number, bool *tsdf, bool *other)
{
    const int c = number < 8 ? number : 9 + 2 * (number - 8);
    struct setting s = c >> 2 == 1 ? LIDAR : DEPTH_CAMERA;
    s.weighting = c >> 2 == 2 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE;
    *tsdf = c & 1;
    *other = c >> 1 & 1;
    return s;
}

/* Is the voxel something that stands there? */
static bool solid(const struct map_walk *w, bool tsdf, const int32_t v[3])
{
    uint32_t value = 0;
    int16_t number;
    if (map_walk_voxel(w, v[0], v[1], v[2], &value) != VXK_ACTIVE)
        return false;
    number = (int16_t)(value & 0xffff);
    return tsdf ? number < 0 : number > 0;
}

/* Solid voxels whose centre is at forward distance from..to and at most `side` off the axis; of *all. */
static uint64_t count_solid(struct vx_map *map, const struct setting *s, bool tsdf, double from, double to,
                            double side, uint64_t *all)
{
    struct map_walk *w = map_walk_newest(map);
    const int32_t lo = (int32_t)ceil(from / s->voxel_m - 0.5), hi = (int32_t)floor(to / s->voxel_m - 0.5),
                  half = (int32_t)floor(side / s->voxel_m - 0.5);
    uint64_t n = 0;
    ck_assert_msg(!w->fault[0], "%s", w->fault);
    *all = 0;
    for (int32_t a = -half - 1; a <= half; a++)
        for (int32_t b = -half - 1; b <= half; b++)
            for (int32_t d = lo; d <= hi; d++, (*all)++) {
                const int32_t depth[3] = {a, b, d}, lidar[3] = {d, a, b};
                n += solid(w, tsdf, s->depth ? depth : lidar);
            }
    map_walk_free(w);
    return n;
}

static struct vx_map *begin(const struct setting *s, bool tsdf, struct vx_device **d)
{
    struct vx_map_params p = test_params(s->voxel_m, tsdf ? VX_TSDF : VX_OCCUPANCY);
    p.weighting = s->weighting;
    for (int k = 0; k < HEIGHT; k++)
        elevation[k] = (float)(-0.25 + 0.5 * k / (HEIGHT - 1));
    *d = test_device(1 << 30);
    return test_map(*d, &p);
}

static void see(struct vx_map *map, const struct setting *s, bool box, uint64_t *seed, int n)
{
    static float data[WIDTH * HEIGHT];
    for (int i = 0; i < n; i++) {
        struct vx_frame f;
        look(s, box, seed, &f, data);
        ck_ok(vx_map_integrate(map, &f, &(struct vx_frame_result){0}, NULL));
    }
}

START_TEST(box_leaves)
{
    bool tsdf, sky;
    struct setting s = setting_of(_i, &tsdf, &sky);
    struct vx_device *d;
    struct vx_map *map;
    uint64_t seed = test_seed, all, there, left;
    double reach = 3 * s.voxel_m;
    map = begin(&s, tsdf, &d);
    s.wall_m = sky ? INFINITY : s.wall_m;
    see(map, &s, true, &seed, N_BEFORE);
    there = count_solid(map, &s, tsdf, s.box_near_m - reach, s.box_far_m, s.box_half_m, &all);
    see(map, &s, false, &seed, N_AFTER);
    left = count_solid(map, &s, tsdf, s.box_near_m - reach, s.box_far_m, s.box_half_m + reach, &all);
    printf("%s, %s%s, %s behind: %llu voxels of the box, %llu left after %d frames\n",
           s.depth ? "depth" : "lidar", tsdf ? "tsdf" : "occupancy", s.weighting ? ", constant weights" : "",
           sky ? "sky" : "a wall", (unsigned long long)there, (unsigned long long)left, N_AFTER);
    ck_assert_uint_ge(there, 100);
    ck_assert_uint_eq(left, 0);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(wall_moves)
{
    bool tsdf, away;
    struct setting s = setting_of(_i, &tsdf, &away);
    struct vx_device *d;
    struct vx_map *map = begin(&s, tsdf, &d);
    uint64_t seed = test_seed, all, n;
    const double to = s.wall_m / 2, side = 0.15 * to, step = (s.wall_m - to) / N_MOVES;
    for (int i = 0; i <= N_MOVES; i++) {
        s.wall_m = to + step * (away ? i : N_MOVES - i);
        see(map, &s, false, &seed, N_AFTER);
        n = count_solid(map, &s, tsdf, s.wall_m - s.voxel_m, s.wall_m + 2 * s.voxel_m, side, &all);
        printf("%s, %s, wall at %.2f m: %llu of %llu voxels there, ", s.depth ? "depth" : "lidar",
               tsdf ? "tsdf" : "occupancy", s.wall_m, (unsigned long long)n, (unsigned long long)all);
        ck_assert_uint_ge(n * 6, all); /* one layer of six at least */
        n = count_solid(map, &s, tsdf, to / 2, s.wall_m - 4 * s.voxel_m, side, &all);
        printf("%llu in front of it\n", (unsigned long long)n);
        ck_assert_uint_eq(n, 0);
    }
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("changed scene");
    ck_add(s, box_leaves, N_CASES);
    ck_add(s, wall_moves, N_CASES);
    return core_test_main(argc, argv, s);
}
