/*
 * query.h - points, spheres and rays.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that query.def lists.
 */
#ifndef VXK_BODY_QUERY_H
#define VXK_BODY_QUERY_H

#include "query_point.h"
#include "query_ray.h"
#include "query_sphere.h"

#endif
