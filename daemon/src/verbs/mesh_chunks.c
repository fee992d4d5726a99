/* MESH with `chunks`: those that changed. */
#include "map.h"
#include "verbs.h"
#include "vx/mesh.h"

#include <string.h>

struct chunks_request {
    struct vxd_request base;
    struct vx_query_options options;
    struct vx_mesh_since since;
    uint8_t uuid[16];
    uint32_t n_chunks;
    uint64_t n_vertices, n_triangles;
    bool complete;
    double origin_m[3], voxel_m;
};

static vx_err run(struct vxd_request *request)
{
    struct chunks_request *m = (struct chunks_request *)request;
    struct vx_mesh_chunks chunks;
    VX_TRY_RET(vx_mesh_get_chunks(request->map->core, &m->options, &m->since, &chunks, &request->reply,
                                  &request->detail));
    vx_err err = VX_OK;
    struct vxd_buf *buf = vxd_buf_create(chunks.body_bytes);
    if (!buf) {
        err = vx_fail(&request->detail, VX_E_NOMEM, "", "no memory for a mesh of %llu bytes",
                      (unsigned long long)chunks.body_bytes);
    } else {
        if (chunks.body_bytes)
            memcpy(buf->data, chunks.body, chunks.body_bytes);
        request->answer = buf;
        m->n_chunks = chunks.n_chunks;
        m->n_vertices = chunks.n_vertices;
        m->n_triangles = chunks.n_triangles;
        m->complete = chunks.complete;
        m->voxel_m = chunks.voxel_m;
        memcpy(m->origin_m, chunks.origin_m, sizeof m->origin_m);
    }
    vx_mesh_chunks_fini(&chunks);
    return err;
}

static void answer(struct vxd_request *request)
{
    struct chunks_request *m = (struct chunks_request *)request;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    result.mesh_voxel_m = m->voxel_m;
    result.mesh_complete = m->complete;
    result.n_chunks = m->n_chunks;
    result.n_vertices = m->n_vertices < UINT32_MAX ? (uint32_t)m->n_vertices : UINT32_MAX;
    result.n_triangles = m->n_triangles < UINT32_MAX ? (uint32_t)m->n_triangles : UINT32_MAX;
    vxd_mesh_answer(request, &result, m->origin_m);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct chunks_request),
    .lane = VXD_LANE_BULK,
    .work = VOXELD__V1__WORK__WORK_MESH,
    .run = run,
    .settle = vxd_mesh_settle,
    .answer = answer,
};

/* The wire's question; the map's uuid, if it names one, is kept in *m. */
static vx_err take(struct chunks_request *m, const Voxeld__V1__Mesh *wire, struct vx_detail *detail)
{
    if (!wire->chunks)
        return vx_fail(detail, VX_E_INVALID, "chunks",
                       "a region and since_epoch are answered chunk by chunk only: set chunks");
    if (wire->since_uuid.len && wire->since_uuid.len != sizeof m->uuid)
        return vx_fail(detail, VX_E_INVALID, "since_uuid", "must have 16 bytes, got %zu",
                       wire->since_uuid.len);
    if (wire->since_uuid.len) {
        memcpy(m->uuid, wire->since_uuid.data, sizeof m->uuid);
        m->since.uuid = m->uuid;
    }
    m->since.epoch = wire->since_epoch;
    m->since.min_weight = wire->min_weight;
    if (!wire->region)
        return VX_OK;
    if (!wire->region->min_m || !wire->region->max_m)
        return vx_fail(detail, VX_E_INVALID, "region", "needs its two corners");
    const Voxeld__V1__Vec3 *lo = wire->region->min_m, *hi = wire->region->max_m;
    m->since.has_region = true;
    memcpy(m->since.min_m, (double[3]){lo->x, lo->y, lo->z}, sizeof m->since.min_m);
    memcpy(m->since.max_m, (double[3]){hi->x, hi->y, hi->z}, sizeof m->since.max_m);
    return VX_OK;
}

void vxd_verb_mesh_chunks(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__Mesh *wire = in->header->mesh;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    (void)server;
    if (!r)
        return;
    struct chunks_request *m = (struct chunks_request *)r;
    m->options = (struct vx_query_options){
        .min_epoch = wire->min_epoch, .cancelled = vxd_request_is_cancelled, .context = r};
    vx_err err = take(m, wire, &r->detail);
    if (err == VX_OK)
        err = vxd_request_use_map(r, &wire->map);
    if (err != VX_OK) {
        vxd_request_fail(r, err);
        return;
    }
    if (wire->progress)
        vxd_request_tell(r, VOXELD__V1__PHASE__PHASE_QUEUED, 0, 0);
    vxd_request_submit(r);
}
