/*
 * mesh_delta.c - a client that keeps chunks and takes in what changed has the mesh of a client that asks for
 * all of it, byte for byte: while boxes come and go, over epochs that it skips, when the map is cleared,
 * forgets, or is another one.
 */
#include "core_test.h"
#include "mesh_store.h"
#include "vx/mesh.h"
#include "vx/nvdb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 96, HEIGHT = 72 };

/* ------------------------------------------------------------------ what is seen */

struct view {
    double x_m, turn; /* the camera's place along the wall, and whether it looks along it a little */
    double wall_m;
    bool box;
    double box_x_m;
};

/* A camera that looks along z at a wall, with a box before it or not. */
static void integrate(struct vx_map *map, const struct view *v, int64_t stamp_ns)
{
    static float image[WIDTH * HEIGHT];
    static uint8_t colour[WIDTH * HEIGHT][3],
        label[WIDTH * HEIGHT]; /* of the box, and of stripes on the wall */
    const double f = 0.9 * WIDTH;
    struct vx_frame frame = {.sensor = VX_DEPTH,
                             .stamp_ns = stamp_ns,
                             .n_poses = 1,
                             .width = WIDTH,
                             .height = HEIGHT,
                             .fx = f,
                             .fy = f,
                             .cx = (WIDTH - 1) / 2.0,
                             .cy = (HEIGHT - 1) / 2.0,
                             .data = image,
                             .data_bytes = sizeof image,
                             .max_range_m = 6,
                             .no_return_value = NAN};
    struct vx_frame_result result;
    struct vx_map_info info;

    frame.pose[0].position_m[0] = v->x_m;
    frame.pose[0].rotation_xyzw[1] = sin(v->turn / 2);
    frame.pose[0].rotation_xyzw[3] = cos(v->turn / 2);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        const double a = (i % WIDTH - frame.cx) / f, b = (i / WIDTH - frame.cy) / f;
        const double dx = cos(v->turn) * a + sin(v->turn), dz = cos(v->turn) - sin(v->turn) * a;
        double t = dz > 1e-3 ? v->wall_m / dz : INFINITY;
        const double t_box = (v->wall_m - 1.0) / dz;
        const bool on_box =
            v->box && dz > 1e-3 && fabs(v->x_m + t_box * dx - v->box_x_m) < 0.35 && fabs(t_box * b) < 0.3;
        if (on_box)
            t = t_box;
        image[i] = t < 5.9 ? (float)t : INFINITY;
        label[i] = on_box ? 9 : (uint8_t)(1 + i % 3);
        colour[i][0] = on_box ? 250 : (uint8_t)(7 * i % WIDTH);
        colour[i][1] = (uint8_t)(i / WIDTH * 3);
        colour[i][2] = (uint8_t)(stamp_ns % 251);
    }
    ck_ok(vx_map_get_info(map, &info));
    if (info.params.colour)
        frame.colour = colour[0];
    if (info.params.label)
        frame.label = label;
    ck_ok(vx_map_integrate(map, &frame, &result, NULL));
}

/* ------------------------------------------------------------------ clients */

struct client {
    struct mesh_store store;
    struct vx_mesh_since since;
    uint8_t uuid[16];
    uint32_t n_complete, n_emptied; /* answers; chunks that came without triangles */
    uint64_t n_cells;               /* of the last answer */
    uint32_t n_named, n_looked;
};

static void update(struct client *c, struct vx_map *map)
{
    struct vx_mesh_chunks chunks;
    struct vx_reply reply;
    struct vx_detail detail = {.text = ""};
    char words[MESH_STORE_WORDS];
    size_t at = 0;
    vx_err err;

    c->since.uuid = c->since.epoch ? c->uuid : NULL;
    err = vx_mesh_get_chunks(map, NULL, &c->since, &chunks, &reply, &detail);
    ck_assert_msg(err == VX_OK, "%s: %s", vx_err_name(err), detail.text);
    ck_assert_msg(
        mesh_store_apply(&c->store, chunks.body, chunks.body_bytes, chunks.n_chunks, chunks.complete, words),
        "%s", words);
    for (uint32_t i = 0; i < chunks.n_chunks; i++) {
        struct vx_mesh_chunk h;
        memcpy(&h, chunks.body + at, sizeof h);
        c->n_emptied += h.n_triangles == 0;
        at += sizeof h + (size_t)h.n_vertices * h.vertex_bytes +
              ((size_t)h.n_triangles * 3 * h.index_bytes + 3) / 4 * 4;
    }
    c->n_complete += chunks.complete;
    c->n_cells = chunks.n_cells;
    c->n_named = chunks.n_chunks;
    c->n_looked = chunks.n_looked;
    c->since.epoch = reply.epoch;
    memcpy(c->uuid, reply.uuid, sizeof c->uuid);
    vx_mesh_chunks_fini(&chunks);
}

static void must_have_all(const struct client *c, struct vx_map *map, const char *name, int frame)
{
    struct client all = {.since = {.min_weight = c->since.min_weight}};
    int32_t chunk[3];

    update(&all, map);
    ck_assert_msg(mesh_store_same(&c->store, &all.store, chunk),
                  "frame %d: the mesh that client %s keeps differs in chunk %d %d %d", frame, name, chunk[0],
                  chunk[1], chunk[2]);
    mesh_store_fini(&all.store);
}

/* Colours and labels of the vertices are those of their places; maps without them send none. */
static void must_have_tints(const struct client *c, struct vx_map *map)
{
    struct vx_map_info info;
    const struct vx_map_params *p = &info.params;
    uint32_t n_coloured = 0, n_labelled = 0;
    bool has;

    ck_ok(vx_map_get_info(map, &info));
    has = p->colour || p->label;
    for (size_t i = 0; i < c->store.n; i++) {
        struct vx_mesh_chunk h;
        double corner_m[3];
        memcpy(&h, c->store.pieces[i].bytes, sizeof h);
        ck_assert_uint_eq(h.vertex_bytes, has ? 20 : 12);
        for (int a = 0; a < 3; a++)
            corner_m[a] = p->origin_m[a] + 128 * p->voxel_size_m * h.chunk[a];
        for (uint32_t v = 0; has && v < h.n_vertices; v += 7) {
            const uint8_t *at = c->store.pieces[i].bytes + sizeof h + (size_t)v * h.vertex_bytes;
            uint16_t position[3];
            struct vx_tint got, want;
            float point[3];
            bool half_way = false;
            memcpy(position, at, sizeof position);
            memcpy(&got, at + 12, sizeof got);
            for (int a = 0; a < 3; a++)
                point[a] = (float)(position[a] / 256.0 * p->voxel_size_m);
            ck_ok(vx_query_tints(map, NULL, corner_m, point, 1, &want, NULL, NULL));
            for (int a = 0; a < 3; a++) /* a float's place is not quite the vertex's: others may have a say */
                ck_assert_int_le(abs(got.colour[a] - (got.weight ? want.colour[a] : 128)), got.weight > 0);
            for (int a = 0; a < 3; a++) /* half-way between two labels a float may choose the other */
                half_way |= abs((position[a] - 128) % 256 - 128) < 4;
            if (!half_way && got.label)
                ck_assert_uint_eq(got.label, want.label);
            n_coloured += got.weight > 0;
            n_labelled += got.label > 0;
        }
    }
    ck_assert(!p->colour || n_coloured > 100);
    ck_assert(!p->label || n_labelled > 100);
}

/* ------------------------------------------------------------------ tests */

static const struct {
    enum vx_mode mode;
    uint32_t min_weight;
    bool colour, label;
} kinds[] = {{VX_TSDF, 0, false, false},
             {VX_OCCUPANCY, 0, false, true},
             {VX_TSDF, 3, false, false},
             {VX_TSDF, 0, true, true}};

/* The guard protects every page anew for every frame; an emulated GPU counts threads. */
static bool slow_backend(void)
{
#ifdef VOXELD_TEST_SLOW_BACKEND
    return true;
#else
    return test_backend == VXK_GUARD;
#endif
}

START_TEST(boxes_come_and_go)
{
    struct vx_device *d = test_device(1ull << 30);
    struct vx_map_params p = test_params(0.05, kinds[_i].mode);
    struct vx_map *map, *copy;
    struct client c[3] = {{.n_complete = 0}};
    uint64_t seed = test_seed + (uint64_t)_i;
    uint32_t n_unchanged = 0;
    FILE *file = tmpfile();

    p.colour = kinds[_i].colour;
    p.label = kinds[_i].label;
    map = test_map(d, &p);
    for (int k = 0; k < 3; k++)
        c[k].since.min_weight = kinds[_i].min_weight;
    const int step = slow_backend() ? 7 : 1;
    for (int i = 0; i < 70; i += step) {
        struct view v = {.x_m = i < 40 ? 5.9 : 5.9 + 0.05 * (i - 40),
                         .turn = i < 50 ? 0 : 0.4,
                         .wall_m = 2.4,
                         .box = i < 14 || (i >= 40 && i < 60),
                         .box_x_m = i < 40 ? 6.3 : 7.2};
        integrate(map, &v, 1000 + i);
        update(&c[0], map);
        must_have_all(&c[0], map, "that asks after every frame", i);
        if (i % 7 == 0) {
            update(&c[1], map);
            must_have_all(&c[1], map, "that asks after every seventh", i);
        }
        if (test_random(&seed) % 5 == 0) {
            update(&c[2], map);
            must_have_all(&c[2], map, "that asks now and then", i);
        }
    }
    ck_assert_uint_eq(c[0].n_complete, 1);
    ck_assert_uint_eq(c[1].n_complete, 1);
    ck_assert_uint_gt(c[0].store.n, 3);
    must_have_tints(&c[0], map);
    update(&c[0], map); /* nothing happened */
    n_unchanged = c[0].n_named;
    ck_assert(n_unchanged == 0 && c[0].n_cells == 0 && c[0].n_looked == 0);

    /* a map that was saved and read again is another one: its epochs say nothing of ours */
    ck_assert_ptr_nonnull(file);
    ck_ok(vx_nvdb_write(map, &(struct vx_nvdb_export){.layer = VX_NVDB_ANY}, fileno(file), NULL, NULL, NULL));
    fseek(file, 0, SEEK_END);
    ck_ok(vx_nvdb_read(d, "copy", &(struct vx_nvdb_import){.weight = 1}, fileno(file), (uint64_t)ftell(file),
                       &copy, NULL, NULL));
    fclose(file);
    must_have_all(&c[0], copy, "of the original", 70); /* the copy's mesh has the same bytes */
    update(&c[1], copy);
    ck_assert_uint_eq(c[1].n_complete, 2);
    must_have_all(&c[1], copy, "that went over to the copy", 70);
    vx_map_destroy(copy);

    ck_ok(vx_map_clear(map));
    update(&c[0], map);
    ck_assert(c[0].n_complete == 2 && c[0].store.n == 0);
    for (int i = 0; i < 5; i++) {
        integrate(map, &(struct view){.x_m = 1, .wall_m = 2.2}, 5000 + i);
        update(&c[0], map);
        must_have_all(&c[0], map, "after the clear", i);
    }
    update(&c[2], map);
    must_have_all(&c[2], map, "that slept over the clear", 5);
    for (int k = 0; k < 3; k++)
        mesh_store_fini(&c[k].store);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(what_is_forgotten_is_named)
{
    if (slow_backend())
        return; /* 1,200 frames: what they go through, the others of this file go through too */
    struct vx_device *d = test_device(1ull << 30);
    struct vx_map_params p = test_params(0.05, _i ? VX_OCCUPANCY : VX_TSDF);
    struct client c[3] = {{.n_complete = 0}};
    static const int every[3] = {1, 40, 300};
    struct vx_map *map;
    size_t most = 0;

    p.forget_radius_m = 3.5;
    map = test_map(d, &p);
    for (int i = 0; i < 1200; i++) {
        integrate(map, &(struct view){.x_m = 0.03 * i, .wall_m = 2.4}, 1000 + i * 10000000ll);
        for (int k = 0; k < 3; k++)
            if (i % every[k] == every[k] - 1) {
                update(&c[k], map);
                if (i % 20 == 19)
                    must_have_all(&c[k], map, k ? "that asks seldom" : "that asks after every frame", i);
            }
        most = c[0].store.n > most ? c[0].store.n : most;
    }
    printf("36 m along a wall, forgotten after 3.5 m: at most %zu chunks held, %u named as empty; complete "
           "answers: %u, "
           "%u, %u of %d, %d, %d\n",
           most, c[0].n_emptied, c[0].n_complete, c[1].n_complete, c[2].n_complete, 1200, 1200 / 40,
           1200 / 300);
    ck_assert_uint_eq(c[0].n_complete, 1);
    ck_assert_uint_eq(c[1].n_complete, 1);
    ck_assert_uint_gt(c[2].n_complete, 1); /* it asks for epochs that are too long ago */
    ck_assert_uint_gt(c[0].n_emptied, 5);
    for (int k = 0; k < 3; k++)
        mesh_store_fini(&c[k].store);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* Small noisy frames of every sensor round the corners where eight chunks meet. */
START_TEST(random_frames)
{
    struct vx_device *d = test_device(1ull << 30);
    struct vx_map_params p = test_params(0.1, _i % 2 ? VX_OCCUPANCY : VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct client c[2] = {{.n_complete = 0}};
    uint64_t seed = test_seed + 17 * (uint64_t)_i;
    uint64_t named = 0, held = 0;

    for (int i = 0; i < (slow_backend() ? 10 : 80); i++) {
        double corner[3];
        struct test_frame t;
        for (int a = 0; a < 3; a++)
            corner[a] = 12.8 * (double)(test_random(&seed) % 3);
        test_any_frame(&t, &seed, 2.0, corner, 2.5);
        t.f.stamp_ns = 1000 + i;
        ck_ok(vx_map_integrate(map, &t.f, &(struct vx_frame_result){0}, NULL));
        test_frame_fini(&t);
        update(&c[0], map);
        must_have_all(&c[0], map, "that asks after every frame", i);
        named += c[0].n_named;
        held += c[0].store.n;
        if (test_random(&seed) % 4 == 0) {
            update(&c[1], map);
            must_have_all(&c[1], map, "that asks now and then", i);
        }
    }
    printf("random frames: %llu chunks named, where all were %llu\n", (unsigned long long)named,
           (unsigned long long)held);
    ck_assert(slow_backend() || 2 * named < held);
    for (int k = 0; k < 2; k++)
        mesh_store_fini(&c[k].store);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(cost_follows_what_changed)
{
    if (slow_backend())
        return; /* counts do not depend on the backend */
    struct vx_device *d = test_device(1ull << 30);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct client c = {.n_complete = 0};
    uint64_t cells[2];
    uint32_t looked[2];

    for (int lengths = 0; lengths < 2; lengths++) { /* a wall of 30 m, then of 120 m */
        for (int i = lengths ? 60 : 0; i < (lengths ? 240 : 60); i++)
            integrate(map, &(struct view){.x_m = 0.5 * i, .wall_m = 2.4}, 1000 + i);
        struct client all = {.n_complete = 0};
        update(&all, map);
        update(&c, map);
        integrate(map, &(struct view){.x_m = 0.4, .wall_m = 2.4, .box = true, .box_x_m = 0.4},
                  10000 + lengths);
        update(&c, map);
        cells[lengths] = c.n_cells;
        looked[lengths] = c.n_looked;
        printf("wall of %d m: all of it takes %llu cells of 8^3 voxels in %u chunks; one frame at its end "
               "takes %llu in "
               "%u, and names %u\n",
               lengths ? 120 : 30, (unsigned long long)all.n_cells, all.n_looked,
               (unsigned long long)c.n_cells, c.n_looked, c.n_named);
        ck_assert_uint_lt(c.n_cells * (lengths ? 8 : 2), all.n_cells);
        must_have_all(&c, map, "of the wall", lengths);
        mesh_store_fini(&all.store);
    }
    ck_assert(cells[1] == cells[0] && looked[1] == looked[0]); /* whatever else there is */
    mesh_store_fini(&c.store);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

struct meanwhile {
    struct vx_map *map;
    int n_frames;
};

/* Asked between the steps of a mesh: integrates a frame, which would never end if it waited for the mesh. */
static bool integrate_meanwhile(void *context)
{
    struct meanwhile *m = context;
    integrate(m->map, &(struct view){.x_m = 3, .wall_m = 1.6 + 0.1 * m->n_frames}, 5000 + m->n_frames);
    m->n_frames++;
    return false;
}

/* Frames go on in the middle of a mesh, and the mesh is that of the epoch at which it began. */
START_TEST(frames_go_on_meanwhile)
{
    struct vx_device *d = test_device(1ull << 30);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct meanwhile m = {.map = map};
    const struct vx_query_options options = {.cancelled = integrate_meanwhile, .context = &m};
    const struct vx_mesh_since since = {.epoch = 0};
    struct client before = {.n_complete = 0}, during = {.n_complete = 0};
    struct vx_mesh_chunks chunks;
    struct vx_mesh whole[2];
    struct vx_reply reply;
    char words[MESH_STORE_WORDS];
    int32_t chunk[3];

    for (int i = 0; i < 5; i++)
        integrate(map, &(struct view){.x_m = 3 + 0.2 * i, .wall_m = 2.4, .box = true, .box_x_m = 3},
                  1000 + i);
    update(&before, map);
    ck_ok(vx_mesh_extract(map, NULL, 0, &whole[0], NULL, NULL));
    ck_ok(vx_mesh_get_chunks(map, &options, &since, &chunks, &reply, NULL));
    ck_assert(m.n_frames > 0 && reply.epoch == 5);
    ck_assert(mesh_store_apply(&during.store, chunks.body, chunks.body_bytes, chunks.n_chunks, true, words));
    ck_assert(mesh_store_same(&before.store, &during.store, chunk));
    vx_mesh_chunks_fini(&chunks);
    ck_ok(vx_map_clear(map));
    for (int i = 0; i < 5; i++)
        integrate(map, &(struct view){.x_m = 3 + 0.2 * i, .wall_m = 2.4, .box = true, .box_x_m = 3},
                  1000 + i);
    m.n_frames = 0;
    ck_ok(vx_mesh_extract(map, &options, 0, &whole[1], &reply, NULL));
    ck_assert_int_gt(m.n_frames, 0);
    ck_assert(whole[0].n_vertices == whole[1].n_vertices && whole[0].n_triangles == whole[1].n_triangles &&
              memcmp(whole[0].vertices, whole[1].vertices, whole[0].n_vertices * 12ull) == 0 &&
              memcmp(whole[0].triangles, whole[1].triangles, whole[0].n_triangles * 12ull) == 0);
    for (int i = 0; i < 2; i++)
        vx_mesh_fini(&whole[i]);
    mesh_store_fini(&before.store);
    mesh_store_fini(&during.store);
    ck_map(map, "after frames beside meshes");
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

START_TEST(regions_and_refusals)
{
    struct vx_device *d = test_device(1ull << 30);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct client all = {.n_complete = 0},
                  part = {.since = {.has_region = true, .min_m = {6.5, -1, 0}, .max_m = {7, 1, 6}}},
                  far = {.since = {.has_region = true, .min_m = {1e6, 0, 0}, .max_m = {2e6, 1, 1}}};
    struct vx_mesh_since bad = {.has_region = true, .min_m = {NAN, 0, 0}};
    struct vx_mesh_chunks out;
    struct vx_detail detail = {.text = ""};

    update(&all, map); /* of an empty map */
    ck_assert(all.n_complete == 1 && all.store.n == 0);
    update(&part, map);
    ck_assert(part.n_complete == 1 && part.store.n == 0);
    for (int i = 0; i < 30; i++) {
        integrate(map, &(struct view){.x_m = 0.4 * i, .wall_m = 2.4, .box = i % 2, .box_x_m = 6.4}, 1000 + i);
        update(&part, map);
    }
    update(&all, map);
    update(&far, map);
    ck_assert(far.n_complete == 1 && far.store.n == 0 && far.n_cells == 0);
    ck_assert(part.store.n > 0 && part.store.n < all.store.n);
    for (size_t i = 0, k = 0; i < part.store.n; i++) {
        while (k < all.store.n && memcmp(all.store.pieces[k].chunk, part.store.pieces[i].chunk, 12) != 0)
            k++;
        ck_assert_msg(k < all.store.n && all.store.pieces[k].n_bytes == part.store.pieces[i].n_bytes &&
                          memcmp(all.store.pieces[k].bytes, part.store.pieces[i].bytes,
                                 part.store.pieces[i].n_bytes) == 0,
                      "a chunk of the region is not what it is in the whole");
    }
    ck_assert_int_eq(vx_mesh_get_chunks(map, NULL, &bad, &out, NULL, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "region");
    bad = (struct vx_mesh_since){.has_region = true, .min_m = {1, 0, 0}};
    ck_assert_int_eq(vx_mesh_get_chunks(map, NULL, &bad, &out, NULL, &detail), VX_E_INVALID);
    bad = (struct vx_mesh_since){.epoch = 1000};
    ck_assert_int_eq(vx_mesh_get_chunks(map, NULL, &bad, &out, NULL, &detail), VX_E_STALE);
    ck_assert_str_eq(detail.field, "since_epoch");
    ck_assert(!out.body && !out.n_chunks);
    bad = (struct vx_mesh_since){.min_weight = 256}; /* nobody has so much evidence */
    ck_assert_int_eq(vx_mesh_get_chunks(map, NULL, &bad, &out, NULL, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "min_weight");
    mesh_store_fini(&all.store);
    mesh_store_fini(&part.store);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("mesh deltas");

    ck_add(s, boxes_come_and_go, (int)(sizeof kinds / sizeof *kinds));
    ck_add(s, what_is_forgotten_is_named, 2);
    ck_add(s, random_frames, 4);
    ck_add(s, cost_follows_what_changed, 1);
    ck_add(s, frames_go_on_meanwhile, 1);
    ck_add(s, regions_and_refusals, 1);
    return core_test_main(argc, argv, s);
}
