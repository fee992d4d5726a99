#include "cub.h"

#include <cub/device/device_radix_sort.cuh>

cudaError_t vxk_cub_sort_u64(void *scratch, size_t *scratch_bytes, uint64_t *const keys[2],
                             uint32_t *const values[2], int *which, uint32_t n, cudaStream_t stream)
{
    cub::DoubleBuffer<uint64_t> k(keys[*which], keys[!*which]);
    cudaError_t e;
    if (values[*which]) {
        cub::DoubleBuffer<uint32_t> v(values[*which], values[!*which]);
        e = cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, k, v, n, 0, 64, stream);
    } else {
        e = cub::DeviceRadixSort::SortKeys(scratch, *scratch_bytes, k, n, 0, 64, stream);
    }
    if (scratch)
        *which ^= k.selector;
    return e;
}
