/*
 * buf.h - a reference-counted block of bytes: bodies and frame payloads on their way through the daemon.
 *
 * Thread: retain and release from any thread (libzmq releases what it has sent on its own thread).
 */
#ifndef VXD_BUF_H
#define VXD_BUF_H

#include <stdatomic.h>
#include <stddef.h>

struct vxd_buf {
    atomic_uint n_refs;
    size_t n_bytes;
    unsigned char *data; /* aligned for any type */
};

/* NULL when there is no memory.  Contents are undefined; the caller has the one reference. */
struct vxd_buf *vxd_buf_create(size_t n_bytes);
struct vxd_buf *vxd_buf_retain(struct vxd_buf *buf);
/* buf may be NULL. */
void vxd_buf_release(struct vxd_buf *buf);

#endif
