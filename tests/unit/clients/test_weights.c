/* Weight images beside depth images: which belongs to which, what their values mean, what is refused. */
#include "set_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { W = 4, H = 3 };

static void two_frames(void)
{
    set_scenes7("", 0);
    set_scenes7("", 1);
}

static void set_pgm8(const char *name, int maximum, const uint8_t values[W * H])
{
    char file[32 + W * H];
    const int head = snprintf(file, sizeof file, "P5\n%d %d\n%d\n", W, H, maximum);
    memcpy(file + head, values, W * H);
    set_bytes(name, file, (size_t)head + W * H);
}

static struct vxc_reader *open_with(const char *pattern, double white)
{
    const struct vxc_reader_options o = {.weights = pattern, .weight_white = white};
    return set_open("", &o);
}

static void next_is(struct vxc_reader *r, const uint8_t values[W * H], double white)
{
    struct vxc_frame frame;
    set_next(r, &frame);
    ck_assert_ptr_nonnull(frame.weight);
    for (int i = 0; i < W * H; i++)
        ck_assert_msg(frame.weight[i] == (float)(values[i] / white), "pixel %d: %g", i,
                      (double)frame.weight[i]);
}

static const uint8_t A[W * H] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}, B[W * H] = {255, 254, 0, 1};

START_TEST(named_by_the_depth_image)
{
    two_frames();
    set_grey("w/frame-000000.png", W, H, 8, A, false);
    set_grey("w/frame-000001.png", W, H, 8, B, false);
    struct vxc_reader *r = open_with("w/*.png", 0);
    next_is(r, A, 255);
    next_is(r, B, 255);
    set_at_end(r);
    ck_assert_ptr_nonnull(
        strstr(vxc_reader_get_info(r)->note[vxc_reader_get_info(r)->n_notes - 1], "w/*.png"));
    vxc_reader_close(r);
    set_pgm8("conf000000.pgm", 255, A);
    set_pgm8("conf000001.pgm", 255, B);
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s", set_path("conf#.pgm")); /* an absolute path */
    r = open_with(pattern, 2);
    pattern[0] = 0; /* the reader has its own */
    next_is(r, A, 2);
    next_is(r, B, 2);
    vxc_reader_close(r);
    r = set_open("", NULL); /* not asked for */
    struct vxc_frame frame;
    set_next(r, &frame);
    ck_assert_ptr_null(frame.weight);
    vxc_reader_close(r);
}
END_TEST

/* Every depth of bits; the largest value is 1. */
START_TEST(any_bits)
{
    static const int bits[] = {1, 2, 4, 8};
    two_frames();
    for (int k = 0; k < 4; k++) {
        uint8_t values[W * H];
        const int most = (1 << bits[k]) - 1;
        for (int i = 0; i < W * H; i++)
            values[i] = (uint8_t)(i * most / (W * H - 1));
        set_grey("mask.png", W, H, bits[k], values, false);
        struct vxc_reader *r = open_with("mask.png", 0); /* one for all frames */
        next_is(r, values, most);
        next_is(r, values, most);
        vxc_reader_close(r);
        set_grey("mask.png", W, H, bits[k], values, true); /* what a picture calls transparent is a value */
        r = open_with("mask.png", 0);
        next_is(r, values, most);
        vxc_reader_close(r);
    }
    set_pgm8("mask.pgm", 15, A);
    struct vxc_reader *r = open_with("mask.pgm", 0);
    next_is(r, A, 15);
    vxc_reader_close(r);
    set_png16("mask.png", W, H, 60000);
    r = open_with("mask.png", 0);
    struct vxc_frame frame;
    set_next(r, &frame);
    ck_assert(frame.weight[0] == (float)(60000 / 65535.0) && frame.weight[W] == (float)(60010 / 65535.0));
    vxc_reader_close(r);
}
END_TEST

/* Rows that run upwards are turned like those of the depth. */
START_TEST(turned)
{
    const struct vxc_reader_options o = {
        .weights = "mask.pgm", .has_intrinsics = true, .intrinsics = {-500, -500, 2, 1}};
    struct vxc_frame frame;
    two_frames();
    set_pgm8("mask.pgm", 255, A);
    struct vxc_reader *r = set_open("", &o);
    for (int k = 0; k < 2; k++) {
        set_next(r, &frame);
        for (int i = 0; i < W * H; i++)
            ck_assert(frame.weight[i] == (float)(A[W * H - 1 - i] / 255.0));
    }
    vxc_reader_close(r);
}
END_TEST

START_TEST(refused)
{
    struct vxc_reader_options o = {.weights = "w/*.png"};
    two_frames();
    set_refuses("", &o, VX_E_NOT_FOUND, "frame-000000.png");
    set_grey("w/frame-000001.png", W, H, 8, B, false);
    struct vxc_reader *r = open_with("w/*.png", 0);
    set_next_refused(r, VX_E_NOT_FOUND, "w/frame-000000.png"); /* this one has none */
    next_is(r, B, 255);
    vxc_reader_close(r);
    set_rgb8("w/frame-000000.png", W, H, 3);
    set_grey("w/frame-000001.png", W + 1, H - 1, 8, A, false);
    r = open_with("w/*.png", 0);
    set_next_refused(r, VX_E_INVALID, "is a colour image; one channel of grey");
    set_next_refused(r, VX_E_INVALID, "is 5 x 2 px and its depth image 4 x 3");
    set_at_end(r);
    vxc_reader_close(r);
    set_bytes("w/frame-000000.png", "\x89PNG\r\n\x1a\n", 8);
    set_text("w/frame-000001.png", "P5\n4 3\n255\nshort");
    r = open_with("w/*.png", 0);
    set_next_refused(r, VX_E_INVALID, "weights: frame-000000.png is damaged");
    set_next_refused(r, VX_E_INVALID, "cut off in row 1 of 3");
    vxc_reader_close(r);
    o.weight_white = 0.5;
    set_refuses("", &o, VX_E_INVALID, "must be 1 to 1e9");
    o.weight_white = 255;
    o.weights = NULL;
    set_refuses("", &o, VX_E_INVALID, "without them it has no use");
    o.weights = "w/*.png";
    o.weight_white = 0;
    o.format = VXC_XYZ32;
    set_text("a.xyz32", "123456789abc");
    set_refuses("a.xyz32", &o, VX_E_INVALID, "only sets of depth images have them; this is xyz32");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("weights");
    tcase_add_test(tests, named_by_the_depth_image);
    tcase_add_test(tests, any_bits);
    tcase_add_test(tests, turned);
    tcase_add_test(tests, refused);
    return set_run(tests);
}
