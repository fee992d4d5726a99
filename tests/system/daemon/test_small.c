/* Small questions: answered beside long ones, each once, however many come. */
#include "fake_gate.h"
#include "vx/query.h"
#include "vxd_peer.h"

#include <stdlib.h>
#include <string.h>

static struct vxd_proc proc;
static struct vxd_peer admin, query;

static void set_up(void)
{
    fake_gate_shut();
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "m", 0.1);
    vxd_peer_map_create(&admin, "slowgate", 0.1);
}

static void tear_down(void)
{
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    vxd_proc_stop(&proc);
    fake_gate_remove();
}

static float distance_at(struct vxd_got *got, int i)
{
    struct vx_point_answer a;
    memcpy(&a, (char *)zmq_msg_data(&got->payload) + (size_t)i * sizeof a, sizeof a);
    return a.distance_m;
}

static uint64_t send_points(const char *map, const float *points, uint32_t n)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints body = VOXELD__V1__QUERY_POINTS__INIT;
    body.map = vxd_bytes(map);
    body.n = n;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &body;
    return vxd_peer_send(&query, &header, points, (size_t)n * 12);
}

static const Voxeld__V1__Latency *points_of(const Voxeld__V1__StatsReport *r)
{
    for (size_t i = 0; i < r->n_latencies; ++i)
        if (r->latencies[i]->work == VOXELD__V1__WORK__WORK_POINTS)
            return r->latencies[i];
    ck_abort_msg("no points were counted");
    return NULL;
}

/* A few points are answered while a long query of the same map runs and others wait behind that; more points
 * take their turn. */
START_TEST(long_queries_hold_no_small_one_up)
{
    enum { MANY = VX_NOW_POINTS + 1, ASKED = 100 };
    static float points[3 * MANY];
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QuerySpheres spheres = VOXELD__V1__QUERY_SPHERES__INIT;
    const float sphere[4] = {1, 2, 3, 0.5f};
    spheres.map = vxd_bytes("slowgate");
    spheres.n = 1;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_SPHERES;
    header.query_spheres = &spheres;
    uint64_t slow = vxd_peer_send(&query, &header, sphere, sizeof sphere);
    uint64_t many = send_points("slowgate", points, MANY);
    for (int i = 0; i < ASKED; ++i) {
        points[0] = (float)i;
        struct vxd_got got =
            vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, send_points("slowgate", points, 1));
        ck_assert_float_eq(distance_at(&got, 0), (float)i);
        vxd_got_free(&got);
    }
    Voxeld__V1__StatsReport *r = vxd_peer_stats(&query);
    ck_assert_uint_eq(points_of(r)->n, ASKED);
    ck_assert_uint_gt(points_of(r)->n_at_once, 0); /* all, where the machine is not busy */
    ck_assert_double_le(points_of(r)->run_p50_us, points_of(r)->max_us);
    voxeld__v1__stats_report__free_unpacked(r, NULL);
    fake_gate_open();
    struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, slow);
    vxd_got_free(&got);
    got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT, many);
    ck_assert_uint_eq(got.header->result->n, MANY);
    vxd_got_free(&got);
}
END_TEST

/* Many small questions at once: every one answered, whether on the loop or, beyond what the loop does in a
 * turn, on the worker. */
START_TEST(a_flood_of_small_ones)
{
    enum { AT_ONCE = 60, ROUNDS = 50 };
    uint64_t first = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        bool answered[AT_ONCE] = {false};
        for (int i = 0; i < AT_ONCE; ++i) {
            float p[3] = {(float)i, 0, 0};
            uint64_t req = send_points("m", p, 1);
            first = i ? first : req;
        }
        for (int i = 0; i < AT_ONCE; ++i) {
            struct vxd_got got = vxd_peer_get(&query);
            uint64_t k = got.header->req_id - first;
            ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_RESULT);
            ck_assert(k < AT_ONCE && !answered[k]);
            answered[k] = true;
            ck_assert_float_eq(distance_at(&got, 0), (float)k);
            vxd_got_free(&got);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon small questions");
    TCase *tc = tcase_create("small");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, long_queries_hold_no_small_one_up);
    tcase_add_test(tc, a_flood_of_small_ones);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
