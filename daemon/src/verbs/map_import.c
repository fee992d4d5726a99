#include "log.h"
#include "map_info.h"
#include "spool.h"
#include "verbs.h"
#include "vx/nvdb.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 255 };

/*
 * The new map's name is taken from the first message on, in state CREATING, so that nobody else makes it
 * while the file arrives; whatever ends the request before the map is there gives the name back.
 */
struct import_request {
    struct vxd_request base;
    struct vxd_map *map; /* being created; base.map stays NULL */
    struct vx_nvdb_import options;
    char grid[NAME_MAX_BYTES + 1], channel[NAME_MAX_BYTES + 1];
    struct vx_map_info info;
    struct vx_nvdb_summary summary;
};

static vx_err run(struct vxd_request *request)
{
    struct import_request *m = (struct import_request *)request;
    int fd;
    VX_TRY_RET(vxd_spool_fd(request->spool, &fd, &request->detail));
    VX_TRY_RET(vx_nvdb_read(request->server->device, m->map->name, &m->options, fd,
                            vxd_spool_bytes(request->spool), &m->map->core, &m->summary, &request->detail));
    vx_err err = vx_map_get_info(m->map->core, &m->info);
    if (err != VX_OK) {
        vx_map_destroy(m->map->core);
        m->map->core = NULL;
    }
    return err;
}

static void settle(struct vxd_request *request)
{
    struct import_request *m = (struct import_request *)request;
    if (request->err != VX_OK)
        return; /* fini */
    vxd_map_reply_from_info(&m->info, &m->map->newest);
    m->map->state = VXD_MAP_LIVE;
    vxd_log(VXD_LOG_INFO, "map_import", "map=%s voxel_size_m=%g voxels=%llu", m->map->name,
            m->info.params.voxel_size_m, (unsigned long long)m->info.n_voxels);
}

static void answer(struct vxd_request *request)
{
    struct import_request *m = (struct import_request *)request;
    vxd_spool_release(request->spool);
    request->spool = NULL; /* it held the question, not the answer */
    vxd_map_info_send(request, m->map, &m->info);
}

static void fini(struct vxd_request *request)
{
    struct import_request *m = (struct import_request *)request;
    if (m->map && m->map->state == VXD_MAP_CREATING)
        vxd_map_remove(m->map);
}

static const struct vxd_request_ops ops = {.size = sizeof(struct import_request),
                                           .lane = VXD_LANE_WRITE,
                                           .run = run,
                                           .settle = settle,
                                           .answer = answer,
                                           .fini = fini};

static vx_err take_text(const ProtobufCBinaryData *in, char out[NAME_MAX_BYTES + 1], const char *field,
                        struct vx_detail *detail)
{
    if (in->len > NAME_MAX_BYTES || (in->len && memchr(in->data, 0, in->len)))
        return vx_fail(detail, VX_E_INVALID, field, "at most %d bytes, none of them 0", NAME_MAX_BYTES);
    if (in->len)
        memcpy(out, in->data, in->len);
    out[in->len] = 0;
    return VX_OK;
}

static vx_err take_options(struct import_request *m, const Voxeld__V1__MapImport *wire)
{
    struct vx_detail *detail = &m->base.detail;
    const Voxeld__V1__MapParams *p = wire->params;
    struct vx_nvdb_import *o = &m->options;
    if (p && (p->voxel_size_m != 0 || p->origin_m || p->mode))
        return vx_fail(detail, VX_E_INVALID, "params",
                       "voxel size and origin come from the file, the mode from given_mode");
    VX_TRY_RET(vxd_map_take_params(&m->base.server->config.map_defaults, p, &o->params, detail));
    o->has_weighting = p && p->weighting != VOXELD__V1__WEIGHTING__WEIGHTING_DEFAULT;
    o->params.truncation_voxels = p ? p->truncation_voxels : 0;
    o->params.esdf_max_distance_m = p ? p->esdf_max_distance_m : 0;
    o->has_mode = wire->given_mode_case == VOXELD__V1__MAP_IMPORT__GIVEN_MODE_MODE;
    if (o->has_mode && wire->mode != VOXELD__V1__MAP_MODE__MAP_TSDF &&
        wire->mode != VOXELD__V1__MAP_MODE__MAP_OCCUPANCY)
        return vx_fail(detail, VX_E_INVALID, "mode", "%d is no mode", (int)wire->mode);
    o->params.mode = o->has_mode ? (enum vx_mode)wire->mode : VX_TSDF;
    o->weight = 1;
    if (wire->given_weight_case == VOXELD__V1__MAP_IMPORT__GIVEN_WEIGHT_WEIGHT) {
        if (!(wire->weight >= 0 && wire->weight <= 255))
            return vx_fail(detail, VX_E_INVALID, "weight", "must be 0 to 255, got %g", wire->weight);
        o->weight = (float)wire->weight;
    }
    VX_TRY_RET(take_text(&wire->grid, m->grid, "grid", detail));
    VX_TRY_RET(take_text(&wire->channel, m->channel, "channel", detail));
    o->grid = m->grid;
    o->channel = m->channel;
    o->watch = (struct vx_nvdb_watch){
        .cancelled = vxd_request_is_cancelled, .progress = vxd_request_note_progress, .context = &m->base};
    return VX_OK;
}

static vx_err begin(struct import_request *m, struct vxd_in *in)
{
    const Voxeld__V1__MapImport *wire = in->header->map_import;
    struct vxd_request *r = &m->base;
    VX_TRY_RET(take_options(m, wire));
    r->wants_progress = wire->progress;
    VX_TRY_RET(vxd_map_add(r->server, &wire->map, &m->map, &r->detail));
    r->worker = &m->map->lane[VXD_LANE_WRITE]; /* for when the file is whole */
    return vxd_request_take_file(r, in, wire->file_bytes);
}

void vxd_verb_map_import(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = begin((struct import_request *)r, in);
    if (err != VX_OK)
        vxd_request_fail(r, err);
}
