/*
 * nvdb_free.h - what our own files know to be free, chunk by chunk in NanoVDB's order (internal to core).
 */
#ifndef VX__NVDB_FREE_H
#define VX__NVDB_FREE_H

#include "load.h"
#include "nvdb_input.h"

/* Free voxels of the chunk that is open. */
struct vx__nvdb_free_chunk {
    uint64_t mask[4096][8];
    uint64_t has[64]; /* a bit a cell: its mask was not given to the loader yet */
};

struct vx__nvdb_free {
    const struct vx__nvdb_input *in;
    struct vx__nvdb_cursor tiles, part;
    uint64_t tiles_at, tiles_end, part_at, part_end; /* of what comes next */
    struct vx__nvdb_free_tiles tile;                 /* the next one, where have_tile */
    struct vx__nvdb_free_leaf leaf;
    bool have_tile, have_leaf;
    struct vx__nvdb_free_chunk *chunk;
};

/* Takes the two blocks of blind data.  Free with vx__nvdb_free_fini, also after an error.  Errors:
 * VX_E_INVALID; VX_E_NOMEM. */
vx_err vx__nvdb_free_init(struct vx__nvdb_free *f, const struct vx__nvdb_input *in,
                          const struct vx__nvdb_blind *tiles, const struct vx__nvdb_blind *part);
void vx__nvdb_free_fini(struct vx__nvdb_free *f);
/* The next chunk that has something free; false: none is left. */
bool vx__nvdb_free_next(const struct vx__nvdb_free *f, int32_t at[3]);
/* Gives the loader the tiles of chunk `at`, which it has begun, and fills f->chunk. */
vx_err vx__nvdb_free_take(struct vx__nvdb_free *f, const int32_t at[3], struct vx__loader *loader);
/* Gives the loader what is left in f->chunk: cells without active voxels. */
vx_err vx__nvdb_free_rest(struct vx__nvdb_free *f, struct vx__loader *loader);

#endif
