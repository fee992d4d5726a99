#include "session.h"
#include "log.h"
#include "request.h"
#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint32_t bucket_of(const struct vxd_endpoint *endpoint, const struct vxd_peer *peer)
{
    return (vxw_crc32c(0, peer->id, peer->n) ^ (uint32_t)endpoint->id * 61) % VXD_SESSION_BUCKETS;
}

struct vxd_session *vxd_session_find(struct vxd_server *server, const struct vxd_endpoint *endpoint,
                                     const struct vxd_peer *peer)
{
    struct vxd_session *s = server->sessions[bucket_of(endpoint, peer)];
    while (s && (s->endpoint != endpoint || s->peer.n != peer->n || memcmp(s->peer.id, peer->id, peer->n)))
        s = s->next;
    return s;
}

vx_err vxd_session_open(struct vxd_server *server, struct vxd_endpoint *endpoint, const struct vxd_peer *peer,
                        struct vxd_session **out, struct vx_detail *detail)
{
    struct vxd_session *old = vxd_session_find(server, endpoint, peer);
    if (old)
        vxd_session_end(old, "said HELLO again");
    if (server->n_sessions >= server->config.limits.sessions) {
        vxd_sessions_probe(server, true);
        vxd_sessions_sweep(server);
    }
    if (server->n_sessions >= server->config.limits.sessions)
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.sessions", "all %u sessions are taken",
                       server->n_sessions);
    struct vxd_session *s = calloc(1, sizeof *s);
    if (s)
        s->streams = calloc(server->config.limits.streams_per_session, sizeof *s->streams);
    if (!s || !s->streams) {
        free(s);
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a session");
    }
    if (getrandom(s->id, sizeof s->id, GRND_NONBLOCK) != (ssize_t)sizeof s->id) {
        free(s->streams);
        free(s);
        return vx_fail(detail, VX_E_INTERNAL, "", "no random numbers for a session id");
    }
    s->server = server;
    s->endpoint = endpoint;
    s->peer = *peer;
    s->serial = ++server->next_serial;
    s->heard_ns = s->probed_ns = vxd_now_ns();
    s->queue_end = &s->queue_first;
    uint32_t bucket = bucket_of(endpoint, peer);
    s->next = server->sessions[bucket];
    server->sessions[bucket] = s;
    ++server->n_sessions;
    *out = s;
    return VX_OK;
}

static void drop_queue(struct vxd_session *session)
{
    while (session->queue_first) {
        struct vxd_out *out = session->queue_first;
        session->queue_first = out->next;
        vxd_out_destroy(out);
    }
    session->queue_end = &session->queue_first;
    session->queue_bytes = 0;
}

void vxd_session_end(struct vxd_session *session, const char *why)
{
    struct vxd_server *server = session->server;
    vxd_log(VXD_LOG_INFO, "session_end", "session=%llu endpoint=%s why=\"%s\"",
            (unsigned long long)session->serial, session->endpoint->name, why);
    struct vxd_session **at = &server->sessions[bucket_of(session->endpoint, &session->peer)];
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    --server->n_sessions;
    vxd_streams_leave(session);
    while (session->requests) {
        struct vxd_request *request = session->requests;
        session->requests = request->next;
        --session->n_requests;
        request->session = NULL;
        (void)vxd_request_cancel(request, VX_E_CANCELLED, "the session ended");
    }
    drop_queue(session);
    free(session->streams);
    free(session);
}

void vxd_session_doom(struct vxd_session *session, vx_err why, const char *words)
{
    if (session->doomed)
        return;
    session->doomed = why;
    if (session->leaving) /* it said BYE and does not wait for the answer */
        return;
    ++session->server->n_ended[vxw_code_from_err(why)];
    /* A client that ends without BYE is no fault of anybody's. */
    vxd_log(why == VX_E_UNAVAILABLE ? VXD_LOG_DEBUG : VXD_LOG_WARN, "session_doomed",
            "session=%llu code=%s why=\"%s\"", (unsigned long long)session->serial, vx_err_name(why), words);
}

bool vxd_sessions_sweep(struct vxd_server *server)
{
    bool any = false;
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i) {
        struct vxd_session *next;
        for (struct vxd_session *s = server->sessions[i]; s; s = next) {
            next = s->next;
            if (s->doomed) {
                vxd_session_end(s, vx_err_name(s->doomed));
                any = true;
            }
        }
    }
    return any;
}

/* ------------------------------------------------------------------ sending */

static void enqueue(struct vxd_session *session, struct vxd_out *out)
{
    session->queue_bytes += vxd_out_bytes(out);
    out->next = NULL;
    *session->queue_end = out;
    session->queue_end = &out->next;
    if (session->queue_bytes > session->server->config.limits.egress_bytes)
        vxd_session_doom(session, VX_E_SLOW, "does not read what is sent to it");
}

void vxd_send(struct vxd_session *session, vxw_header *header, struct vxd_buf *payload, size_t at, size_t n)
{
    struct vxd_out *out;
    struct vx_detail detail = {{0}, {0}};
    if (session->doomed)
        return;
    header->session.data = session->id;
    header->session.len = sizeof session->id;
    vx_err err = vxd_out_create(header, payload, at, n, &out, &detail);
    if (err != VX_OK) {
        vxd_log(VXD_LOG_ERROR, "answer_lost", "session=%llu type=%s why=\"%s\"",
                (unsigned long long)session->serial, vxw_type_name(header->body_case), detail.text);
        vxd_session_doom(session, err, "an answer could not be packed");
        return;
    }
    err = session->queue_first ? VX_E_SLOW : vxd_endpoint_send(session->endpoint, &session->peer, out);
    if (err == VX_E_SLOW) {
        enqueue(session, out);
        return;
    }
    if (err != VX_OK)
        vxd_session_doom(session, err, "the peer is gone");
    vxd_out_destroy(out);
}

void vxd_error_fill(struct vxd_server *server, vx_err err, const struct vx_detail *detail,
                    Voxeld__V1__Error *out)
{
    const char *words = detail && detail->text[0] ? detail->text : vx_err_text(err);
    voxeld__v1__error__init(out);
    out->code = vxw_code_from_err(err);
    out->message.data = (uint8_t *)words;
    out->message.len = strlen(words);
    if (detail) {
        out->field.data = (uint8_t *)detail->field;
        out->field.len = strlen(detail->field);
    }
    if (err == VX_E_LOADING || err == VX_E_NOMEM)
        out->retry_after_ms = 100;
    ++server->n_errors[out->code];
}

static void error_header(uint64_t req_id, Voxeld__V1__Error *error, vxw_header *out)
{
    voxeld__v1__header__init(out);
    out->req_id = req_id;
    out->body_case = VOXELD__V1__HEADER__BODY_ERROR;
    out->error = error;
}

void vxd_send_error(struct vxd_session *session, uint64_t req_id, vx_err err, const struct vx_detail *detail)
{
    Voxeld__V1__Error error;
    vxw_header header;
    vxd_error_fill(session->server, err, detail, &error);
    error_header(req_id, &error, &header);
    vxd_log(VXD_LOG_DEBUG, "error_sent", "session=%llu req=%llu code=%s field=%s",
            (unsigned long long)session->serial, (unsigned long long)req_id, vx_err_name(err),
            detail ? detail->field : "");
    vxd_send(session, &header, NULL, 0, 0);
}

void vxd_send_error_to_peer(struct vxd_server *server, struct vxd_endpoint *endpoint,
                            const struct vxd_peer *peer, uint64_t req_id, vx_err err,
                            const struct vx_detail *detail)
{
    Voxeld__V1__Error error;
    vxw_header header;
    struct vxd_out *out;
    vxd_error_fill(server, err, detail, &error);
    error_header(req_id, &error, &header);
    if (vxd_out_create(&header, NULL, 0, 0, &out, NULL) != VX_OK)
        return;
    (void)vxd_endpoint_send(endpoint, peer, out);
    vxd_out_destroy(out);
}

static bool flush(struct vxd_session *session)
{
    bool any = false;
    while (session->queue_first && !session->doomed) {
        struct vxd_out *out = session->queue_first;
        vx_err err = vxd_endpoint_send(session->endpoint, &session->peer, out);
        if (err == VX_E_SLOW)
            return any;
        if (err != VX_OK) {
            vxd_session_doom(session, err, "the peer is gone");
            return any;
        }
        any = true;
        session->queue_first = out->next;
        if (!session->queue_first)
            session->queue_end = &session->queue_first;
        session->queue_bytes -= vxd_out_bytes(out);
        vxd_out_destroy(out);
    }
    return vxd_transfer_pump(session) || any;
}

bool vxd_sessions_flush(struct vxd_server *server)
{
    bool any = false;
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i)
        for (struct vxd_session *s = server->sessions[i]; s; s = s->next)
            any |= flush(s);
    return any;
}

bool vxd_sessions_drained(const struct vxd_server *server)
{
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i)
        for (const struct vxd_session *s = server->sessions[i]; s; s = s->next)
            if (s->queue_first)
                return false;
    return true;
}

/* Only a send tells a ROUTER that a peer has gone.  A full pipe means that it is there, so the PING is not
 * queued. */
static void probe(struct vxd_session *session)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    struct vxd_out *out;
    header.session.data = session->id;
    header.session.len = sizeof session->id;
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    session->probed_ns = vxd_now_ns();
    if (vxd_out_create(&header, NULL, 0, 0, &out, NULL) != VX_OK)
        return;
    vx_err err = vxd_endpoint_send(session->endpoint, &session->peer, out);
    vxd_out_destroy(out);
    if (err == VX_E_UNAVAILABLE)
        vxd_session_doom(session, err, "the peer is gone");
}

void vxd_sessions_probe(struct vxd_server *server, bool all)
{
    const uint64_t quiet_ns = 5000000000u;
    uint64_t now = vxd_now_ns();
    for (int i = 0; i < VXD_SESSION_BUCKETS; ++i)
        for (struct vxd_session *s = server->sessions[i]; s; s = s->next)
            if (all || (now - s->heard_ns > quiet_ns && now - s->probed_ns > quiet_ns))
                probe(s);
}
