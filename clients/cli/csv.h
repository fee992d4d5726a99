/* csv.h - rows of numbers with a header row. */
#ifndef VOXELCTL_CSV_H
#define VOXELCTL_CSV_H

#include "base/vx_err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CSV_MAX_COLUMNS = 8, CSV_LINE_MAX = 4096 };

struct csv {
    FILE *file;
    const char *name; /* of the file, for messages */
    size_t line;      /* of the last row read, from 1 */
    bool cut;         /* the line is longer than text */
    int n_wanted, n_columns;
    uint32_t finite;            /* bit i: wanted field i must be finite; set by the caller */
    int place[CSV_MAX_COLUMNS]; /* column of each wanted field */
    char text[CSV_LINE_MAX];
};

/*
 * Reads the header row and finds the wanted fields in it, in any order among any others.  csv->file and
 * ->name are set by the caller.  Errors: VX_E_INVALID no header, a field is missing or there twice (the words
 * give the header that is wanted).
 */
vx_err csv_begin(struct csv *csv, const char *const *wanted, int n_wanted, struct vx_detail *detail);
/*
 * The next row's wanted values; *end when there is none.  Blank lines are skipped; "nan" is a number where
 * csv->finite does not forbid it.
 * Errors: VX_E_INVALID a value is missing or no such number, or the row has more or fewer columns than the
 * header (the words give line and column).
 */
vx_err csv_next(struct csv *csv, double *value, int *end, struct vx_detail *detail);

#endif
