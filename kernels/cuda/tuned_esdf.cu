/* The passes of the distance field with blocks that share: one block a leaf, windows in shared memory, loads
 * and stores of 16 bytes.
 *
 * R is a template argument where it is the default, so that the loops over a window unroll; 0 = any R. */
#include "../body/esdf.h"
#include "tuned.cuh"

enum { BLOCK = 256 };

/* Entries along an axis that hold something of family `bit`, for the window of 2 reach + 1: into near[]; the
 * whole block calls it.  True when there is one. */
static __device__ bool link_window(const struct vxk_esdf_args &a, uint32_t entry, uint32_t axis,
                                   const uint32_t *has, uint32_t bit, uint32_t *near)
{
    uint32_t width = 2 * a.reach + 1, k = threadIdx.x, at = VXK_NONE;
    if (k < width) {
        at = a.link[((uint64_t)entry * 3 + axis) * width + k];
        if (at != VXK_NONE && !(has[at] & bit))
            at = VXK_NONE;
        near[k] = at;
    }
    return __syncthreads_or(at != VXK_NONE);
}

/* The sites of a leaf, transposed in shared memory: two leaves a block, a row a thread. */
static __global__ void __launch_bounds__(128)
    sites(const __grid_constant__ struct vxk_esdf_args a, uint32_t entries)
{
    __shared__ __align__(16) uint8_t tile[2][1536];
    uint32_t half = threadIdx.x >> 6, row = threadIdx.x & 63, x = row >> 3, y = row & 7,
             entry = blockIdx.x * 2 + half;
    bool mine = entry < entries && a.site_has[entry];
    if (mine) {
        struct vxk_row_sites s;
        uint8_t *out = tile[half];
        vxk_row_find_sites(&a.samples, &a.records[entry], row, &s);
#pragma unroll
        for (uint32_t z = 0; z < 8; z++) {
            out[y << 6 | z << 3 | x] = s.x >> z & 1 ? s.fx[z] : (uint8_t)0;
            out[512 + (x << 6 | z << 3 | y)] = s.y >> z & 1 ? s.fy[z] : (uint8_t)0;
            out[1024 + (x << 6 | y << 3 | z)] = s.z >> z & 1 ? s.fz[z] : (uint8_t)0;
        }
    }
    __syncthreads();
    if (mine) {
        uint4 *out = (uint4 *)(a.sites + (uint64_t)entry * 1536);
        const uint4 *in = (const uint4 *)tile[half];
        out[row] = in[row];
        if (row < 32)
            out[64 + row] = in[64 + row];
    }
}

extern "C" cudaError_t vxk_cuda_tuned_esdf_sites(const struct vxk_cuda_launch *l)
{
    uint32_t entries = l->n / 64;
    if (l->n_dev)
        return cudaErrorInvalidValue; /* core knows the count */
    return vxk_launch_plain(l, sites, (entries + 1) / 2, 128, 0, *(const struct vxk_esdf_args *)l->args,
                            entries);
}

/* Pass 1: a thread a line, its sites eight at a time. */
static __global__ void __launch_bounds__(192) line(const __grid_constant__ struct vxk_esdf_args a)
{
    __shared__ uint32_t near[3][32];
    const uint32_t entry = blockIdx.x, width = 2 * a.reach + 1, family = threadIdx.x >> 6,
                   at = threadIdx.x & 63;
    int32_t best[8], least = VXK_ESDF_NO_SITE, most = (int32_t)a.radius * 256;
    if (threadIdx.x < 3 * 32) {
        uint32_t f = threadIdx.x >> 5, k = threadIdx.x & 31;
        uint32_t from = k < width ? a.link[((uint64_t)entry * 3 + f) * width + k] : VXK_NONE;
        near[f][k] = from != VXK_NONE && (a.site_has[from] >> f & 1) ? from : VXK_NONE;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 8; e++)
        best[e] = VXK_ESDF_NO_SITE;
    for (uint32_t k = 0; k < width; k++) {
        uint32_t from = near[family][k];
        if (from == VXK_NONE)
            continue;
        uint64_t bytes = *(const uint64_t *)(a.sites + (uint64_t)from * 1536 + 512 * family + at * 8);
        int32_t first = ((int32_t)k - (int32_t)a.reach) * 2048;
        while (bytes) { /* byte by byte that is not 0 */
            uint32_t s = (uint32_t)(__ffsll((long long)bytes) - 1) >> 3;
            int32_t site = first + (int32_t)s * 256 + (int32_t)(bytes >> (8 * s) & 255);
            bytes &= ~(255ull << (8 * s));
#pragma unroll
            for (int e = 0; e < 8; e++)
                best[e] = min(best[e], abs(site - e * 256));
        }
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
        least = min(least, best[e]);
        best[e] = best[e] <= most ? best[e] : VXK_ESDF_NO_SITE;
    }
    __shared__ uint32_t has;
    if (threadIdx.x == 0)
        has = 0;
    __syncthreads();
    if (__any_sync(0xffffffffu, least <= most) && (threadIdx.x & 31) == 0)
        atomicOr(&has, 1u << family);
    __syncthreads();
    if (has >> family & 1)
        *(uint4 *)(a.line + ((uint64_t)entry * 3 + family) * 512 + at * 8) = make_uint4(
            (uint32_t)best[0] | (uint32_t)best[1] << 16, (uint32_t)best[2] | (uint32_t)best[3] << 16,
            (uint32_t)best[4] | (uint32_t)best[5] << 16, (uint32_t)best[6] | (uint32_t)best[7] << 16);
    if (threadIdx.x == 0)
        a.line_has[entry] = has;
}

extern "C" cudaError_t vxk_cuda_tuned_esdf_line(const struct vxk_cuda_launch *l)
{
    if (l->n_dev)
        return cudaErrorInvalidValue; /* core knows the count */
    return vxk_launch_plain(l, line, l->n / 192, 192, 0, *(const struct vxk_esdf_args *)l->args);
}

/* out[o] and out[o + 1] of a window: the least of load(v)^2-like values + (256 (v - o))^2, v = 0 .. 2 R + 1
 * from the first that output o reaches. */
template <int FIXED, class Load>
static __device__ __forceinline__ void convolve_pair(int radius, Load load, int32_t &first, int32_t &second)
{
    const int r = FIXED ? FIXED : radius;
    int32_t a = VXK_ESDF_INF, b = VXK_ESDF_INF;
#pragma unroll
    for (int v = 0; v < 2 * r + 2; v++) {
        int32_t in = load(v);
        if (v <= 2 * r)
            a = min(a, in + (v - r) * (v - r) * 65536);
        if (v >= 1)
            b = min(b, in + (v - r - 1) * (v - r - 1) * 65536);
    }
    first = a;
    second = b;
}

/* Pass 2: a family's lines u x window x 8, then two outputs a thread. */
template <int FIXED>
static __device__ __forceinline__ void plane_family(const struct vxk_esdf_args &a, uint32_t family,
                                                    const uint32_t *near, uint16_t *window, int32_t &first,
                                                    int32_t &second)
{
    const int r = FIXED ? FIXED : (int)a.radius, w = 8 + 2 * r, pitch = w + 1, skip = 8 * (int)a.reach - r;
    const int t = (int)threadIdx.x, pair = t >> 6, u = t >> 3 & 7, c = t & 7;
    for (int q = t; q < 8 * w; q += BLOCK) {
        int row = q / w, v = q - row * w, from = v + skip;
        uint32_t at = near[from >> 3];
        uint4 eight = make_uint4(0x7fff7fff, 0x7fff7fff, 0x7fff7fff, 0x7fff7fff);
        if (at != VXK_NONE)
            eight = *(const uint4 *)(a.line + ((uint64_t)at * 3 + family) * 512 + row * 64 + (from & 7) * 8);
        *(uint4 *)(window + (row * pitch + v) * 8) = eight;
    }
    __syncthreads();
    const uint16_t *in = window + (u * pitch + pair * 2) * 8 + c;
    convolve_pair<FIXED>(
        r,
        [in](int v) {
            int32_t g = in[v * 8];
            return g * g;
        },
        first, second);
}

template <int FIXED>
static __global__ void __launch_bounds__(BLOCK) plane(const __grid_constant__ struct vxk_esdf_args a)
{
    VXK_DYNAMIC_SHARED(uint16_t, window);
    __shared__ int32_t tile[8 * 72];
    __shared__ uint32_t near[3][32];
    const uint32_t entry = blockIdx.x;
    const int t = (int)threadIdx.x, pair = t >> 6, u = t >> 3 & 7, c = t & 7;
    int32_t *out = a.plane + (uint64_t)entry * 1024, first, second;
    bool z = link_window(a, entry, 1, a.line_has, VXK_ESDF_Z, near[0]);
    bool y = link_window(a, entry, 2, a.line_has, VXK_ESDF_Y, near[1]);
    bool x = link_window(a, entry, 2, a.line_has, VXK_ESDF_X, near[2]);
    if (z) { /* u = x, along y, c = z */
        plane_family<FIXED>(a, 2, near[0], window, first, second);
        tile[u * 72 + pair * 18 + c] = first;
        tile[u * 72 + pair * 18 + 9 + c] = second;
        __syncthreads();
    }
    if (y) { /* u = x, along z, c = y */
        plane_family<FIXED>(a, 1, near[1], window, first, second);
        int32_t *at = tile + u * 72 + c * 9 + pair * 2;
        at[0] = z ? min(at[0], first) : first;
        at[1] = z ? min(at[1], second) : second;
        __syncthreads();
    }
    if (z || y)
        for (int i = t; i < 512; i += BLOCK)
            out[i] = tile[(i >> 6) * 72 + (i >> 3 & 7) * 9 + (i & 7)];
    if (x) {                                                       /* u = y, along z, c = x */
        plane_family<FIXED>(a, 0, near[2], window, first, second); /* its wait covers the reads above */
        tile[c * 72 + u * 9 + pair * 2] = first;
        tile[c * 72 + u * 9 + pair * 2 + 1] = second;
        __syncthreads();
        for (int i = t; i < 512; i += BLOCK)
            out[512 + i] = tile[(i >> 6) * 72 + (i >> 3 & 7) * 9 + (i & 7)];
    }
    if (t == 0)
        a.plane_has[entry] = (z || y ? (uint32_t)VXK_ESDF_A : 0u) | (x ? (uint32_t)VXK_ESDF_B : 0u);
}

extern "C" cudaError_t vxk_cuda_tuned_esdf_plane(const struct vxk_cuda_launch *l)
{
    const struct vxk_esdf_args *a = (const struct vxk_esdf_args *)l->args;
    uint32_t entries = l->n / 16, bytes = 8 * (9 + 2 * a->radius) * 16;
    if (l->n_dev)
        return cudaErrorInvalidValue; /* core knows the count */
    return vxk_launch_plain(l, a->radius == 10 ? plane<10> : plane<0>, entries, BLOCK, bytes, *a);
}

template <int FIXED>
static __global__ void __launch_bounds__(BLOCK) finish(const __grid_constant__ struct vxk_esdf_args a)
{
    VXK_DYNAMIC_SHARED(int32_t, rows); /* [8 + 2 R][64] */
    __shared__ int32_t square[512];
    __shared__ uint32_t near[2][32], known[64], occupied[64];
    const int r = FIXED ? FIXED : (int)a.radius, w = 8 + 2 * r, skip = 8 * (int)a.reach - r;
    const uint32_t entry = blockIdx.x;
    const int t = (int)threadIdx.x, pair = t >> 6, at = t & 63;
    const int4 none = make_int4(VXK_ESDF_INF, VXK_ESDF_INF, VXK_ESDF_INF, VXK_ESDF_INF);
    int32_t first = VXK_ESDF_INF, second = VXK_ESDF_INF;
    bool along_x = link_window(a, entry, 0, a.plane_has, VXK_ESDF_A, near[0]);
    bool along_y = link_window(a, entry, 1, a.plane_has, VXK_ESDF_B, near[1]);
    if (t < 64)
        known[t] = vxk_esdf_row_states(&a, a.records[entry].self, (uint32_t)t, &occupied[t]);
    if (along_x) {
        for (int i = t; i < w * 16; i += BLOCK) {
            int v = (i >> 4) + skip;
            uint32_t from = near[0][v >> 3];
            ((int4 *)rows)[i] =
                from == VXK_NONE
                    ? none
                    : *((const int4 *)(a.plane + (uint64_t)from * 1024 + (v & 7) * 64) + (i & 15));
        }
        __syncthreads();
        const int32_t *in = rows + pair * 128 + at;
        convolve_pair<FIXED>(
            r, [in](int v) { return in[v * 64]; }, first, second);
    }
    square[pair * 128 + at] = first;
    square[pair * 128 + 64 + at] = second;
    __syncthreads();
    if (along_y) {
        for (int i = t; i < w * 16; i += BLOCK) {
            int v = (i >> 4) + skip;
            uint32_t from = near[1][v >> 3];
            ((int4 *)rows)[i] = from == VXK_NONE ? none
                                                 : *((const int4 *)(a.plane + (uint64_t)from * 1024 + 512 +
                                                                    (i >> 1 & 7) * 64 + (v & 7) * 8) +
                                                     (i & 1));
        }
        __syncthreads();
        const int32_t *in = rows + pair * 128 + at; /* [y][x][z] */
        convolve_pair<FIXED>(
            r, [in](int v) { return in[v * 64]; }, first, second);
        int32_t *o = square + (at >> 3) * 64 + pair * 16 + (at & 7);
        o[0] = min(o[0], first);
        o[8] = min(o[8], second);
        __syncthreads();
    }
    uint32_t both = 0;
    bool any = false;
    for (int k = 0; k < 2; k++) {
        int n = 2 * t + k;
        uint32_t m = VXK_ESDF_FAR;
        if (square[n] <= a.limit) {
            m = vxk_esdf_magnitude(square[n], a.scale);
            any = true;
        }
        both |= (vxk_esdf_state(known[n >> 3], occupied[n >> 3], (uint32_t)n & 7) << 14 | m) << (16 * k);
    }
    ((uint32_t *)vxk_esdf_voxels(a.pages, a.table[a.list[entry]]))[t] = both;
    any = __syncthreads_or(any);
    if (t == 0 && any)
        a.alive[entry] = 1;
}

extern "C" cudaError_t vxk_cuda_tuned_esdf_finish(const struct vxk_cuda_launch *l)
{
    const struct vxk_esdf_args *a = (const struct vxk_esdf_args *)l->args;
    uint32_t entries = l->n / 64, bytes = (8 + 2 * a->radius) * 256;
    if (l->n_dev)
        return cudaErrorInvalidValue; /* core knows the count */
    return vxk_launch_plain(l, a->radius == 10 ? finish<10> : finish<0>, entries, BLOCK, bytes, *a);
}
