/*
 * static_scene.c - the same frames replayed: the map neither grows nor flickers.
 *
 * The masks at the end of a pass over the frames must come to repeat, whatever the frames disagree about:
 * some hit a voxel that others see through at every pass.
 */
#include "core_test.h"
#include "scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 160, HEIGHT = 120, COLUMNS = 256, ROWS = 24, N_FRAMES = 6, N_PASSES = 20, STILL = 3 };

struct recorded {
    struct vx_frame f;
    float *data;
};
static float elevation[ROWS];

static void quaternion(const double m[12], double q[4])
{
    /* of the four ways to take the root, the one with the largest component */
    double t[4] = {1 + m[0] - m[5] - m[10], 1 - m[0] + m[5] - m[10], 1 - m[0] - m[5] + m[10],
                   1 + m[0] + m[5] + m[10]};
    int k = 0;
    double s;
    for (int i = 1; i < 4; i++)
        k = t[i] > t[k] ? i : k;
    s = 2 * sqrt(t[k]);
    q[0] = k == 0 ? s / 4 : k == 1 ? (m[1] + m[4]) / s : k == 2 ? (m[2] + m[8]) / s : (m[9] - m[6]) / s;
    q[1] = k == 1 ? s / 4 : k == 0 ? (m[1] + m[4]) / s : k == 2 ? (m[6] + m[9]) / s : (m[2] - m[8]) / s;
    q[2] = k == 2 ? s / 4 : k == 0 ? (m[2] + m[8]) / s : k == 1 ? (m[6] + m[9]) / s : (m[4] - m[1]) / s;
    q[3] = k == 3 ? s / 4 : k == 0 ? (m[9] - m[6]) / s : k == 1 ? (m[2] - m[8]) / s : (m[4] - m[1]) / s;
}

static void record(struct recorded *r, const struct scene *scene, bool depth, uint32_t frame, uint64_t *seed)
{
    const uint32_t w = depth ? WIDTH : COLUMNS, h = depth ? HEIGHT : ROWS;
    const double f = 0.9 * w, range = depth ? 6 : 40;
    double pose[12];
    scene_pose(scene, frame, 100, pose);
    r->data = malloc((size_t)w * h * sizeof *r->data);
    ck_assert_ptr_nonnull(r->data);
    r->f = (struct vx_frame){.sensor = depth ? VX_DEPTH : VX_RANGE,
                             .stamp_ns = frame,
                             .n_poses = 1,
                             .width = w,
                             .height = h,
                             .fx = f,
                             .fy = f,
                             .cx = (w - 1) / 2.0,
                             .cy = (h - 1) / 2.0,
                             .data = r->data,
                             .data_bytes = (uint64_t)w * h * 4,
                             .azimuth_step_rad = 2 * 3.14159265358979 / w,
                             .elevation_rad = elevation,
                             .max_range_m = range,
                             .no_return_value = NAN};
    quaternion(pose, r->f.pose[0].rotation_xyzw);
    for (uint32_t v = 0; v < h; v++)
        for (uint32_t u = 0; u < w; u++) {
            double az = 2 * 3.14159265358979 * u / w, e = elevation[v % ROWS], d[3], o[3], t,
                   l[3] = {cos(e) * cos(az), cos(e) * sin(az), sin(e)};
            if (depth) {
                l[0] = (u - r->f.cx) / f;
                l[1] = (v - r->f.cy) / f;
                l[2] = 1;
            }
            for (int k = 0; k < 3; k++) {
                d[k] = pose[4 * k] * l[0] + pose[4 * k + 1] * l[1] + pose[4 * k + 2] * l[2];
                o[k] = r->f.pose[0].position_m[k] = pose[4 * k + 3];
            }
            t = scene_raycast(scene, frame, o, d, 2 * range);
            /* the noise of a depth camera, of a LiDAR */
            t += test_uniform(seed, -1.7, 1.7) * (depth ? 0.0012 * t * t : 0.02);
            r->data[v * w + u] = isfinite(t) && t < range ? (float)t : depth ? INFINITY : 0;
        }
}

/* Are all masks the same?  Walks are in the order of keys, so equal maps are equal arrays. */
static bool same_masks(const struct map_walk *a, const struct map_walk *b)
{
    if (a->n_leaves != b->n_leaves || a->n_tiles != b->n_tiles ||
        (a->n_tiles && memcmp(a->tiles, b->tiles, a->n_tiles * sizeof *a->tiles) != 0))
        return false;
    for (uint32_t i = 0; i < a->n_leaves; i++) {
        const struct walk_leaf *x = &a->leaves[i], *y = &b->leaves[i];
        if (memcmp(x->at, y->at, sizeof x->at) != 0 || memcmp(x->active, y->active, sizeof x->active) != 0 ||
            memcmp(x->free, y->free, sizeof x->free) != 0)
            return false;
    }
    return true;
}

START_TEST(settles)
{
    const bool depth = _i < 2 || _i == 4, tsdf = !(_i & 1);
    struct scene *scene = scene_create(depth ? SCENE_ROOM : SCENE_STREET, false);
    struct vx_device *d = test_device(1 << 30);
    struct vx_map_params p = test_params(depth ? 0.05 : 0.3, tsdf ? VX_TSDF : VX_OCCUPANCY);
    struct vx_map *map;
    struct recorded r[N_FRAMES];
    struct vx_map_info info;
    struct map_walk *before = NULL, *now;
    uint64_t seed = test_seed, n_voxels[N_PASSES], bytes[N_PASSES], most = 0, most_bytes = 0;
    int settled = 0;
    ck_assert_ptr_nonnull(scene);
    p.weighting = _i == 4 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE;
    map = test_map(d, &p);
    for (int k = 0; k < ROWS; k++)
        elevation[k] = (float)(-0.4 + 0.55 * k / (ROWS - 1));
    for (uint32_t i = 0; i < N_FRAMES; i++)
        record(&r[i], scene, depth, (depth ? 3 : 1) * i, &seed);
    for (int pass = 0; pass < N_PASSES; pass++) {
        for (int i = 0; i < N_FRAMES; i++)
            ck_ok(vx_map_integrate(map, &r[i].f, &(struct vx_frame_result){0}, NULL));
        ck_ok(vx_map_get_info(map, &info));
        n_voxels[pass] = info.n_voxels;
        bytes[pass] = info.used_bytes;
        now = map_walk_newest(map);
        ck_assert_msg(!now->fault[0], "%s", now->fault);
        if (!before || !same_masks(before, now))
            settled = pass;
        if (before)
            map_walk_free(before);
        before = now;
    }
    map_walk_free(before);
    printf("%s, %s%s: %llu voxels after one pass, %llu after %d; masks as at the end from pass %d on\n",
           depth ? "room" : "street", tsdf ? "tsdf" : "occupancy", p.weighting ? ", constant weights" : "",
           (unsigned long long)n_voxels[0], (unsigned long long)n_voxels[N_PASSES - 1], N_PASSES,
           settled + 1);
    ck_assert_int_le(settled, N_PASSES - STILL);
    for (int pass = 0; pass < N_PASSES - STILL; pass++) {
        most = n_voxels[pass] > most ? n_voxels[pass] : most;
        most_bytes = bytes[pass] > most_bytes ? bytes[pass] : most_bytes;
    }
    for (int pass = N_PASSES - STILL; pass < N_PASSES; pass++) {
        ck_assert_uint_le(n_voxels[pass], most);
        ck_assert_uint_le(bytes[pass], most_bytes);
    }
    for (int i = 0; i < N_FRAMES; i++)
        free(r[i].data);
    vx_map_destroy(map);
    vx_device_close(d);
    scene_destroy(scene);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("static scene");
    ck_add(s, settles, 5);
    return core_test_main(argc, argv, s);
}
