#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A body's arrays are what the wire carries: the structs have its layout. */
_Static_assert(sizeof(struct vxc_point_answer) == 24 && sizeof(struct vxc_ray_answer) == 24 &&
                   sizeof(struct vxc_point_unknown_answer) == 28,
               "the wire's bytes");

void vxc__set_origin(Voxeld__V1__Vec3 *out, const double origin_m[3])
{
    out->x = origin_m ? origin_m[0] : 0;
    out->y = origin_m ? origin_m[1] : 0;
    out->z = origin_m ? origin_m[2] : 0;
}

vx_err vxc__ask(struct vxc_client *client, vxw_header *header, const void *body, size_t body_bytes, void *out,
                size_t out_bytes, struct vxc_map_state *state, struct vx_detail *detail)
{
    struct vxc__exchange x;
    vx_err err =
        vxc__call(client, VXC__QUERY, header, body, body_bytes, VOXELD__V1__HEADER__BODY_RESULT, &x, detail);
    if (err == VX_OK && x.down_bytes != out_bytes)
        err = vx_fail(detail, VX_E_INTERNAL, "", "the daemon answered with %zu bytes in place of %zu",
                      x.down_bytes, out_bytes);
    if (err == VX_OK) {
        if (out_bytes > 0)
            memcpy(out, x.down, out_bytes);
        if (state)
            vxc__state_of(x.answer->result->map, state);
    }
    vxc__exchange_fini(&x);
    return err;
}

/*
 * A batch of any size: requests of at most the daemon's limit.  min_epoch and n point into the request's
 * body. Later requests ask for the epoch of the first or a newer one: a batch never goes back in time.
 */
static vx_err ask_all(struct vxc_client *client, const char *map, vxw_header *header, uint64_t *min_epoch,
                      uint32_t *n_items, const float *items, size_t n, size_t n_floats, uint8_t *answers,
                      size_t answer_bytes, struct vxc_map_state *state, struct vx_detail *detail)
{
    struct vxc_map_state first;
    size_t done = 0;
    VX_TRY_RET(vxc__check_map(map, detail));
    do {
        const size_t left = n - done, most = client->limits.query_items;
        *n_items = (uint32_t)(left < most ? left : most);
        VX_TRY_RET(vxc__ask(client, header, items + done * n_floats, *n_items * n_floats * sizeof *items,
                            answers + done * answer_bytes, *n_items * answer_bytes, &first, detail));
        done += *n_items;
        if (first.epoch > *min_epoch)
            *min_epoch = first.epoch;
    } while (done < n);
    if (state)
        *state = first;
    return VX_OK;
}

static vx_err ask_points(struct vxc_client *client, const char *map, uint64_t min_epoch,
                         const double origin_m[3], const float *points, size_t n, bool unknown,
                         uint8_t *answers, struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__QueryPoints body = VOXELD__V1__QUERY_POINTS__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    vxc__set_origin(&origin, origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    body.unknown_distance = unknown;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &body;
    return ask_all(client, map, &header, &body.min_epoch, &body.n, points, n, 3, answers,
                   unknown ? sizeof(struct vxc_point_unknown_answer) : sizeof(struct vxc_point_answer), state,
                   detail);
}
vx_err vxc_query_points(struct vxc_client *client, const char *map, uint64_t min_epoch,
                        const double origin_m[3], const float *points, size_t n,
                        struct vxc_point_answer *answers, struct vxc_map_state *state,
                        struct vx_detail *detail)
{
    return ask_points(client, map, min_epoch, origin_m, points, n, false, (uint8_t *)answers, state, detail);
}
vx_err vxc_query_points_unknown(struct vxc_client *client, const char *map, uint64_t min_epoch,
                                const double origin_m[3], const float *points, size_t n,
                                struct vxc_point_unknown_answer *answers, struct vxc_map_state *state,
                                struct vx_detail *detail)
{
    return ask_points(client, map, min_epoch, origin_m, points, n, true, (uint8_t *)answers, state, detail);
}

vx_err vxc_query_spheres(struct vxc_client *client, const char *map, uint64_t min_epoch,
                         const double origin_m[3], const float *spheres, size_t n,
                         struct vxc_point_answer *answers, struct vxc_map_state *state,
                         struct vx_detail *detail)
{
    Voxeld__V1__QuerySpheres body = VOXELD__V1__QUERY_SPHERES__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    vxc__set_origin(&origin, origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_SPHERES;
    header.query_spheres = &body;
    return ask_all(client, map, &header, &body.min_epoch, &body.n, spheres, n, 4, (uint8_t *)answers,
                   sizeof *answers, state, detail);
}

vx_err vxc_query_rays(struct vxc_client *client, const char *map, uint64_t min_epoch,
                      const double origin_m[3], const float *rays, size_t n, double max_range_m,
                      struct vxc_ray_answer *answers, struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__QueryRays body = VOXELD__V1__QUERY_RAYS__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    vxc__set_origin(&origin, origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    body.max_range_m = max_range_m;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_RAYS;
    header.query_rays = &body;
    return ask_all(client, map, &header, &body.min_epoch, &body.n, rays, n, 6, (uint8_t *)answers,
                   sizeof *answers, state, detail);
}

/* ------------------------------------------------------------------ mesh */

vx_err vxc_mesh_get(struct vxc_client *client, const char *map, uint64_t min_epoch, uint32_t min_weight,
                    struct vxc_mesh *out, struct vx_detail *detail)
{
    Voxeld__V1__Mesh body = VOXELD__V1__MESH__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    memset(out, 0, sizeof *out);
    VX_TRY_RET(vxc__check_map(map, detail));
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.min_weight = min_weight;
    body.tints = true;
    body.progress = true; /* a large mesh takes longer than a time limit without news */
    header.body_case = VOXELD__V1__HEADER__BODY_MESH;
    header.mesh = &body;
    vx_err err = vxc__call(client, VXC__QUERY, &header, NULL, 0, VOXELD__V1__HEADER__BODY_RESULT, &x, detail);
    if (err == VX_OK) {
        const Voxeld__V1__Result *result = x.answer->result;
        const size_t vertex_bytes = (size_t)result->n_vertices * 12,
                     triangle_bytes = (size_t)result->n_triangles * 12,
                     tint_bytes = (size_t)result->n_tints * sizeof *out->tints;
        if (x.down_bytes != 2 * vertex_bytes + triangle_bytes + tint_bytes ||
            (result->n_tints && result->n_tints != result->n_vertices))
            err =
                vx_fail(detail, VX_E_INTERNAL, "", "a mesh of %u vertices and %u triangles came as %zu bytes",
                        result->n_vertices, result->n_triangles, x.down_bytes);
        if (err == VX_OK) {
            out->origin_m[0] = result->mesh_origin_m ? result->mesh_origin_m->x : 0;
            out->origin_m[1] = result->mesh_origin_m ? result->mesh_origin_m->y : 0;
            out->origin_m[2] = result->mesh_origin_m ? result->mesh_origin_m->z : 0;
            out->n_vertices = result->n_vertices;
            out->n_triangles = result->n_triangles;
            vxc__state_of(result->map, &out->state);
            out->memory = x.down;
            if (x.down) {
                out->vertices = (const float *)(const void *)x.down;
                out->normals = (const float *)(const void *)(x.down + vertex_bytes);
                out->triangles = (const uint32_t *)(const void *)(x.down + 2 * vertex_bytes);
                if (tint_bytes)
                    out->tints =
                        (const struct vxc_tint *)(const void *)(x.down + 2 * vertex_bytes + triangle_bytes);
            }
            x.down = NULL;
        }
    }
    vxc__exchange_fini(&x);
    return err;
}

void vxc_mesh_fini(struct vxc_mesh *mesh)
{
    free(mesh->memory);
    memset(mesh, 0, sizeof *mesh);
}
