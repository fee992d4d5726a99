#include "voxel_set.h"

#include "random_frames.h"

#include <stdlib.h>
#include <string.h>

static const int64_t LIMIT = 134217728; /* voxels lie in -LIMIT .. LIMIT - 1 */

void vs_add(struct voxel_set *s, int64_t x, int64_t y, int64_t z)
{
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 64;
        s->v = realloc(s->v, s->room * sizeof *s->v);
        if (!s->v)
            abort();
    }
    s->v[s->n].at[0] = (int32_t)x;
    s->v[s->n].at[1] = (int32_t)y;
    s->v[s->n].at[2] = (int32_t)z;
    s->n++;
    s->sorted = false;
}

void vs_add_box(struct voxel_set *s, const int32_t lo[3], const int32_t hi[3], double density, uint64_t *seed)
{
    for (int64_t x = lo[0]; x < hi[0]; x++)
        for (int64_t y = lo[1]; y < hi[1]; y++)
            for (int64_t z = lo[2]; z < hi[2]; z++)
                if (density >= 1 || test_uniform(seed, 0, 1) < density)
                    vs_add(s, x, y, z);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static int compare(const void *pa, const void *pb)
{
    static const int64_t edges[4] = {128, 32, 8, 1};
    const struct voxel *a = pa, *b = pb;
    for (int level = 0; level < 4; level++)
        for (int k = 0; k < 3; k++) {
            int64_t x = floor_div(a->at[k], edges[level]), y = floor_div(b->at[k], edges[level]);
            if (x != y)
                return x < y ? -1 : 1;
        }
    return 0;
}

void vs_sort(struct voxel_set *s)
{
    size_t n = 0;
    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, compare);
    for (size_t i = 0; i < s->n; i++)
        if (!n || compare(&s->v[n - 1], &s->v[i]))
            s->v[n++] = s->v[i];
    s->n = n;
    s->sorted = true;
}

void vs_free(struct voxel_set *s)
{
    free(s->v);
    memset(s, 0, sizeof *s);
}

struct voxel_set vs_copy(const struct voxel_set *s)
{
    struct voxel_set c = {0};
    for (size_t i = 0; i < s->n; i++)
        vs_add(&c, s->v[i].at[0], s->v[i].at[1], s->v[i].at[2]);
    c.sorted = s->sorted;
    return c;
}

ptrdiff_t vs_find(const struct voxel_set *s, int64_t x, int64_t y, int64_t z)
{
    struct voxel key = {{(int32_t)x, (int32_t)y, (int32_t)z}};
    struct voxel *found;
    if (!s->sorted)
        abort();
    if (x < -LIMIT || x >= LIMIT || y < -LIMIT || y >= LIMIT || z < -LIMIT || z >= LIMIT || !s->n)
        return -1;
    found = bsearch(&key, s->v, s->n, sizeof key, compare);
    return found ? found - s->v : -1;
}

bool vs_equal(const struct voxel_set *a, const struct voxel_set *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->v, b->v, a->n * sizeof *a->v));
}

/* True when a neighbourhood holds the offset. */
static bool in_shape(int shape, int dx, int dy, int dz)
{
    int moved = (dx != 0) + (dy != 0) + (dz != 0);
    return shape == 26 || moved <= (shape == 6 ? 1 : 2);
}

struct voxel_set vs_dilate(const struct voxel_set *s, int shape, int radius)
{
    struct voxel_set out = {0};
    for (int dx = -radius; dx <= radius; dx++)
        for (int dy = -radius; dy <= radius; dy++)
            for (int dz = -radius; dz <= radius; dz++) {
                if (!in_shape(shape, dx, dy, dz))
                    continue;
                for (size_t i = 0; i < s->n; i++) {
                    int64_t x = (int64_t)s->v[i].at[0] + dx, y = (int64_t)s->v[i].at[1] + dy,
                            z = (int64_t)s->v[i].at[2] + dz;
                    if (x >= -LIMIT && x < LIMIT && y >= -LIMIT && y < LIMIT && z >= -LIMIT && z < LIMIT)
                        vs_add(&out, x, y, z);
                }
            }
    vs_sort(&out);
    return out;
}

struct voxel_set vs_erode(const struct voxel_set *s, int shape, int radius)
{
    struct voxel_set out = {0};
    for (size_t i = 0; i < s->n; i++) {
        const int32_t *v = s->v[i].at;
        bool whole = true;
        for (int dx = -radius; dx <= radius && whole; dx++)
            for (int dy = -radius; dy <= radius && whole; dy++)
                for (int dz = -radius; dz <= radius && whole; dz++)
                    if (in_shape(shape, dx, dy, dz))
                        whole = vs_find(s, (int64_t)v[0] + dx, (int64_t)v[1] + dy, (int64_t)v[2] + dz) >= 0;
        if (whole)
            vs_add(&out, v[0], v[1], v[2]);
    }
    vs_sort(&out);
    return out;
}

struct voxel_set vs_merge(const struct voxel_set *const *sets, int n)
{
    struct voxel_set out = {0};
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < sets[k]->n; i++)
            vs_add(&out, sets[k]->v[i].at[0], sets[k]->v[i].at[1], sets[k]->v[i].at[2]);
    vs_sort(&out);
    return out;
}

static struct voxel_set common(const struct voxel_set *a, const struct voxel_set *b, bool want)
{
    struct voxel_set out = {0};
    for (size_t i = 0; i < a->n; i++)
        if ((vs_find(b, a->v[i].at[0], a->v[i].at[1], a->v[i].at[2]) >= 0) == want)
            vs_add(&out, a->v[i].at[0], a->v[i].at[1], a->v[i].at[2]);
    vs_sort(&out);
    return out;
}

struct voxel_set vs_intersect(const struct voxel_set *a, const struct voxel_set *b)
{
    return common(a, b, true);
}

struct voxel_set vs_difference(const struct voxel_set *a, const struct voxel_set *b)
{
    return common(a, b, false);
}

struct voxel_set vs_coarsen(const struct voxel_set *s)
{
    struct voxel_set out = {0};
    for (size_t i = 0; i < s->n; i++)
        vs_add(&out, floor_div(s->v[i].at[0], 2), floor_div(s->v[i].at[1], 2), floor_div(s->v[i].at[2], 2));
    vs_sort(&out);
    return out;
}

struct voxel_set vs_refine(const struct voxel_set *s)
{
    struct voxel_set out = {0};
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < 8; k++)
            vs_add(&out, 2 * (int64_t)s->v[i].at[0] + (k & 1), 2 * (int64_t)s->v[i].at[1] + (k >> 1 & 1),
                   2 * (int64_t)s->v[i].at[2] + (k >> 2));
    vs_sort(&out);
    return out;
}
