/* Inject, restrict, prolong and prune by values, against plain sets and values that are functions of a
 * coordinate. */
#include "grid_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const int32_t at[3], uint32_t component)
{
    uint64_t s = (uint64_t)(uint32_t)at[0] << 40 ^ (uint64_t)(uint32_t)at[1] << 20 ^ (uint32_t)at[2];
    s ^= (uint64_t)component << 60;
    return test_random(&s);
}

static bool is_float(enum vx_value type)
{
    return type == VX_V_F32 || type == VX_V_F64;
}

/* Value of component c of a voxel, as bytes: any bits; floats are whole numbers of eighths, or rarely NaN. */
static void value_of(enum vx_value type, const int32_t at[3], uint32_t c, void *out)
{
    uint64_t bits = hash_of(at, c);
    float f = bits % 61 == 0 ? NAN : (float)((int32_t)(bits >> 20 & 0xffff) - 0x8000) / 8;
    double d = (double)f;
    if (bits % 7 == 0) {
        bits = 0;
        f = 0;
        d = 0;
    }
    if (type == VX_V_F32)
        memcpy(out, &f, 4);
    else if (type == VX_V_F64)
        memcpy(out, &d, 8);
    else
        memcpy(out, &bits, vx_value_bytes(type)); /* little endian */
}

/* A sidecar on the host: strides in bytes, background bytes where no value lies. */
struct sidecar {
    struct vx_channel c;
    uint8_t *host;
    uint64_t bytes;
};

static struct sidecar make_sidecar(enum vx_value type, uint32_t n_components, int layout,
                                   const struct voxel_set *s, bool values, uint8_t background)
{
    uint64_t size = vx_value_bytes(type), voxel, component;
    struct sidecar r = {.c = {.type = type, .n_components = n_components}};
    component = layout == 1   ? size * (s->n + 3)
                : layout == 2 ? 2 * size
                              : size; /* apart, with gaps, packed */
    voxel = layout == 1 ? size : component * n_components + (layout == 2 ? size : 0);
    if (layout) {
        r.c.voxel_stride = voxel;
        r.c.component_stride = component;
    }
    r.bytes = voxel * s->n + component * n_components + 64;
    r.host = malloc(r.bytes);
    ck_assert_ptr_nonnull(r.host);
    memset(r.host, background, r.bytes);
    for (size_t i = 0; values && i < s->n; i++)
        for (uint32_t c = 0; c < n_components; c++)
            value_of(type, s->v[i].at, c, r.host + i * voxel + c * component);
    r.c.data = grid_upload(r.host, r.bytes);
    r.c.voxel_stride = layout ? voxel : 0;
    return r;
}

static uint8_t *at_voxel(const struct sidecar *s, size_t i, uint32_t c)
{
    uint64_t size = vx_value_bytes(s->c.type),
             component = s->c.component_stride ? s->c.component_stride : size;
    uint64_t voxel = s->c.voxel_stride ? s->c.voxel_stride : size * s->c.n_components;
    return s->host + i * voxel + c * component;
}

/* The device's bytes are the host's, gaps included. */
static void ck_sidecar(const struct sidecar *s, const char *what)
{
    uint8_t *got = malloc(s->bytes);
    grid_fetch(got, s->c.data, s->bytes);
    for (uint64_t i = 0; i < s->bytes; i++)
        if (got[i] != s->host[i])
            ck_abort_msg("%s: byte %llu of %llu is %u, not %u", what, (unsigned long long)i,
                         (unsigned long long)s->bytes, got[i], s->host[i]);
    free(got);
}

static void free_sidecar(struct sidecar *s)
{
    vx_engine_free(grid_engine, s->c.data);
    free(s->host);
}

static const enum vx_value all_types[] = {VX_V_U8,  VX_V_I8,  VX_V_U16, VX_V_I16, VX_V_U32,
                                          VX_V_I32, VX_V_F32, VX_V_U64, VX_V_F64};

START_TEST(inject)
{
    uint64_t seed = test_seed + (uint64_t)_i, seed2 = seed + 7;
    struct voxel_set a = grid_random_set(_i, &seed), b = grid_random_set(_i, &seed2);
    struct vx_grid *ga, *gb;
    uint64_t initial[20];
    grid_open(0);
    for (size_t i = 0; i < a.n; i += 2)
        vs_add(&b, a.v[i].at[0], a.v[i].at[1], a.v[i].at[2]);
    vs_sort(&b);
    ga = grid_of(&a);
    gb = grid_of(&b);
    for (size_t k = 0; k < sizeof initial / 8; k++)
        initial[k] = test_random(&seed);
    for (int k = 0; k < 18; k++) {
        enum vx_value type = all_types[k % 9];
        uint32_t components = k < 9 ? 1 : k == 10 ? 19 : 3;
        int layout = k % 3;
        bool fill = k % 2;
        struct sidecar from = make_sidecar(type, components, layout, &a, true, 0xa5);
        struct sidecar to = make_sidecar(type, components, (layout + k / 3) % 3, &b, false, 0x5a);
        uint32_t size = vx_value_bytes(type);
        uint8_t packed[20 * 8];
        for (uint32_t c = 0; c < components; c++)
            memcpy(packed + c * size, &initial[c], size);
        for (size_t i = 0; i < b.n; i++) {
            ptrdiff_t j = vs_find(&a, b.v[i].at[0], b.v[i].at[1], b.v[i].at[2]);
            for (uint32_t c = 0; c < components; c++) {
                if (j >= 0)
                    memcpy(at_voxel(&to, i, c), at_voxel(&from, (size_t)j, c), size);
                else if (fill)
                    memcpy(at_voxel(&to, i, c), packed + c * size, size);
            }
        }
        ck_ok(vx_grid_inject(grid_engine, ga, &from.c, gb, &to.c, fill ? packed : NULL, NULL));
        ck_sidecar(&to, "inject");
        ck_sidecar(&from, "source of inject");
        free_sidecar(&from);
        free_sidecar(&to);
    }
    vx_grid_destroy(ga);
    vx_grid_destroy(gb);
    vs_free(&a);
    vs_free(&b);
    grid_close();
}
END_TEST

/* Up to a finer grid and back, and out to a wider one and back: nothing is lost. */
START_TEST(round_trip)
{
    uint64_t seed = test_seed + 100 + (uint64_t)_i;
    struct voxel_set s = grid_random_set(_i, &seed), fine = {0}, wide = {0};
    struct vx_grid *g, *gf, *gw;
    struct sidecar from, other, back;
    grid_open(0);
    g = grid_of(&s);
    if (_i != 5) {
        fine = vs_refine(&s);
        ck_ok(vx_grid_refine(grid_engine, g, &gf, NULL));
        from = make_sidecar(VX_V_I32, 2, 1, &s, true, 1);
        other = make_sidecar(VX_V_I32, 2, 0, &fine, false, 2);
        back = make_sidecar(VX_V_I32, 2, 1, &s, false, 1);
        memcpy(back.host, from.host, from.bytes);
        ck_ok(vx_grid_prolong(grid_engine, g, &from.c, gf, &other.c, VX_NEAREST, NULL, NULL));
        ck_ok(vx_grid_restrict(grid_engine, gf, &other.c, g, &back.c, VX_MEAN, NULL, NULL));
        ck_sidecar(&back, "prolong and restrict");
        free_sidecar(&from);
        free_sidecar(&other);
        free_sidecar(&back);
        vx_grid_destroy(gf);
        vs_free(&fine);
    }
    wide = vs_dilate(&s, 26, 1);
    ck_ok(vx_grid_dilate(grid_engine, g, VX_BOX, 1, &gw, NULL));
    from = make_sidecar(VX_V_F32, 1, 0, &s, true, 1);
    other = make_sidecar(VX_V_F32, 1, 0, &wide, false, 2);
    back = make_sidecar(VX_V_F32, 1, 0, &s, false, 1);
    memcpy(back.host, from.host, from.bytes);
    ck_ok(vx_grid_inject(grid_engine, g, &from.c, gw, &other.c, NULL, NULL));
    ck_ok(vx_grid_inject(grid_engine, gw, &other.c, g, &back.c, NULL, NULL));
    ck_sidecar(&back, "inject there and back");
    free_sidecar(&from);
    free_sidecar(&other);
    free_sidecar(&back);
    vx_grid_destroy(gw);
    vx_grid_destroy(g);
    vs_free(&wide);
    vs_free(&s);
    grid_close();
}
END_TEST

/* A value as a number, integers exactly. */
static double number(enum vx_value type, const uint8_t *p)
{
    uint64_t bits = 0;
    float f;
    double d;
    memcpy(&bits, p, vx_value_bytes(type));
    switch (type) {
    case VX_V_I8:
        return (int8_t)bits;
    case VX_V_I16:
        return (int16_t)bits;
    case VX_V_I32:
        return (int32_t)bits;
    case VX_V_F32:
        memcpy(&f, p, 4);
        return f;
    case VX_V_F64:
        memcpy(&d, p, 8);
        return d;
    default:
        return (double)bits;
    }
}

static void store(enum vx_value type, double v, uint8_t *p)
{
    static const uint32_t nan_bits = 0x7fc00000u;
    float f = (float)v;
    int64_t i = is_float(type) ? 0 : (int64_t)v;
    if (type == VX_V_F32)
        memcpy(p, isnan(v) ? (const void *)&nan_bits : (const void *)&f, 4);
    else
        memcpy(p, &i, vx_value_bytes(type));
}

static double rounded(enum vx_value type, double sum, double n)
{
    if (is_float(type))
        return (double)((float)sum / (float)n);
    return floor((2 * sum + n) / (2 * n)); /* exact: whole numbers below 2^40 */
}

static double restricted(enum vx_value type, int how, const double *v, int n)
{
    double sum = 0, best = NAN, any = 0;
    for (int k = 0; k < n; k++) {
        sum = is_float(type) ? (double)((float)sum + (float)v[k]) : sum + v[k];
        if (!isnan(v[k]) && (isnan(best) || (how == VX_MIN ? v[k] < best : v[k] > best)))
            best = v[k];
        any = v[k] != 0 ? 1 : any;
    }
    return how == VX_MEAN ? rounded(type, sum, n) : how == VX_ANY ? any : best;
}

START_TEST(restrict_values)
{
    uint64_t seed = test_seed + 200 + (uint64_t)_i;
    struct voxel_set s = grid_random_set(_i, &seed), c = vs_coarsen(&s);
    struct vx_grid *g, *gc;
    grid_open(0);
    for (int k = 0; k < 5 && c.n; k++) /* some coarse voxels without children */
        vs_add(&c, c.v[k % (int)c.n].at[0] + (c.v[k % (int)c.n].at[0] < 0 ? k : -k), c.v[0].at[1],
               c.v[0].at[2]);
    vs_sort(&c);
    g = grid_of(&s);
    gc = grid_of(&c);
    for (int k = 0; k < 28; k++) {
        enum vx_value type = all_types[k % 7];
        int how = k / 7;
        uint32_t components = k % 3 ? 1 : 2;
        struct sidecar from = make_sidecar(type, components, k % 3, &s, true, 0x11);
        struct sidecar to = make_sidecar(type, components, (k + 1) % 3, &c, false, 0x22);
        uint8_t initial[16];
        memset(initial, 0x33, sizeof initial);
        for (size_t i = 0; i < c.n; i++)
            for (uint32_t j = 0; j < components; j++) {
                double v[8];
                int n = 0;
                for (int child = 0; child < 8; child++) {
                    ptrdiff_t at = vs_find(&s, 2 * (int64_t)c.v[i].at[0] + (child >> 2),
                                           2 * (int64_t)c.v[i].at[1] + (child >> 1 & 1),
                                           2 * (int64_t)c.v[i].at[2] + (child & 1));
                    if (at >= 0)
                        v[n++] = number(type, at_voxel(&from, (size_t)at, j));
                }
                if (n)
                    store(type, restricted(type, how, v, n), at_voxel(&to, i, j));
                else if (k % 2)
                    memcpy(at_voxel(&to, i, j), initial, vx_value_bytes(type));
            }
        ck_ok(vx_grid_restrict(grid_engine, g, &from.c, gc, &to.c, (enum vx_restrict)how,
                               k % 2 ? initial : NULL, NULL));
        ck_sidecar(&to, "restrict");
        free_sidecar(&from);
        free_sidecar(&to);
    }
    vx_grid_destroy(g);
    vx_grid_destroy(gc);
    vs_free(&s);
    vs_free(&c);
    grid_close();
}
END_TEST

/* floor(a / 2) of any sign */
static int64_t half(int64_t a)
{
    return (a - (a & 1)) / 2;
}

START_TEST(prolong_values)
{
    uint64_t seed = test_seed + 300 + (uint64_t)_i;
    struct voxel_set c = grid_random_set(_i == 5 ? 2 : _i, &seed), s = vs_refine(&c),
                     wide = vs_dilate(&s, 26, 1);
    struct vx_grid *g, *gc;
    grid_open(0);
    g = grid_of(&wide);
    gc = grid_of(&c);
    for (int k = 0; k < 14; k++) {
        enum vx_value type = all_types[k % 7];
        bool nearest = k >= 7;
        struct sidecar from = make_sidecar(type, 1, k % 3, &c, true, 0x11);
        struct sidecar to = make_sidecar(type, 1, (k + 1) % 3, &wide, false, 0x22);
        uint8_t initial[8];
        memset(initial, 0x44, sizeof initial);
        for (size_t i = 0; i < wide.n; i++) {
            double sum = 0, total = 0;
            uint8_t *out = at_voxel(&to, i, 0);
            for (int q = 0; q < 8; q++) {
                int64_t at[3], weight = 1;
                ptrdiff_t j;
                for (int d = 0; d < 3; d++) {
                    int64_t x = wide.v[i].at[d], parent = half(x), low = x & 1 ? parent : parent - 1;
                    at[d] = nearest ? parent : low + (q >> (2 - d) & 1);
                    weight *= at[d] == parent ? 3 : 1;
                }
                j = vs_find(&c, at[0], at[1], at[2]);
                if (j < 0)
                    continue;
                if (nearest) {
                    memcpy(out, at_voxel(&from, (size_t)j, 0), vx_value_bytes(type));
                    total = 1;
                    continue;
                }
                total += (double)weight;
                if (is_float(type))
                    sum = (float)sum + (float)weight * (float)number(type, at_voxel(&from, (size_t)j, 0));
                else
                    sum += (double)weight * number(type, at_voxel(&from, (size_t)j, 0));
            }
            if (total > 0 && !nearest)
                store(type, rounded(type, sum, total), out);
            else if (total == 0 && k % 2)
                memcpy(out, initial, vx_value_bytes(type));
        }
        ck_ok(vx_grid_prolong(grid_engine, gc, &from.c, g, &to.c, nearest ? VX_NEAREST : VX_TRILINEAR,
                              k % 2 ? initial : NULL, NULL));
        ck_sidecar(&to, nearest ? "prolong nearest" : "prolong trilinear");
        free_sidecar(&from);
        free_sidecar(&to);
    }
    vx_grid_destroy(g);
    vx_grid_destroy(gc);
    vs_free(&s);
    vs_free(&c);
    vs_free(&wide);
    grid_close();
}
END_TEST

static bool compares(double v, int op, double t)
{
    switch (op) {
    case VX_LESS:
        return v < t;
    case VX_LESS_EQUAL:
        return v <= t;
    case VX_GREATER:
        return v > t;
    case VX_GREATER_EQUAL:
        return v >= t;
    case VX_EQUAL:
        return v == t;
    default:
        return v != t;
    }
}

START_TEST(prune_by_values)
{
    uint64_t seed = test_seed + 400 + (uint64_t)_i;
    struct voxel_set s = grid_random_set(_i, &seed);
    struct vx_grid *g, *r;
    grid_open(0);
    g = grid_of(&s);
    for (int k = 0; k < 54; k++) {
        enum vx_value type = all_types[k % 9];
        int op = k / 9;
        struct sidecar from = make_sidecar(type, 1, k % 3, &s, true, 0);
        double t = s.n && type != VX_V_U64 ? number(type, at_voxel(&from, s.n / 2, 0)) : 0;
        struct voxel_set want = {0};
        t = isnan(t) ? 1.5 : t;
        for (size_t i = 0; i < s.n; i++)
            if (compares(number(type, at_voxel(&from, i, 0)), op, t))
                vs_add(&want, s.v[i].at[0], s.v[i].at[1], s.v[i].at[2]);
        vs_sort(&want);
        ck_ok(vx_grid_prune_values(grid_engine, g, &from.c, (enum vx_compare)op, t, &r, NULL));
        grid_check_drop(r, want, "prune by values");
        free_sidecar(&from);
    }
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

/* 64-bit integers are compared as such. */
START_TEST(whole_threshold)
{
    static const int32_t at[4][3] = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}};
    uint64_t values[4] = {(1ull << 53) + 2, (1ull << 53) + 3, (1ull << 53) + 4, 5};
    struct vx_channel c = {.type = VX_V_U64, .n_components = 1};
    struct voxel_set s = {0}, want = {0};
    struct vx_grid *g, *r;
    grid_open(0);
    for (int k = 0; k < 4; k++)
        vs_add(&s, at[k][0], at[k][1], at[k][2]);
    vs_sort(&s);
    g = grid_of(&s);
    c.data = grid_upload(values, sizeof values);
    vs_add(&want, 0, 0, 1);
    vs_add(&want, 0, 0, 2);
    vs_sort(&want);
    ck_ok(vx_grid_prune_values(grid_engine, g, &c, VX_GREATER, 0x1p53 + 2, &r, NULL));
    grid_check_drop(r, want, "above 2^53");
    vx_engine_free(grid_engine, c.data);
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

#define ck_refused(call, name)                                                                               \
    do {                                                                                                     \
        struct vx_detail d_ = {0}, *detail = &d_;                                                            \
        ck_assert_int_eq((call), VX_E_INVALID);                                                              \
        ck_assert_str_eq(d_.field, name);                                                                    \
    } while (0)

START_TEST(refusals)
{
    struct voxel_set s = {0};
    struct vx_grid *g, *r;
    struct vx_channel c = {.type = VX_V_F32, .n_components = 1}, bad;
    grid_open(0);
    vs_add(&s, 1, 2, 3);
    vs_sort(&s);
    g = grid_of(&s);
    c.data = grid_upload("0123456789abcdef", 16);
    ck_refused(vx_grid_inject(grid_engine, g, NULL, g, &c, NULL, detail), "from");
    bad = c;
    bad.type = (enum vx_value)99;
    ck_refused(vx_grid_inject(grid_engine, g, &bad, g, &c, NULL, detail), "from");
    bad = c;
    bad.n_components = 0;
    ck_refused(vx_grid_inject(grid_engine, g, &c, g, &bad, NULL, detail), "to");
    bad = c;
    bad.data = NULL;
    ck_refused(vx_grid_inject(grid_engine, g, &c, g, &bad, NULL, detail), "to");
    bad = c;
    bad.voxel_stride = 6;
    ck_refused(vx_grid_inject(grid_engine, g, &bad, g, &c, NULL, detail), "from");
    bad = c;
    bad.data = (char *)c.data + 2;
    ck_refused(vx_grid_inject(grid_engine, g, &bad, g, &c, NULL, detail), "from");
    bad = c;
    bad.type = VX_V_I32;
    ck_refused(vx_grid_inject(grid_engine, g, &c, g, &bad, NULL, detail), "to");
    bad.type = VX_V_F64;
    ck_refused(vx_grid_restrict(grid_engine, g, &bad, g, &bad, VX_MEAN, NULL, detail), "from");
    ck_refused(vx_grid_prolong(grid_engine, g, &bad, g, &bad, VX_TRILINEAR, NULL, detail), "from");
    ck_refused(vx_grid_restrict(grid_engine, g, &c, g, &c, (enum vx_restrict)4, NULL, detail), "how");
    ck_refused(vx_grid_prolong(grid_engine, g, &c, g, &c, (enum vx_prolong)2, NULL, detail), "how");
    ck_refused(vx_grid_prune_values(grid_engine, g, &c, (enum vx_compare)6, 0, &r, detail), "op");
    ck_refused(vx_grid_prune_values(grid_engine, g, &c, VX_LESS, NAN, &r, detail), "threshold");
    bad = c;
    bad.n_components = 2;
    ck_refused(vx_grid_prune_values(grid_engine, g, &bad, VX_LESS, 0, &r, detail), "values");
    bad = c;
    bad.type = VX_V_U64;
    ck_refused(vx_grid_prune_values(grid_engine, g, &bad, VX_LESS, 0.5, &r, detail), "threshold");
    ck_refused(vx_grid_inject(grid_engine, NULL, &c, g, &c, NULL, detail), "grid");
    ck_ok(
        vx_grid_from_voxels(grid_engine, NULL, 0, &r, NULL)); /* nothing to carry, however many components */
    bad = c;
    bad.n_components = UINT32_MAX;
    ck_ok(vx_grid_inject(grid_engine, g, &bad, r, &bad, NULL, NULL));
    vx_grid_destroy(r);
    vx_engine_free(grid_engine, c.data);
    vx_grid_destroy(g);
    vs_free(&s);
    grid_close();
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("grid values");
    ck_add(s, inject, GRID_KINDS);
    ck_add(s, round_trip, GRID_KINDS);
    ck_add(s, restrict_values, GRID_KINDS);
    ck_add(s, prolong_values, GRID_KINDS);
    ck_add(s, prune_by_values, GRID_KINDS);
    ck_add(s, whole_threshold, 1);
    ck_add(s, refusals, 1);
    return core_test_main(argc, argv, s);
}
