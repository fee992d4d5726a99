/* Stands in for meshing until it lands in core, so that the daemon links; goes then. */
#include "vx/mesh.h"

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
