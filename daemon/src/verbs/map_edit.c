#include "map_info.h"
#include "verbs.h"

struct edit_request {
    struct vxd_request base;
    bool protect;
    struct vx_region region; /* its id: the one to unprotect */
    struct vx_map_info info;
};

static vx_err run(struct vxd_request *request)
{
    struct edit_request *e = (struct edit_request *)request;
    struct vx_map *map = request->map->core;
    VX_TRY_RET(e->protect ? vx_map_protect(map, &e->region, &request->detail)
                          : vx_map_unprotect(map, e->region.id, &request->detail));
    return vx_map_get_info(map, &e->info);
}

static void answer(struct vxd_request *request)
{
    vxd_map_info_send(request, request->map, &((struct edit_request *)request)->info);
}

static const struct vxd_request_ops ops = {.size = sizeof(struct edit_request),
                                           .lane = VXD_LANE_WRITE,
                                           .must_run = true,
                                           .run = run,
                                           .answer = answer};

static void take_vec3(const Voxeld__V1__Vec3 *wire, double out[3])
{
    out[0] = wire ? wire->x : 0;
    out[1] = wire ? wire->y : 0;
    out[2] = wire ? wire->z : 0;
}

static vx_err take_region(const Voxeld__V1__Region *wire, struct vx_region *out, struct vx_detail *detail)
{
    switch (wire->shape_case) {
    case VOXELD__V1__REGION__SHAPE_BOX:
        take_vec3(wire->box->min_m, out->min_m);
        take_vec3(wire->box->max_m, out->max_m);
        return VX_OK;
    case VOXELD__V1__REGION__SHAPE_BALL:
        out->ball = true;
        take_vec3(wire->ball->centre_m, out->centre_m);
        out->radius_m = wire->ball->radius_m;
        return VX_OK;
    default:
        return vx_fail(detail, VX_E_INVALID, "protect.shape", "a region is a box or a ball");
    }
}

static vx_err begin(struct edit_request *e, const Voxeld__V1__MapEdit *wire)
{
    struct vxd_request *r = &e->base;
    VX_TRY_RET(vxd_request_use_map(r, &wire->map));
    if (wire->edit_case == VOXELD__V1__MAP_EDIT__EDIT_UNPROTECT) {
        e->region.id = wire->unprotect;
        return VX_OK;
    }
    if (wire->edit_case != VOXELD__V1__MAP_EDIT__EDIT_PROTECT)
        return vx_fail(&r->detail, VX_E_INVALID, "edit", "protect or unprotect is needed");
    e->protect = true;
    return take_region(wire->protect, &e->region, &r->detail);
}

void vxd_verb_map_edit(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = begin((struct edit_request *)r, in->header->map_edit);
    if (err == VX_OK)
        vxd_request_submit(r);
    else
        vxd_request_fail(r, err);
}
