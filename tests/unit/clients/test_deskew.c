/* Scans whose points have times: which poses they get, in which forms times come, and what goes without. */
#include "set_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 };

/* A scan of N points with a last field of this name, type and size; column: its words. */
static void scan(const char *name, const char *field, char type, int size, const char *const column[N])
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "VERSION .7\nFIELDS x y z %s\nSIZE 4 4 4 %d\nTYPE F F F %c\nCOUNT 1 1 1 1\nWIDTH %d\n"
                     "HEIGHT 1\nPOINTS %d\nDATA ascii\n",
                     field, size, type, N, N);
    for (int i = 0; i < N; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%d 1 2 %s\n", i, column[i]);
    set_bytes(name, text, (size_t)n);
}

/* The same in bytes; data: N items of `size` bytes.  compressed: column by column, as LZF literals. */
static void scan_binary(const char *name, char type, int size, const void *data, bool compressed)
{
    uint8_t file[1024], rows[N * 20];
    int n =
        snprintf((char *)file, sizeof file,
                 "FIELDS x t y z\nSIZE 4 %d 4 4\nTYPE F %c F F\nCOUNT 1 1 1 1\nWIDTH %d\nHEIGHT 1\nDATA %s\n",
                 size, type, N, compressed ? "binary_compressed" : "binary");
    const size_t stride = 12 + (size_t)size, all = N * stride;
    for (size_t i = 0; i < N; i++) {
        const float p[3] = {(float)i, 1, 2};
        const uint8_t *t = (const uint8_t *)data + i * (size_t)size;
        memcpy(compressed ? rows + 4 * i : rows + i * stride, &p[0], 4);
        memcpy(compressed ? rows + 4 * N + i * (size_t)size : rows + i * stride + 4, t, (size_t)size);
        for (size_t k = 1; k < 3; k++)
            memcpy(compressed ? rows + 4 * N * k + (size_t)size * N + 4 * i
                              : rows + i * stride + 4 * k + (size_t)size,
                   &p[k], 4);
    }
    if (compressed) {
        const uint32_t sizes[2] = {(uint32_t)(all + (all + 31) / 32), (uint32_t)all};
        memcpy(file + n, sizes, 8);
        n += 8;
    }
    for (size_t at = 0; at < all; at += 32) {
        const size_t run = all - at < 32 ? all - at : 32;
        if (compressed)
            file[n++] = (uint8_t)(run - 1);
        memcpy(file + n, rows + at, run);
        n += (int)run;
    }
    set_bytes(name, file, (size_t)n);
}

static const char *const TENTHS[N] = {"0", "0.03", "0.06", "0.09"};

/* The next scan has these poses (x = seconds of the clock) and these times. */
static void next_is(struct vxc_reader *r, int n_path, const double *seconds, const int32_t *time_ns)
{
    struct vxc_frame f;
    set_next(r, &f);
    ck_assert_int_eq((int)f.n_path, n_path);
    for (int i = 0; i < n_path; i++) {
        const int64_t ns = llround(seconds[i] * 1e9);
        ck_assert_int_eq(f.path[i].offset_ns, ns - f.stamp_ns);
        set_pose_is(&f.path[i].pose, seconds[i], 0, 0, 0, 0, 0, 1);
    }
    ck_assert((f.time_ns != NULL) == (n_path > 0));
    for (int i = 0; i < N && time_ns; i++)
        ck_assert_msg(f.time_ns[i] == time_ns[i], "point %d: %d", i, f.time_ns[i]);
}

/* Poses of a list at these times, x = time. */
static void poses_at(const char *name, int n, const double *seconds)
{
    char text[8192];
    int at = 0;
    for (int i = 0; i < n; i++)
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "%.6f %.6f 0 0 0 0 0 1\n", seconds[i], seconds[i]);
    set_bytes(name, text, (size_t)at);
}

static const int32_t NS[N] = {0, 30000000, 60000000, 90000000};

/* Every form of the times, against one trajectory. */
START_TEST(ascii_forms)
{
    static const struct {
        const char *field;
        char type;
        int size;
        const char *column[N];
    } forms[] = {{"t", 'U', 4, {"0", "30000000", "60000000", "90000000"}},
                 {"time", 'F', 4, {"0", "0.03", "0.06", "0.09"}},
                 {"time_offset", 'I', 4, {"0", "30000000", "60000000", "90000000"}},
                 {"offset_time", 'U', 8, {"0", "30000000", "60000000", "90000000"}},
                 {"timestamp", 'F', 8, {"100.0", "100.03", "100.06", "100.09"}},
                 {"timestamp", 'F', 8, {"1e2", "1.0003e2", "100.06", "100.09"}}};
    static const double at[] = {99.95, 100, 100.02, 100.1, 100.2};
    poses_at("list.txt", 5, at);
    set_text("times.txt", "100.0\n");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct vxc_reader_options o = {.poses_path = set_path("list.txt"), .deskew = VXC_DESKEW_ON};
        scan("a.pcd", forms[i].field, forms[i].type, forms[i].size, forms[i].column);
        struct vxc_reader *r = set_open("", &o);
        struct vxc_frame f;
        set_next(r, &f);
        ck_assert_msg(f.n_path == 3, "form %zu: %u poses", i, f.n_path);
        for (int k = 0; k < N; k++)
            ck_assert_msg(abs(f.time_ns[k] - NS[k]) < 10, "form %zu: point %d at %d", i, k, f.time_ns[k]);
        ck_assert_uint_eq(vxc_reader_get_info(r)->n_deskewed, 1);
        vxc_reader_close(r);
    }
}
END_TEST

START_TEST(binary_forms)
{
    static const double at[] = {1600000000, 1600000000.5};
    static const uint32_t u4[N] = {0, 30000000, 60000000, 90000000};
    static const float f4[N] = {0, 0.03f, 0.06f, 0.09f};
    static const double f8[N] = {1600000000, 1600000000.03, 1600000000.06, 1600000000.09};
    static const double clock[N] = {1.6e18, 1.60000000003e18, 1.60000000006e18, 1.60000000009e18};
    static const uint64_t u8[N] = {1600000000000000000u, 1600000000030000000u, 1600000000060000000u,
                                   1600000000090000000u};
    static const struct {
        char type;
        int size;
        const void *data;
    } forms[] = {{'U', 4, u4},    {'I', 4, u4}, {'F', 4, f4}, {'F', 8, f8},
                 {'F', 8, clock}, {'U', 8, u8}, {'I', 8, u8}};
    poses_at("list.txt", 2, at);
    set_text("times.txt", "1600000000\n");
    for (size_t i = 0; i < 2 * sizeof forms / sizeof *forms; i++) {
        const struct vxc_reader_options o = {.poses_path = set_path("list.txt"), .deskew = VXC_DESKEW_ON};
        scan_binary("a.pcd", forms[i / 2].type, forms[i / 2].size, forms[i / 2].data, i & 1);
        struct vxc_reader *r = set_open("", &o);
        struct vxc_frame f;
        set_next(r, &f);
        ck_assert_uint_eq(f.n_path, 2);
        ck_assert_int_eq(f.path[0].offset_ns, 0);
        ck_assert_int_eq(f.path[1].offset_ns, 500000000);
        for (int k = 0; k < N; k++) {
            ck_assert_msg(abs(f.time_ns[k] - NS[k]) < 300, "form %zu: point %d at %d", i, k, f.time_ns[k]);
            ck_assert(((const float *)f.data)[3 * k] == (float)k && ((const float *)f.data)[3 * k + 2] == 2);
        }
        vxc_reader_close(r);
    }
}
END_TEST

/* The poses round a scan; what has none goes rigid and is counted, or is refused. */
START_TEST(choice)
{
    static const double at[] = {0.09, 0.3, 0.05, 0.2, 0.1, 0.12, 0.12, 3, 3.05, 3.2}; /* in no order */
    static const double first[] = {0.1, 0.12, 0.2}, second[] = {0.2, 0.3};
    char list[512];
    struct vxc_reader_options o = {.poses_path = list};
    snprintf(list, sizeof list, "%s", set_path("list.txt"));
    poses_at("list.txt", 10, at);
    set_text("times.txt", "0.1\n0.2\n0.04\n0.3\n3.19\n");
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.pcd", i);
        scan(name, "time", 'F', 8, TENTHS);
    }
    for (int on = 0; on < 2; on++) {
        o.deskew = on ? VXC_DESKEW_ON : VXC_DESKEW_AUTO;
        struct vxc_reader *r = set_open("", &o);
        const struct vxc_reader_info *info = vxc_reader_get_info(r);
        next_is(r, 3, first, NS);
        next_is(r, 2, second, NS);
        if (on) {
            set_next_refused(r, VX_E_NOT_FOUND,
                             "2.pcd cannot be de-skewed: its first point is 0.010 s before");
            set_next_refused(r, VX_E_NOT_FOUND, "there is no pose for 2.700 s within it");
            set_next_refused(r, VX_E_NOT_FOUND, "its last point is 0.080 s behind the last pose");
        } else {
            for (int i = 0; i < 3; i++)
                next_is(r, 0, NULL, NULL);
            ck_assert_uint_eq(info->n_rigid, 3);
            ck_assert_ptr_nonnull(strstr(info->rigid_why, "2.pcd: its first point is 0.010 s before"));
        }
        ck_assert_uint_eq(info->n_deskewed, 2);
        vxc_reader_close(r);
    }
    o.deskew = VXC_DESKEW_OFF;
    struct vxc_reader *r = set_open("", &o);
    next_is(r, 0, NULL, NULL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_deskewed + vxc_reader_get_info(r)->n_rigid, 0);
    vxc_reader_close(r);
}
END_TEST

/* Poses without times of their own have those of the scans. */
START_TEST(poses_of_the_scans)
{
    static const double both[] = {0.1, 0.2};
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.pcd", i);
        scan(name, "time", 'F', 4, TENTHS);
    }
    set_text("poses.txt", "1 0 0 .1 0 1 0 0 0 0 1 0\n1 0 0 .2 0 1 0 0 0 0 1 0\n1 0 0 .3 0 1 0 0 0 0 1 0\n");
    struct vxc_reader *r = set_open("", NULL); /* when, nobody says */
    for (int i = 0; i < 3; i++)
        next_is(r, 0, NULL, NULL);
    ck_assert_uint_eq(vxc_reader_get_info(r)->n_rigid, 3);
    ck_assert_ptr_nonnull(strstr(vxc_reader_get_info(r)->rigid_why, "the poses have no times"));
    vxc_reader_close(r);
    set_text("times.txt", "0.1\n0.2\n0.3\n");
    r = set_open("", NULL);
    next_is(r, 2, both, NULL);
    vxc_reader_close(r);
    const struct vxc_reader_options on = {.deskew = VXC_DESKEW_ON};
    set_bytes("a.xyz32", "123456789abc", 12);
    set_refuses("a.xyz32", &on, VX_E_INVALID, "a set of xyz32 has no times for its points");
    scan("0.pcd", "intensity", 'F', 4, TENTHS);
    r = set_open("", &on);
    set_next_refused(r, VX_E_NOT_FOUND, "its points have no times");
    vxc_reader_close(r);
}
END_TEST

/* Points that are no readings may have any time; those that are need one. */
START_TEST(odd_times)
{
    static const double at[] = {99, 100, 100.5};
    static const char *const odd[N] = {"nan", "0.03", "0.06", "0.09"}, *const same[N] = {"5", "5", "5", "5"},
                             *const far[N] = {"0", "1", "2", "2.5"},
                             *const milli[N] = {"0", "30", "60", "90"},
                             *const huge[N] = {"1e300", "0", "0", "1"},
                             *const clock[N] = {"7", "8", "-1e17", "9"};
    static const struct {
        const char *const *column;
        const char *words;
    } cases[] = {{odd, "point 0 has no time"},
                 {same, "all points have the same time"},
                 {far, "from 0.000 to 2.500 s after its stamp"},
                 {milli, "from -100.000 to -10.000 s"},
                 {huge, "point 0 has no time"},
                 {clock, "s after its stamp; 2 s on either side"}};
    char list[512];
    const struct vxc_reader_options on = {.poses_path = list, .deskew = VXC_DESKEW_ON};
    snprintf(list, sizeof list, "%s", set_path("list.txt"));
    poses_at("list.txt", 3, at);
    set_text("times.txt", "100\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scan("a.pcd", "time", 'F', 8, cases[i].column);
        struct vxc_reader *r = set_open("", &on);
        set_next_refused(r, VX_E_INVALID, cases[i].words);
        vxc_reader_close(r);
    }
    set_text("a.pcd",
             "FIELDS x y z t\nSIZE 4 4 4 8\nTYPE F F F F\nCOUNT 1 1 1 1\nWIDTH 4\nHEIGHT 1\nDATA ascii\n"
             "nan nan nan 0\n1 1 1 100.01\n0 0 0 7e7\n1 2 3 100.2\n");
    struct vxc_reader *r = set_open("", &on);
    struct vxc_frame f;
    set_next(r, &f);
    ck_assert_uint_eq(f.n_path, 2);
    ck_assert_int_eq(f.time_ns[0], f.time_ns[1]);
    ck_assert_int_eq(f.time_ns[2], f.time_ns[1]);
    ck_assert(f.time_ns[1] >= 9999990 && f.time_ns[3] >= 199999990 && f.time_ns[3] <= 200000010);
    vxc_reader_close(r);
}
END_TEST

/* Of a hundred poses 64 are sent, the first and the last among them. */
START_TEST(many_poses)
{
    double at[120];
    struct vxc_frame f;
    for (int i = 0; i < 120; i++)
        at[i] = 0.99 + 0.001 * i;
    poses_at("list.txt", 120, at);
    set_text("times.txt", "1\n");
    scan("a.pcd", "time", 'F', 8, TENTHS);
    const struct vxc_reader_options on = {.poses_path = set_path("list.txt"), .deskew = VXC_DESKEW_ON};
    struct vxc_reader *r = set_open("", &on);
    set_next(r, &f);
    ck_assert_uint_eq(f.n_path, VXC_MAX_POSES);
    ck_assert_int_le(f.path[0].offset_ns, 0);
    ck_assert_int_ge(f.path[VXC_MAX_POSES - 1].offset_ns, 90000000);
    for (int i = 1; i < VXC_MAX_POSES; i++)
        ck_assert_int_gt(f.path[i].offset_ns, f.path[i - 1].offset_ns);
    vxc_reader_close(r);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("deskew");
    tcase_add_test(tests, ascii_forms);
    tcase_add_test(tests, binary_forms);
    tcase_add_test(tests, choice);
    tcase_add_test(tests, poses_of_the_scans);
    tcase_add_test(tests, odd_times);
    tcase_add_test(tests, many_poses);
    return set_run(tests);
}
