#include "fade.h"

#include "body/frame_fade.h"

#include <math.h>
#include <string.h>

/* The whole map is swept in half a half-life, or in so many frames when nothing decays. */
enum { SWEEP_TICKS = 8, SWEEP_FRAMES = 256, DEFAULT_SWEEP_WORDS = 4096 };
/* So many epochs long an emptied chunk stays on the table: who asks what changed since then is told of it. */
enum { KEPT_EPOCHS = 256 };
/* A stamp that is so much newer than the last one is a gap in the recording. */
#define LONGEST_STEP_NS 10000000000ll

vx_err vx__fade_check(const struct vx_map_params *p, struct vx_detail *detail)
{
    if (p->half_life_s != 0 && !(p->half_life_s >= 0.01 && p->half_life_s <= 1e5))
        return vx_fail(detail, VX_E_INVALID, "half_life_s",
                       "must be 0 (nothing decays) or 0.01 to 1e5 s, got %g", p->half_life_s);
    if (!(p->forget_radius_m == 0 || (p->forget_radius_m >= p->voxel_size_m && p->forget_radius_m <= 1e9)))
        return vx_fail(detail, VX_E_INVALID, "forget_radius_m",
                       "must be 0 (nothing is forgotten) or a radius of at least a voxel, got %g m",
                       p->forget_radius_m);
    return VX_OK;
}

void vx__fade_init(struct vx_map *map)
{
    map->fade.tick_ns = (int64_t)(map->params.half_life_s * 1e9 / 16);
    map->fade.tick = 1;
    if (!map->params.sweep_words)
        map->params.sweep_words = DEFAULT_SWEEP_WORDS;
}

void vx__fade_fini(struct vx_map *map)
{
    vx__array_free(map, &map->fade.regions);
}

/* Buckets that the sweep should have reached at a time of the clock. */
static uint64_t sweep_goal(const struct vx__fade *d, int64_t clock_ns)
{
    uint64_t round_ns = (uint64_t)d->tick_ns * SWEEP_TICKS, t = (uint64_t)clock_ns;
    return t / round_ns * VXK_FADE_BUCKETS + t % round_ns * VXK_FADE_BUCKETS / round_ns;
}

/* Buckets of about sweep_words words. */
static uint64_t sweep_room(const struct vx_map *map)
{
    uint64_t words = map->totals.n_chunk * 64 + 1;
    uint64_t n = (uint64_t)map->params.sweep_words * VXK_FADE_BUCKETS / words;
    return n < 1 ? 1 : n > VXK_FADE_BUCKETS ? VXK_FADE_BUCKETS : n;
}

/* Emptied chunks up to this epoch may be buried: no reader is pinned to an older one, and who asks for what
 * changed since an older one gets everything. */
static uint32_t take_bury(struct vx_map *map)
{
    uint32_t epoch;
    pthread_mutex_lock(&map->lock);
    epoch = map->epoch > KEPT_EPOCHS ? map->epoch - KEPT_EPOCHS : 0;
    for (int i = 0; i < VX__MAX_PINS; i++)
        if (map->pin_count[i] && map->pin_epoch[i] < epoch)
            epoch = map->pin_epoch[i];
    if (epoch > map->buried_epoch)
        map->buried_epoch = epoch;
    pthread_mutex_unlock(&map->lock);
    return epoch;
}

static void advance(struct vx_map *map, const struct vx_frame *frame)
{
    struct vx__fade *d = &map->fade;
    int64_t step = 0;
    uint64_t want, room = sweep_room(map);
    if (map->has_stamp && frame->stamp_ns > map->newest_stamp_ns) {
        uint64_t by = (uint64_t)frame->stamp_ns - (uint64_t)map->newest_stamp_ns;
        step = by <= LONGEST_STEP_NS ? (int64_t)by : 0;
    }
    d->next_clock_ns = d->clock_ns + step;
    d->next_tick = d->tick_ns ? (uint32_t)(1 + (uint64_t)d->next_clock_ns / (uint64_t)d->tick_ns) : 1;
    want = d->tick_ns ? sweep_goal(d, d->next_clock_ns) : d->swept;
    want = want > d->swept ? want - d->swept : 0;
    if (map->params.forget_radius_m > 0 && want < VXK_FADE_BUCKETS / SWEEP_FRAMES)
        want = VXK_FADE_BUCKETS / SWEEP_FRAMES;
    d->next_swept = d->swept + want;
    if (want > VXK_FADE_BUCKETS) /* more than a round is one round */
        want = VXK_FADE_BUCKETS;
    d->due_n = (uint32_t)(want < room ? want : room);
    if (d->due_n < want) /* rounds that are missed altogether are missed */
        d->next_swept =
            d->swept + (d->next_swept - d->swept - want) / VXK_FADE_BUCKETS * VXK_FADE_BUCKETS + d->due_n;
}

vx_err vx__fade_begin(struct vx_map *map, const struct vx_frame *frame, struct vxk_frame_args *args,
                      struct vx_detail *detail)
{
    struct vx__fade *d = &map->fade;
    struct vxk_fade *f = &args->fade;
    memset(f, 0, sizeof *f);
    if (!d->tick_ns && map->params.forget_radius_m == 0)
        return VX_OK;
    advance(map, frame);
    f->on = 1;
    f->spare = map->params.decay_spares_seen;
    f->tick = d->next_tick;
    f->before = d->tick;
    f->due_first = (uint32_t)(d->swept % VXK_FADE_BUCKETS);
    f->due_n = d->due_n;
    f->due_places = map->n_slots > VXK_FADE_BUCKETS ? map->n_slots / VXK_FADE_BUCKETS : 1;
    f->bury = take_bury(map);
    f->forget = (float)(map->params.forget_radius_m / map->params.voxel_size_m);
    f->n_regions = d->n_regions;
    if (!d->n_regions)
        return VX_OK;
    VX_TRY_RET(vx__array_ensure(map, &d->regions, sizeof d->on_device, detail));
    f->region = d->regions.ptr;
    return map->device->dev->ops->upload(map->queue, d->regions.ptr, d->on_device,
                                         d->n_regions * sizeof *d->on_device);
}

void vx__fade_commit(struct vx_map *map)
{
    struct vx__fade *d = &map->fade;
    if (!d->tick_ns && map->params.forget_radius_m == 0)
        return;
    d->clock_ns = d->next_clock_ns;
    d->tick = d->next_tick;
    d->swept = d->next_swept;
}

void vx__fade_info(const struct vx_map *map, struct vx_map_info *out)
{
    const struct vx__fade *d = &map->fade;
    uint64_t goal = d->tick_ns ? sweep_goal(d, d->clock_ns) : 0;
    out->decay_clock_s = (double)d->clock_ns * 1e-9;
    if (goal > d->swept)
        out->sweep_lag_s =
            (double)(goal - d->swept) / VXK_FADE_BUCKETS * SWEEP_TICKS * (double)d->tick_ns * 1e-9;
}

/* ------------------------------------------------------------------ protected regions */

static bool all_finite(const double v[3])
{
    return isfinite(v[0]) && isfinite(v[1]) && isfinite(v[2]);
}

/* First voxel whose centre is at or above x (voxels), within the map's range. */
static int32_t first_voxel(double x)
{
    return (int32_t)fmin(fmax(ceil(x - 0.5), -134217728), 134217727);
}
static int32_t last_voxel(double x)
{
    return (int32_t)fmin(fmax(floor(x - 0.5), -134217728), 134217727);
}

static vx_err convert_region(const struct vx_map *map, const struct vx_region *r, struct vxk_region *out,
                             struct vx_detail *detail)
{
    const double *o = map->params.origin_m, vs = map->params.voxel_size_m;
    double radius = r->radius_m / vs, near2 = 0;
    bool none = false;
    memset(out, 0, sizeof *out);
    if (r->ball ? !all_finite(r->centre_m) || !(radius > 0 && radius <= 1e6)
                : !all_finite(r->min_m) || !all_finite(r->max_m))
        return vx_fail(detail, VX_E_INVALID, "region",
                       r->ball ? "a ball needs a finite centre and a radius of up to a million voxels"
                               : "a box needs finite corners");
    out->ball = r->ball;
    for (int k = 0; k < 3; k++) {
        double c = r->ball ? (r->centre_m[k] - o[k]) / vs : 0;
        double lo = r->ball ? c - radius : (r->min_m[k] - o[k]) / vs,
               hi = r->ball ? c + radius : (r->max_m[k] - o[k]) / vs;
        if (!(lo <= hi))
            return vx_fail(detail, VX_E_INVALID, "region", "the box's corners are the wrong way round");
        if (lo > 134217727 || hi < -134217728)
            return vx_fail(detail, VX_E_INVALID, "region", "lies beyond the map's range");
        out->lo[k] = first_voxel(lo);
        out->hi[k] = last_voxel(hi);
        out->centre[k] = (int64_t)rint(c * 256);
        none |= out->lo[k] > out->hi[k];
        near2 += (c - floor(c) - 0.5) * (c - floor(c) - 0.5); /* the nearest voxel's centre */
    }
    if (none || (r->ball && near2 > radius * radius))
        return vx_fail(detail, VX_E_INVALID, "region",
                       "is so small that no voxel's centre lies in it; make it a voxel (%g m) thick", vs);
    out->r2 = (int64_t)rint(radius * radius * 65536);
    return VX_OK;
}

vx_err vx_map_protect(struct vx_map *map, struct vx_region *region, struct vx_detail *detail)
{
    struct vx__fade *d = &map->fade;
    struct vxk_region form;
    VX_TRY_RET(convert_region(map, region, &form, detail));
    if (d->n_regions == VX_MAX_REGIONS)
        return vx_fail(detail, VX_E_EXHAUSTED, "region", "the map has %d protected regions already",
                       VX_MAX_REGIONS);
    pthread_mutex_lock(&map->lock);
    region->id = ++d->last_id;
    d->region[d->n_regions] = *region;
    d->on_device[d->n_regions++] = form;
    pthread_mutex_unlock(&map->lock);
    return VX_OK;
}

vx_err vx_map_unprotect(struct vx_map *map, uint32_t id, struct vx_detail *detail)
{
    struct vx__fade *d = &map->fade;
    uint32_t i = 0;
    while (i < d->n_regions && d->region[i].id != id)
        i++;
    if (i == d->n_regions)
        return vx_fail(detail, VX_E_NOT_FOUND, "region", "the map has no protected region %u", id);
    pthread_mutex_lock(&map->lock);
    d->n_regions--;
    memmove(&d->region[i], &d->region[i + 1], (d->n_regions - i) * sizeof *d->region);
    memmove(&d->on_device[i], &d->on_device[i + 1], (d->n_regions - i) * sizeof *d->on_device);
    pthread_mutex_unlock(&map->lock);
    return VX_OK;
}

uint32_t vx_map_regions(struct vx_map *map, struct vx_region out[VX_MAX_REGIONS])
{
    uint32_t n;
    pthread_mutex_lock(&map->lock);
    n = map->fade.n_regions;
    memcpy(out, map->fade.region, n * sizeof *out);
    pthread_mutex_unlock(&map->lock);
    return n;
}
