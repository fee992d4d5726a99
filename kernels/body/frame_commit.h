/*
 * frame_commit.h - from new masks to new versions: count, write records, words and chunks, publish, retire.
 */
#ifndef VXK_BODY_FRAME_COMMIT_H
#define VXK_BODY_FRAME_COMMIT_H

#include "frame_update.h"

VXK_FN void vxk_box_grow(uint32_t lo[3], uint32_t hi[3], const uint32_t l[3], const uint32_t h[3])
{
    for (int k = 0; k < 3; k++) {
        if (l[k] < vxk_load32(&lo[k]))
            vxk_atomic_min32(&lo[k], l[k]);
        if (h[k] > vxk_load32(&hi[k]))
            vxk_atomic_max32(&hi[k], h[k]);
    }
}

/* Element: a frame word: its new masks and counts, and places for what it needs if anything changed. */
#define vxk_frame_reduce_args vxk_frame_args
VXK_FN void vxk_frame_reduce(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_frame_word *fw = &a->s.word[i];
    struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    struct vxk_frame_counters *n = a->s.c;
    const struct vxk_word *old = vxk_frame_old_word(a, c, fw->chunk & 63);
    uint64_t leaf = old ? old->leaf : 0, tile = old ? old->tile : 0, old_leaf = leaf, old_tile = tile;
    uint32_t n_active = 0, n_leaf = 0, changed = 0, record, k, lo[3], hi[3];
    int32_t x, y, z;
    fw->changed = 0;
    for (uint32_t cell = 0; cell < 64; cell++) {
        uint64_t bit = 1ull << cell;
        uint32_t code = a->s.code[i * 64 + cell], act = 0, keep = 0;
        if (code == VXK_CELL_TILE) {
            tile |= bit;
            changed = 1;
        } else if (code == VXK_CELL_WORK) {
            uint32_t work = a->s.work_of[i * 64 + cell], s, n_free;
            if (work >= a->s.room_work)
                return; /* the work list overflowed: this run is thrown away */
            s = a->s.sum[work];
            n_free = s >> 10 & 1023;
            act = s & 1023;
            changed |= s >> 20;
            tile &= ~bit;
            leaf &= ~bit;
            if (!act && n_free == 512)
                tile |= bit;
            else if (act + n_free)
                keep = 1;
        } else if (old_leaf & bit) {
            act = vxk_leaf_at(&a->g, old, cell)->n_active;
            keep = 1;
        }
        if (keep) {
            leaf |= bit;
            a->s.value_of[i * 64 + cell] = n_active;
            n_active += act;
            n_leaf++;
        }
    }
    fw->changed = changed;
    if (!changed)
        return;
    fw->leaf = leaf;
    fw->tile = tile;
    fw->n_active = n_active;
    fw->n_leaf = n_leaf;
    fw->leaf_page = n_leaf ? vxk_atomic_add32(&n->n_leaf_pages, (n_leaf + 7) / 8) : 0;
    fw->value_page = n_active ? vxk_atomic_add32(&n->n_value_pages, (n_active + 255) / 256) : 0;
    record = n_leaf ? vxk_atomic_add32(&n->n_records, n_leaf) : 0;
    for (uint64_t m = leaf; m; m &= m - 1)
        a->s.record[record++] = i << 6 | vxk_ctz64(m);
    if (old_leaf) {
        vxk_atomic_add32(&n->n_old_leaf_pages, (vxk_popc64(old_leaf) + 7) / 8);
        if (old->n_active)
            vxk_atomic_add32(&n->n_old_value_pages, (old->n_active + 255) / 256);
    }
    k = vxk_popc64(old_leaf);
    if (n_leaf != k)
        vxk_atomic_add64(&n->d_leaf, (uint64_t)((int64_t)n_leaf - (int64_t)k));
    k = vxk_popc64(old_tile);
    if (vxk_popc64(tile) != k)
        vxk_atomic_add64(&n->d_tile, (uint64_t)((int64_t)vxk_popc64(tile) - (int64_t)k));
    k = old ? old->n_active : 0;
    if (n_active != k)
        vxk_atomic_add64(&n->d_active, (uint64_t)((int64_t)n_active - (int64_t)k));
    if (!vxk_atomic_or32(&c->changed, 1)) {
        c->fresh = vxk_atomic_add32(&n->n_changed_chunk, 1);
        if (c->old != VXK_NONE)
            vxk_atomic_add32(&n->n_old_chunk, 1);
    }
    if (n_active) {
        uint32_t w = fw->chunk & 63;
        vxk_key_xyz(c->key, &x, &y, &z);
        lo[0] = hi[0] = (uint32_t)(x * 16 + (int32_t)(w >> 4) * 4) ^ 0x80000000u;
        lo[1] = hi[1] = (uint32_t)(y * 16 + (int32_t)(w >> 2 & 3) * 4) ^ 0x80000000u;
        lo[2] = hi[2] = (uint32_t)(z * 16 + (int32_t)(w & 3) * 4) ^ 0x80000000u;
        for (k = 0; k < 3; k++)
            hi[k] += 3;
        vxk_box_grow(n->leaf_min, n->leaf_max, lo, hi);
    }
}

/* Element: a record of a changed word: masks, prefix, pages. */
#define vxk_frame_record_args vxk_frame_args
VXK_FN void vxk_frame_record(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i], cell = where & 63, first = a->s.value_of[where], rank, n = 0;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_leaf *l;
    uint64_t prefix = 0;
    rank = vxk_popc64(fw->leaf & ((1ull << cell) - 1));
    l = &a->leaves[(uint64_t)a->s.new_leaf_page[fw->leaf_page + (rank >> 3)] * VXK_LEAVES_A_PAGE +
                   (rank & 7)];
    if (a->s.code[where] == VXK_CELL_WORK) {
        uint32_t w = a->s.work_of[where];
        for (uint32_t x = 0; x < 8; x++) {
            l->active[x] = a->s.active[w * 8 + x];
            l->free[x] = a->s.free[w * 8 + x];
        }
    } else {
        int tile;
        const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
        for (uint32_t x = 0; x < 8; x++) {
            l->active[x] = old->active[x];
            l->free[x] = old->free[x];
        }
    }
    for (uint32_t x = 0; x < 8; x++) {
        if (x)
            prefix |= (uint64_t)n << (9 * (x - 1));
        n += vxk_popc64(l->active[x]);
    }
    l->prefix = prefix;
    l->n_active = (uint16_t)n;
    l->first = (uint16_t)(n ? first & 255 : 0);
    for (uint32_t k = 0; k < 3; k++)
        l->page[k] = n && (first & 255) + n > k * 256 ? a->s.new_value_page[fw->value_page + (first >> 8) + k]
                                                      : VXK_NONE;
}

/* Element: a word of a frame chunk: into the new version as it was. */
#define vxk_frame_carry_args vxk_frame_args
VXK_FN void vxk_frame_carry(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame_chunk *c = &a->s.chunk[i >> 6];
    struct vxk_word *w;
    if (!c->changed)
        return;
    w = &a->chunks[a->s.new_chunk[c->fresh]].word[i & 63];
    if (c->old != VXK_NONE) {
        *w = a->g.chunks[c->old].word[i & 63];
        return;
    }
    w->leaf = w->tile = 0;
    for (int k = 0; k < 8; k++)
        w->page[k] = VXK_NONE;
    w->n_active = w->changed_epoch = w->reserved[0] = w->reserved[1] = 0;
}

/* Element: a frame word: into the new version if it changed; the pages of what it replaces are retired. */
#define vxk_frame_replace_args vxk_frame_args
VXK_FN void vxk_frame_replace(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame_word *fw = &a->s.word[i];
    const struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    const struct vxk_word *old;
    struct vxk_word *w;
    uint32_t n_pages = (fw->n_leaf + 7) / 8;
    if (!fw->changed)
        return;
    w = &a->chunks[a->s.new_chunk[c->fresh]].word[fw->chunk & 63];
    w->leaf = fw->leaf;
    w->tile = fw->tile;
    for (uint32_t k = 0; k < 8; k++)
        w->page[k] = k < n_pages ? a->s.new_leaf_page[fw->leaf_page + k] : VXK_NONE;
    w->n_active = fw->n_active;
    w->changed_epoch = a->epoch;
    old = vxk_frame_old_word(a, c, fw->chunk & 63);
    if (old && old->leaf) {
        uint32_t n = (vxk_popc64(old->leaf) + 7) / 8, at = vxk_atomic_add32(&a->s.c->at_old_leaf_page, n);
        for (uint32_t k = 0; k < n; k++)
            a->s.old_leaf_page[at + k] = old->page[k];
    }
}

/* Element: a cell of a frame word: the value pages that its old leaf begins are retired. */
#define vxk_frame_retire_args vxk_frame_args
VXK_FN void vxk_frame_retire(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame_word *fw = &a->s.word[i >> 6];
    const struct vxk_leaf *old;
    int tile;
    if (!fw->changed)
        return;
    old = vxk_frame_old_leaf(a, fw, i & 63, &tile);
    if (!old || !old->n_active)
        return;
    for (uint32_t k = old->first == 0 ? 0 : 1; k < 3; k++)
        if (old->page[k] != VXK_NONE)
            a->s.old_value_page[vxk_atomic_add32(&a->s.c->at_old_value_page, 1)] = old->page[k];
}

/* Element: a frame chunk: header of its new version, then the version becomes the head of its key. */
#define vxk_frame_publish_args vxk_frame_args
VXK_FN void vxk_frame_publish(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame_chunk *c = &a->s.chunk[i];
    struct vxk_frame_counters *n = a->s.c;
    struct vxk_chunk *v;
    uint32_t id, slot, box[3], was = 0, leaf = 0, tile = 0, active = 0;
    int32_t x, y, z;
    int inserted;
    if (!c->changed)
        return;
    id = a->s.new_chunk[c->fresh];
    v = &a->chunks[id];
    for (uint32_t w = 0; w < 64; w++) {
        leaf += vxk_popc64(v->word[w].leaf);
        tile += vxk_popc64(v->word[w].tile);
        active += v->word[w].n_active;
    }
    v->key = c->key;
    v->epoch = a->epoch;
    v->prev = c->old;
    v->n_leaf = leaf;
    v->n_active = active;
    v->n_tile = tile;
    for (int k = 0; k < 9; k++)
        v->reserved[k] = 0;
    if (c->old != VXK_NONE) {
        const struct vxk_chunk *o = &a->g.chunks[c->old];
        was = o->n_leaf + o->n_tile;
        a->s.old_chunk[vxk_atomic_add32(&n->at_old_chunk, 1)] = c->old;
    }
    if (was && !(leaf + tile))
        vxk_atomic_add32(&n->n_gone_chunk, 1);
    if (!was && leaf + tile)
        vxk_atomic_add32(&n->n_came_chunk, 1);
    vxk_key_xyz(c->key, &x, &y, &z);
    box[0] = (uint32_t)x ^ 0x80000000u;
    box[1] = (uint32_t)y ^ 0x80000000u;
    box[2] = (uint32_t)z ^ 0x80000000u;
    vxk_box_grow(n->chunk_min, n->chunk_max, box, box);
    slot = vxk_hash_insert(a->keys, a->g.slot_mask, c->key, &inserted);
    if (inserted)
        vxk_atomic_add32(&n->n_new_key, 1);
    vxk_fence();
    vxk_store32(&a->heads[slot], id);
}

#endif
