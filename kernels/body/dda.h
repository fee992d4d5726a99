/*
 * dda.h - walks the cells of a regular grid that a ray meets, in order.
 *
 * Source: Amanatides and Woo, "A Fast Voxel Traversal Algorithm for Ray Tracing", 1987.
 */
#ifndef VXK_BODY_DDA_H
#define VXK_BODY_DDA_H

#include "../dev.h"

struct vxk_dda {
    int32_t i[3]; /* cell */
    int32_t step[3];
    float next[3];  /* ray parameter at which the next border of the axis is met */
    float delta[3]; /* ray parameter from border to border */
    float t, t_exit, t_end;
};

/* Cells of edge `size` on o + t d for t in [t0, t1].  |d| need not be 1. */
VXK_FN void vxk_dda_init(struct vxk_dda *w, const float o[3], const float d[3], float t0, float t1,
                         float size)
{
    for (int a = 0; a < 3; a++) {
        w->i[a] = (int32_t)vxk_floor((o[a] + d[a] * t0) / size);
        w->step[a] = 0;
        w->next[a] = 1e30f;
        w->delta[a] = 0.0f;
        if (d[a] > 1e-9f) {
            w->step[a] = 1;
            w->next[a] = ((float)(w->i[a] + 1) * size - o[a]) / d[a];
            w->delta[a] = size / d[a];
        } else if (d[a] < -1e-9f) {
            w->step[a] = -1;
            w->next[a] = ((float)w->i[a] * size - o[a]) / d[a];
            w->delta[a] = -size / d[a];
        }
    }
    w->t = t0;
    w->t_end = t1;
    w->t_exit = vxk_min(vxk_min(w->next[0], w->next[1]), vxk_min(w->next[2], t1));
}

/* Steps to the next cell; 0 when the ray ended in this one.  The cell spans [t, t_exit] of the ray. */
VXK_FN int vxk_dda_next(struct vxk_dda *w)
{
    float n = vxk_min(w->next[0], vxk_min(w->next[1], w->next[2]));
    int a;
    if (!(n < w->t_end))
        return 0;
    a = w->next[0] == n ? 0 : w->next[1] == n ? 1 : 2;
    w->i[a] += w->step[a];
    w->next[a] += w->delta[a];
    w->t = n;
    w->t_exit = vxk_min(vxk_min(w->next[0], w->next[1]), vxk_min(w->next[2], w->t_end));
    return 1;
}

#endif
