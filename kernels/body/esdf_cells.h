/*
 * esdf_cells.h - sets of cells, numbered: what the mesh indexes its arrays by.
 *
 * A set numbers its cells by chunk key, word and cell.  Finding a cell's number takes the chunk's place in
 * the set (a hash table when it is another chunk), the word's mask and a population count.
 */
#ifndef VXK_BODY_ESDF_CELLS_H
#define VXK_BODY_ESDF_CELLS_H

#include "esdf_site.h"

struct vxk_cells {
    const uint64_t *keys;      /* [slot_mask + 1] chunk keys, open addressing */
    const uint32_t *index;     /* [slot_mask + 1] number of the slot's chunk */
    const uint64_t *chunk_key; /* [chunks] ascending */
    const uint64_t *mask;      /* [chunks * 64] cells of a word */
    const uint32_t *before;    /* [chunks * 64] cells before the word */
    const uint32_t *place;     /* [cells] chunk << 12 | place in the chunk */
    uint32_t slot_mask;
};

/* Number of the cell at `place` (chunk << 12 | place in the chunk), or VXK_NONE. */
VXK_FN uint32_t vxk_cells_at(const struct vxk_cells *c, uint32_t place)
{
    uint32_t w = place >> 6;
    uint64_t m = c->mask[w], bit = 1ull << (place & 63);
    return m & bit ? c->before[w] + vxk_popc64(m & (bit - 1)) : VXK_NONE;
}
/* Number of the cell (dx, dy, dz) cells from `place`, or VXK_NONE. */
VXK_FN uint32_t vxk_cells_near(const struct vxk_cells *c, uint32_t place, int32_t dx, int32_t dy, int32_t dz)
{
    int32_t x, y, z, kx, ky, kz;
    uint32_t slot;
    uint64_t key;
    vxk_place_xyz(place & 4095, &x, &y, &z);
    x += dx;
    y += dy;
    z += dz;
    if (((x | y | z) & ~15) == 0)
        return vxk_cells_at(c, (place & ~4095u) | vxk_place(x, y, z));
    vxk_key_xyz(c->chunk_key[place >> 12], &kx, &ky, &kz);
    if (!vxk_cell_key(kx * 16 + x, ky * 16 + y, kz * 16 + z, &key))
        return VXK_NONE;
    slot = vxk_hash_find(c->keys, c->slot_mask, key);
    return slot == VXK_NONE ? VXK_NONE : vxk_cells_at(c, c->index[slot] << 12 | vxk_place(x, y, z));
}
/* Puts sorted chunk keys into a set's table.  Element: a chunk. */
struct vxk_cells_index_args {
    const uint64_t *chunk_key;
    uint64_t *keys;
    uint32_t *index;
    uint32_t slot_mask;
};
VXK_FN void vxk_cells_index(const struct vxk_cells_index_args *a, uint32_t i)
{
    int inserted;
    uint32_t slot = vxk_hash_insert(a->keys, a->slot_mask, a->chunk_key[i], &inserted);
    if (slot != VXK_NONE)
        a->index[slot] = i;
}

enum { VXK_CELLS_CLAIMED = 0xfffffffe /* slot: listed by an element of this launch */ };
/* Puts cell k on a list unless it is on it. */
VXK_FN void vxk_cells_claim(uint32_t *slot, uint32_t *list, uint32_t *n, uint32_t k)
{
    if (vxk_load32(&slot[k]) == VXK_NONE &&
        vxk_atomic_cas32(&slot[k], VXK_NONE, VXK_CELLS_CLAIMED) == VXK_NONE)
        list[vxk_atomic_add32(n, 1)] = k;
}
/* Gives the listed cells their places, or takes them off again.  Element: an entry of the list. */
struct vxk_cells_number_args {
    const uint32_t *list;
    uint32_t *slot;
    uint32_t release;
};
VXK_FN void vxk_cells_number(const struct vxk_cells_number_args *a, uint32_t i)
{
    a->slot[a->list[i]] = a->release ? VXK_NONE : i;
}

/* Number of cells of a word.  Element: a word. */
struct vxk_cells_count_args {
    const uint64_t *mask;
    uint32_t *n;
};
VXK_FN void vxk_cells_count(const struct vxk_cells_count_args *a, uint32_t i)
{
    a->n[i] = vxk_popc64(a->mask[i]);
}

/* Lists the cells.  Element: a word. */
struct vxk_cells_list_args {
    const uint64_t *mask;
    const uint32_t *before;
    uint32_t *place;
};
VXK_FN void vxk_cells_list(const struct vxk_cells_list_args *a, uint32_t i)
{
    uint32_t n = a->before[i];
    for (uint64_t left = a->mask[i]; left; left &= left - 1)
        a->place[n++] = i << 6 | vxk_ctz64(left);
}

/* True when a word or one around it has a leaf record. */
VXK_FN int vxk_word_near_leaf(const struct vxk_grid *g, const struct vxk_chunk *c, uint32_t word)
{
    for (int32_t k = 0; k < 27; k++) {
        int32_t x = (int32_t)(word >> 4) + k / 9 - 1, y = (int32_t)(word >> 2 & 3) + k / 3 % 3 - 1,
                z = (int32_t)(word & 3) + k % 3 - 1;
        const struct vxk_chunk *n = c;
        if ((x | y | z) & ~3) {
            int32_t kx, ky, kz;
            uint64_t key;
            vxk_key_xyz(c->key, &kx, &ky, &kz);
            n = vxk_cell_key((kx * 4 + x) * 4, (ky * 4 + y) * 4, (kz * 4 + z) * 4, &key)
                    ? vxk_find_chunk(g, key)
                    : (const struct vxk_chunk *)0;
        }
        if (n && n->word[(x & 3) << 4 | (y & 3) << 2 | (z & 3)].leaf)
            return 1;
    }
    return 0;
}
/* The cells of a word that may own sites or surface: those with a record, and in occupancy maps the free
 * tiles beside one. */
VXK_FN uint64_t vxk_word_site_cells(const struct vxk_samples *s, const struct vxk_chunk *c, uint32_t word)
{
    uint64_t cells = c->word[word].leaf, left = s->occupancy ? c->word[word].tile : 0;
    if (left && !vxk_word_near_leaf(&s->grid, c, word))
        left = 0;
    for (; left; left &= left - 1) {
        uint32_t cell = vxk_ctz64(left);
        for (int32_t k = 0; k < 27; k++)
            if (vxk_record_near(&s->grid, c, c->key, word << 6 | cell, k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1) <
                VXK_FREE_TILE) {
                cells |= 1ull << cell;
                break;
            }
    }
    return cells;
}
/* Those of all words.  Element: chunk version i >> 6, word i & 63. */
struct vxk_site_cells_args {
    struct vxk_samples samples;
    const uint32_t *versions;
    uint64_t *chunk_key;
    uint64_t *mask;
};
VXK_FN void vxk_site_cells(const struct vxk_site_cells_args *a, uint32_t i)
{
    const struct vxk_chunk *c = &a->samples.grid.chunks[a->versions[i >> 6]];
    a->mask[i] = vxk_word_site_cells(&a->samples, c, i & 63);
    if ((i & 63) == 0)
        a->chunk_key[i >> 6] = c->key;
}

/* What the map holds at cells of a set.  Element: an entry. */
struct vxk_cells_lookup_args {
    struct vxk_grid grid;
    const uint64_t *chunk_key;
    const uint32_t *place;
    const uint32_t *list; /* NULL: entry i is cell first + i */
    struct vxk_records *out;
    uint32_t first;
    uint32_t neighbours; /* 0: only .self is filled */
};
VXK_FN void vxk_cells_lookup(const struct vxk_cells_lookup_args *a, uint32_t i)
{
    uint32_t place = a->place[a->list ? a->list[i] : a->first + i], p = place & 4095;
    uint64_t key = a->chunk_key[place >> 12];
    const struct vxk_chunk *c = vxk_find_chunk(&a->grid, key);
    struct vxk_records r;
    r.self = vxk_record(c, p);
    r.x = r.y = r.z = VXK_NONE;
    if (a->neighbours) {
        r.x = vxk_record_near(&a->grid, c, key, p, 1, 0, 0);
        r.y = vxk_record_near(&a->grid, c, key, p, 0, 1, 0);
        r.z = vxk_record_near(&a->grid, c, key, p, 0, 0, 1);
    }
    a->out[i] = r;
}

#endif
