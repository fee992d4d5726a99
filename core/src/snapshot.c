#include "map_internal.h"

#include "body/pool.h"

#include <stdlib.h>

/* A block that core handed out without its size. */
struct vx__block {
    struct vx__block *next;
    void *ptr;
    uint64_t bytes;
    bool hold;
};

vx_err vx__snapshot_pin(struct vx_map *map, struct vx__snapshot *out)
{
    int slot = -1;
    pthread_mutex_lock(&map->lock);
    for (int i = 0; i < VX__MAX_PINS; i++) {
        if (map->pin_count[i] && map->pin_epoch[i] == map->epoch) {
            slot = i;
            break;
        }
        if (!map->pin_count[i] && slot < 0)
            slot = i;
    }
    if (slot < 0) {
        pthread_mutex_unlock(&map->lock);
        return VX_E_EXHAUSTED;
    }
    map->pin_epoch[slot] = map->epoch;
    map->pin_count[slot]++;
    *out = (struct vx__snapshot){.grid = vx__map_grid(map),
                                 .epoch = map->epoch,
                                 .cleared_epoch = map->cleared_epoch,
                                 .buried_epoch = map->buried_epoch,
                                 .newest_stamp_ns = map->newest_stamp_ns,
                                 .n_leaves = map->totals.n_leaf,
                                 .n_voxels = map->totals.n_active,
                                 .n_chunks = map->totals.n_chunk,
                                 .pin_ = (uint32_t)slot};
    pthread_mutex_unlock(&map->lock);
    return VX_OK;
}

void vx__snapshot_release(struct vx_map *map, struct vx__snapshot *s)
{
    pthread_mutex_lock(&map->lock);
    map->pin_count[s->pin_]--;
    pthread_mutex_unlock(&map->lock);
}

uint64_t vx__map_buried_epoch(struct vx_map *map)
{
    uint64_t epoch;
    pthread_mutex_lock(&map->lock);
    epoch = map->buried_epoch;
    pthread_mutex_unlock(&map->lock);
    return epoch;
}

static vx_err block_alloc(struct vx_map *map, bool hold, uint64_t bytes, void **out, struct vx_detail *detail)
{
    struct vx__block *b = malloc(sizeof *b);
    vx_err err;
    *out = NULL;
    if (!b)
        return VX_E_NOMEM;
    err = vx__account_alloc(map->device, hold, bytes ? bytes : 1, out, detail);
    if (err) {
        free(b);
        return err;
    }
    *b = (struct vx__block){.ptr = *out, .bytes = bytes ? bytes : 1, .hold = hold};
    pthread_mutex_lock(&map->held_lock);
    b->next = map->blocks;
    map->blocks = b;
    pthread_mutex_unlock(&map->held_lock);
    return VX_OK;
}

void vx__blocks_sum(struct vx_map *map, uint64_t *held, uint64_t *scratch)
{
    pthread_mutex_lock(&map->held_lock);
    for (const struct vx__block *b = map->blocks; b; b = b->next)
        *(b->hold ? held : scratch) += b->bytes;
    pthread_mutex_unlock(&map->held_lock);
}

static void block_free(struct vx_map *map, void *ptr)
{
    struct vx__block **at, *b = NULL;
    if (!ptr)
        return;
    pthread_mutex_lock(&map->held_lock);
    for (at = &map->blocks; *at; at = &(*at)->next) {
        if ((*at)->ptr == ptr) {
            b = *at;
            *at = b->next;
            break;
        }
    }
    pthread_mutex_unlock(&map->held_lock);
    if (b)
        vx__account_free(map->device, b->hold, b->bytes, b->ptr);
    free(b);
}

vx_err vx__scratch_alloc(struct vx_map *map, uint64_t bytes, void **out, struct vx_detail *detail)
{
    return block_alloc(map, false, bytes, out, detail);
}

void vx__scratch_free(struct vx_map *map, void *ptr)
{
    block_free(map, ptr);
}

vx_err vx__hold_alloc(struct vx_map *map, uint64_t bytes, void **out, struct vx_detail *detail)
{
    return block_alloc(map, true, bytes, out, detail);
}

void vx__hold_free(struct vx_map *map, void *ptr)
{
    block_free(map, ptr);
}

vx_err vx__snapshot_chunks(struct vx_map *map, const struct vx__snapshot *s, struct vxk_queue *q,
                           uint32_t **versions, uint32_t *n)
{
    const struct vxk_ops *ops = q->dev->ops;
    uint32_t n_slots = s->grid.slot_mask + 1, count = 0;
    void *flags = NULL, *slots = NULL, *n_dev = NULL, *keys = NULL, *out = NULL;
    struct vxk_pool_list_args list = {.g = s->grid};
    struct vxk_pool_gather_args gather = {.g = s->grid};
    vx_err err;
    *versions = NULL;
    *n = 0;
    VX_TRY(vx__scratch_alloc(map, n_slots, &flags, NULL));
    VX_TRY(vx__scratch_alloc(map, (uint64_t)n_slots * 4, &slots, NULL));
    VX_TRY(vx__scratch_alloc(map, 4, &n_dev, NULL));
    list.flag = flags;
    VX_TRY(VXK_LAUNCH(q, pool_list, &list, n_slots));
    VX_TRY(ops->select(q, flags, slots, n_dev, n_slots));
    VX_TRY(ops->download(q, &count, n_dev, 4));
    VX_TRY(ops->wait(q));
    VX_TRY(vx__scratch_alloc(map, (uint64_t)count * 8, &keys, NULL));
    VX_TRY(vx__scratch_alloc(map, (uint64_t)count * 4, &out, NULL));
    gather.slot = slots;
    gather.key = keys;
    gather.version = out;
    VX_TRY(VXK_LAUNCH(q, pool_gather, &gather, count));
    VX_TRY(ops->sort_u64(q, keys, out, count));
    VX_TRY(ops->wait(q));
    *versions = out;
    *n = count;
    out = NULL;
fail:
    vx__scratch_free(map, flags);
    vx__scratch_free(map, slots);
    vx__scratch_free(map, n_dev);
    vx__scratch_free(map, keys);
    vx__scratch_free(map, out);
    return err;
}

vx_err vx__snapshot_leaves(struct vx_map *map, const struct vx__snapshot *s, struct vxk_queue *q,
                           const uint32_t *versions, uint32_t n_versions, uint32_t **leaves, uint32_t *n,
                           struct vx_detail *detail)
{
    const struct vxk_ops *ops = q->dev->ops;
    void *first = NULL, *out = NULL;
    struct vxk_pool_leaf_count_args count = {.g = s->grid, .version = versions};
    struct vxk_pool_leaf_list_args list = {.g = s->grid, .version = versions};
    uint32_t total = 0;
    vx_err err;
    *leaves = NULL;
    *n = 0;
    if (n_versions > 1u << 20)
        return vx_fail(detail, VX_E_EXHAUSTED, "chunks", "leaves of %u chunks at once, at most %u",
                       n_versions, 1u << 20);
    VX_TRY(vx__scratch_alloc(map, ((uint64_t)n_versions * 64 + 1) * 4, &first, detail));
    count.count = first;
    VX_TRY(VXK_LAUNCH(q, pool_leaf_count, &count, n_versions * 64));
    VX_TRY(ops->scan_u32(q, first, first, n_versions * 64));
    VX_TRY(ops->download(q, &total, (uint32_t *)first + (uint64_t)n_versions * 64, 4));
    VX_TRY(ops->wait(q));
    VX_TRY(vx__scratch_alloc(map, (uint64_t)total * 4, &out, detail));
    list.first = first;
    list.leaf = out;
    VX_TRY(VXK_LAUNCH(q, pool_leaf_list, &list, n_versions * 64));
    VX_TRY(ops->wait(q));
    *leaves = out;
    *n = total;
    out = NULL;
fail:
    vx__scratch_free(map, first);
    vx__scratch_free(map, out);
    return err;
}

uint64_t vx__scratch_budget(const struct vx_map *map)
{
    uint64_t share = map->device->cap_bytes / 16, least = 64 << 20, most = 1 << 30;
    return share < least ? least : share > most ? most : share;
}

struct vxk_dev *vx__map_dev(struct vx_map *map)
{
    return map->device->dev;
}

const struct vx_map_params *vx__map_params(struct vx_map *map)
{
    return &map->params;
}

const uint8_t *vx__map_uuid(struct vx_map *map)
{
    return map->uuid;
}

vx_err vx__reader_lock(struct vx_map *map, struct vx__reader_state **out)
{
    pthread_mutex_lock(&map->reader_lock);
    *out = &map->reader;
    return VX_OK;
}

void vx__reader_unlock(struct vx_map *map)
{
    pthread_mutex_unlock(&map->reader_lock);
}

void vx__field_lock(struct vx_map *map)
{
    pthread_rwlock_wrlock(&map->field_lock);
}

void vx__field_unlock(struct vx_map *map)
{
    pthread_rwlock_unlock(&map->field_lock);
}

bool vx__now_lock(struct vx_map *map, struct vx__reader_state **now, void **field)
{
    if (pthread_mutex_trylock(&map->now_lock) != 0)
        return false;
    if (pthread_rwlock_tryrdlock(&map->field_lock) != 0) {
        pthread_mutex_unlock(&map->now_lock);
        return false;
    }
    *now = &map->now;
    *field = map->reader.esdf;
    return true;
}

void vx__now_unlock(struct vx_map *map)
{
    pthread_rwlock_unlock(&map->field_lock);
    pthread_mutex_unlock(&map->now_lock);
}
