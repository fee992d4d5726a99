/* Folders of depth images: 7-Scenes and 3DMatch, TUM, Replica, Redwood, slambook. */
#include "internal.h"
#include "json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ intrinsics */

static void set_camera(struct vxc_reader *r, double fx, double fy, double cx, double cy)
{
    const double camera[4] = {fx, fy, cx, cy};
    memcpy(r->camera, r->options.has_intrinsics ? r->options.intrinsics : camera, sizeof r->camera);
}

static void set_units(struct vxc_reader *r, double units_per_m)
{
    r->units_per_m = r->options.depth_units_per_m > 0 ? r->options.depth_units_per_m : units_per_m;
}

/* One sentence on what was found. */
static void describe(struct vxc_reader *r, const char *what, const char *intrinsics, const char *poses)
{
    snprintf(r->info.found, sizeof r->info.found,
             "%s: %zu depth images at %g units/m, intrinsics %g %g %g %g (%s), poses from %s", what,
             r->n_items, r->units_per_m, r->camera[0], r->camera[1], r->camera[2], r->camera[3],
             r->options.has_intrinsics ? "given" : intrinsics, poses);
}

/* The poses of --poses, or of the format's own file, in the order of the images. */
static vx_err pose_by_order(struct vxc_reader *r, const char *path, struct vx_detail *detail)
{
    struct vxc__pose_list list;
    VX_TRY_RET(vxc__pose_list_read(&list, path, detail));
    const vx_err err = vxc__items_pose_by_order(r, &list, vxc__base_name(path), detail);
    vxc__pose_list_free(&list);
    return err;
}

/* ------------------------------------------------------------------ 7-Scenes, 3DMatch */

/* camera-intrinsics.txt: three rows of a camera matrix. */
static vx_err read_matrix_intrinsics(struct vxc_reader *r, const char *path, struct vx_detail *detail)
{
    struct vxc__lines lines;
    double k[9];
    int n = 0;
    VX_TRY_RET(vxc__lines_open(&lines, path, detail));
    while (n >= 0 && n < 9 && vxc__lines_next(&lines)) {
        const int got = vxc__numbers(lines.text, k + n, 9 - n);
        n = got < 0 || n + got > 9 ? -1 : n + got;
    }
    vxc__lines_close(&lines);
    if (n != 9)
        return vx_fail(detail, VX_E_INVALID, "intrinsics", "%s is not a 3 x 3 camera matrix", path);
    set_camera(r, k[0], k[4], k[2], k[5]);
    return VX_OK;
}

static vx_err add_7scenes_frames(struct vxc_reader *r, struct vx_detail *detail)
{
    struct vxc__names names;
    VX_TRY_RET(vxc__names_list(&names, r->root, "frame-", ".depth.png", detail));
    vx_err err = VX_OK;
    if (names.n == 0)
        err = vx_fail(
            detail, VX_E_NOT_FOUND, "path",
            "%s holds no frame-NNNNNN.depth.png (the folder of one sequence is wanted, for example seq-01)",
            r->root);
    else
        err = vxc__items_add_names(r, "", &names, detail);
    vxc__names_free(&names);
    return err;
}

vx_err vxc__open_7scenes(struct vxc_reader *r, struct vx_detail *detail)
{
    static const char *const places[] = {"camera-intrinsics.txt", "../camera-intrinsics.txt", NULL};
    char path[VXC__PATH_MAX];
    r->payload = VXC__IMAGE;
    VX_TRY_RET(add_7scenes_frames(r, detail));
    set_units(r, 1000);
    set_camera(r, 585, 585, 320, 240);
    const char *place = vxc__first_file(r->root, places, path);
    if (place)
        VX_TRY_RET(read_matrix_intrinsics(r, path, detail));
    else if (!r->options.has_intrinsics)
        vxc__note(r, "no camera-intrinsics.txt: 7-Scenes' 585 585 320 240 for 640 x 480 px are taken; "
                     "--intrinsics changes that");
    if (r->options.poses_path) {
        VX_TRY_RET(pose_by_order(r, r->options.poses_path, detail));
    } else {
        for (size_t i = 0; i < r->n_items; i++) { /* one pose file a frame, read when its turn comes */
            const char *name = r->item[i].name;
            snprintf(path, sizeof path, "%.*s.pose.txt", (int)(strlen(name) - strlen(".depth.png")), name);
            if (!(r->item[i].pose_name = strdup(path)))
                return vx_fail(detail, VX_E_NOMEM, "path", "no memory for the list of frames");
        }
    }
    describe(r, "7-Scenes folder", place ? place : "default",
             r->options.poses_path ? r->options.poses_path : "frame-*.pose.txt");
    return VX_OK;
}

/* ------------------------------------------------------------------ TUM RGB-D */

struct known_camera {
    const char *name, *words[5];
    double camera[4];
};

/* Calibrations that the makers of the sets publish, known by words in the folder's name. */
static const struct known_camera TUM_CAMERAS[] = {
    {"freiburg1", {"freiburg1", "fr1_", "fr1-"}, {517.3, 516.5, 318.6, 255.3}},
    {"freiburg2", {"freiburg2", "fr2_", "fr2-"}, {520.9, 521.0, 325.1, 249.7}},
    {"freiburg3", {"freiburg3", "fr3_", "fr3-"}, {535.4, 539.2, 320.1, 247.6}},
    {"ICL-NUIM",
     {"iclnuim", "icl-nuim", "icl_nuim", "_frei_png", "room_traj"},
     {481.2, -480.0, 319.5, 239.5}},
};

static const struct known_camera *known_tum_camera(const char *root)
{
    char *real = realpath(root, NULL);
    char name[256];
    snprintf(name, sizeof name, "%s", vxc__base_name(real ? real : root));
    free(real);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (size_t i = 0; i < sizeof TUM_CAMERAS / sizeof *TUM_CAMERAS; i++)
        for (size_t k = 0; k < 5 && TUM_CAMERAS[i].words[k]; k++)
            if (strstr(name, TUM_CAMERAS[i].words[k]))
                return &TUM_CAMERAS[i];
    return NULL;
}

/* depth.txt: 'seconds file' a line. */
static vx_err add_tum_frames(struct vxc_reader *r, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX], stamp[64], name[1024];
    struct vxc__lines lines;
    if (!vxc__join(path, r->root, "depth.txt"))
        return vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
    VX_TRY_RET(vxc__lines_open(&lines, path, detail));
    vx_err err = VX_OK;
    while (err == VX_OK && vxc__lines_next(&lines)) {
        const char *text = lines.text;
        int64_t stamp_ns;
        if (!vxc__word(&text, stamp, sizeof stamp) || !vxc__stamp_ns(stamp, &stamp_ns) ||
            !vxc__word(&text, name, sizeof name))
            err = vx_fail(detail, VX_E_INVALID, "depth", "%s line %u is not 'seconds file'", path,
                          lines.number);
        else
            err = vxc__items_add(r, name, stamp_ns, detail);
    }
    vxc__lines_close(&lines);
    if (err == VX_OK && r->n_items == 0)
        err = vx_fail(detail, VX_E_NOT_FOUND, "depth", "%s lists no image", path);
    return err;
}

vx_err vxc__open_tum(struct vxc_reader *r, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    r->payload = VXC__IMAGE;
    VX_TRY_RET(add_tum_frames(r, detail));
    set_units(r, 5000);
    const struct known_camera *known = known_tum_camera(r->root);
    if (known)
        set_camera(r, known->camera[0], known->camera[1], known->camera[2], known->camera[3]);
    else if (r->options.has_intrinsics)
        set_camera(r, 0, 0, 0, 0);
    else
        return vx_fail(detail, VX_E_NOT_FOUND, "intrinsics",
                       "a TUM folder does not hold its intrinsics; give --intrinsics FX,FY,CX,CY "
                       "(freiburg1 517.3,516.5,318.6,255.3  freiburg2 520.9,521.0,325.1,249.7  "
                       "freiburg3 535.4,539.2,320.1,247.6  ICL-NUIM 481.2,-480,319.5,239.5)");
    if (known && !r->options.has_intrinsics)
        vxc__note(r,
                  "intrinsics of %s, for 640 x 480 px, are taken because of the folder's name; --intrinsics "
                  "changes that",
                  known->name);
    if (r->options.poses_path)
        snprintf(path, sizeof path, "%s", r->options.poses_path);
    else if (!vxc__join(path, r->root, "groundtruth.txt"))
        return vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
    struct vxc__pose_list list;
    VX_TRY_RET(vxc__pose_list_read(&list, path, detail));
    vx_err err;
    if (list.layout == VXC__POSES_STAMPED) {
        vxc__pose_list_sort(&list);
        err = vxc__items_pose_by_time(r, &list, vxc__base_name(path), detail);
    } else {
        err = vxc__items_pose_by_order(r, &list, vxc__base_name(path), detail);
    }
    vxc__pose_list_free(&list);
    VX_TRY_RET(err);
    describe(r, "TUM folder", known ? known->name : "given", vxc__base_name(path));
    return VX_OK;
}

/* ------------------------------------------------------------------ Replica (NICE-SLAM's layout) */

static vx_err read_replica_camera(struct vxc_reader *r, const char *path, double *units,
                                  struct vx_detail *detail)
{
    struct vxc__json_want want[] = {{.key = "fx"}, {.key = "fy"}, {.key = "cx"},   {.key = "cy"},
                                    {.key = "w"},  {.key = "h"},  {.key = "scale"}};
    VX_TRY_RET(vxc__json_read(path, want, 7, detail));
    for (int i = 0; i < 4; i++)
        if (want[i].n != 1)
            return vx_fail(detail, VX_E_INVALID, "intrinsics", "%s has no number '%s'", path, want[i].key);
    set_camera(r, want[0].value[0], want[1].value[0], want[2].value[0], want[3].value[0]);
    if (want[4].n == 1 && want[5].n == 1 && want[4].value[0] >= 1 && want[4].value[0] <= VXC__SIDE_MAX &&
        want[5].value[0] >= 1 && want[5].value[0] <= VXC__SIDE_MAX) {
        r->expected_width = (uint32_t)want[4].value[0];
        r->expected_height = (uint32_t)want[5].value[0];
    }
    if (want[6].n == 1)
        *units = want[6].value[0];
    return VX_OK;
}

/* Images of a folder below the root whose names have one of two endings. */
static vx_err add_images(struct vxc_reader *r, const char *folder, const char *prefix, const char *suffix,
                         const char *other_suffix, struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    struct vxc__names names;
    if (!vxc__join(path, r->root, folder))
        return vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
    VX_TRY_RET(vxc__names_list(&names, path, prefix, suffix, detail));
    if (names.n == 0 && other_suffix) {
        vxc__names_free(&names);
        VX_TRY_RET(vxc__names_list(&names, path, prefix, other_suffix, detail));
    }
    vx_err err = names.n > 0
                     ? vxc__items_add_names(r, folder, &names, detail)
                     : vx_fail(detail, VX_E_NOT_FOUND, "depth", "%s holds no %s*%s%s%s", path, prefix, suffix,
                               other_suffix ? " and no *" : "", other_suffix ? other_suffix : "");
    vxc__names_free(&names);
    return err;
}

vx_err vxc__open_replica(struct vxc_reader *r, struct vx_detail *detail)
{
    static const char *const places[] = {"cam_params.json", "../cam_params.json", "../../cam_params.json",
                                         NULL};
    char path[VXC__PATH_MAX], poses[VXC__PATH_MAX];
    double units = 6553.5;
    r->payload = VXC__IMAGE;
    VX_TRY_RET(add_images(r, "results", "depth", ".png", NULL, detail));
    const char *place = vxc__first_file(r->root, places, path);
    if (place)
        VX_TRY_RET(read_replica_camera(r, path, &units, detail));
    else if (r->options.has_intrinsics)
        set_camera(r, 0, 0, 0, 0);
    else
        return vx_fail(detail, VX_E_NOT_FOUND, "intrinsics",
                       "no cam_params.json in %s or the two folders above; give --intrinsics FX,FY,CX,CY and "
                       "--depth-scale (NICE-SLAM's Replica: 600,600,599.5,339.5 and 6553.5)",
                       r->root);
    set_units(r, units);
    snprintf(poses, sizeof poses, "%s", r->options.poses_path ? r->options.poses_path : "");
    if (!r->options.poses_path && !vxc__join(poses, r->root, "traj.txt"))
        return vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
    VX_TRY_RET(pose_by_order(r, poses, detail));
    describe(r, "Replica folder", place ? place : "given", vxc__base_name(poses));
    return VX_OK;
}

/* ------------------------------------------------------------------ Redwood */

static vx_err read_redwood_camera(struct vxc_reader *r, const char *path, struct vx_detail *detail)
{
    struct vxc__json_want want[] = {{.key = "intrinsic_matrix"}, {.key = "width"}, {.key = "height"}};
    VX_TRY_RET(vxc__json_read(path, want, 3, detail));
    const double *k = want[0].value; /* column-major */
    if (want[0].n != 9)
        return vx_fail(detail, VX_E_INVALID, "intrinsics", "%s has no intrinsic_matrix of 9 numbers", path);
    if (k[6] == 0 && k[7] == 0 && (k[2] != 0 || k[5] != 0))
        return vx_fail(detail, VX_E_INVALID, "intrinsics",
                       "the intrinsic_matrix of %s is row by row; this layout is column by column", path);
    set_camera(r, k[0], k[4], k[6], k[7]);
    if (want[1].n == 1 && want[2].n == 1 && want[1].value[0] >= 1 && want[1].value[0] <= VXC__SIDE_MAX &&
        want[2].value[0] >= 1 && want[2].value[0] <= VXC__SIDE_MAX) {
        r->expected_width = (uint32_t)want[1].value[0];
        r->expected_height = (uint32_t)want[2].value[0];
    }
    return VX_OK;
}

/* The only file of the root with an ending; VX_E_NOT_FOUND when there is none, VX_E_INVALID when there are
 * several. */
static vx_err only_file(struct vxc_reader *r, const char *suffix, char path[VXC__PATH_MAX],
                        struct vx_detail *detail)
{
    struct vxc__names names;
    VX_TRY_RET(vxc__names_list(&names, r->root, "", suffix, detail));
    vx_err err = VX_OK;
    if (names.n == 0)
        err = vx_fail(detail, VX_E_NOT_FOUND, "poses", "%s holds no *%s; give --poses FILE", r->root, suffix);
    else if (names.n > 1)
        err = vx_fail(detail, VX_E_INVALID, "poses", "%s holds %zu files *%s; say which by --poses FILE",
                      r->root, names.n, suffix);
    else if (!vxc__join(path, r->root, names.name[0]))
        err = vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
    vxc__names_free(&names);
    return err;
}

/* The first *.json of the root that has an intrinsic matrix. */
static vx_err find_redwood_camera(struct vxc_reader *r, char name[256], struct vx_detail *detail)
{
    struct vxc__names names;
    char path[VXC__PATH_MAX];
    vx_err err = VX_OK;
    name[0] = '\0';
    VX_TRY_RET(vxc__names_list(&names, r->root, "", ".json", detail));
    for (size_t i = 0; i < names.n && err == VX_OK && !name[0]; i++) {
        const char *found = names.name[i];
        if (!strstr(found, "camera") && !strstr(found, "intrinsic"))
            continue;
        if (!vxc__join(path, r->root, found))
            continue;
        err = read_redwood_camera(r, path, detail);
        snprintf(name, 256, "%s", found);
    }
    vxc__names_free(&names);
    return err;
}

vx_err vxc__open_redwood(struct vxc_reader *r, struct vx_detail *detail)
{
    char poses[VXC__PATH_MAX], camera[256];
    r->payload = VXC__IMAGE;
    VX_TRY_RET(add_images(r, "depth", "", ".png", NULL, detail));
    set_units(r, 1000);
    set_camera(r, 525, 525, 319.5, 239.5);
    VX_TRY_RET(find_redwood_camera(r, camera, detail));
    if (!camera[0] && !r->options.has_intrinsics)
        vxc__note(r, "no camera json: Redwood's 525 525 319.5 239.5 for 640 x 480 px are taken; --intrinsics "
                     "changes that");
    if (r->options.poses_path)
        snprintf(poses, sizeof poses, "%s", r->options.poses_path);
    else
        VX_TRY_RET(only_file(r, ".log", poses, detail));
    VX_TRY_RET(pose_by_order(r, poses, detail));
    describe(r, "Redwood folder", camera[0] ? camera : "default", vxc__base_name(poses));
    return VX_OK;
}

/* ------------------------------------------------------------------ slambook */

vx_err vxc__open_slambook(struct vxc_reader *r, struct vx_detail *detail)
{
    char poses[VXC__PATH_MAX];
    r->payload = VXC__IMAGE;
    VX_TRY_RET(add_images(r, "depth", "", ".pgm", ".png", detail));
    set_units(r, 1000);
    set_camera(r, 518, 519, 325.5, 253.5);
    if (!r->options.has_intrinsics)
        vxc__note(r, "slambook's intrinsics 518 519 325.5 253.5 for 640 x 480 px are taken; --intrinsics "
                     "changes that");
    if (r->options.poses_path)
        snprintf(poses, sizeof poses, "%s", r->options.poses_path);
    else if (!vxc__join(poses, r->root, "pose.txt"))
        return vx_fail(detail, VX_E_INVALID, "path", "the path is too long");
    VX_TRY_RET(pose_by_order(r, poses, detail));
    describe(r, "slambook folder", "default", vxc__base_name(poses));
    return VX_OK;
}
