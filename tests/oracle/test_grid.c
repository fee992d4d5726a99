/* Topology operators of index grids against plain sets of coordinates. */
#include "grid_check.h"
#include "map_walk.h"

#include <stdlib.h>
#include <string.h>

static uint64_t seed_of(int kind, int use)
{
    return test_seed * 1000003u + (uint64_t)kind * 101 + (uint64_t)use;
}

START_TEST(from_voxels)
{
    uint64_t seed = seed_of(_i, 1);
    struct voxel_set s = grid_random_set(_i, &seed), twice = {0};
    struct vx_voxels batch[3];
    struct vx_grid *g;
    void *dev;
    grid_open(0);
    for (size_t i = 0; i < s.n * 2; i++) { /* in any order, with duplicates */
        const struct voxel *v = &s.v[i < s.n ? i : test_random(&seed) % s.n];
        vs_add(&twice, v->at[0], v->at[1], v->at[2]);
    }
    for (size_t i = twice.n; i > 1; i--) {
        size_t k = test_random(&seed) % i;
        struct voxel t = twice.v[i - 1];
        twice.v[i - 1] = twice.v[k];
        twice.v[k] = t;
    }
    dev = grid_upload(twice.v, twice.n * 12);
    batch[0] = (struct vx_voxels){.ijk = twice.n ? twice.v[0].at : NULL, .n = twice.n / 3};
    batch[1] =
        (struct vx_voxels){.ijk = (int32_t *)dev + twice.n / 3 * 3, .n = twice.n / 4, .on_device = true};
    batch[2] = (struct vx_voxels){.ijk = twice.n ? twice.v[twice.n / 3 + twice.n / 4].at : NULL,
                                  .n = twice.n - twice.n / 3 - twice.n / 4};
    for (int pass = 0; pass < 2; pass++) { /* the second knows how much room it needs */
        ck_ok(vx_grid_from_voxels(grid_engine, batch, 3, &g, NULL));
        grid_check(g, &s, "batches");
        vx_grid_destroy(g);
    }
    g = grid_of(&s);
    grid_check(g, &s, "sorted");
    vx_grid_destroy(g);
    vx_engine_free(grid_engine, dev);
    vs_free(&s);
    vs_free(&twice);
    grid_close();
}
END_TEST

START_TEST(dilate_erode)
{
    static const struct {
        enum vx_shape shape;
        uint32_t radius;
    } cases[] = {{VX_FACES, 1}, {VX_EDGES, 1}, {VX_BOX, 1}, {VX_BOX, 2},
                 {VX_BOX, 3},   {VX_BOX, 7},   {VX_BOX, 8}};
    uint64_t seed = seed_of(_i, 2);
    struct voxel_set s = grid_random_set(_i, &seed);
    struct vx_grid *g, *d, *back;
    grid_open(0);
    g = grid_of(&s);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct voxel_set wide = {0}, want;
        if (cases[k].radius > 3 && s.n > 8000)
            continue; /* the plain set takes too long */
        want = vs_dilate(&s, (int)cases[k].shape, (int)cases[k].radius);
        ck_ok(vx_grid_dilate(grid_engine, g, cases[k].shape, cases[k].radius, &d, NULL));
        grid_check(d, &want, "dilate");
        ck_ok(vx_grid_erode(grid_engine, d, cases[k].shape, cases[k].radius, &back, NULL));
        wide = vs_erode(&want, (int)cases[k].shape, (int)cases[k].radius);
        for (size_t i = 0; i < s.n && _i != 5; i++) /* away from the range's ends, closing contains */
            ck_assert_msg(vs_find(&wide, s.v[i].at[0], s.v[i].at[1], s.v[i].at[2]) >= 0,
                          "closing lost a voxel");
        grid_check_drop(back, wide, "erode of dilate");
        vx_grid_destroy(d);
        vs_free(&want);
        ck_ok(vx_grid_erode(grid_engine, g, cases[k].shape, cases[k].radius, &d, NULL));
        grid_check_drop(d, vs_erode(&s, (int)cases[k].shape, (int)cases[k].radius), "erode");
    }
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

START_TEST(sets)
{
    int n = 0;
    grid_open(0);
    for (int other = 0; other < GRID_KINDS; other++) {
        if (other != _i && other != (_i + 1) % GRID_KINDS && other != 0)
            continue;
        uint64_t seed = seed_of(_i, 3), seed2 = seed_of(other, 4);
        struct voxel_set a = grid_random_set(_i, &seed), b = grid_random_set(other, &seed2);
        const struct voxel_set *both[3] = {&a, &b, &a}, *flipped[2] = {&b, &a};
        struct vx_grid *ga, *gb, *r;
        n++;
        if (other == _i)
            for (size_t i = 0; i < b.n; i++) /* the same, moved */
                b.v[i].at[0] += b.v[i].at[0] < VX_GRID_RANGE - 3 ? 3 : -3;
        vs_sort(&b);
        ga = grid_of(&a);
        gb = grid_of(&b);
        ck_ok(vx_grid_merge(grid_engine, (const struct vx_grid *[]){ga, gb}, 2, &r, NULL));
        grid_check_drop(r, vs_merge(both, 2), "merge");
        ck_ok(vx_grid_merge(grid_engine, (const struct vx_grid *[]){gb, ga}, 2, &r, NULL));
        grid_check_drop(r, vs_merge(flipped, 2), "merge the other way");
        ck_ok(vx_grid_merge(grid_engine, (const struct vx_grid *[]){ga, gb, ga, ga, gb, gb, ga, gb}, 8, &r,
                            NULL));
        grid_check_drop(r, vs_merge(both, 3), "merge of eight");
        ck_ok(vx_grid_merge(grid_engine, (const struct vx_grid *[]){ga}, 1, &r, NULL));
        grid_check_drop(r, vs_copy(&a), "merge of one");
        ck_ok(vx_grid_intersect(grid_engine, ga, gb, &r, NULL));
        grid_check_drop(r, vs_intersect(&a, &b), "intersect");
        ck_ok(vx_grid_difference(grid_engine, ga, gb, &r, NULL));
        grid_check_drop(r, vs_difference(&a, &b), "difference");
        ck_ok(vx_grid_difference(grid_engine, ga, ga, &r, NULL));
        ck_assert_uint_eq(vx_grid_view(r)->n_chunks, 0);
        vx_grid_destroy(r);
        vx_grid_destroy(ga);
        vx_grid_destroy(gb);
        vs_free(&a);
        vs_free(&b);
    }
    ck_assert_int_gt(n, 1);
    grid_close();
}
END_TEST

START_TEST(prune)
{
    uint64_t seed = seed_of(_i, 5);
    struct voxel_set s = grid_random_set(_i, &seed), in = {0}, out = {0};
    struct vx_grid *g, *kept, *rest, *all;
    uint64_t *keep, *dev;
    size_t at = 0, bytes;
    uint8_t digest[2][32];
    uint64_t *masks;
    grid_open(0);
    g = grid_of(&s);
    bytes = vx_grid_view(g)->n_leaves * 64ull;
    keep = malloc(bytes + 1);
    masks = malloc(bytes + 1);
    if (bytes)
        grid_fetch(masks, vx_grid_view(g)->masks, bytes);
    for (size_t i = 0; i < bytes / 8; i++)
        keep[i] = i / 8 % 3 == 0 ? 0 : test_random(&seed) & test_random(&seed);
    for (size_t i = 0; i < bytes / 8; i++)
        for (uint64_t m = masks[i]; m; m &= m - 1, at++) {
            const int32_t *v = s.v[at].at;
            vs_add(keep[i] & m & -m ? &in : &out, v[0], v[1], v[2]);
        }
    vs_sort(&in);
    vs_sort(&out);
    dev = grid_upload(keep, bytes);
    ck_ok(vx_grid_prune(grid_engine, g, dev, &kept, NULL));
    grid_check(kept, &in, "prune");
    for (size_t i = 0; i < bytes / 8; i++)
        keep[i] = ~keep[i];
    vx_engine_free(grid_engine, dev);
    dev = grid_upload(keep, bytes);
    ck_ok(vx_grid_prune(grid_engine, g, dev, &rest, NULL));
    grid_check(rest, &out, "prune of the others");
    ck_ok(vx_grid_merge(grid_engine, (const struct vx_grid *[]){rest, kept}, 2, &all, NULL));
    grid_check(all, &s, "prune and merge");
    ck_ok(vx_grid_digest(grid_engine, g, digest[0], NULL));
    ck_ok(vx_grid_digest(grid_engine, all, digest[1], NULL));
    ck_assert_mem_eq(digest[0], digest[1], 32);
    if (s.n) {
        ck_ok(vx_grid_digest(grid_engine, kept, digest[1], NULL));
        ck_assert_mem_ne(digest[0], digest[1], 32);
    }
    vx_engine_free(grid_engine, dev);
    vx_grid_destroy(g);
    vx_grid_destroy(kept);
    vx_grid_destroy(rest);
    vx_grid_destroy(all);
    free(keep);
    free(masks);
    vs_free(&s);
    vs_free(&in);
    vs_free(&out);
    grid_close();
}
END_TEST

START_TEST(levels)
{
    uint64_t seed = seed_of(_i, 6);
    struct voxel_set s = grid_random_set(_i, &seed);
    struct vx_grid *g, *coarse, *fine, *again;
    grid_open(0);
    g = grid_of(&s);
    ck_ok(vx_grid_coarsen(grid_engine, g, &coarse, NULL));
    grid_check_drop(coarse, vs_coarsen(&s), "coarsen");
    if (_i == 5) {
        struct vx_detail detail = {0};
        ck_assert_int_eq(vx_grid_refine(grid_engine, g, &fine, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, "grid");
        ck_assert_ptr_null(fine);
    } else {
        ck_ok(vx_grid_refine(grid_engine, g, &fine, NULL));
        grid_check_drop(fine, vs_refine(&s), "refine");
        ck_ok(vx_grid_refine(grid_engine, g, &fine, NULL));
        ck_ok(vx_grid_coarsen(grid_engine, fine, &again, NULL));
        grid_check(again, &s, "coarsen of refine");
        vx_grid_destroy(again);
        ck_ok(vx_grid_coarsen(grid_engine, g, &coarse, NULL));
        ck_ok(vx_grid_coarsen(grid_engine, coarse, &again, NULL));
        vx_grid_destroy(coarse);
        vx_grid_destroy(fine);
        ck_ok(vx_grid_refine(grid_engine, again, &coarse, NULL));
        ck_ok(vx_grid_refine(grid_engine, coarse, &fine, NULL));
        struct voxel_set up = vs_coarsen(&s), upper = vs_coarsen(&up), down = vs_refine(&upper);
        grid_check_drop(fine, vs_refine(&down), "two levels up and down");
        vs_free(&up);
        vs_free(&upper);
        vs_free(&down);
        vx_grid_destroy(coarse);
        vx_grid_destroy(again);
    }
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

/* A whole chunk, too large for the plain set: its counts and bounds are known. */
START_TEST(full_chunk)
{
    static const int32_t corner[3] = {-128, 0, 128};
    struct voxel_set s = {0};
    uint64_t seed = 1;
    struct vx_grid *g, *d, *back;
    int32_t(*ijk)[3];
    uint8_t digest[2][32];
    grid_open(0);
    vs_add_box(&s, corner, (int32_t[3]){0, 128, 256}, 1, &seed);
    vs_sort(&s);
    g = grid_of(&s);
    grid_check(g, &s, "full chunk");
    ck_assert_uint_eq(vx_grid_view(g)->n_chunks, 1);
    ck_assert_uint_eq(vx_grid_view(g)->n_leaves, 4096);
    ck_ok(vx_grid_dilate(grid_engine, g, VX_BOX, 1, &d, NULL));
    ck_assert_uint_eq(vx_grid_view(d)->n_voxels, 130 * 130 * 130);
    ck_assert_uint_eq(vx_grid_view(d)->n_chunks, 27);
    ijk = malloc(vx_grid_view(d)->n_voxels * sizeof *ijk);
    ck_ok(vx_grid_download(grid_engine, d, 0, vx_grid_view(d)->n_voxels, ijk[0], NULL));
    for (uint64_t i = 0; i < vx_grid_view(d)->n_voxels; i++)
        for (int k = 0; k < 3; k++)
            if (ijk[i][k] < corner[k] - 1 || ijk[i][k] > corner[k] + 128)
                ck_abort_msg("voxel %llu lies outside", (unsigned long long)i);
    free(ijk);
    ck_ok(vx_grid_erode(grid_engine, d, VX_BOX, 1, &back, NULL));
    ck_ok(vx_grid_digest(grid_engine, g, digest[0], NULL));
    ck_ok(vx_grid_digest(grid_engine, back, digest[1], NULL));
    ck_assert_mem_eq(digest[0], digest[1], 32);
    vx_grid_destroy(back);
    vx_grid_destroy(d);
    ck_ok(vx_grid_dilate(grid_engine, g, VX_FACES, 1, &d, NULL));
    ck_assert_uint_eq(vx_grid_view(d)->n_voxels, 128 * 128 * 128 + 6 * 128 * 128);
    ck_assert_uint_eq(vx_grid_view(d)->n_chunks, 7);
    vx_grid_destroy(d);
    ck_ok(vx_grid_refine(grid_engine, g, &d, NULL));
    ck_assert_uint_eq(vx_grid_view(d)->n_voxels, 256 * 256 * 256);
    ck_assert_uint_eq(vx_grid_view(d)->n_chunks, 8);
    vx_grid_destroy(d);
    ck_ok(vx_grid_coarsen(grid_engine, g, &d, NULL));
    grid_check_drop(d, vs_coarsen(&s), "coarsened chunk");
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

/* More chunks than are put in order by comparing, far apart; scratch stays small. */
START_TEST(many_chunks)
{
    enum { N = 20000 };
    uint64_t seed = seed_of(0, 7);
    struct voxel_set a = {0}, b = {0};
    const struct voxel_set *both[2] = {&a, &b};
    struct vx_grid *ga, *gb, *r;
    struct vx_engine_stats stats;
    struct vx_grid_info info;
    grid_open(0);
    for (int k = 0; k < N; k++) {
        int32_t at[3];
        for (int i = 0; i < 3; i++)
            at[i] = (int32_t)(test_random(&seed) % (1u << 28)) - VX_GRID_RANGE;
        vs_add(&a, at[0], at[1], at[2]);
        vs_add(&b, at[0] / 3, at[1] / 3, at[2] / 3);
    }
    vs_sort(&a);
    vs_sort(&b);
    ga = grid_of(&a);
    gb = grid_of(&b);
    grid_check(ga, &a, "many chunks");
    ck_ok(vx_grid_merge(grid_engine, (const struct vx_grid *[]){ga, gb}, 2, &r, NULL));
    vx_grid_get_info(r, &info);
    vx_engine_get_stats(grid_engine, &stats);
    ck_assert_uint_le(stats.last_bytes, info.bytes / 4 + (64 << 20));
    grid_check_drop(r, vs_merge(both, 2), "merge of many chunks");
    ck_ok(vx_grid_dilate(grid_engine, ga, VX_BOX, 2, &r, NULL));
    vx_grid_get_info(r, &info);
    vx_engine_get_stats(grid_engine, &stats);
    ck_assert_uint_le(stats.last_bytes, info.bytes / 4 + (64 << 20));
    grid_check_drop(r, vs_dilate(&a, 26, 2), "dilate of many chunks");
    ck_ok(vx_grid_coarsen(grid_engine, ga, &r, NULL));
    grid_check_drop(r, vs_coarsen(&a), "coarsen of many chunks");
    ck_ok(vx_grid_refine(grid_engine, gb, &r, NULL));
    grid_check_drop(r, vs_refine(&b), "refine of many chunks");
    ck_ok(vx_grid_intersect(grid_engine, ga, gb, &r, NULL));
    grid_check_drop(r, vs_intersect(&a, &b), "intersect of many chunks");
    vx_grid_destroy(ga);
    vx_grid_destroy(gb);
    vs_free(&a);
    vs_free(&b);
    grid_close();
}
END_TEST

/* Both layers of a map, against what the walker finds in it. */
START_TEST(from_map)
{
    static const double origin[3] = {0, 0, 0};
    struct vx_map_params params = test_params(0.1, _i ? VX_OCCUPANCY : VX_TSDF);
    uint64_t seed = seed_of(_i, 8);
    struct voxel_set active = {0}, empty = {0};
    struct map_walk *w;
    struct vx_map *map;
    struct vx_grid *g;
    grid_open(0);
    map = test_map(grid_device, &params);
    ck_ok(vx_grid_from_map(grid_engine, map, VX_ACTIVE, &g, NULL));
    grid_check_drop(g, (struct voxel_set){.sorted = true}, "an empty map");
    for (int k = 0; k < 4; k++) {
        struct test_frame t;
        struct vx_frame_result result;
        test_any_frame(&t, &seed, 4, origin, 2);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        test_frame_fini(&t);
    }
    w = map_walk_newest(map);
    ck_assert_str_eq(w->fault, "");
    for (uint32_t l = 0; l < w->n_leaves; l++)
        for (int n = 0; n < 512; n++) {
            const struct walk_leaf *leaf = &w->leaves[l];
            int32_t x = leaf->at[0] + (n >> 6), y = leaf->at[1] + (n >> 3 & 7), z = leaf->at[2] + (n & 7);
            if (leaf->active[n >> 6] >> (n & 63) & 1)
                vs_add(&active, x, y, z);
            if (leaf->free[n >> 6] >> (n & 63) & 1)
                vs_add(&empty, x, y, z);
        }
    for (uint32_t t = 0; t < w->n_tiles; t++)
        vs_add_box(&empty, w->tiles[t],
                   (int32_t[3]){w->tiles[t][0] + 8, w->tiles[t][1] + 8, w->tiles[t][2] + 8}, 1, &seed);
    map_walk_free(w);
    vs_sort(&active);
    vs_sort(&empty);
    ck_assert_uint_gt(active.n, 0);
    ck_assert_uint_gt(empty.n, 0);
    ck_ok(vx_grid_from_map(grid_engine, map, VX_ACTIVE, &g, NULL));
    grid_check_drop(g, active, "active voxels");
    ck_ok(vx_grid_from_map(grid_engine, map, VX_FREE, &g, NULL));
    grid_check_drop(g, empty, "free voxels");
    vx_map_destroy(map);
    vx_engine_destroy(grid_engine);
    vx_device_close(grid_device);
}
END_TEST

START_TEST(download_parts)
{
    uint64_t seed = seed_of(2, 9);
    struct voxel_set s = grid_random_set(2, &seed);
    struct vx_detail detail = {0};
    struct vx_grid *g;
    struct voxel *got = calloc(s.n, sizeof *got);
    grid_open(0);
    g = grid_of(&s);
    for (size_t at = 0; at < s.n; at += 97) {
        size_t n = s.n - at < 97 ? s.n - at : 97;
        ck_ok(vx_grid_download(grid_engine, g, at, n, got[at].at, NULL));
    }
    ck_assert_mem_eq(got, s.v, s.n * sizeof *got);
    ck_assert_int_eq(vx_grid_download(grid_engine, g, s.n - 1, 2, got[0].at, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "first");
    vx_grid_destroy(g);
    free(got);
    vs_free(&s);
    grid_close();
}
END_TEST

#define ck_refused(call, code, name)                                                                         \
    do {                                                                                                     \
        struct vx_detail d_ = {0}, *detail = &d_;                                                            \
        ck_assert_int_eq((call), (code));                                                                    \
        ck_assert_str_eq(d_.field, name);                                                                    \
        ck_assert_int_gt((int)strlen(d_.text), 5);                                                           \
    } while (0)

START_TEST(refusals)
{
    static const int32_t odd[][3] = {
        {VX_GRID_RANGE, 0, 0}, {0, -VX_GRID_RANGE - 1, 0}, {0, 0, INT32_MAX}, {INT32_MIN, 0, 0}};
    struct voxel_set s = {0};
    struct vx_grid *g, *r = NULL, *many[VX_GRID_MAX_MERGE + 1];
    struct vx_voxels v = {.n = 1};
    grid_open(0);
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        int32_t list[20][3] = {{0}};
        memcpy(list[k * 5], odd[k], sizeof odd[k]);
        v = (struct vx_voxels){.ijk = list[0], .n = 20};
        ck_refused(vx_grid_from_voxels(grid_engine, &v, 1, &r, detail), VX_E_INVALID, "ijk");
        ck_assert_ptr_null(r);
    }
    ck_refused(vx_grid_from_voxels(grid_engine, NULL, 1, &r, detail), VX_E_INVALID, "batches");
    v.ijk = NULL;
    ck_refused(vx_grid_from_voxels(grid_engine, &v, 1, &r, detail), VX_E_INVALID, "ijk");
    vs_add(&s, 1, 2, 3);
    vs_sort(&s);
    v = (struct vx_voxels){.ijk = s.v[0].at, .n = (1ull << 33) + 1};
    ck_refused(vx_grid_from_voxels(grid_engine, &v, 1, &r, detail), VX_E_INVALID, "n");
    g = grid_of(&s);
    for (int k = 0; k <= VX_GRID_MAX_MERGE; k++)
        many[k] = g;
    ck_refused(
        vx_grid_merge(grid_engine, (const struct vx_grid *const *)many, VX_GRID_MAX_MERGE + 1, &r, detail),
        VX_E_INVALID, "n");
    ck_refused(vx_grid_merge(grid_engine, (const struct vx_grid *const *)many, 0, &r, detail), VX_E_INVALID,
               "n");
    ck_refused(vx_grid_dilate(grid_engine, g, (enum vx_shape)7, 1, &r, detail), VX_E_INVALID, "shape");
    ck_refused(vx_grid_dilate(grid_engine, g, VX_BOX, 0, &r, detail), VX_E_INVALID, "radius");
    ck_refused(vx_grid_dilate(grid_engine, g, VX_BOX, 9, &r, detail), VX_E_INVALID, "radius");
    ck_refused(vx_grid_erode(grid_engine, g, VX_FACES, 2, &r, detail), VX_E_INVALID, "radius");
    ck_refused(vx_grid_dilate(grid_engine, NULL, VX_BOX, 1, &r, detail), VX_E_INVALID, "grid");
    ck_refused(vx_grid_prune(grid_engine, g, NULL, &r, detail), VX_E_INVALID, "keep");
    ck_refused(vx_grid_prune(grid_engine, g, vx_grid_view(g)->masks + 1, &r, detail), VX_E_INVALID, "keep");
    ck_refused(vx_grid_from_map(grid_engine, NULL, VX_ACTIVE, &r, detail), VX_E_INVALID, "map");
    ck_assert_ptr_null(r);
    grid_check(g, &s, "untouched");
    vx_grid_destroy(g);
    vx_grid_destroy(NULL);
    vs_free(&s);
    grid_close();
}
END_TEST

/* Batches that begin at the same place of the host's memory, the later ones longer or shorter. */
START_TEST(batches_of_one_array)
{
    struct voxel_set s = {0};
    struct vx_detail detail;
    struct vx_grid *g;
    int32_t ijk[3000][3];
    grid_open(0);
    for (int k = 0; k < 3000; k++) {
        ijk[k][0] = k % 300 * 7;
        ijk[k][1] = k / 300;
        ijk[k][2] = -k;
        vs_add(&s, ijk[k][0], ijk[k][1], ijk[k][2]);
    }
    vs_sort(&s);
    const struct vx_voxels v[] = {
        {.ijk = ijk[0], .n = 5}, {.ijk = ijk[0], .n = 3000}, {.ijk = ijk[0], .n = 2}};
    ck_ok(vx_grid_from_voxels(grid_engine, v, 3, &g, &detail));
    grid_check(g, &s, "batches of one array");
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

/* One call of operator `op` on the grids; VX_OK gives *out. */
static vx_err one_call(int op, const struct vx_grid *a, const struct vx_grid *b, const struct vx_voxels *v,
                       struct vx_grid **out, struct vx_detail *detail)
{
    switch (op) {
    case 0:
        return vx_grid_dilate(grid_engine, a, VX_BOX, 1, out, detail);
    case 1:
        return vx_grid_merge(grid_engine, (const struct vx_grid *[]){a, b}, 2, out, detail);
    case 2:
        return vx_grid_refine(grid_engine, a, out, detail);
    case 3:
        return vx_grid_erode(grid_engine, b, VX_BOX, 1, out, detail);
    default:
        return vx_grid_from_voxels(grid_engine, v, 1, out, detail);
    }
}

/* A cap that is reached at any point of a call: a refusal in words, and nothing kept. */
START_TEST(no_memory)
{
    uint64_t seed = seed_of(8, 10), step = 5000, room, refused = 0;
    struct voxel_set sa = grid_random_set(8, &seed), sb = grid_random_set(7, &seed);
    struct vx_voxels v = {.ijk = sa.v[0].at, .n = sa.n};
    struct vx_grid *a, *b, *r;
    bool done = false;
    grid_open(32 << 20);
    a = grid_of(&sa);
    b = grid_of(&sb);
    for (room = 0; !done; room += step) {
        struct vx_device_stats before, after;
        struct vx_detail detail = {0};
        void *ballast;
        vx_err err;
        vx_device_get_stats(grid_device, &before);
        ck_ok(vx_engine_alloc(grid_engine, before.cap_bytes - before.reserved_bytes - room - 1, &ballast,
                              NULL));
        vx_device_get_stats(grid_device, &before);
        err = one_call(_i, a, b, &v, &r, &detail);
        if (err == VX_OK) {
            vx_grid_destroy(r);
            done = true;
        } else {
            ck_assert_int_eq(err, VX_E_EXHAUSTED);
            ck_assert_str_eq(detail.field, "memory_cap_bytes");
            ck_assert_ptr_null(r);
            refused++;
        }
        vx_device_get_stats(grid_device, &after);
        ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
        ck_assert_uint_eq(after.scratch_bytes, before.scratch_bytes);
        vx_engine_free(grid_engine, ballast);
    }
    ck_assert_uint_gt(refused, 3);
    grid_check(a, &sa, "untouched");
    vx_grid_destroy(a);
    vx_grid_destroy(b);
    vs_free(&sa);
    vs_free(&sb);
    grid_close();
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("grid");
    ck_add(s, from_voxels, GRID_KINDS);
    ck_add(s, dilate_erode, GRID_KINDS);
    ck_add(s, sets, GRID_KINDS);
    ck_add(s, prune, GRID_KINDS);
    ck_add(s, levels, GRID_KINDS);
    ck_add(s, full_chunk, 1);
    ck_add(s, many_chunks, 1);
    ck_add(s, from_map, 2);
    ck_add(s, download_parts, 1);
    ck_add(s, batches_of_one_array, 1);
    ck_add(s, refusals, 1);
    ck_add(s, no_memory, 5);
    return core_test_main(argc, argv, s);
}
