/*
 * cpu.h - parts of the CPU backend that its files share.
 */
#ifndef VXK_CPU_H
#define VXK_CPU_H

#include "../base/blocks.h"
#include "../vxk.h"
#include "table.h"
#include "workers.h"

struct vxk_cpu_dev {
    struct vxk_dev base;
    struct vxk_workers *workers;
    const struct vxk_cpu_table *table;
    int tuned; /* its variants are used */
    struct vxk_blocks blocks;
};

struct vxk_cpu_queue {
    struct vxk_queue base;
    int urgent;
    void *scratch; /* of the primitives; grows */
    uint64_t scratch_bytes;
};

/* Scratch of at least `bytes`, or NULL.  Valid until the next call. */
void *vxk_cpu_scratch(struct vxk_cpu_queue *q, uint64_t bytes);

/* Primitives split [0, n) into parts: part p of `parts` begins at vxk_cpu_part(n, parts, p). */
enum { VXK_CPU_MAX_PARTS = 1024 };
uint32_t vxk_cpu_parts(const struct vxk_cpu_queue *q, uint32_t n);
static inline uint32_t vxk_cpu_part(uint32_t n, uint32_t parts, uint32_t p)
{
    return (uint32_t)((uint64_t)n * p / parts);
}
/* Runs fn over the parts; each element is a part. */
void vxk_cpu_run_parts(struct vxk_cpu_queue *q, vxk_work_fn *fn, void *ctx, uint32_t parts);

/* vxk_ops, in primitives.c and sort.c; the guard backend has the same events. */
vx_err vxk_cpu_event_create(struct vxk_dev *dev, struct vxk_event **out);
void vxk_cpu_event_destroy(struct vxk_event *e);
vx_err vxk_cpu_event_elapsed(struct vxk_event *from, struct vxk_event *to, float *ms);
vx_err vxk_cpu_scan_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
vx_err vxk_cpu_scan_u64(struct vxk_queue *q, const uint64_t *in, uint64_t *out, uint32_t n);
vx_err vxk_cpu_select(struct vxk_queue *q, const uint8_t *flags, uint32_t *out, uint32_t *n_out, uint32_t n);
vx_err vxk_cpu_sum_u32(struct vxk_queue *q, const uint32_t *in, uint64_t *out, uint32_t n);
vx_err vxk_cpu_min_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
vx_err vxk_cpu_max_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n);
vx_err vxk_cpu_sort_u64(struct vxk_queue *q, uint64_t *keys, uint32_t *values, uint32_t n);

#endif
