/*
 * scene.c - see scene.h.
 *
 * Solids are kept in a bounding-volume hierarchy, which serves both ray casts
 * and distance queries.  All arithmetic is double precision.
 */
#include "scene.h"

#include "layout.h"
#include "solid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* --------------------------------------------------------------- hierarchy */

#define LEAF_SIZE  4
#define STACK_SIZE 64

struct node {
    struct aabb box;
    int first, count; /* leaf: solids [first, first + count) */
    int child[2];     /* inner node: count == 0              */
};

struct scene {
    enum scene_kind kind;
    double placement_cos, placement_sin, placement_offset[3];
    struct layout layout;
    struct node *nodes;
    int node_count;
};

static struct aabb bounds_of_range(const struct solid *solids, int first, int count)
{
    struct aabb box = solid_bounds(&solids[first]);
    for (int i = first + 1; i < first + count; i++) {
        const struct aabb b = solid_bounds(&solids[i]);
        for (int a = 0; a < 3; a++) {
            box.lo[a] = min2(box.lo[a], b.lo[a]);
            box.hi[a] = max2(box.hi[a], b.hi[a]);
        }
    }
    return box;
}

static int compare_x(const void *a, const void *b)
{
    const double d = ((const struct solid *)a)->centre[0] - ((const struct solid *)b)->centre[0];
    return (d > 0) - (d < 0);
}
static int compare_y(const void *a, const void *b)
{
    const double d = ((const struct solid *)a)->centre[1] - ((const struct solid *)b)->centre[1];
    return (d > 0) - (d < 0);
}
static int compare_z(const void *a, const void *b)
{
    const double d = ((const struct solid *)a)->centre[2] - ((const struct solid *)b)->centre[2];
    return (d > 0) - (d < 0);
}

/* Median split on the longest axis; depth is at most log2(count) + 1. */
static int build_node(struct scene *scene, int first, int count)
{
    const int index = scene->node_count++;
    struct node *n = &scene->nodes[index];
    n->box = bounds_of_range(scene->layout.solids, first, count);
    if (count <= LEAF_SIZE) {
        n->first = first;
        n->count = count;
        return index;
    }
    static int (*const compare[3])(const void *, const void *) = {compare_x, compare_y, compare_z};
    int axis = 0;
    for (int a = 1; a < 3; a++)
        if (n->box.hi[a] - n->box.lo[a] > n->box.hi[axis] - n->box.lo[axis])
            axis = a;
    qsort(scene->layout.solids + first, (size_t)count, sizeof *scene->layout.solids, compare[axis]);
    n->count = 0;
    n->child[0] = build_node(scene, first, count / 2);
    n->child[1] = build_node(scene, first + count / 2, count - count / 2);
    return index;
}

/* Lower bound of the signed distance to anything inside the box. */
static double aabb_distance(const struct aabb *b, const double p[3])
{
    double sum = 0;
    bool inside = true;
    for (int a = 0; a < 3; a++) {
        const double d = max2(b->lo[a] - p[a], p[a] - b->hi[a]);
        if (d > 0) {
            sum += d * d;
            inside = false;
        }
    }
    return inside ? -INFINITY : sqrt(sum);
}

static bool aabb_hit(const struct aabb *b, const double o[3], const double inv[3], double t_max,
                     double *t_entry)
{
    double t0 = 0, t1 = t_max;
    for (int a = 0; a < 3; a++) {
        const double ta = (b->lo[a] - o[a]) * inv[a];
        const double tb = (b->hi[a] - o[a]) * inv[a];
        /* A NaN (0 * inf: ray in the face's plane) leaves t0 and t1 as they were. */
        const double lo = ta < tb ? ta : tb, hi = ta < tb ? tb : ta;
        if (lo > t0)
            t0 = lo;
        if (hi < t1)
            t1 = hi;
    }
    *t_entry = t0;
    return t0 <= t1;
}

/* -------------------------------------------------------------- background */

static const double ROOM_CENTRE[3] = {0, 0, 1.5};
static const double ROOM_HALF[3] = {3, 2, 1.5};

static double background_sdf(const struct scene *scene, const double p[3])
{
    if (scene->kind == SCENE_STREET)
        return p[2];
    const double v[3] = {p[0] - ROOM_CENTRE[0], p[1] - ROOM_CENTRE[1], p[2] - ROOM_CENTRE[2]};
    return -solid_box_sdf(v, ROOM_HALF);
}

static double background_raycast(const struct scene *scene, const double o[3], const double d[3])
{
    if (scene->kind == SCENE_STREET) {
        const double t = d[2] < 0 ? -o[2] / d[2] : INFINITY;
        return t > 0 ? t : INFINITY;
    }
    const double v[3] = {o[0] - ROOM_CENTRE[0], o[1] - ROOM_CENTRE[1], o[2] - ROOM_CENTRE[2]};
    double t_in, t_out;
    if (!solid_box_crossing(v, d, ROOM_HALF, &t_in, &t_out) || t_out <= 0)
        return INFINITY;
    return t_out;
}

/* ------------------------------------------------------------ moving cars  */

static double mover_x(const struct mover *m, uint32_t frame)
{
    const double length = STREET_HI_X - STREET_LO_X;
    double x = fmod(m->start_x + m->step * frame - STREET_LO_X, length);
    if (x < 0)
        x += length;
    return STREET_LO_X + x;
}

/* --------------------------------------------------------------- placement */

/*
 * The layouts below use round numbers in layout axes.  A fixed rotation about z
 * and an odd offset take layout axes to the world, so that no wall or floor
 * falls on a plane of a voxel grid: that special case would favour some
 * systems (voxel centres at half steps) over others (at whole steps).
 */
static void set_placement(struct scene *scene)
{
    static const double room_offset[3] = {0.1371, -0.0837, 0.0319};
    static const double street_offset[3] = {0.3371, -0.2593, 0.0637};
    const double yaw = scene->kind == SCENE_ROOM ? 0.35 : 0.12;
    scene->placement_cos = cos(yaw);
    scene->placement_sin = sin(yaw);
    memcpy(scene->placement_offset, scene->kind == SCENE_ROOM ? room_offset : street_offset,
           sizeof room_offset);
}

static void vector_to_world(const struct scene *scene, const double v[3], double out[3])
{
    const double x = scene->placement_cos * v[0] - scene->placement_sin * v[1];
    const double y = scene->placement_sin * v[0] + scene->placement_cos * v[1];
    out[0] = x;
    out[1] = y;
    out[2] = v[2];
}

static void vector_to_layout(const struct scene *scene, const double v[3], double out[3])
{
    const double x = scene->placement_cos * v[0] + scene->placement_sin * v[1];
    const double y = -scene->placement_sin * v[0] + scene->placement_cos * v[1];
    out[0] = x;
    out[1] = y;
    out[2] = v[2];
}

static void point_to_layout(const struct scene *scene, const double point[3], double out[3])
{
    const double v[3] = {point[0] - scene->placement_offset[0], point[1] - scene->placement_offset[1],
                         point[2] - scene->placement_offset[2]};
    vector_to_layout(scene, v, out);
}

/* ----------------------------------------------------------------- queries */

/* Signed distance to the static scene of a point in layout axes. */
static double static_sdf(const struct scene *scene, const double p[3])
{
    double best = background_sdf(scene, p);
    int stack[STACK_SIZE], top = 0;
    if (scene->node_count)
        stack[top++] = 0;
    while (top) {
        const struct node *n = &scene->nodes[stack[--top]];
        if (aabb_distance(&n->box, p) >= best)
            continue;
        if (n->count) {
            for (int i = n->first; i < n->first + n->count; i++)
                best = min2(best, solid_sdf(&scene->layout.solids[i], p));
            continue;
        }
        const double d0 = aabb_distance(&scene->nodes[n->child[0]].box, p);
        const double d1 = aabb_distance(&scene->nodes[n->child[1]].box, p);
        const int nearer = d1 < d0;
        stack[top++] = n->child[1 - nearer];
        stack[top++] = n->child[nearer];
    }
    return best;
}

double scene_sdf(const struct scene *scene, double x, double y, double z)
{
    const double world[3] = {x, y, z};
    double p[3];
    point_to_layout(scene, world, p);
    return static_sdf(scene, p);
}

double scene_sdf_at_frame(const struct scene *scene, uint32_t frame, double x, double y, double z)
{
    const double world[3] = {x, y, z};
    double q[3];
    point_to_layout(scene, world, q);
    double best = static_sdf(scene, q);
    for (int m = 0; m < scene->layout.mover_count; m++) {
        const struct mover *mover = &scene->layout.movers[m];
        const double p[3] = {q[0] - mover_x(mover, frame), q[1], q[2]};
        for (int i = mover->first; i < mover->first + mover->count; i++)
            best = min2(best, solid_sdf(&scene->layout.moving[i], p));
    }
    return best;
}

double scene_raycast(const struct scene *scene, uint32_t frame, const double world_origin[3],
                     const double world_direction[3], double t_max)
{
    double origin[3], direction[3];
    point_to_layout(scene, world_origin, origin);
    vector_to_layout(scene, world_direction, direction);
    double best = background_raycast(scene, origin, direction);
    if (best > t_max)
        best = INFINITY;
    double limit = min2(best, t_max);

    for (int m = 0; m < scene->layout.mover_count; m++) {
        const struct mover *mover = &scene->layout.movers[m];
        const double o[3] = {origin[0] - mover_x(mover, frame), origin[1], origin[2]};
        /* Skip cars whose bounding sphere the ray misses. */
        const double v[3] = {o[0], o[1] - mover->y, o[2] - CAR_CENTRE_Z};
        const double a =
            direction[0] * direction[0] + direction[1] * direction[1] + direction[2] * direction[2];
        const double b = v[0] * direction[0] + v[1] * direction[1] + v[2] * direction[2];
        const double c = v[0] * v[0] + v[1] * v[1] + v[2] * v[2] - mover->radius * mover->radius;
        if (b * b - a * c < 0)
            continue;
        for (int i = mover->first; i < mover->first + mover->count; i++) {
            const double t = solid_raycast(&scene->layout.moving[i], o, direction);
            if (t <= limit)
                best = limit = t;
        }
    }

    const double inv[3] = {1 / direction[0], 1 / direction[1], 1 / direction[2]};
    int stack[STACK_SIZE], top = 0;
    double t_entry;
    if (scene->node_count && aabb_hit(&scene->nodes[0].box, origin, inv, limit, &t_entry))
        stack[top++] = 0;
    while (top) {
        const struct node *n = &scene->nodes[stack[--top]];
        if (n->count) {
            for (int i = n->first; i < n->first + n->count; i++) {
                const double t = solid_raycast(&scene->layout.solids[i], origin, direction);
                if (t <= limit)
                    best = limit = t;
            }
            continue;
        }
        double t0, t1;
        const bool h0 = aabb_hit(&scene->nodes[n->child[0]].box, origin, inv, limit, &t0);
        const bool h1 = aabb_hit(&scene->nodes[n->child[1]].box, origin, inv, limit, &t1);
        if (h0 && h1) {
            const int nearer = t1 < t0;
            stack[top++] = n->child[1 - nearer];
            stack[top++] = n->child[nearer];
        } else if (h0) {
            stack[top++] = n->child[0];
        } else if (h1) {
            stack[top++] = n->child[1];
        }
    }
    return best;
}

/* -------------------------------------------------------------- trajectory */

static void cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static void normalize(double v[3])
{
    const double n = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int a = 0; a < 3; a++)
        v[a] /= n;
}

/* Pose whose columns are the sensor axes, in layout axes. */
static void compose_pose(const double x[3], const double y[3], const double z[3], const double position[3],
                         double pose[12])
{
    for (int row = 0; row < 3; row++) {
        pose[4 * row + 0] = x[row];
        pose[4 * row + 1] = y[row];
        pose[4 * row + 2] = z[row];
        pose[4 * row + 3] = position[row];
    }
}

static void room_pose(uint32_t frame, uint32_t frames_per_orbit, double pose[12])
{
    const double a = 2 * PI * frame / frames_per_orbit;
    /* An ellipse through free space, looking across the room. */
    const double position[3] = {1.55 * cos(a), 0.95 * sin(a), 1.65 + 0.15 * sin(0.37 * a + 0.5)};
    const double target[3] = {-1.3 * cos(a + 0.5 * sin(0.61 * a)), -0.9 * sin(a + 0.5 * sin(0.61 * a)),
                              1.0 + 0.5 * sin(1.7 * a)};
    double forward[3] = {target[0] - position[0], target[1] - position[1], target[2] - position[2]};
    normalize(forward);
    const double up[3] = {0, 0, 1};
    double right[3], down[3];
    cross(forward, up, right);
    normalize(right);
    cross(forward, right, down);
    compose_pose(right, down, forward, position, pose);
}

static void street_pose(uint32_t frame, double pose[12])
{
    const double sway = 2 * PI * frame / 90.0;
    const double position[3] = {frame, -1.75 + 0.25 * sin(sway), 1.8 + 0.03 * sin(2.3 * sway)};
    const double yaw = atan2(0.25 * 2 * PI / 90.0 * cos(sway), 1.0);
    const double pitch = 0.008 * sin(1.9 * sway), roll = 0.008 * sin(1.3 * sway + 1.0);
    const double cy = cos(yaw), sy = sin(yaw), cp = cos(pitch), sp = sin(pitch);
    const double cr = cos(roll), sr = sin(roll);
    /* Rz(yaw) * Ry(pitch) * Rx(roll) */
    const double x[3] = {cy * cp, sy * cp, -sp};
    const double y[3] = {cy * sp * sr - sy * cr, sy * sp * sr + cy * cr, cp * sr};
    const double z[3] = {cy * sp * cr + sy * sr, sy * sp * cr - cy * sr, cp * cr};
    compose_pose(x, y, z, position, pose);
}

void scene_pose(const struct scene *scene, uint32_t frame, uint32_t frames_per_orbit, double pose[12])
{
    double layout[12];
    if (scene->kind == SCENE_ROOM)
        room_pose(frame, frames_per_orbit, layout);
    else
        street_pose(frame, layout);
    for (int column = 0; column < 4; column++) {
        const double v[3] = {layout[column], layout[4 + column], layout[8 + column]};
        double w[3];
        vector_to_world(scene, v, w);
        for (int row = 0; row < 3; row++)
            pose[4 * row + column] = w[row] + (column == 3 ? scene->placement_offset[row] : 0);
    }
}

/* --------------------------------------------------------------- lifecycle */

struct scene *scene_create(enum scene_kind kind, bool moving_cars)
{
    struct scene *scene = calloc(1, sizeof *scene);
    if (!scene)
        return NULL;
    scene->kind = kind;
    set_placement(scene);
    if (kind == SCENE_ROOM)
        layout_room(&scene->layout);
    else
        layout_street(&scene->layout, moving_cars);
    if (!scene->layout.out_of_memory)
        scene->nodes = calloc(2 * (size_t)scene->layout.solid_count, sizeof *scene->nodes);
    if (!scene->nodes) {
        scene_destroy(scene);
        return NULL;
    }
    build_node(scene, 0, scene->layout.solid_count);
    return scene;
}

void scene_destroy(struct scene *scene)
{
    if (!scene)
        return;
    free(scene->layout.solids);
    free(scene->layout.moving);
    free(scene->nodes);
    free(scene);
}

bool scene_kind_from_name(const char *name, enum scene_kind *kind)
{
    if (strcmp(name, "room") == 0)
        *kind = SCENE_ROOM;
    else if (strcmp(name, "street") == 0)
        *kind = SCENE_STREET;
    else
        return false;
    return true;
}

int scene_solid_count(const struct scene *scene)
{
    return scene->layout.solid_count;
}
