/* files.c - maps as files: the bodies pass through, they are never held in memory as a whole. */
#include "internal.h"

vx_err vxc_map_export(struct vxc_client *client, const char *name, const struct vxc_export *options,
                      struct vxc_export_info *info, struct vx_detail *detail)
{
    const struct vxc__flow flow = {
        .take = options->take, .progress = options->progress, .context = options->context};
    Voxeld__V1__MapExport body = VOXELD__V1__MAP_EXPORT__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    VX_TRY_RET(vxc__check_map(name, detail));
    body.map = vxc__bytes_of(name);
    body.format = (Voxeld__V1__ExportFormat)options->format;
    body.layer = (Voxeld__V1__Layer)options->layer;
    body.min_epoch = options->min_epoch;
    body.progress = true; /* a large map takes longer than a time limit without news */
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_EXPORT;
    header.map_export = &body;
    const vx_err err =
        vxc__call_flow(client, VXC__ADMIN, &header, 0, &flow, VOXELD__V1__HEADER__BODY_RESULT, &x, detail);
    if (err == VX_OK && info) {
        const Voxeld__V1__Result *result = x.answer->result;
        vxc__state_of(result->map, &info->state);
        info->n_bytes = x.down_bytes;
        info->n_voxels = result->n_voxels;
        info->n_leaves = result->n_leaves;
    }
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc_map_import(struct vxc_client *client, const char *name, const struct vxc_import *options,
                      struct vxc_map_info *info, struct vx_detail *detail)
{
    const struct vxc__flow flow = {
        .give = options->give, .progress = options->progress, .context = options->context};
    const struct vxc_map_params *p = &options->params;
    Voxeld__V1__MapImport body = VOXELD__V1__MAP_IMPORT__INIT;
    Voxeld__V1__MapParams params = VOXELD__V1__MAP_PARAMS__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    VX_TRY_RET(vxc__check_map(name, detail));
    if (!options->n_bytes)
        return vx_fail(detail, VX_E_DATA_LOSS, "file", "the file is empty");
    if (p->voxel_size_m != 0 || p->origin_m[0] != 0 || p->origin_m[1] != 0 || p->origin_m[2] != 0)
        return vx_fail(detail, VX_E_INVALID, "params", "voxel size and origin come from the file");
    params.truncation_voxels = p->truncation_voxels;
    params.esdf_max_distance_m = p->esdf_max_distance_m;
    params.frame_budget_bytes = p->frame_budget_bytes;
    params.limit_bytes = p->limit_bytes;
    params.half_life_s = p->half_life_s;
    params.decay_spares_seen = p->decay_spares_seen;
    params.forget_radius_m = p->forget_radius_m;
    params.sweep_words = p->sweep_words;
    params.colour = p->colour;
    params.label = p->label;
    params.weighting = (Voxeld__V1__Weighting)p->weighting;
    body.map = vxc__bytes_of(name);
    body.file_bytes = options->n_bytes;
    body.params = &params;
    if (options->has_mode) {
        body.given_mode_case = VOXELD__V1__MAP_IMPORT__GIVEN_MODE_MODE;
        body.mode =
            p->mode == VXC_OCCUPANCY ? VOXELD__V1__MAP_MODE__MAP_OCCUPANCY : VOXELD__V1__MAP_MODE__MAP_TSDF;
    }
    if (options->has_weight) {
        body.given_weight_case = VOXELD__V1__MAP_IMPORT__GIVEN_WEIGHT_WEIGHT;
        body.weight = options->weight;
    }
    body.grid = vxc__bytes_of(options->grid ? options->grid : "");
    body.channel = vxc__bytes_of(options->channel ? options->channel : "");
    body.progress = true;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_IMPORT;
    header.map_import = &body;
    const vx_err err = vxc__call_flow(client, VXC__ADMIN, &header, options->n_bytes, &flow,
                                      VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, &x, detail);
    if (err == VX_OK && info)
        vxc__info_of(x.answer->map_info_reply, info);
    vxc__exchange_fini(&x);
    return err;
}
