/*
 * frame_commit.h - from new masks to new versions: count, write leaves, words and chunks, publish, retire.
 */
#ifndef VXK_BODY_FRAME_COMMIT_H
#define VXK_BODY_FRAME_COMMIT_H

#include "frame_update.h"

/* Takes l .. h into a box (its lower corner is complemented). */
VXK_FN void vxk_box_grow(uint32_t not_lo[3], uint32_t hi[3], const uint32_t l[3], const uint32_t h[3])
{
    for (int k = 0; k < 3; k++) {
        if (~l[k] > vxk_peek32(&not_lo[k]))
            vxk_atomic_max32(&not_lo[k], ~l[k]);
        if (h[k] > vxk_peek32(&hi[k]))
            vxk_atomic_max32(&hi[k], h[k]);
    }
}

/* What a cell of a frame word will be. */
struct vxk_new_cell {
    uint32_t leaf, tile; /* 0 or 1 */
    uint32_t n_active;   /* of its leaf */
    uint32_t changed;
};
/* i: frame word << 6 | cell; old: the word before the frame, or NULL. */
VXK_FN struct vxk_new_cell vxk_new_cell(const struct vxk_frame_args *a, uint32_t i,
                                        const struct vxk_word *old)
{
    uint32_t cell = i & 63, code = a->s.code[i], flags = a->s.word[i >> 6].flags;
    struct vxk_new_cell o;
    o.changed = flags & (VXK_WORD_DROP | VXK_WORD_NOTE) ? 1 : 0;
    if (flags & VXK_WORD_DROP) {
        o.leaf = o.tile = o.n_active = 0;
        return o;
    }
    o.leaf = old ? (uint32_t)(old->leaf >> cell & 1) : 0;
    o.tile = old ? (uint32_t)(old->tile >> cell & 1) : 0;
    o.n_active = 0;
    if (code == VXK_CELL_TILE) {
        o.tile = o.changed = 1;
    } else if (code == VXK_CELL_WORK) {
        uint32_t work = a->s.work_of[i], s = work < a->s.room_work ? a->s.sum[work] : 0, n_free;
        n_free = s >> 10 & 1023;
        o.n_active = s & 1023;
        o.changed |= s >> 20;
        o.tile = !o.n_active && n_free == 512;
        o.leaf = !o.tile && o.n_active + n_free;
    } else if (o.leaf) {
        o.n_active = vxk_leaf_at(&a->g, old, cell)->n_active;
    } else if (o.tile && flags & VXK_WORD_UNFREE) {
        o.tile = 0;
        o.changed = 1;
    }
    return o;
}

/* Takes places for a changed word (fw: leaf, tile, n_active, n_leaf are set) and counts the difference to
 * what it was.  Gives the place of its first record. */
VXK_FN uint32_t vxk_word_places(const struct vxk_frame_args *a, struct vxk_frame_word *fw,
                                const struct vxk_word *old)
{
    struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    struct vxk_frame_counters *n = a->s.c;
    uint32_t had_leaf = old ? vxk_popc64(old->leaf) : 0, had_tile = old ? vxk_popc64(old->tile) : 0,
             had_active = old ? old->n_active : 0, n_tile = vxk_popc64(fw->tile), record;
    fw->leaf_page = fw->n_leaf ? vxk_atomic_add32(&n->n_new[VXK_PAGE_LEAVES], (fw->n_leaf + 7) / 8) : 0;
    fw->value_page =
        fw->n_active ? vxk_atomic_add32(&n->n_new[VXK_PAGE_VALUES], (fw->n_active + 255) / 256) : 0;
    record = fw->n_leaf ? vxk_atomic_add32(&n->n_records, fw->n_leaf) : 0;
    if (had_leaf)
        vxk_atomic_add32(&n->n_old[VXK_PAGE_LEAVES], (had_leaf + 7) / 8);
    if (had_active)
        vxk_atomic_add32(&n->n_old[VXK_PAGE_VALUES], (had_active + 255) / 256);
    if (fw->n_leaf != had_leaf)
        vxk_atomic_add64(&n->d_leaf, (uint64_t)((int64_t)fw->n_leaf - (int64_t)had_leaf));
    if (n_tile != had_tile)
        vxk_atomic_add64(&n->d_tile, (uint64_t)((int64_t)n_tile - (int64_t)had_tile));
    if (fw->n_active != had_active)
        vxk_atomic_add64(&n->d_active, (uint64_t)((int64_t)fw->n_active - (int64_t)had_active));
    if (!vxk_atomic_or32(&c->changed, 1)) {
        c->fresh = vxk_atomic_add32(&n->n_new[VXK_PAGE_CHUNK], 1);
        if (c->old != VXK_NONE)
            vxk_atomic_add32(&n->n_old[VXK_PAGE_CHUNK], 1);
    }
    if (fw->n_active) {
        uint32_t w = fw->chunk & 63, lo[3], hi[3];
        int32_t x, y, z;
        vxk_key_xyz(c->key, &x, &y, &z);
        lo[0] = (uint32_t)(x * 16 + (int32_t)(w >> 4) * 4) ^ 0x80000000u;
        lo[1] = (uint32_t)(y * 16 + (int32_t)(w >> 2 & 3) * 4) ^ 0x80000000u;
        lo[2] = (uint32_t)(z * 16 + (int32_t)(w & 3) * 4) ^ 0x80000000u;
        for (int k = 0; k < 3; k++)
            hi[k] = lo[k] + 3;
        vxk_box_grow(n->leaf_not_min, n->leaf_max, lo, hi);
    }
    return record;
}

/* Element: a frame word: its new masks and counts, and places for what it needs if anything changed. */
#define vxk_frame_reduce_args vxk_frame_args
VXK_FN void vxk_frame_reduce(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_frame_word *fw = &a->s.word[i];
    const struct vxk_word *old = vxk_frame_old_word(a, &a->s.chunk[fw->chunk >> 6], fw->chunk & 63);
    uint64_t leaf = 0, tile = 0;
    uint32_t n_active = 0, n_leaf = 0, changed = 0, record;
    for (uint32_t cell = 0; cell < 64; cell++) {
        struct vxk_new_cell c = vxk_new_cell(a, i * 64 + cell, old);
        leaf |= (uint64_t)c.leaf << cell;
        tile |= (uint64_t)c.tile << cell;
        a->s.value_of[i * 64 + cell] = n_active;
        n_active += c.n_active;
        n_leaf += c.leaf;
        changed |= c.changed;
    }
    fw->changed = changed;
    if (!changed)
        return;
    fw->leaf = leaf;
    fw->tile = tile;
    fw->n_active = n_active;
    fw->n_leaf = n_leaf;
    record = vxk_word_places(a, fw, old);
    for (uint64_t m = leaf; m; m &= m - 1)
        a->s.record[record++] = i << 6 | vxk_ctz64(m);
}

/*
 * Element: the frame.  Does everything fit: the lists into their rooms, the new versions into the pages at
 * hand, the growth into what is allowed?  If not, the commit that follows does nothing, and the host sees to
 * it.
 */
#define vxk_frame_gate_args vxk_frame_args
VXK_FN void vxk_frame_gate(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_frame_counters *n = a->s.c;
    const struct vxk_frame_space *s = &a->s;
    uint64_t need, back;
    uint32_t fits = n->n_chunk <= s->room_chunk && n->n_word <= s->room_word && n->n_work <= s->room_work;
    (void)i;
    if (a->f.sensor == VXK_SENSOR_LIDAR)
        fits = fits && !n->table_full && n->n_touch_chunk * 2 <= s->touch_slots &&
               n->n_touch_leaf <= s->room_touch_leaf && n->n_hit_voxels <= s->room_hit &&
               n->n_band <= s->room_band && n->n_group <= s->room_group;
    for (int k = 0; k < VXK_N_PAGE_KINDS; k++)
        fits = fits && n->n_new[k] <= a->n_fresh[k] && n->n_old[k] <= a->room_old[k];
    need = (uint64_t)n->n_new[VXK_PAGE_CHUNK] * sizeof(struct vxk_chunk) +
           (uint64_t)n->n_new[VXK_PAGE_LEAVES] * (VXK_LEAVES_A_PAGE * sizeof(struct vxk_leaf)) +
           (uint64_t)n->n_new[VXK_PAGE_VALUES] * a->value_page_bytes;
    back = (uint64_t)n->n_old[VXK_PAGE_CHUNK] * sizeof(struct vxk_chunk) +
           (uint64_t)n->n_old[VXK_PAGE_LEAVES] * (VXK_LEAVES_A_PAGE * sizeof(struct vxk_leaf)) +
           (uint64_t)n->n_old[VXK_PAGE_VALUES] * a->value_page_bytes;
    fits = fits && need <= back + a->room_bytes;
    n->fits = fits;
    n->go_records = fits ? n->n_records : 0;
    n->go_chunks = fits ? n->n_chunk : 0;
    n->n_dead = vxk_minu(n->n_dead, s->room_chunk); /* the others wait for the next sweep */
    n->go_dead = fits ? n->n_dead : 0;
}

/* The new record of a cell in a changed word. */
VXK_FN struct vxk_leaf *vxk_new_leaf(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                     uint32_t cell)
{
    uint32_t rank = vxk_popc64(fw->leaf & ((1ull << cell) - 1));
    return &a->leaves[(uint64_t)a->s.fresh[VXK_PAGE_LEAVES][fw->leaf_page + (rank >> 3)] * VXK_LEAVES_A_PAGE +
                      (rank & 7)];
}

/* k-th value page of a new leaf of n active voxels whose first value has this place in its word. */
VXK_FN uint32_t vxk_new_value_page(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                   uint32_t first, uint32_t n, uint32_t k)
{
    return n && (first & 255) + n > k * 256 ? a->s.fresh[VXK_PAGE_VALUES][fw->value_page + (first >> 8) + k]
                                            : VXK_NONE;
}

/* Values of the plane x of a leaf that the frame says something about, from place `rank` on. */
VXK_FN void vxk_leaf_plane(const struct vxk_frame_args *a, const struct vxk_fading *fading,
                           const struct vxk_view *view, const struct vxk_leaf *now,
                           const struct vxk_leaf *old, int tile, uint32_t x, uint32_t rank)
{
    struct vxk_row rows[8];
    int gone;
    vxk_observe_plane(a, view, x, fading->flags & VXK_WORD_QUIET ? 0 : vxk_rows_of(now->active[x]), rows);
    for (uint32_t y = 0; y < 8; y++) {
        const struct vxk_row *row = &rows[y];
        uint32_t on = (uint32_t)(now->active[x] >> (8 * y)) & 255;
        if (!on)
            continue;
        for (; on; on &= on - 1) {
            uint32_t k = vxk_ctz32(on), n = x << 6 | y << 3 | k, v = 0;
            int state = VXK_UNKNOWN;
            if (old && old->active[x] >> (n & 63) & 1) {
                int dead;
                v = vxk_faded(a, fading, a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))], n,
                              (row->band | row->near | row->free) >> k & 1, &dead);
                state = dead ? VXK_UNKNOWN : VXK_ACTIVE;
            } else if (tile || (old && old->free[x] >> (n & 63) & 1)) {
                state = VXK_FREE;
            }
            if ((row->band | (state == VXK_ACTIVE ? row->near | row->free : 0)) >> k & 1) {
                struct vxk_obs o = vxk_row_obs(a, view, row, k, n);
                v = vxk_merge(&a->f, state, v, &o, &gone);
            }
            a->values[vxk_leaf_value_index(now, rank++)] = v;
        }
    }
}

/* The record of a leaf but its values; first: place of its first value in its word. */
VXK_FN void vxk_leaf_masks(const struct vxk_frame_args *a, const struct vxk_frame_word *fw, uint32_t first,
                           const uint64_t *active, const uint64_t *free_now, struct vxk_leaf *l)
{
    uint64_t prefix = 0;
    uint32_t n = 0;
    for (uint32_t x = 0; x < 8; x++) {
        l->active[x] = active[x];
        l->free[x] = free_now[x];
        if (x)
            prefix |= (uint64_t)n << (9 * (x - 1));
        n += vxk_popc64(active[x]);
    }
    l->prefix = prefix;
    l->n_active = (uint16_t)n;
    l->first = (uint16_t)(n ? first & 255 : 0);
    for (uint32_t k = 0; k < 3; k++)
        l->page[k] = vxk_new_value_page(a, fw, first, n, k);
}

/* Element: a record of a changed word: masks, prefix, pages, and its values, carried over or updated. */
#define vxk_frame_leaf_args vxk_frame_args
VXK_FN void vxk_frame_leaf(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i], cell = where & 63, first = a->s.value_of[where];
    uint32_t work = a->s.code[where] == VXK_CELL_WORK ? a->s.work_of[where] : VXK_NONE;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_leaf *l = vxk_new_leaf(a, fw, cell);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    const uint64_t *active = work != VXK_NONE ? &a->s.active[work * 8] : old->active,
                   *free_now = work != VXK_NONE ? &a->s.free[work * 8] : old->free;
    struct vxk_view view;
    struct vxk_fading fading;
    vxk_leaf_masks(a, fw, first, active, free_now, l);
    if (!l->n_active)
        return;
    view = vxk_view_cell(a, fw, cell, work == VXK_NONE ? 0 : work);
    fading = vxk_fading_of(a, fw, cell);
    for (uint32_t x = 0, rank = 0; x < 8; x++) {
        uint32_t more = vxk_popc64(l->active[x]);
        if (work != VXK_NONE && a->s.seen[work * 8 + x])
            vxk_leaf_plane(a, &fading, &view, l, old, tile, x, rank);
        else /* as it was; the values before it may have moved it */
            for (uint32_t k = 0, from = more ? vxk_leaf_rank(old, x << 6) : 0; k < more; k++)
                a->values[vxk_leaf_value_index(l, rank + k)] =
                    a->g.values[vxk_leaf_value_index(old, from + k)];
        rank += more;
    }
}

/* Tick up to which a changed word has faded now; 0: it never does, as before. */
VXK_FN uint32_t vxk_word_tick(const struct vxk_frame_args *a, const struct vxk_word *old)
{
    return a->fade.on && !(old && (old->leaf | old->tile) && !old->tick) ? a->fade.tick : 0;
}
/* Tick in which a frame last said something about it. */
VXK_FN uint32_t vxk_word_seen(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                              const struct vxk_word *old)
{
    if (!vxk_word_tick(a, old))
        return 0;
    return old && !(fw->flags & (VXK_WORD_SEEN | VXK_WORD_GUARD)) ? old->seen : a->fade.tick;
}

/* A changed word into the new version `w`; the leaf pages of what it replaces are retired. */
VXK_FN void vxk_word_replace(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                             const struct vxk_word *old, struct vxk_word *w)
{
    uint32_t n_pages = (fw->n_leaf + 7) / 8;
    w->leaf = fw->leaf;
    w->tile = fw->tile;
    for (uint32_t k = 0; k < 8; k++)
        w->page[k] = k < n_pages ? a->s.fresh[VXK_PAGE_LEAVES][fw->leaf_page + k] : VXK_NONE;
    w->n_active = fw->n_active;
    w->changed_epoch = a->epoch;
    w->tick = vxk_word_tick(a, old);
    w->seen = vxk_word_seen(a, fw, old);
    if (old && old->leaf) {
        uint32_t n = (vxk_popc64(old->leaf) + 7) / 8,
                 at = vxk_atomic_add32(&a->s.c->at_old[VXK_PAGE_LEAVES], n);
        for (uint32_t k = 0; k < n; k++)
            a->s.old[VXK_PAGE_LEAVES][at + k] = old->page[k];
    }
}

/* The value pages that an old leaf begins: page[*from .. 2] up to VXK_NONE; gives their number. */
VXK_FN uint32_t vxk_leaf_begins(const struct vxk_leaf *l, uint32_t *from)
{
    uint32_t n = 0;
    *from = l->first == 0 ? 0 : 1;
    if (l->n_active)
        for (uint32_t k = *from; k < 3 && l->page[k] != VXK_NONE; k++)
            n++;
    return n;
}

/* The value pages of a replaced word are retired: each leaf's that begin with it. */
VXK_FN void vxk_word_retire(const struct vxk_frame_args *a, const struct vxk_word *old)
{
    uint32_t at, from;
    if (!old || !old->n_active)
        return;
    at = vxk_atomic_add32(&a->s.c->at_old[VXK_PAGE_VALUES], (old->n_active + 255) / 256);
    for (uint64_t m = old->leaf; m; m &= m - 1) {
        const struct vxk_leaf *l = vxk_leaf_at(&a->g, old, vxk_ctz64(m));
        for (uint32_t n = vxk_leaf_begins(l, &from); n; n--)
            a->s.old[VXK_PAGE_VALUES][at++] = l->page[from++];
    }
}

/* A word of a changed chunk that did not change, into the new version. */
VXK_FN void vxk_word_carry(const struct vxk_word *old, struct vxk_word *w)
{
    if (old) {
        *w = *old;
        return;
    }
    w->leaf = w->tile = 0;
    for (int k = 0; k < 8; k++)
        w->page[k] = VXK_NONE;
    w->n_active = w->changed_epoch = w->tick = w->seen = 0;
}

/* Header of a chunk's new version from its sums, then the version becomes the head of its key. */
VXK_FN void vxk_chunk_publish(const struct vxk_frame_args *a, const struct vxk_frame_chunk *c, uint32_t leaf,
                              uint32_t tile, uint32_t active)
{
    struct vxk_frame_counters *n = a->s.c;
    uint32_t id = a->s.fresh[VXK_PAGE_CHUNK][c->fresh], slot, box[3], was = 0;
    struct vxk_chunk *v = &a->chunks[id];
    int32_t x, y, z;
    int inserted;
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
        a->s.old[VXK_PAGE_CHUNK][vxk_atomic_add32(&n->at_old[VXK_PAGE_CHUNK], 1)] = c->old;
    }
    if (was && !(leaf + tile))
        vxk_atomic_add32(&n->n_gone_chunk, 1);
    if (!was && leaf + tile)
        vxk_atomic_add32(&n->n_came_chunk, 1);
    vxk_key_xyz(c->key, &x, &y, &z);
    box[0] = (uint32_t)x ^ 0x80000000u;
    box[1] = (uint32_t)y ^ 0x80000000u;
    box[2] = (uint32_t)z ^ 0x80000000u;
    vxk_box_grow(n->chunk_not_min, n->chunk_max, box, box);
    slot = vxk_hash_insert(a->keys, a->g.slot_mask, c->key, &inserted);
    if (inserted)
        vxk_atomic_add32(&n->n_new_key, 1);
    else if (c->old == VXK_NONE)
        vxk_atomic_add32(&n->n_woken, 1);
    vxk_fence();
    vxk_store32(&a->heads[slot], id);
}

/* Element: a frame chunk: its new version if a word of it changed, published; what it replaces is retired. */
#define vxk_frame_commit_args vxk_frame_args
VXK_FN void vxk_frame_commit(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame_chunk *c = &a->s.chunk[i];
    uint32_t leaf = 0, tile = 0, active = 0;
    struct vxk_chunk *v;
    if (!c->changed)
        return;
    v = &a->chunks[a->s.fresh[VXK_PAGE_CHUNK][c->fresh]];
    for (uint32_t k = 0; k < 64; k++) {
        const struct vxk_word *old = vxk_frame_old_word(a, c, k);
        uint32_t at = a->s.word_of[i * 64 + k];
        if (at != VXK_NONE && a->s.word[at].changed) {
            vxk_word_replace(a, &a->s.word[at], old, &v->word[k]);
            vxk_word_retire(a, old);
        } else {
            vxk_word_carry(old, &v->word[k]);
        }
        leaf += vxk_popc64(v->word[k].leaf);
        tile += vxk_popc64(v->word[k].tile);
        active += v->word[k].n_active;
    }
    vxk_chunk_publish(a, c, leaf, tile, active);
}

/* Element: a version that holds nothing and has no reader: it is retired, its key stays in the table. */
#define vxk_frame_bury_args vxk_frame_args
VXK_FN void vxk_frame_bury(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t slot = vxk_hash_find(a->g.keys, a->g.slot_mask, a->g.chunks[a->s.dead[i]].key);
    a->s.old[VXK_PAGE_CHUNK][vxk_atomic_add32(&a->s.c->at_old[VXK_PAGE_CHUNK], 1)] = a->s.dead[i];
    vxk_store32(&a->heads[slot], VXK_NONE);
}

/* The frame's counters into memory of the host: sooner there than a copy would be.  Element: a word. */
struct vxk_frame_report_args {
    const uint32_t *from;
    uint32_t *to;
};
VXK_FN void vxk_frame_report(const struct vxk_frame_report_args *a, uint32_t i)
{
    a->to[i] = a->from[i];
}

#endif
