/* Colour images beside depth images: which belongs to which, what becomes of damaged ones. */
#include "set_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next frame has the colours of set_rgb8 with this base. */
static void next_is(struct vxc_reader *r, uint8_t base)
{
    struct vxc_frame frame;
    set_next(r, &frame);
    ck_assert_ptr_nonnull(frame.colour);
    for (uint32_t i = 0; i < frame.width * frame.height; i++) {
        ck_assert_uint_eq(frame.colour[3 * i], base + i % frame.width);
        ck_assert_uint_eq(frame.colour[3 * i + 1], base + 10 * (i / frame.width));
        ck_assert_uint_eq(frame.colour[3 * i + 2], base);
    }
}

static void next_has_none(struct vxc_reader *r)
{
    struct vxc_frame frame;
    set_next(r, &frame);
    ck_assert_ptr_null(frame.colour);
}

static void scenes7_frame(int i, const char *end, uint8_t base)
{
    char name[64];
    set_scenes7("", i);
    snprintf(name, sizeof name, "frame-%06d%s", i, end);
    if (end[0])
        set_rgb8(name, 4, 3, base);
}

START_TEST(scenes7)
{
    scenes7_frame(0, ".color.png", 10);
    scenes7_frame(1, "", 0);
    scenes7_frame(2, ".color.png", 30);
    struct vxc_reader *r = set_open("", NULL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_colours, 2);
    next_has_none(r); /* they were not asked for */
    vxc_reader_close(r);
    r = set_open("", NULL);
    vxc_reader_use_colour(r, true);
    next_is(r, 10);
    next_has_none(r);
    next_is(r, 30);
    set_at_end(r);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_colours_lost, 0);
    vxc_reader_close(r);
}
END_TEST

/* The depth of a frame whose colours are damaged is as good as ever. */
START_TEST(damaged)
{
    static const char jpeg[] = "\xff\xd8\xff\xe0 and no more of it";
    scenes7_frame(0, ".color.jpg", 10);
    scenes7_frame(1, ".color.jpg", 20);
    set_rgb8("frame-000001.color.jpg", 5, 3, 20); /* of another size */
    scenes7_frame(2, "", 0);
    set_bytes("frame-000002.color.jpg", jpeg, sizeof jpeg);
    scenes7_frame(3, "", 0);
    set_bytes("frame-000003.color.jpg", "", 0);
    scenes7_frame(4, "", 0);
    set_text("frame-000004.color.jpg", "no picture at all");
    scenes7_frame(5, "", 0);
    set_bytes("frame-000005.color.jpg", "\x89PNG\r\n\x1a\n", 8);
    scenes7_frame(6, ".color.jpg", 60);
    struct vxc_reader *r = set_open("", NULL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_colours, 7);
    vxc_reader_use_colour(r, true);
    next_is(r, 10);
    for (int i = 1; i < 6; i++)
        next_has_none(r);
    next_is(r, 60);
    set_at_end(r);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_colours_lost, 5);
    ck_assert_ptr_nonnull(
        strstr(vxc_reader_get_info(r)->colour_why, "is 5 x 3 px and its depth image 4 x 3"));
    vxc_reader_close(r);
}
END_TEST

/* A first frame without an image says nothing of the others, and endings may be mixed. */
START_TEST(first_is_missing)
{
    scenes7_frame(0, "", 0);
    scenes7_frame(1, ".color.png", 20);
    scenes7_frame(2, "", 0);
    scenes7_frame(3, ".color.jpg", 40); /* a PNG by its bytes */
    struct vxc_reader *r = set_open("", NULL);
    const struct vxc_reader_info *info = vxc_reader_get_info(r);
    ck_assert(info->n_colours == 2 && info->n_colours_missing == 2);
    ck_assert_str_eq(info->colour_missing, "frame-000000.depth.png");
    vxc_reader_use_colour(r, true);
    next_has_none(r);
    next_is(r, 20);
    next_has_none(r);
    next_is(r, 40);
    ck_assert_uint_eq(info->n_colours_lost, 0);
    vxc_reader_close(r);
}
END_TEST

/* What is sound but not read is called that. */
START_TEST(strange_jpegs)
{
    /* Heads of 4 x 3 px: SOI, SOF0 with n components, SOS. */
    enum { PRECISION = 6, N_BYTES = 2 + 2 + 20 + 2 + 14 };
    static const uint8_t head[N_BYTES] = {0xff, 0xd8, 0xff, 0xc0, 0, 20,   8, 0, 3,    0, 4,    4,    1, 0x11,
                                          0,    2,    0x11, 0,    3, 0x11, 0, 4, 0x11, 0, 0xff, 0xda, 0, 14,
                                          4,    1,    0,    2,    0, 3,    0, 4, 0,    0, 63,   0};
    uint8_t bytes[N_BYTES];
    static const char *const words[] = {"four printing colours (CMYK)", "is not read"};
    for (int i = 0; i < 2; i++) {
        memcpy(bytes, head, sizeof bytes);
        bytes[PRECISION] = i ? 12 : 8;
        scenes7_frame(0, "", 0);
        set_bytes("frame-000000.color.jpg", (const char *)bytes, sizeof bytes);
        struct vxc_reader *r = set_open("", NULL);
        vxc_reader_use_colour(r, true);
        next_has_none(r);
        const struct vxc_reader_info *info = vxc_reader_get_info(r);
        ck_assert_uint_eq(info->n_colours_lost, 1);
        if (strstr(info->colour_why, "without libjpeg"))
            printf("SKIP: a build without libjpeg says only that\n");
        else
            ck_assert_msg(strstr(info->colour_why, words[i]) != NULL, "%s", info->colour_why);
        vxc_reader_close(r);
    }
}
END_TEST

/* The nearest in time, within 0.02 s; and rows that run upwards are turned like those of the depth. */
START_TEST(tum)
{
    const struct vxc_reader_options o = {.has_intrinsics = true, .intrinsics = {500, 500, 2, 1}},
                                    up = {.has_intrinsics = true, .intrinsics = {500, -500, 2, 1}};
    struct vxc_frame frame;
    set_text("depth.txt", "1.00 d/a.png\n1.10 d/b.png\n1.20 d/c.png\n1.30 d/e.png\n");
    set_text("rgb.txt",
             "# colours\n0.99 c/1.png\n1.012 c/2.png\n1.111 c/3.png\nno line of a list\n1.17 c/4.png\n"
             "1.2999 c/5.png\n");
    set_text("groundtruth.txt",
             "1.00 0 0 0 0 0 0 1\n1.10 0 0 0 0 0 0 1\n1.20 0 0 0 0 0 0 1\n1.30 0 0 0 0 0 0 1\n");
    set_png16("d/a.png", 4, 3, 1000);
    set_png16("d/b.png", 4, 3, 1000);
    set_png16("d/c.png", 4, 3, 1000);
    set_png16("d/e.png", 4, 3, 1000);
    for (int i = 1; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "c/%d.png", i);
        set_rgb8(name, 4, 3, (uint8_t)(40 * i));
    }
    struct vxc_reader *r = set_open("", &o);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_colours, 3);
    vxc_reader_use_colour(r, true);
    next_is(r, 40);
    next_is(r, 120);
    next_has_none(r);
    next_is(r, 200);
    vxc_reader_close(r);
    r = set_open("", &up);
    vxc_reader_use_colour(r, true);
    set_next(r, &frame);
    ck_assert_ptr_nonnull(frame.colour);
    ck_assert_uint_eq(frame.colour[1], 40 + 20); /* green of the last row */
    ck_assert_uint_eq(((const uint16_t *)frame.data)[0], 1020);
    vxc_reader_close(r);
}
END_TEST

START_TEST(other_layouts)
{
    struct vxc_reader *r;
    set_png16("rep/results/depth000000.png", 4, 3, 1000);
    set_rgb8("rep/results/frame000000.png", 4, 3, 50);
    set_text("rep/traj.txt", "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1\n");
    const struct vxc_reader_options o = {.has_intrinsics = true, .intrinsics = {600, 600, 2, 1}};
    r = set_open("rep", &o);
    vxc_reader_use_colour(r, true);
    next_is(r, 50);
    vxc_reader_close(r);
    set_png16("red/depth/00000.png", 4, 3, 1000);
    set_rgb8("red/rgb/00000.png", 4, 3, 60);
    set_text("red/odometry.log", "0 0 1\n%s", SET_IDENTITY);
    r = set_open("red", NULL);
    vxc_reader_use_colour(r, true);
    next_is(r, 60);
    vxc_reader_close(r);
    set_pgm16("slam/depth/1.pgm", 4, 3, 1000);
    set_rgb8("slam/color/1.png", 4, 3, 70);
    set_text("slam/pose.txt", "0 0 0 0 0 0 1\n");
    r = set_open("slam", NULL);
    vxc_reader_use_colour(r, true);
    next_is(r, 70);
    vxc_reader_close(r);
}
END_TEST

/* KITTI's points bring their reflectance. */
START_TEST(kitti)
{
    static const float points[2][4] = {{1, 2, 3, 0.25f}, {4, 5, 6, 0.75f}};
    struct vxc_frame frame;
    set_bytes("velodyne/000000.bin", points, sizeof points);
    set_text("calib.txt", "Tr: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    set_text("poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n");
    struct vxc_reader *r = set_open("", NULL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_colours, 1);
    ck_assert_double_eq(vxc_reader_get_info(r)->sensing.intensity_white, 1);
    vxc_reader_use_colour(r, true);
    set_next(r, &frame);
    ck_assert_ptr_null(frame.colour);
    ck_assert_ptr_nonnull(frame.intensity);
    ck_assert_float_eq(frame.intensity[1], 0.75f);
    vxc_reader_close(r);
    r = set_open("", NULL);
    set_next(r, &frame);
    ck_assert_ptr_null(frame.intensity);
    vxc_reader_close(r);
}
END_TEST

/* A recorded JPEG: the red cupboards of the kitchen are red, not blue. */
START_TEST(recorded)
{
    const char *data = set_recorded();
    char path[1024];
    struct vxc_frame frame;
    double sum[3] = {0, 0, 0};
    if (!data)
        return;
    snprintf(path, sizeof path, "%s/rgbd_7scenes_redkitchen_150", data);
    struct vxc_reader *r = set_open(path, NULL);
    if (vxc_reader_get_info(r)->n_colours == 0) {
        printf("SKIP: no colour images in %s\n", path);
        vxc_reader_close(r);
        return;
    }
    vxc_reader_use_colour(r, true);
    set_next(r, &frame);
    if (strstr(vxc_reader_get_info(r)->colour_why, "built without libjpeg")) {
        printf("SKIP: %s\n", vxc_reader_get_info(r)->colour_why);
        vxc_reader_close(r);
        return;
    }
    ck_assert_ptr_nonnull(frame.colour);
    for (uint32_t v = 150; v < 250; v++)
        for (uint32_t u = 60; u < 160; u++)
            for (uint32_t k = 0; k < 3; k++)
                sum[k] += frame.colour[3 * ((size_t)v * frame.width + u) + k] / 1e4;
    printf("cupboards: %.0f %.0f %.0f\n", sum[0], sum[1], sum[2]);
    ck_assert_double_gt(sum[0], 1.5 * sum[1]);
    ck_assert_double_gt(sum[0], 1.5 * sum[2]);
    vxc_reader_close(r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("colours");
    tcase_add_test(tests, scenes7);
    tcase_add_test(tests, damaged);
    tcase_add_test(tests, first_is_missing);
    tcase_add_test(tests, strange_jpegs);
    tcase_add_test(tests, tum);
    tcase_add_test(tests, other_layouts);
    tcase_add_test(tests, kitti);
    tcase_add_test(tests, recorded);
    return set_run(tests);
}
