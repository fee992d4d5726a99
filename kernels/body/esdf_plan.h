/*
 * esdf_plan.h - what an update of the distance field has to do: which sites changed, which leaves they reach.
 *
 * Words that changed since the field's epoch -> their cells, and those before them on each axis (a site
 * belongs to its lower voxel) -> marks of their sites, compared with the leaves' -> the leaves within R of
 * any site that is gone or new.  A build from scratch is the same with an empty field.
 */
#ifndef VXK_BODY_ESDF_PLAN_H
#define VXK_BODY_ESDF_PLAN_H

#include "esdf_world.h"

/* Makes the field's chunks of those that changed in the map and may own sites.  Element: a slot of the map's
 * table. */
#define vxk_esdf_touch_args vxk_esdf_args
VXK_FN void vxk_esdf_touch(const struct vxk_esdf_args *a, uint32_t i)
{
    uint64_t key = vxk_load64(&a->samples.grid.keys[i]);
    const struct vxk_chunk *c;
    if (key == VXK_NO_KEY)
        return;
    c = vxk_find_chunk(&a->samples.grid, key);
    if (c && c->epoch > a->since && (c->n_leaf || (a->samples.occupancy && c->n_tile)))
        vxk_esdf_insert(a, key);
}

/* Who is around a chunk, and what the map has of it.  Element: chunk i / 27, neighbour i % 27. */
#define vxk_esdf_near_args vxk_esdf_args
VXK_FN void vxk_esdf_near(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t c = i / 27, k = i % 27, slot, n = VXK_NONE;
    int32_t x, y, z;
    uint64_t key;
    if (k == 13) {
        const struct vxk_chunk *v = vxk_find_chunk(&a->samples.grid, a->chunk_key[c]);
        a->version[c] = v ? (uint32_t)(v - a->samples.grid.chunks) : VXK_NONE;
        a->near[i] = c;
        return;
    }
    vxk_key_xyz(a->chunk_key[c], &x, &y, &z);
    x += (int32_t)(k / 9) - 1;
    y += (int32_t)(k / 3 % 3) - 1;
    z += (int32_t)(k % 3) - 1;
    if (vxk_cell_key(x * 16, y * 16, z * 16, &key)) {
        slot = vxk_hash_find(a->keys, a->slot_mask, key);
        n = slot == VXK_NONE ? VXK_NONE : a->index[slot];
    }
    a->near[i] = n < a->max_chunks ? n : VXK_NONE;
}

/* Marks the cells of the words that changed and those before them.  Element: chunk i >> 6, word i & 63. */
#define vxk_esdf_dirty_args vxk_esdf_args
VXK_FN void vxk_esdf_dirty(const struct vxk_esdf_args *a, uint32_t i)
{
    /* The last cells of a word along x, y and z. */
    const uint64_t last[3] = {0xffffull << 48, 0xf000f000f000f000ull, 0x8888888888888888ull};
    uint32_t c = i >> 6, word = i & 63;
    const struct vxk_chunk *v = vxk_esdf_chunk(a, c);
    int changed = a->held[i];
    if (v) /* a chunk that went and came back has no date for what it no longer holds */
        changed = v->epoch > a->since && (v->word[word].changed_epoch > a->since ||
                                          (changed && !(v->word[word].leaf | v->word[word].tile)));
    a->touched[i] = (uint8_t)changed;
    if (!changed)
        return;
    vxk_atomic_or64(&a->dirty[i], ~0ull);
    for (int axis = 0; axis < 3; axis++) {
        int32_t x = (int32_t)(word >> 4) - (axis == 0), y = (int32_t)(word >> 2 & 3) - (axis == 1),
                z = (int32_t)(word & 3) - (axis == 2);
        uint32_t before = vxk_esdf_chunk_at(a, c, x * 4, y * 4, z * 4);
        if (before != VXK_NONE)
            vxk_atomic_or64(&a->dirty[before << 6 | (uint32_t)((x & 3) << 4 | (y & 3) << 2 | (z & 3))],
                            last[axis]);
    }
}

/* True when a free tile lies before a cell that has a record. */
VXK_FN int vxk_esdf_tile_before(const struct vxk_esdf_args *a, uint32_t place)
{
    struct vxk_records r;
    vxk_esdf_records(a, place, &r);
    return r.x < VXK_FREE_TILE || r.y < VXK_FREE_TILE || r.z < VXK_FREE_TILE;
}
/* Lists the dirty cells that may own sites or have a leaf.  Element: chunk i >> 6, word i & 63. */
#define vxk_esdf_list_dirty_args vxk_esdf_args
VXK_FN void vxk_esdf_list_dirty(const struct vxk_esdf_args *a, uint32_t i)
{
    const struct vxk_chunk *v = vxk_esdf_chunk(a, i >> 6);
    uint64_t left = a->dirty[i], keep = 0, tile = 0;
    uint32_t n;
    if (!left)
        return;
    if (v) {
        keep = left & v->word[i & 63].leaf;
        tile = a->samples.occupancy ? v->word[i & 63].tile : 0;
    }
    for (left &= ~keep; left; left &= left - 1) {
        uint32_t cell = vxk_ctz64(left), place = i << 6 | cell;
        if (a->table[place] != VXK_NONE || ((tile >> cell & 1) && vxk_esdf_tile_before(a, place)))
            keep |= 1ull << cell;
    }
    n = keep ? vxk_atomic_add32(&a->n->n_dirty, vxk_popc64(keep)) : 0;
    for (; keep; keep &= keep - 1, n++)
        if (n < a->room)
            a->cell[n] = i << 6 | vxk_ctz64(keep);
}

/* Where the dirty cells' values are.  Element: a dirty cell. */
#define vxk_esdf_look_args vxk_esdf_args
VXK_FN void vxk_esdf_look(const struct vxk_esdf_args *a, uint32_t i)
{
    vxk_esdf_records(a, a->cell[i], &a->cell_records[i]);
    a->fresh[i].hash = a->fresh[i].span = 0;
}

/* What the row's sites span: for each axis the set of coordinates (0 .. 8) that an edge with a site touches,
 * 10 bits an axis, and the families from bit 32 on. */
VXK_FN uint64_t vxk_esdf_span(const struct vxk_row_sites *s, uint32_t row)
{
    uint32_t x = row >> 3, y = row & 7, fx = (s->x ? 3u : 1u) << x, fy = (s->y ? 3u : 1u) << y,
             fz = s->x | s->y | s->z | s->z << 1;
    return (uint64_t)fx | (uint64_t)fy << 10 | (uint64_t)fz << 20 |
           (uint64_t)((s->x ? VXK_ESDF_X : 0) | (s->y ? VXK_ESDF_Y : 0) | (s->z ? VXK_ESDF_Z : 0)) << 32;
}
/* The places of a row's sites of one family as a number that hardly another row has. */
VXK_FN uint64_t vxk_esdf_row_hash(uint32_t sites, const uint8_t f[8], uint32_t which)
{
    uint64_t bytes = 0;
    for (uint32_t z = 0; z < 8; z++)
        bytes |= (uint64_t)(sites >> z & 1 ? f[z] : 0u) << (8 * z);
    return bytes ? vxk_mix64(bytes + vxk_mix64(which + 1)) : 0;
}
/* Marks of the dirty cells' sites.  Element: dirty cell i >> 6, row i & 63. */
#define vxk_esdf_derive_args vxk_esdf_args
VXK_FN void vxk_esdf_derive(const struct vxk_esdf_args *a, uint32_t i)
{
    struct vxk_esdf_mark *out = &a->fresh[i >> 6];
    struct vxk_row_sites s;
    uint32_t row = i & 63;
    vxk_row_find_sites(&a->samples, &a->cell_records[i >> 6], row, &s);
    if (!(s.x | s.y | s.z))
        return;
    vxk_atomic_add64(&out->hash, vxk_esdf_row_hash(s.x, s.fx, row) + vxk_esdf_row_hash(s.y, s.fy, 64 | row) +
                                     vxk_esdf_row_hash(s.z, s.fz, 128 | row));
    vxk_atomic_or64(&out->span, vxk_esdf_span(&s, row));
}

/* Lists the cells whose sites changed, and those of which only states may have.  Element: a dirty cell. */
#define vxk_esdf_compare_args vxk_esdf_args
VXK_FN void vxk_esdf_compare(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->cell[i], leaf = a->table[place];
    struct vxk_esdf_mark old, now = a->fresh[i];
    old.hash = old.span = 0;
    if (leaf != VXK_NONE)
        old = *vxk_esdf_mark_of(a->pages, leaf);
    if (old.hash != now.hash || old.span != now.span) {
        uint32_t n = vxk_atomic_add32(&a->n->n_changed, 1);
        a->changed[n] = i;
        a->reached[n] = old.span | now.span;
    } else if (leaf != VXK_NONE && a->touched[place >> 6]) {
        a->state[vxk_atomic_add32(&a->n->n_state, 1)] = place;
    }
}

/* Voxels between span and [from, to] along an axis: 0 when they meet. */
VXK_FN int32_t vxk_span_gap(uint64_t span, uint32_t axis, int32_t from, int32_t to)
{
    uint32_t b = (uint32_t)(span >> (10 * axis)) & 1023;
    int32_t lo = (int32_t)vxk_ctz32(b), hi = 31 - (int32_t)vxk_clz32(b);
    return vxk_maxi(vxk_maxi(from - hi, lo - to), 0);
}
/* Makes the chunks that changed sites reach.  Element: a changed cell. */
#define vxk_esdf_spread_args vxk_esdf_args
VXK_FN void vxk_esdf_spread(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->cell[a->changed[i]];
    uint64_t span = a->reached[i], key;
    int32_t x, y, z, kx, ky, kz, r = (int32_t)a->reach, r2 = (int32_t)(a->radius * a->radius);
    vxk_place_xyz(place & 4095, &x, &y, &z);
    if (x >= r && y >= r && z >= r && x + r < 16 && y + r < 16 && z + r < 16)
        return;
    vxk_key_xyz(a->chunk_key[place >> 12], &kx, &ky, &kz);
    for (int32_t X = (x - r) >> 4; X <= (x + r) >> 4; X++)
        for (int32_t Y = (y - r) >> 4; Y <= (y + r) >> 4; Y++)
            for (int32_t Z = (z - r) >> 4; Z <= (z + r) >> 4; Z++) {
                /* The chunk's voxels, seen from the cell's first. */
                int32_t gx = vxk_span_gap(span, 0, X * 128 - x * 8, X * 128 - x * 8 + 127);
                int32_t gy = vxk_span_gap(span, 1, Y * 128 - y * 8, Y * 128 - y * 8 + 127);
                int32_t gz = vxk_span_gap(span, 2, Z * 128 - z * 8, Z * 128 - z * 8 + 127);
                if ((X || Y || Z) && gx * gx + gy * gy + gz * gz <= r2 &&
                    vxk_cell_key((kx + X) * 16, (ky + Y) * 16, (kz + Z) * 16, &key))
                    vxk_esdf_insert(a, key);
            }
}

/* Marks the leaves that a changed cell's sites, old or new, reach.  Element: changed cell i / n, x offset i %
 * n - reach; n = 2 reach + 1. */
#define vxk_esdf_mark_out_args vxk_esdf_args
VXK_FN void vxk_esdf_mark_out(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t n_x = 2 * a->reach + 1, e = i / n_x, place = a->cell[a->changed[e]];
    uint64_t span = a->reached[e];
    int32_t dx = (int32_t)(i % n_x) - (int32_t)a->reach, r = (int32_t)a->reach,
            r2 = (int32_t)(a->radius * a->radius);
    int32_t x, y, z, gx = vxk_span_gap(span, 0, dx * 8, dx * 8 + 7);
    if (gx * gx > r2)
        return;
    vxk_place_xyz(place & 4095, &x, &y, &z);
    for (int32_t dy = -r; dy <= r; dy++) {
        int32_t gy = vxk_span_gap(span, 1, dy * 8, dy * 8 + 7);
        if (gx * gx + gy * gy > r2)
            continue;
        for (int32_t dz = -r; dz <= r; dz++) {
            int32_t gz = vxk_span_gap(span, 2, dz * 8, dz * 8 + 7);
            uint32_t c, at;
            if (gx * gx + gy * gy + gz * gz > r2)
                continue;
            c = vxk_esdf_chunk_at(a, place >> 12, x + dx, y + dy, z + dz);
            if (c == VXK_NONE)
                continue; /* outside the voxel range */
            at = c << 12 | vxk_place(x + dx, y + dy, z + dz);
            if (!(vxk_load64(&a->out[at >> 6]) >> (at & 63) & 1))
                vxk_atomic_or64(&a->out[at >> 6], 1ull << (at & 63));
        }
    }
}

/* Counts the marked leaves and those of them that are new.  Element: chunk i >> 6, word i & 63. */
#define vxk_esdf_count_out_args vxk_esdf_args
VXK_FN void vxk_esdf_count_out(const struct vxk_esdf_args *a, uint32_t i)
{
    uint64_t left = a->out[i];
    uint32_t n_new = 0;
    if (!left)
        return;
    vxk_atomic_add32(&a->n->n_out, vxk_popc64(left));
    for (; left; left &= left - 1)
        n_new += a->table[i << 6 | vxk_ctz64(left)] == VXK_NONE;
    if (n_new)
        vxk_atomic_add32(&a->n->n_new, n_new);
}
/* Lists them and gives the new ones a number.  Element: chunk i >> 6, word i & 63. */
#define vxk_esdf_list_out_args vxk_esdf_args
VXK_FN void vxk_esdf_list_out(const struct vxk_esdf_args *a, uint32_t i)
{
    uint64_t left = a->out[i];
    uint32_t at = left ? vxk_atomic_add32(&a->n->n_listed, vxk_popc64(left)) : 0;
    for (; left; left &= left - 1) {
        uint32_t place = i << 6 | vxk_ctz64(left);
        a->all_out[at++] = place;
        if (a->table[place] == VXK_NONE) {
            uint32_t k = vxk_atomic_add32(&a->n->n_taken, 1),
                     leaf = k < a->n_free ? a->free_leaf[a->n_free - 1 - k] : a->n_numbers + (k - a->n_free);
            struct vxk_esdf_mark *mark = vxk_esdf_mark_of(a->pages, leaf);
            mark->hash = mark->span = 0;
            *vxk_esdf_place_of(a->pages, leaf) = place;
            a->table[place] = leaf;
        }
    }
}
/* The leaves' new marks.  Element: a changed cell. */
#define vxk_esdf_keep_args vxk_esdf_args
VXK_FN void vxk_esdf_keep(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t e = a->changed[i];
    *vxk_esdf_mark_of(a->pages, a->table[a->cell[e]]) = a->fresh[e];
}

/* Rewrites the states of a row and nothing else; leaves that are computed anyway are left out.  Element:
 * entry of state i >> 6, row i & 63. */
#define vxk_esdf_restate_args vxk_esdf_args
VXK_FN uint32_t vxk_esdf_row_states(const struct vxk_esdf_args *a, uint32_t record, uint32_t row,
                                    uint32_t *occupied)
{
    uint32_t valid, seen = 0;
    int32_t t[8];
    if (record == VXK_FREE_TILE)
        seen = 255;
    else if (record != VXK_NONE)
        seen = (uint32_t)(a->samples.grid.leaves[record].free[row >> 3] >> ((row & 7) << 3)) & 255;
    valid = vxk_row(&a->samples, record, row, t, occupied);
    return valid | seen; /* those that are not occupied are free */
}
VXK_FN uint32_t vxk_esdf_state(uint32_t known, uint32_t occupied, uint32_t z)
{
    return occupied >> z & 1 ? VXK_STATE_OCCUPIED : known >> z & 1 ? VXK_STATE_FREE : VXK_STATE_UNKNOWN;
}
VXK_FN void vxk_esdf_restate(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t place = a->state[i >> 6], row = i & 63, known, occupied;
    uint16_t *out;
    if (a->out[place >> 6] >> (place & 63) & 1)
        return;
    known = vxk_esdf_row_states(a, vxk_esdf_record(a, place), row, &occupied);
    out = vxk_esdf_voxels(a->pages, a->table[place]) + row * 8;
    for (uint32_t z = 0; z < 8; z++)
        out[z] = (uint16_t)(vxk_esdf_state(known, occupied, z) << 14 | (out[z] & VXK_ESDF_FAR));
}

/*
 * Leaves with numbers past the count of those in use move into the free numbers below it, so that a field has
 * no holes.
 */
/* Element: a free number. */
#define vxk_esdf_holes_args vxk_esdf_args
VXK_FN void vxk_esdf_holes(const struct vxk_esdf_args *a, uint32_t i)
{
    if (a->free_leaf[i] < a->n_leaves)
        a->holes[vxk_atomic_add32(&a->n->n_holes, 1)] = a->free_leaf[i];
}
/* Element: a number from n_leaves on. */
#define vxk_esdf_movers_args vxk_esdf_args
VXK_FN void vxk_esdf_movers(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t leaf = a->n_leaves + i;
    if (*vxk_esdf_place_of(a->pages, leaf) != VXK_NONE)
        a->movers[vxk_atomic_add32(&a->n->n_movers, 1)] = leaf;
}
/* Element: mover i >> 6, row i & 63. */
#define vxk_esdf_move_args vxk_esdf_args
VXK_FN void vxk_esdf_move(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t from = a->movers[i >> 6], to = a->holes[i >> 6], row = i & 63;
    const uint16_t *in = vxk_esdf_voxels(a->pages, from) + row * 8;
    uint16_t *out = vxk_esdf_voxels(a->pages, to) + row * 8;
    for (uint32_t z = 0; z < 8; z++)
        out[z] = in[z];
    if (row == 0) {
        uint32_t place = *vxk_esdf_place_of(a->pages, from);
        *vxk_esdf_mark_of(a->pages, to) = *vxk_esdf_mark_of(a->pages, from);
        *vxk_esdf_place_of(a->pages, to) = place;
        a->table[place] = to;
    }
}

/* Puts the chunks of a field into its larger table.  Element: a chunk. */
#define vxk_esdf_rehash_args vxk_esdf_args
VXK_FN void vxk_esdf_rehash(const struct vxk_esdf_args *a, uint32_t i)
{
    int inserted;
    uint32_t slot = vxk_hash_insert(a->keys, a->slot_mask, a->chunk_key[i], &inserted);
    if (slot != VXK_NONE)
        a->index[slot] = i;
}

/* Sum of hashes of everything that the field stores, whatever its numbers are.  Element: leaf number i >> 6,
 * row i & 63. */
#define vxk_esdf_digest_args vxk_esdf_args
VXK_FN void vxk_esdf_digest(const struct vxk_esdf_args *a, uint32_t i)
{
    uint32_t leaf = i >> 6, row = i & 63, place = *vxk_esdf_place_of(a->pages, leaf);
    const uint16_t *in = vxk_esdf_voxels(a->pages, leaf) + row * 8;
    uint64_t half[2] = {0, 0};
    if (place == VXK_NONE)
        return;
    for (uint32_t z = 0; z < 8; z++)
        half[z >> 2] |= (uint64_t)in[z] << (16 * (z & 3));
    vxk_atomic_add64(a->digest,
                     vxk_mix64(vxk_mix64(a->chunk_key[place >> 12] + (uint64_t)(place & 4095) * 64 + row) +
                               vxk_mix64(half[0] + vxk_mix64(half[1]))));
}

#endif
