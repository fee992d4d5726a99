/*
 * query_slice.h - columns of the map for ground robots: the least distance and a cost over a band of heights.
 */
#ifndef VXK_BODY_QUERY_SLICE_H
#define VXK_BODY_QUERY_SLICE_H

#include "query_path.h"

struct vxk_slice_cell { /* vx_slice_cell */
    float distance_m;
    uint8_t cost, states;
    uint16_t reserved;
};
struct vxk_query_slice_args {
    struct vxk_query q;
    struct vxk_slice_cell *out;
    double cell_m, min_z_m, max_z_m;
    float inscribed; /* voxels */
    uint32_t first, n_x, unknown;
};
VXK_FN uint32_t vxk_slice_cost(const struct vxk_query_slice_args *a, uint32_t states, float least)
{
    if (states >> VXK_STATE_OCCUPIED & 1)
        return 254;
    if (least <= a->inscribed)
        return 253;
    if ((states >> VXK_STATE_UNKNOWN & 1) && a->unknown != VXK_UNKNOWN_FREE)
        return a->unknown == VXK_UNKNOWN_OCCUPIED ? 254 : 255;
    return 0;
}
/* Element: a cell. */
VXK_FN void vxk_query_slice(const struct vxk_query_slice_args *a, uint32_t i)
{
    uint32_t n = a->first + i, states = 0, state;
    double at[3], lo = (a->min_z_m + a->q.offset_m[2]) / a->q.voxel_m,
                  hi = (a->max_z_m + a->q.offset_m[2]) / a->q.voxel_m;
    struct vxk_slice_cell *out = &a->out[i];
    struct vxk_esdf_cursor cursor;
    float least = 1e30f, d;
    int32_t first = 0, last = 0;
    at[0] = (((double)(n % a->n_x) + 0.5) * a->cell_m + a->q.offset_m[0]) / a->q.voxel_m;
    at[1] = (((double)(n / a->n_x) + 0.5) * a->cell_m + a->q.offset_m[1]) / a->q.voxel_m;
    vxk_esdf_cursor_init(&cursor);
    if (lo < hi) { /* the voxels whose cubes the band meets, at their centres */
        if (!(vxk_split(lo, &first, &d) & vxk_split(hi, &last, &d))) {
            states = 1u << VXK_STATE_UNKNOWN;
            last = first - 1;
        } else if ((double)last == hi) {
            last--;
        }
    }
    for (int32_t z = first; z <= last; z++) {
        struct vxk_spot spot;
        int ok = 1;
        at[2] = lo < hi ? (double)z + 0.5 : lo;
        for (int k = 0; k < 3; k++)
            ok &= vxk_split(at[k], &spot.v[k], &spot.f[k]);
        if (!ok) {
            states |= 1u << VXK_STATE_UNKNOWN;
            break;
        }
        if (vxk_probe_distance(&a->q, &cursor, &spot, 1, &d, &state))
            least = vxk_min(least, d);
        states |= 1u << state;
    }
    out->distance_m = least < 1e29f ? least * (float)a->q.voxel_m : a->q.undefined;
    out->states = (uint8_t)states;
    out->cost = (uint8_t)vxk_slice_cost(a, states, least);
    out->reserved = 0;
}

#endif
