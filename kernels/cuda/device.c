#include "device.h"

#include "../backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A counted launch does not know its size: it gets as many blocks as keep the device busy. */
enum { COUNTED_BLOCKS_A_MULTIPROCESSOR = 16, MIN_BLOCK = 32 };

struct vxk_event {
    cudaEvent_t event;
    int index; /* of the device */
};

static const struct vxk_cuda_kernel *const kernels[VXK_N_KERNELS] = {
#define VXK_KERNEL(name) &vxk_cuda_kernel_##name,
#include "../body/kernels.def"
#undef VXK_KERNEL
};

static vxk_cuda_tuned_fn *const tuned[VXK_N_KERNELS] = {
#define VXK_TUNED(name) [VXK_K_##name] = vxk_cuda_tuned_##name,
#include "tuned.def"
#undef VXK_TUNED
};

static struct vxk_cuda_dev *cuda_dev(struct vxk_dev *dev)
{
    return (struct vxk_cuda_dev *)dev;
}

static struct vxk_cuda_queue *cuda_queue(struct vxk_queue *q)
{
    return (struct vxk_cuda_queue *)q;
}

/* Errors */

void vxk_cuda_set_failed(struct vxk_cuda_dev *d)
{
    __atomic_store_n(&d->failed, 1, __ATOMIC_RELAXED);
}

vx_err vxk_cuda_no_memory(struct vxk_cuda_dev *d)
{
    return __atomic_load_n(&d->failed, __ATOMIC_RELAXED) ? VX_E_DEVICE : VX_E_EXHAUSTED;
}

vx_err vxk_cuda_check(struct vxk_queue *queue, cudaError_t e, const char *what)
{
    struct vxk_cuda_queue *q = cuda_queue(queue);
    if (e == cudaSuccess)
        return VX_OK;
    if (!q->poisoned)
        snprintf(q->error, sizeof q->error, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
    q->poisoned = 1;
    vxk_cuda_set_failed(cuda_dev(queue->dev));
    cudaGetLastError(); /* one that is not sticky must not show up in another queue's call */
    return VX_E_DEVICE;
}

vx_err vxk_cuda_enter(struct vxk_queue *q)
{
    if (cuda_queue(q)->poisoned)
        return VX_E_DEVICE;
    return vxk_cuda_check(q, cudaSetDevice(cuda_dev(q->dev)->index), "set device");
}

/* Memory */

/* What a raw allocation says; a lack of memory is no failure of the device. */
static void *raw_result(struct vxk_cuda_dev *d, cudaError_t e, void *ptr)
{
    if (e == cudaSuccess)
        return ptr;
    cudaGetLastError();
    if (e != cudaErrorMemoryAllocation)
        vxk_cuda_set_failed(d);
    return NULL;
}

static void *raw_alloc(void *ctx, uint64_t bytes)
{
    struct vxk_cuda_dev *d = ctx;
    void *ptr = NULL;
    cudaError_t e = cudaMalloc(&ptr, bytes); /* not as an argument: ptr may be read before the call */
    return raw_result(d, e, ptr);
}

static void raw_free(void *ctx, void *ptr, uint64_t bytes)
{
    (void)ctx;
    (void)bytes;
    cudaFree(ptr);
}

static void *raw_alloc_pinned(void *ctx, uint64_t bytes)
{
    struct vxk_cuda_dev *d = ctx;
    void *ptr = NULL;
    cudaError_t e = cudaHostAlloc(&ptr, bytes, cudaHostAllocPortable);
    return raw_result(d, e, ptr);
}

static void raw_free_pinned(void *ctx, void *ptr, uint64_t bytes)
{
    (void)ctx;
    (void)bytes;
    cudaFreeHost(ptr);
}

static vx_err cuda_alloc(struct vxk_dev *dev, uint64_t bytes, void **out)
{
    struct vxk_cuda_dev *d = cuda_dev(dev);
    *out = NULL;
    if (cudaSetDevice(d->index) != cudaSuccess)
        return VX_E_DEVICE;
    *out = vxk_blocks_take(&d->blocks, bytes);
    return *out ? VX_OK : vxk_cuda_no_memory(d);
}

static void cuda_free(struct vxk_dev *dev, void *ptr)
{
    vxk_blocks_give(&cuda_dev(dev)->blocks, ptr);
}

static vx_err cuda_alloc_host(struct vxk_dev *dev, uint64_t bytes, void **out)
{
    struct vxk_cuda_dev *d = cuda_dev(dev);
    *out = NULL;
    if (cudaSetDevice(d->index) != cudaSuccess)
        return VX_E_DEVICE;
    *out = vxk_blocks_take(&d->pinned, bytes);
    if (*out)
        return VX_OK;
    return __atomic_load_n(&d->failed, __ATOMIC_RELAXED) ? VX_E_DEVICE : VX_E_NOMEM;
}

static void cuda_free_host(struct vxk_dev *dev, void *ptr)
{
    vxk_blocks_give(&cuda_dev(dev)->pinned, ptr);
}

static const void *cuda_reach(struct vxk_dev *dev, const void *host)
{
    struct cudaPointerAttributes at;
    if (cudaSetDevice(cuda_dev(dev)->index) != cudaSuccess ||
        cudaPointerGetAttributes(&at, host) != cudaSuccess) {
        (void)cudaGetLastError(); /* memory that the driver does not know is no error */
        return NULL;
    }
    return at.type == cudaMemoryTypeHost ? at.devicePointer : NULL;
}

static void cuda_trim(struct vxk_dev *dev)
{
    struct vxk_cuda_dev *d = cuda_dev(dev);
    if (cudaSetDevice(d->index) != cudaSuccess)
        return;
    vxk_blocks_trim(&d->blocks);
    vxk_blocks_trim(&d->pinned);
}

/* Queues and events */

/* An idle queue of this priority, or NULL. */
static struct vxk_cuda_queue *take_idle(struct vxk_cuda_dev *d, int priority)
{
    struct vxk_cuda_queue **at, *q;
    pthread_mutex_lock(&d->idle_lock);
    at = &d->idle;
    while (*at && (*at)->priority != priority)
        at = &(*at)->next_idle;
    q = *at;
    if (q)
        *at = q->next_idle;
    pthread_mutex_unlock(&d->idle_lock);
    return q;
}

static vx_err cuda_queue_create(struct vxk_dev *dev, int priority, struct vxk_queue **out)
{
    struct vxk_cuda_dev *d = cuda_dev(dev);
    const int wanted = priority > 0 ? d->priority_high : d->priority_low;
    struct vxk_cuda_queue *q = take_idle(d, wanted);
    *out = NULL;
    if (!q && !(q = calloc(1, sizeof *q)))
        return VX_E_NOMEM;
    if (!q->stream &&
        (cudaSetDevice(d->index) != cudaSuccess ||
         cudaStreamCreateWithPriority(&q->stream, cudaStreamNonBlocking, wanted) != cudaSuccess)) {
        free(q);
        return VX_E_DEVICE;
    }
    q->base = (struct vxk_queue){.dev = dev};
    q->priority = wanted;
    *out = &q->base;
    return VX_OK;
}

static void free_queue(struct vxk_cuda_queue *q)
{
    cudaStreamDestroy(q->stream);
    free(q);
}

static void cuda_queue_destroy(struct vxk_queue *queue)
{
    struct vxk_cuda_queue *q = cuda_queue(queue);
    struct vxk_cuda_dev *d;
    int sound;
    if (!q)
        return;
    d = cuda_dev(queue->dev);
    cudaSetDevice(d->index);
    sound = cudaStreamSynchronize(q->stream) == cudaSuccess && !q->poisoned;
    vxk_blocks_give(&d->blocks, q->scratch);
    q->scratch = NULL;
    q->scratch_bytes = 0;
    if (!sound) {
        free_queue(q);
        return;
    }
    pthread_mutex_lock(&d->idle_lock);
    q->next_idle = d->idle;
    d->idle = q;
    pthread_mutex_unlock(&d->idle_lock);
}

static vx_err cuda_wait(struct vxk_queue *q)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    q->n_waits++;
    return vxk_cuda_check(q, cudaStreamSynchronize(cuda_queue(q)->stream), "wait");
}

static vx_err cuda_event_create(struct vxk_dev *dev, struct vxk_event **out)
{
    struct vxk_event *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return VX_E_NOMEM;
    e->index = cuda_dev(dev)->index;
    if (cudaSetDevice(e->index) != cudaSuccess || cudaEventCreate(&e->event) != cudaSuccess) {
        free(e);
        return VX_E_DEVICE;
    }
    *out = e;
    return VX_OK;
}

static void cuda_event_destroy(struct vxk_event *e)
{
    if (!e)
        return;
    cudaSetDevice(e->index);
    cudaEventDestroy(e->event);
    free(e);
}

static vx_err cuda_event_record(struct vxk_queue *q, struct vxk_event *e)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    return vxk_cuda_check(q, cudaEventRecord(e->event, cuda_queue(q)->stream), "record event");
}

static vx_err cuda_event_wait(struct vxk_queue *q, struct vxk_event *e)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    return vxk_cuda_check(q, cudaStreamWaitEvent(cuda_queue(q)->stream, e->event, 0), "wait for event");
}

static vx_err cuda_event_elapsed(struct vxk_event *from, struct vxk_event *to, float *ms)
{
    cudaError_t e = cudaSetDevice(to->index);
    if (e == cudaSuccess)
        e = cudaEventElapsedTime(ms, from->event, to->event);
    if (e == cudaSuccess)
        return VX_OK;
    cudaGetLastError();
    return e == cudaErrorNotReady || e == cudaErrorInvalidResourceHandle ? VX_E_INVALID : VX_E_DEVICE;
}

static const char *cuda_queue_error_text(struct vxk_queue *q)
{
    return cuda_queue(q)->error;
}

/* Copies and launches */

static vx_err transfer(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes,
                       enum cudaMemcpyKind kind, const char *what)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (bytes == 0)
        return VX_OK;
    return vxk_cuda_check(q, cudaMemcpyAsync(dst, src, bytes, kind, cuda_queue(q)->stream), what);
}

static vx_err cuda_upload(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    return transfer(q, dst, src, bytes, cudaMemcpyHostToDevice, "upload");
}

static vx_err cuda_download(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    return transfer(q, dst, src, bytes, cudaMemcpyDeviceToHost, "download");
}

static vx_err cuda_copy(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    return transfer(q, dst, src, bytes, cudaMemcpyDeviceToDevice, "copy");
}

static vx_err cuda_fill(struct vxk_queue *q, void *dst, int byte, uint64_t bytes)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (bytes == 0)
        return VX_OK;
    return vxk_cuda_check(q, cudaMemsetAsync(dst, byte, bytes, cuda_queue(q)->stream), "fill");
}

/* Launches kernel k over n elements, or over a count on the device that n bounds (n_dev not NULL). */
static vx_err launch(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                     const uint32_t *n_dev, uint32_t per, uint32_t n)
{
    uint32_t n_multiprocessors = (uint32_t)cuda_dev(q->dev)->n_multiprocessors;
    uint32_t most = n_multiprocessors * COUNTED_BLOCKS_A_MULTIPROCESSOR;
    dim3 grid = {1, 1, 1}, block = {VXK_CUDA_BLOCK, 1, 1};
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
    cudaLaunchConfig_t config = {0};
    void *argv[4];
    if ((unsigned)k >= VXK_N_KERNELS || args_bytes != kernels[k]->args_bytes)
        return VX_E_INVALID;
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return VX_OK;
    q->n_launches++;
    if (tuned[k] && cuda_dev(q->dev)->tuned) {
        const struct vxk_cuda_launch l = {.stream = cuda_queue(q)->stream,
                                          .n_multiprocessors = n_multiprocessors,
                                          .args = args,
                                          .n = n,
                                          .n_dev = n_dev,
                                          .per = per,
                                          .early = cuda_dev(q->dev)->early};
        cudaError_t e = tuned[k](&l);
        if (e != cudaErrorNotSupported) /* else the variant does not know what these arguments ask for */
            return vxk_cuda_check(q, e, vxk_kernel_name(k));
    }
    /* Few elements are heavy ones as a rule: smaller blocks spread them over more multiprocessors. */
    while (block.x > MIN_BLOCK && n <= block.x / 2 * n_multiprocessors)
        block.x /= 2;
    grid.x = n / block.x + (n % block.x != 0);
    if (n_dev && grid.x > most)
        grid.x = most;
    argv[0] = (void *)(uintptr_t)args; /* copied by the call */
    argv[1] = &n;
    argv[2] = &n_dev;
    argv[3] = &per;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = cuda_queue(q)->stream;
    config.attrs = &early;
    config.numAttrs = cuda_dev(q->dev)->early ? 1 : 0;
    return vxk_cuda_check(q, cudaLaunchKernelExC(&config, kernels[k]->function, argv), vxk_kernel_name(k));
}

static vx_err cuda_launch(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                          uint32_t n)
{
    return launch(q, k, args, args_bytes, NULL, 1, n);
}

static vx_err cuda_launch_counted(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                                  const uint32_t *n_dev, uint32_t per, uint32_t n_max)
{
    if (per == 0 || !n_dev)
        return VX_E_INVALID;
    return launch(q, k, args, args_bytes, n_dev, per, n_max);
}

/* The device */

static pthread_once_t count_once = PTHREAD_ONCE_INIT;
static int device_count;
static cudaError_t count_error;

static void count_devices(void)
{
    count_error = cudaGetDeviceCount(&device_count);
    if (count_error != cudaSuccess) {
        device_count = 0;
        cudaGetLastError();
    }
}

int vxk_cuda_count(void)
{
    pthread_once(&count_once, count_devices);
    return device_count;
}

static void cuda_close(struct vxk_dev *dev)
{
    struct vxk_cuda_dev *d = cuda_dev(dev);
    struct vxk_cuda_queue *q;
    if (!d)
        return;
    cudaSetDevice(d->index);
    while ((q = d->idle)) {
        d->idle = q->next_idle;
        free_queue(q);
    }
    pthread_mutex_destroy(&d->idle_lock);
    vxk_blocks_fini(&d->blocks);
    vxk_blocks_fini(&d->pinned);
    free(d);
}

static void cuda_info(struct vxk_dev *dev, struct vxk_info *out)
{
    struct vxk_cuda_dev *d = cuda_dev(dev);
    size_t free_bytes = 0, total_bytes = 0;
    memset(out, 0, sizeof *out);
    out->backend = VXK_CUDA;
    snprintf(out->name, sizeof out->name, "%s", d->name);
    if (cudaSetDevice(d->index) == cudaSuccess && cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
        out->free_bytes = free_bytes;
        out->total_bytes = total_bytes;
    }
    out->n_workers = d->n_multiprocessors;
    out->pinned_bytes = vxk_blocks_bytes(&d->pinned);
    out->n_allocs = vxk_blocks_n_raw(&d->blocks) + vxk_blocks_n_raw(&d->pinned);
}

static const struct vxk_ops cuda_ops = {
    .close = cuda_close,
    .info = cuda_info,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .trim = cuda_trim,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .reach = cuda_reach,
    .reserve = vxk_cuda_reserve,
    .commit = vxk_cuda_commit,
    .release = vxk_cuda_release,
    .queue_create = cuda_queue_create,
    .queue_destroy = cuda_queue_destroy,
    .wait = cuda_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_elapsed = cuda_event_elapsed,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .launch = cuda_launch,
    .launch_counted = cuda_launch_counted,
    .scan_u32 = vxk_cuda_scan_u32,
    .scan_u64 = vxk_cuda_scan_u64,
    .sort_u64 = vxk_cuda_sort_u64,
    .select = vxk_cuda_select,
    .sum_u32 = vxk_cuda_sum_u32,
    .min_u32 = vxk_cuda_min_u32,
    .max_u32 = vxk_cuda_max_u32,
    .queue_error_text = cuda_queue_error_text,
};

/* Switches that tests and measurements turn off: =0 in the environment. */
static int switched_on(const char *name)
{
    const char *value = getenv(name);
    return !value || strcmp(value, "0") != 0;
}

/* Starts the device, asks what it is, and sees whether this program has code for it. */
static cudaError_t start_device(struct vxk_cuda_dev *d)
{
    struct cudaDeviceProp property;
    struct cudaFuncAttributes attributes;
    cudaError_t e = cudaSetDevice(d->index);
    if (e == cudaSuccess)
        e = cudaFree(NULL); /* makes the context */
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&property, d->index);
    if (e == cudaSuccess) {
        snprintf(d->name, sizeof d->name, "%.95s", property.name);
        d->n_multiprocessors = property.multiProcessorCount;
        d->early = property.major >= 9 && switched_on("VOXELD_CUDA_EARLY");
        e = cudaDeviceGetStreamPriorityRange(&d->priority_low, &d->priority_high);
    }
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&attributes, kernels[0]->function);
    return e;
}

vx_err vxk_cuda_open(int index, struct vxk_dev **out, struct vx_detail *detail)
{
    int n = vxk_cuda_count();
    struct vxk_cuda_dev *d;
    cudaError_t e;
    *out = NULL;
    if (n == 0)
        return vx_fail(detail, VX_E_UNAVAILABLE, "device", "no CUDA device: %s (built with CUDA %d.%d)",
                       count_error == cudaSuccess ? "none found" : cudaGetErrorString(count_error),
                       CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (index < 0 || index >= n)
        return vx_fail(detail, VX_E_UNAVAILABLE, "device",
                       "there is no CUDA device %d: the machine has 0 to %d", index, n - 1);
    d = calloc(1, sizeof *d);
    if (!d)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a CUDA device");
    d->base.ops = &cuda_ops;
    d->base.backend = VXK_CUDA;
    d->index = index;
    d->tuned = switched_on("VOXELD_CUDA_TUNED");
    pthread_mutex_init(&d->idle_lock, NULL);
    vxk_blocks_init(&d->blocks, raw_alloc, raw_free, d, VXK_CUDA_HOST_SEES);
    vxk_blocks_init(&d->pinned, raw_alloc_pinned, raw_free_pinned, d, 1);
    d->pinned.larger = VXK_BLOCK_OCTAVE; /* a page-locked block takes milliseconds to make */
    e = start_device(d);
    if (e != cudaSuccess) {
        cudaGetLastError();
        cuda_close(&d->base);
        return vx_fail(
            detail, VX_E_UNAVAILABLE, "device", "CUDA device %d: %s%s", index, cudaGetErrorString(e),
            e == cudaErrorNoKernelImageForDevice ? "; build with VOXELD_CUDA_ARCHITECTURES set to this GPU's"
                                                 : "");
    }
    *out = &d->base;
    return VX_OK;
}
