/* Scan, sort, select, reductions: CUB with scratch that belongs to the queue. */
#include "cub.h"
#include "device.h"

#define ROUND_256(bytes) (((bytes) + 255) / 256 * 256)

/*
 * Scratch of at least `bytes`.  Calls of one queue run in order, so they may share it; it is exchanged for a
 * larger one after all of them are done (rare: it grows by half at least).
 */
static vx_err scratch(struct vxk_queue *queue, uint64_t bytes, void **out)
{
    struct vxk_cuda_queue *q = (struct vxk_cuda_queue *)queue;
    struct vxk_cuda_dev *d = (struct vxk_cuda_dev *)queue->dev;
    if (bytes > q->scratch_bytes) {
        uint64_t want = q->scratch_bytes + q->scratch_bytes / 2;
        void *larger;
        if (want < bytes)
            want = bytes;
        larger = vxk_blocks_take(&d->blocks, want);
        if (!larger)
            return vxk_cuda_no_memory(d);
        if (q->scratch) {
            vx_err err = vxk_cuda_check(queue, cudaStreamSynchronize(q->stream), "wait for scratch");
            if (err != VX_OK) {
                vxk_blocks_give(&d->blocks, larger);
                return err;
            }
            vxk_blocks_give(&d->blocks, q->scratch);
        }
        q->scratch = larger;
        q->scratch_bytes = want;
    }
    *out = q->scratch;
    return VX_OK;
}

static vx_err fill_word(struct vxk_queue *q, void *out, int byte, size_t bytes)
{
    return vxk_cuda_check(q, cudaMemsetAsync(out, byte, bytes, ((struct vxk_cuda_queue *)q)->stream), "fill");
}

/* A call of CUB in two steps: ask for the size, then queue it.  `...` = the arguments between size and
 * stream. */
#define RUN_CUB(q, function, ...)                                                                            \
    do {                                                                                                     \
        cudaStream_t stream_ = ((struct vxk_cuda_queue *)(q))->stream;                                       \
        size_t bytes_ = 0;                                                                                   \
        void *scratch_ = NULL;                                                                               \
        VX_TRY_RET(vxk_cuda_check(q, function(NULL, &bytes_, __VA_ARGS__, stream_), #function));             \
        VX_TRY_RET(scratch(q, bytes_ ? bytes_ : 1, &scratch_));                                              \
        return vxk_cuda_check(q, function(scratch_, &bytes_, __VA_ARGS__, stream_), #function);              \
    } while (0)

vx_err vxk_cuda_scan_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return fill_word(q, out, 0, sizeof *out);
    RUN_CUB(q, vxk_cub_scan_u32, in, out, n);
}

vx_err vxk_cuda_scan_u64(struct vxk_queue *q, const uint64_t *in, uint64_t *out, uint32_t n)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return fill_word(q, out, 0, sizeof *out);
    RUN_CUB(q, vxk_cub_scan_u64, in, out, n);
}

vx_err vxk_cuda_select(struct vxk_queue *q, const uint8_t *flags, uint32_t *out, uint32_t *n_out, uint32_t n)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return fill_word(q, n_out, 0, sizeof *n_out);
    RUN_CUB(q, vxk_cub_select, flags, out, n_out, n);
}

vx_err vxk_cuda_sum_u32(struct vxk_queue *q, const uint32_t *in, uint64_t *out, uint32_t n)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return fill_word(q, out, 0, sizeof *out);
    RUN_CUB(q, vxk_cub_sum_u32, in, out, n);
}

vx_err vxk_cuda_min_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return fill_word(q, out, 0xff, sizeof *out);
    RUN_CUB(q, vxk_cub_min_u32, in, out, n);
}

vx_err vxk_cuda_max_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n == 0)
        return fill_word(q, out, 0, sizeof *out);
    RUN_CUB(q, vxk_cub_max_u32, in, out, n);
}

/* The second array of keys and values is part of the scratch. */
vx_err vxk_cuda_sort_u64(struct vxk_queue *q, uint64_t *keys, uint32_t *values, uint32_t n)
{
    cudaStream_t stream = ((struct vxk_cuda_queue *)q)->stream;
    uint64_t keys_bytes = ROUND_256((uint64_t)n * sizeof *keys);
    uint64_t values_bytes = values ? ROUND_256((uint64_t)n * sizeof *values) : 0;
    uint64_t *both_keys[2] = {keys, NULL};
    uint32_t *both_values[2] = {values, NULL};
    size_t cub_bytes = 0;
    int which = 0;
    void *room;
    VX_TRY_RET(vxk_cuda_enter(q));
    if (n < 2)
        return VX_OK;
    VX_TRY_RET(vxk_cuda_check(
        q, vxk_cub_sort_u64(NULL, &cub_bytes, both_keys, both_values, &which, n, stream), "sort"));
    VX_TRY_RET(scratch(q, keys_bytes + values_bytes + (cub_bytes ? cub_bytes : 1), &room));
    both_keys[1] = (uint64_t *)room;
    both_values[1] = values ? (uint32_t *)(void *)((char *)room + keys_bytes) : NULL;
    VX_TRY_RET(vxk_cuda_check(q,
                              vxk_cub_sort_u64((char *)room + keys_bytes + values_bytes, &cub_bytes,
                                               both_keys, both_values, &which, n, stream),
                              "sort"));
    if (which == 0)
        return VX_OK;
    VX_TRY_RET(vxk_cuda_check(
        q, cudaMemcpyAsync(keys, both_keys[1], n * sizeof *keys, cudaMemcpyDeviceToDevice, stream), "sort"));
    if (!values)
        return VX_OK;
    return vxk_cuda_check(
        q, cudaMemcpyAsync(values, both_values[1], n * sizeof *values, cudaMemcpyDeviceToDevice, stream),
        "sort");
}
