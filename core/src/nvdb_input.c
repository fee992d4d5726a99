/* nvdb_input.c - a NanoVDB file that need not be trusted: the grid asked for, its heads, its checksum. */
#include "nvdb_input.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TILES = 1 << 20, CHECK_BLOCKS = 64, MAX_GRIDS = 1 << 16 };

/* ------------------------------------------------------------------ reading */

vx_err vx__nvdb_input_read(const struct vx__nvdb_input *in, uint64_t at, void *out, uint64_t n)
{
    uint8_t *p = out;
    if (n > in->n_bytes || at > in->n_bytes - n)
        return vx_fail(in->detail, VX_E_DATA_LOSS, "file",
                       "the file is cut short: %llu bytes, at least %llu are needed",
                       (unsigned long long)in->n_bytes, (unsigned long long)(at + n));
    while (n) {
        ssize_t k = pread(in->fd, p, n < 1u << 30 ? n : 1u << 30, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return vx_fail(in->detail, VX_E_UNAVAILABLE, "file", "cannot be read: %s",
                           k ? strerror(errno) : "it became shorter");
        p += k;
        at += (uint64_t)k;
        n -= (uint64_t)k;
    }
    return VX_OK;
}

vx_err vx__nvdb_cursor_init(struct vx__nvdb_cursor *c, const struct vx__nvdb_input *in)
{
    *c = (struct vx__nvdb_cursor){.in = in, .buffer = malloc(VX__NVDB_CURSOR_BYTES)};
    return c->buffer ? VX_OK : vx_fail(in->detail, VX_E_NOMEM, "", "no memory for the import");
}

void vx__nvdb_cursor_fini(struct vx__nvdb_cursor *c)
{
    free(c->buffer);
    c->buffer = NULL;
}

vx_err vx__nvdb_cursor_get(struct vx__nvdb_cursor *c, uint64_t at, void *out, uint32_t n)
{
    if (!n)
        return VX_OK;
    if (at < c->at || at - c->at > c->have || n > c->have - (at - c->at)) {
        uint64_t left = at < c->in->end ? c->in->end - at : 0;
        uint32_t more = left < VX__NVDB_CURSOR_BYTES ? (uint32_t)left : VX__NVDB_CURSOR_BYTES;
        c->have = 0;
        if (more < n)
            return vx_fail(c->in->detail, VX_E_INVALID, "grid_bytes",
                           "%u bytes at %llu lie behind the grid's end", n,
                           (unsigned long long)(at - c->in->grid_at));
        VX_TRY_RET(vx__nvdb_input_read(c->in, at, c->buffer, more));
        c->at = at;
        c->have = more;
    }
    memcpy(out, c->buffer + (at - c->at), n);
    return VX_OK;
}

vx_err vx__nvdb_watch(const struct vx_nvdb_watch *watch, uint64_t done, uint64_t total, const char *what,
                      struct vx_detail *detail)
{
    if (watch->cancelled && watch->cancelled(watch->context))
        return vx_fail(detail, VX_E_CANCELLED, "", "given up while %s", what);
    if (watch->progress)
        watch->progress(watch->context, done < total ? done : total, total);
    return VX_OK;
}

/* ------------------------------------------------------------------ which grid */

static vx_err check_version(const struct vx__nvdb_input *in, uint32_t version)
{
    if (version >> 21 != VX__NVDB_MAJOR)
        return vx_fail(in->detail, VX_E_VERSION, "version", "is %u.%u.%u; versions 32.x are read",
                       version >> 21, version >> 10 & 2047, version & 1023);
    return VX_OK;
}

/* A name for words: what is not printable becomes '?'. */
static void print_name(char *out, const char *name, size_t n)
{
    size_t i = 0;
    for (; i < n && name[i]; i++)
        out[i] = name[i] >= ' ' && name[i] < 127 ? name[i] : '?';
    out[i] = 0;
}

/* What the search for a grid keeps. */
struct search {
    const char *wanted;
    uint32_t n_grids, n_found;
    char names[160]; /* for words */
};

static void note_name(struct search *s, const char *name)
{
    size_t n = strlen(s->names);
    if (n < sizeof s->names - 40)
        snprintf(s->names + n, sizeof s->names - n, "%s'%.32s'", n ? ", " : "", name);
    else if (n < sizeof s->names - 8 && s->names[n - 1] != '.')
        snprintf(s->names + n, sizeof s->names - n, ", ...");
}

/* One meta record at *at; its grid lies at *grid_at.  Both go on to the next. */
static vx_err search_meta(struct vx__nvdb_input *in, struct search *s, uint64_t *at, uint64_t *grid_at)
{
    struct vx__nvdb_meta m;
    char name[VX__NVDB_NAME_MAX + 1], shown[VX__NVDB_NAME_MAX + 1];
    VX_TRY_RET(vx__nvdb_input_read(in, *at, &m, sizeof m));
    VX_TRY_RET(check_version(in, m.version));
    if (m.name_bytes < 1 || m.name_bytes > VX__NVDB_NAME_MAX)
        return vx_fail(in->detail, VX_E_INVALID, "meta.name_bytes", "is %u, must be 1 to %d", m.name_bytes,
                       VX__NVDB_NAME_MAX);
    VX_TRY_RET(vx__nvdb_input_read(in, *at + sizeof m, name, m.name_bytes));
    if (name[m.name_bytes - 1])
        return vx_fail(in->detail, VX_E_INVALID, "meta.name", "does not end");
    print_name(shown, name, m.name_bytes);
    if (m.file_bytes > in->n_bytes || *grid_at > in->n_bytes - m.file_bytes)
        return vx_fail(in->detail, VX_E_DATA_LOSS, "meta.file_bytes",
                       "grid '%.32s' would end behind the file: it is cut short", shown);
    if (++s->n_grids > MAX_GRIDS)
        return vx_fail(in->detail, VX_E_INVALID, "file", "has more than %d grids", MAX_GRIDS);
    note_name(s, shown);
    if (!s->wanted[0] || strcmp(s->wanted, name) == 0) {
        s->n_found++;
        in->grid_at = *grid_at;
        in->end = *grid_at + m.file_bytes;
        in->has_meta = true;
        in->meta = m;
        memcpy(in->name, shown, sizeof shown);
    }
    *at += sizeof m + m.name_bytes;
    *grid_at += m.file_bytes;
    return VX_OK;
}

/* The metas of a segment come before its grids: where these begin is known behind the last meta. */
static vx_err skip_metas(struct vx__nvdb_input *in, uint64_t at, uint32_t n, uint64_t *end)
{
    while (n--) {
        struct vx__nvdb_meta m;
        VX_TRY_RET(vx__nvdb_input_read(in, at, &m, sizeof m));
        at += sizeof m + m.name_bytes;
    }
    *end = at;
    return VX_OK;
}

static vx_err search_segment(struct vx__nvdb_input *in, struct search *s, uint64_t *at)
{
    struct vx__nvdb_file f;
    uint64_t grid_at;
    VX_TRY_RET(vx__nvdb_input_read(in, *at, &f, sizeof f));
    if (f.magic != VX__NVDB_MAGIC0 && f.magic != VX__NVDB_MAGIC2)
        return vx_fail(in->detail, VX_E_INVALID, "magic",
                       *at ? "there is no NanoVDB segment behind the first %llu bytes"
                           : "the file is no NanoVDB file (wrong first bytes)",
                       (unsigned long long)*at);
    VX_TRY_RET(check_version(in, f.version));
    if (!f.n_grids)
        return vx_fail(in->detail, VX_E_INVALID, "n_grids", "a segment has no grid");
    if (f.codec)
        return vx_fail(in->detail, f.codec < 3 ? VX_E_UNIMPLEMENTED : VX_E_INVALID, "codec",
                       "%s; write the file without compression",
                       f.codec == 1   ? "the file is compressed by ZIP"
                       : f.codec == 2 ? "the file is compressed by BLOSC"
                                      : "the file is compressed by an unknown codec");
    *at += sizeof f;
    VX_TRY_RET(skip_metas(in, *at, f.n_grids, &grid_at));
    for (uint32_t i = 0; i < f.n_grids; i++)
        VX_TRY_RET(search_meta(in, s, at, &grid_at));
    *at = grid_at;
    return VX_OK;
}

static vx_err find_grid(struct vx__nvdb_input *in, const char *wanted)
{
    struct search s = {.wanted = wanted ? wanted : ""};
    uint64_t magic, at = 0;
    VX_TRY_RET(vx__nvdb_input_read(in, 0, &magic, sizeof magic));
    if (magic == VX__NVDB_MAGIC1) { /* a dump of one grid, without a file head */
        in->end = in->n_bytes;
        return VX_OK;
    }
    while (at < in->n_bytes)
        VX_TRY_RET(search_segment(in, &s, &at));
    if (!s.n_found)
        return vx_fail(in->detail, VX_E_NOT_FOUND, "grid", "the file has no grid '%.64s'; it has %s",
                       s.wanted, s.names);
    if (s.n_found > 1)
        return vx_fail(in->detail, VX_E_INVALID, "grid",
                       s.wanted[0] ? "the file has several grids of this name: %s"
                                   : "the file has several grids, name one: %s",
                       s.names);
    if (in->meta.codec)
        return vx_fail(in->detail, VX_E_UNIMPLEMENTED, "meta.codec",
                       "the grid is compressed; write the file without compression");
    return VX_OK;
}

/* ------------------------------------------------------------------ heads */

static vx_err bad(const struct vx__nvdb_input *in, const char *field, const char *words)
{
    return vx_fail(in->detail, VX_E_INVALID, field, "%s", words);
}

static vx_err check_type(struct vx__nvdb_input *in)
{
    const struct vx__nvdb_grid *g = &in->head.grid;
    if (g->type == VX__NVDB_INDEX)
        return vx_fail(in->detail, VX_E_UNIMPLEMENTED, "type",
                       "Index (19) numbers inactive voxels too; convert the grid to OnIndex (20)");
    if (g->type != VX__NVDB_FLOAT && g->type != VX__NVDB_ON_INDEX)
        return vx_fail(in->detail, VX_E_UNIMPLEMENTED, "type",
                       "%u; grids of type OnIndex (20) and Float (1) are "
                       "read",
                       g->type);
    in->flat = g->type == VX__NVDB_FLOAT;
    in->leaf_bytes = in->flat ? sizeof(struct vx__nvdb_leaf_float) : sizeof(struct vx__nvdb_leaf_index);
    if (!(g->flags & VX__NVDB_BREADTH_FIRST))
        return vx_fail(in->detail, VX_E_UNIMPLEMENTED, "flags",
                       "the grid's nodes are not in breadth-first order; write it anew");
    return VX_OK;
}

static vx_err check_meta(const struct vx__nvdb_input *in)
{
    const struct vx__nvdb_meta *m = &in->meta;
    const struct vx__nvdb_grid *g = &in->head.grid;
    const struct vx__nvdb_tree *t = &in->head.tree;
    if (m->grid_bytes != g->grid_bytes || m->file_bytes != g->grid_bytes)
        return bad(in, "meta.grid_bytes", "differs from the grid's");
    if (m->type != g->type || m->class_ != g->class_ || m->version != g->version)
        return bad(in, "meta.type", "type, class or version differ from the grid's");
    if (m->n_voxels != t->n_voxels || memcmp(m->n_nodes, t->n_nodes, sizeof t->n_nodes) ||
        memcmp(m->n_tiles, t->n_tiles, sizeof t->n_tiles))
        return bad(in, "meta.n_voxels", "counts of voxels, nodes or tiles differ from the tree's");
    if (g->flags & VX__NVDB_HAS_BBOX && memcmp(&m->box, &in->box, sizeof in->box))
        return bad(in, "meta.box", "differs from the root's");
    return VX_OK;
}

static vx_err read_root(struct vx__nvdb_input *in)
{
    struct vx__nvdb_root_float f;
    const uint64_t bytes = in->flat ? sizeof f : sizeof(struct vx__nvdb_root_index);
    in->root_at = in->grid_at + VX__NVDB_HEAD;
    in->tiles_at = in->root_at + bytes;
    if (in->tiles_at > in->end)
        return bad(in, "grid_bytes", "leave no room for a root");
    VX_TRY_RET(vx__nvdb_input_read(in, in->root_at, &f, sizeof f)); /* the two roots begin alike */
    in->box = f.box;
    in->n_tiles = f.n_tiles;
    in->background = f.background;
    if (in->n_tiles > MAX_TILES)
        return vx_fail(in->detail, VX_E_INVALID, "root.n_tiles", "%u; at most %d are read", in->n_tiles,
                       MAX_TILES);
    return VX_OK;
}

/* The dense arrays of nodes, one behind the other. */
static vx_err place_nodes(struct vx__nvdb_input *in)
{
    static const char *const names[] = {"leaf", "lower", "upper"};
    const struct vx__nvdb_tree *t = &in->head.tree;
    const uint64_t tree_at = in->grid_at + sizeof in->head.grid;
    uint64_t at[3];
    in->upper_at = at[2] = in->tiles_at + (uint64_t)in->n_tiles * VX__NVDB_TILE;
    in->lower_at = at[1] = at[2] + (uint64_t)t->n_nodes[2] * sizeof(struct vx__nvdb_upper);
    in->leaf_at = at[0] = at[1] + (uint64_t)t->n_nodes[1] * sizeof(struct vx__nvdb_lower);
    in->nodes_end = at[0] + (uint64_t)t->n_nodes[0] * in->leaf_bytes;
    if (in->nodes_end > in->end)
        return bad(in, "tree.n_nodes", "the nodes do not fit into the grid's bytes");
    if (t->node_at[3] != (int64_t)sizeof in->head.tree)
        return bad(in, "tree.node_at[3]", "the root does not follow the tree");
    for (int k = 0; k < 3; k++)
        if (t->node_at[k] != (int64_t)(at[k] - tree_at) && (t->n_nodes[k] || t->node_at[k]))
            return vx_fail(in->detail, VX_E_INVALID, "tree.node_at", "%s nodes lie at %lld, must lie at %llu",
                           names[k], (long long)t->node_at[k], (unsigned long long)(at[k] - tree_at));
    for (int k = 0; k < 3; k++)
        if (t->n_tiles[k])
            return vx_fail(in->detail, VX_E_UNIMPLEMENTED, "tree.n_tiles",
                           "the grid has active tiles; turn them into voxels first");
    return VX_OK;
}

static vx_err check_map(const struct vx__nvdb_input *in)
{
    const struct vx__nvdb_map *m = &in->head.grid.map;
    double size = m->mat[0];
    if (!(isfinite(size) && size > 0))
        return vx_fail(in->detail, VX_E_INVALID, "map",
                       "a voxel of %g m; mirrored and empty transforms are not read", size);
    for (int i = 0; i < 9; i++) {
        double want = i % 4 ? 0 : size;
        if (!(fabs(m->mat[i] - want) <= 1e-9 * size))
            return bad(in, "map",
                       i % 4 ? "the grid's axes are turned or sheared; resample it along the map's axes"
                             : "the grid's voxels are no cubes; resample it");
    }
    for (int a = 0; a < 3; a++) {
        if (!isfinite(m->vec[a]))
            return bad(in, "map", "the grid's place is no number");
        if (!(fabs(in->head.grid.voxel_size[a] - size) <= 1e-6 * size))
            return bad(in, "voxel_size", "differs from the transform");
    }
    return VX_OK;
}

static vx_err check_blind(const struct vx__nvdb_input *in, struct vx__nvdb_blind *b, uint64_t at)
{
    uint64_t item = b->item_bytes;
    b->name[sizeof b->name - 1] = 0;
    if (in->head.grid.version <= VX__NVDB_LAST_NODE_CRC) /* the field was for flags then */
        item = b->type == VX__NVDB_FLOAT || b->type == VX__NVDB_UINT32 ? 4 : 0;
    /* unsigned sums wrap around; a wrapped one lies outside */
    b->at = (int64_t)(at + (uint64_t)b->at);
    if ((uint64_t)b->at < in->nodes_end || (uint64_t)b->at > in->end ||
        (item && b->n > (in->end - (uint64_t)b->at) / item))
        return bad(in, "blind", "blind data lies outside the grid's bytes");
    if ((b->type == VX__NVDB_FLOAT || b->type == VX__NVDB_UINT32) && item != 4)
        return bad(in, "blind.item_bytes", "does not fit the type");
    return VX_OK;
}

static vx_err read_blind(struct vx__nvdb_input *in)
{
    struct vx__nvdb_grid *g = &in->head.grid;
    uint64_t at = in->grid_at + (uint64_t)g->blind_at;
    if (!g->n_blind)
        return VX_OK;
    if (g->n_blind > VX__NVDB_MAX_BLIND)
        return vx_fail(in->detail, VX_E_INVALID, "n_blind", "%u; at most %d are read", g->n_blind,
                       VX__NVDB_MAX_BLIND);
    if (g->blind_at < 0 || at < in->nodes_end || at > in->end ||
        g->n_blind * sizeof *in->blind > in->end - at)
        return bad(in, "blind_at", "blind data lies outside the grid's bytes");
    in->blind = malloc(g->n_blind * sizeof *in->blind);
    if (!in->blind)
        return vx_fail(in->detail, VX_E_NOMEM, "", "no memory for the import");
    VX_TRY_RET(vx__nvdb_input_read(in, at, in->blind, g->n_blind * sizeof *in->blind));
    for (uint32_t i = 0; i < g->n_blind; i++)
        VX_TRY_RET(check_blind(in, &in->blind[i], at + i * sizeof *in->blind));
    return VX_OK;
}

static vx_err read_heads(struct vx__nvdb_input *in)
{
    struct vx__nvdb_grid *g = &in->head.grid;
    if (in->end - in->grid_at < VX__NVDB_HEAD)
        return vx_fail(in->detail, VX_E_DATA_LOSS, "grid", "%llu bytes are no grid",
                       (unsigned long long)(in->end - in->grid_at));
    VX_TRY_RET(vx__nvdb_input_read(in, in->grid_at, &in->head, sizeof in->head));
    if (g->magic != VX__NVDB_MAGIC0 && g->magic != VX__NVDB_MAGIC1)
        return bad(in, "grid.magic", "is not a NanoVDB grid's");
    VX_TRY_RET(check_version(in, g->version));
    if (g->grid_bytes > in->end - in->grid_at)
        return vx_fail(in->detail, VX_E_DATA_LOSS, "grid_bytes",
                       "are %llu, the file has %llu: it is cut short", (unsigned long long)g->grid_bytes,
                       (unsigned long long)(in->end - in->grid_at));
    if (!in->has_meta) {
        if (g->n_grids > 1)
            return vx_fail(in->detail, VX_E_UNIMPLEMENTED, "n_grids", "several grids without a file head");
        if (g->grid_bytes != in->n_bytes)
            return bad(in, "grid_bytes", "is not the size of the file");
        print_name(in->name, g->name, sizeof g->name - 1);
    }
    VX_TRY_RET(check_type(in));
    VX_TRY_RET(read_root(in));
    if (in->has_meta)
        VX_TRY_RET(check_meta(in));
    VX_TRY_RET(place_nodes(in));
    VX_TRY_RET(check_map(in));
    return read_blind(in);
}

vx_err vx__nvdb_input_init(struct vx__nvdb_input *in, int fd, uint64_t n_bytes, const char *grid,
                           struct vx_detail *detail)
{
    memset(in, 0, sizeof *in);
    in->fd = fd;
    in->n_bytes = n_bytes;
    in->detail = detail;
    VX_TRY_RET(find_grid(in, grid));
    return read_heads(in);
}

void vx__nvdb_input_fini(struct vx__nvdb_input *in)
{
    free(in->blind);
    in->blind = NULL;
}

/* ------------------------------------------------------------------ checksum */

struct sums {
    const struct vx__nvdb_input *in;
    const struct vx_nvdb_watch *watch;
    uint8_t *buffer;
    uint64_t total;
};

/* CRC of [from, to) of the file in pieces, and how far it is. */
static vx_err crc_range(struct sums *s, uint64_t from, uint64_t to, uint32_t *crc)
{
    while (from < to) {
        uint64_t n = to - from < CHECK_BLOCKS * VX__NVDB_BLOCK ? to - from : CHECK_BLOCKS * VX__NVDB_BLOCK;
        VX_TRY_RET(vx__nvdb_input_read(s->in, from, s->buffer, n));
        *crc = vx__nvdb_crc32(*crc, s->buffer, n);
        from += n;
    }
    return VX_OK;
}

static vx_err wrong_sum(const struct vx__nvdb_input *in, const char *what)
{
    return vx_fail(in->detail, VX_E_DATA_LOSS, "checksum", "of the grid's %s is wrong: the file is damaged",
                   what);
}

/* Versions after 32.6.0: CRC of the CRCs of blocks. */
static vx_err check_blocks(struct sums *s)
{
    const struct vx__nvdb_input *in = s->in;
    uint64_t at = in->grid_at + VX__NVDB_HEAD, end = in->grid_at + in->head.grid.grid_bytes,
             blocks = (end - at) / VX__NVDB_BLOCK;
    uint32_t all = 0;
    for (uint64_t i = 0; i < blocks;) {
        uint64_t n = blocks - i < CHECK_BLOCKS ? blocks - i : CHECK_BLOCKS, bytes = n * VX__NVDB_BLOCK;
        if (i + n == blocks)
            bytes = end - at;
        VX_TRY_RET(vx__nvdb_input_read(in, at, s->buffer, bytes));
        for (uint64_t k = 0; k < n; k++) {
            bool last = i + k + 1 == blocks;
            uint32_t crc = vx__nvdb_crc32(0, s->buffer + k * VX__NVDB_BLOCK,
                                          last ? bytes - k * VX__NVDB_BLOCK : VX__NVDB_BLOCK);
            all = vx__nvdb_crc32(all, &crc, sizeof crc);
        }
        i += n;
        at += bytes;
        VX_TRY_RET(vx__nvdb_watch(s->watch, at, s->total, "the file was checked", in->detail));
    }
    return all == in->head.grid.tail_crc ? VX_OK : wrong_sum(in, "nodes");
}

/* Older ones: CRC of the CRCs of nodes, which some programs kept in 8 bytes each and some in 4. */
static vx_err check_nodes(struct sums *s)
{
    const struct vx__nvdb_input *in = s->in;
    const struct {
        uint64_t at, bytes, n;
    } part[3] = {{in->upper_at, sizeof(struct vx__nvdb_upper), in->head.tree.n_nodes[2]},
                 {in->lower_at, sizeof(struct vx__nvdb_lower), in->head.tree.n_nodes[1]},
                 {in->leaf_at, in->leaf_bytes, in->head.tree.n_nodes[0]}};
    uint32_t narrow = 0, wide = 0;
    for (int p = 0; p < 3; p++)
        for (uint64_t i = 0; i < part[p].n; i++) {
            uint64_t at = part[p].at + i * part[p].bytes, crc64;
            uint32_t crc = 0;
            VX_TRY_RET(crc_range(s, at, at + part[p].bytes, &crc));
            crc64 = crc;
            narrow = vx__nvdb_crc32(narrow, &crc, sizeof crc);
            wide = vx__nvdb_crc32(wide, &crc64, sizeof crc64);
            if (i % 64 == 0)
                VX_TRY_RET(vx__nvdb_watch(s->watch, at, s->total, "the file was checked", in->detail));
        }
    return narrow == in->head.grid.tail_crc || wide == in->head.grid.tail_crc ? VX_OK
                                                                              : wrong_sum(in, "nodes");
}

vx_err vx__nvdb_input_check_sum(const struct vx__nvdb_input *in, const struct vx_nvdb_watch *watch,
                                uint64_t total)
{
    const struct vx__nvdb_grid *g = &in->head.grid;
    bool old = g->version <= VX__NVDB_LAST_NODE_CRC;
    struct sums s = {.in = in, .watch = watch, .total = total};
    uint32_t crc = 0;
    vx_err err;
    if (g->head_crc == 0xffffffffu && g->tail_crc == 0xffffffffu)
        return VX_OK; /* none */
    s.buffer = malloc((CHECK_BLOCKS + 1) * (size_t)VX__NVDB_BLOCK);
    if (!s.buffer)
        return vx_fail(in->detail, VX_E_NOMEM, "", "no memory for the import");
    VX_TRY(crc_range(&s, in->grid_at + 16, old ? in->upper_at : in->grid_at + VX__NVDB_HEAD, &crc));
    VX_TRY(crc == g->head_crc ? VX_OK : wrong_sum(in, "head"));
    if (g->tail_crc != 0xffffffffu)
        VX_TRY(old ? check_nodes(&s) : check_blocks(&s));
fail:
    free(s.buffer);
    return err;
}
