#include "outfile.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

vx_err outfile_open(struct outfile *out, const char *path, struct vx_detail *detail)
{
    struct stat st;
    out->path = path;
    out->part[0] = '\0';
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return VX_OK;
    }
    /* A device or a pipe cannot be replaced by a finished file; it is written as it is. */
    const char *target = path;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) {
        const int n = snprintf(out->part, sizeof out->part, "%s.part-%ld", path, (long)getpid());
        if (n < 0 || n >= (int)sizeof out->part)
            return vx_fail(detail, VX_E_INVALID, "output", "the path is too long");
        target = out->part;
    }
    out->file = fopen(target, "wb");
    if (!out->file)
        return vx_fail(detail, VX_E_UNAVAILABLE, "output", "cannot write %s: %s", path, strerror(errno));
    return VX_OK;
}

vx_err outfile_close(struct outfile *out, vx_err err, struct vx_detail *detail)
{
    const bool is_stdout = out->file == stdout;
    int failed = fflush(out->file) != 0 || ferror(out->file);
    if (!failed && err == VX_OK && out->part[0]) /* on disk before it has its name */
        failed = fsync(fileno(out->file)) != 0;
    const int reason = errno;
    if (!is_stdout)
        failed |= fclose(out->file) != 0;
    if (err == VX_OK && failed)
        err = vx_fail(detail, VX_E_UNAVAILABLE, "output", "cannot write %s: %s", out->path, strerror(reason));
    if (err == VX_OK && out->part[0] && rename(out->part, out->path) != 0)
        err = vx_fail(detail, VX_E_UNAVAILABLE, "output", "cannot write %s: %s", out->path, strerror(errno));
    if (err != VX_OK && out->part[0])
        unlink(out->part);
    return err;
}
