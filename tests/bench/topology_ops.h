/*
 * topology_ops.h - the operations that bench_topology times: what they work on, how they are called, checked
 * and counted.
 */
#ifndef BENCH_TOPOLOGY_OPS_H
#define BENCH_TOPOLOGY_OPS_H

#include "topology_shape.h"
#include "vx/vbm.h"

#define TOPOLOGY_OPS(X)                                                                                      \
    X(voxels_to_grid)                                                                                        \
    X(dilate6)                                                                                               \
    X(dilate18)                                                                                              \
    X(dilate26)                                                                                              \
    X(dilate_box)                                                                                            \
    X(erode6)                                                                                                \
    X(erode18)                                                                                               \
    X(erode26)                                                                                               \
    X(erode_box)                                                                                             \
    X(merge)                                                                                                 \
    X(intersect)                                                                                             \
    X(difference)                                                                                            \
    X(prune)                                                                                                 \
    X(coarsen)                                                                                               \
    X(refine)                                                                                                \
    X(restrict)                                                                                              \
    X(prolong)                                                                                               \
    X(inject)                                                                                                \
    X(vbm_build)                                                                                             \
    X(vbm_decode)                                                                                            \
    X(stencil7)                                                                                              \
    X(stencil18)                                                                                             \
    X(stencil19)                                                                                             \
    X(stencil27)

enum topology_op {
#define X(name) OP_##name,
    TOPOLOGY_OPS(X)
#undef X
        N_OPS
};
const char *topology_op_name(enum topology_op op);
/* One of a batch of grids: those from vbm_build on. */
bool topology_op_is_batched(enum topology_op op);

enum { MAX_BATCH = VXK_VBM_MAX_GRIDS };

struct topology {
    /* what was asked for */
    enum shape_kind kind;
    int32_t dim;
    bool scattered, cold;
    uint32_t radius, batch;

    struct vx_device *device;
    struct vx_engine *engine;
    struct vx_detail detail;
    struct shape shape[MAX_BATCH]; /* those of random kinds differ; of the others there is one */
    struct vx_grid *grid[MAX_BATCH];
    struct vx_grid *other; /* second operand: the first moved by (3, 2, 1) */
    struct vx_grid *target;
    int32_t *points; /* device */
    uint64_t *keep;
    uint64_t n_kept;
    float *in, *out; /* sidecars of what the operation reads and writes */
    int32_t *ijk;
    struct vx_vbm vbm;

    struct vx_grid *result; /* of the last run */
};

/* What one run read and made, and the bytes that had to move. */
struct topology_figures {
    uint64_t voxels_in, voxels_out, bytes;
    uint32_t leaves_in, chunks_in, leaves_out, chunks_out;
};

vx_err topology_open(struct topology *t);
void topology_close(struct topology *t);
/* Makes what the operation needs; topology_drop frees it. */
vx_err topology_prepare(struct topology *t, enum topology_op op);
void topology_drop(struct topology *t);
/* The call that is timed; it ends with a synchronisation.  Frees nothing of its result. */
vx_err topology_run(struct topology *t, enum topology_op op);
/* Frees the result of a run. */
void topology_forget(struct topology *t);
/* Compares the result with the reference; VX_E_INTERNAL and words where it is wrong. */
vx_err topology_check(struct topology *t, enum topology_op op);
void topology_count(const struct topology *t, enum topology_op op, struct topology_figures *f);

#endif
