/*
 * blocks.h - memory blocks that are kept for reuse.
 *
 * One cache serves device memory, pinned memory and plain memory: the backend says how to get and give a raw
 * block. Sizes are rounded up to an eighth of an octave, so at most an eighth is wasted and a loop whose
 * sizes vary a little soon asks the backend for nothing.
 *
 * Thread: any.
 */
#ifndef VXK_BLOCKS_H
#define VXK_BLOCKS_H

#include "vx_err.h"

#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXK_BLOCK_ALIGN = 256,
    VXK_BLOCK_OCTAVE = 8 /* size classes */,
    VXK_BLOCK_SIZES = 64 * VXK_BLOCK_OCTAVE,
    VXK_BLOCK_HEADS = 1024
};

struct vxk_block; /* blocks.c */

struct vxk_blocks {
    /* `bytes` is a multiple of VXK_BLOCK_ALIGN. Returns NULL when there is no memory. */
    void *(*raw_alloc)(void *ctx, uint64_t bytes);
    void (*raw_free)(void *ctx, void *ptr, uint64_t bytes);
    void *ctx;
    unsigned larger; /* an idle block up to this many classes above is taken before the backend is asked */
    int host;        /* the memory can be touched by the host: sanitizers are told what is free */
    pthread_mutex_t mutex;
    struct vxk_block *idle[VXK_BLOCK_SIZES]; /* by size class */
    struct vxk_block *live[VXK_BLOCK_HEADS]; /* by hash of the address */
    uint64_t live_bytes, idle_bytes;
    uint64_t n_raw; /* times that the backend was asked */
};

void vxk_blocks_init(struct vxk_blocks *b, void *(*raw_alloc)(void *, uint64_t),
                     void (*raw_free)(void *, void *, uint64_t), void *ctx, int host);
/* Gives every block back, live ones too. */
void vxk_blocks_fini(struct vxk_blocks *b);
/* Block of at least `bytes`, or NULL when there is no memory even after giving back the idle ones. */
void *vxk_blocks_take(struct vxk_blocks *b, uint64_t bytes);
/* Keeps the block for reuse; ptr is NULL or a live block of this cache. */
void vxk_blocks_give(struct vxk_blocks *b, void *ptr);
/* Bytes that the backend gave, live and idle. */
uint64_t vxk_blocks_bytes(struct vxk_blocks *b);
/* Times that the backend was asked for memory so far. */
uint64_t vxk_blocks_n_raw(struct vxk_blocks *b);
/* Gives the idle blocks back to the backend. */
void vxk_blocks_trim(struct vxk_blocks *b);

#ifdef __cplusplus
}
#endif

#endif
