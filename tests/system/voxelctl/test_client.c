/*
 * libvoxeld-client against a daemon whose core can be made to stand still (tests/support/fake_core.c):
 * connection, bodies of every size, streams under credits, interrupts, time limits, a daemon that dies and
 * comes back, peers that are no daemon.
 */
#include "fake_gate.h"
#include "voxeld/client.h"
#include "vxd_peer.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct vxd_proc proc;
static struct vxc_client *client;
static struct vx_detail why;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void good(vx_err err)
{
    ck_assert_msg(err == VX_OK, "%s: %s [%s]", vx_err_name(err), why.text, why.field);
}

static void is(vx_err err, vx_err expected, const char *words)
{
    ck_assert_msg(err == expected && strstr(why.text, words), "wanted %s and '%s', got %s: %s",
                  vx_err_name(expected), words, vx_err_name(err), why.text);
}

static void set_up(void)
{
    fake_gate_shut();
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    good(vxc_connect(proc.dir, NULL, &client, &why));
}

static void tear_down(void)
{
    vxc_disconnect(client);
    client = NULL;
    vxd_proc_stop(&proc);
    fake_gate_remove();
}

static void make_map(const char *name)
{
    const struct vxc_map_params params = {.voxel_size_m = 0.1};
    good(vxc_map_create(client, name, &params, NULL, &why));
}

/* ------------------------------------------------------------------ connection, maps */

START_TEST(nobody_there)
{
    struct vxc_client *none;
    char dir[128];
    const double start = now_s();
    is(vxc_connect("/nonexistent/folder", NULL, &none, &why), VX_E_UNAVAILABLE,
       "no daemon answers in /nonexistent/folder (there is no socket)");
    ck_assert_ptr_null(none);
    ck_assert_str_eq(why.field, "ipc_dir");
    /* a socket that a dead daemon left behind */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(dir, sizeof dir, "%s/stale", proc.base);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/query.sock", dir);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    is(vxc_connect(dir, NULL, &none, &why), VX_E_UNAVAILABLE, "nothing listens");
    ck_assert_double_lt(now_s() - start, 2.5); /* noticed, not timed out */
    char long_dir[200];
    memset(long_dir, 'x', sizeof long_dir);
    long_dir[sizeof long_dir - 1] = '\0';
    is(vxc_connect(long_dir, NULL, &none, &why), VX_E_INVALID, "too long");
}
END_TEST

START_TEST(maps)
{
    struct vxc_map_params params = {.voxel_size_m = 0.25, .origin_m = {5e5, 4e6, -3}, .mode = VXC_OCCUPANCY};
    struct vxc_map_info info;
    struct vxc_map_state *list, state;
    uint8_t digest[32];
    size_t n;
    good(vxc_ping(client, NULL, &why));
    ck_assert(strncmp(vxc_server(client), "voxeld/", 7) == 0);
    good(vxc_map_list(client, &list, &n, &why));
    ck_assert_uint_eq(n, 0);
    free(list);
    good(vxc_map_create(client, "b", &params, &info, &why));
    ck_assert_str_eq(info.state.name, "b");
    ck_assert_double_eq(info.params.voxel_size_m, 0.25);
    ck_assert_double_eq(info.params.origin_m[1], 4e6);
    ck_assert_int_eq(info.params.mode, VXC_OCCUPANCY);
    ck_assert_double_gt(info.state.max_distance_m, 0);
    ck_assert(!info.has_bounds);
    is(vxc_map_create(client, "b", &params, NULL, &why), VX_E_EXISTS, "b");
    make_map("a.A_9-");
    good(vxc_map_list(client, &list, &n, &why));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(list[0].name, "a.A_9-");
    free(list);
    params.voxel_size_m = -1;
    is(vxc_map_create(client, "c", &params, NULL, &why), VX_E_INVALID, "");
    ck_assert_ptr_nonnull(strstr(why.field, "voxel_size_m"));
    good(vxc_map_digest(client, "b", digest, &state, &why));
    ck_assert_str_eq(state.name, "b");
    good(vxc_map_clear(client, "b", &state, &why));
    ck_assert_uint_eq(state.epoch, 1);
    good(vxc_map_delete(client, "b", &why));
    is(vxc_map_get_info(client, "b", &info, &why), VX_E_NOT_FOUND, "");
    is(vxc_map_delete(client, "b", &why), VX_E_NOT_FOUND, "");
    char long_name[66];
    memset(long_name, 'x', sizeof long_name);
    long_name[65] = '\0';
    const char *const bad[] = {"", "a b", "a/b", long_name, "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is(vxc_map_get_info(client, bad[i], &info, &why), VX_E_INVALID, "is no map name");
}
END_TEST

/* ------------------------------------------------------------------ queries of every size */

START_TEST(batches_of_any_size)
{
    /* nothing; one; the last that fits a message and the first that does not; more than the daemon takes at
     * once */
    static const size_t sizes[] = {0, 1, 87381, 87382, 1000000, 4194304 + 5};
    const double origin[3] = {100, 0, 0};
    struct vxc_map_state state;
    make_map("m");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const size_t n = sizes[s];
        float *point = malloc((n + 1) * 12);
        struct vxc_point_answer *answer = malloc((n + 1) * sizeof *answer);
        for (size_t i = 0; i < 3 * n; i++)
            point[i] = (float)(i % 1000003);
        good(vxc_query_points(client, "m", 0, origin, point, n, answer, &state, &why));
        ck_assert_str_eq(state.name, "m");
        size_t wrong = 0;
        for (size_t i = 0; i < n; i++)
            wrong += answer[i].distance_m != point[3 * i] + 100 ||
                     answer[i].gradient[2] != point[3 * i + 2] || answer[i].state != VXC_FREE;
        ck_assert_uint_eq(wrong, 0);
        free(point);
        free(answer);
    }
}
END_TEST

START_TEST(other_questions)
{
    float sphere[2][4] = {{1, 2, 3, 0.5f}, {4, 5, 6, 0.25f}},
          ray[2][6] = {{0, 0, 0, 1, 0, 7}, {0, 0, 0, 1, 0, 8}};
    struct vxc_point_answer answer[2];
    struct vxc_ray_answer hit[2];
    struct vxc_map_state state;
    make_map("m");
    good(vxc_query_spheres(client, "m", 0, NULL, sphere[0], 2, answer, NULL, &why));
    ck_assert_float_eq(answer[1].distance_m, 4);
    sphere[1][3] = 1e6f;
    is(vxc_query_spheres(client, "m", 0, NULL, sphere[0], 2, answer, NULL, &why), VX_E_INVALID, "R = ");
    good(vxc_query_rays(client, "m", 0, NULL, ray[0], 2, 12.5, hit, &state, &why));
    ck_assert_float_eq(hit[1].range_m, 12.5f);
    ck_assert_float_eq(hit[1].normal[0], 8);
    is(vxc_query_rays(client, "m", 1000, NULL, ray[0], 2, 12.5, hit, NULL, &why), VX_E_STALE, "");
    is(vxc_query_rays(client, "none", 0, NULL, ray[0], 2, 12.5, hit, NULL, &why), VX_E_NOT_FOUND, "");
}
END_TEST

START_TEST(planning)
{
    const double origin[3] = {0, 0, 0};
    const float sphere[2][4] = {{0, 0, 0, 0.5f}, {1, 0, 0, 0.25f}}, box[2][6] = {{0, 0, 0, 3}, {0, 0, 0, 4}},
                point[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const size_t n = 1300000; /* more than one request */
    float *pose = calloc(n * 2, 7 * sizeof *pose);
    struct vxc_path_answer *path = calloc(n, sizeof *path);
    const struct vxc_robot robot = {sphere[0], 2, 2, VXC_UNKNOWN_FREE};
    struct vxc_box_answer counts[2];
    struct vxc_slice_cell cell[6];
    struct vxc_slice slice = {.n_x = 3, .n_y = 2};
    struct vxc_explanation reason[2];
    struct vxc_map_state state;
    ck_assert(pose && path);
    make_map("m");
    for (size_t i = 0; i < n; i++)
        pose[14 * i] = (float)(i % 1000003);
    good(vxc_query_paths(client, "m", 0, origin, &robot, pose, n, path, &state, &why));
    ck_assert_str_eq(state.name, "m");
    for (size_t i = 0; i < n; i++)
        if (path[i].contact != pose[14 * i] || path[i].sphere != 1 || path[i].unknown != 1)
            ck_abort_msg("path %zu", i);
    is(vxc_query_paths(client, "m", 0, origin, &(struct vxc_robot){sphere[0], 0, 2, VXC_UNKNOWN_FREE}, pose,
                       1, path, NULL, &why),
       VX_E_INVALID, "spheres");
    good(vxc_query_boxes(client, "m", 0, NULL, box[0], 2, counts, NULL, &why));
    ck_assert(counts[1].n_free == 4 && counts[1].n_unknown == 1);
    good(vxc_query_slice(client, "m", 0, &slice, cell, NULL, &why));
    ck_assert(cell[5].distance_m == 5 && cell[5].cost == VXC_COST_INSCRIBED);
    slice.min_z_m = 1;
    is(vxc_query_slice(client, "m", 0, &slice, cell, NULL, &why), VX_E_INVALID, "");
    good(vxc_explain(client, "m", 0, NULL, point[0], 2, reason, NULL, &why));
    ck_assert(reason[1].why == VXC_WHY_MEASURED && reason[1].weight == 9 && reason[1].answer.distance_m == 4);
    is(vxc_explain(client, "none", 0, NULL, point[0], 2, reason, NULL, &why), VX_E_NOT_FOUND, "");
    free(pose);
    free(path);
}
END_TEST

START_TEST(meshes)
{
    struct vxc_mesh mesh;
    make_map("m");
    make_map("bigmesh");
    good(vxc_mesh_get(client, "m", 0, 0, &mesh, &why));
    ck_assert_uint_eq(mesh.n_vertices, 3);
    ck_assert_double_eq(mesh.origin_m[2], 3);
    vxc_mesh_fini(&mesh);
    good(vxc_mesh_get(client, "bigmesh", 0, 5, &mesh, &why)); /* 5.6 MB: several parts */
    ck_assert_uint_eq(mesh.n_vertices, 200000);
    ck_assert_uint_eq(mesh.n_triangles, 66666);
    for (uint32_t i = 0; i < 3 * mesh.n_vertices; i += 997) {
        ck_assert_float_eq(mesh.vertices[i], (float)i);
        ck_assert_float_eq(mesh.normals[i], 5);
    }
    ck_assert_uint_eq(mesh.triangles[3 * 66666 - 1], 3 * 66666 - 1);
    vxc_mesh_fini(&mesh);
}
END_TEST

/* ------------------------------------------------------------------ streams */

struct fates {
    unsigned n[4];
    uint64_t last_epoch, readings;
    vx_err err;
    char words[320];
    uintptr_t last_user;
};

static void on_ack(void *context, const struct vxc_ack *ack)
{
    struct fates *f = context;
    f->n[ack->fate]++;
    f->last_epoch = ack->epoch;
    f->readings += ack->counts.used;
    f->last_user = (uintptr_t)ack->user;
    if (ack->fate == VXC_REFUSED) {
        f->err = ack->err;
        snprintf(f->words, sizeof f->words, "%s", ack->why->text);
    }
}

static float depth[8][8];

static struct vxc_frame make_frame(int i)
{
    return (struct vxc_frame){.sensor = VXC_DEPTH,
                              .stamp_ns = 1000 * i,
                              .pose.rotation_xyzw = {0, 0, 0, 1},
                              .width = 8,
                              .height = 8,
                              .fx = 8,
                              .fy = 8,
                              .cx = 3.5,
                              .cy = 3.5,
                              .mask = (const uint8_t *)depth,
                              .data = depth,
                              .data_bytes = sizeof depth};
}

static struct vxc_stream *open_stream(const char *map, enum vxc_sensor sensor, struct fates *fates)
{
    const struct vxc_stream_options options = {.sensing = {.sensor = sensor, .no_return_value = NAN},
                                               .ack_received = true};
    struct vxc_stream *stream;
    memset(fates, 0, sizeof *fates);
    good(vxc_stream_open(client, map, &options, on_ack, fates, &stream, &why));
    return stream;
}

START_TEST(frames_under_credits)
{
    struct fates fates;
    make_map("m");
    struct vxc_stream *stream = open_stream("m", VXC_DEPTH, &fates);
    for (int i = 0; i < 100; i++) {
        uint64_t seq;
        const struct vxc_frame frame = make_frame(i);
        good(vxc_stream_send(stream, &frame, (void *)(uintptr_t)(i + 7), &seq, &why));
        ck_assert_uint_eq(seq, (unsigned)i + 1);
        ck_assert_uint_le(vxc_stream_n_waiting(stream), 8);
    }
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(vxc_stream_n_waiting(stream), 0);
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 100);
    ck_assert_uint_eq(fates.n[VXC_RECEIVED], 100);
    ck_assert_uint_eq(fates.n[VXC_REFUSED], 0);
    ck_assert_uint_eq(fates.readings, 6400);
    ck_assert_uint_eq(fates.last_epoch, 100);
    ck_assert_uint_eq(fates.last_user, 106);
    vxc_stream_close(stream);
}
END_TEST

START_TEST(refused_frames_are_told)
{
    struct fates fates;
    make_map("m");
    make_map("full");
    struct vxc_stream *stream = open_stream("m", VXC_DEPTH, &fates);
    struct vxc_frame frame = make_frame(5);
    frame.pose.rotation_xyzw[3] = 2;
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_int_eq(fates.err, VX_E_INVALID);
    ck_assert_str_ne(fates.words, "");
    frame = make_frame(5);
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    frame = make_frame(4); /* time runs backwards */
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_int_eq(fates.err, VX_E_ORDER);
    frame.reset = true;
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 2);
    ck_assert_uint_eq(fates.n[VXC_REFUSED], 2);
    /* what never leaves */
    frame = make_frame(9);
    frame.sensor = VXC_POINTS;
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_INVALID, "another sensor");
    frame = make_frame(9);
    frame.data = NULL;
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_INVALID, "no readings");
    frame = make_frame(9);
    frame.data_bytes = 65ull << 20;
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_EXHAUSTED, "the daemon takes");
    vxc_stream_close(stream);
    stream = open_stream("full", VXC_DEPTH, &fates);
    frame = make_frame(0);
    for (int i = 0; i < 10; i++)
        good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_REFUSED], 10);
    ck_assert_int_eq(fates.err, VX_E_EXHAUSTED);
    vxc_stream_close(stream);
    struct vxc_stream *none;
    const struct vxc_stream_options options = {.sensing = {.sensor = VXC_DEPTH, .no_return_value = NAN}};
    is(vxc_stream_open(client, "none", &options, NULL, NULL, &none, &why), VX_E_NOT_FOUND, "");
    ck_assert_ptr_null(none);
}
END_TEST

/* Whoever deletes a map takes the credit of its streams along: a sender must hear of it, not wait for credit.
 */
START_TEST(a_deleted_map_ends_its_streams)
{
    struct fates fates;
    struct vxc_client *other;
    make_map("m");
    struct vxc_stream *stream = open_stream("m", VXC_DEPTH, &fates);
    struct vxc_frame frame = make_frame(0);
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    good(vxc_connect(proc.dir, NULL, &other, &why));
    good(vxc_map_delete(other, "m", &why));
    vxc_disconnect(other);
    vx_err err = VX_OK;
    unsigned n_sent = 0;
    while (n_sent < 100 && err == VX_OK) {
        frame = make_frame(1 + (int)n_sent);
        err = vxc_stream_send(stream, &frame, NULL, NULL, &why);
        n_sent += err == VX_OK;
    }
    is(err, VX_E_NOT_FOUND, "map was deleted");
    ck_assert_uint_eq(vxc_stream_n_waiting(stream), 0); /* no frame's fate is lost by the error */
    ck_assert(!vxc_stream_ready(stream, sizeof depth));
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 1);
    ck_assert_uint_eq(fates.n[VXC_REFUSED], n_sent);
    ck_assert_int_eq(fates.err, VX_E_NOT_FOUND);
    vxc_stream_close(stream);
    make_map("m"); /* of the same name, but another one */
    stream = open_stream("m", VXC_DEPTH, &fates);
    frame = make_frame(0);
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 1);
    vxc_stream_close(stream);
}
END_TEST

START_TEST(every_sensor_and_many_poses)
{
    static float range[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, elevation[2] = {0.1f, -0.1f}, points[3][3];
    static const int32_t times[3] = {0, 30, 63};
    struct vxc_timed_pose path[VXC_MAX_POSES];
    struct fates fates;
    make_map("m");
    struct vxc_stream *stream = open_stream("m", VXC_RANGE, &fates);
    struct vxc_frame frame = {.sensor = VXC_RANGE,
                              .pose.rotation_xyzw = {0, 0, 0, 1},
                              .width = 4,
                              .height = 2,
                              .data = range,
                              .data_bytes = sizeof range,
                              .azimuth_step_rad = 0.1,
                              .elevation_rad = elevation};
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.readings, 8);
    vxc_stream_close(stream);
    stream = open_stream("m", VXC_POINTS, &fates);
    for (int i = 0; i < VXC_MAX_POSES; i++)
        path[i] = (struct vxc_timed_pose){.offset_ns = i, .pose.rotation_xyzw = {0, 0, 0, 1}};
    frame = (struct vxc_frame){.sensor = VXC_POINTS,
                               .width = 3,
                               .height = 1,
                               .data = points,
                               .data_bytes = sizeof points,
                               .path = path,
                               .n_path = VXC_MAX_POSES,
                               .time_ns = times};
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    frame.n_path++;
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_INVALID, "at most 64");
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 1);
    vxc_stream_close(stream);
}
END_TEST

/* ------------------------------------------------------------------ waiting ends */

/* Waits until the daemon has a request of the map under way, then acts: no sleep decides the order. */
static void *act_when_busy(void *argument)
{
    void (*act)(void) = *(void (**)(void))argument;
    struct vxc_client *watcher;
    struct vx_detail detail;
    for (bool busy = false; !busy;) {
        struct vxc_stats *stats;
        if (vxc_connect(proc.dir, NULL, &watcher, &detail) != VX_OK)
            break;
        busy = vxc_get_stats(watcher, &stats, &detail) == VX_OK && stats->n_maps > 0 &&
               stats->maps[0].n_waiting_requests + stats->maps[0].n_waiting_frames > 0;
        vxc_stats_free(stats);
        vxc_disconnect(watcher);
    }
    act();
    return NULL;
}

static void interrupt_client(void)
{
    vxc_interrupt(client);
}

static void kill_daemon(void)
{
    kill(proc.pid, SIGKILL);
}

/* Asks the gated map in this thread, while the other one acts. */
static vx_err ask_gated(void (*act)(void))
{
    const float point[3] = {0, 0, 0};
    struct vxc_point_answer answer;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, act_when_busy, &act), 0);
    const vx_err err = vxc_query_points(client, "gated", 0, NULL, point, 1, &answer, NULL, &why);
    pthread_join(thread, NULL);
    return err;
}

/* ------------------------------------------------------------------ files */

enum { BIG = 5500000 }; /* of fake_core.c */

struct file {
    uint8_t *bytes;
    size_t n, stop_at; /* fails there, when not 0 */
    uint64_t told;     /* bytes that the last progress spoke of */
};

static vx_err take(void *context, const void *bytes, size_t n, struct vx_detail *detail)
{
    struct file *f = context;
    if (f->stop_at && f->n + n > f->stop_at)
        return vx_fail(detail, VX_E_UNAVAILABLE, "output", "the disk is full");
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
    return VX_OK;
}

static vx_err give(void *context, uint64_t at, void *out, size_t n, struct vx_detail *detail)
{
    struct file *f = context;
    if (f->stop_at && at + n > f->stop_at)
        return vx_fail(detail, VX_E_UNAVAILABLE, "file", "the disk is gone");
    memcpy(out, f->bytes + at, n);
    return VX_OK;
}

static void tell(void *context, enum vxc_stage stage, uint64_t done, uint64_t total)
{
    struct file *f = context;
    ck_assert_uint_le(done, total);
    if (stage == VXC_STAGE_SENDING)
        f->told = done;
}

START_TEST(maps_as_files)
{
    struct file f = {.bytes = malloc(BIG)};
    const struct vxc_export out = {.take = take, .progress = tell, .context = &f};
    struct vxc_import in = {.n_bytes = BIG, .give = give, .progress = tell, .context = &f};
    struct vxc_export_info exported;
    struct vxc_map_info info;
    make_map("bigfile");
    good(vxc_map_export(client, "bigfile", &out, &exported, &why));
    ck_assert_uint_eq(exported.n_bytes, BIG);
    ck_assert_uint_eq(f.n, BIG);
    ck_assert_uint_eq(f.told, BIG);
    ck_assert_uint_eq(exported.n_voxels, 12);
    ck_assert_str_eq(exported.state.name, "bigfile");
    f.told = 0;
    in.has_weight = true;
    in.weight = 4;
    good(vxc_map_import(client, "copy", &in, &info, &why)); /* the fake core looks at every byte */
    ck_assert_uint_eq(f.told, BIG);
    ck_assert_uint_eq(info.n_voxels, BIG);
    ck_assert_double_eq(info.params.truncation_voxels, 4);
    is(vxc_map_import(client, "copy", &in, NULL, &why), VX_E_EXISTS, "already");
    /* ends of every kind leave no map, and a client that goes on */
    f.stop_at = 3000000;
    is(vxc_map_import(client, "other", &in, NULL, &why), VX_E_UNAVAILABLE, "the disk is gone");
    f.n = 0;
    is(vxc_map_export(client, "bigfile", &out, NULL, &why), VX_E_UNAVAILABLE, "the disk is full");
    f.stop_at = 0;
    f.bytes[BIG / 2] ^= 1;
    is(vxc_map_import(client, "other", &in, NULL, &why), VX_E_INVALID, "is wrong");
    is(vxc_map_get_info(client, "other", &info, &why), VX_E_NOT_FOUND, "no map");
    in.params.voxel_size_m = 1;
    is(vxc_map_import(client, "other", &in, NULL, &why), VX_E_INVALID, "from the file");
    is(vxc_map_export(client, "none", &out, NULL, &why), VX_E_NOT_FOUND, "no map");
    good(vxc_ping(client, NULL, &why));
    free(f.bytes);
}
END_TEST

START_TEST(interrupt_ends_a_call)
{
    make_map("gated");
    is(ask_gated(interrupt_client), VX_E_CANCELLED, "interrupted");
    good(vxc_ping(client, NULL, &why)); /* and the client goes on */
    fake_gate_open();
    const float point[3] = {4, 0, 0};
    struct vxc_point_answer answer;
    good(vxc_query_points(client, "gated", 0, NULL, point, 1, &answer, NULL, &why));
    ck_assert_float_eq(answer.distance_m, 4);
}
END_TEST

START_TEST(time_limit_ends_a_call)
{
    const float point[3] = {0, 0, 0};
    struct vxc_point_answer answer;
    struct fates fates;
    make_map("gated");
    vxc_set_timeout(client, 150);
    is(vxc_query_points(client, "gated", 0, NULL, point, 1, &answer, NULL, &why), VX_E_DEADLINE,
       "within 150 ms");
    struct vxc_stream *stream = open_stream("gated", VXC_DEPTH, &fates);
    const struct vxc_frame frame = make_frame(0);
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    is(vxc_stream_flush(stream, &why), VX_E_DEADLINE, "no frame for 150 ms");
    vxc_set_timeout(client, 0);
    fake_gate_open();
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 1);
    vxc_stream_close(stream);
}
END_TEST

START_TEST(daemon_dies_under_a_call)
{
    struct fates fates;
    struct vxc_map_info info;
    make_map("gated");
    struct vxc_stream *stream = open_stream("gated", VXC_DEPTH, &fates);
    const struct vxc_frame frame = make_frame(0);
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    is(ask_gated(kill_daemon), VX_E_UNAVAILABLE, "went away");
    is(vxc_stream_flush(stream, &why), VX_E_UNAVAILABLE, "opened again");
    ck_assert_uint_eq(fates.n[VXC_REFUSED], 1);
    ck_assert_int_eq(fates.err, VX_E_UNAVAILABLE);
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_UNAVAILABLE, "opened again");
    vxc_stream_close(stream);
    (void)vxd_proc_wait(&proc, SIGKILL); /* until then its sockets may still take connections */
    for (int i = 0; i < 4; i++)          /* the same words each time, however fast they are asked for */
        is(vxc_map_get_info(client, "gated", &info, &why), VX_E_UNAVAILABLE, "but nothing listens");
}
END_TEST

/* Points and their times together are more than a stream's credit. */
START_TEST(a_frame_over_the_credit_is_refused)
{
    struct fates fates;
    static float point[3] = {2, 0, 0};
    struct vxc_frame frame = {.sensor = VXC_POINTS, .pose.rotation_xyzw = {0, 0, 0, 1}, .height = 1};
    make_map("m");
    struct vxc_stream *stream = open_stream("m", VXC_POINTS, &fates);
    frame.data = frame.time_ns = (const int32_t *)point; /* as no reading is looked at */
    frame.width = 5500000;
    frame.data_bytes = frame.width * sizeof point;
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_EXHAUSTED, "limits.credit_bytes");
    ck_assert_uint_eq(vxc_stream_n_waiting(stream), 0);
    vxc_stream_close(stream);
}
END_TEST

START_TEST(daemon_comes_back)
{
    struct fates fates;
    struct vxc_map_state *list;
    size_t n;
    make_map("m");
    struct vxc_stream *stream = open_stream("m", VXC_DEPTH, &fates);
    const struct vxc_frame frame = make_frame(0);
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGTERM), 0);
    const char *const args[] = {"--ipc-dir", proc.dir, NULL};
    proc.pid = vxd_proc_spawn("voxeld_fake", args);
    vx_err err;
    do /* until the new one listens */
        err = vxc_map_list(client, &list, &n, &why);
    while (err == VX_E_UNAVAILABLE);
    good(err);
    ck_assert_uint_eq(n, 0);
    free(list);
    is(vxc_stream_send(stream, &frame, NULL, NULL, &why), VX_E_UNAVAILABLE, "opened again");
    vxc_stream_close(stream);
    make_map("m");
    stream = open_stream("m", VXC_DEPTH, &fates);
    good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    good(vxc_stream_flush(stream, &why));
    ck_assert_uint_eq(fates.n[VXC_INTEGRATED], 1);
    vxc_stream_close(stream);
}
END_TEST

START_TEST(stats_and_shutdown)
{
    struct vxc_stats *stats;
    struct fates fates;
    make_map("m");
    struct vxc_stream *stream = open_stream("m", VXC_DEPTH, &fates);
    for (int i = 0; i < 3; i++) {
        const struct vxc_frame frame = make_frame(i);
        good(vxc_stream_send(stream, &frame, NULL, NULL, &why));
    }
    good(vxc_stream_flush(stream, &why));
    good(vxc_get_stats(client, &stats, &why));
    ck_assert_uint_eq(stats->n_devices, 1);
    ck_assert_str_eq(stats->devices[0].name, "fake");
    ck_assert_uint_eq(stats->n_maps, 1);
    ck_assert_uint_eq(stats->maps[0].n_frames, 3);
    ck_assert_uint_eq(stats->n_streams, 1);
    ck_assert_str_eq(stats->streams[0].sensor, "depth");
    ck_assert_uint_eq(stats->streams[0].n_integrated, 3);
    ck_assert_uint_eq(stats->streams[0].readings.used, 192);
    vxc_stats_free(stats);
    vxc_stream_close(stream);
    good(vxc_shutdown(client, &why));
    ck_assert_int_eq(vxd_proc_wait(&proc, 0), 0);
}
END_TEST

/* ------------------------------------------------------------------ no daemon at all */

/* A ROUTER that answers every HELLO with the given frames. */
struct impostor {
    void *socket;
    const uint8_t *prelude;
    size_t prelude_bytes;
    bool silent;
};

static void *answer_once(void *argument)
{
    struct impostor *s = argument;
    zmq_msg_t id, rest;
    zmq_msg_init(&id);
    if (zmq_msg_recv(&id, s->socket, 0) < 0) {
        zmq_msg_close(&id);
        return NULL;
    }
    int more = 1;
    while (more) {
        zmq_msg_init(&rest);
        zmq_msg_recv(&rest, s->socket, 0);
        more = zmq_msg_more(&rest);
        zmq_msg_close(&rest);
    }
    if (s->silent) {
        zmq_msg_close(&id);
        return NULL;
    }
    zmq_msg_send(&id, s->socket, ZMQ_SNDMORE);
    zmq_send(s->socket, s->prelude, s->prelude_bytes, ZMQ_SNDMORE);
    zmq_send(s->socket, "xx", 2, 0);
    return NULL;
}

static void impostor(const uint8_t *prelude, size_t n, bool silent, vx_err expected, const char *words)
{
    const struct vxc_connect_options options = {.connect_timeout_ms = 300};
    const int timeout = 5000, none = 0;
    struct impostor s = {.prelude = prelude, .prelude_bytes = n, .silent = silent};
    struct vxc_client *fooled;
    char dir[128], address[160];
    pthread_t thread;
    void *context = zmq_ctx_new();
    s.socket = zmq_socket(context, ZMQ_ROUTER);
    zmq_setsockopt(s.socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(s.socket, ZMQ_LINGER, &none, sizeof none);
    snprintf(dir, sizeof dir, "%s/impostor", proc.base);
    mkdir(dir, 0700);
    snprintf(address, sizeof address, "ipc://%s/query.sock", dir);
    ck_assert_int_eq(zmq_bind(s.socket, address), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, answer_once, &s), 0);
    is(vxc_connect(dir, &options, &fooled, &why), expected, words);
    pthread_join(thread, NULL);
    zmq_close(s.socket);
    zmq_ctx_term(context);
}

START_TEST(impostors)
{
    uint8_t prelude[VXW_PRELUDE_BYTES];
    struct vxw_prelude fields = {.major = 1, .type = 17, .header_bytes = 2};
    vxw_prelude_encode(&fields, prelude);
    impostor(NULL, 0, true, VX_E_UNAVAILABLE, "says no HELLO");
    impostor((const uint8_t *)"HTTP/1.1 200 OK\r", 16, false, VX_E_INTERNAL, "");
    impostor(prelude, 7, false, VX_E_INTERNAL, "");
    impostor(prelude, sizeof prelude, false, VX_E_INTERNAL, "");
    prelude[4] = 9;
    impostor(prelude, sizeof prelude, false, VX_E_VERSION, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client");
    TCase *tests = tcase_create("client");
    tcase_set_timeout(tests, 0);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nobody_there);
    tcase_add_test(tests, maps);
    tcase_add_test(tests, batches_of_any_size);
    tcase_add_test(tests, other_questions);
    tcase_add_test(tests, planning);
    tcase_add_test(tests, meshes);
    tcase_add_test(tests, frames_under_credits);
    tcase_add_test(tests, refused_frames_are_told);
    tcase_add_test(tests, a_deleted_map_ends_its_streams);
    tcase_add_test(tests, every_sensor_and_many_poses);
    tcase_add_test(tests, maps_as_files);
    tcase_add_test(tests, interrupt_ends_a_call);
    tcase_add_test(tests, time_limit_ends_a_call);
    tcase_add_test(tests, daemon_dies_under_a_call);
    tcase_add_test(tests, a_frame_over_the_credit_is_refused);
    tcase_add_test(tests, daemon_comes_back);
    tcase_add_test(tests, stats_and_shutdown);
    tcase_add_test(tests, impostors);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
