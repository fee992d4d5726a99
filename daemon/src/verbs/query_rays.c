#include "query.h"
#include "verbs.h"

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_rays(request->map->core, &q->options, q->origin_m,
                         q->n ? (const float *)request->body->data : NULL, q->n, q->max_range_m,
                         (struct vx_ray_answer *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_RAYS,
    .run = run,
    .answer = vxd_query_answer,
};

void vxd_verb_query_rays(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__QueryRays *wire = in->header->query_rays;
    (void)server;
    vxd_query_begin(session, in, &ops, &wire->map, wire->min_epoch, wire->origin_m, wire->n,
                    6 * sizeof(float), wire->max_range_m);
}
