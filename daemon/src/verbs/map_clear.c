#include "map_info.h"
#include "verbs.h"

struct clear_request {
    struct vxd_request base;
    struct vx_map_info info;
};

static vx_err run(struct vxd_request *request)
{
    struct clear_request *c = (struct clear_request *)request;
    VX_TRY_RET(vx_map_clear(request->map->core));
    return vx_map_get_info(request->map->core, &c->info);
}

static void settle(struct vxd_request *request)
{
    struct clear_request *c = (struct clear_request *)request;
    if (request->err == VX_OK)
        vxd_map_committed(request->map, c->info.epoch, c->info.newest_stamp_ns, false);
}

static void answer(struct vxd_request *request)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    Voxeld__V1__MapState map;
    vxd_map_state_fill(request->map, NULL, &map);
    result.map = &map;
    result.run_us = (request->ended_ns - request->begun_ns) / 1000;
    header.body_case = VOXELD__V1__HEADER__BODY_RESULT;
    header.result = &result;
    vxd_request_send(request, &header);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct clear_request),
    .lane = VXD_LANE_WRITE,
    .must_run = true,
    .run = run,
    .settle = settle,
    .answer = answer,
};

void vxd_verb_map_clear(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = vxd_request_use_map(r, &in->header->map_clear->map);
    if (err == VX_OK)
        vxd_request_submit(r);
    else
        vxd_request_fail(r, err);
}
