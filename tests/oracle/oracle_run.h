/* oracle_run.h - the end of the main function of a test of readers. */
#ifndef ORACLE_RUN_H
#define ORACLE_RUN_H

#include <check.h>

/* Runs the tests, without a time limit of their own: exit status of the program. */
int oracle_run(TCase *tests);

#endif
