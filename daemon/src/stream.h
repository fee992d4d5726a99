/*
 * stream.h - a stream of frames into a map, and a frame on its way.
 *
 * A stream belongs to its map and outlives the session that opened it, so that a client which comes back
 * learns what was accepted.
 */
#ifndef VXD_STREAM_H
#define VXD_STREAM_H

#include "map.h"

struct vxd_frame;

struct vxd_stream {
    struct vxd_stream *next; /* of its map */
    struct vxd_map *map;
    struct vxd_session *session; /* that has it open, or NULL */
    uint64_t id;

    enum vx_sensor sensor;
    double min_range_m, max_range_m, no_return_value, intensity_white;
    bool invalid_zero, no_carving, latest, ack_received;

    uint32_t credit_frames;
    uint64_t credit_bytes;
    uint32_t n_staging;  /* being checked and copied: whether they are accepted is not known yet */
    uint32_t n_inflight; /* those and the accepted ones that are not done */
    uint64_t inflight_bytes;
    struct vxd_frame *waiting; /* `latest`: the one that a newer may replace */
    uint64_t last_seq;
    int64_t last_stamp_ns;

    uint64_t n_received, n_integrated, n_superseded;
    uint32_t n_warnings;
    uint64_t n_refused[VXD_N_CODES];
    struct vx_frame_counts readings;
};

struct vxd_frame {
    struct vxd_job job;
    struct vxd_stream *stream;
    uint64_t serial; /* of the session that sent it */
    uint64_t req_id, seq;
    uint64_t arrived_ns, deadline_ns;
    uint64_t begun_ns, ended_ns; /* of its integration */
    /* As it came, until it is staged. */
    vxw_header *header;
    uint32_t n_payloads;
    zmq_msg_t payload[VXW_MAX_PAYLOADS];

    struct vx_device *device;
    void *data;       /* payloads, each at a multiple of 8 bytes, where the device uploads fastest from */
    uint64_t n_bytes; /* of the payloads */
    float *elevation_rad;
    struct vx_frame frame;

    vx_err err;
    struct vx_detail detail;
    struct vx_frame_result result;
};

/*
 * Opens stream `id` of the map for the session, as new or where it was left.
 * Errors: VX_E_EXISTS a session has it, or the session has another of this number; VX_E_EXHAUSTED;
 * VX_E_NOMEM.
 */
vx_err vxd_stream_open(struct vxd_session *session, struct vxd_map *map, uint64_t id, struct vxd_stream **out,
                       struct vx_detail *detail);
/* True when somebody left the stream with frames that are being staged: it can't be opened before that is
 * over, since its last seq is not known. */
bool vxd_stream_is_unsettled(const struct vxd_map *map, uint64_t id);
/* The session's stream of that number, or NULL. */
struct vxd_stream *vxd_stream_find(struct vxd_session *session, uint64_t id);
/* The session leaves its streams; frames under way are still integrated. */
void vxd_streams_leave(struct vxd_session *session);
/* Frees the streams of a map that ends. */
void vxd_streams_free(struct vxd_map *map);

/* Fills wire Counts. */
void vxd_counts_fill(const struct vx_frame_counts *counts, Voxeld__V1__Counts *out);
/* Gives credit back for one frame of n bytes. */
void vxd_stream_credit(struct vxd_stream *stream, uint64_t n_bytes);
/* Counts and sends a NACK, and nothing else.  stream may be NULL (no such stream). */
void vxd_stream_nack(struct vxd_session *session, struct vxd_stream *stream, uint64_t req_id, uint64_t id,
                     uint64_t seq, vx_err err, const struct vx_detail *detail);

/* The session that sent the frame, if it still has the stream; else NULL. */
struct vxd_session *vxd_frame_owner(const struct vxd_frame *frame);
/* Counts a frame that is being staged, and holds its map. */
void vxd_frame_hold(struct vxd_frame *frame);
/* It is staged: queues it, and a waiting one of a `latest` stream is superseded. */
void vxd_frame_submit(struct vxd_frame *frame);
/* It is staged and refused: NACK, its credit back, gone. */
void vxd_frame_refuse(struct vxd_frame *frame, vx_err err, const struct vx_detail *detail);
void vxd_frame_free(struct vxd_frame *frame);

#endif
