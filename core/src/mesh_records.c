/* mesh_records.c - the records of the chunks that a mesh job made, on the device, and their copy to the host.
 */
#include "mesh_job.h"

#include <stdlib.h>
#include <string.h>

/* Bodies of updates come in few sizes: a new one takes milliseconds to lock its pages. */
static uint64_t room_for(uint64_t bytes)
{
    const uint64_t most = 64ull << 20;
    uint64_t room = 1 << 16;

    while (room < bytes && room < most)
        room *= 2;
    return room < bytes ? bytes : room;
}

/* Appends `bytes` of device memory to the body. */
static vx_err append(struct vx__mesh_job *j, struct vx_mesh_chunks *out, const uint8_t *from, uint64_t bytes)
{
    struct vxk_dev *dev = j->q->dev;
    void *body;
    vx_err err = dev->ops->alloc_host(dev, room_for(out->body_bytes + bytes), &body);

    if (err != VX_OK)
        return vx_fail(j->detail, err, "", "no memory for a mesh of %llu bytes",
                       (unsigned long long)(out->body_bytes + bytes));
    if (out->body) { /* another group came before: rare, and then copies are the least of the cost */
        memcpy(body, out->body, out->body_bytes);
        dev->ops->free_host(dev, out->body);
    }
    out->owner_ = dev;
    out->body = body;
    err = dev->ops->download(j->q, out->body + out->body_bytes, from, bytes);
    if (err == VX_OK)
        err = dev->ops->wait(j->q);
    if (err == VX_OK)
        out->body_bytes += bytes;
    return err;
}

/* The arrays of a record set; `r` has what the job made. */
static vx_err get_arrays(struct vx__mesh_job *j, struct vxk_mesh_records *r)
{
    struct vx__work *w = &j->work;

    r->above = vx__work_get(w, r->n_chunks * 8ull, sizeof *r->above);
    r->below = vx__work_get(w, r->n_chunks * 8ull, sizeof *r->below);
    r->first = vx__work_get(w, r->n_chunks * 9ull, sizeof *r->first);
    r->at = vx__work_filled(
        w, 1, (r->n_chunks + 3ull) * sizeof *r->at + (8ull * r->n_vertices + 1) * sizeof *r->rank, 0);
    if (!r->at)
        return w->err;
    r->sums = r->at + r->n_chunks + 1;
    r->rank = (uint32_t *)(r->sums + 2);
    return w->err;
}

vx_err vx__mesh_records(struct vx__mesh_job *j, const uint32_t *near, const uint32_t *bases,
                        uint32_t n_chunks, bool complete, struct vx_mesh_chunks *out)
{
    const struct vxk_ops *ops = j->q->dev->ops;
    struct vxk_mesh_records r = {.c = j->set,
                                 .near = near,
                                 .bases = bases,
                                 .vertex = j->pack,
                                 .tint = j->tint,
                                 .vertex_bytes = sizeof *j->pack + (j->tint ? sizeof *j->tint : 0),
                                 .triangle = j->triangle,
                                 .n_chunks = n_chunks,
                                 .n_vertices = j->n_vertices,
                                 .complete = complete};
    uint64_t totals[3]; /* bytes, records, their vertices */

    _Static_assert(sizeof(struct vx_mesh_chunk) == VXK_MESH_RECORD_HEAD &&
                       sizeof(struct vxk_mesh_record_head) == VXK_MESH_RECORD_HEAD &&
                       sizeof(struct vx_mesh_vertex) == 12 && sizeof(struct vxk_mesh_packed) == 12 &&
                       sizeof(struct vx_tint) == 8 && sizeof(struct vxk_tint_answer) == 8,
                   "the wire's bytes");
    if (j->n_vertices > UINT32_MAX / 8)
        return vx_fail(j->detail, VX_E_EXHAUSTED, "", "%u vertices at once, the most is %u", j->n_vertices,
                       UINT32_MAX / 8);
    VX_TRY_RET(get_arrays(j, &r));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_record_around, &(struct vxk_mesh_record_around_args){r}, n_chunks * 8));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_record_use, &(struct vxk_mesh_record_use_args){r}, j->n_triangles));
    VX_TRY_RET(ops->scan_u32(j->q, r.rank, r.rank, 8 * j->n_vertices));
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_record_size, &(struct vxk_mesh_record_size_args){r}, n_chunks));
    VX_TRY_RET(ops->scan_u64(j->q, r.at, r.at, n_chunks));
    VX_TRY_RET(vx__work_read(&j->work, totals, r.at + n_chunks, sizeof totals));
    if (!totals[0])
        return VX_OK;
    r.body = vx__work_get(&j->work, totals[0], 1);
    VX_TRY_RET(j->work.err);
    VX_TRY_RET(VXK_LAUNCH(j->q, mesh_record_heads, &(struct vxk_mesh_record_heads_args){r}, n_chunks));
    VX_TRY_RET(
        VXK_LAUNCH(j->q, mesh_record_vertices, &(struct vxk_mesh_record_vertices_args){r}, j->n_vertices));
    VX_TRY_RET(
        VXK_LAUNCH(j->q, mesh_record_triangles, &(struct vxk_mesh_record_triangles_args){r}, j->n_triangles));
    VX_TRY_RET(append(j, out, r.body, totals[0]));
    out->n_chunks += (uint32_t)totals[1];
    out->n_vertices += totals[2];
    out->n_triangles += j->n_triangles;
    return VX_OK;
}
