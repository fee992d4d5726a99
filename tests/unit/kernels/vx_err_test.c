#include "base/vx_err.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct {
    vx_err code;
    const char *wire;
} known[] = {
#define X(name, value, wire, text) {VX_E_##name, wire},
    VX_ERR_TABLE(X)
#undef X
};
enum { N_KNOWN = sizeof known / sizeof known[0] };

START_TEST(every_code_has_words)
{
    ck_assert_int_eq(VX_OK, 0);
    for (int i = 0; i < N_KNOWN; i++) {
        ck_assert_int_le(known[i].code, 0);
        ck_assert_str_eq(vx_err_name(known[i].code), known[i].wire);
        ck_assert_uint_gt(strlen(vx_err_text(known[i].code)), 5);
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(known[i].code, known[j].code);
    }
}
END_TEST

START_TEST(numbers_that_are_no_code)
{
    ck_assert_str_eq(vx_err_name(1), "INTERNAL");
    ck_assert_str_eq(vx_err_name(-1000), "INTERNAL");
    ck_assert_str_eq(vx_err_text(1), "unknown error code");
}
END_TEST

START_TEST(fail_fills_the_detail)
{
    struct vx_detail detail;
    ck_assert_int_eq(vx_fail(&detail, VX_E_INVALID, "voxel_size_m", "must be positive, got %g", -2.5),
                     VX_E_INVALID);
    ck_assert_str_eq(detail.field, "voxel_size_m");
    ck_assert_str_eq(detail.text, "must be positive, got -2.5");
    ck_assert_int_eq(vx_fail(&detail, VX_E_NOMEM, NULL, "none"), VX_E_NOMEM);
    ck_assert_str_eq(detail.field, "");
    ck_assert_int_eq(vx_fail(NULL, VX_E_EXISTS, "name", "taken"), VX_E_EXISTS);
}
END_TEST

START_TEST(long_words_are_cut)
{
    struct vx_detail detail;
    char words[1000];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = 0;
    vx_fail(&detail, VX_E_INVALID, words, "%s", words);
    ck_assert_uint_eq(strlen(detail.field), sizeof detail.field - 1);
    ck_assert_uint_eq(strlen(detail.text), sizeof detail.text - 1);
}
END_TEST

static vx_err tries(vx_err first, int *ran)
{
    vx_err err;
    VX_TRY(first);
    *ran = 1;
    VX_TRY_RET(VX_E_STALE);
fail:
    return err;
}

START_TEST(try_leaves_at_the_first_failure)
{
    int ran = 0;
    ck_assert_int_eq(tries(VX_E_ORDER, &ran), VX_E_ORDER);
    ck_assert_int_eq(ran, 0);
    ck_assert_int_eq(tries(VX_OK, &ran), VX_E_STALE);
    ck_assert_int_eq(ran, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vx_err");
    TCase *tc = tcase_create("vx_err");
    SRunner *runner;
    int failed;
    tcase_add_test(tc, every_code_has_words);
    tcase_add_test(tc, numbers_that_are_no_code);
    tcase_add_test(tc, fail_fills_the_detail);
    tcase_add_test(tc, long_words_are_cut);
    tcase_add_test(tc, try_leaves_at_the_first_failure);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
