/*
 * lanes.h - what the variants of tuned.def share: more of the eight lanes of dev.h.
 *
 * Vector types of the compiler, so that one source serves every instruction set: lanes of eight floats or
 * integers, and doubles in two halves of four.
 */
#ifndef VXK_CPU_LANES_H
#define VXK_CPU_LANES_H

#include "../body/kernels.h"

typedef int32_t vxk_i8 __attribute__((vector_size(32)));
typedef double vxk_d4 __attribute__((vector_size(32)));
typedef int64_t vxk_l4 __attribute__((vector_size(32)));
typedef float vxk_f4 __attribute__((vector_size(16)));
typedef int32_t vxk_i4 __attribute__((vector_size(16)));

/* Lanes that are set. */
VXK_FN_WOVEN vxk_d4 vxk_where4(vxk_l4 m, vxk_d4 a, vxk_d4 b)
{
    return (vxk_d4)((m & (vxk_l4)a) | (~m & (vxk_l4)b));
}
VXK_FN_WOVEN vxk_d4 vxk_keep4(vxk_l4 m, vxk_d4 a)
{
    return (vxk_d4)(m & (vxk_l4)a);
}
VXK_FN_WOVEN vxk_d4 vxk_all4(double x)
{
    return (vxk_d4){x, x, x, x};
}
/* Is some bit set? */
VXK_FN_WOVEN int vxk_some4(vxk_l4 m)
{
    uint64_t part[4];
    __builtin_memcpy(part, &m, sizeof part);
    return (part[0] | part[1] | part[2] | part[3]) != 0;
}
VXK_FN_WOVEN int vxk_some8(vxk_m8 m)
{
    return vxk_some4((vxk_l4)m);
}
VXK_FN_WOVEN vxk_f8 vxk_min8(vxk_f8 a, vxk_f8 b)
{
    return vxk_where8(vxk_less8(a, b), a, b);
}
VXK_FN_WOVEN vxk_f8 vxk_max8(vxk_f8 a, vxk_f8 b)
{
    return vxk_where8(vxk_less8(b, a), a, b);
}
VXK_FN_WOVEN vxk_f8 vxk_sqrt8(vxk_f8 a)
{
    float v[8];
    vxk_store8(v, a);
    for (int k = 0; k < 8; k++)
        v[k] = vxk_sqrt(v[k]);
    return vxk_load8(v);
}
/* The eight floats of two halves, and the halves of eight. */
VXK_FN_WOVEN vxk_f8 vxk_narrow8(const vxk_d4 a[2])
{
    return __builtin_shufflevector(__builtin_convertvector(a[0], vxk_f4),
                                   __builtin_convertvector(a[1], vxk_f4), 0, 1, 2, 3, 4, 5, 6, 7);
}
VXK_FN_WOVEN void vxk_widen8(vxk_f8 a, vxk_d4 o[2])
{
    o[0] = __builtin_convertvector(__builtin_shufflevector(a, a, 0, 1, 2, 3), vxk_d4);
    o[1] = __builtin_convertvector(__builtin_shufflevector(a, a, 4, 5, 6, 7), vxk_d4);
}
/* Nearest integers, ties to even; |x| < 2^22: adding 1.5 * 2^23 leaves them in the low bits. */
VXK_FN_WOVEN vxk_i8 vxk_rint8(vxk_f8 a)
{
    return (vxk_i8)(a + 12582912.0f) - 0x4b400000;
}
/* Eight rows of eight: o[k] holds number k of each. */
VXK_FN_WOVEN void vxk_transpose8(const vxk_f8 r[8], vxk_f8 o[8])
{
    vxk_f8 s[8], t[8];
    for (int k = 0; k < 8; k += 2) {
        s[k] = __builtin_shufflevector(r[k], r[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[k + 1] = __builtin_shufflevector(r[k], r[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int k = 0; k < 8; k += 4) {
        for (int h = 0; h < 2; h++) {
            t[k + 2 * h] = __builtin_shufflevector(s[k + h], s[k + h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            t[k + 2 * h + 1] = __builtin_shufflevector(s[k + h], s[k + h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int k = 0; k < 4; k++) {
        o[k] = __builtin_shufflevector(t[k], t[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        o[k + 4] = __builtin_shufflevector(t[k], t[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
/* The same of rows in memory. */
VXK_FN_WOVEN void vxk_columns8(const float *const p[8], vxk_f8 o[8])
{
    vxk_f8 r[8];
    for (int k = 0; k < 8; k++)
        r[k] = vxk_load8(p[k]);
    vxk_transpose8(r, o);
}
/* The first n lanes. */
VXK_FN_WOVEN vxk_m8 vxk_first8(uint32_t n)
{
    return (vxk_m8)((vxk_i8){0, 1, 2, 3, 4, 5, 6, 7} < (vxk_i8)vxk_bits8(n));
}

#endif
