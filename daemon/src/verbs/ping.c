#include "verbs.h"

void vxd_verb_ping(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Pong pong = VOXELD__V1__PONG__INIT;
    struct vx_detail detail;
    if (in->header->ping->data.len > 64) {
        vx_err err = vx_fail(&detail, VX_E_INVALID, "data", "at most 64 bytes");
        vxd_send_error(session, in->header->req_id, err, &detail);
        return;
    }
    pong.data = in->header->ping->data;
    header.req_id = in->header->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_PONG;
    header.pong = &pong;
    vxd_send(session, &header, NULL, 0, 0);
}

void vxd_verb_pong(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    (void)session; /* dispatch has noted that the peer was heard */
    (void)in;
}
