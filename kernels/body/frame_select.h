/*
 * frame_select.h - which chunks, words and cells a frame may change.
 *
 * From the sensor's side down: candidate chunks in the box of its reach, their words, their cells.  Each
 * level asks the bounds of the readings behind its bounding sphere, so that what is hidden, out of view or
 * free already costs one look at a coarse level.  The map is never scanned.
 */
#ifndef VXK_BODY_FRAME_SELECT_H
#define VXK_BODY_FRAME_SELECT_H

#include "frame_lidar.h"

/* What a frame may say about the voxels in a sphere.  MOVE: between what was seen through and the bands,
 * where the noise of far readings spans whole cells; it concerns active voxels only. */
enum { VXK_MAY_HIT = 1, VXK_MAY_FREE = 2, VXK_ALL_FREE = 4, VXK_MAY_MOVE = 8 };

VXK_FN uint32_t vxk_frame_may(const struct vxk_frame *f, const struct vxk_frame_space *s,
                              const struct vxk_vec3 *q, float r)
{
    struct vxk_bounds b;
    uint32_t may = 0;
    float lo, hi;
    int whole, k;
    if (f->sensor == VXK_SENSOR_DEPTH) {
        k = vxk_depth_bounds(f, s, q, r, &b, &whole);
        lo = q->z - r;
        hi = q->z + r;
    } else {
        float d = vxk_sqrt(q->x * q->x + q->y * q->y + q->z * q->z);
        r += f->skew_reach;
        k = vxk_lidar_bounds(f, s, q, r, &b, &whole);
        lo = d - r;
        hi = d + r;
    }
    if (k == 0)
        return 0;
    if (k == 2)
        return VXK_MAY_HIT | (f->carve ? VXK_MAY_FREE : 0);
    if (hi >= b.hit_lo && lo <= b.hit_hi)
        may |= VXK_MAY_HIT;
    if (f->carve && lo <= b.free_any)
        may |= VXK_MAY_FREE;
    if (f->carve && f->sensor == VXK_SENSOR_DEPTH && lo <= b.hit_hi)
        may |= VXK_MAY_MOVE;
    if (f->carve && whole && hi < b.free_all)
        may |= VXK_ALL_FREE;
    return may;
}

/* Element: a chunk of the box round the sensor's reach. */
#define vxk_frame_pick_chunk_args vxk_frame_args
VXK_FN void vxk_frame_pick_chunk(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    uint32_t ny = (uint32_t)a->n[1], nz = (uint32_t)a->n[2];
    int32_t x = a->lo[0] + (int32_t)(i / (ny * nz)), y = a->lo[1] + (int32_t)(i / nz % ny),
            z = a->lo[2] + (int32_t)(i % nz);
    struct vxk_vec3 q =
        vxk_to_sensor(f, (float)x * 128.0f + 64.0f, (float)y * 128.0f + 64.0f, (float)z * 128.0f + 64.0f);
    struct vxk_frame_chunk *c;
    uint64_t key;
    uint32_t may = vxk_frame_may(f, &a->s, &q, 110.0f), slot = VXK_NONE, head, at;
    if (f->sensor == VXK_SENSOR_LIDAR) {
        slot = vxk_touch_slot(a, x, y, z);
        may = (may & ~(uint32_t)VXK_MAY_HIT) | (slot == VXK_NONE ? 0 : VXK_MAY_HIT);
    }
    if (!may)
        return;
    key = vxk_key(f->oc[0] + x, f->oc[1] + y, f->oc[2] + z);
    head = vxk_hash_find(a->g.keys, a->g.slot_mask, key);
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

/* Element: a word of a frame chunk. */
#define vxk_frame_pick_word_args vxk_frame_args
VXK_FN void vxk_frame_pick_word(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_chunk *c = &a->s.chunk[i >> 6];
    const struct vxk_word *old = vxk_frame_old_word(a, c, i & 63);
    uint32_t x, y, z, may, at = VXK_NONE;
    int32_t base[3];
    struct vxk_vec3 q;
    vxk_frame_chunk_base(f, c->key, base);
    vxk_cell_base(i & 63, 0, &x, &y, &z);
    q = vxk_to_sensor(f, (float)(base[0] + (int32_t)x) + 16.0f, (float)(base[1] + (int32_t)y) + 16.0f,
                      (float)(base[2] + (int32_t)z) + 16.0f);
    may = vxk_frame_may(f, &a->s, &q, 27.0f);
    if (f->sensor == VXK_SENSOR_LIDAR)
        may = (may & ~(uint32_t)VXK_MAY_HIT) |
              (c->slot != VXK_NONE && a->s.touch_mask[(uint64_t)c->slot * 64 + (i & 63)] ? VXK_MAY_HIT : 0);
    if (may && ((may & VXK_MAY_HIT) || !(old && old->tile == ~0ull)) &&
        (may != VXK_MAY_MOVE || (old && old->leaf)))
        at = vxk_count_up(&a->s.c->n_word);
    a->s.word_of[i] = at;
    if (at >= a->s.room_word)
        return;
    a->s.word[at].chunk = i;
    a->s.word[at].changed = 0;
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

/* Element: a cell of a frame word. */
#define vxk_frame_pick_cell_args vxk_frame_args
VXK_FN void vxk_frame_pick_cell(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_word *fw = &a->s.word[i >> 6];
    const struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    const struct vxk_word *old = vxk_frame_old_word(a, c, fw->chunk & 63);
    uint32_t cell = i & 63, may, code, hit = VXK_NONE;
    int32_t base[3];
    struct vxk_vec3 q;
    vxk_frame_cell_base(a, fw, cell, base);
    q = vxk_to_sensor(f, (float)base[0] + 4.0f, (float)base[1] + 4.0f, (float)base[2] + 4.0f);
    may = vxk_frame_may(f, &a->s, &q, 6.1f);
    if (f->sensor == VXK_SENSOR_LIDAR) {
        hit = vxk_touched_leaf(&a->s, c->slot, fw->chunk & 63, cell);
        may = (may & ~(uint32_t)VXK_MAY_HIT) | (hit == VXK_NONE ? 0 : VXK_MAY_HIT);
    }
    if (!(may & VXK_MAY_HIT) && old && old->tile >> cell & 1)
        may = 0;
    if (may && f->sensor == VXK_SENSOR_LIDAR && !(may & VXK_MAY_HIT) && !vxk_lidar_reaches(f, &a->s, &q))
        may = 0;
    if (may == VXK_MAY_MOVE && !(old && old->leaf >> cell & 1))
        may = 0;
    code = !may                                                                              ? VXK_CELL_KEEP
           : (may & VXK_ALL_FREE) && !(may & VXK_MAY_HIT) && !(old && old->leaf >> cell & 1) ? VXK_CELL_TILE
                                                                                             : VXK_CELL_WORK;
    a->s.code[i] = (uint8_t)code;
    if (code == VXK_CELL_WORK) {
        uint32_t k = vxk_count_up(&a->s.c->n_work);
        a->s.work_of[i] = k;
        if (k < a->s.room_work)
            a->s.work[k] = i;
    }
}

#endif
