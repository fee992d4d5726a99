/*
 * topology_check.h - results of bench_topology against the columns of their shape.
 *
 * Counts are checked whole; voxels and values in windows spread evenly over the numbering, which cover all of
 * a small result.  Every check returns VX_E_INTERNAL and says in t->detail what is wrong.
 */
#ifndef BENCH_TOPOLOGY_CHECK_H
#define BENCH_TOPOLOGY_CHECK_H

#include "topology_ops.h"

/* The voxels that a grid must hold. */
struct reference {
    const struct shape *shape;
    const struct columns *columns, *without; /* those of `columns` that are not in `without` (NULL: all) */
    int level; /* 1: columns of a grid half as fine as the shape, -1: the grid is twice as fine as the columns
                */
    uint64_t n_voxels;
};
/* A batch of grids, each of a shape. */
struct batch_reference {
    uint32_t n;
    const struct shape *shape[MAX_BATCH];
};

vx_err topology_check_grid(struct topology *t, const struct reference *r);
vx_err topology_check_inject(struct topology *t, float initial);
vx_err topology_check_restrict(struct topology *t);
vx_err topology_check_prolong(struct topology *t);
vx_err topology_check_build(struct topology *t, const struct batch_reference *b);
vx_err topology_check_ijk(struct topology *t, const struct batch_reference *b);
/* which: 0 .. 3 for 7, 18, 19, 27. */
vx_err topology_check_stencil(struct topology *t, const struct batch_reference *b, int which,
                              const struct vx_convolution *c);

/* out[i] = shape_value of ijk[i]; device memory. */
vx_err topology_fill_values(struct topology *t, const int32_t *ijk, uint64_t n, float *out);

#endif
