/* The cache of memory blocks, over an allocator that counts and can be made to fail. */
#include "base/blocks.h"

#include <check.h>
#include <stdlib.h>

struct source {
    uint64_t bytes, limit_bytes;
    int n_alloc, n_free;
};

static void *source_alloc(void *ctx, uint64_t bytes)
{
    struct source *s = ctx;
    void *ptr = NULL;
    if (s->bytes + bytes > s->limit_bytes || posix_memalign(&ptr, VXK_BLOCK_ALIGN, bytes) != 0)
        return NULL;
    s->bytes += bytes;
    s->n_alloc++;
    return ptr;
}

static void source_free(void *ctx, void *ptr, uint64_t bytes)
{
    struct source *s = ctx;
    s->bytes -= bytes;
    s->n_free++;
    free(ptr);
}

static struct source source;
static struct vxk_blocks blocks;

static void set_up(void)
{
    source = (struct source){0, 1 << 20, 0, 0};
    vxk_blocks_init(&blocks, source_alloc, source_free, &source, 1);
}

static void tear_down(void)
{
    vxk_blocks_fini(&blocks);
    ck_assert_uint_eq(source.bytes, 0);
    ck_assert_int_eq(source.n_alloc, source.n_free);
}

START_TEST(sizes_waste_at_most_an_eighth)
{
    for (uint64_t bytes = 1; bytes < 400000; bytes += bytes / 7 + 1) {
        void *p = vxk_blocks_take(&blocks, bytes);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_ge(source.bytes, bytes);
        ck_assert_uint_le(source.bytes, bytes + bytes / 8 + VXK_BLOCK_ALIGN);
        ck_assert_uint_eq(source.bytes % VXK_BLOCK_ALIGN, 0);
        ck_assert_uint_eq(blocks.live_bytes, source.bytes);
        vxk_blocks_give(&blocks, p);
        vxk_blocks_trim(&blocks);
        ck_assert_uint_eq(source.bytes, 0);
    }
}
END_TEST

START_TEST(a_warm_loop_asks_for_nothing)
{
    int warm = 0;
    for (int round = 0; round < 50; round++) {
        void *p[3];
        for (int i = 0; i < 3; i++) {
            p[i] = vxk_blocks_take(&blocks, 30000 + 100 * (uint64_t)(round % 20) + (uint64_t)i);
            ck_assert_ptr_nonnull(p[i]);
            for (int j = 0; j < i; j++)
                ck_assert_ptr_ne(p[i], p[j]);
        }
        for (int i = 0; i < 3; i++)
            vxk_blocks_give(&blocks, p[i]);
        if (round == 25)
            warm = source.n_alloc;
    }
    ck_assert_int_eq(source.n_alloc, warm);
    ck_assert_uint_eq(blocks.live_bytes, 0);
    ck_assert_uint_eq(blocks.idle_bytes, source.bytes);
}
END_TEST

START_TEST(idle_blocks_make_room)
{
    void *p = vxk_blocks_take(&blocks, 700000), *q;
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_null(vxk_blocks_take(&blocks, 500000)); /* live blocks stay */
    ck_assert_int_eq(source.n_free, 0);
    vxk_blocks_give(&blocks, p);
    q = vxk_blocks_take(&blocks, 100000); /* far smaller: the large one stays idle */
    ck_assert_ptr_nonnull(q);
    ck_assert_int_eq(source.n_free, 0);
    p = vxk_blocks_take(&blocks, 500000);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(source.n_free, 1);
    vxk_blocks_give(&blocks, q);
    vxk_blocks_give(&blocks, NULL);
}
END_TEST

START_TEST(absurd_sizes_get_nothing)
{
    ck_assert_ptr_null(vxk_blocks_take(&blocks, UINT64_MAX));
    ck_assert_ptr_null(vxk_blocks_take(&blocks, 1ull << 63));
    ck_assert_ptr_null(vxk_blocks_take(&blocks, 1ull << 40));
    ck_assert_ptr_nonnull(vxk_blocks_take(&blocks, 0)); /* left live: fini gives it back */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blocks");
    TCase *tc = tcase_create("blocks");
    SRunner *runner;
    int failed;
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, sizes_waste_at_most_an_eighth);
    tcase_add_test(tc, a_warm_loop_asks_for_nothing);
    tcase_add_test(tc, idle_blocks_make_room);
    tcase_add_test(tc, absurd_sizes_get_nothing);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
