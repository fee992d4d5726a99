/* esdf.c - keeps the distance field of a map's newest epoch: which leaves it has, their memory, when it is
 * rebuilt. */
#include "esdf.h"

#include "body/esdf_pass.h"
#include "esdf_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 1 << 18, /* cells whose records are looked up at once */
    PAGE_BYTES = VXK_ESDF_PAGE * 512 * 2
};

uint32_t vx__esdf_radius(const struct vx_map_params *params)
{
    double r = ceil(params->esdf_max_distance_m / params->voxel_size_m - 1e-6);

    return r < 1 ? 1 : r > VXK_ESDF_MAX_R ? VXK_ESDF_MAX_R : (uint32_t)r;
}

bool vx__cancelled(const struct vx_query_options *options)
{
    return options && options->cancelled && options->cancelled(options->context);
}

static void esdf_destroy(struct vx_map *map, void *p)
{
    struct vx__esdf *e = p;

    if (!e)
        return;
    for (uint32_t i = 0; i < e->n_pages; i++)
        vx__hold_free(map, e->pages[i]);
    free(e->pages);
    vx__hold_free(map, e->keys);
    vx__hold_free(map, e->index);
    vx__hold_free(map, e->table);
    vx__hold_free(map, e->page_list);
    free(e);
}

static vx_err hold(struct vx__esdf_build *b, uint64_t bytes, void **out)
{
    VX_TRY_RET(vx__hold_alloc(b->map, bytes, out, b->detail));
    b->esdf->bytes += bytes;
    return VX_OK;
}

vx_err vx__esdf_grow(struct vx__esdf_build *b, uint32_t n)
{
    struct vx__esdf *e = b->esdf;
    uint32_t want = (n + VXK_ESDF_PAGE - 1) / VXK_ESDF_PAGE, had = e->n_pages;

    while (e->n_pages < want) {
        void *page;
        VX_TRY_RET(hold(b, PAGE_BYTES, &page));
        e->pages[e->n_pages++] = page;
    }
    if (e->n_pages == had)
        return VX_OK;
    return b->q->dev->ops->upload(b->q, e->page_list + had, e->pages + had,
                                  (e->n_pages - had) * sizeof *e->pages);
}

/* What the sites of each cell of the map span. */
static vx_err find_spans(struct vx__esdf_build *b)
{
    struct vx__work *w = &b->work;
    uint32_t slice = b->n_cells < SLICE ? b->n_cells : SLICE;
    struct vxk_records *records;

    b->span = vx__work_filled(w, b->n_cells, sizeof *b->span, 0);
    records = vx__work_get(w, slice, sizeof *records);
    VX_TRY_RET(w->err);
    for (uint32_t first = 0; first < b->n_cells; first += slice) {
        uint32_t n = b->n_cells - first < slice ? b->n_cells - first : slice;
        struct vxk_cells_lookup_args look = {.grid = b->snapshot->grid,
                                             .chunk_key = b->owners.chunk_key,
                                             .place = b->owners.place,
                                             .out = records,
                                             .first = first,
                                             .neighbours = 1};
        struct vxk_esdf_span_args span = {.samples = b->samples, .records = records, .span = b->span + first};
        VX_TRY_RET(VXK_LAUNCH(b->q, cells_lookup, &look, n));
        VX_TRY_RET(VXK_LAUNCH(b->q, esdf_span, &span, n * 64));
    }
    return VX_OK;
}

/* Finds the chunks that hold a candidate and sorts them: *chunk_key, esdf->n_chunks.  Most maps' surfaces
 * reach few neighbours, so the first try has room for those only. */
static vx_err find_chunks(struct vx__esdf_build *b, uint64_t **chunk_key)
{
    struct vx__work *w = &b->work;
    uint64_t most = 27ull * b->n_versions, capacity = 4ull * b->n_versions + 32;
    uint32_t n = 0;

    for (capacity = capacity < most ? capacity : most;; capacity = most) {
        uint32_t keep = w->n;
        struct vxk_esdf_chunks_args a = {.chunk_key = b->owners.chunk_key,
                                         .cells = b->owners.place,
                                         .span = b->span,
                                         .slot_mask = vx__cells_slots(capacity) - 1,
                                         .capacity = (uint32_t)capacity,
                                         .radius = b->radius,
                                         .reach = b->reach};
        *chunk_key = a.found = vx__work_get(w, capacity, sizeof *a.found);
        a.n = vx__work_filled(w, 1, sizeof *a.n, 0);
        a.keys = vx__work_filled(w, a.slot_mask + 1ull, sizeof *a.keys, 0);
        VX_TRY_RET(w->err);
        VX_TRY_RET(VXK_LAUNCH(b->q, esdf_chunks, &a, b->n_cells));
        VX_TRY_RET(vx__work_read(w, &n, a.n, sizeof n));
        if (n <= capacity)
            break;
        if (capacity == most)
            return vx_fail(b->detail, VX_E_INTERNAL, "", "a surface reaches more chunks than surround it");
        vx__work_drop(w, keep);
    }
    if (n > VX__CELLS_MAX_CHUNKS)
        return vx_fail(b->detail, VX_E_EXHAUSTED, "",
                       "the distance field would span %u chunks; the most is %u", n,
                       (unsigned)VX__CELLS_MAX_CHUNKS);
    b->esdf->n_chunks = n;
    return b->q->dev->ops->sort_u64(b->q, *chunk_key, NULL, n);
}

/* Makes the field's table for the chunks and marks the candidates in them. */
static vx_err find_candidates(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    struct vx__work *w = &b->work;
    const struct vxk_ops *ops = b->q->dev->ops;
    uint64_t *chunk_key, *mask;
    uint32_t slots, words;

    VX_TRY_RET(find_chunks(b, &chunk_key));
    slots = vx__cells_slots(e->n_chunks);
    words = e->n_chunks * 64;
    VX_TRY_RET(hold(b, slots * sizeof *e->keys, (void **)&e->keys));
    VX_TRY_RET(hold(b, slots * sizeof *e->index, (void **)&e->index));
    VX_TRY_RET(hold(b, (e->n_chunks + 1ull) * VXK_CELLS_A_CHUNK * sizeof *e->table, (void **)&e->table));
    VX_TRY_RET(ops->fill(b->q, e->keys, 0, slots * sizeof *e->keys));
    VX_TRY_RET(ops->fill(b->q, e->table, 0xff, (uint64_t)e->n_chunks * VXK_CELLS_A_CHUNK * sizeof *e->table));
    mask = vx__work_filled(w, words, sizeof *mask, 0);
    VX_TRY_RET(w->err);
    struct vxk_esdf_mark_args mark = {.chunk_key = b->owners.chunk_key,
                                      .cells = b->owners.place,
                                      .span = b->span,
                                      .keys = e->keys,
                                      .index = e->index,
                                      .mask = mask,
                                      .slot_mask = slots - 1,
                                      .radius = b->radius,
                                      .reach = b->reach};
    b->c = (struct vxk_cells){
        .keys = e->keys, .index = e->index, .chunk_key = chunk_key, .mask = mask, .slot_mask = slots - 1};
    VX_TRY_RET(vx__cells_index(w, chunk_key, e->n_chunks, e->keys, e->index, slots));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_mark, &mark, b->n_cells * b->width));
    return vx__cells_number(w, &b->c, e->n_chunks, &b->n_candidates);
}

/* Which candidates have sites, lines and planes that hold anything. */
static vx_err find_families(struct vx__esdf_build *b)
{
    struct vx__work *w = &b->work;
    uint32_t n = b->n_candidates;

    b->sites = vx__work_filled(w, n, 1, 0);
    b->lines = vx__work_get(w, n, 1);
    b->planes = vx__work_get(w, n, 1);
    for (int i = 0; i < 3; i++) {
        b->level[i].slot = vx__work_filled(w, n, sizeof *b->level[i].slot, 0xff);
        b->level[i].list = vx__work_get(w, n, sizeof *b->level[i].list);
    }
    b->count = vx__work_get(w, 3, sizeof *b->count);
    VX_TRY_RET(w->err);
    struct vxk_esdf_families_args families = {.c = b->c,
                                              .chunk_key = b->owners.chunk_key,
                                              .cells = b->owners.place,
                                              .span = b->span,
                                              .sites = b->sites};
    struct vxk_esdf_lines_at_args lines = {
        .c = b->c, .sites = b->sites, .lines = b->lines, .reach = b->reach};
    struct vxk_esdf_planes_at_args planes = {
        .c = b->c, .lines = b->lines, .planes = b->planes, .reach = b->reach};
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_families, &families, b->n_cells));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_lines_at, &lines, n));
    return VXK_LAUNCH(b->q, esdf_planes_at, &planes, n);
}

/* Host and device arrays of page pointers, long enough for every candidate to exist. */
static vx_err make_page_list(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;

    e->max_pages = b->n_candidates / VXK_ESDF_PAGE + 1;
    e->pages = calloc(e->max_pages, sizeof *e->pages);
    if (!e->pages)
        return vx_fail(b->detail, VX_E_NOMEM, "", "no memory for the list of %u pages", e->max_pages);
    return hold(b, e->max_pages * sizeof *e->pages, (void **)&e->page_list);
}

/* A field without surfaces: its table is empty. */
static vx_err make_empty(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    uint32_t slots = vx__cells_slots(0);

    VX_TRY_RET(hold(b, slots * sizeof *e->keys, (void **)&e->keys));
    VX_TRY_RET(hold(b, slots * sizeof *e->index, (void **)&e->index));
    e->view.slot_mask = slots - 1;
    return b->q->dev->ops->fill(b->q, e->keys, 0, slots * sizeof *e->keys);
}

static vx_err build(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;

    VX_TRY_RET(vx__snapshot_chunks(b->map, b->snapshot, b->q, &b->versions, &b->n_versions));
    if (b->versions)
        vx__work_adopt(&b->work, b->versions);
    VX_TRY_RET(vx__site_cells(&b->work, &b->samples, b->versions, b->n_versions, &b->owners, &b->n_cells));
    if (b->n_cells) {
        VX_TRY_RET(find_spans(b));
        VX_TRY_RET(find_candidates(b));
    }
    if (!b->n_candidates) {
        if (!e->keys)
            VX_TRY_RET(make_empty(b));
    } else {
        VX_TRY_RET(find_families(b));
        VX_TRY_RET(make_page_list(b));
        VX_TRY_RET(vx__esdf_batches(b));
    }
    e->view.keys = e->keys;
    e->view.index = e->index;
    e->view.table = e->table;
    e->view.pages = e->page_list;
    if (b->n_candidates)
        e->view.slot_mask = b->c.slot_mask;
    e->view.radius = b->radius;
    e->view.scale = vxk_esdf_scale(b->radius);
    e->epoch = b->snapshot->epoch;
    return b->q->dev->ops->wait(b->q);
}

vx_err vx__esdf_refresh(struct vx_map *map, struct vx__reader_state *rs, const struct vx__snapshot *s,
                        const struct vx_query_options *options, const struct vx__esdf **out,
                        struct vx_detail *detail)
{
    struct vx__esdf *kept = rs->esdf;
    struct vx__esdf_build b = {
        .map = map, .q = rs->queue, .snapshot = s, .options = options, .detail = detail};
    vx_err err;

    *out = kept;
    if (kept && kept->epoch == s->epoch)
        return VX_OK;
    b.esdf = calloc(1, sizeof *b.esdf);
    if (!b.esdf)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a distance field's header");
    vx__work_init(&b.work, map, b.q, detail);
    vx__samples(map, s, 1, &b.samples);
    b.radius = vx__esdf_radius(vx__map_params(map));
    b.reach = (b.radius + 7) / 8;
    b.width = 2 * b.reach + 1;
    b.limit = (int32_t)(b.radius * b.radius * 65536);
    err = build(&b);
    vx__work_drop(&b.work, 0);
    if (err != VX_OK) {
        (void)b.q->dev->ops->wait(b.q);
        esdf_destroy(map, b.esdf);
        return err;
    }
    esdf_destroy(map, kept);
    rs->esdf = b.esdf;
    rs->esdf_destroy = esdf_destroy;
    *out = b.esdf;
    return VX_OK;
}
