/* esdf_batch.c - the passes of a distance field's build, over batches of leaves whose scratch is bounded. */
#include "esdf_build.h"

#include "body/esdf_pass.h"

#include <string.h>

enum {
    FIRST_BATCH = 16384, /* leaves; halved until the scratch fits */
    SMALLEST_BATCH = 64,
    BUDGET_BYTES = 256 << 20
};
enum { PLANES, LINES, SITES };

/* Scratch of one batch. */
struct batch {
    uint32_t first, n; /* candidates */
    struct vxk_records *records, *out_records;
    uint8_t *sites;          /* [sites][3][512] */
    uint16_t *line;          /* [lines][3][512] gX, gY, gZ */
    int32_t *plane;          /* [planes][2][512] A, B */
    int32_t *square;         /* [n][512] */
    uint32_t *line_link[3];  /* [lines][width] of sites along x, y, z */
    uint32_t *plane_link[3]; /* [planes][width] of gZ along y, gY along z, gX along z */
    uint32_t *out_link[2];   /* [n][width] of A along x, B along y */
    uint32_t *rank;          /* [n + 1] */
};

/* Lists what `from` (NULL: the batch's leaves) reads along an axis. */
static vx_err want(struct vx__esdf_build *b, const struct batch *t, int from, int to, uint32_t axis,
                   const uint8_t *mine, uint32_t need, const uint8_t *have, uint32_t wanted)
{
    struct vxk_esdf_want_args a = {.c = b->c,
                                   .mine = mine,
                                   .have = have,
                                   .slot = b->level[to].slot,
                                   .claimed = b->level[to].list,
                                   .n = b->count + to,
                                   .reach = b->reach,
                                   .first = t->first,
                                   .axis = axis,
                                   .need = need,
                                   .want = wanted};

    if (from < 0)
        return VXK_LAUNCH(b->q, esdf_want, &a, t->n * b->width);
    a.list = b->level[from].list;
    return VXK_LAUNCH_COUNTED(b->q, esdf_want, &a, b->count + from, b->width, b->n_candidates * b->width);
}

static vx_err number(struct vx__esdf_build *b, int level, uint32_t release)
{
    struct vxk_esdf_number_args a = {
        .list = b->level[level].list, .slot = b->level[level].slot, .release = release};

    return VXK_LAUNCH_COUNTED(b->q, esdf_number, &a, b->count + level, 1, b->n_candidates);
}

/* Lists the planes that the batch's leaves read, the lines that those read, and the sites that those read. */
static vx_err make_lists(struct vx__esdf_build *b, struct batch *t)
{
    uint32_t n[3];

    VX_TRY_RET(b->q->dev->ops->fill(b->q, b->count, 0, sizeof n));
    VX_TRY_RET(want(b, t, -1, PLANES, 0, NULL, 0, b->planes, VXK_ESDF_A));
    VX_TRY_RET(want(b, t, -1, PLANES, 1, NULL, 0, b->planes, VXK_ESDF_B));
    VX_TRY_RET(number(b, PLANES, 0));
    VX_TRY_RET(want(b, t, PLANES, LINES, 1, b->planes, VXK_ESDF_A, b->lines, VXK_ESDF_Z));
    VX_TRY_RET(want(b, t, PLANES, LINES, 2, b->planes, VXK_ESDF_A, b->lines, VXK_ESDF_Y));
    VX_TRY_RET(want(b, t, PLANES, LINES, 2, b->planes, VXK_ESDF_B, b->lines, VXK_ESDF_X));
    VX_TRY_RET(number(b, LINES, 0));
    for (uint32_t axis = 0; axis < 3; axis++)
        VX_TRY_RET(want(b, t, LINES, SITES, axis, NULL, 0, b->sites, 1u << axis));
    VX_TRY_RET(number(b, SITES, 0));
    VX_TRY_RET(vx__work_read(&b->work, n, b->count, sizeof n));
    for (int i = 0; i < 3; i++)
        b->level[i].n = n[i];
    return VX_OK;
}

static uint64_t batch_bytes(const struct vx__esdf_build *b, const struct batch *t)
{
    uint64_t link = b->width * sizeof(uint32_t);

    return b->level[SITES].n * (1536 + sizeof(struct vxk_records)) + b->level[LINES].n * (3072 + 3 * link) +
           b->level[PLANES].n * (4096 + 3 * link) + t->n * (2048 + 2 * link + sizeof(struct vxk_records) + 4);
}

static vx_err get_scratch(struct vx__esdf_build *b, struct batch *t)
{
    struct vx__work *w = &b->work;
    uint64_t sites = b->level[SITES].n, lines = b->level[LINES].n, planes = b->level[PLANES].n;

    t->records = vx__work_get(w, sites, sizeof *t->records);
    t->out_records = vx__work_get(w, t->n, sizeof *t->out_records);
    t->sites = vx__work_get(w, sites, 1536);
    t->line = vx__work_get(w, lines, 1536 * sizeof *t->line);
    t->plane = vx__work_get(w, planes, 1024 * sizeof *t->plane);
    t->square = vx__work_get(w, t->n, 512 * sizeof *t->square);
    for (int i = 0; i < 3; i++) {
        t->line_link[i] = vx__work_get(w, lines * b->width, sizeof(uint32_t));
        t->plane_link[i] = vx__work_get(w, planes * b->width, sizeof(uint32_t));
    }
    t->out_link[0] = vx__work_get(w, (uint64_t)t->n * b->width, sizeof(uint32_t));
    t->out_link[1] = vx__work_get(w, (uint64_t)t->n * b->width, sizeof(uint32_t));
    t->rank = vx__work_filled(w, t->n + 1ull, sizeof *t->rank, 0);
    return w->err;
}

static vx_err link_to(struct vx__esdf_build *b, const struct batch *t, int from, int to, uint32_t axis,
                      const uint8_t *have, uint32_t wanted, uint32_t *link)
{
    struct vxk_esdf_link_args a = {.c = b->c,
                                   .list = from < 0 ? NULL : b->level[from].list,
                                   .have = have,
                                   .slot = b->level[to].slot,
                                   .link = link,
                                   .reach = b->reach,
                                   .first = t->first,
                                   .axis = axis,
                                   .want = wanted};

    return VXK_LAUNCH(b->q, esdf_link, &a, (from < 0 ? t->n : b->level[from].n) * b->width);
}

/* Sites, and pass 1: the nearest site along each edge's own axis. */
static vx_err pass_1(struct vx__esdf_build *b, struct batch *t)
{
    struct vxk_cells_lookup_args look = {.grid = b->snapshot->grid,
                                         .chunk_key = b->c.chunk_key,
                                         .place = b->c.place,
                                         .list = b->level[SITES].list,
                                         .out = t->records,
                                         .neighbours = 1};
    struct vxk_esdf_sites_args sites = {.samples = b->samples, .records = t->records, .sites = t->sites};
    /* gX and gY are read along z next, gZ along y. */
    static const uint32_t stride[3][3] = {{8, 1, 64}, {64, 1, 8}, {64, 1, 8}};

    VX_TRY_RET(VXK_LAUNCH(b->q, cells_lookup, &look, b->level[SITES].n));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_sites, &sites, b->level[SITES].n * 64));
    for (uint32_t axis = 0; axis < 3; axis++) {
        struct vxk_esdf_line_args line = {.sites = t->sites + 512 * axis,
                                          .link = t->line_link[axis],
                                          .out = t->line + 512 * axis,
                                          .reach = b->reach,
                                          .stride_a = stride[axis][0],
                                          .stride_b = stride[axis][1],
                                          .stride_o = stride[axis][2]};
        VX_TRY_RET(link_to(b, t, LINES, SITES, axis, b->sites, 1u << axis, t->line_link[axis]));
        VX_TRY_RET(VXK_LAUNCH(b->q, esdf_line, &line, b->level[LINES].n * 64));
    }
    return VX_OK;
}

/* Pass 2: A, read along x next, and B, read along y next. */
static vx_err pass_2(struct vx__esdf_build *b, struct batch *t)
{
    struct vxk_esdf_conv_args zy = {.in16 = t->line + 1024,
                                    .link = t->plane_link[0],
                                    .out = t->plane,
                                    .in_stride = 1536,
                                    .out_stride = 1024,
                                    .radius = b->radius,
                                    .reach = b->reach,
                                    .stride_a = 1,
                                    .stride_b = 8,
                                    .stride_o = 64,
                                    .limit = b->limit};
    struct vxk_esdf_conv_args yz = {.in16 = t->line + 512,
                                    .link = t->plane_link[1],
                                    .out = t->plane,
                                    .in_stride = 1536,
                                    .out_stride = 1024,
                                    .radius = b->radius,
                                    .reach = b->reach,
                                    .stride_a = 1,
                                    .stride_b = 64,
                                    .stride_o = 8,
                                    .limit = b->limit,
                                    .merge = 1};
    struct vxk_esdf_conv_args xz = {.in16 = t->line,
                                    .link = t->plane_link[2],
                                    .out = t->plane + 512,
                                    .in_stride = 1536,
                                    .out_stride = 1024,
                                    .radius = b->radius,
                                    .reach = b->reach,
                                    .stride_a = 64,
                                    .stride_b = 1,
                                    .stride_o = 8,
                                    .limit = b->limit};
    uint32_t n = b->level[PLANES].n * 64;

    VX_TRY_RET(link_to(b, t, PLANES, LINES, 1, b->lines, VXK_ESDF_Z, t->plane_link[0]));
    VX_TRY_RET(link_to(b, t, PLANES, LINES, 2, b->lines, VXK_ESDF_Y, t->plane_link[1]));
    VX_TRY_RET(link_to(b, t, PLANES, LINES, 2, b->lines, VXK_ESDF_X, t->plane_link[2]));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_conv, &zy, n));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_conv, &yz, n));
    return VXK_LAUNCH(b->q, esdf_conv, &xz, n);
}

/* Pass 3: the squared distances of the batch's leaves, and which of them exist. */
static vx_err pass_3(struct vx__esdf_build *b, struct batch *t)
{
    struct vxk_esdf_conv_args ax = {.in32 = t->plane,
                                    .link = t->out_link[0],
                                    .out = t->square,
                                    .in_stride = 1024,
                                    .out_stride = 512,
                                    .radius = b->radius,
                                    .reach = b->reach,
                                    .stride_a = 8,
                                    .stride_b = 1,
                                    .stride_o = 64,
                                    .limit = b->limit};
    struct vxk_esdf_conv_args by = {.in32 = t->plane + 512,
                                    .link = t->out_link[1],
                                    .out = t->square,
                                    .in_stride = 1024,
                                    .out_stride = 512,
                                    .radius = b->radius,
                                    .reach = b->reach,
                                    .stride_a = 64,
                                    .stride_b = 1,
                                    .stride_o = 8,
                                    .limit = b->limit,
                                    .merge = 1};
    struct vxk_esdf_exists_args exists = {.square = t->square, .exists = t->rank, .limit = b->limit};

    VX_TRY_RET(link_to(b, t, -1, PLANES, 0, b->planes, VXK_ESDF_A, t->out_link[0]));
    VX_TRY_RET(link_to(b, t, -1, PLANES, 1, b->planes, VXK_ESDF_B, t->out_link[1]));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_conv, &ax, t->n * 64));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_conv, &by, t->n * 64));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_exists, &exists, t->n * 64));
    return b->q->dev->ops->scan_u32(b->q, t->rank, t->rank, t->n);
}

static vx_err finish(struct vx__esdf_build *b, struct batch *t)
{
    struct vxk_cells_lookup_args look = {.grid = b->snapshot->grid,
                                         .chunk_key = b->c.chunk_key,
                                         .place = b->c.place,
                                         .out = t->out_records,
                                         .first = t->first};
    struct vxk_esdf_finish_args a = {.samples = b->samples,
                                     .records = t->out_records,
                                     .square = t->square,
                                     .rank = t->rank,
                                     .place = b->c.place + t->first,
                                     .table = b->esdf->table,
                                     .pages = b->esdf->page_list,
                                     .first_leaf = b->esdf->n_leaves,
                                     .scale = vxk_esdf_scale(b->radius),
                                     .limit = b->limit};
    uint32_t n;

    VX_TRY_RET(vx__work_read(&b->work, &n, t->rank + t->n, sizeof n));
    VX_TRY_RET(vx__esdf_grow(b, b->esdf->n_leaves + n));
    VX_TRY_RET(VXK_LAUNCH(b->q, cells_lookup, &look, t->n));
    VX_TRY_RET(VXK_LAUNCH(b->q, esdf_finish, &a, t->n * 64));
    b->esdf->n_leaves += n;
    return VX_OK;
}

static vx_err run(struct vx__esdf_build *b, struct batch *t)
{
    VX_TRY_RET(pass_1(b, t));
    VX_TRY_RET(pass_2(b, t));
    VX_TRY_RET(pass_3(b, t));
    return finish(b, t);
}

vx_err vx__esdf_batches(struct vx__esdf_build *b)
{
    uint32_t size = FIRST_BATCH, keep = b->work.n;

    for (uint32_t first = 0; first < b->n_candidates;) {
        uint32_t left = b->n_candidates - first;
        struct batch t = {.first = first, .n = left < size ? left : size};
        vx_err err;

        if (vx__cancelled(b->options))
            return vx_fail(b->detail, VX_E_CANCELLED, "", "given up while the distance field was built");
        VX_TRY_RET(make_lists(b, &t));
        if (batch_bytes(b, &t) > BUDGET_BYTES && t.n > SMALLEST_BATCH)
            err = VX_E_EXHAUSTED;
        else
            err = get_scratch(b, &t);
        if (err == VX_OK)
            err = run(b, &t); /* the field's pages may find no room beside a large batch's scratch */
        vx__work_drop(&b->work, keep);
        for (int i = 0; i < 3; i++)
            VX_TRY_RET(number(b, i, 1));
        if (err == VX_OK) {
            first += t.n;
            continue;
        }
        if (err != VX_E_EXHAUSTED || t.n <= SMALLEST_BATCH)
            return err;
        size = t.n / 2 > SMALLEST_BATCH ? t.n / 2 : SMALLEST_BATCH;
    }
    return VX_OK;
}
