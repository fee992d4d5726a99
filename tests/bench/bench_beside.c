/*
 * bench_beside.c - batches of points while frames are integrated back to back, in one process.
 *
 * One thread integrates the workload's frames one behind the other, to and fro; the other asks for the
 * distance at N points of the map's box.  The field is brought up to date every --refresh-ms, as the daemon
 * does it between questions; that is timed apart.  The same questions before, with nothing beside them.
 * Before anything is printed: the map at rest gives the same answers twice, and some have a distance.  One
 * JSON line on stdout.
 */
#include "bench_frames.h"
#include "bench_util.h"
#include "vx/query.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *workload;
    struct vx_map_params map;
    struct vx_device_params device;
    double seconds, refresh_ms;
    uint64_t n_points, n_frames;
};

static const char USAGE[] = "usage: bench_beside --workload FILE [options]\n"
                            "  --workload FILE          VXWL file or dataset\n"
                            "  --voxel M                edge of a voxel (default 0.02)\n"
                            "  --backend cpu|cuda|guard (default cpu)   --device N   --threads N\n"
                            "  --frames N               of the workload (default 60)\n"
                            "  --points N               of a question (default 1000)\n"
                            "  --seconds S              measured, alone and beside (default 10)\n"
                            "  --refresh-ms MS          between updates of the field (default 20)\n";

struct fusion {
    struct vx_map *map;
    struct vx_frame *frame; /* [n], data in the device's host memory */
    size_t n;
    uint64_t n_done;
    pthread_mutex_t mutex; /* of what follows */
    bool stop;
    vx_err err;
    struct vx_detail detail;
};

static bool stopped(struct fusion *f)
{
    pthread_mutex_lock(&f->mutex);
    const bool is = f->stop;
    pthread_mutex_unlock(&f->mutex);
    return is;
}

static vx_err integrate(struct fusion *f, struct vx_detail *detail)
{
    const size_t turn = f->n > 1 ? 2 * (f->n - 1) : 1, at = (size_t)(f->n_done % turn);
    struct vx_frame frame = f->frame[at < f->n ? at : turn - at];
    struct vx_frame_result result;
    frame.stamp_ns = (int64_t)(f->n_done + 1) * 1000000;
    f->n_done++;
    return vx_map_integrate(f->map, &frame, &result, detail);
}

static void *fuse(void *context)
{
    struct fusion *f = context;
    struct vx_detail detail = {"", ""};
    vx_err err = VX_OK;
    while (err == VX_OK && !stopped(f))
        err = integrate(f, &detail);
    pthread_mutex_lock(&f->mutex);
    f->err = err;
    f->detail = detail;
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

static float fraction(uint32_t i)
{
    uint32_t h = (i + 1) * 2654435761u;
    h = (h ^ (h >> 15)) * 2246822519u;
    return (float)((h ^ h >> 13) >> 8) / 16777216.0f;
}

struct questions {
    struct vx_map *map;
    float *points; /* device's host memory, as are the answers */
    struct vx_point_answer *answers;
    uint32_t n;
    double origin_m[3];
};

static vx_err ask(const struct questions *q, const struct options *o, double seconds,
                  struct bench_samples *samples, struct bench_samples *refresh, struct vx_detail *detail)
{
    const double end = bench_now_ms() + seconds * 1e3;
    struct vx_query_options options = {.esdf_period_ns = (uint64_t)(o->refresh_ms * 1e6)};
    double refreshed = -1e30;
    for (double now; (now = bench_now_ms()) < end;) {
        if (now - refreshed >= o->refresh_ms) {
            options.now_ns = (uint64_t)(now * 1e6);
            VX_TRY_RET(vx_query_points(q->map, &options, q->origin_m, NULL, 0, NULL, NULL, detail));
            bench_samples_add(refresh, bench_now_ms() - now);
            refreshed = now = bench_now_ms();
        }
        VX_TRY_RET(vx_query_points(q->map, &options, q->origin_m, q->points, q->n, q->answers, NULL, detail));
        bench_samples_add(samples, bench_now_ms() - now);
    }
    return VX_OK;
}

/* How many answers of the map at rest have a distance; the same question twice has the same answer. */
static vx_err check(const struct questions *q, uint64_t *n_known, struct vx_detail *detail)
{
    const size_t bytes = q->n * sizeof *q->answers;
    struct vx_point_answer *first = malloc(bytes);
    vx_err err = first ? VX_OK : VX_E_NOMEM;
    VX_TRY(err);
    VX_TRY(vx_query_points(q->map, NULL, q->origin_m, q->points, q->n, q->answers, NULL, detail));
    memcpy(first, q->answers, bytes);
    VX_TRY(vx_query_points(q->map, NULL, q->origin_m, q->points, q->n, q->answers, NULL, detail));
    *n_known = 0;
    for (uint32_t i = 0; i < q->n; i++)
        *n_known += (first[i].status & VX_Q_DISTANCE) != 0;
    if (memcmp(first, q->answers, bytes) != 0 || !*n_known)
        err = vx_fail(detail, VX_E_INTERNAL, "points",
                      "%llu have a distance, and asked again they must get it", (unsigned long long)*n_known);
fail:
    free(first);
    return err;
}

static void print_samples(const char *name, struct bench_samples *s)
{
    printf(",\"%s_us\":{\"n\":%zu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"max\":%.1f}", name, s->count,
           1e3 * bench_quantile(s, 0.5), 1e3 * bench_quantile(s, 0.9), 1e3 * bench_quantile(s, 0.99),
           1e3 * bench_quantile(s, 1));
}

static vx_err measure(const struct options *o, struct vx_device *device, struct fusion *f,
                      struct questions *q, struct vx_detail *detail)
{
    struct bench_samples alone = {0}, beside = {0}, refresh[2] = {{0}, {0}};
    struct vx_device_stats stats;
    uint64_t n_known, n_before;
    pthread_t thread;
    vx_err err;
    VX_TRY(ask(q, o, o->seconds, &alone, &refresh[0], detail));
    n_before = f->n_done;
    if (pthread_create(&thread, NULL, fuse, f) != 0)
        VX_TRY(vx_fail(detail, VX_E_NOMEM, "", "no thread"));
    err = ask(q, o, o->seconds, &beside, &refresh[1], detail);
    pthread_mutex_lock(&f->mutex);
    f->stop = true;
    pthread_mutex_unlock(&f->mutex);
    pthread_join(thread, NULL);
    VX_TRY(err);
    if (f->err != VX_OK) {
        *detail = f->detail;
        err = f->err;
        goto fail;
    }
    VX_TRY(check(q, &n_known, detail));
    vx_device_get_stats(device, &stats);
    printf("{\"bench\":\"beside\",\"voxel_m\":%.9g,\"points\":%llu,\"frames_a_second\":%.1f,\"points_known\":"
           "%llu",
           o->map.voxel_size_m, (unsigned long long)o->n_points, (double)(f->n_done - n_before) / o->seconds,
           (unsigned long long)n_known);
    print_samples("alone", &alone);
    print_samples("beside", &beside);
    print_samples("refresh_alone", &refresh[0]);
    print_samples("refresh_beside", &refresh[1]);
    printf(",\"backend\":\"%s\",\"device\":", stats.backend);
    bench_json_string(stdout, stats.name);
    printf("}\n");
fail:
    bench_samples_fini(&alone);
    bench_samples_fini(&beside);
    bench_samples_fini(&refresh[0]);
    bench_samples_fini(&refresh[1]);
    return err;
}

/* Reads the frames into memory that copies run fastest from, and integrates each once. */
static vx_err load(const struct options *o, struct vx_device *device, struct fusion *f,
                   struct vx_detail *detail)
{
    const struct vxc_reader_options options = {.max_range_m = 0};
    struct vxc_reader *reader;
    vx_err err, why;
    f->frame = calloc(o->n_frames, sizeof *f->frame);
    if (!f->frame)
        return VX_E_NOMEM;
    VX_TRY_RET(vxc_reader_open(o->workload, &options, &reader, detail));
    while (f->n < o->n_frames) {
        struct vxc_frame read;
        enum vxc_step step;
        void *data;
        err = vxc_reader_next(reader, &read, &step, &why, detail);
        if (err != VX_OK || step == VXC_STEP_END)
            break;
        if (step == VXC_STEP_REFUSED)
            continue;
        VX_TRY(vx_device_alloc_host(device, read.data_bytes, &data));
        bench_frame_convert(&read, &vxc_reader_get_info(reader)->sensing, false, &f->frame[f->n]);
        f->frame[f->n++].data = memcpy(data, read.data, read.data_bytes);
    }
    if (err == VX_OK && (!f->n || f->frame[0].sensor != VX_DEPTH))
        err = vx_fail(detail, VX_E_INVALID, "workload", "depth frames are needed");
    for (size_t i = 0; err == VX_OK && i < f->n; i++)
        err = integrate(f, detail);
fail:
    vxc_reader_close(reader);
    return err;
}

static vx_err run(const struct options *o, struct vx_detail *detail)
{
    struct fusion f = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct questions q = {.n = (uint32_t)o->n_points};
    struct vx_device *device = NULL;
    struct vx_map_info info;
    void *points = NULL, *answers = NULL;
    vx_err err;
    VX_TRY(vx_device_open(&o->device, &device, detail));
    VX_TRY(vx_map_create(device, "bench", &o->map, &f.map, detail));
    VX_TRY(load(o, device, &f, detail));
    VX_TRY(vx_device_alloc_host(device, q.n * 3ull * sizeof(float), &points));
    VX_TRY(vx_device_alloc_host(device, q.n * sizeof *q.answers, &answers));
    VX_TRY(vx_map_get_info(f.map, &info));
    q.map = f.map;
    q.points = points;
    q.answers = answers;
    memcpy(q.origin_m, info.active_min_m, sizeof q.origin_m);
    for (uint32_t i = 0; i < 3 * q.n; i++)
        q.points[i] = (float)(info.active_max_m[i % 3] - info.active_min_m[i % 3]) * fraction(i);
    VX_TRY(measure(o, device, &f, &q, detail));
fail:
    for (size_t i = 0; i < f.n; i++)
        vx_device_free_host(device, (void *)f.frame[i].data);
    free(f.frame);
    if (device) {
        vx_device_free_host(device, points);
        vx_device_free_host(device, answers);
    }
    if (f.map)
        vx_map_destroy(f.map);
    if (device)
        vx_device_close(device);
    return err;
}

static bool parse_option(struct options *o, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--workload") == 0)
        return (o->workload = value)[0] != '\0';
    if (strcmp(name, "--voxel") == 0)
        return bench_parse_double(value, 1e-4, 10, &o->map.voxel_size_m);
    if (strcmp(name, "--backend") == 0)
        return bench_parse_backend(value, &o->device.backend);
    if (strcmp(name, "--frames") == 0)
        return bench_parse_uint(value, 10000, &o->n_frames) && o->n_frames;
    if (strcmp(name, "--points") == 0)
        return bench_parse_uint(value, 1000000, &o->n_points) && o->n_points;
    if (strcmp(name, "--seconds") == 0)
        return bench_parse_double(value, 0.1, 3600, &o->seconds);
    if (strcmp(name, "--refresh-ms") == 0)
        return bench_parse_double(value, 0.01, 1e6, &o->refresh_ms);
    if (strcmp(name, "--device") == 0 || strcmp(name, "--threads") == 0) {
        if (!bench_parse_uint(value, 4096, &n))
            return false;
        *(name[2] == 'd' ? &o->device.index : &o->device.n_threads) = (int)n;
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct options o = {
        .seconds = 10, .refresh_ms = 20, .n_points = 1000, .n_frames = 60, .device = {.backend = VXK_CPU}};
    struct vx_detail detail = {"", ""};
    vx_map_params_default(&o.map);
    o.map.voxel_size_m = 0.02;
    for (int i = 1; i < argc; i += 2)
        if (i + 1 >= argc || !parse_option(&o, argv[i], argv[i + 1])) {
            fputs(USAGE, stderr);
            return 2;
        }
    if (!o.workload) {
        fputs(USAGE, stderr);
        return 2;
    }
    const vx_err err = run(&o, &detail);
    if (err == VX_OK)
        return 0;
    fprintf(stderr, "bench_beside: %s: %s%s%s\n", vx_err_name(err), detail.field, detail.field[0] ? ": " : "",
            detail.text[0] ? detail.text : vx_err_text(err));
    return 1;
}
