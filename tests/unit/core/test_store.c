/* The chunk store: structure after any frames, copy-on-write, give-back, the cap, budgets, limits, growth. */
#include "core_test.h"

#include <stdlib.h>
#include <string.h>

static const double ORIGIN[3];

#if defined(__SANITIZE_THREAD__)
static const bool slow = true;
#else
static const bool slow = false;
#endif

/* Integrates a random frame; returns the error. */
static vx_err feed(struct vx_map *map, uint64_t *seed, double reach_m, const double centre[3],
                   double spread_m)
{
    struct test_frame t;
    struct vx_frame_result result;
    struct vx_detail detail = {0};
    uint64_t sum = 0;
    vx_err err;
    test_any_frame(&t, seed, reach_m, centre, spread_m);
    err = vx_map_integrate(map, &t.f, &result, &detail);
    if (err == VX_OK) {
        const uint64_t *n = &result.counts.used;
        for (size_t i = 0; i < sizeof result.counts / sizeof *n; i++)
            sum += n[i];
        ck_assert_uint_eq(sum, (uint64_t)t.f.width * t.f.height);
        ck_assert_uint_eq(result.epoch, map->epoch);
    } else {
        ck_assert_msg(detail.text[0] && detail.field[0], "%s without words", vx_err_name(err));
    }
    test_frame_fini(&t);
    return err;
}

static void run_sequence(enum vx_mode mode, double voxel_m, const double centre[3], uint64_t seed)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(voxel_m, mode);
    struct vx_map *map;
    memcpy(p.origin_m, centre, sizeof p.origin_m);
    map = test_map(d, &p);
    ck_device(d, &map, 1, "empty");
    for (int i = 0; i < 8; i++) {
        char when[80];
        ck_ok(feed(map, &seed, 100 * voxel_m, centre, 40 * voxel_m));
        snprintf(when, sizeof when, "mode %d, voxel %g, frame %d", mode, voxel_m, i);
        ck_device(d, &map, 1, when);
    }
    ck_assert_uint_gt(map->totals.n_active, 1000);
    vx_map_destroy(map);
    ck_device(d, NULL, 0, "after destroy");
    vx_device_close(d);
}

START_TEST(structure)
{
    const double far[3] = {5e5, -4e6, 100};
    run_sequence(VX_TSDF, 0.05, ORIGIN, test_seed + (uint64_t)_i);
    run_sequence(VX_OCCUPANCY, 0.1, ORIGIN, test_seed + 10 + (uint64_t)_i);
    run_sequence(VX_TSDF, 0.02, far, test_seed + 20 + (uint64_t)_i);
}
END_TEST

START_TEST(snapshots_stay)
{
    enum { N = 5 };
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx__snapshot snap[N];
    uint8_t digest[N][32];
    uint64_t seed = test_seed + 1, used;
    for (int i = 0; i < N; i++) {
        struct map_walk *w;
        ck_ok(feed(map, &seed, 3, ORIGIN, 1));
        ck_ok(vx__snapshot_pin(map, &snap[i]));
        w = map_walk_snapshot(map, &snap[i]);
        ck_assert_str_eq(w->fault, "");
        memcpy(digest[i], w->digest, 32);
        map_walk_free(w);
    }
    ck_ok(vx_map_clear(map));
    ck_ok(feed(map, &seed, 3, ORIGIN, 1));
    ck_assert_uint_gt(map->retired_bytes, 0);
    ck_device(d, &map, 1, "pinned");
    /* release in an order that is not that of the pins, looking at what is left each time */
    for (int i = 0; i < N; i++) {
        static const int order[N] = {2, 0, 4, 1, 3};
        for (int k = i; k < N; k++) {
            struct map_walk *w = map_walk_snapshot(map, &snap[order[k]]);
            ck_assert_str_eq(w->fault, "");
            ck_assert_msg(!memcmp(w->digest, digest[order[k]], 32), "snapshot %d changed after %d releases",
                          order[k], i);
            map_walk_free(w);
        }
        vx__snapshot_release(map, &snap[order[i]]);
        ck_ok(feed(map, &seed, 3, ORIGIN, 1));
        ck_device(d, &map, 1, "while releasing");
    }
    ck_ok(vx__retired_drain(map, NULL));
    ck_assert_ptr_null(map->retired);
    ck_assert_uint_eq(map->retired_bytes, 0);
    used = (map->totals.n_pages[0]) * vx__page_bytes(VX__CHUNKS, 0) +
           map->totals.n_pages[1] * vx__page_bytes(VX__LEAF_PAGES, 0) +
           map->totals.n_pages[2] * vx__page_bytes(VX__VALUE_PAGES, 0);
    for (int k = 0; k < VX__N_KINDS; k++)
        used -= (d->pool[k].n_units - d->pool[k].n_free) * vx__page_bytes((enum vx__page_kind)k, 0);
    ck_assert_uint_eq(used, 0);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(cycles_give_everything_back)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.1, VX_TSDF);
    struct vx_device_stats first = {0}, now;
    uint64_t seed = test_seed + 2, same;
    int cycles = test_backend == VXK_CPU && !slow ? 1000 : 20;
    for (int i = 0; i < cycles; i++) {
        struct vx_map *map = test_map(d, &p);
        if (i % 10 == 0) {
            same = seed; /* the same frames each time, so that the peak can't creep */
            ck_ok(feed(map, &same, 3, ORIGIN, 1));
            ck_ok(vx_map_clear(map));
            ck_ok(feed(map, &same, 3, ORIGIN, 1));
        }
        if (i % 3)
            ck_ok(vx_map_clear(map));
        vx_map_destroy(map);
        vx_device_get_stats(d, &now);
        if (i == 0)
            first = now;
        ck_assert_uint_eq(now.used_bytes, 0);
        ck_assert_uint_eq(now.scratch_bytes, 0);
        ck_assert_uint_eq(now.reserved_bytes, first.reserved_bytes);
        ck_assert_uint_eq(now.peak_bytes, first.peak_bytes);
    }
    ck_device(d, NULL, 0, "after the cycles");
    vx_device_close(d);
}
END_TEST

static void read_digest(struct vx_map *map, uint8_t digest[32])
{
    uint64_t epoch;
    ck_ok(vx_map_digest(map, digest, &epoch));
    ck_assert_uint_eq(epoch, map->epoch);
}

START_TEST(the_cap_refuses_and_changes_nothing)
{
    struct vx_device *d = test_device(192 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *maps[3] = {NULL, NULL, NULL};
    struct vx_map_info info;
    struct vx_device_stats stats;
    uint8_t mine[32], now[32], other[32];
    uint64_t seed = test_seed + 3, frame, again;
    vx_err err = VX_OK;
    int n = 0, fitted = 0;
    struct vx_device *roomy = test_device(512 << 20);
    struct vx_map *twin;
    p.truncation_voxels = 12; /* thick bands fill the map with few frames */
    twin = test_map(roomy, &p);
    maps[0] = test_map(d, &p);
    maps[1] = test_map(d, &p);
    maps[2] = test_map(d, &p);
    ck_ok(feed(maps[1], &seed, 2, ORIGIN, 1));
    for (int i = 0; i < 2; i++) /* what it holds is room for smaller frames, later */
        ck_ok(feed(maps[2], &seed, 2, (double[3]){0, 0, 10.0 * i}, 1));
    read_digest(maps[1], other);
    for (; n < 1000; n++) {
        double at[3] = {4.0 * n, 0, 0};
        frame = again = seed;
        err = feed(maps[0], &seed, 4, at, 1);
        if (err)
            break;
        ck_ok(feed(twin, &again, 4, at, 1));
    }
    read_digest(twin, mine);
    vx_map_destroy(twin);
    vx_device_close(roomy);
    ck_assert_int_eq(err, VX_E_EXHAUSTED);
    ck_assert_int_gt(n, 2);
    for (int i = 0; i < 2; i++) {
        double at[3] = {4.0 * n, 0, 0};
        again = frame;
        ck_assert_int_eq(feed(maps[0], &again, 4, at, 1), VX_E_EXHAUSTED);
        read_digest(maps[0], now);
        ck_assert_msg(!memcmp(now, mine, 32), "a refused frame changed the map");
        read_digest(maps[1], now);
        ck_assert_msg(!memcmp(now, other, 32), "a refused frame changed another map");
    }
    ck_device(d, maps, 3, "at the cap");
    vx_device_get_stats(d, &stats);
    ck_assert_uint_le(stats.reserved_bytes, stats.cap_bytes);
    ck_assert_uint_le(stats.peak_bytes, stats.cap_bytes);
    ck_ok(vx_map_get_info(maps[0], &info));
    ck_assert_uint_eq(info.n_refused, 3);
    ck_assert_uint_eq(info.epoch, (uint64_t)n);
    /* what is given back serves other maps */
    vx_map_destroy(maps[2]);
    ck_device(d, maps, 2, "one map less");
    for (int i = 0; i < 5; i++) {
        double at[3] = {0, 100, 0};
        fitted += feed(maps[1], &seed, 0.5, at, 0) == VX_OK;
    }
    ck_assert_int_gt(fitted, 0);
    ck_ok(vx_map_clear(maps[0]));
    ck_device(d, maps, 2, "cleared at the cap");
    for (int i = 0; i < 3; i++)
        ck_ok(feed(maps[0], &seed, 4, ORIGIN, 1));
    ck_device(d, maps, 2, "filled again");
    for (n = 0; n < 1000 && feed(maps[0], &seed, 4, (double[3]){4.0 * n, 0, 0}, 1) == VX_OK; n++)
        ;
    vx_map_destroy(maps[0]);
    ck_device(d, maps + 1, 1, "deleted at the cap");
    vx_map_destroy(maps[1]);
    vx_device_get_stats(d, &stats);
    ck_assert_uint_eq(stats.used_bytes, 0);
    ck_assert_uint_eq(stats.scratch_bytes, 0);
    vx_device_close(d);
}
END_TEST

/* A frame that asks for more scratch than there is must not spoil those that come after it. */
START_TEST(a_monstrous_frame_leaves_no_trace)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx_device_stats before, after;
    struct frame_shape shape = {.width = 64, .height = 48, .reach_m = 200};
    struct vx_frame_result result;
    struct vx_detail detail = {0};
    struct test_frame t;
    uint8_t mine[32], now[32];
    uint64_t seed = test_seed + 4;
    ck_ok(feed(map, &seed, 2, ORIGIN, 1));
    read_digest(map, mine);
    vx_device_get_stats(d, &before);
    test_frame_init(&t, VX_DEPTH, &seed, &shape, ORIGIN);
    ck_assert_int_eq(vx_map_integrate(map, &t.f, &result, &detail), VX_E_EXHAUSTED);
    test_frame_fini(&t);
    read_digest(map, now);
    ck_assert_mem_eq(now, mine, 32);
    vx_device_get_stats(d, &after);
    ck_assert_uint_le(after.scratch_bytes, before.scratch_bytes);
    ck_ok(feed(map, &seed, 2, ORIGIN, 1));
    ck_device(d, &map, 1, "after");
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(budget_and_limit)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map;
    struct frame_shape shape = {.width = 64, .height = 48, .reach_m = 3};
    struct vx_frame_result result;
    struct vx_detail detail = {0};
    struct vx_map_info info;
    struct test_frame t;
    uint64_t seed = test_seed + 5, whole;
    uint8_t mine[32], now[32];
    test_frame_init(&t, VX_DEPTH, &seed, &shape, ORIGIN);
    map = test_map(d, &p);
    ck_ok(vx_map_integrate(map, &t.f, &result, &detail));
    whole = result.grown_bytes;
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(whole, info.used_bytes);
    ck_assert_uint_eq(info.params.frame_budget_bytes, 8 << 20);
    ck_assert_uint_eq(info.params.limit_bytes, 64 << 20);
    vx_map_destroy(map);
    /* to the byte */
    p.frame_budget_bytes = whole - 1;
    map = test_map(d, &p);
    read_digest(map, mine);
    ck_assert_int_eq(vx_map_integrate(map, &t.f, &result, &detail), VX_E_EXHAUSTED);
    ck_assert_str_eq(detail.field, "frame_budget_bytes");
    read_digest(map, now);
    ck_assert_mem_eq(now, mine, 32);
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.epoch, 0);
    ck_assert_uint_eq(info.n_refused, 1);
    ck_assert(!info.has_bounds);
    vx_map_destroy(map);
    p.frame_budget_bytes = whole;
    map = test_map(d, &p);
    ck_ok(vx_map_integrate(map, &t.f, &result, &detail));
    vx_map_destroy(map);
    p.frame_budget_bytes = 0;
    p.limit_bytes = whole - 1;
    map = test_map(d, &p);
    ck_assert_int_eq(vx_map_integrate(map, &t.f, &result, &detail), VX_E_EXHAUSTED);
    ck_assert_str_eq(detail.field, "limit_bytes");
    ck_device(d, &map, 1, "limit");
    vx_map_destroy(map);
    p.limit_bytes = whole;
    map = test_map(d, &p);
    ck_ok(vx_map_integrate(map, &t.f, &result, &detail));
    test_frame_fini(&t);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* More chunks than the first table holds, with a reader that keeps the old table. */
START_TEST(the_table_grows)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(0.02, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx__snapshot snap;
    struct map_walk *w, *old;
    uint64_t seed = test_seed + 6;
    ck_ok(feed(map, &seed, 2, ORIGIN, 0));
    ck_ok(vx__snapshot_pin(map, &snap));
    old = map_walk_snapshot(map, &snap);
    for (int i = 0; map->n_slots == 1024 || map->n_keys < 1100; i++) {
        double at[3] = {10.0 * (i % 16), 10.0 * (i / 16), -10.0 * i};
        ck_ok(feed(map, &seed, 2, at, 0));
        ck_assert_int_lt(i, 1000);
    }
    w = map_walk_snapshot(map, &snap);
    ck_assert_str_eq(w->fault, "");
    ck_assert_mem_eq(w->digest, old->digest, 32);
    map_walk_free(w);
    map_walk_free(old);
    ck_device(d, &map, 1, "large table, pinned");
    vx__snapshot_release(map, &snap);
    ck_ok(vx__retired_drain(map, NULL));
    ck_device(d, &map, 1, "large table");
    ck_ok(vx_map_clear(map));
    ck_assert_uint_eq(map->n_slots, 1024);
    ck_device(d, &map, 1, "cleared");
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* Epochs are counted in 32 bits: behind the last one frames are refused with words, and everything else goes
 * on. */
START_TEST(epochs_end)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct test_frame t;
    struct vx_frame_result result;
    struct vx_detail detail = {0};
    uint64_t seed = test_seed + 9;
    uint8_t before[32], after[32];
    ck_ok(feed(map, &seed, 2, ORIGIN, 0));
    map->epoch = VX__MAX_FRAME_EPOCH - 2;
    ck_ok(feed(map, &seed, 2, ORIGIN, 0));
    ck_ok(feed(map, &seed, 2, ORIGIN, 0));
    ck_assert_uint_eq(map->epoch, VX__MAX_FRAME_EPOCH);
    ck_device(d, &map, 1, "at the last epoch");
    ck_ok(vx_map_digest(map, before, NULL));
    test_any_frame(&t, &seed, 2, ORIGIN, 0);
    ck_assert_int_eq(vx_map_integrate(map, &t.f, &result, &detail), VX_E_EXHAUSTED);
    ck_assert_str_eq(detail.field, "epochs");
    ck_assert_ptr_nonnull(strstr(detail.text, "export it"));
    ck_ok(vx_map_digest(map, after, NULL));
    ck_assert_mem_eq(before, after, sizeof before);
    ck_ok(vx_map_clear(map));
    ck_assert_int_eq(vx_map_integrate(map, &t.f, &result, &detail), VX_E_EXHAUSTED);
    map->epoch = map->cleared_epoch = UINT32_MAX - 1;
    ck_assert_int_eq(vx_map_clear(map), VX_E_EXHAUSTED);
    test_frame_fini(&t);
    vx_map_destroy(map);
    ck_device(d, NULL, 0, "after the last epoch");
    vx_device_close(d);
}
END_TEST

/* Lists that overflow run again with more room: the map must not show it. */
START_TEST(overflows_do_not_show)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(0.05, (enum vx_mode)(_i & 1));
    struct vx_map *maps[2] = {test_map(d, &p), test_map(d, &p)};
    uint64_t seed = test_seed + 7 + (uint64_t)_i, same;
    for (int i = 0; i < 9; i++) {
        uint8_t large[32], small[32];
        struct vx__workspace *w = &maps[1]->ws;
        uint32_t *const rooms[] = {&w->room_chunk,      &w->room_word, &w->room_work,
                                   &w->room_touch_leaf, &w->room_hit,  &w->touch_slots};
        for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++)
            if (i % 3 == 0 || (uint32_t)i % 6 == k)
                *rooms[k] = 1;
        same = seed;
        ck_ok(feed(maps[0], &seed, 3, ORIGIN, 1));
        ck_ok(feed(maps[1], &same, 3, ORIGIN, 1));
        ck_assert_uint_eq(seed, same);
        read_digest(maps[0], large);
        read_digest(maps[1], small);
        ck_assert_msg(!memcmp(large, small, 32), "frame %d: small lists, other map", i);
    }
    ck_device(d, maps, 2, "overflows");
    vx_map_destroy(maps[0]);
    vx_map_destroy(maps[1]);
    vx_device_close(d);
}
END_TEST

/* At the end of the voxel range surfaces beyond it are counted and skipped. */
START_TEST(the_end_of_the_range)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    uint64_t seed = test_seed + 9, outside = 0;
    for (int i = 0; i < 18; i++) {
        static const enum vx_sensor sensors[] = {VX_DEPTH, VX_POINTS, VX_RANGE};
        double end = (i & 1 ? -1 : 1) * 0.05 * 134217450.0;
        double at[3] = {i % 9 < 3 ? end : 0, i % 9 < 6 ? end : 0, end};
        struct frame_shape shape = {.width = 64, .height = 24, .reach_m = 15, .odd = 0.02};
        struct vx_frame_result result;
        struct test_frame t;
        test_frame_init(&t, sensors[i % 3], &seed, &shape, at);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        outside += result.counts.outside;
        test_frame_fini(&t);
    }
    ck_assert_uint_gt(outside, 100);
    ck_assert_uint_gt(map->totals.n_active, 100);
    ck_device(d, &map, 1, "at the end of the range");
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(clear_begins_anew)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx_map_info info;
    struct frame_shape shape = {.width = 32, .height = 24, .reach_m = 2};
    struct vx_frame_result result;
    struct test_frame t;
    uint8_t empty[32], now[32];
    uint64_t seed = test_seed + 8;
    read_digest(map, empty);
    test_frame_init(&t, VX_DEPTH, &seed, &shape, ORIGIN);
    t.f.stamp_ns = -5;
    ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_int_eq(info.newest_stamp_ns, -5);
    t.f.stamp_ns = 1000;
    ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
    t.f.stamp_ns = 500;
    ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_int_eq(info.newest_stamp_ns, 1000);
    ck_assert_uint_eq(info.n_frames, 3);
    ck_ok(vx_map_clear(map));
    read_digest(map, now);
    ck_assert_mem_eq(now, empty, 32);
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.epoch, 4);
    ck_assert_int_eq(info.newest_stamp_ns, 0);
    ck_assert_uint_eq(info.n_voxels + info.n_leaves + info.n_tiles + info.n_chunks + info.used_bytes, 0);
    ck_assert(!info.has_bounds);
    t.f.stamp_ns = 700;
    ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_int_eq(info.newest_stamp_ns, 700);
    test_frame_fini(&t);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("store");
    ck_add(s, structure, slow ? 1 : 3);
    ck_add(s, snapshots_stay, 1);
    ck_add(s, cycles_give_everything_back, 1);
    ck_add(s, a_monstrous_frame_leaves_no_trace, 1);
    ck_add(s, budget_and_limit, 1);
    ck_add(s, overflows_do_not_show, slow ? 1 : 4);
    ck_add(s, the_end_of_the_range, 1);
    ck_add(s, clear_begins_anew, 1);
    ck_add(s, epochs_end, 1);
    /* large maps: the guard changes their pages' protection at every launch, ThreadSanitizer learns nothing
     * new */
    if (!slow && (argc < 2 || strcmp(argv[1], "guard") != 0)) {
        ck_add(s, the_cap_refuses_and_changes_nothing, 1);
        ck_add(s, the_table_grows, 1);
    }
    return core_test_main(argc, argv, s);
}
