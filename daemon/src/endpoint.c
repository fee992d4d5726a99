#include "endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const names[VXD_N_ENDPOINTS] = {"ingest", "query", "events", "admin"};

uint64_t vxd_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void set(void *socket, int option, int value)
{
    zmq_setsockopt(socket, option, &value, sizeof value);
}

/* PROTOCOL.md says what was measured without them. */
static void set_options(struct vxd_endpoint *endpoint)
{
    int64_t max_bytes = endpoint->id == VXD_INGEST ? VXW_FRAME_MAX_BYTES : VXW_PART_MAX_BYTES;
    zmq_setsockopt(endpoint->socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes);
    set(endpoint->socket, ZMQ_ROUTER_MANDATORY, 1);
    set(endpoint->socket, ZMQ_ROUTER_HANDOVER, 0);
    set(endpoint->socket, ZMQ_HANDSHAKE_IVL, 3000);
    set(endpoint->socket, ZMQ_HEARTBEAT_IVL, 2000);
    set(endpoint->socket, ZMQ_HEARTBEAT_TIMEOUT, 6000);
    set(endpoint->socket, ZMQ_LINGER, 0);
    set(endpoint->socket, ZMQ_SNDHWM, 16);
    set(endpoint->socket, ZMQ_RCVHWM, 16);
}

vx_err vxd_endpoint_open(struct vxd_endpoint *endpoint, enum vxd_endpoint_id id, void *zmq, const char *dir,
                         struct vx_detail *detail)
{
    char address[160];
    *endpoint = (struct vxd_endpoint){.id = id, .name = names[id]};
    endpoint->socket = zmq_socket(zmq, ZMQ_ROUTER);
    if (!endpoint->socket)
        return vx_fail(detail, VX_E_NOMEM, "ipc_dir", "no socket: %s", zmq_strerror(errno));
    set_options(endpoint);
    snprintf(address, sizeof address, "ipc://%s/%s.sock", dir, endpoint->name);
    if (zmq_bind(endpoint->socket, address)) {
        vx_err err =
            vx_fail(detail, VX_E_UNAVAILABLE, "ipc_dir", "can't bind %s: %s", address, zmq_strerror(errno));
        zmq_close(endpoint->socket);
        endpoint->socket = NULL;
        return err;
    }
    return VX_OK;
}

void vxd_endpoint_close(struct vxd_endpoint *endpoint, int linger_ms)
{
    if (!endpoint->socket)
        return;
    set(endpoint->socket, ZMQ_LINGER, linger_ms);
    zmq_close(endpoint->socket);
    endpoint->socket = NULL;
}

bool vxd_endpoint_readable(struct vxd_endpoint *endpoint)
{
    int events = 0;
    size_t n = sizeof events;
    return !zmq_getsockopt(endpoint->socket, ZMQ_EVENTS, &events, &n) && (events & ZMQ_POLLIN);
}

/* ------------------------------------------------------------------ receive */

/* Reads the next frame of the message that has begun; all of it is here already, so this doesn't wait. */
static bool next_frame(struct vxd_endpoint *endpoint, zmq_msg_t *msg)
{
    zmq_msg_init(msg);
    return zmq_msg_recv(msg, endpoint->socket, ZMQ_DONTWAIT) >= 0;
}

static void drop_rest(struct vxd_endpoint *endpoint)
{
    int more = 1;
    size_t n = sizeof more;
    while (!zmq_getsockopt(endpoint->socket, ZMQ_RCVMORE, &more, &n) && more) {
        zmq_msg_t msg;
        bool got = next_frame(endpoint, &msg);
        zmq_msg_close(&msg);
        if (!got)
            return;
    }
}

static size_t max_payload_bytes(const struct vxd_in *in)
{
    return in->prelude.type == VOXELD__V1__HEADER__BODY_FRAME ? VXW_FRAME_MAX_BYTES : VXW_PART_MAX_BYTES;
}

static vx_err read_prelude(struct vxd_in *in)
{
    zmq_msg_t msg;
    if (!next_frame(in->endpoint, &msg) || !zmq_msg_more(&msg)) {
        zmq_msg_close(&msg);
        return vx_fail(&in->detail, VX_E_INVALID, "prelude", "a message has a prelude and a header");
    }
    vx_err err = vxw_prelude_decode(zmq_msg_data(&msg), zmq_msg_size(&msg), &in->prelude, &in->detail);
    zmq_msg_close(&msg);
    return err;
}

static vx_err read_header(struct vxd_in *in, bool *more)
{
    zmq_msg_t msg;
    vx_err err = VX_E_INVALID;
    if (next_frame(in->endpoint, &msg)) {
        *more = zmq_msg_more(&msg);
        err =
            vxw_header_unpack(&in->prelude, zmq_msg_data(&msg), zmq_msg_size(&msg), &in->header, &in->detail);
    }
    zmq_msg_close(&msg);
    return err;
}

static vx_err read_payloads(struct vxd_in *in, bool more)
{
    while (more && in->n_payloads < in->prelude.n_payloads) {
        zmq_msg_t *msg = &in->payload[in->n_payloads];
        if (!next_frame(in->endpoint, msg)) {
            zmq_msg_close(msg);
            break;
        }
        ++in->n_payloads;
        more = zmq_msg_more(msg);
        if (zmq_msg_size(msg) > max_payload_bytes(in))
            return vx_fail(&in->detail, VX_E_INVALID, "payloads",
                           "payload %u has %zu bytes, at most %zu are allowed", in->n_payloads - 1,
                           zmq_msg_size(msg), max_payload_bytes(in));
    }
    if (more || in->n_payloads != in->prelude.n_payloads)
        return vx_fail(&in->detail, VX_E_INVALID, "prelude.n_payload", "says %u, the message has %s",
                       in->prelude.n_payloads, more ? "more frames" : "fewer frames");
    return VX_OK;
}

static vx_err read_message(struct vxd_in *in)
{
    bool more = false;
    VX_TRY_RET(read_prelude(in));
    vx_err err = read_header(in, &more);
    if (err != VX_OK && err != VX_E_UNIMPLEMENTED)
        return err;
    VX_TRY_RET(read_payloads(in, more));
    return err;
}

bool vxd_endpoint_receive(struct vxd_endpoint *endpoint, struct vxd_in *in)
{
    in->endpoint = endpoint;
    in->header = NULL;
    in->n_payloads = 0;
    in->detail = (struct vx_detail){{0}, {0}};
    zmq_msg_t id;
    if (!next_frame(endpoint, &id)) {
        zmq_msg_close(&id);
        return false;
    }
    in->peer.n = (uint8_t)zmq_msg_size(&id);
    memcpy(in->peer.id, zmq_msg_data(&id), in->peer.n);
    in->arrived_ns = vxd_now_ns();
    if (zmq_msg_more(&id))
        in->err = read_message(in);
    else
        in->err = vx_fail(&in->detail, VX_E_INVALID, "prelude", "an empty message");
    zmq_msg_close(&id);
    drop_rest(endpoint);
    if (in->err != VX_OK && in->err != VX_E_UNIMPLEMENTED)
        vxd_in_fini(in);
    return true;
}

void vxd_in_fini(struct vxd_in *in)
{
    vxw_header_free(in->header);
    in->header = NULL;
    while (in->n_payloads)
        zmq_msg_close(&in->payload[--in->n_payloads]);
}

uint64_t vxd_in_deadline_ns(const struct vxd_in *in)
{
    uint64_t us = in->header->timeout_us;
    if (!us || us > (UINT64_MAX - in->arrived_ns) / 1000)
        return UINT64_MAX;
    return in->arrived_ns + us * 1000;
}

/* ------------------------------------------------------------------ send */

vx_err vxd_out_create(vxw_header *header, struct vxd_buf *payload, size_t at, size_t n, struct vxd_out **out,
                      struct vx_detail *detail)
{
    Voxeld__V1__Payload declared, *list[1] = {&declared};
    struct vxd_out *o = calloc(1, sizeof *o);
    if (!o)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a message");
    if (payload) {
        vxw_payload_declare(payload->data + at, n, &declared);
        header->payloads = list;
        header->n_payloads = 1;
    }
    vx_err err = vxw_header_pack(header, o->prelude, &o->header, &o->header_bytes, detail);
    header->payloads = NULL;
    header->n_payloads = 0;
    if (err != VX_OK) {
        free(o);
        return err;
    }
    if (payload) {
        o->payload = vxd_buf_retain(payload);
        o->payload_at = at;
        o->payload_bytes = n;
    }
    *out = o;
    return VX_OK;
}

void vxd_out_destroy(struct vxd_out *out)
{
    if (!out)
        return;
    vxd_buf_release(out->payload);
    free(out->header);
    free(out);
}

size_t vxd_out_bytes(const struct vxd_out *out)
{
    return sizeof *out + out->header_bytes + out->payload_bytes;
}

static void release_sent(void *data, void *hint)
{
    (void)data;
    vxd_buf_release(hint);
}

vx_err vxd_endpoint_send(struct vxd_endpoint *endpoint, const struct vxd_peer *peer,
                         const struct vxd_out *out)
{
    int flags = ZMQ_DONTWAIT | ZMQ_SNDMORE;
    if (zmq_send(endpoint->socket, peer->id, peer->n, flags) < 0)
        return errno == EAGAIN ? VX_E_SLOW : VX_E_UNAVAILABLE;
    /* The peer's pipe took the message's first frame, so it takes the others. */
    zmq_send(endpoint->socket, out->prelude, sizeof out->prelude, flags);
    zmq_send(endpoint->socket, out->header, out->header_bytes, out->payload ? flags : ZMQ_DONTWAIT);
    if (out->payload) {
        zmq_msg_t msg;
        if (zmq_msg_init_data(&msg, out->payload->data + out->payload_at, out->payload_bytes, release_sent,
                              out->payload)) {
            zmq_msg_init(&msg); /* no memory: the peer sees a payload of the wrong size and drops it */
        } else {
            vxd_buf_retain(out->payload);
        }
        if (zmq_msg_send(&msg, endpoint->socket, ZMQ_DONTWAIT) < 0)
            zmq_msg_close(&msg);
    }
    return VX_OK;
}
