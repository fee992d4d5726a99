/* query_space.c - slices, the nearest unknown, and why a place is what it is. */
#include "query_ask.h"
#include "vx/planning.h"

#include <math.h>
#include <stddef.h>

enum {
    MOST_BAND = 1024,     /* voxels of a slice's heights */
    MOST_CELLS = 1 << 28, /* of a slice */
    CELLS_AT_ONCE = 1 << 20,
    FIRST_CELLS = 1 << 17, /* with these it begins: they can take long */
    FIRST_PLACES = 1 << 15
};

_Static_assert(sizeof(struct vxk_point_unknown_answer) == sizeof(struct vx_point_unknown_answer) &&
                   sizeof(struct vxk_slice_cell) == sizeof(struct vx_slice_cell) &&
                   sizeof(struct vxk_explanation) == sizeof(struct vx_explanation) &&
                   offsetof(struct vxk_explanation, unknown_distance_m) ==
                       offsetof(struct vx_explanation, unknown_distance_m),
               "one layout");
_Static_assert((int)VXK_WHY_MEASURED == VX_WHY_MEASURED && (int)VXK_WHY_FREE_CELL == VX_WHY_FREE_CELL,
               "one list");

static vx_err launch_slice(const struct vx__session *s, const struct vx__question *k,
                           const struct vx__batch *b)
{
    const struct vx_slice *p = k->what;
    struct vxk_query_slice_args a = {.q = s->q,
                                     .out = b->out,
                                     .cell_m = p->cell_m > 0 ? p->cell_m : s->q.voxel_m,
                                     .min_z_m = p->min_z_m,
                                     .max_z_m = p->max_z_m,
                                     .inscribed = (float)(p->inscribed_m / s->q.voxel_m),
                                     .first = b->first,
                                     .n_x = p->n_x,
                                     .unknown = p->unknown};

    return VXK_LAUNCH(s->rs->queue, query_slice, &a, b->n);
}

vx_err vx_query_slice(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const struct vx_slice *slice, struct vx_slice_cell *cells, struct vx_reply *reply,
                      struct vx_detail *detail)
{
    const struct vx__question k = {.out_bytes = sizeof *cells,
                                   .slice = CELLS_AT_ONCE,
                                   .start = FIRST_CELLS,
                                   .with_esdf = true,
                                   .launch = launch_slice,
                                   .what = slice};
    const struct vx_map_params *params = vx__map_params(map);
    double voxel = params->voxel_size_m, reach = vx__esdf_radius(params) * voxel;

    if (!(slice->cell_m >= 0 && slice->cell_m <= 1e6))
        return vx_fail(detail, VX_E_INVALID, "cell_m", "must be 0 (the voxel size) or positive, got %g",
                       slice->cell_m);
    if ((uint64_t)slice->n_x * slice->n_y > MOST_CELLS)
        return vx_fail(detail, VX_E_INVALID, "n_x", "%u x %u cells; at most %d in all", slice->n_x,
                       slice->n_y, (int)MOST_CELLS);
    if (!isfinite(slice->min_z_m) || !isfinite(slice->max_z_m) || slice->min_z_m > slice->max_z_m ||
        slice->max_z_m - slice->min_z_m > MOST_BAND * voxel)
        return vx_fail(
            detail, VX_E_INVALID, "max_z_m",
            "the band of heights must be finite, ordered and at most %g m (%d voxels) high, got %g .. %g",
            MOST_BAND * voxel, (int)MOST_BAND, slice->min_z_m, slice->max_z_m);
    if (!(slice->inscribed_m >= 0 && slice->inscribed_m <= reach * (1 + 1e-6)))
        return vx_fail(detail, VX_E_INVALID, "inscribed_m", "must be 0 .. %g m (R), got %g", reach,
                       slice->inscribed_m);
    if (slice->unknown > VX_UNKNOWN_OCCUPIED)
        return vx_fail(detail, VX_E_INVALID, "unknown", "must be report, free or occupied");
    return vx__ask(map, options, origin_m, &k, NULL, slice->n_x * slice->n_y, cells, reply, detail);
}

static vx_err launch_unknown(const struct vx__session *s, const struct vx__question *k,
                             const struct vx__batch *b)
{
    struct vxk_query_unknown_args a = {
        .q = s->q, .points = b->in, .out = b->out, .radius = vx__esdf_radius(vx__map_params(s->map))};

    (void)k;
    return VXK_LAUNCH(s->rs->queue, query_unknown, &a, b->n);
}

vx_err vx_query_unknown(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *points, uint32_t n, float *distance_m, struct vx_reply *reply,
                        struct vx_detail *detail)
{
    static const struct vx__question k = {.in_bytes = 3 * sizeof(float),
                                          .out_bytes = sizeof *distance_m,
                                          .start = FIRST_PLACES,
                                          .direct = true,
                                          .launch = launch_unknown};

    return vx__ask(map, options, origin_m, &k, points, n, distance_m, reply, detail);
}

static vx_err launch_points_unknown(const struct vx__session *s, const struct vx__question *k,
                                    const struct vx__batch *b)
{
    struct vxk_query_points_unknown_args a = {.q = s->q, .points = b->in, .out = b->out};

    (void)k;
    return VXK_LAUNCH(s->rs->queue, query_points_unknown, &a, b->n);
}

vx_err vx_query_points_unknown(struct vx_map *map, const struct vx_query_options *options,
                               const double origin_m[3], const float *points, uint32_t n,
                               struct vx_point_unknown_answer *answers, struct vx_reply *reply,
                               struct vx_detail *detail)
{
    static const struct vx__question k = {.in_bytes = 3 * sizeof(float),
                                          .out_bytes = sizeof *answers,
                                          .with_esdf = true,
                                          .start = FIRST_PLACES,
                                          .direct = true,
                                          .launch = launch_points_unknown};

    return vx__ask(map, options, origin_m, &k, points, n, answers, reply, detail);
}

static vx_err launch_explain(const struct vx__session *s, const struct vx__question *k,
                             const struct vx__batch *b)
{
    const struct vx_map_params *params = vx__map_params(s->map);
    struct vxk_query_explain_args a = {.q = s->q, .points = b->in, .out = b->out};

    (void)k; /* log-odds are in 1/1024, distances in 1/32767 of the truncation */
    a.unit = (float)(params->mode == VX_OCCUPANCY ? 1.0 / 1024
                                                  : params->truncation_voxels * params->voxel_size_m / 32767);
    return VXK_LAUNCH(s->rs->queue, query_explain, &a, b->n);
}

vx_err vx_query_explain(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                        const float *points, uint32_t n, struct vx_explanation *out, struct vx_reply *reply,
                        struct vx_detail *detail)
{
    static const struct vx__question k = {.in_bytes = 3 * sizeof(float),
                                          .out_bytes = sizeof *out,
                                          .with_esdf = true,
                                          .start = FIRST_PLACES,
                                          .direct = true,
                                          .launch = launch_explain};

    return vx__ask(map, options, origin_m, &k, points, n, out, reply, detail);
}
