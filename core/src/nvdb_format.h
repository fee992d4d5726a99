/*
 * nvdb_format.h - the bytes of a NanoVDB file (ABI 32), little endian, as this machine's structs (internal to
 * core).
 *
 * File:  segments of { file header | a meta record and a name for each grid | the grids }.
 * Grid:  grid head | tree head | root | tiles | upper nodes | lower nodes | leaves | blind heads | blind
 * data. Nodes are breadth first: children of node i before those of node i + 1, in the order of their slots.
 */
#ifndef VX__NVDB_FORMAT_H
#define VX__NVDB_FORMAT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the structs below are the file's bytes");

#define VX__NVDB_MAGIC0 0x304244566f6e614eull /* "NanoVDB0": file and grid, what old tools know */
#define VX__NVDB_MAGIC1 0x314244566f6e614eull /* "NanoVDB1": grid */
#define VX__NVDB_MAGIC2 0x324244566f6e614eull /* "NanoVDB2": file */

enum {
    VX__NVDB_MAJOR = 32,
    VX__NVDB_VERSION = 32 << 21 | 9 << 10 | 2,       /* what we write */
    VX__NVDB_LAST_NODE_CRC = 32 << 21 | 6 << 10 | 0, /* up to here the checksum's tail went over nodes */

    VX__NVDB_FLOAT = 1, /* grid and data types */
    VX__NVDB_UINT32 = 10,
    VX__NVDB_RGBA8 = 12,
    VX__NVDB_INDEX = 19,
    VX__NVDB_ON_INDEX = 20,

    VX__NVDB_CLASS_UNKNOWN = 0,
    VX__NVDB_CLASS_LEVEL_SET = 1,
    VX__NVDB_CLASS_FOG = 2,
    VX__NVDB_CLASS_INDEX = 8,

    VX__NVDB_HAS_BBOX = 1 << 1, /* flags of grids and nodes */
    VX__NVDB_BREADTH_FIRST = 1 << 5,
    VX__NVDB_LEAF_STATS = 1 << 4,

    VX__NVDB_SEMANTIC_LEVEL_SET = 10,
    VX__NVDB_DATA_CHANNEL = 4, /* class of blind data: one item an index */

    VX__NVDB_BLOCK = 4096, /* bytes that a checksum's tail takes at a time */
    VX__NVDB_HEAD = 736,   /* grid head and tree head */
    VX__NVDB_TILE = 32,
    VX__NVDB_NAME = 256
};

struct vx__nvdb_box { /* of voxels, both ends inside; min > max: none */
    int32_t min[3], max[3];
};

struct vx__nvdb_file { /* 16 */
    uint64_t magic;
    uint32_t version;
    uint16_t n_grids, codec;
};

struct vx__nvdb_meta { /* 176; the name follows */
    uint64_t grid_bytes, file_bytes, name_key, n_voxels;
    uint32_t type, class_;
    double world_min[3], world_max[3];
    struct vx__nvdb_box box;
    double voxel_size[3];
    uint32_t name_bytes; /* with its NUL */
    uint32_t n_nodes[4]; /* leaves, lower, upper, root */
    uint32_t n_tiles[3];
    uint16_t codec, n_blind;
    uint32_t version;
};

struct vx__nvdb_map { /* 264 */
    float mat_f[9], inv_f[9], vec_f[3], taper_f;
    double mat[9], inv[9], vec[3], taper;
};

struct vx__nvdb_grid { /* 672 */
    uint64_t magic;
    uint32_t head_crc, tail_crc;
    uint32_t version, flags, index, n_grids;
    uint64_t grid_bytes;
    char name[VX__NVDB_NAME];
    struct vx__nvdb_map map;
    double world_min[3], world_max[3], voxel_size[3];
    uint32_t class_, type;
    int64_t blind_at; /* from the grid's start */
    uint32_t n_blind, data0;
    uint64_t n_values, data2; /* index grids: active voxels + 1 */
};

struct vx__nvdb_tree {   /* 64 */
    int64_t node_at[4];  /* first leaf, lower, upper, root, from here */
    uint32_t n_nodes[3]; /* leaves, lower, upper */
    uint32_t n_tiles[3];
    uint64_t n_voxels;
};

struct vx__nvdb_head {
    struct vx__nvdb_grid grid;
    struct vx__nvdb_tree tree;
};

struct vx__nvdb_root_index { /* 96 */
    struct vx__nvdb_box box;
    uint32_t n_tiles, pad;
    uint64_t background, stats[4], pad2[3];
};
struct vx__nvdb_root_float { /* 64 */
    struct vx__nvdb_box box;
    uint32_t n_tiles;
    float background, stats[4];
    uint32_t pad[4];
};

struct vx__nvdb_tile { /* 32 */
    uint64_t key;      /* z >> 12 | y >> 12 << 21 | x >> 12 << 42, each of 20 bits */
    int64_t child;     /* from the root's start; 0 = a tile of one value */
    uint32_t state, pad;
    uint64_t value;
};

struct vx__nvdb_upper { /* 270400: 32^3 lower nodes, 4096^3 voxels */
    struct vx__nvdb_box box;
    uint64_t flags;
    uint64_t value_mask[512], child_mask[512];
    uint64_t stats[4];
    int64_t table[32768]; /* child: from this node's start */
};

struct vx__nvdb_lower { /* 33856: 16^3 leaves, 128^3 voxels */
    struct vx__nvdb_box box;
    uint64_t flags;
    uint64_t value_mask[64], child_mask[64];
    uint64_t stats[4];
    int64_t table[4096];
};

struct vx__nvdb_leaf { /* 80, then what depends on the type */
    int32_t min[3];    /* & ~7 = the leaf's first voxel */
    uint8_t dif[3], flags;
    uint64_t mask[8];
};
struct vx__nvdb_leaf_index { /* 96 */
    struct vx__nvdb_leaf head;
    uint64_t first, prefix;
};
struct vx__nvdb_leaf_float { /* 2144 */
    struct vx__nvdb_leaf head;
    float stats[4];
    float value[512];
};

struct vx__nvdb_blind { /* 288 */
    int64_t at;         /* of the data, from here */
    uint64_t n;
    uint32_t item_bytes, semantic, class_, type;
    char name[VX__NVDB_NAME];
};

_Static_assert(sizeof(struct vx__nvdb_file) == 16 && sizeof(struct vx__nvdb_meta) == 176, "file");
_Static_assert(sizeof(struct vx__nvdb_map) == 264 && sizeof(struct vx__nvdb_grid) == 672, "grid");
_Static_assert(sizeof(struct vx__nvdb_head) == VX__NVDB_HEAD, "tree");
_Static_assert(sizeof(struct vx__nvdb_root_index) == 96 && sizeof(struct vx__nvdb_root_float) == 64, "root");
_Static_assert(sizeof(struct vx__nvdb_tile) == VX__NVDB_TILE, "tile");
_Static_assert(sizeof(struct vx__nvdb_upper) == 270400 && sizeof(struct vx__nvdb_lower) == 33856, "nodes");
_Static_assert(sizeof(struct vx__nvdb_leaf_index) == 96 && sizeof(struct vx__nvdb_leaf_float) == 2144,
               "leaf");
_Static_assert(sizeof(struct vx__nvdb_blind) == 288, "blind");

/* ------------------------------------------------------------------ our own blind data */

#define VX__NVDB_OURS   "vx:map" /* struct vx__nvdb_ours: the file holds all of a map */
#define VX__NVDB_VALUE  "vx:value"
#define VX__NVDB_COLOUR "vx:colour"
#define VX__NVDB_LABEL  "vx:label"
#define VX__NVDB_TILES  "vx:tile"
#define VX__NVDB_FREE   "vx:free"

enum { VX__NVDB_OURS_VERSION = 1 };

struct vx__nvdb_ours {      /* 64 */
    uint32_t version, mode; /* enum vx_mode */
    double voxel_size_m, origin_m[3], truncation_voxels, esdf_max_distance_m;
    uint32_t weighting; /* enum vx_weighting */
    uint32_t reserved;
};
/* Free tiles of 32^3 voxels, a bit a cell (x << 4 | y << 2 | z of the cell in the block). */
struct vx__nvdb_free_tiles { /* 24 */
    int32_t at[3];           /* first voxel */
    uint32_t reserved;
    uint64_t cells;
};
/* Free voxels of a cell of 8^3 that is not free as a whole. */
struct vx__nvdb_free_leaf { /* 80 */
    int32_t at[3];          /* first voxel */
    uint32_t reserved;
    uint64_t mask[8];
};
_Static_assert(sizeof(struct vx__nvdb_ours) == 64, "ours");
_Static_assert(sizeof(struct vx__nvdb_free_tiles) == 24 && sizeof(struct vx__nvdb_free_leaf) == 80, "ours");

/* Slot of a voxel's leaf in its lower node, of its lower node in its upper node, and back. */
static inline uint32_t vx__nvdb_lower_slot(const int32_t at[3])
{
    return (uint32_t)(at[0] & 127) >> 3 << 8 | (uint32_t)(at[1] & 127) >> 3 << 4 |
           (uint32_t)(at[2] & 127) >> 3;
}
static inline uint32_t vx__nvdb_upper_slot(const int32_t at[3])
{
    return (uint32_t)(at[0] & 4095) >> 7 << 10 | (uint32_t)(at[1] & 4095) >> 7 << 5 |
           (uint32_t)(at[2] & 4095) >> 7;
}
/* Our place (word << 6 | cell) of the leaf in slot `slot` of a lower node. */
static inline uint32_t vx__nvdb_place(uint32_t slot)
{
    uint32_t x = slot >> 8, y = slot >> 4 & 15, z = slot & 15;
    return (x >> 2 << 4 | y >> 2 << 2 | z >> 2) << 6 | ((x & 3) << 4 | (y & 3) << 2 | (z & 3));
}

/*
 * The order in which NanoVDB numbers what lies at two chunks (chunk coordinates): < 0, 0, > 0.  Root tiles in
 * signed (x, y, z) order, then slots of the upper node.
 */
static inline int vx__nvdb_order(const int32_t a[3], const int32_t b[3])
{
    for (int k = 0; k < 3; k++)
        if (a[k] >> 5 != b[k] >> 5)
            return a[k] >> 5 < b[k] >> 5 ? -1 : 1;
    for (int k = 0; k < 3; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

/* Box of the voxels in the mask, which is not empty, of the leaf whose first voxel is `at`. */
static inline struct vx__nvdb_box vx__nvdb_mask_box(const uint64_t mask[8], const int32_t at[3])
{
    struct vx__nvdb_box b;
    uint64_t slices = 0, rows = 0; /* a byte for each y; a bit for each z */
    int32_t lo = 8, hi = 0;
    for (int32_t x = 0; x < 8; x++) {
        slices |= mask[x];
        if (mask[x]) {
            lo = x < lo ? x : lo;
            hi = x;
        }
    }
    for (int y = 0; y < 8; y++)
        rows |= slices >> 8 * y & 255;
    b.min[0] = at[0] + lo;
    b.max[0] = at[0] + hi;
    b.min[1] = at[1] + __builtin_ctzll(slices) / 8;
    b.max[1] = at[1] + (63 - __builtin_clzll(slices)) / 8;
    b.min[2] = at[2] + __builtin_ctzll(rows);
    b.max[2] = at[2] + 63 - __builtin_clzll(rows);
    return b;
}

/* Red, green, blue and opaque of a voxel's colour, as others see it; 0 where there is none. */
uint32_t vx__nvdb_rgba(uint32_t colour);
/* CRC-32 (0xEDB88320) of n bytes behind those that gave `crc`; start with 0. */
uint32_t vx__nvdb_crc32(uint32_t crc, const void *bytes, uint64_t n);

#endif
