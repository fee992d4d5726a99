/* Bad preludes, fuzzed headers, surplus frames, floods, peers that don't read: only the sender suffers. */
#include "vxd_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER_KIB (1024L * 1024) /* freed memory is kept back */
#else
#define SANITIZER_KIB 0L
#endif

static struct vxd_proc proc;
static struct vxd_peer good; /* an honest session that must not notice anything */

static void set_up(void)
{
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&good, &proc, "admin");
    vxd_peer_map_create(&good, "m", 0.1);
    vxd_peer_map_create(&good, "bigmesh", 0.1);
}

static void tear_down(void)
{
    vxd_peer_close(&good);
    vxd_proc_stop(&proc);
}

static long resident_kib(void)
{
    char path[64], line[128];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)proc.pid);
    FILE *f = fopen(path, "r");
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(f);
    return kib;
}

/* A PING message of this session, as frames. */
struct raw {
    uint8_t prelude[VXW_PRELUDE_BYTES];
    uint8_t *header;
    size_t header_n;
};

static void raw_init(struct raw *raw, const struct vxd_peer *peer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    header.session = (ProtobufCBinaryData){sizeof peer->session, (uint8_t *)peer->session};
    header.req_id = 9;
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    ck_assert_int_eq(vxw_header_pack(&header, raw->prelude, &raw->header, &raw->header_n, NULL), VX_OK);
}

static void send_raw(struct vxd_peer *peer, const struct raw *raw, int n_extra)
{
    const void *frames[64] = {raw->prelude, raw->header};
    size_t sizes[64] = {sizeof raw->prelude, raw->header_n};
    for (int i = 0; i < n_extra; ++i) {
        frames[2 + i] = "surplus";
        sizes[2 + i] = 7;
    }
    vxd_peer_send_raw(peer, frames, sizes, 2 + n_extra);
}

/* An error of that code comes, and the session is over. */
static void expect_cut_off(struct vxd_peer *peer, Voxeld__V1__Code code, const char *field)
{
    vxd_peer_expect_error(peer, 0, code, field);
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    uint64_t req = vxd_peer_send(peer, &header, NULL, 0);
    vxd_peer_expect_error(peer, req, VOXELD__V1__CODE__CODE_UNAUTHENTICATED, "session");
}

START_TEST(bad_preludes)
{
    static const struct {
        int at;
        uint8_t value;
        Voxeld__V1__Code code;
        const char *field;
    } bad[] = {{0, 'X', VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.magic"},
               {4, 2, VOXELD__V1__CODE__CODE_UNSUPPORTED_VERSION, "prelude.major"},
               {6, 19, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.type"},
               {8, 1, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.header_len"},
               {11, 1, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.header_len"},
               {12, 200, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.n_payload"},
               {12, 1, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "payloads"},
               {13, 1, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.flags"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        struct vxd_peer peer;
        struct raw raw;
        vxd_peer_hello(&peer, &proc, "query");
        raw_init(&raw, &peer);
        raw.prelude[bad[i].at] = bad[i].value;
        send_raw(&peer, &raw, 0);
        expect_cut_off(&peer, bad[i].code, bad[i].field);
        free(raw.header);
        vxd_peer_close(&peer);
    }
    ck_assert(vxd_peer_is_quiet(&good));
}
END_TEST

START_TEST(wrong_number_of_frames)
{
    for (int n_extra = 0; n_extra <= 60; n_extra += 20) {
        struct vxd_peer peer;
        struct raw raw;
        vxd_peer_hello(&peer, &proc, "query");
        raw_init(&raw, &peer);
        if (n_extra) {
            send_raw(&peer, &raw, n_extra);
            expect_cut_off(&peer, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.n_payload");
        } else {
            const void *frames[1] = {raw.prelude};
            size_t sizes[1] = {sizeof raw.prelude};
            vxd_peer_send_raw(&peer, frames, sizes, 1);
            expect_cut_off(&peer, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude");
        }
        free(raw.header);
        vxd_peer_close(&peer);
    }
}
END_TEST

START_TEST(unknown_types_and_answers)
{
    struct vxd_peer peer;
    struct raw raw;
    vxd_peer_hello(&peer, &proc, "query");
    raw_init(&raw, &peer);
    /* the last field is the body PING: key 0x92 0x01, length 0.  Field 1000 has the key 0xc2 0x3e. */
    ck_assert_uint_eq(raw.header[raw.header_n - 3], 0x92);
    raw.header[raw.header_n - 3] = 0xc2;
    raw.header[raw.header_n - 2] = 0x3e;
    raw.prelude[6] = 1000 & 0xff;
    raw.prelude[7] = 1000 >> 8;
    send_raw(&peer, &raw, 0);
    vxd_peer_expect_error(&peer, 9, VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "prelude.type");
    raw.header[raw.header_n - 3] = 0x8a; /* WELCOME, 17: only the daemon sends it */
    raw.header[raw.header_n - 2] = 0x01;
    raw.prelude[6] = 17;
    raw.prelude[7] = 0;
    send_raw(&peer, &raw, 0);
    vxd_peer_expect_error(&peer, 9, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "prelude.type");
    ck_assert(vxd_peer_is_quiet(&peer)); /* the session goes on */
    free(raw.header);
    vxd_peer_close(&peer);
}
END_TEST

/* A payload over the limit of its type; one over the socket's limit ends the connection inside libzmq. */
START_TEST(oversize)
{
    struct vxd_peer ingest, query;
    size_t n = VXW_PART_MAX_BYTES + 1;
    char *big = calloc(1, n);
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    vxd_peer_hello(&ingest, &proc, "ingest");
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    vxd_peer_send(&ingest, &header, big, n);
    expect_cut_off(&ingest, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "payloads");
    vxd_peer_hello(&query, &proc, "query");
    header.req_id = 0;
    header.session.len = 0;
    vxd_peer_send(&query, &header, big, n);
    /* the DEALER reconnects as a new peer, whose old session id is worth nothing */
    for (;;) {
        int ms = 200;
        zmq_setsockopt(query.socket, ZMQ_RCVTIMEO, &ms, sizeof ms);
        Voxeld__V1__Ping again = VOXELD__V1__PING__INIT;
        vxw_header h = VOXELD__V1__HEADER__INIT;
        h.body_case = VOXELD__V1__HEADER__BODY_PING;
        h.ping = &again;
        vxd_peer_send(&query, &h, NULL, 0);
        zmq_msg_t msg;
        zmq_msg_init(&msg);
        int got = zmq_msg_recv(&msg, query.socket, 0);
        zmq_msg_close(&msg);
        if (got >= 0)
            break; /* it answers: an ERROR, checked below */
    }
    int more;
    size_t more_n = sizeof more;
    while (!zmq_getsockopt(query.socket, ZMQ_RCVMORE, &more, &more_n) && more) {
        zmq_msg_t msg;
        zmq_msg_init(&msg);
        zmq_msg_recv(&msg, query.socket, 0);
        zmq_msg_close(&msg);
    }
    ck_assert(!vxd_peer_is_quiet(&query));
    ck_assert(vxd_peer_is_quiet(&good));
    vxd_peer_close(&ingest);
    vxd_peer_close(&query);
    free(big);
}
END_TEST

/* ------------------------------------------------------------------ fuzz */

static uint64_t seed;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* Headers with flipped bits, cut off, or made of noise, on every socket; the daemon answers the honest peer
 * all along. */
START_TEST(fuzzed_headers)
{
    static const char *const names[] = {"ingest", "query", "events", "admin"};
    const char *given = getenv("VXD_FUZZ_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    printf("VXD_FUZZ_SEED=%llu\n", (unsigned long long)seed);
    seed |= 1;
    for (int round = 0; round < 400; ++round) {
        struct vxd_peer peer;
        struct vxd_depth_frame f;
        uint8_t prelude[VXW_PRELUDE_BYTES], *header, noise[256];
        size_t n;
        vxd_peer_hello(&peer, &proc, names[round & 3]);
        vxd_depth_frame_init(&f, 1, 1);
        f.header.session = (ProtobufCBinaryData){sizeof peer.session, peer.session};
        ck_assert_int_eq(vxw_header_pack(&f.header, prelude, &header, &n, NULL), VX_OK);
        int kind = (int)(next_random() % 3);
        size_t cut = n;
        if (kind == 0) {
            for (int k = (int)(next_random() % 8); k >= 0; --k)
                header[next_random() % n] ^= (uint8_t)(1u << (next_random() & 7));
        } else if (kind == 1) {
            cut = next_random() % n;
        } else {
            cut = 1 + next_random() % sizeof noise;
            for (size_t i = 0; i < cut; ++i)
                noise[i] = (uint8_t)next_random();
        }
        struct vxw_prelude p = {.major = 1, .type = 34, .header_bytes = (uint32_t)cut};
        vxw_prelude_encode(&p, prelude);
        if (next_random() % 4 == 0)
            prelude[next_random() % sizeof prelude] ^= (uint8_t)(1u << (next_random() & 7));
        const void *frames[2] = {prelude, kind == 2 ? noise : header};
        size_t sizes[2] = {sizeof prelude, cut};
        vxd_peer_send_raw(&peer, frames, sizes, 2);
        if (round % 16 == 0)
            ck_assert(vxd_peer_is_quiet(&good));
        struct vxd_got got = vxd_peer_get(&peer); /* there is always an answer: ERROR or NACK */
        ck_assert(got.header->body_case == VOXELD__V1__HEADER__BODY_ERROR ||
                  got.header->body_case == VOXELD__V1__HEADER__BODY_NACK ||
                  got.header->body_case == VOXELD__V1__HEADER__BODY_BYE ||
                  got.header->body_case == VOXELD__V1__HEADER__BODY_PONG);
        vxd_got_free(&got);
        free(header);
        vxd_peer_close(&peer);
    }
    ck_assert(vxd_peer_is_quiet(&good));
}
END_TEST

/* ------------------------------------------------------------------ floods and peers that don't read */

/* Thousands of bad messages from a peer without a session: memory stays, the honest peer is served. */
START_TEST(flood_before_hello)
{
    struct vxd_peer peer;
    vxd_peer_open(&peer, &proc, "query");
    int zero = 0;
    zmq_setsockopt(peer.socket, ZMQ_SNDTIMEO, &zero, sizeof zero);
    static char junk[4096];
    ck_assert(vxd_peer_is_quiet(&good));
    long before = resident_kib();
    int n_sent = 0, n_full = 0;
    while (n_sent < 50000 && n_full < 1000000) {
        if (zmq_send(peer.socket, junk, sizeof junk, ZMQ_DONTWAIT) >= 0)
            ++n_sent;
        else
            ++n_full;
    }
    ck_assert(vxd_peer_is_quiet(&good));
    long after = resident_kib();
    ck_assert_msg(after - before < 64 * 1024 + SANITIZER_KIB, "grew by %ld KiB", after - before);
    printf("flood: %d messages, %ld KiB more\n", n_sent, after - before);
    vxd_peer_close(&peer);
}
END_TEST

/* Asks for answers of 1 MiB and never reads: its session ends, the others go on, memory is bounded. */
START_TEST(slow_consumer)
{
    enum { N = 40000, ASKS = 60 };
    struct vxd_peer slow;
    float *points = calloc(N, 12);
    vxd_peer_hello(&slow, &proc, "query");
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints body = VOXELD__V1__QUERY_POINTS__INIT;
    int hwm = 1;
    zmq_setsockopt(slow.socket, ZMQ_RCVHWM, &hwm, sizeof hwm);
    body.map = vxd_bytes("m");
    body.n = N;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &body;
    for (int i = 0; i < ASKS; ++i) {
        header.req_id = 0;
        vxd_peer_send(&slow, &header, points, (size_t)N * 12);
    }
    for (bool ended = false; !ended;) { /* 8 MB may wait for it, and ZeroMQ holds 16 messages */
        Voxeld__V1__StatsReport *r = vxd_peer_stats(&good);
        for (size_t i = 0; i < r->n_ended; ++i)
            ended |= r->ended[i]->code == VOXELD__V1__CODE__CODE_SLOW_CONSUMER;
        voxeld__v1__stats_report__free_unpacked(r, NULL);
    }
    ck_assert_msg(resident_kib() < 300 * 1024 + SANITIZER_KIB, "%ld KiB", resident_kib());
    ck_assert(vxd_peer_is_quiet(&good));
    vxd_peer_close(&slow);
    free(points);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon and hostile peers");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, bad_preludes);
    tcase_add_test(tc, wrong_number_of_frames);
    tcase_add_test(tc, unknown_types_and_answers);
    tcase_add_test(tc, oversize);
    tcase_add_test(tc, fuzzed_headers);
    tcase_add_test(tc, flood_before_hello);
    tcase_add_test(tc, slow_consumer);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
