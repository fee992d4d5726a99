/*
 * map_walk.h - one epoch of a map on the host, read over the backend's copies, with the store's invariants
 * checked.
 *
 * The walker knows the layout of body/grid.h and nothing else: it shares no code with the kernels that write
 * maps. The writer must rest while it reads.
 */
#ifndef MAP_WALK_H
#define MAP_WALK_H

#include "map_internal.h"

struct walk_leaf {
    int32_t at[3]; /* first voxel */
    uint32_t n_active;
    uint64_t active[8], free[8];
    uint32_t value[512];  /* by voxel number; 0 where not active */
    uint32_t colour[512]; /* likewise, and 0 in maps without them */
    uint16_t label[512];
};

struct walk_word { /* a word that holds something */
    int32_t at[3]; /* first voxel */
    uint32_t tick, seen;
};

struct map_walk {
    char fault[256]; /* the first broken invariant, "" when all hold */
    uint32_t n_chunks, n_leaves, n_tiles;
    uint64_t n_active;
    struct walk_leaf *leaves; /* in key, word and cell order */
    int32_t (*tiles)[3];      /* first voxels */
    struct walk_word *words;
    uint32_t n_words, room_words;
    uint32_t *ids[VX__N_KINDS], n_ids[VX__N_KINDS], room_ids[VX__N_KINDS]; /* pages in use */
    uint32_t room_leaves, room_tiles;
    int32_t chunk_min[3], chunk_max[3]; /* of the chunks that hold something */
    int32_t cell_min[3], cell_max[3];   /* of the cells with active voxels */
    uint8_t digest[32];                 /* computed here, from the host's copy */
};

/* Reads what the snapshot sees.  Free with map_walk_free. */
struct map_walk *map_walk_snapshot(struct vx_map *map, const struct vx__snapshot *s);
/* The newest epoch; also compares it with the map's totals, bounds and digest. */
struct map_walk *map_walk_newest(struct vx_map *map);
void map_walk_free(struct map_walk *w);

/* VXK_UNKNOWN, VXK_FREE or VXK_ACTIVE (with its value) of a voxel. */
int map_walk_voxel(const struct map_walk *w, int32_t x, int32_t y, int32_t z, uint32_t *value);

/*
 * Every page of the device's pools is either free, or used by exactly one of the maps (newest epoch or
 * retired): fault = "" or the first page that is not.  Also the host's account of used bytes.
 */
void device_check(struct vx_device *d, struct vx_map *const *maps, uint32_t n_maps, char fault[256]);

#endif
