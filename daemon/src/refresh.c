/* refresh.c - brings a map's distance field up to date before somebody asks. */
#include "refresh.h"
#include "map.h"
#include "vx/query.h"

enum { ASKED_MS = 2000 /* after so long without a question nobody seems to ask any more */ };

static uint64_t period_ns(const struct vxd_map *map)
{
    return map->server->config.esdf_period_ms * 1000000;
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

/*
 * When a field that is behind is refreshed: right behind an answer once five eighths of its period are over,
 * since who asks at regular times asks again when it is done; else with an eighth left, or what a refresh may
 * need.
 */
static uint64_t due_ns(const struct vxd_map *map, bool answered)
{
    const struct vxd_refresh *r = &map->refresh;
    const uint64_t period = period_ns(map), most = period / 8 * 3;
    uint64_t ahead = period / 8;
    if (2 * r->took_ns > ahead)
        ahead = 2 * r->took_ns < most ? 2 * r->took_ns : most;
    return r->begun_ns + period - (answered ? most : ahead);
}

static bool is_worth_it(const struct vxd_map *map, uint64_t now)
{
    const struct vxd_refresh *r = &map->refresh;
    const uint64_t period = period_ns(map);
    if (!period || map->state != VXD_MAP_LIVE || map->server->stopping || !r->asked_ns ||
        now - r->asked_ns > ASKED_MS * 1000000ull)
        return false;
    return r->took_ns <= period || now - r->begun_ns >= 64 * r->took_ns; /* from time to time it is tried */
}

static void done(struct vxd_job *job);

/* Begins, or sees to it that vxd_refresh_on_time will.  answered: a query was, just now. */
static void begin(struct vxd_map *map, bool answered)
{
    struct vxd_refresh *r = &map->refresh;
    const uint64_t now = vxd_now_ns();
    if (!r->behind || r->running)
        return;
    if (!is_worth_it(map, now)) {
        r->behind = false;
        return;
    }
    const uint64_t due = due_ns(map, answered);
    if (now < due) {
        if (!answered) /* else a commit has seen to that */
            vxd_server_refresh_in(map->server, due - now);
        return;
    }
    r->map = map;
    r->running = true;
    r->behind = false;
    r->begun_ns = now;
    r->job.run = run;
    r->job.done = done;
    ++map->n_requests;
    vxd_server_push(map->server, &map->lane[VXD_LANE_QUERY], &r->job);
}

static void done(struct vxd_job *job)
{
    struct vxd_refresh *r = (struct vxd_refresh *)job;
    struct vxd_map *map = r->map;
    vxd_server_job_done(map->server);
    r->running = false;
    begin(map, false);
    --map->n_requests;
    vxd_map_released(map);
}

void vxd_refresh_after_commit(struct vxd_map *map)
{
    map->refresh.behind = true;
    begin(map, false);
}

void vxd_refresh_asked(struct vxd_map *map)
{
    map->refresh.asked_ns = vxd_now_ns();
    begin(map, true);
}

void vxd_refresh_on_time(struct vxd_server *server)
{
    for (struct vxd_map *map = server->maps; map; map = map->next)
        begin(map, false);
}
