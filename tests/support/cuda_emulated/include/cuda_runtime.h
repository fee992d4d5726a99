/*
 * cuda_runtime.h - stand-in for what nvcc knows by itself: a kernel is a C++ function that runs once for each
 * thread (README.md).  Included in front of every .cu file.
 */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#include "../engine.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __forceinline__ inline
#define __align__(n)    __attribute__((aligned(n)))
#define __launch_bounds__(...)
/* Blocks run one after the other, so one copy is enough; the section lets the engine spoil it between them.
 */
#define __shared__ static __attribute__((section("emulated_shared")))

/* What dev.h leaves to the compiler. */
#define VXK_DYNAMIC_SHARED(type, name) type *const name = (type *)emulated::dynamic_shared()
#define VXK_GLOBAL(kernel)             ((const void *)&emulated::kernel_of<kernel>::entry)
template <typename T> static inline T *vxk_opaque(T *p)
{
    return p;
}
static inline uint32_t vxk_load32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline uint64_t vxk_load64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline uint32_t vxk_relaxed32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
static inline uint64_t vxk_relaxed64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Vectors, aligned as the device wants them */

#define EMULATED_VECTOR2(type, element)                                                                      \
    struct alignas(2 * sizeof(element)) type {                                                               \
        element x, y;                                                                                        \
    };                                                                                                       \
    static inline type make_##type(element x, element y)                                                     \
    {                                                                                                        \
        return {x, y};                                                                                       \
    }
#define EMULATED_VECTOR4(type, element)                                                                      \
    struct alignas(4 * sizeof(element)) type {                                                               \
        element x, y, z, w;                                                                                  \
    };                                                                                                       \
    static inline type make_##type(element x, element y, element z, element w)                               \
    {                                                                                                        \
        return {x, y, z, w};                                                                                 \
    }
EMULATED_VECTOR2(uint2, unsigned)
EMULATED_VECTOR2(ulonglong2, unsigned long long)
EMULATED_VECTOR4(uint4, unsigned)
EMULATED_VECTOR4(int4, int)
EMULATED_VECTOR4(float4, float)

/* One lane's work */

template <typename A, typename B> static inline typename std::common_type<A, B>::type min(A a, B b)
{
    typename std::common_type<A, B>::type x = a, y = b;
    return y < x ? y : x;
}
template <typename A, typename B> static inline typename std::common_type<A, B>::type max(A a, B b)
{
    typename std::common_type<A, B>::type x = a, y = b;
    return x < y ? y : x;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    unsigned long long from = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int k = 0; k < 4; k++)
        r |= (unsigned)(from >> 8 * (s >> 4 * k & 7) & 255) << 8 * k;
    return r;
}
static inline float __fsqrt_rn(float x)
{
    return std::sqrt(x);
}
static inline float vxk_reciprocal(float x)
{
    return 1.0f / x;
}
/* Off by as much as a GPU's may be. */
static inline float vxk_rough_reciprocal(float x)
{
    return 1.0f / x * 1.0000002f;
}
static inline float __fmaf_rn(float x, float y, float z)
{
    return (float)((double)x * y + z);
}
static inline float vxk_quotient(float x, float y)
{
    return x / y;
}
static inline float __int_as_float(int x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
static inline int __float2int_rn(float x)
{
    return x != x               ? 0
           : x >= 2147483648.0f ? 2147483647
           : x < -2147483648.0f ? -2147483647 - 1
                                : (int)lrintf(x);
}
template <typename T> static inline T __ldg(const T *p)
{
    return *p;
}
template <typename T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <typename T> static inline void __stcs(T *p, T v)
{
    *p = v;
}

/* Atomics.  Nothing runs beside a lane. */

template <typename T> using emulated_same = typename std::common_type<T>::type; /* no part in deduction */
template <typename T> static inline T atomicAdd(T *p, emulated_same<T> v)
{
    T old = *p;
    *p = old + v;
    return old;
}
template <typename T> static inline T atomicOr(T *p, emulated_same<T> v)
{
    T old = *p;
    *p = old | v;
    return old;
}
template <typename T> static inline T atomicMin(T *p, emulated_same<T> v)
{
    T old = *p;
    *p = v < old ? v : old;
    return old;
}
template <typename T> static inline T atomicMax(T *p, emulated_same<T> v)
{
    T old = *p;
    *p = v > old ? v : old;
    return old;
}
template <typename T> static inline T atomicExch(T *p, emulated_same<T> v)
{
    T old = *p;
    *p = v;
    return old;
}
template <typename T> static inline T atomicCAS(T *p, emulated_same<T> expected, emulated_same<T> v)
{
    T old = *p;
    if (old == expected)
        *p = v;
    return old;
}
static inline void __threadfence(void)
{
}

/* What lanes do together.  `file` and `line` say where, for the words of a failure; callers leave them out.
 */

#define EMULATED_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
/* Which lanes happen to run side by side is the device's choice: here none does. */
static inline unsigned __activemask(void)
{
    return 1u << (threadIdx.x & 31);
}
static inline void __syncthreads(EMULATED_HERE)
{
    emulated::block_meets(0, file, line);
}
static inline int __syncthreads_or(int x, EMULATED_HERE)
{
    return emulated::block_meets(x != 0, file, line);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATED_HERE)
{
    emulated::warp_meets(emulated::SYNC, mask, 0, 0, 32, file, line);
}
static inline unsigned __ballot_sync(unsigned mask, int x, EMULATED_HERE)
{
    return (unsigned)emulated::warp_meets(emulated::BALLOT, mask, x != 0, 0, 32, file, line);
}
static inline int __any_sync(unsigned mask, int x, EMULATED_HERE)
{
    return (int)emulated::warp_meets(emulated::ANY, mask, x != 0, 0, 32, file, line);
}
#if __CUDA_ARCH__ >= 800
static inline unsigned __reduce_add_sync(unsigned mask, unsigned x, EMULATED_HERE)
{
    return (unsigned)emulated::warp_meets(emulated::ADD, mask, x, 0, 32, file, line);
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned x, EMULATED_HERE)
{
    return (unsigned)emulated::warp_meets(emulated::OR, mask, x, 0, 32, file, line);
}
#endif
template <typename T>
static inline T emulated_shuffle(emulated::meeting kind, unsigned mask, T x, int which, int width,
                                 const char *file, int line)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    bits = emulated::warp_meets(kind, mask, bits, which, width, file, line);
    memcpy(&x, &bits, sizeof x);
    return x;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T x, int lane, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle(emulated::SHUFFLE, mask, x, lane, width, file, line);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle(emulated::SHUFFLE_UP, mask, x, (int)by, width, file, line);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle(emulated::SHUFFLE_DOWN, mask, x, (int)by, width, file, line);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T x, int with, int width = 32, EMULATED_HERE)
{
    return emulated_shuffle(emulated::SHUFFLE_XOR, mask, x, with, width, file, line);
}
#undef EMULATED_HERE

#if __CUDA_ARCH__ >= 900
static inline void cudaGridDependencySynchronize(void)
{
    emulated::waited_for_grid_before();
}
static inline void cudaTriggerProgrammaticLaunchCompletion(void)
{
}
#endif

/* Launches: a kernel with a copy of its arguments */

namespace emulated
{

template <typename... P> struct call_of : call {
    void (*kernel)(P...);
    std::tuple<P...> args;
    template <typename... A> call_of(void (*k)(P...), const A &...a) : kernel(k), args(a...)
    {
    }
    void run() const override
    {
        std::apply(kernel, args);
    }
    const void *address() const override
    {
        return (const void *)kernel;
    }
};

/* A kernel that C code launches by address, its arguments behind pointers. */
template <auto KERNEL> struct kernel_of;
template <typename... P, void (*KERNEL)(P...)> struct kernel_of<KERNEL> {
    template <size_t... I>
    static std::shared_ptr<const call> from(void *const *args, std::index_sequence<I...>)
    {
        return std::make_shared<call_of<P...>>(KERNEL, *(const std::remove_const_t<P> *)args[I]...);
    }
    static std::shared_ptr<const call> make(void *const *args)
    {
        return from(args, std::index_sequence_for<P...>());
    }
    static constexpr kernel_entry entry = {make};
};

} // namespace emulated

template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                                             const A &...args)
{
    return emulated::launch(*config, std::make_shared<emulated::call_of<P...>>(kernel, args...));
}

#endif
