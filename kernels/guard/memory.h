/*
 * memory.h - the guard backend's device memory: shut unless a window is open.
 *
 * Every block and range stands between two pages that are never open.  A block ends as close to the page
 * behind it as its 256-byte alignment lets it; what is left before and behind it holds a pattern that is
 * checked when it is freed. New memory is filled with a pattern, so that code which counts on zeros fails.
 * Freed blocks stay shut for a while.
 *
 * Thread: any.
 */
#ifndef VXK_GUARD_MEMORY_H
#define VXK_GUARD_MEMORY_H

#include "../vxk.h"

#include <pthread.h>

enum { VXK_GUARD_QUARANTINE = 64 };

struct vxk_guard_region; /* memory.c */

struct vxk_guard_memory {
    pthread_mutex_t mutex;
    int n_open; /* windows */
    struct vxk_guard_region *regions;
    struct vxk_guard_region *quarantine[VXK_GUARD_QUARANTINE]; /* ring of freed blocks */
    unsigned n_freed;
};

void vxk_guard_memory_init(struct vxk_guard_memory *m);
void vxk_guard_memory_fini(struct vxk_guard_memory *m);

/* While any window is open, all device memory can be touched. */
void vxk_guard_window_open(struct vxk_guard_memory *m);
void vxk_guard_window_close(struct vxk_guard_memory *m);

vx_err vxk_guard_alloc(struct vxk_guard_memory *m, uint64_t bytes, void **out);
/* Ends the program with a message when something was written around the block, or when ptr is no live block:
 * this is a defect, and finding it is what this backend is for. */
void vxk_guard_free(struct vxk_guard_memory *m, void *ptr);
void vxk_guard_trim(struct vxk_guard_memory *m);

vx_err vxk_guard_reserve(struct vxk_guard_memory *m, uint64_t bytes, struct vxk_range *out);
vx_err vxk_guard_commit(struct vxk_guard_memory *m, struct vxk_range *range, uint64_t bytes);
void vxk_guard_release(struct vxk_guard_memory *m, struct vxk_range *range);

/* True when all of [ptr, ptr + bytes) is one block's or range's usable memory. */
int vxk_guard_is_device(struct vxk_guard_memory *m, const void *ptr, uint64_t bytes);
/* True when some of [ptr, ptr + bytes) is device memory. */
int vxk_guard_touches_device(struct vxk_guard_memory *m, const void *ptr, uint64_t bytes);

#endif
