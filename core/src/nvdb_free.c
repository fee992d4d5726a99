/* nvdb_free.c - what our own files know to be free, chunk by chunk. */
#include "nvdb_free.h"

#include <stdlib.h>
#include <string.h>

static vx_err bad(const struct vx__nvdb_free *f, const char *field, const char *words)
{
    return vx_fail(f->in->detail, VX_E_INVALID, field, "%s", words);
}

static bool in_range(const int32_t at[3], int32_t step)
{
    for (int a = 0; a < 3; a++)
        if (at[a] < -(1 << 27) || at[a] >= 1 << 27 || at[a] & (step - 1))
            return false;
    return true;
}

/* Place of a cell's first voxel in our order. */
static uint32_t place_of(const int32_t at[3])
{
    uint32_t x = (uint32_t)at[0] & 127, y = (uint32_t)at[1] & 127, z = (uint32_t)at[2] & 127;
    return vxk_word_of(x, y, z) << 6 | vxk_cell_of(x, y, z);
}

static void chunk_of(const int32_t at[3], int32_t out[3])
{
    for (int a = 0; a < 3; a++)
        out[a] = at[a] >> 7;
}

/* < 0: a comes before b. */
static int order(const int32_t a[3], const int32_t b[3])
{
    int32_t p[3], q[3];
    int c;
    chunk_of(a, p);
    chunk_of(b, q);
    c = vx__nvdb_order(p, q);
    return c ? c : (int)place_of(a) - (int)place_of(b);
}

static vx_err next_tile(struct vx__nvdb_free *f)
{
    const struct vx__nvdb_free_tiles last = f->tile;
    bool had = f->have_tile;
    f->have_tile = f->tiles_at < f->tiles_end;
    if (!f->have_tile)
        return VX_OK;
    VX_TRY_RET(vx__nvdb_cursor_get(&f->tiles, f->tiles_at, &f->tile, sizeof f->tile));
    f->tiles_at += sizeof f->tile;
    if (!in_range(f->tile.at, 32) || f->tile.reserved || !f->tile.cells)
        return bad(f, VX__NVDB_TILES, "holds no block of the voxel range");
    if (had && order(last.at, f->tile.at) >= 0)
        return bad(f, VX__NVDB_TILES, "is out of order");
    return VX_OK;
}

static vx_err next_leaf(struct vx__nvdb_free *f)
{
    const struct vx__nvdb_free_leaf last = f->leaf;
    bool had = f->have_leaf;
    uint64_t any = 0;
    f->have_leaf = f->part_at < f->part_end;
    if (!f->have_leaf)
        return VX_OK;
    VX_TRY_RET(vx__nvdb_cursor_get(&f->part, f->part_at, &f->leaf, sizeof f->leaf));
    f->part_at += sizeof f->leaf;
    for (int x = 0; x < 8; x++)
        any |= f->leaf.mask[x];
    if (!in_range(f->leaf.at, 8) || f->leaf.reserved || !any)
        return bad(f, VX__NVDB_FREE, "holds no cell of the voxel range");
    if (had && order(last.at, f->leaf.at) >= 0)
        return bad(f, VX__NVDB_FREE, "is out of order");
    return VX_OK;
}

vx_err vx__nvdb_free_init(struct vx__nvdb_free *f, const struct vx__nvdb_input *in,
                          const struct vx__nvdb_blind *tiles, const struct vx__nvdb_blind *part)
{
    memset(f, 0, sizeof *f);
    f->in = in;
    f->chunk = calloc(1, sizeof *f->chunk);
    if (!f->chunk)
        return vx_fail(in->detail, VX_E_NOMEM, "", "no memory for the import");
    VX_TRY_RET(vx__nvdb_cursor_init(&f->tiles, in));
    VX_TRY_RET(vx__nvdb_cursor_init(&f->part, in));
    if (tiles) {
        if (tiles->n % sizeof f->tile)
            return bad(f, VX__NVDB_TILES, "is no whole number of records");
        f->tiles_at = (uint64_t)tiles->at;
        f->tiles_end = f->tiles_at + tiles->n;
    }
    if (part) {
        if (part->n % sizeof f->leaf)
            return bad(f, VX__NVDB_FREE, "is no whole number of records");
        f->part_at = (uint64_t)part->at;
        f->part_end = f->part_at + part->n;
    }
    VX_TRY_RET(next_tile(f));
    return next_leaf(f);
}

void vx__nvdb_free_fini(struct vx__nvdb_free *f)
{
    vx__nvdb_cursor_fini(&f->tiles);
    vx__nvdb_cursor_fini(&f->part);
    free(f->chunk);
    f->chunk = NULL;
}

bool vx__nvdb_free_next(const struct vx__nvdb_free *f, int32_t at[3])
{
    int32_t other[3];
    if (!f->have_tile && !f->have_leaf)
        return false;
    chunk_of(f->have_tile ? f->tile.at : f->leaf.at, at);
    if (f->have_tile && f->have_leaf) {
        chunk_of(f->leaf.at, other);
        if (vx__nvdb_order(other, at) < 0)
            memcpy(at, other, sizeof other);
    }
    return true;
}

vx_err vx__nvdb_free_take(struct vx__nvdb_free *f, const int32_t at[3], struct vx__loader *loader)
{
    int32_t chunk[3];
    memset(f->chunk->has, 0, sizeof f->chunk->has);
    while (f->have_tile && (chunk_of(f->tile.at, chunk), vx__nvdb_order(chunk, at) == 0)) {
        VX_TRY_RET(vx__loader_tiles(loader, place_of(f->tile.at) >> 6, f->tile.cells, f->in->detail));
        VX_TRY_RET(next_tile(f));
    }
    while (f->have_leaf && (chunk_of(f->leaf.at, chunk), vx__nvdb_order(chunk, at) == 0)) {
        uint32_t place = place_of(f->leaf.at);
        memcpy(f->chunk->mask[place], f->leaf.mask, sizeof f->leaf.mask);
        f->chunk->has[place >> 6] |= 1ull << (place & 63);
        VX_TRY_RET(next_leaf(f));
    }
    return VX_OK;
}

vx_err vx__nvdb_free_rest(struct vx__nvdb_free *f, struct vx__loader *loader)
{
    static const uint64_t none[8];
    for (uint32_t w = 0; w < 64; w++)
        for (uint64_t m = f->chunk->has[w]; m; m &= m - 1) {
            uint32_t place = w << 6 | (uint32_t)__builtin_ctzll(m);
            VX_TRY_RET(vx__loader_leaf(loader, place, none, f->chunk->mask[place], NULL, f->in->detail));
        }
    memset(f->chunk->has, 0, sizeof f->chunk->has);
    return VX_OK;
}
