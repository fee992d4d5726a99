/* picture.h - colour images: PNG (by libpng), and JPEG where libjpeg was there at the build.  Internal to the
 * readers. */
#ifndef VXC_READERS_PICTURE_H
#define VXC_READERS_PICTURE_H

#include "base/vx_err.h"

#include <stddef.h>
#include <stdint.h>

/* px[height][width][3] red, green, blue; the buffer is kept from image to image. */
struct vxc__picture {
    uint8_t *px;
    size_t capacity;
};

/*
 * Reads an image of 8 or 16 bits a channel, grey or colour; it must have width x height pixels.  Errors:
 * VX_E_NOT_FOUND, VX_E_UNAVAILABLE; VX_E_INVALID another size, damaged, cut off, or no such image;
 * VX_E_UNIMPLEMENTED a JPEG and no libjpeg, or one of another kind (CMYK, 12 bits); VX_E_NOMEM.
 */
vx_err vxc__picture_read(struct vxc__picture *picture, const char *path, uint32_t width, uint32_t height,
                         struct vx_detail *detail);
void vxc__picture_fini(struct vxc__picture *picture);

#endif
