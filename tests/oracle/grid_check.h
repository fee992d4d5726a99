/*
 * grid_check.h - what tests of index grids share: the device under test, grids of sets, the whole of a grid
 * checked.
 */
#ifndef GRID_CHECK_H
#define GRID_CHECK_H

#include "core_test.h"
#include "voxel_set.h"
#include "vx/grid.h"

extern struct vx_device *grid_device;
extern struct vx_engine *grid_engine;

/* Opens and closes them; the account must be empty at the end. */
void grid_open(uint64_t cap_bytes);
void grid_close(void);

enum { GRID_KINDS = 9 };
/* A random sorted set: boxes, scattered voxels, chunk and leaf borders, the range's ends, far clusters; kind
 * 0 is empty and 1 a single voxel. */
struct voxel_set grid_random_set(int kind, uint64_t *seed);

struct vx_grid *grid_of(const struct voxel_set *set);
/* Fails unless the grid holds exactly the set and every array of it is as index_grid.h says. */
void grid_check(const struct vx_grid *grid, const struct voxel_set *want, const char *what);
/* grid_check, then destroys the grid and frees the set. */
void grid_check_drop(struct vx_grid *grid, struct voxel_set want, const char *what);
/* Device memory with a copy of host memory; freed by vx_engine_free. */
void *grid_upload(const void *host, uint64_t bytes);
void grid_fetch(void *host, const void *device, uint64_t bytes);

#endif
