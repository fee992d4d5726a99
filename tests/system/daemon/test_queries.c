/* QUERY_*, MESH: inline and in parts both ways, CANCEL, deadlines, transfers that go wrong. */
#include "fake_gate.h"
#include "vx/planning.h"
#include "vx/query.h"
#include "vxd_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vxd_proc proc;
static struct vxd_peer admin, query;

static void set_up(void)
{
    fake_gate_shut();
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_map_create(&admin, "gated", 0.1);
    vxd_peer_map_create(&admin, "bigmesh", 0.1);
}

static void tear_down(void)
{
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    vxd_proc_stop(&proc);
    fake_gate_remove();
}

/* Item i of a payload; ZeroMQ promises no alignment. */
static struct vx_point_answer point_at(struct vxd_got *got, int i)
{
    struct vx_point_answer a;
    memcpy(&a, (char *)zmq_msg_data(&got->payload) + (size_t)i * sizeof a, sizeof a);
    return a;
}

static struct vx_ray_answer ray_at(struct vxd_got *got, int i)
{
    struct vx_ray_answer a;
    memcpy(&a, (char *)zmq_msg_data(&got->payload) + (size_t)i * sizeof a, sizeof a);
    return a;
}

struct points_message {
    vxw_header header;
    Voxeld__V1__QueryPoints body;
    Voxeld__V1__Vec3 origin;
};

static void points_init(struct points_message *m, const char *map, uint32_t n)
{
    voxeld__v1__header__init(&m->header);
    voxeld__v1__query_points__init(&m->body);
    voxeld__v1__vec3__init(&m->origin);
    m->body.map = vxd_bytes(map);
    m->body.n = n;
    m->body.origin_m = &m->origin;
    m->header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    m->header.query_points = &m->body;
}

static uint64_t send_points(const char *map, const float *points, uint32_t n)
{
    struct points_message m;
    points_init(&m, map, n);
    return vxd_peer_send(&query, &m.header, points, (size_t)n * 12);
}

static uint64_t send_mesh(const char *map, bool progress)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Mesh mesh = VOXELD__V1__MESH__INIT;
    mesh.map = vxd_bytes(map);
    mesh.min_weight = 2;
    mesh.progress = progress;
    header.body_case = VOXELD__V1__HEADER__BODY_MESH;
    header.mesh = &mesh;
    return vxd_peer_send(&query, &header, NULL, 0);
}

static void cancel(uint64_t req)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Cancel body = VOXELD__V1__CANCEL__INIT;
    body.req_id = req;
    header.body_case = VOXELD__V1__HEADER__BODY_CANCEL;
    header.cancel = &body;
    vxd_peer_send(&query, &header, NULL, 0);
}

static void send_part(uint64_t req, uint32_t index, bool last, const void *data, size_t n)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Part part = VOXELD__V1__PART__INIT;
    part.index = index;
    part.last = last;
    header.req_id = req;
    header.body_case = VOXELD__V1__HEADER__BODY_PART;
    header.part = &part;
    vxd_peer_send(&query, &header, data, n);
}

/* ------------------------------------------------------------------ small ones */

START_TEST(points_inline)
{
    struct points_message m;
    float points[6] = {1, 2, 3, 4, 5, 6};
    points_init(&m, "m", 2);
    m.origin.x = 100;
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT,
                                         vxd_peer_send(&query, &m.header, points, sizeof points));
    ck_assert_uint_eq(got.header->result->n, 2);
    ck_assert_double_eq(got.header->result->map->max_distance_m, 1.0);
    ck_assert_uint_eq(got.header->body_bytes, 0);
    ck_assert_int_eq(got.n_payloads, 1);
    ck_assert_uint_eq(zmq_msg_size(&got.payload), 48);
    ck_assert_float_eq(point_at(&got, 0).distance_m, 101);
    ck_assert_float_eq(point_at(&got, 1).distance_m, 104);
    ck_assert_float_eq(point_at(&got, 1).gradient[2], 6);
    ck_assert_uint_eq(point_at(&got, 1).state, VX_STATE_FREE);
    vxd_got_free(&got);
}
END_TEST

START_TEST(no_points_are_fine)
{
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, send_points("m", NULL, 0));
    ck_assert_uint_eq(got.header->result->n, 0);
    ck_assert_int_eq(got.n_payloads, 0);
    vxd_got_free(&got);
}
END_TEST

START_TEST(spheres_and_rays)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QuerySpheres spheres = VOXELD__V1__QUERY_SPHERES__INIT;
    Voxeld__V1__QueryRays rays = VOXELD__V1__QUERY_RAYS__INIT;
    float sphere[8] = {1, 2, 3, 0.5f, 4, 5, 6, 0.5f}, ray[6] = {0, 0, 0, 1, 2, 3};
    spheres.map = rays.map = vxd_bytes("m");
    spheres.n = 2;
    rays.n = 1;
    rays.max_range_m = 7;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_SPHERES;
    header.query_spheres = &spheres;
    uint64_t req = vxd_peer_send(&query, &header, sphere, sizeof sphere);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    ck_assert_float_eq(point_at(&got, 1).distance_m, 4);
    vxd_got_free(&got);
    sphere[7] = 1.5f; /* larger than R */
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, sphere, sizeof sphere);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "radius");
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_RAYS;
    header.query_rays = &rays;
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, ray, sizeof ray);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    ck_assert_float_eq(ray_at(&got, 0).range_m, 7);
    ck_assert_float_eq(ray_at(&got, 0).normal[0], 3);
    vxd_got_free(&got);
}
END_TEST

/* Trajectories, boxes, slices, explanations. */
START_TEST(planning)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryTrajectory paths = VOXELD__V1__QUERY_TRAJECTORY__INIT;
    Voxeld__V1__QueryBox boxes = VOXELD__V1__QUERY_BOX__INIT;
    Voxeld__V1__QuerySlice slice = VOXELD__V1__QUERY_SLICE__INIT;
    Voxeld__V1__Explain explain = VOXELD__V1__EXPLAIN__INIT;
    float robot[2 * 4 + 2 * 3 * 7] = {0, 0, 0, 0.5f}, box[12] = {0, 0, 0, 4, 1, 1, 0, 0, 0, 5, 1, 1},
                                point[3] = {7, 8, 9};
    struct vx_path_answer path;
    struct vx_box_answer counts;
    struct vx_slice_cell cell;
    struct vx_explanation why;
    uint64_t req;
    struct vxd_got got;
    paths.map = boxes.map = slice.map = explain.map = vxd_bytes("m");
    robot[8 + 21] = 2.25f; /* the second path's first position */
    paths.n = 2;
    paths.n_waypoints = 3;
    paths.n_spheres = 2;
    paths.unknown = VOXELD__V1__UNKNOWN__UNKNOWN_OCCUPIED;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_TRAJECTORY;
    header.query_trajectory = &paths;
    req = vxd_peer_send(&query, &header, robot, sizeof robot);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    ck_assert_uint_eq(got.header->result->n, 2);
    ck_assert_uint_eq(zmq_msg_size(&got.payload), 48);
    memcpy(&path, (char *)zmq_msg_data(&got.payload) + 24, sizeof path);
    ck_assert_uint_eq(path.sphere, 1);
    ck_assert_float_eq(path.contact, 2.25f);
    ck_assert_float_eq(path.clearance_m, -0.5f);
    ck_assert_float_eq(path.unknown, 2);
    vxd_got_free(&got);
    paths.n_spheres = 0;
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, robot, sizeof robot);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "n_spheres");
    paths.n_spheres = 2;
    paths.n_waypoints = 4; /* the body is too short for that */
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, robot, sizeof robot);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "payloads[0].n_bytes");

    boxes.n = 2;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_BOX;
    header.query_box = &boxes;
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, box, sizeof box);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    memcpy(&counts, (char *)zmq_msg_data(&got.payload) + 32, sizeof counts);
    ck_assert(counts.n_free == 5 && counts.n_unknown == 1);
    vxd_got_free(&got);

    slice.n_x = 5;
    slice.n_y = 4;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_SLICE;
    header.query_slice = &slice;
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, NULL, 0);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    ck_assert_uint_eq(zmq_msg_size(&got.payload), 5 * 4 * 8);
    memcpy(&cell, (char *)zmq_msg_data(&got.payload) + 19 * 8, sizeof cell);
    ck_assert(cell.distance_m == 19 && cell.cost == VX_COST_INSCRIBED);
    vxd_got_free(&got);
    slice.min_z_m = 1;
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, NULL, 0);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "max_z_m");
    slice.n_x = slice.n_y = 1u << 31; /* their product does not fit 32 bits */
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, NULL, 0);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "n");

    explain.n = 1;
    header.body_case = VOXELD__V1__HEADER__BODY_EXPLAIN;
    header.explain = &explain;
    header.req_id = 0;
    req = vxd_peer_send(&query, &header, point, sizeof point);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    memcpy(&why, zmq_msg_data(&got.payload), sizeof why);
    ck_assert(why.why == VX_WHY_MEASURED && why.voxel[1] == 2 && why.weight == 9 &&
              why.answer.distance_m == 7);
    vxd_got_free(&got);
}
END_TEST

START_TEST(query_refusals)
{
    struct points_message m;
    float points[6] = {0};
    vxd_peer_expect_error(&query, send_points("nowhere", points, 1), VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
    points_init(&m, "m", 2);
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 12),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "payloads[0].n_bytes");
    points_init(&m, "m", 0);
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 12),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "n");
    points_init(&m, "m", 4194305);
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 12),
                          VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "n");
    points_init(&m, "m", 2);
    m.origin.y = 0.0 / 0.0;
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 24),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "origin_m");
    points_init(&m, "m", 2);
    m.body.min_epoch = 99;
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 24),
                          VOXELD__V1__CODE__CODE_STALE_EPOCH, "min_epoch");
    points_init(&m, "m", 2);
    Voxeld__V1__Payload declared, *list[1] = {&declared};
    vxw_payload_declare(points, 24, &declared);
    declared.crc32c ^= 1;
    m.header.payloads = list;
    m.header.n_payloads = 1;
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 24),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "payloads[0].crc32c");
    declared.crc32c ^= 1;
    declared.encoding = VOXELD__V1__ENCODING__ENCODING_LZ4;
    m.header.req_id = 0;
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, points, 24),
                          VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "payloads[0].encoding");
    points_init(&m, "m", 2);
    m.header.body_bytes = 23;
    vxd_peer_expect_error(&query, vxd_peer_send(&query, &m.header, NULL, 0),
                          VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "body_bytes");
    ck_assert(vxd_peer_is_quiet(&query));
}
END_TEST

/* ------------------------------------------------------------------ parts */

START_TEST(a_million_points)
{
    enum { N = 1000000 };
    struct points_message m;
    float *points = malloc((size_t)N * 12);
    struct vx_point_answer *answers = malloc((size_t)N * sizeof *answers);
    for (uint32_t i = 0; i < 3 * N; ++i)
        points[i] = (float)i;
    points_init(&m, "m", N);
    m.header.body_bytes = (uint64_t)N * 12;
    uint64_t req = vxd_peer_send(&query, &m.header, NULL, 0);
    vxd_peer_upload(&query, req, points, (size_t)N * 12);
    struct vxd_got got;
    do { /* credits that were given before the last part came */
        got = vxd_peer_get(&query);
        if (got.header->body_case == VOXELD__V1__HEADER__BODY_RESULT)
            break;
        ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_CREDIT);
        vxd_got_free(&got);
    } while (true);
    ck_assert_uint_eq(got.header->result->n, N);
    ck_assert_uint_eq(got.header->body_bytes, (uint64_t)N * sizeof *answers);
    ck_assert_int_eq(got.n_payloads, 0);
    vxd_got_free(&got);
    ck_assert(vxd_peer_is_quiet(&query)); /* nothing without credit */
    vxd_peer_download(&query, req, answers, (size_t)N * sizeof *answers);
    for (uint32_t i = 0; i < N; ++i)
        ck_assert_msg(answers[i].gradient[1] == (float)(3 * i + 1), "%u", i);
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    ck_assert_uint_eq(r->transfer_bytes, 0); /* all given back */
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    free(points);
    free(answers);
}
END_TEST

START_TEST(mesh_in_parts)
{
    enum { NV = 200000, NT = NV / 3 };
    size_t n = (size_t)NV * 24 + (size_t)NT * 12;
    unsigned char *body = malloc(n);
    uint64_t req = send_mesh("bigmesh", true);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_PROGRESS, req);
    ck_assert_int_eq(got.header->progress->phase, VOXELD__V1__PHASE__PHASE_QUEUED);
    vxd_got_free(&got);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    ck_assert_uint_eq(got.header->result->n_vertices, NV);
    ck_assert_uint_eq(got.header->result->n_triangles, NT);
    ck_assert_double_eq(got.header->result->mesh_origin_m->y, 2);
    ck_assert_uint_eq(got.header->body_bytes, n);
    vxd_got_free(&got);
    vxd_peer_download(&query, req, body, n);
    const float *v = (const float *)body;
    const uint32_t *t = (const uint32_t *)(body + (size_t)NV * 24);
    for (uint32_t i = 0; i < 3 * NV; i += 997)
        ck_assert(v[i] == (float)i && v[3 * NV + i] == 2);
    ck_assert_uint_eq(t[3 * NT - 1], 3 * NT - 1);
    free(body);
}
END_TEST

START_TEST(small_mesh_inline)
{
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, send_mesh("m", false));
    ck_assert_int_eq(got.n_payloads, 1);
    ck_assert_uint_eq(zmq_msg_size(&got.payload), 3 * 24 + 12);
    vxd_got_free(&got);
}
END_TEST

static uint64_t send_chunks(Voxeld__V1__Mesh *mesh, const char *map)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    mesh->map = vxd_bytes(map);
    header.body_case = VOXELD__V1__HEADER__BODY_MESH;
    header.mesh = mesh;
    return vxd_peer_send(&query, &header, NULL, 0);
}

START_TEST(mesh_by_chunks)
{
    enum { NV = 200000, NT = NV / 3 };
    const size_t n = 24 + (size_t)NV * 12 + (size_t)NT * 12;
    unsigned char *body = malloc(n);
    uint32_t head[6];
    Voxeld__V1__Mesh mesh = VOXELD__V1__MESH__INIT;
    mesh.chunks = true;
    mesh.min_weight = 2;
    uint64_t req = send_chunks(&mesh, "bigmesh");
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    const Voxeld__V1__Result *r = got.header->result;
    ck_assert(r->n_chunks == 1 && r->mesh_complete && r->mesh_voxel_m == 0.5 && r->mesh_origin_m->z == 3);
    ck_assert_uint_eq(got.header->body_bytes, n);
    vxd_got_free(&got);
    vxd_peer_download(&query, req, body, n);
    memcpy(head, body, sizeof head);
    ck_assert(head[0] == 0xffffffffu && head[1] == 2 && head[2] == 2 && head[3] == NV && head[4] == NT);
    ck_assert_uint_eq(head[5], 4u << 16 | 12);
    free(body);
    mesh.since_epoch = 7;
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, send_chunks(&mesh, "bigmesh"));
    ck_assert(!got.header->result->mesh_complete && got.n_payloads == 1);
    ck_assert_uint_eq(zmq_msg_size(&got.payload), 24);
    vxd_got_free(&got);
}
END_TEST

START_TEST(mesh_by_chunks_refused)
{
    const Voxeld__V1__Code invalid = VOXELD__V1__CODE__CODE_INVALID_ARGUMENT;
    Voxeld__V1__Mesh mesh = VOXELD__V1__MESH__INIT;
    Voxeld__V1__Box box = VOXELD__V1__BOX__INIT;
    Voxeld__V1__Vec3 corner = VOXELD__V1__VEC3__INIT;
    mesh.since_epoch = 3;
    vxd_peer_expect_error(&query, send_chunks(&mesh, "m"), invalid, "chunks");
    mesh.chunks = true;
    mesh.since_uuid = vxd_bytes("15 bytes it has");
    vxd_peer_expect_error(&query, send_chunks(&mesh, "m"), invalid, "since_uuid");
    mesh.since_uuid = vxd_bytes("");
    mesh.region = &box;
    box.max_m = &corner;
    vxd_peer_expect_error(&query, send_chunks(&mesh, "m"), invalid, "region");
    box.min_m = &corner;
    vxd_peer_expect_error(&query, send_chunks(&mesh, "nosuch"), VOXELD__V1__CODE__CODE_NOT_FOUND, "map");
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, send_chunks(&mesh, "m"));
    vxd_got_free(&got);
}
END_TEST

/* Two downloads of one session side by side. */
START_TEST(two_downloads)
{
    size_t n = 200000u * 24 + 66666u * 12;
    unsigned char *a = malloc(n), *b = malloc(n);
    uint64_t ra = send_mesh("bigmesh", false), rb = send_mesh("bigmesh", false);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, ra);
    vxd_got_free(&got);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, rb);
    vxd_got_free(&got);
    vxd_peer_download(&query, rb, b, n);
    vxd_peer_download(&query, ra, a, n);
    ck_assert_mem_eq(a, b, n);
    free(a);
    free(b);
}
END_TEST

static uint64_t begin_upload(uint32_t n)
{
    struct points_message m;
    points_init(&m, "m", n);
    m.header.body_bytes = (uint64_t)n * 12;
    uint64_t req = vxd_peer_send(&query, &m.header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_CREDIT, req);
    ck_assert_uint_eq(got.header->credit->parts, 8);
    vxd_got_free(&got);
    return req;
}

START_TEST(uploads_that_go_wrong)
{
    static unsigned char data[24 * 12 + 1];
    uint64_t req = begin_upload(24);
    send_part(req, 1, false, data, 12);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "part.index");
    send_part(req, 0, false, data, 12); /* the transfer is over: dropped without a word */
    ck_assert(vxd_peer_is_quiet(&query));
    req = begin_upload(24);
    send_part(req, 0, true, data, 12);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "part");
    req = begin_upload(24);
    send_part(req, 0, false, data, 24 * 12);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "part");
    req = begin_upload(24);
    send_part(req, 0, true, data, 24 * 12 + 1);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "part");
    req = begin_upload(24);
    send_part(req, 0, false, NULL, 0);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "payloads");
    req = begin_upload(24); /* in many small parts it is fine */
    for (uint32_t i = 0; i < 24; ++i)
        send_part(req, i, i == 23, data, 12);
    for (;;) {
        struct vxd_got got = vxd_peer_get(&query);
        unsigned type = got.header->body_case;
        vxd_got_free(&got);
        if (type == VOXELD__V1__HEADER__BODY_RESULT)
            break;
        ck_assert_uint_eq(type, VOXELD__V1__HEADER__BODY_CREDIT);
    }
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    ck_assert_uint_eq(r->transfer_bytes, 0);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}
END_TEST

START_TEST(parts_without_credit)
{
    vxd_proc_stop(&proc);
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    struct vxd_proc one = {.yaml = "log_level: error\nlimits: {upload_parts: 1}\n"};
    vxd_proc_start(&one, "voxeld_fake", NULL);
    proc = one;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "gated", 0.1);
    struct points_message m;
    points_init(&m, "gated", 10);
    m.header.body_bytes = 120;
    uint64_t req = vxd_peer_send(&query, &m.header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_CREDIT, req);
    ck_assert_uint_eq(got.header->credit->parts, 1);
    vxd_got_free(&got);
    float points[30] = {0};
    send_part(req, 0, false, points, 60); /* takes the credit; the next one is given at once */
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_CREDIT, req);
    vxd_got_free(&got);
    send_part(req, 1, true, points, 60);
    ck_assert(vxd_peer_is_quiet(&query));
    send_part(req, 2, false, points, 12); /* complete already: it waits at the gate */
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "part");
    fake_gate_open();
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
}
END_TEST

START_TEST(transfers_are_bounded)
{
    vxd_proc_stop(&proc);
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    struct vxd_proc small = {
        .yaml = "log_level: error\nlimits: {transfer_bytes: 2097152, requests_per_session: 3}\n"};
    vxd_proc_start(&small, "voxeld_fake", NULL);
    proc = small;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_map_create(&admin, "bigmesh", 0.1);
    struct points_message m;
    points_init(&m, "m", 100000);
    m.header.body_bytes = 1200000;
    uint64_t req = vxd_peer_send(&query, &m.header, NULL, 0);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "limits.transfer_bytes");
    vxd_peer_expect_error(&query, send_mesh("bigmesh", false), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED,
                          "limits.transfer_bytes");
    for (int i = 0; i < 3; ++i)
        begin_upload(10);
    float p[3] = {0};
    vxd_peer_expect_error(&query, send_points("m", p, 1), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED,
                          "limits.requests_per_session");
}
END_TEST

START_TEST(transfer_that_does_not_move_ends)
{
    vxd_proc_stop(&proc);
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    struct vxd_proc quick = {.yaml = "log_level: error\nlimits: {transfer_idle_s: 1}\n"};
    vxd_proc_start(&quick, "voxeld_fake", NULL);
    proc = quick;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "m", 0.1);
    uint64_t req = begin_upload(10);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_DEADLINE_EXCEEDED, "limits.transfer_idle_s");
}
END_TEST

/* ------------------------------------------------------------------ CANCEL and deadlines */

START_TEST(cancel_running_waiting_uploading_sending)
{
    float p[3] = {0};
    uint64_t running = send_points("gated", p, 1), waiting = send_points("gated", p, 1);
    ck_assert(vxd_peer_is_quiet(&query));
    cancel(waiting);
    vxd_peer_expect_error(&query, waiting, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    cancel(running);
    vxd_peer_expect_error(&query, running, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    uint64_t uploading = begin_upload(100);
    cancel(uploading);
    vxd_peer_expect_error(&query, uploading, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    uint64_t sending = send_mesh("bigmesh", false);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, sending);
    vxd_got_free(&got);
    cancel(sending);
    vxd_peer_expect_error(&query, sending, VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    cancel(sending); /* gone: no answer */
    cancel(123456);
    ck_assert(vxd_peer_is_quiet(&query));
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    ck_assert_uint_eq(r->transfer_bytes, 0);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}
END_TEST

START_TEST(a_mesh_does_not_hold_points_up)
{
    float p[3] = {0};
    uint64_t mesh = send_mesh("gated", false);
    uint64_t req = send_points("m", p, 1);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
    fake_gate_open();
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, mesh);
    vxd_got_free(&got);
}
END_TEST

/* While boxes of a map take their time, its points and meshes are answered; and what is known of a map, also
 * while its points do. */
START_TEST(boxes_hold_nobody_up)
{
    vxw_header header = VOXELD__V1__HEADER__INIT, ask = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryBox boxes = VOXELD__V1__QUERY_BOX__INIT;
    Voxeld__V1__MapInfo info = VOXELD__V1__MAP_INFO__INIT;
    const float p[6] = {0};
    uint64_t req[5];
    vxd_peer_map_create(&admin, "boxgate", 0.1);
    boxes.map = info.map = vxd_bytes("boxgate");
    boxes.n = 1;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_BOX;
    header.query_box = &boxes;
    ask.body_case = VOXELD__V1__HEADER__BODY_MAP_INFO;
    ask.map_info = &info;
    for (int i = 0; i < 2; i++, header.req_id = 0)
        req[i] = vxd_peer_send(&query, &header, p, sizeof p);
    req[2] = send_points("boxgate", p, 1);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req[2]);
    vxd_got_free(&got);
    req[3] = send_mesh("boxgate", false);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req[3]);
    vxd_got_free(&got);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY,
                          vxd_peer_send(&query, &ask, NULL, 0));
    vxd_got_free(&got);
    req[4] = send_points("gated", p, 1);
    info.map = vxd_bytes("gated");
    ask.req_id = 0;
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY,
                          vxd_peer_send(&query, &ask, NULL, 0));
    vxd_got_free(&got);
    cancel(req[1]); /* it waits behind the first */
    vxd_peer_expect_error(&query, req[1], VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    cancel(req[4]);
    vxd_peer_expect_error(&query, req[4], VOXELD__V1__CODE__CODE_CANCELLED, NULL);
    fake_gate_open();
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req[0]);
    vxd_got_free(&got);
}
END_TEST

START_TEST(deadline_passes_in_the_queue)
{
    float p[3] = {0};
    struct points_message m;
    uint64_t first = send_points("gated", p, 1);
    points_init(&m, "gated", 1);
    m.header.timeout_us = 1;
    uint64_t late = vxd_peer_send(&query, &m.header, p, sizeof p);
    m.header.timeout_us = UINT64_MAX; /* does not overflow */
    m.header.req_id = 0;
    uint64_t patient = vxd_peer_send(&query, &m.header, p, sizeof p);
    ck_assert(vxd_peer_is_quiet(&query));
    fake_gate_open();
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, first);
    vxd_got_free(&got);
    vxd_peer_expect_error(&query, late, VOXELD__V1__CODE__CODE_DEADLINE_EXCEEDED, "timeout_us");
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, patient);
    vxd_got_free(&got);
}
END_TEST

START_TEST(same_number_twice)
{
    float p[3] = {0};
    struct points_message m;
    uint64_t req = send_points("gated", p, 1);
    points_init(&m, "gated", 1);
    m.header.req_id = req;
    vxd_peer_send(&query, &m.header, p, sizeof p);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_INVALID_ARGUMENT, "req_id");
    fake_gate_open();
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, req);
    vxd_got_free(&got);
}
END_TEST

/* A session that goes while its requests run, wait, upload and download. */
START_TEST(session_ends_with_open_requests)
{
    struct vxd_peer gone;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Bye bye = VOXELD__V1__BYE__INIT;
    float p[3] = {0};
    struct vxd_peer keep = query;
    vxd_peer_hello(&gone, &proc, "query");
    query = gone;
    send_points("gated", p, 1);
    send_points("gated", p, 1);
    begin_upload(100);
    uint64_t mesh = send_mesh("bigmesh", false);
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, mesh);
    vxd_got_free(&got);
    gone = query;
    query = keep;
    header.body_case = VOXELD__V1__HEADER__BODY_BYE;
    header.bye = &bye;
    got = vxd_peer_expect(&gone, VOXELD__V1__HEADER__BODY_BYE, vxd_peer_send(&gone, &header, NULL, 0));
    vxd_got_free(&got);
    vxd_peer_close(&gone);
    fake_gate_open();
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, send_points("gated", p, 1));
    vxd_got_free(&got);
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    ck_assert_uint_eq(r->transfer_bytes, 0);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon queries");
    TCase *tc = tcase_create("queries");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, points_inline);
    tcase_add_test(tc, no_points_are_fine);
    tcase_add_test(tc, spheres_and_rays);
    tcase_add_test(tc, planning);
    tcase_add_test(tc, query_refusals);
    tcase_add_test(tc, a_million_points);
    tcase_add_test(tc, mesh_in_parts);
    tcase_add_test(tc, small_mesh_inline);
    tcase_add_test(tc, mesh_by_chunks);
    tcase_add_test(tc, mesh_by_chunks_refused);
    tcase_add_test(tc, two_downloads);
    tcase_add_test(tc, uploads_that_go_wrong);
    tcase_add_test(tc, parts_without_credit);
    tcase_add_test(tc, transfers_are_bounded);
    tcase_add_test(tc, transfer_that_does_not_move_ends);
    tcase_add_test(tc, cancel_running_waiting_uploading_sending);
    tcase_add_test(tc, a_mesh_does_not_hold_points_up);
    tcase_add_test(tc, boxes_hold_nobody_up);
    tcase_add_test(tc, deadline_passes_in_the_queue);
    tcase_add_test(tc, same_number_twice);
    tcase_add_test(tc, session_ends_with_open_requests);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
