/* test_paths.c - path queries are what their definition says, to the bit: every way marched in full
 * (path_reference.h, on the CPU), on random maps, in every mode, few paths and many.  Argument: backend. */
#include "esdf.h"
#include "path_reference.h"
#include "random_map.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 60, N_MANY = 2 * N, N_WAY = 5, N_SPHERES = 4 }; /* many: core answers them path by path */

static enum vxk_backend backend; /* under test; program's argument */

static const struct {
    int32_t corner[3], size;
    int style, occupancy, furnished;
    double reach_m;
} maps[] = {{{-9, -9, -9}, 36, 2, 0, 0, 1},       {{119, 117, 121}, 24, 1, 0, 0, 1},
            {{110, -15, 118}, 26, 1, 1, 0, 1},    {{0, 0, 0}, 34, 3, 0, 0, 1},
            {{-40, 90, 3}, 40, 0, 0, 0, 1},       {{-60, -60, -60}, 96, 0, 0, 1, 1},
            {{-70, 60, -64}, 120, 0, 1, 1, 0.2},  {{-64, -64, -64}, 128, 0, 0, 1, 0.2},
            {{-64, -64, -64}, 128, 0, 0, 1, 0.1}, {{5, -130, 77}, 128, 0, 1, 1, 0.1}};
enum { N_MAPS = sizeof maps / sizeof *maps };

/* A room of free space with a wall, an unknown corner and a few lone occupied voxels behind it; motes in the
 * air, and here and there a voxel that nobody saw. */
static void furnish(struct grid_fixture *f, const int32_t corner[3], int32_t size, int occupancy)
{
    for (int32_t x = 0; x < size; x++)
        for (int32_t y = 0; y < size; y++)
            for (int32_t z = 0; z < size; z++) {
                const int32_t d = x - 2 * size / 3, hidden = x > 2 * size / 3 + 2 && y > size / 2;
                int kind = hidden ? VXK_UNKNOWN : VXK_FREE;
                uint32_t v = 0;
                if (d >= -1 && d <= 2 && z < size / 2) {
                    kind = VXK_ACTIVE;
                    v = occupancy ? vxk_tsdf_pack(d > 0 ? 1000 : -1000, 0)
                                  : vxk_tsdf_pack(d < 0 ? 9000 : -5000 * (d + 1), 3);
                } else if (hidden && (x * 7 + y * 5 + z * 3) % 211 == 0) {
                    kind = VXK_ACTIVE;
                    v = occupancy ? vxk_tsdf_pack(2000, 0) : vxk_tsdf_pack(-4000, 2);
                }
                if (kind == VXK_FREE && (x * 131 + y * 37 + z * 17) % 4099 < 2) {
                    kind = VXK_ACTIVE;
                    v = (x * 131 + y * 37 + z * 17) % 4099 ? vxk_tsdf_pack(occupancy ? 900 : -3000, 2)
                                                           : vxk_tsdf_pack(occupancy ? -900 : 3000, 2);
                } else if (kind == VXK_FREE && (x * 29 + y * 173 + z * 7) % 8191 == 0) {
                    kind = VXK_UNKNOWN;
                }
                grid_fixture_set(f, corner[0] + x, corner[1] + y, corner[2] + z, kind, v);
            }
}

static void random_pose(uint64_t *seed, double from, double to, float *pose)
{
    float n = 0;

    for (int k = 0; k < 3; k++)
        pose[k] = (float)grid_fixture_uniform(seed, from, to);
    for (int k = 3; k < 7; k++) {
        pose[k] = (float)grid_fixture_uniform(seed, -1, 1);
        n += pose[k] * pose[k];
    }
    for (int k = 3; k < 7; k++)
        pose[k] /= sqrtf(n);
}

/* Paths of every kind: far jumps, small steps, turns on the spot, bad poses. */
static void make_poses(uint64_t *seed, double size_m, float pose[N][N_WAY][7])
{
    for (int i = 0; i < N; i++)
        for (int w = 0; w < N_WAY; w++) {
            random_pose(seed, 0, size_m, pose[i][w]);
            for (int k = 0; w && i % 4 && k < 3; k++)
                pose[i][w][k] =
                    pose[i][w - 1][k] + (i % 4 == 1 ? 0.0f : (float)grid_fixture_uniform(seed, -0.9, 0.9));
            for (int k = 3; w && i % 4 == 3 && k < 7; k++)
                pose[i][w][k] = pose[i][w - 1][k];
        }
    pose[5][3][1] = NAN;
    pose[6][2][6] = 7;
    pose[7][4][0] = 1e5f;
}

/* Ways of hundreds of voxels, which core answers after the others, and some near the end of the voxel range,
 * which it answers last. */
static void make_far(float pose[N][N_WAY][7])
{
    for (int i = 8; i < 12; i++) {
        pose[i][3][i % 3] += 60;
        pose[i][3][1] += i == 11 ? 150 : 0;
    }
    for (int w = 0; w < N_WAY; w++)
        for (int i = 40; i < 42; i++)
            pose[i][w][0] = 13390000.0f + 8 * (float)w * (float)(i - 38);
}

/* The field's query, by the hands of a reader. */
static void ask_reference(struct grid_fixture *f, const struct vx_map_params *p, const double origin[3],
                          const struct vx_paths *q, const float *poses, uint32_t n, bool voxels,
                          struct vx_path_answer *out)
{
    struct vx_map *map = grid_fixture_map(f);
    struct vx__reader_state *rs;
    struct vx__snapshot s;
    const struct vx__esdf *e;
    struct vx_detail detail;
    struct vxk_query v = {.voxel_m = p->voxel_size_m, .undefined = NAN, .occupancy = p->mode == VX_OCCUPANCY};

    ck_assert_int_eq(vx__reader_lock(map, &rs), VX_OK);
    ck_assert_int_eq(vx__snapshot_pin(map, &s), VX_OK);
    ck_assert_int_eq(vx__esdf_refresh(map, rs, &s, NULL, &e, &detail), VX_OK);
    v.grid = s.grid;
    v.esdf = e->view;
    for (int a = 0; a < 3; a++)
        v.offset_m[a] = origin[a] - p->origin_m[a];
    path_reference(&v, q, poses, n, voxels, out);
    vx__snapshot_release(map, &s);
    vx__reader_unlock(map);
}

/* Map i; the seed goes on from where its filling ended. */
static struct grid_fixture *open_map(int i, enum vxk_backend on, const struct vx_map_params *p,
                                     uint64_t *seed)
{
    struct grid_fixture *f = grid_fixture_create(on, 2, p, 0);

    *seed = 4200 + (uint64_t)i;
    if (maps[i].furnished)
        furnish(f, maps[i].corner, maps[i].size, maps[i].occupancy);
    else
        random_map_fill(f, seed, maps[i].corner, maps[i].size, maps[i].style);
    grid_fixture_publish(f);
    return f;
}

static void check_same(const struct vx_path_answer *got, const struct vx_path_answer *want, int id)
{
    if (memcmp(got, want, sizeof *got) != 0)
        ck_abort_msg("map %d path %d: sphere %u contact %g clearance %g unknown %g status %u, "
                     "by definition %u %g %g %g %u",
                     id / 1000, id % 1000, got->sphere, (double)got->contact, (double)got->clearance_m,
                     (double)got->unknown, got->status, want->sphere, (double)want->contact,
                     (double)want->clearance_m, (double)want->unknown, want->status);
}

START_TEST(answers)
{
    struct vx_map_params p = {.voxel_size_m = 0.1,
                              .origin_m = {500000.5, 4000000.25, 100},
                              .esdf_max_distance_m = maps[_i].reach_m,
                              .truncation_voxels = 3,
                              .mode = maps[_i].occupancy ? VX_OCCUPANCY : VX_TSDF};
    uint64_t seed;
    struct grid_fixture *on_cpu = open_map(_i, VXK_CPU, &p, &seed),
                        *f = backend == VXK_CPU ? on_cpu : open_map(_i, backend, &p, &seed);
    const double size_m = 0.1 * maps[_i].size + 2;
    double origin[3];
    static float pose[N_MANY][N_WAY][7], sphere[N_SPHERES][4];
    static struct vx_path_answer got[N_MANY], want[N];
    struct vx_detail detail;
    int n_touch = 0, n_unknown = 0, n_outside = 0, n_clear = 0;

    for (int a = 0; a < 3; a++)
        origin[a] = p.origin_m[a] + 0.1 * maps[_i].corner[a] - 1;
    for (int round = 0; round < 12; round++) {
        const struct vx_paths q = {.spheres = sphere[0],
                                   .n_spheres = N_SPHERES,
                                   .n_waypoints = round % 4 == 3 ? 1 : N_WAY,
                                   .unknown = (enum vx_unknown)(round % 3)};
        for (int i = 0; i < N_SPHERES; i++) {
            for (int k = 0; k < 3; k++)
                sphere[i][k] = (float)grid_fixture_uniform(&seed, -0.3, 0.3);
            sphere[i][3] = i ? (float)grid_fixture_uniform(&seed, 0.02, fmin(0.3, maps[_i].reach_m)) : 0;
        }
        make_poses(&seed, size_m, pose);
        if (round >= 6)
            make_far(pose);
        memcpy(pose[0][0] + 7ull * N * q.n_waypoints, pose[0][0], 7ull * N * q.n_waypoints * sizeof(float));
        ask_reference(on_cpu, &p, origin, &q, pose[0][0], N, round < 6, want);
        for (uint32_t n = N; n <= N_MANY; n += N) {
            ck_assert_int_eq(
                vx_query_paths(grid_fixture_map(f), NULL, origin, &q, pose[0][0], n, got, NULL, &detail),
                VX_OK);
            for (int i = 0; i < (int)n; i++)
                check_same(&got[i], &want[i % N], 1000 * _i + i);
        }
        for (int i = 0; i < N; i++) {
            n_touch += (got[i].status & VX_Q_COLLIDES) != 0;
            n_unknown += (got[i].status & VX_Q_TOUCHES_UNKNOWN) != 0;
            n_outside += (got[i].status & VX_Q_OUTSIDE) != 0;
            n_clear += got[i].status == 0;
        }
    }
    printf("map %d, seed %d: of %d paths %d touch, %d meet unknown, %d leave the range, %d meet nothing\n",
           _i, 4200 + _i, 12 * N, n_touch, n_unknown, n_outside, n_clear);
    ck_assert(n_touch && n_unknown && n_outside);
    if (f != on_cpu)
        ck_assert_uint_eq(grid_fixture_destroy(f), 0);
    ck_assert_uint_eq(grid_fixture_destroy(on_cpu), 0);
}
END_TEST

/* The masks of one word against its voxels. */
static void check_outline(const struct grid_fixture *f, const struct vx__esdf *e, uint32_t chunk,
                          uint32_t word, int occupancy)
{
    const struct vxk_outline *o = &e->outline[chunk * 64 + word];
    int32_t kx, ky, kz;

    vxk_key_xyz(e->chunk_key[chunk], &kx, &ky, &kz);
    ck_assert_uint_eq(o->made, VXK_OUTLINE_MADE);
    for (uint32_t cell = 0; cell < 64; cell++) {
        uint32_t x, y, z, v;
        int unknown = 0, occupied = 0;
        vxk_cell_base(word, cell, &x, &y, &z);
        for (int32_t n = 0; n < 512; n++) {
            const int kind =
                grid_fixture_get(f, kx * 128 + (int32_t)x + (n >> 6), ky * 128 + (int32_t)y + (n >> 3 & 7),
                                 kz * 128 + (int32_t)z + (n & 7), &v);
            const uint32_t state = vxk_evidence(kind, v, (uint32_t)occupancy);
            unknown |= state == VXK_STATE_UNKNOWN;
            occupied |= state == VXK_STATE_OCCUPIED;
        }
        if ((int)(o->unknown >> cell & 1) != unknown || (int)(o->occupied >> cell & 1) != occupied ||
            (o->near >> cell & 1) != (e->table[chunk * 4096 + word * 64 + cell] != VXK_NONE))
            ck_abort_msg("chunk %u word %u cell %u: unknown %d occupied %d in the map", chunk, word, cell,
                         unknown, occupied);
    }
}

/* Masks of words after each of many edits, up to date and of a chunk that comes and goes. */
START_TEST(outlines)
{
    struct vx_map_params p = {.voxel_size_m = 0.1,
                              .esdf_max_distance_m = 0.3,
                              .truncation_voxels = 3,
                              .mode = _i ? VX_OCCUPANCY : VX_TSDF};
    struct grid_fixture *f = grid_fixture_create(VXK_CPU, 2, &p, 0);
    struct vx_map *map = grid_fixture_map(f);
    uint64_t seed = 77 + (uint64_t)_i;
    uint64_t n_words = 0;

    for (int edit = 0; edit < 30; edit++) {
        struct vx__reader_state *rs;
        struct vx__snapshot s;
        const struct vx__esdf *e;
        struct vx_detail detail;
        int32_t lo[3], size[3];
        for (int a = 0; a < 3; a++) {
            lo[a] = (int32_t)grid_fixture_uniform(&seed, a ? 90 : -40, 150);
            size[a] = (int32_t)grid_fixture_uniform(&seed, 1, 24);
        }
        const int what = (int)grid_fixture_uniform(&seed, 0, 4);
        if (edit % 12 == 11)
            grid_fixture_clear(f);
        for (int32_t k = 0; k < size[0] * size[1] * size[2]; k++) {
            const int32_t x = lo[0] + k % size[0], y = lo[1] + k / size[0] % size[1],
                          z = lo[2] + k / size[0] / size[1];
            const int kind = what == 0 ? VXK_UNKNOWN : what == 1 ? VXK_FREE : VXK_ACTIVE;
            grid_fixture_set(f, x, y, z, kind,
                             vxk_tsdf_pack((int32_t)grid_fixture_uniform(&seed, -3, 4) * 1000, 1));
        }
        grid_fixture_publish(f);
        ck_assert_int_eq(vx__reader_lock(map, &rs), VX_OK);
        ck_assert_int_eq(vx__snapshot_pin(map, &s), VX_OK);
        ck_assert_int_eq(vx__esdf_refresh(map, rs, &s, NULL, &e, &detail), VX_OK);
        for (uint32_t i = 0; i < e->n_chunks * 64; i++, n_words++)
            check_outline(f, e, i >> 6, i & 63, _i);
        vx__snapshot_release(map, &s);
        vx__reader_unlock(map);
    }
    printf("seed %d: %llu words\n", 77 + _i, (unsigned long long)n_words);
    ck_assert_uint_gt(n_words, 1000);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("paths");
    TCase *t = tcase_create("definition");
    SRunner *r;
    int failed;

    backend = grid_fixture_backend(argc, argv);
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, answers, 0, N_MAPS);
    if (backend == VXK_CPU)
        tcase_add_loop_test(t, outlines, 0, 2);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
