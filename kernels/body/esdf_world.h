/*
 * esdf_world.h - what an update of the distance field works on: the field, what changed, and a batch's lists.
 *
 * The field numbers its chunks in the order in which it met them; a *place* is chunk << 12 | word << 6 |
 * cell. near[] holds the numbers of a chunk's 27 neighbours, so that no step of an update searches a hash
 * table. Lists are made by atomic counters and come in any order; nothing that the field stores depends on
 * it.
 */
#ifndef VXK_BODY_ESDF_WORLD_H
#define VXK_BODY_ESDF_WORLD_H

#include "esdf_site.h"

/* Families of sites and of partial minima, bits. */
enum { VXK_ESDF_X = 1, VXK_ESDF_Y = 2, VXK_ESDF_Z = 4, VXK_ESDF_A = 1, VXK_ESDF_B = 2 };

struct vxk_esdf_counters {
    uint32_t n_chunks;  /* more than there is room for = they did not fit */
    uint32_t n_dirty;   /* cells whose sites are derived again; the same */
    uint32_t n_changed; /* those of them whose sites differ */
    uint32_t n_state;   /* those whose sites are as they were, with a leaf whose states may have changed */
    uint32_t n_out;     /* leaves to be computed */
    uint32_t n_new;     /* those of them that do not exist yet */
    uint32_t n_listed, n_taken, n_pruned;
    uint32_t end[4]; /* of a batch's list: its leaves, with planes, with lines, with sites */
    uint32_t n_holes, n_movers, reserved;
};

/* The arguments of every element function of an update. */
struct vxk_esdf_args {
    struct vxk_samples samples;
    struct vxk_esdf_counters *n;

    /* the field */
    uint64_t *keys;      /* [slot_mask + 1] */
    uint32_t *index;     /* [slot_mask + 1] */
    uint64_t *chunk_key; /* [max_chunks] */
    uint32_t *near;      /* [max_chunks][27] numbers of the chunks around, VXK_NONE */
    uint32_t *version;   /* [max_chunks] the map's version of the chunk, VXK_NONE */
    uint8_t *held;       /* [max_chunks * 64] the word held something when the field was last up to date */
    uint32_t *table;     /* [max_chunks][4096] */
    struct vxk_outline *outline; /* [max_chunks * 64] */
    uint16_t **pages;
    uint32_t *free_leaf; /* stack of leaf numbers to use again */

    /* what changed */
    uint8_t *touched; /* [max_chunks * 64] the word changed */
    uint64_t *dirty;  /* [max_chunks * 64] cells whose sites are derived again */
    uint64_t *out;    /* [max_chunks * 64] leaves to be computed */
    uint32_t *cell;   /* [room] places of dirty cells */
    struct vxk_records *cell_records;
    struct vxk_esdf_mark *fresh;
    uint32_t *changed; /* entries of cell[] */
    uint64_t *reached; /* what their old and new sites span */
    uint32_t *state;   /* places */
    uint32_t *all_out; /* [n_out] places */
    uint64_t *digest;
    uint32_t *holes, *movers; /* [n_free] leaf numbers */

    /* a batch */
    uint32_t *slot; /* [chunks * 4096] a place's entry in list, VXK_NONE */
    uint32_t *list; /* places: the leaves of the batch, then what else has planes, lines, sites */
    struct vxk_records *records;
    uint32_t *link; /* [end[2]][3][2 reach + 1] entries along x, y, z, VXK_NONE */
    uint32_t *site_has, *line_has, *plane_has;
    uint8_t *sites;  /* [end[3]][3][512] */
    uint16_t *line;  /* [end[2]][3][512] */
    int32_t *plane;  /* [end[1]][2][512] */
    uint32_t *alive; /* [end[0]] some voxel is within R */

    uint32_t slot_mask, max_chunks, room;
    uint32_t since; /* the field's epoch on the device, 0 = it is empty */
    uint32_t radius, reach, scale;
    int32_t limit;       /* (256 R)^2 */
    uint32_t n_numbers;  /* leaf numbers given out before */
    uint32_t n_leaves;   /* in use */
    uint32_t n_free;     /* of free_leaf */
    uint32_t first;      /* of all_out: the batch's first */
    uint32_t n_in_batch; /* leaves of the batch */
    uint32_t stage;      /* of the lists: 0 planes, 1 lines, 2 sites */
};

/* Number of the chunk that holds cell (x, y, z) of chunk c, each -16 .. 31, or VXK_NONE. */
VXK_FN uint32_t vxk_esdf_chunk_at(const struct vxk_esdf_args *a, uint32_t c, int32_t x, int32_t y, int32_t z)
{
    if (((x | y | z) & ~15) == 0)
        return c;
    return a->near[c * 27 + (uint32_t)(((x >> 4) + 1) * 9 + ((y >> 4) + 1) * 3 + (z >> 4) + 1)];
}
/* The place (dx, dy, dz) cells away, or VXK_NONE where the field has no chunk. */
VXK_FN uint32_t vxk_esdf_place_at(const struct vxk_esdf_args *a, uint32_t place, int32_t dx, int32_t dy,
                                  int32_t dz)
{
    int32_t x, y, z;
    uint32_t c;
    vxk_place_xyz(place & 4095, &x, &y, &z);
    x += dx;
    y += dy;
    z += dz;
    c = vxk_esdf_chunk_at(a, place >> 12, x, y, z);
    return c == VXK_NONE ? VXK_NONE : c << 12 | vxk_place(x, y, z);
}
VXK_FN uint32_t vxk_esdf_place_along(const struct vxk_esdf_args *a, uint32_t place, uint32_t axis, int32_t d)
{
    return vxk_esdf_place_at(a, place, axis == 0 ? d : 0, axis == 1 ? d : 0, axis == 2 ? d : 0);
}

/* The map's version of a chunk of the field, or NULL. */
VXK_FN const struct vxk_chunk *vxk_esdf_chunk(const struct vxk_esdf_args *a, uint32_t c)
{
    return a->version[c] == VXK_NONE ? (const struct vxk_chunk *)0 : &a->samples.grid.chunks[a->version[c]];
}
VXK_FN uint32_t vxk_esdf_record(const struct vxk_esdf_args *a, uint32_t place)
{
    return place == VXK_NONE ? VXK_NONE : vxk_record(vxk_esdf_chunk(a, place >> 12), place & 4095);
}
/* Records of a place and of those above it. */
VXK_FN void vxk_esdf_records(const struct vxk_esdf_args *a, uint32_t place, struct vxk_records *out)
{
    out->self = vxk_esdf_record(a, place);
    out->x = vxk_esdf_record(a, vxk_esdf_place_at(a, place, 1, 0, 0));
    out->y = vxk_esdf_record(a, vxk_esdf_place_at(a, place, 0, 1, 0));
    out->z = vxk_esdf_record(a, vxk_esdf_place_at(a, place, 0, 0, 1));
}

/* Adds a chunk to the field unless it has it. */
VXK_FN void vxk_esdf_insert(const struct vxk_esdf_args *a, uint64_t key)
{
    int inserted;
    uint32_t slot, n;
    if (vxk_load32(&a->n->n_chunks) > a->max_chunks)
        return;
    slot = vxk_hash_insert(a->keys, a->slot_mask, key, &inserted);
    if (!inserted)
        return;
    n = vxk_atomic_add32(&a->n->n_chunks, 1);
    if (n >= a->max_chunks)
        return;
    a->chunk_key[n] = key;
    a->index[slot] = n;
}

#endif
