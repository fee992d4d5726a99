/*
 * dev.h - the only file that asks which compiler this is.
 *
 * Bodies (body/) are written in the common subset of C11 and CUDA C++ on top of the few things below, so that
 * one source is a CPU loop body and a CUDA kernel.  Rules for bodies: cast every void pointer; no designated
 * initialisers, compound literals, VLAs or restrict; map state uses + - * / sqrt floor rint only (each
 * correctly rounded on every device; no fused multiply-add, no other libm function); test for NaN and clamp
 * before any float-to-int conversion; map state is changed by integer atomics only.
 */
#ifndef VXK_DEV_H
#define VXK_DEV_H

#include <stdint.h>

#define VXK_NONE 0xffffffffu

/* Tests compile the CUDA code for the CPU too (tests/support/cuda_emulated): what only nvcc can make of the
 * few lines in between, its headers give there. */
#if defined(__CUDACC__) || defined(VXK_CUDA_EMULATED)

#ifndef VXK_CUDA_EMULATED
/* Shared memory whose size the launch says. */
#define VXK_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
/* A kernel as C code launches it. */
#define VXK_GLOBAL(kernel) ((const void *)(kernel))
/* The same address, of which the compiler knows nothing. */
template <typename T> static __device__ __forceinline__ T *vxk_opaque(T *p)
{
    asm("" : "+l"(p));
    return p;
}
/* 1 / x, correctly rounded; 2^-60 < x < 2^60, so that none of the cases needs looking at that the compiler's
 * own division looks at. */
static __device__ __forceinline__ float vxk_reciprocal(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return __fmaf_rn(r, __fmaf_rn(-x, r, 1.0f), r);
}
/* About 1 / x, 2^-22 of it off at most: for what only leaves out. */
static __device__ __forceinline__ float vxk_rough_reciprocal(float x)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
/* x / y of whole numbers, |x| < 2^24 and 0 < y < 2^24, likewise. */
static __device__ __forceinline__ float vxk_quotient(float x, float y)
{
    float r = vxk_reciprocal(y), q = x * r;
    q = __fmaf_rn(r, __fmaf_rn(-y, q, x), q);
    return __fmaf_rn(r, __fmaf_rn(-y, q, x), q);
}
/* Loads that see other elements' atomics of the same launch. */
static __device__ __forceinline__ uint32_t vxk_load32(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
static __device__ __forceinline__ uint64_t vxk_load64(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
/* The same without order: what else was written before may not be seen yet.  Cheap, and keeps the cache. */
static __device__ __forceinline__ uint32_t vxk_relaxed32(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
static __device__ __forceinline__ uint64_t vxk_relaxed64(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
#endif

#define VXK_FN       static __device__ __forceinline__
#define VXK_FN_APART static __device__ __forceinline__
#define VXK_FN_WOVEN static __device__ __forceinline__
#define VXK_CONST    static __device__ const
#define VXK_ALIGN(n) alignas(n)
VXK_FN uint32_t vxk_popc32(uint32_t x)
{
    return (uint32_t)__popc(x);
}
VXK_FN uint32_t vxk_popc64(uint64_t x)
{
    return (uint32_t)__popcll(x);
}
/* Number of trailing zeros; x != 0. */
VXK_FN uint32_t vxk_ctz32(uint32_t x)
{
    return (uint32_t)(__ffs((int)x) - 1);
}
VXK_FN uint32_t vxk_ctz64(uint64_t x)
{
    return (uint32_t)(__ffsll((long long)x) - 1);
}
VXK_FN uint32_t vxk_clz32(uint32_t x)
{
    return (uint32_t)__clz((int)x);
}
/* Number of leading zeros; x != 0. */
VXK_FN uint32_t vxk_clz64(uint64_t x)
{
    return (uint32_t)__clzll((long long)x);
}
VXK_FN float vxk_sqrt(float x)
{
    return __fsqrt_rn(x);
}
VXK_FN float vxk_floor(float x)
{
    return floorf(x);
}
VXK_FN float vxk_ceil(float x)
{
    return ceilf(x);
}
VXK_FN float vxk_abs(float x)
{
    return fabsf(x);
}
/* Of two numbers that are no NaN; which of two zeros is left open. */
VXK_FN float vxk_least(float a, float b)
{
    return fminf(a, b);
}
VXK_FN float vxk_most(float a, float b)
{
    return fmaxf(a, b);
}
/* Nearest integer, ties to even; |x| < 2^31. */
VXK_FN int32_t vxk_rint(float x)
{
    return __float2int_rn(x);
}
VXK_FN uint32_t vxk_atomic_add32(uint32_t *p, uint32_t v)
{
    return atomicAdd(p, v);
}
VXK_FN uint64_t vxk_atomic_add64(uint64_t *p, uint64_t v)
{
    return atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
/* The old value of a counter after counting one up; every element that calls it side by side must name the
 * same counter: they share one addition. */
VXK_FN uint32_t vxk_count_up(uint32_t *counter)
{
    uint32_t with = __activemask(), leader = (uint32_t)(__ffs((int)with) - 1), lane = threadIdx.x & 31,
             old = 0;
    if (lane == leader)
        old = atomicAdd(counter, (uint32_t)__popc(with));
    return __shfl_sync(with, old, (int)leader) + (uint32_t)__popc(with & ((1u << lane) - 1));
}
VXK_FN uint32_t vxk_atomic_or32(uint32_t *p, uint32_t v)
{
    return atomicOr(p, v);
}
VXK_FN uint64_t vxk_atomic_or64(uint64_t *p, uint64_t v)
{
    return atomicOr((unsigned long long *)p, (unsigned long long)v);
}
VXK_FN uint32_t vxk_atomic_min32(uint32_t *p, uint32_t v)
{
    return atomicMin(p, v);
}
VXK_FN uint32_t vxk_atomic_max32(uint32_t *p, uint32_t v)
{
    return atomicMax(p, v);
}
VXK_FN uint64_t vxk_atomic_min64(uint64_t *p, uint64_t v)
{
    return atomicMin((unsigned long long *)p, (unsigned long long)v);
}
/* The old value; equal to `expected` when the swap happened. */
VXK_FN uint32_t vxk_atomic_cas32(uint32_t *p, uint32_t expected, uint32_t v)
{
    return atomicCAS(p, expected, v);
}
VXK_FN uint64_t vxk_atomic_cas64(uint64_t *p, uint64_t expected, uint64_t v)
{
    return atomicCAS((unsigned long long *)p, (unsigned long long)expected, (unsigned long long)v);
}
/* Loads beside other elements' atomics that may see an old value: cheap, for guesses that an atomic
 * confirms. */
VXK_FN uint32_t vxk_peek32(const uint32_t *p)
{
    return *p;
}
VXK_FN uint64_t vxk_peek64(const uint64_t *p)
{
    return *p;
}
/* Everything this element wrote is seen by others before what it writes next. */
VXK_FN void vxk_fence(void)
{
    __threadfence();
}
/* Publishes: who loads the value with vxk_load32 sees what was written before a vxk_fence in front of it. */
VXK_FN void vxk_store32(uint32_t *p, uint32_t v)
{
    atomicExch(p, v);
}

/* Eight lanes, see below. */
struct vxk_f8 {
    float lane[8];
};
struct vxk_m8 {
    uint32_t lane[8];
};
#define VXK_LANES(type, of)                                                                                  \
    type o;                                                                                                  \
    for (int k = 0; k < 8; k++)                                                                              \
        o.lane[k] = (of);                                                                                    \
    return o
VXK_FN struct vxk_f8 operator+(const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_f8, a.lane[k] + b.lane[k]);
}
VXK_FN struct vxk_f8 operator-(const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_f8, a.lane[k] - b.lane[k]);
}
VXK_FN struct vxk_f8 operator*(const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_f8, a.lane[k] * b.lane[k]);
}
VXK_FN struct vxk_f8 operator/(const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_f8, a.lane[k] / b.lane[k]);
}
VXK_FN struct vxk_m8 operator|(const struct vxk_m8 &a, const struct vxk_m8 &b)
{
    VXK_LANES(struct vxk_m8, a.lane[k] | b.lane[k]);
}
VXK_FN struct vxk_m8 operator~(const struct vxk_m8 &a)
{
    VXK_LANES(struct vxk_m8, ~a.lane[k]);
}
VXK_FN struct vxk_m8 operator+(const struct vxk_m8 &a, const struct vxk_m8 &b)
{
    VXK_LANES(struct vxk_m8, a.lane[k] + b.lane[k]);
}
VXK_FN struct vxk_m8 operator&(const struct vxk_m8 &a, const struct vxk_m8 &b)
{
    VXK_LANES(struct vxk_m8, a.lane[k] & b.lane[k]);
}
VXK_FN struct vxk_m8 vxk_less8(const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_m8, a.lane[k] < b.lane[k] ? ~0u : 0);
}
VXK_FN struct vxk_f8 vxk_where8(const struct vxk_m8 &m, const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_f8, m.lane[k] ? a.lane[k] : b.lane[k]);
}
VXK_FN struct vxk_m8 vxk_same8(const struct vxk_f8 &a, const struct vxk_f8 &b)
{
    VXK_LANES(struct vxk_m8, a.lane[k] == b.lane[k] ? ~0u : 0);
}
/* All bits of all lanes are set. */
VXK_FN int vxk_holds8(const struct vxk_m8 &m)
{
    uint32_t all = ~0u;
    for (int k = 0; k < 8; k++)
        all &= m.lane[k];
    return all == ~0u;
}
/* a where the lane's bits are set, else 0. */
VXK_FN struct vxk_f8 vxk_keep8(const struct vxk_m8 &m, const struct vxk_f8 &a)
{
    VXK_LANES(struct vxk_f8, m.lane[k] ? a.lane[k] : 0.0f);
}
VXK_FN struct vxk_f8 vxk_abs8(const struct vxk_f8 &a)
{
    VXK_LANES(struct vxk_f8, fabsf(a.lane[k]));
}
VXK_FN struct vxk_f8 vxk_all8(float x)
{
    VXK_LANES(struct vxk_f8, x);
}
VXK_FN struct vxk_m8 vxk_bits8(uint32_t x)
{
    VXK_LANES(struct vxk_m8, x);
}
VXK_FN struct vxk_f8 vxk_load8(const float *p)
{
    VXK_LANES(struct vxk_f8, p[k]);
}
VXK_FN void vxk_store8(float *p, const struct vxk_f8 &a)
{
    for (int k = 0; k < 8; k++)
        p[k] = a.lane[k];
}
VXK_FN void vxk_store_bits8(uint32_t *p, const struct vxk_m8 &a)
{
    for (int k = 0; k < 8; k++)
        p[k] = a.lane[k];
}
#undef VXK_LANES
/* The four floats of the records at[k], lane by lane. */
VXK_FN void vxk_gather8(const float *p, const int32_t at[8], float a[8], float b[8], float c[8], float d[8])
{
    for (int k = 0; k < 8; k++) {
        a[k] = p[4 * at[k]];
        b[k] = p[4 * at[k] + 1];
        c[k] = p[4 * at[k] + 2];
        d[k] = p[4 * at[k] + 3];
    }
}
/* to[0 .. 7] = from[0 .. 7], numbers of four bytes. */
VXK_FN void vxk_copy8(void *to, const void *from)
{
    for (int k = 0; k < 8; k++)
        ((uint32_t *)to)[k] = ((const uint32_t *)from)[k];
}
VXK_FN void vxk_prefetch(const void *p)
{
    (void)p;
}

#else /* C11 on the CPU */

#include <math.h>
#define VXK_FN       static inline __attribute__((unused))
/* For loops that become vector code only while nothing round them is known. */
#define VXK_FN_APART static __attribute__((unused, noinline))
/* For parts of such loops. */
#define VXK_FN_WOVEN static inline __attribute__((unused, always_inline))
#define VXK_CONST    static const
#define VXK_ALIGN(n) _Alignas(n)
VXK_FN uint32_t vxk_popc32(uint32_t x)
{
    return (uint32_t)__builtin_popcount(x);
}
VXK_FN uint32_t vxk_popc64(uint64_t x)
{
    return (uint32_t)__builtin_popcountll(x);
}
VXK_FN uint32_t vxk_ctz32(uint32_t x)
{
    return (uint32_t)__builtin_ctz(x);
}
VXK_FN uint32_t vxk_ctz64(uint64_t x)
{
    return (uint32_t)__builtin_ctzll(x);
}
VXK_FN uint32_t vxk_clz32(uint32_t x)
{
    return (uint32_t)__builtin_clz(x);
}
VXK_FN uint32_t vxk_clz64(uint64_t x)
{
    return (uint32_t)__builtin_clzll(x);
}
VXK_FN float vxk_sqrt(float x)
{
    return sqrtf(x);
}
VXK_FN float vxk_reciprocal(float x)
{
    return 1.0f / x;
}
VXK_FN float vxk_quotient(float x, float y)
{
    return x / y;
}
VXK_FN float vxk_floor(float x)
{
    return floorf(x);
}
VXK_FN float vxk_ceil(float x)
{
    return ceilf(x);
}
VXK_FN float vxk_abs(float x)
{
    return fabsf(x);
}
VXK_FN float vxk_least(float a, float b)
{
    return a < b ? a : b;
}
VXK_FN float vxk_most(float a, float b)
{
    return a > b ? a : b;
}
VXK_FN int32_t vxk_rint(float x)
{
    return (int32_t)lrintf(x);
}
VXK_FN uint32_t vxk_atomic_add32(uint32_t *p, uint32_t v)
{
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
VXK_FN uint64_t vxk_atomic_add64(uint64_t *p, uint64_t v)
{
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
VXK_FN uint32_t vxk_count_up(uint32_t *counter)
{
    return vxk_atomic_add32(counter, 1);
}
VXK_FN uint32_t vxk_atomic_or32(uint32_t *p, uint32_t v)
{
    return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}
VXK_FN uint64_t vxk_atomic_or64(uint64_t *p, uint64_t v)
{
    return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}
VXK_FN uint32_t vxk_atomic_cas32(uint32_t *p, uint32_t expected, uint32_t v)
{
    __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}
VXK_FN uint64_t vxk_atomic_cas64(uint64_t *p, uint64_t expected, uint64_t v)
{
    __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}
VXK_FN uint32_t vxk_load32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
VXK_FN uint64_t vxk_load64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
VXK_FN uint32_t vxk_relaxed32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
VXK_FN uint64_t vxk_relaxed64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
VXK_FN uint32_t vxk_peek32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
VXK_FN uint64_t vxk_peek64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
VXK_FN void vxk_fence(void)
{
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
}
VXK_FN void vxk_store32(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
VXK_FN uint32_t vxk_atomic_min32(uint32_t *p, uint32_t v)
{
    uint32_t old = vxk_load32(p);
    while (v < old) {
        uint32_t seen = vxk_atomic_cas32(p, old, v);
        if (seen == old)
            break;
        old = seen;
    }
    return old;
}
VXK_FN uint32_t vxk_atomic_max32(uint32_t *p, uint32_t v)
{
    uint32_t old = vxk_load32(p);
    while (v > old) {
        uint32_t seen = vxk_atomic_cas32(p, old, v);
        if (seen == old)
            break;
        old = seen;
    }
    return old;
}
VXK_FN uint64_t vxk_atomic_min64(uint64_t *p, uint64_t v)
{
    uint64_t old = vxk_load64(p);
    while (v < old) {
        uint64_t seen = vxk_atomic_cas64(p, old, v);
        if (seen == old)
            break;
        old = seen;
    }
    return old;
}

/*
 * Eight lanes that a CPU computes in one go, where compilers don't see it by themselves: + - * / of vxk_f8,
 * + & | ~ of vxk_m8 (bits; all set where a comparison holds).  Each lane rounds like a float.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* they never cross a call: everything here is inlined */
#endif
typedef float vxk_f8 __attribute__((vector_size(32)));
typedef uint32_t vxk_m8 __attribute__((vector_size(32)));
VXK_FN_WOVEN vxk_m8 vxk_less8(vxk_f8 a, vxk_f8 b)
{
    return (vxk_m8)(a < b);
}
VXK_FN_WOVEN vxk_m8 vxk_same8(vxk_f8 a, vxk_f8 b)
{
    return (vxk_m8)(a == b);
}
/* All bits of all lanes are set. */
VXK_FN_WOVEN int vxk_holds8(vxk_m8 m)
{
    uint64_t part[4];
    __builtin_memcpy(part, &m, sizeof part);
    return (part[0] & part[1] & part[2] & part[3]) == ~0ull;
}
VXK_FN_WOVEN vxk_f8 vxk_where8(vxk_m8 m, vxk_f8 a, vxk_f8 b)
{
    return (vxk_f8)((m & (vxk_m8)a) | (~m & (vxk_m8)b));
}
VXK_FN_WOVEN vxk_f8 vxk_keep8(vxk_m8 m, vxk_f8 a)
{
    return (vxk_f8)(m & (vxk_m8)a);
}
VXK_FN_WOVEN vxk_f8 vxk_abs8(vxk_f8 a)
{
    return (vxk_f8)((vxk_m8)a & 0x7fffffffu);
}
VXK_FN_WOVEN vxk_f8 vxk_all8(float x)
{
    return (vxk_f8){x, x, x, x, x, x, x, x};
}
VXK_FN_WOVEN vxk_m8 vxk_bits8(uint32_t x)
{
    return (vxk_m8){x, x, x, x, x, x, x, x};
}
VXK_FN_WOVEN vxk_f8 vxk_load8(const float *p)
{
    vxk_f8 a;
    __builtin_memcpy(&a, p, sizeof a);
    return a;
}
VXK_FN_WOVEN void vxk_store8(float *p, vxk_f8 a)
{
    __builtin_memcpy(p, &a, sizeof a);
}
VXK_FN_WOVEN void vxk_store_bits8(uint32_t *p, vxk_m8 a)
{
    __builtin_memcpy(p, &a, sizeof a);
}
/* The four floats of the records at[k], lane by lane. */
VXK_FN_WOVEN void vxk_gather8(const float *p, const int32_t at[8], float a[8], float b[8], float c[8],
                              float d[8])
{
    typedef float f4 __attribute__((vector_size(16)));
    f4 r[8];
    vxk_f8 t[4], low[2], high[2];
    for (int k = 0; k < 8; k++)
        __builtin_memcpy(&r[k], p + 4 * at[k], sizeof r[k]);
    for (int k = 0; k < 4; k++)
        t[k] = __builtin_shufflevector(r[k], r[k + 4], 0, 1, 2, 3, 4, 5, 6, 7);
    for (int k = 0; k < 2; k++) {
        low[k] = __builtin_shufflevector(t[2 * k], t[2 * k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        high[k] = __builtin_shufflevector(t[2 * k], t[2 * k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    vxk_store8(a, __builtin_shufflevector(low[0], low[1], 0, 1, 8, 9, 4, 5, 12, 13));
    vxk_store8(b, __builtin_shufflevector(low[0], low[1], 2, 3, 10, 11, 6, 7, 14, 15));
    vxk_store8(c, __builtin_shufflevector(high[0], high[1], 0, 1, 8, 9, 4, 5, 12, 13));
    vxk_store8(d, __builtin_shufflevector(high[0], high[1], 2, 3, 10, 11, 6, 7, 14, 15));
}
/* to[0 .. 7] = from[0 .. 7], numbers of four bytes, in one go. */
VXK_FN_WOVEN void vxk_copy8(void *to, const void *from)
{
    vxk_m8 a;
    __builtin_memcpy(&a, from, sizeof a);
    __builtin_memcpy(to, &a, sizeof a);
}
/* Says that this will be read soon. */
VXK_FN_WOVEN void vxk_prefetch(const void *p)
{
    __builtin_prefetch(p);
}

#endif

VXK_FN float vxk_min(float a, float b)
{
    return a < b ? a : b;
}
VXK_FN float vxk_max(float a, float b)
{
    return a > b ? a : b;
}
VXK_FN int32_t vxk_mini(int32_t a, int32_t b)
{
    return a < b ? a : b;
}
VXK_FN int32_t vxk_maxi(int32_t a, int32_t b)
{
    return a > b ? a : b;
}
VXK_FN uint32_t vxk_minu(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}
VXK_FN uint32_t vxk_maxu(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

#endif
