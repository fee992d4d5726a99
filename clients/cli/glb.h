/* glb.h - a mesh as a binary glTF 2.0 file. */
#ifndef VOXELCTL_GLB_H
#define VOXELCTL_GLB_H

#include "voxeld/client.h"

#include <stdio.h>

/*
 * Writes vertices (with normals, and colours where the mesh has some) and triangles.  Positions are floats
 * relative to the mesh's origin, which is the node's translation; another node turns the map's z axis up, as
 * glTF has y up.  A mesh without triangles becomes a scene without a mesh.  Errors: VX_E_EXHAUSTED the file
 * would be larger than 4 GiB, which the format cannot say; VX_E_UNAVAILABLE the file cannot be written.  The
 * file is not closed.
 */
vx_err glb_write(FILE *file, const struct vxc_mesh *mesh, struct vx_detail *detail);

#endif
