/*
 * mesh_chunks.c - the mesh chunk by chunk, and only the chunks that changed.
 *
 * Plan: which chunks are made.  Make, all of them at once or, where that finds no room, in groups: which
 * chunks lend cells, the job over those cells, the records on the device, one copy of them to the host.
 */
#include "mesh_job.h"

#include "body/pool.h"
#include "query_ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEW_CHANGED = 1024,                   /* chunks that come with their number */
    MOST_CHANGED = UINT32_MAX / (64 * 27) /* that a launch takes */
};

/* Bytes of a lender on the device. */
#define A_LENDER (sizeof(uint64_t) + sizeof(uint32_t))

/* A chunk of the plan: whose cells it lends, bits as vxk_mesh_dirty's. */
struct lender {
    uint64_t key;
    uint32_t near;
};

struct plan {
    struct vx__mesh_job *job;
    const struct vx_mesh_since *since;
    bool complete;
    uint64_t *dirty; /* keys of the chunks that are made, ascending */
    size_t n_dirty;
};

/* Chunks of a plan that are made together. */
struct group {
    const uint64_t *dirty;
    size_t n_dirty;
    bool all;               /* nothing is made outside */
    struct lender *lenders; /* the same and those around them, ascending */
    size_t n_lenders;
    uint64_t *keys; /* page-locked: of the lenders, behind them their bits, as the device gets them */
};

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The chunk at offset b (of 27) from another; false beyond the voxel range. */
static bool neighbour(uint64_t key, uint32_t b, uint64_t *out)
{
    int32_t k[3], d[3];
    vxk_key_xyz(key, &k[0], &k[1], &k[2]);
    vxk_mesh_offset(27, b, d);
    return vxk_cell_key((k[0] + d[0]) * 16, (k[1] + d[1]) * 16, (k[2] + d[2]) * 16, out);
}

/* ------------------------------------------------------------------ plan */

/* Whether the answer has to name everything, and the epoch as the device counts it. */
static vx_err look_back(struct plan *p, uint32_t *since)
{
    const struct vx__snapshot *s = &p->job->snapshot;
    uint64_t epoch = p->since->epoch;
    bool same = !p->since->uuid || memcmp(p->since->uuid, vx__map_uuid(p->job->map), 16) == 0;

    if (same && epoch > s->epoch)
        return vx_fail(p->job->detail, VX_E_STALE, "since_epoch",
                       "epoch %llu has not come yet, the newest is %llu", (unsigned long long)epoch,
                       (unsigned long long)s->epoch);
    p->complete = !same || epoch == 0 || epoch < s->cleared_epoch ||
                  (epoch < s->buried_epoch && epoch != s->epoch) || s->epoch - epoch > s->grid.epoch;
    *since = p->complete ? 0 : s->grid.epoch - (uint32_t)(s->epoch - epoch);
    return VX_OK;
}

/* The chunks that changed, on the device. */
struct changed {
    uint64_t *key;
    uint32_t *near, *n; /* near: of each, as vxk_mesh_dirty's */
    uint32_t n_max;
};

/* Lists them, without a look at their number. */
static vx_err list_changed(struct plan *p, uint32_t since, struct changed *out)
{
    struct vx__mesh_job *j = p->job;
    struct vx__work *w = &j->work;
    const uint32_t n_slots = j->snapshot.grid.slot_mask + 1;
    struct vxk_mesh_changed_args changed = {.g = j->snapshot.grid, .since = since};
    struct vxk_mesh_dirty_args dirty = {.samples = j->samples, .since = since};

    out->n_max = n_slots < MOST_CHANGED ? n_slots : MOST_CHANGED;
    changed.n = out->n = vx__work_filled(w, 1, sizeof *out->n, 0);
    changed.key = out->key = vx__work_get(w, n_slots, sizeof *out->key);
    changed.near = dirty.near = out->near = vx__work_get(w, n_slots, sizeof *out->near);
    dirty.version = changed.version = vx__work_get(w, n_slots, sizeof *changed.version);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_changed, &changed, n_slots));
    return VXK_LAUNCH_COUNTED(j->q, mesh_dirty, &dirty, out->n, 64 * 27, out->n_max * (64 * 27));
}

/* All that the bits name, once, ascending. */
static vx_err gather_dirty(struct plan *p, const uint64_t *keys, const uint32_t *near, uint32_t n)
{
    size_t most = 0, kept = 0;

    for (uint32_t i = 0; i < n; i++)
        most += vxk_popc32(near[i]);
    p->dirty = malloc((most + 1) * sizeof *p->dirty);
    if (!p->dirty)
        return vx_fail(p->job->detail, VX_E_NOMEM, "", "no memory for %zu chunks", most);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < 27; b++)
            if (near[i] >> b & 1 && neighbour(keys[i], b, &p->dirty[p->n_dirty]))
                p->n_dirty++;
    qsort(p->dirty, p->n_dirty, sizeof *p->dirty, by_key);
    for (size_t i = 0; i < p->n_dirty; i++)
        if (!kept || p->dirty[kept - 1] != p->dirty[i])
            p->dirty[kept++] = p->dirty[i];
    p->n_dirty = kept;
    return VX_OK;
}

/* The chunks whose mesh may be another than in the epoch that the caller has. */
static vx_err find_dirty(struct plan *p, uint32_t since)
{
    struct vx__mesh_job *j = p->job;
    const struct vxk_ops *ops = j->q->dev->ops;
    struct changed changed = {0};
    struct landing {
        uint64_t key[FEW_CHANGED];
        uint32_t near[FEW_CHANGED], n;
    } *landing = NULL;
    uint64_t *keys = NULL;
    uint32_t few, *near = NULL;
    vx_err err;

    VX_TRY_RET(list_changed(p, since, &changed));
    few = changed.n_max < FEW_CHANGED ? changed.n_max : FEW_CHANGED;
    err = ops->alloc_host(j->q->dev, sizeof *landing, (void **)&landing);
    if (err != VX_OK)
        return vx_fail(j->detail, err, "", "no memory for the chunks that changed");
    /* Few as a rule: they come along with their number. */
    VX_TRY(ops->download(j->q, &landing->n, changed.n, sizeof landing->n));
    VX_TRY(ops->download(j->q, landing->key, changed.key, few * sizeof *changed.key));
    VX_TRY(ops->download(j->q, landing->near, changed.near, few * sizeof *changed.near));
    VX_TRY(ops->wait(j->q));
    if (landing->n > changed.n_max) { /* more than a launch takes: nearly everything */
        p->complete = true;
    } else if (landing->n <= few) {
        err = gather_dirty(p, landing->key, landing->near, landing->n);
    } else {
        keys = malloc(landing->n * sizeof *keys);
        near = malloc(landing->n * sizeof *near);
        if (!keys || !near)
            VX_TRY(vx_fail(j->detail, VX_E_NOMEM, "", "no memory for %u chunks", landing->n));
        VX_TRY(ops->download(j->q, keys, changed.key, landing->n * sizeof *keys));
        VX_TRY(ops->download(j->q, near, changed.near, landing->n * sizeof *near));
        VX_TRY(ops->wait(j->q));
        err = gather_dirty(p, keys, near, landing->n);
    }
fail:
    if (err != VX_OK)
        (void)ops->wait(j->q); /* nothing may arrive in what is freed here */
    ops->free_host(j->q->dev, landing);
    free(keys);
    free(near);
    return err;
}

/* Every chunk that holds something. */
static vx_err find_all(struct plan *p)
{
    struct vx__mesh_job *j = p->job;
    uint32_t *versions, n;
    struct vxk_mesh_keys_args a = {.g = j->snapshot.grid};

    VX_TRY_RET(vx__snapshot_chunks(j->map, &j->snapshot, j->q, &versions, &n));
    if (versions)
        vx__work_adopt(&j->work, versions);
    a.version = versions;
    a.key = vx__work_get(&j->work, n, sizeof *a.key);
    VX_TRY_RET(j->work.err);
    free(p->dirty);
    p->n_dirty = n;
    p->dirty = malloc((n + 1ull) * sizeof *p->dirty);
    if (!p->dirty)
        return vx_fail(j->detail, VX_E_NOMEM, "", "no memory for %u chunks", n);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_keys, &a, n));
    return vx__work_read(&j->work, p->dirty, a.key, n * sizeof *p->dirty);
}

/* Leaves the chunks that do not meet the region out. */
static void keep_region(struct plan *p)
{
    const struct vx_map_params *params = vx__map_params(p->job->map);
    const double edge_m = 128 * params->voxel_size_m;
    size_t kept = 0;

    for (size_t i = 0; i < p->n_dirty; i++) {
        int32_t k[3];
        bool meets = true;
        vxk_key_xyz(p->dirty[i], &k[0], &k[1], &k[2]);
        for (int a = 0; a < 3; a++) {
            double lo = params->origin_m[a] + k[a] * edge_m;
            meets = meets && p->since->max_m[a] >= lo && p->since->min_m[a] <= lo + edge_m;
        }
        if (meets)
            p->dirty[kept++] = p->dirty[i];
    }
    p->n_dirty = kept;
}

static vx_err make_plan(struct plan *p)
{
    uint32_t since = 0;

    VX_TRY_RET(look_back(p, &since));
    if (!p->complete)
        VX_TRY_RET(find_dirty(p, since));
    /* The writer may have buried chunks while they were looked for. */
    if (!p->complete && p->since->epoch < vx__map_buried_epoch(p->job->map) &&
        p->since->epoch != p->job->snapshot.epoch)
        p->complete = true;
    if (p->complete)
        VX_TRY_RET(find_all(p));
    if (p->since->has_region)
        keep_region(p);
    return VX_OK;
}

/* ------------------------------------------------------------------ make */

/* Lenders, ascending, and those beside them along an axis: how many come out.  A shift of all keys keeps
 * their order, so that three lists merge. */
static size_t spread(const struct lender *in, size_t n, uint32_t axis, struct lender *out)
{
    static const uint32_t offset[3] = {9, 3, 1}; /* of bits, one along the axis */
    const uint32_t by[3] = {13 - offset[axis], 13, 13 + offset[axis]};
    size_t at[3] = {0, 0, 0}, kept = 0;

    for (;;) {
        uint64_t key[3], least = UINT64_MAX;
        for (int s = 0; s < 3; s++) {
            key[s] = UINT64_MAX;
            while (at[s] < n && !neighbour(in[at[s]].key, by[s], &key[s]))
                at[s]++;
            least = key[s] < least ? key[s] : least;
        }
        if (least == UINT64_MAX)
            return kept;
        out[kept] = (struct lender){.key = least};
        for (int s = 0; s < 3; s++)
            if (key[s] == least) { /* from there the chunk that is made lies the other way */
                uint32_t near = in[at[s]++].near;
                out[kept].near |= s == 0 ? near << offset[axis] : s == 1 ? near : near >> offset[axis];
            }
        kept++;
    }
}

/* The chunks that lend cells: all that are made, and those around them unless everything is made. */
static vx_err find_lenders(struct group *g, struct vx_detail *detail)
{
    const size_t most = g->all ? g->n_dirty : 27 * g->n_dirty;
    struct lender *other;

    g->lenders = malloc((most + 1) * sizeof *g->lenders);
    g->n_lenders = g->n_dirty;
    if (!g->lenders)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu chunks", most);
    for (size_t i = 0; i < g->n_dirty; i++)
        g->lenders[i] = (struct lender){.key = g->dirty[i], .near = 1u << 13};
    if (!g->all) {
        other = malloc((most + 1) * sizeof *other);
        if (!other)
            return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu chunks", most);
        g->n_lenders = spread(g->lenders, g->n_lenders, 0, other);
        g->n_lenders = spread(other, g->n_lenders, 1, g->lenders);
        g->n_lenders = spread(g->lenders, g->n_lenders, 2, other);
        free(g->lenders);
        g->lenders = other;
    }
    return g->n_lenders <= VX__CELLS_MAX_CHUNKS
               ? VX_OK
               : vx_fail(detail, VX_E_EXHAUSTED, "", "%zu chunks, the most for a mesh is %d", g->n_lenders,
                         (int)VX__CELLS_MAX_CHUNKS);
}

/* The lenders as the device gets them. */
static vx_err lay_out(struct group *g, struct vxk_dev *dev, struct vx_detail *detail)
{
    vx_err err = dev->ops->alloc_host(dev, g->n_lenders * A_LENDER, (void **)&g->keys);
    uint32_t *near = (uint32_t *)(g->keys + g->n_lenders);

    if (err != VX_OK)
        return vx_fail(detail, err, "", "no memory for %zu chunks", g->n_lenders);
    for (size_t i = 0; i < g->n_lenders; i++) {
        g->keys[i] = g->lenders[i].key;
        near[i] = g->lenders[i].near;
    }
    return VX_OK;
}

/* The cells of the lenders, numbered. */
static vx_err make_set(struct vx__mesh_job *j, const struct group *g, const uint32_t **near_dev)
{
    struct vx__work *w = &j->work;
    const struct vxk_ops *ops = j->q->dev->ops;
    uint32_t n = (uint32_t)g->n_lenders, slots = vx__cells_slots(n), *index;
    uint64_t *chunk_key = vx__work_get(w, n, A_LENDER), *table;
    struct vxk_mesh_cells_args cells = {.samples = j->samples};

    cells.mask = vx__work_get(w, n * 64ull, sizeof *cells.mask);
    table = vx__work_get(w, slots, sizeof *table);
    index = vx__work_get(w, slots, sizeof *index);
    VX_TRY_RET(w->err);
    VX_TRY_RET(ops->upload(j->q, chunk_key, g->keys, n * A_LENDER));
    cells.chunk_key = chunk_key;
    cells.near = *near_dev = (const uint32_t *)(chunk_key + n);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_cells, &cells, n * 64));
    VX_TRY_RET(vx__cells_index(w, chunk_key, n, table, index, slots));
    j->set = (struct vxk_cells){
        .keys = table, .index = index, .chunk_key = chunk_key, .mask = cells.mask, .slot_mask = slots - 1};
    return vx__cells_number(w, &j->set, n, &j->n_leaves);
}

/* Vertices and triangles of the set, and *bases: how many lie before each chunk. */
static vx_err make_surface(struct vx__mesh_job *j, const uint32_t *near, uint32_t n, uint32_t **bases)
{
    struct vxk_mesh_bases_args a;

    j->n_vertices = j->n_triangles = 0;
    if (!j->n_leaves) {
        *bases = vx__work_filled(&j->work, (n + 1ull) * 2, sizeof **bases, 0);
        return j->work.err;
    }
    *bases = vx__work_get(&j->work, (n + 1ull) * 2, sizeof **bases);
    VX_TRY_RET(j->work.err);
    j->near = near;
    j->packed = true;
    VX_TRY_RET(vx__mesh_run(j));
    a = (struct vxk_mesh_bases_args){
        .before = j->set.before, .vertices = j->vertices, .triangles = j->triangles, .out = *bases};
    return VXK_LAUNCH(j->q, mesh_bases, &a, n + 1);
}

static vx_err make_group(struct vx__mesh_job *j, struct group *g, bool complete, struct vx_mesh_chunks *out)
{
    uint32_t *bases, n;
    const uint32_t *near;

    VX_TRY_RET(vx__mesh_cancelled(j));
    VX_TRY_RET(find_lenders(g, j->detail));
    VX_TRY_RET(lay_out(g, j->q->dev, j->detail));
    n = (uint32_t)g->n_lenders;
    VX_TRY_RET(make_set(j, g, &near));
    VX_TRY_RET(make_surface(j, near, n, &bases));
    VX_TRY_RET(vx__mesh_cancelled(j));
    VX_TRY_RET(vx__mesh_records(j, near, bases, n, complete, out));
    out->n_cells += j->n_leaves;
    out->n_looked += n;
    return VX_OK;
}

static void group_fini(struct group *g, struct vxk_dev *dev)
{
    free(g->lenders);
    dev->ops->free_host(dev, g->keys);
}

/* All that is dirty, in groups that get smaller while there is no room. */
static vx_err make(struct plan *p, struct vx_mesh_chunks *out)
{
    struct vx__mesh_job *j = p->job;
    const uint32_t keep = j->work.n;

    for (size_t first = 0, size = p->n_dirty; first < p->n_dirty;) {
        struct group g = {.dirty = p->dirty + first, .n_dirty = p->n_dirty - first};
        vx_err err;
        if (g.n_dirty > size)
            g.n_dirty = size;
        g.all = g.n_dirty == p->n_dirty && p->complete && !p->since->has_region;
        err = make_group(j, &g, p->complete, out);
        vx__work_drop(&j->work, keep); /* waits: the group's arrays may still be read */
        group_fini(&g, j->q->dev);
        if (err == VX_OK)
            first += g.n_dirty;
        else if (err == VX_E_EXHAUSTED && g.n_dirty > 1)
            size = g.n_dirty / 2;
        else
            return err;
    }
    return VX_OK;
}

/* ------------------------------------------------------------------ all of it */

static vx_err check_region(const struct vx_mesh_since *since, struct vx_detail *detail)
{
    for (int a = 0; since->has_region && a < 3; a++)
        if (!isfinite(since->min_m[a]) || !isfinite(since->max_m[a]) || since->min_m[a] > since->max_m[a])
            return vx_fail(detail, VX_E_INVALID, "region",
                           "must be finite, each minimum at most its maximum");
    return VX_OK;
}

vx_err vx_mesh_get_chunks(struct vx_map *map, const struct vx_query_options *options,
                          const struct vx_mesh_since *since, struct vx_mesh_chunks *out,
                          struct vx_reply *reply, struct vx_detail *detail)
{
    const struct vx_map_params *params = vx__map_params(map);
    struct vx__mesh_job job;
    struct plan p = {.job = &job, .since = since};
    vx_err err;

    memset(out, 0, sizeof *out);
    VX_TRY_RET(check_region(since, detail));
    VX_TRY_RET(vx__mesh_begin(&job, map, options, since->min_weight, detail));
    VX_TRY(make_plan(&p));
    VX_TRY(make(&p, out));
    memcpy(out->origin_m, params->origin_m, sizeof out->origin_m);
    out->voxel_m = params->voxel_size_m;
    out->complete = p.complete;
    vx__fill_reply(map, &job.snapshot, 0, reply);
fail:
    vx__mesh_end(&job);
    free(p.dirty);
    if (err != VX_OK)
        vx_mesh_chunks_fini(out);
    return err;
}

void vx_mesh_chunks_fini(struct vx_mesh_chunks *chunks)
{
    struct vxk_dev *dev = chunks->owner_;

    if (dev)
        dev->ops->free_host(dev, chunks->body);
    memset(chunks, 0, sizeof *chunks);
}
