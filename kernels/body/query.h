/*
 * query.h - point and sphere queries.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that query.def lists.
 */
#ifndef VXK_BODY_QUERY_H
#define VXK_BODY_QUERY_H

#include "grid.h"

#endif
