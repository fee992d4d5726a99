/*
 * kernels.h - every topic's element functions; the list is kernels.def.
 */
#ifndef VXK_BODY_KERNELS_H
#define VXK_BODY_KERNELS_H

#include "digest.h"
#include "esdf.h"
#include "frame.h"
#include "index.h"
#include "load.h"
#include "mesh.h"
#include "pool.h"
#include "query.h"
#include "selftest.h"
#include "vbm.h"

#endif
