/* field_dump.c - a distance field copied to the host. */
#include "field_dump.h"

#include <stdlib.h>
#include <string.h>

static void *fetch(struct vxk_queue *q, const void *dev, uint64_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);

    if (!p || (bytes && q->dev->ops->download(q, p, dev, bytes)) || q->dev->ops->wait(q))
        abort();
    return p;
}

vx_err field_dump_rebuilt(struct grid_fixture *f, struct field_dump *out)
{
    struct vx_map *map = grid_fixture_map(f);
    struct vx__reader_state *rs, kept;
    vx_err err;

    if (vx__reader_lock(map, &rs))
        abort();
    kept = *rs;
    rs->esdf = NULL;
    vx__reader_unlock(map);
    err = field_dump_get(f, out);
    if (vx__reader_lock(map, &rs))
        abort();
    if (rs->esdf)
        rs->esdf_destroy(map, rs->esdf);
    *rs = kept;
    vx__reader_unlock(map);
    return err;
}

vx_err field_dump_get(struct grid_fixture *f, struct field_dump *out)
{
    struct vx_map *map = grid_fixture_map(f);
    struct vx__reader_state *rs;
    struct vx__snapshot s;
    const struct vx__esdf *e;
    struct vx_detail detail;
    vx_err err;

    memset(out, 0, sizeof *out);
    if (vx__reader_lock(map, &rs) || vx__snapshot_pin(map, &s))
        abort();
    err = vx__esdf_refresh(map, rs, &s, NULL, &e, &detail);
    if (err == VX_OK) {
        out->view = e->view;
        out->n_leaves = e->n_leaves;
        out->n_chunks = e->n_chunks;
        out->n_pages = e->n_pages;
        out->bytes = e->bytes;
        out->n_updates = e->n_updates;
        out->n_computed = e->n_computed;
        out->view.keys = out->keys = fetch(rs->queue, e->keys, (e->view.slot_mask + 1ull) * sizeof *e->keys);
        out->view.index = out->index =
            fetch(rs->queue, e->index, (e->view.slot_mask + 1ull) * sizeof *e->index);
        out->view.table = out->table =
            fetch(rs->queue, e->table, (uint64_t)e->n_chunks * VXK_CELLS_A_CHUNK * sizeof *e->table);
        out->pages = calloc(e->n_pages + 1, sizeof *out->pages);
        for (uint32_t i = 0; i < e->n_pages; i++)
            out->pages[i] = fetch(rs->queue, e->pages[i], VXK_ESDF_PAGE_BYTES);
        out->view.pages = out->pages;
    }
    vx__snapshot_release(map, &s);
    vx__reader_unlock(map);
    return err;
}

void field_dump_fini(struct field_dump *d)
{
    for (uint32_t i = 0; i < d->n_pages; i++)
        free(d->pages[i]);
    free(d->pages);
    free(d->keys);
    free(d->index);
    free(d->table);
}

int field_dump_equal(const struct field_dump *a, const struct field_dump *b)
{
    if (a->n_leaves != b->n_leaves)
        return 0;
    for (uint32_t slot = 0; slot <= a->view.slot_mask; slot++) {
        int32_t kx, ky, kz, x, y, z;
        if (a->keys[slot] == VXK_NO_KEY)
            continue;
        vxk_key_xyz(a->keys[slot], &kx, &ky, &kz);
        for (uint32_t place = 0; place < VXK_CELLS_A_CHUNK; place++) {
            vxk_place_xyz(place, &x, &y, &z);
            const uint16_t *p = vxk_esdf_leaf(&a->view, kx * 16 + x, ky * 16 + y, kz * 16 + z);
            const uint16_t *q = vxk_esdf_leaf(&b->view, kx * 16 + x, ky * 16 + y, kz * 16 + z);
            if (!p != !q || (p && memcmp(p, q, 512 * sizeof *p)))
                return 0;
        }
    }
    return 1;
}

uint64_t field_dump_within(const struct field_dump *d)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < (uint64_t)d->n_chunks * VXK_CELLS_A_CHUNK; i++)
        for (uint32_t k = 0; d->table[i] != VXK_NONE && k < 512; k++)
            n += (vxk_esdf_voxels(d->view.pages, d->table[i])[k] & VXK_ESDF_FAR) != VXK_ESDF_FAR;
    return n;
}
