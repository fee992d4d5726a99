#include "outfile.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = sizeof((struct outfile *)0)->target, MAX_LINKS = 40 };

static vx_err cannot(const struct outfile *out, int reason, struct vx_detail *detail)
{
    if (reason == EPIPE)
        return vx_fail(detail, VX_E_UNAVAILABLE, "output",
                       "cannot write %s: the program that read it has ended", out->path);
    return vx_fail(detail, VX_E_UNAVAILABLE, "output", "cannot write %s: %s", out->path, strerror(reason));
}

bool outfile_stop(FILE *file)
{
    return cli_interrupted() || ferror(file);
}

/* ------------------------------------------------------------------ names */

/* A name for an open file, of whatever kind that is. */
static bool names_open_file(const char *path)
{
    static const char *const prefixes[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Bytes of the folder in front of a name, the slash included. */
static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* What a path with links at its end names, there or not: out, MAX_PATH bytes.  false: too long, or too many.
 */
static bool follow(const char *path, char *out)
{
    char to[MAX_PATH], next[MAX_PATH];
    struct stat st;
    if (snprintf(out, MAX_PATH, "%s", path) >= MAX_PATH)
        return false;
    for (int i = 0; i < MAX_LINKS; i++) {
        if (lstat(out, &st) != 0 || !S_ISLNK(st.st_mode))
            return true;
        const ssize_t n = readlink(out, to, sizeof to - 1);
        if (n < 0)
            return false;
        to[n] = '\0';
        if (snprintf(next, sizeof next, "%.*s%s", to[0] == '/' ? 0 : (int)folder_bytes(out), out, to) >=
            MAX_PATH)
            return false;
        memcpy(out, next, sizeof next);
    }
    return false;
}

/* The one name of a file, there or not; out: MAX_PATH bytes. */
static bool true_name(const char *path, char *out)
{
    char followed[MAX_PATH], folder[MAX_PATH];
    if (!follow(path, followed))
        return false;
    const size_t n = folder_bytes(followed);
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? followed : ".");
    char *real = realpath(folder, NULL);
    const bool good =
        real && snprintf(out, MAX_PATH, "%s/%s", strcmp(real, "/") == 0 ? "" : real, followed + n) < MAX_PATH;
    free(real);
    return good;
}

bool outfile_same(const char *a, const char *b)
{
    char name_a[MAX_PATH], name_b[MAX_PATH];
    struct stat st_a, st_b;
    const char *path_a = strcmp(a, "-") == 0 ? "/dev/stdout" : a;
    const char *path_b = strcmp(b, "-") == 0 ? "/dev/stdout" : b;
    if (strcmp(path_a, path_b) == 0)
        return strcmp(path_a, "/dev/null") != 0;
    /* Hard links are replaced one by one; what is written as it is are one file by any name. */
    if ((names_open_file(path_a) || names_open_file(path_b)) && stat(path_a, &st_a) == 0 &&
        stat(path_b, &st_b) == 0)
        return st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino && !S_ISCHR(st_a.st_mode);
    return true_name(path_a, name_a) && true_name(path_b, name_b) && strcmp(name_a, name_b) == 0 &&
           strcmp(name_a, "/dev/null") != 0;
}

/*
 * Where the finished file goes: a link stays, and what it points to is replaced or made.  "": it is written
 * as it is, because a device, a pipe, or a name for an open file (/dev/stdout, /proc/self/fd/1) cannot be
 * replaced.
 */
static vx_err choose_target(struct outfile *out, struct vx_detail *detail)
{
    struct stat st;
    out->target[0] = '\0';
    if ((stat(out->path, &st) == 0 && !S_ISREG(st.st_mode)) || names_open_file(out->path))
        return VX_OK;
    return follow(out->path, out->target)
               ? VX_OK
               : vx_fail(detail, VX_E_INVALID, "output",
                         "cannot write %.100s: the path is too long, or its links lead nowhere", out->path);
}

/* ------------------------------------------------------------------ opening */

/* A file without a name beside the target goes with its program, however that ends; -1: there is no such. */
static int open_nameless(struct outfile *out)
{
    char folder[MAX_PATH];
    const size_t n = folder_bytes(out->target);
    if (access("/proc/self/fd", X_OK) != 0) /* the way to its name */
        return -1;
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? out->target : ".");
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

static bool is_stdout(FILE *file)
{
    struct stat a, b;
    return fstat(fileno(file), &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static vx_err take_descriptor(struct outfile *out, int fd, struct vx_detail *detail)
{
    int reason = errno;
    out->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (out->file)
        return VX_OK;
    if (fd >= 0) {
        reason = errno;
        close(fd);
    }
    if (reason == EINTR && cli_interrupted())
        return vx_fail(detail, VX_E_CANCELLED, "output", "interrupted while nobody read %s", out->path);
    return cannot(out, reason, detail);
}

/* A pipe that nobody reads yet is waited for, as a shell's > does; whoever waits is told for what. */
static vx_err open_as_it_is(struct outfile *out, struct vx_detail *detail)
{
    enum { HOW = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC };
    struct stat st;
    if (stat(out->path, &st) != 0 || !S_ISFIFO(st.st_mode))
        return take_descriptor(out, open(out->path, HOW, 0666), detail);
    int fd = open(out->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, 0);
    else if (errno == ENXIO) {
        fprintf(stderr, "voxelctl: %s is a pipe that nobody reads yet: waiting for a reader\n", out->path);
        fd = open(out->path, O_WRONLY | O_CLOEXEC);
    }
    return take_descriptor(out, fd, detail);
}

static vx_err open_file(struct outfile *out, const char *path, struct vx_detail *detail)
{
    *out = (struct outfile){.path = path};
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return VX_OK;
    }
    VX_TRY_RET(choose_target(out, detail));
    if (!out->target[0])
        return open_as_it_is(out, detail);
    const int n = snprintf(out->part, sizeof out->part, "%s.part-%ld", out->target, (long)getpid());
    if (n < 0 || n >= (int)sizeof out->part)
        return vx_fail(detail, VX_E_INVALID, "output", "the path is too long");
    const int fd = open_nameless(out);
    out->nameless = fd >= 0;
    return take_descriptor(
        out, fd >= 0 ? fd : open(out->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), detail);
}

vx_err outfile_open(struct outfile *out, const char *path, struct vx_detail *detail)
{
    VX_TRY_RET(open_file(out, path, detail));
    out->report = is_stdout(out->file) ? stderr : stdout;
    return VX_OK;
}

/* ------------------------------------------------------------------ closing */

/* A signal that came while it was written is why, whatever the writing made of it. */
static vx_err interrupted(const struct outfile *out, struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_CANCELLED, "output",
                   out->target[0] ? "interrupted: %s is as it was" : "interrupted: %s is not whole",
                   strcmp(out->path, "-") == 0 ? "stdout" : out->path);
}

/* All of it is on disk, under the name that it has until it replaces the target. */
static vx_err settle(struct outfile *out, struct vx_detail *detail)
{
    const bool failed = outfile_stop(out->file) || fflush(out->file) != 0 || ferror(out->file);
    if (failed || (out->target[0] && fsync(fileno(out->file)) != 0))
        return cannot(out, errno, detail);
    if (!out->nameless)
        return VX_OK;
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fileno(out->file));
    (void)unlink(out->part); /* of a program that had our number */
    if (linkat(AT_FDCWD, self, AT_FDCWD, out->part, AT_SYMLINK_FOLLOW) != 0)
        return cannot(out, errno, detail);
    out->nameless = false;
    return VX_OK;
}

vx_err outfiles_close(struct outfile *out, size_t n, vx_err err, struct vx_detail *detail)
{
    for (size_t i = 0; i < n && err == VX_OK; i++)
        if (out[i].file)
            err = settle(&out[i], detail);
    for (size_t i = 0; i < n && cli_interrupted() && (err == VX_OK || err == VX_E_UNAVAILABLE); i++)
        if (out[i].file)
            err = interrupted(&out[i], detail);
    for (size_t i = 0; i < n && err == VX_E_CANCELLED; i++)
        if (out[i].file)
            __fpurge(out[i].file); /* the rest of it may wait for ever for a reader */
    for (size_t i = 0; i < n; i++) {
        if (!out[i].file)
            continue;
        if (err == VX_OK && out[i].target[0] && rename(out[i].part, out[i].target) != 0)
            err = cannot(&out[i], errno, detail);
        if (err != VX_OK && out[i].target[0] && !out[i].nameless)
            unlink(out[i].part);
        if (out[i].file != stdout && fclose(out[i].file) != 0 && err == VX_OK)
            err = cannot(&out[i], errno, detail);
        out[i].file = NULL;
    }
    return err;
}

vx_err outfile_close(struct outfile *out, vx_err err, struct vx_detail *detail)
{
    return outfiles_close(out, 1, err, detail);
}
