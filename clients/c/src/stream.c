#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* A frame that was sent and has no final fate yet. */
struct waiting {
    uint64_t seq, req_id;
    void *user;
};

struct vxc_stream {
    struct vxc_client *client;
    struct vxc_stream *next; /* in the client's list */
    uint64_t id, next_seq;
    enum vxc_sensor sensor;
    uint64_t credit_frames, credit_bytes;
    struct waiting *waiting;
    size_t n_waiting, capacity;
    bool lost; /* with the daemon's connection */
    bool gone; /* with its map: the daemon gives no credit any more */
    vxc_ack_fn on_ack;
    void *context;
};

/* ------------------------------------------------------------------ what arrives */

void vxc__counts_of(const Voxeld__V1__Counts *in, struct vxc_counts *out)
{
    memset(out, 0, sizeof *out);
    if (!in)
        return;
    out->used = in->used;
    out->no_return = in->no_return;
    out->zero = in->zero;
    out->negative = in->negative;
    out->nan = in->nan;
    out->saturated = in->saturated;
    out->too_near = in->too_near;
    out->outside = in->outside;
}

static struct vxc_stream *stream_by_id(struct vxc_client *client, uint64_t id)
{
    for (struct vxc_stream *s = client->streams; s; s = s->next)
        if (s->id == id)
            return s;
    return NULL;
}

/* Takes the entry out of the list; false when there is none. */
static bool take_waiting(struct vxc_stream *s, size_t at, struct waiting *out)
{
    if (at >= s->n_waiting)
        return false;
    *out = s->waiting[at];
    memmove(s->waiting + at, s->waiting + at + 1, (--s->n_waiting - at) * sizeof *s->waiting);
    return true;
}

static size_t find_seq(const struct vxc_stream *s, uint64_t seq)
{
    size_t i = 0;
    while (i < s->n_waiting && s->waiting[i].seq != seq)
        i++;
    return i;
}

static void report(struct vxc_stream *s, struct vxc_ack *ack, const struct waiting *frame)
{
    ack->seq = frame->seq;
    ack->user = frame->user;
    if (s->on_ack)
        s->on_ack(s->context, ack);
}

static void refuse(struct vxc_stream *s, size_t at, vx_err err, const struct vx_detail *why)
{
    struct waiting frame;
    struct vxc_ack ack = {.fate = VXC_REFUSED, .err = err, .why = why};
    if (take_waiting(s, at, &frame))
        report(s, &ack, &frame);
}

static void take_ack(struct vxc_stream *s, const Voxeld__V1__Ack *in)
{
    struct vxc_ack ack = {.fate = VXC_RECEIVED, .grown_bytes = in->grown_bytes};
    struct waiting frame;
    const size_t at = find_seq(s, in->seq);
    if (at == s->n_waiting)
        return;
    frame = s->waiting[at];
    if (in->level != VOXELD__V1__ACK_LEVEL__ACK_RECEIVED || in->superseded) {
        ack.fate = in->superseded ? VXC_SUPERSEDED : VXC_INTEGRATED;
        (void)take_waiting(s, at, &frame);
    }
    ack.epoch = in->map ? in->map->epoch : 0;
    vxc__counts_of(in->counts, &ack.counts);
    for (size_t i = 0; i < in->n_warnings; i++) {
        if (in->warnings[i] == VOXELD__V1__WARNING__WARNING_ALL_BEYOND)
            ack.warnings |= VXC_WARN_ALL_BEYOND;
        else if (in->warnings[i] == VOXELD__V1__WARNING__WARNING_EMPTY)
            ack.warnings |= VXC_WARN_EMPTY;
        else if (in->warnings[i] == VOXELD__V1__WARNING__WARNING_UNUSED_CHANNEL)
            ack.warnings |= VXC_WARN_UNUSED_CHANNEL;
    }
    report(s, &ack, &frame);
}

/* An ERROR that repeats a FRAME's req_id: the daemon could not even tell which frame it was, or knows no
 * session. */
static bool take_error(struct vxc_client *client, const vxw_header *header)
{
    for (struct vxc_stream *s = client->streams; s; s = s->next) {
        for (size_t i = 0; i < s->n_waiting; i++) {
            struct vx_detail why;
            if (s->waiting[i].req_id != header->req_id)
                continue;
            const vx_err err = vxc__error_of(header->error, &why);
            refuse(s, i, err, &why);
            if (err == VX_E_UNAUTHENTICATED)
                vxc__streams_lost(client);
            return true;
        }
    }
    return false;
}

bool vxc__stream_take(struct vxc_client *client, const vxw_header *header)
{
    struct vxc_stream *s;
    struct vx_detail why;
    switch (header->body_case) {
    case VOXELD__V1__HEADER__BODY_ACK:
        if ((s = stream_by_id(client, header->ack->stream)))
            take_ack(s, header->ack);
        return s != NULL;
    case VOXELD__V1__HEADER__BODY_NACK:
        if ((s = stream_by_id(client, header->nack->stream))) {
            const vx_err err = vxc__error_of(header->nack->error, &why);
            s->gone |= err == VX_E_NOT_FOUND && strcmp(why.field, "stream") == 0;
            refuse(s, find_seq(s, header->nack->seq), err, &why);
        }
        return s != NULL;
    case VOXELD__V1__HEADER__BODY_CREDIT:
        if ((s = stream_by_id(client, header->credit->stream))) {
            s->credit_frames += header->credit->frames;
            s->credit_bytes += header->credit->bytes;
        }
        return s != NULL;
    case VOXELD__V1__HEADER__BODY_ERROR:
        return take_error(client, header);
    default:
        return false;
    }
}

void vxc__streams_lost(struct vxc_client *client)
{
    struct vx_detail why;
    vx_fail(&why, VX_E_UNAVAILABLE, "connection", "the daemon went away before it acknowledged the frame");
    for (struct vxc_stream *s = client->streams; s; s = s->next) {
        s->lost = true;
        while (s->n_waiting > 0)
            refuse(s, 0, VX_E_UNAVAILABLE, &why);
    }
}

/* ------------------------------------------------------------------ open, close */

static Voxeld__V1__Sensor wire_sensor(enum vxc_sensor sensor)
{
    switch (sensor) {
    case VXC_DEPTH:
        return VOXELD__V1__SENSOR__SENSOR_DEPTH;
    case VXC_POINTS:
        return VOXELD__V1__SENSOR__SENSOR_POINTS;
    case VXC_RANGE:
        return VOXELD__V1__SENSOR__SENSOR_RANGE;
    default:
        return VOXELD__V1__SENSOR__SENSOR_NONE;
    }
}

static uint64_t random_id(void)
{
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id || id == 0)
        id = vxc__now_us();
    return id;
}

static vx_err open_stream(struct vxc_stream *s, const char *map, const struct vxc_stream_options *o,
                          struct vx_detail *detail)
{
    Voxeld__V1__OpenStream body = VOXELD__V1__OPEN_STREAM__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    body.stream = s->id;
    body.map = vxc__bytes_of(map);
    body.sensor = wire_sensor(s->sensor);
    body.min_range_m = o->sensing.min_range_m;
    body.max_range_m = o->sensing.max_range_m;
    if (!isnan(o->sensing.no_return_value)) {
        body.no_return_case = VOXELD__V1__OPEN_STREAM__NO_RETURN_NO_RETURN_VALUE;
        body.no_return_value = o->sensing.no_return_value;
    }
    body.invalid_zero = o->sensing.invalid_zero;
    body.no_carving = o->sensing.no_carving;
    body.intensity_white = o->sensing.intensity_white;
    body.delivery = o->latest ? VOXELD__V1__DELIVERY__DELIVERY_LATEST : VOXELD__V1__DELIVERY__DELIVERY_ALL;
    body.ack_received = o->ack_received;
    body.durability = VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED;
    header.body_case = VOXELD__V1__HEADER__BODY_OPEN_STREAM;
    header.open_stream = &body;
    const vx_err err =
        vxc__call(s->client, VXC__INGEST, &header, NULL, 0, VOXELD__V1__HEADER__BODY_STREAM_OK, &x, detail);
    if (err == VX_OK) {
        s->credit_frames = x.answer->stream_ok->credit_frames;
        s->credit_bytes = x.answer->stream_ok->credit_bytes;
        s->next_seq = x.answer->stream_ok->last_seq + 1;
    }
    vxc__exchange_fini(&x);
    return err;
}

vx_err vxc_stream_open(struct vxc_client *client, const char *map, const struct vxc_stream_options *options,
                       vxc_ack_fn on_ack, void *context, struct vxc_stream **out, struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vxc__check_map(map, detail));
    struct vxc_stream *s = calloc(1, sizeof *s);
    if (!s)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a stream");
    s->client = client;
    s->id = options->id ? options->id : random_id();
    s->sensor = options->sensing.sensor;
    s->on_ack = on_ack;
    s->context = context;
    const vx_err err = open_stream(s, map, options, detail);
    if (err != VX_OK) {
        free(s);
        return err;
    }
    s->next = client->streams;
    client->streams = s;
    *out = s;
    return VX_OK;
}

void vxc_stream_close(struct vxc_stream *stream)
{
    if (!stream)
        return;
    for (struct vxc_stream **p = &stream->client->streams; *p; p = &(*p)->next) {
        if (*p == stream) {
            *p = stream->next;
            break;
        }
    }
    free(stream->waiting);
    free(stream);
}

void vxc__streams_free(struct vxc_client *client)
{
    while (client->streams)
        vxc_stream_close(client->streams);
}

/* ------------------------------------------------------------------ send */

bool vxc_stream_ready(const struct vxc_stream *stream, uint64_t data_bytes)
{
    return !stream->lost && !stream->gone && stream->credit_frames > 0 && stream->credit_bytes >= data_bytes;
}

uint64_t vxc_stream_n_waiting(const struct vxc_stream *stream)
{
    return stream->n_waiting;
}

static vx_err lost(struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_UNAVAILABLE, "connection",
                   "the daemon went away; the stream must be opened again");
}

/*
 * Waits, at most a time limit without any change, until the stream has credit for n bytes (n > 0) or no frame
 * waits (n = 0).
 */
static vx_err await(struct vxc_stream *s, uint64_t n, struct vx_detail *detail)
{
    enum { SLICE_MS = 50, CREDIT_MS = 5000 };
    struct vxc_client *client = s->client;
    uint64_t since = vxc__now_ms(), seen_waiting = s->n_waiting, seen_credit = s->credit_frames;
    for (;;) {
        VX_TRY_RET(vxc__dispatch(client, detail));
        if (s->lost)
            return lost(detail);
        if (n > 0 && s->gone && s->n_waiting == 0) /* all that were sent have their answers */
            return vx_fail(detail, VX_E_NOT_FOUND, "stream",
                           "the stream's map was deleted; open a stream into a map that exists");
        if (n > 0 ? vxc_stream_ready(s, n) : s->n_waiting == 0)
            return VX_OK;
        if (vxc__take_interrupt(client))
            return vx_fail(detail, VX_E_CANCELLED, "", "interrupted");
        const uint64_t now = vxc__now_ms();
        if (s->n_waiting != seen_waiting || s->credit_frames != seen_credit) {
            seen_waiting = s->n_waiting;
            seen_credit = s->credit_frames;
            since = now;
        }
        /* every frame has its answer, which gives its credit back: more than this does not come */
        if (n > s->credit_bytes && s->credit_frames > 0 && s->n_waiting == 0 && now - since >= CREDIT_MS)
            return vx_fail(detail, VX_E_EXHAUSTED, "data",
                           "the frame has %llu bytes, the daemon gives a stream credit for %llu (its "
                           "limits.credit_bytes)",
                           (unsigned long long)n, (unsigned long long)s->credit_bytes);
        if (now - since >= client->timeout_ms)
            return vx_fail(detail, VX_E_DEADLINE, "stream", "the daemon has taken no frame for %u ms",
                           client->timeout_ms);
        vxc__wait(client, SLICE_MS);
    }
}

static void fill_pose(Voxeld__V1__Pose *out, const struct vxc_pose *pose, int64_t offset_ns)
{
    voxeld__v1__pose__init(out);
    out->offset_ns = offset_ns;
    out->x_m = pose->position_m[0];
    out->y_m = pose->position_m[1];
    out->z_m = pose->position_m[2];
    out->qx = pose->rotation_xyzw[0];
    out->qy = pose->rotation_xyzw[1];
    out->qz = pose->rotation_xyzw[2];
    out->qw = pose->rotation_xyzw[3];
}

/* The parts of a FRAME that its messages point to. */
struct frame_parts {
    Voxeld__V1__Pose pose[VXC_MAX_POSES], *poses[VXC_MAX_POSES];
    Voxeld__V1__Pinhole pinhole;
    Voxeld__V1__Points points;
    Voxeld__V1__RangeImage range;
};

static void fill_model(Voxeld__V1__Frame *out, struct frame_parts *parts, const struct vxc_frame *in)
{
    switch (in->sensor) {
    case VXC_DEPTH:
        voxeld__v1__pinhole__init(&parts->pinhole);
        parts->pinhole.width = in->width;
        parts->pinhole.height = in->height;
        parts->pinhole.fx_px = in->fx;
        parts->pinhole.fy_px = in->fy;
        parts->pinhole.cx_px = in->cx;
        parts->pinhole.cy_px = in->cy;
        parts->pinhole.reading =
            in->encoding == VXC_U16 ? VOXELD__V1__READING__READING_U16 : VOXELD__V1__READING__READING_F32;
        parts->pinhole.units_per_m = in->units_per_m;
        parts->pinhole.edge_jump = in->edge_jump;
        parts->pinhole.distortion = (double *)(uintptr_t)in->distortion;
        parts->pinhole.n_distortion = 0;
        for (size_t i = 0; i < 5; i++)
            if (in->distortion[i] != 0)
                parts->pinhole.n_distortion = i + 1;
        out->model_case = VOXELD__V1__FRAME__MODEL_PINHOLE;
        out->pinhole = &parts->pinhole;
        return;
    case VXC_POINTS:
        voxeld__v1__points__init(&parts->points);
        parts->points.n = in->width;
        out->model_case = VOXELD__V1__FRAME__MODEL_POINTS;
        out->points = &parts->points;
        return;
    case VXC_RANGE:
        voxeld__v1__range_image__init(&parts->range);
        parts->range.columns = in->width;
        parts->range.rows = in->height;
        parts->range.first_azimuth_rad = in->first_azimuth_rad;
        parts->range.azimuth_step_rad = in->azimuth_step_rad;
        parts->range.n_elevation_rad = in->elevation_rad ? in->height : 0;
        parts->range.elevation_rad = (float *)(uintptr_t)in->elevation_rad;
        out->model_case = VOXELD__V1__FRAME__MODEL_RANGE;
        out->range = &parts->range;
        return;
    }
}

static vx_err check_frame(const struct vxc_stream *s, const struct vxc_frame *frame, struct vx_detail *detail)
{
    if (frame->sensor != s->sensor)
        return vx_fail(detail, VX_E_INVALID, "sensor", "the frame is of another sensor than its stream");
    if (frame->n_path > VXC_MAX_POSES)
        return vx_fail(detail, VX_E_INVALID, "path", "%u poses, at most %d fit a frame", frame->n_path,
                       VXC_MAX_POSES);
    if (!frame->data || frame->data_bytes == 0)
        return vx_fail(detail, VX_E_INVALID, "data", "the frame has no readings");
    return VX_OK;
}

/* Remembers a frame before it is sent, so that nothing can fail behind the send. */
static vx_err remember(struct vxc_stream *s, uint64_t req_id, void *user, struct vx_detail *detail)
{
    if (s->n_waiting == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 8;
        struct waiting *grown = realloc(s->waiting, capacity * sizeof *grown);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "", "no memory to remember a frame");
        s->waiting = grown;
        s->capacity = capacity;
    }
    s->waiting[s->n_waiting++] = (struct waiting){.seq = s->next_seq, .req_id = req_id, .user = user};
    return VX_OK;
}

enum { MAX_CHANNELS = 6 };

/* The readings and the channels that the frame has; returns their number. */
static size_t list_payloads(const struct vxc_frame *frame, Voxeld__V1__Frame *body,
                            Voxeld__V1__Channel *channel, struct vxc__payload *payload)
{
    const size_t readings = (size_t)frame->width * frame->height;
    payload[0] = (struct vxc__payload){frame->data, (size_t)frame->data_bytes};
    size_t n = 0;
    if (frame->time_ns) {
        channel[n] = VOXELD__V1__CHANNEL__CHANNEL_TIME;
        payload[1 + n++] = (struct vxc__payload){frame->time_ns, frame->width * sizeof *frame->time_ns};
    }
    if (frame->mask) {
        channel[n] = VOXELD__V1__CHANNEL__CHANNEL_MASK;
        payload[1 + n++] = (struct vxc__payload){frame->mask, readings};
    }
    if (frame->weight) {
        channel[n] = VOXELD__V1__CHANNEL__CHANNEL_WEIGHT;
        payload[1 + n++] = (struct vxc__payload){frame->weight, readings * sizeof *frame->weight};
    }
    if (frame->colour) {
        channel[n] = VOXELD__V1__CHANNEL__CHANNEL_COLOUR;
        payload[1 + n++] = (struct vxc__payload){frame->colour, readings * 3};
    }
    if (frame->label) {
        channel[n] = VOXELD__V1__CHANNEL__CHANNEL_LABEL;
        payload[1 + n++] = (struct vxc__payload){frame->label, readings};
    }
    if (frame->intensity) {
        channel[n] = VOXELD__V1__CHANNEL__CHANNEL_INTENSITY;
        payload[1 + n++] = (struct vxc__payload){frame->intensity, readings * sizeof *frame->intensity};
    }
    body->channels = channel;
    body->n_channels = n;
    return 1 + n;
}

vx_err vxc_stream_send(struct vxc_stream *stream, const struct vxc_frame *frame, void *user, uint64_t *seq,
                       struct vx_detail *detail)
{
    struct vxc_client *client = stream->client;
    struct frame_parts parts;
    struct vxc__payload payload[1 + MAX_CHANNELS];
    size_t n_payloads;
    uint64_t n_bytes = 0;
    Voxeld__V1__Channel channel[MAX_CHANNELS];
    Voxeld__V1__Frame body = VOXELD__V1__FRAME__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    VX_TRY_RET(check_frame(stream, frame, detail));
    vxc__wait(client, 0);
    n_payloads = list_payloads(frame, &body, channel, payload);
    for (size_t i = 0; i < n_payloads; i++) {
        if (payload[i].n_bytes > client->limits.frame_payload_bytes)
            return vx_fail(detail, VX_E_EXHAUSTED, i ? "channels" : "data",
                           "%s %llu bytes, the daemon takes %llu",
                           i ? "something beside the readings has" : "the frame has",
                           (unsigned long long)payload[i].n_bytes,
                           (unsigned long long)client->limits.frame_payload_bytes);
        n_bytes += payload[i].n_bytes;
    }
    VX_TRY_RET(await(stream, n_bytes, detail));

    body.stream = stream->id;
    body.seq = stream->next_seq;
    body.stamp_ns = frame->stamp_ns;
    body.reset = frame->reset;
    body.n_poses = frame->n_path > 0 ? frame->n_path : 1;
    body.poses = parts.poses;
    for (size_t i = 0; i < body.n_poses; i++) {
        parts.poses[i] = &parts.pose[i];
        fill_pose(&parts.pose[i], frame->n_path > 0 ? &frame->path[i].pose : &frame->pose,
                  frame->n_path > 0 ? frame->path[i].offset_ns : 0);
    }
    fill_model(&body, &parts, frame);
    header.req_id = client->next_req_id++;
    header.body_case = VOXELD__V1__HEADER__BODY_FRAME;
    header.frame = &body;
    VX_TRY_RET(remember(stream, header.req_id, user, detail));
    const vx_err err =
        vxc__endpoint_send_all(&client->endpoint[VXC__INGEST], &header, payload, n_payloads, detail);
    if (err != VX_OK) {
        stream->n_waiting--;
        return err;
    }
    if (seq)
        *seq = stream->next_seq;
    stream->next_seq++;
    stream->credit_frames--;
    stream->credit_bytes -= n_bytes;
    return VX_OK;
}

vx_err vxc_stream_flush(struct vxc_stream *stream, struct vx_detail *detail)
{
    return await(stream, 0, detail);
}
