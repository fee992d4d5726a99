/*
 * server.h - the daemon: its loop, what it owns, and how it stops.
 *
 * Thread: everything belongs to the loop thread, except where a job runs (worker.h).
 */
#ifndef VXD_SERVER_H
#define VXD_SERVER_H

#include "config.h"
#include "endpoint.h"
#include "hist.h"
#include "home.h"
#include "vx/device.h"
#include "worker.h"

struct vxd_map;
struct vxd_session;

enum { VXD_SESSION_BUCKETS = 256, VXD_N_CODES = 18, VXD_N_WORK = 7 };

struct vxd_server {
    struct vxd_config config;
    struct vx_device *device;

    uv_loop_t loop;
    /* Two contexts, so that a question need not stand behind a megabyte at ZeroMQ's own thread. */
    void *zmq_frames, *zmq; /* of the ingest socket; of the others */
    struct vxd_home home;
    struct vxd_endpoint endpoint[VXD_N_ENDPOINTS];
    uv_prepare_t prepare;   /* drains the sockets before the loop would block */
    uv_idle_t idle;         /* keeps the loop from blocking while there is more to drain */
    uv_timer_t tick;        /* 1 s: probes, transfers that don't move, the end of a stop */
    uv_timer_t retry;       /* 5 ms, while a peer's pipe is full */
    uv_timer_t refresh;     /* until the next distance field is due for a refresh */
    uv_timer_t last_resort; /* 1 s after a device error */
    uv_signal_t sigterm, sigint;
    struct vxd_done done;
    struct vxd_worker misc;  /* jobs that belong to no map */
    struct vxd_worker spool; /* reads and writes files of exports and imports */
    struct vxd_worker stage; /* checks and copies what frames carry, in order of arrival */

    struct vxd_session *sessions[VXD_SESSION_BUCKETS];
    uint32_t n_sessions;
    uint64_t next_serial;
    struct vxd_map *maps; /* in name order */
    uint32_t n_maps;

    uint64_t at_once_ns;    /* that answers of the loop's own took in this turn */
    uint64_t spin_until_ns; /* the loop looks for the next message without sleeping */
    uint64_t spin_ns;       /* for so long after such an answer; 0 where there are few processors */

    uint64_t n_jobs;         /* at workers, or done and on the way back */
    uint64_t staging_bytes;  /* of accepted frames */
    uint64_t transfer_bytes; /* of bodies */
    uint64_t spool_bytes;    /* of files of exports and imports */
    uint64_t started_ns;
    uint64_t n_bad_messages;
    uint64_t n_errors[VXD_N_CODES];
    uint64_t n_ended[VXD_N_CODES]; /* sessions that were doomed, by cause */
    struct vxd_latency latency[VXD_N_WORK];

    bool stopping;
    bool closing; /* maps are being destroyed, then the loop ends */
    bool
        failed; /* the device is gone: the process ends with an error, for its supervisor to start it again */
    uint64_t stop_ns;
};

/* Opens loop, sockets and workers in config->ipc_dir.  The device is the caller's.  On error nothing stays
 * open. Errors: VX_E_UNAVAILABLE; VX_E_NOMEM. */
vx_err vxd_server_open(struct vxd_server *server, const struct vxd_config *config, struct vx_device *device,
                       struct vx_detail *detail);
/* Runs until stopped; maps are gone afterwards.  Errors: VX_E_DEVICE the device failed. */
vx_err vxd_server_run(struct vxd_server *server);
void vxd_server_close(struct vxd_server *server);

/* Stops accepting; accepted frames are finished and answered, then the loop ends. */
void vxd_server_stop(struct vxd_server *server, const char *why);
/* Looks at what a job came to: a device error is sticky, so the daemon stops and ends within a second. */
void vxd_server_note(struct vxd_server *server, vx_err err, const struct vx_detail *detail);
/* Goes on with the stop when nothing is left to wait for. */
void vxd_server_check_stop(struct vxd_server *server);

/* vxd_refresh_on_time after so long, or earlier. */
void vxd_server_refresh_in(struct vxd_server *server, uint64_t ns);
/* Queues a job and counts it; its `done` must call vxd_server_job_done first. */
void vxd_server_push(struct vxd_server *server, struct vxd_worker *worker, struct vxd_job *job);
void vxd_server_job_done(struct vxd_server *server);

/* dispatch.c: handles one received message. */
void vxd_dispatch(struct vxd_server *server, struct vxd_in *in);

#endif
