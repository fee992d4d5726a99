#include "picture.h"
#include "text.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef VXC_HAVE_JPEG
#include <jerror.h>
#include <jpeglib.h>
#endif

/* What the two libraries share: where to go when a file is damaged, and what was wrong. */
struct decode {
    jmp_buf jump;
    char words[200];
    bool strange; /* sound, but of a kind that is not read */
    struct vxc__picture *picture;
    const char *name;
    uint32_t width, height; /* wanted */
};

static vx_err check_size(const struct decode *d, uint64_t width, uint64_t height, struct vx_detail *detail)
{
    if (width != d->width || height != d->height)
        return vx_fail(detail, VX_E_INVALID, "colour",
                       "%s is %llu x %llu px and its depth image %u x %u: register the colours to the depth",
                       d->name, (unsigned long long)width, (unsigned long long)height, d->width, d->height);
    return VX_OK;
}

/* ------------------------------------------------------------------ PNG */

static void on_png_error(png_structp png, png_const_charp message)
{
    struct decode *d = png_get_error_ptr(png);
    snprintf(d->words, sizeof d->words, "%s", message);
    longjmp(d->jump, 1);
}

static void on_png_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static vx_err decode_png(png_structp png, png_infop info, struct decode *d, FILE *file,
                         struct vx_detail *detail)
{
    if (setjmp(d->jump))
        return vx_fail(detail, VX_E_INVALID, "colour", "%s is damaged: %s", d->name, d->words);
    png_init_io(png, file);
    png_read_info(png, info);
    VX_TRY_RET(check_size(d, png_get_image_width(png, info), png_get_image_height(png, info), detail));
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    if (!(png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(png);
    const int n_passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)d->width * 3)
        return vx_fail(detail, VX_E_INVALID, "colour", "%s does not become three channels of 8 bits",
                       d->name);
    for (int pass = 0; pass < n_passes; pass++)
        for (uint32_t v = 0; v < d->height; v++)
            png_read_row(png, d->picture->px + (size_t)v * d->width * 3, NULL);
    png_read_end(png, NULL);
    return VX_OK;
}

static vx_err read_png(struct decode *d, FILE *file, struct vx_detail *detail)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_png_error, on_png_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    const vx_err err = info ? decode_png(png, info, d, file, detail)
                            : vx_fail(detail, VX_E_NOMEM, "colour", "no memory for libpng");
    png_destroy_read_struct(&png, &info, NULL);
    return err;
}

/* ------------------------------------------------------------------ JPEG */

#ifdef VXC_HAVE_JPEG
static void on_jpeg_error(j_common_ptr jpeg)
{
    struct decode *d = jpeg->client_data;
    const int code = jpeg->err->msg_code;
    char words[JMSG_LENGTH_MAX];
    d->strange = code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED || code == JERR_ARITH_NOTIMPL ||
                 code == JERR_CONVERSION_NOTIMPL || code == JERR_NOT_COMPILED;
    jpeg->err->format_message(jpeg, words);
    snprintf(d->words, sizeof d->words, "%.199s", words);
    longjmp(d->jump, 1);
}

/* A warning is a damaged stream that the library went on behind: its pixels are made up. */
static void on_jpeg_message(j_common_ptr jpeg, int level)
{
    if (level < 0)
        on_jpeg_error(jpeg);
}

static vx_err decode_jpeg(struct jpeg_decompress_struct *jpeg, struct decode *d, FILE *file,
                          struct vx_detail *detail)
{
    if (setjmp(d->jump))
        return vx_fail(detail, d->strange ? VX_E_UNIMPLEMENTED : VX_E_INVALID, "colour",
                       d->strange ? "%s is a JPEG that is not read: %s" : "%s is damaged: %s", d->name,
                       d->words);
    jpeg_create_decompress(jpeg);
    jpeg_stdio_src(jpeg, file);
    jpeg_read_header(jpeg, TRUE);
    VX_TRY_RET(check_size(d, jpeg->image_width, jpeg->image_height, detail));
    if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK)
        return vx_fail(detail, VX_E_UNIMPLEMENTED, "colour",
                       "%s is a JPEG of four printing colours (CMYK): grey, RGB and YCbCr ones are read",
                       d->name);
    jpeg->out_color_space = JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW; /* the same numbers on every machine */
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = d->picture->px + (size_t)jpeg->output_scanline * d->width * 3;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
    return VX_OK;
}

static vx_err read_jpeg(struct decode *d, FILE *file, struct vx_detail *detail)
{
    struct jpeg_decompress_struct jpeg = {.client_data = d};
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = on_jpeg_error;
    errors.emit_message = on_jpeg_message;
    const vx_err err = decode_jpeg(&jpeg, d, file, detail);
    jpeg_destroy_decompress(&jpeg);
    return err;
}
#else
static vx_err read_jpeg(struct decode *d, FILE *file, struct vx_detail *detail)
{
    (void)file;
    return vx_fail(detail, VX_E_UNIMPLEMENTED, "colour",
                   "%s is a JPEG, and this program was built without libjpeg (libjpeg-dev)", d->name);
}
#endif

/* ------------------------------------------------------------------ either */

vx_err vxc__picture_read(struct vxc__picture *picture, const char *path, uint32_t width, uint32_t height,
                         struct vx_detail *detail)
{
    struct decode d = {.picture = picture, .name = vxc__base_name(path), .width = width, .height = height};
    const size_t n = (size_t)width * height * 3;
    uint8_t head[2] = {0, 0};
    FILE *file;
    vx_err err;
    if (n > picture->capacity) {
        uint8_t *grown = realloc(picture->px, n);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "colour", "no memory for %s", d.name);
        picture->px = grown;
        picture->capacity = n;
    }
    VX_TRY_RET(vxc__open_file(path, &file, NULL, detail));
    if (fread(head, 1, 2, file) != 2 || fseek(file, 0, SEEK_SET) != 0)
        err = vx_fail(detail, VX_E_INVALID, "colour", "%s is empty", d.name);
    else if (head[0] == 0x89 && head[1] == 'P')
        err = read_png(&d, file, detail);
    else if (head[0] == 0xff && head[1] == 0xd8)
        err = read_jpeg(&d, file, detail);
    else
        err = vx_fail(detail, VX_E_INVALID, "colour", "%s is neither a PNG nor a JPEG image", d.name);
    fclose(file);
    return err;
}

void vxc__picture_fini(struct vxc__picture *picture)
{
    free(picture->px);
    memset(picture, 0, sizeof *picture);
}
