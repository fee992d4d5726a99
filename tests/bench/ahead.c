/* Stands in for mesh and queries until they land, so that integration can be measured; goes then. */
#include "vx/mesh.h"
#include "vx/query.h"

vx_err vx_mesh_extract(struct vx_map *map, const struct vx_query_options *options, uint32_t min_weight,
                       struct vx_mesh *out, struct vx_reply *reply, struct vx_detail *detail)
{
    (void)map, (void)options, (void)min_weight, (void)out, (void)reply;
    return vx_fail(detail, VX_E_UNIMPLEMENTED, "mesh", "not in this build");
}

void vx_mesh_fini(struct vx_mesh *mesh)
{
    (void)mesh;
}

vx_err vx_query_points(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                       const float *points, uint32_t n, struct vx_point_answer *answers, struct vx_reply *reply,
                       struct vx_detail *detail)
{
    (void)map, (void)options, (void)origin_m, (void)points, (void)n, (void)answers, (void)reply;
    return vx_fail(detail, VX_E_UNIMPLEMENTED, "points", "not in this build");
}
