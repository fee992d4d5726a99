#include "picture.h"
#include "glyphs.h"
#include "outfile.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

vx_err picture_init(struct picture *picture, uint32_t width, uint32_t height, struct rgb colour,
                    struct vx_detail *detail)
{
    const size_t n = (size_t)width * height;
    picture->width = width;
    picture->height = height;
    picture->px = malloc((n + 1) * sizeof *picture->px);
    if (!picture->px)
        return vx_fail(detail, VX_E_NOMEM, "png", "no memory for a picture of %u x %u px", width, height);
    for (size_t i = 0; i < n; i++)
        picture->px[i] = colour;
    return VX_OK;
}

void picture_fini(struct picture *picture)
{
    free(picture->px);
    memset(picture, 0, sizeof *picture);
}

void picture_fill(struct picture *picture, int x, int y, int width, int height, struct rgb colour)
{
    for (int v = y < 0 ? 0 : y; v < y + height && v < (int)picture->height; v++)
        for (int u = x < 0 ? 0 : x; u < x + width && u < (int)picture->width; u++)
            picture->px[(size_t)v * picture->width + (size_t)u] = colour;
}

void picture_text(struct picture *picture, int x, int y, int scale, struct rgb colour, const char *text)
{
    for (; *text; text++, x += GLYPH_WIDTH * scale) {
        const char *dots = glyph_dots(*text);
        for (int i = 0; i < 35; i++)
            if (dots[i] != ' ')
                picture_fill(picture, x + i % 5 * scale, y + i / 5 * scale, scale, scale, colour);
    }
}

/* ------------------------------------------------------------------ PNG */

struct png_failure {
    jmp_buf jump;
};

static void on_png_error(png_structp png, png_const_charp message)
{
    (void)message;
    longjmp(((struct png_failure *)png_get_error_ptr(png))->jump, 1);
}

static void on_png_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* Rows of pixels as PNG has them: 8-bit RGB, or 16-bit grey with the greater byte first. */
struct rows {
    uint32_t width, height;
    int bits, colour;
    const uint8_t *first;
    size_t row_bytes;
};

static vx_err write_rows(png_structp png, png_infop info, struct png_failure *failure,
                         const struct rows *rows, FILE *file, struct vx_detail *detail)
{
    if (setjmp(failure->jump))
        return vx_fail(detail, VX_E_UNAVAILABLE, "png", "the picture cannot be written: %s", strerror(errno));
    png_init_io(png, file);
    png_set_IHDR(png, info, rows->width, rows->height, rows->bits, rows->colour, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (uint32_t v = 0; v < rows->height && !outfile_stop(file); v++)
        png_write_row(png, rows->first + v * rows->row_bytes);
    if (outfile_stop(file))
        return vx_fail(detail, VX_E_UNAVAILABLE, "png", "the picture is not whole");
    png_write_end(png, info);
    return VX_OK;
}

static vx_err write_png(const struct rows *rows, FILE *file, struct vx_detail *detail)
{
    struct png_failure failure;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_png_error, on_png_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    vx_err err = info ? write_rows(png, info, &failure, rows, file, detail)
                      : vx_fail(detail, VX_E_NOMEM, "png", "no memory for libpng");
    png_destroy_write_struct(&png, &info);
    if (err == VX_OK && fflush(file) != 0)
        err = vx_fail(detail, VX_E_UNAVAILABLE, "png", "the picture cannot be written: %s", strerror(errno));
    return err;
}

vx_err picture_write_png(const struct picture *picture, FILE *file, struct vx_detail *detail)
{
    const struct rows rows = {.width = picture->width,
                              .height = picture->height,
                              .bits = 8,
                              .colour = PNG_COLOR_TYPE_RGB,
                              .first = (const uint8_t *)picture->px,
                              .row_bytes = picture->width * sizeof *picture->px};
    return write_png(&rows, file, detail);
}

vx_err picture_write_depth(const uint16_t *px, uint32_t width, uint32_t height, FILE *file,
                           struct vx_detail *detail)
{
    const size_t n = (size_t)width * height;
    uint8_t *bytes = malloc(2 * n + 1);
    if (!bytes)
        return vx_fail(detail, VX_E_NOMEM, "png", "no memory for a picture of %u x %u px", width, height);
    for (size_t i = 0; i < n; i++) {
        bytes[2 * i] = (uint8_t)(px[i] >> 8);
        bytes[2 * i + 1] = (uint8_t)px[i];
    }
    const struct rows rows = {.width = width,
                              .height = height,
                              .bits = 16,
                              .colour = PNG_COLOR_TYPE_GRAY,
                              .first = bytes,
                              .row_bytes = 2 * (size_t)width};
    const vx_err err = write_png(&rows, file, detail);
    free(bytes);
    return err;
}

/* ------------------------------------------------------------------ colours */

struct rgb rgb_mix(struct rgb a, struct rgb b, double t)
{
    if (!(t > 0))
        return a;
    if (t > 1)
        t = 1;
    return (struct rgb){(uint8_t)(a.r + (b.r - a.r) * t + 0.5), (uint8_t)(a.g + (b.g - a.g) * t + 0.5),
                        (uint8_t)(a.b + (b.b - a.b) * t + 0.5)};
}

struct rgb rgb_distance(double t)
{
    static const struct rgb stop[] = {{255, 236, 150}, {250, 170, 80}, {222, 92, 78},
                                      {158, 50, 110},  {82, 36, 120},  {28, 22, 80}};
    enum { SPANS = sizeof stop / sizeof *stop - 1 };
    if (!(t > 0))
        t = 0;
    if (t >= 1)
        return stop[SPANS];
    const int span = (int)(t * SPANS);
    return rgb_mix(stop[span], stop[span + 1], t * SPANS - span);
}
