/* LiDAR sets: KITTI odometry, PCD files, raw float32 files. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static vx_err too_long(struct vx_detail *detail)
{
    return vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
}

/* The path is one file: the set is that file, and its folder the root. */
static vx_err add_single_file(struct vxc_reader *r, struct vx_detail *detail)
{
    char name[VXC__PATH_MAX], folder[VXC__PATH_MAX];
    snprintf(name, sizeof name, "%s", vxc__base_name(r->root));
    vxc__parent(folder, r->root);
    memcpy(r->root, folder, sizeof r->root);
    return vxc__items_add(r, name, 0, detail);
}

/* Files with an ending in the root or in one of its usual subfolders; *folder says where ("" = the root). */
static vx_err add_cloud_files(struct vxc_reader *r, const char *suffix, const char *const *folders,
                              const char **folder, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    for (; *folders; folders++) {
        struct vxc__names names;
        if (!vxc__join(path, r->root, *folders))
            return too_long(detail);
        if (!vxc__is_folder(path))
            continue;
        VX_TRY_RET(vxc__names_list(&names, path, "", suffix, detail));
        vx_err err = vxc__items_add_names(r, *folders, &names, detail);
        vxc__names_free(&names);
        VX_TRY_RET(err);
        if (r->n_items > 0) {
            *folder = *folders;
            return VX_OK;
        }
    }
    return vx_fail(detail, VX_E_NOT_FOUND, "path", "%s holds no *%s, nor does a usual folder in it", r->root,
                   suffix);
}

/* The pose list of a set of clouds: --poses, else a usual name in the root or above it; "" when there is
 * none. */
static vx_err find_poses(struct vxc_reader *r, char path[VXC__PATH_MAX], struct vx_detail *detail)
{
    static const char *const usual[] = {"optimized_poses.txt", "poses.txt", "../optimized_poses.txt",
                                        "../poses.txt", NULL};
    static const char *const endings_in[] = {"", "..", NULL};
    if (r->options.poses_path) {
        snprintf(path, VXC__PATH_MAX, "%s", r->options.poses_path);
        return VX_OK;
    }
    if (vxc__first_file(r->root, usual, path))
        return VX_OK;
    for (const char *const *below = endings_in; *below; below++) {
        char folder[VXC__PATH_MAX];
        struct vxc__names names;
        if (!vxc__join(folder, r->root, *below))
            return too_long(detail);
        VX_TRY_RET(vxc__names_list(&names, folder, "", "_poses_kitti.txt", detail));
        const bool one = names.n == 1 && vxc__join(path, folder, names.name[0]);
        vxc__names_free(&names);
        if (one)
            return VX_OK;
    }
    path[0] = '\0';
    return VX_OK;
}

/* Poses and stamps of the items; lists with times are matched by time when the clouds have times too. */
static vx_err pose_clouds(struct vxc_reader *r, const char *path, struct vx_detail *detail)
{
    struct vxc__pose_list list;
    bool timed;
    VX_TRY_RET(vxc__items_times(r, &timed, detail));
    VX_TRY_RET(vxc__pose_list_read(&list, path, detail));
    const char *name = vxc__base_name(path);
    vx_err err;
    if (list.layout == VXC__POSES_STAMPED && timed) {
        vxc__pose_list_sort(&list);
        err = vxc__items_pose_by_time(r, &list, name, detail);
    } else {
        for (size_t i = 0; list.layout == VXC__POSES_STAMPED && i < r->n_items && i < list.n; i++)
            r->item[i].stamp_ns = list.entry[i].stamp_ns;
        err = vxc__items_pose_by_order(r, &list, name, detail);
    }
    if (err == VX_OK && r->payload == VXC__PCD)
        err = vxc__track_take(r, &list, timed, detail);
    vxc__pose_list_free(&list);
    return err;
}

static void describe(struct vxc_reader *r, const char *what, const char *poses)
{
    snprintf(r->info.found, sizeof r->info.found, "%s: %zu cloud%s, poses from %s", what, r->n_items,
             r->n_items == 1 ? "" : "s", poses);
}

/* ------------------------------------------------------------------ KITTI odometry */

/* Tr of calib.txt: LiDAR to left camera. */
static vx_err read_tr(struct vxc_reader *r, struct vxc_pose *tr, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX], key[64];
    struct vxc__lines lines;
    struct vx_detail why;
    if (!vxc__join(path, r->root, "calib.txt"))
        return too_long(detail);
    if (vxc__lines_open(&lines, path, &why) != VX_OK)
        return vx_fail(detail, VX_E_NOT_FOUND, "calib",
                       "%s is missing: without its Tr line (LiDAR to camera) the camera poses cannot be used",
                       path);
    vx_err err = vx_fail(detail, VX_E_INVALID, "calib", "%s has no line 'Tr:'", path);
    while (vxc__lines_next(&lines)) {
        const char *text = lines.text;
        double m[12];
        if (!vxc__word(&text, key, sizeof key) ||
            (strcmp(key, "Tr:") != 0 && strcmp(key, "Tr_velo_to_cam:") != 0))
            continue;
        if (vxc__numbers(text, m, 12) != 12)
            err = vx_fail(detail, VX_E_INVALID, "calib", "%s line %u does not hold 12 numbers behind Tr",
                          path, lines.number);
        else if ((err = vxc_pose_from_matrix(m, tr, &why)) != VX_OK)
            err = vx_fail(detail, err, "calib", "Tr of %s: %s", path, why.text);
        break;
    }
    vxc__lines_close(&lines);
    return err;
}

static vx_err find_kitti_poses(struct vxc_reader *r, char path[VXC__PATH_MAX], struct vx_detail *detail)
{
    char sequence[64], beside[128], above[128];
    if (r->options.poses_path) {
        snprintf(path, VXC__PATH_MAX, "%s", r->options.poses_path);
        return VX_OK;
    }
    char *real = realpath(r->root, NULL);
    snprintf(sequence, sizeof sequence, "%.63s", vxc__base_name(real ? real : r->root));
    free(real);
    snprintf(beside, sizeof beside, "../poses/%s.txt", sequence);
    snprintf(above, sizeof above, "../../poses/%s.txt", sequence);
    const char *const places[] = {"poses.txt", above, beside, NULL};
    if (vxc__first_file(r->root, places, path))
        return VX_OK;
    return vx_fail(detail, VX_E_NOT_FOUND, "poses", "no poses in %s (poses.txt, %s, %s); give --poses FILE",
                   r->root, above, beside);
}

/* World poses of the LiDAR out of those of the camera: T = Tr^-1 P Tr, the world being the first LiDAR frame.
 */
static void apply_tr(struct vxc_reader *r, const struct vxc_pose *tr)
{
    struct vxc_pose inverse;
    vxc_pose_invert(tr, &inverse);
    for (size_t i = 0; i < r->n_items; i++) {
        struct vxc_pose *pose = &r->item[i].pose;
        vxc_pose_compose(pose, tr, pose);
        vxc_pose_compose(&inverse, pose, pose);
    }
}

vx_err vxc__open_kitti(struct vxc_reader *r, struct vx_detail *detail)
{
    static const char *const folders[] = {"velodyne", NULL};
    const char *folder;
    char poses[VXC__PATH_MAX];
    struct vxc_pose tr;
    r->payload = VXC__RAW4;
    if (vxc__is_file(r->root)) {
        VX_TRY_RET(add_single_file(r, detail));
        describe(r, "KITTI sweep", "nowhere: the sensor is the origin");
        return VX_OK;
    }
    VX_TRY_RET(add_cloud_files(r, ".bin", folders, &folder, detail));
    VX_TRY_RET(read_tr(r, &tr, detail));
    VX_TRY_RET(find_kitti_poses(r, poses, detail));
    VX_TRY_RET(pose_clouds(r, poses, detail));
    apply_tr(r, &tr);
    char words[160];
    snprintf(words, sizeof words, "%.80s with Tr of calib.txt applied", vxc__base_name(poses));
    describe(r, "KITTI folder", words);
    return VX_OK;
}

/* ------------------------------------------------------------------ PCD and raw float32 */

vx_err vxc__open_pcd(struct vxc_reader *r, struct vx_detail *detail)
{
    static const char *const folders[] = {"", "Scans", "scans", "pcd", "clouds", NULL};
    const char *folder;
    char poses[VXC__PATH_MAX];
    r->payload = VXC__PCD;
    if (vxc__is_file(r->root)) {
        VX_TRY_RET(add_single_file(r, detail));
        snprintf(poses, sizeof poses, "%s", r->options.poses_path ? r->options.poses_path : "");
    } else {
        VX_TRY_RET(add_cloud_files(r, ".pcd", folders, &folder, detail));
        VX_TRY_RET(find_poses(r, poses, detail));
    }
    r->use_viewpoint = poses[0] == '\0';
    if (!r->use_viewpoint) {
        VX_TRY_RET(pose_clouds(r, poses, detail));
        describe(r, "PCD files", vxc__base_name(poses));
        return VX_OK;
    }
    bool timed;
    VX_TRY_RET(vxc__items_times(r, &timed, detail));
    describe(r, r->n_items == 1 ? "PCD file" : "PCD files", "VIEWPOINT in each file");
    if (r->n_items > 1)
        vxc__note(r, "no pose list (poses.txt, optimized_poses.txt) was found; --poses FILE names one");
    return VX_OK;
}

/* Raw clouds by the first of several endings that the set uses; the plain ones only count when the format was
 * named. */
static vx_err add_raw_files(struct vxc_reader *r, struct vx_detail *detail)
{
    static const char *const folders[] = {"", "derived", NULL};
    static const char *const endings[] = {".xyz32.bin", ".xyz32", ".f32", ".bin", NULL};
    const char *folder;
    vx_err err = VX_E_NOT_FOUND;
    for (const char *const *ending = endings; *ending && err == VX_E_NOT_FOUND; ending++)
        err = add_cloud_files(r, *ending, folders, &folder, detail);
    if (err == VX_E_NOT_FOUND)
        return vx_fail(detail, err, "path",
                       "%s holds no *.xyz32.bin, *.xyz32, *.f32 or *.bin, nor does derived/ in it", r->root);
    return err;
}

vx_err vxc__open_xyz32(struct vxc_reader *r, struct vx_detail *detail)
{
    char poses[VXC__PATH_MAX];
    r->payload = VXC__RAW3;
    if (vxc__is_file(r->root)) {
        VX_TRY_RET(add_single_file(r, detail));
        snprintf(poses, sizeof poses, "%s", r->options.poses_path ? r->options.poses_path : "");
    } else {
        VX_TRY_RET(add_raw_files(r, detail));
        VX_TRY_RET(find_poses(r, poses, detail));
    }
    if (poses[0]) {
        VX_TRY_RET(pose_clouds(r, poses, detail));
        describe(r, "raw float32 files", vxc__base_name(poses));
        return VX_OK;
    }
    if (r->n_items > 1)
        return vx_fail(detail, VX_E_NOT_FOUND, "poses",
                       "%s holds %zu clouds and no *_poses_kitti.txt or poses.txt; give --poses FILE",
                       r->root, r->n_items);
    describe(r, "raw float32 file", "nowhere: the sensor is the origin");
    return VX_OK;
}
