/* Variants for the readings of a frame: a thread a pixel or ray, counters added up in the block first. */
#include "tuned_frame.cuh"

enum { THREADS = 256 };

/* Adds the reasons of a block's readings to the frame's counters; why < 0: none. */
struct counts {
    uint32_t n[VXK_N_COUNTS];
};

static __device__ __forceinline__ void counts_begin(struct counts *c)
{
    if (threadIdx.x < VXK_N_COUNTS)
        c->n[threadIdx.x] = 0;
    __syncthreads();
}

static __device__ __forceinline__ void counts_add(struct counts *c, int why)
{
    uint32_t lane = threadIdx.x & 31;
    for (int k = 0; k < VXK_N_COUNTS; k++) {
        uint32_t m = __ballot_sync(VXK_FULL, why == k);
        if (m && lane == 0)
            atomicAdd(&c->n[k], (uint32_t)__popc(m));
    }
}

static __device__ __forceinline__ void counts_end(const struct counts *c, struct vxk_frame_counters *to)
{
    __syncthreads();
    if (threadIdx.x < VXK_N_COUNTS && c->n[threadIdx.x])
        vxk_atomic_add64(&to->counts[threadIdx.x], c->n[threadIdx.x]);
}

/* Eight threads a strip. */
static __global__ void __launch_bounds__(THREADS)
    prepare(const __grid_constant__ struct vxk_frame_prepare_args a, uint32_t n, const uint32_t *n_dev,
            uint32_t per)
{
    vxk_kernel_begin();
    __shared__ struct counts c;
    uint32_t end = vxk_launch_end(n, n_dev, per);
    counts_begin(&c);
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < (uint64_t)end * VXK_STRIP;
         base += (uint64_t)gridDim.x * THREADS) {
        uint32_t t = (uint32_t)(base + threadIdx.x), i = t / VXK_STRIP;
        int row = (int)i / a.f.n_strips, u = ((int)i - row * a.f.n_strips) * VXK_STRIP + (int)(t % VXK_STRIP);
        counts_add(&c, i < end && u < a.f.width ? vxk_prepare_pixel(&a, row, u) : -1);
    }
    counts_end(&c, a.s.c);
}
VXK_TUNED_LAUNCH(frame_prepare, prepare, THREADS, THREADS / VXK_STRIP, 64)

/* A thread a ray. */
static __global__ void __launch_bounds__(THREADS)
    ray(const __grid_constant__ struct vxk_frame_ray_args a, uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_begin();
    __shared__ struct counts c;
    uint32_t end = vxk_launch_end(n, n_dev, per);
    counts_begin(&c);
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < end; base += (uint64_t)gridDim.x * THREADS) {
        uint64_t i = base + threadIdx.x;
        counts_add(&c, i < end ? vxk_read_ray(&a, (uint32_t)i) : -1);
    }
    counts_end(&c, a.s.c);
}
VXK_TUNED_LAUNCH(frame_ray, ray, THREADS, THREADS, 8)

/* Eight threads a strip, which share the step; four of them a tile. */
static __global__ void __launch_bounds__(THREADS)
    smooth(const __grid_constant__ struct vxk_frame_smooth_args a, uint32_t n, const uint32_t *n_dev,
           uint32_t per)
{
    vxk_kernel_begin();
    const struct vxk_frame *f = &a.f;
    uint32_t end = vxk_launch_end(n, n_dev, per);
    const int width = f->width;
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < (uint64_t)end * VXK_STRIP;
         base += (uint64_t)gridDim.x * THREADS) {
        uint32_t t = (uint32_t)(base + threadIdx.x), i = t / VXK_STRIP, pairs = 0;
        /* in the order in which pixels lie, so that a warp stores whole sectors */
        int row = f->step_v == 1 ? (int)i % f->height : (int)i / f->n_strips,
            u0 = (f->step_v == 1 ? (int)i / f->height : (int)i % f->n_strips) * VXK_STRIP,
            u = u0 + (int)(t % VXK_STRIP), step;
        bool on = i < end && u < width;
        const float *p = a.s.inverse + (on ? row * width + u : 0);
        struct vxk_bounds b = vxk_bounds_none();
        struct vxk_smooth m;
        float most, twice, gate;
        m.near = m.sum = m.q0 = most = on ? *p : 0.0f;
        m.sqx = m.sqy = 0.0f;
        twice = 2.0f * m.q0;
        gate = 7.5f * f->noise + 0.25f * m.q0 * m.q0;
        for (int o = 1; o < VXK_STRIP; o <<= 1)
            most = vxk_max(most, __shfl_xor_sync(VXK_FULL, most, o));
        step = vxk_smooth_step(f, most);
        /* a pair that is left out is one of readings that are not there: it adds nothing */
#pragma unroll
        for (int j = 0; j <= 2; j++) {
            const int dv = j * step, first = j ? -2 : 1;
            const bool rows = on && row - dv >= 0 && row + dv < f->height;
            float qp[5], qm[5];
#pragma unroll
            for (int h = first; h <= 2; h++) {
                int du = h * step, away = dv * width + du;
                bool there = rows && u0 - abs(du) >= 0 && u0 + VXK_STRIP - 1 + abs(du) < width;
                qp[h - first] = there ? p[away] : 0.0f;
                qm[h - first] = there ? p[-away] : 0.0f;
            }
#pragma unroll
            for (int h = first; h <= 2; h++) {
                float a1 = qp[h - first], a2 = qm[h - first], both = a1 + a2, apart = a1 - a2;
                bool in = (a1 > 0.0f) & (a2 > 0.0f) & (vxk_abs(both - twice) < gate);
                if (j <= 1 && h >= -1 && h <= 1)
                    m.near = vxk_max(m.near, vxk_max(a1, a2));
                m.sum += in ? both : 0.0f;
                pairs += in ? vxk_smooth_counts(h, j) : 0;
                if (h)
                    m.sqx += in ? (float)(h * step) * apart : 0.0f;
                if (j)
                    m.sqy += in ? (float)(j * step) * apart : 0.0f;
            }
        }
        vxk_smooth_counted(&m, pairs, (float)(step * step));
        if (on) {
            struct vxk_smoothed o = vxk_smooth_solve(f, row, u, a.s.depth[row * width + u], &m);
            vxk_store_pixel(&a, row, u, &o);
            if (a.s.weight)
                vxk_weigh_pixel(&a, row, u, &o);
            b = o.b;
        }
        vxk_join_lane(&b, 1);
        vxk_join_lane(&b, 2);
        if (on && t % VXK_TILE == 0)
            a.s.strip[row * f->n_tx[0] + u / VXK_TILE] = b;
    }
}
VXK_TUNED_LAUNCH(frame_smooth, smooth, THREADS, THREADS / VXK_STRIP, 64)

/* A block a tile of the highest level, a thread a tile of the lowest.  In LiDAR frames beside the last pass
 * over hits, which has nothing to do with the tiles. */
static __global__ void __launch_bounds__(THREADS)
    levels(const __grid_constant__ struct vxk_frame_levels_args a, uint32_t n, const uint32_t *n_dev,
           uint32_t per)
{
    const bool beside = a.f.sensor == VXK_SENSOR_LIDAR;
    if (beside)
        vxk_kernel_beside_begin();
    else
        vxk_kernel_begin();
    __shared__ struct vxk_bounds low[16][17], mid[16];
    const struct vxk_frame *f = &a.f;
    uint32_t end = vxk_launch_end(n, n_dev, per), t = threadIdx.x;
    for (uint32_t i = blockIdx.x; i < end; i += gridDim.x) {
        int ty = (int)i / f->n_tx[2], tx = (int)i - ty * f->n_tx[2];
        int x0 = tx * 16 + (int)(t & 15), y0 = ty * 16 + (int)(t >> 4);
        low[t >> 4][t & 15] =
            x0 < f->n_tx[0] && y0 < f->n_ty[0] ? vxk_level_0(&a, x0, y0) : vxk_bounds_none();
        __syncthreads();
        if (t < 16) {
            int x1 = tx * 4 + (int)(t & 3), y1 = ty * 4 + (int)(t >> 2);
            struct vxk_bounds b = vxk_bounds_none();
            for (uint32_t k = 0; k < 16; k++)
                vxk_bounds_join(&b, &low[(t >> 2) * 4 + (k >> 2)][(t & 3) * 4 + (k & 3)]);
            if (x1 < f->n_tx[1] && y1 < f->n_ty[1])
                a.s.level[1][y1 * f->n_tx[1] + x1] = b;
            mid[t] = b;
        }
        __syncthreads();
        if (t == 0) {
            struct vxk_bounds b = vxk_bounds_none();
            for (uint32_t k = 0; k < 16; k++)
                vxk_bounds_join(&b, &mid[k]);
            a.s.level[2][i] = b;
        }
        __syncthreads();
    }
    if (beside)
        vxk_kernel_beside_end();
}
VXK_TUNED_LAUNCH(frame_levels, levels, THREADS, 1, 8)

/* Four threads a bin, a side each. */
static __global__ void __launch_bounds__(THREADS)
    normal(const __grid_constant__ struct vxk_frame_normal_args a, uint32_t n, const uint32_t *n_dev,
           uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per);
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < (uint64_t)end * 4;
         base += (uint64_t)gridDim.x * THREADS) {
        uint32_t i = (uint32_t)((base + threadIdx.x) / 4), own = VXK_NONE, side[4];
        bool hits = i < end && vxk_bin_hits(&a.s, i);
        if (hits)
            own = vxk_normal_side(&a, i, (int)(threadIdx.x % 4));
        for (int k = 0; k < 4; k++)
            side[k] = __shfl_sync(VXK_FULL, own, k, 4);
        if (hits && threadIdx.x % 4 == 0)
            vxk_normal_from(&a, i, side);
    }
}
VXK_TUNED_LAUNCH(frame_normal, normal, THREADS, THREADS / 4, 64)
