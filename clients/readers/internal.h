/*
 * internal.h - what the formats share.
 *
 * Every format but VXWL becomes the same thing when it is opened: a list of items (a file, a stamp, a pose),
 * one way to read the files, and for cameras the intrinsics.  reader.c turns items into frames.
 */
#ifndef VXC_READERS_INTERNAL_H
#define VXC_READERS_INTERNAL_H

#include "cloud.h"
#include "image.h"
#include "picture.h"
#include "poselist.h"
#include "text.h"
#include "vxc_reader.h"

struct vxc__item {
    char *name;        /* file, relative to the set's folder; owned */
    char *colour_name; /* its colour image; NULL: none */
    char *pose_name;   /* file with its pose, read together with it; NULL: `pose` counts */
    int64_t stamp_ns;
    struct vxc_pose pose;
    vx_err pose_err; /* why there is no pose, and in words (owned, may be NULL) */
    char *pose_why;
};

/* A pose of the set's trajectory. */
struct vxc__track_pose {
    int64_t stamp_ns;
    struct vxc_pose pose;
};

enum vxc__payload {
    VXC__IMAGE, /* u16 depth */
    VXC__RAW3,  /* f32 x y z */
    VXC__RAW4,  /* f32 x y z reflectance */
    VXC__PCD    /* pose = VIEWPOINT when use_viewpoint */
};

struct vxc__vxwl;

struct vxc_reader {
    struct vxc_reader_info info;
    struct vxc_reader_options options;
    char root[VXC__PATH_MAX]; /* folder that item names are relative to */
    uint64_t next;

    enum vxc__payload payload;
    struct vxc__item *item;
    size_t n_items, capacity;
    bool use_viewpoint;
    double camera[4]; /* fx, fy, cx, cy of the files; fx, fy not 0 */
    double units_per_m;
    uint32_t expected_width, expected_height; /* px, of every image; 0: the first one decides */
    bool first_image_decided;

    struct vxc__vxwl *vxwl; /* the other kind of set */

    struct vxc__image image;
    struct vxc__picture picture;
    bool use_colour;
    char *weights; /* pattern of the weight images; NULL: none */
    struct vxc__image weight_image;
    float *weight; /* of the current frame */
    size_t weight_capacity;
    struct vxc__cloud cloud;
    struct vxc__track_pose *track; /* in order of time; NULL: the poses have none */
    size_t n_track;
    struct vxc_timed_pose path[VXC_MAX_POSES]; /* of the current scan */
    int32_t *time_ns;                          /* of its points */
    size_t time_capacity;
    char name[VXC__PATH_MAX]; /* of the current frame */
};

/* ---- items.c: building the list */

vx_err vxc__items_add(struct vxc_reader *r, const char *name, int64_t stamp_ns, struct vx_detail *detail);
/* All names of a list, each behind `folder` (relative to the root; "" = the root). */
vx_err vxc__items_add_names(struct vxc_reader *r, const char *folder, const struct vxc__names *names,
                            struct vx_detail *detail);
/* Pose k belongs to item k; items without one are refused when their turn comes. */
vx_err vxc__items_pose_by_order(struct vxc_reader *r, const struct vxc__pose_list *list,
                                const char *list_name, struct vx_detail *detail);
/* The pose nearest in time, within 0.02 s; the list must be sorted. */
vx_err vxc__items_pose_by_time(struct vxc_reader *r, const struct vxc__pose_list *list, const char *list_name,
                               struct vx_detail *detail);
/* Makes an item's frame refused. */
vx_err vxc__item_refuse(struct vxc__item *item, vx_err err, const char *why, struct vx_detail *detail);
/* Stamps i / 30 s (depth) or i / 10 s (LiDAR): for formats without times. */
int64_t vxc__default_stamp_ns(enum vxc_sensor sensor, uint64_t index);
/* Stamps from a times.txt in the root, when it is there: line k is item k's. */
vx_err vxc__items_times(struct vxc_reader *r, bool *found, struct vx_detail *detail);
void vxc__note(struct vxc_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vxc__items_free(struct vxc_reader *r);
/* The first of several names that exists as a file below a folder; NULL when none does. */
const char *vxc__first_file(const char *folder, const char *const *names, char path[VXC__PATH_MAX]);

/* ---- colours.c */

/* Finds the frames' colour images, by name or time. */
vx_err vxc__colours_find(struct vxc_reader *r, struct vx_detail *detail);

/* ---- deskew.c */

/* Keeps the poses that have a time: those of a stamped list, else those of the items when `timed`. */
vx_err vxc__track_take(struct vxc_reader *r, const struct vxc__pose_list *list, bool timed,
                       struct vx_detail *detail);
/* Gives a scan its path and times, where its points have times and the options let it.  Errors: VX_E_NOMEM;
 * with VXC_DESKEW_ON why it cannot. */
vx_err vxc__deskew(struct vxc_reader *r, struct vxc_frame *frame, struct vx_detail *detail);
void vxc__deskew_fini(struct vxc_reader *r);

/* ---- weights.c */

/* Takes the pattern of the options over.  Errors: VX_E_INVALID; VX_E_NOT_FOUND no frame has weights. */
vx_err vxc__weights_find(struct vxc_reader *r, struct vx_detail *detail);
/* Weights of a frame whose size is known, in the order of the file's pixels.  Errors refuse the frame. */
vx_err vxc__weights_read(struct vxc_reader *r, const struct vxc__item *item, struct vxc_frame *frame,
                         struct vx_detail *detail);
void vxc__weights_fini(struct vxc_reader *r);

/* ---- the formats: each fills items, payload, camera and info.found.  r->root is the given path. */

vx_err vxc__open_7scenes(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_tum(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_replica(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_redwood(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_slambook(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_kitti(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_pcd(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_xyz32(struct vxc_reader *r, struct vx_detail *detail);
vx_err vxc__open_vxwl(struct vxc_reader *r, struct vx_detail *detail);

/* ---- vxwl.c */

vx_err vxc__vxwl_next(struct vxc_reader *r, struct vxc_frame *frame, enum vxc_step *step, vx_err *why,
                      struct vx_detail *detail);
void vxc__vxwl_close(struct vxc__vxwl *vxwl);

/* ---- detect.c */

/* What a path looks like.  Errors: VX_E_NOT_FOUND, with what was looked for. */
vx_err vxc__detect(const char *path, enum vxc_format *format, struct vx_detail *detail);

#endif
