/* test_edges.c - every kind of question where planners' bugs live: on the corner of eight chunks, in the last
 * voxel of the range and beyond it. */
#include "body/query.h"
#include "grid_fixture.h"
#include "oracle_run.h"
#include "vx/planning.h"

#include <math.h>
#include <string.h>

static enum vxk_backend backend; /* under test; program's argument */

struct place {
    struct grid_fixture *f;
    struct vx_map *map;
    struct vx_map_params p;
};

static struct place open_place(void)
{
    struct place s = {.p = {.voxel_size_m = 0.1, .esdf_max_distance_m = 1, .truncation_voxels = 3}};

    s.f = grid_fixture_create(backend, 2, &s.p, 0);
    s.map = grid_fixture_map(s.f);
    return s;
}
static void close_place(struct place *s)
{
    ck_assert_uint_eq(grid_fixture_destroy(s->f), 0);
}
static uint32_t state_at(const struct place *s, const int32_t v[3])
{
    uint32_t value = 0;
    const int kind = grid_fixture_get(s->f, v[0], v[1], v[2], &value);

    return vxk_evidence(kind, value, 0);
}

/* A wall across 24^3 voxels, free space, and voxels that nobody saw: the same from every corner on. */
static void fill(const struct place *s, const int32_t corner[3])
{
    uint64_t seed = 31;

    for (int32_t k = 0; k < 24 * 24 * 24; k++) {
        const int32_t x = k / 576, y = k / 24 % 24, z = k % 24;
        const int kind = grid_fixture_uniform(&seed, 0, 1) < 0.1 ? VXK_UNKNOWN
                         : x > 8 && x < 15                       ? VXK_ACTIVE
                                                                 : VXK_FREE;
        grid_fixture_set(s->f, corner[0] + x, corner[1] + y, corner[2] + z, kind,
                         vxk_tsdf_pack((int32_t)(9000 * (11.3 - x)), 3));
    }
}

/* Every kind of question at one place, `at` in voxels; what it says of the place is returned. */
struct everything {
    struct vx_point_answer point, sphere;
    struct vx_ray_answer ray[6];
    struct vx_box_answer box;
    struct vx_path_answer path;
    struct vx_slice_cell cell;
    struct vx_explanation why;
    float unknown_m;
};
static struct everything ask_everything(const struct place *s, const double at[3], float radius_m)
{
    static const float ray[6][6] = {{0, 0, 0, 1, 0, 0},  {0, 0, 0, -1, 0, 0}, {0, 0, 0, 0, 1, 0},
                                    {0, 0, 0, 0, -1, 0}, {0, 0, 0, 0, 0, 1},  {0, 0, 0, 0, 0, -1}};
    const float zero[3] = {0, 0, 0}, sphere[4] = {0, 0, 0, radius_m},
                box[6] = {-0.05f, -0.05f, -0.05f, 0.05f, 0.05f, 0.05f},
                pose[2][7] = {{-0.1f, 0, 0, 0, 0, 0, 1}, {0.1f, 0, 0, 0, 0, 0, 1}};
    const struct vx_paths robot = {.spheres = sphere, .n_spheres = 1, .n_waypoints = 2};
    const struct vx_slice slice = {.n_x = 1, .n_y = 1};
    struct vx_detail detail;
    struct everything e;
    double origin[3];

    for (int a = 0; a < 3; a++)
        origin[a] = s->p.origin_m[a] + at[a] * s->p.voxel_size_m;
    memset(&e, 0, sizeof e);
    ck_assert_int_eq(vx_query_points(s->map, NULL, origin, zero, 1, &e.point, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_spheres(s->map, NULL, origin, sphere, 1, &e.sphere, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_rays(s->map, NULL, origin, ray[0], 6, 3, e.ray, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_boxes(s->map, NULL, origin, box, 1, &e.box, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_paths(s->map, NULL, origin, &robot, pose[0], 1, &e.path, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_slice(s->map, NULL, origin, &slice, &e.cell, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_explain(s->map, NULL, origin, zero, 1, &e.why, NULL, &detail), VX_OK);
    ck_assert_int_eq(vx_query_unknown(s->map, NULL, origin, zero, 1, &e.unknown_m, NULL, &detail), VX_OK);
    return e;
}

/* On the corner of eight chunks, to the voxel and by an ulp beside it: the voxel that holds the place says
 * what it is, and the same map away from chunk corners says the same. */
START_TEST(chunk_corner)
{
    const int32_t corner[2][3] = {{116, 116, -12},
                                  {20, 20, 20}}; /* the middle lies on a corner, and does not */
    static struct everything got[2][27];

    for (int k = 0; k < 2; k++) {
        struct place s = open_place();
        fill(&s, corner[k]);
        grid_fixture_publish(s.f);
        for (int i = 0; i < 27; i++) {
            const double off[3] = {i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1};
            double at[3];
            int32_t v[3];
            for (int a = 0; a < 3; a++) {
                at[a] = corner[k][a] + 12 + off[a] * 0x1p-10;
                v[a] = (int32_t)floor(at[a]);
            }
            got[k][i] = ask_everything(&s, at, 0.23f);
            ck_assert_uint_eq(got[k][i].point.state, state_at(&s, v));
            for (int a = 0; a < 3; a++)
                got[k][i].why.voxel[a] -= corner[k][a];
        }
        close_place(&s);
    }
    for (int i = 0; i < 27; i++) {
        const struct everything *a = &got[0][i], *b = &got[1][i];
        ck_assert_uint_eq(a->point.state, b->point.state);
        ck_assert_uint_eq(a->point.status, b->point.status);
        ck_assert_uint_eq(a->sphere.status, b->sphere.status);
        ck_assert_uint_eq(a->path.status, b->path.status);
        ck_assert_uint_eq(a->box.n_free, b->box.n_free);
        ck_assert_uint_eq(a->box.n_unknown, b->box.n_unknown);
        ck_assert_uint_eq(a->cell.states, b->cell.states);
        ck_assert_uint_eq(a->why.why, b->why.why);
        ck_assert_int_eq(memcmp(a->why.voxel, b->why.voxel, sizeof a->why.voxel), 0);
        if (a->point.status & VX_Q_DISTANCE)
            ck_assert_float_eq_tol(a->point.distance_m, b->point.distance_m, 1e-4f);
        for (int k = 0; k < 6; k++)
            ck_assert_uint_eq(a->ray[k].state, b->ray[k].state);
    }
}
END_TEST

/* In the last voxel of the range and in the first beyond it, on each side: unknown, and never free. */
START_TEST(edge_of_the_range)
{
    const int32_t corner[3] = {0, 0, 0};
    struct place s = open_place();

    fill(&s, corner);
    grid_fixture_publish(s.f);
    for (int k = 0; k < 12; k++) {
        const double side = k % 2 ? 134217728.0 : -134217728.0, in = k % 2 ? -0.5 : 0.5;
        const int beyond = k >= 6;
        double at[3] = {1.5, 2.5, 3.5};
        at[k / 2 % 3] = side + (beyond ? -in : in);
        const struct everything e = ask_everything(&s, at, 0.5f);
        ck_assert_uint_eq(e.point.state, VX_STATE_UNKNOWN);
        ck_assert_uint_eq(e.point.status, beyond ? VX_Q_OUTSIDE : 0);
        ck_assert_uint_eq(e.sphere.status, (beyond ? VX_Q_OUTSIDE : 0) | VX_Q_TOUCHES_UNKNOWN);
        ck_assert(isnan(e.point.distance_m) && isnan(e.sphere.distance_m) && e.unknown_m == 0);
        ck_assert_uint_eq(e.why.why, beyond ? VX_WHY_OUTSIDE : VX_WHY_NEVER_SEEN);
        ck_assert_uint_eq(e.box.n_free + e.box.n_occupied, 0);
        ck_assert(e.box.status == VX_Q_OUTSIDE || !beyond);
        ck_assert_uint_eq(e.path.status & VX_Q_COLLIDES, 0);
        ck_assert(e.path.status != 0);
        if (k / 2 % 3 == 0 || beyond)
            ck_assert_uint_eq(e.path.status & VX_Q_OUTSIDE, VX_Q_OUTSIDE);
        ck_assert(e.cell.cost == VX_COST_UNKNOWN && e.cell.states == 1);
        for (int r = 0; r < 6; r++)
            ck_assert(e.ray[r].state == VX_STATE_UNKNOWN && isnan(e.ray[r].range_m));
    }
    close_place(&s);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("edges");

    backend = grid_fixture_backend(argc, argv);
    tcase_add_test(t, chunk_corner);
    tcase_add_test(t, edge_of_the_range);
    return oracle_run(t);
}
