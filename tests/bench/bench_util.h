/*
 * bench_util.h - what the benchmarks share: options, clock, order statistics, JSON text.
 */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include "vx/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

double bench_now_ms(void);
/* CPU time of all threads of this process. */
double bench_cpu_ms(void);

/* A growing list of samples; `failed` is set when memory ran out. */
struct bench_samples {
    double *value;
    size_t count, capacity;
    bool failed;
};

void bench_samples_add(struct bench_samples *s, double value);
void bench_samples_fini(struct bench_samples *s);
double bench_mean(const struct bench_samples *s);
/* Nearest-rank quantile, 0 <= q <= 1; sorts the samples. */
double bench_quantile(struct bench_samples *s, double q);

/* Numbers of the command line; false (and nothing stored) when `text` is not one within [lo, hi]. */
bool bench_parse_double(const char *text, double lo, double hi, double *out);
bool bench_parse_uint(const char *text, uint64_t hi, uint64_t *out);
/* "X,Y,Z" into out[n]. */
bool bench_parse_list(const char *text, int n, double *out);
/* cpu, cuda or guard. */
bool bench_parse_backend(const char *text, enum vxk_backend *out);

/* Writes `text` as a JSON string, quotes included. */
void bench_json_string(FILE *to, const char *text);
void bench_hex(const uint8_t *bytes, size_t n, char *out);

#endif
