/* Scan, select and reductions: each part is counted, the counts are summed, each part is written. */
#include "cpu.h"

#include <string.h>

static struct vxk_cpu_queue *cpu_queue(struct vxk_queue *q)
{
    return (struct vxk_cpu_queue *)q;
}

/* The same scan for both widths; *before* holds each part's sum, then what comes before the part. */
#define DEFINE_SCAN(suffix, type)                                                                            \
    struct scan_##suffix {                                                                                   \
        const type *in;                                                                                      \
        type *out;                                                                                           \
        uint32_t n, parts;                                                                                   \
        type before[VXK_CPU_MAX_PARTS];                                                                      \
    };                                                                                                       \
    static void scan_sum_##suffix(void *ctx, uint32_t begin, uint32_t end)                                   \
    {                                                                                                        \
        struct scan_##suffix *s = ctx;                                                                       \
        for (uint32_t p = begin; p < end; p++) {                                                             \
            uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1);                                             \
            type sum = 0;                                                                                    \
            for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++)                                \
                sum += s->in[i];                                                                             \
            s->before[p] = sum;                                                                              \
        }                                                                                                    \
    }                                                                                                        \
    static void scan_write_##suffix(void *ctx, uint32_t begin, uint32_t end)                                 \
    {                                                                                                        \
        struct scan_##suffix *s = ctx;                                                                       \
        for (uint32_t p = begin; p < end; p++) {                                                             \
            uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1);                                             \
            type sum = s->before[p];                                                                         \
            for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++) {                              \
                type v = s->in[i];                                                                           \
                s->out[i] = sum;                                                                             \
                sum += v;                                                                                    \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    vx_err vxk_cpu_scan_##suffix(struct vxk_queue *q, const type *in, type *out, uint32_t n)                 \
    {                                                                                                        \
        struct scan_##suffix s;                                                                              \
        type total = 0;                                                                                      \
        s.in = in;                                                                                           \
        s.out = out;                                                                                         \
        s.n = n;                                                                                             \
        s.parts = vxk_cpu_parts(cpu_queue(q), n);                                                            \
        vxk_cpu_run_parts(cpu_queue(q), scan_sum_##suffix, &s, s.parts);                                     \
        for (uint32_t p = 0; p < s.parts; p++) {                                                             \
            type sum = s.before[p];                                                                          \
            s.before[p] = total;                                                                             \
            total += sum;                                                                                    \
        }                                                                                                    \
        vxk_cpu_run_parts(cpu_queue(q), scan_write_##suffix, &s, s.parts);                                   \
        out[n] = total;                                                                                      \
        return VX_OK;                                                                                        \
    }

DEFINE_SCAN(u32, uint32_t)
DEFINE_SCAN(u64, uint64_t)

struct select {
    const uint8_t *flags;
    uint32_t *out;
    uint32_t n, parts;
    uint32_t before[VXK_CPU_MAX_PARTS];
};

static void select_count(void *ctx, uint32_t begin, uint32_t end)
{
    struct select *s = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1), count = 0;
        for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++)
            count += s->flags[i] != 0;
        s->before[p] = count;
    }
}

static void select_write(void *ctx, uint32_t begin, uint32_t end)
{
    struct select *s = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(s->n, s->parts, p + 1);
        uint32_t *out = s->out + s->before[p];
        for (uint32_t i = vxk_cpu_part(s->n, s->parts, p); i < last; i++)
            if (s->flags[i])
                *out++ = i;
    }
}

vx_err vxk_cpu_select(struct vxk_queue *q, const uint8_t *flags, uint32_t *out, uint32_t *n_out, uint32_t n)
{
    struct select s;
    uint32_t total = 0;
    s.flags = flags;
    s.out = out;
    s.n = n;
    s.parts = vxk_cpu_parts(cpu_queue(q), n);
    vxk_cpu_run_parts(cpu_queue(q), select_count, &s, s.parts);
    for (uint32_t p = 0; p < s.parts; p++) {
        uint32_t count = s.before[p];
        s.before[p] = total;
        total += count;
    }
    vxk_cpu_run_parts(cpu_queue(q), select_write, &s, s.parts);
    *n_out = total;
    return VX_OK;
}

struct reduce {
    const uint32_t *in;
    uint32_t n, parts;
    struct {
        uint64_t sum;
        uint32_t min, max;
    } part[VXK_CPU_MAX_PARTS];
};

static void reduce_sum(void *ctx, uint32_t begin, uint32_t end)
{
    struct reduce *r = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(r->n, r->parts, p + 1);
        uint64_t sum = 0;
        for (uint32_t i = vxk_cpu_part(r->n, r->parts, p); i < last; i++)
            sum += r->in[i];
        r->part[p].sum = sum;
    }
}

static void reduce_extremes(void *ctx, uint32_t begin, uint32_t end)
{
    struct reduce *r = ctx;
    for (uint32_t p = begin; p < end; p++) {
        uint32_t last = vxk_cpu_part(r->n, r->parts, p + 1), min = UINT32_MAX, max = 0;
        for (uint32_t i = vxk_cpu_part(r->n, r->parts, p); i < last; i++) {
            min = r->in[i] < min ? r->in[i] : min;
            max = r->in[i] > max ? r->in[i] : max;
        }
        r->part[p].min = min;
        r->part[p].max = max;
    }
}

static void reduce_run(struct vxk_queue *q, struct reduce *r, vxk_work_fn *fn, const uint32_t *in, uint32_t n)
{
    r->in = in;
    r->n = n;
    r->parts = vxk_cpu_parts(cpu_queue(q), n);
    vxk_cpu_run_parts(cpu_queue(q), fn, r, r->parts);
}

vx_err vxk_cpu_sum_u32(struct vxk_queue *q, const uint32_t *in, uint64_t *out, uint32_t n)
{
    struct reduce r;
    uint64_t sum = 0;
    reduce_run(q, &r, reduce_sum, in, n);
    for (uint32_t p = 0; p < r.parts; p++)
        sum += r.part[p].sum;
    *out = sum;
    return VX_OK;
}

vx_err vxk_cpu_min_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    struct reduce r;
    uint32_t min = UINT32_MAX;
    reduce_run(q, &r, reduce_extremes, in, n);
    for (uint32_t p = 0; p < r.parts; p++)
        min = r.part[p].min < min ? r.part[p].min : min;
    *out = min;
    return VX_OK;
}

vx_err vxk_cpu_max_u32(struct vxk_queue *q, const uint32_t *in, uint32_t *out, uint32_t n)
{
    struct reduce r;
    uint32_t max = 0;
    reduce_run(q, &r, reduce_extremes, in, n);
    for (uint32_t p = 0; p < r.parts; p++)
        max = r.part[p].max > max ? r.part[p].max : max;
    *out = max;
    return VX_OK;
}
