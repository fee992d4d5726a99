#include "log.h"
#include "verbs.h"

#include <string.h>

static const char server_name[] = "voxeld/" VOXELD_VERSION;

static vx_err check(const struct vxd_server *server, const struct vxd_in *in, struct vx_detail *detail)
{
    const Voxeld__V1__Hello *hello = in->header->hello;
    if (server->stopping)
        return vx_fail(detail, VX_E_UNAVAILABLE, "", "the daemon is shutting down");
    if (hello->client.len > 64)
        return vx_fail(detail, VX_E_INVALID, "client", "at most 64 bytes");
    if (hello->min_major > VXW_MAJOR || hello->max_major < VXW_MAJOR)
        return vx_fail(detail, VX_E_VERSION, "max_major", "this daemon speaks major %d, the client %u to %u",
                       VXW_MAJOR, hello->min_major, hello->max_major);
    return VX_OK;
}

static void limits_fill(const struct vxd_limits *limits, Voxeld__V1__Limits *out)
{
    voxeld__v1__limits__init(out);
    out->header_bytes = VXW_HEADER_MAX_BYTES;
    out->frame_payload_bytes = VXW_FRAME_MAX_BYTES;
    out->part_bytes = VXW_PART_MAX_BYTES;
    out->query_items = (uint32_t)limits->query_items;
    out->requests = (uint32_t)limits->requests_per_session;
    out->streams = (uint32_t)limits->streams_per_session;
    out->upload_parts = (uint32_t)limits->upload_parts;
}

/* By socket: its folder's mode is what protects an ipc socket. */
static Voxeld__V1__Role role_of(const struct vxd_endpoint *endpoint)
{
    switch (endpoint->id) {
    case VXD_INGEST:
        return VOXELD__V1__ROLE__ROLE_SENSOR;
    case VXD_ADMIN:
        return VOXELD__V1__ROLE__ROLE_OPERATOR;
    default:
        return VOXELD__V1__ROLE__ROLE_PLANNER;
    }
}

void vxd_verb_hello(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in)
{
    struct vx_detail detail = {{0}, {0}};
    (void)session; /* an older one of this peer is replaced */
    vx_err err = check(server, in, &detail);
    if (err == VX_OK)
        err = vxd_session_open(server, in->endpoint, &in->peer, &session, &detail);
    if (err != VX_OK) {
        vxd_send_error_to_peer(server, in->endpoint, &in->peer, in->header->req_id, err, &detail);
        return;
    }
    const ProtobufCBinaryData *client = &in->header->hello->client;
    vxd_log(VXD_LOG_INFO, "session_begin", "session=%llu endpoint=%s client=%s",
            (unsigned long long)session->serial, in->endpoint->name,
            vxd_quote(client->data, client->len).text);
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Welcome welcome = VOXELD__V1__WELCOME__INIT;
    Voxeld__V1__Limits limits;
    limits_fill(&server->config.limits, &limits);
    welcome.major = VXW_MAJOR;
    welcome.minor = VXW_MINOR;
    welcome.server = (ProtobufCBinaryData){strlen(server_name), (uint8_t *)server_name};
    welcome.session = (ProtobufCBinaryData){sizeof session->id, session->id};
    welcome.role = role_of(in->endpoint);
    welcome.limits = &limits;
    header.req_id = in->header->req_id;
    header.body_case = VOXELD__V1__HEADER__BODY_WELCOME;
    header.welcome = &welcome;
    vxd_send(session, &header, NULL, 0, 0);
}
