/* grid_voxels.c - an index grid of coordinates. */
#include "body/index_voxels.h"
#include "grid_internal.h"

enum {
    PART_VOXELS = 1 << 22,    /* host coordinates that are uploaded at once */
    FIRST_CHUNKS = 256,       /* room where nothing else is known */
    VOXELS_A_CHUNK = 1 << 14, /* a guess for large inputs */
    MOST_FIRST_CHUNKS = 1 << 14
};
static const uint64_t MOST_VOXELS = 1ull << 33;

_Static_assert((int)VX_GRID_RANGE == (int)VXK_INDEX_RANGE, "one range");

struct source {
    const struct vx_voxels *batches;
    uint32_t n_batches;
    int32_t *staging;      /* device memory for a part of host coordinates */
    const int32_t *staged; /* what it holds, and how many of them */
    uint64_t n_staged;
};

/* Launches a kernel over all coordinates. */
static vx_err over_voxels(struct vx_engine *e, struct vx__recipe *r, enum vxk_kernel k)
{
    struct source *s = r->context;
    struct vxk_index_voxels *args = r->args;
    for (uint32_t b = 0; b < s->n_batches; b++) {
        const struct vx_voxels *v = &s->batches[b];
        uint64_t part = v->on_device ? v->n : PART_VOXELS;
        for (uint64_t at = 0; at < v->n; at += part) {
            const int32_t *from = v->ijk + 3 * at;
            args->n = v->n - at < part ? v->n - at : part;
            args->ijk = v->on_device ? from : s->staging;
            if (!v->on_device && (s->staged != from || s->n_staged != args->n)) {
                VX_TRY_RET(e->ops->upload(e->queue, s->staging, from, args->n * 12));
                s->staged = from;
                s->n_staged = args->n;
            }
            VX_TRY_RET(e->ops->launch(e->queue, k, args, sizeof *args,
                                      (uint32_t)((args->n + VXK_INDEX_RUN - 1) / VXK_INDEX_RUN)));
        }
    }
    return VX_OK;
}

static vx_err run_chunks(struct vx_engine *e, struct vx__recipe *r, struct vx_detail *detail)
{
    (void)detail;
    return over_voxels(e, r, VXK_K_index_voxels_chunks);
}

static vx_err run_leaves(struct vx_engine *e, struct vx__recipe *r, uint32_t n_leaves,
                         struct vx_detail *detail)
{
    struct vxk_index_voxels *args = r->args;
    (void)detail;
    VX_TRY_RET(e->ops->fill(e->queue, args->b.masks, 0, n_leaves * 64ull));
    VX_TRY_RET(over_voxels(e, r, VXK_K_index_voxels_leaves));
    return e->ops->launch_counted(e->queue, VXK_K_index_voxels_end, args, sizeof *args,
                                  &args->b.counts->made_leaves, 1, n_leaves);
}

static vx_err build(struct vx_engine *e, struct source *s, uint64_t n, uint64_t n_host, struct vx_grid **out,
                    struct vx_detail *detail)
{
    struct vxk_index_voxels args = {.n = 0};
    uint64_t chunks = n / VOXELS_A_CHUNK;
    struct vx__recipe r = {.args = &args,
                           .args_bytes = sizeof args,
                           .words = VXK_K_index_voxels_words,
                           .run_chunks = run_chunks,
                           .run_leaves = run_leaves,
                           .context = s,
                           .zeros = {{.at = (void **)&args.cells, .bytes_a_slot = 512},
                                     {.at = (void **)&args.chunk_of, .bytes_a_slot = 4}},
                           .most_chunks = n < VXK_INDEX_MAX_CHUNKS ? n : VXK_INDEX_MAX_CHUNKS,
                           .most_leaves = n,
                           .guess_leaves = n,
                           .source_bytes = n * 12,
                           .outside = "%u coordinates or more are outside -2^27 .. 2^27 - 1",
                           .outside_field = "ijk"};
    chunks = chunks < FIRST_CHUNKS ? FIRST_CHUNKS : chunks > MOST_FIRST_CHUNKS ? MOST_FIRST_CHUNKS : chunks;
    r.guess_chunks = e->voxel_chunks ? e->voxel_chunks : chunks;
    if (n_host)
        VX_TRY_RET(vx__engine_scratch(e, (n_host < PART_VOXELS ? n_host : PART_VOXELS) * 12,
                                      (void **)&s->staging, detail));
    VX_TRY_RET(vx__grid_build(e, &r, out, detail));
    e->voxel_chunks = (*out)->view.n_chunks + (*out)->view.n_chunks / 4 + 16;
    return VX_OK;
}

vx_err vx_grid_from_voxels(struct vx_engine *e, const struct vx_voxels *batches, uint32_t n_batches,
                           struct vx_grid **out, struct vx_detail *detail)
{
    struct source s = {.batches = batches, .n_batches = n_batches};
    uint64_t n = 0, n_host = 0;
    *out = NULL;
    if (!batches && n_batches)
        return vx_fail(detail, VX_E_INVALID, "batches", "is missing");
    for (uint32_t b = 0; b < n_batches; b++) {
        if (!batches[b].ijk && batches[b].n)
            return vx_fail(detail, VX_E_INVALID, "ijk", "batch %u has no coordinates", b);
        if (batches[b].n > MOST_VOXELS - n)
            return vx_fail(detail, VX_E_INVALID, "n",
                           "more than 2^33 coordinates; make several grids and merge them");
        n += batches[b].n;
        n_host += batches[b].on_device ? 0 : batches[b].n;
    }
    vx__engine_begin(e);
    return vx__engine_end(e, build(e, &s, n, n_host, out, detail), detail);
}
