/* planning.c - paths, boxes, slices and explanations. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A body's arrays are what the wire carries: the structs have its layout. */
_Static_assert(sizeof(struct vxc_path_answer) == 24 && sizeof(struct vxc_box_answer) == 32 &&
                   sizeof(struct vxc_slice_cell) == 8 && sizeof(struct vxc_explanation) == 56 &&
                   sizeof(struct vxc_tint) == 8,
               "the wire's bytes");

enum { BODY_BYTES = 64 << 20 /* of one request, about */ };

/* How many of `left` items go into the next request. */
static uint32_t next_items(const struct vxc_client *client, size_t left, size_t item_bytes)
{
    size_t most = BODY_BYTES / (item_bytes + 1) + 1;
    if (most > client->limits.query_items)
        most = client->limits.query_items;
    return (uint32_t)(left < most ? left : most);
}

/* Items of one size in requests of at most the daemon's limit.  n_items and min_epoch point into the
 * request's body: later requests ask for the epoch of the first or a newer one. */
static vx_err ask_all(struct vxc_client *client, const char *map, vxw_header *header, uint64_t *min_epoch,
                      uint32_t *n_items, const void *items, size_t item_bytes, size_t n, void *answers,
                      size_t answer_bytes, struct vxc_map_state *state, struct vx_detail *detail)
{
    struct vxc_map_state got;
    size_t done = 0;
    VX_TRY_RET(vxc__check_map(map, detail));
    do {
        *n_items = next_items(client, n - done, item_bytes);
        VX_TRY_RET(vxc__ask(client, header, (const char *)items + done * item_bytes, *n_items * item_bytes,
                            (char *)answers + done * answer_bytes, *n_items * answer_bytes, &got, detail));
        done += *n_items;
        if (got.epoch > *min_epoch)
            *min_epoch = got.epoch;
    } while (done < n);
    if (state)
        *state = got;
    return VX_OK;
}

vx_err vxc_query_paths(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const double origin_m[3], const struct vxc_robot *robot, const float *poses, size_t n,
                       struct vxc_path_answer *answers, struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__QueryTrajectory body = VOXELD__V1__QUERY_TRAJECTORY__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    const size_t robot_floats = (size_t)robot->n_spheres * 4, path_floats = (size_t)robot->n_waypoints * 7;
    struct vxc_map_state got = {0};
    size_t done = 0;
    VX_TRY_RET(vxc__check_map(map, detail));
    float *floats =
        malloc((robot_floats + next_items(client, n, path_floats * sizeof *poses) * path_floats + 1) *
               sizeof *floats);
    if (!floats)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu paths", n);
    if (robot_floats)
        memcpy(floats, robot->spheres, robot_floats * sizeof *floats);
    vxc__set_origin(&origin, origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    body.n_waypoints = robot->n_waypoints;
    body.n_spheres = robot->n_spheres;
    body.unknown = (Voxeld__V1__Unknown)robot->unknown;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_TRAJECTORY;
    header.query_trajectory = &body;
    vx_err err;
    do {
        body.n = next_items(client, n - done, path_floats * sizeof *poses);
        if (body.n)
            memcpy(floats + robot_floats, poses + done * path_floats, body.n * path_floats * sizeof *floats);
        err = vxc__ask(client, &header, floats, (robot_floats + body.n * path_floats) * sizeof *floats,
                       answers + done, body.n * sizeof *answers, &got, detail);
        done += body.n;
        if (got.epoch > body.min_epoch)
            body.min_epoch = got.epoch;
    } while (err == VX_OK && done < n);
    free(floats);
    if (err == VX_OK && state)
        *state = got;
    return err;
}

vx_err vxc_query_boxes(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const double origin_m[3], const float *boxes, size_t n, struct vxc_box_answer *answers,
                       struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__QueryBox body = VOXELD__V1__QUERY_BOX__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    vxc__set_origin(&origin, origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_BOX;
    header.query_box = &body;
    return ask_all(client, map, &header, &body.min_epoch, &body.n, boxes, 6 * sizeof *boxes, n, answers,
                   sizeof *answers, state, detail);
}

vx_err vxc_query_slice(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const struct vxc_slice *slice, struct vxc_slice_cell *cells,
                       struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__QuerySlice body = VOXELD__V1__QUERY_SLICE__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc_map_state got;
    VX_TRY_RET(vxc__check_map(map, detail));
    vxc__set_origin(&origin, slice->origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    body.n_x = slice->n_x;
    body.n_y = slice->n_y;
    body.cell_m = slice->cell_m;
    body.min_z_m = slice->min_z_m;
    body.max_z_m = slice->max_z_m;
    body.inscribed_m = slice->inscribed_m;
    body.unknown = (Voxeld__V1__Unknown)slice->unknown;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_SLICE;
    header.query_slice = &body;
    return vxc__ask(client, &header, NULL, 0, cells, (size_t)slice->n_x * slice->n_y * sizeof *cells,
                    state ? state : &got, detail);
}

/* EXPLAIN: explanations, or the tints instead. */
static vx_err explain(struct vxc_client *client, const char *map, uint64_t min_epoch,
                      const double origin_m[3], const float *points, size_t n, bool tints, void *out,
                      size_t out_bytes, struct vxc_map_state *state, struct vx_detail *detail)
{
    Voxeld__V1__Explain body = VOXELD__V1__EXPLAIN__INIT;
    Voxeld__V1__Vec3 origin = VOXELD__V1__VEC3__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    vxc__set_origin(&origin, origin_m);
    body.map = vxc__bytes_of(map);
    body.min_epoch = min_epoch;
    body.origin_m = &origin;
    body.tints = tints;
    header.body_case = VOXELD__V1__HEADER__BODY_EXPLAIN;
    header.explain = &body;
    return ask_all(client, map, &header, &body.min_epoch, &body.n, points, 3 * sizeof *points, n, out,
                   out_bytes, state, detail);
}

vx_err vxc_explain(struct vxc_client *client, const char *map, uint64_t min_epoch, const double origin_m[3],
                   const float *points, size_t n, struct vxc_explanation *out, struct vxc_map_state *state,
                   struct vx_detail *detail)
{
    return explain(client, map, min_epoch, origin_m, points, n, false, out, sizeof *out, state, detail);
}

vx_err vxc_query_tints(struct vxc_client *client, const char *map, uint64_t min_epoch,
                       const double origin_m[3], const float *points, size_t n, struct vxc_tint *tints,
                       struct vxc_map_state *state, struct vx_detail *detail)
{
    return explain(client, map, min_epoch, origin_m, points, n, true, tints, sizeof *tints, state, detail);
}
