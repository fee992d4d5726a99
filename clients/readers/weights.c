/* Weights of pixels: a grey image for each depth image, or one for all of them. */
#include "internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What a pattern says of a depth image: `*` is its name without folder and ending, `#` the digits at the end
 * of that.  false: it does not fit. */
static bool resolve(const struct vxc_reader *r, const char *depth, char path[VXC__PATH_MAX])
{
    const char *base = vxc__base_name(depth), *dot = strrchr(base, '.');
    size_t stem = dot && dot != base ? (size_t)(dot - base) : strlen(base), digits, n = 0;
    char name[VXC__PATH_MAX];
    if (stem > 6 && strncmp(base + stem - 6, ".depth", 6) == 0)
        stem -= 6;
    for (digits = stem; digits > 0 && isdigit((unsigned char)base[digits - 1]);)
        digits--;
    for (const char *p = r->weights; *p; p++) {
        const char *from = *p == '*' ? base : *p == '#' ? base + digits : p;
        const size_t more = *p == '*' ? stem : *p == '#' ? stem - digits : 1;
        if (n + more >= sizeof name)
            return false;
        memcpy(name + n, from, more);
        n += more;
    }
    name[n] = '\0';
    return vxc__join(path, r->root, name);
}

vx_err vxc__weights_find(struct vxc_reader *r, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    const double white = r->options.weight_white;
    if (white != 0 && !(white >= 1 && white <= 1e9))
        return vx_fail(detail, VX_E_INVALID, "weight_white", "must be 1 to 1e9, got %g", white);
    if (white != 0 && !r->options.weights)
        return vx_fail(detail, VX_E_INVALID, "weight_white",
                       "is of weight images; without them it has no use");
    if (!r->options.weights)
        return VX_OK;
    if (r->payload != VXC__IMAGE || r->vxwl)
        return vx_fail(detail, VX_E_INVALID, "weights", "only sets of depth images have them; this is %s",
                       vxc_format_name(r->info.format));
    if (!(r->weights = strdup(r->options.weights)))
        return vx_fail(detail, VX_E_NOMEM, "weights", "no memory");
    for (size_t i = 0; i < r->n_items; i++)
        if (resolve(r, r->item[i].name, path) && vxc__is_file(path)) {
            vxc__note(r, "weights of pixels are read from %s", r->weights);
            return VX_OK;
        }
    if (r->n_items == 0 || !resolve(r, r->item[0].name, path))
        return vx_fail(detail, VX_E_INVALID, "weights", "the pattern %s makes no path", r->weights);
    return vx_fail(detail, VX_E_NOT_FOUND, "weights",
                   "there is no weight image for any frame: for %s it would be %s (* is the depth image's "
                   "name, # the digits at its end)",
                   r->item[0].name, path);
}

static vx_err read_weights(struct vxc_reader *r, const char *path, const struct vxc_frame *frame,
                           struct vx_detail *detail)
{
    const size_t n = (size_t)frame->width * frame->height;
    uint16_t most;
    VX_TRY_RET(vxc__image_read_grey(&r->weight_image, path, &most, detail));
    if (r->weight_image.width != frame->width || r->weight_image.height != frame->height)
        return vx_fail(detail, VX_E_INVALID, "weights", "%s is %u x %u px and its depth image %u x %u", path,
                       r->weight_image.width, r->weight_image.height, frame->width, frame->height);
    if (n > r->weight_capacity) {
        float *grown = realloc(r->weight, n * sizeof *grown);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "weights", "no memory for %s", path);
        r->weight = grown;
        r->weight_capacity = n;
    }
    const double white = r->options.weight_white > 0 ? r->options.weight_white : most;
    for (size_t i = 0; i < n; i++)
        r->weight[i] = (float)(r->weight_image.px[i] / white);
    return VX_OK;
}

vx_err vxc__weights_read(struct vxc_reader *r, const struct vxc__item *item, struct vxc_frame *frame,
                         struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    struct vx_detail why;
    vx_err err;
    if (!r->weights)
        return VX_OK;
    if (!resolve(r, item->name, path))
        return vx_fail(detail, VX_E_INVALID, "weights", "the path of the weights of %s is too long",
                       item->name);
    err = read_weights(r, path, frame, &why);
    if (err != VX_OK)
        return vx_fail(detail, err, "weights", "weights: %s", why.text);
    frame->weight = r->weight;
    return VX_OK;
}

void vxc__weights_fini(struct vxc_reader *r)
{
    vxc__image_fini(&r->weight_image);
    free(r->weight);
    free(r->weights);
}
