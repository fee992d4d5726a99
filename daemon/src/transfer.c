/*
 * Bodies: inline when they fit into one part, else in parts under the receiver's credits (proto/README.md).
 * Files of exports and imports are not held in memory but in a spool, a few parts of which are under way.
 */
#include "log.h"
#include "spool.h"

#include <string.h>

/* ------------------------------------------------------------------ from the peer */

static void grant(struct vxd_request *request, uint32_t parts)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Credit credit = VOXELD__V1__CREDIT__INIT;
    credit.parts = parts;
    header.req_id = request->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_CREDIT;
    header.credit = &credit;
    request->credits += parts;
    vxd_send(request->session, &header, NULL, 0, 0);
}

static vx_err take_inline(struct vxd_request *request, struct vxd_in *in, uint64_t n_bytes)
{
    size_t n = zmq_msg_size(&in->payload[0]);
    if (n != n_bytes)
        return vx_fail(&request->detail, VX_E_INVALID, "payloads[0].n_bytes",
                       "the body must have %llu bytes, has %zu", (unsigned long long)n_bytes, n);
    VX_TRY_RET(vxw_payload_check(in->header, 0, zmq_msg_data(&in->payload[0]), n, &request->detail));
    request->body = vxd_buf_create(n);
    if (!request->body)
        return vx_fail(&request->detail, VX_E_NOMEM, "payloads[0]", "no memory for %zu bytes", n);
    memcpy(request->body->data, zmq_msg_data(&in->payload[0]), n);
    return VX_OK;
}

vx_err vxd_request_take_body(struct vxd_request *request, struct vxd_in *in, uint64_t n_bytes)
{
    if (in->n_payloads || !n_bytes) {
        if (!n_bytes && (in->n_payloads || in->header->body_bytes))
            return vx_fail(&request->detail, VX_E_INVALID, "n", "is 0, but there is a body");
        if (n_bytes)
            VX_TRY_RET(take_inline(request, in, n_bytes));
        vxd_request_submit(request);
        return VX_OK;
    }
    if (in->header->body_bytes != n_bytes)
        return vx_fail(&request->detail, VX_E_INVALID, "body_bytes",
                       "the body must have %llu bytes, is declared as %llu", (unsigned long long)n_bytes,
                       (unsigned long long)in->header->body_bytes);
    request->body = vxd_buf_create(n_bytes);
    if (!request->body)
        return vx_fail(&request->detail, VX_E_NOMEM, "body_bytes", "no memory for %llu bytes",
                       (unsigned long long)n_bytes);
    request->state = VXD_UPLOADING;
    grant(request, (uint32_t)request->server->config.limits.upload_parts);
    return VX_OK;
}

/* Leave for as many parts as the window allows and, at their full size, the rest of the file needs. */
static void grant_file(struct vxd_request *r)
{
    uint64_t window = r->server->config.limits.upload_parts, under_way = r->credits + r->n_spool;
    uint64_t missing =
        (vxd_spool_bytes(r->spool) - r->body_have + VXW_PART_MAX_BYTES - 1) / VXW_PART_MAX_BYTES;
    uint64_t n = window - under_way;
    if (missing < r->credits + n)
        n = missing > r->credits ? missing - r->credits : 0;
    if (n && under_way <= window / 2)
        grant(r, (uint32_t)n);
}

vx_err vxd_request_take_file(struct vxd_request *request, struct vxd_in *in, uint64_t n_bytes)
{
    struct vx_detail *detail = &request->detail;
    uint64_t window = request->server->config.limits.upload_parts;
    uint64_t declared = in->n_payloads ? zmq_msg_size(&in->payload[0]) : in->header->body_bytes;
    if (!n_bytes || declared != n_bytes)
        return vx_fail(detail, VX_E_INVALID, "file_bytes", "is %llu, the body has %llu bytes",
                       (unsigned long long)n_bytes, (unsigned long long)declared);
    if (in->n_payloads)
        VX_TRY_RET(vxw_payload_check(in->header, 0, zmq_msg_data(&in->payload[0]), n_bytes, detail));
    VX_TRY_RET(vxd_request_reserve(request, window * VXW_PART_MAX_BYTES));
    VX_TRY_RET(vxd_spool_create(request, n_bytes, &request->spool));
    request->state = VXD_UPLOADING;
    if (!in->n_payloads) {
        grant_file(request);
        return VX_OK;
    }
    VX_TRY_RET(vxd_spool_write(request->spool, 0, zmq_msg_data(&in->payload[0]), n_bytes));
    request->body_have = n_bytes;
    ++request->n_spool;
    return VX_OK;
}

static uint64_t upload_bytes(const struct vxd_request *r)
{
    return r->spool ? vxd_spool_bytes(r->spool) : r->body->n_bytes;
}

static vx_err keep_part(struct vxd_request *r, const void *bytes, size_t n)
{
    if (!r->spool) {
        memcpy(r->body->data + r->body_have, bytes, n);
        return VX_OK;
    }
    VX_TRY_RET(vxd_spool_write(r->spool, r->body_have, bytes, n));
    ++r->n_spool;
    return VX_OK;
}

static vx_err take_part(struct vxd_request *r, struct vxd_in *in)
{
    const Voxeld__V1__Part *part = in->header->part;
    if (!r->credits)
        return vx_fail(&r->detail, VX_E_EXHAUSTED, "part", "sent without credit");
    if (part->index != r->part_index)
        return vx_fail(&r->detail, VX_E_INVALID, "part.index", "must be %u, is %u", r->part_index,
                       part->index);
    if (in->n_payloads != 1)
        return vx_fail(&r->detail, VX_E_INVALID, "payloads", "a part has one payload");
    uint64_t n = zmq_msg_size(&in->payload[0]), left = upload_bytes(r) - r->body_have;
    if (!n || n > left || part->last != (n == left))
        return vx_fail(&r->detail, VX_E_INVALID, "part", "%llu bytes%s, %llu of the body are missing",
                       (unsigned long long)n, part->last ? " and the last" : "", (unsigned long long)left);
    VX_TRY_RET(vxw_payload_check(in->header, 0, zmq_msg_data(&in->payload[0]), n, &r->detail));
    VX_TRY_RET(keep_part(r, zmq_msg_data(&in->payload[0]), n));
    r->body_have += n;
    ++r->part_index;
    --r->credits;
    r->moved_ns = in->arrived_ns;
    return VX_OK;
}

void vxd_transfer_on_part(struct vxd_session *session, struct vxd_in *in)
{
    struct vxd_request *r = vxd_request_find(session, in->header->req_id);
    if (!r)
        return; /* of a transfer that was cancelled or has failed: its parts may still be on the way */
    if (r->state != VXD_UPLOADING) {
        struct vx_detail detail;
        vx_err err = vx_fail(&detail, VX_E_INVALID, "part", "the request has its body already");
        vxd_send_error(session, in->header->req_id, err, &detail);
        return;
    }
    vx_err err = take_part(r, in);
    uint32_t window = (uint32_t)session->server->config.limits.upload_parts;
    if (err != VX_OK)
        vxd_request_fail(r, err);
    else if (r->spool)
        return; /* on_written goes on */
    else if (r->body_have == r->body->n_bytes)
        vxd_request_submit(r);
    else if (r->credits <= window / 2)
        grant(r, window - r->credits);
}

/* A part is on disk: the next may come, or all are there. */
static void on_written(struct vxd_request *r, const struct vxd_buf *part)
{
    r->spool_done += part->n_bytes;
    r->moved_ns = vxd_now_ns();
    if (r->spool_done == vxd_spool_bytes(r->spool))
        vxd_request_submit_on(r, r->worker);
    else
        grant_file(r);
}

/* ------------------------------------------------------------------ to the peer */

void vxd_request_send(struct vxd_request *request, vxw_header *header)
{
    struct vxd_buf *answer = request->answer;
    header->req_id = request->req_id;
    vxd_request_leave_map(request);
    if (request->spool || (answer && answer->n_bytes > VXW_PART_MAX_BYTES)) {
        header->body_bytes = request->spool ? vxd_spool_bytes(request->spool) : answer->n_bytes;
        request->state = VXD_SENDING;
        request->part_index = 0;
        request->credits = 0;
        request->moved_ns = vxd_now_ns();
        vxd_buf_release(request->body);
        request->body = NULL;
        vxd_send(request->session, header, NULL, 0, 0);
        return;
    }
    bool has_body = answer && answer->n_bytes;
    vxd_send(request->session, header, has_body ? answer : NULL, 0, has_body ? answer->n_bytes : 0);
    vxd_request_free(request);
}

void vxd_transfer_on_credit(struct vxd_session *session, const struct vxd_in *in)
{
    struct vxd_request *r = vxd_request_find(session, in->header->req_id);
    if (!r || r->state != VXD_SENDING)
        return;
    uint32_t parts = in->header->credit->parts;
    r->credits = parts > UINT32_MAX - r->credits ? UINT32_MAX : r->credits + parts;
    r->moved_ns = in->arrived_ns;
    vxd_transfer_pump(session);
}

/* Reads the next part of a spool; on_read sends it. */
static void read_part(struct vxd_request *request)
{
    uint64_t left = vxd_spool_bytes(request->spool) - request->spool_done;
    size_t n = left < VXW_PART_MAX_BYTES ? (size_t)left : VXW_PART_MAX_BYTES;
    vx_err err = vxd_spool_read(request->spool, request->spool_done, n);
    if (err != VX_OK)
        vxd_request_fail(request, err);
    else
        ++request->n_spool;
}

static void on_read(struct vxd_request *request, struct vxd_buf *part)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Part body = VOXELD__V1__PART__INIT;
    request->spool_done += part->n_bytes;
    body.index = request->part_index++;
    body.last = request->spool_done == vxd_spool_bytes(request->spool);
    header.req_id = request->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_PART;
    header.part = &body;
    vxd_send(request->session, &header, part, 0, part->n_bytes);
    --request->credits;
    request->moved_ns = vxd_now_ns();
    if (body.last)
        vxd_request_free(request);
}

void vxd_spool_done(struct vxd_request *request, vx_err err, const struct vx_detail *detail,
                    struct vxd_buf *buf)
{
    --request->n_spool;
    if (err != VX_OK) {
        request->detail = *detail;
        vxd_request_fail(request, err);
    } else if (request->state == VXD_UPLOADING) {
        on_written(request, buf);
    } else {
        on_read(request, buf);
    }
}

static void send_part(struct vxd_request *request)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Part part = VOXELD__V1__PART__INIT;
    size_t left = request->answer->n_bytes - request->answer_sent;
    size_t n = left < VXW_PART_MAX_BYTES ? left : VXW_PART_MAX_BYTES;
    part.index = request->part_index++;
    part.last = n == left;
    header.req_id = request->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_PART;
    header.part = &part;
    vxd_send(request->session, &header, request->answer, request->answer_sent, n);
    request->answer_sent += n;
    --request->credits;
    request->moved_ns = vxd_now_ns();
}

bool vxd_transfer_pump(struct vxd_session *session)
{
    enum { PARTS_A_TURN = 4 }; /* so that one download doesn't hold the loop */
    int n = 0;
    struct vxd_request *next;
    for (struct vxd_request *r = session->requests; r && n < PARTS_A_TURN; r = next) {
        next = r->next;
        if (r->spool) { /* n does not count it: it waits for the disk */
            if (r->state == VXD_SENDING && r->credits && !r->n_spool && !session->queue_first &&
                !session->doomed)
                read_part(r);
            continue;
        }
        while (r->state == VXD_SENDING && r->credits && n < PARTS_A_TURN && !session->queue_first &&
               !session->doomed) {
            send_part(r);
            ++n;
            if (r->answer_sent == r->answer->n_bytes) {
                vxd_request_free(r);
                break;
            }
        }
    }
    return n > 0;
}

void vxd_transfer_expire(struct vxd_session *session, uint64_t now_ns)
{
    uint64_t idle_ns = session->server->config.limits.transfer_idle_s * 1000000000u;
    struct vxd_request *next;
    for (struct vxd_request *r = session->requests; r; r = next) {
        next = r->next;
        if (r->state == VXD_QUEUED || now_ns < r->moved_ns || now_ns - r->moved_ns < idle_ns)
            continue;
        vx_err err =
            vx_fail(&r->detail, VX_E_DEADLINE, "limits.transfer_idle_s", "the transfer did not move");
        vxd_request_fail(r, err);
    }
}
