/*
 * random_map.h - small random maps for the oracles.
 */
#ifndef RANDOM_MAP_H
#define RANDOM_MAP_H

#include "grid_fixture.h"

/* Fills a box of `size` voxels a side from `corner`: TSDF noise, free voxels, unknown voxels and whole free
 * cells, in shares that `style` chooses (0 dense noise, 1 sparse noise, 2 smooth blobs, 3 lone voxels). */
void random_map_fill(struct grid_fixture *f, uint64_t *seed, const int32_t corner[3], int32_t size,
                     int style);
/* The signed distance of a ball, in a band of `band` voxels: values are distance * unit; beyond the band free
 * outside and unknown inside. */
void random_map_ball(struct grid_fixture *f, const double centre[3], double radius, double band, double unit);

#endif
