/*
 * A client that follows a mesh, against a real daemon (cpu backend), while frames come in: in the end it has
 * the mesh that a client gets who asks for all of it.
 */
#include "voxeld/client.h"
#include "vxd_peer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 96, HEIGHT = 72 };

static struct vxd_proc proc;
static struct vxc_client *client;
static struct vxc_stream *stream;
static struct vx_detail why;
static uint64_t seq;

static void good(vx_err err)
{
    ck_assert_msg(err == VX_OK, "%s: %s [%s]", vx_err_name(err), why.text, why.field);
}

static void must_fail(vx_err err, vx_err expected, const char *field)
{
    ck_assert_msg(err == expected && strcmp(why.field, field) == 0 && why.text[0],
                  "wanted %s of %s, got %s: %s [%s]", vx_err_name(expected), field, vx_err_name(err),
                  why.text, why.field);
}

static void set_up(void)
{
    vxd_proc_start(&proc, "voxeld", (const char *const[]){"--backend", "cpu", NULL});
    good(vxc_connect(proc.dir, NULL, &client, &why));
}

static void tear_down(void)
{
    vxc_disconnect(client);
    vxd_proc_stop(&proc);
}

static void open_map(const char *name)
{
    const struct vxc_stream_options options = {
        .sensing = {.sensor = VXC_DEPTH, .max_range_m = 6, .no_return_value = NAN}};
    good(vxc_map_create(
        client, name, &(struct vxc_map_params){.voxel_size_m = 0.05, .origin_m = {-1, 2, 0.5}}, NULL, &why));
    good(vxc_stream_open(client, name, &options, NULL, NULL, &stream, &why));
}

/* A camera that slides along a wall, with a box before it for some of the time. */
static void send_frame(double x_m, bool box)
{
    static float image[WIDTH * HEIGHT];
    struct vxc_frame f = {.sensor = VXC_DEPTH,
                          .stamp_ns = (int64_t)++seq * 1000000,
                          .pose = {.position_m = {x_m, 0, 0}, .rotation_xyzw = {0, 0, 0, 1}},
                          .width = WIDTH,
                          .height = HEIGHT,
                          .fx = 80,
                          .fy = 80,
                          .cx = 47.5,
                          .cy = 35.5,
                          .data = image,
                          .data_bytes = sizeof image};
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        const double a = (i % WIDTH - f.cx) / f.fx, b = (i / WIDTH - f.cy) / f.fy;
        image[i] = box && fabs(a) < 0.25 && fabs(b) < 0.2 ? 1.3f : 2.4f;
    }
    good(vxc_stream_send(stream, &f, NULL, NULL, &why));
}

struct place {
    int64_t corner[3][3];
};

static int by_place(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct place));
}

/* The triangles by the places of their corners in 1/256 voxel, the smallest first, sorted. */
static struct place *places_of(const struct vxc_mesh *m, const double origin_m[3], double voxel_m)
{
    struct place *out = calloc(m->n_triangles + 1, sizeof *out);
    ck_assert_ptr_nonnull(out);
    for (uint32_t i = 0; i < m->n_triangles; i++) {
        struct place p;
        int first = 0;
        for (int k = 0; k < 3; k++) {
            const uint32_t v = m->triangles[3 * i + (uint32_t)k];
            double length = 0;
            for (int a = 0; a < 3; a++) {
                p.corner[k][a] =
                    (int64_t)rint((m->origin_m[a] - origin_m[a] + (double)m->vertices[3 * v + (uint32_t)a]) /
                                  voxel_m * 256);
                length += (double)m->normals[3 * v + (uint32_t)a] * (double)m->normals[3 * v + (uint32_t)a];
            }
            ck_assert_double_eq_tol(length, 1, 1e-3);
            if (memcmp(p.corner[k], p.corner[first], sizeof p.corner[k]) < 0)
                first = k;
        }
        for (int k = 0; k < 3; k++)
            memcpy(out[i].corner[k], p.corner[(first + k) % 3], sizeof p.corner[k]);
    }
    qsort(out, m->n_triangles, sizeof *out, by_place);
    return out;
}

static void must_be_whole(struct vxc_mesh_follower *f, const char *map)
{
    struct vxc_mesh whole, welded;
    double origin_m[3], voxel_m;
    good(vxc_mesh_get(client, map, 0, 0, &whole, &why));
    good(vxc_mesh_weld(f, &welded, &why));
    vxc_mesh_frame(f, origin_m, &voxel_m);
    ck_assert(origin_m[0] == -1 && origin_m[1] == 2 && origin_m[2] == 0.5 && voxel_m == 0.05);
    ck_assert_uint_eq(welded.state.epoch, whole.state.epoch);
    ck_assert_uint_eq(welded.n_vertices, whole.n_vertices);
    ck_assert_uint_eq(welded.n_triangles, whole.n_triangles);
    struct place *a = places_of(&whole, origin_m, voxel_m), *b = places_of(&welded, origin_m, voxel_m);
    ck_assert_int_eq(memcmp(a, b, whole.n_triangles * sizeof *a), 0);
    free(a);
    free(b);
    vxc_mesh_fini(&whole);
    vxc_mesh_fini(&welded);
}

START_TEST(follows)
{
    struct vxc_mesh_follower *f;
    struct vxc_mesh_change change;
    const struct vxc_mesh_chunk *chunks;
    uint64_t n_bytes = 0;
    uint32_t n_complete = 0;

    open_map("lab");
    good(vxc_mesh_follow(client, "lab", NULL, &f, &why));
    good(vxc_mesh_update(f, 0, &change, &why)); /* nothing yet */
    ck_assert_uint_eq(vxc_mesh_chunks(f, &chunks), 0);
    for (int i = 0; i < 100; i++) { /* frames under way meanwhile: every tenth is not waited for */
        send_frame(0.1 * i, i > 20 && i < 60);
        if (i % 10 == 9) {
            good(vxc_mesh_update(f, 0, &change, &why));
            n_complete += change.complete;
            n_bytes += change.n_bytes;
        }
    }
    good(vxc_stream_flush(stream, &why));
    good(vxc_mesh_update(f, 0, &change, &why));
    ck_assert_uint_le(n_complete, 1);
    must_be_whole(f, "lab");
    ck_assert_uint_gt(vxc_mesh_chunks(f, &chunks), 1);
    good(vxc_mesh_update(f, 0, &change, &why));
    ck_assert(change.n_changed == 0 && change.n_removed == 0 && change.n_bytes == 0 && !change.complete);
    send_frame(0, false);
    good(vxc_stream_flush(stream, &why));
    good(vxc_mesh_update(f, 0, &change, &why)); /* at one end only */
    ck_assert(change.n_changed > 0 && change.n_changed < vxc_mesh_chunks(f, &chunks));
    must_be_whole(f, "lab");
    printf("11 updates beside 100 frames: %llu bytes\n", (unsigned long long)n_bytes);

    good(vxc_map_clear(client, "lab", NULL, &why));
    good(vxc_mesh_update(f, 0, &change, &why));
    ck_assert(change.complete && change.n_removed > 0 && vxc_mesh_chunks(f, &chunks) == 0);

    /* deleted and made again: the epochs begin anew, and the follower notices */
    vxc_stream_close(stream);
    good(vxc_map_delete(client, "lab", &why));
    must_fail(vxc_mesh_update(f, 0, &change, &why), VX_E_NOT_FOUND, "map");
    open_map("lab");
    for (int i = 0; i < 130; i++)
        send_frame(0.02 * i, false);
    good(vxc_stream_flush(stream, &why));
    good(vxc_mesh_update(f, 0, &change, &why));
    ck_assert(change.complete);
    must_be_whole(f, "lab");
    vxc_mesh_unfollow(f);
    vxc_stream_close(stream);
}
END_TEST

START_TEST(refused)
{
    const struct vxc_mesh_follow_options heavy = {.min_weight = 256},
                                         nan = {.has_region = true, .min_m = {NAN, 0, 0}},
                                         turned = {.has_region = true, .min_m = {1, 0, 0}},
                                         far = {
                                             .has_region = true, .min_m = {1e7, 0, 0}, .max_m = {1e8, 1, 1}};
    struct vxc_mesh_follower *f;
    struct vxc_mesh_change change;
    const struct vxc_mesh_chunk *chunks;
    struct vxc_mesh mesh;

    must_fail(vxc_mesh_follow(client, "no name", NULL, &f, &why), VX_E_INVALID, "map");
    ck_assert_ptr_null(f);
    open_map("lab");
    send_frame(0, false);
    good(vxc_stream_flush(stream, &why));
    good(vxc_mesh_follow(client, "lab", &heavy, &f, &why));
    must_fail(vxc_mesh_update(f, 0, &change, &why), VX_E_INVALID, "min_weight");
    must_fail(vxc_mesh_get(client, "lab", 0, 256, &mesh, &why), VX_E_INVALID, "min_weight");
    vxc_mesh_unfollow(f);
    good(vxc_mesh_follow(client, "lab", &nan, &f, &why));
    must_fail(vxc_mesh_update(f, 0, &change, &why), VX_E_INVALID, "region");
    vxc_mesh_unfollow(f);
    good(vxc_mesh_follow(client, "lab", &turned, &f, &why));
    must_fail(vxc_mesh_update(f, 0, &change, &why), VX_E_INVALID, "region");
    vxc_mesh_unfollow(f);
    good(vxc_mesh_follow(client, "lab", &far, &f, &why));
    good(vxc_mesh_update(f, 0, &change, &why));
    ck_assert(change.complete && vxc_mesh_chunks(f, &chunks) == 0);
    must_fail(vxc_mesh_update(f, 99, &change, &why), VX_E_STALE, "min_epoch");
    good(vxc_mesh_weld(f, &mesh, &why));
    ck_assert_uint_eq(mesh.n_triangles, 0);
    vxc_mesh_fini(&mesh);
    vxc_mesh_unfollow(f);
    vxc_stream_close(stream);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mesh that follows");
    TCase *t = tcase_create("real daemon");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, follows);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
