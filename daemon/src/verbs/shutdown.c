#include "verbs.h"

void vxd_verb_shutdown(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Result result = VOXELD__V1__RESULT__INIT;
    header.req_id = in->header->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_RESULT;
    header.result = &result;
    vxd_send(session, &header, NULL, 0, 0);
    vxd_server_stop(server, "SHUTDOWN");
}
