/*
 * bench_streams.c - queries through the daemon while sensors stream into the same map.
 *
 * Starts a daemon of its own.  N threads each play the frames of a workload at a rate, to and fro, as live
 * sensors do (a newer frame may take the place of one that waits), into one map; another asks for the
 * distance at 1,000 points of its box, over ipc.  A first second is not counted.  Before anything is printed:
 * every answer held together (a distance within R, epochs that never fall, a state), points asked again once
 * the streams have ended get the same bytes, and some have a distance.  One JSON line on stdout; words on
 * stderr.
 */
#include "bench_util.h"
#include "voxeld/client.h"
#include "vxc_reader.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_STREAMS = 16, WARM_UP_MS = 1000, START_MS = 120000 };

struct options {
    const char *workload, *daemon, *backend;
    double voxel_m, seconds, rate_hz, query_rate_hz;
    uint64_t n_streams, n_points, n_frames;
    uint64_t spin_us, awake_ms;        /* of the asker; of the daemon */
    const char *query_cpu, *asker_cpu; /* NULL: any */
};

static const char USAGE[] =
    "usage: bench_streams --workload FILE [options]\n"
    "  --workload FILE     VXWL file or dataset whose frames all streams play\n"
    "  --daemon FILE       voxeld (default: beside this program)\n"
    "  --backend cpu|cuda|auto (default auto)\n"
    "  --voxel M           edge of a voxel (default 0.02)\n"
    "  --streams N         (default 4)      --rate HZ        frames a second of each (default 30)\n"
    "  --frames N          of the workload (default 60)\n"
    "  --points N          of a query (default 1000)\n"
    "  --query-rate HZ     queries a second; 0: the next at once (default 200)\n"
    "  --seconds S         measured (default 60)\n"
    "  --spin-us N         the asker looks for its answer without sleeping for so long (default 0)\n"
    "  --asker-cpu N       processor of the asker and of its ZeroMQ thread (default any)\n"
    "  --query-cpu N       the daemon's query_cpu (default any)\n"
    "  --awake-ms N        the daemon's query_awake_ms (default 0)\n";

static struct {
    struct options o;
    char dir[64]; /* the daemon's sockets */
    char config[96];
    struct vxc_sensing sensing;
    struct vxc_frame *frame; /* [n_frames], data of their own */
    size_t n_frames;
    double start_ms, end_ms; /* of what counts */
    pthread_mutex_t mutex;   /* of what follows */
    vx_err err;
    struct vx_detail why;
} run = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct stream {
    pthread_t thread;
    uint32_t index;
    uint64_t n_sent, n_integrated, n_superseded, n_refused, n_late;
    struct bench_samples ack; /* ms from sending to the epoch that holds the frame */
    double *sent_ms;          /* of the frame that `user` numbers */
    size_t capacity;
};
static struct stream streams[MOST_STREAMS];

static struct {
    pthread_t thread;
    struct bench_samples latency, behind, stale; /* ms, epochs, ms */
    uint64_t n_queries, n_known;
} asker;

static void fail(vx_err err, const struct vx_detail *why)
{
    pthread_mutex_lock(&run.mutex);
    if (run.err == VX_OK) {
        run.err = err;
        run.why = *why;
    }
    pthread_mutex_unlock(&run.mutex);
}
static bool failed(void)
{
    pthread_mutex_lock(&run.mutex);
    const bool is = run.err != VX_OK;
    pthread_mutex_unlock(&run.mutex);
    return is;
}

static void sleep_until(double at_ms)
{
    const struct timespec t = {(time_t)(at_ms / 1e3), (long)(fmod(at_ms, 1e3) * 1e6)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* ------------------------------------------------------------------ streams */

static void on_ack(void *context, const struct vxc_ack *ack)
{
    struct stream *s = context;
    const size_t i = (size_t)(uintptr_t)ack->user;
    const double now = bench_now_ms();
    s->n_integrated += ack->fate == VXC_INTEGRATED;
    s->n_superseded += ack->fate == VXC_SUPERSEDED;
    s->n_refused += ack->fate == VXC_REFUSED;
    if (ack->fate == VXC_REFUSED && ack->why)
        fprintf(stderr, "bench_streams: a frame was refused: %s\n", ack->why->text);
    if (ack->fate == VXC_INTEGRATED && s->sent_ms[i] >= run.start_ms)
        bench_samples_add(&s->ack, now - s->sent_ms[i]);
}

/* Frame k of a stream: to and fro, each stream from another place on. */
static const struct vxc_frame *frame_of(const struct stream *s, uint64_t k)
{
    const size_t turn = run.n_frames > 1 ? 2 * (run.n_frames - 1) : 1,
                 at = (size_t)(k + s->index * turn / run.o.n_streams) % turn;
    return &run.frame[at < run.n_frames ? at : turn - at];
}

static vx_err play(struct stream *s, struct vxc_client *client, struct vx_detail *detail)
{
    const struct vxc_stream_options options = {.sensing = run.sensing, .id = s->index + 1, .latest = true};
    const double period_ms = 1e3 / run.o.rate_hz,
                 first_ms = bench_now_ms() + period_ms * s->index / (double)run.o.n_streams;
    struct vxc_stream *stream;
    vx_err err;
    VX_TRY_RET(vxc_stream_open(client, "bench", &options, on_ack, s, &stream, detail));
    for (uint64_t k = 0; !failed() && k < s->capacity; k++) {
        struct vxc_frame f = *frame_of(s, k);
        const double due_ms = first_ms + period_ms * (double)k;
        if (due_ms >= run.end_ms)
            break;
        while (bench_now_ms() < due_ms) { /* acknowledgements meanwhile */
            const double left = due_ms - bench_now_ms();
            if (left > 1)
                VX_TRY(vxc_poll(client, (uint32_t)left, detail));
            else
                sleep_until(due_ms);
        }
        f.stamp_ns = (int64_t)(due_ms * 1e6);
        s->sent_ms[k] = bench_now_ms();
        s->n_late += s->sent_ms[k] > due_ms + period_ms;
        VX_TRY(vxc_stream_send(stream, &f, (void *)(uintptr_t)k, NULL, detail));
        s->n_sent++;
    }
    err = vxc_stream_flush(stream, detail);
fail:
    vxc_stream_close(stream);
    return err;
}

static void *stream_thread(void *context)
{
    struct stream *s = context;
    struct vx_detail detail = {"", ""};
    struct vxc_client *client;
    vx_err err = vxc_connect(run.dir, NULL, &client, &detail);
    if (err == VX_OK) {
        err = play(s, client, &detail);
        vxc_disconnect(client);
    }
    if (err != VX_OK)
        fail(err, &detail);
    return NULL;
}

/* ------------------------------------------------------------------ questions */

static float fraction(uint64_t i)
{
    uint32_t h = (uint32_t)(i + 1) * 2654435761u;
    h = (h ^ (h >> 15)) * 2246822519u;
    return (float)((h ^ h >> 13) >> 8) / 16777216.0f;
}

/* Points of the box that the map's measured voxels span; false while there is none. */
static vx_err make_points(struct vxc_client *client, double origin_m[3], float *points, bool *ready,
                          struct vx_detail *detail)
{
    struct vxc_map_info info;
    VX_TRY_RET(vxc_map_get_info(client, "bench", &info, detail));
    *ready = info.n_voxels > 1000;
    for (int a = 0; a < 3; a++)
        origin_m[a] = info.active_min_m[a];
    for (uint64_t i = 0; i < run.o.n_points; i++)
        for (int a = 0; a < 3; a++)
            points[3 * i + (uint64_t)a] =
                (float)(info.active_max_m[a] - info.active_min_m[a]) * fraction(3 * i + (uint64_t)a);
    return VX_OK;
}

static vx_err check(const struct vxc_point_answer *a, const struct vxc_map_state *state,
                    struct vxc_map_state *last, struct vx_detail *detail)
{
    for (uint64_t i = 0; i < run.o.n_points; i++) {
        const bool has = (a[i].status & VXC_Q_DISTANCE) != 0;
        asker.n_known += has;
        if (a[i].state > VXC_OCCUPIED || has == isnan(a[i].distance_m) ||
            (has && fabs((double)a[i].distance_m) > state->max_distance_m * 1.001))
            return vx_fail(detail, VX_E_INTERNAL, "answers", "answer %llu: distance %g, state %u, status %u",
                           (unsigned long long)i, (double)a[i].distance_m, a[i].state, a[i].status);
    }
    if (state->epoch < last->epoch || state->esdf_epoch < last->esdf_epoch ||
        state->esdf_epoch > state->epoch)
        return vx_fail(detail, VX_E_INTERNAL, "epoch", "from %llu to %llu, of the field %llu",
                       (unsigned long long)last->epoch, (unsigned long long)state->epoch,
                       (unsigned long long)state->esdf_epoch);
    *last = *state;
    return VX_OK;
}

static vx_err ask(struct vxc_client *client, const double origin_m[3], const float *points,
                  struct vxc_point_answer *answers, struct vx_detail *detail)
{
    const double period_ms = run.o.query_rate_hz > 0 ? 1e3 / run.o.query_rate_hz : 0;
    struct vxc_map_state state, last = {.epoch = 0};
    double due_ms = bench_now_ms();
    for (; !failed() && due_ms < run.end_ms; due_ms = fmax(due_ms + period_ms, bench_now_ms())) {
        if (period_ms > 0)
            sleep_until(due_ms);
        const double start = bench_now_ms();
        VX_TRY_RET(
            vxc_query_points(client, "bench", 0, origin_m, points, run.o.n_points, answers, &state, detail));
        const double took = bench_now_ms() - start;
        if (start >= run.start_ms) {
            bench_samples_add(&asker.latency, took);
            bench_samples_add(&asker.stale, (double)state.staleness_us / 1e3);
        }
        asker.n_queries++;
        VX_TRY_RET(check(answers, &state, &last, detail));
    }
    return VX_OK;
}

/* On the processor that was chosen for it. */
static vx_err pin_asker(struct vx_detail *detail)
{
    cpu_set_t here;
    if (!run.o.asker_cpu)
        return VX_OK;
    CPU_ZERO(&here);
    CPU_SET((size_t)atoi(run.o.asker_cpu), &here);
    if (pthread_setaffinity_np(pthread_self(), sizeof here, &here) != 0)
        return vx_fail(detail, VX_E_INVALID, "--asker-cpu", "no processor %s for this process",
                       run.o.asker_cpu);
    return VX_OK;
}

static void *ask_thread(void *context)
{
    struct vx_detail detail = {"", ""};
    struct vxc_client *client = NULL;
    float *points = malloc(run.o.n_points * 3 * sizeof *points);
    struct vxc_point_answer *answers = malloc(run.o.n_points * sizeof *answers);
    double origin_m[3];
    bool ready = false;
    vx_err err = points && answers ? VX_OK : VX_E_NOMEM;
    (void)context;
    const struct vxc_connect_options options = {.spin_us = (uint32_t)run.o.spin_us};
    VX_TRY(err);
    VX_TRY(pin_asker(&detail)); /* before the client, whose own thread stays with it then */
    VX_TRY(vxc_connect(run.dir, &options, &client, &detail));
    while (!ready && !failed()) {
        VX_TRY(make_points(client, origin_m, points, &ready, &detail));
        if (!ready && bench_now_ms() > run.end_ms)
            VX_TRY(vx_fail(&detail, VX_E_INTERNAL, "map", "no frame arrived in it"));
        sleep_until(bench_now_ms() + 5);
    }
    VX_TRY(ask(client, origin_m, points, answers, &detail));
fail:
    if (err != VX_OK)
        fail(err, &detail);
    if (client)
        vxc_disconnect(client);
    free(points);
    free(answers);
    return NULL;
}

/* With the map at rest: the same question twice has the same answer, of the newest epoch. */
static vx_err check_at_rest(struct vxc_client *client, struct vxc_map_info *info, struct vx_detail *detail)
{
    float *points = malloc(run.o.n_points * 3 * sizeof *points);
    struct vxc_point_answer *a = malloc(2 * run.o.n_points * sizeof *a);
    struct vxc_map_state state = {.epoch = 0};
    double origin_m[3];
    bool ready;
    vx_err err = points && a ? VX_OK : VX_E_NOMEM;
    VX_TRY(err);
    VX_TRY(make_points(client, origin_m, points, &ready, detail));
    VX_TRY(vxc_map_get_info(client, "bench", info, detail));
    for (int k = 0; k < 2; k++)
        VX_TRY(vxc_query_points(client, "bench", info->state.epoch, origin_m, points, run.o.n_points,
                                a + (size_t)k * run.o.n_points, &state, detail));
    asker.n_known = 0;
    for (uint64_t i = 0; i < run.o.n_points; i++)
        asker.n_known += (a[i].status & VXC_Q_DISTANCE) != 0;
    if (memcmp(a, a + run.o.n_points, run.o.n_points * sizeof *a) != 0 || state.epoch != info->state.epoch ||
        state.esdf_epoch != state.epoch || !asker.n_known)
        VX_TRY(vx_fail(detail, VX_E_INTERNAL, "answers", "at rest: epoch %llu of %llu, %llu points known",
                       (unsigned long long)state.epoch, (unsigned long long)info->state.epoch,
                       (unsigned long long)asker.n_known));
fail:
    free(points);
    free(a);
    return err;
}

/* ------------------------------------------------------------------ the daemon and the frames */

static vx_err write_config(struct vx_detail *detail)
{
    snprintf(run.config, sizeof run.config, "%s/bench.yaml", run.dir);
    FILE *f = fopen(run.config, "w");
    if (!f)
        return vx_fail(detail, VX_E_UNAVAILABLE, "", "no file for the daemon's configuration");
    fprintf(f, "query_cpu: %s\nquery_awake_ms: %llu\n", run.o.query_cpu ? run.o.query_cpu : "any",
            (unsigned long long)run.o.awake_ms);
    fclose(f);
    return VX_OK;
}

static vx_err start_daemon(const char *program, pid_t *pid, struct vxc_client **client,
                           struct vx_detail *detail)
{
    char beside[4096];
    strcpy(run.dir, "/tmp/bench_streams.XXXXXX");
    if (!mkdtemp(run.dir))
        return vx_fail(detail, VX_E_UNAVAILABLE, "", "no folder for the daemon's sockets");
    if (!run.o.daemon) {
        const char *slash = strrchr(program, '/');
        snprintf(beside, sizeof beside, "%.*svoxeld", slash ? (int)(slash + 1 - program) : 0, program);
        run.o.daemon = beside;
    }
    VX_TRY_RET(write_config(detail));
    *pid = fork();
    if (*pid == 0) {
        execl(run.o.daemon, "voxeld", "--config", run.config, "--ipc-dir", run.dir, "--backend",
              run.o.backend, (char *)NULL);
        fprintf(stderr, "bench_streams: cannot run %s\n", run.o.daemon);
        _exit(127);
    }
    for (const double end = bench_now_ms() + START_MS; bench_now_ms() < end;) {
        if (waitpid(*pid, NULL, WNOHANG) == *pid) {
            *pid = 0;
            return vx_fail(detail, VX_E_UNAVAILABLE, "", "the daemon ended");
        }
        if (vxc_connect(run.dir, NULL, client, detail) == VX_OK)
            return VX_OK;
        sleep_until(bench_now_ms() + 50);
    }
    return VX_E_UNAVAILABLE;
}

static void stop_daemon(pid_t pid)
{
    if (pid > 0 && kill(pid, SIGTERM) == 0)
        waitpid(pid, NULL, 0);
    unlink(run.config);
    rmdir(run.dir);
}

/* Reads the frames into memory of their own. */
static vx_err load(struct vx_detail *detail)
{
    const struct vxc_reader_options options = {.max_range_m = 0};
    struct vxc_reader *reader;
    vx_err err, why;
    VX_TRY_RET(vxc_reader_open(run.o.workload, &options, &reader, detail));
    run.sensing = vxc_reader_get_info(reader)->sensing;
    run.frame = calloc(run.o.n_frames, sizeof *run.frame);
    err = run.frame ? VX_OK : VX_E_NOMEM;
    while (err == VX_OK && run.n_frames < run.o.n_frames) {
        struct vxc_frame *f = &run.frame[run.n_frames];
        enum vxc_step step;
        VX_TRY(vxc_reader_next(reader, f, &step, &why, detail));
        if (step == VXC_STEP_END)
            break;
        if (step == VXC_STEP_REFUSED)
            continue;
        void *data = malloc(f->data_bytes);
        if (!data) {
            err = VX_E_NOMEM;
            break;
        }
        f->data = memcpy(data, f->data, f->data_bytes);
        run.n_frames++;
    }
    if (err == VX_OK && (!run.n_frames || run.frame[0].sensor != VXC_DEPTH))
        err = vx_fail(detail, VX_E_INVALID, "workload", "depth frames are needed");
fail:
    vxc_reader_close(reader);
    return err;
}

static vx_err measure(struct vxc_client *client, struct vxc_map_info *info, struct vx_detail *detail)
{
    const struct vxc_map_params params = {.voxel_size_m = run.o.voxel_m};
    const double total_s = run.o.seconds + WARM_UP_MS / 1e3;
    VX_TRY_RET(vxc_map_create(client, "bench", &params, NULL, detail));
    run.start_ms = bench_now_ms() + WARM_UP_MS;
    run.end_ms = run.start_ms + run.o.seconds * 1e3;
    for (uint32_t i = 0; i < run.o.n_streams; i++) {
        struct stream *s = &streams[i];
        s->index = i;
        s->capacity = (size_t)(total_s * run.o.rate_hz) + 2;
        s->sent_ms = calloc(s->capacity, sizeof *s->sent_ms);
        if (!s->sent_ms || pthread_create(&s->thread, NULL, stream_thread, s) != 0)
            return VX_E_NOMEM;
    }
    if (pthread_create(&asker.thread, NULL, ask_thread, NULL) != 0)
        return VX_E_NOMEM;
    pthread_join(asker.thread, NULL);
    for (uint32_t i = 0; i < run.o.n_streams; i++)
        pthread_join(streams[i].thread, NULL);
    if (run.err != VX_OK) {
        *detail = run.why;
        return run.err;
    }
    return check_at_rest(client, info, detail);
}

static void print_latency(const char *name, struct bench_samples *s)
{
    printf(",\"%s\":{\"n\":%zu,\"p50\":%.4f,\"p90\":%.4f,\"p99\":%.4f,\"max\":%.4f}", name, s->count,
           bench_quantile(s, 0.5), bench_quantile(s, 0.9), bench_quantile(s, 0.99), bench_quantile(s, 1));
}

/* Where the daemon's share of a kind of work went, in microseconds; the rest is the way to and fro. */
static void print_daemon(const struct vxc_stats *stats, const char *work)
{
    for (size_t i = 0; i < stats->n_latencies; i++) {
        const struct vxc_latency *l = &stats->latencies[i];
        if (strcmp(l->work, work) == 0)
            printf(",\"daemon_%s_us\":{\"n\":%llu,\"at_once\":%llu,\"all\":[%.0f,%.0f],\"wait\":[%.0f,%.0f],"
                   "\"run\":[%.0f,%.0f],\"reply\":[%.0f,%.0f]}",
                   work, (unsigned long long)l->n, (unsigned long long)l->n_at_once, l->p50_us, l->p99_us,
                   l->wait_p50_us, l->wait_p99_us, l->run_p50_us, l->run_p99_us, l->reply_p50_us,
                   l->reply_p99_us);
    }
}

static void print_figures(const struct vxc_map_info *info, const char *server, const struct vxc_stats *stats)
{
    struct stream sum = {.index = 0};
    for (uint32_t i = 0; i < run.o.n_streams; i++) {
        const struct stream *s = &streams[i];
        sum.n_sent += s->n_sent;
        sum.n_integrated += s->n_integrated;
        sum.n_superseded += s->n_superseded;
        sum.n_refused += s->n_refused;
        sum.n_late += s->n_late;
        for (size_t k = 0; k < s->ack.count; k++)
            bench_samples_add(&sum.ack, s->ack.value[k]);
    }
    printf("{\"bench\":\"streams\",\"workload\":");
    const char *slash = strrchr(run.o.workload, '/');
    bench_json_string(stdout, slash ? slash + 1 : run.o.workload);
    printf(
        ",\"voxel_m\":%.9g,\"streams\":%llu,\"rate_hz\":%.9g,\"seconds\":%.9g,\"points\":%llu,"
        "\"query_rate_hz\":%.9g,\"spin_us\":%llu,\"asker_cpu\":\"%s\",\"query_cpu\":\"%s\",\"awake_ms\":%llu,"
        "\"backend\":\"%s\",\"server\":",
        run.o.voxel_m, (unsigned long long)run.o.n_streams, run.o.rate_hz, run.o.seconds,
        (unsigned long long)run.o.n_points, run.o.query_rate_hz, (unsigned long long)run.o.spin_us,
        run.o.asker_cpu ? run.o.asker_cpu : "any", run.o.query_cpu ? run.o.query_cpu : "any",
        (unsigned long long)run.o.awake_ms, run.o.backend);
    bench_json_string(stdout, server);
    print_latency("query_ms", &asker.latency);
    print_latency("newest_frame_is_old_ms", &asker.stale);
    print_latency("frame_to_epoch_ms", &sum.ack);
    print_daemon(stats, "points");
    print_daemon(stats, "frame");
    printf(",\"frames\":{\"sent\":%llu,\"integrated\":%llu,\"superseded\":%llu,\"refused\":%llu,"
           "\"sent_late\":%llu},\"points_known\":%llu,\"epoch\":%llu,\"voxels\":%llu}\n",
           (unsigned long long)sum.n_sent, (unsigned long long)sum.n_integrated,
           (unsigned long long)sum.n_superseded, (unsigned long long)sum.n_refused,
           (unsigned long long)sum.n_late, (unsigned long long)asker.n_known,
           (unsigned long long)info->state.epoch, (unsigned long long)info->n_voxels);
    bench_samples_fini(&sum.ack);
}

static bool parse_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--workload") == 0)
        return (o->workload = value)[0] != '\0';
    if (strcmp(name, "--daemon") == 0)
        return (o->daemon = value)[0] != '\0';
    if (strcmp(name, "--backend") == 0)
        return (o->backend = value)[0] != '\0';
    if (strcmp(name, "--voxel") == 0)
        return bench_parse_double(value, 1e-4, 10, &o->voxel_m);
    if (strcmp(name, "--streams") == 0)
        return bench_parse_uint(value, MOST_STREAMS, &o->n_streams) && o->n_streams;
    if (strcmp(name, "--rate") == 0)
        return bench_parse_double(value, 0.1, 1000, &o->rate_hz);
    if (strcmp(name, "--frames") == 0)
        return bench_parse_uint(value, 10000, &o->n_frames) && o->n_frames;
    if (strcmp(name, "--points") == 0)
        return bench_parse_uint(value, 1000000, &o->n_points) && o->n_points;
    if (strcmp(name, "--query-rate") == 0)
        return bench_parse_double(value, 0, 1e5, &o->query_rate_hz);
    if (strcmp(name, "--spin-us") == 0)
        return bench_parse_uint(value, 1000000, &o->spin_us);
    if (strcmp(name, "--asker-cpu") == 0)
        return (o->asker_cpu = value)[0] != '\0';
    if (strcmp(name, "--query-cpu") == 0)
        return (o->query_cpu = value)[0] != '\0';
    if (strcmp(name, "--awake-ms") == 0)
        return bench_parse_uint(value, 60000, &o->awake_ms);
    if (strcmp(name, "--seconds") == 0)
        return bench_parse_double(value, 0.1, 3600, &o->seconds);
    return false;
}

int main(int argc, char **argv)
{
    struct vx_detail detail = {"", ""};
    struct vxc_client *client = NULL;
    struct vxc_stats *stats = NULL;
    struct vxc_map_info info;
    pid_t pid = 0;
    vx_err err;
    run.o = (struct options){.backend = "auto",
                             .voxel_m = 0.02,
                             .seconds = 60,
                             .rate_hz = 30,
                             .query_rate_hz = 200,
                             .n_streams = 4,
                             .n_points = 1000,
                             .n_frames = 60};
    for (int i = 1; i < argc; i += 2)
        if (i + 1 >= argc || !parse_option(&run.o, argv[i], argv[i + 1])) {
            fputs(USAGE, stderr);
            return 2;
        }
    if (!run.o.workload) {
        fputs(USAGE, stderr);
        return 2;
    }
    VX_TRY(load(&detail));
    VX_TRY(start_daemon(argv[0], &pid, &client, &detail));
    VX_TRY(measure(client, &info, &detail));
    VX_TRY(vxc_get_stats(client, &stats, &detail));
    print_figures(&info, vxc_server(client), stats);
fail:
    vxc_stats_free(stats);
    if (client)
        vxc_disconnect(client);
    if (run.dir[0])
        stop_daemon(pid);
    if (err == VX_OK)
        return 0;
    fprintf(stderr, "bench_streams: %s: %s%s%s\n", vx_err_name(err), detail.field,
            detail.field[0] ? ": " : "", detail.text[0] ? detail.text : vx_err_text(err));
    return 1;
}
