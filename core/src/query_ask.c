/* query_ask.c - how every kind of question goes to the device and its answers come back. */
#include "query_ask.h"

#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SLICE = 1 << 20,     /* items on the device at once */
    ROOM_BYTES = 1 << 16 /* questions, and answers, that need no memory of their own */
};
_Static_assert(VX_NOW_POINTS * sizeof(struct vx_point_answer) <= ROOM_BYTES, "they fit the room");

/* Host memory that stays and that the device reads and writes itself: a small batch is one launch and one
 * wait. */
struct room {
    void *in, *out;
};

static void room_destroy(struct vx_map *map, void *p)
{
    struct vxk_dev *dev = vx__map_dev(map);
    struct room *r = p;

    if (r->in)
        dev->ops->free_host(dev, r->in);
    if (r->out)
        dev->ops->free_host(dev, r->out);
    free(r);
}

/* The map's room, made on first use; NULL when there is no memory for it. */
static struct room *get_room(struct vx_map *map, struct vx__reader_state *rs)
{
    struct vxk_dev *dev = vx__map_dev(map);
    struct room *r = rs->room;

    if (r)
        return r;
    r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    if (dev->ops->alloc_host(dev, ROOM_BYTES, &r->in) != VX_OK ||
        dev->ops->alloc_host(dev, ROOM_BYTES, &r->out) != VX_OK) {
        room_destroy(map, r);
        return NULL;
    }
    rs->room = r;
    rs->room_destroy = room_destroy;
    return r;
}

vx_err vx__now_init(struct vx_map *map, struct vx__reader_state *now)
{
    return get_room(map, now) ? VX_OK : VX_E_NOMEM;
}

vx_err vx__pin_asked(struct vx_map *map, const struct vx_query_options *options, struct vx__snapshot *out,
                     struct vx_detail *detail)
{
    VX_TRY_RET(vx__snapshot_pin(map, out));
    if (!options || options->min_epoch <= out->epoch)
        return VX_OK;
    vx__snapshot_release(map, out);
    return vx_fail(detail, VX_E_STALE, "min_epoch", "epoch %llu is asked for, the newest is %llu",
                   (unsigned long long)options->min_epoch, (unsigned long long)out->epoch);
}

void vx__fill_reply(struct vx_map *map, const struct vx__snapshot *s, uint64_t esdf_epoch,
                    struct vx_reply *reply)
{
    const struct vx_map_params *params = vx__map_params(map);

    if (!reply)
        return;
    *reply = (struct vx_reply){.epoch = s->epoch,
                               .esdf_epoch = esdf_epoch,
                               .newest_stamp_ns = s->newest_stamp_ns,
                               .max_distance_m = vx__esdf_radius(params) * params->voxel_size_m};
    memcpy(reply->uuid, vx__map_uuid(map), sizeof reply->uuid);
}

static void session_end(struct vx__session *s)
{
    if (!s->borrowed)
        vx__snapshot_release(s->map, &s->snapshot);
    vx__reader_unlock(s->map);
}

/* True when the kept field will do although the map has a newer epoch. */
static bool is_new_enough(const struct vx__session *s, const struct vx__esdf *e)
{
    const struct vx_query_options *o = s->options;

    return o && o->esdf_period_ns && e && e->ready && e->pinned && e->pin.epoch == e->epoch &&
           e->epoch != s->snapshot.epoch && e->epoch >= s->snapshot.cleared_epoch &&
           e->epoch >= o->min_epoch &&
           (o->now_ns <= e->refreshed_ns || o->now_ns - e->refreshed_ns < o->esdf_period_ns);
}

/* The answers are from the field's epoch, which it keeps pinned. */
static void borrow_pin(struct vx__session *s, const struct vx__esdf *e)
{
    vx__snapshot_release(s->map, &s->snapshot);
    s->snapshot = e->pin;
    s->borrowed = true;
}

static void use_field(struct vx__session *s, const struct vx__esdf *e)
{
    s->q.esdf = e->view;
    s->esdf_epoch = e->epoch;
}

/* The field of the snapshot's epoch; small queries of others wait or go elsewhere meanwhile. */
static vx_err bring_up_to_date(struct vx__session *s, const struct vx__esdf **out)
{
    vx__field_lock(s->map);
    vx_err err = vx__esdf_refresh(s->map, s->rs, &s->snapshot, s->options, out, s->detail);
    if (err == VX_OK && s->options && s->options->esdf_period_ns) {
        vx__esdf_pin(s->map, s->rs, &s->snapshot, s->options->now_ns);
        s->borrowed = true;
    }
    vx__field_unlock(s->map);
    return err;
}

/* The field, and the snapshot that it is of. */
static vx_err session_esdf(struct vx__session *s)
{
    const struct vx__esdf *e = s->rs->esdf;

    if (is_new_enough(s, e))
        borrow_pin(s, e);
    else
        VX_TRY_RET(bring_up_to_date(s, &e));
    use_field(s, e);
    return VX_OK;
}

/* What the kernels need to know of the map, once the snapshot is the one that answers. */
static void session_fill(struct vx__session *s, const double origin_m[3])
{
    const struct vx_map_params *params = vx__map_params(s->map);

    s->q.grid = s->snapshot.grid;
    for (int a = 0; a < 3; a++)
        s->q.offset_m[a] = origin_m[a] - params->origin_m[a];
    s->q.voxel_m = params->voxel_size_m;
    s->q.undefined = NAN;
    s->q.occupancy = params->mode == VX_OCCUPANCY;
}

static vx_err session_begin(struct vx__session *s, const double origin_m[3], bool with_esdf)
{
    vx_err err;

    VX_TRY_RET(vx__reader_lock(s->map, &s->rs));
    err = vx__pin_asked(s->map, s->options, &s->snapshot, s->detail);
    if (err != VX_OK) {
        vx__reader_unlock(s->map);
        return err;
    }
    if (with_esdf)
        VX_TRY(session_esdf(s));
    session_fill(s, origin_m);
    return VX_OK;

fail:
    session_end(s);
    return err;
}

vx_err vx__check_origin(const double origin_m[3], struct vx_detail *detail)
{
    for (int a = 0; a < 3; a++)
        if (!isfinite(origin_m[a]))
            return vx_fail(detail, VX_E_INVALID, "origin_m", "must be finite, got %g", origin_m[a]);
    return VX_OK;
}

/* A batch that fits the room. */
static vx_err ask_small(struct vx__session *s, const struct vx__question *k, const struct room *r,
                        const void *in, uint32_t n, void *out)
{
    struct vxk_queue *q = s->rs->queue;
    const struct vx__batch b = {.in = r->in, .out = r->out, .n = n};

    memcpy(r->in, in, (size_t)n * k->in_bytes);
    VX_TRY_RET(k->launch(s, k, &b));
    VX_TRY_RET(q->dev->ops->wait(q));
    memcpy(out, r->out, (size_t)n * k->out_bytes);
    return VX_OK;
}

uint32_t vx__pace(uint32_t n, double took_s, uint32_t least, uint32_t most)
{
    const uint32_t more = took_s < 0.005 ? 8 : 2;
    if (took_s < 0.05)
        return n < most / more ? n * more : most;
    if (took_s > 0.2)
        return n / 2 > least ? n / 2 : least;
    return n;
}

double vx__now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Any batch, a slice at a time. */
static vx_err ask_slices(struct vx__session *s, const struct vx__question *k, const void *in, uint32_t n,
                         void *out)
{
    struct vxk_queue *q = s->rs->queue;
    const struct vxk_ops *ops = q->dev->ops;
    uint32_t most = k->slice ? k->slice : SLICE, slice = n < most ? n : most;
    uint32_t at_once = k->start && k->start < slice ? k->start : slice;
    struct vx__work w;
    void *in_dev, *common = NULL;
    struct vx__batch b;
    vx_err err;

    vx__work_init(&w, s->map, q, s->detail);
    b.in = in_dev = vx__work_get(&w, slice, k->in_bytes);
    b.out = vx__work_get(&w, slice, k->out_bytes);
    if (k->common_bytes)
        common = vx__work_get(&w, 1, k->common_bytes);
    b.common = common;
    err = w.err;
    if (err == VX_OK && k->common_bytes)
        err = ops->upload(q, common, k->common, k->common_bytes);
    for (uint64_t first = 0; err == VX_OK && first < n; first += b.n) {
        const double start_s = k->start ? vx__now_s() : 0;
        b.first = (uint32_t)first;
        b.n = n - first < at_once ? (uint32_t)(n - first) : at_once;
        if (vx__cancelled(s->options)) {
            err = vx_fail(s->detail, VX_E_CANCELLED, "", "given up after %llu of %u answers",
                          (unsigned long long)first, n);
            break;
        }
        if (k->in_bytes)
            VX_TRY(
                ops->upload(q, in_dev, (const char *)in + first * k->in_bytes, (uint64_t)b.n * k->in_bytes));
        VX_TRY(k->launch(s, k, &b));
        VX_TRY(ops->download(q, (char *)out + first * k->out_bytes, b.out, (uint64_t)b.n * k->out_bytes));
        VX_TRY(ops->wait(q));
        if (k->settle)
            VX_TRY(k->settle(s, k, &b, (char *)out + first * k->out_bytes));
        if (k->start)
            at_once = vx__pace(at_once, vx__now_s() - start_s, 1, slice);
    }
fail:
    vx__work_drop(&w, 0);
    return err;
}

vx_err vx__ask(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
               const struct vx__question *k, const void *in, uint32_t n, void *out, struct vx_reply *reply,
               struct vx_detail *detail)
{
    struct vx__session s = {.map = map, .options = options, .detail = detail};
    struct room *room = NULL;
    vx_err err = VX_OK;

    VX_TRY_RET(vx__check_origin(origin_m, detail));
    VX_TRY_RET(session_begin(&s, origin_m, k->with_esdf));
    if (n && k->direct && (uint64_t)n * k->in_bytes <= ROOM_BYTES && (uint64_t)n * k->out_bytes <= ROOM_BYTES)
        room = get_room(map, s.rs);
    if (room)
        err = ask_small(&s, k, room, in, n, out);
    else if (n)
        err = ask_slices(&s, k, in, n, out);
    if (err == VX_OK)
        vx__fill_reply(map, &s.snapshot, s.esdf_epoch, reply);
    session_end(&s);
    return err;
}

/* With the locks of a small batch: asks it, if the field will do as it is. */
static vx_err ask_now(struct vx__session *s, const struct vx__esdf *e, const double origin_m[3],
                      const struct vx__question *k, const void *in, uint32_t n, void *out,
                      struct vx_reply *reply)
{
    vx_err err;

    VX_TRY_RET(vx__pin_asked(s->map, s->options, &s->snapshot, s->detail));
    if (is_new_enough(s, e))
        borrow_pin(s, e);
    else if (!e || !e->ready || e->epoch != s->snapshot.epoch)
        VX_TRY(VX_E_UNAVAILABLE);
    use_field(s, e);
    session_fill(s, origin_m);
    if (n)
        VX_TRY(ask_small(s, k, s->rs->room, in, n, out));
    vx__fill_reply(s->map, &s->snapshot, s->esdf_epoch, reply);
    err = VX_OK;
fail:
    if (!s->borrowed)
        vx__snapshot_release(s->map, &s->snapshot);
    return err;
}

vx_err vx__ask_now(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                   const struct vx__question *k, const void *in, uint32_t n, void *out,
                   struct vx_reply *reply, struct vx_detail *detail)
{
    struct vx__session s = {.map = map, .options = options, .detail = detail};
    void *field;
    vx_err err;

    VX_TRY_RET(vx__check_origin(origin_m, detail));
    if (n > VX_NOW_POINTS || !vx__now_lock(map, &s.rs, &field))
        return VX_E_UNAVAILABLE;
    err = ask_now(&s, field, origin_m, k, in, n, out, reply);
    vx__now_unlock(map);
    return err;
}
