/*
 * What voxelctl view casts into a map of the room, against the room: depth and normal of every pixel, from
 * poses that no frame was taken at.
 */
#include "raycast.h"
#include "scene_frame.h"
#include "vxd_peer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 320, HEIGHT = 240, N_FRAMES = 100, W = 160, H = 120 };
static const double VOXEL_M = 0.04;

static struct vxd_proc proc;
static struct vxc_client *client;
static struct vx_detail why;
static struct scene *scene;

static void good(vx_err err)
{
    ck_assert_msg(err == VX_OK, "%s: %s [%s]", vx_err_name(err), why.text, why.field);
}

static void set_up(void)
{
    vxd_proc_start(&proc, "voxeld", (const char *const[]){"--backend", "cpu", NULL});
    good(vxc_connect(proc.dir, NULL, &client, &why));
}

static void tear_down(void)
{
    vxc_disconnect(client);
    vxd_proc_stop(&proc);
}

static void map_room(void)
{
    const struct vxc_stream_options options = {
        .sensing = {.sensor = VXC_DEPTH, .max_range_m = 8, .no_return_value = NAN}};
    float *image = malloc(WIDTH * HEIGHT * sizeof *image);
    struct vxc_stream *stream;

    ck_assert_ptr_nonnull(image);
    good(vxc_map_create(client, "room", &(struct vxc_map_params){.voxel_size_m = VOXEL_M}, NULL, &why));
    good(vxc_stream_open(client, "room", &options, NULL, NULL, &stream, &why));
    for (uint32_t i = 0; i < N_FRAMES; i++) {
        struct vx_frame in;
        struct vxc_frame f = {.sensor = VXC_DEPTH, .width = WIDTH, .height = HEIGHT, .data = image};
        scene_frame_depth(scene, i, N_FRAMES, WIDTH, HEIGHT, image, &in);
        f.stamp_ns = in.stamp_ns;
        f.fx = in.fx;
        f.fy = in.fy;
        f.cx = in.cx;
        f.cy = in.cy;
        f.data_bytes = in.data_bytes;
        memcpy(f.pose.position_m, in.pose[0].position_m, sizeof f.pose.position_m);
        memcpy(f.pose.rotation_xyzw, in.pose[0].rotation_xyzw, sizeof f.pose.rotation_xyzw);
        good(vxc_stream_send(stream, &f, NULL, NULL, &why));
    }
    good(vxc_stream_flush(stream, &why));
    vxc_stream_close(stream);
    free(image);
}

/* Outward normal of the scene at a place, by differences. */
static void normal_at(const double p[3], double n[3])
{
    const double h = 1e-4;
    double length = 0;
    for (int a = 0; a < 3; a++) {
        double lo[3] = {p[0], p[1], p[2]}, hi[3] = {p[0], p[1], p[2]};
        lo[a] -= h;
        hi[a] += h;
        n[a] = scene_sdf(scene, hi[0], hi[1], hi[2]) - scene_sdf(scene, lo[0], lo[1], lo[2]);
        length += n[a] * n[a];
    }
    for (int a = 0; a < 3; a++)
        n[a] /= sqrt(length);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

START_TEST(depth_and_normal)
{
    static struct hit hits[W * H];
    static double error[W * H];
    struct epochs answered = {0, 0};
    struct view view = {.client = client, .map = "room", .answered = &answered};
    size_t n_hit = 0, n_near = 0, n_on = 0, n_cast = 0, n_facing = 0;

    map_room();
    good(vxc_map_get_info(client, "room", &view.info, &why));
    for (uint32_t i = 0; i < 4; i++) { /* between the frames' poses */
        struct camera c = {.width = W, .height = H, .tan_half_fov = 0.4};
        double pose[12], target[3], eye[3], up[3];
        scene_pose(scene, 53 + 100 * i, 4 * N_FRAMES, pose);
        for (int a = 0; a < 3; a++) {
            eye[a] = pose[4 * a + 3];
            target[a] = eye[a] + pose[4 * a + 2];
            up[a] = -pose[4 * a + 1];
        }
        ck_assert(camera_look(&c, eye, target, up));
        good(raycast(&view, &c, NULL, hits, &why));
        ck_assert(answered.oldest > 0 && answered.oldest == answered.newest); /* the map stands still */
        for (uint32_t k = 0; k < W * H; k++) {
            double d[3], p[3], n[3], dot = 0;
            camera_ray(&c, k % W, k / W, d);
            const double truth = scene_raycast(scene, 0, eye, d, 100);
            n_cast++;
            if (isnan(hits[k].range_m))
                continue;
            error[n_hit] = fabs((double)hits[k].range_m - truth);
            n_near += error[n_hit++] < VOXEL_M;
            for (int a = 0; a < 3; a++)
                p[a] = eye[a] + (double)hits[k].range_m * d[a];
            n_on += fabs(scene_sdf(scene, p[0], p[1], p[2])) < 0.5 * VOXEL_M; /* whatever the angle */
            for (int a = 0; a < 3; a++)
                p[a] = eye[a] + truth * d[a];
            normal_at(p, n);
            for (int a = 0; a < 3; a++)
                dot += n[a] * (double)hits[k].normal[a];
            n_facing += dot > 0.9;
        }
        qsort(error, n_hit, sizeof *error, by_size);
        printf("view %u: %zu of %zu rays hit; %.1f %% on the surface to half a voxel, %.1f %% at the right "
               "depth to one, "
               "median error %.1f mm; normals within 26 degrees %.1f %%\n",
               i, n_hit, n_cast, 100.0 * (double)n_on / (double)n_hit, 100.0 * (double)n_near / (double)n_hit,
               1e3 * error[n_hit / 2], 100.0 * (double)n_facing / (double)n_hit);
        ck_assert_uint_gt(10 * n_hit, 8 * n_cast);
        ck_assert_double_lt(error[n_hit / 2], 0.25 * VOXEL_M);
        ck_assert_uint_gt(100 * n_on, 93 * n_hit);
        ck_assert_uint_gt(100 * n_near, 90 * n_hit);
        ck_assert_uint_gt(100 * n_facing, 85 * n_hit);
        n_hit = n_near = n_on = n_cast = n_facing = 0;
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("view against truth");
    TCase *t = tcase_create("room");
    SRunner *r;
    int failed;

    scene = scene_create(SCENE_ROOM, false);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, depth_and_normal);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    scene_destroy(scene);
    return failed != 0;
}
