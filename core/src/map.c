#include "map_internal.h"

#include "fade.h"

#include "body/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* 64 elements a slot are launched when a map is given back: fewer than 2^32. */
enum { MAX_SLOTS = 1 << 25 };
enum { FIRST_SLOTS = 1024, ESDF_PIN_EPOCHS = 32 };

void vx_map_params_default(struct vx_map_params *p)
{
    *p = (struct vx_map_params){.voxel_size_m = 0.05, .mode = VX_TSDF, .truncation_voxels = 3};
}

vx_err vx_map_check_name(const char *name, struct vx_detail *detail)
{
    size_t n = name ? strlen(name) : 0;
    if (n < 1 || n > VX_NAME_MAX ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
        return vx_fail(detail, VX_E_INVALID, "name",
                       "a map's name is 1 to 64 characters of A-Z a-z 0-9 . _ -");
    return VX_OK;
}

static vx_err check_params(const struct vx_map_params *p, struct vx_detail *detail)
{
    double r;
    if (!(p->voxel_size_m >= 1e-4 && p->voxel_size_m <= 100))
        return vx_fail(detail, VX_E_INVALID, "voxel_size_m", "must be 0.0001 to 100 m, got %g",
                       p->voxel_size_m);
    for (int k = 0; k < 3; k++)
        if (!isfinite(p->origin_m[k]) || fabs(p->origin_m[k]) > 1e9)
            return vx_fail(detail, VX_E_INVALID, "origin_m", "must be finite and within 1e9 m, got %g",
                           p->origin_m[k]);
    if (p->mode != VX_TSDF && p->mode != VX_OCCUPANCY)
        return vx_fail(detail, VX_E_INVALID, "mode", "must be tsdf or occupancy");
    if (p->weighting != VX_WEIGHT_INVERSE_SQUARE && p->weighting != VX_WEIGHT_CONSTANT)
        return vx_fail(detail, VX_E_INVALID, "weighting", "must be inverse_square or constant, got %d",
                       (int)p->weighting);
    if (!(p->truncation_voxels >= 1 && p->truncation_voxels <= 16))
        return vx_fail(detail, VX_E_INVALID, "truncation_voxels", "must be 1 to 16, got %g",
                       p->truncation_voxels);
    r = p->esdf_max_distance_m == 0 ? 10 : ceil(p->esdf_max_distance_m / p->voxel_size_m - 1e-6);
    if (!(r >= 1 && r <= 63))
        return vx_fail(detail, VX_E_INVALID, "esdf_max_distance_m",
                       "must be 1 to 63 voxels (%g to %g m at this voxel size), got %g m", p->voxel_size_m,
                       63 * p->voxel_size_m, p->esdf_max_distance_m);
    return vx__fade_check(p, detail);
}

vx_err vx__array_ensure(struct vx_map *map, struct vx__array *a, uint64_t bytes, struct vx_detail *detail)
{
    if (a->bytes >= bytes)
        return VX_OK;
    vx__array_free(map, a);
    bytes = (bytes + 4095) / 4096 * 4096;
    VX_TRY_RET(vx__account_alloc(map->device, false, bytes, &a->ptr, detail));
    a->bytes = bytes;
    __atomic_add_fetch(&map->array_bytes, bytes, __ATOMIC_RELAXED);
    return VX_OK;
}

void vx__array_free(struct vx_map *map, struct vx__array *a)
{
    vx__account_free(map->device, false, a->bytes, a->ptr);
    __atomic_sub_fetch(&map->array_bytes, a->bytes, __ATOMIC_RELAXED);
    a->ptr = NULL;
    a->bytes = 0;
}

uint64_t vx__map_bytes(const struct vx_map *map, const uint64_t n_pages[VX__N_KINDS])
{
    uint64_t bytes = 0;
    for (int k = 0; k < VX__N_KINDS; k++)
        bytes += n_pages[k] * vx__page_bytes((enum vx__page_kind)k, map->channels);
    return bytes;
}

struct vxk_grid vx__map_grid(const struct vx_map *map)
{
    struct vx_device *d = map->device;
    const struct vx__page_pool *values = vx__pool_of(d, VX__VALUE_PAGES, map->channels);
    return (struct vxk_grid){.keys = map->keys,
                             .heads = map->heads,
                             .slot_mask = map->n_slots - 1,
                             .epoch = map->epoch,
                             .chunks = d->pool[VX__CHUNKS].pages.base,
                             .leaves = d->pool[VX__LEAF_PAGES].pages.base,
                             .values = values->pages.base,
                             .colours = values->colours.base,
                             .labels = values->labels.base};
}

/* Keys, heads, and the cursors that vx__pool_give_table wants in the end. */
static uint64_t table_bytes(uint64_t slots)
{
    return slots * 12 + VX__N_KINDS * 4;
}

/* An empty table of n slots (a power of two): keys, then heads, in one block. */
static vx_err table_create(struct vx_map *map, uint32_t n, uint64_t **keys, uint32_t **heads,
                           struct vx_detail *detail)
{
    const struct vxk_ops *ops = map->device->dev->ops;
    void *block;
    VX_TRY_RET(vx__account_alloc(map->device, true, table_bytes(n), &block, detail));
    vx_err err = ops->fill(map->queue, block, 0, (uint64_t)n * 8);
    if (!err)
        err = ops->fill(map->queue, (uint64_t *)block + n, 0xff, (uint64_t)n * 4);
    if (err) {
        vx__account_free(map->device, true, table_bytes(n), block);
        return err;
    }
    *keys = block;
    *heads = (uint32_t *)(*keys + n);
    return VX_OK;
}

static void totals_reset(struct vx__totals *t)
{
    memset(t, 0, sizeof *t);
    for (int k = 0; k < 3; k++)
        t->leaf_min[k] = t->chunk_min[k] = 0xffffffffu;
}

vx_err vx_map_create(struct vx_device *device, const char *name, const struct vx_map_params *params,
                     struct vx_map **out, struct vx_detail *detail)
{
    struct vx_map *m = NULL;
    vx_err err;
    *out = NULL;
    VX_TRY_RET(vx_map_check_name(name, detail));
    VX_TRY_RET(check_params(params, detail));
    m = calloc(1, sizeof *m);
    if (!m)
        return VX_E_NOMEM;
    m->device = device;
    m->params = *params;
    m->channels = (params->colour ? VX__COLOUR : 0u) | (params->label ? VX__LABEL : 0u);
    m->esdf_radius = params->esdf_max_distance_m == 0
                         ? 10
                         : (uint32_t)ceil(params->esdf_max_distance_m / params->voxel_size_m - 1e-6);
    m->params.esdf_max_distance_m = m->esdf_radius * params->voxel_size_m;
    if (!m->params.frame_budget_bytes)
        m->params.frame_budget_bytes = device->cap_bytes / 8;
    if (!m->params.limit_bytes)
        m->params.limit_bytes = device->cap_bytes;
    vx__fade_init(m);
    snprintf(m->name, sizeof m->name, "%s", name);
    if (getrandom(m->uuid, sizeof m->uuid, 0) != sizeof m->uuid) {
        err = vx_fail(detail, VX_E_INTERNAL, "", "the system gives no random numbers");
        free(m);
        return err;
    }
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->reader_lock, NULL);
    pthread_mutex_init(&m->held_lock, NULL);
    pthread_rwlock_init(&m->field_lock, NULL);
    pthread_mutex_init(&m->now_lock, NULL);
    m->retired_end = &m->retired;
    totals_reset(&m->totals);
    VX_TRY(vx__pool_open(device, m->channels));
    VX_TRY(device->dev->ops->queue_create(device->dev, 0, &m->queue));
    VX_TRY(device->dev->ops->queue_create(device->dev, 1, &m->reader.queue));
    VX_TRY(device->dev->ops->queue_create(device->dev, 1, &m->now.queue));
    VX_TRY(vx__now_init(m, &m->now));
    m->n_slots = FIRST_SLOTS;
    VX_TRY(table_create(m, m->n_slots, &m->keys, &m->heads, detail));
    VX_TRY(vx__workspace_init(m));
    VX_TRY(device->dev->ops->wait(m->queue));
    *out = m;
    return VX_OK;
fail:
    vx_map_destroy(m);
    return err;
}

static void retired_free(struct vx_map *map, struct vx__retired *r)
{
    for (int k = 0; k < VX__N_KINDS; k++)
        vx__array_free(map, &r->ids[k]);
    if (r->keys)
        vx__account_free(map->device, true, table_bytes(r->table_slots), r->keys);
    free(r);
}

static uint64_t retired_size(const struct vx_map *map, const struct vx__retired *r)
{
    const uint64_t n[VX__N_KINDS] = {r->n[0], r->n[1], r->n[2]};
    return vx__map_bytes(map, n) + (r->keys ? table_bytes(r->table_slots) : 0);
}

/* Appends a record; caller holds the lock. */
static void append_retired(struct vx_map *map, struct vx__retired *r, uint32_t epoch)
{
    r->epoch = epoch;
    r->next = NULL;
    *map->retired_end = r;
    map->retired_end = &r->next;
    map->retired_bytes += retired_size(map, r);
}

void vx__retire(struct vx_map *map, struct vx__retired *r)
{
    pthread_mutex_lock(&map->lock);
    append_retired(map, r, map->epoch);
    pthread_mutex_unlock(&map->lock);
}

/* Every page that a table's newest versions hold, back to the pool. */
static vx_err give_table(struct vx_map *map, const uint64_t *keys, uint32_t *heads, uint32_t slots,
                         const uint64_t n[VX__N_KINDS])
{
    struct vxk_grid g = vx__map_grid(map);
    g.keys = keys;
    g.heads = heads;
    g.slot_mask = slots - 1;
    VX_TRY_RET(vx__pool_give_table(map->device, &g, map->channels, heads + slots, n, map->queue));
    return map->device->dev->ops->wait(map->queue); /* the table is read before its block is reused */
}

/* Gives back what a commit replaced, and `rest` unless it is NULL.  The record lives on until the queue has
 * read its lists. */
static vx_err give_retired(struct vx_map *map, struct vx__retired *r, const struct vx__page_lists *rest)
{
    struct vx__page_lists l = {.channels = map->channels};
    uint64_t n[VX__N_KINDS];
    for (int k = 0; k < VX__N_KINDS; k++) {
        n[k] = l.n[k] = r->n[k];
        l.ids[k] = r->ids[k].ptr;
    }
    r->next = map->given;
    map->given = r;
    if (!r->whole)
        return vx__pool_give(map->device, &l, rest, map->queue);
    VX_TRY_RET(give_table(map, r->keys, r->heads, r->table_slots, n));
    return rest ? vx__pool_give(map->device, rest, NULL, map->queue) : VX_OK;
}

void vx__retired_sweep(struct vx_map *map)
{
    while (map->given) {
        struct vx__retired *r = map->given;
        map->given = r->next;
        retired_free(map, r);
    }
}

/* The oldest record that no pin can see any more (every: any record), taken off the list, or NULL. */
static struct vx__retired *take_retired(struct vx_map *map, bool every)
{
    struct vx__retired *r;
    bool pinned = false;
    pthread_mutex_lock(&map->lock);
    r = map->retired;
    for (int i = 0; r && !every && i < VX__MAX_PINS; i++)
        pinned |= map->pin_count[i] && map->pin_epoch[i] < r->epoch;
    if (pinned)
        r = NULL;
    if (r) {
        map->retired = r->next;
        if (!map->retired)
            map->retired_end = &map->retired;
        map->retired_bytes -= retired_size(map, r);
    }
    pthread_mutex_unlock(&map->lock);
    return r;
}

/* The readers' field, unless a query is using it.  The writer never waits for queries. */
static bool try_own_field(struct vx_map *map)
{
    if (pthread_mutex_trylock(&map->reader_lock) != 0)
        return false;
    if (pthread_rwlock_trywrlock(&map->field_lock) == 0)
        return true;
    pthread_mutex_unlock(&map->reader_lock);
    return false;
}

static void disown_field(struct vx_map *map)
{
    pthread_rwlock_unlock(&map->field_lock);
    pthread_mutex_unlock(&map->reader_lock);
}

/* A field keeps its epoch pinned between queries; when none comes, what commits replace must not pile up. */
static void drop_old_pin(struct vx_map *map)
{
    if (map->epoch < ESDF_PIN_EPOCHS || !try_own_field(map))
        return;
    if (map->reader.esdf)
        map->reader.esdf_unpin(map, map->reader.esdf, map->epoch - ESDF_PIN_EPOCHS);
    disown_field(map);
}

vx_err vx__retired_drain(struct vx_map *map, const struct vx__page_lists *rest)
{
    struct vx__retired *r;
    drop_old_pin(map);
    while ((r = take_retired(map, false))) {
        VX_TRY_RET(give_retired(map, r, rest));
        rest = NULL;
    }
    return rest ? vx__pool_give(map->device, rest, NULL, map->queue) : VX_OK;
}

vx_err vx__table_reserve(struct vx_map *map, uint32_t more, struct vx_detail *detail)
{
    struct vxk_pool_rehash_args args;
    struct vx__retired *old;
    uint64_t *keys = NULL;
    uint32_t *heads = NULL, n = map->n_slots, keep = map->n_keys - map->n_asleep;
    vx_err err;
    if ((uint64_t)n >= ((uint64_t)map->n_keys + more) * 2)
        return VX_OK;
    if (map->n_asleep < n / 8) /* else their places are enough for a while */
        n *= 2;
    while (n <= MAX_SLOTS && (uint64_t)n < ((uint64_t)keep + more) * 2)
        n *= 2;
    if (n > MAX_SLOTS)
        return vx_fail(detail, VX_E_EXHAUSTED, "chunks",
                       "a map holds at most %d chunks of 128^3 voxels; use larger voxels or a second map",
                       MAX_SLOTS / 2);
    old = calloc(1, sizeof *old);
    if (!old)
        return VX_E_NOMEM;
    VX_TRY(table_create(map, n, &keys, &heads, detail));
    args = (struct vxk_pool_rehash_args){
        .old_keys = map->keys, .old_heads = map->heads, .keys = keys, .heads = heads, .slot_mask = n - 1};
    VX_TRY(VXK_LAUNCH(map->queue, pool_rehash, &args, map->n_slots));
    VX_TRY(map->device->dev->ops->wait(map->queue));
    old->keys = map->keys;
    old->heads = map->heads;
    old->table_slots = map->n_slots;
    pthread_mutex_lock(&map->lock);
    map->keys = keys;
    map->heads = heads;
    map->n_slots = n;
    map->n_keys = keep;
    map->n_asleep = 0;
    /* Readers that pinned before hold the old table: it goes with the commit that follows. */
    append_retired(map, old, map->epoch + 1);
    pthread_mutex_unlock(&map->lock);
    return VX_OK;
fail:
    vx__account_free(map->device, true, table_bytes(n), keys);
    free(old);
    return err;
}

void vx_map_destroy(struct vx_map *map)
{
    if (!map)
        return;
    const struct vxk_ops *ops = map->device->dev->ops;
    if (map->reader.room)
        map->reader.room_destroy(map, map->reader.room);
    if (map->now.room)
        map->now.room_destroy(map, map->now.room);
    if (map->reader.esdf)
        map->reader.esdf_destroy(map, map->reader.esdf);
    /* A device that fails here has lost its memory anyhow. */
    for (struct vx__retired *r; (r = take_retired(map, true));)
        (void)give_retired(map, r, NULL);
    if (map->queue)
        (void)ops->wait(map->queue);
    vx__retired_sweep(map);
    if (map->keys) {
        (void)give_table(map, map->keys, map->heads, map->n_slots, map->totals.n_pages);
        vx__account_free(map->device, true, table_bytes(map->n_slots), map->keys);
    }
    vx__workspace_fini(map);
    vx__fade_fini(map);
    if (map->reader.queue)
        ops->queue_destroy(map->reader.queue);
    if (map->now.queue)
        ops->queue_destroy(map->now.queue);
    if (map->queue)
        ops->queue_destroy(map->queue);
    pthread_mutex_destroy(&map->lock);
    pthread_mutex_destroy(&map->reader_lock);
    pthread_mutex_destroy(&map->held_lock);
    pthread_rwlock_destroy(&map->field_lock);
    pthread_mutex_destroy(&map->now_lock);
    free(map);
}

/* The reader's distance field, unless a query is using it: that one will see the new epoch and replace it. */
static void drop_reader_state(struct vx_map *map)
{
    if (!try_own_field(map))
        return;
    if (map->reader.esdf)
        map->reader.esdf_destroy(map, map->reader.esdf);
    map->reader.esdf = NULL;
    disown_field(map);
}

vx_err vx_map_clear(struct vx_map *map)
{
    struct vx__retired *r;
    uint64_t *keys;
    uint32_t *heads;
    vx_err err;
    if (map->epoch == UINT32_MAX - 1)
        return VX_E_EXHAUSTED;
    r = calloc(1, sizeof *r);
    if (!r)
        return VX_E_NOMEM;
    /* First what needs no new memory, so that a map can be cleared when the cap is reached. */
    vx__workspace_drop(map);
    drop_reader_state(map);
    VX_TRY(table_create(map, FIRST_SLOTS, &keys, &heads, NULL));
    VX_TRY(map->device->dev->ops->wait(map->queue));
    r->keys = map->keys;
    r->heads = map->heads;
    r->table_slots = map->n_slots;
    r->whole = true;
    for (int k = 0; k < VX__N_KINDS; k++)
        r->n[k] = (uint32_t)map->totals.n_pages[k];
    pthread_mutex_lock(&map->lock);
    map->keys = keys;
    map->heads = heads;
    map->n_slots = FIRST_SLOTS;
    map->n_keys = 0;
    map->n_asleep = 0;
    map->cleared_epoch = ++map->epoch;
    map->newest_stamp_ns = 0;
    map->has_stamp = false;
    totals_reset(&map->totals);
    append_retired(map, r, map->epoch);
    pthread_mutex_unlock(&map->lock);
    VX_TRY_RET(vx__retired_drain(map, NULL));
    VX_TRY_RET(map->device->dev->ops->wait(map->queue));
    vx__retired_sweep(map);
    return VX_OK;
fail:
    free(r);
    return err;
}

static void box_to_m(const struct vx_map *map, const uint32_t lo[3], const uint32_t hi[3], double unit,
                     double min_m[3], double max_m[3])
{
    for (int k = 0; k < 3; k++) {
        min_m[k] = map->params.origin_m[k] +
                   (double)(int32_t)(lo[k] ^ 0x80000000u) * unit * map->params.voxel_size_m;
        max_m[k] = map->params.origin_m[k] +
                   ((double)(int32_t)(hi[k] ^ 0x80000000u) + 1) * unit * map->params.voxel_size_m;
    }
}

/* Caller holds the lock. */
static void fill_memory(struct vx_map *map, struct vx_map_memory *out)
{
    const struct vx__totals *t = &map->totals;
    const uint64_t n_values = t->n_pages[VX__VALUE_PAGES] * VXK_VALUES_A_PAGE;
    out->topology_bytes = t->n_pages[VX__CHUNKS] * vx__page_bytes(VX__CHUNKS, 0) +
                          t->n_pages[VX__LEAF_PAGES] * vx__page_bytes(VX__LEAF_PAGES, 0);
    out->values_bytes = n_values * 4;
    out->colour_bytes = map->channels & VX__COLOUR ? n_values * 4 : 0;
    out->label_bytes = map->channels & VX__LABEL ? n_values * 2 : 0;
    out->table_bytes = table_bytes(map->n_slots);
    out->retired_bytes = map->retired_bytes;
    out->scratch_bytes = __atomic_load_n(&map->array_bytes, __ATOMIC_RELAXED);
    vx__blocks_sum(map, &out->held_bytes, &out->scratch_bytes);
}

vx_err vx_map_get_info(struct vx_map *map, struct vx_map_info *out)
{
    const struct vx__totals *t = &map->totals;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", map->name);
    memcpy(out->uuid, map->uuid, 16);
    out->params = map->params;
    out->esdf_radius_voxels = map->esdf_radius;
    vx__fade_info(map, out);
    pthread_mutex_lock(&map->lock);
    out->epoch = map->epoch;
    out->newest_stamp_ns = map->newest_stamp_ns;
    out->n_frames = map->n_frames;
    out->n_refused = map->n_refused;
    out->n_voxels = t->n_active;
    out->n_leaves = t->n_leaf;
    out->n_tiles = t->n_tile;
    out->n_chunks = t->n_chunk;
    fill_memory(map, &out->memory);
    out->used_bytes = vx__map_bytes(map, t->n_pages);
    out->has_bounds = t->chunk_min[0] <= t->chunk_max[0] && t->n_chunk;
    if (out->has_bounds) {
        box_to_m(map, t->chunk_min, t->chunk_max, 128, out->bounds_min_m, out->bounds_max_m);
        if (t->leaf_min[0] <= t->leaf_max[0])
            box_to_m(map, t->leaf_min, t->leaf_max, 8, out->active_min_m, out->active_max_m);
        else
            box_to_m(map, t->chunk_min, t->chunk_max, 128, out->active_min_m, out->active_max_m);
    }
    pthread_mutex_unlock(&map->lock);
    out->bytes_per_voxel = out->n_voxels ? (double)out->used_bytes / (double)out->n_voxels : 0;
    return VX_OK;
}
