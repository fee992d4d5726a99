/*
 * frame_lidar.h - LiDAR readings as rays: directions, the bins that find the ray nearest to a voxel, and the
 * marks and sums that rays leave in the voxels of their bands.
 *
 * Hits go ray by ray into integer accumulators; free space is found from the voxel's side, by asking the bin
 * that the voxel falls into for its ray.
 */
#ifndef VXK_BODY_FRAME_LIDAR_H
#define VXK_BODY_FRAME_LIDAR_H

#include "dda.h"
#include "frame_skew.h"

/* Bin that a point in sensor coordinates falls into, or -1. */
VXK_FN int32_t vxk_lidar_bin(const struct vxk_frame *f, const struct vxk_frame_space *s, float x, float y,
                             float z)
{
    float rho = vxk_sqrt(x * x + y * y), c = vxk_lidar_column(f, vxk_atan2(y, x));
    int32_t col = (int32_t)vxk_min(vxk_max(c, 0.0f), 1e6f), row = vxk_lidar_row(f, s, vxk_atan2(z, rho));
    /* rounding may leave the last column of a full turn a hair past its end */
    col -= (col >= f->width) & (f->full_turn != 0) ? f->width : 0;
    return col < f->width ? row * f->width + col : -1;
}

/* Reads one ray: writes s.ray; range images also s.depth; point sets compete for their bin.  Returns why the
 * reading was or was not used. */
VXK_FN int vxk_read_ray(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    struct vxk_ray ray;
    float l[3], R[9], o[3]; /* direction in sensor axes; pose, position from f.t */
    int why;
    if (f->bins_are_rays) {
        uint32_t row = i / (uint32_t)f->width, col = i - row * (uint32_t)f->width;
        const float *b = a->s.beam, *e = b + 2 * f->width;
        uint32_t raw_row = f->rows_rise ? (uint32_t)f->height - 1 - row : row;
        ray.r = vxk_reading(f, ((const float *)a->image)[raw_row * (uint32_t)f->width + col], &why);
        l[0] = e[row] * b[col];
        l[1] = e[row] * b[f->width + col];
        l[2] = e[f->height + row];
    } else {
        const float *p = (const float *)a->image + 3 * (uint64_t)i;
        float n2 = p[0] * p[0] + p[1] * p[1] + p[2] * p[2], n = vxk_sqrt(n2);
        ray.r = VXK_D_INVALID;
        l[0] = l[1] = l[2] = 0.0f;
        if (p[0] != p[0] || p[1] != p[1] || p[2] != p[2]) {
            why = VXK_C_NAN;
        } else if (!(n2 < 1e30f)) {
            why = VXK_C_NO_RETURN; /* no direction is left in an infinite point: it can't carve */
        } else if (n2 == 0.0f) {
            why = VXK_C_ZERO;
        } else {
            ray.r = vxk_reading(f, n, &why);
            for (int k = 0; k < 3; k++)
                l[k] = p[k] / n;
        }
    }
    vxk_ray_pose(a, i, R, o);
    for (int k = 0; k < 3; k++)
        ray.d[k] = R[3 * k] * l[0] + R[3 * k + 1] * l[1] + R[3 * k + 2] * l[2];
    for (int k = 0; k < 3; k++)
        ray.n[k] = -ray.d[k];
    ray.nd = -1.0f;
    if (f->edge && why == VXK_C_USED) {
        float p[3];
        for (int k = 0; k < 3; k++)
            p[k] = (f->t[k] + o[k]) + ray.d[k] * ray.r;
        if (vxk_beyond_range(f, p)) {
            why = VXK_C_OUTSIDE;
            ray.r = VXK_D_INVALID;
        }
    }
    a->s.ray[i] = ray;
    if (f->bins_are_rays) {
        a->s.depth[i] = ray.r;
    } else if (ray.r > 0.0f) {
        int32_t bin = vxk_lidar_bin(f, &a->s, l[0], l[1], l[2]);
        if (bin >= 0) {
            /* fixed point: the nearest reading of a bin wins, then the first */
            uint64_t r = ray.r < VXK_D_OPEN ? (uint64_t)(uint32_t)vxk_rint(vxk_min(ray.r, 8e6f) * 256.0f)
                                            : 0xfffffffeull;
            vxk_atomic_min64(&a->s.bin[bin], r << 32 | i);
            if (a->s.skew.on)
                vxk_skew_note(a, (uint32_t)(bin % f->width), i);
        }
    }
    return why;
}

/* Element: a reading. */
#define vxk_frame_ray_args vxk_frame_args
VXK_FN void vxk_frame_ray(const struct vxk_frame_args *a, uint32_t i)
{
    int why = vxk_read_ray(a, i);
    if (why != VXK_C_USED)
        vxk_atomic_add64(&a->s.c->counts[why], 1);
}

/* Element: 4 bins of a row: bounds (and, for point sets, ranges from the winners). */
#define vxk_frame_bins_args vxk_frame_args
VXK_FN void vxk_frame_bins(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    int row = (int)i / f->n_tx[0], u0 = ((int)i - row * f->n_tx[0]) * VXK_TILE,
        u1 = vxk_mini(u0 + VXK_TILE, f->width);
    struct vxk_bounds b = vxk_bounds_none();
    for (int u = u0; u < u1; u++) {
        uint32_t at = (uint32_t)row * (uint32_t)f->width + (uint32_t)u;
        float d;
        if (!f->bins_are_rays) {
            uint64_t w = a->s.bin[at];
            a->s.depth[at] = w == ~0ull ? VXK_D_INVALID : a->s.ray[(uint32_t)w].r;
        }
        d = a->s.depth[at];
        vxk_bounds_add(&b, d, f->trunc, f->trunc, d < VXK_D_OPEN ? d - f->clear : f->max_d);
    }
    a->s.strip[i] = b;
}

/* Where a point in sensor coordinates lies. */
struct vxk_heading {
    float rho2, d2;  /* squared distances from the sensor's axis, and from it */
    float e, column; /* elevation; azimuth in columns */
};
VXK_FN struct vxk_heading vxk_lidar_heading(const struct vxk_frame *f, const struct vxk_vec3 *q)
{
    struct vxk_heading h;
    h.rho2 = q->x * q->x + q->y * q->y;
    h.d2 = h.rho2 + q->z * q->z;
    h.e = vxk_atan2(q->z, vxk_sqrt(h.rho2));
    h.column = vxk_lidar_column(f, vxk_atan2(q->y, q->x));
    return h;
}

/* Rows and columns of the bins whose centres a sphere can cover, and `slack` rad round it (columns may leave
 * [0, width): they go on at the other end of the turn); none (rect[1] < rect[0]) where no beam is.  0: too
 * near to say. */
VXK_FN int vxk_heading_rect(const struct vxk_frame *f, const struct vxk_frame_space *s,
                            const struct vxk_heading *h, float r, float slack, int32_t rect[4])
{
    float r2 = r * r, el_r, az_r;
    if (h->d2 <= 2.0f * r2)
        return 0;
    el_r = r / vxk_sqrt(h->d2 - r2) +
           (1e-4f + slack); /* tangent of the angular radius: never less than the angle */
    rect[0] = rect[2] = 0;
    rect[1] = -1;
    rect[3] = f->width - 1;
    if (h->e - el_r > f->el_max || h->e + el_r < f->el_min)
        return 1;
    rect[0] = vxk_lidar_row(f, s, h->e + el_r);
    rect[1] = vxk_lidar_row(f, s, h->e - el_r);
    if (h->rho2 > 2.0f * r2) {
        az_r = (r / vxk_sqrt(h->rho2 - r2) + (1e-4f + slack)) * vxk_abs(f->az_scale);
        if (2.0f * az_r + 2.0f < f->az_turn) {
            rect[2] = (int32_t)vxk_floor(h->column - az_r);
            rect[3] = (int32_t)vxk_floor(h->column + az_r);
        }
    }
    return 1;
}
VXK_FN int vxk_lidar_rect(const struct vxk_frame *f, const struct vxk_frame_space *s,
                          const struct vxk_vec3 *q, float r, float slack, int32_t rect[4])
{
    struct vxk_heading h = vxk_lidar_heading(f, q);
    return vxk_heading_rect(f, s, &h, r, slack, rect);
}

/* Bounds of the readings round a sphere; results as vxk_depth_bounds (*whole stays 0: beams leave gaps). */
VXK_FN int vxk_heading_bounds(const struct vxk_frame *f, const struct vxk_frame_space *s,
                              const struct vxk_heading *h, float r, const struct vxk_stride *by,
                              struct vxk_bounds *b)
{
    int32_t rect[4], v0, v1, u0, u1, turn = (int32_t)vxk_floor(f->az_turn + 0.5f);
    int level, shift;
    /* a beam clears half a voxel to either side */
    if (!vxk_heading_rect(f, s, h, r + 0.6f, f->skew_turn, rect))
        return 2;
    if (rect[1] < rect[0])
        return 0;
    /* a bin more on each side: a beam near a border may be its neighbour's */
    v0 = vxk_maxi(rect[0] - 1, 0);
    v1 = vxk_mini(rect[1] + 1, f->height - 1);
    u0 = rect[2] - 1;
    u1 = rect[3] + 1;
    level = vxk_level_for(vxk_maxi(u1 - u0, v1 - v0));
    shift = 2 + 2 * level;
    *b = vxk_bounds_none();
    for (int32_t v = (v0 >> shift) + by->y; v <= v1 >> shift; v += by->ny) {
        for (int part = -1; part <= 1; part++) {
            int32_t first = vxk_maxi(u0 + part * turn, 0), last = vxk_mini(u1 + part * turn, f->width - 1);
            if (first > last)
                continue;
            for (int32_t u = (first >> shift) + by->x; u <= last >> shift; u += by->nx)
                vxk_bounds_join(b, &s->level[level][v * f->n_tx[level] + u]);
        }
    }
    return 1;
}

VXK_FN int vxk_lidar_bounds(const struct vxk_frame *f, const struct vxk_frame_space *s,
                            const struct vxk_vec3 *q, float r, const struct vxk_stride *by,
                            struct vxk_bounds *b, int *whole)
{
    struct vxk_heading h = vxk_lidar_heading(f, q);
    *whole = 0;
    return vxk_heading_bounds(f, s, &h, r, by, b);
}

/* Cells that fewer beams than this may meet are asked beam by beam, others voxel by voxel.  Most bins of a
 * point set are empty and cost a look at their range, while a voxel that asks its own bin misses the beams in
 * those beside it: there only the cells round the sensor are asked voxel by voxel. */
enum { VXK_FEW_BEAMS = 96, VXK_FEW_BINS = 1 << 15 };
/* Half a diagonal of a cell and the half voxel to either side of a beam that it clears, and a little more. */
#define VXK_CELL_REACH 6.6f

/* The bins whose beams may clear voxels of a cell round q (sensor coordinates); 0: too many. */
VXK_FN int vxk_heading_bins(const struct vxk_frame *f, const struct vxk_frame_space *s,
                            const struct vxk_heading *h, int32_t rect[4])
{
    return vxk_heading_rect(f, s, h, VXK_CELL_REACH, s->skew.on ? VXK_SKEW_SLACK : 0.0f, rect) &&
           (rect[1] - rect[0] + 1) * (rect[3] - rect[2] + 1) <=
               (f->bins_are_rays ? VXK_FEW_BEAMS : VXK_FEW_BINS);
}

/* Leaves out of the bins round a cell at h the rows and columns at their ends whose beams surely pass it by;
 * none may be left.  z: the cell's middle along the sensor's axis.  Only for range images of a sensor that
 * did not move, whose beams are where the table says. */
VXK_FN void vxk_heading_tighten(const struct vxk_frame *f, const struct vxk_frame_space *s,
                                const struct vxk_heading *h, float z, int32_t rect[4])
{
    const float *cosine = s->beam + 2 * f->width, *sine = cosine + f->height, rho = vxk_sqrt(h->rho2);
    const float turn = vxk_floor(f->az_turn + 0.5f), r2 = VXK_CELL_REACH * VXK_CELL_REACH;
    /* no beam of a row is nearer than its cone */
    if (rect[0] <= rect[1] && vxk_abs(z * cosine[rect[0]] - rho * sine[rect[0]]) > VXK_CELL_REACH)
        rect[0]++;
    if (rect[0] <= rect[1] && vxk_abs(z * cosine[rect[1]] - rho * sine[rect[1]]) > VXK_CELL_REACH)
        rect[1]--;
    if (h->rho2 > 2.0f * r2 && vxk_abs(f->az_turn - turn) < 1e-3f) {
        float az_r = (VXK_CELL_REACH / vxk_sqrt(h->rho2 - r2) + 1e-4f) * vxk_abs(f->az_scale);
        if (2.0f * az_r + 2.0f < f->az_turn) { /* beams are in the middle of their columns */
            rect[2] = vxk_maxi(rect[2], (int32_t)vxk_ceil(h->column - az_r - 0.51f));
            rect[3] = vxk_mini(rect[3], (int32_t)vxk_floor(h->column + az_r - 0.49f));
        }
    }
    if (rect[3] < rect[2])
        rect[1] = rect[0] - 1;
}

VXK_FN int vxk_cell_bins(const struct vxk_frame *f, const struct vxk_frame_space *s, const struct vxk_vec3 *q,
                         int32_t rect[4])
{
    struct vxk_heading h = vxk_lidar_heading(f, q);
    return vxk_heading_bins(f, s, &h, rect);
}

/* Column u of a rectangle of bins, which may go on past either end of the turn; -1 outside of the image. */
VXK_FN int32_t vxk_turned_column(const struct vxk_frame *f, int32_t u)
{
    if (f->full_turn) {
        int32_t turn = (int32_t)vxk_floor(f->az_turn + 0.5f);
        u = u < 0 ? u + turn : u >= f->width ? u - turn : u;
    }
    return u >= 0 && u < f->width ? u : -1;
}

/* How far a reading clears, in voxels from the sensor; nothing: below 0. */
VXK_FN float vxk_clear_to(const struct vxk_frame *f, float range)
{
    return range < VXK_D_OPEN ? range - f->clear : f->max_d;
}

/* No beam that clears anything in a cell at squared distance d2 ends nearer than this. */
VXK_FN float vxk_cell_nearest(float d2)
{
    return vxk_sqrt(vxk_max(d2 - VXK_CELL_REACH * VXK_CELL_REACH, 0.0f)) - (VXK_CELL_REACH + 0.01f);
}

/* May a beam clear anything in the cell round q (sensor coordinates)?  Looks at ranges only (of several who
 * share the look, one must say yes).  A moving sensor's beams are left to vxk_frame_beams. */
VXK_FN int vxk_lidar_reaches(const struct vxk_frame *f, const struct vxk_frame_space *s,
                             const struct vxk_vec3 *q, const struct vxk_stride *by)
{
    int32_t rect[4];
    float d2 = q->x * q->x + q->y * q->y + q->z * q->z, nearest;
    if (s->skew.on || !vxk_cell_bins(f, s, q, rect))
        return 1;
    nearest = vxk_cell_nearest(d2);
    for (int32_t v = rect[0] + by->y; v <= rect[1]; v += by->ny) {
        for (int32_t u = rect[2] + by->x; u <= rect[3]; u += by->nx) {
            int32_t c = vxk_turned_column(f, u);
            if (c >= 0 && vxk_clear_to(f, s->depth[v * f->width + c]) >= nearest)
                return 1;
        }
    }
    return 0;
}

/* Vector from the end of ray i to the end of ray j. */
VXK_FN void vxk_ray_between(const struct vxk_frame_space *s, uint32_t i, uint32_t j, float e[3])
{
    const struct vxk_ray *p = &s->ray[j], *ray = &s->ray[i];
    for (uint32_t k = 0; k < 3; k++) {
        e[k] = p->d[k] * p->r - ray->d[k] * ray->r;
        if (s->skew.on)
            e[k] += s->skew.origin[3 * (uint64_t)j + k] - s->skew.origin[3 * (uint64_t)i + k];
    }
}

/* The ray of a bin that has one. */
VXK_FN uint32_t vxk_bin_ray(const struct vxk_frame *f, const struct vxk_frame_space *s, int32_t bin)
{
    return f->bins_are_rays ? (uint32_t)bin : (uint32_t)s->bin[bin];
}

/* First hit from a hit's bin on in steps of (dr, dc) that lies at least `apart` voxels from it, or VXK_NONE.
 */
VXK_FN uint32_t vxk_bin_neighbour(const struct vxk_frame *f, const struct vxk_frame_space *s, uint32_t ray,
                                  int32_t row, int32_t column, int32_t dr, int32_t dc, float apart)
{
    for (int32_t k = 1; k <= 16; k++) {
        int32_t r = row + dr * k, c = column + dc * k, bin;
        if (f->full_turn)
            c = c < 0 ? c + f->width : c >= f->width ? c - f->width : c;
        if (r < 0 || r >= f->height || c < 0 || c >= f->width)
            return VXK_NONE;
        bin = r * f->width + c;
        if (s->depth[bin] > 0.0f && s->depth[bin] < VXK_D_OPEN) {
            uint32_t p = vxk_bin_ray(f, s, bin);
            float e[3];
            vxk_ray_between(s, ray, p, e);
            if (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] >= apart * apart)
                return p;
        }
    }
    return VXK_NONE;
}

/* Tangent of the surface from the hits on either side of a hit, when the three lie on a line within 6
 * degrees. */
VXK_FN int vxk_tangent(const struct vxk_frame_space *s, uint32_t ray, uint32_t p, uint32_t q, float t[3])
{
    float l2 = 0.0f, s1 = 0.0f, s2 = 0.0f, dot = 0.0f, e1[3], e2[3];
    if (p == VXK_NONE || q == VXK_NONE)
        return 0;
    vxk_ray_between(s, ray, p, e1);
    vxk_ray_between(s, q, ray, e2);
    for (int k = 0; k < 3; k++) {
        s1 += e1[k] * e1[k];
        s2 += e2[k] * e2[k];
        dot += e1[k] * e2[k];
        t[k] = e1[k] + e2[k];
        l2 += t[k] * t[k];
    }
    if (!(dot > 0.0f) || dot * dot < 0.99f * (s1 * s2))
        return 0;
    l2 = 1.0f / vxk_sqrt(l2);
    for (int k = 0; k < 3; k++)
        t[k] *= l2;
    return 1;
}

/* Has the bin a ray that ends on a surface? */
VXK_FN int vxk_bin_hits(const struct vxk_frame_space *s, uint32_t bin)
{
    return s->depth[bin] > 0.0f && s->depth[bin] < VXK_D_OPEN;
}

/* The hit beside a bin's that its normal is taken from: side 0, 1 along the row, 2, 3 along the column;
 * 0.4 voxel away or more. */
VXK_FN uint32_t vxk_normal_side(const struct vxk_frame_args *a, uint32_t bin, int side)
{
    int32_t row = (int32_t)bin / a->f.width, column = (int32_t)bin - row * a->f.width, to = side & 1 ? -1 : 1;
    return vxk_bin_neighbour(&a->f, &a->s, vxk_bin_ray(&a->f, &a->s, (int32_t)bin), row, column,
                             side & 2 ? to : 0, side & 2 ? 0 : to, 0.4f);
}

/* The normal at the end of a bin's ray from the hits on its four sides. */
VXK_FN void vxk_normal_from(const struct vxk_frame_args *a, uint32_t bin, const uint32_t side[4])
{
    const struct vxk_frame_space *s = &a->s;
    uint32_t at = vxk_bin_ray(&a->f, s, (int32_t)bin);
    struct vxk_ray *ray = &s->ray[at];
    float tu[3], tv[3], n[3], l, nd;
    int u = vxk_tangent(s, at, side[0], side[1], tu), v = vxk_tangent(s, at, side[2], side[3], tv);
    if (!u && !v)
        return;
    if (u && v) {
        n[0] = tu[1] * tv[2] - tu[2] * tv[1];
        n[1] = tu[2] * tv[0] - tu[0] * tv[2];
        n[2] = tu[0] * tv[1] - tu[1] * tv[0];
    } else { /* one tangent only: the normal nearest to the ray */
        const float *t = u ? tu : tv;
        float dt = ray->d[0] * t[0] + ray->d[1] * t[1] + ray->d[2] * t[2];
        for (int k = 0; k < 3; k++)
            n[k] = dt * t[k] - ray->d[k];
    }
    l = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    if (!(l > 1e-4f))
        return;
    nd = n[0] * ray->d[0] + n[1] * ray->d[1] + n[2] * ray->d[2];
    l = (nd > 0.0f ? -1.0f : 1.0f) / vxk_sqrt(l);
    nd *= l;
    if (nd > -0.02f) /* seen edge-on: the end point itself is doubtful */
        return;
    for (int k = 0; k < 3; k++)
        ray->n[k] = n[k] * l;
    ray->nd = nd;
}

/* Element: a bin.  The normal at its ray's end. */
#define vxk_frame_normal_args vxk_frame_args
VXK_FN void vxk_frame_normal(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t side[4];
    if (!vxk_bin_hits(&a->s, i))
        return;
    for (int k = 0; k < 4; k++)
        side[k] = vxk_normal_side(a, i, k);
    vxk_normal_from(a, i, side);
}

/* Where ray i began, voxels from the corner of chunk oc. */
VXK_FN void vxk_ray_origin(const struct vxk_frame_args *a, uint32_t i, float o[3])
{
    for (uint32_t k = 0; k < 3; k++) {
        o[k] = a->f.t[k];
        if (a->s.skew.on)
            o[k] += a->s.skew.origin[3 * (uint64_t)i + k];
    }
}

/* Walks the voxels of a ray's band: half a band to either side of its end (occupancy: the end's voxel). */
VXK_FN void vxk_ray_band(const struct vxk_frame_args *a, uint32_t i, struct vxk_dda *w)
{
    const struct vxk_ray *ray = &a->s.ray[i];
    float half = a->f.mode == 0 ? a->f.trunc : 0.0f, o[3];
    vxk_ray_origin(a, i, o);
    vxk_dda_init(w, o, ray->d, vxk_max(ray->r - half, 0.0f), ray->r + half, 1.0f);
}

VXK_FN uint32_t vxk_touch_slot(const struct vxk_frame_args *a, int32_t cx, int32_t cy, int32_t cz)
{
    return vxk_hash_find_still(a->s.touch_key, a->s.touch_slots - 1,
                               vxk_key(a->f.oc[0] + cx, a->f.oc[1] + cy, a->f.oc[2] + cz));
}

/* Element: a ray.  Marks the cells of its band in the frame's table of touched chunks. */
#define vxk_frame_touch_args vxk_frame_args
VXK_FN void vxk_frame_touch(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_ray *ray = &a->s.ray[i];
    struct vxk_dda w;
    int32_t last[3] = {0x7fffffff, 0, 0}, chunk[3] = {0x7fffffff, 0, 0};
    uint32_t slot = VXK_NONE;
    if (!(ray->r > 0.0f && ray->r < VXK_D_OPEN))
        return;
    vxk_ray_band(a, i, &w);
    do {
        int32_t x = w.i[0] >> 3, y = w.i[1] >> 3, z = w.i[2] >> 3;
        uint64_t bit, *m;
        if (x == last[0] && y == last[1] && z == last[2])
            continue;
        last[0] = x;
        last[1] = y;
        last[2] = z;
        if (x >> 4 != chunk[0] || y >> 4 != chunk[1] || z >> 4 != chunk[2]) {
            int inserted;
            chunk[0] = x >> 4;
            chunk[1] = y >> 4;
            chunk[2] = z >> 4;
            slot = vxk_hash_insert(
                a->s.touch_key, a->s.touch_slots - 1,
                vxk_key(a->f.oc[0] + chunk[0], a->f.oc[1] + chunk[1], a->f.oc[2] + chunk[2]), &inserted);
            if (inserted)
                vxk_atomic_add32(&a->s.c->n_touch_chunk, 1);
        }
        if (slot == VXK_NONE) {
            vxk_atomic_or32(&a->s.c->table_full, 1);
            return;
        }
        m = &a->s.touch_mask[(uint64_t)slot * 64 + ((uint32_t)(x >> 2 & 3) << 4 |
                                                    (uint32_t)(y >> 2 & 3) << 2 | (uint32_t)(z >> 2 & 3))];
        bit = 1ull << ((uint32_t)(x & 3) << 4 | (uint32_t)(y & 3) << 2 | (uint32_t)(z & 3));
        if (!(vxk_peek64(m) & bit))
            vxk_atomic_or64(m, bit);
    } while (vxk_dda_next(&w));
}

/* Element: a word of the table of touched chunks: places for its touched leaves, with empty marks. */
#define vxk_frame_touch_rank_args vxk_frame_args
VXK_FN void vxk_frame_touch_rank(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t n = vxk_popc64(a->s.touch_mask[i]), first;
    if (!n)
        return;
    first = vxk_atomic_add32(&a->s.c->n_touch_leaf, n);
    a->s.touch_rank[i] = first;
    for (uint32_t k = first; k < first + n && k < a->s.room_touch_leaf; k++)
        for (uint32_t x = 0; x < 8; x++)
            a->s.hit_mask[(uint64_t)k * 8 + x] = 0;
}

/* Touched leaf that holds the cell, or VXK_NONE. */
VXK_FN uint32_t vxk_touched_leaf(const struct vxk_frame_space *s, uint32_t slot, uint32_t word, uint32_t cell)
{
    uint64_t m;
    if (slot == VXK_NONE)
        return VXK_NONE;
    m = s->touch_mask[(uint64_t)slot * 64 + word];
    if (!(m >> cell & 1))
        return VXK_NONE;
    return s->touch_rank[(uint64_t)slot * 64 + word] + vxk_popc64(m & ((1ull << cell) - 1));
}

/* A walk over the voxels of a ray's band that keeps the touched leaf at hand. */
struct vxk_band_walk {
    struct vxk_dda w;
    int32_t cell[3];
    uint32_t leaf, voxel;
};
VXK_FN void vxk_band_walk_look(struct vxk_band_walk *b, const struct vxk_frame_args *a)
{
    int32_t x = b->w.i[0] >> 3, y = b->w.i[1] >> 3, z = b->w.i[2] >> 3;
    if (x != b->cell[0] || y != b->cell[1] || z != b->cell[2]) {
        b->cell[0] = x;
        b->cell[1] = y;
        b->cell[2] = z;
        b->leaf = vxk_touched_leaf(&a->s, vxk_touch_slot(a, x >> 4, y >> 4, z >> 4),
                                   (uint32_t)(x >> 2 & 3) << 4 | (uint32_t)(y >> 2 & 3) << 2 |
                                       (uint32_t)(z >> 2 & 3),
                                   (uint32_t)(x & 3) << 4 | (uint32_t)(y & 3) << 2 | (uint32_t)(z & 3));
    }
    b->voxel = (uint32_t)(b->w.i[0] & 7) << 6 | (uint32_t)(b->w.i[1] & 7) << 3 | (uint32_t)(b->w.i[2] & 7);
}
VXK_FN int vxk_band_walk_begin(struct vxk_band_walk *b, const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_ray *ray = &a->s.ray[i];
    if (!(ray->r > 0.0f && ray->r < VXK_D_OPEN))
        return 0;
    vxk_ray_band(a, i, &b->w);
    b->cell[0] = 0x7fffffff;
    b->cell[1] = b->cell[2] = 0;
    vxk_band_walk_look(b, a);
    return 1;
}
VXK_FN int vxk_band_walk_next(struct vxk_band_walk *b, const struct vxk_frame_args *a)
{
    if (!vxk_dda_next(&b->w))
        return 0;
    vxk_band_walk_look(b, a);
    return 1;
}

/* Element: a ray.  Marks the voxels of its band in s.hit_mask. */
#define vxk_frame_hit_mark_args vxk_frame_args
VXK_FN void vxk_frame_hit_mark(const struct vxk_frame_args *a, uint32_t i)
{
    struct vxk_band_walk b;
    if (!vxk_band_walk_begin(&b, a, i))
        return;
    do {
        uint64_t *m, bit = 1ull << (b.voxel & 63);
        if (b.leaf >= a->s.room_touch_leaf)
            continue;
        m = &a->s.hit_mask[(uint64_t)b.leaf * 8 + (b.voxel >> 6)];
        if (!(vxk_peek64(m) & bit))
            vxk_atomic_or64(m, bit);
    } while (vxk_band_walk_next(&b, a));
}

/* Element: a touched leaf: accumulators for its hit voxels, at zero. */
#define vxk_frame_hit_room_args vxk_frame_args
VXK_FN void vxk_frame_hit_room(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t n = 0, first;
    uint64_t prefix = 0;
    for (uint32_t x = 0; x < 8; x++) {
        if (x)
            prefix |= (uint64_t)n << (9 * (x - 1));
        n += vxk_popc64(a->s.hit_mask[(uint64_t)i * 8 + x]);
    }
    first = vxk_atomic_add32(&a->s.c->n_hit_voxels, n);
    a->s.hit_base[i] = first;
    a->s.hit_prefix[i] = prefix;
    for (uint32_t k = first; k < first + n && k < a->s.room_hit; k++)
        a->s.acc[k] = 0;
}

/* Place of the accumulator of voxel n of a touched leaf; VXK_NONE when no ray hit it or the lists overflowed.
 */
VXK_FN uint32_t vxk_hit_place(const struct vxk_frame_space *s, uint32_t leaf, uint32_t n)
{
    uint32_t x = n >> 6, k;
    uint64_t m;
    if (leaf >= s->room_touch_leaf)
        return VXK_NONE;
    m = s->hit_mask[(uint64_t)leaf * 8 + x];
    if (!(m >> (n & 63) & 1))
        return VXK_NONE;
    k = s->hit_base[leaf] + (x ? (uint32_t)(s->hit_prefix[leaf] >> (9 * (x - 1)) & 511) : 0) +
        vxk_popc64(m & ((1ull << (n & 63)) - 1));
    return k < s->room_hit ? k : VXK_NONE;
}

/* Stored distance units of a signed distance in voxels. */
VXK_FN int32_t vxk_quantise(const struct vxk_frame *f, float sdf)
{
    return vxk_rint(vxk_min(vxk_max(sdf * f->q_scale, -32767.0f), 32767.0f));
}

/* What a ray that began at o says about voxel `at` (from chunk oc): its distance in stored units.  A voxel
 * beside the ray is judged by the surface there, not by the ray. */
VXK_FN int32_t vxk_hit_distance(const struct vxk_frame *f, const struct vxk_ray *ray, const float o[3],
                                const int32_t at[3])
{
    float from_plane = 0.0f;
    for (int k = 0; k < 3; k++)
        from_plane += (((float)at[k] + 0.5f) - o[k]) * ray->n[k];
    return vxk_quantise(f, from_plane - ray->r * ray->nd);
}

/* Element: a ray.  Adds its observation to the voxels of its band. */
#define vxk_frame_hit_add_args vxk_frame_args
VXK_FN void vxk_frame_hit_add(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_ray *ray = &a->s.ray[i];
    struct vxk_band_walk b;
    float o[3];
    if (!vxk_band_walk_begin(&b, a, i))
        return;
    vxk_ray_origin(a, i, o);
    do {
        uint32_t place = vxk_hit_place(&a->s, b.leaf, b.voxel);
        if (place != VXK_NONE)
            vxk_atomic_add64(&a->s.acc[place],
                             (1ull << 40) +
                                 (uint64_t)(uint32_t)(vxk_hit_distance(&a->f, ray, o, b.w.i) + 32768));
    } while (vxk_band_walk_next(&b, a));
}

/* Mean observation (stored units, rounded half away from zero) and number of rays of an accumulator. */
VXK_FN int32_t vxk_hit_mean(uint64_t acc, int32_t *count)
{
    int64_t n = (int64_t)(acc >> 40), sum = (int64_t)(acc & ((1ull << 40) - 1)) - 32768 * n;
    uint64_t m = (uint64_t)(sum >= 0 ? sum : -sum) + (uint64_t)n / 2;
    /* of few rays, as nearly always: a division of 32 bits is several times cheaper */
    int32_t mean = (int32_t)(m >> 32 ? m / (uint64_t)n : (uint32_t)m / (uint32_t)n);
    *count = (int32_t)n;
    return sum >= 0 ? mean : -mean;
}

/* Did a ray from the origin pass within half a voxel of the point v (map axes) and go on? */
VXK_FN int vxk_line_clears(const struct vxk_frame *f, const struct vxk_ray *ray, const float v[3])
{
    float c0, c1, c2, along = v[0] * ray->d[0] + v[1] * ray->d[1] + v[2] * ray->d[2];
    if (!(along > 0.0f))
        return 0;
    c0 = v[1] * ray->d[2] - v[2] * ray->d[1];
    c1 = v[2] * ray->d[0] - v[0] * ray->d[2];
    c2 = v[0] * ray->d[1] - v[1] * ray->d[0];
    if (c0 * c0 + c1 * c1 + c2 * c2 > 0.25f)
        return 0;
    if (ray->r >= VXK_D_OPEN)
        return along <= f->max_d;
    /* in front of the band, and in front of the surface that the ray ends on: a beam that grazes the ground
     * clears nothing in it */
    return ray->r - along > f->clear &&
           v[0] * ray->n[0] + v[1] * ray->n[1] + v[2] * ray->n[2] - ray->r * ray->nd > f->clear_plane;
}

/* Did ray i pass within half a voxel of the point w (map axes, from f.t) and go on? */
VXK_FN int vxk_ray_clears(const struct vxk_frame *f, const struct vxk_frame_space *s, uint32_t i,
                          const float w[3])
{
    const struct vxk_ray *ray = &s->ray[i];
    float v[3] = {w[0], w[1], w[2]};
    if (s->skew.on)
        for (uint32_t k = 0; k < 3; k++)
            v[k] -= s->skew.origin[3 * (uint64_t)i + k];
    return vxk_line_clears(f, ray, v);
}

#endif
