/* Variants for what a frame may change: the tiles behind a chunk, word or cell are shared out among a few
 * lanes. */
#include "tuned_frame.cuh"

enum { THREADS = 128, LANES = 8, CELL_LANES = 4 };

/* The tiles of one of `lanes` threads, two rows of them. */
static __device__ __forceinline__ struct vxk_stride own_stride(uint32_t lanes)
{
    struct vxk_stride by;
    by.nx = (int32_t)lanes / 2;
    by.ny = 2;
    by.x = (int32_t)(threadIdx.x % (lanes / 2));
    by.y = (int32_t)(threadIdx.x / (lanes / 2) % 2);
    return by;
}

/* What all lanes of an element saw together. */
static __device__ __forceinline__ uint32_t shared_look(const struct vxk_frame *f, struct vxk_look *o,
                                                       int lanes)
{
    for (int lane = 1; lane < lanes; lane <<= 1)
        vxk_join_lane(&o->b, lane);
    return vxk_look_says(f, o);
}

/* Eight lanes a chunk of the box. */
static __global__ void __launch_bounds__(THREADS)
    pick_chunk(const __grid_constant__ struct vxk_frame_pick_chunk_args a, uint32_t n, const uint32_t *n_dev,
               uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per);
    for (uint32_t base = blockIdx.x * THREADS / LANES; base < end; base += gridDim.x * THREADS / LANES) {
        uint32_t i = base + threadIdx.x / LANES, may;
        struct vxk_stride by = own_stride(LANES);
        struct vxk_look o = vxk_look_chunk(&a, min(i, end - 1), &by);
        may = shared_look(&a.f, &o, LANES);
        if (threadIdx.x % LANES == 0 && i < end)
            vxk_take_chunk(&a, i, may);
    }
}
VXK_TUNED_LAUNCH(frame_pick_chunk, pick_chunk, THREADS, THREADS / LANES, 16)

/* Eight lanes a word. */
static __global__ void __launch_bounds__(THREADS)
    pick_word(const __grid_constant__ struct vxk_frame_pick_word_args a, uint32_t n, const uint32_t *n_dev,
              uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per);
    for (uint32_t base = blockIdx.x * THREADS / LANES; base < end; base += gridDim.x * THREADS / LANES) {
        uint32_t i = base + threadIdx.x / LANES, may;
        struct vxk_stride by = own_stride(LANES);
        struct vxk_look o = vxk_look_word(&a, min(i, end - 1), &by);
        may = shared_look(&a.f, &o, LANES);
        if (threadIdx.x % LANES == 0 && i < end)
            vxk_take_word(&a, i, may);
    }
}
VXK_TUNED_LAUNCH(frame_pick_word, pick_word, THREADS, THREADS / LANES, 16)

/* LiDAR: four lanes a cell, for tiles and for bins.  Depth: a thread a cell, few tiles are behind one. */
static __global__ void __launch_bounds__(THREADS)
    pick_cell(const __grid_constant__ struct vxk_frame_pick_cell_args a, uint32_t n, const uint32_t *n_dev,
              uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per);
    if (a.f.sensor == VXK_SENSOR_DEPTH) {
        for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < end; i += gridDim.x * THREADS)
            vxk_frame_pick_cell(&a, i);
        return;
    }
    for (uint32_t base = blockIdx.x * THREADS / CELL_LANES; base < end;
         base += gridDim.x * THREADS / CELL_LANES) {
        uint32_t i = base + threadIdx.x / CELL_LANES, at = min(i, end - 1), may, reached, lanes;
        struct vxk_stride by = own_stride(CELL_LANES);
        struct vxk_vec3 q = vxk_cell_middle(&a, at);
        struct vxk_look o = vxk_look_cell(&a, &q, &by);
        const struct vxk_word *old;
        may = vxk_cell_may(&a, at, shared_look(&a.f, &o, CELL_LANES), &old);
        reached = may && !(may & VXK_MAY_HIT) && vxk_lidar_reaches(&a.f, &a.s, &q, &by);
        lanes = __ballot_sync(VXK_FULL, reached) >> (threadIdx.x & 31 & ~(CELL_LANES - 1)) &
                ((1u << CELL_LANES) - 1);
        if (!(may & VXK_MAY_HIT) && !lanes)
            may = 0;
        if (threadIdx.x % CELL_LANES == 0 && i < end)
            vxk_take_cell(&a, i, may, old);
    }
}
VXK_TUNED_LAUNCH(frame_pick_cell, pick_cell, THREADS, THREADS / CELL_LANES, 16)
