/*
 * mesh_scene.c - meshes of the room and of recorded frames are surfaces: manifold, with a border only where
 * the observed ends, complete, and the same wherever the map lies.
 *
 * usage: mesh_scene BACKEND THREADS [ROOT of the source tree]
 */
#include "core_test.h"
#include "half_edge.h"
#include "load.h"
#include "mesh_store.h"
#include "scene_frame.h"
#include "vx/mesh.h"
#include "vxc_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 320, HEIGHT = 240 };

/* ------------------------------------------------------------------ the map, as the oracle reads it */

struct world {
    const struct map_walk *walk;
    const struct mesh_welded *mesh;
    uint64_t n_border; /* border edges whose reason was found */
};

/* -1, 1, or 0 where a voxel does not count. */
static int sign_at(const struct world *w, const int64_t v[3])
{
    uint32_t value;
    if (map_walk_voxel(w->walk, (int32_t)v[0], (int32_t)v[1], (int32_t)v[2], &value) != VXK_ACTIVE ||
        (value >> 16 & 255) < 1)
        return 0;
    return (int16_t)(value & 0xffff) < 0 ? -1 : 1;
}

/* The signs of a cell's corners as bits, or -1 when a corner does not count. */
static int case_at(const struct world *w, const int64_t v[3])
{
    int out = 0;
    for (int c = 0; c < 8; c++) {
        int s = sign_at(w, (int64_t[3]){v[0] + (c >> 2), v[1] + (c >> 1 & 1), v[2] + (c & 1)});
        if (!s)
            return -1;
        out |= (s < 0) << c;
    }
    return out;
}

static int64_t voxel_of(int64_t at)
{
    return at >= 0 ? at / 256 : -((255 - at) / 256);
}

/* Axis of the grid edge that a vertex lies on. */
static int axis_of(const int64_t at[3])
{
    int axis = -1;
    for (int a = 0; a < 3; a++)
        if (at[a] != 256 * voxel_of(at[a])) {
            ck_assert_int_eq(axis, -1);
            axis = a;
        }
    ck_assert_int_ge(axis, 0);
    return axis;
}

/* A half edge without an opposite lies in a face with a whole cell on one side and, on the other, a cell with
 * a corner that does not count. */
static void must_be_border(void *context, uint32_t from, uint32_t to)
{
    struct world *w = context;
    const int64_t *p = w->mesh->vertices[from], *q = w->mesh->vertices[to];

    for (int axis = 0; axis < 3; axis++) {
        int64_t v[3];
        if (axis_of(p) == axis || axis_of(q) == axis || p[axis] != q[axis])
            continue;
        for (int a = 0; a < 3; a++)
            v[a] = voxel_of(p[a] < q[a] ? p[a] : q[a]);
        int above = case_at(w, v) >= 0;
        v[axis]--;
        if (above != (case_at(w, v) >= 0)) {
            w->n_border++;
            return;
        }
    }
    ck_abort_msg("a crack between (%g %g %g) and (%g %g %g) voxels", p[0] / 256.0, p[1] / 256.0, p[2] / 256.0,
                 q[0] / 256.0, q[1] / 256.0, q[2] / 256.0);
}

static int by_cell(const void *a, const void *b)
{
    return memcmp(a, b, 3 * sizeof(int64_t));
}

/* Cells with triangles; each triangle has an area. */
static uint64_t count_cells(const struct mesh_welded *m)
{
    int64_t(*cell)[3] = malloc((m->n_triangles + 1ull) * sizeof *cell);
    uint64_t n = 0;

    ck_assert_ptr_nonnull(cell);
    for (uint32_t i = 0; i < m->n_triangles; i++) {
        const uint32_t *t = m->triangles + 3 * (size_t)i;
        int64_t e[2][3], area = 0;
        for (int a = 0; a < 3; a++) {
            int64_t p[3] = {m->vertices[t[0]][a], m->vertices[t[1]][a], m->vertices[t[2]][a]};
            int64_t lo = p[0] < p[1] ? p[0] : p[1];
            cell[i][a] = voxel_of(lo < p[2] ? lo : p[2]);
            e[0][a] = p[1] - p[0];
            e[1][a] = p[2] - p[0];
        }
        for (int a = 0; a < 3; a++)
            area |= e[0][a] * e[1][(a + 1) % 3] - e[0][(a + 1) % 3] * e[1][a];
        ck_assert_msg(area != 0, "triangle %u has no area", i);
    }
    qsort(cell, m->n_triangles, sizeof *cell, by_cell);
    for (uint32_t i = 0; i < m->n_triangles; i++)
        n += i == 0 || by_cell(cell[i - 1], cell[i]) != 0;
    free(cell);
    return n;
}

/* Cells that must have triangles, by the map: all corners count, and their signs differ. */
static uint64_t count_mixed(const struct world *w, uint64_t *n_whole)
{
    uint64_t n = 0;

    *n_whole = 0;
    for (uint32_t l = 0; l < w->walk->n_leaves; l++)
        for (int64_t k = 0; k < 512; k++) {
            const struct walk_leaf *leaf = &w->walk->leaves[l];
            int64_t v[3] = {leaf->at[0] + (k >> 6), leaf->at[1] + (k >> 3 & 7), leaf->at[2] + (k & 7)};
            int c = leaf->active[k >> 6] >> (k & 63) & 1 ? case_at(w, v) : -1;
            *n_whole += c >= 0;
            n += c > 0 && c < 255;
        }
    return n;
}

/* ------------------------------------------------------------------ the mesh */

static void get_chunks(struct vx_map *map, struct mesh_store *store)
{
    struct vx_mesh_since since = {.epoch = 0};
    struct vx_mesh_chunks chunks;
    struct vx_detail detail = {.text = ""};
    char words[MESH_STORE_WORDS];

    ck_ok(vx_mesh_get_chunks(map, NULL, &since, &chunks, NULL, &detail));
    ck_assert_msg(
        mesh_store_apply(store, chunks.body, chunks.body_bytes, chunks.n_chunks, chunks.complete, words),
        "%s", words);
    vx_mesh_chunks_fini(&chunks);
}

/* The whole mesh with its places in 1/256 voxel. */
static void get_whole(struct vx_map *map, struct mesh_welded *out)
{
    const struct vx_map_params *p = vx__map_params(map);
    struct vx_mesh m;
    struct vx_detail detail = {.text = ""};

    ck_ok(vx_mesh_extract(map, NULL, 0, &m, NULL, &detail));
    *out = (struct mesh_welded){.n_vertices = m.n_vertices, .n_triangles = m.n_triangles};
    out->vertices = malloc((m.n_vertices + 1ull) * sizeof *out->vertices);
    out->triangles = malloc((m.n_triangles + 1ull) * 3 * sizeof *out->triangles);
    ck_assert(out->vertices && out->triangles);
    for (uint32_t i = 0; i < m.n_vertices; i++)
        for (int a = 0; a < 3; a++) {
            double at = ((m.origin_m[a] - p->origin_m[a] + (double)m.vertices[3 * (size_t)i + (size_t)a]) /
                             p->voxel_size_m -
                         0.5) *
                        256;
            out->vertices[i][a] = (int64_t)rint(at);
            ck_assert_msg(fabs(at - rint(at)) < 0.1, "vertex %u is on no edge: %g", i, at);
        }
    if (m.n_triangles)
        memcpy(out->triangles, m.triangles, m.n_triangles * 12ull);
    vx_mesh_fini(&m);
}

static void check_map(struct vx_map *map, const char *name, struct half_edge_facts *facts)
{
    struct map_walk *walk = map_walk_newest(map);
    struct mesh_store store = {.n = 0};
    struct mesh_welded whole, welded;
    struct world w = {.walk = walk, .mesh = &whole};
    char words[HALF_EDGE_WORDS];
    uint64_t n_whole, n_mixed;

    ck_assert_msg(!walk->fault[0], "%s", walk->fault);
    get_whole(map, &whole);
    ck_assert_msg(half_edge_check(whole.triangles, whole.n_triangles, whole.n_vertices, must_be_border, &w,
                                  facts, words),
                  "%s: %s", name, words);
    ck_assert_uint_eq(w.n_border, facts->n_border);
    n_mixed = count_mixed(&w, &n_whole);
    ck_assert_uint_eq(n_mixed, count_cells(&whole));
    /* chunk by chunk it is the same mesh: nothing is missing, doubled or moved at the chunks' borders */
    get_chunks(map, &store);
    mesh_store_weld(&store, &welded);
    ck_assert_uint_eq(welded.n_vertices, whole.n_vertices);
    ck_assert_uint_eq(welded.n_triangles, whole.n_triangles);
    int64_t(*a)[3][3] = mesh_welded_triangles(&whole), (*b)[3][3] = mesh_welded_triangles(&welded);
    ck_assert_msg(memcmp(a, b, whole.n_triangles * sizeof *a) == 0, "%s: chunk by chunk it is another mesh",
                  name);
    printf("%s: %u vertices, %u triangles in %zu chunks; %llu cells checked, %llu with surface; %llu of %llu "
           "edges "
           "are border, %llu vertices pinched there; Euler characteristic %lld\n",
           name, whole.n_vertices, whole.n_triangles, store.n, (unsigned long long)n_whole,
           (unsigned long long)n_mixed, (unsigned long long)facts->n_border,
           (unsigned long long)facts->n_edges, (unsigned long long)facts->n_pinched, (long long)facts->euler);
    free(a);
    free(b);
    mesh_welded_fini(&whole);
    mesh_welded_fini(&welded);
    mesh_store_fini(&store);
    map_walk_free(walk);
}

/* ------------------------------------------------------------------ maps */

static struct vx_map *map_room(struct vx_device *d, double voxel_m, uint32_t n_frames)
{
    struct scene *scene = scene_create(SCENE_ROOM, false);
    struct vx_map_params p = test_params(voxel_m, VX_TSDF);
    float *image = malloc(WIDTH * HEIGHT * sizeof *image);
    struct vx_map *map;

    ck_assert(scene && image);
    p.origin_m[0] = -0.37; /* some of it has negative coordinates */
    map = test_map(d, &p);
    for (uint32_t i = 0; i < n_frames; i++) {
        struct vx_frame f;
        struct vx_frame_result r;
        scene_frame_depth(scene, i, n_frames, WIDTH, HEIGHT, image, &f);
        ck_ok(vx_map_integrate(map, &f, &r, NULL));
    }
    free(image);
    scene_destroy(scene);
    return map;
}

START_TEST(room)
{
    struct vx_device *d = test_device(2ull << 30);
    struct vx_map *map = map_room(d, 0.02, 100);
    struct half_edge_facts facts;

    check_map(map, "room, 100 frames, 2 cm", &facts);
    ck_assert_uint_gt(facts.n_triangles, 100000);
    ck_assert_uint_lt(facts.n_border * 5, facts.n_edges);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

static const char *data_folder = "../shared/data";

START_TEST(redkitchen)
{
    char path[1024];
    struct vx_detail detail = {.text = ""};
    struct vxc_reader *reader;
    struct vxc_frame in;
    enum vxc_step step;
    vx_err why;
    int n = 0;

    snprintf(path, sizeof path, "%s/rgbd_7scenes_redkitchen_150", data_folder);
    if (access(path, R_OK) != 0) {
        printf("redkitchen: left out, there is no %s (VOXELD_TEST_DATA)\n", path);
        return;
    }
    struct vx_device *d = test_device(2ull << 30);
    struct vx_map_params p = test_params(0.02, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct half_edge_facts facts;
    ck_ok(vxc_reader_open(path, NULL, &reader, &detail));
    const struct vxc_sensing *s = &vxc_reader_get_info(reader)->sensing;
    while (vxc_reader_next(reader, &in, &step, &why, &detail) == VX_OK && step != VXC_STEP_END) {
        struct vx_frame f = {.sensor = VX_DEPTH,
                             .stamp_ns = in.stamp_ns,
                             .n_poses = 1,
                             .width = in.width,
                             .height = in.height,
                             .fx = in.fx,
                             .fy = in.fy,
                             .cx = in.cx,
                             .cy = in.cy,
                             .encoding = in.encoding == VXC_U16 ? VX_U16 : VX_F32,
                             .units_per_m = in.units_per_m,
                             .data = in.data,
                             .data_bytes = in.data_bytes,
                             .min_range_m = s->min_range_m,
                             .max_range_m = s->max_range_m,
                             .no_return_value = s->no_return_value};
        struct vx_frame_result r;
        if (step != VXC_STEP_FRAME)
            continue;
        memcpy(f.pose[0].position_m, in.pose.position_m, sizeof in.pose.position_m);
        memcpy(f.pose[0].rotation_xyzw, in.pose.rotation_xyzw, sizeof in.pose.rotation_xyzw);
        ck_ok(vx_map_integrate(map, &f, &r, &detail));
        n++;
    }
    vxc_reader_close(reader);
    ck_assert_int_gt(n, 20);
    check_map(map, "redkitchen, 2 cm", &facts);
    ck_assert_uint_gt(facts.n_triangles, 50000);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ shifts */

struct voxel {
    uint64_t key;
    uint32_t place, n, value;
};

static int by_voxel(const void *a, const void *b)
{
    const struct voxel *p = a, *q = b;
    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    if (p->place != q->place)
        return p->place < q->place ? -1 : 1;
    return p->n < q->n ? -1 : p->n > q->n;
}

/* A new map that holds the active voxels of another, each `shift` voxels away. */
static struct vx_map *shifted(struct vx_device *d, const struct map_walk *walk, const int32_t shift[3])
{
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct vx__loader *loader;
    struct voxel *all = malloc((walk->n_active + 1) * sizeof *all);
    size_t n = 0;

    ck_assert_ptr_nonnull(all);
    for (uint32_t l = 0; l < walk->n_leaves; l++)
        for (int32_t k = 0; k < 512; k++) {
            const struct walk_leaf *leaf = &walk->leaves[l];
            int32_t x = leaf->at[0] + (k >> 6) + shift[0], y = leaf->at[1] + (k >> 3 & 7) + shift[1],
                    z = leaf->at[2] + (k & 7) + shift[2];
            uint32_t X = (uint32_t)x & 127, Y = (uint32_t)y & 127, Z = (uint32_t)z & 127;
            if (leaf->active[k >> 6] >> (k & 63) & 1)
                all[n++] = (struct voxel){.key = vxk_key(x >> 7, y >> 7, z >> 7),
                                          .place = vxk_word_of(X, Y, Z) << 6 | vxk_cell_of(X, Y, Z),
                                          .n = vxk_voxel_of(X, Y, Z),
                                          .value = leaf->value[k]};
        }
    qsort(all, n, sizeof *all, by_voxel);
    ck_ok(vx__loader_create(map, &loader, NULL));
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t active[8] = {0}, none[8] = {0};
        uint32_t values[512];
        int32_t at[3];
        if (i == 0 || all[i - 1].key != all[i].key) {
            vxk_key_xyz(all[i].key, &at[0], &at[1], &at[2]);
            ck_ok(vx__loader_begin(loader, at, NULL));
        }
        for (end = i; end < n && all[end].key == all[i].key && all[end].place == all[i].place; end++) {
            active[all[end].n >> 6] |= 1ull << (all[end].n & 63);
            values[end - i] = all[end].value;
        }
        ck_ok(vx__loader_leaf(loader, all[i].place, active, none, values, NULL));
    }
    ck_ok(vx__loader_publish(loader, NULL));
    vx__loader_destroy(loader);
    free(all);
    return map;
}

START_TEST(shifts)
{
    static const int32_t fixed[6][3] = {{0, 0, 0},      {1, 0, 0},       {8, -8, 16},
                                        {128, 0, -128}, {-64, 127, -63}, {-134000000, 134000000, 5}};
    struct vx_device *d = test_device(2ull << 30);
    struct vx_map *room_map = map_room(d, 0.05, 40);
    struct map_walk *walk = map_walk_newest(room_map);
    struct half_edge_facts first_facts = {0};
    struct mesh_welded first = {0};
    int64_t(*wanted)[3][3] = NULL;
    uint64_t seed = test_seed;

    for (int i = 0; i < 16; i++) {
        int32_t shift[3];
        for (int a = 0; a < 3; a++)
            shift[a] = i < 6 ? fixed[i][a] : (int32_t)test_uniform(&seed, -600, 600);
        struct vx_map *map = shifted(d, walk, shift);
        struct mesh_store store = {.n = 0};
        struct mesh_welded mesh;
        struct half_edge_facts facts;
        char words[HALF_EDGE_WORDS];
        get_chunks(map, &store);
        mesh_store_weld(&store, &mesh);
        ck_assert_msg(
            half_edge_check(mesh.triangles, mesh.n_triangles, mesh.n_vertices, NULL, NULL, &facts, words),
            "shift %d %d %d: %s", shift[0], shift[1], shift[2], words);
        for (uint32_t v = 0; v < mesh.n_vertices; v++)
            for (int a = 0; a < 3; a++)
                mesh.vertices[v][a] -= 256 * (int64_t)shift[a];
        int64_t(*triangles)[3][3] = mesh_welded_triangles(&mesh);
        if (i == 0) {
            first = mesh;
            first_facts = facts;
            wanted = triangles;
            ck_assert_uint_gt(mesh.n_triangles, 20000);
        } else {
            ck_assert_int_eq(facts.euler, first_facts.euler);
            ck_assert_uint_eq(facts.n_border, first_facts.n_border);
            ck_assert_uint_eq(mesh.n_triangles, first.n_triangles);
            ck_assert_msg(memcmp(triangles, wanted, mesh.n_triangles * sizeof *wanted) == 0,
                          "shifted by %d %d %d voxels it is another mesh", shift[0], shift[1], shift[2]);
            free(triangles);
            mesh_welded_fini(&mesh);
        }
        mesh_store_fini(&store);
        vx_map_destroy(map);
    }
    printf("16 shifts: %u triangles, Euler characteristic %lld, each time\n", first.n_triangles,
           (long long)first_facts.euler);
    free(wanted);
    mesh_welded_fini(&first);
    map_walk_free(walk);
    vx_map_destroy(room_map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("mesh of scenes");
    static char beside[1024];

    if (argc > 3) {
        snprintf(beside, sizeof beside, "%s/../shared/data", argv[3]);
        data_folder = beside;
    }
    if (getenv("VOXELD_TEST_DATA"))
        data_folder = getenv("VOXELD_TEST_DATA");
    ck_add(s, room, 1);
    ck_add(s, redkitchen, 1);
    ck_add(s, shifts, 1);
    return core_test_main(argc, argv, s);
}
