#include "log.h"
#include "stream.h"
#include "verbs.h"

#include <math.h>
#include <stdlib.h>

static vx_err check(const struct vxd_server *server, const Voxeld__V1__OpenStream *open,
                    struct vx_detail *detail)
{
    if (server->stopping)
        return vx_fail(detail, VX_E_UNAVAILABLE, "", "the daemon is shutting down");
    if (open->sensor < VOXELD__V1__SENSOR__SENSOR_DEPTH || open->sensor > VOXELD__V1__SENSOR__SENSOR_RANGE)
        return vx_fail(detail, VX_E_INVALID, "sensor", "%d is no sensor", (int)open->sensor);
    if (!isfinite(open->min_range_m) || open->min_range_m < 0)
        return vx_fail(detail, VX_E_INVALID, "min_range_m", "must be 0 or more, is %g", open->min_range_m);
    if (!isfinite(open->max_range_m) || open->max_range_m < 0)
        return vx_fail(detail, VX_E_INVALID, "max_range_m", "must be 0 or more, is %g", open->max_range_m);
    if (open->intensity_white != 0 && !(open->intensity_white >= 1e-6 && open->intensity_white <= 1e9))
        return vx_fail(detail, VX_E_INVALID, "intensity_white", "must be 0 or 1e-6 to 1e9, is %g",
                       open->intensity_white);
    if (open->intensity_white > 0 && open->sensor == VOXELD__V1__SENSOR__SENSOR_DEPTH)
        return vx_fail(detail, VX_E_INVALID, "intensity_white", "is for LiDAR");
    if (open->delivery != VOXELD__V1__DELIVERY__DELIVERY_ALL &&
        open->delivery != VOXELD__V1__DELIVERY__DELIVERY_LATEST)
        return vx_fail(detail, VX_E_INVALID, "delivery", "%d is no way of delivery", (int)open->delivery);
    if (open->wait_for_stamps)
        return vx_fail(detail, VX_E_UNIMPLEMENTED, "wait_for_stamps",
                       "frames are integrated in order of arrival");
    if (open->durability == VOXELD__V1__ACK_LEVEL__ACK_DURABLE)
        return vx_fail(detail, VX_E_UNIMPLEMENTED, "durability", "this version keeps maps in memory only");
    if (open->durability != VOXELD__V1__ACK_LEVEL__ACK_NONE &&
        open->durability != VOXELD__V1__ACK_LEVEL__ACK_INTEGRATED)
        return vx_fail(detail, VX_E_INVALID, "durability", "must be INTEGRATED or DURABLE");
    return VX_OK;
}

static void take(struct vxd_stream *stream, const Voxeld__V1__OpenStream *open)
{
    stream->sensor = open->sensor == VOXELD__V1__SENSOR__SENSOR_DEPTH    ? VX_DEPTH
                     : open->sensor == VOXELD__V1__SENSOR__SENSOR_POINTS ? VX_POINTS
                                                                         : VX_RANGE;
    stream->min_range_m = open->min_range_m;
    stream->max_range_m = open->max_range_m;
    stream->no_return_value = open->no_return_case ? open->no_return_value : NAN;
    stream->invalid_zero = open->invalid_zero;
    stream->no_carving = open->no_carving;
    stream->intensity_white = open->intensity_white;
    stream->latest = open->delivery == VOXELD__V1__DELIVERY__DELIVERY_LATEST;
    stream->ack_received = open->ack_received;
}

static void answer(struct vxd_session *session, uint64_t req_id, const struct vxd_stream *stream)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__StreamOk ok = VOXELD__V1__STREAM_OK__INIT;
    Voxeld__V1__MapState map;
    vxd_map_state_fill(stream->map, NULL, &map);
    ok.stream = stream->id;
    ok.credit_frames = stream->credit_frames;
    ok.credit_bytes = stream->credit_bytes;
    ok.last_seq = stream->last_seq;
    ok.last_stamp_ns = stream->last_stamp_ns;
    ok.map = &map;
    header.req_id = req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_STREAM_OK;
    header.stream_ok = &ok;
    vxd_send(session, &header, NULL, 0, 0);
}

/* False when that must wait, and nothing was sent. */
static bool open_stream(struct vxd_server *server, struct vxd_session *session, const vxw_header *asked)
{
    const Voxeld__V1__OpenStream *open = asked->open_stream;
    struct vx_detail detail = {{0}, {0}};
    struct vxd_map *map = NULL;
    struct vxd_stream *stream = NULL;
    vx_err err = check(server, open, &detail);
    if (err == VX_OK)
        err = vxd_map_find(server, &open->map, &map, &detail);
    if (err == VX_OK && vxd_stream_is_unsettled(map, open->stream))
        return false;
    if (err == VX_OK)
        err = vxd_stream_open(session, map, open->stream, &stream, &detail);
    if (err != VX_OK) {
        vxd_send_error(session, asked->req_id, err, &detail);
        return true;
    }
    take(stream, open);
    vxd_log(VXD_LOG_INFO, "stream_open", "session=%llu map=%s stream=%llu last_seq=%llu",
            (unsigned long long)session->serial, map->name, (unsigned long long)stream->id,
            (unsigned long long)stream->last_seq);
    answer(session, asked->req_id, stream);
    return true;
}

/* ------------------------------------------------------------------ behind frames that are being staged */

struct open_job {
    struct vxd_job job;
    struct vxd_server *server;
    struct vxd_endpoint *endpoint;
    struct vxd_peer peer;
    uint64_t serial; /* of the session */
    vxw_header *header;
};

static void open_run(struct vxd_job *job)
{
    (void)job; /* its turn has come: what arrived before is staged */
}

static void open_done(struct vxd_job *job)
{
    struct open_job *o = (struct open_job *)job;
    struct vxd_server *server = o->server;
    struct vxd_session *session = vxd_session_find(server, o->endpoint, &o->peer);
    vxd_server_job_done(server);
    if (session && session->serial == o->serial && !session->doomed &&
        !open_stream(server, session, o->header)) {
        vxd_server_push(server, &server->stage, &o->job); /* more came before the stream was left */
        return;
    }
    vxw_header_free(o->header);
    free(o);
}

void vxd_verb_open_stream(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    if (open_stream(server, session, in->header))
        return;
    struct open_job *o = calloc(1, sizeof *o);
    if (!o) {
        vxd_send_error(session, in->header->req_id, VX_E_NOMEM, NULL);
        return;
    }
    o->server = server;
    o->endpoint = in->endpoint;
    o->peer = in->peer;
    o->serial = session->serial;
    o->header = in->header;
    in->header = NULL;
    o->job.run = open_run;
    o->job.done = open_done;
    vxd_server_push(server, &server->stage, &o->job);
}
