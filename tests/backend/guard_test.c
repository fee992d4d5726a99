/* What only the guard backend does: it finds host access to device memory and writes outside a block. */
#include "body/selftest.h"
#include "vxk.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A guard device in the child; one thread, because a child of fork has no others. */
struct child {
    struct vxk_dev *dev;
    struct vxk_queue *q;
    uint32_t *block; /* 100 words */
};

static void child_open(struct child *c)
{
    struct rlimit no_core = {0, 0};
    void *p;
    /* A sanitizer would catch the signal. */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    setrlimit(RLIMIT_CORE, &no_core);
    if (vxk_open(VXK_GUARD, 0, 1, &c->dev, NULL) != VX_OK ||
        c->dev->ops->queue_create(c->dev, 0, &c->q) != VX_OK || c->dev->ops->alloc(c->dev, 400, &p) != VX_OK)
        _exit(2);
    c->block = p;
}

/* The signal that ends a child which runs `misdeed`; 0 when it lives to its end. */
static int signal_of(void (*misdeed)(struct child *c))
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct child c;
        child_open(&c);
        misdeed(&c);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    return 0;
}

static void affine(struct child *c, uint32_t *in, uint32_t *out, uint32_t n)
{
    struct vxk_selftest_affine_args args = {(const float *)in, (float *)out, 2.0f, 0.0f};
    if (VXK_LAUNCH(c->q, selftest_affine, &args, n) != VX_OK)
        _exit(3);
}

static void nothing_wrong(struct child *c)
{
    affine(c, c->block, c->block, 100);
    c->dev->ops->free(c->dev, c->block);
    c->dev->ops->close(c->dev);
}

static void host_reads(struct child *c)
{
    (void)*(volatile uint32_t *)c->block;
}

static void host_writes_after_a_launch(struct child *c)
{
    affine(c, c->block, c->block, 100);
    *(volatile uint32_t *)c->block = 1;
}

static void kernel_writes_just_behind(struct child *c)
{
    affine(c, c->block, c->block, 101);
    c->dev->ops->free(c->dev, c->block);
}

static void kernel_writes_just_before(struct child *c)
{
    affine(c, c->block, c->block - 1, 1);
    c->dev->ops->free(c->dev, c->block);
}

static void kernel_writes_far_behind(struct child *c)
{
    affine(c, c->block, c->block, 200);
}

static void kernel_uses_a_freed_block(struct child *c)
{
    c->dev->ops->free(c->dev, c->block);
    affine(c, c->block, c->block, 1);
}

static void freed_twice(struct child *c)
{
    c->dev->ops->free(c->dev, c->block);
    c->dev->ops->free(c->dev, c->block);
}

static void kernel_writes_behind_the_commit(struct child *c)
{
    struct vxk_range range;
    if (c->dev->ops->reserve(c->dev, 1 << 24, &range) != VX_OK ||
        c->dev->ops->commit(c->dev, &range, 4096) != VX_OK)
        _exit(3);
    affine(c, c->block, (uint32_t *)((char *)range.base + range.committed_bytes), 1);
}

START_TEST(misdeeds_end_the_program)
{
    ck_assert_int_eq(signal_of(nothing_wrong), 0);
    ck_assert_int_eq(signal_of(host_reads), SIGSEGV);
    ck_assert_int_eq(signal_of(host_writes_after_a_launch), SIGSEGV);
    ck_assert_int_eq(signal_of(kernel_writes_just_behind), SIGABRT);
    ck_assert_int_eq(signal_of(kernel_writes_just_before), SIGABRT);
    ck_assert_int_eq(signal_of(kernel_writes_far_behind), SIGSEGV);
    ck_assert_int_eq(signal_of(kernel_uses_a_freed_block), SIGSEGV);
    ck_assert_int_eq(signal_of(freed_twice), SIGABRT);
    ck_assert_int_eq(signal_of(kernel_writes_behind_the_commit), SIGSEGV);
}
END_TEST

/* A call with a bad pointer is not carried out and poisons its queue, and only that one. */
START_TEST(bad_pointers_poison_the_queue)
{
    struct vxk_dev *dev;
    const struct vxk_ops *ops;
    uint32_t host[64] = {0};
    void *block;
    ck_assert_int_eq(vxk_open(VXK_GUARD, 0, 1, &dev, NULL), VX_OK);
    ops = dev->ops;
    ck_assert_int_eq(ops->alloc(dev, sizeof host, &block), VX_OK);
    for (int misdeed = 0; misdeed < 8; misdeed++) {
        struct vxk_queue *bad, *good;
        vx_err err = VX_OK;
        ck_assert_int_eq(ops->queue_create(dev, 0, &bad), VX_OK);
        ck_assert_int_eq(ops->queue_create(dev, 0, &good), VX_OK);
        switch (misdeed) {
        case 0:
            err = ops->upload(bad, host, host, 4);
            break;
        case 1:
            err = ops->upload(bad, block, host, sizeof host + 1);
            break;
        case 2:
            err = ops->download(bad, block, block, 4);
            break;
        case 3:
            err = ops->copy(bad, block, host, 4);
            break;
        case 4:
            err = ops->fill(bad, (char *)block - 1, 0, 4);
            break;
        case 5:
            err = ops->scan_u32(bad, block, block, 64); /* has no room for the total */
            break;
        case 6:
            err = ops->sort_u64(bad, block, host, 4);
            break;
        default:
            err = ops->launch_counted(bad, VXK_K_selftest_affine, host,
                                      sizeof(struct vxk_selftest_affine_args), host, 1, 1);
        }
        ck_assert_msg(err == VX_E_DEVICE, "misdeed %d", misdeed);
        ck_assert_str_ne(ops->queue_error_text(bad), "");
        ck_assert_int_eq(ops->wait(bad), VX_E_DEVICE);
        ck_assert_int_eq(ops->fill(bad, block, 0, 4), VX_E_DEVICE);
        ck_assert_int_eq(ops->fill(good, block, 0, 4), VX_OK);
        ck_assert_int_eq(ops->wait(good), VX_OK);
        ops->queue_destroy(bad);
        ops->queue_destroy(good);
    }
    ops->free(dev, block);
    ops->close(dev);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guard");
    TCase *tc = tcase_create("guard");
    SRunner *runner;
    int failed;
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, misdeeds_end_the_program);
    tcase_add_test(tc, bad_pointers_poison_the_queue);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
