/* MAP_CREATE, LIST, INFO, DIGEST, CLEAR, DELETE, STATS; two maps; deletion while queries and frames are under
 * way. */
#include "fake_gate.h"
#include "vxd_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vxd_proc proc;
static struct vxd_peer admin, query, ingest;

static void set_up(void)
{
    fake_gate_shut();
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_hello(&ingest, &proc, "ingest");
}

static void tear_down(void)
{
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    vxd_peer_close(&ingest);
    vxd_proc_stop(&proc);
    fake_gate_remove();
}

static uint64_t send_create(const char *name, double voxel, void (*edit)(Voxeld__V1__MapParams *))
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapCreate create = VOXELD__V1__MAP_CREATE__INIT;
    Voxeld__V1__MapParams params = VOXELD__V1__MAP_PARAMS__INIT;
    params.voxel_size_m = voxel;
    if (edit)
        edit(&params);
    create.map = vxd_bytes(name);
    create.params = &params;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CREATE;
    header.map_create = &create;
    return vxd_peer_send(&admin, &header, NULL, 0);
}

static uint64_t send_delete(const char *name)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapDelete body = VOXELD__V1__MAP_DELETE__INIT;
    body.map = vxd_bytes(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DELETE;
    header.map_delete = &body;
    return vxd_peer_send(&admin, &header, NULL, 0);
}

static uint64_t send_info(struct vxd_peer *peer, const char *name)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapInfo body = VOXELD__V1__MAP_INFO__INIT;
    body.map = vxd_bytes(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_INFO;
    header.map_info = &body;
    return vxd_peer_send(peer, &header, NULL, 0);
}

static uint64_t send_points(struct vxd_peer *peer, const char *name, const float *points, uint32_t n)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints body = VOXELD__V1__QUERY_POINTS__INIT;
    body.map = vxd_bytes(name);
    body.n = n;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &body;
    return vxd_peer_send(peer, &header, points, n * 12);
}

static size_t list_maps(char names[8][65])
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapList list = VOXELD__V1__MAP_LIST__INIT;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_LIST;
    header.map_list = &list;
    uint64_t req = vxd_peer_send(&query, &header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_MAP_LIST_REPLY, req);
    size_t n = got.header->map_list_reply->n_maps;
    for (size_t i = 0; i < n && i < 8; ++i) {
        const Voxeld__V1__MapState *m = got.header->map_list_reply->maps[i];
        ck_assert_uint_eq(m->uuid.len, 16);
        snprintf(names[i], 65, "%.*s", (int)m->name.len, (const char *)m->name.data);
    }
    vxd_got_free(&got);
    return n;
}

static void edit_create(Voxeld__V1__MapParams *p)
{
    static Voxeld__V1__Vec3 origin;
    voxeld__v1__vec3__init(&origin);
    origin.x = 5e5;
    p->origin_m = &origin;
    p->truncation_voxels = 4;
    p->esdf_max_distance_m = 0.25;
    p->limit_bytes = 1 << 30;
}

START_TEST(create_and_info)
{
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY,
                                         send_create("a.b-C_9", 0.1, edit_create));
    const Voxeld__V1__MapInfoReply *r = got.header->map_info_reply;
    ck_assert_double_eq(r->params->voxel_size_m, 0.1);
    ck_assert_double_eq(r->params->origin_m->x, 5e5);
    ck_assert_double_eq(r->params->truncation_voxels, 4);
    ck_assert_uint_eq(r->params->limit_bytes, 1 << 30);
    ck_assert_double_eq(r->map->max_distance_m, 0.25);
    ck_assert_uint_eq(r->map->epoch, 0);
    vxd_got_free(&got);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, send_info(&query, "a.b-C_9"));
    ck_assert_ptr_null(got.header->map_info_reply->bounds);
    ck_assert_uint_eq(got.header->map_info_reply->esdf_radius_voxels, 10);
    vxd_got_free(&got);
}
END_TEST

static void edit_mode(Voxeld__V1__MapParams *p)
{
    p->mode = (Voxeld__V1__MapMode)9;
}

static void edit_weighting(Voxeld__V1__MapParams *p)
{
    p->weighting = (Voxeld__V1__Weighting)3;
}

START_TEST(create_refusals)
{
    char long_name[66];
    memset(long_name, 'x', 65);
    long_name[65] = 0;
    vxd_peer_expect_error(&admin, send_create("", 0.1, NULL), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "map");
    vxd_peer_expect_error(&admin, send_create("a/b", 0.1, NULL), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT,
                          "map");
    vxd_peer_expect_error(&admin, send_create(long_name, 0.1, NULL), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT,
                          "map");
    vxd_peer_expect_error(&admin, send_create("m", 0, NULL), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT,
                          "voxel_size_m");
    vxd_peer_expect_error(&admin, send_create("m", 0.1, edit_mode), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT,
                          "params.mode");
    vxd_peer_expect_error(&admin, send_create("m", 0.1, edit_weighting),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "params.weighting");
    vxd_peer_expect_error(&admin, send_create("nomem", 0.1, NULL), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED,
                          "limit_bytes");
    char names[8][65];
    ck_assert_uint_eq(list_maps(names), 0); /* nothing stayed */
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_expect_error(&admin, send_create("m", 0.1, NULL), VOXELD__V1__CODE__CODE_ALREADY_EXISTS, "map");
    /* a name with a NUL in it is no name */
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapDigest body = VOXELD__V1__MAP_DIGEST__INIT;
    body.map = (ProtobufCBinaryData){3, (uint8_t *)"m\0x"};
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DIGEST;
    header.map_digest = &body;
    uint64_t req = vxd_peer_send(&admin, &header, NULL, 0);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "map");
}
END_TEST

START_TEST(as_many_maps_as_allowed)
{
    char name[16];
    for (int i = 0; i < 32; ++i) {
        snprintf(name, sizeof name, "m%d", i);
        vxd_peer_map_create(&admin, name, 0.1);
    }
    vxd_peer_expect_error(&admin, send_create("one-more", 0.1, NULL),
                          VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "limits.maps");
}
END_TEST

START_TEST(two_maps_two_streams_each)
{
    char names[8][65];
    uint8_t before[2][32], after[2][32];
    vxd_peer_map_create(&admin, "two", 0.1);
    vxd_peer_map_create(&admin, "one", 0.2);
    ck_assert_uint_eq(list_maps(names), 2);
    ck_assert_str_eq(names[0], "one");
    ck_assert_str_eq(names[1], "two");
    vxd_peer_map_digest(&admin, "one", before[0]);
    vxd_peer_map_digest(&admin, "two", before[1]);
    for (uint64_t s = 1; s <= 4; ++s)
        vxd_peer_open_stream(&ingest, s <= 2 ? "one" : "two", s, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    int integrated = 0;
    for (uint64_t s = 1; s <= 3; ++s) { /* two frames into one, one into two */
        struct vxd_depth_frame f;
        vxd_depth_frame_init(&f, s, 1);
        vxd_depth_frame_send(&ingest, &f);
    }
    while (integrated < 3) {
        struct vxd_got got = vxd_peer_get(&ingest);
        if (got.header->body_case == VOXELD__V1__HEADER__BODY_ACK) {
            const Voxeld__V1__Ack *a = got.header->ack;
            ck_assert_int_eq(a->map->name.data[0], a->stream <= 2 ? 'o' : 't');
            ++integrated;
        }
        vxd_got_free(&got);
    }
    vxd_peer_map_digest(&admin, "one", after[0]);
    vxd_peer_map_digest(&admin, "two", after[1]);
    ck_assert_mem_ne(before[0], after[0], 32);
    ck_assert_mem_ne(before[1], after[1], 32);
    struct vxd_got got =
        vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, send_info(&query, "one"));
    ck_assert_uint_eq(got.header->map_info_reply->n_frames, 2);
    vxd_got_free(&got);
}
END_TEST

START_TEST(clear_empties)
{
    uint8_t empty[32], digest[32];
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_map_digest(&admin, "m", empty);
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    struct vxd_depth_frame f;
    vxd_depth_frame_init(&f, 1, 1);
    struct vxd_got got =
        vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, vxd_depth_frame_send(&ingest, &f));
    vxd_got_free(&got);
    vxd_peer_map_digest(&admin, "m", digest);
    ck_assert_mem_ne(digest, empty, 32);
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapClear body = VOXELD__V1__MAP_CLEAR__INIT;
    body.map = vxd_bytes("m");
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CLEAR;
    header.map_clear = &body;
    got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, vxd_peer_send(&admin, &header, NULL, 0));
    ck_assert_uint_eq(got.header->result->map->epoch, 2);
    ck_assert_int_eq(got.header->result->map->newest_stamp_ns, 0);
    vxd_got_free(&got);
    vxd_peer_map_digest(&admin, "m", digest);
    ck_assert_mem_eq(digest, empty, 32);
}
END_TEST

START_TEST(delete_and_create_again)
{
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, send_delete("m"));
    ck_assert_uint_eq(got.header->result->map->name.len, 1);
    vxd_got_free(&got);
    vxd_peer_expect_error(&admin, send_delete("m"), VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
    vxd_peer_expect_error(&query, send_info(&query, "m"), VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
    struct vxd_depth_frame f; /* its stream went with it */
    vxd_depth_frame_init(&f, 1, 1);
    got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_NACK, vxd_depth_frame_send(&ingest, &f));
    ck_assert_int_eq(got.header->nack->error->code, VOXELD__V1__CODE__CODE_NOT_FOUND);
    vxd_got_free(&got);
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
}
END_TEST

/* A running query, a waiting one, a running frame and a waiting one: the map goes, everyone gets an answer.
 */
START_TEST(delete_while_busy)
{
    float points[3] = {1, 2, 3};
    vxd_peer_map_create(&admin, "gated", 0.1);
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    uint64_t q1 = send_points(&query, "gated", points, 1), q2 = send_points(&query, "gated", points, 1);
    for (uint64_t seq = 1; seq <= 2; ++seq) {
        struct vxd_depth_frame f;
        vxd_depth_frame_init(&f, 1, seq);
        vxd_depth_frame_send(&ingest, &f);
    }
    ck_assert(vxd_peer_is_quiet(&query));
    ck_assert(vxd_peer_is_quiet(&ingest));
    uint64_t del = send_delete("gated");
    /* the running query is asked to stop, the waiting one never runs: whichever is answered first */
    for (int i = 0; i < 2; ++i) {
        struct vxd_got got = vxd_peer_get(&query);
        ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_ERROR);
        ck_assert_int_eq(got.header->error->code, VOXELD__V1__CODE__CODE_NOT_FOUND);
        ck_assert_uint_eq(got.header->error->message.len, strlen("the map was deleted"));
        ck_assert(got.header->req_id == q1 || got.header->req_id == q2);
        vxd_got_free(&got);
    }
    ck_assert(vxd_peer_is_quiet(&admin)); /* not before the frames */
    vxd_peer_expect_error(&admin, send_create("gated", 0.1, NULL), VOXELD__V1__CODE__CODE_ALREADY_EXISTS,
                          "map");
    fake_gate_open();
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, del);
    vxd_got_free(&got);
    int acks = 0;
    while (acks < 2) {
        got = vxd_peer_get(&ingest);
        acks += got.header->body_case == VOXELD__V1__HEADER__BODY_ACK;
        ck_assert_int_ne(got.header->body_case, VOXELD__V1__HEADER__BODY_NACK);
        vxd_got_free(&got);
    }
}
END_TEST

START_TEST(stats_of_everything)
{
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_open_stream(&ingest, "m", 5, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    struct vxd_depth_frame f;
    vxd_depth_frame_init(&f, 5, 1);
    struct vxd_got got =
        vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, vxd_depth_frame_send(&ingest, &f));
    vxd_got_free(&got);
    got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_CREDIT, 0);
    vxd_got_free(&got);
    vxd_depth_frame_init(&f, 5, 1); /* a duplicate */
    got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_NACK, vxd_depth_frame_send(&ingest, &f));
    vxd_got_free(&got);
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    ck_assert_uint_eq(r->n_devices, 1);
    ck_assert_mem_eq(r->devices[0]->name.data, "fake", 4);
    ck_assert_uint_eq(r->n_maps, 1);
    ck_assert_uint_eq(r->maps[0]->n_frames, 1);
    ck_assert_uint_eq(r->maps[0]->n_refused, 1);
    ck_assert_uint_eq(r->maps[0]->map->epoch, 1);
    ck_assert_uint_eq(r->maps[0]->n_latencies, 1);
    ck_assert_uint_eq(r->n_streams, 1);
    const Voxeld__V1__StreamStats *s = r->streams[0];
    ck_assert_uint_eq(s->stream, 5);
    ck_assert(s->open);
    ck_assert_uint_eq(s->n_received, 2);
    ck_assert_uint_eq(s->n_integrated, 1);
    ck_assert_uint_eq(s->n_refused, 1);
    ck_assert_int_eq(s->refused[0]->code, VOXELD__V1__CODE__CODE_OUT_OF_ORDER);
    ck_assert_uint_eq(s->readings->used, 16);
    ck_assert_uint_eq(r->n_errors, 1);
    ck_assert_uint_eq(r->n_latencies, 1);
    ck_assert_uint_eq(r->latencies[0]->n, 1);
    ck_assert_double_gt(r->latencies[0]->p99_us, 0);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon maps");
    TCase *tc = tcase_create("maps");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, create_and_info);
    tcase_add_test(tc, create_refusals);
    tcase_add_test(tc, as_many_maps_as_allowed);
    tcase_add_test(tc, two_maps_two_streams_each);
    tcase_add_test(tc, clear_empties);
    tcase_add_test(tc, delete_and_create_again);
    tcase_add_test(tc, delete_while_busy);
    tcase_add_test(tc, stats_of_everything);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
