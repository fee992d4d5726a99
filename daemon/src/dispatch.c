/*
 * From a received message to its verb: envelope, session, socket and number of payloads are checked here.
 */
#include "log.h"
#include "verbs/verbs.h"

#include <string.h>

enum {
    ON_INGEST = 1 << VXD_INGEST,
    ON_QUERY = 1 << VXD_QUERY,
    ON_EVENTS = 1 << VXD_EVENTS,
    ON_ADMIN = 1 << VXD_ADMIN
};
enum { ON_ALL = ON_INGEST | ON_QUERY | ON_EVENTS | ON_ADMIN, ON_READ = ON_QUERY | ON_ADMIN };

#define TYPE(name) VOXELD__V1__HEADER__BODY_##name

static const struct entry {
    uint16_t type;
    uint8_t endpoints;
    uint8_t max_payloads;
    vxd_verb *verb;
} table[] = {
    {TYPE(HELLO), ON_ALL, 0, vxd_verb_hello},
    {TYPE(PING), ON_ALL, 0, vxd_verb_ping},
    {TYPE(PONG), ON_ALL, 0, vxd_verb_pong},
    {TYPE(BYE), ON_ALL, 0, vxd_verb_bye},
    {TYPE(CANCEL), ON_ALL, 0, vxd_verb_cancel},
    {TYPE(PART), ON_READ, 1, vxd_verb_part},
    {TYPE(CREDIT), ON_READ, 0, vxd_verb_credit},
    {TYPE(OPEN_STREAM), ON_INGEST, 0, vxd_verb_open_stream},
    {TYPE(FRAME), ON_INGEST, VXW_MAX_PAYLOADS, vxd_verb_frame},
    {TYPE(QUERY_POINTS), ON_QUERY, 1, vxd_verb_query_points},
    {TYPE(QUERY_SPHERES), ON_QUERY, 1, vxd_verb_query_spheres},
    {TYPE(QUERY_RAYS), ON_QUERY, 1, vxd_verb_query_rays},
    {TYPE(QUERY_TRAJECTORY), ON_QUERY, 1, vxd_verb_query_trajectory},
    {TYPE(QUERY_BOX), ON_QUERY, 1, vxd_verb_query_box},
    {TYPE(QUERY_SLICE), ON_QUERY, 0, vxd_verb_query_slice},
    {TYPE(EXPLAIN), ON_QUERY, 1, vxd_verb_explain},
    {TYPE(MESH), ON_QUERY, 0, vxd_verb_mesh},
    {TYPE(SUBSCRIBE), ON_EVENTS, 0, vxd_verb_subscribe},
    {TYPE(MAP_CREATE), ON_ADMIN, 0, vxd_verb_map_create},
    {TYPE(MAP_LIST), ON_READ, 0, vxd_verb_map_list},
    {TYPE(MAP_INFO), ON_READ, 0, vxd_verb_map_info},
    {TYPE(MAP_DIGEST), ON_ADMIN, 0, vxd_verb_map_digest},
    {TYPE(MAP_CLEAR), ON_ADMIN, 0, vxd_verb_map_clear},
    {TYPE(MAP_EDIT), ON_ADMIN, 0, vxd_verb_map_edit},
    {TYPE(MAP_DELETE), ON_ADMIN, 0, vxd_verb_map_delete},
    {TYPE(MAP_EXPORT), ON_ADMIN, 0, vxd_verb_map_export},
    {TYPE(MAP_IMPORT), ON_ADMIN, 1, vxd_verb_map_import},
    {TYPE(STATS), ON_READ, 0, vxd_verb_stats},
    {TYPE(SHUTDOWN), ON_ADMIN, 0, vxd_verb_shutdown},
};

static const struct entry *find(uint16_t type)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
        if (table[i].type == type)
            return &table[i];
    return NULL;
}

static void refuse(struct vxd_server *server, struct vxd_session *session, const struct vxd_in *in,
                   vx_err err, const struct vx_detail *detail)
{
    uint64_t req_id = in->header ? in->header->req_id : 0;
    if (session)
        vxd_send_error(session, req_id, err, detail);
    else
        vxd_send_error_to_peer(server, in->endpoint, &in->peer, req_id, err, detail);
}

static void bad_envelope(struct vxd_server *server, struct vxd_session *session, const struct vxd_in *in)
{
    ++server->n_bad_messages;
    vxd_log(VXD_LOG_WARN, "bad_message", "endpoint=%s session=%llu code=%s field=%s why=%s",
            in->endpoint->name, session ? (unsigned long long)session->serial : 0, vx_err_name(in->err),
            in->detail.field, vxd_quote(in->detail.text, strlen(in->detail.text)).text);
    refuse(server, session, in, in->err, &in->detail);
    if (session)
        vxd_session_doom(session, in->err, "sent a bad message");
}

static vx_err check(const struct vxd_session *session, struct vxd_in *in, const struct entry *entry)
{
    const ProtobufCBinaryData *id = &in->header->session;
    bool hello = in->prelude.type == TYPE(HELLO);
    if (!hello &&
        (!session || id->len != sizeof session->id || memcmp(id->data, session->id, sizeof session->id)))
        return vx_fail(&in->detail, VX_E_UNAUTHENTICATED, "session", "say HELLO first");
    if (in->err != VX_OK)
        return in->err;
    if (!entry)
        return vx_fail(&in->detail, VX_E_INVALID, "prelude.type", "only the daemon sends %s",
                       vxw_type_name(in->prelude.type));
    if (!(entry->endpoints >> in->endpoint->id & 1))
        return vx_fail(&in->detail, VX_E_UNIMPLEMENTED, "prelude.type", "%s is not answered on the %s socket",
                       vxw_type_name(in->prelude.type), in->endpoint->name);
    if (in->n_payloads > entry->max_payloads)
        return vx_fail(&in->detail, VX_E_INVALID, "payloads", "%s has at most %u payloads, got %u",
                       vxw_type_name(in->prelude.type), entry->max_payloads, in->n_payloads);
    if (in->header->traceparent.len > 64)
        return vx_fail(&in->detail, VX_E_INVALID, "traceparent", "at most 64 bytes");
    return VX_OK;
}

void vxd_dispatch(struct vxd_server *server, struct vxd_in *in)
{
    struct vxd_session *session = vxd_session_find(server, in->endpoint, &in->peer);
    if (session)
        session->heard_ns = in->arrived_ns;
    if (!in->header) {
        bad_envelope(server, session, in);
        return;
    }
    const struct entry *entry = find(in->prelude.type);
    vx_err err = check(session, in, entry);
    if (err != VX_OK) {
        refuse(server, session, in, err, &in->detail);
        return;
    }
    if (in->header->traceparent.len)
        vxd_log(VXD_LOG_DEBUG, "request", "type=%s traceparent=%s", vxw_type_name(in->prelude.type),
                vxd_quote(in->header->traceparent.data, in->header->traceparent.len).text);
    entry->verb(server, session, in);
}
