/*
 * index.h - element functions of index grids: how they are made, what operators do, values.
 */
#ifndef VXK_BODY_INDEX_H
#define VXK_BODY_INDEX_H

#include "index_morph.h"
#include "index_ops.h"
#include "index_values.h"
#include "index_voxels.h"

#endif
