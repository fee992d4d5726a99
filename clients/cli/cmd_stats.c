/* voxelctl stats, ping, shutdown */
#include "map_files.h"

#include <inttypes.h>

static const char STATS_HELP[] =
    "voxelctl stats - what the daemon does: devices, maps, streams, latencies, errors since its start\n"
    "\n"
    "usage: voxelctl stats\n"
    "\n"
    "exit codes: 0 done, 1 failed, 2 wrong usage, 3 no daemon\n";

static const char PING_HELP[] = "voxelctl ping - round trip to the daemon\n"
                                "\n"
                                "usage: voxelctl ping\n"
                                "\n"
                                "exit codes: 0 it answered, 1 failed, 2 wrong usage, 3 no daemon\n";

static const char SHUTDOWN_HELP[] = "voxelctl shutdown - let the daemon finish accepted frames and end\n"
                                    "\n"
                                    "usage: voxelctl shutdown\n"
                                    "\n"
                                    "exit codes: 0 it ends, 1 refused, 2 wrong usage, 3 no daemon\n";

/* A command without words or options; returns CLI_OK when connected, else the exit code.  *done: nothing is
 * left to do. */
static int begin(struct cli *cli, const char *help, bool *done)
{
    const char *value;
    cli->help = help;
    *done = true;
    const int got = cli_next(cli, NULL, 0, &value);
    if (got == CLI_WORD)
        return cli_usage(cli, "'%s' is one word too many", value);
    if (got != CLI_END)
        return cli_option_exit(got);
    const int code = cli_connect(cli);
    *done = code != CLI_OK;
    return code;
}

/* ------------------------------------------------------------------ stats as JSON */

static void json_latencies(struct json *j, const struct vxc_latency *l, size_t n)
{
    json_begin(j, "latencies", '{');
    for (size_t i = 0; i < n; i++) {
        json_begin(j, l[i].work, '{');
        json_u64(j, "n", l[i].n);
        json_number(j, "mean_us", l[i].mean_us);
        json_number(j, "p50_us", l[i].p50_us);
        json_number(j, "p99_us", l[i].p99_us);
        json_number(j, "max_us", l[i].max_us);
        json_number(j, "wait_p50_us", l[i].wait_p50_us);
        json_number(j, "wait_p99_us", l[i].wait_p99_us);
        json_number(j, "run_p50_us", l[i].run_p50_us);
        json_number(j, "run_p99_us", l[i].run_p99_us);
        json_number(j, "reply_p50_us", l[i].reply_p50_us);
        json_number(j, "reply_p99_us", l[i].reply_p99_us);
        json_u64(j, "at_once", l[i].n_at_once);
        json_end(j, '}');
    }
    json_end(j, '}');
}

static void json_codes(struct json *j, const char *key, const struct vxc_code_count *c, size_t n)
{
    json_begin(j, key, '{');
    for (size_t i = 0; i < n; i++)
        json_u64(j, vx_err_name(c[i].err), c[i].n);
    json_end(j, '}');
}

static void json_maps(struct json *j, const struct vxc_stats *s)
{
    json_begin(j, "maps", '[');
    for (size_t i = 0; i < s->n_maps; i++) {
        const struct vxc_map_stats *m = &s->maps[i];
        json_begin(j, NULL, '{');
        json_text(j, "map", m->state.name);
        json_state(j, &m->state);
        json_u64(j, "frames", m->n_frames);
        json_u64(j, "refused", m->n_refused);
        json_u64(j, "voxels", m->n_voxels);
        json_u64(j, "used_bytes", m->used_bytes);
        map_json_memory(j, &m->memory);
        json_u64(j, "waiting_frames", m->n_waiting_frames);
        json_u64(j, "waiting_requests", m->n_waiting_requests);
        json_latencies(j, m->latencies, m->n_latencies);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void json_streams(struct json *j, const struct vxc_stats *s)
{
    json_begin(j, "streams", '[');
    for (size_t i = 0; i < s->n_streams; i++) {
        const struct vxc_stream_stats *t = &s->streams[i];
        json_begin(j, NULL, '{');
        json_text(j, "map", t->map);
        json_u64(j, "stream", t->id);
        json_bool(j, "open", t->open);
        json_text(j, "sensor", t->sensor);
        json_u64(j, "received", t->n_received);
        json_u64(j, "integrated", t->n_integrated);
        json_u64(j, "superseded", t->n_superseded);
        json_codes(j, "refused", t->refused, t->n_refused);
        json_counts(j, "readings", &t->readings);
        json_u64(j, "last_seq", t->last_seq);
        json_i64(j, "last_stamp_ns", t->last_stamp_ns);
        json_u64(j, "warnings", t->n_warnings);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static int json_stats(const struct vxc_stats *s)
{
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "server", s->server);
    json_number(&j, "uptime_s", (double)s->uptime_us * 1e-6);
    json_u64(&j, "sessions", s->n_sessions);
    json_begin(&j, "devices", '[');
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct vxc_device_stats *d = &s->devices[i];
        json_begin(&j, NULL, '{');
        json_text(&j, "name", d->name);
        json_text(&j, "backend", d->backend);
        json_u64(&j, "cap_bytes", d->cap_bytes);
        json_u64(&j, "used_bytes", d->used_bytes);
        json_u64(&j, "scratch_bytes", d->scratch_bytes);
        json_u64(&j, "reserved_bytes", d->reserved_bytes);
        json_u64(&j, "peak_bytes", d->peak_bytes);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_maps(&j, s);
    json_streams(&j, s);
    json_latencies(&j, s->latencies, s->n_latencies);
    json_codes(&j, "errors", s->errors, s->n_errors);
    json_u64(&j, "bad_messages", s->n_bad_messages);
    json_u64(&j, "transfer_bytes", s->transfer_bytes);
    json_u64(&j, "spool_bytes", s->spool_bytes);
    json_end(&j, '}');
    return json_finish(&j);
}

/* ------------------------------------------------------------------ stats as text */

static void print_latencies(const struct vxc_latency *l, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!l[i].n)
            continue;
        printf("  %-10s %10" PRIu64 "   mean %.0f   p50 %.0f   p99 %.0f   max %.0f us", l[i].work, l[i].n,
               l[i].mean_us, l[i].p50_us, l[i].p99_us, l[i].max_us);
        printf("   (p50/p99: waiting %.0f/%.0f, running %.0f/%.0f, answering %.0f/%.0f; %" PRIu64
               " at once)\n",
               l[i].wait_p50_us, l[i].wait_p99_us, l[i].run_p50_us, l[i].run_p99_us, l[i].reply_p50_us,
               l[i].reply_p99_us, l[i].n_at_once);
    }
}

static void print_streams(const struct vxc_stats *s)
{
    for (size_t i = 0; i < s->n_streams; i++) {
        const struct vxc_stream_stats *t = &s->streams[i];
        printf("stream %016" PRIx64 " -> %s  %s, %s: received %" PRIu64 ", integrated %" PRIu64, t->id,
               t->map, t->sensor, t->open ? "open" : "closed", t->n_received, t->n_integrated);
        if (t->n_superseded > 0)
            printf(", superseded %" PRIu64, t->n_superseded);
        for (size_t k = 0; k < t->n_refused; k++)
            printf(", %s %" PRIu64, vx_err_name(t->refused[k].err), t->refused[k].n);
        putchar('\n');
    }
}

static void print_stats(const struct vxc_stats *s)
{
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];
    printf("%s, up %.1f s, %u sessions\n", s->server, (double)s->uptime_us * 1e-6, s->n_sessions);
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct vxc_device_stats *d = &s->devices[i];
        printf("device %s (%s): maps %s, scratch %s, cap %s", d->name, d->backend,
               cli_bytes(d->used_bytes, a), cli_bytes(d->scratch_bytes, b), cli_bytes(d->cap_bytes, c));
        printf(", peak %s\n", cli_bytes(d->peak_bytes, a));
    }
    for (size_t i = 0; i < s->n_maps; i++) {
        const struct vxc_map_stats *m = &s->maps[i];
        printf("map %s: epoch %" PRIu64 ", frames %" PRIu64 ", refused %" PRIu64
               ", voxels %s, %s, waiting %u frames %u requests\n",
               m->state.name, m->state.epoch, m->n_frames, m->n_refused, cli_count(m->n_voxels, a),
               cli_bytes(m->used_bytes, b), m->n_waiting_frames, m->n_waiting_requests);
        printf("  topology %s, values %s, keys %s", cli_bytes(m->memory.topology_bytes, a),
               cli_bytes(m->memory.values_bytes, b), cli_bytes(m->memory.table_bytes, c));
        printf(", held %s, retired %s, scratch %s\n", cli_bytes(m->memory.held_bytes, a),
               cli_bytes(m->memory.retired_bytes, b), cli_bytes(m->memory.scratch_bytes, c));
        print_latencies(m->latencies, m->n_latencies);
    }
    print_streams(s);
    if (s->n_latencies > 0)
        puts("whole daemon");
    print_latencies(s->latencies, s->n_latencies);
    for (size_t i = 0; i < s->n_errors; i++)
        printf("errors %s: %" PRIu64 "\n", vx_err_name(s->errors[i].err), s->errors[i].n);
    if (s->n_bad_messages > 0)
        printf("messages that ended a session: %" PRIu64 "\n", s->n_bad_messages);
}

int cmd_stats(struct cli *cli)
{
    struct vxc_stats *stats;
    struct vx_detail detail;
    bool done;
    int code = begin(cli, STATS_HELP, &done);
    if (done)
        return code;
    const vx_err err = vxc_get_stats(cli->client, &stats, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    if (cli->json)
        code = json_stats(stats);
    else
        print_stats(stats);
    vxc_stats_free(stats);
    return code;
}

/* ------------------------------------------------------------------ ping, shutdown */

int cmd_ping(struct cli *cli)
{
    uint64_t round_trip_us;
    struct vx_detail detail;
    bool done;
    const int code = begin(cli, PING_HELP, &done);
    if (done)
        return code;
    const vx_err err = vxc_ping(cli->client, &round_trip_us, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    if (!cli->json) {
        printf("%s answers in %" PRIu64 " us\n", vxc_server(cli->client), round_trip_us);
        return CLI_OK;
    }
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "server", vxc_server(cli->client));
    json_u64(&j, "round_trip_us", round_trip_us);
    json_end(&j, '}');
    return json_finish(&j);
}

int cmd_shutdown(struct cli *cli)
{
    struct vx_detail detail;
    bool done;
    const int code = begin(cli, SHUTDOWN_HELP, &done);
    if (done)
        return code;
    const vx_err err = vxc_shutdown(cli->client, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    if (!cli->json) {
        puts("the daemon finishes accepted frames and ends");
        return CLI_OK;
    }
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "done", "shutdown");
    json_end(&j, '}');
    return json_finish(&j);
}
