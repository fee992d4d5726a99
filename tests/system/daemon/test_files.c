/* MAP_EXPORT and MAP_IMPORT: bodies in files, names that are taken and given back, ends of every kind. */
#include "fake_gate.h"
#include "vxd_peer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 1000, BIG = 5500000 }; /* of fake_core.c */

static struct vxd_proc proc;
static struct vxd_peer admin, query;
static uint8_t *bytes, *back; /* [BIG] what the fake core exports; room */

static void start(const char *yaml)
{
    proc.yaml = yaml;
    fake_gate_shut();
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    bytes = malloc(BIG);
    back = malloc(BIG);
    for (uint64_t i = 0; i < BIG; ++i)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) + (i >> 20));
}

static void set_up(void)
{
    start(NULL);
}

static void tear_down(void)
{
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    vxd_proc_stop(&proc);
    fake_gate_remove();
    proc.yaml = NULL;
    free(bytes);
    free(back);
}

static uint64_t send_export(struct vxd_peer *peer, const char *map, void (*edit)(Voxeld__V1__MapExport *))
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapExport body = VOXELD__V1__MAP_EXPORT__INIT;
    body.map = vxd_bytes(map);
    if (edit)
        edit(&body);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_EXPORT;
    header.map_export = &body;
    return vxd_peer_send(peer, &header, NULL, 0);
}

/* In parts; the caller sends them. */
static uint64_t send_import(struct vxd_peer *peer, const char *map, uint64_t n,
                            void (*edit)(Voxeld__V1__MapImport *))
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapImport body = VOXELD__V1__MAP_IMPORT__INIT;
    body.map = vxd_bytes(map);
    body.file_bytes = n;
    if (edit)
        edit(&body);
    header.body_bytes = n;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_IMPORT;
    header.map_import = &body;
    return vxd_peer_send(peer, &header, NULL, 0);
}

static void send_cancel(struct vxd_peer *peer, uint64_t req)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Cancel body = VOXELD__V1__CANCEL__INIT;
    body.req_id = req;
    header.body_case = VOXELD__V1__HEADER__BODY_CANCEL;
    header.cancel = &body;
    vxd_peer_send(peer, &header, NULL, 0);
}

static uint64_t send_info(const char *map)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapInfo body = VOXELD__V1__MAP_INFO__INIT;
    body.map = vxd_bytes(map);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_INFO;
    header.map_info = &body;
    return vxd_peer_send(&query, &header, NULL, 0);
}

static uint64_t spool_bytes(void)
{
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    uint64_t n = r->spool_bytes;
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    return n;
}

static void expect_no_map(const char *map)
{
    vxd_peer_expect_error(&query, send_info(map), VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
}

static uint64_t expect_map(const char *map)
{
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, send_info(map));
    uint64_t n = got.header->map_info_reply->n_voxels;
    vxd_got_free(&got);
    return n;
}

static void edit_float(Voxeld__V1__MapExport *e)
{
    e->format = VOXELD__V1__EXPORT_FORMAT__EXPORT_NVDB_FLOAT;
}
static void edit_format(Voxeld__V1__MapExport *e)
{
    e->format = (Voxeld__V1__ExportFormat)7;
}
static void edit_layer(Voxeld__V1__MapExport *e)
{
    e->layer = VOXELD__V1__LAYER__LAYER_OCCUPANCY;
}
static void edit_no_layer(Voxeld__V1__MapExport *e)
{
    e->layer = (Voxeld__V1__Layer)9;
}
static void edit_epoch(Voxeld__V1__MapExport *e)
{
    e->min_epoch = 5;
}

START_TEST(export_bodies)
{
    static const char *const names[] = {"small", "bigfile"};
    const size_t sizes[] = {SMALL, BIG};
    for (int i = 0; i < 2; ++i) {
        vxd_peer_map_create(&admin, names[i], 0.1);
        uint64_t req = send_export(&admin, names[i], NULL);
        struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, req);
        ck_assert_uint_eq(got.header->body_bytes, sizes[i]);
        ck_assert_uint_eq(got.header->result->n_voxels, 12);
        ck_assert_uint_eq(got.header->result->n_leaves, 3);
        ck_assert_uint_eq(got.header->result->map->name.len, strlen(names[i]));
        vxd_got_free(&got);
        memset(back, 0, sizes[i]);
        vxd_peer_download(&admin, req, back, sizes[i]);
        ck_assert_mem_eq(back, bytes, sizes[i]);
    }
    uint64_t req = send_export(&admin, "small", edit_float);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
    vxd_peer_download(&admin, req, back, SMALL);
    ck_assert_mem_eq(back, bytes + 1, SMALL);
}
END_TEST

START_TEST(export_refused)
{
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_expect_error(&admin, send_export(&admin, "none", NULL), VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
    vxd_peer_expect_error(&admin, send_export(&admin, "m", edit_format),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "format");
    vxd_peer_expect_error(&admin, send_export(&admin, "m", edit_no_layer),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "layer");
    vxd_peer_expect_error(&admin, send_export(&admin, "m", edit_layer),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "layer");
    vxd_peer_expect_error(&admin, send_export(&admin, "m", edit_epoch), VOXELD__V1__CODE__CODE_STALE_EPOCH,
                          "min_epoch");
    vxd_peer_expect_error(&query, send_export(&query, "m", NULL), VOXELD__V1__CODE__CODE_UNIMPLEMENTED, NULL);
    ck_assert_uint_eq(expect_map("m"), 0);
}
END_TEST

/* Waits at the gate, so that a CANCEL meets it there; and one that ends a download. */
START_TEST(export_cancelled)
{
    vxd_peer_map_create(&admin, "gated", 0.1);
    uint64_t req = send_export(&admin, "gated", NULL);
    send_cancel(&admin, req);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    vxd_peer_map_create(&admin, "bigfile", 0.1);
    req = send_export(&admin, "bigfile", NULL);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
    send_cancel(&admin, req);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    ck_assert(vxd_peer_is_quiet(&admin));
}
END_TEST

static void edit_progress(Voxeld__V1__MapExport *e)
{
    e->progress = true;
}

static void expect_progress(uint64_t req, Voxeld__V1__Phase phase, uint64_t done, uint64_t total)
{
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_PROGRESS, req);
    ck_assert_int_eq(got.header->progress->phase, phase);
    ck_assert_uint_eq(got.header->progress->done, done);
    ck_assert_uint_eq(got.header->progress->total, total);
    vxd_got_free(&got);
}

/* What the core says of its progress is told by the clock, once. */
START_TEST(export_progress)
{
    vxd_peer_map_create(&admin, "gated", 0.1);
    uint64_t req = send_export(&admin, "gated", edit_progress);
    expect_progress(req, VOXELD__V1__PHASE__PHASE_QUEUED, 0, 0);
    expect_progress(req, VOXELD__V1__PHASE__PHASE_RUNNING, 1, SMALL);
    fake_gate_open();
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
    vxd_peer_download(&admin, req, back, SMALL);
    ck_assert_mem_eq(back, bytes, SMALL);
}
END_TEST

/* A map may be deleted while its file is on the way: the file is whole already. */
START_TEST(deleted_meanwhile)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapDelete body = VOXELD__V1__MAP_DELETE__INIT;
    vxd_peer_map_create(&admin, "bigfile", 0.1);
    uint64_t req = send_export(&admin, "bigfile", NULL);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
    body.map = vxd_bytes("bigfile");
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DELETE;
    header.map_delete = &body;
    got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, vxd_peer_send(&admin, &header, NULL, 0));
    vxd_got_free(&got);
    vxd_peer_download(&admin, req, back, BIG);
    ck_assert_mem_eq(back, bytes, BIG);
}
END_TEST

static void edit_weight(Voxeld__V1__MapImport *m)
{
    m->given_weight_case = VOXELD__V1__MAP_IMPORT__GIVEN_WEIGHT_WEIGHT;
    m->weight = 9;
}

START_TEST(import_bodies)
{
    uint64_t req = send_import(&admin, "big", BIG, edit_weight);
    vxd_peer_upload(&admin, req, bytes, BIG);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, req);
    ck_assert_uint_eq(got.header->map_info_reply->n_voxels, BIG);
    ck_assert_uint_eq(got.header->map_info_reply->map->epoch, 1);
    ck_assert_double_eq(got.header->map_info_reply->params->truncation_voxels, 9);
    vxd_got_free(&got);
    ck_assert_uint_eq(expect_map("big"), BIG);

    /* a small body in the message itself */
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapImport body = VOXELD__V1__MAP_IMPORT__INIT;
    body.map = vxd_bytes("small");
    body.file_bytes = SMALL;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_IMPORT;
    header.map_import = &body;
    got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY,
                          vxd_peer_send(&admin, &header, bytes, SMALL));
    ck_assert_double_eq(got.header->map_info_reply->params->truncation_voxels, 1);
    vxd_got_free(&got);
    ck_assert_uint_eq(expect_map("small"), SMALL);
}
END_TEST

static void edit_origin(Voxeld__V1__MapImport *m)
{
    static Voxeld__V1__MapParams params;
    voxeld__v1__map_params__init(&params);
    params.voxel_size_m = 0.1;
    m->params = &params;
}
static void edit_mode(Voxeld__V1__MapImport *m)
{
    m->given_mode_case = VOXELD__V1__MAP_IMPORT__GIVEN_MODE_MODE;
    m->mode = (Voxeld__V1__MapMode)5;
}
static void edit_bad_weight(Voxeld__V1__MapImport *m)
{
    m->given_weight_case = VOXELD__V1__MAP_IMPORT__GIVEN_WEIGHT_WEIGHT;
    m->weight = 256;
}
static void edit_weighting(Voxeld__V1__MapImport *m)
{
    static Voxeld__V1__MapParams p;
    voxeld__v1__map_params__init(&p);
    p.weighting = (Voxeld__V1__Weighting)-1;
    m->params = &p;
}
static void edit_grid(Voxeld__V1__MapImport *m)
{
    static uint8_t long_name[300];
    memset(long_name, 'a', sizeof long_name);
    m->grid = (ProtobufCBinaryData){sizeof long_name, long_name};
}
static void edit_size(Voxeld__V1__MapImport *m)
{
    m->file_bytes = 5;
}

START_TEST(import_refused)
{
    static const struct {
        void (*edit)(Voxeld__V1__MapImport *);
        const char *field;
    } cases[] = {{edit_origin, "params"},     {edit_mode, "mode"},
                 {edit_bad_weight, "weight"}, {edit_weighting, "params.weighting"},
                 {edit_grid, "grid"},         {edit_size, "file_bytes"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        vxd_peer_expect_error(&admin, send_import(&admin, "m", SMALL, cases[i].edit),
                              VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, cases[i].field);
        expect_no_map("m");
    }
    vxd_peer_expect_error(&admin, send_import(&admin, "a/b", SMALL, NULL),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "map");
    vxd_peer_expect_error(&admin, send_import(&admin, "m", 0, NULL), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT,
                          "file_bytes");
    bytes[BIG - 1] ^= 1; /* the core refuses the file */
    uint64_t req = send_import(&admin, "m", BIG, NULL);
    vxd_peer_upload(&admin, req, bytes, BIG);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "magic");
    expect_no_map("m");
    bytes[BIG - 1] ^= 1;
    req = send_import(&admin, "nomem", SMALL, NULL);
    vxd_peer_upload(&admin, req, bytes, SMALL);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, NULL);
    expect_no_map("nomem");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_expect_error(&admin, send_import(&admin, "m", SMALL, NULL),
                          VOXELD__V1__CODE__CODE_ALREADY_EXISTS, "map");
}
END_TEST

/* While the file arrives the name is taken; CANCEL, the end of the session and a bad part give it back. */
START_TEST(import_ended)
{
    struct vxd_peer other;
    uint64_t req = send_import(&admin, "m", BIG, NULL);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_CREDIT, req);
    vxd_got_free(&got);
    vxd_peer_expect_error(&query, send_info("m"), VOXELD__V1__CODE__CODE_LOADING, "map");
    ck_assert_uint_eq(spool_bytes(), BIG);
    vxd_peer_hello(&other, &proc, "admin");
    vxd_peer_expect_error(&other, send_import(&other, "m", SMALL, NULL),
                          VOXELD__V1__CODE__CODE_ALREADY_EXISTS, "map");
    send_cancel(&admin, req);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    expect_no_map("m");

    vxw_header header = VOXELD__V1__HEADER__INIT; /* the session ends */
    Voxeld__V1__Bye bye = VOXELD__V1__BYE__INIT;
    req = send_import(&other, "m", BIG, NULL);
    got = vxd_peer_expect(&other, VOXELD__V1__HEADER__BODY_CREDIT, req);
    vxd_got_free(&got);
    header.body_case = VOXELD__V1__HEADER__BODY_BYE;
    header.bye = &bye;
    got = vxd_peer_expect(&other, VOXELD__V1__HEADER__BODY_BYE, vxd_peer_send(&other, &header, NULL, 0));
    vxd_got_free(&got);
    vxd_peer_close(&other);
    ck_assert(vxd_peer_is_quiet(&admin)); /* the sweep is behind us */
    expect_no_map("m");

    req = send_import(&admin, "m", BIG, NULL); /* a part out of order */
    got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_CREDIT, req);
    vxd_got_free(&got);
    Voxeld__V1__Part part = VOXELD__V1__PART__INIT;
    vxw_header part_header = VOXELD__V1__HEADER__INIT;
    part.index = 1;
    part_header.req_id = req;
    part_header.body_case = VOXELD__V1__HEADER__BODY_PART;
    part_header.part = &part;
    vxd_peer_send(&admin, &part_header, bytes, 1 << 20);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "part.index");
    expect_no_map("m");

    req = send_import(&admin, "gated", SMALL, NULL); /* while the core works on it */
    vxd_peer_upload(&admin, req, bytes, SMALL);
    send_cancel(&admin, req);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    expect_no_map("gated");
    while (spool_bytes()) /* files are closed on a worker */
        ;
}
END_TEST

START_TEST(limits)
{
    tear_down();
    start("log_level: error\nlimits:\n  spool_bytes: 1048576\n");
    vxd_peer_map_create(&admin, "bigfile", 0.1);
    vxd_peer_expect_error(&admin, send_export(&admin, "bigfile", NULL),
                          VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "limits.spool_bytes");
    vxd_peer_expect_error(&admin, send_import(&admin, "m", BIG, NULL),
                          VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "limits.spool_bytes");
    expect_no_map("m");
    for (int i = 0; i < 3; ++i) { /* what ended is counted no more */
        uint64_t req = send_import(&admin, "m", 1 << 20, NULL);
        struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_CREDIT, req);
        vxd_got_free(&got);
        send_cancel(&admin, req);
        vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    }
    tear_down();
    start("log_level: error\nspool_dir: /nowhere/at/all\n");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_expect_error(&admin, send_export(&admin, "m", NULL), VOXELD__V1__CODE__CODE_UNAVAILABLE,
                          "spool_dir");
    uint64_t req = send_import(&admin, "n", SMALL, NULL);
    vxd_peer_upload(&admin, req, bytes, SMALL);
    vxd_peer_expect_error(&admin, req, VOXELD__V1__CODE__CODE_UNAVAILABLE, "spool_dir");
    expect_no_map("n");
}
END_TEST

/* An upload, a download and an import at work do not hold up the end of the daemon. */
START_TEST(stopped)
{
    vxd_peer_map_create(&admin, "bigfile", 0.1);
    uint64_t req = send_export(&admin, "bigfile", NULL);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
    req = send_import(&admin, "gated", SMALL, NULL);
    vxd_peer_upload(&admin, req, bytes, SMALL);
    req = send_import(&admin, "m", BIG, NULL);
    got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_CREDIT, req);
    vxd_got_free(&got);
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("files");
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, export_bodies);
    tcase_add_test(c, export_refused);
    tcase_add_test(c, export_cancelled);
    tcase_add_test(c, export_progress);
    tcase_add_test(c, deleted_meanwhile);
    tcase_add_test(c, import_bodies);
    tcase_add_test(c, import_refused);
    tcase_add_test(c, import_ended);
    tcase_add_test(c, limits);
    tcase_add_test(c, stopped);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
