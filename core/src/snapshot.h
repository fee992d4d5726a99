/*
 * snapshot.h - how a reader inside core sees one epoch of a map (internal to core).
 *
 * A snapshot pins the newest published epoch: nothing that it can reach is freed or changed until it is
 * released, whatever the writer publishes meanwhile.
 */
#ifndef VX__SNAPSHOT_H
#define VX__SNAPSHOT_H

#include "body/grid.h"
#include "vx/map.h"

struct vx__snapshot {
    struct vxk_grid grid;   /* pass by value in kernel arguments */
    uint64_t epoch;         /* map epoch; grid.epoch is the same as the device counts it */
    uint64_t cleared_epoch; /* what readers keep of an older epoch says nothing about this one */
    uint64_t
        buried_epoch; /* chunks that were emptied up to here may be gone from the table: nothing says so */
    int64_t newest_stamp_ns;
    uint64_t n_leaves, n_voxels, n_chunks;
    uint32_t pin_; /* the map's */
};

/* Pins the newest epoch.  Never blocks for long.  Release exactly once, from any thread. */
vx_err vx__snapshot_pin(struct vx_map *map, struct vx__snapshot *out);
void vx__snapshot_release(struct vx_map *map, struct vx__snapshot *snapshot);
/* buried_epoch by now: it may have risen since the snapshot was taken, beside what is read through it. */
uint64_t vx__map_buried_epoch(struct vx_map *map);

/* Chunk versions that the snapshot sees and that are not empty, in key order: *versions is device memory
 * [*n], freed by the caller with vx__scratch_free.  Queue q is waited for. */
vx_err vx__snapshot_chunks(struct vx_map *map, const struct vx__snapshot *s, struct vxk_queue *q,
                           uint32_t **versions, uint32_t *n);
/* Leaf records in key, word and cell order as (index into *versions << 12 | word << 6 | cell): device memory
 * [*n]. n_chunks is at most 2^20 a call (VX_E_EXHAUSTED beyond). */
vx_err vx__snapshot_leaves(struct vx_map *map, const struct vx__snapshot *s, struct vxk_queue *q,
                           const uint32_t *versions, uint32_t n_versions, uint32_t **leaves, uint32_t *n,
                           struct vx_detail *detail);

/* Device memory that counts against the pool's cap until freed.  vx__scratch_alloc: work in progress,
 * reported as scratch; vx__hold_alloc: kept between calls (an ESDF, a cached mesh), reported as used by the
 * map. */
vx_err vx__scratch_alloc(struct vx_map *map, uint64_t bytes, void **out, struct vx_detail *detail);
void vx__scratch_free(struct vx_map *map, void *ptr);
vx_err vx__hold_alloc(struct vx_map *map, uint64_t bytes, void **out, struct vx_detail *detail);
void vx__hold_free(struct vx_map *map, void *ptr);

/* Scratch that one piece of a reader's work should stay within: a share of the cap, 64 MiB to 1 GiB. */
uint64_t vx__scratch_budget(const struct vx_map *map);

struct vxk_dev *vx__map_dev(struct vx_map *map);
/* Parameters in force, constant for the map's life. */
const struct vx_map_params *vx__map_params(struct vx_map *map);
const uint8_t *vx__map_uuid(struct vx_map *map);
/* A place for what readers keep between calls (the ESDF): created on first use, under the map's reader lock,
 * and destroyed by vx_map_destroy / emptied by vx_map_clear through `destroy`. */
struct vx__reader_state {
    struct vxk_queue *queue; /* high priority */
    void *esdf;
    void (*esdf_destroy)(struct vx_map *map, void *esdf);
    /* Gives up the epoch that the field pins between queries, if it is older than `epoch`. */
    void (*esdf_unpin)(struct vx_map *map, void *esdf, uint64_t epoch);
    void *room; /* buffers of small queries; destroyed with the map */
    void (*room_destroy)(struct vx_map *map, void *room);
};
/* Locks the map's reader side (one query at a time a map) and gives its state; unlock when done. */
vx_err vx__reader_lock(struct vx_map *map, struct vx__reader_state **out);
void vx__reader_unlock(struct vx_map *map);
/*
 * Who may look at the field besides the holder of the reader lock: who has this one.  The holder of the
 * reader lock takes it to change the field, its epoch or its pin.
 */
void vx__field_lock(struct vx_map *map);
void vx__field_unlock(struct vx_map *map);
/*
 * For one small batch beside the holder of the reader lock: `now` is a state of its own (queue and room, no
 * field), `field` the map's field, or NULL, which stays as it is meanwhile.  False, and nothing is locked,
 * when that would have to be waited for.
 */
vx_err vx__now_init(struct vx_map *map, struct vx__reader_state *now); /* makes its room */
bool vx__now_lock(struct vx_map *map, struct vx__reader_state **now, void **field);
void vx__now_unlock(struct vx_map *map);

#endif
