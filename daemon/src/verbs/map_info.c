#include "map_info.h"
#include "verbs.h"

#include <string.h>

struct info_request {
    struct vxd_request base;
    struct vx_map_info info;
};

void vxd_map_reply_from_info(const struct vx_map_info *info, struct vx_reply *out)
{
    *out = (struct vx_reply){.epoch = info->epoch,
                             .newest_stamp_ns = info->newest_stamp_ns,
                             .max_distance_m = info->params.esdf_max_distance_m};
    memcpy(out->uuid, info->uuid, sizeof out->uuid);
}

static void vec3_fill(const double v[3], Voxeld__V1__Vec3 *out)
{
    voxeld__v1__vec3__init(out);
    out->x = v[0];
    out->y = v[1];
    out->z = v[2];
}

struct box {
    Voxeld__V1__Box box;
    Voxeld__V1__Vec3 min, max;
};

static Voxeld__V1__Box *box_fill(const double min_m[3], const double max_m[3], struct box *out)
{
    voxeld__v1__box__init(&out->box);
    vec3_fill(min_m, &out->min);
    vec3_fill(max_m, &out->max);
    out->box.min_m = &out->min;
    out->box.max_m = &out->max;
    return &out->box;
}

static void params_fill(const struct vx_map_params *params, Voxeld__V1__Vec3 *origin,
                        Voxeld__V1__MapParams *out)
{
    voxeld__v1__map_params__init(out);
    vec3_fill(params->origin_m, origin);
    out->voxel_size_m = params->voxel_size_m;
    out->origin_m = origin;
    out->mode =
        params->mode == VX_TSDF ? VOXELD__V1__MAP_MODE__MAP_TSDF : VOXELD__V1__MAP_MODE__MAP_OCCUPANCY;
    out->weighting = params->weighting == VX_WEIGHT_CONSTANT
                         ? VOXELD__V1__WEIGHTING__WEIGHTING_CONSTANT
                         : VOXELD__V1__WEIGHTING__WEIGHTING_INVERSE_SQUARE;
    out->truncation_voxels = params->truncation_voxels;
    out->esdf_max_distance_m = params->esdf_max_distance_m;
    out->frame_budget_bytes = params->frame_budget_bytes;
    out->limit_bytes = params->limit_bytes;
    out->half_life_s = params->half_life_s;
    out->decay_spares_seen = params->decay_spares_seen;
    out->forget_radius_m = params->forget_radius_m;
    out->sweep_words = params->sweep_words;
    out->colour = params->colour;
    out->label = params->label;
}

void vxd_map_memory_fill(const struct vx_map_memory *memory, Voxeld__V1__MapMemory *out)
{
    voxeld__v1__map_memory__init(out);
    out->topology_bytes = memory->topology_bytes;
    out->values_bytes = memory->values_bytes;
    out->table_bytes = memory->table_bytes;
    out->held_bytes = memory->held_bytes;
    out->retired_bytes = memory->retired_bytes;
    out->scratch_bytes = memory->scratch_bytes;
    out->colour_bytes = memory->colour_bytes;
    out->label_bytes = memory->label_bytes;
}

struct regions {
    Voxeld__V1__Region region[VX_MAX_REGIONS], *list[VX_MAX_REGIONS];
    struct box box[VX_MAX_REGIONS];
    Voxeld__V1__Ball ball[VX_MAX_REGIONS];
    Voxeld__V1__Vec3 centre[VX_MAX_REGIONS];
};

static void regions_fill(const struct vxd_map *map, struct regions *r, Voxeld__V1__MapInfoReply *out)
{
    struct vx_region in[VX_MAX_REGIONS];
    out->n_regions = vx_map_regions(map->core, in);
    out->regions = r->list;
    for (size_t i = 0; i < out->n_regions; ++i) {
        r->list[i] = &r->region[i];
        voxeld__v1__region__init(&r->region[i]);
        r->region[i].id = in[i].id;
        if (in[i].ball) {
            voxeld__v1__ball__init(&r->ball[i]);
            vec3_fill(in[i].centre_m, &r->centre[i]);
            r->ball[i].centre_m = &r->centre[i];
            r->ball[i].radius_m = in[i].radius_m;
            r->region[i].shape_case = VOXELD__V1__REGION__SHAPE_BALL;
            r->region[i].ball = &r->ball[i];
        } else {
            r->region[i].shape_case = VOXELD__V1__REGION__SHAPE_BOX;
            r->region[i].box = box_fill(in[i].min_m, in[i].max_m, &r->box[i]);
        }
    }
}

void vxd_map_info_send(struct vxd_request *request, const struct vxd_map *map, const struct vx_map_info *info)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapInfoReply reply = VOXELD__V1__MAP_INFO_REPLY__INIT;
    Voxeld__V1__MapState state;
    Voxeld__V1__MapParams params;
    Voxeld__V1__Vec3 origin;
    struct box bounds, active;
    struct regions regions;
    Voxeld__V1__MapMemory memory;
    vxd_map_reply_from_info(info, &request->reply);
    vxd_map_state_fill(map, &request->reply, &state);
    params_fill(&info->params, &origin, &params);
    reply.map = &state;
    reply.params = &params;
    reply.n_frames = info->n_frames;
    reply.n_refused = info->n_refused + map->n_refused;
    reply.n_voxels = info->n_voxels;
    reply.n_leaves = info->n_leaves;
    reply.n_tiles = info->n_tiles;
    reply.n_chunks = info->n_chunks;
    reply.used_bytes = info->used_bytes;
    reply.bytes_per_voxel = info->bytes_per_voxel;
    if (info->has_bounds) {
        reply.bounds = box_fill(info->bounds_min_m, info->bounds_max_m, &bounds);
        reply.active = box_fill(info->active_min_m, info->active_max_m, &active);
    }
    reply.esdf_radius_voxels = info->esdf_radius_voxels;
    reply.decay_clock_s = info->decay_clock_s;
    reply.sweep_lag_s = info->sweep_lag_s;
    regions_fill(map, &regions, &reply);
    vxd_map_memory_fill(&info->memory, &memory);
    reply.memory = &memory;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY;
    header.map_info_reply = &reply;
    vxd_request_send(request, &header);
}

static vx_err run(struct vxd_request *request)
{
    return vx_map_get_info(request->map->core, &((struct info_request *)request)->info);
}

static void answer(struct vxd_request *request)
{
    vxd_map_info_send(request, request->map, &((struct info_request *)request)->info);
}

/* It asks the device nothing, and so waits for none of the map's work. */
static const struct vxd_request_ops ops = {
    .size = sizeof(struct info_request), .lane = VXD_LANE_MISC, .run = run, .answer = answer};

void vxd_verb_map_info(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = vxd_request_use_map(r, &in->header->map_info->map);
    if (err == VX_OK)
        vxd_request_submit(r);
    else
        vxd_request_fail(r, err);
}
