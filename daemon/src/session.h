/*
 * session.h - one peer on one socket after its HELLO: what it has open, and what waits to be sent to it.
 */
#ifndef VXD_SESSION_H
#define VXD_SESSION_H

#include "server.h"

struct vxd_request;
struct vxd_stream;

struct vxd_session {
    struct vxd_session *next; /* in its bucket */
    struct vxd_server *server;
    struct vxd_endpoint *endpoint;
    struct vxd_peer peer;
    uint64_t serial; /* never used twice; for the log and for answers that outlive a session */
    uint8_t id[VXW_SESSION_BYTES];
    uint64_t heard_ns;  /* last message from it */
    uint64_t probed_ns; /* last PING to it */

    struct vxd_request *requests;
    uint32_t n_requests;
    struct vxd_stream **streams; /* [limits.streams_per_session] */
    uint32_t n_streams;
    uint32_t n_overruns; /* frames without credit */

    struct vxd_out *queue_first, **queue_end;
    size_t queue_bytes;

    vx_err doomed; /* not VX_OK: ends as soon as nobody holds the pointer */
    bool leaving;  /* said BYE */
};

/* NULL when the peer has none. */
struct vxd_session *vxd_session_find(struct vxd_server *server, const struct vxd_endpoint *endpoint,
                                     const struct vxd_peer *peer);
/*
 * Starts a session for the peer, in place of an older one.
 * Errors: VX_E_EXHAUSTED limits.sessions; VX_E_NOMEM; VX_E_INTERNAL no random numbers.
 */
vx_err vxd_session_open(struct vxd_server *server, struct vxd_endpoint *endpoint, const struct vxd_peer *peer,
                        struct vxd_session **out, struct vx_detail *detail);
/* Ends it at once: requests are dropped or detached, streams are left, the queue is dropped. */
void vxd_session_end(struct vxd_session *session, const char *why);
/* Ends it at the next safe point.  `words` go to the log. */
void vxd_session_doom(struct vxd_session *session, vx_err why, const char *words);
/* The safe point: ends what was doomed.  True when one ended. */
bool vxd_sessions_sweep(struct vxd_server *server);

/*
 * Sends a message (header.session is filled in), or queues it when the peer's pipe is full.  Bytes [at, at +
 * n) of payload, if not NULL, are payload 0.  Past limits.egress_bytes, or when the peer is gone, the session
 * is doomed; the caller need not care.
 */
void vxd_send(struct vxd_session *session, vxw_header *header, struct vxd_buf *payload, size_t at, size_t n);
/* ERROR for a request.  detail may be NULL. */
void vxd_send_error(struct vxd_session *session, uint64_t req_id, vx_err err, const struct vx_detail *detail);
/* ERROR to a peer without a session: dropped if its pipe is full. */
void vxd_send_error_to_peer(struct vxd_server *server, struct vxd_endpoint *endpoint,
                            const struct vxd_peer *peer, uint64_t req_id, vx_err err,
                            const struct vx_detail *detail);
/* Fills a wire Error; it points into *detail. */
void vxd_error_fill(struct vxd_server *server, vx_err err, const struct vx_detail *detail,
                    Voxeld__V1__Error *out);

/* Sends what waits for peers whose pipes have room again, and the parts of their downloads.  True when any
 * was sent. */
bool vxd_sessions_flush(struct vxd_server *server);
/* PING to quiet peers; all = every peer, now. */
void vxd_sessions_probe(struct vxd_server *server, bool all);
/* True when nothing waits in any queue. */
bool vxd_sessions_drained(const struct vxd_server *server);

#endif
