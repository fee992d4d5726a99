/*
 * nvdb_read.c - a map out of a NanoVDB file.
 *
 * Nodes are read in the file's order, each once: upper nodes, the lower nodes of each, the leaves of each.  A
 * child must be the very next node of its level, so no node can be shared, left out or reached in a circle.
 */
#include "nvdb_free.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where values come from. */
enum source {
    EXACT,    /* packed values of ours */
    CHANNEL,  /* a float an index */
    TOPOLOGY, /* nowhere */
    DENSE     /* a Float grid's leaves */
};

struct reader {
    struct vx__nvdb_input in;
    const struct vx_nvdb_import *options;
    struct vx_detail *detail;
    struct vx_map_params params;
    enum source source;
    bool ours;
    double scale; /* stored units a unit of the file's values */
    uint32_t weight;
    const struct vx__nvdb_blind *main, *weights, *tiles, *part, *colours, *labels;
    const struct vx__nvdb_blind *shown, *shown_colours; /* what ours shows to others: must say the same */
    struct vx__nvdb_cursor upper_c, lower_c, leaf_c, main_c, weight_c, colour_c, label_c, shown_c, rgba_c;
    struct vx__nvdb_free free;
    struct vx__loader *loader;
    struct vx__nvdb_tile *tile; /* [n_tiles]; those with a child first, in the order of upper nodes */
    struct vx__nvdb_upper *upper;
    struct vx__nvdb_lower *lower;
    uint64_t n_lower, n_leaves, n_active; /* so far */
    uint64_t next;                        /* least index that a leaf may begin with */
    struct vx__nvdb_box box;              /* of the active voxels so far */
    int32_t last[3];                      /* chunk of the lower node before */
    bool has_last;
    uint64_t total;
};

static vx_err bad(const struct reader *r, const char *field, const char *words)
{
    return vx_fail(r->detail, VX_E_INVALID, field, "%s", words);
}

/* ------------------------------------------------------------------ what the map will be */

static const struct vx__nvdb_blind *find_blind(const struct reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->in.head.grid.n_blind; i++)
        if (strcmp(r->in.blind[i].name, name) == 0)
            return &r->in.blind[i];
    return NULL;
}

static bool is_channel(const struct reader *r, const struct vx__nvdb_blind *b, uint32_t type)
{
    return b && b->type == type && b->n == r->in.head.grid.n_values;
}

/* Our own parameters win over the transform, which says the same with a rounding more. */
static vx_err take_ours(struct reader *r, const struct vx__nvdb_blind *b)
{
    const struct vx__nvdb_map *m = &r->in.head.grid.map;
    const struct vx_map_params *asked = &r->options->params;
    struct vx__nvdb_ours o;
    if (b->type || b->n != sizeof o)
        return bad(r, VX__NVDB_OURS, "is not 64 bytes");
    VX_TRY_RET(vx__nvdb_input_read(&r->in, (uint64_t)b->at, &o, sizeof o));
    if (o.version != VX__NVDB_OURS_VERSION)
        return vx_fail(r->detail, VX_E_VERSION, VX__NVDB_OURS, "version %u is not known here", o.version);
    if (o.mode != VX_TSDF && o.mode != VX_OCCUPANCY)
        return bad(r, VX__NVDB_OURS, "has an unknown mode");
    if (o.weighting != VX_WEIGHT_INVERSE_SQUARE && o.weighting != VX_WEIGHT_CONSTANT)
        return bad(r, VX__NVDB_OURS, "has an unknown weighting");
    if (r->options->has_mode && (uint32_t)asked->mode != o.mode)
        return bad(r, "mode", "the file holds the other mode; leave --mode out");
    if (asked->truncation_voxels != 0 && asked->truncation_voxels != o.truncation_voxels)
        return vx_fail(r->detail, VX_E_INVALID, "truncation_voxels",
                       "the file's values are for %g voxels; leave --truncation-voxels out",
                       o.truncation_voxels);
    if (!(fabs(o.voxel_size_m - m->mat[0]) <= 1e-9 * m->mat[0]))
        return bad(r, VX__NVDB_OURS, "another voxel size than the grid's transform");
    for (int a = 0; a < 3; a++)
        if (!(fabs(o.origin_m[a] + 0.5 * o.voxel_size_m - m->vec[a]) <=
              1e-6 * m->mat[0] + 1e-15 * fabs(m->vec[a])))
            return bad(r, VX__NVDB_OURS, "another origin than the grid's transform");
    r->params.mode = (enum vx_mode)o.mode;
    r->params.voxel_size_m = o.voxel_size_m;
    memcpy(r->params.origin_m, o.origin_m, sizeof o.origin_m);
    r->params.truncation_voxels = o.truncation_voxels;
    if (!r->options->has_weighting)
        r->params.weighting = (enum vx_weighting)o.weighting;
    if (asked->esdf_max_distance_m == 0)
        r->params.esdf_max_distance_m = o.esdf_max_distance_m;
    r->main = find_blind(r, VX__NVDB_VALUE);
    r->tiles = find_blind(r, VX__NVDB_TILES);
    r->part = find_blind(r, VX__NVDB_FREE);
    r->colours = find_blind(r, VX__NVDB_COLOUR);
    r->labels = find_blind(r, VX__NVDB_LABEL);
    r->params.colour = asked->colour || r->colours;
    r->params.label = asked->label || r->labels;
    if ((r->colours && !is_channel(r, r->colours, VX__NVDB_UINT32)) ||
        (r->labels && !is_channel(r, r->labels, VX__NVDB_UINT32)))
        return bad(r, r->colours ? VX__NVDB_COLOUR : VX__NVDB_LABEL, "does not have an item for each index");
    if (!is_channel(r, r->main, VX__NVDB_UINT32))
        return bad(r, VX__NVDB_VALUE, "is missing, or does not have an item for each index");
    if ((r->tiles && r->tiles->type) || (r->part && r->part->type))
        return bad(r, VX__NVDB_FREE, "is not of type unknown");
    r->shown = find_blind(r, o.mode == VX_TSDF ? "tsdf" : "log_odds");
    r->weights = o.mode == VX_TSDF ? find_blind(r, "weight") : NULL;
    r->shown_colours = r->colours ? find_blind(r, "colour") : NULL;
    if ((r->shown && !is_channel(r, r->shown, VX__NVDB_FLOAT)) ||
        (r->weights && !is_channel(r, r->weights, VX__NVDB_FLOAT)) ||
        (r->shown_colours && !is_channel(r, r->shown_colours, VX__NVDB_RGBA8)))
        return bad(r, "channel",
                   "values, weights or colours beside vx:value do not have an item for each index");
    r->source = EXACT;
    r->ours = true;
    return VX_OK;
}

static bool is_main(const struct reader *r, const struct vx__nvdb_blind *b)
{
    return is_channel(r, b, VX__NVDB_FLOAT) && strcmp(b->name, "weight") != 0;
}

/* The channel that holds the values; NULL: none does. */
static vx_err choose_channel(struct reader *r)
{
    const char *wanted = r->options->channel;
    uint32_t n = 0;
    if (wanted && wanted[0]) {
        r->main = find_blind(r, wanted);
        if (!r->main)
            return vx_fail(r->detail, VX_E_NOT_FOUND, "channel", "the grid has no blind data '%.64s'",
                           wanted);
        if (!is_channel(r, r->main, VX__NVDB_FLOAT))
            return vx_fail(r->detail, VX_E_INVALID, "channel",
                           "'%.64s' is not one float for each of %llu indices", wanted,
                           (unsigned long long)r->in.head.grid.n_values);
        return VX_OK;
    }
    for (uint32_t i = 0; i < r->in.head.grid.n_blind; i++)
        if (is_main(r, &r->in.blind[i])) {
            r->main = &r->in.blind[i];
            n++;
        }
    if (n > 1)
        return bad(r, "channel", "the grid has several channels of floats; name one");
    return VX_OK;
}

static vx_err choose_index(struct reader *r)
{
    const struct vx__nvdb_blind *ours = find_blind(r, VX__NVDB_OURS);
    if (ours && !(r->options->channel && r->options->channel[0]))
        return take_ours(r, ours);
    VX_TRY_RET(choose_channel(r));
    r->source = r->main ? CHANNEL : TOPOLOGY;
    if (!r->options->has_mode && r->main && strcmp(r->main->name, "log_odds") == 0)
        r->params.mode = VX_OCCUPANCY;
    r->weights = find_blind(r, "weight");
    if (!is_channel(r, r->weights, VX__NVDB_FLOAT) || r->source == TOPOLOGY || r->weights == r->main)
        r->weights = NULL;
    return VX_OK;
}

static vx_err choose_float(struct reader *r)
{
    uint32_t class_ = r->in.head.grid.class_;
    double truncation = (double)r->in.background / r->in.head.grid.map.mat[0];
    r->source = DENSE;
    if (r->options->channel && r->options->channel[0])
        return vx_fail(r->detail, VX_E_NOT_FOUND, "channel", "a Float grid has its values in its leaves");
    if (class_ != VX__NVDB_CLASS_LEVEL_SET && !r->options->has_mode)
        return bad(
            r, "mode",
            "the grid is no level set; say what its values are: --mode occupancy for log-odds, --mode tsdf "
            "for distances");
    if (class_ == VX__NVDB_CLASS_LEVEL_SET && r->params.mode != VX_TSDF)
        return bad(r, "mode", "the grid is a level set: its values are distances, not log-odds");
    if (r->params.mode == VX_TSDF && r->params.truncation_voxels == 0 && truncation > 0.99999 &&
        truncation < 16.00001)
        r->params.truncation_voxels =
            fabs(truncation - rint(truncation)) < 1e-5 ? rint(truncation) : truncation; /* it was a float */
    return VX_OK;
}

static vx_err choose(struct reader *r)
{
    const struct vx__nvdb_map *m = &r->in.head.grid.map;
    const struct vx_nvdb_import *o = r->options;
    if (!(o->weight >= 0 && o->weight <= 255))
        return vx_fail(r->detail, VX_E_INVALID, "weight", "must be 0 to 255, got %g", (double)o->weight);
    r->params = o->params;
    r->params.mode = o->has_mode ? o->params.mode : VX_TSDF;
    r->params.voxel_size_m = m->mat[0];
    for (int a = 0; a < 3; a++)
        r->params.origin_m[a] = m->vec[a] - 0.5 * m->mat[0];
    VX_TRY_RET(r->in.flat ? choose_float(r) : choose_index(r));
    if (r->params.truncation_voxels == 0)
        r->params.truncation_voxels = 3;
    if (r->params.mode == VX_TSDF)
        r->scale = 32767 / (r->params.truncation_voxels * r->params.voxel_size_m);
    else
        r->scale = 1024;
    r->weight = (uint32_t)rintf(r->options->weight);
    return VX_OK;
}

/* ------------------------------------------------------------------ values */

static vx_err pack(const struct reader *r, float value, float weight, const int32_t at[3], uint32_t *out)
{
    double t = value * r->scale;
    if (isnan(value))
        return vx_fail(r->detail, VX_E_INVALID, "value",
                       "of a voxel in the leaf at (%d, %d, %d) is no number", at[0], at[1], at[2]);
    t = rint(t < -32767 ? -32767 : t > 32767 ? 32767 : t);
    if (!(weight >= 0 && weight <= FLT_MAX))
        return vx_fail(r->detail, VX_E_INVALID, "weight",
                       "of a voxel in the leaf at (%d, %d, %d) is %g; weights are 0 or more and finite (more "
                       "than 255 counts as 255)",
                       at[0], at[1], at[2], (double)weight);
    *out = vxk_tsdf_pack((int32_t)t,
                         r->params.mode == VX_TSDF ? (uint32_t)rintf(weight < 255 ? weight : 255) : 0);
    return VX_OK;
}

static vx_err check_exact(const struct reader *r, const uint32_t *value, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const bool high = r->params.mode != VX_TSDF && value[k] >> 16;
        if (high || (value[k] & 0xffff) == 0x8000)
            return vx_fail(r->detail, VX_E_INVALID, VX__NVDB_VALUE, "%08x is no value of a voxel", value[k]);
    }
    return VX_OK;
}

/*
 * vx:value counts, and what the file shows to other programs must say the same: who has edited that would
 * find nothing of it in the map.
 */
static vx_err check_shown(struct reader *r, uint64_t first, uint32_t n, const int32_t at[3],
                          const uint32_t *exact)
{
    float value[512], weight[512];
    if (r->shown)
        VX_TRY_RET(vx__nvdb_cursor_get(&r->shown_c, (uint64_t)r->shown->at + first * 4, value, n * 4));
    if (r->weights)
        VX_TRY_RET(vx__nvdb_cursor_get(&r->weight_c, (uint64_t)r->weights->at + first * 4, weight, n * 4));
    for (uint32_t k = 0; k < n; k++) {
        const bool same = !r->shown || rint(value[k] * r->scale) == vxk_tsdf_distance(exact[k]),
                   same_weight = !r->weights || weight[k] == (float)vxk_tsdf_weight(exact[k]);
        const char *name = !same ? r->shown->name : "weight";
        if (!same || !same_weight)
            return vx_fail(r->detail, VX_E_INVALID, name,
                           "%s and vx:value differ in the leaf at (%d, %d, %d): the file was edited; with "
                           "--channel %s the edited values are taken, without known free space",
                           name, at[0], at[1], at[2], r->shown ? r->shown->name : "NAME");
    }
    return VX_OK;
}

/* Values of n voxels from index `first` on. */
static vx_err index_values(struct reader *r, uint64_t first, uint32_t n, const int32_t at[3],
                           uint32_t out[512])
{
    float value[512], weight[512];
    if (r->source == TOPOLOGY) {
        memset(out, 0, n * sizeof *out);
        return VX_OK;
    }
    if (r->source == EXACT) {
        VX_TRY_RET(vx__nvdb_cursor_get(&r->main_c, (uint64_t)r->main->at + first * 4, out, n * 4));
        VX_TRY_RET(check_exact(r, out, n));
        return check_shown(r, first, n, at, out);
    }
    VX_TRY_RET(vx__nvdb_cursor_get(&r->main_c, (uint64_t)r->main->at + first * 4, value, n * 4));
    if (r->weights)
        VX_TRY_RET(vx__nvdb_cursor_get(&r->weight_c, (uint64_t)r->weights->at + first * 4, weight, n * 4));
    for (uint32_t k = 0; k < n; k++)
        VX_TRY_RET(pack(r, value[k], r->weights ? weight[k] : (float)r->weight, at, &out[k]));
    return VX_OK;
}

/* Colours and labels of the leaf that the loader took last: n voxels from index `first` on. */
static vx_err index_channels(struct reader *r, uint64_t first, uint32_t n)
{
    uint32_t colour[512], label[512], rgba[512];
    uint16_t labels[512];
    if (r->colours)
        VX_TRY_RET(vx__nvdb_cursor_get(&r->colour_c, (uint64_t)r->colours->at + first * 4, colour, n * 4));
    if (r->labels)
        VX_TRY_RET(vx__nvdb_cursor_get(&r->label_c, (uint64_t)r->labels->at + first * 4, label, n * 4));
    for (uint32_t k = 0; k < n && r->colours; k++)
        for (uint32_t part = 0; part < 3; part++)
            if (vxk_colour_part(colour[k], part) > 510 || (!vxk_colour_weight(colour[k]) && colour[k]))
                return vx_fail(r->detail, VX_E_INVALID, VX__NVDB_COLOUR, "%08x is no colour of a voxel",
                               colour[k]);
    if (r->shown_colours)
        VX_TRY_RET(vx__nvdb_cursor_get(&r->rgba_c, (uint64_t)r->shown_colours->at + first * 4, rgba, n * 4));
    for (uint32_t k = 0; k < n && r->shown_colours; k++)
        if (rgba[k] != vx__nvdb_rgba(colour[k]))
            return vx_fail(
                r->detail, VX_E_INVALID, "colour",
                "of a voxel is %08x and differs from its vx:colour: the file was edited, and edited "
                "colours are not read",
                rgba[k]);
    for (uint32_t k = 0; k < n && r->labels; k++) {
        if (label[k] > 0xffff || (!vxk_label_of(label[k]) && label[k]))
            return vx_fail(r->detail, VX_E_INVALID, VX__NVDB_LABEL,
                           "label %u with confidence %u is none that a voxel can have", label[k] & 255,
                           label[k] >> 8);
        labels[k] = (uint16_t)label[k];
    }
    vx__loader_channels(r->loader, r->colours ? colour : NULL, r->labels ? labels : NULL);
    return VX_OK;
}

/* ------------------------------------------------------------------ leaves */

static vx_err check_leaf(struct reader *r, const struct vx__nvdb_leaf *l, const int32_t at[3])
{
    struct vx__nvdb_box *all = &r->box, b;
    uint64_t any = 0;
    for (int a = 0; a < 3; a++) {
        if ((l->min[a] & ~7) != at[a])
            return vx_fail(
                r->detail, VX_E_INVALID, "leaf.box", "leaf %llu says (%d, %d, %d), lies at (%d, %d, %d)",
                (unsigned long long)r->n_leaves, l->min[0], l->min[1], l->min[2], at[0], at[1], at[2]);
        if (l->flags & VX__NVDB_HAS_BBOX && (l->min[a] & 7) + l->dif[a] > 7)
            return vx_fail(r->detail, VX_E_INVALID, "leaf.box", "of leaf %llu passes the leaf",
                           (unsigned long long)r->n_leaves);
    }
    for (int x = 0; x < 8; x++)
        any |= l->mask[x];
    if (!any)
        return VX_OK;
    b = vx__nvdb_mask_box(l->mask, at);
    for (int a = 0; a < 3; a++) {
        if (l->flags & VX__NVDB_HAS_BBOX && (b.min[a] < l->min[a] || b.max[a] > l->min[a] + l->dif[a]))
            return vx_fail(r->detail, VX_E_INVALID, "leaf.box", "of leaf %llu leaves out a voxel",
                           (unsigned long long)r->n_leaves);
        all->min[a] = b.min[a] < all->min[a] ? b.min[a] : all->min[a];
        all->max[a] = b.max[a] > all->max[a] ? b.max[a] : all->max[a];
    }
    return VX_OK;
}

static vx_err read_index_leaf(struct reader *r, const int32_t at[3], uint64_t mask[8], uint32_t out[512],
                              uint32_t *n)
{
    struct vx__nvdb_leaf_index l;
    uint64_t prefix = 0;
    uint32_t count = 0;
    VX_TRY_RET(vx__nvdb_cursor_get(&r->leaf_c, r->in.leaf_at + r->n_leaves * sizeof l, &l, sizeof l));
    VX_TRY_RET(check_leaf(r, &l.head, at));
    for (int x = 0; x < 8; x++) {
        count += vxk_popc64(l.head.mask[x]);
        if (x < 7)
            prefix |= (uint64_t)count << 9 * x;
    }
    if (l.prefix != prefix)
        return vx_fail(r->detail, VX_E_INVALID, "leaf.prefix_sum", "of leaf %llu does not fit its mask",
                       (unsigned long long)r->n_leaves);
    memcpy(mask, l.head.mask, sizeof l.head.mask);
    *n = count;
    if (!count)
        return VX_OK;
    if (l.first < r->next || (r->ours && l.first != r->next))
        return vx_fail(r->detail, VX_E_INVALID, "leaf.offset",
                       "leaf %llu begins at index %llu, which is taken or leaves a gap",
                       (unsigned long long)r->n_leaves, (unsigned long long)l.first);
    if (l.first > r->in.head.grid.n_values || count > r->in.head.grid.n_values - l.first)
        return vx_fail(r->detail, VX_E_INVALID, "leaf.offset", "leaf %llu passes the last of %llu indices",
                       (unsigned long long)r->n_leaves, (unsigned long long)r->in.head.grid.n_values);
    r->next = l.first + count;
    return index_values(r, l.first, count, at, out);
}

static vx_err read_float_leaf(struct reader *r, const int32_t at[3], uint64_t mask[8], uint32_t out[512],
                              uint32_t *n)
{
    struct vx__nvdb_leaf_float l;
    VX_TRY_RET(vx__nvdb_cursor_get(&r->leaf_c, r->in.leaf_at + r->n_leaves * sizeof l, &l, sizeof l));
    VX_TRY_RET(check_leaf(r, &l.head, at));
    memcpy(mask, l.head.mask, sizeof l.head.mask);
    *n = 0;
    for (uint32_t i = 0; i < 512; i++)
        if (mask[i >> 6] >> (i & 63) & 1)
            VX_TRY_RET(pack(r, l.value[i], (float)r->weight, at, &out[(*n)++]));
    return VX_OK;
}

static vx_err read_leaf(struct reader *r, const int32_t at[3], uint32_t place)
{
    static const uint64_t none[8];
    uint64_t mask[8];
    uint32_t value[512], n = 0;
    struct vx__nvdb_free_chunk *f = r->ours ? r->free.chunk : NULL;
    bool seen = f && f->has[place >> 6] >> (place & 63) & 1;
    VX_TRY_RET(r->in.flat ? read_float_leaf(r, at, mask, value, &n)
                          : read_index_leaf(r, at, mask, value, &n));
    r->n_leaves++;
    r->n_active += n;
    if (!n)
        return VX_OK;
    if (seen)
        f->has[place >> 6] &= ~(1ull << (place & 63));
    VX_TRY_RET(vx__loader_leaf(r->loader, place, mask, seen ? f->mask[place] : none, value, r->detail));
    return r->colours || r->labels ? index_channels(r, r->next - n, n) : VX_OK;
}

/* ------------------------------------------------------------------ nodes */

/* A node's box lies in the node and holds `child`; min > max: it says that there is no voxel. */
static vx_err check_box(const struct reader *r, const char *field, const struct vx__nvdb_box *b,
                        uint64_t flags, const int32_t at[3], int32_t size)
{
    if (!(flags & VX__NVDB_HAS_BBOX) || !(r->in.head.grid.flags & VX__NVDB_HAS_BBOX) || b->min[0] > b->max[0])
        return VX_OK;
    for (int a = 0; a < 3; a++)
        if (b->min[a] > b->max[a] || b->min[a] < at[a] || b->max[a] > at[a] + (size - 1))
            return vx_fail(r->detail, VX_E_INVALID, field, "passes the node at (%d, %d, %d)", at[0], at[1],
                           at[2]);
    return VX_OK;
}

static vx_err no_tiles(const struct reader *r, const uint64_t *value, const uint64_t *child, int words)
{
    for (int i = 0; i < words; i++)
        if (value[i] & ~child[i])
            return vx_fail(r->detail, VX_E_UNIMPLEMENTED, "value_mask",
                           "the grid has active tiles; turn them into voxels first");
    return VX_OK;
}

/* Begins the chunk at `at`, after all before it that are free only. */
static vx_err begin_chunk(struct reader *r, const int32_t at[3])
{
    int32_t next[3];
    if (r->ours) {
        if (r->has_last && vx__nvdb_order(r->last, at) >= 0)
            return bad(r, "root.tiles", "are out of order");
        while (vx__nvdb_free_next(&r->free, next) && vx__nvdb_order(next, at) < 0) {
            VX_TRY_RET(vx__loader_begin(r->loader, next, r->detail));
            VX_TRY_RET(vx__nvdb_free_take(&r->free, next, r->loader));
            VX_TRY_RET(vx__nvdb_free_rest(&r->free, r->loader));
        }
    }
    VX_TRY_RET(vx__loader_begin(r->loader, at, r->detail));
    memcpy(r->last, at, sizeof r->last);
    r->has_last = true;
    return r->ours ? vx__nvdb_free_take(&r->free, at, r->loader) : VX_OK;
}

/* The chunks behind the last one that are free only. */
static vx_err end_chunks(struct reader *r)
{
    int32_t next[3];
    while (r->ours && vx__nvdb_free_next(&r->free, next)) {
        if (r->has_last && vx__nvdb_order(r->last, next) >= 0)
            return bad(r, VX__NVDB_FREE, "is out of order");
        VX_TRY_RET(vx__loader_begin(r->loader, next, r->detail));
        VX_TRY_RET(vx__nvdb_free_take(&r->free, next, r->loader));
        VX_TRY_RET(vx__nvdb_free_rest(&r->free, r->loader));
    }
    return VX_OK;
}

static vx_err read_lower(struct reader *r, const int32_t at[3])
{
    const struct vx__nvdb_input *in = &r->in;
    struct vx__nvdb_lower *n = r->lower;
    const uint64_t node_at = in->lower_at + r->n_lower * sizeof *n;
    const int32_t chunk[3] = {at[0] >> 7, at[1] >> 7, at[2] >> 7};
    VX_TRY_RET(vx__nvdb_watch(&r->options->watch, in->leaf_at + r->n_leaves * in->leaf_bytes, r->total,
                              "the file was read", r->detail));
    VX_TRY_RET(vx__nvdb_cursor_get(&r->lower_c, node_at, n, sizeof *n));
    r->n_lower++;
    VX_TRY_RET(check_box(r, "lower.box", &n->box, n->flags, at, 128));
    VX_TRY_RET(no_tiles(r, n->value_mask, n->child_mask, 64));
    VX_TRY_RET(begin_chunk(r, chunk));
    for (uint32_t s = 0; s < 4096; s++) {
        const int32_t leaf[3] = {at[0] + (int32_t)(s >> 8) * 8, at[1] + (int32_t)(s >> 4 & 15) * 8,
                                 at[2] + (int32_t)(s & 15) * 8};
        if (!(n->child_mask[s >> 6] >> (s & 63) & 1))
            continue;
        if (r->n_leaves == in->head.tree.n_nodes[0] ||
            n->table[s] != (int64_t)(in->leaf_at + r->n_leaves * in->leaf_bytes - node_at))
            return vx_fail(r->detail, VX_E_INVALID, "lower.table",
                           "lower node %llu: child %u is not the next leaf (%llu of %u)",
                           (unsigned long long)r->n_lower - 1, s, (unsigned long long)r->n_leaves,
                           in->head.tree.n_nodes[0]);
        VX_TRY_RET(read_leaf(r, leaf, vx__nvdb_place(s)));
    }
    return r->ours ? vx__nvdb_free_rest(&r->free, r->loader) : VX_OK;
}

static vx_err read_upper(struct reader *r, uint32_t k)
{
    const struct vx__nvdb_input *in = &r->in;
    const struct vx__nvdb_tile *t = &r->tile[k];
    struct vx__nvdb_upper *n = r->upper;
    const uint64_t node_at = in->upper_at + (uint64_t)k * sizeof *n;
    int32_t at[3];
    for (int a = 0; a < 3; a++) {
        int32_t c = (int32_t)(t->key >> (42 - 21 * a) & 0xfffff); /* 20 bits, signed */
        c -= c & 0x80000 ? 0x100000 : 0;
        if (c < -(1 << 15) || c >= 1 << 15)
            return bad(r, "root.tiles", "a node lies beyond the voxel range of a map (2^27 each way)");
        at[a] = c * 4096;
    }
    VX_TRY_RET(vx__nvdb_cursor_get(&r->upper_c, node_at, n, sizeof *n));
    VX_TRY_RET(check_box(r, "upper.box", &n->box, n->flags, at, 4096));
    VX_TRY_RET(no_tiles(r, n->value_mask, n->child_mask, 512));
    for (uint32_t s = 0; s < 32768; s++) {
        const int32_t lower[3] = {at[0] + (int32_t)(s >> 10) * 128, at[1] + (int32_t)(s >> 5 & 31) * 128,
                                  at[2] + (int32_t)(s & 31) * 128};
        if (!(n->child_mask[s >> 6] >> (s & 63) & 1))
            continue;
        if (r->n_lower == in->head.tree.n_nodes[1] ||
            n->table[s] != (int64_t)(in->lower_at + r->n_lower * sizeof *r->lower - node_at))
            return vx_fail(r->detail, VX_E_INVALID, "upper.table",
                           "upper node %u: child %u is not the next lower node (%llu of %u)", k, s,
                           (unsigned long long)r->n_lower, in->head.tree.n_nodes[1]);
        VX_TRY_RET(read_lower(r, lower));
    }
    return VX_OK;
}

static int by_key(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

static vx_err check_keys(const struct reader *r, uint32_t n)
{
    uint64_t *key = malloc((n + 1ull) * sizeof *key);
    vx_err err = VX_OK;
    if (!key)
        return vx_fail(r->detail, VX_E_NOMEM, "", "no memory for the import");
    for (uint32_t i = 0; i < n; i++) {
        key[i] = r->tile[i].key;
        if (key[i] >> 62 || key[i] >> 20 & 1 || key[i] >> 41 & 1)
            err = bad(r, "root.tiles", "a key has bits that are no coordinate");
    }
    qsort(key, n, sizeof *key, by_key);
    for (uint32_t i = 1; i < n; i++)
        if (key[i] == key[i - 1])
            err = bad(r, "root.tiles", "two tiles have the same place");
    free(key);
    return err;
}

/* Root tiles with children, sorted to the order of the upper nodes: each node is the child of one tile. */
static vx_err read_tiles(struct reader *r)
{
    const struct vx__nvdb_input *in = &r->in;
    uint32_t n = in->n_tiles, n_upper = in->head.tree.n_nodes[2];
    const int64_t first = (int64_t)(in->upper_at - in->root_at);
    struct vx__nvdb_tile *raw = malloc((n + 1ull) * sizeof *raw);
    vx_err err = VX_OK;
    r->tile = calloc(n_upper + 1ull, sizeof *r->tile);
    if (!raw || !r->tile) {
        err = vx_fail(r->detail, VX_E_NOMEM, "", "no memory for the import");
        goto fail;
    }
    VX_TRY(vx__nvdb_input_read(in, in->tiles_at, raw, (uint64_t)n * sizeof *raw));
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = -1;
        if (!raw[i].child) {
            if (raw[i].state)
                VX_TRY(vx_fail(r->detail, VX_E_UNIMPLEMENTED, "root.tiles",
                               "the grid has active tiles; turn them into voxels first"));
            continue;
        }
        if (raw[i].child >= first)
            k = (raw[i].child - first) / (int64_t)sizeof *r->upper;
        if (k < 0 || k >= n_upper || k * (int64_t)sizeof *r->upper + first != raw[i].child)
            VX_TRY(bad(r, "root.tiles", "a child is no upper node"));
        if (r->tile[k].child)
            VX_TRY(bad(r, "root.tiles", "two tiles share a node"));
        r->tile[k] = raw[i];
    }
    for (uint32_t k = 0; k < n_upper; k++)
        if (!r->tile[k].child)
            VX_TRY(bad(r, "root.tiles", "an upper node is no tile's child"));
    VX_TRY(check_keys(r, n_upper));
fail:
    free(raw);
    return err;
}

/* ------------------------------------------------------------------ all of it */

static vx_err check_end(const struct reader *r)
{
    const struct vx__nvdb_head *h = &r->in.head;
    const struct vx__nvdb_box *b = &r->in.box;
    if (r->n_lower != h->tree.n_nodes[1] || r->n_leaves != h->tree.n_nodes[0])
        return bad(r, "tree.n_nodes", "there are nodes that no node has as its child");
    if (r->n_active != h->tree.n_voxels)
        return vx_fail(r->detail, VX_E_INVALID, "tree.n_voxels", "is %llu, the leaves have %llu",
                       (unsigned long long)h->tree.n_voxels, (unsigned long long)r->n_active);
    if (!r->in.flat && (r->ours ? h->grid.n_values != r->next : h->grid.n_values < r->next))
        return vx_fail(r->detail, VX_E_INVALID, "n_values", "is %llu, the leaves go up to %llu",
                       (unsigned long long)h->grid.n_values, (unsigned long long)r->next);
    if (h->grid.flags & VX__NVDB_HAS_BBOX && r->n_active && memcmp(b, &r->box, sizeof *b))
        return bad(r, "root.box", "is not the box of the active voxels");
    return VX_OK;
}

static vx_err read_nodes(struct reader *r)
{
    const struct vx__nvdb_input *in = &r->in;
    r->upper = malloc(sizeof *r->upper);
    r->lower = malloc(sizeof *r->lower);
    if (!r->upper || !r->lower)
        return vx_fail(r->detail, VX_E_NOMEM, "", "no memory for the import");
    VX_TRY_RET(vx__nvdb_cursor_init(&r->upper_c, in));
    VX_TRY_RET(vx__nvdb_cursor_init(&r->lower_c, in));
    VX_TRY_RET(vx__nvdb_cursor_init(&r->leaf_c, in));
    VX_TRY_RET(vx__nvdb_cursor_init(&r->main_c, in));
    VX_TRY_RET(vx__nvdb_cursor_init(&r->weight_c, in));
    if (r->shown)
        VX_TRY_RET(vx__nvdb_cursor_init(&r->shown_c, in));
    if (r->shown_colours)
        VX_TRY_RET(vx__nvdb_cursor_init(&r->rgba_c, in));
    if (r->colours)
        VX_TRY_RET(vx__nvdb_cursor_init(&r->colour_c, in));
    if (r->labels)
        VX_TRY_RET(vx__nvdb_cursor_init(&r->label_c, in));
    if (r->ours)
        VX_TRY_RET(vx__nvdb_free_init(&r->free, in, r->tiles, r->part));
    VX_TRY_RET(read_tiles(r));
    for (uint32_t k = 0; k < in->head.tree.n_nodes[2]; k++)
        VX_TRY_RET(read_upper(r, k));
    VX_TRY_RET(end_chunks(r));
    return check_end(r);
}

static void reader_fini(struct reader *r)
{
    vx__nvdb_cursor_fini(&r->upper_c);
    vx__nvdb_cursor_fini(&r->lower_c);
    vx__nvdb_cursor_fini(&r->leaf_c);
    vx__nvdb_cursor_fini(&r->main_c);
    vx__nvdb_cursor_fini(&r->weight_c);
    vx__nvdb_cursor_fini(&r->colour_c);
    vx__nvdb_cursor_fini(&r->label_c);
    vx__nvdb_cursor_fini(&r->shown_c);
    vx__nvdb_cursor_fini(&r->rgba_c);
    vx__nvdb_free_fini(&r->free);
    vx__loader_destroy(r->loader);
    vx__nvdb_input_fini(&r->in);
    free(r->tile);
    free(r->upper);
    free(r->lower);
}

vx_err vx_nvdb_read(struct vx_device *device, const char *name, const struct vx_nvdb_import *options, int fd,
                    uint64_t n_bytes, struct vx_map **out, struct vx_nvdb_summary *summary,
                    struct vx_detail *detail)
{
    struct reader r = {.options = options,
                       .detail = detail,
                       .next = 1,
                       .box = {{INT32_MAX, INT32_MAX, INT32_MAX}, {INT32_MIN, INT32_MIN, INT32_MIN}},
                       .total = n_bytes};
    struct vx_map *map = NULL;
    vx_err err;
    *out = NULL;
    VX_TRY(vx_map_check_name(name, detail));
    VX_TRY(vx__nvdb_input_init(&r.in, fd, n_bytes, options->grid, detail));
    VX_TRY(choose(&r));
    VX_TRY(vx__nvdb_input_check_sum(&r.in, &options->watch, r.total));
    VX_TRY(vx_map_create(device, name, &r.params, &map, detail));
    VX_TRY(vx__loader_create(map, &r.loader, detail));
    VX_TRY(read_nodes(&r));
    VX_TRY(vx__loader_publish(r.loader, detail));
    if (summary)
        *summary =
            (struct vx_nvdb_summary){.n_bytes = n_bytes, .n_voxels = r.n_active, .n_leaves = r.n_leaves};
fail:
    reader_fini(&r); /* the loader before its map */
    if (err != VX_OK)
        vx_map_destroy(map);
    else
        *out = map;
    return err;
}
