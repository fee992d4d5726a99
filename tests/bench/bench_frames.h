/*
 * bench_frames.h - frames of a dataset as the map takes them.
 */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include "vx/map.h"
#include "vxc_reader.h"

/* What the reader read as a frame of the map; the readings stay the reader's. */
void bench_frame_convert(const struct vxc_frame *in, const struct vxc_sensing *sensing, bool no_carving,
                         struct vx_frame *out);

#endif
