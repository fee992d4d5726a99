/*
 * endpoint.h - one ROUTER socket: receive whole messages, send whole messages, never block.
 *
 * Thread: the loop.
 */
#ifndef VXD_ENDPOINT_H
#define VXD_ENDPOINT_H

#include "buf.h"
#include "vx/wire.h"

#include <stdbool.h>
#include <uv.h>
#include <zmq.h>

enum vxd_endpoint_id { VXD_INGEST, VXD_QUERY, VXD_EVENTS, VXD_ADMIN, VXD_N_ENDPOINTS };

struct vxd_endpoint {
    enum vxd_endpoint_id id;
    const char *name; /* "ingest" */
    void *socket;
    uv_poll_t poll;
};

/* A connection as ROUTER names it. */
struct vxd_peer {
    uint8_t n;
    uint8_t id[255];
};

/* A received message.  With err != VX_OK the envelope was bad: header is NULL (but for VX_E_UNIMPLEMENTED)
 * and nothing else of it is kept. */
struct vxd_in {
    struct vxd_endpoint *endpoint;
    struct vxd_peer peer;
    uint64_t arrived_ns;
    struct vxw_prelude prelude;
    vxw_header *header;
    uint32_t n_payloads;
    zmq_msg_t payload[VXW_MAX_PAYLOADS];
    vx_err err;
    struct vx_detail detail;
};

/* A message to send. */
struct vxd_out {
    struct vxd_out *next;
    uint8_t prelude[VXW_PRELUDE_BYTES];
    uint8_t *header; /* owned */
    size_t header_bytes;
    struct vxd_buf *payload; /* a reference, or NULL */
    size_t payload_at, payload_bytes;
};

uint64_t vxd_now_ns(void);

/* Binds DIR/NAME.sock.  Errors: VX_E_UNAVAILABLE; VX_E_NOMEM. */
vx_err vxd_endpoint_open(struct vxd_endpoint *endpoint, enum vxd_endpoint_id id, void *zmq, const char *dir,
                         struct vx_detail *detail);
/* linger_ms: how long what was sent may still take to leave. */
void vxd_endpoint_close(struct vxd_endpoint *endpoint, int linger_ms);

/* True when a message waits.  Call it after every event and every send: it is also what re-arms the
 * descriptor. */
bool vxd_endpoint_readable(struct vxd_endpoint *endpoint);
/* Takes one message; false when there was none.  Payload frames larger than their type allows, and surplus
 * frames, are dropped unread.  Call vxd_in_fini afterwards. */
bool vxd_endpoint_receive(struct vxd_endpoint *endpoint, struct vxd_in *in);
void vxd_in_fini(struct vxd_in *in);
/* When its timeout_us is over; UINT64_MAX without one. */
uint64_t vxd_in_deadline_ns(const struct vxd_in *in);

/*
 * Packs a message.  payload may be NULL; else bytes [at, at + n) of it are payload 0 and get declared.
 * Errors: those of vxw_header_pack.
 */
vx_err vxd_out_create(vxw_header *header, struct vxd_buf *payload, size_t at, size_t n, struct vxd_out **out,
                      struct vx_detail *detail);
void vxd_out_destroy(struct vxd_out *out);
/* Bytes that it counts for in a queue. */
size_t vxd_out_bytes(const struct vxd_out *out);
/* Errors: VX_E_SLOW the peer's pipe is full, try later; VX_E_UNAVAILABLE the peer is gone. */
vx_err vxd_endpoint_send(struct vxd_endpoint *endpoint, const struct vxd_peer *peer,
                         const struct vxd_out *out);

#endif
