#include "hist.h"

/* Values below 16 have a bin each; above, the four bits after the leading one choose the bin. */
static uint32_t bin_of(uint64_t value)
{
    if (value < VXD_HIST_SUB)
        return (uint32_t)value;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(value);
    uint32_t bin = (power - 3) * VXD_HIST_SUB + (uint32_t)(value >> (power - 4) & (VXD_HIST_SUB - 1));
    return bin < VXD_HIST_BINS ? bin : VXD_HIST_BINS - 1;
}

static uint64_t upper_end(uint32_t bin)
{
    if (bin < VXD_HIST_SUB)
        return bin;
    uint32_t power = bin / VXD_HIST_SUB + 3;
    uint64_t step = (uint64_t)1 << (power - 4);
    return (VXD_HIST_SUB + bin % VXD_HIST_SUB + 1) * step - 1;
}

void vxd_hist_add(struct vxd_hist *hist, uint64_t value)
{
    ++hist->n;
    hist->sum += value;
    if (value > hist->max)
        hist->max = value;
    ++hist->bin[bin_of(value)];
}

uint64_t vxd_hist_quantile(const struct vxd_hist *hist, double q)
{
    if (!hist->n)
        return 0;
    double want = q * (double)hist->n;
    uint64_t below = 0;
    for (uint32_t i = 0; i < VXD_HIST_BINS; ++i) {
        below += hist->bin[i];
        if ((double)below >= want && below) {
            uint64_t end = upper_end(i);
            return end < hist->max ? end : hist->max;
        }
    }
    return hist->max;
}

static uint64_t us(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}

void vxd_latency_add(struct vxd_latency *latency, uint64_t arrived_ns, uint64_t begun_ns, uint64_t ended_ns,
                     uint64_t answered_ns)
{
    vxd_hist_add(&latency->all, us(arrived_ns, answered_ns));
    vxd_hist_add(&latency->wait, us(arrived_ns, begun_ns));
    vxd_hist_add(&latency->run, us(begun_ns, ended_ns));
    vxd_hist_add(&latency->reply, us(ended_ns, answered_ns));
}
