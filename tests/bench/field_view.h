/* field_view.h - a map's newest epoch and its distance field, held while a benchmark looks at them; by core's
 * own calls. */
#ifndef FIELD_VIEW_H
#define FIELD_VIEW_H

#include "esdf.h"

struct field_view {
    struct vx__reader_state *rs;
    struct vx__snapshot s;
    const struct vx__esdf *e;
    double refresh_ms; /* how long it took to bring the field to this epoch */
};

/*
 * Brings the field to the newest epoch, with `anew` from nothing.  Nothing is held after an error.
 * Errors: VX_E_EXHAUSTED it does not fit; VX_E_DEVICE.
 */
vx_err field_view_open(struct vx_map *map, bool anew, struct field_view *v, struct vx_detail *detail);
void field_view_close(struct vx_map *map, struct field_view *v);

#endif
