/* nvdb_gather.c - an epoch's chunks in NanoVDB's order, in host memory, some at a time. */
#include "nvdb_gather.h"

#include "nvdb_format.h"

#include <stdlib.h>
#include <string.h>

enum {
    SURVEY_CHUNKS = 1024, /* a launch */
    BATCH_CHUNKS = 1024,
    BATCH_LEAVES = 8192,
    BATCH_VALUES = 1 << 20
};

static vx_err no_memory(struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_NOMEM, "", "no memory for the export");
}

/* ------------------------------------------------------------------ the list */

static int by_order(const void *a, const void *b)
{
    return vx__nvdb_order(((const struct vx__nvdb_chunk *)a)->at, ((const struct vx__nvdb_chunk *)b)->at);
}

static void note_chunk(struct vx__nvdb_chunk *c, uint64_t key, const struct vxk_load_survey_word *word)
{
    vxk_key_xyz(key, &c->at[0], &c->at[1], &c->at[2]);
    for (int w = 0; w < 64; w++) {
        c->n_leaves += vxk_popc64(word[w].active);
        c->n_active += word[w].n_active;
        c->n_part += vxk_popc64(word[w].part);
        c->n_tile_words += word[w].tile != 0;
    }
}

/* Survey of n versions (device) to the host. */
static vx_err survey(struct vx__nvdb_gather *g, struct vx__work *w, const uint32_t *versions, uint32_t n,
                     struct vxk_load_survey_word *out, uint64_t *keys)
{
    struct vxk_load_survey_args a = {.g = g->snapshot->grid, .version = versions};
    a.out = vx__work_get(w, n * 64ull, sizeof *a.out);
    a.key = vx__work_get(w, n, sizeof *a.key);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(g->q, load_survey, &a, n * 64));
    VX_TRY_RET(g->q->dev->ops->download(g->q, keys, a.key, n * sizeof *keys));
    return vx__work_read(w, out, a.out, n * 64ull * sizeof *out);
}

static vx_err fill_list(struct vx__nvdb_gather *g, struct vx__work *w, const uint32_t *versions)
{
    struct vx__nvdb_list *l = &g->list;
    struct vxk_load_survey_word *word = malloc((size_t)SURVEY_CHUNKS * 64 * sizeof *word);
    uint64_t *keys = malloc(SURVEY_CHUNKS * sizeof *keys);
    uint32_t *ids = malloc(SURVEY_CHUNKS * sizeof *ids), keep = w->n;
    vx_err err = word && keys && ids ? VX_OK : no_memory(g->detail);
    VX_TRY(err);
    for (uint32_t first = 0; first < l->n; first += SURVEY_CHUNKS) {
        uint32_t n = l->n - first < SURVEY_CHUNKS ? l->n - first : SURVEY_CHUNKS;
        VX_TRY(g->q->dev->ops->download(g->q, ids, versions + first, n * sizeof *ids));
        VX_TRY(survey(g, w, versions + first, n, word, keys));
        vx__work_drop(w, keep);
        for (uint32_t i = 0; i < n; i++) {
            l->chunk[first + i].version = ids[i];
            note_chunk(&l->chunk[first + i], keys[i], word + (size_t)i * 64);
        }
    }
fail:
    free(word);
    free(keys);
    free(ids);
    return err;
}

static void sum_list(struct vx__nvdb_list *l)
{
    const int32_t *upper = NULL;
    qsort(l->chunk, l->n, sizeof *l->chunk, by_order);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct vx__nvdb_chunk *c = &l->chunk[i];
        l->n_leaves += c->n_leaves;
        l->n_active += c->n_active;
        l->n_part += c->n_part;
        l->n_tile_words += c->n_tile_words;
        if (!c->n_active)
            continue;
        l->n_lower++;
        if (!upper || upper[0] >> 5 != c->at[0] >> 5 || upper[1] >> 5 != c->at[1] >> 5 ||
            upper[2] >> 5 != c->at[2] >> 5)
            l->n_upper++;
        upper = c->at;
    }
}

vx_err vx__nvdb_gather_init(struct vx__nvdb_gather *g, struct vx_map *map, struct vxk_queue *q,
                            const struct vx__snapshot *snapshot, struct vx_detail *detail)
{
    struct vx__work w;
    uint32_t *versions = NULL;
    vx_err err;
    *g = (struct vx__nvdb_gather){.map = map, .q = q, .snapshot = snapshot, .detail = detail};
    vx__work_init(&w, map, q, detail);
    VX_TRY(vx__snapshot_chunks(map, snapshot, q, &versions, &g->list.n));
    if (versions)
        vx__work_adopt(&w, versions);
    g->list.chunk = calloc(g->list.n + 1ull, sizeof *g->list.chunk);
    VX_TRY(g->list.chunk ? VX_OK : no_memory(detail));
    VX_TRY(fill_list(g, &w, versions));
    sum_list(&g->list);
fail:
    vx__work_drop(&w, 0);
    return err;
}

/* ------------------------------------------------------------------ a batch */

static void batch_fini(struct vx__nvdb_batch *b)
{
    free(b->survey);
    free(b->leaf_from);
    free(b->leaf);
    free(b->mask);
    free(b->value_from);
    free(b->value);
    free(b->colour);
    free(b->label);
    memset(b, 0, sizeof *b);
}

void vx__nvdb_gather_fini(struct vx__nvdb_gather *g)
{
    batch_fini(&g->batch);
    free(g->list.chunk);
    g->list.chunk = NULL;
}

/* Chunks from `first` on that fit into one batch; at least one. */
static uint32_t batch_size(const struct vx__nvdb_gather *g, uint32_t first)
{
    uint64_t leaves = 0, values = 0;
    uint32_t n = 0;
    while (first + n < g->list.n && n < (uint32_t)BATCH_CHUNKS >> g->shrink) {
        const struct vx__nvdb_chunk *c = &g->list.chunk[first + n];
        leaves += c->n_leaves + c->n_part;
        values += c->n_active;
        if (n &&
            (leaves > (uint64_t)BATCH_LEAVES >> g->shrink || values > (uint64_t)BATCH_VALUES >> g->shrink))
            break;
        n++;
    }
    return n ? n : first < g->list.n;
}

/* n numbers from the device, if there are any; they arrive with the next wait. */
static vx_err channel(struct vx__nvdb_gather *g, const uint32_t *from, uint32_t n, uint32_t **out)
{
    if (!from)
        return VX_OK;
    *out = malloc((n + 1ull) * sizeof **out);
    if (!*out)
        return no_memory(g->detail);
    return g->q->dev->ops->download(g->q, *out, from, n * sizeof **out);
}

static vx_err gather_leaves(struct vx__nvdb_gather *g, struct vx__work *w, const uint32_t *versions)
{
    const struct vxk_ops *ops = g->q->dev->ops;
    struct vx__nvdb_batch *b = &g->batch;
    struct vxk_load_masks_args masks = {.g = g->snapshot->grid, .version = versions};
    struct vxk_load_values_args values = {.g = g->snapshot->grid, .version = versions};
    const struct vx_map_params *params = vx__map_params(g->map);
    uint32_t *leaves = NULL, total;
    VX_TRY_RET(
        vx__snapshot_leaves(g->map, g->snapshot, g->q, versions, b->n, &leaves, &b->n_leaves, g->detail));
    if (leaves)
        vx__work_adopt(w, leaves);
    masks.leaf = values.leaf = leaves;
    masks.out = vx__work_get(w, b->n_leaves, sizeof *masks.out);
    masks.count = vx__work_get(w, b->n_leaves + 1ull, sizeof *masks.count);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(g->q, load_masks, &masks, b->n_leaves));
    VX_TRY_RET(ops->scan_u32(g->q, masks.count, masks.count, b->n_leaves));
    VX_TRY_RET(vx__work_read(w, &total, masks.count + b->n_leaves, sizeof total));
    values.first = masks.count;
    values.out = vx__work_get(w, total, sizeof *values.out);
    if (params->colour)
        values.colour = vx__work_get(w, total, sizeof *values.colour);
    if (params->label)
        values.label = vx__work_get(w, total, sizeof *values.label);
    VX_TRY_RET(w->err);
    VX_TRY_RET(VXK_LAUNCH(g->q, load_values, &values, b->n_leaves * 8));
    b->leaf = malloc((b->n_leaves + 1ull) * sizeof *b->leaf);
    b->mask = malloc((b->n_leaves + 1ull) * sizeof *b->mask);
    b->value_from = malloc((b->n_leaves + 1ull) * sizeof *b->value_from);
    b->value = malloc((total + 1ull) * sizeof *b->value);
    if (!b->leaf || !b->mask || !b->value_from || !b->value)
        return no_memory(g->detail);
    VX_TRY_RET(channel(g, values.colour, total, &b->colour));
    VX_TRY_RET(channel(g, values.label, total, &b->label));
    VX_TRY_RET(ops->download(g->q, b->leaf, leaves, b->n_leaves * sizeof *b->leaf));
    VX_TRY_RET(ops->download(g->q, b->mask, masks.out, b->n_leaves * sizeof *b->mask));
    VX_TRY_RET(ops->download(g->q, b->value_from, masks.count, (b->n_leaves + 1ull) * sizeof *b->value_from));
    return vx__work_read(w, b->value, values.out, total * sizeof *b->value);
}

static vx_err gather_batch(struct vx__nvdb_gather *g, struct vx__work *w)
{
    struct vx__nvdb_batch *b = &g->batch;
    uint32_t *ids = malloc(b->n * sizeof *ids), *versions;
    uint64_t *keys = malloc(b->n * sizeof *keys);
    vx_err err = ids && keys ? VX_OK : no_memory(g->detail);
    VX_TRY(err);
    b->survey = malloc((size_t)b->n * 64 * sizeof *b->survey);
    b->leaf_from = malloc((b->n + 1ull) * sizeof *b->leaf_from);
    VX_TRY(b->survey && b->leaf_from ? VX_OK : no_memory(g->detail));
    for (uint32_t i = 0; i < b->n; i++)
        ids[i] = g->list.chunk[b->first + i].version;
    versions = vx__work_get(w, b->n, sizeof *versions);
    VX_TRY(w->err);
    VX_TRY(g->q->dev->ops->upload(g->q, versions, ids, b->n * sizeof *ids));
    VX_TRY(survey(g, w, versions, b->n, b->survey, keys));
    VX_TRY(gather_leaves(g, w, versions));
    for (uint32_t i = 0, k = 0; i <= b->n; i++) {
        while (k < b->n_leaves && b->leaf[k] >> 12 < i)
            k++;
        b->leaf_from[i] = k;
    }
fail:
    free(ids);
    free(keys);
    return err;
}

vx_err vx__nvdb_gather_next(struct vx__nvdb_gather *g)
{
    uint32_t first = g->batch.first + g->batch.n;
    struct vx__work w;
    for (;;) {
        vx_err err;
        batch_fini(&g->batch);
        g->batch.first = first;
        g->batch.n = batch_size(g, first);
        if (!g->batch.n)
            return VX_OK;
        vx__work_init(&w, g->map, g->q, g->detail);
        err = gather_batch(g, &w);
        vx__work_drop(&w, 0);
        if (err != VX_E_EXHAUSTED || g->batch.n == 1)
            return err;
        g->shrink++; /* no room for so much scratch: less at a time */
    }
}
