/* Matrices and quaternions to poses: exact, canonical, and what is refused. */
#include "set_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the rotation of a unit quaternion, and a translation. */
static void rows_of(const double q[4], const double t[3], double m[12])
{
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    const double r[12] = {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),     t[0],
                          2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),     t[1],
                          2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y), t[2]};
    memcpy(m, r, sizeof r);
}

static uint64_t seed = 20240607;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53 * 2 - 1;
}

static void random_quaternion(double q[4])
{
    double norm;
    do {
        norm = 0;
        for (int i = 0; i < 4; i++) {
            q[i] = uniform();
            norm += q[i] * q[i];
        }
    } while (norm < 0.01 || norm > 1);
    for (int i = 0; i < 4; i++)
        q[i] /= sqrt(norm);
}

START_TEST(matrix_round_trip)
{
    printf("seed %llu\n", (unsigned long long)seed);
    for (int n = 0; n < 2000; n++) {
        double q[4], m[12];
        const double t[3] = {100 * uniform(), 100 * uniform(), 100 * uniform()};
        struct vxc_pose pose;
        random_quaternion(q);
        if (n % 4 == 0) /* half turns: the trace is at its least */
            q[3] = 0, q[2] = 0, q[1] = sqrt(1 - fmin(1, q[0] * q[0]));
        const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        for (int i = 0; i < 4; i++)
            q[i] /= norm;
        rows_of(q, t, m);
        ck_assert_int_eq(vxc_pose_from_matrix(m, &pose, NULL), VX_OK);
        set_pose_is(&pose, t[0], t[1], t[2], q[0], q[1], q[2], q[3]);
    }
}
END_TEST

START_TEST(nearly_rigid_is_the_nearest_rotation)
{
    const double t[3] = {0, 0, 0};
    for (int n = 0; n < 200; n++) {
        double q[4], m[12], back[12], worst = 0;
        struct vxc_pose pose;
        random_quaternion(q);
        rows_of(q, t, m);
        for (int i = 0; i < 12; i++)
            m[i] += i % 4 < 3 ? 1e-4 * uniform() : 0;
        ck_assert_int_eq(vxc_pose_from_matrix(m, &pose, NULL), VX_OK);
        rows_of(pose.rotation_xyzw, t, back);
        /* R'M must be symmetric: that is what makes R the nearest rotation to M. */
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < i; j++) {
                double a = 0, b = 0;
                for (int k = 0; k < 3; k++) {
                    a += back[4 * k + i] * m[4 * k + j];
                    b += back[4 * k + j] * m[4 * k + i];
                }
                worst = fmax(worst, fabs(a - b));
            }
        }
        ck_assert_double_lt(worst, 1e-12);
    }
}
END_TEST

static void refuse(const double m[12], const char *words)
{
    struct vxc_pose pose = {.position_m = {7, 7, 7}};
    struct vx_detail detail = {"", ""};
    ck_assert_int_eq(vxc_pose_from_matrix(m, &pose, &detail), VX_E_INVALID);
    ck_assert_msg(strstr(detail.text, words) != NULL, "wanted '%s', got '%s'", words, detail.text);
    ck_assert_str_eq(detail.field, "pose");
    ck_assert_double_eq(pose.position_m[0], 7); /* untouched */
}

START_TEST(bad_matrices_are_refused)
{
    const double good[12] = {1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3};
    double m[12];
    for (int i = 0; i < 12; i++) {
        memcpy(m, good, sizeof m);
        m[i] = i % 2 ? NAN : INFINITY;
        refuse(m, "not finite");
    }
    memcpy(m, good, sizeof m);
    m[10] = -1;
    refuse(m, "mirror");
    memcpy(m, good, sizeof m);
    m[0] = 1.0006; /* R'R is off by 1.2e-3 */
    refuse(m, "not rigid");
    memcpy(m, good, sizeof m);
    m[1] = 0.0011;
    refuse(m, "not rigid");
    memset(m, 0, sizeof m);
    refuse(m, "not rigid");
    memcpy(m, good, sizeof m);
    m[0] = 1.0004; /* off by 8e-4: accepted */
    struct vxc_pose pose;
    ck_assert_int_eq(vxc_pose_from_matrix(m, &pose, NULL), VX_OK);
}
END_TEST

START_TEST(quaternions)
{
    const double p[3] = {1, 2, 3};
    const double near[4] = {0, 0, 0, 1.0009}, off[4] = {0, 0, 0, 1.0011}, nan[4] = {0, NAN, 0, 1},
                 zero[4] = {0};
    const double inf_position[3] = {0, INFINITY, 0};
    struct vxc_pose pose;
    ck_assert_int_eq(vxc_pose_from_quaternion(p, near, &pose, NULL), VX_OK);
    set_pose_is(&pose, 1, 2, 3, 0, 0, 0, 1);
    ck_assert_int_eq(vxc_pose_from_quaternion(p, off, &pose, NULL), VX_E_INVALID);
    ck_assert_int_eq(vxc_pose_from_quaternion(p, nan, &pose, NULL), VX_E_INVALID);
    ck_assert_int_eq(vxc_pose_from_quaternion(p, zero, &pose, NULL), VX_E_INVALID);
    ck_assert_int_eq(vxc_pose_from_quaternion(inf_position, near, &pose, NULL), VX_E_INVALID);
}
END_TEST

/* Against 4 x 4 products. */
START_TEST(compose_and_invert)
{
    for (int n = 0; n < 500; n++) {
        double q[2][4], m[2][12], product[12];
        struct vxc_pose pose[2], made, expected, inverse;
        for (int k = 0; k < 2; k++) {
            const double t[3] = {uniform(), uniform(), uniform()};
            random_quaternion(q[k]);
            rows_of(q[k], t, m[k]);
            ck_assert_int_eq(vxc_pose_from_matrix(m[k], &pose[k], NULL), VX_OK);
        }
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 4; j++) {
                double sum = j == 3 ? m[0][4 * i + 3] : 0;
                for (int k = 0; k < 3; k++)
                    sum += m[0][4 * i + k] * m[1][4 * k + j];
                product[4 * i + j] = sum;
            }
        }
        ck_assert_int_eq(vxc_pose_from_matrix(product, &expected, NULL), VX_OK);
        vxc_pose_compose(&pose[0], &pose[1], &made);
        const double *e = expected.rotation_xyzw;
        set_pose_is(&made, expected.position_m[0], expected.position_m[1], expected.position_m[2], e[0], e[1],
                    e[2], e[3]);
        vxc_pose_invert(&made, &inverse);
        vxc_pose_compose(&inverse, &made, &made);
        set_pose_is(&made, 0, 0, 0, 0, 0, 0, 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pose");
    TCase *tests = tcase_create("pose");
    tcase_add_test(tests, matrix_round_trip);
    tcase_add_test(tests, nearly_rigid_is_the_nearest_rotation);
    tcase_add_test(tests, bad_matrices_are_refused);
    tcase_add_test(tests, quaternions);
    tcase_add_test(tests, compose_and_invert);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
