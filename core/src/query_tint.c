/* query_tint.c - colour and labels at points, and at the vertices of a mesh. */
#include "query_tint.h"

#include "query_ask.h"
#include "vx/tint.h"
#include "work.h"

#include <stdlib.h>

enum { VERTICES_AT_ONCE = 1 << 20 };

_Static_assert(sizeof(struct vxk_tint_answer) == sizeof(struct vx_tint) && sizeof(struct vx_tint) == 8,
               "one layout");

static vx_err launch_tints(const struct vx__session *s, const struct vx__question *k,
                           const struct vx__batch *b)
{
    struct vxk_query_tints_args a = {.q = s->q, .points = b->in, .out = b->out};

    (void)k;
    return VXK_LAUNCH(s->rs->queue, query_tints, &a, b->n);
}

vx_err vx_query_tints(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const float *points, uint32_t n, struct vx_tint *answers, struct vx_reply *reply,
                      struct vx_detail *detail)
{
    static const struct vx__question k = {
        .in_bytes = 3 * sizeof(float), .out_bytes = sizeof *answers, .direct = true, .launch = launch_tints};

    return vx__ask(map, options, origin_m, &k, points, n, answers, reply, detail);
}

static vx_err tint_vertices(struct vx__work *w, const struct vxk_query *query, struct vx_mesh *mesh)
{
    const struct vxk_ops *ops = w->q->dev->ops;
    uint32_t slice = mesh->n_vertices < VERTICES_AT_ONCE ? mesh->n_vertices : VERTICES_AT_ONCE;
    float *points = vx__work_get(w, slice * 3ull, sizeof *points);
    struct vxk_query_tints_args a = {.q = *query, .points = points};

    a.out = vx__work_get(w, slice, sizeof *a.out);
    VX_TRY_RET(w->err);
    for (uint32_t first = 0, n; first < mesh->n_vertices; first += n) {
        n = mesh->n_vertices - first < slice ? mesh->n_vertices - first : slice;
        VX_TRY_RET(ops->upload(w->q, points, mesh->vertices + first * 3ull, n * 3ull * sizeof *points));
        VX_TRY_RET(VXK_LAUNCH(w->q, query_tints, &a, n));
        VX_TRY_RET(ops->download(w->q, mesh->tints + first, a.out, n * (uint64_t)sizeof *a.out));
        VX_TRY_RET(ops->wait(w->q));
    }
    return VX_OK;
}

vx_err vx__tint_mesh(struct vx_map *map, const struct vx__snapshot *snapshot, struct vxk_queue *q,
                     struct vx_mesh *mesh, struct vx_detail *detail)
{
    const struct vx_map_params *params = vx__map_params(map);
    struct vxk_query query = {.grid = snapshot->grid, .voxel_m = params->voxel_size_m};
    struct vx__work w;
    vx_err err;

    if (!mesh->n_vertices || !(params->colour || params->label))
        return VX_OK;
    mesh->tints = malloc(mesh->n_vertices * sizeof *mesh->tints);
    if (!mesh->tints)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for the colours of %u vertices", mesh->n_vertices);
    for (int k = 0; k < 3; k++)
        query.offset_m[k] = mesh->origin_m[k] - params->origin_m[k];
    vx__work_init(&w, map, q, detail);
    err = tint_vertices(&w, &query, mesh);
    vx__work_drop(&w, 0);
    return err;
}
