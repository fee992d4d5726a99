/* query.h - what the kinds of `voxelctl query` share. */
#ifndef VOXELCTL_QUERY_H
#define VOXELCTL_QUERY_H

#include "cli.h"

/* Rows of numbers of a CSV file, as read. */
struct rows {
    double *value; /* [n][n_fields] */
    size_t n, capacity;
    int n_fields;
};
/* path: "-" = stdin; finite: as of struct csv.  Errors: VX_E_NOT_FOUND, VX_E_INVALID, VX_E_NOMEM.  Free
 * rows->value. */
vx_err rows_read(struct rows *rows, const char *path, const char *const *fields, int n_fields,
                 uint32_t finite, struct vx_detail *detail);

enum query_option {
    QUERY_INPUT,
    QUERY_OUTPUT,
    QUERY_MIN_EPOCH,
    QUERY_ROBOT,
    QUERY_UNKNOWN,
    QUERY_MAX_RANGE,
    QUERY_STATUS,
    QUERY_UNKNOWN_DISTANCE,
    N_QUERY_OPTIONS
};

struct query {
    const struct query_kind *kind;
    const char *map, *in_path, *out_path, *robot_path;
    bool status, unknown_distance;
    uint64_t min_epoch;
    double max_range_m;
    enum vxc_unknown unknown;
    struct rows rows, robot;
    /* answers */
    void *answer; /* [n] of the kind's struct */
    size_t n;
    uint32_t n_waypoints;
    struct vxc_map_state state;
    double seconds; /* asking */
};

/* One kind of question: its columns in, how it is asked, its columns out. */
struct query_kind {
    const char *verb, *one; /* "points", "point" */
    int n_fields;
    const char *const *fields;
    uint32_t finite; /* bit i: field i must be a finite number */
    size_t answer_bytes;
    uint32_t options; /* bits of enum query_option besides input, output and min_epoch */
    /* item: the rows as floats, the first n_places coordinates triples relative to origin_m. */
    int n_places;
    vx_err (*ask)(struct vxc_client *client, struct query *q, const double origin_m[3], const float *item,
                  struct vx_detail *detail);
    /* Before that: what the rows must be; may be NULL. */
    vx_err (*check)(struct query *q, struct vx_detail *detail);
    void (*write)(const struct query *q, FILE *file);
    void (*json)(struct json *j, const struct query *q, size_t i); /* members of an answer's object */
    void (*sum)(struct json *j, const struct query *q);            /* members of the summary */
    void (*say)(const struct query *q); /* the summary's words, without a line end */
};
/* The kinds of cmd_query_kinds.c, ended by NULL. */
extern const struct query_kind *const query_more_kinds[];

const char *query_state_name(uint32_t state);

#endif
