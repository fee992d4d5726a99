/*
 * voxeld/frame.h - one frame of a depth camera or a LiDAR, as clients hold it.  Plain data; needs no library.
 *
 * Axes: camera x right, y down, z forward, depth is z (not range); LiDAR x forward, y left, z up.
 * map_T_sensor takes sensor coordinates to map coordinates.  Metres, radians, nanoseconds; quaternions are x
 * y z w.
 */
#ifndef VOXELD_FRAME_H
#define VOXELD_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum vxc_sensor {
    VXC_DEPTH = 0,  /* pinhole depth image */
    VXC_POINTS = 1, /* LiDAR point set in sensor axes */
    VXC_RANGE = 2   /* LiDAR range image */
};

enum vxc_encoding {
    VXC_F32 = 0, /* metres */
    VXC_U16 = 1  /* depth only: metres = value / units_per_m */
};

/* map_T_sensor. */
struct vxc_pose {
    double position_m[3];
    double rotation_xyzw[4]; /* unit length */
};

/* A pose at another time than the frame's stamp. */
struct vxc_timed_pose {
    int64_t offset_ns; /* from the frame's stamp */
    struct vxc_pose pose;
};

enum { VXC_MAX_POSES = 64 };

/* Pointers are the caller's (of a reader: the reader's until its next call). */
struct vxc_frame {
    uint64_t index; /* place in a dataset, from 0, and a name: for messages, not sent */
    const char *name;

    enum vxc_sensor sensor;
    int64_t stamp_ns;
    bool reset; /* the stamp may lie before the last one's */
    struct vxc_pose pose;
    /* LiDAR: [n_path] poses over the frame's time, offsets rising, instead of `pose`; n_path 0: rigid */
    const struct vxc_timed_pose *path;
    uint32_t n_path;        /* <= VXC_MAX_POSES */
    const int32_t *time_ns; /* from the stamp; points [width], range [width] one a column; needed with a path
                               of more than one pose, each within its times; else NULL or ignored */

    uint32_t width, height; /* depth: px; range: columns, rows; points: n, 1 */
    double fx, fy, cx, cy;  /* depth, px: pixel (u, v) has its centre at (u, v); fx and fy are positive */
    double distortion[5];   /* depth: k1 k2 p1 p2 k3 of Brown and Conrady; all 0: a pinhole */
    double edge_jump; /* depth: a pixel between a nearer and a farther neighbour, off from both by more than
                         this share of its depth, is not used; 0: all are */
    const uint8_t *mask; /* depth: [height][width] 0 = not used; NULL: all are */
    const float *weight; /* depth: [height][width] 0 .. 1e6: how much a pixel counts, 0 = not used; NULL: 1 */
    enum vxc_encoding encoding;
    double units_per_m; /* VXC_U16 */
    const void *data;   /* depth [height][width], points [n][3] f32 m, range [height][width] f32 m */
    uint64_t data_bytes;
    double first_azimuth_rad, azimuth_step_rad; /* range: column u looks to first + u * step */
    const float *elevation_rad;                 /* range: [height], strictly monotonic */

    /* For maps that keep colour or labels; NULL: the frame brings none.  One item for each reading, in their
     * order: of a depth image at its own pixels, so register a colour camera's image to the depth image
     * before. */
    const uint8_t *colour;  /* [..][3] red, green, blue */
    const uint8_t *label;   /* 0 = none */
    const float *intensity; /* LiDAR: a grey, with vxc_sensing.intensity_white; not used beside `colour` */
};

/* How the readings of a stream of frames are meant; the same for all of them. */
struct vxc_sensing {
    enum vxc_sensor sensor;
    double min_range_m;     /* nearer readings are skipped; 0 = 0.1 (depth), 0.5 (LiDAR) */
    double max_range_m;     /* farther ones saw nothing up to here; 0 = 8 (depth), 60 (LiDAR) */
    double no_return_value; /* a reading equal to it saw nothing up to max_range_m; NaN: none is declared */
    bool invalid_zero;      /* range: 0 is invalid instead of "no return" */
    bool no_carving;        /* integrate surfaces only */
    double intensity_white; /* LiDAR: the intensity that counts as white; 0: intensities are no colour */
};

#endif
