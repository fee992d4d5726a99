/*
 * layout.c - see layout.h.  Everything is in layout axes; scene.c places it in the world.
 */
#include "layout.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

static void append(struct layout *layout, struct solid **array, int *count, int *capacity, struct solid s)
{
    if (*count == *capacity) {
        const int wanted = *capacity ? 2 * *capacity : 256;
        struct solid *grown = realloc(*array, (size_t)wanted * sizeof **array);
        if (!grown) {
            layout->out_of_memory = true;
            return;
        }
        *array = grown;
        *capacity = wanted;
    }
    (*array)[(*count)++] = s;
}

static void add(struct layout *layout, struct solid s)
{
    append(layout, &layout->solids, &layout->solid_count, &layout->solid_capacity, s);
}

/* -------------------------------------------------------------------- room */

/* Box from its corner-to-corner extents. */
static void add_box(struct layout *layout, double x0, double x1, double y0, double y1, double z0, double z1)
{
    add(layout, solid_make(SOLID_BOX, (x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2, (x1 - x0) / 2,
                           (y1 - y0) / 2, (z1 - z0) / 2, 0));
}

static void add_cylinder(struct layout *layout, double x, double y, double z0, double z1, double r)
{
    add(layout, solid_make(SOLID_CYLINDER_Z, x, y, (z0 + z1) / 2, r, r, (z1 - z0) / 2, 0));
}

static void add_sphere(struct layout *layout, double x, double y, double z, double r)
{
    add(layout, solid_make(SOLID_SPHERE, x, y, z, r, r, r, 0));
}

/* A chair at (x, y): seat, back, four legs; `yaw` turns it about z. */
static void add_chair(struct layout *layout, double x, double y, double yaw)
{
    const double c = cos(yaw), s = sin(yaw);
    add(layout, solid_make(SOLID_BOX, x, y, 0.45, 0.21, 0.21, 0.02, yaw));
    add(layout, solid_make(SOLID_BOX, x - 0.19 * c, y - 0.19 * s, 0.70, 0.02, 0.21, 0.25, yaw));
    for (int i = 0; i < 4; i++) {
        const double lx = (i & 1) ? 0.18 : -0.18, ly = (i & 2) ? 0.18 : -0.18;
        add_cylinder(layout, x + c * lx - s * ly, y + s * lx + c * ly, -0.05, 0.44, 0.018);
    }
}

void layout_room(struct layout *layout)
{
    /* Dining table in the middle, a bowl and a bottle on it. */
    add_box(layout, -0.6, 0.6, -0.4, 0.4, 0.71, 0.75);
    for (int i = 0; i < 4; i++)
        add_cylinder(layout, (i & 1) ? 0.54 : -0.54, (i & 2) ? 0.34 : -0.34, -0.05, 0.72, 0.03);
    add_sphere(layout, 0.15, 0.05, 0.83, 0.10);
    add_cylinder(layout, -0.25, -0.1, 0.74, 1.0, 0.04);
    add_box(layout, -0.15, 0.0, 0.12, 0.34, 0.74, 0.78);

    /* Two chairs. */
    add_chair(layout, -0.95, 0.0, 0.25);
    add_chair(layout, 0.3, -0.72, PI / 2);

    /* Sofa against the -x wall. */
    add_box(layout, -3.05, -2.1, -1.0, 0.9, -0.05, 0.42);
    add_box(layout, -3.05, -2.75, -1.0, 0.9, 0.35, 0.85);
    add_box(layout, -3.05, -2.1, -1.15, -0.95, -0.05, 0.62);
    add_box(layout, -3.05, -2.1, 0.85, 1.05, -0.05, 0.62);

    /* Bookshelf against the +y wall: two sides, four boards, some books. */
    add_box(layout, 0.40, 0.44, 1.68, 2.05, -0.05, 1.9);
    add_box(layout, 1.76, 1.80, 1.68, 2.05, -0.05, 1.9);
    for (int i = 0; i < 4; i++)
        add_box(layout, 0.42, 1.78, 1.70, 2.05, 0.30 + 0.5 * i, 0.33 + 0.5 * i);
    for (int i = 0; i < 5; i++)
        add_box(layout, 0.50 + 0.24 * i, 0.66 + 0.24 * i, 1.75, 1.98, 0.32 + 0.5 * (i % 3),
                0.56 + 0.04 * i + 0.5 * (i % 3));

    /* Wardrobe in the +x +y corner, turned low cabinet with a vase at +x. */
    add_box(layout, 2.35, 3.05, 1.0, 2.05, -0.05, 2.1);
    add(layout, solid_make(SOLID_BOX, 2.68, -0.6, 0.4, 0.22, 0.55, 0.42, 0.08));
    add_cylinder(layout, 2.68, -0.75, 0.81, 1.12, 0.09);
    add_sphere(layout, 2.66, -0.35, 0.94, 0.13);

    /* Floor lamp, plant, ball. */
    add_cylinder(layout, -2.6, 1.6, -0.05, 0.04, 0.16);
    add_cylinder(layout, -2.6, 1.6, 0.0, 1.5, 0.02);
    add_sphere(layout, -2.6, 1.6, 1.6, 0.18);
    add_cylinder(layout, 2.5, -1.6, -0.05, 0.4, 0.18);
    add_sphere(layout, 2.5, -1.6, 0.75, 0.38);
    add_sphere(layout, -1.2, -1.55, 0.2, 0.2);

    /* On the walls: two picture frames, a window sill, a pillar; ceiling lamp. */
    add_box(layout, -1.6, -0.7, 1.97, 2.05, 1.3, 1.9);
    add_box(layout, 2.97, 3.05, -0.1, 0.6, 1.4, 2.0);
    add_box(layout, -1.0, 1.0, -2.05, -1.85, 0.95, 1.0);
    add_box(layout, -3.05, -2.8, -2.05, -1.75, -0.05, 3.05);
    add_cylinder(layout, 0.0, 0.0, 2.65, 3.05, 0.015);
    add_sphere(layout, 0.0, 0.0, 2.6, 0.15);
}

/* ------------------------------------------------------------------ street */

/* Layout generator: fixed stream of uniform numbers in [0, 1). */
struct layout_rng {
    uint64_t state;
};

static double next_uniform(struct layout_rng *rng)
{
    rng->state += 0x9e3779b97f4a7c15u;
    uint64_t x = rng->state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-53;
}

static double next_in(struct layout_rng *rng, double lo, double hi)
{
    return lo + (hi - lo) * next_uniform(rng);
}

/* Car body, cabin and wheels, with its centre at (x, y) on the ground. */
static int make_car(struct solid out[6], double x, double y, double length)
{
    out[0] = solid_make(SOLID_BOX, x, y, 0.62, length / 2, 0.88, 0.34, 0);
    out[1] = solid_make(SOLID_BOX, x - 0.15, y, 1.20, length / 4, 0.76, 0.28, 0);
    for (int i = 0; i < 4; i++)
        out[2 + i] = solid_make(SOLID_CYLINDER_Y, x + ((i & 1) ? 0.3 : -0.3) * length,
                                y + ((i & 2) ? 0.78 : -0.78), 0.32, 0.32, 0.32, 0.11, 0);
    return 6;
}

/*
 * A building on one side (side = +1 left, -1 right) whose facade is a grid of
 * pilasters and storey bands 0.35 m in front of the wall: the openings between
 * them are the recesses.
 */
static void add_building(struct layout *layout, double x0, double x1, int side, double front, double height)
{
    const double recess = 0.35, overlap = 0.1, depth = 10;
    const double wall = front + recess;
    const double near_y = min2(side * wall, side * (wall + depth));
    const double far_y = max2(side * wall, side * (wall + depth));
    add_box(layout, x0, x1, near_y, far_y, -0.5, height);

    const double relief_lo = min2(side * front, side * (wall + overlap));
    const double relief_hi = max2(side * front, side * (wall + overlap));
    const int bays = (int)((x1 - x0) / 3.2);
    const double bay = (x1 - x0 - 0.9) / bays;
    for (int i = 0; i <= bays; i++)
        add_box(layout, x0 + i * bay, x0 + i * bay + 0.9, relief_lo, relief_hi, -0.5, height);
    for (double z = 2.7; z + 0.8 < height; z += 3.0)
        add_box(layout, x0, x1, relief_lo, relief_hi, z, z + 0.8);
}

void layout_street(struct layout *layout, bool moving_cars)
{
    struct layout_rng rng = {20240501};
    for (int side = -1; side <= 1; side += 2) {
        /* Pavement, 0.12 m above the road, under the buildings too. */
        add_box(layout, STREET_LO_X, STREET_HI_X, side > 0 ? 6 : -30, side > 0 ? 30 : -6, -0.5, 0.12);

        for (double x = STREET_LO_X; x < STREET_HI_X - 12;) {
            const double width = min2(next_in(&rng, 12, 28), STREET_HI_X - x);
            const double front = 10 + (next_uniform(&rng) < 0.3 ? next_in(&rng, 0.5, 2) : 0);
            add_building(layout, x, x + width, side, front, next_in(&rng, 7, 22));
            x += width + (next_uniform(&rng) < 0.25 ? next_in(&rng, 3, 6) : 0);
        }
        for (double x = STREET_LO_X + 5; x < STREET_HI_X - 5; x += 25) {
            const double height = next_in(&rng, 6, 8), y = side * 6.6;
            add_cylinder(layout, x, y, -0.5, height, next_in(&rng, 0.07, 0.12));
            add(layout, solid_make(SOLID_BOX, x, y - side * 0.6, height - 0.1, 0.08, 0.7, 0.05, 0));
        }
        for (double x = STREET_LO_X + 4; x < STREET_HI_X - 4; x += 7) {
            if (next_uniform(&rng) > 0.55)
                continue;
            struct solid car[6];
            const double length = next_in(&rng, 3.8, 4.8);
            const int parts = make_car(car, x + next_in(&rng, -0.5, 0.5), side * 4.7, length);
            for (int i = 0; i < parts; i++)
                add(layout, car[i]);
        }
        for (double x = STREET_LO_X + 11; x < STREET_HI_X - 11; x += 12) {
            if (next_uniform(&rng) > 0.6)
                continue;
            const double y = side * 7.7, trunk = next_in(&rng, 2.5, 3.5);
            add_cylinder(layout, x, y, -0.5, trunk + 0.8, next_in(&rng, 0.12, 0.22));
            for (int i = 0; i < 4; i++) {
                const double dx = next_in(&rng, -0.8, 0.8), dy = next_in(&rng, -0.6, 0.6);
                const double dz = next_in(&rng, 0.8, 2.2), radius = next_in(&rng, 0.8, 1.3);
                add_sphere(layout, x + dx, y + dy, trunk + dz, radius);
            }
        }
    }

    if (!moving_cars)
        return;
    /* Two cars ahead in the sensor's lane; the others come towards it. */
    static const double start[6] = {18, 42, 60, 140, 260, 420};
    static const double step[6] = {1.0, 1.05, -0.8, -1.1, -0.9, -1.0};
    for (int m = 0; m < 6; m++) {
        const double y = step[m] > 0 ? -1.75 : 1.75, length = 4.3;
        struct solid car[6];
        const int parts = make_car(car, 0, y, length);
        struct mover *mover = &layout->movers[layout->mover_count++];
        mover->first = layout->moving_count;
        mover->count = parts;
        mover->start_x = start[m];
        mover->step = step[m];
        mover->y = y;
        mover->radius = sqrt(length * length / 4 + 1.0 + 0.8 * 0.8);
        for (int i = 0; i < parts; i++)
            append(layout, &layout->moving, &layout->moving_count, &layout->moving_capacity, car[i]);
    }
}
