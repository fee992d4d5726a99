/* query_path.c - robots of spheres along paths. */
#include "esdf.h"
#include "query_ask.h"
#include "vx/planning.h"

#include <stddef.h>

enum {
    MOST_SPHERES = 4096,
    MOST_WAYPOINTS = 4096,
    MOST_ELEMENTS = 1 << 26, /* of one launch */
    MOST_PATHS = 1 << 20,
    MOST_BYTES = 1 << 26, /* of their poses */
    FEWEST_AT_ONCE = 1 << 10,
    FIRST_AT_ONCE = 1 << 14
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

/* An element can take 16,000 samples, so one path can keep the device for hours. */
static vx_err sweep(const struct vx__session *s, struct vxk_query_path_args *a, uint32_t n)
{
    struct vxk_queue *q = s->rs->queue;
    uint32_t at_once = FIRST_AT_ONCE;

    for (a->first = 0; a->first < n;) {
        const uint32_t part = smaller(n - a->first, at_once);
        const double start_s = vx__now_s();

        VX_TRY_RET(VXK_LAUNCH(q, query_path, a, part));
        a->first += part;
        if (a->first == n)
            return VX_OK;
        VX_TRY_RET(q->dev->ops->wait(q));
        if (vx__cancelled(s->options))
            return vx_fail(s->detail, VX_E_CANCELLED, "", "given up on the way");
        at_once = vx__pace(at_once, vx__now_s() - start_s, FEWEST_AT_ONCE, MOST_ELEMENTS);
    }
    return VX_OK;
}

static vx_err launch_paths(const struct vx__session *s, const struct vx__question *k,
                           const struct vx__batch *b)
{
    const struct vx_paths *p = k->what;
    struct vxk_query_path_args a = {.q = s->q,
                                    .poses = b->in,
                                    .spheres = b->common,
                                    .out = b->out,
                                    .n_waypoints = p->n_waypoints,
                                    .n_segments = n_segments(p),
                                    .n_spheres = p->n_spheres,
                                    .unknown = p->unknown};

    VX_TRY_RET(VXK_LAUNCH(s->rs->queue, query_path_begin, &a, b->n));
    VX_TRY_RET(sweep(s, &a, b->n * a.n_segments * a.n_spheres));
    return VXK_LAUNCH(s->rs->queue, query_path_end, &a, b->n);
}

vx_err vx_query_paths(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_paths *paths, const float *poses, uint32_t n,
                      struct vx_path_answer *answers, struct vx_reply *reply, struct vx_detail *detail)
{
    struct vx__question k = {.out_bytes = sizeof *answers,
                             .with_esdf = true,
                             .common = paths->spheres,
                             .launch = launch_paths,
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
