#include "query.h"
#include "verbs.h"

_Static_assert(sizeof(struct vx_slice_cell) == 8, "the wire carries SliceCell as it is");

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_slice(request->map->core, &q->options, q->origin_m, &q->slice,
                          (struct vx_slice_cell *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_PLANNING,
    .run = run,
    .answer = vxd_query_answer,
};

void vxd_verb_query_slice(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__QuerySlice *wire = in->header->query_slice;
    const struct vxd_query_shape shape = {&wire->map,
                                          wire->min_epoch,
                                          wire->origin_m,
                                          (uint64_t)wire->n_x * wire->n_y,
                                          0,
                                          sizeof(struct vx_slice_cell)};
    struct vxd_query *q = vxd_query_open(session, in, &ops);
    (void)server;
    if (!q)
        return;
    q->slice = (struct vx_slice){.cell_m = wire->cell_m,
                                 .n_x = wire->n_x,
                                 .n_y = wire->n_y,
                                 .min_z_m = wire->min_z_m,
                                 .max_z_m = wire->max_z_m,
                                 .inscribed_m = wire->inscribed_m,
                                 .unknown = (enum vx_unknown)wire->unknown};
    vxd_query_take(q, in, &shape, VX_OK);
}
