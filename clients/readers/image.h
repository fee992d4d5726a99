/* image.h - grey images: depth of 16 bits, weights of 8 too; PNG (by libpng) and PGM.  Internal to the
 * readers. */
#ifndef VXC_READERS_IMAGE_H
#define VXC_READERS_IMAGE_H

#include "base/vx_err.h"

#include <stddef.h>
#include <stdint.h>

enum { VXC__SIDE_MAX = 16384 };              /* px, width and height */
enum { VXC__PIXELS_MAX = 32 * 1024 * 1024 }; /* a frame of 64 MiB: what the daemon takes in one message */

/* px[height][width]; the buffer is kept from image to image. */
struct vxc__image {
    uint16_t *px;
    size_t capacity_px;
    uint32_t width, height;
};

/*
 * Reads a 16-bit grey image.  Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE; VX_E_INVALID no such image, 8-bit,
 * colour, damaged or cut off (the words name the file and the place); VX_E_EXHAUSTED too large; VX_E_NOMEM.
 */
vx_err vxc__image_read(struct vxc__image *image, const char *path, struct vx_detail *detail);
/* The same of 1 to 16 bits; *most: the largest value that the file's pixels can have. */
vx_err vxc__image_read_grey(struct vxc__image *image, const char *path, uint16_t *most,
                            struct vx_detail *detail);
void vxc__image_fini(struct vxc__image *image);

#endif
