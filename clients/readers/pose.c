/* Poses: matrices and quaternions of files become one position and one unit quaternion. */
#include "vxc_reader.h"

#include <math.h>
#include <string.h>

static const double TOLERANCE = 1e-3; /* of R'R - I and of a quaternion's norm */

/* out = quaternion of unit length in the direction of q. */
static void normalise(const double q[4], double out[4])
{
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++)
        out[i] = q[i] / norm;
}

/* Largest element of |R'R - I|. */
static double deviation(const double r[9])
{
    double worst = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            const double dot = r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j];
            worst = fmax(worst, fabs(dot - (i == j)));
        }
    }
    return worst;
}

static double determinant(const double r[9])
{
    return r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
           r[2] * (r[3] * r[7] - r[4] * r[6]);
}

/* One step of R <- R (3 I - R'R) / 2, which converges to the nearest rotation (Newton's polar decomposition).
 */
static void orthonormalise_step(double r[9])
{
    double gram[9], next[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            gram[3 * i + j] = r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            const double rg = r[3 * i] * gram[j] + r[3 * i + 1] * gram[3 + j] + r[3 * i + 2] * gram[6 + j];
            next[3 * i + j] = (3 * r[3 * i + j] - rg) / 2;
        }
    }
    memcpy(r, next, sizeof next);
}

/* Shepperd's method: divide by the largest of the four components. */
static void quaternion_of(const double r[9], double q[4])
{
    const double trace = r[0] + r[4] + r[8];
    double u[4];
    if (trace > 0) {
        const double s = 2 * sqrt(trace + 1);
        u[0] = (r[7] - r[5]) / s, u[1] = (r[2] - r[6]) / s, u[2] = (r[3] - r[1]) / s, u[3] = s / 4;
    } else if (r[0] >= r[4] && r[0] >= r[8]) {
        const double s = 2 * sqrt(1 + r[0] - r[4] - r[8]);
        u[0] = s / 4, u[1] = (r[1] + r[3]) / s, u[2] = (r[2] + r[6]) / s, u[3] = (r[7] - r[5]) / s;
    } else if (r[4] >= r[8]) {
        const double s = 2 * sqrt(1 + r[4] - r[0] - r[8]);
        u[0] = (r[1] + r[3]) / s, u[1] = s / 4, u[2] = (r[5] + r[7]) / s, u[3] = (r[2] - r[6]) / s;
    } else {
        const double s = 2 * sqrt(1 + r[8] - r[0] - r[4]);
        u[0] = (r[2] + r[6]) / s, u[1] = (r[5] + r[7]) / s, u[2] = s / 4, u[3] = (r[3] - r[1]) / s;
    }
    normalise(u, q);
}

vx_err vxc_pose_from_matrix(const double rows[12], struct vxc_pose *out, struct vx_detail *detail)
{
    for (int i = 0; i < 12; i++)
        if (!isfinite(rows[i]))
            return vx_fail(detail, VX_E_INVALID, "pose", "the pose holds a number that is not finite");
    double r[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            r[3 * i + j] = rows[4 * i + j];
    if (determinant(r) < 0)
        return vx_fail(detail, VX_E_INVALID, "pose", "the pose is a mirror image: det R = %.4g, must be 1",
                       determinant(r));
    const double off = deviation(r);
    if (off > TOLERANCE)
        return vx_fail(detail, VX_E_INVALID, "pose",
                       "the pose is not rigid: |R'R - I| = %.3g, at most %g is accepted", off, TOLERANCE);
    for (int i = 0; i < 4; i++) /* 1e-3 -> 1e-6 -> 1e-12 -> rounding */
        orthonormalise_step(r);
    for (int i = 0; i < 3; i++)
        out->position_m[i] = rows[4 * i + 3];
    quaternion_of(r, out->rotation_xyzw);
    return VX_OK;
}

vx_err vxc_pose_from_quaternion(const double position_m[3], const double xyzw[4], struct vxc_pose *out,
                                struct vx_detail *detail)
{
    double norm2 = 0;
    for (int i = 0; i < 4; i++)
        norm2 += xyzw[i] * xyzw[i];
    if (!isfinite(norm2) || !isfinite(position_m[0]) || !isfinite(position_m[1]) || !isfinite(position_m[2]))
        return vx_fail(detail, VX_E_INVALID, "pose", "the pose holds a number that is not finite");
    if (fabs(sqrt(norm2) - 1) > TOLERANCE)
        return vx_fail(detail, VX_E_INVALID, "pose", "the quaternion's norm is %.6g, must be 1 within %g",
                       sqrt(norm2), TOLERANCE);
    memcpy(out->position_m, position_m, sizeof out->position_m);
    normalise(xyzw, out->rotation_xyzw);
    return VX_OK;
}

/* out = v turned by the unit quaternion q: v + 2 w (u x v) + 2 u x (u x v). */
static void rotate(const double q[4], const double v[3], double out[3])
{
    const double t[3] = {2 * (q[1] * v[2] - q[2] * v[1]), 2 * (q[2] * v[0] - q[0] * v[2]),
                         2 * (q[0] * v[1] - q[1] * v[0])};
    const double w[3] = {q[1] * t[2] - q[2] * t[1], q[2] * t[0] - q[0] * t[2], q[0] * t[1] - q[1] * t[0]};
    for (int i = 0; i < 3; i++)
        out[i] = v[i] + q[3] * t[i] + w[i];
}

void vxc_pose_compose(const struct vxc_pose *a, const struct vxc_pose *b, struct vxc_pose *out)
{
    const double *p = a->rotation_xyzw, *q = b->rotation_xyzw;
    const double product[4] = {
        p[3] * q[0] + p[0] * q[3] + p[1] * q[2] - p[2] * q[1],
        p[3] * q[1] - p[0] * q[2] + p[1] * q[3] + p[2] * q[0],
        p[3] * q[2] + p[0] * q[1] - p[1] * q[0] + p[2] * q[3],
        p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2],
    };
    double moved[3];
    rotate(p, b->position_m, moved);
    struct vxc_pose result;
    for (int i = 0; i < 3; i++)
        result.position_m[i] = a->position_m[i] + moved[i];
    normalise(product, result.rotation_xyzw);
    *out = result;
}

void vxc_pose_invert(const struct vxc_pose *a, struct vxc_pose *out)
{
    const double *q = a->rotation_xyzw;
    struct vxc_pose result = {.rotation_xyzw = {-q[0], -q[1], -q[2], q[3]}};
    double moved[3];
    rotate(result.rotation_xyzw, a->position_m, moved);
    for (int i = 0; i < 3; i++)
        result.position_m[i] = -moved[i];
    *out = result;
}
