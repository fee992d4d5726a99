#include "request.h"
#include "verbs.h"

void vxd_verb_part(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    vxd_transfer_on_part(session, in);
}

void vxd_verb_credit(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    (void)server;
    vxd_transfer_on_credit(session, in);
}
