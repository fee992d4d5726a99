/* Colour and labels of a map: their pages, who sees them, what maps without them pay. */
#include "core_test.h"

#include "vx/mesh.h"
#include "vx/nvdb.h"
#include "vx/tint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A random frame with colours and labels, and an intensity for LiDAR now and then. */
struct painted {
    struct test_frame t;
    uint8_t *colour, *label;
    float *intensity;
};

static void painted_init(struct painted *p, uint64_t *seed, double reach_m)
{
    const double at[3] = {0, 0, 0};
    test_any_frame(&p->t, seed, reach_m, at, reach_m / 8);
    const uint32_t n = p->t.f.width * p->t.f.height;
    p->colour = malloc(3 * (size_t)n);
    p->label = malloc(n);
    p->intensity = malloc(n * sizeof *p->intensity);
    ck_assert(p->colour && p->label && p->intensity);
    for (uint32_t i = 0; i < 3 * n; i++)
        p->colour[i] = (uint8_t)test_random(seed);
    for (uint32_t i = 0; i < n; i++) {
        p->label[i] = (uint8_t)(test_random(seed) % 5);
        p->intensity[i] = test_random(seed) % 16 ? (float)test_uniform(seed, -10, 300) : NAN;
    }
    p->t.f.colour = p->colour;
    p->t.f.label = p->label;
    p->t.f.stamp_ns = (int64_t)(test_random(seed) % 1000) * 1000000;
    if (p->t.f.sensor != VX_DEPTH && test_random(seed) % 2) {
        p->t.f.colour = NULL;
        p->t.f.intensity = p->intensity;
        p->t.f.intensity_white = 200;
    }
}

static void painted_fini(struct painted *p)
{
    test_frame_fini(&p->t);
    free(p->colour);
    free(p->label);
    free(p->intensity);
}

static struct vx_map_params params_with(double voxel_m, enum vx_mode mode, bool colour, bool label)
{
    struct vx_map_params p = test_params(voxel_m, mode);
    p.colour = colour;
    p.label = label;
    return p;
}

static struct vx_device *one_thread(void)
{
    struct vx_device_params p = {.backend = VXK_CPU, .n_threads = 1, .cap_bytes = 512 << 20};
    struct vx_device *d;
    ck_ok(vx_device_open(&p, &d, NULL));
    return d;
}

/* ------------------------------------------------------------------ the same bytes everywhere */

START_TEST(equal)
{
    struct vx_device *d[2] = {one_thread(), test_device(512 << 20)};
    struct vx_map_params p = params_with(0.1, _i & 1 ? VX_OCCUPANCY : VX_TSDF, _i % 3 != 1, _i % 3 != 2);
    struct vx_map *m[2];
    uint64_t seed = test_seed + (uint64_t)_i;
    struct vx_region ball = {.ball = true, .centre_m = {1, 0, 0}, .radius_m = 1.5};
    if (_i >= 3)
        p.half_life_s = 0.2;
    p.decay_spares_seen = _i == 4;
    for (int k = 0; k < 2; k++) {
        m[k] = test_map(d[k], &p);
        if (_i == 5)
            ck_ok(vx_map_protect(m[k], &ball, NULL));
    }
    for (uint32_t i = 0; i < 12; i++) {
        struct vx_frame_result r;
        uint8_t digest[2][32];
        struct painted f;
        painted_init(&f, &seed, 4);
        f.t.f.stamp_ns = i * 50000000ll;
        if (f.t.f.sensor == VX_DEPTH && i % 2) { /* through a bent lens */
            f.t.f.distortion[0] = 0.08;
            f.t.f.distortion[2] = -0.003;
        }
        if (i % 5 == 4) { /* brings nothing */
            f.t.f.colour = f.t.f.label = NULL;
            f.t.f.intensity = NULL;
        }
        for (int k = 0; k < 2; k++) {
            ck_ok(vx_map_integrate(m[k], &f.t.f, &r, NULL));
            ck_ok(vx_map_digest(m[k], digest[k], NULL));
        }
        ck_assert_mem_eq(digest[0], digest[1], 32);
        painted_fini(&f);
    }
    ck_device(d[1], &m[1], 1, "after frames with colours");
    for (int k = 0; k < 2; k++) {
        vx_map_destroy(m[k]);
        vx_device_close(d[k]);
    }
}
END_TEST

/* ------------------------------------------------------------------ beside the geometry */

/* A map with channels has the geometry of one without; one without is what it would be without the channels'
 * bytes, and says that they are not used. */
START_TEST(geometry)
{
    struct vx_device *d[3]; /* each its own, so that launches can be compared */
    const enum vx_mode mode = _i & 1 ? VX_OCCUPANCY : VX_TSDF;
    struct vx_map_params p[3] = {params_with(0.1, mode, true, true), params_with(0.1, mode, false, false),
                                 params_with(0.1, mode, false, false)};
    struct vx_map *m[3];
    struct map_walk *w[3];
    uint64_t seed = test_seed + (uint64_t)_i, n_colours = 0, n_labels = 0;
    uint8_t digest[3][32];
    for (int k = 0; k < 3; k++) {
        d[k] = test_device(256 << 20);
        m[k] = test_map(d[k], &p[k]);
    }
    for (int i = 0; i < 8; i++) {
        struct vx_frame_result r[3];
        struct painted f;
        painted_init(&f, &seed, 4);
        for (int k = 0; k < 3; k++) {
            struct vx_frame bare = f.t.f;
            if (k == 2) {
                bare.colour = bare.label = NULL;
                bare.intensity = NULL;
            }
            ck_ok(vx_map_integrate(m[k], &bare, &r[k], NULL));
        }
        ck_assert_uint_eq(r[0].warnings & VX_WARN_UNUSED_CHANNEL, 0);
        ck_assert_uint_ne(r[1].warnings & VX_WARN_UNUSED_CHANNEL, 0);
        ck_assert_uint_eq(r[2].warnings & VX_WARN_UNUSED_CHANNEL, 0);
        ck_assert_uint_eq(r[1].n_launches, r[2].n_launches);
        ck_assert_uint_eq(r[1].grown_bytes, r[2].grown_bytes);
        painted_fini(&f);
    }
    for (int k = 0; k < 3; k++) {
        ck_ok(vx_map_digest(m[k], digest[k], NULL));
        w[k] = map_walk_newest(m[k]);
        ck_assert_str_eq(w[k]->fault, "");
    }
    ck_assert_mem_eq(digest[1], digest[2], 32);
    ck_assert(memcmp(digest[0], digest[1], 32) != 0);
    ck_assert_uint_eq(w[0]->n_leaves, w[1]->n_leaves);
    for (uint32_t l = 0; l < w[0]->n_leaves; l++) {
        const struct walk_leaf *a = &w[0]->leaves[l], *b = &w[1]->leaves[l];
        ck_assert_mem_eq(a->active, b->active, sizeof a->active);
        ck_assert_mem_eq(a->free, b->free, sizeof a->free);
        ck_assert_mem_eq(a->value, b->value, sizeof a->value);
        for (int v = 0; v < 512; v++) {
            n_colours += a->colour[v] != 0;
            n_labels += a->label[v] != 0;
        }
    }
    ck_assert_uint_gt(n_colours, 1000);
    ck_assert_uint_gt(n_labels, 1000);
    for (int k = 0; k < 3; k++) {
        map_walk_free(w[k]);
        vx_map_destroy(m[k]);
        vx_device_close(d[k]);
    }
}
END_TEST

/* ------------------------------------------------------------------ memory */

static uint64_t device_used(struct vx_device *d)
{
    struct vx_device_stats s;
    vx_device_get_stats(d, &s);
    return s.used_bytes;
}

START_TEST(memory)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = params_with(0.05, VX_TSDF, _i != 1, _i != 2);
    const uint64_t before = device_used(d);
    struct vx_map_params bare = params_with(0.05, VX_TSDF, _i == 1, false);
    struct vx_map *map = test_map(d, &p), *beside = test_map(d, &bare), *const both[2] = {map, beside};
    struct vx__snapshot pinned;
    struct map_walk *w[2] = {NULL, NULL};
    struct vx_map_info info;
    uint64_t seed = test_seed + (uint64_t)_i;
    for (int i = 0; i < 10; i++) {
        struct vx_frame_result r;
        struct painted f;
        if (i == 5) { /* what a reader sees must not change under it */
            ck_ok(vx__snapshot_pin(map, &pinned));
            w[0] = map_walk_snapshot(map, &pinned);
        }
        painted_init(&f, &seed, 3);
        ck_ok(vx_map_integrate(map, &f.t.f, &r, NULL));
        ck_ok(vx_map_integrate(beside, &f.t.f, &r, NULL));
        painted_fini(&f);
        ck_device(d, both, 2, "while they grow");
    }
    w[1] = map_walk_snapshot(map, &pinned);
    ck_assert_str_eq(w[1]->fault, "");
    ck_assert_mem_eq(w[0]->digest, w[1]->digest, 32);
    vx__snapshot_release(map, &pinned);
    for (int k = 0; k < 2; k++)
        map_walk_free(w[k]);
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.memory.colour_bytes, p.colour ? info.memory.values_bytes : 0);
    ck_assert_uint_eq(info.memory.label_bytes, p.label ? info.memory.values_bytes / 2 : 0);
    ck_assert_uint_eq(info.used_bytes, info.memory.topology_bytes + info.memory.values_bytes +
                                           info.memory.colour_bytes + info.memory.label_bytes);
    ck_ok(vx_map_clear(map));
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.used_bytes, 0);
    ck_assert_uint_eq(info.memory.retired_bytes, 0);
    ck_device(d, both, 2, "after a clear");
    vx_map_destroy(map);
    vx_map_destroy(beside);
    ck_assert_uint_eq(device_used(d), before);
    vx_device_close(d);
}
END_TEST

/* A device that is full refuses the frame and the map stays as it was. */
START_TEST(full)
{
    struct vx_device *d = test_device(24 << 20);
    struct vx_map_params p = params_with(0.01, VX_TSDF, true, true);
    p.frame_budget_bytes = 1 << 30;
    struct vx_map *map = test_map(d, &p);
    uint64_t seed = test_seed;
    vx_err err = VX_OK;
    for (int i = 0; i < 200 && err == VX_OK; i++) {
        struct vx_frame_result r;
        uint8_t before[32], after[32];
        struct painted f;
        struct vx_detail detail = {0};
        painted_init(&f, &seed, 2);
        for (int k = 0; k < 3; k++)
            f.t.f.pose[0].position_m[k] += test_uniform(&seed, -20, 20);
        ck_ok(vx_map_digest(map, before, NULL));
        err = vx_map_integrate(map, &f.t.f, &r, &detail);
        if (err != VX_OK) {
            ck_assert_int_eq(err, VX_E_EXHAUSTED);
            ck_assert_str_eq(detail.field, "memory_cap_bytes");
            ck_ok(vx_map_digest(map, after, NULL));
            ck_assert_mem_eq(before, after, 32);
        }
        painted_fini(&f);
    }
    ck_assert_int_eq(err, VX_E_EXHAUSTED);
    ck_device(d, &map, 1, "when full");
    ck_ok(vx_map_clear(map));
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* Decay takes colour with the voxel: nothing of it is left when the voxels are gone, and one that comes back
 * begins anew. */
START_TEST(decay)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = params_with(0.1, VX_TSDF, true, true);
    struct vx_map *map;
    struct vx_map_info info;
    struct vx_frame_result r;
    struct painted f, blank;
    uint64_t seed = test_seed;
    p.half_life_s = 0.1;
    map = test_map(d, &p);
    do
        painted_init(&f, &seed, 3);
    while (f.t.f.sensor != VX_DEPTH && (painted_fini(&f), true));
    f.t.f.stamp_ns = 0;
    ck_ok(vx_map_integrate(map, &f.t.f, &r, NULL));
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_gt(info.memory.colour_bytes, 0);
    blank = f;
    blank.t.data = malloc(f.t.f.data_bytes);
    memset(blank.t.data, 0, f.t.f.data_bytes); /* sees nothing: only time passes */
    blank.t.f.data = blank.t.data;
    for (int i = 1; i < 60; i++) {
        blank.t.f.stamp_ns = i * 50000000ll;
        ck_ok(vx_map_integrate(map, &blank.t.f, &r, NULL));
    }
    ck_ok(vx_map_get_info(map, &info));
    ck_assert_uint_eq(info.n_voxels, 0);
    ck_assert_uint_eq(info.memory.colour_bytes, 0);
    ck_assert_uint_eq(info.memory.label_bytes, 0);
    ck_device(d, &map, 1, "after decay");
    f.t.f.stamp_ns = 60 * 50000000ll;
    ck_ok(vx_map_integrate(map, &f.t.f, &r, NULL));
    {
        struct map_walk *w = map_walk_newest(map);
        for (uint32_t l = 0; l < w->n_leaves; l++)
            for (int v = 0; v < 512; v++)
                ck_assert_uint_le(w->leaves[l].colour[v] >> 27, 4); /* one observation's weight */
        map_walk_free(w);
    }
    free(blank.t.data);
    painted_fini(&f);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* Frames without colours keep what they see alive, and so its colours. */
START_TEST(spared)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = params_with(0.1, VX_TSDF, true, true);
    struct vx_map *map;
    struct vx_frame_result r;
    struct map_walk *w[2];
    struct painted f;
    uint64_t seed = test_seed, n = 0;
    p.half_life_s = 0.1;
    p.decay_spares_seen = true;
    map = test_map(d, &p);
    do
        painted_init(&f, &seed, 3);
    while (f.t.f.sensor != (_i ? VX_RANGE : VX_DEPTH) && (painted_fini(&f), true));
    f.t.f.intensity = NULL;
    f.t.f.colour = f.colour;
    f.t.f.stamp_ns = 0;
    ck_ok(vx_map_integrate(map, &f.t.f, &r, NULL));
    w[0] = map_walk_newest(map);
    f.t.f.colour = f.t.f.label = NULL;
    for (int i = 1; i < 40; i++) {
        f.t.f.stamp_ns = i * 50000000ll;
        ck_ok(vx_map_integrate(map, &f.t.f, &r, NULL));
    }
    w[1] = map_walk_newest(map);
    ck_assert_str_eq(w[1]->fault, "");
    for (uint32_t l = 0; l < w[0]->n_leaves; l++) {
        const struct walk_leaf *a = &w[0]->leaves[l], *b = w[1]->leaves;
        for (uint32_t k = 0; k < w[1]->n_leaves && memcmp(b->at, a->at, sizeof a->at); k++)
            b++;
        for (int v = 0; v < 512 && !memcmp(b->at, a->at, sizeof a->at); v++) {
            if (!(a->active[v >> 6] & b->active[v >> 6] & 1ull << (v & 63)) || !a->colour[v])
                continue;
            ck_assert_uint_eq(b->colour[v], a->colour[v]);
            ck_assert_uint_eq(b->label[v], a->label[v]);
            n++;
        }
    }
    ck_assert_uint_gt(n, 300);
    for (int k = 0; k < 2; k++)
        map_walk_free(w[k]);
    painted_fini(&f);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ readers */

/* A wall whose left half is red with label 7 and whose right half is blue with label 9. */
static struct vx_map *two_colours(struct vx_device *d, const struct vx_map_params *p)
{
    enum { W = 64, H = 48 };
    static float depth[W * H];
    static uint8_t colour[3 * W * H], label[W * H];
    struct vx_map *map = test_map(d, p);
    struct vx_frame_result r;
    struct vx_frame f = {.sensor = VX_DEPTH,
                         .n_poses = 1,
                         .pose[0].rotation_xyzw[3] = 1,
                         .width = W,
                         .height = H,
                         .fx = 60,
                         .fy = 60,
                         .cx = 31.5,
                         .cy = 23.5,
                         .data = depth,
                         .data_bytes = sizeof depth,
                         .no_return_value = NAN,
                         .colour = colour,
                         .label = label};
    for (int i = 0; i < W * H; i++) {
        const bool left = i % W < W / 2;
        depth[i] = 1.52f;
        colour[3 * i] = left ? 200 : 10;
        colour[3 * i + 1] = 20;
        colour[3 * i + 2] = left ? 10 : 220;
        label[i] = left ? 7 : 9;
    }
    for (int i = 0; i < 3; i++)
        ck_ok(vx_map_integrate(map, &f, &r, NULL));
    return map;
}

START_TEST(tints)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = params_with(0.05, VX_TSDF, _i != 1, _i != 2);
    struct vx_map *map = two_colours(d, &p);
    static const double origin[3] = {0, 0, 0};
    /* left, right, between the voxels of both, in the air, not finite */
    static const float points[5][3] = {
        {-0.3f, 0.1f, 1.52f}, {0.3f, -0.1f, 1.52f}, {0, 0.025f, 1.525f}, {0, 0, 0.5f}, {NAN, 0, 0}};
    struct vx_tint t[5];
    struct vx_mesh mesh;
    struct vx_reply reply;
    ck_ok(vx_query_tints(map, NULL, origin, points[0], 5, t, &reply, NULL));
    ck_assert_uint_eq(reply.epoch, 3);
    ck_assert_uint_eq(t[0].colour[0], p.colour ? 200 : 128);
    ck_assert_uint_eq(t[0].colour[2], p.colour ? 10 : 128);
    ck_assert_uint_eq(t[1].colour[0], p.colour ? 10 : 128);
    ck_assert_uint_eq(t[1].colour[2], p.colour ? 220 : 128);
    ck_assert_uint_eq(t[0].label, p.label ? 7 : 0);
    ck_assert_uint_eq(t[1].label, p.label ? 9 : 0);
    ck_assert_uint_eq(t[0].trust > 0, p.label);
    ck_assert_uint_eq(t[0].weight > 0, p.colour);
    if (p.colour) {
        ck_assert_int_le(abs(t[2].colour[0] - 105), 1); /* half of each */
        ck_assert_int_le(abs(t[2].colour[2] - 115), 1);
    }
    for (int i = 3; i < 5; i++) {
        ck_assert_uint_eq(t[i].colour[0], 128);
        ck_assert_uint_eq(t[i].weight | t[i].label | t[i].trust, 0);
    }
    ck_ok(vx_mesh_extract(map, NULL, 0, &mesh, &reply, NULL));
    ck_assert_uint_gt(mesh.n_vertices, 500);
    ck_assert_ptr_nonnull(mesh.tints);
    for (uint32_t v = 0; v < mesh.n_vertices; v++) {
        const double x = mesh.origin_m[0] + (double)mesh.vertices[3 * v];
        const struct vx_tint *tint = &mesh.tints[v];
        if (fabs(x) < 0.06)
            continue;
        ck_assert_uint_eq(tint->colour[0], !p.colour ? 128 : x < 0 ? 200 : 10);
        ck_assert_uint_eq(tint->colour[1], p.colour ? 20 : 128);
        ck_assert_uint_eq(tint->label, !p.label ? 0 : x < 0 ? 7 : 9);
    }
    vx_mesh_fini(&mesh);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(none)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = params_with(0.05, VX_TSDF, false, false);
    struct vx_map *map = two_colours(d, &p);
    const double origin[3] = {0, 0, 0};
    const float point[3] = {-0.3f, 0.1f, 1.52f};
    struct vx_tint t;
    struct vx_mesh mesh;
    ck_ok(vx_query_tints(map, NULL, origin, point, 1, &t, NULL, NULL));
    ck_assert_uint_eq(t.colour[1], 128);
    ck_assert_uint_eq(t.weight | t.label | t.trust, 0);
    ck_ok(vx_mesh_extract(map, NULL, 0, &mesh, NULL, NULL));
    ck_assert_uint_gt(mesh.n_vertices, 500);
    ck_assert_ptr_null(mesh.tints);
    vx_mesh_fini(&mesh);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* A file holds the channels, and the map of it is the same; one of floats has no room for them. */
START_TEST(files)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = params_with(0.1, _i & 1 ? VX_OCCUPANCY : VX_TSDF, _i % 3 != 1, _i % 3 != 2);
    struct vx_map *map = test_map(d, &p), *back = NULL;
    struct vx_nvdb_export out = {.format = VX_NVDB_INDEX};
    struct vx_nvdb_import in = {.weight = 1};
    struct vx_nvdb_summary summary;
    struct vx_map_info info;
    struct vx_detail detail = {0};
    uint8_t digest[2][32];
    uint64_t seed = test_seed + (uint64_t)_i;
    for (int i = 0; i < 6; i++) {
        struct vx_frame_result r;
        struct painted f;
        painted_init(&f, &seed, 4);
        ck_ok(vx_map_integrate(map, &f.t.f, &r, NULL));
        painted_fini(&f);
    }
    ck_ok(vx_map_digest(map, digest[0], NULL));
    for (int k = 0; k < 2; k++) {
        FILE *file = tmpfile();
        ck_assert_ptr_nonnull(file);
        out.format = k ? VX_NVDB_FLOAT : VX_NVDB_INDEX;
        in.has_mode = k;
        in.params.mode = p.mode;
        in.params.colour = k; /* a map of a file without colours may get them later */
        ck_ok(vx_nvdb_write(map, &out, fileno(file), &summary, NULL, &detail));
        const vx_err err = vx_nvdb_read(d, "back", &in, fileno(file), summary.n_bytes, &back, NULL, &detail);
        ck_assert_msg(err == VX_OK, "%s: %s", detail.field, detail.text);
        ck_map(back, "a map of a file");
        ck_ok(vx_map_get_info(back, &info));
        ck_ok(vx_map_digest(back, digest[1], NULL));
        ck_assert_int_eq(info.params.colour, k ? true : p.colour);
        ck_assert_int_eq(info.params.label, k ? false : p.label);
        ck_assert_int_eq(memcmp(digest[0], digest[1], 32) == 0, !k);
        vx_map_destroy(back);
        fclose(file);
    }
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(refused)
{
    struct vx_frame f;
    struct vx_detail detail = {0};
    struct painted p;
    uint64_t seed = test_seed;
    painted_init(&p, &seed, 3);
    f = p.t.f;
    f.colour = NULL;
    f.intensity = p.intensity;
    f.intensity_white = 0;
    ck_assert_int_eq(vx_frame_check(&f, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, f.sensor == VX_DEPTH ? "intensity" : "intensity_white");
    f.intensity_white = NAN;
    ck_assert_int_eq(vx_frame_check(&f, &detail), VX_E_INVALID);
    painted_fini(&p);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("channels");
    ck_add(s, equal, 6);
    ck_add(s, geometry, 2);
    ck_add(s, memory, 3);
    ck_add(s, full, 1);
    ck_add(s, decay, 1);
    ck_add(s, spared, 2);
    ck_add(s, tints, 3);
    ck_add(s, none, 1);
    ck_add(s, files, 6);
    ck_add(s, refused, 1);
    return core_test_main(argc, argv, s);
}
