/*
 * Every operator on index grids gives the same bytes on the device under test as on the CPU with one thread;
 * on CUDA also with the tuned variants switched off, so that a variant is held equal to its body on the same
 * input.
 */
#include "core_test.h"
#include "vx/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_RESULTS = 40, N_SHAPES = 3 };

struct input {
    int32_t *ijk;
    uint64_t n;
};
struct results {
    const char *name[N_RESULTS];
    uint8_t digest[N_RESULTS][32];
    uint64_t sum[N_RESULTS];
    int n;
};

static void add(struct input *in, int32_t x, int32_t y, int32_t z)
{
    in->ijk[3 * in->n] = x;
    in->ijk[3 * in->n + 1] = y;
    in->ijk[3 * in->n + 2] = z;
    in->n++;
}

/* 0: a shell; 1: scattered voxels; 2: dense and sparse boxes over chunk borders, in random order. */
static struct input make_input(int shape, uint64_t seed)
{
    struct input in = {.ijk = malloc(3000000 * 12)};
    ck_assert_ptr_nonnull(in.ijk);
    if (shape == 0) {
        for (int32_t x = -100; x < 100; x++)
            for (int32_t y = -100; y < 100; y++)
                for (int32_t z = -100; z < 100; z++) {
                    double r = sqrt((x + .5) * (x + .5) + (y + .5) * (y + .5) + (z + .5) * (z + .5));
                    if (r < 100 && r > 95.5)
                        add(&in, x, y, z);
                }
    } else if (shape == 1) {
        for (int k = 0; k < 30000; k++)
            add(&in, (int32_t)(test_random(&seed) % 700) - 350, (int32_t)(test_random(&seed) % 700) - 350,
                (int32_t)(test_random(&seed) % 700) - 350);
    } else {
        for (int box = 0; box < 40; box++) {
            int32_t at[3], size = 8 + (int32_t)(test_random(&seed) % 30),
                           share = 1 + (int32_t)(test_random(&seed) % 3);
            for (int k = 0; k < 3; k++)
                at[k] = (int32_t)(test_random(&seed) % 260) - 130 + (box % 5 ? 0 : 100000000);
            for (int32_t i = 0; i < size * size * size; i++)
                if (share == 1 || test_random(&seed) % (uint64_t)share == 0)
                    add(&in, at[0] + i / size / size, at[1] + i / size % size, at[2] + i % size);
        }
        for (uint64_t i = in.n; i > 1; i--) {
            uint64_t k = test_random(&seed) % i;
            for (int c = 0; c < 3; c++) {
                int32_t t = in.ijk[3 * (i - 1) + (uint64_t)c];
                in.ijk[3 * (i - 1) + (uint64_t)c] = in.ijk[3 * k + (uint64_t)c];
                in.ijk[3 * k + (uint64_t)c] = t;
            }
        }
    }
    return in;
}

static uint64_t sum_of(uint64_t sum, const void *bytes, uint64_t n)
{
    const uint8_t *b = bytes;
    for (uint64_t i = 0; i < n; i++)
        sum = (sum ^ b[i]) * 0x100000001b3ull;
    return sum;
}

static uint64_t sum_array(struct vx_engine *e, uint64_t sum, const void *dev, uint64_t bytes)
{
    struct vxk_queue *q = vx_engine_queue(e);
    void *host = malloc(bytes + 1);
    ck_assert_ptr_nonnull(host);
    if (bytes)
        ck_ok(q->dev->ops->download(q, host, dev, bytes));
    ck_ok(q->dev->ops->wait(q));
    sum = sum_of(sum, host, bytes);
    free(host);
    return sum;
}

/* Every array of a grid but the table of chunks. */
static void keep(struct results *r, const char *name, struct vx_engine *e, struct vx_grid *g)
{
    const struct vxk_index_grid *v = vx_grid_view(g);
    uint64_t sum = sum_of(1, &v->n_voxels, 8);
    ck_assert_int_lt(r->n, N_RESULTS);
    sum = sum_array(e, sum, v->keys, v->n_chunks * 8ull);
    sum = sum_array(e, sum, v->words, v->n_chunks * 64ull * sizeof *v->words);
    sum = sum_array(e, sum, v->chunk_voxel, (v->n_chunks + 1ull) * 8);
    sum = sum_array(e, sum, v->masks, v->n_leaves * 64ull);
    sum = sum_array(e, sum, v->prefix, v->n_leaves * 8ull);
    sum = sum_array(e, sum, v->first, v->n_leaves * 4ull);
    r->sum[r->n] = sum_array(e, sum, v->place, v->n_leaves * 4ull);
    r->name[r->n] = name;
    ck_ok(vx_grid_digest(e, g, r->digest[r->n++], NULL));
}
static void keep_drop(struct results *r, const char *name, struct vx_engine *e, struct vx_grid *g)
{
    keep(r, name, e, g);
    vx_grid_destroy(g);
}

/* A sidecar whose values are pseudo-random bytes, small as floats. */
static struct vx_channel make_channel(struct vx_engine *e, const struct vx_grid *g, enum vx_value type,
                                      uint32_t components, uint64_t seed)
{
    struct vxk_queue *q = vx_engine_queue(e);
    struct vx_channel c = {.type = type, .n_components = components};
    uint64_t bytes = vx_grid_view(g)->n_voxels * vx_value_bytes(type) * components;
    uint8_t *host = malloc(bytes + 4);
    ck_assert_ptr_nonnull(host);
    for (uint64_t i = 0; i + 4 <= bytes + 4; i += 4) {
        uint32_t word = (uint32_t)test_random(&seed);
        float f = (float)(int32_t)(word % 2001) / 64 - 15;
        memcpy(host + i, type == VX_V_F32 ? (const void *)&f : (const void *)&word, 4);
    }
    ck_ok(vx_engine_alloc(e, bytes + 1, &c.data, NULL));
    if (bytes)
        ck_ok(q->dev->ops->upload(q, c.data, host, bytes));
    ck_ok(q->dev->ops->wait(q));
    free(host);
    return c;
}
static void keep_channel(struct results *r, const char *name, struct vx_engine *e, const struct vx_grid *g,
                         const struct vx_channel *c)
{
    ck_assert_int_lt(r->n, N_RESULTS);
    memset(r->digest[r->n], 0, 32);
    r->sum[r->n] =
        sum_array(e, 1, c->data, vx_grid_view(g)->n_voxels * vx_value_bytes(c->type) * c->n_components);
    r->name[r->n++] = name;
}

static void carry_values(struct results *r, struct vx_engine *e, struct vx_grid *a, struct vx_grid *wide,
                         struct vx_grid *coarse)
{
    static const enum vx_value types[] = {VX_V_U8, VX_V_U16, VX_V_F32, VX_V_U64};
    static const uint64_t initial[3] = {0x4142434445464748ull, 7, 9};
    struct vx_channel from, to, up;
    for (int k = 0; k < 6; k++) {
        uint32_t components = k < 4 ? 1 : 3;
        from = make_channel(e, a, types[k % 4], components, 11);
        to = make_channel(e, wide, types[k % 4], components, 12);
        ck_ok(vx_grid_inject(e, a, &from, wide, &to, k % 2 ? NULL : initial, NULL));
        keep_channel(r, "inject", e, wide, &to);
        ck_ok(vx_grid_inject(e, wide, &to, a, &from, k % 2 ? initial : NULL, NULL));
        keep_channel(r, "inject back", e, a, &from);
        vx_engine_free(e, from.data);
        vx_engine_free(e, to.data);
    }
    from = make_channel(e, a, VX_V_F32, 1, 13);
    up = make_channel(e, coarse, VX_V_F32, 1, 14);
    to = make_channel(e, wide, VX_V_F32, 1, 15);
    ck_ok(vx_grid_restrict(e, a, &from, coarse, &up, VX_MEAN, NULL, NULL));
    keep_channel(r, "restrict", e, coarse, &up);
    ck_ok(vx_grid_prolong(e, coarse, &up, wide, &to, VX_TRILINEAR, initial, NULL));
    keep_channel(r, "prolong", e, wide, &to);
    vx_engine_free(e, from.data);
    vx_engine_free(e, to.data);
    vx_engine_free(e, up.data);
}

static struct results run_all(enum vxk_backend backend, int threads, const struct input *in)
{
    struct vx_device_params params = {.backend = backend, .n_threads = threads};
    struct results r = {.n = 0};
    struct vx_device *device;
    struct vx_engine *e;
    struct vx_grid *a, *b, *wide, *coarse, *g;
    struct vx_channel values;
    struct vx_detail detail = {0};
    vx_err err = vx_device_open(&params, &device, &detail);
    ck_assert_msg(err == VX_OK, "%s", detail.text);
    ck_ok(vx_engine_create(device, &e, NULL));
    ck_ok(vx_grid_from_voxels(e, &(struct vx_voxels){.ijk = in->ijk, .n = in->n}, 1, &a, NULL));
    ck_ok(vx_grid_from_voxels(e, &(struct vx_voxels){.ijk = in->ijk + 3 * (in->n / 3), .n = in->n / 2}, 1, &b,
                              NULL));
    keep(&r, "voxels", e, a);
    keep(&r, "half of the voxels", e, b);
    for (int k = 0; k < 5; k++) {
        enum vx_shape shape = k == 0 ? VX_FACES : k == 1 ? VX_EDGES : VX_BOX;
        uint32_t radius = k < 3 ? 1 : k == 3 ? 3 : 8;
        ck_ok(vx_grid_dilate(e, b, shape, radius, &wide, NULL));
        keep(&r, "dilate", e, wide);
        ck_ok(vx_grid_erode(e, wide, shape, radius > 1 ? 2 : 1, &g, NULL));
        keep_drop(&r, "erode", e, g);
        vx_grid_destroy(wide);
    }
    ck_ok(vx_grid_dilate(e, b, VX_BOX, 1, &wide, NULL));
    ck_ok(vx_grid_merge(e, (const struct vx_grid *[]){a, wide, b}, 3, &g, NULL));
    keep_drop(&r, "merge", e, g);
    ck_ok(vx_grid_intersect(e, a, wide, &g, NULL));
    keep_drop(&r, "intersect", e, g);
    ck_ok(vx_grid_difference(e, wide, a, &g, NULL));
    keep_drop(&r, "difference", e, g);
    ck_ok(vx_grid_coarsen(e, a, &coarse, NULL));
    keep(&r, "coarsen", e, coarse);
    if (vx_grid_refine(e, b, &g, NULL) == VX_OK) /* the far boxes have no children */
        keep_drop(&r, "refine", e, g);
    values = make_channel(e, a, VX_V_F32, 1, 16);
    ck_ok(vx_grid_prune_values(e, a, &values, VX_LESS, -6, &g, NULL));
    keep_drop(&r, "prune", e, g);
    vx_engine_free(e, values.data);
    carry_values(&r, e, b, wide, coarse);
    vx_grid_destroy(a);
    vx_grid_destroy(b);
    vx_grid_destroy(wide);
    vx_grid_destroy(coarse);
    vx_engine_destroy(e);
    vx_device_close(device);
    return r;
}

static void ck_same(const struct results *a, const struct results *b, const char *what)
{
    ck_assert_int_eq(a->n, b->n);
    for (int k = 0; k < a->n; k++) {
        ck_assert_msg(!memcmp(a->digest[k], b->digest[k], 32), "%s: %s (result %d): digest", what, a->name[k],
                      k);
        ck_assert_msg(a->sum[k] == b->sum[k], "%s: %s (result %d): bytes", what, a->name[k], k);
    }
}

START_TEST(same_bytes)
{
    struct input in = make_input(_i, test_seed);
    struct results reference = run_all(VXK_CPU, 1, &in), tested = run_all(test_backend, test_threads, &in);
    ck_assert_int_gt(reference.n, 30);
    ck_same(&reference, &tested, "device");
    if (test_backend == VXK_CUDA) {
        setenv("VOXELD_CUDA_TUNED", "0", 1);
        tested = run_all(test_backend, test_threads, &in);
        unsetenv("VOXELD_CUDA_TUNED");
        ck_same(&reference, &tested, "bodies");
    }
    free(in.ijk);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("grid bytes");
    ck_add(s, same_bytes, N_SHAPES);
    return core_test_main(argc, argv, s);
}
