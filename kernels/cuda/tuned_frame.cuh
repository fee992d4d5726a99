/*
 * tuned_frame.cuh - a leaf in a warp: lane j < 16 holds voxels 32 j .. 32 j + 31 of the active mask (half a
 * plane: x = j / 2, four rows of y), lane 16 + j the same of the free mask.
 */
#ifndef VXK_CUDA_TUNED_FRAME_CUH
#define VXK_CUDA_TUNED_FRAME_CUH

#include "../body/frame.h"
#include "tuned.cuh"

/* A warp looks up a few elements at a time, one a lane, and then works on one after the other: so the loads
 * that hang on each other are waited for once.  How many: few enough that every warp gets its share in
 * several portions. */
static __device__ __forceinline__ uint32_t vxk_batch(uint32_t end, uint32_t warps, uint32_t most)
{
    return min(max(end / (4 * warps), 1u), most);
}

/* A record by its number; VXK_NONE: NULL. */
static __device__ __forceinline__ const struct vxk_leaf *vxk_leaf_no(const struct vxk_grid *g, uint32_t n)
{
    return n == VXK_NONE ? (const struct vxk_leaf *)0 : &g->leaves[n];
}
static __device__ __forceinline__ uint32_t vxk_leaf_number(const struct vxk_leaf *base,
                                                           const struct vxk_leaf *l)
{
    return l ? (uint32_t)(l - base) : VXK_NONE;
}

/* Both masks of a record; NULL: what a tile or an unknown cell holds. */
static __device__ __forceinline__ uint32_t vxk_lane_masks(const struct vxk_leaf *l, int tile, uint32_t lane)
{
    if (l)
        return ((const uint32_t *)l)[lane];
    return tile && lane >= 16 ? VXK_FULL : 0;
}

/* Bits before each lane's word, in the half that the lane belongs to; *n = bits of the first half. */
static __device__ __forceinline__ uint32_t vxk_lane_ranks(uint32_t word, uint32_t lane, uint32_t *n)
{
    uint32_t own = (uint32_t)__popc(word), sum = own;
    for (uint32_t o = 1; o < 16; o <<= 1) {
        uint32_t y = __shfl_up_sync(VXK_FULL, sum, o, 16);
        if ((lane & 15) >= o)
            sum += y;
    }
    *n = __shfl_sync(VXK_FULL, sum, 15);
    return sum - own;
}

/* Prefix sum of a record (grid.h) from its lanes' ranks; everyone's. */
static __device__ __forceinline__ uint64_t vxk_lane_prefix(uint32_t ranks, uint32_t lane)
{
    uint32_t before = __shfl_sync(VXK_FULL, ranks, (int)(2 * (lane & 7)));
    uint64_t prefix = lane >= 1 && lane < 8 ? (uint64_t)before << (9 * (lane - 1)) : 0;
    return vxk_warp_or((uint32_t)prefix) | (uint64_t)vxk_warp_or((uint32_t)(prefix >> 32)) << 32;
}

/* Voxels of a 4 x 4 x 4 part of a cell in the words that hold it. */
static __device__ __forceinline__ uint32_t vxk_part_bits(uint32_t part)
{
    return 0x0f0f0f0fu << (part & 1) * 4;
}
/* Does lane's word hold voxels of the part (x >> 2) << 2 | (y >> 2) << 1 | z >> 2? */
static __device__ __forceinline__ bool vxk_part_in_word(uint32_t part, uint32_t lane)
{
    return (lane >> 3 & 1) == part >> 2 && (lane & 1) == (part >> 1 & 1);
}

/* 16 bits, a 4 x 4 square of rows y and columns z, to where they are in a word (z < 4). */
static __device__ __forceinline__ uint32_t vxk_spread_square(uint32_t h)
{
    h = (h | h << 8) & 0x00ff00ffu;
    return (h | h << 4) & 0x0f0f0f0fu;
}

/* Joins the bounds of the lane whose number differs by `from` (a power of two). */
static __device__ __forceinline__ void vxk_join_lane(struct vxk_bounds *b, int from)
{
    struct vxk_bounds o;
    o.hit_lo = __shfl_xor_sync(VXK_FULL, b->hit_lo, from);
    o.hit_hi = __shfl_xor_sync(VXK_FULL, b->hit_hi, from);
    o.free_all = __shfl_xor_sync(VXK_FULL, b->free_all, from);
    o.free_any = __shfl_xor_sync(VXK_FULL, b->free_any, from);
    vxk_bounds_join(b, &o);
}

/* A ray in two loads. */
static __device__ __forceinline__ struct vxk_ray vxk_load_ray(const struct vxk_ray *p)
{
    float4 lo = ((const float4 *)p)[0], hi = ((const float4 *)p)[1];
    struct vxk_ray r;
    r.d[0] = lo.x;
    r.d[1] = lo.y;
    r.d[2] = lo.z;
    r.r = lo.w;
    r.n[0] = hi.x;
    r.n[1] = hi.y;
    r.n[2] = hi.z;
    r.nd = hi.w;
    return r;
}

/* Pixel of a voxel; `whole`: its whole leaf or part is in view.  *seen as vxk_pixel_of. */
static __device__ __forceinline__ int32_t vxk_voxel_pixel(const struct vxk_frame *f, const struct vxk_vec3 *p,
                                                          bool whole, float *seen)
{
    if (!whole)
        return vxk_pixel_of(f, p->x, p->y, p->z, seen);
    *seen = 0.0f;
    return vxk_pixel_in_view(f, p->x, p->y, p->z);
}

/* Voxel (x, y, z) of a leaf in the axes R: as rows of the body have it. */
static __device__ __forceinline__ struct vxk_vec3 vxk_voxel_at(const float *R, const struct vxk_vec3 *first,
                                                               uint32_t x, uint32_t y, uint32_t z)
{
    struct vxk_vec3 p = vxk_row_start(R, first, x, y);
    p.x = p.x + (float)z * R[6];
    p.y = p.y + (float)z * R[7];
    p.z = p.z + (float)z * R[8];
    return p;
}

#endif
