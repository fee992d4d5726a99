#include "topology_ops.h"

#include "topology_check.h"

#include <stdlib.h>
#include <string.h>

static const int32_t SHIFT[3] = {3, 2, 1};
/* Weights, values and what is missing are multiples of small powers of two: sums are exact in any order. */
static const struct vx_convolution CONVOLUTION = {.weight = {-6.0f, 1.0f, 0.5f, 0.25f}, .missing = 0.5f};
static const float INITIAL = -3.0f;

const char *topology_op_name(enum topology_op op)
{
    static const char *const name[N_OPS] = {
#define X(op_name) #op_name,
        TOPOLOGY_OPS(X)
#undef X
    };
    return name[op];
}

bool topology_op_is_batched(enum topology_op op)
{
    return op >= OP_vbm_build;
}

static const struct shape *shape_of(const struct topology *t, uint32_t k)
{
    return t->shape[k].columns.row ? &t->shape[k] : &t->shape[0];
}

static vx_err fail_memory(struct topology *t, const char *what)
{
    return vx_fail(&t->detail, VX_E_NOMEM, "", "no memory for %s", what);
}

/* ------------------------------------------------------------------ what operations work on */

/* A grid of the shape's points, which are moved first. */
static vx_err make_grid(struct topology *t, struct shape *s, const int32_t shift[3], struct vx_grid **out)
{
    struct vxk_queue *q = vx_engine_queue(t->engine);
    struct vx_voxels v = {.n = s->n_points, .on_device = true};
    void *points = NULL;
    vx_err err;
    for (uint64_t i = 0; shift && i < s->n_points; i++)
        for (int k = 0; k < 3; k++)
            s->point[i][k] += shift[k];
    VX_TRY(vx_engine_alloc(t->engine, s->n_points * 12 + 1, &points, &t->detail));
    VX_TRY(q->dev->ops->upload(q, points, s->point, s->n_points * 12));
    VX_TRY(q->dev->ops->wait(q));
    v.ijk = points;
    VX_TRY(vx_grid_from_voxels(t->engine, &v, 1, out, &t->detail));
fail:
    vx_engine_free(t->engine, points);
    return err;
}

vx_err topology_open(struct topology *t)
{
    const bool random = t->kind == SHAPE_RAND25 || t->kind == SHAPE_SCATTER;
    for (uint32_t k = 0; k < t->batch; k++) {
        struct shape fresh, *s = &t->shape[k];
        fresh = shape_make(t->kind, t->dim, k, true);
        vx_err err = make_grid(t, &fresh, NULL, &t->grid[k]);
        if (err == VX_OK && t->batch == 1)
            err = make_grid(t, &fresh, SHIFT, &t->other);
        shape_drop_points(&fresh);
        if (k == 0 || random)
            *s = fresh;
        else
            shape_free(&fresh);
        VX_TRY_RET(err);
    }
    return VX_OK;
}

void topology_close(struct topology *t)
{
    for (uint32_t k = 0; k < t->batch; k++) {
        vx_grid_destroy(t->grid[k]);
        if (t->shape[k].columns.row)
            shape_free(&t->shape[k]);
    }
    vx_grid_destroy(t->other);
}

/* The points on the device, in the order that was asked for. */
static vx_err prepare_points(struct topology *t)
{
    struct shape s = shape_make(t->kind, t->dim, 0, true);
    struct vxk_queue *q = vx_engine_queue(t->engine);
    vx_err err;
    if (t->scattered)
        shape_scatter_points(&s);
    VX_TRY(vx_engine_alloc(t->engine, s.n_points * 12 + 1, (void **)&t->points, &t->detail));
    VX_TRY(q->dev->ops->upload(q, t->points, s.point, s.n_points * 12));
    VX_TRY(q->dev->ops->wait(q));
    t->shape[0].n_points = s.n_points;
fail:
    shape_free(&s);
    return err;
}

/* Random bits for every leaf, and how many of them are voxels. */
static vx_err prepare_keep(struct topology *t)
{
    const struct vxk_index_grid *g = vx_grid_view(t->grid[0]);
    struct vxk_queue *q = vx_engine_queue(t->engine);
    const uint64_t n = g->n_leaves * 8ull;
    uint64_t *masks = malloc(n * 8 + 1);
    vx_err err;
    if (!masks)
        return fail_memory(t, "masks");
    VX_TRY(vx_engine_alloc(t->engine, n * 8 + 1, (void **)&t->keep, &t->detail));
    VX_TRY(q->dev->ops->download(q, masks, g->masks, n * 8));
    VX_TRY(q->dev->ops->wait(q));
    t->n_kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t keep = shape_hash(i + 12345);
        t->n_kept += (uint64_t)__builtin_popcountll(masks[i] & keep);
        masks[i] = keep;
    }
    VX_TRY(q->dev->ops->upload(q, t->keep, masks, n * 8));
    VX_TRY(q->dev->ops->wait(q));
fail:
    free(masks);
    return err;
}

static vx_err alloc_values(struct topology *t, uint64_t n, float **out)
{
    return vx_engine_alloc(t->engine, n * sizeof **out + 1, (void **)out, &t->detail);
}

/* A sidecar of a batch with shape_value of each voxel. */
static vx_err make_values(struct topology *t, const struct vx_grid *const *grids, uint32_t n, float **out)
{
    struct vx_vbm vbm;
    int32_t *ijk = NULL;
    vx_err err;
    VX_TRY_RET(vx_vbm_build(t->engine, grids, n, &vbm, &t->detail));
    VX_TRY(alloc_values(t, vbm.n_voxels, out));
    VX_TRY(vx_engine_alloc(t->engine, vbm.n_voxels * 12 + 1, (void **)&ijk, &t->detail));
    VX_TRY(vx_vbm_ijk(t->engine, &vbm, ijk, &t->detail));
    VX_TRY(topology_fill_values(t, ijk, vbm.n_voxels, *out));
fail:
    vx_engine_free(t->engine, ijk);
    vx_vbm_drop(t->engine, &vbm);
    return err;
}

static const struct vx_grid *const *all_grids(const struct topology *t)
{
    return (const struct vx_grid *const *)t->grid;
}

static vx_err prepare_batched(struct topology *t, enum topology_op op)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < t->batch; k++)
        n += vx_grid_view(t->grid[k])->n_voxels;
    if (op >= OP_stencil7)
        VX_TRY_RET(make_values(t, all_grids(t), t->batch, &t->in));
    if (op >= OP_stencil7)
        VX_TRY_RET(alloc_values(t, n, &t->out));
    if (op == OP_vbm_decode)
        VX_TRY_RET(vx_engine_alloc(t->engine, n * 12 + 1, (void **)&t->ijk, &t->detail));
    if (op != OP_vbm_build && !t->cold)
        VX_TRY_RET(vx_vbm_build(t->engine, all_grids(t), t->batch, &t->vbm, &t->detail));
    return VX_OK;
}

vx_err topology_prepare(struct topology *t, enum topology_op op)
{
    const struct vx_grid *a = t->grid[0];
    if (topology_op_is_batched(op))
        return prepare_batched(t, op);
    switch (op) {
    case OP_voxels_to_grid:
        return prepare_points(t);
    case OP_prune:
        return prepare_keep(t);
    case OP_inject:
        VX_TRY_RET(vx_grid_dilate(t->engine, a, VX_BOX, 1, &t->target, &t->detail));
        VX_TRY_RET(make_values(t, &a, 1, &t->in));
        return alloc_values(t, vx_grid_view(t->target)->n_voxels, &t->out);
    case OP_restrict:
        VX_TRY_RET(vx_grid_coarsen(t->engine, a, &t->target, &t->detail));
        VX_TRY_RET(make_values(t, &a, 1, &t->in));
        return alloc_values(t, vx_grid_view(t->target)->n_voxels, &t->out);
    case OP_prolong: {
        VX_TRY_RET(vx_grid_coarsen(t->engine, a, &t->target, &t->detail));
        const struct vx_grid *coarse = t->target;
        VX_TRY_RET(make_values(t, &coarse, 1, &t->in));
        return alloc_values(t, vx_grid_view(a)->n_voxels, &t->out);
    }
    default:
        return VX_OK;
    }
}

void topology_drop(struct topology *t)
{
    vx_grid_destroy(t->target);
    t->target = NULL;
    vx_vbm_drop(t->engine, &t->vbm);
    vx_engine_free(t->engine, t->points);
    vx_engine_free(t->engine, t->keep);
    vx_engine_free(t->engine, t->in);
    vx_engine_free(t->engine, t->out);
    vx_engine_free(t->engine, t->ijk);
    t->points = NULL;
    t->keep = NULL;
    t->in = t->out = NULL;
    t->ijk = NULL;
}

/* ------------------------------------------------------------------ calls */

static struct vx_channel floats(float *data)
{
    return (struct vx_channel){.data = data, .type = VX_V_F32, .n_components = 1};
}

static vx_err run_batched(struct topology *t, enum topology_op op)
{
    static const enum vx_stencil stencil[] = {VX_STENCIL_7, VX_STENCIL_18, VX_STENCIL_19, VX_STENCIL_27};
    struct vxk_queue *q = vx_engine_queue(t->engine);
    const bool build = op == OP_vbm_build || t->cold;
    vx_err err;
    if (build)
        VX_TRY_RET(vx_vbm_build(t->engine, all_grids(t), t->batch, &t->vbm, &t->detail));
    if (op == OP_vbm_build) {
        err = q->dev->ops->wait(q);
    } else if (op == OP_vbm_decode) {
        err = vx_vbm_ijk(t->engine, &t->vbm, t->ijk, &t->detail);
    } else {
        struct vx_convolution c = CONVOLUTION;
        c.stencil = stencil[op - OP_stencil7];
        err = vx_vbm_convolve(t->engine, &t->vbm, &c, t->in, t->out, &t->detail);
    }
    if (build)
        vx_vbm_drop(t->engine, &t->vbm);
    return err;
}

vx_err topology_run(struct topology *t, enum topology_op op)
{
    struct vx_engine *e = t->engine;
    struct vx_grid **out = &t->result, *a = t->grid[0];
    const struct vx_channel from = floats(t->in), to = floats(t->out);
    const struct vx_grid *both[2] = {a, t->other};
    if (topology_op_is_batched(op))
        return run_batched(t, op);
    switch (op) {
    case OP_voxels_to_grid: {
        const struct vx_voxels v = {.ijk = t->points, .n = t->shape[0].n_points, .on_device = true};
        return vx_grid_from_voxels(e, &v, 1, out, &t->detail);
    }
    case OP_dilate6:
        return vx_grid_dilate(e, a, VX_FACES, 1, out, &t->detail);
    case OP_dilate18:
        return vx_grid_dilate(e, a, VX_EDGES, 1, out, &t->detail);
    case OP_dilate26:
        return vx_grid_dilate(e, a, VX_BOX, 1, out, &t->detail);
    case OP_dilate_box:
        return vx_grid_dilate(e, a, VX_BOX, t->radius, out, &t->detail);
    case OP_erode6:
        return vx_grid_erode(e, a, VX_FACES, 1, out, &t->detail);
    case OP_erode18:
        return vx_grid_erode(e, a, VX_EDGES, 1, out, &t->detail);
    case OP_erode26:
        return vx_grid_erode(e, a, VX_BOX, 1, out, &t->detail);
    case OP_erode_box:
        return vx_grid_erode(e, a, VX_BOX, t->radius, out, &t->detail);
    case OP_merge:
        return vx_grid_merge(e, both, 2, out, &t->detail);
    case OP_intersect:
        return vx_grid_intersect(e, a, t->other, out, &t->detail);
    case OP_difference:
        return vx_grid_difference(e, a, t->other, out, &t->detail);
    case OP_prune:
        return vx_grid_prune(e, a, t->keep, out, &t->detail);
    case OP_coarsen:
        return vx_grid_coarsen(e, a, out, &t->detail);
    case OP_refine:
        return vx_grid_refine(e, a, out, &t->detail);
    case OP_inject:
        return vx_grid_inject(e, a, &from, t->target, &to, &INITIAL, &t->detail);
    case OP_restrict:
        return vx_grid_restrict(e, a, &from, t->target, &to, VX_MEAN, &INITIAL, &t->detail);
    default:
        return vx_grid_prolong(e, t->target, &from, a, &to, VX_NEAREST, &INITIAL, &t->detail);
    }
}

void topology_forget(struct topology *t)
{
    vx_grid_destroy(t->result);
    t->result = NULL;
}

/* ------------------------------------------------------------------ checks */

/* The voxels that an operation's result must have, as columns, or by a rule on columns of the first grid. */
static vx_err check_grid(struct topology *t, enum topology_op op)
{
    const struct shape *s = &t->shape[0];
    const struct columns *c = &s->columns;
    const uint64_t n = columns_count(c), copies = (uint64_t)s->copies;
    struct reference r = {.shape = s, .columns = c};
    struct columns made = {0};
    switch (op) {
    case OP_dilate6:
    case OP_dilate18:
    case OP_dilate26:
    case OP_dilate_box:
        made = columns_dilate(c,
                              op == OP_dilate6    ? 6
                              : op == OP_dilate18 ? 18
                                                  : 26,
                              op == OP_dilate_box ? (int)t->radius : 1);
        break;
    case OP_erode6:
    case OP_erode18:
    case OP_erode26:
    case OP_erode_box:
        made = columns_erode(c,
                             op == OP_erode6    ? 6
                             : op == OP_erode18 ? 18
                                                : 26,
                             op == OP_erode_box ? (int)t->radius : 1);
        break;
    case OP_merge:
        made = columns_merge_shifted(c, SHIFT);
        break;
    case OP_intersect:
    case OP_difference:
        made = columns_intersect_shifted(c, SHIFT);
        break;
    case OP_coarsen:
        made = columns_coarsen(c);
        r.level = 1;
        break;
    default:
        break;
    }
    r.n_voxels = copies * n;
    if (op == OP_refine) {
        r.level = -1;
        r.n_voxels = 8 * copies * n;
    } else if (op == OP_prune) {
        r.n_voxels = t->n_kept;
    } else if (op == OP_difference) {
        r.without = &made;
        r.n_voxels = copies * (n - columns_count(&made));
    } else if (made.row) {
        r.columns = &made;
        r.n_voxels = copies * columns_count(&made);
    }
    const vx_err err = topology_check_grid(t, &r);
    if (made.row)
        columns_free(&made);
    return err;
}

vx_err topology_check(struct topology *t, enum topology_op op)
{
    struct batch_reference b = {.n = t->batch};
    if (op < OP_restrict)
        return check_grid(t, op);
    if (op == OP_inject)
        return topology_check_inject(t, INITIAL);
    if (op == OP_restrict)
        return topology_check_restrict(t);
    if (op == OP_prolong)
        return topology_check_prolong(t);
    for (uint32_t k = 0; k < t->batch; k++)
        b.shape[k] = shape_of(t, k);
    if (op == OP_vbm_build)
        return topology_check_build(t, &b);
    if (op == OP_vbm_decode)
        return topology_check_ijk(t, &b);
    return topology_check_stencil(t, &b, (int)op - (int)OP_stencil7, &CONVOLUTION);
}

/* ------------------------------------------------------------------ bytes */

enum { READ_LEAF = 64, WRITE_LEAF = 80, CHUNK = 1040, READ_ALL_OF_LEAF = 84 };

static void add_grid(const struct vx_grid *g, uint32_t a_leaf, uint64_t *bytes)
{
    const struct vxk_index_grid *v = vx_grid_view(g);
    *bytes += (uint64_t)a_leaf * v->n_leaves + (uint64_t)CHUNK * v->n_chunks;
}

/*
 * The count of bytes: each array that must be read or written, once.  A grid that is read: 64 a leaf (masks)
 * and 1,040 a chunk; one that is made: 80 a leaf; where voxels are numbered too (values, VBM): 84 a leaf that
 * is read.
 */
void topology_count(const struct topology *t, enum topology_op op, struct topology_figures *f)
{
    const struct vx_grid *made = t->result                       ? t->result
                                 : t->target && op != OP_prolong ? t->target
                                                                 : t->grid[0];
    memset(f, 0, sizeof *f);
    for (uint32_t k = 0; k < t->batch; k++) {
        const struct vxk_index_grid *g = vx_grid_view(t->grid[k]);
        f->voxels_in += g->n_voxels;
        f->leaves_in += g->n_leaves;
        f->chunks_in += g->n_chunks;
    }
    const uint64_t n_blocks = f->voxels_in / VXK_VBM_WIDTH + f->chunks_in;
    if (topology_op_is_batched(op)) {
        const bool build = op == OP_vbm_build || t->cold;
        f->voxels_out = f->voxels_in;
        f->leaves_out = f->leaves_in;
        f->chunks_out = f->chunks_in;
        f->bytes = build ? 8ull * f->leaves_in + 32 * n_blocks : 0;
        if (op == OP_vbm_decode)
            f->bytes += 12 * f->voxels_in + (uint64_t)READ_ALL_OF_LEAF * f->leaves_in + 32 * n_blocks;
        if (op >= OP_stencil7)
            f->bytes += 8 * f->voxels_in + (uint64_t)READ_ALL_OF_LEAF * f->leaves_in;
        return;
    }
    if (op == OP_prolong) {
        const struct vxk_index_grid *g = vx_grid_view(t->target);
        f->voxels_in = g->n_voxels;
        f->leaves_in = g->n_leaves;
        f->chunks_in = g->n_chunks;
    }
    const struct vxk_index_grid *g = vx_grid_view(made);
    f->voxels_out = g->n_voxels;
    f->leaves_out = g->n_leaves;
    f->chunks_out = g->n_chunks;
    if (op == OP_inject || op == OP_restrict || op == OP_prolong) {
        f->bytes = 4 * (f->voxels_in + f->voxels_out) +
                   (uint64_t)READ_ALL_OF_LEAF * ((uint64_t)f->leaves_in + f->leaves_out) +
                   (uint64_t)CHUNK * ((uint64_t)f->chunks_in + f->chunks_out);
        return;
    }
    add_grid(made, WRITE_LEAF, &f->bytes);
    if (op == OP_voxels_to_grid)
        f->bytes += 12 * t->shape[0].n_points;
    else
        add_grid(t->grid[0], READ_LEAF, &f->bytes);
    if (op == OP_merge || op == OP_intersect || op == OP_difference)
        add_grid(t->other, READ_LEAF, &f->bytes);
    if (op == OP_prune)
        f->bytes += (uint64_t)READ_LEAF * f->leaves_in;
}
