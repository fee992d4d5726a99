#include "server.h"
#include "log.h"
#include "map.h"
#include "session.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MESSAGES_A_TURN = 32,
    TURNS = 8,
    RETRY_MS = 5,
    TICK_MS = 1000,
    LINGER_MS = 2000,
    LAST_RESORT_MS = 1000,
    SPIN_PROCESSORS = 4 /* with fewer, a spinning loop takes time from whom it waits for */
};
#define FLUSH_GRACE_NS 3000000000u
#define SPIN_NS        50000u

/* ------------------------------------------------------------------ draining the sockets */

static bool drain(struct vxd_server *server, struct vxd_endpoint *endpoint)
{
    int n = 0;
    while (n < MESSAGES_A_TURN && vxd_endpoint_readable(endpoint)) {
        struct vxd_in in;
        if (!vxd_endpoint_receive(endpoint, &in))
            break;
        vxd_dispatch(server, &in);
        vxd_in_fini(&in);
        vxd_sessions_sweep(server);
        ++n;
    }
    return n > 0;
}

static void on_idle(uv_idle_t *handle)
{
    (void)handle;
}

static void on_retry(uv_timer_t *handle)
{
    (void)handle; /* waking the loop is enough: on_prepare flushes */
}

/*
 * ZMQ_FD is edge-triggered and a send swallows the edge, so every socket is asked for its events after
 * everything that may have sent, right before the loop would block; the poll handles only wake it.
 */
static void on_prepare(uv_prepare_t *handle)
{
    struct vxd_server *server = handle->data;
    bool any = true;
    server->at_once_ns = 0;
    for (int turn = 0; any && turn < TURNS; ++turn) {
        any = false;
        for (int i = 0; i < VXD_N_ENDPOINTS; ++i)
            any |= drain(server, &server->endpoint[i]);
        any |= vxd_sessions_flush(server);
        vxd_sessions_sweep(server);
    }
    vxd_server_check_stop(server);
    /* Who has just been answered often asks again: finding that message awake is faster than being woken. */
    bool awake = any || (server->spin_until_ns && vxd_now_ns() < server->spin_until_ns);
    if (awake && !uv_is_active((uv_handle_t *)&server->idle))
        uv_idle_start(&server->idle, on_idle);
    else if (!awake) {
        uv_idle_stop(&server->idle);
        server->spin_until_ns = 0;
    }
    bool blocked = !vxd_sessions_drained(server);
    if (blocked && !uv_is_active((uv_handle_t *)&server->retry))
        uv_timer_start(&server->retry, on_retry, RETRY_MS, RETRY_MS);
    else if (!blocked)
        uv_timer_stop(&server->retry);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    (void)handle;
    (void)status;
    (void)events;
}

static void on_tick(uv_timer_t *handle)
{
    struct vxd_server *server = handle->data;
    uint64_t now = vxd_now_ns();
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i)
        for (struct vxd_session *s = server->sessions[i]; s; s = s->next) {
            vxd_transfer_expire(s, now);
            vxd_requests_tell(s);
        }
    vxd_sessions_probe(server, false);
    vxd_sessions_sweep(server);
    vxd_server_check_stop(server);
}

static void on_refresh(uv_timer_t *handle)
{
    vxd_refresh_on_time(handle->data);
}

void vxd_server_refresh_in(struct vxd_server *server, uint64_t ns)
{
    const uint64_t ms = ns / 1000000 + 1;
    if (!uv_is_active((uv_handle_t *)&server->refresh) || uv_timer_get_due_in(&server->refresh) > ms)
        uv_timer_start(&server->refresh, on_refresh, ms, 0);
}

/* ------------------------------------------------------------------ jobs */

void vxd_server_push(struct vxd_server *server, struct vxd_worker *worker, struct vxd_job *job)
{
    ++server->n_jobs;
    vxd_worker_push(worker, job);
}

void vxd_server_job_done(struct vxd_server *server)
{
    --server->n_jobs;
}

/* ------------------------------------------------------------------ stopping */

static void cancel_all(struct vxd_server *server)
{
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i) {
        for (struct vxd_session *s = server->sessions[i]; s; s = s->next) {
            struct vxd_request *next;
            for (struct vxd_request *r = s->requests; r; r = next) {
                next = r->next;
                (void)vxd_request_cancel(r, VX_E_UNAVAILABLE, "the daemon is shutting down");
            }
        }
    }
}

void vxd_server_stop(struct vxd_server *server, const char *why)
{
    if (server->stopping)
        return;
    server->stopping = true;
    server->stop_ns = vxd_now_ns();
    vxd_log(VXD_LOG_INFO, "stopping", "why=\"%s\" jobs=%llu", why, (unsigned long long)server->n_jobs);
    cancel_all(server);
    vxd_server_check_stop(server);
}

void vxd_server_check_stop(struct vxd_server *server)
{
    if (!server->stopping || server->n_jobs)
        return;
    if (!server->closing) {
        if (!vxd_sessions_drained(server) && vxd_now_ns() - server->stop_ns < FLUSH_GRACE_NS)
            return;
        server->closing = true;
        vxd_maps_destroy_all(server);
    }
    if (!server->n_jobs)
        uv_stop(&server->loop);
}

static void on_last_resort(uv_timer_t *handle)
{
    (void)handle;
    _exit(1); /* jobs hang in a broken driver: nothing of theirs can be waited for */
}

void vxd_server_note(struct vxd_server *server, vx_err err, const struct vx_detail *detail)
{
    if (err != VX_E_DEVICE || server->failed)
        return;
    server->failed = true;
    vxd_log(VXD_LOG_ERROR, "device_failed", "why=%s", vxd_quote(detail->text, strlen(detail->text)).text);
    uv_timer_start(&server->last_resort, on_last_resort, LAST_RESORT_MS, 0);
    vxd_server_stop(server, "device error");
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct vxd_server *server = handle->data;
    if (server->stopping)
        _exit(128 + signum); /* asked twice: not even the log is waited for */
    vxd_server_stop(server, signum == SIGTERM ? "SIGTERM" : "SIGINT");
}

/* ------------------------------------------------------------------ open, run, close */

static vx_err open_sockets(struct vxd_server *server, struct vx_detail *detail)
{
    server->zmq_frames = zmq_ctx_new();
    server->zmq = zmq_ctx_new();
    if (!server->zmq_frames || !server->zmq)
        return vx_fail(detail, VX_E_NOMEM, "", "no ZeroMQ context");
    if (server->home.chosen)
        zmq_ctx_set(server->zmq, ZMQ_THREAD_AFFINITY_CPU_ADD, server->home.cpu);
    for (int i = 0; i < VXD_N_ENDPOINTS; ++i)
        VX_TRY_RET(vxd_endpoint_open(&server->endpoint[i], i,
                                     i == VXD_INGEST ? server->zmq_frames : server->zmq,
                                     server->config.ipc_dir, detail));
    return VX_OK;
}

static vx_err watch(struct vxd_server *server, struct vxd_endpoint *endpoint)
{
    int fd;
    size_t n = sizeof fd;
    if (zmq_getsockopt(endpoint->socket, ZMQ_FD, &fd, &n) || uv_poll_init(&server->loop, &endpoint->poll, fd))
        return VX_E_NOMEM;
    uv_poll_start(&endpoint->poll, UV_READABLE, on_poll);
    return VX_OK;
}

static vx_err open_handles(struct vxd_server *server)
{
    uv_loop_t *loop = &server->loop;
    for (int i = 0; i < VXD_N_ENDPOINTS; ++i)
        VX_TRY_RET(watch(server, &server->endpoint[i]));
    if (uv_prepare_init(loop, &server->prepare) || uv_idle_init(loop, &server->idle) ||
        uv_timer_init(loop, &server->tick) || uv_timer_init(loop, &server->retry) ||
        uv_timer_init(loop, &server->refresh) || uv_timer_init(loop, &server->last_resort) ||
        uv_signal_init(loop, &server->sigterm) || uv_signal_init(loop, &server->sigint))
        return VX_E_NOMEM;
    server->prepare.data = server->tick.data = server->refresh.data = server->sigterm.data =
        server->sigint.data = server;
    if (uv_prepare_start(&server->prepare, on_prepare) ||
        uv_timer_start(&server->tick, on_tick, TICK_MS, TICK_MS) ||
        uv_signal_start(&server->sigterm, on_signal, SIGTERM) ||
        uv_signal_start(&server->sigint, on_signal, SIGINT))
        return VX_E_NOMEM;
    return VX_OK;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void close_loop(struct vxd_server *server)
{
    uv_walk(&server->loop, close_handle, NULL);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    uv_loop_close(&server->loop);
}

static void close_sockets(struct vxd_server *server, int linger_ms)
{
    for (int i = 0; i < VXD_N_ENDPOINTS; ++i)
        vxd_endpoint_close(&server->endpoint[i], linger_ms);
    if (server->zmq)
        zmq_ctx_term(server->zmq);
    if (server->zmq_frames)
        zmq_ctx_term(server->zmq_frames);
}

/* Processors that this process may run on. */
static int usable_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

vx_err vxd_server_open(struct vxd_server *server, const struct vxd_config *config, struct vx_device *device,
                       struct vx_detail *detail)
{
    vx_err err;
    memset(server, 0, sizeof *server);
    server->config = *config;
    server->device = device;
    server->started_ns = vxd_now_ns();
    server->spin_ns = usable_processors() >= SPIN_PROCESSORS ? SPIN_NS : 0;
    VX_TRY_RET(vxd_home_open(&server->home, config->query_cpu, config->query_awake_ms, detail));
    if (uv_loop_init(&server->loop)) {
        vxd_home_close(&server->home);
        return vx_fail(detail, VX_E_NOMEM, "", "no event loop");
    }
    VX_TRY(open_sockets(server, detail));
    VX_TRY(open_handles(server));
    VX_TRY(vxd_done_init(&server->done, &server->loop));
    VX_TRY(vxd_worker_start(&server->misc, &server->done, "misc"));
    err = vxd_worker_start(&server->spool, &server->done, "spool");
    if (err == VX_OK) {
        err = vxd_worker_start(&server->stage, &server->done, "stage");
        if (err == VX_OK)
            return VX_OK;
        vxd_worker_stop(&server->spool);
    }
    vxd_worker_stop(&server->misc);
fail:
    if (detail && !detail->text[0])
        (void)vx_fail(detail, err, "", "no memory for the event loop");
    close_loop(server);
    close_sockets(server, 0);
    vxd_home_close(&server->home);
    return err;
}

vx_err vxd_server_run(struct vxd_server *server)
{
    vxd_home_enter(&server->home);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i)
        while (server->sessions[i])
            vxd_session_end(server->sessions[i], "the daemon stops");
    return server->failed ? VX_E_DEVICE : VX_OK;
}

void vxd_server_close(struct vxd_server *server)
{
    vxd_worker_stop(&server->misc);
    vxd_worker_stop(&server->spool);
    vxd_worker_stop(&server->stage);
    vxd_done_fini(&server->done);
    close_loop(server);
    close_sockets(server, LINGER_MS);
    vxd_home_close(&server->home);
}
