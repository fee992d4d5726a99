/*
 * internal.h - how the library is put together.
 *
 * An endpoint is one DEALER socket with its session and a monitor that tells when the daemon went away.  An
 * exchange is one request under way: its body going up in parts, its answer, the answer's body coming down in
 * parts.  Everything that arrives goes through vxc__dispatch, which hands it to the exchange or to a stream;
 * nothing else reads a socket.
 */
#ifndef VXC_CLIENT_INTERNAL_H
#define VXC_CLIENT_INTERNAL_H

#include "voxeld/client.h"
#include "vx/wire.h"

#include <stdatomic.h>
#include <zmq.h>

enum vxc__place { VXC__QUERY, VXC__ADMIN, VXC__INGEST, VXC__N_PLACES };

struct vxc__limits {
    uint64_t frame_payload_bytes;
    uint32_t part_bytes, query_items;
};

struct vxc__endpoint {
    struct vxc_client *client;
    enum vxc__place place;
    void *socket;  /* NULL until first used */
    void *monitor; /* PAIR: connection events */
    uint8_t session[VXW_SESSION_BYTES];
    bool greeted;    /* WELCOME came; false again when the connection is lost */
    uint32_t n_lost; /* times that the connection went away */
    bool reached;    /* something listened, if only to be silent */
};

struct vxc_client {
    void *context;
    char ipc_dir[108];
    char name[65];
    char server[65];
    uint32_t connect_timeout_ms, timeout_ms, spin_us;
    uint64_t next_req_id;
    uint32_t n_monitors; /* opened so far */
    struct vxc__limits limits;
    struct vxc__endpoint endpoint[VXC__N_PLACES];
    struct vxc__exchange *exchange; /* the request that waits, or NULL */
    struct vxc_stream *streams;     /* open ones, a list */
    atomic_bool interrupted;
};

/* A message from the daemon. */
struct vxc__message {
    vxw_header *header;
    zmq_msg_t payload;
    bool has_payload;
};

/* Bodies that pass through: NULL functions are not used. */
struct vxc__flow {
    vx_err (*give)(void *context, uint64_t at, void *out, size_t n, struct vx_detail *detail); /* up */
    vx_err (*take)(void *context, const void *bytes, size_t n, struct vx_detail *detail);      /* down */
    vxc_progress_fn progress;
    void *context;
};

/* One request and its answer. */
struct vxc__exchange {
    struct vxc__endpoint *endpoint;
    uint64_t req_id;
    Voxeld__V1__Header__BodyCase expected; /* type of the answer */
    const uint8_t *up;                     /* body of the request; the caller's */
    const struct vxc__flow *flow;          /* bodies that are not held in memory, or NULL */
    size_t up_bytes, up_sent;
    uint32_t up_index, up_credit;
    vxw_header *answer; /* owned; set when the answer's header came */
    uint8_t *down;      /* owned; body of the answer */
    size_t down_bytes, down_got;
    uint32_t down_index;
    bool done;
    bool refused; /* by whom the answer's body is for: the daemon still sends it */
    vx_err err;   /* an ERROR came, or the daemon broke the protocol */
    struct vx_detail why;
    uint64_t progress; /* counts what arrived, to measure silence */
};

/* ---- endpoint.c */

/* Opens the socket and says HELLO where that has not happened.  Errors: VX_E_UNAVAILABLE, VX_E_VERSION,
 * VX_E_NOMEM. */
vx_err vxc__endpoint_greet(struct vxc_client *client, enum vxc__place place, struct vxc__endpoint **out,
                           struct vx_detail *detail);
void vxc__endpoint_close(struct vxc__endpoint *endpoint);
/*
 * Sends a header (session and payload declaration are filled in here) and a payload (NULL: none).
 * Errors: VX_E_UNAVAILABLE the daemon takes nothing; VX_E_INVALID, VX_E_NOMEM.
 */
vx_err vxc__endpoint_send(struct vxc__endpoint *endpoint, vxw_header *header, const void *payload, size_t n,
                          struct vx_detail *detail);
/* The same with any number of payloads. */
struct vxc__payload {
    const void *data;
    size_t n_bytes;
};
vx_err vxc__endpoint_send_all(struct vxc__endpoint *endpoint, vxw_header *header,
                              const struct vxc__payload *payload, size_t n_payloads,
                              struct vx_detail *detail);
/* The next message, without waiting; *got = false when there is none.  Errors: VX_E_INTERNAL, VX_E_VERSION,
 * VX_E_NOMEM. */
vx_err vxc__endpoint_receive(struct vxc__endpoint *endpoint, struct vxc__message *message, bool *got,
                             struct vx_detail *detail);
/* True when a message waits. */
bool vxc__endpoint_readable(struct vxc__endpoint *endpoint);
void vxc__message_fini(struct vxc__message *message);
/* Waits for something on any socket, at most timeout_ms, and notices lost connections. */
void vxc__wait(struct vxc_client *client, int timeout_ms);
uint64_t vxc__now_ms(void);
uint64_t vxc__now_us(void);

/* ---- exchange.c */

/*
 * Sends x->up as a request on x->endpoint and waits for its whole answer, timeout_ms without progress at
 * most. The caller has greeted (or this is the HELLO) and calls vxc__exchange_fini, also after an error.
 */
vx_err vxc__exchange_run(struct vxc__exchange *x, vxw_header *header, uint32_t timeout_ms,
                         Voxeld__V1__Header__BodyCase expected, struct vx_detail *detail);
/*
 * Sends a request and waits for its whole answer.  header: the caller's; req_id and payload are filled in
 * here. expected: type of the answer's body.  The caller frees x with vxc__exchange_fini, also after an
 * error.
 */
vx_err vxc__call(struct vxc_client *client, enum vxc__place place, vxw_header *header, const void *body,
                 size_t n, Voxeld__V1__Header__BodyCase expected, struct vxc__exchange *x,
                 struct vx_detail *detail);
/* The same with bodies that pass through `flow`; x->down stays NULL when it takes the answer's. */
vx_err vxc__call_flow(struct vxc_client *client, enum vxc__place place, vxw_header *header, uint64_t n,
                      const struct vxc__flow *flow, Voxeld__V1__Header__BodyCase expected,
                      struct vxc__exchange *x, struct vx_detail *detail);
void vxc__exchange_fini(struct vxc__exchange *x);
/* Takes in everything that has arrived.  Errors: as vxc__endpoint_receive. */
vx_err vxc__dispatch(struct vxc_client *client, struct vx_detail *detail);
/* Words of an Error message. */
vx_err vxc__error_of(const Voxeld__V1__Error *error, struct vx_detail *detail);
/* true once for each vxc_interrupt. */
bool vxc__take_interrupt(struct vxc_client *client);

/* ---- maps.c */

void vxc__info_of(const Voxeld__V1__MapInfoReply *in, struct vxc_map_info *out);
void vxc__memory_of(const Voxeld__V1__MapMemory *in, struct vxc_map_memory *out);
void vxc__state_of(const Voxeld__V1__MapState *in, struct vxc_map_state *out);
/* What positions are relative to; NULL is zero. */
void vxc__set_origin(Voxeld__V1__Vec3 *out, const double origin_m[3]);
/* One request of the query socket whose answer has out_bytes; state may be NULL.
 * Errors: what the daemon said; VX_E_INTERNAL an answer of another size. */
vx_err vxc__ask(struct vxc_client *client, vxw_header *header, const void *body, size_t body_bytes, void *out,
                size_t out_bytes, struct vxc_map_state *state, struct vx_detail *detail);
/* Copies a bytes field into a string of n bytes, cut where it is too long. */
void vxc__text_of(ProtobufCBinaryData in, char *out, size_t n);
/* Refers to a string; nothing is copied. */
ProtobufCBinaryData vxc__bytes_of(const char *text);
/* Errors: VX_E_INVALID: the name could not be a map's. */
vx_err vxc__check_map(const char *name, struct vx_detail *detail);

/* ---- stream.c */

/* Gives a message of the ingest socket to the stream it belongs to; false when it is for none. */
bool vxc__stream_take(struct vxc_client *client, const vxw_header *header);
/* The ingest connection is gone: every frame under way is lost. */
void vxc__streams_lost(struct vxc_client *client);
void vxc__streams_free(struct vxc_client *client);
void vxc__counts_of(const Voxeld__V1__Counts *in, struct vxc_counts *out);

#endif
