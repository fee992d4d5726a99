/* Folders of depth images: every layout, its defaults and its traps. */
#include "set_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint16_t pixel(const struct vxc_frame *frame, uint32_t u, uint32_t v)
{
    return ((const uint16_t *)frame->data)[(size_t)v * frame->width + u];
}

static void camera_is(const struct vxc_frame *frame, double fx, double fy, double cx, double cy)
{
    ck_assert_double_eq(frame->fx, fx);
    ck_assert_double_eq(frame->fy, fy);
    ck_assert_double_eq(frame->cx, cx);
    ck_assert_double_eq(frame->cy, cy);
}

/* ------------------------------------------------------------------ 7-Scenes */

START_TEST(scenes7)
{
    struct vxc_frame frame;
    set_png16("frame-000000.depth.png", 4, 3, 100);
    set_png16("frame-000001.depth.png", 4, 3, 200);
    set_png16("frame-000010.depth.png", 4, 3, 300);
    set_text("frame-000000.pose.txt", "%s", SET_IDENTITY);
    set_text("frame-000001.pose.txt", "0 -1 0 5\n1 0 0 6\n0 0 1 7\n0 0 0 1\n");
    set_text("frame-000010.pose.txt", "%s", SET_IDENTITY);
    struct vxc_reader *r = set_open("", NULL);
    const struct vxc_reader_info *info = vxc_reader_get_info(r);
    ck_assert_int_eq(info->format, VXC_7SCENES);
    ck_assert_uint_eq(info->n_frames, 3);
    ck_assert_int_eq(info->sensing.sensor, VXC_DEPTH);
    ck_assert_double_eq(info->sensing.min_range_m, 0.1);
    ck_assert_double_eq(info->sensing.max_range_m, 8);
    ck_assert(isnan(info->sensing.no_return_value));
    ck_assert_uint_eq(info->n_notes, 1); /* intrinsics are the default */
    set_next(r, &frame);
    camera_is(&frame, 585, 585, 320, 240);
    ck_assert_double_eq(frame.units_per_m, 1000);
    ck_assert_int_eq(frame.encoding, VXC_U16);
    ck_assert_uint_eq(frame.data_bytes, 24);
    ck_assert_uint_eq(pixel(&frame, 3, 2), 123);
    ck_assert_int_eq(frame.stamp_ns, 0);
    set_next(r, &frame);
    ck_assert_int_eq(frame.stamp_ns, 33333333);
    ck_assert_uint_eq(pixel(&frame, 0, 0), 200);
    set_pose_is(&frame.pose, 5, 6, 7, 0, 0, sqrt(0.5), sqrt(0.5));
    set_next(r, &frame);
    ck_assert_uint_eq(frame.index, 2);
    ck_assert_str_eq(frame.name, "frame-000010.depth.png");
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

START_TEST(scenes7_intrinsics_and_limits)
{
    struct vxc_frame frame;
    set_text("camera-intrinsics.txt", "500 0 310\n0 501 230\n0 0 1\n");
    for (int i = 0; i < 5; i++)
        set_scenes7("seq-01/", i);
    struct vxc_reader *r = set_open("seq-01/", NULL); /* the file lies one folder above */
    set_next(r, &frame);
    camera_is(&frame, 500, 501, 310, 230);
    vxc_reader_close(r);
    struct vxc_reader_options o = {.has_intrinsics = true,
                                   .intrinsics = {1, 2, 3, 4},
                                   .depth_units_per_m = 5000,
                                   .min_range_m = 0.3,
                                   .max_range_m = 4,
                                   .max_frames = 2};
    r = set_open("seq-01", &o);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_frames, 2);
    ck_assert_double_eq(vxc_reader_get_info(r)->sensing.min_range_m, 0.3);
    ck_assert_double_eq(vxc_reader_get_info(r)->sensing.max_range_m, 4);
    set_next(r, &frame);
    camera_is(&frame, 1, 2, 3, 4);
    ck_assert_double_eq(frame.units_per_m, 5000);
    set_next(r, &frame);
    set_at_end(r);
    vxc_reader_close(r);
    set_refuses("", NULL, VX_E_NOT_FOUND, "is no known set");
    o = (struct vxc_reader_options){.format = VXC_7SCENES};
    set_refuses("", &o, VX_E_NOT_FOUND, "for example seq-01");
}
END_TEST

/* Every way a frame of a good set can be bad: it alone is refused, with its file named. */
START_TEST(scenes7_bad_frames)
{
    struct vxc_frame frame;
    static const char *const poses[] = {
        SET_IDENTITY,
        "nan nan nan nan\nnan nan nan nan\nnan nan nan nan\n0 0 0 1\n",
        "-1.#IND 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n",
        "1 0 0 0\n0 1 0 0\n0 0 -1 0\n0 0 0 1\n",
        "1 0.1 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n",
        "1 0 0 0\n0 1 0 0\n0 0 1 0\n",
        "1 0 0 0\n0 1 0 zero\n0 0 1 0\n0 0 0 1\n",
        "1 0 0 0\n0 1 0 0\n0 0 1 0\n5 6 7 1\n",
        "",
    };
    static const char *const words[] = {NULL, "not finite", "not finite", "mirror",         "not rigid",
                                        NULL, "line 2",     "last row",   "holds 0 numbers"};
    char name[64];
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "frame-%06d.depth.png", i);
        set_png16(name, 4, 3, 1000);
        snprintf(name, sizeof name, "frame-%06d.pose.txt", i);
        set_text(name, "%s", poses[i]);
    }
    set_png16("frame-000009.depth.png", 4, 3, 1000); /* without a pose file */
    set_png8("frame-000010.depth.png", 0);
    set_png8("frame-000011.depth.png", 1);
    set_text("frame-000012.depth.png", "no picture at all");
    set_bytes("frame-000013.depth.png", "", 0);
    for (int i = 10; i < 14; i++) {
        snprintf(name, sizeof name, "frame-%06d.pose.txt", i);
        set_text(name, "%s", SET_IDENTITY);
    }
    struct vxc_reader *r = set_open("", NULL);
    for (int i = 0; i < 9; i++) {
        if (words[i])
            set_next_refused(r, VX_E_INVALID, words[i]);
        else
            set_next(r, &frame); /* also 12 numbers: a 3 x 4 matrix */
    }
    set_next_refused(r, VX_E_NOT_FOUND, "frame-000009.pose.txt");
    set_next_refused(r, VX_E_INVALID, "8 bits a pixel");
    set_next_refused(r, VX_E_INVALID, "colour");
    set_next_refused(r, VX_E_INVALID, "neither a PNG nor");
    set_next_refused(r, VX_E_INVALID, "empty");
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

/* ------------------------------------------------------------------ TUM */

static void write_tum(const char *poses)
{
    set_text(
        "depth.txt",
        "# depth maps\n# timestamp filename\n10.000001 depth/a.png\n10.05 depth/b.png\n10.5 depth/c.png\n");
    set_png16("depth/a.png", 4, 3, 5000);
    set_png16("depth/b.png", 4, 3, 6000);
    set_png16("depth/c.png", 4, 3, 7000);
    set_text("groundtruth.txt", "%s", poses);
}

START_TEST(tum)
{
    struct vxc_frame frame;
    struct vxc_reader_options o = {.has_intrinsics = true, .intrinsics = {517, 516, 318, 255}};
    /* out of order; 10.039 and 10.061 are as far from 10.05 as each other: the earlier one counts */
    write_tum("# ground truth\n10.061 9 9 9 0 0 0 1\n10.039 2 0 0 0 0 0 1\n9.99 1 0 0 0 0 0 1\n10.021 8 8 8 "
              "0 0 0 1\n");
    set_refuses("", NULL, VX_E_NOT_FOUND, "--intrinsics");
    struct vxc_reader *r = set_open("", &o);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_TUM);
    set_next(r, &frame);
    ck_assert_int_eq(frame.stamp_ns, 10000001000);
    ck_assert_double_eq(frame.units_per_m, 5000);
    camera_is(&frame, 517, 516, 318, 255);
    set_pose_is(&frame.pose, 1, 0, 0, 0, 0, 0, 1);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 2, 0, 0, 0, 0, 0, 1);
    set_next_refused(r, VX_E_NOT_FOUND, "within 0.02 s");
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

START_TEST(tum_cameras_by_name)
{
    struct vxc_frame frame;
    static const struct {
        const char *folder;
        double fx;
    } known[] = {
        {"rgbd_dataset_freiburg1_desk", 517.3}, {"fr2_xyz", 520.9}, {"rgbd_dataset_freiburg3_x", 535.4}};
    for (size_t i = 0; i < 3; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s/depth.txt", known[i].folder);
        set_text(name, "1 d.png\n");
        snprintf(name, sizeof name, "%s/groundtruth.txt", known[i].folder);
        set_text(name, "1 0 0 0 0 0 0 1\n");
        snprintf(name, sizeof name, "%s/d.png", known[i].folder);
        set_png16(name, 2, 2, 1);
        struct vxc_reader *r = set_open(known[i].folder, NULL);
        set_next(r, &frame);
        ck_assert_double_eq(frame.fx, known[i].fx);
        ck_assert_uint_eq(vxc_reader_get_info(r)->n_notes, 1);
        vxc_reader_close(r);
    }
}
END_TEST

/* With fy < 0 (and fx < 0) every pixel must still stand for the same ray. */
START_TEST(negative_focal_lengths_keep_the_rays)
{
    struct vxc_frame frame;
    write_tum("10 0 0 0 0 0 0 1\n");
    for (int signs = 0; signs < 4; signs++) {
        const double fx = signs & 1 ? -481 : 481, fy = signs & 2 ? -480 : 480, cx = 1.25, cy = 0.5;
        struct vxc_reader_options o = {.has_intrinsics = true, .intrinsics = {fx, fy, cx, cy}};
        struct vxc_reader *r = set_open("", &o);
        set_next(r, &frame);
        ck_assert_double_eq(frame.fx, 481);
        ck_assert_double_eq(frame.fy, 480);
        for (uint32_t v = 0; v < 3; v++) {
            for (uint32_t u = 0; u < 4; u++) {
                const unsigned original = pixel(&frame, u, v) - 5000u; /* 10 v + u of the file */
                const double x = (original % 10 - cx) / fx, y = ((unsigned)(original / 10) - cy) / fy;
                ck_assert_double_eq_tol((u - frame.cx) / frame.fx, x, 1e-15);
                ck_assert_double_eq_tol((v - frame.cy) / frame.fy, y, 1e-15);
            }
        }
        ck_assert(signs & 2 ? strstr(vxc_reader_get_info(r)->note[0], "rows run upwards") != NULL : true);
        vxc_reader_close(r);
    }
    struct vxc_reader_options zero = {.has_intrinsics = true, .intrinsics = {0, 1, 1, 1}};
    set_refuses("", &zero, VX_E_INVALID, "make no camera");
}
END_TEST

START_TEST(tum_bad_files)
{
    struct vxc_reader_options o = {.has_intrinsics = true, .intrinsics = {1, 1, 1, 1}};
    write_tum("hello world\n");
    set_refuses("", &o, VX_E_INVALID, "line 1 holds no pose");
    write_tum("# nothing\n");
    set_refuses("", &o, VX_E_INVALID, "holds no pose");
    write_tum("10 0 0 0 0 0 0 0\n");
    struct vxc_reader *r = set_open("", &o);
    set_next_refused(r, VX_E_INVALID, "groundtruth.txt line 1");
    vxc_reader_close(r);
    set_text("depth.txt", "ten depth/a.png\n");
    set_refuses("", &o, VX_E_INVALID, "line 1 is not 'seconds file'");
    set_text("depth.txt", "\n# only a comment\n");
    set_refuses("", &o, VX_E_NOT_FOUND, "lists no image");
}
END_TEST

/* ------------------------------------------------------------------ Replica, Redwood, slambook */

START_TEST(replica)
{
    struct vxc_frame frame;
    set_text("cam_params.json",
             "{\"camera\": {\"w\": 4, \"h\": 3, \"fx\": 600.5, \"fy\": 601, \"cx\": 1.5, \"cy\": 1, "
             "\"scale\": 6553.5, \"crop_edge\": 0, \"note\": \"a \\\"b\\\" \"}}\n");
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "Replica/room0/results/depth%06d.png", i);
        set_png16(name, 4, 3, 1000);
        snprintf(name, sizeof name, "Replica/room0/results/frame%06d.jpg", i);
        set_text(name, "x");
    }
    set_text("Replica/room0/traj.txt",
             "1 0 0 1 0 1 0 2 0 0 1 3 0 0 0 1\n"
             "0.0 0.0 1.0 4 1 0 0 5 0 1 0 6 0.0 0.0 0.0 1.0\n1 0 0 1 0 1 0 2 0 0 1 3 0 0 0 1\n");
    struct vxc_reader *r = set_open("Replica/room0", NULL);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_REPLICA);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_notes, 1); /* three poses, two images */
    set_next(r, &frame);
    camera_is(&frame, 600.5, 601, 1.5, 1);
    ck_assert_double_eq(frame.units_per_m, 6553.5);
    set_pose_is(&frame.pose, 1, 2, 3, 0, 0, 0, 1);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 4, 5, 6, 0.5, 0.5, 0.5, 0.5);
    set_at_end(r);
    vxc_reader_close(r);
    set_text("cam_params.json",
             "{\"camera\": {\"w\": 5, \"h\": 3, \"fx\": 600, \"fy\": 600, \"cx\": 1, \"cy\": 1}}");
    r = set_open("Replica/room0", NULL);
    set_next_refused(r, VX_E_INVALID, "the camera's file says 5 x 3");
    vxc_reader_close(r);
    set_text("cam_params.json", "{\"camera\": {\"fx\": 600, \"fy\": 600, \"cx\": 1}}");
    set_refuses("Replica/room0", NULL, VX_E_INVALID, "has no number 'cy'");
    set_text("cam_params.json", "{\"camera\": {\"fx\": 600,, }}");
    set_refuses("Replica/room0", NULL, VX_E_INVALID, "is not JSON at byte");
    ck_assert_int_eq(remove(set_path("cam_params.json")), 0);
    set_refuses("Replica/room0", NULL, VX_E_NOT_FOUND, "no cam_params.json");
}
END_TEST

static void write_redwood(const char *log)
{
    set_png16("depth/00000.png", 4, 3, 1000);
    set_png16("depth/00001.png", 4, 3, 2000);
    set_text("odometry.log", "%s", log);
}

START_TEST(redwood)
{
    struct vxc_frame frame;
    static const char log[] =
        "0\t0\t1\n1 0 0 2\n0 1 0 2\n0 0 1 -0.3\n0 0 0 1\n1 1 2\n 0.0 -1.0e+000 0 1.5e-001\n1 0 0 0\n0 "
        "0 1 0\n0 0 0 1\n";
    write_redwood(log);
    struct vxc_reader *r = set_open("", NULL);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_REDWOOD);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_notes, 1); /* default intrinsics */
    set_next(r, &frame);
    camera_is(&frame, 525, 525, 319.5, 239.5);
    set_pose_is(&frame.pose, 2, 2, -0.3, 0, 0, 0, 1);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 0.15, 0, 0, 0, 0, sqrt(0.5), sqrt(0.5));
    set_at_end(r);
    vxc_reader_close(r);
    set_text("camera_primesense.json",
             "{\"width\": 4, \"height\": 3, \"intrinsic_matrix\": [500, 0, 0, 0, 501, 0, 1.5, 1, 1]}");
    r = set_open("", NULL);
    set_next(r, &frame);
    camera_is(&frame, 500, 501, 1.5, 1);
    vxc_reader_close(r);
    set_text("camera_primesense.json", "{\"intrinsic_matrix\": [500, 0, 1.5, 0, 501, 1, 0, 0, 1]}");
    set_refuses("", NULL, VX_E_INVALID, "column by column");
    ck_assert_int_eq(remove(set_path("camera_primesense.json")), 0);
    set_text("other.log", "%s", log);
    set_refuses("", NULL, VX_E_INVALID, "--poses");
    struct vxc_reader_options o = {.poses_path = set_path("other.log")};
    vxc_reader_close(set_open("", &o));
}
END_TEST

/* A log that loses step would give later frames poses of others. */
START_TEST(redwood_log_out_of_step)
{
    write_redwood("0 0 1\n1 0 0 2\n0 1 0 2\n0 0 1 -0.3\n1 1 2\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n");
    set_refuses("", NULL, VX_E_INVALID, "three integers and then four rows");
    write_redwood("0 0 1\n1 0 0 2\n0 1 0 2\n");
    set_refuses("", NULL, VX_E_INVALID, "three integers and then four rows");
}
END_TEST

START_TEST(slambook)
{
    struct vxc_frame frame;
    set_text("pose.txt", "1 2 3 0 0 0 1\n4 5 6 0 0 0.70710678118654752 0.70710678118654752\n7 8 9 0 0 0 2\n");
    for (int i = 1; i <= 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "depth/%d.pgm", i);
        set_pgm16(name, 4, 3, (uint16_t)(1000 * i));
    }
    struct vxc_reader *r = set_open("", NULL);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_SLAMBOOK);
    set_next(r, &frame);
    camera_is(&frame, 518, 519, 325.5, 253.5);
    ck_assert_uint_eq(pixel(&frame, 1, 1), 1011); /* 1.pgm, not 10.pgm: numbers sort as numbers */
    set_pose_is(&frame.pose, 1, 2, 3, 0, 0, 0, 1);
    set_next(r, &frame);
    ck_assert_uint_eq(pixel(&frame, 0, 0), 2000);
    set_next_refused(r, VX_E_INVALID, "pose.txt line 3: the quaternion's norm is 2");
    set_next_refused(r, VX_E_NOT_FOUND, "none for frame 3");
    vxc_reader_close(r);
}
END_TEST

/* Intrinsics fit one size of image: a smaller one among the others would be mapped with the wrong rays. */
START_TEST(one_size_a_set)
{
    struct vxc_frame frame;
    set_text("pose.txt", "0 0 0 0 0 0 1\n0 0 0 0 0 0 1\n0 0 0 0 0 0 1\n");
    set_pgm16("depth/1.pgm", 8, 6, 1000);
    set_pgm16("depth/2.pgm", 4, 3, 1000);
    set_pgm16("depth/3.pgm", 8, 6, 1000);
    struct vxc_reader *r = set_open("", NULL);
    set_next(r, &frame);
    set_next_refused(r, VX_E_INVALID, "4 x 3 px, the images before it are 8 x 6");
    set_next(r, &frame);
    vxc_reader_close(r);
}
END_TEST

START_TEST(pgm_traps)
{
    set_text("pose.txt", "0 0 0 0 0 0 1\n0 0 0 0 0 0 1\n0 0 0 0 0 0 1\n0 0 0 0 0 0 1\n0 0 0 0 0 0 1\n");
    set_text("depth/1.pgm", "P5 4 3 255\n012345678901");
    set_text("depth/2.pgm", "P5 4 3 65535\n0123456789");
    set_text("depth/3.pgm", "P5 4 -3 65535\n");
    set_text("depth/4.pgm", "P5 99999999 99999999 65535\n");
    set_text("depth/5.pgm", "P5 0 3 65535\n");
    struct vxc_reader *r = set_open("", NULL);
    set_next_refused(r, VX_E_INVALID, "8 bits a pixel");
    set_next_refused(r, VX_E_INVALID, "cut off in row 1 of 3");
    set_next_refused(r, VX_E_INVALID, "header");
    set_next_refused(r, VX_E_EXHAUSTED, "too large");
    set_next_refused(r, VX_E_INVALID, "no pixels");
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

/* ------------------------------------------------------------------ options and detection */

START_TEST(bad_options_and_paths)
{
    struct vxc_reader_options o = {.depth_units_per_m = -1};
    set_png16("frame-000000.depth.png", 2, 2, 1);
    set_text("frame-000000.pose.txt", "%s", SET_IDENTITY);
    set_refuses("", &o, VX_E_INVALID, "units per metre");
    o = (struct vxc_reader_options){.min_range_m = 9};
    set_refuses("", &o, VX_E_INVALID, "less than the maximum range");
    o = (struct vxc_reader_options){.max_range_m = NAN};
    set_refuses("", &o, VX_E_INVALID, "positive distance");
    o = (struct vxc_reader_options){.has_intrinsics = true, .intrinsics = {1, NAN, 1, 1}};
    set_refuses("", &o, VX_E_INVALID, "make no camera");
    o = (struct vxc_reader_options){.format = (enum vxc_format)99};
    set_refuses("", &o, VX_E_INVALID, "is no format");
    o = (struct vxc_reader_options){.poses_path = set_path("none.txt")};
    set_refuses("", &o, VX_E_NOT_FOUND, "does not exist");
    set_refuses("nowhere", NULL, VX_E_NOT_FOUND, "does not exist");
    set_text("file.bin", "1234");
    set_refuses("file.bin", NULL, VX_E_NOT_FOUND, "--format kitti");
    for (int f = 0; f < VXC_N_FORMATS; f++)
        ck_assert_int_eq(vxc_format_from_name(vxc_format_name((enum vxc_format)f)), f);
    ck_assert_int_eq(vxc_format_from_name("nonsense"), VXC_N_FORMATS);
    /* every format, pointed at an empty folder, says what is missing */
    set_text("empty/x", "x");
    for (int f = 0; f < VXC_VXWL; f++) {
        o = (struct vxc_reader_options){
            .format = (enum vxc_format)f, .has_intrinsics = true, .intrinsics = {1, 1, 1, 1}};
        set_refuses("empty", &o, VX_E_NOT_FOUND, "");
    }
    o = (struct vxc_reader_options){.format = VXC_VXWL};
    set_refuses("empty", &o, VX_E_INVALID, "not a regular file");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("depth sets");
    tcase_add_test(tests, scenes7);
    tcase_add_test(tests, scenes7_intrinsics_and_limits);
    tcase_add_test(tests, scenes7_bad_frames);
    tcase_add_test(tests, tum);
    tcase_add_test(tests, tum_cameras_by_name);
    tcase_add_test(tests, negative_focal_lengths_keep_the_rays);
    tcase_add_test(tests, tum_bad_files);
    tcase_add_test(tests, replica);
    tcase_add_test(tests, redwood);
    tcase_add_test(tests, redwood_log_out_of_step);
    tcase_add_test(tests, slambook);
    tcase_add_test(tests, one_size_a_set);
    tcase_add_test(tests, pgm_traps);
    tcase_add_test(tests, bad_options_and_paths);
    return set_run(tests);
}
