/* grid_values.c - values of one index grid to another, and prune by values. */
#include "body/index_values.h"
#include "grid_internal.h"

#include <math.h>
#include <string.h>

enum { PART_LEAVES = 1 << 28 }; /* a launch: eight elements each */

_Static_assert((int)VX_V_U8 == (int)VXK_V_U8 && (int)VX_V_U32 == (int)VXK_V_U32 &&
                   (int)VX_V_F32 == (int)VXK_V_F32 && (int)VX_V_F64 == (int)VXK_V_F64,
               "one numbering");

uint32_t vx_value_bytes(enum vx_value type)
{
    return (unsigned)type < VXK_N_V ? vxk_value_bytes((uint32_t)type) : 0;
}

/* A channel as kernels read it. */
static vx_err take_channel(const struct vx_channel *c, const struct vx_grid *grid, const char *name,
                           struct vxk_index_channel *out, struct vx_detail *detail)
{
    uint32_t bytes;
    if (!c)
        return vx_fail(detail, VX_E_INVALID, name, "is missing");
    bytes = vx_value_bytes(c->type);
    if (!bytes)
        return vx_fail(detail, VX_E_INVALID, name, "no value type has the number %d", (int)c->type);
    if (c->n_components < 1)
        return vx_fail(detail, VX_E_INVALID, name, "has no component");
    if (!c->data && grid->view.n_voxels)
        return vx_fail(detail, VX_E_INVALID, name, "has no data");
    if ((uintptr_t)c->data % bytes || c->voxel_stride % bytes || c->component_stride % bytes)
        return vx_fail(detail, VX_E_INVALID, name,
                       "address and strides must be multiples of the value's %u bytes", bytes);
    *out = (struct vxk_index_channel){.data = c->data,
                                      .voxel_stride = c->voxel_stride,
                                      .component_stride = c->component_stride ? c->component_stride : bytes};
    if (!c->voxel_stride)
        out->voxel_stride = c->n_components * (uint64_t)bytes;
    return VX_OK;
}

/* What inject, restrict and prolong have in common. */
static vx_err carry(struct vx_engine *e, enum vxk_kernel k, const struct vx_grid *src,
                    const struct vx_channel *from, const struct vx_grid *dst, const struct vx_channel *to,
                    uint32_t how, const void *initial, struct vx_detail *detail)
{
    struct vxk_index_carry args = {.how = how, .fill = initial != NULL};
    uint32_t bytes, n = dst->view.n_leaves;
    struct vxk_index_channel in, result;
    VX_TRY_RET(take_channel(from, src, "from", &in, detail));
    VX_TRY_RET(take_channel(to, dst, "to", &result, detail));
    if (from->type != to->type || from->n_components != to->n_components)
        return vx_fail(detail, VX_E_INVALID, "to",
                       "must have the type and the number of components of `from`");
    bytes = vx_value_bytes(from->type);
    args.src = src->view;
    args.dst = dst->view;
    args.type = (uint32_t)from->type;
    vx__engine_begin(e);
    for (uint64_t c = 0; n && c < from->n_components; c += VXK_INDEX_MAX_COMPONENTS) {
        uint64_t left = from->n_components - c;
        args.n_components =
            left < VXK_INDEX_MAX_COMPONENTS ? (uint32_t)left : (uint32_t)VXK_INDEX_MAX_COMPONENTS;
        args.from = in;
        args.from.data += c * in.component_stride;
        args.to = result;
        args.to.data += c * result.component_stride;
        for (uint32_t i = 0; initial && i < args.n_components; i++) {
            args.initial[i] = 0;
            memcpy(&args.initial[i], (const char *)initial + (c + i) * bytes, bytes);
        }
        for (uint32_t leaf = 0; leaf < n; leaf += n - leaf < PART_LEAVES ? n - leaf : PART_LEAVES) {
            vx_err err;
            args.first_leaf = leaf;
            err = e->ops->launch(e->queue, k, &args, sizeof args,
                                 (n - leaf < PART_LEAVES ? n - leaf : PART_LEAVES) * 8);
            if (err)
                return vx__engine_end(e, err, detail);
        }
    }
    return vx__engine_end(e, e->ops->wait(e->queue), detail);
}

vx_err vx_grid_inject(struct vx_engine *e, const struct vx_grid *src, const struct vx_channel *from,
                      const struct vx_grid *dst, const struct vx_channel *to, const void *initial,
                      struct vx_detail *detail)
{
    VX_TRY_RET(vx__grid_check(e, src, detail));
    VX_TRY_RET(vx__grid_check(e, dst, detail));
    return carry(e, VXK_K_index_inject, src, from, dst, to, 0, initial, detail);
}

static vx_err check_arithmetic(const struct vx_channel *from, struct vx_detail *detail)
{
    if (from && vx_value_bytes(from->type) == 8)
        return vx_fail(detail, VX_E_INVALID, "from", "has a 64-bit type, which no arithmetic is done on");
    return VX_OK;
}

vx_err vx_grid_restrict(struct vx_engine *e, const struct vx_grid *fine, const struct vx_channel *from,
                        const struct vx_grid *coarse, const struct vx_channel *to, enum vx_restrict how,
                        const void *initial, struct vx_detail *detail)
{
    VX_TRY_RET(vx__grid_check(e, fine, detail));
    VX_TRY_RET(vx__grid_check(e, coarse, detail));
    VX_TRY_RET(check_arithmetic(from, detail));
    if ((unsigned)how > VX_ANY)
        return vx_fail(detail, VX_E_INVALID, "how", "must be 0 (mean) to 3 (any), got %d", (int)how);
    return carry(e, VXK_K_index_restrict, fine, from, coarse, to, (uint32_t)how, initial, detail);
}

vx_err vx_grid_prolong(struct vx_engine *e, const struct vx_grid *coarse, const struct vx_channel *from,
                       const struct vx_grid *fine, const struct vx_channel *to, enum vx_prolong how,
                       const void *initial, struct vx_detail *detail)
{
    VX_TRY_RET(vx__grid_check(e, coarse, detail));
    VX_TRY_RET(vx__grid_check(e, fine, detail));
    if ((unsigned)how > VX_TRILINEAR)
        return vx_fail(detail, VX_E_INVALID, "how", "must be 0 (nearest) or 1 (trilinear), got %d", (int)how);
    if (how == VX_TRILINEAR)
        VX_TRY_RET(check_arithmetic(from, detail));
    return carry(e, VXK_K_index_prolong, coarse, from, fine, to, (uint32_t)how, initial, detail);
}

static vx_err prune_values(struct vx_engine *e, const struct vx_grid *grid,
                           struct vxk_index_compare_args *args, struct vx_grid **out,
                           struct vx_detail *detail)
{
    uint32_t n = grid->view.n_leaves;
    VX_TRY_RET(vx__engine_scratch(e, n * 64ull, (void **)&args->keep, detail));
    for (uint32_t leaf = 0; leaf < n; leaf += n - leaf < PART_LEAVES ? n - leaf : PART_LEAVES) {
        args->first_leaf = leaf;
        VX_TRY_RET(
            VXK_LAUNCH(e->queue, index_compare, args, (n - leaf < PART_LEAVES ? n - leaf : PART_LEAVES) * 8));
    }
    return vx__grid_prune(e, grid, args->keep, out, detail);
}

vx_err vx_grid_prune_values(struct vx_engine *e, const struct vx_grid *grid, const struct vx_channel *values,
                            enum vx_compare op, double threshold, struct vx_grid **out,
                            struct vx_detail *detail)
{
    struct vxk_index_compare_args args;
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, grid, detail));
    memset(&args, 0, sizeof args);
    VX_TRY_RET(take_channel(values, grid, "values", &args.from, detail));
    if (values->n_components != 1)
        return vx_fail(detail, VX_E_INVALID, "values", "must have one component, has %u",
                       values->n_components);
    if ((unsigned)op > VX_NOT_EQUAL)
        return vx_fail(detail, VX_E_INVALID, "op", "must be 0 (less) to 5 (not equal), got %d", (int)op);
    if (isnan(threshold))
        return vx_fail(detail, VX_E_INVALID, "threshold", "is not a number");
    if (values->type == VX_V_U64 && !(threshold >= 0 && threshold < 0x1p64 && threshold == floor(threshold)))
        return vx_fail(detail, VX_E_INVALID, "threshold", "must be a whole number in 0 .. 2^64 - 1, got %g",
                       threshold);
    args.g = grid->view;
    args.threshold = threshold;
    args.whole = values->type == VX_V_U64 ? (uint64_t)threshold : 0;
    args.type = (uint32_t)values->type;
    args.op = (uint32_t)op;
    vx__engine_begin(e);
    return vx__engine_end(e, prune_values(e, grid, &args, out, detail), detail);
}
