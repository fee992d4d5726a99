/* What kernels/cuda/cub.h promises, in the simplest way; stands in for the cub_*.cu files. */
#include "../../../kernels/cuda/cub.h"

#include "engine.h"
#include "runtime.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace
{

/* Scratch that is too small or shared by two at once should show: all of it is written to. */
enum { SCRATCH_BYTES = 1031 };

cudaError_t queue(void *scratch, size_t *scratch_bytes, cudaStream_t stream, std::function<void()> run)
{
    if (!scratch) {
        *scratch_bytes = SCRATCH_BYTES;
        return cudaSuccess;
    }
    if (*scratch_bytes < SCRATCH_BYTES)
        return emulated::say(cudaErrorInvalidValue);
    return emulated::queue(stream, [=] {
        memset(scratch, 0xcb, SCRATCH_BYTES);
        run();
    });
}

template <typename T> void scan(const T *in, T *out, uint32_t n)
{
    T sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        T x = in[i];
        out[i] = sum;
        sum += x;
    }
    out[n] = sum;
}

} // namespace

extern "C" {

cudaError_t vxk_cub_scan_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                             uint32_t n, cudaStream_t stream)
{
    return queue(scratch, scratch_bytes, stream, [=] { scan(in, out, n); });
}

cudaError_t vxk_cub_scan_u64(void *scratch, size_t *scratch_bytes, const uint64_t *in, uint64_t *out,
                             uint32_t n, cudaStream_t stream)
{
    return queue(scratch, scratch_bytes, stream, [=] { scan(in, out, n); });
}

/* The result lies in either array, as with CUB. */
cudaError_t vxk_cub_sort_u64(void *scratch, size_t *scratch_bytes, uint64_t *const keys[2],
                             uint32_t *const values[2], int *which, uint32_t n, cudaStream_t stream)
{
    static uint64_t state = emulated::seed() * 0xbf58476d1ce4e5b9ull | 1;
    uint64_t *const k_from = keys[*which], *k_to = k_from;
    uint32_t *const v_from = values[*which], *v_to = v_from;
    if (scratch && (emulated::random(state) & 1)) {
        *which ^= 1;
        k_to = keys[*which];
        v_to = values[*which];
    }
    return queue(scratch, scratch_bytes, stream, [=] {
        std::vector<uint32_t> order(n);
        std::vector<uint64_t> k(k_from, k_from + n);
        std::vector<uint32_t> v(v_from, v_from ? v_from + n : v_from);
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return k[a] < k[b]; });
        for (uint32_t i = 0; i < n; i++) {
            k_to[i] = k[order[i]];
            if (v_from)
                v_to[i] = v[order[i]];
        }
        if (k_to != k_from) { /* what is left there is nobody's */
            memset(k_from, 0xcb, n * sizeof *k_from);
            if (v_from)
                memset(v_from, 0xcb, n * sizeof *v_from);
        }
    });
}

cudaError_t vxk_cub_select(void *scratch, size_t *scratch_bytes, const uint8_t *flags, uint32_t *out,
                           uint32_t *n_out, uint32_t n, cudaStream_t stream)
{
    return queue(scratch, scratch_bytes, stream, [=] {
        uint32_t found = 0;
        for (uint32_t i = 0; i < n; i++)
            if (flags[i])
                out[found++] = i;
        *n_out = found;
    });
}

cudaError_t vxk_cub_sum_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint64_t *out,
                            uint32_t n, cudaStream_t stream)
{
    return queue(scratch, scratch_bytes, stream, [=] { *out = std::accumulate(in, in + n, (uint64_t)0); });
}

cudaError_t vxk_cub_min_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                            uint32_t n, cudaStream_t stream)
{
    return queue(scratch, scratch_bytes, stream, [=] { *out = *std::min_element(in, in + n); });
}

cudaError_t vxk_cub_max_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                            uint32_t n, cudaStream_t stream)
{
    return queue(scratch, scratch_bytes, stream, [=] { *out = *std::max_element(in, in + n); });
}

} // extern "C"
