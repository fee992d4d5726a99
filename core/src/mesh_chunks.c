/*
 * mesh_chunks.c - the mesh chunk by chunk, and only the chunks that changed.
 *
 * Plan: which chunks are made, and which lend cells to them.  Make: the job over those cells.  Pack: each
 * chunk's triangles with the vertices that they use, numbered as the triangles meet them.
 */
#include "mesh_job.h"

#include "body/pool.h"
#include "query_ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ITSELF = 1 << 13 /* bit of a 27-neighbourhood */ };

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
    struct lender *lenders; /* the same and those around them, ascending */
    size_t n_lenders;
    uint64_t *keys; /* of the lenders, and their bits: as the device gets them */
    uint32_t *near;
    uint32_t *bases; /* [lenders + 1][2] vertices and triangles before a chunk */
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

/* Keys and versions of the chunks that are flagged: *n of them, host and device. */
static vx_err list_changed(struct plan *p, uint32_t since, uint64_t **keys_dev, uint32_t **versions,
                           uint32_t *n)
{
    struct vx__mesh_job *j = p->job;
    struct vx__work *w = &j->work;
    uint32_t n_slots = j->snapshot.grid.slot_mask + 1, *slots = vx__work_get(w, n_slots, sizeof *slots),
             *count = vx__work_get(w, 1, sizeof *count);
    struct vxk_mesh_changed_args changed = {
        .g = j->snapshot.grid, .flag = vx__work_get(w, n_slots, 1), .since = since};
    struct vxk_pool_gather_args gather = {.g = j->snapshot.grid, .slot = slots};

    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_changed, &changed, n_slots));
    VX_TRY_RET(j->q->dev->ops->select(j->q, changed.flag, slots, count, n_slots));
    VX_TRY_RET(vx__work_read(w, n, count, sizeof *n));
    gather.key = *keys_dev = vx__work_get(w, *n, sizeof **keys_dev);
    gather.version = *versions = vx__work_get(w, *n, sizeof **versions);
    VX_TRY_RET(w->err);
    return VXK_LAUNCH(j->q, pool_gather, &gather, *n);
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
    struct vx__work *w = &j->work;
    const struct vxk_ops *ops = j->q->dev->ops;
    struct vxk_mesh_dirty_args dirty = {.samples = j->samples, .since = since};
    uint64_t *keys_dev, *keys = NULL;
    uint32_t n, *versions, *near = NULL;
    vx_err err;

    VX_TRY_RET(list_changed(p, since, &keys_dev, &versions, &n));
    dirty.version = versions;
    dirty.near = vx__work_filled(w, n, sizeof *dirty.near, 0);
    VX_TRY_RET(w->err);
    keys = malloc((n + 1ull) * sizeof *keys);
    near = malloc((n + 1ull) * sizeof *near);
    if (!keys || !near)
        VX_TRY(vx_fail(j->detail, VX_E_NOMEM, "", "no memory for %u chunks", n));
    VX_TRY(VXK_LAUNCH(j->q, mesh_dirty, &dirty, n * 64));
    VX_TRY(ops->download(j->q, keys, keys_dev, n * sizeof *keys));
    VX_TRY(ops->download(j->q, near, dirty.near, n * sizeof *near));
    VX_TRY(ops->wait(j->q));
    err = gather_dirty(p, keys, near, n);
fail:
    if (err != VX_OK)
        (void)ops->wait(j->q); /* nothing may arrive in what is freed here */
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

static int by_lender(const void *a, const void *b)
{
    return by_key(&((const struct lender *)a)->key, &((const struct lender *)b)->key);
}

/* The chunks that lend cells: all that are made, and those around them unless everything is made. */
static vx_err find_lenders(struct plan *p, bool all)
{
    const size_t most = all ? p->n_dirty : 27 * p->n_dirty;
    size_t n = 0, kept = 0;

    p->lenders = malloc((most + 1) * sizeof *p->lenders);
    p->keys = malloc((most + 1) * sizeof *p->keys);
    p->near = malloc((most + 1) * sizeof *p->near);
    p->bases = malloc((most + 1) * 2 * sizeof *p->bases);
    if (!p->lenders || !p->keys || !p->near || !p->bases)
        return vx_fail(p->job->detail, VX_E_NOMEM, "", "no memory for %zu chunks", most);
    for (size_t i = 0; i < p->n_dirty; i++)
        for (uint32_t b = all ? 13 : 0; b < (all ? 14u : 27u); b++) {
            p->lenders[n].near = 1u << (26 - b); /* from there the chunk that is made lies the other way */
            n += neighbour(p->dirty[i], b, &p->lenders[n].key);
        }
    qsort(p->lenders, n, sizeof *p->lenders, by_lender);
    for (size_t i = 0; i < n; i++) {
        if (kept && p->lenders[kept - 1].key == p->lenders[i].key)
            p->lenders[kept - 1].near |= p->lenders[i].near;
        else
            p->lenders[kept++] = p->lenders[i];
    }
    p->n_lenders = kept;
    for (size_t i = 0; i < kept; i++) {
        p->keys[i] = p->lenders[i].key;
        p->near[i] = p->lenders[i].near;
    }
    if (kept > VX__CELLS_MAX_CHUNKS)
        return vx_fail(p->job->detail, VX_E_EXHAUSTED, "", "%zu chunks, the most for a mesh is %d", kept,
                       (int)VX__CELLS_MAX_CHUNKS);
    return VX_OK;
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
    return find_lenders(p, p->complete && !p->since->has_region);
}

/* ------------------------------------------------------------------ make */

/* The cells of the lenders, numbered, and what each makes. */
static vx_err make_set(struct plan *p, uint32_t **near_dev)
{
    struct vx__mesh_job *j = p->job;
    struct vx__work *w = &j->work;
    const struct vxk_ops *ops = j->q->dev->ops;
    uint32_t n = (uint32_t)p->n_lenders, slots = vx__cells_slots(n), *index, *near;
    uint64_t *chunk_key = vx__work_get(w, n, sizeof *chunk_key), *table;
    struct vxk_mesh_cells_args cells = {.samples = j->samples};

    cells.mask = vx__work_get(w, n * 64ull, sizeof *cells.mask);
    near = *near_dev = vx__work_get(w, n, sizeof *near);
    table = vx__work_get(w, slots, sizeof *table);
    index = vx__work_get(w, slots, sizeof *index);
    VX_TRY_RET(w->err);
    VX_TRY_RET(ops->upload(j->q, chunk_key, p->keys, n * sizeof *chunk_key));
    VX_TRY_RET(ops->upload(j->q, near, p->near, n * sizeof *near));
    cells.chunk_key = chunk_key;
    cells.near = near;
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_cells, &cells, n * 64));
    VX_TRY_RET(vx__cells_index(w, chunk_key, n, table, index, slots));
    j->set = (struct vxk_cells){
        .keys = table, .index = index, .chunk_key = chunk_key, .mask = cells.mask, .slot_mask = slots - 1};
    return vx__cells_number(w, &j->set, n, &j->n_leaves);
}

static vx_err make(struct plan *p)
{
    struct vx__mesh_job *j = p->job;
    struct vxk_mesh_roles_args roles = {.near = NULL};
    struct vxk_mesh_bases_args bases;
    uint32_t *near, n = (uint32_t)p->n_lenders;

    memset(p->bases, 0, (p->n_lenders + 1) * 2 * sizeof *p->bases);
    if (!n)
        return VX_OK;
    VX_TRY_RET(make_set(p, &near));
    if (!j->n_leaves)
        return VX_OK;
    roles.c = j->set;
    roles.near = near;
    roles.role = vx__work_get(&j->work, j->n_leaves, 1);
    VX_TRY_RET(j->work.err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_roles, &roles, j->n_leaves));
    j->role = roles.role;
    j->packed = true;
    VX_TRY_RET(vx__mesh_run(j));
    bases = (struct vxk_mesh_bases_args){.before = j->set.before,
                                         .vertices = j->vertices,
                                         .triangles = j->triangles,
                                         .out = vx__work_get(&j->work, (n + 1ull) * 2, sizeof *bases.out)};
    VX_TRY_RET(j->work.err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_bases, &bases, n + 1));
    return vx__work_read(&j->work, p->bases, bases.out, (n + 1ull) * 2 * sizeof *p->bases);
}

/* ------------------------------------------------------------------ pack */

/* Where a vertex of the job is in the chunk at hand. */
struct seen {
    uint32_t chunk; /* lender + 1 */
    uint32_t number;
};

struct packer {
    struct plan *plan;
    struct vx_mesh_chunks *out;
    struct seen *seen; /* [vertices of the job] */
    uint32_t *numbers; /* [3 * triangles of the largest chunk] */
    uint64_t room;     /* bytes of out->body */
};

static vx_err reserve(struct packer *k, uint64_t more)
{
    struct vx_mesh_chunks *o = k->out;
    uint64_t room = k->room ? k->room : 1 << 16;
    uint8_t *body;

    if (o->body_bytes + more <= k->room)
        return VX_OK;
    while (room < o->body_bytes + more)
        room *= 2;
    body = realloc(o->body, room);
    if (!body)
        return vx_fail(k->plan->job->detail, VX_E_NOMEM, "", "no memory for a mesh of %llu bytes",
                       (unsigned long long)room);
    o->body = body;
    k->room = room;
    return VX_OK;
}

/* The lender that owns a vertex. */
static uint32_t owner_of(const struct plan *p, uint32_t vertex)
{
    uint32_t lo = 0, hi = (uint32_t)p->n_lenders;

    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->bases[2 * mid] <= vertex)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* A vertex as chunk c sees it: its own, or one of the chunks above it. */
static struct vxk_mesh_packed vertex_seen_from(const struct plan *p, uint32_t c, uint32_t vertex)
{
    struct vxk_mesh_packed v = p->job->pack[vertex];

    if (vertex < p->bases[2 * c] || vertex >= p->bases[2 * c + 2]) {
        int32_t own[3], other[3];
        vxk_key_xyz(p->keys[c], &own[0], &own[1], &own[2]);
        vxk_key_xyz(p->keys[owner_of(p, vertex)], &other[0], &other[1], &other[2]);
        for (int a = 0; a < 3; a++)
            v.position[a] = (uint16_t)(v.position[a] + (other[a] - own[a]) * 128 * 256);
    }
    return v;
}

static void put_triangles(struct packer *k, uint32_t n, uint32_t index_bytes)
{
    uint8_t *out = k->out->body + k->out->body_bytes;

    if (index_bytes == 4) {
        memcpy(out, k->numbers, n * 4ull);
        k->out->body_bytes += n * 4ull;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint16_t v = (uint16_t)k->numbers[i];
        memcpy(out + 2ull * i, &v, 2);
    }
    if (n & 1)
        memset(out + 2ull * n, 0, 2);
    k->out->body_bytes += 2ull * (n + (n & 1));
}

/* Appends the record of lender c. */
static vx_err put_chunk(struct packer *k, uint32_t c)
{
    const struct plan *p = k->plan;
    const uint32_t *triangle = p->job->triangle + 3ull * p->bases[2 * c + 1];
    const struct vxk_tint_answer *tint = p->job->tint;
    struct vx_mesh_chunk head = {.n_triangles = p->bases[2 * c + 3] - p->bases[2 * c + 1],
                                 .vertex_bytes = sizeof(struct vx_mesh_vertex) + (tint ? sizeof *tint : 0),
                                 .index_bytes = 2};
    const uint32_t n = 3 * head.n_triangles;
    uint64_t at = k->out->body_bytes;

    _Static_assert(sizeof head == 24 && sizeof(struct vx_mesh_vertex) == 12 &&
                       sizeof(struct vxk_mesh_packed) == 12 && sizeof(struct vx_tint) == sizeof *tint,
                   "the wire's bytes");
    VX_TRY_RET(reserve(k, sizeof head + n * (uint64_t)(head.vertex_bytes + 4) + 4));
    vxk_key_xyz(p->keys[c], &head.chunk[0], &head.chunk[1], &head.chunk[2]);
    k->out->body_bytes += sizeof head;
    for (uint32_t i = 0; i < n; i++) {
        struct seen *s = &k->seen[triangle[i]];
        if (s->chunk != c + 1) {
            struct vxk_mesh_packed v = vertex_seen_from(p, c, triangle[i]);
            *s = (struct seen){c + 1, head.n_vertices++};
            memcpy(k->out->body + k->out->body_bytes, &v, sizeof v);
            if (tint)
                memcpy(k->out->body + k->out->body_bytes + sizeof v, &tint[triangle[i]], sizeof *tint);
            k->out->body_bytes += head.vertex_bytes;
        }
        k->numbers[i] = s->number;
    }
    if (head.n_vertices > 65536)
        head.index_bytes = 4;
    memcpy(k->out->body + at, &head, sizeof head);
    put_triangles(k, n, head.index_bytes);
    k->out->n_chunks++;
    k->out->n_vertices += head.n_vertices;
    k->out->n_triangles += head.n_triangles;
    return VX_OK;
}

static vx_err pack(struct plan *p, struct vx_mesh_chunks *out)
{
    struct packer k = {.plan = p, .out = out};
    uint32_t most = 0;
    vx_err err = VX_OK;

    for (size_t c = 0; c < p->n_lenders; c++)
        most = vxk_maxu(most, p->bases[2 * c + 3] - p->bases[2 * c + 1]);
    k.seen = calloc(p->job->n_vertices + 1ull, sizeof *k.seen);
    k.numbers = malloc((3ull * most + 1) * sizeof *k.numbers);
    if (!k.seen || !k.numbers)
        err = vx_fail(p->job->detail, VX_E_NOMEM, "", "no memory for %u vertices", p->job->n_vertices);
    for (uint32_t c = 0; c < p->n_lenders && err == VX_OK; c++) {
        bool empty = p->bases[2 * c + 3] == p->bases[2 * c + 1];
        if (p->near[c] & ITSELF && !(empty && p->complete))
            err = put_chunk(&k, c);
    }
    free(k.seen);
    free(k.numbers);
    return err;
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

static void plan_fini(struct plan *p)
{
    free(p->dirty);
    free(p->lenders);
    free(p->keys);
    free(p->near);
    free(p->bases);
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
    VX_TRY(make(&p));
    VX_TRY(vx__mesh_cancelled(&job));
    VX_TRY(pack(&p, out));
    memcpy(out->origin_m, params->origin_m, sizeof out->origin_m);
    out->voxel_m = params->voxel_size_m;
    out->complete = p.complete;
    out->n_cells = job.n_leaves;
    out->n_looked = (uint32_t)p.n_lenders;
    vx__fill_reply(map, &job.snapshot, 0, reply);
fail:
    vx__mesh_end(&job); /* waits for the queue: the plan's arrays may still be read */
    plan_fini(&p);
    if (err != VX_OK)
        vx_mesh_chunks_fini(out);
    return err;
}

void vx_mesh_chunks_fini(struct vx_mesh_chunks *chunks)
{
    free(chunks->body);
    memset(chunks, 0, sizeof *chunks);
}
