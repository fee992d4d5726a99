/*
 * Damaged files: whole sets of every format are cut at every length, or get random bytes changed, and are
 * read to the end. Nothing may crash, read out of bounds (sanitizers see it), allocate without measure or go
 * on for ever.
 */
#include "set_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static const char *weights; /* pattern of the set's weight images */

/* What a frame says of its readings beside their values holds for a map. */
static void check_beside(const struct vxc_frame *f)
{
    for (uint32_t i = 0; f->weight && i < f->width * f->height; i++)
        ck_assert(f->weight[i] >= 0 && f->weight[i] <= 65535);
    for (uint32_t i = 1; i < f->n_path; i++)
        ck_assert_int_gt(f->path[i].offset_ns, f->path[i - 1].offset_ns);
    for (uint32_t i = 0; f->n_path > 0 && i < f->width; i++)
        ck_assert(f->time_ns[i] >= f->path[0].offset_ns && f->time_ns[i] <= f->path[f->n_path - 1].offset_ns);
}

/* Opens and reads everything; whatever is wrong must be told in words.  Returns the number of good frames. */
static unsigned read_all(const char *name, enum vxc_format format)
{
    struct vxc_reader_options o = {.format = format,
                                   .has_intrinsics = format != VXC_KITTI && format < VXC_PCD,
                                   .intrinsics = {5, 5, 1, 1},
                                   .max_frames = 50,
                                   .weights = weights};
    struct vxc_reader *r;
    struct vx_detail detail = {"", ""};
    unsigned good = 0;
    if (vxc_reader_open(set_path(name), &o, &r, &detail) != VX_OK) {
        ck_assert_str_ne(detail.text, "");
        return 0;
    }
    for (int i = 0; i < 100; i++) {
        struct vxc_frame frame;
        enum vxc_step step;
        vx_err why;
        detail.text[0] = '\0';
        ck_assert_int_eq(vxc_reader_next(r, &frame, &step, &why, &detail), VX_OK);
        if (step == VXC_STEP_END)
            break;
        ck_assert_int_lt(i, 60);
        if (step == VXC_STEP_REFUSED) {
            ck_assert_int_ne(why, VX_OK);
            ck_assert_str_ne(detail.text, "");
            continue;
        }
        /* touch what the frame promises */
        uint64_t sum = 0;
        for (uint64_t k = 0; k < frame.data_bytes; k += 61)
            sum += ((const uint8_t *)frame.data)[k];
        ck_assert_uint_lt(sum, UINT64_MAX);
        const uint64_t values = (uint64_t)frame.width * frame.height;
        ck_assert_uint_eq(frame.data_bytes, values * (frame.sensor == VXC_POINTS  ? 12
                                                      : frame.encoding == VXC_U16 ? 2
                                                                                  : 4));
        check_beside(&frame);
        good++;
    }
    vxc_reader_close(r);
    return good;
}

/* Reads a file of the set into memory. */
static uint8_t *load(const char *name, size_t *n)
{
    FILE *file = fopen(set_path(name), "rb");
    ck_assert_ptr_nonnull(file);
    uint8_t *bytes = malloc(65536);
    *n = fread(bytes, 1, 65536, file);
    ck_assert_uint_lt(*n, 65536);
    fclose(file);
    return bytes;
}

/* Every length of the file, then `rounds` files with a few bytes changed, inserted numbers among them. */
static void maul(const char *set, enum vxc_format format, const char *name, int rounds)
{
    static const char *const words[] = {"nan", "-inf", "1e999", "-1",        "99999999999",
                                        "0",   "#",    "\n",    "0x1p-1074", "\0\0"};
    size_t n;
    uint8_t *good = load(name, &n), *bad = malloc(n + 64);
    ck_assert_uint_gt(read_all(set, format), 0);
    const size_t step = n > 400 ? n / 200 : 1;
    for (size_t cut = 0; cut < n; cut += step) {
        set_bytes(name, good, cut);
        (void)read_all(set, format);
    }
    for (int round = 0; round < rounds; round++) {
        size_t length = n;
        memcpy(bad, good, n);
        for (uint32_t k = 0; k <= random_below(4); k++) {
            const size_t at = random_below((uint32_t)length);
            const char *word = words[random_below(sizeof words / sizeof *words)];
            const size_t w = strlen(word) + 1;
            switch (random_below(3)) {
            case 0:
                bad[at] = (uint8_t)random_below(256);
                break;
            case 1:
                bad[at] ^= (uint8_t)(1u << random_below(8));
                break;
            default:
                if (at + w < length)
                    memcpy(bad + at, word, w - 1);
            }
        }
        set_bytes(name, bad, length);
        (void)read_all(set, format);
    }
    set_bytes(name, good, n);
    ck_assert_uint_gt(read_all(set, format), 0);
    free(good);
    free(bad);
}

START_TEST(depth_sets)
{
    set_png16("s/frame-000000.depth.png", 9, 7, 100);
    set_text("s/frame-000000.pose.txt", "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n");
    set_text("s/camera-intrinsics.txt", "5 0 1\n0 5 1\n0 0 1\n");
    maul("s", VXC_7SCENES, "s/frame-000000.depth.png", 400);
    maul("s", VXC_7SCENES, "s/frame-000000.pose.txt", 200);
    maul("s", VXC_7SCENES, "s/camera-intrinsics.txt", 200);
    const uint8_t values[9 * 7] = {1, 0, 1, 0, 0, 1};
    weights = "w.png";
    for (int bits = 1; bits <= 8; bits *= 2) {
        set_grey("s/w.png", 9, 7, bits, values, bits == 2);
        maul("s", VXC_7SCENES, "s/w.png", 200);
    }
    set_text("s/w.png", "P5 9 7 255\n123456789012345678901234567890123456789012345678901234567890123");
    maul("s", VXC_7SCENES, "s/w.png", 200);
    weights = NULL;
    set_text("t/depth.txt", "# x\n1.5 d.png\n");
    set_text("t/groundtruth.txt", "1.5 0 0 0 0 0 0 1\n1.6 0 0 0 0 0 0 1\n");
    set_png16("t/d.png", 9, 7, 100);
    maul("t", VXC_TUM, "t/depth.txt", 200);
    maul("t", VXC_TUM, "t/groundtruth.txt", 200);
    set_png16("r/results/depth0.png", 9, 7, 100);
    set_text("r/traj.txt", "1 0 0 1 0 1 0 2 0 0 1 3 0 0 0 1\n");
    set_text("r/cam_params.json", "{\"camera\": {\"w\": 9, \"h\": 7, \"fx\": 5, \"fy\": 5, \"cx\": 1, "
                                  "\"cy\": 1, \"scale\": 6553.5, \"l\": [1, [2, {}]]}}");
    maul("r", VXC_REPLICA, "r/traj.txt", 200);
    maul("r", VXC_REPLICA, "r/cam_params.json", 400);
    set_png16("w/depth/0.png", 9, 7, 100);
    set_text("w/o.log", "0 0 1\n1 0 0 2\n0 1 0 2\n0 0 1 -0.3\n0 0 0 1\n");
    set_text("w/camera.json",
             "{\"width\": 9, \"height\": 7, \"intrinsic_matrix\": [5, 0, 0, 0, 5, 0, 1, 1, 1]}");
    maul("w", VXC_REDWOOD, "w/o.log", 200);
    maul("w", VXC_REDWOOD, "w/camera.json", 200);
    set_pgm16("b/depth/1.pgm", 9, 7, 100);
    set_text("b/pose.txt", "1 2 3 0 0 0 1\n");
    maul("b", VXC_SLAMBOOK, "b/depth/1.pgm", 400);
    maul("b", VXC_SLAMBOOK, "b/pose.txt", 200);
}
END_TEST

START_TEST(clouds)
{
    static const char head[] =
        "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z i\nSIZE 4 4 4 1\nTYPE F F F U\nCOUNT 1 1 1 2\n"
        "WIDTH 3\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 3\nDATA ";
    uint8_t body[64] = {0}, file[512];
    float points[12] = {1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0};
    set_text("a.pcd", "%sascii\n1 2 3 4 5\n1 2 3 4 5\nnan nan nan 0 0\n", head);
    maul("a.pcd", VXC_PCD, "a.pcd", 600);
    int n = snprintf((char *)file, sizeof file, "%sbinary\n", head);
    memcpy(file + n, body, 42);
    set_bytes("b.pcd", file, (size_t)n + 42);
    maul("b.pcd", VXC_PCD, "b.pcd", 600);
    n = snprintf((char *)file, sizeof file, "%sbinary_compressed\n", head);
    /* 42 zeros: one literal, then copies of it */
    const uint8_t packed[] = {8, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0xe0, 30, 0, 0x00, 0, 0};
    uint8_t lzf[32];
    memcpy(lzf, packed, 8);
    const uint8_t data[] = {1, 0, 0, 0xe0, 31, 0};
    memcpy(lzf + 8, data, sizeof data);
    lzf[0] = sizeof data;
    lzf[4] = 42;
    memcpy(file + n, lzf, 8 + sizeof data);
    set_bytes("c.pcd", file, (size_t)n + 8 + sizeof data);
    maul("c.pcd", VXC_PCD, "c.pcd", 1500);
    set_text("m/0.pcd",
             "FIELDS x y z t\nSIZE 4 4 4 8\nTYPE F F F F\nCOUNT 1 1 1 1\nWIDTH 4\nHEIGHT 1\nDATA ascii\n"
             "1 2 3 0.01\n1 2 3 0.02\nnan nan nan 7e70\n1 2 3 0.09\n");
    set_text("m/poses.txt", "1.5 0 0 0 0 0 0 1\n1.55 0 0 0 0 0 0 1\n1.6 1 0 0 0 0 0 1\n1.7 2 0 0 0 0 0 1\n");
    set_text("m/times.txt", "1.5\n");
    maul("m", VXC_PCD, "m/0.pcd", 600);
    maul("m", VXC_PCD, "m/poses.txt", 400);
    maul("m", VXC_PCD, "m/times.txt", 200);
    set_bytes("k/velodyne/0.bin", points, sizeof points);
    set_text("k/calib.txt", "Tr: 1 0 0 0 0 1 0 0 0 0 1 0\n");
    set_text("k/poses.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n");
    set_text("k/times.txt", "0.5\n");
    maul("k", VXC_KITTI, "k/velodyne/0.bin", 100);
    maul("k", VXC_KITTI, "k/calib.txt", 200);
    maul("k", VXC_KITTI, "k/poses.txt", 200);
    maul("k", VXC_KITTI, "k/times.txt", 200);
    set_bytes("x.xyz32.bin", points, sizeof points);
    maul("x.xyz32.bin", VXC_XYZ32, "x.xyz32.bin", 100);
}
END_TEST

START_TEST(vxwl)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        uint8_t file[512] = {0};
        const uint32_t numbers[4] = {kind, 3, 4, 3};
        const float camera[4] = {kind ? -0.4f : 5, kind ? 0.4f : 5, 1, 1}, one = 1;
        memcpy(file, "VXWL0001", 8);
        memcpy(file + 8, numbers, 16);
        memcpy(file + 24, camera, 16);
        for (int i = 0; i < 3; i++)
            for (int d = 0; d < 3; d++)
                memcpy(file + 40 + i * 96 + d * 20, &one, 4);
        set_bytes("w.vxwl", file, 40 + 3 * 96);
        maul("w.vxwl", VXC_VXWL, "w.vxwl", 1500);
    }
}
END_TEST

int main(void)
{
    const char *given = getenv("VOXELD_TEST_SEED");
    state = given ? strtoull(given, NULL, 0) : 42;
    printf("seed %llu (VOXELD_TEST_SEED)\n", (unsigned long long)state);
    TCase *tests = tcase_create("hostile files");
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, depth_sets);
    tcase_add_test(tests, clouds);
    tcase_add_test(tests, vxwl);
    return set_run(tests);
}
