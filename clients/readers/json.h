/* json.h - numbers out of a small JSON file (camera parameters).  Internal to the readers. */
#ifndef VXC_READERS_JSON_H
#define VXC_READERS_JSON_H

#include "base/vx_err.h"

enum { VXC__JSON_MAX_NUMBERS = 16 };

/* A key, at any depth, whose value is a number or an array of numbers. */
struct vxc__json_want {
    const char *key;
    int n; /* numbers found; 0: the key is not there */
    double value[VXC__JSON_MAX_NUMBERS];
};

/*
 * Reads a JSON file of at most 64 KiB and fills the wanted keys; of a key that occurs twice the first counts.
 * Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE, VX_E_INVALID malformed (the words give the byte), VX_E_EXHAUSTED
 * too large.
 */
vx_err vxc__json_read(const char *path, struct vxc__json_want *want, int n_want, struct vx_detail *detail);

#endif
