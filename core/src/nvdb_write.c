/*
 * nvdb_write.c - a map to a NanoVDB file.
 *
 * The list of chunks says where everything lies; then the chunks come once, in NanoVDB's order, and fill the
 * regions of the file (nodes, leaves, channels) side by side, each from its start.  Heads and the checksum
 * come last.
 */
#include "bytes_text.h"
#include "esdf.h"
#include "nvdb_format.h"
#include "nvdb_gather.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20, CHECK_BLOCKS = 256 };

/* Parts of the file that are written from their start on. */
enum region_name { LOWER, LEAF, MAIN, WEIGHT, VALUE, RGBA, COLOUR, LABEL, TILES, PART, N_REGIONS };

struct region {
    uint64_t at; /* of what comes next, in the grid */
    uint8_t *buffer;
    uint32_t n;
};

struct writer {
    struct vx__nvdb_gather gather;
    const struct vx_nvdb_export *options;
    struct vx_detail *detail;
    const struct vx_map_params *params;
    const char *name;
    int fd;
    bool flat;   /* VX_NVDB_FLOAT */
    double unit; /* of a stored distance, metres; of log-odds */
    float background;
    /* layout: bytes from the grid's start, but grid_at: from the file's */
    uint64_t grid_at, root_at, upper_at, lower_at, leaf_at, blind_at, grid_bytes, leaf_bytes;
    uint64_t ours_at;
    struct vx__nvdb_blind blind[9];
    uint32_t n_blind;
    struct region region[N_REGIONS];
    /* running */
    struct vx__nvdb_tile *tile; /* [list.n_upper] */
    struct vx__nvdb_upper *upper;
    struct vx__nvdb_lower *lower;
    uint64_t n_upper, n_lower, n_leaves, n_active; /* so far */
    struct vx__nvdb_box box;
    uint32_t head_crc, tail_crc;
    uint64_t done, total;
};

/* ------------------------------------------------------------------ the file */

static vx_err put_at(struct writer *w, uint64_t at, const void *bytes, uint64_t n)
{
    const uint8_t *p = bytes;
    while (n) {
        ssize_t k = pwrite(w->fd, p, n < 1u << 30 ? n : 1u << 30, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return vx_fail(w->detail, errno == ENOSPC || errno == EDQUOT ? VX_E_EXHAUSTED : VX_E_UNAVAILABLE,
                           "file", "cannot store the file: %s", strerror(errno));
        p += k;
        at += (uint64_t)k;
        n -= (uint64_t)k;
    }
    return VX_OK;
}

static vx_err flush(struct writer *w, enum region_name name)
{
    struct region *r = &w->region[name];
    VX_TRY_RET(put_at(w, w->grid_at + r->at, r->buffer, r->n));
    r->at += r->n;
    w->done += r->n;
    r->n = 0;
    return VX_OK;
}

/* Appends n <= BUFFER_BYTES bytes to a region. */
static vx_err put(struct writer *w, enum region_name name, const void *bytes, uint32_t n)
{
    struct region *r = &w->region[name];
    if (n > BUFFER_BYTES - r->n)
        VX_TRY_RET(flush(w, name));
    memcpy(r->buffer + r->n, bytes, n);
    r->n += n;
    return VX_OK;
}

static vx_err watch(struct writer *w)
{
    const struct vx_nvdb_watch *o = &w->options->watch;
    if (o->cancelled && o->cancelled(o->context))
        return vx_fail(w->detail, VX_E_CANCELLED, "", "given up while the map was exported");
    if (o->progress)
        o->progress(o->context, w->done, w->total);
    return VX_OK;
}

/* ------------------------------------------------------------------ layout */

static uint64_t round32(uint64_t n)
{
    return (n + 31) / 32 * 32;
}

/* A block of blind data: its head, and room for it.  Returns where it lies. */
static uint64_t add_blind(struct writer *w, const char *name, uint64_t n, uint32_t item_bytes, uint32_t type,
                          uint32_t semantic)
{
    struct vx__nvdb_blind *b = &w->blind[w->n_blind++];
    uint64_t at = w->grid_bytes;
    b->at = (int64_t)at; /* until the heads' place is known */
    b->n = n;
    b->item_bytes = item_bytes;
    b->semantic = semantic;
    b->class_ = type ? VX__NVDB_DATA_CHANNEL : 0;
    b->type = type;
    snprintf(b->name, sizeof b->name, "%s", name);
    w->grid_bytes += round32(n * item_bytes);
    return at;
}

/* Raw bytes have type unknown and items of one byte. */
static uint64_t add_bytes(struct writer *w, const char *name, uint64_t n_bytes)
{
    return add_blind(w, name, n_bytes, 1, 0, 0);
}

static void lay_out_blind(struct writer *w)
{
    const struct vx__nvdb_list *l = &w->gather.list;
    uint64_t n = l->n_active + 1;
    bool tsdf = w->params->mode == VX_TSDF;
    uint32_t n_blind = (tsdf ? 6 : 5) + (w->params->colour ? 2 : 0) + (w->params->label ? 1 : 0);
    w->blind_at = w->grid_bytes;
    w->grid_bytes += n_blind * sizeof *w->blind;
    w->region[MAIN].at = add_blind(w, tsdf ? "tsdf" : "log_odds", n, 4, VX__NVDB_FLOAT,
                                   tsdf ? VX__NVDB_SEMANTIC_LEVEL_SET : 0);
    if (tsdf)
        w->region[WEIGHT].at = add_blind(w, "weight", n, 4, VX__NVDB_FLOAT, 0);
    w->region[VALUE].at = add_blind(w, VX__NVDB_VALUE, n, 4, VX__NVDB_UINT32, 0);
    if (w->params->colour) {
        w->region[RGBA].at = add_blind(w, "colour", n, 4, VX__NVDB_RGBA8, 0);
        w->region[COLOUR].at = add_blind(w, VX__NVDB_COLOUR, n, 4, VX__NVDB_UINT32, 0);
    }
    if (w->params->label)
        w->region[LABEL].at = add_blind(w, VX__NVDB_LABEL, n, 4, VX__NVDB_UINT32, 0);
    w->ours_at = add_bytes(w, VX__NVDB_OURS, sizeof(struct vx__nvdb_ours));
    w->region[TILES].at = add_bytes(w, VX__NVDB_TILES, l->n_tile_words * sizeof(struct vx__nvdb_free_tiles));
    w->region[PART].at = add_bytes(w, VX__NVDB_FREE, l->n_part * sizeof(struct vx__nvdb_free_leaf));
    for (uint32_t i = 0; i < w->n_blind; i++)
        w->blind[i].at -= (int64_t)(w->blind_at + i * sizeof *w->blind);
}

static vx_err lay_out(struct writer *w)
{
    const struct vx__nvdb_list *l = &w->gather.list;
    if (l->n_leaves > UINT32_MAX)
        return vx_fail(w->detail, VX_E_EXHAUSTED, "",
                       "the map has %llu leaves with voxels; a NanoVDB file counts up to 4294967295",
                       (unsigned long long)l->n_leaves);
    w->grid_at = sizeof(struct vx__nvdb_file) + sizeof(struct vx__nvdb_meta) + strlen(w->name) + 1;
    w->leaf_bytes = w->flat ? sizeof(struct vx__nvdb_leaf_float) : sizeof(struct vx__nvdb_leaf_index);
    w->root_at = VX__NVDB_HEAD;
    w->upper_at = w->root_at +
                  (w->flat ? sizeof(struct vx__nvdb_root_float) : sizeof(struct vx__nvdb_root_index)) +
                  l->n_upper * VX__NVDB_TILE;
    w->lower_at = w->region[LOWER].at = w->upper_at + l->n_upper * sizeof(struct vx__nvdb_upper);
    w->leaf_at = w->region[LEAF].at = w->lower_at + l->n_lower * sizeof(struct vx__nvdb_lower);
    w->grid_bytes = w->leaf_at + l->n_leaves * w->leaf_bytes;
    w->blind_at = w->grid_bytes;
    if (!w->flat)
        lay_out_blind(w);
    w->total = w->grid_bytes * (w->flat ? 1 : 2);
    if (w->options->max_bytes && w->grid_at + w->grid_bytes > w->options->max_bytes)
        return vx_fail(
            w->detail, VX_E_EXHAUSTED, "limits.spool_bytes", "the file would have %s, %s are allowed",
            vx__bytes_text(w->grid_at + w->grid_bytes).text, vx__bytes_text(w->options->max_bytes).text);
    if (ftruncate(w->fd, (off_t)(w->grid_at + w->grid_bytes)) != 0)
        return vx_fail(w->detail, VX_E_UNAVAILABLE, "file", "cannot make a file of %llu bytes: %s",
                       (unsigned long long)(w->grid_at + w->grid_bytes), strerror(errno));
    return VX_OK;
}

static vx_err make_room(struct writer *w)
{
    w->tile = calloc(w->gather.list.n_upper + 1, sizeof *w->tile);
    w->upper = malloc(sizeof *w->upper);
    w->lower = malloc(sizeof *w->lower);
    bool ok = w->tile && w->upper && w->lower;
    for (int i = 0; i < N_REGIONS; i++) {
        const bool wanted = i == LABEL                 ? w->params->label
                            : i == RGBA || i == COLOUR ? w->params->colour
                                                       : true;
        ok &= !wanted || (w->region[i].buffer = malloc(BUFFER_BYTES)) != NULL;
    }
    return ok ? VX_OK : vx_fail(w->detail, VX_E_NOMEM, "", "no memory for the export");
}

/* ------------------------------------------------------------------ nodes */

static const struct vx__nvdb_box NO_BOX = {{INT32_MAX, INT32_MAX, INT32_MAX},
                                           {INT32_MIN, INT32_MIN, INT32_MIN}};

static void box_add(struct vx__nvdb_box *b, const struct vx__nvdb_box *more)
{
    for (int a = 0; a < 3; a++) {
        b->min[a] = more->min[a] < b->min[a] ? more->min[a] : b->min[a];
        b->max[a] = more->max[a] > b->max[a] ? more->max[a] : b->max[a];
    }
}

/* A value's place in the table of a node without a child there. */
static int64_t no_child(const struct writer *w)
{
    int64_t entry = 0;
    if (w->flat)
        memcpy(&entry, &w->background, sizeof w->background);
    return entry;
}

static void begin_lower(struct writer *w)
{
    struct vx__nvdb_lower *n = w->lower;
    memset(n, 0, sizeof *n);
    n->box = NO_BOX;
    n->flags = VX__NVDB_HAS_BBOX;
    for (int i = 0; i < 4096; i++)
        n->table[i] = no_child(w);
}

static void begin_upper(struct writer *w, const int32_t chunk[3])
{
    struct vx__nvdb_upper *n = w->upper;
    struct vx__nvdb_tile *t = &w->tile[w->n_upper];
    memset(n, 0, sizeof *n);
    n->box = NO_BOX;
    n->flags = VX__NVDB_HAS_BBOX;
    for (int i = 0; i < 32768; i++)
        n->table[i] = no_child(w);
    t->key = (uint64_t)((uint32_t)(chunk[2] * 128) >> 12) |
             (uint64_t)((uint32_t)(chunk[1] * 128) >> 12) << 21 |
             (uint64_t)((uint32_t)(chunk[0] * 128) >> 12) << 42;
    t->child = (int64_t)(w->upper_at + w->n_upper * sizeof *n - w->root_at);
    t->value = (uint64_t)no_child(w);
}

static vx_err end_upper(struct writer *w)
{
    VX_TRY_RET(
        put_at(w, w->grid_at + w->upper_at + w->n_upper * sizeof *w->upper, w->upper, sizeof *w->upper));
    w->done += sizeof *w->upper;
    w->n_upper++;
    return VX_OK;
}

/* ------------------------------------------------------------------ leaves */

static float value_of(const struct writer *w, uint32_t v)
{
    return (float)(vxk_tsdf_distance(v) * w->unit); /* log-odds lie in the same 16 bits */
}

uint32_t vx__nvdb_rgba(uint32_t colour)
{
    uint32_t rgba = vxk_colour_weight(colour) ? 0xff000000u : 0;
    for (uint32_t part = 0; part < 3 && rgba; part++)
        rgba |= vxk_minu((vxk_colour_part(colour, part) + 1) / 2, 255) << 8 * part;
    return rgba;
}

/* Colours of n voxels, for others and exactly, and labels; index 0 has none (NULL). */
static vx_err put_channels(struct writer *w, const uint32_t *colour, const uint32_t *label, uint32_t n)
{
    uint32_t rgba[512];
    static const uint32_t none = 0;
    if (w->params->colour) {
        for (uint32_t k = 0; k < n; k++)
            rgba[k] = colour ? vx__nvdb_rgba(colour[k]) : 0;
        VX_TRY_RET(put(w, RGBA, rgba, n * 4));
        VX_TRY_RET(put(w, COLOUR, colour ? colour : &none, n * 4));
    }
    return w->params->label ? put(w, LABEL, label ? label : &none, n * 4) : VX_OK;
}

static vx_err put_index_leaf(struct writer *w, const struct vx__nvdb_leaf *head, uint32_t from, uint32_t n)
{
    const struct vx__nvdb_batch *b = &w->gather.batch;
    const uint32_t *value = b->value + from;
    struct vx__nvdb_leaf_index leaf = {.head = *head, .first = w->n_active + 1};
    float main_[512], weight[512];
    uint32_t before = 0;
    for (int x = 0; x < 7; x++) {
        before += vxk_popc64(head->mask[x]);
        leaf.prefix |= (uint64_t)before << 9 * x;
    }
    for (uint32_t k = 0; k < n; k++) {
        main_[k] = value_of(w, value[k]);
        weight[k] = (float)vxk_tsdf_weight(value[k]);
    }
    VX_TRY_RET(put(w, LEAF, &leaf, sizeof leaf));
    VX_TRY_RET(put(w, MAIN, main_, n * 4));
    if (w->params->mode == VX_TSDF)
        VX_TRY_RET(put(w, WEIGHT, weight, n * 4));
    VX_TRY_RET(put_channels(w, b->colour ? b->colour + from : NULL, b->label ? b->label + from : NULL, n));
    return put(w, VALUE, value, n * 4);
}

static vx_err put_float_leaf(struct writer *w, const struct vx__nvdb_leaf *head, const uint32_t *value)
{
    struct vx__nvdb_leaf_float leaf;
    uint32_t k = 0;
    memset(&leaf, 0, sizeof leaf);
    leaf.head = *head;
    for (int i = 0; i < 512; i++)
        leaf.value[i] = head->mask[i >> 6] >> (i & 63) & 1 ? value_of(w, value[k++]) : w->background;
    return put(w, LEAF, &leaf, sizeof leaf);
}

/* Leaf `slot` of the lower node that is open. */
static vx_err put_leaf(struct writer *w, uint32_t slot, const int32_t at[3], uint32_t of_batch)
{
    const struct vx__nvdb_batch *b = &w->gather.batch;
    const uint64_t *mask = b->mask[of_batch].active;
    struct vx__nvdb_lower *lower = w->lower;
    struct vx__nvdb_leaf head = {.flags = VX__NVDB_HAS_BBOX};
    struct vx__nvdb_box box = vx__nvdb_mask_box(mask, at);
    uint32_t from = b->value_from[of_batch], n = b->value_from[of_batch + 1] - from;
    for (int a = 0; a < 3; a++) {
        head.min[a] = box.min[a];
        head.dif[a] = (uint8_t)(box.max[a] - box.min[a]);
    }
    memcpy(head.mask, mask, sizeof head.mask);
    lower->child_mask[slot >> 6] |= 1ull << (slot & 63);
    lower->table[slot] =
        (int64_t)(w->leaf_at + w->n_leaves * w->leaf_bytes - (w->lower_at + w->n_lower * sizeof *lower));
    box_add(&lower->box, &box);
    VX_TRY_RET(w->flat ? put_float_leaf(w, &head, b->value + from) : put_index_leaf(w, &head, from, n));
    w->n_leaves++;
    w->n_active += n;
    return VX_OK;
}

/* What is known to be free in a chunk, words and cells in order. */
static vx_err put_free(struct writer *w, const struct vx__nvdb_chunk *c, uint32_t i)
{
    const struct vx__nvdb_batch *b = &w->gather.batch;
    int32_t base[3] = {c->at[0] * 128, c->at[1] * 128, c->at[2] * 128};
    for (uint32_t word = 0; word < 64; word++) {
        struct vx__nvdb_free_tiles t = {.cells = b->survey[(size_t)i * 64 + word].tile};
        if (!t.cells)
            continue;
        for (int a = 0; a < 3; a++)
            t.at[a] = base[a] + (int32_t)(word >> (4 - 2 * a) & 3) * 32;
        VX_TRY_RET(put(w, TILES, &t, sizeof t));
    }
    for (uint32_t k = b->leaf_from[i]; k < b->leaf_from[i + 1]; k++) {
        struct vx__nvdb_free_leaf f = {.reserved = 0};
        uint64_t any = 0;
        uint32_t x, y, z;
        for (int s = 0; s < 8; s++)
            any |= f.mask[s] = b->mask[k].free[s];
        if (!any)
            continue;
        vxk_cell_base(b->leaf[k] >> 6 & 63, b->leaf[k] & 63, &x, &y, &z);
        f.at[0] = base[0] + (int32_t)x;
        f.at[1] = base[1] + (int32_t)y;
        f.at[2] = base[2] + (int32_t)z;
        VX_TRY_RET(put(w, PART, &f, sizeof f));
    }
    return VX_OK;
}

/* The chunk's lower node and leaves. */
static vx_err put_lower(struct writer *w, const struct vx__nvdb_chunk *c, uint32_t i, uint32_t *leaf_of)
{
    const struct vx__nvdb_batch *b = &w->gather.batch;
    const int32_t base[3] = {c->at[0] * 128, c->at[1] * 128, c->at[2] * 128};
    uint32_t slot = vx__nvdb_upper_slot(base);
    memset(leaf_of, 0xff, 4096 * sizeof *leaf_of);
    for (uint32_t k = b->leaf_from[i]; k < b->leaf_from[i + 1]; k++)
        if (b->value_from[k + 1] > b->value_from[k])
            leaf_of[b->leaf[k] & 4095] = k;
    begin_lower(w);
    for (uint32_t s = 0; s < 4096; s++) {
        uint32_t k = leaf_of[vx__nvdb_place(s)];
        const int32_t at[3] = {base[0] + (int32_t)(s >> 8) * 8, base[1] + (int32_t)(s >> 4 & 15) * 8,
                               base[2] + (int32_t)(s & 15) * 8};
        if (k != VXK_NONE)
            VX_TRY_RET(put_leaf(w, s, at, k));
    }
    w->upper->child_mask[slot >> 6] |= 1ull << (slot & 63);
    w->upper->table[slot] = (int64_t)(w->lower_at + w->n_lower * sizeof *w->lower -
                                      (w->upper_at + w->n_upper * sizeof *w->upper));
    box_add(&w->upper->box, &w->lower->box);
    box_add(&w->box, &w->lower->box);
    w->n_lower++;
    return put(w, LOWER, w->lower, sizeof *w->lower);
}

static vx_err put_batch(struct writer *w, const int32_t **open, uint32_t *leaf_of)
{
    const struct vx__nvdb_batch *b = &w->gather.batch;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct vx__nvdb_chunk *c = &w->gather.list.chunk[b->first + i];
        if (!w->flat)
            VX_TRY_RET(put_free(w, c, i));
        if (!c->n_active)
            continue;
        if (!*open || (*open)[0] >> 5 != c->at[0] >> 5 || (*open)[1] >> 5 != c->at[1] >> 5 ||
            (*open)[2] >> 5 != c->at[2] >> 5) {
            if (*open)
                VX_TRY_RET(end_upper(w));
            begin_upper(w, c->at);
            *open = c->at;
        }
        VX_TRY_RET(put_lower(w, c, i, leaf_of));
    }
    return VX_OK;
}

static vx_err put_chunks(struct writer *w)
{
    const float background[2] = {w->background, 0};
    const uint32_t zero = 0;
    const int32_t *open = NULL;
    uint32_t leaf_of[4096];
    if (!w->flat) { /* index 0 is the background */
        VX_TRY_RET(put(w, MAIN, &background[0], 4));
        if (w->params->mode == VX_TSDF)
            VX_TRY_RET(put(w, WEIGHT, &background[1], 4));
        VX_TRY_RET(put(w, VALUE, &zero, 4));
        VX_TRY_RET(put_channels(w, NULL, NULL, 1));
    }
    for (;;) {
        VX_TRY_RET(watch(w));
        VX_TRY_RET(vx__nvdb_gather_next(&w->gather));
        if (!w->gather.batch.n)
            break;
        VX_TRY_RET(put_batch(w, &open, leaf_of));
    }
    if (open)
        VX_TRY_RET(end_upper(w));
    for (int i = 0; i < N_REGIONS; i++)
        VX_TRY_RET(flush(w, (enum region_name)i));
    return VX_OK;
}

/* ------------------------------------------------------------------ heads and checksum */

static void fill_map(const struct writer *w, struct vx__nvdb_map *m)
{
    double size = w->params->voxel_size_m;
    memset(m, 0, sizeof *m);
    for (int a = 0; a < 3; a++) {
        m->mat[4 * a] = size;
        m->inv[4 * a] = 1 / size;
        m->vec[a] = w->params->origin_m[a] + 0.5 * size;
        m->mat_f[4 * a] = (float)size;
        m->inv_f[4 * a] = (float)(1 / size);
        m->vec_f[a] = (float)m->vec[a];
    }
    m->taper = 1;
    m->taper_f = 1;
}

static void fill_grid(const struct writer *w, struct vx__nvdb_grid *g)
{
    memset(g, 0, sizeof *g);
    g->magic = w->flat ? VX__NVDB_MAGIC0 : VX__NVDB_MAGIC1;
    g->head_crc = g->tail_crc = 0xffffffffu; /* none */
    g->version = VX__NVDB_VERSION;
    g->flags = VX__NVDB_HAS_BBOX | VX__NVDB_BREADTH_FIRST;
    g->n_grids = 1;
    g->grid_bytes = w->grid_bytes;
    snprintf(g->name, sizeof g->name, "%s", w->name);
    fill_map(w, &g->map);
    for (int a = 0; a < 3; a++) {
        double size = w->params->voxel_size_m;
        g->world_min[a] = w->n_active ? g->map.vec[a] + w->box.min[a] * size : DBL_MAX;
        g->world_max[a] = w->n_active ? g->map.vec[a] + (w->box.max[a] + 1.0) * size : -DBL_MAX;
        g->voxel_size[a] = size;
    }
    g->type = w->flat ? VX__NVDB_FLOAT : VX__NVDB_ON_INDEX;
    g->class_ = !w->flat                     ? VX__NVDB_CLASS_INDEX
                : w->params->mode == VX_TSDF ? VX__NVDB_CLASS_LEVEL_SET
                                             : VX__NVDB_CLASS_FOG;
    g->blind_at = (int64_t)w->blind_at;
    g->n_blind = w->n_blind;
    if (w->flat)
        g->data2 = VX__NVDB_MAGIC1;
    else
        g->n_values = w->n_active + 1;
}

static void fill_tree(const struct writer *w, struct vx__nvdb_tree *t)
{
    const uint64_t tree_at = sizeof(struct vx__nvdb_grid);
    memset(t, 0, sizeof *t);
    t->node_at[0] = w->n_leaves ? (int64_t)(w->leaf_at - tree_at) : 0;
    t->node_at[1] = w->n_leaves ? (int64_t)(w->lower_at - tree_at) : 0;
    t->node_at[2] = w->n_leaves ? (int64_t)(w->upper_at - tree_at) : 0;
    t->node_at[3] = (int64_t)(w->root_at - tree_at);
    t->n_nodes[0] = (uint32_t)w->n_leaves;
    t->n_nodes[1] = (uint32_t)w->n_lower;
    t->n_nodes[2] = (uint32_t)w->n_upper;
    t->n_voxels = w->n_active;
}

static vx_err put_root(struct writer *w)
{
    struct vx__nvdb_root_index i = {.box = w->box, .n_tiles = (uint32_t)w->n_upper};
    struct vx__nvdb_root_float f = {
        .box = w->box, .n_tiles = (uint32_t)w->n_upper, .background = w->background};
    uint64_t n = w->flat ? sizeof f : sizeof i;
    VX_TRY_RET(put_at(w, w->grid_at + w->root_at, w->flat ? (const void *)&f : &i, n));
    VX_TRY_RET(put_at(w, w->grid_at + w->root_at + n, w->tile, w->n_upper * sizeof *w->tile));
    return put_at(w, w->grid_at + w->blind_at, w->blind, w->n_blind * sizeof *w->blind);
}

static vx_err put_ours(struct writer *w)
{
    struct vx__nvdb_ours o = {.version = VX__NVDB_OURS_VERSION,
                              .mode = (uint32_t)w->params->mode,
                              .weighting = (uint32_t)w->params->weighting,
                              .voxel_size_m = w->params->voxel_size_m,
                              .truncation_voxels = w->params->truncation_voxels,
                              .esdf_max_distance_m = w->params->esdf_max_distance_m};
    memcpy(o.origin_m, w->params->origin_m, sizeof o.origin_m);
    return put_at(w, w->grid_at + w->ours_at, &o, sizeof o);
}

/* CRC of the CRCs of the blocks behind the heads, as it lies in the file. */
static vx_err check_sum(struct writer *w, uint32_t *out)
{
    uint8_t *buffer = malloc((CHECK_BLOCKS + 1) * (size_t)VX__NVDB_BLOCK);
    uint64_t at = VX__NVDB_HEAD, blocks = (w->grid_bytes - at) / VX__NVDB_BLOCK;
    uint32_t crc = 0;
    vx_err err = buffer ? VX_OK : vx_fail(w->detail, VX_E_NOMEM, "", "no memory for the export");
    VX_TRY(err);
    for (uint64_t i = 0; i < blocks;) {
        uint64_t n = blocks - i < CHECK_BLOCKS ? blocks - i : CHECK_BLOCKS, bytes = n * VX__NVDB_BLOCK;
        if (i + n == blocks)
            bytes = w->grid_bytes - at;
        for (uint64_t got = 0; got < bytes;) {
            ssize_t k = pread(w->fd, buffer + got, bytes - got, (off_t)(w->grid_at + at + got));
            if (k < 0 && errno == EINTR)
                continue;
            if (k <= 0) {
                err = vx_fail(w->detail, VX_E_UNAVAILABLE, "file", "cannot read the file back: %s",
                              k ? strerror(errno) : "it ends early");
                goto fail;
            }
            got += (uint64_t)k;
        }
        for (uint64_t k = 0; k < n; k++) {
            bool last = i + k + 1 == blocks;
            uint32_t block = vx__nvdb_crc32(0, buffer + k * VX__NVDB_BLOCK,
                                            last ? bytes - k * VX__NVDB_BLOCK : VX__NVDB_BLOCK);
            crc = vx__nvdb_crc32(crc, &block, sizeof block);
        }
        i += n;
        at += bytes;
        w->done += bytes;
        VX_TRY(watch(w));
    }
    *out = crc;
fail:
    free(buffer);
    return err;
}

static uint64_t name_key(const char *name)
{
    uint64_t h = 0;
    for (; *name; name++)
        h = h * 67 + (uint64_t)(unsigned char)*name + (h >> 56);
    return h;
}

static vx_err put_heads(struct writer *w)
{
    struct vx__nvdb_head h;
    struct vx__nvdb_file file = {
        .magic = w->flat ? VX__NVDB_MAGIC0 : VX__NVDB_MAGIC2, .version = VX__NVDB_VERSION, .n_grids = 1};
    struct vx__nvdb_meta meta = {.grid_bytes = w->grid_bytes,
                                 .file_bytes = w->grid_bytes,
                                 .name_key = name_key(w->name),
                                 .n_voxels = w->n_active,
                                 .name_bytes = (uint32_t)strlen(w->name) + 1,
                                 .n_blind = (uint16_t)w->n_blind,
                                 .version = VX__NVDB_VERSION};
    fill_grid(w, &h.grid);
    fill_tree(w, &h.tree);
    if (!w->flat) {
        VX_TRY_RET(check_sum(w, &h.grid.tail_crc));
        h.grid.head_crc = vx__nvdb_crc32(0, (const uint8_t *)&h + 16, VX__NVDB_HEAD - 16);
    }
    meta.type = h.grid.type;
    meta.class_ = h.grid.class_;
    memcpy(meta.world_min, h.grid.world_min, sizeof meta.world_min);
    memcpy(meta.world_max, h.grid.world_max, sizeof meta.world_max);
    meta.box = w->box;
    memcpy(meta.voxel_size, h.grid.voxel_size, sizeof meta.voxel_size);
    memcpy(meta.n_nodes, h.tree.n_nodes, sizeof h.tree.n_nodes);
    meta.n_nodes[3] = 1;
    VX_TRY_RET(put_at(w, w->grid_at, &h, sizeof h));
    VX_TRY_RET(put_at(w, 0, &file, sizeof file));
    VX_TRY_RET(put_at(w, sizeof file, &meta, sizeof meta));
    return put_at(w, sizeof file + sizeof meta, w->name, meta.name_bytes);
}

/* ------------------------------------------------------------------ all of it */

static vx_err check(const struct writer *w, const struct vx__snapshot *s)
{
    static const char *const layers[] = {"tsdf", "occupancy"};
    const struct vx_nvdb_export *o = w->options;
    enum vx_nvdb_layer has = w->params->mode == VX_TSDF ? VX_NVDB_TSDF : VX_NVDB_OCCUPANCY;
    if (o->layer != VX_NVDB_ANY && o->layer != has)
        return vx_fail(w->detail, VX_E_INVALID, "layer", "the map holds %s, and no layer %s",
                       layers[has - VX_NVDB_TSDF], layers[o->layer == VX_NVDB_OCCUPANCY]);
    if (o->min_epoch > s->epoch)
        return vx_fail(w->detail, VX_E_STALE, "min_epoch", "epoch %llu is asked for, the newest is %llu",
                       (unsigned long long)o->min_epoch, (unsigned long long)s->epoch);
    return VX_OK;
}

static vx_err write_all(struct writer *w)
{
    VX_TRY_RET(lay_out(w));
    VX_TRY_RET(make_room(w));
    VX_TRY_RET(put_chunks(w));
    VX_TRY_RET(put_root(w));
    if (!w->flat)
        VX_TRY_RET(put_ours(w));
    return put_heads(w);
}

static void writer_fini(struct writer *w)
{
    vx__nvdb_gather_fini(&w->gather);
    for (int i = 0; i < N_REGIONS; i++)
        free(w->region[i].buffer);
    free(w->tile);
    free(w->upper);
    free(w->lower);
}

vx_err vx_nvdb_write(struct vx_map *map, const struct vx_nvdb_export *options, int fd,
                     struct vx_nvdb_summary *out, struct vx_reply *reply, struct vx_detail *detail)
{
    const struct vxk_ops *ops = vx__map_dev(map)->ops;
    struct writer w = {.options = options, .detail = detail, .params = vx__map_params(map), .fd = fd};
    struct vx__snapshot snapshot;
    struct vx_map_info info;
    struct vxk_queue *q;
    vx_err err;
    w.flat = options->format == VX_NVDB_FLOAT;
    w.unit =
        w.params->mode == VX_TSDF ? w.params->truncation_voxels * w.params->voxel_size_m / 32767 : 1.0 / 1024;
    w.background =
        w.params->mode == VX_TSDF ? (float)(w.params->truncation_voxels * w.params->voxel_size_m) : 0.0f;
    w.box = NO_BOX;
    VX_TRY_RET(vx_map_get_info(map, &info)); /* for the name */
    w.name = info.name;
    VX_TRY_RET(ops->queue_create(vx__map_dev(map), 0, &q)); /* its own, so that queries go on */
    err = vx__snapshot_pin(map, &snapshot);
    if (err != VX_OK) {
        ops->queue_destroy(q);
        return err;
    }
    VX_TRY(check(&w, &snapshot));
    VX_TRY(vx__nvdb_gather_init(&w.gather, map, q, &snapshot, detail));
    VX_TRY(write_all(&w));
    if (out)
        *out = (struct vx_nvdb_summary){
            .n_bytes = w.grid_at + w.grid_bytes, .n_voxels = w.n_active, .n_leaves = w.n_leaves};
    if (reply) {
        memcpy(reply->uuid, vx__map_uuid(map), sizeof reply->uuid);
        reply->epoch = snapshot.epoch;
        reply->esdf_epoch = 0;
        reply->newest_stamp_ns = snapshot.newest_stamp_ns;
        reply->max_distance_m = vx__esdf_radius(w.params) * w.params->voxel_size_m;
    }
fail:
    writer_fini(&w);
    vx__snapshot_release(map, &snapshot);
    ops->queue_destroy(q);
    return err;
}
