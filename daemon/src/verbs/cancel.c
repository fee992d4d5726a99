#include "request.h"
#include "verbs.h"

void vxd_verb_cancel(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    struct vxd_request *request = vxd_request_find(session, in->header->cancel->req_id);
    if (request)
        (void)vxd_request_cancel(request, VX_E_CANCELLED, "cancelled by the client");
}
