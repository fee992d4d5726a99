#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ plain structs out of messages */

void vxc__text_of(ProtobufCBinaryData in, char *out, size_t n)
{
    const size_t kept = in.len < n ? in.len : n - 1;
    if (kept > 0)
        memcpy(out, in.data, kept);
    out[kept] = '\0';
    for (size_t i = 0; i < kept; i++)
        if ((unsigned char)out[i] < ' ') /* no control characters from the wire onto a terminal */
            out[i] = '?';
}

ProtobufCBinaryData vxc__bytes_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

vx_err vxc__check_map(const char *name, struct vx_detail *detail)
{
    const size_t n = name ? strlen(name) : 0;
    if (n < 1 || n > VXC_NAME_MAX ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
        return vx_fail(detail, VX_E_INVALID, "map", "'%.80s' is no map name: 1 to 64 of A-Z a-z 0-9 . _ -",
                       name ? name : "");
    return VX_OK;
}

static void vec3_of(const Voxeld__V1__Vec3 *in, double out[3])
{
    out[0] = in ? in->x : 0;
    out[1] = in ? in->y : 0;
    out[2] = in ? in->z : 0;
}

void vxc__state_of(const Voxeld__V1__MapState *in, struct vxc_map_state *out)
{
    memset(out, 0, sizeof *out);
    if (!in)
        return;
    vxc__text_of(in->name, out->name, sizeof out->name);
    if (in->uuid.len == sizeof out->uuid)
        memcpy(out->uuid, in->uuid.data, sizeof out->uuid);
    out->epoch = in->epoch;
    out->esdf_epoch = in->esdf_epoch;
    out->newest_stamp_ns = in->newest_stamp_ns;
    out->max_distance_m = in->max_distance_m;
    out->staleness_us = in->staleness_us;
}

static void params_of(const Voxeld__V1__MapParams *in, struct vxc_map_params *out)
{
    memset(out, 0, sizeof *out);
    if (!in)
        return;
    out->voxel_size_m = in->voxel_size_m;
    vec3_of(in->origin_m, out->origin_m);
    out->mode = in->mode == VOXELD__V1__MAP_MODE__MAP_OCCUPANCY ? VXC_OCCUPANCY : VXC_TSDF;
    out->truncation_voxels = in->truncation_voxels;
    out->esdf_max_distance_m = in->esdf_max_distance_m;
    out->frame_budget_bytes = in->frame_budget_bytes;
    out->limit_bytes = in->limit_bytes;
    out->half_life_s = in->half_life_s;
    out->decay_spares_seen = in->decay_spares_seen;
    out->forget_radius_m = in->forget_radius_m;
    out->sweep_words = in->sweep_words;
    out->colour = in->colour;
    out->label = in->label;
    out->weighting = in->weighting == VOXELD__V1__WEIGHTING__WEIGHTING_CONSTANT ? VXC_WEIGHT_CONSTANT
                     : in->weighting == VOXELD__V1__WEIGHTING__WEIGHTING_INVERSE_SQUARE
                         ? VXC_WEIGHT_INVERSE_SQUARE
                         : VXC_WEIGHT_DEFAULT;
}

void vxc__memory_of(const Voxeld__V1__MapMemory *in, struct vxc_map_memory *out)
{
    memset(out, 0, sizeof *out);
    if (!in)
        return;
    out->topology_bytes = in->topology_bytes;
    out->values_bytes = in->values_bytes;
    out->table_bytes = in->table_bytes;
    out->held_bytes = in->held_bytes;
    out->retired_bytes = in->retired_bytes;
    out->scratch_bytes = in->scratch_bytes;
    out->colour_bytes = in->colour_bytes;
    out->label_bytes = in->label_bytes;
}

static void region_of(const Voxeld__V1__Region *in, struct vxc_region *out)
{
    memset(out, 0, sizeof *out);
    out->id = in->id;
    out->ball = in->shape_case == VOXELD__V1__REGION__SHAPE_BALL;
    if (out->ball) {
        vec3_of(in->ball->centre_m, out->centre_m);
        out->radius_m = in->ball->radius_m;
    } else if (in->shape_case == VOXELD__V1__REGION__SHAPE_BOX) {
        vec3_of(in->box->min_m, out->min_m);
        vec3_of(in->box->max_m, out->max_m);
    }
}

void vxc__info_of(const Voxeld__V1__MapInfoReply *in, struct vxc_map_info *out)
{
    memset(out, 0, sizeof *out);
    vxc__state_of(in->map, &out->state);
    params_of(in->params, &out->params);
    out->n_frames = in->n_frames;
    out->n_refused = in->n_refused;
    out->n_voxels = in->n_voxels;
    out->n_leaves = in->n_leaves;
    out->n_tiles = in->n_tiles;
    out->n_chunks = in->n_chunks;
    out->used_bytes = in->used_bytes;
    out->bytes_per_voxel = in->bytes_per_voxel;
    out->esdf_radius_voxels = in->esdf_radius_voxels;
    out->decay_clock_s = in->decay_clock_s;
    out->sweep_lag_s = in->sweep_lag_s;
    vxc__memory_of(in->memory, &out->memory);
    for (size_t i = 0; i < in->n_regions && i < VXC_MAX_REGIONS; i++)
        region_of(in->regions[i], &out->region[out->n_regions++]);
    out->has_bounds = in->bounds != NULL;
    if (in->bounds) {
        const Voxeld__V1__Box *active = in->active ? in->active : in->bounds;
        vec3_of(in->bounds->min_m, out->bounds_min_m);
        vec3_of(in->bounds->max_m, out->bounds_max_m);
        vec3_of(active->min_m, out->active_min_m);
        vec3_of(active->max_m, out->active_max_m);
    }
}

/* ------------------------------------------------------------------ requests */

vx_err vxc_map_create(struct vxc_client *client, const char *name, const struct vxc_map_params *params,
                      struct vxc_map_info *info, struct vx_detail *detail)
{
    Voxeld__V1__MapCreate body = VOXELD__V1__MAP_CREATE__INIT;
    Voxeld__V1__MapParams values = VOXELD__V1__MAP_PARAMS__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    VX_TRY_RET(vxc__check_map(name, detail));
    origin.x = params->origin_m[0];
    origin.y = params->origin_m[1];
    origin.z = params->origin_m[2];
    values.voxel_size_m = params->voxel_size_m;
    values.origin_m = &origin;
    values.mode =
        params->mode == VXC_OCCUPANCY ? VOXELD__V1__MAP_MODE__MAP_OCCUPANCY : VOXELD__V1__MAP_MODE__MAP_TSDF;
    values.truncation_voxels = params->truncation_voxels;
    values.esdf_max_distance_m = params->esdf_max_distance_m;
    values.frame_budget_bytes = params->frame_budget_bytes;
    values.limit_bytes = params->limit_bytes;
    values.half_life_s = params->half_life_s;
    values.decay_spares_seen = params->decay_spares_seen;
    values.forget_radius_m = params->forget_radius_m;
    values.sweep_words = params->sweep_words;
    values.colour = params->colour;
    values.label = params->label;
    values.weighting = (Voxeld__V1__Weighting)params->weighting; /* the daemon refuses unknown ones */
    body.map = vxc__bytes_of(name);
    body.params = &values;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CREATE;
    header.map_create = &body;
    const vx_err err =
        vxc__call(client, VXC__ADMIN, &header, NULL, 0, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, &x, detail);
    if (err == VX_OK && info)
        vxc__info_of(x.answer->map_info_reply, info);
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc_map_list(struct vxc_client *client, struct vxc_map_state **out, size_t *n,
                    struct vx_detail *detail)
{
    Voxeld__V1__MapList body = VOXELD__V1__MAP_LIST__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    *out = NULL;
    *n = 0;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_LIST;
    header.map_list = &body;
    vx_err err =
        vxc__call(client, VXC__QUERY, &header, NULL, 0, VOXELD__V1__HEADER__BODY_MAP_LIST_REPLY, &x, detail);
    if (err == VX_OK) {
        const Voxeld__V1__MapListReply *reply = x.answer->map_list_reply;
        *out = calloc(reply->n_maps + 1, sizeof **out);
        if (!*out)
            err = vx_fail(detail, VX_E_NOMEM, "", "no memory for a list of %zu maps", reply->n_maps);
        else
            for (*n = 0; *n < reply->n_maps; ++*n)
                vxc__state_of(reply->maps[*n], *out + *n);
    }
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc_map_get_info(struct vxc_client *client, const char *name, struct vxc_map_info *out,
                        struct vx_detail *detail)
{
    Voxeld__V1__MapInfo body = VOXELD__V1__MAP_INFO__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    VX_TRY_RET(vxc__check_map(name, detail));
    body.map = vxc__bytes_of(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_INFO;
    header.map_info = &body;
    const vx_err err =
        vxc__call(client, VXC__QUERY, &header, NULL, 0, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, &x, detail);
    if (err == VX_OK)
        vxc__info_of(x.answer->map_info_reply, out);
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc_map_digest(struct vxc_client *client, const char *name, uint8_t digest[32],
                      struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__MapDigest body = VOXELD__V1__MAP_DIGEST__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    VX_TRY_RET(vxc__check_map(name, detail));
    body.map = vxc__bytes_of(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DIGEST;
    header.map_digest = &body;
    vx_err err = vxc__call(client, VXC__ADMIN, &header, NULL, 0, VOXELD__V1__HEADER__BODY_MAP_DIGEST_REPLY,
                           &x, detail);
    if (err == VX_OK) {
        const Voxeld__V1__MapDigestReply *reply = x.answer->map_digest_reply;
        if (reply->digest.len == 32)
            memcpy(digest, reply->digest.data, 32);
        else
            err = vx_fail(detail, VX_E_INTERNAL, "digest", "the daemon gave a digest of %zu bytes",
                          reply->digest.len);
        if (state)
            vxc__state_of(reply->map, state);
    }
    vxc__exchange_fini(&x);
    return err;
}

/* MAP_CLEAR and MAP_DELETE: a name in, a RESULT out. */
static vx_err change(struct vxc_client *client, vxw_header *header, struct vxc_map_state *state,
                     struct vx_detail *detail)
{
    struct vxc__exchange x;
    const vx_err err =
        vxc__call(client, VXC__ADMIN, header, NULL, 0, VOXELD__V1__HEADER__BODY_RESULT, &x, detail);
    if (err == VX_OK && state)
        vxc__state_of(x.answer->result->map, state);
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc_map_clear(struct vxc_client *client, const char *name, struct vxc_map_state *state,
                     struct vx_detail *detail)
{
    Voxeld__V1__MapClear body = VOXELD__V1__MAP_CLEAR__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    VX_TRY_RET(vxc__check_map(name, detail));
    body.map = vxc__bytes_of(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CLEAR;
    header.map_clear = &body;
    return change(client, &header, state, detail);
}

vx_err vxc_map_delete(struct vxc_client *client, const char *name, struct vx_detail *detail)
{
    Voxeld__V1__MapDelete body = VOXELD__V1__MAP_DELETE__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    VX_TRY_RET(vxc__check_map(name, detail));
    body.map = vxc__bytes_of(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DELETE;
    header.map_delete = &body;
    return change(client, &header, NULL, detail);
}

/* ------------------------------------------------------------------ protected regions */

static vx_err edit(struct vxc_client *client, Voxeld__V1__MapEdit *body, uint32_t *last_id,
                   struct vx_detail *detail)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_EDIT;
    header.map_edit = body;
    const vx_err err =
        vxc__call(client, VXC__ADMIN, &header, NULL, 0, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, &x, detail);
    if (err == VX_OK && last_id && x.answer->map_info_reply->n_regions)
        *last_id = x.answer->map_info_reply->regions[x.answer->map_info_reply->n_regions - 1]->id;
    vxc__exchange_fini(&x);
    return err;
}

static void vec3_to(const double in[3], Voxeld__V1__Vec3 *out)
{
    voxeld__v1__vec3__init(out);
    out->x = in[0];
    out->y = in[1];
    out->z = in[2];
}

vx_err vxc_map_protect(struct vxc_client *client, const char *name, struct vxc_region *region,
                       struct vx_detail *detail)
{
    Voxeld__V1__MapEdit body = VOXELD__V1__MAP_EDIT__INIT;
    Voxeld__V1__Region shape = VOXELD__V1__REGION__INIT;
    Voxeld__V1__Box box = VOXELD__V1__BOX__INIT;
    Voxeld__V1__Ball ball = VOXELD__V1__BALL__INIT;
    Voxeld__V1__Vec3 a, b;
    VX_TRY_RET(vxc__check_map(name, detail));
    vec3_to(region->ball ? region->centre_m : region->min_m, &a);
    vec3_to(region->max_m, &b);
    ball.centre_m = box.min_m = &a;
    ball.radius_m = region->radius_m;
    box.max_m = &b;
    if (region->ball) {
        shape.shape_case = VOXELD__V1__REGION__SHAPE_BALL;
        shape.ball = &ball;
    } else {
        shape.shape_case = VOXELD__V1__REGION__SHAPE_BOX;
        shape.box = &box;
    }
    body.map = vxc__bytes_of(name);
    body.edit_case = VOXELD__V1__MAP_EDIT__EDIT_PROTECT;
    body.protect = &shape;
    return edit(client, &body, &region->id, detail);
}

vx_err vxc_map_unprotect(struct vxc_client *client, const char *name, uint32_t id, struct vx_detail *detail)
{
    Voxeld__V1__MapEdit body = VOXELD__V1__MAP_EDIT__INIT;
    VX_TRY_RET(vxc__check_map(name, detail));
    body.map = vxc__bytes_of(name);
    body.edit_case = VOXELD__V1__MAP_EDIT__EDIT_UNPROTECT;
    body.unprotect = id;
    return edit(client, &body, NULL, detail);
}
