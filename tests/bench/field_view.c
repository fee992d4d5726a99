#include "field_view.h"

#include "bench_util.h"

vx_err field_view_open(struct vx_map *map, bool anew, struct field_view *v, struct vx_detail *detail)
{
    vx_err err;
    VX_TRY_RET(vx__reader_lock(map, &v->rs));
    err = vx__snapshot_pin(map, &v->s);
    if (err != VX_OK) {
        vx__reader_unlock(map);
        return err;
    }
    if (anew)
        vx__esdf_drop(map, v->rs);
    const double start = bench_now_ms();
    err = vx__esdf_refresh(map, v->rs, &v->s, NULL, &v->e, detail);
    v->refresh_ms = bench_now_ms() - start;
    if (err != VX_OK)
        field_view_close(map, v);
    return err;
}

void field_view_close(struct vx_map *map, struct field_view *v)
{
    vx__snapshot_release(map, &v->s);
    vx__reader_unlock(map);
}
