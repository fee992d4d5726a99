/* Refusals of vx_frame_check with their field names, and the conversion of frames for the kernels. */
#include "core_test.h"
#include "frame_convert.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static float pixels[12 * 8], elevations[8];
static uint16_t raw[12 * 8];

static struct vx_frame good(enum vx_sensor sensor)
{
    struct vx_frame f = {.sensor = sensor, .n_poses = 1, .width = 12, .height = 8, .no_return_value = NAN};
    f.pose[0].rotation_xyzw[3] = 1;
    f.data = pixels;
    f.data_bytes = sizeof pixels;
    if (sensor == VX_DEPTH) {
        f.fx = f.fy = 10;
        f.cx = 6;
        f.cy = 4;
    } else if (sensor == VX_RANGE) {
        for (int i = 0; i < 8; i++)
            elevations[i] = 0.1f * (float)i - 0.3f;
        f.elevation_rad = elevations;
        f.azimuth_step_rad = 0.5;
    } else {
        f.width = 32;
        f.height = 1;
    }
    return f;
}

static void refused(const struct vx_frame *f, vx_err code, const char *field, const char *what)
{
    struct vx_detail detail = {0};
    vx_err err = vx_frame_check(f, &detail);
    ck_assert_msg(err == code, "%s: %s instead of %s", what, vx_err_name(err), vx_err_name(code));
    ck_assert_msg(!strcmp(detail.field, field), "%s: field %s instead of %s", what, detail.field, field);
    ck_assert_msg(strlen(detail.text) > 15, "%s: no words", what);
    ck_assert_int_eq(vx_frame_check(f, NULL), code);
}

#define REFUSE(sensor, change, field)                                                                        \
    do {                                                                                                     \
        struct vx_frame f = good(sensor);                                                                    \
        change;                                                                                              \
        refused(&f, VX_E_INVALID, field, #sensor ": " #change);                                              \
    } while (0)
#define ACCEPT(sensor, change)                                                                               \
    do {                                                                                                     \
        struct vx_frame f = good(sensor);                                                                    \
        struct vx_detail detail = {0};                                                                       \
        change;                                                                                              \
        ck_assert_msg(vx_frame_check(&f, &detail) == VX_OK, #sensor ": " #change ": %s", detail.text);       \
    } while (0)

START_TEST(poses)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (enum vx_sensor s = VX_DEPTH; s <= VX_RANGE; s++) {
        ACCEPT(s, (void)0);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++)
                REFUSE(s, f.pose[0].position_m[k] = bad[i], "pose.position_m");
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 4; k++)
                REFUSE(s, f.pose[0].rotation_xyzw[k] = bad[i], "pose.rotation_xyzw");
        REFUSE(s, f.pose[0].rotation_xyzw[3] = 0, "pose.rotation_xyzw");
        REFUSE(s, f.pose[0].rotation_xyzw[3] = 1.0011, "pose.rotation_xyzw");
        REFUSE(s, f.pose[0].rotation_xyzw[3] = 0.9989, "pose.rotation_xyzw");
        REFUSE(s, f.pose[0].rotation_xyzw[0] = 1e200, "pose.rotation_xyzw");
        ACCEPT(s, f.pose[0].rotation_xyzw[3] = 1.0009);
        ACCEPT(s, f.pose[0].rotation_xyzw[3] = -0.9991);
        REFUSE(s, f.n_poses = 0, "pose");
        REFUSE(s, f.n_poses = VX_MAX_POSES + 1, "pose");
        REFUSE(s, f.n_poses = UINT32_MAX, "pose");
        REFUSE(s, (f.n_poses = 2, f.pose[1] = f.pose[0], f.pose[1].position_m[1] = NAN), "pose.position_m");
    }
}
END_TEST

START_TEST(sizes_and_encodings)
{
    REFUSE(VX_DEPTH, f.sensor = (enum vx_sensor)3, "sensor");
    REFUSE(VX_DEPTH, f.sensor = (enum vx_sensor) - 1, "sensor");
    REFUSE(VX_DEPTH, f.encoding = (enum vx_encoding)2, "encoding");
    REFUSE(VX_POINTS, f.encoding = VX_U16, "encoding");
    REFUSE(VX_RANGE, f.encoding = VX_U16, "encoding");
    for (enum vx_sensor s = VX_DEPTH; s <= VX_RANGE; s++) {
        REFUSE(s, f.data = NULL, "data");
        REFUSE(s, f.data_bytes--, "data");
        REFUSE(s, f.data_bytes++, "data");
        REFUSE(s, f.data_bytes = 0, "data");
        REFUSE(s, f.data_bytes = UINT64_MAX, "data");
    }
    for (enum vx_sensor s = VX_DEPTH; s <= VX_RANGE; s += 2) {
        REFUSE(s, f.width = 0, "width");
        REFUSE(s, f.height = 0, "width");
        REFUSE(s, f.width = 16385, "width");
        REFUSE(s, f.height = UINT32_MAX, "width");
        REFUSE(s, (f.width = 16384, f.height = 16385), "width");
    }
    REFUSE(VX_POINTS, f.height = 2, "width");
    REFUSE(VX_POINTS, f.height = 0, "width");
    /* a voxel's accumulator counts 2^24 - 1 rays */
    REFUSE(VX_POINTS, (f.width = 1 << 24, f.data_bytes = 12ull << 24), "width");
    REFUSE(VX_RANGE, (f.width = 4096, f.height = 4096, f.data_bytes = 4ull << 24), "width");
    ACCEPT(VX_POINTS, (f.width = 0, f.data_bytes = 0, f.data = NULL));
    /* bytes are counted in 64 bits: 65536 x 65536 x 4 = 0 in 32 */
    REFUSE(VX_POINTS, (f.width = 1431655766, f.data_bytes = 8), "width");
    REFUSE(VX_DEPTH, f.encoding = VX_U16, "data");
    REFUSE(VX_DEPTH, (f.encoding = VX_U16, f.data = raw, f.data_bytes = sizeof raw), "units_per_m");
    ACCEPT(VX_DEPTH, (f.encoding = VX_U16, f.data = raw, f.data_bytes = sizeof raw, f.units_per_m = 1000));
    REFUSE(VX_DEPTH, (f.encoding = VX_U16, f.data = raw, f.data_bytes = sizeof raw, f.units_per_m = -1000),
           "units_per_m");
    REFUSE(VX_DEPTH, (f.encoding = VX_U16, f.data = raw, f.data_bytes = sizeof raw, f.units_per_m = INFINITY),
           "units_per_m");
    REFUSE(VX_DEPTH, (f.encoding = VX_U16, f.data = raw, f.data_bytes = sizeof raw, f.units_per_m = NAN),
           "units_per_m");
}
END_TEST

START_TEST(intrinsics)
{
    static const double bad[] = {0, -1, -500, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        REFUSE(VX_DEPTH, f.fx = bad[i], "fx");
        REFUSE(VX_DEPTH, f.fy = bad[i], "fy");
    }
    REFUSE(VX_DEPTH, f.cx = NAN, "cx");
    REFUSE(VX_DEPTH, f.cy = INFINITY, "cy");
    REFUSE(VX_DEPTH, f.cx = -1e7, "cx");
    REFUSE(VX_DEPTH, f.cy = 1e7, "cy");
    ACCEPT(VX_DEPTH, f.cx = -30); /* a crop of a larger image */
    ACCEPT(VX_DEPTH, (f.fx = 1e-3, f.fy = 1e5));
}
END_TEST

START_TEST(ranges)
{
    for (enum vx_sensor s = VX_DEPTH; s <= VX_RANGE; s++) {
        REFUSE(s, f.min_range_m = -1, "max_range_m");
        REFUSE(s, f.min_range_m = NAN, "max_range_m");
        REFUSE(s, f.min_range_m = INFINITY, "max_range_m");
        REFUSE(s, f.max_range_m = -1, "max_range_m");
        REFUSE(s, f.max_range_m = NAN, "max_range_m");
        REFUSE(s, f.max_range_m = INFINITY, "max_range_m");
        REFUSE(s, (f.min_range_m = 2, f.max_range_m = 2), "max_range_m");
        REFUSE(s, (f.min_range_m = 3, f.max_range_m = 2), "max_range_m");
        REFUSE(s, f.max_range_m = 0.05, "max_range_m"); /* below the default minimum */
        ACCEPT(s, (f.min_range_m = 0.01, f.max_range_m = 0.05));
    }
    REFUSE(VX_DEPTH, f.min_range_m = 8, "max_range_m"); /* the default maximum */
    ACCEPT(VX_DEPTH, f.min_range_m = 7.9);
    REFUSE(VX_POINTS, f.min_range_m = 60, "max_range_m");
    ACCEPT(VX_RANGE, f.min_range_m = 59);
}
END_TEST

START_TEST(range_images)
{
    REFUSE(VX_RANGE, f.elevation_rad = NULL, "elevation_rad");
    REFUSE(VX_RANGE, f.azimuth_step_rad = 0, "azimuth_step_rad");
    REFUSE(VX_RANGE, f.azimuth_step_rad = NAN, "azimuth_step_rad");
    REFUSE(VX_RANGE, f.azimuth_step_rad = INFINITY, "azimuth_step_rad");
    REFUSE(VX_RANGE, f.azimuth_step_rad = 0.53, "azimuth_step_rad"); /* 12 columns pass a turn */
    REFUSE(VX_RANGE, f.azimuth_step_rad = -0.53, "azimuth_step_rad");
    REFUSE(VX_RANGE, f.first_azimuth_rad = NAN, "first_azimuth_rad");
    REFUSE(VX_RANGE, f.first_azimuth_rad = -7, "first_azimuth_rad");
    ACCEPT(VX_RANGE, f.azimuth_step_rad = 6.283185307179586 / 12);
    ACCEPT(VX_RANGE, (f.azimuth_step_rad = -0.5, f.first_azimuth_rad = 6.28));
    REFUSE(VX_RANGE, elevations[3] = NAN, "elevation_rad");
    REFUSE(VX_RANGE, elevations[0] = -INFINITY, "elevation_rad");
    REFUSE(VX_RANGE, elevations[7] = 1.6f, "elevation_rad");
    REFUSE(VX_RANGE, elevations[3] = elevations[2], "elevation_rad");
    REFUSE(VX_RANGE, elevations[7] = elevations[6], "elevation_rad");
    REFUSE(VX_RANGE, elevations[1] = elevations[0], "elevation_rad");
    REFUSE(VX_RANGE, elevations[3] = 1, "elevation_rad");
    REFUSE(VX_RANGE, elevations[7] = -1, "elevation_rad");
    ACCEPT(VX_RANGE, {
        for (int i = 0; i < 8; i++)
            elevations[i] = -0.1f * (float)i;
    });
    ACCEPT(VX_RANGE, (f.height = 1, f.data_bytes = 48));
}
END_TEST

START_TEST(clean_depth)
{
    static const uint8_t mask[12 * 8];
    static float weights[12 * 8];
    REFUSE(VX_DEPTH, f.distortion[0] = NAN, "distortion");
    REFUSE(VX_DEPTH, f.distortion[4] = 1e3, "distortion");
    REFUSE(VX_DEPTH, f.edge_jump = -0.1, "edge_jump");
    REFUSE(VX_DEPTH, f.edge_jump = 1.5, "edge_jump");
    REFUSE(VX_DEPTH, f.edge_jump = NAN, "edge_jump");
    ACCEPT(VX_DEPTH, (f.distortion[1] = -0.2, f.edge_jump = 0.05, f.mask = mask));
    ACCEPT(VX_DEPTH, (f.weight = weights, f.mask = mask));
    for (int k = 0; k < 12 * 8; k += 95) { /* the first and the last pixel */
        static const float bad[] = {NAN, INFINITY, -INFINITY, -1, -1e-30f, 1.0001e6f, 1e38f};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            weights[k] = bad[i];
            REFUSE(VX_DEPTH, f.weight = weights, "weight");
        }
        weights[k] = k ? VX_MAX_WEIGHT : -0.0f;
    }
    ACCEPT(VX_DEPTH, f.weight = weights);
    for (enum vx_sensor s = VX_POINTS; s <= VX_RANGE; s++) {
        REFUSE(s, f.distortion[3] = 0.1, "distortion");
        REFUSE(s, f.edge_jump = 0.05, "edge_jump");
        REFUSE(s, f.mask = mask, "mask");
        REFUSE(s, f.weight = weights, "weight");
    }
}
END_TEST

/* ------------------------------------------------------------------ every number of a frame */

/* A double of struct vx_frame and what it may be. */
struct number {
    const char *name; /* the field that a refusal names */
    size_t offset;
    enum vx_sensor sensor;
    double least, most; /* of its size, where `either_sign` */
    bool either_sign, zero_too, any, u16, bright;
};
#define AT(member) offsetof(struct vx_frame, member)
static const struct number numbers[] = {
    {"fx", AT(fx), VX_DEPTH, .least = 1e-3, .most = 1e6},
    {"fy", AT(fy), VX_DEPTH, .least = 1e-3, .most = 1e6},
    {"cx", AT(cx), VX_DEPTH, .least = 0, .most = 1e6, .either_sign = true},
    {"cy", AT(cy), VX_DEPTH, .least = 0, .most = 1e6, .either_sign = true},
    {"units_per_m", AT(units_per_m), VX_DEPTH, .least = 1e-6, .most = 1e9, .u16 = true},
    {"distortion", AT(distortion[0]), VX_DEPTH, .least = 0, .most = 100, .either_sign = true},
    {"distortion", AT(distortion[1]), VX_DEPTH, .least = 0, .most = 100, .either_sign = true},
    {"distortion", AT(distortion[2]), VX_DEPTH, .least = 0, .most = 100, .either_sign = true},
    {"distortion", AT(distortion[3]), VX_DEPTH, .least = 0, .most = 100, .either_sign = true},
    {"distortion", AT(distortion[4]), VX_DEPTH, .least = 0, .most = 100, .either_sign = true},
    {"edge_jump", AT(edge_jump), VX_DEPTH, .least = 1e-3, .most = 1, .zero_too = true},
    {"max_range_m", AT(min_range_m), VX_DEPTH, .least = 0, .most = 7.99},
    {"max_range_m", AT(min_range_m), VX_POINTS, .least = 0, .most = 59.9},
    {"max_range_m", AT(min_range_m), VX_RANGE, .least = 0, .most = 59.9},
    {"max_range_m", AT(max_range_m), VX_DEPTH, .least = 0.101, .most = 1.7e308, .zero_too = true},
    {"max_range_m", AT(max_range_m), VX_POINTS, .least = 0.501, .most = 1.7e308, .zero_too = true},
    {"max_range_m", AT(max_range_m), VX_RANGE, .least = 0.501, .most = 1.7e308, .zero_too = true},
    {"no_return_value", AT(no_return_value), VX_DEPTH, .any = true},
    {"no_return_value", AT(no_return_value), VX_DEPTH, .any = true, .u16 = true},
    {"no_return_value", AT(no_return_value), VX_RANGE, .any = true},
    {"first_azimuth_rad", AT(first_azimuth_rad), VX_RANGE, .least = 0, .most = 6.283, .either_sign = true},
    {"azimuth_step_rad", AT(azimuth_step_rad), VX_RANGE, .least = 1e-6, .most = 0.5236, .either_sign = true},
    {"intensity_white", AT(intensity_white), VX_POINTS, .least = 1e-6, .most = 1e9, .bright = true},
    {"intensity_white", AT(intensity_white), VX_RANGE, .least = 1e-6, .most = 1e9, .bright = true},
    {"pose.position_m", AT(pose[0].position_m[0]), VX_DEPTH, .least = 0, .most = 1.7e308,
     .either_sign = true},
    {"pose.position_m", AT(pose[0].position_m[2]), VX_POINTS, .least = 0, .most = 1.7e308,
     .either_sign = true},
    {"pose.rotation_xyzw", AT(pose[0].rotation_xyzw[3]), VX_RANGE, .least = 0.9991, .most = 1.0009,
     .either_sign = true},
    {"pose.rotation_xyzw", AT(pose[0].rotation_xyzw[1]), VX_DEPTH, .least = 0, .most = 0.0447,
     .either_sign = true},
};

static bool allowed(const struct number *n, double x)
{
    double size = n->either_sign ? fabs(x) : x;
    return n->any || (n->zero_too && x == 0) || (size >= n->least && size <= n->most);
}

/* What it may not be is refused by its name; with what it may be the map takes the frame or says why not. */
static void try_number(struct vx_map *map, const struct number *n, double x)
{
    struct vx_frame f = good(n->sensor);
    struct vx_frame_result result;
    struct vx_detail detail = {0};
    char what[96];
    vx_err err;
    if (n->u16) {
        f.encoding = VX_U16;
        f.data = raw;
        f.data_bytes = sizeof raw;
        f.units_per_m = 1000;
    }
    if (n->bright) {
        f.intensity = pixels;
        f.intensity_white = 1;
    }
    memcpy((char *)&f + n->offset, &x, sizeof x);
    snprintf(what, sizeof what, "sensor %d, %s at %zu = %g", (int)n->sensor, n->name, n->offset, x);
    if (!allowed(n, x)) {
        refused(&f, VX_E_INVALID, n->name, what);
        return;
    }
    err = vx_frame_check(&f, &detail);
    ck_assert_msg(err == VX_OK, "%s: %s", what, detail.text);
    err = vx_map_integrate(map, &f, &result, &detail);
    ck_assert_msg(err == VX_OK || ((err == VX_E_INVALID || err == VX_E_EXHAUSTED) && detail.field[0]),
                  "%s: %s %s", what, vx_err_name(err), detail.text);
    ck_map(map, what);
}

START_TEST(every_number)
{
    static const double odd[] = {NAN,     INFINITY, -INFINITY, 1e308, -1e308, 1e39, -1e39, 1e-310,
                                 -1e-310, 1e-40,    0,         -0.0,  1,      -1,   1e7,   1e-7};
    struct vx_map_params p = test_params(0.1, VX_TSDF);
    struct vx_device *d = test_device(256 << 20);
    struct vx_map *map;
    p.colour = true;
    map = test_map(d, &p);
    for (int i = 0; i < 12 * 8; i++) {
        pixels[i] = 1.5f + 0.01f * (float)(i % 12);
        raw[i] = (uint16_t)(1500 + i);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number *n = &numbers[i];
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
            try_number(map, n, odd[k]);
        try_number(map, n, n->least);
        try_number(map, n, n->most);
        if (!n->any && n->most < 1e300)
            try_number(map, n, n->most * 1.01);
        if (n->least > 0)
            try_number(map, n, n->least * 0.98);
    }
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

static int32_t times[12];

/* A scan with three poses over 0.1 s and a time for each point or column. */
static struct vx_frame moving(enum vx_sensor sensor)
{
    struct vx_frame f = good(sensor);
    f.n_poses = 3;
    for (int i = 0; i < 3; i++) {
        f.pose[i] = f.pose[0];
        f.pose[i].offset_ns = -1000 + i * 50000000;
    }
    for (int32_t i = 0; i < 12; i++)
        times[i] = -1000 + i * 9090909;
    f.time_ns = times;
    if (sensor == VX_POINTS) {
        f.width = 12;
        f.data_bytes = 144;
    }
    return f;
}

#define REFUSE_MOVING(sensor, change, field)                                                                 \
    do {                                                                                                     \
        struct vx_frame f = moving(sensor);                                                                  \
        change;                                                                                              \
        refused(&f, VX_E_INVALID, field, #sensor ": " #change);                                              \
    } while (0)

START_TEST(moving_scans)
{
    struct vx_frame m = good(VX_DEPTH);
    struct vx_detail detail;
    m.n_poses = 2;
    m.pose[1] = m.pose[0];
    m.pose[1].offset_ns = 1;
    refused(&m, VX_E_UNIMPLEMENTED, "pose", "an image with two poses");
    REFUSE(VX_DEPTH, f.time_ns = times, "time_ns");
    for (enum vx_sensor s = VX_POINTS; s <= VX_RANGE; s++) {
        m = moving(s);
        ck_assert_msg(vx_frame_check(&m, &detail) == VX_OK, "%s", detail.text);
        times[11] = 99999000; /* the last moment */
        ck_ok(vx_frame_check(&m, NULL));
        m.n_poses = 1; /* one pose: times say nothing */
        times[4] = INT32_MAX;
        ck_ok(vx_frame_check(&m, NULL));
        REFUSE_MOVING(s, f.time_ns = NULL, "time_ns");
        REFUSE_MOVING(s, times[11] = 99999001, "time_ns");
        REFUSE_MOVING(s, times[0] = -1001, "time_ns");
        REFUSE_MOVING(s, times[5] = INT32_MIN, "time_ns");
        REFUSE_MOVING(s, f.pose[2].offset_ns = f.pose[1].offset_ns, "pose.offset_ns");
        REFUSE_MOVING(s, f.pose[1].offset_ns = -1001, "pose.offset_ns");
        REFUSE_MOVING(s, f.pose[2].offset_ns = INT64_MAX, "pose.offset_ns");
        REFUSE_MOVING(s, f.pose[0].offset_ns = INT64_MIN, "pose.offset_ns");
        REFUSE_MOVING(s, f.pose[1].rotation_xyzw[0] = NAN, "pose.rotation_xyzw");
    }
}
END_TEST

/* ------------------------------------------------------------------ conversion */

START_TEST(sine_and_cosine)
{
    uint64_t seed = test_seed + 1;
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        double x = test_uniform(&seed, -20, 20), s, c;
        if (i < 64)
            x = (i - 32) * 0.78539816339744831;
        vx__sincos(x, &s, &c);
        worst = fmax(worst, fmax(fabs(s - sin(x)), fabs(c - cos(x))));
    }
    ck_assert_msg(worst < 1e-14, "error %g", worst);
}
END_TEST

START_TEST(rotation)
{
    uint64_t seed = test_seed + 2;
    for (int i = 0; i < 1000; i++) {
        double axis[3], n = 0, angle = test_uniform(&seed, -7, 7), q[4], R[9], v[3], want[3], scale;
        for (int k = 0; k < 3; k++) {
            axis[k] = test_uniform(&seed, -1, 1);
            v[k] = test_uniform(&seed, -1, 1);
            n += axis[k] * axis[k];
        }
        n = sqrt(n);
        scale = test_uniform(&seed, 0.9995, 1.0005); /* is taken out again */
        for (int k = 0; k < 3; k++)
            q[k] = scale * (axis[k] /= n) * sin(angle / 2);
        q[3] = scale * cos(angle / 2);
        vx__rotation_from_quaternion(q, R);
        for (int k = 0; k < 3; k++) { /* Rodrigues */
            int a = (k + 1) % 3, b = (k + 2) % 3;
            double dot = axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2];
            want[k] = v[k] * cos(angle) + (axis[a] * v[b] - axis[b] * v[a]) * sin(angle) +
                      axis[k] * dot * (1 - cos(angle));
            ck_assert_double_eq_tol(R[3 * k] * v[0] + R[3 * k + 1] * v[1] + R[3 * k + 2] * v[2], want[k],
                                    1e-12);
        }
    }
}
END_TEST

/* The box of candidate chunks holds every voxel that a reading can change. */
START_TEST(box_of_the_reach)
{
    uint64_t seed = test_seed + 3;
    for (int i = 0; i < 300; i++) {
        enum vx_sensor sensor = (enum vx_sensor)(i % 3);
        struct vx_map_params p = test_params(test_uniform(&seed, 0.01, 0.3), VX_TSDF);
        struct frame_shape shape = {
            .width = 24, .height = 16, .reach_m = p.voxel_size_m * test_uniform(&seed, 20, 900)};
        struct vxk_frame_args args;
        struct vx_detail detail;
        struct test_frame t;
        double at[3], R[9];
        for (int k = 0; k < 3; k++)
            at[k] = test_uniform(&seed, -1000, 1000) * p.voxel_size_m;
        test_frame_init(&t, sensor, &seed, &shape, at);
        memset(&args, 0, sizeof args);
        ck_ok(vx__frame_convert(&p, &t.f, &args, &detail));
        vx__rotation_from_quaternion(t.f.pose[0].rotation_xyzw, R);
        for (int j = 0; j < 500; j++) {
            double reach = t.f.max_range_m / p.voxel_size_m + p.truncation_voxels, l[3], z;
            if (sensor == VX_DEPTH) {
                z = j & 1 ? reach : test_uniform(&seed, 0, reach);
                l[0] = (test_uniform(&seed, -0.5, shape.width - 0.5) - t.f.cx) / t.f.fx * z;
                l[1] = (test_uniform(&seed, -0.5, shape.height - 0.5) - t.f.cy) / t.f.fy * z;
                l[2] = z;
            } else {
                double n = 0;
                for (int k = 0; k < 3; k++) {
                    l[k] = j < 3 ? k == j : test_uniform(&seed, -1, 1);
                    n += l[k] * l[k];
                }
                for (int k = 0; k < 3; k++)
                    l[k] *= reach / sqrt(n);
            }
            for (int k = 0; k < 3; k++) {
                double v =
                    at[k] / p.voxel_size_m + R[3 * k] * l[0] + R[3 * k + 1] * l[1] + R[3 * k + 2] * l[2];
                int32_t c = (int32_t)floor(v / 128) - args.f.oc[k];
                if (c < args.lo[k] || c >= args.lo[k] + args.n[k])
                    ck_abort_msg("frame %d: chunk %d on axis %d is outside %d .. %d", i, c, k, args.lo[k],
                                 args.lo[k] + args.n[k]);
            }
        }
        for (int k = 0; k < 3; k++) {
            ck_assert_double_eq_tol((double)args.f.t[k] + 128.0 * args.f.oc[k], at[k] / p.voxel_size_m, 1e-4);
            ck_assert(args.f.t[k] >= 0 && args.f.t[k] <= 128);
        }
        test_frame_fini(&t);
    }
}
END_TEST

/* Refusals that need the map: far from its origin, too far for its voxels. */
START_TEST(reach_refused)
{
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vxk_frame_args args;
    struct vx_detail detail = {0};
    struct vx_frame f = good(VX_DEPTH);
    memset(&args, 0, sizeof args);
    f.pose[0].position_m[1] = 0.05 * 134217728.0;
    ck_assert_int_eq(vx__frame_convert(&p, &f, &args, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "pose.position_m");
    f.pose[0].position_m[1] = -1e300;
    ck_assert_int_eq(vx__frame_convert(&p, &f, &args, &detail), VX_E_INVALID);
    f.pose[0].position_m[1] = 0.05 * 134217460.0; /* just inside */
    ck_assert_int_eq(vx__frame_convert(&p, &f, &args, &detail), VX_OK);
    ck_assert(args.f.edge);
    f.pose[0].position_m[1] = 0;
    for (double reach = 1e4; reach < 1e305; reach *= 1e10) {
        for (enum vx_sensor s = VX_DEPTH; s <= VX_RANGE; s++) {
            f = good(s);
            f.max_range_m = reach * 10;
            ck_ok(vx_frame_check(&f, NULL));
            ck_assert_int_eq(vx__frame_convert(&p, &f, &args, &detail), VX_E_INVALID);
            ck_assert_str_eq(detail.field, "max_range_m");
        }
    }
    for (double apart = 1e5; apart < 1e308; apart *= 1e9) { /* poses of one scan */
        static const int32_t time[4096];
        f = good(VX_POINTS);
        ck_assert_uint_le(f.width, 4096);
        f.time_ns = time;
        f.n_poses = 2;
        f.pose[1] = f.pose[0];
        f.pose[1].offset_ns = 1000;
        f.pose[1].position_m[2] += apart;
        ck_ok(vx_frame_check(&f, NULL));
        ck_assert_int_eq(vx__frame_convert(&p, &f, &args, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, "pose.position_m");
    }
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("frame_check");
    ck_add(s, poses, 1);
    ck_add(s, sizes_and_encodings, 1);
    ck_add(s, intrinsics, 1);
    ck_add(s, ranges, 1);
    ck_add(s, range_images, 1);
    ck_add(s, clean_depth, 1);
    ck_add(s, every_number, 1);
    ck_add(s, moving_scans, 1);
    ck_add(s, sine_and_cosine, 1);
    ck_add(s, rotation, 1);
    ck_add(s, box_of_the_reach, 1);
    ck_add(s, reach_refused, 1);
    return core_test_main(argc, argv, s);
}
