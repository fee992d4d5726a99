/*
 * observe.h - what a frame says about each voxel of a box, in double precision and without the code under
 * test.
 *
 * The references know the documented rules (kernels/body/frame_depth.h, frame_lidar.h, frame_update.h) and
 * take from the converted frame only tuning constants (noise, clearances, size of a point set's bins). What
 * hangs on less than the rounding of single precision may go either way.
 */
#ifndef OBSERVE_H
#define OBSERVE_H

#include "core_test.h"
#include "frame_convert.h"

#define EPS 2e-4 /* voxels or pixels: single precision at these distances errs by some 1e-5 */

/* What the reference says about a voxel. */
enum { NOTHING, BAND, NEAR, FREE, EITHER };

struct obs {
    float q_lo, q_hi; /* least and greatest distance, stored units, not rounded; LiDAR: means over the rays */
    float weight;     /* whole */
    uint8_t what;
    uint8_t may_free; /* LiDAR: some beam clears it if margins are read generously */
    uint8_t must_see; /* LiDAR: some beam clears it beyond doubt */
    uint32_t pixel;   /* depth: 1 + the pixel that shows the surface of its band; 0: it shows another one */
};

struct box {
    int32_t lo[3], n[3];
    uint8_t *state, *next_state; /* VXK_*, before and after the frame */
    uint32_t *value, *next_value;
    struct obs *obs;
};

struct sensor {
    double R[9], t[3]; /* map_T_sensor of the first pose; position in voxels */
    double origin_m[3];
    double vs, trunc, q_scale, max_d, min_d;
    enum vx_weighting weighting;
    struct vxk_frame k; /* tuning constants only */
};

/* How often the rules that look at a reading's neighbours came to a result. */
struct surfaces {
    uint64_t n, sloped, unsure; /* readings with a surface; of these: slope or normal known; either way */
};

enum kind { INVALID, OPEN, HIT };

/* Matrix of a unit quaternion x y z w. */
void observe_rotation(const double q[4], double R[9]);
/* The sensor of a frame for a map with these parameters. */
void observe_sensor(struct sensor *s, const struct vx_map_params *p, const struct vx_frame *f);

size_t box_index(const struct box *b, const int32_t v[3]);
bool box_holds(const struct box *b, const int32_t v[3]);

/* Classifies a reading in metres; gives voxels; *unsure when it lies at a limit. */
enum kind observe_reading(const struct sensor *s, const struct vx_frame *f, double m, double *d,
                          bool *unsure);

/* Fill b->obs from a frame and add to *n. */
void observe_depth(const struct sensor *s, const struct vx_frame *f, struct box *b, struct surfaces *n);
void observe_lidar(const struct sensor *s, const struct vx_frame *f, struct box *b, struct surfaces *n);

#endif
