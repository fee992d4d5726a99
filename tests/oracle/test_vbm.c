/*
 * test_vbm.c - the VoxelBlockManager and the sums on it against plain sets of coordinates.
 *
 * A set is sorted in the order of voxel numbers, so that leaf, rank and block of every voxel follow from the
 * list alone.
 */
#include "grid_check.h"
#include "random_frames.h"
#include "vx/vbm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 128 };

/* ------------------------------------------------------------------ batches */

struct batch {
    uint32_t n;
    struct voxel_set *set;
    struct vx_grid **grid;
    struct vx_vbm vbm;
    uint64_t n_voxels;
};

static void batch_open(struct batch *b)
{
    struct vx_detail detail = {0};
    b->grid = calloc(b->n, sizeof *b->grid);
    ck_assert_ptr_nonnull(b->grid);
    b->n_voxels = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        b->grid[k] = grid_of(&b->set[k]);
        b->n_voxels += b->set[k].n;
    }
    vx_err err = vx_vbm_build(grid_engine, (const struct vx_grid *const *)b->grid, b->n, &b->vbm, &detail);
    ck_assert_msg(err == VX_OK, "build: %s %s", vx_err_name(err), detail.text);
    ck_assert_uint_eq(b->vbm.n_voxels, b->n_voxels);
}

static void batch_close(struct batch *b)
{
    vx_vbm_drop(grid_engine, &b->vbm);
    for (uint32_t k = 0; k < b->n; k++) {
        vx_grid_destroy(b->grid[k]);
        vs_free(&b->set[k]);
    }
    free(b->grid);
    free(b->set);
}

static struct batch batch_of(uint32_t n)
{
    struct batch b = {.n = n, .set = calloc(n, sizeof *b.set)};
    ck_assert_ptr_nonnull(b.set);
    return b;
}

static int same_cell(const struct voxel *a, const struct voxel *b, int shift)
{
    return a->at[0] >> shift == b->at[0] >> shift && a->at[1] >> shift == b->at[1] >> shift &&
           a->at[2] >> shift == b->at[2] >> shift;
}

/* ------------------------------------------------------------------ blocks */

/* Checks the blocks of one chunk, voxels [from, to) of set k; *leaf is the chunk's first leaf, then the next
 * one's. */
static uint32_t check_chunk(const struct batch *b, const struct vxk_vbm_block *blocks, uint32_t k,
                            size_t from, size_t to, uint64_t before, uint32_t at, uint32_t *leaf)
{
    const struct voxel *v = b->set[k].v;
    uint32_t n_blocks = (uint32_t)((to - from + WIDTH - 1) / WIDTH);
    for (size_t i = from, begin = from; i < to; i++) {
        const struct vxk_vbm_block *block = &blocks[at + (i - from) / WIDTH];
        uint32_t t = (uint32_t)((i - from) % WIDTH), rank, n = (uint32_t)(to - (i - t));
        int jump = i > from && !same_cell(&v[i - 1], &v[i], 3);
        if (jump) {
            begin = i;
            ++*leaf;
        }
        if (t == 0) {
            ck_assert_uint_eq(block->voxel, before + i);
            ck_assert_uint_eq(block->leaf, *leaf);
            ck_assert_uint_eq(vxk_vbm_skip(block), i - begin);
            ck_assert_uint_eq(vxk_vbm_count(block), n < WIDTH ? n : WIDTH);
            ck_assert_uint_eq(block->info >> 17, k);
            jump = 0; /* by definition */
        }
        if ((int)(block->jump[t >> 6] >> (t & 63) & 1) != jump)
            ck_abort_msg("grid %u, voxel %zu: jump is not %d", k, i, jump);
        if (vxk_vbm_leaf(block, t, &rank) != *leaf || rank != i - begin)
            ck_abort_msg("grid %u, voxel %zu: found in another leaf or place", k, i);
    }
    for (uint32_t t = (uint32_t)((to - from) % WIDTH); t && t < WIDTH; t++)
        ck_assert_uint_eq(blocks[at + n_blocks - 1].jump[t >> 6] >> (t & 63) & 1, 0);
    ++*leaf;
    return at + n_blocks;
}

static void check_blocks(const struct batch *b)
{
    uint32_t n = b->vbm.view.n_blocks, next = 0, chunk = 0;
    struct vxk_vbm_block *blocks = malloc((n + 1) * sizeof *blocks);
    uint64_t before = 0;
    ck_assert_ptr_nonnull(blocks);
    if (n)
        grid_fetch(blocks, b->vbm.view.blocks, n * sizeof *blocks);
    for (uint32_t k = 0; k < b->n; k++) {
        const struct voxel_set *s = &b->set[k];
        uint32_t leaf = 0;
        for (size_t from = 0, to; from < s->n; from = to) {
            uint32_t at = (uint32_t)((before + from) / WIDTH) + chunk++;
            for (to = from + 1; to < s->n && same_cell(&s->v[from], &s->v[to], 7);)
                to++;
            ck_assert_uint_le(next, at);
            for (; next < at; next++)
                ck_assert_uint_eq(vxk_vbm_count(&blocks[next]), 0);
            next = check_chunk(b, blocks, k, from, to, before, at, &leaf);
        }
        before += s->n;
    }
    ck_assert_uint_le(next, n);
    for (; next < n; next++)
        ck_assert_uint_eq(vxk_vbm_count(&blocks[next]), 0);
    free(blocks);
}

static void check_ijk(const struct batch *b)
{
    uint64_t bytes = b->n_voxels * 12;
    void *device;
    int32_t *ijk = malloc(bytes + 1), *at = ijk;
    struct vx_detail detail;
    ck_assert_ptr_nonnull(ijk);
    ck_ok(vx_engine_alloc(grid_engine, bytes + 1, &device, NULL));
    ck_ok(vx_vbm_ijk(grid_engine, &b->vbm, device, &detail));
    if (bytes)
        grid_fetch(ijk, device, bytes);
    for (uint32_t k = 0; k < b->n; k++)
        for (size_t i = 0; i < b->set[k].n; i++, at += 3)
            if (memcmp(at, b->set[k].v[i].at, 12) != 0)
                ck_abort_msg("grid %u, voxel %zu: (%d, %d, %d)", k, i, at[0], at[1], at[2]);
    vx_engine_free(grid_engine, device);
    free(ijk);
}

/* ------------------------------------------------------------------ sums */

/* The values round a voxel as the oracle sees them. */
struct around {
    const struct voxel_set *set;
    const float *value; /* of the set */
    const struct voxel *v;
    float missing;
};
static float at(const struct around *a, int dx, int dy, int dz)
{
    ptrdiff_t i =
        vs_find(a->set, (int64_t)a->v->at[0] + dx, (int64_t)a->v->at[1] + dy, (int64_t)a->v->at[2] + dz);
    return i < 0 ? a->missing : a->value[i];
}
static float cross(const struct around *a, int dx, int k)
{
    return (at(a, dx, -k, 0) + at(a, dx, k, 0)) + (at(a, dx, 0, -k) + at(a, dx, 0, k));
}
static float diagonals(const struct around *a, int dx)
{
    return (at(a, dx, -1, -1) + at(a, dx, -1, 1)) + (at(a, dx, 1, -1) + at(a, dx, 1, 1));
}
/* In single precision, in the order that every backend keeps to. */
static float sum_in_order(const struct around *a, int stencil, const float w[4])
{
    float r = w[0] * at(a, 0, 0, 0) + w[1] * (cross(a, 0, 1) + (at(a, -1, 0, 0) + at(a, 1, 0, 0)));
    if (stencil == 19)
        for (int k = 2; k <= 3; k++)
            r = r + w[k] * (cross(a, 0, k) + (at(a, -k, 0, 0) + at(a, k, 0, 0)));
    if (stencil == 18 || stencil == 27)
        r = r + w[2] * (diagonals(a, 0) + (cross(a, -1, 1) + cross(a, 1, 1)));
    if (stencil == 27)
        r = r + w[3] * (diagonals(a, -1) + diagonals(a, 1));
    return r;
}
/* In double precision, by the meaning of the words alone. */
static double sum_by_meaning(const struct around *a, int stencil, const float w[4], double *size)
{
    double r = 0;
    *size = 0;
    for (int dx = -3; dx <= 3; dx++)
        for (int dy = -3; dy <= 3; dy++)
            for (int dz = -3; dz <= 3; dz++) {
                int n_axes = !!dx + !!dy + !!dz, steps = abs(dx) + abs(dy) + abs(dz);
                int near = steps == n_axes;
                int weight = stencil == 19 ? (n_axes <= 1 ? steps : -1) : near ? n_axes : -1;
                if (weight < 0 || (stencil == 7 && n_axes > 1) || (stencil == 18 && n_axes > 2))
                    continue;
                double part = (double)w[weight] * (double)at(a, dx, dy, dz);
                r += part;
                *size += fabs(part);
            }
    return r;
}

static void check_sums(const struct batch *b, int stencil, uint64_t *seed)
{
    struct vx_convolution c = {.stencil = (enum vx_stencil)stencil, .missing = -2.75f};
    uint64_t bytes = b->n_voxels * sizeof(float);
    float *value = malloc(bytes + 1), *got = malloc(bytes + 1), *out;
    struct vx_detail detail = {0};
    size_t first = 0, stride = b->n_voxels / 20000 + 1;
    ck_assert(value && got);
    for (uint64_t i = 0; i < b->n_voxels; i++)
        value[i] = (float)test_uniform(seed, -100, 100);
    for (int k = 0; k < 4; k++)
        c.weight[k] = (float)test_uniform(seed, -2, 2);
    float *in = grid_upload(value, bytes);
    ck_ok(vx_engine_alloc(grid_engine, bytes + 1, (void **)&out, NULL));
    vx_err err = vx_vbm_convolve(grid_engine, &b->vbm, &c, in, out, &detail);
    ck_assert_msg(err == VX_OK, "%s %s", vx_err_name(err), detail.text);
    if (bytes)
        grid_fetch(got, out, bytes);
    for (uint32_t k = 0; k < b->n; first += b->set[k++].n) {
        struct around a = {.set = &b->set[k], .value = value + first, .missing = c.missing};
        for (size_t i = 0; i < b->set[k].n; i += stride) {
            double size;
            a.v = &b->set[k].v[i];
            float want = sum_in_order(&a, stencil, c.weight), is = got[first + i];
            double meaning = sum_by_meaning(&a, stencil, c.weight, &size);
            ck_assert_msg(memcmp(&want, &is, sizeof is) == 0 && fabs((double)is - meaning) <= 1e-5 * size,
                          "stencil %d, grid %u, voxel %zu (%d, %d, %d): %.9g, in order %.9g, in double %.12g",
                          stencil, k, i, a.v->at[0], a.v->at[1], a.v->at[2], (double)is, (double)want,
                          meaning);
        }
    }
    vx_engine_free(grid_engine, in);
    vx_engine_free(grid_engine, out);
    free(value);
    free(got);
}

static void check_batch(struct batch *b, uint64_t seed)
{
    static const int stencils[] = {7, 18, 19, 27};
    batch_open(b);
    check_blocks(b);
    check_ijk(b);
    for (int k = 0; k < 4; k++)
        check_sums(b, stencils[k], &seed);
    batch_close(b);
}

/* ------------------------------------------------------------------ tests */

START_TEST(random_grids)
{
    uint64_t seed = test_seed * 1000 + 7000 + (uint64_t)_i;
    struct batch b = batch_of(1);
    printf("seed %llu\n", (unsigned long long)seed);
    grid_open(0);
    b.set[0] = grid_random_set(_i % GRID_KINDS, &seed);
    check_batch(&b, seed);
    grid_close();
}
END_TEST

/* Numbers of voxels round the edges of blocks, in one full leaf after another or one voxel a leaf. */
START_TEST(block_edges)
{
    static const size_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 640, 1024};
    grid_open(0);
    for (int lone = 0; lone < 2; lone++) {
        struct batch b = batch_of(sizeof sizes / sizeof *sizes);
        for (uint32_t k = 0; k < b.n; k++) {
            for (size_t i = 0; i < sizes[k]; i++) {
                int64_t leaf = (int64_t)(lone ? i : i / 512), n = (int64_t)(lone ? i * 37 % 512 : i % 512);
                vs_add(&b.set[k], leaf / 256 % 16 * 8 + n / 64, leaf / 16 % 16 * 8 + n / 8 % 8,
                       leaf % 16 * 8 + n % 8);
            }
            vs_sort(&b.set[k]);
            ck_assert_uint_eq(b.set[k].n, sizes[k]);
        }
        check_batch(&b, 11);
    }
    grid_close();
}
END_TEST

/* A chunk without a gap, and 130 chunks of one to three voxels. */
START_TEST(full_and_thin_chunks)
{
    static const int32_t lo[3] = {-128, 0, 128}, hi[3] = {0, 128, 256};
    uint64_t seed = 5;
    struct batch b = batch_of(2);
    grid_open(0);
    vs_add_box(&b.set[0], lo, hi, 1, &seed);
    vs_sort(&b.set[0]);
    for (int c = 0; c < 130; c++)
        for (int k = 0; k <= c % 3; k++)
            vs_add(&b.set[1], 128 * c + 127, 127 * k, -k);
    vs_sort(&b.set[1]);
    check_batch(&b, seed);
    grid_close();
}
END_TEST

/* Batches of 1 to 256 grids, empty ones in front, between and behind. */
START_TEST(batches)
{
    static const uint32_t counts[] = {2, 3, 7, 64, 256};
    uint64_t seed = test_seed * 1000 + 8000 + (uint64_t)_i;
    struct batch b = batch_of(counts[_i]);
    printf("seed %llu\n", (unsigned long long)seed);
    grid_open(0);
    for (uint32_t k = 0; k < b.n; k++) {
        int kind = k < b.n / 3 || k + 1 == b.n ? 0 : (int)(test_random(&seed) % GRID_KINDS);
        b.set[k] = grid_random_set(b.n > 100 && kind > 6 ? 1 : kind, &seed);
    }
    check_batch(&b, seed);
    grid_close();
}
END_TEST

START_TEST(refusals)
{
    struct vx_detail detail;
    struct vx_vbm vbm;
    struct vx_convolution c = {.stencil = VX_STENCIL_7};
    struct batch b = batch_of(1);
    const struct vx_grid *many[257];
    grid_open(0);
    vs_add(&b.set[0], 1, 2, 3);
    vs_sort(&b.set[0]);
    batch_open(&b);
    for (int k = 0; k < 257; k++)
        many[k] = b.grid[0];
    ck_assert_int_eq(vx_vbm_build(grid_engine, many, 0, &vbm, &detail), VX_E_INVALID);
    ck_assert_int_eq(vx_vbm_build(grid_engine, many, 257, &vbm, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "n");
    vx_vbm_drop(grid_engine, &vbm); /* an empty one */
    many[3] = NULL;
    ck_assert_int_eq(vx_vbm_build(grid_engine, many, 5, &vbm, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "grid");
    vx_vbm_drop(grid_engine, &vbm);
    many[3] = b.grid[0];
    ck_ok(vx_vbm_build(grid_engine, many, 256, &vbm, &detail));
    ck_assert_uint_eq(vbm.n_voxels, 256);
    vx_vbm_drop(grid_engine, &vbm);
    float *x = grid_upload(NULL, 0);
    ck_assert_int_eq(vx_vbm_convolve(grid_engine, &b.vbm, &c, x, x, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "out");
    c.stencil = (enum vx_stencil)8;
    ck_assert_int_eq(vx_vbm_convolve(grid_engine, &b.vbm, &c, x, x + 1, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "stencil");
    vx_engine_free(grid_engine, x);
    batch_close(&b);
    grid_close();
}
END_TEST

/* The r-th bit of a mask and the r-th voxel of a leaf, against counting. */
START_TEST(selection)
{
    uint64_t seed = 77, mask[8], prefix;
    struct vxk_index_grid g = {.masks = mask, .prefix = &prefix, .n_leaves = 1};
    for (int trial = 0; trial < 3000; trial++) {
        uint32_t n = 0;
        prefix = 0;
        for (uint32_t x = 0; x < 8; x++) {
            uint64_t r = test_random(&seed);
            mask[x] = trial % 5 == 0 ? ~0ull : trial % 5 == 1 ? (r % 3 ? 0 : 1ull << (r >> 58)) : r;
            if (trial % 5 == 3)
                mask[x] &= test_random(&seed) & test_random(&seed);
            if (x)
                prefix |= (uint64_t)n << (9 * (x - 1));
            n += (uint32_t)__builtin_popcountll(mask[x]);
        }
        for (uint32_t v = 0, rank = 0; v < 512; v++) {
            if (!(mask[v >> 6] >> (v & 63) & 1))
                continue;
            if (vxk_leaf_select(&g, 0, rank++) != v)
                ck_abort_msg("trial %d: rank %u is not voxel %u", trial, rank - 1, v);
        }
    }
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("vbm");
    ck_add(suite, random_grids, 2 * GRID_KINDS);
    ck_add(suite, block_edges, 1);
    ck_add(suite, full_and_thin_chunks, 1);
    ck_add(suite, batches, 5);
    ck_add(suite, refusals, 1);
    ck_add(suite, selection, 1);
    return core_test_main(argc, argv, suite);
}
