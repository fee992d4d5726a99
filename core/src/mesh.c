/* mesh.c - marching cubes of the newest epoch, whole, in floats. */
#include "mesh_job.h"

#include "query_ask.h"
#include "query_tint.h"

#include <stdlib.h>
#include <string.h>

/* Lists the leaves that may hold surface. */
static vx_err prepare(struct vx__mesh_job *j, uint64_t **keys)
{
    uint32_t *versions, n_versions;

    VX_TRY_RET(vx__snapshot_chunks(j->map, &j->snapshot, j->q, &versions, &n_versions));
    if (versions)
        vx__work_adopt(&j->work, versions);
    VX_TRY_RET(vx__site_cells(&j->work, &j->samples, versions, n_versions, &j->set, &j->n_leaves));
    if (!j->n_leaves)
        return VX_OK;
    *keys = malloc(n_versions * sizeof **keys);
    if (!*keys)
        return vx_fail(j->detail, VX_E_NOMEM, "", "no memory for %u chunk keys", n_versions);
    j->keys = *keys;
    j->n_chunks = n_versions;
    return j->q->dev->ops->download(j->q, *keys, j->set.chunk_key, n_versions * sizeof **keys);
}

vx_err vx_mesh_extract(struct vx_map *map, const struct vx_query_options *options, uint32_t min_weight,
                       struct vx_mesh *out, struct vx_reply *reply, struct vx_detail *detail)
{
    const struct vx_map_params *params = vx__map_params(map);
    struct vx__mesh_job j;
    uint64_t *keys = NULL;
    vx_err err;

    memset(out, 0, sizeof *out);
    VX_TRY_RET(vx__mesh_begin(&j, map, options, min_weight, detail));
    VX_TRY(prepare(&j, &keys));
    if (j.n_leaves)
        VX_TRY(vx__mesh_run(&j));
    for (int a = 0; a < 3; a++)
        out->origin_m[a] = params->origin_m[a] + j.origin[a] * params->voxel_size_m;
    out->n_vertices = j.n_vertices;
    out->n_triangles = j.n_triangles;
    if (j.memory) {
        out->vertices = j.vertex;
        out->normals = j.normal;
        out->triangles = j.triangle;
        out->owner_ = j.q->dev;
        j.memory = NULL;
    }
    VX_TRY(vx__tint_mesh(map, &j.snapshot, j.q, out, detail));
    vx__fill_reply(map, &j.snapshot, 0, reply);
fail:
    vx__mesh_end(&j);
    free(keys);
    if (err != VX_OK)
        vx_mesh_fini(out);
    return err;
}

void vx_mesh_fini(struct vx_mesh *mesh)
{
    struct vxk_dev *dev = mesh->owner_;

    if (dev)
        dev->ops->free_host(dev, mesh->vertices);
    free(mesh->tints);
    memset(mesh, 0, sizeof *mesh);
}
