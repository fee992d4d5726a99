/*
 * table.h - the element functions as loops, by kernel number.
 *
 * table.c is compiled once for every instruction set below.  No set contracts multiply and add, so all give
 * the same bits; the fastest that the processor has is taken.
 */
#ifndef VXK_CPU_TABLE_H
#define VXK_CPU_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef void vxk_cpu_run(const void *args, uint32_t begin, uint32_t end);

struct vxk_cpu_kernel {
    vxk_cpu_run *run;
    size_t args_bytes;
};
struct vxk_cpu_table {
    const struct vxk_cpu_kernel *kernel; /* [VXK_N_KERNELS] */
    vxk_cpu_run *const *tuned;           /* [VXK_N_KERNELS] variants (tuned.def), or NULL */
};

extern const struct vxk_cpu_table vxk_cpu_table_baseline;
/* x86-64 only */
extern const struct vxk_cpu_table vxk_cpu_table_avx2;
extern const struct vxk_cpu_table vxk_cpu_table_avx512;

#endif
