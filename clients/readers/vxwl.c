/*
 * VXWL0001, the workloads of the scene generator.  Little endian:
 *   char magic[8]; uint32 kind (0 depth, 1 LiDAR), n_frames, width, height;
 *   float32 numbers[4]   depth: fx, fy, cx, cy; LiDAR: lowest and highest elevation (rad), 0, 0
 *   then per frame: float32 pose[12] (3 x 4, row-major, sensor to world), float32 image[height][width]
 * Depth 0 is no reading; range 0 is no return.  Column u of a LiDAR looks to -pi + 2 pi u / width; row 0 is
 * highest.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 40 };

struct vxc__vxwl {
    FILE *file;
    const char *name; /* of the file; in r->root */
    uint32_t n_frames, width, height;
    uint64_t frame_bytes, n_whole; /* frames that the file holds completely */
    float *image;
    float *elevation_rad;
};

static uint32_t u32_of(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static float f32_of(const uint8_t *b)
{
    const uint32_t bits = u32_of(b);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Sizes, camera or beams. */
static vx_err read_header(struct vxc_reader *r, struct vxc__vxwl *w, uint64_t file_bytes,
                          struct vx_detail *detail)
{
    uint8_t h[HEADER_BYTES];
    float numbers[4];
    if (fread(h, sizeof h, 1, w->file) != 1 || memcmp(h, "VXWL0001", 8) != 0)
        return vx_fail(detail, VX_E_INVALID, "path", "%s does not begin with a VXWL0001 header", w->name);
    const uint32_t kind = u32_of(h + 8);
    w->n_frames = u32_of(h + 12);
    w->width = u32_of(h + 16);
    w->height = u32_of(h + 20);
    for (int i = 0; i < 4; i++)
        numbers[i] = f32_of(h + 24 + 4 * i);
    if (kind > 1)
        return vx_fail(detail, VX_E_INVALID, "kind", "%s: kind %u is neither 0 (depth) nor 1 (LiDAR)",
                       w->name, kind);
    if (w->width == 0 || w->height == 0 || w->width > VXC__SIDE_MAX || w->height > VXC__SIDE_MAX ||
        (uint64_t)w->width * w->height > VXC__PIXELS_MAX / 2)
        return vx_fail(detail, VX_E_INVALID, "width", "%s: images of %u x %u cannot be read", w->name,
                       w->width, w->height);
    const uint64_t n_pixels = (uint64_t)w->width * w->height;
    w->frame_bytes = 48 + 4 * n_pixels;
    w->n_whole = (file_bytes - HEADER_BYTES) / w->frame_bytes;
    r->info.sensing.sensor = kind == 0 ? VXC_DEPTH : VXC_RANGE;
    if (kind == 0) {
        for (int i = 0; i < 4; i++)
            r->camera[i] = r->options.has_intrinsics ? r->options.intrinsics[i] : numbers[i];
        return VX_OK;
    }
    if (!isfinite(numbers[0]) || !isfinite(numbers[1]) || (w->height > 1 && !(numbers[1] > numbers[0])) ||
        fabsf(numbers[0]) > 1.6f || fabsf(numbers[1]) > 1.6f)
        return vx_fail(detail, VX_E_INVALID, "elevation", "%s: elevations %g .. %g rad make no LiDAR",
                       w->name, (double)numbers[0], (double)numbers[1]);
    r->info.sensing.no_return_value = 0;
    if (!(w->elevation_rad = malloc(w->height * sizeof *w->elevation_rad)))
        return vx_fail(detail, VX_E_NOMEM, "path", "no memory for %s", w->name);
    const double lowest = numbers[0], highest = numbers[1];
    for (uint32_t row = 0; row < w->height; row++)
        w->elevation_rad[row] =
            (float)(w->height > 1 ? highest - (highest - lowest) * row / (w->height - 1) : highest);
    return VX_OK;
}

vx_err vxc__open_vxwl(struct vxc_reader *r, struct vx_detail *detail)
{
    struct vxc__vxwl *w = r->vxwl = calloc(1, sizeof *w);
    uint64_t file_bytes;
    if (!w)
        return vx_fail(detail, VX_E_NOMEM, "path", "no memory");
    w->name = vxc__base_name(r->root);
    VX_TRY_RET(vxc__open_file(r->root, &w->file, &file_bytes, detail));
    VX_TRY_RET(read_header(r, w, file_bytes, detail));
    if (!(w->image = malloc((size_t)w->frame_bytes)))
        return vx_fail(detail, VX_E_NOMEM, "path", "no memory for %s", w->name);
    r->info.n_frames = w->n_frames;
    if (r->options.max_frames > 0 && r->options.max_frames < r->info.n_frames)
        r->info.n_frames = r->options.max_frames;
    if (w->n_whole < r->info.n_frames) {
        vxc__note(r, "%s is cut off: its header says %u frames, it holds %llu", w->name, w->n_frames,
                  (unsigned long long)w->n_whole);
        r->info.n_frames = w->n_whole + 1; /* the cut one is refused, and there it ends */
    }
    snprintf(r->info.found, sizeof r->info.found, "VXWL0001 file: %llu %s images of %u x %u",
             (unsigned long long)r->info.n_frames,
             r->info.sensing.sensor == VXC_DEPTH ? "depth" : "LiDAR range", w->width, w->height);
    return VX_OK;
}

vx_err vxc__vxwl_next(struct vxc_reader *r, struct vxc_frame *frame, enum vxc_step *step, vx_err *why,
                      struct vx_detail *detail)
{
    static const double PI = 3.14159265358979323846;
    struct vxc__vxwl *w = r->vxwl;
    uint8_t stored[48];
    double rows[12];
    const uint64_t index = frame->index, place = HEADER_BYTES + index * w->frame_bytes;
    const size_t n_pixels = (size_t)w->width * w->height;
    snprintf(r->name, sizeof r->name, "%.255s frame %llu", w->name, (unsigned long long)index);
    frame->sensor = r->info.sensing.sensor;
    frame->stamp_ns = vxc__default_stamp_ns(frame->sensor, index);
    if (fread(stored, sizeof stored, 1, w->file) != 1 ||
        fread(w->image, sizeof(float), n_pixels, w->file) != n_pixels) {
        r->next = r->info.n_frames;
        *step = VXC_STEP_REFUSED;
        *why = vx_fail(detail, VX_E_INVALID, "data",
                       "%s ends inside frame %llu of %u, which begins at byte %llu", w->name,
                       (unsigned long long)index, w->n_frames, (unsigned long long)place);
        return VX_OK;
    }
    for (int i = 0; i < 12; i++)
        rows[i] = (double)f32_of(stored + 4 * i);
    if ((*why = vxc_pose_from_matrix(rows, &frame->pose, detail)) != VX_OK) {
        *step = VXC_STEP_REFUSED;
        return VX_OK;
    }
    frame->width = w->width;
    frame->height = w->height;
    frame->encoding = VXC_F32;
    frame->data = w->image;
    frame->data_bytes = (uint64_t)n_pixels * sizeof(float);
    if (frame->sensor == VXC_RANGE) {
        frame->first_azimuth_rad = -PI;
        frame->azimuth_step_rad = 2 * PI / w->width;
        frame->elevation_rad = w->elevation_rad;
    }
    *step = VXC_STEP_FRAME;
    return VX_OK;
}

void vxc__vxwl_close(struct vxc__vxwl *vxwl)
{
    if (!vxwl)
        return;
    if (vxwl->file)
        fclose(vxwl->file);
    free(vxwl->image);
    free(vxwl->elevation_rad);
    free(vxwl);
}
