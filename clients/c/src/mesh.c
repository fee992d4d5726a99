/* mesh.c - a mesh that follows its map: chunks kept, replaced, removed, welded. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 24, INDEX_LIMIT = 65536 };

/* A chunk's record, as the wire has it. */
struct record {
    int32_t chunk[3];
    uint32_t n_vertices, n_triangles;
    uint16_t vertex_bytes, index_bytes;
    const uint8_t *vertices, *triangles;
    size_t n_bytes;
};

struct vxc_mesh_follower {
    struct vxc_client *client;
    char map[VXC_NAME_MAX + 1];
    struct vxc_mesh_follow_options options;
    uint64_t epoch; /* that the chunks are of; 0: none came yet */
    uint8_t uuid[16];
    struct vxc_map_state state;
    double origin_m[3], voxel_m;
    struct vxc_mesh_chunk *chunks; /* ascending; each owns one block, at ->vertices */
    size_t n_chunks;
};

vx_err vxc_mesh_follow(struct vxc_client *client, const char *map,
                       const struct vxc_mesh_follow_options *options, struct vxc_mesh_follower **out,
                       struct vx_detail *detail)
{
    *out = NULL;
    VX_TRY_RET(vxc__check_map(map, detail));
    struct vxc_mesh_follower *f = calloc(1, sizeof *f);
    if (!f)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory to follow a mesh");
    f->client = client;
    memcpy(f->map, map, strlen(map) + 1); /* a map's name is at most VXC_NAME_MAX long */
    if (options)
        f->options = *options;
    *out = f;
    return VX_OK;
}

static void free_chunks(struct vxc_mesh_chunk *chunks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)chunks[i].vertices);
    free(chunks);
}

void vxc_mesh_unfollow(struct vxc_mesh_follower *follower)
{
    if (!follower)
        return;
    free_chunks(follower->chunks, follower->n_chunks);
    free(follower);
}

size_t vxc_mesh_chunks(const struct vxc_mesh_follower *follower, const struct vxc_mesh_chunk **chunks)
{
    *chunks = follower->chunks;
    return follower->n_chunks;
}

void vxc_mesh_frame(const struct vxc_mesh_follower *follower, double origin_m[3], double *voxel_m)
{
    memcpy(origin_m, follower->origin_m, sizeof follower->origin_m);
    *voxel_m = follower->voxel_m;
}

/* ------------------------------------------------------------------ records */

static int compare(const int32_t a[3], const int32_t b[3])
{
    for (int k = 0; k < 3; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

/* The record at bytes, of which there are `left`; NULL, or what is wrong with it. */
static const char *read_record(const uint8_t *bytes, size_t left, struct record *r)
{
    if (left < HEAD_BYTES)
        return "is cut short";
    memcpy(r->chunk, bytes, 12);
    memcpy(&r->n_vertices, bytes + 12, 4);
    memcpy(&r->n_triangles, bytes + 16, 4);
    memcpy(&r->vertex_bytes, bytes + 20, 2);
    memcpy(&r->index_bytes, bytes + 22, 2);
    if (r->vertex_bytes < sizeof(struct vxc_mesh_vertex) || r->vertex_bytes % 4 ||
        r->index_bytes != (r->n_vertices > INDEX_LIMIT ? 4 : 2))
        return "has numbers of an unknown size";
    const size_t vertex_bytes = (size_t)r->n_vertices * r->vertex_bytes,
                 triangle_bytes = ((size_t)r->n_triangles * 3 * r->index_bytes + 3) / 4 * 4;
    if (left - HEAD_BYTES < vertex_bytes || left - HEAD_BYTES - vertex_bytes < triangle_bytes)
        return "is cut short";
    r->vertices = bytes + HEAD_BYTES;
    r->triangles = r->vertices + vertex_bytes;
    r->n_bytes = HEAD_BYTES + vertex_bytes + triangle_bytes;
    return NULL;
}

/* A record as a chunk with a block of its own. */
static vx_err make_chunk(const struct record *r, uint64_t epoch, struct vxc_mesh_chunk *out,
                         struct vx_detail *detail)
{
    const size_t n_indices = (size_t)r->n_triangles * 3;
    const bool tinted = r->vertex_bytes >= sizeof(struct vxc_mesh_vertex) + sizeof(struct vxc_tint);
    const size_t tint_bytes = tinted ? r->n_vertices * sizeof(struct vxc_tint) : 0;
    struct vxc_mesh_vertex *vertices =
        malloc(r->n_vertices * sizeof *vertices + n_indices * 4 + tint_bytes + 1);
    if (!vertices)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a chunk of %u triangles", r->n_triangles);
    uint32_t *triangles = (uint32_t *)(void *)(vertices + r->n_vertices);
    struct vxc_tint *tints = (struct vxc_tint *)(void *)(triangles + n_indices);
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        const uint8_t *from = r->vertices + (size_t)v * r->vertex_bytes;
        memcpy(&vertices[v], from, sizeof *vertices);
        if (tinted)
            memcpy(&tints[v], from + sizeof *vertices, sizeof *tints);
    }
    for (size_t i = 0; i < n_indices; i++) {
        uint16_t narrow = 0;
        if (r->index_bytes == 2) {
            memcpy(&narrow, r->triangles + 2 * i, 2);
            triangles[i] = narrow;
        } else {
            memcpy(&triangles[i], r->triangles + 4 * i, 4);
        }
        if (triangles[i] >= r->n_vertices) {
            free(vertices);
            return vx_fail(detail, VX_E_INTERNAL, "",
                           "a mesh came with a triangle of a vertex that it lacks");
        }
    }
    *out = (struct vxc_mesh_chunk){.n_vertices = r->n_vertices,
                                   .n_triangles = r->n_triangles,
                                   .vertices = vertices,
                                   .tints = tinted ? tints : NULL,
                                   .triangles = triangles,
                                   .epoch = epoch};
    memcpy(out->chunk, r->chunk, sizeof out->chunk);
    return VX_OK;
}

/* The answer's records, all of them chunks (those without surface too) or none. */
static vx_err read_all(const uint8_t *body, size_t n_bytes, uint32_t n, uint64_t epoch,
                       struct vxc_mesh_chunk **out, struct vx_detail *detail)
{
    struct vxc_mesh_chunk *chunks;
    vx_err err = VX_OK;
    uint32_t done = 0;
    *out = NULL;
    if (n > n_bytes / HEAD_BYTES)
        return vx_fail(detail, VX_E_INTERNAL, "", "%u chunks came as %zu bytes", n, n_bytes);
    chunks = calloc(n + 1ull, sizeof *chunks);
    if (!chunks)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %u chunks", n);
    for (; done < n && err == VX_OK; done += err == VX_OK) {
        struct record r;
        const char *fault = read_record(body, n_bytes, &r);
        if (!fault && done && compare(chunks[done - 1].chunk, r.chunk) >= 0)
            fault = "is out of order";
        if (fault) {
            err = vx_fail(detail, VX_E_INTERNAL, "", "chunk %u of %u of a mesh %s", done, n, fault);
            break;
        }
        err = make_chunk(&r, epoch, &chunks[done], detail);
        body += r.n_bytes;
        n_bytes -= r.n_bytes;
    }
    if (err == VX_OK && n_bytes)
        err = vx_fail(detail, VX_E_INTERNAL, "", "a mesh came with %zu bytes too many", n_bytes);
    if (err != VX_OK)
        free_chunks(chunks, done);
    else
        *out = chunks;
    return err;
}

/* ------------------------------------------------------------------ update */

/* Puts what came (ascending, owned) in the place of what was kept. */
static vx_err merge(struct vxc_mesh_follower *f, struct vxc_mesh_chunk *came, uint32_t n_came, bool complete,
                    struct vxc_mesh_change *change, struct vx_detail *detail)
{
    struct vxc_mesh_chunk *all = malloc((f->n_chunks + n_came + 1) * sizeof *all);
    size_t n = 0, old = 0;
    if (!all)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu chunks", f->n_chunks + n_came);
    for (uint32_t i = 0; i < n_came; i++) {
        for (; old < f->n_chunks && compare(f->chunks[old].chunk, came[i].chunk) < 0; old++) {
            if (complete) {
                free((void *)(uintptr_t)f->chunks[old].vertices);
                change->n_removed++;
            } else {
                all[n++] = f->chunks[old];
            }
        }
        if (old < f->n_chunks && compare(f->chunks[old].chunk, came[i].chunk) == 0) {
            free((void *)(uintptr_t)f->chunks[old++].vertices);
            change->n_removed += came[i].n_triangles == 0;
        }
        if (came[i].n_triangles) {
            all[n++] = came[i];
            change->n_changed++;
        } else {
            free((void *)(uintptr_t)came[i].vertices);
        }
    }
    for (; old < f->n_chunks; old++) {
        if (complete) {
            free((void *)(uintptr_t)f->chunks[old].vertices);
            change->n_removed++;
        } else {
            all[n++] = f->chunks[old];
        }
    }
    free(f->chunks);
    free(came);
    f->chunks = all;
    f->n_chunks = n;
    return VX_OK;
}

static vx_err take_answer(struct vxc_mesh_follower *f, const struct vxc__exchange *x,
                          struct vxc_mesh_change *change, struct vx_detail *detail)
{
    const Voxeld__V1__Result *result = x->answer->result;
    struct vxc_mesh_chunk *came;
    vxc__state_of(result->map, &change->state);
    change->complete = result->mesh_complete;
    change->n_bytes = x->down_bytes;
    VX_TRY_RET(read_all(x->down, x->down_bytes, result->n_chunks, change->state.epoch, &came, detail));
    vx_err err = merge(f, came, result->n_chunks, result->mesh_complete, change, detail);
    if (err != VX_OK) {
        free_chunks(came, result->n_chunks);
        return err;
    }
    f->state = change->state;
    f->epoch = change->state.epoch;
    memcpy(f->uuid, change->state.uuid, sizeof f->uuid);
    f->voxel_m = result->mesh_voxel_m;
    for (int a = 0; a < 3 && result->mesh_origin_m; a++)
        f->origin_m[a] = a == 0   ? result->mesh_origin_m->x
                         : a == 1 ? result->mesh_origin_m->y
                                  : result->mesh_origin_m->z;
    return VX_OK;
}

vx_err vxc_mesh_update(struct vxc_mesh_follower *f, uint64_t min_epoch, struct vxc_mesh_change *change,
                       struct vx_detail *detail)
{
    Voxeld__V1__Mesh body = VOXELD__V1__MESH__INIT;
    Voxeld__V1__Box region = VOXELD__V1__BOX__INIT;
    Voxeld__V1__Vec3 lo, hi;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc_mesh_change unasked;
    struct vxc__exchange x;
    if (!change)
        change = &unasked;
    memset(change, 0, sizeof *change);
    body.map = vxc__bytes_of(f->map);
    body.min_epoch = min_epoch;
    body.min_weight = f->options.min_weight;
    body.progress = true;
    body.chunks = true;
    body.since_epoch = f->epoch;
    if (f->epoch)
        body.since_uuid = (ProtobufCBinaryData){sizeof f->uuid, f->uuid};
    if (f->options.has_region) {
        voxeld__v1__vec3__init(&lo);
        voxeld__v1__vec3__init(&hi);
        vxc__set_origin(&lo, f->options.min_m);
        vxc__set_origin(&hi, f->options.max_m);
        region.min_m = &lo;
        region.max_m = &hi;
        body.region = &region;
    }
    header.body_case = VOXELD__V1__HEADER__BODY_MESH;
    header.mesh = &body;
    vx_err err =
        vxc__call(f->client, VXC__QUERY, &header, NULL, 0, VOXELD__V1__HEADER__BODY_RESULT, &x, detail);
    if (err == VX_OK)
        err = take_answer(f, &x, change, detail);
    vxc__exchange_fini(&x);
    return err;
}

/* ------------------------------------------------------------------ weld */

/* Vertices by their place, in 1/256 voxel; an open table of their numbers. */
struct welder {
    int64_t (*at)[3];
    uint32_t *slots; /* number + 1 */
    uint64_t mask;
    uint32_t n;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Number of the vertex at a place; *fresh: it had none. */
static uint32_t number_of(struct welder *w, const int64_t at[3], bool *fresh)
{
    uint64_t i = mix((uint64_t)at[0] + mix((uint64_t)at[1] + mix((uint64_t)at[2]))) & w->mask;
    for (; w->slots[i]; i = (i + 1) & w->mask)
        if (memcmp(w->at[w->slots[i] - 1], at, sizeof *w->at) == 0) {
            *fresh = false;
            return w->slots[i] - 1;
        }
    *fresh = true;
    memcpy(w->at[w->n], at, sizeof *w->at);
    w->slots[i] = ++w->n;
    return w->n - 1;
}

/* Room for n vertices at most and n_triangles: one block for the mesh. */
static vx_err make_room(struct welder *w, struct vxc_mesh *out, uint64_t n, uint64_t n_triangles, bool tinted,
                        uint32_t **numbers, uint64_t most, struct vx_detail *detail)
{
    uint64_t slots = 64;
    while (slots < 2 * n)
        slots *= 2;
    w->mask = slots - 1;
    w->at = malloc((n + 1) * sizeof *w->at);
    w->slots = calloc(slots, sizeof *w->slots);
    *numbers = malloc((most + 1) * sizeof **numbers);
    out->memory = malloc(n * (24 + (tinted ? sizeof *out->tints : 0)) + n_triangles * 12 + 1);
    if (w->at && w->slots && *numbers && out->memory)
        return VX_OK;
    return vx_fail(detail, VX_E_NOMEM, "", "no memory for a mesh of %llu triangles",
                   (unsigned long long)n_triangles);
}

/* Adds a chunk; vertices and normals go to floats [3] each, relative to voxel `base`. */
static void weld_chunk(const struct vxc_mesh_follower *f, const struct vxc_mesh_chunk *c, struct welder *w,
                       const int64_t base[3], float *vertices, float *normals, struct vxc_tint *tints,
                       uint32_t *numbers, uint32_t *triangles)
{
    for (uint32_t v = 0; v < c->n_vertices; v++) {
        int64_t at[3];
        bool fresh;
        for (int a = 0; a < 3; a++)
            at[a] = (int64_t)c->chunk[a] * 128 * 256 + c->vertices[v].position[a];
        numbers[v] = number_of(w, at, &fresh);
        if (tints && fresh)
            tints[numbers[v]] = c->tints[v];
        for (int a = 0; a < 3 && fresh; a++) {
            const size_t i = 3 * (size_t)numbers[v] + (size_t)a;
            vertices[i] = (float)((double)(at[a] - base[a] * 256) / 256 * f->voxel_m);
            normals[i] = (float)(c->vertices[v].normal[a] / 32767.0);
        }
    }
    for (size_t i = 0; i < 3 * (size_t)c->n_triangles; i++)
        triangles[i] = numbers[c->triangles[i]];
}

vx_err vxc_mesh_weld(const struct vxc_mesh_follower *f, struct vxc_mesh *out, struct vx_detail *detail)
{
    struct welder w = {.at = NULL};
    uint64_t n = 0, n_triangles = 0, most = 0;
    bool tinted = true; /* a map has them everywhere or nowhere */
    uint32_t *numbers = NULL;
    int64_t base[3] = {0, 0, 0};
    vx_err err = VX_OK;
    memset(out, 0, sizeof *out);
    out->state = f->state;
    for (size_t i = 0; i < f->n_chunks; i++) {
        n += f->chunks[i].n_vertices;
        n_triangles += f->chunks[i].n_triangles;
        most = f->chunks[i].n_vertices > most ? f->chunks[i].n_vertices : most;
        tinted = tinted && f->chunks[i].tints;
        for (int a = 0; a < 3; a++)
            if (i == 0 || f->chunks[i].chunk[a] * 128ll < base[a])
                base[a] = f->chunks[i].chunk[a] * 128ll;
    }
    for (int a = 0; a < 3; a++)
        out->origin_m[a] = f->origin_m[a] + (double)base[a] * f->voxel_m;
    if (n >= UINT32_MAX || n_triangles > UINT32_MAX)
        return vx_fail(detail, VX_E_EXHAUSTED, "", "%llu triangles are too many for one mesh",
                       (unsigned long long)n_triangles);
    if (!n)
        return VX_OK;
    VX_TRY(make_room(&w, out, n, n_triangles, tinted, &numbers, most, detail));
    float *vertices = out->memory, *normals = vertices + 3 * n;
    uint32_t *triangles = (uint32_t *)(void *)(normals + 3 * n);
    struct vxc_tint *tints = tinted ? (struct vxc_tint *)(void *)(triangles + 3 * n_triangles) : NULL;
    for (size_t i = 0, done = 0; i < f->n_chunks; done += f->chunks[i++].n_triangles)
        weld_chunk(f, &f->chunks[i], &w, base, vertices, normals, tints, numbers, triangles + 3 * done);
    out->n_vertices = w.n;
    out->n_triangles = (uint32_t)n_triangles;
    out->vertices = vertices;
    out->normals = normals;
    out->tints = tints;
    out->triangles = triangles;
fail:
    free(w.at);
    free(w.slots);
    free(numbers);
    if (err != VX_OK)
        vxc_mesh_fini(out);
    return err;
}
