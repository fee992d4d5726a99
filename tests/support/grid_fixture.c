/* grid_fixture.c - builds chunks, words, leaf records, pages and the hash table of a map from a list of
 * voxels. */
#include "grid_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell {
    uint64_t key;
    uint32_t place; /* word << 6 | cell */
    uint8_t kind[512];
    uint32_t value[512];
};

/* A word as it was last published: which content, and since when. */
struct word_state {
    uint64_t key;
    uint32_t word, changed_epoch;
    uint64_t hash;
};

struct block {
    void *ptr;
    uint64_t bytes;
    int hold;
};

struct vx_map {
    struct vx_map_params params;
    uint8_t uuid[16];
    struct vxk_dev *dev;
    struct vxk_grid grid;
    uint64_t epoch, dated; /* dated: grid_fixture_date, 0 = not */
    uint32_t n_chunks, n_records;
    uint64_t n_active;
    uint32_t *sorted; /* versions in key order */
    struct block *blocks;
    uint32_t n_blocks, max_blocks;
    uint64_t cap, used, held, peak;
    struct vx__reader_state reader;
    pthread_mutex_t lock, reader_lock;
};

struct grid_fixture {
    struct vx_map map;
    struct cell *cells;
    uint32_t n_cells, max_cells;
    uint32_t *table; /* [slots] cell + 1 */
    uint32_t slots;
    struct word_state *words;
    uint32_t n_words;
};

static void *need(void *p)
{
    if (!p) {
        fprintf(stderr, "grid fixture: out of memory\n");
        abort();
    }
    return p;
}

static void must(vx_err err, const char *what)
{
    if (err != VX_OK) {
        fprintf(stderr, "grid fixture: %s: %s\n", what, vx_err_name(err));
        abort();
    }
}

uint64_t grid_fixture_random(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15ull);
    return vxk_mix64(x);
}

double grid_fixture_uniform(uint64_t *state, double from, double to)
{
    return from + (to - from) * ((double)(grid_fixture_random(state) >> 11) / 9007199254740992.0);
}

/* ------------------------------------------------------------------ host side */

static void locate(int32_t x, int32_t y, int32_t z, uint64_t *key, uint32_t *place, uint32_t *n)
{
    *key = vxk_key(x >> 7, y >> 7, z >> 7);
    *place = vxk_word_of((uint32_t)x & 127, (uint32_t)y & 127, (uint32_t)z & 127) << 6 |
             vxk_cell_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
    *n = vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z);
}

static uint32_t slot_of(const struct grid_fixture *f, uint64_t key, uint32_t place)
{
    uint32_t i = (uint32_t)vxk_mix64(key + place) & (f->slots - 1);

    while (f->table[i] && (f->cells[f->table[i] - 1].key != key || f->cells[f->table[i] - 1].place != place))
        i = (i + 1) & (f->slots - 1);
    return i;
}

static void rehash(struct grid_fixture *f, uint32_t slots)
{
    free(f->table);
    f->slots = slots;
    f->table = need(calloc(slots, sizeof *f->table));
    for (uint32_t i = 0; i < f->n_cells; i++)
        f->table[slot_of(f, f->cells[i].key, f->cells[i].place)] = i + 1;
}

void grid_fixture_set(struct grid_fixture *f, int32_t x, int32_t y, int32_t z, int kind, uint32_t value)
{
    uint64_t key;
    uint32_t place, n, slot;

    locate(x, y, z, &key, &place, &n);
    if (2 * (f->n_cells + 1) > f->slots)
        rehash(f, f->slots * 2);
    slot = slot_of(f, key, place);
    if (!f->table[slot]) {
        if (f->n_cells == f->max_cells) {
            f->max_cells = f->max_cells ? 2 * f->max_cells : 64;
            f->cells = need(realloc(f->cells, f->max_cells * sizeof *f->cells));
        }
        memset(&f->cells[f->n_cells], 0, sizeof *f->cells);
        f->cells[f->n_cells].key = key;
        f->cells[f->n_cells].place = place;
        f->table[slot] = ++f->n_cells;
    }
    f->cells[f->table[slot] - 1].kind[n] = (uint8_t)kind;
    f->cells[f->table[slot] - 1].value[n] = kind == VXK_ACTIVE ? value : 0;
}

int grid_fixture_get(const struct grid_fixture *f, int32_t x, int32_t y, int32_t z, uint32_t *value)
{
    uint64_t key;
    uint32_t place, n, i;

    *value = 0;
    if (x < -(1 << 27) || x >= 1 << 27 || y < -(1 << 27) || y >= 1 << 27 || z < -(1 << 27) || z >= 1 << 27)
        return VXK_UNKNOWN;
    locate(x, y, z, &key, &place, &n);
    i = f->table[slot_of(f, key, place)];
    if (!i)
        return VXK_UNKNOWN;
    *value = f->cells[i - 1].value[n];
    return f->cells[i - 1].kind[n];
}

void grid_fixture_clear(struct grid_fixture *f)
{
    f->map.dated = 0;
    f->n_cells = 0;
    memset(f->table, 0, f->slots * sizeof *f->table);
}

static void cell_origin(const struct cell *c, int32_t o[3])
{
    int32_t kx, ky, kz;
    uint32_t x, y, z;

    vxk_key_xyz(c->key, &kx, &ky, &kz);
    vxk_cell_base(c->place >> 6, c->place & 63, &x, &y, &z);
    o[0] = kx * 128 + (int32_t)x;
    o[1] = ky * 128 + (int32_t)y;
    o[2] = kz * 128 + (int32_t)z;
}

void grid_fixture_each(const struct grid_fixture *f,
                       void (*visit)(void *context, int32_t x, int32_t y, int32_t z, int kind,
                                     uint32_t value),
                       void *context)
{
    for (uint32_t i = 0; i < f->n_cells; i++) {
        int32_t o[3];
        cell_origin(&f->cells[i], o);
        for (int32_t n = 0; n < 512; n++)
            if (f->cells[i].kind[n] != VXK_UNKNOWN)
                visit(context, o[0] + (n >> 6), o[1] + (n >> 3 & 7), o[2] + (n & 7), f->cells[i].kind[n],
                      f->cells[i].value[n]);
    }
}

/* ------------------------------------------------------------------ device side */

static int by_place(const void *a, const void *b)
{
    const struct cell *p = a, *q = b;

    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    return p->place < q->place ? -1 : p->place > q->place;
}

/* Host copies of the device's arrays while they are made.  Page numbers go backwards, so that nothing can
 * rely on neighbours in the map being neighbours in memory. */
struct image {
    struct vxk_chunk *chunks;
    struct vxk_leaf *leaves;
    uint32_t *values;
    uint32_t leaf_page, value_page; /* the next is one less */
};

static void put_leaf(struct image *m, struct vxk_word *w, uint32_t rank, const struct cell *c)
{
    struct vxk_leaf *l;
    uint32_t n = 0, at = w->n_active;

    if ((rank & 7) == 0)
        w->page[rank >> 3] = --m->leaf_page;
    l = &m->leaves[w->page[rank >> 3] * 8 + (rank & 7)];
    memset(l, 0, sizeof *l);
    l->page[0] = l->page[1] = l->page[2] = VXK_NONE;
    l->first = (uint16_t)(at & 255);
    if (at & 255)
        l->page[0] = m->value_page; /* the page that the leaf before filled in part */
    for (int i = 0; i < 512; i++) {
        if (i && (i & 63) == 0)
            l->prefix |= (uint64_t)n << (9 * ((i >> 6) - 1));
        if (c->kind[i] == VXK_FREE)
            l->free[i >> 6] |= 1ull << (i & 63);
        if (c->kind[i] != VXK_ACTIVE)
            continue;
        l->active[i >> 6] |= 1ull << (i & 63);
        if (((at + n) & 255) == 0)
            l->page[((at & 255) + n) >> 8] = --m->value_page;
        m->values[(uint64_t)m->value_page * 256 + ((at + n) & 255)] = c->value[i];
        n++;
    }
    l->n_active = (uint16_t)n;
    w->n_active += n;
}

static int count_kind(const struct cell *c, int kind)
{
    int n = 0;

    for (int i = 0; i < 512; i++)
        n += c->kind[i] == kind;
    return n;
}

/* Cells of one chunk, in place order. */
static void put_chunk(struct vx_map *map, struct image *m, struct vxk_chunk *chunk, const struct cell *cells,
                      uint32_t n)
{
    uint32_t rank = 0, word = 64;

    memset(chunk, 0, sizeof *chunk);
    chunk->key = cells[0].key;
    chunk->epoch = (uint32_t)map->epoch;
    chunk->prev = VXK_NONE;
    for (uint32_t w = 0; w < 64; w++)
        memset(chunk->word[w].page, 0xff, sizeof chunk->word[w].page);
    for (uint32_t i = 0; i < n; i++) {
        struct vxk_word *w = &chunk->word[cells[i].place >> 6];
        int active = count_kind(&cells[i], VXK_ACTIVE), seen = count_kind(&cells[i], VXK_FREE);
        if (cells[i].place >> 6 != word)
            rank = 0;
        word = cells[i].place >> 6;
        if (seen == 512) {
            w->tile |= 1ull << (cells[i].place & 63);
            chunk->n_tile++;
        } else if (active + seen) {
            w->leaf |= 1ull << (cells[i].place & 63);
            put_leaf(m, w, rank++, &cells[i]);
            chunk->n_leaf++;
            chunk->n_active += (uint32_t)active;
        }
    }
    map->n_records += chunk->n_leaf;
    map->n_active += chunk->n_active;
}

static uint64_t cell_hash(const struct cell *c)
{
    uint64_t h = 0;

    for (uint32_t i = 0; i < 512; i++)
        if (c->kind[i] != VXK_UNKNOWN)
            h += vxk_mix64((uint64_t)c->value[i] << 32 | c->kind[i] << 16 | i);
    return h ? vxk_mix64(h + c->place) : 0;
}
static int by_word(const void *a, const void *b)
{
    const struct word_state *p = a, *q = b;

    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    return p->word < q->word ? -1 : p->word > q->word;
}
/* Sets changed_epoch of every word: when its content was last another. */
static void date_words(struct grid_fixture *f, struct vxk_chunk *chunks, uint32_t n)
{
    struct word_state *now = need(calloc(n * 64ull + 1, sizeof *now));
    uint32_t n_now = 0, cell = 0;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t w = 0; w < 64; w++) {
            struct word_state *s = &now[n_now++], *old;
            *s = (struct word_state){.key = chunks[i].key, .word = w};
            for (; cell < f->n_cells && f->cells[cell].key == s->key && f->cells[cell].place >> 6 == w;
                 cell++)
                s->hash += cell_hash(&f->cells[cell]);
            old = f->n_words ? bsearch(s, f->words, f->n_words, sizeof *s, by_word) : NULL;
            s->changed_epoch = old && old->hash == s->hash ? old->changed_epoch
                               : old || s->hash            ? (uint32_t)f->map.epoch
                                                           : 0;
            /* every other time as if the chunk had gone and come back: nothing dates what it no longer holds
             */
            chunks[i].word[w].changed_epoch = !s->hash && f->map.epoch % 2 ? 0 : s->changed_epoch;
        }
    free(f->words);
    f->words = now;
    f->n_words = n_now;
}

static const void *put(struct vx_map *map, const void *src, uint64_t bytes)
{
    void *dst;

    must(map->dev->ops->alloc(map->dev, bytes ? bytes : 1, &dst), "device memory");
    must(map->dev->ops->upload(map->reader.queue, dst, src, bytes), "upload");
    must(map->dev->ops->wait(map->reader.queue), "upload");
    return dst;
}

static void drop_grid(struct vx_map *map)
{
    map->dev->ops->free(map->dev, (void *)map->grid.keys);
    map->dev->ops->free(map->dev, (void *)map->grid.heads);
    map->dev->ops->free(map->dev, (void *)map->grid.chunks);
    map->dev->ops->free(map->dev, (void *)map->grid.leaves);
    map->dev->ops->free(map->dev, (void *)map->grid.values);
}

void grid_fixture_publish(struct grid_fixture *f)
{
    struct vx_map *map = &f->map;
    uint32_t max_leaf_pages = f->n_cells + 1, max_value_pages = 3 * f->n_cells + 1, slots = 64, n = 0;
    struct image m = {.leaf_page = max_leaf_pages, .value_page = max_value_pages};
    uint64_t *keys;
    uint32_t *heads;

    if (map->epoch)
        drop_grid(map);
    map->epoch++;
    map->n_records = 0;
    map->n_active = 0;
    if (f->n_cells)
        qsort(f->cells, f->n_cells, sizeof *f->cells, by_place);
    rehash(f, f->slots);
    m.chunks = need(calloc(f->n_cells + 1, sizeof *m.chunks));
    m.leaves = need(calloc(max_leaf_pages * 8ull, sizeof *m.leaves));
    m.values = need(calloc(max_value_pages * 256ull, sizeof *m.values));
    for (uint32_t i = 0, end; i < f->n_cells; i = end, n++) {
        for (end = i; end < f->n_cells && f->cells[end].key == f->cells[i].key; end++)
            ;
        put_chunk(map, &m, &m.chunks[n], &f->cells[i], end - i);
    }
    date_words(f, m.chunks, n);
    map->n_chunks = n;
    while (slots < 2 * n)
        slots *= 2;
    keys = need(calloc(slots, sizeof *keys));
    heads = need(calloc(slots, sizeof *heads));
    free(map->sorted);
    map->sorted = need(calloc(n + 1, sizeof *map->sorted));
    map->n_chunks = 0;
    for (uint32_t i = 0; i < n; i++) {
        int inserted;
        heads[vxk_hash_insert(keys, slots - 1, m.chunks[i].key, &inserted)] = i;
        if (m.chunks[i].n_leaf + m.chunks[i].n_tile)
            map->sorted[map->n_chunks++] = i;
    }
    map->grid.keys = put(map, keys, slots * sizeof *keys);
    map->grid.heads = put(map, heads, slots * sizeof *heads);
    map->grid.slot_mask = slots - 1;
    map->grid.epoch = (uint32_t)map->epoch;
    map->grid.chunks = put(map, m.chunks, n * sizeof *m.chunks);
    map->grid.leaves = put(map, m.leaves, max_leaf_pages * 8ull * sizeof *m.leaves);
    map->grid.values = put(map, m.values, max_value_pages * 256ull * sizeof *m.values);
    free(keys);
    free(heads);
    free(m.chunks);
    free(m.leaves);
    free(m.values);
}

void grid_fixture_date(struct grid_fixture *f)
{
    f->map.dated = f->map.epoch;
}

enum vxk_backend grid_fixture_backend(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu";
    enum vxk_backend backend = strcmp(name, "cuda") == 0    ? VXK_CUDA
                               : strcmp(name, "guard") == 0 ? VXK_GUARD
                                                            : VXK_CPU;
    struct vx_detail detail = {.text = ""};
    struct vxk_dev *dev;
    vx_err err = vxk_open(backend, 0, 1, &dev, &detail);

    if (err == VX_E_UNAVAILABLE || err == VX_E_UNIMPLEMENTED) {
        printf("skipped: %s: %s\n", vx_err_name(err), detail.text);
        exit(77);
    }
    must(err, "device");
    dev->ops->close(dev);
    return backend;
}

struct grid_fixture *grid_fixture_create(enum vxk_backend backend, int n_threads,
                                         const struct vx_map_params *params, uint64_t cap_bytes)
{
    struct grid_fixture *f = need(calloc(1, sizeof *f));
    struct vx_detail detail = {.text = ""};
    vx_err err = vxk_open(backend, 0, n_threads, &f->map.dev, &detail);

    if (err != VX_OK)
        fprintf(stderr, "grid fixture: %s\n", detail.text);
    must(err, "device");
    f->map.params = *params;
    f->map.cap = cap_bytes ? cap_bytes : UINT64_MAX;
    pthread_mutex_init(&f->map.lock, NULL);
    pthread_mutex_init(&f->map.reader_lock, NULL);
    must(f->map.dev->ops->queue_create(f->map.dev, 1, &f->map.reader.queue), "queue");
    memcpy(f->map.uuid, "grid fixture map", 16);
    rehash(f, 64);
    return f;
}

unsigned grid_fixture_destroy(struct grid_fixture *f)
{
    struct vx_map *map = &f->map;
    unsigned left;

    if (map->reader.room)
        map->reader.room_destroy(map, map->reader.room);
    if (map->reader.esdf)
        map->reader.esdf_destroy(map, map->reader.esdf);
    left = map->n_blocks;
    if (map->epoch)
        drop_grid(map);
    map->dev->ops->queue_destroy(map->reader.queue);
    map->dev->ops->close(map->dev);
    pthread_mutex_destroy(&map->lock);
    pthread_mutex_destroy(&map->reader_lock);
    free(map->blocks);
    free(map->sorted);
    free(f->cells);
    free(f->words);
    free(f->table);
    free(f);
    return left;
}

struct vx_map *grid_fixture_map(struct grid_fixture *f)
{
    return &f->map;
}
uint64_t grid_fixture_held(const struct grid_fixture *f)
{
    return f->map.held;
}
uint64_t grid_fixture_peak(const struct grid_fixture *f)
{
    return f->map.peak;
}
void grid_fixture_set_cap(struct grid_fixture *f, uint64_t cap_bytes)
{
    f->map.cap = cap_bytes ? cap_bytes : UINT64_MAX;
}

/* ------------------------------------------------------------------ core/src/snapshot.h */

vx_err vx__snapshot_pin(struct vx_map *map, struct vx__snapshot *out)
{
    memset(out, 0, sizeof *out);
    out->grid = map->grid;
    out->epoch = map->epoch;
    out->buried_epoch = vx__map_buried_epoch(map);
    out->newest_stamp_ns = (int64_t)map->epoch * 1000;
    out->n_leaves = map->n_records;
    out->n_voxels = map->n_active;
    out->n_chunks = map->n_chunks;
    return VX_OK;
}

/* Nothing here dates what is gone. */
uint64_t vx__map_buried_epoch(struct vx_map *map)
{
    return map->dated ? map->dated : map->epoch;
}

void vx__snapshot_release(struct vx_map *map, struct vx__snapshot *snapshot)
{
    (void)map;
    (void)snapshot;
}

static vx_err give(struct vx_map *map, uint64_t bytes, int hold, void **out, struct vx_detail *detail)
{
    vx_err err = VX_OK;

    *out = NULL;
    pthread_mutex_lock(&map->lock);
    if (map->used + bytes > map->cap)
        err = vx_fail(detail, VX_E_EXHAUSTED, "", "%llu bytes do not fit under the cap",
                      (unsigned long long)bytes);
    if (err == VX_OK)
        err = map->dev->ops->alloc(map->dev, bytes, out);
    if (err == VX_OK) {
        if (map->n_blocks == map->max_blocks) {
            map->max_blocks = map->max_blocks ? 2 * map->max_blocks : 64;
            map->blocks = need(realloc(map->blocks, map->max_blocks * sizeof *map->blocks));
        }
        map->blocks[map->n_blocks++] = (struct block){*out, bytes, hold};
        map->used += bytes;
        map->held += hold ? bytes : 0;
        map->peak = map->used > map->peak ? map->used : map->peak;
    }
    pthread_mutex_unlock(&map->lock);
    return err;
}

static void take(struct vx_map *map, void *ptr)
{
    if (!ptr)
        return;
    pthread_mutex_lock(&map->lock);
    for (uint32_t i = 0; i < map->n_blocks; i++)
        if (map->blocks[i].ptr == ptr) {
            map->used -= map->blocks[i].bytes;
            map->held -= map->blocks[i].hold ? map->blocks[i].bytes : 0;
            map->blocks[i] = map->blocks[--map->n_blocks];
            map->dev->ops->free(map->dev, ptr);
            pthread_mutex_unlock(&map->lock);
            return;
        }
    fprintf(stderr, "grid fixture: a block was given back that nobody holds\n");
    abort();
}

vx_err vx__scratch_alloc(struct vx_map *map, uint64_t bytes, void **out, struct vx_detail *detail)
{
    return give(map, bytes, 0, out, detail);
}
void vx__scratch_free(struct vx_map *map, void *ptr)
{
    take(map, ptr);
}
vx_err vx__hold_alloc(struct vx_map *map, uint64_t bytes, void **out, struct vx_detail *detail)
{
    return give(map, bytes, 1, out, detail);
}
void vx__hold_free(struct vx_map *map, void *ptr)
{
    take(map, ptr);
}

vx_err vx__snapshot_chunks(struct vx_map *map, const struct vx__snapshot *s, struct vxk_queue *q,
                           uint32_t **versions, uint32_t *n)
{
    void *out;

    (void)s;
    *versions = NULL;
    *n = map->n_chunks;
    VX_TRY_RET(vx__scratch_alloc(map, map->n_chunks * sizeof **versions + 1, &out, NULL));
    *versions = out;
    VX_TRY_RET(q->dev->ops->upload(q, out, map->sorted, map->n_chunks * sizeof **versions));
    return q->dev->ops->wait(q);
}

uint64_t vx__scratch_budget(const struct vx_map *map)
{
    (void)map;
    return 128 << 20;
}

struct vxk_dev *vx__map_dev(struct vx_map *map)
{
    return map->dev;
}
const struct vx_map_params *vx__map_params(struct vx_map *map)
{
    return &map->params;
}
const uint8_t *vx__map_uuid(struct vx_map *map)
{
    return map->uuid;
}

vx_err vx__reader_lock(struct vx_map *map, struct vx__reader_state **out)
{
    pthread_mutex_lock(&map->reader_lock);
    *out = &map->reader;
    return VX_OK;
}
void vx__reader_unlock(struct vx_map *map)
{
    pthread_mutex_unlock(&map->reader_lock);
}

/* Nobody asks beside the reader here. */
void vx__field_lock(struct vx_map *map)
{
    (void)map;
}
void vx__field_unlock(struct vx_map *map)
{
    (void)map;
}
bool vx__now_lock(struct vx_map *map, struct vx__reader_state **now, void **field)
{
    (void)map;
    (void)now;
    (void)field;
    return false;
}
void vx__now_unlock(struct vx_map *map)
{
    (void)map;
}
