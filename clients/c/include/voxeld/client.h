/*
 * voxeld/client.h - talk to a voxeld daemon: maps, frames, distances, rays, meshes.
 *
 *     struct vx_detail why;
 *     struct vxc_client *client;
 *     if (vxc_connect(NULL, NULL, &client, &why) != VX_OK)
 *         fprintf(stderr, "%s\n", why.text);
 *
 * Every call returns VX_OK or a negative code of base/vx_err.h and says in *detail (may be NULL) what went
 * wrong, in words a person can act on.  A refusal of the daemon arrives as its code, field and words.
 *
 * Thread: a client belongs to one thread at a time; only vxc_interrupt may be called from anywhere.  Calls
 * block until answered, until the time limit (VX_E_DEADLINE), until vxc_interrupt (VX_E_CANCELLED), or until
 * the daemon is gone (VX_E_UNAVAILABLE).  After each of these the client can be used again; open streams are
 * lost with the daemon.
 *
 * Epochs: a map's state has a number that grows with each change.  Answers carry the one they speak of; a
 * question may ask for "this epoch or newer", so that it sees a frame whose acknowledgement named that epoch.
 *
 * Not in errors below because every call may return them: VX_E_UNAVAILABLE, VX_E_DEADLINE, VX_E_CANCELLED,
 * VX_E_NOMEM, VX_E_INTERNAL (the daemon broke the protocol), VX_E_VERSION.
 */
#ifndef VOXELD_CLIENT_H
#define VOXELD_CLIENT_H

#include "base/vx_err.h"
#include "voxeld/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vxc_client;
struct vxc_stream;

/* ------------------------------------------------------------------ connection */

struct vxc_connect_options {
    const char *name;            /* of this program, for the daemon's log; NULL = "libvoxeld-client" */
    uint32_t connect_timeout_ms; /* for the daemon's first answer; 0 = 3000 */
    uint32_t timeout_ms;         /* for a call without any progress; 0 = 600000 */
    /* For so long after a question the caller's thread looks for the answer without sleeping: being woken on
     * an idle machine can take as long as the answer.  0 = it sleeps at once. */
    uint32_t spin_us;
};

/* The daemon's folder when none is given: $VOXELD_IPC_DIR, else /run/voxeld. */
const char *vxc_default_ipc_dir(void);
/*
 * Connects to the daemon in a folder and says HELLO.
 * ipc_dir: NULL = vxc_default_ipc_dir().  options: may be NULL.  *out: close with vxc_disconnect.
 * Errors: VX_E_UNAVAILABLE no daemon answers there; VX_E_VERSION it speaks another version.
 */
vx_err vxc_connect(const char *ipc_dir, const struct vxc_connect_options *options, struct vxc_client **out,
                   struct vx_detail *detail);
/* Says BYE and frees the client and its streams; frames that were acknowledged stay in the map.  NULL is
 * fine. */
void vxc_disconnect(struct vxc_client *client);
/* Time limit of later calls, ms without any progress; 0 = 600000. */
void vxc_set_timeout(struct vxc_client *client, uint32_t timeout_ms);
/*
 * Ends the call that waits now, or the next one that does, with VX_E_CANCELLED, and cancels its request at
 * the daemon. Thread: any, also a signal handler.
 */
void vxc_interrupt(struct vxc_client *client);
/* Round trip to the daemon.  *round_trip_us may be NULL. */
vx_err vxc_ping(struct vxc_client *client, uint64_t *round_trip_us, struct vx_detail *detail);
/* "voxeld/0.1.0". */
const char *vxc_server(const struct vxc_client *client);

/* ------------------------------------------------------------------ maps */

enum { VXC_NAME_MAX = 64 };

/* The state of a map that an answer speaks of. */
struct vxc_map_state {
    char name[VXC_NAME_MAX + 1];
    uint8_t uuid[16];
    uint64_t epoch;          /* 0 = nothing integrated yet */
    uint64_t esdf_epoch;     /* of the distances in this answer; 0 = it has none */
    int64_t newest_stamp_ns; /* of the frames in it */
    double max_distance_m;   /* R: distances saturate here */
    uint64_t staleness_us;   /* since the newest frame was integrated */
};

enum vxc_map_mode { VXC_TSDF = 0, VXC_OCCUPANCY = 1 };

/* What a reading of a depth image weighs in a TSDF map; a LiDAR's ray weighs 1 in both. */
enum vxc_weighting {
    VXC_WEIGHT_DEFAULT = 0,        /* the daemon's */
    VXC_WEIGHT_INVERSE_SQUARE = 1, /* 16 up to 1 m, falling with the square of the depth to 1 at 4 m */
    VXC_WEIGHT_CONSTANT = 2        /* 1 */
};

/* Zero = the daemon's default, except voxel_size_m, which must be given. */
struct vxc_map_params {
    double voxel_size_m;
    double origin_m[3];
    enum vxc_map_mode mode;
    double truncation_voxels;
    double esdf_max_distance_m;
    uint64_t frame_budget_bytes;
    uint64_t limit_bytes;
    double half_life_s;     /* of evidence, in sensor time */
    bool decay_spares_seen; /* what a frame sees does not decay by the time since the frame before it */
    double forget_radius_m; /* what is farther from the sensor is forgotten */
    uint32_t sweep_words;   /* blocks of 32^3 voxels that a commit looks through for both */
    bool colour, label;     /* voxels keep a colour (4 bytes each), a label (2 bytes each) */
    enum vxc_weighting weighting;
};

/* Bytes that a map holds on the device. */
struct vxc_map_memory {
    uint64_t topology_bytes, values_bytes; /* of the newest epoch */
    uint64_t colour_bytes, label_bytes;    /* likewise */
    uint64_t table_bytes;                  /* keys */
    uint64_t held_bytes;                   /* distance field and cached meshes */
    uint64_t retired_bytes;                /* of older epochs that readers may still see */
    uint64_t scratch_bytes;                /* work space of frames and queries */
};

enum { VXC_MAX_REGIONS = 64 };

/* A part of the map that neither decays nor is forgotten. */
struct vxc_region {
    uint32_t id; /* given by the daemon */
    bool ball;   /* false: the box min_m .. max_m; true: radius_m round centre_m */
    double min_m[3], max_m[3];
    double centre_m[3], radius_m;
};

struct vxc_map_info {
    struct vxc_map_state state;
    struct vxc_map_params params; /* as in force */
    uint64_t n_frames, n_refused;
    uint64_t n_voxels, n_leaves, n_tiles, n_chunks;
    uint64_t used_bytes;
    double bytes_per_voxel;
    bool has_bounds;                         /* false while the map is empty */
    double bounds_min_m[3], bounds_max_m[3]; /* of the chunks */
    double active_min_m[3], active_max_m[3]; /* of the leaves with active voxels */
    uint32_t esdf_radius_voxels;
    double decay_clock_s, sweep_lag_s; /* sensor time that counts for decay; how far its sweep is behind */
    struct vxc_region region[VXC_MAX_REGIONS]; /* [n_regions] in order of their ids */
    uint32_t n_regions;
    struct vxc_map_memory memory;
};

/* Names are [A-Za-z0-9._-]{1,64}.  Errors: VX_E_INVALID, VX_E_EXISTS, VX_E_EXHAUSTED.  *info may be NULL. */
vx_err vxc_map_create(struct vxc_client *client, const char *name, const struct vxc_map_params *params,
                      struct vxc_map_info *info, struct vx_detail *detail);
/* All maps in name order; *out is the caller's to free().  Errors: none of its own. */
vx_err vxc_map_list(struct vxc_client *client, struct vxc_map_state **out, size_t *n,
                    struct vx_detail *detail);
/* Errors: VX_E_NOT_FOUND (of the next four too). */
vx_err vxc_map_get_info(struct vxc_client *client, const char *name, struct vxc_map_info *out,
                        struct vx_detail *detail);
/* SHA-256 of the map's content: equal on every machine for the same frames.  *state may be NULL. */
vx_err vxc_map_digest(struct vxc_client *client, const char *name, uint8_t digest[32],
                      struct vxc_map_state *state, struct vx_detail *detail);
/* Everything becomes unknown.  *state may be NULL. */
vx_err vxc_map_clear(struct vxc_client *client, const char *name, struct vxc_map_state *state,
                     struct vx_detail *detail);
vx_err vxc_map_delete(struct vxc_client *client, const char *name, struct vx_detail *detail);
/* What lies in the region keeps its evidence; region->id is set.  Errors: VX_E_INVALID, VX_E_NOT_FOUND map,
 * VX_E_EXHAUSTED 64 regions. */
vx_err vxc_map_protect(struct vxc_client *client, const char *name, struct vxc_region *region,
                       struct vx_detail *detail);
/* Errors: VX_E_NOT_FOUND map, region. */
vx_err vxc_map_unprotect(struct vxc_client *client, const char *name, uint32_t id, struct vx_detail *detail);

/* ------------------------------------------------------------------ maps as files */

enum vxc_file_format {
    VXC_FILE_NVDB = 0,      /* OnIndex grid with channels: nothing is lost */
    VXC_FILE_NVDB_FLOAT = 1 /* dense floats for old tools: weights, and what is known to be free, are lost */
};
enum vxc_layer { VXC_LAYER_ANY = 0, VXC_LAYER_TSDF = 1, VXC_LAYER_OCCUPANCY = 2 };

/* Told now and then, inside the call: bytes that the daemon has worked through (running), or that have
 * travelled. */
enum vxc_stage { VXC_STAGE_RUNNING, VXC_STAGE_SENDING };
typedef void (*vxc_progress_fn)(void *context, enum vxc_stage stage, uint64_t done, uint64_t total);

struct vxc_export {
    enum vxc_file_format format;
    enum vxc_layer layer; /* one that the map does not hold is refused */
    uint64_t min_epoch;   /* this epoch or a newer one */
    /* Takes the next n bytes of the file; an error ends the call with it. */
    vx_err (*take)(void *context, const void *bytes, size_t n, struct vx_detail *detail);
    vxc_progress_fn progress; /* may be NULL */
    void *context;            /* of both */
};

struct vxc_export_info {
    struct vxc_map_state state;
    uint64_t n_bytes, n_voxels, n_leaves;
};

/*
 * The map as a NanoVDB file, in one epoch; frames go on meanwhile.  info may be NULL.
 * Errors: VX_E_NOT_FOUND the map; VX_E_INVALID the layer; VX_E_STALE min_epoch; VX_E_EXHAUSTED.
 */
vx_err vxc_map_export(struct vxc_client *client, const char *name, const struct vxc_export *options,
                      struct vxc_export_info *info, struct vx_detail *detail);

struct vxc_import {
    uint64_t n_bytes; /* of the file */
    /* Gives n bytes at `at` of the file; an error ends the call with it. */
    vx_err (*give)(void *context, uint64_t at, void *out, size_t n, struct vx_detail *detail);
    vxc_progress_fn progress; /* may be NULL */
    void *context;            /* of both */
    const char *grid;         /* which grid of the file; NULL = the only one */
    const char *channel;      /* which blind data holds the values; NULL = the only one */
    bool has_mode;            /* params.mode says what the values are; else the file does, else TSDF */
    bool has_weight;
    double weight; /* of voxels that come without one, 0 .. 255; 1 unless has_weight */
    /* voxel_size_m and origin_m must be 0: they come from the file; so do truncation_voxels,
     * esdf_max_distance_m and weighting where they are 0. */
    struct vxc_map_params params;
};

/*
 * Makes a map of a NanoVDB file; any error leaves no map behind.  info may be NULL.
 * Errors: VX_E_EXISTS; VX_E_INVALID malformed, or something that no map can be; VX_E_DATA_LOSS damaged or cut
 * short; VX_E_VERSION; VX_E_UNIMPLEMENTED compressed, or a type that is not read; VX_E_NOT_FOUND no such grid
 * or channel; VX_E_EXHAUSTED.
 */
vx_err vxc_map_import(struct vxc_client *client, const char *name, const struct vxc_import *options,
                      struct vxc_map_info *info, struct vx_detail *detail);

/* ------------------------------------------------------------------ frames */

struct vxc_stream_options {
    struct vxc_sensing sensing;
    uint64_t id;       /* (map, id) names the stream, also after a reconnect; 0 = a random number */
    bool latest;       /* a newer frame may take the place of one that still waits (a live sensor) */
    bool ack_received; /* also report that a frame was accepted, before it is integrated */
};

/* What became of the readings of a frame; the sum is their number. */
struct vxc_counts {
    uint64_t used;      /* made surface */
    uint64_t no_return; /* saw nothing up to the maximum range: carved only */
    uint64_t zero, negative, nan, saturated, too_near, outside;
};

enum vxc_fate {
    VXC_RECEIVED,   /* accepted, waits */
    VXC_INTEGRATED, /* `epoch` holds it */
    VXC_SUPERSEDED, /* a newer one took its place; not in the map */
    VXC_REFUSED     /* not in the map, nothing changed: `err` and `why` */
};

enum {
    VXC_WARN_ALL_BEYOND = 1 /* every reading beyond max range: wrong units? */,
    VXC_WARN_EMPTY = 2 /* none usable */,
    VXC_WARN_UNUSED_CHANNEL = 4 /* it brought colours or labels, and the map keeps none */
};

struct vxc_ack {
    uint64_t seq;
    void *user; /* as given to vxc_stream_send */
    enum vxc_fate fate;
    uint64_t epoch;
    struct vxc_counts counts;
    uint32_t warnings; /* VXC_WARN_* bits */
    uint64_t grown_bytes;
    vx_err err;
    const struct vx_detail *why; /* VXC_REFUSED */
};

/* Called inside vxc_stream_send, vxc_stream_flush, vxc_poll and requests; it must not call the library. */
typedef void (*vxc_ack_fn)(void *context, const struct vxc_ack *ack);

/*
 * Opens a stream of frames into a map.
 * on_ack: told the fate of every frame; may be NULL (then vxc_stream_flush still says whether any was
 * refused). *out: close with vxc_stream_close. Errors: VX_E_NOT_FOUND the map; VX_E_EXISTS the id is in use;
 * VX_E_EXHAUSTED too many streams; VX_E_INVALID.
 */
vx_err vxc_stream_open(struct vxc_client *client, const char *map, const struct vxc_stream_options *options,
                       vxc_ack_fn on_ack, void *context, struct vxc_stream **out, struct vx_detail *detail);
/*
 * Sends a frame; the data is copied.  Blocks while the daemon has no credit for it.
 * seq: NULL or where its number goes.  user: comes back in its acknowledgements.
 * Errors: VX_E_INVALID the frame cannot be put on the wire (sensor, size); VX_E_EXHAUSTED larger than the
 * daemon takes; VX_E_NOT_FOUND the stream's map was deleted, as a refused frame told (close the stream). A
 * refusal by the daemon is no error of this call: it arrives as an acknowledgement.
 */
vx_err vxc_stream_send(struct vxc_stream *stream, const struct vxc_frame *frame, void *user, uint64_t *seq,
                       struct vx_detail *detail);
/* true when vxc_stream_send of so many payload bytes would be sent without waiting for credit. */
bool vxc_stream_ready(const struct vxc_stream *stream, uint64_t data_bytes);
/* Waits until every frame sent has its final fate.  Errors: none of its own. */
vx_err vxc_stream_flush(struct vxc_stream *stream, struct vx_detail *detail);
/* Frames sent and not answered yet. */
uint64_t vxc_stream_n_waiting(const struct vxc_stream *stream);
/* Frees the stream here; the daemon detaches it when the client disconnects.  NULL is fine. */
void vxc_stream_close(struct vxc_stream *stream);
/* Takes in what the daemon sent, waiting at most timeout_ms for something to come: for acknowledgements
 * without sending. */
vx_err vxc_poll(struct vxc_client *client, uint32_t timeout_ms, struct vx_detail *detail);

/* ------------------------------------------------------------------ queries */

enum vxc_state { VXC_UNKNOWN = 0, VXC_FREE = 1, VXC_OCCUPIED = 2 };

/* Status bits of a point or sphere. */
enum {
    VXC_Q_DISTANCE = 1,        /* distance_m is defined: a surface is within R */
    VXC_Q_GRADIENT = 2,        /* gradient is defined, unit length, away from the surface */
    VXC_Q_OUTSIDE = 4,         /* not finite, or beyond the map's range of coordinates */
    VXC_Q_TOUCHES_UNKNOWN = 8, /* sphere: it meets an unknown voxel */
    VXC_Q_COLLIDES = 16        /* sphere: a surface is within the radius */
};

struct vxc_point_answer {
    float distance_m;  /* positive outside; of a sphere: the clearance; NaN unless VXC_Q_DISTANCE */
    float gradient[3]; /* 0,0,0 unless VXC_Q_GRADIENT */
    uint32_t state;    /* enum vxc_state: the evidence at the point; unknown is never free */
    uint32_t status;   /* VXC_Q_* */
};

struct vxc_ray_answer {
    float range_m;        /* to the first surface; NaN without a hit */
    float normal[3];      /* unit, towards the ray's origin */
    uint32_t state;       /* VXC_OCCUPIED hit; VXC_FREE all free; VXC_UNKNOWN no hit, met unknown */
    float unknown_from_m; /* range of the first unknown voxel before the hit; NaN: none */
};

/*
 * Distance, gradient and state at n points.
 * origin_m: world position that the coordinates are relative to (NULL = 0,0,0).  points: [n][3].  answers:
 * [n]. min_epoch: 0, or the answer must be from this epoch or newer.  state: of the answer, may be NULL. n
 * may be any number: more than the daemon takes at once travel as several requests, the later ones from the
 * same epoch or a newer one. Errors: VX_E_NOT_FOUND the map; VX_E_STALE min_epoch lies in the future;
 * VX_E_EXHAUSTED.
 */
vx_err vxc_query_points(struct vxc_client *client, const char *map, uint64_t min_epoch,
                        const double origin_m[3], const float *points, size_t n,
                        struct vxc_point_answer *answers, struct vxc_map_state *state,
                        struct vx_detail *detail);
struct vxc_point_unknown_answer {
    struct vxc_point_answer answer;
    float unknown_distance_m; /* to the nearest unknown voxel, 0 in one; NaN: none within R */
};
/* The same with the distance to the nearest unknown voxel. */
vx_err vxc_query_points_unknown(struct vxc_client *client, const char *map, uint64_t min_epoch,
                                const double origin_m[3], const float *points, size_t n,
                                struct vxc_point_unknown_answer *answers, struct vxc_map_state *state,
                                struct vx_detail *detail);
/* Spheres [n][4]: centre, radius.  Errors: as above; VX_E_INVALID a radius over R (the words say R). */
vx_err vxc_query_spheres(struct vxc_client *client, const char *map, uint64_t min_epoch,
                         const double origin_m[3], const float *spheres, size_t n,
                         struct vxc_point_answer *answers, struct vxc_map_state *state,
                         struct vx_detail *detail);
/* Rays [n][6]: origin, direction of any length; the first surface up to max_range_m. */
vx_err vxc_query_rays(struct vxc_client *client, const char *map, uint64_t min_epoch,
                      const double origin_m[3], const float *rays, size_t n, double max_range_m,
                      struct vxc_ray_answer *answers, struct vxc_map_state *state, struct vx_detail *detail);

/* ------------------------------------------------------------------ planning */

/* How unknown space counts. */
enum vxc_unknown { VXC_UNKNOWN_REPORT = 0, VXC_UNKNOWN_FREE = 1, VXC_UNKNOWN_OCCUPIED = 2 };

/* A robot of spheres along paths of way-points; one way-point is a configuration. */
struct vxc_robot {
    const float *spheres; /* [n_spheres][4] centre in the robot's frame, radius */
    uint32_t n_spheres;
    uint32_t n_waypoints; /* of every path */
    enum vxc_unknown unknown;
};
struct vxc_path_answer {
    uint32_t sphere;   /* the first to touch; 0xffffffff: none */
    float contact;     /* where: way-point number and part of the way to the next; NaN: nowhere */
    float clearance_m; /* no surface is nearer to a sphere's skin; where it touches: there; NaN: nothing
                          within R */
    float unknown;     /* where unknown space was first met, or the path stops being judged; NaN: nowhere */
    uint32_t status;   /* VXC_Q_COLLIDES, VXC_Q_TOUCHES_UNKNOWN, VXC_Q_OUTSIDE: from `unknown` on the path is
                          not judged (a pose is not finite or no rotation, two are over 4096 voxels apart, or
                          it leaves the map's range); that counts as unknown space */
    uint32_t reserved;
};
/*
 * n paths, swept between their way-points.  poses: [n][n_waypoints][7] position (relative to origin_m),
 * quaternion x y z w.  Errors: as vxc_query_points; VX_E_INVALID the robot, or a radius over R.
 */
vx_err vxc_query_paths(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const double origin_m[3], const struct vxc_robot *robot, const float *poses, size_t n,
                       struct vxc_path_answer *answers, struct vxc_map_state *state,
                       struct vx_detail *detail);

struct vxc_box_answer {
    uint64_t n_free, n_occupied, n_unknown; /* voxels that the box meets */
    uint32_t status;                        /* VXC_Q_OUTSIDE */
    uint32_t reserved;
};
/* Boxes [n][6]: min, max, along the axes; at most 2^21 voxels a side.  Errors: as vxc_query_points;
 * VX_E_INVALID one is longer, not finite or upside down. */
vx_err vxc_query_boxes(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const double origin_m[3], const float *boxes, size_t n, struct vxc_box_answer *answers,
                       struct vxc_map_state *state, struct vx_detail *detail);

/* A grid of columns over a band of heights; costs as Nav2 counts them. */
enum { VXC_COST_FREE = 0, VXC_COST_INSCRIBED = 253, VXC_COST_OCCUPIED = 254, VXC_COST_UNKNOWN = 255 };
struct vxc_slice {
    double origin_m[3]; /* lower corner of cell (0, 0) */
    double cell_m;      /* 0 = the voxel size */
    uint32_t n_x, n_y;
    double min_z_m, max_z_m; /* above origin_m; equal: that height alone */
    double inscribed_m;      /* cells nearer to a surface cost 253 */
    enum vxc_unknown unknown;
};
struct vxc_slice_cell {
    float distance_m; /* the least of the band; NaN: nothing within R */
    uint8_t cost;
    uint8_t states; /* bit VXC_UNKNOWN, VXC_FREE, VXC_OCCUPIED: what the band has */
    uint16_t reserved;
};
/* cells: [n_y][n_x].  Errors: as above; VX_E_EXHAUSTED more cells than the daemon answers at once. */
vx_err vxc_query_slice(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const struct vxc_slice *slice, struct vxc_slice_cell *cells,
                       struct vxc_map_state *state, struct vx_detail *detail);

enum vxc_why {
    VXC_WHY_OUTSIDE = 0, /* not finite, or beyond the map's range of coordinates */
    VXC_WHY_NEVER_SEEN,
    VXC_WHY_SEEN_EMPTY, /* a sensor saw through it */
    VXC_WHY_FREE_CELL,  /* and through all of its 8^3 voxels */
    VXC_WHY_MEASURED    /* it has a value */
};
struct vxc_explanation {
    struct vxc_point_answer answer;
    uint32_t why;             /* enum vxc_why */
    int32_t voxel[3];         /* that holds the point */
    float value;              /* VXC_WHY_MEASURED: distance in metres (positive outside), or log-odds */
    uint32_t weight;          /* of a distance */
    uint32_t changed_epoch;   /* in which the 32^3 voxels around it last changed; 0: never */
    float unknown_distance_m; /* to the nearest unknown voxel; NaN: none within R */
};
/* Why n points are what they are. */
vx_err vxc_explain(struct vxc_client *client, const char *map, uint64_t min_epoch, const double origin_m[3],
                   const float *points, size_t n, struct vxc_explanation *out, struct vxc_map_state *state,
                   struct vx_detail *detail);

/* Colour and label at a place. */
struct vxc_tint {
    uint8_t colour[3]; /* red, green, blue; 128 each where there is none */
    uint8_t label;     /* 0 = none */
    uint8_t weight;    /* of the colour; 0 = there is none */
    uint8_t trust;     /* confidence of the label, 0 .. 255 */
    uint16_t reserved;
};
/* Colours and labels at n points [n][3].  A map without them answers that there are none.  Errors: as
 * vxc_query_points. */
vx_err vxc_query_tints(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const double origin_m[3], const float *points, size_t n, struct vxc_tint *tints,
                       struct vxc_map_state *state, struct vx_detail *detail);

struct vxc_mesh {
    double origin_m[3]; /* vertices are relative to it */
    uint32_t n_vertices, n_triangles;
    const float *vertices;        /* [n_vertices][3] m */
    const float *normals;         /* [n_vertices][3] unit, out of the solid */
    const uint32_t *triangles;    /* [n_triangles][3], counter-clockwise seen from outside */
    const struct vxc_tint *tints; /* [n_vertices]; NULL: the map has neither colour nor labels */
    struct vxc_map_state state;
    void *memory; /* owns the arrays */
};

/*
 * The surface of the map as triangles.
 * min_weight: evidence a voxel needs; 0 = 1.  *out: free with vxc_mesh_fini.
 * Errors: VX_E_NOT_FOUND, VX_E_STALE, VX_E_EXHAUSTED.
 */
vx_err vxc_mesh_get(struct vxc_client *client, const char *map, uint64_t min_epoch, uint32_t min_weight,
                    struct vxc_mesh *out, struct vx_detail *detail);
void vxc_mesh_fini(struct vxc_mesh *mesh);

/* ------------------------------------------------------------------ a mesh that follows its map */

struct vxc_mesh_vertex {
    uint16_t position[3]; /* 1/256 voxel from the chunk's lower corner; exact */
    int16_t normal[3];    /* 1/32767; out of the solid */
};
/* The surface in 128^3 voxels, a mesh of its own.  Vertices on the border of two chunks are the same place in
 * both: at origin_m + voxel_m * (128 * chunk + position / 256). */
struct vxc_mesh_chunk {
    int32_t chunk[3];
    uint32_t n_vertices, n_triangles;
    const struct vxc_mesh_vertex *vertices; /* [n_vertices] */
    const struct vxc_tint *tints;           /* [n_vertices] colours and labels; NULL: the map has none */
    const uint32_t *triangles;              /* [n_triangles][3] */
    uint64_t epoch; /* of the answer that brought it: who draws it does so anew when it is newer */
};

struct vxc_mesh_follow_options {
    uint32_t min_weight; /* as vxc_mesh_get */
    bool has_region;     /* only chunks that meet the box */
    double min_m[3], max_m[3];
};

/* What an update brought. */
struct vxc_mesh_change {
    struct vxc_map_state state;    /* the mesh is now of state.epoch */
    bool complete;                 /* the daemon could not say what changed: all of it came anew */
    uint32_t n_changed, n_removed; /* chunks that came, that have no surface any more */
    uint64_t n_bytes;              /* of the answer */
};

struct vxc_mesh_follower;

/* Keeps a mesh chunk by chunk; empty until the first update.  options: NULL = all of the map.  *out: free
 * with vxc_mesh_unfollow, before the client is disconnected.  Errors: VX_E_INVALID the map's name;
 * VX_E_NOMEM. */
vx_err vxc_mesh_follow(struct vxc_client *client, const char *map,
                       const struct vxc_mesh_follow_options *options, struct vxc_mesh_follower **out,
                       struct vx_detail *detail);
/* Fetches what changed since the last update.  A map that was cleared, or deleted and made again, is followed
 * all the same.  change: may be NULL.  On an error the mesh is as it was.  Errors: VX_E_NOT_FOUND; VX_E_STALE
 * min_epoch; VX_E_INVALID min_weight, region; VX_E_EXHAUSTED; VX_E_NOMEM. */
vx_err vxc_mesh_update(struct vxc_mesh_follower *follower, uint64_t min_epoch, struct vxc_mesh_change *change,
                       struct vx_detail *detail);
/* The chunks with surface, ascending; returns their number.  They are the follower's, until the next update.
 */
size_t vxc_mesh_chunks(const struct vxc_mesh_follower *follower, const struct vxc_mesh_chunk **chunks);
/* Of voxel (0, 0, 0): its lower corner, its edge. */
void vxc_mesh_frame(const struct vxc_mesh_follower *follower, double origin_m[3], double *voxel_m);
/* All chunks as one mesh, vertices on their borders once.  *out: free with vxc_mesh_fini.  Errors:
 * VX_E_EXHAUSTED more than 2^32 - 1 vertices or triangles; VX_E_NOMEM. */
vx_err vxc_mesh_weld(const struct vxc_mesh_follower *follower, struct vxc_mesh *out,
                     struct vx_detail *detail);
void vxc_mesh_unfollow(struct vxc_mesh_follower *follower);

/* ------------------------------------------------------------------ the daemon */

struct vxc_latency {
    const char *work; /* "frame", "points", "spheres", "rays", "mesh", "planning" */
    uint64_t n;
    double mean_us, p50_us, p99_us, max_us;
    /* Its parts: until it ran, while it ran, until the answer was with its socket. */
    double wait_p50_us, wait_p99_us, run_p50_us, run_p99_us, reply_p50_us, reply_p99_us;
    uint64_t n_at_once; /* answered by the daemon's loop itself */
};

struct vxc_code_count {
    vx_err err;
    uint64_t n;
};

struct vxc_device_stats {
    char name[128], backend[32];
    uint64_t cap_bytes, used_bytes, scratch_bytes, reserved_bytes, peak_bytes;
};

struct vxc_map_stats {
    struct vxc_map_state state;
    uint64_t n_frames, n_refused, n_voxels, used_bytes;
    struct vxc_map_memory memory;
    uint32_t n_waiting_frames, n_waiting_requests;
    struct vxc_latency *latencies;
    size_t n_latencies;
};

struct vxc_stream_stats {
    char map[VXC_NAME_MAX + 1];
    uint64_t id;
    bool open;
    const char *sensor; /* "depth", "points", "range" */
    uint64_t n_received, n_integrated, n_superseded;
    struct vxc_code_count *refused;
    size_t n_refused;
    struct vxc_counts readings;
    uint64_t last_seq;
    int64_t last_stamp_ns;
    uint32_t n_warnings;
};

/* A report of the daemon; all pointers belong to it. */
struct vxc_stats {
    char server[65];
    uint64_t uptime_us;
    uint32_t n_sessions;
    uint64_t n_bad_messages, transfer_bytes;
    uint64_t spool_bytes; /* files of exports and imports under way */
    struct vxc_device_stats *devices;
    size_t n_devices;
    struct vxc_map_stats *maps;
    size_t n_maps;
    struct vxc_stream_stats *streams;
    size_t n_streams;
    struct vxc_latency *latencies;
    size_t n_latencies;
    struct vxc_code_count *errors;
    size_t n_errors;
};

/* *out: free with vxc_stats_free.  Errors: none of its own. */
vx_err vxc_get_stats(struct vxc_client *client, struct vxc_stats **out, struct vx_detail *detail);
void vxc_stats_free(struct vxc_stats *stats);
/* Asks the daemon to finish accepted frames and end.  Errors: VX_E_PERMISSION. */
vx_err vxc_shutdown(struct vxc_client *client, struct vx_detail *detail);

#ifdef __cplusplus
}
#endif

#endif
