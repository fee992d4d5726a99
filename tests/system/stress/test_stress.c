/*
 * Frames, queries, meshes, digests, clears, deletions, cancellations and sessions that leave, mixed at
 * random, against a real daemon. Every request is answered once and as the protocol says, epochs of a map
 * only rise, and in the end the device and the daemon have given everything back.  VXD_STRESS_SEED repeats a
 * run, VXD_STRESS_STEPS makes it longer.
 * usage: test_stress BACKEND
 */
#include "vxd_peer.h"
#include "vxk.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_MAPS = 3, N_STREAMS = 4, MAX_OPEN = 65536 };

static const char *const map_names[N_MAPS] = {"a", "b", "c"};
static const char *backend = "cpu";
static struct vxd_proc proc;
static struct vxd_peer admin, query, ingest;
static uint64_t seed;
static long n_steps = 5000;
static long n_answered, n_frames, n_refused, n_cancelled;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static unsigned below(unsigned n)
{
    return (unsigned)(next_random() % n);
}

/* ------------------------------------------------------------------ what is open */

/* Requests of query and admin by number: the type of the expected answer, 0 = not open, SENDING = parts are
 * on the way. */
enum { SENDING = 0xffff };
static uint16_t open_query[MAX_OPEN], open_admin[MAX_OPEN];
static int n_open;

static struct stream {
    int map;
    bool opened;
    int credits;
    uint64_t seq;
    uint64_t open_req; /* OPEN_STREAM under way */
} streams[N_STREAMS];

static uint64_t epoch_of[N_MAPS]; /* of the last ACK */
static uint8_t uuid_of[N_MAPS][16];

static void expect_later(struct vxd_peer *peer, uint64_t req, uint16_t type)
{
    ck_assert_uint_lt(req, MAX_OPEN);
    (peer == &query ? open_query : open_admin)[req] = type;
    ++n_open;
}

static void send_named(struct vxd_peer *peer, unsigned body, const char *map, uint16_t answer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapInfo info = VOXELD__V1__MAP_INFO__INIT;
    Voxeld__V1__MapDigest digest = VOXELD__V1__MAP_DIGEST__INIT;
    Voxeld__V1__MapClear clear = VOXELD__V1__MAP_CLEAR__INIT;
    Voxeld__V1__MapDelete del = VOXELD__V1__MAP_DELETE__INIT;
    Voxeld__V1__Mesh mesh = VOXELD__V1__MESH__INIT;
    Voxeld__V1__Stats stats = VOXELD__V1__STATS__INIT;
    info.map = digest.map = clear.map = del.map = mesh.map = vxd_bytes(map);
    header.body_case = (Voxeld__V1__Header__BodyCase)body;
    if (body == VOXELD__V1__HEADER__BODY_MAP_INFO)
        header.map_info = &info;
    else if (body == VOXELD__V1__HEADER__BODY_MAP_DIGEST)
        header.map_digest = &digest;
    else if (body == VOXELD__V1__HEADER__BODY_MAP_CLEAR)
        header.map_clear = &clear;
    else if (body == VOXELD__V1__HEADER__BODY_MAP_DELETE)
        header.map_delete = &del;
    else if (body == VOXELD__V1__HEADER__BODY_MESH)
        header.mesh = &mesh;
    else
        header.stats = &stats;
    expect_later(peer, vxd_peer_send(peer, &header, NULL, 0), answer);
}

static void send_create(const char *map)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapCreate create = VOXELD__V1__MAP_CREATE__INIT;
    Voxeld__V1__MapParams params = VOXELD__V1__MAP_PARAMS__INIT;
    params.voxel_size_m = 0.1;
    create.map = vxd_bytes(map);
    create.params = &params;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CREATE;
    header.map_create = &create;
    expect_later(&admin, vxd_peer_send(&admin, &header, NULL, 0), VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY);
}

static void send_points(const char *map, bool parts)
{
    static float points[3 * 5000];
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints body = VOXELD__V1__QUERY_POINTS__INIT;
    body.map = vxd_bytes(map);
    body.n = 1 + below(5000);
    for (uint32_t i = 0; i < 3 * body.n; ++i)
        points[i] = (float)below(400) / 100 - 2;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &body;
    header.body_bytes = parts ? body.n * 12 : 0;
    uint64_t req = vxd_peer_send(&query, &header, parts ? NULL : points, parts ? 0 : body.n * 12);
    expect_later(&query, req, VOXELD__V1__HEADER__BODY_RESULT);
    if (parts) { /* the daemon gives 8 credits for this, so the parts may follow at once, if the request is
                    taken */
        vxw_header part_header = VOXELD__V1__HEADER__INIT;
        Voxeld__V1__Part part = VOXELD__V1__PART__INIT;
        part.last = true;
        part_header.req_id = req;
        part_header.body_case = VOXELD__V1__HEADER__BODY_PART;
        part_header.part = &part;
        vxd_peer_send(&query, &part_header, points, body.n * 12);
    }
}

static void send_open_stream(int i)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__OpenStream open = VOXELD__V1__OPEN_STREAM__INIT;
    open.stream = (uint64_t)i + 1;
    open.map = vxd_bytes(map_names[streams[i].map]);
    open.sensor = VOXELD__V1__SENSOR__SENSOR_DEPTH;
    open.max_range_m = 3;
    open.delivery = i & 1 ? VOXELD__V1__DELIVERY__DELIVERY_LATEST : VOXELD__V1__DELIVERY__DELIVERY_ALL;
    header.body_case = VOXELD__V1__HEADER__BODY_OPEN_STREAM;
    header.open_stream = &open;
    streams[i].open_req = vxd_peer_send(&ingest, &header, NULL, 0);
    ++n_open;
}

static void send_frame(int i)
{
    enum { W = 64, H = 48 };
    static float depth[W * H];
    struct vxd_depth_frame f;
    vxd_depth_frame_init(&f, (uint64_t)i + 1, ++streams[i].seq);
    f.pinhole.width = W;
    f.pinhole.height = H;
    f.pinhole.fx_px = f.pinhole.fy_px = 60;
    f.pinhole.cx_px = W / 2;
    f.pinhole.cy_px = H / 2;
    f.pose.x_m = (double)below(100) / 100;
    for (int k = 0; k < W * H; ++k)
        depth[k] = 1 + (float)below(100) / 1000 + (k % W > 30 ? 0.7f : 0);
    --streams[i].credits;
    ++n_open;
    ++n_frames;
    vxd_peer_send(&ingest, &f.header, depth, sizeof depth);
}

static void cancel_any(void)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Cancel cancel = VOXELD__V1__CANCEL__INIT;
    if (query.next_req < 2)
        return;
    cancel.req_id = query.next_req - 1 - below(query.next_req < 9 ? (unsigned)query.next_req - 1 : 8);
    header.body_case = VOXELD__V1__HEADER__BODY_CANCEL;
    header.cancel = &cancel;
    vxd_peer_send(&query, &header, NULL, 0);
}

/* ------------------------------------------------------------------ answers */

static void grant(uint64_t req, uint32_t parts)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Credit credit = VOXELD__V1__CREDIT__INIT;
    credit.parts = parts;
    header.req_id = req;
    header.body_case = VOXELD__V1__HEADER__BODY_CREDIT;
    header.credit = &credit;
    vxd_peer_send(&query, &header, NULL, 0);
}

static bool may_fail_with(Voxeld__V1__Code code)
{
    switch (code) {
    case VOXELD__V1__CODE__CODE_NOT_FOUND:
    case VOXELD__V1__CODE__CODE_ALREADY_EXISTS:
    case VOXELD__V1__CODE__CODE_LOADING:
    case VOXELD__V1__CODE__CODE_CANCELLED:
        return true;
    default:
        return false;
    }
}

static void on_reply(struct vxd_peer *peer, const struct vxd_got *got)
{
    uint16_t *open = peer == &query ? open_query : open_admin;
    const vxw_header *h = got->header;
    if (h->body_case == VOXELD__V1__HEADER__BODY_CREDIT)
        return; /* for an upload whose part is under way already */
    ck_assert_uint_lt(h->req_id, MAX_OPEN);
    ck_assert_msg(open[h->req_id] != 0, "%s for request %llu, which is not open", vxw_type_name(h->body_case),
                  (unsigned long long)h->req_id);
    if (h->body_case == VOXELD__V1__HEADER__BODY_PART) {
        ck_assert_uint_eq(open[h->req_id], SENDING);
        if (!h->part->last) {
            grant(h->req_id, 1);
            return;
        }
    } else if (h->body_case == VOXELD__V1__HEADER__BODY_ERROR) {
        ck_assert_msg(may_fail_with(h->error->code), "code %d: %.*s", h->error->code,
                      (int)h->error->message.len, (const char *)h->error->message.data);
        n_cancelled += h->error->code == VOXELD__V1__CODE__CODE_CANCELLED;
    } else {
        ck_assert_str_eq(vxw_type_name(h->body_case), vxw_type_name(open[h->req_id]));
        if (h->body_bytes) {
            open[h->req_id] = SENDING;
            grant(h->req_id, 1);
            return;
        }
    }
    open[h->req_id] = 0;
    --n_open;
    ++n_answered;
}

static void on_ack(const Voxeld__V1__Ack *a)
{
    int map = streams[a->stream - 1].map;
    if (memcmp(uuid_of[map], a->map->uuid.data, 16)) { /* another map of that name */
        memcpy(uuid_of[map], a->map->uuid.data, 16);
        epoch_of[map] = 0;
    }
    if (!a->superseded) {
        ck_assert_uint_gt(a->map->epoch, epoch_of[map]);
        epoch_of[map] = a->map->epoch;
    }
    --n_open;
}

static void on_ingest(const struct vxd_got *got)
{
    const vxw_header *h = got->header;
    if (h->body_case == VOXELD__V1__HEADER__BODY_ACK) {
        on_ack(h->ack);
    } else if (h->body_case == VOXELD__V1__HEADER__BODY_NACK) {
        /* its map was deleted */
        ck_assert_int_eq(h->nack->error->code, VOXELD__V1__CODE__CODE_NOT_FOUND);
        streams[h->nack->stream - 1].opened = false;
        ++n_refused;
        --n_open;
    } else if (h->body_case == VOXELD__V1__HEADER__BODY_CREDIT) {
        streams[h->credit->stream - 1].credits += (int)h->credit->frames;
    } else {
        int i = 0;
        while (i < N_STREAMS && streams[i].open_req != h->req_id)
            ++i;
        ck_assert_int_lt(i, N_STREAMS);
        streams[i].open_req = 0;
        --n_open;
        if (h->body_case == VOXELD__V1__HEADER__BODY_ERROR) {
            /* ALREADY_EXISTS: the NACK spoke of a map that is being deleted, the stream goes with it a moment
             * later */
            ck_assert(may_fail_with(h->error->code));
            return;
        }
        ck_assert_int_eq(h->body_case, VOXELD__V1__HEADER__BODY_STREAM_OK);
        streams[i].opened = true;
        streams[i].credits = (int)h->stream_ok->credit_frames;
        streams[i].seq = h->stream_ok->last_seq;
    }
}

static bool take(struct vxd_peer *peer, int timeout_ms)
{
    struct vxd_got got;
    if (!vxd_peer_try(peer, timeout_ms, &got))
        return false;
    if (peer == &ingest)
        on_ingest(&got);
    else
        on_reply(peer, &got);
    vxd_got_free(&got);
    return true;
}

static void take_all(void)
{
    while (take(&query, 0) || take(&admin, 0) || take(&ingest, 0)) {
    }
}

/* ------------------------------------------------------------------ the mix */

static void step(void)
{
    const char *map = map_names[below(N_MAPS)];
    unsigned what = below(100);
    int i = (int)below(N_STREAMS);
    if (what < 45) {
        if (streams[i].opened && streams[i].credits)
            send_frame(i);
        else if (!streams[i].opened && !streams[i].open_req)
            send_open_stream(i);
    } else if (what < 62) {
        send_points(map, what & 1);
    } else if (what < 72) {
        send_named(&query, VOXELD__V1__HEADER__BODY_MESH, map, VOXELD__V1__HEADER__BODY_RESULT);
    } else if (what < 77) {
        send_named(&admin, VOXELD__V1__HEADER__BODY_MAP_DIGEST, map,
                   VOXELD__V1__HEADER__BODY_MAP_DIGEST_REPLY);
    } else if (what < 82) {
        send_named(&query, VOXELD__V1__HEADER__BODY_MAP_INFO, map, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY);
    } else if (what < 85) {
        send_named(&query, VOXELD__V1__HEADER__BODY_STATS, map, VOXELD__V1__HEADER__BODY_STATS_REPLY);
    } else if (what < 93) {
        cancel_any();
    } else if (what < 95) {
        send_named(&admin, VOXELD__V1__HEADER__BODY_MAP_CLEAR, map, VOXELD__V1__HEADER__BODY_RESULT);
    } else if (what < 97) {
        send_named(&admin, VOXELD__V1__HEADER__BODY_MAP_DELETE, map, VOXELD__V1__HEADER__BODY_RESULT);
    } else {
        send_create(map);
    }
}

static uint64_t device_used(uint64_t *transfer_bytes)
{
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
    uint64_t used = r->devices[0]->used_bytes;
    *transfer_bytes = r->transfer_bytes;
    ck_assert_uint_eq(r->n_bad_messages, 0);
    ck_assert_uint_eq(r->n_ended, 0);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    return used;
}

/* That many random steps, until everything is answered and every map is deleted. */
static void mix(long n)
{
    for (int m = 0; m < N_MAPS; ++m)
        send_create(map_names[m]);
    for (long s = 0; s < n; ++s) {
        step();
        take_all();
        while (n_open > 40) { /* the limit of a session is 64 requests */
            take(&query, 1);
            take(&admin, 1);
            take(&ingest, 1);
        }
    }
    for (int waited = 0; n_open && waited < 60000; waited += 3) {
        take(&query, 1);
        take(&admin, 1);
        take(&ingest, 1);
    }
    ck_assert_msg(!n_open, "%d requests and frames were never answered", n_open);
    for (int m = 0; m < N_MAPS; ++m)
        send_named(&admin, VOXELD__V1__HEADER__BODY_MAP_DELETE, map_names[m],
                   VOXELD__V1__HEADER__BODY_RESULT);
    while (n_open)
        take(&admin, 1000);
}

START_TEST(everything_at_once)
{
    uint64_t transfer_bytes, used;
    admin.next_req = query.next_req = 10;
    for (int i = 0; i < N_STREAMS; ++i)
        streams[i].map = i % N_MAPS;
    mix(300); /* the first map makes the pool take a few pages of its own */
    used = device_used(&transfer_bytes);
    mix(n_steps);
    ck_assert_uint_eq(device_used(&transfer_bytes), used);
    ck_assert_uint_eq(transfer_bytes, 0);
    printf("%ld requests answered (%ld cancelled), %ld frames sent (%ld refused)\n", n_answered, n_cancelled,
           n_frames, n_refused);
    ck_assert_int_gt(n_frames, 10); /* how many find credit depends on the machine */
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGTERM), 0);
}
END_TEST

static void set_up(void)
{
    /* a busy machine may let this reader be late by more than the default */
    proc.yaml = "log_level: error\nlimits:\n  egress_bytes: 1073741824\n";
    vxd_proc_start(&proc, "voxeld",
                   (const char *const[]){"--backend", backend, "--memory-cap", "536870912", NULL});
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_hello(&ingest, &proc, "ingest");
}

static void tear_down(void)
{
    vxd_proc_stop(&proc);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        backend = argv[1];
    if (!strcmp(backend, "cuda") && !vxk_cuda_available()) {
        printf("skipped: no CUDA device answers, or this build has no CUDA backend\n");
        return 77;
    }
    const char *given = getenv("VXD_STRESS_SEED"), *steps = getenv("VXD_STRESS_STEPS");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)getpid();
    n_steps = steps ? strtol(steps, NULL, 10) : n_steps;
    printf("VXD_STRESS_SEED=%llu VXD_STRESS_STEPS=%ld\n", (unsigned long long)seed, n_steps);
    seed = seed ? seed : 1;
    Suite *suite = suite_create("stress");
    TCase *tc = tcase_create("stress");
    tcase_set_timeout(tc, 280);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, everything_at_once);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
