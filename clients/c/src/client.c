#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t CONNECT_TIMEOUT_MS = 3000, TIMEOUT_MS = 600000;

const char *vxc_default_ipc_dir(void)
{
    const char *dir = getenv("VOXELD_IPC_DIR");
    return dir && dir[0] ? dir : "/run/voxeld";
}

vx_err vxc_connect(const char *ipc_dir, const struct vxc_connect_options *options, struct vxc_client **out,
                   struct vx_detail *detail)
{
    static const struct vxc_connect_options none = {0};
    if (!options)
        options = &none;
    if (!ipc_dir)
        ipc_dir = vxc_default_ipc_dir();
    *out = NULL;
    struct vxc_client *client = calloc(1, sizeof *client);
    if (!client)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a client");
    if (strlen(ipc_dir) + sizeof "/ingest.sock" > sizeof client->ipc_dir) {
        free(client);
        return vx_fail(detail, VX_E_INVALID, "ipc_dir",
                       "too long for a socket's path (%zu bytes, at most %zu): %.80s...", strlen(ipc_dir),
                       sizeof client->ipc_dir - sizeof "/ingest.sock", ipc_dir);
    }
    snprintf(client->ipc_dir, sizeof client->ipc_dir, "%s", ipc_dir);
    snprintf(client->name, sizeof client->name, "%s",
             options->name ? options->name : "libvoxeld-client/" VOXELD_VERSION);
    client->connect_timeout_ms =
        options->connect_timeout_ms ? options->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    vxc_set_timeout(client, options->timeout_ms);
    client->spin_us = options->spin_us;
    client->next_req_id = 1;
    client->limits = (struct vxc__limits){VXW_FRAME_MAX_BYTES, VXW_PART_MAX_BYTES, 1u << 20};
    for (int i = 0; i < VXC__N_PLACES; i++) {
        client->endpoint[i].client = client;
        client->endpoint[i].place = (enum vxc__place)i;
    }
    client->context = zmq_ctx_new();
    struct vxc__endpoint *endpoint;
    const vx_err err = client->context ? vxc__endpoint_greet(client, VXC__QUERY, &endpoint, detail)
                                       : vx_fail(detail, VX_E_NOMEM, "", "no memory for ZeroMQ");
    if (err != VX_OK) {
        vxc_disconnect(client);
        return err;
    }
    *out = client;
    return VX_OK;
}

void vxc_disconnect(struct vxc_client *client)
{
    if (!client)
        return;
    for (int i = 0; i < VXC__N_PLACES; i++) {
        struct vxc__endpoint *endpoint = &client->endpoint[i];
        if (endpoint->greeted) {
            Voxeld__V1__Bye bye = VOXELD__V1__BYE__INIT;
            vxw_header header = VOXELD__V1__HEADER__INIT;
            header.req_id = client->next_req_id++;
            header.body_case = VOXELD__V1__HEADER__BODY_BYE;
            header.bye = &bye;
            (void)vxc__endpoint_send(endpoint, &header, NULL, 0,
                                     NULL); /* a courtesy; the daemon notices anyway */
        }
        vxc__endpoint_close(endpoint);
    }
    vxc__streams_free(client);
    if (client->context)
        zmq_ctx_term(client->context);
    free(client);
}

void vxc_set_timeout(struct vxc_client *client, uint32_t timeout_ms)
{
    client->timeout_ms = timeout_ms ? timeout_ms : TIMEOUT_MS;
}

void vxc_interrupt(struct vxc_client *client)
{
    atomic_store(&client->interrupted, true);
}

const char *vxc_server(const struct vxc_client *client)
{
    return client->server;
}

vx_err vxc_ping(struct vxc_client *client, uint64_t *round_trip_us, struct vx_detail *detail)
{
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    header.body_case = VOXELD__V1__HEADER__BODY_PING;
    header.ping = &ping;
    const uint64_t start = vxc__now_us();
    const vx_err err =
        vxc__call(client, VXC__QUERY, &header, NULL, 0, VOXELD__V1__HEADER__BODY_PONG, &x, detail);
    vxc__exchange_fini(&x);
    if (round_trip_us)
        *round_trip_us = vxc__now_us() - start;
    return err;
}

vx_err vxc_poll(struct vxc_client *client, uint32_t timeout_ms, struct vx_detail *detail)
{
    vxc__wait(client, timeout_ms > 60000 ? 60000 : (int)timeout_ms);
    return vxc__dispatch(client, detail);
}

vx_err vxc_shutdown(struct vxc_client *client, struct vx_detail *detail)
{
    Voxeld__V1__Shutdown body = VOXELD__V1__SHUTDOWN__INIT;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    struct vxc__exchange x;
    header.body_case = VOXELD__V1__HEADER__BODY_SHUTDOWN;
    header.shutdown = &body;
    const vx_err err =
        vxc__call(client, VXC__ADMIN, &header, NULL, 0, VOXELD__V1__HEADER__BODY_RESULT, &x, detail);
    vxc__exchange_fini(&x);
    return err;
}
