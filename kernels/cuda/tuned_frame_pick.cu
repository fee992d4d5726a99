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

/* vxk_lidar_reaches for the lanes that ask, whose bins are rect, four lanes for each of them. */
static __device__ __forceinline__ bool reaches(const struct vxk_frame_args *a, bool ask,
                                               const int32_t rect[4], float nearest, uint32_t lane,
                                               uint8_t *list)
{
    enum { AT_ONCE = VXK_WARP / CELL_LANES };
    const uint32_t asked = __ballot_sync(VXK_FULL, ask), n = (uint32_t)__popc(asked),
                   rank = (uint32_t)__popc(asked & ((1u << lane) - 1));
    bool yes = false;
    if (ask)
        list[rank] = (uint8_t)lane;
    __syncwarp();
    for (uint32_t k0 = 0; k0 < n; k0 += AT_ONCE) {
        uint32_t k = k0 + lane / CELL_LANES, of = list[min(k, n - 1)], says;
        int32_t v = __shfl_sync(VXK_FULL, rect[0], (int)of), v1 = __shfl_sync(VXK_FULL, rect[1], (int)of),
                u0 = __shfl_sync(VXK_FULL, rect[2], (int)of) + (int32_t)(lane % CELL_LANES),
                u1 = __shfl_sync(VXK_FULL, rect[3], (int)of);
        float from = __shfl_sync(VXK_FULL, nearest, (int)of);
        bool found = false;
        for (; v <= v1 && !found; v++)
            for (int32_t u = u0; u <= u1; u += CELL_LANES) {
                int32_t c = vxk_turned_column(&a->f, u);
                found |= c >= 0 && vxk_clear_to(&a->f, a->s.depth[v * a->f.width + c]) >= from;
            }
        says = __ballot_sync(VXK_FULL, found);
        if (rank / AT_ONCE == k0 / AT_ONCE)
            yes = says >> (rank % AT_ONCE * CELL_LANES) & ((1u << CELL_LANES) - 1);
    }
    __syncwarp();
    return yes;
}

/* What the kernels behind need of a cell of the work list. */
static __device__ __forceinline__ void keep_task(const struct vxk_frame_args *a, uint32_t i, uint32_t k,
                                                 const struct vxk_word *old, int few, const int32_t rect[4])
{
    const struct vxk_frame_word *fw = &a->s.word[i >> 6];
    const uint32_t cell = i & 63;
    int32_t base[3];
    uint32_t was = VXK_NONE, rows = (uint32_t)(rect[1] - rect[0] + 1);
    int4 *to = (int4 *)&a->s.task[k];
    if (old)
        was = old->leaf >> cell & 1   ? vxk_leaf_number(a->g.leaves, vxk_leaf_at(&a->g, old, cell))
              : old->tile >> cell & 1 ? VXK_TASK_TILE
                                      : VXK_NONE;
    vxk_frame_cell_base(a, fw, cell, base);
    to[0] = make_int4((int)was,
                      (int)vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell),
                      rect[2], rect[0]);
    to[1] = make_int4(!few        ? (int)VXK_TASK_MANY
                      : rows == 0 ? 0
                                  : (int)(rows << 16 | (uint32_t)(rect[3] - rect[2] + 1)),
                      base[0], base[1], base[2]);
}

/* A LiDAR's cells, one a lane. */
static __device__ __forceinline__ void pick_lidar(const struct vxk_frame_args *a, uint32_t i, bool on,
                                                  uint32_t lane, uint8_t *list)
{
    const struct vxk_stride all = {0, 0, 1, 1};
    const struct vxk_word *old = NULL;
    int32_t rect[4] = {0, -1, 0, -1};
    float nearest = 0.0f;
    uint32_t may = on ? vxk_cell_may(a, i, VXK_MAY_FREE, &old) : 0, k;
    int few = 1;
    bool ask = false;
    if (may) { /* there is something that a look can change */
        struct vxk_vec3 q = vxk_cell_middle(a, i);
        struct vxk_heading h = vxk_lidar_heading(&a->f, &q);
        struct vxk_look o = vxk_look_heading(&a->f, &a->s, &h, VXK_CELL_ROUND, &all);
        may = (may & VXK_MAY_HIT) | (vxk_look_says(&a->f, &o) & ~(uint32_t)VXK_MAY_HIT);
        if (may && !a->s.skew.on) {
            few = vxk_heading_bins(&a->f, &a->s, &h, rect);
            ask = few && !(may & VXK_MAY_HIT);
            if (few && a->f.bins_are_rays && rect[0] <= rect[1])
                vxk_heading_tighten(&a->f, &a->s, &h, q.z, rect);
        }
        nearest = vxk_cell_nearest(h.d2);
    }
    if (__any_sync(VXK_FULL, ask) && !reaches(a, ask, rect, nearest, lane, list) && ask)
        may = 0;
    k = on ? vxk_take_cell(a, i, may, old) : VXK_NONE;
    if (k < a->s.room_work) {
        keep_task(a, i, k, old, few, rect);
        if (!few)
            a->s.many[vxk_count_up(&a->s.c->n_many)] = k;
    }
}

/* A thread a cell; few tiles are behind one. */
static __global__ void __launch_bounds__(THREADS)
    pick_cell(const __grid_constant__ struct vxk_frame_pick_cell_args a, uint32_t n, const uint32_t *n_dev,
              uint32_t per)
{
    vxk_kernel_begin();
    __shared__ uint8_t lists[THREADS / VXK_WARP][VXK_WARP];
    uint32_t end = vxk_launch_end(n, n_dev, per);
    for (uint32_t base = blockIdx.x * THREADS; base < end; base += gridDim.x * THREADS) {
        uint32_t i = base + threadIdx.x;
        if (a.f.sensor == VXK_SENSOR_LIDAR)
            pick_lidar(&a, min(i, end - 1), i < end, threadIdx.x & 31, lists[threadIdx.x / VXK_WARP]);
        else if (i < end)
            vxk_frame_pick_cell(&a, i);
    }
}
VXK_TUNED_LAUNCH(frame_pick_cell, pick_cell, THREADS, THREADS, 16)
