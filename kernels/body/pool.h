/*
 * pool.h - pages: give, take, copy on write.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that pool.def lists.
 */
#ifndef VXK_BODY_POOL_H
#define VXK_BODY_POOL_H

#include "grid.h"

#endif
