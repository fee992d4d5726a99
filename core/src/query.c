/* query.c - batches of points, spheres and rays. */
#include "query_ask.h"

#include <math.h>

enum { MAX_RAY_VOXELS = 100000 /* keeps one ray from holding the device for long */ };

_Static_assert(sizeof(struct vxk_point_answer) == sizeof(struct vx_point_answer), "one layout");
_Static_assert(sizeof(struct vxk_ray_answer) == sizeof(struct vx_ray_answer), "one layout");
_Static_assert((int)VXK_STATE_FREE == VX_STATE_FREE && (int)VXK_STATE_OCCUPIED == VX_STATE_OCCUPIED,
               "one list");
_Static_assert((int)VXK_Q_DISTANCE == VX_Q_DISTANCE && (int)VXK_Q_GRADIENT == VX_Q_GRADIENT &&
                   (int)VXK_Q_OUTSIDE == VX_Q_OUTSIDE && (int)VXK_Q_TOUCHES_UNKNOWN == VX_Q_TOUCHES_UNKNOWN &&
                   (int)VXK_Q_COLLIDES == VX_Q_COLLIDES,
               "one list");

static vx_err launch_points(const struct vx__session *s, const struct vx__question *k,
                            const struct vx__batch *b)
{
    struct vxk_query_points_args a = {.q = s->q, .points = b->in, .out = b->out};

    (void)k;
    return VXK_LAUNCH(s->rs->queue, query_points, &a, b->n);
}

static const struct vx__question points_question = {.in_bytes = 3 * sizeof(float),
                                                    .out_bytes = sizeof(struct vx_point_answer),
                                                    .with_esdf = true,
                                                    .direct = true,
                                                    .launch = launch_points};

vx_err vx_query_points(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                       const float *points, uint32_t n, struct vx_point_answer *answers,
                       struct vx_reply *reply, struct vx_detail *detail)
{
    return vx__ask(map, options, origin_m, &points_question, points, n, answers, reply, detail);
}

vx_err vx_query_points_now(struct vx_map *map, const struct vx_query_options *options,
                           const double origin_m[3], const float *points, uint32_t n,
                           struct vx_point_answer *answers, struct vx_reply *reply, struct vx_detail *detail)
{
    return vx__ask_now(map, options, origin_m, &points_question, points, n, answers, reply, detail);
}

static vx_err launch_spheres(const struct vx__session *s, const struct vx__question *k,
                             const struct vx__batch *b)
{
    struct vxk_query_spheres_args a = {.q = s->q, .spheres = b->in, .out = b->out};

    (void)k;
    return VXK_LAUNCH(s->rs->queue, query_spheres, &a, b->n);
}

vx_err vx__check_radius(struct vx_map *map, const float *spheres, uint32_t n, struct vx_detail *detail)
{
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
    return VX_OK;
}

vx_err vx_query_spheres(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *spheres, uint32_t n, struct vx_point_answer *answers,
                        struct vx_reply *reply, struct vx_detail *detail)
{
    static const struct vx__question k = {.in_bytes = 4 * sizeof(float),
                                          .out_bytes = sizeof *answers,
                                          .with_esdf = true,
                                          .direct = true,
                                          .launch = launch_spheres};

    VX_TRY_RET(vx__check_radius(map, spheres, n, detail));
    return vx__ask(map, options, origin_m, &k, spheres, n, answers, reply, detail);
}

static vx_err launch_rays(const struct vx__session *s, const struct vx__question *k,
                          const struct vx__batch *b)
{
    struct vxk_query_rays_args a = {
        .q = s->q, .rays = b->in, .out = b->out, .max_range_m = *(const double *)k->what};

    return VXK_LAUNCH(s->rs->queue, query_rays, &a, b->n);
}

/* An answer has no place to say that a ray is none. */
static vx_err check_rays(const float *rays, uint32_t n, struct vx_detail *detail)
{
    for (uint32_t i = 0; i < n; i++) {
        const float *p = rays + 6 * (size_t)i;
        for (int a = 0; a < 6; a++)
            if (!isfinite(p[a]))
                return vx_fail(detail, VX_E_INVALID, "rays", "ray %u has a %s that is not finite: %g", i,
                               a < 3 ? "origin" : "direction", (double)p[a]);
        if (p[3] == 0 && p[4] == 0 && p[5] == 0)
            return vx_fail(detail, VX_E_INVALID, "rays",
                           "ray %u has no direction: any length but 0 will do, got 0, 0, 0", i);
    }
    return VX_OK;
}

vx_err vx_query_rays(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                     const float *rays, uint32_t n, double max_range_m, struct vx_ray_answer *answers,
                     struct vx_reply *reply, struct vx_detail *detail)
{
    const struct vx__question k = {.in_bytes = 6 * sizeof(float),
                                   .out_bytes = sizeof *answers,
                                   .direct = true,
                                   .launch = launch_rays,
                                   .what = &max_range_m};
    double most = MAX_RAY_VOXELS * vx__map_params(map)->voxel_size_m;

    if (!(max_range_m > 0.0) || max_range_m > most)
        return vx_fail(detail, VX_E_INVALID, "max_range_m",
                       "must be positive and at most %g m (%d voxels), got %g", most, (int)MAX_RAY_VOXELS,
                       max_range_m);
    VX_TRY_RET(check_rays(rays, n, detail));
    return vx__ask(map, options, origin_m, &k, rays, n, answers, reply, detail);
}
