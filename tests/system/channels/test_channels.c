/*
 * Colour, labels and weights from the client library through the socket into a real daemon and back; and
 * everything about them that is refused.  usage: test_channels BACKEND
 */
#include "voxeld/client.h"
#include "vxd_peer.h"
#include "vxk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *backend = "cpu";
static struct vxd_proc proc;
static struct vxc_client *client;
static struct vx_detail why;

static void good(vx_err err)
{
    ck_assert_msg(err == VX_OK, "%s: %s [%s]", vx_err_name(err), why.text, why.field);
}

static void set_up(void)
{
    vxd_proc_start(&proc, "voxeld",
                   (const char *const[]){"--backend", backend, "--memory-cap", "536870912", NULL});
    good(vxc_connect(proc.dir, NULL, &client, &why));
}

static void tear_down(void)
{
    vxc_disconnect(client);
    vxd_proc_stop(&proc);
    proc.yaml = NULL;
}

static void create(const char *name, bool colour, bool label)
{
    const struct vxc_map_params params = {.voxel_size_m = 0.05, .colour = colour, .label = label};
    struct vxc_map_info info;
    good(vxc_map_create(client, name, &params, &info, &why));
    ck_assert_int_eq(info.params.colour, colour);
    ck_assert_int_eq(info.params.label, label);
}

/* ------------------------------------------------------------------ frames */

enum { WIDTH = 64, HEIGHT = 48, N_PX = WIDTH * HEIGHT };

/* A wall 1.52 m away: red with label 7 to the left, blue with label 9 to the right. */
struct wall {
    float depth[N_PX];
    uint8_t colour[3 * N_PX], label[N_PX];
    struct vxc_frame frame;
};

static void wall_init(struct wall *w)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < N_PX; i++) {
        const bool left = i % WIDTH < WIDTH / 2;
        w->depth[i] = 1.52f;
        w->colour[3 * i] = left ? 200 : 10;
        w->colour[3 * i + 1] = 20;
        w->colour[3 * i + 2] = left ? 10 : 220;
        w->label[i] = left ? 7 : 9;
    }
    w->frame = (struct vxc_frame){.sensor = VXC_DEPTH,
                                  .pose.rotation_xyzw[3] = 1,
                                  .width = WIDTH,
                                  .height = HEIGHT,
                                  .fx = 60,
                                  .fy = 60,
                                  .cx = 31.5,
                                  .cy = 23.5,
                                  .data = w->depth,
                                  .data_bytes = sizeof w->depth,
                                  .colour = w->colour,
                                  .label = w->label};
}

struct fates {
    int n_integrated, n_refused, n_unused;
    uint64_t used, zero; /* readings */
    char field[64];      /* of the last refusal */
};

static void on_ack(void *context, const struct vxc_ack *ack)
{
    struct fates *f = context;
    f->n_integrated += ack->fate == VXC_INTEGRATED;
    f->n_refused += ack->fate == VXC_REFUSED;
    if (ack->fate == VXC_REFUSED)
        snprintf(f->field, sizeof f->field, "%s", ack->why->field);
    if (ack->fate == VXC_INTEGRATED) {
        f->used += ack->counts.used;
        f->zero += ack->counts.zero;
    }
    f->n_unused += ack->fate == VXC_INTEGRATED && ack->warnings & VXC_WARN_UNUSED_CHANNEL;
}

static struct fates stream(const char *map, const struct vxc_frame *frame, double intensity_white, int n)
{
    const struct vxc_stream_options options = {
        .sensing = {.sensor = frame->sensor, .no_return_value = NAN, .intensity_white = intensity_white}};
    struct fates fates = {0};
    struct vxc_frame f = *frame;
    struct vxc_stream *s;
    good(vxc_stream_open(client, map, &options, on_ack, &fates, &s, &why));
    for (int i = 0; i < n; i++, f.stamp_ns += 33000000)
        good(vxc_stream_send(s, &f, NULL, NULL, &why));
    good(vxc_stream_flush(s, &why));
    vxc_stream_close(s);
    return fates;
}

START_TEST(depth)
{
    static const float points[3][3] = {{-0.3f, 0.1f, 1.52f}, {0.3f, -0.1f, 1.52f}, {0, 0, 0.7f}};
    static struct wall wall;
    struct vxc_tint t[3];
    struct vxc_map_info info;
    struct vxc_map_state state;
    struct vxc_mesh mesh;
    wall_init(&wall);
    create("m", true, true);
    const struct fates fates = stream("m", &wall.frame, 0, 3);
    ck_assert_int_eq(fates.n_integrated, 3);
    ck_assert_int_eq(fates.n_unused, 0);
    good(vxc_query_tints(client, "m", 3, NULL, points[0], 3, t, &state, &why));
    ck_assert_uint_eq(state.epoch, 3);
    ck_assert_uint_eq(t[0].colour[0] << 16 | t[0].colour[1] << 8 | t[0].colour[2], 200 << 16 | 20 << 8 | 10);
    ck_assert_uint_eq(t[1].colour[0] << 16 | t[1].colour[1] << 8 | t[1].colour[2], 10 << 16 | 20 << 8 | 220);
    ck_assert_uint_eq(t[0].label << 8 | t[1].label, 7 << 8 | 9);
    ck_assert_uint_gt(t[0].weight, 0);
    ck_assert_uint_gt(t[0].trust, 0);
    ck_assert_uint_eq(t[2].colour[0] | t[2].weight << 8 | t[2].label << 16, 128);
    good(vxc_map_get_info(client, "m", &info, &why));
    ck_assert_uint_gt(info.memory.colour_bytes, 0);
    ck_assert_uint_eq(info.memory.label_bytes * 2, info.memory.colour_bytes);
    good(vxc_mesh_get(client, "m", 3, 0, &mesh, &why));
    ck_assert_uint_gt(mesh.n_vertices, 300);
    ck_assert_ptr_nonnull(mesh.tints);
    for (uint32_t v = 0; v < mesh.n_vertices; v++) {
        const double x = mesh.origin_m[0] + (double)mesh.vertices[3 * v];
        if (fabs(x) > 0.06) {
            ck_assert_uint_eq(mesh.tints[v].colour[0], x < 0 ? 200 : 10);
            ck_assert_uint_eq(mesh.tints[v].label, x < 0 ? 7 : 9);
        }
    }
    vxc_mesh_fini(&mesh);
}
END_TEST

/* A map without channels takes the frames, keeps nothing of the colours, and says so in every
 * acknowledgement. */
START_TEST(unused)
{
    static const float point[3] = {-0.3f, 0.1f, 1.52f};
    static struct wall wall;
    struct vxc_map_info info;
    struct vxc_stats *stats;
    struct vxc_tint t;
    struct vxc_mesh mesh;
    uint8_t digest[2][32];
    wall_init(&wall);
    create("plain", false, false);
    create("bare", false, false);
    ck_assert_int_eq(stream("plain", &wall.frame, 0, 3).n_unused, 3);
    good(vxc_get_stats(client, &stats, &why));
    ck_assert_uint_eq(stats->n_streams, 1);
    ck_assert_uint_eq(stats->streams[0].n_warnings, 3);
    vxc_stats_free(stats);
    wall.frame.colour = wall.frame.label = NULL;
    ck_assert_int_eq(stream("bare", &wall.frame, 0, 3).n_unused, 0);
    good(vxc_map_digest(client, "plain", digest[0], NULL, &why));
    good(vxc_map_digest(client, "bare", digest[1], NULL, &why));
    ck_assert_mem_eq(digest[0], digest[1], 32);
    good(vxc_query_tints(client, "plain", 0, NULL, point, 1, &t, NULL, &why));
    ck_assert_uint_eq(t.weight | t.label | t.trust, 0);
    good(vxc_mesh_get(client, "plain", 0, 0, &mesh, &why));
    ck_assert_uint_gt(mesh.n_vertices, 300);
    ck_assert_ptr_null(mesh.tints);
    vxc_mesh_fini(&mesh);
    good(vxc_map_get_info(client, "plain", &info, &why));
    ck_assert_uint_eq(info.memory.colour_bytes + info.memory.label_bytes, 0);
}
END_TEST

/* LiDAR: colours, else intensities where the stream says what is white. */
START_TEST(lidar)
{
    enum { N = 4096 };
    static float xyz[3 * N], intensity[N];
    static uint8_t colour[3 * N];
    static const float point[3] = {3, 0, 0};
    struct vxc_frame f = {.sensor = VXC_POINTS,
                          .pose.rotation_xyzw[3] = 1,
                          .width = N,
                          .height = 1,
                          .data = xyz,
                          .data_bytes = sizeof xyz,
                          .intensity = intensity};
    struct vxc_tint t;
    for (int i = 0; i < N; i++) {
        xyz[3 * i] = 3;
        xyz[3 * i + 1] = (float)(i % 64 - 32) * 0.02f;
        xyz[3 * i + 2] = (float)(i / 64 - 32) * 0.02f;
        intensity[i] = 50;
        colour[3 * i] = 90;
        colour[3 * i + 1] = 140;
        colour[3 * i + 2] = 30;
    }
    create("a", true, false);
    create("b", true, false);
    create("c", true, false);
    ck_assert_int_eq(stream("a", &f, 0, 1).n_integrated, 1);
    good(vxc_query_tints(client, "a", 0, NULL, point, 1, &t, NULL, &why));
    ck_assert_uint_eq(t.weight, 0);
    ck_assert_int_eq(stream("b", &f, 100, 1).n_integrated, 1);
    good(vxc_query_tints(client, "b", 0, NULL, point, 1, &t, NULL, &why));
    ck_assert_uint_eq(t.weight, 1);
    ck_assert_uint_eq(t.colour[0], 128);
    f.colour = colour;
    ck_assert_int_eq(stream("c", &f, 100, 1).n_integrated, 1);
    good(vxc_query_tints(client, "c", 0, NULL, point, 1, &t, NULL, &why));
    ck_assert_uint_eq(t.colour[0] << 16 | t.colour[1] << 8 | t.colour[2], 90 << 16 | 140 << 8 | 30);
}
END_TEST

/* ------------------------------------------------------------------ weights */

/* Weight of the wall's voxels to the left and to the right; 0: they are not measured. */
static void wall_weights(const char *map, uint32_t weight[2])
{
    static const float points[2][3] = {{-0.32f, 0.12f, 1.52f}, {0.32f, -0.12f, 1.52f}};
    struct vxc_explanation e[2];
    good(vxc_explain(client, map, 0, NULL, points[0], 2, e, NULL, &why));
    weight[0] = e[0].weight;
    weight[1] = e[1].weight;
}

START_TEST(weights)
{
    static struct wall wall;
    static float weight[N_PX];
    struct fates fates;
    uint32_t plain[2], weighed[2];
    uint8_t digest[3][32];
    wall_init(&wall);
    wall.frame.colour = wall.frame.label = NULL;
    create("plain", false, false);
    create("ones", false, false);
    create("weighed", false, false);
    stream("plain", &wall.frame, 0, 2);
    wall_weights("plain", plain);
    ck_assert_uint_eq(plain[0], 2 * 7); /* 16 / 1.52^2 */
    ck_assert_uint_eq(plain[1], 2 * 7);
    wall.frame.weight = weight;
    for (int i = 0; i < N_PX; i++)
        weight[i] = 1;
    stream("ones", &wall.frame, 0, 2);
    good(vxc_map_digest(client, "plain", digest[0], NULL, &why));
    good(vxc_map_digest(client, "ones", digest[1], NULL, &why));
    ck_assert_mem_eq(digest[0], digest[1], 32);
    for (int i = 0; i < N_PX; i++)
        weight[i] = i % WIDTH < WIDTH / 2 ? 0 : 2.5f;
    fates = stream("weighed", &wall.frame, 0, 2);
    ck_assert_int_eq(fates.n_integrated, 2);
    ck_assert_uint_eq(fates.used, N_PX);
    ck_assert_uint_eq(fates.zero, N_PX);
    wall_weights("weighed", weighed);
    ck_assert_uint_eq(weighed[0], 0);
    ck_assert_uint_eq(weighed[1], 2 * 17); /* 2.5 x 6.93 */
    /* one pixel is enough to refuse a frame, by its place; the map stays as it was */
    static const float bad[] = {NAN, -1, INFINITY, 2e6f};
    good(vxc_map_digest(client, "weighed", digest[0], NULL, &why));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weight[N_PX - 1 - (int)i] = bad[i];
        fates = stream("weighed", &wall.frame, 0, 1);
        ck_assert_int_eq(fates.n_refused, 1);
        ck_assert_str_eq(fates.field, "weight");
        weight[N_PX - 1 - (int)i] = 1;
    }
    wall.frame = (struct vxc_frame){.sensor = VXC_POINTS,
                                    .pose.rotation_xyzw[3] = 1,
                                    .width = 16,
                                    .height = 1,
                                    .data = wall.depth,
                                    .data_bytes = 16 * 12,
                                    .weight = weight};
    fates = stream("weighed", &wall.frame, 0, 1);
    ck_assert_int_eq(fates.n_refused, 1);
    ck_assert_str_eq(fates.field, "channels");
    good(vxc_map_digest(client, "weighed", digest[1], NULL, &why));
    ck_assert_mem_eq(digest[0], digest[1], 32);
}
END_TEST

/* ------------------------------------------------------------------ refusals */

static void edit_white(Voxeld__V1__OpenStream *open)
{
    open->intensity_white = open->stream == 21   ? NAN
                            : open->stream == 22 ? -1
                            : open->stream == 24 ? 1e-310
                                                 : 100;
}

static void refused_stream(struct vxd_peer *ingest, uint64_t id, Voxeld__V1__Sensor sensor)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__OpenStream open = VOXELD__V1__OPEN_STREAM__INIT;
    open.stream = id;
    open.map = vxd_bytes("m");
    open.sensor = sensor;
    edit_white(&open);
    header.body_case = VOXELD__V1__HEADER__BODY_OPEN_STREAM;
    header.open_stream = &open;
    vxd_peer_expect_error(ingest, vxd_peer_send(ingest, &header, NULL, 0),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "intensity_white");
}

/* Channels of a 4 x 4 depth frame that must not be accepted. */
START_TEST(refusals)
{
    enum {
        COLOUR = VOXELD__V1__CHANNEL__CHANNEL_COLOUR,
        LABEL = VOXELD__V1__CHANNEL__CHANNEL_LABEL,
        WEIGHT = VOXELD__V1__CHANNEL__CHANNEL_WEIGHT
    };
    static const struct {
        int n, channel[2];
        size_t bytes[2];
    } cases[] = {{1, {COLOUR, 0}, {47, 0}},     {1, {COLOUR, 0}, {0, 0}},
                 {1, {COLOUR, 0}, {64, 0}},     {1, {LABEL, 0}, {48, 0}},
                 {1, {LABEL, 0}, {15, 0}},      {2, {COLOUR, COLOUR}, {48, 48}},
                 {2, {LABEL, LABEL}, {16, 16}}, {1, {WEIGHT, 0}, {63, 0}},
                 {1, {WEIGHT, 0}, {16, 0}},     {1, {WEIGHT, 0}, {128, 0}},
                 {1, {WEIGHT, 0}, {0, 0}},      {2, {WEIGHT, WEIGHT}, {64, 64}},
                 {1, {8, 0}, {16, 0}},          {1, {0, 0}, {16, 0}},
                 {2, {COLOUR, 99}, {48, 48}},   {1, {VOXELD__V1__CHANNEL__CHANNEL_INTENSITY, 0}, {64, 0}}};
    static const uint8_t bytes[128];
    struct vxd_peer ingest;
    struct vxd_depth_frame f;
    uint8_t digest[2][32];
    create("m", true, true);
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    good(vxc_map_digest(client, "m", digest[0], NULL, &why));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Voxeld__V1__Channel channel[2] = {(Voxeld__V1__Channel)cases[i].channel[0],
                                          (Voxeld__V1__Channel)cases[i].channel[1]};
        const void *payload[3];
        size_t n[3];
        vxd_depth_frame_init(&f, 1, 1);
        payload[0] = f.depth;
        n[0] = sizeof f.depth;
        for (int k = 0; k < cases[i].n; k++) {
            payload[1 + k] = bytes;
            n[1 + k] = cases[i].bytes[k];
        }
        f.frame.channels = channel;
        f.frame.n_channels = (size_t)cases[i].n;
        const uint64_t req = vxd_peer_send_all(&ingest, &f.header, payload, n, 1 + cases[i].n);
        struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_NACK, req);
        ck_assert_msg(got.header->nack->error->code == VOXELD__V1__CODE__CODE_INVALID_ARGUMENT &&
                          got.header->nack->error->field.len == 8 &&
                          !memcmp(got.header->nack->error->field.data, "channels", 8),
                      "case %zu: %.*s", i, (int)got.header->nack->error->message.len,
                      (const char *)got.header->nack->error->message.data);
        ck_assert_uint_gt(got.header->nack->error->message.len, 10);
        vxd_got_free(&got);
        got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_CREDIT, 0);
        vxd_got_free(&got);
    }
    good(vxc_map_digest(client, "m", digest[1], NULL, &why));
    ck_assert_mem_eq(digest[0], digest[1], 32);
    refused_stream(&ingest, 21, VOXELD__V1__SENSOR__SENSOR_POINTS);
    refused_stream(&ingest, 22, VOXELD__V1__SENSOR__SENSOR_RANGE);
    refused_stream(&ingest, 23, VOXELD__V1__SENSOR__SENSOR_DEPTH);
    refused_stream(&ingest, 24, VOXELD__V1__SENSOR__SENSOR_POINTS);
    vxd_peer_close(&ingest);
}
END_TEST

/* The configuration may make every map a coloured one. */
START_TEST(defaults)
{
    const struct vxc_map_params params = {.voxel_size_m = 0.05};
    struct vxc_map_info info;
    tear_down();
    proc.yaml = "log_level: error\nmap_defaults:\n  colour: 1\n";
    set_up();
    good(vxc_map_create(client, "m", &params, &info, &why));
    ck_assert(info.params.colour);
    ck_assert(!info.params.label);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        backend = argv[1];
    if (!strcmp(backend, "cuda") && !vxk_cuda_available()) {
        printf("skipped: no CUDA device\n");
        return 77;
    }
    Suite *suite = suite_create("channels");
    TCase *tests = tcase_create("channels");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, depth);
    tcase_add_test(tests, unused);
    tcase_add_test(tests, lidar);
    tcase_add_test(tests, weights);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, defaults);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
