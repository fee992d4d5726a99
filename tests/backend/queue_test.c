#include "backend.h"
#include "body/selftest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

START_TEST(empty_queue_waits_for_nothing)
{
    struct vxk_queue *q;
    ck_ok(ops->queue_create(dev, 1, &q));
    ck_assert_ptr_eq(q->dev, dev);
    ck_ok(ops->wait(q));
    ck_ok(ops->wait(q));
    ck_assert_str_eq(ops->queue_error_text(q), "");
    ops->queue_destroy(q);
    ops->queue_destroy(NULL);
}
END_TEST

/* Work of one queue waits for an event of another. */
START_TEST(events_order_two_queues)
{
    enum { N = 1 << 20 };
    struct vxk_queue *other;
    struct vxk_event *from, *to;
    struct vxk_selftest_affine_args args;
    float *got = host_alloc(N * sizeof *got), *copy = device_copy_of(NULL, N * sizeof *got), ms = -1;
    ck_ok(ops->queue_create(dev, 1, &other));
    ck_ok(ops->event_create(dev, &from));
    ck_ok(ops->event_create(dev, &to));
    args.in = args.out = device_copy_of(NULL, N * sizeof *got);
    args.scale = 1.0f;
    args.add = 1.0f;
    ck_ok(ops->event_record(queue, from));
    for (int i = 0; i < 20; i++)
        ck_ok(VXK_LAUNCH(queue, selftest_affine, &args, N));
    ck_ok(ops->event_record(queue, to));
    ck_ok(ops->event_wait(other, to));
    ck_ok(ops->copy(other, copy, args.out, N * sizeof *got));
    ck_ok(ops->download(other, got, copy, N * sizeof *got));
    ck_ok(ops->wait(other));
    for (uint32_t i = 0; i < N; i++)
        if (got[i] != 20.0f)
            ck_abort_msg("element %u: %g", i, (double)got[i]);
    ck_ok(ops->wait(queue));
    ck_ok(ops->event_elapsed(from, to, &ms));
    ck_assert(ms >= 0.0f);
    ops->event_destroy(from);
    ops->event_destroy(to);
    ops->event_destroy(NULL);
    ops->queue_destroy(other);
    ops->free(dev, args.out);
    ops->free(dev, copy);
    free(got);
}
END_TEST

/* One thread's work on a queue of its own; asserts nothing, because Check's assertions belong to the main
 * thread. */
struct load {
    int priority;
    uint64_t stream;
    uint32_t n;
    const char *failure;
};

static const char *load_round(struct vxk_queue *q, struct rng *r, uint32_t n, uint64_t *keys, uint32_t *sums)
{
    struct vxk_selftest_atomic_args atomic;
    uint32_t init[4] = {0, 0, UINT32_MAX, 0}, want = 0, *sums_dev = NULL;
    uint64_t *keys_dev = NULL;
    void *p;
    const char *failure = NULL;
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = rng_next(r);
        sums[i] = i;
        want += i;
    }
#define STEP(call)                                                                                           \
    if ((call) != VX_OK)                                                                                     \
    return #call
    STEP(ops->alloc(dev, n * sizeof *keys, &p));
    keys_dev = p;
    STEP(ops->alloc(dev, (n + 1) * sizeof *sums, &p));
    sums_dev = p;
    STEP(ops->alloc(dev, sizeof init, &p));
    atomic.c32 = p;
    STEP(ops->alloc(dev, 64, &p));
    atomic.c64 = p;
    STEP(ops->upload(q, keys_dev, keys, n * sizeof *keys));
    STEP(ops->upload(q, sums_dev, sums, n * sizeof *sums));
    STEP(ops->upload(q, atomic.c32, init, sizeof init));
    STEP(ops->fill(q, atomic.c64, 0, 64));
    STEP(VXK_LAUNCH(q, selftest_atomic, &atomic, n));
    STEP(ops->sort_u64(q, keys_dev, NULL, n));
    STEP(ops->scan_u32(q, sums_dev, sums_dev, n));
    STEP(ops->download(q, keys, keys_dev, n * sizeof *keys));
    STEP(ops->download(q, sums, sums_dev, (n + 1) * sizeof *sums));
    STEP(ops->download(q, init, atomic.c32, sizeof init));
    STEP(ops->wait(q));
#undef STEP
    for (uint32_t i = 1; i < n && !failure; i++)
        if (keys[i - 1] > keys[i])
            failure = "keys out of order";
    if (sums[n] != want || init[0] != want)
        failure = "wrong sum";
    ops->free(dev, keys_dev);
    ops->free(dev, sums_dev);
    ops->free(dev, atomic.c32);
    ops->free(dev, atomic.c64);
    return failure;
}

static void *load_main(void *arg)
{
    struct load *l = arg;
    struct vxk_queue *q;
    struct rng r = rng_make(l->stream);
    uint64_t *keys = malloc(l->n * sizeof *keys);
    uint32_t *sums = malloc((l->n + 1) * sizeof *sums);
    if (!keys || !sums || ops->queue_create(dev, l->priority, &q) != VX_OK) {
        l->failure = "no memory or no queue";
    } else {
        for (int round = 0; round < 20 && !l->failure; round++)
            l->failure = load_round(q, &r, l->n - (uint32_t)round * 7, keys, sums);
        ops->queue_destroy(q);
    }
    free(keys);
    free(sums);
    return NULL;
}

START_TEST(queues_of_several_threads)
{
    enum { N = 4 };
    struct load load[N];
    pthread_t thread[N];
    for (int i = 0; i < N; i++) {
        load[i] = (struct load){i % 2, 900 + (uint64_t)i, 1000 + 40000 * (uint32_t)i, NULL};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, load_main, &load[i]), 0);
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < N; i++)
        ck_assert_msg(!load[i].failure, "thread %d: %s", i, load[i].failure);
}
END_TEST

/* A second device beside the first, opened and closed. */
START_TEST(devices_open_and_close)
{
    struct vxk_info info;
    ops->info(dev, &info);
    for (int i = 0; i < 3; i++) {
        struct vxk_dev *d;
        struct vxk_queue *q;
        void *p;
        ck_ok(vxk_open(info.backend, 0, 2, &d, NULL));
        ck_ok(d->ops->queue_create(d, 0, &q));
        ck_ok(d->ops->alloc(d, 1000, &p));
        ck_ok(d->ops->fill(q, p, 1, 1000));
        ck_ok(d->ops->wait(q));
        d->ops->queue_destroy(q);
        d->ops->close(d); /* gives the block back too */
    }
}
END_TEST

START_TEST(bad_devices_are_refused)
{
    struct vx_detail detail = {"", ""};
    struct vxk_dev *d = dev;
    struct vxk_info info;
    ops->info(dev, &info);
    ck_assert_int_eq(vxk_open((enum vxk_backend)99, 0, 0, &d, &detail), VX_E_INVALID);
    ck_assert_ptr_null(d);
    ck_assert_uint_gt(strlen(detail.text), 5);
    if (info.backend == VXK_CUDA)
        ck_assert_int_eq(vxk_open(VXK_CUDA, 1000, 0, &d, &detail), VX_E_UNAVAILABLE);
    else
        ck_assert_int_eq(vxk_open(info.backend, 0, -1, &d, &detail), VX_E_INVALID);
    ck_assert_ptr_null(d);
}
END_TEST

Suite *queue_suite(void)
{
    Suite *suite = suite_create("queues");
    TCase *tc = tcase_create("queues");
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, empty_queue_waits_for_nothing);
    tcase_add_test(tc, events_order_two_queues);
    tcase_add_test(tc, queues_of_several_threads);
    tcase_add_test(tc, devices_open_and_close);
    tcase_add_test(tc, bad_devices_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
