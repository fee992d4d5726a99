/* outfile.h - files that appear whole or not at all, alone or several together. */
#ifndef VOXELCTL_OUTFILE_H
#define VOXELCTL_OUTFILE_H

#include "base/vx_err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct outfile {
    FILE *file;        /* NULL: not open */
    FILE *report;      /* for words about it: stdout, or stderr where the file itself goes to stdout */
    const char *path;  /* "-": stdout */
    char target[4096]; /* what the finished file replaces; "": it is written as it is */
    char part[4096];   /* its name until then */
    bool nameless;     /* it has even that only at the end */
};

/*
 * path: the caller's, until outfile_close; "-" = stdout.  A link is followed, also one to a file that does
 * not exist yet.  Waits for a program that reads a named pipe, and says so. Errors: VX_E_UNAVAILABLE,
 * VX_E_INVALID, VX_E_CANCELLED.
 */
vx_err outfile_open(struct outfile *out, const char *path, struct vx_detail *detail);
/* Whether what is written would not be wanted any more: interrupted, or the file has failed. */
bool outfile_stop(FILE *file);
/*
 * err: of the writing.  VX_OK puts the file in place; else, or when SIGINT came meanwhile, it is removed.
 * Returns err.  Errors: VX_E_UNAVAILABLE, VX_E_CANCELLED.
 */
vx_err outfile_close(struct outfile *out, vx_err err, struct vx_detail *detail);
/*
 * The same for n of them, of which those with file NULL are passed over: all are on disk before the first
 * replaces anything, so what has no room leaves all old files as they were.
 */
vx_err outfiles_close(struct outfile *out, size_t n, vx_err err, struct vx_detail *detail);
/* Whether two outputs would be one file. */
bool outfile_same(const char *a, const char *b);

#endif
