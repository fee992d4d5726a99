/* cloud.h - point clouds of one file: PCD, KITTI .bin, raw float32.  Internal to the readers. */
#ifndef VXC_READERS_CLOUD_H
#define VXC_READERS_CLOUD_H

#include "vxc_reader.h"

#include <stddef.h>

enum { VXC__POINTS_MAX = 5592405 }; /* 64 MiB of float32 x y z: what the daemon takes in one message */

#define VXC__NO_TIME INT64_MIN

/* xyz[n][3] in metres, and of files of four columns the fourth; the buffers are kept from file to file. */
struct vxc__cloud {
    float *xyz, *fourth;
    int64_t *time_ns; /* where has_times: of the points, VXC__NO_TIME where it cannot be read */
    bool has_times;
    size_t n, capacity, time_capacity;
};

vx_err vxc__cloud_resize(struct vxc__cloud *cloud, uint64_t n, const char *name, struct vx_detail *detail);
/* Room for the times of n points. */
vx_err vxc__cloud_want_times(struct vxc__cloud *cloud, const char *name, struct vx_detail *detail);
void vxc__cloud_fini(struct vxc__cloud *cloud);

/*
 * Points of n_columns float32 each, little endian, of which the first three are x y z (KITTI: 4, xyz32: 3).
 * Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE, VX_E_INVALID the size is no whole number of points,
 * VX_E_EXHAUSTED, VX_E_NOMEM.
 */
vx_err vxc__cloud_read_raw(struct vxc__cloud *cloud, const char *path, int n_columns,
                           struct vx_detail *detail);
/*
 * A PCD file (ascii, binary, binary_compressed).  Times: whole numbers are ns; others s, or ns from 1e15 on.
 *  *viewpoint: its VIEWPOINT, identity when it has none.
 * Errors: as above; VX_E_INVALID names the header line or the point that is wrong.
 */
vx_err vxc__cloud_read_pcd(struct vxc__cloud *cloud, const char *path, struct vxc_pose *viewpoint,
                           struct vx_detail *detail);
/* LZF; false when the data is malformed or does not give exactly n_out bytes. */
bool vxc__lzf_expand(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out);

#endif
