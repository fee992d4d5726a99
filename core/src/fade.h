/*
 * fade.h - decay and forgetting (internal to core): the map's clock, what a commit sweeps, protected regions.
 *
 * The rules for words and voxels are in kernels/body/frame_fade.h.
 */
#ifndef VX__FADE_H
#define VX__FADE_H

#include "map_internal.h"

/* Errors: VX_E_INVALID half_life_s, forget_radius_m. */
vx_err vx__fade_check(const struct vx_map_params *params, struct vx_detail *detail);
void vx__fade_init(struct vx_map *map);
void vx__fade_fini(struct vx_map *map);
/* What the commit of this frame fades and sweeps: args->fade.  After bind_map; queues an upload. */
vx_err vx__fade_begin(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                      struct vx_detail *detail);
void vx__fade_info(const struct vx_map *map, struct vx_map_info *out);
/* The frame is in.  Under the map's lock. */
void vx__fade_commit(struct vx_map *map);

#endif
