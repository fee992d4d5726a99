/*
 * request.h - a question of a session from its arrival to the last byte of its answer.
 *
 *     open -> (body arrives in parts) -> queued at a worker -> answered -> (body leaves in parts) -> freed
 *
 * A verb describes itself by vxd_request_ops and may embed vxd_request at the start of a larger struct.
 */
#ifndef VXD_REQUEST_H
#define VXD_REQUEST_H

#include "session.h"
#include "vx/query.h"

#include <stdatomic.h>

struct vxd_request;
struct vxd_spool;

enum vxd_lane {
    VXD_LANE_WRITE,
    VXD_LANE_QUERY,
    VXD_LANE_BOX,
    VXD_LANE_BULK,
    VXD_N_LANES,
    VXD_LANE_MISC = VXD_N_LANES
};

struct vxd_request_ops {
    size_t size;           /* of the struct that begins with vxd_request */
    enum vxd_lane lane;    /* MISC: of the server, the others: of the map */
    Voxeld__V1__Work work; /* which latency it counts for */
    bool must_run;         /* neither CANCEL nor the end of the session stops it */
    /* On a worker.  Fills the verb's part of the request; the answer's body goes to request->answer. */
    vx_err (*run)(struct vxd_request *request);
    /* On the loop: the same where nothing need be waited for and it takes well below a millisecond, else
     * VX_E_UNAVAILABLE, and nothing has happened: `run` follows.  NULL: never so. */
    vx_err (*run_at_once)(struct vxd_request *request);
    /* On the loop, whatever came of it, before the answer; may be NULL. */
    void (*settle)(struct vxd_request *request);
    /* On the loop after success: fills the header's body and calls `send`.  Not called without a session. */
    void (*answer)(struct vxd_request *request);
    /* Frees what the verb added; may be NULL. */
    void (*fini)(struct vxd_request *request);
};

enum vxd_request_state { VXD_UPLOADING, VXD_QUEUED, VXD_SENDING };

struct vxd_request {
    struct vxd_job job;
    const struct vxd_request_ops *ops;
    struct vxd_request *next; /* of its session */
    struct vxd_server *server;
    struct vxd_session *session; /* NULL once that has ended */
    struct vxd_map *map;         /* held until it has run; may be NULL */
    struct vxd_worker *worker;   /* that it is queued at */
    uint64_t req_id;
    uint16_t type;
    uint64_t arrived_ns, deadline_ns;
    enum vxd_request_state state;
    atomic_int cancelled;     /* the vx_err to answer with, 0 = none */
    const char *cancel_words; /* with it; the loop's, not the worker's */

    struct vxd_buf *body; /* of the question */
    uint64_t body_have;
    uint32_t part_index; /* next to arrive, or to leave */
    uint32_t credits;    /* parts the peer may send, or we may */
    uint64_t moved_ns;   /* of a transfer */

    vx_err err;
    struct vx_detail detail;
    struct vx_reply reply;
    uint64_t begun_ns, ended_ns; /* of its run */
    struct vxd_buf *answer;      /* body of the answer; may be NULL */
    size_t answer_sent;
    uint64_t counted_bytes; /* of server->transfer_bytes */

    /* A body in a file instead of `body` or `answer` (spool.h). */
    struct vxd_spool *spool;
    uint64_t spool_done; /* bytes written, or sent */
    uint32_t n_spool;    /* reads or writes under way */

    bool wants_progress;
    atomic_ullong progress_done, progress_total; /* the worker's word */
    uint64_t progress_told;
};

/*
 * Opens a request, or sends the ERROR and returns NULL.
 * Errors: VX_E_INVALID req_id 0 or open already; VX_E_EXHAUSTED limits.requests_per_session; VX_E_UNAVAILABLE
 * stopping; VX_E_NOMEM.
 */
struct vxd_request *vxd_request_open(struct vxd_session *session, const struct vxd_in *in,
                                     const struct vxd_request_ops *ops);
/* Ties it to a map.  Errors: those of vxd_map_find. */
vx_err vxd_request_use_map(struct vxd_request *request, const ProtobufCBinaryData *name);
void vxd_request_leave_map(struct vxd_request *request);
/* Counts bytes of bodies against limits.transfer_bytes.  Errors: VX_E_EXHAUSTED. */
vx_err vxd_request_reserve(struct vxd_request *request, uint64_t n_bytes);
/* Sends ERROR and frees the request. */
void vxd_request_fail(struct vxd_request *request, vx_err err);
void vxd_request_free(struct vxd_request *request);

/* Answers it at once if that can be, else hands it to its worker. */
void vxd_request_submit(struct vxd_request *request);
/* The same for one that holds no map. */
void vxd_request_submit_on(struct vxd_request *request, struct vxd_worker *worker);
/* Ends it with `why`, if it can be ended; true when it is gone now. */
bool vxd_request_cancel(struct vxd_request *request, vx_err why, const char *words);
struct vxd_request *vxd_request_find(struct vxd_session *session, uint64_t req_id);

/* For vx_query_options.cancelled; context is the request. */
bool vxd_request_is_cancelled(void *context);
/* The same for progress: what a worker says is told to the client by vxd_requests_tell. */
void vxd_request_note_progress(void *context, uint64_t done, uint64_t total);
/* Sends PROGRESS now. */
void vxd_request_tell(struct vxd_request *request, Voxeld__V1__Phase phase, uint64_t done, uint64_t total);
/* Sends PROGRESS of the session's requests that run, want it, and got on. */
void vxd_requests_tell(struct vxd_session *session);

/* transfer.c ---------------------------------------------------------------- */

/* Takes the inline body of n bytes and submits, or begins an upload.  Errors: VX_E_INVALID; VX_E_EXHAUSTED;
 * VX_E_NOMEM. */
vx_err vxd_request_take_body(struct vxd_request *request, struct vxd_in *in, uint64_t n_bytes);
/* The same into request->spool, which it makes; the request is submitted when all is written.  Errors: those,
 * and VX_E_EXHAUSTED limits.spool_bytes. */
vx_err vxd_request_take_file(struct vxd_request *request, struct vxd_in *in, uint64_t n_bytes);
/* Sends the answer, with request->answer inline or in parts, or request->spool in parts.  Frees the request,
 * now or after the last part.
 */
void vxd_request_send(struct vxd_request *request, vxw_header *header);
void vxd_transfer_on_part(struct vxd_session *session, struct vxd_in *in);
void vxd_transfer_on_credit(struct vxd_session *session, const struct vxd_in *in);
/* Sends parts of the session's downloads while credit and queue allow.  True when any was sent. */
bool vxd_transfer_pump(struct vxd_session *session);
/* Ends transfers that have not moved. */
void vxd_transfer_expire(struct vxd_session *session, uint64_t now_ns);

#endif
