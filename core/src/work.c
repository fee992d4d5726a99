/* work.c - scratch blocks of one piece of work, freed together. */
#include "work.h"

void vx__work_init(struct vx__work *w, struct vx_map *map, struct vxk_queue *q, struct vx_detail *detail)
{
    w->map = map;
    w->q = q;
    w->detail = detail;
    w->err = VX_OK;
    w->n = 0;
}

void vx__work_adopt(struct vx__work *w, void *block)
{
    if (w->n < VX__WORK_BLOCKS) {
        w->block[w->n++] = block;
        return;
    }
    vx__scratch_free(w->map, block);
    w->err = vx_fail(w->detail, VX_E_INTERNAL, "", "more than %d scratch blocks", VX__WORK_BLOCKS);
}

void *vx__work_get(struct vx__work *w, uint64_t n, uint64_t size)
{
    void *block = NULL;

    if (w->err != VX_OK)
        return NULL;
    if (w->n == VX__WORK_BLOCKS) {
        w->err = vx_fail(w->detail, VX_E_INTERNAL, "", "more than %d scratch blocks", VX__WORK_BLOCKS);
        return NULL;
    }
    w->err = vx__scratch_alloc(w->map, n && size ? n * size : 1, &block, w->detail);
    if (w->err != VX_OK)
        return NULL;
    w->block[w->n++] = block;
    return block;
}

void *vx__work_filled(struct vx__work *w, uint64_t n, uint64_t size, int byte)
{
    void *block = vx__work_get(w, n, size);

    if (block && n && size)
        w->err = w->q->dev->ops->fill(w->q, block, byte, n * size);
    return block;
}

void vx__work_drop(struct vx__work *w, uint32_t keep)
{
    if (w->n > keep)
        (void)w->q->dev->ops->wait(w->q); /* an error sticks to the queue; the blocks are free either way */
    while (w->n > keep)
        vx__scratch_free(w->map, w->block[--w->n]);
    w->err = VX_OK;
}

vx_err vx__work_read(struct vx__work *w, void *dst, const void *src_dev, uint64_t bytes)
{
    VX_TRY_RET(w->q->dev->ops->download(w->q, dst, src_dev, bytes));
    return w->q->dev->ops->wait(w->q);
}
