/* load.c - leaves in host memory to device pages, batch by batch, and one epoch of them all. */
#include "load.h"
#include "bytes_text.h"

#include "body/load.h"

#include <stdlib.h>
#include <string.h>

enum {
    CELLS = 4096,               /* of a chunk */
    CHUNK_VALUES = CELLS * 512, /* most a chunk can have */
    BATCH_CHUNKS = 1024,        /* a batch is sent when it has this much of anything */
    BATCH_LEAVES = 16384,
    BATCH_PAGES = 16384,
    ROOM_LEAVES = BATCH_LEAVES + CELLS, /* a chunk more */
    ROOM_PAGES = BATCH_PAGES + CHUNK_VALUES / VXK_VALUES_A_PAGE
};

struct held_leaf {
    uint64_t active[8], free[8];
    uint32_t value; /* place of its values in `value` */
    uint32_t n;
};

struct vx__loader {
    struct vx_map *map;
    /* the chunk that is being filled */
    bool open;
    uint64_t key;
    uint64_t tile[64];
    uint16_t leaf_of[CELLS]; /* 1 + place in `leaf`, 0 = none */
    struct held_leaf *leaf;  /* [CELLS] */
    uint32_t *value;         /* [CHUNK_VALUES] */
    uint32_t *colour;        /* likewise; NULL: the map has none */
    uint16_t *label;
    uint32_t n_leaves, n_values;
    /* the batch, as the kernels take it */
    uint64_t *b_key;                 /* [BATCH_CHUNKS] */
    struct vxk_load_in_word *b_word; /* [BATCH_CHUNKS][64] */
    struct vxk_load_in_leaf *b_leaf; /* [ROOM_LEAVES] */
    uint32_t *b_value;               /* [ROOM_PAGES][256] */
    uint32_t *b_colour;              /* likewise */
    uint16_t *b_label;
    uint32_t n_chunks, n_b_leaves, n_leaf_pages, n_value_pages;
    uint64_t n_active, n_tiles; /* of the batch */
    uint32_t leaf_min[3], leaf_max[3], chunk_min[3], chunk_max[3];
    /* on the device, kept from batch to batch */
    struct vx__array key_dev, word_dev, leaf_dev, value_dev, colour_dev, label_dev, fresh[VX__N_KINDS];
};

void vx__loader_destroy(struct vx__loader *l)
{
    if (!l)
        return;
    (void)l->map->device->dev->ops->wait(l->map->queue); /* an error sticks; the blocks are free either way */
    vx__array_free(l->map, &l->key_dev);
    vx__array_free(l->map, &l->word_dev);
    vx__array_free(l->map, &l->leaf_dev);
    vx__array_free(l->map, &l->value_dev);
    vx__array_free(l->map, &l->colour_dev);
    vx__array_free(l->map, &l->label_dev);
    for (int k = 0; k < VX__N_KINDS; k++)
        vx__array_free(l->map, &l->fresh[k]);
    free(l->leaf);
    free(l->value);
    free(l->colour);
    free(l->label);
    free(l->b_key);
    free(l->b_word);
    free(l->b_leaf);
    free(l->b_value);
    free(l->b_colour);
    free(l->b_label);
    free(l);
}

/* Host memory for the map's channels; false: there is none. */
static bool channel_room(struct vx__loader *l)
{
    const size_t room = (size_t)ROOM_PAGES * VXK_VALUES_A_PAGE;
    if (l->map->channels & VX__COLOUR) {
        l->colour = malloc((size_t)CHUNK_VALUES * sizeof *l->colour);
        l->b_colour = malloc(room * sizeof *l->b_colour);
        if (!l->colour || !l->b_colour)
            return false;
    }
    if (l->map->channels & VX__LABEL) {
        l->label = malloc((size_t)CHUNK_VALUES * sizeof *l->label);
        l->b_label = malloc(room * sizeof *l->b_label);
        if (!l->label || !l->b_label)
            return false;
    }
    return true;
}

vx_err vx__loader_create(struct vx_map *map, struct vx__loader **out, struct vx_detail *detail)
{
    struct vx__loader *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory to load a map");
    l->map = map;
    l->leaf = malloc(CELLS * sizeof *l->leaf);
    l->value = malloc((size_t)CHUNK_VALUES * sizeof *l->value);
    l->b_key = malloc(BATCH_CHUNKS * sizeof *l->b_key);
    l->b_word = malloc((size_t)BATCH_CHUNKS * 64 * sizeof *l->b_word);
    l->b_leaf = malloc(ROOM_LEAVES * sizeof *l->b_leaf);
    l->b_value = malloc((size_t)ROOM_PAGES * VXK_VALUES_A_PAGE * sizeof *l->b_value);
    if (!l->leaf || !l->value || !l->b_key || !l->b_word || !l->b_leaf || !l->b_value || !channel_room(l)) {
        vx__loader_destroy(l);
        return vx_fail(detail, VX_E_NOMEM, "", "no memory to load a map");
    }
    for (int a = 0; a < 3; a++)
        l->leaf_min[a] = l->chunk_min[a] = 0xffffffffu;
    *out = l;
    return VX_OK;
}

/* ------------------------------------------------------------------ a batch to the device */

static vx_err take_pages(struct vx__loader *l, const uint64_t n[VX__N_KINDS], struct vx_detail *detail)
{
    struct vx_map *map = l->map;
    struct vx__page_lists pages = {.channels = map->channels};
    if (vx__map_bytes(map, map->totals.n_pages) + vx__map_bytes(map, n) > map->params.limit_bytes)
        return vx_fail(detail, VX_E_EXHAUSTED, "limit_bytes",
                       "the map would pass its limit of %s; raise the limit",
                       vx__bytes_text(map->params.limit_bytes).text);
    for (int k = 0; k < VX__N_KINDS; k++)
        VX_TRY_RET(vx__array_ensure(map, &l->fresh[k], n[k] * 4, detail));
    for (int k = 0; k < VX__N_KINDS; k++) {
        pages.ids[k] = l->fresh[k].ptr;
        pages.n[k] = (uint32_t)n[k];
    }
    return vx__pool_take(map->device, &pages, map->queue, detail);
}

static vx_err upload(struct vx__loader *l, struct vx__array *to, const void *from, uint64_t bytes)
{
    return bytes ? l->map->device->dev->ops->upload(l->map->queue, to->ptr, from, bytes) : VX_OK;
}

static vx_err make_room(struct vx__loader *l, struct vx_detail *detail)
{
    struct vx_map *map = l->map;
    VX_TRY_RET(vx__array_ensure(map, &l->key_dev, l->n_chunks * sizeof *l->b_key, detail));
    VX_TRY_RET(vx__array_ensure(map, &l->word_dev, l->n_chunks * 64ull * sizeof *l->b_word, detail));
    VX_TRY_RET(vx__array_ensure(map, &l->leaf_dev, l->n_b_leaves * sizeof *l->b_leaf, detail));
    if (l->colour)
        VX_TRY_RET(
            vx__array_ensure(map, &l->colour_dev, l->n_value_pages * 4ull * VXK_VALUES_A_PAGE, detail));
    if (l->label)
        VX_TRY_RET(vx__array_ensure(map, &l->label_dev, l->n_value_pages * 2ull * VXK_VALUES_A_PAGE, detail));
    return vx__array_ensure(map, &l->value_dev, l->n_value_pages * 4ull * VXK_VALUES_A_PAGE, detail);
}

static vx_err launch(struct vx__loader *l)
{
    struct vx_map *map = l->map;
    struct vxk_queue *q = map->queue;
    const struct vxk_grid grid = vx__map_grid(map);
    const struct vxk_load_args args = {.key = l->key_dev.ptr,
                                       .word = l->word_dev.ptr,
                                       .leaf = l->leaf_dev.ptr,
                                       .value = l->value_dev.ptr,
                                       .colour = l->colour ? l->colour_dev.ptr : NULL,
                                       .label = l->label ? l->label_dev.ptr : NULL,
                                       .new_chunk = l->fresh[VX__CHUNKS].ptr,
                                       .new_leaf_page = l->fresh[VX__LEAF_PAGES].ptr,
                                       .new_value_page = l->fresh[VX__VALUE_PAGES].ptr,
                                       .chunks = map->device->pool[VX__CHUNKS].pages.base,
                                       .leaves = map->device->pool[VX__LEAF_PAGES].pages.base,
                                       .values = (uint32_t *)grid.values,
                                       .colours = (uint32_t *)grid.colours,
                                       .labels = (uint16_t *)grid.labels,
                                       .keys = map->keys,
                                       .heads = map->heads,
                                       .slot_mask = map->n_slots - 1,
                                       .epoch = map->epoch + 1};
    VX_TRY_RET(upload(l, &l->key_dev, l->b_key, l->n_chunks * sizeof *l->b_key));
    VX_TRY_RET(upload(l, &l->word_dev, l->b_word, l->n_chunks * 64ull * sizeof *l->b_word));
    VX_TRY_RET(upload(l, &l->leaf_dev, l->b_leaf, l->n_b_leaves * sizeof *l->b_leaf));
    VX_TRY_RET(upload(l, &l->value_dev, l->b_value, l->n_value_pages * 4ull * VXK_VALUES_A_PAGE));
    if (l->colour)
        VX_TRY_RET(upload(l, &l->colour_dev, l->b_colour, l->n_value_pages * 4ull * VXK_VALUES_A_PAGE));
    if (l->label)
        VX_TRY_RET(upload(l, &l->label_dev, l->b_label, l->n_value_pages * 2ull * VXK_VALUES_A_PAGE));
    VX_TRY_RET(VXK_LAUNCH(q, load_word, &args, l->n_chunks * 64));
    VX_TRY_RET(VXK_LAUNCH(q, load_leaf, &args, l->n_b_leaves));
    VX_TRY_RET(VXK_LAUNCH(q, load_page, &args, l->n_value_pages * VXK_VALUES_A_PAGE));
    VX_TRY_RET(VXK_LAUNCH(q, load_publish, &args, l->n_chunks));
    return q->dev->ops->wait(q);
}

static vx_err send_batch(struct vx__loader *l, struct vx_detail *detail)
{
    struct vx_map *map = l->map;
    struct vx__totals *t = &map->totals;
    const uint64_t n[VX__N_KINDS] = {
        [VX__CHUNKS] = l->n_chunks, [VX__LEAF_PAGES] = l->n_leaf_pages, [VX__VALUE_PAGES] = l->n_value_pages};
    if (!l->n_chunks)
        return VX_OK;
    VX_TRY_RET(make_room(l, detail));
    VX_TRY_RET(vx__table_reserve(map, l->n_chunks, detail));
    VX_TRY_RET(take_pages(l, n, detail));
    VX_TRY_RET(launch(l)); /* fails with the device only; its pages are lost with it */
    pthread_mutex_lock(&map->lock);
    for (int k = 0; k < VX__N_KINDS; k++)
        t->n_pages[k] += n[k];
    t->n_chunk += l->n_chunks;
    t->n_leaf += l->n_b_leaves;
    t->n_active += l->n_active;
    t->n_tile += l->n_tiles;
    pthread_mutex_unlock(&map->lock);
    map->n_keys += l->n_chunks;
    l->n_chunks = l->n_b_leaves = l->n_leaf_pages = l->n_value_pages = 0;
    l->n_active = l->n_tiles = 0;
    return VX_OK;
}

/* ------------------------------------------------------------------ a chunk to the batch */

static void grow_box(uint32_t lo[3], uint32_t hi[3], const int32_t at[3], int32_t last)
{
    for (int a = 0; a < 3; a++) {
        uint32_t from = (uint32_t)at[a] ^ 0x80000000u, to = (uint32_t)(at[a] + last) ^ 0x80000000u;
        lo[a] = from < lo[a] ? from : lo[a];
        hi[a] = to > hi[a] ? to : hi[a];
    }
}

static void add_word(struct vx__loader *l, uint32_t word, const int32_t chunk[3])
{
    struct vxk_load_in_word *w = &l->b_word[(uint64_t)l->n_chunks * 64 + word];
    const uint64_t first = (uint64_t)l->n_value_pages * VXK_VALUES_A_PAGE;
    uint32_t n = 0, n_leaves = 0, end;
    memset(w, 0, sizeof *w);
    w->tile = l->tile[word];
    w->leaf_page = l->n_leaf_pages;
    w->value_page = l->n_value_pages;
    for (uint32_t cell = 0; cell < 64; cell++) {
        uint32_t k = l->leaf_of[word << 6 | cell];
        const struct held_leaf *in = &l->leaf[k - 1];
        struct vxk_load_in_leaf *out = &l->b_leaf[l->n_b_leaves];
        if (!k)
            continue;
        out->at = l->n_chunks << 12 | word << 6 | cell;
        out->first = n;
        memcpy(out->active, in->active, sizeof out->active);
        memcpy(out->free, in->free, sizeof out->free);
        memcpy(l->b_value + first + n, l->value + in->value, in->n * sizeof *l->value);
        if (l->colour)
            memcpy(l->b_colour + first + n, l->colour + in->value, in->n * sizeof *l->colour);
        if (l->label)
            memcpy(l->b_label + first + n, l->label + in->value, in->n * sizeof *l->label);
        w->leaf |= 1ull << cell;
        n += in->n;
        n_leaves++;
        l->n_b_leaves++;
    }
    w->n_active = n;
    l->n_leaf_pages += (n_leaves + 7) / 8;
    end = (n + VXK_VALUES_A_PAGE - 1) / VXK_VALUES_A_PAGE * VXK_VALUES_A_PAGE;
    memset(l->b_value + first + n, 0, (end - n) * sizeof *l->b_value);
    if (l->colour)
        memset(l->b_colour + first + n, 0, (end - n) * sizeof *l->b_colour);
    if (l->label)
        memset(l->b_label + first + n, 0, (end - n) * sizeof *l->b_label);
    l->n_value_pages += end / VXK_VALUES_A_PAGE;
    l->n_active += w->n_active;
    l->n_tiles += (uint64_t)__builtin_popcountll(w->tile);
    if (w->n_active) {
        const int32_t at[3] = {chunk[0] * 16 + (int32_t)(word >> 4) * 4,
                               chunk[1] * 16 + (int32_t)(word >> 2 & 3) * 4,
                               chunk[2] * 16 + (int32_t)(word & 3) * 4};
        grow_box(l->leaf_min, l->leaf_max, at, 3);
    }
}

static vx_err close_chunk(struct vx__loader *l, struct vx_detail *detail)
{
    int32_t at[3];
    uint64_t any = l->n_leaves;
    if (!l->open)
        return VX_OK;
    l->open = false;
    for (int w = 0; w < 64; w++)
        any |= l->tile[w];
    if (!any)
        return VX_OK;
    vxk_key_xyz(l->key, &at[0], &at[1], &at[2]);
    l->b_key[l->n_chunks] = l->key;
    for (uint32_t w = 0; w < 64; w++)
        add_word(l, w, at);
    grow_box(l->chunk_min, l->chunk_max, at, 0);
    l->n_chunks++;
    return l->n_chunks == BATCH_CHUNKS || l->n_b_leaves >= BATCH_LEAVES || l->n_value_pages >= BATCH_PAGES
               ? send_batch(l, detail)
               : VX_OK;
}

vx_err vx__loader_begin(struct vx__loader *l, const int32_t at[3], struct vx_detail *detail)
{
    VX_TRY_RET(close_chunk(l, detail));
    l->open = true;
    l->key = vxk_key(at[0], at[1], at[2]);
    memset(l->tile, 0, sizeof l->tile);
    memset(l->leaf_of, 0, sizeof l->leaf_of);
    l->n_leaves = l->n_values = 0;
    return VX_OK;
}

static vx_err taken(const struct vx__loader *l, uint32_t place, struct vx_detail *detail)
{
    int32_t at[3];
    uint32_t x, y, z;
    if (!l->leaf_of[place] && !(l->tile[place >> 6] >> (place & 63) & 1))
        return VX_OK;
    vxk_key_xyz(l->key, &at[0], &at[1], &at[2]);
    vxk_cell_base(place >> 6, place & 63, &x, &y, &z);
    return vx_fail(detail, VX_E_INVALID, "leaf", "the 8^3 voxels from (%d, %d, %d) come twice",
                   at[0] * 128 + (int)x, at[1] * 128 + (int)y, at[2] * 128 + (int)z);
}

vx_err vx__loader_leaf(struct vx__loader *l, uint32_t place, const uint64_t active[8],
                       const uint64_t free_mask[8], const uint32_t *values, struct vx_detail *detail)
{
    struct held_leaf *h = &l->leaf[l->n_leaves];
    uint32_t n = 0, n_free = 0;
    VX_TRY_RET(taken(l, place, detail));
    for (int x = 0; x < 8; x++) {
        if (active[x] & free_mask[x])
            return vx_fail(detail, VX_E_INVALID, "leaf", "a voxel has a value and is free");
        n += (uint32_t)__builtin_popcountll(active[x]);
        n_free += (uint32_t)__builtin_popcountll(free_mask[x]);
    }
    if (!(n + n_free))
        return vx_fail(detail, VX_E_INVALID, "leaf", "a leaf holds nothing");
    if (n_free == 512) {
        l->tile[place >> 6] |= 1ull << (place & 63);
        return VX_OK;
    }
    memcpy(h->active, active, sizeof h->active);
    memcpy(h->free, free_mask, sizeof h->free);
    h->value = l->n_values;
    h->n = n;
    if (n)
        memcpy(l->value + l->n_values, values, n * sizeof *values);
    if (l->colour)
        memset(l->colour + l->n_values, 0, n * sizeof *l->colour);
    if (l->label)
        memset(l->label + l->n_values, 0, n * sizeof *l->label);
    l->n_values += n;
    l->leaf_of[place] = (uint16_t)++l->n_leaves;
    return VX_OK;
}

void vx__loader_channels(struct vx__loader *l, const uint32_t *colours, const uint16_t *labels)
{
    const struct held_leaf *h = &l->leaf[l->n_leaves - 1];
    if (colours && l->colour)
        memcpy(l->colour + h->value, colours, h->n * sizeof *colours);
    if (labels && l->label)
        memcpy(l->label + h->value, labels, h->n * sizeof *labels);
}

vx_err vx__loader_tiles(struct vx__loader *l, uint32_t word, uint64_t cells, struct vx_detail *detail)
{
    for (uint64_t m = cells; m; m &= m - 1)
        VX_TRY_RET(taken(l, word << 6 | (uint32_t)__builtin_ctzll(m), detail));
    l->tile[word] |= cells;
    return VX_OK;
}

vx_err vx__loader_publish(struct vx__loader *l, struct vx_detail *detail)
{
    struct vx_map *map = l->map;
    struct vx__totals *t = &map->totals;
    VX_TRY_RET(close_chunk(l, detail));
    VX_TRY_RET(send_batch(l, detail));
    pthread_mutex_lock(&map->lock);
    memcpy(t->leaf_min, l->leaf_min, sizeof t->leaf_min);
    memcpy(t->leaf_max, l->leaf_max, sizeof t->leaf_max);
    memcpy(t->chunk_min, l->chunk_min, sizeof t->chunk_min);
    memcpy(t->chunk_max, l->chunk_max, sizeof t->chunk_max);
    map->epoch++;
    pthread_mutex_unlock(&map->lock);
    return vx__retired_drain(map, NULL);
}
