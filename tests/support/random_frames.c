#include "random_frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

double test_uniform(uint64_t *state, double from, double to)
{
    return from + (to - from) * (double)(test_random(state) >> 11) * 0x1p-53;
}

static void random_rotation(uint64_t *seed, double q[4])
{
    double n;
    do {
        n = 0;
        for (int k = 0; k < 4; k++) {
            q[k] = test_uniform(seed, -1, 1);
            n += q[k] * q[k];
        }
    } while (n < 0.05 || n > 1);
    for (int k = 0; k < 4; k++)
        q[k] /= sqrt(n);
}

/* What a sensor sends instead of a reading. */
static float odd_reading(uint64_t *seed, double reach)
{
    switch (test_random(seed) % 7) {
    case 0:
        return NAN;
    case 1:
        return 0.0f;
    case 2:
        return -1.5f;
    case 3:
        return -INFINITY;
    case 4:
        return INFINITY;
    case 5:
        return (float)(reach * 1.5);
    default:
        return (float)(reach * 0.01);
    }
}

/* Patches with slopes; every reading in 0.1 .. 0.95 of the reach unless it is odd. */
static void fill_readings(float *out, uint64_t *seed, const struct frame_shape *s)
{
    double base = test_uniform(seed, 0.4, 0.9), du = test_uniform(seed, -0.3, 0.3),
           dv = test_uniform(seed, -0.3, 0.3);
    uint32_t n = s->width * s->height;
    for (uint32_t i = 0; i < n; i++) {
        double x = (double)(i % s->width) / s->width - 0.5, y = (double)(i / s->width) / s->height - 0.5;
        out[i] = (float)(base + du * x + dv * y + test_uniform(seed, -0.002, 0.002));
    }
    for (int patch = 0; patch < 5; patch++) {
        uint32_t u0 = (uint32_t)(test_random(seed) % s->width),
                 v0 = (uint32_t)(test_random(seed) % s->height);
        uint32_t u1 = u0 + 1 + (uint32_t)(test_random(seed) % (s->width / 3 + 1)),
                 v1 = v0 + 1 + (uint32_t)(test_random(seed) % (s->height / 2 + 1));
        double d = test_uniform(seed, 0.12, 0.9), slope = test_uniform(seed, -0.01, 0.01);
        for (uint32_t v = v0; v < v1 && v < s->height; v++)
            for (uint32_t u = u0; u < u1 && u < s->width; u++)
                out[v * s->width + u] = (float)(d + slope * (u - u0));
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = fminf(fmaxf(out[i], 0.1f), 0.95f) * (float)s->reach_m;
        if (test_uniform(seed, 0, 1) < s->odd)
            out[i] = odd_reading(seed, s->reach_m);
    }
    /* one corner saw nothing, so that open space is carved as well */
    for (uint32_t v = 0; s->odd > 0 && v < s->height / 4; v++)
        for (uint32_t u = 0; u < s->width / 4; u++)
            out[v * s->width + u] = INFINITY;
}

static void depth_frame(struct test_frame *t, uint64_t *seed, const struct frame_shape *s)
{
    uint32_t n = s->width * s->height;
    float *metres = malloc(n * sizeof *metres);
    fill_readings(metres, seed, s);
    t->f.fx = s->width * test_uniform(seed, 0.7, 1.2);
    t->f.fy = t->f.fx * test_uniform(seed, 0.95, 1.05);
    t->f.cx = s->width * test_uniform(seed, 0.4, 0.6);
    t->f.cy = s->height * test_uniform(seed, 0.4, 0.6);
    t->data = metres;
    t->f.data_bytes = n * 4ull;
    if (s->u16) {
        uint16_t *raw = malloc(n * sizeof *raw);
        for (uint32_t i = 0; i < n; i++) {
            double mm = metres[i] * 1000.0;
            raw[i] = isnan(mm) || mm <= 0 ? 0 : mm > 65000 ? 65535 : (uint16_t)(mm + 0.5);
        }
        free(metres);
        t->data = raw;
        t->f.data_bytes = n * 2ull;
        t->f.encoding = VX_U16;
        t->f.units_per_m = 1000;
    }
}

static void range_frame(struct test_frame *t, uint64_t *seed, const struct frame_shape *s)
{
    float *metres = malloc((uint64_t)s->width * s->height * sizeof *metres);
    bool falling = test_random(seed) & 1;
    double turn = test_random(seed) & 1 ? 6.283185307179586 : test_uniform(seed, 1, 5);
    fill_readings(metres, seed, s);
    t->elevation = malloc(s->height * sizeof *t->elevation);
    for (uint32_t v = 0; v < s->height; v++) {
        double e = -0.6 + 1.1 * (v + test_uniform(seed, 0, 0.6)) / s->height;
        t->elevation[falling ? s->height - 1 - v : v] = (float)e;
    }
    t->f.elevation_rad = t->elevation;
    t->f.azimuth_step_rad = turn / s->width * (test_random(seed) & 1 ? 1 : -1);
    t->f.first_azimuth_rad = test_uniform(seed, -6.28, 6.28);
    t->f.invalid_zero = test_random(seed) & 1;
    t->data = metres;
    t->f.data_bytes = (uint64_t)s->width * s->height * 4;
}

static void points_frame(struct test_frame *t, uint64_t *seed, const struct frame_shape *s)
{
    uint32_t n = s->width * s->height;
    float *metres = malloc(n * sizeof *metres), *p = malloc(n * 3 * sizeof *p);
    fill_readings(metres, seed, s);
    for (uint32_t i = 0; i < n; i++) {
        double az = 6.283185307179586 * (i % s->width) / s->width,
               el = -0.5 + 0.9 * (i / s->width) / s->height;
        az += test_uniform(seed, -0.001, 0.001);
        p[3 * i] = (float)(metres[i] * cos(el) * cos(az));
        p[3 * i + 1] = (float)(metres[i] * cos(el) * sin(az));
        p[3 * i + 2] = (float)(metres[i] * sin(el));
    }
    free(metres);
    t->data = p;
    t->f.data_bytes = n * 12ull;
    t->f.width = n;
    t->f.height = 1;
}

void test_frame_init(struct test_frame *t, enum vx_sensor sensor, uint64_t *seed,
                     const struct frame_shape *shape, const double position_m[3])
{
    memset(t, 0, sizeof *t);
    t->f = (struct vx_frame){.sensor = sensor,
                             .n_poses = 1,
                             .width = shape->width,
                             .height = shape->height,
                             .max_range_m = shape->reach_m,
                             .min_range_m = shape->reach_m * 0.05,
                             .no_return_value = NAN};
    memcpy(t->f.pose[0].position_m, position_m, sizeof t->f.pose[0].position_m);
    random_rotation(seed, t->f.pose[0].rotation_xyzw);
    if (sensor == VX_DEPTH)
        depth_frame(t, seed, shape);
    else if (sensor == VX_RANGE)
        range_frame(t, seed, shape);
    else
        points_frame(t, seed, shape);
    t->f.data = t->data;
}

void test_frame_fini(struct test_frame *t)
{
    free(t->data);
    free(t->elevation);
    memset(t, 0, sizeof *t);
}
