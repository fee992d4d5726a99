/*
 * device.h - parts of the CUDA backend that its files share; for C and for CUDA C.
 *
 * Host code of this backend is C on the runtime's C API; nvcc compiles the element functions (one .cu a
 * topic) and the CUB primitives only.
 */
#ifndef VXK_CUDA_DEVICE_H
#define VXK_CUDA_DEVICE_H

#include "../base/blocks.h"
#include "../vxk.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VXK_CUDA_BLOCK = 256 };
/* 1 where device memory is the host's (tests/support/cuda_emulated): sanitizers then watch it. */
#ifndef VXK_CUDA_HOST_SEES
#define VXK_CUDA_HOST_SEES 0
#endif

struct vxk_cuda_kernel {
    const void *function;
    size_t args_bytes;
};
#define VXK_KERNEL(name) extern const struct vxk_cuda_kernel vxk_cuda_kernel_##name;
#include "../body/kernels.def"
#undef VXK_KERNEL

/* A launch as a tuned variant gets it (tuned.def): elements 0 .. n - 1, or with n_dev 0 .. min(*n_dev, n /
 * per) * per
 * - 1.  n > 0.  The arguments are the body's and are copied by the kernel launch. */
struct vxk_cuda_launch {
    cudaStream_t stream;
    uint32_t n_multiprocessors;
    const void *args;
    uint32_t n;
    const uint32_t *n_dev;
    uint32_t per;
    int early; /* the kernel may start before the one in front of it ended (begin.cuh) */
};
typedef cudaError_t vxk_cuda_tuned_fn(const struct vxk_cuda_launch *launch);
#define VXK_TUNED(name) vxk_cuda_tuned_fn vxk_cuda_tuned_##name;
#include "tuned.def"
#undef VXK_TUNED

struct vxk_cuda_dev {
    struct vxk_dev base;
    int index;
    int n_multiprocessors;
    int tuned; /* use the variants of tuned.def */
    int early; /* kernels may start before the one in front of them ended (begin.cuh) */
    int priority_low, priority_high;
    char name[96];
    int failed;               /* something other than a lack of memory went wrong (atomic) */
    struct vxk_blocks blocks; /* device memory */
    struct vxk_blocks pinned; /* host memory */
    pthread_mutex_t idle_lock;
    struct vxk_cuda_queue *idle; /* queues that were destroyed: making a stream takes longer than a query */
};

struct vxk_cuda_queue {
    struct vxk_queue base;
    struct vxk_cuda_queue *next_idle;
    cudaStream_t stream;
    int priority;
    void *scratch; /* of the primitives; grows */
    uint64_t scratch_bytes;
    int poisoned;
    char error[256];
};

/* Makes the queue's device current for this thread.  VX_E_DEVICE when the queue is poisoned. */
vx_err vxk_cuda_enter(struct vxk_queue *q);
/* The one place where a CUDA error becomes ours: anything but success poisons the queue. */
vx_err vxk_cuda_check(struct vxk_queue *q, cudaError_t e, const char *what);
/* The code for an allocation that failed: the device is full, or the device failed. */
vx_err vxk_cuda_no_memory(struct vxk_cuda_dev *d);
void vxk_cuda_set_failed(struct vxk_cuda_dev *d);

/* vxk_ops, in ranges.c and primitives.c */
vx_err vxk_cuda_reserve(struct vxk_dev *dev, uint64_t bytes, struct vxk_range *out);
vx_err vxk_cuda_commit(struct vxk_dev *dev, struct vxk_range *range, uint64_t bytes);
void vxk_cuda_release(struct vxk_dev *dev, struct vxk_range *range);
vx_err vxk_cuda_scan_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
vx_err vxk_cuda_scan_u64(struct vxk_queue *q, const uint64_t *in, uint64_t *out, uint32_t n);
vx_err vxk_cuda_sort_u64(struct vxk_queue *q, uint64_t *keys, uint32_t *values, uint32_t n);
vx_err vxk_cuda_select(struct vxk_queue *q, const uint8_t *flags, uint32_t *out, uint32_t *n_out, uint32_t n);
vx_err vxk_cuda_sum_u32(struct vxk_queue *q, const uint32_t *in, uint64_t *out, uint32_t n);
vx_err vxk_cuda_min_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
vx_err vxk_cuda_max_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
