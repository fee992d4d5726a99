/*
 * What the contract says is refused or skipped, sent over the socket to a real daemon: the code and the field
 * come back, the counter goes up by one, and the map's digest is what it was.  usage: test_refusals BACKEND
 */
#include "vxd_peer.h"
#include "vxk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 1, POINTS = 2, RANGE = 3, N_READINGS = 16 }; /* stream numbers */

static const char *backend = "cpu";
static struct vxd_proc proc;
static struct vxd_peer admin, ingest;

static void set_up(void)
{
    vxd_proc_start(&proc, "voxeld",
                   (const char *const[]){"--backend", backend, "--memory-cap", "536870912", NULL});
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_map_create(&admin, "m", 0.1);
}

static void tear_down(void)
{
    vxd_peer_close(&admin);
    vxd_peer_close(&ingest);
    vxd_proc_stop(&proc);
}

/* ------------------------------------------------------------------ messages */

/* A frame of any kind with 16 readings; cases change what they want. */
struct message {
    struct vxd_depth_frame f;
    Voxeld__V1__Points points;
    Voxeld__V1__RangeImage range;
    float elevation[4];
    float data[3 * N_READINGS];
    uint16_t data16[N_READINGS];
    const void *payload;
    size_t n;
    Voxeld__V1__Payload declared, *list[1];
    Voxeld__V1__Pose *many[80], path[3];
    Voxeld__V1__Channel channel[4];
    int32_t time[N_READINGS];
    uint16_t ring[N_READINGS];
    float intensity[N_READINGS];
    const void *beside[4]; /* payloads of the channels */
    size_t beside_n[4];
    int n_beside;
};

static void message_init(struct message *m, uint64_t stream, uint64_t seq)
{
    vxd_depth_frame_init(&m->f, stream, seq);
    voxeld__v1__points__init(&m->points);
    voxeld__v1__range_image__init(&m->range);
    m->n_beside = 0;
    m->points.n = N_READINGS;
    m->range.columns = m->range.rows = 4;
    m->range.azimuth_step_rad = 0.1;
    m->range.elevation_rad = m->elevation;
    m->range.n_elevation_rad = 4;
    for (int i = 0; i < 4; ++i)
        m->elevation[i] = 0.1f * (float)i;
    for (int i = 0; i < 3 * N_READINGS; ++i)
        m->data[i] = 2;
    for (int i = 0; i < N_READINGS; ++i)
        m->data16[i] = 2000;
    m->payload = m->data;
    m->n = N_READINGS * sizeof(float);
    if (stream == POINTS) {
        m->f.frame.model_case = VOXELD__V1__FRAME__MODEL_POINTS;
        m->f.frame.points = &m->points;
        m->n *= 3;
    } else if (stream == RANGE) {
        m->f.frame.model_case = VOXELD__V1__FRAME__MODEL_RANGE;
        m->f.frame.range = &m->range;
    }
}

static void use_u16(struct message *m)
{
    m->f.pinhole.reading = VOXELD__V1__READING__READING_U16;
    m->f.pinhole.units_per_m = 1000;
    m->payload = m->data16;
    m->n = sizeof m->data16;
}

static void declare(struct message *m)
{
    vxw_payload_declare(m->payload, m->n, &m->declared);
    m->list[0] = &m->declared;
    m->f.header.payloads = m->list;
    m->f.header.n_payloads = 1;
}

static uint64_t message_send(struct message *m)
{
    const void *payload[5] = {m->payload};
    size_t n[5] = {m->n};
    for (int i = 0; i < m->n_beside; ++i) {
        payload[1 + i] = m->beside[i];
        n[1 + i] = m->beside_n[i];
    }
    return vxd_peer_send_all(&ingest, &m->f.header, payload, n, 1 + m->n_beside);
}

static void expect_credit(void)
{
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_CREDIT, 0);
    vxd_got_free(&got);
}

static void open_streams(const char *map)
{
    vxd_peer_open_stream(&ingest, map, DEPTH, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    vxd_peer_open_stream(&ingest, map, POINTS, VOXELD__V1__SENSOR__SENSOR_POINTS, NULL);
    vxd_peer_open_stream(&ingest, map, RANGE, VOXELD__V1__SENSOR__SENSOR_RANGE, NULL);
}

/* How often frames of the stream were refused with that code. */
static uint64_t refused(uint64_t stream, Voxeld__V1__Code code)
{
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
    uint64_t n = 0;
    for (size_t i = 0; i < r->n_streams; ++i)
        for (size_t k = 0; r->streams[i]->stream == stream && k < r->streams[i]->n_refused; ++k)
            if (r->streams[i]->refused[k]->code == code)
                n = r->streams[i]->refused[k]->n;
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    return n;
}

static void integrate_good(uint64_t stream, uint64_t seq)
{
    struct message m;
    message_init(&m, stream, seq);
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
    ck_assert_uint_eq(got.header->ack->counts->used, N_READINGS);
    vxd_got_free(&got);
    expect_credit();
}

/* ------------------------------------------------------------------ refused */

#define EDIT(name, statement)                                                                                \
    static void name(struct message *m)                                                                      \
    {                                                                                                        \
        statement;                                                                                           \
    }

EDIT(position_nan, m->f.pose.y_m = NAN)
EDIT(position_inf, m->f.pose.z_m = -INFINITY)
EDIT(position_far, m->f.pose.x_m = 1e9)
EDIT(rotation_nan, m->f.pose.qx = NAN)
EDIT(rotation_inf, m->f.pose.qw = INFINITY)
EDIT(rotation_zero, m->f.pose.qw = 0)
EDIT(norm_high, m->f.pose.qw = 1.0011)
EDIT(norm_low, m->f.pose.qw = 0.9989)
EDIT(no_pose, m->f.frame.n_poses = 0)
EDIT(fx_zero, m->f.pinhole.fx_px = 0)
EDIT(fx_negative, m->f.pinhole.fx_px = -4)
EDIT(fx_nan, m->f.pinhole.fx_px = NAN)
EDIT(fy_zero, m->f.pinhole.fy_px = 0)
EDIT(fy_negative, m->f.pinhole.fy_px = -480)
EDIT(fx_huge, m->f.pinhole.fx_px = 1e308)
EDIT(fx_large, m->f.pinhole.fx_px = 1e39)
EDIT(fx_small, m->f.pinhole.fx_px = 1e-310)
EDIT(fy_large, m->f.pinhole.fy_px = 1e7)
EDIT(cy_large, m->f.pinhole.cy_px = -1e39)
EDIT(cx_inf, m->f.pinhole.cx_px = INFINITY)
EDIT(wide, m->f.pinhole.width = 5)
EDIT(narrow, m->f.pinhole.width = 3)
EDIT(width_zero, m->f.pinhole.width = 0)
EDIT(size_overflow, m->f.pinhole.width = m->f.pinhole.height = 0x80000002u)
EDIT(reading_unknown, m->f.pinhole.reading = (Voxeld__V1__Reading)7)
EDIT(no_model, m->f.frame.model_case = VOXELD__V1__FRAME__MODEL__NOT_SET)
EDIT(points_many, m->points.n = 17)
EDIT(elevations_few, m->range.n_elevation_rad = 3)
EDIT(elevation_nan, m->elevation[2] = NAN)
EDIT(elevation_order, m->elevation[2] = 1)
EDIT(step_zero, m->range.azimuth_step_rad = 0)
EDIT(step_nan, m->range.azimuth_step_rad = NAN)
EDIT(step_small, m->range.azimuth_step_rad = 1e-300)
EDIT(azimuth_inf, m->range.first_azimuth_rad = INFINITY)
EDIT(seq_duplicate, m->f.frame.seq = 10)
EDIT(seq_stale, m->f.frame.seq = 3)
EDIT(seq_zero, m->f.frame.seq = 0)
EDIT(time_backwards, m->f.frame.stamp_ns = 9999999)

static void poses_many(struct message *m)
{
    for (int i = 0; i < 65; ++i)
        m->many[i] = &m->f.pose;
    m->f.frame.poses = m->many;
    m->f.frame.n_poses = 65;
}

static void add_channel(struct message *m, Voxeld__V1__Channel channel, const void *data, size_t n)
{
    m->channel[m->n_beside] = channel;
    m->beside[m->n_beside] = data;
    m->beside_n[m->n_beside++] = n;
    m->f.frame.channels = m->channel;
    m->f.frame.n_channels = (size_t)m->n_beside;
}

/* A sensor that moves while it scans: three poses over 0.1 s, a time for every point or column. */
static void moving(struct message *m)
{
    int n = m->f.frame.stream == POINTS ? N_READINGS : 4;
    for (int i = 0; i < 3; ++i) {
        m->path[i] = m->f.pose;
        m->path[i].offset_ns = (i - 1) * 50000000;
        m->path[i].x_m += 0.01 * i;
        m->many[i] = &m->path[i];
    }
    m->f.frame.poses = m->many;
    m->f.frame.n_poses = 3;
    for (int i = 0; i < n; ++i)
        m->time[i] = i * (100000000 / n) - 50000000;
    add_channel(m, VOXELD__V1__CHANNEL__CHANNEL_TIME, m->time, (size_t)n * sizeof *m->time);
}

static void moving_untimed(struct message *m)
{
    moving(m);
    m->f.frame.n_channels = 0;
    m->n_beside = 0;
}
static void moving_late(struct message *m)
{
    moving(m);
    m->time[3] = 50000001;
}
static void moving_early(struct message *m)
{
    moving(m);
    m->time[0] = -50000001;
}
static void moving_unsorted(struct message *m)
{
    moving(m);
    m->path[2].offset_ns = -1;
}
static void moving_at_once(struct message *m)
{
    moving(m);
    m->path[2].offset_ns = m->path[1].offset_ns;
}
static void moving_long(struct message *m)
{
    moving(m);
    m->path[2].offset_ns = 5000000000ll;
}
static void times_few(struct message *m)
{
    moving(m);
    m->beside_n[0] -= 4;
}
static void times_twice(struct message *m)
{
    moving(m);
    add_channel(m, VOXELD__V1__CHANNEL__CHANNEL_TIME, m->time, m->beside_n[0]);
}
static void channel_unknown(struct message *m)
{
    add_channel(m, (Voxeld__V1__Channel)40, m->time, sizeof m->time);
}
static void channel_foreign(struct message *m)
{
    add_channel(m, VOXELD__V1__CHANNEL__CHANNEL_RING, m->ring, sizeof m->ring);
}
static void channel_missing(struct message *m)
{
    moving(m);
    m->n_beside = 0;
}
static void mask_few(struct message *m)
{
    add_channel(m, VOXELD__V1__CHANNEL__CHANNEL_MASK, m->ring, N_READINGS - 1);
}
static void mask_of_points(struct message *m)
{
    add_channel(m, VOXELD__V1__CHANNEL__CHANNEL_MASK, m->ring, N_READINGS);
}
static void lens_nan(struct message *m)
{
    static double k[2] = {0.1, NAN};
    m->f.pinhole.distortion = k;
    m->f.pinhole.n_distortion = 2;
}
static void lens_of_six(struct message *m)
{
    static double k[6];
    m->f.pinhole.distortion = k;
    m->f.pinhole.n_distortion = 6;
}
static void edge_high(struct message *m)
{
    m->f.pinhole.edge_jump = 2;
}
static void rings_few(struct message *m)
{
    add_channel(m, VOXELD__V1__CHANNEL__CHANNEL_RING, m->ring, sizeof m->ring - 2);
}

static void u16_without_units(struct message *m)
{
    use_u16(m);
    m->f.pinhole.units_per_m = 0;
}

static void u16_of_tiny_units(struct message *m)
{
    use_u16(m);
    m->f.pinhole.units_per_m = 1e-300;
}

static void encoding_known_elsewhere(struct message *m)
{
    declare(m);
    m->declared.encoding = VOXELD__V1__ENCODING__ENCODING_PNG;
}

static void checksum(struct message *m)
{
    declare(m);
    m->declared.crc32c ^= 0x80000000u;
}

static void size_declared_wrong(struct message *m)
{
    declare(m);
    ++m->declared.n_bytes;
}

#define INVALID VOXELD__V1__CODE__CODE_INVALID_ARGUMENT
#define ORDER   VOXELD__V1__CODE__CODE_OUT_OF_ORDER

static const struct refusal {
    const char *name;
    uint64_t stream;
    void (*edit)(struct message *);
    Voxeld__V1__Code code;
    const char *field;
} refusals[] = {
    {"position NaN", DEPTH, position_nan, INVALID, "pose.position_m"},
    {"position Inf", POINTS, position_inf, INVALID, "pose.position_m"},
    {"rotation NaN", DEPTH, rotation_nan, INVALID, "pose.rotation_xyzw"},
    {"rotation Inf", RANGE, rotation_inf, INVALID, "pose.rotation_xyzw"},
    {"rotation zero", DEPTH, rotation_zero, INVALID, "pose.rotation_xyzw"},
    {"norm too high", DEPTH, norm_high, INVALID, "pose.rotation_xyzw"},
    {"norm too low", POINTS, norm_low, INVALID, "pose.rotation_xyzw"},
    {"no pose", DEPTH, no_pose, INVALID, "poses"},
    {"65 poses", DEPTH, poses_many, INVALID, "poses"},
    {"fx zero", DEPTH, fx_zero, INVALID, "fx"},
    {"fx negative", DEPTH, fx_negative, INVALID, "fx"},
    {"fx NaN", DEPTH, fx_nan, INVALID, "fx"},
    {"fy zero", DEPTH, fy_zero, INVALID, "fy"},
    {"fy negative", DEPTH, fy_negative, INVALID, "fy"},
    {"fx beyond all", DEPTH, fx_huge, INVALID, "fx"},
    {"fx beyond single precision", DEPTH, fx_large, INVALID, "fx"},
    {"fx next to nothing", DEPTH, fx_small, INVALID, "fx"},
    {"fy of no camera", DEPTH, fy_large, INVALID, "fy"},
    {"cy beyond single precision", DEPTH, cy_large, INVALID, "cy"},
    {"units next to nothing", DEPTH, u16_of_tiny_units, INVALID, "units_per_m"},
    {"cx infinite", DEPTH, cx_inf, INVALID, "cx"},
    {"image larger than its data", DEPTH, wide, INVALID, "data"},
    {"image smaller than its data", DEPTH, narrow, INVALID, "data"},
    {"image without width", DEPTH, width_zero, INVALID, "width"},
    {"image whose size overflows", DEPTH, size_overflow, INVALID, "width"},
    {"unknown kind of reading", DEPTH, reading_unknown, INVALID, "pinhole.reading"},
    {"16 bits without units", DEPTH, u16_without_units, INVALID, "units_per_m"},
    {"no model", DEPTH, no_model, INVALID, "model"},
    {"more points than data", POINTS, points_many, INVALID, "data"},
    {"elevations missing", RANGE, elevations_few, INVALID, "range.elevation_rad"},
    {"elevation NaN", RANGE, elevation_nan, INVALID, "elevation_rad"},
    {"elevations out of order", RANGE, elevation_order, INVALID, "elevation_rad"},
    {"step zero", RANGE, step_zero, INVALID, "azimuth_step_rad"},
    {"step NaN", RANGE, step_nan, INVALID, "azimuth_step_rad"},
    {"azimuth infinite", RANGE, azimuth_inf, INVALID, "first_azimuth_rad"},
    {"step too small", RANGE, step_small, INVALID, "azimuth_step_rad"},
    {"encoding of a later version", DEPTH, encoding_known_elsewhere, VOXELD__V1__CODE__CODE_UNIMPLEMENTED,
     "payloads[0].encoding"},
    {"wrong checksum", DEPTH, checksum, INVALID, "payloads[0].crc32c"},
    {"wrong size declared", POINTS, size_declared_wrong, INVALID, "payloads[0].n_bytes"},
    {"seq of the last frame", DEPTH, seq_duplicate, ORDER, "seq"},
    {"seq of an older frame", DEPTH, seq_stale, ORDER, "seq"},
    {"seq 0", DEPTH, seq_zero, ORDER, "seq"},
    {"time backwards", DEPTH, time_backwards, ORDER, "stamp_ns"},
    {"image with several poses", DEPTH, moving_untimed, VOXELD__V1__CODE__CODE_UNIMPLEMENTED, "pose"},
    {"image with times", DEPTH, moving, INVALID, "channels"},
    {"several poses, no times", POINTS, moving_untimed, INVALID, "time_ns"},
    {"a point after the last pose", POINTS, moving_late, INVALID, "time_ns"},
    {"a column before the first pose", RANGE, moving_early, INVALID, "time_ns"},
    {"poses out of order", POINTS, moving_unsorted, INVALID, "pose.offset_ns"},
    {"two poses at one time", RANGE, moving_at_once, INVALID, "pose.offset_ns"},
    {"a scan of five seconds", RANGE, moving_long, INVALID, "pose.offset_ns"},
    {"a time missing", POINTS, times_few, INVALID, "channels"},
    {"times twice", POINTS, times_twice, INVALID, "channels"},
    {"unknown channel", POINTS, channel_unknown, INVALID, "channels"},
    {"rings of an image", RANGE, channel_foreign, INVALID, "channels"},
    {"a channel without payload", POINTS, channel_missing, INVALID, "payloads"},
    {"a ring missing", POINTS, rings_few, INVALID, "channels"},
    {"a mask too small", DEPTH, mask_few, INVALID, "channels"},
    {"a mask of points", POINTS, mask_of_points, INVALID, "channels"},
    {"a distortion NaN", DEPTH, lens_nan, INVALID, "distortion"},
    {"six coefficients", DEPTH, lens_of_six, INVALID, "distortion"},
    {"an edge jump of 2", DEPTH, edge_high, INVALID, "edge_jump"},
};

static void check_nack(uint64_t req, const struct refusal *c)
{
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_NACK, req);
    const Voxeld__V1__Error *e = got.header->nack->error;
    ck_assert_msg(e->code == c->code, "%s: code %d, '%.*s'", c->name, e->code, (int)e->message.len,
                  (const char *)e->message.data);
    ck_assert_msg(e->field.len == strlen(c->field) && !memcmp(e->field.data, c->field, e->field.len),
                  "%s: field '%.*s'", c->name, (int)e->field.len, (const char *)e->field.data);
    ck_assert_msg(e->message.len > 10, "%s: no words", c->name);
    vxd_got_free(&got);
    expect_credit();
}

START_TEST(refused_frames_change_nothing)
{
    uint8_t before[32], after[32];
    open_streams("m");
    integrate_good(DEPTH, 10);
    integrate_good(POINTS, 10);
    integrate_good(RANGE, 10);
    vxd_peer_map_digest(&admin, "m", before);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i) {
        const struct refusal *c = &refusals[i];
        struct message m;
        uint64_t n = refused(c->stream, c->code);
        message_init(&m, c->stream, 11);
        c->edit(&m);
        check_nack(message_send(&m), c);
        ck_assert_msg(refused(c->stream, c->code) == n + 1, "%s: not counted", c->name);
        vxd_peer_map_digest(&admin, "m", after);
        ck_assert_msg(!memcmp(before, after, 32), "%s: the digest changed", c->name);
    }
    /* none of them used up its number, and what is just within the limits is taken */
    struct message m;
    message_init(&m, DEPTH, 11);
    m.f.pose.qw = 1.0009;
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
    vxd_got_free(&got);
    expect_credit();
    integrate_good(POINTS, 11);
    integrate_good(RANGE, 11);
}
END_TEST

/* Poses over the scan, and channels that are checked only. */
START_TEST(moving_scans_are_taken)
{
    open_streams("m");
    for (uint64_t stream = POINTS; stream <= RANGE; ++stream) {
        struct message m;
        message_init(&m, stream, 1);
        moving(&m);
        if (stream == POINTS)
            add_channel(&m, VOXELD__V1__CHANNEL__CHANNEL_RING, m.ring, sizeof m.ring);
        add_channel(&m, VOXELD__V1__CHANNEL__CHANNEL_INTENSITY, m.intensity, sizeof m.intensity);
        struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
        ck_assert_uint_eq(got.header->ack->counts->used, N_READINGS);
        vxd_got_free(&got);
        got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_CREDIT, 0);
        uint64_t n = m.n;
        for (int i = 0; i < m.n_beside; ++i)
            n += m.beside_n[i];
        ck_assert_uint_eq(got.header->credit->bytes, n);
        vxd_got_free(&got);
    }
}
END_TEST

/* An encoding that is no encoding is a bad envelope: the session ends, the map does not change. */
START_TEST(encoding_that_is_none)
{
    uint8_t before[32], after[32];
    open_streams("m");
    integrate_good(DEPTH, 1);
    vxd_peer_map_digest(&admin, "m", before);
    struct message m;
    message_init(&m, DEPTH, 2);
    declare(&m);
    m.declared.encoding = (Voxeld__V1__Encoding)9;
    message_send(&m);
    vxd_peer_expect_error(&ingest, 0, INVALID, "payloads[0].encoding");
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
    ck_assert_uint_eq(r->n_bad_messages, 1);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    vxd_peer_map_digest(&admin, "m", after);
    ck_assert_mem_eq(before, after, 32);
}
END_TEST

static void create_limited(const char *name, uint64_t budget_bytes, uint64_t limit_bytes)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapCreate create = VOXELD__V1__MAP_CREATE__INIT;
    Voxeld__V1__MapParams params = VOXELD__V1__MAP_PARAMS__INIT;
    params.voxel_size_m = 0.02;
    params.frame_budget_bytes = budget_bytes;
    params.limit_bytes = limit_bytes;
    create.map = vxd_bytes(name);
    create.params = &params;
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_CREATE;
    header.map_create = &create;
    uint64_t req = vxd_peer_send(&admin, &header, NULL, 0);
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY, req);
    vxd_got_free(&got);
}

/* Refusals that only the map can tell: these have used up their number. */
START_TEST(refused_by_the_map)
{
    static const struct refusal cases[3] = {
        {"budget", 1, NULL, VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "frame_budget_bytes"},
        {"limit", 2, NULL, VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED, "limit_bytes"},
        {"far", 3, position_far, INVALID, "pose.position_m"}};
    create_limited("budget", 4096, 0);
    create_limited("limit", 0, 65536);
    create_limited("far", 0, 0);
    for (int i = 0; i < 3; ++i) {
        uint8_t before[32], after[32];
        struct message m;
        vxd_peer_map_digest(&admin, cases[i].name, before);
        vxd_peer_open_stream(&ingest, cases[i].name, cases[i].stream, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
        message_init(&m, DEPTH, 1);
        m.f.frame.stream = cases[i].stream;
        if (cases[i].edit)
            cases[i].edit(&m);
        check_nack(message_send(&m), &cases[i]);
        ck_assert_uint_eq(refused(cases[i].stream, cases[i].code), 1);
        vxd_peer_map_digest(&admin, cases[i].name, after);
        ck_assert_mem_eq(before, after, 32);
    }
}
END_TEST

/* ------------------------------------------------------------------ skipped */

enum count { ZERO, NEGATIVE, NAN_, SATURATED, TOO_NEAR, NO_RETURN };

static uint64_t count_of(const Voxeld__V1__Counts *c, enum count count)
{
    const uint64_t n[] = {c->zero, c->negative, c->nan, c->saturated, c->too_near, c->no_return};
    return n[count];
}

static const struct skipped {
    const char *name;
    uint64_t stream;
    bool u16;
    double value;
    enum count count;
} skips[] = {
    {"depth 0", DEPTH, false, 0, ZERO},
    {"depth -0", DEPTH, false, -0.0, ZERO},
    {"depth negative", DEPTH, false, -1, NEGATIVE},
    {"depth -Inf", DEPTH, false, -INFINITY, NEGATIVE},
    {"depth NaN", DEPTH, false, NAN, NAN_},
    {"depth near", DEPTH, false, 0.0999, TOO_NEAR},
    {"depth 16-bit 0", DEPTH, true, 0, ZERO},
    {"depth 16-bit 65535", DEPTH, true, 65535, SATURATED},
    {"depth 16-bit near", DEPTH, true, 50, TOO_NEAR},
    {"point 0", POINTS, false, 0, ZERO},
    {"point NaN", POINTS, false, NAN, NAN_},
    {"point near", POINTS, false, 0.2, TOO_NEAR},
    {"range negative", RANGE, false, -3, NEGATIVE},
    {"range -Inf", RANGE, false, -INFINITY, NEGATIVE},
    {"range NaN", RANGE, false, NAN, NAN_},
    {"range near", RANGE, false, 0.4, TOO_NEAR},
    {"range 0, declared invalid", RANGE, false, 0, ZERO},
};

static void fill(struct message *m, bool u16, double value, int n)
{
    if (u16)
        use_u16(m);
    for (int i = 0; i < n; ++i)
        m->data16[i] = (uint16_t)(u16 ? value : 0);
    for (int i = 0; i < (m->f.frame.stream == POINTS ? 3 * n : n); ++i)
        m->data[i] = (float)value;
}

static void invalid_zero(Voxeld__V1__OpenStream *open)
{
    open->invalid_zero = true;
}

static uint64_t map_voxels(void)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapInfo info = VOXELD__V1__MAP_INFO__INIT;
    info.map = vxd_bytes("m");
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_INFO;
    header.map_info = &info;
    struct vxd_got got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_MAP_INFO_REPLY,
                                         vxd_peer_send(&admin, &header, NULL, 0));
    uint64_t n = got.header->map_info_reply->n_voxels;
    vxd_got_free(&got);
    return n;
}

START_TEST(skipped_readings_are_counted_and_allocate_nothing)
{
    uint8_t before[32], after[32];
    uint64_t seq = 0, total[4] = {0};
    vxd_peer_open_stream(&ingest, "m", DEPTH, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    vxd_peer_open_stream(&ingest, "m", POINTS, VOXELD__V1__SENSOR__SENSOR_POINTS, NULL);
    vxd_peer_open_stream(&ingest, "m", RANGE, VOXELD__V1__SENSOR__SENSOR_RANGE, invalid_zero);
    vxd_peer_map_digest(&admin, "m", before);
    for (size_t i = 0; i < sizeof skips / sizeof *skips; ++i) {
        const struct skipped *c = &skips[i];
        struct message m;
        message_init(&m, c->stream, ++seq);
        fill(&m, c->u16, c->value, N_READINGS);
        struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
        const Voxeld__V1__Ack *a = got.header->ack;
        ck_assert_msg(count_of(a->counts, c->count) == N_READINGS, "%s: not counted", c->name);
        ck_assert_msg(a->counts->used == 0, "%s: used", c->name);
        ck_assert_msg(a->grown_bytes == 0, "%s: allocated", c->name);
        ck_assert_msg(a->n_warnings == 1 && a->warnings[0] == VOXELD__V1__WARNING__WARNING_EMPTY,
                      "%s: warning", c->name);
        vxd_got_free(&got);
        expect_credit();
        vxd_peer_map_digest(&admin, "m", after);
        ck_assert_msg(!memcmp(before, after, 32), "%s: the digest changed", c->name);
        total[c->stream] += N_READINGS;
    }
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin); /* the stream's own counters say the same */
    for (size_t i = 0; i < r->n_streams; ++i) {
        const Voxeld__V1__Counts *c = r->streams[i]->readings;
        ck_assert_uint_eq(c->zero + c->negative + c->nan + c->saturated + c->too_near,
                          total[r->streams[i]->stream]);
        ck_assert_uint_eq(c->used + c->no_return + c->outside, 0);
    }
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}
END_TEST

/* A frame of good and bad readings uses the good ones. */
START_TEST(mixed_frame)
{
    struct message m;
    vxd_peer_open_stream(&ingest, "m", DEPTH, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    message_init(&m, DEPTH, 1);
    fill(&m, false, NAN, 3);
    m.data[3] = 0;
    m.data[4] = INFINITY;
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
    const Voxeld__V1__Counts *c = got.header->ack->counts;
    ck_assert_uint_eq(c->used, N_READINGS - 5);
    ck_assert_uint_eq(c->nan, 3);
    ck_assert_uint_eq(c->zero, 1);
    ck_assert_uint_eq(c->no_return, 1);
    ck_assert_uint_eq(got.header->ack->n_warnings, 0);
    vxd_got_free(&got);
    ck_assert_uint_gt(map_voxels(), 0);
}
END_TEST

/* ------------------------------------------------------------------ saw nothing */

static void declare_7_5(Voxeld__V1__OpenStream *open)
{
    open->no_return_case = VOXELD__V1__OPEN_STREAM__NO_RETURN_NO_RETURN_VALUE;
    open->no_return_value = 7.5; /* within max range: without the declaration it would be a surface */
}

static void no_carving(Voxeld__V1__OpenStream *open)
{
    open->no_carving = true;
}

/* +Inf, the declared value and what is beyond max range carve free space and make no surface. */
static void check_saw_nothing(uint64_t stream, Voxeld__V1__Sensor sensor,
                              void (*edit)(Voxeld__V1__OpenStream *), double value, bool carves)
{
    uint8_t before[32], after[32];
    struct message m;
    vxd_peer_map_create(&admin, "saw-nothing", 0.2);
    vxd_peer_map_digest(&admin, "saw-nothing", before);
    vxd_peer_open_stream(&ingest, "saw-nothing", stream, sensor, edit);
    message_init(&m, stream, 1);
    fill(&m, false, value, N_READINGS);
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
    const Voxeld__V1__Ack *a = got.header->ack;
    ck_assert_uint_eq(a->counts->no_return, N_READINGS);
    ck_assert_uint_eq(a->counts->used, 0);
    vxd_got_free(&got);
    expect_credit();
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
    ck_assert_uint_eq(r->maps[r->n_maps - 1]->n_voxels, 0);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    vxd_peer_map_digest(&admin, "saw-nothing", after);
    ck_assert_int_eq(memcmp(before, after, 32) != 0, carves);
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapDelete body = VOXELD__V1__MAP_DELETE__INIT;
    body.map = vxd_bytes("saw-nothing");
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DELETE;
    header.map_delete = &body;
    got = vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, vxd_peer_send(&admin, &header, NULL, 0));
    vxd_got_free(&got);
}

START_TEST(saw_nothing)
{
    const Voxeld__V1__Sensor depth = VOXELD__V1__SENSOR__SENSOR_DEPTH,
                             range = VOXELD__V1__SENSOR__SENSOR_RANGE;
    check_saw_nothing(DEPTH, depth, NULL, INFINITY, true);
    check_saw_nothing(DEPTH, depth, NULL, 8.1, true);
    check_saw_nothing(DEPTH, depth, declare_7_5, 7.5, true);
    check_saw_nothing(DEPTH, depth, no_carving, INFINITY, false);
    check_saw_nothing(RANGE, range, NULL, INFINITY, true);
    check_saw_nothing(RANGE, range, NULL, 60.1, true);
    check_saw_nothing(RANGE, range, NULL, 0, true); /* LiDAR: 0 is no return unless declared invalid */
    check_saw_nothing(RANGE, range, no_carving, 0, false);
    check_saw_nothing(POINTS, VOXELD__V1__SENSOR__SENSOR_POINTS, NULL, 50, true); /* 87 m away */
    check_saw_nothing(POINTS, VOXELD__V1__SENSOR__SENSOR_POINTS, NULL, INFINITY,
                      false); /* has no direction */
}
END_TEST

START_TEST(wrong_units_are_reported)
{
    struct message m;
    vxd_peer_open_stream(&ingest, "m", DEPTH, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    message_init(&m, DEPTH, 1);
    fill(&m, false, 2000, N_READINGS); /* millimetres sent as metres */
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
    ck_assert_uint_ge(got.header->ack->n_warnings, 1);
    ck_assert_int_eq(got.header->ack->warnings[0], VOXELD__V1__WARNING__WARNING_ALL_BEYOND);
    vxd_got_free(&got);
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&admin);
    ck_assert_uint_eq(r->streams[0]->n_warnings, 1);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    ck_assert_uint_eq(map_voxels(), 0);
}
END_TEST

START_TEST(reset_lets_time_run_backwards)
{
    struct message m;
    open_streams("m");
    integrate_good(DEPTH, 10);
    message_init(&m, DEPTH, 11);
    m.f.frame.stamp_ns = 5;
    m.f.frame.reset = true;
    struct vxd_got got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_ACK, message_send(&m));
    ck_assert_int_eq(got.header->ack->map->newest_stamp_ns,
                     10000000); /* the map's clock is its newest stamp */
    vxd_got_free(&got);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        backend = argv[1];
    if (!strcmp(backend, "cuda") && !vxk_cuda_available()) {
        printf("skipped: no CUDA device answers, or this build has no CUDA backend\n");
        return 77;
    }
    Suite *suite = suite_create("refusals");
    TCase *tc = tcase_create("refusals");
    tcase_set_timeout(tc, 200);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, refused_frames_change_nothing);
    tcase_add_test(tc, encoding_that_is_none);
    tcase_add_test(tc, moving_scans_are_taken);
    tcase_add_test(tc, refused_by_the_map);
    tcase_add_test(tc, skipped_readings_are_counted_and_allocate_nothing);
    tcase_add_test(tc, mixed_frame);
    tcase_add_test(tc, saw_nothing);
    tcase_add_test(tc, wrong_units_are_reported);
    tcase_add_test(tc, reset_lets_time_run_backwards);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
