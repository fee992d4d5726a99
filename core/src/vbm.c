/* vbm.c - the VoxelBlockManager of a batch of index grids. */
#include "vx/vbm.h"
#include "grid_internal.h"

#include <string.h>

_Static_assert((int)VX_STENCIL_7 == VXK_SUM_FACES && (int)VX_STENCIL_18 == VXK_SUM_EDGES &&
                   (int)VX_STENCIL_19 == VXK_SUM_AXES && (int)VX_STENCIL_27 == VXK_SUM_BOX,
               "one list");

/* What the grids of a batch come to; their list, with what is before each, to `list` (NULL: not wanted). */
struct totals {
    uint64_t voxels, leaves, chunks;
};

static struct totals add_up(const struct vx_grid *const *grids, uint32_t n, struct vxk_vbm_grid *list)
{
    struct totals t = {0, 0, 0};
    for (uint32_t k = 0; k < n; k++) {
        const struct vxk_index_grid *g = vx_grid_view(grids[k]);
        if (list) {
            list[k].g = *g;
            list[k].voxel = t.voxels;
            list[k].leaf = (uint32_t)t.leaves;
            list[k].chunk = (uint32_t)t.chunks;
        }
        t.voxels += g->n_voxels;
        t.leaves += g->n_leaves;
        t.chunks += g->n_chunks;
    }
    return t;
}

/* Several grids: their list goes to the device, from memory that stays until the vbm is dropped. */
static vx_err upload_list(struct vx_engine *engine, const struct vx_grid *const *grids, uint32_t n,
                          struct vx_vbm *vbm, struct vxk_vbm_grid *list)
{
    struct vxk_queue *q = vx_engine_queue(engine);
    const uint64_t bytes = n * sizeof *list;
    VX_TRY_RET(q->dev->ops->alloc_host(q->dev, bytes, &vbm->staging_));
    (void)add_up(grids, n, vbm->staging_);
    vbm->view.grids = list;
    return q->dev->ops->upload(q, list, vbm->staging_, bytes);
}

vx_err vx_vbm_build(struct vx_engine *engine, const struct vx_grid *const *grids, uint32_t n,
                    struct vx_vbm *out, struct vx_detail *detail)
{
    struct vxk_queue *q = vx_engine_queue(engine);
    struct vxk_vbm_build_args args;
    vx_err err;
    memset(out, 0, sizeof *out);
    if (n == 0 || n > VXK_VBM_MAX_GRIDS)
        return vx_fail(detail, VX_E_INVALID, "n", "a batch has 1 to %d grids, got %u", VXK_VBM_MAX_GRIDS, n);
    for (uint32_t k = 0; k < n; k++)
        VX_TRY_RET(vx__grid_check(engine, grids[k], detail));
    const struct totals t = add_up(grids, n, NULL);
    const uint64_t n_blocks = t.chunks ? t.voxels / VXK_VBM_WIDTH + t.chunks : 0;
    if (t.leaves > UINT32_MAX || n_blocks > UINT32_MAX)
        return vx_fail(detail, VX_E_EXHAUSTED, "grids",
                       "%llu leaves and %llu blocks are more than a batch may "
                       "have (2^32 - 1): split it",
                       (unsigned long long)t.leaves, (unsigned long long)n_blocks);
    out->n_voxels = t.voxels;
    out->view.n_grids = n;
    out->view.n_blocks = (uint32_t)n_blocks;
    out->view.n_leaves = (uint32_t)t.leaves;
    out->view.n_chunks = (uint32_t)t.chunks;
    (void)add_up(grids, 1, &out->view.one);
    if (!n_blocks)
        return VX_OK;
    const uint64_t blocks_bytes = n_blocks * sizeof *out->view.blocks;
    VX_TRY(vx_engine_alloc(engine, blocks_bytes + (n > 1 ? n * sizeof(struct vxk_vbm_grid) : 0),
                           &out->memory_, detail));
    out->view.blocks = out->memory_;
    if (n > 1)
        VX_TRY(
            upload_list(engine, grids, n, out, (struct vxk_vbm_grid *)((char *)out->memory_ + blocks_bytes)));
    args.v = out->view;
    VX_TRY(VXK_LAUNCH(q, vbm_build, &args, (uint32_t)t.leaves));
    return VX_OK;

fail:
    vx_vbm_drop(engine, out);
    if (err == VX_E_DEVICE)
        vx_fail(detail, err, "", "%s", q->dev->ops->queue_error_text(q));
    return err;
}

void vx_vbm_drop(struct vx_engine *engine, struct vx_vbm *vbm)
{
    struct vxk_queue *q = vx_engine_queue(engine);
    if (vbm->memory_) {
        (void)q->dev->ops->wait(q); /* poisoned: nothing runs any more */
        vx_engine_free(engine, vbm->memory_);
    }
    if (vbm->staging_)
        q->dev->ops->free_host(q->dev, vbm->staging_);
    memset(vbm, 0, sizeof *vbm);
}

/* The end of a call that launched: waits, and says what the device said. */
static vx_err finish(struct vxk_queue *q, vx_err err, struct vx_detail *detail)
{
    if (err == VX_OK)
        err = q->dev->ops->wait(q);
    if (err != VX_OK)
        vx_fail(detail, err, "", "%s", q->dev->ops->queue_error_text(q));
    return err;
}

vx_err vx_vbm_ijk(struct vx_engine *engine, const struct vx_vbm *vbm, int32_t *ijk, struct vx_detail *detail)
{
    struct vxk_queue *q = vx_engine_queue(engine);
    const struct vxk_vbm_ijk_args args = {.v = vbm->view, .ijk = ijk};
    return finish(q, VXK_LAUNCH(q, vbm_ijk, &args, vbm->view.n_blocks), detail);
}

vx_err vx_vbm_convolve(struct vx_engine *engine, const struct vx_vbm *vbm,
                       const struct vx_convolution *convolution, const float *in, float *out,
                       struct vx_detail *detail)
{
    struct vxk_queue *q = vx_engine_queue(engine);
    struct vxk_vbm_convolve_args args = {.v = vbm->view,
                                         .in = in,
                                         .out = out,
                                         .missing = convolution->missing,
                                         .kind = (uint32_t)convolution->stencil};
    switch (convolution->stencil) {
    case VX_STENCIL_7:
    case VX_STENCIL_18:
    case VX_STENCIL_19:
    case VX_STENCIL_27:
        break;
    default:
        return vx_fail(detail, VX_E_INVALID, "stencil", "must be 7, 18, 19 or 27, got %d",
                       (int)convolution->stencil);
    }
    if (in == out && vbm->n_voxels)
        return vx_fail(detail, VX_E_INVALID, "out", "must be another array than in");
    memcpy(args.w, convolution->weight, sizeof args.w);
    return finish(q, VXK_LAUNCH(q, vbm_convolve, &args, vbm->view.n_blocks), detail);
}
