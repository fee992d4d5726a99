#include "scene_frame.h"

#include <math.h>

/* Of a rotation matrix with rows m[0..2], m[4..6], m[8..10]. */
static void quaternion(const double m[12], double q[4])
{
    const double r[3][3] = {{m[0], m[1], m[2]}, {m[4], m[5], m[6]}, {m[8], m[9], m[10]}};
    double trace[4] = {r[0][0] - r[1][1] - r[2][2], r[1][1] - r[0][0] - r[2][2], r[2][2] - r[0][0] - r[1][1],
                       r[0][0] + r[1][1] + r[2][2]};
    int k = 0;
    for (int i = 1; i < 4; i++)
        k = trace[i] > trace[k] ? i : k;
    const double largest = sqrt(1 + trace[k]) / 2;
    if (k == 3) {
        for (int i = 0; i < 3; i++)
            q[i] = (r[(i + 2) % 3][(i + 1) % 3] - r[(i + 1) % 3][(i + 2) % 3]) / (4 * largest);
    } else {
        for (int i = 0; i < 3; i++)
            q[i] = (r[k][i] + r[i][k]) / (4 * largest);
        q[3] = (r[(k + 2) % 3][(k + 1) % 3] - r[(k + 1) % 3][(k + 2) % 3]) / (4 * largest);
    }
    q[k] = largest;
}

void scene_frame_depth(const struct scene *scene, uint32_t frame, uint32_t frames_per_orbit, uint32_t width,
                       uint32_t height, float *data, struct vx_frame *out)
{
    const double f = width, max_range = 8;
    double pose[12], d[3], o[3];

    scene_pose(scene, frame, frames_per_orbit, pose);
    *out = (struct vx_frame){.sensor = VX_DEPTH,
                             .stamp_ns = 1000 + (int64_t)frame * 33000000,
                             .n_poses = 1,
                             .width = width,
                             .height = height,
                             .fx = f,
                             .fy = f,
                             .cx = (width - 1) / 2.0,
                             .cy = (height - 1) / 2.0,
                             .data = data,
                             .data_bytes = (uint64_t)width * height * sizeof *data,
                             .max_range_m = max_range,
                             .no_return_value = NAN};
    quaternion(pose, out->pose[0].rotation_xyzw);
    for (int k = 0; k < 3; k++)
        o[k] = out->pose[0].position_m[k] = pose[4 * k + 3];
    for (uint32_t v = 0; v < height; v++)
        for (uint32_t u = 0; u < width; u++) {
            const double x = (u - out->cx) / f, y = (v - out->cy) / f;
            for (int k = 0; k < 3; k++)
                d[k] = pose[4 * k] * x + pose[4 * k + 1] * y + pose[4 * k + 2];
            const double t = scene_raycast(scene, frame, o, d, 2 * max_range);
            data[(size_t)v * width + u] = isfinite(t) ? (float)t : INFINITY;
        }
}
