/* grid_ops.c - the operators that make a grid of grids, or of a map. */
#include "body/index_morph.h"
#include "body/index_ops.h"
#include "grid_internal.h"
#include "map_internal.h"

_Static_assert((int)VX_FACES == (int)VXK_MORPH_FACES && (int)VX_EDGES == (int)VXK_MORPH_EDGES &&
                   (int)VX_BOX == (int)VXK_MORPH_BOX && (int)VX_GRID_MAX_MERGE == (int)VXK_INDEX_MAX_MERGE,
               "one numbering");

static uint64_t leaf_bytes(const struct vx_grid *g)
{
    return g->view.n_leaves * 80ull;
}

static vx_err check_shape(enum vx_shape shape, uint32_t radius, struct vx_detail *detail)
{
    if (shape != VX_FACES && shape != VX_EDGES && shape != VX_BOX)
        return vx_fail(detail, VX_E_INVALID, "shape", "must be 6, 18 or 26, got %d", (int)shape);
    if (radius < 1 || radius > VX_GRID_MAX_RADIUS)
        return vx_fail(detail, VX_E_INVALID, "radius", "must be 1 to %d, got %u", VX_GRID_MAX_RADIUS, radius);
    if (shape != VX_BOX && radius != 1)
        return vx_fail(detail, VX_E_INVALID, "radius", "must be 1 for %d neighbours, got %u", (int)shape,
                       radius);
    return VX_OK;
}

static vx_err dilate(struct vx_engine *e, const struct vx_grid *grid, enum vx_shape shape, uint32_t radius,
                     struct vx_grid **out, struct vx_detail *detail)
{
    uint32_t n = grid->view.n_leaves, chunks = grid->view.n_chunks;
    struct vxk_index_morph args = {.g = grid->view, .shape = (uint32_t)shape, .radius = radius};
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .chunks = VXK_K_index_dilate_chunks,
                           .words = VXK_K_index_dilate_words,
                           .leaves = VXK_K_index_dilate_leaves,
                           .n_chunks = n,
                           .n_words = chunks * 64,
                           .zeros = {{.at = (void **)&args.to, .bytes = chunks * 4ull}},
                           .most_chunks = chunks * 27ull,
                           .guess_chunks = chunks < 128    ? chunks * 8ull + 64
                                           : chunks < 1024 ? chunks * 4ull
                                                           : chunks * 2ull,
                           .most_leaves = n * 27ull,
                           .guess_leaves = n * 4ull + 64,
                           .source_bytes = leaf_bytes(grid)};
    VX_TRY_RET(vx__engine_scratch(e, n * 4ull, (void **)&args.reach, detail));
    return vx__grid_build(e, &r, out, detail);
}

vx_err vx_grid_dilate(struct vx_engine *e, const struct vx_grid *grid, enum vx_shape shape, uint32_t radius,
                      struct vx_grid **out, struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, grid, detail));
    VX_TRY_RET(check_shape(shape, radius, detail));
    vx__engine_begin(e);
    return vx__engine_end(e, dilate(e, grid, shape, radius, out, detail), detail);
}

static vx_err merge(struct vx_engine *e, const struct vx_grid *const *grids, uint32_t n, struct vx_grid **out,
                    struct vx_detail *detail)
{
    struct vxk_index_merge args = {.n = n};
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .chunks = VXK_K_index_merge_chunks,
                           .words = VXK_K_index_merge_words,
                           .leaves = VXK_K_index_merge_leaves};
    uint64_t chunks = 0;
    for (uint32_t k = 0; k < n; k++) {
        args.g[k] = grids[k]->view;
        chunks += grids[k]->view.n_chunks;
        r.most_leaves += grids[k]->view.n_leaves;
        r.source_bytes += leaf_bytes(grids[k]);
    }
    r.n_chunks = (uint32_t)chunks; /* at most 8 x 2^20 */
    r.most_chunks = r.guess_chunks = chunks;
    r.guess_leaves = r.most_leaves;
    return vx__grid_build(e, &r, out, detail);
}

vx_err vx_grid_merge(struct vx_engine *e, const struct vx_grid *const *grids, uint32_t n,
                     struct vx_grid **out, struct vx_detail *detail)
{
    *out = NULL;
    if (n < 1 || n > VX_GRID_MAX_MERGE)
        return vx_fail(detail, VX_E_INVALID, "n", "must be 1 to %d, got %u", VX_GRID_MAX_MERGE, n);
    for (uint32_t k = 0; k < n; k++)
        VX_TRY_RET(vx__grid_check(e, grids[k], detail));
    vx__engine_begin(e);
    return vx__engine_end(e, merge(e, grids, n, out, detail), detail);
}

vx_err vx__grid_prune(struct vx_engine *e, const struct vx_grid *grid, const uint64_t *keep,
                      struct vx_grid **out, struct vx_detail *detail)
{
    uint32_t n = grid->view.n_leaves, chunks = grid->view.n_chunks;
    struct vxk_index_prune args = {.g = grid->view, .keep = keep};
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .chunks = VXK_K_index_prune_chunks,
                           .words = VXK_K_index_prune_words,
                           .leaves = VXK_K_index_prune_leaves,
                           .n_chunks = n,
                           .zeros = {{.at = (void **)&args.cells, .bytes = chunks * 512ull},
                                     {.at = (void **)&args.stays, .bytes = chunks * 4ull}},
                           .most_chunks = chunks,
                           .guess_chunks = chunks,
                           .most_leaves = n,
                           .guess_leaves = n,
                           .source_bytes = leaf_bytes(grid)};
    return vx__grid_build(e, &r, out, detail);
}

vx_err vx_grid_prune(struct vx_engine *e, const struct vx_grid *grid, const uint64_t *keep,
                     struct vx_grid **out, struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, grid, detail));
    if (!keep && grid->view.n_leaves)
        return vx_fail(detail, VX_E_INVALID, "keep", "is missing");
    if ((uintptr_t)keep % 16)
        return vx_fail(detail, VX_E_INVALID, "keep", "must be aligned to 16 bytes");
    vx__engine_begin(e);
    return vx__engine_end(e, vx__grid_prune(e, grid, keep, out, detail), detail);
}

static vx_err erode(struct vx_engine *e, const struct vx_grid *grid, enum vx_shape shape, uint32_t radius,
                    struct vx_grid **out, struct vx_detail *detail)
{
    struct vxk_index_erode_args args = {.g = grid->view, .shape = (uint32_t)shape, .radius = radius};
    VX_TRY_RET(vx__engine_scratch(e, grid->view.n_leaves * 64ull, (void **)&args.keep, detail));
    VX_TRY_RET(VXK_LAUNCH(e->queue, index_erode, &args, grid->view.n_leaves));
    return vx__grid_prune(e, grid, args.keep, out, detail);
}

vx_err vx_grid_erode(struct vx_engine *e, const struct vx_grid *grid, enum vx_shape shape, uint32_t radius,
                     struct vx_grid **out, struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, grid, detail));
    VX_TRY_RET(check_shape(shape, radius, detail));
    vx__engine_begin(e);
    return vx__engine_end(e, erode(e, grid, shape, radius, out, detail), detail);
}

static vx_err common(struct vx_engine *e, const struct vx_grid *a, const struct vx_grid *b, bool differ,
                     struct vx_grid **out, struct vx_detail *detail)
{
    struct vxk_index_common_args args = {.g = a->view, .other = b->view, .differ = differ};
    VX_TRY_RET(vx__engine_scratch(e, a->view.n_leaves * 64ull, (void **)&args.keep, detail));
    VX_TRY_RET(VXK_LAUNCH(e->queue, index_common, &args, a->view.n_leaves));
    return vx__grid_prune(e, a, args.keep, out, detail);
}

vx_err vx_grid_intersect(struct vx_engine *e, const struct vx_grid *a, const struct vx_grid *b,
                         struct vx_grid **out, struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, a, detail));
    VX_TRY_RET(vx__grid_check(e, b, detail));
    vx__engine_begin(e);
    return vx__engine_end(e, common(e, a, b, false, out, detail), detail);
}

vx_err vx_grid_difference(struct vx_engine *e, const struct vx_grid *a, const struct vx_grid *b,
                          struct vx_grid **out, struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, a, detail));
    VX_TRY_RET(vx__grid_check(e, b, detail));
    vx__engine_begin(e);
    return vx__engine_end(e, common(e, a, b, true, out, detail), detail);
}

vx_err vx_grid_coarsen(struct vx_engine *e, const struct vx_grid *grid, struct vx_grid **out,
                       struct vx_detail *detail)
{
    struct vxk_index_coarsen args;
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .chunks = VXK_K_index_coarsen_chunks,
                           .words = VXK_K_index_coarsen_words,
                           .leaves = VXK_K_index_coarsen_leaves};
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, grid, detail));
    args = (struct vxk_index_coarsen){.g = grid->view};
    r.n_chunks = grid->view.n_chunks;
    r.most_chunks = r.guess_chunks = grid->view.n_chunks;
    r.most_leaves = r.guess_leaves = grid->view.n_leaves;
    r.source_bytes = leaf_bytes(grid);
    vx__engine_begin(e);
    return vx__engine_end(e, vx__grid_build(e, &r, out, detail), detail);
}

vx_err vx_grid_refine(struct vx_engine *e, const struct vx_grid *grid, struct vx_grid **out,
                      struct vx_detail *detail)
{
    struct vxk_index_refine args;
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .chunks = VXK_K_index_refine_chunks,
                           .words = VXK_K_index_refine_words,
                           .leaves = VXK_K_index_refine_leaves,
                           .outside = "%u chunks of the refined grid would lie beyond +-2^27 voxels",
                           .outside_field = "grid"};
    *out = NULL;
    VX_TRY_RET(vx__grid_check(e, grid, detail));
    args = (struct vxk_index_refine){.g = grid->view};
    r.n_chunks = grid->view.n_chunks * 8; /* at most 2^23 */
    r.most_chunks = r.guess_chunks = grid->view.n_chunks * 8ull;
    r.most_leaves = r.guess_leaves = grid->view.n_leaves * 8ull;
    r.source_bytes = leaf_bytes(grid) * 4;
    vx__engine_begin(e);
    return vx__engine_end(e, vx__grid_build(e, &r, out, detail), detail);
}

static vx_err from_map(struct vx_engine *e, struct vx_map *map, const struct vx__snapshot *s,
                       enum vx_layer layer, struct vx_grid **out, struct vx_detail *detail)
{
    struct vxk_index_layer args = {.map = s->grid, .free = layer == VX_FREE};
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .chunks = VXK_K_index_layer_chunks,
                           .words = VXK_K_index_layer_words,
                           .leaves = VXK_K_index_layer_leaves};
    uint32_t *versions = NULL, n = 0;
    vx_err err;
    VX_TRY(vx__snapshot_chunks(map, s, e->queue, &versions, &n));
    args.version = versions;
    r.n_chunks = n;
    r.most_chunks = r.guess_chunks = n;
    r.most_leaves = r.guess_leaves = n * 4096ull;
    r.source_bytes = s->n_leaves * 80;
    VX_TRY(vx__grid_build(e, &r, out, detail));
fail:
    vx__scratch_free(map, versions);
    return err;
}

vx_err vx_grid_from_map(struct vx_engine *e, struct vx_map *map, enum vx_layer layer, struct vx_grid **out,
                        struct vx_detail *detail)
{
    struct vx__snapshot s;
    vx_err err;
    *out = NULL;
    if (!map || map->device != e->device)
        return vx_fail(detail, VX_E_INVALID, "map", "is missing, or lies on another device than the engine");
    if (layer != VX_ACTIVE && layer != VX_FREE)
        return vx_fail(detail, VX_E_INVALID, "layer", "must be 0 (active) or 1 (free), got %d", (int)layer);
    err = vx__snapshot_pin(map, &s);
    if (err)
        return vx_fail(detail, err, "map", "too many of its epochs are in use");
    vx__engine_begin(e);
    err = vx__engine_end(e, from_map(e, map, &s, layer, out, detail), detail);
    vx__snapshot_release(map, &s);
    return err;
}
