/*
 * tuned_frame_leaf.cuh - a new leaf in a warp: its record, its values, those before the frame.
 */
#ifndef VXK_CUDA_TUNED_FRAME_LEAF_CUH
#define VXK_CUDA_TUNED_FRAME_LEAF_CUH

#include "tuned_frame.cuh"

/* A leaf in a warp: where its values lie. */
struct lane_leaf {
    uint32_t masks; /* tuned_frame.cuh */
    uint32_t ranks; /* values before the lane's word (lanes 0 .. 15) */
    uint32_t n, first;
    uint32_t page[3];
};

static __device__ __forceinline__ uint64_t value_index(const struct lane_leaf *l, uint32_t k)
{
    uint32_t at = l->first + k;
    uint32_t page = at < 256 ? l->page[0] : at < 512 ? l->page[1] : l->page[2];
    return (uint64_t)page * VXK_VALUES_A_PAGE + (at & 255);
}

/* A record of the map into the warp. */
static __device__ __forceinline__ struct lane_leaf load_leaf(const struct vxk_leaf *l, int tile,
                                                             uint32_t lane)
{
    struct lane_leaf o;
    o.masks = vxk_lane_masks(l, tile, lane);
    o.ranks = vxk_lane_ranks(o.masks, lane, &o.n);
    o.first = l ? l->first : 0;
    for (int k = 0; k < 3; k++)
        o.page[k] = l ? l->page[k] : VXK_NONE;
    return o;
}

/* The new record from the warp into the map. */
static __device__ __forceinline__ void store_leaf(const struct lane_leaf *o, struct vxk_leaf *l,
                                                  uint32_t lane)
{
    uint64_t prefix = vxk_lane_prefix(o->ranks, lane);
    uint32_t tail;
    ((uint32_t *)l)[lane] = o->masks;
    tail = lane == 0   ? (uint32_t)prefix
           : lane == 1 ? (uint32_t)(prefix >> 32)
           : lane == 2 ? o->page[0]
           : lane == 3 ? o->page[1]
           : lane == 4 ? o->page[2]
                       : (o->n ? o->first : 0) | o->n << 16;
    if (lane < 6)
        ((uint32_t *)l)[32 + lane] = tail;
}
static_assert(sizeof(struct vxk_leaf) == 38 * 4, "masks, prefix, pages, first and n_active of a record");

/* What active voxels hold, as it was; the leaf has the same ones as before. */
template <typename T>
static __device__ __forceinline__ void copy_values(T *to, const T *from, const struct lane_leaf *now,
                                                   const struct lane_leaf *old, uint32_t lane)
{
    uint32_t k = lane;
    for (; k + 96 < now->n; k += 128) {
        T v[4];
        for (uint32_t j = 0; j < 4; j++)
            v[j] = from[value_index(old, k + 32 * j)];
        for (uint32_t j = 0; j < 4; j++)
            to[value_index(now, k + 32 * j)] = v[j];
    }
    for (; k < now->n; k += VXK_WARP)
        to[value_index(now, k)] = from[value_index(old, k)];
}

/* The active voxels of a leaf in order; a lane lists half a word. */
static __device__ __forceinline__ void list_voxels(const struct lane_leaf *now, uint16_t *list, uint32_t lane)
{
    uint32_t w = lane & 15, word = __shfl_sync(VXK_FULL, now->masks, (int)w),
             at = __shfl_sync(VXK_FULL, now->ranks, (int)w);
    if (lane & 16) {
        at += (uint32_t)__popc(word & 0xffff);
        word &= 0xffff0000u;
    } else {
        word &= 0xffff;
    }
    for (; word; word &= word - 1)
        list[at++] = (uint16_t)(w << 5 | vxk_ctz32(word));
    __syncwarp();
}

/* A voxel before the frame, and its place in the leaf's values when it was active. */
struct lane_old {
    uint32_t active, free, rank;
};
/* Called by the whole warp, n is the lane's. */
static __device__ __forceinline__ struct lane_old old_voxel(const struct lane_leaf *old, uint32_t n)
{
    uint32_t w = n >> 5, bit = n & 31, was_active = __shfl_sync(VXK_FULL, old->masks, (int)w),
             was_free = __shfl_sync(VXK_FULL, old->masks, (int)(w + 16));
    struct lane_old o;
    o.rank = __shfl_sync(VXK_FULL, old->ranks, (int)w) + (uint32_t)__popc(was_active & ((1u << bit) - 1));
    o.active = was_active >> bit & 1;
    o.free = was_free >> bit & 1;
    return o;
}
/* State and value; likewise. */
static __device__ __forceinline__ int old_state(const struct vxk_frame_args *a, const struct lane_leaf *old,
                                                uint32_t n, bool on, uint32_t *value)
{
    struct lane_old o = old_voxel(old, n);
    *value = 0;
    if (o.active) {
        if (on)
            *value = a->g.values[value_index(old, o.rank)];
        return VXK_ACTIVE;
    }
    return o.free ? VXK_FREE : VXK_UNKNOWN;
}

/* seen: of a work cell (vxk_frame_space); of voxel n's plane. */
static __device__ __forceinline__ bool plane_seen(uint2 seen, uint32_t n)
{
    return (n >> 6 < 4 ? seen.x : seen.y) >> (8 * (n >> 6 & 3)) & 1;
}

/* Depth: a cell's first voxel in sensor coordinates; is all of the cell in view? */
static __device__ __forceinline__ bool leaf_in_view(const struct vxk_frame_args *a,
                                                    const struct vxk_frame_word *fw, uint32_t cell,
                                                    struct vxk_vec3 *first)
{
    struct vxk_window window;
    struct vxk_vec3 q;
    int32_t base[3];
    vxk_frame_cell_base(a, fw, cell, base);
    *first = vxk_to_sensor(&a->f, (float)base[0] + 0.5f, (float)base[1] + 0.5f, (float)base[2] + 0.5f);
    q = vxk_to_sensor(&a->f, (float)base[0] + 4.0f, (float)base[1] + 4.0f, (float)base[2] + 4.0f);
    return vxk_depth_window(&a->f, &q, 6.1f, &window) && window.whole;
}

#endif
