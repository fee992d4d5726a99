/* NanoVDB files: what is written, the way back, files of others, what is refused. */
#include "nvdb_case.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *data_dir(void)
{
    const char *dir = getenv("VOXELD_TEST_DATA");
    return dir ? dir : SOURCE_ROOT "/../shared/data";
}

/* A recorded file, or false with the reason printed. */
static bool recorded(const char *name, struct nvdb_file *out)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/nvdb/%s", data_dir(), name);
    if (nvdb_load(path, out))
        return true;
    printf("skipped: no %s (set VOXELD_TEST_DATA)\n", path);
    return false;
}

static const double ORIGIN[3];

static void ck_same(struct vx_map *a, struct vx_map *b)
{
    uint8_t p[32], q[32];
    ck_ok(vx_map_digest(a, p, NULL));
    ck_ok(vx_map_digest(b, q, NULL));
    ck_assert_mem_eq(p, q, sizeof p);
}

/* ------------------------------------------------------------------ there and back */

static const struct {
    enum vx_mode mode;
    double voxel_m, at[3];
    int n_frames;
    bool far; /* the origin stays at 0 */
} MAPS[] = {{VX_TSDF, 0.05, {0, 0, 0}, 6, false},
            {VX_TSDF, 0.02, {500123.4, -4000321.1, 17.3}, 3, false},
            {VX_TSDF, 0.25, {-3.21, 8.7, 0.001}, 1, false},
            {VX_OCCUPANCY, 0.1, {0, 0, 0}, 6, false},
            {VX_OCCUPANCY, 0.013, {-1000.123, 77, 3}, 3, false},
            {VX_TSDF, 0.05, {0, 0, 0}, 0, false},
            /* in the last root tiles of the voxel range, 2^27 voxels from the origin */
            {VX_TSDF, 0.05, {6710886.4 - 15, 0, -6710886.4 + 15}, 4, true},
            {VX_OCCUPANCY, 0.25, {-33554432 + 75, 33554432 - 75, 5}, 4, true}};

START_TEST(round_trip)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map *both[2];
    struct vx_map_info a, b;
    struct vx_detail detail = {0};
    struct nvdb_file f;
    const struct vx_nvdb_import o = nvdb_defaults();
    both[0] =
        nvdb_random_map(d, MAPS[_i].mode, MAPS[_i].voxel_m, MAPS[_i].at, MAPS[_i].far ? ORIGIN : MAPS[_i].at,
                        MAPS[_i].n_frames, test_seed + (uint64_t)_i);
    nvdb_export(both[0], VX_NVDB_INDEX, &f);
    vx_err err = nvdb_import(d, &o, f.bytes, f.n, &both[1], &detail);
    ck_assert_msg(err == VX_OK, "%s %s %s", vx_err_name(err), detail.field, detail.text);
    ck_device(d, both, 2, "imported");
    ck_same(both[0], both[1]);
    ck_ok(vx_map_get_info(both[0], &a));
    ck_ok(vx_map_get_info(both[1], &b));
    ck_assert_uint_eq(b.epoch, 1);
    ck_assert_uint_eq(a.n_voxels, b.n_voxels);
    ck_assert_uint_eq(a.n_tiles, b.n_tiles);
    ck_assert_int_eq(a.params.mode, b.params.mode);
    ck_assert_mem_eq(a.params.origin_m, b.params.origin_m, sizeof a.params.origin_m);
    ck_assert_double_eq(a.params.voxel_size_m, b.params.voxel_size_m);
    ck_assert_double_eq(a.params.truncation_voxels, b.params.truncation_voxels);
    ck_assert_double_eq(a.params.esdf_max_distance_m, b.params.esdf_max_distance_m);
    if (MAPS[_i].n_frames)
        ck_assert_uint_gt(a.n_tiles, 0);
    /* the map lives on: the same frame gives the same again */
    if (MAPS[_i].n_frames) {
        struct test_frame t;
        struct vx_frame_result result;
        uint64_t seed = test_seed + 99;
        test_any_frame(&t, &seed, 60 * MAPS[_i].voxel_m, MAPS[_i].at, 30 * MAPS[_i].voxel_m);
        ck_ok(vx_map_integrate(both[0], &t.f, &result, NULL));
        ck_ok(vx_map_integrate(both[1], &t.f, &result, NULL));
        test_frame_fini(&t);
        ck_device(d, both, 2, "a frame later");
        ck_same(both[0], both[1]);
    }
    vx_map_destroy(both[0]);
    vx_map_destroy(both[1]);
    ck_device(d, NULL, 0, "after destroy");
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ what is written */

/* A reader of its own: index of a voxel in an OnIndex grid by the offsets of the format alone; 0 = none. */
static uint64_t index_of(const uint8_t *grid, int32_t x, int32_t y, int32_t z)
{
    const uint8_t *root = grid + 736, *upper, *lower, *leaf;
    uint64_t key = (uint64_t)((uint32_t)z >> 12) | (uint64_t)((uint32_t)y >> 12) << 21 |
                   (uint64_t)((uint32_t)x >> 12) << 42;
    uint64_t word, prefix, first, k;
    uint32_t n_tiles, slot, w, b;
    int64_t child = 0;
    memcpy(&n_tiles, root + 24, 4);
    for (uint32_t i = 0; i < n_tiles && !child; i++) {
        memcpy(&k, root + 96 + 32 * i, 8);
        if (k == key)
            memcpy(&child, root + 96 + 32 * i + 8, 8);
    }
    if (!child)
        return 0;
    upper = root + child;
    slot = ((uint32_t)x & 4095) >> 7 << 10 | ((uint32_t)y & 4095) >> 7 << 5 | ((uint32_t)z & 4095) >> 7;
    if (!(upper[4128 + slot / 8] >> slot % 8 & 1))
        return 0;
    memcpy(&child, upper + 8256 + 8 * slot, 8);
    lower = upper + child;
    slot = ((uint32_t)x & 127) >> 3 << 8 | ((uint32_t)y & 127) >> 3 << 4 | ((uint32_t)z & 127) >> 3;
    if (!(lower[544 + slot / 8] >> slot % 8 & 1))
        return 0;
    memcpy(&child, lower + 1088 + 8 * slot, 8);
    leaf = lower + child;
    w = (uint32_t)x & 7;
    b = ((uint32_t)y & 7) << 3 | ((uint32_t)z & 7);
    memcpy(&word, leaf + 16 + 8 * w, 8);
    memcpy(&first, leaf + 80, 8);
    memcpy(&prefix, leaf + 88, 8);
    if (!(word >> b & 1))
        return 0;
    return first + (w ? prefix >> 9 * (w - 1) & 511 : 0) +
           (uint64_t)__builtin_popcountll(word & ((1ull << b) - 1));
}

static uint32_t crc_slow(const uint8_t *p, uint64_t n)
{
    uint32_t c = 0xffffffffu;
    while (n--) {
        c ^= *p++;
        for (int i = 0; i < 8; i++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

/* The whole checksum, by the format's words. */
static void ck_sums(const struct nvdb_file *f)
{
    const uint8_t *g = f->bytes + f->grid_at;
    struct vx__nvdb_head h = nvdb_head(f);
    uint64_t size = h.grid.grid_bytes - 736, n = size >> 12;
    uint32_t *blocks = malloc((n + 1) * 4);
    for (uint64_t i = 0; i < n; i++)
        blocks[i] = crc_slow(g + 736 + 4096 * i, i + 1 < n ? 4096 : size - 4096 * i);
    ck_assert_uint_eq(h.grid.head_crc, crc_slow(g + 16, 720));
    ck_assert_uint_eq(h.grid.tail_crc, crc_slow((const uint8_t *)blocks, n * 4));
    free(blocks);
}

START_TEST(written_index)
{
    struct vx_device *d = test_device(256 << 20);
    const double at[3] = {1, -2, 3};
    struct vx_map *map = nvdb_random_map(d, _i ? VX_OCCUPANCY : VX_TSDF, 0.05, at, at, 4, test_seed + 7);
    struct map_walk *w = map_walk_newest(map);
    struct nvdb_file f;
    struct vx__nvdb_blind value, weight, main_;
    uint64_t value_at, weight_at = 0, main_at, n = 0, sum = 0;
    nvdb_export(map, VX_NVDB_INDEX, &f);
    const uint8_t *g = f.bytes + f.grid_at;
    struct vx__nvdb_head h = nvdb_head(&f);
    ck_assert_mem_eq(f.bytes, "NanoVDB2", 8);
    ck_assert_mem_eq(g, "NanoVDB1", 8);
    ck_assert_uint_eq(h.grid.version, 0x04002402);
    ck_assert_uint_eq(h.grid.flags, 0x22);
    ck_assert_uint_eq(h.grid.type, 20);
    ck_assert_uint_eq(h.grid.class_, 8);
    ck_assert_uint_eq(h.grid.grid_bytes, f.n - f.grid_at);
    ck_assert_uint_eq(h.grid.n_values, w->n_active + 1);
    ck_assert_uint_eq(h.tree.n_voxels, w->n_active);
    ck_assert_str_eq(h.grid.name, "test");
    ck_assert_uint_eq(h.grid.grid_bytes % 32, 0);
    for (int a = 0; a < 3; a++) {
        ck_assert_double_eq_tol(h.grid.map.vec[a], at[a] + 0.025, 1e-12);
        ck_assert_double_eq(h.grid.map.mat[4 * a], 0.05);
        ck_assert_double_eq(h.grid.voxel_size[a], 0.05);
    }
    ck_sums(&f);
    ck_assert(nvdb_blind(&f, "vx:value", &value, &value_at));
    ck_assert(nvdb_blind(&f, _i ? "log_odds" : "tsdf", &main_, &main_at));
    ck_assert(nvdb_blind(&f, "weight", &weight, &weight_at) == !_i);
    ck_assert_uint_eq(value.n, w->n_active + 1);
    ck_assert_uint_eq(main_.n, w->n_active + 1);
    double unit = _i ? 1.0 / 1024 : 3 * 0.05 / 32767;
    for (uint32_t i = 0; i < w->n_leaves; i++) {
        const struct walk_leaf *l = &w->leaves[i];
        for (int32_t v = 0; v < 512; v++) {
            uint64_t k = index_of(g, l->at[0] + (v >> 6), l->at[1] + (v >> 3 & 7), l->at[2] + (v & 7));
            uint32_t packed;
            float x;
            ck_assert((k != 0) == (l->active[v >> 6] >> (v & 63) & 1));
            if (!k)
                continue;
            n++;
            sum += k;
            ck_assert_uint_le(k, w->n_active);
            memcpy(&packed, g + value_at + 4 * k, 4);
            ck_assert_uint_eq(packed, l->value[v]);
            memcpy(&x, g + main_at + 4 * k, 4);
            ck_assert_float_eq(x, (float)((int16_t)(packed & 0xffff) * unit));
            if (!_i) {
                memcpy(&x, g + weight_at + 4 * k, 4);
                ck_assert_float_eq(x, (float)(packed >> 16 & 255));
            }
        }
    }
    ck_assert_uint_eq(n, w->n_active); /* each index once: their number and their sum */
    ck_assert_uint_eq(sum, n * (n + 1) / 2);
    map_walk_free(w);
    vx_map_destroy(map);
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/* Values of a Float file come back: exact for log-odds, and for distances as the truncation is the same. */
START_TEST(written_float)
{
    struct vx_device *d = test_device(256 << 20);
    const double at[3] = {0, 0, 0};
    struct vx_map *map = nvdb_random_map(d, _i ? VX_OCCUPANCY : VX_TSDF, 0.05, at, at, 4, test_seed + 8),
                  *back;
    struct map_walk *w = map_walk_newest(map), *v;
    struct vx_nvdb_import o = nvdb_defaults();
    struct vx_detail detail = {0};
    struct nvdb_file f;
    nvdb_export(map, VX_NVDB_FLOAT, &f);
    struct vx__nvdb_head h = nvdb_head(&f);
    ck_assert_mem_eq(f.bytes, "NanoVDB0", 8);
    ck_assert_mem_eq(f.bytes + f.grid_at, "NanoVDB0", 8);
    ck_assert_uint_eq(h.grid.head_crc & h.grid.tail_crc, 0xffffffffu);
    ck_assert_uint_eq(h.grid.type, 1);
    ck_assert_uint_eq(h.grid.class_, _i ? 2 : 1);
    if (_i) {
        ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &back, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, "mode");
        o.has_mode = true;
        o.params.mode = VX_OCCUPANCY;
    }
    o.weight = 7;
    ck_ok(nvdb_import(d, &o, f.bytes, f.n, &back, &detail));
    ck_map(back, "float");
    v = map_walk_newest(back);
    ck_assert_uint_eq(v->n_active, w->n_active);
    ck_assert_uint_eq(v->n_tiles, 0);
    for (uint32_t i = 0; i < v->n_leaves; i++)
        for (int32_t n = 0; n < 512; n++) {
            const int32_t *l = v->leaves[i].at;
            uint32_t value;
            if (!(v->leaves[i].active[n >> 6] >> (n & 63) & 1))
                continue;
            ck_assert_int_eq(map_walk_voxel(w, l[0] + (n >> 6), l[1] + (n >> 3 & 7), l[2] + (n & 7), &value),
                             VXK_ACTIVE);
            ck_assert_uint_eq(v->leaves[i].value[n], _i ? value : (value & 0xffff) | 7 << 16);
        }
    map_walk_free(w);
    map_walk_free(v);
    vx_map_destroy(map);
    vx_map_destroy(back);
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ files of NanoVDB 32.9.2 */

START_TEST(recorded_files)
{
    static const char *const names[] = {"oi_full.nvdb", "oi_blind.nvdb", "f_nock.nvdb"};
    struct vx_device *d = test_device(256 << 20);
    struct vx_nvdb_import o = nvdb_defaults();
    struct vx_detail detail = {0};
    struct vx_map *map;
    struct vx_map_info info;
    struct nvdb_file f;
    o.weight = 5;
    if (recorded(names[_i], &f)) {
        vx_err err = nvdb_import(d, &o, f.bytes, f.n, &map, &detail);
        ck_assert_msg(err == VX_OK, "%s: %s %s", names[_i], detail.field, detail.text);
        ck_device(d, &map, 1, names[_i]);
        ck_ok(vx_map_get_info(map, &info));
        ck_assert_uint_eq(info.n_voxels, 30254);
        ck_assert_uint_eq(info.n_leaves, 158);
        ck_assert_uint_eq(info.n_tiles, 0);
        ck_assert_double_eq(info.params.voxel_size_m, 1);
        ck_assert_double_eq(info.params.origin_m[0], -0.5);
        struct map_walk *w = map_walk_newest(map);
        for (uint32_t i = 0; i < w->n_leaves; i++)
            for (int v = 0; v < 512; v++) {
                const struct walk_leaf *l = &w->leaves[i];
                double x = l->at[0] + (v >> 6), y = l->at[1] + (v >> 3 & 7), z = l->at[2] + (v & 7);
                if (!(l->active[v >> 6] >> (v & 63) & 1))
                    continue;
                double r = sqrt(x * x + y * y + z * z), t = vxk_tsdf_distance(l->value[v]) * 3.0 / 32767;
                ck_assert_uint_eq(vxk_tsdf_weight(l->value[v]), _i ? 5 : 0);
                if (_i == 2) /* the band of a sphere of 20 voxels */
                    ck_assert_double_eq_tol(t, r - 20, 1e-3);
                if (_i == 0)
                    ck_assert_double_eq(t, 0);
            }
        map_walk_free(w);
        vx_map_destroy(map);
        nvdb_free(&f);
    }
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ what is refused */

struct patch {
    const char *what;
    vx_err err;
    const char *field;
    size_t at; /* in the grid; AT_FILE + byte of the file, AT_META + byte of the meta record */
    int n_bytes;
    uint64_t value;
};
enum { AT_FILE = 1 << 20, AT_META = 2 << 20, LEAF0 = 3 << 20, LOWER0 = 4 << 20, UPPER0 = 5 << 20 };
#define IN_GRID(f) offsetof(struct vx__nvdb_grid, f)
#define IN_TREE(f) (sizeof(struct vx__nvdb_grid) + offsetof(struct vx__nvdb_tree, f))

static const struct patch PATCHES[] = {
    {"file magic", VX_E_INVALID, "magic", AT_FILE, 8, 0x1122334455667788},
    {"file version", VX_E_VERSION, "version", AT_FILE + 8, 4, 33u << 21},
    {"zip", VX_E_UNIMPLEMENTED, "codec", AT_FILE + 14, 2, 1},
    {"no grids", VX_E_INVALID, "n_grids", AT_FILE + 12, 2, 0},
    {"name length", VX_E_INVALID, "meta.name_bytes", AT_META + 136, 4, 0},
    {"file bytes", VX_E_DATA_LOSS, "meta.file_bytes", AT_META + 8, 8, 1ull << 60},
    {"meta type", VX_E_INVALID, "meta.type", AT_META + 32, 4, 3},
    {"meta voxels", VX_E_INVALID, "meta.n_voxels", AT_META + 24, 8, 5},
    {"meta box", VX_E_INVALID, "meta.box", AT_META + 88, 4, 12345},
    {"meta codec", VX_E_UNIMPLEMENTED, "meta.codec", AT_META + 168, 2, 2},
    {"grid magic", VX_E_INVALID, "grid.magic", 0, 8, 1},
    {"grid version", VX_E_VERSION, "version", IN_GRID(version), 4, 31u << 21},
    {"depth first", VX_E_UNIMPLEMENTED, "flags", IN_GRID(flags), 4, 2},
    {"dense index", VX_E_UNIMPLEMENTED, "type", IN_GRID(type), 4, 19},
    {"grid bytes", VX_E_DATA_LOSS, "grid_bytes", IN_GRID(grid_bytes), 8, 1ull << 50},
    {"mirrored", VX_E_INVALID, "map", IN_GRID(map.mat), 8, 0xbff0000000000000},
    {"turned", VX_E_INVALID, "map", IN_GRID(map.mat) + 8, 8, 0x3ff0000000000000},
    {"no cubes", VX_E_INVALID, "map", IN_GRID(map.mat) + 32, 8, 0x3ff0000000000000},
    {"place nan", VX_E_INVALID, "map", IN_GRID(map.vec), 8, 0x7ff8000000000000},
    {"voxel size", VX_E_INVALID, "voxel_size", IN_GRID(voxel_size), 8, 0x3ff0000000000000},
    {"blind at", VX_E_INVALID, "blind_at", IN_GRID(blind_at), 8, 0x8000000000000000},
    {"blind count", VX_E_INVALID, "n_blind", IN_GRID(n_blind), 4, 100000},
    {"value count", VX_E_INVALID, "vx:value", IN_GRID(n_values), 8, 1},
    {"leaf offset", VX_E_INVALID, "tree.node_at", IN_TREE(node_at), 8, 64},
    {"root offset", VX_E_INVALID, "tree.node_at[3]", IN_TREE(node_at[3]), 8, 128},
    {"active tiles", VX_E_INVALID, "meta.n_voxels", IN_TREE(n_tiles), 4, 1},
    {"tile count", VX_E_INVALID, "root.n_tiles", 736 + 24, 4, 0xffffffff},
    {"tile key", VX_E_INVALID, "root.tiles", 736 + 96, 8, 1ull << 63},
    {"tile child", VX_E_INVALID, "root.tiles", 736 + 96 + 8, 8, 12345},
    {"tile child least", VX_E_INVALID, "root.tiles", 736 + 96 + 8, 8, 1ull << 63},
    {"tile without child", VX_E_INVALID, "root.tiles", 736 + 96 + 8, 8, 0},
    {"far tile", VX_E_INVALID, "root.tiles", 736 + 96, 8, 0x7ffffull << 42},
    {"root box", VX_E_INVALID, "meta.box", 736, 4, 0x7fffffff},
    {"upper tile", VX_E_UNIMPLEMENTED, "value_mask", UPPER0 + 32, 8, ~0ull},
    {"upper box", VX_E_INVALID, "upper.box", UPPER0 + 12, 4, 1u << 30},
    {"lower without parent", VX_E_INVALID, "upper.table", UPPER0 + 4128, 1, 0xff},
    {"lower tile", VX_E_UNIMPLEMENTED, "value_mask", LOWER0 + 32, 8, ~0ull},
    {"lower box", VX_E_INVALID, "lower.box", LOWER0 + 12, 4, 1u << 30},
    {"leaf origin", VX_E_INVALID, "leaf.box", LEAF0, 4, 0x7ffffff8},
    {"leaf box", VX_E_INVALID, "leaf.box", LEAF0 + 12, 1, 200},
    {"leaf mask", VX_E_INVALID, "leaf.", LEAF0 + 16, 8, 0x0123456789abcdef},
    {"leaf index", VX_E_INVALID, "leaf.offset", LEAF0 + 80, 8, 0},
    {"leaf index high", VX_E_INVALID, "leaf.offset", LEAF0 + 80, 8, ~0ull},
    {"leaf prefix", VX_E_INVALID, "leaf.prefix_sum", LEAF0 + 88, 8, ~0ull},
};

static uint64_t patch_at(const struct nvdb_file *f, size_t at)
{
    struct vx__nvdb_head h = nvdb_head(f);
    uint64_t offset = at & (AT_FILE - 1);
    switch (at & ~(size_t)(AT_FILE - 1)) {
    case AT_FILE:
        return offset;
    case AT_META:
        return sizeof(struct vx__nvdb_file) + offset;
    case LEAF0:
        return f->grid_at + 672 + (uint64_t)h.tree.node_at[0] + offset;
    case LOWER0:
        return f->grid_at + 672 + (uint64_t)h.tree.node_at[1] + offset;
    case UPPER0:
        return f->grid_at + 672 + (uint64_t)h.tree.node_at[2] + offset;
    default:
        return f->grid_at + offset;
    }
}

START_TEST(refusals)
{
    struct vx_device *d = test_device(64 << 20);
    const double at[3] = {0, 0, 0};
    struct vx_map *map = nvdb_random_map(d, VX_TSDF, 0.05, at, at, 1, test_seed), *none;
    struct vx_nvdb_import o = nvdb_defaults();
    struct nvdb_file f, p;
    nvdb_export(map, VX_NVDB_INDEX, &f);
    vx_map_destroy(map);
    for (size_t i = 0; i < sizeof PATCHES / sizeof *PATCHES; i++) {
        const struct patch *q = &PATCHES[i];
        struct vx_detail detail = {0};
        p = f;
        p.bytes = malloc(f.n);
        memcpy(p.bytes, f.bytes, f.n);
        nvdb_no_sum(&p);
        memcpy(p.bytes + patch_at(&f, q->at), &q->value, (size_t)q->n_bytes);
        vx_err err = nvdb_import(d, &o, p.bytes, p.n, &none, &detail);
        ck_assert_msg(err == q->err && strncmp(detail.field, q->field, strlen(q->field)) == 0,
                      "%s: %s field '%s', '%s'", q->what, vx_err_name(err), detail.field, detail.text);
        ck_assert_msg(detail.text[0] && !none, "%s: no words", q->what);
        nvdb_free(&p);
    }
    for (size_t i = 0; i < 3; i++) { /* the checksum sees head, nodes and blind data */
        const uint64_t places[] = {f.grid_at + 60, f.grid_at + 800, f.n - 1};
        struct vx_detail detail = {0};
        f.bytes[places[i]] ^= 1;
        ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &none, &detail),
                         i ? VX_E_DATA_LOSS : VX_E_DATA_LOSS);
        ck_assert_str_eq(detail.field, "checksum");
        f.bytes[places[i]] ^= 1;
    }
    ck_device(d, NULL, 0, "after refusals");
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/* Imports with the float of index 5 of blind data `name` set to `value`. */
static vx_err import_edited(struct vx_device *d, const struct nvdb_file *f, const char *name, float value,
                            const char *channel, struct vx_detail *detail)
{
    struct vx_nvdb_import o = nvdb_defaults();
    struct nvdb_file p = *f;
    struct vx__nvdb_blind b;
    struct vx_map *map = NULL;
    uint64_t at;
    o.channel = channel;
    p.bytes = malloc(f->n);
    memcpy(p.bytes, f->bytes, f->n);
    nvdb_no_sum(&p);
    ck_assert(nvdb_blind(&p, name, &b, &at) && b.n > 6);
    memcpy(p.bytes + p.grid_at + at + 5 * sizeof value, &value, sizeof value);
    const vx_err err = nvdb_import(d, &o, p.bytes, p.n, &map, detail);
    ck_assert((err == VX_OK) == (map != NULL));
    vx_map_destroy(map);
    nvdb_free(&p);
    return err;
}

/* What others see must say what we read; weights that are none are refused. */
START_TEST(edited)
{
    struct vx_device *d = test_device(64 << 20);
    const double at[3] = {0, 0, 0};
    static const float no_weights[] = {-1, -1e-30f, NAN, INFINITY, -INFINITY},
                       weights[] = {0, 255, 1000, 3e38f};
    for (int mode = 0; mode < 2; mode++) {
        struct vx_map *map = nvdb_random_map(d, mode ? VX_OCCUPANCY : VX_TSDF, 0.05, at, at, 1, test_seed);
        const char *name = mode ? "log_odds" : "tsdf";
        struct vx_detail detail = {0};
        struct nvdb_file f;
        nvdb_export(map, VX_NVDB_INDEX, &f);
        vx_map_destroy(map);
        ck_assert_int_eq(import_edited(d, &f, name, 0.01234f, NULL, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, name);
        ck_assert_ptr_nonnull(strstr(detail.text, "--channel"));
        ck_assert_int_eq(import_edited(d, &f, name, NAN, NULL, &detail), VX_E_INVALID);
        ck_assert_int_eq(import_edited(d, &f, name, 0.01234f, name, &detail), VX_OK);
        if (!mode) {
            ck_assert_int_eq(import_edited(d, &f, "weight", 77.5f, NULL, &detail), VX_E_INVALID);
            ck_assert_str_eq(detail.field, "weight");
            for (size_t i = 0; i < sizeof no_weights / sizeof *no_weights; i++) {
                ck_assert_int_eq(import_edited(d, &f, "weight", no_weights[i], name, &detail), VX_E_INVALID);
                ck_assert_str_eq(detail.field, "weight");
            }
            for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
                ck_assert_int_eq(import_edited(d, &f, "weight", weights[i], name, &detail), VX_OK);
        }
        nvdb_free(&f);
    }
    ck_device(d, NULL, 0, "after edited files");
    vx_device_close(d);
}
END_TEST

/* Cap, limit, cancel: nothing stays. */
static bool yes(void *context)
{
    return --*(int *)context < 0;
}

START_TEST(no_room)
{
    struct vx_device *d = test_device(256 << 20);
    const double at[3] = {0, 0, 0};
    struct vx_map *map = nvdb_random_map(d, VX_TSDF, 0.02, at, at, 4, test_seed), *none;
    struct vx_nvdb_import o = nvdb_defaults();
    struct vx_detail detail = {0};
    struct nvdb_file f;
    nvdb_export(map, VX_NVDB_INDEX, &f);
    vx_map_destroy(map);
    o.params.limit_bytes = 100000;
    ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &none, &detail), VX_E_EXHAUSTED);
    ck_assert_str_eq(detail.field, "limit_bytes");
    ck_device(d, NULL, 0, "after the limit");
    o.params.limit_bytes = 0;
    for (int after = 0; after < 4; after++) {
        int left = after;
        o.watch.cancelled = yes;
        o.watch.context = &left;
        ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &none, &detail), VX_E_CANCELLED);
        ck_device(d, NULL, 0, "after a cancel");
    }
    o.watch.cancelled = NULL;
    vx_device_close(d);
    d = test_device(16 << 20);
    vx_err err = nvdb_import(d, &o, f.bytes, f.n, &none, &detail);
    if (err == VX_OK)
        vx_map_destroy(none);
    else
        ck_assert_int_eq(err, VX_E_EXHAUSTED);
    ck_device(d, NULL, 0, "after the cap");
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ beside frames */

enum { FRAMES = 12, EXPORTS = 6 };

struct beside {
    struct vx_map *map;
    uint64_t epoch[EXPORTS];
    struct nvdb_file file[EXPORTS];
};

static void *export_often(void *context)
{
    struct beside *b = context;
    for (int i = 0; i < EXPORTS; i++) {
        const struct vx_nvdb_export o = {.format = VX_NVDB_INDEX};
        struct vx_reply reply;
        int f = nvdb_fd(NULL, 0);
        ck_ok(vx_nvdb_write(b->map, &o, f, NULL, &reply, NULL));
        nvdb_take(f, &b->file[i]);
        close(f);
        b->epoch[i] = reply.epoch;
    }
    return NULL;
}

/* Exports while frames go on: each file is one epoch, whole. */
START_TEST(beside_frames)
{
    struct vx_device *d = test_device(256 << 20);
    const double at[3] = {0, 0, 0};
    struct beside b = {.map = nvdb_random_map(d, VX_TSDF, 0.05, at, at, 1, test_seed)};
    const struct vx_nvdb_import o = nvdb_defaults();
    uint8_t digest[FRAMES + 2][32], got[32];
    uint64_t seed = test_seed;
    pthread_t thread;
    ck_ok(vx_map_digest(b.map, digest[1], NULL));
    ck_assert_int_eq(pthread_create(&thread, NULL, export_often, &b), 0);
    for (int i = 0; i < FRAMES; i++) {
        struct test_frame t;
        struct vx_frame_result result;
        test_any_frame(&t, &seed, 3, at, 1.5);
        ck_ok(vx_map_integrate(b.map, &t.f, &result, NULL));
        test_frame_fini(&t);
        ck_ok(vx_map_digest(b.map, digest[result.epoch], NULL));
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < EXPORTS; i++) {
        struct vx_map *map;
        ck_ok(nvdb_import(d, &o, b.file[i].bytes, b.file[i].n, &map, NULL));
        ck_ok(vx_map_digest(map, got, NULL));
        ck_assert_mem_eq(got, digest[b.epoch[i]], sizeof got);
        vx_map_destroy(map);
        nvdb_free(&b.file[i]);
    }
    ck_device(d, &b.map, 1, "after exports");
    vx_map_destroy(b.map);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ children, gaps, bytes */

/* Damage to the first child of the first node: itself, its brother, a place between nodes, far away. */
START_TEST(children)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map *map = nvdb_random_map(d, VX_TSDF, 0.05, ORIGIN, ORIGIN, 1, test_seed), *none;
    struct vx_nvdb_import o = nvdb_defaults();
    struct nvdb_file f;
    nvdb_export(map, VX_NVDB_INDEX, &f);
    vx_map_destroy(map);
    nvdb_no_sum(&f);
    struct vx__nvdb_head h = nvdb_head(&f);
    for (int level = 0; level < 2; level++) {
        uint64_t node = f.grid_at + 672 + (uint64_t)h.tree.node_at[level ? 1 : 2], masks = level ? 544 : 4128,
                 table = level ? 1088 : 8256, step = level ? 96 : 33856;
        uint32_t slot = 0;
        while (!(f.bytes[node + masks + slot / 8] >> slot % 8 & 1))
            slot++;
        int64_t was, bad[6];
        memcpy(&was, f.bytes + node + table + 8 * slot, 8);
        bad[0] = 0;
        bad[1] = was + (int64_t)step;
        bad[2] = was + 16;
        bad[3] = was - (int64_t)step;
        bad[4] = INT64_MAX;
        bad[5] = INT64_MIN;
        for (int i = 0; i < 6; i++) {
            struct vx_detail detail = {0};
            memcpy(f.bytes + node + table + 8 * slot, &bad[i], 8);
            ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &none, &detail), VX_E_INVALID);
            ck_assert_str_eq(detail.field, level ? "lower.table" : "upper.table");
        }
        memcpy(f.bytes + node + table + 8 * slot, &was, 8);
    }
    ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &map, NULL), VX_OK);
    vx_map_destroy(map);
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/*
 * The same grid as somebody else's, numbered with gaps (four indices behind each leaf, for statistics): the
 * values come from where the numbers say.  A second leaf with the first one's numbers is refused.
 */
START_TEST(gaps)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map *map = nvdb_random_map(d, VX_TSDF, 0.05, ORIGIN, ORIGIN, 2, test_seed), *back;
    struct map_walk *w = map_walk_newest(map), *v;
    struct vx_nvdb_import o = nvdb_defaults();
    struct vx__nvdb_blind b;
    struct vx_detail detail = {0};
    struct nvdb_file f;
    uint64_t at;
    nvdb_export(map, VX_NVDB_INDEX, &f);
    struct vx__nvdb_head h = nvdb_head(&f);
    ck_assert(nvdb_blind(&f, "tsdf", &b, &at));
    const uint64_t n = h.grid.n_values + 4ull * h.tree.n_nodes[0], more = (n * 4 + 31) / 32 * 32;
    float *old = (float *)malloc(h.grid.n_values * 4), *wide = (float *)malloc(more);
    memcpy(old, f.bytes + f.grid_at + at, h.grid.n_values * 4);
    memset(wide, 0xff, more); /* NaN where no voxel is */
    f.bytes = realloc(f.bytes, f.n + more);
    uint64_t leaf_at = f.grid_at + 672 + (uint64_t)h.tree.node_at[0];
    for (uint64_t i = 0; i < h.tree.n_nodes[0]; i++) {
        struct vx__nvdb_leaf_index l;
        uint32_t count = 0;
        memcpy(&l, f.bytes + leaf_at + i * sizeof l, sizeof l);
        for (int x = 0; x < 8; x++)
            count += (uint32_t)__builtin_popcountll(l.head.mask[x]);
        memcpy(wide + l.first + 4 * i, old + l.first, count * 4);
        l.first += 4 * i;
        memcpy(f.bytes + leaf_at + i * sizeof l, &l, sizeof l);
    }
    memcpy(f.bytes + f.n, wide, more);
    /* heads: one channel, behind all that was there */
    b.at = (int64_t)(f.n - f.grid_at) - h.grid.blind_at;
    b.n = n;
    memcpy(f.bytes + f.grid_at + h.grid.blind_at, &b, sizeof b);
    h.grid.n_blind = 1;
    h.grid.n_values = n;
    h.grid.grid_bytes += more;
    f.n += more;
    memcpy(f.bytes + f.grid_at, &h, sizeof h);
    for (int i = 0; i < 2; i++) /* the meta record: sizes in memory and on disk */
        memcpy(f.bytes + sizeof(struct vx__nvdb_file) + 8 * i, &h.grid.grid_bytes, 8);
    nvdb_no_sum(&f);
    o.weight = 2;
    vx_err err = nvdb_import(d, &o, f.bytes, f.n, &back, &detail);
    ck_assert_msg(err == VX_OK, "%s %s %s", vx_err_name(err), detail.field, detail.text);
    ck_map(back, "gaps");
    v = map_walk_newest(back);
    ck_assert_uint_eq(v->n_active, w->n_active);
    for (uint32_t i = 0; i < v->n_leaves; i++)
        for (int32_t k = 0; k < 512; k++) {
            const int32_t *p = v->leaves[i].at;
            uint32_t value;
            if (!(v->leaves[i].active[k >> 6] >> (k & 63) & 1))
                continue;
            ck_assert_int_eq(map_walk_voxel(w, p[0] + (k >> 6), p[1] + (k >> 3 & 7), p[2] + (k & 7), &value),
                             VXK_ACTIVE);
            ck_assert_uint_eq(v->leaves[i].value[k], (value & 0xffff) | 2 << 16);
        }
    map_walk_free(v);
    vx_map_destroy(back);
    memcpy(f.bytes + leaf_at + 96 + 80, f.bytes + leaf_at + 80, 8);
    ck_assert_int_eq(nvdb_import(d, &o, f.bytes, f.n, &back, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "leaf.offset");
    map_walk_free(w);
    vx_map_destroy(map);
    free(old);
    free(wide);
    nvdb_free(&f);
    vx_device_close(d);
}
END_TEST

/* The same frames give the same file, byte for byte, on this backend as on one CPU thread. */
START_TEST(same_bytes)
{
    struct vx_device_params p = {.backend = VXK_CPU, .n_threads = 1, .cap_bytes = 256 << 20};
    struct vx_device *d[2] = {test_device(256 << 20)};
    struct nvdb_file f[2];
    ck_ok(vx_device_open(&p, &d[1], NULL));
    for (int format = 0; format < 2; format++) {
        for (int i = 0; i < 2; i++) {
            struct vx_map *map =
                nvdb_random_map(d[i], _i ? VX_OCCUPANCY : VX_TSDF, 0.05, ORIGIN, ORIGIN, 4, test_seed);
            nvdb_export(map, (enum vx_nvdb_format)format, &f[i]);
            vx_map_destroy(map);
        }
        ck_assert_uint_eq(f[0].n, f[1].n);
        ck_assert_mem_eq(f[0].bytes, f[1].bytes, f[0].n);
        nvdb_free(&f[0]);
        nvdb_free(&f[1]);
    }
    vx_device_close(d[0]);
    vx_device_close(d[1]);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("nvdb");
    ck_add(s, round_trip, sizeof MAPS / sizeof *MAPS);
    ck_add(s, written_index, 2);
    ck_add(s, written_float, 2);
    ck_add(s, recorded_files, 3);
    ck_add(s, refusals, 1);
    ck_add(s, edited, 1);
    ck_add(s, no_room, 1);
    ck_add(s, beside_frames, 1);
    ck_add(s, children, 1);
    ck_add(s, gaps, 1);
    ck_add(s, same_bytes, 2);
    return core_test_main(argc, argv, s);
}
