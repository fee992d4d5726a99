/* scene_frame.h - a depth image of an analytic scene as a frame for the map. */
#ifndef SCENE_FRAME_H
#define SCENE_FRAME_H

#include "scene.h"
#include "vx/map.h"

/* Renders frame number `frame` of a camera of width x height px and 53 degrees, without noise.  data: the
 * caller's [height][width]; the frame points to it.  Pose as scene_pose. */
void scene_frame_depth(const struct scene *scene, uint32_t frame, uint32_t frames_per_orbit, uint32_t width,
                       uint32_t height, float *data, struct vx_frame *out);

#endif
