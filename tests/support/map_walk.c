#include "map_walk.h"

#include "body/sha256.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct vxk_queue *q;
    struct map_walk *w;
    const struct vxk_grid *g;
    uint32_t n_leaf_pages, n_value_pages, n_chunks; /* committed */
    /* the pools as they are: one copy each is far cheaper than one a page */
    struct vxk_chunk *chunks;
    struct vxk_leaf *leaves;
    uint32_t *values, *colours;
    uint16_t *labels; /* and colours: NULL where the map has none */
};

__attribute__((format(printf, 2, 3))) static void fault(struct map_walk *w, const char *format, ...)
{
    va_list args;
    if (w->fault[0])
        return;
    va_start(args, format);
    vsnprintf(w->fault, sizeof w->fault, format, args);
    va_end(args);
}

static void *get(void *p)
{
    if (!p) {
        fprintf(stderr, "map_walk: out of memory\n");
        abort();
    }
    return p;
}

static void read_device(struct vxk_queue *q, void *host, const void *dev, uint64_t bytes)
{
    if (bytes && (q->dev->ops->download(q, host, dev, bytes) || q->dev->ops->wait(q))) {
        fprintf(stderr, "map_walk: download failed: %s\n", q->dev->ops->queue_error_text(q));
        abort();
    }
}

static void add_id(struct map_walk *w, int kind, uint32_t id)
{
    if (w->n_ids[kind] == w->room_ids[kind]) {
        w->room_ids[kind] = w->room_ids[kind] * 2 + 64;
        w->ids[kind] = get(realloc(w->ids[kind], w->room_ids[kind] * sizeof *w->ids[kind]));
    }
    w->ids[kind][w->n_ids[kind]++] = id;
}

static struct walk_leaf *add_leaf(struct map_walk *w)
{
    if (w->n_leaves == w->room_leaves) {
        w->room_leaves = w->room_leaves * 2 + 64;
        w->leaves = get(realloc(w->leaves, w->room_leaves * sizeof *w->leaves));
    }
    return memset(&w->leaves[w->n_leaves++], 0, sizeof *w->leaves);
}

static void add_tile(struct map_walk *w, const int32_t at[3])
{
    if (w->n_tiles == w->room_tiles) {
        w->room_tiles = w->room_tiles * 2 + 64;
        w->tiles = get(realloc(w->tiles, w->room_tiles * sizeof *w->tiles));
    }
    memcpy(w->tiles[w->n_tiles++], at, sizeof *w->tiles);
}

/* One leaf record.  *place: number of the word's values before it. */
static void walk_leaf(struct reader *r, const struct vxk_leaf *l, const int32_t at[3], uint32_t *place,
                      uint32_t *pages)
{
    struct map_walk *w = r->w;
    struct walk_leaf *o = add_leaf(w);
    uint32_t n = 0, n_free = 0;
    uint64_t prefix = 0;
    memcpy(o->at, at, sizeof o->at);
    for (int x = 0; x < 8; x++) {
        if (l->active[x] & l->free[x])
            fault(w, "leaf %d %d %d: a voxel is active and free", at[0], at[1], at[2]);
        if (x)
            prefix |= (uint64_t)n << (9 * (x - 1));
        n += (uint32_t)__builtin_popcountll(l->active[x]);
        n_free += (uint32_t)__builtin_popcountll(l->free[x]);
        o->active[x] = l->active[x];
        o->free[x] = l->free[x];
    }
    o->n_active = n;
    if (l->n_active != n || l->prefix != prefix)
        fault(w, "leaf %d %d %d: n_active %u or prefix %llx wrong (%u, %llx)", at[0], at[1], at[2],
              l->n_active, (unsigned long long)l->prefix, n, (unsigned long long)prefix);
    if (n + n_free == 0)
        fault(w, "leaf %d %d %d: empty", at[0], at[1], at[2]);
    if (n == 0 && n_free == 512)
        fault(w, "leaf %d %d %d: wholly free, but no tile", at[0], at[1], at[2]);
    if (n == 0) {
        if (l->first || l->page[0] != VXK_NONE || l->page[1] != VXK_NONE || l->page[2] != VXK_NONE)
            fault(w, "leaf %d %d %d: pages without values", at[0], at[1], at[2]);
        return;
    }
    if (l->first != (*place & 255))
        fault(w, "leaf %d %d %d: first %u, expected %u", at[0], at[1], at[2], l->first, *place & 255);
    for (uint32_t k = 0; k < 3; k++) {
        if ((l->first + n > k * 256) != (l->page[k] != VXK_NONE))
            fault(w, "leaf %d %d %d: page %u is %x", at[0], at[1], at[2], k, l->page[k]);
        if (l->page[k] == VXK_NONE)
            continue;
        if (l->page[k] >= r->n_value_pages) {
            fault(w, "leaf %d %d %d: value page %u does not exist", at[0], at[1], at[2], l->page[k]);
            return;
        }
        if (k || l->first == 0) {
            pages[*place / 256 + k] = l->page[k];
            add_id(w, VX__VALUE_PAGES, l->page[k]);
        } else if (pages[*place / 256] != l->page[0]) {
            fault(w, "leaf %d %d %d: continues on page %u instead of %u", at[0], at[1], at[2], l->page[0],
                  pages[*place / 256]);
        }
    }
    *place += n;
    for (uint32_t v = 0, k = l->first; v < 512; v++) {
        if (l->active[v >> 6] >> (v & 63) & 1) {
            const uint64_t i = (uint64_t)l->page[k >> 8] * VXK_VALUES_A_PAGE + (k & 255);
            o->value[v] = r->values[i];
            o->colour[v] = r->colours ? r->colours[i] : 0;
            o->label[v] = r->labels ? r->labels[i] : 0;
            k++;
        }
    }
}

static void add_word(struct map_walk *w, const struct vxk_word *word, uint32_t number,
                     const int32_t corner[3])
{
    struct walk_word *to;
    if (w->n_words == w->room_words) {
        w->room_words = w->room_words ? 2 * w->room_words : 64;
        w->words = get(realloc(w->words, w->room_words * sizeof *w->words));
    }
    to = &w->words[w->n_words++];
    to->at[0] = corner[0] + (int32_t)(number >> 4) * 32;
    to->at[1] = corner[1] + (int32_t)(number >> 2 & 3) * 32;
    to->at[2] = corner[2] + (int32_t)(number & 3) * 32;
    to->tick = word->tick;
    to->seen = word->seen;
}

static void walk_word(struct reader *r, const struct vxk_chunk *c, uint32_t number, const int32_t corner[3])
{
    const struct vxk_word *word = &c->word[number];
    struct map_walk *w = r->w;
    uint32_t n = (uint32_t)__builtin_popcountll(word->leaf), place = 0, pages[130];
    int32_t at[3];
    if (word->leaf & word->tile)
        fault(w, "chunk %llx word %u: a cell is leaf and tile", (unsigned long long)c->key, number);
    if (word->seen > word->tick)
        fault(w, "chunk %llx word %u: seen in tick %u of %u", (unsigned long long)c->key, number, word->seen,
              word->tick);
    if (word->leaf | word->tile)
        add_word(w, word, number, corner);
    if ((word->leaf | word->tile) && (word->changed_epoch == 0 || word->changed_epoch > c->epoch))
        fault(w, "chunk %llx word %u: changed in epoch %u of %u", (unsigned long long)c->key, number,
              word->changed_epoch, c->epoch);
    for (uint32_t k = 0; k < 8; k++) {
        if ((k * 8 < n) != (word->page[k] != VXK_NONE))
            fault(w, "chunk %llx word %u: leaf page %u is %x with %u leaves", (unsigned long long)c->key,
                  number, k, word->page[k], n);
        if (k * 8 >= n || word->page[k] == VXK_NONE)
            continue;
        if (word->page[k] >= r->n_leaf_pages) {
            fault(w, "chunk %llx word %u: leaf page %u does not exist", (unsigned long long)c->key, number,
                  word->page[k]);
            return;
        }
        add_id(w, VX__LEAF_PAGES, word->page[k]);
    }
    for (uint32_t cell = 0, k = 0; cell < 64; cell++) {
        at[0] = corner[0] + (int32_t)((number >> 4) * 32 + (cell >> 4) * 8);
        at[1] = corner[1] + (int32_t)((number >> 2 & 3) * 32 + (cell >> 2 & 3) * 8);
        at[2] = corner[2] + (int32_t)((number & 3) * 32 + (cell & 3) * 8);
        if (word->tile >> cell & 1)
            add_tile(w, at);
        if (!(word->leaf >> cell & 1))
            continue;
        walk_leaf(r, &r->leaves[(uint64_t)word->page[k / 8] * VXK_LEAVES_A_PAGE + k % 8], at, &place, pages);
        k++;
        for (int a = 0; a < 3 && w->leaves[w->n_leaves - 1].n_active; a++) {
            w->cell_min[a] = at[a] < w->cell_min[a] ? at[a] : w->cell_min[a];
            w->cell_max[a] = at[a] > w->cell_max[a] ? at[a] : w->cell_max[a];
        }
    }
    if (place != word->n_active)
        fault(w, "chunk %llx word %u: n_active %u, its leaves hold %u", (unsigned long long)c->key, number,
              word->n_active, place);
}

/* The walk's own digest: the format of core/src/digest.c, from the host's copy. */
struct sums {
    struct vxk_sha256 map, chunk;
};

static void add_words(struct vxk_sha256 *s, const uint32_t digest[8])
{
    for (int i = 0; i < 32; i++)
        vxk_sha256_byte(s, digest[i / 4] >> (24 - 8 * (i & 3)));
}

static void digest_word(const struct reader *r, struct vxk_sha256 *chunk, uint32_t number,
                        const struct vxk_word *word, const struct walk_leaf *leaf)
{
    struct vxk_sha256 s;
    uint32_t out[8];
    if (!(word->leaf | word->tile))
        return;
    vxk_sha256_init(&s);
    vxk_sha256_u64(&s, word->leaf);
    vxk_sha256_u64(&s, word->tile);
    for (int n = __builtin_popcountll(word->leaf); n > 0; n--, leaf++) {
        for (int x = 0; x < 8; x++)
            vxk_sha256_u64(&s, leaf->active[x]);
        for (int x = 0; x < 8; x++)
            vxk_sha256_u64(&s, leaf->free[x]);
        for (int v = 0; v < 512; v++)
            if (leaf->active[v >> 6] >> (v & 63) & 1)
                vxk_sha256_u32(&s, leaf->value[v]);
        for (int v = 0; r->colours && v < 512; v++)
            if (leaf->active[v >> 6] >> (v & 63) & 1)
                vxk_sha256_u32(&s, leaf->colour[v]);
        for (int v = 0; r->labels && v < 512; v++)
            if (leaf->active[v >> 6] >> (v & 63) & 1)
                vxk_sha256_u32(&s, leaf->label[v]);
    }
    vxk_sha256_end(&s, out);
    vxk_sha256_u32(chunk, number);
    add_words(chunk, out);
}

static void walk_chunk(struct reader *r, const struct vxk_chunk *c, struct vxk_sha256 *map)
{
    struct map_walk *w = r->w;
    struct vxk_sha256 sum;
    uint32_t leaf0 = w->n_leaves, tile0 = w->n_tiles, active = 0, out[8];
    int32_t at[3];
    vxk_key_xyz(c->key, &at[0], &at[1], &at[2]);
    for (int a = 0; a < 3; a++) {
        if (c->n_leaf + c->n_tile) {
            w->chunk_min[a] = at[a] < w->chunk_min[a] ? at[a] : w->chunk_min[a];
            w->chunk_max[a] = at[a] > w->chunk_max[a] ? at[a] : w->chunk_max[a];
        }
        at[a] *= 128;
    }
    vxk_sha256_init(&sum);
    for (uint32_t k = 0; k < 64; k++) {
        uint32_t first = w->n_leaves;
        walk_word(r, c, k, at);
        digest_word(r, &sum, k, &c->word[k], w->leaves + first);
        active += c->word[k].n_active;
    }
    if (c->n_leaf != w->n_leaves - leaf0 || c->n_tile != w->n_tiles - tile0 || c->n_active != active)
        fault(w, "chunk %llx: header says %u leaves, %u tiles, %u voxels; it has %u, %u, %u",
              (unsigned long long)c->key, c->n_leaf, c->n_tile, c->n_active, w->n_leaves - leaf0,
              w->n_tiles - tile0, active);
    w->n_active += active;
    if (!(c->n_leaf + c->n_tile))
        return;
    w->n_chunks++;
    vxk_sha256_end(&sum, out);
    vxk_sha256_u64(map, c->key);
    add_words(map, out);
}

struct keyed {
    uint64_t key;
    uint32_t head;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static uint32_t read_table(struct reader *r, struct keyed **out)
{
    uint32_t slots = r->g->slot_mask + 1, n = 0;
    uint64_t *keys = get(malloc(slots * 8ull));
    uint32_t *heads = get(malloc(slots * 4ull));
    *out = get(malloc(slots * sizeof **out));
    read_device(r->q, keys, r->g->keys, slots * 8ull);
    read_device(r->q, heads, r->g->heads, slots * 4ull);
    for (uint32_t i = 0; i < slots; i++) {
        if (keys[i] != VXK_NO_KEY)
            (*out)[n++] = (struct keyed){keys[i], heads[i]};
        else if (heads[i] != VXK_NONE)
            fault(r->w, "slot %u: a version without a key", i);
    }
    qsort(*out, n, sizeof **out, by_key);
    for (uint32_t i = 1; i < n; i++)
        if ((*out)[i].key == (*out)[i - 1].key)
            fault(r->w, "key %llx is in the table twice", (unsigned long long)(*out)[i].key);
    free(keys);
    free(heads);
    return n;
}

/* The walker's own count of a map's channels picks the pool. */
static const struct vx__page_pool *pool_of(struct vx_device *d, const struct vx_map *map, int kind)
{
    unsigned set = (map->params.colour ? 1u : 0u) | (map->params.label ? 2u : 0u);
    return &d->pool[kind == VX__VALUE_PAGES && set ? 2 + set : (unsigned)kind];
}

static void *read_pool(struct reader *r, const void *dev, uint64_t bytes)
{
    void *host = get(malloc(bytes + 1));
    read_device(r->q, host, dev, bytes);
    return host;
}

struct map_walk *map_walk_snapshot(struct vx_map *map, const struct vx__snapshot *s)
{
    struct vx_device *d = map->device;
    struct map_walk *w = get(calloc(1, sizeof *w));
    struct reader r = {.w = w,
                       .g = &s->grid,
                       .n_chunks = d->pool[VX__CHUNKS].n_units,
                       .n_leaf_pages = d->pool[VX__LEAF_PAGES].n_units,
                       .n_value_pages = pool_of(d, map, VX__VALUE_PAGES)->n_units};
    struct vxk_chunk *c = NULL;
    struct keyed *table;
    struct vxk_sha256 sum;
    uint32_t n, words[8];
    if (d->dev->ops->queue_create(d->dev, 0, &r.q))
        abort();
    for (int a = 0; a < 3; a++) {
        w->chunk_min[a] = w->cell_min[a] = INT32_MAX;
        w->chunk_max[a] = w->cell_max[a] = INT32_MIN;
    }
    vxk_sha256_init(&sum);
    n = read_table(&r, &table);
    r.chunks = read_pool(&r, r.g->chunks, r.n_chunks * (uint64_t)sizeof *r.chunks);
    r.leaves = read_pool(&r, r.g->leaves, r.n_leaf_pages * (uint64_t)sizeof *r.leaves * VXK_LEAVES_A_PAGE);
    r.values = read_pool(&r, r.g->values, r.n_value_pages * 4ull * VXK_VALUES_A_PAGE);
    if (map->params.colour)
        r.colours = read_pool(&r, r.g->colours, r.n_value_pages * 4ull * VXK_VALUES_A_PAGE);
    if (map->params.label)
        r.labels = read_pool(&r, r.g->labels, r.n_value_pages * 2ull * VXK_VALUES_A_PAGE);
    for (uint32_t i = 0; i < n && !w->fault[0]; i++) {
        uint32_t at = table[i].head, newer = VXK_NONE;
        for (; at != VXK_NONE; at = c->prev) {
            if (at >= r.n_chunks) {
                fault(w, "key %llx: version %u does not exist", (unsigned long long)table[i].key, at);
                break;
            }
            c = &r.chunks[at];
            if (c->key != table[i].key || c->epoch >= newer)
                fault(w, "key %llx: version %u has key %llx, epoch %u after %u",
                      (unsigned long long)table[i].key, at, (unsigned long long)c->key, c->epoch, newer);
            if (c->epoch <= s->epoch || w->fault[0])
                break;
            newer = c->epoch;
        }
        if (at == VXK_NONE || w->fault[0])
            continue;
        add_id(w, VX__CHUNKS, at);
        walk_chunk(&r, c, &sum);
    }
    vxk_sha256_end(&sum, words);
    for (int i = 0; i < 32; i++)
        w->digest[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i & 3)));
    d->dev->ops->queue_destroy(r.q);
    free(table);
    free(r.chunks);
    free(r.leaves);
    free(r.values);
    free(r.colours);
    free(r.labels);
    return w;
}

static void check_totals(const struct vx_map *map, struct map_walk *w)
{
    const struct vx__totals *t = &map->totals;
    if (t->n_active != w->n_active || t->n_leaf != w->n_leaves || t->n_tile != w->n_tiles ||
        t->n_chunk != w->n_chunks)
        fault(w, "totals say %llu voxels, %llu leaves, %llu tiles, %llu chunks; there are %llu, %u, %u, %u",
              (unsigned long long)t->n_active, (unsigned long long)t->n_leaf, (unsigned long long)t->n_tile,
              (unsigned long long)t->n_chunk, (unsigned long long)w->n_active, w->n_leaves, w->n_tiles,
              w->n_chunks);
    for (int k = 0; k < VX__N_KINDS; k++)
        if (t->n_pages[k] != w->n_ids[k])
            fault(w, "totals say %llu pages of kind %d, the map uses %u", (unsigned long long)t->n_pages[k],
                  k, w->n_ids[k]);
}

static void check_bounds(struct vx_map *map, struct map_walk *w)
{
    struct vx_map_info info;
    double vs = map->params.voxel_size_m, slack = vs * 1e-6 + 1e-9;
    vx_map_get_info(map, &info);
    if (info.has_bounds != (w->n_chunks > 0))
        fault(w, "has_bounds is %d with %u chunks", info.has_bounds, w->n_chunks);
    for (int a = 0; a < 3 && w->n_chunks; a++) {
        double o = map->params.origin_m[a], eps = slack + 1e-15 * (o < 0 ? -o : o) * 4;
        if (info.bounds_min_m[a] > o + w->chunk_min[a] * 128.0 * vs + eps ||
            info.bounds_max_m[a] < o + (w->chunk_max[a] + 1) * 128.0 * vs - eps)
            fault(w, "axis %d: bounds %g .. %g leave out a chunk", a, info.bounds_min_m[a],
                  info.bounds_max_m[a]);
        if (w->n_active && (info.active_min_m[a] > o + w->cell_min[a] * vs + eps ||
                            info.active_max_m[a] < o + (w->cell_max[a] + 8) * vs - eps))
            fault(w, "axis %d: active bounds %g .. %g leave out a leaf", a, info.active_min_m[a],
                  info.active_max_m[a]);
        if (info.active_min_m[a] < info.bounds_min_m[a] - eps ||
            info.active_max_m[a] > info.bounds_max_m[a] + eps)
            fault(w, "axis %d: active bounds pass the chunks' bounds", a);
    }
}

struct map_walk *map_walk_newest(struct vx_map *map)
{
    struct vx__snapshot s;
    struct map_walk *w;
    uint8_t digest[32];
    uint64_t epoch;
    if (vx__snapshot_pin(map, &s))
        abort();
    w = map_walk_snapshot(map, &s);
    vx__snapshot_release(map, &s);
    check_totals(map, w);
    check_bounds(map, w);
    if (vx_map_digest(map, digest, &epoch) != VX_OK)
        fault(w, "vx_map_digest failed");
    else if (epoch != map->epoch || memcmp(digest, w->digest, 32))
        fault(w, "vx_map_digest and the walk disagree");
    return w;
}

void map_walk_free(struct map_walk *w)
{
    for (int k = 0; w && k < VX__N_KINDS; k++)
        free(w->ids[k]);
    if (w) {
        free(w->leaves);
        free(w->tiles);
        free(w->words);
    }
    free(w);
}

/* Order of cells: key, word, cell. */
static int cell_order(const int32_t a[3], const int32_t b[3])
{
    for (int shift = 7; shift >= 3; shift -= 2) {
        for (int k = 0; k < 3; k++) {
            int32_t x = a[k] >> shift, y = b[k] >> shift;
            if (x != y)
                return x < y ? -1 : 1;
        }
    }
    return 0;
}

int map_walk_voxel(const struct map_walk *w, int32_t x, int32_t y, int32_t z, uint32_t *value)
{
    const int32_t at[3] = {x, y, z};
    uint32_t n = (uint32_t)(x & 7) << 6 | (uint32_t)(y & 7) << 3 | (uint32_t)(z & 7);
    for (uint32_t lo = 0, hi = w->n_leaves; lo < hi;) {
        uint32_t mid = (lo + hi) / 2;
        const struct walk_leaf *l = &w->leaves[mid];
        int c = cell_order(at, l->at);
        if (c == 0) {
            if (l->active[n >> 6] >> (n & 63) & 1) {
                *value = l->value[n];
                return VXK_ACTIVE;
            }
            return l->free[n >> 6] >> (n & 63) & 1 ? VXK_FREE : VXK_UNKNOWN;
        }
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    for (uint32_t lo = 0, hi = w->n_tiles; lo < hi;) {
        uint32_t mid = (lo + hi) / 2;
        int c = cell_order(at, w->tiles[mid]);
        if (c == 0)
            return VXK_FREE;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return VXK_UNKNOWN;
}

static void note_ids(const uint32_t *ids, uint32_t n, uint8_t *seen, uint32_t n_units, const char *who,
                     char fault_text[256])
{
    for (uint32_t i = 0; i < n; i++) {
        if (ids[i] >= n_units || seen[ids[i]]) {
            if (!fault_text[0])
                snprintf(fault_text, 256, "%s: page %u %s", who, ids[i],
                         ids[i] >= n_units ? "does not exist" : "is used twice");
            continue;
        }
        seen[ids[i]] = 1;
    }
}

/* What a cleared table still holds. */
static struct map_walk *walk_retired(struct vx_map *map, const struct vx__retired *r)
{
    struct vx__snapshot s = {.grid = vx__map_grid(map), .epoch = r->epoch - 1};
    s.grid.keys = r->keys;
    s.grid.heads = r->heads;
    s.grid.slot_mask = r->table_slots - 1;
    return map_walk_snapshot(map, &s);
}

void device_check(struct vx_device *d, struct vx_map *const *maps, uint32_t n_maps, char fault_text[256])
{
    struct map_walk **walk = get(calloc(n_maps + 1, sizeof *walk));
    struct vxk_queue *q;
    fault_text[0] = 0;
    if (d->dev->ops->queue_create(d->dev, 0, &q))
        abort();
    /* what other queues still do to the stacks comes first */
    if (d->stacks_by && d->dev->ops->event_wait(q, d->stacks_done))
        abort();
    for (uint32_t m = 0; m < n_maps; m++) {
        walk[m] = map_walk_newest(maps[m]);
        if (walk[m]->fault[0] && !fault_text[0])
            snprintf(fault_text, 256, "%s", walk[m]->fault);
    }
    for (int i = 0; i < VX__N_POOLS; i++) {
        const struct vx__page_pool *p = &d->pool[i];
        const int k = i < VX__N_KINDS ? i : VX__VALUE_PAGES;
        uint8_t *seen = get(calloc(p->n_units + 1u, 1));
        uint32_t *ids = get(malloc((p->n_units + 1u) * 4ull));
        read_device(q, ids, p->stack.base, p->n_free * 4ull);
        note_ids(ids, p->n_free, seen, p->n_units, "free stack", fault_text);
        for (uint32_t m = 0; m < n_maps; m++) {
            if (pool_of(d, maps[m], k) != p)
                continue;
            note_ids(walk[m]->ids[k], walk[m]->n_ids[k], seen, p->n_units, "map", fault_text);
            for (const struct vx__retired *r = maps[m]->retired; r; r = r->next) {
                if (r->whole) {
                    struct map_walk *w = walk_retired(maps[m], r);
                    note_ids(w->ids[k], w->n_ids[k], seen, p->n_units, "cleared", fault_text);
                    map_walk_free(w);
                    continue;
                }
                read_device(q, ids, r->ids[k].ptr, r->n[k] * 4ull);
                note_ids(ids, r->n[k], seen, p->n_units, "retired", fault_text);
            }
        }
        for (uint32_t id = 0; id < p->n_units; id++)
            if (!seen[id] && !fault_text[0])
                snprintf(fault_text, 256, "page %u of pool %d is lost", id, i);
        free(seen);
        free(ids);
    }
    for (uint32_t m = 0; m < n_maps; m++)
        map_walk_free(walk[m]);
    free(walk);
    d->dev->ops->queue_destroy(q);
}
