/*
 * skew.h - scans with several poses: checks, the pose that stands for the scan, tables for the kernels
 * (internal to core).
 *
 * Rotations between two poses follow the great circle (slerp), positions the straight line.  Halving an arc
 * needs no more than an addition and a square root, so knots on the circle come out alike on every machine;
 * from knot to knot the kernels interpolate linearly and normalise.  With half a turn between two poses and
 * 16 knots (the fewest, at 64 poses) that is 3e-5 rad beside the circle; with 20 degrees and 2 poses 1e-11
 * rad, which single precision hides.
 */
#ifndef VX__SKEW_H
#define VX__SKEW_H

#include "map_internal.h"

enum { VX__SKEW_KNOTS = 1024 };

struct vx__skew_table {
    struct vxk_knot knot[VX__SKEW_KNOTS + 1];
    uint32_t pose_ns[VX_MAX_POSES];
};

/*
 * Poses in order, times within them.
 * Errors: VX_E_INVALID pose.offset_ns, time_ns; VX_E_UNIMPLEMENTED a depth image with several poses.
 */
vx_err vx__skew_check(const struct vx_frame *frame, struct vx_detail *detail);

/* Pose near the middle of the scan's time; sets f->skew_reach and skew_turn, how far the others are from it.
 */
struct vx_pose vx__skew_reference(const struct vx_frame *frame, double voxel_m, struct vxk_frame *f);

/* Work space of a scan, into args->s.skew; off for a frame with one pose. */
vx_err vx__skew_prepare(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                        struct vx_detail *detail);
/* Queues the uploads and fills of a scan with several poses. */
vx_err vx__skew_launch(struct vx_map *map, const struct vx_frame *frame, const struct vxk_frame_args *args);

#endif
