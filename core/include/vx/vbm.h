/*
 * vbm.h - the VoxelBlockManager of a batch of index grids, and what runs on it voxel by voxel.
 *
 * The voxels of the batch are numbered through: those of grid g follow those of the grids before it.  A
 * sidecar of the batch is one array over these numbers.  Layout: kernels/body/vbm_block.h.
 *
 * Thread: that of the engine.  Source: Sifakis et al., "Dynamic GPU Sparse Grids and Voxel-sequential
 * Processing in NanoVDB", 2026, section 4.
 */
#ifndef VX_VBM_H
#define VX_VBM_H

#include "body/vbm.h"
#include "vx/grid.h"

struct vx_vbm {
    struct vxk_vbm view; /* for kernels: launch over view.n_blocks, by value in their arguments */
    uint64_t n_voxels;   /* of the batch */
    void *memory_, *staging_;
};

/*
 * Builds it for grids[n], n = 1 .. 256, any of them empty: one launch, queued and not waited for.  The grids
 * must live as long as *out, which vx_vbm_drop frees.
 *
 * Errors: VX_E_INVALID n; VX_E_EXHAUSTED more than 2^32 - 1 leaves or blocks, or the memory cap; VX_E_NOMEM;
 * VX_E_DEVICE.  *out is empty then.
 */
vx_err vx_vbm_build(struct vx_engine *engine, const struct vx_grid *const *grids, uint32_t n,
                    struct vx_vbm *out, struct vx_detail *detail);
/* Waits for the engine's queue and frees.  An empty one (all zero) is allowed. */
void vx_vbm_drop(struct vx_engine *engine, struct vx_vbm *vbm);

/* Coordinates of all voxels to ijk[n_voxels][3], device memory.  Waits.  Errors: VX_E_DEVICE. */
vx_err vx_vbm_ijk(struct vx_engine *engine, const struct vx_vbm *vbm, int32_t *ijk, struct vx_detail *detail);

/* The 6 face neighbours; faces and the 12 edges; three steps along each axis; all 26 neighbours. */
enum vx_stencil { VX_STENCIL_7 = 7, VX_STENCIL_18 = 18, VX_STENCIL_19 = 19, VX_STENCIL_27 = 27 };
struct vx_convolution {
    enum vx_stencil stencil;
    /* of the voxel itself; then of faces, edges and corners, or of one, two and three steps (VX_STENCIL_19)
     */
    float weight[4];
    float missing; /* value of a neighbour that the grid doesn't have */
};
/*
 * out[v] = weighted sum of in round voxel v, in one order on every backend.  in, out: [n_voxels], device
 * memory, apart from each other.  Waits.
 *
 * Errors: VX_E_INVALID the stencil, in = out; VX_E_DEVICE.
 */
vx_err vx_vbm_convolve(struct vx_engine *engine, const struct vx_vbm *vbm,
                       const struct vx_convolution *convolution, const float *in, float *out,
                       struct vx_detail *detail);

#endif
