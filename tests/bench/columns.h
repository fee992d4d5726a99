/*
 * columns.h - a set of voxels as runs along z in columns (x, y), and what the grid operators make of it.
 *
 * The benchmark's reference: it shares nothing with the grids, and it counts 368 M voxels in seconds because
 * a surface is a run or two a column.  Work is spread over all threads of the machine.
 */
#ifndef BENCH_COLUMNS_H
#define BENCH_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run { /* voxels lo .. hi - 1 */
    int32_t lo, hi;
};
/* A list of runs that grows. */
struct runs {
    struct run *run;
    uint32_t n, room;
};
/* Adds one; empty ones are left out. */
void runs_add(struct runs *r, int32_t lo, int32_t hi);

/* The columns of one x: runs [start[y], start[y + 1]). */
struct column_row {
    uint32_t *start;
    struct runs runs;
};
struct columns {
    int32_t x0, y0, nx, ny;
    struct column_row *row; /* [nx] */
};

/* Calls fn for i = 0 .. n - 1 on all threads. */
void bench_parallel(uint64_t n, void (*fn)(void *context, uint64_t i), void *context);

/* Columns whose runs `fill` adds, in ascending order and apart from each other. */
struct columns columns_make(int32_t x0, int32_t y0, int32_t nx, int32_t ny,
                            void (*fill)(void *context, int32_t x, int32_t y, struct runs *out),
                            void *context);
void columns_free(struct columns *c);
uint64_t columns_count(const struct columns *c);
bool columns_contain(const struct columns *c, int32_t x, int32_t y, int32_t z);

/* shape: 6, 18 or 26 neighbours with radius 1, or 26 with any radius: a box. */
struct columns columns_dilate(const struct columns *c, int shape, int radius);
struct columns columns_erode(const struct columns *c, int shape, int radius);
struct columns columns_coarsen(const struct columns *c);
/* c together with itself shifted, and what both have. */
struct columns columns_merge_shifted(const struct columns *c, const int32_t shift[3]);
struct columns columns_intersect_shifted(const struct columns *c, const int32_t shift[3]);

#endif
