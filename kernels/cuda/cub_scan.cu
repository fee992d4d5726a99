#include "cub.h"

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

/* Entry i of the input, 0 behind its end: a sum over n + 1 entries ends with the total. */
template <typename T> struct padded {
    const T *in;
    uint32_t n;
    __host__ __device__ T operator()(uint64_t i) const
    {
        return i < n ? in[i] : T(0);
    }
};

template <typename T>
static cudaError_t scan(void *scratch, size_t *scratch_bytes, const T *in, T *out, uint32_t n,
                        cudaStream_t stream)
{
    auto from = thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0), padded<T>{in, n});
    return cub::DeviceScan::ExclusiveSum(scratch, *scratch_bytes, from, out, (int64_t)n + 1, stream);
}

cudaError_t vxk_cub_scan_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                             uint32_t n, cudaStream_t stream)
{
    return scan<uint32_t>(scratch, scratch_bytes, in, out, n, stream);
}

cudaError_t vxk_cub_scan_u64(void *scratch, size_t *scratch_bytes, const uint64_t *in, uint64_t *out,
                             uint32_t n, cudaStream_t stream)
{
    return scan<uint64_t>(scratch, scratch_bytes, in, out, n, stream);
}
