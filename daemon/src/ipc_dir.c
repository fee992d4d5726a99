#include "ipc_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void remove_sockets(const char *dir)
{
    static const char *const names[] = {"ingest", "query", "events", "admin"};
    char path[160];
    struct stat st;
    for (int i = 0; i < 4; ++i) {
        snprintf(path, sizeof path, "%s/%s.sock", dir, names[i]);
        if (!lstat(path, &st) && S_ISSOCK(st.st_mode))
            unlink(path);
    }
}

vx_err vxd_ipc_dir_take(const char *dir, int *lock, struct vx_detail *detail)
{
    char path[160], pid[32];
    if (mkdir(dir, 0750) && errno != EEXIST)
        return vx_fail(detail, VX_E_UNAVAILABLE, "ipc_dir", "can't make %s: %s", dir, strerror(errno));
    snprintf(path, sizeof path, "%s/voxeld.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return vx_fail(detail, VX_E_UNAVAILABLE, "ipc_dir", "can't open %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        vx_err err =
            errno == EWOULDBLOCK
                ? vx_fail(detail, VX_E_EXISTS, "ipc_dir", "another voxeld serves %s already", dir)
                : vx_fail(detail, VX_E_UNAVAILABLE, "ipc_dir", "can't lock %s: %s", path, strerror(errno));
        close(fd);
        return err;
    }
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n) {
        /* the number is for people; the lock is what counts */
    }
    remove_sockets(dir);
    *lock = fd;
    return VX_OK;
}

void vxd_ipc_dir_leave(const char *dir, int lock)
{
    remove_sockets(dir);
    close(lock);
}
