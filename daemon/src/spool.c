#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct vxd_spool {
    struct vxd_server *server;
    struct vxd_request *request; /* NULL once that has gone */
    uint32_t n_jobs;             /* under way */
    uint64_t n_bytes;
    int fd; /* -1 until a worker opens it */
};

struct spool_job {
    struct vxd_job job;
    struct vxd_spool *spool;
    struct vxd_buf *buf; /* NULL: closes the file */
    uint64_t at;
    bool write;
    vx_err err;
    struct vx_detail detail;
};

uint64_t vxd_spool_room(const struct vxd_server *server)
{
    uint64_t max = server->config.limits.spool_bytes;
    return server->spool_bytes < max ? max - server->spool_bytes : 0;
}

vx_err vxd_spool_resize(struct vxd_spool *spool, uint64_t n_bytes)
{
    struct vxd_server *server = spool->server;
    if (n_bytes > spool->n_bytes && n_bytes - spool->n_bytes > vxd_spool_room(server))
        return vx_fail(&spool->request->detail, VX_E_EXHAUSTED, "limits.spool_bytes",
                       "%llu bytes more of exports and imports, %llu of %llu are in use",
                       (unsigned long long)(n_bytes - spool->n_bytes),
                       (unsigned long long)server->spool_bytes,
                       (unsigned long long)server->config.limits.spool_bytes);
    server->spool_bytes += n_bytes - spool->n_bytes;
    spool->n_bytes = n_bytes;
    return VX_OK;
}

vx_err vxd_spool_create(struct vxd_request *request, uint64_t n_bytes, struct vxd_spool **out)
{
    struct vxd_spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return vx_fail(&request->detail, VX_E_NOMEM, "", "no memory for a transfer");
    spool->server = request->server;
    spool->request = request;
    spool->fd = -1;
    vx_err err = vxd_spool_resize(spool, n_bytes);
    if (err != VX_OK) {
        free(spool);
        return err;
    }
    *out = spool;
    return VX_OK;
}

uint64_t vxd_spool_bytes(const struct vxd_spool *spool)
{
    return spool->n_bytes;
}

/* ------------------------------------------------------------------ on a worker */

vx_err vxd_spool_fd(struct vxd_spool *spool, int *fd, struct vx_detail *detail)
{
    const char *dir = spool->server->config.spool_dir;
    if (spool->fd < 0)
        spool->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spool->fd < 0 &&
        (errno == EOPNOTSUPP || errno == EISDIR)) { /* a file system without nameless files */
        char path[sizeof spool->server->config.spool_dir + 24];
        snprintf(path, sizeof path, "%s/voxeld-XXXXXX", dir);
        spool->fd = mkostemp(path, O_CLOEXEC);
        if (spool->fd >= 0)
            unlink(path);
    }
    *fd = spool->fd;
    return spool->fd >= 0 ? VX_OK
                          : vx_fail(detail, VX_E_UNAVAILABLE, "spool_dir", "cannot make a file in %.120s: %s",
                                    dir, strerror(errno));
}

static vx_err transfer(struct spool_job *j, int fd)
{
    for (size_t done = 0; done < j->buf->n_bytes;) {
        size_t left = j->buf->n_bytes - done;
        off_t at = (off_t)(j->at + done);
        ssize_t k =
            j->write ? pwrite(fd, j->buf->data + done, left, at) : pread(fd, j->buf->data + done, left, at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return vx_fail(
                &j->detail, k < 0 && (errno == ENOSPC || errno == EDQUOT) ? VX_E_EXHAUSTED : VX_E_UNAVAILABLE,
                "spool_dir", "%s: %s", j->write ? "cannot keep the file" : "cannot read the file back",
                k < 0 ? strerror(errno) : "it ends early");
        done += (size_t)k;
    }
    return VX_OK;
}

static void run(struct vxd_job *job)
{
    struct spool_job *j = (struct spool_job *)job;
    int fd;
    if (!j->buf) {
        close(j->spool->fd); /* frees the disk's blocks: may take its time */
        return;
    }
    j->err = vxd_spool_fd(j->spool, &fd, &j->detail);
    if (j->err == VX_OK)
        j->err = transfer(j, fd);
}

/* ------------------------------------------------------------------ on the loop */

static void destroy(struct vxd_spool *spool)
{
    struct vxd_server *server = spool->server;
    server->spool_bytes -= spool->n_bytes;
    free(spool);
}

static void closed(struct vxd_job *job)
{
    struct spool_job *j = (struct spool_job *)job;
    vxd_server_job_done(j->spool->server);
    destroy(j->spool);
    free(j);
}

/* Nobody needs it any more. */
static void finish(struct vxd_spool *spool)
{
    struct spool_job *j = spool->fd >= 0 && !spool->server->stopping ? calloc(1, sizeof *j) : NULL;
    if (!j) { /* the loop may be about to end, or there is no memory: here and now */
        if (spool->fd >= 0)
            close(spool->fd);
        destroy(spool);
        return;
    }
    j->spool = spool;
    j->job.run = run;
    j->job.done = closed;
    vxd_server_push(spool->server, &spool->server->spool, &j->job);
}

void vxd_spool_release(struct vxd_spool *spool)
{
    if (!spool)
        return;
    spool->request = NULL;
    if (!spool->n_jobs)
        finish(spool);
}

static void done(struct vxd_job *job)
{
    struct spool_job *j = (struct spool_job *)job;
    struct vxd_spool *spool = j->spool;
    vxd_server_job_done(spool->server);
    --spool->n_jobs;
    if (spool->request)
        vxd_spool_done(spool->request, j->err, &j->detail, j->buf); /* may release the spool */
    else if (!spool->n_jobs)
        finish(spool);
    vxd_buf_release(j->buf);
    free(j);
}

static vx_err push(struct vxd_spool *spool, uint64_t at, struct vxd_buf *buf, bool write)
{
    struct spool_job *j = buf ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        vxd_buf_release(buf);
        return vx_fail(&spool->request->detail, VX_E_NOMEM, "", "no memory for a part");
    }
    j->spool = spool;
    j->buf = buf;
    j->at = at;
    j->write = write;
    j->job.run = run;
    j->job.done = done;
    ++spool->n_jobs;
    vxd_server_push(spool->server, &spool->server->spool, &j->job);
    return VX_OK;
}

vx_err vxd_spool_write(struct vxd_spool *spool, uint64_t at, const void *bytes, size_t n)
{
    struct vxd_buf *buf = vxd_buf_create(n);
    if (buf)
        memcpy(buf->data, bytes, n);
    return push(spool, at, buf, true);
}

vx_err vxd_spool_read(struct vxd_spool *spool, uint64_t at, size_t n)
{
    return push(spool, at, vxd_buf_create(n), false);
}
