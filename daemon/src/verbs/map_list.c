#include "map.h"
#include "verbs.h"

#include <stdlib.h>

/* From what the loop knows: 256 maps of 140 bytes fit into a header. */
void vxd_verb_map_list(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__MapListReply reply = VOXELD__V1__MAP_LIST_REPLY__INIT;
    Voxeld__V1__MapState *state = calloc(server->n_maps + 1, sizeof *state);
    Voxeld__V1__MapState **list = calloc(server->n_maps + 1, sizeof *list);
    if (!state || !list) {
        vxd_send_error(session, in->header->req_id, VX_E_NOMEM, NULL);
    } else {
        for (const struct vxd_map *map = server->maps; map; map = map->next) {
            if (map->state != VXD_MAP_LIVE)
                continue;
            list[reply.n_maps] = &state[reply.n_maps];
            vxd_map_state_fill(map, NULL, list[reply.n_maps++]);
        }
        reply.maps = list;
        header.req_id = in->header->req_id;
        header.body_case = VOXELD__V1__HEADER__BODY_MAP_LIST_REPLY;
        header.map_list_reply = &reply;
        vxd_send(session, &header, NULL, 0, 0);
    }
    free(state);
    free(list);
}
