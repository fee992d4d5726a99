/*
 * hist.h - a log-linear histogram of durations: 16 steps in each power of two, so a quantile is off by at
 * most 1/16. Values of 2^39 and more (six days, in microseconds) share the last step.
 *
 * Thread: one at a time.
 */
#ifndef VXD_HIST_H
#define VXD_HIST_H

#include <stdint.h>

enum { VXD_HIST_SUB = 16, VXD_HIST_POWERS = 36, VXD_HIST_BINS = VXD_HIST_SUB * VXD_HIST_POWERS };

struct vxd_hist {
    uint64_t n;
    uint64_t sum;
    uint64_t max;
    uint32_t bin[VXD_HIST_BINS];
};

/* What a kind of work takes, in microseconds: altogether, and its parts. */
struct vxd_latency {
    struct vxd_hist all;
    struct vxd_hist wait;  /* from arrival until it ran */
    struct vxd_hist run;   /* on whatever thread */
    struct vxd_hist reply; /* from then until the answer was with its socket */
    uint64_t n_at_once;    /* answered by the loop itself */
};

void vxd_hist_add(struct vxd_hist *hist, uint64_t value);
/* The upper end of the bin that holds quantile q (0 .. 1), at most the largest value seen; 0 when empty. */
uint64_t vxd_hist_quantile(const struct vxd_hist *hist, double q);
/* One piece of work, by the times (in ns, rising) at which it arrived, began, ended and was answered. */
void vxd_latency_add(struct vxd_latency *latency, uint64_t arrived_ns, uint64_t begun_ns, uint64_t ended_ns,
                     uint64_t answered_ns);

#endif
