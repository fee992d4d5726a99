/*
 * nvdb_gather.h - an epoch's chunks in NanoVDB's order, in host memory, some at a time (internal to core).
 */
#ifndef VX__NVDB_GATHER_H
#define VX__NVDB_GATHER_H

#include "body/load.h"
#include "vx/nvdb.h"
#include "work.h"

struct vx__nvdb_chunk { /* 32 bytes */
    int32_t at[3];      /* chunk coordinates */
    uint32_t version;
    uint32_t n_leaves; /* with active voxels */
    uint32_t n_active;
    uint32_t n_part; /* cells with some, but not only, free voxels */
    uint32_t n_tile_words;
};

/* All chunks that hold something. */
struct vx__nvdb_list {
    struct vx__nvdb_chunk *chunk; /* in NanoVDB's order */
    uint32_t n;
    uint64_t n_leaves, n_active, n_part, n_tile_words, n_lower, n_upper;
};

/* Some chunks with all they hold. */
struct vx__nvdb_batch {
    uint32_t first, n;                   /* of the list */
    struct vxk_load_survey_word *survey; /* [n][64] */
    uint32_t *leaf_from;                 /* [n + 1] first leaf of a chunk */
    uint32_t *leaf;                  /* [n_leaves] chunk of the batch << 12 | word << 6 | cell, ascending */
    struct vxk_load_masks_out *mask; /* [n_leaves] */
    uint32_t *value_from;            /* [n_leaves + 1] */
    uint32_t *value;
    uint32_t *colour, *label; /* beside the values; NULL: the map has none */
    uint32_t n_leaves;
};

struct vx__nvdb_gather {
    struct vx_map *map;
    struct vxk_queue *q;
    const struct vx__snapshot *snapshot;
    struct vx_detail *detail;
    struct vx__nvdb_list list;
    struct vx__nvdb_batch batch;
    uint32_t shrink; /* batches are 2^shrink times smaller than they might be */
};

/* Lists the chunks.  Free with vx__nvdb_gather_fini, also after an error.  Errors: VX_E_NOMEM; VX_E_EXHAUSTED
 * scratch; VX_E_DEVICE. */
vx_err vx__nvdb_gather_init(struct vx__nvdb_gather *g, struct vx_map *map, struct vxk_queue *q,
                            const struct vx__snapshot *snapshot, struct vx_detail *detail);
void vx__nvdb_gather_fini(struct vx__nvdb_gather *g);
/* The batch behind the last one into g->batch; n = 0 at the end. */
vx_err vx__nvdb_gather_next(struct vx__nvdb_gather *g);

#endif
