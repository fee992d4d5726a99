#include "request.h"
#include "log.h"
#include "map.h"
#include "spool.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE_A_TURN_NS 500000u
#define LONG_NS           1000000u
#define NO_AT_ONCE_NS     100000000u

struct vxd_request *vxd_request_find(struct vxd_session *session, uint64_t req_id)
{
    struct vxd_request *r = session->requests;
    while (r && r->req_id != req_id)
        r = r->next;
    return r;
}

static vx_err check_open(const struct vxd_session *session, const struct vxd_in *in, struct vx_detail *detail)
{
    const struct vxd_server *server = session->server;
    uint64_t max = server->config.limits.requests_per_session;
    if (server->stopping)
        return vx_fail(detail, VX_E_UNAVAILABLE, "", "the daemon is shutting down");
    if (!in->header->req_id)
        return vx_fail(detail, VX_E_INVALID, "req_id", "must not be 0");
    if (vxd_request_find((struct vxd_session *)session, in->header->req_id))
        return vx_fail(detail, VX_E_INVALID, "req_id", "a request of this number is open");
    if (session->n_requests >= max)
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.requests_per_session", "%llu requests are open",
                       (unsigned long long)max);
    return VX_OK;
}

struct vxd_request *vxd_request_open(struct vxd_session *session, const struct vxd_in *in,
                                     const struct vxd_request_ops *ops)
{
    struct vx_detail detail = {{0}, {0}};
    vx_err err = check_open(session, in, &detail);
    struct vxd_request *r = err == VX_OK ? calloc(1, ops->size) : NULL;
    if (err == VX_OK && !r)
        err = vx_fail(&detail, VX_E_NOMEM, "", "no memory for a request");
    if (err != VX_OK) {
        vxd_send_error(session, in->header->req_id, err, &detail);
        return NULL;
    }
    r->ops = ops;
    r->server = session->server;
    r->session = session;
    r->req_id = in->header->req_id;
    r->type = in->prelude.type;
    r->arrived_ns = r->moved_ns = in->arrived_ns;
    r->deadline_ns = vxd_in_deadline_ns(in);
    r->state = VXD_UPLOADING;
    atomic_init(&r->cancelled, VX_OK);
    r->next = session->requests;
    session->requests = r;
    ++session->n_requests;
    return r;
}

vx_err vxd_request_use_map(struct vxd_request *request, const ProtobufCBinaryData *name)
{
    VX_TRY_RET(vxd_map_find(request->server, name, &request->map, &request->detail));
    ++request->map->n_requests;
    return VX_OK;
}

void vxd_request_leave_map(struct vxd_request *request)
{
    struct vxd_map *map = request->map;
    if (!map)
        return;
    request->map = NULL;
    --map->n_requests;
    vxd_map_released(map);
}

vx_err vxd_request_reserve(struct vxd_request *request, uint64_t n_bytes)
{
    struct vxd_server *server = request->server;
    uint64_t max = server->config.limits.transfer_bytes;
    if (n_bytes > max || server->transfer_bytes > max - n_bytes)
        return vx_fail(&request->detail, VX_E_EXHAUSTED, "limits.transfer_bytes",
                       "%llu more bytes of bodies, %llu of %llu are in use", (unsigned long long)n_bytes,
                       (unsigned long long)server->transfer_bytes, (unsigned long long)max);
    server->transfer_bytes += n_bytes;
    request->counted_bytes += n_bytes;
    return VX_OK;
}

static void unlink_from_session(struct vxd_request *request)
{
    if (!request->session)
        return;
    struct vxd_request **at = &request->session->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    --request->session->n_requests;
    request->session = NULL;
}

void vxd_request_free(struct vxd_request *request)
{
    unlink_from_session(request);
    if (request->ops->fini)
        request->ops->fini(request);
    vxd_request_leave_map(request);
    request->server->transfer_bytes -= request->counted_bytes;
    vxd_buf_release(request->body);
    vxd_buf_release(request->answer);
    vxd_spool_release(request->spool);
    free(request);
}

void vxd_request_fail(struct vxd_request *request, vx_err err)
{
    if (request->session)
        vxd_send_error(request->session, request->req_id, err, &request->detail);
    vxd_request_free(request);
}

/* ------------------------------------------------------------------ at a worker */

bool vxd_request_is_cancelled(void *context)
{
    struct vxd_request *request = context;
    return atomic_load_explicit(&request->cancelled, memory_order_relaxed) != VX_OK;
}

void vxd_request_note_progress(void *context, uint64_t n_done, uint64_t total)
{
    struct vxd_request *request = context;
    atomic_store_explicit(&request->progress_total, total, memory_order_relaxed);
    atomic_store_explicit(&request->progress_done, n_done, memory_order_relaxed);
}

void vxd_request_tell(struct vxd_request *request, Voxeld__V1__Phase phase, uint64_t n_done, uint64_t total)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Progress body = VOXELD__V1__PROGRESS__INIT;
    body.phase = phase;
    body.done = n_done;
    body.total = total;
    header.req_id = request->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_PROGRESS;
    header.progress = &body;
    vxd_send(request->session, &header, NULL, 0, 0);
}

void vxd_requests_tell(struct vxd_session *session)
{
    for (struct vxd_request *r = session->requests; r; r = r->next) {
        uint64_t n_done = atomic_load_explicit(&r->progress_done, memory_order_relaxed);
        if (r->state != VXD_QUEUED || !r->wants_progress || n_done == r->progress_told)
            continue;
        r->progress_told = n_done;
        vxd_request_tell(r, VOXELD__V1__PHASE__PHASE_RUNNING, n_done,
                         atomic_load_explicit(&r->progress_total, memory_order_relaxed));
    }
}

static void run(struct vxd_job *job)
{
    struct vxd_request *r = (struct vxd_request *)job;
    r->begun_ns = vxd_now_ns();
    vx_err why = atomic_load(&r->cancelled);
    if (why != VX_OK)
        r->err = VX_E_CANCELLED; /* done says why */
    else if (r->begun_ns > r->deadline_ns)
        r->err = vx_fail(&r->detail, VX_E_DEADLINE, "timeout_us", "passed before the request ran");
    else
        r->err = r->ops->run(r);
    r->ended_ns = vxd_now_ns();
}

/* Counts a piece of work that was answered just now. */
static void count(struct vxd_server *server, struct vxd_map *map, Voxeld__V1__Work work, bool at_once,
                  uint64_t arrived_ns, uint64_t begun_ns, uint64_t ended_ns)
{
    struct vxd_latency *of[2] = {&server->latency[work], map ? &map->latency[work] : NULL};
    const uint64_t now = vxd_now_ns();
    for (int i = 0; i < 2 && of[i]; ++i) {
        vxd_latency_add(of[i], arrived_ns, begun_ns, ended_ns, now);
        of[i]->n_at_once += at_once;
    }
}

/* It has run: answers it. */
static void conclude(struct vxd_request *r, bool at_once)
{
    struct vxd_server *server = r->server;
    struct vxd_map *map = r->map; /* stays: deleting it takes another job */
    vxd_server_note(server, r->err, &r->detail);
    vx_err why = atomic_load(&r->cancelled);
    if (r->err == VX_E_CANCELLED && why != VX_OK) {
        r->err = vx_fail(&r->detail, why, "", "%s", r->cancel_words);
    }
    if (r->ops->settle)
        r->ops->settle(r);
    const Voxeld__V1__Work work = r->err == VX_OK ? r->ops->work : VOXELD__V1__WORK__WORK_NONE;
    const uint64_t arrived = r->arrived_ns, begun = r->begun_ns, ended = r->ended_ns;
    if (!r->session)
        vxd_request_free(r);
    else if (r->err != VX_OK)
        vxd_request_fail(r, r->err);
    else
        r->ops->answer(r);
    if (work)
        count(server, map, work, at_once, arrived, begun, ended);
}

static void done(struct vxd_job *job)
{
    struct vxd_request *r = (struct vxd_request *)job;
    vxd_server_job_done(r->server);
    conclude(r, false);
}

static struct vxd_worker *worker_of(struct vxd_request *request)
{
    return request->ops->lane == VXD_LANE_MISC ? &request->server->misc
                                               : &request->map->lane[request->ops->lane];
}

void vxd_request_submit_on(struct vxd_request *request, struct vxd_worker *worker)
{
    request->state = VXD_QUEUED;
    request->worker = worker;
    request->job.run = run;
    request->job.done = done;
    vxd_server_push(request->server, worker, &request->job);
}

/*
 * Small questions are answered here, on the loop: a worker would have to be woken, and the loop by it again,
 * which takes several times as long as the answer.  Not more of them in one turn than what others can wait
 * for, and none for a while after one that took long (the device is busy, or the processor).
 */
static bool answer_at_once(struct vxd_request *r)
{
    struct vxd_server *server = r->server;
    const uint64_t begun = vxd_now_ns();
    if (!r->ops->run_at_once || server->at_once_ns >= AT_ONCE_A_TURN_NS || begun < r->map->no_at_once_ns ||
        begun > r->deadline_ns)
        return false;
    r->state = VXD_QUEUED; /* as if it came from there: whoever cancels it meanwhile leaves it to conclude */
    r->worker = worker_of(r);
    r->begun_ns = begun;
    r->err = r->ops->run_at_once(r);
    r->ended_ns = vxd_now_ns();
    server->at_once_ns += r->ended_ns - begun;
    if (r->ended_ns - begun > LONG_NS)
        r->map->no_at_once_ns = r->ended_ns + NO_AT_ONCE_NS;
    if (r->err == VX_E_UNAVAILABLE) {
        r->err = VX_OK;
        return false;
    }
    server->spin_until_ns = r->ended_ns + server->spin_ns;
    vxd_home_asked(&server->home, r->ended_ns);
    conclude(r, true);
    return true;
}

void vxd_request_submit(struct vxd_request *request)
{
    if (!answer_at_once(request))
        vxd_request_submit_on(request, worker_of(request));
}

bool vxd_request_cancel(struct vxd_request *request, vx_err why, const char *words)
{
    if (request->ops->must_run && request->state == VXD_QUEUED)
        return false;
    if (request->state == VXD_QUEUED) {
        int none = VX_OK;
        if (atomic_compare_exchange_strong(&request->cancelled, &none, why))
            request->cancel_words = words;
        if (!vxd_worker_remove(request->worker, &request->job))
            return false;
        vxd_server_job_done(request->server);
    }
    (void)vx_fail(&request->detail, why, "", "%s", words);
    vxd_request_fail(request, why);
    return true;
}
