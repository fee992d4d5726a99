/*
 * mesh.h - marching cubes.
 *
 * Umbrella of the topic: includes its files, which hold the element functions that mesh.def lists.
 */
#ifndef VXK_BODY_MESH_H
#define VXK_BODY_MESH_H

#include "mesh_chunk.h"
#include "mesh_emit.h"
#include "mesh_mask.h"
#include "mesh_record.h"
#include "mesh_table.h"

#endif
