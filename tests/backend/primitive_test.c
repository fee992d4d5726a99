#include "backend.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t counts[] = {0, 1, 2, 3, 47, 48, 49, 255, 256, 257, 8191, 70001, 1000003};
enum { N_COUNTS = sizeof counts / sizeof counts[0] };

START_TEST(scan_u32)
{
    uint32_t n = counts[_i], sum = 0;
    struct rng r = rng_make(300 + (uint64_t)_i);
    uint32_t *in = host_alloc((n + 1) * sizeof *in), *out = host_alloc((n + 1) * sizeof *out), *a, *b;
    for (uint32_t i = 0; i <= n; i++) /* the entry at n must not count; sums wrap */
        in[i] = (uint32_t)(rng_next(&r) >> (_i % 2 ? 32 : 60));
    a = device_copy_of(in, (n + 1) * sizeof *in);
    b = device_copy_of(NULL, (n + 1) * sizeof *in);
    ck_ok(ops->scan_u32(queue, a, b, n));
    ck_ok(ops->scan_u32(queue, a, a, n)); /* in place */
    download_now(out, b, (n + 1) * sizeof *out);
    for (uint32_t i = 0; i <= n; i++) {
        ck_same(out[i], sum);
        sum += in[i];
    }
    download_now(in, a, (n + 1) * sizeof *in);
    ck_assert_mem_eq(in, out, (n + 1) * sizeof *in);
    ops->free(dev, a);
    ops->free(dev, b);
    free(in);
    free(out);
}
END_TEST

START_TEST(scan_u64)
{
    uint32_t n = counts[_i];
    uint64_t sum = 0;
    struct rng r = rng_make(400 + (uint64_t)_i);
    uint64_t *in = host_alloc((n + 1) * sizeof *in), *out = host_alloc((n + 1) * sizeof *out), *a;
    for (uint32_t i = 0; i <= n; i++)
        in[i] = rng_next(&r) >> 20;
    a = device_copy_of(in, (n + 1) * sizeof *in);
    ck_ok(ops->scan_u64(queue, a, a, n));
    download_now(out, a, (n + 1) * sizeof *out);
    for (uint32_t i = 0; i <= n; i++) {
        ck_same(out[i], sum);
        sum += in[i];
    }
    ops->free(dev, a);
    free(in);
    free(out);
}
END_TEST

enum order { RANDOM, FEW_KEYS, EQUAL, SORTED, REVERSED, HIGH_BITS, N_ORDERS };

static uint64_t key_of(enum order order, struct rng *r, uint32_t i, uint32_t n)
{
    switch (order) {
    case RANDOM:
        return rng_next(r);
    case FEW_KEYS:
        return rng_next(r) % 7 * 0x0101010101ull;
    case SORTED:
        return i;
    case REVERSED:
        return n - i;
    case HIGH_BITS:
        return 1ull << 63 | rng_next(r) >> 40 << 42;
    default:
        return 0x8000000000000123ull;
    }
}

struct pair {
    uint64_t key;
    uint32_t value;
};

static int by_key_then_value(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static void check_sort(enum order order, uint32_t n)
{
    struct rng r = rng_make(500 + n * (uint64_t)N_ORDERS + order);
    struct pair *want = host_alloc(n * sizeof *want);
    uint64_t *keys = host_alloc(n * sizeof *keys), *keys_dev, *alone_dev;
    uint32_t *values = host_alloc(n * sizeof *values), *values_dev;
    for (uint32_t i = 0; i < n; i++) {
        want[i].key = keys[i] = key_of(order, &r, i, n);
        want[i].value = values[i] = i; /* ascending, so that stability shows */
    }
    keys_dev = device_copy_of(keys, n * sizeof *keys);
    alone_dev = device_copy_of(keys, n * sizeof *keys);
    values_dev = device_copy_of(values, n * sizeof *values);
    qsort(want, n, sizeof *want, by_key_then_value);
    ck_ok(ops->sort_u64(queue, keys_dev, values_dev, n));
    download_now(keys, keys_dev, n * sizeof *keys);
    download_now(values, values_dev, n * sizeof *values);
    for (uint32_t i = 0; i < n; i++) {
        ck_same(keys[i], want[i].key);
        ck_same(values[i], want[i].value);
    }
    ck_ok(ops->sort_u64(queue, alone_dev, NULL, n));
    download_now(keys, alone_dev, n * sizeof *keys);
    for (uint32_t i = 0; i < n; i++)
        ck_same(keys[i], want[i].key);
    ops->free(dev, keys_dev);
    ops->free(dev, alone_dev);
    ops->free(dev, values_dev);
    free(want);
    free(keys);
    free(values);
}

START_TEST(sort)
{
    for (int order = 0; order < N_ORDERS; order++)
        check_sort((enum order)order, counts[_i]);
}
END_TEST

START_TEST(select_flags)
{
    uint32_t n = counts[_i], n_out, want = 0;
    struct rng r = rng_make(600 + (uint64_t)_i);
    uint8_t *flags = host_alloc(n), *flags_dev;
    uint32_t *out = host_alloc(n * sizeof *out), *out_dev, *n_out_dev;
    flags_dev = device_copy_of(NULL, n);
    out_dev = device_copy_of(NULL, n * sizeof *out);
    n_out_dev = device_copy_of(NULL, sizeof n_out);
    for (int density = 0; density <= 2; density++) { /* none, some, all */
        want = 0;
        for (uint32_t i = 0; i < n; i++)
            flags[i] = density == 2   ? (uint8_t)(i % 255 + 1)
                       : density == 0 ? 0
                                      : (uint8_t)(rng_next(&r) >> 62);
        ck_ok(ops->upload(queue, flags_dev, flags, n));
        ck_ok(ops->fill(queue, n_out_dev, 0xff, sizeof n_out));
        ck_ok(ops->select(queue, flags_dev, out_dev, n_out_dev, n));
        download_now(&n_out, n_out_dev, sizeof n_out);
        download_now(out, out_dev, n * sizeof *out);
        for (uint32_t i = 0; i < n; i++)
            if (flags[i]) {
                ck_same(out[want], i);
                want++;
            }
        ck_assert_uint_eq(n_out, want);
    }
    ops->free(dev, flags_dev);
    ops->free(dev, out_dev);
    ops->free(dev, n_out_dev);
    free(flags);
    free(out);
}
END_TEST

START_TEST(reductions)
{
    uint32_t n = counts[_i], min = UINT32_MAX, max = 0, got;
    uint64_t sum = 0, got_sum, *sum_dev = device_copy_of(NULL, sizeof got_sum);
    struct rng r = rng_make(700 + (uint64_t)_i);
    uint32_t *in = host_alloc(n * sizeof *in), *in_dev, *got_dev = device_copy_of(NULL, sizeof got);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = (uint32_t)rng_next(&r) | 0x10;
        sum += in[i]; /* more than 32 bits */
        min = in[i] < min ? in[i] : min;
        max = in[i] > max ? in[i] : max;
    }
    in_dev = device_copy_of(in, n * sizeof *in);
    ck_ok(ops->sum_u32(queue, in_dev, sum_dev, n));
    download_now(&got_sum, sum_dev, sizeof got_sum);
    ck_assert_uint_eq(got_sum, sum);
    ck_ok(ops->min_u32(queue, in_dev, got_dev, n));
    download_now(&got, got_dev, sizeof got);
    ck_assert_uint_eq(got, min);
    ck_ok(ops->max_u32(queue, in_dev, got_dev, n));
    download_now(&got, got_dev, sizeof got);
    ck_assert_uint_eq(got, max);
    ops->free(dev, in_dev);
    ops->free(dev, sum_dev);
    ops->free(dev, got_dev);
    free(in);
}
END_TEST

/* Primitives of different sizes follow one another without a wait: their scratch must not be given away too
 * early. */
START_TEST(primitives_back_to_back)
{
    enum { N = 300000, ROUNDS = 12 };
    struct rng r = rng_make(800);
    uint64_t *keys = host_alloc(N * sizeof *keys), *keys_dev[ROUNDS];
    uint32_t *scan_dev[ROUNDS], *ones = host_alloc(N * sizeof *ones),
                                *got = host_alloc((N + 1) * sizeof *got);
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = rng_next(&r);
        ones[i] = 1;
    }
    for (int k = 0; k < ROUNDS; k++) {
        keys_dev[k] = device_copy_of(keys, N * sizeof *keys);
        scan_dev[k] = device_copy_of(NULL, (N + 1) * sizeof *ones);
        ck_ok(ops->upload(queue, scan_dev[k], ones, N * sizeof *ones));
    }
    for (int k = 0; k < ROUNDS; k++) {
        uint32_t n = N / ROUNDS * (uint32_t)(k + 1);
        ck_ok(ops->sort_u64(queue, keys_dev[k], NULL, n));
        ck_ok(ops->scan_u32(queue, scan_dev[k], scan_dev[k], n));
    }
    for (int k = 0; k < ROUNDS; k++) {
        uint32_t n = N / ROUNDS * (uint32_t)(k + 1);
        download_now(keys, keys_dev[k], N * sizeof *keys);
        download_now(got, scan_dev[k], (N + 1) * sizeof *got);
        for (uint32_t i = 1; i < n; i++)
            if (keys[i - 1] > keys[i])
                ck_abort_msg("round %d: key %u is out of order", k, i);
        for (uint32_t i = 0; i <= n; i++)
            ck_same(got[i], i);
        ops->free(dev, keys_dev[k]);
        ops->free(dev, scan_dev[k]);
    }
    free(keys);
    free(ones);
    free(got);
}
END_TEST

Suite *primitive_suite(void)
{
    Suite *suite = suite_create("primitives");
    TCase *tc = tcase_create("primitives");
    tcase_set_timeout(tc, 240);
    tcase_add_loop_test(tc, scan_u32, 0, N_COUNTS);
    tcase_add_loop_test(tc, scan_u64, 0, N_COUNTS);
    tcase_add_loop_test(tc, sort, 0, N_COUNTS);
    tcase_add_loop_test(tc, select_flags, 0, N_COUNTS);
    tcase_add_loop_test(tc, reductions, 0, N_COUNTS);
    tcase_add_test(tc, primitives_back_to_back);
    suite_add_tcase(suite, tc);
    return suite;
}
