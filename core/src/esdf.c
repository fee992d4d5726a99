/* esdf.c - keeps the distance field of a map's newest epoch: its memory, and when it is brought up to date.
 */
#include "esdf.h"

#include "body/esdf_outline.h"
#include "body/esdf_pass.h"
#include "esdf_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_HOLES = 512, HOLE_SHARE = 16 /* more holes than this and 1/16 of the leaves are filled */ };

uint32_t vx__esdf_radius(const struct vx_map_params *params)
{
    double r = ceil(params->esdf_max_distance_m / params->voxel_size_m - 1e-6);

    return r < 1 ? 1 : r > VXK_ESDF_MAX_R ? VXK_ESDF_MAX_R : (uint32_t)r;
}

bool vx__cancelled(const struct vx_query_options *options)
{
    return options && options->cancelled && options->cancelled(options->context);
}

static void esdf_unpin(struct vx_map *map, void *p, uint64_t epoch)
{
    struct vx__esdf *e = p;

    if (!e->pinned || e->pin.epoch >= epoch)
        return;
    e->pinned = false;
    vx__snapshot_release(map, &e->pin);
}

void vx__esdf_pin(struct vx_map *map, struct vx__reader_state *rs, const struct vx__snapshot *s,
                  uint64_t now_ns)
{
    struct vx__esdf *e = rs->esdf;

    esdf_unpin(map, e, UINT64_MAX);
    e->pin = *s;
    e->pinned = true;
    e->refreshed_ns = now_ns;
}

static void esdf_destroy(struct vx_map *map, void *p)
{
    struct vxk_dev *dev = vx__map_dev(map);
    struct vx__esdf *e = p;

    if (!e)
        return;
    esdf_unpin(map, e, UINT64_MAX);
    for (uint32_t i = 0; i < e->n_pages; i++)
        vx__hold_free(map, e->pages[i]);
    free(e->pages);
    vx__hold_free(map, e->keys);
    vx__hold_free(map, e->table);
    vx__hold_free(map, e->page_list);
    vx__hold_free(map, e->n);
    if (e->n_host)
        dev->ops->free_host(dev, e->n_host);
    free(e);
}

static vx_err hold(struct vx__esdf_build *b, uint64_t bytes, void *out)
{
    VX_TRY_RET(vx__hold_alloc(b->map, bytes, out, b->detail));
    b->esdf->bytes += bytes;
    return VX_OK;
}
static void let_go(struct vx__esdf_build *b, uint64_t bytes, void *block)
{
    if (block) {
        vx__hold_free(b->map, block);
        b->esdf->bytes -= bytes;
    }
}

static uint64_t hash_bytes(uint64_t slots)
{
    return slots * (sizeof(uint64_t) + sizeof(uint32_t));
}
static uint64_t chunk_bytes(uint64_t n)
{
    return n * (VXK_CELLS_A_CHUNK * sizeof(uint32_t) + 64 * sizeof(struct vxk_outline) + sizeof(uint64_t) +
                28 * sizeof(uint32_t) + 64);
}
/* Places the arrays of n chunks in their block. */
static void place_chunks(struct vx__esdf *e, void *block, uint64_t n)
{
    e->table = block;
    e->outline = (struct vxk_outline *)(void *)(e->table + n * VXK_CELLS_A_CHUNK);
    e->chunk_key = (uint64_t *)(void *)(e->outline + n * 64);
    e->near = (uint32_t *)(void *)(e->chunk_key + n);
    e->version = e->near + n * 27;
    e->held = (uint8_t *)(e->version + n);
}
static uint64_t list_bytes(uint64_t pages)
{
    return pages * (sizeof(uint16_t *) + VXK_ESDF_PAGE * sizeof(uint32_t));
}

/* The kernels' view of the field, after its memory moved. */
static void set_args(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    struct vxk_esdf_args *a = &b->a;

    a->n = e->n;
    a->keys = e->keys;
    a->index = e->index;
    a->chunk_key = e->chunk_key;
    a->near = e->near;
    a->version = e->version;
    a->held = e->held;
    a->table = e->table;
    a->outline = e->outline;
    a->pages = e->page_list;
    a->free_leaf = e->free_leaf;
    a->slot_mask = e->view.slot_mask;
    a->max_chunks = e->max_chunks;
    a->n_numbers = e->n_numbers;
    a->n_leaves = e->n_leaves;
    a->n_free = e->n_free;
    e->view.keys = e->keys;
    e->view.index = e->index;
    e->view.table = e->table;
    e->view.outline = e->outline;
    e->view.pages = e->page_list;
}

vx_err vx__esdf_read(struct vx__esdf_build *b)
{
    const struct vxk_ops *ops = b->q->dev->ops;

    VX_TRY_RET(ops->download(b->q, b->esdf->n_host, b->a.n, sizeof b->n));
    VX_TRY_RET(ops->wait(b->q));
    b->n = *b->esdf->n_host;
    return VX_OK;
}

/* The field's chunks into new blocks of n chunks and `slots` slots. */
static vx_err move_chunks(struct vx__esdf_build *b, uint32_t n, void *chunks, uint64_t slots, void *hash)
{
    const struct vxk_ops *ops = b->q->dev->ops;
    struct vx__esdf *e = b->esdf, old = *e;
    uint64_t had = old.n_chunks;

    place_chunks(e, chunks, n);
    e->keys = hash;
    e->index = (uint32_t *)(e->keys + slots);
    e->max_chunks = n;
    e->view.slot_mask = (uint32_t)slots - 1;
    set_args(b);
    VX_TRY_RET(ops->fill(b->q, chunks, 0xff, chunk_bytes(n)));
    VX_TRY_RET(ops->fill(b->q, e->held, 0, n * 64ull));
    VX_TRY_RET(ops->fill(b->q, e->keys, 0, slots * sizeof *e->keys));
    VX_TRY_RET(ops->fill(b->q, e->index, 0xff, slots * sizeof *e->index));
    VX_TRY_RET(ops->upload(b->q, &e->n->n_chunks, &e->n_chunks, sizeof e->n_chunks));
    if (had) {
        VX_TRY_RET(ops->copy(b->q, e->table, old.table, had * VXK_CELLS_A_CHUNK * sizeof *e->table));
        VX_TRY_RET(ops->copy(b->q, e->outline, old.outline, had * 64 * sizeof *e->outline));
        VX_TRY_RET(ops->copy(b->q, e->chunk_key, old.chunk_key, had * sizeof *e->chunk_key));
        VX_TRY_RET(ops->copy(b->q, e->held, old.held, had * 64));
        VX_TRY_RET(VX__ESDF_RUN(b, rehash, (uint32_t)had));
    }
    return ops->wait(b->q);
}

vx_err vx__esdf_grow_chunks(struct vx__esdf_build *b, uint32_t n)
{
    struct vx__esdf *e = b->esdf, old = *e;
    uint64_t slots = vx__cells_slots(n), old_slots = e->keys ? e->view.slot_mask + 1ull : 0;
    void *chunks, *hash;
    vx_err err;

    if (n > VX__CELLS_MAX_CHUNKS)
        return vx_fail(b->detail, VX_E_EXHAUSTED, "",
                       "the distance field would span %u chunks; the most is %u", n,
                       (unsigned)VX__CELLS_MAX_CHUNKS);
    VX_TRY_RET(hold(b, chunk_bytes(n), &chunks));
    err = hold(b, hash_bytes(slots), &hash);
    if (err != VX_OK) {
        let_go(b, chunk_bytes(n), chunks);
        return err;
    }
    err = move_chunks(b, n, chunks, slots, hash);
    if (err != VX_OK) { /* only a failing device says so */
        old.bytes = e->bytes;
        *e = old;
        set_args(b);
        let_go(b, chunk_bytes(n), chunks);
        let_go(b, hash_bytes(slots), hash);
        return err;
    }
    let_go(b, chunk_bytes(old.max_chunks), old.table);
    let_go(b, hash_bytes(old_slots), old.keys);
    return VX_OK;
}

/* Longer lists of pages and of free leaf numbers. */
static vx_err grow_lists(struct vx__esdf_build *b, uint32_t pages)
{
    const struct vxk_ops *ops = b->q->dev->ops;
    struct vx__esdf *e = b->esdf;
    uint16_t **host = realloc(e->pages, pages * sizeof *host), **list;
    uint32_t *free_leaf;

    if (!host)
        return vx_fail(b->detail, VX_E_NOMEM, "", "no memory for the list of %u pages", pages);
    e->pages = host;
    VX_TRY_RET(hold(b, list_bytes(pages), &list));
    free_leaf = (uint32_t *)(void *)(list + pages);
    vx_err err = ops->upload(b->q, list, e->pages, e->n_pages * sizeof *list);
    if (err == VX_OK && e->n_free)
        err = ops->copy(b->q, free_leaf, e->free_leaf, e->n_free * sizeof *free_leaf);
    if (err == VX_OK)
        err = ops->wait(b->q);
    if (err != VX_OK) {
        let_go(b, list_bytes(pages), list);
        return err;
    }
    let_go(b, list_bytes(e->max_pages), e->page_list);
    e->page_list = list;
    e->free_leaf = free_leaf;
    e->max_pages = pages;
    return VX_OK;
}

/* Gives back the pages from the n-th on. */
static void drop_pages(struct vx__esdf_build *b, uint32_t n)
{
    while (b->esdf->n_pages > n)
        let_go(b, VXK_ESDF_PAGE_BYTES, b->esdf->pages[--b->esdf->n_pages]);
}

vx_err vx__esdf_grow_leaves(struct vx__esdf_build *b, uint64_t n)
{
    struct vx__esdf *e = b->esdf;
    uint64_t want = (n + VXK_ESDF_PAGE - 1) / VXK_ESDF_PAGE;
    uint32_t had = e->n_pages;

    if (want * VXK_ESDF_PAGE >= VXK_NONE)
        return vx_fail(b->detail, VX_E_EXHAUSTED, "", "the distance field would have %llu leaves",
                       (unsigned long long)n);
    if (want > e->max_pages)
        VX_TRY_RET(grow_lists(b, (uint32_t)(want + want / 4)));
    set_args(b);
    for (; e->n_pages < want; e->n_pages++) {
        vx_err err = hold(b, VXK_ESDF_PAGE_BYTES, &e->pages[e->n_pages]);
        if (err == VX_OK)
            continue;
        drop_pages(b, had);
        return err;
    }
    if (e->n_pages == had)
        return VX_OK;
    return b->q->dev->ops->upload(b->q, e->page_list + had, e->pages + had,
                                  (e->n_pages - had) * sizeof *e->pages);
}

/* An empty field: room for the map's chunks and some around them. */
static vx_err create(struct vx__esdf_build *b)
{
    const struct vxk_ops *ops = b->q->dev->ops;
    uint64_t chunks = b->snapshot->n_chunks + b->snapshot->n_chunks / 4 + 4;
    struct vx__esdf *e = b->esdf;
    void *host;

    VX_TRY_RET(ops->alloc_host(b->q->dev, sizeof *e->n_host, &host));
    e->n_host = host;
    VX_TRY_RET(hold(b, sizeof *e->n, &e->n));
    VX_TRY_RET(ops->fill(b->q, e->n, 0, sizeof *e->n));
    return vx__esdf_grow_chunks(
        b, (uint32_t)(chunks < VX__CELLS_MAX_CHUNKS ? chunks : (uint64_t)VX__CELLS_MAX_CHUNKS));
}

/* Writes the leaves that the plan lists.  What fails from here on leaves a field of no epoch. */
static vx_err write_leaves(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    uint32_t again = b->n.n_new < e->n_free ? b->n.n_new : e->n_free, n_new = b->n.n_new;

    VX_TRY_RET(VX__ESDF_RUN(b, outline, e->n_chunks * 64));
    VX_TRY_RET(VX__ESDF_RUN(b, outline_cells, b->n.n_dirty * 8));
    if (b->n.n_out) {
        VX_TRY_RET(VX__ESDF_RUN(b, list_out, e->n_chunks * 64));
        VX_TRY_RET(VX__ESDF_RUN(b, keep, b->n.n_changed));
        e->n_free -= again;
        e->n_numbers += n_new - again;
        b->a.n_free = e->n_free;
        e->n_updates++;
        e->n_computed += b->n.n_out;
        VX_TRY_RET(vx__esdf_batches(b));
    }
    if (b->n.n_state)
        VX_TRY_RET(VX__ESDF_RUN(b, restate, b->n.n_state * 64));
    VX_TRY_RET(VX__ESDF_RUN(b, remember, e->n_chunks * 64));
    VX_TRY_RET(vx__esdf_read(b));
    e->n_free += b->n.n_pruned;
    e->n_leaves = e->n_numbers - e->n_free;
    return VX_OK;
}

/* Moves leaves into the free numbers and gives back the pages behind them.  Only a failing device is an
 * error: without scratch the holes stay. */
static vx_err fill_holes(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    struct vx__work *w = &b->work;
    uint32_t pages = (e->n_leaves + VXK_ESDF_PAGE - 1) / VXK_ESDF_PAGE;

    if (e->n_free <= FEW_HOLES || e->n_free <= e->n_leaves / HOLE_SHARE)
        return VX_OK;
    set_args(b);
    b->a.holes = vx__work_get(w, e->n_free, sizeof *b->a.holes);
    b->a.movers = vx__work_get(w, e->n_free, sizeof *b->a.movers);
    if (w->err != VX_OK)
        return VX_OK;
    VX_TRY_RET(VX__ESDF_RUN(b, holes, e->n_free));
    VX_TRY_RET(VX__ESDF_RUN(b, movers, e->n_free));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, move, n_movers, 64, e->n_free));
    VX_TRY_RET(b->q->dev->ops->wait(b->q));
    e->n_numbers = e->n_leaves;
    e->n_free = 0;
    drop_pages(b, pages);
    return VX_OK;
}

static vx_err update(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    struct vx__work *w = &b->work;
    struct vxk_esdf_args *a = &b->a;
    uint64_t n_new;

    if (!e->keys)
        VX_TRY_RET(create(b));
    set_args(b);
    VX_TRY_RET(vx__esdf_plan(b));
    n_new = b->n.n_new > e->n_free ? b->n.n_new - e->n_free : 0;
    VX_TRY_RET(vx__esdf_grow_leaves(b, e->n_numbers + n_new));
    if (b->n.n_out) {
        a->all_out = vx__work_get(w, b->n.n_out, sizeof *a->all_out);
        a->list = vx__work_get(w, e->n_numbers + n_new, sizeof *a->list);
        a->slot = vx__work_filled(w, (uint64_t)e->n_chunks * VXK_CELLS_A_CHUNK, sizeof *a->slot, 0xff);
        VX_TRY_RET(w->err);
    }
    e->ready = false;
    VX_TRY_RET(write_leaves(b));
    VX_TRY_RET(fill_holes(b));
    e->ready = true;
    e->epoch = b->snapshot->epoch;
    return VX_OK;
}

vx_err vx__esdf_refresh(struct vx_map *map, struct vx__reader_state *rs, const struct vx__snapshot *s,
                        const struct vx_query_options *options, const struct vx__esdf **out,
                        struct vx_detail *detail)
{
    struct vx__esdf_build b = {
        .map = map, .q = rs->queue, .snapshot = s, .options = options, .detail = detail};
    struct vx__esdf *e = rs->esdf;
    vx_err err;

    *out = e;
    if (e && e->ready && e->epoch == s->epoch)
        return VX_OK;
    *out = NULL;
    if (e && e->epoch < s->cleared_epoch) {
        vx__esdf_drop(map, rs);
        e = NULL;
    }
    if (!e)
        e = calloc(1, sizeof *e);
    if (!e)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a distance field's header");
    rs->esdf = b.esdf = e;
    rs->esdf_destroy = esdf_destroy;
    rs->esdf_unpin = esdf_unpin;
    vx__work_init(&b.work, map, b.q, detail);
    vx__samples(map, s, 1, &b.a.samples);
    b.a.radius = vx__esdf_radius(vx__map_params(map));
    b.a.reach = (b.a.radius + 7) / 8;
    b.a.scale = vxk_esdf_scale(b.a.radius);
    b.a.limit = (int32_t)(b.a.radius * b.a.radius * 65536);
    b.a.since = e->ready ? (uint32_t)e->epoch : 0;
    b.width = 2 * b.a.reach + 1;
    e->view.radius = b.a.radius;
    e->view.scale = b.a.scale;
    err = update(&b);
    vx__work_drop(&b.work, 0);
    if (err == VX_OK) {
        *out = e;
        return VX_OK;
    }
    if (!e->ready) /* half of it is written, or nothing of it was ever */
        vx__esdf_drop(map, rs);
    return err;
}

void vx__esdf_drop(struct vx_map *map, struct vx__reader_state *rs)
{
    esdf_destroy(map, rs->esdf);
    rs->esdf = NULL;
}

vx_err vx__esdf_digest(struct vx_map *map, struct vx__reader_state *rs, uint64_t *out)
{
    struct vx__esdf_build b = {.map = map, .q = rs->queue, .esdf = rs->esdf};

    vx__work_init(&b.work, map, b.q, NULL);
    set_args(&b);
    b.a.digest = vx__work_filled(&b.work, 1, sizeof *b.a.digest, 0);
    vx_err err = b.work.err;
    if (err == VX_OK)
        err = VX__ESDF_RUN(&b, digest, b.esdf->n_numbers * 64);
    if (err == VX_OK)
        err = vx__work_read(&b.work, out, b.a.digest, sizeof *out);
    vx__work_drop(&b.work, 0);
    return err;
}
