/*
 * home.h - the processor on which questions are received and answered, where one was chosen.
 *
 * Waking a thread on another processor, and one that sleeps at that, takes several times as long as handing
 * over to a thread of the same one.  With `query_cpu` the loop and ZeroMQ's thread of the query socket live
 * on one processor; with `query_awake_ms` that is kept from sleeping for so long after a question, by a
 * thread of the lowest class (SCHED_IDLE), to which anything else there comes first.
 *
 * Thread: the loop.
 */
#ifndef VXD_HOME_H
#define VXD_HOME_H

#include "base/vx_err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vxd_home {
    bool chosen;
    int cpu;
    uint64_t awake_ns;
    bool has_keeper;
    pthread_t keeper;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    atomic_ullong until_ns; /* it stays awake until then */
    atomic_bool asleep, stopping;
};

/*
 * cpu: VXD_ANY_CPU for none.
 * Errors: VX_E_INVALID the daemon may not run on that processor, or awake_ms without one; VX_E_NOMEM no
 * thread.
 */
vx_err vxd_home_open(struct vxd_home *home, uint64_t cpu, uint64_t awake_ms, struct vx_detail *detail);
void vxd_home_close(struct vxd_home *home);
/* Moves the calling thread there.  Threads that it makes later inherit that, but for workers (worker.h). */
void vxd_home_enter(const struct vxd_home *home);
/* A question was answered. */
void vxd_home_asked(struct vxd_home *home, uint64_t now_ns);

#endif
