#include "query.h"
#include "verbs.h"

_Static_assert(sizeof(struct vx_path_answer) == 24, "the wire carries PathAnswer as it is");

enum { MOST = 4096 /* spheres, and way-points */ };

/* What the size of the body is made of. */
static vx_err check(const Voxeld__V1__QueryTrajectory *wire, struct vx_detail *detail)
{
    if (wire->n_spheres < 1 || wire->n_spheres > MOST)
        return vx_fail(detail, VX_E_INVALID, "n_spheres", "a robot has 1 to %d spheres, got %u", (int)MOST,
                       wire->n_spheres);
    if (wire->n_waypoints < 1 || wire->n_waypoints > MOST)
        return vx_fail(detail, VX_E_INVALID, "n_waypoints", "a path has 1 to %d way-points, got %u",
                       (int)MOST, wire->n_waypoints);
    return VX_OK;
}

static vx_err run(struct vxd_request *request)
{
    struct vxd_query *q = (struct vxd_query *)request;
    const float *body = q->n || q->paths.n_spheres ? (const float *)request->body->data : NULL;
    q->paths.spheres = body;
    return vx_query_paths(request->map->core, &q->options, q->origin_m, &q->paths,
                          body ? body + 4 * (size_t)q->paths.n_spheres : NULL, q->n,
                          (struct vx_path_answer *)request->answer->data, &request->reply, &request->detail);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct vxd_query),
    .lane = VXD_LANE_QUERY,
    .work = VOXELD__V1__WORK__WORK_PLANNING,
    .run = run,
    .answer = vxd_query_answer,
};

void vxd_verb_query_trajectory(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__QueryTrajectory *wire = in->header->query_trajectory;
    struct vxd_query_shape shape = {
        &wire->map, wire->min_epoch, wire->origin_m, wire->n, 0, sizeof(struct vx_path_answer)};
    struct vxd_query *q = vxd_query_open(session, in, &ops);
    (void)server;
    if (!q)
        return;
    const vx_err refused = check(wire, &q->base.detail);
    if (refused == VX_OK)
        shape.body_bytes = 16ull * wire->n_spheres + 28ull * wire->n * wire->n_waypoints;
    q->paths = (struct vx_paths){.n_spheres = wire->n_spheres,
                                 .n_waypoints = wire->n_waypoints,
                                 .unknown = (enum vx_unknown)wire->unknown};
    vxd_query_take(q, in, &shape, refused);
}
