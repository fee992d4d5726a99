#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    DOWNLOAD_PARTS =
        8, /* of an answer in flight: enough to keep the pipe full, little enough to stay within memory */
    SLICE_MS = 50 /* an interrupt from another thread waits no longer than this */
};

bool vxc__take_interrupt(struct vxc_client *client)
{
    return atomic_exchange(&client->interrupted, false);
}

vx_err vxc__error_of(const Voxeld__V1__Error *error, struct vx_detail *detail)
{
    char text[sizeof detail->text], field[sizeof detail->field];
    if (!error)
        return vx_fail(detail, VX_E_INTERNAL, "", "the daemon refused without a reason");
    const vx_err err = vxw_err_from_code(error->code);
    vxc__text_of(error->message, text, sizeof text);
    vxc__text_of(error->field, field, sizeof field);
    return vx_fail(detail, err == VX_OK ? VX_E_INTERNAL : err, field, "%s",
                   text[0] ? text : vx_err_text(err));
}

void vxc__exchange_fini(struct vxc__exchange *x)
{
    if (x->answer)
        vxw_header_free(x->answer);
    free(x->down);
    x->answer = NULL;
    x->down = NULL;
}

/* ------------------------------------------------------------------ what arrives */

static void finish(struct vxc__exchange *x, vx_err err)
{
    x->err = err;
    x->done = true;
}

static void grant(struct vxc__exchange *x, uint32_t parts)
{
    Voxeld__V1__Credit credit = VOXELD__V1__CREDIT__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    credit.parts = parts;
    header.req_id = x->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_CREDIT;
    header.credit = &credit;
    const vx_err err = vxc__endpoint_send(x->endpoint, &header, NULL, 0, &x->why);
    if (err != VX_OK)
        finish(x, err);
}

static void tell(const struct vxc__exchange *x, enum vxc_stage stage, uint64_t done, uint64_t total)
{
    if (x->flow && x->flow->progress)
        x->flow->progress(x->flow->context, stage, done, total);
}

/* The next n bytes of the answer's body: into memory, or on to whom they are for. */
static bool keep(struct vxc__exchange *x, const struct vxc__message *message, size_t n)
{
    if (n == 0)
        return true;
    const void *bytes = zmq_msg_data((zmq_msg_t *)&message->payload);
    if (x->flow && x->flow->take) {
        const vx_err err = x->flow->take(x->flow->context, bytes, n, &x->why);
        if (err != VX_OK) {
            x->refused = true;
            finish(x, err);
            return false;
        }
    } else {
        memcpy(x->down + x->down_got, bytes, n);
    }
    x->down_got += n;
    tell(x, VXC_STAGE_SENDING, x->down_got, x->down_bytes);
    return true;
}

/* The answer's header: its body is in the message, or follows in parts. */
static void take_answer(struct vxc__exchange *x, struct vxc__message *message)
{
    x->answer = message->header;
    message->header = NULL;
    const size_t n = message->has_payload ? zmq_msg_size(&message->payload) : 0;
    x->down_bytes = x->answer->body_bytes > 0 ? x->answer->body_bytes : n;
    const bool passes = x->flow && x->flow->take;
    if (x->down_bytes > 0 && !passes && !(x->down = malloc(x->down_bytes))) {
        finish(x, vx_fail(&x->why, VX_E_NOMEM, "", "no memory for an answer of %zu bytes", x->down_bytes));
        return;
    }
    if (x->answer->body_bytes > 0) {
        grant(x, DOWNLOAD_PARTS);
        return;
    }
    if (keep(x, message, n))
        x->done = true;
}

static void take_part(struct vxc__exchange *x, const struct vxc__message *message)
{
    const Voxeld__V1__Part *part = message->header->part;
    const size_t n = message->has_payload ? zmq_msg_size((zmq_msg_t *)&message->payload) : 0;
    const bool fits = n <= x->down_bytes - x->down_got;
    if (!x->answer || part->index != x->down_index || !fits ||
        part->last != (x->down_got + n == x->down_bytes)) {
        finish(x,
               vx_fail(&x->why, VX_E_INTERNAL, "part", "part %u of the answer is out of place", part->index));
        return;
    }
    if (!keep(x, message, n))
        return;
    x->down_index++;
    if (part->last)
        x->done = true;
    else if (x->down_index % (DOWNLOAD_PARTS / 2) == 0)
        grant(x, DOWNLOAD_PARTS / 2);
}

static void take(struct vxc__exchange *x, struct vxc__message *message, Voxeld__V1__Header__BodyCase expected)
{
    x->progress++;
    switch (message->header->body_case) {
    case VOXELD__V1__HEADER__BODY_ERROR:
        finish(x, vxc__error_of(message->header->error, &x->why));
        return;
    case VOXELD__V1__HEADER__BODY_CREDIT:
        x->up_credit += message->header->credit->parts;
        return;
    case VOXELD__V1__HEADER__BODY_PART:
        take_part(x, message);
        return;
    case VOXELD__V1__HEADER__BODY_PROGRESS:
        tell(x, VXC_STAGE_RUNNING, message->header->progress->done, message->header->progress->total);
        return;
    default:
        break;
    }
    if (message->header->body_case != expected || x->answer)
        finish(x, vx_fail(&x->why, VX_E_INTERNAL, "", "the daemon answered with %s",
                          vxw_type_name((unsigned)message->header->body_case)));
    else
        take_answer(x, message);
}

static void answer_ping(struct vxc__endpoint *endpoint, const vxw_header *ping)
{
    Voxeld__V1__Pong pong = VOXELD__V1__PONG__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    pong.data = ping->ping->data;
    header.req_id = ping->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_PONG;
    header.pong = &pong;
    (void)vxc__endpoint_send(endpoint, &header, NULL, 0,
                             NULL); /* a courtesy: the daemon only wants to send */
}

vx_err vxc__dispatch(struct vxc_client *client, struct vx_detail *detail)
{
    for (int i = 0; i < VXC__N_PLACES; i++) {
        struct vxc__endpoint *endpoint = &client->endpoint[i];
        while (endpoint->socket) {
            struct vxc__message message;
            struct vxc__exchange *x = client->exchange;
            bool got;
            VX_TRY_RET(vxc__endpoint_receive(endpoint, &message, &got, detail));
            if (!got)
                break;
            const vxw_header *header = message.header;
            if (header && x && x->endpoint == endpoint && !x->done && header->req_id == x->req_id)
                take(x, &message, x->expected);
            else if (header && header->body_case == VOXELD__V1__HEADER__BODY_PING)
                answer_ping(endpoint, header);
            else if (header && i == VXC__INGEST)
                (void)vxc__stream_take(client, header); /* what nobody waits for any more is dropped */
            vxc__message_fini(&message);
        }
    }
    return VX_OK;
}

/* ------------------------------------------------------------------ one request */

static void cancel(struct vxc__exchange *x)
{
    Voxeld__V1__Cancel body = VOXELD__V1__CANCEL__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    body.req_id = x->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_CANCEL;
    header.req_id = x->endpoint->client->next_req_id++;
    header.cancel = &body;
    (void)vxc__endpoint_send(x->endpoint, &header, NULL, 0,
                             NULL); /* the answer is not waited for either way */
}

/* Bytes of the request's body from up_sent on, from memory or from whom they come; *buffer: the caller's to
 * free. */
static vx_err next_bytes(struct vxc__exchange *x, size_t n, const uint8_t **out, uint8_t **buffer,
                         struct vx_detail *detail)
{
    if (!x->flow || !x->flow->give) {
        *out = x->up + x->up_sent;
        return VX_OK;
    }
    if (!*buffer && !(*buffer = malloc(x->endpoint->client->limits.part_bytes)))
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a part");
    *out = *buffer;
    return x->flow->give(x->flow->context, x->up_sent, *buffer, n, detail);
}

/* Sends as many parts of the request's body as there is credit for. */
static vx_err send_parts(struct vxc__exchange *x, struct vx_detail *detail)
{
    const size_t most = x->endpoint->client->limits.part_bytes;
    uint8_t *buffer = NULL;
    vx_err err = VX_OK;
    for (; x->up_credit > 0 && x->up_sent < x->up_bytes; x->up_credit--) {
        const uint8_t *bytes = NULL;
        Voxeld__V1__Part part = VOXELD__V1__PART__INIT;
        vxw_header header = VOXELD__V1__HEADER__INIT;
        const uint64_t left = x->up_bytes - x->up_sent;
        const size_t n = left < most ? (size_t)left : most;
        VX_TRY(next_bytes(x, n, &bytes, &buffer, detail));
        part.index = x->up_index++;
        part.last = n == left;
        header.req_id = x->req_id;
        header.body_case = VOXELD__V1__HEADER__BODY_PART;
        header.part = &part;
        VX_TRY(vxc__endpoint_send(x->endpoint, &header, bytes, n, detail));
        x->up_sent += n;
        tell(x, VXC_STAGE_SENDING, x->up_sent, x->up_bytes);
    }
fail:
    free(buffer);
    return err;
}

/* Looks for the answer without sleeping, for as long as the caller allowed since the request was sent. */
static bool spin(const struct vxc__exchange *x, uint64_t sent_us)
{
    const uint32_t most_us = x->endpoint->client->spin_us;
    if (!most_us || x->endpoint->place != VXC__QUERY)
        return false;
    while (vxc__now_us() - sent_us < most_us)
        if (vxc__endpoint_readable(x->endpoint))
            return true;
    return false;
}

/* Until the answer is whole, or something ends the wait. */
static vx_err await(struct vxc__exchange *x, uint32_t timeout_ms, struct vx_detail *detail)
{
    struct vxc_client *client = x->endpoint->client;
    const uint32_t n_lost = x->endpoint->n_lost;
    uint64_t seen = x->progress, since = vxc__now_ms();
    const uint64_t sent_us = vxc__now_us();
    for (;;) {
        VX_TRY_RET(vxc__dispatch(client, detail));
        if (x->done && x->refused)
            cancel(x); /* the rest of the answer is not wanted */
        if (x->done)
            return x->err != VX_OK ? vx_fail(detail, x->err, x->why.field, "%s", x->why.text) : VX_OK;
        if (x->endpoint->n_lost != n_lost)
            return vx_fail(detail, VX_E_UNAVAILABLE, "connection", "the daemon went away before it answered");
        if (vxc__take_interrupt(client)) {
            cancel(x);
            return vx_fail(detail, VX_E_CANCELLED, "", "interrupted");
        }
        const vx_err err = send_parts(x, detail);
        if (err != VX_OK) {
            cancel(x);
            return err;
        }
        const uint64_t now = vxc__now_ms();
        if (x->progress != seen) {
            seen = x->progress;
            since = now;
        }
        if (now - since >= timeout_ms) {
            cancel(x);
            return vx_fail(detail, VX_E_DEADLINE, "", "the daemon did not answer within %u ms", timeout_ms);
        }
        if (!spin(x, sent_us))
            vxc__wait(client, SLICE_MS);
    }
}

vx_err vxc__exchange_run(struct vxc__exchange *x, vxw_header *header, uint32_t timeout_ms,
                         Voxeld__V1__Header__BodyCase expected, struct vx_detail *detail)
{
    struct vxc_client *client = x->endpoint->client;
    x->req_id = client->next_req_id++;
    x->expected = expected;
    header->req_id = x->req_id;
    const bool in_parts = x->up_bytes > (x->flow ? 0 : client->limits.part_bytes);
    header->body_bytes = in_parts ? x->up_bytes : 0;
    client->exchange = x;
    vx_err err;
    if (in_parts || x->up_bytes == 0) {
        err = vxc__endpoint_send(x->endpoint, header, NULL, 0, detail);
    } else {
        err = vxc__endpoint_send(x->endpoint, header, x->up, x->up_bytes, detail);
        x->up_sent = x->up_bytes;
    }
    if (err == VX_OK)
        err = await(x, timeout_ms, detail);
    client->exchange = NULL;
    return err;
}

/* flow NULL: body [n] is in memory. */
static vx_err call(struct vxc_client *client, enum vxc__place place, vxw_header *header, const void *body,
                   uint64_t n, const struct vxc__flow *flow, Voxeld__V1__Header__BodyCase expected,
                   struct vxc__exchange *x, struct vx_detail *detail)
{
    vx_err err = VX_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct vxc__endpoint *endpoint;
        struct vx_detail why = {"", ""};
        *x = (struct vxc__exchange){.up = body, .up_bytes = n, .flow = flow};
        VX_TRY_RET(vxc__endpoint_greet(client, place, &endpoint, detail));
        x->endpoint = endpoint;
        err = vxc__exchange_run(x, header, client->timeout_ms, expected, &why);
        if (err != VX_OK)
            vx_fail(detail, err, why.field, "%s", why.text);
        if (err != VX_E_UNAUTHENTICATED)
            return err;
        /* The daemon has restarted and does not know the session, and has done nothing: say HELLO and ask
         * again. */
        endpoint->greeted = false;
        if (place == VXC__INGEST)
            vxc__streams_lost(client);
        vxc__exchange_fini(x);
    }
    return err;
}

vx_err vxc__call(struct vxc_client *client, enum vxc__place place, vxw_header *header, const void *body,
                 size_t n, Voxeld__V1__Header__BodyCase expected, struct vxc__exchange *x,
                 struct vx_detail *detail)
{
    return call(client, place, header, body, n, NULL, expected, x, detail);
}

vx_err vxc__call_flow(struct vxc_client *client, enum vxc__place place, vxw_header *header, uint64_t n,
                      const struct vxc__flow *flow, Voxeld__V1__Header__BodyCase expected,
                      struct vxc__exchange *x, struct vx_detail *detail)
{
    return call(client, place, header, NULL, n, flow, expected, x, detail);
}
