/* HELLO, PING, BYE, sessions, versions, sockets. */
#include "vxd_peer.h"

#include <stdlib.h>
#include <string.h>

static struct vxd_proc proc;

static void set_up(void)
{
    vxd_proc_start(&proc, "voxeld_fake", (const char *const[]){"--backend", "cpu", NULL});
}

static void tear_down(void)
{
    vxd_proc_stop(&proc);
}

static uint64_t send_hello(struct vxd_peer *peer, uint32_t min, uint32_t max)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Hello hello = VOXELD__V1__HELLO__INIT;
    hello.min_major = min;
    hello.max_major = max;
    header.body_case = VOXELD__V1__HEADER__BODY_HELLO;
    header.hello = &hello;
    return vxd_peer_send(peer, &header, NULL, 0);
}

static uint64_t send_list(struct vxd_peer *peer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapList list = VOXELD__V1__MAP_LIST__INIT;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_LIST;
    header.map_list = &list;
    return vxd_peer_send(peer, &header, NULL, 0);
}

START_TEST(hello_on_every_socket)
{
    static const char *const names[] = {"ingest", "query", "events", "admin"};
    for (int i = 0; i < 4; ++i) {
        struct vxd_peer peer;
        vxd_peer_hello(&peer, &proc, names[i]);
        ck_assert(vxd_peer_is_quiet(&peer));
        vxd_peer_close(&peer);
    }
}
END_TEST

START_TEST(welcome_says_limits)
{
    struct vxd_peer peer;
    vxd_peer_open(&peer, &proc, "query");
    struct vxd_got got = vxd_peer_expect(&peer, VOXELD__V1__HEADER__BODY_WELCOME, send_hello(&peer, 1, 7));
    const Voxeld__V1__Welcome *w = got.header->welcome;
    ck_assert_uint_eq(w->major, 1);
    ck_assert_int_eq(w->role, VOXELD__V1__ROLE__ROLE_PLANNER);
    ck_assert_uint_eq(w->limits->header_bytes, 65536);
    ck_assert_uint_eq(w->limits->part_bytes, 1048576);
    ck_assert_uint_eq(w->limits->query_items, 4194304);
    vxd_got_free(&got);
    vxd_peer_close(&peer);
}
END_TEST

START_TEST(other_versions_are_refused)
{
    struct vxd_peer peer;
    vxd_peer_open(&peer, &proc, "admin");
    vxd_peer_expect_error(&peer, send_hello(&peer, 2, 3), VOXELD__V1__CODE__CODE_UNSUPPORTED_VERSION,
                          "max_major");
    vxd_peer_expect_error(&peer, send_hello(&peer, 0, 0), VOXELD__V1__CODE__CODE_UNSUPPORTED_VERSION,
                          "max_major");
    vxd_peer_close(&peer);
}
END_TEST

START_TEST(no_session_no_service)
{
    struct vxd_peer peer;
    vxd_peer_open(&peer, &proc, "admin");
    vxd_peer_expect_error(&peer, send_list(&peer), VOXELD__V1__CODE__CODE_UNAUTHENTICATED, "session");
    memset(peer.session, 7, sizeof peer.session);
    vxd_peer_expect_error(&peer, send_list(&peer), VOXELD__V1__CODE__CODE_UNAUTHENTICATED, "session");
    vxd_peer_close(&peer);
    /* another session's id does not help either */
    struct vxd_peer good, thief;
    vxd_peer_hello(&good, &proc, "admin");
    vxd_peer_hello(&thief, &proc, "admin");
    memcpy(thief.session, good.session, sizeof thief.session);
    vxd_peer_expect_error(&thief, send_list(&thief), VOXELD__V1__CODE__CODE_UNAUTHENTICATED, "session");
    vxd_peer_close(&good);
    vxd_peer_close(&thief);
}
END_TEST

START_TEST(bye_ends_the_session)
{
    struct vxd_peer peer;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Bye bye = VOXELD__V1__BYE__INIT;
    vxd_peer_hello(&peer, &proc, "query");
    header.body_case = VOXELD__V1__HEADER__BODY_BYE;
    header.bye = &bye;
    struct vxd_got got =
        vxd_peer_expect(&peer, VOXELD__V1__HEADER__BODY_BYE, vxd_peer_send(&peer, &header, NULL, 0));
    vxd_got_free(&got);
    vxd_peer_expect_error(&peer, send_list(&peer), VOXELD__V1__CODE__CODE_UNAUTHENTICATED, "session");
    vxd_peer_close(&peer);
}
END_TEST

START_TEST(second_hello_replaces_the_first)
{
    struct vxd_peer peer;
    vxd_peer_hello(&peer, &proc, "admin");
    uint8_t old[VXW_SESSION_BYTES];
    memcpy(old, peer.session, sizeof old);
    memset(peer.session, 0, sizeof peer.session);
    struct vxd_got got = vxd_peer_expect(&peer, VOXELD__V1__HEADER__BODY_WELCOME, send_hello(&peer, 1, 1));
    memcpy(peer.session, got.header->welcome->session.data, sizeof peer.session);
    vxd_got_free(&got);
    ck_assert_mem_ne(old, peer.session, sizeof old);
    ck_assert(vxd_peer_is_quiet(&peer));
    Voxeld__V1__StatsReport *report = vxd_peer_stats(&peer);
    ck_assert_uint_le(report->n_sessions, 2); /* the one of vxd_proc_start may not be missed yet */
    voxeld__v1__stats_report__free_unpacked(report, NULL);
    vxd_peer_close(&peer);
}
END_TEST

START_TEST(ping_brings_its_data_back)
{
    struct vxd_peer peer;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    char data[65] = "hello";
    vxd_peer_hello(&peer, &proc, "events");
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    ping.data = (ProtobufCBinaryData){64, (uint8_t *)data};
    struct vxd_got got =
        vxd_peer_expect(&peer, VOXELD__V1__HEADER__BODY_PONG, vxd_peer_send(&peer, &header, NULL, 0));
    ck_assert_uint_eq(got.header->pong->data.len, 64);
    ck_assert_mem_eq(got.header->pong->data.data, data, 64);
    vxd_got_free(&got);
    ping.data.len = 65;
    header.req_id = 0;
    vxd_peer_expect_error(&peer, vxd_peer_send(&peer, &header, NULL, 0),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "data");
    vxd_peer_close(&peer);
}
END_TEST

START_TEST(subscribe_and_wrong_sockets)
{
    struct vxd_peer events, ingest;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Subscribe subscribe = VOXELD__V1__SUBSCRIBE__INIT;
    vxd_peer_hello(&events, &proc, "events");
    header.body_case = VOXELD__V1__HEADER__BODY_SUBSCRIBE;
    header.subscribe = &subscribe;
    uint64_t req = vxd_peer_send(&events, &header, NULL, 0);
    vxd_peer_expect_error(&events, req, VOXELD__V1__CODE__CODE_UNIMPLEMENTED, NULL);
    vxd_peer_expect_error(&events, send_list(&events), VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "prelude.type");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_expect_error(&ingest, send_list(&ingest), VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "prelude.type");
    vxd_peer_close(&events);
    vxd_peer_close(&ingest);
}
END_TEST

START_TEST(request_numbers)
{
    struct vxd_peer peer;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Stats stats = VOXELD__V1__STATS__INIT;
    vxd_peer_hello(&peer, &proc, "query");
    peer.next_req = 0; /* sends req_id 0 */
    header.body_case = VOXELD__V1__HEADER__BODY_STATS;
    header.stats = &stats;
    vxd_peer_send(&peer, &header, NULL, 0);
    vxd_peer_expect_error(&peer, 0, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "req_id");
    vxd_peer_close(&peer);
}
END_TEST

/* Peers that left without a BYE make room: the daemon notices when it needs the place. */
START_TEST(gone_peers_make_room)
{
    struct vxd_peer keep;
    vxd_peer_hello(&keep, &proc, "query");
    for (int i = 0; i < 200; ++i) { /* limits.sessions is 64 */
        struct vxd_peer peer;
        bool welcome = false;
        vxd_peer_open(&peer, &proc, i & 1 ? "query" : "ingest");
        while (!welcome) { /* a connection that was closed is gone a moment later */
            send_hello(&peer, 1, 1);
            struct vxd_got got = vxd_peer_get(&peer);
            welcome = got.header->body_case == VOXELD__V1__HEADER__BODY_WELCOME;
            ck_assert(welcome || got.header->error->code == VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED);
            vxd_got_free(&got);
        }
        vxd_peer_close(&peer);
    }
    ck_assert(vxd_peer_is_quiet(&keep));
    vxd_peer_close(&keep);
}
END_TEST

START_TEST(too_many_sessions)
{
    enum { MAX = 64 };
    struct vxd_peer peer[MAX + 1];
    for (int i = 0; i < MAX; ++i)
        vxd_peer_hello(&peer[i], &proc, "query");
    vxd_peer_open(&peer[MAX], &proc, "query");
    vxd_peer_expect_error(&peer[MAX], send_hello(&peer[MAX], 1, 1), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED,
                          "limits.sessions");
    for (int i = 0; i < MAX; ++i)
        ck_assert(vxd_peer_is_quiet(&peer[i]));
    for (int i = 0; i <= MAX; ++i)
        vxd_peer_close(&peer[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon sessions");
    TCase *tc = tcase_create("session");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, hello_on_every_socket);
    tcase_add_test(tc, welcome_says_limits);
    tcase_add_test(tc, other_versions_are_refused);
    tcase_add_test(tc, no_session_no_service);
    tcase_add_test(tc, bye_ends_the_session);
    tcase_add_test(tc, second_hello_replaces_the_first);
    tcase_add_test(tc, ping_brings_its_data_back);
    tcase_add_test(tc, subscribe_and_wrong_sockets);
    tcase_add_test(tc, request_numbers);
    tcase_add_test(tc, gone_peers_make_room);
    tcase_add_test(tc, too_many_sessions);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
