/*
 * voxel_set.h - a set of voxels as a plain sorted array of coordinates, and what each grid operator means on
 * it.
 *
 * Slow, on the host, and independent of the kernels: it shares no code and no constant with them.  The order
 * is that of an index grid's numbers: chunk of 128^3, block of 32^3, cell of 8^3, voxel, each by x, then y,
 * then z.
 */
#ifndef VOXEL_SET_H
#define VOXEL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct voxel {
    int32_t at[3];
};
struct voxel_set {
    struct voxel *v;
    size_t n, room;
    bool sorted;
};

/* Adds one; the set is no longer sorted. */
void vs_add(struct voxel_set *s, int64_t x, int64_t y, int64_t z);
/* Adds the box [lo, hi) with probability `density`. */
void vs_add_box(struct voxel_set *s, const int32_t lo[3], const int32_t hi[3], double density,
                uint64_t *seed);
/* Sorts and drops duplicates. */
void vs_sort(struct voxel_set *s);
void vs_free(struct voxel_set *s);
struct voxel_set vs_copy(const struct voxel_set *s);
/* Index of a voxel in a sorted set, or -1. */
ptrdiff_t vs_find(const struct voxel_set *s, int64_t x, int64_t y, int64_t z);
bool vs_equal(const struct voxel_set *a, const struct voxel_set *b);

/* Results are sorted; inputs must be.  shape 6, 18, 26 as in vx/grid.h.  Voxels beyond the range are left
 * out. */
struct voxel_set vs_dilate(const struct voxel_set *s, int shape, int radius);
struct voxel_set vs_erode(const struct voxel_set *s, int shape, int radius);
struct voxel_set vs_merge(const struct voxel_set *const *sets, int n);
struct voxel_set vs_intersect(const struct voxel_set *a, const struct voxel_set *b);
struct voxel_set vs_difference(const struct voxel_set *a, const struct voxel_set *b);
struct voxel_set vs_coarsen(const struct voxel_set *s);
struct voxel_set vs_refine(const struct voxel_set *s);

#endif
