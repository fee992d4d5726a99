/*
 * Damaged NanoVDB files: an import never crashes, never hangs, stays within the device's cap, and leaves no
 * map behind.  Every byte of the heads in turn, an end at every border, random damage to the nodes with the
 * checksum off, so that the checks behind it are reached.  Run it under ASan and UBSan.  The seed is printed;
 * VOXELD_TEST_SEED=n repeats a run, VOXELD_FUZZ_ROUNDS makes it longer.
 */
#include "nvdb_case.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAP_BYTES = 64 << 20 };

static struct vx_device *device;
static struct nvdb_file file[3]; /* index, float, occupancy index: checksums off */
static int fd[3];
static uint64_t seed, used_before;
static unsigned n_cases, n_taken;

/* Imports file `k` with n bytes of damage at `at`, and mends it again. */
static void attempt(int k, uint64_t n_bytes)
{
    struct vx_nvdb_import o = nvdb_defaults();
    struct vx_detail detail = {0};
    struct vx_device_stats stats;
    struct vx_map *map;
    vx_err err = vx_nvdb_read(device, "fuzz", &o, fd[k], n_bytes, &map, NULL, &detail);
    n_cases++;
    ck_assert((err == VX_OK) == (map != NULL));
    if (err == VX_OK) {
        n_taken++;
        if (n_taken % 16 == 0)
            ck_map(map, "a damaged file that was taken");
        vx_map_destroy(map);
    } else {
        ck_assert_msg(detail.text[0] != 0, "%s without words", vx_err_name(err));
        ck_assert_msg(err != VX_E_INTERNAL && err != VX_E_DEVICE && err != VX_E_NOMEM, "%s: %s",
                      vx_err_name(err), detail.text);
    }
    vx_device_get_stats(device, &stats);
    ck_assert_uint_eq(stats.used_bytes, used_before);
    ck_assert_uint_le(stats.peak_bytes, CAP_BYTES);
}

static void put(int k, uint64_t at, const void *bytes, size_t n)
{
    ck_assert_int_eq(pwrite(fd[k], bytes, n, (off_t)at), (ssize_t)n);
}

/* Puts the file's own bytes back. */
static void mend(int k, uint64_t at, size_t n)
{
    put(k, at, file[k].bytes + at, n);
}

static void setup(void)
{
    const double at[3] = {0, 0, 0};
    struct vx_device_stats stats;
    seed = test_seed;
    device = test_device(CAP_BYTES);
    for (int k = 0; k < 3; k++) {
        struct vx_map *map = nvdb_random_map(device, k == 2 ? VX_OCCUPANCY : VX_TSDF, 0.05, at, at, 1, seed);
        nvdb_export(map, k == 1 ? VX_NVDB_FLOAT : VX_NVDB_INDEX, &file[k]);
        nvdb_no_sum(&file[k]);
        fd[k] = nvdb_fd(file[k].bytes, file[k].n);
        vx_map_destroy(map);
    }
    vx_device_get_stats(device, &stats);
    used_before = stats.used_bytes;
}

static void teardown(void)
{
    ck_device(device, NULL, 0, "after all");
    for (int k = 0; k < 3; k++) {
        close(fd[k]);
        nvdb_free(&file[k]);
    }
    vx_device_close(device);
    printf("%u files, %u of them taken\n", n_cases, n_taken);
}

/* Every field of the heads with values that break things. */
static void fields(int k, uint64_t from, uint64_t to, unsigned step)
{
    static const uint64_t values[] = {0,          ~0ull,      1ull << 63, 0x7fffffffffffffff,
                                      0x80000000, 0x7fffffff, 1,          4096};
    for (uint64_t at = from; at + 8 <= to; at += step) {
        uint64_t v = values[test_random(&seed) % 8];
        size_t n = test_random(&seed) % 2 ? 4 : 8;
        put(k, at, &v, n);
        attempt(k, file[k].n);
        mend(k, at, n);
    }
}

START_TEST(heads)
{
    const struct nvdb_file *f = &file[_i];
    struct vx__nvdb_head h = nvdb_head(f);
    uint64_t upper = f->grid_at + 672 + (uint64_t)h.tree.node_at[2],
             blind = f->grid_at + (uint64_t)h.grid.blind_at;
    fields(_i, 0, f->grid_at + 40, 4);
    fields(_i, f->grid_at + 296, upper, 4);
    for (uint32_t i = 0; i < h.grid.n_blind; i++)
        fields(_i, blind + 288 * i, blind + 288 * i + 48, 4);
}
END_TEST

START_TEST(ends)
{
    const struct nvdb_file *f = &file[_i];
    struct vx__nvdb_head h = nvdb_head(f);
    uint64_t g = f->grid_at, tree = g + 672;
    const uint64_t borders[] = {0,
                                8,
                                16,
                                192,
                                g,
                                g + 672,
                                g + 736,
                                g + 832,
                                tree + (uint64_t)h.tree.node_at[2],
                                tree + (uint64_t)h.tree.node_at[1],
                                tree + (uint64_t)h.tree.node_at[0],
                                g + (uint64_t)h.grid.blind_at,
                                f->n};
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
        for (int64_t d = -2; d < 2; d++)
            if ((int64_t)borders[i] + d >= 0 && borders[i] + (uint64_t)d < f->n)
                attempt(_i, borders[i] + (uint64_t)d);
    for (int i = 0; i < 40; i++)
        attempt(_i, test_random(&seed) % f->n);
}
END_TEST

START_TEST(nodes)
{
    const char *text = getenv("VOXELD_FUZZ_ROUNDS");
    const struct nvdb_file *f = &file[_i];
    struct vx__nvdb_head h = nvdb_head(f);
    uint64_t tree = f->grid_at + 672;
    const uint64_t from[] = {tree + (uint64_t)h.tree.node_at[2] + 32,
                             tree + (uint64_t)h.tree.node_at[2] + 4128,
                             tree + (uint64_t)h.tree.node_at[1],
                             tree + (uint64_t)h.tree.node_at[1] + 544,
                             tree + (uint64_t)h.tree.node_at[0],
                             f->grid_at + (uint64_t)h.grid.blind_at,
                             0};
    for (long i = 0, n = text ? atol(text) : 2000; i < n; i++) {
        uint64_t at[6];
        int k = 0;
        for (; k < 1 + (int)(test_random(&seed) % 6); k++) {
            uint64_t base = from[test_random(&seed) % 7], span = test_random(&seed) % 4 ? 4096 : f->n - base;
            uint8_t byte = (uint8_t)test_random(&seed);
            if (base >= f->n)
                base = 0;
            at[k] = base + test_random(&seed) % (span && base + span < f->n ? span : f->n - base);
            put(_i, at[k], &byte, 1);
        }
        attempt(_i, f->n);
        while (k-- > 0)
            mend(_i, at[k], 1);
    }
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("fuzz_nvdb");
    TCase *c = tcase_create("fuzz");
    tcase_set_timeout(c, 600);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, heads, 0, 3);
    tcase_add_loop_test(c, ends, 0, 3);
    tcase_add_loop_test(c, nodes, 0, 3);
    suite_add_tcase(s, c);
    return core_test_main(argc, argv, s);
}
