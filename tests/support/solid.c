/*
 * solid.c - see solid.h.
 */
#include "solid.h"

#include <math.h>

struct solid solid_make(enum solid_type type, double x, double y, double z, double hx, double hy, double hz,
                        double yaw)
{
    struct solid s = {type, {x, y, z}, {hx, hy, hz}, cos(yaw), sin(yaw)};
    return s;
}

/* Layout vector to the solid's local axes (rotation only). */
static void to_local(const struct solid *s, const double v[3], double out[3])
{
    const double lx = s->cos_yaw * v[0] + s->sin_yaw * v[1];
    const double ly = -s->sin_yaw * v[0] + s->cos_yaw * v[1];
    out[0] = lx;
    if (s->type == SOLID_CYLINDER_Y) { /* swap y and z: the axis becomes z */
        out[1] = v[2];
        out[2] = ly;
    } else {
        out[1] = ly;
        out[2] = v[2];
    }
}

double solid_box_sdf(const double p[3], const double half[3])
{
    const double qx = fabs(p[0]) - half[0];
    const double qy = fabs(p[1]) - half[1];
    const double qz = fabs(p[2]) - half[2];
    const double ox = max2(qx, 0), oy = max2(qy, 0), oz = max2(qz, 0);
    const double inside = min2(max2(qx, max2(qy, qz)), 0);
    return sqrt(ox * ox + oy * oy + oz * oz) + inside;
}

double solid_sdf(const struct solid *s, const double point[3])
{
    const double v[3] = {point[0] - s->centre[0], point[1] - s->centre[1], point[2] - s->centre[2]};
    if (s->type == SOLID_SPHERE)
        return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) - s->half_size[0];
    double p[3];
    to_local(s, v, p);
    if (s->type == SOLID_BOX)
        return solid_box_sdf(p, s->half_size);
    const double dr = sqrt(p[0] * p[0] + p[1] * p[1]) - s->half_size[0];
    const double dz = fabs(p[2]) - s->half_size[2];
    const double orr = max2(dr, 0), oz = max2(dz, 0);
    return sqrt(orr * orr + oz * oz) + min2(max2(dr, dz), 0);
}

/*
 * Where a ray crosses an axis-aligned box about the origin: false when it
 * misses; otherwise the parameters of entry and exit (either may be negative).
 */
bool solid_box_crossing(const double o[3], const double d[3], const double half[3], double *t_in,
                        double *t_out)
{
    double t0 = -INFINITY, t1 = INFINITY;
    for (int a = 0; a < 3; a++) {
        if (d[a] == 0) {
            if (fabs(o[a]) > half[a])
                return false;
            continue;
        }
        const double inv = 1 / d[a];
        const double ta = (-half[a] - o[a]) * inv;
        const double tb = (half[a] - o[a]) * inv;
        t0 = max2(t0, min2(ta, tb));
        t1 = min2(t1, max2(ta, tb));
    }
    *t_in = t0;
    *t_out = t1;
    return t0 <= t1;
}

/* Parameter at which the ray enters the solid from outside; INFINITY if never. */
double solid_raycast(const struct solid *s, const double origin[3], const double direction[3])
{
    const double v[3] = {origin[0] - s->centre[0], origin[1] - s->centre[1], origin[2] - s->centre[2]};
    if (s->type == SOLID_SPHERE) {
        const double r = s->half_size[0];
        const double a =
            direction[0] * direction[0] + direction[1] * direction[1] + direction[2] * direction[2];
        const double b = v[0] * direction[0] + v[1] * direction[1] + v[2] * direction[2];
        const double c = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] - r * r;
        const double disc = b * b - a * c;
        if (disc < 0)
            return INFINITY;
        const double t = (-b - sqrt(disc)) / a;
        return t > 0 ? t : INFINITY;
    }

    double o[3], d[3];
    to_local(s, v, o);
    to_local(s, direction, d);
    if (s->type == SOLID_BOX) {
        double t_in, t_out;
        if (!solid_box_crossing(o, d, s->half_size, &t_in, &t_out))
            return INFINITY;
        return t_in > 0 ? t_in : INFINITY;
    }

    /* Capped cylinder: intersect the slab |z| <= h with the infinite tube. */
    const double r = s->half_size[0], h = s->half_size[2];
    double t0 = -INFINITY, t1 = INFINITY;
    if (d[2] != 0) {
        const double ta = (-h - o[2]) / d[2], tb = (h - o[2]) / d[2];
        t0 = min2(ta, tb);
        t1 = max2(ta, tb);
    } else if (fabs(o[2]) > h) {
        return INFINITY;
    }
    const double a = d[0] * d[0] + d[1] * d[1];
    const double b = o[0] * d[0] + o[1] * d[1];
    const double c = o[0] * o[0] + o[1] * o[1] - r * r;
    if (a > 0) {
        const double disc = b * b - a * c;
        if (disc < 0)
            return INFINITY;
        const double root = sqrt(disc);
        t0 = max2(t0, (-b - root) / a);
        t1 = min2(t1, (-b + root) / a);
    } else if (c > 0) {
        return INFINITY;
    }
    return (t0 <= t1 && t0 > 0) ? t0 : INFINITY;
}

struct aabb solid_bounds(const struct solid *s)
{
    const double ac = fabs(s->cos_yaw), as = fabs(s->sin_yaw);
    double hx, hy, hz;
    switch (s->type) {
    case SOLID_SPHERE:
        hx = hy = hz = s->half_size[0];
        break;
    case SOLID_CYLINDER_Z:
        hx = hy = s->half_size[0];
        hz = s->half_size[2];
        break;
    case SOLID_CYLINDER_Y:
        hx = ac * s->half_size[0] + as * s->half_size[2];
        hy = as * s->half_size[0] + ac * s->half_size[2];
        hz = s->half_size[0];
        break;
    default:
        hx = ac * s->half_size[0] + as * s->half_size[1];
        hy = as * s->half_size[0] + ac * s->half_size[1];
        hz = s->half_size[2];
        break;
    }
    struct aabb b = {{s->centre[0] - hx, s->centre[1] - hy, s->centre[2] - hz},
                     {s->centre[0] + hx, s->centre[1] + hy, s->centre[2] + hz}};
    return b;
}
