#include "../backend.h"
vx_err vxk_guard_open(int n_threads, struct vxk_dev **out, struct vx_detail *detail)
{
    return vxk_cpu_open(n_threads, out, detail);
}
