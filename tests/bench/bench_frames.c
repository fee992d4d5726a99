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
        .n_poses = 1,
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
    memcpy(out->pose[0].position_m, in->pose.position_m, sizeof out->pose[0].position_m);
    memcpy(out->pose[0].rotation_xyzw, in->pose.rotation_xyzw, sizeof out->pose[0].rotation_xyzw);
}
