/*
 * frame_select.h - which chunks, words and cells a frame may change.
 *
 * From the sensor's side down: candidate chunks in the box of its reach, their words, their cells.  Each
 * level asks the bounds of the readings behind its bounding sphere, so that what is hidden, out of view or
 * free already costs one look at a coarse level.  The map is never scanned.
 */
#ifndef VXK_BODY_FRAME_SELECT_H
#define VXK_BODY_FRAME_SELECT_H

#include "frame_fade.h"

/* What a frame may say about the voxels in a sphere.  MOVE: between what was seen through and the bands,
 * where the noise of far readings spans whole cells; it concerns active voxels only. */
enum { VXK_MAY_HIT = 1, VXK_MAY_FREE = 2, VXK_ALL_FREE = 4, VXK_MAY_MOVE = 8 };

/* What a look at the readings behind a cube found. */
struct vxk_look {
    int found, whole; /* vxk_depth_window */
    float lo, hi;     /* distances that it spans */
    struct vxk_bounds b;
};
/* A LiDAR's look at a cube whose middle lies at h; r: of the sphere round it. */
VXK_FN struct vxk_look vxk_look_heading(const struct vxk_frame *f, const struct vxk_frame_space *s,
                                        const struct vxk_heading *h, float r, const struct vxk_stride *by)
{
    struct vxk_look o;
    float d = vxk_sqrt(h->d2), reach = r + f->skew_reach;
    o.b = vxk_bounds_none();
    o.whole = 0;
    o.found = 0;
    /* without carving: which cells rays hit is in the table of touched chunks, there is nothing to find */
    if (f->carve)
        o.found = vxk_heading_bounds(f, s, h, reach, by, &o.b);
    o.lo = d - reach;
    o.hi = d + reach;
    return o;
}

/* q: the cube's middle (sensor coordinates); r: of the sphere round it; half: of its edge. */
VXK_FN struct vxk_look vxk_depth_look(const struct vxk_frame *f, const struct vxk_frame_space *s,
                                      const struct vxk_vec3 *q, float r, float half,
                                      const struct vxk_stride *by)
{
    struct vxk_look o;
    float reach = vxk_min(r, half * f->spread);
    o.b = vxk_bounds_none();
    o.found = vxk_depth_bounds(f, s, q, r, by, &o.b, &o.whole);
    o.lo = q->z - reach;
    o.hi = q->z + reach;
    return o;
}
VXK_FN struct vxk_look vxk_frame_look(const struct vxk_frame *f, const struct vxk_frame_space *s,
                                      const struct vxk_vec3 *q, float r, float half,
                                      const struct vxk_stride *by)
{
    struct vxk_heading h;
    if (f->sensor == VXK_SENSOR_DEPTH)
        return vxk_depth_look(f, s, q, r, half, by);
    h = vxk_lidar_heading(f, q);
    return vxk_look_heading(f, s, &h, r, by);
}

VXK_FN uint32_t vxk_look_says(const struct vxk_frame *f, const struct vxk_look *o)
{
    const struct vxk_bounds *b = &o->b;
    uint32_t may = 0;
    if (o->found == 0 || (o->found == 1 && f->sensor == VXK_SENSOR_LIDAR && !(b->free_any > 0.0f)))
        return 0;
    if (o->found == 2)
        return VXK_MAY_HIT | (f->carve ? VXK_MAY_FREE : 0);
    if (o->hi >= b->hit_lo && o->lo <= b->hit_hi)
        may |= VXK_MAY_HIT;
    if (f->carve && o->lo <= b->free_any)
        may |= VXK_MAY_FREE;
    if (f->carve && f->sensor == VXK_SENSOR_DEPTH && o->lo <= b->hit_hi)
        may |= VXK_MAY_MOVE;
    if (f->carve && o->whole && o->hi < b->free_all)
        may |= VXK_ALL_FREE;
    return may;
}

/* Chunk number i of the box round the sensor's reach, from chunk oc. */
VXK_FN void vxk_box_chunk(const struct vxk_frame_args *a, uint32_t i, int32_t at[3])
{
    uint32_t ny = (uint32_t)a->n[1], nz = (uint32_t)a->n[2];
    at[0] = a->lo[0] + (int32_t)(i / (ny * nz));
    at[1] = a->lo[1] + (int32_t)(i / nz % ny);
    at[2] = a->lo[2] + (int32_t)(i % nz);
}

/* Looks at the chunk `at` (from chunk oc). */
VXK_FN struct vxk_look vxk_look_chunk_at(const struct vxk_frame_args *a, const int32_t at[3],
                                         const struct vxk_stride *by)
{
    struct vxk_vec3 q = vxk_to_sensor(&a->f, (float)at[0] * 128.0f + 64.0f, (float)at[1] * 128.0f + 64.0f,
                                      (float)at[2] * 128.0f + 64.0f);
    return vxk_frame_look(&a->f, &a->s, &q, 110.0f, 63.6f, by);
}
VXK_FN struct vxk_look vxk_look_chunk(const struct vxk_frame_args *a, uint32_t i, const struct vxk_stride *by)
{
    int32_t at[3];
    vxk_box_chunk(a, i, at);
    return vxk_look_chunk_at(a, at, by);
}

/* What the frame may say about a chunk (relative to oc); *slot: in the table of touched chunks, or VXK_NONE.
 */
VXK_FN uint32_t vxk_frame_chunk_may(const struct vxk_frame_args *a, const int32_t at[3], uint32_t *slot)
{
    struct vxk_stride all = {0, 0, 1, 1};
    struct vxk_look o = vxk_look_chunk_at(a, at, &all);
    uint32_t may = vxk_look_says(&a->f, &o);
    *slot = VXK_NONE;
    if (a->f.sensor == VXK_SENSOR_LIDAR) {
        *slot = vxk_touch_slot(a, at[0], at[1], at[2]);
        may = (may & ~(uint32_t)VXK_MAY_HIT) | (*slot == VXK_NONE ? 0 : VXK_MAY_HIT);
    }
    return may;
}

/* Lists chunk i of the box when what a look said concerns it. */
VXK_FN void vxk_take_chunk(const struct vxk_frame_args *a, uint32_t i, uint32_t may)
{
    const struct vxk_frame *f = &a->f;
    struct vxk_frame_chunk *c;
    uint32_t slot = VXK_NONE, head, at;
    int32_t x, y, z, place[3];
    uint64_t key;
    vxk_box_chunk(a, i, place);
    x = place[0];
    y = place[1];
    z = place[2];
    if (f->sensor == VXK_SENSOR_LIDAR) {
        slot = vxk_touch_slot(a, x, y, z);
        may = (may & ~(uint32_t)VXK_MAY_HIT) | (slot == VXK_NONE ? 0 : VXK_MAY_HIT);
    }
    if (!may)
        return;
    key = vxk_key(f->oc[0] + x, f->oc[1] + y, f->oc[2] + z);
    head = vxk_hash_find_still(a->g.keys, a->g.slot_mask, key);
    if (may == VXK_MAY_MOVE && head == VXK_NONE)
        return;
    at = vxk_count_up(&a->s.c->n_chunk);
    if (at >= a->s.room_chunk)
        return;
    c = &a->s.chunk[at];
    c->key = key;
    c->old = head == VXK_NONE ? VXK_NONE : a->g.heads[head];
    c->slot = slot;
    c->changed = 0;
    c->fresh = VXK_NONE;
    c->due = vxk_fade_due(&a->fade, key);
}

/* A slot of the table whose key is due: its chunk into the frame's list, unless the frame has it already. */
VXK_FN void vxk_frame_take_due(const struct vxk_frame_args *a, uint32_t slot, uint64_t key)
{
    uint32_t head = a->g.heads[slot], touched, at;
    int32_t p[3], in_box = 1;
    struct vxk_frame_chunk *c;
    if (head == VXK_NONE)
        return;
    vxk_key_xyz(key, &p[0], &p[1], &p[2]);
    for (int k = 0; k < 3; k++) {
        p[k] -= a->f.oc[k];
        in_box = in_box & (p[k] >= a->lo[k]) & (p[k] < a->lo[k] + a->n[k]);
    }
    if (in_box && vxk_frame_chunk_may(a, p, &touched))
        return;
    if (!(a->g.chunks[head].n_leaf + a->g.chunks[head].n_tile)) {
        /* holds nothing: kept only for readers of epochs in which it did */
        if (a->g.chunks[head].epoch > a->fade.bury)
            return;
        at = vxk_count_up(&a->s.c->n_dead);
        if (at < a->s.room_chunk) {
            a->s.dead[at] = head;
            vxk_atomic_add32(&a->s.c->n_old[VXK_PAGE_CHUNK], 1);
        }
        return;
    }
    at = vxk_count_up(&a->s.c->n_chunk);
    if (at >= a->s.room_chunk)
        return;
    c = &a->s.chunk[at];
    c->key = key;
    c->old = head;
    c->slot = VXK_NONE;
    c->changed = 0;
    c->fresh = VXK_NONE;
    c->due = VXK_DUE_SWEEP | VXK_DUE_ONLY;
}

/* Element: (due bucket, place where it begins in the table): the keys of the bucket that were hashed there.
 */
#define vxk_frame_pick_due_args vxk_frame_args
VXK_FN void vxk_frame_pick_due(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t bucket = (a->fade.due_first + i / a->fade.due_places) & (VXK_FADE_BUCKETS - 1),
             home = (bucket + VXK_FADE_BUCKETS * (i % a->fade.due_places)) & a->g.slot_mask, slot = home;
    for (uint32_t step = 0; step <= a->g.slot_mask; step++) {
        uint64_t key = a->g.keys[slot];
        uint32_t mix = (uint32_t)vxk_mix64(key);
        if (key == VXK_NO_KEY)
            return;
        if ((mix & a->g.slot_mask) == home && (mix & (VXK_FADE_BUCKETS - 1)) == bucket)
            vxk_frame_take_due(a, slot, key);
        slot = (slot + 1) & a->g.slot_mask;
    }
}

/* Element: a chunk of the box round the sensor's reach. */
#define vxk_frame_pick_chunk_args vxk_frame_args
VXK_FN void vxk_frame_pick_chunk(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_stride all = {0, 0, 1, 1};
    struct vxk_look o = vxk_look_chunk(a, i, &all);
    vxk_take_chunk(a, i, vxk_look_says(&a->f, &o));
}

/* Place of a frame chunk's first voxel, voxels from the corner of chunk oc. */
VXK_FN void vxk_frame_chunk_base(const struct vxk_frame *f, uint64_t key, int32_t base[3])
{
    vxk_key_xyz(key, &base[0], &base[1], &base[2]);
    for (int k = 0; k < 3; k++)
        base[k] = (base[k] - f->oc[k]) * 128;
}

/* The word as the newest epoch has it, or NULL when its chunk does not exist. */
VXK_FN const struct vxk_word *vxk_frame_old_word(const struct vxk_frame_args *a,
                                                 const struct vxk_frame_chunk *c, uint32_t w)
{
    return c->old == VXK_NONE ? (const struct vxk_word *)0 : &a->g.chunks[c->old].word[w];
}

VXK_FN struct vxk_look vxk_look_word(const struct vxk_frame_args *a, uint32_t i, const struct vxk_stride *by)
{
    uint32_t x, y, z;
    int32_t base[3];
    struct vxk_vec3 q;
    vxk_frame_chunk_base(&a->f, a->s.chunk[i >> 6].key, base);
    vxk_cell_base(i & 63, 0, &x, &y, &z);
    q = vxk_to_sensor(&a->f, (float)(base[0] + (int32_t)x) + 16.0f, (float)(base[1] + (int32_t)y) + 16.0f,
                      (float)(base[2] + (int32_t)z) + 16.0f);
    return vxk_frame_look(&a->f, &a->s, &q, 27.0f, 15.6f, by);
}

/* Lists word i & 63 of frame chunk i >> 6 when what a look said concerns it. */
VXK_FN void vxk_take_word(const struct vxk_frame_args *a, uint32_t i, uint32_t may)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_chunk *c = &a->s.chunk[i >> 6];
    const struct vxk_word *old = vxk_frame_old_word(a, c, i & 63);
    uint32_t at = VXK_NONE, flags;
    if (c->due & VXK_DUE_ONLY)
        may = 0;
    else if (f->sensor == VXK_SENSOR_LIDAR)
        may = (may & ~(uint32_t)VXK_MAY_HIT) |
              (c->slot != VXK_NONE && a->s.touch_mask[(uint64_t)c->slot * 64 + (i & 63)] ? VXK_MAY_HIT : 0);
    flags = vxk_fade_word(a, c->key, i & 63, old, may != 0) | (may ? VXK_WORD_SEEN : 0);
    if (!(may && ((may & VXK_MAY_HIT) || !(old && old->tile == ~0ull)) &&
          (may != VXK_MAY_MOVE || (old && old->leaf))))
        flags |= VXK_WORD_QUIET;
    if (!(flags & VXK_WORD_QUIET) ||
        ((may || c->due) && flags & (VXK_WORD_STALE | VXK_WORD_UNFREE | VXK_WORD_DROP | VXK_WORD_NOTE)))
        at = vxk_count_up(&a->s.c->n_word);
    a->s.word_of[i] = at;
    if (at >= a->s.room_word)
        return;
    a->s.word[at].chunk = i;
    a->s.word[at].changed = 0;
    a->s.word[at].flags = flags;
}

/* Element: a word of a frame chunk. */
#define vxk_frame_pick_word_args vxk_frame_args
VXK_FN void vxk_frame_pick_word(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_stride all = {0, 0, 1, 1};
    struct vxk_look o = vxk_look_word(a, i, &all);
    vxk_take_word(a, i, vxk_look_says(&a->f, &o));
}

/* First voxel of a cell of a frame word, voxels from the corner of chunk oc. */
VXK_FN void vxk_frame_cell_base(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                uint32_t cell, int32_t base[3])
{
    uint32_t x, y, z;
    vxk_frame_chunk_base(&a->f, a->s.chunk[fw->chunk >> 6].key, base);
    vxk_cell_base(fw->chunk & 63, cell, &x, &y, &z);
    base[0] += (int32_t)x;
    base[1] += (int32_t)y;
    base[2] += (int32_t)z;
}

/* Middle of cell i & 63 of frame word i >> 6, sensor coordinates. */
VXK_FN struct vxk_vec3 vxk_cell_middle(const struct vxk_frame_args *a, uint32_t i)
{
    int32_t base[3];
    vxk_frame_cell_base(a, &a->s.word[i >> 6], i & 63, base);
    return vxk_to_sensor(&a->f, (float)base[0] + 4.0f, (float)base[1] + 4.0f, (float)base[2] + 4.0f);
}

/* Radius of the sphere round the centres of a cell's voxels, and a little more. */
#define VXK_CELL_ROUND 6.1f
VXK_FN struct vxk_look vxk_look_cell(const struct vxk_frame_args *a, const struct vxk_vec3 *middle,
                                     const struct vxk_stride *by)
{
    return vxk_frame_look(&a->f, &a->s, middle, VXK_CELL_ROUND, 3.6f, by);
}

/* What remains of a look at a cell when hits and what is free already are known.  *old: its word, or NULL. */
VXK_FN uint32_t vxk_cell_may(const struct vxk_frame_args *a, uint32_t i, uint32_t may,
                             const struct vxk_word **old)
{
    const struct vxk_frame_word *fw = &a->s.word[i >> 6];
    const struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    uint32_t cell = i & 63;
    *old = vxk_frame_old_word(a, c, fw->chunk & 63);
    if (fw->flags & VXK_WORD_QUIET)
        return 0;
    if (a->f.sensor == VXK_SENSOR_LIDAR) {
        uint32_t hit = vxk_touched_leaf(&a->s, c->slot, fw->chunk & 63, cell);
        may = (may & ~(uint32_t)VXK_MAY_HIT) | (hit == VXK_NONE ? 0 : VXK_MAY_HIT);
    }
    if (!(may & VXK_MAY_HIT) && *old && (*old)->tile >> cell & 1)
        may = 0;
    if (may == VXK_MAY_MOVE && !(*old && (*old)->leaf >> cell & 1))
        may = 0;
    return may;
}

/* Decides about a cell; gives its place in the work list, or VXK_NONE. */
VXK_FN uint32_t vxk_take_cell(const struct vxk_frame_args *a, uint32_t i, uint32_t may,
                              const struct vxk_word *old)
{
    uint32_t code = VXK_CELL_WORK, k = VXK_NONE;
    if (a->s.word[i >> 6].flags & (VXK_WORD_STALE | VXK_WORD_UNFREE) && old && old->leaf >> (i & 63) & 1)
        code = VXK_CELL_WORK;
    else if (!may)
        code = VXK_CELL_KEEP;
    else if ((may & VXK_ALL_FREE) && !(may & VXK_MAY_HIT) && !(old && old->leaf >> (i & 63) & 1))
        code = VXK_CELL_TILE;
    a->s.code[i] = (uint8_t)code;
    if (code == VXK_CELL_WORK) {
        k = vxk_count_up(&a->s.c->n_work);
        a->s.work_of[i] = k;
        if (k < a->s.room_work)
            a->s.work[k] = i;
    }
    return k;
}

/* Element: a cell of a frame word. */
#define vxk_frame_pick_cell_args vxk_frame_args
VXK_FN void vxk_frame_pick_cell(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_stride all = {0, 0, 1, 1};
    struct vxk_vec3 q = vxk_cell_middle(a, i);
    struct vxk_look o = vxk_look_cell(a, &q, &all);
    const struct vxk_word *old;
    uint32_t may = vxk_cell_may(a, i, vxk_look_says(&a->f, &o), &old);
    if (may && a->f.sensor == VXK_SENSOR_LIDAR && !(may & VXK_MAY_HIT) &&
        !vxk_lidar_reaches(&a->f, &a->s, &q, &all))
        may = 0;
    (void)vxk_take_cell(a, i, may, old);
}

#endif
