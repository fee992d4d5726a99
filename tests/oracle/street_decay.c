/*
 * street_decay.c - a drive through the street with driving cars, with and without decay.
 *
 * With a half-life to forget in about two seconds the number of active voxels stays bounded, where without
 * decay it grows with the road; and nothing is left in the air where a car has been.  The truth is the
 * scene's.
 */
#include "core_test.h"
#include "scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 360, ROWS = 24, N_FRAMES = 70 };
#define VOXEL_M 0.4
#define RANGE_M 45.0

struct scan {
    float range[ROWS][COLUMNS], elevation[ROWS];
};

static void render(const struct scene *scene, uint32_t frame, struct scan *out, struct vx_frame *f)
{
    const double pi = 3.14159265358979323846;
    double pose[12], half[4];
    scene_pose(scene, frame, 100, pose);
    for (int r = 0; r < ROWS; r++) {
        double e = -0.42 + 0.5 * r / (ROWS - 1);
        out->elevation[r] = (float)e;
        for (int c = 0; c < COLUMNS; c++) {
            double az = 2 * pi * c / COLUMNS, l[3] = {cos(e) * cos(az), cos(e) * sin(az), sin(e)}, d[3], o[3],
                   t;
            for (int k = 0; k < 3; k++) {
                d[k] = pose[4 * k] * l[0] + pose[4 * k + 1] * l[1] + pose[4 * k + 2] * l[2];
                o[k] = pose[4 * k + 3];
            }
            t = scene_raycast(scene, frame, o, d, RANGE_M);
            out->range[r][c] = isfinite(t) ? (float)t : 0;
        }
    }
    half[3] =
        sqrt(fmax(0, 1 + pose[0] + pose[5] + pose[10])) / 2; /* the car turns by less than half a turn */
    half[0] = (pose[9] - pose[6]) / (4 * half[3]);
    half[1] = (pose[2] - pose[8]) / (4 * half[3]);
    half[2] = (pose[4] - pose[1]) / (4 * half[3]);
    *f = (struct vx_frame){.sensor = VX_RANGE,
                           .stamp_ns = (int64_t)frame * 100000000,
                           .n_poses = 1,
                           .width = COLUMNS,
                           .height = ROWS,
                           .data = out->range,
                           .data_bytes = sizeof out->range,
                           .azimuth_step_rad = 2 * pi / COLUMNS,
                           .elevation_rad = out->elevation,
                           .max_range_m = RANGE_M,
                           .no_return_value = NAN};
    for (int k = 0; k < 3; k++)
        f->pose[0].position_m[k] = pose[4 * k + 3];
    memcpy(f->pose[0].rotation_xyzw, half, sizeof half);
}

/* Voxels that hold something in front of every surface by more than three voxels, now and in the last two
 * seconds. */
static uint64_t floating(const struct scene *scene, struct vx_map *map, uint32_t frame, bool tsdf,
                         uint64_t *solid)
{
    struct map_walk *w = map_walk_newest(map);
    uint64_t n = 0;
    *solid = 0;
    ck_assert_msg(!w->fault[0], "%s", w->fault);
    for (uint32_t i = 0; i < w->n_leaves; i++)
        for (int v = 0; v < 512; v++) {
            const struct walk_leaf *l = &w->leaves[i];
            double p[3], clear;
            int16_t d = (int16_t)(l->value[v] & 0xffff);
            if (!(l->active[v >> 6] >> (v & 63) & 1) || (tsdf ? d >= 0 : d <= 0))
                continue;
            ++*solid;
            p[0] = (l->at[0] + (v >> 6) + 0.5) * VOXEL_M;
            p[1] = (l->at[1] + (v >> 3 & 7) + 0.5) * VOXEL_M;
            p[2] = (l->at[2] + (v & 7) + 0.5) * VOXEL_M;
            clear = scene_sdf(scene, p[0], p[1], p[2]);
            for (uint32_t back = 0; back <= 20 && clear > 3 * VOXEL_M; back++)
                clear = fmin(clear, scene_sdf_at_frame(scene, frame - back, p[0], p[1], p[2]));
            n += clear > 3 * VOXEL_M;
        }
    map_walk_free(w);
    return n;
}

START_TEST(drive)
{
    bool tsdf = _i == 0;
    struct scene *scene = scene_create(SCENE_STREET, true);
    struct vx_device *d = test_device(1 << 30);
    struct vx_map_params p = test_params(VOXEL_M, tsdf ? VX_TSDF : VX_OCCUPANCY);
    struct scan *scan = malloc(sizeof *scan);
    struct vx_map *plain, *fading;
    struct vx_map_info info[2];
    uint64_t early = 0, late = 0, plain_early = 0, solid[2], trail[2];
    ck_assert(scene && scan);
    plain = test_map(d, &p);
    p.half_life_s = tsdf ? 0.4 : 0.35;
    fading = test_map(d, &p);
    for (uint32_t i = 0; i < N_FRAMES; i++) {
        struct vx_frame f;
        struct vx_frame_result r;
        render(scene, 100 + i, scan, &f);
        ck_ok(vx_map_integrate(plain, &f, &r, NULL));
        ck_ok(vx_map_integrate(fading, &f, &r, NULL));
        ck_ok(vx_map_get_info(plain, &info[0]));
        ck_ok(vx_map_get_info(fading, &info[1]));
        if (i < 35) {
            early = info[1].n_voxels > early ? info[1].n_voxels : early;
            plain_early = info[0].n_voxels;
        } else {
            late = info[1].n_voxels > late ? info[1].n_voxels : late;
        }
    }
    trail[0] = floating(scene, plain, 100 + N_FRAMES - 1, tsdf, &solid[0]);
    trail[1] = floating(scene, fading, 100 + N_FRAMES - 1, tsdf, &solid[1]);
    printf("%s: without decay %llu voxels after 35 frames, %llu after %d, %.1f MiB; with decay at most %llu, "
           "then %llu, "
           "at the end %llu, %.1f MiB; in the air %llu of %llu without, %llu of %llu with\n",
           tsdf ? "tsdf" : "occupancy", (unsigned long long)plain_early, (unsigned long long)info[0].n_voxels,
           N_FRAMES, (double)info[0].used_bytes / 1048576, (unsigned long long)early,
           (unsigned long long)late, (unsigned long long)info[1].n_voxels,
           (double)info[1].used_bytes / 1048576, (unsigned long long)trail[0], (unsigned long long)solid[0],
           (unsigned long long)trail[1], (unsigned long long)solid[1]);
    ck_assert_uint_gt(info[0].n_voxels * 10, plain_early * 13);
    ck_assert_uint_lt(late * 10, early * 12);
    ck_assert_uint_lt(info[1].n_voxels * 10, info[0].n_voxels * 7);
    ck_assert_uint_lt(info[1].used_bytes, info[0].used_bytes);
    ck_assert_uint_le(trail[1] * 5000, solid[1]); /* a graze now and then, no trail */
    vx_map_destroy(plain);
    vx_map_destroy(fading);
    vx_device_close(d);
    scene_destroy(scene);
    free(scan);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("street decay");
    ck_add(s, drive, 2);
    return core_test_main(argc, argv, s);
}
