/* Colours of a set's frames: which image belongs to which depth image; the reflectance of KITTI's points. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const int64_t TIME_TOLERANCE_NS = 20000000;

/* How a depth image's name becomes that of its colour image. */
struct pattern {
    enum vxc_format format;
    const char *from_head, *from_tail; /* what the name begins and ends with; an ending NULL = any */
    const char *to_head, *to_tail;
};

static const struct pattern PATTERNS[] = {
    {VXC_7SCENES, "", ".depth.png", "", ".color.jpg"},
    {VXC_7SCENES, "", ".depth.png", "", ".color.png"},
    {VXC_REPLICA, "results/depth", ".png", "results/frame", ".jpg"},
    {VXC_REPLICA, "results/depth", ".png", "results/frame", ".png"},
    {VXC_REDWOOD, "depth/", ".png", "color/", ".jpg"},
    {VXC_REDWOOD, "depth/", ".png", "color/", ".png"},
    {VXC_REDWOOD, "depth/", ".png", "image/", ".jpg"},
    {VXC_REDWOOD, "depth/", ".png", "rgb/", ".jpg"},
    {VXC_REDWOOD, "depth/", ".png", "rgb/", ".png"},
    {VXC_SLAMBOOK, "depth/", NULL, "color/", ".png"},
    {VXC_SLAMBOOK, "depth/", NULL, "color/", ".jpg"},
};

/* The colour image's name in out; false: the pattern does not fit. */
static bool rename_by(const struct pattern *p, const char *name, char out[VXC__PATH_MAX])
{
    const size_t head = strlen(p->from_head), n = strlen(name);
    const char *dot = strrchr(name, '.');
    const size_t tail = p->from_tail ? strlen(p->from_tail) : dot ? strlen(dot) : 0;
    if (n < head + tail || strncmp(name, p->from_head, head) != 0 ||
        (p->from_tail && strcmp(name + n - tail, p->from_tail) != 0))
        return false;
    return snprintf(out, VXC__PATH_MAX, "%s%.*s%s", p->to_head, (int)(n - head - tail), name + head,
                    p->to_tail) < VXC__PATH_MAX;
}

static vx_err set_name(struct vxc_reader *r, struct vxc__item *item, const char *name,
                       struct vx_detail *detail)
{
    item->colour_name = strdup(name);
    if (!item->colour_name)
        return vx_fail(detail, VX_E_NOMEM, "path", "no memory for the list of frames");
    r->info.n_colours++;
    return VX_OK;
}

/* Each frame by itself: that one lacks its image says nothing of the others. */
static vx_err find_by_name(struct vxc_reader *r, struct vx_detail *detail)
{
    char name[VXC__PATH_MAX], path[VXC__PATH_MAX];
    for (size_t i = 0; i < r->n_items; i++)
        for (size_t k = 0; k < sizeof PATTERNS / sizeof *PATTERNS && !r->item[i].colour_name; k++)
            if (PATTERNS[k].format == r->info.format && rename_by(&PATTERNS[k], r->item[i].name, name) &&
                vxc__join(path, r->root, name) && vxc__is_file(path))
                VX_TRY_RET(set_name(r, &r->item[i], name, detail));
    return VX_OK;
}

/* rgb.txt: 'seconds file' a line, rising; each frame takes the nearest within 0.02 s. */
static vx_err find_by_time(struct vxc_reader *r, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX], stamp[64], name[1024], before_name[1024] = "";
    struct vxc__lines lines;
    int64_t before_ns = INT64_MIN / 2, now_ns;
    size_t i = 0;
    vx_err err = VX_OK;
    if (!vxc__join(path, r->root, "rgb.txt") || !vxc__is_file(path))
        return VX_OK;
    VX_TRY_RET(vxc__lines_open(&lines, path, detail));
    for (bool more = true; more && err == VX_OK;) {
        more = vxc__lines_next(&lines);
        const char *text = more ? lines.text : "";
        if (!more)
            now_ns = INT64_MAX / 2, name[0] = '\0';
        else if (!vxc__word(&text, stamp, sizeof stamp) || !vxc__stamp_ns(stamp, &now_ns) ||
                 !vxc__word(&text, name, sizeof name))
            continue; /* colours are an extra: a line that is none is passed over */
        for (; i < r->n_items && r->item[i].stamp_ns <= now_ns && err == VX_OK; i++) {
            const int64_t at = r->item[i].stamp_ns;
            const bool later = now_ns - at < at - before_ns;
            if ((later ? now_ns - at : at - before_ns) <= TIME_TOLERANCE_NS)
                err = set_name(r, &r->item[i], later ? name : before_name, detail);
        }
        before_ns = now_ns;
        memcpy(before_name, name, sizeof name);
    }
    vxc__lines_close(&lines);
    return err;
}

vx_err vxc__colours_find(struct vxc_reader *r, struct vx_detail *detail)
{
    if (r->payload == VXC__RAW4) { /* reflectance, 0 .. 1, with every point */
        r->info.n_colours = r->n_items;
        r->info.sensing.intensity_white = 1;
    }
    if (r->payload != VXC__IMAGE || r->n_items == 0)
        return VX_OK;
    VX_TRY_RET(r->info.format == VXC_TUM ? find_by_time(r, detail) : find_by_name(r, detail));
    const struct vxc__item *first = NULL;
    for (size_t i = r->n_items; i-- > 0;)
        if (!r->item[i].colour_name)
            first = &r->item[i];
    if (first && r->info.n_colours > 0) {
        r->info.n_colours_missing = r->n_items - r->info.n_colours;
        snprintf(r->info.colour_missing, sizeof r->info.colour_missing, "%s", first->name);
    }
    return VX_OK;
}
