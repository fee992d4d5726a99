/* Backend tests: PROGRAM cpu|guard|cuda [THREADS]. */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vxk_dev *dev;
const struct vxk_ops *ops;
struct vxk_queue *queue;
uint64_t test_seed = 1;

void *host_alloc(uint64_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(p);
    return p;
}

void *device_copy_of(const void *host, uint64_t bytes)
{
    void *p;
    ck_ok(ops->alloc(dev, bytes, &p));
    if (host)
        ck_ok(ops->upload(queue, p, host, bytes));
    else
        ck_ok(ops->fill(queue, p, 0, bytes));
    ck_ok(ops->wait(queue));
    return p;
}

void download_now(void *host, const void *device, uint64_t bytes)
{
    ck_ok(ops->download(queue, host, device, bytes));
    ck_ok(ops->wait(queue));
}

static int run_all(void)
{
    SRunner *runner = srunner_create(memory_suite());
    int failed;
    srunner_add_suite(runner, launch_suite());
    srunner_add_suite(runner, primitive_suite());
    srunner_add_suite(runner, queue_suite());
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu", *seed = getenv("VOXELD_TEST_SEED");
    enum vxk_backend backend = strcmp(name, "cuda") == 0    ? VXK_CUDA
                               : strcmp(name, "guard") == 0 ? VXK_GUARD
                                                            : VXK_CPU;
    struct vx_detail detail = {"", ""};
    struct vxk_info info;
    int failed;
    vx_err err = vxk_open(backend, 0, argc > 2 ? atoi(argv[2]) : 0, &dev, &detail);
    if (backend == VXK_CUDA && (err == VX_E_UNAVAILABLE || err == VX_E_UNIMPLEMENTED)) {
        printf("skipped: %s: %s\n", vx_err_name(err), detail.text);
        return 77;
    }
    if (err != VX_OK) {
        fprintf(stderr, "can't open %s: %s: %s\n", name, vx_err_name(err), detail.text);
        return 1;
    }
    if (seed)
        test_seed = strtoull(seed, NULL, 10);
    ops = dev->ops;
    ops->info(dev, &info);
    printf("device: %s; seed: %llu\n", info.name, (unsigned long long)test_seed);
    if (ops->queue_create(dev, 0, &queue) != VX_OK)
        return 1;
    failed = run_all();
    ops->queue_destroy(queue);
    ops->close(dev);
    return failed ? 1 : 0;
}
