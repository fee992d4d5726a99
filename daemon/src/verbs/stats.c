#include "map.h"
#include "map_info.h"
#include "stream.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

/*
 * The core's numbers are asked for on a worker; the maps are held meanwhile.  The report is put together on
 * the loop, which owns everything else in it.
 */
struct stats_request {
    struct vxd_request base;
    struct vx_device_stats device;
    uint32_t n_maps;
    struct vxd_map **maps;
    struct vx_map_info *infos;
    vx_err *errs;
};

static vx_err run(struct vxd_request *request)
{
    struct stats_request *s = (struct stats_request *)request;
    vx_device_get_stats(request->server->device, &s->device);
    for (uint32_t i = 0; i < s->n_maps; ++i)
        s->errs[i] = vx_map_get_info(s->maps[i]->core, &s->infos[i]);
    return VX_OK;
}

/* ------------------------------------------------------------------ the report */

/* What the report points at; one allocation for each kind. */
struct report {
    Voxeld__V1__StatsReport body;
    Voxeld__V1__DeviceStats device, *device_list[1];
    Voxeld__V1__MapStats *maps, **map_list;
    Voxeld__V1__MapState *states;
    Voxeld__V1__MapMemory *memories;
    Voxeld__V1__StreamStats *streams, **stream_list;
    Voxeld__V1__Counts *counts;
    Voxeld__V1__CodeCount *codes, **code_list;
    Voxeld__V1__Latency *latencies, **latency_list;
    size_t n_codes, n_latencies;
};

static ProtobufCBinaryData text(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)s};
}

static Voxeld__V1__CodeCount **codes_fill(struct report *r, const uint64_t n[VXD_N_CODES], size_t *n_out)
{
    Voxeld__V1__CodeCount **first = &r->code_list[r->n_codes];
    for (int code = 0; code < VXD_N_CODES; ++code) {
        if (!n[code])
            continue;
        Voxeld__V1__CodeCount *c = &r->codes[r->n_codes];
        voxeld__v1__code_count__init(c);
        c->code = (Voxeld__V1__Code)code;
        c->n = n[code];
        r->code_list[r->n_codes++] = c;
        ++*n_out;
    }
    return first;
}

static Voxeld__V1__Latency **latencies_fill(struct report *r, const struct vxd_latency latency[VXD_N_WORK],
                                            size_t *n_out)
{
    Voxeld__V1__Latency **first = &r->latency_list[r->n_latencies];
    for (int work = 0; work < VXD_N_WORK; ++work) {
        const struct vxd_latency *from = &latency[work];
        const struct vxd_hist *h = &from->all;
        if (!h->n)
            continue;
        Voxeld__V1__Latency *l = &r->latencies[r->n_latencies];
        voxeld__v1__latency__init(l);
        l->work = (Voxeld__V1__Work)work;
        l->n = h->n;
        l->mean_us = (double)h->sum / (double)h->n;
        l->p50_us = (double)vxd_hist_quantile(h, 0.5);
        l->p99_us = (double)vxd_hist_quantile(h, 0.99);
        l->max_us = (double)h->max;
        l->wait_p50_us = (double)vxd_hist_quantile(&from->wait, 0.5);
        l->wait_p99_us = (double)vxd_hist_quantile(&from->wait, 0.99);
        l->run_p50_us = (double)vxd_hist_quantile(&from->run, 0.5);
        l->run_p99_us = (double)vxd_hist_quantile(&from->run, 0.99);
        l->reply_p50_us = (double)vxd_hist_quantile(&from->reply, 0.5);
        l->reply_p99_us = (double)vxd_hist_quantile(&from->reply, 0.99);
        l->n_at_once = from->n_at_once;
        r->latency_list[r->n_latencies++] = l;
        ++*n_out;
    }
    return first;
}

static void device_fill(struct report *r, const struct vx_device_stats *stats)
{
    Voxeld__V1__DeviceStats *d = &r->device;
    voxeld__v1__device_stats__init(d);
    d->name = text(stats->name);
    d->backend = text(stats->backend);
    d->cap_bytes = stats->cap_bytes;
    d->used_bytes = stats->used_bytes;
    d->scratch_bytes = stats->scratch_bytes;
    d->reserved_bytes = stats->reserved_bytes;
    d->peak_bytes = stats->peak_bytes;
    r->device_list[0] = d;
    r->body.devices = r->device_list;
    r->body.n_devices = 1;
}

static void stream_fill(struct report *r, const struct vxd_stream *stream)
{
    Voxeld__V1__StreamStats *s = &r->streams[r->body.n_streams];
    Voxeld__V1__Counts *c = &r->counts[r->body.n_streams];
    voxeld__v1__stream_stats__init(s);
    voxeld__v1__counts__init(c);
    s->map = text(stream->map->name);
    s->stream = stream->id;
    s->open = stream->session != NULL;
    s->sensor = (Voxeld__V1__Sensor)(stream->sensor + VOXELD__V1__SENSOR__SENSOR_DEPTH);
    s->n_received = stream->n_received;
    s->n_integrated = stream->n_integrated;
    s->n_superseded = stream->n_superseded;
    s->refused = codes_fill(r, stream->n_refused, &s->n_refused);
    vxd_counts_fill(&stream->readings, c);
    s->readings = c;
    s->last_seq = stream->last_seq;
    s->last_stamp_ns = stream->last_stamp_ns;
    s->n_warnings = stream->n_warnings;
    r->stream_list[r->body.n_streams++] = s;
}

static void map_fill(struct report *r, const struct vxd_map *map, const struct vx_map_info *info)
{
    Voxeld__V1__MapStats *m = &r->maps[r->body.n_maps];
    Voxeld__V1__MapState *state = &r->states[r->body.n_maps];
    voxeld__v1__map_stats__init(m);
    vxd_map_state_fill(map, NULL, state);
    state->epoch = info->epoch;
    m->map = state;
    m->n_frames = info->n_frames;
    m->n_refused = info->n_refused + map->n_refused;
    m->n_voxels = info->n_voxels;
    m->used_bytes = info->used_bytes;
    vxd_map_memory_fill(&info->memory, &r->memories[r->body.n_maps]);
    m->memory = &r->memories[r->body.n_maps];
    m->n_waiting_frames = map->n_waiting_frames;
    m->n_waiting_requests = map->n_requests - 1; /* this one holds it, too */
    m->latencies = latencies_fill(r, map->latency, &m->n_latencies);
    r->map_list[r->body.n_maps++] = m;
    for (const struct vxd_stream *s = map->streams; s; s = s->next)
        stream_fill(r, s);
}

static void report_free(struct report *r)
{
    free(r->maps);
    free(r->map_list);
    free(r->states);
    free(r->memories);
    free(r->streams);
    free(r->stream_list);
    free(r->counts);
    free(r->codes);
    free(r->code_list);
    free(r->latencies);
    free(r->latency_list);
}

static bool report_alloc(struct report *r, size_t n_maps, size_t n_streams)
{
    size_t n_codes = (n_streams + 2) * VXD_N_CODES, n_latencies = (n_maps + 1) * VXD_N_WORK;
    memset(r, 0, sizeof *r);
    r->maps = calloc(n_maps + 1, sizeof *r->maps);
    r->map_list = calloc(n_maps + 1, sizeof *r->map_list);
    r->states = calloc(n_maps + 1, sizeof *r->states);
    r->memories = calloc(n_maps + 1, sizeof *r->memories);
    r->streams = calloc(n_streams + 1, sizeof *r->streams);
    r->stream_list = calloc(n_streams + 1, sizeof *r->stream_list);
    r->counts = calloc(n_streams + 1, sizeof *r->counts);
    r->codes = calloc(n_codes, sizeof *r->codes);
    r->code_list = calloc(n_codes, sizeof *r->code_list);
    r->latencies = calloc(n_latencies, sizeof *r->latencies);
    r->latency_list = calloc(n_latencies, sizeof *r->latency_list);
    return r->maps && r->memories && r->map_list && r->states && r->streams && r->stream_list && r->counts &&
           r->codes && r->code_list && r->latencies && r->latency_list;
}

static void report_fill(struct report *r, const struct stats_request *s)
{
    const struct vxd_server *server = s->base.server;
    voxeld__v1__stats_report__init(&r->body);
    r->body.server = text("voxeld/" VOXELD_VERSION);
    r->body.uptime_us = (vxd_now_ns() - server->started_ns) / 1000;
    r->body.n_sessions = server->n_sessions;
    device_fill(r, &s->device);
    r->body.maps = r->map_list;
    r->body.streams = r->stream_list;
    for (uint32_t i = 0; i < s->n_maps; ++i)
        if (s->errs[i] == VX_OK)
            map_fill(r, s->maps[i], &s->infos[i]);
    r->body.latencies = latencies_fill(r, server->latency, &r->body.n_latencies);
    r->body.errors = codes_fill(r, server->n_errors, &r->body.n_errors);
    r->body.ended = codes_fill(r, server->n_ended, &r->body.n_ended);
    r->body.n_bad_messages = server->n_bad_messages;
    r->body.transfer_bytes = server->transfer_bytes;
    r->body.spool_bytes = server->spool_bytes;
}

static void answer(struct vxd_request *request)
{
    struct stats_request *s = (struct stats_request *)request;
    struct report report;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__StatsReply reply = VOXELD__V1__STATS_REPLY__INIT;
    size_t n_streams = 0;
    for (uint32_t i = 0; i < s->n_maps; ++i)
        n_streams += s->maps[i]->n_streams;
    if (report_alloc(&report, s->n_maps, n_streams)) {
        report_fill(&report, s);
        request->answer = vxd_buf_create(voxeld__v1__stats_report__get_packed_size(&report.body));
    }
    if (!request->answer) {
        report_free(&report);
        vxd_request_fail(request, VX_E_NOMEM);
        return;
    }
    voxeld__v1__stats_report__pack(&report.body, request->answer->data);
    report_free(&report);
    header.body_case = VOXELD__V1__HEADER__BODY_STATS_REPLY;
    header.stats_reply = &reply;
    vxd_request_send(request, &header);
}

/* ------------------------------------------------------------------ the request */

static void fini(struct vxd_request *request)
{
    struct stats_request *s = (struct stats_request *)request;
    for (uint32_t i = 0; i < s->n_maps; ++i) {
        --s->maps[i]->n_requests;
        vxd_map_released(s->maps[i]);
    }
    free(s->maps);
    free(s->infos);
    free(s->errs);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct stats_request), .lane = VXD_LANE_MISC, .run = run, .answer = answer, .fini = fini};

static vx_err hold_maps(struct stats_request *s)
{
    const struct vxd_server *server = s->base.server;
    s->maps = calloc(server->n_maps + 1, sizeof(struct vxd_map *));
    s->infos = calloc(server->n_maps + 1, sizeof *s->infos);
    s->errs = calloc(server->n_maps + 1, sizeof *s->errs);
    if (!s->maps || !s->infos || !s->errs)
        return vx_fail(&s->base.detail, VX_E_NOMEM, "", "no memory for the report");
    for (struct vxd_map *map = server->maps; map; map = map->next) {
        if (map->state != VXD_MAP_LIVE)
            continue;
        ++map->n_requests;
        s->maps[s->n_maps++] = map;
    }
    return VX_OK;
}

void vxd_verb_stats(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = hold_maps((struct stats_request *)r);
    if (err == VX_OK)
        vxd_request_submit(r);
    else
        vxd_request_fail(r, err);
}
