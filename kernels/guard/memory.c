#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 256, FRESH = 0xa5, AROUND = 0x5a };

struct vxk_guard_region {
    char *map; /* with the two shut pages */
    uint64_t map_bytes;
    char *inner; /* what a window opens */
    uint64_t inner_bytes;
    char *user; /* what the caller may use; inside inner */
    uint64_t user_bytes;
    struct vxk_guard_region *prev, *next;
};

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t round_up(uint64_t x, uint64_t step)
{
    return (x + step - 1) / step * step;
}

static void set_access(char *at, uint64_t bytes, int access)
{
    if (bytes && mprotect(at, bytes, access) != 0) {
        perror("voxeld guard: mprotect");
        abort();
    }
}

void vxk_guard_memory_init(struct vxk_guard_memory *m)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->mutex, NULL);
}

/* Maps `bytes` (whole pages), shut, between two more pages. */
static struct vxk_guard_region *map_region(uint64_t bytes)
{
    uint64_t page = page_bytes();
    struct vxk_guard_region *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->map_bytes = bytes + 2 * page;
    r->map = mmap(NULL, r->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->map == MAP_FAILED) {
        free(r);
        return NULL;
    }
    r->inner = r->map + page;
    return r;
}

static void unmap_region(struct vxk_guard_region *r)
{
    if (!r)
        return;
    munmap(r->map, r->map_bytes);
    free(r);
}

/* The mutex is held. */
static void link_region(struct vxk_guard_memory *m, struct vxk_guard_region *r)
{
    r->next = m->regions;
    if (r->next)
        r->next->prev = r;
    m->regions = r;
}

static void unlink_region(struct vxk_guard_memory *m, struct vxk_guard_region *r)
{
    if (r->prev)
        r->prev->next = r->next;
    else
        m->regions = r->next;
    if (r->next)
        r->next->prev = r->prev;
}

/* Shuts again what was opened to write a pattern, unless a window is open.  The mutex is held. */
static void settle(struct vxk_guard_memory *m, char *at, uint64_t bytes)
{
    if (m->n_open == 0)
        set_access(at, bytes, PROT_NONE);
}

static void drop_quarantine(struct vxk_guard_memory *m)
{
    for (unsigned i = 0; i < VXK_GUARD_QUARANTINE; i++) {
        unmap_region(m->quarantine[i]);
        m->quarantine[i] = NULL;
    }
}

void vxk_guard_memory_fini(struct vxk_guard_memory *m)
{
    while (m->regions) {
        struct vxk_guard_region *r = m->regions;
        unlink_region(m, r);
        unmap_region(r);
    }
    drop_quarantine(m);
    pthread_mutex_destroy(&m->mutex);
}

void vxk_guard_window_open(struct vxk_guard_memory *m)
{
    pthread_mutex_lock(&m->mutex);
    if (m->n_open++ == 0)
        for (struct vxk_guard_region *r = m->regions; r; r = r->next)
            set_access(r->inner, r->inner_bytes, PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&m->mutex);
}

void vxk_guard_window_close(struct vxk_guard_memory *m)
{
    pthread_mutex_lock(&m->mutex);
    if (--m->n_open == 0)
        for (struct vxk_guard_region *r = m->regions; r; r = r->next)
            set_access(r->inner, r->inner_bytes, PROT_NONE);
    pthread_mutex_unlock(&m->mutex);
}

vx_err vxk_guard_alloc(struct vxk_guard_memory *m, uint64_t bytes, void **out)
{
    uint64_t body = round_up(bytes ? bytes : 1, ALIGN), inner_bytes = round_up(body, page_bytes());
    struct vxk_guard_region *r;
    *out = NULL;
    if (bytes > 1ull << 46)
        return VX_E_EXHAUSTED;
    r = map_region(inner_bytes);
    if (!r)
        return VX_E_EXHAUSTED;
    if (mprotect(r->inner, inner_bytes, PROT_READ | PROT_WRITE) != 0) {
        unmap_region(r);
        return VX_E_EXHAUSTED;
    }
    r->inner_bytes = inner_bytes;
    r->user = r->inner + inner_bytes - body;
    r->user_bytes = bytes;
    memset(r->inner, AROUND, inner_bytes);
    memset(r->user, FRESH, bytes);
    pthread_mutex_lock(&m->mutex);
    settle(m, r->inner, r->inner_bytes);
    link_region(m, r);
    pthread_mutex_unlock(&m->mutex);
    *out = r->user;
    return VX_OK;
}

/* The pattern around the block is whole. */
static int intact(const struct vxk_guard_region *r)
{
    const char *end = r->inner + r->inner_bytes;
    for (const char *p = r->inner; p < r->user; p++)
        if (*p != AROUND)
            return 0;
    for (const char *p = r->user + r->user_bytes; p < end; p++)
        if (*p != AROUND)
            return 0;
    return 1;
}

void vxk_guard_free(struct vxk_guard_memory *m, void *ptr)
{
    struct vxk_guard_region *r, **slot;
    if (!ptr)
        return;
    pthread_mutex_lock(&m->mutex);
    for (r = m->regions; r && r->user != ptr; r = r->next)
        continue;
    if (!r) {
        fprintf(stderr, "voxeld guard: %p is freed, but is no live block of this device\n", ptr);
        abort();
    }
    set_access(r->inner, r->inner_bytes, PROT_READ | PROT_WRITE);
    if (!intact(r)) {
        fprintf(stderr, "voxeld guard: something wrote around the block %p of %llu bytes\n", ptr,
                (unsigned long long)r->user_bytes);
        abort();
    }
    unlink_region(m, r);
    set_access(r->inner, r->inner_bytes, PROT_NONE);
    madvise(r->inner, r->inner_bytes, MADV_DONTNEED);
    slot = &m->quarantine[m->n_freed++ % VXK_GUARD_QUARANTINE];
    unmap_region(*slot);
    *slot = r;
    pthread_mutex_unlock(&m->mutex);
}

void vxk_guard_trim(struct vxk_guard_memory *m)
{
    pthread_mutex_lock(&m->mutex);
    drop_quarantine(m);
    pthread_mutex_unlock(&m->mutex);
}

vx_err vxk_guard_reserve(struct vxk_guard_memory *m, uint64_t bytes, struct vxk_range *out)
{
    struct vxk_guard_region *r;
    memset(out, 0, sizeof *out);
    if (bytes == 0)
        return VX_E_INVALID;
    if (bytes > 1ull << 46)
        return VX_E_EXHAUSTED;
    out->reserved_bytes = round_up(bytes, page_bytes());
    r = map_region(out->reserved_bytes);
    if (!r)
        return VX_E_EXHAUSTED;
    r->user = r->inner;
    pthread_mutex_lock(&m->mutex);
    link_region(m, r);
    pthread_mutex_unlock(&m->mutex);
    out->base = r->inner;
    out->impl = r;
    return VX_OK;
}

vx_err vxk_guard_commit(struct vxk_guard_memory *m, struct vxk_range *range, uint64_t bytes)
{
    struct vxk_guard_region *r = range->impl;
    uint64_t want = round_up(bytes, page_bytes()), had = range->committed_bytes;
    if (bytes > range->reserved_bytes)
        return VX_E_EXHAUSTED;
    if (want <= had)
        return VX_OK;
    pthread_mutex_lock(&m->mutex);
    if (mprotect(r->inner + had, want - had, PROT_READ | PROT_WRITE) != 0) {
        pthread_mutex_unlock(&m->mutex);
        return VX_E_EXHAUSTED;
    }
    memset(r->inner + had, FRESH, want - had);
    settle(m, r->inner + had, want - had);
    r->inner_bytes = r->user_bytes = want;
    pthread_mutex_unlock(&m->mutex);
    range->committed_bytes = want;
    return VX_OK;
}

void vxk_guard_release(struct vxk_guard_memory *m, struct vxk_range *range)
{
    struct vxk_guard_region *r = range->impl;
    if (r) {
        pthread_mutex_lock(&m->mutex);
        unlink_region(m, r);
        pthread_mutex_unlock(&m->mutex);
        unmap_region(r);
    }
    memset(range, 0, sizeof *range);
}

int vxk_guard_is_device(struct vxk_guard_memory *m, const void *ptr, uint64_t bytes)
{
    uintptr_t at = (uintptr_t)ptr;
    int found = 0;
    pthread_mutex_lock(&m->mutex);
    for (struct vxk_guard_region *r = m->regions; r && !found; r = r->next) {
        uintptr_t begin = (uintptr_t)r->user;
        found = at >= begin && at - begin <= r->user_bytes && bytes <= r->user_bytes - (at - begin);
    }
    pthread_mutex_unlock(&m->mutex);
    return found;
}

int vxk_guard_touches_device(struct vxk_guard_memory *m, const void *ptr, uint64_t bytes)
{
    uintptr_t at = (uintptr_t)ptr;
    int found = 0;
    pthread_mutex_lock(&m->mutex);
    for (struct vxk_guard_region *r = m->regions; r && !found; r = r->next) {
        uintptr_t begin = (uintptr_t)r->map;
        found = at < begin + r->map_bytes && at + bytes > begin;
    }
    pthread_mutex_unlock(&m->mutex);
    return found;
}
