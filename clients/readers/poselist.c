#include "poselist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of 3 x 4, and of 4 x 4 with the last one 0 0 0 1. */
static vx_err pose_of_rows(const double *m, int n, struct vxc_pose *out, struct vx_detail *detail)
{
    if (n == 16) {
        for (int i = 0; i < 4; i++)
            if (!(fabs(m[12 + i] - (i == 3)) <= 1e-6)) /* also when it is NaN */
                return vx_fail(
                    detail, VX_E_INVALID, "pose",
                    "the last row of the 4 x 4 matrix is not 0 0 0 1 (transposed? rows come first)");
    }
    return vxc_pose_from_matrix(m, out, detail);
}

static struct vxc__pose_entry *append(struct vxc__pose_list *list, size_t *capacity)
{
    if (list->n == *capacity) {
        const size_t grown = *capacity ? 2 * *capacity : 256;
        struct vxc__pose_entry *entry = realloc(list->entry, grown * sizeof *entry);
        if (!entry)
            return NULL;
        list->entry = entry;
        *capacity = grown;
    }
    struct vxc__pose_entry *entry = &list->entry[list->n++];
    memset(entry, 0, sizeof *entry);
    return entry;
}

static bool layout_of(int n_numbers, enum vxc__pose_layout *layout)
{
    switch (n_numbers) {
    case 12:
    case 16:
        *layout = VXC__POSES_MATRIX;
        return true;
    case 8:
        *layout = VXC__POSES_STAMPED;
        return true;
    case 7:
        *layout = VXC__POSES_PLAIN;
        return true;
    case 3:
        *layout = VXC__POSES_LOG;
        return true;
    default:
        return false;
    }
}

/* The four rows behind a line of three integers. */
static bool read_log_rows(struct vxc__lines *lines, double m[16])
{
    for (int row = 0; row < 4; row++)
        if (!vxc__lines_next(lines) || vxc__numbers(lines->text, m + 4 * row, 4) != 4)
            return false;
    return true;
}

/* Fills the entry of the current line; n numbers of it are in m. */
static vx_err parse_entry(struct vxc__pose_list *list, struct vxc__lines *lines, double m[16], int n,
                          struct vxc__pose_entry *entry, struct vx_detail *detail)
{
    static const int expected[] = {
        [VXC__POSES_MATRIX] = 12, [VXC__POSES_STAMPED] = 8, [VXC__POSES_PLAIN] = 7, [VXC__POSES_LOG] = 3};
    entry->line = lines->number;
    const bool right = n == expected[list->layout] || (list->layout == VXC__POSES_MATRIX && n == 16);
    if (!right || lines->too_long)
        return vx_fail(detail, VX_E_INVALID, "pose", "the line does not hold %d numbers",
                       expected[list->layout]);
    if (list->layout == VXC__POSES_LOG)
        return pose_of_rows(m, 16, &entry->pose, detail);
    if (list->layout == VXC__POSES_MATRIX)
        return pose_of_rows(m, n, &entry->pose, detail);
    const double *p = m;
    if (list->layout == VXC__POSES_STAMPED) {
        const char *text = lines->text;
        char word[64];
        if (!vxc__word(&text, word, sizeof word) || !vxc__stamp_ns(word, &entry->stamp_ns))
            return vx_fail(detail, VX_E_INVALID, "stamp", "%s is not a time in seconds", word);
        p++;
    }
    return vxc_pose_from_quaternion(p, p + 3, &entry->pose, detail);
}

vx_err vxc__pose_list_read(struct vxc__pose_list *list, const char *path, struct vx_detail *detail)
{
    struct vxc__lines lines;
    memset(list, 0, sizeof *list);
    VX_TRY_RET(vxc__lines_open(&lines, path, detail));
    vx_err err = VX_OK;
    size_t capacity = 0;
    while (vxc__lines_next(&lines)) {
        double m[16];
        const int n = vxc__numbers(lines.text, m, 16);
        if (list->n == 0 && !layout_of(n, &list->layout)) {
            err = vx_fail(detail, VX_E_INVALID, "poses",
                          "%s line %u holds no pose: expected 12 or 16 (matrix), 8 (time and quaternion), "
                          "7 (quaternion) or 3 (Redwood log) numbers",
                          path, lines.number);
            goto fail;
        }
        struct vxc__pose_entry *entry = append(list, &capacity);
        struct vx_detail why;
        if (!entry) {
            err = vx_fail(detail, VX_E_NOMEM, "poses", "no memory for the poses of %s", path);
            goto fail;
        }
        /* A log that loses step would give every later frame a wrong pose, so there it is the whole list that
         * fails. */
        if (list->layout == VXC__POSES_LOG && (n != 3 || !read_log_rows(&lines, m))) {
            err = vx_fail(detail, VX_E_INVALID, "poses",
                          "%s line %u: expected three integers and then four rows of 4 numbers", path,
                          lines.number);
            goto fail;
        }
        entry->err = parse_entry(list, &lines, m, n, entry, &why);
        if (entry->err != VX_OK && !(entry->why = strdup(why.text))) {
            err = vx_fail(detail, VX_E_NOMEM, "poses", "no memory for the poses of %s", path);
            goto fail;
        }
    }
    if (list->n == 0) {
        err = vx_fail(detail, VX_E_INVALID, "poses", "%s holds no pose", path);
        goto fail;
    }
    vxc__lines_close(&lines);
    return VX_OK;
fail:
    vxc__lines_close(&lines);
    vxc__pose_list_free(list);
    return err;
}

void vxc__pose_list_free(struct vxc__pose_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->entry[i].why);
    free(list->entry);
    memset(list, 0, sizeof *list);
}

static int compare_entries(const void *a, const void *b)
{
    const struct vxc__pose_entry *p = a, *q = b;
    if (p->stamp_ns != q->stamp_ns)
        return p->stamp_ns < q->stamp_ns ? -1 : 1;
    return p->line < q->line ? -1 : 1;
}

void vxc__pose_list_sort(struct vxc__pose_list *list)
{
    if (list->n > 1)
        qsort(list->entry, list->n, sizeof *list->entry, compare_entries);
}

/* |a - b| without overflow. */
static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

const struct vxc__pose_entry *vxc__pose_list_nearest(const struct vxc__pose_list *list, int64_t stamp_ns,
                                                     int64_t tolerance_ns)
{
    size_t lo = 0, hi = list->n; /* first entry at or after the stamp */
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (list->entry[mid].stamp_ns < stamp_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    const struct vxc__pose_entry *best = NULL;
    for (size_t i = lo > 0 ? lo - 1 : 0; i < list->n && i <= lo; i++) {
        const uint64_t d = distance(list->entry[i].stamp_ns, stamp_ns);
        if (d <= (uint64_t)tolerance_ns && (!best || d < distance(best->stamp_ns, stamp_ns)))
            best = &list->entry[i];
    }
    return best;
}

vx_err vxc__pose_file_read(struct vxc_pose *pose, const char *path, struct vx_detail *detail)
{
    struct vxc__lines lines;
    VX_TRY_RET(vxc__lines_open(&lines, path, detail));
    double m[16];
    int n = 0;
    vx_err err = VX_OK;
    while (vxc__lines_next(&lines)) {
        const int got = n < 16 ? vxc__numbers(lines.text, m + n, 16 - n) : 17;
        if (got < 0 || n + got > 16) {
            err = vx_fail(detail, VX_E_INVALID, "pose", "%s line %u is not a row of a 4 x 4 matrix",
                          vxc__base_name(path), lines.number);
            break;
        }
        n += got;
    }
    vxc__lines_close(&lines);
    if (err != VX_OK)
        return err;
    if (n != 12 && n != 16)
        return vx_fail(detail, VX_E_INVALID, "pose", "%s holds %d numbers, not the 16 of a 4 x 4 matrix",
                       vxc__base_name(path), n);
    return pose_of_rows(m, n, pose, detail);
}

vx_err vxc__times_read(int64_t **out, size_t *n, const char *path, struct vx_detail *detail)
{
    struct vxc__lines lines;
    *out = NULL;
    *n = 0;
    VX_TRY_RET(vxc__lines_open(&lines, path, detail));
    size_t capacity = 0;
    vx_err err = VX_OK;
    while (vxc__lines_next(&lines)) {
        const char *text = lines.text;
        char word[64];
        if (*n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            int64_t *grown = realloc(*out, capacity * sizeof *grown);
            if (!grown) {
                err = vx_fail(detail, VX_E_NOMEM, "times", "no memory for %s", path);
                break;
            }
            *out = grown;
        }
        if (!vxc__word(&text, word, sizeof word) || !vxc__stamp_ns(word, *out + *n)) {
            err = vx_fail(detail, VX_E_INVALID, "times", "%s line %u is not a time in seconds", path,
                          lines.number);
            break;
        }
        ++*n;
    }
    vxc__lines_close(&lines);
    if (err != VX_OK) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return err;
}
