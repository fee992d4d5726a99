/*
 * tuned_cell.h - LiDAR frames: new masks of work cells and new values of leaves, a plane of 64 voxels in a
 * word.
 *
 * What a frame says about a leaf are two masks (frame_lidar.h), so rows of eight have nothing to say.  Decay,
 * and the values of occupancy maps, are left to the bodies.
 */
#ifndef VXK_CPU_TUNED_CELL_H
#define VXK_CPU_TUNED_CELL_H

#include "lanes.h"

/* Is a leaf's word left to the bodies? */
VXK_FN int vxk_cell_plain(const struct vxk_frame_args *a, const struct vxk_frame_word *fw)
{
    return a->f.sensor != VXK_SENSOR_LIDAR ||
           (fw->flags & (VXK_WORD_STALE | VXK_WORD_UNFREE | VXK_WORD_QUIET)) != 0;
}

/* What the frame says about plane x of a leaf. */
VXK_FN void vxk_plane_masks(const struct vxk_frame_args *a, const struct vxk_view *v, uint32_t x,
                            uint64_t *band, uint64_t *freed)
{
    *band = v->hit < a->s.room_touch_leaf ? a->s.hit_mask[(uint64_t)v->hit * 8 + x] : 0;
    *freed = v->clear ? v->clear[x] & ~*band : 0;
}

VXK_FN void vxk_cell_masks(const struct vxk_frame_args *a, uint32_t i)
{
    const uint32_t cell = a->s.work[i] & 63;
    const struct vxk_frame_word *fw = &a->s.word[a->s.work[i] >> 6];
    const struct vxk_view view = vxk_view_cell(a, fw, cell, i);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    const struct vxk_obs through = vxk_obs_lidar(a, VXK_OBS_FREE, view.hit, 0);
    uint32_t n_active = 0, n_free = 0, changed = 0;
    for (uint32_t x = 0; x < 8; x++) {
        const uint64_t was_active = old ? old->active[x] : 0, was_free = old    ? old->free[x]
                                                                         : tile ? ~0ull
                                                                                : 0;
        uint64_t band, freed, cleared = 0, active, free_now;
        uint32_t seen;
        vxk_plane_masks(a, &view, x, &band, &freed);
        for (uint64_t m = freed & was_active; m; m &= m - 1) {
            uint32_t n = x << 6 | vxk_ctz64(m);
            int gone;
            vxk_merge(&a->f, VXK_ACTIVE, a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))],
                      &through, &gone);
            cleared |= (uint64_t)(uint32_t)gone << (n & 63);
        }
        active = (was_active | band) & ~cleared;
        free_now = ((was_free | (freed & ~was_active)) & ~band) | cleared;
        seen = active != was_active || free_now != was_free || ((band | freed) & was_active);
        a->s.active[i * 8 + x] = active;
        a->s.free[i * 8 + x] = free_now;
        a->s.seen[i * 8 + x] = (uint8_t)seen;
        n_active += vxk_popc64(active);
        n_free += vxk_popc64(free_now);
        changed |= seen;
    }
    a->s.sum[i] = n_active | n_free << 10 | changed << 20;
}

static void vxk_cpu_frame_cell(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    for (uint32_t i = begin; i < end; i++) {
        if (vxk_cell_plain(&a, &a.s.word[a.s.work[i] >> 6]))
            vxk_frame_cell(&a, i);
        else
            vxk_cell_masks(&a, i);
    }
}

/* A leaf's values, and what is observed of some of them. */
struct vxk_leaf_values {
    uint32_t was[512], now[512]; /* in the order of its active voxels */
    uint16_t hit[512 + 8];       /* places in `now` of those that rays hit, */
    uint64_t sum[512 + 8];       /* and what they observed */
    uint32_t n_hit;
};

VXK_FN_WOVEN void vxk_copy_some(uint32_t *to, const uint32_t *from, uint32_t n)
{
    uint32_t k = 0;
    for (; k + 8 <= n; k += 8)
        vxk_copy8(to + k, from + k);
    for (; k < n; k++)
        to[k] = from[k];
}
/* The first n values of a leaf, from its pages or into them. */
VXK_FN void vxk_values_from(const uint32_t *values, const struct vxk_leaf *l, uint32_t n, uint32_t *to)
{
    for (uint32_t k = 0; k < n;) {
        uint32_t run = vxk_minu(n - k, VXK_VALUES_A_PAGE - ((l->first + k) & 255));
        vxk_copy_some(to + k, values + vxk_leaf_value_index(l, k), run);
        k += run;
    }
}
VXK_FN void vxk_values_into(uint32_t *values, const struct vxk_leaf *l, uint32_t n, const uint32_t *from)
{
    for (uint32_t k = 0; k < n;) {
        uint32_t run = vxk_minu(n - k, VXK_VALUES_A_PAGE - ((l->first + k) & 255));
        vxk_copy_some(values + vxk_leaf_value_index(l, k), from + k, run);
        k += run;
    }
}

/* Eight voxels' values after what rays observed of them (vxk_hit_mean, vxk_tsdf_observe). */
VXK_FN_WOVEN void vxk_hit8(struct vxk_leaf_values *v, uint32_t at)
{
    uint32_t old[8], out[8];
    int32_t count[8], low[8];
    vxk_i8 n, sum, m, mean, weight, t, w, front, more, negative;
    vxk_d4 d[2], c[2];
    for (int k = 0; k < 8; k++) {
        old[k] = v->now[v->hit[at + (uint32_t)k]];
        count[k] = (int32_t)(v->sum[at + (uint32_t)k] >> 40);
        low[k] = (int32_t)(uint32_t)v->sum[at + (uint32_t)k];
    }
    __builtin_memcpy(&n, count, sizeof n);
    __builtin_memcpy(&sum, low, sizeof sum);
    sum = sum - (n << 15);
    negative = sum >> 31;
    m = ((sum ^ negative) - negative) + (n >> 1);
    for (int h = 0; h < 2;
         h++) { /* whole numbers below 2^31: the quotient is never rounded to the next one */
        vxk_i4 part[2];
        __builtin_memcpy(&part[0], (const char *)&m + 16 * h, sizeof part[0]);
        __builtin_memcpy(&part[1], (const char *)&n + 16 * h, sizeof part[1]);
        d[h] = __builtin_convertvector(part[0], vxk_d4);
        c[h] = __builtin_convertvector(part[1], vxk_d4);
        part[0] = __builtin_convertvector(d[h] / c[h], vxk_i4);
        __builtin_memcpy((char *)&mean + 16 * h, &part[0], sizeof part[0]);
    }
    mean = (mean ^ negative) - negative;
    weight = (vxk_i8)vxk_where8((vxk_m8)(n > 255), (vxk_f8)((n & 0) + 255), (vxk_f8)n);
    __builtin_memcpy(&t, old, sizeof t);
    w = t >> 16 & 255;
    front = t >> 24 & 255;
    t = t << 16 >> 16;
    more = w + weight;
    t = vxk_rint8(__builtin_convertvector(t * w + mean * weight, vxk_f8) /
                  __builtin_convertvector(more, vxk_f8));
    more = (vxk_i8)vxk_where8((vxk_m8)(more > 255), (vxk_f8)((n & 0) + 255), (vxk_f8)more);
    negative = (vxk_i8)(mean < 0);
    front = front + ((negative & -4 * weight) | (~negative & 2 * weight));
    front = front & (vxk_i8)(front > 0);
    front = (vxk_i8)vxk_where8((vxk_m8)(front > 255), (vxk_f8)((n & 0) + 255), (vxk_f8)front);
    vxk_store_bits8(out, (vxk_m8)((t & 0xffff) | more << 16 | front << 24));
    for (int k = 0; k < 8; k++)
        v->now[v->hit[at + (uint32_t)k]] = out[k];
}

/* Values of all voxels that rays hit. */
VXK_FN void vxk_hits_merge(const struct vxk_frame_args *a, struct vxk_leaf_values *v)
{
    uint32_t k = 0;
    uint64_t most = 0;
    for (uint32_t j = 0; j < v->n_hit; j++)
        most = most > v->sum[j] ? most : v->sum[j];
    if (!(most >> 56)) /* fewer than 2^16 rays a voxel */
        for (; k + 8 <= v->n_hit; k += 8)
            vxk_hit8(v, k);
    for (; k < v->n_hit; k++) {
        uint32_t *value = &v->now[v->hit[k]];
        struct vxk_obs o;
        int gone;
        o.what = VXK_OBS_BAND;
        o.q = vxk_hit_mean(v->sum[k], &o.weight);
        o.weight = vxk_mini(o.weight, 255);
        *value = vxk_merge(&a->f, VXK_ACTIVE, *value, &o, &gone); /* without a value: 0 */
    }
}

/* Plane x of a leaf in which something happens; rank: active voxels before it.  Collects its hits. */
VXK_FN void vxk_plane_values(const struct vxk_frame_args *a, const struct vxk_view *view,
                             const struct vxk_leaf *now, const struct vxk_leaf *old, uint32_t x,
                             uint32_t rank, struct vxk_leaf_values *v)
{
    const uint64_t active = now->active[x], was = old ? old->active[x] : 0;
    const uint32_t from = was ? vxk_leaf_rank(old, x << 6) : 0;
    uint64_t band, freed;
    vxk_plane_masks(a, view, x, &band, &freed);
    if (active == was) {
        vxk_copy_some(&v->now[rank], &v->was[from], vxk_popc64(active));
    } else {
        uint32_t at = rank;
        for (uint64_t m = active; m; m &= m - 1) {
            const uint64_t bit = m & -m;
            v->now[at++] = was & bit ? v->was[from + vxk_popc64(was & (bit - 1))] : 0;
        }
    }
    if (band) {
        uint64_t place =
            a->s.hit_base[view->hit] + (x ? a->s.hit_prefix[view->hit] >> (9 * (x - 1)) & 511 : 0);
        for (uint64_t m = band; m; m &= m - 1, place++) {
            v->hit[v->n_hit] = (uint16_t)(rank + vxk_popc64(active & ((m & -m) - 1)));
            v->sum[v->n_hit] = place < a->s.room_hit ? a->s.acc[place] : 1ull << 40 | 32768;
            v->n_hit++;
        }
    }
    for (uint64_t m = freed & was & active; m; m &= m - 1) {
        uint32_t *value = &v->now[rank + vxk_popc64(active & ((m & -m) - 1))];
        struct vxk_obs o = vxk_obs_lidar(a, VXK_OBS_FREE, view->hit, 0);
        int gone;
        *value = vxk_merge(&a->f, VXK_ACTIVE, *value, &o, &gone);
    }
}

VXK_FN void vxk_leaf_values_of(const struct vxk_frame_args *a, uint32_t i, struct vxk_leaf_values *v)
{
    const uint32_t where = a->s.record[i], cell = where & 63, first = a->s.value_of[where];
    const uint32_t work = a->s.code[where] == VXK_CELL_WORK ? a->s.work_of[where] : VXK_NONE;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_leaf *l = vxk_new_leaf(a, fw, cell);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    const uint64_t *active = work != VXK_NONE ? &a->s.active[work * 8] : old->active,
                   *free_now = work != VXK_NONE ? &a->s.free[work * 8] : old->free;
    struct vxk_view view;
    vxk_leaf_masks(a, fw, first, active, free_now, l);
    if (!l->n_active)
        return;
    if (old)
        vxk_values_from(a->g.values, old, old->n_active, v->was);
    if (work == VXK_NONE) {
        vxk_values_into(a->values, l, l->n_active, v->was);
        return;
    }
    v->n_hit = 0;
    view = vxk_view_cell(a, fw, cell, work);
    for (uint32_t x = 0, rank = 0; x < 8; x++) {
        const uint32_t more = vxk_popc64(l->active[x]);
        if (a->s.seen[work * 8 + x])
            vxk_plane_values(a, &view, l, old, x, rank, v);
        else if (more)
            vxk_copy_some(&v->now[rank], &v->was[vxk_leaf_rank(old, x << 6)], more);
        rank += more;
    }
    vxk_hits_merge(a, v);
    vxk_values_into(a->values, l, l->n_active, v->now);
}

static void vxk_cpu_frame_leaf(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    struct vxk_leaf_values v;
    for (uint32_t i = begin; i < end; i++) {
        if (a.f.mode != 0 || vxk_cell_plain(&a, &a.s.word[a.s.record[i] >> 6]))
            vxk_frame_leaf(&a, i);
        else
            vxk_leaf_values_of(&a, i, &v);
    }
}

#endif
