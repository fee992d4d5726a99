#include "backend.h"

#include <stdlib.h>
#include <string.h>

START_TEST(info_says_what_is_there)
{
    struct vxk_info info;
    ops->info(dev, &info);
    ck_assert_uint_gt(strlen(info.name), 3);
    ck_assert_uint_gt(info.total_bytes, 1 << 20);
    ck_assert_uint_le(info.free_bytes, info.total_bytes);
    ck_assert_int_ge(info.n_workers, 1);
}
END_TEST

START_TEST(blocks_are_aligned_apart_and_reused)
{
    void *block[64];
    struct rng r = rng_make(1);
    for (int round = 0; round < 20; round++) {
        uint64_t bytes[64];
        for (int i = 0; i < 64; i++) {
            bytes[i] = rng_next(&r) % 40000;
            ck_ok(ops->alloc(dev, bytes[i], &block[i]));
            ck_assert_uint_eq((uintptr_t)block[i] % 256, 0);
            ck_ok(ops->fill(queue, block[i], i, bytes[i]));
        }
        for (int i = 0; i < 64; i++) {
            uint8_t *got = host_alloc(bytes[i]);
            download_now(got, block[i], bytes[i]);
            for (uint64_t b = 0; b < bytes[i]; b++)
                ck_same(got[b], (unsigned)i);
            free(got);
        }
        for (int i = 0; i < 64; i++)
            ops->free(dev, block[i]);
        if (round % 7 == 6)
            ops->trim(dev);
    }
    ops->free(dev, NULL);
}
END_TEST

START_TEST(warm_loop_gets_the_same_block)
{
    struct vxk_info info;
    void *a, *b;
    ops->info(dev, &info);
    ck_ok(ops->alloc(dev, 3000000, &a));
    ops->free(dev, a);
    ck_ok(ops->alloc(dev, 2999000, &b));
    ops->free(dev, b);
    if (info.backend != VXK_GUARD) /* which never gives freed memory out again soon */
        ck_assert_ptr_eq(a, b);
    else
        ck_assert_ptr_ne(a, b);
}
END_TEST

START_TEST(absurd_sizes_are_refused)
{
    struct vxk_range range;
    void *p = &range;
    ck_assert_int_eq(ops->alloc(dev, UINT64_MAX, &p), VX_E_EXHAUSTED);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(ops->alloc(dev, 1ull << 60, &p), VX_E_EXHAUSTED);
    ck_assert_int_eq(ops->alloc_host(dev, 1ull << 60, &p), VX_E_NOMEM);
    ck_assert_int_eq(ops->reserve(dev, 0, &range), VX_E_INVALID);
    ck_assert_int_eq(ops->reserve(dev, 1ull << 60, &range), VX_E_EXHAUSTED);
    ck_ok(ops->alloc(dev, 100, &p));
    ops->free(dev, p);
}
END_TEST

START_TEST(ranges_grow_in_place)
{
    struct vxk_range range;
    const uint64_t step = 3000001, reserved = 256ull << 20;
    uint64_t done = 0;
    void *base;
    uint8_t got;
    ck_ok(ops->reserve(dev, reserved, &range));
    base = range.base;
    ck_assert_ptr_nonnull(base);
    ck_assert_uint_eq((uintptr_t)base % 256, 0);
    ck_assert_uint_ge(range.reserved_bytes, reserved);
    ck_assert_uint_eq(range.committed_bytes, 0);
    for (int i = 1; i <= 8; i++) {
        uint64_t want = step * (uint64_t)i;
        ck_ok(ops->commit(dev, &range, want));
        ck_assert_ptr_eq(range.base, base);
        ck_assert_uint_ge(range.committed_bytes, want);
        ck_ok(ops->fill(queue, (char *)base + done, i, want - done));
        done = want;
    }
    for (int i = 1; i <= 8; i++) { /* what was written before the growth is still there */
        download_now(&got, (char *)base + step * (uint64_t)(i - 1), 1);
        ck_assert_uint_eq(got, (unsigned)i);
        download_now(&got, (char *)base + step * (uint64_t)i - 1, 1);
        ck_assert_uint_eq(got, (unsigned)i);
    }
    done = range.committed_bytes;
    ck_ok(ops->commit(dev, &range, 1)); /* never shrinks */
    ck_assert_uint_eq(range.committed_bytes, done);
    ck_assert_int_eq(ops->commit(dev, &range, range.reserved_bytes + 1), VX_E_EXHAUSTED);
    ck_assert_uint_eq(range.committed_bytes, done);
    ops->release(dev, &range);
    ck_assert_ptr_null(range.base);
    ops->release(dev, &range); /* an empty range is fine */
}
END_TEST

START_TEST(many_ranges_at_once)
{
    struct vxk_range range[16];
    for (int i = 0; i < 16; i++) {
        ck_ok(ops->reserve(dev, 1ull << 33, &range[i]));
        ck_ok(ops->commit(dev, &range[i], 100000));
        ck_ok(ops->fill(queue, range[i].base, i, 100000));
    }
    for (int i = 0; i < 16; i++) {
        uint8_t got;
        download_now(&got, (char *)range[i].base + 99999, 1);
        ck_assert_uint_eq(got, (unsigned)i);
        ops->release(dev, &range[i]);
    }
}
END_TEST

START_TEST(copies_of_odd_sizes)
{
    static const uint64_t sizes[] = {0, 1, 3, 255, 256, 257, 65537, 1000003};
    for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t n = sizes[s];
        struct rng r = rng_make(2 + s);
        uint8_t *in = host_alloc(n + 8), *out = host_alloc(n + 8), *a, *b;
        for (uint64_t i = 0; i < n + 8; i++)
            in[i] = (uint8_t)(rng_next(&r) >> 32);
        a = device_copy_of(in, n + 8);
        b = device_copy_of(NULL, n + 8);
        ck_ok(ops->copy(queue, b + 1, a + 3, n));
        ck_ok(ops->fill(queue, b + 1 + n, 0x77, 2));
        download_now(out, b, n + 8);
        ck_assert_uint_eq(out[0], 0);
        ck_assert_int_eq(memcmp(out + 1, in + 3, n), 0);
        ck_assert_uint_eq(out[n + 1], 0x77);
        ck_assert_uint_eq(out[n + 2], 0x77);
        ck_assert_uint_eq(out[n + 3], 0);
        ck_ok(ops->upload(queue, b + 5, in, n));
        download_now(out, b + 5, n);
        ck_assert_int_eq(memcmp(out, in, n), 0);
        ops->free(dev, a);
        ops->free(dev, b);
        free(in);
        free(out);
    }
}
END_TEST

START_TEST(copies_from_fast_host_memory)
{
    uint32_t *in, *out, *on_device;
    void *p;
    ck_ok(ops->alloc_host(dev, 400000, &p));
    in = p;
    ck_ok(ops->alloc_host(dev, 400000, &p));
    out = p;
    for (uint32_t i = 0; i < 100000; i++)
        in[i] = i * 2654435761u;
    on_device = device_copy_of(in, 400000);
    download_now(out, on_device, 400000);
    ck_assert_int_eq(memcmp(in, out, 400000), 0);
    ops->free(dev, on_device);
    ops->free_host(dev, in);
    ops->free_host(dev, out);
    ops->free_host(dev, NULL);
}
END_TEST

Suite *memory_suite(void)
{
    Suite *suite = suite_create("memory");
    TCase *tc = tcase_create("memory");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, info_says_what_is_there);
    tcase_add_test(tc, blocks_are_aligned_apart_and_reused);
    tcase_add_test(tc, warm_loop_gets_the_same_block);
    tcase_add_test(tc, absurd_sizes_are_refused);
    tcase_add_test(tc, ranges_grow_in_place);
    tcase_add_test(tc, many_ranges_at_once);
    tcase_add_test(tc, copies_of_odd_sizes);
    tcase_add_test(tc, copies_from_fast_host_memory);
    suite_add_tcase(suite, tc);
    return suite;
}
