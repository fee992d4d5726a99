/*
 * pool.h - small element functions of the page pools and the map's table.
 */
#ifndef VXK_BODY_POOL_H
#define VXK_BODY_POOL_H

#include "grid.h"

/* out[i] = first + i: ids of fresh pages onto the stack. */
struct vxk_pool_iota_args {
    uint32_t *out;
    uint32_t first;
};
VXK_FN void vxk_pool_iota(const struct vxk_pool_iota_args *a, uint32_t i)
{
    a->out[i] = a->first + i;
}

/* Copies lists of ids: element i is an id, lists one after the other; end[k] = elements up to
 * the end of list k. */
enum { VXK_MOVE_LISTS = 6 };
struct vxk_pool_move_args {
    const uint32_t *from[VXK_MOVE_LISTS];
    uint32_t *to[VXK_MOVE_LISTS];
    uint32_t end[VXK_MOVE_LISTS];
};
VXK_FN void vxk_pool_move(const struct vxk_pool_move_args *a, uint32_t i)
{
    uint32_t begin = 0;
    for (int k = 0; k < VXK_MOVE_LISTS; k++) {
        if (i < a->end[k]) {
            a->to[k][i - begin] = a->from[k][i - begin];
            return;
        }
        begin = a->end[k];
    }
}

/* The same behind a launch that has nothing to do with the lists: a device may run it beside that one. */
#define vxk_pool_take_args vxk_pool_move_args
VXK_FN void vxk_pool_take(const struct vxk_pool_take_args *a, uint32_t i)
{
    vxk_pool_move(a, i);
}

/* Element: a slot of the old table: into the new one, unless its chunk is gone. */
struct vxk_pool_rehash_args {
    const uint64_t *old_keys;
    const uint32_t *old_heads;
    uint64_t *keys;
    uint32_t *heads;
    uint32_t slot_mask;
};
VXK_FN void vxk_pool_rehash(const struct vxk_pool_rehash_args *a, uint32_t i)
{
    int inserted;
    if (a->old_keys[i] == VXK_NO_KEY || a->old_heads[i] == VXK_NONE)
        return;
    a->heads[vxk_hash_insert(a->keys, a->slot_mask, a->old_keys[i], &inserted)] = a->old_heads[i];
}

/* Element: (slot, word): the pages of the newest version, for giving a whole map back.  n[kind] are cursors.
 */
struct vxk_pool_collect_args {
    struct vxk_grid g;
    uint32_t *n;
    uint32_t *chunk, *leaf_page, *value_page;
};
VXK_FN void vxk_pool_collect(const struct vxk_pool_collect_args *a, uint32_t i)
{
    uint32_t head = a->g.keys[i >> 6] == VXK_NO_KEY ? VXK_NONE : a->g.heads[i >> 6], pages;
    const struct vxk_word *w;
    if (head == VXK_NONE)
        return;
    if ((i & 63) == 0)
        a->chunk[vxk_atomic_add32(&a->n[0], 1)] = head;
    w = &a->g.chunks[head].word[i & 63];
    pages = (vxk_popc64(w->leaf) + 7) / 8;
    if (!pages)
        return;
    for (uint64_t m = w->leaf; m; m &= m - 1) {
        const struct vxk_leaf *l = vxk_leaf_at(&a->g, w, vxk_ctz64(m));
        if (l->n_active)
            for (uint32_t k = l->first == 0 ? 0 : 1; k < 3; k++)
                if (l->page[k] != VXK_NONE)
                    a->value_page[vxk_atomic_add32(&a->n[2], 1)] = l->page[k];
    }
    for (uint32_t k = 0; k < pages; k++)
        a->leaf_page[vxk_atomic_add32(&a->n[1], 1)] = w->page[k];
}

/* Element: a slot: flag[i] = 1 when the epoch sees a version that holds something; key and version beside it.
 */
struct vxk_pool_list_args {
    struct vxk_grid g;
    uint8_t *flag;
};
VXK_FN void vxk_pool_list(const struct vxk_pool_list_args *a, uint32_t i)
{
    uint64_t key = vxk_load64(&a->g.keys[i]);
    const struct vxk_chunk *c = key == VXK_NO_KEY ? (const struct vxk_chunk *)0 : vxk_find_chunk(&a->g, key);
    a->flag[i] = (uint8_t)(c && c->n_leaf + c->n_tile ? 1 : 0);
}

/* Element: a selected slot: its key and version. */
struct vxk_pool_gather_args {
    struct vxk_grid g;
    const uint32_t *slot;
    uint64_t *key;
    uint32_t *version;
};
VXK_FN void vxk_pool_gather(const struct vxk_pool_gather_args *a, uint32_t i)
{
    const struct vxk_chunk *c;
    a->key[i] = vxk_load64(&a->g.keys[a->slot[i]]);
    c = vxk_find_chunk(&a->g, a->key[i]);
    a->version[i] = (uint32_t)(c - a->g.chunks);
}

/* Element: (version in key order, word): number of its leaf records; then, with their places, the records'
 * names. */
struct vxk_pool_leaf_count_args {
    struct vxk_grid g;
    const uint32_t *version;
    uint32_t *count;
};
VXK_FN void vxk_pool_leaf_count(const struct vxk_pool_leaf_count_args *a, uint32_t i)
{
    a->count[i] = vxk_popc64(a->g.chunks[a->version[i >> 6]].word[i & 63].leaf);
}
struct vxk_pool_leaf_list_args {
    struct vxk_grid g;
    const uint32_t *version;
    const uint32_t *first;
    uint32_t *leaf;
};
VXK_FN void vxk_pool_leaf_list(const struct vxk_pool_leaf_list_args *a, uint32_t i)
{
    uint32_t at = a->first[i];
    for (uint64_t m = a->g.chunks[a->version[i >> 6]].word[i & 63].leaf; m; m &= m - 1)
        a->leaf[at++] = i << 6 | vxk_ctz64(m);
}

#endif
