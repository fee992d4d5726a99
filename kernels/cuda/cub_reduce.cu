#include "cub.h"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

struct widen {
    __host__ __device__ uint64_t operator()(uint32_t x) const
    {
        return x;
    }
};
struct smaller {
    __host__ __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return b < a ? b : a;
    }
};
struct larger {
    __host__ __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return b > a ? b : a;
    }
};
struct is_set {
    __host__ __device__ bool operator()(uint8_t flag) const
    {
        return flag != 0;
    }
};

cudaError_t vxk_cub_select(void *scratch, size_t *scratch_bytes, const uint8_t *flags, uint32_t *out,
                           uint32_t *n_out, uint32_t n, cudaStream_t stream)
{
    auto set = thrust::make_transform_iterator(flags, is_set());
    return cub::DeviceSelect::Flagged(scratch, *scratch_bytes, thrust::counting_iterator<uint32_t>(0), set,
                                      out, n_out, (int64_t)n, stream);
}

cudaError_t vxk_cub_sum_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint64_t *out,
                            uint32_t n, cudaStream_t stream)
{
    auto wide = thrust::make_transform_iterator(in, widen());
    return cub::DeviceReduce::Sum(scratch, *scratch_bytes, wide, out, (int64_t)n, stream);
}

cudaError_t vxk_cub_min_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                            uint32_t n, cudaStream_t stream)
{
    return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, in, out, (int64_t)n, smaller(), UINT32_MAX,
                                     stream);
}

cudaError_t vxk_cub_max_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                            uint32_t n, cudaStream_t stream)
{
    return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, in, out, (int64_t)n, larger(), (uint32_t)0,
                                     stream);
}
