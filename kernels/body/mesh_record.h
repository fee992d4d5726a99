/*
 * mesh_record.h - the bytes of the chunks' records: a head, the vertices that the chunk's triangles use, the
 * triangles.
 *
 * The job numbers vertices and triangles through all chunks.  A chunk's triangles use its own vertices and,
 * at its upper border, those of the seven chunks above: (dx, dy, dz) in {0, 1}, numbered d = dx << 2 | dy <<
 * 1 | dz.  A record holds the used ones by d and then in the job's order, so that a running sum over the
 * flags [d][vertex] numbers them all.
 */
#ifndef VXK_BODY_MESH_RECORD_H
#define VXK_BODY_MESH_RECORD_H

#include "mesh_emit.h"

struct vxk_mesh_record_head { /* core's vx_mesh_chunk */
    int32_t chunk[3];
    uint32_t n_vertices, n_triangles;
    uint16_t vertex_bytes, index_bytes;
};
enum { VXK_MESH_RECORD_HEAD = 24 };

struct vxk_mesh_records {
    struct vxk_cells c;
    const uint32_t *near;                 /* [chunks] as vxk_mesh_dirty's; bit 13: the chunk is made */
    const uint32_t *bases;                /* [chunks + 1][2] vertices and triangles before a chunk */
    const struct vxk_mesh_packed *vertex; /* [vertices] */
    const struct vxk_tint_answer *tint;   /* [vertices], or NULL */
    const uint32_t *triangle;             /* [triangles][3] */
    uint32_t *above, *below;              /* [chunks][8] the chunk at +d, -d, or VXK_NONE */
    uint32_t *rank; /* [8 * vertices + 1] 1 where the chunk at -d from the owner uses it; then running sums */
    uint32_t *first; /* [chunks][9] vertices of a record before those of d; the last: all */
    uint64_t *at;    /* [chunks + 1] bytes of a record; then running sums */
    uint64_t *sums;  /* [2] records, their vertices: zeros */
    uint8_t *body;
    uint32_t n_chunks, n_vertices;
    uint32_t complete;     /* chunks without triangles are left out */
    uint32_t vertex_bytes; /* a vertex, and its tint behind it */
};

/* The chunk in whose range of vertices (which = 0) or triangles (1) number i lies. */
VXK_FN uint32_t vxk_mesh_record_chunk(const struct vxk_mesh_records *r, uint32_t which, uint32_t i)
{
    uint32_t lo = 0, hi = r->n_chunks;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (r->bases[2 * mid + which] <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}
/* Which of the eight chunks owns a vertex that chunk c uses. */
VXK_FN uint32_t vxk_mesh_record_owner(const struct vxk_mesh_records *r, uint32_t c, uint32_t vertex)
{
    for (uint32_t d = 0; d < 7; d++) {
        uint32_t o = r->above[8 * c + d];
        if (o != VXK_NONE && vertex - r->bases[2 * o] < r->bases[2 * o + 2] - r->bases[2 * o])
            return d;
    }
    return 7;
}
VXK_FN uint32_t vxk_mesh_record_indices(uint32_t n_vertices)
{
    return n_vertices > 65536 ? 4 : 2;
}

/* Finds the neighbours.  Element: chunk i >> 3, d = i & 7. */
struct vxk_mesh_record_around_args {
    struct vxk_mesh_records r;
};
VXK_FN void vxk_mesh_record_around(const struct vxk_mesh_record_around_args *a, uint32_t i)
{
    const struct vxk_mesh_records *r = &a->r;
    int32_t k[3], d[3];
    d[0] = (int32_t)(i >> 2 & 1);
    d[1] = (int32_t)(i >> 1 & 1);
    d[2] = (int32_t)(i & 1);
    vxk_key_xyz(r->c.chunk_key[i >> 3], &k[0], &k[1], &k[2]);
    for (int32_t sign = -1; sign <= 1; sign += 2) {
        uint32_t slot = VXK_NONE;
        uint64_t key;
        if (vxk_cell_key((k[0] + sign * d[0]) * 16, (k[1] + sign * d[1]) * 16, (k[2] + sign * d[2]) * 16,
                         &key))
            slot = vxk_hash_find(r->c.keys, r->c.slot_mask, key);
        (sign < 0 ? r->below : r->above)[i] = slot == VXK_NONE ? VXK_NONE : r->c.index[slot];
    }
}

/* Flags the vertices that are used.  Element: a triangle. */
struct vxk_mesh_record_use_args {
    struct vxk_mesh_records r;
};
VXK_FN void vxk_mesh_record_use(const struct vxk_mesh_record_use_args *a, uint32_t i)
{
    const struct vxk_mesh_records *r = &a->r;
    uint32_t c = vxk_mesh_record_chunk(r, 1, i);
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t v = r->triangle[3 * (uint64_t)i + k], d = vxk_mesh_record_owner(r, c, v);
        vxk_store32(&r->rank[d * r->n_vertices + v], 1);
    }
}

/* Counts a record's vertices and bytes.  Element: a chunk. */
struct vxk_mesh_record_size_args {
    struct vxk_mesh_records r;
};
VXK_FN void vxk_mesh_record_size(const struct vxk_mesh_record_size_args *a, uint32_t i)
{
    const struct vxk_mesh_records *r = &a->r;
    uint32_t n = 0, n_triangles = r->bases[2 * i + 3] - r->bases[2 * i + 1];
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < 8; d++) {
        uint32_t o = r->above[8 * i + d];
        const uint32_t *rank = r->rank + d * r->n_vertices;
        r->first[9 * i + d] = n;
        if (o != VXK_NONE)
            n += rank[r->bases[2 * o + 2]] - rank[r->bases[2 * o]];
    }
    r->first[9 * i + 8] = n;
    if (r->near[i] >> 13 & 1 && (n_triangles || !r->complete)) {
        bytes = VXK_MESH_RECORD_HEAD + (uint64_t)n * r->vertex_bytes +
                (((uint64_t)n_triangles * 3 * vxk_mesh_record_indices(n) + 3) & ~3ull);
        vxk_atomic_add64(&r->sums[0], 1);
        vxk_atomic_add64(&r->sums[1], n);
    }
    r->at[i] = bytes;
}

/* Writes heads, and zeros behind the triangles.  Element: a chunk. */
struct vxk_mesh_record_heads_args {
    struct vxk_mesh_records r;
};
VXK_FN void vxk_mesh_record_heads(const struct vxk_mesh_record_heads_args *a, uint32_t i)
{
    const struct vxk_mesh_records *r = &a->r;
    uint32_t n = r->first[9 * i + 8], n_triangles = r->bases[2 * i + 3] - r->bases[2 * i + 1];
    struct vxk_mesh_record_head *head = (struct vxk_mesh_record_head *)(void *)(r->body + r->at[i]);
    if (r->at[i] == r->at[i + 1])
        return;
    vxk_key_xyz(r->c.chunk_key[i], &head->chunk[0], &head->chunk[1], &head->chunk[2]);
    head->n_vertices = n;
    head->n_triangles = n_triangles;
    head->vertex_bytes = (uint16_t)r->vertex_bytes;
    head->index_bytes = (uint16_t)vxk_mesh_record_indices(n);
    if (n_triangles & 1 && head->index_bytes == 2)
        *(uint16_t *)(void *)(r->body + r->at[i + 1] - 2) = 0;
}

/* Writes a vertex into each record that uses it.  Element: a vertex. */
struct vxk_mesh_record_vertices_args {
    struct vxk_mesh_records r;
};
VXK_FN void vxk_mesh_record_vertices(const struct vxk_mesh_record_vertices_args *a, uint32_t i)
{
    const struct vxk_mesh_records *r = &a->r;
    uint32_t owner = vxk_mesh_record_chunk(r, 0, i);
    for (uint32_t d = 0; d < 8; d++) {
        const uint32_t *rank = r->rank + d * r->n_vertices;
        uint32_t c, n;
        struct vxk_mesh_packed v;
        uint8_t *out;
        if (rank[i] == rank[i + 1])
            continue;
        c = r->below[8 * owner + d];
        n = r->first[9 * c + d] + rank[i] - rank[r->bases[2 * owner]];
        v = r->vertex[i];
        for (uint32_t b = 0; b < 3; b++)
            v.position[b] = (uint16_t)(v.position[b] + (d >> (2 - b) & 1) * 128 * 256);
        out = r->body + r->at[c] + VXK_MESH_RECORD_HEAD + (uint64_t)n * r->vertex_bytes;
        *(struct vxk_mesh_packed *)(void *)out = v;
        if (r->tint)
            *(struct vxk_tint_answer *)(void *)(out + sizeof v) = r->tint[i];
    }
}

/* Writes a triangle in its record's numbers.  Element: a triangle. */
struct vxk_mesh_record_triangles_args {
    struct vxk_mesh_records r;
};
VXK_FN void vxk_mesh_record_triangles(const struct vxk_mesh_record_triangles_args *a, uint32_t i)
{
    const struct vxk_mesh_records *r = &a->r;
    uint32_t c = vxk_mesh_record_chunk(r, 1, i), n = r->first[9 * c + 8], index = vxk_mesh_record_indices(n);
    uint8_t *out = r->body + r->at[c] + VXK_MESH_RECORD_HEAD + (uint64_t)n * r->vertex_bytes +
                   (uint64_t)(i - r->bases[2 * c + 1]) * 3 * index;
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t v = r->triangle[3 * (uint64_t)i + k], d = vxk_mesh_record_owner(r, c, v);
        const uint32_t *rank = r->rank + d * r->n_vertices;
        uint32_t number = r->first[9 * c + d] + rank[v] - rank[r->bases[2 * r->above[8 * c + d]]];
        if (index == 4)
            ((uint32_t *)(void *)out)[k] = number;
        else
            ((uint16_t *)(void *)out)[k] = (uint16_t)number;
    }
}

#endif
