/*
 * load.h - between a map's pages and plain arrays: chunks out of an epoch (export), chunks into an empty map
 * (import).
 */
#ifndef VXK_BODY_LOAD_H
#define VXK_BODY_LOAD_H

#include "grid.h"

/* ------------------------------------------------------------------ out of a map */

struct vxk_load_survey_word { /* 32 bytes */
    uint64_t active;          /* cells with active voxels */
    uint64_t part;            /* cells whose leaf record has free voxels */
    uint64_t tile;            /* cells that are free as a whole */
    uint32_t n_active;        /* voxels */
    uint32_t reserved;
};

/* Element: (version, word): what it holds.  Word 0 also writes the chunk's key. */
struct vxk_load_survey_args {
    struct vxk_grid g;
    const uint32_t *version;
    struct vxk_load_survey_word *out; /* [versions][64] */
    uint64_t *key;                    /* [versions] */
};
VXK_FN void vxk_load_survey(const struct vxk_load_survey_args *a, uint32_t i)
{
    const struct vxk_chunk *c = &a->g.chunks[a->version[i >> 6]];
    const struct vxk_word *w = &c->word[i & 63];
    struct vxk_load_survey_word *o = &a->out[i];
    uint64_t active = 0, part = 0;
    for (uint64_t m = w->leaf; m; m &= m - 1) {
        uint32_t cell = vxk_ctz64(m);
        const struct vxk_leaf *l = vxk_leaf_at(&a->g, w, cell);
        uint64_t any_free = 0;
        for (int x = 0; x < 8; x++)
            any_free |= l->free[x];
        if (l->n_active)
            active |= 1ull << cell;
        if (any_free)
            part |= 1ull << cell;
    }
    o->active = active;
    o->part = part;
    o->tile = w->tile;
    o->n_active = w->n_active;
    o->reserved = 0;
    if ((i & 63) == 0)
        a->key[i >> 6] = c->key;
}

struct vxk_load_masks_out { /* 128 bytes */
    uint64_t active[8], free[8];
};

/* Element: a leaf of a list (index into version << 12 | word << 6 | cell): its masks and number of values. */
struct vxk_load_masks_args {
    struct vxk_grid g;
    const uint32_t *version, *leaf;
    struct vxk_load_masks_out *out;
    uint32_t *count;
};
VXK_FN const struct vxk_leaf *vxk_load_leaf_of(const struct vxk_grid *g, const uint32_t *version, uint32_t at)
{
    return vxk_leaf_at(g, &g->chunks[version[at >> 12]].word[at >> 6 & 63], at & 63);
}
VXK_FN void vxk_load_masks(const struct vxk_load_masks_args *a, uint32_t i)
{
    const struct vxk_leaf *l = vxk_load_leaf_of(&a->g, a->version, a->leaf[i]);
    for (int x = 0; x < 8; x++) {
        a->out[i].active[x] = l->active[x];
        a->out[i].free[x] = l->free[x];
    }
    a->count[i] = l->n_active;
}

/* Element: (leaf of the list, part of 64 values): its values, all leaves' one after the other. */
struct vxk_load_values_args {
    struct vxk_grid g;
    const uint32_t *version, *leaf;
    const uint32_t *first; /* [leaves] values before it */
    uint32_t *out;
    uint32_t *colour, *label; /* beside them; NULL: the map has none, or they are not wanted */
};
VXK_FN void vxk_load_values(const struct vxk_load_values_args *a, uint32_t i)
{
    const struct vxk_leaf *l = vxk_load_leaf_of(&a->g, a->version, a->leaf[i >> 3]);
    uint32_t *out = a->out + a->first[i >> 3], k = (i & 7) * 64, end = vxk_minu(k + 64, l->n_active);
    for (; k < end; k++) {
        uint64_t from = vxk_leaf_value_index(l, k), to = a->first[i >> 3] + (uint64_t)k;
        out[k] = a->g.values[from];
        if (a->colour)
            a->colour[to] = a->g.colours[from];
        if (a->label)
            a->label[to] = a->g.labels[from];
    }
}

/* ------------------------------------------------------------------ into a map */

struct vxk_load_in_word { /* 32 bytes */
    uint64_t leaf, tile;  /* as in struct vxk_word */
    uint32_t leaf_page;   /* place of its first page among the batch's new pages */
    uint32_t value_page;  /* likewise */
    uint32_t n_active;
    uint32_t reserved;
};
struct vxk_load_in_leaf { /* 136 bytes */
    uint32_t at;          /* chunk of the batch << 12 | word << 6 | cell */
    uint32_t first;       /* values of its word before it */
    uint64_t active[8], free[8];
};

/* What the four kernels below share.  new_*: ids of fresh pages. */
struct vxk_load_args {
    const uint64_t *key; /* [chunks] */
    const struct vxk_load_in_word *word;
    const struct vxk_load_in_leaf *leaf;
    const uint32_t *value;  /* [value pages][256] */
    const uint32_t *colour; /* likewise; NULL: the map has none */
    const uint16_t *label;
    const uint32_t *new_chunk, *new_leaf_page, *new_value_page;
    struct vxk_chunk *chunks;
    struct vxk_leaf *leaves;
    uint32_t *values, *colours;
    uint16_t *labels;
    uint64_t *keys; /* the map's table */
    uint32_t *heads;
    uint32_t slot_mask, epoch;
};

/* Element: (chunk, word). */
#define vxk_load_word_args vxk_load_args
VXK_FN void vxk_load_word(const struct vxk_load_args *a, uint32_t i)
{
    const struct vxk_load_in_word *in = &a->word[i];
    struct vxk_word *w = &a->chunks[a->new_chunk[i >> 6]].word[i & 63];
    uint32_t n_pages = (vxk_popc64(in->leaf) + 7) / 8;
    w->leaf = in->leaf;
    w->tile = in->tile;
    for (uint32_t k = 0; k < 8; k++)
        w->page[k] = k < n_pages ? a->new_leaf_page[in->leaf_page + k] : VXK_NONE;
    w->n_active = in->n_active;
    w->changed_epoch = in->leaf | in->tile ? a->epoch : 0;
    w->tick = w->seen = 0; /* what is loaded does not fade */
}

/* Element: a leaf record. */
#define vxk_load_leaf_args vxk_load_args
VXK_FN void vxk_load_leaf(const struct vxk_load_args *a, uint32_t i)
{
    const struct vxk_load_in_leaf *in = &a->leaf[i];
    const struct vxk_load_in_word *w = &a->word[in->at >> 6];
    uint32_t rank = vxk_popc64(w->leaf & ((1ull << (in->at & 63)) - 1)), n = 0;
    struct vxk_leaf *l =
        &a->leaves[(uint64_t)a->new_leaf_page[w->leaf_page + (rank >> 3)] * VXK_LEAVES_A_PAGE + (rank & 7)];
    uint64_t prefix = 0;
    for (uint32_t x = 0; x < 8; x++) {
        l->active[x] = in->active[x];
        l->free[x] = in->free[x];
        if (x)
            prefix |= (uint64_t)n << (9 * (x - 1));
        n += vxk_popc64(in->active[x]);
    }
    l->prefix = prefix;
    l->n_active = (uint16_t)n;
    l->first = (uint16_t)(n ? in->first & 255 : 0);
    for (uint32_t k = 0; k < 3; k++)
        l->page[k] = n && (in->first & 255) + n > k * 256
                         ? a->new_value_page[w->value_page + (in->first >> 8) + k]
                         : VXK_NONE;
}

/* Element: a value of the batch's pages. */
#define vxk_load_page_args vxk_load_args
VXK_FN void vxk_load_page(const struct vxk_load_args *a, uint32_t i)
{
    uint64_t to = (uint64_t)a->new_value_page[i >> 8] * VXK_VALUES_A_PAGE + (i & 255);
    a->values[to] = a->value[i];
    if (a->colour)
        a->colours[to] = a->colour[i];
    if (a->label)
        a->labels[to] = a->label[i];
}

/* Element: a chunk: its header, then its place in the table. */
#define vxk_load_publish_args vxk_load_args
VXK_FN void vxk_load_publish(const struct vxk_load_args *a, uint32_t i)
{
    uint32_t id = a->new_chunk[i], leaf = 0, tile = 0, active = 0, slot;
    struct vxk_chunk *v = &a->chunks[id];
    int inserted;
    for (uint32_t w = 0; w < 64; w++) {
        leaf += vxk_popc64(v->word[w].leaf);
        tile += vxk_popc64(v->word[w].tile);
        active += v->word[w].n_active;
    }
    v->key = a->key[i];
    v->epoch = a->epoch;
    v->prev = VXK_NONE;
    v->n_leaf = leaf;
    v->n_active = active;
    v->n_tile = tile;
    for (int k = 0; k < 9; k++)
        v->reserved[k] = 0;
    slot = vxk_hash_insert(a->keys, a->slot_mask, a->key[i], &inserted);
    vxk_fence();
    vxk_store32(&a->heads[slot], id);
}

#endif
