#include "map.h"
#include "log.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vx_err copy_name(const ProtobufCBinaryData *name, char out[VX_NAME_MAX + 1], struct vx_detail *detail)
{
    if (name->len > VX_NAME_MAX || memchr(name->data ? name->data : (uint8_t *)"", 0, name->len))
        return vx_fail(detail, VX_E_INVALID, "map", "a map's name is 1 to %d of A-Z a-z 0-9 . _ -",
                       VX_NAME_MAX);
    if (name->len)
        memcpy(out, name->data, name->len);
    out[name->len] = 0;
    vx_err err = vx_map_check_name(out, detail);
    if (err != VX_OK && detail)
        snprintf(detail->field, sizeof detail->field, "map");
    return err;
}

static struct vxd_map *find(struct vxd_server *server, const char *name)
{
    struct vxd_map *m = server->maps;
    while (m && strcmp(m->name, name))
        m = m->next;
    return m;
}

vx_err vxd_map_find(struct vxd_server *server, const ProtobufCBinaryData *name, struct vxd_map **out,
                    struct vx_detail *detail)
{
    char text[VX_NAME_MAX + 1];
    VX_TRY_RET(copy_name(name, text, detail));
    struct vxd_map *map = find(server, text);
    if (!map || map->state == VXD_MAP_DELETING)
        return vx_fail(detail, VX_E_NOT_FOUND, "map", "there is no map '%s'", text);
    if (map->state == VXD_MAP_CREATING)
        return vx_fail(detail, VX_E_LOADING, "map", "map '%s' is being created", text);
    *out = map;
    return VX_OK;
}

static vx_err start_lanes(struct vxd_map *map)
{
    static const char *const lane_names[VXD_N_LANES] = {"write", "query", "box", "bulk"};
    for (int i = 0; i < VXD_N_LANES; ++i) {
        vx_err err = vxd_worker_start(&map->lane[i], &map->server->done, lane_names[i]);
        if (err != VX_OK) {
            while (i--)
                vxd_worker_stop(&map->lane[i]);
            return err;
        }
    }
    return VX_OK;
}

vx_err vxd_map_add(struct vxd_server *server, const ProtobufCBinaryData *name, struct vxd_map **out,
                   struct vx_detail *detail)
{
    char text[VX_NAME_MAX + 1];
    VX_TRY_RET(copy_name(name, text, detail));
    if (find(server, text))
        return vx_fail(detail, VX_E_EXISTS, "map", "there is a map '%s' already", text);
    if (server->n_maps >= server->config.limits.maps)
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.maps", "there are %u maps already", server->n_maps);
    struct vxd_map *map = calloc(1, sizeof *map);
    if (!map)
        return vx_fail(detail, VX_E_NOMEM, "map", "no memory for a map");
    map->server = server;
    memcpy(map->name, text, sizeof text);
    if (start_lanes(map) != VX_OK) {
        free(map);
        return vx_fail(detail, VX_E_NOMEM, "map", "no threads for a map");
    }
    struct vxd_map **at = &server->maps;
    while (*at && strcmp((*at)->name, text) < 0)
        at = &(*at)->next;
    map->next = *at;
    *at = map;
    ++server->n_maps;
    *out = map;
    return VX_OK;
}

void vxd_map_remove(struct vxd_map *map)
{
    struct vxd_map **at = &map->server->maps;
    while (*at != map)
        at = &(*at)->next;
    *at = map->next;
    --map->server->n_maps;
    for (int i = 0; i < VXD_N_LANES; ++i)
        vxd_worker_stop(&map->lane[i]);
    vxd_streams_free(map);
    free(map);
}

/* ------------------------------------------------------------------ deleting */

static void cancel_requests(struct vxd_map *map, const struct vxd_request *but)
{
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i) {
        for (struct vxd_session *s = map->server->sessions[i]; s; s = s->next) {
            struct vxd_request *next;
            for (struct vxd_request *r = s->requests; r; r = next) {
                next = r->next;
                if (r->map == map && r != but)
                    (void)vxd_request_cancel(r, VX_E_NOT_FOUND, "the map was deleted");
            }
        }
    }
}

void vxd_map_begin_delete(struct vxd_map *map, struct vxd_request *request)
{
    map->state = VXD_MAP_DELETING;
    cancel_requests(map, request);
    map->deleter = request;
    request->state = VXD_QUEUED; /* from here on it can't be cancelled */
    vxd_map_released(map);
}

void vxd_map_released(struct vxd_map *map)
{
    if (map->deleter && map->n_requests == 1) {
        struct vxd_request *request = map->deleter;
        map->deleter = NULL;
        vxd_request_submit(request);
    }
}

struct destroy_job {
    struct vxd_job job;
    struct vxd_map *map;
};

static void destroy_run(struct vxd_job *job)
{
    struct destroy_job *d = (struct destroy_job *)job;
    vx_map_destroy(d->map->core);
}

static void destroy_done(struct vxd_job *job)
{
    struct destroy_job *d = (struct destroy_job *)job;
    struct vxd_server *server = d->map->server;
    vxd_map_remove(d->map);
    free(d);
    vxd_server_job_done(server);
}

void vxd_maps_destroy_all(struct vxd_server *server)
{
    for (struct vxd_map *m = server->maps; m; m = m->next) {
        struct destroy_job *d = calloc(1, sizeof *d);
        if (!d)
            continue; /* the process ends and its memory with it */
        m->state = VXD_MAP_DELETING;
        d->map = m;
        d->job.run = destroy_run;
        d->job.done = destroy_done;
        vxd_server_push(server, &m->lane[VXD_LANE_WRITE], &d->job);
    }
}

/* ------------------------------------------------------------------ what is known of it */

vx_err vxd_map_take_params(const struct vxd_map_defaults *defaults, const Voxeld__V1__MapParams *wire,
                           struct vx_map_params *out, struct vx_detail *detail)
{
    vx_map_params_default(out);
    out->weighting = (enum vx_weighting)defaults->weighting;
    out->truncation_voxels = defaults->truncation_voxels;
    out->esdf_max_distance_m = defaults->esdf_max_distance_m;
    out->frame_budget_bytes = defaults->frame_budget_bytes;
    out->limit_bytes = defaults->limit_bytes;
    out->half_life_s = defaults->half_life_s;
    out->forget_radius_m = defaults->forget_radius_m;
    out->colour = defaults->colour;
    out->label = defaults->label;
    if (!wire)
        return VX_OK;
    switch (wire->weighting) {
    case VOXELD__V1__WEIGHTING__WEIGHTING_DEFAULT:
        break;
    case VOXELD__V1__WEIGHTING__WEIGHTING_INVERSE_SQUARE:
        out->weighting = VX_WEIGHT_INVERSE_SQUARE;
        break;
    case VOXELD__V1__WEIGHTING__WEIGHTING_CONSTANT:
        out->weighting = VX_WEIGHT_CONSTANT;
        break;
    default:
        return vx_fail(detail, VX_E_INVALID, "params.weighting",
                       "%d is no weighting: 1 is inverse_square, 2 constant, 0 the daemon's default",
                       (int)wire->weighting);
    }
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
    if (wire->half_life_s != 0)
        out->half_life_s = wire->half_life_s;
    if (wire->forget_radius_m != 0)
        out->forget_radius_m = wire->forget_radius_m;
    out->decay_spares_seen = wire->decay_spares_seen;
    out->sweep_words = wire->sweep_words;
    out->colour |= wire->colour;
    out->label |= wire->label;
    return VX_OK;
}

void vxd_map_committed(struct vxd_map *map, uint64_t epoch, int64_t newest_stamp_ns, bool frame)
{
    map->newest.epoch = epoch;
    map->newest.newest_stamp_ns = newest_stamp_ns;
    map->integrated_ns = frame ? vxd_now_ns() : 0;
    if (frame)
        vxd_refresh_after_commit(map);
}

void vxd_map_state_fill(const struct vxd_map *map, const struct vx_reply *reply, Voxeld__V1__MapState *out)
{
    if (!reply)
        reply = &map->newest;
    voxeld__v1__map_state__init(out);
    out->uuid.data = (uint8_t *)reply->uuid;
    out->uuid.len = sizeof reply->uuid;
    out->epoch = reply->epoch;
    out->esdf_epoch = reply->esdf_epoch;
    out->newest_stamp_ns = reply->newest_stamp_ns;
    out->max_distance_m = reply->max_distance_m;
    if (map->integrated_ns)
        out->staleness_us = (vxd_now_ns() - map->integrated_ns) / 1000;
    out->name.data = (uint8_t *)map->name;
    out->name.len = strlen(map->name);
}
