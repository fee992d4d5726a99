#include "query.h"

#include <math.h>

enum { ANSWER_BYTES = 24 };
_Static_assert(sizeof(struct vx_point_answer) == ANSWER_BYTES, "the wire carries PointAnswer as it is");
_Static_assert(sizeof(struct vx_ray_answer) == ANSWER_BYTES, "the wire carries RayAnswer as it is");

static vx_err prepare(struct vxd_query *q, const struct vxd_query_shape *shape)
{
    struct vxd_request *r = &q->base;
    uint64_t max = r->server->config.limits.query_items;
    if (shape->n > max)
        return vx_fail(&r->detail, VX_E_EXHAUSTED, "n", "at most %llu items in one request, got %llu",
                       (unsigned long long)max, (unsigned long long)shape->n);
    for (int i = 0; i < 3; ++i)
        if (!isfinite(q->origin_m[i]))
            return vx_fail(&r->detail, VX_E_INVALID, "origin_m", "must be finite");
    VX_TRY_RET(vxd_request_reserve(r, shape->body_bytes + shape->n * shape->answer_bytes));
    r->answer = vxd_buf_create((size_t)(shape->n * shape->answer_bytes));
    if (!r->answer)
        return vx_fail(&r->detail, VX_E_NOMEM, "n", "no memory for the answers");
    return VX_OK;
}

struct vxd_query *vxd_query_open(struct vxd_session *session, const struct vxd_in *in,
                                 const struct vxd_request_ops *ops)
{
    return (struct vxd_query *)vxd_request_open(session, in, ops);
}

void vxd_query_take(struct vxd_query *q, struct vxd_in *in, const struct vxd_query_shape *shape,
                    vx_err refused)
{
    struct vxd_request *r = &q->base;
    q->n = (uint32_t)shape->n;
    if (shape->origin_m) {
        q->origin_m[0] = shape->origin_m->x;
        q->origin_m[1] = shape->origin_m->y;
        q->origin_m[2] = shape->origin_m->z;
    }
    q->options = (struct vx_query_options){.min_epoch = shape->min_epoch,
                                           .cancelled = vxd_request_is_cancelled,
                                           .context = r,
                                           .now_ns = vxd_now_ns(),
                                           .esdf_period_ns = r->server->config.esdf_period_ms * 1000000};
    vx_err err = vxd_request_use_map(r, shape->map);
    if (err == VX_OK)
        err = refused;
    if (err == VX_OK)
        err = prepare(q, shape);
    if (err == VX_OK)
        err = vxd_request_take_body(r, in, shape->body_bytes);
    if (err != VX_OK)
        vxd_request_fail(r, err);
}

void vxd_query_begin(struct vxd_session *session, struct vxd_in *in, const struct vxd_request_ops *ops,
                     const ProtobufCBinaryData *map, uint64_t min_epoch, const Voxeld__V1__Vec3 *origin_m,
                     uint32_t n, uint32_t item_bytes, double max_range_m)
{
    const struct vxd_query_shape shape = {map,         min_epoch, origin_m, n, (uint64_t)n * item_bytes,
                                          ANSWER_BYTES};
    struct vxd_query *q = vxd_query_open(session, in, ops);
    if (!q)
        return;
    q->max_range_m = max_range_m;
    vxd_query_take(q, in, &shape, VX_OK);
}

void vxd_query_answer(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    Voxeld__V1__MapState map;
    struct vxd_map *asked = request->reply.esdf_epoch ? request->map : NULL; /* stays, the request does not */
    vxd_map_state_fill(request->map, &request->reply, &map);
    result.map = &map;
    result.n = q->n;
    result.run_us = (request->ended_ns - request->begun_ns) / 1000;
    header.body_case = VOXELD__V1__HEADER__BODY_RESULT;
    header.result = &result;
    vxd_request_send(request, &header);
    if (asked)
        vxd_refresh_asked(asked);
}
