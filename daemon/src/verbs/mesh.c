#include "vx/mesh.h"
#include "map.h"
#include "verbs.h"

#include <string.h>

struct mesh_request {
    struct vxd_request base;
    struct vx_query_options options;
    uint32_t min_weight;
    bool tints; /* are asked for */
    uint32_t n_vertices, n_triangles, n_tints;
    double origin_m[3];
};

/* vertices, normals, triangles, and tints where they are wanted, one after the other. */
static vx_err pack(struct mesh_request *m, const struct vx_mesh *mesh)
{
    size_t vertex_bytes = (size_t)mesh->n_vertices * 3 * sizeof(float);
    size_t triangle_bytes = (size_t)mesh->n_triangles * 3 * sizeof(uint32_t);
    size_t tint_bytes = m->tints && mesh->tints ? mesh->n_vertices * sizeof *mesh->tints : 0;
    size_t n_bytes = 2 * vertex_bytes + triangle_bytes + tint_bytes;
    struct vxd_buf *buf = vxd_buf_create(n_bytes);
    if (!buf)
        return vx_fail(&m->base.detail, VX_E_NOMEM, "", "no memory for a mesh of %zu bytes", n_bytes);
    if (vertex_bytes) {
        memcpy(buf->data, mesh->vertices, vertex_bytes);
        memcpy(buf->data + vertex_bytes, mesh->normals, vertex_bytes);
    }
    if (triangle_bytes)
        memcpy(buf->data + 2 * vertex_bytes, mesh->triangles, triangle_bytes);
    if (tint_bytes)
        memcpy(buf->data + 2 * vertex_bytes + triangle_bytes, mesh->tints, tint_bytes);
    m->n_tints = tint_bytes ? mesh->n_vertices : 0;
    m->n_vertices = mesh->n_vertices;
    m->n_triangles = mesh->n_triangles;
    memcpy(m->origin_m, mesh->origin_m, sizeof m->origin_m);
    m->base.answer = buf;
    return VX_OK;
}

static vx_err run(struct vxd_request *request)
{
    struct mesh_request *m = (struct mesh_request *)request;
    struct vx_mesh mesh;
    VX_TRY_RET(vx_mesh_extract(request->map->core, &m->options, m->min_weight, &mesh, &request->reply,
                               &request->detail));
    vx_err err = pack(m, &mesh);
    vx_mesh_fini(&mesh);
    return err;
}

void vxd_mesh_settle(struct vxd_request *request)
{
    if (request->err == VX_OK)
        request->err = vxd_request_reserve(request, request->answer->n_bytes);
}

void vxd_mesh_answer(struct vxd_request *request, Voxeld__V1__Result *result, const double origin_m[3])
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapState map;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxd_map_state_fill(request->map, &request->reply, &map);
    origin.x = origin_m[0];
    origin.y = origin_m[1];
    origin.z = origin_m[2];
    result->map = &map;
    result->mesh_origin_m = &origin;
    result->run_us = (request->ended_ns - request->begun_ns) / 1000;
    header.body_case = VOXELD__V1__HEADER__BODY_RESULT;
    header.result = result;
    vxd_request_send(request, &header);
}

static void answer(struct vxd_request *request)
{
    struct mesh_request *m = (struct mesh_request *)request;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    result.n_vertices = m->n_vertices;
    result.n_triangles = m->n_triangles;
    result.n_tints = m->n_tints;
    vxd_mesh_answer(request, &result, m->origin_m);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct mesh_request),
    .lane = VXD_LANE_BULK,
    .work = VOXELD__V1__WORK__WORK_MESH,
    .run = run,
    .settle = vxd_mesh_settle,
    .answer = answer,
};

void vxd_verb_mesh(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    const Voxeld__V1__Mesh *wire = in->header->mesh;
    if (wire->chunks || wire->region || wire->since_epoch || wire->since_uuid.len) {
        vxd_verb_mesh_chunks(server, session, in);
        return;
    }
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    struct mesh_request *m = (struct mesh_request *)r;
    m->min_weight = wire->min_weight;
    m->tints = wire->tints;
    m->options = (struct vx_query_options){
        .min_epoch = wire->min_epoch, .cancelled = vxd_request_is_cancelled, .context = r};
    vx_err err = vxd_request_use_map(r, &wire->map);
    if (err != VX_OK) {
        vxd_request_fail(r, err);
        return;
    }
    if (wire->progress)
        vxd_request_tell(r, VOXELD__V1__PHASE__PHASE_QUEUED, 0, 0);
    vxd_request_submit(r);
}
