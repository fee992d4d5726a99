/* channels.h - colour and labels of frames: checks, and their way to the device (internal to core). */
#ifndef VX__CHANNELS_H
#define VX__CHANNELS_H

#include "map_internal.h"

/* Errors: VX_E_INVALID the frame's intensity. */
vx_err vx__channels_check(const struct vx_frame *frame, struct vx_detail *detail);
/* Uploads what the map keeps of the frame's channels and says in *args where it is.  Errors: VX_E_EXHAUSTED,
 * VX_E_NOMEM, VX_E_DEVICE. */
vx_err vx__channels_begin(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                          struct vx_detail *detail);
/* LiDAR: finds the ray of each voxel; behind the launches that found the voxels of the rays. */
vx_err vx__channels_owners(struct vx_map *map, const struct vxk_frame_args *args, uint32_t n_rays);
/* Writes the channels of the new versions, behind their values. */
vx_err vx__channels_commit(struct vx_map *map, const struct vxk_frame_args *args);
/* Does the frame bring a channel that the map does not keep? */
bool vx__channels_unused(const struct vx_map *map, const struct vx_frame *frame);

#endif
