/*
 * random_frames.h - small random frames of every sensor, for tests of the frame pipeline.
 *
 * Readings come in steps and slopes with a share of everything that a sensor sends instead of a reading: NaN,
 * 0, negative, infinite, nearer than the minimum, beyond the maximum.
 */
#ifndef RANDOM_FRAMES_H
#define RANDOM_FRAMES_H

#include "vx/map.h"

uint64_t test_random(uint64_t *state);
double test_uniform(uint64_t *state, double from, double to);

struct test_frame {
    struct vx_frame f;
    void *data;
    float *elevation;
};

struct frame_shape {
    uint32_t width, height; /* points: width x height of them */
    double reach_m;         /* max_range_m; readings lie within it but for the odd ones */
    double odd;             /* share of readings that are none, 0..1 */
    bool u16;               /* depth: 16-bit millimetres */
};

/* Makes a frame of `sensor` at a position with a random rotation.  Free with test_frame_fini. */
void test_frame_init(struct test_frame *t, enum vx_sensor sensor, uint64_t *seed,
                     const struct frame_shape *shape, const double position_m[3]);
void test_frame_fini(struct test_frame *t);

#endif
