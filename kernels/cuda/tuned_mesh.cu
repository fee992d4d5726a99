/* Triangles of the mesh: one warp a leaf, a cell a thread, so that stores of a warp lie side by side. */
#include "../body/mesh.h"
#include "tuned.cuh"

enum { WARPS = 4 };

/* Lists the cells of a leaf that have triangles, in their order: n of them. */
static __device__ uint32_t list_cells(const struct vxk_mesh_leaf *l, uint32_t lane, uint16_t *cells)
{
    uint32_t half = lane < 16 ? (uint32_t)(l->cell[lane >> 1] >> ((lane & 1) * 32)) : 0, n = __popc(half),
             sum = n;
    for (int d = 1; d < 16; d *= 2) {
        uint32_t below = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= (uint32_t)d)
            sum += below;
    }
    uint32_t total = __shfl_sync(0xffffffffu, sum, 15);
    for (uint32_t at = sum - n; half; half &= half - 1)
        cells[at++] = (uint16_t)(lane * 32 + vxk_ctz32(half));
    return total;
}

static __global__ void __launch_bounds__(WARPS * 32)
    triangles(const __grid_constant__ struct vxk_mesh_triangles_args a, uint32_t n_leaves)
{
    __shared__ uint16_t all_rows[WARPS][81], all_cells[WARPS][512];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, e = blockIdx.x * WARPS + warp;
    uint16_t *rows = all_rows[warp], *cells = all_cells[warp];
    if (e >= n_leaves)
        return;
    const uint32_t target = vxk_mesh_slot(a.slot, a.first + e);
    const struct vxk_mesh_leaf *l = &a.leaf[target];
    if (a.triangle_base[a.first + e] == a.triangle_base[a.first + e + 1])
        return; /* it has none, or none is wanted */
    const uint32_t *link = a.link + (uint64_t)target * 27, *above = a.above + (uint64_t)e * 8;
    for (uint32_t r = lane; r < 81; r += 32) { /* negative corners, z = -1 .. 8, of rows x, y = 0 .. 8 */
        uint32_t valid, minus;
        vxk_mesh_row(a.signs, link, (int32_t)(r / 9), (int32_t)(r % 9), &valid, &minus);
        rows[r] = (uint16_t)minus;
    }
    uint32_t n_cells = list_cells(l, lane, cells), base = a.triangle_base[a.first + e] - a.first_base;
    __syncwarp();
    for (uint32_t first = 0; first < n_cells; first += 32) {
        uint32_t k = first + lane, x = 0, y = 0, z = 0, cell = 0, n = 0, sum;
        if (k < n_cells) {
            x = cells[k] >> 6;
            y = cells[k] >> 3 & 7;
            z = cells[k] & 7;
            const uint16_t *r = rows + x * 9 + y;
            cell = vxk_mesh_case(r[0], r[1], r[9], r[10], z + 1);
            n = vxk_mc_triangles(cell);
        }
        sum = n;
        for (int d = 1; d < 32; d *= 2) {
            uint32_t below = __shfl_up_sync(0xffffffffu, sum, d);
            if (lane >= (uint32_t)d)
                sum += below;
        }
        uint32_t *out = a.triangles + 3 * (uint64_t)(base + sum - n);
        for (uint32_t t = 0; t < 3 * n; t++) {
            uint32_t edge = vxk_mc_edge(cell, 0, t), corner = vxk_mc_edge_corner(edge);
            uint32_t vx = x + (corner >> 2), vy = y + (corner >> 1 & 1), vz = z + (corner & 1);
            uint32_t owner = above[(vx >> 3) << 2 | (vy >> 3) << 1 | vz >> 3];
            out[t] = a.vertex_base[owner] + vxk_mesh_rank(&a.leaf[vxk_mesh_slot(a.slot, owner)], vx & 7,
                                                          (vy & 7) << 3 | (vz & 7), edge >> 2);
        }
        base += __shfl_sync(0xffffffffu, sum, 31);
    }
}

extern "C" cudaError_t vxk_cuda_tuned_mesh_triangles(const struct vxk_cuda_launch *l)
{
    uint32_t leaves = l->n / 8;
    if (l->n_dev)
        return cudaErrorInvalidValue; /* core knows the count */
    return vxk_launch_plain(l, triangles, (leaves + WARPS - 1) / WARPS, WARPS * 32, 0,
                            *(const struct vxk_mesh_triangles_args *)l->args, leaves);
}
