#include "log.h"
#include "map_info.h"
#include "verbs.h"

struct create_request {
    struct vxd_request base;
    struct vxd_map
        *map; /* being created; base.map stays NULL, so that the entry isn't held by its own creation */
    struct vx_map_params params;
    struct vx_map_info info;
};

static vx_err run(struct vxd_request *request)
{
    struct create_request *c = (struct create_request *)request;
    VX_TRY_RET(
        vx_map_create(request->server->device, c->map->name, &c->params, &c->map->core, &request->detail));
    vx_err err = vx_map_get_info(c->map->core, &c->info);
    if (err != VX_OK) {
        vx_map_destroy(c->map->core);
        c->map->core = NULL;
    }
    return err;
}

static void settle(struct vxd_request *request)
{
    struct create_request *c = (struct create_request *)request;
    if (request->err != VX_OK) {
        vxd_map_remove(c->map);
        c->map = NULL;
        return;
    }
    vxd_map_reply_from_info(&c->info, &c->map->newest);
    c->map->state = VXD_MAP_LIVE;
    vxd_log(VXD_LOG_INFO, "map_create", "map=%s voxel_size_m=%g", c->map->name, c->info.params.voxel_size_m);
}

static void answer(struct vxd_request *request)
{
    struct create_request *c = (struct create_request *)request;
    vxd_map_info_send(request, c->map, &c->info);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct create_request),
    .lane = VXD_LANE_WRITE,
    .must_run = true,
    .run = run,
    .settle = settle,
    .answer = answer,
};

static vx_err begin(struct create_request *c, const Voxeld__V1__MapCreate *wire)
{
    struct vxd_request *r = &c->base;
    if (wire->params && wire->params->mode != VOXELD__V1__MAP_MODE__MAP_TSDF &&
        wire->params->mode != VOXELD__V1__MAP_MODE__MAP_OCCUPANCY)
        return vx_fail(&r->detail, VX_E_INVALID, "params.mode", "%d is no mode", (int)wire->params->mode);
    VX_TRY_RET(vxd_map_take_params(&r->server->config.map_defaults, wire->params, &c->params, &r->detail));
    VX_TRY_RET(vxd_map_add(r->server, &wire->map, &c->map, &r->detail));
    vxd_request_submit_on(r, &c->map->lane[VXD_LANE_WRITE]);
    return VX_OK;
}

void vxd_verb_map_create(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = begin((struct create_request *)r, in->header->map_create);
    if (err != VX_OK)
        vxd_request_fail(r, err);
}
