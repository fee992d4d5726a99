/* glyphs.h - a small 5 x 7 font for the legends of pictures. */
#ifndef VOXELCTL_GLYPHS_H
#define VOXELCTL_GLYPHS_H

/* 35 characters, row by row, ' ' where the paper shows; never NULL. */
const char *glyph_dots(char c);

#endif
