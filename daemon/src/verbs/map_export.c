#include "map.h"
#include "spool.h"
#include "verbs.h"
#include "vx/nvdb.h"

#include <stdio.h>
#include <string.h>

struct export_request {
    struct vxd_request base;
    struct vx_nvdb_export options;
    struct vx_nvdb_summary summary;
};

static vx_err run(struct vxd_request *request)
{
    struct export_request *e = (struct export_request *)request;
    int fd;
    VX_TRY_RET(vxd_spool_fd(request->spool, &fd, &request->detail));
    const vx_err err =
        vx_nvdb_write(request->map->core, &e->options, fd, &e->summary, &request->reply, &request->detail);
    if (err != VX_OK &&
        strcmp(request->detail.field, "file") == 0) /* not the one that the caller will have */
        snprintf(request->detail.field, sizeof request->detail.field, "spool_dir");
    return err;
}

/* How large a file is, is known only now. */
static void settle(struct vxd_request *request)
{
    if (request->err == VX_OK)
        request->err = vxd_spool_resize(request->spool, ((struct export_request *)request)->summary.n_bytes);
}

static void answer(struct vxd_request *request)
{
    struct export_request *e = (struct export_request *)request;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    Voxeld__V1__MapState map;
    vxd_map_state_fill(request->map, &request->reply, &map);
    result.map = &map;
    result.n_voxels = e->summary.n_voxels;
    result.n_leaves = e->summary.n_leaves;
    result.run_us = (request->ended_ns - request->begun_ns) / 1000;
    header.body_case = VOXELD__V1__HEADER__BODY_RESULT;
    header.result = &result;
    vxd_request_send(request, &header);
}

static const struct vxd_request_ops ops = {.size = sizeof(struct export_request),
                                           .lane = VXD_LANE_BULK,
                                           .run = run,
                                           .settle = settle,
                                           .answer = answer};

static vx_err begin(struct export_request *e, const Voxeld__V1__MapExport *wire)
{
    struct vxd_request *r = &e->base;
    struct vx_detail *detail = &r->detail;
    if (wire->format != VOXELD__V1__EXPORT_FORMAT__EXPORT_NVDB &&
        wire->format != VOXELD__V1__EXPORT_FORMAT__EXPORT_NVDB_FLOAT)
        return vx_fail(detail, VX_E_INVALID, "format", "%d is no format", (int)wire->format);
    if ((unsigned)wire->layer > VOXELD__V1__LAYER__LAYER_OCCUPANCY)
        return vx_fail(detail, VX_E_INVALID, "layer", "%d is no layer", (int)wire->layer);
    VX_TRY_RET(vxd_request_use_map(r, &wire->map));
    VX_TRY_RET(vxd_spool_create(r, 0, &r->spool));
    e->options = (struct vx_nvdb_export){.format = (enum vx_nvdb_format)wire->format,
                                         .layer = (enum vx_nvdb_layer)wire->layer,
                                         .min_epoch = wire->min_epoch,
                                         .max_bytes = vxd_spool_room(r->server) + 1, /* 0 would be any size */
                                         .watch = {.cancelled = vxd_request_is_cancelled,
                                                   .progress = vxd_request_note_progress,
                                                   .context = r}};
    r->wants_progress = wire->progress;
    if (wire->progress)
        vxd_request_tell(r, VOXELD__V1__PHASE__PHASE_QUEUED, 0, 0);
    vxd_request_submit(r);
    return VX_OK;
}

void vxd_verb_map_export(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = begin((struct export_request *)r, in->header->map_export);
    if (err != VX_OK)
        vxd_request_fail(r, err);
}
