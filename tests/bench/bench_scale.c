/*
 * bench_scale.c - fills a map with copies of a workload, far apart, until one frame more is refused.
 *
 * Then: the refusal is VX_E_EXHAUSTED and left epoch and totals alone; the digest is the same before and
 * after the same frame is refused again; rays are answered as they were when the first copy was the only one.
 * With --esdf the distance field follows copy by copy, and its voxels are counted at the end.
 * One JSON line on stdout: active and known voxels (active, and free as whole cells: free voxels in cells
 * seen in part come on top), bytes, times.  Words on stderr; ends with 1 where something of this does not
 * hold.
 */
#include "bench_frames.h"
#include "bench_util.h"
#include "scale_field.h"
#include "vx/map.h"
#include "vx/query.h"

#include <stdlib.h>
#include <string.h>

/* Farther than any workload reaches. */
#define FAR_M 1000.0

enum { N_RAYS = 1000 };

struct options {
    const char *workload;
    struct vxc_reader_options reader;
    struct vx_map_params map;
    struct vx_device_params device;
    uint64_t max_copies;
    bool no_digest, esdf;
};

struct progress {
    struct bench_samples ms;
    uint64_t n_frames, n_copies; /* whole ones */
    bool full;
    struct vx_frame refused; /* its data stays in the staging memory, its elevations with the reader */
    struct vxc_reader *reader;
    struct vx_detail why;
};

static const char USAGE[] =
    "usage: bench_scale --workload PATH [options]\n"
    "  --voxel M               (default 0.05)      --mode tsdf|occupancy   (default tsdf)\n"
    "  --pool-cap BYTES        hard cap of the pool (default three quarters of what is free)\n"
    "  --frames N              of the workload a copy   --max-range M\n"
    "  --max-copies N          stop after so many even if more fit (default 100000)\n"
    "  --esdf                  keep the distance field up to date; ends with 1 when it does not fit\n"
    "  --no-digest             leave the digests out (they read the whole map twice)\n"
    "  --backend cpu|cuda|guard (default cpu)      --device N   --threads N\n";

static bool parse_option(struct options *o, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--workload") == 0)
        return (o->workload = value)[0] != '\0';
    if (strcmp(name, "--voxel") == 0)
        return bench_parse_double(value, 1e-4, 100, &o->map.voxel_size_m);
    if (strcmp(name, "--mode") == 0) {
        o->map.mode = strcmp(value, "occupancy") == 0 ? VX_OCCUPANCY : VX_TSDF;
        return o->map.mode == VX_OCCUPANCY || strcmp(value, "tsdf") == 0;
    }
    if (strcmp(name, "--pool-cap") == 0)
        return bench_parse_uint(value, UINT64_MAX, &o->device.cap_bytes);
    if (strcmp(name, "--frames") == 0)
        return bench_parse_uint(value, UINT32_MAX, &o->reader.max_frames) && o->reader.max_frames > 0;
    if (strcmp(name, "--max-range") == 0)
        return bench_parse_double(value, 1e-3, 1e4, &o->reader.max_range_m);
    if (strcmp(name, "--max-copies") == 0)
        return bench_parse_uint(value, 100000, &o->max_copies) && o->max_copies > 0;
    if (strcmp(name, "--backend") == 0)
        return bench_parse_backend(value, &o->device.backend);
    if (strcmp(name, "--device") == 0)
        return bench_parse_uint(value, 1023, &n) && ((o->device.index = (int)n), true);
    if (strcmp(name, "--threads") == 0)
        return bench_parse_uint(value, 4096, &n) && ((o->device.n_threads = (int)n), true);
    return false;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-digest") == 0) {
            o->no_digest = true;
            continue;
        }
        if (strcmp(argv[i], "--esdf") == 0) {
            o->esdf = true;
            continue;
        }
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!parse_option(o, argv[i], value)) {
            fprintf(stderr, "bench_scale: bad option %s %s\n", argv[i], value);
            return false;
        }
        i++;
    }
    if (!o->workload)
        fputs("bench_scale: --workload is missing\n", stderr);
    return o->workload != NULL;
}

/* One copy, moved by away_m along y; stops at the first refusal for lack of memory. */
static vx_err fill_copy(struct vx_map *map, const struct options *o, double away_m, void **stage,
                        uint64_t *stage_bytes, struct vx_device *device, struct progress *p,
                        struct vx_detail *detail)
{
    struct vxc_reader *reader = NULL;
    vx_err err;
    VX_TRY(vxc_reader_open(o->workload, &o->reader, &reader, detail));
    for (;;) {
        struct vxc_frame read;
        struct vx_frame frame;
        struct vx_frame_result result;
        enum vxc_step step;
        vx_err why = VX_OK;
        VX_TRY(vxc_reader_next(reader, &read, &step, &why, detail));
        if (step == VXC_STEP_END)
            break;
        if (step == VXC_STEP_REFUSED)
            continue;
        bench_frame_convert(&read, &vxc_reader_get_info(reader)->sensing, false, &frame);
        frame.pose[0].position_m[1] += away_m;
        if (*stage_bytes < frame.data_bytes) {
            vx_device_free_host(device, *stage);
            *stage = NULL;
            VX_TRY(vx_device_alloc_host(device, frame.data_bytes, stage));
            *stage_bytes = frame.data_bytes;
        }
        memcpy(*stage, frame.data, frame.data_bytes);
        frame.data = *stage;
        const double start = bench_now_ms();
        err = vx_map_integrate(map, &frame, &result, detail);
        if (err == VX_E_EXHAUSTED) /* a refusal gives list room back: what is refused now stays so */
            err = vx_map_integrate(map, &frame, &result, detail);
        if (err == VX_E_EXHAUSTED) {
            p->full = true;
            p->refused = frame;
            p->why = *detail;
            err = VX_OK;
            break;
        }
        VX_TRY(err);
        bench_samples_add(&p->ms, bench_now_ms() - start);
        p->n_frames++;
    }
    p->n_copies += !p->full;
fail:
    if (p->full)
        p->reader = reader;
    else
        vxc_reader_close(reader);
    return err;
}

/* Rays from the middle of the first copy's box in all directions. */
static vx_err ask(struct vx_map *map, const double origin_m[3], struct vx_ray_answer *answers, double *ms,
                  struct vx_detail *detail)
{
    static float rays[6 * N_RAYS];
    struct vx_query_options options = {0};
    struct vx_reply reply;
    struct vx_map_info info;
    VX_TRY_RET(vx_map_get_info(map, &info));
    for (uint32_t i = 0; i < N_RAYS; i++)
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t h = (3 * i + k + 1) * 2654435761u;
            h = (h ^ (h >> 15)) * 2246822519u;
            rays[6 * i + k] = 0.0f;
            rays[6 * i + 3 + k] = (float)((h ^ h >> 13) / 4294967296.0 - 0.5) + 1e-6f;
        }
    const double start = bench_now_ms();
    VX_TRY_RET(vx_query_rays(map, &options, origin_m, rays, N_RAYS, 20, answers, &reply, detail));
    *ms = bench_now_ms() - start;
    return VX_OK;
}

/* The refused frame once more: refused again, and nothing is another. */
static vx_err refuse_again(struct vx_map *map, const struct progress *p, bool digests, double *digest_ms,
                           struct vx_detail *detail)
{
    uint8_t before[32] = {0}, after[32] = {0};
    struct vx_map_info was, is;
    struct vx_frame_result result;
    VX_TRY_RET(vx_map_get_info(map, &was));
    const double start = bench_now_ms();
    if (digests)
        VX_TRY_RET(vx_map_digest(map, before, NULL));
    *digest_ms = bench_now_ms() - start;
    if (vx_map_integrate(map, &p->refused, &result, detail) != VX_E_EXHAUSTED)
        return vx_fail(detail, VX_E_INTERNAL, "refusal", "the frame that was refused is not refused again");
    if (digests)
        VX_TRY_RET(vx_map_digest(map, after, NULL));
    VX_TRY_RET(vx_map_get_info(map, &is));
    if (memcmp(before, after, 32) != 0 || was.epoch != is.epoch || was.n_voxels != is.n_voxels ||
        was.used_bytes != is.used_bytes || was.n_frames != is.n_frames || was.n_frames != p->n_frames)
        return vx_fail(detail, VX_E_INTERNAL, "refusal", "a refused frame changed the map");
    return VX_OK;
}

static vx_err run(const struct options *o, struct vx_detail *detail)
{
    static struct vx_ray_answer alone[N_RAYS], full[N_RAYS];
    struct vx_device *device = NULL;
    struct vx_map *map = NULL;
    struct progress p = {0};
    struct scale_field field = {0};
    struct vx_map_info info;
    struct vx_device_stats stats;
    void *stage = NULL;
    uint64_t stage_bytes = 0;
    double origin_m[3] = {0}, rays_ms = 0, digest_ms = 0;
    vx_err err;
    const double start = bench_now_ms();
    VX_TRY(vx_device_open(&o->device, &device, detail));
    VX_TRY(vx_map_create(device, "scale", &o->map, &map, detail));
    for (uint64_t copy = 0; copy < o->max_copies && !p.full; copy++) {
        VX_TRY(fill_copy(map, o, (double)copy * FAR_M, &stage, &stage_bytes, device, &p, detail));
        if (o->esdf && !p.full)
            VX_TRY(scale_field_refresh(map, &field, detail));
        if (copy == 0 && !p.full) {
            VX_TRY(vx_map_get_info(map, &info));
            for (int k = 0; k < 3; k++)
                origin_m[k] = (info.active_min_m[k] + info.active_max_m[k]) / 2;
            VX_TRY(ask(map, origin_m, alone, &rays_ms, detail));
        }
    }
    const double filled_ms = bench_now_ms() - start;
    if (p.n_copies == 0)
        VX_TRY(vx_fail(detail, VX_E_INVALID, "pool-cap", "not even one copy fits: %s", p.why.text));
    VX_TRY(ask(map, origin_m, full, &rays_ms, detail));
    if (memcmp(alone, full, sizeof full) != 0)
        VX_TRY(vx_fail(detail, VX_E_INTERNAL, "rays", "rays in the first copy are answered otherwise now"));
    if (p.full)
        VX_TRY(refuse_again(map, &p, !o->no_digest, &digest_ms, detail));
    if (o->esdf)
        VX_TRY(scale_field_count(map, &field, detail));
    VX_TRY(vx_map_get_info(map, &info));
    vx_device_get_stats(device, &stats);
    printf(
        "{\"bench\":\"scale\",\"mode\":\"%s\",\"voxel_m\":%.9g,\"frames\":%llu,\"copies\":%llu,\"full\":%s,"
        "\"active_voxels\":%llu,\"known_voxels\":%llu,\"chunks\":%llu,\"used_bytes\":%llu,\"peak_bytes\":%"
        "llu,"
        "\"cap_bytes\":%llu,\"bytes_per_active\":%.4f,\"bytes_per_known\":%.4f,\"median_ms\":%.4f,"
        "\"p99_ms\":%.4f,\"fill_s\":%.2f,\"rays_1000_ms\":%.3f,\"digest_ms\":%.1f,\"backend\":\"%s\","
        "\"refusal\":",
        o->map.mode == VX_TSDF ? "tsdf" : "occupancy", o->map.voxel_size_m, (unsigned long long)p.n_frames,
        (unsigned long long)p.n_copies, p.full ? "true" : "false", (unsigned long long)info.n_voxels,
        (unsigned long long)(info.n_voxels + 512 * info.n_tiles), (unsigned long long)info.n_chunks,
        (unsigned long long)info.used_bytes, (unsigned long long)stats.peak_bytes,
        (unsigned long long)stats.cap_bytes, (double)info.used_bytes / (double)info.n_voxels,
        (double)info.used_bytes / (double)(info.n_voxels + 512 * info.n_tiles), bench_quantile(&p.ms, 0.5),
        bench_quantile(&p.ms, 0.99), filled_ms / 1e3, rays_ms, digest_ms, stats.backend);
    bench_json_string(stdout, p.full ? p.why.text : "");
    if (o->esdf)
        printf(",\"esdf_leaves\":%llu,\"esdf_voxels_within\":%llu,\"esdf_bytes\":%llu,"
               "\"esdf_bytes_per_voxel\":%.4f,\"esdf_last_refresh_ms\":%.2f",
               (unsigned long long)field.n_leaves, (unsigned long long)field.n_within,
               (unsigned long long)field.bytes, (double)field.bytes / (double)field.n_within,
               field.refresh_ms);
    printf("}\n");
    err = p.ms.failed ? VX_E_NOMEM : VX_OK;
fail:
    bench_samples_fini(&p.ms);
    vxc_reader_close(p.reader);
    if (map)
        vx_map_destroy(map);
    if (device) {
        vx_device_free_host(device, stage);
        vx_device_close(device);
    }
    return err;
}

int main(int argc, char **argv)
{
    struct options o = {.max_copies = 100000, .device = {.backend = VXK_CPU}};
    struct vx_detail detail = {"", ""};
    vx_map_params_default(&o.map);
    if (!parse_options(argc, argv, &o)) {
        fputs(USAGE, stderr);
        return 2;
    }
    const vx_err err = run(&o, &detail);
    if (err != VX_OK)
        fprintf(stderr, "bench_scale: %s: %s: %s\n", vx_err_name(err), detail.field,
                detail.text[0] ? detail.text : vx_err_text(err));
    return err != VX_OK;
}
