/*
 * integrate.c - the frame pipeline: validate, stage, select, grow, update, commit (DESIGN section 4).
 *
 * As a rule the host waits once a frame, for its end: pages are taken ahead, a little more than the last
 * frame needed, and the device itself sees (frame_gate) whether this frame fits into them, into the lists and
 * into what it may grow by.  A frame that does not fit has changed nothing when the wait is over; the host
 * then makes room, or refuses it, and commits it with a second wait.
 */
#include "body/frame.h"
#include "bytes_text.h"
#include "channels.h"
#include "clean.h"
#include "fade.h"
#include "frame_convert.h"
#include "skew.h"
#include "workspace.h"

#include <stdlib.h>
#include <string.h>

static bool is_lidar(const struct vxk_frame *f)
{
    return f->sensor == VXK_SENSOR_LIDAR;
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
    if (s->skew.on)
        VX_TRY_RET(vx__skew_launch(map, frame, args));
    if (s->skew.on && args->f.bins_are_rays)
        VX_TRY_RET(VXK_LAUNCH(q, frame_column, args, (uint32_t)args->f.width));
    VX_TRY_RET(VXK_LAUNCH(q, frame_ray, args, rays));
    if (s->skew.on && !args->f.bins_are_rays)
        VX_TRY_RET(VXK_LAUNCH(q, frame_column, args, (uint32_t)args->f.width));
    VX_TRY_RET(VXK_LAUNCH(q, frame_bins, args, (uint32_t)(args->f.n_tx[0] * args->f.height)));
    VX_TRY_RET(VXK_LAUNCH(q, frame_normal, args, (uint32_t)(args->f.width * args->f.height)));
    VX_TRY_RET(VXK_LAUNCH(q, frame_touch, args, rays));
    VX_TRY_RET(VXK_LAUNCH(q, frame_touch_rank, args, s->touch_slots * 64));
    VX_TRY_RET(VXK_LAUNCH(q, frame_hit_mark, args, rays));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_hit_room, args, &s->c->n_touch_leaf, 1, s->room_touch_leaf));
    VX_TRY_RET(VXK_LAUNCH(q, frame_hit_add, args, rays));
    return vx__channels_owners(map, args, rays);
}

/* Everything up to the sizes of what the frame needs; writes work space only. */
static vx_err launch_select(struct vx_map *map, const struct vx_frame *frame,
                            const struct vxk_frame_args *args)
{
    struct vxk_queue *q = map->queue;
    const struct vxk_frame *f = &args->f;
    const struct vxk_frame_space *s = &args->s;
    if (is_lidar(f)) {
        VX_TRY_RET(launch_lidar(map, frame, args));
    } else {
        VX_TRY_RET(VXK_LAUNCH(q, frame_prepare, args, (uint32_t)(f->n_strips * f->height)));
        VX_TRY_RET(VXK_LAUNCH(q, frame_smooth, args, (uint32_t)(f->n_strips * f->height)));
    }
    VX_TRY_RET(VXK_LAUNCH(q, frame_levels, args, (uint32_t)(f->n_tx[2] * f->n_ty[2])));
    VX_TRY_RET(VXK_LAUNCH(q, frame_pick_chunk, args,
                          (uint32_t)args->n[0] * (uint32_t)args->n[1] * (uint32_t)args->n[2]));
    if (args->fade.due_n)
        VX_TRY_RET(VXK_LAUNCH(q, frame_pick_due, args, args->fade.due_n * args->fade.due_places));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_pick_word, args, &s->c->n_chunk, 64, s->room_chunk * 64));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_pick_cell, args, &s->c->n_word, 64, s->room_word * 64));
    if (is_lidar(f) && f->carve)
        VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_beams, args, &s->c->n_work, 1, s->room_work));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_cell, args, &s->c->n_work, 1, s->room_work));
    return VXK_LAUNCH_COUNTED(q, frame_reduce, args, &s->c->n_word, 1, s->room_word);
}

/* The gate, and behind it the new versions into fresh pages; waits. */
static vx_err launch_commit(struct vx_map *map, const struct vxk_frame_args *args)
{
    struct vxk_queue *q = map->queue;
    const struct vxk_frame_space *s = &args->s;
    const struct vxk_frame_report_args report = {.from = (const uint32_t *)(const void *)s->c,
                                                 .to = (uint32_t *)(void *)map->ws.host};
    VX_TRY_RET(VXK_LAUNCH(q, frame_gate, args, 1));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_leaf, args, &s->c->go_records, 1, s->room_word * 64));
    VX_TRY_RET(vx__channels_commit(map, args));
    VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_commit, args, &s->c->go_chunks, 1, s->room_chunk));
    if (args->fade.due_n)
        VX_TRY_RET(VXK_LAUNCH_COUNTED(q, frame_bury, args, &s->c->go_dead, 1, s->room_chunk));
    VX_TRY_RET(VXK_LAUNCH(q, frame_report, &report, sizeof *s->c / sizeof *report.to));
    VX_TRY_RET(q->dev->ops->wait(q));
    vx__retired_sweep(map);
    return VX_OK;
}

/* Bytes that the map may grow by in one frame. */
static uint64_t room_to_grow(const struct vx_map *map)
{
    uint64_t now = vx__map_bytes(map, map->totals.n_pages), limit = map->params.limit_bytes,
             left = now < limit ? limit - now : 0;
    return left < map->params.frame_budget_bytes ? left : map->params.frame_budget_bytes;
}

/* Epochs are counted in 32 bits, in every chunk: the last ones are left to vx_map_clear. */
static vx_err check_epoch(const struct vx_map *map, struct vx_detail *detail)
{
    if (map->epoch < VX__MAX_FRAME_EPOCH)
        return VX_OK;
    return vx_fail(detail, VX_E_EXHAUSTED, "epochs",
                   "the map has had %u epochs, as many as are counted; export it and go on with a map of the "
                   "file",
                   map->epoch);
}

/* Refuses what passes the frame's budget or the map's limit. */
static vx_err check_growth(const struct vx_map *map, uint64_t grown, struct vx_detail *detail)
{
    if (grown > map->params.frame_budget_bytes)
        return vx_fail(detail, VX_E_EXHAUSTED, "frame_budget_bytes",
                       "the frame would grow the map by %s; one frame may add %s (wrong units or a too small "
                       "voxel?)",
                       vx__bytes_text(grown).text, vx__bytes_text(map->params.frame_budget_bytes).text);
    if (vx__map_bytes(map, map->totals.n_pages) + grown > map->params.limit_bytes)
        return vx_fail(detail, VX_E_EXHAUSTED, "limit_bytes",
                       "the map's limit of %s is reached; clear the map, or create it with a higher limit",
                       vx__bytes_text(map->params.limit_bytes).text);
    return VX_OK;
}

/* What a frame reads and writes: the table, the pools. */
static void bind_map(struct vx_map *map, struct vxk_frame_args *args)
{
    args->g = vx__map_grid(map);
    args->keys = map->keys;
    args->heads = map->heads;
    args->chunks = map->device->pool[VX__CHUNKS].pages.base;
    args->leaves = map->device->pool[VX__LEAF_PAGES].pages.base;
    args->values = (uint32_t *)args->g.values;
    args->colours = (uint32_t *)args->g.colours;
    args->labels = (uint16_t *)args->g.labels;
    args->value_page_bytes = (uint32_t)vx__page_bytes(VX__VALUE_PAGES, map->channels);
    args->epoch = map->epoch + 1;
    args->room_bytes = room_to_grow(map);
}

/* The pages at hand for the commit. */
static void bind_pages(const struct vx__page_lists *fresh, struct vxk_frame_args *args)
{
    for (int k = 0; k < VX__N_KINDS; k++)
        args->n_fresh[k] = fresh->n[k];
}

static void fresh_lists(const struct vx_map *map, struct vx__page_lists *l)
{
    l->channels = map->channels;
    for (int k = 0; k < VX__N_KINDS; k++)
        l->ids[k] = map->ws.fresh[k].ptr;
}

/* Takes pages ahead of the frame, of those that are free.  Chunks: no more than the table has room for. */
static vx_err take_ahead(struct vx_map *map, struct vxk_frame_args *args, struct vx__page_lists *fresh,
                         struct vx_detail *detail)
{
    const struct vx__workspace *w = &map->ws;
    uint32_t keys = map->n_slots / 2 > map->n_keys ? map->n_slots / 2 - map->n_keys : 0;
    vx_err err;
    VX_TRY_RET(vx__workspace_lists(map, w->ahead, w->room_old, args, detail));
    fresh_lists(map, fresh);
    for (int k = 0; k < VX__N_KINDS; k++)
        fresh->n[k] = w->ahead[k];
    if (fresh->n[VX__CHUNKS] > keys)
        fresh->n[VX__CHUNKS] = keys;
    err = vx__pool_take_free(map->device, fresh, map->queue);
    if (err)
        memset(fresh->n, 0, sizeof fresh->n);
    return err;
}

/* The pages behind the first used[k]. */
static struct vx__page_lists rest_of(const struct vx__page_lists *fresh, const uint32_t used[VX__N_KINDS])
{
    struct vx__page_lists rest = {.channels = fresh->channels};
    for (int k = 0; k < VX__N_KINDS; k++) {
        rest.ids[k] = fresh->ids[k] + used[k];
        rest.n[k] = fresh->n[k] - used[k];
    }
    return rest;
}

/* The next frame needs about as much as this one. */
static void plan_ahead(struct vx__workspace *w)
{
    const struct vxk_frame_counters *c = w->host;
    for (int k = 0; k < VX__N_KINDS; k++) {
        w->ahead[k] = c->n_new[k] + c->n_new[k] / 2 + 64;
        w->room_old[k] = c->n_old[k] + c->n_old[k] / 2 + 64;
    }
}

/* Exactly the pages that the frame needs, growing pools and table as allowed, then its commit. */
static vx_err commit_exactly(struct vx_map *map, struct vxk_frame_args *args, struct vx__page_lists *fresh,
                             uint64_t grown, struct vx_detail *detail)
{
    const struct vxk_frame_counters *c = map->ws.host;
    vx_err err;
    VX_TRY_RET(check_growth(map, grown, detail));
    VX_TRY_RET(vx__table_reserve(map, c->n_new[VX__CHUNKS], detail));
    VX_TRY_RET(vx__workspace_lists(map, c->n_new, c->n_old, args, detail));
    fresh_lists(map, fresh);
    memcpy(fresh->n, c->n_new, sizeof fresh->n);
    VX_TRY_RET(vx__pool_take(map->device, fresh, map->queue, detail));
    bind_map(map, args);
    bind_pages(fresh, args);
    err = launch_commit(map, args);
    if (!err && !c->fits)
        err = vx_fail(detail, VX_E_INTERNAL, "", "a frame did not fit into what was made for it");
    if (err)
        (void)vx__pool_give(map->device, fresh, NULL, map->queue);
    return err;
}

/* The host's side of the commit: totals, epoch, the pages that the frame replaced and those it did not need.
 */
static vx_err publish(struct vx_map *map, const struct vx_frame *frame, const struct vx__page_lists *fresh,
                      struct vx__retired *r)
{
    const struct vx__page_lists rest = rest_of(fresh, map->ws.host->n_new);
    const struct vxk_frame_counters *c = map->ws.host;
    struct vx__totals *t = &map->totals;
    pthread_mutex_lock(&map->lock);
    map->epoch++;
    map->n_frames++;
    vx__fade_commit(map);
    if (!map->has_stamp || frame->stamp_ns > map->newest_stamp_ns)
        map->newest_stamp_ns = frame->stamp_ns;
    map->has_stamp = true;
    t->n_active += c->d_active;
    t->n_leaf += c->d_leaf;
    t->n_tile += c->d_tile;
    t->n_chunk = t->n_chunk + c->n_came_chunk - c->n_gone_chunk;
    for (int k = 0; k < VX__N_KINDS; k++)
        t->n_pages[k] = t->n_pages[k] + c->n_new[k] - c->n_old[k];
    for (int k = 0; k < 3; k++) {
        t->leaf_min[k] = vxk_minu(t->leaf_min[k], ~c->leaf_not_min[k]);
        t->leaf_max[k] = vxk_maxu(t->leaf_max[k], c->leaf_max[k]);
        t->chunk_min[k] = vxk_minu(t->chunk_min[k], ~c->chunk_not_min[k]);
        t->chunk_max[k] = vxk_maxu(t->chunk_max[k], c->chunk_max[k]);
    }
    pthread_mutex_unlock(&map->lock);
    map->n_keys += c->n_new_key;
    map->n_asleep = map->n_asleep + c->go_dead - c->n_woken;
    /* the id lists change owner: the workspace takes new blocks when it needs them */
    for (int k = 0; k < VX__N_KINDS; k++) {
        r->n[k] = c->n_old[k];
        r->ids[k] = map->ws.old[k];
        map->ws.old[k] = (struct vx__array){0};
    }
    vx__retire(map, r);
    return vx__retired_drain(map, &rest);
}

static void fill_result(const struct vx_map *map, const struct vx_frame *frame, uint64_t grown,
                        struct vx_frame_result *result)
{
    const struct vxk_frame_counters *c = map->ws.host;
    const uint64_t total = (uint64_t)frame->width * frame->height;
    uint64_t n[VXK_N_COUNTS];
    _Static_assert(sizeof result->counts == sizeof n, "one list of reasons");
    memcpy(n, c->counts, sizeof n);
    n[VXK_C_USED] = total;
    for (int i = 0; i < VXK_N_COUNTS; i++)
        n[VXK_C_USED] -= i == VXK_C_USED ? 0 : n[i];
    memcpy(&result->counts, n, sizeof n);
    result->epoch = map->epoch;
    result->grown_bytes = grown;
    result->warnings = 0;
    if (total && n[VXK_C_NO_RETURN] == total)
        result->warnings |= VX_WARN_ALL_BEYOND;
    if (!n[VXK_C_USED])
        result->warnings |= VX_WARN_EMPTY;
    if (vx__channels_unused(map, frame))
        result->warnings |= VX_WARN_UNUSED_CHANNEL;
}

/* One run of the whole pipeline into the rooms of the moment; w->host then says what came of it. */
static vx_err run_frame(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                        struct vx__page_lists *fresh, struct vx_detail *detail)
{
    const struct vxk_ops *ops = map->device->dev->ops;
    vx_err err;
    memset(fresh, 0, sizeof *fresh);
    VX_TRY(vx__workspace_zero(map, is_lidar(&args->f)));
    if (frame->data_bytes && args->image == map->ws.image.ptr)
        VX_TRY(ops->upload(map->queue, map->ws.image.ptr, frame->data, frame->data_bytes));
    if (is_lidar(&args->f))
        VX_TRY(vx__workspace_beams(map, frame, args, detail));
    bind_map(map, args);
    VX_TRY(vx__fade_begin(map, frame, args, detail));
    VX_TRY(vx__clean_launch(map, frame, args, detail));
    VX_TRY(vx__channels_begin(map, frame, args, detail));
    VX_TRY(launch_select(map, frame, args));
    VX_TRY(take_ahead(map, args, fresh, detail)); /* while the device selects */
    bind_pages(fresh, args);
    VX_TRY(launch_commit(map, args));
    if (map->ws.host->fits)
        return VX_OK;
    VX_TRY_RET(vx__pool_give(map->device, fresh, NULL, map->queue));
    return ops->wait(map->queue); /* the lists may be exchanged now */
fail:
    (void)vx__pool_give(map->device, fresh, NULL, map->queue);
    (void)ops->wait(map->queue); /* the frame's memory is the caller's again */
    return err;
}

vx_err vx_map_integrate(struct vx_map *map, const struct vx_frame *frame, struct vx_frame_result *result,
                        struct vx_detail *detail)
{
    struct vxk_frame_args args;
    struct vx__page_lists fresh;
    struct vx__retired *r = NULL;
    uint64_t need[VX__N_KINDS], back[VX__N_KINDS], grown, launches = map->queue->n_launches,
                                                          waits = map->queue->n_waits;
    const struct vxk_frame_counters *c = map->ws.host;
    bool drop = false;
    vx_err err;
    memset(&args, 0, sizeof args);
    VX_TRY(vx_frame_check(frame, detail));
    VX_TRY(check_epoch(map, detail));
    VX_TRY(vx__frame_convert(&map->params, frame, &args, detail));
    VX_TRY(vx__retired_drain(map, NULL));
    r = calloc(1, sizeof *r);
    if (!r) {
        err = VX_E_NOMEM;
        goto fail;
    }
    for (bool first = true;; first = false) {
        drop = true;
        VX_TRY(vx__workspace_prepare(map, frame, &args, detail));
        VX_TRY(vx__skew_prepare(map, frame, &args, detail));
        drop = !first;
        VX_TRY(run_frame(map, frame, &args, &fresh, detail));
        if (c->fits || !vx__workspace_widen(&map->ws, is_lidar(&args.f)))
            break;
    }
    for (int k = 0; k < VX__N_KINDS; k++) {
        need[k] = c->n_new[k];
        back[k] = c->n_old[k];
    }
    grown = vx__map_bytes(map, need);
    grown -= vx__map_bytes(map, back) < grown ? vx__map_bytes(map, back) : grown;
    if (!c->fits)
        VX_TRY(commit_exactly(map, &args, &fresh, grown, detail));
    plan_ahead(&map->ws);
    err = publish(map, frame, &fresh, r);
    fill_result(map, frame, grown, result);
    result->replaced_bytes = vx__map_bytes(map, back);
    result->n_launches = (uint32_t)(map->queue->n_launches - launches);
    result->n_waits = (uint32_t)(map->queue->n_waits - waits);
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
