/* test_esdf.c - the distance field against brute force over all sites, and against itself on every backend.
 */
#include "field_dump.h"
#include "oracle_run.h"
#include "random_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static enum vxk_backend backend; /* under test; program's argument */

struct sites {
    int64_t (*at)[3]; /* 1/256 voxel, from voxel (0,0,0)'s centre */
    uint32_t n, max;
    const struct grid_fixture *f;
    int occupancy;
    int32_t lo[3], hi[3]; /* voxels */
};

/* -1, 1, or 0 when the voxel does not count. */
static int sign_of(const struct sites *s, int32_t x, int32_t y, int32_t z, double *t)
{
    uint32_t v;
    int kind = grid_fixture_get(s->f, x, y, z, &v);

    *t = (int16_t)(v & 0xffff);
    if (s->occupancy) {
        if (kind == VXK_FREE)
            *t = -1;
        *t = -*t; /* log-odds: positive is occupied */
        *t = *t < 0 ? -1 : *t > 0 ? 1 : 0;
        return kind == VXK_UNKNOWN ? 0 : (int)*t;
    }
    if (kind != VXK_ACTIVE || (v >> 16 & 255) == 0)
        return 0;
    return *t < 0 ? -1 : 1;
}

static void add_sites(void *context, int32_t x, int32_t y, int32_t z, int kind, uint32_t value)
{
    struct sites *s = context;
    double t, u;
    int here = sign_of(s, x, y, z, &t);

    (void)kind;
    (void)value;
    for (int a = 0; here && a < 3; a++) {
        int there = sign_of(s, x + (a == 0), y + (a == 1), z + (a == 2), &u);
        int32_t p[3] = {x, y, z}, f;
        if (!there || there == here)
            continue;
        f = (int32_t)floor(256 * fabs(t) / fabs(t - u) + 0.5);
        f = f < 1 ? 1 : f > 255 ? 255 : f;
        if (s->n == s->max) {
            s->max = s->max ? 2 * s->max : 1024;
            s->at = realloc(s->at, s->max * sizeof *s->at);
            ck_assert_ptr_nonnull(s->at);
        }
        for (int k = 0; k < 3; k++) {
            s->at[s->n][k] = p[k] * INT64_C(256) + (k == a ? f : 0);
            s->lo[k] = p[k] < s->lo[k] ? p[k] : s->lo[k];
            s->hi[k] = p[k] + 1 > s->hi[k] ? p[k] + 1 : s->hi[k];
        }
        s->n++;
    }
}

static struct sites find_sites(const struct grid_fixture *f, int occupancy)
{
    struct sites s = {.f = f,
                      .occupancy = occupancy,
                      .lo = {1 << 30, 1 << 30, 1 << 30},
                      .hi = {-(1 << 30), -(1 << 30), -(1 << 30)}};

    grid_fixture_each(f, add_sites, &s);
    return s;
}

/* Stored value that voxel (x, y, z) must have. */
static uint32_t expected(const struct sites *s, uint32_t radius, int32_t x, int32_t y, int32_t z)
{
    int64_t best = INT64_MAX, limit = (int64_t)radius * radius * 65536;
    double scale = radius <= 15 ? 4 : radius <= 31 ? 2 : 1, t;
    int sign = sign_of(s, x, y, z, &t);
    uint32_t v, state = sign < 0 ? 2 : sign > 0 ? 1 : grid_fixture_get(s->f, x, y, z, &v) == VXK_FREE ? 1 : 0;

    for (uint32_t i = 0; i < s->n; i++) {
        int64_t dx = s->at[i][0] - x * INT64_C(256), dy = s->at[i][1] - y * INT64_C(256),
                dz = s->at[i][2] - z * INT64_C(256);
        int64_t d = dx * dx + dy * dy + dz * dz;
        best = d < best ? d : best;
    }
    return state << 14 | (best <= limit ? (uint32_t)rint(sqrt((double)best) * scale) : 16383u);
}

/* Compares every voxel that could be within R, and the existence of every leaf. */
static void compare(const struct grid_fixture *f, const struct field_dump *d, uint32_t radius, int occupancy)
{
    struct sites s = find_sites(f, occupancy);
    uint32_t leaves = 0;
    int32_t lo[3], hi[3];

    for (int a = 0; a < 3 && s.n; a++) {
        lo[a] = (s.lo[a] - (int32_t)radius - 8) >> 3;
        hi[a] = (s.hi[a] + (int32_t)radius + 8) >> 3;
    }
    for (int32_t x = lo[0]; s.n && x <= hi[0]; x++)
        for (int32_t y = lo[1]; y <= hi[1]; y++)
            for (int32_t z = lo[2]; z <= hi[2]; z++) {
                const uint16_t *leaf = vxk_esdf_leaf(&d->view, x, y, z);
                uint64_t key;
                int near = 0;
                if (!vxk_cell_key(x, y, z, &key))
                    continue; /* outside the voxel range */
                for (int n = 0; n < 512; n++) {
                    uint32_t want =
                        expected(&s, radius, x * 8 + (n >> 6), y * 8 + (n >> 3 & 7), z * 8 + (n & 7));
                    near |= (want & 16383) != 16383;
                    if (leaf && leaf[n] != want)
                        ck_abort_msg("voxel %d of cell (%d,%d,%d): stored %x, brute force %x", n, x, y, z,
                                     leaf[n], want);
                }
                if (!leaf != !near)
                    ck_abort_msg("cell (%d,%d,%d): leaf %d, within R %d", x, y, z, leaf != NULL, near);
                leaves += leaf != NULL;
            }
    ck_assert_uint_eq(leaves, d->n_leaves);
    free(s.at);
}

static struct vx_map_params params_for(uint32_t radius, int occupancy)
{
    return (struct vx_map_params){.voxel_size_m = 0.05,
                                  .esdf_max_distance_m = 0.05 * radius,
                                  .mode = occupancy ? VX_OCCUPANCY : VX_TSDF};
}

static const struct {
    uint32_t radius;
    int32_t corner[3], size;
    int style, occupancy;
} cases[] = {
    {10, {-7, -9, -5}, 18, 0, 0},  {10, {120, 121, 122}, 14, 1, 0}, {3, {-12, 118, -6}, 20, 2, 0},
    {1, {-4, -4, -4}, 12, 0, 0},   {8, {1000, -131, 7}, 30, 3, 0},  {15, {-3, 125, 2}, 16, 1, 0},
    {16, {-260, 250, 0}, 8, 0, 0}, {31, {-2, 7, 0}, 4, 0, 0},       {63, {-130, 5, 126}, 4, 0, 0},
    {10, {-5, -5, -5}, 16, 1, 1},  {7, {122, 100, -9}, 17, 0, 1},   {9, {-134217728, 134217700, 0}, 14, 0, 0},
};

START_TEST(brute_force)
{
    uint64_t seed = 0x5eed0000u + (uint64_t)_i;
    struct vx_map_params p = params_for(cases[_i].radius, cases[_i].occupancy);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    struct field_dump d;

    random_map_fill(f, &seed, cases[_i].corner, cases[_i].size, cases[_i].style);
    grid_fixture_publish(f);
    ck_assert_int_eq(field_dump_get(f, &d), VX_OK);
    ck_assert_uint_gt(d.n_leaves, 0);
    compare(f, &d, cases[_i].radius, cases[_i].occupancy);
    field_dump_fini(&d);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* The same field on every backend and thread count. */
START_TEST(same_everywhere)
{
    struct vx_map_params p = params_for(10, 0);
    struct field_dump d[3];
    const struct {
        enum vxk_backend backend;
        int threads;
    } on[3] = {{backend, 1}, {VXK_CPU, 2}, {VXK_GUARD, 2}};

    for (int i = 0; i < 3; i++) {
        struct grid_fixture *f = grid_fixture_create(on[i].backend, on[i].threads, &p, 0);
        uint64_t seed = 77;
        random_map_fill(f, &seed, (int32_t[3]){-20, 90, -33}, 48, 2);
        random_map_fill(f, &seed, (int32_t[3]){500, 90, -33}, 40, 0);
        grid_fixture_publish(f);
        ck_assert_int_eq(field_dump_get(f, &d[i]), VX_OK);
        ck_assert_uint_eq(grid_fixture_destroy(f), 0);
        ck_assert(field_dump_equal(&d[0], &d[i]));
    }
    ck_assert_uint_gt(d[0].n_leaves, 1000);
    for (int i = 0; i < 3; i++)
        field_dump_fini(&d[i]);
}
END_TEST

/* The field that is kept, whatever its epoch. */
static const struct vx__esdf *kept_field(struct grid_fixture *f)
{
    struct vx__reader_state *rs;
    const struct vx__esdf *e;

    ck_assert_int_eq(vx__reader_lock(grid_fixture_map(f), &rs), VX_OK);
    e = rs->esdf;
    vx__reader_unlock(grid_fixture_map(f));
    return e;
}

/* Emptied maps, and a cap: a refused update leaves a field that the next one brings up to date, or none. */
START_TEST(refusal)
{
    struct vx_map_params p = params_for(10, 0);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    struct field_dump empty, small, big, rebuilt;
    uint64_t seed = 5, held, n_kept = 0, n_dropped = 0;

    grid_fixture_publish(f);
    ck_assert_int_eq(field_dump_get(f, &empty), VX_OK);
    ck_assert_uint_eq(empty.n_leaves, 0);
    ck_assert_ptr_null(vxk_esdf_leaf(&empty.view, 0, 0, 0));
    field_dump_fini(&empty);
    random_map_fill(f, &seed, (int32_t[3]){0, 0, 0}, 16, 0);
    grid_fixture_publish(f);
    ck_assert_int_eq(field_dump_get(f, &small), VX_OK);
    held = grid_fixture_held(f);
    ck_assert_uint_eq(held, small.bytes);

    random_map_fill(f, &seed, (int32_t[3]){200, 0, 0}, 64, 2);
    grid_fixture_publish(f);
    for (uint64_t room = 1 << 20;; room += 1 << 20) {
        vx_err err;
        grid_fixture_set_cap(f, grid_fixture_held(f) + room);
        err = field_dump_get(f, &big);
        if (err == VX_OK)
            break;
        ck_assert_int_eq(err, VX_E_EXHAUSTED);
        ck_assert_uint_lt(room, 256 << 20);
        if (kept_field(f)) {
            ck_assert_uint_eq(kept_field(f)->epoch, 2);
            ck_assert_uint_eq(kept_field(f)->n_leaves, small.n_leaves);
            ck_assert_uint_eq(grid_fixture_held(f), kept_field(f)->bytes);
            n_kept++;
        } else {
            ck_assert_uint_eq(grid_fixture_held(f), 0);
            n_dropped++;
        }
    }
    printf("refused %llu times with the old field kept, %llu times without\n", (unsigned long long)n_kept,
           (unsigned long long)n_dropped);
    ck_assert_uint_gt(n_kept, 0);
    ck_assert_uint_gt(big.n_leaves, small.n_leaves);
    grid_fixture_set_cap(f, 0);
    ck_assert_int_eq(field_dump_rebuilt(f, &rebuilt), VX_OK);
    ck_assert(field_dump_equal(&big, &rebuilt));
    field_dump_fini(&rebuilt);
    field_dump_fini(&big);
    field_dump_fini(&small);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* ------------------------------------------------------------------ updates */

/* One edit: a box of noise, a lone voxel, a ball, a hole, all of a cell, a free box, values that keep their
 * sign. */
static void edit(struct grid_fixture *f, uint64_t *seed, int32_t spread)
{
    int32_t c[3], size = 1 + (int32_t)(grid_fixture_random(seed) % 9);
    int kind = (int)(grid_fixture_random(seed) % 8);

    for (int a = 0; a < 3; a++)
        c[a] = (int32_t)(grid_fixture_random(seed) % (uint32_t)(2 * spread)) - spread;
    if (kind == 0)
        random_map_fill(f, seed, c, size, (int)(grid_fixture_random(seed) % 4));
    if (kind == 1)
        random_map_ball(f, (double[3]){c[0], c[1], c[2]}, 2 + 0.3 * size, 2, 9000);
    if (kind == 2)
        size = 8;
    for (int32_t i = 0; kind >= 2 && i < size * size * size; i++) {
        int32_t x = c[0] + i / (size * size), y = c[1] + i / size % size, z = c[2] + i % size, was;
        uint32_t v;
        was = grid_fixture_get(f, x, y, z, &v);
        if (kind == 2) /* cells become tiles */
            grid_fixture_set(f, (c[0] & ~7) + (x - c[0]), (c[1] & ~7) + (y - c[1]), (c[2] & ~7) + (z - c[2]),
                             VXK_FREE, 0);
        else if (kind == 3 || kind == 4)
            grid_fixture_set(f, x, y, z, kind == 3 ? VXK_UNKNOWN : VXK_FREE, 0);
        else if (kind == 5 && was == VXK_ACTIVE) /* moves the sites a little */
            grid_fixture_set(f, x, y, z, VXK_ACTIVE,
                             vxk_tsdf_pack(vxk_tsdf_distance(v) / 2, vxk_tsdf_weight(v)));
        else if (kind == 6 && was == VXK_ACTIVE) /* changes weights and nothing that counts */
            grid_fixture_set(f, x, y, z, VXK_ACTIVE, vxk_tsdf_pack(vxk_tsdf_distance(v), 7));
        else if (kind == 7 && i == 0)
            grid_fixture_set(f, x, y, z, VXK_ACTIVE,
                             vxk_tsdf_pack((int32_t)(grid_fixture_random(seed) % 65535) - 32767, 1));
    }
}

static const struct {
    uint32_t radius, n_edits;
    int32_t spread;
    int occupancy;
} updates[] = {{10, 420, 40, 0}, {3, 270, 90, 0}, {8, 200, 20, 1}, {20, 80, 60, 0}, {63, 30, 10, 0}};

/* 1,000 edits in all, each followed by an update that must equal a build from nothing, bit for bit. */
START_TEST(update_equals_rebuild)
{
    uint64_t seed = 0xed17000u + (uint64_t)_i, computed = 0, rebuilt_leaves = 0;
    struct vx_map_params p = params_for(updates[_i].radius, updates[_i].occupancy);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    struct field_dump now, anew;

    if (getenv("VOXELD_TEST_SEED"))
        seed += strtoull(getenv("VOXELD_TEST_SEED"), NULL, 0);
    printf("seed %#llx: %u edits, R %u\n", (unsigned long long)seed, updates[_i].n_edits, updates[_i].radius);
    random_map_fill(f, &seed, (int32_t[3]){-20, -20, -20}, 36, 2);
    for (uint32_t k = 0; k < updates[_i].n_edits; k++) {
        if (k % 61 == 60) /* everything goes */
            grid_fixture_clear(f);
        for (uint32_t m = 0; m <= k % 3; m++)
            edit(f, &seed, updates[_i].spread);
        grid_fixture_publish(f);
        ck_assert_int_eq(field_dump_get(f, &now), VX_OK);
        ck_assert_int_eq(field_dump_rebuilt(f, &anew), VX_OK);
        if (!field_dump_equal(&now, &anew))
            ck_abort_msg("edit %u: %u leaves after the update, %u anew", k, now.n_leaves, anew.n_leaves);
        computed = now.n_computed;
        rebuilt_leaves += anew.n_computed;
        field_dump_fini(&now);
        field_dump_fini(&anew);
    }
    printf("  computed %llu leaves; builds from nothing %llu\n", (unsigned long long)computed,
           (unsigned long long)rebuilt_leaves);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* No change computes nothing: a new epoch with the same content, and the same epoch. */
START_TEST(no_change_no_work)
{
    struct vx_map_params p = params_for(10, 0);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    struct field_dump a, b;
    uint64_t seed = 12;

    random_map_fill(f, &seed, (int32_t[3]){-9, 4, 100}, 40, 2);
    grid_fixture_publish(f);
    ck_assert_int_eq(field_dump_get(f, &a), VX_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(field_dump_get(f, &b), VX_OK);
        ck_assert_uint_eq(b.n_updates, 1);
        ck_assert_uint_eq(b.n_computed, a.n_computed);
        ck_assert(field_dump_equal(&a, &b));
        field_dump_fini(&b);
        grid_fixture_publish(f);
    }
    field_dump_fini(&a);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* Batches: with less scratch than the map wants at once, the field is the same. */
START_TEST(small_scratch_same_field)
{
    struct vx_map_params p = params_for(10, 0);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    struct field_dump a, b;
    uint64_t seed = 6, peak;

    random_map_fill(f, &seed, (int32_t[3]){-40, 0, 100}, 72, 2);
    grid_fixture_publish(f);
    ck_assert_int_eq(field_dump_get(f, &a), VX_OK);
    peak = grid_fixture_peak(f);
    printf("field %llu bytes, peak %llu bytes, %u leaves\n", (unsigned long long)a.bytes,
           (unsigned long long)peak, a.n_leaves);
    grid_fixture_set_cap(f, 2 * a.bytes + (peak - a.bytes) / 3);
    ck_assert_int_eq(field_dump_rebuilt(f, &b), VX_OK);
    ck_assert(field_dump_equal(&a, &b));
    field_dump_fini(&a);
    field_dump_fini(&b);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* Bytes held for each voxel within R, all overhead included. */
START_TEST(memory)
{
    struct vx_map_params p = params_for(10, 0);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    struct field_dump d;
    uint64_t n;

    random_map_ball(f, (double[3]){10, 20, 30}, 80, 3, 8000);
    grid_fixture_publish(f);
    ck_assert_int_eq(field_dump_get(f, &d), VX_OK);
    n = field_dump_within(&d);
    printf("%.2f bytes for each of %llu voxels within R\n", (double)d.bytes / (double)n,
           (unsigned long long)n);
    ck_assert_double_le((double)d.bytes / (double)n, 3.5);
    field_dump_fini(&d);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("esdf");

    backend = grid_fixture_backend(argc, argv);
    tcase_add_loop_test(t, brute_force, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(t, same_everywhere);
    tcase_add_test(t, refusal);
    tcase_add_loop_test(t, update_equals_rebuild, 0, (int)(sizeof updates / sizeof *updates));
    tcase_add_test(t, no_change_no_work);
    tcase_add_test(t, small_scratch_same_field);
    tcase_add_test(t, memory);
    return oracle_run(t);
}
