/*
 * bench_field.c - time of the distance field, the mesh and the queries on the map that a workload makes.
 *
 * Frames are integrated outside the clock; after every N of them the field and the mesh are brought up to
 * date. Then: the field anew, again without a change, the mesh anew, 1 M points, batches of 1,000 points.
 * Before anything is printed, the updated field must have the digest of the rebuilt one, and a mesh and the
 * points answers that repeat.  One JSON line on stdout; words on stderr.  Uses core's internal headers: the
 * field has no public call of its own.
 */
#include "bench_frames.h"
#include "bench_util.h"
#include "field_view.h"
#include "path_reference.h"
#include "vx/mesh.h"
#include "vx/planning.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

enum { MANY = 1000000, FEW = 1000, N_PATHS = 1000, N_WAYPOINTS = 32, N_SPHERES = 64 };

struct options {
    const char *workload;
    struct vxc_reader_options reader;
    struct vx_map_params map;
    struct vx_device_params device;
    uint64_t every, repeat, batches;
};

struct figures {
    struct bench_samples update, cold, same, mesh, mesh_update, many, few, paths[3], clear[3];
    uint64_t n_touching, n_clear, n_frames, n_leaves, n_triangles, field_bytes, n_known;
    uint64_t digest;
    uint64_t mesh_epoch, mesh_cells, mesh_bytes; /* of the last mesh_update */
};

static const char USAGE[] = "usage: bench_field --workload FILE [options]\n"
                            "  --workload FILE          VXWL file or dataset\n"
                            "  --voxel M                edge of a voxel (default 0.05)\n"
                            "  --mode tsdf|occupancy    (default tsdf)\n"
                            "  --esdf-max-distance M    (default 10 voxels)\n"
                            "  --backend cpu|cuda|guard (default cpu)   --device N   --threads N\n"
                            "  --pool-cap BYTES         hard cap of the device's pool\n"
                            "  --frames N               only the first N frames\n"
                            "  --max-range M\n"
                            "  --every N                frames between updates (default 10)\n"
                            "  --repeat K               of what is done on the finished map (default 7)\n"
                            "  --batches N              of 1,000 points (default 2000)\n";

static bool parse_option(struct options *o, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--workload") == 0)
        return (o->workload = value)[0] != '\0';
    if (strcmp(name, "--voxel") == 0)
        return bench_parse_double(value, 1e-6, 1e6, &o->map.voxel_size_m);
    if (strcmp(name, "--esdf-max-distance") == 0)
        return bench_parse_double(value, 0, 1e6, &o->map.esdf_max_distance_m);
    if (strcmp(name, "--max-range") == 0)
        return bench_parse_double(value, 1e-3, 1e4, &o->reader.max_range_m);
    if (strcmp(name, "--frames") == 0)
        return bench_parse_uint(value, UINT32_MAX, &o->reader.max_frames) && o->reader.max_frames > 0;
    if (strcmp(name, "--every") == 0)
        return bench_parse_uint(value, UINT32_MAX, &o->every) && o->every > 0;
    if (strcmp(name, "--repeat") == 0)
        return bench_parse_uint(value, 1000, &o->repeat) && o->repeat > 0;
    if (strcmp(name, "--batches") == 0)
        return bench_parse_uint(value, 1000000, &o->batches) && o->batches > 0;
    if (strcmp(name, "--pool-cap") == 0)
        return bench_parse_uint(value, UINT64_MAX, &o->device.cap_bytes);
    if (strcmp(name, "--backend") == 0)
        return bench_parse_backend(value, &o->device.backend);
    if (strcmp(name, "--mode") == 0) {
        o->map.mode = strcmp(value, "occupancy") == 0 ? VX_OCCUPANCY : VX_TSDF;
        return o->map.mode == VX_OCCUPANCY || strcmp(value, "tsdf") == 0;
    }
    if (strcmp(name, "--device") == 0 || strcmp(name, "--threads") == 0) {
        if (!bench_parse_uint(value, 4096, &n))
            return false;
        *(name[2] == 'd' ? &o->device.index : &o->device.n_threads) = (int)n;
        return true;
    }
    return false;
}

/* Brings the field to the newest epoch and says how long it took; from nothing with `anew`. */
static vx_err refresh(struct vx_map *map, bool anew, struct bench_samples *samples, struct figures *f,
                      struct vx_detail *detail)
{
    struct field_view v;
    VX_TRY_RET(field_view_open(map, anew, &v, detail));
    bench_samples_add(samples, v.refresh_ms);
    f->n_leaves = v.e->n_leaves;
    f->field_bytes = v.e->bytes;
    const vx_err err = vx__esdf_digest(map, v.rs, &f->digest);
    field_view_close(map, &v);
    return err;
}

static vx_err time_mesh(struct vx_map *map, struct bench_samples *samples, struct figures *f,
                        struct vx_detail *detail)
{
    struct vx_mesh mesh;
    const double start = bench_now_ms();
    VX_TRY_RET(vx_mesh_extract(map, NULL, 0, &mesh, NULL, detail));
    bench_samples_add(samples, bench_now_ms() - start);
    f->n_triangles = mesh.n_triangles;
    vx_mesh_fini(&mesh);
    return VX_OK;
}

/* Chunk by chunk, what changed since the last time. */
static vx_err time_mesh_update(struct vx_map *map, struct figures *f, struct vx_detail *detail)
{
    const struct vx_mesh_since since = {.epoch = f->mesh_epoch};
    struct vx_mesh_chunks chunks;
    struct vx_reply reply;
    const double start = bench_now_ms();
    VX_TRY_RET(vx_mesh_get_chunks(map, NULL, &since, &chunks, &reply, detail));
    bench_samples_add(&f->mesh_update, bench_now_ms() - start);
    f->mesh_epoch = reply.epoch;
    f->mesh_cells = chunks.n_cells;
    f->mesh_bytes = chunks.body_bytes;
    vx_mesh_chunks_fini(&chunks);
    return VX_OK;
}

static vx_err feed(struct vx_map *map, struct vxc_reader *reader, const struct options *o, struct figures *f,
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
        if (step == VXC_STEP_REFUSED)
            continue;
        bench_frame_convert(&read, &vxc_reader_get_info(reader)->sensing, false, &frame);
        VX_TRY_RET(vx_map_integrate(map, &frame, &result, detail));
        if (++f->n_frames % o->every == 0) {
            VX_TRY_RET(refresh(map, false, &f->update, f, detail));
            VX_TRY_RET(time_mesh_update(map, f, detail));
        }
    }
}

/* Deterministic point inside the box of active voxels, number `i`. */
static void sample_point(const struct vx_map_info *info, uint32_t i, float out[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        uint32_t h = (3 * i + a + 1) * 2654435761u;
        h = (h ^ (h >> 15)) * 2246822519u;
        h ^= h >> 13;
        out[a] = (float)((info->active_max_m[a] - info->active_min_m[a]) * (h / 4294967296.0));
    }
}

/* n points at a time, in memory that copies run fastest from; the answers must repeat. */
static vx_err time_points(struct vx_device *device, struct vx_map *map, uint32_t n, uint64_t times,
                          struct bench_samples *samples, struct figures *f, struct vx_detail *detail)
{
    struct vx_map_info info;
    struct vx_point_answer *answers, *first = malloc(n * sizeof *first);
    void *points = NULL, *out = NULL;
    vx_err err = first ? VX_OK : VX_E_NOMEM;
    VX_TRY(err);
    VX_TRY(vx_device_alloc_host(device, n * 3ull * sizeof(float), &points));
    VX_TRY(vx_device_alloc_host(device, n * sizeof *answers, &out));
    VX_TRY(vx_map_get_info(map, &info));
    answers = out;
    for (uint32_t i = 0; i < n; i++)
        sample_point(&info, i, (float *)points + 3ull * i);
    for (uint64_t k = 0; k < times + 2; k++) {
        const double start = bench_now_ms();
        VX_TRY(vx_query_points(map, NULL, info.active_min_m, points, n, answers, NULL, detail));
        if (k >= 2)
            bench_samples_add(samples, bench_now_ms() - start);
        else
            memcpy(first, answers, n * sizeof *first);
    }
    if (memcmp(first, answers, n * sizeof *first) != 0)
        VX_TRY(vx_fail(detail, VX_E_INTERNAL, "points", "the same points got other answers"));
    f->n_known = 0;
    for (uint32_t i = 0; i < n; i++)
        f->n_known += (answers[i].status & VX_Q_DISTANCE) != 0;
fail:
    vx_device_free_host(device, points);
    vx_device_free_host(device, out);
    free(first);
    return err;
}

/* A number in [0, 1). */
static float fraction(uint32_t i)
{
    uint32_t h = (i + 1) * 2654435761u;
    h = (h ^ (h >> 15)) * 2246822519u;
    return (float)((h ^ h >> 13) >> 8) / 16777216.0f;
}

/* Robots of 64 spheres, straight and turning, from one random place of the map to another. */
static void make_paths(const struct vx_map_info *info, float *spheres, float *poses)
{
    float reach = (float)fmin(0.08, 0.7 * info->params.esdf_max_distance_m);
    for (uint32_t i = 0; i < N_SPHERES; i++) {
        for (uint32_t a = 0; a < 3; a++)
            spheres[4 * i + a] = (fraction(9 * i + a) - 0.5f) * (a == 2 ? 0.8f : 0.5f);
        spheres[4 * i + 3] = 0.03f + fraction(9 * i + 3) * (reach - 0.03f);
    }
    for (uint32_t i = 0; i < N_PATHS; i++) {
        float from[3], to[3], yaw = fraction(7 * i) * 6.28f, turn = (fraction(7 * i + 1) - 0.5f) * 3;
        sample_point(info, 2 * i, from);
        sample_point(info, 2 * i + 1, to);
        for (uint32_t w = 0; w < N_WAYPOINTS; w++) {
            float *p = poses + 7ull * (i * N_WAYPOINTS + w), t = (float)w / (N_WAYPOINTS - 1);
            for (uint32_t a = 0; a < 3; a++)
                p[a] = from[a] + t * (to[a] - from[a]);
            p[3] = p[4] = 0;
            p[5] = sinf((yaw + t * turn) / 2);
            p[6] = cosf((yaw + t * turn) / 2);
        }
    }
}

/* Every 50th path by its definition, where the host can read the device's memory. */
static vx_err check_paths(struct vx_map *map, const double origin[3], const struct vx_paths *q,
                          const float *poses, const struct vx_path_answer *answers, struct vx_detail *detail)
{
    const struct vx_map_params *p = vx__map_params(map);
    struct vxk_query space = {
        .voxel_m = p->voxel_size_m, .undefined = NAN, .occupancy = p->mode == VX_OCCUPANCY};
    struct field_view v;
    vx_err err = VX_OK;
    VX_TRY_RET(field_view_open(map, false, &v, detail));
    space.grid = v.s.grid;
    space.esdf = v.e->view;
    for (int a = 0; a < 3; a++)
        space.offset_m[a] = origin[a] - p->origin_m[a];
    for (size_t i = 0; i < N_PATHS && err == VX_OK; i += 50) {
        struct vx_path_answer want;
        path_reference(&space, q, poses + i * N_WAYPOINTS * 7, 1, false, &want);
        if (memcmp(&want, &answers[i], sizeof want) != 0)
            err = vx_fail(detail, VX_E_INTERNAL, "paths", "path %zu is not what its definition says", i);
    }
    field_view_close(map, &v);
    return err;
}

/* The same paths in each of the three modes; the answers must repeat. */
static vx_err time_modes(struct vx_map *map, const double origin[3], struct vx_paths *q, const float *poses,
                         uint64_t times, bool on_host, struct bench_samples samples[3],
                         struct vx_path_answer *answers, struct vx_detail *detail)
{
    static struct vx_path_answer first[N_PATHS];
    for (int mode = 0; mode < 3; mode++) {
        q->unknown = (enum vx_unknown)mode;
        for (uint64_t k = 0; k < times + 2; k++) {
            const double start = bench_now_ms();
            VX_TRY_RET(vx_query_paths(map, NULL, origin, q, poses, N_PATHS, answers, NULL, detail));
            if (k >= 2)
                bench_samples_add(&samples[mode], bench_now_ms() - start);
            else
                memcpy(first, answers, sizeof first);
        }
        if (memcmp(first, answers, sizeof first) != 0)
            return vx_fail(detail, VX_E_INTERNAL, "paths", "the same paths got other answers");
        if (on_host)
            VX_TRY_RET(check_paths(map, origin, q, poses, answers, detail));
    }
    return VX_OK;
}

/* Leaves the paths that begin clear of everything, to and fro as far as they are clear, over and over: a
 * robot that drives.  How many different ones there are. */
static uint32_t keep_clear(float *poses, const struct vx_path_answer *answers)
{
    enum { POSE = 7 };
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_PATHS; i++) {
        float *p = poses + (size_t)POSE * N_WAYPOINTS * i;
        const bool touches = (answers[i].status & VX_Q_COLLIDES) != 0;
        const uint32_t last = touches ? (uint32_t)answers[i].contact : N_WAYPOINTS - 1;
        if (last == 0)
            continue;
        for (uint32_t w = last + 1; w < N_WAYPOINTS; w++) {
            const uint32_t k = w % (2 * last);
            memcpy(p + (size_t)POSE * w, p + (size_t)POSE * (k <= last ? k : 2 * last - k), POSE * sizeof *p);
        }
        memmove(poses + (size_t)POSE * N_WAYPOINTS * n++, p, POSE * N_WAYPOINTS * sizeof *p);
    }
    for (uint32_t i = n; n && i < N_PATHS; i++)
        memcpy(poses + 7ull * N_WAYPOINTS * i, poses + 7ull * N_WAYPOINTS * (i % n),
               N_WAYPOINTS * 7 * sizeof *poses);
    return n;
}

static vx_err time_paths(struct vx_device *device, struct vx_map *map, uint64_t times, bool on_host,
                         struct figures *f, struct vx_detail *detail)
{
    float spheres[4 * N_SPHERES];
    struct vx_paths q = {.spheres = spheres, .n_spheres = N_SPHERES, .n_waypoints = N_WAYPOINTS};
    struct vx_path_answer *answers;
    struct vx_map_info info;
    void *poses = NULL, *out = NULL;
    vx_err err;
    VX_TRY(vx_device_alloc_host(device, N_PATHS * N_WAYPOINTS * 7ull * sizeof(float), &poses));
    VX_TRY(vx_device_alloc_host(device, N_PATHS * sizeof *answers, &out));
    answers = out;
    VX_TRY(vx_map_get_info(map, &info));
    make_paths(&info, spheres, poses);
    VX_TRY(time_modes(map, info.active_min_m, &q, poses, times, on_host, f->paths, answers, detail));
    f->n_touching = 0;
    for (uint32_t i = 0; i < N_PATHS; i++)
        f->n_touching += (answers[i].status & VX_Q_COLLIDES) != 0;
    f->n_clear = keep_clear(poses, answers); /* the last mode: unknown space as occupied */
    if (f->n_clear)
        VX_TRY(time_modes(map, info.active_min_m, &q, poses, times, on_host, f->clear, answers, detail));
fail:
    vx_device_free_host(device, poses);
    vx_device_free_host(device, out);
    return err;
}

static vx_err measure(struct vx_device *device, struct vx_map *map, const struct options *o,
                      struct figures *f, struct vx_detail *detail)
{
    uint64_t updated;
    VX_TRY_RET(refresh(map, false, &f->update, f, detail));
    updated = f->digest;
    for (uint64_t k = 0; k < o->repeat; k++) {
        VX_TRY_RET(refresh(map, true, &f->cold, f, detail));
        if (f->digest != updated)
            return vx_fail(detail, VX_E_INTERNAL, "digest", "the updated field is not the rebuilt one");
        VX_TRY_RET(refresh(map, false, &f->same, f, detail));
        VX_TRY_RET(time_mesh(map, &f->mesh, f, detail));
    }
    VX_TRY_RET(time_points(device, map, FEW, o->batches, &f->few, f, detail));
    VX_TRY_RET(time_points(device, map, MANY, o->repeat, &f->many, f, detail));
    VX_TRY_RET(time_paths(device, map, o->repeat, o->device.backend == VXK_CPU, f, detail));
    if (f->n_known == 0)
        return vx_fail(detail, VX_E_INTERNAL, "points", "no point has a distance");
    return VX_OK;
}

static void print_samples(const char *name, struct bench_samples *s)
{
    printf(",\"%s_ms\":{\"median\":%.4f,\"mean\":%.4f,\"p99\":%.4f}", name, bench_quantile(s, 0.5),
           bench_mean(s), bench_quantile(s, 0.99));
}

static void print_figures(const struct options *o, struct vx_device *device, struct figures *f)
{
    struct vx_device_stats stats;
    const char *slash = strrchr(o->workload, '/');
    vx_device_get_stats(device, &stats);
    printf("{\"bench\":\"field\",\"workload\":");
    bench_json_string(stdout, slash && slash[1] ? slash + 1 : o->workload);
    printf(",\"voxel_m\":%.9g,\"mode\":\"%s\",\"frames\":%llu,\"leaves\":%llu,\"triangles\":%llu,"
           "\"field_bytes\":%llu,\"digest\":\"%016llx\"",
           o->map.voxel_size_m, o->map.mode == VX_TSDF ? "tsdf" : "occupancy",
           (unsigned long long)f->n_frames, (unsigned long long)f->n_leaves,
           (unsigned long long)f->n_triangles, (unsigned long long)f->field_bytes,
           (unsigned long long)f->digest);
    print_samples("esdf_cold", &f->cold);
    print_samples("esdf_update", &f->update);
    print_samples("esdf_no_change", &f->same);
    print_samples("mesh", &f->mesh);
    print_samples("mesh_update", &f->mesh_update);
    printf(",\"mesh_update_cells\":%llu,\"mesh_update_bytes\":%llu", (unsigned long long)f->mesh_cells,
           (unsigned long long)f->mesh_bytes);
    print_samples("points_1m", &f->many);
    print_samples("points_1000", &f->few);
    print_samples("paths_unknown_reported", &f->paths[VX_UNKNOWN_REPORT]);
    print_samples("paths_unknown_free", &f->paths[VX_UNKNOWN_FREE]);
    print_samples("paths_unknown_occupied", &f->paths[VX_UNKNOWN_OCCUPIED]);
    printf(",\"paths_touching\":%llu,\"paths_clear\":%llu", (unsigned long long)f->n_touching,
           (unsigned long long)f->n_clear);
    print_samples("clear_unknown_reported", &f->clear[VX_UNKNOWN_REPORT]);
    print_samples("clear_unknown_free", &f->clear[VX_UNKNOWN_FREE]);
    print_samples("clear_unknown_occupied", &f->clear[VX_UNKNOWN_OCCUPIED]);
    printf(",\"peak_bytes\":%llu,\"backend\":\"%s\",\"device\":", (unsigned long long)stats.peak_bytes,
           stats.backend);
    bench_json_string(stdout, stats.name);
    printf(",\"version\":\"%s\"}\n", VOXELD_VERSION);
}

static vx_err run(const struct options *o, struct vx_detail *detail)
{
    struct vx_device *device = NULL;
    struct vx_map *map = NULL;
    struct vxc_reader *reader = NULL;
    struct figures f = {0};
    struct bench_samples *all[] = {&f.update,   &f.cold,     &f.same,     &f.mesh,     &f.mesh_update,
                                   &f.many,     &f.few,      &f.paths[0], &f.paths[1], &f.paths[2],
                                   &f.clear[0], &f.clear[1], &f.clear[2]};
    vx_err err;
    VX_TRY(vx_device_open(&o->device, &device, detail));
    VX_TRY(vxc_reader_open(o->workload, &o->reader, &reader, detail));
    VX_TRY(vx_map_create(device, "bench", &o->map, &map, detail));
    VX_TRY(feed(map, reader, o, &f, detail));
    VX_TRY(measure(device, map, o, &f, detail));
    print_figures(o, device, &f);
fail:
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bench_samples_fini(all[i]);
    vxc_reader_close(reader);
    if (map)
        vx_map_destroy(map);
    if (device)
        vx_device_close(device);
    return err;
}

int main(int argc, char **argv)
{
    struct options o = {.every = 10, .repeat = 7, .batches = 2000, .device = {.backend = VXK_CPU}};
    struct vx_detail detail = {"", ""};
    vx_map_params_default(&o.map);
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
    fprintf(stderr, "bench_field: %s: %s%s%s\n", vx_err_name(err), detail.field, detail.field[0] ? ": " : "",
            detail.text[0] ? detail.text : vx_err_text(err));
    return 1;
}
