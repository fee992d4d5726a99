/*
 * The CPU backend behind a wall: its "device" memory can be touched by element functions, copies and
 * primitives only.
 *
 * Every call checks the pointers that it can see against the live blocks, opens the window, lets the CPU
 * backend do the work, and shuts the window.  A bad pointer poisons the queue, as it would on a GPU.
 */
#include "../backend.h"
#include "../cpu/cpu.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

struct guard_dev {
    struct vxk_dev base;
    struct vxk_dev *cpu;
    struct vxk_guard_memory memory;
};

struct guard_queue {
    struct vxk_queue base;
    struct vxk_queue *cpu;
    int poisoned;
    char error[160];
};

static struct guard_dev *guard_dev(struct vxk_dev *dev)
{
    return (struct guard_dev *)dev;
}

static struct guard_queue *guard_queue(struct vxk_queue *q)
{
    return (struct guard_queue *)q;
}

/* The CPU backend's device behind a guard device. */
static struct vxk_dev *cpu_of(struct vxk_dev *dev)
{
    return guard_dev(dev)->cpu;
}

static void poison(struct vxk_queue *queue, const char *what, const void *ptr, uint64_t bytes)
{
    struct guard_queue *q = guard_queue(queue);
    if (!q->poisoned)
        snprintf(q->error, sizeof q->error, "%s: %p, %llu bytes", what, ptr, (unsigned long long)bytes);
    q->poisoned = 1;
}

/* True when the queue is well and [ptr, ptr + bytes) is device memory. */
static int is_device(struct vxk_queue *q, const void *ptr, uint64_t bytes)
{
    if (bytes && !vxk_guard_is_device(&guard_dev(q->dev)->memory, ptr, bytes))
        poison(q, "not inside one block of device memory", ptr, bytes);
    return !guard_queue(q)->poisoned;
}

/* True when the queue is well and none of [ptr, ptr + bytes) is device memory. */
static int is_host(struct vxk_queue *q, const void *ptr, uint64_t bytes)
{
    if (bytes && vxk_guard_touches_device(&guard_dev(q->dev)->memory, ptr, bytes))
        poison(q, "device memory where host memory is asked for", ptr, bytes);
    return !guard_queue(q)->poisoned;
}

/* Opens the window and gives the queue that does the work. */
static struct vxk_queue *enter(struct vxk_queue *q)
{
    vxk_guard_window_open(&guard_dev(q->dev)->memory);
    return guard_queue(q)->cpu;
}

static vx_err leave(struct vxk_queue *q, vx_err err)
{
    vxk_guard_window_close(&guard_dev(q->dev)->memory);
    return err;
}

/* The device and its memory */

static void guard_close(struct vxk_dev *dev)
{
    struct guard_dev *d = guard_dev(dev);
    if (!d)
        return;
    d->cpu->ops->close(d->cpu);
    vxk_guard_memory_fini(&d->memory);
    free(d);
}

static void guard_info(struct vxk_dev *dev, struct vxk_info *out)
{
    cpu_of(dev)->ops->info(cpu_of(dev), out);
    out->backend = VXK_GUARD;
    snprintf(out->name, sizeof out->name, "guard, %d thread%s", out->n_workers,
             out->n_workers == 1 ? "" : "s");
}

static vx_err guard_alloc(struct vxk_dev *dev, uint64_t bytes, void **out)
{
    return vxk_guard_alloc(&guard_dev(dev)->memory, bytes, out);
}

static void guard_free(struct vxk_dev *dev, void *ptr)
{
    vxk_guard_free(&guard_dev(dev)->memory, ptr);
}

static void guard_trim(struct vxk_dev *dev)
{
    vxk_guard_trim(&guard_dev(dev)->memory);
    cpu_of(dev)->ops->trim(cpu_of(dev));
}

static vx_err guard_alloc_host(struct vxk_dev *dev, uint64_t bytes, void **out)
{
    return cpu_of(dev)->ops->alloc_host(cpu_of(dev), bytes, out);
}

static void guard_free_host(struct vxk_dev *dev, void *ptr)
{
    cpu_of(dev)->ops->free_host(cpu_of(dev), ptr);
}

/* Never in place: behind a copy there is a wall. */
static const void *guard_reach(struct vxk_dev *dev, const void *host)
{
    (void)dev;
    (void)host;
    return NULL;
}

static vx_err guard_reserve(struct vxk_dev *dev, uint64_t bytes, struct vxk_range *out)
{
    return vxk_guard_reserve(&guard_dev(dev)->memory, bytes, out);
}

static vx_err guard_commit(struct vxk_dev *dev, struct vxk_range *range, uint64_t bytes)
{
    return vxk_guard_commit(&guard_dev(dev)->memory, range, bytes);
}

static void guard_release(struct vxk_dev *dev, struct vxk_range *range)
{
    vxk_guard_release(&guard_dev(dev)->memory, range);
}

/* Queues and events */

static vx_err guard_queue_create(struct vxk_dev *dev, int priority, struct vxk_queue **out)
{
    struct guard_queue *q = calloc(1, sizeof *q);
    vx_err err;
    *out = NULL;
    if (!q)
        return VX_E_NOMEM;
    q->base.dev = dev;
    err = cpu_of(dev)->ops->queue_create(cpu_of(dev), priority, &q->cpu);
    if (err != VX_OK) {
        free(q);
        return err;
    }
    *out = &q->base;
    return VX_OK;
}

static void guard_queue_destroy(struct vxk_queue *q)
{
    if (!q)
        return;
    guard_queue(q)->cpu->dev->ops->queue_destroy(guard_queue(q)->cpu);
    free(q);
}

static vx_err guard_wait(struct vxk_queue *q)
{
    q->n_waits++;
    return guard_queue(q)->poisoned ? VX_E_DEVICE : VX_OK;
}

static vx_err guard_event_record(struct vxk_queue *q, struct vxk_event *e)
{
    if (guard_queue(q)->poisoned)
        return VX_E_DEVICE;
    return cpu_of(q->dev)->ops->event_record(guard_queue(q)->cpu, e);
}

static vx_err guard_event_wait(struct vxk_queue *q, struct vxk_event *e)
{
    if (guard_queue(q)->poisoned)
        return VX_E_DEVICE;
    return cpu_of(q->dev)->ops->event_wait(guard_queue(q)->cpu, e);
}

static const char *guard_queue_error_text(struct vxk_queue *q)
{
    return guard_queue(q)->error;
}

/* Copies, launches, primitives: check, open, work, shut */

static vx_err guard_upload(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    if (!is_device(q, dst, bytes) || !is_host(q, src, bytes))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->upload(enter(q), dst, src, bytes));
}

static vx_err guard_download(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    if (!is_host(q, dst, bytes) || !is_device(q, src, bytes))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->download(enter(q), dst, src, bytes));
}

static vx_err guard_copy(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    if (!is_device(q, dst, bytes) || !is_device(q, src, bytes))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->copy(enter(q), dst, src, bytes));
}

static vx_err guard_fill(struct vxk_queue *q, void *dst, int byte, uint64_t bytes)
{
    if (!is_device(q, dst, bytes))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->fill(enter(q), dst, byte, bytes));
}

static vx_err guard_launch(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t args_bytes,
                           uint32_t n)
{
    if (guard_queue(q)->poisoned)
        return VX_E_DEVICE;
    q->n_launches++;
    return leave(q, cpu_of(q->dev)->ops->launch(enter(q), k, args, args_bytes, n));
}

static vx_err guard_launch_counted(struct vxk_queue *q, enum vxk_kernel k, const void *args,
                                   size_t args_bytes, const uint32_t *n_dev, uint32_t per, uint32_t n_max)
{
    if (!n_dev)
        return VX_E_INVALID;
    if (!is_device(q, n_dev, sizeof *n_dev))
        return VX_E_DEVICE;
    q->n_launches++;
    return leave(q, cpu_of(q->dev)->ops->launch_counted(enter(q), k, args, args_bytes, n_dev, per, n_max));
}

static vx_err guard_scan_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    if (!is_device(q, in, (uint64_t)n * sizeof *in) || !is_device(q, out, ((uint64_t)n + 1) * sizeof *out))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->scan_u32(enter(q), in, out, n));
}

static vx_err guard_scan_u64(struct vxk_queue *q, const uint64_t *in, uint64_t *out, uint32_t n)
{
    if (!is_device(q, in, (uint64_t)n * sizeof *in) || !is_device(q, out, ((uint64_t)n + 1) * sizeof *out))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->scan_u64(enter(q), in, out, n));
}

static vx_err guard_sort_u64(struct vxk_queue *q, uint64_t *keys, uint32_t *values, uint32_t n)
{
    if (!is_device(q, keys, (uint64_t)n * sizeof *keys) ||
        (values && !is_device(q, values, (uint64_t)n * sizeof *values)))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->sort_u64(enter(q), keys, values, n));
}

static vx_err guard_select(struct vxk_queue *q, const uint8_t *flags, uint32_t *out, uint32_t *n_out,
                           uint32_t n)
{
    if (!is_device(q, flags, n) || !is_device(q, out, (uint64_t)n * sizeof *out) ||
        !is_device(q, n_out, sizeof *n_out))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->select(enter(q), flags, out, n_out, n));
}

static vx_err guard_sum_u32(struct vxk_queue *q, const uint32_t *in, uint64_t *out, uint32_t n)
{
    if (!is_device(q, in, (uint64_t)n * sizeof *in) || !is_device(q, out, sizeof *out))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->sum_u32(enter(q), in, out, n));
}

static vx_err guard_min_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    if (!is_device(q, in, (uint64_t)n * sizeof *in) || !is_device(q, out, sizeof *out))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->min_u32(enter(q), in, out, n));
}

static vx_err guard_max_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    if (!is_device(q, in, (uint64_t)n * sizeof *in) || !is_device(q, out, sizeof *out))
        return VX_E_DEVICE;
    return leave(q, cpu_of(q->dev)->ops->max_u32(enter(q), in, out, n));
}

static const struct vxk_ops guard_ops = {
    .close = guard_close,
    .info = guard_info,
    .alloc = guard_alloc,
    .free = guard_free,
    .trim = guard_trim,
    .alloc_host = guard_alloc_host,
    .free_host = guard_free_host,
    .reach = guard_reach,
    .reserve = guard_reserve,
    .commit = guard_commit,
    .release = guard_release,
    .queue_create = guard_queue_create,
    .queue_destroy = guard_queue_destroy,
    .wait = guard_wait,
    .event_create = vxk_cpu_event_create,
    .event_destroy = vxk_cpu_event_destroy,
    .event_record = guard_event_record,
    .event_wait = guard_event_wait,
    .event_elapsed = vxk_cpu_event_elapsed,
    .upload = guard_upload,
    .download = guard_download,
    .copy = guard_copy,
    .fill = guard_fill,
    .launch = guard_launch,
    .launch_counted = guard_launch_counted,
    .scan_u32 = guard_scan_u32,
    .scan_u64 = guard_scan_u64,
    .sort_u64 = guard_sort_u64,
    .select = guard_select,
    .sum_u32 = guard_sum_u32,
    .min_u32 = guard_min_u32,
    .max_u32 = guard_max_u32,
    .queue_error_text = guard_queue_error_text,
};

vx_err vxk_guard_open(int n_threads, struct vxk_dev **out, struct vx_detail *detail)
{
    struct guard_dev *d = calloc(1, sizeof *d);
    vx_err err;
    *out = NULL;
    if (!d)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a guard device");
    err = vxk_cpu_open(n_threads, &d->cpu, detail);
    if (err != VX_OK) {
        free(d);
        return err;
    }
    ((struct vxk_cpu_dev *)d->cpu)->tuned = 0; /* the bodies, as they are written */
    d->base.ops = &guard_ops;
    d->base.backend = VXK_GUARD;
    vxk_guard_memory_init(&d->memory);
    *out = &d->base;
    return VX_OK;
}
