#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const char *work_name(Voxeld__V1__Work work)
{
    static const char *const names[] = {"other", "frame", "points", "spheres", "rays", "mesh", "planning"};
    return (unsigned)work < sizeof names / sizeof *names ? names[work] : names[0];
}

static const char *sensor_name(Voxeld__V1__Sensor sensor)
{
    static const char *const names[] = {"none", "depth", "points", "range"};
    return (unsigned)sensor < sizeof names / sizeof *names ? names[sensor] : names[0];
}

/* Room for n items; one item more than none, so that NULL means no memory. */
static bool allocate(void **out, size_t n, size_t bytes)
{
    return (*out = calloc(n + 1, bytes)) != NULL;
}

static bool copy_latencies(Voxeld__V1__Latency **in, size_t n, struct vxc_latency **out, size_t *n_out)
{
    if (!allocate((void **)out, n, sizeof **out))
        return false;
    for (*n_out = 0; *n_out < n; ++*n_out) {
        const Voxeld__V1__Latency *from = in[*n_out];
        (*out)[*n_out] = (struct vxc_latency){.work = work_name(from->work),
                                              .n = from->n,
                                              .mean_us = from->mean_us,
                                              .p50_us = from->p50_us,
                                              .p99_us = from->p99_us,
                                              .max_us = from->max_us,
                                              .wait_p50_us = from->wait_p50_us,
                                              .wait_p99_us = from->wait_p99_us,
                                              .run_p50_us = from->run_p50_us,
                                              .run_p99_us = from->run_p99_us,
                                              .reply_p50_us = from->reply_p50_us,
                                              .reply_p99_us = from->reply_p99_us,
                                              .n_at_once = from->n_at_once};
    }
    return true;
}

static bool copy_codes(Voxeld__V1__CodeCount **in, size_t n, struct vxc_code_count **out, size_t *n_out)
{
    if (!allocate((void **)out, n, sizeof **out))
        return false;
    for (*n_out = 0; *n_out < n; ++*n_out)
        (*out)[*n_out] = (struct vxc_code_count){vxw_err_from_code(in[*n_out]->code), in[*n_out]->n};
    return true;
}

static bool copy_devices(const Voxeld__V1__StatsReport *in, struct vxc_stats *out)
{
    if (!allocate((void **)&out->devices, in->n_devices, sizeof *out->devices))
        return false;
    for (size_t i = 0; i < in->n_devices; i++) {
        const Voxeld__V1__DeviceStats *from = in->devices[i];
        struct vxc_device_stats *to = &out->devices[out->n_devices++];
        vxc__text_of(from->name, to->name, sizeof to->name);
        vxc__text_of(from->backend, to->backend, sizeof to->backend);
        to->cap_bytes = from->cap_bytes;
        to->used_bytes = from->used_bytes;
        to->scratch_bytes = from->scratch_bytes;
        to->reserved_bytes = from->reserved_bytes;
        to->peak_bytes = from->peak_bytes;
    }
    return true;
}

static bool copy_maps(const Voxeld__V1__StatsReport *in, struct vxc_stats *out)
{
    if (!allocate((void **)&out->maps, in->n_maps, sizeof *out->maps))
        return false;
    for (size_t i = 0; i < in->n_maps; i++) {
        const Voxeld__V1__MapStats *from = in->maps[i];
        struct vxc_map_stats *to = &out->maps[out->n_maps++];
        vxc__state_of(from->map, &to->state);
        to->n_frames = from->n_frames;
        to->n_refused = from->n_refused;
        to->n_voxels = from->n_voxels;
        to->used_bytes = from->used_bytes;
        vxc__memory_of(from->memory, &to->memory);
        to->n_waiting_frames = from->n_waiting_frames;
        to->n_waiting_requests = from->n_waiting_requests;
        if (!copy_latencies(from->latencies, from->n_latencies, &to->latencies, &to->n_latencies))
            return false;
    }
    return true;
}

static bool copy_streams(const Voxeld__V1__StatsReport *in, struct vxc_stats *out)
{
    if (!allocate((void **)&out->streams, in->n_streams, sizeof *out->streams))
        return false;
    for (size_t i = 0; i < in->n_streams; i++) {
        const Voxeld__V1__StreamStats *from = in->streams[i];
        struct vxc_stream_stats *to = &out->streams[out->n_streams++];
        vxc__text_of(from->map, to->map, sizeof to->map);
        to->id = from->stream;
        to->open = from->open;
        to->sensor = sensor_name(from->sensor);
        to->n_received = from->n_received;
        to->n_integrated = from->n_integrated;
        to->n_superseded = from->n_superseded;
        vxc__counts_of(from->readings, &to->readings);
        to->last_seq = from->last_seq;
        to->last_stamp_ns = from->last_stamp_ns;
        to->n_warnings = from->n_warnings;
        if (!copy_codes(from->refused, from->n_refused, &to->refused, &to->n_refused))
            return false;
    }
    return true;
}

static bool copy_report(const Voxeld__V1__StatsReport *in, struct vxc_stats *out)
{
    vxc__text_of(in->server, out->server, sizeof out->server);
    out->uptime_us = in->uptime_us;
    out->n_sessions = in->n_sessions;
    out->n_bad_messages = in->n_bad_messages;
    out->transfer_bytes = in->transfer_bytes;
    out->spool_bytes = in->spool_bytes;
    return copy_devices(in, out) && copy_maps(in, out) && copy_streams(in, out) &&
           copy_latencies(in->latencies, in->n_latencies, &out->latencies, &out->n_latencies) &&
           copy_codes(in->errors, in->n_errors, &out->errors, &out->n_errors);
}

vx_err vxc_get_stats(struct vxc_client *client, struct vxc_stats **out, struct vx_detail *detail)
{
    Voxeld__V1__Stats body = VOXELD__V1__STATS__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__StatsReport *report = NULL;
    struct vxc__exchange x;
    *out = NULL;
    header.body_case = VOXELD__V1__HEADER__BODY_STATS;
    header.stats = &body;
    vx_err err =
        vxc__call(client, VXC__QUERY, &header, NULL, 0, VOXELD__V1__HEADER__BODY_STATS_REPLY, &x, detail);
    if (err == VX_OK && !(report = voxeld__v1__stats_report__unpack(NULL, x.down_bytes, x.down)))
        err = vx_fail(detail, VX_E_INTERNAL, "", "the daemon's report is malformed");
    if (err == VX_OK) {
        *out = calloc(1, sizeof **out);
        if (!*out || !copy_report(report, *out)) {
            vxc_stats_free(*out);
            *out = NULL;
            err = vx_fail(detail, VX_E_NOMEM, "", "no memory for a report");
        }
    }
    if (report)
        voxeld__v1__stats_report__free_unpacked(report, NULL);
    vxc__exchange_fini(&x);
    return err;
}

void vxc_stats_free(struct vxc_stats *stats)
{
    if (!stats)
        return;
    for (size_t i = 0; i < stats->n_maps; i++)
        free(stats->maps[i].latencies);
    for (size_t i = 0; i < stats->n_streams; i++)
        free(stats->streams[i].refused);
    free(stats->devices);
    free(stats->maps);
    free(stats->streams);
    free(stats->latencies);
    free(stats->errors);
    free(stats);
}
