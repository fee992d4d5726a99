#include "observe.h"

#include <math.h>
#include <stdlib.h>

/* A pixel: its reading, and the surface that its neighbourhood makes of it. */
struct pixel {
    enum kind kind;
    bool unsure;        /* its own reading lies at a limit */
    double q;           /* 1 / reading, 0 without a surface */
    bool vague;         /* the surface may come out differently by rounding */
    double d, g, front; /* smoothed depth, slope, nearest surface next to its ray (0: none) */
    double g_error;     /* of g, by rounding of the readings */
};

static double metres_at(const struct vx_frame *f, uint32_t u, uint32_t v)
{
    size_t i = (size_t)v * f->width + u;
    if (f->encoding == VX_U16) {
        uint16_t raw = ((const uint16_t *)f->data)[i];
        return raw == 65535 ? NAN : raw / f->units_per_m;
    }
    return (double)((const float *)f->data)[i];
}

static bool close_to(double a, double b)
{
    return fabs(a - b) < EPS;
}

/*
 * Spacing of the samples of the eight pixels that hold column u: half a voxel at the nearest of them.  Gives
 * false when rounding may choose another.
 */
static bool sample_step(const struct sensor *s, const struct vx_frame *f, const struct pixel *row, int u,
                        int *step)
{
    double nearest = 0, x;
    int lo, hi;
    bool sure = true;
    for (int k = u & ~7; k < (u & ~7) + 8 && k < (int)f->width; k++) {
        nearest = fmax(nearest, row[k].q);
        sure = sure && !row[k].unsure;
    }
    x = 0.5 * f->fx * nearest + 0.5;
    lo = (int)fmin(fmax(floor(x - 1e-5 * (1 + x)), 1), s->k.smooth_max);
    hi = (int)fmin(fmax(floor(x + 1e-5 * (1 + x)), 1), s->k.smooth_max);
    *step = lo;
    return sure && lo == hi;
}

/*
 * The surface at pixel (u, v).  Opposite samples of the 5 x 5 grid are taken in pairs; a pair counts when
 * both are surfaces and their mean inverse depth meets the middle's within the noise and an eighth of a
 * voxel.  The surface is the plane, in inverse depth over pixels, with the mean of all that count and with
 * the gradient that fits their differences best.
 */
static void surface(const struct sensor *s, const struct vx_frame *f, struct pixel *px, int u, int v)
{
    int width = (int)f->width, height = (int)f->height, u0 = u & ~7, step;
    struct pixel *c = &px[v * width + u];
    double gate = 7.5 * (double)s->k.noise + 0.25 * c->q * c->q, nearest = c->q, greatest = c->q, mean = c->q;
    double aa = 0, ab = 0, bb = 0, ad = 0, bd = 0, det;
    int n = 1;
    c->vague = !sample_step(s, f, &px[v * width], u, &step);
    c->g = 1;
    for (int b = 0; b <= 2; b++)
        for (int a = b ? -2 : 1; a <= 2; a++) {
            int du = a * step, dv = b * step;
            const struct pixel *p, *m;
            double bend;
            if (u0 - abs(du) < 0 || u0 + 7 + abs(du) >= width || v - dv < 0 || v + dv >= height)
                continue;
            p = &px[(v + dv) * width + u + du];
            m = &px[(v - dv) * width + u - du];
            c->vague = c->vague || p->unsure || m->unsure;
            if (b <= 1 && abs(a) <= 1)
                nearest = fmax(nearest, fmax(p->q, m->q));
            if (p->q == 0 || m->q == 0 || c->q == 0)
                continue;
            bend = fabs(p->q + m->q - 2 * c->q);
            c->vague = c->vague || fabs(bend - gate) < 4e-7 * (p->q + m->q + c->q);
            if (bend >= gate)
                continue;
            mean += p->q + m->q;
            greatest = fmax(greatest, fmax(p->q, m->q));
            n += 2;
            aa += 4.0 * du * du;
            ab += 4.0 * du * dv;
            bb += 4.0 * dv * dv;
            ad += 2.0 * du * (p->q - m->q);
            bd += 2.0 * dv * (p->q - m->q);
        }
    if (c->kind == HIT) {
        mean /= n;
        c->d = 1 / mean;
        det = aa * bb - ab * ab;
        if (det > 0) {
            double x = (u - f->cx) / f->fx, y = (v - f->cy) / f->fy;
            double A = f->fx * (ad * bb - bd * ab) / det, B = f->fy * (bd * aa - ad * ab) / det,
                   C = mean - A * x - B * y, l = sqrt(A * A + B * B + C * C);
            /* 2^-23 of a reading in each difference, spread over the arms of the samples */
            double error = 1.2e-7 * greatest * sqrt(n * (aa + bb) / det) * fmax(f->fx, f->fy);
            c->g = fmin(fmax((A * x + B * y + C) / l, 0.25), 1);
            c->g_error = 2 * error / l;
        }
    }
    c->front = nearest == 0 || c->kind == INVALID ? 0
               : c->kind == HIT                   ? fmin(1 / nearest, c->d)
                                                  : 1 / nearest;
}

static struct pixel *surfaces_of(const struct sensor *s, const struct vx_frame *f, struct surfaces *count)
{
    size_t n = (size_t)f->width * f->height;
    struct pixel *px = calloc(n, sizeof *px);
    ck_assert_ptr_nonnull(px);
    for (size_t i = 0; i < n; i++) {
        px[i].kind = observe_reading(s, f, metres_at(f, (uint32_t)(i % f->width), (uint32_t)(i / f->width)),
                                     &px[i].d, &px[i].unsure);
        if (f->weight && f->weight[i] == 0) { /* as if there were no reading */
            px[i].kind = INVALID;
            px[i].unsure = false;
        }
        px[i].q = px[i].kind == HIT ? 1 / px[i].d : 0;
    }
    for (size_t i = 0; i < n; i++) {
        surface(s, f, px, (int)(i % f->width), (int)(i / f->width));
        count->n += px[i].kind == HIT;
        count->sloped += px[i].kind == HIT && px[i].g < 1;
        count->unsure += px[i].kind == HIT && (px[i].vague || px[i].unsure);
    }
    return px;
}

/* The band round a surface at depth d, seen from depth z: BAND, NEAR, FREE, NOTHING or EITHER. */
static int judge(const struct sensor *s, const struct vx_frame *f, const struct pixel *c, double z)
{
    double sdf = (c->d - z) * c->g, slack = EPS + fabs(c->d - z) * c->g_error,
           through = sdf - 3 * (double)s->k.noise * c->d * c->d * c->g;
    if (fabs(sdf - s->trunc) < slack || close_to(c->d - z, -s->trunc))
        return EITHER;
    if (sdf > s->trunc && !f->no_carving && fabs(through - s->trunc) < slack)
        return EITHER;
    if (sdf <= s->trunc)
        return c->d - z >= -s->trunc ? BAND : NOTHING;
    return f->no_carving ? NOTHING : through > s->trunc ? FREE : NEAR;
}

/*
 * Weight of an observation at depth d of a surface with slope g, which may be off by g_error; *vague when
 * rounding of single precision may give another one.  Of a frame with weights `by` is that of the pixel.
 */
static float worth(const struct sensor *s, double d, double g, double g_error, const float *by, bool *vague)
{
    const double most = s->weighting == VX_WEIGHT_CONSTANT ? 1 : 16, m = d * s->vs;
    double w = s->weighting == VX_WEIGHT_CONSTANT ? 1 : most * g / (m * m),
           slack = s->weighting == VX_WEIGHT_CONSTANT ? 0 : 1e-5 * w + w * g_error / g;
    if (!by) {
        *vague = w > 1 - EPS && w < most && fabs(w - floor(w) - 0.5) < slack;
        return (float)fmin(fmax(rint(w), 1), most);
    }
    w = fmin(fmax(w, 1), most) * (double)*by;
    slack *= (double)*by;
    *vague = w > 1 - EPS && w < 255 && fabs(w - floor(w) - 0.5) < slack;
    return (float)fmin(fmax(rint(w), 1), 255);
}

static struct obs observe(const struct sensor *s, const struct vx_frame *f, const struct pixel *px,
                          const double at[3])
{
    struct obs o = {0};
    const struct pixel *c;
    double p[3], u, v, d, g, sdf, slack;
    bool passed, vague;
    for (int k = 0; k < 3; k++)
        p[k] =
            s->R[k] * (at[0] - s->t[0]) + s->R[3 + k] * (at[1] - s->t[1]) + s->R[6 + k] * (at[2] - s->t[2]);
    if (p[2] <= 0.5 - EPS || p[2] > s->max_d + s->trunc + EPS)
        return o;
    u = f->fx * p[0] / p[2] + f->cx + 0.5;
    v = f->fy * p[1] / p[2] + f->cy + 0.5;
    if (u < -EPS || v < -EPS || u >= f->width + EPS || v >= f->height + EPS)
        return o;
    if (close_to(u, rint(u)) || close_to(v, rint(v)) || close_to(p[2], 0.5)) {
        o.what = EITHER;
        return o;
    }
    c = &px[(size_t)floor(v) * f->width + (size_t)floor(u)];
    if (c->vague || c->unsure) {
        o.what = EITHER;
        return o;
    }
    if (c->kind == INVALID)
        return o;
    d = c->d;
    g = c->g;
    o.pixel = 1 + (uint32_t)floor(v) * f->width + (uint32_t)floor(u);
    sdf = (d - p[2]) * g;
    slack = fabs(d - p[2]) * c->g_error;
    o.what = (uint8_t)(c->kind == HIT                      ? judge(s, f, c, p[2])
                       : close_to(p[2], s->max_d)          ? EITHER
                       : p[2] < s->max_d && !f->no_carving ? FREE
                                                           : NOTHING);
    /* the own reading passes by, but a surface next to it has the voxel in its band */
    passed = c->kind == OPEN || sdf > s->trunc;
    if (passed && c->front > 0 && close_to(fabs(c->front - p[2]), s->trunc)) {
        o.what = EITHER;
    } else if (passed && c->front > 0 && fabs(c->front - p[2]) < s->trunc && o.what != EITHER) {
        o.what = BAND;
        o.pixel = 0;
        d = c->front;
        g = 1;
        sdf = d - p[2];
        slack = 0;
    } else if (c->kind == OPEN) {
        sdf = s->trunc;
        slack = 0;
        d = INFINITY;
    }
    o.q_lo = (float)(fmin(sdf - slack, s->trunc) * s->q_scale);
    o.q_hi = (float)(fmin(sdf + slack, s->trunc) * s->q_scale);
    o.weight = worth(s, d, g, c->g_error, f->weight ? &f->weight[c - px] : NULL, &vague);
    if (o.what && vague)
        o.what = EITHER;
    return o;
}

void observe_depth(const struct sensor *s, const struct vx_frame *f, struct box *b, struct surfaces *count)
{
    struct pixel *px = surfaces_of(s, f, count);
    size_t i = 0;
    for (int32_t x = b->lo[0]; x < b->lo[0] + b->n[0]; x++)
        for (int32_t y = b->lo[1]; y < b->lo[1] + b->n[1]; y++)
            for (int32_t z = b->lo[2]; z < b->lo[2] + b->n[2]; z++, i++) {
                const double c[3] = {x + 0.5, y + 0.5, z + 0.5};
                b->obs[i] = observe(s, f, px, c);
            }
    free(px);
}
