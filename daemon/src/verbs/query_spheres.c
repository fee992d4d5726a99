#include "query.h"
#include "verbs.h"

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_spheres(
        request->map->core, &q->options, q->origin_m, q->n ? (const float *)request->body->data : NULL, q->n,
        (struct vx_point_answer *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_SPHERES,
    .run = run,
    .answer = vxd_query_answer,
};

void vxd_verb_query_spheres(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__QuerySpheres *wire = in->header->query_spheres;
    (void)server;
    vxd_query_begin(session, in, &ops, &wire->map, wire->min_epoch, wire->origin_m, wire->n,
                    4 * sizeof(float), 0);
}
