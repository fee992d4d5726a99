/*
 * scene.h - analytic test scenes for depth-camera and LiDAR mapping.
 *
 * A scene is a union of simple solids (boxes, spheres, cylinders) plus one
 * background solid (the walls of a room, or the ground).  Everything about it
 * can be evaluated in closed form: the sensor pose at any frame, the first hit
 * of any ray, and the distance from any point to the surface.  Nothing is read
 * from disk and nothing depends on a random seed, so two programs that link
 * this file agree on the ground truth.
 *
 * Units: metres, radians.  World frame: right-handed, z up.  Both scenes are
 * turned about z and offset by odd amounts, so that their walls and floors do not
 * lie on the planes of a voxel grid.
 */
#ifndef SCENE_H
#define SCENE_H

#include <stdbool.h>
#include <stdint.h>

enum scene_kind {
    SCENE_ROOM,  /* 6 x 4 x 3 m furnished room, depth camera inside it       */
    SCENE_STREET /* 700 m street, LiDAR on a car moving 1 m per frame along it */
};

/* Largest frame count of the street (the room's trajectory never ends). */
#define SCENE_STREET_MAX_FRAMES 700u

struct scene;

/*
 * Builds a scene.  moving_cars adds driving cars to the street (ignored for the
 * room).  Returns NULL when memory runs out.
 */
struct scene *scene_create(enum scene_kind kind, bool moving_cars);
void scene_destroy(struct scene *scene);

/* "room" or "street" to its kind; false for any other name. */
bool scene_kind_from_name(const char *name, enum scene_kind *kind);

/* Number of solids, the background not counted. */
int scene_solid_count(const struct scene *scene);

/*
 * Signed distance from (x, y, z) to the surface of the static scene: positive
 * in free space, negative inside a solid.
 *
 *  - Free space: the exact Euclidean distance to the nearest surface.
 *  - Inside exactly one solid: the exact distance to that solid's surface.
 *  - Inside several overlapping solids (a table leg sunk into the floor):
 *    |value| is a lower bound of the distance to the surface of the union.
 *    Near the visible surface the bound is tight.
 *
 * Moving cars are not part of it; see scene_sdf_at_frame.
 */
double scene_sdf(const struct scene *scene, double x, double y, double z);

/* The same with the moving cars where they are at `frame`. */
double scene_sdf_at_frame(const struct scene *scene, uint32_t frame, double x, double y, double z);

/*
 * Parameter t of the first surface met by origin + t * direction, with
 * 0 < t <= t_max; INFINITY when there is none.  `direction` need not have unit
 * length: t is in units of it.  The origin must be in free space.
 */
double scene_raycast(const struct scene *scene, uint32_t frame, const double origin[3],
                     const double direction[3], double t_max);

/*
 * Sensor-to-world pose at `frame`, row-major 3 x 4 (rotation | translation).
 *
 *  - Room: camera axes, x right, y down, z forward.  One orbit of the room
 *    takes `frames_per_orbit` frames; height and viewing target drift with
 *    other periods, so that later orbits see other views.
 *  - Street: LiDAR axes, x forward, y left, z up.  `frames_per_orbit` is unused.
 */
void scene_pose(const struct scene *scene, uint32_t frame, uint32_t frames_per_orbit, double pose[12]);

#endif
