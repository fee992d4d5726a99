#include "set_fixture.h"

#include <ftw.h>
#include <math.h>
#include <png.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void set_begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/voxeld-readers-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void set_end(void)
{
    ck_assert_int_eq(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int set_run(TCase *tests)
{
    Suite *suite = suite_create("readers");
    SRunner *runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tests, set_begin, set_end);
    suite_add_tcase(suite, tests);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

const char *set_path(const char *name)
{
    static char path[8][512];
    static unsigned turn;
    char *out = path[turn++ % 8];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

/* ------------------------------------------------------------------ files */

static FILE *create(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s", set_path(name));
    for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    unlink(path); /* a file that is cut to nothing and written again goes to disk at once on some systems:
                     slow */
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    return file;
}

void set_bytes(const char *name, const void *data, size_t n)
{
    FILE *file = create(name);
    ck_assert_uint_eq(fwrite(data, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

void set_text(const char *name, const char *format, ...)
{
    FILE *file = create(name);
    va_list args;
    va_start(args, format);
    ck_assert_int_ge(vfprintf(file, format, args), 0);
    va_end(args);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_png_with(const char *name, uint32_t width, uint32_t height, int bits, int colour,
                           const uint8_t *rows, size_t stride, bool transparent)
{
    FILE *file = create(name);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, width, height, bits, colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (transparent) {
        const png_color_16 grey = {.gray = 1};
        png_set_tRNS(png, info, NULL, 0, &grey);
    }
    png_write_info(png, info);
    for (uint32_t v = 0; v < height; v++)
        png_write_row(png, rows + v * stride);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_png(const char *name, uint32_t width, uint32_t height, int bits, int colour,
                      const uint8_t *rows, size_t stride)
{
    write_png_with(name, width, height, bits, colour, rows, stride, false);
}

void set_grey(const char *name, uint32_t width, uint32_t height, int bits, const uint8_t *values,
              bool transparent)
{
    const size_t stride = ((size_t)width * (size_t)bits + 7) / 8;
    uint8_t *rows = calloc(height, stride);
    for (uint32_t v = 0; v < height; v++)
        for (uint32_t u = 0; u < width; u++) {
            const uint32_t at = u * (uint32_t)bits;
            rows[v * stride + at / 8] |= (uint8_t)(values[v * width + u] << (8 - (uint32_t)bits - at % 8));
        }
    write_png_with(name, width, height, bits, PNG_COLOR_TYPE_GRAY, rows, stride, transparent);
    free(rows);
}

/* Big-endian pixels, as both PNG and PGM want them. */
static uint8_t *pixels(uint32_t width, uint32_t height, uint16_t base)
{
    uint8_t *out = malloc((size_t)width * height * 2);
    for (uint32_t v = 0; v < height; v++) {
        for (uint32_t u = 0; u < width; u++) {
            const unsigned value = base + 10u * v + u;
            out[2 * (v * width + u)] = (uint8_t)(value >> 8);
            out[2 * (v * width + u) + 1] = (uint8_t)value;
        }
    }
    return out;
}

void set_scenes7(const char *below, int i)
{
    char name[64];
    snprintf(name, sizeof name, "%sframe-%06d.depth.png", below, i);
    set_png16(name, 4, 3, 1000);
    snprintf(name, sizeof name, "%sframe-%06d.pose.txt", below, i);
    set_text(name, "%s", SET_IDENTITY);
}

void set_png16(const char *name, uint32_t width, uint32_t height, uint16_t base)
{
    uint8_t *px = pixels(width, height, base);
    write_png(name, width, height, 16, PNG_COLOR_TYPE_GRAY, px, (size_t)width * 2);
    free(px);
}

void set_pgm16(const char *name, uint32_t width, uint32_t height, uint16_t base)
{
    uint8_t *px = pixels(width, height, base);
    FILE *file = create(name);
    fprintf(file, "P5\n# made by a test\n%u %u\n65535\n", width, height);
    ck_assert_uint_eq(fwrite(px, 2, (size_t)width * height, file), (size_t)width * height);
    ck_assert_int_eq(fclose(file), 0);
    free(px);
}

void set_rgb8(const char *name, uint32_t width, uint32_t height, uint8_t base)
{
    uint8_t *px = malloc((size_t)width * height * 3);
    for (uint32_t i = 0; i < width * height; i++) {
        px[3 * i] = (uint8_t)(base + i % width);
        px[3 * i + 1] = (uint8_t)(base + 10 * (i / width));
        px[3 * i + 2] = base;
    }
    write_png(name, width, height, 8, PNG_COLOR_TYPE_RGB, px, (size_t)width * 3);
    free(px);
}

void set_png8(const char *name, int colour)
{
    const uint8_t rows[2 * 12] = {0};
    write_png(name, 4, 2, 8, colour ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, rows, 12);
}

/* ------------------------------------------------------------------ readers */

struct vxc_reader *set_open(const char *name, const struct vxc_reader_options *options)
{
    struct vxc_reader *reader;
    struct vx_detail detail = {"", ""};
    const vx_err err = vxc_reader_open(name[0] == '/' ? name : set_path(name), options, &reader, &detail);
    ck_assert_msg(err == VX_OK, "%s: %s", vx_err_name(err), detail.text);
    return reader;
}

void set_refuses(const char *name, const struct vxc_reader_options *options, vx_err err, const char *words)
{
    struct vxc_reader *reader;
    struct vx_detail detail = {"", ""};
    const vx_err got = vxc_reader_open(set_path(name), options, &reader, &detail);
    ck_assert_msg(got == err && strstr(detail.text, words), "wanted %s and '%s', got %s: %s",
                  vx_err_name(err), words, vx_err_name(got), detail.text);
    ck_assert_ptr_null(reader);
}

void set_next(struct vxc_reader *reader, struct vxc_frame *frame)
{
    struct vx_detail detail = {"", ""};
    enum vxc_step step;
    vx_err why;
    ck_assert_int_eq(vxc_reader_next(reader, frame, &step, &why, &detail), VX_OK);
    ck_assert_msg(step == VXC_STEP_FRAME, "no frame: %s", detail.text);
}

void set_next_refused(struct vxc_reader *reader, vx_err err, const char *words)
{
    struct vxc_frame frame;
    struct vx_detail detail = {"", ""};
    enum vxc_step step;
    vx_err why;
    ck_assert_int_eq(vxc_reader_next(reader, &frame, &step, &why, &detail), VX_OK);
    ck_assert_int_eq(step, VXC_STEP_REFUSED);
    ck_assert_msg(why == err && strstr(detail.text, words), "wanted %s and '%s', got %s: %s",
                  vx_err_name(err), words, vx_err_name(why), detail.text);
    ck_assert_ptr_nonnull(frame.name);
}

void set_at_end(struct vxc_reader *reader)
{
    struct vxc_frame frame;
    struct vx_detail detail;
    enum vxc_step step;
    vx_err why;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(vxc_reader_next(reader, &frame, &step, &why, &detail), VX_OK);
        ck_assert_int_eq(step, VXC_STEP_END);
    }
}

void set_pose_is(const struct vxc_pose *pose, double x, double y, double z, double qx, double qy, double qz,
                 double qw)
{
    const double p[3] = {x, y, z}, q[4] = {qx, qy, qz, qw};
    double along = 0;
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(pose->position_m[i], p[i], 1e-12);
    for (int i = 0; i < 4; i++)
        along += pose->rotation_xyzw[i] * q[i];
    for (int i = 0; i < 4; i++) /* q and -q are the same rotation */
        ck_assert_double_eq_tol(pose->rotation_xyzw[i], along < 0 ? -q[i] : q[i], 1e-12);
}

const char *set_recorded(void)
{
    const char *data = getenv("VOXELD_TEST_DATA");
    if (!data)
        data = SOURCE_ROOT "/../shared/data";
    if (access(data, R_OK) == 0)
        return data;
    printf("SKIP: no recorded data in %s (set VOXELD_TEST_DATA)\n", data);
    return NULL;
}
