#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static vx_err cannot(const struct outfile *out, int reason, struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_UNAVAILABLE, "output", "cannot write %s: %s", out->path, strerror(reason));
}

/* A name for an open file, of whatever kind that is. */
static bool names_open_file(const char *path)
{
    static const char *const prefixes[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/*
 * Where the finished file goes: a link stays, and what it points to is replaced.  "": it is written as it is,
 * because a device, a pipe, or a name for an open file (/dev/stdout, /proc/self/fd/1) cannot be replaced.
 */
static vx_err choose_target(struct outfile *out, struct vx_detail *detail)
{
    struct stat st;
    char *real = NULL;
    const bool there = stat(out->path, &st) == 0;
    out->target[0] = '\0';
    if ((there && !S_ISREG(st.st_mode)) || names_open_file(out->path))
        return VX_OK;
    if (there) {
        real = realpath(out->path, NULL);
        if (!real)
            return cannot(out, errno, detail);
    }
    const int n = snprintf(out->target, sizeof out->target, "%s", real ? real : out->path);
    free(real);
    return n < (int)sizeof out->target ? VX_OK
                                       : vx_fail(detail, VX_E_INVALID, "output", "the path is too long");
}

/* A file without a name beside the target goes with its program, however that ends; -1: there is no such. */
static int open_nameless(struct outfile *out)
{
    char folder[sizeof out->target], *slash;
    if (access("/proc/self/fd", X_OK) != 0) /* the way to its name */
        return -1;
    snprintf(folder, sizeof folder, "%s", out->target);
    slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

static bool is_stdout(FILE *file)
{
    struct stat a, b;
    return fstat(fileno(file), &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static vx_err open_file(struct outfile *out, const char *path, struct vx_detail *detail)
{
    out->path = path;
    out->target[0] = out->part[0] = '\0';
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return VX_OK;
    }
    VX_TRY_RET(choose_target(out, detail));
    if (!out->target[0]) {
        out->file = fopen(path, "wb");
        return out->file ? VX_OK : cannot(out, errno, detail);
    }
    const int n = snprintf(out->part, sizeof out->part, "%s.part-%ld", out->target, (long)getpid());
    if (n < 0 || n >= (int)sizeof out->part)
        return vx_fail(detail, VX_E_INVALID, "output", "the path is too long");
    const int fd = open_nameless(out);
    out->nameless = fd >= 0;
    out->file = fd >= 0 ? fdopen(fd, "wb") : fopen(out->part, "wb");
    if (out->file)
        return VX_OK;
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    return cannot(out, reason, detail);
}

vx_err outfile_open(struct outfile *out, const char *path, struct vx_detail *detail)
{
    VX_TRY_RET(open_file(out, path, detail));
    out->report = is_stdout(out->file) ? stderr : stdout;
    return VX_OK;
}

/* Gives a file that is whole its name. */
static vx_err place(struct outfile *out, struct vx_detail *detail)
{
    if (out->nameless) {
        char self[64];
        snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(out->file));
        (void)unlink(out->part); /* of a program that had our number */
        if (linkat(AT_FDCWD, self, AT_FDCWD, out->part, AT_SYMLINK_FOLLOW) != 0)
            return cannot(out, errno, detail);
    }
    if (rename(out->part, out->target) == 0)
        return VX_OK;
    const int reason = errno;
    unlink(out->part);
    return cannot(out, reason, detail);
}

vx_err outfile_close(struct outfile *out, vx_err err, struct vx_detail *detail)
{
    bool failed = fflush(out->file) != 0 || ferror(out->file);
    if (!failed && err == VX_OK && out->target[0]) /* on disk before it has its name */
        failed = fsync(fileno(out->file)) != 0;
    if (err == VX_OK && failed)
        err = cannot(out, errno, detail);
    if (err == VX_OK && out->target[0])
        err = place(out, detail);
    else if (out->target[0] && !out->nameless)
        unlink(out->part);
    if (out->file != stdout && fclose(out->file) != 0 && err == VX_OK)
        err = cannot(out, errno, detail);
    return err;
}
