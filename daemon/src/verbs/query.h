/*
 * query.h - what QUERY_POINTS, QUERY_SPHERES and QUERY_RAYS have in common: n items in, n answers of 24 bytes
 * out.
 */
#ifndef VXD_QUERY_H
#define VXD_QUERY_H

#include "map.h"
#include "request.h"

struct vxd_query {
    struct vxd_request base;
    struct vx_query_options options;
    double origin_m[3];
    double max_range_m;
    uint32_t n;
};

/*
 * Opens the request, checks it, and takes its body; errors are sent.
 * item_bytes: of one item in the body.  max_range_m: of rays, else 0.
 */
void vxd_query_begin(struct vxd_session *session, struct vxd_in *in, const struct vxd_request_ops *ops,
                     const ProtobufCBinaryData *map, uint64_t min_epoch, const Voxeld__V1__Vec3 *origin_m,
                     uint32_t n, uint32_t item_bytes, double max_range_m);
/* vxd_request_ops.answer of all three. */
void vxd_query_answer(struct vxd_request *request);

#endif
