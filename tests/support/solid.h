/*
 * solid.h - the simple solids that scenes are made of: distance, first hit, bounds.
 *
 * A solid is turned about z only.  All figures are metres in layout axes.
 */
#ifndef SOLID_H
#define SOLID_H

#include <stdbool.h>

enum solid_type {
    SOLID_BOX,        /* half_size = half extents along the local axes       */
    SOLID_SPHERE,     /* half_size[0] = radius                               */
    SOLID_CYLINDER_Z, /* half_size[0] = radius, half_size[2] = half height   */
    SOLID_CYLINDER_Y  /* the same, its axis along local y (a car's wheel)    */
};

struct solid {
    enum solid_type type;
    double centre[3];
    double half_size[3];
    double cos_yaw, sin_yaw; /* rotation about z */
};

struct aabb {
    double lo[3], hi[3];
};

static inline double min2(double a, double b)
{
    return a < b ? a : b;
}

static inline double max2(double a, double b)
{
    return a > b ? a : b;
}

struct solid solid_make(enum solid_type type, double x, double y, double z, double hx, double hy, double hz,
                        double yaw);
/* Exact signed distance of a point to the solid's surface, negative inside. */
double solid_sdf(const struct solid *s, const double point[3]);
/* Parameter at which the ray enters the solid from outside; INFINITY if never. */
double solid_raycast(const struct solid *s, const double origin[3], const double direction[3]);
struct aabb solid_bounds(const struct solid *s);

/* Signed distance of p to an axis-aligned box about the origin. */
double solid_box_sdf(const double p[3], const double half[3]);
/*
 * Where a ray crosses an axis-aligned box about the origin: false when it
 * misses; otherwise the parameters of entry and exit (either may be negative).
 */
bool solid_box_crossing(const double o[3], const double d[3], const double half[3], double *t_in,
                        double *t_out);

#endif
