/* Stable radix sort, lowest digit first; digits that all keys share are skipped. */
#include "cpu.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, SMALL = 48 };

struct sort {
    const uint64_t *keys;
    uint64_t *keys_out;
    const uint32_t *values; /* may be NULL */
    uint32_t *values_out;
    uint32_t *place;        /* [parts][DIGITS] count, then where the part's next key of the digit goes */
    uint64_t *ones, *zeros; /* [parts] OR of the keys, OR of their complements */
    uint32_t n, parts;
    int shift;
};

static void sort_bits(void *ctx, uint32_t begin, uint32_t end)
{
    struct sort *s = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1);
        uint64_t ones = 0, zeros = 0;
        for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++) {
            ones |= s->keys[i];
            zeros |= ~s->keys[i];
        }
        s->ones[p] = ones;
        s->zeros[p] = zeros;
    }
}

static void sort_count(void *ctx, uint32_t begin, uint32_t end)
{
    struct sort *s = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1), *count = s->place + (size_t)p * DIGITS;
        memset(count, 0, DIGITS * sizeof *count);
        for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++)
            count[s->keys[i] >> s->shift & (DIGITS - 1)]++;
    }
}

static void sort_scatter(void *ctx, uint32_t begin, uint32_t end)
{
    struct sort *s = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1), *place = s->place + (size_t)p * DIGITS;
        for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++) {
            uint64_t key = s->keys[i];
            uint32_t at = place[key >> s->shift & (DIGITS - 1)]++;
            s->keys_out[at] = key;
            if (s->values)
                s->values_out[at] = s->values[i];
        }
    }
}

/* Counts to places: digits in order, within a digit the parts in order (this makes it stable). */
static void counts_to_places(struct sort *s)
{
    uint32_t total = 0;
    for (uint32_t d = 0; d < DIGITS; d++)
        for (uint32_t p = 0; p < s->parts; p++) {
            uint32_t *at = &s->place[(size_t)p * DIGITS + d], count = *at;
            *at = total;
            total += count;
        }
}

static void insertion_sort(uint64_t *keys, uint32_t *values, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        uint32_t value = values ? values[i] : 0, at = i;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            if (values)
                values[at] = values[at - 1];
        }
        keys[at] = key;
        if (values)
            values[at] = value;
    }
}

static void sort_passes(struct vxk_cpu_queue *q, struct sort *s, uint64_t *keys, uint32_t *values)
{
    uint64_t ones = 0, zeros = 0, differ;
    vxk_cpu_run_parts(q, sort_bits, s, s->parts);
    for (uint32_t p = 0; p < s->parts; p++) {
        ones |= s->ones[p];
        zeros |= s->zeros[p];
    }
    differ = ones & zeros;
    for (s->shift = 0; s->shift < 64; s->shift += DIGIT_BITS) {
        uint64_t *keys_swap = (uint64_t *)s->keys;
        uint32_t *values_swap = (uint32_t *)s->values;
        if ((differ >> s->shift & (DIGITS - 1)) == 0)
            continue;
        vxk_cpu_run_parts(q, sort_count, s, s->parts);
        counts_to_places(s);
        vxk_cpu_run_parts(q, sort_scatter, s, s->parts);
        s->keys = s->keys_out;
        s->keys_out = keys_swap;
        s->values = values ? s->values_out : NULL;
        s->values_out = values_swap;
    }
    if (s->keys != keys) {
        memcpy(keys, s->keys, s->n * sizeof *keys);
        if (values)
            memcpy(values, s->values, s->n * sizeof *values);
    }
}

vx_err vxk_cpu_sort_u64(struct vxk_queue *queue, uint64_t *keys, uint32_t *values, uint32_t n)
{
    struct vxk_cpu_queue *q = (struct vxk_cpu_queue *)queue;
    struct sort s;
    uint64_t keys_bytes = (uint64_t)n * sizeof *keys,
             values_bytes = values ? (uint64_t)n * sizeof *values : 0;
    char *scratch;
    if (n <= SMALL) {
        insertion_sort(keys, values, n);
        return VX_OK;
    }
    memset(&s, 0, sizeof s);
    s.n = n;
    s.parts = vxk_cpu_parts(q, n);
    scratch = vxk_cpu_scratch(q, keys_bytes + values_bytes +
                                     s.parts * (2 * sizeof *s.ones + DIGITS * sizeof *s.place));
    if (!scratch)
        return VX_E_NOMEM;
    s.keys = keys;
    s.values = values;
    s.keys_out = (uint64_t *)(void *)scratch;
    s.ones = s.keys_out + n;
    s.zeros = s.ones + s.parts;
    s.place = (uint32_t *)(void *)(s.zeros + s.parts);
    s.values_out = values ? s.place + (size_t)s.parts * DIGITS : NULL;
    sort_passes(q, &s, keys, values);
    return VX_OK;
}
