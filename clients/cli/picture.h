/* picture.h - an 8-bit RGB picture: rectangles, text, PNG; PNG of depths. */
#ifndef VOXELCTL_PICTURE_H
#define VOXELCTL_PICTURE_H

#include "base/vx_err.h"

#include <stdint.h>
#include <stdio.h>

struct rgb {
    uint8_t r, g, b;
};

struct picture {
    uint32_t width, height; /* px */
    struct rgb *px;         /* [height][width], top row first */
};

enum { GLYPH_WIDTH = 6, GLYPH_HEIGHT = 8 }; /* px of a letter at scale 1, spacing included */

/* All pixels of one colour.  Errors: VX_E_NOMEM. */
vx_err picture_init(struct picture *picture, uint32_t width, uint32_t height, struct rgb colour,
                    struct vx_detail *detail);
void picture_fini(struct picture *picture);
/* Parts outside the picture are left out. */
void picture_fill(struct picture *picture, int x, int y, int width, int height, struct rgb colour);
/* A line of text with its top left corner at (x, y); letters without capitals, what has no glyph is a box. */
void picture_text(struct picture *picture, int x, int y, int scale, struct rgb colour, const char *text);
/* Errors: VX_E_UNAVAILABLE the file cannot be written; VX_E_NOMEM. */
vx_err picture_write_png(const struct picture *picture, FILE *file, struct vx_detail *detail);

/* A picture of one 16-bit number a pixel, [height][width].  Errors: the same. */
vx_err picture_write_depth(const uint16_t *px, uint32_t width, uint32_t height, FILE *file,
                           struct vx_detail *detail);

/* a .. b for t in 0 .. 1. */
struct rgb rgb_mix(struct rgb a, struct rgb b, double t);
/* Colour of a distance, t = 0 at the surface, 1 at the end of reach: warm to cool, ever darker for those who
 * see no hue. */
struct rgb rgb_distance(double t);

#endif
