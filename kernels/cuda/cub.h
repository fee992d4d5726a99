/*
 * cub.h - CUB behind C functions.
 *
 * Each follows CUB's way: with scratch NULL it sets *scratch_bytes to what it needs and does nothing else;
 * otherwise it queues the work.  n > 0.
 */
#ifndef VXK_CUDA_CUB_H
#define VXK_CUDA_CUB_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n + 1 sums; in and out may be the same array. */
cudaError_t vxk_cub_scan_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                             uint32_t n, cudaStream_t stream);
cudaError_t vxk_cub_scan_u64(void *scratch, size_t *scratch_bytes, const uint64_t *in, uint64_t *out,
                             uint32_t n, cudaStream_t stream);
/* Sorts keys[*which] (and values[*which] unless NULL) with the other array as room; *which then says where
 * the result is. */
cudaError_t vxk_cub_sort_u64(void *scratch, size_t *scratch_bytes, uint64_t *const keys[2],
                             uint32_t *const values[2], int *which, uint32_t n, cudaStream_t stream);
cudaError_t vxk_cub_select(void *scratch, size_t *scratch_bytes, const uint8_t *flags, uint32_t *out,
                           uint32_t *n_out, uint32_t n, cudaStream_t stream);
cudaError_t vxk_cub_sum_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint64_t *out,
                            uint32_t n, cudaStream_t stream);
cudaError_t vxk_cub_min_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                            uint32_t n, cudaStream_t stream);
cudaError_t vxk_cub_max_u32(void *scratch, size_t *scratch_bytes, const uint32_t *in, uint32_t *out,
                            uint32_t n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
