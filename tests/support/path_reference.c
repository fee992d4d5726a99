/* path_reference.c - path queries by their definition. */
#include "path_reference.h"

#include <math.h>

/* What one sphere's way says. */
struct said {
    float contact, unknown, outside; /* places; INFINITY: none */
    float least;                     /* voxels; 1e30: no distance */
};

static bool unknown_voxel(const struct vxk_query *q, const int32_t v[3])
{
    uint32_t value = 0;
    uint64_t key;

    if (!vxk_cell_key(v[0] >> 3, v[1] >> 3, v[2] >> 3, &key))
        return true;
    const int kind = vxk_voxel(&q->grid, v[0], v[1], v[2], &value);
    return vxk_evidence(kind, value, q->occupancy) == VXK_STATE_UNKNOWN;
}

/* True when an unknown voxel's cube is within r of a spot. */
static bool meets_unknown(const struct vxk_query *q, const struct vxk_spot *s, float r, bool voxels)
{
    const int32_t reach = (int32_t)ceilf(r) + 1;

    if (!voxels)
        return vxk_path_unknown(q, s, r);
    for (int32_t x = -reach; x <= reach; x++)
        for (int32_t y = -reach; y <= reach; y++)
            for (int32_t z = -reach; z <= reach; z++) {
                const int32_t d[3] = {x, y, z}, v[3] = {s->v[0] + x, s->v[1] + y, s->v[2] + z};
                float sum = 0;
                for (int a = 0; a < 3; a++) {
                    const float gap = fmaxf(fmaxf((float)d[a] - s->f[a], s->f[a] - (float)(d[a] + 1)), 0.0f);
                    sum = sum + gap * gap;
                }
                if (sum <= r * r && unknown_voxel(q, v))
                    return true;
            }
    return false;
}

static void meet(const struct vxk_query_path_args *a, const struct vxk_way *w, uint32_t segment, bool voxels,
                 struct said *out)
{
    const int n = (int)ceilf(w->length);
    const float part = n ? w->length / (float)n : 0, reach = w->radius + 0.5f * part;

    for (int k = 0; k <= n; k++) {
        const float s = n ? (float)k / (float)n : 0;
        struct vxk_spot spot;
        if (!vxk_way_at(w, s, &spot)) {
            out->outside = (float)segment + s;
            return;
        }
        if (meets_unknown(&a->q, &spot, reach, voxels)) {
            out->unknown = (float)segment + s;
            return;
        }
    }
}

/* The piece s .. end. */
static void march(const struct vxk_query_path_args *a, const struct vxk_way *w, uint32_t segment, float s,
                  float end, bool careful, struct said *out)
{
    const float most = (float)a->q.esdf.radius, begin = s;
    float gone = 0, clear, before = 0;
    bool has_before = false;
    struct vxk_esdf_cursor cursor;

    vxk_esdf_cursor_init(&cursor);
    for (;;) {
        struct vxk_spot spot;
        uint32_t state;
        float d, step, next;
        if (!vxk_way_at(w, s, &spot)) {
            out->outside = fminf(out->outside, (float)segment + s);
            return;
        }
        const bool has = vxk_probe_distance(&a->q, &cursor, &spot, 1, &d, &state);
        clear = (has ? fminf(d, most) : most) - w->radius;
        if (has)
            out->least = fminf(out->least, clear);
        if (s > begin && (has || has_before))
            out->least = fminf(out->least, 0.5f * (before + clear - gone));
        if ((has && d <= w->radius) || state == VXK_STATE_OCCUPIED) {
            out->contact = fminf(out->contact, (float)segment + s);
            return;
        }
        if (s >= end || w->length <= 0)
            return;
        step = fmaxf(fminf(clear - 0.9f, 0.5f * clear), 0.25f);
        if (careful)
            step = fminf(step, state == VXK_STATE_UNKNOWN ? 0.5f : 1.0f);
        next = fminf(s + step / w->length, end);
        gone = (next - s) * w->length;
        s = next;
        before = clear;
        has_before = has;
    }
}

static struct said way(const struct vxk_query_path_args *a, uint32_t path, uint32_t segment, uint32_t sphere,
                       bool voxels)
{
    struct said out = {INFINITY, INFINITY, INFINITY, 1e30f};
    const struct vxk_path_leg *leg = &a->legs[path * a->n_segments + segment];
    struct vxk_path_glance g;
    struct vxk_way w;

    if (!vxk_way_make(a, path, segment, sphere, &w) || !vxk_path_see(a, leg, sphere, &g)) {
        out.outside = (float)segment;
        return out;
    }
    if (a->unknown != VX_UNKNOWN_FREE)
        meet(a, &w, segment, voxels, &out);
    if (a->unknown == VX_UNKNOWN_OCCUPIED)
        out.contact = out.unknown;
    const int32_t pieces = vxk_path_pieces(w.length);
    for (int32_t k = 0; k < pieces; k++) {
        const float from = (float)k / (float)pieces, to = (float)(k + 1) / (float)pieces;
        /* occupied pieces without a surface are looked for where some may be */
        const uint32_t around = pieces == 1 ? vxk_path_around(a, &g.middle, 0.5f * g.length, g.radius)
                                            : vxk_path_around_piece(a, &w, k, pieces);
        march(a, &w, segment, from, to,
              a->unknown == VX_UNKNOWN_REPORT && (around & VXK_HAS_OCCUPIED) && (around & VXK_HAS_UNKNOWN),
              &out);
        if (out.outside < INFINITY && out.outside <= (float)segment + to)
            break;
    }
    return out;
}

/* The robot's clearance where it touches. */
static float clearance_at(const struct vxk_query_path_args *a, uint32_t path, float place)
{
    const uint32_t segment = vxk_minu((uint32_t)place, a->n_segments - 1);
    float least = 1e30f, d;

    for (uint32_t i = 0; i < a->n_spheres; i++) {
        struct vxk_esdf_cursor cursor;
        struct vxk_spot spot;
        struct vxk_way w;
        uint32_t state;
        vxk_esdf_cursor_init(&cursor);
        if (vxk_way_make(a, path, segment, i, &w) && vxk_way_at(&w, place - (float)segment, &spot) &&
            vxk_probe_distance(&a->q, &cursor, &spot, 1, &d, &state))
            least = fminf(least, fminf(d, (float)a->q.esdf.radius) - w.radius);
    }
    return least;
}

static struct vx_path_answer answer(const struct vxk_query_path_args *a, uint32_t path, bool voxels)
{
    struct vx_path_answer o = {.sphere = VXK_NONE, .contact = NAN, .unknown = NAN};
    float contact = INFINITY, unknown = INFINITY, outside = INFINITY, least = 1e30f;

    for (uint32_t segment = 0; segment < a->n_segments; segment++)
        for (uint32_t i = 0; i < a->n_spheres; i++) {
            const struct said s = way(a, path, segment, i, voxels);
            if (s.contact < contact) {
                contact = s.contact;
                o.sphere = i;
            } else if (s.contact == contact && contact < INFINITY && i < o.sphere) {
                o.sphere = i;
            }
            unknown = fminf(unknown, s.unknown);
            outside = fminf(outside, s.outside);
            least = fminf(least, s.least);
        }
    if (a->unknown == VX_UNKNOWN_OCCUPIED && outside < contact) {
        contact = outside;
        o.sphere = 0;
    }
    unknown = fminf(unknown, outside);
    if (contact < INFINITY) {
        o.contact = contact;
        o.status |= VX_Q_COLLIDES;
        least = clearance_at(a, path, contact);
    }
    if (unknown < INFINITY && unknown <= contact) {
        o.unknown = unknown;
        o.status |= VX_Q_TOUCHES_UNKNOWN;
    }
    if (outside < INFINITY && outside <= contact)
        o.status |= VX_Q_OUTSIDE;
    o.clearance_m = least < 1e29f ? least * (float)a->q.voxel_m : NAN;
    return o;
}

void path_reference(const struct vxk_query *q, const struct vx_paths *paths, const float *poses, uint32_t n,
                    bool voxels, struct vx_path_answer *answers)
{
    const uint32_t n_segments = paths->n_waypoints > 1 ? paths->n_waypoints - 1 : 1;

    for (uint32_t i = 0; i < n; i++) { /* one at a time: its legs are few */
        static struct vxk_path_leg legs[4096];
        struct vxk_path_counters counters = {0, 0};
        struct vxk_query_path_args a = {.q = *q,
                                        .poses = poses + (size_t)i * paths->n_waypoints * 7,
                                        .spheres = paths->spheres,
                                        .legs = legs,
                                        .counters = &counters,
                                        .n_paths = 1,
                                        .n_waypoints = paths->n_waypoints,
                                        .n_segments = n_segments,
                                        .n_spheres = paths->n_spheres,
                                        .unknown = paths->unknown};
        for (uint32_t k = 0; k < n_segments; k++)
            vxk_query_path_legs(&a, k);
        answers[i] = answer(&a, 0, voxels);
    }
}
