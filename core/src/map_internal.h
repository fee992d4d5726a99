/*
 * map_internal.h - a map's parts (internal to core's chunk store and frame pipeline).
 *
 * Writer state is touched by the writer's thread only.  What readers need (epoch, table, totals, pins,
 * retired pages) is under `lock`, held for a few instructions at a time.
 */
#ifndef VX__MAP_INTERNAL_H
#define VX__MAP_INTERNAL_H

#include "body/frame_types.h"
#include "pool.h"
#include "snapshot.h"

enum { VX__MAX_PINS = 256 };

/* A growing device array on the scratch account. */
struct vx__array {
    void *ptr;
    uint64_t bytes;
};

/* The beam table in `beam`, and what it was made for. */
struct vx__beam_cache {
    uint32_t *host; /* pinned: the table, then the elevations */
    uint64_t host_bytes;
    bool on_device; /* the device array holds it */
    enum vx_sensor sensor;
    uint32_t width, height;
    double first_azimuth_rad, azimuth_step_rad;
};

/* Epoch behind which no frame is taken. */
#define VX__MAX_FRAME_EPOCH (UINT32_MAX - 1024u)

/* What a commit replaced: given back once no pin is older than `epoch`. */
struct vx__retired {
    struct vx__retired *next;
    uint32_t epoch;
    uint32_t n[VX__N_KINDS];
    struct vx__array ids[VX__N_KINDS];
    void *keys, *heads; /* a replaced table, or NULL */
    uint32_t table_slots;
    bool whole; /* vx_map_clear: the pages n[] are those of the table's versions, ids[] is empty */
};

struct vx__totals {
    uint64_t n_active, n_leaf, n_tile, n_chunk;
    uint64_t n_pages[VX__N_KINDS];                                 /* of the newest epoch */
    uint32_t leaf_min[3], leaf_max[3], chunk_min[3], chunk_max[3]; /* as vxk_frame_counters */
};

/* The frame pipeline's memory, kept from frame to frame; names as in vxk_frame_space. */
struct vx__workspace {
    struct vxk_frame_counters *host; /* pinned */
    struct vx__array zeroed;         /* counters, touch_key, touch_mask: what a frame starts from at 0 */
    struct vx__array image, beam, depth, inverse, pixel, sample, strip, level[VXK_N_LEVELS], ray, bin;
    struct vx__array chunk, word_of, word, code, work_of, value_of, record, work, active, free_, seen, sum;
    struct vx__array touch_rank, hit_mask, hit_base, hit_prefix, acc, clear, band, group, end, trail, task,
        many;
    struct vx__array fresh[VX__N_KINDS], old[VX__N_KINDS];
    uint32_t room_chunk, room_word, room_work, touch_slots, room_touch_leaf, room_hit, room_band, room_group;
    /* Pages that the next frame takes ahead, and room for the ids of those that it replaces: a little more
     * than the last one needed. */
    uint32_t ahead[VX__N_KINDS], room_old[VX__N_KINDS];
    struct vx__beam_cache beams;
    struct vx__array dead, clean, mask, weight, weight_clean;
    struct vx__array tint, tag,
        owner; /* colours (or intensities) and labels of the readings; whose voxels are */
    struct vx__array skew_table, skew_time, skew_column, skew_origin;
    struct vx__skew_table *skew_host; /* of the last scan with several poses, or NULL */
};

/* Decay and forgetting: the clock, the sweep, what is protected. */
struct vx__fade {
    int64_t tick_ns;       /* a sixteenth of the half-life; 0: nothing decays */
    int64_t clock_ns;      /* sensor time that has passed */
    uint64_t swept;        /* buckets swept so far, all rounds together */
    uint32_t tick;         /* of the newest commit */
    int64_t next_clock_ns; /* the same three, once the frame is in */
    uint64_t next_swept;
    uint32_t next_tick, due_n;
    uint32_t n_regions, last_id;
    struct vx_region region[VX_MAX_REGIONS];     /* under lock */
    struct vxk_region on_device[VX_MAX_REGIONS]; /* their form for kernels */
    struct vx__array regions;
};

struct vx_map {
    struct vx_device *device;
    char name[VX_NAME_MAX + 1];
    uint8_t uuid[16];
    struct vx_map_params params;
    unsigned channels; /* VX__COLOUR | VX__LABEL */
    uint32_t esdf_radius;

    /* writer */
    struct vxk_queue *queue;
    struct vx__workspace ws;
    struct vx__fade fade;
    uint64_t *keys; /* table, device */
    uint32_t *heads;
    uint32_t n_slots, n_keys;
    uint32_t n_asleep; /* keys without a version */

    pthread_mutex_t lock;
    uint32_t epoch;
    uint32_t cleared_epoch; /* of the last vx_map_clear */
    uint32_t buried_epoch;  /* chunks that were emptied up to here may be off the table */
    int64_t newest_stamp_ns;
    bool has_stamp; /* a frame since the last clear */
    uint64_t n_frames, n_refused;
    struct vx__totals totals;
    uint32_t pin_epoch[VX__MAX_PINS], pin_count[VX__MAX_PINS];
    struct vx__retired *retired, **retired_end;
    struct vx__retired *given; /* back in the pools; the queue may still read their lists (writer only) */
    uint64_t retired_bytes;
    uint64_t array_bytes; /* of all vx__array; atomic */

    pthread_mutex_t reader_lock;
    struct vx__reader_state reader;
    pthread_rwlock_t field_lock; /* snapshot.h */
    pthread_mutex_t now_lock;
    struct vx__reader_state now; /* of small queries beside the reader */
    pthread_mutex_t held_lock;   /* sizes of scratch and held blocks, so that frees need no size */
    struct vx__block *blocks;
};

/* Adds up what was handed out by vx__hold_alloc and vx__scratch_alloc. */
void vx__blocks_sum(struct vx_map *map, uint64_t *held, uint64_t *scratch);

/* Grows *array to at least `bytes` (contents are lost).  Work that uses the old block must be over. */
vx_err vx__array_ensure(struct vx_map *map, struct vx__array *array, uint64_t bytes,
                        struct vx_detail *detail);
void vx__array_free(struct vx_map *map, struct vx__array *array);

/* Bytes of pages. */
uint64_t vx__map_bytes(const struct vx_map *map, const uint64_t n_pages[VX__N_KINDS]);

/* The newest epoch as kernels read it.  Writer's thread, or under lock. */
struct vxk_grid vx__map_grid(const struct vx_map *map);

/* Makes room for `more` keys; the old table is retired.  Writer. */
vx_err vx__table_reserve(struct vx_map *map, uint32_t more, struct vx_detail *detail);
/* Takes over *r (allocated with calloc) as replaced by the newest epoch. */
void vx__retire(struct vx_map *map, struct vx__retired *r);
/* Gives back what no pin can see any more, and `rest` (may be NULL).  Writer. */
vx_err vx__retired_drain(struct vx_map *map, const struct vx__page_lists *rest);
/* Frees the lists of what was given back.  Writer, when all work of the queue is over. */
void vx__retired_sweep(struct vx_map *map);

/* workspace.h has the rest */
vx_err vx__workspace_init(struct vx_map *map);
/* Gives back the work space's device memory; the next frame starts with small lists again. */
void vx__workspace_drop(struct vx_map *map);
void vx__workspace_fini(struct vx_map *map);

#endif
