#include "raycast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ vectors, camera */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static bool normalise(double v[3])
{
    const double length = sqrt(dot(v, v));
    if (!(length > 1e-12))
        return false;
    for (int i = 0; i < 3; i++)
        v[i] /= length;
    return true;
}

bool camera_look(struct camera *camera, const double eye_m[3], const double target_m[3], const double up[3])
{
    for (int i = 0; i < 3; i++) {
        camera->eye_m[i] = eye_m[i];
        camera->forward[i] = target_m[i] - eye_m[i];
    }
    if (!normalise(camera->forward))
        return false;
    cross(camera->forward, up, camera->right);
    if (!normalise(camera->right))
        return false;
    cross(camera->forward, camera->right, camera->down);
    return true;
}

void camera_ray(const struct camera *camera, uint32_t u, uint32_t v, double direction[3])
{
    const double scale = 2 * camera->tan_half_fov / camera->height;
    const double x = (u + 0.5 - camera->width / 2.0) * scale, y = (v + 0.5 - camera->height / 2.0) * scale;
    for (int i = 0; i < 3; i++)
        direction[i] = camera->forward[i] + x * camera->right[i] + y * camera->down[i];
    (void)normalise(direction);
}

/* Where the ray goes into and out of the map's chunks; false when it misses them. */
static bool clip(const struct view *view, const double eye_m[3], const double d[3], double *enter_m,
                 double *leave_m)
{
    *enter_m = 0;
    *leave_m = INFINITY;
    for (int i = 0; i < 3; i++) {
        const double lo = view->info.bounds_min_m[i] - eye_m[i], hi = view->info.bounds_max_m[i] - eye_m[i];
        if (d[i] == 0) {
            if (lo > 0 || hi < 0)
                return false;
            continue;
        }
        *enter_m = fmax(*enter_m, fmin(lo / d[i], hi / d[i]));
        *leave_m = fmin(*leave_m, fmax(lo / d[i], hi / d[i]));
    }
    return *enter_m < *leave_m;
}

/* ------------------------------------------------------------------ casting */

void view_note(const struct view *view, const struct vxc_map_state *state)
{
    struct epochs *e = view->answered;
    if (!e->newest || state->epoch < e->oldest)
        e->oldest = state->epoch;
    if (state->epoch > e->newest)
        e->newest = state->epoch;
}

enum { AT_ONCE = 1 << 20 }; /* pixels: what casting takes beside the hits is some 100 bytes each */

/* Pixels of a part that still look for a front, and the arrays of one round; all [pixels of the part]. */
struct cast {
    const struct view *view;
    const struct camera *camera;
    uint32_t first;  /* pixel of the part */
    uint32_t *pixel; /* still looking */
    double *start_m; /* of each pixel's ray, from the first on */
    size_t n;
    float *ray, *point;
    struct vxc_ray_answer *ray_answer;
    struct vxc_point_answer *point_answer;
    double longest_m;
};

static void cast_fini(struct cast *c)
{
    free(c->pixel);
    free(c->start_m);
    free(c->ray);
    free(c->point);
    free(c->ray_answer);
    free(c->point_answer);
}

static vx_err cast_init(struct cast *c, const struct view *view, const struct camera *camera,
                        const uint8_t *wanted, uint32_t first, uint32_t n, struct vx_detail *detail)
{
    *c = (struct cast){.view = view, .camera = camera, .first = first};
    c->pixel = malloc(n * sizeof *c->pixel);
    c->start_m = malloc(n * sizeof *c->start_m);
    c->ray = malloc((size_t)n * 6 * sizeof *c->ray);
    c->point = malloc((size_t)n * 3 * sizeof *c->point);
    c->ray_answer = malloc(n * sizeof *c->ray_answer);
    c->point_answer = malloc(n * sizeof *c->point_answer);
    if (!c->pixel || !c->start_m || !c->ray || !c->point || !c->ray_answer || !c->point_answer)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %u rays", n);
    for (uint32_t k = first; k < first + n; k++) {
        double d[3], enter_m, leave_m;
        if (wanted && !wanted[k])
            continue;
        camera_ray(camera, k % camera->width, k / camera->width, d);
        if (!clip(view, camera->eye_m, d, &enter_m, &leave_m))
            continue;
        c->start_m[k - first] = enter_m;
        c->longest_m = fmax(c->longest_m, leave_m);
        c->pixel[c->n++] = k;
    }
    return VX_OK;
}

/* First surfaces of the pixels that still look; those without one drop out. */
static vx_err cast_rays(struct cast *c, struct vx_detail *detail)
{
    for (size_t k = 0; k < c->n; k++) {
        double d[3];
        const uint32_t pixel = c->pixel[k];
        camera_ray(c->camera, pixel % c->camera->width, pixel / c->camera->width, d);
        for (int i = 0; i < 3; i++) {
            c->ray[6 * k + i] = (float)(d[i] * c->start_m[pixel - c->first]); /* relative to the eye */
            c->ray[6 * k + 3 + i] = (float)d[i];
        }
    }
    struct vxc_map_state state;
    VX_TRY_RET(vxc_query_rays(c->view->client, c->view->map, c->view->answered->newest, c->camera->eye_m,
                              c->ray, c->n, c->longest_m, c->ray_answer, &state, detail));
    view_note(c->view, &state);
    size_t kept = 0;
    for (size_t k = 0; k < c->n; k++) {
        if (c->ray_answer[k].state != VXC_OCCUPIED || isnan(c->ray_answer[k].range_m))
            continue;
        c->pixel[kept] = c->pixel[k];
        c->ray_answer[kept] = c->ray_answer[k];
        memmove(c->ray + 6 * kept, c->ray + 6 * k, 6 * sizeof *c->ray);
        kept++;
    }
    c->n = kept;
    return VX_OK;
}

/* Asks at a place `before_m` in front of every hit that still looks for its front; answers to
 * c->point_answer. */
static vx_err ask_before(struct cast *c, double before_m, struct vx_detail *detail)
{
    for (size_t k = 0; k < c->n; k++)
        for (int i = 0; i < 3; i++)
            c->point[3 * k + i] = c->ray[6 * k + i] + (float)((double)c->ray_answer[k].range_m - before_m) *
                                                          c->ray[6 * k + 3 + i];
    struct vxc_map_state state;
    VX_TRY_RET(vxc_query_points(c->view->client, c->view->map, c->view->answered->newest, c->camera->eye_m,
                                c->point, c->n, c->point_answer, &state, detail));
    view_note(c->view, &state);
    return VX_OK;
}

/* Takes the hits with free space before them (with back_faces: all) and keeps the others, in their order. */
static void take_free(struct cast *c, struct hit *hits)
{
    size_t kept = 0;
    for (size_t k = 0; k < c->n; k++) {
        const uint32_t pixel = c->pixel[k];
        const struct vxc_point_answer *before = &c->point_answer[k];
        const bool smooth = before->state == VXC_FREE && before->status & VXC_Q_GRADIENT;
        if (c->view->back_faces || before->state == VXC_FREE) {
            hits[pixel].range_m = (float)(c->start_m[pixel - c->first] + (double)c->ray_answer[k].range_m);
            memcpy(hits[pixel].normal, smooth ? before->gradient : c->ray_answer[k].normal,
                   sizeof hits[pixel].normal);
            continue;
        }
        c->pixel[kept] = pixel;
        c->ray_answer[kept] = c->ray_answer[k];
        memmove(c->ray + 6 * kept, c->ray + 6 * k, 6 * sizeof *c->ray);
        kept++;
    }
    c->n = kept;
}

/* Takes the fronts among the hits; the other rays go on behind what they hit. */
static vx_err take_fronts(struct cast *c, struct hit *hits, struct vx_detail *detail)
{
    const double voxel = c->view->info.params.voxel_size_m;
    /* One voxel may be unknown before a wall because its readings were missing; two are the back of
     * something. */
    for (int voxels = 1; voxels <= 2 && c->n > 0; voxels++) {
        VX_TRY_RET(ask_before(c, voxels * voxel, detail));
        take_free(c, hits);
    }
    for (size_t k = 0; k < c->n; k++)
        c->start_m[c->pixel[k] - c->first] += (double)c->ray_answer[k].range_m + 1.5 * voxel;
    return VX_OK;
}

/* Pixels first .. first + n - 1. */
static vx_err cast_part(const struct view *view, const struct camera *camera, const uint8_t *wanted,
                        uint32_t first, uint32_t n, struct hit *hits, struct vx_detail *detail)
{
    enum { MAX_ROUNDS = 12 }; /* walls, and steps inside them, that a ray may pass */
    struct cast c;
    vx_err err = cast_init(&c, view, camera, wanted, first, n, detail);
    for (int round = 0; err == VX_OK && c.n > 0 && round < MAX_ROUNDS; round++) {
        err = cast_rays(&c, detail);
        if (err == VX_OK && c.n > 0)
            err = take_fronts(&c, hits, detail);
    }
    cast_fini(&c);
    return err;
}

vx_err raycast(const struct view *view, const struct camera *camera, const uint8_t *wanted, struct hit *hits,
               struct vx_detail *detail)
{
    const uint32_t n = camera->width * camera->height;
    for (uint32_t k = 0; k < n; k++)
        if (!wanted || wanted[k])
            hits[k] = (struct hit){.range_m = NAN};
    for (uint32_t first = 0; first < n; first += AT_ONCE)
        VX_TRY_RET(
            cast_part(view, camera, wanted, first, n - first < AT_ONCE ? n - first : AT_ONCE, hits, detail));
    return VX_OK;
}

/* ------------------------------------------------------------------ automatic camera */

/* Moves the camera back along its forward axis until all points [n][3] are in the picture. */
static void fit(struct camera *camera, const double (*points)[3], size_t n)
{
    const double tan_v = camera->tan_half_fov * 0.96, tan_h = tan_v * camera->width / camera->height;
    double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY}, depth = -INFINITY;
    /* Middle of the points across the picture, then the distance at which the widest still fits. */
    for (size_t k = 0; k < n; k++) {
        const double across[2] = {dot(points[k], camera->right), dot(points[k], camera->down)};
        for (int i = 0; i < 2; i++) {
            lo[i] = fmin(lo[i], across[i]);
            hi[i] = fmax(hi[i], across[i]);
        }
    }
    const double middle[2] = {(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2};
    for (size_t k = 0; k < n; k++) {
        const double z = dot(points[k], camera->forward);
        depth = fmax(depth, fabs(dot(points[k], camera->right) - middle[0]) / tan_h - z);
        depth = fmax(depth, fabs(dot(points[k], camera->down) - middle[1]) / tan_v - z);
    }
    for (int i = 0; i < 3; i++)
        camera->eye_m[i] =
            middle[0] * camera->right[i] + middle[1] * camera->down[i] - depth * camera->forward[i];
}

static void fit_box(struct camera *camera, const double lo[3], const double hi[3])
{
    double corner[8][3];
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 3; i++)
            corner[k][i] = k >> i & 1 ? hi[i] : lo[i];
    fit(camera, (const double(*)[3])corner, 8);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/*
 * Places of the hits, without the outermost on each side: a few far readings do not make the picture small.
 * Where little is hit (a LiDAR's rings get sparse with the distance) more of them are left out.
 * points: [pixels][3].
 */
static vx_err inner_hits(const struct camera *camera, const struct hit *hits, double (*points)[3],
                         size_t *n_points, struct vx_detail *detail)
{
    const size_t n = (size_t)camera->width * camera->height;
    double *value = malloc(n * sizeof *value), lo[3], hi[3];
    size_t found = 0, kept = 0;
    if (!value)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory");
    for (uint32_t k = 0; k < n; k++) {
        double d[3];
        if (isnan(hits[k].range_m))
            continue;
        camera_ray(camera, k % camera->width, k / camera->width, d);
        for (int i = 0; i < 3; i++)
            points[found][i] = camera->eye_m[i] + d[i] * (double)hits[k].range_m;
        found++;
    }
    const size_t trimmed = found < n / 4 ? found / 16 : found / 100;
    for (int i = 0; i < 3 && found > 0; i++) {
        for (size_t k = 0; k < found; k++)
            value[k] = points[k][i];
        qsort(value, found, sizeof *value, compare_doubles);
        lo[i] = value[trimmed];
        hi[i] = value[found - 1 - trimmed];
    }
    free(value);
    for (size_t k = 0; k < found; k++) {
        bool inside = true;
        for (int i = 0; i < 3; i++)
            inside = inside && points[k][i] >= lo[i] && points[k][i] <= hi[i];
        if (inside)
            memmove(points[kept++], points[k], sizeof points[k]);
    }
    *n_points = kept;
    return VX_OK;
}

/* Directions that a map's author may have called up, and how usual each is: LiDAR worlds, camera worlds, the
 * rest. */
static const struct {
    double up[3], weight;
} UPS[] = {{{0, 0, 1}, 1.3}, {{0, -1, 0}, 1.2}, {{0, 1, 0}, 1.15},
           {{0, 0, -1}, 1},  {{1, 0, 0}, 0.9},  {{-1, 0, 0}, 0.9}};

enum { N_UPS = sizeof UPS / sizeof *UPS, N_AZIMUTHS = 8 };

/* Camera `index` of the candidates: 45 degrees above the horizon of one `up`, from one of eight sides. */
static bool candidate(const struct view *view, int index, struct camera *camera)
{
    const double *up = UPS[index / N_AZIMUTHS].up;
    const double angle = 2 * 3.14159265358979323846 * (index % N_AZIMUTHS + 0.5) / N_AZIMUTHS;
    const double other[3] = {up[1] + up[2], up[2] + up[0],
                             up[0] + up[1]}; /* up's axes turned: never along up */
    const double zero[3] = {0, 0, 0};
    double a[3], b[3], from[3];
    cross(up, other, a);
    cross(up, a, b);
    for (int i = 0; i < 3; i++)
        from[i] = up[i] + cos(angle) * a[i] / sqrt(dot(a, a)) + sin(angle) * b[i] / sqrt(dot(b, b));
    if (!camera_look(camera, from, zero, up))
        return false;
    fit_box(camera, view->info.active_min_m, view->info.active_max_m);
    return true;
}

/* Which candidate hits the most fronts; hits: [pixels of trial]. */
static vx_err choose(const struct view *view, struct camera *trial, struct hit *hits, int *best_index,
                     struct vx_detail *detail)
{
    const size_t n = (size_t)trial->width * trial->height;
    double best = -1;
    for (int index = 0; index < N_UPS * N_AZIMUTHS; index++) {
        size_t n_hits = 0;
        if (!candidate(view, index, trial))
            continue;
        VX_TRY_RET(raycast(view, trial, NULL, hits, detail));
        for (size_t k = 0; k < n; k++)
            n_hits += !isnan(hits[k].range_m);
        if ((double)n_hits * UPS[index / N_AZIMUTHS].weight > best) {
            best = (double)n_hits * UPS[index / N_AZIMUTHS].weight;
            *best_index = index;
        }
    }
    return VX_OK;
}

vx_err raycast_automatic(const struct view *view, struct camera *camera, double up[3],
                         struct vx_detail *detail)
{
    enum { TRIAL_SIDE = 36, TRIAL_LONG = 144 };
    struct camera trial = *camera;
    /* About the picture's shape; of a strip the trial sees more, for its rays would miss the whole map. */
    trial.height = TRIAL_SIDE;
    trial.width = (TRIAL_SIDE * camera->width + camera->height - 1) / camera->height;
    if (trial.width < TRIAL_SIDE / 2)
        trial.width = TRIAL_SIDE;
    if (trial.width > TRIAL_LONG)
        trial.width = TRIAL_LONG;
    const size_t n = (size_t)trial.width * trial.height;
    struct hit *hits = malloc(n * sizeof *hits);
    double(*points)[3] = malloc(n * sizeof *points);
    size_t n_points = 0;
    int index = 0;
    vx_err err = hits && points ? choose(view, &trial, hits, &index, detail)
                                : vx_fail(detail, VX_E_NOMEM, "", "no memory");
    if (err == VX_OK) {
        (void)candidate(view, index, &trial);
        err = raycast(view, &trial, NULL, hits, detail);
    }
    if (err == VX_OK)
        err = inner_hits(&trial, hits, points, &n_points, detail);
    if (err == VX_OK) {
        (void)candidate(view, index, camera);
        if (n_points > 0)
            fit(camera, (const double(*)[3])points, n_points);
        memcpy(up, UPS[index / N_AZIMUTHS].up, sizeof UPS[0].up);
    }
    free(hits);
    free(points);
    return err;
}
