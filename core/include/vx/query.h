/*
 * query.h - batches of questions, answered on the device against one pinned epoch.
 *
 * Distances come from the exact ESDF of the map: positive outside, saturated at R; the gradient points away
 * from the surface.  Unknown is never free: state is the evidence at the voxel that contains the point.
 */
#ifndef VX_QUERY_H
#define VX_QUERY_H

#include "vx/map.h"

/* State of a point or sphere. */
enum vx_state { VX_STATE_UNKNOWN = 0, VX_STATE_FREE = 1, VX_STATE_OCCUPIED = 2 };

/* Per-item status bits. */
enum {
    VX_Q_DISTANCE = 1,        /* distance_m is defined: a surface is within R */
    VX_Q_GRADIENT = 2,        /* gradient is defined, unit length; not where surfaces are equally near */
    VX_Q_OUTSIDE = 4,         /* the point is not finite or outside the voxel range: state unknown */
    VX_Q_TOUCHES_UNKNOWN = 8, /* spheres: some voxel whose cube the sphere meets is unknown */
    VX_Q_COLLIDES = 16        /* spheres: a known surface or occupied voxel centre is within the radius */
};

/* Which epoch answered. */
struct vx_reply {
    uint8_t uuid[16];
    uint64_t epoch;
    uint64_t esdf_epoch;
    int64_t newest_stamp_ns;
    double max_distance_m; /* R */
};

struct vx_query_options {
    uint64_t min_epoch; /* the answer is from this epoch or newer; the ESDF is refreshed first if needed */
    bool (*cancelled)(void *context); /* asked between kernels; may be NULL */
    void *context;
    /* A distance field that was brought up to date less than esdf_period_ns before now_ns is new enough,
     * unless min_epoch is newer: the whole answer is then from its epoch.  By the caller's clock; 0 = the
     * newest epoch always. */
    uint64_t now_ns, esdf_period_ns;
};

struct vx_point_answer { /* 24 bytes; what the wire carries */
    float distance_m;    /* NaN unless VX_Q_DISTANCE */
    float gradient[3];   /* 0,0,0 unless VX_Q_GRADIENT */
    uint32_t state;      /* enum vx_state */
    uint32_t status;     /* VX_Q_* */
};

/*
 * Distance, gradient and state of n points.
 * points: [n][3] float32, world position minus origin_m (three doubles).  answers: [n], the caller's.
 * Errors: VX_E_STALE min_epoch is in the future; VX_E_CANCELLED; VX_E_EXHAUSTED the ESDF does not fit;
 * VX_E_NOMEM; VX_E_DEVICE. Thread: any, beside the writer; blocks until answered.
 */
vx_err vx_query_points(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                       const float *points, uint32_t n, struct vx_point_answer *answers,
                       struct vx_reply *reply, struct vx_detail *detail);
/*
 * The same answers where nothing need be waited for but one launch over a small batch: nobody brings the
 * field up to date just now, and it is new enough as it is (of the newest epoch, or by esdf_period_ns).
 * Neither a long query nor a digest under way is in the way. Errors: VX_E_UNAVAILABLE it is not so, or n is
 * above VX_NOW_POINTS: nothing has happened, ask vx_query_points; else as vx_query_points.  Thread: any,
 * beside the writer and other queries; takes some tens of microseconds on a GPU, below a millisecond on a
 * CPU.
 */
enum { VX_NOW_POINTS = 2048 };
vx_err vx_query_points_now(struct vx_map *map, const struct vx_query_options *options,
                           const double origin_m[3], const float *points, uint32_t n,
                           struct vx_point_answer *answers, struct vx_reply *reply, struct vx_detail *detail);
/*
 * Spheres: [n][4] float32 x, y, z, radius.  distance_m is that of the centre minus the radius (clearance).
 * Errors: as points; VX_E_INVALID a radius that is negative, not finite, or larger than R (the message says
 * R).
 */
vx_err vx_query_spheres(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *spheres, uint32_t n, struct vx_point_answer *answers,
                        struct vx_reply *reply, struct vx_detail *detail);

struct vx_ray_answer { /* 24 bytes */
    float range_m;     /* to the first surface crossing; NaN without a hit */
    float normal[3];   /* unit, towards the ray's origin side; 0,0,0 without a hit */
    uint32_t state; /* VX_STATE_OCCUPIED hit; VX_STATE_FREE all free up to max_range; VX_STATE_UNKNOWN no hit
                       and met unknown */
    float unknown_from_m; /* range at which the first unknown voxel was met, NaN when none before the hit */
};
/*
 * Rays: [n][6] float32 origin (relative to origin_m) and direction (any non-zero length); max_range_m, for
 * all of them, is positive and at most 100,000 voxels.  What begins beyond the voxel range is unknown there.
 * Errors: as points; VX_E_INVALID max_range_m; rays: one is not finite or has no direction (the message says
 * which).
 */
vx_err vx_query_rays(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                     const float *rays, uint32_t n, double max_range_m, struct vx_ray_answer *answers,
                     struct vx_reply *reply, struct vx_detail *detail);

#endif
