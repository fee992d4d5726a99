/*
 * esdf.h - Euclidean distances from TSDF values.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that esdf.def lists.
 */
#ifndef VXK_BODY_ESDF_H
#define VXK_BODY_ESDF_H

#include "grid.h"

#endif
