/*
 * planning.h - what planners ask beyond points, spheres and rays: robots along paths, boxes, slices for
 * ground robots, the nearest unknown, and why a place is what it is.
 *
 * Every batch is answered from one pinned epoch.  Positions are float32 relative to origin_m, as in query.h.
 * Errors that all of them share: VX_E_STALE, VX_E_CANCELLED, VX_E_EXHAUSTED, VX_E_NOMEM, VX_E_DEVICE, and
 * VX_E_INVALID for the parameters that are named below.  Thread: any, beside the writer; blocks until
 * answered.
 */
#ifndef VX_PLANNING_H
#define VX_PLANNING_H

#include "vx/query.h"

/* How unknown space counts. */
enum vx_unknown {
    VX_UNKNOWN_REPORT = 0, /* met unknown space is reported and stops nothing */
    VX_UNKNOWN_FREE = 1,   /* not looked at */
    VX_UNKNOWN_OCCUPIED = 2
};

/* ------------------------------------------------------------------ robots along paths */

/* A robot of spheres along way-points.  One way-point is a configuration. */
struct vx_paths {
    const float *spheres; /* [n_spheres][4] x, y, z, radius in the robot's frame; radius 0 .. R */
    uint32_t n_spheres;   /* 1 .. 4096 */
    uint32_t n_waypoints; /* of every path, 1 .. 4096 */
    enum vx_unknown unknown;
};

struct vx_path_answer { /* 24 bytes */
    uint32_t sphere;    /* the first to touch; 0xffffffff: none did */
    float contact;      /* where: way-point number and part of the way to the next; NaN: nowhere */
    float clearance_m; /* no surface is nearer to a sphere's skin; of a path that touches: where it does; NaN:
                          nothing within R */
    float unknown;     /* where a sphere first met unknown space, or the path stops being judged; NaN:
                          nowhere (with VX_UNKNOWN_FREE only the latter is looked at) */
    uint32_t status;   /* VX_Q_COLLIDES, VX_Q_TOUCHES_UNKNOWN, VX_Q_OUTSIDE: from `unknown` on the path is not
                          judged, since a pose is not finite or no rotation, two are too far apart, or it
                          leaves the voxel range; that counts as unknown space, with VX_UNKNOWN_OCCUPIED as a
                          contact of sphere 0 */
    uint32_t reserved;
};

/*
 * Paths of a robot: between way-points its position goes straight and its rotation the short way (normalised
 * linear interpolation), and the whole of the way is swept, not its way-points alone.  What lies behind a
 * path's first contact is not looked at.
 *
 * poses: [n][n_waypoints][7] float32 x, y, z (relative to origin_m), qx, qy, qz, qw.
 * A sphere advances by half of its clearance, at least a quarter of a voxel: a graze of less than an eighth
 * of a voxel can be missed.  clearance_m is never more than the true one and at least half of it.  Unknown
 * space is looked for at evenly spread places at most a voxel apart, and met when an unknown voxel's cube is
 * within the radius and half of what lies between them: early, never late.  Occupied space has a surface
 * where it borders on free space; a piece that only unknown space surrounds is met by steps of half a voxel
 * when unknown space is reported, and with VX_UNKNOWN_FREE may be passed over.  A way of more than 32 voxels
 * is marched in pieces of equal length, none longer: what is around a piece says how, and whether at all.
 *
 * Errors: VX_E_INVALID: radius, n_spheres, n_waypoints.  Poses more than 4096 voxels apart are VX_Q_OUTSIDE.
 */
vx_err vx_query_paths(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_paths *paths, const float *poses, uint32_t n,
                      struct vx_path_answer *answers, struct vx_reply *reply, struct vx_detail *detail);

/* ------------------------------------------------------------------ boxes */

struct vx_box_answer {                      /* 32 bytes */
    uint64_t n_free, n_occupied, n_unknown; /* voxels whose cubes the box meets */
    uint32_t status; /* VX_Q_OUTSIDE: partly beyond the voxel range (what is beyond counts as unknown) */
    uint32_t reserved;
};

/*
 * Boxes along the map's axes: [n][6] float32 min x, y, z, max x, y, z; at most 2^21 voxels a side.  A box
 * costs what the map holds inside it, however large it is, and what several boxes hold whole is counted once.
 *
 * Errors: VX_E_INVALID boxes: one is too long, not finite, or its min is above its max (the message says
 * which).  Other questions to the map do not wait for it.
 */
vx_err vx_query_boxes(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const float *boxes, uint32_t n, struct vx_box_answer *answers, struct vx_reply *reply,
                      struct vx_detail *detail);

/* ------------------------------------------------------------------ slices */

/* Costs as Nav2 counts them. */
enum { VX_COST_FREE = 0, VX_COST_INSCRIBED = 253, VX_COST_OCCUPIED = 254, VX_COST_UNKNOWN = 255 };

struct vx_slice {
    double cell_m;           /* edge of a cell; 0 = the voxel size */
    uint32_t n_x, n_y;       /* cells; at most 2^28 in all */
    double min_z_m, max_z_m; /* band of heights, relative to origin_m; equal: that height alone.  At most 1024
                                voxels */
    double inscribed_m;      /* cells nearer to a surface than this are inscribed; 0 .. R */
    enum vx_unknown unknown;
};
struct vx_slice_cell { /* 8 bytes */
    float distance_m;  /* the least of the band; NaN: nothing within R */
    uint8_t cost;   /* occupied where anything of the band is; else inscribed; else unknown where anything is
                       and   unknown counts (VX_UNKNOWN_OCCUPIED: occupied); else free */
    uint8_t states; /* bit VX_STATE_*: what the band has */
    uint16_t reserved;
};

/* A grid of columns; cell (i, j) has its centre at origin_m + ((i + 0.5) cell_m, (j + 0.5) cell_m), cells
 * [n_y][n_x]. */
vx_err vx_query_slice(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_slice *slice, struct vx_slice_cell *cells, struct vx_reply *reply,
                      struct vx_detail *detail);

/* ------------------------------------------------------------------ unknown, and why */

/* Distance from n points to the nearest unknown voxel's cube, 0 inside one; NaN: none within R. */
vx_err vx_query_unknown(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *points, uint32_t n, float *distance_m, struct vx_reply *reply,
                        struct vx_detail *detail);

struct vx_point_unknown_answer { /* 28 bytes; what the wire carries */
    struct vx_point_answer answer;
    float unknown_distance_m; /* as vx_query_unknown */
};
/* vx_query_points and vx_query_unknown in one, from one epoch. */
vx_err vx_query_points_unknown(struct vx_map *map, const struct vx_query_options *options,
                               const double origin_m[3], const float *points, uint32_t n,
                               struct vx_point_unknown_answer *answers, struct vx_reply *reply,
                               struct vx_detail *detail);

enum vx_why {
    VX_WHY_OUTSIDE = 0, /* not finite or beyond the voxel range */
    VX_WHY_NEVER_SEEN,  /* no sensor ever saw the voxel */
    VX_WHY_SEEN_EMPTY,  /* a sensor saw through it */
    VX_WHY_FREE_CELL,   /* all of its cell of 8^3 voxels was seen empty */
    VX_WHY_MEASURED     /* it has a value: distance and weight, or log-odds */
};
struct vx_explanation {
    struct vx_point_answer answer;
    uint32_t why;             /* enum vx_why */
    int32_t voxel[3];         /* that holds the point */
    float value;              /* VX_WHY_MEASURED: distance in metres (positive outside), or log-odds */
    uint32_t weight;          /* of a distance */
    uint32_t changed_epoch;   /* in which the 32^3 voxels around it last changed; 0: never */
    float unknown_distance_m; /* as vx_query_unknown */
};
/* Why n points are what they are. */
vx_err vx_query_explain(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *points, uint32_t n, struct vx_explanation *out, struct vx_reply *reply,
                        struct vx_detail *detail);

#endif
