/*
 * bench_integrate.c - time of a frame, size and digest of the map that a dataset or a workload makes.
 *
 * Frames come from the reader that `voxelctl play` uses, with its defaults and stamps, so the digest is the
 * daemon's. A first, untimed pass validates: every frame is integrated or counted as refused, every reading
 * is accounted for, the map is not empty.  Each timed pass fills a new map and must come to the same digest.
 * The clock runs while vx_map_integrate does, that is from the frame in host memory to the published epoch:
 * memory of vx_device_alloc_host, which a receiver of frames fills while the frame before is integrated.
 * Reading files is not in it.  One JSON line on stdout; words on stderr.
 */
#include "bench_frames.h"
#include "bench_util.h"
#include "ply.h"
#include "vx/map.h"
#include "vx/mesh.h"
#include "vx/query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *workload, *mesh_path;
    struct vxc_reader_options reader;
    struct vx_map_params map;
    struct vx_device_params device;
    uint64_t repeat, far_copies;
    bool no_carving, esdf;
};

/* What one pass over the frames came to. */
struct pass {
    uint64_t n_integrated, n_refused, n_unreadable;
    uint64_t n_used, n_readings;
    uint64_t n_launches, n_waits;
    double cpu_ms;                /* of all threads, over all frames */
    uint64_t most_replaced_bytes; /* by one frame */
    uint64_t most_voxels;         /* after any frame */
    uint8_t digest[32];
    struct vx_map_info info;
};

static const char USAGE[] =
    "usage: bench_integrate --workload PATH [options]\n"
    "  --workload PATH          VXWL file, or any dataset that voxelctl play reads\n"
    "  --format NAME            auto (default), 7scenes, tum, kitti, replica, redwood, slambook, pcd, xyz32, "
    "vxwl\n"
    "  --poses FILE  --intrinsics FX,FY,CX,CY  --depth-scale UNITS_PER_M\n"
    "  --voxel M                edge of a voxel (default 0.05)\n"
    "  --mode tsdf|occupancy    (default tsdf)\n"
    "  --weighting inverse_square|constant  of depth images' readings (default inverse_square)\n"
    "  --truncation-voxels V    (default 3)\n"
    "  --esdf-max-distance M    (default 10 voxels)\n"
    "  --origin X,Y,Z           of the map (default 0,0,0)\n"
    "  --backend cpu|cuda|guard (default cpu)   --device N   --threads N\n"
    "  --pool-cap BYTES         hard cap of the device's pool (default three quarters of what is free)\n"
    "  --frames N               only the first N frames\n"
    "  --min-range M  --max-range M  --no-carving\n"
    "  --half-life S            the map decays (default 0: it does not)\n"
    "  --forget M               it forgets what is farther from the sensor (default 0: nothing)\n"
    "  --weights PATTERN  --weight-white V  --deskew auto|on|off   as voxelctl play\n"
    "  --colour  --label        a map with them; made-up ones where the workload has none\n"
    "  --repeat K               timed passes (default 1; 0: validate only, times are 0)\n"
    "  --far-copies K           the same frames K times elsewhere in the map before (default 0)\n"
    "  --mesh FILE.ply          mesh the map, time it, write it\n"
    "  --esdf                   time the distance field and batches of 1000 points\n";

static bool parse_option(struct options *o, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--workload") == 0)
        return (o->workload = value)[0] != '\0';
    if (strcmp(name, "--mesh") == 0)
        return (o->mesh_path = value)[0] != '\0';
    if (strcmp(name, "--format") == 0)
        return (o->reader.format = vxc_format_from_name(value)) != VXC_N_FORMATS;
    if (strcmp(name, "--poses") == 0)
        return (o->reader.poses_path = value)[0] != '\0';
    if (strcmp(name, "--intrinsics") == 0)
        return o->reader.has_intrinsics = bench_parse_list(value, 4, o->reader.intrinsics);
    if (strcmp(name, "--depth-scale") == 0)
        return bench_parse_double(value, 1e-6, 1e9, &o->reader.depth_units_per_m);
    if (strcmp(name, "--deskew") == 0)
        return vxc_deskew_from_name(value, &o->reader.deskew);
    if (strcmp(name, "--weights") == 0)
        return (o->reader.weights = value)[0] != '\0';
    if (strcmp(name, "--weight-white") == 0)
        return bench_parse_double(value, 1, 1e9, &o->reader.weight_white);
    if (strcmp(name, "--min-range") == 0)
        return bench_parse_double(value, 0, 1e4, &o->reader.min_range_m);
    if (strcmp(name, "--max-range") == 0)
        return bench_parse_double(value, 1e-3, 1e4, &o->reader.max_range_m);
    if (strcmp(name, "--frames") == 0)
        return bench_parse_uint(value, UINT32_MAX, &o->reader.max_frames) && o->reader.max_frames > 0;
    if (strcmp(name, "--voxel") == 0)
        return bench_parse_double(value, 1e-6, 1e6, &o->map.voxel_size_m);
    if (strcmp(name, "--mode") == 0) {
        o->map.mode = strcmp(value, "occupancy") == 0 ? VX_OCCUPANCY : VX_TSDF;
        return o->map.mode == VX_OCCUPANCY || strcmp(value, "tsdf") == 0;
    }
    if (strcmp(name, "--weighting") == 0) {
        o->map.weighting = strcmp(value, "constant") == 0 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE;
        return o->map.weighting == VX_WEIGHT_CONSTANT || strcmp(value, "inverse_square") == 0;
    }
    if (strcmp(name, "--truncation-voxels") == 0)
        return bench_parse_double(value, 0, 1e3, &o->map.truncation_voxels);
    if (strcmp(name, "--half-life") == 0)
        return bench_parse_double(value, 0, 1e5, &o->map.half_life_s);
    if (strcmp(name, "--forget") == 0)
        return bench_parse_double(value, 0, 1e6, &o->map.forget_radius_m);
    if (strcmp(name, "--esdf-max-distance") == 0)
        return bench_parse_double(value, 0, 1e6, &o->map.esdf_max_distance_m);
    if (strcmp(name, "--origin") == 0)
        return bench_parse_list(value, 3, o->map.origin_m);
    if (strcmp(name, "--backend") == 0)
        return bench_parse_backend(value, &o->device.backend);
    if (strcmp(name, "--device") == 0)
        return bench_parse_uint(value, 1023, &n) && ((o->device.index = (int)n), true);
    if (strcmp(name, "--threads") == 0)
        return bench_parse_uint(value, 4096, &n) && ((o->device.n_threads = (int)n), true);
    if (strcmp(name, "--pool-cap") == 0)
        return bench_parse_uint(value, UINT64_MAX, &o->device.cap_bytes);
    if (strcmp(name, "--far-copies") == 0)
        return bench_parse_uint(value, 1000, &o->far_copies);
    if (strcmp(name, "--repeat") == 0)
        return bench_parse_uint(value, 10000, &o->repeat);
    return false;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-carving") == 0) {
            o->no_carving = true;
        } else if (strcmp(argv[i], "--colour") == 0) {
            o->map.colour = true;
        } else if (strcmp(argv[i], "--label") == 0) {
            o->map.label = true;
        } else if (strcmp(argv[i], "--esdf") == 0) {
            o->esdf = true;
        } else {
            const char *value = i + 1 < argc ? argv[i + 1] : "";
            if (!parse_option(o, argv[i], value)) {
                fprintf(stderr, "bench_integrate: bad option %s %s\n", argv[i], value);
                return false;
            }
            i++;
        }
    }
    if (!o->workload)
        fputs("bench_integrate: --workload is missing\n", stderr);
    return o->workload != NULL;
}

static uint64_t count_sum(const struct vx_frame_counts *c)
{
    return c->used + c->no_return + c->zero + c->negative + c->nan + c->saturated + c->too_near + c->outside;
}

/* Where frames are staged; grows. */
struct stage {
    struct vx_device *device;
    void *ptr;
    uint64_t bytes;
    uint8_t *channels; /* made-up colours [readings][3], then labels [readings] */
    uint64_t readings;
};

/* Copies the payload into staging memory. */
static vx_err stage_frame(struct stage *stage, struct vx_frame *frame)
{
    if (stage->bytes < frame->data_bytes) {
        vx_device_free_host(stage->device, stage->ptr);
        *stage = (struct stage){.device = stage->device};
        VX_TRY_RET(vx_device_alloc_host(stage->device, frame->data_bytes, &stage->ptr));
        stage->bytes = frame->data_bytes;
    }
    if (frame->data_bytes)
        memcpy(stage->ptr, frame->data, frame->data_bytes);
    frame->data = stage->ptr;
    return VX_OK;
}

/* Colours and labels for maps that want them: stripes, the same in every frame. */
static vx_err stage_channels(struct stage *stage, const struct options *o, struct vx_frame *frame)
{
    const uint64_t n = (uint64_t)frame->width * frame->height;
    if (!o->map.colour && !o->map.label)
        return VX_OK;
    if (stage->readings < n) {
        vx_device_free_host(stage->device, stage->channels);
        stage->channels = NULL;
        stage->readings = 0;
        VX_TRY_RET(vx_device_alloc_host(stage->device, n * 4, (void **)&stage->channels));
        stage->readings = n;
        for (uint64_t i = 0; i < 3 * n; i++)
            stage->channels[i] = (uint8_t)(i * 7 >> 4);
        for (uint64_t i = 0; i < n; i++)
            stage->channels[3 * n + i] = (uint8_t)(1 + (i >> 6) % 20);
    }
    if (o->map.colour && frame->colour && n)
        memcpy(stage->channels, frame->colour, 3 * n);
    frame->colour = o->map.colour ? stage->channels : NULL;
    if (o->map.label)
        frame->label = stage->channels + 3 * stage->readings;
    return VX_OK;
}

/* Feeds every frame of the reader to the map, moved by away_m along y.  samples may be NULL: nothing is
 * timed. */
static vx_err feed(struct vx_map *map, struct vxc_reader *reader, const struct options *o, double away_m,
                   struct stage *stage, struct pass *pass, struct bench_samples *samples,
                   struct vx_detail *detail)
{
    for (;;) {
        struct vxc_frame read;
        struct vx_frame frame;
        struct vx_frame_result result;
        enum vxc_step step;
        vx_err why = VX_OK;
        VX_TRY_RET(vxc_reader_next(reader, &read, &step, &why, detail));
        if (step == VXC_STEP_END)
            return VX_OK;
        if (step == VXC_STEP_REFUSED) {
            pass->n_unreadable++;
            continue;
        }
        bench_frame_convert(&read, &vxc_reader_get_info(reader)->sensing, o->no_carving, &frame);
        for (uint32_t i = 0; i < frame.n_poses; i++)
            frame.pose[i].position_m[1] += away_m;
        VX_TRY_RET(stage_frame(stage, &frame));
        VX_TRY_RET(stage_channels(stage, o, &frame));
        const double start_cpu = bench_cpu_ms(), start = bench_now_ms();
        const vx_err err = vx_map_integrate(map, &frame, &result, detail);
        const double elapsed = bench_now_ms() - start;
        pass->cpu_ms += bench_cpu_ms() - start_cpu;
        if (err == VX_E_DEVICE || err == VX_E_NOMEM)
            return err;
        if (err != VX_OK) {
            if (pass->n_refused++ == 0)
                fprintf(stderr, "bench_integrate: frame %s refused: %s (%s)\n", read.name, detail->text,
                        vx_err_name(err));
            continue;
        }
        if (samples)
            bench_samples_add(samples, elapsed);
        const uint64_t readings = (uint64_t)frame.width * frame.height;
        if (count_sum(&result.counts) != readings)
            return vx_fail(detail, VX_E_INTERNAL, "counts",
                           "frame %s has %llu readings, but %llu were counted", read.name,
                           (unsigned long long)readings, (unsigned long long)count_sum(&result.counts));
        VX_TRY_RET(vx_map_get_info(map, &pass->info));
        if (pass->info.n_voxels > pass->most_voxels)
            pass->most_voxels = pass->info.n_voxels;
        pass->n_integrated++;
        pass->n_used += result.counts.used;
        if (result.replaced_bytes > pass->most_replaced_bytes)
            pass->most_replaced_bytes = result.replaced_bytes;
        pass->n_launches += result.n_launches;
        pass->n_waits += result.n_waits;
        pass->n_readings += readings;
    }
}

/* Farther than any workload reaches. */
#define FAR_M 1000.0

/* One pass into a new map (far copies first, not timed), which stays with the caller when `keep` is given. */
static vx_err run_pass(struct vx_device *device, const struct options *o, struct pass *pass,
                       struct bench_samples *samples, struct vx_map **keep, struct vx_detail *detail)
{
    struct vx_map *map = NULL;
    struct vxc_reader *reader = NULL;
    struct stage stage = {.device = device};
    vx_err err;
    VX_TRY(vx_map_create(device, "bench", &o->map, &map, detail));
    for (uint64_t copy = o->far_copies;; copy--) {
        *pass = (struct pass){0};
        VX_TRY(vxc_reader_open(o->workload, &o->reader, &reader, detail));
        vxc_reader_use_colour(reader, o->map.colour);
        VX_TRY(feed(map, reader, o, (double)copy * FAR_M, &stage, pass, copy ? NULL : samples, detail));
        vxc_reader_close(reader);
        reader = NULL;
        if (!copy)
            break;
    }
    VX_TRY(vx_map_digest(map, pass->digest, NULL));
    VX_TRY(vx_map_get_info(map, &pass->info));
    if (pass->info.n_frames != pass->n_integrated * (o->far_copies + 1))
        VX_TRY(vx_fail(detail, VX_E_INTERNAL, "n_frames", "the map counts %llu frames of %llu integrated",
                       (unsigned long long)pass->info.n_frames,
                       (unsigned long long)(pass->n_integrated * (o->far_copies + 1))));
    if (pass->n_integrated == 0 || pass->info.n_voxels == 0)
        VX_TRY(vx_fail(detail, VX_E_INVALID, "workload",
                       "the map stayed empty: %llu frames integrated, %llu "
                       "refused, %llu unreadable",
                       (unsigned long long)pass->n_integrated, (unsigned long long)pass->n_refused,
                       (unsigned long long)pass->n_unreadable));
    if (keep) {
        *keep = map;
        map = NULL;
    }
    err = VX_OK;
fail:
    if (map)
        vx_map_destroy(map);
    vx_device_free_host(device, stage.ptr);
    vx_device_free_host(device, stage.channels);
    vxc_reader_close(reader);
    return err;
}

/* Figures of --mesh and --esdf. */
struct extras {
    double mesh_ms;
    uint32_t n_vertices, n_triangles;
    double esdf_cold_ms, query_p50_us, query_p99_us;
};

static vx_err write_mesh(const char *path, const struct vx_mesh *mesh, struct vx_detail *detail)
{
    struct vxc_mesh out = {.n_vertices = mesh->n_vertices,
                           .n_triangles = mesh->n_triangles,
                           .vertices = mesh->vertices,
                           .normals = mesh->normals,
                           .triangles = mesh->triangles};
    memcpy(out.origin_m, mesh->origin_m, sizeof out.origin_m);
    FILE *file = fopen(path, "wb");
    if (!file)
        return vx_fail(detail, VX_E_UNAVAILABLE, "mesh", "cannot write %s: %s", path, strerror(errno));
    const vx_err err = ply_write(file, &out, false, detail);
    if (fclose(file) != 0 && err == VX_OK)
        return vx_fail(detail, VX_E_UNAVAILABLE, "mesh", "cannot write %s: %s", path, strerror(errno));
    return err;
}

static vx_err time_mesh(struct vx_map *map, const char *path, struct extras *extras, struct vx_detail *detail)
{
    struct vx_query_options options = {0};
    struct vx_reply reply;
    struct vx_mesh mesh;
    const double start = bench_now_ms();
    VX_TRY_RET(vx_mesh_extract(map, &options, 0, &mesh, &reply, detail));
    extras->mesh_ms = bench_now_ms() - start;
    extras->n_vertices = mesh.n_vertices;
    extras->n_triangles = mesh.n_triangles;
    const vx_err err = write_mesh(path, &mesh, detail);
    vx_mesh_fini(&mesh);
    return err;
}

enum { BATCH = 1000, N_BATCHES = 200 };

/* Deterministic point inside the bounds, number `i`. */
static void sample_point(const struct vx_map_info *info, uint32_t i, float out[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        uint32_t h = (3 * i + a + 1) * 2654435761u;
        h = (h ^ (h >> 15)) * 2246822519u;
        h ^= h >> 13;
        out[a] = (float)((info->bounds_max_m[a] - info->bounds_min_m[a]) * (h / 4294967296.0));
    }
}

static vx_err time_esdf(struct vx_map *map, const struct vx_map_info *info, struct extras *extras,
                        struct vx_detail *detail)
{
    static float points[3 * BATCH];
    static struct vx_point_answer answers[BATCH];
    struct vx_query_options options = {0};
    struct vx_reply reply;
    struct bench_samples samples = {0};
    uint32_t n_defined = 0;
    vx_err err;
    sample_point(info, 0, points);
    const double cold = bench_now_ms();
    VX_TRY(vx_query_points(map, &options, info->bounds_min_m, points, 1, answers, &reply, detail));
    extras->esdf_cold_ms = bench_now_ms() - cold;
    for (uint32_t b = 0; b < N_BATCHES; b++) {
        for (uint32_t i = 0; i < BATCH; i++)
            sample_point(info, b * BATCH + i, points + 3 * i);
        const double start = bench_now_ms();
        VX_TRY(vx_query_points(map, &options, info->bounds_min_m, points, BATCH, answers, &reply, detail));
        bench_samples_add(&samples, (bench_now_ms() - start) * 1e3);
        for (uint32_t i = 0; i < BATCH; i++)
            n_defined += (answers[i].status & VX_Q_DISTANCE) != 0;
    }
    if (n_defined == 0)
        VX_TRY(vx_fail(detail, VX_E_INTERNAL, "esdf", "no point of %d has a distance", BATCH * N_BATCHES));
    extras->query_p50_us = bench_quantile(&samples, 0.5);
    extras->query_p99_us = bench_quantile(&samples, 0.99);
    err = samples.failed ? VX_E_NOMEM : VX_OK;
fail:
    bench_samples_fini(&samples);
    return err;
}

static void print_facts(const struct options *o, const struct vx_device_stats *stats, const struct pass *pass,
                        struct bench_samples *samples)
{
    char digest[65];
    bench_hex(pass->digest, 32, digest);
    const double median = bench_quantile(samples, 0.5);
    const char *slash = strrchr(o->workload, '/');
    printf("{\"bench\":\"integrate\",\"workload\":");
    bench_json_string(stdout, slash && slash[1] ? slash + 1 : o->workload);
    printf(",\"voxel_m\":%.9g,\"mode\":\"%s\",\"frames\":%llu,\"refused\":%llu,\"unreadable\":%llu,\"used\":%"
           "llu,"
           "\"readings\":%llu,\"mean_ms\":%.4f,\"mean_cpu_ms\":%.4f,\"median_ms\":%.4f,\"p99_ms\":%.4f,\"p99_"
           "over_median\":%.3f,"
           "\"voxels\":%llu,\"most_voxels\":%llu,\"leaves\":"
           "%llu,"
           "\"tiles\":%llu,\"chunks\":%llu,\"used_bytes\":%llu,\"peak_bytes\":%llu,\"bytes_per_voxel\":%.4f,"
           "\"far_copies\":%llu,\"launches_a_frame\":%.2f,\"waits_a_frame\":%.2f,"
           "\"digest\":\"%s\",\"backend\":\"%s\",\"device\":",
           o->map.voxel_size_m, o->map.mode == VX_TSDF ? "tsdf" : "occupancy",
           (unsigned long long)pass->n_integrated, (unsigned long long)pass->n_refused,
           (unsigned long long)pass->n_unreadable, (unsigned long long)pass->n_used,
           (unsigned long long)pass->n_readings, bench_mean(samples),
           pass->cpu_ms / (double)pass->n_integrated, median, bench_quantile(samples, 0.99),
           median > 0 ? bench_quantile(samples, 0.99) / median : 0, (unsigned long long)pass->info.n_voxels,
           (unsigned long long)pass->most_voxels, (unsigned long long)pass->info.n_leaves,
           (unsigned long long)pass->info.n_tiles, (unsigned long long)pass->info.n_chunks,
           (unsigned long long)pass->info.used_bytes, (unsigned long long)stats->peak_bytes,
           pass->info.bytes_per_voxel, (unsigned long long)o->far_copies,
           (double)pass->n_launches / (double)pass->n_integrated,
           (double)pass->n_waits / (double)pass->n_integrated, digest, stats->backend);
    bench_json_string(stdout, stats->name);
    printf(",\"version\":\"%s\"", VOXELD_VERSION);
}

/*
 * The whole pool, growth ahead and scratch included, against the map, and against the map and 1.1 times the
 * most that one frame replaced; what later passes over the same frames asked of the driver and added to the
 * pool.
 */
static void print_memory(const struct vx_device_stats *first, const struct vx_device_stats *stats,
                         const struct pass *pass)
{
    const double map = (double)pass->info.used_bytes;
    printf(",\"replaced_bytes\":%llu,\"peak_over_map\":%.4f,\"peak_over_bound\":%.4f,\"allocs\":%llu,"
           "\"allocs_later\":%llu,\"peak_growth_later_bytes\":%lld",
           (unsigned long long)pass->most_replaced_bytes, (double)stats->peak_bytes / map,
           (double)stats->peak_bytes / (map + 1.1 * (double)pass->most_replaced_bytes),
           (unsigned long long)stats->n_allocs, (unsigned long long)(stats->n_allocs - first->n_allocs),
           (long long)(stats->peak_bytes - first->peak_bytes));
}

static void print_extras(const struct options *o, const struct extras *e)
{
    if (o->mesh_path)
        printf(",\"mesh_ms\":%.4f,\"vertices\":%u,\"triangles\":%u", e->mesh_ms, e->n_vertices,
               e->n_triangles);
    if (o->esdf)
        printf(",\"esdf_cold_ms\":%.4f,\"query_1000_p50_us\":%.2f,\"query_1000_p99_us\":%.2f",
               e->esdf_cold_ms, e->query_p50_us, e->query_p99_us);
}

static vx_err run(const struct options *o, struct vx_detail *detail)
{
    struct vx_device *device = NULL;
    struct vx_map *map = NULL;
    struct bench_samples samples = {0};
    struct vx_device_stats stats;
    struct pass validated, timed;
    struct vx_device_stats first;
    struct extras extras = {0};
    vx_err err;
    VX_TRY(vx_device_open(&o->device, &device, detail));
    VX_TRY(run_pass(device, o, &validated, NULL, o->repeat ? NULL : &map, detail));
    timed = validated;
    vx_device_get_stats(device, &first);
    for (uint64_t k = 0; k < o->repeat; k++) {
        VX_TRY(run_pass(device, o, &timed, &samples, k + 1 == o->repeat ? &map : NULL, detail));
        if (memcmp(timed.digest, validated.digest, 32) != 0)
            VX_TRY(vx_fail(detail, VX_E_INTERNAL, "digest",
                           "two passes over the same frames made different maps"));
    }
    if (samples.failed)
        VX_TRY(VX_E_NOMEM);
    vx_device_get_stats(device, &stats);
    if (o->mesh_path)
        VX_TRY(time_mesh(map, o->mesh_path, &extras, detail));
    if (o->esdf)
        VX_TRY(time_esdf(map, &timed.info, &extras, detail));
    print_facts(o, &stats, &timed, &samples);
    print_memory(&first, &stats, &timed);
    print_extras(o, &extras);
    printf("}\n");
    err = fflush(stdout) == 0 ? VX_OK : vx_fail(detail, VX_E_UNAVAILABLE, "", "stdout: %s", strerror(errno));
fail:
    bench_samples_fini(&samples);
    if (map)
        vx_map_destroy(map);
    if (device)
        vx_device_close(device);
    return err;
}

int main(int argc, char **argv)
{
    struct options o = {.repeat = 1, .device = {.backend = VXK_CPU}};
    struct vx_detail detail = {"", ""};
    vx_map_params_default(&o.map);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(USAGE, stdout);
        return 0;
    }
    if (!parse_options(argc, argv, &o)) {
        fputs(USAGE, stderr);
        return 2;
    }
    const vx_err err = run(&o, &detail);
    if (err != VX_OK) {
        fprintf(stderr, "bench_integrate: %s: %s%s%s\n", vx_err_name(err), detail.field,
                detail.field[0] ? ": " : "", detail.text[0] ? detail.text : vx_err_text(err));
        return 1;
    }
    return 0;
}
