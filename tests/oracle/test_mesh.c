/* test_mesh.c - marching cubes: closed, oriented, complete, and the same wherever and however it is made. */
#include "grid_fixture.h"
#include "half_edge.h"
#include "mesh_store.h"
#include "oracle_run.h"
#include "random_map.h"
#include "vx/mesh.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum vxk_backend backend; /* under test; program's argument */

static const struct vx_map_params plain = {.voxel_size_m = 0.25, .esdf_max_distance_m = 2.5, .mode = VX_TSDF};

/* A vertex as the edge that it lies on, in voxels of the map, and its place on it. */
struct place {
    int32_t v[3], axis, f;
};

static struct place place_of(const struct vx_mesh *m, const struct vx_map_params *p, uint32_t i)
{
    struct place out = {.axis = -1};

    for (int a = 0; a < 3; a++) {
        double at = ((double)m->vertices[3 * (size_t)i + (size_t)a] + m->origin_m[a] - p->origin_m[a]) /
                        p->voxel_size_m -
                    0.5;
        double units = rint(at * 256);
        ck_assert_msg(fabs(at * 256 - units) < 0.05, "vertex %u is not on an edge: %g", i, at);
        out.v[a] = (int32_t)floor(units / 256);
        if (units - 256.0 * out.v[a] != 0) {
            ck_assert_int_eq(out.axis, -1);
            out.axis = a;
            out.f = (int32_t)(units - 256.0 * out.v[a]);
        }
    }
    ck_assert_int_ge(out.axis, 0);
    return out;
}

/* Fails unless the mesh is a surface. */
static struct half_edge_facts check_topology(const struct vx_mesh *m,
                                             void (*border)(void *, uint32_t, uint32_t), void *context)
{
    struct half_edge_facts facts;
    char words[HALF_EDGE_WORDS];

    ck_assert_msg(
        half_edge_check(m->triangles, m->n_triangles, m->n_vertices, border, context, &facts, words), "%s",
        words);
    return facts;
}

static struct vx_mesh mesh_of(struct grid_fixture *f, uint32_t min_weight)
{
    struct vx_mesh m;
    struct vx_reply reply;
    struct vx_detail detail = {.text = ""};
    vx_err err = vx_mesh_extract(grid_fixture_map(f), NULL, min_weight, &m, &reply, &detail);

    ck_assert_msg(err == VX_OK, "%s: %s", vx_err_name(err), detail.text);
    return m;
}

static double area_and_facing(const struct vx_mesh *m, uint32_t i, const double centre[3])
{
    double p[3][3], n[3], area = 0, out = 0;

    for (int k = 0; k < 3; k++)
        for (int a = 0; a < 3; a++)
            p[k][a] = m->vertices[3 * (size_t)m->triangles[3 * (size_t)i + (size_t)k] + (size_t)a];
    for (int x = 0; x < 3; x++) {
        int y = (x + 1) % 3, z = (x + 2) % 3;
        n[x] = (p[1][y] - p[0][y]) * (p[2][z] - p[0][z]) - (p[1][z] - p[0][z]) * (p[2][y] - p[0][y]);
        area += n[x] * n[x];
        out += n[x] * (p[0][x] + p[1][x] + p[2][x] - 3 * centre[x]);
    }
    ck_assert_msg(area > 0, "triangle %u has no area", i);
    ck_assert_msg(out > 0, "triangle %u faces inwards", i);
    return 0.5 * sqrt(area);
}

START_TEST(ball)
{
    static const double centres[4][3] = {
        {0, 0, 0}, {128.3, 127.6, 129.1}, {-64.2, 300.7, 8.4}, {4.5, 4.5, 4.5}};
    static const double radii[4] = {12.3, 20.7, 9.2, 3.1};
    struct vx_map_params p = plain;
    struct grid_fixture *f;
    struct vx_mesh m;
    struct half_edge_facts t;
    double area = 0, centre[3], r = radii[_i];

    p.origin_m[0] = 5e5;
    p.origin_m[1] = 4e6;
    f = grid_fixture_create(backend, 2, &p, 0);
    random_map_ball(f, centres[_i], r, 4, 2000);
    grid_fixture_publish(f);
    m = mesh_of(f, 0);
    t = check_topology(&m, NULL, NULL);
    ck_assert_uint_eq(t.n_border, 0);
    ck_assert_int_eq((int)t.euler, 2); /* Euler: one closed ball */
    for (int a = 0; a < 3; a++)
        centre[a] = p.origin_m[a] + centres[_i][a] * p.voxel_size_m - m.origin_m[a];
    for (uint32_t i = 0; i < m.n_triangles; i++)
        area += area_and_facing(&m, i, centre);
    r *= p.voxel_size_m;
    ck_assert_double_eq_tol(area, 4 * M_PI * r * r, (r > 1 ? 0.01 : 0.04) * area);
    for (uint32_t i = 0; i < m.n_vertices; i++) {
        double d = 0, dot = 0, n = 0;
        for (int a = 0; a < 3; a++) {
            double x = m.vertices[3 * (size_t)i + (size_t)a] - centre[a],
                   g = m.normals[3 * (size_t)i + (size_t)a];
            d += x * x;
            dot += x * g;
            n += g * g;
        }
        ck_assert_double_eq_tol(n, 1, 1e-5);
        ck_assert_double_gt(dot / sqrt(d), r > 1.5 ? 0.995 : 0.97);
        ck_assert_double_eq_tol(sqrt(d), r, 0.05 * p.voxel_size_m);
    }
    vx_mesh_fini(&m);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* ------------------------------------------------------------------ random maps */

struct world {
    const struct grid_fixture *f;
    const struct vx_mesh *m;
    struct vx_map_params p;
    uint32_t min_weight;
    uint64_t n_vertices;
};

/* -1, 1, or 0 where a voxel does not count. */
static int sign_at(const struct world *w, const int32_t v[3])
{
    uint32_t value;
    int kind = grid_fixture_get(w->f, v[0], v[1], v[2], &value), t = (int16_t)(value & 0xffff);

    if (w->p.mode == VX_OCCUPANCY)
        return kind == VXK_FREE || (kind == VXK_ACTIVE && t < 0) ? 1 : kind == VXK_ACTIVE && t > 0 ? -1 : 0;
    return kind != VXK_ACTIVE || (value >> 16 & 255) < w->min_weight ? 0 : t < 0 ? -1 : 1;
}

/* Case of the cell whose lowest corner is v, or -1 when a corner does not count. */
static int case_at(const struct world *w, const int32_t v[3])
{
    int out = 0;

    for (int c = 0; c < 8; c++) {
        int s = sign_at(w, (int32_t[3]){v[0] + (c >> 2), v[1] + (c >> 1 & 1), v[2] + (c & 1)});
        if (!s)
            return -1;
        out |= (s < 0) << c;
    }
    return out;
}

/* A half edge without an opposite must lie in a face that has a whole cell on one side only. */
static void must_be_border(void *context, uint32_t from, uint32_t to)
{
    struct world *w = context;
    struct place a = place_of(w->m, &w->p, from), b = place_of(w->m, &w->p, to);

    for (int axis = 0; axis < 3; axis++) {
        int y = (axis + 1) % 3, z = (axis + 2) % 3;
        int32_t v[3];
        if (a.axis == axis || b.axis == axis || a.v[axis] != b.v[axis])
            continue;
        v[axis] = a.v[axis];
        v[y] = a.v[y] < b.v[y] ? a.v[y] : b.v[y];
        v[z] = a.v[z] < b.v[z] ? a.v[z] : b.v[z];
        int above = case_at(w, v) >= 0;
        v[axis]--;
        if (above != (case_at(w, v) >= 0))
            return;
    }
    ck_abort_msg("a crack between vertices %u and %u", from, to);
}

/* Vertices that voxel (x, y, z) must own: crossings with a whole cell around them. */
static void count_vertices(void *context, int32_t x, int32_t y, int32_t z, int kind, uint32_t value)
{
    struct world *w = context;
    int32_t v[3] = {x, y, z};
    int here = sign_at(w, v);

    (void)kind;
    (void)value;
    for (int a = 0; here && a < 3; a++) {
        int32_t u[3] = {x + (a == 0), y + (a == 1), z + (a == 2)};
        int there = sign_at(w, u), whole = 0;
        if (!there || there == here)
            continue;
        for (int k = 0; k < 4; k++) {
            int32_t c[3] = {x, y, z};
            c[(a + 1) % 3] -= k >> 1;
            c[(a + 2) % 3] -= k & 1;
            whole |= case_at(w, c) >= 0;
        }
        w->n_vertices += (uint64_t)whole;
    }
}

static const struct {
    int32_t corner[3], size;
    int style, occupancy;
    uint32_t min_weight;
} randoms[] = {
    {{-9, -9, -9}, 22, 0, 0, 1}, {{119, 117, 121}, 20, 2, 0, 1}, {{-140, 120, 1000}, 30, 2, 0, 3},
    {{0, 0, 0}, 17, 0, 1, 1},    {{116, -5, 110}, 34, 1, 1, 1},  {{-134217728, 134217712, 5}, 16, 2, 0, 1},
};

START_TEST(random_signs)
{
    struct vx_map_params p = plain;
    struct grid_fixture *f;
    struct vx_mesh m;
    uint64_t seed = 900 + (uint64_t)_i;

    p.mode = randoms[_i].occupancy ? VX_OCCUPANCY : VX_TSDF;
    f = grid_fixture_create(backend, 2, &p, 0);
    random_map_fill(f, &seed, randoms[_i].corner, randoms[_i].size, randoms[_i].style);
    grid_fixture_publish(f);
    m = mesh_of(f, randoms[_i].min_weight);
    struct world w = {.f = f, .m = &m, .p = p, .min_weight = randoms[_i].min_weight};
    ck_assert_uint_gt(m.n_triangles, 20);
    (void)check_topology(&m, must_be_border, &w);
    grid_fixture_each(f, count_vertices, &w);
    ck_assert_uint_eq(w.n_vertices, m.n_vertices);
    for (uint32_t i = 0; i < m.n_vertices; i++) {
        struct place at = place_of(&m, &p, i);
        int32_t up[3] = {at.v[0] + (at.axis == 0), at.v[1] + (at.axis == 1), at.v[2] + (at.axis == 2)};
        uint32_t a, b;
        double ta, tb, want;
        grid_fixture_get(f, at.v[0], at.v[1], at.v[2], &a);
        grid_fixture_get(f, up[0], up[1], up[2], &b);
        ta = (int16_t)(a & 0xffff);
        tb = (int16_t)(b & 0xffff);
        want = randoms[_i].occupancy ? 128 : floor(256 * fabs(ta) / fabs(ta - tb) + 0.5);
        want = want < 1 ? 1 : want > 255 ? 255 : want;
        ck_assert_int_eq(at.f, (int)want);
        ck_assert_int_eq(sign_at(&w, at.v) * sign_at(&w, up), -1);
    }
    vx_mesh_fini(&m);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* ------------------------------------------------------------------ sameness */

static int same(const struct vx_mesh *a, const struct vx_mesh *b)
{
    return a->n_vertices == b->n_vertices && a->n_triangles == b->n_triangles &&
           memcmp(a->origin_m, b->origin_m, sizeof a->origin_m) == 0 &&
           memcmp(a->vertices, b->vertices, a->n_vertices * 3ull * sizeof(float)) == 0 &&
           memcmp(a->normals, b->normals, a->n_vertices * 3ull * sizeof(float)) == 0 &&
           memcmp(a->triangles, b->triangles, a->n_triangles * 3ull * sizeof(uint32_t)) == 0;
}

static int same_chunks(const struct vx_mesh_chunks *a, const struct vx_mesh_chunks *b)
{
    return a->n_chunks == b->n_chunks && a->body_bytes == b->body_bytes &&
           memcmp(a->body, b->body, a->body_bytes) == 0;
}

static void fill_twice(struct grid_fixture *f)
{
    uint64_t seed = 31;

    random_map_fill(f, &seed, (int32_t[3]){-20, 90, -33}, 56, 2);
    random_map_fill(f, &seed, (int32_t[3]){500, 90, -33}, 40, 0);
    grid_fixture_publish(f);
}

START_TEST(same_everywhere)
{
    const struct {
        enum vxk_backend backend;
        int threads;
    } on[3] = {{backend, 1}, {VXK_CPU, 2}, {VXK_GUARD, 2}};
    struct grid_fixture *f[3];
    struct vx_mesh m[4];
    struct vx_mesh_since since = {.epoch = 0};
    struct vx_mesh_chunks c[4];

    for (int i = 0; i < 3; i++) {
        f[i] = grid_fixture_create(on[i].backend, on[i].threads, &plain, 0);
        fill_twice(f[i]);
        m[i] = mesh_of(f[i], 0);
        ck_assert(same(&m[0], &m[i]));
        ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f[i]), NULL, &since, &c[i], NULL, NULL), VX_OK);
        ck_assert(same_chunks(&c[0], &c[i]));
        if (i == 0) { /* with room for a part only, in batches */
            grid_fixture_set_cap(f[i], grid_fixture_peak(f[i]) / 3);
            m[3] = mesh_of(f[i], 0);
            ck_assert(same(&m[0], &m[3]));
            ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f[i]), NULL, &since, &c[3], NULL, NULL),
                             VX_OK);
            ck_assert(same_chunks(&c[0], &c[3]));
        }
    }
    ck_assert_uint_gt(m[0].n_triangles, 10000);
    for (int i = 0; i < 4; i++) {
        vx_mesh_fini(&m[i]);
        vx_mesh_chunks_fini(&c[i]);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(grid_fixture_destroy(f[i]), 0);
}
END_TEST

/* A triangle by the places of its corners, the smallest first, and the normals there. */
struct corner {
    struct place at;
    float n[3];
};
struct triangle {
    struct corner c[3];
};
static int by_place(const struct place *a, const struct place *b)
{
    return memcmp(a, b, sizeof *a);
}
static int by_triangle(const void *a, const void *b)
{
    const struct triangle *p = a, *q = b;

    for (int k = 0; k < 3; k++) {
        int d = by_place(&p->c[k].at, &q->c[k].at);
        if (d)
            return d;
    }
    return 0;
}
static struct triangle *triangles_of(const struct vx_mesh *m, const struct vx_map_params *p,
                                     const int32_t shift[3])
{
    struct triangle *out = calloc(m->n_triangles + 1, sizeof *out);

    ck_assert_ptr_nonnull(out);
    for (uint32_t i = 0; i < m->n_triangles; i++) {
        struct corner c[3];
        int first = 0;
        for (int k = 0; k < 3; k++) {
            uint32_t v = m->triangles[3 * (size_t)i + (size_t)k];
            c[k].at = place_of(m, p, v);
            for (int a = 0; a < 3; a++)
                c[k].at.v[a] -= shift[a];
            memcpy(c[k].n, m->normals + 3 * (size_t)v, sizeof c[k].n);
            if (by_place(&c[k].at, &c[first].at) < 0)
                first = k;
        }
        for (int k = 0; k < 3; k++)
            out[i].c[k] = c[(first + k) % 3];
    }
    qsort(out, m->n_triangles, sizeof *out, by_triangle);
    return out;
}

START_TEST(shift_changes_nothing)
{
    static const int32_t shifts[3][3] = {{3, -5, 1}, {128, 64, -121}, {-1000, 7, 12345}};
    static const int32_t none[3] = {0, 0, 0}, corner[3] = {-13, -9, 118};
    struct triangle *first = NULL, *now;
    uint32_t n = 0;

    for (int i = -1; i < 3; i++) {
        const int32_t *s = i < 0 ? none : shifts[i];
        struct grid_fixture *f = grid_fixture_create(backend, 2, &plain, 0),
                            *g = grid_fixture_create(VXK_CPU, 1, &plain, 0);
        uint64_t seed = 4;
        struct vx_mesh m;
        random_map_fill(g, &seed, corner, 26, 2); /* read here, copied with the shift */
        for (int32_t x = -13; x < 13; x++)
            for (int32_t y = -9; y < 17; y++)
                for (int32_t z = 118; z < 144; z++) {
                    uint32_t v;
                    int kind = grid_fixture_get(g, x, y, z, &v);
                    grid_fixture_set(f, x + s[0], y + s[1], z + s[2], kind, v);
                }
        grid_fixture_publish(f);
        m = mesh_of(f, 0);
        now = triangles_of(&m, &plain, s);
        if (!first) {
            first = now;
            n = m.n_triangles;
            ck_assert_uint_gt(n, 500);
        } else {
            ck_assert_uint_eq(m.n_triangles, n);
            ck_assert_int_eq(memcmp(first, now, n * sizeof *now), 0);
            free(now);
        }
        vx_mesh_fini(&m);
        ck_assert_uint_eq(grid_fixture_destroy(f), 0);
        grid_fixture_destroy(g);
    }
    free(first);
}
END_TEST

/* Chunks made alone are what they are among all; welded they are the whole mesh. */
START_TEST(chunks_alone)
{
    struct vx_map_params p = plain;
    struct grid_fixture *f;
    struct vx_mesh_since since = {.min_weight = randoms[_i].min_weight};
    struct vx_mesh_chunks all, one;
    struct mesh_store store = {.n = 0}, alone = {.n = 0};
    struct mesh_welded welded;
    char words[MESH_STORE_WORDS];
    struct vx_mesh m;
    uint64_t seed = 900 + (uint64_t)_i;
    int32_t chunk[3];

    p.mode = randoms[_i].occupancy ? VX_OCCUPANCY : VX_TSDF;
    f = grid_fixture_create(backend, 2, &p, 0);
    random_map_fill(f, &seed, randoms[_i].corner, randoms[_i].size, randoms[_i].style);
    grid_fixture_publish(f);
    m = mesh_of(f, randoms[_i].min_weight);
    ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f), NULL, &since, &all, NULL, NULL), VX_OK);
    ck_assert_msg(mesh_store_apply(&store, all.body, all.body_bytes, all.n_chunks, all.complete, words), "%s",
                  words);
    mesh_store_weld(&store, &welded);
    ck_assert_uint_eq(welded.n_vertices, m.n_vertices);
    ck_assert_uint_eq(welded.n_triangles, m.n_triangles);
    since.has_region = true;
    for (size_t i = 0; i < store.n; i++) {
        for (int a = 0; a < 3; a++)
            since.min_m[a] = since.max_m[a] =
                p.origin_m[a] + (store.pieces[i].chunk[a] + 0.5) * 128 * p.voxel_size_m;
        ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f), NULL, &since, &one, NULL, NULL), VX_OK);
        ck_assert_uint_eq(one.n_chunks, 1);
        ck_assert_msg(mesh_store_apply(&alone, one.body, one.body_bytes, 1, i == 0, words), "%s", words);
        vx_mesh_chunks_fini(&one);
    }
    ck_assert_msg(mesh_store_same(&store, &alone, chunk), "chunk %d %d %d is another one when made alone",
                  chunk[0], chunk[1], chunk[2]);
    vx_mesh_chunks_fini(&all);
    vx_mesh_fini(&m);
    mesh_welded_fini(&welded);
    mesh_store_fini(&store);
    mesh_store_fini(&alone);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* One voxel changes where words and chunks meet, with only some of the eight cells around there: whoever has
 * the mesh from before and takes in what is named has what he would get anew. */
START_TEST(one_voxel_at_a_border)
{
    const int n_trials = backend == VXK_CPU ? 3000 : 300;
    struct vx_map_params p = plain;
    struct grid_fixture *f;
    uint64_t seed = 4000 + (uint64_t)_i;
    uint32_t n_elsewhere = 0;

    p.mode = _i ? VX_OCCUPANCY : VX_TSDF;
    f = grid_fixture_create(backend, 2, &p, 0);
    for (int trial = 0; trial < n_trials; trial++) {
        const int border = trial % 3; /* axis */
        struct mesh_store kept = {.n = 0}, anew = {.n = 0};
        struct vx_mesh_since since = {.epoch = 0};
        struct vx_mesh_chunks c;
        char words[MESH_STORE_WORDS];
        int32_t corner[3], v[3], chunk[3];
        struct vx_reply reply;
        uint32_t octants = (uint32_t)(grid_fixture_random(&seed) & grid_fixture_random(&seed)) & 255;

        for (int a = 0; a < 3; a++) /* corners of words, and of chunks along one axis at least */
            corner[a] = (a == border ? 128 : 32) * (int32_t)(grid_fixture_random(&seed) % 4 - 1);
        grid_fixture_clear(f);
        octants |= 1u << trial % 8;
        for (int32_t k = 0; k < 512; k++) {
            const int32_t d[3] = {k / 64 - 4, k / 8 % 8 - 4, k % 8 - 4};
            const uint32_t octant = (d[0] >= 0) << 2 | (d[1] >= 0) << 1 | (d[2] >= 0);
            if (octants >> octant & 1 && grid_fixture_uniform(&seed, 0, 1) < 0.95)
                grid_fixture_set(f, corner[0] + d[0], corner[1] + d[1], corner[2] + d[2], VXK_ACTIVE,
                                 vxk_tsdf_pack((int32_t)grid_fixture_uniform(&seed, -20000, 20000), 3));
        }
        grid_fixture_publish(f);
        grid_fixture_date(f);
        ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f), NULL, &since, &c, &reply, NULL), VX_OK);
        ck_assert(mesh_store_apply(&kept, c.body, c.body_bytes, c.n_chunks, c.complete, words));
        vx_mesh_chunks_fini(&c);

        for (int a = 0; a < 3; a++)
            v[a] = corner[a] + (int32_t)(grid_fixture_random(&seed) % 4) - 2;
        grid_fixture_set(f, v[0], v[1], v[2], VXK_ACTIVE,
                         vxk_tsdf_pack((int32_t)grid_fixture_uniform(&seed, -20000, 20000), 2));
        grid_fixture_publish(f);
        since.epoch = reply.epoch;
        ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f), NULL, &since, &c, NULL, NULL), VX_OK);
        ck_assert(!c.complete);
        ck_assert(mesh_store_apply(&kept, c.body, c.body_bytes, c.n_chunks, c.complete, words));
        n_elsewhere += c.n_chunks > 1;
        vx_mesh_chunks_fini(&c);
        since.epoch = 0;
        ck_assert_int_eq(vx_mesh_get_chunks(grid_fixture_map(f), NULL, &since, &c, NULL, NULL), VX_OK);
        ck_assert(mesh_store_apply(&anew, c.body, c.body_bytes, c.n_chunks, c.complete, words));
        vx_mesh_chunks_fini(&c);
        ck_assert_msg(mesh_store_same(&kept, &anew, chunk),
                      "trial %d: voxel %d %d %d changed, octants %x round %d %d %d, and the mesh of chunk "
                      "%d %d %d was not named",
                      trial, v[0], v[1], v[2], octants, corner[0], corner[1], corner[2], chunk[0], chunk[1],
                      chunk[2]);
        mesh_store_fini(&kept);
        mesh_store_fini(&anew);
    }
    ck_assert_uint_gt(n_elsewhere, (uint32_t)n_trials / 4);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

START_TEST(refusals)
{
    struct grid_fixture *f = grid_fixture_create(backend, 2, &plain, 0);
    struct vx_query_options future = {.min_epoch = 99};
    struct vx_detail detail;
    struct vx_mesh m;

    grid_fixture_publish(f);
    m = mesh_of(f, 0);
    ck_assert_uint_eq(m.n_vertices + m.n_triangles, 0);
    vx_mesh_fini(&m);
    fill_twice(f);
    ck_assert_int_eq(vx_mesh_extract(grid_fixture_map(f), &future, 0, &m, NULL, &detail), VX_E_STALE);
    grid_fixture_set_cap(f, 100000);
    ck_assert_int_eq(vx_mesh_extract(grid_fixture_map(f), NULL, 0, &m, NULL, &detail), VX_E_EXHAUSTED);
    ck_assert_uint_eq(m.n_vertices + m.n_triangles, 0);
    ck_assert_ptr_null(m.vertices);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("mesh");

    backend = grid_fixture_backend(argc, argv);
    tcase_add_loop_test(t, ball, 0, 4);
    tcase_add_loop_test(t, random_signs, 0, (int)(sizeof randoms / sizeof *randoms));
    tcase_add_loop_test(t, one_voxel_at_a_border, 0, 2);
    tcase_add_loop_test(t, chunks_alone, 0, (int)(sizeof randoms / sizeof *randoms));
    tcase_add_test(t, same_everywhere);
    tcase_add_test(t, shift_changes_nothing);
    tcase_add_test(t, refusals);
    return oracle_run(t);
}
