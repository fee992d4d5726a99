/*
 * tuned_band.h - what LiDAR rays leave in the voxels of their bands, in one walk.
 *
 * The bodies walk every band three times (touched cells, hit voxels, sums), because a GPU must know how much
 * there is before it can add up side by side.  Here eight rays walk at once, and write down what they observe
 * cell by cell; then each touched cell adds up its own, so that nothing but lists is shared.  Cells, masks
 * and sums are those of the bodies.
 */
#ifndef VXK_CPU_TUNED_BAND_H
#define VXK_CPU_TUNED_BAND_H

#include "lanes.h"

/* Voxels that the longest band meets (truncation 16 voxels: 32 sqrt(3) + 4), with some to spare. */
enum { VXK_BAND_STEPS = 64 };
/* Observations that a thread keeps for a cell, and cells for which it keeps some, before it writes them to
 * the lists; places of the lists that it takes at a time. */
enum { VXK_BAND_KEPT = 126, VXK_BAND_CELLS = 64, VXK_BAND_TAKE = 1024, VXK_BAND_TAKE_GROUPS = 16 };

struct vxk_band_cell {
    uint32_t key; /* vxk_band_key */
    uint32_t n;
    uint32_t item[VXK_BAND_KEPT];
};

/* What a thread keeps of a range of rays. */
struct vxk_band_store {
    const struct vxk_frame_args *a;
    int32_t chunk[3]; /* of the last cell that was written */
    uint32_t slot;
    uint32_t at, at_end, group, group_end; /* places that were taken */
    struct vxk_band_cell cell[VXK_BAND_CELLS];
};

/* Cells within 8192 voxels of the sensor's chunk along x and y and 4096 along z as one number. */
#define VXK_BAND_REACH 4000.0f
VXK_FN int vxk_band_fits(const struct vxk_frame_args *a)
{
    return a->s.band && a->f.max_d + a->f.trunc + a->f.skew_reach < VXK_BAND_REACH - 128.0f &&
           a->f.trunc <= 16.0f;
}

/* The slot of a cell's chunk in the frame's table of touched chunks, with the cell marked; VXK_NONE: full. */
VXK_FN uint32_t vxk_band_touch(struct vxk_band_store *s, int32_t x, int32_t y, int32_t z, uint32_t *word,
                               uint32_t *cell)
{
    const struct vxk_frame_args *a = s->a;
    uint64_t *m, bit;
    if (x >> 4 != s->chunk[0] || y >> 4 != s->chunk[1] || z >> 4 != s->chunk[2]) {
        int inserted;
        s->chunk[0] = x >> 4;
        s->chunk[1] = y >> 4;
        s->chunk[2] = z >> 4;
        s->slot = vxk_hash_insert(
            a->s.touch_key, a->s.touch_slots - 1,
            vxk_key(a->f.oc[0] + s->chunk[0], a->f.oc[1] + s->chunk[1], a->f.oc[2] + s->chunk[2]), &inserted);
        if (inserted)
            vxk_atomic_add32(&a->s.c->n_touch_chunk, 1);
        if (s->slot == VXK_NONE)
            vxk_atomic_or32(&a->s.c->table_full, 1);
    }
    if (s->slot == VXK_NONE)
        return VXK_NONE;
    *word = (uint32_t)(x >> 2 & 3) << 4 | (uint32_t)(y >> 2 & 3) << 2 | (uint32_t)(z >> 2 & 3);
    *cell = (uint32_t)(x & 3) << 4 | (uint32_t)(y & 3) << 2 | (uint32_t)(z & 3);
    m = &a->s.touch_mask[(uint64_t)s->slot * 64 + *word];
    bit = 1ull << *cell;
    if (!(vxk_peek64(m) & bit))
        vxk_atomic_or64(m, bit);
    return s->slot;
}

/* Writes what is kept for a cell to the lists. */
static void vxk_band_write(struct vxk_band_store *s, struct vxk_band_cell *c)
{
    const struct vxk_frame_args *a = s->a;
    uint32_t n = c->n, word, cell, slot;
    c->n = 0;
    slot = vxk_band_touch(s, (int32_t)c->key >> 21, (int32_t)(c->key << 11) >> 21,
                          (int32_t)(c->key << 22) >> 22, &word, &cell);
    if (slot == VXK_NONE)
        return;
    if (s->at_end - s->at < n) {
        s->at = vxk_atomic_add32(&a->s.c->n_band, VXK_BAND_TAKE);
        s->at_end = s->at + VXK_BAND_TAKE;
    }
    if (s->group == s->group_end) {
        s->group = vxk_atomic_add32(&a->s.c->n_group, VXK_BAND_TAKE_GROUPS);
        s->group_end = s->group + VXK_BAND_TAKE_GROUPS;
    }
    if (s->at_end <= a->s.room_band && s->group_end <= a->s.room_group) {
        struct vxk_band_group *g = &a->s.group[s->group];
        g->first = s->at;
        g->n = n;
        g->word = slot << 6 | word;
        g->cell = cell;
        __builtin_memcpy(&a->s.band[s->at], c->item, n * sizeof *c->item);
    }
    s->at += n;
    s->group++;
}

/* Writes all that is kept; groups that were taken and are not needed hold nothing. */
VXK_FN void vxk_band_end(struct vxk_band_store *s)
{
    for (uint32_t k = 0; k < VXK_BAND_CELLS; k++)
        if (s->cell[k].n)
            vxk_band_write(s, &s->cell[k]);
    for (; s->group < s->group_end; s->group++)
        if (s->group < s->a->s.room_group)
            s->a->s.group[s->group].n = 0;
}

/* Where observations of a cell are kept; there is room for those of one ray. */
VXK_FN_WOVEN struct vxk_band_cell *vxk_band_place(struct vxk_band_store *s, uint32_t key)
{
    struct vxk_band_cell *c = &s->cell[key * 2654435761u >> 26];
    if (c->key != key || c->n > VXK_BAND_KEPT - 32) {
        if (c->n)
            vxk_band_write(s, c);
        c->key = key;
    }
    return c;
}

/* Eight rays on their way. */
struct vxk_band_walk8 {
    vxk_d4 o[3][2], rate[3][2];
    vxk_d4 plane[3][2];  /* that each will cross next on an axis, */
    vxk_d4 t[3][2];      /* where; */
    vxk_d4 step[3][2];   /* 1 or -1 */
    vxk_d4 behind[3][2]; /* from the plane to the voxel in front of it */
    vxk_d4 end[2];
    vxk_f8 from[3], n[3], off; /* of the observation: origin, normal, distance of the surface */
};

/* What one step of eight rays observed, and in which cells. */
struct vxk_band_step {
    uint32_t item[8], key[8];
};

/* The voxel that a ray's band begins with, along one axis; *wrong: lanes where the planes beside it, which
 * have the last word, say otherwise. */
VXK_FN_WOVEN vxk_d4 vxk_band_begin(vxk_d4 o, vxk_d4 rate, vxk_l4 moves, vxk_l4 up, vxk_d4 d, vxk_d4 t0,
                                   vxk_l4 *wrong)
{
    const vxk_d4 one = vxk_all4(1.0), x = o + d * t0;
    vxk_d4 i = __builtin_convertvector(__builtin_convertvector(x, vxk_i4), vxk_d4), here, next;
    i = i - vxk_keep4((vxk_l4)(i > x), one);
    here = (i - o) * rate;
    next = ((i + one) - o) * rate;
    *wrong = moves & ~((up & (vxk_l4)(here <= t0) & (vxk_l4)(next > t0)) |
                       (~up & (vxk_l4)(next < t0) & (vxk_l4)(here >= t0)));
    return i;
}
/* Puts such lanes right. */
static __attribute__((noinline)) void vxk_band_locate(struct vxk_band_walk8 *w, const vxk_d4 t0[2],
                                                      const vxk_l4 wrong[3][2], const vxk_d4 d[3][2],
                                                      vxk_d4 at[3][2])
{
    for (int k = 0; k < 24; k++) {
        const int m = k >> 3, h = k >> 2 & 1, lane = k & 3;
        struct vxk_dda axis;
        if (!wrong[m][h][lane])
            continue;
        axis.t = t0[h][lane];
        axis.o[0] = w->o[m][h][lane];
        axis.d[0] = d[m][h][lane];
        axis.rate[0] = w->rate[m][h][lane];
        at[m][h][lane] = (double)vxk_dda_locate(&axis, 0, -(1 << 29), (1 << 29) - 1, axis.d[0] > 0.0);
    }
}

/* Begins the bands of rays i .. i + n - 1 (n <= 8); 0: none has one.  The other lanes stand still. */
VXK_FN_WOVEN int vxk_band_walk_begin8(struct vxk_band_walk8 *w, const struct vxk_frame_args *a, uint32_t i,
                                      uint32_t n, vxk_m8 *on, vxk_d4 at[3][2])
{
    const vxk_d4 none = vxk_all4(1e300), one = vxk_all4(1.0);
    const float half = a->f.mode == 0 ? a->f.trunc : 0.0f;
    const float *ray[8];
    float origin[3][8];
    vxk_f8 c[8], t0, t1;
    vxk_d4 begin[2], d[3][2];
    vxk_l4 wrong[3][2], any = (vxk_l4)vxk_all4(0.0);
    for (uint32_t k = 0; k < 8; k++)
        ray[k] = a->s.ray[i + (k < n ? k : n - 1)].d;
    vxk_columns8(ray, c);
    *on = vxk_less8(vxk_all8(0.0f), c[3]) & vxk_less8(c[3], vxk_all8(VXK_D_OPEN)) & vxk_first8(n);
    if (!vxk_some8(*on))
        return 0;
    for (uint32_t m = 0; m < 3; m++) {
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t r = i + (k < n ? k : n - 1);
            origin[m][k] = a->f.t[m];
            if (a->s.skew.on)
                origin[m][k] += a->s.skew.origin[3 * (uint64_t)r + m];
        }
        w->from[m] = vxk_load8(origin[m]);
        w->n[m] = c[4 + m];
    }
    w->off = c[3] * c[7];
    t0 = vxk_max8(c[3] - vxk_all8(half), vxk_all8(0.0f));
    t1 = vxk_where8(*on, c[3] + vxk_all8(half), vxk_all8(-1e30f));
    vxk_widen8(vxk_keep8(*on, t0), begin);
    vxk_widen8(t1, w->end);
    for (int m = 0; m < 3; m++) {
        vxk_widen8(w->from[m], w->o[m]);
        vxk_widen8(c[m], d[m]);
        for (int h = 0; h < 2; h++) {
            const vxk_l4 moves = (vxk_l4)(d[m][h] > vxk_all4(1e-30)) | (vxk_l4)(d[m][h] < vxk_all4(-1e-30)),
                         up = (vxk_l4)(d[m][h] > vxk_all4(0.0));
            d[m][h] = vxk_keep4(moves, d[m][h]);
            w->rate[m][h] = one / vxk_where4(moves, d[m][h], none);
            at[m][h] = vxk_band_begin(w->o[m][h], w->rate[m][h], moves, up, d[m][h], begin[h], &wrong[m][h]);
            any |= wrong[m][h];
            /* what stands still does so in front of a plane that it never reaches */
            w->rate[m][h] = vxk_where4(moves, w->rate[m][h], none);
            w->step[m][h] = vxk_where4(up, one, -one);
            w->behind[m][h] = vxk_keep4(up | ~moves, one);
        }
    }
    if (vxk_some4(any))
        vxk_band_locate(w, begin, wrong, d, at);
    for (int m = 0; m < 3; m++) {
        for (int h = 0; h < 2; h++) {
            w->plane[m][h] = at[m][h] + w->behind[m][h];
            w->t[m][h] = (w->plane[m][h] - w->o[m][h]) * w->rate[m][h];
        }
    }
    return 1;
}

/* To the next voxels (vxk_dda_span): lanes that get to one. */
VXK_FN_WOVEN void vxk_band_walk_next8(struct vxk_band_walk8 *w, vxk_l4 on[2], vxk_d4 at[3][2])
{
    for (int h = 0; h < 2; h++) {
        const vxk_d4 t0 = w->t[0][h], t1 = w->t[1][h], t2 = w->t[2][h];
        const vxk_l4 b10 = (vxk_l4)(t1 < t0), b20 = (vxk_l4)(t2 < t0), b21 = (vxk_l4)(t2 < t1),
                     goes[3] = {(vxk_l4)(t0 < w->end[h]) & ~(b10 | b20),
                                (vxk_l4)(t1 < w->end[h]) & b10 & ~b21, (vxk_l4)(t2 < w->end[h]) & b20 & b21};
        on[h] = goes[0] | goes[1] | goes[2];
        for (int m = 0; m < 3; m++) {
            w->plane[m][h] = w->plane[m][h] + vxk_keep4(goes[m], w->step[m][h]);
            w->t[m][h] = (w->plane[m][h] - w->o[m][h]) * w->rate[m][h];
            at[m][h] = w->plane[m][h] - w->behind[m][h];
        }
    }
}

/* What the eight observe of the voxels that they are in. */
VXK_FN_WOVEN void vxk_band_observe8(const struct vxk_band_walk8 *w, const vxk_f8 x[3], float q_scale,
                                    struct vxk_band_step *o)
{
    vxk_f8 plane;
    vxk_i8 i[3], q;
    for (int m = 0; m < 3; m++)
        i[m] = __builtin_convertvector(x[m], vxk_i8);
    plane = ((x[0] + 0.5f) - w->from[0]) * w->n[0];
    plane = plane + ((x[1] + 0.5f) - w->from[1]) * w->n[1];
    plane = plane + ((x[2] + 0.5f) - w->from[2]) * w->n[2];
    q = vxk_rint8(
        vxk_min8(vxk_max8((plane - w->off) * vxk_all8(q_scale), vxk_all8(-32767.0f)), vxk_all8(32767.0f)));
    vxk_store_bits8(o->item, (vxk_m8)((i[0] & 7) << 6 | (i[1] & 7) << 3 | (i[2] & 7) | (q + 32768) << 9));
    vxk_store_bits8(o->key, (vxk_m8)((i[0] >> 3) << 21 | (i[1] >> 3 & 2047) << 10 | (i[2] >> 3 & 1023)));
}

/* Where the eight go, and what they observe on the way. */
struct vxk_band_path {
    struct vxk_band_step step[VXK_BAND_STEPS];
    uint32_t item[8][VXK_BAND_STEPS + 8]; /* the same, ray by ray */
    uint32_t length[8];
    uint32_t turns[2][8]; /* bit k: step k (and 32 + k) is in another cell than the one before it */
};

/* Walks; gives the number of steps of the longest. */
VXK_FN_WOVEN uint32_t vxk_band_go8(const struct vxk_frame_args *a, uint32_t i, uint32_t n,
                                   struct vxk_band_path *o)
{
    struct vxk_band_walk8 w;
    const float q_scale = a->f.q_scale;
    vxk_f8 at[VXK_BAND_STEPS][3];
    vxk_d4 now[3][2];
    vxk_l4 on[2], count[2];
    vxk_m8 begun, turns[2] = {vxk_bits8(0), vxk_bits8(0)}, last, key;
    uint32_t steps = 0;
    if (!vxk_band_walk_begin8(&w, a, i, n, &begun, now))
        return 0;
    count[0] = count[1] = (vxk_l4)vxk_all4(0.0);
    do {
        for (int m = 0; m < 3; m++)
            at[steps][m] = vxk_narrow8(now[m]);
        vxk_band_walk_next8(&w, on, now);
        count[0] -= on[0];
        count[1] -= on[1];
    } while (++steps < VXK_BAND_STEPS && vxk_some4(on[0] | on[1]));
    for (uint32_t k = 0; k < steps; k++) {
        vxk_band_observe8(&w, at[k], q_scale, &o->step[k]);
        __builtin_memcpy(&key, o->step[k].key, sizeof key);
        if (k)
            turns[k >> 5] |= (vxk_m8)(key != last) & vxk_bits8(1u << (k & 31));
        last = key;
    }
    vxk_store_bits8(o->length, begun);
    for (uint32_t lane = 0; lane < 8; lane++)
        o->length[lane] = o->length[lane] ? 1 + (uint32_t)count[lane >> 2][lane & 3] : 0;
    vxk_store_bits8(o->turns[0], turns[0]);
    vxk_store_bits8(o->turns[1], turns[1]);
    return steps;
}

/* Keeps what one of the eight observed: whole vectors are copied, and what is too much is overwritten. */
VXK_FN_WOVEN void vxk_band_keep(struct vxk_band_store *s, const struct vxk_band_path *p, uint32_t lane)
{
    const uint32_t length = p->length[lane];
    uint64_t turns = p->turns[0][lane] | (uint64_t)p->turns[1][lane] << 32;
    turns = length < 64 ? (turns & ((1ull << length) - 1)) | 1ull << length : turns;
    for (uint32_t k = 0; k < length;) {
        const uint32_t next = turns ? vxk_ctz64(turns) : length, n = next - k;
        struct vxk_band_cell *c = vxk_band_place(s, p->step[k].key[lane]);
        const uint32_t *from = &p->item[lane][k];
        uint32_t *to = &c->item[c->n];
        vxk_copy8(to, from);
        for (uint32_t j = 8; j < n; j += 8)
            vxk_copy8(to + j, from + j);
        c->n += n;
        turns &= turns - 1;
        k = next;
    }
}

static void vxk_band_walk8(struct vxk_band_store *s, uint32_t i, uint32_t n)
{
    struct vxk_band_path p;
    const uint32_t steps = vxk_band_go8(s->a, i, n, &p);
    for (uint32_t k = 0; k < steps; k += 8) {
        const float *row[8];
        vxk_f8 ray[8];
        for (uint32_t j = 0; j < 8; j++)
            row[j] = (const float *)p.step[vxk_minu(k + j, steps - 1)].item;
        vxk_columns8(row, ray);
        for (uint32_t lane = 0; lane < 8; lane++)
            vxk_store8((float *)&p.item[lane][k], ray[lane]);
    }
    for (uint32_t lane = 0; lane < n && steps; lane++)
        vxk_band_keep(s, &p, lane);
}

static void vxk_cpu_frame_touch(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    struct vxk_band_store s;
    if (!vxk_band_fits(&a)) {
        for (uint32_t i = begin; i < end; i++)
            vxk_frame_touch(&a, i);
        return;
    }
    s.a = &a;
    s.chunk[0] = 0x7fffffff;
    s.chunk[1] = s.chunk[2] = 0;
    s.slot = VXK_NONE;
    s.at = s.at_end = s.group = s.group_end = 0;
    for (uint32_t k = 0; k < VXK_BAND_CELLS; k++)
        s.cell[k].n = s.cell[k].key = 0;
    for (uint32_t i = begin; i < end; i += 8)
        vxk_band_walk8(&s, i, vxk_minu(end - i, 8));
    vxk_band_end(&s);
}

/* The head of a leaf's groups is kept where the place of its sums will be. */
static void vxk_cpu_frame_touch_rank(const struct vxk_frame_args *a, uint32_t begin, uint32_t end)
{
    const int fits = vxk_band_fits(a);
    for (uint32_t i = begin; i < end; i++) {
        uint32_t n, first;
        if (!a->s.touch_mask[i])
            continue;
        if (!fits) {
            vxk_frame_touch_rank(a, i);
            continue;
        }
        n = vxk_popc64(a->s.touch_mask[i]);
        first = vxk_atomic_add32(&a->s.c->n_touch_leaf, n);
        a->s.touch_rank[i] = first;
        for (uint32_t k = first; k < first + n && k < a->s.room_touch_leaf; k++)
            a->s.hit_base[k] = VXK_NONE;
    }
}

/* Groups to their leaves.  Where the lists were too short nothing is known of what is in them, and the frame
 * runs again. */
static void vxk_cpu_frame_hit_mark(const struct vxk_frame_args *a, uint32_t begin, uint32_t end)
{
    const uint64_t n =
        a->s.c->n_band <= a->s.room_band && a->s.c->n_group <= a->s.room_group ? a->s.c->n_group : 0;
    if (!vxk_band_fits(a)) {
        for (uint32_t i = begin; i < end; i++)
            vxk_frame_hit_mark(a, i);
        return;
    }
    for (uint64_t k = n * begin / a->s.n_rays; k < n * end / a->s.n_rays; k++) {
        struct vxk_band_group *g = &a->s.group[k];
        uint32_t leaf;
        if (!g->n)
            continue;
        leaf = vxk_touched_leaf(&a->s, g->word >> 6, g->word & 63, g->cell);
        if (leaf < a->s.room_touch_leaf)
            g->next = __atomic_exchange_n(&a->s.hit_base[leaf], (uint32_t)k, __ATOMIC_RELAXED);
    }
}

/* Adds up a leaf's groups: its mask, and a sum for each voxel in it. */
VXK_FN void vxk_band_sum(const struct vxk_frame_args *a, uint32_t leaf, uint64_t sum[512])
{
    uint64_t prefix = 0, mask[8] = {0};
    uint32_t n = 0, place, n_hit = 0;
    uint16_t hit[513];
    for (uint32_t k = a->s.hit_base[leaf]; k != VXK_NONE; k = a->s.group[k].next) {
        const struct vxk_band_group *g = &a->s.group[k];
        const uint32_t *item = &a->s.band[g->first];
        if (g->next != VXK_NONE) {
            const struct vxk_band_group *next = &a->s.group[g->next];
            for (uint32_t j = 0; j < next->n; j += 16)
                vxk_prefetch(&a->s.band[next->first + j]);
            if (next->next != VXK_NONE)
                vxk_prefetch(&a->s.group[next->next]);
        }
        for (uint32_t j = 0; j < g->n; j++) {
            const uint32_t voxel = item[j] & 511;
            const uint64_t so_far = sum[voxel];
            hit[n_hit] = (uint16_t)voxel;
            n_hit += !so_far;
            sum[voxel] = so_far + (1ull << 40) + (item[j] >> 9);
        }
    }
    for (uint32_t k = 0; k < n_hit; k++)
        mask[hit[k] >> 6] |= 1ull << (hit[k] & 63);
    for (uint32_t x = 0; x < 8; x++) {
        if (x)
            prefix |= (uint64_t)n << (9 * (x - 1));
        n += vxk_popc64(mask[x]);
    }
    place = vxk_atomic_add32(&a->s.c->n_hit_voxels, n);
    a->s.hit_base[leaf] = place;
    a->s.hit_prefix[leaf] = prefix;
    for (uint32_t x = 0; x < 8; x++) {
        a->s.hit_mask[(uint64_t)leaf * 8 + x] = mask[x];
        for (uint64_t m = mask[x]; m; m &= m - 1) {
            uint64_t *from = &sum[x << 6 | vxk_ctz64(m)];
            if (place < a->s.room_hit)
                a->s.acc[place] = *from;
            place++;
            *from = 0;
        }
    }
}

static void vxk_cpu_frame_hit_room(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    uint64_t sum[512];
    if (!vxk_band_fits(&a)) {
        for (uint32_t i = begin; i < end; i++)
            vxk_frame_hit_room(&a, i);
        return;
    }
    for (uint32_t k = 0; k < 512; k++)
        sum[k] = 0;
    for (uint32_t i = begin; i < end; i++)
        vxk_band_sum(&a, i, sum);
}

static void vxk_cpu_frame_hit_add(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    if (!vxk_band_fits(&a)) /* else it was done when they were counted */
        for (uint32_t i = begin; i < end; i++)
            vxk_frame_hit_add(&a, i);
}

#endif
