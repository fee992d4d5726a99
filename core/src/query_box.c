/*
 * query_box.c - how many voxels of boxes are free, occupied and unknown.
 *
 * Boxes are cut to size on the host.  Small ones go to the device as they are, as many at once as have
 * CELLS_AT_ONCE cells.  Large ones are held against a list of the map's chunks: a chunk that lies wholly in a
 * box is counted once for all boxes of the call, one that lies in it in part for that box alone, and as many
 * parts go to the device at once as have CELLS_AT_ONCE leaves.  So no launch takes long, whatever was asked.
 *
 * Boxes need no distance field, and so neither the reader's lock nor its queue: a batch of them keeps no
 * other question waiting.
 */
#include "query_ask.h"
#include "vx/planning.h"
#include "work.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    MOST_SIDE = 1 << 21, /* voxels of a box's side: its volume stays below 2^64 */
    SMALL_CELLS = 4096,  /* of a small box */
    CELLS_AT_ONCE = 1 << 14,
    SMALL_AT_ONCE = 1 << 13, /* small boxes, 64 elements each */
    PARTS_AT_ONCE = 1 << 12  /* 256 elements each */
};
#define RANGE 134217728 /* voxels on each side of the origin */

_Static_assert(sizeof(struct vxk_box_answer) == sizeof(struct vx_box_answer), "one layout");

/* A box in voxels: all that it meets, and the part of that in the voxel range. */
struct extent {
    int64_t lo[3], hi[3];
    struct vxk_extent in;
    bool empty;    /* no part */
    uint64_t size; /* voxels in all */
};

/* What a part counts for. */
struct owner {
    uint32_t box;
    uint32_t chunk; /* that is counted as a whole, VXK_NONE: a part of it */
};
enum { NOT_COUNTED, UNDER_WAY, COUNTED };
struct total {
    struct vxk_box_count count;
    uint32_t state;
};

struct boxes {
    struct vx_map *map;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    double offset_m[3], voxel_m;
    const float *in;
    struct vx_box_answer *out;
    bool has[2]; /* large ones, small ones */

    struct vxk_queue *q;
    struct vx__snapshot snapshot;
    struct vxk_query query;
    struct vx__work work;
    void *sent;                   /* device: extents, or parts */
    struct vxk_box_count *counts; /* device */
    uint32_t n, weight;           /* that wait to be sent */
    void *waiting;                /* host: [n], those below */
    struct vxk_extent *small;
    struct vxk_box_part *part;
    struct owner *owner;
    struct vxk_box_count *back;

    struct vxk_box_chunk *chunk; /* [n_chunks] of the map; NULL: not listed yet */
    struct total *total;
    uint32_t n_chunks;
};

/* The voxels whose cubes box i meets. */
static vx_err read_box(const struct boxes *b, uint32_t i, struct extent *e)
{
    const float *p = b->in + 6 * (size_t)i;

    e->size = 1;
    e->empty = false;
    for (int a = 0; a < 3; a++) {
        const double lo = ((double)p[a] + b->offset_m[a]) / b->voxel_m,
                     hi = ((double)p[3 + a] + b->offset_m[a]) / b->voxel_m;
        if (!(p[a] <= p[3 + a]) || !(lo > -1e12 && hi < 1e12))
            return vx_fail(
                b->detail, VX_E_INVALID, "boxes",
                "box %u is none: along axis %d it goes from %g to %g m; both must be finite and the "
                "first not above the second",
                i, a, (double)p[a], (double)p[3 + a]);
        e->lo[a] = (int64_t)lo - ((double)(int64_t)lo > lo);
        e->hi[a] = (int64_t)hi - ((double)(int64_t)hi > hi);
        if ((double)e->hi[a] == hi && e->hi[a] > e->lo[a])
            e->hi[a]--; /* touches the next voxel and does not meet it */
        if (e->hi[a] - e->lo[a] > MOST_SIDE)
            return vx_fail(b->detail, VX_E_INVALID, "boxes", "box %u is %g m long; at most %g m (%d voxels)",
                           i, (double)p[3 + a] - (double)p[a], MOST_SIDE * b->voxel_m, (int)MOST_SIDE);
        e->size *= (uint64_t)(e->hi[a] - e->lo[a] + 1);
        e->empty |= e->hi[a] < -RANGE || e->lo[a] >= RANGE;
        e->in.lo[a] = (int32_t)(e->lo[a] < -RANGE ? -RANGE : e->lo[a]);
        e->in.hi[a] = (int32_t)(e->hi[a] >= RANGE ? RANGE - 1 : e->hi[a]);
    }
    return VX_OK;
}

static bool is_beyond(const struct extent *e)
{
    for (int a = 0; a < 3; a++)
        if (e->lo[a] < -RANGE || e->hi[a] >= RANGE)
            return true;
    return false;
}

static uint64_t n_cells(const int32_t lo[3], const int32_t hi[3])
{
    uint64_t n = 1;
    for (int a = 0; a < 3; a++)
        n *= (uint64_t)((hi[a] >> 3) - (lo[a] >> 3) + 1);
    return n;
}

static bool is_small(const struct extent *e)
{
    return n_cells(e->in.lo, e->in.hi) <= SMALL_CELLS;
}

static vx_err given_up(const struct boxes *b)
{
    return vx__cancelled(b->options) ? vx_fail(b->detail, VX_E_CANCELLED, "", "given up between boxes")
                                     : VX_OK;
}

/* ------------------------------------------------------------------ small boxes */

static vx_err send_small(struct boxes *b)
{
    const struct vxk_ops *ops = b->q->dev->ops;
    struct vxk_query_boxes_args a = {.q = b->query, .boxes = b->sent, .out = b->counts};

    if (!b->n)
        return VX_OK;
    VX_TRY_RET(given_up(b));
    VX_TRY_RET(ops->upload(b->q, b->sent, b->small, b->n * sizeof *b->small));
    VX_TRY_RET(ops->fill(b->q, b->counts, 0, b->n * sizeof *b->counts));
    VX_TRY_RET(VXK_LAUNCH(b->q, query_boxes, &a, b->n * 64));
    VX_TRY_RET(vx__work_read(&b->work, b->back, b->counts, b->n * sizeof *b->counts));
    for (uint32_t i = 0; i < b->n; i++) {
        b->out[b->owner[i].box].n_free = b->back[i].free;
        b->out[b->owner[i].box].n_occupied = b->back[i].occupied;
    }
    b->n = b->weight = 0;
    return VX_OK;
}

static vx_err add_small(struct boxes *b, uint32_t i, const struct extent *e)
{
    const uint32_t weight = (uint32_t)n_cells(e->in.lo, e->in.hi);

    if (b->n == SMALL_AT_ONCE || b->weight + weight > CELLS_AT_ONCE)
        VX_TRY_RET(send_small(b));
    b->small[b->n] = e->in;
    b->owner[b->n++].box = i;
    b->weight += weight;
    return VX_OK;
}

/* ------------------------------------------------------------------ large boxes */

/* Lists the map's chunks, in the order of their keys. */
static vx_err list_chunks(struct boxes *b)
{
    struct vxk_query_box_chunks_args a = {.grid = b->snapshot.grid};
    uint32_t *versions;

    VX_TRY_RET(vx__snapshot_chunks(b->map, &b->snapshot, b->q, &versions, &b->n_chunks));
    vx__work_adopt(&b->work, versions);
    a.versions = versions;
    a.out = vx__work_get(&b->work, b->n_chunks, sizeof *a.out);
    VX_TRY_RET(b->work.err);
    b->chunk = malloc((b->n_chunks + 1) * sizeof *b->chunk);
    b->total = calloc(b->n_chunks + 1, sizeof *b->total);
    if (!b->chunk || !b->total)
        return vx_fail(b->detail, VX_E_NOMEM, "", "no memory for a list of %u chunks", b->n_chunks);
    VX_TRY_RET(VXK_LAUNCH(b->q, query_box_chunks, &a, b->n_chunks));
    return vx__work_read(&b->work, b->chunk, a.out, b->n_chunks * sizeof *b->chunk);
}

static void add_count(struct vx_box_answer *to, const struct vxk_box_count *n)
{
    to->n_free += n->free;
    to->n_occupied += n->occupied;
}

static vx_err send_parts(struct boxes *b)
{
    const struct vxk_ops *ops = b->q->dev->ops;
    struct vxk_query_box_parts_args a = {.q = b->query, .parts = b->sent, .out = b->counts};

    if (!b->n)
        return VX_OK;
    VX_TRY_RET(given_up(b));
    VX_TRY_RET(ops->upload(b->q, b->sent, b->part, b->n * sizeof *b->part));
    VX_TRY_RET(ops->fill(b->q, b->counts, 0, b->n * sizeof *b->counts));
    VX_TRY_RET(VXK_LAUNCH(b->q, query_box_parts, &a, b->n * 256));
    VX_TRY_RET(vx__work_read(&b->work, b->back, b->counts, b->n * sizeof *b->counts));
    for (uint32_t i = 0; i < b->n; i++) {
        const struct owner *o = &b->owner[i];
        add_count(&b->out[o->box], &b->back[i]);
        if (o->chunk != VXK_NONE)
            b->total[o->chunk] = (struct total){b->back[i], COUNTED};
    }
    b->n = b->weight = 0;
    return VX_OK;
}

static vx_err add_part(struct boxes *b, uint32_t i, uint32_t chunk, const int32_t lo[3], const int32_t hi[3],
                       bool whole)
{
    const uint64_t cells = n_cells(lo, hi);
    const uint32_t n_leaf = b->chunk[chunk].n_leaf, weight = cells < n_leaf ? (uint32_t)cells : n_leaf;
    struct vxk_box_part *p;

    if (b->n == PARTS_AT_ONCE || b->weight + weight > CELLS_AT_ONCE)
        VX_TRY_RET(send_parts(b));
    p = &b->part[b->n];
    *p = (struct vxk_box_part){.version = b->chunk[chunk].version};
    for (int a = 0; a < 3; a++) {
        p->lo[a] = (uint8_t)lo[a];
        p->hi[a] = (uint8_t)hi[a];
    }
    b->owner[b->n++] = (struct owner){i, whole ? chunk : VXK_NONE};
    b->weight += weight;
    return VX_OK;
}

/* What box i holds of a chunk. */
static vx_err add_chunk(struct boxes *b, uint32_t i, const struct extent *e, uint32_t chunk)
{
    struct total *t = &b->total[chunk];
    int32_t at[3], lo[3], hi[3];
    bool whole = true;

    vxk_key_xyz(b->chunk[chunk].key, &at[0], &at[1], &at[2]);
    for (int a = 0; a < 3; a++) {
        lo[a] = vxk_maxi(e->in.lo[a] - at[a] * 128, 0);
        hi[a] = vxk_mini(e->in.hi[a] - at[a] * 128, 127);
        if (lo[a] > hi[a])
            return VX_OK;
        whole &= lo[a] == 0 && hi[a] == 127;
    }
    if (whole && t->state == UNDER_WAY)
        VX_TRY_RET(send_parts(b));
    if (whole && t->state == COUNTED) {
        add_count(&b->out[i], &t->count);
        return VX_OK;
    }
    if (!whole)
        return add_part(b, i, chunk, lo, hi, false);
    VX_TRY_RET(add_part(b, i, chunk, lo, hi, true));
    t->state = UNDER_WAY;
    return VX_OK;
}

/* Number of the first chunk whose x is not below x. */
static uint32_t first_from(const struct boxes *b, int32_t x)
{
    uint32_t low = 0, high = b->n_chunks;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if ((int32_t)(b->chunk[middle].key >> 42 & 0x1fffff) - VXK_KEY_BIAS < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static vx_err add_large(struct boxes *b, uint32_t i, const struct extent *e)
{
    uint32_t last;

    if (!b->chunk)
        VX_TRY_RET(list_chunks(b));
    VX_TRY_RET(given_up(b));
    last = first_from(b, (e->in.hi[0] >> 7) + 1);
    for (uint32_t c = first_from(b, e->in.lo[0] >> 7); c < last; c++)
        VX_TRY_RET(add_chunk(b, i, e, c));
    return VX_OK;
}

/* ------------------------------------------------------------------ both */

/* All boxes of one kind. */
static vx_err add_boxes(struct boxes *b, uint32_t n, bool small)
{
    for (uint32_t i = 0; i < n; i++) {
        struct extent e;
        VX_TRY_RET(read_box(b, i, &e));
        if (!e.empty && is_small(&e) == small)
            VX_TRY_RET(small ? add_small(b, i, &e) : add_large(b, i, &e));
    }
    return small ? send_small(b) : send_parts(b);
}

static vx_err make_room(struct boxes *b)
{
    const size_t extents = SMALL_AT_ONCE * sizeof *b->small, parts = PARTS_AT_ONCE * sizeof *b->part,
                 bytes = extents > parts ? extents : parts;

    b->waiting = malloc(bytes);
    b->owner = malloc(SMALL_AT_ONCE * sizeof *b->owner);
    b->back = malloc(SMALL_AT_ONCE * sizeof *b->back);
    if (!b->waiting || !b->owner || !b->back)
        return vx_fail(b->detail, VX_E_NOMEM, "", "no memory for boxes");
    b->small = b->waiting;
    b->part = b->waiting;
    b->sent = vx__work_get(&b->work, 1, bytes);
    b->counts = vx__work_get(&b->work, SMALL_AT_ONCE, sizeof *b->counts);
    return b->work.err;
}

static vx_err ask(struct boxes *b, uint32_t n)
{
    vx_err err;

    b->query.grid = b->snapshot.grid;
    b->query.occupancy = vx__map_params(b->map)->mode == VX_OCCUPANCY;
    vx__work_init(&b->work, b->map, b->q, b->detail);
    VX_TRY(make_room(b));
    for (int small = 1; small >= 0; small--)
        if (b->has[small])
            VX_TRY(add_boxes(b, n, small));
fail:
    vx__work_drop(&b->work, 0);
    free(b->waiting);
    free(b->owner);
    free(b->back);
    free(b->chunk);
    free(b->total);
    return err;
}

/* Refuses what is no box; of the others all is unknown to begin with. */
static vx_err begin_answers(struct boxes *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct extent e;
        VX_TRY_RET(read_box(b, i, &e));
        b->out[i] = (struct vx_box_answer){.n_unknown = e.size, .status = is_beyond(&e) ? VX_Q_OUTSIDE : 0};
        b->has[is_small(&e)] |= !e.empty;
    }
    return VX_OK;
}

vx_err vx_query_boxes(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                      const float *boxes, uint32_t n, struct vx_box_answer *answers, struct vx_reply *reply,
                      struct vx_detail *detail)
{
    const struct vx_map_params *params = vx__map_params(map);
    const struct vxk_ops *ops = vx__map_dev(map)->ops;
    struct boxes b = {.map = map,
                      .options = options,
                      .detail = detail,
                      .voxel_m = params->voxel_size_m,
                      .in = boxes,
                      .out = answers};
    vx_err err;

    VX_TRY_RET(vx__check_origin(origin_m, detail));
    for (int a = 0; a < 3; a++)
        b.offset_m[a] = origin_m[a] - params->origin_m[a];
    VX_TRY_RET(begin_answers(&b, n));
    VX_TRY_RET(ops->queue_create(vx__map_dev(map), 1, &b.q));
    err = vx__pin_asked(map, options, &b.snapshot, detail);
    if (err == VX_OK) {
        err = n ? ask(&b, n) : VX_OK;
        if (err == VX_OK)
            vx__fill_reply(map, &b.snapshot, 0, reply);
        vx__snapshot_release(map, &b.snapshot);
    }
    ops->queue_destroy(b.q);
    for (uint32_t i = 0; err == VX_OK && i < n; i++)
        answers[i].n_unknown -= answers[i].n_free + answers[i].n_occupied;
    return err;
}
