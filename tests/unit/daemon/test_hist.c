/* The histogram's quantiles stay within 1/16 of the exact ones. */
#include "hist.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(empty_and_one)
{
    static struct vxd_hist h;
    memset(&h, 0, sizeof h);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 0.5), 0);
    vxd_hist_add(&h, 1234567);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 0), 1234567);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 0.5), 1234567);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 1), 1234567);
}
END_TEST

START_TEST(small_values_are_exact)
{
    static struct vxd_hist h;
    memset(&h, 0, sizeof h);
    for (uint64_t v = 1; v <= 10; ++v)
        vxd_hist_add(&h, v);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 0.5), 5);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 0.9), 9);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 1), 10);
}
END_TEST

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(quantiles_are_close)
{
    enum { N = 20000 };
    static struct vxd_hist h;
    static uint64_t value[N];
    uint64_t x = 88172645463325252u;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < N; ++i) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        value[i] = (x >> 26) >> (x & 31); /* many powers of two */
        vxd_hist_add(&h, value[i]);
    }
    qsort(value, N, sizeof *value, compare);
    for (int q = 1; q <= 99; ++q) {
        double exact = (double)value[(q * N + 99) / 100 - 1], got = (double)vxd_hist_quantile(&h, q / 100.0);
        ck_assert_msg(got >= exact && got <= exact * (1 + 1.0 / 16) + 1, "q=%d exact=%g got=%g", q, exact,
                      got);
    }
    ck_assert_uint_eq(vxd_hist_quantile(&h, 1), value[N - 1]);
}
END_TEST

START_TEST(huge_values_do_not_overflow)
{
    static struct vxd_hist h;
    memset(&h, 0, sizeof h);
    vxd_hist_add(&h, UINT64_MAX);
    vxd_hist_add(&h, 1);
    ck_assert_uint_eq(vxd_hist_quantile(&h, 0.5), 1);
    ck_assert_uint_gt(vxd_hist_quantile(&h, 1), UINT32_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("histogram");
    TCase *tc = tcase_create("histogram");
    tcase_add_test(tc, empty_and_one);
    tcase_add_test(tc, small_values_are_exact);
    tcase_add_test(tc, quantiles_are_close);
    tcase_add_test(tc, huge_values_do_not_overflow);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
