/* esdf_batch.c - the passes of a distance field's update, over batches of leaves whose scratch is bounded. */
#include "esdf_build.h"

#include "body/esdf_pass.h"

enum { A_LEAF_BYTES = 10240 /* of scratch, about */, SMALLEST_BATCH = 64 /* leaves; halved down to it */ };

/* Lists the batch's leaves and what their passes read: b->n.end[]. */
static vx_err make_list(struct vx__esdf_build *b, uint32_t most)
{
    VX_TRY_RET(VX__ESDF_RUN(b, begin, b->a.n_in_batch));
    for (b->a.stage = 0; b->a.stage < 3; b->a.stage++) {
        if (b->a.stage)
            VX_TRY_RET(VX__ESDF_RUN(b, stage, 1));
        switch (b->a.stage) {
        case 0:
            VX_TRY_RET(VX__ESDF_RUN(b, extend, b->a.n_in_batch * 3 * b->width));
            break;
        case 1:
            VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, extend, end[1], 3 * b->width, most));
            break;
        default:
            VX_TRY_RET(VX__ESDF_RUN_COUNTED(b, extend, end[2], 3 * b->width, most));
        }
    }
    return vx__esdf_read(b);
}

static uint64_t batch_bytes(const struct vx__esdf_build *b)
{
    const uint32_t *end = b->n.end;

    return end[3] * (1536ull + sizeof(struct vxk_records) + 12) +
           end[2] * (3072ull + 3 * b->width * sizeof(uint32_t)) + end[1] * 4096ull + end[0] * 4ull;
}

static vx_err get_scratch(struct vx__esdf_build *b)
{
    struct vx__work *w = &b->work;
    struct vxk_esdf_args *a = &b->a;
    const uint32_t *end = b->n.end;

    a->records = vx__work_get(w, end[3], sizeof *a->records);
    a->site_has = vx__work_get(w, end[3], sizeof *a->site_has);
    a->line_has = vx__work_get(w, end[3], sizeof *a->line_has);
    a->plane_has = vx__work_get(w, end[3], sizeof *a->plane_has);
    a->sites = vx__work_get(w, end[3], 1536);
    a->line = vx__work_get(w, end[2], 1536 * sizeof *a->line);
    a->link = vx__work_get(w, end[2] * 3ull * b->width, sizeof *a->link);
    a->plane = vx__work_get(w, end[1], 1024 * sizeof *a->plane);
    a->alive = vx__work_get(w, end[0], sizeof *a->alive);
    return w->err;
}

static vx_err run(struct vx__esdf_build *b)
{
    const uint32_t *end = b->n.end;

    VX_TRY_RET(VX__ESDF_RUN(b, enter, end[3]));
    VX_TRY_RET(VX__ESDF_RUN(b, link, end[2] * 3 * b->width));
    VX_TRY_RET(VX__ESDF_RUN(b, sites, end[3] * 64));
    VX_TRY_RET(VX__ESDF_RUN(b, line, end[2] * 192));
    VX_TRY_RET(VX__ESDF_RUN(b, plane, end[1] * 16));
    VX_TRY_RET(VX__ESDF_RUN(b, finish, end[0] * 64));
    return VX__ESDF_RUN(b, prune, end[0]);
}

vx_err vx__esdf_batches(struct vx__esdf_build *b)
{
    uint64_t budget = vx__scratch_budget(b->map);
    uint32_t size = (uint32_t)(budget / A_LEAF_BYTES), keep = b->work.n, n_out = b->n.n_out,
             most = b->esdf->n_numbers;

    for (uint32_t first = 0; first < n_out;) {
        uint32_t left = n_out - first;
        vx_err err;

        if (vx__cancelled(b->options))
            return vx_fail(b->detail, VX_E_CANCELLED, "", "given up while the distance field was built");
        b->a.first = first;
        b->a.n_in_batch = left < size ? left : size;
        VX_TRY_RET(make_list(b, most));
        if (batch_bytes(b) > budget && b->a.n_in_batch > SMALLEST_BATCH)
            err = VX_E_EXHAUSTED;
        else
            err = get_scratch(b);
        if (err == VX_OK)
            err = run(b);
        VX_TRY_RET(VX__ESDF_RUN(b, release, b->n.end[3]));
        if (err == VX_OK && first + b->a.n_in_batch == n_out)
            return VX_OK; /* the scratch goes with everything else */
        vx__work_drop(&b->work, keep);
        if (err == VX_OK) {
            first += b->a.n_in_batch;
            continue;
        }
        if (err != VX_E_EXHAUSTED || b->a.n_in_batch <= SMALLEST_BATCH)
            return err;
        size = b->a.n_in_batch / 2 > SMALLEST_BATCH ? b->a.n_in_batch / 2 : SMALLEST_BATCH;
    }
    return VX_OK;
}
