/* refresh.c - brings a map's distance field up to date before somebody asks. */
#include "refresh.h"
#include "map.h"
#include "vx/query.h"

enum { ASKED_MS = 2000 /* after so long without a question nobody seems to ask any more */ };

static uint64_t period_ns(const struct vxd_map *map)
{
    return map->server->config.esdf_period_ms * 1000000;
}

void vxd_refresh_asked(struct vxd_map *map)
{
    map->refresh.asked_ns = vxd_now_ns();
}

static void run(struct vxd_job *job)
{
    struct vxd_refresh *r = (struct vxd_refresh *)job;
    const double origin_m[3] = {0, 0, 0};
    const struct vx_query_options options = {.now_ns = r->begun_ns, .esdf_period_ns = period_ns(r->map) / 2};
    struct vx_detail detail = {{0}, {0}};
    struct vx_reply reply;
    /* A refusal is the next query's to tell. */
    (void)vx_query_points(r->map->core, &options, origin_m, NULL, 0, NULL, &reply, &detail);
    r->took_ns = vxd_now_ns() - r->begun_ns;
}

static void done(struct vxd_job *job)
{
    struct vxd_refresh *r = (struct vxd_refresh *)job;
    struct vxd_map *map = r->map;
    vxd_server_job_done(map->server);
    r->running = false;
    --map->n_requests;
    vxd_map_released(map);
}

void vxd_refresh_after_commit(struct vxd_map *map)
{
    struct vxd_refresh *r = &map->refresh;
    const uint64_t now = vxd_now_ns(), period = period_ns(map);
    if (!period || r->running || map->state != VXD_MAP_LIVE || map->server->stopping || !r->asked_ns ||
        now - r->asked_ns > ASKED_MS * 1000000ull || now - r->begun_ns < period / 2)
        return;
    if (r->took_ns > period && now - r->begun_ns < 64 * r->took_ns) /* from time to time it is tried again */
        return;
    r->map = map;
    r->running = true;
    r->begun_ns = now;
    r->job.run = run;
    r->job.done = done;
    ++map->n_requests;
    vxd_server_push(map->server, &map->lane[VXD_LANE_QUERY], &r->job);
}
