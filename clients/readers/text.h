/* text.h - lines, numbers, time stamps, names: what every text file of a dataset needs.  Internal to the
 * readers. */
#ifndef VXC_READERS_TEXT_H
#define VXC_READERS_TEXT_H

#include "base/vx_err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { VXC__LINE_MAX = 4096, VXC__PATH_MAX = 4096 };

/* Lines of a text file; comment lines (#) and blank ones are skipped, line ends of either kind removed. */
struct vxc__lines {
    FILE *file;
    uint32_t number; /* of the line in `text`, from 1 */
    bool too_long;   /* the line in `text` was cut */
    char text[VXC__LINE_MAX];
};

/* Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE. */
vx_err vxc__lines_open(struct vxc__lines *lines, const char *path, struct vx_detail *detail);
/* false at the end of the file. */
bool vxc__lines_next(struct vxc__lines *lines);
void vxc__lines_close(struct vxc__lines *lines);

/* A file that must exist.  Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE; the words name the path. */
vx_err vxc__open_file(const char *path, FILE **out, uint64_t *size_bytes, struct vx_detail *detail);

/*
 * Numbers separated by blanks, commas or semicolons; "nan", "inf" and "-1.#IND" count as numbers (not
 * finite). Returns how many the line holds, also when more than max (only max are stored); -1 when a word is
 * no number.
 */
int vxc__numbers(const char *text, double *out, int max);
/* Copies the first word of *text to word[n] and moves *text behind it; false when there is none. */
bool vxc__word(const char **text, char *word, size_t n);
/* Seconds in decimal notation to nanoseconds, exactly, rounded to nearest; false when malformed or out of
 * range. */
bool vxc__stamp_ns(const char *word, int64_t *ns);

/* "a/b", or b when it is absolute.  false when it does not fit. */
bool vxc__join(char out[VXC__PATH_MAX], const char *folder, const char *name);
/* The folder above: "a/b" -> "a", "." -> "..". */
void vxc__parent(char out[VXC__PATH_MAX], const char *path);
const char *vxc__base_name(const char *path);
bool vxc__is_folder(const char *path);
bool vxc__is_file(const char *path);

/* Names in a folder, those of numbers in the order of the numbers ("2" before "10"). */
struct vxc__names {
    char **name;
    size_t n;
};
/* Takes the names that begin with `prefix` and end with `suffix`.  Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE,
 * VX_E_NOMEM. */
vx_err vxc__names_list(struct vxc__names *names, const char *folder, const char *prefix, const char *suffix,
                       struct vx_detail *detail);
void vxc__names_free(struct vxc__names *names);

#endif
