/*
 * vx_err.h - the one table of error codes.
 *
 * A vx_err is VX_OK (0) or negative.  The wire's codes are the same names (proto/voxeld/v1), so a code that
 * the core returns reaches a client unchanged.  Words that say what went wrong with this call travel beside
 * the code in a vx_detail.
 */
#ifndef VX_ERR_H
#define VX_ERR_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int vx_err;

/* X(C name suffix, value, wire name, meaning) */
#define VX_ERR_TABLE(X)                                                                                      \
    X(OK, 0, "OK", "success")                                                                                \
    X(INVALID, -1, "INVALID_ARGUMENT", "an argument is outside what the call accepts")                       \
    X(UNAUTHENTICATED, -2, "UNAUTHENTICATED", "the peer has not proved who it is")                           \
    X(PERMISSION, -3, "PERMISSION_DENIED", "the peer may not do this")                                       \
    X(NOT_FOUND, -4, "NOT_FOUND", "no such map, stream or file")                                             \
    X(EXISTS, -5, "ALREADY_EXISTS", "the name is taken")                                                     \
    X(VERSION, -6, "UNSUPPORTED_VERSION", "the version is not supported")                                    \
    X(EXHAUSTED, -7, "RESOURCE_EXHAUSTED", "a memory cap, a budget or a limit is reached")                   \
    X(DEADLINE, -8, "DEADLINE_EXCEEDED", "the deadline passed before the work ran")                          \
    X(STALE, -9, "STALE_EPOCH", "the epoch is no longer held")                                               \
    X(LOADING, -10, "LOADING", "the map is still being loaded")                                              \
    X(SLOW, -11, "SLOW_CONSUMER", "the peer reads too slowly")                                               \
    X(ORDER, -12, "OUT_OF_ORDER", "a sequence number or a time stamp is out of order")                       \
    X(CANCELLED, -13, "CANCELLED", "the peer cancelled the request")                                         \
    X(UNAVAILABLE, -14, "UNAVAILABLE", "the service or the device can't answer now")                         \
    X(UNIMPLEMENTED, -15, "UNIMPLEMENTED", "this build does not do that")                                    \
    X(DATA_LOSS, -16, "DATA_LOSS", "stored data is damaged")                                                 \
    X(INTERNAL, -17, "INTERNAL", "a defect of voxeld")                                                       \
    X(NOMEM, -18, "RESOURCE_EXHAUSTED", "the host is out of memory")                                         \
    X(DEVICE, -19, "UNAVAILABLE", "the device failed; its queue is poisoned")

#define VX_ERR_ENUM(name, value, wire, text) VX_E_##name = (value),
enum { VX_ERR_TABLE(VX_ERR_ENUM) };
#undef VX_ERR_ENUM
#define VX_OK VX_E_OK

/* Which argument was wrong and how, in words a user can act on.  `field` is the wire's field name or "". */
struct vx_detail {
    char field[64];
    char text[320];
};

/* Wire name ("INVALID_ARGUMENT") and meaning of a code; never NULL, also for numbers that are no code. */
const char *vx_err_name(vx_err e);
const char *vx_err_text(vx_err e);

/*
 * Fills *detail (may be NULL) and returns e, so that a refusal is one line:
 *     return vx_fail(detail, VX_E_INVALID, "voxel_size_m", "must be positive, got %g", v);
 */
vx_err vx_fail(struct vx_detail *detail, vx_err e, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Leaves the function through `fail:` with `err` set.  Functions that own nothing use VX_TRY_RET. */
#define VX_TRY(call)                                                                                         \
    do {                                                                                                     \
        err = (call);                                                                                        \
        if (err != VX_OK)                                                                                    \
            goto fail;                                                                                       \
    } while (0)
#define VX_TRY_RET(call)                                                                                     \
    do {                                                                                                     \
        vx_err vx_try_ = (call);                                                                             \
        if (vx_try_ != VX_OK)                                                                                \
            return vx_try_;                                                                                  \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
