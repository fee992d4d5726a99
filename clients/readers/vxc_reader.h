/*
 * vxc_reader.h - sensor frames out of dataset folders and files, one after the other.
 *
 * A reader gives the same frames, bit for bit, to every program: voxelctl play and the benchmarks use the
 * same one, so that their maps have the same digest.  Poses of all formats become a position and a unit
 * quaternion here, once. It reads one frame at a time; a file of gigabytes needs memory for one frame.
 *
 * Axes are those of the map's contract: camera x right, y down, z forward (depth is z); LiDAR x forward, y
 * left, z up.
 */
#ifndef VXC_READER_H
#define VXC_READER_H

#include "base/vx_err.h"
#include "voxeld/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum vxc_format {
    VXC_AUTO = 0,
    VXC_7SCENES,  /* frame-NNNNNN.depth.png, .pose.txt; 3DMatch: camera-intrinsics.txt too */
    VXC_TUM,      /* depth.txt, groundtruth.txt */
    VXC_KITTI,    /* velodyne/NNNNNN.bin, calib.txt (Tr), poses */
    VXC_REPLICA,  /* traj.txt, results/depthNNNNNN.png, cam_params.json */
    VXC_REDWOOD,  /* depth/NNNNNN.png, *.log, camera json */
    VXC_SLAMBOOK, /* depth/N.pgm, pose.txt */
    VXC_PCD,      /* a .pcd file, or a folder of them and a pose list */
    VXC_XYZ32,    /* raw float32 x y z, a file or a folder, and a pose list */
    VXC_VXWL,     /* VXWL0001: generated workloads */
    VXC_N_FORMATS
};

/* Scans of PCD files whose points have times (a field t, time, timestamp, offset_time or time_offset), of a
 * set whose poses have times too: does each point get the pose at its time? */
enum vxc_deskew {
    VXC_DESKEW_AUTO = 0, /* yes; a scan for which there are no poses is taken as of one pose, and counted */
    VXC_DESKEW_OFF,      /* no: the scans were de-skewed before */
    VXC_DESKEW_ON        /* yes; other scans are refused */
};

/* What the caller may fix; zero-initialised = everything by itself. */
struct vxc_reader_options {
    enum vxc_format format;
    const char *poses_path;   /* NULL: the format's own place */
    bool has_intrinsics;      /* intrinsics[] is given; fy < 0 means that image rows run upwards */
    double intrinsics[4];     /* fx, fy, cx, cy, px */
    double depth_units_per_m; /* 0: the format's own */
    double min_range_m;       /* 0: 0.1 m (depth), 0.5 m (LiDAR) */
    double max_range_m;       /* 0: 8 m (depth), 60 m (LiDAR) */
    /* Depth images: grey images (PNG or PGM, 8 or 16 bits) with the weight of each pixel, 0 = not used; a
     * path below the set's folder or an absolute one, in which `*` stands for the depth image's name without
     * its ending and `#` for the digits at the end of that.  NULL: none. */
    const char *weights;
    double weight_white; /* value of theirs that is the weight 1; 0: the largest that their bits hold */
    enum vxc_deskew deskew;
    uint64_t max_frames; /* only the first so many of the dataset; 0: all */
};

enum { VXC_MAX_NOTES = 4 };

struct vxc_reader_info {
    enum vxc_format format;
    struct vxc_sensing sensing; /* of every frame: sensor, ranges in force, meaning of 0 */
    uint64_t n_frames;          /* that vxc_reader_next will give or refuse */
    char found[400];            /* one sentence: what was taken for what */
    uint64_t n_colours;         /* frames that have a colour image beside them, or intensities */
    uint64_t n_colours_missing; /* of a set with colours: frames that have none, */
    char colour_missing[96];    /* the first one's name */
    uint64_t n_colours_lost;    /* frames with colours so far that could not be used, */
    char colour_why[256];       /* the first one's reason */
    uint64_t n_deskewed;        /* scans so far that came with poses over their time, */
    uint64_t n_rigid;           /* and those with times for their points that came without, */
    char rigid_why[256];        /* the first one's reason */
    uint32_t n_notes;           /* things a careful user wants to know */
    char note[VXC_MAX_NOTES][256];
};

/* What vxc_reader_next came to. */
enum vxc_step {
    VXC_STEP_FRAME,   /* *frame is filled */
    VXC_STEP_REFUSED, /* this frame cannot be used (frame->index, ->name and *detail say which and why); go on
                       */
    VXC_STEP_END
};

struct vxc_reader;

/* "7scenes", ... and back.  vxc_format_from_name gives VXC_N_FORMATS for a name it does not know. */
const char *vxc_format_name(enum vxc_format format);
enum vxc_format vxc_format_from_name(const char *name);
/* "auto", "off" or "on"; false for other words. */
bool vxc_deskew_from_name(const char *name, enum vxc_deskew *out);

/*
 * Opens a dataset: finds its files, intrinsics and poses, but reads no image yet.
 * path: folder or file.  options: may be NULL.  *out: close with vxc_reader_close.
 * Errors: VX_E_NOT_FOUND something is missing (the words say what was looked for); VX_E_INVALID a file of the
 * set is malformed or an option is out of range; VX_E_UNAVAILABLE a file cannot be read; VX_E_NOMEM. Thread:
 * one at a time per reader; blocks on files.
 */
vx_err vxc_reader_open(const char *path, const struct vxc_reader_options *options, struct vxc_reader **out,
                       struct vx_detail *detail);
const struct vxc_reader_info *vxc_reader_get_info(const struct vxc_reader *reader);
/* Whether later frames come with their colours (frame->colour, KITTI: ->intensity); at first they do not.  A
 * colour image that cannot be used costs its frame the colours, not the readings: info.n_colours_lost. */
void vxc_reader_use_colour(struct vxc_reader *reader, bool use);
/*
 * Reads the next frame.  A damaged or missing file, or a pose that is no rigid motion, is VXC_STEP_REFUSED
 * with VX_OK: *why gets the code, *detail the words that name the file and the place; the next call goes on
 * behind it. Errors: VX_E_NOMEM only; the reader may be closed, nothing else.
 */
vx_err vxc_reader_next(struct vxc_reader *reader, struct vxc_frame *frame, enum vxc_step *step, vx_err *why,
                       struct vx_detail *detail);
/* Frees everything; NULL is fine. */
void vxc_reader_close(struct vxc_reader *reader);

/*
 * Rigid motion of a row-major 3 x 4 matrix.
 * A rotation part with |R'R - I| <= 1e-3 (largest element) becomes the nearest rotation.
 * Errors: VX_E_INVALID an element is not finite, the matrix is not rigid, or det R < 0 (detail says by how
 * much).
 */
vx_err vxc_pose_from_matrix(const double rows[12], struct vxc_pose *out, struct vx_detail *detail);
/* Position and quaternion x y z w; its norm may be off by 1e-3 and is made 1.  Errors: VX_E_INVALID. */
vx_err vxc_pose_from_quaternion(const double position_m[3], const double xyzw[4], struct vxc_pose *out,
                                struct vx_detail *detail);
/* out = a after b (a_T_c = a_T_b * b_T_c); out may be a or b. */
void vxc_pose_compose(const struct vxc_pose *a, const struct vxc_pose *b, struct vxc_pose *out);
void vxc_pose_invert(const struct vxc_pose *a, struct vxc_pose *out);

#endif
