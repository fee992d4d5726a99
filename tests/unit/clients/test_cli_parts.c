/* Parts of voxelctl that need no daemon: options, CSV, JSON, PLY, pictures, files that appear whole. */
#include "cli.h"
#include "csv.h"
#include "glb.h"
#include "outfile.h"
#include "picture.h"
#include "ply.h"
#include "raycast.h"

#include <check.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/voxelctl-parts-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ------------------------------------------------------------------ options */

enum { SIZE, OUTPUT, FLAG };

static const struct cli_option OPTIONS[] = {{"size", 0, true}, {"output", 'o', true}, {"flag", 'f', false}};

static struct cli make(int argc, char **argv)
{
    return (struct cli){.argc = argc, .argv = argv, .help = ""};
}

START_TEST(options_are_taken_anywhere)
{
    char *argv[] = {"a",   "--size", "-3",   "--json",    "-o", "f",         "b",   "-",  "--size=4",
                    "-ox", "-f",     "-1.5", "--ipc-dir", "/d", "--timeout", "1.5", "--", "--size"};
    static const int expected[] = {CLI_WORD, SIZE, OUTPUT,   CLI_WORD, CLI_WORD, SIZE,
                                   OUTPUT,   FLAG, CLI_WORD, CLI_WORD, CLI_END};
    static const char *const values[] = {"a", "-3", "f", "b", "-", "4", "x", NULL, "-1.5", "--size", NULL};
    struct cli cli = make(18, argv);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *value = NULL;
        ck_assert_int_eq(cli_next(&cli, OPTIONS, 3, &value), expected[i]);
        if (values[i])
            ck_assert_str_eq(value, values[i]);
    }
    ck_assert(cli.json);
    ck_assert_str_eq(cli.ipc_dir, "/d");
    ck_assert_uint_eq(cli.timeout_ms, 1500);
}
END_TEST

START_TEST(bad_options_are_usage_errors)
{
    char *bad[][2] = {{"--nope", NULL},   {"--size", NULL}, {"-f=1", NULL}, {"--flag=1", NULL},
                      {"--timeout", "x"}, {"-x", NULL},     {"--siz", "1"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cli cli = make(bad[i][1] ? 2 : 1, bad[i]);
        const char *value;
        ck_assert_int_eq(cli_next(&cli, OPTIONS, 3, &value), CLI_BAD);
        ck_assert_int_eq(cli_option_exit(CLI_BAD), CLI_USAGE);
    }
}
END_TEST

START_TEST(values)
{
    struct cli cli = make(0, NULL);
    double number, three[3];
    uint64_t whole;
    ck_assert(cli_number(&cli, "--n", "-1.5e2", -1e3, 1e3, &number) && number == -150);
    static const char *const bad_numbers[] = {"", "x", "1x", "nan", "inf", "1e999", "1001", "1,5"};
    for (size_t i = 0; i < sizeof bad_numbers / sizeof *bad_numbers; i++)
        ck_assert(!cli_number(&cli, "--n", bad_numbers[i], -1e3, 1e3, &number));
    ck_assert(cli_whole(&cli, "--n", "18446744073709551615", 0, UINT64_MAX, &whole) && whole == UINT64_MAX);
    static const char *const bad_wholes[] = {"", "-1", "+1", " 1", "1.0", "18446744073709551616", "0"};
    for (size_t i = 0; i < sizeof bad_wholes / sizeof *bad_wholes; i++)
        ck_assert(!cli_whole(&cli, "--n", bad_wholes[i], 1, UINT64_MAX, &whole));
    ck_assert(cli_numbers(&cli, "--n", "1,-2,3e1", three, 3) && three[1] == -2 && three[2] == 30);
    static const char *const bad_lists[] = {"1,2", "1,2,3,4", "1,2,", "1;2;3", "1,nan,3", ""};
    for (size_t i = 0; i < sizeof bad_lists / sizeof *bad_lists; i++)
        ck_assert(!cli_numbers(&cli, "--n", bad_lists[i], three, 3));
}
END_TEST

/* ------------------------------------------------------------------ CSV */

static FILE *file_of(const char *text)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    rewind(file);
    return file;
}

static const char *const XYZ[] = {"x", "y", "z"};

START_TEST(csv_rows)
{
    struct csv csv = {
        .file = file_of("\xef\xbb\xbfid, z ,\"x\",y\r\n7,3,1,2\r\n\n8, -3.5 , nan ,\"2e1\"\n9,0,0,0"),
        .name = "t"};
    double v[CSV_MAX_COLUMNS];
    int at_end;
    ck_assert_int_eq(csv_begin(&csv, XYZ, 3, NULL), VX_OK);
    ck_assert_int_eq(csv_next(&csv, v, &at_end, NULL), VX_OK);
    ck_assert(!at_end && v[0] == 1 && v[1] == 2 && v[2] == 3);
    ck_assert_int_eq(csv_next(&csv, v, &at_end, NULL), VX_OK);
    ck_assert(isnan(v[0]) && v[1] == 20 && v[2] == -3.5);
    ck_assert_int_eq(csv_next(&csv, v, &at_end, NULL), VX_OK);
    ck_assert(!at_end && v[0] == 0);
    ck_assert_int_eq(csv_next(&csv, v, &at_end, NULL), VX_OK);
    ck_assert(at_end);
    fclose(csv.file);
}
END_TEST

static void csv_refuses(const char *text, const char *words)
{
    struct csv csv = {.file = file_of(text), .name = "t.csv"};
    struct vx_detail detail = {"", ""};
    double v[CSV_MAX_COLUMNS];
    int at_end = 0;
    vx_err err = csv_begin(&csv, XYZ, 3, &detail);
    while (err == VX_OK && !at_end)
        err = csv_next(&csv, v, &at_end, &detail);
    ck_assert_msg(err == VX_E_INVALID && strstr(detail.text, words), "wanted '%s', got '%s'", words,
                  detail.text);
    fclose(csv.file);
}

START_TEST(csv_traps)
{
    csv_refuses("", "the file is empty");
    csv_refuses("1,2,3\n", "no column 'x'; the first row must name the columns: x,y,z");
    csv_refuses("x,y,z,x\n", "there twice");
    csv_refuses("x,y,z\n1,2\n", "line 2 has too few columns");
    csv_refuses("x,y,z\n1,2,3\n1,,3\n", "line 3: column 2, ''");
    csv_refuses("x,y,z\n1,2,3m\n", "'3m', is no number");
    char long_line[6000]; /* its z would be cut to a shorter number */
    memset(long_line, ' ', sizeof long_line);
    memcpy(long_line, "x,y,z\n1,2,", 10);
    memset(long_line + 3000, '1', sizeof long_line - 3000);
    long_line[sizeof long_line - 1] = '\0';
    csv_refuses(long_line, "line 2 is longer than");
    struct csv csv = {.file = fopen(folder, "rb"), .name = "t"}; /* opens, but cannot be read */
    struct vx_detail detail;
    ck_assert_ptr_nonnull(csv.file);
    ck_assert_int_eq(csv_begin(&csv, XYZ, 3, &detail), VX_E_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(detail.text, "cannot read t"));
    fclose(csv.file);
}
END_TEST

/* ------------------------------------------------------------------ JSON and text */

/* File names are any bytes; what is no UTF-8 must not reach a JSON parser. */
START_TEST(json_is_utf8)
{
    static const char *const cases[][2] = {
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\xff"
         "b",
         "a\\ufffdb"},
        {"\xc3", "\\ufffd"},
        {"\xe2\x82", "\\ufffd\\ufffd"},
        {"\xc0\xaf", "\\ufffd\\ufffd"},                      /* overlong */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},           /* a surrogate */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"} /* beyond the last character */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL, expected[64];
        size_t n = 0;
        struct json j = {open_memstream(&text, &n), false};
        json_text(&j, NULL, cases[i][0]);
        ck_assert_int_eq(json_finish(&j), CLI_OK);
        fclose(j.file);
        snprintf(expected, sizeof expected, "\"%s\"\n", cases[i][1]);
        ck_assert_str_eq(text, expected);
        free(text);
    }
}
END_TEST

START_TEST(json)
{
    char *text = NULL;
    size_t n = 0;
    struct json j = {open_memstream(&text, &n), false};
    const double v[2] = {0.1, -1e300};
    json_begin(&j, NULL, '{');
    json_text(&j, "a\"b", "line\n\\ \x01");
    json_begin(&j, "list", '[');
    json_u64(&j, NULL, UINT64_MAX);
    json_i64(&j, NULL, INT64_MIN);
    json_number(&j, NULL, NAN);
    json_number(&j, NULL, 1.0 / 3);
    json_bool(&j, NULL, true);
    json_end(&j, ']');
    json_begin(&j, "empty", '{');
    json_end(&j, '}');
    json_vector(&j, "v", v, 2);
    json_end(&j, '}');
    ck_assert_int_eq(json_finish(&j), CLI_OK);
    fclose(j.file);
    ck_assert_str_eq(
        text,
        "{\"a\\\"b\":\"line\\u000a\\\\ \\u0001\",\"list\":[18446744073709551615,-9223372036854775808,null,"
        "0.3333333333333333,true],\"empty\":{},\"v\":[0.1,-1e+300]}\n");
    free(text);
}
END_TEST

START_TEST(words_for_numbers)
{
    char text[CLI_TEXT_MAX];
    const uint8_t bytes[] = {0x00, 0xa5, 0xff};
    ck_assert_str_eq(cli_bytes(1023, text), "1023 B");
    ck_assert_str_eq(cli_bytes(1536, text), "1.50 KiB");
    ck_assert_str_eq(cli_bytes(UINT64_MAX, text), "16777216.00 TiB");
    ck_assert_str_eq(cli_count(0, text), "0");
    ck_assert_str_eq(cli_count(999, text), "999");
    ck_assert_str_eq(cli_count(1234567, text), "1,234,567");
    ck_assert_str_eq(cli_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
    ck_assert_str_eq(cli_hex(bytes, 3, text), "00a5ff");
}
END_TEST

/* ------------------------------------------------------------------ PLY */

static char *ply_of(const struct vxc_mesh *mesh, size_t *n)
{
    static char *text; /* gcc 12 takes a local one, set by fclose, for dangling */
    FILE *file = open_memstream(&text, n);
    ck_assert_int_eq(ply_write(file, mesh, false, NULL), VX_OK);
    fclose(file);
    return text;
}

START_TEST(ply)
{
    const float vertices[9] = {0, 0, 0, 1, 0, 0, 0, 1, 0.5f}, normals[9] = {0, 0, 1, 0, 0, 1, 0, 0, -1};
    const uint32_t triangles[3] = {0, 1, 2};
    struct vxc_mesh mesh = {.origin_m = {10, 20, 30},
                            .n_vertices = 3,
                            .n_triangles = 1,
                            .vertices = vertices,
                            .normals = normals,
                            .triangles = triangles};
    size_t n;
    char *text = ply_of(&mesh, &n);
    ck_assert(strncmp(text, "ply\nformat binary_little_endian 1.0\n", 36) == 0);
    ck_assert_ptr_nonnull(strstr(text, "property float x\n"));
    ck_assert_ptr_nonnull(strstr(text, "property float nz\n"));
    const char *body = strstr(text, "end_header\n") + 11;
    ck_assert_uint_eq(n - (size_t)(body - text), 3 * 24 + 13);
    float third[6];
    uint32_t index[3];
    memcpy(third, body + 48, sizeof third);
    ck_assert(third[0] == 10 && third[1] == 21 && third[2] == 30.5f && third[5] == -1);
    ck_assert_int_eq(body[72], 3);
    memcpy(index, body + 73, sizeof index);
    ck_assert(index[0] == 0 && index[1] == 1 && index[2] == 2);
    free(text);
    mesh.origin_m[1] = 4e6 + 0.001; /* a float would be 0.25 m coarse here */
    text = ply_of(&mesh, &n);
    ck_assert_ptr_nonnull(strstr(text, "property double y\n"));
    body = strstr(text, "end_header\n") + 11;
    ck_assert_uint_eq(n - (size_t)(body - text), 3 * 36 + 13);
    double y;
    memcpy(&y, body + 2 * 36 + 8, sizeof y);
    ck_assert_double_eq_tol(y, 4000001.001, 1e-9);
    free(text);
    const struct vxc_mesh empty = {.n_vertices = 0};
    free(ply_of(&empty, &n));
    FILE *full = fopen("/dev/full", "wb");
    if (full) {
        struct vx_detail detail;
        ck_assert_int_eq(ply_write(full, &mesh, false, &detail), VX_E_UNAVAILABLE);
        fclose(full);
    }
}
END_TEST

START_TEST(ply_as_text)
{
    const float vertices[9] = {0, 0, 0, 0.1f, 0, 0, 0, 1, 0.5f}, normals[9] = {0, 0, 1, 0, 0, 1, 0, 0, -1};
    const uint32_t triangles[3] = {0, 1, 2};
    const struct vxc_mesh mesh = {.origin_m = {10, -0.25, 30},
                                  .n_vertices = 3,
                                  .n_triangles = 1,
                                  .vertices = vertices,
                                  .normals = normals,
                                  .triangles = triangles};
    static char *text;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    ck_assert_int_eq(ply_write(file, &mesh, true, NULL), VX_OK);
    fclose(file);
    ck_assert(strncmp(text, "ply\nformat ascii 1.0\n", 21) == 0);
    ck_assert_str_eq(strstr(text, "end_header\n") + 11, "10 -0.25 30 0 0 1\n10.1000004 -0.25 30 0 0 1\n"
                                                        "10 0.75 30.5 0 0 -1\n3 0 1 2\n");
    free(text);
}
END_TEST

/* ------------------------------------------------------------------ glTF */

static uint32_t word(const char *text, size_t at)
{
    const uint8_t *p = (const uint8_t *)text + at;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The file; its heads and sizes are checked.  *binary: offset of the binary part, 0: none. */
static char *glb_of(const struct vxc_mesh *mesh, size_t *binary, size_t *n_binary)
{
    static char *text;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    ck_assert_int_eq(glb_write(file, mesh, NULL), VX_OK);
    fclose(file);
    ck_assert(n >= 20 && memcmp(text, "glTF", 4) == 0 && word(text, 4) == 2 && word(text, 8) == n);
    const size_t n_json = word(text, 12);
    ck_assert(n_json % 4 == 0 && memcmp(text + 16, "JSON", 4) == 0 && text[20] == '{');
    *binary = *n_binary = 0;
    if (20 + n_json < n) {
        *n_binary = word(text, 20 + n_json);
        *binary = 28 + n_json;
        ck_assert(*n_binary % 4 == 0 && *binary + *n_binary == n &&
                  memcmp(text + 24 + n_json, "BIN\0", 4) == 0);
        text[20 + n_json] = '\0'; /* the JSON part as a string */
    }
    return text;
}

static void must_have(const char *head, const char *part)
{
    ck_assert_msg(strstr(head, part) != NULL, "no %s in %s", part, head);
}

START_TEST(glb)
{
    const float vertices[9] = {0.25f, 0, 0.1f, 1, -2, 0, 0, 1, 0.5f},
                normals[9] = {0, 0, 1, 0, 0, 1, 0, 0, -1};
    const uint32_t triangles[6] = {0, 1, 2, 2, 1, 0};
    struct vxc_mesh mesh = {.origin_m = {4000000.125, 20, -30},
                            .n_vertices = 3,
                            .n_triangles = 2,
                            .vertices = vertices,
                            .normals = normals,
                            .triangles = triangles,
                            .state = {.name = "lab", .epoch = 7}};
    struct vx_detail detail;
    size_t at, n;
    char *text = glb_of(&mesh, &at, &n);
    const char *head = text + 20;
    ck_assert_uint_eq(n, 36 + 36 + 24);
    ck_assert(memcmp(text + at, vertices, 36) == 0 && memcmp(text + at + 36, normals, 36) == 0);
    ck_assert(memcmp(text + at + 72, triangles, 24) == 0);
    must_have(head, "\"asset\":{\"version\":\"2.0\"");
    must_have(head, "\"buffers\":[{\"byteLength\":96}]");
    must_have(head, "{\"buffer\":0,\"byteOffset\":0,\"byteLength\":36,\"target\":34962}");
    must_have(head, "{\"buffer\":0,\"byteOffset\":36,\"byteLength\":36,\"target\":34962}");
    must_have(head, "{\"buffer\":0,\"byteOffset\":72,\"byteLength\":24,\"target\":34963}");
    must_have(head,
              "\"componentType\":5126,\"count\":3,\"type\":\"VEC3\",\"min\":[0,-2,0],\"max\":[1,1,0.5]");
    must_have(head, "\"componentType\":5125,\"count\":6,\"type\":\"SCALAR\"");
    must_have(head, "\"translation\":[4000000.125,20,-30]");
    free(text);
    const struct vxc_tint tints[3] = {{.colour = {255, 0, 128}, .weight = 1}, {.colour = {10, 20, 30}}};
    mesh.tints = tints;
    text = glb_of(&mesh, &at, &n);
    ck_assert_uint_eq(n, 96 + 24);
    must_have(text + 20, "\"COLOR_0\":3}");
    must_have(text + 20, "{\"buffer\":0,\"byteOffset\":96,\"byteLength\":24,\"target\":34962}]");
    must_have(text + 20,
              "{\"bufferView\":3,\"componentType\":5123,\"normalized\":true,\"count\":3,\"type\":\"VEC4\"}]");
    ck_assert(word(text, at + 96) == 0xffff && word(text, at + 100) == (0xffff0000 | 14146)); /* sRGB 128 */
    free(text);
    mesh.tints = NULL;
    text = glb_of(&(struct vxc_mesh){.state = {.name = "void"}}, &at, &n);
    ck_assert(at == 0 && !strstr(text + 20, "mesh"));
    free(text);
    /* 4 GiB: nothing of the arrays is read */
    mesh.n_vertices = 130000000;
    mesh.n_triangles = 130000000;
    FILE *file = tmpfile();
    ck_assert_int_eq(glb_write(file, &mesh, &detail), VX_E_EXHAUSTED);
    ck_assert(strstr(detail.text, "4 GiB") && strcmp(detail.field, "format") == 0 && ftell(file) == 0);
    fclose(file);
    mesh.n_vertices = 3;
    mesh.n_triangles = 2;
    file = fopen("/dev/full", "wb");
    if (file) {
        ck_assert_int_eq(glb_write(file, &mesh, &detail), VX_E_UNAVAILABLE);
        fclose(file);
    }
}
END_TEST

/* ------------------------------------------------------------------ pictures */

START_TEST(picture_is_a_png)
{
    struct picture p;
    const struct rgb paper = {250, 251, 252}, ink = {1, 2, 3};
    ck_assert_int_eq(picture_init(&p, 30, 20, paper, NULL), VX_OK);
    picture_fill(&p, -5, -5, 7, 7, ink); /* only 2 x 2 of it are inside */
    picture_fill(&p, 29, 19, 100, 100, ink);
    picture_text(&p, 10, 5, 1, ink, "0\x7f");
    picture_text(&p, 1000, 1000, 3, ink, "outside");
    FILE *file = fopen(path_of("p.png"), "wb");
    ck_assert_int_eq(picture_write_png(&p, file, NULL), VX_OK);
    fclose(file);
    png_image image = {.version = PNG_IMAGE_VERSION};
    ck_assert(png_image_begin_read_from_file(&image, path_of("p.png")));
    image.format = PNG_FORMAT_RGB;
    ck_assert_uint_eq(image.width, 30);
    ck_assert_uint_eq(image.height, 20);
    struct rgb *px = malloc(PNG_IMAGE_SIZE(image));
    ck_assert(png_image_finish_read(&image, NULL, px, 0, NULL));
    ck_assert_mem_eq(px, p.px, 30 * 20 * sizeof *px);
    unsigned n_ink = 0;
    for (int i = 0; i < 600; i++)
        n_ink += px[i].r == 1;
    ck_assert_uint_gt(n_ink, 5 + 20); /* the corners, a nought and a box */
    free(px);
    FILE *full = fopen("/dev/full", "wb");
    if (full) {
        ck_assert_int_eq(picture_write_png(&p, full, NULL), VX_E_UNAVAILABLE);
        fclose(full);
    }
    picture_fini(&p);
}
END_TEST

START_TEST(depths_are_a_png)
{
    const uint16_t px[6] = {0, 1, 256, 65535, 1234, 500};
    uint16_t back[6];
    FILE *file = fopen(path_of("d.png"), "wb");
    ck_assert_int_eq(picture_write_depth(px, 3, 2, file, NULL), VX_OK);
    fclose(file);
    png_image image = {.version = PNG_IMAGE_VERSION};
    ck_assert(png_image_begin_read_from_file(&image, path_of("d.png")));
    ck_assert(image.width == 3 && image.height == 2 && image.format == PNG_FORMAT_LINEAR_Y);
    ck_assert(png_image_finish_read(&image, NULL, back, 0, NULL));
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(back[i], px[i]);
    file = fopen("/dev/full", "wb");
    if (file) {
        struct vx_detail detail;
        ck_assert_int_eq(picture_write_depth(px, 3, 2, file, &detail), VX_E_UNAVAILABLE);
        fclose(file);
    }
}
END_TEST

/* Luminance only falls with the distance, so that the ramp can be read without its hues. */
START_TEST(ramp_darkens)
{
    double last = 256;
    for (int i = 0; i <= 100; i++) {
        const struct rgb c = rgb_distance(i / 100.0);
        const double luminance = 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b;
        ck_assert_double_lt(luminance, last + 1e-9);
        last = luminance;
    }
    const struct rgb below = rgb_distance(-1), first = rgb_distance(0), nan = rgb_distance(NAN);
    ck_assert_mem_eq(&below, &first, sizeof first);
    ck_assert_mem_eq(&nan, &first, sizeof first);
}
END_TEST

START_TEST(cameras)
{
    struct camera c = {.tan_half_fov = 1, .width = 200, .height = 100};
    const double eye[3] = {1, 2, 3}, target[3] = {1, 5, 3}, up[3] = {0, 0, 1}, along[3] = {1, 9, 3};
    double d[3];
    ck_assert(camera_look(&c, eye, target, up));
    ck_assert_double_eq_tol(c.forward[1], 1, 1e-12);
    ck_assert_double_eq_tol(c.right[0], 1, 1e-12); /* looking along y with z up, right is x */
    ck_assert_double_eq_tol(c.down[2], -1, 1e-12);
    camera_ray(&c, 0, 0, d); /* top left */
    ck_assert(d[0] < 0 && d[2] > 0 && d[1] > 0);
    ck_assert_double_eq_tol(d[0] / d[1], -1.99, 1e-9);
    ck_assert_double_eq_tol(d[2] / d[1], 0.99, 1e-9);
    ck_assert(!camera_look(&c, eye, eye, up));
    ck_assert(!camera_look(&c, eye, target, (const double[3]){0, 1, 0}));
    ck_assert(camera_look(&c, eye, along, up));
}
END_TEST

/* ------------------------------------------------------------------ files */

START_TEST(files_appear_whole_or_not_at_all)
{
    struct outfile out;
    struct vx_detail detail;
    char path[128];
    snprintf(path, sizeof path, "%s", path_of("o.txt"));
    ck_assert_int_eq(outfile_open(&out, path, &detail), VX_OK);
    fputs("new", out.file);
    ck_assert_int_ne(access(path, F_OK), 0); /* not before it is whole */
    ck_assert_int_eq(outfile_close(&out, VX_OK, &detail), VX_OK);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(outfile_open(&out, path, &detail), VX_OK);
    fputs("half", out.file);
    ck_assert_int_eq(outfile_close(&out, VX_E_NOMEM, &detail), VX_E_NOMEM);
    FILE *file = fopen(path, "r");
    char text[8] = "";
    ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
    ck_assert_str_eq(text, "new");
    fclose(file);
    ck_assert_int_ne(access(out.part, F_OK), 0);
    ck_assert_int_eq(outfile_open(&out, path_of("none/o.txt"), &detail), VX_E_UNAVAILABLE);
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(outfile_open(&out, "/dev/full", &detail), VX_OK);
        fputs("x", out.file);
        ck_assert_int_eq(outfile_close(&out, VX_OK, &detail), VX_E_UNAVAILABLE);
        ck_assert_int_eq(access("/dev/full", W_OK), 0); /* and it is still there */
    }
}
END_TEST

START_TEST(links_stay_and_what_they_point_to_is_replaced)
{
    struct outfile out;
    struct vx_detail detail;
    struct stat st;
    char file[128], link[128], text[8] = "";
    snprintf(file, sizeof file, "%s", path_of("pointed.txt"));
    snprintf(link, sizeof link, "%s", path_of("link.txt"));
    FILE *old = fopen(file, "w");
    fputs("old", old);
    fclose(old);
    ck_assert_int_eq(symlink("pointed.txt", link), 0);
    ck_assert_int_eq(outfile_open(&out, link, &detail), VX_OK);
    ck_assert_ptr_eq(out.report, stdout);
    fputs("new", out.file);
    ck_assert_int_eq(outfile_close(&out, VX_OK, &detail), VX_OK);
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    FILE *now = fopen(file, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, now));
    ck_assert_str_eq(text, "new");
    fclose(now);
    ck_assert_int_eq(outfile_open(&out, "/dev/stdout", &detail), VX_OK);
    ck_assert_ptr_eq(out.report, stderr); /* not into the file */
    ck_assert_str_eq(out.part, "");
    ck_assert_int_eq(outfile_close(&out, VX_OK, &detail), VX_OK);
    ck_assert_int_eq(outfile_open(&out, "-", &detail), VX_OK);
    ck_assert_ptr_eq(out.report, stderr);
    ck_assert_int_eq(outfile_close(&out, VX_OK, &detail), VX_OK);
}
END_TEST

/* A program that is killed leaves nothing behind, where the file system has files without a name. */
START_TEST(killed_while_writing)
{
    char path[128];
    int status;
    snprintf(path, sizeof path, "%s", path_of("killed.txt"));
    const pid_t pid = fork();
    if (pid == 0) {
        struct outfile out;
        struct vx_detail detail;
        if (outfile_open(&out, path, &detail) != VX_OK)
            _exit(1);
        fputs("half", out.file);
        fflush(out.file);
        if (!out.nameless && unlink(out.part) == 0) /* this file system has none: nothing to see */
            _exit(0);
        _exit(access(out.part, F_OK) == 0 || access(path, F_OK) == 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts of voxelctl");
    TCase *tests = tcase_create("parts of voxelctl");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, options_are_taken_anywhere);
    tcase_add_test(tests, bad_options_are_usage_errors);
    tcase_add_test(tests, values);
    tcase_add_test(tests, csv_rows);
    tcase_add_test(tests, csv_traps);
    tcase_add_test(tests, json);
    tcase_add_test(tests, json_is_utf8);
    tcase_add_test(tests, words_for_numbers);
    tcase_add_test(tests, ply);
    tcase_add_test(tests, ply_as_text);
    tcase_add_test(tests, glb);
    tcase_add_test(tests, picture_is_a_png);
    tcase_add_test(tests, depths_are_a_png);
    tcase_add_test(tests, ramp_darkens);
    tcase_add_test(tests, cameras);
    tcase_add_test(tests, files_appear_whole_or_not_at_all);
    tcase_add_test(tests, links_stay_and_what_they_point_to_is_replaced);
    tcase_add_test(tests, killed_while_writing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
