/* view_maps.h - a view as numbers: the depth and the normal at every pixel, as PNG. */
#ifndef VOXELCTL_VIEW_MAPS_H
#define VOXELCTL_VIEW_MAPS_H

#include "raycast.h"

#include <stdio.h>

/*
 * Depth along the camera's forward axis (z, not range) in units of 1 / units_per_m, as depth cameras give it:
 * 16 bits, 0 where nothing is hit.  *n_beyond: pixels farther away than 65534 units, which are 0 too. hits:
 * [height][width].  Errors: of picture_write_depth.
 */
vx_err view_write_depth(const struct camera *camera, const struct hit *hits, double units_per_m, FILE *file,
                        uint64_t *n_beyond, struct vx_detail *detail);
/* Normals in the map's axes: red, green, blue = 127.5 + 127.5 x, y, z; black where nothing is hit.  Errors:
 * of picture_write_png. */
vx_err view_write_normals(const struct camera *camera, const struct hit *hits, FILE *file,
                          struct vx_detail *detail);

#endif
