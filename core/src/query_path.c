/* query_path.c - robots of spheres along paths. */
#include "esdf.h"
#include "query_ask.h"
#include "vx/planning.h"
#include "work.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    MOST_SPHERES = 4096,
    MOST_WAYPOINTS = 4096,
    MOST_ELEMENTS = 1 << 26, /* of one batch */
    FIRST_STAGE = 1 << 16,
    MOST_LISTED = 1 << 19,                               /* elements of a stage */
    MOST_STAGES = 3 + (MOST_ELEMENTS / MOST_LISTED) + 1, /* 2^16, 2^17, 2^18 of them first */
    MOST_PATHS = 1 << 20,
    MOST_BYTES = 1 << 26, /* of their poses */
    FEWEST_AT_ONCE = 1 << 10,
    FIRST_AT_ONCE = 1 << 14,
    FEWEST_WHOLE = 64,   /* paths */
    MOST_WAYS = 1 << 19, /* of a launch of whole paths */
    MOST_WAYS_GPU = 1 << 22,
    FIRST_LONG_WAYS = 1 << 17 /* of a launch of whole paths with long ways, at first */
};

_Static_assert(sizeof(struct vxk_path_answer) == sizeof(struct vx_path_answer) &&
                   offsetof(struct vxk_path_answer, clearance) ==
                       offsetof(struct vx_path_answer, clearance_m) &&
                   offsetof(struct vxk_path_answer, unknown) == offsetof(struct vx_path_answer, unknown) &&
                   offsetof(struct vxk_path_answer, status) == offsetof(struct vx_path_answer, status),
               "one layout");
_Static_assert((int)VXK_UNKNOWN_FREE == VX_UNKNOWN_FREE && (int)VXK_UNKNOWN_OCCUPIED == VX_UNKNOWN_OCCUPIED &&
                   (int)VXK_UNKNOWN_REPORT == VX_UNKNOWN_REPORT,
               "one list");

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t n_segments(const struct vx_paths *p)
{
    return p->n_waypoints > 1 ? p->n_waypoints - 1 : 1;
}

/* How far from its origin a robot has a sphere's centre, metres. */
static float reach_of(const struct vx_paths *p)
{
    float most = 0;

    for (uint32_t i = 0; i < p->n_spheres; i++) {
        const float *c = p->spheres + 4 * (size_t)i;
        most = fmaxf(most, c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
    }
    return sqrtf(most);
}

/* A list on which there may be long ways.  Each can take 16,000 samples, so they could keep the device for
 * hours: a few at first. */
static vx_err march_long(const struct vx__session *s, struct vxk_query_path_args *a, struct vx__work *w)
{
    struct vxk_path_counters listed;
    uint32_t at_once = FIRST_AT_ONCE;

    VX_TRY_RET(vx__work_read(w, &listed, a->counters, sizeof listed));
    for (a->entry = 0; a->entry < listed.n;) {
        const uint32_t part = smaller(listed.n - a->entry, at_once);
        const double start_s = vx__now_s();

        VX_TRY_RET(VXK_LAUNCH(w->q, query_path, a, part));
        VX_TRY_RET(w->q->dev->ops->wait(w->q));
        a->entry += part;
        if (vx__cancelled(s->options))
            return vx_fail(s->detail, VX_E_CANCELLED, "", "given up on the way");
        at_once = vx__pace(at_once, vx__now_s() - start_s, FEWEST_AT_ONCE, MOST_LISTED);
    }
    return VX_OK;
}

/* All ways in stages, the first segments first: a path that touches something early drops out of the later
 * ones.  The host waits between them only where long ways may be among them. */
static vx_err sweep(const struct vx__session *s, struct vxk_query_path_args *a, struct vx__work *w)
{
    const uint32_t n = a->n_paths * a->n_segments * a->n_spheres;
    struct vxk_path_counters *counters = vx__work_filled(w, MOST_STAGES + 1, sizeof *counters, 0), legs;
    uint32_t at_once = FIRST_STAGE;

    a->list = vx__work_get(w, smaller(n, MOST_LISTED), sizeof *a->list);
    a->legs = vx__work_get(w, (uint64_t)a->n_paths * a->n_segments, sizeof *a->legs);
    VX_TRY_RET(w->err);
    a->counters = counters;
    VX_TRY_RET(VXK_LAUNCH(w->q, query_path_legs, a, a->n_paths * a->n_segments));
    VX_TRY_RET(vx__work_read(w, &legs, counters, sizeof legs));
    for (a->first = 0; a->first < n; at_once = smaller(2 * at_once, MOST_LISTED)) {
        const uint32_t part = smaller(n - a->first, at_once);

        if (a->first && vx__cancelled(s->options))
            return vx_fail(s->detail, VX_E_CANCELLED, "", "given up on the way");
        a->counters++;
        a->entry = 0;
        VX_TRY_RET(VXK_LAUNCH(w->q, query_path_list, a, part));
        VX_TRY_RET(legs.n_long ? march_long(s, a, w)
                               : VXK_LAUNCH_COUNTED(w->q, query_path, a, &a->counters->n, 1, part));
        a->first += part;
    }
    return VX_OK;
}

static struct vxk_query_path_args args_of(const struct vx__session *s, const struct vx__question *k,
                                          const struct vx__batch *b)
{
    const struct vx_paths *p = k->what;

    return (struct vxk_query_path_args){.q = s->q,
                                        .poses = b->in,
                                        .spheres = b->common,
                                        .out = b->out,
                                        .n_paths = b->n,
                                        .n_waypoints = p->n_waypoints,
                                        .n_segments = n_segments(p),
                                        .n_spheres = p->n_spheres,
                                        .unknown = p->unknown,
                                        .reach = (float)(reach_of(p) / s->q.voxel_m),
                                        .longest = VXK_PATH_WHOLE_LENGTH};
}

/* Ways of all paths side by side: for any paths. */
static vx_err launch_ways(const struct vx__session *s, const struct vx__question *k,
                          const struct vx__batch *b)
{
    struct vxk_query_path_args a = args_of(s, k, b);
    struct vx__work w;
    vx_err err;

    vx__work_init(&w, s->map, s->rs->queue, s->detail);
    VX_TRY(VXK_LAUNCH(s->rs->queue, query_path_begin, &a, b->n));
    VX_TRY(sweep(s, &a, &w));
    VX_TRY(VXK_LAUNCH(s->rs->queue, query_path_cut, &a, b->n));
    VX_TRY(VXK_LAUNCH(s->rs->queue, query_path_touch, &a, b->n * a.n_spheres));
    VX_TRY(VXK_LAUNCH(s->rs->queue, query_path_end, &a, b->n));
fail:
    vx__work_drop(&w, 0);
    return err;
}

/* True when paths go one by one: there are enough to keep every thread busy, and none has many ways. */
static bool goes_whole(const struct vx__session *s, const struct vx_paths *p, uint32_t n)
{
    return (n >= FEWEST_WHOLE || s->rs->queue->dev->backend == VXK_CUDA) &&
           p->n_spheres <= VXK_PATH_WHOLE_SPHERES &&
           (uint64_t)n_segments(p) * p->n_spheres <= VXK_PATH_WHOLE_WAYS;
}

static vx_err launch_paths(const struct vx__session *s, const struct vx__question *k,
                           const struct vx__batch *b)
{
    struct vxk_query_path_args a = args_of(s, k, b);
    const uint32_t most = s->rs->queue->dev->backend == VXK_CUDA ? MOST_WAYS_GPU : MOST_WAYS,
                   at_once = most / (a.n_segments * a.n_spheres) + 1;

    if (!goes_whole(s, k->what, b->n))
        return launch_ways(s, k, b);
    for (uint32_t first = 0; first < b->n; first += a.n_paths) {
        a.n_paths = smaller(b->n - first, at_once);
        a.poses = (const float *)b->in + (size_t)first * a.n_waypoints * 7;
        a.out = (struct vxk_path_answer *)b->out + first;
        VX_TRY_RET(VXK_LAUNCH(s->rs->queue, query_path_whole, &a, a.n_paths));
        if (vx__cancelled(s->options))
            return vx_fail(s->detail, VX_E_CANCELLED, "", "given up on the way");
    }
    return VX_OK;
}

/* How many paths were left; lists them unless out is NULL. */
static uint32_t left_of(const struct vx_path_answer *answers, uint32_t n, uint32_t *out)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < n; i++)
        if (answers[i].status == (uint32_t)VXK_PATH_WHOLE_LEFT) {
            if (out)
                out[left] = i;
            left++;
        }
    return left;
}

/* Answers some paths whole, however long their ways.  One can take minutes, so few at first. */
static vx_err launch_long(const struct vx__session *s, struct vxk_query_path_args *a, const uint32_t *pick,
                          uint32_t n)
{
    const uint32_t ways = a->n_segments * a->n_spheres;
    uint32_t at_once = FIRST_LONG_WAYS / ways + 1;

    for (uint32_t first = 0; first < n; first += a->n_paths) {
        const double start_s = vx__now_s();

        a->n_paths = smaller(n - first, at_once);
        a->pick = pick + first;
        VX_TRY_RET(VXK_LAUNCH(s->rs->queue, query_path_whole, a, a->n_paths));
        VX_TRY_RET(s->rs->queue->dev->ops->wait(s->rs->queue));
        if (vx__cancelled(s->options))
            return vx_fail(s->detail, VX_E_CANCELLED, "", "given up on the way");
        at_once = vx__pace(at_once, vx__now_s() - start_s, 1, MOST_WAYS / ways + 1);
    }
    return VX_OK;
}

/* Paths that are left for their long ways are answered a few at a time; those that are left again, for they
 * come near the end of the voxel range, go by ways. */
static vx_err settle_left(const struct vx__session *s, const struct vx__question *k,
                          const struct vx__batch *b, uint32_t *left, uint32_t n,
                          struct vx_path_answer *answers)
{
    const struct vxk_ops *ops = s->rs->queue->dev->ops;
    const uint64_t bytes = (uint64_t)b->n * sizeof *answers;
    struct vxk_query_path_args a = args_of(s, k, b);
    struct vx__work w;
    vx_err err;

    vx__work_init(&w, s->map, s->rs->queue, s->detail);
    uint32_t *pick = vx__work_get(&w, n, sizeof *pick);
    VX_TRY(w.err);
    VX_TRY(ops->upload(s->rs->queue, pick, left, n * sizeof *pick));
    a.longest = INFINITY;
    VX_TRY(launch_long(s, &a, pick, n));
    VX_TRY(ops->download(s->rs->queue, answers, b->out, bytes));
    VX_TRY(ops->wait(s->rs->queue));
    n = left_of(answers, b->n, left);
    for (uint32_t first = 0, end; first < n; first = end) {
        struct vx__batch run = *b;

        for (end = first + 1; end < n && left[end] == left[end - 1] + 1; end++)
            continue;
        run.in = (const char *)b->in + (size_t)left[first] * k->in_bytes;
        run.out = (struct vxk_path_answer *)b->out + left[first];
        run.n = end - first;
        VX_TRY(launch_ways(s, k, &run));
    }
    if (n) {
        VX_TRY(ops->download(s->rs->queue, answers, b->out, bytes));
        VX_TRY(ops->wait(s->rs->queue));
    }
fail:
    vx__work_drop(&w, 0);
    return err;
}

static vx_err settle_paths(const struct vx__session *s, const struct vx__question *k,
                           const struct vx__batch *b, void *answers)
{
    uint32_t *left, n = left_of(answers, b->n, NULL);
    vx_err err;

    if (!n)
        return VX_OK;
    left = malloc(n * sizeof *left);
    if (!left)
        return vx_fail(s->detail, VX_E_NOMEM, "", "no memory for a list of %u paths", n);
    left_of(answers, b->n, left);
    err = settle_left(s, k, b, left, n, answers);
    free(left);
    return err;
}

vx_err vx_query_paths(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_paths *paths, const float *poses, uint32_t n,
                      struct vx_path_answer *answers, struct vx_reply *reply, struct vx_detail *detail)
{
    struct vx__question k = {.out_bytes = sizeof *answers,
                             .with_esdf = true,
                             .common = paths->spheres,
                             .launch = launch_paths,
                             .settle = settle_paths,
                             .what = paths};

    if (!paths->n_spheres || paths->n_spheres > MOST_SPHERES)
        return vx_fail(detail, VX_E_INVALID, "n_spheres", "a robot has 1 to %d spheres, got %u",
                       (int)MOST_SPHERES, paths->n_spheres);
    if (!paths->n_waypoints || paths->n_waypoints > MOST_WAYPOINTS)
        return vx_fail(detail, VX_E_INVALID, "n_waypoints", "a path has 1 to %d way-points, got %u",
                       (int)MOST_WAYPOINTS, paths->n_waypoints);
    if (paths->unknown > VX_UNKNOWN_OCCUPIED)
        return vx_fail(detail, VX_E_INVALID, "unknown", "must be report, free or occupied");
    VX_TRY_RET(vx__check_radius(map, paths->spheres, paths->n_spheres, detail));
    for (uint32_t i = 0; i < 4 * paths->n_spheres; i++)
        if (!(paths->spheres[i] > -1e6f && paths->spheres[i] < 1e6f))
            return vx_fail(detail, VX_E_INVALID, "spheres", "sphere %u lies at %g m in the robot's frame",
                           i / 4, (double)paths->spheres[i]);
    k.in_bytes = paths->n_waypoints * 7 * sizeof(float);
    k.common_bytes = paths->n_spheres * 4 * sizeof(float);
    k.slice = smaller(MOST_ELEMENTS / (n_segments(paths) * paths->n_spheres),
                      smaller(MOST_BYTES / k.in_bytes, MOST_PATHS));
    return vx__ask(map, options, origin_m, &k, poses, n, answers, reply, detail);
}
