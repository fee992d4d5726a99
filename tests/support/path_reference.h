/*
 * path_reference.h - what the answers to path queries are by definition: every way marched in full, every
 * place held against unknown space, nothing decided at a glance and nothing left out.
 *
 * It calls the element functions that say where a sphere is and what the field holds there, so that answers
 * are equal to the bit.  Only where device memory is the host's (VXK_CPU).
 */
#ifndef PATH_REFERENCE_H
#define PATH_REFERENCE_H

#include "body/query.h"
#include "vx/planning.h"

#include <stdbool.h>

/* voxels: unknown space is looked for voxel by voxel and not by masks (slow). */
void path_reference(const struct vxk_query *q, const struct vx_paths *paths, const float *poses, uint32_t n,
                    bool voxels, struct vx_path_answer *answers);

#endif
