#include "stream.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

struct vxd_stream *vxd_stream_find(struct vxd_session *session, uint64_t id)
{
    for (uint32_t i = 0; i < session->n_streams; ++i)
        if (session->streams[i]->id == id)
            return session->streams[i];
    return NULL;
}

/* The stream of that number, else a new one, else in the place of the first that no session has. */
static vx_err get(struct vxd_map *map, uint64_t id, struct vxd_stream **out, struct vx_detail *detail)
{
    struct vxd_stream *idle = NULL, *s;
    for (s = map->streams; s; s = s->next) {
        if (s->id == id) {
            *out = s;
            return VX_OK;
        }
        if (!s->session && !s->n_inflight)
            idle = s; /* the last in the list is the oldest */
    }
    if (map->n_streams < map->server->config.limits.streams_per_map) {
        s = calloc(1, sizeof *s);
        if (!s)
            return vx_fail(detail, VX_E_NOMEM, "stream", "no memory for a stream");
        ++map->n_streams;
    } else if (idle) {
        struct vxd_stream **at = &map->streams;
        while (*at != idle)
            at = &(*at)->next;
        *at = idle->next;
        s = idle;
    } else {
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.streams_per_map", "the map has %u open streams",
                       map->n_streams);
    }
    *s = (struct vxd_stream){.next = map->streams, .map = map, .id = id};
    map->streams = s;
    *out = s;
    return VX_OK;
}

bool vxd_stream_is_unsettled(const struct vxd_map *map, uint64_t id)
{
    const struct vxd_stream *s = map->streams;
    while (s && s->id != id)
        s = s->next;
    return s && !s->session && s->n_staging;
}

vx_err vxd_stream_open(struct vxd_session *session, struct vxd_map *map, uint64_t id, struct vxd_stream **out,
                       struct vx_detail *detail)
{
    const struct vxd_limits *limits = &session->server->config.limits;
    if (vxd_stream_find(session, id))
        return vx_fail(detail, VX_E_EXISTS, "stream", "this session has a stream %llu",
                       (unsigned long long)id);
    if (session->n_streams >= limits->streams_per_session)
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.streams_per_session", "this session has %u streams",
                       session->n_streams);
    struct vxd_stream *s = NULL;
    VX_TRY_RET(get(map, id, &s, detail));
    if (s->session)
        return vx_fail(detail, VX_E_EXISTS, "stream", "another session has stream %llu of this map",
                       (unsigned long long)id);
    s->session = session;
    s->credit_frames =
        (uint32_t)(limits->credit_frames > s->n_inflight ? limits->credit_frames - s->n_inflight : 0);
    s->credit_bytes = limits->credit_bytes > s->inflight_bytes ? limits->credit_bytes - s->inflight_bytes : 0;
    session->streams[session->n_streams++] = s;
    *out = s;
    return VX_OK;
}

static void leave(struct vxd_stream *stream)
{
    struct vxd_session *session = stream->session;
    for (uint32_t i = 0; i < session->n_streams; ++i)
        if (session->streams[i] == stream)
            session->streams[i] = session->streams[--session->n_streams];
    stream->session = NULL;
}

void vxd_streams_leave(struct vxd_session *session)
{
    while (session->n_streams)
        leave(session->streams[0]);
}

void vxd_streams_free(struct vxd_map *map)
{
    while (map->streams) {
        struct vxd_stream *s = map->streams;
        map->streams = s->next;
        if (s->session)
            leave(s);
        free(s);
    }
    map->n_streams = 0;
}

/* ------------------------------------------------------------------ answers */

void vxd_stream_credit(struct vxd_stream *stream, uint64_t n_bytes)
{
    if (!stream->session)
        return;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Credit credit = VOXELD__V1__CREDIT__INIT;
    credit.stream = stream->id;
    credit.frames = 1;
    credit.bytes = n_bytes;
    header.body_case = VOXELD__V1__HEADER__BODY_CREDIT;
    header.credit = &credit;
    ++stream->credit_frames;
    stream->credit_bytes += n_bytes;
    vxd_send(stream->session, &header, NULL, 0, 0);
}

void vxd_stream_nack(struct vxd_session *session, struct vxd_stream *stream, uint64_t req_id, uint64_t id,
                     uint64_t seq, vx_err err, const struct vx_detail *detail)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Nack nack = VOXELD__V1__NACK__INIT;
    Voxeld__V1__Error error;
    if (stream)
        ++stream->n_refused[vxw_code_from_err(err)];
    vxd_log(VXD_LOG_DEBUG, "frame_refused", "stream=%llu seq=%llu code=%s field=%s", (unsigned long long)id,
            (unsigned long long)seq, vx_err_name(err), detail->field);
    if (!session)
        return;
    vxd_error_fill(session->server, err, detail, &error);
    nack.stream = id;
    nack.seq = seq;
    nack.error = &error;
    nack.last_seq = stream ? stream->last_seq : 0;
    header.req_id = req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_NACK;
    header.nack = &nack;
    vxd_send(session, &header, NULL, 0, 0);
}

void vxd_counts_fill(const struct vx_frame_counts *c, Voxeld__V1__Counts *out)
{
    voxeld__v1__counts__init(out);
    out->used = c->used;
    out->no_return = c->no_return;
    out->zero = c->zero;
    out->negative = c->negative;
    out->nan = c->nan;
    out->saturated = c->saturated;
    out->too_near = c->too_near;
    out->outside = c->outside;
}

static void ack(struct vxd_session *session, const struct vxd_frame *frame, Voxeld__V1__AckLevel level,
                bool superseded)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ack body = VOXELD__V1__ACK__INIT;
    Voxeld__V1__MapState map;
    Voxeld__V1__Counts counts;
    Voxeld__V1__Warning warnings[3];
    struct vx_reply reply = frame->stream->map->newest;
    bool integrated = level == VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED && !superseded;
    if (integrated)
        reply.epoch = frame->result.epoch;
    vxd_map_state_fill(frame->stream->map, &reply, &map);
    vxd_counts_fill(&frame->result.counts, &counts);
    body.stream = frame->stream->id;
    body.seq = frame->seq;
    body.level = level;
    body.superseded = superseded;
    body.map = &map;
    body.counts = integrated ? &counts : NULL;
    body.warnings = warnings;
    if (integrated && frame->result.warnings & VX_WARN_ALL_BEYOND)
        warnings[body.n_warnings++] = VOXELD__V1__WARNING__WARNING_ALL_BEYOND;
    if (integrated && frame->result.warnings & VX_WARN_EMPTY)
        warnings[body.n_warnings++] = VOXELD__V1__WARNING__WARNING_EMPTY;
    if (integrated && frame->result.warnings & VX_WARN_UNUSED_CHANNEL)
        warnings[body.n_warnings++] = VOXELD__V1__WARNING__WARNING_UNUSED_CHANNEL;
    body.grown_bytes = integrated ? frame->result.grown_bytes : 0;
    header.req_id = frame->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_ACK;
    header.ack = &body;
    vxd_send(session, &header, NULL, 0, 0);
}

struct vxd_session *vxd_frame_owner(const struct vxd_frame *frame)
{
    struct vxd_session *session = frame->stream->session;
    return session && session->serial == frame->serial ? session : NULL;
}

/* ------------------------------------------------------------------ a frame's way */

void vxd_frame_free(struct vxd_frame *frame)
{
    vxw_header_free(frame->header);
    while (frame->n_payloads)
        zmq_msg_close(&frame->payload[--frame->n_payloads]);
    if (frame->data)
        vx_device_free_host(frame->device, frame->data);
    free(frame->elevation_rad);
    free(frame);
}

/* Gives its place back and frees it. */
static void finish(struct vxd_frame *frame)
{
    struct vxd_stream *stream = frame->stream;
    uint64_t n_bytes = frame->n_bytes;
    stream->map->server->staging_bytes -= n_bytes;
    --stream->map->n_waiting_frames;
    --stream->n_inflight;
    stream->inflight_bytes -= n_bytes;
    if (stream->waiting == frame)
        stream->waiting = NULL;
    vxd_frame_free(frame);
    vxd_stream_credit(stream, n_bytes);
}

static void add_counts(struct vx_frame_counts *sum, const struct vx_frame_counts *c)
{
    sum->used += c->used;
    sum->no_return += c->no_return;
    sum->zero += c->zero;
    sum->negative += c->negative;
    sum->nan += c->nan;
    sum->saturated += c->saturated;
    sum->too_near += c->too_near;
    sum->outside += c->outside;
}

static void run(struct vxd_job *job)
{
    struct vxd_frame *f = (struct vxd_frame *)job;
    f->begun_ns = vxd_now_ns();
    if (f->begun_ns > f->deadline_ns)
        f->err = vx_fail(&f->detail, VX_E_DEADLINE, "timeout_us", "passed before the frame was integrated");
    else
        f->err = vx_map_integrate(f->stream->map->core, &f->frame, &f->result, &f->detail);
    f->ended_ns = vxd_now_ns();
}

static void integrated(struct vxd_frame *frame)
{
    struct vxd_stream *stream = frame->stream;
    struct vxd_map *map = stream->map;
    int64_t stamp = frame->frame.stamp_ns;
    if (map->integrated_ns && map->newest.newest_stamp_ns > stamp)
        stamp = map->newest.newest_stamp_ns;
    vxd_map_committed(map, frame->result.epoch, stamp, true);
    ++stream->n_integrated;
    stream->n_warnings += frame->result.warnings != 0;
    add_counts(&stream->readings, &frame->result.counts);
    if (vxd_frame_owner(frame))
        ack(vxd_frame_owner(frame), frame, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, false);
    const uint64_t now = vxd_now_ns();
    vxd_latency_add(&map->latency[VOXELD__V1__WORK__WORK_FRAME], frame->arrived_ns, frame->begun_ns,
                    frame->ended_ns, now);
    vxd_latency_add(&map->server->latency[VOXELD__V1__WORK__WORK_FRAME], frame->arrived_ns, frame->begun_ns,
                    frame->ended_ns, now);
}

static void done(struct vxd_job *job)
{
    struct vxd_frame *f = (struct vxd_frame *)job;
    struct vxd_stream *stream = f->stream;
    vxd_server_job_done(stream->map->server);
    vxd_server_note(stream->map->server, f->err, &f->detail);
    if (f->err == VX_OK)
        integrated(f);
    else
        vxd_stream_nack(vxd_frame_owner(f), stream, f->req_id, stream->id, f->seq, f->err, &f->detail);
    finish(f);
}

static void supersede(struct vxd_stream *stream)
{
    struct vxd_frame *old = stream->waiting;
    struct vxd_map *map = stream->map;
    if (!old || !vxd_worker_remove(&map->lane[VXD_LANE_WRITE], &old->job))
        return;
    vxd_server_job_done(map->server);
    ++stream->n_superseded;
    if (vxd_frame_owner(old))
        ack(vxd_frame_owner(old), old, VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED, true);
    finish(old);
}

void vxd_frame_hold(struct vxd_frame *frame)
{
    struct vxd_stream *stream = frame->stream;
    stream->map->server->staging_bytes += frame->n_bytes;
    ++stream->map->n_waiting_frames;
    ++stream->map->n_requests;
    ++stream->n_staging;
    ++stream->n_inflight;
    stream->inflight_bytes += frame->n_bytes;
}

static void let_go_of_map(struct vxd_map *map)
{
    --map->n_requests;
    vxd_map_released(map);
}

void vxd_frame_refuse(struct vxd_frame *frame, vx_err err, const struct vx_detail *detail)
{
    struct vxd_stream *stream = frame->stream;
    struct vxd_map *map = stream->map;
    ++map->n_refused;
    vxd_stream_nack(vxd_frame_owner(frame), stream, frame->req_id, stream->id, frame->seq, err, detail);
    finish(frame);
    let_go_of_map(map);
}

void vxd_frame_submit(struct vxd_frame *frame)
{
    struct vxd_stream *stream = frame->stream;
    struct vxd_map *map = stream->map;
    if (stream->latest)
        supersede(stream);
    stream->last_seq = frame->seq;
    stream->last_stamp_ns = frame->frame.stamp_ns;
    stream->waiting = frame;
    if (stream->ack_received && vxd_frame_owner(frame))
        ack(vxd_frame_owner(frame), frame, VOXELD__V1__ACK_LEVEL__ACK_RECEIVED, false);
    frame->job.run = run;
    frame->job.done = done;
    vxd_server_push(map->server, &map->lane[VXD_LANE_WRITE], &frame->job);
    let_go_of_map(map); /* whoever deletes it comes behind the frame */
}
