#include "grid_check.h"

#include "pool.h"

#include <stdlib.h>
#include <string.h>

struct vx_device *grid_device;
struct vx_engine *grid_engine;

void grid_open(uint64_t cap_bytes)
{
    struct vx_detail detail = {0};
    grid_device = test_device(cap_bytes);
    ck_ok(vx_engine_create(grid_device, &grid_engine, &detail));
}

void grid_close(void)
{
    struct vx_device_stats stats;
    vx_engine_destroy(grid_engine);
    vx_device_get_stats(grid_device, &stats);
    ck_assert_uint_eq(stats.scratch_bytes, 0);
    ck_assert_uint_eq(stats.used_bytes, 0);
    vx_device_close(grid_device);
}

static int32_t between(uint64_t *seed, int32_t from, int32_t to)
{
    return from + (int32_t)(test_random(seed) % (uint64_t)(to - from));
}

static void add_random_box(struct voxel_set *s, const int32_t centre[3], int32_t spread, int32_t most,
                           uint64_t *seed)
{
    int32_t lo[3], hi[3];
    for (int k = 0; k < 3; k++) {
        int64_t at = (int64_t)centre[k] + between(seed, -spread, spread + 1);
        int64_t end = at + between(seed, 1, most + 1);
        at = at < -VX_GRID_RANGE ? -VX_GRID_RANGE : at > VX_GRID_RANGE - 1 ? VX_GRID_RANGE - 1 : at;
        lo[k] = (int32_t)at;
        hi[k] = (int32_t)(end > VX_GRID_RANGE ? VX_GRID_RANGE : end <= at ? at + 1 : end);
    }
    vs_add_box(s, lo, hi, test_random(seed) % 2 ? 1 : test_uniform(seed, 0.02, 0.9), seed);
}

struct voxel_set grid_random_set(int kind, uint64_t *seed)
{
    struct voxel_set s = {0};
    int32_t centre[3] = {0, 0, 0};
    const int32_t end = VX_GRID_RANGE - 1;
    switch (kind) {
    case 0:
        break;
    case 1:
        vs_add(&s, between(seed, -300, 300), between(seed, -300, 300), between(seed, -300, 300));
        break;
    case 2: /* boxes round the origin: all eight chunks */
        for (int k = 0; k < 12; k++)
            add_random_box(&s, centre, 40, 14, seed);
        break;
    case 3: /* scattered */
        for (int k = 0; k < 1500; k++)
            vs_add(&s, between(seed, -300, 300), between(seed, -300, 300), between(seed, -300, 300));
        break;
    case 4: /* corners and edges of a chunk and of a leaf */
        for (int k = 0; k < 200; k++) {
            static const int32_t edge[8] = {-1, 0, 7, 8, 127, 128, 31, 32};
            vs_add(&s, edge[test_random(seed) % 8], edge[test_random(seed) % 8], edge[test_random(seed) % 8]);
        }
        break;
    case 5: /* the range's ends */
        for (int k = 0; k < 8; k++) {
            for (int i = 0; i < 3; i++)
                centre[i] = test_random(seed) % 2 ? end : -end - 1;
            add_random_box(&s, centre, 12, 9, seed);
            vs_add(&s, centre[0], centre[1], centre[2]);
        }
        break;
    case 6: /* clusters far apart */
        for (int k = 0; k < 30; k++) {
            for (int i = 0; i < 3; i++)
                centre[i] = between(seed, -60000000, 60000000);
            add_random_box(&s, centre, 4, 10, seed);
        }
        break;
    case 7: { /* whole leaves and a whole block of 32^3 */
        static const int32_t lo[3] = {96, -32, 64}, hi[3] = {136, 8, 96};
        vs_add_box(&s, lo, hi, 1, seed);
        break;
    }
    default: /* planes of two voxels, as surfaces are */
        for (int32_t x = -70; x < 70; x++)
            for (int32_t y = -70; y < 70; y++)
                for (int32_t k = 0; k < 2; k++)
                    vs_add(&s, x, y, (x + 2 * y) / 5 + k + between(seed, 0, 2));
    }
    vs_sort(&s);
    return s;
}

void *grid_upload(const void *host, uint64_t bytes)
{
    struct vxk_queue *q = vx_engine_queue(grid_engine);
    void *dev;
    ck_ok(vx_engine_alloc(grid_engine, bytes ? bytes : 1, &dev, NULL));
    if (bytes)
        ck_ok(q->dev->ops->upload(q, dev, host, bytes));
    ck_ok(q->dev->ops->wait(q));
    return dev;
}

void grid_fetch(void *host, const void *device, uint64_t bytes)
{
    struct vxk_queue *q = vx_engine_queue(grid_engine);
    ck_ok(q->dev->ops->download(q, host, device, bytes));
    ck_ok(q->dev->ops->wait(q));
}

struct vx_grid *grid_of(const struct voxel_set *set)
{
    struct vx_voxels v = {.ijk = set->n ? set->v[0].at : NULL, .n = set->n};
    struct vx_detail detail = {0};
    struct vx_grid *g;
    vx_err err = vx_grid_from_voxels(grid_engine, &v, 1, &g, &detail);
    ck_assert_msg(err == VX_OK, "from voxels: %s %s", vx_err_name(err), detail.text);
    return g;
}

static void *fetch_array(const void *device, uint64_t bytes)
{
    void *host = malloc(bytes ? bytes : 1);
    ck_assert_ptr_nonnull(host);
    if (bytes)
        grid_fetch(host, device, bytes);
    return host;
}

#define ck_that(condition, ...)                                                                              \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                                       \
        }                                                                                                    \
    } while (0)

/* A grid on the host. */
struct arrays {
    uint64_t *keys, *chunk_voxel, *masks, *prefix;
    struct vxk_index_word *words;
    struct vxk_index_slot *slots;
    uint32_t *first, *place;
};

static struct arrays fetch_all(const struct vxk_index_grid *g)
{
    struct arrays a;
    a.keys = fetch_array(g->keys, g->n_chunks * 8ull);
    a.chunk_voxel = fetch_array(g->chunk_voxel, (g->n_chunks + 1ull) * 8);
    a.words = fetch_array(g->words, g->n_chunks * 64 * sizeof *a.words);
    a.slots = fetch_array(g->slots, (g->slot_mask + 1ull) * sizeof *a.slots);
    a.masks = fetch_array(g->masks, g->n_leaves * 64ull);
    a.prefix = fetch_array(g->prefix, g->n_leaves * 8ull);
    a.first = fetch_array(g->first, g->n_leaves * 4ull);
    a.place = fetch_array(g->place, g->n_leaves * 4ull);
    return a;
}

static void free_all(struct arrays *a)
{
    free(a->keys);
    free(a->chunk_voxel);
    free(a->words);
    free(a->slots);
    free(a->masks);
    free(a->prefix);
    free(a->first);
    free(a->place);
}

static void check_leaf(const struct arrays *a, uint32_t l, uint32_t place, uint32_t before, uint32_t *n,
                       const char *what)
{
    uint64_t prefix = 0;
    *n = 0;
    ck_that(a->place[l] == place, "%s: leaf %u has place %x, not %x", what, l, a->place[l], place);
    ck_that(a->first[l] == before, "%s: leaf %u begins at %u, not %u", what, l, a->first[l], before);
    for (int x = 0; x < 8; x++) {
        if (x)
            prefix |= (uint64_t)*n << (9 * (x - 1));
        *n += (uint32_t)__builtin_popcountll(a->masks[(uint64_t)l * 8 + (uint64_t)x]);
    }
    ck_that(*n > 0, "%s: leaf %u is empty", what, l);
    ck_that(a->prefix[l] == prefix, "%s: leaf %u has a wrong prefix", what, l);
}

static void check_structure(const struct vxk_index_grid *g, const struct arrays *a, const char *what)
{
    uint32_t leaf = 0, used = 0;
    uint64_t voxel = 0;
    for (uint32_t c = 0; c < g->n_chunks; c++) {
        uint32_t before = 0, slot = 0;
        ck_that(a->keys[c] >> 63 && (!c || a->keys[c] > a->keys[c - 1]), "%s: key %u is out of order", what,
                c);
        while (slot <= g->slot_mask && a->slots[slot].key != a->keys[c])
            slot++;
        ck_that(slot <= g->slot_mask && a->slots[slot].chunk == c, "%s: chunk %u is not in the table", what,
                c);
        ck_that(vxk_index_slot_of(a->slots, g->slot_mask, a->keys[c]) == slot, "%s: chunk %u is not found",
                what, c);
        ck_that(a->chunk_voxel[c] == voxel, "%s: chunk %u begins at the wrong voxel", what, c);
        for (uint32_t w = 0; w < 64; w++) {
            const struct vxk_index_word *word = &a->words[(uint64_t)c * 64 + w];
            ck_that(word->first == leaf, "%s: word %u of chunk %u begins at leaf %u, not %u", what, w, c,
                    word->first, leaf);
            ck_that(word->before == before, "%s: word %u of chunk %u begins at %u, not %u", what, w, c,
                    word->before, before);
            for (uint32_t bit = 0; bit < 64; bit++) {
                uint32_t n;
                if (!(word->mask >> bit & 1))
                    continue;
                ck_that(leaf < g->n_leaves, "%s: more leaves than %u", what, g->n_leaves);
                check_leaf(a, leaf++, c << 12 | w << 6 | bit, before, &n, what);
                before += n;
            }
        }
        ck_that(before > 0, "%s: chunk %u is empty", what, c);
        voxel += before;
    }
    for (uint32_t slot = 0; slot <= g->slot_mask; slot++)
        used += a->slots[slot].key != 0;
    ck_that(used == g->n_chunks, "%s: %u of %u chunks in the table", what, used, g->n_chunks);
    ck_that(leaf == g->n_leaves && voxel == g->n_voxels, "%s: %u leaves, %llu voxels found", what, leaf,
            (unsigned long long)voxel);
    ck_that(a->chunk_voxel[g->n_chunks] == voxel, "%s: the last sum is wrong", what);
}

void grid_check(const struct vx_grid *grid, const struct voxel_set *want, const char *what)
{
    const struct vxk_index_grid *g = vx_grid_view(grid);
    struct vx_grid_info info;
    struct voxel *got;
    struct arrays a;
    vx_grid_get_info(grid, &info);
    ck_that(info.n_voxels == want->n, "%s: %llu voxels, not %zu", what, (unsigned long long)info.n_voxels,
            want->n);
    ck_that(info.n_leaves == g->n_leaves && info.n_chunks == g->n_chunks, "%s: info", what);
    a = fetch_all(g);
    check_structure(g, &a, what);
    free_all(&a);
    got = malloc(want->n * sizeof *got + 1);
    ck_assert_ptr_nonnull(got);
    ck_ok(vx_grid_download(grid_engine, grid, 0, want->n, got[0].at, NULL));
    for (size_t i = 0; i < want->n; i++)
        ck_that(!memcmp(&got[i], &want->v[i], sizeof *got), "%s: voxel %zu is (%d, %d, %d), not (%d, %d, %d)",
                what, i, got[i].at[0], got[i].at[1], got[i].at[2], want->v[i].at[0], want->v[i].at[1],
                want->v[i].at[2]);
    free(got);
}

void grid_check_drop(struct vx_grid *grid, struct voxel_set want, const char *what)
{
    grid_check(grid, &want, what);
    vx_grid_destroy(grid);
    vs_free(&want);
}
