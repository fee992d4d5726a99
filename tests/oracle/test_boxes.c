/* test_boxes.c - boxes of any size against plain counting; what they cost; what is no box. */
#include "oracle_run.h"
#include "random_map.h"
#include "vx/planning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum vxk_backend backend; /* under test; program's argument */

enum { MOST = 400 };

struct place {
    struct grid_fixture *f;
    struct vx_map *map;
    struct vx_map_params p;
    uint64_t seed;
};

static struct place open_place(int occupancy)
{
    struct place s = {.seed = 77,
                      .p = {.voxel_size_m = 0.1, .truncation_voxels = 3, .esdf_max_distance_m = 1}};

    s.p.mode = occupancy ? VX_OCCUPANCY : VX_TSDF;
    s.f = grid_fixture_create(backend, 2, &s.p, 0);
    s.map = grid_fixture_map(s.f);
    return s;
}
static void close_place(struct place *s)
{
    ck_assert_uint_eq(grid_fixture_destroy(s->f), 0);
}

/* Chunks on both sides of every axis' origin, one of them far off, and a wholly free word. */
static void fill(struct place *s)
{
    static const int32_t corner[5][3] = {
        {-9, -9, -9}, {240, 5, -300}, {-140, 120, 250}, {100, 100, 100}, {5000, -70, 3}};

    for (int i = 0; i < 5; i++)
        random_map_fill(s->f, &s->seed, corner[i], 30, i % 4);
    for (int32_t k = 0; k < 40 * 40 * 40; k++)
        grid_fixture_set(s->f, 28 + k / 1600, -36 + k / 40 % 40, 28 + k % 40, VXK_FREE, 0);
    grid_fixture_publish(s->f);
}

/* ------------------------------------------------------------------ the reference */

struct counting {
    uint32_t n;
    int occupancy;
    int64_t lo[MOST][3], hi[MOST][3];
    struct vx_box_answer out[MOST];
};

static void count_voxel(void *context, int32_t x, int32_t y, int32_t z, int kind, uint32_t value)
{
    struct counting *c = context;
    const int t = (int16_t)(value & 0xffff);

    for (uint32_t i = 0; i < c->n; i++) {
        const int64_t *lo = c->lo[i], *hi = c->hi[i];
        if (x < lo[0] || x > hi[0] || y < lo[1] || y > hi[1] || z < lo[2] || z > hi[2])
            continue;
        if (kind == VXK_FREE || (kind == VXK_ACTIVE && (c->occupancy ? t < 0 : t >= 0)))
            c->out[i].n_free++;
        else if (kind == VXK_ACTIVE && t != 0)
            c->out[i].n_occupied++;
    }
}

static struct counting *count(struct place *s, const float *box, uint32_t n)
{
    struct counting *c = calloc(1, sizeof *c);

    ck_assert(c && n <= MOST);
    c->n = n;
    c->occupancy = s->p.mode == VX_OCCUPANCY;
    for (uint32_t i = 0; i < n; i++) {
        c->out[i].n_unknown = 1;
        for (uint32_t k = 0; k < 3; k++) {
            const double from = (double)box[6 * i + k] / s->p.voxel_size_m,
                         to = (double)box[6 * i + 3 + k] / s->p.voxel_size_m;
            c->lo[i][k] = (int64_t)floor(from);
            c->hi[i][k] = (int64_t)ceil(to) - 1 > c->lo[i][k] ? (int64_t)ceil(to) - 1 : c->lo[i][k];
            c->out[i].n_unknown *= (uint64_t)(c->hi[i][k] - c->lo[i][k] + 1);
        }
    }
    grid_fixture_each(s->f, count_voxel, c);
    for (uint32_t i = 0; i < n; i++)
        c->out[i].n_unknown -= c->out[i].n_free + c->out[i].n_occupied;
    return c;
}

static void ask_and_compare(struct place *s, const float *box, uint32_t n)
{
    const double origin[3] = {0, 0, 0};
    struct counting *c = count(s, box, n);
    struct vx_box_answer *a = malloc((n + 1) * sizeof *a);
    struct vx_detail detail;

    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(vx_query_boxes(s->map, NULL, origin, box, n, a, NULL, &detail), VX_OK);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(a[i].n_free == c->out[i].n_free && a[i].n_occupied == c->out[i].n_occupied &&
                          a[i].n_unknown == c->out[i].n_unknown && a[i].status == 0,
                      "box %u: %llu free, %llu occupied, %llu unknown; reference %llu, %llu, %llu", i,
                      (unsigned long long)a[i].n_free, (unsigned long long)a[i].n_occupied,
                      (unsigned long long)a[i].n_unknown, (unsigned long long)c->out[i].n_free,
                      (unsigned long long)c->out[i].n_occupied, (unsigned long long)c->out[i].n_unknown);
    free(a);
    free(c);
}

/* ------------------------------------------------------------------ tests */

/* Small and large ones in one batch: sides from a voxel to more than the map, on voxel, cell and chunk
 * borders and off them, flat and long, round everything and beside it. */
START_TEST(any_size)
{
    static float box[MOST][6];
    struct place s = open_place(_i);
    uint64_t most = 0;

    fill(&s);
    printf("seed %llu\n", (unsigned long long)s.seed);
    for (int i = 0; i < MOST; i++)
        for (int k = 0; k < 3; k++) {
            const double side = i % 4 == 0 ? 3 : i % 4 == 1 ? 300 : i % 4 == 2 ? 700 : 200000;
            double from = grid_fixture_uniform(&s.seed, i % 4 == 3 ? -100000 : -500, 500),
                   length = grid_fixture_uniform(&s.seed, 0, side);
            if (i % 5 == k) /* flat, along one axis after the other */
                length = grid_fixture_uniform(&s.seed, 0, 9);
            if (i % 3 == 0) {
                const double step = i % 9 == 0 ? 128 : 8;
                from = step * floor(from / step);
                length = step * ceil(length / step);
            }
            box[i][k] = (float)(0.1 * from);
            box[i][3 + k] = (float)(0.1 * (from + length));
        }
    ask_and_compare(&s, box[0], MOST);
    for (int i = 0; i < 3; i++) { /* the longest there are */
        box[0][i] = -104857.5f;
        box[0][3 + i] = 104857.5f;
    }
    ask_and_compare(&s, box[0], 1);
    for (int i = 0; i < MOST; i++)
        most += box[i][3] - box[i][0] > 20000;
    ck_assert_uint_gt(most, 0);
    close_place(&s);
}
END_TEST

/* Boxes round everything: the map is counted once for all of them, some 16,000 leaves at a time, and between
 * them the map answers other questions. */
struct asking {
    struct vx_map *map;
    uint32_t n;
};
static bool ask_a_point(void *context)
{
    struct asking *a = context;
    const double origin[3] = {0, 0, 0};
    const float point[3] = {0, 0, 0};
    struct vx_point_answer answer;
    struct vx_detail detail;

    if (a->n++ < 4) /* with the reader's lock held this would never end */
        ck_assert_int_eq(vx_query_points(a->map, NULL, origin, point, 1, &answer, NULL, &detail), VX_OK);
    return false;
}
START_TEST(huge_ones_by_the_thousand)
{
    enum { N = 1000, SIDE = 40 }; /* 64,000 leaves */
    static float box[N][6];
    static struct vx_box_answer a[N];
    struct place s = open_place(0);
    struct asking asking = {.map = s.map};
    const struct vx_query_options options = {.cancelled = ask_a_point, .context = &asking};
    const double origin[3] = {0, 0, 0};
    struct vx_detail detail;

    for (int32_t k = 0; k < SIDE * SIDE * SIDE; k++)
        grid_fixture_set(s.f, 8 * (k / SIDE / SIDE), 8 * (k / SIDE % SIDE), 8 * (k % SIDE), VXK_ACTIVE,
                         vxk_tsdf_pack(k % 3 ? -5 : 5, 1));
    grid_fixture_publish(s.f);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            box[i][k] = -100 - (float)i;
            box[i][3 + k] = 100 + (float)i;
        }
    ck_assert_int_eq(vx_query_boxes(s.map, &options, origin, box[0], N, a, NULL, &detail), VX_OK);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(a[i].n_free + a[i].n_occupied, SIDE * SIDE * SIDE);
        ck_assert_uint_eq(a[i].n_free, (SIDE * SIDE * SIDE + 2) / 3);
    }
    /* asked once a box, and once before each launch: 64,000 leaves in parts of whole chunks */
    ck_assert_uint_ge(asking.n, N + 4);
    ck_assert_uint_le(asking.n, N + 27);
    close_place(&s);
}
END_TEST

/* What is no box is refused by its number, whatever else is asked, and nothing is said to be free. */
START_TEST(no_boxes)
{
    static const float bad[][6] = {{0, 0, 0, 1, 1, NAN},        {NAN, 0, 0, 1, 1, 1},
                                   {0, -INFINITY, 0, 1, 1, 1},  {0, 0, 0, INFINITY, 1, 1},
                                   {0, 0, 1, 1, 1, 0.99f},      {3, 0, 0, -3, 1, 1},
                                   {0, 0, 0, 1, 209716.0f, 1},  {1e30f, 0, 0, 1.1e30f, 1, 1},
                                   {-3e38f, 0, 0, 3e38f, 1, 1}, {NAN, NAN, NAN, NAN, NAN, NAN}};
    const double origin[3] = {0, 0, 0}, nowhere[3] = {0, NAN, 0};
    float box[3][6] = {{0, 0, 0, 1, 1, 1}, {0}, {0, 0, 0, 2, 2, 2}};
    struct place s = open_place(0);
    struct vx_box_answer a[3];
    struct vx_detail detail;

    fill(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(box[1], bad[i], sizeof box[1]);
        memset(&detail, 0, sizeof detail);
        ck_assert_msg(vx_query_boxes(s.map, NULL, origin, box[0], 3, a, NULL, &detail) == VX_E_INVALID, "%zu",
                      i);
        ck_assert_str_eq(detail.field, "boxes");
        ck_assert_msg(strstr(detail.text, "box 1 ") != NULL, "%s", detail.text);
    }
    memset(box[1], 0, sizeof box[1]); /* a point is a box: of the voxel that holds it */
    ck_assert_int_eq(vx_query_boxes(s.map, NULL, origin, box[0], 3, a, NULL, &detail), VX_OK);
    ck_assert_uint_eq(a[1].n_free + a[1].n_occupied + a[1].n_unknown, 1);
    ck_assert_int_eq(vx_query_boxes(s.map, NULL, nowhere, box[0], 3, a, NULL, &detail), VX_E_INVALID);
    ck_assert_int_eq(vx_query_boxes(s.map, NULL, origin, NULL, 0, NULL, NULL, &detail), VX_OK);
    close_place(&s);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("boxes");

    backend = grid_fixture_backend(argc, argv);
    tcase_add_loop_test(t, any_size, 0, 2);
    tcase_add_test(t, huge_ones_by_the_thousand);
    tcase_add_test(t, no_boxes);
    return oracle_run(t);
}
