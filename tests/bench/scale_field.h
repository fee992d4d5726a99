/* scale_field.h - the distance field of a large map: brought up to date, and counted voxel by voxel. */
#ifndef SCALE_FIELD_H
#define SCALE_FIELD_H

#include "vx/map.h"

struct scale_field {
    uint64_t n_leaves, n_within; /* voxels nearer than R to a surface */
    uint64_t bytes;              /* of device memory that the field holds */
    double refresh_ms;           /* of the last refresh */
};

/* Brings the field to the newest epoch.  Errors: VX_E_EXHAUSTED it does not fit; VX_E_DEVICE. */
vx_err scale_field_refresh(struct vx_map *map, struct scale_field *out, struct vx_detail *detail);
/* The same, and counts n_within: copies the whole field to the host, a page at a time. */
vx_err scale_field_count(struct vx_map *map, struct scale_field *out, struct vx_detail *detail);

#endif
