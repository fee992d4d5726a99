/* load.c: leaves and tiles in host memory to a map; what it refuses. */
#include "core_test.h"
#include "load.h"

#include <stdlib.h>
#include <string.h>

struct cell {
    uint32_t place;
    uint64_t active[8], free[8];
    uint32_t value[512];
};

/* A cell that holds something; dense: every voxel has a value. */
static void random_cell(struct cell *c, uint64_t *seed, bool dense)
{
    uint32_t n = 0;
    memset(c, 0, sizeof *c);
    for (int x = 0; x < 8; x++) {
        c->active[x] = dense ? ~0ull : test_random(seed) & test_random(seed);
        c->free[x] = test_random(seed) & ~c->active[x];
    }
    if (!dense && test_random(seed) % 4 == 0)
        memset(c->active, 0, sizeof c->active);
    c->free[0] |= dense || c->active[0] ? 0 : 1;
    for (int v = 0; v < 512; v++)
        if (c->active[v >> 6] >> (v & 63) & 1)
            c->value[n++] = (uint32_t)test_random(seed);
}

static void put(struct vx__loader *l, const struct cell *c)
{
    ck_ok(vx__loader_leaf(l, c->place, c->active, c->free, c->value, NULL));
}

/* Chunk number i of a set that is spread over the whole range. */
static void chunk_at(uint32_t i, int32_t at[3])
{
    static const int32_t far[4] = {0, -1, -(1 << 20), (1 << 20) - 1};
    if (i < 4) {
        at[0] = at[1] = at[2] = far[i];
        return;
    }
    at[0] = (int32_t)(i % 7) * 1000 - 3000;
    at[1] = -(int32_t)(i / 7 % 11);
    at[2] = (int32_t)i * 3;
}

enum { CHUNKS = 1100 };

/* Sparse chunks, then (first) one in which every voxel has a value; more than a batch of chunks and leaves.
 */
START_TEST(fills)
{
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(0.1, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx_map_info info;
    struct vx__loader *l;
    struct cell *c = malloc(sizeof *c);
    uint64_t seed = test_seed, n_active = 0, n_tiles = 0;
    ck_ok(vx__loader_create(map, &l, NULL));
    for (uint32_t i = 0; i < CHUNKS; i++) {
        int32_t at[3];
        uint8_t used[4096] = {0};
        uint32_t n = i == 1 ? 4096 : (uint32_t)(test_random(&seed) % 20);
        chunk_at(i, at);
        ck_ok(vx__loader_begin(l, at, NULL));
        for (uint32_t k = 0; k < n; k++) {
            uint32_t place = i == 1 ? k ^ 0x5a5 : (uint32_t)(test_random(&seed) % 4096);
            if (used[place])
                continue;
            used[place] = 1;
            if (i != 1 && test_random(&seed) % 4 == 0) {
                ck_ok(vx__loader_tiles(l, place >> 6, 1ull << (place & 63), NULL));
                n_tiles++;
                continue;
            }
            random_cell(c, &seed, i == 1);
            c->place = place;
            put(l, c);
            for (int x = 0; x < 8; x++)
                n_active += (uint64_t)__builtin_popcountll(c->active[x]);
        }
    }
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.epoch, 0); /* nothing shows yet */
    ck_ok(vx__loader_publish(l, NULL));
    vx__loader_destroy(l);
    ck_device(d, &map, 1, "loaded");
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.epoch, 1);
    ck_assert_uint_eq(info.n_voxels, n_active);
    ck_assert_uint_eq(info.n_tiles, n_tiles);
    /* the same again, voxel by voxel */
    struct map_walk *w = map_walk_newest(map);
    uint64_t wrong = 0;
    seed = test_seed;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        int32_t at[3];
        uint8_t used[4096] = {0};
        uint32_t n = i == 1 ? 4096 : (uint32_t)(test_random(&seed) % 20);
        chunk_at(i, at);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t place = i == 1 ? k ^ 0x5a5 : (uint32_t)(test_random(&seed) % 4096), x, y, z, m = 0,
                     value;
            bool tile = false;
            if (used[place])
                continue;
            used[place] = 1;
            vxk_cell_base(place >> 6, place & 63, &x, &y, &z);
            if (i != 1 && test_random(&seed) % 4 == 0)
                tile = true;
            else
                random_cell(c, &seed, i == 1);
            for (uint32_t v = 0; v < 512; v += i == 1 ? 37 : 1) {
                int want = tile                                ? VXK_FREE
                           : c->active[v >> 6] >> (v & 63) & 1 ? VXK_ACTIVE
                           : c->free[v >> 6] >> (v & 63) & 1   ? VXK_FREE
                                                               : VXK_UNKNOWN;
                int got = map_walk_voxel(w, at[0] * 128 + (int32_t)(x + (v >> 6)),
                                         at[1] * 128 + (int32_t)(y + (v >> 3 & 7)),
                                         at[2] * 128 + (int32_t)(z + (v & 7)), &value);
                wrong += got != want;
                if (want == VXK_ACTIVE)
                    wrong += value != c->value[i == 1 ? v : m++];
            }
        }
    }
    ck_assert_uint_eq(wrong, 0);
    map_walk_free(w);
    vx_map_destroy(map);
    ck_device(d, NULL, 0, "after destroy");
    free(c);
    vx_device_close(d);
}
END_TEST

START_TEST(refuses)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.1, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx__loader *l;
    struct vx_detail detail = {0};
    struct cell c;
    const int32_t at[3] = {1, -2, 3};
    const uint64_t none[8] = {0};
    uint64_t seed = test_seed, all[8];
    struct vx_map_info info;
    memset(all, 0xff, sizeof all);
    random_cell(&c, &seed, true);
    ck_ok(vx__loader_create(map, &l, NULL));
    ck_ok(vx__loader_begin(l, at, NULL));
    c.place = 77;
    put(l, &c);
    ck_assert_int_eq(vx__loader_leaf(l, 77, c.active, none, c.value, &detail), VX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(detail.text, "twice"));
    ck_assert_int_eq(vx__loader_tiles(l, 1, 1ull << 13, &detail), VX_E_INVALID);
    ck_assert_int_eq(vx__loader_leaf(l, 78, none, none, NULL, &detail), VX_E_INVALID);
    ck_assert_int_eq(vx__loader_leaf(l, 78, all, all, c.value, &detail), VX_E_INVALID);
    ck_ok(vx__loader_leaf(l, 79, none, all, NULL, &detail)); /* wholly free: a tile */
    ck_assert_int_eq(vx__loader_leaf(l, 79, c.active, none, c.value, &detail), VX_E_INVALID);
    ck_ok(vx__loader_publish(l, NULL));
    vx__loader_destroy(l);
    ck_device(d, &map, 1, "loaded");
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.n_voxels, 512);
    ck_assert_uint_eq(info.n_tiles, 1);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("load");
    ck_add(s, fills, 1);
    ck_add(s, refuses, 1);
    return core_test_main(argc, argv, s);
}
