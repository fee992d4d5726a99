/*
 * fake_core.c - a stand-in for core/ behind the same headers, for tests of the daemon alone.
 *
 * It maps nothing.  What it answers is fixed, so that a test can tell whether bytes arrived in order, and it
 * can be made to stand still: work on a map whose name begins with "gated" waits until the file named by
 * FAKE_CORE_GATE exists (or until it is cancelled), "boxgate..." lets only boxes wait, "slowgate..." all
 * queries but small ones about points.  Other names with a meaning: "nomem..." can't be created, "full..."
 * refuses every frame, "broken..." has a device error at the first one and at a small question,
 * "bigmesh..." has a mesh of several parts, "bigfile..." is exported to a file of several.  An import takes
 * what an export gives.
 */
#include "vx/map.h"
#include "vx/mesh.h"
#include "vx/nvdb.h"
#include "vx/planning.h"
#include "vx/query.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct vx_device {
    struct vx_device_params params;
};

struct vx_map {
    pthread_mutex_t mutex;
    struct vx_map_info info;
    uint64_t sum; /* of everything integrated; order matters */
};

static bool starts(const struct vx_map *map, const char *prefix)
{
    return !strncmp(map->info.name, prefix, strlen(prefix));
}

/* Stands still like a busy device, on maps of such a name. */
static vx_err stand_still(const struct vx_map *map, const char *prefix,
                          const struct vx_query_options *options)
{
    const char *gate = getenv("FAKE_CORE_GATE");
    struct timespec pause = {0, 1000000};
    while (starts(map, prefix) && gate && access(gate, F_OK)) {
        if (options && options->cancelled && options->cancelled(options->context))
            return VX_E_CANCELLED;
        nanosleep(&pause, NULL);
    }
    return VX_OK;
}
static vx_err wait_at_gate(const struct vx_map *map, const struct vx_query_options *options)
{
    return stand_still(map, "gated", options);
}

/* ------------------------------------------------------------------ device */

vx_err vx_device_open(const struct vx_device_params *params, struct vx_device **out, struct vx_detail *detail)
{
    if (params->backend == VXK_CUDA)
        return vx_fail(detail, VX_E_UNIMPLEMENTED, "backend", "the fake core has no GPU");
    *out = calloc(1, sizeof **out);
    (*out)->params = *params;
    return VX_OK;
}

void vx_device_close(struct vx_device *device)
{
    free(device);
}

void vx_device_get_stats(struct vx_device *device, struct vx_device_stats *out)
{
    *out = (struct vx_device_stats){
        .name = "fake", .backend = "cpu", .cap_bytes = device->params.cap_bytes, .used_bytes = 4096};
}

vx_err vx_device_alloc_host(struct vx_device *device, uint64_t bytes, void **out)
{
    (void)device;
    *out = malloc(bytes);
    return *out ? VX_OK : VX_E_NOMEM;
}

void vx_device_free_host(struct vx_device *device, void *ptr)
{
    (void)device;
    free(ptr);
}

/* ------------------------------------------------------------------ maps */

void vx_map_params_default(struct vx_map_params *params)
{
    *params = (struct vx_map_params){.voxel_size_m = 0.05, .truncation_voxels = 3};
}

vx_err vx_map_check_name(const char *name, struct vx_detail *detail)
{
    size_t n = strlen(name);
    if (!n || n > VX_NAME_MAX ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
        return vx_fail(detail, VX_E_INVALID, "name", "is no map name");
    return VX_OK;
}

vx_err vx_map_create(struct vx_device *device, const char *name, const struct vx_map_params *params,
                     struct vx_map **out, struct vx_detail *detail)
{
    (void)device;
    if (!(params->voxel_size_m > 0))
        return vx_fail(detail, VX_E_INVALID, "voxel_size_m", "must be positive, got %g",
                       params->voxel_size_m);
    if (!strncmp(name, "nomem", 5))
        return vx_fail(detail, VX_E_EXHAUSTED, "limit_bytes", "the fake core has no memory");
    struct vx_map *map = calloc(1, sizeof *map);
    pthread_mutex_init(&map->mutex, NULL);
    snprintf(map->info.name, sizeof map->info.name, "%s", name);
    memset(map->info.uuid, name[0], sizeof map->info.uuid);
    map->info.params = *params;
    if (map->info.params.esdf_max_distance_m == 0)
        map->info.params.esdf_max_distance_m = 10 * params->voxel_size_m;
    map->info.esdf_radius_voxels = 10;
    *out = map;
    return VX_OK;
}

void vx_map_destroy(struct vx_map *map)
{
    pthread_mutex_destroy(&map->mutex);
    free(map);
}

vx_err vx_map_protect(struct vx_map *map, struct vx_region *region, struct vx_detail *detail)
{
    (void)map;
    (void)region;
    return vx_fail(detail, VX_E_UNIMPLEMENTED, "region", "the fake core protects nothing");
}

vx_err vx_map_unprotect(struct vx_map *map, uint32_t id, struct vx_detail *detail)
{
    (void)map;
    return vx_fail(detail, VX_E_NOT_FOUND, "region", "the fake core has no region %u", id);
}

uint32_t vx_map_regions(struct vx_map *map, struct vx_region out[VX_MAX_REGIONS])
{
    (void)map;
    (void)out;
    return 0;
}

vx_err vx_map_clear(struct vx_map *map)
{
    pthread_mutex_lock(&map->mutex);
    map->sum = 0;
    map->info.n_voxels = 0;
    map->info.newest_stamp_ns = 0;
    ++map->info.epoch;
    pthread_mutex_unlock(&map->mutex);
    return VX_OK;
}

vx_err vx_map_get_info(struct vx_map *map, struct vx_map_info *out)
{
    pthread_mutex_lock(&map->mutex);
    *out = map->info;
    pthread_mutex_unlock(&map->mutex);
    return VX_OK;
}

vx_err vx_map_digest(struct vx_map *map, uint8_t digest[32], uint64_t *epoch)
{
    vx_err err = wait_at_gate(map, NULL);
    pthread_mutex_lock(&map->mutex);
    memset(digest, 0, 32);
    memcpy(digest, &map->sum, sizeof map->sum);
    if (epoch)
        *epoch = map->info.epoch;
    pthread_mutex_unlock(&map->mutex);
    return err;
}

/* ------------------------------------------------------------------ frames */

static uint64_t reading_bytes(const struct vx_frame *frame)
{
    uint64_t n = (uint64_t)frame->width * frame->height;
    if (frame->sensor == VX_POINTS)
        return n * 12;
    return n * (frame->encoding == VX_U16 ? 2 : 4);
}

vx_err vx_frame_check(const struct vx_frame *frame, struct vx_detail *detail)
{
    const double *q = frame->pose[0].rotation_xyzw;
    double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(fabs(norm - 1) <= 1e-3))
        return vx_fail(detail, VX_E_INVALID, "pose[0].rotation", "norm is %g", norm);
    if (!frame->data_bytes || frame->data_bytes != reading_bytes(frame))
        return vx_fail(detail, VX_E_INVALID, "data", "has %llu bytes", (unsigned long long)frame->data_bytes);
    return VX_OK;
}

vx_err vx_map_integrate(struct vx_map *map, const struct vx_frame *frame, struct vx_frame_result *result,
                        struct vx_detail *detail)
{
    wait_at_gate(map, NULL);
    if (starts(map, "broken"))
        return vx_fail(detail, VX_E_DEVICE, "", "the fake core's device broke");
    if (starts(map, "full"))
        return vx_fail(detail, VX_E_EXHAUSTED, "frame_budget_bytes", "the fake core is full");
    const uint8_t *bytes = frame->data;
    uint64_t sum = 14695981039346656037u;
    for (uint64_t i = 0; i < frame->data_bytes; ++i)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    for (uint32_t i = 0; frame->sensor == VX_RANGE && i < frame->height; ++i)
        sum += (uint64_t)(frame->elevation_rad[i] * 1e6f);
    pthread_mutex_lock(&map->mutex);
    map->sum = map->sum * 31 + sum;
    ++map->info.n_frames;
    map->info.n_voxels += 10;
    if (frame->stamp_ns > map->info.newest_stamp_ns)
        map->info.newest_stamp_ns = frame->stamp_ns;
    *result = (struct vx_frame_result){.epoch = ++map->info.epoch};
    result->counts.used = (uint64_t)frame->width * frame->height;
    result->warnings = frame->max_range_m == 1 ? VX_WARN_ALL_BEYOND : 0;
    pthread_mutex_unlock(&map->mutex);
    return VX_OK;
}

/* ------------------------------------------------------------------ queries */

static vx_err fill_reply(struct vx_map *map, const struct vx_query_options *options, struct vx_reply *reply,
                         struct vx_detail *detail)
{
    pthread_mutex_lock(&map->mutex);
    *reply = (struct vx_reply){.epoch = map->info.epoch,
                               .esdf_epoch = map->info.epoch,
                               .newest_stamp_ns = map->info.newest_stamp_ns,
                               .max_distance_m = map->info.params.esdf_max_distance_m};
    memcpy(reply->uuid, map->info.uuid, sizeof reply->uuid);
    pthread_mutex_unlock(&map->mutex);
    if (options->min_epoch > reply->epoch)
        return vx_fail(detail, VX_E_STALE, "min_epoch", "is in the future");
    return VX_OK;
}

static vx_err begin(struct vx_map *map, const struct vx_query_options *options, struct vx_reply *reply,
                    struct vx_detail *detail)
{
    VX_TRY_RET(wait_at_gate(map, options));
    VX_TRY_RET(stand_still(map, "slowgate", options));
    return fill_reply(map, options, reply, detail);
}

/* distance = the item's first number plus origin_m[0]; gradient = its first three. */
static void answer_items(const float *items, uint32_t n, uint32_t stride, double origin_x,
                         struct vx_point_answer *out)
{
    for (uint32_t i = 0; i < n; ++i) {
        const float *item = items + (size_t)i * stride;
        out[i] = (struct vx_point_answer){.distance_m = item[0] + (float)origin_x,
                                          .gradient = {item[0], item[1], item[2]},
                                          .state = VX_STATE_FREE,
                                          .status = VX_Q_DISTANCE};
    }
}

vx_err vx_query_points(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                       const float *points, uint32_t n, struct vx_point_answer *answers,
                       struct vx_reply *reply, struct vx_detail *detail)
{
    VX_TRY_RET(begin(map, options, reply, detail));
    answer_items(points, n, 3, origin_m[0], answers);
    return VX_OK;
}

vx_err vx_query_points_now(struct vx_map *map, const struct vx_query_options *options,
                           const double origin_m[3], const float *points, uint32_t n,
                           struct vx_point_answer *answers, struct vx_reply *reply, struct vx_detail *detail)
{
    if (n > VX_NOW_POINTS || starts(map, "gated"))
        return VX_E_UNAVAILABLE;
    if (starts(map, "broken"))
        return vx_fail(detail, VX_E_DEVICE, "", "the fake core's device broke");
    VX_TRY_RET(fill_reply(map, options, reply, detail));
    answer_items(points, n, 3, origin_m[0], answers);
    return VX_OK;
}

vx_err vx_query_spheres(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *spheres, uint32_t n, struct vx_point_answer *answers,
                        struct vx_reply *reply, struct vx_detail *detail)
{
    VX_TRY_RET(begin(map, options, reply, detail));
    for (uint32_t i = 0; i < n; ++i)
        if (!(spheres[4 * (size_t)i + 3] <= reply->max_distance_m))
            return vx_fail(detail, VX_E_INVALID, "radius", "larger than R = %g m", reply->max_distance_m);
    answer_items(spheres, n, 4, origin_m[0], answers);
    return VX_OK;
}

vx_err vx_query_rays(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                     const float *rays, uint32_t n, double max_range_m, struct vx_ray_answer *answers,
                     struct vx_reply *reply, struct vx_detail *detail)
{
    (void)origin_m;
    VX_TRY_RET(begin(map, options, reply, detail));
    for (uint32_t i = 0; i < n; ++i)
        answers[i] = (struct vx_ray_answer){.range_m = (float)max_range_m,
                                            .normal = {rays[6 * (size_t)i + 5], 0, 0},
                                            .state = VX_STATE_OCCUPIED};
    return VX_OK;
}

/* ------------------------------------------------------------------ planning */

vx_err vx_query_paths(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_paths *paths, const float *poses, uint32_t n,
                      struct vx_path_answer *answers, struct vx_reply *reply, struct vx_detail *detail)
{
    (void)origin_m;
    VX_TRY_RET(begin(map, options, reply, detail));
    for (uint32_t i = 0; i < n; ++i)
        answers[i] = (struct vx_path_answer){.sphere = paths->n_spheres - 1,
                                             .contact = poses[7 * (size_t)i * paths->n_waypoints],
                                             .clearance_m = -paths->spheres[3],
                                             .unknown = (float)paths->unknown,
                                             .status = VX_Q_COLLIDES};
    return VX_OK;
}

vx_err vx_query_boxes(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const float *boxes, uint32_t n, struct vx_box_answer *answers, struct vx_reply *reply,
                      struct vx_detail *detail)
{
    (void)origin_m;
    VX_TRY_RET(begin(map, options, reply, detail));
    VX_TRY_RET(stand_still(map, "boxgate", options));
    for (uint32_t i = 0; i < n; ++i)
        answers[i] = (struct vx_box_answer){.n_free = (uint64_t)boxes[6 * (size_t)i + 3], .n_unknown = i};
    return VX_OK;
}

vx_err vx_query_slice(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_slice *slice, struct vx_slice_cell *cells, struct vx_reply *reply,
                      struct vx_detail *detail)
{
    (void)origin_m;
    VX_TRY_RET(begin(map, options, reply, detail));
    if (slice->min_z_m > slice->max_z_m)
        return vx_fail(detail, VX_E_INVALID, "max_z_m", "must not be below min_z_m");
    for (uint32_t i = 0; i < slice->n_x * slice->n_y; ++i)
        cells[i] = (struct vx_slice_cell){.distance_m = (float)i, .cost = VX_COST_INSCRIBED};
    return VX_OK;
}

vx_err vx_query_points_unknown(struct vx_map *map, const struct vx_query_options *options,
                               const double origin_m[3], const float *points, uint32_t n,
                               struct vx_point_unknown_answer *answers, struct vx_reply *reply,
                               struct vx_detail *detail)
{
    VX_TRY_RET(begin(map, options, reply, detail));
    for (uint32_t i = 0; i < n; ++i) {
        answer_items(points + 3 * (size_t)i, 1, 3, origin_m[0], &answers[i].answer);
        answers[i].unknown_distance_m = points[3 * (size_t)i + 1];
    }
    return VX_OK;
}

vx_err vx_query_explain(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *points, uint32_t n, struct vx_explanation *out, struct vx_reply *reply,
                        struct vx_detail *detail)
{
    VX_TRY_RET(begin(map, options, reply, detail));
    for (uint32_t i = 0; i < n; ++i) {
        out[i] = (struct vx_explanation){.why = VX_WHY_MEASURED, .voxel = {(int32_t)i, 2, 3}, .weight = 9};
        answer_items(points + 3 * (size_t)i, 1, 3, origin_m[0], &out[i].answer);
    }
    return VX_OK;
}

vx_err vx_query_tints(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const float *points, uint32_t n, struct vx_tint *answers, struct vx_reply *reply,
                      struct vx_detail *detail)
{
    (void)origin_m;
    VX_TRY_RET(begin(map, options, reply, detail));
    for (uint32_t i = 0; i < n; ++i)
        answers[i] = (struct vx_tint){{(uint8_t)points[3 * (size_t)i], 1, 2}, 3, 4, 5, 0};
    return VX_OK;
}

/* ------------------------------------------------------------------ mesh */

vx_err vx_mesh_extract(struct vx_map *map, const struct vx_query_options *options, uint32_t min_weight,
                       struct vx_mesh *out, struct vx_reply *reply, struct vx_detail *detail)
{
    VX_TRY_RET(begin(map, options, reply, detail));
    uint32_t n = starts(map, "bigmesh") ? 200000 : 3;
    *out = (struct vx_mesh){.origin_m = {1, 2, 3}, .n_vertices = n, .n_triangles = n / 3};
    out->vertices = malloc(n * 12);
    out->normals = malloc(n * 12);
    out->triangles = malloc((n / 3) * 12);
    for (uint32_t i = 0; i < 3 * n; ++i) {
        out->vertices[i] = (float)i;
        out->normals[i] = (float)min_weight;
    }
    for (uint32_t i = 0; i < n / 3 * 3; ++i)
        out->triangles[i] = i;
    if (map->info.params.colour)
        out->tints = calloc(n, sizeof *out->tints);
    return VX_OK;
}

/* Maps named "bigmesh..." have more than a part takes.  An epoch of 7 or more gets what changed: one chunk
 * that is empty now. */
vx_err vx_mesh_get_chunks(struct vx_map *map, const struct vx_query_options *options,
                          const struct vx_mesh_since *since, struct vx_mesh_chunks *out,
                          struct vx_reply *reply, struct vx_detail *detail)
{
    const uint32_t n = since->epoch >= 7 ? 0 : starts(map, "bigmesh") ? 200000 : 3;
    struct vx_mesh_chunk head = {.chunk = {-1, 2, (int32_t)since->min_weight},
                                 .n_vertices = n,
                                 .n_triangles = n / 3,
                                 .vertex_bytes = sizeof(struct vx_mesh_vertex),
                                 .index_bytes = n > 65536 ? 4 : 2};
    const size_t indices = n / 3 * 3;
    VX_TRY_RET(begin(map, options, reply, detail));
    *out = (struct vx_mesh_chunks){
        .origin_m = {1, 2, 3}, .voxel_m = 0.5, .complete = since->epoch < 7, .n_chunks = 1};
    out->body_bytes =
        sizeof head + n * sizeof(struct vx_mesh_vertex) + (indices * head.index_bytes + 3) / 4 * 4;
    out->body = calloc(1, out->body_bytes);
    memcpy(out->body, &head, sizeof head);
    for (uint32_t i = 0; i < indices; ++i) {
        const uint16_t narrow = (uint16_t)i;
        uint8_t *at =
            out->body + sizeof head + n * sizeof(struct vx_mesh_vertex) + (size_t)i * head.index_bytes;
        memcpy(at, head.index_bytes == 2 ? (const void *)&narrow : &i, head.index_bytes);
    }
    return VX_OK;
}

void vx_mesh_chunks_fini(struct vx_mesh_chunks *chunks)
{
    free(chunks->body);
}

void vx_mesh_fini(struct vx_mesh *mesh)
{
    free(mesh->vertices);
    free(mesh->normals);
    free(mesh->triangles);
    free(mesh->tints);
}

/* ------------------------------------------------------------------ files */

enum { SMALL_FILE = 1000, BIG_FILE = 5500000 };

static uint8_t file_byte(uint64_t at)
{
    return (uint8_t)(at * 7 + (at >> 8) + (at >> 20));
}

vx_err vx_nvdb_write(struct vx_map *map, const struct vx_nvdb_export *options, int fd,
                     struct vx_nvdb_summary *out, struct vx_reply *reply, struct vx_detail *detail)
{
    const struct vx_query_options query = {.min_epoch = options->min_epoch,
                                           .cancelled = options->watch.cancelled,
                                           .context = options->watch.context};
    uint64_t n = starts(map, "bigfile") ? BIG_FILE : SMALL_FILE;
    options->watch.progress(options->watch.context, 1, n);
    VX_TRY_RET(begin(map, &query, reply, detail));
    if (options->layer == VX_NVDB_OCCUPANCY)
        return vx_fail(detail, VX_E_INVALID, "layer", "the fake core holds tsdf");
    if (n > options->max_bytes)
        return vx_fail(detail, VX_E_EXHAUSTED, "limits.spool_bytes", "too large");
    uint8_t *bytes = malloc(n);
    for (uint64_t i = 0; i < n; ++i)
        bytes[i] = file_byte(i + options->format);
    ssize_t k = pwrite(fd, bytes, n, 0);
    free(bytes);
    *out = (struct vx_nvdb_summary){.n_bytes = n, .n_voxels = 12, .n_leaves = 3};
    return k == (ssize_t)n ? VX_OK : vx_fail(detail, VX_E_UNAVAILABLE, "file", "cannot be written");
}

vx_err vx_nvdb_read(struct vx_device *device, const char *name, const struct vx_nvdb_import *options, int fd,
                    uint64_t n_bytes, struct vx_map **out, struct vx_nvdb_summary *summary,
                    struct vx_detail *detail)
{
    struct vx_map_params params = options->params;
    const struct vx_query_options query = {.cancelled = options->watch.cancelled,
                                           .context = options->watch.context};
    *out = NULL;
    for (uint64_t i = 0; i < n_bytes; i += 4096) {
        uint8_t bytes[4096];
        ssize_t k = pread(fd, bytes, sizeof bytes, (off_t)i);
        for (ssize_t b = 0; b < k; ++b)
            if (bytes[b] != file_byte(i + (uint64_t)b))
                return vx_fail(detail, VX_E_INVALID, "magic", "byte %llu is wrong",
                               (unsigned long long)(i + (uint64_t)b));
    }
    options->watch.progress(options->watch.context, n_bytes, n_bytes);
    params.voxel_size_m = 0.5;
    params.truncation_voxels = options->weight; /* shows that it arrived */
    *summary = (struct vx_nvdb_summary){.n_bytes = n_bytes, .n_voxels = n_bytes};
    VX_TRY_RET(vx_map_create(device, name, &params, out, detail));
    (*out)->info.epoch = 1;
    (*out)->info.n_voxels = n_bytes;
    vx_err err = wait_at_gate(*out, &query);
    if (err != VX_OK) {
        vx_map_destroy(*out);
        *out = NULL;
    }
    return err;
}
