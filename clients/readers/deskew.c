/*
 * Poses over a scan: the part of the set's trajectory that a scan took, for points that have a time each.
 *
 * A scan with path and times is placed point by point by the daemon (proto/README.md).  What cannot be placed
 * so goes as if the sensor had stood still, and is counted: the last scan as a rule, behind which there is no
 * pose.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the wire: poses and times lie within 2 s of the stamp.  Poses that are farther apart than a second say
 * too little about the way between them.  Times beyond 10 s are those of a clock and not of a scan. */
static const int64_t REACH_NS = 2000000000, CLOCK_NS = 10000000000;
static const double GAP_S = 1.0001;

bool vxc_deskew_from_name(const char *name, enum vxc_deskew *out)
{
    static const char *const names[] = {
        [VXC_DESKEW_AUTO] = "auto", [VXC_DESKEW_OFF] = "off", [VXC_DESKEW_ON] = "on"};
    for (int i = 0; i <= VXC_DESKEW_ON; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum vxc_deskew)i;
            return true;
        }
    return false;
}

static int by_stamp(const void *a, const void *b)
{
    const int64_t x = ((const struct vxc__track_pose *)a)->stamp_ns,
                  y = ((const struct vxc__track_pose *)b)->stamp_ns;
    return x < y ? -1 : x > y;
}

vx_err vxc__track_take(struct vxc_reader *r, const struct vxc__pose_list *list, bool timed,
                       struct vx_detail *detail)
{
    const bool stamped = list->layout == VXC__POSES_STAMPED;
    const size_t n = stamped ? list->n : timed ? r->n_items : 0;
    size_t kept = 0;
    if (n == 0)
        return VX_OK;
    if (!(r->track = calloc(n, sizeof *r->track)))
        return vx_fail(detail, VX_E_NOMEM, "poses", "no memory for the trajectory");
    for (size_t i = 0; i < n; i++) {
        struct vxc__track_pose *to = &r->track[r->n_track];
        if ((stamped ? list->entry[i].err : r->item[i].pose_err) != VX_OK)
            continue;
        to->stamp_ns = stamped ? list->entry[i].stamp_ns : r->item[i].stamp_ns;
        to->pose = stamped ? list->entry[i].pose : r->item[i].pose;
        r->n_track++;
    }
    qsort(r->track, r->n_track, sizeof *r->track, by_stamp);
    for (size_t i = 0; i < r->n_track; i++) /* of several at one time the first */
        if (kept == 0 || r->track[i].stamp_ns > r->track[kept - 1].stamp_ns)
            r->track[kept++] = r->track[i];
    r->n_track = kept;
    return VX_OK;
}

/* Points that the map looks at; the others have any time, or none. */
static bool is_reading(const float p[3])
{
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]) && (p[0] != 0 || p[1] != 0 || p[2] != 0);
}

/* Earliest and latest time of the readings. */
static vx_err span_of(const struct vxc__cloud *c, int64_t *lo, int64_t *hi, struct vx_detail *why)
{
    *lo = INT64_MAX;
    *hi = INT64_MIN;
    for (size_t i = 0; i < c->n; i++) {
        if (!is_reading(c->xyz + 3 * i))
            continue;
        if (c->time_ns[i] == VXC__NO_TIME)
            return vx_fail(why, VX_E_INVALID, "time", "point %zu has no time", i);
        *lo = c->time_ns[i] < *lo ? c->time_ns[i] : *lo;
        *hi = c->time_ns[i] > *hi ? c->time_ns[i] : *hi;
    }
    if (*lo >= *hi)
        return vx_fail(why, VX_E_INVALID, "time", "all points have the same time");
    return VX_OK;
}

/* Last pose that is not later than a time, from 1 on; 0: all are. */
static size_t poses_until(const struct vxc_reader *r, int64_t ns)
{
    size_t lo = 0, hi = r->n_track;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (r->track[mid].stamp_ns <= ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* In s; stamps of a file may be so far apart that their difference is no int64. */
static double apart(int64_t later, int64_t earlier)
{
    return ((double)later - (double)earlier) * 1e-9;
}

/* The poses that enclose lo .. hi, ns from the stamp, at most 64 of them. */
static vx_err take_path(struct vxc_reader *r, struct vxc_frame *frame, int64_t lo, int64_t hi,
                        struct vx_detail *why)
{
    const int64_t stamp = frame->stamp_ns;
    const size_t before = poses_until(r, stamp + lo);
    size_t last = poses_until(r, stamp + hi), n;
    if (before == 0)
        return vx_fail(why, VX_E_NOT_FOUND, "poses", "its first point is %.3f s before the first pose",
                       apart(r->track[0].stamp_ns, stamp + lo));
    if (r->track[last - 1].stamp_ns < stamp + hi) /* the next one is behind the last point */
        last++;
    if (last > r->n_track)
        return vx_fail(why, VX_E_NOT_FOUND, "poses", "its last point is %.3f s behind the last pose",
                       apart(stamp + hi, r->track[r->n_track - 1].stamp_ns));
    for (size_t i = before; i < last; i++)
        if (apart(r->track[i].stamp_ns, r->track[i - 1].stamp_ns) > GAP_S)
            return vx_fail(why, VX_E_NOT_FOUND, "poses", "there is no pose for %.3f s within it",
                           apart(r->track[i].stamp_ns, r->track[i - 1].stamp_ns));
    if (r->track[before - 1].stamp_ns < stamp - REACH_NS || r->track[last - 1].stamp_ns > stamp + REACH_NS)
        return vx_fail(why, VX_E_INVALID, "poses", "the poses round it are more than 2 s from its stamp");
    n = last - before + 1;
    frame->n_path = n < VXC_MAX_POSES ? (uint32_t)n : VXC_MAX_POSES;
    for (size_t k = 0; k < frame->n_path; k++) {
        const struct vxc__track_pose *from = &r->track[before - 1 + k * (n - 1) / (frame->n_path - 1)];
        r->path[k] = (struct vxc_timed_pose){.offset_ns = from->stamp_ns - stamp, .pose = from->pose};
    }
    frame->path = r->path;
    return VX_OK;
}

static vx_err take_times(struct vxc_reader *r, struct vxc_frame *frame, int64_t base, int64_t lo, int64_t hi,
                         struct vx_detail *why)
{
    const struct vxc__cloud *c = &r->cloud;
    if (c->n > r->time_capacity) {
        int32_t *grown = realloc(r->time_ns, c->n * sizeof *grown);
        if (!grown)
            return vx_fail(why, VX_E_NOMEM, "time", "no memory for the times of %s", frame->name);
        r->time_ns = grown;
        r->time_capacity = c->n;
    }
    for (size_t i = 0; i < c->n; i++) {
        const int64_t t = is_reading(c->xyz + 3 * i) ? c->time_ns[i] - base : lo;
        r->time_ns[i] = (int32_t)(t < lo ? lo : t > hi ? hi : t);
    }
    frame->time_ns = r->time_ns;
    return VX_OK;
}

static vx_err find(struct vxc_reader *r, struct vxc_frame *frame, struct vx_detail *why)
{
    int64_t lo, hi, base = 0;
    if (r->n_track < 2)
        return vx_fail(why, VX_E_NOT_FOUND, "poses",
                       "the poses have no times (a list of 'seconds tx ty tz qx qy qz qw', or times.txt)");
    if (frame->stamp_ns < INT64_MIN + 4 * REACH_NS || frame->stamp_ns > INT64_MAX - 4 * REACH_NS)
        return vx_fail(why, VX_E_INVALID, "stamp", "its stamp is no time");
    VX_TRY_RET(span_of(&r->cloud, &lo, &hi, why));
    if (lo < -CLOCK_NS || hi > CLOCK_NS)
        base = frame->stamp_ns;
    if (lo < base - REACH_NS || hi > base + REACH_NS)
        return vx_fail(why, VX_E_INVALID, "time",
                       "its points are from %.3f to %.3f s after its stamp; 2 s on either side are possible "
                       "(whole numbers are taken for ns, others for s)",
                       apart(lo, base), apart(hi, base));
    VX_TRY_RET(take_times(r, frame, base, lo - base, hi - base, why));
    return take_path(r, frame, lo - base, hi - base, why);
}

vx_err vxc__deskew(struct vxc_reader *r, struct vxc_frame *frame, struct vx_detail *detail)
{
    struct vx_detail why = {"", ""};
    vx_err err;
    if (r->options.deskew == VXC_DESKEW_OFF)
        return VX_OK;
    if (r->cloud.has_times)
        err = find(r, frame, &why);
    else if (r->options.deskew == VXC_DESKEW_ON)
        err = vx_fail(&why, VX_E_NOT_FOUND, "time", "its points have no times");
    else
        return VX_OK;
    if (err == VX_OK) {
        r->info.n_deskewed++;
        return VX_OK;
    }
    frame->path = NULL;
    frame->n_path = 0;
    frame->time_ns = NULL;
    if (err == VX_E_NOMEM || r->options.deskew == VXC_DESKEW_ON)
        return vx_fail(detail, err, why.field, "%s cannot be de-skewed: %s", frame->name, why.text);
    if (r->info.n_rigid++ == 0)
        snprintf(r->info.rigid_why, sizeof r->info.rigid_why, "%.100s: %s", frame->name, why.text);
    return VX_OK;
}

void vxc__deskew_fini(struct vxc_reader *r)
{
    free(r->track);
    free(r->time_ns);
}
