/*
 * bench_util.c - see bench_util.h.
 */
#include "bench_util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double clock_ms(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double bench_now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

double bench_cpu_ms(void)
{
    return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

void bench_samples_add(struct bench_samples *s, double value)
{
    if (s->count == s->capacity) {
        const size_t wanted = s->capacity ? 2 * s->capacity : 256;
        double *grown = realloc(s->value, wanted * sizeof *grown);
        if (!grown) {
            s->failed = true;
            return;
        }
        s->value = grown;
        s->capacity = wanted;
    }
    s->value[s->count++] = value;
}

void bench_samples_fini(struct bench_samples *s)
{
    free(s->value);
    *s = (struct bench_samples){0};
}

double bench_mean(const struct bench_samples *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->value[i];
    return s->count ? sum / (double)s->count : 0;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(struct bench_samples *s, double q)
{
    if (s->count == 0)
        return 0;
    qsort(s->value, s->count, sizeof *s->value, compare);
    const size_t rank = (size_t)ceil(q * (double)s->count);
    return s->value[rank > 0 ? rank - 1 : 0];
}

bool bench_parse_double(const char *text, double lo, double hi, double *out)
{
    char *end;
    errno = 0;
    const double v = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !(v >= lo && v <= hi))
        return false;
    *out = v;
    return true;
}

bool bench_parse_uint(const char *text, uint64_t hi, uint64_t *out)
{
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v > hi)
        return false;
    *out = v;
    return true;
}

bool bench_parse_list(const char *text, int n, double *out)
{
    for (int i = 0; i < n; i++) {
        char *end;
        out[i] = strtod(text, &end);
        if (end == text || !isfinite(out[i]) || *end != (i + 1 < n ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

bool bench_parse_backend(const char *text, enum vxk_backend *out)
{
    static const struct {
        const char *name;
        enum vxk_backend backend;
    } known[] = {{"cpu", VXK_CPU}, {"cuda", VXK_CUDA}, {"guard", VXK_GUARD}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(text, known[i].name) == 0) {
            *out = known[i].backend;
            return true;
        }
    }
    return false;
}

void bench_json_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(to, "\\u%04x", *c);
        else
            fputc(*c, to);
    }
    fputc('"', to);
}

void bench_hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
