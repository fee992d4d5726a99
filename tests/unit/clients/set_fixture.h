/* set_fixture.h - tiny datasets in a private folder, for the tests of the readers. */
#ifndef SET_FIXTURE_H
#define SET_FIXTURE_H

#include "vxc_reader.h"

#include <check.h>
#include <stddef.h>

/* Runs the tests, each in a private folder that is made for it and removed after it: exit status of the
 * program. */
int set_run(TCase *tests);
/* "folder/name"; the string lives until the next call but seven. */
const char *set_path(const char *name);

/* Files in it; folders on the way are made. */
void set_bytes(const char *name, const void *data, size_t n);
void set_text(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frame i of 7-Scenes in the folder `below`, "" or "name/": 4 x 3 pixels, set_png16 with 1000, SET_IDENTITY.
 */
#define SET_IDENTITY "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"
void set_scenes7(const char *below, int i);
/* 16-bit grey image whose pixel (u, v) is base + 10 v + u. */
void set_png16(const char *name, uint32_t width, uint32_t height, uint16_t base);
void set_pgm16(const char *name, uint32_t width, uint32_t height, uint16_t base);
/* 8-bit colour image whose pixel (u, v) is red = base + u, green = base + 10 v, blue = base. */
void set_rgb8(const char *name, uint32_t width, uint32_t height, uint8_t base);
/* Grey image of 1, 2, 4 or 8 bits a pixel with these values; transparent: with a transparent grey. */
void set_grey(const char *name, uint32_t width, uint32_t height, int bits, const uint8_t *values,
              bool transparent);
/* An image that is no depth: 8-bit grey (colour = 0) or RGB (1). */
void set_png8(const char *name, int colour);

/* Opens name below the folder; must succeed. */
struct vxc_reader *set_open(const char *name, const struct vxc_reader_options *options);
/* Opening must fail with this code, and the words must hold `words`. */
void set_refuses(const char *name, const struct vxc_reader_options *options, vx_err err, const char *words);
/* The next frame; must be good. */
void set_next(struct vxc_reader *reader, struct vxc_frame *frame);
/* The next frame must be refused with this code and these words. */
void set_next_refused(struct vxc_reader *reader, vx_err err, const char *words);
void set_at_end(struct vxc_reader *reader);
/* Position and quaternion within 1e-12. */
void set_pose_is(const struct vxc_pose *pose, double x, double y, double z, double qx, double qy, double qz,
                 double qw);

/* Folder of recorded data (VOXELD_TEST_DATA, else ../shared/data beside the checkout); NULL, with the reason
 * printed, when it is not there. */
const char *set_recorded(void);

#endif
