/*
 * verbs.h - what the daemon does with each message; one file a verb.
 *
 * Every function gets the server, the sender's session (NULL for HELLO only) and the message, whose payload
 * count and endpoint dispatch.c has checked.  Answers, refusals included, are sent before or after the
 * return; nothing blocks. Common to all requests: those of vxd_request_open, and NOT_FOUND / LOADING /
 * INVALID_ARGUMENT for the map's name.
 */
#ifndef VXD_VERBS_H
#define VXD_VERBS_H

#include "session.h"

typedef void vxd_verb(struct vxd_server *server, struct vxd_session *session, struct vxd_in *in);

/* WELCOME.  Errors: UNSUPPORTED_VERSION; INVALID_ARGUMENT; RESOURCE_EXHAUSTED limits.sessions; UNAVAILABLE
 * stopping. */
vxd_verb vxd_verb_hello;
/* PONG.  Errors: INVALID_ARGUMENT data over 64 bytes. */
vxd_verb vxd_verb_ping;
/* Nothing: the peer is there. */
vxd_verb vxd_verb_pong;
/* BYE, and the session ends. */
vxd_verb vxd_verb_bye;
/* No answer of its own. */
vxd_verb vxd_verb_cancel;
/* A piece of an upload.  Errors (of the request): INVALID_ARGUMENT; RESOURCE_EXHAUSTED without credit. */
vxd_verb vxd_verb_part;
/* Leave to send parts of a download. */
vxd_verb vxd_verb_credit;
/* UNIMPLEMENTED. */
vxd_verb vxd_verb_subscribe;

/* STREAM_OK.  Errors: INVALID_ARGUMENT; ALREADY_EXISTS; RESOURCE_EXHAUSTED; UNIMPLEMENTED wait_for_stamps,
 * DURABLE. */
vxd_verb vxd_verb_open_stream;
/* ACK, or NACK: NOT_FOUND stream; RESOURCE_EXHAUSTED credits, staging, budget, cap; INVALID_ARGUMENT;
 * OUT_OF_ORDER; DEADLINE_EXCEEDED; UNIMPLEMENTED encoding; UNAVAILABLE stopping, device. */
vxd_verb vxd_verb_frame;

/* RESULT.  Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED; STALE_EPOCH; DEADLINE_EXCEEDED; CANCELLED;
 * UNAVAILABLE. */
vxd_verb vxd_verb_query_points;
vxd_verb vxd_verb_query_spheres;
vxd_verb vxd_verb_query_rays;
vxd_verb vxd_verb_query_trajectory;
vxd_verb vxd_verb_query_box;
vxd_verb vxd_verb_query_slice;
vxd_verb vxd_verb_explain;
vxd_verb vxd_verb_mesh;
vxd_verb vxd_verb_mesh_chunks; /* what vxd_verb_mesh hands on */
/* What both share: the answer's size is reserved once it is known (settle), and RESULT with the caller's
 * fields is sent (answer); origin_m: of the vertices.  Thread: the loop's. */
void vxd_mesh_settle(struct vxd_request *request);
void vxd_mesh_answer(struct vxd_request *request, Voxeld__V1__Result *result, const double origin_m[3]);

/* MAP_INFO_REPLY.  Errors: INVALID_ARGUMENT; ALREADY_EXISTS; RESOURCE_EXHAUSTED; UNIMPLEMENTED; UNAVAILABLE.
 */
vxd_verb vxd_verb_map_create;
/* MAP_LIST_REPLY. */
vxd_verb vxd_verb_map_list;
/* MAP_INFO_REPLY. */
vxd_verb vxd_verb_map_info;
/* MAP_DIGEST_REPLY.  Errors: CANCELLED; UNAVAILABLE. */
vxd_verb vxd_verb_map_digest;
/* RESULT.  Errors: RESOURCE_EXHAUSTED; UNAVAILABLE. */
vxd_verb vxd_verb_map_clear;
/* MAP_INFO_REPLY.  Errors: INVALID_ARGUMENT edit, protect.shape, region; NOT_FOUND region; RESOURCE_EXHAUSTED
 * 64 regions. */
vxd_verb vxd_verb_map_edit;
/* RESULT.  Queries on the map are answered NOT_FOUND; accepted frames are integrated first. */
vxd_verb vxd_verb_map_delete;

/* RESULT with the file as its body.  Errors: INVALID_ARGUMENT layer, format; STALE_EPOCH; RESOURCE_EXHAUSTED;
 * CANCELLED; UNAVAILABLE. */
vxd_verb vxd_verb_map_export;
/* MAP_INFO_REPLY once the file, the body, is a map.  Errors: those of MAP_CREATE; DATA_LOSS, NOT_FOUND,
 * UNSUPPORTED_VERSION, UNIMPLEMENTED of the file; CANCELLED. */
vxd_verb vxd_verb_map_import;

/* STATS_REPLY. */
vxd_verb vxd_verb_stats;
/* RESULT, then the daemon stops. */
vxd_verb vxd_verb_shutdown;

#endif
