#include "query.h"
#include "verbs.h"
#include "vx/tint.h"

_Static_assert(sizeof(struct vx_explanation) == 56, "the wire carries Explanation as it is");

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_explain(
        request->map->core, &q->options, q->origin_m, q->n ? (const float *)request->body->data : NULL, q->n,
        (struct vx_explanation *)request->answer->data, &request->reply, &request->detail);
}

static vx_err run_tints(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    return vx_query_tints(request->map->core, &q->options, q->origin_m,
                          q->n ? (const float *)request->body->data : NULL, q->n,
                          (struct vx_tint *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops tint_ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_PLANNING,
    .run = run_tints,
    .answer = vxd_query_answer,
};

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_PLANNING,
    .run = run,
    .answer = vxd_query_answer,
};

void vxd_verb_explain(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__Explain *wire = in->header->explain;
    const struct vxd_query_shape shape = {
        &wire->map, wire->min_epoch, wire->origin_m,
        wire->n,    wire->n * 12ull, wire->tints ? sizeof(struct vx_tint) : sizeof(struct vx_explanation)};
    struct vxd_query *q = vxd_query_open(session, in, wire->tints ? &tint_ops : &ops);
    (void)server;
    if (q)
        vxd_query_take(q, in, &shape, VX_OK);
}
