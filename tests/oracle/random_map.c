/* random_map.c - small random maps for the oracles. */
#include "random_map.h"

#include <math.h>

static int32_t clamp_t(double t)
{
    return (int32_t)(t > 32767 ? 32767 : t < -32767 ? -32767 : t);
}

static void one_voxel(struct grid_fixture *f, uint64_t *seed, const int32_t p[3], double smooth, int style)
{
    double u = grid_fixture_uniform(seed, 0, 1);
    uint32_t weight = 1 + (uint32_t)(grid_fixture_random(seed) % 5);
    double active = style == 0 ? 0.7 : style == 1 ? 0.05 : style == 2 ? 0.95 : 0.004;
    double t = style == 2 ? smooth + grid_fixture_uniform(seed, -300, 300)
                          : grid_fixture_uniform(seed, -32767, 32767);

    if (style == 2 && fabs(smooth) > 12000)
        active = 0.02;
    if (u < 0.03)
        t = 0; /* exactly on the surface */
    if (u < active)
        grid_fixture_set(f, p[0], p[1], p[2], VXK_ACTIVE, vxk_tsdf_pack(clamp_t(t), weight));
    else if (u < active + (1 - active) * 0.6)
        grid_fixture_set(f, p[0], p[1], p[2], VXK_FREE, 0);
    if (u < active && style == 3) /* pairs, so that lone sites come out */
        grid_fixture_set(f, p[0] - 1, p[1], p[2], VXK_ACTIVE, vxk_tsdf_pack(-clamp_t(t) - 1, weight));
}

void random_map_fill(struct grid_fixture *f, uint64_t *seed, const int32_t corner[3], int32_t size, int style)
{
    double phase[3], slope[3];

    for (int a = 0; a < 3; a++) {
        phase[a] = grid_fixture_uniform(seed, 0, 6.28);
        slope[a] = grid_fixture_uniform(seed, 0.1, 0.4);
    }
    for (int32_t x = 0; x < size; x++)
        for (int32_t y = 0; y < size; y++)
            for (int32_t z = 0; z < size; z++) {
                int32_t p[3] = {corner[0] + x, corner[1] + y, corner[2] + z};
                double s = sin(phase[0] + slope[0] * x) + sin(phase[1] + slope[1] * y) +
                           sin(phase[2] + slope[2] * z);
                uint64_t cell = (uint64_t)(uint32_t)(p[0] >> 3) * 73856093u ^
                                (uint64_t)(uint32_t)(p[1] >> 3) * 19349663u ^
                                (uint64_t)(uint32_t)(p[2] >> 3) * 83492791u;
                uint64_t kind = vxk_mix64(cell + (uint64_t)style) % 8;
                if (kind == 0 && style != 2)
                    grid_fixture_set(f, p[0], p[1], p[2], VXK_FREE, 0);
                else if (kind != 1)
                    one_voxel(f, seed, p, 12000 * s, style);
            }
}

void random_map_ball(struct grid_fixture *f, const double centre[3], double radius, double band, double unit)
{
    int32_t lo[3], hi[3];

    for (int a = 0; a < 3; a++) {
        lo[a] = ((int32_t)floor(centre[a] - radius - band - 2) & ~7) - 8;
        hi[a] = ((int32_t)ceil(centre[a] + radius + band + 2) | 7) + 8;
    }
    for (int32_t x = lo[0]; x <= hi[0]; x++)
        for (int32_t y = lo[1]; y <= hi[1]; y++)
            for (int32_t z = lo[2]; z <= hi[2]; z++) {
                double dx = x + 0.5 - centre[0], dy = y + 0.5 - centre[1], dz = z + 0.5 - centre[2];
                double d = sqrt(dx * dx + dy * dy + dz * dz) - radius;
                if (fabs(d) <= band)
                    grid_fixture_set(f, x, y, z, VXK_ACTIVE, vxk_tsdf_pack(clamp_t(rint(d * unit)), 3));
                else if (d > 0)
                    grid_fixture_set(f, x, y, z, VXK_FREE, 0);
            }
}
