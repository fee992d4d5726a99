#include "map.h"
#include "verbs.h"

struct digest_request {
    struct vxd_request base;
    uint8_t digest[32];
};

static vx_err run(struct vxd_request *request)
{
    struct digest_request *d = (struct digest_request *)request;
    return vx_map_digest(request->map->core, d->digest, &request->reply.epoch);
}

static void answer(struct vxd_request *request)
{
    struct digest_request *d = (struct digest_request *)request;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapDigestReply reply = VOXELD__V1__MAP_DIGEST_REPLY__INIT;
    Voxeld__V1__MapState map;
    struct vx_reply of = request->map->newest;
    of.epoch = request->reply.epoch;
    vxd_map_state_fill(request->map, &of, &map);
    reply.map = &map;
    reply.digest = (ProtobufCBinaryData){sizeof d->digest, d->digest};
    header.body_case = VOXELD__V1__HEADER__BODY_MAP_DIGEST_REPLY;
    header.map_digest_reply = &reply;
    vxd_request_send(request, &header);
}

static const struct vxd_request_ops ops = {
    .size = sizeof(struct digest_request), .lane = VXD_LANE_BULK, .run = run, .answer = answer};

void vxd_verb_map_digest(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *r = vxd_request_open(session, in, &ops);
    if (!r)
        return;
    vx_err err = vxd_request_use_map(r, &in->header->map_digest->map);
    if (err == VX_OK)
        vxd_request_submit(r);
    else
        vxd_request_fail(r, err);
}
