/*
 * workers.h - the threads that run element functions.
 *
 * Persistent threads take chunks of [0, n) from a shared counter.  The caller works too, so a job always
 * makes progress, also when all threads are busy with jobs of other callers; hence nothing can deadlock.
 */
#ifndef VXK_CPU_WORKERS_H
#define VXK_CPU_WORKERS_H

#include "../base/vx_err.h"

#include <stdint.h>

struct vxk_workers;

/* Work on elements begin .. end-1. */
typedef void vxk_work_fn(void *ctx, uint32_t begin, uint32_t end);

/*
 * n_threads >= 1 counts the caller, so 1 makes no thread.
 *
 * Errors: VX_E_NOMEM no memory, or the system gives no more threads.
 */
vx_err vxk_workers_create(int n_threads, struct vxk_workers **out);
/* No job may be running. */
void vxk_workers_destroy(struct vxk_workers *w);
int vxk_workers_threads(const struct vxk_workers *w);
/*
 * Runs fn over [0, n) in pieces of `chunk` and returns when all are done; what they wrote is seen by the
 * caller. An urgent job is helped before others.
 *
 * Thread: any number at once.
 */
void vxk_workers_run(struct vxk_workers *w, int urgent, vxk_work_fn *fn, void *ctx, uint32_t n,
                     uint32_t chunk);

#endif
