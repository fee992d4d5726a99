/*
 * oracle_colour.c - colours and labels of voxels against references that share no code with the kernels.
 *
 * Depth: observe_depth.c says in double precision which pixel's surface has a voxel in its band.  The colour
 * must then be the exact weighted mean of what was there and that pixel, rounded up or down by less than a
 * step and, over all voxels, as often up as down as it should; the label must be what a plain vote makes of
 * it.  Then the reference takes over the map's content, so that each frame is judged alone.  LiDAR: every ray
 * has a colour of its own, so that a voxel tells which ray it belongs to, and a search over all rays tells
 * which is nearest.
 */
#include "observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct vx_map_params channel_params(double voxel_m, enum vx_mode mode)
{
    struct vx_map_params p = test_params(voxel_m, mode);
    p.colour = p.label = true;
    return p;
}

/* The box of an image: state, colour and label of every voxel before the frame. */
struct memory {
    struct box box;
    uint32_t *colour;
    uint16_t *label;
    uint8_t *active;
};

static void memory_init(struct memory *m, const double centre[3], double half)
{
    size_t n = 1;
    for (int k = 0; k < 3; k++) {
        m->box.lo[k] = (int32_t)floor(centre[k] - half);
        m->box.n[k] = (int32_t)(2 * half) + 2;
        n *= (size_t)m->box.n[k];
    }
    m->box.obs = calloc(n, sizeof *m->box.obs);
    m->colour = calloc(n, sizeof *m->colour);
    m->label = calloc(n, sizeof *m->label);
    m->active = calloc(n, 1);
    ck_assert(m->box.obs && m->colour && m->label && m->active);
}

static void memory_fini(struct memory *m)
{
    free(m->box.obs);
    free(m->colour);
    free(m->label);
    free(m->active);
}

struct tally {
    uint64_t checked, kept, coloured, voted, turned;
    double sum, worst; /* of the rounding, in steps of half a level */
};

/* What a vote of `weight` for `label` makes of a label and its confidence. */
static void vote(int *label, int *trust, int other, int weight)
{
    if (other == 0)
        return;
    if (other == *label) {
        *trust += weight;
    } else {
        *trust -= weight;
        if (*trust < 0 || *label == 0) {
            *trust = *label == 0 ? weight : -*trust;
            *label = other;
        }
    }
    if (*trust > 255)
        *trust = 255;
}

static void check_voxel(const struct memory *m, size_t i, const struct vx_frame *f, uint32_t colour,
                        uint32_t label, struct tally *n, const char *what)
{
    const struct obs *o = &m->box.obs[i];
    const bool was = m->active[i];
    const uint32_t old = was ? m->colour[i] : 0;
    int is = was ? m->label[i] & 255 : 0, trust = was ? m->label[i] >> 8 : 0;
    double weight = 0;
    if (o->what == EITHER)
        return;
    if (o->what == BAND && o->pixel)
        weight = ceil((double)o->weight / 4);
    n->checked++;
    if (weight == 0) {
        ck_assert_msg(colour == old && label == (uint32_t)(is | trust << 8),
                      "%s: voxel %zu has %08x %04x, had %08x %04x and was not seen", what, i, colour, label,
                      old, is | trust << 8);
        n->kept += old != 0;
        return;
    }
    const uint8_t *rgb = f->colour + 3 * (size_t)(o->pixel - 1);
    const double w = old >> 27;
    for (int k = 0; k < 3; k++) {
        const double mean = ((old >> (9 * k) & 511) * w + 2.0 * rgb[k] * weight) / (w + weight),
                     off = (double)(colour >> (9 * k) & 511) - mean;
        ck_assert_msg(fabs(off) < 1,
                      "%s: voxel %zu, part %d: %u, the mean of %u (weight %g) and %u (%g) is %g", what, i, k,
                      colour >> (9 * k) & 511, old >> (9 * k) & 511, w, 2u * rgb[k], weight, mean);
        n->sum += off;
        n->worst = fmax(n->worst, fabs(off));
    }
    ck_assert_msg(colour >> 27 == (uint32_t)fmin(w + weight, 31), "%s: voxel %zu: weight %u after %g and %g",
                  what, i, colour >> 27, w, weight);
    const int before = is;
    vote(&is, &trust, f->label[o->pixel - 1], (int)weight);
    ck_assert_msg(label == (uint32_t)(is | trust << 8),
                  "%s: voxel %zu: label %u (%u) after a vote for %u of %g, not %d (%d)", what, i, label & 255,
                  label >> 8, f->label[o->pixel - 1], weight, is, trust);
    n->coloured++;
    n->voted += f->label[o->pixel - 1] != 0;
    n->turned += before && is != before;
}

static void check_frame(struct memory *m, const struct map_walk *w, const struct vx_frame *f, struct tally *n,
                        const char *what)
{
    size_t voxels = (size_t)m->box.n[0] * (size_t)m->box.n[1] * (size_t)m->box.n[2];
    uint8_t *active = calloc(voxels, 1);
    ck_assert_ptr_nonnull(active);
    for (uint32_t l = 0; l < w->n_leaves; l++)
        for (int32_t v = 0; v < 512; v++) {
            const struct walk_leaf *leaf = &w->leaves[l];
            const int32_t at[3] = {leaf->at[0] + (v >> 6), leaf->at[1] + (v >> 3 & 7), leaf->at[2] + (v & 7)};
            if (!(leaf->active[v >> 6] >> (v & 63) & 1))
                continue;
            ck_assert_msg(box_holds(&m->box, at), "%s: the map is larger than the box", what);
            const size_t i = box_index(&m->box, at);
            check_voxel(m, i, f, leaf->colour[v], leaf->label[v], n, what);
            active[i] = 1;
            m->colour[i] = leaf->colour[v];
            m->label[i] = leaf->label[v];
        }
    free(m->active);
    m->active = active;
}

/* Random colours; few labels, so that votes meet. */
static void paint(struct vx_frame *f, uint64_t *seed, uint8_t *colour, uint8_t *label)
{
    const uint32_t n = f->width * f->height;
    for (uint32_t i = 0; i < 3 * n; i++)
        colour[i] = (uint8_t)(test_random(seed) % 8 ? test_random(seed) : 255 * (test_random(seed) % 2));
    for (uint32_t i = 0; i < n; i++)
        label[i] = (uint8_t)(test_random(seed) % 4);
    f->colour = colour;
    f->label = label;
}

enum { WIDTH = 64, HEIGHT = 48 };

START_TEST(depth)
{
    const enum vx_mode mode = _i & 1 ? VX_OCCUPANCY : VX_TSDF;
    const double voxel_m = _i & 2 ? 0.05 : 0.02, reach_voxels = 32;
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = channel_params(voxel_m, mode);
    struct vx_map *map = test_map(d, &p);
    struct frame_shape shape = {
        .width = WIDTH, .height = HEIGHT, .reach_m = reach_voxels * voxel_m, .odd = 0.03, .u16 = _i == 3};
    uint64_t seed = test_seed + 100 * (uint64_t)_i;
    uint8_t *colour = malloc(3 * WIDTH * HEIGHT), *label = malloc(WIDTH * HEIGHT);
    const double centre[3] = {0, 0, 0};
    struct surfaces surfaces = {0};
    struct tally n = {0};
    struct memory m;
    memory_init(&m, centre, 1.45 * (reach_voxels + 3) + 12);
    for (int i = 0; i < 8; i++) {
        struct vx_frame_result result;
        struct test_frame t;
        struct sensor s;
        struct map_walk *w;
        char what[80];
        const double at[3] = {test_uniform(&seed, -4, 4) * voxel_m, test_uniform(&seed, -4, 4) * voxel_m, 0};
        test_frame_init(&t, VX_DEPTH, &seed, &shape, at);
        t.f.stamp_ns = i * 33000000;
        for (int k = 0; i > 1 && k < 4; k++) /* most look the same way: means of several, votes that turn */
            t.f.pose[0].rotation_xyzw[k] = k == 3;
        paint(&t.f, &seed, colour, label);
        snprintf(what, sizeof what, "depth %d, seed %llu, frame %d", _i, (unsigned long long)test_seed, i);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        ck_assert_uint_eq(result.warnings & VX_WARN_UNUSED_CHANNEL, 0);
        observe_sensor(&s, &map->params, &t.f);
        observe_depth(&s, &t.f, &m.box, &surfaces);
        w = map_walk_newest(map);
        ck_assert_msg(!w->fault[0], "%s: %s", what, w->fault);
        check_frame(&m, w, &t.f, &n, what);
        map_walk_free(w);
        test_frame_fini(&t);
    }
    printf("depth %d: %llu voxels checked, %llu kept, %llu coloured (rounding at most %.3f, mean %.4f "
           "steps), %llu votes, "
           "%llu turned\n",
           _i, (unsigned long long)n.checked, (unsigned long long)n.kept, (unsigned long long)n.coloured,
           n.worst, n.sum / (3.0 * (double)n.coloured), (unsigned long long)n.voted,
           (unsigned long long)n.turned);
    ck_assert_uint_gt(n.coloured, mode == VX_TSDF ? 5000 : 1000);
    ck_assert_uint_gt(n.kept, 1000);
    if (mode == VX_TSDF) /* the band of a hit is one voxel thick: few are hit twice */
        ck_assert_uint_gt(n.turned, 50);
    ck_assert_msg(fabs(n.sum / (3.0 * (double)n.coloured)) < 5 / sqrt(12.0 * (double)n.coloured) + 1e-3,
                  "the rounding has a bias");
    memory_fini(&m);
    free(colour);
    free(label);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* A wall that keeps its colours for long, with noise: the mean stays where it belongs, and old colours fade.
 */
START_TEST(steady)
{
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = channel_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    uint8_t *colour = malloc(3 * WIDTH * HEIGHT);
    float *range = malloc(WIDTH * HEIGHT * sizeof *range);
    uint64_t seed = test_seed;
    struct vx_frame f = {.sensor = VX_DEPTH,
                         .n_poses = 1,
                         .pose[0].rotation_xyzw[3] = 1,
                         .width = WIDTH,
                         .height = HEIGHT,
                         .fx = 60,
                         .fy = 60,
                         .cx = 32,
                         .cy = 24,
                         .data = range,
                         .data_bytes = WIDTH * HEIGHT * sizeof *range,
                         .no_return_value = NAN,
                         .colour = colour};
    static const int level[2][3] = {{250, 128, 3}, {7, 131, 240}};
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        range[i] = 1.5f;
    for (int k = 0; k < 2; k++) {
        double mean[3] = {0, 0, 0};
        uint64_t n = 0;
        struct map_walk *w;
        for (int i = 0; i < 150; i++) {
            struct vx_frame_result result;
            for (int j = 0; j < 3 * WIDTH * HEIGHT; j++)
                colour[j] = (uint8_t)(level[k][j % 3] + (int)(test_random(&seed) % 7) - 3);
            f.stamp_ns = (k * 150 + i) * 33000000ll;
            ck_ok(vx_map_integrate(map, &f, &result, NULL));
        }
        w = map_walk_newest(map);
        ck_assert_str_eq(w->fault, "");
        for (uint32_t l = 0; l < w->n_leaves; l++)
            for (int v = 0; v < 512; v++)
                if (w->leaves[l].colour[v]) {
                    for (int c = 0; c < 3; c++) {
                        const double is = (w->leaves[l].colour[v] >> (9 * c) & 511) / 2.0;
                        ck_assert_msg(fabs(is - level[k][c]) < 8, "colour %d of a voxel is %g, not %d", c, is,
                                      level[k][c]);
                        mean[c] += is;
                    }
                    n++;
                }
        ck_assert_uint_gt(n, 3000);
        for (int c = 0; c < 3; c++)
            ck_assert_msg(fabs(mean[c] / (double)n - level[k][c]) < 0.25,
                          "colour %d is %.3f in the mean, not %d", c, mean[c] / (double)n, level[k][c]);
        printf("steady %d: means %.3f %.3f %.3f of %llu voxels\n", k, mean[0] / (double)n,
               mean[1] / (double)n, mean[2] / (double)n, (unsigned long long)n);
        map_walk_free(w);
    }
    free(colour);
    free(range);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

/* Ends of a LiDAR frame's rays, in voxels of the map; NaN where there is none. */
static void ray_ends(const struct sensor *s, const struct vx_frame *f, double (*end)[3])
{
    for (uint32_t i = 0; i < f->width * f->height; i++) {
        double p[3], r;
        if (f->sensor == VX_POINTS) {
            for (int k = 0; k < 3; k++)
                p[k] = (double)((const float *)f->data)[3 * i + (uint32_t)k];
            r = sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
        } else {
            const double az = f->first_azimuth_rad + i % f->width * f->azimuth_step_rad,
                         el = (double)f->elevation_rad[i / f->width];
            r = (double)((const float *)f->data)[i];
            p[0] = r * cos(el) * cos(az);
            p[1] = r * cos(el) * sin(az);
            p[2] = r * sin(el);
        }
        for (int k = 0; k < 3; k++)
            end[i][k] =
                s->t[k] + (s->R[3 * k] * p[0] + s->R[3 * k + 1] * p[1] + s->R[3 * k + 2] * p[2]) / s->vs;
        if (!(r / s->vs >= s->min_d && r / s->vs <= s->max_d))
            end[i][0] = end[i][1] = end[i][2] = NAN;
    }
}

static double distance2(const double a[3], const double b[3])
{
    return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]);
}

/* Does the ray's band pass well inside the voxel? */
static bool crosses(const struct sensor *s, const double end[3], const int32_t v[3])
{
    double d[3], length = sqrt(distance2(end, s->t));
    for (int k = 0; k < 3; k++)
        d[k] = (end[k] - s->t[k]) / length;
    const double half = s->k.mode == 0 ? 0.9 * s->trunc : 0; /* occupancy: the end's voxel alone is hit */
    for (double at = -half; at <= half; at += 0.02) {
        bool in = true;
        for (int k = 0; k < 3 && in; k++) {
            const double x = end[k] + at * d[k] - v[k];
            in = x > 0.02 && x < 0.98;
        }
        if (in)
            return true;
    }
    return false;
}

START_TEST(lidar)
{
    const enum vx_sensor sensor = _i & 1 ? VX_POINTS : VX_RANGE;
    struct vx_device *d = test_device(256 << 20);
    struct vx_map_params p = channel_params(0.1, _i & 2 ? VX_OCCUPANCY : VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    struct frame_shape shape = {.width = 128, .height = 24, .reach_m = 3.6, .odd = 0.03};
    uint64_t seed = test_seed + 7 * (uint64_t)_i, n = 0, of_several = 0;
    const double at[3] = {0.33, -0.21, 0.4};
    struct vx_frame_result result;
    struct test_frame t;
    struct sensor s;
    struct map_walk *w;
    test_frame_init(&t, sensor, &seed, &shape, at);
    const uint32_t n_rays = t.f.width * t.f.height;
    uint8_t *colour = malloc(3 * n_rays), *label = malloc(n_rays);
    double(*end)[3] = malloc(n_rays * sizeof *end);
    for (uint32_t i = 0; i < n_rays; i++) {
        for (int k = 0; k < 3; k++)
            colour[3 * i + (uint32_t)k] = (uint8_t)((i + 1) >> (8 * k)); /* the ray's number */
        label[i] = (uint8_t)(1 + i % 255);
    }
    t.f.colour = colour;
    t.f.label = label;
    ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
    observe_sensor(&s, &map->params, &t.f);
    ray_ends(&s, &t.f, end);
    w = map_walk_newest(map);
    ck_assert_str_eq(w->fault, "");
    for (uint32_t l = 0; l < w->n_leaves; l++)
        for (int v = 0; v < 512; v++) {
            const struct walk_leaf *leaf = &w->leaves[l];
            const int32_t voxel[3] = {leaf->at[0] + (v >> 6), leaf->at[1] + (v >> 3 & 7),
                                      leaf->at[2] + (v & 7)};
            const double centre[3] = {voxel[0] + 0.5, voxel[1] + 0.5, voxel[2] + 0.5};
            const uint32_t c = leaf->colour[v];
            double best = INFINITY;
            uint32_t candidates = 0;
            if (!(leaf->active[v >> 6] >> (v & 63) & 1))
                continue;
            ck_assert_msg(c != 0, "voxel %d %d %d was hit and has no colour", voxel[0], voxel[1], voxel[2]);
            ck_assert_uint_eq(c >> 27, 1);
            const uint32_t ray = ((c & 511) / 2 | (c >> 9 & 511) / 2 << 8 | (c >> 18 & 511) / 2 << 16) - 1;
            ck_assert_uint_lt(ray, n_rays);
            ck_assert_uint_eq(leaf->label[v], label[ray] | 1 << 8);
            for (uint32_t i = 0; i < n_rays; i++)
                if (distance2(end[i], centre) < (s.trunc + 1) * (s.trunc + 1) && crosses(&s, end[i], voxel)) {
                    best = fmin(best, distance2(end[i], centre));
                    candidates++;
                }
            const double own = distance2(end[ray], centre);
            ck_assert_msg(own <= best + 0.35 && own < (s.trunc + 2) * (s.trunc + 2),
                          "voxel %d %d %d took ray %u, whose end is %.3f voxels away; another is %.3f away",
                          voxel[0], voxel[1], voxel[2], ray, sqrt(own), sqrt(best));
            n++;
            of_several += candidates > 1;
        }
    printf("lidar %d: %llu voxels, %llu of several rays\n", _i, (unsigned long long)n,
           (unsigned long long)of_several);
    ck_assert_uint_gt(n, 1000);
    ck_assert_uint_gt(of_several, 100);
    map_walk_free(w);
    test_frame_fini(&t);
    free(colour);
    free(label);
    free(end);
    vx_map_destroy(map);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("colour");
    ck_add(s, depth, 4);
    ck_add(s, steady, 1);
    ck_add(s, lidar, 4);
    return core_test_main(argc, argv, s);
}
