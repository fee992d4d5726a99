/* The walker of NanoVDB's own project (PNanoVDB.h, Debian: libnanovdb-dev) reads what we export. */
#ifdef HAVE_PNANOVDB
#define PNANOVDB_C
#define PNANOVDB_BUF_BOUNDS_CHECK
#include <nanovdb/PNanoVDB.h>
#endif

#include "nvdb_case.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_PNANOVDB

/*
 * The grid alone, with the leaves as version 10.0.1 wants them for its index function: a flag that says that
 * only active voxels are numbered, and the first index behind a zero.  Everything else is as exported.
 */
static uint32_t *copy_grid(const struct nvdb_file *f)
{
    struct vx__nvdb_head h = nvdb_head(f);
    uint8_t *grid = malloc(h.grid.grid_bytes);
    memcpy(grid, f->bytes + f->grid_at, h.grid.grid_bytes);
    for (uint32_t i = 0; i < h.tree.n_nodes[0]; i++) {
        struct vx__nvdb_leaf_index leaf;
        uint8_t *at = grid + sizeof h.grid + h.tree.node_at[0] + i * sizeof leaf;
        memcpy(&leaf, at, sizeof leaf);
        leaf.head.flags |= VX__NVDB_LEAF_STATS;
        leaf.prefix = leaf.first;
        leaf.first = 0;
        memcpy(at, &leaf, sizeof leaf);
    }
    return (uint32_t *)(void *)grid;
}

struct walk {
    pnanovdb_buf_t buf;
    pnanovdb_readaccessor_t acc;
};

static bool is_active(struct walk *w, int32_t x, int32_t y, int32_t z)
{
    pnanovdb_coord_t c = {x, y, z};
    return pnanovdb_readaccessor_is_active(PNANOVDB_GRID_TYPE_INDEX, w->buf, &w->acc, &c);
}

static uint64_t index_at(struct walk *w, int32_t x, int32_t y, int32_t z)
{
    pnanovdb_coord_t c = {x, y, z};
    (void)pnanovdb_readaccessor_get_value_address(PNANOVDB_GRID_TYPE_INDEX, w->buf, &w->acc, &c);
    return pnanovdb_leaf_index_get_value_index(PNANOVDB_GRID_TYPE_INDEX, w->buf, w->acc.leaf, &c);
}

START_TEST(agrees)
{
    static const double at[][3] = {{0, 0, 0}, {-300, 200.5, 77}};
    struct vx_device *d = test_device(256 << 20);
    struct vx_map *map = nvdb_random_map(d, _i % 2 ? VX_OCCUPANCY : VX_TSDF, 0.05, at[_i / 2], at[_i / 2], 6,
                                         test_seed + (uint64_t)_i);
    struct map_walk *m = map_walk_newest(map);
    struct nvdb_file f;
    struct vx__nvdb_blind values;
    uint64_t values_at, n = 0, sum = 0, seed = test_seed;
    struct walk w;
    nvdb_export(map, VX_NVDB_INDEX, &f);
    ck_assert(nvdb_blind(&f, "vx:value", &values, &values_at));
    struct vx__nvdb_head h = nvdb_head(&f);
    w.buf = pnanovdb_make_buf(copy_grid(&f), h.grid.grid_bytes / 4);
    pnanovdb_grid_handle_t grid = {{0}};
    pnanovdb_readaccessor_init(&w.acc, pnanovdb_tree_get_root(w.buf, pnanovdb_grid_get_tree(w.buf, grid)));
    for (uint32_t i = 0; i < m->n_leaves; i++) {
        const struct walk_leaf *l = &m->leaves[i];
        for (int32_t v = 0; v < 512; v++) {
            int32_t x = l->at[0] + (v >> 6), y = l->at[1] + (v >> 3 & 7), z = l->at[2] + (v & 7);
            bool active = l->active[v >> 6] >> (v & 63) & 1;
            uint32_t value;
            ck_assert_msg(is_active(&w, x, y, z) == active, "voxel %d %d %d", x, y, z);
            if (!active)
                continue;
            uint64_t k = index_at(&w, x, y, z);
            ck_assert_uint_ge(k, 1);
            ck_assert_uint_le(k, m->n_active);
            memcpy(&value, f.bytes + f.grid_at + values_at + 4 * k, 4);
            ck_assert_uint_eq(value, l->value[v]);
            n++;
            sum += k;
        }
    }
    ck_assert_uint_gt(n, 1000);
    ck_assert_uint_eq(n, m->n_active);
    ck_assert_uint_eq(sum, n * (n + 1) / 2);
    for (int i = 0; i < 20000; i++) { /* anywhere in and around the map */
        int32_t v[3];
        uint32_t value;
        for (int a = 0; a < 3; a++)
            v[a] = m->cell_min[a] - 200 +
                   (int32_t)(test_random(&seed) % (uint64_t)(m->cell_max[a] - m->cell_min[a] + 400));
        ck_assert(is_active(&w, v[0], v[1], v[2]) ==
                  (map_walk_voxel(m, v[0], v[1], v[2], &value) == VXK_ACTIVE));
    }
    printf("%llu voxels and indices agree\n", (unsigned long long)n);
    free(w.buf.data);
    map_walk_free(m);
    vx_map_destroy(map);
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("pnanovdb");
    ck_add(s, agrees, 4);
    return core_test_main(argc, argv, s);
}

#else

int main(void)
{
    printf("SKIP: built without nanovdb/PNanoVDB.h (Debian: libnanovdb-dev)\n");
    return 77;
}

#endif
