#include "query.h"
#include "verbs.h"

_Static_assert(sizeof(struct vx_point_unknown_answer) == 28, "the wire carries PointUnknownAnswer as it is");

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_points(
        request->map->core, &q->options, q->origin_m, q->n ? (const float *)request->body->data : NULL, q->n,
        (struct vx_point_answer *)request->answer->data, &request->reply, &request->detail);
}
static vx_err run_at_once(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_points_now(
        request->map->core, &q->options, q->origin_m, q->n ? (const float *)request->body->data : NULL, q->n,
        (struct vx_point_answer *)request->answer->data, &request->reply, &request->detail);
}
static vx_err run_unknown(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_points_unknown(
        request->map->core, &q->options, q->origin_m, q->n ? (const float *)request->body->data : NULL, q->n,
        (struct vx_point_unknown_answer *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_POINTS,
    .run = run,
    .run_at_once = run_at_once,
    .answer = vxd_query_answer,
};
static const struct vxd_request_ops unknown_ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_PLANNING, /* it takes longer */
    .run = run_unknown,
    .answer = vxd_query_answer,
};

void vxd_verb_query_points(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__QueryPoints *wire = in->header->query_points;
    const bool unknown = wire->unknown_distance;
    const struct vxd_query_shape shape = {
        &wire->map,      wire->min_epoch,
        wire->origin_m,  wire->n,
        wire->n * 12ull, unknown ? sizeof(struct vx_point_unknown_answer) : sizeof(struct vx_point_answer)};
    struct vxd_query *q = vxd_query_open(session, in, unknown ? &unknown_ops : &ops);
    (void)server;
    if (q)
        vxd_query_take(q, in, &shape, VX_OK);
}
