#include "blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, bytes)   ((void)(ptr), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, bytes) ((void)(ptr), (void)(bytes))
#endif

enum { LARGER_CLASSES = 2 }; /* unless asked for more */
static const uint64_t MAX_BYTES = 1ull << 48;

struct vxk_block {
    void *ptr;
    uint64_t bytes; /* rounded to its class */
    struct vxk_block *next;
};

/* Rounds up to an eighth of an octave. */
static uint64_t round_size(uint64_t bytes)
{
    uint64_t step;
    if (bytes < VXK_BLOCK_ALIGN)
        bytes = VXK_BLOCK_ALIGN;
    step = 1ull << (63 - __builtin_clzll(bytes)) >> 3;
    if (step < VXK_BLOCK_ALIGN)
        step = VXK_BLOCK_ALIGN;
    return (bytes + step - 1) / step * step;
}

static unsigned size_class(uint64_t rounded)
{
    unsigned octave = 63u - (unsigned)__builtin_clzll(rounded);
    return octave * 8 + (unsigned)(rounded >> (octave - 3) & 7);
}

static unsigned head_of(const void *ptr)
{
    return (unsigned)(((uint64_t)(uintptr_t)ptr >> 8) * 0x9e3779b97f4a7c15ull >> 54) % VXK_BLOCK_HEADS;
}

void vxk_blocks_init(struct vxk_blocks *b, void *(*raw_alloc)(void *, uint64_t),
                     void (*raw_free)(void *, void *, uint64_t), void *ctx, int host)
{
    memset(b, 0, sizeof *b);
    b->raw_alloc = raw_alloc;
    b->raw_free = raw_free;
    b->ctx = ctx;
    b->host = host;
    b->larger = LARGER_CLASSES;
    pthread_mutex_init(&b->mutex, NULL);
}

static void drop_list(struct vxk_blocks *b, struct vxk_block *block)
{
    while (block) {
        struct vxk_block *next = block->next;
        if (b->host)
            ASAN_UNPOISON_MEMORY_REGION(block->ptr, block->bytes);
        b->raw_free(b->ctx, block->ptr, block->bytes);
        free(block);
        block = next;
    }
}

/* The mutex is held. */
static void trim_locked(struct vxk_blocks *b)
{
    for (unsigned c = 0; c < VXK_BLOCK_SIZES; c++) {
        drop_list(b, b->idle[c]);
        b->idle[c] = NULL;
    }
    b->idle_bytes = 0;
}

void vxk_blocks_trim(struct vxk_blocks *b)
{
    pthread_mutex_lock(&b->mutex);
    trim_locked(b);
    pthread_mutex_unlock(&b->mutex);
}

uint64_t vxk_blocks_bytes(struct vxk_blocks *b)
{
    pthread_mutex_lock(&b->mutex);
    uint64_t bytes = b->live_bytes + b->idle_bytes;
    pthread_mutex_unlock(&b->mutex);
    return bytes;
}

uint64_t vxk_blocks_n_raw(struct vxk_blocks *b)
{
    pthread_mutex_lock(&b->mutex);
    uint64_t n = b->n_raw;
    pthread_mutex_unlock(&b->mutex);
    return n;
}

void vxk_blocks_fini(struct vxk_blocks *b)
{
    trim_locked(b);
    for (unsigned h = 0; h < VXK_BLOCK_HEADS; h++)
        drop_list(b, b->live[h]);
    pthread_mutex_destroy(&b->mutex);
}

/* An idle block of this class or of one slightly above, or NULL.  The mutex is held. */
static struct vxk_block *take_idle(struct vxk_blocks *b, unsigned c)
{
    for (unsigned end = c + b->larger; c <= end && c < VXK_BLOCK_SIZES; c++) {
        struct vxk_block *block = b->idle[c];
        if (block) {
            b->idle[c] = block->next;
            b->idle_bytes -= block->bytes;
            return block;
        }
    }
    return NULL;
}

/* A fresh block from the backend, or NULL.  The mutex is held. */
static struct vxk_block *make_block(struct vxk_blocks *b, uint64_t rounded)
{
    struct vxk_block *block = (struct vxk_block *)malloc(sizeof *block);
    if (!block)
        return NULL;
    block->bytes = rounded;
    b->n_raw++;
    block->ptr = b->raw_alloc(b->ctx, rounded);
    if (!block->ptr) {
        trim_locked(b);
        block->ptr = b->raw_alloc(b->ctx, rounded);
    }
    if (!block->ptr) {
        free(block);
        return NULL;
    }
    return block;
}

void *vxk_blocks_take(struct vxk_blocks *b, uint64_t bytes)
{
    uint64_t rounded;
    struct vxk_block *block;
    unsigned head;
    if (bytes > MAX_BYTES)
        return NULL;
    rounded = round_size(bytes);
    pthread_mutex_lock(&b->mutex);
    block = take_idle(b, size_class(rounded));
    if (!block)
        block = make_block(b, rounded);
    if (!block) {
        pthread_mutex_unlock(&b->mutex);
        return NULL;
    }
    head = head_of(block->ptr);
    block->next = b->live[head];
    b->live[head] = block;
    b->live_bytes += block->bytes;
    pthread_mutex_unlock(&b->mutex);
    if (b->host) {
        ASAN_UNPOISON_MEMORY_REGION(block->ptr, bytes);
        ASAN_POISON_MEMORY_REGION((char *)block->ptr + bytes, block->bytes - bytes);
    }
    return block->ptr;
}

void vxk_blocks_give(struct vxk_blocks *b, void *ptr)
{
    struct vxk_block **at, *block;
    unsigned c;
    if (!ptr)
        return;
    pthread_mutex_lock(&b->mutex);
    at = &b->live[head_of(ptr)];
    while (*at && (*at)->ptr != ptr)
        at = &(*at)->next;
    block = *at;
    assert(block && "freed twice, or not a block of this device");
    *at = block->next;
    c = size_class(block->bytes);
    block->next = b->idle[c];
    b->idle[c] = block;
    b->live_bytes -= block->bytes;
    b->idle_bytes += block->bytes;
    if (b->host)
        ASAN_POISON_MEMORY_REGION(block->ptr, block->bytes);
    pthread_mutex_unlock(&b->mutex);
}
