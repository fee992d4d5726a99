/*
 * vbm.h - voxel-sequential work on index grids: blocks of 128 voxels, and sums over neighbours.
 */
#ifndef VXK_BODY_VBM_H
#define VXK_BODY_VBM_H

#include "stencil.h"
#include "vbm_block.h"

#endif
