/*
 * worker.h - a thread that runs jobs in order, and the way back to the loop.
 *
 * Thread: everything but vxd_job.run is called on the loop thread.
 */
#ifndef VXD_WORKER_H
#define VXD_WORKER_H

#include "base/vx_err.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <uv.h>

/* Embedded in what the job is about.  Belongs to the worker from push until `done` is called. */
struct vxd_job {
    struct vxd_job *next;
    void (*run)(struct vxd_job *job);  /* on the worker's thread; may block */
    void (*done)(struct vxd_job *job); /* on the loop thread afterwards */
};

struct vxd_job_list {
    struct vxd_job *first, **end;
};

/* Finished jobs of all workers, on their way to the loop. */
struct vxd_done {
    pthread_mutex_t mutex;
    struct vxd_job_list list;
    uv_async_t async;
    cpu_set_t cpus; /* of the workers' threads: those of the thread that made this */
};

/* Errors: VX_E_NOMEM. */
vx_err vxd_done_init(struct vxd_done *done, uv_loop_t *loop);
/* No worker may run any more.  The handle closes on the loop's next turn. */
void vxd_done_fini(struct vxd_done *done);

struct vxd_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct vxd_job_list list;
    struct vxd_done *done;
    bool stopping;
};

/* name: at most 15 bytes, shown by debuggers.  Errors: VX_E_NOMEM no thread. */
vx_err vxd_worker_start(struct vxd_worker *worker, struct vxd_done *done, const char *name);
/* Ends the thread once its queue is empty and waits for that; call it when nothing is queued, so it doesn't
 * block. */
void vxd_worker_stop(struct vxd_worker *worker);

void vxd_worker_push(struct vxd_worker *worker, struct vxd_job *job);
/* Takes a job back; false when it runs or has run already (its `done` will come). */
bool vxd_worker_remove(struct vxd_worker *worker, struct vxd_job *job);

#endif
