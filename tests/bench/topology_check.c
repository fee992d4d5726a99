#include "topology_check.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 1024, WINDOWS = 256, PART = 1 << 22 };

static vx_err wrong(struct topology *t, const char *what, uint64_t at, const int32_t v[3])
{
    return vx_fail(&t->detail, VX_E_INTERNAL, "check", "%s at voxel %llu, (%d, %d, %d)", what,
                   (unsigned long long)at, v[0], v[1], v[2]);
}

static vx_err fetch(struct topology *t, void *host, const void *device, uint64_t bytes)
{
    struct vxk_queue *q = vx_engine_queue(t->engine);
    VX_TRY_RET(q->dev->ops->download(q, host, device, bytes));
    return q->dev->ops->wait(q);
}

/* ------------------------------------------------------------------ windows */

/* First voxel and length of window k; length 0 behind the last. */
static uint64_t window(uint64_t n, uint64_t k, uint64_t *first)
{
    const uint64_t n_windows = (n + WINDOW - 1) / WINDOW < WINDOWS ? (n + WINDOW - 1) / WINDOW : WINDOWS;
    if (k >= n_windows)
        return 0;
    if (n <= (uint64_t)WINDOW * WINDOWS) {
        *first = k * WINDOW;
        return n - *first < WINDOW ? n - *first : WINDOW;
    }
    *first = (n - WINDOW) / (n_windows - 1) * k;
    if (k == n_windows - 1)
        *first = n - WINDOW;
    return WINDOW;
}

/* Is `a` before `b` in the order of voxel numbers? */
static bool before(const int32_t a[3], const int32_t b[3])
{
    static const int shift[4] = {7, 5, 3, 0};
    for (int level = 0; level < 4; level++)
        for (int k = 0; k < 3; k++)
            if (a[k] >> shift[level] != b[k] >> shift[level])
                return a[k] >> shift[level] < b[k] >> shift[level];
    return false;
}

/* ------------------------------------------------------------------ membership */

static bool shape_has(const struct shape *s, const int32_t v[3])
{
    int32_t at[3];
    shape_fold(s, v, at);
    return columns_contain(&s->columns, at[0], at[1], at[2]);
}

static bool reference_has(const struct reference *r, const int32_t v[3])
{
    int32_t at[3];
    if (r->level > 0) {
        const int32_t fine[3] = {2 * v[0], 2 * v[1], 2 * v[2]};
        shape_fold(r->shape, fine, at);
        return columns_contain(r->columns, at[0] >> 1, at[1] >> 1, at[2] >> 1);
    }
    const int32_t whole[3] = {r->level ? v[0] >> 1 : v[0], r->level ? v[1] >> 1 : v[1],
                              r->level ? v[2] >> 1 : v[2]};
    shape_fold(r->shape, whole, at);
    return columns_contain(r->columns, at[0], at[1], at[2]) &&
           !(r->without && columns_contain(r->without, at[0], at[1], at[2]));
}

vx_err topology_check_grid(struct topology *t, const struct reference *r)
{
    int32_t(*ijk)[3] = malloc(WINDOW * sizeof *ijk);
    struct vx_grid_info info;
    uint64_t first, n;
    vx_err err = ijk ? VX_OK : VX_E_NOMEM;
    vx_grid_get_info(t->result, &info);
    if (info.n_voxels != r->n_voxels)
        err = vx_fail(&t->detail, VX_E_INTERNAL, "check", "%llu voxels, the reference has %llu",
                      (unsigned long long)info.n_voxels, (unsigned long long)r->n_voxels);
    for (uint64_t k = 0; err == VX_OK && (n = window(info.n_voxels, k, &first)) > 0; k++) {
        err = vx_grid_download(t->engine, t->result, first, n, ijk[0], &t->detail);
        for (uint64_t i = 0; err == VX_OK && i < n; i++) {
            if (!reference_has(r, ijk[i]))
                err = wrong(t, "one that the reference does not have", first + i, ijk[i]);
            else if (i && !before(ijk[i - 1], ijk[i]))
                err = wrong(t, "wrong order", first + i, ijk[i]);
        }
    }
    free(ijk);
    return err;
}

/* ------------------------------------------------------------------ values */

struct filling {
    const int32_t (*ijk)[3];
    float *out;
    uint64_t n;
};
static void fill_part(void *context, uint64_t part)
{
    const struct filling *f = context;
    for (uint64_t i = part * WINDOW; i < f->n && i < (part + 1) * WINDOW; i++)
        f->out[i] = shape_value(f->ijk[i][0], f->ijk[i][1], f->ijk[i][2]);
}

vx_err topology_fill_values(struct topology *t, const int32_t *ijk, uint64_t n, float *out)
{
    struct vxk_queue *q = vx_engine_queue(t->engine);
    const uint64_t most = n < PART ? n : PART;
    int32_t(*host)[3] = malloc(most * sizeof *host + 1);
    float *value = malloc(most * sizeof *value + 1);
    vx_err err = host && value ? VX_OK : VX_E_NOMEM;
    for (uint64_t first = 0; err == VX_OK && first < n; first += PART) {
        struct filling f = {(const int32_t(*)[3])host, value, n - first < PART ? n - first : PART};
        VX_TRY(fetch(t, host, ijk + 3 * first, f.n * sizeof *host));
        bench_parallel((f.n + WINDOW - 1) / WINDOW, fill_part, &f);
        VX_TRY(q->dev->ops->upload(q, out + first, value, f.n * sizeof *value));
        VX_TRY(q->dev->ops->wait(q));
    }
fail:
    free(host);
    free(value);
    return err;
}

/* Calls want() for windows of a grid's voxels and compares with t->out. */
static vx_err check_values(struct topology *t, const struct vx_grid *grid,
                           float (*want)(const struct topology *t, const int32_t v[3], float initial),
                           float initial)
{
    const uint64_t n_voxels = vx_grid_view(grid)->n_voxels;
    int32_t(*ijk)[3] = malloc(WINDOW * sizeof *ijk);
    float *got = malloc(WINDOW * sizeof *got);
    uint64_t first, n;
    vx_err err = ijk && got ? VX_OK : VX_E_NOMEM;
    for (uint64_t k = 0; err == VX_OK && (n = window(n_voxels, k, &first)) > 0; k++) {
        VX_TRY(vx_grid_download(t->engine, grid, first, n, ijk[0], &t->detail));
        VX_TRY(fetch(t, got, t->out + first, n * sizeof *got));
        for (uint64_t i = 0; i < n; i++) {
            const float w = want(t, ijk[i], initial);
            if (memcmp(&w, &got[i], sizeof w) != 0)
                VX_TRY(wrong(t, "wrong value", first + i, ijk[i]));
        }
    }
fail:
    free(ijk);
    free(got);
    return err;
}

static float injected(const struct topology *t, const int32_t v[3], float initial)
{
    return shape_has(&t->shape[0], v) ? shape_value(v[0], v[1], v[2]) : initial;
}
vx_err topology_check_inject(struct topology *t, float initial)
{
    return check_values(t, t->target, injected, initial);
}

static float restricted(const struct topology *t, const int32_t v[3], float initial)
{
    float sum = 0, n = 0;
    (void)initial;
    for (int32_t k = 0; k < 8; k++) {
        const int32_t fine[3] = {2 * v[0] + (k >> 2), 2 * v[1] + (k >> 1 & 1), 2 * v[2] + (k & 1)};
        if (!shape_has(&t->shape[0], fine))
            continue;
        sum += shape_value(fine[0], fine[1], fine[2]);
        n += 1;
    }
    return sum / n;
}
vx_err topology_check_restrict(struct topology *t)
{
    return check_values(t, t->target, restricted, 0);
}

static float prolonged(const struct topology *t, const int32_t v[3], float initial)
{
    (void)t;
    (void)initial;
    return shape_value(v[0] >> 1, v[1] >> 1, v[2] >> 1);
}
vx_err topology_check_prolong(struct topology *t)
{
    return check_values(t, t->grid[0], prolonged, 0);
}

/* ------------------------------------------------------------------ voxel by voxel */

/* Grid of voxel i of the batch; *end = number of the first voxel behind it. */
static uint32_t grid_of(const struct topology *t, uint64_t i, uint64_t *end)
{
    uint32_t k = 0;
    *end = vx_grid_view(t->grid[0])->n_voxels;
    while (i >= *end)
        *end += vx_grid_view(t->grid[++k])->n_voxels;
    return k;
}

static uint64_t batch_voxels(const struct topology *t)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < t->batch; k++)
        n += vx_grid_view(t->grid[k])->n_voxels;
    return n;
}

static vx_err check_ijk(struct topology *t, const struct batch_reference *b, const int32_t *ijk)
{
    const uint64_t n_voxels = batch_voxels(t);
    int32_t(*v)[3] = malloc(WINDOW * sizeof *v);
    uint64_t first, n, end;
    vx_err err = v ? VX_OK : VX_E_NOMEM;
    for (uint64_t k = 0; err == VX_OK && (n = window(n_voxels, k, &first)) > 0; k++) {
        VX_TRY(fetch(t, v, ijk + 3 * first, n * sizeof *v));
        uint32_t grid = grid_of(t, first, &end);
        for (uint64_t i = 0; i < n; i++) {
            const bool begins = first + i >= end;
            if (begins)
                grid = grid_of(t, first + i, &end);
            if (!shape_has(b->shape[grid], v[i]))
                VX_TRY(wrong(t, "one that the shape does not have", first + i, v[i]));
            if (i && !begins && !before(v[i - 1], v[i]))
                VX_TRY(wrong(t, "wrong order", first + i, v[i]));
        }
    }
fail:
    free(v);
    return err;
}

vx_err topology_check_ijk(struct topology *t, const struct batch_reference *b)
{
    return check_ijk(t, b, t->ijk);
}

/* Blocks: their voxels follow each other without a gap, and as many leaves begin in them as there are. */
static vx_err check_blocks(struct topology *t, const struct vx_vbm *vbm)
{
    struct vxk_vbm_block *block = malloc(vbm->view.n_blocks * sizeof *block + 1);
    uint64_t voxel = 0, leaves = 0;
    if (!block)
        return VX_E_NOMEM;
    vx_err err = fetch(t, block, vbm->view.blocks, vbm->view.n_blocks * sizeof *block);
    for (uint32_t i = 0; err == VX_OK && i < vbm->view.n_blocks; i++) {
        const uint32_t n = vxk_vbm_count(&block[i]);
        if (n && block[i].voxel != voxel)
            err = vx_fail(&t->detail, VX_E_INTERNAL, "check", "block %u begins at %llu, not at %llu", i,
                          (unsigned long long)block[i].voxel, (unsigned long long)voxel);
        voxel += n;
        leaves += (uint64_t)(n && vxk_vbm_skip(&block[i]) == 0) +
                  (uint64_t)__builtin_popcountll(block[i].jump[0]) +
                  (uint64_t)__builtin_popcountll(block[i].jump[1]);
    }
    free(block);
    if (err == VX_OK && (voxel != batch_voxels(t) || leaves != vbm->view.n_leaves))
        err = vx_fail(&t->detail, VX_E_INTERNAL, "check", "%llu voxels and %llu leaves in the blocks",
                      (unsigned long long)voxel, (unsigned long long)leaves);
    return err;
}

vx_err topology_check_build(struct topology *t, const struct batch_reference *b)
{
    struct vx_vbm vbm;
    int32_t *ijk = NULL;
    vx_err err;
    VX_TRY_RET(vx_vbm_build(t->engine, (const struct vx_grid *const *)t->grid, t->batch, &vbm, &t->detail));
    VX_TRY(check_blocks(t, &vbm));
    VX_TRY(vx_engine_alloc(t->engine, vbm.n_voxels * 12 + 1, (void **)&ijk, &t->detail));
    VX_TRY(vx_vbm_ijk(t->engine, &vbm, ijk, &t->detail));
    VX_TRY(check_ijk(t, b, ijk));
fail:
    vx_engine_free(t->engine, ijk);
    vx_vbm_drop(t->engine, &vbm);
    return err;
}

/* What the sum must be: by the meaning of the neighbourhood; exact, see CONVOLUTION. */
static float convolved(const struct shape *s, const int32_t v[3], int which, const struct vx_convolution *c)
{
    const int reach = which == 2 ? 3 : 1;
    float sum = 0;
    for (int32_t x = -reach; x <= reach; x++)
        for (int32_t y = -reach; y <= reach; y++)
            for (int32_t z = -reach; z <= reach; z++) {
                const int axes = (x != 0) + (y != 0) + (z != 0), steps = abs(x) + abs(y) + abs(z);
                const int32_t at[3] = {v[0] + x, v[1] + y, v[2] + z};
                if (axes > (which == 1 ? 2 : which == 3 ? 3 : 1))
                    continue;
                sum += c->weight[which == 2 ? steps : axes] *
                       (shape_has(s, at) ? shape_value(at[0], at[1], at[2]) : c->missing);
            }
    return sum;
}

vx_err topology_check_stencil(struct topology *t, const struct batch_reference *b, int which,
                              const struct vx_convolution *c)
{
    const uint64_t n_voxels = batch_voxels(t);
    int32_t(*v)[3] = malloc(WINDOW * sizeof *v);
    float *got = malloc(WINDOW * sizeof *got);
    uint64_t first, n, end;
    vx_err err = v && got ? VX_OK : VX_E_NOMEM;
    for (uint64_t k = 0; err == VX_OK && (n = window(n_voxels, k, &first)) > 0; k++) {
        VX_TRY(fetch(t, got, t->out + first, n * sizeof *got));
        for (uint64_t i = 0, m; i < n; i += m) { /* grid by grid */
            const uint32_t grid = grid_of(t, first + i, &end);
            const uint64_t begin = end - vx_grid_view(t->grid[grid])->n_voxels;
            m = end - (first + i) < n - i ? end - (first + i) : n - i;
            VX_TRY(vx_grid_download(t->engine, t->grid[grid], first + i - begin, m, v[i], &t->detail));
            for (uint64_t j = i; j < i + m; j++) {
                const float want = convolved(b->shape[grid], v[j], which, c);
                if (memcmp(&want, &got[j], sizeof want) != 0)
                    VX_TRY(wrong(t, "wrong sum", first + j, v[j]));
            }
        }
    }
fail:
    free(v);
    free(got);
    return err;
}
