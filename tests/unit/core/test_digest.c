/* The digest: SHA-256 itself, and what it does and does not depend on. */
#include "core_test.h"

#include "body/sha256.h"

#include <stdlib.h>
#include <string.h>

static const double ORIGIN[3];

static void hex(const uint32_t words[8], char out[65])
{
    for (int i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", words[i]);
}

static void sha(const char *text, uint64_t times, char out[65])
{
    struct vxk_sha256 s;
    uint32_t words[8];
    vxk_sha256_init(&s);
    for (uint64_t n = 0; n < times; n++)
        for (const char *c = text; *c; c++)
            vxk_sha256_byte(&s, (uint8_t)*c);
    vxk_sha256_end(&s, words);
    hex(words, out);
}

/* Vectors of FIPS 180-4 (as published by NIST). */
START_TEST(vectors)
{
    static const struct {
        const char *text;
        uint64_t times;
        const char *digest;
    } v[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
         "pqrs"
         "tnopqrstu",
         1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        char out[65];
        sha(v[i].text, v[i].times, out);
        ck_assert_str_eq(out, v[i].digest);
    }
}
END_TEST

/* Numbers are little endian, at any multiple of four bytes. */
START_TEST(numbers_are_little_endian)
{
    for (int before = 0; before < 80; before += 4) {
        struct vxk_sha256 a, b;
        uint32_t x[8], y[8];
        vxk_sha256_init(&a);
        vxk_sha256_init(&b);
        for (int i = 0; i < before; i++) {
            vxk_sha256_byte(&a, (uint32_t)i);
            vxk_sha256_byte(&b, (uint32_t)i);
        }
        vxk_sha256_u32(&a, 0x04030201);
        vxk_sha256_u64(&a, 0x0c0b0a0908070605ull);
        for (uint32_t i = 1; i <= 12; i++)
            vxk_sha256_byte(&b, i);
        vxk_sha256_end(&a, x);
        vxk_sha256_end(&b, y);
        ck_assert_mem_eq(x, y, sizeof x);
    }
}
END_TEST

static struct vx_map *build(struct vx_device *d, enum vx_mode mode, int n_frames, uint8_t digest[32])
{
    struct vx_map_params p = test_params(0.05, mode);
    struct vx_map *map = test_map(d, &p);
    uint64_t seed = test_seed + 77 + mode;
    for (int i = 0; i < n_frames; i++) {
        struct test_frame t;
        struct vx_frame_result result;
        test_any_frame(&t, &seed, 3, ORIGIN, 1);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        test_frame_fini(&t);
    }
    ck_ok(vx_map_digest(map, digest, NULL));
    return map;
}

START_TEST(threads_and_backends_agree)
{
    static const struct {
        enum vxk_backend backend;
        int threads;
    } runs[] = {{VXK_CPU, 1}, {VXK_CPU, 2}, {VXK_CPU, 5}, {VXK_GUARD, 2}, {VXK_CUDA, 0}};
    uint8_t first[32];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        uint8_t now[32];
        struct vx_device *d;
        if (runs[i].backend == VXK_CUDA && !vxk_cuda_available())
            continue;
        test_backend = runs[i].backend;
        test_threads = runs[i].threads;
        d = test_device(128 << 20);
        vx_map_destroy(build(d, (enum vx_mode)_i, 6, i ? now : first));
        if (i)
            ck_assert_msg(!memcmp(now, first, 32), "mode %d, backend %d, %d threads: another map", _i,
                          (int)runs[i].backend, runs[i].threads);
        vx_device_close(d);
    }
    test_backend = VXK_CPU;
    test_threads = 2;
}
END_TEST

START_TEST(places_do_not_matter)
{
    struct vx_device *fresh = test_device(128 << 20), *used = test_device(256 << 20);
    struct vx_map *a, *b, *others[3];
    struct map_walk *wa, *wb;
    uint8_t da[32], db[32], d0[32], d1[32];
    /* maps that come and go leave the stacks of free pages in disorder */
    for (int i = 0; i < 3; i++)
        others[i] = build(used, VX_TSDF, 3 + i, db);
    vx_map_destroy(others[1]);
    others[1] = build(used, VX_OCCUPANCY, 2, db);
    ck_ok(vx_map_clear(others[0]));
    vx_map_destroy(others[2]);
    a = build(fresh, VX_TSDF, 5, da);
    ck_ok(vx_map_digest(others[1], d0, NULL));
    b = build(used, VX_TSDF, 5, db);
    ck_ok(vx_map_digest(others[1], d1, NULL));
    ck_assert_mem_eq(da, db, 32);
    ck_assert_mem_eq(d0, d1, 32);
    wa = map_walk_newest(a);
    wb = map_walk_newest(b);
    ck_assert_uint_eq(wa->n_ids[VX__VALUE_PAGES], wb->n_ids[VX__VALUE_PAGES]);
    ck_assert_msg(
        memcmp(wa->ids[VX__VALUE_PAGES], wb->ids[VX__VALUE_PAGES], wa->n_ids[VX__VALUE_PAGES] * 4ull) != 0,
        "the pages lie alike: this test shows nothing");
    map_walk_free(wa);
    map_walk_free(wb);
    vx_map_destroy(a);
    vx_map_destroy(b);
    vx_map_destroy(others[0]);
    vx_map_destroy(others[1]);
    vx_device_close(fresh);
    vx_device_close(used);
}
END_TEST

/* Changes bytes of device memory, takes the digest, and puts them back. */
static bool digest_sees(struct vx_map *map, const void *dev, uint64_t bytes, uint64_t at, uint8_t mask)
{
    const struct vxk_ops *ops = map->device->dev->ops;
    uint8_t *host = malloc(bytes), before[32], after[32], again[32];
    ck_assert_ptr_nonnull(host);
    ck_ok(vx_map_digest(map, before, NULL));
    ck_ok(ops->download(map->queue, host, dev, bytes));
    ck_ok(ops->wait(map->queue));
    host[at] ^= mask;
    ck_ok(ops->upload(map->queue, (void *)(uintptr_t)dev, host, bytes));
    ck_ok(ops->wait(map->queue));
    ck_ok(vx_map_digest(map, after, NULL));
    host[at] ^= mask;
    ck_ok(ops->upload(map->queue, (void *)(uintptr_t)dev, host, bytes));
    ck_ok(ops->wait(map->queue));
    ck_ok(vx_map_digest(map, again, NULL));
    ck_assert_mem_eq(again, before, 32);
    free(host);
    return memcmp(before, after, 32) != 0;
}

START_TEST(content_matters_and_nothing_else)
{
    struct vx_device *d = test_device(128 << 20);
    uint8_t digest[32];
    struct vx_map *map = build(d, VX_TSDF, 4, digest);
    struct map_walk *w = map_walk_newest(map);
    struct vxk_grid g = vx__map_grid(map);
    const struct vxk_chunk *chunk = g.chunks + w->ids[VX__CHUNKS][0];
    const struct vxk_leaf *leaf = g.leaves + (uint64_t)w->ids[VX__LEAF_PAGES][0] * VXK_LEAVES_A_PAGE;
    const uint32_t *value = g.values + (uint64_t)w->ids[VX__VALUE_PAGES][0] * VXK_VALUES_A_PAGE;
    for (uint8_t bit = 1; bit; bit = (uint8_t)(bit << 1)) {
        ck_assert(digest_sees(map, value, 4, 0, bit)); /* distance */
        ck_assert(digest_sees(map, value, 4, 2, bit)); /* weight */
        ck_assert(digest_sees(map, leaf, sizeof *leaf, offsetof(struct vxk_leaf, free) + 5, bit));
    }
    for (uint32_t k = 0; k < 64; k++) {
        struct vxk_chunk *host = malloc(sizeof *host);
        uint64_t spare;
        ck_assert_ptr_nonnull(host);
        ck_ok(d->dev->ops->download(map->queue, host, chunk, sizeof *host));
        ck_ok(d->dev->ops->wait(map->queue));
        spare = ~(host->word[k].leaf | host->word[k].tile);
        free(host);
        if (spare & 255)
            ck_assert(digest_sees(map, chunk, sizeof *chunk,
                                  offsetof(struct vxk_chunk, word) + k * sizeof(struct vxk_word) + 8,
                                  (uint8_t)(spare & -spare)));
        ck_assert(!digest_sees(map, chunk, sizeof *chunk,
                               offsetof(struct vxk_chunk, word) + k * sizeof(struct vxk_word) +
                                   offsetof(struct vxk_word, changed_epoch),
                               1));
    }
    ck_assert(!digest_sees(map, chunk, sizeof *chunk, offsetof(struct vxk_chunk, prev), 1));
    ck_assert(!digest_sees(map, chunk, sizeof *chunk, offsetof(struct vxk_chunk, reserved), 1));
    map_walk_free(w);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* An empty map's digest is that of nothing; frames that show nothing don't change it. */
START_TEST(empty)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    const uint8_t nothing[4] = {0xe3, 0xb0, 0xc4, 0x42};
    float dark[12] = {0};
    struct vx_frame f = {.sensor = VX_DEPTH,
                         .n_poses = 1,
                         .pose = {{.rotation_xyzw = {0, 0, 0, 1}}},
                         .width = 4,
                         .height = 3,
                         .fx = 4,
                         .fy = 4,
                         .cx = 2,
                         .cy = 1,
                         .data = dark,
                         .data_bytes = sizeof dark,
                         .no_return_value = -1};
    struct vx_frame_result result;
    uint8_t digest[32];
    uint64_t epoch = 7;
    ck_ok(vx_map_digest(map, digest, &epoch));
    ck_assert_mem_eq(digest, nothing, 4);
    ck_assert_uint_eq(epoch, 0);
    ck_ok(vx_map_integrate(map, &f, &result, NULL));
    ck_assert_uint_eq(result.counts.zero, 12);
    ck_assert_uint_eq(result.warnings, VX_WARN_EMPTY);
    ck_assert_uint_eq(result.grown_bytes, 0);
    ck_ok(vx_map_digest(map, digest, &epoch));
    ck_assert_mem_eq(digest, nothing, 4);
    ck_assert_uint_eq(epoch, 1);
    ck_map(map, "empty");
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("digest");
    ck_add(s, vectors, 1);
    ck_add(s, numbers_are_little_endian, 1);
    ck_add(s, empty, 1);
    ck_add(s, threads_and_backends_agree, 2);
    ck_add(s, places_do_not_matter, 1);
    ck_add(s, content_matters_and_nothing_else, 1);
    return core_test_main(argc, argv, s);
}
