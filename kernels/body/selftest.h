/*
 * selftest.h - small element functions that the backend tests and the device self-check run.
 */
#ifndef VXK_BODY_SELFTEST_H
#define VXK_BODY_SELFTEST_H

#include "grid.h"

/* out[i] = in[i] * scale + add, in single precision with two roundings. */
struct vxk_selftest_affine_args {
    const float *in;
    float *out;
    float scale, add;
};
VXK_FN void vxk_selftest_affine(const struct vxk_selftest_affine_args *a, uint32_t i)
{
    a->out[i] = a->in[i] * a->scale + a->add;
}

/* Inserts keys[i] and counts the insertions: duplicates must count once. */
struct vxk_selftest_hash_args {
    const uint64_t *in;
    uint64_t *table;
    uint32_t *n_inserted;
    uint32_t slot_mask;
};
VXK_FN void vxk_selftest_hash(const struct vxk_selftest_hash_args *a, uint32_t i)
{
    int inserted;
    vxk_hash_insert(a->table, a->slot_mask, a->in[i], &inserted);
    if (inserted)
        vxk_atomic_add32(a->n_inserted, 1);
}

/* Every atomic once, on shared counters: [0] add, [1] or, [2] min, [3] max. */
struct vxk_selftest_atomic_args {
    uint32_t *c32;
    uint64_t *c64;
};
VXK_FN void vxk_selftest_atomic(const struct vxk_selftest_atomic_args *a, uint32_t i)
{
    vxk_atomic_add32(&a->c32[0], i);
    vxk_atomic_or32(&a->c32[1], 1u << (i & 31));
    vxk_atomic_min32(&a->c32[2], i ^ 0x5555u);
    vxk_atomic_max32(&a->c32[3], i ^ 0x5555u);
    vxk_atomic_add64(&a->c64[0], (uint64_t)i << 20);
    vxk_atomic_or64(&a->c64[1], 1ull << (i & 63));
    vxk_atomic_min64(&a->c64[2], (uint64_t)(i ^ 0x5555u) << 20);
}

#endif
