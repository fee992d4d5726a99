#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const SOCKET_NAMES[VXC__N_PLACES] = {
    [VXC__QUERY] = "query", [VXC__ADMIN] = "admin", [VXC__INGEST] = "ingest"};

uint64_t vxc__now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t vxc__now_ms(void)
{
    return vxc__now_us() / 1000;
}

/* ------------------------------------------------------------------ socket */

static vx_err nobody(const struct vxc_client *client, const char *how, struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_UNAVAILABLE, "ipc_dir", "no daemon answers in %s (%s)", client->ipc_dir, how);
}

/* Connects the socket, with a monitor that tells of its connection. */
static vx_err open_socket(struct vxc__endpoint *endpoint, struct vx_detail *detail)
{
    enum { LINGER_MS = 200, HANDSHAKE_MS = 3000 };
    struct vxc_client *client = endpoint->client;
    char path[160], address[192], monitor[64];
    snprintf(path, sizeof path, "%s/%s.sock", client->ipc_dir, SOCKET_NAMES[endpoint->place]);
    if (access(path, F_OK) != 0)
        return nobody(client, "there is no socket", detail);
    if (access(path, R_OK | W_OK) != 0)
        return vx_fail(detail, VX_E_PERMISSION, "ipc_dir", "%s may not be used by this user: %s", path,
                       strerror(errno));
    const int linger = LINGER_MS, handshake = HANDSHAKE_MS,
              watched = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED;
    snprintf(address, sizeof address, "ipc://%s", path);
    /* a new name each time: a socket that was closed may still hold the last one */
    snprintf(monitor, sizeof monitor, "inproc://monitor-%u", ++client->n_monitors);
    endpoint->socket = zmq_socket(client->context, ZMQ_DEALER);
    endpoint->monitor = zmq_socket(client->context, ZMQ_PAIR);
    if (!endpoint->socket || !endpoint->monitor ||
        zmq_setsockopt(endpoint->socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_setsockopt(endpoint->socket, ZMQ_HANDSHAKE_IVL, &handshake, sizeof handshake) != 0 ||
        zmq_socket_monitor(endpoint->socket, monitor, watched) != 0 ||
        zmq_connect(endpoint->monitor, monitor) != 0 || zmq_connect(endpoint->socket, address) != 0) {
        vx_fail(detail, VX_E_UNAVAILABLE, "ipc_dir", "cannot connect to %s: %s", path,
                zmq_strerror(zmq_errno()));
        vxc__endpoint_close(endpoint);
        return VX_E_UNAVAILABLE;
    }
    return VX_OK;
}

void vxc__endpoint_close(struct vxc__endpoint *endpoint)
{
    const int none = 0;
    if (endpoint->socket)
        zmq_close(endpoint->socket);
    if (endpoint->monitor) {
        zmq_setsockopt(endpoint->monitor, ZMQ_LINGER, &none, sizeof none);
        zmq_close(endpoint->monitor);
    }
    endpoint->socket = endpoint->monitor = NULL;
    endpoint->greeted = false;
}

/* Reads what the monitor saw: the connection broke, or nothing listens. */
static void read_monitor(struct vxc__endpoint *endpoint)
{
    for (;;) {
        zmq_msg_t part;
        uint16_t event = 0;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, endpoint->monitor, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return;
        }
        const bool first = zmq_msg_size(&part) >= 6; /* event u16, value u32; then a frame with the address */
        if (first)
            memcpy(&event, zmq_msg_data(&part), sizeof event);
        const bool more = zmq_msg_more(&part);
        zmq_msg_close(&part);
        if (more) {
            zmq_msg_init(&part);
            (void)zmq_msg_recv(&part, endpoint->monitor, ZMQ_DONTWAIT);
            zmq_msg_close(&part);
        }
        if (event & (ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED)) {
            endpoint->n_lost++;
            endpoint->greeted = false;
            endpoint->reached |= event == ZMQ_EVENT_DISCONNECTED;
            if (endpoint->place == VXC__INGEST)
                vxc__streams_lost(endpoint->client);
        }
    }
}

void vxc__wait(struct vxc_client *client, int timeout_ms)
{
    zmq_pollitem_t item[2 * VXC__N_PLACES];
    int n = 0;
    for (int i = 0; i < VXC__N_PLACES; i++) {
        if (!client->endpoint[i].socket)
            continue;
        item[n++] = (zmq_pollitem_t){.socket = client->endpoint[i].socket, .events = ZMQ_POLLIN};
        item[n++] = (zmq_pollitem_t){.socket = client->endpoint[i].monitor, .events = ZMQ_POLLIN};
    }
    (void)zmq_poll(item, n, timeout_ms); /* EINTR: the caller looks at its interrupt flag */
    for (int i = 0; i < VXC__N_PLACES; i++)
        if (client->endpoint[i].socket)
            read_monitor(&client->endpoint[i]);
}

/* ------------------------------------------------------------------ messages */

/* Hands a frame of a message to the socket; the data is copied. */
static int send_frame(void *socket, const void *data, size_t n, bool more, int wait)
{
    zmq_msg_t frame;
    if (zmq_msg_init_size(&frame, n) != 0)
        return -1;
    if (n > 0)
        memcpy(zmq_msg_data(&frame), data, n);
    const int sent = zmq_msg_send(&frame, socket, wait | (more ? ZMQ_SNDMORE : 0));
    if (sent < 0)
        zmq_msg_close(&frame);
    return sent;
}

vx_err vxc__endpoint_send(struct vxc__endpoint *endpoint, vxw_header *header, const void *payload, size_t n,
                          struct vx_detail *detail)
{
    const struct vxc__payload one = {payload, n};
    return vxc__endpoint_send_all(endpoint, header, &one, payload ? 1 : 0, detail);
}

vx_err vxc__endpoint_send_all(struct vxc__endpoint *endpoint, vxw_header *header,
                              const struct vxc__payload *payload, size_t n_payloads, struct vx_detail *detail)
{
    uint8_t prelude[VXW_PRELUDE_BYTES], *bytes;
    size_t n_bytes;
    Voxeld__V1__Payload declared[VXW_MAX_PAYLOADS], *list[VXW_MAX_PAYLOADS];
    if (endpoint->greeted)
        header->session = (ProtobufCBinaryData){sizeof endpoint->session, endpoint->session};
    if (n_payloads > VXW_MAX_PAYLOADS)
        return vx_fail(detail, VX_E_INVALID, "payloads", "%zu payloads, at most %d fit", n_payloads,
                       VXW_MAX_PAYLOADS);
    for (size_t i = 0; i < n_payloads; i++) {
        vxw_payload_declare(payload[i].data, payload[i].n_bytes, &declared[i]);
        list[i] = &declared[i];
    }
    header->n_payloads = n_payloads;
    header->payloads = n_payloads ? list : NULL;
    const vx_err err = vxw_header_pack(header, prelude, &bytes, &n_bytes, detail);
    header->n_payloads = 0;
    header->payloads = NULL;
    header->session = (ProtobufCBinaryData){0, NULL};
    VX_TRY_RET(err);
    /* Only the first frame can meet a full queue; once it is in, the rest of the message goes with it. */
    int sent = send_frame(endpoint->socket, prelude, sizeof prelude, true, ZMQ_DONTWAIT);
    if (sent >= 0)
        sent = send_frame(endpoint->socket, bytes, n_bytes, n_payloads > 0, 0);
    for (size_t i = 0; sent >= 0 && i < n_payloads; i++)
        sent = send_frame(endpoint->socket, payload[i].data, payload[i].n_bytes, i + 1 < n_payloads, 0);
    free(bytes);
    if (sent >= 0)
        return VX_OK;
    return vx_fail(detail, zmq_errno() == ENOMEM ? VX_E_NOMEM : VX_E_UNAVAILABLE, "connection",
                   "the daemon takes no message: %s", zmq_strerror(zmq_errno()));
}

/* Takes one frame; false when there is none or the message ended before it. */
static bool receive_frame(void *socket, zmq_msg_t *frame, bool *more)
{
    zmq_msg_init(frame);
    int n;
    do
        n = zmq_msg_recv(frame, socket, ZMQ_DONTWAIT);
    while (n < 0 && zmq_errno() == EINTR);
    if (n < 0) {
        zmq_msg_close(frame);
        return false;
    }
    *more = zmq_msg_more(frame);
    return true;
}

bool vxc__endpoint_readable(struct vxc__endpoint *endpoint)
{
    int events = 0;
    size_t n = sizeof events;
    return zmq_getsockopt(endpoint->socket, ZMQ_EVENTS, &events, &n) == 0 && (events & ZMQ_POLLIN);
}

static vx_err decode(zmq_msg_t *first, zmq_msg_t *second, struct vxc__message *message,
                     struct vx_detail *detail)
{
    struct vxw_prelude prelude;
    VX_TRY_RET(vxw_prelude_decode(zmq_msg_data(first), zmq_msg_size(first), &prelude, detail));
    const vx_err err =
        vxw_header_unpack(&prelude, zmq_msg_data(second), zmq_msg_size(second), &message->header, detail);
    if (err == VX_E_UNIMPLEMENTED) /* a type of a later version: not for us */
        return VX_OK;
    VX_TRY_RET(err);
    if (message->has_payload != (message->header->n_payloads > 0))
        return vx_fail(detail, VX_E_INTERNAL, "payloads", "the daemon announced %zu payloads and sent %d",
                       message->header->n_payloads, message->has_payload);
    if (!message->has_payload)
        return VX_OK;
    return vxw_payload_check(message->header, 0, zmq_msg_data(&message->payload),
                             zmq_msg_size(&message->payload), detail);
}

vx_err vxc__endpoint_receive(struct vxc__endpoint *endpoint, struct vxc__message *message, bool *got,
                             struct vx_detail *detail)
{
    zmq_msg_t first, second, surplus;
    bool more = false;
    memset(message, 0, sizeof *message);
    *got = receive_frame(endpoint->socket, &first, &more);
    if (!*got)
        return VX_OK;
    vx_err err = VX_OK;
    bool has_second = false;
    if (more)
        has_second = receive_frame(endpoint->socket, &second, &more);
    if (has_second && more)
        message->has_payload = receive_frame(endpoint->socket, &message->payload, &more);
    while (more && receive_frame(endpoint->socket, &surplus, &more))
        zmq_msg_close(&surplus);
    if (has_second)
        err = decode(&first, &second, message, detail);
    else
        err = vx_fail(detail, VX_E_INTERNAL, "", "the daemon sent half a message");
    zmq_msg_close(&first);
    if (has_second)
        zmq_msg_close(&second);
    if (err == VX_E_INVALID || err == VX_E_EXHAUSTED || err == VX_E_UNIMPLEMENTED)
        err = VX_E_INTERNAL; /* what the daemon sends is well-formed, or it is a defect */
    if (err != VX_OK)
        vxc__message_fini(message);
    return err;
}

void vxc__message_fini(struct vxc__message *message)
{
    if (message->header)
        vxw_header_free(message->header);
    if (message->has_payload)
        zmq_msg_close(&message->payload);
    message->header = NULL;
    message->has_payload = false;
}

/* ------------------------------------------------------------------ HELLO */

/* Words of a failed HELLO: the usual reason is that nobody is there. */
static vx_err explain(struct vxc_client *client, bool reached, vx_err err, struct vx_detail *detail)
{
    if (err == VX_E_UNAVAILABLE && !reached)
        return nobody(client, "a socket is there, but nothing listens", detail);
    if (err == VX_E_UNAVAILABLE || err == VX_E_DEADLINE)
        return nobody(client, "something listens, but says no HELLO", detail);
    return err;
}

/* Says HELLO; on a failure the socket is closed. */
static vx_err greet(struct vxc_client *client, struct vxc__endpoint *endpoint, struct vx_detail *detail)
{
    endpoint->reached = false; /* by this attempt */
    if (!endpoint->socket)
        VX_TRY_RET(open_socket(endpoint, detail));

    Voxeld__V1__Hello hello = VOXELD__V1__HELLO__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    hello.min_major = hello.max_major = VXW_MAJOR;
    hello.minor = VXW_MINOR;
    hello.client = vxc__bytes_of(client->name);
    header.body_case = VOXELD__V1__HEADER__BODY_HELLO;
    header.hello = &hello;
    struct vxc__exchange x = {.endpoint = endpoint};
    vx_err err =
        vxc__exchange_run(&x, &header, client->connect_timeout_ms, VOXELD__V1__HEADER__BODY_WELCOME, detail);
    if (err != VX_OK) {
        vxc__endpoint_close(endpoint);
        vxc__exchange_fini(&x);
        return explain(client, endpoint->reached, err, detail);
    }
    const Voxeld__V1__Welcome *welcome = x.answer->welcome;
    if (welcome->session.len != sizeof endpoint->session) {
        err = vx_fail(detail, VX_E_INTERNAL, "session", "the daemon gave a session of %zu bytes",
                      welcome->session.len);
    } else {
        memcpy(endpoint->session, welcome->session.data, sizeof endpoint->session);
        endpoint->greeted = true;
        vxc__text_of(welcome->server, client->server, sizeof client->server);
        const Voxeld__V1__Limits *limits = welcome->limits;
        if (limits && limits->frame_payload_bytes > 0)
            client->limits.frame_payload_bytes = limits->frame_payload_bytes;
        if (limits && limits->part_bytes > 0 && limits->part_bytes <= VXW_PART_MAX_BYTES)
            client->limits.part_bytes = limits->part_bytes;
        if (limits && limits->query_items > 0)
            client->limits.query_items = limits->query_items;
    }
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc__endpoint_greet(struct vxc_client *client, enum vxc__place place, struct vxc__endpoint **out,
                           struct vx_detail *detail)
{
    struct vxc__endpoint *endpoint = *out = &client->endpoint[place];
    if (endpoint->socket)
        vxc__wait(client, 0); /* a lost connection is noticed before the next request, not by its silence */
    if (endpoint->greeted)
        return VX_OK;
    vx_err err = greet(client, endpoint, detail);
    /* What broke may be the connection to the last daemon, seen only now, or one that a dying daemon's
     * backlog took: a new socket tells. */
    if (err == VX_E_UNAVAILABLE && endpoint->reached)
        err = greet(client, endpoint, detail);
    return err;
}
