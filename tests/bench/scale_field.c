/* scale_field.c - the distance field of a large map; it has no public call of its own, so core's is used. */
#include "scale_field.h"

#include "field_view.h"

static uint64_t count_page(uint16_t *page, uint32_t n_leaves)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < n_leaves; i++) {
        const uint16_t *v = vxk_esdf_voxels(&page, i);
        if (*vxk_esdf_place_of(&page, i) == VXK_NONE)
            continue; /* given back */
        for (uint32_t k = 0; k < 512; k++)
            n += (v[k] & VXK_ESDF_FAR) != VXK_ESDF_FAR;
    }
    return n;
}

static vx_err count(struct vx_map *map, struct vxk_queue *q, const struct vx__esdf *e,
                    struct scale_field *out)
{
    struct vxk_dev *dev = vx__map_dev(map);
    void *page;
    vx_err err = VX_OK;
    VX_TRY_RET(dev->ops->alloc_host(dev, VXK_ESDF_PAGE_BYTES, &page));
    out->n_within = 0;
    for (uint32_t first = 0; first < e->n_numbers; first += VXK_ESDF_PAGE) {
        const uint32_t left = e->n_numbers - first;
        VX_TRY(dev->ops->download(q, page, e->pages[first / VXK_ESDF_PAGE], VXK_ESDF_PAGE_BYTES));
        VX_TRY(dev->ops->wait(q));
        out->n_within += count_page(page, left < VXK_ESDF_PAGE ? left : VXK_ESDF_PAGE);
    }
fail:
    dev->ops->free_host(dev, page);
    return err;
}

static vx_err look(struct vx_map *map, bool counted, struct scale_field *out, struct vx_detail *detail)
{
    struct field_view v;
    vx_err err = VX_OK;
    VX_TRY_RET(field_view_open(map, false, &v, detail));
    out->refresh_ms = v.refresh_ms;
    out->n_leaves = v.e->n_leaves;
    out->bytes = v.e->bytes;
    if (counted)
        err = count(map, v.rs->queue, v.e, out);
    field_view_close(map, &v);
    return err;
}

vx_err scale_field_refresh(struct vx_map *map, struct scale_field *out, struct vx_detail *detail)
{
    return look(map, false, out, detail);
}

vx_err scale_field_count(struct vx_map *map, struct scale_field *out, struct vx_detail *detail)
{
    return look(map, true, out, detail);
}
