/*
 * pool.h - the device's page pools and its memory account (internal to core).
 *
 * Three kinds of fixed pages (chunk versions, leaf pages, value pages), each a growing array with a stack of
 * free ids in device memory.  Value pages with channels beside them are of other sizes and have pools of
 * their own, made when the first map wants one; to a map they are its value pages.  The host keeps the
 * stack's height, so it knows at any time what is free; ids never travel to it.  Stack work runs on the
 * caller's queue; an event ties it to what another queue did to the stacks before: several maps share the
 * pool without a race and without a host wait.
 */
#ifndef VX__POOL_H
#define VX__POOL_H

#include "body/grid.h"
#include "vx/device.h"

#include <pthread.h>
#include <stdbool.h>

enum vx__page_kind { VX__CHUNKS, VX__LEAF_PAGES, VX__VALUE_PAGES, VX__N_KINDS };

/* What lies beside the values; also the number of the pool of value pages, 0 = no channel. */
enum { VX__COLOUR = 1, VX__LABEL = 2, VX__N_CHANNEL_SETS = 4 };
enum { VX__N_POOLS = VX__N_KINDS + VX__N_CHANNEL_SETS - 1 };

struct vx__page_pool {
    struct vxk_range pages, stack;
    struct vxk_range colours, labels; /* [units][256] beside the pages, where the pool has them */
    uint64_t unit_bytes;
    uint32_t n_units; /* committed */
    uint32_t n_free;  /* height of the stack */
};

struct vx_device {
    struct vxk_dev *dev;
    enum vxk_backend backend;
    pthread_mutex_t lock;              /* everything below */
    struct vxk_event *stacks_done;     /* the newest work on the stacks, */
    const struct vxk_queue *stacks_by; /* and whose it was (compared only) */
    struct vx__page_pool pool[VX__N_POOLS];
    uint64_t cap_bytes, page_bytes, scratch_bytes, hold_bytes, peak_bytes, n_commits;
};

/* Page size of a kind in bytes, for a map with these channels. */
uint64_t vx__page_bytes(enum vx__page_kind kind, unsigned channels);
/* The pool that gives a map with these channels its pages. */
struct vx__page_pool *vx__pool_of(struct vx_device *d, enum vx__page_kind kind, unsigned channels);
/* Makes that pool of value pages ready.  Errors: VX_E_NOMEM, VX_E_DEVICE.  Thread: any. */
vx_err vx__pool_open(struct vx_device *d, unsigned channels);

/* A list of page ids of each kind, in device memory. */
struct vx__page_lists {
    uint32_t *ids[VX__N_KINDS];
    uint32_t n[VX__N_KINDS];
    unsigned channels; /* of the map that they are for */
};

/*
 * Takes l->n[k] pages of every kind, all or none: their ids come into l->ids[k] before later work of q runs.
 * Errors: VX_E_EXHAUSTED the cap (detail says what was asked); VX_E_NOMEM; VX_E_DEVICE.  Thread: any.
 */
vx_err vx__pool_take(struct vx_device *d, const struct vx__page_lists *l, struct vxk_queue *q,
                     struct vx_detail *detail);
/* The same for as many as are free now: lowers l->n[k] to what was taken.  The last launch on q must have
 * nothing to do with pages: the ids may come while it runs. */
vx_err vx__pool_take_free(struct vx_device *d, struct vx__page_lists *l, struct vxk_queue *q);
/* Gives pages back (those of `more` too unless it is NULL) after the work that q has so far; ids may be
 * reused by later work of q. */
vx_err vx__pool_give(struct vx_device *d, const struct vx__page_lists *l, const struct vx__page_lists *more,
                     struct vxk_queue *q);

/*
 * Gives back every page that the newest versions of a table hold: n[kind] of them, as its totals say.  Needs
 * no memory: the ids go straight onto the stacks.  cursors: device memory for VX__N_KINDS counters.
 */
vx_err vx__pool_give_table(struct vx_device *d, const struct vxk_grid *g, unsigned channels,
                           uint32_t *cursors, const uint64_t n[VX__N_KINDS], struct vxk_queue *q);

/* Device memory on the account (counted against the cap).  hold: kept between calls; else scratch. */
vx_err vx__account_alloc(struct vx_device *d, bool hold, uint64_t bytes, void **out,
                         struct vx_detail *detail);
void vx__account_free(struct vx_device *d, bool hold, uint64_t bytes, void *ptr);

#endif
