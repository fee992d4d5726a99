/* Streams and frames: credits, acknowledgements, order, latest, deadlines, detached streams. */
#include "fake_gate.h"
#include "vxd_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vxd_proc proc;
static struct vxd_peer admin, ingest;

static void set_up(void)
{
    fake_gate_shut();
    proc.yaml = NULL; /* a test may have had its own */
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_map_create(&admin, "gated", 0.1);
    vxd_peer_map_create(&admin, "full", 0.1);
}

static void tear_down(void)
{
    vxd_peer_close(&admin);
    vxd_peer_close(&ingest);
    vxd_proc_stop(&proc);
    fake_gate_remove();
}

/* Asks to open a stream of depth images, and waits for nothing. */
static uint64_t ask_for_stream(struct vxd_peer *peer, const char *map, uint64_t stream)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__OpenStream open = VOXELD__V1__OPEN_STREAM__INIT;
    open.stream = stream;
    open.map = vxd_bytes(map);
    open.sensor = VOXELD__V1__SENSOR__SENSOR_DEPTH;
    header.body_case = VOXELD__V1__HEADER__BODY_OPEN_STREAM;
    header.open_stream = &open;
    return vxd_peer_send(peer, &header, NULL, 0);
}

static uint64_t send_frame(uint64_t stream, uint64_t seq)
{
    struct vxd_depth_frame f;
    vxd_depth_frame_init(&f, stream, seq);
    return vxd_depth_frame_send(&ingest, &f);
}

static void expect_ack(uint64_t seq, Voxeld__V1__AckLevel level, bool superseded)
{
    struct vxd_got got = vxd_peer_get(&ingest);
    ck_assert_str_eq(vxw_type_name(got.header->body_case), "ack");
    ck_assert_uint_eq(got.header->ack->seq, seq);
    ck_assert_int_eq(got.header->ack->level, level);
    ck_assert_int_eq(got.header->ack->superseded, superseded);
    vxd_got_free(&got);
}

static void expect_credit(uint64_t bytes)
{
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_CREDIT, 0);
    ck_assert_uint_eq(got.header->credit->frames, 1);
    ck_assert_uint_eq(got.header->credit->bytes, bytes);
    vxd_got_free(&got);
}

static void expect_nack(uint64_t req, Voxeld__V1__Code code, const char *field)
{
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_NACK, req);
    const Voxeld__V1__Error *e = got.header->nack->error;
    ck_assert_msg(e->code == code, "code %d: %.*s", e->code, (int)e->message.len,
                  (const char *)e->message.data);
    if (field)
        ck_assert_msg(e->field.len == strlen(field) && !memcmp(e->field.data, field, e->field.len),
                      "field %.*s", (int)e->field.len, (const char *)e->field.data);
    vxd_got_free(&got);
}

static void ask_received(Voxeld__V1__OpenStream *open)
{
    open->ack_received = true;
}

static void ask_latest(Voxeld__V1__OpenStream *open)
{
    open->delivery = VOXELD__V1__DELIVERY__DELIVERY_LATEST;
}

static void expect_open_error(void (*edit)(Voxeld__V1__OpenStream *), Voxeld__V1__Code code,
                              const char *field)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__OpenStream open = VOXELD__V1__OPEN_STREAM__INIT;
    open.stream = 9;
    open.map = vxd_bytes("m");
    open.sensor = VOXELD__V1__SENSOR__SENSOR_DEPTH;
    edit(&open);
    header.body_case = VOXELD__V1__HEADER__BODY_OPEN_STREAM;
    header.open_stream = &open;
    vxd_peer_expect_error(&ingest, vxd_peer_send(&ingest, &header, NULL, 0), code, field);
}

/* ------------------------------------------------------------------ acknowledgements */

START_TEST(received_then_integrated_then_credit)
{
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, ask_received);
    send_frame(1, 1);
    expect_ack(1, VOXELD__V1__ACK_LEVEL__ACK_RECEIVED, false);
    ck_assert(vxd_peer_is_quiet(&ingest));
    fake_gate_open();
    struct vxd_got got = vxd_peer_get(&ingest);
    const Voxeld__V1__Ack *a = got.header->ack;
    ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_ACK);
    ck_assert_int_eq(a->level, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED);
    ck_assert_uint_eq(a->map->epoch, 1);
    ck_assert_int_eq(a->map->newest_stamp_ns, 1000000);
    ck_assert_uint_eq(a->counts->used, 16);
    vxd_got_free(&got);
    expect_credit(64);
}
END_TEST

static void max_range_1(Voxeld__V1__OpenStream *open)
{
    open->max_range_m = 1;
}

START_TEST(warnings_arrive)
{
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, max_range_1);
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, send_frame(1, 1));
    ck_assert_uint_eq(got.header->ack->n_warnings, 1);
    ck_assert_int_eq(got.header->ack->warnings[0], VOXELD__V1__WARNING__WARNING_ALL_BEYOND);
    vxd_got_free(&got);
}
END_TEST

START_TEST(core_refusal_uses_the_seq)
{
    vxd_peer_open_stream(&ingest, "full", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    expect_nack(send_frame(1, 1), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "frame_budget_bytes");
    expect_credit(64);
    expect_nack(send_frame(1, 1), VOXELD__V1__CODE__CODE_OUT_OF_ORDER, "seq");
    expect_credit(64);
}
END_TEST

/* Many frames one after the other, as fast as credits allow; every one integrated, in order, in its own
 * epoch. */
START_TEST(long_run_under_credits)
{
    enum { N = 2000 };
    uint64_t sent = 0, acked = 0;
    int credits = 4;
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    while (acked < N) {
        for (; credits && sent < N; --credits)
            send_frame(1, ++sent);
        struct vxd_got got = vxd_peer_get(&ingest);
        if (got.header->body_case == VOXELD__V1__HEADER__BODY_CREDIT) {
            credits += (int)got.header->credit->frames;
        } else {
            ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_ACK);
            ck_assert_uint_eq(got.header->ack->seq, ++acked);
            ck_assert_uint_eq(got.header->ack->map->epoch, acked);
        }
        vxd_got_free(&got);
    }
}
END_TEST

/* ------------------------------------------------------------------ credits */

START_TEST(over_credit_is_refused_then_cut_off)
{
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    for (uint64_t seq = 1; seq <= 4; ++seq)
        send_frame(1, seq);
    expect_nack(send_frame(1, 5), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "stream");
    ck_assert(vxd_peer_is_quiet(&ingest)); /* the session goes on */
    expect_nack(send_frame(1, 5), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "stream");
    uint64_t req = send_frame(1, 5);
    vxd_peer_expect_error(&ingest, req, VOXELD__V1__CODE__CODE_UNAUTHENTICATED, "session");
    /* the four that were accepted are integrated all the same, and the stream can be taken up again */
    fake_gate_open();
    struct vxd_peer again;
    vxd_peer_hello(&again, &proc, "ingest");
    uint64_t last = 0;
    struct vxd_got got =
        vxd_peer_expect(&again, VOXELD__V1__HEADER__BODY_STREAM_OK, ask_for_stream(&again, "gated", 1));
    last = got.header->stream_ok->last_seq;
    ck_assert_int_eq(got.header->stream_ok->last_stamp_ns, 4000000);
    vxd_got_free(&got);
    ck_assert_uint_eq(last, 4);
    vxd_peer_close(&again);
    for (uint64_t n = 0; n != 4;) {
        Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
        for (size_t i = 0; i < r->n_streams; ++i)
            n = r->streams[i]->n_integrated;
        voxeld__v1__stats_report__free_unpacked(r, NULL);
    }
}
END_TEST

START_TEST(bytes_are_credit_too)
{
    vxd_proc_stop(&proc);
    struct vxd_proc small = {.yaml = "log_level: error\nlimits: {credit_bytes: 65536}\n"};
    struct vxd_peer a;
    vxd_peer_close(&ingest);
    vxd_peer_close(&admin);
    vxd_proc_start(&small, "voxeld_fake", NULL);
    proc = small; /* for tear_down */
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_hello(&a, &proc, "ingest");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    struct vxd_depth_frame f;
    static float big[129 * 128];
    vxd_depth_frame_init(&f, 1, 1);
    f.pinhole.width = 129;
    f.pinhole.height = 128;
    expect_nack(vxd_peer_send(&ingest, &f.header, big, sizeof big), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED,
                "stream");
    f.pinhole.width = 128;
    f.header.req_id = 0;
    uint64_t req = vxd_peer_send(&ingest, &f.header, big, 65536);
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, req);
    vxd_got_free(&got);
    expect_credit(65536);
    vxd_peer_close(&a);
}
END_TEST

/* ------------------------------------------------------------------ order */

START_TEST(seq_and_stamps)
{
    struct vxd_depth_frame f;
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    send_frame(1, 10);
    expect_ack(10, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
    expect_credit(64);
    expect_nack(send_frame(1, 10), VOXELD__V1__CODE__CODE_OUT_OF_ORDER, "seq");
    expect_credit(64);
    expect_nack(send_frame(1, 9), VOXELD__V1__CODE__CODE_OUT_OF_ORDER, "seq");
    expect_credit(64);
    vxd_depth_frame_init(&f, 1, 11);
    f.frame.stamp_ns = 9999999;
    expect_nack(vxd_depth_frame_send(&ingest, &f), VOXELD__V1__CODE__CODE_OUT_OF_ORDER, "stamp_ns");
    expect_credit(64);
    f.frame.stamp_ns = INT64_MIN;
    f.header.req_id = 0;
    expect_nack(vxd_depth_frame_send(&ingest, &f), VOXELD__V1__CODE__CODE_OUT_OF_ORDER, "stamp_ns");
    expect_credit(64);
    f.frame.stamp_ns = 9999999;
    f.frame.reset = true; /* the same seq again, and now it may */
    f.header.req_id = 0;
    vxd_depth_frame_send(&ingest, &f);
    expect_ack(11, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
    expect_credit(64);
    vxd_depth_frame_init(&f, 1, 12);
    f.frame.stamp_ns = 9999999; /* equal is not backwards */
    vxd_depth_frame_send(&ingest, &f);
    expect_ack(12, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
}
END_TEST

START_TEST(latest_replaces_what_waits)
{
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    vxd_peer_open_stream(&ingest, "gated", 2, VOXELD__V1__SENSOR__SENSOR_DEPTH, ask_latest);
    send_frame(1, 1); /* holds the writer at the gate, or waits before all others */
    for (uint64_t seq = 1; seq <= 3; ++seq)
        send_frame(2, seq);
    for (uint64_t seq = 1; seq <= 2; ++seq) {
        expect_ack(seq, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, true);
        expect_credit(64);
    }
    ck_assert(vxd_peer_is_quiet(&ingest));
    fake_gate_open();
    expect_ack(1, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
    expect_credit(64);
    expect_ack(3, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
    expect_credit(64);
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
    ck_assert_uint_eq(r->streams[0]->stream, 2);
    ck_assert_uint_eq(r->streams[0]->n_superseded, 2);
    ck_assert_uint_eq(r->streams[0]->n_integrated, 1);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}
END_TEST

START_TEST(deadline_of_a_frame)
{
    struct vxd_depth_frame f;
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    send_frame(1, 1);
    vxd_depth_frame_init(&f, 1, 2);
    f.header.timeout_us = 1;
    uint64_t late = vxd_depth_frame_send(&ingest, &f);
    ck_assert(vxd_peer_is_quiet(&ingest));
    fake_gate_open();
    expect_ack(1, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
    expect_credit(64);
    expect_nack(late, VOXELD__V1__CODE__CODE_DEADLINE_EXCEEDED, "timeout_us");
    expect_credit(64);
}
END_TEST

/* ------------------------------------------------------------------ opening */

static void no_sensor(Voxeld__V1__OpenStream *o)
{
    o->sensor = VOXELD__V1__SENSOR__SENSOR_NONE;
}
static void bad_sensor(Voxeld__V1__OpenStream *o)
{
    o->sensor = (Voxeld__V1__Sensor)99;
}
static void bad_min(Voxeld__V1__OpenStream *o)
{
    o->min_range_m = -1;
}
static void bad_max(Voxeld__V1__OpenStream *o)
{
    o->max_range_m = 1.0 / 0.0;
}
static void bad_delivery(Voxeld__V1__OpenStream *o)
{
    o->delivery = (Voxeld__V1__Delivery)3;
}
static void wait_stamps(Voxeld__V1__OpenStream *o)
{
    o->wait_for_stamps = true;
}
static void durable(Voxeld__V1__OpenStream *o)
{
    o->durability = VOXELD__V1__ACK_LEVEL__ACK_DURABLE;
}
static void only_received(Voxeld__V1__OpenStream *o)
{
    o->durability = VOXELD__V1__ACK_LEVEL__ACK_RECEIVED;
}
static void no_map(Voxeld__V1__OpenStream *o)
{
    o->map = vxd_bytes("nowhere");
}
static void same(Voxeld__V1__OpenStream *o)
{
    o->stream = 1;
}

START_TEST(open_refusals)
{
    expect_open_error(no_sensor, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "sensor");
    expect_open_error(bad_sensor, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "sensor");
    expect_open_error(bad_min, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "min_range_m");
    expect_open_error(bad_max, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "max_range_m");
    expect_open_error(bad_delivery, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "delivery");
    expect_open_error(wait_stamps, VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "wait_for_stamps");
    expect_open_error(durable, VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "durability");
    expect_open_error(only_received, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "durability");
    expect_open_error(no_map, VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    expect_open_error(same, VOXELD__V1__CODE__CODE_ALREADY_EXISTS, "stream");
    struct vxd_peer keep = ingest; /* another session can't have it either */
    vxd_peer_hello(&ingest, &proc, "ingest");
    expect_open_error(same, VOXELD__V1__CODE__CODE_ALREADY_EXISTS, "stream");
    vxd_peer_close(&ingest);
    ingest = keep;
    for (uint64_t s = 2; s <= 16; ++s)
        vxd_peer_open_stream(&ingest, "m", s + 100, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    expect_open_error(ask_latest, VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "limits.streams_per_session");
}
END_TEST

START_TEST(model_must_fit_the_stream)
{
    struct vxd_depth_frame f;
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_POINTS, NULL);
    expect_nack(send_frame(1, 1), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "model");
    expect_credit(64);
    vxd_depth_frame_init(&f, 1, 1);
    Voxeld__V1__Points points = VOXELD__V1__POINTS__INIT;
    points.n = 5;
    f.frame.model_case = VOXELD__V1__FRAME__MODEL_POINTS;
    f.frame.points = &points;
    float xyz[15] = {0};
    uint64_t req = vxd_peer_send(&ingest, &f.header, xyz, sizeof xyz);
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, req);
    vxd_got_free(&got);
    expect_credit(60);
    expect_nack(send_frame(77, 1), VOXELD__V1__CODE__CODE_NOT_FOUND, "stream");
    f.header.req_id = 0;
    f.frame.seq = 2;
    expect_nack(vxd_peer_send(&ingest, &f.header, NULL, 0), VOXELD__V1__CODE__CODE_INVALID_ARGUMENT,
                "payloads");
}
END_TEST

START_TEST(range_images_carry_elevations)
{
    struct vxd_depth_frame f;
    Voxeld__V1__RangeImage range = VOXELD__V1__RANGE_IMAGE__INIT;
    float elevation[4] = {-0.2f, -0.1f, 0, 0.1f}, readings[4 * 8] = {0};
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_RANGE, NULL);
    vxd_depth_frame_init(&f, 1, 1);
    range.columns = 8;
    range.rows = 4;
    range.azimuth_step_rad = 0.1;
    range.elevation_rad = elevation;
    range.n_elevation_rad = 3;
    f.frame.model_case = VOXELD__V1__FRAME__MODEL_RANGE;
    f.frame.range = &range;
    expect_nack(vxd_peer_send(&ingest, &f.header, readings, sizeof readings),
                VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "range.elevation_rad");
    expect_credit(sizeof readings);
    range.n_elevation_rad = 4;
    f.header.req_id = 0;
    uint64_t req = vxd_peer_send(&ingest, &f.header, readings, sizeof readings);
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, req);
    ck_assert_uint_eq(got.header->ack->counts->used, 32);
    vxd_got_free(&got);
}
END_TEST

/* ------------------------------------------------------------------ while frames are checked and copied */

enum { WIDE = 640, HIGH = 400 };
static float image[WIDE * HIGH]; /* 1 MB: it takes a while */

static uint64_t send_image(struct vxd_peer *peer, uint64_t stream, uint64_t seq, bool spoilt)
{
    struct vxd_depth_frame f;
    Voxeld__V1__Payload declared, *list[1] = {&declared};
    uint8_t prelude[VXW_PRELUDE_BYTES], *bytes;
    size_t n;
    vxd_depth_frame_init(&f, stream, seq);
    f.pinhole.width = WIDE;
    f.pinhole.height = HIGH;
    vxw_payload_declare(image, sizeof image, &declared);
    declared.crc32c ^= spoilt;
    f.header.session.data = peer->session;
    f.header.session.len = sizeof peer->session;
    f.header.req_id = peer->next_req++;
    f.header.payloads = list;
    f.header.n_payloads = 1;
    ck_assert_int_eq(vxw_header_pack(&f.header, prelude, &bytes, &n, NULL), VX_OK);
    vxd_peer_send_raw(peer, (const void *const[]){prelude, bytes, image},
                      (const size_t[]){sizeof prelude, n, sizeof image}, 3);
    free(bytes);
    return f.header.req_id;
}

/* One whose checksum is wrong is refused and leaves its seq to be used again; its neighbours are taken. */
START_TEST(a_spoilt_frame_among_others)
{
    static const struct {
        uint64_t seq;
        bool spoilt;
        Voxeld__V1__Code code;
    } sent[] = {{1, false, 0},
                {2, true, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT},
                {2, false, 0},
                {2, false, VOXELD__V1__CODE__CODE_OUT_OF_ORDER}};
    uint64_t req[4];
    int n_credits = 0;
    vxd_peer_open_stream(&ingest, "m", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    for (int i = 0; i < 4; ++i)
        req[i] = send_image(&ingest, 1, sent[i].seq, sent[i].spoilt);
    for (int i = 0, n = 0; n < 4 || n_credits < 4;) {
        struct vxd_got got = vxd_peer_get(&ingest);
        if (got.header->body_case == VOXELD__V1__HEADER__BODY_CREDIT) {
            n_credits += (int)got.header->credit->frames;
            vxd_got_free(&got);
            continue;
        }
        for (i = 0; i < 4 && req[i] != got.header->req_id; ++i)
            ;
        ck_assert_int_lt(i, 4);
        if (sent[i].code) {
            ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_NACK);
            ck_assert_int_eq(got.header->nack->error->code, sent[i].code);
        } else {
            ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_ACK);
            ck_assert_uint_eq(got.header->ack->map->epoch, sent[i].seq);
        }
        vxd_got_free(&got);
        ++n;
    }
    ck_assert(vxd_peer_is_quiet(&ingest));
}
END_TEST

/* Says BYE behind frames that nobody has looked at yet. */
static void leave_in_a_hurry(struct vxd_peer *peer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Bye bye = VOXELD__V1__BYE__INIT;
    header.body_case = VOXELD__V1__HEADER__BODY_BYE;
    header.bye = &bye;
    vxd_peer_send(peer, &header, NULL, 0);
}

/* Who takes a stream up is told a last seq that holds: the next frame is neither refused nor one too many. */
START_TEST(a_stream_changes_hands_in_a_hurry)
{
    enum { ROUNDS = 40 };
    uint64_t seq = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        struct vxd_peer first, second;
        uint64_t sent = seq, req;
        vxd_peer_hello(&first, &proc, "ingest");
        vxd_peer_hello(&second, &proc, "ingest");
        vxd_peer_open_stream(&first, "m", 7, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
        while (sent < seq + 3)
            send_image(&first, 7, ++sent, false);
        leave_in_a_hurry(&first);
        struct vxd_got got;
        do { /* until the other has left */
            req = ask_for_stream(&second, "m", 7);
            got = vxd_peer_get(&second);
            seq = got.header->body_case == VOXELD__V1__HEADER__BODY_STREAM_OK
                      ? got.header->stream_ok->last_seq
                      : 0;
            ck_assert_uint_eq(got.header->req_id, req);
            vxd_got_free(&got);
        } while (!seq);
        ck_assert_uint_eq(seq, sent); /* all of them came before the BYE */
        req = send_image(&second, 7, ++seq, false);
        do
            got = vxd_peer_get(&second);
        while (got.header->body_case == VOXELD__V1__HEADER__BODY_CREDIT && (vxd_got_free(&got), true));
        ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_ACK);
        ck_assert_uint_eq(got.header->req_id, req);
        ck_assert_uint_eq(got.header->ack->map->epoch, seq);
        vxd_got_free(&got);
        leave_in_a_hurry(&second);
        bool left;
        do { /* the stream is free again */
            got = vxd_peer_get(&second);
            left = got.header->body_case == VOXELD__V1__HEADER__BODY_BYE;
            vxd_got_free(&got);
        } while (!left);
        vxd_peer_close(&first);
        vxd_peer_close(&second);
    }
}
END_TEST

/* A map that is deleted while its frames are on the way: each is answered, the deletion too. */
START_TEST(a_map_goes_under_its_frames)
{
    enum { ROUNDS = 30 };
    for (int round = 0; round < ROUNDS; ++round) {
        vxw_header header = VOXELD__V1__HEADER__INIT;
        Voxeld__V1__MapDelete body = VOXELD__V1__MAP_DELETE__INIT;
        struct vxd_peer peer;
        vxd_peer_map_create(&admin, "short", 0.1);
        vxd_peer_hello(&peer, &proc, "ingest");
        vxd_peer_open_stream(&peer, "short", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
        for (uint64_t seq = 1; seq <= 4; ++seq)
            send_image(&peer, 1, seq, seq == 3);
        body.map = vxd_bytes("short");
        header.body_case = VOXELD__V1__HEADER__BODY_MAP_DELETE;
        header.map_delete = &body;
        const uint64_t req = vxd_peer_send(&admin, &header, NULL, 0);
        struct vxd_got got = vxd_peer_get(&admin);
        ck_assert_uint_eq(got.header->req_id, req);
        ck_assert_int_ne(got.header->body_case, VOXELD__V1__HEADER__BODY_ERROR);
        vxd_got_free(&got);
        for (int n = 0; n < 4;) {
            got = vxd_peer_get(&peer);
            n += got.header->body_case == VOXELD__V1__HEADER__BODY_ACK ||
                 got.header->body_case == VOXELD__V1__HEADER__BODY_NACK;
            vxd_got_free(&got);
        }
        vxd_peer_close(&peer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon frames");
    TCase *tc = tcase_create("frames");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, received_then_integrated_then_credit);
    tcase_add_test(tc, warnings_arrive);
    tcase_add_test(tc, core_refusal_uses_the_seq);
    tcase_add_test(tc, long_run_under_credits);
    tcase_add_test(tc, over_credit_is_refused_then_cut_off);
    tcase_add_test(tc, bytes_are_credit_too);
    tcase_add_test(tc, seq_and_stamps);
    tcase_add_test(tc, latest_replaces_what_waits);
    tcase_add_test(tc, deadline_of_a_frame);
    tcase_add_test(tc, open_refusals);
    tcase_add_test(tc, model_must_fit_the_stream);
    tcase_add_test(tc, range_images_carry_elevations);
    tcase_add_test(tc, a_spoilt_frame_among_others);
    tcase_add_test(tc, a_stream_changes_hands_in_a_hurry);
    tcase_add_test(tc, a_map_goes_under_its_frames);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
