/*
 * work.h - scratch blocks of one piece of work, freed together (internal to core).
 *
 * The first refusal sticks: later requests return NULL at once, so that a caller asks for all it needs and
 * looks at `err` once.
 */
#ifndef VX__WORK_H
#define VX__WORK_H

#include "snapshot.h"

enum { VX__WORK_BLOCKS = 40 };

struct vx__work {
    struct vx_map *map;
    struct vxk_queue *q;
    struct vx_detail *detail; /* may be NULL */
    vx_err err;
    uint32_t n;
    void *block[VX__WORK_BLOCKS];
};

void vx__work_init(struct vx__work *w, struct vx_map *map, struct vxk_queue *q, struct vx_detail *detail);
/* n items of `size` bytes of device memory (at least one byte), or NULL with w->err set. */
void *vx__work_get(struct vx__work *w, uint64_t n, uint64_t size);
/* The same, every byte set to `byte`. */
void *vx__work_filled(struct vx__work *w, uint64_t n, uint64_t size, int byte);
/* Takes over a block that vx__scratch_alloc gave. */
void vx__work_adopt(struct vx__work *w, void *block);
/* Waits for the queue and frees all blocks but the first `keep`; forgets a refusal. */
void vx__work_drop(struct vx__work *w, uint32_t keep);
/* Reads device memory; waits for the queue. */
vx_err vx__work_read(struct vx__work *w, void *dst, const void *src_dev, uint64_t bytes);

#endif
