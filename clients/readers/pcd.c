/* PCD v0.5 .. v0.7: a text header of KEY words, then points as text, as rows, or compressed column by column.
 */
#include "cloud.h"
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 64, MAX_STRIDE_BYTES = 4096, MAX_HEADER_LINES = 64 };

enum data { DATA_NONE, DATA_ASCII, DATA_BINARY, DATA_COMPRESSED };

struct pcd {
    const char *name; /* of the file, for messages */
    uint64_t file_bytes;
    FILE *file;
    uint32_t line;
    int n_fields, n_sizes, n_types, n_counts;
    char field[MAX_FIELDS][16];
    char type[MAX_FIELDS];
    uint32_t size[MAX_FIELDS], count[MAX_FIELDS];
    uint64_t width, height, n_points;
    bool has_width, has_height, has_points;
    enum data data;
    struct vxc_pose viewpoint;
    /* of x, y and z */
    int column[3];      /* first number of the field in an ascii row */
    uint32_t offset[3]; /* bytes before it in a binary row */
    uint32_t bytes[3];  /* 4 or 8 */
    /* of the points' times */
    bool has_time;
    char time_type; /* F, I or U */
    int time_column;
    uint32_t time_offset, time_bytes;
    uint32_t stride; /* bytes of a row */
    int n_columns;   /* numbers of an ascii row */
};

/* ------------------------------------------------------------------ header */

/* A header line without its end; false at the end of the file or when it is longer than a header line may be.
 */
static bool header_line(struct pcd *s, char *text, size_t n)
{
    size_t i = 0;
    int c;
    s->line++;
    for (c = getc(s->file); c != EOF && c != '\n'; c = getc(s->file)) {
        if (i + 1 >= n || c == '\0')
            return false;
        text[i++] = (char)c;
    }
    if (c == EOF)
        return false;
    if (i > 0 && text[i - 1] == '\r')
        i--;
    text[i] = '\0';
    return true;
}

static vx_err bad_line(struct pcd *s, const char *key, struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_INVALID, "pcd", "%s line %u: %s is malformed", s->name, s->line, key);
}

/* Whole numbers behind a key. */
static int read_counts(const char *text, uint32_t out[MAX_FIELDS])
{
    double number[MAX_FIELDS];
    const int n = vxc__numbers(text, number, MAX_FIELDS);
    for (int i = 0; i < n && i < MAX_FIELDS; i++) {
        if (!(number[i] >= 0 && number[i] <= 65536) || number[i] != floor(number[i]))
            return -1;
        out[i] = (uint32_t)number[i];
    }
    return n > MAX_FIELDS ? -1 : n;
}

static bool read_size(const char *text, uint64_t *out)
{
    double number;
    if (vxc__numbers(text, &number, 1) != 1 || !(number >= 0 && number <= 1e12) || number != floor(number))
        return false;
    *out = (uint64_t)number;
    return true;
}

static vx_err read_viewpoint(struct pcd *s, const char *text, struct vx_detail *detail)
{
    double v[7]; /* tx ty tz qw qx qy qz */
    if (vxc__numbers(text, v, 7) != 7)
        return bad_line(s, "VIEWPOINT", detail);
    const double xyzw[4] = {v[4], v[5], v[6], v[3]};
    struct vx_detail why;
    const vx_err err = vxc_pose_from_quaternion(v, xyzw, &s->viewpoint, &why);
    if (err != VX_OK)
        return vx_fail(detail, err, "pcd", "%s line %u: VIEWPOINT: %s", s->name, s->line, why.text);
    return VX_OK;
}

static vx_err read_key(struct pcd *s, const char *key, const char *text, struct vx_detail *detail)
{
    char word[32];
    bool good = true;
    if (strcmp(key, "FIELDS") == 0 || strcmp(key, "COLUMNS") == 0) {
        for (s->n_fields = 0; vxc__word(&text, word, sizeof word) && good; s->n_fields++) {
            good = s->n_fields < MAX_FIELDS;
            if (good)
                snprintf(s->field[s->n_fields], sizeof s->field[0], "%.15s", word);
        }
        if (!good)
            s->n_fields = 0;
    } else if (strcmp(key, "TYPE") == 0) {
        for (s->n_types = 0; vxc__word(&text, word, sizeof word) && s->n_types < MAX_FIELDS; s->n_types++)
            s->type[s->n_types] = word[0];
    } else if (strcmp(key, "SIZE") == 0) {
        good = (s->n_sizes = read_counts(text, s->size)) > 0;
    } else if (strcmp(key, "COUNT") == 0) {
        good = (s->n_counts = read_counts(text, s->count)) > 0;
    } else if (strcmp(key, "WIDTH") == 0) {
        good = s->has_width = read_size(text, &s->width);
    } else if (strcmp(key, "HEIGHT") == 0) {
        good = s->has_height = read_size(text, &s->height);
    } else if (strcmp(key, "POINTS") == 0) {
        good = s->has_points = read_size(text, &s->n_points);
    } else if (strcmp(key, "VIEWPOINT") == 0) {
        return read_viewpoint(s, text, detail);
    } else if (strcmp(key, "DATA") == 0) {
        if (!vxc__word(&text, word, sizeof word))
            word[0] = '\0';
        s->data = strcmp(word, "ascii") == 0               ? DATA_ASCII
                  : strcmp(word, "binary") == 0            ? DATA_BINARY
                  : strcmp(word, "binary_compressed") == 0 ? DATA_COMPRESSED
                                                           : DATA_NONE;
        good = s->data != DATA_NONE;
    } else if (strcmp(key, "VERSION") != 0) {
        return vx_fail(detail, VX_E_INVALID, "pcd",
                       "%s line %u: '%s' is no PCD header word (is it a PCD file?)", s->name, s->line, key);
    }
    return good ? VX_OK : bad_line(s, key, detail);
}

/* Is field i the time of a point, in a form that can be read? */
static bool is_time(const struct pcd *s, int i)
{
    static const char *const names[] = {"t", "time", "timestamp", "offset_time", "time_offset"};
    bool named = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        named = named || strcmp(s->field[i], names[k]) == 0;
    return named && s->count[i] == 1 && (s->size[i] == 4 || s->size[i] == 8) &&
           (s->type[i] == 'F' || s->type[i] == 'I' || s->type[i] == 'U');
}

/* Where x, y, z and times lie in a row. */
static vx_err lay_out(struct pcd *s, struct vx_detail *detail)
{
    if (s->n_counts == 0)
        for (s->n_counts = 0; s->n_counts < s->n_fields; s->n_counts++)
            s->count[s->n_counts] = 1;
    if (s->n_fields == 0 || s->n_sizes != s->n_fields || s->n_types != s->n_fields ||
        s->n_counts != s->n_fields)
        return vx_fail(detail, VX_E_INVALID, "pcd",
                       "%s: FIELDS, SIZE, TYPE and COUNT do not list the same fields", s->name);
    bool found[3] = {false, false, false};
    uint64_t stride = 0, n_columns = 0;
    for (int i = 0; i < s->n_fields; i++) {
        const int axis = s->field[i][0] - 'x';
        if (axis >= 0 && axis < 3 && s->field[i][1] == '\0') {
            if (s->type[i] != 'F' || (s->size[i] != 4 && s->size[i] != 8) || s->count[i] != 1)
                return vx_fail(detail, VX_E_INVALID, "pcd", "%s: field %s must be one float of 4 or 8 bytes",
                               s->name, s->field[i]);
            found[axis] = true;
            s->column[axis] = (int)n_columns;
            s->offset[axis] = (uint32_t)stride;
            s->bytes[axis] = s->size[i];
        }
        if (!s->has_time && is_time(s, i)) {
            s->has_time = true;
            s->time_type = s->type[i];
            s->time_column = (int)n_columns;
            s->time_offset = (uint32_t)stride;
            s->time_bytes = s->size[i];
        }
        n_columns += s->count[i];
        stride += (uint64_t)s->size[i] * s->count[i];
        if (stride > MAX_STRIDE_BYTES || n_columns > MAX_STRIDE_BYTES)
            return vx_fail(detail, VX_E_INVALID, "pcd", "%s: a point has more than %d bytes", s->name,
                           MAX_STRIDE_BYTES);
    }
    if (!found[0] || !found[1] || !found[2])
        return vx_fail(detail, VX_E_INVALID, "pcd", "%s has no fields x, y and z", s->name);
    s->stride = (uint32_t)stride;
    s->n_columns = (int)n_columns;
    return VX_OK;
}

static vx_err read_header(struct pcd *s, struct vx_detail *detail)
{
    char text[1024], key[32];
    s->viewpoint = (struct vxc_pose){.rotation_xyzw = {0, 0, 0, 1}};
    while (s->data == DATA_NONE) {
        if (s->line == MAX_HEADER_LINES || !header_line(s, text, sizeof text))
            return vx_fail(detail, VX_E_INVALID, "pcd", "%s: the header ends at line %u without DATA",
                           s->name, s->line);
        const char *rest = text;
        if (text[strspn(text, " \t")] == '#' || !vxc__word(&rest, key, sizeof key))
            continue;
        VX_TRY_RET(read_key(s, key, rest, detail));
    }
    VX_TRY_RET(lay_out(s, detail));
    const bool sized = s->has_width && s->has_height;
    if (!sized && !s->has_points)
        return vx_fail(detail, VX_E_INVALID, "pcd", "%s says neither POINTS nor WIDTH and HEIGHT", s->name);
    if (sized && s->has_points &&
        (s->height == 0 ? s->n_points != 0
                        : s->n_points / s->height != s->width || s->n_points % s->height != 0))
        return vx_fail(detail, VX_E_INVALID, "pcd", "%s: POINTS %llu is not WIDTH %llu x HEIGHT %llu",
                       s->name, (unsigned long long)s->n_points, (unsigned long long)s->width,
                       (unsigned long long)s->height);
    if (!s->has_points) {
        if (s->height > 0 && s->width > VXC__POINTS_MAX / s->height)
            return vx_fail(detail, VX_E_EXHAUSTED, "pcd", "%s holds more than %d points", s->name,
                           VXC__POINTS_MAX);
        s->n_points = s->width * s->height;
    }
    return VX_OK;
}

/* ------------------------------------------------------------------ points */

static float coordinate(const uint8_t *bytes, uint32_t size)
{
    float f;
    double d;
    if (size == 4) {
        memcpy(&f, bytes, 4);
        return f;
    }
    memcpy(&d, bytes, 8);
    return (float)d;
}

/* Seconds, or nanoseconds of a clock, as ns. */
static int64_t ns_of_number(double v)
{
    if (fabs(v) > 1e15)
        return fabs(v) < 9e18 ? (int64_t)v : VXC__NO_TIME;
    return fabs(v) < 9e9 ? (int64_t)floor(v * 1e9 + 0.5) : VXC__NO_TIME; /* NaN is neither */
}

static int64_t time_of(const struct pcd *s, const uint8_t *bytes)
{
    uint32_t u4;
    uint64_t u8;
    if (s->time_type == 'F') {
        float f;
        double d;
        memcpy(&f, bytes, 4);
        if (s->time_bytes == 4)
            return ns_of_number((double)f);
        memcpy(&d, bytes, 8);
        return ns_of_number(d);
    }
    memcpy(&u4, bytes, 4);
    if (s->time_bytes == 4)
        return s->time_type == 'U' ? (int64_t)u4 : (int64_t)(int32_t)u4;
    memcpy(&u8, bytes, 8);
    return s->time_type == 'U' && u8 > INT64_MAX ? VXC__NO_TIME : (int64_t)u8;
}

/* Of an ascii row. */
static int64_t time_of_number(const struct pcd *s, double v)
{
    if (s->time_type == 'F')
        return ns_of_number(v);
    return fabs(v) < 9e18 ? (int64_t)v : VXC__NO_TIME;
}

static vx_err read_ascii(struct pcd *s, struct vxc__cloud *cloud, struct vx_detail *detail)
{
    struct vxc__lines lines = {.file = s->file, .number = s->line};
    double *number = calloc((size_t)s->n_columns, sizeof *number);
    if (!number)
        return vx_fail(detail, VX_E_NOMEM, "pcd", "no memory for %s", s->name);
    vx_err err = VX_OK;
    for (size_t i = 0; err == VX_OK && i < cloud->n; i++) {
        if (!vxc__lines_next(&lines))
            err =
                vx_fail(detail, VX_E_INVALID, "pcd", "%s ends behind point %zu of %zu", s->name, i, cloud->n);
        else if (lines.too_long || vxc__numbers(lines.text, number, s->n_columns) != s->n_columns)
            err = vx_fail(detail, VX_E_INVALID, "pcd", "%s line %u does not hold %d numbers", s->name,
                          lines.number, s->n_columns);
        else
            for (int axis = 0; axis < 3; axis++)
                cloud->xyz[3 * i + axis] = (float)number[s->column[axis]];
        if (err == VX_OK && s->has_time)
            cloud->time_ns[i] = time_of_number(s, number[s->time_column]);
    }
    free(number);
    return err;
}

static vx_err read_binary(struct pcd *s, struct vxc__cloud *cloud, struct vx_detail *detail)
{
    uint8_t row[MAX_STRIDE_BYTES];
    for (size_t i = 0; i < cloud->n; i++) {
        if (fread(row, s->stride, 1, s->file) != 1)
            return vx_fail(detail, VX_E_INVALID, "pcd", "%s ends behind point %zu of %zu", s->name, i,
                           cloud->n);
        for (int axis = 0; axis < 3; axis++)
            cloud->xyz[3 * i + axis] = coordinate(row + s->offset[axis], s->bytes[axis]);
        if (s->has_time)
            cloud->time_ns[i] = time_of(s, row + s->time_offset);
    }
    return VX_OK;
}

/* Column by column: all of one field, then all of the next. */
static vx_err read_compressed(struct pcd *s, struct vxc__cloud *cloud, struct vx_detail *detail)
{
    uint32_t sizes[2]; /* compressed, expanded; bytes */
    const uint64_t expected = (uint64_t)s->stride * cloud->n;
    if (fread(sizes, sizeof sizes, 1, s->file) != 1)
        return vx_fail(detail, VX_E_INVALID, "pcd", "%s ends behind its header", s->name);
    if (sizes[1] != expected)
        return vx_fail(detail, VX_E_INVALID, "pcd", "%s says %u bytes of points, but %zu points have %llu",
                       s->name, sizes[1], cloud->n, (unsigned long long)expected);
    if (sizes[0] > s->file_bytes)
        return vx_fail(detail, VX_E_INVALID, "pcd",
                       "%s is cut off: %u bytes of compressed points, the file has %llu", s->name, sizes[0],
                       (unsigned long long)s->file_bytes);
    if (expected / 100 > sizes[0]) /* LZF makes at most 264 bytes of 3: do not allocate for a lie */
        return vx_fail(detail, VX_E_INVALID, "pcd", "%s: %u bytes cannot hold %llu bytes of points", s->name,
                       sizes[0], (unsigned long long)expected);
    uint8_t *in = malloc(sizes[0] + (size_t)1), *out = malloc((size_t)expected + 1);
    vx_err err = VX_OK;
    if (!in || !out)
        err = vx_fail(detail, VX_E_NOMEM, "pcd", "no memory for %s", s->name);
    else if (fread(in, 1, sizes[0], s->file) != sizes[0])
        err = vx_fail(detail, VX_E_INVALID, "pcd", "%s is cut off in its compressed points", s->name);
    else if (!vxc__lzf_expand(in, sizes[0], out, (size_t)expected))
        err = vx_fail(detail, VX_E_INVALID, "pcd", "%s: the compressed points are damaged", s->name);
    else
        for (int axis = 0; axis < 3; axis++)
            for (size_t i = 0; i < cloud->n; i++)
                cloud->xyz[3 * i + axis] =
                    coordinate(out + (size_t)s->offset[axis] * cloud->n + i * s->bytes[axis], s->bytes[axis]);
    for (size_t i = 0; err == VX_OK && s->has_time && i < cloud->n; i++)
        cloud->time_ns[i] = time_of(s, out + (size_t)s->time_offset * cloud->n + i * s->time_bytes);
    free(in);
    free(out);
    return err;
}

static vx_err read_points(struct pcd *s, struct vxc__cloud *cloud, struct vx_detail *detail)
{
    /* A header that promises more points than the file can hold must not allocate them. */
    const uint64_t least = s->data == DATA_ASCII    ? 2 * (uint64_t)s->n_columns - 1
                           : s->data == DATA_BINARY ? s->stride
                                                    : 0;
    if (least > 0 && s->n_points > s->file_bytes / least + 1)
        return vx_fail(detail, VX_E_INVALID, "pcd",
                       "%s is cut off: it promises %llu points and has %llu bytes", s->name,
                       (unsigned long long)s->n_points, (unsigned long long)s->file_bytes);
    VX_TRY_RET(vxc__cloud_resize(cloud, s->n_points, s->name, detail));
    if (cloud->n == 0)
        return VX_OK;
    if (s->has_time)
        VX_TRY_RET(vxc__cloud_want_times(cloud, s->name, detail));
    switch (s->data) {
    case DATA_ASCII:
        return read_ascii(s, cloud, detail);
    case DATA_BINARY:
        return read_binary(s, cloud, detail);
    default:
        return read_compressed(s, cloud, detail);
    }
}

vx_err vxc__cloud_read_pcd(struct vxc__cloud *cloud, const char *path, struct vxc_pose *viewpoint,
                           struct vx_detail *detail)
{
    struct pcd *s = calloc(1, sizeof *s);
    if (!s)
        return vx_fail(detail, VX_E_NOMEM, "pcd", "no memory for %s", path);
    s->name = vxc__base_name(path);
    vx_err err = vxc__open_file(path, &s->file, &s->file_bytes, detail);
    if (err == VX_OK)
        err = read_header(s, detail);
    if (err == VX_OK)
        err = read_points(s, cloud, detail);
    if (err == VX_OK)
        *viewpoint = s->viewpoint;
    if (s->file)
        fclose(s->file);
    free(s);
    return err;
}
