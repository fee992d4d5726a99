/*
 * frame_types.h - what the frame pipeline's element functions share: the sensor's frame and the work lists.
 *
 * Lengths are in voxels, map axes relative to the lower corner of the sensor's chunk (oc), so that single
 * precision keeps 2^-13 voxel or better over the whole reach of a sensor.
 */
#ifndef VXK_BODY_FRAME_TYPES_H
#define VXK_BODY_FRAME_TYPES_H

#include "grid.h"

enum { VXK_SENSOR_DEPTH = 0, VXK_SENSOR_LIDAR = 1 };
enum { VXK_IMAGE_F32 = 0, VXK_IMAGE_U16 = 1 };
enum { VXK_STRIP = 8 };                  /* readings of a row that are smoothed together */
enum { VXK_TILE = 4, VXK_N_LEVELS = 3 }; /* bounds of readings: tiles of 4, 16 and 64 pixels a side */

/* Why a reading was or was not used; the order of struct vx_frame_counts. */
enum {
    VXK_C_USED,
    VXK_C_NO_RETURN,
    VXK_C_ZERO,
    VXK_C_NEGATIVE,
    VXK_C_NAN,
    VXK_C_SATURATED,
    VXK_C_NEAR,
    VXK_C_OUTSIDE,
    VXK_N_COUNTS
};

enum { VXK_ROW_STEPS = 4096 };
/* Bins beside a row's ends in vxk_frame_space.end: as far as a normal's neighbours may lie, and a vector. */
enum { VXK_END_APRON = 24 };
enum { VXK_WEIGHT_CAP = 255 }; /* of a TSDF value, and of an observation */

/* Markers in a depth or range array in voxels. */
#define VXK_D_INVALID (-1e30f) /* nothing is known along this ray */
#define VXK_D_OPEN    1e30f    /* nothing up to the maximum range */

struct vxk_frame {
    int32_t sensor; /* VXK_SENSOR_* */
    int32_t width, height;
    float fx, fy, cx, cy;   /* depth camera, px */
    float R[9];             /* map_T_sensor, row-major */
    float t[3];             /* sensor, voxels from the corner of chunk oc */
    int32_t oc[3];          /* chunk that holds the sensor */
    float spread;           /* depth a cube spans along the camera's axis, in edges */
    float inv_voxel;        /* voxels a metre */
    float min_d, max_d;     /* accepted readings, voxels */
    float trunc;            /* half width of the band, voxels */
    float q_scale;          /* stored units a voxel: 32767 / tau_max */
    float noise;            /* sensor noise: sigma = noise * d^2 voxels (depth cameras by triangulation) */
    int32_t smooth_max;     /* px between the samples of a reading's neighbourhood, at most */
    int32_t step_u, step_v; /* in arrays of pixels: to the next column and row; one of them is 1 */
    float weight_scale;     /* weight of an observation = weight_scale / d^2, 1 .. weight_max; */
    int32_t weight_max;     /* 0 and 1: constant */
    int32_t carve;          /* 0: integrate surfaces only */
    int32_t mode;           /* enum vx_mode: 0 TSDF, 1 occupancy */
    int32_t edge;           /* the sensor's reach crosses the end of the voxel range: look at every reading */
    /* occupancy, fixed point (1/1024 of log-odds); lo_free: of a free voxel, none is lower */
    int32_t lo_hit, lo_miss, lo_free, lo_max;
    /* raw image */
    int32_t encoding;
    float unit;                                     /* raw value to metres */
    float no_return_m;                              /* declared value in metres, NaN = none */
    int32_t zero_is_open;                           /* LiDAR: 0 saw nothing */
    int32_t n_strips;                               /* a row */
    int32_t n_tx[VXK_N_LEVELS], n_ty[VXK_N_LEVELS]; /* tiles a row and column of each level */
    /* LiDAR bins: column = (azimuth - az0) * az_scale, row = (el_top - elevation) * el_scale */
    float az0, az_scale, az_half, az_turn; /* az_turn: columns a full turn */
    float el_top, el_scale;
    int32_t el_last;       /* VXK_ROW_STEPS - 1 */
    float el_min, el_max;  /* no beam is lower or higher, rad, with a little room */
    int32_t full_turn;     /* the columns close the circle */
    float clear;           /* a ray clears what lies this far in front of its end, voxels, */
    float clear_plane;     /* and this far in front of the surface there */
    int32_t rows_rise;     /* range images: row 0 of the payload is the lowest */
    int32_t bins_are_rays; /* range image: bin = ray number; point set: bin -> ray by the index array */
    /* de-skewed scans: how far from t the sensor was at most, voxels, and how far it turned from R, rad */
    float skew_reach, skew_turn;
};

/* Pose of a moving sensor at one time: rotation x y z w, position in voxels from t. */
struct vxk_knot {
    float q[4];
    float t[3];
    float reserved;
};
/* Pose at the time of a column: R and position as in vxk_frame, the latter from t. */
struct vxk_column {
    float R[9];
    float t[3];
};
/* A scan whose sensor moved; times in ns from its first pose. */
struct vxk_skew {
    int32_t on;
    uint32_t n_segments;         /* between poses */
    uint32_t steps;              /* knots a segment */
    int32_t first_ns;            /* the first pose, from the stamp */
    const uint32_t *pose_ns;     /* [n_segments + 1] */
    const struct vxk_knot *knot; /* [n_segments * steps + 1] */
    const int32_t *time_ns;      /* [points or columns] from the stamp */
    uint32_t *column_ns;         /* point sets: [2][columns] earliest and latest time of a column's points */
    struct vxk_column *column;   /* [columns] */
    float *origin;               /* [rays][3] where a ray began, voxels from t */
};

/* Bounds over the readings of a tile: distances from the sensor in voxels (depth: along z). */
struct vxk_bounds {
    VXK_ALIGN(16) float hit_lo; /* no band reaches nearer */
    float hit_hi;               /* or farther; empty when hit_lo > hit_hi */
    float free_all,
        free_any; /* nearer than free_all every reading saw through, farther than free_any none did */
};

/* What a depth image says along a pixel's ray; depths along z, voxels. */
struct vxk_pixel {
    float lo;   /* nearer, it saw through or might have; open rays: up to the maximum range */
    float hi;   /* from lo on, the band of its surface; hi below lo: there is none */
    float free; /* it saw through what is no farther */
    float
        front; /* something thin in front of the surface, within about half a voxel of the ray; or far off */
};
#define VXK_PIXEL_NONE 1e30f /* -lo of no reading, -hi, -free, -front where there is none */

/* What an observation along that ray is worth. */
struct vxk_sample {
    float d;        /* depth of the surface, VXK_D_INVALID or VXK_D_OPEN */
    float g;        /* distance to the surface's plane for a step along z */
    int32_t weight; /* of an observation of the surface, */
    int32_t thin;   /* and of what is in front of it */
};

struct vxk_ray { /* LiDAR */
    VXK_ALIGN(16)
    float d[3]; /* unit direction in map axes */
    float r;    /* length in voxels (VXK_D_INVALID, VXK_D_OPEN) */
    float n[3]; /* unit normal of the surface at its end, towards the sensor; -d where the neighbours tell
                   nothing */
    float nd;   /* n . d */
};

/* The voxels of a ray's band as the CUDA variants keep them: the first, and of up to VXK_TRAIL_STEPS steps
 * the axes they go along. */
enum { VXK_TRAIL_STEPS = 32 };
struct vxk_trail {
    VXK_ALIGN(16)
    int32_t first[3];
    uint32_t n;       /* voxels; more than VXK_TRAIL_STEPS + 1: the steps say not all of them */
    uint32_t step[3]; /* bit k: step k goes along this axis */
    uint32_t back;    /* bit a: steps along axis a go down */
    uint32_t slot[4]; /* the chunks that it meets one after the other, in the table of touched chunks */
};

/* A cell of the work list as the CUDA variants for LiDAR frames hand it on. */
struct vxk_task {
    VXK_ALIGN(16)
    uint32_t old;   /* number of its record before the frame, VXK_NONE or VXK_TASK_TILE: it was a free tile */
    uint32_t hit;   /* touched leaf, VXK_NONE, or VXK_TASK_DONE: frame_beams left nothing for frame_cell */
    int32_t column; /* of the bins whose beams may clear voxels of it the first one's, */
    uint32_t row;   /* its row, */
    uint32_t bins;  /* rows << 16 | columns, or VXK_TASK_MANY */
    int32_t base[3]; /* its first voxel, from the corner of chunk oc */
};
#define VXK_TASK_TILE 0xfffffffeu
#define VXK_TASK_DONE 0xfffffffeu
#define VXK_TASK_MANY 0xffffffffu

/* A part of the map that does not fade: a box of voxels, or a ball in that box. */
struct vxk_region {
    int32_t lo[3], hi[3]; /* voxels, both ends included */
    int32_t ball;         /* 0: all of the box */
    int32_t reserved;
    int64_t centre[3], r2; /* in 1/256 voxel; r2: squared */
};

/* Decay and forgetting in this commit (frame_fade.h). */
struct vxk_fade {
    int32_t on;
    int32_t spare;             /* what the frame sees does not fade by the frame's own ticks */
    uint32_t tick, before;     /* of the map with this frame, and at the commit before it */
    uint32_t due_first, due_n; /* buckets of keys that are swept */
    uint32_t due_places;       /* slots of the table a bucket begins at */
    uint32_t bury;             /* no reader is pinned to an epoch before this one */
    float forget;              /* words farther from the sensor than this are forgotten, voxels; 0: none */
    uint32_t n_regions;
    const struct vxk_region *region;
};

/* A chunk that the frame may change. */
struct vxk_frame_chunk {
    uint64_t key;
    uint32_t old;     /* version or VXK_NONE */
    uint32_t slot;    /* in the frame's table of touched chunks (LiDAR) or VXK_NONE */
    uint32_t changed; /* some word changed */
    uint32_t fresh;   /* number of the new version among this frame's (after the scan) */
    uint32_t due;     /* VXK_DUE_* */
    uint32_t reserved;
};
/* It is swept; the frame says nothing about it. */
enum { VXK_DUE_SWEEP = 1, VXK_DUE_ONLY = 2 };

/* A word that the frame may change. */
struct vxk_frame_word {
    uint32_t chunk; /* frame chunk << 6 | word number */
    uint32_t changed;
    uint64_t leaf, tile;            /* new masks */
    uint32_t n_active, n_leaf;      /* new */
    uint32_t leaf_page, value_page; /* its first among the pages that this frame takes */
    uint32_t flags;                 /* VXK_WORD_* */
    uint32_t reserved;
};
enum {
    VXK_WORD_SEEN = 1,   /* the frame says something about it */
    VXK_WORD_QUIET = 2,  /* nothing but what follows happens to it */
    VXK_WORD_STALE = 4,  /* its values fade */
    VXK_WORD_UNFREE = 8, /* its free voxels become unknown */
    VXK_WORD_DROP = 16,  /* all of it becomes unknown */
    VXK_WORD_GUARD = 32, /* a protected region meets it */
    VXK_WORD_NOTE = 64   /* that it was seen has to be noted */
};

/* What the frame decided for a cell of a frame word. */
enum { VXK_CELL_KEEP = 0, VXK_CELL_TILE = 1, VXK_CELL_WORK = 2 };

/* The kinds of pages; core's enum vx__page_kind has the same order. */
enum { VXK_PAGE_CHUNK, VXK_PAGE_LEAVES, VXK_PAGE_VALUES, VXK_N_PAGE_KINDS };

/* Counters of a frame; zeroed before it, read by the host when it waits.  Lists take their places by atomic
 * addition: the order of pages and records differs from run to run, the map's content does not. */
struct vxk_frame_counters {
    uint64_t counts[VXK_N_COUNTS];     /* readings by reason; the host makes used ones of the rest */
    uint64_t d_active, d_leaf, d_tile; /* change of the map's totals, two's complement */
    uint32_t n_chunk, n_word,
        n_work; /* list lengths; more than a list's room: the host enlarges it and runs again */
    uint32_t n_touch_chunk, n_touch_leaf, n_hit_voxels, table_full;
    uint32_t n_band, n_group;          /* of the lists below: struct vxk_band_group */
    uint32_t n_new[VXK_N_PAGE_KINDS];  /* pages that the new versions need */
    uint32_t n_old[VXK_N_PAGE_KINDS];  /* pages that they replace */
    uint32_t at_old[VXK_N_PAGE_KINDS]; /* cursors of the retired lists */
    uint32_t n_records;
    uint32_t fits;                  /* the frame goes ahead: frame_gate */
    uint32_t go_records, go_chunks; /* n_records and n_chunk when it does, else 0 */
    uint32_t n_new_key, n_gone_chunk, n_came_chunk;
    uint32_t n_dead, go_dead; /* empty versions that are taken off, and the same when the frame fits */
    uint32_t n_woken;         /* slots without a version that got one again */
    uint32_t n_many;          /* CUDA variants: cells that many beams may meet (vxk_frame_space.many) */
    uint32_t n_faded;         /* words that decay or forgetting rewrote */
    /* Boxes of the cells with active voxels and of all chunks (coordinates + 2^31).  Lower corners are
     * complemented, so that an empty box is all zero. */
    uint32_t leaf_not_min[3], leaf_max[3], chunk_not_min[3], chunk_max[3];
};

/* Observations of one cell's voxels by several rays, for backends that add them up cell by cell. */
struct vxk_band_group {
    uint32_t first, n;   /* in the list of observations; n = 0: nothing */
    uint32_t word, cell; /* touched chunk's slot << 6 | word, cell */
    uint32_t next;       /* of the same cell, or VXK_NONE */
};

/* Work space of a frame; rooms are what the lists hold at most. */
struct vxk_frame_space {
    struct vxk_frame_counters *c;
    float *depth;                           /* [height][width] voxels; LiDAR: ranges of the bins */
    float *inverse;                         /* depth images: [height][width] 1 / depth, 0 without a surface */
    struct vxk_pixel *pixel;                /* depth images: [height][width] */
    struct vxk_sample *sample;              /* [height][width] */
    const float *weight;                    /* [height][width] by which a pixel's sample counts, or NULL: 1 */
    struct vxk_bounds *strip;               /* [height][n_tx[0]] rows of tiles of level 0 */
    struct vxk_bounds *level[VXK_N_LEVELS]; /* [n_ty][n_tx] */
    struct vxk_frame_chunk *chunk;
    uint32_t *word_of; /* [chunk][64] frame word or VXK_NONE */
    struct vxk_frame_word *word;
    uint8_t *code;      /* [word][64] VXK_CELL_* */
    uint32_t *work_of;  /* [word][64] place in the work list, where code is WORK */
    uint32_t *value_of; /* [word][64] first value of the cell's leaf in its word's new array */
    uint32_t *work;     /* frame word << 6 | cell */
    uint64_t *active;   /* [work][8] new masks */
    uint64_t *free;     /* [work][8] */
    uint8_t *seen;      /* [work][8] 1: the frame changes something in this plane */
    uint64_t *clear;    /* [work][8] LiDAR: voxels that some beam cleared */
    uint32_t *sum;      /* [work] active voxels | free voxels << 10 | changed << 20 */
    uint32_t *record;   /* [records] frame word << 6 | cell, of every leaf in a changed word */
    /* LiDAR */
    const float *beam;      /* range images: cos, sin of columns, then cos, sin of rows */
    const uint32_t *row_of; /* [VXK_ROW_STEPS] row of an elevation, from the zenith down */
    struct vxk_ray *ray;
    struct vxk_trail *trail; /* [rays] CUDA variants */
    struct vxk_task *task;   /* [work] likewise */
    uint32_t *many;          /* [work] places in the work list, likewise */
    uint64_t *bin;           /* point sets: range bits << 32 | ray, smallest wins */
    uint64_t *touch_key;     /* frame table of touched chunks */
    uint64_t *touch_mask;    /* [slot][64] touched cells */
    uint32_t *touch_rank;    /* [slot][64] touched leaves before each mask word */
    uint64_t *hit_mask;      /* [touched leaf][8] voxels that a ray's band crossed */
    uint32_t *hit_base;      /* [touched leaf] accumulators before it */
    uint64_t *hit_prefix; /* [touched leaf] hit voxels before mask word i (i = 1..7): 9 bits at 9 (i - 1) */
    uint64_t *acc;        /* [hit voxels] count << 40 | sum of (distance + 32768) */
    /* CPU (kernels/cpu/README.md), else NULL */
    uint32_t *band;               /* observations: voxel | (distance + 32768) << 9 */
    struct vxk_band_group *group; /* of them */
    float *end[3];                /* [height][end_stride] where the bins' rays end, voxels; NAN: nowhere */
    struct vxk_skew skew;
    uint32_t *dead; /* [room_chunk] versions that hold nothing */
    /* ids from the pool and back to it */
    const uint32_t *fresh[VXK_N_PAGE_KINDS];
    uint32_t *old[VXK_N_PAGE_KINDS];
    uint32_t room_chunk, room_word, room_work, touch_slots, room_touch_leaf, room_hit, room_band, room_group;
    uint32_t n_rays, end_stride;
};

/* A depth image whose lens bends, with pixels that are not to be used. */
struct vxk_clean {
    float k[5]; /* k1 k2 p1 p2 k3 of Brown and Conrady; all 0: none */
    float edge; /* share of its depth by which a pixel between two surfaces is off from both; 0: not asked */
    int32_t bent; /* some k is not 0 */
    int32_t reserved;
    const uint8_t *mask; /* [height][width] 0: not used; or NULL */
    const float *weight; /* [height][width] likewise */
    float *weight_out;   /* [height][width] the weights of `out`, where the lens bends */
    const void *raw;     /* the image as it came */
    void *out;           /* [height][width] in the same encoding, 0 where there is nothing */
};

/* What a frame brings for a map's channels: one item a reading, as they came. */
struct vxk_channels {
    const uint8_t *colour;  /* [readings][3] red, green, blue, or NULL */
    const float *intensity; /* [readings], instead of a colour, or NULL */
    const uint8_t *label;   /* [readings] 0 = none; or NULL */
    uint32_t *owner;        /* LiDAR: [hit voxels] nearness << 24 | complement of the ray; 0 = no ray */
    float intensity_scale;  /* to levels of grey */
    int32_t reserved;
    uint64_t salt; /* of the frame's rounding */
};

/* The arguments of every frame kernel. */
struct vxk_frame_args {
    struct vxk_frame f;
    struct vxk_frame_space s;
    struct vxk_grid g; /* the newest epoch */
    const void *image; /* raw payload */
    /* candidate chunks: the box lo .. lo + n (chunks relative to oc); element i is cell (i / ny nz, ...) */
    int32_t lo[3], n[3];
    /* What frame_gate lets pass: pages at hand, room for the ids of replaced pages and for new keys of the
     * table, and bytes that the map may grow by. */
    uint32_t n_fresh[VXK_N_PAGE_KINDS], room_old[VXK_N_PAGE_KINDS];
    uint64_t room_bytes;
    struct vxk_fade fade;
    struct vxk_clean clean;
    struct vxk_channels channels;
    /* commit */
    uint64_t *keys; /* the map's table, written */
    uint32_t *heads;
    struct vxk_chunk *chunks; /* the pools, written */
    struct vxk_leaf *leaves;
    uint32_t *values;
    uint32_t *colours;         /* NULL: the map has none */
    uint16_t *labels;          /* likewise */
    uint32_t value_page_bytes; /* channels included */
    uint32_t epoch;            /* of this frame */
};

#endif
