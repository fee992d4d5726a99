#include "workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* How often an idle thread looks before it sleeps: launches follow one another closely, and waking costs
 * more. */
enum { SPINS = 1000 };

struct job {
    vxk_work_fn *fn;
    void *ctx;
    uint32_t n, chunk;
    atomic_uint_fast64_t next; /* first element that nobody took */
    atomic_int helpers;        /* threads inside; changed under the mutex */
    struct job *prev_job, *next_job;
};

struct vxk_workers {
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    struct job jobs;    /* ring head */
    atomic_uint posted; /* counts jobs; changed under the mutex */
    int sleeping;
    int stop;
    int n_threads;      /* with the caller */
    pthread_t thread[]; /* n_threads - 1 */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void work(struct job *j)
{
    for (;;) {
        uint64_t begin = atomic_fetch_add_explicit(&j->next, j->chunk, memory_order_relaxed);
        uint64_t end = begin + j->chunk;
        if (begin >= j->n)
            return;
        j->fn(j->ctx, (uint32_t)begin, (uint32_t)(end < j->n ? end : j->n));
    }
}

/* The first job that has elements left, or NULL.  The mutex is held. */
static struct job *pick(struct vxk_workers *w)
{
    for (struct job *j = w->jobs.next_job; j != &w->jobs; j = j->next_job)
        if (atomic_load_explicit(&j->next, memory_order_relaxed) < j->n)
            return j;
    return NULL;
}

static void *worker_main(void *arg)
{
    struct vxk_workers *w = arg;
    pthread_mutex_lock(&w->mutex);
    while (!w->stop) {
        struct job *j = pick(w);
        unsigned seen = atomic_load_explicit(&w->posted, memory_order_relaxed);
        if (j) {
            atomic_fetch_add_explicit(&j->helpers, 1, memory_order_relaxed);
            pthread_mutex_unlock(&w->mutex);
            work(j);
            pthread_mutex_lock(&w->mutex);
            /* From here the job may be gone: it lives on its caller's stack. */
            if (atomic_fetch_sub_explicit(&j->helpers, 1, memory_order_release) == 1)
                pthread_cond_broadcast(&w->done);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        for (int i = 0; i < SPINS && atomic_load_explicit(&w->posted, memory_order_relaxed) == seen; i++)
            relax();
        pthread_mutex_lock(&w->mutex);
        w->sleeping++;
        while (!w->stop && atomic_load_explicit(&w->posted, memory_order_relaxed) == seen)
            pthread_cond_wait(&w->wake, &w->mutex);
        w->sleeping--;
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* Starts one thread with every signal blocked: signals are the program's main thread's. */
static int start_thread(struct vxk_workers *w, pthread_t *out)
{
    sigset_t all, old;
    int rc;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(out, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0)
        pthread_setname_np(*out, "vxk-worker");
    return rc;
}

vx_err vxk_workers_create(int n_threads, struct vxk_workers **out)
{
    struct vxk_workers *w = calloc(1, sizeof *w + (size_t)n_threads * sizeof w->thread[0]);
    *out = NULL;
    if (!w)
        return VX_E_NOMEM;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->wake, NULL);
    pthread_cond_init(&w->done, NULL);
    w->jobs.prev_job = w->jobs.next_job = &w->jobs;
    for (w->n_threads = 1; w->n_threads < n_threads; w->n_threads++) {
        if (start_thread(w, &w->thread[w->n_threads - 1]) != 0) {
            vxk_workers_destroy(w);
            return VX_E_NOMEM;
        }
    }
    *out = w;
    return VX_OK;
}

void vxk_workers_destroy(struct vxk_workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->stop = 1;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    for (int i = 0; i < w->n_threads - 1; i++)
        pthread_join(w->thread[i], NULL);
    pthread_cond_destroy(&w->done);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

int vxk_workers_threads(const struct vxk_workers *w)
{
    return w->n_threads;
}

/* Puts the job on the ring and wakes as many sleepers as it has chunks to give. */
static void post(struct vxk_workers *w, struct job *j, int urgent)
{
    struct job *before;
    uint32_t chunks = j->n / j->chunk + (j->n % j->chunk != 0);
    uint32_t sleeping;
    pthread_mutex_lock(&w->mutex);
    before = urgent ? &w->jobs : w->jobs.prev_job;
    j->prev_job = before;
    j->next_job = before->next_job;
    before->next_job->prev_job = j;
    before->next_job = j;
    atomic_fetch_add_explicit(&w->posted, 1, memory_order_relaxed);
    sleeping = (uint32_t)w->sleeping;
    pthread_mutex_unlock(&w->mutex);
    if (sleeping > chunks - 1)
        sleeping = chunks - 1;
    for (uint32_t i = 0; i < sleeping; i++)
        pthread_cond_signal(&w->wake);
}

void vxk_workers_run(struct vxk_workers *w, int urgent, vxk_work_fn *fn, void *ctx, uint32_t n,
                     uint32_t chunk)
{
    struct job j = {.fn = fn, .ctx = ctx, .n = n, .chunk = chunk ? chunk : 1};
    if (n == 0)
        return;
    if (w->n_threads == 1 || n <= j.chunk) {
        fn(ctx, 0, n);
        return;
    }
    post(w, &j, urgent);
    work(&j);
    pthread_mutex_lock(&w->mutex);
    j.prev_job->next_job = j.next_job;
    j.next_job->prev_job = j.prev_job;
    if (atomic_load_explicit(&j.helpers, memory_order_acquire) > 0) {
        pthread_mutex_unlock(&w->mutex);
        for (int i = 0; i < SPINS && atomic_load_explicit(&j.helpers, memory_order_acquire) > 0; i++)
            relax();
        pthread_mutex_lock(&w->mutex);
    }
    while (atomic_load_explicit(&j.helpers, memory_order_acquire) > 0)
        pthread_cond_wait(&w->done, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}
