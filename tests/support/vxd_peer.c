#include "vxd_peer.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Open sockets, so that a failed test's are closed when its daemon is stopped. */
enum { MAX_SOCKETS = 1024 };
static struct {
    void *zmq, *socket;
} open_sockets[MAX_SOCKETS];

static void remember(void *zmq, void *socket)
{
    int i = 0;
    while (i < MAX_SOCKETS && open_sockets[i].socket)
        ++i;
    ck_assert_int_lt(i, MAX_SOCKETS);
    open_sockets[i].zmq = zmq;
    open_sockets[i].socket = socket;
}

/* Closes those of a context, or the one socket; one that is closed already is none of them. */
static void close_sockets(void *zmq, void *socket)
{
    for (int i = 0; i < MAX_SOCKETS; ++i) {
        void *s = open_sockets[i].socket;
        if (s && (s == socket || (zmq && open_sockets[i].zmq == zmq))) {
            zmq_close(s);
            open_sockets[i].socket = NULL;
        }
    }
}

/* ------------------------------------------------------------------ the process */

static void program_path(const char *name, char *out, size_t n)
{
    char self[512];
    ssize_t k = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(k, 0);
    self[k] = 0;
    *strrchr(self, '/') = 0;
    snprintf(out, n, "%s/%s", self, name);
}

static uint64_t send_hello(struct vxd_peer *peer);

static pid_t spawn(const char *name, const char *dir, const char *config, const char *const *args)
{
    char path[640];
    const char *argv[32] = {path};
    int n = 1;
    program_path(name, path, sizeof path);
    if (dir) {
        argv[n++] = "--ipc-dir";
        argv[n++] = dir;
        argv[n++] = "--config";
        argv[n++] = config;
    }
    for (int i = 0; args && args[i]; ++i)
        argv[n++] = args[i];
    ck_assert_int_lt(n, 32);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(path, (char *const *)argv);
        fprintf(stderr, "can't run %s: %s\n", path, strerror(errno));
        _exit(127);
    }
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_config(const struct vxd_proc *proc, char *path, size_t n)
{
    snprintf(path, n, "%s/voxeld.yaml", proc->base);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(proc->yaml ? proc->yaml : "log_level: error\n", file);
    fclose(file);
}

/* Waits for the answer to a HELLO; false when the process ended instead. */
static bool wait_until_ready(struct vxd_proc *proc, int *status)
{
    struct vxd_peer peer;
    struct vxd_got got;
    bool ready = false;
    vxd_peer_open(&peer, proc, "admin");
    send_hello(&peer);
    for (int waited = 0; !ready && waited < VXD_PEER_TIMEOUT_MS; waited += 50) {
        int raw;
        ready = vxd_peer_try(&peer, 50, &got);
        if (!ready && waitpid(proc->pid, &raw, WNOHANG) == proc->pid) {
            *status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
            proc->pid = 0;
            break;
        }
    }
    if (ready)
        vxd_got_free(&got);
    vxd_peer_close(&peer);
    return ready;
}

void vxd_proc_start(struct vxd_proc *proc, const char *name, const char *const *args)
{
    char config[80];
    int status = -1;
    snprintf(proc->base, sizeof proc->base, "/tmp/vxd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(proc->base));
    snprintf(proc->dir, sizeof proc->dir, "%s/ipc", proc->base);
    write_config(proc, config, sizeof config);
    proc->zmq = zmq_ctx_new();
    proc->pid = spawn(name, proc->dir, config, args);
    bool ready = wait_until_ready(proc, &status);
    ck_assert_msg(ready, "%s did not start (exit status %d)", name, status);
}

pid_t vxd_proc_spawn(const char *name, const char *const *args)
{
    return spawn(name, NULL, NULL, args);
}

int vxd_proc_run(const char *name, const char *const *args)
{
    return wait_for(vxd_proc_spawn(name, args));
}

int vxd_proc_wait(struct vxd_proc *proc, int signal)
{
    if (signal)
        ck_assert_int_eq(kill(proc->pid, signal), 0);
    int status = wait_for(proc->pid);
    proc->pid = 0;
    return status;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void vxd_proc_stop(struct vxd_proc *proc)
{
    if (proc->pid > 0) {
        kill(proc->pid, SIGKILL);
        waitpid(proc->pid, NULL, 0);
        proc->pid = 0;
    }
    if (proc->zmq) {
        close_sockets(proc->zmq, NULL);
        zmq_ctx_term(proc->zmq);
    }
    proc->zmq = NULL;
    if (proc->base[0])
        nftw(proc->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    proc->base[0] = 0;
}

/* ------------------------------------------------------------------ peers */

void vxd_peer_open(struct vxd_peer *peer, const struct vxd_proc *proc, const char *endpoint)
{
    char address[128];
    int linger = 0, ivl = 5, timeout = VXD_PEER_TIMEOUT_MS;
    memset(peer, 0, sizeof *peer);
    peer->next_req = 1;
    peer->socket = zmq_socket(proc->zmq, ZMQ_DEALER);
    ck_assert_ptr_nonnull(peer->socket);
    remember(proc->zmq, peer->socket);
    zmq_setsockopt(peer->socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(peer->socket, ZMQ_RECONNECT_IVL, &ivl, sizeof ivl);
    zmq_setsockopt(peer->socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(peer->socket, ZMQ_SNDTIMEO, &timeout, sizeof timeout);
    snprintf(address, sizeof address, "ipc://%s/%s.sock", proc->dir, endpoint);
    ck_assert_int_eq(zmq_connect(peer->socket, address), 0);
}

void vxd_peer_close(struct vxd_peer *peer)
{
    if (peer->socket)
        close_sockets(NULL, peer->socket);
    peer->socket = NULL;
}

static uint64_t send_hello(struct vxd_peer *peer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Hello hello = VOXELD__V1__HELLO__INIT;
    hello.min_major = hello.max_major = VXW_MAJOR;
    hello.client = vxd_bytes("test");
    header.body_case = VOXELD__V1__HEADER__BODY_HELLO;
    header.hello = &hello;
    return vxd_peer_send(peer, &header, NULL, 0);
}

void vxd_peer_hello(struct vxd_peer *peer, const struct vxd_proc *proc, const char *endpoint)
{
    vxd_peer_open(peer, proc, endpoint);
    struct vxd_got got = vxd_peer_expect(peer, VOXELD__V1__HEADER__BODY_WELCOME, send_hello(peer));
    ck_assert_uint_eq(got.header->welcome->session.len, VXW_SESSION_BYTES);
    memcpy(peer->session, got.header->welcome->session.data, VXW_SESSION_BYTES);
    vxd_got_free(&got);
}

void vxd_peer_send_raw(struct vxd_peer *peer, const void *const *frames, const size_t *n, int n_frames)
{
    for (int i = 0; i < n_frames; ++i)
        ck_assert_int_ge(zmq_send(peer->socket, frames[i], n[i], i + 1 < n_frames ? ZMQ_SNDMORE : 0), 0);
}

uint64_t vxd_peer_send(struct vxd_peer *peer, vxw_header *header, const void *payload, size_t n)
{
    return vxd_peer_send_all(peer, header, &payload, &n, payload ? 1 : 0);
}

uint64_t vxd_peer_send_all(struct vxd_peer *peer, vxw_header *header, const void *const *payload,
                           const size_t *n, int n_payloads)
{
    static const uint8_t no_session[VXW_SESSION_BYTES];
    Voxeld__V1__Payload declared[VXW_MAX_PAYLOADS], *list[VXW_MAX_PAYLOADS];
    const void *frames[2 + VXW_MAX_PAYLOADS];
    size_t sizes[2 + VXW_MAX_PAYLOADS];
    uint8_t prelude[VXW_PRELUDE_BYTES], *packed;
    size_t packed_n;
    if (!header->session.len && memcmp(peer->session, no_session, sizeof no_session))
        header->session = (ProtobufCBinaryData){sizeof peer->session, peer->session};
    if (!header->req_id)
        header->req_id = peer->next_req++;
    for (int i = 0; i < n_payloads; ++i) {
        list[i] = &declared[i];
        vxw_payload_declare(payload[i], n[i], list[i]);
        frames[2 + i] = payload[i];
        sizes[2 + i] = n[i];
    }
    if (n_payloads && !header->n_payloads) {
        header->payloads = list;
        header->n_payloads = (size_t)n_payloads;
    }
    ck_assert_int_eq(vxw_header_pack(header, prelude, &packed, &packed_n, NULL), VX_OK);
    frames[0] = prelude;
    frames[1] = packed;
    sizes[0] = sizeof prelude;
    sizes[1] = packed_n;
    vxd_peer_send_raw(peer, frames, sizes, 2 + n_payloads);
    free(packed);
    if (header->payloads == list) {
        header->payloads = NULL;
        header->n_payloads = 0;
    }
    return header->req_id;
}

static struct vxd_got get_any(struct vxd_peer *peer)
{
    struct vxd_got got = {NULL, 0, {{0}}};
    struct vxw_prelude prelude;
    struct vx_detail detail = {{0}, {0}};
    zmq_msg_t msg;
    zmq_msg_init(&msg);
    ck_assert_msg(zmq_msg_recv(&msg, peer->socket, 0) >= 0, "no message came: %s", zmq_strerror(errno));
    ck_assert_int_eq(vxw_prelude_decode(zmq_msg_data(&msg), zmq_msg_size(&msg), &prelude, &detail), VX_OK);
    ck_assert_int_ge(zmq_msg_recv(&msg, peer->socket, 0), 0);
    vx_err err = vxw_header_unpack(&prelude, zmq_msg_data(&msg), zmq_msg_size(&msg), &got.header, &detail);
    ck_assert_msg(err == VX_OK, "%s", detail.text);
    got.n_payloads = prelude.n_payloads;
    ck_assert_int_le(got.n_payloads, 1);
    ck_assert_int_eq(zmq_msg_more(&msg), got.n_payloads);
    zmq_msg_close(&msg);
    if (got.n_payloads) {
        zmq_msg_init(&got.payload);
        ck_assert_int_ge(zmq_msg_recv(&got.payload, peer->socket, 0), 0);
        err =
            vxw_payload_check(got.header, 0, zmq_msg_data(&got.payload), zmq_msg_size(&got.payload), &detail);
        ck_assert_msg(err == VX_OK, "%s", detail.text);
    }
    return got;
}

struct vxd_got vxd_peer_get(struct vxd_peer *peer)
{
    for (;;) {
        struct vxd_got got = get_any(peer);
        if (got.header->body_case != VOXELD__V1__HEADER__BODY_PING)
            return got;
        vxd_got_free(&got);
    }
}

bool vxd_peer_try(struct vxd_peer *peer, int timeout_ms, struct vxd_got *got)
{
    zmq_pollitem_t item = {.socket = peer->socket, .events = ZMQ_POLLIN};
    while (zmq_poll(&item, 1, timeout_ms) > 0) {
        *got = get_any(peer);
        if (got->header->body_case != VOXELD__V1__HEADER__BODY_PING)
            return true;
        vxd_got_free(got);
    }
    return false;
}

struct vxd_got vxd_peer_expect(struct vxd_peer *peer, unsigned type, uint64_t req_id)
{
    struct vxd_got got = vxd_peer_get(peer);
    if (got.header->body_case != type && got.header->body_case == VOXELD__V1__HEADER__BODY_ERROR)
        ck_abort_msg("ERROR %d '%.*s' instead of %s", got.header->error->code,
                     (int)got.header->error->message.len, (const char *)got.header->error->message.data,
                     vxw_type_name(type));
    ck_assert_str_eq(vxw_type_name(got.header->body_case), vxw_type_name(type));
    ck_assert_uint_eq(got.header->req_id, req_id);
    return got;
}

void vxd_peer_expect_error(struct vxd_peer *peer, uint64_t req_id, Voxeld__V1__Code code, const char *field)
{
    struct vxd_got got = vxd_peer_expect(peer, VOXELD__V1__HEADER__BODY_ERROR, req_id);
    const Voxeld__V1__Error *e = got.header->error;
    ck_assert_msg(e->code == code, "code %d instead of %d: %.*s", e->code, code, (int)e->message.len,
                  (const char *)e->message.data);
    ck_assert_uint_gt(e->message.len, 0);
    if (field) {
        ck_assert_uint_eq(e->field.len, strlen(field));
        ck_assert_mem_eq(e->field.data, field, e->field.len);
    }
    vxd_got_free(&got);
}

bool vxd_peer_is_quiet(struct vxd_peer *peer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    uint64_t req = vxd_peer_send(peer, &header, NULL, 0);
    struct vxd_got got = vxd_peer_get(peer);
    bool quiet = got.header->body_case == VOXELD__V1__HEADER__BODY_PONG && got.header->req_id == req;
    vxd_got_free(&got);
    return quiet;
}

void vxd_got_free(struct vxd_got *got)
{
    vxw_header_free(got->header);
    got->header = NULL;
    if (got->n_payloads)
        zmq_msg_close(&got->payload);
    got->n_payloads = 0;
}

ProtobufCBinaryData vxd_bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

/* ------------------------------------------------------------------ common requests */

void vxd_peer_map_create(struct vxd_peer *admin, const char *name, double voxel_size_m)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapCreate create = VOXELD__V1__MAP_CREATE__INIT;
    Voxeld__V1__MapParams params = VOXELD__V1__MAP_PARAMS__INIT;
    params.voxel_size_m = voxel_size_m;
    create.map = vxd_bytes(name);
    create.params = &params;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CREATE;
    header.map_create = &create;
    uint64_t req = vxd_peer_send(admin, &header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(admin, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, req);
    vxd_got_free(&got);
}

void vxd_peer_map_digest(struct vxd_peer *admin, const char *name, uint8_t *digest)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapDigest body = VOXELD__V1__MAP_DIGEST__INIT;
    body.map = vxd_bytes(name);
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DIGEST;
    header.map_digest = &body;
    uint64_t req = vxd_peer_send(admin, &header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(admin, VOXELD__V1__HEADER__BODY_MAP_DIGEST_REPLY, req);
    ck_assert_uint_eq(got.header->map_digest_reply->digest.len, 32);
    memcpy(digest, got.header->map_digest_reply->digest.data, 32);
    vxd_got_free(&got);
}

Voxeld__V1__StatsReport *vxd_peer_stats(struct vxd_peer *peer)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Stats body = VOXELD__V1__STATS__INIT;
    header.body_case = VOXELD__V1__HEADER__BODY_STATS;
    header.stats = &body;
    uint64_t req = vxd_peer_send(peer, &header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(peer, VOXELD__V1__HEADER__BODY_STATS_REPLY, req);
    ck_assert_int_eq(got.n_payloads, 1);
    Voxeld__V1__StatsReport *report =
        voxeld__v1__stats_report__unpack(NULL, zmq_msg_size(&got.payload), zmq_msg_data(&got.payload));
    ck_assert_ptr_nonnull(report);
    vxd_got_free(&got);
    return report;
}

void vxd_peer_open_stream(struct vxd_peer *ingest, const char *map, uint64_t stream,
                          Voxeld__V1__Sensor sensor, void (*edit)(Voxeld__V1__OpenStream *))
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__OpenStream open = VOXELD__V1__OPEN_STREAM__INIT;
    open.stream = stream;
    open.map = vxd_bytes(map);
    open.sensor = sensor;
    if (edit)
        edit(&open);
    header.body_case = VOXELD__V1__HEADER__BODY_OPEN_STREAM;
    header.open_stream = &open;
    uint64_t req = vxd_peer_send(ingest, &header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(ingest, VOXELD__V1__HEADER__BODY_STREAM_OK, req);
    ck_assert_uint_eq(got.header->stream_ok->stream, stream);
    vxd_got_free(&got);
}

void vxd_peer_upload(struct vxd_peer *peer, uint64_t req_id, const void *data, size_t n)
{
    size_t at = 0;
    uint32_t index = 0;
    while (at < n) {
        struct vxd_got got = vxd_peer_expect(peer, VOXELD__V1__HEADER__BODY_CREDIT, req_id);
        uint32_t credits = got.header->credit->parts;
        vxd_got_free(&got);
        for (; credits && at < n; --credits) {
            vxw_header header = VOXELD__V1__HEADER__INIT;
            Voxeld__V1__Part part = VOXELD__V1__PART__INIT;
            size_t k = n - at < VXW_PART_MAX_BYTES ? n - at : VXW_PART_MAX_BYTES;
            part.index = index++;
            part.last = at + k == n;
            header.req_id = req_id;
            header.body_case = VOXELD__V1__HEADER__BODY_PART;
            header.part = &part;
            vxd_peer_send(peer, &header, (const char *)data + at, k);
            at += k;
        }
    }
}

static void grant(struct vxd_peer *peer, uint64_t req_id, uint32_t parts)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Credit credit = VOXELD__V1__CREDIT__INIT;
    credit.parts = parts;
    header.req_id = req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_CREDIT;
    header.credit = &credit;
    vxd_peer_send(peer, &header, NULL, 0);
}

void vxd_peer_download(struct vxd_peer *peer, uint64_t req_id, void *data, size_t n)
{
    grant(peer, req_id, 2);
    for (size_t at = 0; at < n;) {
        struct vxd_got got = vxd_peer_expect(peer, VOXELD__V1__HEADER__BODY_PART, req_id);
        ck_assert_int_eq(got.n_payloads, 1);
        size_t k = zmq_msg_size(&got.payload);
        ck_assert_uint_le(k, n - at);
        memcpy((char *)data + at, zmq_msg_data(&got.payload), k);
        at += k;
        ck_assert_int_eq(got.header->part->last, at == n);
        vxd_got_free(&got);
        if (at < n)
            grant(peer, req_id, 1);
    }
}

/* ------------------------------------------------------------------ frames */

void vxd_depth_frame_init(struct vxd_depth_frame *f, uint64_t stream, uint64_t seq)
{
    voxeld__v1__header__init(&f->header);
    voxeld__v1__frame__init(&f->frame);
    voxeld__v1__pinhole__init(&f->pinhole);
    voxeld__v1__pose__init(&f->pose);
    f->pose.qw = 1;
    f->poses[0] = &f->pose;
    f->pinhole.width = f->pinhole.height = 4;
    f->pinhole.fx_px = f->pinhole.fy_px = 4;
    f->pinhole.cx_px = f->pinhole.cy_px = 1.5;
    f->frame.stream = stream;
    f->frame.seq = seq;
    f->frame.stamp_ns = (int64_t)seq * 1000000;
    f->frame.poses = f->poses;
    f->frame.n_poses = 1;
    f->frame.model_case = VOXELD__V1__FRAME__MODEL_PINHOLE;
    f->frame.pinhole = &f->pinhole;
    f->header.body_case = VOXELD__V1__HEADER__BODY_FRAME;
    f->header.frame = &f->frame;
    for (int i = 0; i < 16; ++i)
        f->depth[i] = 2;
}

uint64_t vxd_depth_frame_send(struct vxd_peer *peer, struct vxd_depth_frame *f)
{
    return vxd_peer_send(peer, &f->header, f->depth, sizeof f->depth);
}
