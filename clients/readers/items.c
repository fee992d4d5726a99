#include "internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const int64_t TIME_TOLERANCE_NS = 20000000; /* usual for TUM sets */

static vx_err no_memory(struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_NOMEM, "path", "no memory for the list of frames");
}

vx_err vxc__items_add(struct vxc_reader *r, const char *name, int64_t stamp_ns, struct vx_detail *detail)
{
    if (r->options.max_frames > 0 && r->n_items >= r->options.max_frames)
        return VX_OK;
    if (r->n_items == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 256;
        struct vxc__item *grown = realloc(r->item, capacity * sizeof *grown);
        if (!grown)
            return no_memory(detail);
        r->item = grown;
        r->capacity = capacity;
    }
    struct vxc__item *item = &r->item[r->n_items];
    *item = (struct vxc__item){.stamp_ns = stamp_ns, .pose.rotation_xyzw = {0, 0, 0, 1}};
    if (!(item->name = strdup(name)))
        return no_memory(detail);
    r->n_items++;
    return VX_OK;
}

vx_err vxc__items_add_names(struct vxc_reader *r, const char *folder, const struct vxc__names *names,
                            struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    for (size_t i = 0; i < names->n; i++) {
        if (!vxc__join(path, folder, names->name[i]))
            return vx_fail(detail, VX_E_INVALID, "path", "the path of %s is too long", names->name[i]);
        VX_TRY_RET(vxc__items_add(r, path, vxc__default_stamp_ns(r->info.sensing.sensor, i), detail));
    }
    return VX_OK;
}

vx_err vxc__item_refuse(struct vxc__item *item, vx_err err, const char *why, struct vx_detail *detail)
{
    free(item->pose_why);
    item->pose_why = strdup(why);
    item->pose_err = err;
    return item->pose_why ? VX_OK : no_memory(detail);
}

static vx_err take_pose(struct vxc__item *item, const struct vxc__pose_entry *entry, const char *list_name,
                        struct vx_detail *detail)
{
    struct vx_detail why;
    if (entry->err == VX_OK) {
        item->pose = entry->pose;
        return VX_OK;
    }
    vx_fail(&why, entry->err, "pose", "%s line %u: %s", list_name, entry->line, entry->why);
    return vxc__item_refuse(item, entry->err, why.text, detail);
}

vx_err vxc__items_pose_by_order(struct vxc_reader *r, const struct vxc__pose_list *list,
                                const char *list_name, struct vx_detail *detail)
{
    struct vx_detail why;
    for (size_t i = 0; i < r->n_items; i++) {
        if (i < list->n) {
            VX_TRY_RET(take_pose(&r->item[i], &list->entry[i], list_name, detail));
            continue;
        }
        vx_fail(&why, VX_E_NOT_FOUND, "pose", "%s holds %zu poses, none for frame %zu", list_name, list->n,
                i);
        VX_TRY_RET(vxc__item_refuse(&r->item[i], VX_E_NOT_FOUND, why.text, detail));
    }
    const bool cut = r->options.max_frames > 0 && r->n_items == r->options.max_frames;
    if (list->n > r->n_items && !cut)
        vxc__note(r, "%s holds %zu poses for %zu files: pose k is taken for file k, the rest is not used",
                  list_name, list->n, r->n_items);
    return VX_OK;
}

vx_err vxc__items_pose_by_time(struct vxc_reader *r, const struct vxc__pose_list *list, const char *list_name,
                               struct vx_detail *detail)
{
    struct vx_detail why;
    for (size_t i = 0; i < r->n_items; i++) {
        struct vxc__item *item = &r->item[i];
        const struct vxc__pose_entry *entry = vxc__pose_list_nearest(list, item->stamp_ns, TIME_TOLERANCE_NS);
        if (entry) {
            VX_TRY_RET(take_pose(item, entry, list_name, detail));
            continue;
        }
        vx_fail(&why, VX_E_NOT_FOUND, "pose", "%s has no pose within 0.02 s of the frame's time, %.6f s",
                list_name, (double)item->stamp_ns * 1e-9);
        VX_TRY_RET(vxc__item_refuse(item, VX_E_NOT_FOUND, why.text, detail));
    }
    return VX_OK;
}

int64_t vxc__default_stamp_ns(enum vxc_sensor sensor, uint64_t index)
{
    return sensor == VXC_DEPTH ? (int64_t)(index * 1000000000 / 30) : (int64_t)(index * 100000000);
}

vx_err vxc__items_times(struct vxc_reader *r, bool *found, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    int64_t *time;
    size_t n;
    *found = vxc__join(path, r->root, "times.txt") && vxc__is_file(path);
    if (!*found)
        return VX_OK;
    VX_TRY_RET(vxc__times_read(&time, &n, path, detail));
    if (n < r->n_items) {
        vx_fail(detail, VX_E_INVALID, "times", "%s holds %zu times for %zu frames", path, n, r->n_items);
        free(time);
        return VX_E_INVALID;
    }
    for (size_t i = 0; i < r->n_items; i++)
        r->item[i].stamp_ns = time[i];
    free(time);
    return VX_OK;
}

void vxc__note(struct vxc_reader *r, const char *format, ...)
{
    if (r->info.n_notes == VXC_MAX_NOTES)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->info.note[r->info.n_notes++], sizeof r->info.note[0], format, args);
    va_end(args);
}

void vxc__items_free(struct vxc_reader *r)
{
    for (size_t i = 0; i < r->n_items; i++) {
        free(r->item[i].name);
        free(r->item[i].pose_name);
        free(r->item[i].colour_name);
        free(r->item[i].pose_why);
    }
    free(r->item);
    r->item = NULL;
    r->n_items = r->capacity = 0;
}

const char *vxc__first_file(const char *folder, const char *const *names, char path[VXC__PATH_MAX])
{
    for (; *names; names++)
        if (vxc__join(path, folder, *names) && vxc__is_file(path))
            return *names;
    return NULL;
}
