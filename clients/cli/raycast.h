/* raycast.h - what a camera in the map sees, by QUERY_RAYS. */
#ifndef VOXELCTL_RAYCAST_H
#define VOXELCTL_RAYCAST_H

#include "voxeld/client.h"

/* Pinhole: x right, y down, z forward; the picture's middle looks along forward. */
struct camera {
    double eye_m[3];
    double right[3], down[3], forward[3]; /* unit, world */
    double tan_half_fov;                  /* of the picture's height */
    uint32_t width, height;               /* px */
};

/* A pixel. */
struct hit {
    float range_m;   /* NaN: nothing */
    float normal[3]; /* towards the eye */
};

/* Which epochs answered; 0, 0: none yet. */
struct epochs {
    uint64_t oldest, newest;
};

struct view {
    struct vxc_client *client;
    const char *map;
    struct vxc_map_info info;
    bool back_faces;         /* show surfaces from behind too */
    struct epochs *answered; /* every answer is noted there; none is asked to be older than its newest */
};
void view_note(const struct view *view, const struct vxc_map_state *state);

/* Looks from eye to target with `up` towards the picture's top.  false when the three do not make a camera.
 */
bool camera_look(struct camera *camera, const double eye_m[3], const double target_m[3], const double up[3]);
/* Direction of a pixel, of unit length. */
void camera_ray(const struct camera *camera, uint32_t u, uint32_t v, double direction[3]);

/*
 * Casts the pixels of the camera that `wanted` marks (NULL = all); the other hits stay as they are.
 *
 * A wall that was seen from one side has a front (known free space before it) and a back (unknown before it).
 * Backs are looked through, unless view->back_faces: a room is then seen into from outside, like a doll's
 * house.
 *
 * wanted, hits: [height][width].  Normals come from the distance field, which is smoother than the voxels.
 * Errors: of vxc_query_rays and vxc_query_points; VX_E_NOMEM.
 */
vx_err raycast(const struct view *view, const struct camera *camera, const uint8_t *wanted, struct hit *hits,
               struct vx_detail *detail);
/*
 * A camera that shows much of the map: of several directions from outside, the one that hits most fronts,
 * placed so that what it hits fills the picture.  width, height and tan_half_fov of *camera are set by the
 * caller; *up gets the picture's upward axis. Errors: as raycast.
 */
vx_err raycast_automatic(const struct view *view, struct camera *camera, double up[3],
                         struct vx_detail *detail);

#endif
