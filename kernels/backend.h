/*
 * backend.h - what the backends show to vxk.c.  Not for users of the library.
 */
#ifndef VXK_BACKEND_H
#define VXK_BACKEND_H

#include "vxk.h"

#ifdef __cplusplus
extern "C" {
#endif

vx_err vxk_cpu_open(int n_threads, struct vxk_dev **out, struct vx_detail *detail);
vx_err vxk_guard_open(int n_threads, struct vxk_dev **out, struct vx_detail *detail);
vx_err vxk_cuda_open(int index, struct vxk_dev **out, struct vx_detail *detail);
/* How many CUDA devices answer; 0 without a driver. */
int vxk_cuda_count(void);

#ifdef __cplusplus
}
#endif

#endif
