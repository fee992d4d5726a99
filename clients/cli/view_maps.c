#include "view_maps.h"
#include "picture.h"

#include <math.h>
#include <stdlib.h>

vx_err view_write_depth(const struct camera *camera, const struct hit *hits, double units_per_m, FILE *file,
                        uint64_t *n_beyond, struct vx_detail *detail)
{
    enum { MOST = 65534 }; /* 65535 means "too far" to readers of depth images */
    const size_t n = (size_t)camera->width * camera->height;
    uint16_t *px = calloc(n + 1, sizeof *px);
    *n_beyond = 0;
    if (!px)
        return vx_fail(detail, VX_E_NOMEM, "depth", "no memory for a picture of %u x %u px", camera->width,
                       camera->height);
    for (uint32_t k = 0; k < n; k++) {
        double d[3], along = 0;
        if (isnan(hits[k].range_m))
            continue;
        camera_ray(camera, k % camera->width, k / camera->width, d);
        for (int i = 0; i < 3; i++)
            along += d[i] * camera->forward[i];
        const double units = rint((double)hits[k].range_m * along * units_per_m);
        if (units <= MOST)
            px[k] = units < 1 ? 1 : (uint16_t)units; /* something is there */
        else
            ++*n_beyond;
    }
    const vx_err err = picture_write_depth(px, camera->width, camera->height, file, detail);
    free(px);
    return err;
}

static uint8_t level(float component)
{
    const float v = 127.5f + 127.5f * component;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5f);
}

vx_err view_write_normals(const struct camera *camera, const struct hit *hits, FILE *file,
                          struct vx_detail *detail)
{
    const size_t n = (size_t)camera->width * camera->height;
    const struct rgb black = {0, 0, 0};
    struct picture p;
    VX_TRY_RET(picture_init(&p, camera->width, camera->height, black, detail));
    for (size_t k = 0; k < n; k++)
        if (!isnan(hits[k].range_m))
            p.px[k] =
                (struct rgb){level(hits[k].normal[0]), level(hits[k].normal[1]), level(hits[k].normal[2])};
    const vx_err err = picture_write_png(&p, file, detail);
    picture_fini(&p);
    return err;
}
