/*
 * frame.h - depth and LiDAR frames into touched words and TSDF values.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that frame.def lists.
 */
#ifndef VXK_BODY_FRAME_H
#define VXK_BODY_FRAME_H

#include "grid.h"

#endif
