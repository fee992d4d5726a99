/* ply.h - a mesh as a PLY file, binary little-endian or text. */
#ifndef VOXELCTL_PLY_H
#define VOXELCTL_PLY_H

#include "voxeld/client.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes vertices (with normals) and triangles in world coordinates.  Positions are float, or double where a
 * float would be coarser than a hundredth of a millimetre (maps far from the origin). Errors:
 * VX_E_UNAVAILABLE the file cannot be written.  The file is not closed.
 */
vx_err ply_write(FILE *file, const struct vxc_mesh *mesh, bool ascii, struct vx_detail *detail);

#endif
