#include "oracle_run.h"

int oracle_run(TCase *tests)
{
    Suite *s = suite_create("oracle");
    SRunner *r = srunner_create(s);
    int failed;
    tcase_set_timeout(tests, 0);
    suite_add_tcase(s, tests);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
