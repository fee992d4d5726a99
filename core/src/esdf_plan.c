/* esdf_plan.c - what an update of the distance field has to do: changed sites, the leaves they reach. */
#include "esdf_build.h"

#include "body/esdf_plan.h"

enum { LEAST_ROOM = 1 << 16 /* dirty cells */ };

static vx_err get_scratch(struct vx__esdf_build *b)
{
    struct vx__work *w = &b->work;
    struct vxk_esdf_args *a = &b->a;
    uint64_t words = b->esdf->max_chunks * 64ull, room = b->esdf->room;

    a->room = b->esdf->room;
    a->touched = vx__work_get(w, words, sizeof *a->touched);
    a->dirty = vx__work_filled(w, 2 * words, sizeof *a->dirty, 0);
    a->out = a->dirty ? a->dirty + words : NULL;
    a->cell = vx__work_get(w, room, sizeof *a->cell);
    a->cell_records = vx__work_get(w, room, sizeof *a->cell_records);
    a->fresh = vx__work_get(w, room, sizeof *a->fresh);
    a->changed = vx__work_get(w, room, sizeof *a->changed);
    a->reached = vx__work_get(w, room, sizeof *a->reached);
    a->state = vx__work_get(w, room, sizeof *a->state);
    return w->err;
}

/* One attempt: everything that the lists hold is right when the counters say that all of it fitted. */
static vx_err attempt(struct vx__esdf_build *b)
{
    const struct vx__esdf *e = b->esdf;
    const struct vxk_ops *ops = b->q->dev->ops;
    uint32_t chunks = e->max_chunks, room = e->room, slots = b->snapshot->grid.slot_mask + 1;

    VX_TRY_RET(ops->fill(b->q, &b->a.n->n_dirty, 0, sizeof *b->a.n - sizeof b->a.n->n_chunks));
    VX_TRY_RET(VX__ESDF_RUN(b, touch, slots));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, near, n_chunks, 27, chunks));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, dirty, n_chunks, 64, chunks));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, list_dirty, n_chunks, 64, chunks));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, look, n_dirty, 1, room));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, derive, n_dirty, 64, room));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, compare, n_dirty, 1, room));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, spread, n_changed, 1, room));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, near, n_chunks, 27, chunks));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, mark_out, n_changed, b->width, room));
    VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, count_out, n_chunks, 64, chunks));
    return vx__esdf_read(b);
}

vx_err vx__esdf_plan(struct vx__esdf_build *b)
{
    struct vx__esdf *e = b->esdf;
    uint64_t cells = b->snapshot->n_leaves + e->n_leaves + 64;

    if (e->n_leaves) /* an update: as many as the last one, or some */
        cells = cells < LEAST_ROOM ? cells : LEAST_ROOM;
    if (e->room < cells)
        e->room = (uint32_t)(cells < (1u << 31) / 64 ? cells : (1u << 31) / 64);
    for (;;) {
        VX_TRY_RET(get_scratch(b));
        VX_TRY_RET(attempt(b));
        if (b->n.n_chunks <= e->max_chunks && b->n.n_dirty <= e->room)
            break;
        vx__work_drop(&b->work, 0);
        if (b->n.n_chunks > e->max_chunks) {
            e->n_chunks = e->max_chunks;
            VX_TRY_RET(vx__esdf_grow_chunks(b, b->n.n_chunks + b->n.n_chunks / 2));
        } else {
            e->n_chunks = b->n.n_chunks;
            e->room = b->n.n_dirty + b->n.n_dirty / 4;
        }
        if (vx__cancelled(b->options))
            return vx_fail(b->detail, VX_E_CANCELLED, "", "given up while the distance field was built");
    }
    e->n_chunks = b->n.n_chunks;
    return VX_OK;
}
