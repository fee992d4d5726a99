/*
 * layout.h - what stands in the room and along the street, in round numbers of layout axes.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "solid.h"

#include <stdbool.h>

#define STREET_LO_X  (-80.0)
#define STREET_HI_X  780.0
#define CAR_CENTRE_Z 0.75

/* A rigid group of solids that moves along x at constant speed and wraps. */
struct mover {
    int first, count; /* range in layout.moving                       */
    double start_x;   /* m, at frame 0                               */
    double step;      /* m per frame, negative = against the sensor  */
    double y, radius; /* bounding sphere about (x, y, CAR_CENTRE_Z)  */
};

struct layout {
    struct solid *solids; /* malloc; the owner's to free */
    int solid_count, solid_capacity;
    struct solid *moving; /* solids of the movers, about x = 0; malloc; the owner's to free */
    int moving_count, moving_capacity;
    struct mover movers[16];
    int mover_count;
    bool out_of_memory; /* some solid is missing */
};

void layout_room(struct layout *layout);
void layout_street(struct layout *layout, bool moving_cars);

#endif
