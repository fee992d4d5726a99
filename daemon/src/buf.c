#include "buf.h"

#include <stdlib.h>

struct vxd_buf *vxd_buf_create(size_t n_bytes)
{
    struct vxd_buf *buf = malloc(sizeof *buf);
    if (!buf)
        return NULL;
    buf->data = malloc(n_bytes ? n_bytes : 1);
    if (!buf->data) {
        free(buf);
        return NULL;
    }
    atomic_init(&buf->n_refs, 1);
    buf->n_bytes = n_bytes;
    return buf;
}

struct vxd_buf *vxd_buf_retain(struct vxd_buf *buf)
{
    atomic_fetch_add_explicit(&buf->n_refs, 1, memory_order_relaxed);
    return buf;
}

void vxd_buf_release(struct vxd_buf *buf)
{
    if (buf && atomic_fetch_sub_explicit(&buf->n_refs, 1, memory_order_acq_rel) == 1) {
        free(buf->data);
        free(buf);
    }
}
