/*
 * free_rays.c - occupancy: voxels that a scan makes free were crossed by one of its rays.
 *
 * One scan of the street; the reference marches every ray through the voxels in double precision, up to its
 * end.
 */
#include "core_test.h"
#include "scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 720, ROWS = 32, HALF = 112, N = 2 * HALF };
#define VOXEL_M 0.3
#define RANGE_M 30.0

static size_t place(const int32_t v[3])
{
    for (int k = 0; k < 3; k++)
        ck_assert_msg(v[k] >= -HALF && v[k] < HALF, "the box is too small");
    return ((size_t)(v[0] + HALF) * N + (size_t)(v[1] + HALF)) * N + (size_t)(v[2] + HALF);
}

/* Marks the voxels on the way from o (voxels) along d (unit) up to t. */
static void march(uint8_t *crossed, const double o[3], const double d[3], double t)
{
    int32_t v[3];
    double next[3];
    for (int k = 0; k < 3; k++) {
        v[k] = (int32_t)floor(o[k]);
        next[k] = d[k] > 0 ? (v[k] + 1 - o[k]) / d[k] : d[k] < 0 ? (v[k] - o[k]) / d[k] : INFINITY;
    }
    for (;;) {
        int k = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : next[1] < next[2] ? 1 : 2;
        crossed[place(v)] = 1;
        if (next[k] > t)
            return;
        v[k] += d[k] > 0 ? 1 : -1;
        next[k] += 1 / fabs(d[k]);
    }
}

START_TEST(crossed_by_a_ray)
{
    const double pi = 3.14159265358979323846;
    const bool points = _i;
    struct scene *scene = scene_create(SCENE_STREET, false);
    struct vx_device *dev = test_device(1 << 30);
    struct vx_map_params p = test_params(VOXEL_M, VX_OCCUPANCY);
    uint8_t *crossed = calloc((size_t)N * N * N, 1);
    float *range = malloc(COLUMNS * ROWS * sizeof *range), *xyz = malloc(COLUMNS * ROWS * 3 * sizeof *xyz),
          elevation[ROWS];
    struct vx_frame f = {.sensor = points ? VX_POINTS : VX_RANGE,
                         .n_poses = 1,
                         .width = points ? COLUMNS * ROWS : COLUMNS,
                         .height = points ? 1 : ROWS,
                         .data = points ? xyz : range,
                         .data_bytes = COLUMNS * ROWS * (points ? 12ull : 4ull),
                         .azimuth_step_rad = 2 * pi / COLUMNS,
                         .elevation_rad = elevation,
                         .max_range_m = RANGE_M,
                         .no_return_value = NAN};
    uint64_t n_free = 0, n_crossed = 0;
    struct map_walk *w;
    struct vx_map *map;
    double pose[12], o[3];
    ck_assert(scene && crossed && range && xyz);
    scene_pose(scene, 200, 100, pose);
    f.pose[0].rotation_xyzw[3] = 1;
    for (int k = 0; k < 3; k++) {
        p.origin_m[k] = f.pose[0].position_m[k] = pose[4 * k + 3];
        o[k] = 0;
    }
    map = test_map(dev, &p);
    for (int r = 0; r < ROWS; r++) {
        elevation[r] = (float)(-0.4 + 0.6 * r / (ROWS - 1));
        for (int c = 0; c < COLUMNS; c++) {
            double az = 2 * pi * c / COLUMNS, e = (double)elevation[r],
                   d[3] = {cos(e) * cos(az), cos(e) * sin(az), sin(e)},
                   t = scene_raycast(scene, 200, f.pose[0].position_m, d, RANGE_M);
            int i = r * COLUMNS + c;
            range[i] = isfinite(t) ? (float)t : 0;
            for (int k = 0; k < 3; k++)
                xyz[3 * i + k] = (float)(d[k] * (isfinite(t) ? t : 2 * RANGE_M)); /* beyond: saw nothing */
            march(crossed, o, d, (isfinite(t) ? t : RANGE_M) / VOXEL_M);
        }
    }
    ck_ok(vx_map_integrate(map, &f, &(struct vx_frame_result){0}, NULL));
    w = map_walk_newest(map);
    ck_assert_msg(!w->fault[0], "%s", w->fault);
    for (uint32_t i = 0; i < w->n_leaves + w->n_tiles; i++) {
        const struct walk_leaf *l = i < w->n_leaves ? &w->leaves[i] : NULL;
        const int32_t *at = l ? l->at : w->tiles[i - w->n_leaves];
        for (int n = 0; n < 512; n++) {
            const int32_t v[3] = {at[0] + (n >> 6), at[1] + (n >> 3 & 7), at[2] + (n & 7)};
            if (l && !(l->free[n >> 6] >> (n & 63) & 1))
                continue;
            n_free++;
            n_crossed += crossed[place(v)];
        }
    }
    printf("%s: %llu of %llu free voxels were crossed by a ray, %.4f %%\n", points ? "points" : "range image",
           (unsigned long long)n_crossed, (unsigned long long)n_free,
           100.0 * (double)n_crossed / (double)n_free);
    ck_assert_uint_gt(
        n_free, points ? 20000 : 100000); /* a point set finds its ray by bins, most of them empty here */
    ck_assert_uint_ge(n_crossed * 1000, n_free * 999);
    map_walk_free(w);
    vx_map_destroy(map);
    vx_device_close(dev);
    scene_destroy(scene);
    free(crossed);
    free(range);
    free(xyz);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("free rays");
    ck_add(s, crossed_by_a_ray, 2);
    return core_test_main(argc, argv, s);
}
