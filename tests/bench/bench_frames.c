/* bench_frames.c - frames of a dataset as the map takes them. */
#include "bench_frames.h"

#include <string.h>

void bench_frame_convert(const struct vxc_frame *in, const struct vxc_sensing *sensing, bool no_carving,
                         struct vx_frame *out)
{
    *out = (struct vx_frame){
        .sensor = in->sensor == VXC_DEPTH    ? VX_DEPTH
                  : in->sensor == VXC_POINTS ? VX_POINTS
                                             : VX_RANGE,
        .stamp_ns = in->stamp_ns,
        .n_poses = in->n_path > 0 ? in->n_path : 1,
        .time_ns = in->time_ns,
        .width = in->width,
        .height = in->height,
        .fx = in->fx,
        .fy = in->fy,
        .cx = in->cx,
        .cy = in->cy,
        .encoding = in->encoding == VXC_U16 ? VX_U16 : VX_F32,
        .units_per_m = in->units_per_m,
        .data = in->data,
        .data_bytes = in->data_bytes,
        .first_azimuth_rad = in->first_azimuth_rad,
        .azimuth_step_rad = in->azimuth_step_rad,
        .elevation_rad = in->elevation_rad,
        .min_range_m = sensing->min_range_m,
        .max_range_m = sensing->max_range_m,
        .no_return_value = sensing->no_return_value,
        .invalid_zero = sensing->invalid_zero,
        .no_carving = no_carving,
        .mask = in->mask,
        .weight = in->weight,
        .colour = in->colour,
        .label = in->label,
    };
    for (uint32_t i = 0; i < out->n_poses; i++) {
        const struct vxc_pose *pose = in->n_path > 0 ? &in->path[i].pose : &in->pose;
        out->pose[i].offset_ns = in->n_path > 0 ? in->path[i].offset_ns : 0;
        memcpy(out->pose[i].position_m, pose->position_m, sizeof out->pose[i].position_m);
        memcpy(out->pose[i].rotation_xyzw, pose->rotation_xyzw, sizeof out->pose[i].rotation_xyzw);
    }
}
