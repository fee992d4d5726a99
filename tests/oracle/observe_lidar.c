#include "observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WHO = 4, MAX_ENDS = 6, MAX_TANGENTS = 8, MAX_NORMALS = 16, NOBODY = -1 };

struct beam {
    enum kind kind;
    bool unsure;            /* its reading lies at a limit */
    double o[3], dir[3], r; /* o: where it began */
    /* every normal that rounding may lead to; -dir where the neighbours tell nothing */
    int n_normals;
    double normal[MAX_NORMALS][3], error[MAX_NORMALS];
    bool vague;       /* too many */
    bool wins, loses; /* it may be the ray of some bin; it may be none's */
};

/* A bin's possible rays. */
struct bin {
    int32_t who[MAX_WHO];
    uint8_t n;
    bool vague, empty; /* too many to tell; it may have no ray */
};

struct bins {
    struct beam *beam;
    struct bin *bin;
    int32_t width, height;
    bool turn; /* the columns close the circle */
};

/* Pose at a time from the stamp: along the great circle, along the line. */
static void observe_moving(const struct sensor *s, const struct vx_frame *f, int32_t ns, double R[9],
                           double t[3])
{
    uint32_t i = 0;
    double u, dot = 0, a, b, angle, q[4];
    const struct vx_pose *p, *n;
    while (i + 2 < f->n_poses && f->pose[i + 1].offset_ns <= ns)
        i++;
    p = &f->pose[i];
    n = &f->pose[i + 1];
    u = (double)(ns - p->offset_ns) / (double)(n->offset_ns - p->offset_ns);
    for (int k = 0; k < 4; k++)
        dot += p->rotation_xyzw[k] * n->rotation_xyzw[k];
    angle = acos(fmin(fabs(dot), 1));
    a = angle > 1e-9 ? sin((1 - u) * angle) / sin(angle) : 1 - u;
    b = angle > 1e-9 ? sin(u * angle) / sin(angle) : u;
    for (int k = 0; k < 4; k++)
        q[k] = a * p->rotation_xyzw[k] + (dot < 0 ? -b : b) * n->rotation_xyzw[k];
    observe_rotation(q, R);
    for (int k = 0; k < 3; k++)
        t[k] = (p->position_m[k] + u * (n->position_m[k] - p->position_m[k]) - s->origin_m[k]) / s->vs;
}

static void direction(const struct sensor *s, const struct vx_frame *f, uint32_t i, struct beam *b,
                      double l[3])
{
    double R[9];
    b->kind = INVALID;
    l[0] = l[1] = l[2] = 0;
    if (f->sensor == VX_RANGE) {
        double az = f->first_azimuth_rad + i % f->width * f->azimuth_step_rad,
               el = (double)f->elevation_rad[i / f->width];
        l[0] = cos(el) * cos(az);
        l[1] = cos(el) * sin(az);
        l[2] = sin(el);
        b->kind = observe_reading(s, f, (double)((const float *)f->data)[i], &b->r, &b->unsure);
    } else {
        const float *p = (const float *)f->data + 3 * (size_t)i;
        double n = sqrt((double)p[0] * p[0] + (double)p[1] * p[1] + (double)p[2] * p[2]);
        if (!isnan(n) && n != 0 && !isinf(n)) { /* else it has no direction */
            for (int k = 0; k < 3; k++)
                l[k] = p[k] / n;
            b->kind = observe_reading(s, f, n, &b->r, &b->unsure);
        }
    }
    if (f->n_poses > 1) {
        observe_moving(s, f, f->time_ns[i % f->width], R, b->o);
    } else {
        memcpy(R, s->R, sizeof R);
        memcpy(b->o, s->t, sizeof b->o);
    }
    for (int k = 0; k < 3; k++)
        b->dir[k] = R[3 * k] * l[0] + R[3 * k + 1] * l[1] + R[3 * k + 2] * l[2];
}

/* ------------------------------------------------------------------ bins */

/* The one or two whole numbers that a coordinate may be cut to. */
static int cut(double x, int32_t out[2])
{
    const double margin = 2e-3; /* the bins' arc tangent errs by 2e-6 rad */
    out[0] = (int32_t)floor(x - margin);
    out[1] = (int32_t)floor(x + margin);
    return out[0] == out[1] ? 1 : 2;
}

/* Up to four bins that a direction in sensor axes may fall into: rows from the zenith, columns round z. */
static int bins_of(const struct bins *b, const double l[3], int32_t out[4])
{
    const double pi = 3.14159265358979323846;
    int32_t row[2], column[2];
    int n_row = cut((pi / 2 - atan2(l[2], hypot(l[0], l[1]))) * b->height / pi, row), n = 0;
    int n_column = cut((atan2(l[1], l[0]) + pi) * b->width / (2 * pi), column);
    for (int r = 0; r < n_row; r++)
        for (int c = 0; c < n_column; c++)
            out[n++] = (row[r] < 0            ? 0
                        : row[r] >= b->height ? b->height - 1
                                              : row[r]) *
                           b->width +
                       (column[c] + b->width) % b->width;
    return n;
}

/* The rank of a reading within its bin: nearest first, in 1/256 voxel; open ones last. */
static void rank_of(const struct beam *b, double *lo, double *hi)
{
    *lo = b->kind == OPEN ? INFINITY : floor(b->r * 256 + 0.5 - 5e-3);
    *hi = b->kind == OPEN ? INFINITY : floor(b->r * 256 + 0.5 + 5e-3);
}

/* Who may win each bin of a point set. */
static void compete(struct bins *b, const double (*l)[3], uint32_t n)
{
    size_t n_bins = (size_t)b->width * (size_t)b->height;
    int32_t *best = malloc(n_bins * sizeof *best);
    ck_assert_ptr_nonnull(best);
    for (size_t k = 0; k < n_bins; k++) {
        best[k] = NOBODY;
        b->bin[k].empty = true;
    }
    /* first those that are in their bin beyond doubt, then all that they may not have beaten */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            struct beam *beam = &b->beam[i];
            int32_t at[4];
            int n_at = beam->kind == INVALID ? 0 : bins_of(b, l[i], at);
            double lo, hi, best_lo = 0, best_hi = 0;
            rank_of(beam, &lo, &hi);
            beam->loses = beam->loses || n_at != 1;
            for (int k = 0; k < n_at; k++) {
                struct bin *bin = &b->bin[at[k]];
                int32_t *to = &best[at[k]];
                if (*to != NOBODY)
                    rank_of(&b->beam[*to], &best_lo, &best_hi);
                if (pass == 0 && n_at == 1 && !beam->unsure && (*to == NOBODY || hi < best_hi))
                    *to = (int32_t)i;
                if (pass == 0)
                    continue;
                bin->empty = *to == NOBODY;
                if (*to != NOBODY && (best_hi < lo || (best_hi == lo && *to < (int32_t)i))) {
                    beam->loses = true;
                    continue;
                }
                beam->wins = true;
                bin->vague = bin->vague || beam->unsure || bin->n == MAX_WHO;
                if (bin->n < MAX_WHO)
                    bin->who[bin->n++] = (int32_t)i;
            }
        }
    for (size_t k = 0; k < n_bins; k++)
        for (int i = 0; b->bin[k].n > 1 && i < b->bin[k].n; i++)
            b->beam[b->bin[k].who[i]].loses = true;
    free(best);
}

static void bins_init(struct bins *b, const struct sensor *s, const struct vx_frame *f)
{
    uint32_t n = f->width * f->height;
    double(*l)[3] = malloc((n + 1) * sizeof *l);
    b->width = f->sensor == VX_RANGE ? (int32_t)f->width : s->k.width;
    b->height = f->sensor == VX_RANGE ? (int32_t)f->height : s->k.height;
    b->turn = f->sensor == VX_POINTS || fabs(f->azimuth_step_rad) * (f->width + 0.5) >= 6.2831853;
    b->beam = calloc(n + 1, sizeof *b->beam);
    b->bin = calloc((size_t)b->width * (size_t)b->height, sizeof *b->bin);
    ck_assert(l && b->beam && b->bin);
    for (uint32_t i = 0; i < n; i++)
        direction(s, f, i, &b->beam[i], l[i]);
    if (f->sensor == VX_POINTS) {
        compete(b, l, n);
    } else {
        for (uint32_t i = 0; i < n; i++) {
            b->beam[i].wins = true;
            b->bin[i] = (struct bin){.who = {(int32_t)i}, .n = 1, .vague = b->beam[i].unsure};
        }
    }
    free(l);
}

/* ------------------------------------------------------------------ normals */

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Vector from the end of a to the end of b. */
static void between(const struct beam *a, const struct beam *b, double out[3])
{
    for (int k = 0; k < 3; k++)
        out[k] = (b->o[k] + b->dir[k] * b->r) - (a->o[k] + a->dir[k] * a->r);
}

/*
 * The nearest surface reading at least 0.4 voxel away, among 16 bins from (row, column) on: every answer that
 * rounding may give, NOBODY for none.  Less than 0 answers: too many.
 */
static int ends_of(const struct bins *b, const struct beam *beam, int32_t row, int32_t column, int32_t dr,
                   int32_t dc, int32_t out[MAX_ENDS])
{
    int n = 0;
    for (int32_t k = 1; k <= 16; k++) {
        int32_t r = row + dr * k, c = column + dc * k;
        const struct bin *bin;
        bool on = false;
        if (b->turn && abs(dc * k) < b->width)
            c = (c + b->width) % b->width;
        if (r < 0 || r >= b->height || c < 0 || c >= b->width)
            break;
        bin = &b->bin[r * b->width + c];
        if (bin->vague)
            return -1;
        on = bin->n == 0 || bin->empty;
        for (int i = 0; i < bin->n; i++) {
            const struct beam *other = &b->beam[bin->who[i]];
            double e[3], l;
            between(beam, other, e);
            l = sqrt(dot(e, e));
            if (other->kind != HIT || l < 0.4 + 5e-5)
                on = true;
            if (other->kind == HIT && l > 0.4 - 5e-5) {
                if (n == MAX_ENDS)
                    return -1;
                out[n++] = bin->who[i];
            }
        }
        if (!on)
            return n;
    }
    if (n == MAX_ENDS)
        return -1;
    out[n++] = NOBODY;
    return n;
}

struct tangent {
    bool known;
    double t[3], error;
};

/*
 * The surface's direction through a reading from the readings on either side: known when the path over the
 * three turns by less than 5.7 degrees (squared cosine 0.99).  Every answer that rounding may give.
 */
static int tangents_of(const struct bins *b, const struct beam *beam, int32_t row, int32_t column, int32_t dr,
                       int32_t dc, struct tangent out[MAX_TANGENTS])
{
    int32_t p[MAX_ENDS], q[MAX_ENDS];
    int n_p = ends_of(b, beam, row, column, dr, dc, p), n_q = ends_of(b, beam, row, column, -dr, -dc, q),
        n = 0;
    if (n_p < 0 || n_q < 0 || n_p * n_q * 2 > MAX_TANGENTS)
        return -1;
    for (int i = 0; i < n_p; i++)
        for (int j = 0; j < n_q; j++) {
            double e[3], f[3], l, cosine;
            if (p[i] == NOBODY || q[j] == NOBODY) {
                out[n++] = (struct tangent){.known = false};
                continue;
            }
            between(beam, &b->beam[p[i]], e);
            between(&b->beam[q[j]], beam, f);
            cosine = dot(e, f) / sqrt(dot(e, e) * dot(f, f));
            if (cosine < sqrt(0.99) + 1e-5)
                out[n++] = (struct tangent){.known = false};
            if (cosine > sqrt(0.99) - 1e-5) {
                out[n].known = true;
                for (int k = 0; k < 3; k++)
                    out[n].t[k] = e[k] + f[k];
                l = sqrt(dot(out[n].t, out[n].t));
                for (int k = 0; k < 3; k++)
                    out[n].t[k] /= l;
                out[n++].error = 1e-5 / l; /* rounding of the ends */
            }
        }
    return n;
}

static void add_normal(struct beam *b, const double n[3], double error)
{
    if (b->n_normals == MAX_NORMALS) {
        b->vague = true;
        return;
    }
    memcpy(b->normal[b->n_normals], n, sizeof b->normal[0]);
    b->error[b->n_normals++] = error;
}

/* Across both tangents; with one, across it and as near to the ray as can be; else against the ray. */
static void normal_from(struct beam *b, const struct tangent *u, const struct tangent *v)
{
    const double back[3] = {-b->dir[0], -b->dir[1], -b->dir[2]};
    double n[3], l, facing;
    if (!u->known && !v->known) {
        add_normal(b, back, 0);
        return;
    }
    if (u->known && v->known) {
        for (int k = 0; k < 3; k++)
            n[k] = u->t[(k + 1) % 3] * v->t[(k + 2) % 3] - u->t[(k + 2) % 3] * v->t[(k + 1) % 3];
    } else {
        const double *t = u->known ? u->t : v->t;
        for (int k = 0; k < 3; k++)
            n[k] = back[k] - dot(back, t) * t[k];
    }
    l = sqrt(dot(n, n));
    if (l < 0.01 + 2e-4) /* the tangents are nearly one */
        add_normal(b, back, 0);
    if (l < 0.01 - 2e-4)
        return;
    facing = dot(n, back) < 0 ? -1 : 1;
    for (int k = 0; k < 3; k++)
        n[k] *= facing / l;
    if (dot(n, back) < 0.02 + 1e-3 / (1 + 100 * l)) /* seen edge-on */
        add_normal(b, back, 0);
    if (dot(n, back) > 0.02 - 1e-3 / (1 + 100 * l))
        add_normal(b, n, (u->error + v->error) / l);
}

/* Normals of the readings that may be their bin's. */
static void search_normals(struct bins *b)
{
    for (int32_t row = 0; row < b->height; row++)
        for (int32_t column = 0; column < b->width; column++) {
            const struct bin *bin = &b->bin[row * b->width + column];
            for (int i = 0; i < bin->n; i++) {
                struct beam *beam = &b->beam[bin->who[i]];
                struct tangent u[MAX_TANGENTS], v[MAX_TANGENTS];
                int n_u, n_v;
                if (beam->kind != HIT)
                    continue;
                n_u = tangents_of(b, beam, row, column, 0, 1, u);
                n_v = tangents_of(b, beam, row, column, 1, 0, v);
                beam->vague = beam->vague || n_u < 0 || n_v < 0;
                for (int j = 0; j < n_u; j++)
                    for (int k = 0; k < n_v; k++)
                        normal_from(beam, &u[j], &v[k]);
            }
        }
}

/* Readings that may be no bin's, and those that were not searched, have no normal but the ray's. */
static void settle_normals(struct bins *b, uint32_t n_beams, struct surfaces *count)
{
    for (uint32_t i = 0; i < n_beams; i++) {
        struct beam *beam = &b->beam[i];
        const double back[3] = {-beam->dir[0], -beam->dir[1], -beam->dir[2]};
        if (beam->loses || !beam->wins || !beam->n_normals)
            add_normal(beam, back, 0);
        count->n += beam->kind == HIT;
        count->sloped += beam->kind == HIT && beam->n_normals == 1 && beam->error[0] > 0;
        count->unsure += beam->kind == HIT && (beam->vague || beam->unsure || beam->n_normals > 1);
    }
}

/* Least and greatest distance of the point w (from the beam's origin) to the plane at its end. */
static void plane_distance(const struct beam *b, const double w[3], double *lo, double *hi)
{
    double off[3];
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int k = 0; k < 3; k++)
        off[k] = w[k] - b->dir[k] * b->r;
    for (int i = 0; i < b->n_normals; i++) {
        double d = dot(off, b->normal[i]), slack = sqrt(dot(off, off)) * b->error[i];
        *lo = fmin(*lo, d - slack);
        *hi = fmax(*hi, d + slack);
    }
}

/* ------------------------------------------------------------------ voxels */

/* Length of o + t d, t in [t0, t1], within the cube [v - grow, v + 1 + grow]; negative when they miss. */
static double chord(const double o[3], const double d[3], double t0, double t1, const int32_t v[3],
                    double grow)
{
    for (int k = 0; k < 3; k++) {
        double lo = v[k] - grow - o[k], hi = v[k] + 1 + grow - o[k];
        if (fabs(d[k]) < 1e-12) {
            if (lo > 0 || hi < 0)
                return -1;
            continue;
        }
        lo /= d[k];
        hi /= d[k];
        t0 = fmax(t0, fmin(lo, hi));
        t1 = fmin(t1, fmax(lo, hi));
    }
    return t1 - t0;
}

/* Adds a surface to the voxels of its band.  A voxel that is met for less than EPS may count or not. */
static void hit_band(const struct sensor *s, struct box *b, const struct beam *beam)
{
    const double *dir = beam->dir;
    double half = s->k.mode == 0 ? s->trunc : 0, t0 = fmax(beam->r - half, 0), t1 = beam->r + half;
    int32_t lo[3], hi[3], v[3];
    for (int k = 0; k < 3; k++) {
        double p0 = beam->o[k] + dir[k] * t0, p1 = beam->o[k] + dir[k] * t1;
        lo[k] = (int32_t)floor(fmin(p0, p1) - 2 * EPS);
        hi[k] = (int32_t)floor(fmax(p0, p1) + 2 * EPS);
    }
    for (v[0] = lo[0]; v[0] <= hi[0]; v[0]++)
        for (v[1] = lo[1]; v[1] <= hi[1]; v[1]++)
            for (v[2] = lo[2]; v[2] <= hi[2]; v[2]++) {
                bool sure = half > 0 ? chord(beam->o, dir, t0, t1, v, -EPS) > EPS
                                     : chord(beam->o, dir, t0, t1, v, -EPS) >= 0;
                double w[3], from, to;
                struct obs *o;
                if (chord(beam->o, dir, t0 - EPS, t1 + EPS, v, EPS) < 0)
                    continue;
                if (!box_holds(b, v))
                    ck_abort_msg("the box is too small");
                o = &b->obs[box_index(b, v)];
                if (!sure || beam->unsure || (beam->vague && s->k.mode == 0))
                    o->what = EITHER;
                else if (o->what != EITHER)
                    o->what = BAND;
                for (int k = 0; k < 3; k++)
                    w[k] = v[k] + 0.5 - beam->o[k];
                plane_distance(beam, w, &from, &to);
                o->q_lo += (float)rint(fmin(fmax(from * s->q_scale, -32767), 32767));
                o->q_hi += (float)rint(fmin(fmax(to * s->q_scale, -32767), 32767));
                o->weight++;
            }
}

/*
 * Marks the voxels whose centre lies within half a voxel of a beam that goes on for `clear` beyond them and
 * ends on a surface that is `clear_plane` away.
 */
static void clear_beam(const struct sensor *s, struct box *b, const struct beam *beam)
{
    double limit = beam->kind == OPEN ? s->max_d : beam->r - (double)s->k.clear;
    for (double t = 0; t < limit + 1; t += 0.5) {
        int32_t c[3], v[3];
        for (int k = 0; k < 3; k++)
            c[k] = (int32_t)floor(beam->o[k] + beam->dir[k] * t);
        for (v[0] = c[0] - 1; v[0] <= c[0] + 1; v[0]++)
            for (v[1] = c[1] - 1; v[1] <= c[1] + 1; v[1]++)
                for (v[2] = c[2] - 1; v[2] <= c[2] + 1; v[2]++) {
                    double w[3], along, off, from = INFINITY, to = INFINITY;
                    struct obs *o;
                    if (!box_holds(b, v))
                        continue;
                    for (int k = 0; k < 3; k++)
                        w[k] = v[k] + 0.5 - beam->o[k];
                    along = dot(w, beam->dir);
                    off = sqrt(fmax(dot(w, w) - along * along, 0));
                    if (along < -EPS || off > 0.5 + EPS || along > limit + EPS)
                        continue;
                    if (beam->kind == HIT)
                        plane_distance(beam, w, &from, &to);
                    o = &b->obs[box_index(b, v)];
                    if (beam->vague || to > (double)s->k.clear_plane - EPS)
                        o->may_free = 1;
                    if (!beam->vague && !beam->loses && along > EPS && off < 0.5 - EPS &&
                        along < limit - EPS && from > (double)s->k.clear_plane + EPS)
                        o->must_see = 1;
                }
    }
}

void observe_lidar(const struct sensor *s, const struct vx_frame *f, struct box *b, struct surfaces *count)
{
    uint32_t n = f->width * f->height;
    size_t voxels = (size_t)b->n[0] * (size_t)b->n[1] * (size_t)b->n[2];
    struct bins bins;
    memset(b->obs, 0, voxels * sizeof *b->obs);
    bins_init(&bins, s, f);
    search_normals(&bins);
    settle_normals(&bins, n, count);
    for (uint32_t i = 0; i < n; i++) {
        struct beam *beam = &bins.beam[i];
        if (beam->kind == HIT || beam->unsure)
            hit_band(s, b, beam);
        if (!f->no_carving && beam->kind != INVALID && beam->wins)
            clear_beam(s, b, beam);
    }
    for (size_t i = 0; i < voxels; i++) {
        struct obs *o = &b->obs[i];
        if (o->what == BAND) {
            o->q_lo /= o->weight;
            o->q_hi /= o->weight;
            o->weight = fminf(o->weight, 255);
        }
    }
    free(bins.beam);
    free(bins.bin);
}
