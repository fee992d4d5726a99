/*
 * vxd_peer.h - a daemon of the test's own, in a private folder, and raw peers that speak to it.
 *
 * Everything fails the running Check test when something does not come as expected; nothing sleeps to wait.
 */
#ifndef VXD_PEER_H
#define VXD_PEER_H

#include "vx/wire.h"

#include <check.h>
#include <stdbool.h>
#include <sys/types.h>
#include <zmq.h>

enum { VXD_PEER_TIMEOUT_MS = 60000 };

struct vxd_proc {
    pid_t pid;
    char dir[64];  /* of the sockets, inside a fresh folder that vxd_proc_stop removes */
    char base[48]; /* that folder; tests may put files into it */
    void *zmq;
    const char *yaml; /* its configuration; NULL: log_level error.  Set before the start */
};

/* Starts program `name` from the folder of the running test with --ipc-dir and `args` (NULL-terminated, may
 * be NULL), and waits until it answers HELLO. */
void vxd_proc_start(struct vxd_proc *proc, const char *name, const char *const *args);
/* Starts it with exactly these arguments. */
pid_t vxd_proc_spawn(const char *name, const char *const *args);
/* The same, and waits for its end; returns the exit status (128 + signal). */
int vxd_proc_run(const char *name, const char *const *args);
/* Sends the signal (0: none), waits for the end, and returns the exit status (128 + signal). */
int vxd_proc_wait(struct vxd_proc *proc, int signal);
/* Kills it if it still runs, and removes the folder.  Safe to call twice. */
void vxd_proc_stop(struct vxd_proc *proc);

struct vxd_peer {
    void *socket;
    uint8_t session[VXW_SESSION_BYTES];
    uint64_t next_req;
};

/* A received message; free with vxd_got_free. */
struct vxd_got {
    vxw_header *header;
    int n_payloads;
    zmq_msg_t payload;
};

/* Connects to DIR/ENDPOINT.sock, without a HELLO. */
void vxd_peer_open(struct vxd_peer *peer, const struct vxd_proc *proc, const char *endpoint);
void vxd_peer_close(struct vxd_peer *peer);
/* Connects and says HELLO. */
void vxd_peer_hello(struct vxd_peer *peer, const struct vxd_proc *proc, const char *endpoint);

/* Sends a message with at most one payload (NULL: none).  Fills session if it is empty, req_id if it is 0;
 * returns the req_id. */
uint64_t vxd_peer_send(struct vxd_peer *peer, vxw_header *header, const void *payload, size_t n);
/* The same with any number of payloads. */
uint64_t vxd_peer_send_all(struct vxd_peer *peer, vxw_header *header, const void *const *payload,
                           const size_t *n, int n_payloads);
/* Sends frames as they are. */
void vxd_peer_send_raw(struct vxd_peer *peer, const void *const *frames, const size_t *n, int n_frames);
/* The next message that is not a PING. */
struct vxd_got vxd_peer_get(struct vxd_peer *peer);
/* The same if one is there or comes within that time; false if not. */
bool vxd_peer_try(struct vxd_peer *peer, int timeout_ms, struct vxd_got *got);
/* As get, and checks its type and req_id. */
struct vxd_got vxd_peer_expect(struct vxd_peer *peer, unsigned type, uint64_t req_id);
/* Expects ERROR with that code; field NULL: any. */
void vxd_peer_expect_error(struct vxd_peer *peer, uint64_t req_id, Voxeld__V1__Code code, const char *field);
/* True when nothing arrives before the answer to a PING. */
bool vxd_peer_is_quiet(struct vxd_peer *peer);
void vxd_got_free(struct vxd_got *got);

/* ------------------------------------------------------------------ common requests; each waits for its
 * answer */

void vxd_peer_map_create(struct vxd_peer *admin, const char *name, double voxel_size_m);
/* Digest of the map, 32 bytes. */
void vxd_peer_map_digest(struct vxd_peer *admin, const char *name, uint8_t *digest);
/* Unpacked with NULL allocator; free with voxeld__v1__stats_report__free_unpacked. */
Voxeld__V1__StatsReport *vxd_peer_stats(struct vxd_peer *peer);
/* Opens a stream of a sensor with default ranges; `edit` (may be NULL) changes the message first. */
void vxd_peer_open_stream(struct vxd_peer *ingest, const char *map, uint64_t stream,
                          Voxeld__V1__Sensor sensor, void (*edit)(Voxeld__V1__OpenStream *));

/* Starts an upload of n bytes for a request that was just sent, under the daemon's credits. */
void vxd_peer_upload(struct vxd_peer *peer, uint64_t req_id, const void *data, size_t n);
/* Fetches a body in parts; data: [n] bytes. */
void vxd_peer_download(struct vxd_peer *peer, uint64_t req_id, void *data, size_t n);

/* A depth frame of 4 x 4 float32 readings, ready to send; fields may be changed first. */
struct vxd_depth_frame {
    vxw_header header;
    Voxeld__V1__Frame frame;
    Voxeld__V1__Pinhole pinhole;
    Voxeld__V1__Pose pose, *poses[1];
    float depth[16];
};
void vxd_depth_frame_init(struct vxd_depth_frame *f, uint64_t stream, uint64_t seq);
uint64_t vxd_depth_frame_send(struct vxd_peer *peer, struct vxd_depth_frame *f);

/* Bytes of a C string for a bytes field. */
ProtobufCBinaryData vxd_bytes(const char *text);

#endif
