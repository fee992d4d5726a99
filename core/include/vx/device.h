/*
 * device.h - one device (GPU or CPU) and the memory pool that its maps share.
 *
 * The pool has a hard cap: topology, values, meshes, ESDFs and scratch of all maps on the device are counted
 * against it, and a request that does not fit is refused with VX_E_EXHAUSTED and changes nothing.
 */
#ifndef VX_DEVICE_H
#define VX_DEVICE_H

#include "base/vx_err.h"
#include "vxk.h"

#include <stdint.h>

struct vx_device;

struct vx_device_params {
    enum vxk_backend backend;
    int index;          /* which GPU; ignored by cpu and guard */
    int n_threads;      /* CPU backends: 0 = as many as the machine has */
    uint64_t cap_bytes; /* hard cap of the pool; 0 = three quarters of what is free at this moment */
};

struct vx_device_stats {
    char name[96];
    const char *backend;     /* "cpu", "cuda" or "guard" */
    uint64_t cap_bytes;      /* the hard cap */
    uint64_t used_bytes;     /* map pages, ESDFs and meshes in use by maps, all maps */
    uint64_t scratch_bytes;  /* held for work in progress or for reuse */
    uint64_t reserved_bytes; /* taken from the driver: used + scratch + free pages kept for growth */
    uint64_t peak_bytes;     /* highest reserved_bytes so far */
    uint64_t pinned_bytes;   /* host memory that is locked for uploads; not part of the cap */
    uint64_t n_allocs;       /* times that the driver was asked for memory so far, growth of pools included */
};

/* Opens a device and its pool.  *out is the caller's until vx_device_close, which every map must precede.
 * Errors: those of vxk_open; VX_E_INVALID a cap below 16 MiB. */
vx_err vx_device_open(const struct vx_device_params *params, struct vx_device **out,
                      struct vx_detail *detail);
void vx_device_close(struct vx_device *device);
void vx_device_get_stats(struct vx_device *device, struct vx_device_stats *out);

/* Host memory that frames are uploaded from fastest (pinned on a GPU): stage payloads in it.  Errors:
 * VX_E_NOMEM.  Thread: any. */
vx_err vx_device_alloc_host(struct vx_device *device, uint64_t bytes, void **out);
void vx_device_free_host(struct vx_device *device, void *ptr);

#endif
