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

/* How the values of lane's cell fade, for all. */
static __device__ __forceinline__ struct vxk_fading vxk_lane_fading(const struct vxk_fading *own,
                                                                    uint32_t lane)
{
    struct vxk_fading o;
    o.flags = __shfl_sync(VXK_FULL, own->flags, (int)lane);
    o.from = __shfl_sync(VXK_FULL, own->from, (int)lane);
    for (int k = 0; k < 3; k++)
        o.at[k] = __shfl_sync(VXK_FULL, own->at[k], (int)lane);
    return o;
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

/* Offsets of a leaf's voxels from its first one (vxk_leaf_offset) in shared memory.  Rows of eight lie in
 * turns with halves exchanged, so that the 4 x 4 voxels of half a part lie in different banks. */
struct vxk_offsets {
    float4 of[512];
};
static __device__ __forceinline__ uint32_t vxk_offset_slot(uint32_t n)
{
    return n ^ (n >> 1 & 4);
}
static __device__ __forceinline__ void vxk_offsets_fill(struct vxk_offsets *o, const float *R)
{
    for (uint32_t n = threadIdx.x; n < 512; n += blockDim.x) {
        struct vxk_vec3 p = vxk_leaf_offset(R, n >> 6, n >> 3 & 7, n & 7);
        o->of[vxk_offset_slot(n)] = make_float4(p.x, p.y, p.z, 0.0f);
    }
    __syncthreads();
}

/* A voxel and its pixel. */
struct vxk_sighted {
    struct vxk_pixel says;
    int32_t pixel;
    float z;
};
/* `whole`: the voxel's whole leaf or part is in view. */
static __device__ __forceinline__ struct vxk_sighted
vxk_voxel_sighted(const struct vxk_frame_args *a, const struct vxk_vec3 *first, float4 offset, bool whole)
{
    struct vxk_sighted v;
    float x = first->x + offset.x, y = first->y + offset.y;
    float4 p;
    v.z = first->z + offset.z;
    v.pixel = whole ? vxk_pixel_in_view(&a->f, x, y, v.z) : vxk_pixel_of(&a->f, x, y, &v.z);
    p = __ldg((const float4 *)&a->s.pixel[v.pixel]);
    v.says.lo = p.x;
    v.says.hi = p.y;
    v.says.free = p.z;
    v.says.front = p.w;
    return v;
}
static __device__ __forceinline__ struct vxk_sample vxk_load_sample(const struct vxk_frame_args *a,
                                                                    int32_t pixel)
{
    int4 p = __ldg((const int4 *)&a->s.sample[pixel]);
    struct vxk_sample s;
    s.d = __int_as_float(p.x);
    s.g = __int_as_float(p.y);
    s.weight = p.z;
    s.thin = p.w;
    return s;
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

/* Variants for depth frames of maps that neither decay nor forget (tuned_frame_depth.cu). */
cudaError_t vxk_cuda_cell_depth(const struct vxk_cuda_launch *l);
cudaError_t vxk_cuda_leaf_depth(const struct vxk_cuda_launch *l);

#endif
