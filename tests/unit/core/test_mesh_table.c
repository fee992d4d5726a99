/* test_mesh_table.c - the marching-cubes table keeps its rule in every case and between all neighbours. */
#include "body/mesh_table.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Corners of a face, counter-clockwise seen from outside: axis a, side s. */
static void face_corners(int a, int s, int corner[4])
{
    static const int bit[3] = {4, 2, 1};
    int b = bit[(a + 1) % 3], c = bit[(a + 2) % 3], o = s ? bit[a] : 0;
    const int up[4] = {o, o | b, o | b | c, o | c};

    for (int k = 0; k < 4; k++)
        corner[k] = s ? up[k] : up[(4 - k) % 4];
}

/* Edge between two corners. */
static int edge_of(int c0, int c1)
{
    int axis = (c0 ^ c1) == 4 ? 0 : (c0 ^ c1) == 2 ? 1 : 2;

    for (int e = axis * 4; e < axis * 4 + 4; e++)
        if ((int)vxk_mc_edge_corner((uint32_t)e) == (c0 & c1))
            return e;
    abort();
}

static int on_face(int a, int s, int edge)
{
    int corner[4];

    face_corners(a, s, corner);
    for (int k = 0; k < 4; k++)
        if (edge_of(corner[k], corner[(k + 1) & 3]) == edge)
            return 1;
    return 0;
}

/* Directed edges of a case's triangles that have no opposite inside the cell: the border. */
static void border_of(uint32_t cell, uint8_t border[12][12])
{
    uint8_t n[12][12];

    memset(n, 0, sizeof n);
    for (uint32_t t = 0; t < vxk_mc_triangles(cell); t++)
        for (uint32_t k = 0; k < 3; k++)
            n[vxk_mc_edge(cell, t, k)][vxk_mc_edge(cell, t, (k + 1) % 3)]++;
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 12; j++) {
            ck_assert_msg(n[i][j] <= 1, "case %u: edge %d-%d has two triangles on one side", cell, i, j);
            border[i][j] = n[i][j] && !n[j][i];
        }
}

/* The segments that the rule asks for on one face: each run of negative corners is cut off by one. */
static void segments_of(uint32_t cell, int a, int s, uint8_t segment[12][12])
{
    int corner[4];

    face_corners(a, s, corner);
    for (int k = 0; k < 4; k++) {
        int end = k;
        if (!(cell >> corner[k] & 1) || (cell >> corner[(k + 3) & 3] & 1))
            continue; /* a run starts where a negative corner follows another */
        while (cell >> corner[(end + 1) & 3] & 1)
            end++;
        segment[edge_of(corner[(k + 3) & 3], corner[k])][edge_of(corner[end & 3], corner[(end + 1) & 3])]++;
    }
}

START_TEST(every_case_follows_the_rule)
{
    uint32_t cell = (uint32_t)_i;
    uint8_t border[12][12], wanted[12][12], used[12] = {0};

    border_of(cell, border);
    memset(wanted, 0, sizeof wanted);
    for (int f = 0; f < 6; f++)
        segments_of(cell, f >> 1, f & 1, wanted);
    ck_assert_msg(memcmp(border, wanted, sizeof border) == 0,
                  "case %u: the border is not the faces' segments", cell);
    for (uint32_t t = 0; t < vxk_mc_triangles(cell); t++) {
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t e = vxk_mc_edge(cell, t, k), c = vxk_mc_edge_corner(e),
                     up = c | (e < 4   ? 4u
                               : e < 8 ? 2u
                                       : 1u);
            ck_assert_uint_lt(e, 12);
            ck_assert_msg((cell >> c & 1) != (cell >> up & 1),
                          "case %u: a vertex on edge %u without a crossing", cell, e);
            ck_assert_uint_ne(e, vxk_mc_edge(cell, t, (k + 1) % 3));
            used[e] = 1;
        }
        for (int f = 0; f < 6; f++)
            for (uint32_t k = 0; k < 3; k++) {
                uint32_t i = vxk_mc_edge(cell, t, k), j = vxk_mc_edge(cell, t, (k + 1) % 3);
                ck_assert_msg(border[i][j] ||
                                  !(on_face(f >> 1, f & 1, (int)i) && on_face(f >> 1, f & 1, (int)j)),
                              "case %u: a diagonal in a face would get four triangles", cell);
            }
    }
    for (uint32_t e = 0; e < 12; e++) {
        uint32_t c = vxk_mc_edge_corner(e), up = c | (e < 4 ? 4u : e < 8 ? 2u : 1u);
        ck_assert_int_eq(used[e], (cell >> c & 1) != (cell >> up & 1));
    }
}
END_TEST

/* What cell m draws on its upper face, its neighbour draws on its lower face the other way round. */
START_TEST(neighbours_agree)
{
    static const int bit[3] = {4, 2, 1};
    int a = _i;

    for (uint32_t m = 0; m < 256; m++)
        for (uint32_t n = 0; n < 256; n++) {
            uint8_t mine[12][12], theirs[12][12];
            int shared = 1;
            for (int c = 0; c < 8; c++)
                if (!(c & bit[a]) && (m >> (c | bit[a]) & 1) != (n >> c & 1))
                    shared = 0;
            if (!shared)
                continue;
            border_of(m, mine);
            border_of(n, theirs);
            for (int i = 0; i < 12; i++)
                for (int j = 0; j < 12; j++) {
                    int ti, tj;
                    if (!on_face(a, 1, i) || !on_face(a, 1, j))
                        continue;
                    ti = edge_of((int)vxk_mc_edge_corner((uint32_t)i) & ~bit[a],
                                 ((int)vxk_mc_edge_corner((uint32_t)i) | (i < 4   ? 4
                                                                          : i < 8 ? 2
                                                                                  : 1)) &
                                     ~bit[a]);
                    tj = edge_of((int)vxk_mc_edge_corner((uint32_t)j) & ~bit[a],
                                 ((int)vxk_mc_edge_corner((uint32_t)j) | (j < 4   ? 4
                                                                          : j < 8 ? 2
                                                                                  : 1)) &
                                     ~bit[a]);
                    ck_assert_msg(mine[i][j] == theirs[tj][ti], "axis %d: cases %u and %u leave a crack", a,
                                  m, n);
                }
        }
}
END_TEST

/* One negative corner: the triangle faces away from it. */
START_TEST(faces_outwards)
{
    for (uint32_t corner = 0; corner < 8; corner++) {
        double p[3][3], n[3], away = 0;
        uint32_t cell = 1u << corner;
        ck_assert_uint_eq(vxk_mc_triangles(cell), 1);
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t e = vxk_mc_edge(cell, 0, k), c = vxk_mc_edge_corner(e);
            for (uint32_t x = 0; x < 3; x++)
                p[k][x] = (double)(c >> (2 - x) & 1) + (e / 4 == x ? 0.5 : 0.0);
        }
        for (int x = 0; x < 3; x++) {
            int y = (x + 1) % 3, z = (x + 2) % 3;
            n[x] = (p[1][y] - p[0][y]) * (p[2][z] - p[0][z]) - (p[1][z] - p[0][z]) * (p[2][y] - p[0][y]);
            away += n[x] * (corner >> (2 - x) & 1 ? -1 : 1);
        }
        ck_assert_double_gt(away, 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mesh table");
    TCase *t = tcase_create("rule");
    SRunner *r;
    int failed;

    tcase_add_loop_test(t, every_case_follows_the_rule, 0, 256);
    tcase_add_loop_test(t, neighbours_agree, 0, 3);
    tcase_add_test(t, faces_outwards);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
