/* mesh_job.c - marching cubes over a set of cells, whole or in batches. */
#include "mesh_job.h"

#include "query_ask.h"

#include <string.h>

enum {
    MOST_WEIGHT = 255,
    FIRST_BATCH = 65536, /* leaves; halved until the scratch fits */
    SMALLEST_BATCH = 64,
    MOST_OF_A_LEAF = 5 * 512, /* triangles; vertices are fewer */
    A_LEAF_BYTES = sizeof(struct vxk_mesh_leaf) + sizeof(struct vxk_records) + 128 + 27 * 4 /* staged */
};

enum { TARGETS, SOURCES };

/* What a staged batch has on the device. */
struct stage {
    uint32_t first, n;
    struct vxk_records *records;
    uint8_t *signs;
    uint32_t *link;
    struct vxk_mesh_leaf *leaf;
};

static vx_err claim(struct vx__mesh_job *j, int to, const struct stage *t, uint32_t neighbours)
{
    struct vxk_mesh_claim_args a = {.c = j->set,
                                    .slot = j->level[to].slot,
                                    .claimed = j->level[to].list,
                                    .n = j->count + to,
                                    .first = t->first,
                                    .neighbours = neighbours};

    if (to == TARGETS)
        return VXK_LAUNCH(j->q, mesh_claim, &a, t->n * neighbours);
    a.list = j->level[TARGETS].list;
    return VXK_LAUNCH_COUNTED(j->q, mesh_claim, &a, j->count + TARGETS, neighbours, j->n_leaves * neighbours);
}

static vx_err number(struct vx__mesh_job *j, int level, uint32_t release)
{
    struct vxk_cells_number_args a = {
        .list = j->level[level].list, .slot = j->level[level].slot, .release = release};

    return VXK_LAUNCH_COUNTED(j->q, cells_number, &a, j->count + level, 1, j->n_leaves);
}

static vx_err unstage(struct vx__mesh_job *j, uint32_t keep)
{
    vx__work_drop(&j->work, keep);
    VX_TRY_RET(number(j, TARGETS, 1));
    return number(j, SOURCES, 1);
}

/* Makes the masks of the targets from the sources, of which there are n[]. */
static vx_err make_masks(struct vx__mesh_job *j, struct stage *t, const uint32_t n[2])
{
    struct vx__work *w = &j->work;

    t->records = vx__work_get(w, n[SOURCES], sizeof *t->records);
    t->signs = vx__work_get(w, n[SOURCES], 128);
    t->link = vx__work_get(w, n[TARGETS] * 27ull, sizeof *t->link);
    t->leaf = vx__work_get(w, n[TARGETS], sizeof *t->leaf);
    VX_TRY_RET(w->err);

    struct vxk_cells_lookup_args look = {.grid = j->snapshot.grid,
                                         .chunk_key = j->set.chunk_key,
                                         .place = j->set.place,
                                         .list = j->level[SOURCES].list,
                                         .out = t->records};
    struct vxk_mesh_signs_args signs = {.samples = j->samples, .records = t->records, .signs = t->signs};
    struct vxk_mesh_link_args link = {.c = j->set,
                                      .list = j->level[TARGETS].list,
                                      .slot = j->level[SOURCES].slot,
                                      .link = t->link,
                                      .neighbours = 27};
    struct vxk_mesh_masks_args masks = {.signs = t->signs, .link = t->link, .out = t->leaf};
    struct vxk_mesh_sums_args sums = {.leaf = t->leaf};
    VX_TRY_RET(VXK_LAUNCH(j->q, cells_lookup, &look, n[SOURCES]));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_signs, &signs, n[SOURCES] * 64));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_link, &link, n[TARGETS] * 27));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_masks, &masks, n[TARGETS] * 8));
    return VXK_LAUNCH(j->q, mesh_sums, &sums, n[TARGETS]);
}

/* Makes the masks of a batch's leaves; above: also of those that own the batch's upper edges. */
static vx_err make_stage(struct vx__mesh_job *j, struct stage *t, bool above)
{
    uint32_t n[2];

    VX_TRY_RET(j->q->dev->ops->fill(j->q, j->count, 0, sizeof n));
    VX_TRY_RET(claim(j, TARGETS, t, above ? 8 : 1));
    VX_TRY_RET(number(j, TARGETS, 0));
    VX_TRY_RET(claim(j, SOURCES, t, 27));
    VX_TRY_RET(number(j, SOURCES, 0));
    VX_TRY_RET(vx__work_read(&j->work, n, j->count, sizeof n));
    return make_masks(j, t, n);
}

vx_err vx__mesh_cancelled(const struct vx__mesh_job *j)
{
    return vx__cancelled(j->options)
               ? vx_fail(j->detail, VX_E_CANCELLED, "", "given up while the mesh was made")
               : VX_OK;
}

/* Calls `work` for all batches, each smaller than the last when it found no room. */
static vx_err for_batches(struct vx__mesh_job *j, bool above,
                          vx_err (*work)(struct vx__mesh_job *, struct stage *))
{
    uint32_t keep = j->work.n;

    for (uint32_t first = 0; first < j->n_leaves;) {
        uint32_t left = j->n_leaves - first;
        struct stage t = {.first = first, .n = left < j->size ? left : j->size};
        vx_err err;
        VX_TRY_RET(vx__mesh_cancelled(j));
        err = make_stage(j, &t, above);
        if (err == VX_OK)
            err = work(j, &t);
        VX_TRY_RET(unstage(j, keep));
        if (err == VX_OK) {
            first += t.n;
            continue;
        }
        if (err != VX_E_EXHAUSTED || t.n <= SMALLEST_BATCH)
            return err;
        j->size = t.n / 2 > SMALLEST_BATCH ? t.n / 2 : SMALLEST_BATCH;
    }
    return VX_OK;
}

static vx_err count_batch(struct vx__mesh_job *j, struct stage *t)
{
    struct vxk_mesh_counts_args a = {.leaf = t->leaf,
                                     .slot = j->level[TARGETS].slot,
                                     .vertices = j->vertices,
                                     .triangles = j->triangles,
                                     .c = j->set,
                                     .near = j->near,
                                     .first = t->first};

    return VXK_LAUNCH(j->q, mesh_counts, &a, t->n);
}

/* The lists that batches are made of. */
static vx_err make_lists(struct vx__mesh_job *j)
{
    struct vx__work *w = &j->work;

    for (int i = 0; i < 2; i++) {
        j->level[i].slot = vx__work_filled(w, j->n_leaves, sizeof *j->level[i].slot, 0xff);
        j->level[i].list = vx__work_get(w, j->n_leaves, sizeof *j->level[i].list);
    }
    j->count = vx__work_get(w, 2, sizeof *j->count);
    return w->err;
}

/* The lower corner of all chunks. */
static void find_origin(struct vx__mesh_job *j)
{
    for (uint32_t i = 0; i < j->n_chunks; i++) {
        int32_t k[3];
        vxk_key_xyz(j->keys[i], &k[0], &k[1], &k[2]);
        for (int a = 0; a < 3; a++)
            if (!i || k[a] * 128 < j->origin[a])
                j->origin[a] = k[a] * 128;
    }
}

static bool has_tints(const struct vx__mesh_job *j)
{
    const struct vx_map_params *params = vx__map_params(j->map);

    return params->colour || params->label;
}

/* Numbers of vertices and triangles; the counts become running sums. */
static vx_err sum_up(struct vx__mesh_job *j, uint64_t n[2])
{
    const struct vxk_ops *ops = j->q->dev->ops;
    const bool fits = j->n_leaves < UINT32_MAX / MOST_OF_A_LEAF; /* running sums say it all */
    uint64_t *total = vx__work_get(&j->work, 2, sizeof *total);
    uint32_t *last = j->landing;

    VX_TRY_RET(j->work.err);
    if (!fits) {
        VX_TRY_RET(ops->sum_u32(j->q, j->vertices, total, j->n_leaves));
        VX_TRY_RET(ops->sum_u32(j->q, j->triangles, total + 1, j->n_leaves));
    }
    VX_TRY_RET(ops->scan_u32(j->q, j->vertices, j->vertices, j->n_leaves));
    VX_TRY_RET(ops->scan_u32(j->q, j->triangles, j->triangles, j->n_leaves));
    if (!fits)
        return vx__work_read(&j->work, n, total, 2 * sizeof *n);
    VX_TRY_RET(ops->download(j->q, last, j->vertices + j->n_leaves, sizeof last[0]));
    VX_TRY_RET(ops->download(j->q, last + 1, j->triangles + j->n_leaves, sizeof last[1]));
    VX_TRY_RET(ops->wait(j->q));
    n[0] = last[0];
    n[1] = last[1];
    return VX_OK;
}

/* Running sums, and arrays for as much. */
static vx_err make_room(struct vx__mesh_job *j)
{
    uint64_t n[2];
    vx_err err;

    VX_TRY_RET(sum_up(j, n));
    if (!j->packed)
        find_origin(j);
    if (n[0] > UINT32_MAX || n[1] > UINT32_MAX)
        return vx_fail(
            j->detail, VX_E_EXHAUSTED, "",
            "the mesh would have %llu vertices and %llu triangles; a mesh holds at most 4294967295 of each",
            (unsigned long long)n[0], (unsigned long long)n[1]);
    j->n_vertices = (uint32_t)n[0];
    j->n_triangles = (uint32_t)n[1];
    if (!n[0])
        return VX_OK;
    if (j->packed) {
        j->pack = vx__work_get(&j->work, n[0], sizeof *j->pack);
        j->tint = has_tints(j) ? vx__work_get(&j->work, n[0], sizeof *j->tint) : NULL;
        j->triangle = vx__work_get(&j->work, n[1], 12);
        return j->work.err;
    }
    /* Pinned, and one block: copies come at the full speed of the bus. */
    err = j->q->dev->ops->alloc_host(j->q->dev, n[0] * 24 + n[1] * 12, &j->memory);
    if (err != VX_OK)
        return vx_fail(j->detail, err, "", "no memory for %llu vertices and %llu triangles",
                       (unsigned long long)n[0], (unsigned long long)n[1]);
    j->vertex = j->memory;
    j->normal = j->vertex + n[0] * 3;
    j->triangle = (uint32_t *)(void *)(j->normal + n[0] * 3);
    return VX_OK;
}

/* Vertices base .. base + n. */
static vx_err emit_vertices(struct vx__mesh_job *j, const struct stage *t, uint32_t base, uint32_t n)
{
    const struct vxk_ops *ops = j->q->dev->ops;
    struct vx__work *w = &j->work;
    struct vxk_mesh_list_args list = {.leaf = t->leaf,
                                      .slot = j->level[TARGETS].slot,
                                      .base = j->vertices,
                                      .first = t->first,
                                      .first_base = base};
    struct vxk_mesh_vertex_from from = {.samples = j->samples,
                                        .slot = j->level[TARGETS].slot,
                                        .link = t->link,
                                        .records = t->records,
                                        .place = j->set.place,
                                        .first = t->first};

    from.list = list.list = vx__work_get(w, n, sizeof *list.list);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_list, &list, t->n * 8));
    if (j->packed && j->tint) {
        struct vxk_mesh_tints_args a = {.from = from, .chunk_key = j->set.chunk_key, .out = j->tint + base};
        VX_TRY_RET(VXK_LAUNCH(j->q, mesh_tints, &a, n));
    }
    if (j->packed) {
        struct vxk_mesh_pack_args a = {.from = from, .out = j->pack + base};
        return VXK_LAUNCH(j->q, mesh_pack, &a, n);
    }
    struct vxk_mesh_vertices_args a = {
        .from = from, .chunk_key = j->set.chunk_key, .voxel_m = vx__map_params(j->map)->voxel_size_m};
    memcpy(a.origin, j->origin, sizeof a.origin);
    a.vertices = vx__work_get(w, n * 3ull, sizeof *a.vertices);
    a.normals = vx__work_get(w, n * 3ull, sizeof *a.normals);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_vertices, &a, n));
    VX_TRY_RET(ops->download(j->q, j->vertex + base * 3ull, a.vertices, n * 3ull * sizeof *a.vertices));
    return ops->download(j->q, j->normal + base * 3ull, a.normals, n * 3ull * sizeof *a.normals);
}

static vx_err emit_triangles(struct vx__mesh_job *j, const struct stage *t, uint32_t base, uint32_t n)
{
    struct vx__work *w = &j->work;
    struct vxk_mesh_link_args above = {.c = j->set, .first = t->first, .neighbours = 8};
    struct vxk_mesh_triangles_args a = {.leaf = t->leaf,
                                        .slot = j->level[TARGETS].slot,
                                        .signs = t->signs,
                                        .link = t->link,
                                        .vertex_base = j->vertices,
                                        .triangle_base = j->triangles,
                                        .first = t->first,
                                        .first_base = base};

    a.above = above.link = vx__work_get(w, t->n * 8ull, sizeof *above.link);
    a.triangles = j->packed ? j->triangle + base * 3ull : vx__work_get(w, n * 3ull, sizeof *a.triangles);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_link, &above, t->n * 8));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_triangles, &a, t->n * 8));
    if (j->packed)
        return VX_OK;
    return j->q->dev->ops->download(j->q, j->triangle + base * 3ull, a.triangles,
                                    n * 3ull * sizeof *a.triangles);
}

/* Vertices from[0] .. to[0] and triangles from[1] .. to[1]. */
static vx_err emit(struct vx__mesh_job *j, const struct stage *t, const uint32_t from[2],
                   const uint32_t to[2])
{
    if ((to[0] - from[0]) * 36ull + (to[1] - from[1]) * 12ull > j->budget && t->n > SMALLEST_BATCH)
        return VX_E_EXHAUSTED;
    if (to[0] != from[0])
        VX_TRY_RET(emit_vertices(j, t, from[0], to[0] - from[0]));
    if (to[1] != from[1])
        VX_TRY_RET(emit_triangles(j, t, from[1], to[1] - from[1]));
    return j->packed ? VX_OK : j->q->dev->ops->wait(j->q);
}

static vx_err emit_batch(struct vx__mesh_job *j, struct stage *t)
{
    const struct vxk_ops *ops = j->q->dev->ops;
    uint32_t from[2], to[2];

    VX_TRY_RET(ops->download(j->q, &from[0], j->vertices + t->first, sizeof from[0]));
    VX_TRY_RET(ops->download(j->q, &from[1], j->triangles + t->first, sizeof from[1]));
    VX_TRY_RET(ops->download(j->q, &to[0], j->vertices + t->first + t->n, sizeof to[0]));
    VX_TRY_RET(ops->download(j->q, &to[1], j->triangles + t->first + t->n, sizeof to[1]));
    VX_TRY_RET(ops->wait(j->q));
    return emit(j, t, from, to);
}

/* All leaves at once: every leaf is at its own number on both lists.  VX_E_EXHAUSTED: it takes batches. */
static vx_err run_whole(struct vx__mesh_job *j)
{
    const uint32_t n[2] = {j->n_leaves, j->n_leaves}, none[2] = {0, 0};
    struct stage t = {.n = j->n_leaves};

    if ((uint64_t)j->n_leaves * A_LEAF_BYTES > j->budget)
        return VX_E_EXHAUSTED;
    VX_TRY_RET(make_masks(j, &t, n));
    VX_TRY_RET(count_batch(j, &t));
    VX_TRY_RET(make_room(j));
    if (!j->n_vertices)
        return VX_OK;
    VX_TRY_RET(vx__mesh_cancelled(j));
    return emit(j, &t, none, (const uint32_t[2]){j->n_vertices, j->n_triangles});
}

static vx_err run_batches(struct vx__mesh_job *j)
{
    VX_TRY_RET(make_lists(j));
    VX_TRY_RET(for_batches(j, false, count_batch));
    VX_TRY_RET(make_room(j));
    return j->n_vertices ? for_batches(j, true, emit_batch) : VX_OK;
}

static void free_memory(struct vx__mesh_job *j)
{
    if (j->memory)
        j->q->dev->ops->free_host(j->q->dev, j->memory);
    j->memory = NULL;
}

vx_err vx__mesh_run(struct vx__mesh_job *j)
{
    struct vx__work *w = &j->work;
    uint32_t keep;
    vx_err err;

    memset(j->level, 0, sizeof j->level); /* a run before this one may have had lists */
    j->vertices = vx__work_get(w, j->n_leaves + 1ull, sizeof *j->vertices);
    j->triangles = vx__work_get(w, j->n_leaves + 1ull, sizeof *j->triangles);
    VX_TRY_RET(w->err);
    keep = w->n;
    err = run_whole(j);
    if (err != VX_E_EXHAUSTED)
        return err;
    vx__work_drop(w, keep);
    free_memory(j);
    return run_batches(j);
}

vx_err vx__mesh_begin(struct vx__mesh_job *j, struct vx_map *map, const struct vx_query_options *options,
                      uint32_t min_weight, struct vx_detail *detail)
{
    const struct vxk_ops *ops = vx__map_dev(map)->ops;
    vx_err err;

    if (min_weight > MOST_WEIGHT)
        return vx_fail(detail, VX_E_INVALID, "min_weight", "no voxel has a weight above %d, got %u",
                       (int)MOST_WEIGHT, min_weight);
    *j = (struct vx__mesh_job){.map = map,
                               .options = options,
                               .detail = detail,
                               .size = FIRST_BATCH,
                               .budget = vx__scratch_budget(map)};
    VX_TRY_RET(ops->queue_create(vx__map_dev(map), 0, &j->q));
    err = ops->alloc_host(vx__map_dev(map), 2 * sizeof *j->landing, (void **)&j->landing);
    if (err == VX_OK)
        err = vx__pin_asked(map, options, &j->snapshot, detail);
    if (err != VX_OK) {
        ops->free_host(vx__map_dev(map), j->landing);
        ops->queue_destroy(j->q);
        return err;
    }
    vx__samples(map, &j->snapshot, min_weight, &j->samples);
    vx__work_init(&j->work, map, j->q, detail);
    return VX_OK;
}

void vx__mesh_end(struct vx__mesh_job *j)
{
    vx__work_drop(&j->work, 0);
    free_memory(j);
    vx__snapshot_release(j->map, &j->snapshot);
    j->q->dev->ops->free_host(j->q->dev, j->landing);
    j->q->dev->ops->queue_destroy(j->q);
}
