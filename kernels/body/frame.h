/* frame.h - the frame pipeline's element functions, in the order in which a frame runs them. */
#ifndef VXK_BODY_FRAME_H
#define VXK_BODY_FRAME_H

#include "frame_channels.h"
#include "frame_clean.h"
#include "frame_commit.h"
#include "frame_depth.h"
#include "frame_lidar.h"
#include "frame_select.h"
#include "frame_update.h"

#endif
