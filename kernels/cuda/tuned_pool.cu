/* Pages for a frame, taken beside the launch before. */
#include "../body/pool.h"
#include "tuned.cuh"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    take(const __grid_constant__ struct vxk_pool_take_args a, uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_beside_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per);
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < end;
         i += (uint64_t)gridDim.x * THREADS)
        vxk_pool_take(&a, (uint32_t)i);
    vxk_kernel_beside_end();
}
VXK_TUNED_LAUNCH(pool_take, take, THREADS, THREADS, 8)
