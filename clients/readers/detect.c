/* What a path looks like: the format by its files. */
#include "internal.h"

#include <string.h>
#include <strings.h>

static bool ends_with(const char *name, const char *suffix)
{
    const size_t n = strlen(name), k = strlen(suffix);
    return n >= k && strcasecmp(name + n - k, suffix) == 0;
}

static vx_err detect_file(const char *path, enum vxc_format *format, struct vx_detail *detail)
{
    FILE *file;
    char head[9] = "";
    VX_TRY_RET(vxc__open_file(path, &file, NULL, detail));
    const size_t n = fread(head, 1, 8, file);
    fclose(file);
    if (n == 8 && memcmp(head, "VXWL0001", 8) == 0)
        *format = VXC_VXWL;
    else if (memcmp(head, "# .PCD", 6) == 0 || memcmp(head, "VERSION", 7) == 0 || ends_with(path, ".pcd"))
        *format = VXC_PCD;
    else if (ends_with(path, ".xyz32.bin") || ends_with(path, ".xyz32"))
        *format = VXC_XYZ32;
    else
        return vx_fail(
            detail, VX_E_NOT_FOUND, "format",
            "%s is no VXWL0001 or PCD file and not named *.xyz32.bin; for a raw cloud say --format kitti "
            "(float32 x y z reflectance) or --format xyz32 (float32 x y z)",
            path);
    return VX_OK;
}

static bool holds(const char *folder, const char *name, bool is_folder)
{
    char path[VXC__PATH_MAX];
    return vxc__join(path, folder, name) && (is_folder ? vxc__is_folder(path) : vxc__is_file(path));
}

static bool holds_names(const char *root, const char *folder, const char *prefix, const char *suffix)
{
    char path[VXC__PATH_MAX];
    struct vxc__names names;
    if (!vxc__join(path, root, folder) || !vxc__is_folder(path) ||
        vxc__names_list(&names, path, prefix, suffix, NULL) != VX_OK)
        return false;
    const bool any = names.n > 0;
    vxc__names_free(&names);
    return any;
}

vx_err vxc__detect(const char *path, enum vxc_format *format, struct vx_detail *detail)
{
    if (!vxc__is_folder(path))
        return detect_file(path, format, detail);
    const bool depth = holds(path, "depth", true);
    if (holds_names(path, "", "frame-", ".depth.png"))
        *format = VXC_7SCENES;
    else if (holds(path, "depth.txt", false))
        *format = VXC_TUM;
    else if (holds(path, "velodyne", true))
        *format = VXC_KITTI;
    else if (holds(path, "traj.txt", false) && holds(path, "results", true))
        *format = VXC_REPLICA;
    else if (depth && holds(path, "pose.txt", false))
        *format = VXC_SLAMBOOK;
    else if (depth && holds_names(path, "depth", "", ".png"))
        *format = VXC_REDWOOD;
    else if (holds_names(path, "", "", ".pcd") || holds_names(path, "Scans", "", ".pcd") ||
             holds_names(path, "scans", "", ".pcd") || holds_names(path, "pcd", "", ".pcd") ||
             holds_names(path, "clouds", "", ".pcd"))
        *format = VXC_PCD;
    else if (holds_names(path, "", "", ".xyz32.bin") || holds_names(path, "derived", "", ".xyz32.bin") ||
             holds_names(path, "", "", ".xyz32"))
        *format = VXC_XYZ32;
    else
        return vx_fail(
            detail, VX_E_NOT_FOUND, "format",
            "%.80s is no known set: no frame-*.depth.png (7scenes), depth.txt (tum), velodyne/ (kitti), "
            "traj.txt and results/ (replica), depth/*.png (redwood), depth/ and pose.txt (slambook), *.pcd, "
            "*.xyz32.bin",
            path);
    return VX_OK;
}
