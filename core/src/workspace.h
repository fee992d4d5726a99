/*
 * workspace.h - memory of the frame pipeline (internal to core).  All calls are the writer's.
 */
#ifndef VX__WORKSPACE_H
#define VX__WORKSPACE_H

#include "map_internal.h"

/* Makes the arrays as long as the present rooms and fills args->s and args->image.
 * Errors: VX_E_EXHAUSTED more blocks than a frame may reach, or the cap; VX_E_NOMEM. */
vx_err vx__workspace_prepare(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                             struct vx_detail *detail);
/* Queues the zeros that a frame starts from. */
vx_err vx__workspace_zero(struct vx_map *map, bool lidar);
/* LiDAR: the beam table on the device, made and uploaded when it differs from the last one. */
vx_err vx__workspace_beams(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                           struct vx_detail *detail);
/* True when a list overflowed (w->host says): rooms are wider now and the selection must run again. */
bool vx__workspace_widen(struct vx__workspace *w, bool lidar);
/* Room for the ids of new and of replaced pages; sets args->s.fresh, s.old, room_old. */
vx_err vx__workspace_lists(struct vx_map *map, const uint32_t n_fresh[VX__N_KINDS],
                           const uint32_t n_old[VX__N_KINDS], struct vxk_frame_args *args,
                           struct vx_detail *detail);

#endif
