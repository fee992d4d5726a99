/*
 * map.h - a persistent sparse voxel map: create, feed frames, ask for its facts and its digest.
 *
 * Thread: one thread at a time may call vx_map_integrate / clear / destroy (the writer).  Queries (query.h,
 * mesh.h), info and digest may run on other threads beside it: they pin the newest published epoch and see
 * that epoch only.
 */
#ifndef VX_MAP_H
#define VX_MAP_H

#include "vx/device.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_map;

enum vx_mode { VX_TSDF = 0, VX_OCCUPANCY = 1 };

/* What a reading of a depth image weighs in a TSDF map; a LiDAR's ray weighs 1 in both. */
enum vx_weighting {
    VX_WEIGHT_INVERSE_SQUARE = 0, /* by the noise of depth cameras: 16 up to 1 m, 1 from 4 m on */
    VX_WEIGHT_CONSTANT = 1        /* 1 */
};

enum { VX_NAME_MAX = 64 };

struct vx_map_params {
    double voxel_size_m; /* edge of a voxel, 1e-4 .. 100 */
    double origin_m[3];  /* world position of voxel (0,0,0)'s lower corner */
    enum vx_mode mode;
    enum vx_weighting weighting;
    double truncation_voxels;   /* TSDF: half width of the band, 1 .. 16; default 3 */
    double esdf_max_distance_m; /* R: distances saturate here; 0 = 10 voxels; at most 63 voxels */
    /* Decay: evidence halves in this much sensor time, 0.01 .. 1e5; 0 = never.  What has none left is
     * unknown. */
    double half_life_s;
    bool decay_spares_seen; /* what a frame sees does not decay by the time since the frame before it */
    double forget_radius_m; /* what is farther from the sensor is forgotten; 0 = nothing is */
    uint32_t sweep_words; /* blocks of 32^3 voxels that one commit looks through for both, about; 0 = 4096 */
    uint64_t frame_budget_bytes; /* growth that one frame may cause; 0 = an eighth of the pool's cap */
    uint64_t limit_bytes;        /* pool bytes this map may hold; 0 = the pool's cap */
    bool colour; /* voxels have a colour, 4 bytes each, averaged by weight from frames that bring one */
    bool label;  /* voxels have a label, 2 bytes each, the one that most weight of frames votes for */
};

/* Default parameters: TSDF, 5 cm, origin 0, truncation 3 voxels, R = 10 voxels. */
void vx_map_params_default(struct vx_map_params *params);
/* VX_OK when `name` is [A-Za-z0-9._-]{1,64}. */
vx_err vx_map_check_name(const char *name, struct vx_detail *detail);

/* Bytes that a map holds on the device. */
struct vx_map_memory {
    uint64_t topology_bytes; /* chunks and leaf records of the newest epoch */
    uint64_t values_bytes;   /* their values, */
    uint64_t colour_bytes;   /* colours */
    uint64_t label_bytes;    /* and labels */
    uint64_t table_bytes;    /* keys */
    uint64_t held_bytes;     /* distance field and cached meshes */
    uint64_t retired_bytes;  /* of older epochs that readers may still see */
    uint64_t scratch_bytes;  /* work space of frames and queries */
};

struct vx_map_info {
    char name[VX_NAME_MAX + 1];
    uint8_t uuid[16];
    struct vx_map_params params; /* as in force: zeros replaced by the defaults */
    uint64_t epoch;              /* newest published; 0 = nothing integrated yet */
    int64_t newest_stamp_ns;     /* of the frames in it; 0 when there is none */
    uint64_t n_frames;           /* integrated */
    uint64_t n_refused;          /* frames refused */
    uint64_t n_voxels;           /* active voxels (those with a value) */
    uint64_t n_leaves;           /* leaf records */
    uint64_t n_tiles;            /* cells of 8^3 voxels that are free as a whole */
    uint64_t n_chunks;           /* chunks that hold anything */
    uint64_t used_bytes;         /* chunk, leaf and value pages of the newest epoch, page slack included */
    double bytes_per_voxel;      /* used_bytes / n_voxels, 0 without voxels */
    bool has_bounds;             /* false while no chunk exists */
    double bounds_min_m[3];      /* corners of the chunks' bounding box, world frame */
    double bounds_max_m[3];
    double active_min_m[3];      /* corners of the box of the 32^3-voxel blocks that held active voxels, world
                                    frame */
    double active_max_m[3];      /* (it grows only, until a clear); equal to bounds when there was none */
    uint32_t esdf_radius_voxels; /* R in voxels, 1 .. 63 */
    double decay_clock_s;        /* the map's clock */
    double sweep_lag_s;          /* how far the sweep is behind it, for lack of sweep_words */
    struct vx_map_memory memory; /* its parts; used_bytes = topology + values + colour + label */
};

/* Creates an empty map on a device.
 * Errors: VX_E_INVALID (detail names the parameter); VX_E_UNIMPLEMENTED; VX_E_EXHAUSTED; VX_E_NOMEM;
 * VX_E_DEVICE. */
vx_err vx_map_create(struct vx_device *device, const char *name, const struct vx_map_params *params,
                     struct vx_map **out, struct vx_detail *detail);
/* Frees the map and gives its pages back.  No query may be running. */
void vx_map_destroy(struct vx_map *map);
/* Empties the map: everything becomes unknown, as a new epoch.  Pages return to the pool. */
vx_err vx_map_clear(struct vx_map *map);
vx_err vx_map_get_info(struct vx_map *map, struct vx_map_info *out);
/* SHA-256 over (chunk key, content) in key order; DESIGN section 3.  *epoch (may be NULL) = the epoch it
 * speaks of. */
vx_err vx_map_digest(struct vx_map *map, uint8_t digest[32], uint64_t *epoch);

/* ------------------------------------------------------------------ protected regions */

enum { VX_MAX_REGIONS = 64 };

/* What lies in it neither decays nor is forgotten; frames change it as ever. */
struct vx_region {
    uint32_t id; /* given by vx_map_protect, from 1 */
    bool ball;   /* false: the box min_m .. max_m; true: radius_m round centre_m */
    double min_m[3], max_m[3];
    double centre_m[3], radius_m;
};

/*
 * Protects a region.  Voxels whose centre lies in it keep what they have; free space is kept in blocks of
 * 32^3 voxels that it touches.  Immune without this: all blocks of an imported map that have not been empty
 * since. Errors: VX_E_INVALID not finite, empty, or farther from the origin than the map reaches;
 * VX_E_EXHAUSTED 64 regions. Thread: the writer.
 */
vx_err vx_map_protect(struct vx_map *map, struct vx_region *region, struct vx_detail *detail);
/* Ends a region.  Errors: VX_E_NOT_FOUND.  Thread: the writer. */
vx_err vx_map_unprotect(struct vx_map *map, uint32_t id, struct vx_detail *detail);
/* The regions in order of their ids; returns their number.  Thread: any. */
uint32_t vx_map_regions(struct vx_map *map, struct vx_region out[VX_MAX_REGIONS]);

/* ------------------------------------------------------------------ frames */

enum vx_sensor {
    VX_DEPTH = 0,  /* pinhole depth image; z in metres */
    VX_POINTS = 1, /* LiDAR point set in sensor axes */
    VX_RANGE = 2   /* LiDAR range image */
};

/* Layout of the payload. */
enum vx_encoding {
    VX_F32 = 0, /* metres */
    VX_U16 = 1  /* depth only: metres = value / units_per_m */
};

enum { VX_MAX_POSES = 64 };
#define VX_MAX_WEIGHT 1e6f /* of a pixel */

struct vx_pose {
    int64_t offset_ns;    /* from the frame's stamp */
    double position_m[3]; /* map_T_sensor */
    double rotation_xyzw[4];
};

struct vx_frame {
    enum vx_sensor sensor;
    int64_t stamp_ns;
    struct vx_pose pose[VX_MAX_POSES];
    uint32_t n_poses; /* 1: rigid; more, times rising, at most 4 s: LiDAR scans of a moving sensor */
    /* int32, from the stamp: points [n], range images [width], one a column; depth: NULL.  Needed with
     * several poses, each within their times; with one pose it says nothing. */
    const int32_t *time_ns;

    uint32_t width, height; /* depth: pixels; range: columns, rows; points: n, 1 */
    double fx, fy, cx, cy;  /* depth: px; pixel (u, v) has its centre at (u, v); fx, fy: 1e-3 .. 1e6 */
    double distortion[5];   /* depth: k1 k2 p1 p2 k3 of Brown and Conrady; all 0: none */
    double edge_jump; /* depth: a pixel between a nearer and a farther neighbour, off from both by more than
                         this share of its depth, is not used; 0: all are, else 0.001 .. 1 */
    const uint8_t
        *mask; /* depth: [height][width] 0 = not used; NULL: all are.  What is not used counts as 0 */
    /* depth: [height][width] 0 .. VX_MAX_WEIGHT, how much a pixel counts; NULL: 1.  0 = not used, as in
     * `mask`. TSDF: what it saw weighs so many times as much as the map's weighting says, rounded, 1 .. 255.
     */
    const float *weight;
    enum vx_encoding encoding;
    double units_per_m; /* VX_U16; 1e-6 .. 1e9 */
    const void *data;   /* depth [height][width], points [n][3] f32, range [height][width] f32; the caller's
                           until   the call returns; need not be aligned beyond its type */
    uint64_t data_bytes;
    /* range images: azimuth of column u = first_azimuth_rad + u * azimuth_step_rad; one elevation a row, any
     * order of rows, strictly monotonic. */
    double first_azimuth_rad, azimuth_step_rad; /* step: 1e-6 or more, of either sign */
    const float *elevation_rad;                 /* [height] */

    double min_range_m;     /* nearer readings are skipped; 0 = 0.1 m (depth), 0.5 m (LiDAR) */
    double max_range_m;     /* farther readings saw nothing up to here; 0 = 8 m (depth), 60 m (LiDAR) */
    double no_return_value; /* a reading equal to it saw nothing up to max_range_m; NaN = none is declared */
    bool invalid_zero;      /* range images: 0 = invalid instead of "no return" */
    bool no_carving;        /* true: integrate surfaces only */

    /* What a map with colour or labels takes from the frame besides; NULL: nothing.  One item a reading, in
     * the readings' order: depth [height][width] at the pixels of the depth image (register it before),
     * points [n], range [height][width].  A map without the channel leaves them unused. */
    const uint8_t *colour; /* [..][3] red, green, blue */
    const uint8_t *label;  /* 0 = none: no vote */
    const float
        *intensity; /* LiDAR: grey = intensity / intensity_white, where there is no colour; else NULL */
    double intensity_white; /* 1e-6 .. 1e9 where intensity is set */
};

/* What became of the readings of a frame; the sum of all is the number of readings. */
struct vx_frame_counts {
    uint64_t used;      /* made surface */
    uint64_t no_return; /* +Inf, declared value or beyond max range: carved only */
    uint64_t zero;      /* 0 */
    uint64_t negative;  /* < 0, -Inf included */
    uint64_t nan;
    uint64_t saturated; /* 65535 of 16-bit images */
    uint64_t too_near;  /* < min range */
    uint64_t outside;   /* surface beyond the voxel range */
};

enum {
    VX_WARN_ALL_BEYOND = 1 /* every reading was beyond max range: wrong units? */,
    VX_WARN_EMPTY = 2 /* none usable */,
    VX_WARN_UNUSED_CHANNEL = 4 /* it brought colour or labels that the map does not keep */
};

struct vx_frame_result {
    uint64_t epoch; /* holds the frame */
    struct vx_frame_counts counts;
    uint32_t warnings;       /* VX_WARN_* bits */
    uint64_t grown_bytes;    /* pool bytes newly taken by this frame */
    uint64_t replaced_bytes; /* pages of what it replaced: there beside the new ones until the commit */
    uint32_t n_launches;     /* kernels that it took, */
    uint32_t n_waits;        /* and how often the host waited for the device; for measurements */
};

/*
 * Checks a frame as far as it can be without the map: poses, intrinsics, sizes, encodings (DESIGN section 6).
 * Errors: VX_E_INVALID with the field named ("pose[0].rotation", "fx", "data").
 * Thread: any; does not block.
 */
vx_err vx_frame_check(const struct vx_frame *frame, struct vx_detail *detail);

/*
 * Integrates one frame and publishes it as a new epoch.  On any error the map is unchanged.
 * Errors: those of vx_frame_check; VX_E_INVALID sensor outside the voxel range; VX_E_EXHAUSTED budget, limit
 * or cap (detail says which and by how much); VX_E_NOMEM; VX_E_DEVICE. Thread: the map's writer; blocks until
 * the epoch is published.
 */
vx_err vx_map_integrate(struct vx_map *map, const struct vx_frame *frame, struct vx_frame_result *result,
                        struct vx_detail *detail);

#endif
