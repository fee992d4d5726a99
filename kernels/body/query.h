/*
 * query.h - points, spheres and rays; robots along paths, boxes, slices, unknown space.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that query.def lists.
 */
#ifndef VXK_BODY_QUERY_H
#define VXK_BODY_QUERY_H

#include "query_box.h"
#include "query_explain.h"
#include "query_outline.h"
#include "query_path.h"
#include "query_path_whole.h"
#include "query_point.h"
#include "query_ray.h"
#include "query_slice.h"
#include "query_sphere.h"
#include "query_tint.h"

#endif
