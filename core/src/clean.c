#include "clean.h"

#include "body/frame.h"

#include <math.h>

static bool bent(const struct vx_frame *f)
{
    bool any = false;
    for (int k = 0; k < 5; k++)
        any = any || f->distortion[k] != 0;
    return any;
}

bool vx__clean_wanted(const struct vx_frame *f)
{
    return f->sensor == VX_DEPTH && (bent(f) || f->edge_jump != 0 || f->mask || f->weight);
}

vx_err vx__clean_check(const struct vx_frame *f, struct vx_detail *detail)
{
    for (int k = 0; k < 5; k++)
        if (!isfinite(f->distortion[k]) || fabs(f->distortion[k]) > 100)
            return vx_fail(detail, VX_E_INVALID, "distortion",
                           "coefficient %d is %g; k1 k2 p1 p2 k3 are wanted", k, f->distortion[k]);
    if (f->edge_jump != 0 && !(f->edge_jump >= 0.001 && f->edge_jump <= 1))
        return vx_fail(detail, VX_E_INVALID, "edge_jump",
                       "must be 0 (off) or 0.001 to 1 of the depth, got %g", f->edge_jump);
    if (f->sensor != VX_DEPTH && (bent(f) || f->edge_jump != 0 || f->mask || f->weight))
        return vx_fail(detail, VX_E_INVALID,
                       bent(f)     ? "distortion"
                       : f->mask   ? "mask"
                       : f->weight ? "weight"
                                   : "edge_jump",
                       "is for depth images");
    return VX_OK;
}

static bool is_weight(float w)
{
    return w >= 0 && w <= VX_MAX_WEIGHT; /* NaN is neither */
}

vx_err vx__weights_check(const struct vx_frame *f, struct vx_detail *detail)
{
    const uint64_t n = (uint64_t)f->width * f->height;
    uint32_t bad = 0;
    uint64_t i = 0;
    if (!f->weight)
        return VX_OK;
    for (uint64_t k = 0; k < n; k++) /* without a way out, so that it goes many pixels at a time */
        bad |= !is_weight(f->weight[k]);
    if (!bad)
        return VX_OK;
    while (is_weight(f->weight[i]))
        i++;
    return vx_fail(detail, VX_E_INVALID, "weight",
                   "pixel (%llu, %llu): a weight is 0 (not used) to %g, got %g",
                   (unsigned long long)(i % f->width), (unsigned long long)(i / f->width),
                   (double)VX_MAX_WEIGHT, (double)f->weight[i]);
}

vx_err vx__clean_launch(struct vx_map *map, const struct vx_frame *f, struct vxk_frame_args *args,
                        struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    struct vxk_clean *c = &args->clean;
    uint64_t pixels = (uint64_t)f->width * f->height;
    if (!vx__clean_wanted(f))
        return VX_OK;
    VX_TRY_RET(vx__array_ensure(map, &w->clean, f->data_bytes, detail));
    *c = (struct vxk_clean){
        .edge = (float)f->edge_jump, .bent = bent(f), .raw = w->image.ptr, .out = w->clean.ptr};
    for (int k = 0; k < 5; k++)
        c->k[k] = (float)f->distortion[k];
    if (f->mask) {
        VX_TRY_RET(vx__array_ensure(map, &w->mask, pixels, detail));
        VX_TRY_RET(map->device->dev->ops->upload(map->queue, w->mask.ptr, f->mask, pixels));
        c->mask = w->mask.ptr;
    }
    if (f->weight) {
        VX_TRY_RET(vx__array_ensure(map, &w->weight, pixels * sizeof *f->weight, detail));
        VX_TRY_RET(
            map->device->dev->ops->upload(map->queue, w->weight.ptr, f->weight, pixels * sizeof *f->weight));
        args->s.weight = c->weight = w->weight.ptr;
    }
    if (f->weight && c->bent) {
        VX_TRY_RET(vx__array_ensure(map, &w->weight_clean, pixels * sizeof *f->weight, detail));
        args->s.weight = c->weight_out = w->weight_clean.ptr;
    }
    args->image = w->clean.ptr;
    return VXK_LAUNCH(map->queue, frame_clean, args, (uint32_t)pixels);
}
