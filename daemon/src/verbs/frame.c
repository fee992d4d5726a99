#include "log.h"
#include "stream.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ from the wire to a plain struct */

static vx_err take_poses(const Voxeld__V1__Frame *wire, struct vx_frame *out, struct vx_detail *detail)
{
    if (wire->n_poses < 1 || wire->n_poses > VX_MAX_POSES)
        return vx_fail(detail, VX_E_INVALID, "poses", "a frame has 1 to %d poses, got %zu", VX_MAX_POSES,
                       wire->n_poses);
    out->n_poses = (uint32_t)wire->n_poses;
    for (uint32_t i = 0; i < out->n_poses; ++i) {
        const Voxeld__V1__Pose *p = wire->poses[i];
        out->pose[i] = (struct vx_pose){.offset_ns = p->offset_ns,
                                        .position_m = {p->x_m, p->y_m, p->z_m},
                                        .rotation_xyzw = {p->qx, p->qy, p->qz, p->qw}};
    }
    return VX_OK;
}

static vx_err take_pinhole(const Voxeld__V1__Pinhole *wire, struct vx_frame *out, struct vx_detail *detail)
{
    if (wire->reading != VOXELD__V1__READING__READING_F32 &&
        wire->reading != VOXELD__V1__READING__READING_U16)
        return vx_fail(detail, VX_E_INVALID, "pinhole.reading", "%d is no kind of reading",
                       (int)wire->reading);
    out->width = wire->width;
    out->height = wire->height;
    out->fx = wire->fx_px;
    out->fy = wire->fy_px;
    out->cx = wire->cx_px;
    out->cy = wire->cy_px;
    out->encoding = wire->reading == VOXELD__V1__READING__READING_U16 ? VX_U16 : VX_F32;
    out->units_per_m = wire->units_per_m;
    if (wire->n_distortion > 5)
        return vx_fail(detail, VX_E_INVALID, "distortion", "5 coefficients are known, got %zu",
                       wire->n_distortion);
    for (size_t i = 0; i < wire->n_distortion; ++i)
        out->distortion[i] = wire->distortion[i];
    out->edge_jump = wire->edge_jump;
    return VX_OK;
}

static vx_err take_range(const Voxeld__V1__RangeImage *wire, struct vx_frame *out, struct vx_detail *detail)
{
    if (wire->n_elevation_rad != wire->rows)
        return vx_fail(detail, VX_E_INVALID, "range.elevation_rad", "%zu elevations for %u rows",
                       wire->n_elevation_rad, wire->rows);
    out->width = wire->columns;
    out->height = wire->rows;
    out->first_azimuth_rad = wire->first_azimuth_rad;
    out->azimuth_step_rad = wire->azimuth_step_rad;
    out->elevation_rad = wire->elevation_rad; /* copied when the frame is accepted */
    return VX_OK;
}

static vx_err take_model(const struct vxd_stream *stream, const Voxeld__V1__Frame *wire, struct vx_frame *out,
                         struct vx_detail *detail)
{
    static const int wanted[] = {[VX_DEPTH] = VOXELD__V1__FRAME__MODEL_PINHOLE,
                                 [VX_POINTS] = VOXELD__V1__FRAME__MODEL_POINTS,
                                 [VX_RANGE] = VOXELD__V1__FRAME__MODEL_RANGE};
    if ((int)wire->model_case != wanted[stream->sensor])
        return vx_fail(detail, VX_E_INVALID, "model", "is not that of the stream's sensor");
    out->sensor = stream->sensor;
    if (stream->sensor == VX_DEPTH)
        return take_pinhole(wire->pinhole, out, detail);
    if (stream->sensor == VX_RANGE)
        return take_range(wire->range, out, detail);
    out->width = wire->points->n;
    out->height = 1;
    return VX_OK;
}

static vx_err take_frame(const struct vxd_stream *stream, const struct vxd_in *in, struct vx_frame *out,
                         struct vx_detail *detail)
{
    const Voxeld__V1__Frame *wire = in->header->frame;
    VX_TRY_RET(take_poses(wire, out, detail));
    VX_TRY_RET(take_model(stream, wire, out, detail));
    out->stamp_ns = wire->stamp_ns;
    out->min_range_m = stream->min_range_m;
    out->max_range_m = stream->max_range_m;
    out->no_return_value = stream->no_return_value;
    out->invalid_zero = stream->invalid_zero;
    out->no_carving = stream->no_carving;
    return VX_OK;
}

/* What a channel must hold: number of items and bytes of each; 0 items: the sensor has no such channel. */
static void channel_size(const struct vx_frame *frame, Voxeld__V1__Channel channel, uint64_t *n, size_t *item)
{
    uint64_t readings = (uint64_t)frame->width * frame->height;
    bool points = frame->sensor == VX_POINTS, range = frame->sensor == VX_RANGE;
    *n = *item = 0;
    switch ((int)channel) {
    case VOXELD__V1__CHANNEL__CHANNEL_TIME:
        *n = points || range ? frame->width : 0;
        *item = sizeof(int32_t);
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_RING:
        *n = points ? readings : 0;
        *item = sizeof(uint16_t);
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_MASK:
        *n = frame->sensor == VX_DEPTH ? readings : 0;
        *item = 1;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_WEIGHT:
        *n = frame->sensor == VX_DEPTH ? readings : 0;
        *item = sizeof(float);
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_COLOUR:
        *n = readings;
        *item = 3;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_LABEL:
        *n = readings;
        *item = 1;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_INTENSITY:
        *n = points || range ? readings : 0;
        *item = sizeof(float);
        return;
    default:
        return;
    }
}

static vx_err check_channels(const struct vxd_in *in, const struct vx_frame *frame, struct vx_detail *detail)
{
    const Voxeld__V1__Frame *wire = in->header->frame;
    uint32_t seen = 0;
    if (in->n_payloads != 1 + wire->n_channels)
        return vx_fail(detail, VX_E_INVALID, "payloads", "a frame with %zu channels has %zu payloads, got %u",
                       wire->n_channels, wire->n_channels + 1, in->n_payloads);
    for (size_t i = 0; i < wire->n_channels; ++i) {
        Voxeld__V1__Channel channel = wire->channels[i];
        size_t item, got = zmq_msg_size(&in->payload[1 + i]);
        uint64_t n;
        channel_size(frame, channel, &n, &item);
        if (!item || (!n && frame->width && frame->height))
            return vx_fail(detail, VX_E_INVALID, "channels", "the stream's sensor has no channel %d",
                           (int)channel);
        if (seen >> channel & 1)
            return vx_fail(detail, VX_E_INVALID, "channels", "channel %d comes twice", (int)channel);
        seen |= 1u << channel;
        if (got != n * item)
            return vx_fail(detail, VX_E_INVALID, "channels", "channel %d needs %llu bytes, got %zu",
                           (int)channel, (unsigned long long)(n * item), got);
    }
    return VX_OK;
}

/* ------------------------------------------------------------------ acceptance */

static uint64_t payload_bytes(const struct vxd_in *in)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < in->n_payloads; ++i)
        n += zmq_msg_size(&in->payload[i]);
    return n;
}

static vx_err check_order(const struct vxd_stream *stream, const Voxeld__V1__Frame *wire,
                          struct vx_detail *detail)
{
    if (wire->seq <= stream->last_seq)
        return vx_fail(detail, VX_E_ORDER, "seq", "%llu was accepted already, got %llu",
                       (unsigned long long)stream->last_seq, (unsigned long long)wire->seq);
    if (stream->last_seq && wire->stamp_ns < stream->last_stamp_ns && !wire->reset)
        return vx_fail(detail, VX_E_ORDER, "stamp_ns",
                       "runs backwards by %llu ns; set reset if that is meant",
                       (unsigned long long)stream->last_stamp_ns - (unsigned long long)wire->stamp_ns);
    return VX_OK;
}

/* What needs no look at the readings. */
static vx_err check(const struct vxd_stream *stream, struct vxd_in *in, struct vx_frame *frame,
                    struct vx_detail *detail)
{
    const struct vxd_server *server = stream->map->server;
    if (server->stopping)
        return vx_fail(detail, VX_E_UNAVAILABLE, "", "the daemon is shutting down");
    if (in->n_payloads < 1)
        return vx_fail(detail, VX_E_INVALID, "payloads", "a frame has one payload, and one for each channel");
    if (stream->map->state != VXD_MAP_LIVE)
        return vx_fail(detail, VX_E_NOT_FOUND, "stream", "its map is being deleted");
    VX_TRY_RET(check_order(stream, in->header->frame, detail));
    VX_TRY_RET(take_frame(stream, in, frame, detail));
    VX_TRY_RET(check_channels(in, frame, detail));
    if (server->staging_bytes + payload_bytes(in) > server->config.limits.staging_bytes)
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.staging_bytes", "%llu bytes of frames wait already",
                       (unsigned long long)server->staging_bytes);
    return VX_OK;
}

/* A channel's bytes to where the frame has them. */
static void place_channel(const struct vxd_stream *stream, Voxeld__V1__Channel channel,
                          const unsigned char *data, struct vx_frame *frame)
{
    switch ((int)channel) {
    case VOXELD__V1__CHANNEL__CHANNEL_TIME:
        frame->time_ns = (const int32_t *)(const void *)data;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_MASK:
        frame->mask = data;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_WEIGHT:
        frame->weight = (const float *)(const void *)data;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_COLOUR:
        frame->colour = data;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_LABEL:
        frame->label = data;
        return;
    case VOXELD__V1__CHANNEL__CHANNEL_INTENSITY:
        frame->intensity = stream->intensity_white > 0 ? (const float *)(const void *)data : NULL;
        frame->intensity_white = stream->intensity_white;
        return;
    default:
        return;
    }
}

/* Copies what the frame points at: payloads and elevations. */
static vx_err own_data(struct vxd_frame *f, struct vx_detail *detail)
{
    struct vx_frame *frame = &f->frame;
    size_t at = 0;
    for (uint32_t i = 0; i < f->n_payloads; ++i)
        at += (zmq_msg_size(&f->payload[i]) + 7) / 8 * 8;
    if (vx_device_alloc_host(f->device, at ? at : 1, &f->data) != VX_OK)
        return vx_fail(detail, VX_E_NOMEM, "payloads[0]", "no memory for the frame");
    at = 0;
    for (uint32_t i = 0; i < f->n_payloads; ++i) {
        size_t n = zmq_msg_size(&f->payload[i]);
        unsigned char *to = (unsigned char *)f->data + at;
        memcpy(to, zmq_msg_data(&f->payload[i]), n);
        if (i == 0) {
            frame->data = to;
            frame->data_bytes = n;
        } else {
            place_channel(f->stream, f->header->frame->channels[i - 1], to, frame);
        }
        at += (n + 7) / 8 * 8;
    }
    if (frame->sensor != VX_RANGE)
        return VX_OK;
    f->elevation_rad = malloc(frame->height * sizeof *f->elevation_rad);
    if (!f->elevation_rad)
        return vx_fail(detail, VX_E_NOMEM, "range.elevation_rad", "no memory for the frame");
    memcpy(f->elevation_rad, frame->elevation_rad, frame->height * sizeof *f->elevation_rad);
    frame->elevation_rad = f->elevation_rad;
    return VX_OK;
}

/* On the stage's thread: what goes through every byte of it.  Of its stream it reads what stays while it has
 * frames here: nobody opens it (vxd_stream_is_unsettled). */
static vx_err stage(struct vxd_frame *f)
{
    for (uint32_t i = 0; i < f->n_payloads; ++i)
        VX_TRY_RET(vxw_payload_check(f->header, i, zmq_msg_data(&f->payload[i]), zmq_msg_size(&f->payload[i]),
                                     &f->detail));
    VX_TRY_RET(own_data(f, &f->detail));
    return vx_frame_check(&f->frame, &f->detail);
}

static void stage_run(struct vxd_job *job)
{
    struct vxd_frame *f = (struct vxd_frame *)job;
    f->err = stage(f);
    while (f->n_payloads)
        zmq_msg_close(&f->payload[--f->n_payloads]);
}

static void stage_done(struct vxd_job *job)
{
    struct vxd_frame *f = (struct vxd_frame *)job;
    vxd_server_job_done(f->stream->map->server);
    --f->stream->n_staging;
    if (f->err == VX_OK)
        f->err = check_order(f->stream, f->header->frame, &f->detail); /* others were accepted meanwhile */
    vxw_header_free(f->header);
    f->header = NULL;
    if (f->err == VX_OK)
        vxd_frame_submit(f);
    else
        vxd_frame_refuse(f, f->err, &f->detail);
}

/* Takes the message over, header and payloads, and sends it to the stage. */
static vx_err accept_frame(struct vxd_session *session, struct vxd_stream *stream, struct vxd_in *in,
                           struct vx_detail *detail)
{
    struct vxd_server *server = stream->map->server;
    struct vxd_frame *f = calloc(1, sizeof *f);
    if (!f)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for the frame");
    vx_err err = check(stream, in, &f->frame, detail);
    if (err != VX_OK) {
        free(f);
        return err;
    }
    f->device = server->device;
    f->stream = stream;
    f->serial = session->serial;
    f->req_id = in->header->req_id;
    f->seq = in->header->frame->seq;
    f->arrived_ns = in->arrived_ns;
    f->deadline_ns = vxd_in_deadline_ns(in);
    f->n_bytes = payload_bytes(in);
    f->header = in->header;
    in->header = NULL;
    for (; f->n_payloads < in->n_payloads; ++f->n_payloads) {
        zmq_msg_init(&f->payload[f->n_payloads]);
        zmq_msg_move(&f->payload[f->n_payloads], &in->payload[f->n_payloads]);
    }
    vxd_frame_hold(f);
    f->job.run = stage_run;
    f->job.done = stage_done;
    vxd_server_push(server, &server->stage, &f->job);
    return VX_OK;
}

/* A frame without credit is not looked at; the second one ends the session. */
static void overrun(struct vxd_session *session, struct vxd_stream *stream, const struct vxd_in *in)
{
    struct vx_detail detail;
    vx_err err = vx_fail(&detail, VX_E_EXHAUSTED, "stream", "no credit: %u frames and %llu bytes are left",
                         stream->credit_frames, (unsigned long long)stream->credit_bytes);
    vxd_stream_nack(session, stream, in->header->req_id, stream->id, in->header->frame->seq, err, &detail);
    if (++session->n_overruns > 1)
        vxd_session_doom(session, VX_E_EXHAUSTED, "sends frames without credit");
}

void vxd_verb_frame(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__Frame *wire = in->header->frame;
    struct vxd_stream *stream = vxd_stream_find(session, wire->stream);
    struct vx_detail detail = {{0}, {0}};
    if (!stream) {
        vx_err err = server->stopping /* its map is perhaps gone already, but nobody deleted it */
                         ? vx_fail(&detail, VX_E_UNAVAILABLE, "", "the daemon is shutting down")
                         : vx_fail(&detail, VX_E_NOT_FOUND, "stream", "this session has no stream %llu",
                                   (unsigned long long)wire->stream);
        vxd_stream_nack(session, NULL, in->header->req_id, wire->stream, wire->seq, err, &detail);
        return;
    }
    uint64_t n = payload_bytes(in);
    ++stream->n_received;
    if (!stream->credit_frames || stream->credit_bytes < n) {
        overrun(session, stream, in);
        return;
    }
    --stream->credit_frames;
    stream->credit_bytes -= n;
    vx_err err = accept_frame(session, stream, in, &detail);
    if (err != VX_OK) { /* the message is still here */
        ++stream->map->n_refused;
        vxd_stream_nack(session, stream, in->header->req_id, stream->id, wire->seq, err, &detail);
        vxd_stream_credit(stream, n);
    }
}
