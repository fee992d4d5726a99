/*
 * Recorded data: every set opens by itself, and its poses make the views of one place coincide.  The measure
 * is the median distance from points of one frame to the nearest of another, placed by the poses and, for
 * comparison, without them: a pose read the wrong way round, an unapplied calibration or a wrong unit shows
 * in it at once.
 */
#include "set_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *data;

struct points {
    float *sensor; /* [n][3], sensor axes */
    size_t n;
    struct vxc_pose pose;
};

/* Points of a frame within its ranges; of a LiDAR those off the ground, whose rings match themselves wherever
 * the sensor goes. */
static void points_of(const struct vxc_frame *frame, const struct vxc_sensing *sensing, struct points *out)
{
    const size_t n = (size_t)frame->width * frame->height;
    out->sensor = malloc(n * 3 * sizeof *out->sensor);
    out->n = 0;
    out->pose = frame->pose;
    for (size_t k = 0; k < n; k++) {
        float *p = out->sensor + 3 * out->n;
        if (frame->sensor == VXC_DEPTH) {
            const double z = ((const uint16_t *)frame->data)[k] / frame->units_per_m;
            p[0] = (float)(((double)(k % frame->width) - frame->cx) / frame->fx * z);
            p[1] = (float)(((double)(k / frame->width) - frame->cy) / frame->fy * z);
            p[2] = (float)z;
        } else {
            memcpy(p, (const float *)frame->data + 3 * k, 3 * sizeof *p);
        }
        const double range = frame->sensor == VXC_DEPTH
                                 ? (double)p[2]
                                 : sqrt((double)(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]));
        const bool ground = frame->sensor == VXC_POINTS && p[2] < -1;
        if (range >= sensing->min_range_m && range <= sensing->max_range_m && !ground)
            out->n++;
    }
}

static void place(const struct points *p, size_t k, int posed, double out[3])
{
    const float *s = p->sensor + 3 * k;
    struct vxc_pose at = {.position_m = {(double)s[0], (double)s[1], (double)s[2]},
                          .rotation_xyzw = {0, 0, 0, 1}};
    if (posed)
        vxc_pose_compose(&p->pose, &at, &at);
    memcpy(out, at.position_m, sizeof at.position_m);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median over 600 points of b of the distance to the nearest point of a. */
static double median_nearest(const struct points *a, const struct points *b, int posed)
{
    enum { SAMPLES = 600 };
    static double nearest[SAMPLES];
    double(*world)[3] = malloc(a->n * sizeof *world);
    for (size_t k = 0; k < a->n; k++)
        place(a, k, posed, world[k]);
    for (size_t i = 0; i < SAMPLES; i++) {
        double p[3], best = INFINITY;
        place(b, i * (b->n / SAMPLES), posed, p);
        for (size_t k = 0; k < a->n; k++) {
            const double x = world[k][0] - p[0], y = world[k][1] - p[1], z = world[k][2] - p[2];
            const double d2 = x * x + y * y + z * z;
            best = d2 < best ? d2 : best;
        }
        nearest[i] = sqrt(best);
    }
    free(world);
    qsort(nearest, SAMPLES, sizeof *nearest, compare);
    return nearest[SAMPLES / 2];
}

/* Opens a set, reads all its frames, and compares frames first and second. */
static void coincides(const char *set, enum vxc_format format, uint64_t n_frames, uint64_t first,
                      uint64_t second, double at_most_m)
{
    char path[512];
    struct points points[2] = {{0}};
    struct vxc_frame frame;
    snprintf(path, sizeof path, "%s/%s", data, set);
    if (access(path, R_OK) != 0) {
        printf("SKIP: no %s\n", path);
        return;
    }
    struct vxc_reader *r = set_open(path, NULL);
    const struct vxc_reader_info *info = vxc_reader_get_info(r);
    ck_assert_int_eq(info->format, format);
    ck_assert_uint_eq(info->n_frames, n_frames);
    int64_t last_ns = INT64_MIN;
    for (uint64_t i = 0; i < n_frames; i++) {
        set_next(r, &frame);
        ck_assert_uint_eq(frame.index, i);
        ck_assert_int_gt(frame.stamp_ns, last_ns);
        last_ns = frame.stamp_ns;
        if (i == first || i == second)
            points_of(&frame, &info->sensing, &points[i == second]);
    }
    set_at_end(r);
    const double posed = median_nearest(&points[0], &points[1], 1),
                 without = median_nearest(&points[0], &points[1], 0);
    printf("%s: %.4f m with the poses, %.4f m without\n", set, posed, without);
    ck_assert_msg(posed <= at_most_m, "%s: %.4f m, at most %.4f", set, posed, at_most_m);
    ck_assert_msg(posed < 0.8 * without, "%s: the poses do not help: %.4f m, %.4f m without", set, posed,
                  without);
    free(points[0].sensor);
    free(points[1].sensor);
    vxc_reader_close(r);
}

START_TEST(depth)
{
    coincides("rgbd_7scenes_redkitchen_150", VXC_7SCENES, 150, 20, 50, 0.02);
    coincides("rgbd_slambook_xtion_5", VXC_SLAMBOOK, 5, 3, 4, 0.08);
    coincides("rgbd_open3d_auglicl_5", VXC_REDWOOD, 5, 0, 4, 0.015);
    coincides("rgbd_iclnuim_tumlayout_3", VXC_TUM, 3, 0, 2, 0.003);
}
END_TEST

START_TEST(lidar)
{
    coincides("lidar_kitti00_6", VXC_KITTI, 6, 2, 4, 0.12);
    coincides("lidar_ouster_os1_128_3", VXC_XYZ32, 3, 0, 2, 0.07);
    coincides("lidar_livox_avia_hku1_60", VXC_PCD, 60, 10, 20, 0.2);
}
END_TEST

/* NaN points stay what they are, and VIEWPOINT is the pose. */
START_TEST(organised_clouds)
{
    static const struct {
        const char *file;
        unsigned n_nan;
        double qx, qw;
    } cloud[] = {{"capture0001.pcd", 57553, 1, 0},
                 {"five_people.pcd", 68125, 0, 1},
                 {"table_scene_mug_stereo_textured.pcd", 97920, 1, 0}};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        struct vxc_frame frame;
        snprintf(path, sizeof path, "%s/organised_pcd/%s", data, cloud[i].file);
        if (access(path, R_OK) != 0) {
            printf("SKIP: no %s\n", path);
            continue;
        }
        struct vxc_reader *r = set_open(path, NULL);
        set_next(r, &frame);
        ck_assert_uint_eq(frame.width, 640 * 480);
        unsigned n_nan = 0;
        for (size_t k = 0; k < frame.width; k++)
            n_nan += isnan(((const float *)frame.data)[3 * k]);
        ck_assert_uint_eq(n_nan, cloud[i].n_nan);
        set_pose_is(&frame.pose, 0, 0, 0, cloud[i].qx, 0, 0, cloud[i].qw);
        set_at_end(r);
        vxc_reader_close(r);
    }
}
END_TEST

int main(void)
{
    data = set_recorded();
    if (!data)
        return 77;
    TCase *tests = tcase_create("recorded data");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, depth);
    tcase_add_test(tests, lidar);
    tcase_add_test(tests, organised_clouds);
    return set_run(tests);
}
