#include "home.h"
#include "config.h"
#include "endpoint.h"

#include <sched.h>
#include <string.h>

enum { LOOKS = 256 /* at the clock's expense: so often it spins before it looks at the time */ };

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_until_asked(struct vxd_home *h)
{
    pthread_mutex_lock(&h->mutex);
    atomic_store(&h->asleep, true);
    while (!atomic_load(&h->stopping) && vxd_now_ns() >= atomic_load(&h->until_ns))
        pthread_cond_wait(&h->asked, &h->mutex);
    atomic_store(&h->asleep, false);
    pthread_mutex_unlock(&h->mutex);
}

static void *keep_awake(void *arg)
{
    struct vxd_home *h = arg;
    while (!atomic_load(&h->stopping)) {
        if (vxd_now_ns() >= atomic_load(&h->until_ns)) {
            sleep_until_asked(h);
            continue;
        }
        for (int i = 0; i < LOOKS; ++i)
            relax();
    }
    return NULL;
}

/* A thread of the lowest class on that processor. */
static vx_err start_keeper(struct vxd_home *h)
{
    const struct sched_param none = {0};
    cpu_set_t here;
    pthread_attr_t attr;
    CPU_ZERO(&here);
    CPU_SET(h->cpu, &here);
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof here, &here);
    const int failed = pthread_create(&h->keeper, &attr, keep_awake, h);
    pthread_attr_destroy(&attr);
    if (failed)
        return VX_E_NOMEM;
    h->has_keeper = true;
    pthread_setname_np(h->keeper, "awake");
    return pthread_setschedparam(h->keeper, SCHED_IDLE, &none) ? VX_E_PERMISSION : VX_OK;
}

vx_err vxd_home_open(struct vxd_home *home, uint64_t cpu, uint64_t awake_ms, struct vx_detail *detail)
{
    cpu_set_t usable;
    memset(home, 0, sizeof *home);
    pthread_mutex_init(&home->mutex, NULL);
    pthread_cond_init(&home->asked, NULL);
    if (cpu == VXD_ANY_CPU)
        return awake_ms ? vx_fail(detail, VX_E_INVALID, "query_awake_ms", "needs a query_cpu") : VX_OK;
    if (sched_getaffinity(0, sizeof usable, &usable) || cpu >= CPU_SETSIZE ||
        !CPU_ISSET((size_t)cpu, &usable))
        return vx_fail(detail, VX_E_INVALID, "query_cpu", "the daemon may not run on processor %llu",
                       (unsigned long long)cpu);
    home->chosen = true;
    home->cpu = (int)cpu;
    home->awake_ns = awake_ms * 1000000;
    if (!awake_ms)
        return VX_OK;
    const vx_err err = start_keeper(home);
    if (err == VX_OK)
        return VX_OK;
    vxd_home_close(home);
    return vx_fail(detail, err, "query_awake_ms", "the system gives no thread of the class SCHED_IDLE");
}

void vxd_home_close(struct vxd_home *home)
{
    if (home->has_keeper) {
        pthread_mutex_lock(&home->mutex);
        atomic_store(&home->stopping, true);
        pthread_cond_signal(&home->asked);
        pthread_mutex_unlock(&home->mutex);
        pthread_join(home->keeper, NULL);
        home->has_keeper = false;
    }
    pthread_cond_destroy(&home->asked);
    pthread_mutex_destroy(&home->mutex);
}

void vxd_home_enter(const struct vxd_home *home)
{
    cpu_set_t here;
    if (!home->chosen)
        return;
    CPU_ZERO(&here);
    CPU_SET(home->cpu, &here);
    (void)pthread_setaffinity_np(pthread_self(), sizeof here, &here); /* without it, it is only slower */
}

void vxd_home_asked(struct vxd_home *home, uint64_t now_ns)
{
    if (!home->has_keeper)
        return;
    atomic_store(&home->until_ns, now_ns + home->awake_ns);
    if (!atomic_load(&home->asleep))
        return;
    pthread_mutex_lock(&home->mutex);
    pthread_cond_signal(&home->asked);
    pthread_mutex_unlock(&home->mutex);
}
