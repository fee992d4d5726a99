/* query.c - batches of points, spheres and rays against one pinned epoch. */
#include "vx/query.h"

#include "body/query.h"
#include "esdf.h"
#include "work.h"

#include <math.h>
#include <string.h>

enum {
    SLICE = 1 << 20,        /* questions on the device at once */
    MAX_RAY_VOXELS = 100000 /* keeps one ray from holding the device for long */
};

_Static_assert(sizeof(struct vxk_point_answer) == sizeof(struct vx_point_answer), "one layout");
_Static_assert(sizeof(struct vxk_ray_answer) == sizeof(struct vx_ray_answer), "one layout");
_Static_assert((int)VXK_STATE_FREE == VX_STATE_FREE && (int)VXK_STATE_OCCUPIED == VX_STATE_OCCUPIED,
               "one list");
_Static_assert((int)VXK_Q_DISTANCE == VX_Q_DISTANCE && (int)VXK_Q_GRADIENT == VX_Q_GRADIENT &&
                   (int)VXK_Q_OUTSIDE == VX_Q_OUTSIDE && (int)VXK_Q_TOUCHES_UNKNOWN == VX_Q_TOUCHES_UNKNOWN &&
                   (int)VXK_Q_COLLIDES == VX_Q_COLLIDES,
               "one list");

/* A batch: locked reader, pinned epoch. */
struct session {
    struct vx_map *map;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    struct vx__reader_state *rs;
    struct vx__snapshot snapshot;
    struct vxk_query q;
    uint64_t esdf_epoch;
};

static void session_end(struct session *s)
{
    vx__snapshot_release(s->map, &s->snapshot);
    vx__reader_unlock(s->map);
}

/* with_esdf: the distance field is brought to the pinned epoch. */
static vx_err session_begin(struct session *s, const double origin_m[3], bool with_esdf)
{
    const struct vx_map_params *params = vx__map_params(s->map);
    const struct vx__esdf *esdf = NULL;
    vx_err err;

    VX_TRY_RET(vx__reader_lock(s->map, &s->rs));
    err = vx__snapshot_pin(s->map, &s->snapshot);
    if (err != VX_OK) {
        vx__reader_unlock(s->map);
        return err;
    }
    if (s->options && s->options->min_epoch > s->snapshot.epoch)
        VX_TRY(vx_fail(s->detail, VX_E_STALE, "min_epoch", "epoch %llu is asked for, the newest is %llu",
                       (unsigned long long)s->options->min_epoch, (unsigned long long)s->snapshot.epoch));
    if (with_esdf) {
        VX_TRY(vx__esdf_refresh(s->map, s->rs, &s->snapshot, s->options, &esdf, s->detail));
        s->q.esdf = esdf->view;
        s->esdf_epoch = esdf->epoch;
    }
    s->q.grid = s->snapshot.grid;
    for (int a = 0; a < 3; a++)
        s->q.offset_m[a] = origin_m[a] - params->origin_m[a];
    s->q.voxel_m = params->voxel_size_m;
    s->q.undefined = NAN;
    s->q.occupancy = params->mode == VX_OCCUPANCY;
    return VX_OK;

fail:
    session_end(s);
    return err;
}

static void fill_reply(const struct session *s, struct vx_reply *reply)
{
    const struct vx_map_params *params = vx__map_params(s->map);

    if (!reply)
        return;
    memcpy(reply->uuid, vx__map_uuid(s->map), sizeof reply->uuid);
    reply->epoch = s->snapshot.epoch;
    reply->esdf_epoch = s->esdf_epoch;
    reply->newest_stamp_ns = s->snapshot.newest_stamp_ns;
    reply->max_distance_m = vx__esdf_radius(params) * params->voxel_size_m;
}

/* Which question a batch asks. */
struct question {
    enum { POINTS, SPHERES, RAYS } kind;
    uint32_t in_bytes, out_bytes; /* a question, an answer */
    double max_range_m;
};

static vx_err launch(const struct session *s, const struct question *k, const void *in, void *out, uint32_t n)
{
    struct vxk_queue *q = s->rs->queue;

    if (k->kind == POINTS) {
        struct vxk_query_points_args a = {.q = s->q, .points = in, .out = out};
        return VXK_LAUNCH(q, query_points, &a, n);
    }
    if (k->kind == SPHERES) {
        struct vxk_query_spheres_args a = {.q = s->q, .spheres = in, .out = out};
        return VXK_LAUNCH(q, query_spheres, &a, n);
    }
    struct vxk_query_rays_args a = {.q = s->q, .rays = in, .out = out, .max_range_m = k->max_range_m};
    return VXK_LAUNCH(q, query_rays, &a, n);
}

/* Asks n questions, a slice at a time. */
static vx_err ask(struct session *s, const struct question *k, const void *in, uint32_t n, void *out)
{
    const struct vxk_ops *ops = s->rs->queue->dev->ops;
    struct vxk_queue *q = s->rs->queue;
    uint32_t slice = n < SLICE ? n : SLICE;
    struct vx__work w;
    void *in_dev, *out_dev;
    vx_err err = VX_OK;

    if (!n)
        return VX_OK;
    vx__work_init(&w, s->map, q, s->detail);
    in_dev = vx__work_get(&w, slice, k->in_bytes);
    out_dev = vx__work_get(&w, slice, k->out_bytes);
    err = w.err;
    for (uint64_t first = 0; err == VX_OK && first < n; first += slice) {
        uint32_t m = n - first < slice ? (uint32_t)(n - first) : slice;
        if (vx__cancelled(s->options)) {
            err = vx_fail(s->detail, VX_E_CANCELLED, "", "given up after %llu of %u answers",
                          (unsigned long long)first, n);
            break;
        }
        VX_TRY(ops->upload(q, in_dev, (const char *)in + first * k->in_bytes, (uint64_t)m * k->in_bytes));
        VX_TRY(launch(s, k, in_dev, out_dev, m));
        VX_TRY(ops->download(q, (char *)out + first * k->out_bytes, out_dev, (uint64_t)m * k->out_bytes));
        VX_TRY(ops->wait(q));
    }
fail:
    vx__work_drop(&w, 0);
    return err;
}

static vx_err run(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                  const struct question *k, const void *in, uint32_t n, void *out, struct vx_reply *reply,
                  struct vx_detail *detail)
{
    struct session s = {.map = map, .options = options, .detail = detail};
    vx_err err;

    for (int a = 0; a < 3; a++)
        if (!isfinite(origin_m[a]))
            return vx_fail(detail, VX_E_INVALID, "origin_m", "must be finite, got %g", origin_m[a]);
    VX_TRY_RET(session_begin(&s, origin_m, k->kind != RAYS));
    err = ask(&s, k, in, n, out);
    if (err == VX_OK)
        fill_reply(&s, reply);
    session_end(&s);
    return err;
}

vx_err vx_query_points(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                       const float *points, uint32_t n, struct vx_point_answer *answers,
                       struct vx_reply *reply, struct vx_detail *detail)
{
    static const struct question k = {
        .kind = POINTS, .in_bytes = 3 * sizeof(float), .out_bytes = sizeof *answers};

    return run(map, options, origin_m, &k, points, n, answers, reply, detail);
}

vx_err vx_query_spheres(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *spheres, uint32_t n, struct vx_point_answer *answers,
                        struct vx_reply *reply, struct vx_detail *detail)
{
    static const struct question k = {
        .kind = SPHERES, .in_bytes = 4 * sizeof(float), .out_bytes = sizeof *answers};
    const struct vx_map_params *params = vx__map_params(map);
    double most = vx__esdf_radius(params) * params->voxel_size_m;

    /* A radius that is R in single precision is not refused for its rounding. */
    for (uint32_t i = 0; i < n; i++) {
        double r = spheres[4 * (uint64_t)i + 3];
        if (!(r >= 0.0) || r > most * (1 + 1e-6))
            return vx_fail(detail, VX_E_INVALID, "radius",
                           "radius of sphere %u is %g m; it must be 0 .. %g m, the distance up to which this "
                           "map knows surfaces (R)",
                           i, r, most);
    }
    return run(map, options, origin_m, &k, spheres, n, answers, reply, detail);
}

vx_err vx_query_rays(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                     const float *rays, uint32_t n, double max_range_m, struct vx_ray_answer *answers,
                     struct vx_reply *reply, struct vx_detail *detail)
{
    const struct question k = {.kind = RAYS,
                               .in_bytes = 6 * sizeof(float),
                               .out_bytes = sizeof *answers,
                               .max_range_m = max_range_m};
    double most = MAX_RAY_VOXELS * vx__map_params(map)->voxel_size_m;

    if (!(max_range_m > 0.0) || max_range_m > most)
        return vx_fail(detail, VX_E_INVALID, "max_range_m",
                       "must be positive and at most %g m (%d voxels), got %g", most, (int)MAX_RAY_VOXELS,
                       max_range_m);
    return run(map, options, origin_m, &k, rays, n, answers, reply, detail);
}
