/* poselist.h - pose files of the usual layouts.  Internal to the readers. */
#ifndef VXC_READERS_POSELIST_H
#define VXC_READERS_POSELIST_H

#include "text.h"
#include "vxc_reader.h"

enum vxc__pose_layout {
    VXC__POSES_MATRIX,  /* 12 or 16 numbers a line, row-major */
    VXC__POSES_STAMPED, /* TUM: seconds tx ty tz qx qy qz qw */
    VXC__POSES_PLAIN,   /* tx ty tz qx qy qz qw */
    VXC__POSES_LOG      /* Redwood: three integers, then four rows */
};

struct vxc__pose_entry {
    struct vxc_pose pose; /* when err is VX_OK */
    int64_t stamp_ns;     /* VXC__POSES_STAMPED */
    uint32_t line;
    vx_err err; /* why the pose can't be used, and in words (owned) */
    char *why;
};

struct vxc__pose_list {
    enum vxc__pose_layout layout;
    struct vxc__pose_entry *entry;
    size_t n;
};

/*
 * Reads a list; the layout is found by the numbers on its first line.  A line that is malformed, or no rigid
 * motion, makes an entry with an error: it costs its frame, not the set. Errors: VX_E_NOT_FOUND,
 * VX_E_UNAVAILABLE, VX_E_INVALID no known layout, VX_E_NOMEM.
 */
vx_err vxc__pose_list_read(struct vxc__pose_list *list, const char *path, struct vx_detail *detail);
void vxc__pose_list_free(struct vxc__pose_list *list);
/* Sorts a stamped list by time, for vxc__pose_list_nearest. */
void vxc__pose_list_sort(struct vxc__pose_list *list);
/* The entry nearest to a time (the earlier one of two), NULL when none is within tolerance_ns. */
const struct vxc__pose_entry *vxc__pose_list_nearest(const struct vxc__pose_list *list, int64_t stamp_ns,
                                                     int64_t tolerance_ns);
/* A file that holds one 4 x 4 or 3 x 4 matrix (7-Scenes).  Errors: VX_E_NOT_FOUND, VX_E_UNAVAILABLE,
 * VX_E_INVALID. */
vx_err vxc__pose_file_read(struct vxc_pose *pose, const char *path, struct vx_detail *detail);
/* times.txt: seconds, one a line.  *out is the caller's to free.  Errors: as above, VX_E_NOMEM. */
vx_err vxc__times_read(int64_t **out, size_t *n, const char *path, struct vx_detail *detail);

#endif
