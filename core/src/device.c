#include "bytes_text.h"
#include "pool.h"

#include "body/pool.h"

#include <stdlib.h>

/* Pages leave 1/KEEP_SHARE of the cap alone, so that a full map can still be asked for its digest or a small
 * query. */
enum { MIN_CAP_BYTES = 16 << 20, GROW_STEP_BYTES = 1 << 20, GROW_SHARE = 16, KEEP_SHARE = 32 };

uint64_t vx__page_bytes(enum vx__page_kind kind, unsigned channels)
{
    switch (kind) {
    case VX__CHUNKS:
        return sizeof(struct vxk_chunk);
    case VX__LEAF_PAGES:
        return sizeof(struct vxk_leaf) * VXK_LEAVES_A_PAGE;
    default:
        return VXK_VALUES_A_PAGE *
               (4ull + (channels & VX__COLOUR ? 4u : 0u) + (channels & VX__LABEL ? 2u : 0u));
    }
}

struct vx__page_pool *vx__pool_of(struct vx_device *d, enum vx__page_kind kind, unsigned channels)
{
    return &d->pool[kind == VX__VALUE_PAGES && channels ? VX__N_KINDS + channels - 1 : (unsigned)kind];
}

/* Reserves addresses for as many pages as the cap allows; takes no memory. */
static vx_err pool_reserve(struct vx_device *d, enum vx__page_kind kind, unsigned channels)
{
    struct vx__page_pool *p = vx__pool_of(d, kind, channels);
    const struct vxk_ops *ops = d->dev->ops;
    uint64_t units, value_bytes = 4 * VXK_VALUES_A_PAGE;
    p->unit_bytes = vx__page_bytes(kind, channels);
    units = d->cap_bytes / p->unit_bytes + 1;
    if (units > 0xfffffff0u)
        units = 0xfffffff0u;
    VX_TRY_RET(
        ops->reserve(d->dev, units * (kind == VX__VALUE_PAGES ? value_bytes : p->unit_bytes), &p->pages));
    VX_TRY_RET(ops->reserve(d->dev, units * 4, &p->stack));
    if (channels & VX__COLOUR)
        VX_TRY_RET(ops->reserve(d->dev, units * value_bytes, &p->colours));
    if (channels & VX__LABEL)
        VX_TRY_RET(ops->reserve(d->dev, units * 2 * VXK_VALUES_A_PAGE, &p->labels));
    return VX_OK;
}

static void pool_release(struct vx_device *d, struct vx__page_pool *p)
{
    struct vxk_range *const all[] = {&p->pages, &p->stack, &p->colours, &p->labels};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->base)
            d->dev->ops->release(d->dev, all[i]);
    *p = (struct vx__page_pool){0};
}

vx_err vx__pool_open(struct vx_device *d, unsigned channels)
{
    struct vx__page_pool *p = vx__pool_of(d, VX__VALUE_PAGES, channels);
    vx_err err = VX_OK;
    pthread_mutex_lock(&d->lock);
    if (!p->unit_bytes) {
        err = pool_reserve(d, VX__VALUE_PAGES, channels);
        if (err)
            pool_release(d, p);
    }
    pthread_mutex_unlock(&d->lock);
    return err;
}

static void note_peak(struct vx_device *d)
{
    uint64_t now = d->page_bytes + d->scratch_bytes + d->hold_bytes;
    if (now > d->peak_bytes)
        d->peak_bytes = now;
}

vx_err vx_device_open(const struct vx_device_params *params, struct vx_device **out, struct vx_detail *detail)
{
    struct vx_device *d = calloc(1, sizeof *d);
    struct vxk_info info;
    vx_err err;
    *out = NULL;
    if (!d)
        return VX_E_NOMEM;
    pthread_mutex_init(&d->lock, NULL);
    d->backend = params->backend;
    VX_TRY(vxk_open(params->backend, params->index, params->n_threads, &d->dev, detail));
    d->dev->ops->info(d->dev, &info);
    d->cap_bytes = params->cap_bytes ? params->cap_bytes : info.free_bytes / 4 * 3;
    if (d->cap_bytes < MIN_CAP_BYTES) {
        err = vx_fail(detail, VX_E_INVALID, "memory_cap_bytes",
                      "the memory cap is %llu bytes; at least 16 MiB are needed",
                      (unsigned long long)d->cap_bytes);
        goto fail;
    }
    VX_TRY(d->dev->ops->event_create(d->dev, &d->stacks_done));
    for (int k = 0; k < VX__N_KINDS; k++)
        VX_TRY(pool_reserve(d, (enum vx__page_kind)k, 0));
    *out = d;
    return VX_OK;
fail:
    vx_device_close(d);
    return err;
}

void vx_device_close(struct vx_device *d)
{
    if (!d)
        return;
    if (d->dev) {
        const struct vxk_ops *ops = d->dev->ops;
        for (int k = 0; k < VX__N_POOLS; k++)
            pool_release(d, &d->pool[k]);
        if (d->stacks_done)
            ops->event_destroy(d->stacks_done);
        ops->close(d->dev);
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
}

void vx_device_get_stats(struct vx_device *d, struct vx_device_stats *out)
{
    static const char *const names[] = {[VXK_CPU] = "cpu", [VXK_CUDA] = "cuda", [VXK_GUARD] = "guard"};
    struct vxk_info info;
    uint64_t free_bytes = 0;
    d->dev->ops->info(d->dev, &info);
    pthread_mutex_lock(&d->lock);
    for (int k = 0; k < VX__N_POOLS; k++)
        free_bytes += d->pool[k].n_free * (d->pool[k].unit_bytes + 4);
    *out = (struct vx_device_stats){.backend = names[d->backend],
                                    .cap_bytes = d->cap_bytes,
                                    .used_bytes = d->page_bytes - free_bytes + d->hold_bytes,
                                    .scratch_bytes = d->scratch_bytes,
                                    .reserved_bytes = d->page_bytes + d->scratch_bytes + d->hold_bytes,
                                    .peak_bytes = d->peak_bytes,
                                    .pinned_bytes = info.pinned_bytes,
                                    .n_allocs = info.n_allocs + d->n_commits};
    pthread_mutex_unlock(&d->lock);
    _Static_assert(sizeof out->name == sizeof info.name, "one length");
    for (size_t i = 0; i < sizeof out->name; i++)
        out->name[i] = info.name[i];
}

vx_err vx_device_alloc_host(struct vx_device *d, uint64_t bytes, void **out)
{
    return d->dev->ops->alloc_host(d->dev, bytes, out);
}

void vx_device_free_host(struct vx_device *d, void *ptr)
{
    if (ptr)
        d->dev->ops->free_host(d->dev, ptr);
}

/* Bytes that the cap still allows.  Caller holds the lock. */
static uint64_t room_left(const struct vx_device *d)
{
    uint64_t now = d->page_bytes + d->scratch_bytes + d->hold_bytes;
    return now < d->cap_bytes ? d->cap_bytes - now : 0;
}

static vx_err commit_units(struct vx_device *d, struct vx__page_pool *p, uint64_t n)
{
    const struct vxk_ops *ops = d->dev->ops;
    const uint64_t beside =
        (p->colours.base ? n * 4 * VXK_VALUES_A_PAGE : 0) + (p->labels.base ? n * 2 * VXK_VALUES_A_PAGE : 0);
    d->n_commits++;
    VX_TRY_RET(ops->commit(d->dev, &p->pages, n * p->unit_bytes - beside));
    if (p->colours.base)
        VX_TRY_RET(ops->commit(d->dev, &p->colours, n * 4 * VXK_VALUES_A_PAGE));
    if (p->labels.base)
        VX_TRY_RET(ops->commit(d->dev, &p->labels, n * 2 * VXK_VALUES_A_PAGE));
    return ops->commit(d->dev, &p->stack, n * 4);
}

/* Work of q on the stacks comes after what other queues did to them.  Caller holds the lock. */
static vx_err stacks_enter(struct vx_device *d, struct vxk_queue *q)
{
    if (!d->stacks_by || d->stacks_by == q)
        return VX_OK;
    return d->dev->ops->event_wait(q, d->stacks_done);
}

static vx_err stacks_leave(struct vx_device *d, struct vxk_queue *q)
{
    d->stacks_by = q;
    return d->dev->ops->event_record(q, d->stacks_done);
}

/* Commits at least `need` more units and puts their ids on the stack.  Caller holds the lock, q has entered.
 */
static vx_err grow(struct vx_device *d, struct vx__page_pool *p, uint32_t need, struct vxk_queue *q,
                   struct vx_detail *detail)
{
    const struct vxk_ops *ops = d->dev->ops;
    uint64_t step = p->n_units / GROW_SHARE, keep = d->cap_bytes / KEEP_SHARE, room = room_left(d);
    uint64_t left = room > keep ? (room - keep) / (p->unit_bytes + 4) : 0;
    struct vxk_pool_iota_args args;
    vx_err err;
    if (step < GROW_STEP_BYTES / p->unit_bytes)
        step = GROW_STEP_BYTES / p->unit_bytes;
    if (step < need)
        step = need;
    if (step > left / 2) /* little is left: no more than is needed */
        step = need;
    if (step > left)
        return vx_fail(
            detail, VX_E_EXHAUSTED, "memory_cap_bytes",
            "the memory cap of %s is reached (%s more were needed); clear or delete maps, or raise "
            "the cap",
            vx__bytes_text(d->cap_bytes).text, vx__bytes_text(need * p->unit_bytes).text);
    err = commit_units(d, p, p->n_units + step);
    if (err && err != VX_E_DEVICE) {
        ops->trim(d->dev); /* idle blocks of scratch memory may be what is missing */
        err = commit_units(d, p, p->n_units + step);
    }
    if (err)
        return vx_fail(detail, err == VX_E_DEVICE ? err : VX_E_EXHAUSTED, "memory_cap_bytes",
                       "the device has no %s left although the cap allows them; lower the cap or free device "
                       "memory",
                       vx__bytes_text(step * p->unit_bytes).text);
    args.out = (uint32_t *)p->stack.base + p->n_free;
    args.first = p->n_units;
    VX_TRY_RET(VXK_LAUNCH(q, pool_iota, &args, (uint32_t)step));
    VX_TRY_RET(stacks_leave(d, q));
    p->n_units += (uint32_t)step;
    p->n_free += (uint32_t)step;
    d->page_bytes += step * (p->unit_bytes + 4);
    note_peak(d);
    return VX_OK;
}

/* Moves lists (of one map) between the stacks and l.  beside: what was launched last on q has nothing to do
 * with them. Caller holds the lock. */
static vx_err move_ids(struct vx_device *d, const struct vx__page_lists *const l[2], bool take, bool beside,
                       struct vxk_queue *q)
{
    struct vxk_pool_move_args args = {.end = {0}};
    struct vx__page_pool *pool[VX__N_KINDS];
    uint32_t end = 0, height[VX__N_KINDS];
    for (int k = 0; k < VX__N_KINDS; k++) {
        pool[k] = vx__pool_of(d, (enum vx__page_kind)k, l[0]->channels);
        height[k] = pool[k]->n_free;
    }
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < VX__N_KINDS; k++) {
            uint32_t n = l[i] ? l[i]->n[k] : 0, *stack = (uint32_t *)pool[k]->stack.base;
            int at = i * VX__N_KINDS + k;
            height[k] -= take ? n : 0;
            args.end[at] = end += n;
            if (!n)
                continue;
            args.from[at] = take ? stack + height[k] : l[i]->ids[k];
            args.to[at] = take ? l[i]->ids[k] : stack + height[k];
            height[k] += take ? 0 : n;
        }
    }
    VX_TRY_RET(stacks_enter(d, q));
    if (beside)
        VX_TRY_RET(VXK_LAUNCH(q, pool_take, &args, end));
    else
        VX_TRY_RET(VXK_LAUNCH(q, pool_move, &args, end));
    VX_TRY_RET(stacks_leave(d, q));
    for (int k = 0; k < VX__N_KINDS; k++)
        pool[k]->n_free = height[k];
    return VX_OK;
}

vx_err vx__pool_take(struct vx_device *d, const struct vx__page_lists *l, struct vxk_queue *q,
                     struct vx_detail *detail)
{
    const struct vx__page_lists *const lists[2] = {l, NULL};
    vx_err err;
    pthread_mutex_lock(&d->lock);
    VX_TRY(stacks_enter(d, q));
    for (int k = 0; k < VX__N_KINDS; k++) {
        struct vx__page_pool *p = vx__pool_of(d, (enum vx__page_kind)k, l->channels);
        if (p->n_free < l->n[k])
            VX_TRY(grow(d, p, l->n[k] - p->n_free, q, detail));
    }
    err = move_ids(d, lists, true, false, q);
fail:
    pthread_mutex_unlock(&d->lock);
    return err;
}

vx_err vx__pool_take_free(struct vx_device *d, struct vx__page_lists *l, struct vxk_queue *q)
{
    const struct vx__page_lists *const lists[2] = {l, NULL};
    vx_err err;
    pthread_mutex_lock(&d->lock);
    for (int k = 0; k < VX__N_KINDS; k++) {
        const struct vx__page_pool *p = vx__pool_of(d, (enum vx__page_kind)k, l->channels);
        if (l->n[k] > p->n_free)
            l->n[k] = p->n_free;
    }
    err = move_ids(d, lists, true, true, q);
    pthread_mutex_unlock(&d->lock);
    return err;
}

vx_err vx__pool_give(struct vx_device *d, const struct vx__page_lists *l, const struct vx__page_lists *more,
                     struct vxk_queue *q)
{
    const struct vx__page_lists *const lists[2] = {l, more};
    uint32_t n = 0;
    vx_err err;
    for (int k = 0; k < VX__N_KINDS; k++)
        n += l->n[k] + (more ? more->n[k] : 0);
    if (!n)
        return VX_OK;
    pthread_mutex_lock(&d->lock);
    err = move_ids(d, lists, false, false, q);
    pthread_mutex_unlock(&d->lock);
    return err;
}

vx_err vx__pool_give_table(struct vx_device *d, const struct vxk_grid *g, unsigned channels,
                           uint32_t *cursors, const uint64_t n[VX__N_KINDS], struct vxk_queue *q)
{
    const struct vxk_ops *ops = d->dev->ops;
    struct vx__page_pool *pool[VX__N_KINDS];
    struct vxk_pool_collect_args args = {.g = *g, .n = cursors};
    uint32_t *top[VX__N_KINDS];
    vx_err err = VX_OK;
    pthread_mutex_lock(&d->lock);
    for (int k = 0; k < VX__N_KINDS; k++) {
        pool[k] = vx__pool_of(d, (enum vx__page_kind)k, channels);
        top[k] = (uint32_t *)pool[k]->stack.base + pool[k]->n_free;
    }
    args.chunk = top[VX__CHUNKS];
    args.leaf_page = top[VX__LEAF_PAGES];
    args.value_page = top[VX__VALUE_PAGES];
    VX_TRY(stacks_enter(d, q));
    VX_TRY(ops->fill(q, cursors, 0, VX__N_KINDS * sizeof *cursors));
    VX_TRY(VXK_LAUNCH(q, pool_collect, &args, (g->slot_mask + 1) * 64));
    VX_TRY(stacks_leave(d, q));
    for (int k = 0; k < VX__N_KINDS; k++)
        pool[k]->n_free += (uint32_t)n[k];
fail:
    pthread_mutex_unlock(&d->lock);
    return err;
}

vx_err vx__account_alloc(struct vx_device *d, bool hold, uint64_t bytes, void **out, struct vx_detail *detail)
{
    vx_err err;
    *out = NULL;
    pthread_mutex_lock(&d->lock);
    if (bytes > room_left(d)) {
        err =
            vx_fail(detail, VX_E_EXHAUSTED, "memory_cap_bytes",
                    "the memory cap of %s leaves no %s for this work; clear or delete maps, or raise the cap",
                    vx__bytes_text(d->cap_bytes).text, vx__bytes_text(bytes).text);
        goto fail;
    }
    err = d->dev->ops->alloc(d->dev, bytes, out);
    if (err == VX_E_NOMEM || err == VX_E_EXHAUSTED) {
        d->dev->ops->trim(d->dev);
        err = d->dev->ops->alloc(d->dev, bytes, out);
    }
    if (err) {
        vx_fail(detail, err, "", "the device has no %s left", vx__bytes_text(bytes).text);
        goto fail;
    }
    *(hold ? &d->hold_bytes : &d->scratch_bytes) += bytes;
    note_peak(d);
fail:
    pthread_mutex_unlock(&d->lock);
    return err;
}

void vx__account_free(struct vx_device *d, bool hold, uint64_t bytes, void *ptr)
{
    if (!ptr)
        return;
    pthread_mutex_lock(&d->lock);
    d->dev->ops->free(d->dev, ptr);
    *(hold ? &d->hold_bytes : &d->scratch_bytes) -= bytes;
    pthread_mutex_unlock(&d->lock);
}
