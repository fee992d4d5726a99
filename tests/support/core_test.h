/*
 * core_test.h - a Check program over a device: PROGRAM [cpu|guard|cuda] [THREADS], and what such tests share.
 */
#ifndef CORE_TEST_H
#define CORE_TEST_H

#include "map_walk.h"
#include "random_frames.h"

#include <check.h>
#include <stdio.h>

/* What the command line chose. */
extern enum vxk_backend test_backend;
extern int test_threads;
/* VOXELD_TEST_SEED, else a fixed number; printed by core_test_main. */
extern uint64_t test_seed;

#define ck_ok(call)                                                                                          \
    do {                                                                                                     \
        vx_err ck_err_ = (call);                                                                             \
        ck_assert_msg(ck_err_ == VX_OK, "%s: %s", #call, vx_err_name(ck_err_));                              \
    } while (0)

/* A case of one test, run for _i = 0 .. n - 1 (CK_RUN_CASE=name picks it). */
#define ck_add(suite, test, n)                                                                               \
    do {                                                                                                     \
        TCase *c_ = tcase_create(#test);                                                                     \
        tcase_set_timeout(c_, 300);                                                                          \
        tcase_add_loop_test(c_, test, 0, n);                                                                 \
        suite_add_tcase(suite, c_);                                                                          \
    } while (0)

struct vx_device *test_device(uint64_t cap_bytes);
struct vx_map *test_map(struct vx_device *d, const struct vx_map_params *params);
/* Parameters of a small map: voxel size, origin, mode. */
struct vx_map_params test_params(double voxel_m, enum vx_mode mode);
/* Fails when the maps' structure or the device's accounts are wrong. */
void ck_device(struct vx_device *d, struct vx_map *const *maps, uint32_t n_maps, const char *when);
void ck_map(struct vx_map *map, const char *when);
/* A random frame of a random sensor round `centre` (metres), at most `spread` away. */
void test_any_frame(struct test_frame *t, uint64_t *seed, double reach_m, const double centre[3],
                    double spread_m);

/* Parses the command line and runs the suite: exit status of the program. */
int core_test_main(int argc, char **argv, Suite *suite);

#endif
