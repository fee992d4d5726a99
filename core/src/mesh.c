/* mesh.c - marching cubes of the newest epoch: count over the whole map, then emit.  A map whose masks fit
 * into the scratch is staged once; a larger one in batches of leaves, twice. */
#include "vx/mesh.h"

#include "body/mesh.h"
#include "cells.h"
#include "esdf.h"
#include "query_tint.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BATCH = 65536, /* leaves; halved until the scratch fits */
    SMALLEST_BATCH = 64,
    A_LEAF_BYTES = sizeof(struct vxk_mesh_leaf) + sizeof(struct vxk_records) + 128 + 27 * 4 /* staged */
};

/* A list of a batch: targets, or sources. */
struct level {
    uint32_t *slot, *list; /* [leaves] */
    uint32_t n;
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

struct job {
    struct vx_map *map;
    struct vxk_queue *q;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    struct vx__snapshot snapshot;
    struct vxk_samples samples;
    struct vx__work work;
    struct vxk_cells set;
    uint32_t n_leaves, size; /* leaves of the map, of a batch */
    uint32_t n_chunks;
    int32_t origin[3]; /* voxel */
    struct level level[2];
    uint64_t *keys;                 /* host: of the chunks; arrives with the next wait */
    uint64_t budget;                /* bytes of scratch */
    uint32_t *count;                /* device: entries of the two lists */
    uint32_t *vertices, *triangles; /* device: [n_leaves + 1] counts, then running sums */
};

static vx_err claim(struct job *j, int to, const struct stage *t, uint32_t neighbours)
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

static vx_err number(struct job *j, int level, uint32_t release)
{
    struct vxk_cells_number_args a = {
        .list = j->level[level].list, .slot = j->level[level].slot, .release = release};

    return VXK_LAUNCH_COUNTED(j->q, cells_number, &a, j->count + level, 1, j->n_leaves);
}

static vx_err unstage(struct job *j, uint32_t keep)
{
    vx__work_drop(&j->work, keep);
    VX_TRY_RET(number(j, TARGETS, 1));
    return number(j, SOURCES, 1);
}

/* Makes the masks of the targets from the sources, of which there are n[]. */
static vx_err make_masks(struct job *j, struct stage *t, const uint32_t n[2])
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
static vx_err make_stage(struct job *j, struct stage *t, bool above)
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

static vx_err check_cancelled(const struct job *j)
{
    return vx__cancelled(j->options)
               ? vx_fail(j->detail, VX_E_CANCELLED, "", "given up while the mesh was made")
               : VX_OK;
}

/* Calls `work` for all batches, each smaller than the last when it found no room. */
static vx_err for_batches(struct job *j, bool above,
                          vx_err (*work)(struct job *, struct stage *, struct vx_mesh *),
                          struct vx_mesh *mesh)
{
    uint32_t keep = j->work.n;

    for (uint32_t first = 0; first < j->n_leaves;) {
        uint32_t left = j->n_leaves - first;
        struct stage t = {.first = first, .n = left < j->size ? left : j->size};
        vx_err err;
        VX_TRY_RET(check_cancelled(j));
        err = make_stage(j, &t, above);
        if (err == VX_OK)
            err = work(j, &t, mesh);
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

static vx_err count_batch(struct job *j, struct stage *t, struct vx_mesh *mesh)
{
    struct vxk_mesh_counts_args a = {.leaf = t->leaf,
                                     .slot = j->level[TARGETS].slot,
                                     .vertices = j->vertices,
                                     .triangles = j->triangles,
                                     .first = t->first};

    (void)mesh;
    return VXK_LAUNCH(j->q, mesh_counts, &a, t->n);
}

/* Lists the leaves that may hold surface, and gets what lasts for the whole job. */
static vx_err prepare(struct job *j)
{
    struct vx__work *w = &j->work;
    uint32_t *versions, n_versions;

    VX_TRY_RET(vx__snapshot_chunks(j->map, &j->snapshot, j->q, &versions, &n_versions));
    if (versions)
        vx__work_adopt(w, versions);
    VX_TRY_RET(vx__site_cells(w, &j->samples, versions, n_versions, &j->set, &j->n_leaves));
    if (!j->n_leaves)
        return VX_OK;
    j->n_chunks = n_versions;
    j->vertices = vx__work_get(w, j->n_leaves + 1ull, sizeof *j->vertices);
    j->triangles = vx__work_get(w, j->n_leaves + 1ull, sizeof *j->triangles);
    VX_TRY_RET(w->err);
    j->keys = malloc(n_versions * sizeof *j->keys);
    if (!j->keys)
        return vx_fail(j->detail, VX_E_NOMEM, "", "no memory for %u chunk keys", n_versions);
    return j->q->dev->ops->download(j->q, j->keys, j->set.chunk_key, n_versions * sizeof *j->keys);
}

/* The lists that batches are made of. */
static vx_err make_lists(struct job *j)
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
static void find_origin(struct job *j)
{
    for (uint32_t i = 0; i < j->n_chunks; i++) {
        int32_t k[3];
        vxk_key_xyz(j->keys[i], &k[0], &k[1], &k[2]);
        for (int a = 0; a < 3; a++)
            if (!i || k[a] * 128 < j->origin[a])
                j->origin[a] = k[a] * 128;
    }
}

/* Counts to running sums, and the host's arrays for as much. */
static vx_err make_room(struct job *j, struct vx_mesh *mesh)
{
    const struct vxk_ops *ops = j->q->dev->ops;
    uint64_t n[2], *total = vx__work_get(&j->work, 2, sizeof *total);
    void *memory;
    vx_err err;

    VX_TRY_RET(j->work.err);
    VX_TRY_RET(ops->sum_u32(j->q, j->vertices, total, j->n_leaves));
    VX_TRY_RET(ops->sum_u32(j->q, j->triangles, total + 1, j->n_leaves));
    VX_TRY_RET(vx__work_read(&j->work, n, total, sizeof n));
    find_origin(j);
    if (n[0] > UINT32_MAX || n[1] > UINT32_MAX)
        return vx_fail(
            j->detail, VX_E_EXHAUSTED, "",
            "the mesh would have %llu vertices and %llu triangles; a mesh holds at most 4294967295 of each",
            (unsigned long long)n[0], (unsigned long long)n[1]);
    VX_TRY_RET(ops->scan_u32(j->q, j->vertices, j->vertices, j->n_leaves));
    VX_TRY_RET(ops->scan_u32(j->q, j->triangles, j->triangles, j->n_leaves));
    mesh->n_vertices = (uint32_t)n[0];
    mesh->n_triangles = (uint32_t)n[1];
    if (!n[0])
        return VX_OK;
    /* Pinned, and one block: copies come at the full speed of the bus. */
    err = j->q->dev->ops->alloc_host(j->q->dev, n[0] * 24 + n[1] * 12, &memory);
    if (err != VX_OK)
        return vx_fail(j->detail, err, "", "no memory for %llu vertices and %llu triangles",
                       (unsigned long long)n[0], (unsigned long long)n[1]);
    mesh->owner_ = j->q->dev;
    mesh->vertices = memory;
    mesh->normals = mesh->vertices + n[0] * 3;
    mesh->triangles = (uint32_t *)(void *)(mesh->normals + n[0] * 3);
    return VX_OK;
}

static vx_err emit_vertices(struct job *j, const struct stage *t, struct vx_mesh *mesh, uint32_t base,
                            uint32_t n)
{
    const struct vxk_ops *ops = j->q->dev->ops;
    struct vx__work *w = &j->work;
    struct vxk_mesh_list_args list = {.leaf = t->leaf,
                                      .slot = j->level[TARGETS].slot,
                                      .base = j->vertices,
                                      .first = t->first,
                                      .first_base = base};
    struct vxk_mesh_vertices_args a = {.samples = j->samples,
                                       .slot = j->level[TARGETS].slot,
                                       .link = t->link,
                                       .records = t->records,
                                       .place = j->set.place,
                                       .chunk_key = j->set.chunk_key,
                                       .voxel_m = vx__map_params(j->map)->voxel_size_m,
                                       .first = t->first};

    memcpy(a.origin, j->origin, sizeof a.origin);
    a.list = list.list = vx__work_get(w, n, sizeof *list.list);
    a.vertices = vx__work_get(w, n * 3ull, sizeof *a.vertices);
    a.normals = vx__work_get(w, n * 3ull, sizeof *a.normals);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_list, &list, t->n * 8));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_vertices, &a, n));
    VX_TRY_RET(ops->download(j->q, mesh->vertices + base * 3ull, a.vertices, n * 3ull * sizeof *a.vertices));
    return ops->download(j->q, mesh->normals + base * 3ull, a.normals, n * 3ull * sizeof *a.normals);
}

static vx_err emit_triangles(struct job *j, const struct stage *t, struct vx_mesh *mesh, uint32_t base,
                             uint32_t n)
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
    a.triangles = vx__work_get(w, n * 3ull, sizeof *a.triangles);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_link, &above, t->n * 8));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_triangles, &a, t->n * 8));
    return j->q->dev->ops->download(j->q, mesh->triangles + base * 3ull, a.triangles,
                                    n * 3ull * sizeof *a.triangles);
}

/* Vertices from[0] .. to[0] and triangles from[1] .. to[1]. */
static vx_err emit(struct job *j, const struct stage *t, struct vx_mesh *mesh, const uint32_t from[2],
                   const uint32_t to[2])
{
    if ((to[0] - from[0]) * 28ull + (to[1] - from[1]) * 12ull > j->budget && t->n > SMALLEST_BATCH)
        return VX_E_EXHAUSTED;
    if (to[0] != from[0])
        VX_TRY_RET(emit_vertices(j, t, mesh, from[0], to[0] - from[0]));
    if (to[1] != from[1])
        VX_TRY_RET(emit_triangles(j, t, mesh, from[1], to[1] - from[1]));
    return j->q->dev->ops->wait(j->q);
}

static vx_err emit_batch(struct job *j, struct stage *t, struct vx_mesh *mesh)
{
    const struct vxk_ops *ops = j->q->dev->ops;
    uint32_t from[2], to[2];

    VX_TRY_RET(ops->download(j->q, &from[0], j->vertices + t->first, sizeof from[0]));
    VX_TRY_RET(ops->download(j->q, &from[1], j->triangles + t->first, sizeof from[1]));
    VX_TRY_RET(ops->download(j->q, &to[0], j->vertices + t->first + t->n, sizeof to[0]));
    VX_TRY_RET(ops->download(j->q, &to[1], j->triangles + t->first + t->n, sizeof to[1]));
    VX_TRY_RET(ops->wait(j->q));
    return emit(j, t, mesh, from, to);
}

/* All leaves at once: every leaf is at its own number on both lists.  VX_E_EXHAUSTED: it takes batches. */
static vx_err extract_whole(struct job *j, struct vx_mesh *mesh)
{
    const uint32_t n[2] = {j->n_leaves, j->n_leaves}, none[2] = {0, 0};
    struct stage t = {.n = j->n_leaves};

    if ((uint64_t)j->n_leaves * A_LEAF_BYTES > j->budget)
        return VX_E_EXHAUSTED;
    VX_TRY_RET(make_masks(j, &t, n));
    VX_TRY_RET(count_batch(j, &t, mesh));
    VX_TRY_RET(make_room(j, mesh));
    if (!mesh->n_vertices)
        return VX_OK;
    VX_TRY_RET(check_cancelled(j));
    return emit(j, &t, mesh, none, (const uint32_t[2]){mesh->n_vertices, mesh->n_triangles});
}

static vx_err extract_batches(struct job *j, struct vx_mesh *mesh)
{
    VX_TRY_RET(make_lists(j));
    VX_TRY_RET(for_batches(j, false, count_batch, mesh));
    VX_TRY_RET(make_room(j, mesh));
    return mesh->n_vertices ? for_batches(j, true, emit_batch, mesh) : VX_OK;
}

static vx_err extract(struct job *j, struct vx_mesh *mesh)
{
    const struct vx_map_params *params = vx__map_params(j->map);
    uint32_t keep;
    vx_err err;

    VX_TRY_RET(prepare(j));
    keep = j->work.n;
    if (j->n_leaves) {
        err = extract_whole(j, mesh);
        if (err == VX_E_EXHAUSTED) {
            vx__work_drop(&j->work, keep);
            vx_mesh_fini(mesh);
            err = extract_batches(j, mesh);
        }
        if (err != VX_OK)
            return err;
    }
    for (int a = 0; a < 3; a++)
        mesh->origin_m[a] = params->origin_m[a] + j->origin[a] * params->voxel_size_m;
    return VX_OK;
}

vx_err vx_mesh_extract(struct vx_map *map, const struct vx_query_options *options, uint32_t min_weight,
                       struct vx_mesh *out, struct vx_reply *reply, struct vx_detail *detail)
{
    /* A queue of its own, so that queries go on while a mesh is made. */
    struct job j = {.map = map,
                    .options = options,
                    .detail = detail,
                    .size = FIRST_BATCH,
                    .budget = vx__scratch_budget(map)};
    const struct vxk_ops *ops = vx__map_dev(map)->ops;
    vx_err err;

    memset(out, 0, sizeof *out);
    VX_TRY_RET(ops->queue_create(vx__map_dev(map), 0, &j.q));
    err = vx__snapshot_pin(map, &j.snapshot);
    if (err != VX_OK) {
        ops->queue_destroy(j.q);
        return err;
    }
    vx__samples(map, &j.snapshot, min_weight, &j.samples);
    vx__work_init(&j.work, map, j.q, detail);
    if (options && options->min_epoch > j.snapshot.epoch)
        VX_TRY(vx_fail(detail, VX_E_STALE, "min_epoch", "epoch %llu is asked for, the newest is %llu",
                       (unsigned long long)options->min_epoch, (unsigned long long)j.snapshot.epoch));
    VX_TRY(extract(&j, out));
    VX_TRY(vx__tint_mesh(map, &j.snapshot, j.q, out, detail));
    if (reply) {
        memcpy(reply->uuid, vx__map_uuid(map), sizeof reply->uuid);
        reply->epoch = j.snapshot.epoch;
        reply->esdf_epoch = 0;
        reply->newest_stamp_ns = j.snapshot.newest_stamp_ns;
        reply->max_distance_m = vx__esdf_radius(vx__map_params(map)) * vx__map_params(map)->voxel_size_m;
    }
fail:
    vx__work_drop(&j.work, 0);
    free(j.keys);
    vx__snapshot_release(map, &j.snapshot);
    ops->queue_destroy(j.q);
    if (err != VX_OK)
        vx_mesh_fini(out);
    return err;
}

void vx_mesh_fini(struct vx_mesh *mesh)
{
    struct vxk_dev *dev = mesh->owner_;

    if (dev)
        dev->ops->free_host(dev, mesh->vertices);
    free(mesh->tints);
    memset(mesh, 0, sizeof *mesh);
}
