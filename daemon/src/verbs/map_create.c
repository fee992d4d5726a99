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

static void take_params(const struct vxd_map_defaults *defaults, const Voxeld__V1__MapParams *wire,
                        struct vx_map_params *out)
{
    vx_map_params_default(out);
    out->truncation_voxels = defaults->truncation_voxels;
    out->esdf_max_distance_m = defaults->esdf_max_distance_m;
    out->frame_budget_bytes = defaults->frame_budget_bytes;
    out->limit_bytes = defaults->limit_bytes;
    if (!wire)
        return;
    out->voxel_size_m = wire->voxel_size_m;
    out->mode = (enum vx_mode)wire->mode;
    if (wire->origin_m) {
        out->origin_m[0] = wire->origin_m->x;
        out->origin_m[1] = wire->origin_m->y;
        out->origin_m[2] = wire->origin_m->z;
    }
    if (wire->truncation_voxels != 0)
        out->truncation_voxels = wire->truncation_voxels;
    if (wire->esdf_max_distance_m != 0)
        out->esdf_max_distance_m = wire->esdf_max_distance_m;
    if (wire->frame_budget_bytes)
        out->frame_budget_bytes = wire->frame_budget_bytes;
    if (wire->limit_bytes)
        out->limit_bytes = wire->limit_bytes;
}

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
    take_params(&r->server->config.map_defaults, wire->params, &c->params);
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
