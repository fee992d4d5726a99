#include "vxk.h"
#include "backend.h"

static const char *const kernel_names[VXK_N_KERNELS] = {
#define VXK_KERNEL(name) #name,
#include "body/kernels.def"
#undef VXK_KERNEL
};

const char *vxk_kernel_name(enum vxk_kernel k)
{
    return (unsigned)k < VXK_N_KERNELS ? kernel_names[k] : "no such kernel";
}

int vxk_cuda_available(void)
{
#ifdef VXK_HAVE_CUDA
    return vxk_cuda_count() > 0;
#else
    return 0;
#endif
}

vx_err vxk_open(enum vxk_backend backend, int index, int n_threads, struct vxk_dev **out,
                struct vx_detail *detail)
{
    *out = NULL;
    switch (backend) {
    case VXK_CPU:
        return vxk_cpu_open(n_threads, out, detail);
    case VXK_GUARD:
        return vxk_guard_open(n_threads, out, detail);
    case VXK_CUDA:
#ifdef VXK_HAVE_CUDA
        return vxk_cuda_open(index, out, detail);
#else
        (void)index;
        return vx_fail(
            detail, VX_E_UNIMPLEMENTED, "backend",
            "this program was built without CUDA: use the cpu backend, or build where nvcc is installed");
#endif
    }
    return vx_fail(detail, VX_E_INVALID, "backend", "no backend has the number %d", (int)backend);
}
