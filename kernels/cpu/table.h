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

struct vxk_cpu_kernel {
    void (*run)(const void *args, uint32_t begin, uint32_t end);
    size_t args_bytes;
};

extern const struct vxk_cpu_kernel vxk_cpu_table_baseline[];
extern const struct vxk_cpu_kernel vxk_cpu_table_avx2[]; /* x86-64 only */

#endif
