/*
 * integrate.c - the frame pipeline: validate, stage, select, grow, update, commit (DESIGN section 4).
 *
 * Three host waits a frame: for the sizes of what the frame needs, for its end, and for the ids of what it
 * replaced.  Up to the second phase nothing of the map is written, so every refusal leaves it as it was.
 */
#include "body/frame.h"
#include "frame_convert.h"
#include "map_internal.h"
#include "skew.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_ROOM_CHUNK = 1024,
    FIRST_ROOM_WORD = 4096,
    FIRST_ROOM_WORK = 16384,
    FIRST_TOUCH_SLOTS = 1024,
    FIRST_ROOM_HIT = 1 << 18
};
/* Numbers of elements of a launch stay below 2^32: 64 words a chunk, 64 cells a word, 8 planes a cell. */
enum { MAX_ROOM_CHUNK = 1 << 25, MAX_ROOM_WORD = 1 << 25, MAX_ROOM_WORK = 1 << 28 };

static void first_rooms(struct vx__workspace *w)
{
    w->room_chunk = FIRST_ROOM_CHUNK;
    w->room_word = FIRST_ROOM_WORD;
    w->room_work = FIRST_ROOM_WORK;
    w->touch_slots = FIRST_TOUCH_SLOTS;
    w->room_touch_leaf = FIRST_ROOM_WORK;
    w->room_hit = FIRST_ROOM_HIT;
}

vx_err vx__workspace_init(struct vx_map *map)
{
    first_rooms(&map->ws);
    return map->device->dev->ops->alloc_host(map->device->dev, sizeof *map->ws.host, (void **)&map->ws.host);
}

void vx__workspace_drop(struct vx_map *map)
{
    struct vx__workspace *w = &map->ws;
    struct vx__array *const all[] = {
        &w->counters,  &w->image,      &w->beam,       &w->depth,     &w->inverse,     &w->slope,
        &w->front,     &w->strip,      &w->level[0],   &w->level[1],  &w->level[2],    &w->ray,
        &w->bin,       &w->chunk,      &w->word,       &w->code,      &w->work_of,     &w->value_of,
        &w->record,    &w->work,       &w->active,     &w->free_,     &w->seen,        &w->sum,
        &w->touch_key, &w->touch_mask, &w->touch_rank, &w->hit_mask,  &w->hit_base,    &w->acc,
        &w->clear,     &w->by_beam,    &w->skew_table, &w->skew_time, &w->skew_column, &w->skew_origin};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vx__array_free(map, all[i]);
    for (int k = 0; k < VX__N_KINDS; k++) {
        vx__array_free(map, &w->fresh[k]);
        vx__array_free(map, &w->old[k]);
    }
    first_rooms(w);
}

void vx__workspace_fini(struct vx_map *map)
{
    struct vx__workspace *w = &map->ws;
    vx__workspace_drop(map);
    if (w->host)
        map->device->dev->ops->free_host(map->device->dev, w->host);
    if (w->beam_host)
        map->device->dev->ops->free_host(map->device->dev, w->beam_host);
    free(w->skew_host);
}

struct need {
    struct vx__array *array;
    uint64_t bytes;
};

static vx_err ensure_all(struct vx_map *map, const struct need *needs, size_t n, struct vx_detail *detail)
{
    for (size_t i = 0; i < n; i++)
        VX_TRY_RET(vx__array_ensure(map, needs[i].array, needs[i].bytes, detail));
    return VX_OK;
}

static bool is_lidar(const struct vxk_frame *f)
{
    return f->sensor == VXK_SENSOR_LIDAR;
}

/* Arrays of the present rooms, and their addresses into args->s. */
static vx_err prepare_space(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                            struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    const struct vxk_frame *f = &args->f;
    struct vxk_frame_space *s = &args->s;
    uint64_t bins = (uint64_t)f->width * (uint64_t)f->height, rays = (uint64_t)frame->width * frame->height;
    const struct need base[] = {
        {&w->counters, sizeof *s->c},
        {&w->image, frame->data_bytes},
        {&w->depth, bins * 4},
        {&w->inverse, is_lidar(f) ? 0 : bins * 4},
        {&w->slope, is_lidar(f) ? 0 : bins * 4},
        {&w->front, is_lidar(f) ? 0 : bins * 4},
        {&w->strip, (uint64_t)f->n_tx[0] * (uint64_t)f->height * sizeof *s->strip},
        {&w->level[0], (uint64_t)f->n_tx[0] * (uint64_t)f->n_ty[0] * sizeof *s->strip},
        {&w->level[1], (uint64_t)f->n_tx[1] * (uint64_t)f->n_ty[1] * sizeof *s->strip},
        {&w->level[2], (uint64_t)f->n_tx[2] * (uint64_t)f->n_ty[2] * sizeof *s->strip},
        {&w->chunk, (uint64_t)w->room_chunk * sizeof *s->chunk},
        {&w->word, (uint64_t)w->room_word * sizeof *s->word},
        {&w->code, (uint64_t)w->room_word * 64},
        {&w->work_of, (uint64_t)w->room_word * 256},
        {&w->value_of, (uint64_t)w->room_word * 256},
        {&w->record, (uint64_t)w->room_word * 256},
        {&w->work, (uint64_t)w->room_work * 4},
        {&w->active, (uint64_t)w->room_work * 64},
        {&w->free_, (uint64_t)w->room_work * 64},
        {&w->seen, (uint64_t)w->room_work * 8},
        {&w->sum, (uint64_t)w->room_work * 4},
    };
    const struct need lidar[] = {
        {&w->beam, vx__beam_words(frame) * 4},
        {&w->ray, rays * sizeof *s->ray},
        {&w->bin, frame->sensor == VX_POINTS ? bins * 8 : 0},
        {&w->touch_key, (uint64_t)w->touch_slots * 8},
        {&w->touch_mask, (uint64_t)w->touch_slots * 512},
        {&w->touch_rank, (uint64_t)w->touch_slots * 256},
        {&w->hit_mask, (uint64_t)w->room_touch_leaf * 64},
        {&w->hit_base, (uint64_t)w->room_touch_leaf * 4},
        {&w->acc, (uint64_t)w->room_hit * 8},
        {&w->clear, (uint64_t)w->room_work * 64},
        {&w->by_beam, w->room_work},
    };
    if (w->room_chunk > MAX_ROOM_CHUNK || w->room_word > MAX_ROOM_WORD || w->room_work > MAX_ROOM_WORK ||
        w->touch_slots > MAX_ROOM_CHUNK)
        return vx_fail(detail, VX_E_EXHAUSTED, "max_range_m",
                       "the frame reaches more blocks than one frame may; lower max_range_m");
    VX_TRY_RET(ensure_all(map, base, sizeof base / sizeof *base, detail));
    if (is_lidar(f))
        VX_TRY_RET(ensure_all(map, lidar, sizeof lidar / sizeof *lidar, detail));
    *s = (struct vxk_frame_space){.c = w->counters.ptr,
                                  .depth = w->depth.ptr,
                                  .inverse = w->inverse.ptr,
                                  .slope = w->slope.ptr,
                                  .front = w->front.ptr,
                                  .strip = w->strip.ptr,
                                  .level = {w->level[0].ptr, w->level[1].ptr, w->level[2].ptr},
                                  .chunk = w->chunk.ptr,
                                  .word = w->word.ptr,
                                  .code = w->code.ptr,
                                  .work_of = w->work_of.ptr,
                                  .value_of = w->value_of.ptr,
                                  .work = w->work.ptr,
                                  .active = w->active.ptr,
                                  .free = w->free_.ptr,
                                  .seen = w->seen.ptr,
                                  .sum = w->sum.ptr,
                                  .clear = w->clear.ptr,
                                  .by_beam = w->by_beam.ptr,
                                  .record = w->record.ptr,
                                  .beam = (const float *)w->beam.ptr + VXK_ROW_STEPS,
                                  .row_of = w->beam.ptr,
                                  .ray = w->ray.ptr,
                                  .bin = w->bin.ptr,
                                  .touch_key = w->touch_key.ptr,
                                  .touch_mask = w->touch_mask.ptr,
                                  .touch_rank = w->touch_rank.ptr,
                                  .hit_mask = w->hit_mask.ptr,
                                  .hit_base = w->hit_base.ptr,
                                  .acc = w->acc.ptr,
                                  .room_chunk = w->room_chunk,
                                  .room_word = w->room_word,
                                  .room_work = w->room_work,
                                  .touch_slots = w->touch_slots,
                                  .room_touch_leaf = w->room_touch_leaf,
                                  .room_hit = w->room_hit};
    VX_TRY_RET(vx__skew_prepare(map, frame, args, detail));
    args->image = w->image.ptr;
    args->g = vx__map_grid(map);
    args->keys = map->keys;
    args->heads = map->heads;
    args->chunks = map->device->pool[VX__CHUNKS].pages.base;
    args->leaves = map->device->pool[VX__LEAF_PAGES].pages.base;
    args->values = map->device->pool[VX__VALUE_PAGES].pages.base;
    args->epoch = map->epoch + 1;
    return VX_OK;
}

static vx_err upload_frame(struct vx_map *map, const struct vx_frame *frame)
{
    struct vx__workspace *w = &map->ws;
    const struct vxk_ops *ops = map->device->dev->ops;
    if (frame->data_bytes)
        VX_TRY_RET(ops->upload(map->queue, w->image.ptr, frame->data, frame->data_bytes));
    VX_TRY_RET(vx__skew_upload(map, frame));
    if (frame->sensor != VX_DEPTH) {
        uint64_t bytes = vx__beam_words(frame) * 4;
        if (w->beam_host_bytes < bytes) {
            if (w->beam_host)
                ops->free_host(map->device->dev, w->beam_host);
            w->beam_host = NULL;
            w->beam_host_bytes = 0;
            VX_TRY_RET(ops->alloc_host(map->device->dev, bytes, (void **)&w->beam_host));
            w->beam_host_bytes = bytes;
        }
        vx__beam_table(frame, w->beam_host);
        VX_TRY_RET(ops->upload(map->queue, w->beam.ptr, w->beam_host, bytes));
    }
    return VX_OK;
}

static vx_err reset_counters(struct vx_map *map, struct vxk_frame_counters *dev)
{
    struct vxk_frame_counters *c = map->ws.host;
    memset(c, 0, sizeof *c);
    memcpy(c->leaf_min, map->totals.leaf_min, sizeof c->leaf_min);
    memcpy(c->leaf_max, map->totals.leaf_max, sizeof c->leaf_max);
    memcpy(c->chunk_min, map->totals.chunk_min, sizeof c->chunk_min);
    memcpy(c->chunk_max, map->totals.chunk_max, sizeof c->chunk_max);
    return map->device->dev->ops->upload(map->queue, dev, c, sizeof *c);
}

/* Rays, and what they leave in the voxels of their bands. */
static vx_err launch_lidar(struct vx_map *map, const struct vx_frame *frame,
                           const struct vxk_frame_args *args)
{
    struct vxk_queue *q = map->queue;
    const struct vxk_frame_space *s = &args->s;
    uint32_t rays = frame->width * frame->height;
    if (frame->sensor == VX_POINTS)
        VX_TRY_RET(
            q->dev->ops->fill(q, s->bin, 0xff, (uint64_t)args->f.width * (uint64_t)args->f.height * 8));
    if (s->skew.on && frame->sensor == VX_POINTS) {
        uint64_t bytes = (uint64_t)args->f.width * 4;
        VX_TRY_RET(q->dev->ops->fill(q, s->skew.column_ns, 0xff, bytes));
        VX_TRY_RET(q->dev->ops->fill(q, s->skew.column_ns + args->f.width, 0, bytes));
    }
    VX_TRY_RET(q->dev->ops->fill(q, s->touch_key, 0, (uint64_t)s->touch_slots * 8));
    VX_TRY_RET(q->dev->ops->fill(q, s->touch_mask, 0, (uint64_t)s->touch_slots * 512));
    if (s->skew.on && args->f.bins_are_rays)
        VX_TRY_RET(VXK_LAUNCH(q, frame_column, args, (uint32_t)args->f.width));
    VX_TRY_RET(VXK_LAUNCH(q, frame_ray, args, rays));
    if (s->skew.on && !args->f.bins_are_rays)
        VX_TRY_RET(VXK_LAUNCH(q, frame_column, args, (uint32_t)args->f.width));
    VX_TRY_RET(VXK_LAUNCH(q, frame_bins, args, (uint32_t)(args->f.n_tx[0] * args->f.height)));
    if (args->f.mode == 0)
        VX_TRY_RET(VXK_LAUNCH(q, frame_normal, args, (uint32_t)(args->f.width * args->f.height)));
    VX_TRY_RET(VXK_LAUNCH(q, frame_touch, args, rays));
    VX_TRY_RET(VXK_LAUNCH(q, frame_touch_rank, args, s->touch_slots * 64));
    VX_TRY_RET(VXK_LAUNCH(q, frame_hit_mark, args, rays));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_hit_room, args, &s->c->n_touch_leaf, 1, s->room_touch_leaf));
    return VXK_LAUNCH(q, frame_hit_add, args, rays);
}

/* Everything up to the sizes of what the frame needs; writes work space only. */
static vx_err launch_select(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args)
{
    struct vxk_queue *q = map->queue;
    const struct vxk_frame *f = &args->f;
    const struct vxk_frame_space *s = &args->s;
    VX_TRY_RET(reset_counters(map, s->c));
    if (is_lidar(f))
        VX_TRY_RET(launch_lidar(map, frame, args));
    else {
        VX_TRY_RET(VXK_LAUNCH(q, frame_prepare, args, (uint32_t)(f->n_tx[0] * f->height)));
        VX_TRY_RET(VXK_LAUNCH(q, frame_smooth, args, (uint32_t)(f->n_tx[0] * f->height)));
    }
    for (args->level = 0; args->level < VXK_N_LEVELS; args->level++)
        VX_TRY_RET(VXK_LAUNCH(q, frame_level, args, (uint32_t)(f->n_tx[args->level] * f->n_ty[args->level])));
    VX_TRY_RET(VXK_LAUNCH(q, frame_pick_chunk, args,
                          (uint32_t)args->n[0] * (uint32_t)args->n[1] * (uint32_t)args->n[2]));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_pick_word, args, &s->c->n_chunk, 64, s->room_chunk * 64));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_pick_cell, args, &s->c->n_word, 64, s->room_word * 64));
    if (is_lidar(f) && f->carve)
        VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_beams, args, &s->c->n_work, 1, s->room_work));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_plane, args, &s->c->n_work, 8, s->room_work * 8));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_sum, args, &s->c->n_work, 1, s->room_work));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_reduce, args, &s->c->n_word, 1, s->room_word));
    VX_TRY_RET(q->dev->ops->download(q, map->ws.host, s->c, sizeof *s->c));
    return q->dev->ops->wait(q);
}

static void widen(uint32_t *room, uint32_t need, bool *again)
{
    if (need <= *room)
        return;
    *room = need + need / 4;
    *again = true;
}

/* True when a list overflowed: rooms are wider now and the selection must run again. */
static bool widen_rooms(struct vx__workspace *w, bool lidar)
{
    const struct vxk_frame_counters *c = w->host;
    bool again = false;
    if (lidar) {
        if (c->table_full || c->n_touch_chunk * 2 > w->touch_slots) {
            do
                w->touch_slots *= 4;
            while (c->n_touch_chunk * 2 > w->touch_slots);
            again = true;
        }
        widen(&w->room_touch_leaf, c->n_touch_leaf, &again);
        widen(&w->room_hit, c->n_hit_voxels, &again);
    }
    widen(&w->room_chunk, c->n_chunk, &again);
    widen(&w->room_word, c->n_word, &again);
    widen(&w->room_work, c->n_work, &again);
    return again;
}

static uint64_t page_sum(const uint64_t n[VX__N_KINDS])
{
    uint64_t bytes = 0;
    for (int k = 0; k < VX__N_KINDS; k++)
        bytes += n[k] * vx__page_bytes((enum vx__page_kind)k);
    return bytes;
}

/* Takes pages for the new versions; refuses what passes the frame's budget or the map's limit. */
static vx_err take_pages(struct vx_map *map, struct vxk_frame_args *args, const uint64_t new_n[VX__N_KINDS],
                         const uint64_t old_n[VX__N_KINDS], uint64_t *grown, struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    uint64_t need = page_sum(new_n), back = page_sum(old_n), now = page_sum(map->totals.n_pages);
    int taken = 0;
    vx_err err;
    *grown = need > back ? need - back : 0;
    if (*grown > map->params.frame_budget_bytes)
        return vx_fail(detail, VX_E_EXHAUSTED, "frame_budget_bytes",
                       "the frame would grow the map by %llu KiB; one frame may add %llu KiB (wrong units or "
                       "a too small voxel?)",
                       (unsigned long long)(*grown >> 10),
                       (unsigned long long)(map->params.frame_budget_bytes >> 10));
    if (now + *grown > map->params.limit_bytes)
        return vx_fail(
            detail, VX_E_EXHAUSTED, "limit_bytes",
            "the map's limit of %llu MiB is reached; clear the map, or create it with a higher limit",
            (unsigned long long)(map->params.limit_bytes >> 20));
    for (int k = 0; k < VX__N_KINDS; k++) {
        VX_TRY_RET(vx__array_ensure(map, &w->fresh[k], new_n[k] * 4, detail));
        VX_TRY_RET(vx__array_ensure(map, &w->old[k], old_n[k] * 4, detail));
    }
    for (; taken < VX__N_KINDS; taken++)
        VX_TRY(vx__pool_take(map->device, (enum vx__page_kind)taken, (uint32_t)new_n[taken], map->queue,
                             w->fresh[taken].ptr, detail));
    args->s.new_chunk = w->fresh[VX__CHUNKS].ptr;
    args->s.new_leaf_page = w->fresh[VX__LEAF_PAGES].ptr;
    args->s.new_value_page = w->fresh[VX__VALUE_PAGES].ptr;
    args->s.old_chunk = w->old[VX__CHUNKS].ptr;
    args->s.old_leaf_page = w->old[VX__LEAF_PAGES].ptr;
    args->s.old_value_page = w->old[VX__VALUE_PAGES].ptr;
    return VX_OK;
fail:
    while (taken-- > 0)
        vx__pool_give(map->device, (enum vx__page_kind)taken, (uint32_t)new_n[taken], map->queue,
                      w->fresh[taken].ptr);
    return err;
}

static vx_err launch_commit(struct vx_map *map, const struct vxk_frame_args *args)
{
    struct vxk_queue *q = map->queue;
    const struct vxk_frame_space *s = &args->s;
    const struct vxk_frame_counters c = *map->ws.host;
    VX_TRY_RET(VXK_LAUNCH(q, frame_record, args, c.n_records));
    VX_TRY_RET(VXK_LAUNCH(q, frame_values, args, c.n_records * 8));
    VX_TRY_RET(VXK_LAUNCH(q, frame_carry, args, c.n_chunk * 64));
    VX_TRY_RET(VXK_LAUNCH(q, frame_replace, args, c.n_word));
    VX_TRY_RET(VXK_LAUNCH(q, frame_retire, args, c.n_word * 64));
    VX_TRY_RET(VXK_LAUNCH(q, frame_publish, args, c.n_chunk));
    VX_TRY_RET(q->dev->ops->download(q, map->ws.host, s->c, sizeof *s->c));
    return q->dev->ops->wait(q);
}

/* The host's side of the commit: totals, epoch, and the pages that the frame replaced. */
static vx_err publish(struct vx_map *map, const struct vx_frame *frame, const uint64_t new_n[VX__N_KINDS],
                      const uint64_t old_n[VX__N_KINDS], struct vx__retired *r)
{
    const struct vxk_frame_counters *c = map->ws.host;
    struct vx__totals *t = &map->totals;
    pthread_mutex_lock(&map->lock);
    map->epoch++;
    map->n_frames++;
    if (!map->has_stamp || frame->stamp_ns > map->newest_stamp_ns)
        map->newest_stamp_ns = frame->stamp_ns;
    map->has_stamp = true;
    t->n_active += c->d_active;
    t->n_leaf += c->d_leaf;
    t->n_tile += c->d_tile;
    t->n_chunk = t->n_chunk + c->n_came_chunk - c->n_gone_chunk;
    for (int k = 0; k < VX__N_KINDS; k++)
        t->n_pages[k] = t->n_pages[k] + new_n[k] - old_n[k];
    memcpy(t->leaf_min, c->leaf_min, sizeof t->leaf_min);
    memcpy(t->leaf_max, c->leaf_max, sizeof t->leaf_max);
    memcpy(t->chunk_min, c->chunk_min, sizeof t->chunk_min);
    memcpy(t->chunk_max, c->chunk_max, sizeof t->chunk_max);
    pthread_mutex_unlock(&map->lock);
    map->n_keys += c->n_new_key;
    /* the id lists change owner: the workspace takes new blocks when it needs them */
    for (int k = 0; k < VX__N_KINDS; k++) {
        r->n[k] = (uint32_t)old_n[k];
        r->ids[k] = map->ws.old[k];
        map->ws.old[k] = (struct vx__array){0};
    }
    vx__retire(map, r);
    return vx__retired_drain(map);
}

static void fill_result(const struct vx_map *map, const struct vxk_frame_counters *c, uint64_t grown,
                        struct vx_frame_result *result)
{
    uint64_t total = 0;
    _Static_assert(sizeof result->counts == sizeof c->counts, "one list of reasons");
    memcpy(&result->counts, c->counts, sizeof result->counts);
    for (int i = 0; i < VXK_N_COUNTS; i++)
        total += c->counts[i];
    result->epoch = map->epoch;
    result->grown_bytes = grown;
    result->warnings = 0;
    if (total && c->counts[VXK_C_NO_RETURN] == total)
        result->warnings |= VX_WARN_ALL_BEYOND;
    if (!c->counts[VXK_C_USED])
        result->warnings |= VX_WARN_EMPTY;
}

vx_err vx_map_integrate(struct vx_map *map, const struct vx_frame *frame, struct vx_frame_result *result,
                        struct vx_detail *detail)
{
    struct vxk_frame_args args;
    struct vx__retired *r = NULL;
    uint64_t new_n[VX__N_KINDS], old_n[VX__N_KINDS], grown = 0;
    const struct vxk_frame_counters *c = map->ws.host;
    bool drop = false;
    vx_err err;
    memset(&args, 0, sizeof args);
    VX_TRY(vx_frame_check(frame, detail));
    VX_TRY(vx__frame_convert(&map->params, frame, &args, detail));
    VX_TRY(vx__retired_drain(map));
    r = calloc(1, sizeof *r);
    if (!r) {
        err = VX_E_NOMEM;
        goto fail;
    }
    for (bool first = true;; first = false) {
        drop = true;
        VX_TRY(prepare_space(map, frame, &args, detail));
        drop = !first;
        VX_TRY(upload_frame(map, frame));
        VX_TRY(launch_select(map, frame, &args));
        if (!widen_rooms(&map->ws, is_lidar(&args.f)))
            break;
    }
    new_n[VX__CHUNKS] = c->n_changed_chunk;
    new_n[VX__LEAF_PAGES] = c->n_leaf_pages;
    new_n[VX__VALUE_PAGES] = c->n_value_pages;
    old_n[VX__CHUNKS] = c->n_old_chunk;
    old_n[VX__LEAF_PAGES] = c->n_old_leaf_pages;
    old_n[VX__VALUE_PAGES] = c->n_old_value_pages;
    VX_TRY(vx__table_reserve(map, c->n_changed_chunk, detail));
    args.g = vx__map_grid(map);
    args.keys = map->keys;
    args.heads = map->heads;
    VX_TRY(take_pages(map, &args, new_n, old_n, &grown, detail));
    VX_TRY(launch_commit(map, &args));
    err = publish(map, frame, new_n, old_n, r);
    fill_result(map, c, grown, result);
    return err;
fail:
    free(r);
    if (drop) /* room that a refused frame asked for is not kept */
        vx__workspace_drop(map);
    pthread_mutex_lock(&map->lock);
    map->n_refused++;
    pthread_mutex_unlock(&map->lock);
    return err;
}
