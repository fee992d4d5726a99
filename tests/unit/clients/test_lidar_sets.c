/* LiDAR sets and VXWL files: every layout, its defaults and its traps. */
#include "cloud.h"
#include "set_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Clouds below are the points (i, 10 + i, 20 + i), i = first .. first + n - 1, with other columns between
 * them. */

static void write_raw(const char *name, int n, int columns, int first)
{
    float value[64 * 4];
    ck_assert_int_le(n, 64);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < columns; c++)
            value[i * columns + c] = c == 3 ? 0.5f : (float)(first + i + 10 * c);
    set_bytes(name, value, (size_t)(n * columns) * sizeof *value);
}

static void points_are(const struct vxc_frame *frame, int n, int first)
{
    const float *p = frame->data;
    ck_assert_int_eq(frame->sensor, VXC_POINTS);
    ck_assert_int_eq(frame->encoding, VXC_F32);
    ck_assert_uint_eq(frame->width, (unsigned)n);
    ck_assert_uint_eq(frame->height, 1);
    ck_assert_uint_eq(frame->data_bytes, (unsigned)n * 12);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            ck_assert_float_eq(p[3 * i + c], (float)(first + i + 10 * c));
}

/* ------------------------------------------------------------------ KITTI */

/* Tr takes LiDAR axes (x forward, y left) to camera axes (x right, z forward) and moves by (0, -0.1, -0.3).
 */
static const char TR[] = "P0: 1 0 0 0 0 1 0 0 0 0 1 0\nTr: 0 -1 0 0 0 0 -1 -0.1 1 0 0 -0.3\n";

START_TEST(kitti)
{
    struct vxc_frame frame;
    write_raw("sequences/07/velodyne/000000.bin", 5, 4, 1);
    write_raw("sequences/07/velodyne/000001.bin", 6, 4, 2);
    write_raw("sequences/07/velodyne/000002.bin", 6, 4, 2);
    set_text("sequences/07/calib.txt", "%s", TR);
    set_text("sequences/07/times.txt", "0.000000e+00\n1.037359e-01\n2.073381e-01\n");
    /* the camera goes 2 m along its z, then turns left: about its -y by 90 degrees */
    set_text("poses/07.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 0 0 1 0 0 0 0 1 2\n0 0 -1 0 0 1 0 0 1 0 0 2\n");
    struct vxc_reader *r = set_open("sequences/07", NULL);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_KITTI);
    ck_assert_double_eq(vxc_reader_get_info(r)->sensing.min_range_m, 0.5);
    ck_assert_double_eq(vxc_reader_get_info(r)->sensing.max_range_m, 60);
    set_next(r, &frame);
    points_are(&frame, 5, 1);
    set_pose_is(&frame.pose, 0, 0, 0, 0, 0, 0, 1);
    set_next(r, &frame);
    points_are(&frame, 6, 2);
    ck_assert_int_eq(frame.stamp_ns, 103735900);
    set_pose_is(&frame.pose, 2, 0, 0, 0, 0, 0, 1); /* forward is the LiDAR's x */
    set_next(r, &frame);
    /* turned left about the camera, which sits 0.3 m before the LiDAR: the LiDAR swings to (2 + 0.3, -0.3) */
    set_pose_is(&frame.pose, 2.3, -0.3, 0, 0, 0, sqrt(0.5), sqrt(0.5));
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

START_TEST(kitti_traps)
{
    write_raw("velodyne/000000.bin", 5, 4, 1);
    set_bytes("velodyne/000001.bin", "123456789", 9);
    set_bytes("velodyne/000002.bin", "", 0);
    set_refuses("", NULL, VX_E_NOT_FOUND, "calib.txt is missing");
    set_text("calib.txt", "P0: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    set_refuses("", NULL, VX_E_INVALID, "no line 'Tr:'");
    set_text("calib.txt", "Tr: 1 2 3\n");
    set_refuses("", NULL, VX_E_INVALID, "12 numbers");
    set_text("calib.txt", "Tr: 2 0 0 0 0 1 0 0 0 0 1 0\n");
    set_refuses("", NULL, VX_E_INVALID, "Tr of");
    set_text("calib.txt", "%s", TR);
    set_refuses("", NULL, VX_E_NOT_FOUND, "give --poses FILE");
    set_text("mine.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 0 0 1 0 0 0 0 1 0\n");
    struct vxc_reader_options o = {.poses_path = set_path("mine.txt")};
    struct vxc_frame frame;
    struct vxc_reader *r = set_open("", &o);
    set_next(r, &frame);
    ck_assert_int_eq(frame.stamp_ns, 0);
    set_next_refused(r, VX_E_INVALID, "no whole number of points");
    set_next_refused(r, VX_E_INVALID, "no points");
    set_at_end(r);
    vxc_reader_close(r);
    set_text("times.txt", "0\n");
    set_refuses("", &o, VX_E_INVALID, "1 times for 3 frames");
    o = (struct vxc_reader_options){.format = VXC_KITTI};
    r = set_open("velodyne/000000.bin", &o); /* one sweep alone */
    set_next(r, &frame);
    points_are(&frame, 5, 1);
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

/* ------------------------------------------------------------------ PCD */

#define HEADER(fields, size, type, count, n, data)                                                           \
    "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS " fields "\nSIZE " size "\nTYPE " type  \
    "\nCOUNT " count "\nWIDTH " n "\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS " n "\nDATA " data "\n"

static void one_cloud(const char *name, int n, int first)
{
    struct vxc_frame frame;
    struct vxc_reader *r = set_open(name, NULL);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_PCD);
    set_next(r, &frame);
    points_are(&frame, n, first);
    set_at_end(r);
    vxc_reader_close(r);
}

static size_t append(uint8_t *out, size_t at, const void *data, size_t n)
{
    memcpy(out + at, data, n);
    return at + n;
}

START_TEST(pcd_ascii)
{
    struct vxc_frame frame;
    set_text("a.pcd", HEADER("intensity x y z normal", "4 4 4 4 4", "F F F F F", "1 1 1 1 3", "2",
                             "ascii") "0.5 1 11 21 0 0 1\r\n\n0.5 2 12 22 0 0 1\r\n");
    one_cloud("a.pcd", 2, 1);
    set_text("nan.pcd", HEADER("x y z", "4 4 4", "F F F", "1 1 1", "2", "ascii") "nan nan nan\n1 2 -inf\n");
    struct vxc_reader *r = set_open("nan.pcd", NULL);
    set_next(r, &frame);
    ck_assert(isnan(((const float *)frame.data)[0]));
    ck_assert(isinf(((const float *)frame.data)[5]));
    vxc_reader_close(r);
}
END_TEST

START_TEST(pcd_binary)
{
    uint8_t body[2 * 27];
    size_t at = 0;
    /* a double, a byte, and two more doubles as coordinates */
    for (int i = 0; i < 2; i++) {
        const double xyz[3] = {7 + i, 17 + i, 27 + i};
        at = append(body, at, &xyz[0], 8);
        at = append(body, at, "ab", 2);
        at = append(body, at, &xyz[1], 8);
        at = append(body, at, &xyz[2], 8);
        at = append(body, at, "c", 1);
    }
    char file[1024];
    const int n = snprintf(file, sizeof file,
                           HEADER("x tag y z ring", "8 1 8 8 1", "F U F F U", "1 2 1 1 1", "2", "binary"));
    memcpy(file + n, body, at);
    set_bytes("b.pcd", file, (size_t)n + at);
    one_cloud("b.pcd", 2, 7);
    set_bytes("cut.pcd", file, (size_t)n + at - 1);
    struct vxc_reader *r = set_open("cut.pcd", NULL);
    set_next_refused(r, VX_E_INVALID, "ends behind point 1 of 2");
    vxc_reader_close(r);
}
END_TEST

/* LZF of nothing but literals, and one with back references written by hand. */
START_TEST(pcd_compressed)
{
    uint8_t columns[2 * 16], packed[256], file[1024];
    float value[8];
    for (int c = 0; c < 4; c++) /* x, rgb, y, z: all of one, then all of the next */
        for (int i = 0; i < 2; i++)
            value[2 * c + i] = (float)(3 + i) + (c == 1 ? 1000.0f : c == 0 ? 0 : c == 2 ? 10.0f : 20.0f);
    memcpy(columns, value, sizeof columns);
    const int n = snprintf((char *)file, sizeof file,
                           HEADER("x rgb y z", "4 4 4 4", "F U F F", "1 1 1 1", "2", "binary_compressed"));
    packed[0] = 31;
    memcpy(packed + 1, columns, 32);
    uint32_t sizes[2] = {33, 32};
    size_t at = append(file, (size_t)n, sizes, 8);
    at = append(file, at, packed, 33);
    set_bytes("c.pcd", file, at);
    one_cloud("c.pcd", 2, 3);

    uint8_t out[64];
    const uint8_t repeat[] = {1, 'a', 'b', 0x60, 1, 0xe0, 3, 0}; /* "ab", 5 from 2 back, 12 from 1 back */
    ck_assert(vxc__lzf_expand(repeat, sizeof repeat, out, 19));
    ck_assert_mem_eq(out, "abababaaaaaaaaaaaaa", 19);
    ck_assert(!vxc__lzf_expand(repeat, sizeof repeat, out, 18));
    ck_assert(!vxc__lzf_expand(repeat, sizeof repeat, out, 20));
    for (size_t cut = 1; cut < sizeof repeat; cut++)
        ck_assert(!vxc__lzf_expand(repeat, cut, out, 19));
    ck_assert(!vxc__lzf_expand((const uint8_t[]){0x20, 0}, 2, out, 3)); /* before the beginning */
}
END_TEST

START_TEST(pcd_viewpoint_and_lists)
{
    struct vxc_frame frame;
    static const char head[] = "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\n";
    set_text("Scans/000008.pcd", "%sVIEWPOINT 1 2 3 0 1 0 0\nDATA ascii\n1 11 21\n",
             head); /* no POINTS, no COUNT */
    set_text("Scans/000010.pcd", "%sDATA ascii\n1 11 21\n", head);
    struct vxc_reader *r = set_open("", NULL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_notes, 1);
    set_next(r, &frame);
    points_are(&frame, 1, 1);
    set_pose_is(&frame.pose, 1, 2, 3, 1, 0, 0, 0); /* VIEWPOINT is w x y z */
    ck_assert_int_eq(frame.stamp_ns, 0);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 0, 0, 0, 0, 0, 0, 1);
    ck_assert_int_eq(frame.stamp_ns, 100000000);
    vxc_reader_close(r);
    set_text("times.txt", "1577837008.5992684\n1577837009.1991146\n");
    set_text("optimized_poses.txt", "1 0 0 7 0 1 0 8 0 0 1 9\n1 0 0 4 0 1 0 5 0 0 1 6\n");
    r = set_open("", NULL);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 7, 8, 9, 0, 0, 0, 1); /* the list, not VIEWPOINT */
    ck_assert_int_eq(frame.stamp_ns, 1577837008599268400);
    vxc_reader_close(r);
    set_text("tum.txt", "1577837009.19 1 1 1 0 0 0 1\n1577837008.60 2 2 2 0 0 0 1\n");
    struct vxc_reader_options o = {.poses_path = set_path("tum.txt")};
    r = set_open("", &o);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 2, 2, 2, 0, 0, 0, 1); /* by time */
    vxc_reader_close(r);
    ck_assert_int_eq(remove(set_path("times.txt")), 0);
    o.poses_path = set_path("tum.txt");
    r = set_open("", &o);
    set_next(r, &frame);
    set_pose_is(&frame.pose, 1, 1, 1, 0, 0, 0, 1); /* by order, with the list's times */
    ck_assert_int_eq(frame.stamp_ns, 1577837009190000000);
    vxc_reader_close(r);
}
END_TEST

START_TEST(pcd_bad_headers)
{
    static const struct {
        const char *text;
        vx_err err;
        const char *words;
    } bad[] = {
        {"# .PCD\nFIELDS x y\nSIZE 4 4\nTYPE F F\nCOUNT 1 1\nWIDTH 1\nHEIGHT 1\nDATA ascii\n1 2\n",
         VX_E_INVALID, "no fields x, y and z"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\nDATA ascii\n1 2 3\n", VX_E_INVALID,
         "same fields"},
        {"# .PCD\nFIELDS x y z\nSIZE 2 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\nDATA ascii\n1 2 3\n", VX_E_INVALID,
         "field x must be"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F I\nWIDTH 1\nHEIGHT 1\nDATA ascii\n1 2 3\n", VX_E_INVALID,
         "field z must be"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nDATA ascii\n1 2 3\n", VX_E_INVALID,
         "neither POINTS nor"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 2\nHEIGHT 2\nPOINTS 5\nDATA ascii\n",
         VX_E_INVALID, "is not WIDTH"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\nDATA zip\n", VX_E_INVALID,
         "DATA is malformed"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\n", VX_E_INVALID, "without DATA"},
        {"# .PCD\nHELLO\n", VX_E_INVALID, "no PCD header word"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH -1\nHEIGHT 1\nDATA ascii\n", VX_E_INVALID,
         "WIDTH is malformed"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nVIEWPOINT 0 0 0 0 0 0 0\nWIDTH 1\nHEIGHT 1\nDATA "
         "ascii\n1 2 3\n",
         VX_E_INVALID, "VIEWPOINT"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 3\nHEIGHT 1\nDATA ascii\n1 2 3\n4 5 6\n",
         VX_E_INVALID, "ends behind point 2"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\nDATA ascii\n1 2 three\n",
         VX_E_INVALID, "does not hold 3 numbers"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 900000000000\nHEIGHT 1\nDATA ascii\n1 2 3\n",
         VX_E_EXHAUSTED, "more than"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 5000000\nHEIGHT 1\nDATA binary\n1 2 3\n",
         VX_E_INVALID, "cut off"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 9\nHEIGHT 1\nDATA binary_compressed\n"
         "AAAABBBB12345678",
         VX_E_INVALID, "says 1111638594 bytes"},
        {"# .PCD\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 0\nHEIGHT 1\nDATA ascii\n", VX_E_INVALID,
         "no points"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_text("bad.pcd", "%s", bad[i].text);
        struct vxc_reader *r = set_open("bad.pcd", NULL);
        set_next_refused(r, bad[i].err, bad[i].words);
        set_at_end(r);
        vxc_reader_close(r);
    }
}
END_TEST

/* ------------------------------------------------------------------ raw float32 */

START_TEST(xyz32)
{
    struct vxc_frame frame;
    write_raw("derived/s_frame0.xyz32.bin", 3, 3, 1);
    struct vxc_reader *r = set_open("derived/s_frame0.xyz32.bin", NULL);
    set_next(r, &frame);
    points_are(&frame, 3, 1);
    set_pose_is(&frame.pose, 0, 0, 0, 0, 0, 0, 1);
    vxc_reader_close(r);
    write_raw("derived/s_frame1.xyz32.bin", 4, 3, 2);
    set_refuses("", NULL, VX_E_NOT_FOUND, "give --poses FILE");
    set_text("s_poses_kitti.txt", "1 0 0 1 0 1 0 2 0 0 1 3\nnan 0 0 4 0 1 0 5 0 0 1 6\n");
    for (int i = 0; i < 2; i++) { /* the folder, and the one with the clouds */
        r = set_open(i == 0 ? "" : "derived", NULL);
        ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_XYZ32);
        set_next(r, &frame);
        points_are(&frame, 3, 1);
        set_pose_is(&frame.pose, 1, 2, 3, 0, 0, 0, 1);
        set_next_refused(r, VX_E_INVALID,
                         "s_poses_kitti.txt line 2: the pose holds a number that is not finite");
        set_at_end(r);
        vxc_reader_close(r);
    }
}
END_TEST

START_TEST(xyz32_plain_endings)
{
    struct vxc_frame frame;
    const struct vxc_reader_options o = {.format = VXC_XYZ32};
    write_raw("2.bin", 3, 3, 2);
    write_raw("10.bin", 3, 3, 10);
    set_text("poses.txt", "0 0 0 0 0 0 1\n1 0 0 0 0 0 1\n");
    struct vxc_reader *r = set_open("", &o);
    set_next(r, &frame);
    points_are(&frame, 3, 2);
    set_next(r, &frame);
    points_are(&frame, 3, 10);
    set_pose_is(&frame.pose, 1, 0, 0, 0, 0, 0, 1);
    vxc_reader_close(r);
    set_refuses("", NULL, VX_E_NOT_FOUND, "is no known set"); /* *.bin alone says nothing */
}
END_TEST

/* ------------------------------------------------------------------ VXWL */

struct vxwl_header {
    char magic[8];
    uint32_t kind, n_frames, width, height;
    float numbers[4];
};

/* n whole frames of 3 x 2 pixels, pixel k of frame i = 1 + i + 0.1 k; the pose moves along x. */
static size_t make_vxwl(uint8_t *out, uint32_t kind, uint32_t n_frames, const float numbers[4])
{
    struct vxwl_header h = {.kind = kind, .n_frames = n_frames, .width = 3, .height = 2};
    memcpy(h.magic, "VXWL0001", 8);
    memcpy(h.numbers, numbers, sizeof h.numbers);
    size_t at = append(out, 0, &h, sizeof h);
    for (uint32_t i = 0; i < n_frames; i++) {
        const float pose[12] = {1, 0, 0, (float)i, 0, 1, 0, 0, 0, 0, 1, 0};
        float image[6];
        for (int k = 0; k < 6; k++)
            image[k] = 1 + (float)i + 0.1f * (float)k;
        at = append(out, at, pose, sizeof pose);
        at = append(out, at, image, sizeof image);
    }
    return at;
}

START_TEST(vxwl_depth)
{
    uint8_t file[1024];
    const float camera[4] = {525, 524, 1, 0.5f};
    struct vxc_frame frame;
    const size_t n = make_vxwl(file, 0, 3, camera);
    set_bytes("w.anything", file, n);
    struct vxc_reader *r = set_open("w.anything", NULL);
    ck_assert_int_eq(vxc_reader_get_info(r)->format, VXC_VXWL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_frames, 3);
    ck_assert_int_eq(vxc_reader_get_info(r)->sensing.sensor, VXC_DEPTH);
    ck_assert(isnan(vxc_reader_get_info(r)->sensing.no_return_value)); /* 0 is invalid, not "nothing there" */
    for (int i = 0; i < 3; i++) {
        set_next(r, &frame);
        ck_assert_double_eq(frame.fx, 525);
        ck_assert_double_eq(frame.fy, 524);
        ck_assert_double_eq(frame.cx, 1);
        ck_assert_double_eq(frame.cy, 0.5);
        ck_assert_int_eq(frame.encoding, VXC_F32);
        ck_assert_uint_eq(frame.width, 3);
        ck_assert_uint_eq(frame.height, 2);
        ck_assert_float_eq(((const float *)frame.data)[5], 1 + (float)i + 0.1f * 5);
        set_pose_is(&frame.pose, i, 0, 0, 0, 0, 0, 1);
        ck_assert_int_eq(frame.stamp_ns, (int64_t)i * 1000000000 / 30);
    }
    set_at_end(r);
    vxc_reader_close(r);
    const struct vxc_reader_options o = {.max_frames = 1};
    r = set_open("w.anything", &o);
    set_next(r, &frame);
    set_at_end(r);
    vxc_reader_close(r);
}
END_TEST

START_TEST(vxwl_lidar)
{
    uint8_t file[1024];
    const float beams[4] = {-0.4f, 0.1f, 0, 0};
    struct vxc_frame frame;
    set_bytes("w.vxwl", file, make_vxwl(file, 1, 2, beams));
    struct vxc_reader *r = set_open("w.vxwl", NULL);
    const struct vxc_sensing *sensing = &vxc_reader_get_info(r)->sensing;
    ck_assert_int_eq(sensing->sensor, VXC_RANGE);
    ck_assert_double_eq(sensing->no_return_value, 0);
    ck_assert(!sensing->invalid_zero);
    ck_assert_double_eq(sensing->max_range_m, 60);
    set_next(r, &frame);
    set_next(r, &frame);
    ck_assert_int_eq(frame.sensor, VXC_RANGE);
    ck_assert_int_eq(frame.stamp_ns, 100000000);
    ck_assert_float_eq(frame.elevation_rad[0], 0.1f);
    ck_assert_float_eq(frame.elevation_rad[1], -0.4f);
    ck_assert_double_eq(frame.first_azimuth_rad, -acos(-1));
    ck_assert_double_eq(frame.azimuth_step_rad, 2 * acos(-1) / 3);
    vxc_reader_close(r);
}
END_TEST

START_TEST(vxwl_cut_and_malformed)
{
    uint8_t file[1024];
    const float camera[4] = {525, 525, 1, 0.5f}, beams[4] = {0.4f, 0.1f, 0, 0}, broken[4] = {0, NAN, 1, 1};
    struct vxc_frame frame;
    const size_t n = make_vxwl(file, 0, 3, camera);
    set_bytes("cut.vxwl", file, n - 1);
    struct vxc_reader *r = set_open("cut.vxwl", NULL);
    ck_assert(strstr(vxc_reader_get_info(r)->note[0], "its header says 3 frames, it holds 2"));
    set_next(r, &frame);
    set_next(r, &frame);
    set_next_refused(r, VX_E_INVALID, "ends inside frame 2 of 3, which begins at byte 184");
    set_at_end(r);
    vxc_reader_close(r);
    float mirror = -1;
    memcpy(file + 40 + 72 + 40, &mirror, 4); /* frame 1, R[2][2] */
    set_bytes("pose.vxwl", file, n);
    r = set_open("pose.vxwl", NULL);
    set_next(r, &frame);
    set_next_refused(r, VX_E_INVALID, "mirror");
    set_next(r, &frame); /* the frame behind it is whole */
    ck_assert_float_eq(((const float *)frame.data)[0], 3);
    vxc_reader_close(r);
    set_bytes("short.vxwl", file, 39);
    set_refuses("short.vxwl", NULL, VX_E_INVALID, "does not begin with");
    set_bytes("kind.vxwl", file, make_vxwl(file, 2, 1, camera));
    set_refuses("kind.vxwl", NULL, VX_E_INVALID, "kind 2");
    set_bytes("beams.vxwl", file, make_vxwl(file, 1, 1, beams));
    set_refuses("beams.vxwl", NULL, VX_E_INVALID, "make no LiDAR");
    set_bytes("camera.vxwl", file, make_vxwl(file, 0, 1, broken));
    set_refuses("camera.vxwl", NULL, VX_E_INVALID, "make no camera");
    (void)make_vxwl(file, 0, 1, camera);
    memset(file + 16, 0xff, 8);
    set_bytes("huge.vxwl", file, 200);
    set_refuses("huge.vxwl", NULL, VX_E_INVALID, "cannot be read");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lidar sets");
    tcase_add_test(tests, kitti);
    tcase_add_test(tests, kitti_traps);
    tcase_add_test(tests, pcd_ascii);
    tcase_add_test(tests, pcd_binary);
    tcase_add_test(tests, pcd_compressed);
    tcase_add_test(tests, pcd_viewpoint_and_lists);
    tcase_add_test(tests, pcd_bad_headers);
    tcase_add_test(tests, xyz32);
    tcase_add_test(tests, xyz32_plain_endings);
    tcase_add_test(tests, vxwl_depth);
    tcase_add_test(tests, vxwl_lidar);
    tcase_add_test(tests, vxwl_cut_and_malformed);
    return set_run(tests);
}
