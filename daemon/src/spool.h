/*
 * spool.h - a body that is too large for memory: a file without a name in spool_dir.
 *
 * The file is opened, read, written and closed on workers, never on the loop.  A request owns a spool; jobs
 * under way keep it alive after the request has gone.
 *
 * Thread: the loop, except vxd_spool_fd.
 */
#ifndef VXD_SPOOL_H
#define VXD_SPOOL_H

#include "request.h"

struct vxd_spool;

/* An empty spool of a request, which counts n_bytes (0: see vxd_spool_resize) against limits.spool_bytes.
 * Errors: VX_E_EXHAUSTED; VX_E_NOMEM. */
vx_err vxd_spool_create(struct vxd_request *request, uint64_t n_bytes, struct vxd_spool **out);
/* The request lets go of it; NULL is fine. */
void vxd_spool_release(struct vxd_spool *spool);
uint64_t vxd_spool_bytes(const struct vxd_spool *spool);
/* Says how large the file became that a worker wrote.  Errors: VX_E_EXHAUSTED limits.spool_bytes. */
vx_err vxd_spool_resize(struct vxd_spool *spool, uint64_t n_bytes);
/* Bytes that limits.spool_bytes leaves. */
uint64_t vxd_spool_room(const struct vxd_server *server);
/* The open file.  Thread: a worker, while no job of the spool is under way.  Errors: VX_E_UNAVAILABLE. */
vx_err vxd_spool_fd(struct vxd_spool *spool, int *fd, struct vx_detail *detail);

/*
 * Writes a copy of n bytes at `at`; vxd_spool_done is told.  Errors: VX_E_NOMEM.
 */
vx_err vxd_spool_write(struct vxd_spool *spool, uint64_t at, const void *bytes, size_t n);
/* Reads n bytes at `at`; vxd_spool_done is told.  Errors: VX_E_NOMEM. */
vx_err vxd_spool_read(struct vxd_spool *spool, uint64_t at, size_t n);

/* transfer.c: a read or write of a request's spool came to `err`; buf: what was read, or what was written. */
void vxd_spool_done(struct vxd_request *request, vx_err err, const struct vx_detail *detail,
                    struct vxd_buf *buf);

#endif
