#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DEPTH_MIN_M = 0.1, DEPTH_MAX_M = 8, LIDAR_MIN_M = 0.5, LIDAR_MAX_M = 60;

struct format_entry {
    const char *name;
    enum vxc_sensor sensor; /* VXWL: found in the file */
    vx_err (*open)(struct vxc_reader *r, struct vx_detail *detail);
};

static const struct format_entry FORMATS[VXC_N_FORMATS] = {
    [VXC_AUTO] = {"auto", VXC_DEPTH, NULL},
    [VXC_7SCENES] = {"7scenes", VXC_DEPTH, vxc__open_7scenes},
    [VXC_TUM] = {"tum", VXC_DEPTH, vxc__open_tum},
    [VXC_KITTI] = {"kitti", VXC_POINTS, vxc__open_kitti},
    [VXC_REPLICA] = {"replica", VXC_DEPTH, vxc__open_replica},
    [VXC_REDWOOD] = {"redwood", VXC_DEPTH, vxc__open_redwood},
    [VXC_SLAMBOOK] = {"slambook", VXC_DEPTH, vxc__open_slambook},
    [VXC_PCD] = {"pcd", VXC_POINTS, vxc__open_pcd},
    [VXC_XYZ32] = {"xyz32", VXC_POINTS, vxc__open_xyz32},
    [VXC_VXWL] = {"vxwl", VXC_DEPTH, vxc__open_vxwl},
};

const char *vxc_format_name(enum vxc_format format)
{
    return (unsigned)format < VXC_N_FORMATS ? FORMATS[format].name : "?";
}

enum vxc_format vxc_format_from_name(const char *name)
{
    for (int i = 0; i < VXC_N_FORMATS; i++)
        if (strcmp(name, FORMATS[i].name) == 0)
            return (enum vxc_format)i;
    return VXC_N_FORMATS;
}

/* ------------------------------------------------------------------ open */

static vx_err check_options(const struct vxc_reader_options *o, struct vx_detail *detail)
{
    if ((unsigned)o->format >= VXC_N_FORMATS)
        return vx_fail(detail, VX_E_INVALID, "format", "%d is no format", (int)o->format);
    if (o->depth_units_per_m != 0 && !(o->depth_units_per_m > 0 && o->depth_units_per_m <= 1e9))
        return vx_fail(detail, VX_E_INVALID, "depth_scale", "must be positive units per metre, got %g",
                       o->depth_units_per_m);
    if (!(o->min_range_m >= 0 && o->min_range_m < 1e6))
        return vx_fail(detail, VX_E_INVALID, "min_range_m", "must be 0 or a positive distance, got %g",
                       o->min_range_m);
    if (!(o->max_range_m >= 0 && o->max_range_m < 1e6))
        return vx_fail(detail, VX_E_INVALID, "max_range_m", "must be 0 or a positive distance, got %g",
                       o->max_range_m);
    return VX_OK;
}

static vx_err check_camera(const struct vxc_reader *r, struct vx_detail *detail)
{
    for (int i = 0; i < 4; i++)
        if (!isfinite(r->camera[i]) || (i < 2 && r->camera[i] == 0))
            return vx_fail(detail, VX_E_INVALID, "intrinsics",
                           "fx, fy, cx, cy = %g, %g, %g, %g make no camera", r->camera[0], r->camera[1],
                           r->camera[2], r->camera[3]);
    if (r->units_per_m != 0 && !(r->units_per_m > 0 && r->units_per_m <= 1e9))
        return vx_fail(detail, VX_E_INVALID, "depth_scale", "must be positive units per metre, got %g",
                       r->units_per_m);
    return VX_OK;
}

/* An option that the set has no use for is refused, not passed over. */
static vx_err check_use(const struct vxc_reader *r, struct vx_detail *detail)
{
    const struct vxc_reader_options *o = &r->options;
    const char *what = o->has_intrinsics ? "intrinsics" : "depth_scale",
               *format = vxc_format_name(r->info.format);
    if (r->info.sensing.sensor != VXC_DEPTH && (o->has_intrinsics || o->depth_units_per_m > 0))
        return vx_fail(detail, VX_E_INVALID, what,
                       "a set of points (%s) has no use for %s: they are of depth images", format, what);
    if (o->deskew == VXC_DESKEW_ON && (r->vxwl || r->payload != VXC__PCD))
        return vx_fail(detail, VX_E_INVALID, "deskew",
                       "a set of %s has no times for its points; only PCD files do", format);
    if (r->vxwl && (o->poses_path || o->depth_units_per_m > 0))
        return vx_fail(detail, VX_E_INVALID, o->poses_path ? "poses" : "depth_scale",
                       "a workload (vxwl) has poses and metres in it; another %s has no use",
                       o->poses_path ? "pose list" : "depth scale");
    return VX_OK;
}

static vx_err open_set(struct vxc_reader *r, const char *path, struct vx_detail *detail)
{
    if (!path || strlen(path) >= sizeof r->root || !path[0])
        return vx_fail(detail, VX_E_INVALID, "path", "no path, or one of more than %d bytes",
                       VXC__PATH_MAX - 1);
    VX_TRY_RET(check_options(&r->options, detail));
    snprintf(r->root, sizeof r->root, "%s", path);
    for (size_t n = strlen(r->root); n > 1 && r->root[n - 1] == '/'; n--)
        r->root[n - 1] = '\0';
    r->info.format = r->options.format;
    if (r->info.format == VXC_AUTO)
        VX_TRY_RET(vxc__detect(r->root, &r->info.format, detail));
    const struct format_entry *format = &FORMATS[r->info.format];
    r->info.sensing = (struct vxc_sensing){.sensor = format->sensor, .no_return_value = NAN};
    VX_TRY_RET(format->open(r, detail));
    VX_TRY_RET(check_use(r, detail));
    if (!r->vxwl)
        r->info.n_frames = r->n_items;
    VX_TRY_RET(vxc__colours_find(r, detail));
    VX_TRY_RET(vxc__weights_find(r, detail));
    if (r->info.sensing.sensor == VXC_DEPTH) {
        VX_TRY_RET(check_camera(r, detail));
        if (r->camera[1] < 0) {
            vxc__note(
                r, "fy is negative: image rows run upwards; they are turned round, with fy %g and cy h-1-%g",
                -r->camera[1], r->camera[3]);
            vxc__note(
                r,
                "the set's camera axes (x right, y up, z forward) are left-handed: the map keeps the set's "
                "coordinates, and a picture of it is a mirror image of the place");
        }
        if (r->camera[0] < 0)
            vxc__note(r,
                      "fx is negative: image columns run leftwards; they are turned round, with fx %g and cx "
                      "w-1-%g",
                      -r->camera[0], r->camera[2]);
    }
    const bool depth = r->info.sensing.sensor == VXC_DEPTH;
    struct vxc_sensing *sensing = &r->info.sensing;
    const struct vxc_reader_options *o = &r->options;
    sensing->min_range_m = o->min_range_m > 0 ? o->min_range_m : depth ? DEPTH_MIN_M : LIDAR_MIN_M;
    sensing->max_range_m = o->max_range_m > 0 ? o->max_range_m : depth ? DEPTH_MAX_M : LIDAR_MAX_M;
    if (sensing->min_range_m >= sensing->max_range_m)
        return vx_fail(detail, VX_E_INVALID, "min_range_m", "must be less than the maximum range: %g >= %g",
                       sensing->min_range_m, sensing->max_range_m);
    return VX_OK;
}

vx_err vxc_reader_open(const char *path, const struct vxc_reader_options *options, struct vxc_reader **out,
                       struct vx_detail *detail)
{
    *out = NULL;
    struct vxc_reader *r = calloc(1, sizeof *r);
    if (!r)
        return vx_fail(detail, VX_E_NOMEM, "path", "no memory for a reader");
    if (options)
        r->options = *options;
    const vx_err err = open_set(r, path, detail);
    r->options.poses_path = r->options.weights = NULL; /* the caller's strings; they have been read */
    if (err != VX_OK) {
        vxc_reader_close(r);
        return err;
    }
    *out = r;
    return VX_OK;
}

const struct vxc_reader_info *vxc_reader_get_info(const struct vxc_reader *reader)
{
    return &reader->info;
}

void vxc_reader_close(struct vxc_reader *reader)
{
    if (!reader)
        return;
    vxc__items_free(reader);
    vxc__vxwl_close(reader->vxwl);
    vxc__image_fini(&reader->image);
    vxc__picture_fini(&reader->picture);
    vxc__cloud_fini(&reader->cloud);
    vxc__weights_fini(reader);
    vxc__deskew_fini(reader);
    free(reader);
}

/* ------------------------------------------------------------------ frames */

void vxc_reader_use_colour(struct vxc_reader *reader, bool use)
{
    reader->use_colour = use;
}

/* Pixels in the order that belongs to positive focal lengths. */
static void turn_pixels(const struct vxc_reader *r, size_t w, size_t h, uint8_t *pixels, size_t pixel_bytes)
{
    uint8_t keep[8];
    for (size_t v = 0; r->camera[1] < 0 && v < h / 2; v++) {
        uint8_t *a = pixels + v * w * pixel_bytes, *b = pixels + (h - 1 - v) * w * pixel_bytes;
        for (size_t i = 0; i < w * pixel_bytes; i++) {
            const uint8_t kept = a[i];
            a[i] = b[i];
            b[i] = kept;
        }
    }
    for (size_t v = 0; r->camera[0] < 0 && v < h; v++) {
        for (size_t u = 0; u < w / 2; u++) {
            uint8_t *a = pixels + (v * w + u) * pixel_bytes, *b = pixels + (v * w + w - 1 - u) * pixel_bytes;
            memcpy(keep, a, pixel_bytes);
            memcpy(a, b, pixel_bytes);
            memcpy(b, keep, pixel_bytes);
        }
    }
}

/*
 * Intrinsics of a frame, and its pixels in the order that belongs to positive focal lengths.
 *
 * A row v is seen along y / z = (v - cy) / fy.  With fy < 0 and v' = h - 1 - v the same ray is
 * (v' - (h - 1 - cy)) / -fy: rows reversed, cy' = h - 1 - cy, fy' = -fy.  The geometry stays what it was;
 * taking |fy| alone would mirror the scene.  Columns likewise.
 */
static void place_camera(const struct vxc_reader *r, struct vxc_frame *frame, uint8_t *pixels,
                         size_t pixel_bytes)
{
    const size_t w = frame->width, h = frame->height;
    frame->fx = fabs(r->camera[0]);
    frame->fy = fabs(r->camera[1]);
    frame->cx = r->camera[0] < 0 ? (double)w - 1 - r->camera[2] : r->camera[2];
    frame->cy = r->camera[1] < 0 ? (double)h - 1 - r->camera[3] : r->camera[3];
    turn_pixels(r, w, h, pixels, pixel_bytes);
}

/* The colours of a frame; without them it goes on, and the loss is counted. */
static vx_err read_colour(struct vxc_reader *r, const struct vxc__item *item, struct vxc_frame *frame)
{
    char path[VXC__PATH_MAX];
    struct vx_detail why;
    vx_err err;
    if (!r->use_colour || !item->colour_name)
        return VX_OK;
    if (!vxc__join(path, r->root, item->colour_name))
        err = vx_fail(&why, VX_E_INVALID, "path", "the path of %s is too long", item->colour_name);
    else
        err = vxc__picture_read(&r->picture, path, frame->width, frame->height, &why);
    if (err == VX_E_NOMEM)
        return err;
    if (err != VX_OK) {
        if (r->info.n_colours_lost++ == 0)
            snprintf(r->info.colour_why, sizeof r->info.colour_why, "%s", why.text);
        return VX_OK;
    }
    turn_pixels(r, frame->width, frame->height, r->picture.px, 3);
    frame->colour = r->picture.px;
    return VX_OK;
}

static vx_err read_image(struct vxc_reader *r, struct vxc_frame *frame, const char *path,
                         struct vx_detail *detail)
{
    VX_TRY_RET(vxc__image_read(&r->image, path, detail));
    frame->width = r->image.width;
    frame->height = r->image.height;
    if (r->expected_width == 0) {
        r->expected_width = frame->width;
        r->expected_height = frame->height;
        r->first_image_decided = true;
    }
    if (frame->width != r->expected_width || frame->height != r->expected_height)
        return vx_fail(detail, VX_E_INVALID, "width", "%s is %u x %u px, %s %u x %u; intrinsics fit one size",
                       frame->name, frame->width, frame->height,
                       r->first_image_decided ? "the images before it are" : "the camera's file says",
                       r->expected_width, r->expected_height);
    frame->encoding = VXC_U16;
    frame->units_per_m = r->units_per_m;
    frame->data = r->image.px;
    frame->data_bytes = (uint64_t)frame->width * frame->height * sizeof *r->image.px;
    place_camera(r, frame, (uint8_t *)r->image.px, sizeof *r->image.px);
    return VX_OK;
}

static vx_err read_cloud(struct vxc_reader *r, struct vxc_frame *frame, const char *path,
                         struct vx_detail *detail)
{
    struct vxc_pose viewpoint = frame->pose;
    if (r->payload == VXC__PCD)
        VX_TRY_RET(vxc__cloud_read_pcd(&r->cloud, path, &viewpoint, detail));
    else
        VX_TRY_RET(vxc__cloud_read_raw(&r->cloud, path, r->payload == VXC__RAW4 ? 4 : 3, detail));
    if (r->use_viewpoint)
        frame->pose = viewpoint;
    if (r->cloud.n == 0)
        return vx_fail(detail, VX_E_INVALID, "points", "%s holds no points", frame->name);
    frame->width = (uint32_t)r->cloud.n;
    frame->height = 1;
    frame->encoding = VXC_F32;
    frame->data = r->cloud.xyz;
    if (r->use_colour && r->payload == VXC__RAW4)
        frame->intensity = r->cloud.fourth;
    frame->data_bytes = (uint64_t)r->cloud.n * 3 * sizeof *r->cloud.xyz;
    return vxc__deskew(r, frame, detail);
}

/* Pose, then payload, of an item. */
static vx_err read_item(struct vxc_reader *r, const struct vxc__item *item, struct vxc_frame *frame,
                        struct vx_detail *detail)
{
    char path[VXC__PATH_MAX];
    if (item->pose_err != VX_OK)
        return vx_fail(detail, item->pose_err, "pose", "%s", item->pose_why ? item->pose_why : "no pose");
    frame->pose = item->pose;
    if (item->pose_name) {
        struct vx_detail why;
        if (!vxc__join(path, r->root, item->pose_name))
            return vx_fail(detail, VX_E_INVALID, "path", "the path of %s is too long", item->pose_name);
        const vx_err err = vxc__pose_file_read(&frame->pose, path, &why);
        if (err != VX_OK)
            return vx_fail(detail, err, "pose", "%s: %s", item->pose_name, why.text);
    }
    if (!vxc__join(path, r->root, item->name))
        return vx_fail(detail, VX_E_INVALID, "path", "the path of %s is too long", item->name);
    if (r->payload != VXC__IMAGE)
        return read_cloud(r, frame, path, detail);
    VX_TRY_RET(read_image(r, frame, path, detail));
    VX_TRY_RET(vxc__weights_read(r, item, frame, detail));
    if (frame->weight)
        turn_pixels(r, frame->width, frame->height, (uint8_t *)r->weight, sizeof *r->weight);
    return read_colour(r, item, frame) == VX_OK
               ? VX_OK
               : vx_fail(detail, VX_E_NOMEM, "colour", "no memory for colours");
}

vx_err vxc_reader_next(struct vxc_reader *r, struct vxc_frame *frame, enum vxc_step *step, vx_err *why,
                       struct vx_detail *detail)
{
    memset(frame, 0, sizeof *frame);
    *why = VX_OK;
    if (r->next >= r->info.n_frames) {
        *step = VXC_STEP_END;
        return VX_OK;
    }
    frame->index = r->next++;
    frame->name = r->name;
    frame->sensor = r->info.sensing.sensor;
    if (r->vxwl) {
        VX_TRY_RET(vxc__vxwl_next(r, frame, step, why, detail));
        if (*step == VXC_STEP_FRAME && frame->sensor == VXC_DEPTH)
            place_camera(r, frame, (uint8_t *)(uintptr_t)frame->data, sizeof(float));
        return VX_OK;
    }
    const struct vxc__item *item = &r->item[frame->index];
    snprintf(r->name, sizeof r->name, "%s", item->name);
    frame->stamp_ns = item->stamp_ns;
    *why = read_item(r, item, frame, detail);
    *step = *why == VX_OK ? VXC_STEP_FRAME : VXC_STEP_REFUSED;
    return *why == VX_E_NOMEM ? VX_E_NOMEM : VX_OK;
}
