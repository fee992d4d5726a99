/*
 * esdf.h - the distance field that a map's readers keep (internal to core).
 *
 * It belongs to one epoch.  A query that finds a newer one brings it up to date in place: only the leaves
 * that changed sites reach are computed again.  What is refused before the first leaf is written leaves the
 * field as it was; what fails later drops it, and the next query builds it anew.
 */
#ifndef VX__ESDF_H
#define VX__ESDF_H

#include "body/esdf_world.h"
#include "snapshot.h"
#include "vx/query.h"

struct vx__esdf {
    struct vxk_esdf view; /* pass by value in kernel arguments */
    uint64_t epoch;
    bool ready;  /* it is the field of `epoch` */
    bool pinned; /* `pin` is an epoch of it, for queries to whom that is new enough */
    struct vx__snapshot pin;
    uint64_t refreshed_ns;      /* by the clock of the query that last found it up to date */
    uint32_t n_leaves;          /* in use */
    uint32_t n_numbers, n_free; /* leaf numbers given out so far; those to be used again */
    uint32_t n_chunks, max_chunks;
    uint32_t n_pages, max_pages;
    uint32_t room;                  /* dirty cells that an update expects */
    uint64_t bytes;                 /* device memory held */
    uint64_t n_updates, n_computed; /* updates that computed leaves, and how many leaves */

    /* device; see vxk_esdf_args.  Arrays of one block go together. */
    uint64_t *keys; /* one block */
    uint32_t *index;
    uint32_t *table; /* one block */
    struct vxk_outline *outline;
    uint64_t *chunk_key;
    uint32_t *near, *version;
    uint8_t *held;
    uint16_t **page_list; /* one block; a copy of pages */
    uint32_t *free_leaf;
    struct vxk_esdf_counters *n;

    uint16_t **pages;                 /* host array of device blocks */
    struct vxk_esdf_counters *n_host; /* pinned */
};

/* R of a map in voxels: 1 .. VXK_ESDF_MAX_R. */
uint32_t vx__esdf_radius(const struct vx_map_params *params);
/*
 * The field of the snapshot's epoch, brought up to date when the kept one is of another epoch.
 *
 * rs: the locked reader state, owner of the field.  out: valid until the lock is given back.
 * Errors: VX_E_EXHAUSTED it does not fit; VX_E_CANCELLED; VX_E_NOMEM; VX_E_DEVICE.  The field is then of an
 * older epoch or gone; *out is NULL.  Thread: the holder of the reader lock; blocks.
 */
vx_err vx__esdf_refresh(struct vx_map *map, struct vx__reader_state *rs, const struct vx__snapshot *s,
                        const struct vx_query_options *options, const struct vx__esdf **out,
                        struct vx_detail *detail);
/* Keeps the epoch of a field that was just brought up to date: takes over the snapshot's pin. */
void vx__esdf_pin(struct vx_map *map, struct vx__reader_state *rs, const struct vx__snapshot *s,
                  uint64_t now_ns);
/* Drops the field: the next refresh builds it from nothing. */
void vx__esdf_drop(struct vx_map *map, struct vx__reader_state *rs);
/* A number that fields with the same leaves and values share, on every backend.  Waits for the queue. */
vx_err vx__esdf_digest(struct vx_map *map, struct vx__reader_state *rs, uint64_t *out);
/* True when the caller of a query gave it up. */
bool vx__cancelled(const struct vx_query_options *options);

#endif
