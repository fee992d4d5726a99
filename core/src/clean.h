/*
 * clean.h - depth images with distortion, mask, weights or edge filter (internal to core);
 * kernels/body/frame_clean.h.
 */
#ifndef VX__CLEAN_H
#define VX__CLEAN_H

#include "map_internal.h"

/* Errors: VX_E_INVALID distortion, edge_jump, mask, weight. */
vx_err vx__clean_check(const struct vx_frame *frame, struct vx_detail *detail);
/* Looks at every weight, of a frame whose size is checked already.  Errors: VX_E_INVALID weight. */
vx_err vx__weights_check(const struct vx_frame *frame, struct vx_detail *detail);
/* Whether the frame asks for it. */
bool vx__clean_wanted(const struct vx_frame *frame);
/* Queues what makes args->image clean, when the frame asks for it.  The raw image is uploaded already. */
vx_err vx__clean_launch(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                        struct vx_detail *detail);

#endif
