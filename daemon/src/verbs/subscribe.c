#include "verbs.h"

void vxd_verb_subscribe(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vx_detail detail;
    vx_err err = vx_fail(&detail, VX_E_UNIMPLEMENTED, "", "this version has no subscriptions");
    vxd_send_error(session, in->header->req_id, err, &detail);
}
