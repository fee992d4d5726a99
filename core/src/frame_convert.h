/*
 * frame_convert.h - from a checked vx_frame to what kernels read (internal to core).
 */
#ifndef VX__FRAME_CONVERT_H
#define VX__FRAME_CONVERT_H

#include "body/frame_types.h"
#include "vx/map.h"

/* Rotation matrix (row-major) of a quaternion x y z w, which is normalised first. */
void vx__rotation_from_quaternion(const double q[4], double R[9]);

/*
 * Fills args->f, lo and n (the box of candidate chunks) for a map.  radius etc. in voxels.
 * Errors: VX_E_INVALID the sensor lies outside the voxel range, or the box is too large for one frame.
 */
vx_err vx__frame_convert(const struct vx_map_params *map, const struct vx_frame *frame,
                         struct vxk_frame_args *args, struct vx_detail *detail);

/* Number of 32-bit words of a LiDAR frame's beam table, and the table: the row of VXK_ROW_STEPS elevations
 * from the zenith down; range images: then cos, sin of the columns, cos, sin of the rows (from the highest),
 * as float. */
uint64_t vx__beam_words(const struct vx_frame *frame);
void vx__beam_table(const struct vx_frame *frame, uint32_t *words);

/* Sine and cosine from + - * alone: the same bits on every machine; error below 1e-15. */
void vx__sincos(double x, double *s, double *c);

#endif
