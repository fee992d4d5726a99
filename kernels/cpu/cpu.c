#include "cpu.h"

#include "../backend.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 256, CHUNKS_A_THREAD = 16, PARTS_A_THREAD = 4, MIN_PART = 8192 };
/* From this size on memory comes in huge pages: maps are read all over the place. */
#define HUGE_BYTES (2ull << 20)

struct vxk_event {
    int64_t ns;
};

static struct vxk_cpu_dev *cpu_dev(struct vxk_dev *dev)
{
    return (struct vxk_cpu_dev *)dev;
}

static struct vxk_cpu_queue *cpu_queue(struct vxk_queue *q)
{
    return (struct vxk_cpu_queue *)q;
}

/* Memory */

static void *raw_alloc(void *ctx, uint64_t bytes)
{
    void *ptr;
    (void)ctx;
    if (posix_memalign(&ptr, bytes >= HUGE_BYTES ? HUGE_BYTES : VXK_BLOCK_ALIGN, bytes) != 0)
        return NULL;
    if (bytes >= HUGE_BYTES)
        madvise(ptr, bytes, MADV_HUGEPAGE);
    return ptr;
}

static void raw_free(void *ctx, void *ptr, uint64_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(ptr);
}

static vx_err cpu_alloc(struct vxk_dev *dev, uint64_t bytes, void **out)
{
    *out = vxk_blocks_take(&cpu_dev(dev)->blocks, bytes);
    return *out ? VX_OK : VX_E_EXHAUSTED;
}

static vx_err cpu_alloc_host(struct vxk_dev *dev, uint64_t bytes, void **out)
{
    return cpu_alloc(dev, bytes, out) == VX_OK ? VX_OK : VX_E_NOMEM;
}

static const void *cpu_reach(struct vxk_dev *dev, const void *host)
{
    (void)dev;
    return host;
}

static void cpu_free(struct vxk_dev *dev, void *ptr)
{
    vxk_blocks_give(&cpu_dev(dev)->blocks, ptr);
}

static void cpu_trim(struct vxk_dev *dev)
{
    vxk_blocks_trim(&cpu_dev(dev)->blocks);
}

static uint64_t round_up(uint64_t x, uint64_t step)
{
    return (x + step - 1) / step * step;
}

/* Address space only: pages are made when commit opens them.  The base is aligned to a huge page. */
static vx_err cpu_reserve(struct vxk_dev *dev, uint64_t bytes, struct vxk_range *out)
{
    uint64_t size, head;
    char *p;
    (void)dev;
    memset(out, 0, sizeof *out);
    if (bytes == 0)
        return VX_E_INVALID;
    if (bytes > 1ull << 46)
        return VX_E_EXHAUSTED;
    size = round_up(bytes, HUGE_BYTES);
    p = mmap(NULL, size + HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return VX_E_EXHAUSTED;
    head = (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;
    if (head)
        munmap(p, head);
    munmap(p + head + size, HUGE_BYTES - head);
    madvise(p + head, size, MADV_HUGEPAGE);
    out->base = p + head;
    out->reserved_bytes = size;
    return VX_OK;
}

static vx_err cpu_commit(struct vxk_dev *dev, struct vxk_range *range, uint64_t bytes)
{
    uint64_t want = round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    (void)dev;
    if (bytes > range->reserved_bytes)
        return VX_E_EXHAUSTED;
    if (want <= range->committed_bytes)
        return VX_OK;
    if (mprotect((char *)range->base + range->committed_bytes, want - range->committed_bytes,
                 PROT_READ | PROT_WRITE) != 0)
        return VX_E_EXHAUSTED;
    range->committed_bytes = want;
    return VX_OK;
}

static void cpu_release(struct vxk_dev *dev, struct vxk_range *range)
{
    (void)dev;
    if (range->base)
        munmap(range->base, range->reserved_bytes);
    memset(range, 0, sizeof *range);
}

/* Queues and events */

static vx_err cpu_queue_create(struct vxk_dev *dev, int priority, struct vxk_queue **out)
{
    struct vxk_cpu_queue *q = calloc(1, sizeof *q);
    *out = NULL;
    if (!q)
        return VX_E_NOMEM;
    q->base.dev = dev;
    q->urgent = priority > 0;
    *out = &q->base;
    return VX_OK;
}

static void cpu_queue_destroy(struct vxk_queue *q)
{
    if (q)
        free(cpu_queue(q)->scratch);
    free(q);
}

/* Calls run before they return, so there is never anything to wait for. */
static vx_err cpu_wait(struct vxk_queue *q)
{
    q->n_waits++;
    return VX_OK;
}

vx_err vxk_cpu_event_create(struct vxk_dev *dev, struct vxk_event **out)
{
    (void)dev;
    *out = calloc(1, sizeof **out);
    return *out ? VX_OK : VX_E_NOMEM;
}

void vxk_cpu_event_destroy(struct vxk_event *e)
{
    free(e);
}

static vx_err cpu_event_record(struct vxk_queue *q, struct vxk_event *e)
{
    struct timespec t;
    (void)q;
    clock_gettime(CLOCK_MONOTONIC, &t);
    __atomic_store_n(&e->ns, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, __ATOMIC_RELEASE);
    return VX_OK;
}

static vx_err cpu_event_wait(struct vxk_queue *q, struct vxk_event *e)
{
    (void)q;
    (void)e;
    return VX_OK;
}

vx_err vxk_cpu_event_elapsed(struct vxk_event *from, struct vxk_event *to, float *ms)
{
    int64_t ns = __atomic_load_n(&to->ns, __ATOMIC_ACQUIRE) - __atomic_load_n(&from->ns, __ATOMIC_ACQUIRE);
    *ms = (float)((double)ns * 1e-6);
    return VX_OK;
}

/* Copies and launches */

static vx_err cpu_upload(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    (void)q;
    if (bytes)
        memmove(dst, src, bytes);
    return VX_OK;
}

static vx_err cpu_fill(struct vxk_queue *q, void *dst, int byte, uint64_t bytes)
{
    (void)q;
    if (bytes)
        memset(dst, byte, bytes);
    return VX_OK;
}

struct launch {
    vxk_cpu_run *run;
    const void *args;
};

static void run_launch(void *ctx, uint32_t begin, uint32_t end)
{
    const struct launch *l = ctx;
    l->run(l->args, begin, end);
}

static vx_err cpu_launch(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                         uint32_t n)
{
    struct vxk_cpu_dev *dev = cpu_dev(q->dev);
    uint32_t share = (uint32_t)vxk_workers_threads(dev->workers) * CHUNKS_A_THREAD;
    struct launch l;
    if ((unsigned)k >= VXK_N_KERNELS || args_bytes != dev->table->kernel[k].args_bytes)
        return VX_E_INVALID;
    q->n_launches++;
    l.run = dev->tuned && dev->table->tuned[k] ? dev->table->tuned[k] : dev->table->kernel[k].run;
    l.args = args;
    vxk_workers_run(dev->workers, cpu_queue(q)->urgent, run_launch, &l, n, n / share + 1);
    return VX_OK;
}

static vx_err cpu_launch_counted(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                                 const uint32_t *n_dev, uint32_t per, uint32_t n_max)
{
    uint32_t n;
    if (per == 0 || !n_dev)
        return VX_E_INVALID;
    n = *n_dev < n_max / per ? *n_dev : n_max / per;
    return cpu_launch(q, k, args, args_bytes, n * per);
}

static const char *cpu_queue_error_text(struct vxk_queue *q)
{
    (void)q;
    return "";
}

/* The primitives' view of a queue */

void *vxk_cpu_scratch(struct vxk_cpu_queue *q, uint64_t bytes)
{
    if (bytes > q->scratch_bytes) {
        free(q->scratch);
        q->scratch = malloc(bytes + bytes / 4);
        q->scratch_bytes = q->scratch ? bytes + bytes / 4 : 0;
    }
    return q->scratch;
}

uint32_t vxk_cpu_parts(const struct vxk_cpu_queue *q, uint32_t n)
{
    uint32_t threads = (uint32_t)vxk_workers_threads(cpu_dev(q->base.dev)->workers);
    uint32_t parts = n / MIN_PART;
    if (threads == 1 || parts < 2)
        return 1;
    if (parts > threads * PARTS_A_THREAD)
        parts = threads * PARTS_A_THREAD;
    return parts > VXK_CPU_MAX_PARTS ? VXK_CPU_MAX_PARTS : parts;
}

void vxk_cpu_run_parts(struct vxk_cpu_queue *q, vxk_work_fn *fn, void *ctx, uint32_t parts)
{
    vxk_workers_run(cpu_dev(q->base.dev)->workers, q->urgent, fn, ctx, parts, 1);
}

/* The device */

static void cpu_close(struct vxk_dev *dev)
{
    struct vxk_cpu_dev *d = cpu_dev(dev);
    if (!d)
        return;
    vxk_workers_destroy(d->workers);
    vxk_blocks_fini(&d->blocks);
    free(d);
}

/* A number of kilobytes from /proc/meminfo, or 0. */
static uint64_t meminfo_bytes(const char *name)
{
    char line[128];
    uint64_t kb = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            kb = strtoull(line + strlen(name) + 1, NULL, 10);
    fclose(f);
    return kb * 1024;
}

static void cpu_info(struct vxk_dev *dev, struct vxk_info *out)
{
    int n = vxk_workers_threads(cpu_dev(dev)->workers);
    memset(out, 0, sizeof *out);
    out->backend = VXK_CPU;
    snprintf(out->name, sizeof out->name, "CPU, %d thread%s", n, n == 1 ? "" : "s");
    out->total_bytes = meminfo_bytes("MemTotal");
    out->free_bytes = meminfo_bytes("MemAvailable");
    out->n_workers = n;
    out->n_allocs = vxk_blocks_n_raw(&cpu_dev(dev)->blocks);
}

static const struct vxk_ops cpu_ops = {
    .close = cpu_close,
    .info = cpu_info,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .trim = cpu_trim,
    .alloc_host = cpu_alloc_host,
    .free_host = cpu_free,
    .reach = cpu_reach,
    .reserve = cpu_reserve,
    .commit = cpu_commit,
    .release = cpu_release,
    .queue_create = cpu_queue_create,
    .queue_destroy = cpu_queue_destroy,
    .wait = cpu_wait,
    .event_create = vxk_cpu_event_create,
    .event_destroy = vxk_cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_elapsed = vxk_cpu_event_elapsed,
    .upload = cpu_upload,
    .download = cpu_upload,
    .copy = cpu_upload,
    .fill = cpu_fill,
    .launch = cpu_launch,
    .launch_counted = cpu_launch_counted,
    .scan_u32 = vxk_cpu_scan_u32,
    .scan_u64 = vxk_cpu_scan_u64,
    .sort_u64 = vxk_cpu_sort_u64,
    .select = vxk_cpu_select,
    .sum_u32 = vxk_cpu_sum_u32,
    .min_u32 = vxk_cpu_min_u32,
    .max_u32 = vxk_cpu_max_u32,
    .queue_error_text = cpu_queue_error_text,
};

/* Threads that this process may run on: less than the machine has in a container or under taskset. */
static int usable_threads(void)
{
    cpu_set_t set;
    int n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}

/* Instruction sets, the fastest first. */
struct cpu_set_of {
    const char *name;
    const struct vxk_cpu_table *table;
    bool (*runs)(void);
};

static bool runs_always(void)
{
    return true;
}
#ifdef VXK_HAVE_AVX2
static bool runs_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
static bool runs_avx512(void)
{
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif
static const struct cpu_set_of sets[] = {
#ifdef VXK_HAVE_AVX2
    {"avx512", &vxk_cpu_table_avx512, runs_avx512},
    {"avx2", &vxk_cpu_table_avx2, runs_avx2},
#endif
    {"baseline", &vxk_cpu_table_baseline, runs_always},
};

/* The fastest, or the one that is asked for; NULL: it does not run here. */
static const struct vxk_cpu_table *choose_table(const char *asked)
{
    for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++)
        if ((!asked || strcmp(asked, sets[k].name) == 0) && sets[k].runs())
            return sets[k].table;
    return NULL;
}

vx_err vxk_cpu_open(int n_threads, struct vxk_dev **out, struct vx_detail *detail)
{
    const char *plain = getenv("VOXELD_CPU_TUNED"), *asked = getenv("VOXELD_CPU_SET");
    const struct vxk_cpu_table *table = choose_table(asked);
    struct vxk_cpu_dev *d;
    vx_err err;
    *out = NULL;
    if (n_threads < 0)
        return vx_fail(detail, VX_E_INVALID, "threads", "must be 0 (all) or more, got %d", n_threads);
    if (!table)
        return vx_fail(detail, VX_E_UNAVAILABLE, "device",
                       "VOXELD_CPU_SET=%s: this processor or this build has no such instruction set; "
                       "avx512, avx2, baseline, or leave it out for the fastest",
                       asked);
    if (n_threads == 0)
        n_threads = usable_threads();
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    d = calloc(1, sizeof *d);
    if (!d)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a CPU device");
    d->base.ops = &cpu_ops;
    d->base.backend = VXK_CPU;
    d->table = table;
    d->tuned = !(plain && strcmp(plain, "0") == 0);
    vxk_blocks_init(&d->blocks, raw_alloc, raw_free, NULL, 1);
    err = vxk_workers_create(n_threads, &d->workers);
    if (err != VX_OK) {
        cpu_close(&d->base);
        return vx_fail(detail, err, "threads", "the system gives no %d threads: ask for fewer", n_threads);
    }
    *out = &d->base;
    return VX_OK;
}
