/*
 * oracle_decay.c - decay against a brute force that fades every voxel of a box, tick by tick, in integers.
 *
 * What a frame says about a voxel is taken from a fresh map that integrates the frame alone; the rules of
 * decay and of merging are written down here once more.  A word of 32^3 voxels says up to which tick it has
 * faded. The test checks that it is one of two: as before, or now; that it is now where it must be (the frame
 * changed something there, or the sweep was there); and that every voxel of it is what the brute force says.
 */
#include "core_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 64, N = 2 * HALF, WORDS = N / 32 };
#define VOXEL_M 0.1

struct voxel {
    uint8_t state; /* VXK_* */
    uint32_t value;
};

struct world {
    struct voxel *now, *then, *frame; /* [N][N][N]: the map, the map before the frame, the frame alone */
    struct walk_word word[WORDS * WORDS * WORDS], old_word[WORDS * WORDS * WORDS];
    uint32_t tick, before;
    bool tsdf, spare;
    int n_regions;
    struct vx_region region[2];
    uint64_t n_dead, n_unfreed, n_faded, n_kept, n_swept;
};

static size_t at_voxel(const int32_t v[3])
{
    return ((size_t)(v[0] + HALF) * N + (size_t)(v[1] + HALF)) * N + (size_t)(v[2] + HALF);
}

static size_t at_word(const int32_t v[3])
{
    size_t i = 0;
    for (int k = 0; k < 3; k++)
        i = i * WORDS + (size_t)((v[k] + HALF) / 32);
    return i;
}

static void put(struct voxel *to, const int32_t cell[3], int n, uint8_t state, uint32_t value)
{
    int32_t v[3] = {cell[0] + (n >> 6), cell[1] + (n >> 3 & 7), cell[2] + (n & 7)};
    for (int k = 0; k < 3; k++)
        ck_assert_msg(v[k] >= -HALF && v[k] < HALF, "the box is too small");
    to[at_voxel(v)] = (struct voxel){state, value};
}

static void rasterise(struct vx_map *map, struct voxel *to, struct walk_word *words)
{
    struct map_walk *w = map_walk_newest(map);
    ck_assert_msg(!w->fault[0], "%s", w->fault);
    memset(to, 0, sizeof *to * N * N * N);
    for (uint32_t i = 0; i < w->n_leaves; i++)
        for (int n = 0; n < 512; n++) {
            if (w->leaves[i].active[n >> 6] >> (n & 63) & 1)
                put(to, w->leaves[i].at, n, VXK_ACTIVE, w->leaves[i].value[n]);
            else if (w->leaves[i].free[n >> 6] >> (n & 63) & 1)
                put(to, w->leaves[i].at, n, VXK_FREE, 0);
        }
    for (uint32_t i = 0; i < w->n_tiles; i++)
        for (int n = 0; n < 512; n++)
            put(to, w->tiles[i], n, VXK_FREE, 0);
    if (words) {
        memset(words, 0, sizeof *words * WORDS * WORDS * WORDS);
        for (uint32_t i = 0; i < w->n_words; i++)
            words[at_word(w->words[i].at)] = w->words[i];
    }
    map_walk_free(w);
}

/* One tick: 2^(-1/16) of it is left, rounded by a threshold that goes through the sixteenths. */
static struct voxel fade_once(const struct world *w, struct voxel x, uint32_t n, uint32_t tick)
{
    if (x.state != VXK_ACTIVE)
        return x;
    if (w->tsdf) {
        uint32_t weight = x.value >> 16 & 255, front = (uint32_t)floor((x.value >> 24) * (62757 / 65536.0));
        weight = (uint32_t)floor(weight * (62757 / 65536.0) + (tick + 5 * n) % 16 / 16.0);
        x.value = (x.value & 0xffff) | weight << 16 | front << 24;
        if (!weight)
            x = (struct voxel){VXK_UNKNOWN, 0};
    } else {
        int l = (int16_t)(x.value & 0xffff);
        l = (int)trunc(l * (62757 / 65536.0));
        x.value = (uint16_t)(int16_t)l;
        if (abs(l) < 64)
            x = (struct voxel){VXK_UNKNOWN, 0};
    }
    return x;
}

static bool protected_voxel(const struct world *w, const int32_t v[3])
{
    for (int i = 0; i < w->n_regions; i++) {
        const struct vx_region *r = &w->region[i];
        bool in = true;
        double d2 = 0;
        for (int k = 0; k < 3; k++) {
            double c = (v[k] + 0.5) * VOXEL_M;
            in = in && c >= r->min_m[k] && c <= r->max_m[k];
            d2 += (c - r->centre_m[k]) * (c - r->centre_m[k]);
        }
        if (r->ball ? d2 <= r->radius_m * r->radius_m : in)
            return true;
    }
    return false;
}

/* Does a region's box meet the word?  Its free space is kept as a whole then. */
static bool protected_word(const struct world *w, const int32_t v[3])
{
    for (int i = 0; i < w->n_regions; i++) {
        const struct vx_region *r = &w->region[i];
        bool meets = true;
        for (int k = 0; k < 3; k++) {
            double lo = r->ball ? r->centre_m[k] - r->radius_m : r->min_m[k],
                   hi = r->ball ? r->centre_m[k] + r->radius_m : r->max_m[k];
            int32_t first = (int32_t)floor(v[k] / 32.0) * 32;
            meets = meets && (first + 31.5) * VOXEL_M >= lo && (first + 0.5) * VOXEL_M <= hi;
        }
        if (meets)
            return true;
    }
    return false;
}

/* Merging with what the frame says; weights of 1 for what LiDAR saw through. */
static struct voxel merge(const struct world *w, struct voxel x, struct voxel seen)
{
    if (seen.state == VXK_UNKNOWN || (seen.state == VXK_FREE && x.state == VXK_FREE))
        return x;
    if (seen.state == VXK_FREE && x.state == VXK_UNKNOWN)
        return seen;
    if (w->tsdf) {
        const bool through = seen.state == VXK_FREE;
        double q = through ? 32767 : (int16_t)(seen.value & 0xffff),
               qw = through ? 1 : seen.value >> 16 & 255;
        double t, u, front;
        if (x.state != VXK_ACTIVE)
            return seen;
        t = (int16_t)(x.value & 0xffff);
        u = x.value >> 16 & 255;
        front = x.value >> 24;
        if (through && front < 1) /* half of the evidence goes */
            u = floor(u / 2);
        if (through && u < 1)
            return (struct voxel){VXK_FREE, 0};
        if (through && front >= 1)
            t = fmax(t, 0);
        if (!through || t >= 0)
            t = (double)rintf((float)(t * u + q * qw) / (float)(u + qw));
        if (!through || front >= 1)
            u = fmin(u + qw, 255);
        front += through ? -1 : q < 0 ? -4 * qw : 2 * qw;
        x.value =
            (uint32_t)(uint16_t)(int16_t)t | (uint32_t)u << 16 | (uint32_t)fmin(fmax(front, 0), 255) << 24;
    } else {
        int l = x.state == VXK_ACTIVE ? (int16_t)(x.value & 0xffff) : x.state == VXK_FREE ? -415 : 0;
        l += seen.state == VXK_ACTIVE ? 868 : -415;
        l = l > 3559 ? 3559 : l;
        if (l <= -415) /* one miss: of a free voxel */
            return (struct voxel){VXK_FREE, 0};
        x.value = (uint16_t)(int16_t)l;
    }
    x.state = VXK_ACTIVE;
    return x;
}

/* What the voxel should be, if its word is now faded to the present. */
static struct voxel expect(const struct world *w, const int32_t v[3], uint32_t from)
{
    size_t i = at_voxel(v);
    struct voxel x = w->then[i];
    uint32_t n = (uint32_t)(v[0] & 7) << 6 | (uint32_t)(v[1] & 7) << 3 | (uint32_t)(v[2] & 7),
             to = w->spare && w->frame[i].state ? w->before : w->tick;
    if (!protected_voxel(w, v))
        for (uint32_t t = from + 1; t <= to; t++)
            x = fade_once(w, x, n, t);
    return merge(w, x, w->frame[i]);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Is the word's chunk among those that a sweep of buckets [from, to) visits? */
static bool swept(const int32_t v[3], uint64_t from, uint64_t to)
{
    uint64_t key = 1ull << 63, bucket;
    for (int k = 0; k < 3; k++)
        key |= (uint64_t)((v[k] >> 7) + (1 << 20)) << (42 - 21 * k);
    bucket = mix(key) & 0xffff;
    return ((bucket - from) & 0xffff) < to - from;
}

static void check_word(struct world *w, const int32_t corner[3], uint64_t from, uint64_t to, const char *what)
{
    size_t word = at_word(corner);
    const struct walk_word *old = &w->old_word[word], *new = &w->word[word];
    bool is_swept = swept(corner, from, to), guarded = protected_word(w, corner), stamped, had = false,
         has = false, had_values = false, unfreed = false;
    uint32_t tick = old->tick;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t k = 0; k < 32 * 32 * 32; k++) {
            int32_t v[3] = {corner[0] + (k >> 10), corner[1] + (k >> 5 & 31), corner[2] + (k & 31)};
            size_t i = at_voxel(v);
            struct voxel x = w->now[i], e;
            if (pass == 0) {
                had = had || w->then[i].state;
                has = has || x.state;
                had_values = had_values || w->then[i].state == VXK_ACTIVE;
                continue;
            }
            if (!x.state && !w->then[i].state && !w->frame[i].state)
                continue;
            stamped = !has || new->tick == w->tick;
            e = expect(w, v, had && stamped ? tick : w->tick);
            if (w->then[i].state == VXK_FREE && !x.state && !w->frame[i].state) {
                /* free evidence that nobody renewed */
                ck_assert_msg(stamped && w->tick - old->seen > 80 && !guarded, "%s: free space is lost early",
                              what);
                unfreed = true;
                w->n_unfreed++;
                continue;
            }
            ck_assert_msg(x.state == e.state && x.value == e.value,
                          "%s: voxel %d %d %d was %d %08x, is %d %08x, expected %d %08x (word at tick %u, "
                          "now %u of %u)",
                          what, v[0], v[1], v[2], w->then[i].state, w->then[i].value, x.state, x.value,
                          e.state, e.value, tick, new->tick, w->tick);
            w->n_dead += w->then[i].state == VXK_ACTIVE && !x.state;
            w->n_kept += protected_voxel(w, v) && x.state == VXK_ACTIVE;
            if (w->frame[i].state && (w->then[i].state != x.state || w->then[i].value != x.value))
                ck_assert_msg(new->tick == w->tick && w->tick - new->seen < 16,
                              "%s: a word that the frame changed is at tick %u, seen %u, of %u", what,
                              new->tick, new->seen, w->tick);
        }
    if (is_swept && had && has && had_values) {
        ck_assert_msg(new->tick == w->tick, "%s: a swept word is at tick %u of %u", what, new->tick, w->tick);
        w->n_swept++;
        w->n_faded += tick != w->tick;
    }
    if (is_swept && had && !guarded && !unfreed && has)
        ck_assert_msg(w->tick - new->seen <= 80 || had_values || w->tick - old->seen <= 80,
                      "%s: free space outlives its evidence", what);
    ck_assert(!has || !had || new->tick == tick || new->tick == w->tick);
}

static void run(bool tsdf, bool spare, int n_regions, double half_life_s, uint64_t seed)
{
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(VOXEL_M, tsdf ? VX_TSDF : VX_OCCUPANCY);
    struct frame_shape shape = {.width = 128, .height = 24, .reach_m = 2.5, .odd = 0.05};
    static struct world w;
    struct vx_map *map, *alone;
    int64_t stamp = 5000000000, newest = 0, clock_ns = 0, tick_ns = (int64_t)(half_life_s * 1e9 / 16);
    uint64_t done = 0;
    memset(&w, 0, sizeof w);
    w.tsdf = tsdf;
    w.spare = spare;
    w.before = w.tick = 1;
    w.now = calloc((size_t)N * N * N, sizeof *w.now);
    w.then = calloc((size_t)N * N * N, sizeof *w.then);
    w.frame = calloc((size_t)N * N * N, sizeof *w.frame);
    ck_assert(w.now && w.then && w.frame);
    alone = test_map(d, &p);
    p.half_life_s = half_life_s;
    p.decay_spares_seen = spare;
    map = test_map(d, &p);
    w.region[0] = (struct vx_region){.min_m = {-1.05, -2, -1}, .max_m = {0.55, 2.33, 0.2}};
    w.region[1] = (struct vx_region){.ball = true, .centre_m = {1, 1, 0}, .radius_m = 1.234};
    for (w.n_regions = 0; w.n_regions < n_regions; w.n_regions++)
        ck_ok(vx_map_protect(map, &w.region[w.n_regions], NULL));
    for (int i = 0; i < 40; i++) {
        const double at[3] = {i < 12 || i >= 34 ? test_uniform(&seed, 1, 3) : test_uniform(&seed, -3, -1),
                              test_uniform(&seed, -2, 2), test_uniform(&seed, -1, 1)};
        struct test_frame t;
        struct vx_map_info info;
        struct voxel *swap;
        uint64_t goal;
        char what[64];
        snprintf(what, sizeof what, "seed %llu, frame %d", (unsigned long long)test_seed, i);
        test_frame_init(&t, VX_RANGE, &seed, &shape, at);
        for (uint32_t k = 0; i % 7 == 3 && k < t.f.width * t.f.height; k++)
            ((float *)t.data)[k] = NAN; /* sees nothing: only time passes */
        if (i % 11 == 10)
            stamp += 10000000001; /* a gap: the clock stands still */
        else if (i % 13 == 12)
            stamp -= 3000000000; /* time runs backwards */
        else if (i % 4)
            stamp += (int64_t)(test_uniform(&seed, 0, i % 9 == 8 ? 40 : 4) * (double)tick_ns);
        t.f.stamp_ns = stamp;
        if (i && stamp > newest && stamp - newest <= 10000000000)
            clock_ns += stamp - newest;
        newest = !i || stamp > newest ? stamp : newest;
        w.before = w.tick;
        w.tick = (uint32_t)(1 + clock_ns / tick_ns);
        goal = (uint64_t)(clock_ns / (8 * tick_ns)) * 65536 +
               (uint64_t)(clock_ns % (8 * tick_ns)) * 65536 / (uint64_t)(8 * tick_ns);
        swap = w.then;
        w.then = w.now;
        w.now = swap;
        memcpy(w.old_word, w.word, sizeof w.word);
        ck_ok(vx_map_clear(alone));
        ck_ok(vx_map_integrate(alone, &t.f, &(struct vx_frame_result){0}, NULL));
        rasterise(alone, w.frame, NULL);
        ck_ok(vx_map_integrate(map, &t.f, &(struct vx_frame_result){0}, NULL));
        rasterise(map, w.now, w.word);
        for (int32_t k = 0; k < WORDS * WORDS * WORDS; k++) {
            const int32_t corner[3] = {k / (WORDS * WORDS) * 32 - HALF, k / WORDS % WORDS * 32 - HALF,
                                       k % WORDS * 32 - HALF};
            check_word(&w, corner, done, goal, what);
        }
        done = goal;
        ck_ok(vx_map_get_info(map, &info));
        ck_assert(fabs(info.decay_clock_s - (double)clock_ns * 1e-9) < 1e-6 && info.sweep_lag_s == 0);
        test_frame_fini(&t);
    }
    printf("%s%s, %d regions: %llu voxels died, %llu were no longer free, %llu words swept, %llu of them "
           "faded, %llu "
           "protected\n",
           tsdf ? "tsdf" : "occupancy", spare ? ", sparing what is seen" : "", n_regions,
           (unsigned long long)w.n_dead, (unsigned long long)w.n_unfreed, (unsigned long long)w.n_swept,
           (unsigned long long)w.n_faded, (unsigned long long)w.n_kept);
    ck_assert_uint_gt(w.n_dead, 1000);
    ck_assert_uint_gt(w.n_unfreed, 100);
    ck_assert_uint_gt(w.n_faded, 20);
    ck_assert(!n_regions || w.n_kept > 1000);
    free(w.now);
    free(w.then);
    free(w.frame);
    vx_map_destroy(map);
    vx_map_destroy(alone);
    vx_device_close(d);
}

START_TEST(decay)
{
    run(_i & 1, _i & 2, _i >= 2 ? 2 : 0, _i & 1 ? 1.6 : 0.37, test_seed + (uint64_t)_i);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("decay");
    ck_add(s, decay, 5);
    return core_test_main(argc, argv, s);
}
