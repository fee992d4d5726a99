/*
 * tint.h - colour and labels of a map at points.
 */
#ifndef VX_TINT_H
#define VX_TINT_H

#include "vx/query.h"

struct vx_tint {       /* 8 bytes; what the wire carries */
    uint8_t colour[3]; /* red, green, blue; 128 each where there is none */
    uint8_t label;     /* 0 = none */
    uint8_t weight;    /* of the colour, 1 .. 31; 0 = there is none */
    uint8_t trust;     /* confidence of the label, 0 .. 255 */
    uint16_t reserved;
};

/*
 * Colour and label at n points: [n][3] float32, world position minus origin_m.  Colour is interpolated
 * between the voxel centres around the point that have one, the label is that of the nearest of them that has
 * one.  A map without channels answers that there is none. Errors: VX_E_STALE, VX_E_CANCELLED,
 * VX_E_EXHAUSTED, VX_E_NOMEM, VX_E_DEVICE; VX_E_INVALID the origin. Thread: any, beside the writer; blocks
 * until answered.
 */
vx_err vx_query_tints(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const float *points, uint32_t n, struct vx_tint *answers, struct vx_reply *reply,
                      struct vx_detail *detail);

#endif
