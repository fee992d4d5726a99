/* grid.c - engines and grids: their lives, memory, and what leaves them (coordinates, digest). */
#include "body/index_voxels.h"
#include "body/sha256.h"
#include "grid_internal.h"

#include <stdlib.h>

enum { PART_VOXELS = 1 << 22, PART_BYTES = 1 << 25 };

vx_err vx_engine_create(struct vx_device *device, struct vx_engine **out, struct vx_detail *detail)
{
    struct vx_engine *e = calloc(1, sizeof *e);
    vx_err err;
    *out = NULL;
    if (!e)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for an engine");
    pthread_mutex_init(&e->lock, NULL);
    e->device = device;
    e->ops = device->dev->ops;
    VX_TRY(e->ops->queue_create(device->dev, 0, &e->queue));
    VX_TRY(e->ops->alloc_host(device->dev, sizeof *e->host, (void **)&e->host));
    *out = e;
    return VX_OK;
fail:
    vx_fail(detail, err, "", "the device has no queue or no pinned memory left for an engine");
    vx_engine_destroy(e);
    return err;
}

void vx_engine_destroy(struct vx_engine *e)
{
    if (!e)
        return;
    while (e->blocks)
        vx_engine_free(e, e->blocks->ptr);
    if (e->host)
        e->ops->free_host(e->device->dev, e->host);
    if (e->queue)
        e->ops->queue_destroy(e->queue);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

void vx_engine_get_stats(const struct vx_engine *e, struct vx_engine_stats *out)
{
    *out = e->stats;
}

struct vxk_queue *vx_engine_queue(struct vx_engine *e)
{
    return e->queue;
}

vx_err vx_engine_alloc(struct vx_engine *e, uint64_t bytes, void **out, struct vx_detail *detail)
{
    struct vx__engine_block *b = malloc(sizeof *b);
    vx_err err;
    *out = NULL;
    if (!b)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a block's record");
    err = vx__account_alloc(e->device, true, bytes, out, detail);
    if (err) {
        free(b);
        return err;
    }
    *b = (struct vx__engine_block){.ptr = *out, .bytes = bytes};
    pthread_mutex_lock(&e->lock);
    b->next = e->blocks;
    e->blocks = b;
    pthread_mutex_unlock(&e->lock);
    return VX_OK;
}

void vx_engine_free(struct vx_engine *e, void *ptr)
{
    struct vx__engine_block **at, *b = NULL;
    if (!ptr)
        return;
    pthread_mutex_lock(&e->lock);
    for (at = &e->blocks; *at && (*at)->ptr != ptr; at = &(*at)->next)
        ;
    if (*at) {
        b = *at;
        *at = b->next;
    }
    pthread_mutex_unlock(&e->lock);
    if (b)
        vx__account_free(e->device, true, b->bytes, b->ptr);
    free(b);
}

/* Scratch of a call */

void vx__engine_begin(struct vx_engine *e)
{
    e->stats.last_bytes = 0;
}

vx_err vx__engine_end(struct vx_engine *e, vx_err err, struct vx_detail *detail)
{
    if (err != VX_OK)
        (void)e->ops->wait(e->queue); /* what is queued uses the blocks; an error sticks to the queue */
    vx__engine_scratch_drop(e, 0);
    if (e->stats.last_bytes > e->stats.peak_bytes)
        e->stats.peak_bytes = e->stats.last_bytes;
    if (err == VX_E_DEVICE)
        return vx_fail(detail, err, "", "the device failed: %s", e->ops->queue_error_text(e->queue));
    return err;
}

vx_err vx__engine_scratch(struct vx_engine *e, uint64_t bytes, void **out, struct vx_detail *detail)
{
    *out = NULL;
    if (e->n_scratch == VX__GRID_SCRATCH)
        return vx_fail(detail, VX_E_INTERNAL, "", "more than %d scratch blocks", VX__GRID_SCRATCH);
    bytes = bytes ? bytes : 1;
    VX_TRY_RET(vx__account_alloc(e->device, false, bytes, out, detail));
    e->scratch[e->n_scratch++] = (struct vx__engine_block){.ptr = *out, .bytes = bytes};
    e->scratch_bytes += bytes;
    if (e->scratch_bytes > e->stats.last_bytes)
        e->stats.last_bytes = e->scratch_bytes;
    return VX_OK;
}

void vx__engine_scratch_drop(struct vx_engine *e, uint32_t keep)
{
    while (e->n_scratch > keep) {
        const struct vx__engine_block *b = &e->scratch[--e->n_scratch];
        vx__account_free(e->device, false, b->bytes, b->ptr);
        e->scratch_bytes -= b->bytes;
    }
}

/* Grids */

void vx_grid_destroy(struct vx_grid *g)
{
    if (!g)
        return;
    vx__account_free(g->device, true, g->chunk_bytes, g->chunk_block);
    vx__account_free(g->device, true, g->leaf_bytes, g->leaf_block);
    free(g);
}

void vx_grid_get_info(const struct vx_grid *g, struct vx_grid_info *out)
{
    *out = (struct vx_grid_info){.n_voxels = g->view.n_voxels,
                                 .n_leaves = g->view.n_leaves,
                                 .n_chunks = g->view.n_chunks,
                                 .bytes = g->chunk_bytes + g->leaf_bytes};
}

const struct vxk_index_grid *vx_grid_view(const struct vx_grid *g)
{
    return &g->view;
}

vx_err vx__grid_check(const struct vx_engine *e, const struct vx_grid *g, struct vx_detail *detail)
{
    if (!g)
        return vx_fail(detail, VX_E_INVALID, "grid", "is missing");
    if (g->device != e->device)
        return vx_fail(detail, VX_E_INVALID, "grid", "lies on another device than the engine");
    return VX_OK;
}

static vx_err download_parts(struct vx_engine *e, const struct vxk_index_grid *g, uint64_t first, uint64_t n,
                             int32_t *ijk, struct vx_detail *detail)
{
    struct vxk_index_coordinates_args args = {.g = *g};
    uint64_t part = n < PART_VOXELS ? n : PART_VOXELS;
    void *room;
    VX_TRY_RET(vx__engine_scratch(e, part * 12, &room, detail));
    args.ijk = room;
    for (uint64_t at = first; at < first + n; at += part) {
        args.from = at;
        args.to = first + n - at < part ? first + n : at + part;
        VX_TRY_RET(VXK_LAUNCH(e->queue, index_coordinates, &args, g->n_leaves));
        VX_TRY_RET(e->ops->download(e->queue, ijk + 3 * (at - first), room, (args.to - args.from) * 12));
        VX_TRY_RET(e->ops->wait(e->queue));
    }
    return VX_OK;
}

vx_err vx_grid_download(struct vx_engine *e, const struct vx_grid *g, uint64_t first, uint64_t n,
                        int32_t *ijk, struct vx_detail *detail)
{
    VX_TRY_RET(vx__grid_check(e, g, detail));
    if (first > g->view.n_voxels || n > g->view.n_voxels - first)
        return vx_fail(detail, VX_E_INVALID, "first", "voxels %llu to %llu are beyond the grid's %llu",
                       (unsigned long long)first, (unsigned long long)(first + n),
                       (unsigned long long)g->view.n_voxels);
    vx__engine_begin(e);
    return vx__engine_end(e, download_parts(e, &g->view, first, n, ijk, detail), detail);
}

/* Adds `bytes` of device memory to a sum, in parts; step: of each `step` bytes the first 8 count. */
static vx_err add_array(struct vx_engine *e, struct vxk_sha256 *sum, const void *dev, uint64_t bytes,
                        uint64_t step, void *host)
{
    for (uint64_t at = 0; at < bytes; at += PART_BYTES) {
        uint64_t part = bytes - at < PART_BYTES ? bytes - at : PART_BYTES;
        VX_TRY_RET(e->ops->download(e->queue, host, (const char *)dev + at, part));
        VX_TRY_RET(e->ops->wait(e->queue));
        for (uint64_t k = 0; k < part; k += step)
            vxk_sha256_u64(sum, *(const uint64_t *)(const void *)((const char *)host + k));
    }
    return VX_OK;
}

/* SHA-256(chunks as u64, keys, the words' masks, the leaves' masks), all as u64, little endian. */
vx_err vx_grid_digest(struct vx_engine *e, const struct vx_grid *g, uint8_t digest[32],
                      struct vx_detail *detail)
{
    const struct vxk_index_grid *v = &g->view;
    struct vxk_sha256 sum;
    uint32_t words[8];
    void *host;
    vx_err err;
    VX_TRY_RET(vx__grid_check(e, g, detail));
    host = malloc(PART_BYTES);
    if (!host)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a digest");
    vx__engine_begin(e);
    vxk_sha256_init(&sum);
    vxk_sha256_u64(&sum, v->n_chunks);
    VX_TRY(add_array(e, &sum, v->keys, v->n_chunks * 8ull, 8, host));
    VX_TRY(add_array(e, &sum, v->words, v->n_chunks * 1024ull, sizeof *v->words, host));
    VX_TRY(add_array(e, &sum, v->masks, v->n_leaves * 64ull, 8, host));
    vxk_sha256_end(&sum, words);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i & 3)));
fail:
    free(host);
    return vx__engine_end(e, err, detail);
}
