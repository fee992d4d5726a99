/*
 * frame_clean.h - a depth image before it is looked at: without masked pixels and those of no weight, without
 * pixels between two surfaces, and as a pinhole camera would have seen it.
 *
 * Depth is measured along the axis, so that bending the ray moves a reading in the image and leaves it as it
 * is. Readings are never mixed: each pixel takes the nearest one.
 *
 * Source: D. C. Brown, "Close-range camera calibration", 1971.
 */
#ifndef VXK_BODY_FRAME_CLEAN_H
#define VXK_BODY_FRAME_CLEAN_H

#include "frame_types.h"

/* Raw reading at a pixel, in its own unit; 0 outside of the image and where it is none. */
VXK_FN float vxk_raw_reading(const struct vxk_frame_args *a, int32_t u, int32_t v)
{
    const struct vxk_frame *f = &a->f;
    float m;
    if (u < 0 || v < 0 || u >= f->width || v >= f->height)
        return 0.0f;
    if (f->encoding == VXK_IMAGE_U16) {
        uint32_t raw = ((const uint16_t *)a->clean.raw)[v * f->width + u];
        return raw == 65535 ? 0.0f : (float)raw;
    }
    m = ((const float *)a->clean.raw)[v * f->width + u];
    return m > 0.0f && m < 1e30f ? m : 0.0f;
}

/* Does the reading lie between two others, off from both by more than `jump`? */
VXK_FN int vxk_flies(float d, float p, float q, float jump)
{
    return p > 0.0f && q > 0.0f && ((p - d > jump && d - q > jump) || (q - d > jump && d - p > jump));
}

/* The pixel of the image as it came that shows what pixel (u, v) of the pinhole camera would; 0: none does.
 */
VXK_FN int vxk_bent_pixel(const struct vxk_frame_args *a, int32_t *u, int32_t *v)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_clean *c = &a->clean;
    float x = ((float)*u - f->cx) / f->fx, y = ((float)*v - f->cy) / f->fy, r2 = x * x + y * y;
    float radial = 1.0f + r2 * (c->k[0] + r2 * (c->k[1] + r2 * c->k[4]));
    float bx = x * radial + (2.0f * c->k[2] * x * y + c->k[3] * (r2 + 2.0f * x * x));
    float by = y * radial + (c->k[2] * (r2 + 2.0f * y * y) + 2.0f * c->k[3] * x * y);
    int ok;
    bx = bx * f->fx + f->cx;
    by = by * f->fy + f->cy;
    ok = radial > 0.0f && bx > -0.5f && by > -0.5f && bx < (float)f->width - 0.5f &&
         by < (float)f->height - 0.5f;
    *u = ok ? vxk_mini(vxk_maxi(vxk_rint(bx), 0), f->width - 1) : 0;
    *v = ok ? vxk_mini(vxk_maxi(vxk_rint(by), 0), f->height - 1) : 0;
    return ok;
}

/* Element: a pixel. */
#define vxk_frame_clean_args vxk_frame_args
VXK_FN void vxk_frame_clean(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_clean *c = &a->clean;
    int32_t v = (int32_t)i / f->width, u = (int32_t)i - v * f->width;
    int ok = 1;
    uint32_t at;
    if (c->bent)
        ok = vxk_bent_pixel(a, &u, &v);
    at = (uint32_t)v * (uint32_t)f->width + (uint32_t)u;
    ok = ok && !(c->mask && !c->mask[at]) && !(c->weight && !(c->weight[at] > 0.0f));
    if (ok && c->edge > 0.0f) {
        float d = vxk_raw_reading(a, u, v), jump = d * c->edge;
        ok =
            !(d > 0.0f) || !(vxk_flies(d, vxk_raw_reading(a, u - 1, v), vxk_raw_reading(a, u + 1, v), jump) ||
                             vxk_flies(d, vxk_raw_reading(a, u, v - 1), vxk_raw_reading(a, u, v + 1), jump));
    }
    if (c->weight_out)
        c->weight_out[i] = ok ? c->weight[at] : 0.0f;
    if (f->encoding == VXK_IMAGE_U16)
        ((uint16_t *)c->out)[i] = (uint16_t)(ok ? ((const uint16_t *)c->raw)[at] : 0);
    else
        ((float *)c->out)[i] = ok ? ((const float *)c->raw)[at] : 0.0f;
}

#endif
