/*
 * oracle_weighting.c - what readings weigh, by hand: a wall that a camera faces from several distances, each
 * time off by an error of its own.
 *
 * A voxel of its band holds the mean of what the frames said about it, by 16 / depth^2 from 1 to 16 or by 1,
 * times the weight of the pixel where the frame brings one, in whole numbers.  Here that is a sum over five
 * frames in double precision.
 */
#include "core_test.h"
#include "vx/mesh.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 64, HEIGHT = 48, N_LOOKS = 5, CAP = 255 };
#define VOXEL_M    0.02
#define TRUNCATION 3.0

/* From where the wall at z = 0 is seen, and by how much the reading is wrong, voxels. */
static const struct look {
    double depth_m, error;
} looks[N_LOOKS] = {{0.8, 0.9}, {1.3, -0.6}, {2.1, 0.4}, {3.0, -0.8}, {4.5, 0.5}};

static int worth(enum vx_weighting weighting, double depth_m, double by)
{
    double w = weighting == VX_WEIGHT_CONSTANT ? 1 : fmin(fmax(16 / (depth_m * depth_m), 1), 16);
    return (int)fmin(fmax(rint(w * by), 1), CAP);
}

/* A camera at depth_m before z = 0 that sees a wall `beyond_m` behind it; by: the weight of all pixels, 0:
 * the frame brings none. */
static void see(struct vx_map *map, double depth_m, double beyond_m, double by)
{
    float data[WIDTH * HEIGHT], weight[WIDTH * HEIGHT];
    struct vx_frame f = {.sensor = VX_DEPTH,
                         .n_poses = 1,
                         .width = WIDTH,
                         .height = HEIGHT,
                         .fx = 60,
                         .fy = 60,
                         .cx = 31.5,
                         .cy = 23.5,
                         .data = data,
                         .data_bytes = sizeof data,
                         .no_return_value = NAN};
    f.pose[0] = (struct vx_pose){.position_m = {0, 0, -depth_m}, .rotation_xyzw = {0, 0, 0, 1}};
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        data[i] = (float)(depth_m + beyond_m);
        weight[i] = (float)by;
    }
    f.weight = by > 0 ? weight : NULL;
    ck_ok(vx_map_integrate(map, &f, &(struct vx_frame_result){0}, NULL));
}

static struct vx_map *begin(enum vx_weighting weighting, struct vx_device **d)
{
    struct vx_map_params p = test_params(VOXEL_M, VX_TSDF);
    p.truncation_voxels = TRUNCATION;
    p.weighting = weighting;
    *d = test_device(256 << 20);
    return test_map(*d, &p);
}

/* Voxel (0, 0, k) of the map. */
static int voxel(struct vx_map *map, int k, int *distance, int *weight)
{
    struct map_walk *w = map_walk_newest(map);
    uint32_t value = 0;
    int state;
    ck_assert_msg(!w->fault[0], "%s", w->fault);
    state = map_walk_voxel(w, 0, 0, k, &value);
    *distance = (int16_t)(value & 0xffff);
    *weight = (int)(value >> 16 & 255);
    map_walk_free(w);
    return state;
}

/* Every frame says something about the voxels -2 .. 1, and means by either weighting are far apart. */
START_TEST(means)
{
    const enum vx_weighting weighting = _i & 1 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE;
    const double by = _i & 2 ? 2.6 : 0, unit = 32767 / TRUNCATION;
    struct vx_device *d;
    struct vx_map *map = begin(weighting, &d);
    for (int i = 0; i < N_LOOKS; i++)
        see(map, looks[i].depth_m, looks[i].error * VOXEL_M, by);
    for (int k = -2; k < 2; k++) {
        double sum[2] = {0}, mean[2];
        int n[2] = {0}, distance, weight;
        for (int h = 0; h < 2; h++) {
            for (int i = 0; i < N_LOOKS; i++) {
                const int w = worth(h ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE,
                                    looks[i].depth_m + looks[i].error * VOXEL_M, by > 0 ? by : 1);
                sum[h] += w * (looks[i].error - (k + 0.5)) * unit;
                n[h] += w;
            }
            mean[h] = sum[h] / n[h];
        }
        ck_assert(fabs(mean[0] - mean[1]) > 1000);
        ck_assert_int_eq(voxel(map, k, &distance, &weight), VXK_ACTIVE);
        printf("%s%s, voxel %d: %d, by hand %.1f; weight %d\n", _i & 1 ? "constant" : "inverse square",
               by > 0 ? ", weighed" : "", k, distance, mean[_i & 1], weight);
        ck_assert_int_eq(weight, n[_i & 1]);
        ck_assert(fabs(distance - mean[_i & 1]) < 4);
    }
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

static uint64_t triangles(struct vx_map *map, uint32_t min_weight)
{
    struct vx_mesh mesh;
    struct vx_reply reply;
    uint64_t n;
    ck_ok(vx_mesh_extract(map, NULL, min_weight, &mesh, &reply, NULL));
    n = mesh.n_triangles;
    vx_mesh_fini(&mesh);
    return n;
}

/* Constant weights count frames, up to 255; whoever asks for so many gets the mesh of what so many saw. */
START_TEST(counts_frames)
{
    struct vx_device *d;
    struct vx_map *map = begin(VX_WEIGHT_CONSTANT, &d);
    int distance, weight, expected = 0;
    for (int i = 0; i < 14; i++) {
        const int by = i == 7 ? 243 : 1; /* as many frames at once */
        see(map, i & 1 ? 0.7 : 3.5, 0, by);
        expected = expected + by < CAP ? expected + by : CAP;
        voxel(map, -1, &distance, &weight);
        ck_assert_int_eq(weight, expected);
        ck_assert_uint_gt(triangles(map, (uint32_t)weight), 0);
        if (weight < CAP)
            ck_assert_uint_eq(triangles(map, (uint32_t)weight + 1), 0);
    }
    ck_assert_int_eq(weight, CAP);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* Seen through, a voxel behind a surface loses half of its weight and is free with the last of it. */
START_TEST(seen_through)
{
    const enum vx_weighting weighting = _i & 1 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE;
    struct vx_device *d;
    struct vx_map *map = begin(weighting, &d);
    int distance, weight, expected = 0;
    for (int i = 0; i < 11; i++) {
        see(map, 1.3, 0, 0);
        expected += worth(weighting, 1.3, 1);
    }
    ck_assert_int_eq(voxel(map, 1, &distance, &weight), VXK_ACTIVE);
    for (; expected > 0; expected /= 2) {
        ck_assert_int_eq(weight, expected);
        ck_assert_int_lt(distance, 0);
        see(map, 1.3, 2, 0);
        ck_assert_int_eq(voxel(map, 1, &distance, &weight), expected > 1 ? VXK_ACTIVE : VXK_FREE);
    }
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("weighting");
    ck_add(s, means, 4);
    ck_add(s, counts_frames, 1);
    ck_add(s, seen_through, 2);
    return core_test_main(argc, argv, s);
}
