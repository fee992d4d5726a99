/*
 * topology_shape.h - the sets of voxels that the grid operators are timed on (TARGETS: topology operators).
 *
 * shellT   spherical shell, T voxels thick, inscribed in a cube of `dim`
 * rand25   a random quarter of a cube of `dim`
 * scatter  1 M random voxels in a cube of `dim` (no more than one in 64), duplicates kept
 * tiles    64 cubes of 10^3 voxels, `dim` apart along each axis
 */
#ifndef BENCH_TOPOLOGY_SHAPE_H
#define BENCH_TOPOLOGY_SHAPE_H

#include "columns.h"

enum shape_kind { SHAPE_SHELL3, SHAPE_SHELL7, SHAPE_RAND25, SHAPE_SCATTER, SHAPE_TILES, SHAPE_KINDS };
enum { SHAPE_TILES_A_SIDE = 4, SHAPE_TILE = 10, SHAPE_AT = 2048 };

struct shape {
    enum shape_kind kind;
    int32_t dim;
    uint32_t seed;          /* of the random ones */
    struct columns columns; /* of tiles: the first one */
    int32_t copies;         /* how often the columns are there: 64 for tiles, else 1 */
    int32_t (*point)[3];    /* [n_points], ordered by x, y, z (scatter: as drawn) */
    uint64_t n_points;
};

const char *shape_name(enum shape_kind kind);
int32_t shape_default_dim(enum shape_kind kind);

/* with_points: the list too, which shape_drop_points frees. */
struct shape shape_make(enum shape_kind kind, int32_t dim, uint32_t seed, bool with_points);
void shape_drop_points(struct shape *s);
void shape_free(struct shape *s);
/* The points in an order without locality. */
void shape_scatter_points(struct shape *s);

/* A voxel of one of the copies moved to the first (for reference sets made of the columns). */
void shape_fold(const struct shape *s, const int32_t v[3], int32_t out[3]);
/* A whole number from -512 to 511 for each voxel: sums of a few are exact. */
float shape_value(int32_t x, int32_t y, int32_t z);
uint64_t shape_hash(uint64_t x);

#endif
