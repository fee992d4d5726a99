/*
 * backend.h - what the backend tests share: the device under test, a random source, memory helpers.
 */
#ifndef TESTS_BACKEND_H
#define TESTS_BACKEND_H

#include "vxk.h"

#include <check.h>
#include <stdint.h>

/* The device under test and a queue of it; made by main before the tests. */
extern struct vxk_dev *dev;
extern const struct vxk_ops *ops;
extern struct vxk_queue *queue;
/* Printed at the start; VOXELD_TEST_SEED sets it. */
extern uint64_t test_seed;

#define ck_ok(call) ck_assert_msg((call) == VX_OK, "%s", #call)

/* For loops over many elements, where Check's own assertion costs more than all the work under test. */
#define ck_same(a, b)                                                                                        \
    do {                                                                                                     \
        if ((a) != (b))                                                                                      \
            ck_assert_uint_eq(a, b);                                                                         \
    } while (0)

/* A different stream of numbers for every `stream`. */
struct rng {
    uint64_t state;
};
static inline struct rng rng_make(uint64_t stream)
{
    struct rng r = {(test_seed * 0x9e3779b97f4a7c15ull + stream) | 1};
    return r;
}
static inline uint64_t rng_next(struct rng *r)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return r->state * 0x2545f4914f6cdd1dull;
}

/* Device memory with what `host` holds (NULL: zeros), and back; both end with a wait. */
void *device_copy_of(const void *host, uint64_t bytes);
void download_now(void *host, const void *device, uint64_t bytes);
/* malloc that can't fail. */
void *host_alloc(uint64_t bytes);

Suite *memory_suite(void);
Suite *launch_suite(void);
Suite *primitive_suite(void);
Suite *queue_suite(void);

#endif
