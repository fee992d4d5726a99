/*
 * digest.h - the digest of a map's content.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that digest.def lists.
 */
#ifndef VXK_BODY_DIGEST_H
#define VXK_BODY_DIGEST_H

#include "grid.h"

#endif
