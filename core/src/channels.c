#include "channels.h"

#include "body/frame.h"

vx_err vx__channels_check(const struct vx_frame *f, struct vx_detail *detail)
{
    if (!f->intensity)
        return VX_OK;
    if (f->sensor == VX_DEPTH)
        return vx_fail(detail, VX_E_INVALID, "intensity",
                       "is for LiDAR; a depth image brings a colour image");
    if (!(f->intensity_white >= 1e-6 && f->intensity_white <= 1e9))
        return vx_fail(detail, VX_E_INVALID, "intensity_white",
                       "must be the intensity that counts as white, 1e-6 to 1e9, got %g", f->intensity_white);
    return VX_OK;
}

static bool brings_colour(const struct vx_frame *f)
{
    return f->colour || f->intensity;
}

bool vx__channels_unused(const struct vx_map *map, const struct vx_frame *f)
{
    return (brings_colour(f) && !map->params.colour) || (f->label && !map->params.label);
}

/* n bytes from host memory into an array. */
static vx_err send(struct vx_map *map, struct vx__array *to, const void *from, uint64_t n,
                   struct vx_detail *detail)
{
    VX_TRY_RET(vx__array_ensure(map, to, n, detail));
    return n ? map->device->dev->ops->upload(map->queue, to->ptr, from, n) : VX_OK;
}

vx_err vx__channels_begin(struct vx_map *map, const struct vx_frame *f, struct vxk_frame_args *args,
                          struct vx_detail *detail)
{
    struct vx__workspace *w = &map->ws;
    struct vxk_channels *c = &args->channels;
    const uint64_t n = (uint64_t)f->width * f->height;
    *c = (struct vxk_channels){.salt = (uint64_t)f->stamp_ns};
    if (map->params.colour && f->colour) {
        VX_TRY_RET(send(map, &w->tint, f->colour, n * 3, detail));
        c->colour = w->tint.ptr;
    } else if (map->params.colour && f->intensity) {
        VX_TRY_RET(send(map, &w->tint, f->intensity, n * sizeof *f->intensity, detail));
        c->intensity = w->tint.ptr;
        c->intensity_scale = (float)(255 / f->intensity_white);
    }
    if (map->params.label && f->label) {
        VX_TRY_RET(send(map, &w->tag, f->label, n, detail));
        c->label = w->tag.ptr;
    }
    if (f->sensor == VX_DEPTH || !(c->colour || c->intensity || c->label))
        return VX_OK;
    VX_TRY_RET(vx__array_ensure(map, &w->owner, (uint64_t)w->room_hit * sizeof *c->owner, detail));
    c->owner = w->owner.ptr;
    return map->device->dev->ops->fill(map->queue, c->owner, 0, (uint64_t)w->room_hit * sizeof *c->owner);
}

vx_err vx__channels_owners(struct vx_map *map, const struct vxk_frame_args *args, uint32_t n_rays)
{
    return args->channels.owner ? VXK_LAUNCH(map->queue, frame_hit_owner, args, n_rays) : VX_OK;
}

vx_err vx__channels_commit(struct vx_map *map, const struct vxk_frame_args *args)
{
    if (!map->channels)
        return VX_OK;
    return VXK_LAUNCH_COUNTED(map->queue, frame_channels, args, &args->s.c->go_records, 8,
                              args->s.room_word * 64 * 8);
}
