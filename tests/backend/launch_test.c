#include "backend.h"
#include "body/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t counts[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1000003};
enum { N_COUNTS = sizeof counts / sizeof counts[0] };

START_TEST(kernels_have_names)
{
    ck_assert_str_eq(vxk_kernel_name(VXK_K_selftest_affine), "selftest_affine");
    ck_assert_str_eq(vxk_kernel_name(VXK_K_selftest_hash), "selftest_hash");
    ck_assert_str_eq(vxk_kernel_name(VXK_N_KERNELS), "no such kernel");
}
END_TEST

/* Every element is visited once, none beyond n; products and sums are rounded one by one. */
START_TEST(affine_visits_each_element_once)
{
    uint32_t n = counts[_i];
    struct rng r = rng_make(100 + (uint64_t)_i);
    float *in = host_alloc((n + 1) * sizeof *in), *out = host_alloc((n + 1) * sizeof *out);
    struct vxk_selftest_affine_args args;
    for (uint32_t i = 0; i <= n; i++)
        in[i] = (float)((int64_t)rng_next(&r) >> 20) * 1e-9f;
    args.in = device_copy_of(in, (n + 1) * sizeof *in);
    args.out = device_copy_of(NULL, (n + 1) * sizeof *out);
    args.scale = 1.0000001f;
    args.add = -3.3333333f;
    ck_ok(VXK_LAUNCH(queue, selftest_affine, &args, n));
    download_now(out, args.out, (n + 1) * sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        volatile float product = in[i] * args.scale;
        float want = product + args.add;
        if (memcmp(&want, &out[i], sizeof want) != 0)
            ck_abort_msg("element %u: %a, want %a", i, (double)out[i], (double)want);
    }
    ck_assert(out[n] == 0.0f);
    ops->free(dev, (void *)args.in);
    ops->free(dev, args.out);
    free(in);
    free(out);
}
END_TEST

START_TEST(atomics_lose_nothing)
{
    uint32_t n = counts[_i], c32[4] = {7, 0, UINT32_MAX, 0}, want32[4] = {7, 0, UINT32_MAX, 0};
    uint64_t c64[3] = {9, 0, UINT64_MAX}, want64[3] = {9, 0, UINT64_MAX};
    struct vxk_selftest_atomic_args args;
    args.c32 = device_copy_of(c32, sizeof c32);
    args.c64 = device_copy_of(c64, sizeof c64);
    ck_ok(VXK_LAUNCH(queue, selftest_atomic, &args, n));
    download_now(c32, args.c32, sizeof c32);
    download_now(c64, args.c64, sizeof c64);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = i ^ 0x5555u;
        want32[0] += i;
        want32[1] |= 1u << (i & 31);
        want32[2] = x < want32[2] ? x : want32[2];
        want32[3] = x > want32[3] ? x : want32[3];
        want64[0] += (uint64_t)i << 20;
        want64[1] |= 1ull << (i & 63);
        want64[2] = (uint64_t)x << 20 < want64[2] ? (uint64_t)x << 20 : want64[2];
    }
    ck_assert_mem_eq(c32, want32, sizeof c32);
    ck_assert_mem_eq(c64, want64, sizeof c64);
    ops->free(dev, args.c32);
    ops->free(dev, args.c64);
}
END_TEST

/* The count comes from the device and is cut at n_max / per; always whole groups of `per`. */
START_TEST(counted_launches)
{
    static const struct {
        uint32_t on_device, per, n_max, want;
    } cases[] = {{0, 1, 1000, 0},
                 {1, 1, 1000, 1},
                 {1000, 1, 1000, 1000},
                 {4000000000u, 1, 1000, 1000},
                 {3, 64, 1000, 192},
                 {15, 64, 1000, 960},
                 {16, 64, 1000, 960},
                 {5, 1, 0, 0},
                 {90000, 10, 900009, 900000},
                 {2, 600, 1000, 600},
                 {1, 4000000000u, 1000, 0}};
    for (unsigned c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint32_t c32[4] = {0, 0, UINT32_MAX, 0}, want = 0;
        struct vxk_selftest_atomic_args args;
        uint32_t *n_dev = device_copy_of(&cases[c].on_device, sizeof(uint32_t));
        args.c32 = device_copy_of(c32, sizeof c32);
        args.c64 = device_copy_of(NULL, 3 * sizeof(uint64_t));
        ck_ok(VXK_LAUNCH_COUNTED(queue, selftest_atomic, &args, n_dev, cases[c].per, cases[c].n_max));
        download_now(c32, args.c32, sizeof c32);
        for (uint32_t i = 0; i < cases[c].want; i++)
            want += i;
        ck_assert_msg(c32[0] == want, "case %u: sum %u, want %u", c, c32[0], want);
        ck_assert_uint_eq(c32[1], cases[c].want >= 32 ? UINT32_MAX : (1u << cases[c].want) - 1);
        ops->free(dev, n_dev);
        ops->free(dev, args.c32);
        ops->free(dev, args.c64);
    }
}
END_TEST

/* The arguments may be changed as soon as the call returns. */
START_TEST(arguments_are_copied)
{
    enum { N = 1000 };
    float in[N], out[N];
    struct vxk_selftest_affine_args args;
    float *a, *b;
    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    a = device_copy_of(in, sizeof in);
    b = device_copy_of(NULL, sizeof in);
    for (int round = 0; round < 50; round++) {
        args.in = round % 2 ? b : a;
        args.out = round % 2 ? a : b;
        args.scale = 1.0f;
        args.add = 1.0f;
        ck_ok(VXK_LAUNCH(queue, selftest_affine, &args, N));
        memset(&args, 0, sizeof args);
    }
    download_now(out, a, sizeof out);
    for (int i = 0; i < N; i++)
        ck_assert(out[i] == in[i] + 50.0f);
    ops->free(dev, a);
    ops->free(dev, b);
}
END_TEST

START_TEST(bad_launches_are_refused)
{
    struct vxk_selftest_affine_args args;
    static const char large[VXK_MAX_ARGS + 1];
    uint32_t *n_dev = device_copy_of(NULL, sizeof *n_dev);
    memset(&args, 0, sizeof args);
    ck_assert_int_eq(ops->launch(queue, VXK_K_selftest_affine, large, sizeof large, 1), VX_E_INVALID);
    ck_assert_int_eq(ops->launch(queue, VXK_K_selftest_affine, &args, sizeof args - 1, 1), VX_E_INVALID);
    ck_assert_int_eq(ops->launch(queue, VXK_N_KERNELS, &args, sizeof args, 1), VX_E_INVALID);
    ck_assert_int_eq(ops->launch_counted(queue, VXK_K_selftest_affine, &args, sizeof args, n_dev, 0, 1),
                     VX_E_INVALID);
    ck_assert_int_eq(ops->launch_counted(queue, VXK_K_selftest_affine, &args, sizeof args, NULL, 1, 1),
                     VX_E_INVALID);
    ck_ok(ops->wait(queue)); /* a refusal does not poison */
    ck_assert_str_eq(ops->queue_error_text(queue), "");
    ops->free(dev, n_dev);
}
END_TEST

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Each key is in the table once, however many elements insert it at the same time. */
START_TEST(hash_insert_with_duplicates)
{
    enum { N = 200000, SLOTS = 1 << 14, DISTINCT = 9000 };
    struct rng r = rng_make(200);
    uint64_t *keys = host_alloc(N * sizeof *keys), *table = host_alloc(SLOTS * sizeof *table);
    uint32_t n_inserted, found = 0;
    struct vxk_selftest_hash_args args;
    for (uint32_t i = 0; i < N; i++) /* each key at least once, the rest at random */
        keys[i] = 1ull << 63 | (i < DISTINCT ? i : rng_next(&r) % DISTINCT) * 0x10001;
    args.in = device_copy_of(keys, N * sizeof *keys);
    args.table = device_copy_of(NULL, SLOTS * sizeof *table);
    args.n_inserted = device_copy_of(NULL, sizeof n_inserted);
    args.slot_mask = SLOTS - 1;
    ck_ok(VXK_LAUNCH(queue, selftest_hash, &args, N));
    download_now(table, args.table, SLOTS * sizeof *table);
    download_now(&n_inserted, args.n_inserted, sizeof n_inserted);
    ck_assert_uint_eq(n_inserted, DISTINCT);
    for (uint32_t i = 0; i < DISTINCT; i++) /* found by the search that readers use */
        if (vxk_hash_find(table, SLOTS - 1, 1ull << 63 | (uint64_t)i * 0x10001) == VXK_NONE)
            ck_abort_msg("key %u is lost", i);
    ck_assert_uint_eq(vxk_hash_find(table, SLOTS - 1, 1ull << 63 | 5), VXK_NONE);
    qsort(table, SLOTS, sizeof *table, by_key);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (table[i] != VXK_NO_KEY) {
            ck_same(table[i], 1ull << 63 | (uint64_t)found * 0x10001);
            found++;
        }
    ck_assert_uint_eq(found, DISTINCT);
    ops->free(dev, (void *)args.in);
    ops->free(dev, args.table);
    ops->free(dev, args.n_inserted);
    free(keys);
    free(table);
}
END_TEST

/* More keys than slots: the table fills up, nothing hangs, nothing is written twice. */
START_TEST(hash_insert_into_a_full_table)
{
    enum { N = 5000, SLOTS = 256 };
    uint64_t keys[N], table[SLOTS];
    uint32_t n_inserted;
    struct vxk_selftest_hash_args args;
    for (uint32_t i = 0; i < N; i++)
        keys[i] = 1ull << 63 | i;
    args.in = device_copy_of(keys, sizeof keys);
    args.table = device_copy_of(NULL, sizeof table);
    args.n_inserted = device_copy_of(NULL, sizeof n_inserted);
    args.slot_mask = SLOTS - 1;
    ck_ok(VXK_LAUNCH(queue, selftest_hash, &args, N));
    download_now(table, args.table, sizeof table);
    download_now(&n_inserted, args.n_inserted, sizeof n_inserted);
    ck_assert_uint_eq(n_inserted, SLOTS);
    qsort(table, SLOTS, sizeof *table, by_key);
    for (uint32_t i = 0; i < SLOTS; i++) {
        ck_assert_uint_ge(table[i], 1ull << 63);
        ck_assert(i == 0 || table[i - 1] != table[i]);
    }
    ops->free(dev, (void *)args.in);
    ops->free(dev, args.table);
    ops->free(dev, args.n_inserted);
}
END_TEST

Suite *launch_suite(void)
{
    Suite *suite = suite_create("launch");
    TCase *tc = tcase_create("launch");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, kernels_have_names);
    tcase_add_loop_test(tc, affine_visits_each_element_once, 0, N_COUNTS);
    tcase_add_loop_test(tc, atomics_lose_nothing, 0, N_COUNTS);
    tcase_add_test(tc, counted_launches);
    tcase_add_test(tc, arguments_are_copied);
    tcase_add_test(tc, bad_launches_are_refused);
    tcase_add_test(tc, hash_insert_with_duplicates);
    tcase_add_test(tc, hash_insert_into_a_full_table);
    suite_add_tcase(suite, tc);
    return suite;
}
