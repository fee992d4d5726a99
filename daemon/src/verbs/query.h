/*
 * query.h - what the queries and EXPLAIN have in common: n items in, n answers out.
 */
#ifndef VXD_QUERY_H
#define VXD_QUERY_H

#include "map.h"
#include "request.h"
#include "vx/planning.h"

struct vxd_query {
    struct vxd_request base;
    struct vx_query_options options;
    double origin_m[3];
    double max_range_m; /* of rays */
    uint32_t n;         /* answers */
    /* what some verbs add */
    struct vx_paths paths;
    struct vx_slice slice;
};

/* What a verb asks. */
struct vxd_query_shape {
    const ProtobufCBinaryData *map;
    uint64_t min_epoch;
    const Voxeld__V1__Vec3 *origin_m;
    uint64_t n; /* answers */
    uint64_t body_bytes;
    uint32_t answer_bytes; /* each */
};
/* Opens the request: NULL when that was refused. */
struct vxd_query *vxd_query_open(struct vxd_session *session, const struct vxd_in *in,
                                 const struct vxd_request_ops *ops);
/* Checks it, and takes its body or submits it; errors are sent, and with `refused` not VX_OK that one. */
void vxd_query_take(struct vxd_query *query, struct vxd_in *in, const struct vxd_query_shape *shape,
                    vx_err refused);

/*
 * Both in one, for items of one size and answers of 24 bytes.
 * item_bytes: of one item in the body.  max_range_m: of rays, else 0.
 */
void vxd_query_begin(struct vxd_session *session, struct vxd_in *in, const struct vxd_request_ops *ops,
                     const ProtobufCBinaryData *map, uint64_t min_epoch, const Voxeld__V1__Vec3 *origin_m,
                     uint32_t n, uint32_t item_bytes, double max_range_m);
/* vxd_request_ops.answer of all. */
void vxd_query_answer(struct vxd_request *request);

#endif
