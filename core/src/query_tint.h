/* query_tint.h - colours and labels of a mesh's vertices (internal to core). */
#ifndef VX__QUERY_TINT_H
#define VX__QUERY_TINT_H

#include "snapshot.h"
#include "vx/mesh.h"

/* Fills mesh->tints from the snapshot that the mesh was made of; leaves it NULL when the map has no channels.
 * Queue q is waited for.  vx_mesh_fini frees it.  Errors: VX_E_NOMEM, VX_E_EXHAUSTED, VX_E_DEVICE. */
vx_err vx__tint_mesh(struct vx_map *map, const struct vx__snapshot *snapshot, struct vxk_queue *q,
                     struct vx_mesh *mesh, struct vx_detail *detail);

#endif
