/* One writer, two readers: what a reader pinned stays as it was, and every epoch is seen whole or not at all.
 */
#include "core_test.h"

#include "body/digest.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { N_FRAMES = 30, CLEAR_AFTER = 18, N_READERS = 2 };

static const double ORIGIN[3];

struct shared {
    struct vx_map *map;
    int done; /* atomic */
};

struct reader {
    struct shared *shared;
    pthread_t thread;
    uint64_t seen;         /* digests taken */
    uint8_t (*digest)[32]; /* by epoch */
    bool *known;
    char fault[160];
};

/* SHA-256 over the words' digests of what a snapshot sees. */
static vx_err pinned_digest(struct vx_map *map, const struct vx__snapshot *s, struct vxk_queue *q,
                            uint32_t out[8])
{
    const struct vxk_ops *ops = q->dev->ops;
    struct vxk_digest_word_args args = {.g = s->grid};
    uint32_t *versions = NULL, *words = NULL, *host = NULL, n = 0;
    struct vxk_sha256 sum;
    vx_err err;
    VX_TRY(vx__snapshot_chunks(map, s, q, &versions, &n));
    VX_TRY(vx__scratch_alloc(map, n * 2048ull, (void **)&words, NULL));
    host = malloc(n * 2048ull + 1);
    args.version = versions;
    args.out = words;
    VX_TRY(VXK_LAUNCH(q, digest_word, &args, n * 64));
    VX_TRY(ops->download(q, host, words, n * 2048ull));
    VX_TRY(ops->wait(q));
    vxk_sha256_init(&sum);
    for (uint64_t i = 0; i < n * 512ull; i++)
        vxk_sha256_u32(&sum, host[i]);
    vxk_sha256_end(&sum, out);
fail:
    vx__scratch_free(map, versions);
    vx__scratch_free(map, words);
    free(host);
    return err;
}

static uint64_t newest(struct vx_map *map)
{
    struct vx_map_info info;
    vx_map_get_info(map, &info);
    return info.epoch;
}

static bool look(struct reader *r, struct vxk_queue *q, uint64_t *last)
{
    struct vx_map *map = r->shared->map;
    struct vx__snapshot s;
    struct vx_map_info info;
    uint32_t first[8], again[8];
    uint8_t digest[32];
    uint64_t epoch;
    bool pinned = false, ok = false;
    if (vx_map_digest(map, digest, &epoch) || epoch < *last || epoch > N_FRAMES + 1) {
        snprintf(r->fault, sizeof r->fault, "digest of epoch %llu after %llu", (unsigned long long)epoch,
                 (unsigned long long)*last);
        return false;
    }
    *last = epoch;
    if (r->known[epoch] && memcmp(r->digest[epoch], digest, 32)) {
        snprintf(r->fault, sizeof r->fault, "epoch %llu has two digests", (unsigned long long)epoch);
        return false;
    }
    memcpy(r->digest[epoch], digest, 32);
    r->known[epoch] = true;
    r->seen++;
    if (vx__snapshot_pin(map, &s))
        return false;
    pinned = true;
    if (pinned_digest(map, &s, q, first)) {
        snprintf(r->fault, sizeof r->fault, "no digest of a pinned epoch");
        goto out;
    }
    /* until the writer has gone on */
    while (newest(map) < s.epoch + 2 && !__atomic_load_n(&r->shared->done, __ATOMIC_ACQUIRE))
        sched_yield();
    if (pinned_digest(map, &s, q, again) || memcmp(first, again, sizeof first)) {
        snprintf(r->fault, sizeof r->fault, "pinned epoch %llu changed", (unsigned long long)s.epoch);
        goto out;
    }
    vx_map_get_info(map, &info);
    if (info.epoch < s.epoch || (info.n_chunks > 0) != info.has_bounds ||
        (!info.n_voxels && info.n_chunks && !info.n_tiles && !info.n_leaves)) {
        snprintf(r->fault, sizeof r->fault, "facts of epoch %llu don't belong together",
                 (unsigned long long)info.epoch);
        goto out;
    }
    ok = true;
out:
    if (pinned)
        vx__snapshot_release(map, &s);
    return ok;
}

static void *read_on(void *context)
{
    struct reader *r = context;
    struct vxk_dev *dev = vx__map_dev(r->shared->map);
    struct vxk_queue *q;
    uint64_t last = 0;
    bool done;
    if (dev->ops->queue_create(dev, 1, &q)) {
        snprintf(r->fault, sizeof r->fault, "no queue");
        return NULL;
    }
    do
        done = __atomic_load_n(&r->shared->done, __ATOMIC_ACQUIRE);
    while (look(r, q, &last) && !done);
    dev->ops->queue_destroy(q);
    return NULL;
}

static void write_frames(struct vx_map *map, uint64_t seed, uint8_t (*digest)[32])
{
    for (int i = 0; i < N_FRAMES; i++) {
        struct vx_frame_result result;
        struct test_frame t;
        if (i == CLEAR_AFTER)
            ck_ok(vx_map_clear(map));
        if (digest && i == CLEAR_AFTER)
            ck_ok(vx_map_digest(map, digest[map->epoch], NULL));
        test_any_frame(&t, &seed, 2.5, ORIGIN, 1);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        test_frame_fini(&t);
        if (digest)
            ck_ok(vx_map_digest(map, digest[map->epoch], NULL));
    }
}

START_TEST(one_writer_two_readers)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(0.05, (enum vx_mode)_i);
    struct shared shared = {.map = test_map(d, &p)};
    struct vx_map *twin = test_map(d, &p);
    struct reader r[N_READERS] = {{0}};
    uint8_t truth[N_FRAMES + 2][32];
    uint64_t seed = test_seed + 5;
    ck_ok(vx_map_digest(twin, truth[0], NULL));
    write_frames(twin, seed, truth);
    for (int i = 0; i < N_READERS; i++) {
        r[i].shared = &shared;
        r[i].digest = calloc(N_FRAMES + 2, 32);
        r[i].known = calloc(N_FRAMES + 2, sizeof(bool));
        ck_assert_int_eq(pthread_create(&r[i].thread, NULL, read_on, &r[i]), 0);
    }
    write_frames(shared.map, seed, NULL);
    __atomic_store_n(&shared.done, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < N_READERS; i++) {
        pthread_join(r[i].thread, NULL);
        ck_assert_msg(!r[i].fault[0], "reader %d: %s", i, r[i].fault);
        ck_assert_uint_gt(r[i].seen, 1);
        for (int k = 0; k < N_FRAMES + 2; k++)
            ck_assert_msg(!r[i].known[k] || !memcmp(r[i].digest[k], truth[k], 32),
                          "reader %d saw another epoch %d than a lone writer makes", i, k);
        free(r[i].digest);
        free(r[i].known);
    }
    ck_ok(vx__retired_drain(shared.map, NULL));
    ck_assert_ptr_null(shared.map->retired);
    ck_device(d, (struct vx_map *[]){shared.map, twin}, 2, "after the readers");
    vx_map_destroy(shared.map);
    vx_map_destroy(twin);
    vx_device_close(d);
}
END_TEST

/* Two maps of one device, each with its own writer: they share the pool and nothing else. */
struct writer {
    struct vx_map *map;
    pthread_t thread;
    uint64_t seed;
    vx_err err;
};

static void *write_on(void *context)
{
    struct writer *w = context;
    for (int i = 0; i < N_FRAMES && !w->err; i++) {
        struct vx_frame_result result;
        struct test_frame t;
        test_any_frame(&t, &w->seed, 2, ORIGIN, 1);
        w->err = vx_map_integrate(w->map, &t.f, &result, NULL);
        test_frame_fini(&t);
        if (i % 8 == 7 && !w->err && i < 20)
            w->err = vx_map_clear(w->map);
    }
    return NULL;
}

START_TEST(two_writers_two_maps)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct writer w[4];
    uint8_t digest[4][32];
    struct vx_map *maps[4];
    for (int i = 0; i < 4; i++) {
        maps[i] = test_map(d, &p);
        w[i] = (struct writer){.map = maps[i], .seed = test_seed + 100 + (uint64_t)(i & 1)};
    }
    write_on(&w[2]);
    write_on(&w[3]);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, write_on, &w[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < 4; i++) {
        ck_ok(w[i].err);
        ck_ok(vx_map_digest(maps[i], digest[i], NULL));
    }
    ck_assert_mem_eq(digest[0], digest[2], 32);
    ck_assert_mem_eq(digest[1], digest[3], 32);
    ck_device(d, maps, 4, "after the writers");
    for (int i = 0; i < 4; i++)
        vx_map_destroy(maps[i]);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("store_threads");
    ck_add(s, one_writer_two_readers, 2);
    ck_add(s, two_writers_two_maps, 1);
    return core_test_main(argc, argv, s);
}
