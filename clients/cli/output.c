#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ JSON */

/* Bytes of the UTF-8 character at p; 0 where there is none: file names are any bytes, JSON is UTF-8. */
static size_t utf8_bytes(const unsigned char *p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (p[0] < 0x80)
        return 1;
    const size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    uint32_t code = p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0; /* also the end of the text */
        code = code << 6 | (p[i] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static void write_string(FILE *file, const char *text)
{
    putc('"', file);
    for (size_t n; *text; text += n) {
        const unsigned char c = (unsigned char)*text;
        const size_t whole = utf8_bytes((const unsigned char *)text);
        n = whole ? whole : 1;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < ' ')
            fprintf(file, "\\u%04x", c);
        else if (!whole)
            fputs("\\ufffd", file);
        else
            fwrite(text, 1, whole, file);
    }
    putc('"', file);
}

static void member(struct json *j, const char *key)
{
    if (j->comma)
        putc(',', j->file);
    j->comma = true;
    if (key) {
        write_string(j->file, key);
        putc(':', j->file);
    }
}

void json_begin(struct json *j, const char *key, char bracket)
{
    member(j, key);
    putc(bracket, j->file);
    j->comma = false;
}

void json_end(struct json *j, char bracket)
{
    putc(bracket, j->file);
    j->comma = true;
}

void json_text(struct json *j, const char *key, const char *value)
{
    member(j, key);
    write_string(j->file, value);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
    member(j, key);
    fprintf(j->file, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
    member(j, key);
    fprintf(j->file, "%" PRId64, value);
}

void json_number(struct json *j, const char *key, double value)
{
    member(j, key);
    if (!isfinite(value)) {
        fputs("null", j->file);
        return;
    }
    if (value == rint(value) && fabs(value) < 1e15) {
        fprintf(j->file, "%.0f", value == 0 ? 0.0 : value); /* no -0 */
        return;
    }
    for (int digits = 6; digits <= 17; digits++) { /* the shortest text that reads back as the same number */
        char text[40];
        double back = 0;
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (digits < 17 && (sscanf(text, "%lf", &back) != 1 || back != value)) /* NOLINT: own output */
            continue;
        fputs(text, j->file);
        return;
    }
}

void json_bool(struct json *j, const char *key, bool value)
{
    member(j, key);
    fputs(value ? "true" : "false", j->file);
}

void json_vector(struct json *j, const char *key, const double *value, int n)
{
    json_begin(j, key, '[');
    for (int i = 0; i < n; i++)
        json_number(j, NULL, value[i]);
    json_end(j, ']');
}

void json_state(struct json *j, const struct vxc_map_state *state)
{
    char uuid[33];
    json_text(j, "uuid", cli_hex(state->uuid, sizeof state->uuid, uuid));
    json_u64(j, "epoch", state->epoch);
    if (state->esdf_epoch != 0)
        json_u64(j, "esdf_epoch", state->esdf_epoch);
    json_i64(j, "newest_stamp_ns", state->newest_stamp_ns);
    json_number(j, "staleness_s", (double)state->staleness_us * 1e-6);
    json_number(j, "max_distance_m", state->max_distance_m);
}

void json_counts(struct json *j, const char *key, const struct vxc_counts *counts)
{
    json_begin(j, key, '{');
    json_u64(j, "used", counts->used);
    json_u64(j, "no_return", counts->no_return);
    json_u64(j, "zero", counts->zero);
    json_u64(j, "negative", counts->negative);
    json_u64(j, "nan", counts->nan);
    json_u64(j, "saturated", counts->saturated);
    json_u64(j, "too_near", counts->too_near);
    json_u64(j, "outside", counts->outside);
    json_end(j, '}');
}

int json_finish(struct json *j)
{
    putc('\n', j->file);
    if (fflush(j->file) == 0 && !ferror(j->file))
        return CLI_OK;
    fprintf(stderr, "voxelctl: cannot write to stdout: %s\n", strerror(errno));
    return CLI_FAILED;
}

void json_error(const char *code, const char *field, const char *message)
{
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_begin(&j, "error", '{');
    json_text(&j, "code", code);
    json_text(&j, "field", field);
    json_text(&j, "message", message);
    json_end(&j, '}');
    json_end(&j, '}');
    (void)json_finish(&j);
}

/* ------------------------------------------------------------------ text */

const char *cli_bytes(uint64_t n_bytes, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)n_bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    snprintf(out, CLI_TEXT_MAX, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return out;
}

const char *cli_count(uint64_t n, char *out)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *p = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = '\0';
    return out;
}

const char *cli_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
    return out;
}

double cli_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
