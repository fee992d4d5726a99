/*
 * vxk.h - one interface to the three backends (cpu, guard, cuda).
 *
 * A backend gives device memory, ordered queues, launches of the element functions in body/, and the bulk
 * primitives (scan, sort, select, reduce) that are not element functions.  It knows nothing of maps.
 *
 * Kernel launches and copies are asynchronous and run in the order in which a queue got them.  Queues of one
 * device run beside each other.  A device error is sticky: it poisons the queue, and every later call on it
 * returns VX_E_DEVICE (vxk_queue_error_text says what the driver said).
 *
 * Thread: a queue is used by one thread at a time; a device by any number.
 */
#ifndef VXK_H
#define VXK_H

#include "base/vx_err.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vxk_backend { VXK_CPU, VXK_CUDA, VXK_GUARD };

/* Every element function of body/, by topic.  A kernel's number is its place in this list. */
enum vxk_kernel {
#define VXK_KERNEL(name) VXK_K_##name,
#include "body/kernels.def"
#undef VXK_KERNEL
    VXK_N_KERNELS
};

struct vxk_info {
    enum vxk_backend backend;
    char name[96];         /* "NVIDIA H200" or "CPU, 2 threads" */
    uint64_t total_bytes;  /* of the device, or of the machine */
    uint64_t free_bytes;   /* at this moment */
    int n_workers;         /* threads, or multiprocessors */
    uint64_t pinned_bytes; /* host memory locked for copies, idle blocks included; 0 where there is no such
                              thing */
    uint64_t n_allocs;     /* times that the driver or system was asked for a block so far (guard: 0) */
};

struct vxk_dev;
struct vxk_queue;
struct vxk_event;

/*
 * A growing array: `reserve` claims addresses only, `commit` makes the first `n` bytes usable (n never
 * shrinks). The base never moves, so device pointers into it stay valid while it grows.
 */
struct vxk_range {
    void *base;
    uint64_t reserved_bytes;
    uint64_t committed_bytes;
    void *impl; /* the backend's */
};

struct vxk_ops {
    void (*close)(struct vxk_dev *dev);
    void (*info)(struct vxk_dev *dev, struct vxk_info *out);

    /* Device memory, 256-byte aligned, contents undefined.  Freed blocks are kept for reuse (`trim` gives
     * them back), so a warm loop asks the driver for nothing.  `free` may be called while work that uses the
     * block is queued on any queue of this device only after that work was waited for. */
    vx_err (*alloc)(struct vxk_dev *dev, uint64_t bytes, void **out);
    void (*free)(struct vxk_dev *dev, void *ptr);
    void (*trim)(struct vxk_dev *dev);
    /* Host memory that copies run fastest from (pinned on CUDA).  Kernels may read and write it too, over the
     * bus: for small things that are read or written once. */
    vx_err (*alloc_host)(struct vxk_dev *dev, uint64_t bytes, void **out);
    void (*free_host)(struct vxk_dev *dev, void *ptr);
    /* The address by which kernels read host memory in place, or NULL: it has to be uploaded.  On CUDA memory
     * of alloc_host, over the bus: for what is read once. */
    const void *(*reach)(struct vxk_dev *dev, const void *host);

    vx_err (*reserve)(struct vxk_dev *dev, uint64_t bytes, struct vxk_range *out);
    vx_err (*commit)(struct vxk_dev *dev, struct vxk_range *range, uint64_t bytes);
    void (*release)(struct vxk_dev *dev, struct vxk_range *range);

    /* priority: 0 normal, 1 high (queries). */
    vx_err (*queue_create)(struct vxk_dev *dev, int priority, struct vxk_queue **out);
    void (*queue_destroy)(struct vxk_queue *q);
    /* Blocks until all work of the queue is done. */
    vx_err (*wait)(struct vxk_queue *q);
    vx_err (*event_create)(struct vxk_dev *dev, struct vxk_event **out);
    void (*event_destroy)(struct vxk_event *e);
    vx_err (*event_record)(struct vxk_queue *q, struct vxk_event *e);
    /* Later work of q waits for e (no host wait). */
    vx_err (*event_wait)(struct vxk_queue *q, struct vxk_event *e);
    /* Milliseconds of device time between two recorded events that were waited for. */
    vx_err (*event_elapsed)(struct vxk_event *from, struct vxk_event *to, float *ms);

    /* Host memory must stay, and what is uploaded must not change, until the queue was waited for. */
    vx_err (*upload)(struct vxk_queue *q, void *dst_dev, const void *src_host, uint64_t bytes);
    vx_err (*download)(struct vxk_queue *q, void *dst_host, const void *src_dev, uint64_t bytes);
    vx_err (*copy)(struct vxk_queue *q, void *dst_dev, const void *src_dev, uint64_t bytes);
    vx_err (*fill)(struct vxk_queue *q, void *dst_dev, int byte, uint64_t bytes);

    /* Runs element function `k` for i = 0 .. n-1 in any order, side by side.  *args is copied before the call
     * returns.  args_bytes <= VXK_MAX_ARGS. */
    vx_err (*launch)(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes, uint32_t n);
    /* The same with the count on the device: i = 0 .. min(*n_dev, n_max / per) * per - 1. */
    vx_err (*launch_counted)(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                             const uint32_t *n_dev, uint32_t per, uint32_t n_max);

    /* All pointers are device memory.  In and out may be the same array for scans. */
    /* out[i] = sum of in[0..i-1] for i = 0..n: out has n + 1 entries, the last is the total. */
    vx_err (*scan_u32)(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
    vx_err (*scan_u64)(struct vxk_queue *q, const uint64_t *in, uint64_t *out, uint32_t n);
    /* Sorts by key, ascending, stable, in place; values may be NULL. */
    vx_err (*sort_u64)(struct vxk_queue *q, uint64_t *keys, uint32_t *values, uint32_t n);
    /* out = the i with flags[i] != 0, ascending; *n_out (device) their number.  out has room for n. */
    vx_err (*select)(struct vxk_queue *q, const uint8_t *flags, uint32_t *out, uint32_t *n_out, uint32_t n);
    /* *out (device) = sum, or minimum / maximum (0xffffffff / 0 when n = 0). */
    vx_err (*sum_u32)(struct vxk_queue *q, const uint32_t *in, uint64_t *out, uint32_t n);
    vx_err (*min_u32)(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
    vx_err (*max_u32)(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);

    const char *(*queue_error_text)(struct vxk_queue *q);
};

enum { VXK_MAX_ARGS = 2048 };

struct vxk_dev {
    const struct vxk_ops *ops;
    enum vxk_backend backend;
};
struct vxk_queue {
    struct vxk_dev *dev;
    uint64_t n_launches, n_waits; /* so far; for measurements */
};

/*
 * Opens a device.  backend; index: which GPU (ignored by cpu and guard); n_threads: CPU threads, 0 = as many
 * as the machine has.  detail (may be NULL) says what was missing.
 *
 * Errors: VX_E_UNAVAILABLE no such device, or no driver; VX_E_UNIMPLEMENTED built without CUDA; VX_E_NOMEM.
 * Thread: any; may block while a driver starts.
 */
vx_err vxk_open(enum vxk_backend backend, int index, int n_threads, struct vxk_dev **out,
                struct vx_detail *detail);
/* True when the CUDA backend is built in and a device answers. */
int vxk_cuda_available(void);
/* Name of a kernel ("depth_prepare"), for messages and traces. */
const char *vxk_kernel_name(enum vxk_kernel k);

/* The one way to launch: VXK_LAUNCH(q, depth_prepare, &args, n), where args is a struct
 * vxk_depth_prepare_args. */
#define VXK_LAUNCH(q, name, args, n)                                                                         \
    ((q)->dev->ops->launch((q), VXK_K_##name, (const struct vxk_##name##_args *)(args),                      \
                           sizeof(struct vxk_##name##_args), (n)))
#define VXK_LAUNCH_COUNTED(q, name, args, n_dev, per, n_max)                                                 \
    ((q)->dev->ops->launch_counted((q), VXK_K_##name, (const struct vxk_##name##_args *)(args),              \
                                   sizeof(struct vxk_##name##_args), (n_dev), (per), (n_max)))

#ifdef __cplusplus
}
#endif

#endif
