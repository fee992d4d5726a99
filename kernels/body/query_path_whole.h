/*
 * query_path_whole.h - paths one by one: all of a path's ways by one element, in order.
 *
 * What the elements of query_path.h do together for a batch, without lists between them.  For paths of few
 * ways.  Those with long ones are left, and picked for a launch of few paths: it may take long.
 */
#ifndef VXK_BODY_QUERY_PATH_WHOLE_H
#define VXK_BODY_QUERY_PATH_WHOLE_H

#include "query_path.h"

enum {
    VXK_PATH_WHOLE_WAYS = 8192, /* of a path */
    VXK_PATH_WHOLE_SPHERES = 256,
    VXK_PATH_WHOLE_LENGTH = 256,          /* voxels: longer ways take a launch's time alone */
    VXK_PATH_WHOLE_LEFT = (int)(1u << 31) /* the status of such a path: it has no answer */
};

/* True for a leg with which a path is left: it is long, or a sphere may come near the end of the voxel range.
 * (What moves further than VXK_PATH_MOST is no leg.) */
VXK_FN int vxk_path_leave(const struct vxk_query_path_args *a, const struct vxk_path_leg *leg)
{
    float length = vxk_way_length(leg->moved, leg->turned, a->reach), most = 0.0f;
    for (int k = 0; k < 3; k++)
        most = vxk_max(most, vxk_abs((float)leg->v[k]));
    return leg->moved <= (float)VXK_PATH_MOST && (length > a->longest || !(most + a->reach < 133000000.0f));
}
VXK_FN uint32_t vxk_path_picked(const struct vxk_query_path_args *a, uint32_t i)
{
    return a->pick ? a->pick[i] : i;
}

/* Element: a path, of those that are picked. */
#define vxk_query_path_whole_args vxk_query_path_args
VXK_FN void vxk_query_path_whole(const struct vxk_query_path_args *a, uint32_t i)
{
    uint32_t path = vxk_path_picked(a, i);
    struct vxk_path_answer *o = &a->out[path];
    struct vxk_path_leg leg;
    struct vxk_way w;
    float moved, turned;
    vxk_path_begin(o);
    for (uint32_t segment = 0; segment < a->n_segments && !vxk_path_over(o, (float)segment); segment++) {
        if (!vxk_way_ends(a, path, segment, &w, &moved, &turned)) {
            vxk_path_least(&o->outside, vxk_place_bits((float)segment));
            continue;
        }
        vxk_path_middle(&w, moved, turned, &leg);
        if (vxk_path_leave(a, &leg)) {
            vxk_path_begin(o);
            o->status = (uint32_t)VXK_PATH_WHOLE_LEFT;
            return;
        }
        for (uint32_t sphere = 0; sphere < a->n_spheres; sphere++) {
            uint32_t around = vxk_path_decide(a, &leg, segment, sphere, o);
            if (around)
                vxk_path_walk(a, path, segment, sphere, around, o);
        }
    }
    vxk_path_cut(a, o);
    for (uint32_t sphere = 0; sphere < a->n_spheres; sphere++)
        vxk_path_touch(a, path, sphere, o);
    vxk_path_end(a, o);
}

#endif
