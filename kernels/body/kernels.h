/*
 * kernels.h - every topic's element functions; the list is kernels.def.
 */
#ifndef VXK_BODY_KERNELS_H
#define VXK_BODY_KERNELS_H

#include "pool.h"
#include "frame.h"
#include "digest.h"
#include "esdf.h"
#include "mesh.h"
#include "query.h"
#include "selftest.h"

#endif
