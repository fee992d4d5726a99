/*
 * map.h - the daemon's side of a map: its workers, its streams and what is known of it without asking the
 * core.
 */
#ifndef VXD_MAP_H
#define VXD_MAP_H

#include "refresh.h"
#include "request.h"
#include "vx/map.h"

enum vxd_map_state { VXD_MAP_CREATING, VXD_MAP_LIVE, VXD_MAP_DELETING };

struct vxd_map {
    struct vxd_map *next;
    struct vxd_server *server;
    char name[VX_NAME_MAX + 1];
    enum vxd_map_state state;
    struct vx_map *core; /* NULL while creating */
    struct vxd_worker lane[VXD_N_LANES];

    struct vx_reply newest;    /* as of the last commit */
    uint64_t integrated_ns;    /* when that was; 0 = never */
    uint32_t n_requests;       /* that hold it */
    uint32_t n_waiting_frames; /* accepted, not yet done */
    uint64_t n_refused;        /* frames refused before they reached the core */
    uint64_t no_at_once_ns;    /* until then the loop answers no query itself */
    struct vxd_refresh refresh;
    struct vxd_request *deleter;
    struct vxd_stream *streams;
    uint32_t n_streams;
    struct vxd_latency latency[VXD_N_WORK];
};

/*
 * The map of that name.
 * Errors: VX_E_INVALID the name is no name; VX_E_NOT_FOUND; VX_E_LOADING it is being created.
 */
vx_err vxd_map_find(struct vxd_server *server, const ProtobufCBinaryData *name, struct vxd_map **out,
                    struct vx_detail *detail);
/*
 * Adds an entry in state CREATING, with its threads.
 * Errors: VX_E_INVALID; VX_E_EXISTS; VX_E_EXHAUSTED limits.maps; VX_E_NOMEM.
 */
vx_err vxd_map_add(struct vxd_server *server, const ProtobufCBinaryData *name, struct vxd_map **out,
                   struct vx_detail *detail);
/* Ends the threads and frees the entry; the core's map is gone already and nothing is queued. */
void vxd_map_remove(struct vxd_map *map);
/* Stops new work on the map, ends the queries on it, and pushes request (MAP_DELETE) once nothing else holds
 * it. */
void vxd_map_begin_delete(struct vxd_map *map, struct vxd_request *request);
/* Called when a request has let go of it. */
void vxd_map_released(struct vxd_map *map);
/* Destroys every map on its own worker, for a stop. */
void vxd_maps_destroy_all(struct vxd_server *server);

/* Fills a wire MapState; it points into *map and *reply.  reply may be NULL: as of the last commit, no
 * distances. */
void vxd_map_state_fill(const struct vxd_map *map, const struct vx_reply *reply, Voxeld__V1__MapState *out);
/* Parameters of a new map: the wire's, the defaults where it says 0 or is NULL.
 * Errors: VX_E_INVALID params.weighting. */
vx_err vxd_map_take_params(const struct vxd_map_defaults *defaults, const Voxeld__V1__MapParams *wire,
                           struct vx_map_params *out, struct vx_detail *detail);
/* Takes in what a commit changed.  frame: it integrated one, else it emptied the map. */
void vxd_map_committed(struct vxd_map *map, uint64_t epoch, int64_t newest_stamp_ns, bool frame);

#endif
