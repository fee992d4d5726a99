/* outfile.h - a file that appears whole or not at all. */
#ifndef VOXELCTL_OUTFILE_H
#define VOXELCTL_OUTFILE_H

#include "base/vx_err.h"

#include <stdbool.h>
#include <stdio.h>

struct outfile {
    FILE *file;
    FILE *report;      /* for words about it: stdout, or stderr where the file itself goes to stdout */
    const char *path;  /* "-": stdout */
    char target[4096]; /* what the finished file replaces; "": it is written as it is */
    char part[4096];   /* its name until then */
    bool nameless;     /* it has even that only at the end */
};

/* path: the caller's, until outfile_close; "-" = stdout.  Errors: VX_E_UNAVAILABLE, VX_E_INVALID. */
vx_err outfile_open(struct outfile *out, const char *path, struct vx_detail *detail);
/* err: of the writing.  VX_OK puts the file in place; else it is removed and err returned.  Errors:
 * VX_E_UNAVAILABLE. */
vx_err outfile_close(struct outfile *out, vx_err err, struct vx_detail *detail);

#endif
