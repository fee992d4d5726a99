#include "log.h"
#include "map.h"
#include "verbs.h"

static vx_err run(struct vxd_request *request)
{
    vx_map_destroy(request->map->core);
    request->map->core = NULL;
    return VX_OK;
}

static void send_result(struct vxd_request *request)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    Voxeld__V1__MapState map;
    vxd_map_state_fill(request->map, NULL, &map);
    result.map = &map;
    header.req_id = request->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_RESULT;
    header.result = &result;
    vxd_send(request->session, &header, NULL, 0, 0);
}

/* The entry ends here, so the answer, which speaks of it, is sent first. */
static void settle(struct vxd_request *request)
{
    struct vxd_map *map = request->map;
    vxd_log(VXD_LOG_INFO, "map_delete", "map=%s", map->name);
    if (request->session)
        send_result(request);
    request->map = NULL;
    vxd_map_remove(map);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_request),
    .lane = VXD_LANE_WRITE,
    .must_run = true,
    .run = run,
    .settle = settle,
    .answer = vxd_request_free,
};

void vxd_verb_map_delete(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = vxd_request_use_map(r, &in->header->map_delete->map);
    if (err != VX_OK) {
        vxd_request_fail(r, err);
        return;
    }
    r->deadline_ns = UINT64_MAX; /* begun with the first refusal of new work */
    vxd_map_begin_delete(r->map, r);
}
