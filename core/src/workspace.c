/* workspace.c - the frame pipeline's memory: lists that grow, the beam table, page ids. */
#include "workspace.h"

#include "clean.h"
#include "frame_convert.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_ROOM_CHUNK = 1024,
    FIRST_ROOM_WORD = 4096,
    FIRST_ROOM_WORK = 16384,
    FIRST_TOUCH_SLOTS = 1024,
    FIRST_ROOM_HIT = 1 << 18,
    FIRST_ROOM_BAND = 1 << 17,
    FIRST_ROOM_GROUP = 1 << 14
};
/* Numbers of elements of a launch stay below 2^32: 64 words a chunk, 64 cells a word. */
enum { MAX_ROOM_CHUNK = 1 << 25, MAX_ROOM_WORD = 1 << 25, MAX_ROOM_WORK = 1 << 28 };
/* Counters take this much of the zeroed block. */
enum { COUNTERS_BYTES = 512 };

_Static_assert(sizeof(struct vxk_frame_counters) <= COUNTERS_BYTES, "counters fit their place");
_Static_assert((int)VX__CHUNKS == VXK_PAGE_CHUNK && (int)VX__LEAF_PAGES == VXK_PAGE_LEAVES &&
                   (int)VX__VALUE_PAGES == VXK_PAGE_VALUES && (int)VX__N_KINDS == VXK_N_PAGE_KINDS,
               "one order of page kinds");

static void first_rooms(struct vx__workspace *w)
{
    w->room_chunk = FIRST_ROOM_CHUNK;
    w->room_word = FIRST_ROOM_WORD;
    w->room_work = FIRST_ROOM_WORK;
    w->touch_slots = FIRST_TOUCH_SLOTS;
    w->room_touch_leaf = FIRST_ROOM_WORK;
    w->room_hit = FIRST_ROOM_HIT;
    w->room_band = FIRST_ROOM_BAND;
    w->room_group = FIRST_ROOM_GROUP;
    for (int k = 0; k < VX__N_KINDS; k++)
        w->ahead[k] = w->room_old[k] = 0;
    w->beams.on_device = false;
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
        &w->zeroed,     &w->image,      &w->beam,      &w->depth,        &w->inverse,     &w->pixel,
        &w->sample,     &w->strip,      &w->level[0],  &w->level[1],     &w->level[2],    &w->ray,
        &w->bin,        &w->chunk,      &w->word_of,   &w->word,         &w->code,        &w->work_of,
        &w->value_of,   &w->record,     &w->work,      &w->active,       &w->free_,       &w->seen,
        &w->sum,        &w->clear,      &w->acc,       &w->touch_rank,   &w->hit_mask,    &w->hit_base,
        &w->hit_prefix, &w->skew_table, &w->skew_time, &w->skew_column,  &w->skew_origin, &w->dead,
        &w->clean,      &w->mask,       &w->weight,    &w->weight_clean, &w->tint,        &w->tag,
        &w->owner,      &w->band,       &w->group,     &w->end,          &w->trail,       &w->task,
        &w->many};
    if (map->queue)
        (void)map->device->dev->ops->wait(
            map->queue); /* an error sticks to the queue; memory is free either way */
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
    if (w->beams.host)
        map->device->dev->ops->free_host(map->device->dev, w->beams.host);
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

/* Bytes of the zeroed block that the frame uses. */
static uint64_t zeroed_bytes(const struct vx__workspace *w, bool lidar)
{
    return COUNTERS_BYTES + (lidar ? (uint64_t)w->touch_slots * (8 + 512) : 0);
}

vx_err vx__workspace_zero(struct vx_map *map, bool lidar)
{
    return map->device->dev->ops->fill(map->queue, map->ws.zeroed.ptr, 0, zeroed_bytes(&map->ws, lidar));
}

/* The payload where kernels can read it as it is, or NULL.  A clean image is made of several looks at each
 * pixel: not over a bus. */
static const void *in_place(const struct vx_map *map, const struct vx_frame *frame)
{
    struct vxk_dev *dev = map->device->dev;
    if (vx__clean_wanted(frame) || !frame->data_bytes || (uintptr_t)frame->data % sizeof(float))
        return NULL;
    return dev->ops->reach(dev, frame->data);
}

vx_err vx__workspace_prepare(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                             struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    const struct vxk_frame *f = &args->f;
    struct vxk_frame_space *s = &args->s;
    const bool lidar = f->sensor == VXK_SENSOR_LIDAR;
    const void *image = in_place(map, frame);
    uint64_t bins = (uint64_t)f->width * (uint64_t)f->height, rays = (uint64_t)frame->width * frame->height;
    const bool banded = lidar && map->device->backend == VXK_CPU;
    const uint64_t end_stride = (uint64_t)f->width + 2 * VXK_END_APRON,
                   ends = end_stride * (uint64_t)f->height;
    const struct need base[] = {
        {&w->zeroed, zeroed_bytes(w, lidar)},
        {&w->image, image ? 0 : frame->data_bytes},
        {&w->depth, bins * 4},
        {&w->inverse, lidar ? 0 : bins * 4},
        {&w->pixel, lidar ? 0 : bins * sizeof *s->pixel},
        {&w->sample, lidar ? 0 : bins * sizeof *s->sample},
        {&w->strip, (uint64_t)f->n_tx[0] * (uint64_t)f->height * sizeof *s->strip},
        {&w->level[0], (uint64_t)f->n_tx[0] * (uint64_t)f->n_ty[0] * sizeof *s->strip},
        {&w->level[1], (uint64_t)f->n_tx[1] * (uint64_t)f->n_ty[1] * sizeof *s->strip},
        {&w->level[2], (uint64_t)f->n_tx[2] * (uint64_t)f->n_ty[2] * sizeof *s->strip},
        {&w->chunk, (uint64_t)w->room_chunk * sizeof *s->chunk},
        {&w->word_of, (uint64_t)w->room_chunk * 256},
        {&w->dead, (uint64_t)w->room_chunk * 4},
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
    const struct need of_lidar[] = {
        {&w->ray, rays * sizeof *s->ray},
        {&w->trail, map->device->backend == VXK_CUDA ? rays * sizeof *s->trail : 0},
        {&w->task, map->device->backend == VXK_CUDA ? (uint64_t)w->room_work * sizeof *s->task : 0},
        {&w->many, map->device->backend == VXK_CUDA ? (uint64_t)w->room_work * 4 : 0},
        {&w->bin, frame->sensor == VX_POINTS ? bins * 8 : 0},
        {&w->touch_rank, (uint64_t)w->touch_slots * 256},
        {&w->hit_mask, (uint64_t)w->room_touch_leaf * 64},
        {&w->hit_base, (uint64_t)w->room_touch_leaf * 4},
        {&w->hit_prefix, (uint64_t)w->room_touch_leaf * 8},
        {&w->acc, (uint64_t)w->room_hit * 8},
        {&w->clear, (uint64_t)w->room_work * 64},
        {&w->band, banded ? (uint64_t)w->room_band * 4 : 0},
        {&w->group, banded ? (uint64_t)w->room_group * sizeof *s->group : 0},
        {&w->end, banded ? 3 * ends * 4 : 0},
    };
    char *zeroed;
    if (w->room_chunk > MAX_ROOM_CHUNK || w->room_word > MAX_ROOM_WORD || w->room_work > MAX_ROOM_WORK ||
        w->touch_slots > MAX_ROOM_CHUNK)
        return vx_fail(detail, VX_E_EXHAUSTED, "max_range_m",
                       "the frame reaches more blocks than one frame may; lower max_range_m");
    VX_TRY_RET(ensure_all(map, base, sizeof base / sizeof *base, detail));
    if (lidar)
        VX_TRY_RET(ensure_all(map, of_lidar, sizeof of_lidar / sizeof *of_lidar, detail));
    zeroed = w->zeroed.ptr;
    *s = (struct vxk_frame_space){.c = w->zeroed.ptr,
                                  .depth = w->depth.ptr,
                                  .inverse = w->inverse.ptr,
                                  .pixel = w->pixel.ptr,
                                  .sample = w->sample.ptr,
                                  .strip = w->strip.ptr,
                                  .level = {w->level[0].ptr, w->level[1].ptr, w->level[2].ptr},
                                  .chunk = w->chunk.ptr,
                                  .word_of = w->word_of.ptr,
                                  .dead = w->dead.ptr,
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
                                  .record = w->record.ptr,
                                  .ray = w->ray.ptr,
                                  .trail = w->trail.ptr,
                                  .task = w->task.ptr,
                                  .many = w->many.ptr,
                                  .bin = w->bin.ptr,
                                  .touch_key = (uint64_t *)(zeroed + COUNTERS_BYTES),
                                  .touch_mask = (uint64_t *)(zeroed + COUNTERS_BYTES) + w->touch_slots,
                                  .touch_rank = w->touch_rank.ptr,
                                  .hit_mask = w->hit_mask.ptr,
                                  .hit_base = w->hit_base.ptr,
                                  .hit_prefix = w->hit_prefix.ptr,
                                  .acc = w->acc.ptr,
                                  .room_chunk = w->room_chunk,
                                  .room_word = w->room_word,
                                  .room_work = w->room_work,
                                  .touch_slots = w->touch_slots,
                                  .room_touch_leaf = w->room_touch_leaf,
                                  .room_hit = w->room_hit,
                                  .n_rays = (uint32_t)rays};
    if (banded) {
        s->band = w->band.ptr;
        s->group = w->group.ptr;
        s->room_band = w->room_band;
        s->room_group = w->room_group;
        s->end_stride = (uint32_t)end_stride;
        for (int k = 0; k < 3; k++)
            s->end[k] = (float *)w->end.ptr + ends * (uint64_t)k;
    }
    args->image = image ? image : w->image.ptr;
    return VX_OK;
}

/* Is the table of the last beams this frame's? */
static bool same_beams(const struct vx__beam_cache *b, const struct vx_frame *frame, const float *elevation)
{
    if (!b->on_device || b->sensor != frame->sensor)
        return false;
    return frame->sensor == VX_POINTS ||
           (b->width == frame->width && b->height == frame->height &&
            b->first_azimuth_rad == frame->first_azimuth_rad &&
            b->azimuth_step_rad == frame->azimuth_step_rad &&
            memcmp(elevation, frame->elevation_rad, frame->height * sizeof *elevation) == 0);
}

vx_err vx__workspace_beams(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                           struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    struct vx__beam_cache *b = &w->beams;
    const struct vxk_ops *ops = map->device->dev->ops;
    uint64_t words = vx__beam_words(frame), bytes = words * 4,
             all = bytes + (frame->sensor == VX_RANGE ? frame->height * sizeof(float) : 0);
    float *elevation;
    if (w->beam.bytes < bytes)
        b->on_device = false;
    VX_TRY_RET(vx__array_ensure(map, &w->beam, bytes, detail));
    args->s.beam = (const float *)w->beam.ptr + VXK_ROW_STEPS;
    args->s.row_of = w->beam.ptr;
    if (b->host_bytes < all) {
        if (b->host)
            ops->free_host(map->device->dev, b->host);
        *b = (struct vx__beam_cache){0};
        VX_TRY_RET(ops->alloc_host(map->device->dev, all, (void **)&b->host));
        b->host_bytes = all;
    }
    elevation = (float *)(b->host + words);
    if (same_beams(b, frame, elevation))
        return VX_OK;
    b->on_device = false;
    vx__beam_table(frame, b->host);
    if (frame->sensor == VX_RANGE)
        memcpy(elevation, frame->elevation_rad, frame->height * sizeof *elevation);
    VX_TRY_RET(ops->upload(map->queue, w->beam.ptr, b->host, bytes));
    b->sensor = frame->sensor;
    b->width = frame->width;
    b->height = frame->height;
    b->first_azimuth_rad = frame->first_azimuth_rad;
    b->azimuth_step_rad = frame->azimuth_step_rad;
    b->on_device = true;
    return VX_OK;
}

static void widen(uint32_t *room, uint32_t need, bool *again)
{
    if (need <= *room)
        return;
    *room = need + need / 4;
    *again = true;
}

bool vx__workspace_widen(struct vx__workspace *w, bool lidar)
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
        widen(&w->room_band, c->n_band, &again);
        widen(&w->room_group, c->n_group, &again);
    }
    widen(&w->room_chunk, c->n_chunk, &again);
    widen(&w->room_word, c->n_word, &again);
    widen(&w->room_work, c->n_work, &again);
    return again;
}

vx_err vx__workspace_lists(struct vx_map *map, const uint32_t n_fresh[VX__N_KINDS],
                           const uint32_t n_old[VX__N_KINDS], struct vxk_frame_args *args,
                           struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    for (int k = 0; k < VX__N_KINDS; k++) {
        if (w->fresh[k].bytes < n_fresh[k] * 4ull) /* the last frame's rest may still be on its way back */
            VX_TRY_RET(map->device->dev->ops->wait(map->queue));
        VX_TRY_RET(vx__array_ensure(map, &w->fresh[k], n_fresh[k] * 4ull, detail));
        VX_TRY_RET(vx__array_ensure(map, &w->old[k], n_old[k] * 4ull, detail));
        args->s.fresh[k] = w->fresh[k].ptr;
        args->s.old[k] = w->old[k].ptr;
        args->room_old[k] = n_old[k];
    }
    return VX_OK;
}
