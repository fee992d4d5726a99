/*
 * refresh.h - brings a map's distance field up to date before somebody asks.
 *
 * A query that finds the field older than esdf_period_ms waits until it is up to date.  So while queries for
 * distances come in, a field that commits have overtaken is refreshed before it is of that age, on the query
 * lane: what a query then waits for is at most the rest of a refresh, and mostly nothing.  Where a refresh
 * takes longer than the period it would only stand in the queries' way, and is left to them.
 *
 * Thread: the loop.
 */
#ifndef VXD_REFRESH_H
#define VXD_REFRESH_H

#include "worker.h"

#include <stdint.h>

struct vxd_map;
struct vxd_server;

struct vxd_refresh {
    struct vxd_job job;
    struct vxd_map *map;
    bool running;
    bool behind;                /* commits came that the last refresh, or the one that runs, did not see */
    uint64_t begun_ns, took_ns; /* the last one; took_ns is the worker's while it runs */
    uint64_t asked_ns;          /* when a query last was answered with distances; 0 = never */
};

/* A query of the map was answered with distances; that has been sent. */
void vxd_refresh_asked(struct vxd_map *map);
/* The map has a new epoch: has its field refreshed, now or in time, if that is worth it. */
void vxd_refresh_after_commit(struct vxd_map *map);
/* Begins what is due; server->refresh runs until nothing is left. */
void vxd_refresh_on_time(struct vxd_server *server);

#endif
