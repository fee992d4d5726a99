#include "worker.h"

static void list_init(struct vxd_job_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_push(struct vxd_job_list *list, struct vxd_job *job)
{
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

static struct vxd_job *list_pop(struct vxd_job_list *list)
{
    struct vxd_job *job = list->first;
    if (job) {
        list->first = job->next;
        if (!list->first)
            list->end = &list->first;
    }
    return job;
}

/* ------------------------------------------------------------------ back to the loop */

static void on_done(uv_async_t *async)
{
    struct vxd_done *done = async->data;
    pthread_mutex_lock(&done->mutex);
    struct vxd_job *job = done->list.first;
    list_init(&done->list);
    pthread_mutex_unlock(&done->mutex);
    while (job) {
        struct vxd_job *next = job->next; /* `done` frees the job */
        job->done(job);
        job = next;
    }
}

vx_err vxd_done_init(struct vxd_done *done, uv_loop_t *loop)
{
    list_init(&done->list);
    if (uv_async_init(loop, &done->async, on_done))
        return VX_E_NOMEM;
    done->async.data = done;
    CPU_ZERO(&done->cpus);
    (void)sched_getaffinity(0, sizeof done->cpus, &done->cpus);
    pthread_mutex_init(&done->mutex, NULL);
    return VX_OK;
}

void vxd_done_fini(struct vxd_done *done)
{
    uv_close((uv_handle_t *)&done->async, NULL);
    pthread_mutex_destroy(&done->mutex);
}

static void give_back(struct vxd_done *done, struct vxd_job *job)
{
    pthread_mutex_lock(&done->mutex);
    list_push(&done->list, job);
    pthread_mutex_unlock(&done->mutex);
    uv_async_send(&done->async);
}

/* ------------------------------------------------------------------ the thread */

static void *work(void *arg)
{
    struct vxd_worker *w = arg;
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        struct vxd_job *job = list_pop(&w->list);
        if (!job && w->stopping)
            break;
        if (!job) {
            pthread_cond_wait(&w->filled, &w->mutex);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        job->run(job);
        give_back(w->done, job);
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

vx_err vxd_worker_start(struct vxd_worker *worker, struct vxd_done *done, const char *name)
{
    *worker = (struct vxd_worker){.done = done};
    list_init(&worker->list);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->filled, NULL);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (CPU_COUNT(&done->cpus)) /* the loop, which starts it, may be kept on one processor (home.h) */
        pthread_attr_setaffinity_np(&attr, sizeof done->cpus, &done->cpus);
    const int failed = pthread_create(&worker->thread, &attr, work, worker);
    pthread_attr_destroy(&attr);
    if (failed) {
        pthread_cond_destroy(&worker->filled);
        pthread_mutex_destroy(&worker->mutex);
        return VX_E_NOMEM;
    }
    pthread_setname_np(worker->thread, name);
    return VX_OK;
}

void vxd_worker_stop(struct vxd_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_signal(&worker->filled);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->filled);
    pthread_mutex_destroy(&worker->mutex);
}

void vxd_worker_push(struct vxd_worker *worker, struct vxd_job *job)
{
    pthread_mutex_lock(&worker->mutex);
    list_push(&worker->list, job);
    pthread_cond_signal(&worker->filled);
    pthread_mutex_unlock(&worker->mutex);
}

bool vxd_worker_remove(struct vxd_worker *worker, struct vxd_job *job)
{
    bool found = false;
    pthread_mutex_lock(&worker->mutex);
    for (struct vxd_job **at = &worker->list.first; *at; at = &(*at)->next) {
        if (*at == job) {
            *at = job->next;
            if (!*at)
                worker->list.end = at;
            found = true;
            break;
        }
    }
    pthread_mutex_unlock(&worker->mutex);
    return found;
}
