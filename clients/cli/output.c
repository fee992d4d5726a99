#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------ JSON */

static void write_string(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < ' ')
            fprintf(file, "\\u%04x", c);
        else
            putc(c, file);
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
    return fflush(j->file) == 0 && !ferror(j->file) ? CLI_OK : CLI_FAILED;
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
