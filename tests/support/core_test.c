#include "core_test.h"

#include <stdlib.h>
#include <string.h>

enum vxk_backend test_backend = VXK_CPU;
int test_threads = 2;
uint64_t test_seed = 20240607;

struct vx_device *test_device(uint64_t cap_bytes)
{
    struct vx_device_params p = {.backend = test_backend, .n_threads = test_threads, .cap_bytes = cap_bytes};
    struct vx_device *d;
    struct vx_detail detail = {0};
    vx_err err = vx_device_open(&p, &d, &detail);
    ck_assert_msg(err == VX_OK, "device: %s %s", vx_err_name(err), detail.text);
    return d;
}

struct vx_map *test_map(struct vx_device *d, const struct vx_map_params *params)
{
    struct vx_map *map;
    struct vx_detail detail = {0};
    vx_err err = vx_map_create(d, "test", params, &map, &detail);
    ck_assert_msg(err == VX_OK, "map: %s %s", vx_err_name(err), detail.text);
    return map;
}

struct vx_map_params test_params(double voxel_m, enum vx_mode mode)
{
    struct vx_map_params p;
    vx_map_params_default(&p);
    p.voxel_size_m = voxel_m;
    p.mode = mode;
    p.esdf_max_distance_m = 0;
    return p;
}

void ck_device(struct vx_device *d, struct vx_map *const *maps, uint32_t n_maps, const char *when)
{
    char fault[256];
    device_check(d, maps, n_maps, fault);
    ck_assert_msg(!fault[0], "%s: %s", when, fault);
}

void ck_map(struct vx_map *map, const char *when)
{
    struct map_walk *w = map_walk_newest(map);
    ck_assert_msg(!w->fault[0], "%s: %s", when, w->fault);
    map_walk_free(w);
}

void test_any_frame(struct test_frame *t, uint64_t *seed, double reach_m, const double centre[3],
                    double spread_m)
{
    enum vx_sensor sensor = (enum vx_sensor)(test_random(seed) % 3);
    struct frame_shape shape = {.width = sensor == VX_DEPTH ? 64 : 128,
                                .height = sensor == VX_DEPTH ? 48 : 16,
                                .reach_m = reach_m,
                                .odd = test_random(seed) % 2 ? 0.05 : 0,
                                .u16 = sensor == VX_DEPTH && test_random(seed) % 2};
    double at[3];
    for (int k = 0; k < 3; k++)
        at[k] = centre[k] + test_uniform(seed, -spread_m, spread_m);
    test_frame_init(t, sensor, seed, &shape, at);
}

int core_test_main(int argc, char **argv, Suite *suite)
{
    SRunner *runner;
    int failed;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1)
        test_backend = !strcmp(argv[1], "guard") ? VXK_GUARD : !strcmp(argv[1], "cuda") ? VXK_CUDA : VXK_CPU;
    if (argc > 2)
        test_threads = atoi(argv[2]);
    if (test_backend == VXK_CUDA && !vxk_cuda_available()) {
        printf("skipped: no CUDA device\n");
        srunner_free(srunner_create(suite));
        return 77;
    }
    if (getenv("VOXELD_TEST_SEED"))
        test_seed = strtoull(getenv("VOXELD_TEST_SEED"), NULL, 10);
    printf("seed %llu (VOXELD_TEST_SEED), backend %s, %d threads\n", (unsigned long long)test_seed,
           argc > 1 ? argv[1] : "cpu", test_threads);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
