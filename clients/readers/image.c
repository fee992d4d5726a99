#include "image.h"
#include "text.h"

#include <ctype.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static vx_err resize(struct vxc__image *image, uint64_t width, uint64_t height, const char *name,
                     struct vx_detail *detail)
{
    if (width == 0 || height == 0)
        return vx_fail(detail, VX_E_INVALID, "depth", "%s has no pixels", name);
    if (width > VXC__SIDE_MAX || height > VXC__SIDE_MAX || width * height > VXC__PIXELS_MAX)
        return vx_fail(detail, VX_E_EXHAUSTED, "depth",
                       "%s is too large: %llu x %llu px, at most %d px are read", name,
                       (unsigned long long)width, (unsigned long long)height, VXC__PIXELS_MAX);
    const size_t n = (size_t)(width * height);
    if (n > image->capacity_px) {
        uint16_t *grown = realloc(image->px, n * sizeof *grown);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "depth", "no memory for %s", name);
        image->px = grown;
        image->capacity_px = n;
    }
    image->width = (uint32_t)width;
    image->height = (uint32_t)height;
    return VX_OK;
}

void vxc__image_fini(struct vxc__image *image)
{
    free(image->px);
    memset(image, 0, sizeof *image);
}

/* ------------------------------------------------------------------ PNG */

struct png_context {
    jmp_buf jump;
    char words[160];
    png_uint_32 row; /* being decoded: tells how far a damaged file got */
};

static void on_png_error(png_structp png, png_const_charp message)
{
    struct png_context *context = png_get_error_ptr(png);
    snprintf(context->words, sizeof context->words, "%s", message);
    longjmp(context->jump, 1);
}

static void on_png_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message; /* about colour profiles and text chunks, which do not change a depth */
}

/* Values of 0 .. 65535 back to 0 .. most, of which 65535 is a multiple. */
static void narrow(struct vxc__image *image, uint16_t most)
{
    const size_t n = (size_t)image->width * image->height;
    for (size_t i = 0; i < n; i++)
        image->px[i] = (uint16_t)(image->px[i] / (65535 / most));
}

/* Decodes behind the signature; everything that must survive the longjmp is in *context or volatile-free
 * callers. */
static vx_err decode_png(png_structp png, png_infop info, struct png_context *context,
                         struct vxc__image *image, FILE *file, const char *name, uint16_t *most,
                         struct vx_detail *detail)
{
    if (setjmp(context->jump))
        return vx_fail(detail, VX_E_INVALID, "depth", "%s is damaged at row %u: %s", name,
                       (unsigned)context->row, context->words);
    png_init_io(png, file);
    png_set_user_limits(png, VXC__SIDE_MAX, VXC__SIDE_MAX);
    png_read_info(png, info);
    const int bits = png_get_bit_depth(png, info), colour = png_get_color_type(png, info);
    if (colour != PNG_COLOR_TYPE_GRAY)
        return vx_fail(detail, VX_E_INVALID, "depth", "%s is a colour image; one channel of %s is wanted",
                       name, most ? "grey" : "16 bits");
    if (bits != 16 && !most)
        return vx_fail(detail, VX_E_INVALID, "depth",
                       "%s has %d bits a pixel; depth needs 16 (an 8-bit image is a picture, not distances)",
                       name, bits);
    VX_TRY_RET(resize(image, png_get_image_width(png, info), png_get_image_height(png, info), name, detail));
    const uint16_t probe = 1;
    if (*(const uint8_t *)&probe == 1)
        png_set_swap(png);
    if (bits < 16) {
        png_set_expand_16(png); /* spreads the file's values over 16 bits; narrow() takes that back */
        png_set_strip_alpha(png);
    }
    const int n_passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != image->width * sizeof *image->px)
        return vx_fail(detail, VX_E_INVALID, "depth", "%s has something beside its grey values", name);
    for (int pass = 0; pass < n_passes; pass++)
        for (context->row = 0; context->row < image->height; context->row++)
            png_read_row(png, (png_bytep)(image->px + (size_t)context->row * image->width), NULL);
    png_read_end(png, NULL);
    if (bits < 16)
        narrow(image, (uint16_t)((1 << bits) - 1));
    if (most)
        *most = (uint16_t)((1u << bits) - 1);
    return VX_OK;
}

static vx_err read_png(struct vxc__image *image, FILE *file, const char *name, uint16_t *most,
                       struct vx_detail *detail)
{
    struct png_context context = {.words = ""};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &context, on_png_error, on_png_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    vx_err err = info ? decode_png(png, info, &context, image, file, name, most, detail)
                      : vx_fail(detail, VX_E_NOMEM, "depth", "no memory for libpng");
    png_destroy_read_struct(&png, &info, NULL);
    return err;
}

/* ------------------------------------------------------------------ PGM */

/* One number of a PGM header, behind blanks and comments; -1 when there is none. */
static int64_t pgm_number(FILE *file)
{
    int c = getc(file);
    while (c == '#' || isspace(c)) {
        if (c == '#')
            while (c != EOF && c != '\n')
                c = getc(file);
        else
            c = getc(file);
    }
    int64_t value = -1;
    for (; isdigit(c) && value < 100000000; c = getc(file))
        value = (value < 0 ? 0 : value) * 10 + (c - '0');
    return isspace(c) ? value
                      : -1; /* exactly one blank ends a number: behind the last one the pixels begin */
}

static vx_err read_pgm(struct vxc__image *image, FILE *file, const char *name, uint16_t *most,
                       struct vx_detail *detail)
{
    const int64_t width = pgm_number(file), height = pgm_number(file), maximum = pgm_number(file);
    if (width < 0 || height < 0 || maximum < 1 || maximum > 65535)
        return vx_fail(detail, VX_E_INVALID, "depth", "the header of %s is not 'P5 width height maximum'",
                       name);
    if (maximum < 256 && !most)
        return vx_fail(detail, VX_E_INVALID, "depth",
                       "%s has 8 bits a pixel; depth needs 16 (an 8-bit image is a picture, not distances)",
                       name);
    VX_TRY_RET(resize(image, (uint64_t)width, (uint64_t)height, name, detail));
    const size_t n = (size_t)width * (size_t)height, px_bytes = maximum < 256 ? 1 : 2;
    const size_t got = fread(image->px, px_bytes, n, file);
    if (most)
        *most = (uint16_t)maximum;
    if (got != n)
        return vx_fail(detail, VX_E_INVALID, "depth", "%s is cut off in row %zu of %u", name,
                       got / image->width, image->height);
    for (size_t i = n; px_bytes == 1 && i-- > 0;) /* from the end, in place */
        image->px[i] = ((const uint8_t *)image->px)[i];
    for (size_t i = 0; px_bytes == 2 && i < n; i++) { /* big-endian by definition */
        const uint8_t *b = (const uint8_t *)&image->px[i];
        image->px[i] = (uint16_t)(b[0] << 8 | b[1]);
    }
    return VX_OK;
}

/* most NULL: 16 bits are wanted. */
static vx_err read_any(struct vxc__image *image, const char *path, uint16_t *most, struct vx_detail *detail)
{
    FILE *file;
    VX_TRY_RET(vxc__open_file(path, &file, NULL, detail));
    const char *name = vxc__base_name(path);
    uint8_t head[2] = {0, 0};
    vx_err err;
    if (fread(head, 1, 2, file) != 2)
        err = vx_fail(detail, VX_E_INVALID, "depth", "%s is empty", name);
    else if (head[0] == 'P' && head[1] == '5')
        err = read_pgm(image, file, name, most, detail);
    else if (head[0] == 0x89 && head[1] == 'P' && fseek(file, 0, SEEK_SET) == 0)
        err = read_png(image, file, name, most, detail);
    else
        err = vx_fail(detail, VX_E_INVALID, "depth", "%s is neither a PNG nor a binary PGM image", name);
    fclose(file);
    return err;
}

vx_err vxc__image_read(struct vxc__image *image, const char *path, struct vx_detail *detail)
{
    return read_any(image, path, NULL, detail);
}

vx_err vxc__image_read_grey(struct vxc__image *image, const char *path, uint16_t *most,
                            struct vx_detail *detail)
{
    return read_any(image, path, most, detail);
}
