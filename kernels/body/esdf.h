/*
 * esdf.h - Euclidean distances from TSDF values.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that esdf.def lists.
 */
#ifndef VXK_BODY_ESDF_H
#define VXK_BODY_ESDF_H

#include "esdf_cells.h"
#include "esdf_field.h"
#include "esdf_outline.h"
#include "esdf_pass.h"
#include "esdf_plan.h"
#include "esdf_site.h"
#include "esdf_world.h"

#endif
