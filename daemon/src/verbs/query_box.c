#include "query.h"
#include "verbs.h"

_Static_assert(sizeof(struct vx_box_answer) == 32, "the wire carries BoxAnswer as it is");

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_boxes(request->map->core, &q->options, q->origin_m,
                          q->n ? (const float *)request->body->data : NULL, q->n,
                          (struct vx_box_answer *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_BOX, /* they need no distance field, and many can take long */
    .work = VOXELD__V1__WORK__WORK_PLANNING,
    .run = run,
    .answer = vxd_query_answer,
};

void vxd_verb_query_box(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__QueryBox *wire = in->header->query_box;
    const struct vxd_query_shape shape = {&wire->map, wire->min_epoch, wire->origin_m,
                                          wire->n,    wire->n * 24ull, sizeof(struct vx_box_answer)};
    struct vxd_query *q = vxd_query_open(session, in, &ops);
    (void)server;
    if (q)
        vxd_query_take(q, in, &shape, VX_OK);
}
