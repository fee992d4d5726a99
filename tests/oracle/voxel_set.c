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

/* Key, word, cell, voxel: coordinates rounded down to 128, 32, 8 and 1, each level in the order x, y, z. */
static int compare(const void *pa, const void *pb)
{
    static const int32_t masks[4] = {-128, -32, -8, -1};
    const struct voxel *a = pa, *b = pb;
    for (int level = 0; level < 4; level++)
        for (int k = 0; k < 3; k++) {
            int32_t x = a->at[k] & masks[level], y = b->at[k] & masks[level];
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

/* True when the neighbourhood of faces (6) or of faces and edges (18) holds the offset. */
static bool in_shape(int shape, int dx, int dy, int dz)
{
    return (dx != 0) + (dy != 0) + (dz != 0) <= (shape == 6 ? 1 : 2);
}

/* One set of offsets; a neighbourhood is one of them, or the sum of several: a box is the sum of three lines.
 */
struct offsets {
    int n;
    int at[27][3];
};
enum { LONGEST_LINE = 27 };

static int offsets_of(int shape, int radius, struct offsets out[3])
{
    memset(out, 0, 3 * sizeof *out);
    if (shape == 26) {
        if (2 * radius + 1 > LONGEST_LINE)
            abort();
        for (int axis = 0; axis < 3; axis++)
            for (int d = -radius; d <= radius; d++)
                out[axis].at[out[axis].n++][axis] = d;
        return 3;
    }
    for (int dx = -1; dx <= 1; dx++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dz = -1; dz <= 1; dz++)
                if (in_shape(shape, dx, dy, dz)) {
                    int *at = out[0].at[out[0].n++];
                    at[0] = dx;
                    at[1] = dy;
                    at[2] = dz;
                }
    return 1;
}

struct voxel_set vs_dilate(const struct voxel_set *s, int shape, int radius)
{
    struct offsets part[3];
    struct voxel_set now = vs_copy(s);
    for (int k = 0, n = offsets_of(shape, radius, part); k < n; k++) {
        struct voxel_set next = {0};
        for (size_t i = 0; i < now.n; i++)
            for (int j = 0; j < part[k].n; j++) {
                int64_t x = (int64_t)now.v[i].at[0] + part[k].at[j][0],
                        y = (int64_t)now.v[i].at[1] + part[k].at[j][1],
                        z = (int64_t)now.v[i].at[2] + part[k].at[j][2];
                if (x >= -LIMIT && x < LIMIT && y >= -LIMIT && y < LIMIT && z >= -LIMIT && z < LIMIT)
                    vs_add(&next, x, y, z);
            }
        vs_sort(&next);
        vs_free(&now);
        now = next;
    }
    return now;
}

struct voxel_set vs_erode(const struct voxel_set *s, int shape, int radius)
{
    struct offsets part[3];
    struct voxel_set now = vs_copy(s);
    for (int k = 0, n = offsets_of(shape, radius, part); k < n; k++) {
        struct voxel_set next = {0};
        for (size_t i = 0; i < now.n; i++) {
            const int32_t *v = now.v[i].at;
            bool whole = true;
            for (int j = 0; j < part[k].n && whole; j++)
                whole = vs_find(&now, (int64_t)v[0] + part[k].at[j][0], (int64_t)v[1] + part[k].at[j][1],
                                (int64_t)v[2] + part[k].at[j][2]) >= 0;
            if (whole)
                vs_add(&next, v[0], v[1], v[2]);
        }
        vs_sort(&next);
        vs_free(&now);
        now = next;
    }
    return now;
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
        vs_add(&out, (s->v[i].at[0] & ~1) / 2, (s->v[i].at[1] & ~1) / 2, (s->v[i].at[2] & ~1) / 2);
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
