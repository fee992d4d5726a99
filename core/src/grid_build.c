/*
 * grid_build.c - how every operator makes its grid: room, launches, the numbers that the host must know.
 *
 * The number of chunks and leaves of a result is known on the device only.  Where a bound is close (or small)
 * memory for it is taken at once; else the host waits for the number.  A guess that was too small is seen in
 * the counts: the call starts again with more room.
 */
#include "grid_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_CHUNK_BYTES = 1 << 20, /* room for chunks that may go unused in any grid */
    SMALL_LEAF_BYTES = 1 << 20,  /* the same for leaves */
    LEAF_BYTES = 80,             /* mask, prefix, first, place */
    CHUNK_BYTES = 1024 + 8 + 8 + 2 * 16,
    RANK_MOST = 1 << 13, /* keys that are put in order by comparing all with all; more are sorted */
    MOST_LEAVES = (int)0xfffffffeu
};

/* One try of a build. */
struct attempt {
    struct vxk_index_build b;
    uint32_t found_room; /* chunks that can be found */
    bool chunks_at_once; /* memory for so many chunks is taken before their number is known */
    bool leaves_at_once;
    uint64_t leaf_room;
    struct vx_grid *grid;
};

static uint32_t slots_for(uint64_t n)
{
    uint32_t slots = 16;
    while (slots < 2 * n)
        slots *= 2;
    return slots;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Takes device memory for the chunks of the result; what must be zero comes first: *zero_bytes. */
static vx_err take_chunks(struct vx_engine *e, struct attempt *a, uint32_t room, uint64_t *zero_bytes,
                          struct vx_detail *detail)
{
    struct vx_grid *g = a->grid;
    uint32_t slots = slots_for(room);
    char *at;
    *zero_bytes = slots * sizeof(struct vxk_index_slot) + room * 64ull * sizeof(struct vxk_index_word);
    g->chunk_bytes = *zero_bytes + round_up((room + 1ull) * 8) + round_up(room * 8ull);
    VX_TRY_RET(vx__account_alloc(e->device, true, g->chunk_bytes, &g->chunk_block, detail));
    at = g->chunk_block;
    a->b.slots = (struct vxk_index_slot *)(void *)at;
    a->b.slot_mask = slots - 1;
    a->b.words = (struct vxk_index_word *)(void *)(at + slots * sizeof(struct vxk_index_slot));
    a->b.chunk_voxel = (uint64_t *)(void *)(at + *zero_bytes);
    a->b.keys = (uint64_t *)(void *)(at + *zero_bytes + round_up((room + 1ull) * 8));
    a->b.chunk_room = room;
    return VX_OK;
}

static vx_err take_leaves(struct vx_engine *e, struct attempt *a, uint64_t room, struct vx_detail *detail)
{
    struct vx_grid *g = a->grid;
    char *at;
    g->leaf_bytes = (room ? room : 1) * LEAF_BYTES;
    VX_TRY_RET(vx__account_alloc(e->device, true, g->leaf_bytes, &g->leaf_block, detail));
    at = g->leaf_block;
    a->b.masks = (uint64_t *)(void *)at;
    a->b.prefix = (uint64_t *)(void *)(at + room * 64);
    a->b.first = (uint32_t *)(void *)(at + room * 72);
    a->b.place = (uint32_t *)(void *)(at + room * 76);
    a->b.leaf_room = (uint32_t)room;
    return VX_OK;
}

static void give_back(struct vx_engine *e, struct attempt *a)
{
    struct vx_grid *g = a->grid;
    vx__account_free(e->device, true, g->chunk_bytes, g->chunk_block);
    vx__account_free(e->device, true, g->leaf_bytes, g->leaf_block);
    g->chunk_block = g->leaf_block = NULL;
    g->chunk_bytes = g->leaf_bytes = 0;
}

static vx_err clear(struct vx_engine *e, void *at1, uint64_t bytes1, void *at2, uint64_t bytes2)
{
    struct vxk_index_clear_args args = {.at = {at1, at2},
                                        .n = {(uint32_t)(bytes1 / 16), (uint32_t)(bytes2 / 16)}};
    return VXK_LAUNCH(e->queue, index_clear, &args, args.n[0] + args.n[1]);
}

static vx_err read_counts(struct vx_engine *e, const struct attempt *a)
{
    VX_TRY_RET(e->ops->download(e->queue, e->host, a->b.counts, sizeof *e->host));
    return e->ops->wait(e->queue);
}

/* The arguments' build, and a launch of one of the recipe's kernels over n elements. */
static vx_err launch(struct vx_engine *e, struct vx__recipe *r, const struct attempt *a, enum vxk_kernel k,
                     uint32_t n)
{
    memcpy(r->args, &a->b, sizeof a->b);
    return e->ops->launch(e->queue, k, r->args, r->args_bytes, n);
}
static vx_err launch_counted(struct vx_engine *e, struct vx__recipe *r, const struct attempt *a,
                             enum vxk_kernel k, const uint32_t *n_dev, uint32_t per, uint32_t n)
{
    memcpy(r->args, &a->b, sizeof a->b);
    return e->ops->launch_counted(e->queue, k, r->args, r->args_bytes, n_dev, per, n);
}

/* Scratch of the try, cleared, and the chunks' room where it is taken at once. */
static vx_err take_scratch(struct vx_engine *e, struct vx__recipe *r, struct attempt *a,
                           struct vx_detail *detail)
{
    uint32_t slots = slots_for(a->found_room);
    uint64_t seen_at = sizeof *e->host, leaf_at = seen_at + slots * 8ull;
    uint64_t zero_at[2], zero_bytes = leaf_at + round_up((a->found_room + 1ull) * 4), chunk_zeros = 0;
    char *zero, *found;
    for (int k = 0; k < 2; k++) {
        zero_at[k] = zero_bytes;
        zero_bytes += round_up(r->zeros[k].bytes + r->zeros[k].bytes_a_slot * slots);
    }
    if (zero_bytes / 16 > 0xffffffffu)
        return vx_fail(detail, VX_E_EXHAUSTED, "", "the grid spans too many chunks");
    VX_TRY_RET(vx__engine_scratch(e, zero_bytes, (void **)&zero, detail));
    VX_TRY_RET(vx__engine_scratch(e, a->found_room * 8ull, (void **)&found, detail));
    a->b.counts = (struct vxk_index_counts *)(void *)zero;
    a->b.seen = (uint64_t *)(void *)(zero + seen_at);
    a->b.seen_mask = slots - 1;
    a->b.chunk_leaf = (uint32_t *)(void *)(zero + leaf_at);
    a->b.found = (uint64_t *)(void *)found;
    a->b.chunk_room = a->found_room;
    for (int k = 0; k < 2; k++)
        if (r->zeros[k].at)
            *r->zeros[k].at = zero + zero_at[k];
    if (a->chunks_at_once)
        VX_TRY_RET(take_chunks(e, a, a->found_room, &chunk_zeros, detail));
    return clear(e, zero, zero_bytes, a->grid->chunk_block, chunk_zeros);
}

/* Waits for the number of chunks and takes memory for them.  *again: they had no room. */
static vx_err know_chunks(struct vx_engine *e, const struct vx__recipe *r, struct attempt *a, bool *again,
                          struct vx_detail *detail)
{
    uint64_t zero_bytes;
    VX_TRY_RET(read_counts(e, a));
    *again = e->host->n_chunks > a->found_room;
    if (*again || (r->outside && e->host->n_outside))
        return VX_OK;
    VX_TRY_RET(take_chunks(e, a, e->host->n_chunks, &zero_bytes, detail));
    return clear(e, NULL, 0, a->grid->chunk_block, zero_bytes);
}

static vx_err order_keys(struct vx_engine *e, const struct attempt *a)
{
    struct vxk_index_rank_args args = {.b = a->b,
                                       .in_order = a->b.chunk_room > RANK_MOST && !a->chunks_at_once};
    if (args.in_order)
        VX_TRY_RET(e->ops->sort_u64(e->queue, a->b.found, NULL, a->b.chunk_room));
    return VXK_LAUNCH_COUNTED(e->queue, index_rank, &args, &a->b.counts->n_chunks, 1, a->b.chunk_room);
}

/* Waits for the number of leaves and takes memory for them.  *again: the chunks had no room. */
static vx_err know_leaves(struct vx_engine *e, const struct vx__recipe *r, struct attempt *a, bool *again,
                          struct vx_detail *detail)
{
    VX_TRY_RET(read_counts(e, a));
    *again = e->host->n_chunks > a->b.chunk_room;
    if (*again || (r->outside && e->host->n_outside))
        return VX_OK;
    if (e->host->n_leaves > (uint32_t)MOST_LEAVES)
        return vx_fail(detail, VX_E_EXHAUSTED, "", "the grid would have %llu leaves; the most is 2^32 - 2",
                       (unsigned long long)e->host->n_leaves);
    return take_leaves(e, a, e->host->n_leaves, detail);
}

static vx_err number_all(struct vx_engine *e, struct vx__recipe *r, struct attempt *a,
                         struct vx_detail *detail)
{
    const struct vxk_index_counts *c = a->b.counts;
    struct vxk_index_expand_args expand = {.b = a->b};
    struct vxk_index_number_args number = {.b = a->b};
    struct vxk_index_scan_voxels_args scan = {.b = a->b};
    VX_TRY_RET(VXK_LAUNCH_COUNTED(e->queue, index_expand, &expand, &c->made_chunks, 1, a->b.chunk_room));
    if (r->run_leaves) {
        memcpy(r->args, &a->b, sizeof a->b);
        VX_TRY_RET(r->run_leaves(e, r, a->b.leaf_room, detail));
    } else {
        VX_TRY_RET(launch_counted(e, r, a, r->leaves, &c->made_leaves, 1, a->b.leaf_room));
    }
    VX_TRY_RET(VXK_LAUNCH_COUNTED(e->queue, index_number, &number, &c->made_chunks, 1, a->b.chunk_room));
    VX_TRY_RET(VXK_LAUNCH(e->queue, index_scan_voxels, &scan, 1));
    return read_counts(e, a);
}

/* One try with the room that `a` says.  *again: it was too little; e->host says what was found. */
static vx_err try_build(struct vx_engine *e, struct vx__recipe *r, struct attempt *a, bool *again,
                        struct vx_detail *detail)
{
    struct vxk_index_scan_leaves_args scan;
    *again = false;
    VX_TRY_RET(take_scratch(e, r, a, detail));
    if (r->run_chunks) {
        memcpy(r->args, &a->b, sizeof a->b);
        VX_TRY_RET(r->run_chunks(e, r, detail));
    } else {
        VX_TRY_RET(launch(e, r, a, r->chunks, r->n_chunks));
    }
    if (!a->chunks_at_once) {
        VX_TRY_RET(know_chunks(e, r, a, again, detail));
        if (*again || !a->grid->chunk_block)
            return VX_OK;
    }
    VX_TRY_RET(order_keys(e, a));
    if (r->n_words)
        VX_TRY_RET(launch(e, r, a, r->words, r->n_words));
    else
        VX_TRY_RET(launch_counted(e, r, a, r->words, &a->b.counts->n_chunks, 64, a->b.chunk_room * 64));
    if (a->leaves_at_once)
        VX_TRY_RET(take_leaves(e, a, a->leaf_room, detail));
    else
        a->b.leaf_room = (uint32_t)MOST_LEAVES;
    scan.b = a->b;
    VX_TRY_RET(VXK_LAUNCH(e->queue, index_scan_leaves, &scan, 1));
    if (!a->leaves_at_once) {
        VX_TRY_RET(know_leaves(e, r, a, again, detail));
        if (*again || !a->grid->leaf_block)
            return VX_OK;
    }
    VX_TRY_RET(number_all(e, r, a, detail));
    *again = e->host->n_chunks > a->b.chunk_room || e->host->n_leaves > a->b.leaf_room;
    return VX_OK;
}

/* Room for the first try. */
static void begin(const struct vx__recipe *r, struct attempt *a)
{
    uint64_t room = r->guess_chunks < r->most_chunks ? r->guess_chunks : r->most_chunks;
    uint64_t spare = r->source_bytes / 8;
    room = room < 1 ? 1 : room > VXK_INDEX_MAX_CHUNKS ? VXK_INDEX_MAX_CHUNKS : room;
    a->found_room = (uint32_t)room;
    a->chunks_at_once = room <= 2 * RANK_MOST &&
                        room * CHUNK_BYTES <= (spare > SMALL_CHUNK_BYTES ? spare : SMALL_CHUNK_BYTES);
    if (!a->chunks_at_once) /* the number is waited for: room to find as many as there may be costs little */
        a->found_room =
            (uint32_t)(r->most_chunks < VXK_INDEX_MAX_CHUNKS ? r->most_chunks : VXK_INDEX_MAX_CHUNKS);
    if (r->zeros[0].bytes_a_slot + r->zeros[1].bytes_a_slot)
        a->found_room = (uint32_t)room; /* here it costs more */
    a->leaf_room = r->guess_leaves < r->most_leaves ? r->guess_leaves : r->most_leaves;
    a->leaves_at_once = a->leaf_room * LEAF_BYTES <= SMALL_LEAF_BYTES;
}

/* More room after a try that had too little. */
static vx_err more(const struct vx_engine *e, struct attempt *a, struct vx_detail *detail)
{
    if (e->host->n_chunks > a->found_room) {
        if (a->found_room == VXK_INDEX_MAX_CHUNKS)
            return vx_fail(detail, VX_E_EXHAUSTED, "",
                           "the grid would span more than %u chunks of 128^3 voxels",
                           (unsigned)VXK_INDEX_MAX_CHUNKS);
        a->found_room = a->found_room < VXK_INDEX_MAX_CHUNKS / 8 ? a->found_room * 8 : VXK_INDEX_MAX_CHUNKS;
        a->chunks_at_once = false;
    }
    a->leaves_at_once = false; /* waits for the number, whatever it is */
    return VX_OK;
}

static void finish(const struct vx_engine *e, const struct attempt *a)
{
    struct vx_grid *g = a->grid;
    g->device = e->device;
    g->view = (struct vxk_index_grid){.n_voxels = e->host->n_voxels,
                                      .n_leaves = (uint32_t)e->host->n_leaves,
                                      .n_chunks = e->host->n_chunks,
                                      .slot_mask = a->b.slot_mask,
                                      .slots = a->b.slots,
                                      .keys = a->b.keys,
                                      .words = a->b.words,
                                      .chunk_voxel = a->b.chunk_voxel,
                                      .masks = a->b.masks,
                                      .prefix = a->b.prefix,
                                      .first = a->b.first,
                                      .place = a->b.place};
}

vx_err vx__grid_build(struct vx_engine *e, struct vx__recipe *r, struct vx_grid **out,
                      struct vx_detail *detail)
{
    struct attempt a;
    uint32_t keep = e->n_scratch;
    bool again;
    vx_err err;
    *out = NULL;
    memset(&a, 0, sizeof a);
    a.grid = calloc(1, sizeof *a.grid);
    if (!a.grid)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a grid's header");
    begin(r, &a);
    for (;;) {
        VX_TRY(try_build(e, r, &a, &again, detail));
        if (r->outside && e->host->n_outside) {
            err = vx_fail(detail, VX_E_INVALID, r->outside_field, r->outside, e->host->n_outside);
            goto fail;
        }
        if (!again)
            break;
        give_back(e, &a);
        vx__engine_scratch_drop(e, keep);
        VX_TRY(more(e, &a, detail));
    }
    finish(e, &a);
    *out = a.grid;
    return VX_OK;
fail:
    (void)e->ops->wait(e->queue); /* what is queued uses the blocks */
    give_back(e, &a);
    free(a.grid);
    return err;
}
