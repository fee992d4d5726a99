/* Variants for what rays leave in the voxels of their bands.  A ray is walked once, a thread a ray; its steps
 * are kept (struct vxk_trail), so that marks and sums find any voxel of the band without those before it:
 * four warps share 32 rays, each takes every fourth voxel of all of them.  Rays beside each other are mostly
 * in one voxel: of a run of lanes one goes to memory. */
#include "tuned_frame.cuh"

enum { THREADS = 128, WARPS = THREADS / VXK_WARP };

/* Slot of a chunk of the frame's table, inserted when missing.  A key stays once it is there: what the cache
 * holds is old only where it says that there is none. */
static __device__ __forceinline__ uint32_t touch_slot(const struct vxk_frame_args *a, const int32_t chunk[3])
{
    uint64_t key = vxk_key(a->f.oc[0] + chunk[0], a->f.oc[1] + chunk[1], a->f.oc[2] + chunk[2]), k;
    uint32_t slot_mask = a->s.touch_slots - 1, i = (uint32_t)vxk_mix64(key) & slot_mask;
    for (uint32_t step = 0; step <= slot_mask; step++) {
        k = vxk_peek64(&a->s.touch_key[i]);
        if (k == VXK_NO_KEY) {
            k = vxk_atomic_cas64(&a->s.touch_key[i], VXK_NO_KEY, key);
            if (k == VXK_NO_KEY) {
                vxk_atomic_add32(&a->s.c->n_touch_chunk, 1);
                return i;
            }
        }
        if (k == key)
            return i;
        i = (i + 1) & slot_mask;
    }
    return VXK_NONE;
}

/* Is this lane's pair not that of the lane before it? */
static __device__ __forceinline__ bool run_begins(uint32_t x, uint32_t y, uint32_t lane)
{
    uint32_t px = __shfl_up_sync(VXK_FULL, x, 1), py = __shfl_up_sync(VXK_FULL, y, 1);
    return lane == 0 || px != x || py != y;
}

/* A ray on its way. */
struct walk {
    struct vxk_dda w;
    struct vxk_trail t;
    int32_t cell[3], chunk[3];
    uint32_t slot, n_slots;
};

/* The cell that the ray has come to: word of the table and bit, or VXK_NONE where it was there already. */
static __device__ __forceinline__ uint32_t enter_cell(const struct vxk_frame_args *a, struct walk *w,
                                                      uint32_t *bit)
{
    int32_t x = w->w.i[0] >> 3, y = w->w.i[1] >> 3, z = w->w.i[2] >> 3;
    if (x == w->cell[0] && y == w->cell[1] && z == w->cell[2])
        return VXK_NONE;
    w->cell[0] = x;
    w->cell[1] = y;
    w->cell[2] = z;
    if (x >> 4 != w->chunk[0] || y >> 4 != w->chunk[1] || z >> 4 != w->chunk[2]) {
        w->chunk[0] = x >> 4;
        w->chunk[1] = y >> 4;
        w->chunk[2] = z >> 4;
        w->slot = touch_slot(a, w->chunk);
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            w->t.slot[k] = k == w->n_slots ? w->slot : w->t.slot[k];
        w->n_slots++;
    }
    *bit = (uint32_t)(x & 3) << 4 | (uint32_t)(y & 3) << 2 | (uint32_t)(z & 3);
    return w->slot == VXK_NONE ? VXK_NONE
                               : w->slot << 6 | (uint32_t)(x >> 2 & 3) << 4 | (uint32_t)(y >> 2 & 3) << 2 |
                                     (uint32_t)(z >> 2 & 3);
}

/* Begins ray i; not `on`: there is none. */
static __device__ __forceinline__ struct walk begin_walk(const struct vxk_frame_args *a, uint32_t i, bool on)
{
    struct walk w;
    w.cell[0] = w.chunk[0] = 0x7fffffff;
    w.cell[1] = w.cell[2] = w.chunk[1] = w.chunk[2] = 0;
    w.slot = VXK_NONE;
    w.n_slots = w.t.n = w.t.back = 0;
    for (int k = 0; k < 4; k++)
        w.t.slot[k] = VXK_NONE;
    for (int k = 0; k < 3; k++)
        w.t.first[k] = w.w.i[k] = 0, w.t.step[k] = 0;
    if (on) {
        vxk_ray_band(a, i, &w.w);
        w.t.n = 1;
        for (int k = 0; k < 3; k++) {
            w.t.first[k] = w.w.i[k];
            w.t.back |= w.w.d[k] < 0.0 ? 1u << k : 0;
        }
    }
    return w;
}

/* Beside frame_normal: where a band lies takes directions and lengths only. */
static __global__ void __launch_bounds__(THREADS) touch(const __grid_constant__ struct vxk_frame_touch_args a,
                                                        uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_beside_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31;
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < end; base += (uint64_t)gridDim.x * THREADS) {
        uint32_t i = (uint32_t)base + threadIdx.x;
        float r = i < end ? a.s.ray[i].r : 0.0f;
        bool on = r > 0.0f && r < VXK_D_OPEN, go = on;
        struct walk w = begin_walk(&a, i, on);
        while (__any_sync(VXK_FULL, go)) {
            uint32_t bit = 0, word = go ? enter_cell(&a, &w, &bit) : VXK_NONE;
            if (run_begins(word, bit, lane) && word != VXK_NONE &&
                !(vxk_peek64(&a.s.touch_mask[word]) >> bit & 1))
                vxk_atomic_or64(&a.s.touch_mask[word], 1ull << bit);
            if (go && w.slot == VXK_NONE) {
                vxk_atomic_or32(&a.s.c->table_full, 1);
                w.t.n = 0;
                go = false;
            }
            if (go && w.w.axis >= 0 && w.t.n <= VXK_TRAIL_STEPS) {
#pragma unroll
                for (int k = 0; k < 3; k++)
                    w.t.step[k] |= w.w.axis == k ? 1u << (w.t.n - 1) : 0;
            }
            go = go && vxk_dda_next(&w.w);
            w.t.n += go ? 1 : 0;
        }
        if (i < end) {
            int4 *to = (int4 *)&a.s.trail[i];
            to[0] = make_int4(w.t.first[0], w.t.first[1], w.t.first[2], (int)w.t.n);
            to[1] = make_int4((int)w.t.step[0], (int)w.t.step[1], (int)w.t.step[2], (int)w.t.back);
            to[2] = make_int4((int)w.t.slot[0], (int)w.t.slot[1], (int)w.t.slot[2], (int)w.t.slot[3]);
        }
    }
    vxk_kernel_beside_end();
}
VXK_TUNED_LAUNCH(frame_touch, touch, THREADS, THREADS, 32)

static __device__ __forceinline__ struct vxk_trail load_trail(const struct vxk_trail *p)
{
    int4 head = ((const int4 *)p)[0], step = ((const int4 *)p)[1], slot = ((const int4 *)p)[2];
    struct vxk_trail t;
    t.first[0] = head.x;
    t.first[1] = head.y;
    t.first[2] = head.z;
    t.n = (uint32_t)head.w;
    t.step[0] = (uint32_t)step.x;
    t.step[1] = (uint32_t)step.y;
    t.step[2] = (uint32_t)step.z;
    t.back = (uint32_t)step.w;
    t.slot[0] = (uint32_t)slot.x;
    t.slot[1] = (uint32_t)slot.y;
    t.slot[2] = (uint32_t)slot.z;
    t.slot[3] = (uint32_t)slot.w;
    return t;
}

/* Voxel k of a trail, k < n: its place, and touched leaf and number in it. */
struct stop {
    int32_t at[3];
    uint32_t leaf, voxel;
};
static __device__ __forceinline__ struct stop stop_of(const struct vxk_frame_args *a,
                                                      const struct vxk_trail *t, uint32_t k)
{
    uint32_t before = k < 32 ? (1u << k) - 1 : VXK_FULL, chunk = 0, slot;
    struct stop s;
#pragma unroll
    for (int j = 0; j < 3; j++) {
        int32_t steps = __popc(t->step[j] & before);
        s.at[j] = t->first[j] + (t->back >> j & 1 ? -steps : steps);
        chunk += s.at[j] >> 7 != t->first[j] >> 7;
    }
    slot = chunk == 0 ? t->slot[0] : chunk == 1 ? t->slot[1] : chunk == 2 ? t->slot[2] : t->slot[3];
    s.leaf = vxk_touched_leaf(
        &a->s, slot, vxk_word_of((uint32_t)s.at[0] & 127, (uint32_t)s.at[1] & 127, (uint32_t)s.at[2] & 127),
        vxk_cell_of((uint32_t)s.at[0], (uint32_t)s.at[1], (uint32_t)s.at[2]));
    s.voxel = vxk_voxel_of((uint32_t)s.at[0], (uint32_t)s.at[1], (uint32_t)s.at[2]);
    return s;
}

static __global__ void __launch_bounds__(THREADS)
    hit_mark(const __grid_constant__ struct vxk_frame_hit_mark_args a, uint32_t n, const uint32_t *n_dev,
             uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP;
    for (uint64_t base = (uint64_t)blockIdx.x * VXK_WARP; base < end;
         base += (uint64_t)gridDim.x * VXK_WARP) {
        uint32_t i = (uint32_t)base + lane;
        struct vxk_trail t = load_trail(&a.s.trail[min(i, end - 1)]);
        bool far = i < end && t.n > VXK_TRAIL_STEPS + 1;
        uint32_t own = i < end && !far ? t.n : 0;
        for (uint32_t k = warp; __any_sync(VXK_FULL, k < own); k += WARPS) {
            uint32_t word = VXK_NONE, bit = 0;
            if (k < own) {
                struct stop s = stop_of(&a, &t, k);
                if (s.leaf < a.s.room_touch_leaf) {
                    word = s.leaf << 3 | s.voxel >> 6;
                    bit = s.voxel & 63;
                }
            }
            if (run_begins(word, bit, lane) && word != VXK_NONE &&
                !(vxk_peek64(&a.s.hit_mask[word]) >> bit & 1))
                vxk_atomic_or64(&a.s.hit_mask[word], 1ull << bit);
        }
        if (far && warp == 0)
            vxk_frame_hit_mark(&a, i);
    }
}
VXK_TUNED_LAUNCH(frame_hit_mark, hit_mark, THREADS, VXK_WARP, 64)

/* What a run of lanes adds to one voxel: their number from bit 24 on, and the sum of their distances. */
static __device__ __forceinline__ uint32_t run_sum(uint32_t x, uint32_t begins, uint32_t lane)
{
    uint32_t first = 31u - (uint32_t)__clz((int)(begins & (VXK_FULL >> (31 - lane))));
    for (uint32_t o = 1; o < VXK_WARP; o <<= 1) {
        uint32_t y = __shfl_up_sync(VXK_FULL, x, o);
        if (lane >= first + o)
            x += y;
    }
    return x;
}

static __global__ void __launch_bounds__(THREADS)
    hit_add(const __grid_constant__ struct vxk_frame_hit_add_args a, uint32_t n, const uint32_t *n_dev,
            uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP;
    for (uint64_t base = (uint64_t)blockIdx.x * VXK_WARP; base < end;
         base += (uint64_t)gridDim.x * VXK_WARP) {
        uint32_t i = (uint32_t)base + lane, at = min(i, end - 1);
        struct vxk_trail t = load_trail(&a.s.trail[at]);
        struct vxk_ray ray = vxk_load_ray(&a.s.ray[at]);
        bool far = i < end && t.n > VXK_TRAIL_STEPS + 1;
        uint32_t own = i < end && !far ? t.n : 0;
        float o[3];
        vxk_ray_origin(&a, at, o);
        for (uint32_t k = warp; __any_sync(VXK_FULL, k < own); k += WARPS) {
            uint32_t place = VXK_NONE, sum = 0, begins;
            if (k < own) {
                struct stop s = stop_of(&a, &t, k);
                place = vxk_hit_place(&a.s, s.leaf, s.voxel);
                sum = 1u << 24 | (uint32_t)(vxk_hit_distance(&a.f, &ray, o, s.at) + 32768);
            }
            begins = __ballot_sync(VXK_FULL, run_begins(place, 0, lane));
            if (begins != VXK_FULL)
                sum = run_sum(sum, begins, lane);
            if (place != VXK_NONE && (lane == 31 || begins >> (lane + 1) & 1))
                vxk_atomic_add64(&a.s.acc[place], (uint64_t)(sum >> 24) << 40 | (sum & 0xffffffu));
        }
        if (far && warp == 0)
            vxk_frame_hit_add(&a, i);
    }
}
VXK_TUNED_LAUNCH(frame_hit_add, hit_add, THREADS, VXK_WARP, 64)

/* Places for the touched leaves of a block's words, taken at once; marks are emptied in whole lines. */
enum { RANK_THREADS = 256 };
static __global__ void __launch_bounds__(RANK_THREADS)
    touch_rank(const __grid_constant__ struct vxk_frame_touch_rank_args a, uint32_t n, const uint32_t *n_dev,
               uint32_t per)
{
    vxk_kernel_begin();
    __shared__ uint32_t sums[RANK_THREADS / VXK_WARP], begin;
    uint32_t end = vxk_launch_end(n, n_dev, per), t = threadIdx.x;
    for (uint64_t base = (uint64_t)blockIdx.x * RANK_THREADS; base < end;
         base += (uint64_t)gridDim.x * RANK_THREADS) {
        uint32_t i = (uint32_t)base + t, own = i < end ? vxk_popc64(a.s.touch_mask[i]) : 0, total, upto, last;
        upto = vxk_block_upto(own, sums, &total);
        if (!total)
            continue;
        if (t == 0)
            begin = vxk_atomic_add32(&a.s.c->n_touch_leaf, total);
        __syncthreads();
        if (own)
            a.s.touch_rank[i] = begin + upto - own;
        last = min(begin + total, a.s.room_touch_leaf);
        for (uint32_t k = begin * 8 + t; k < last * 8; k += RANK_THREADS)
            a.s.hit_mask[k] = 0;
        __syncthreads(); /* `begin` was read */
    }
}
VXK_TUNED_LAUNCH(frame_touch_rank, touch_rank, RANK_THREADS, RANK_THREADS, 16)

/* Sum over this lane and those before it in its half of the warp. */
static __device__ __forceinline__ uint32_t half_upto(uint32_t x, uint32_t lane)
{
    for (uint32_t o = 1; o < 16; o <<= 1) {
        uint32_t y = __shfl_up_sync(VXK_FULL, x, o, 16);
        if ((lane & 15) >= o)
            x += y;
    }
    return x;
}

/* Half a warp a touched leaf, a lane a word of its mask; a block takes places for its leaves at once. */
enum { ROOM_THREADS = 256, ROOM_LEAVES = ROOM_THREADS / 16 };
static __global__ void __launch_bounds__(ROOM_THREADS)
    hit_room(const __grid_constant__ struct vxk_frame_hit_room_args a, uint32_t n, const uint32_t *n_dev,
             uint32_t per)
{
    vxk_kernel_begin();
    __shared__ uint32_t sums[ROOM_THREADS / VXK_WARP], begin;
    uint32_t end = vxk_launch_end(n, n_dev, per), t = threadIdx.x, lane = t & 31, j = t & 15;
    for (uint32_t base = blockIdx.x * ROOM_LEAVES; base < end; base += gridDim.x * ROOM_LEAVES) {
        uint32_t i = base + t / 16, own, before, upto, total, last, lo, hi;
        uint64_t prefix;
        own = i < end ? vxk_popc32(((const uint32_t *)a.s.hit_mask)[(uint64_t)i * 16 + j]) : 0;
        before = half_upto(own, lane) - own;
        upto = vxk_block_upto(own, sums, &total);
        if (t == 0)
            begin = total ? vxk_atomic_add32(&a.s.c->n_hit_voxels, total) : 0;
        prefix = j >= 2 && !(j & 1) ? (uint64_t)before << (9 * (j / 2 - 1)) : 0;
        lo = (uint32_t)prefix;
        hi = (uint32_t)(prefix >> 32);
        for (int o = 1; o < 16; o <<= 1) {
            lo |= __shfl_xor_sync(VXK_FULL, lo, o);
            hi |= __shfl_xor_sync(VXK_FULL, hi, o);
        }
        __syncthreads();
        if (j == 0 && i < end) {
            a.s.hit_base[i] = begin + upto - own;
            a.s.hit_prefix[i] = (uint64_t)hi << 32 | lo;
        }
        last = min(begin + total, a.s.room_hit);
        for (uint32_t k = begin + t; k < last; k += ROOM_THREADS)
            a.s.acc[k] = 0;
        __syncthreads(); /* `begin` was read */
    }
}
VXK_TUNED_LAUNCH(frame_hit_room, hit_room, ROOM_THREADS, ROOM_LEAVES, 8)
