/*
 * grid_internal.h - index grids inside core: the engine, scratch memory of a call, how an operator makes a
 * grid.
 */
#ifndef VX__GRID_INTERNAL_H
#define VX__GRID_INTERNAL_H

#include "body/index_build.h"
#include "pool.h"
#include "vx/grid.h"

enum { VX__GRID_SCRATCH = 16 };

struct vx__engine_block {
    struct vx__engine_block *next;
    void *ptr;
    uint64_t bytes;
};

struct vx_engine {
    struct vx_device *device;
    const struct vxk_ops *ops;
    struct vxk_queue *queue;
    struct vxk_index_counts *host; /* pinned: what a call reads back */
    /* scratch of the call in progress */
    uint32_t n_scratch;
    struct vx__engine_block scratch[VX__GRID_SCRATCH];
    uint64_t scratch_bytes;
    struct vx_engine_stats stats;
    uint32_t voxel_chunks; /* most chunks that vx_grid_from_voxels met: room to begin with */
    pthread_mutex_t lock;  /* blocks */
    struct vx__engine_block *blocks;
};

struct vx_grid {
    struct vx_device *device;
    struct vxk_index_grid view;
    void *chunk_block, *leaf_block;
    uint64_t chunk_bytes, leaf_bytes;
};

/* A call begins with vx__engine_begin and ends with vx__engine_end, which waits for the queue where the call
 * failed and frees all scratch memory; it returns err. */
void vx__engine_begin(struct vx_engine *e);
vx_err vx__engine_end(struct vx_engine *e, vx_err err, struct vx_detail *detail);
/* Scratch of the call, at least one byte, contents undefined. */
vx_err vx__engine_scratch(struct vx_engine *e, uint64_t bytes, void **out, struct vx_detail *detail);
/* Frees the scratch blocks but the first `keep`; the queue was waited for. */
void vx__engine_scratch_drop(struct vx_engine *e, uint32_t keep);

/* An array of the operator that is zero when the chunk stage begins. */
struct vx__grid_zeros {
    void **at;             /* gets its address, in the operator's arguments */
    uint64_t bytes;        /* fixed size */
    uint64_t bytes_a_slot; /* and so much for each slot of the table of keys found */
};

/*
 * How one operator makes a grid (kernels/body/index_build.h: steps 1, 3 and 5).  args begins with a struct
 * vxk_index_build, which vx__grid_build fills.
 */
struct vx__recipe {
    void *args;
    size_t args_bytes;
    enum vxk_kernel chunks, words, leaves;
    uint32_t n_chunks; /* elements of `chunks` */
    uint32_t n_words;  /* elements of `words`; 0: every word of the result */
    /* In place of the launches of `chunks` and `leaves`, where those are more than one. */
    vx_err (*run_chunks)(struct vx_engine *e, struct vx__recipe *r, struct vx_detail *detail);
    vx_err (*run_leaves)(struct vx_engine *e, struct vx__recipe *r, uint32_t n_leaves,
                         struct vx_detail *detail);
    void *context;
    struct vx__grid_zeros zeros[2];
    uint64_t most_chunks, most_leaves;   /* of the result */
    uint64_t guess_chunks, guess_leaves; /* room to begin with, where the most is much more */
    uint64_t source_bytes;               /* of the inputs, to judge what room is much */
    const char *outside;                 /* words of the refusal when counts.n_outside isn't 0 */
    const char *outside_field;
};

vx_err vx__grid_build(struct vx_engine *e, struct vx__recipe *recipe, struct vx_grid **out,
                      struct vx_detail *detail);
/* vx__grid_build after a prune by keep[8 n_leaves]. */
vx_err vx__grid_prune(struct vx_engine *e, const struct vx_grid *grid, const uint64_t *keep,
                      struct vx_grid **out, struct vx_detail *detail);
/* VX_E_INVALID where an argument belongs to another device. */
vx_err vx__grid_check(const struct vx_engine *e, const struct vx_grid *grid, struct vx_detail *detail);

#endif
