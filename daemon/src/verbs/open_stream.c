#include "log.h"
#include "stream.h"
#include "verbs.h"

#include <math.h>

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

static void answer(struct vxd_session *session, const struct vxd_in *in, const struct vxd_stream *stream)
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
    header.req_id = in->header->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_STREAM_OK;
    header.stream_ok = &ok;
    vxd_send(session, &header, NULL, 0, 0);
}

void vxd_verb_open_stream(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__OpenStream *open = in->header->open_stream;
    struct vx_detail detail = {{0}, {0}};
    struct vxd_map *map = NULL;
    struct vxd_stream *stream = NULL;
    vx_err err = check(server, open, &detail);
    if (err == VX_OK)
        err = vxd_map_find(server, &open->map, &map, &detail);
    if (err == VX_OK)
        err = vxd_stream_open(session, map, open->stream, &stream, &detail);
    if (err != VX_OK) {
        vxd_send_error(session, in->header->req_id, err, &detail);
        return;
    }
    take(stream, open);
    vxd_log(VXD_LOG_INFO, "stream_open", "session=%llu map=%s stream=%llu last_seq=%llu",
            (unsigned long long)session->serial, map->name, (unsigned long long)stream->id,
            (unsigned long long)stream->last_seq);
    answer(session, in, stream);
}
