#include "verbs.h"

void vxd_verb_bye(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Bye bye = VOXELD__V1__BYE__INIT;
    header.req_id = in->header->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_BYE;
    header.bye = &bye;
    session->leaving = true;
    vxd_send(session, &header, NULL, 0, 0);
    vxd_session_end(session, "BYE");
}
