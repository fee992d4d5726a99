#include "frame_convert.h"
#include "channels.h"
#include "clean.h"
#include "skew.h"

#include <math.h>
#include <string.h>

/* A voxel's accumulator counts up to 2^24 - 1 rays. */
enum { MAX_SIDE_PX = 16384, MAX_RAYS = (1 << 24) - 1, POINT_COLUMNS = 2048, POINT_ROWS = 512 };
#define MAX_CANDIDATES   (1u << 26)
#define MAX_REACH_VOXELS 1e6f

/* What a camera's or a LiDAR's numbers may be: all that real ones have, and far from where single precision
 * ends. */
static const double FOCAL_MIN_PX = 1e-3, FOCAL_MAX_PX = 1e6, CENTRE_MAX_PX = 1e6, UNITS_MIN = 1e-6,
                    UNITS_MAX = 1e9, STEP_MIN_RAD = 1e-6;

/* The voxel range is +-2^27; a sensor must leave room for its own chunk's neighbours. */
static const double RANGE_VOXELS = 134217728.0 - 256.0;

/* The ranges in force: 0 = the sensor's default. */
static double min_range_m(const struct vx_frame *f)
{
    return f->min_range_m > 0 ? f->min_range_m : f->sensor == VX_DEPTH ? 0.1 : 0.5;
}
static double max_range_m(const struct vx_frame *f)
{
    return f->max_range_m > 0 ? f->max_range_m : f->sensor == VX_DEPTH ? 8 : 60;
}

static vx_err check_pose(const struct vx_frame *f, uint32_t i, struct vx_detail *detail)
{
    const struct vx_pose *p = &f->pose[i];
    double n2 = 0;
    for (int k = 0; k < 3; k++)
        if (!isfinite(p->position_m[k]))
            return vx_fail(detail, VX_E_INVALID, "pose.position_m", "pose %u: the position is not finite", i);
    for (int k = 0; k < 4; k++) {
        if (!isfinite(p->rotation_xyzw[k]))
            return vx_fail(detail, VX_E_INVALID, "pose.rotation_xyzw", "pose %u: the rotation is not finite",
                           i);
        n2 += p->rotation_xyzw[k] * p->rotation_xyzw[k];
    }
    if (fabs(sqrt(n2) - 1) > 1e-3)
        return vx_fail(detail, VX_E_INVALID, "pose.rotation_xyzw",
                       "pose %u: the quaternion's norm is %.6f; it must be 1 within 0.001 (order x y z w)", i,
                       sqrt(n2));
    return VX_OK;
}

static vx_err check_camera(const struct vx_frame *f, struct vx_detail *detail)
{
    const double focal[2] = {f->fx, f->fy}, centre[2] = {f->cx, f->cy};
    for (int k = 0; k < 2; k++)
        if (!(focal[k] >= FOCAL_MIN_PX && focal[k] <= FOCAL_MAX_PX))
            return vx_fail(detail, VX_E_INVALID, k ? "fy" : "fx",
                           "focal lengths are %g to %g px, got %g (flip the image's rows and use |fy| for a "
                           "negative fy)",
                           FOCAL_MIN_PX, FOCAL_MAX_PX, focal[k]);
    for (int k = 0; k < 2; k++)
        if (!(fabs(centre[k]) <= CENTRE_MAX_PX))
            return vx_fail(detail, VX_E_INVALID, k ? "cy" : "cx",
                           "the principal point is %g, %g; it must be within %g px of the image", f->cx,
                           f->cy, CENTRE_MAX_PX);
    if (f->encoding == VX_U16 && !(f->units_per_m >= UNITS_MIN && f->units_per_m <= UNITS_MAX))
        return vx_fail(detail, VX_E_INVALID, "units_per_m",
                       "16-bit depth needs its units per metre (1000 for mm), %g to %g, got %g", UNITS_MIN,
                       UNITS_MAX, f->units_per_m);
    return VX_OK;
}

static vx_err check_range_image(const struct vx_frame *f, struct vx_detail *detail)
{
    int rising = 0, falling = 0;
    if (f->encoding != VX_F32)
        return vx_fail(detail, VX_E_INVALID, "encoding", "range images are float32 metres");
    if (!f->elevation_rad)
        return vx_fail(detail, VX_E_INVALID, "elevation_rad", "a range image needs one elevation a row");
    if (!(fabs(f->first_azimuth_rad) <= 6.2831853072))
        return vx_fail(detail, VX_E_INVALID, "first_azimuth_rad", "must be within a turn, got %g",
                       f->first_azimuth_rad);
    if (!(fabs(f->azimuth_step_rad) >= STEP_MIN_RAD &&
          fabs(f->azimuth_step_rad) * f->width <= 6.2831853072 * 1.0001))
        return vx_fail(detail, VX_E_INVALID, "azimuth_step_rad",
                       "columns must be %g rad apart or more, and not pass one turn (step %g, %u columns)",
                       STEP_MIN_RAD, f->azimuth_step_rad, f->width);
    for (uint32_t i = 0; i < f->height; i++) {
        if (!isfinite(f->elevation_rad[i]) || fabsf(f->elevation_rad[i]) > 1.5708f)
            return vx_fail(detail, VX_E_INVALID, "elevation_rad", "row %u: %g is not an elevation in rad", i,
                           (double)f->elevation_rad[i]);
        if (i)
            f->elevation_rad[i] > f->elevation_rad[i - 1] ? rising++ : falling++;
        if (i && f->elevation_rad[i] == f->elevation_rad[i - 1])
            rising = falling = 1;
    }
    if (rising && falling)
        return vx_fail(detail, VX_E_INVALID, "elevation_rad",
                       "rows must rise or fall strictly; sort the rows by elevation");
    return VX_OK;
}

vx_err vx_frame_check(const struct vx_frame *f, struct vx_detail *detail)
{
    uint64_t n = (uint64_t)f->width * f->height, bytes;
    if (f->sensor != VX_DEPTH && f->sensor != VX_POINTS && f->sensor != VX_RANGE)
        return vx_fail(detail, VX_E_INVALID, "sensor", "unknown sensor kind %d", (int)f->sensor);
    if (f->encoding != VX_F32 && !(f->encoding == VX_U16 && f->sensor == VX_DEPTH))
        return vx_fail(detail, VX_E_INVALID, "encoding", "unknown encoding %d for this sensor",
                       (int)f->encoding);
    if (f->n_poses < 1 || f->n_poses > VX_MAX_POSES)
        return vx_fail(detail, VX_E_INVALID, "pose", "a frame carries 1 to %d poses, got %u", VX_MAX_POSES,
                       f->n_poses);
    for (uint32_t i = 0; i < f->n_poses; i++)
        VX_TRY_RET(check_pose(f, i, detail));
    VX_TRY_RET(vx__skew_check(f, detail));
    VX_TRY_RET(vx__clean_check(f, detail));
    VX_TRY_RET(vx__channels_check(f, detail));
    if (f->sensor == VX_POINTS) {
        if (f->height != 1 || f->width > MAX_RAYS)
            return vx_fail(detail, VX_E_INVALID, "width",
                           "a point set has height 1 and at most %d points, got %u x %u", MAX_RAYS, f->width,
                           f->height);
        bytes = n * 12;
    } else {
        if (f->width < 1 || f->height < 1 || f->width > MAX_SIDE_PX || f->height > MAX_SIDE_PX)
            return vx_fail(detail, VX_E_INVALID, "width", "an image side is 1 to %d, got %u x %u",
                           MAX_SIDE_PX, f->width, f->height);
        if (f->sensor == VX_RANGE && n > MAX_RAYS)
            return vx_fail(detail, VX_E_INVALID, "width",
                           "a range image has at most %d readings, got %u x %u", MAX_RAYS, f->width,
                           f->height);
        bytes = n * (f->encoding == VX_U16 ? 2 : 4);
    }
    if (f->data_bytes != bytes || (bytes && !f->data))
        return vx_fail(detail, VX_E_INVALID, "data", "%u x %u needs %llu bytes, got %llu", f->width,
                       f->height, (unsigned long long)bytes, (unsigned long long)f->data_bytes);
    if (f->sensor == VX_DEPTH) {
        VX_TRY_RET(check_camera(f, detail));
        VX_TRY_RET(vx__weights_check(f, detail));
    } else if (f->sensor == VX_RANGE) {
        VX_TRY_RET(check_range_image(f, detail));
    }
    if (!(f->min_range_m >= 0) || !(f->max_range_m >= 0) || !isfinite(f->max_range_m) ||
        min_range_m(f) >= max_range_m(f))
        return vx_fail(detail, VX_E_INVALID, "max_range_m",
                       "ranges must satisfy 0 <= min < max, got %g and %g", min_range_m(f), max_range_m(f));
    return VX_OK;
}

void vx__rotation_from_quaternion(const double q[4], double R[9])
{
    double n = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    double x = q[0] / n, y = q[1] / n, z = q[2] / n, w = q[3] / n;
    R[0] = 1 - 2 * (y * y + z * z);
    R[1] = 2 * (x * y - z * w);
    R[2] = 2 * (x * z + y * w);
    R[3] = 2 * (x * y + z * w);
    R[4] = 1 - 2 * (x * x + z * z);
    R[5] = 2 * (y * z - x * w);
    R[6] = 2 * (x * z - y * w);
    R[7] = 2 * (y * z + x * w);
    R[8] = 1 - 2 * (x * x + y * y);
}

/* Box of the sensor's reach in voxels from the corner of its chunk. */
static void reach_box(const struct vx_frame *frame, const struct vxk_frame *f, const double R[9],
                      const double t[3], double lo[3], double hi[3])
{
    double reach = (double)f->max_d + (double)f->trunc + (double)f->skew_reach;
    for (int k = 0; k < 3; k++) {
        lo[k] = hi[k] = t[k];
        if (frame->sensor != VX_DEPTH) {
            lo[k] -= reach;
            hi[k] += reach;
        }
    }
    if (frame->sensor != VX_DEPTH)
        return;
    for (int corner = 0; corner < 4; corner++) {
        double u = corner & 1 ? frame->width : -1.0, v = corner & 2 ? frame->height : -1.0;
        double p[3] = {(u - frame->cx) / frame->fx * reach, (v - frame->cy) / frame->fy * reach, reach};
        for (int k = 0; k < 3; k++) {
            double x = t[k] + R[3 * k] * p[0] + R[3 * k + 1] * p[1] + R[3 * k + 2] * p[2];
            lo[k] = fmin(lo[k], x);
            hi[k] = fmax(hi[k], x);
        }
    }
}

static void convert_readings(const struct vx_map_params *map, const struct vx_frame *frame,
                             struct vxk_frame *f)
{
    double vs = map->voxel_size_m;
    bool depth = frame->sensor == VX_DEPTH;
    double min_m = min_range_m(frame), max_m = max_range_m(frame);
    f->sensor = depth ? VXK_SENSOR_DEPTH : VXK_SENSOR_LIDAR;
    f->width = (int32_t)frame->width;
    f->height = (int32_t)frame->height;
    f->inv_voxel = (float)(1 / vs);
    f->min_d = (float)(min_m / vs);
    f->max_d = (float)(max_m / vs);
    f->encoding = frame->encoding == VX_U16 ? VXK_IMAGE_U16 : VXK_IMAGE_F32;
    f->unit = frame->encoding == VX_U16 ? (float)(1 / frame->units_per_m) : 1.0f;
    f->no_return_m =
        frame->encoding == VX_U16 ? (float)frame->no_return_value * f->unit : (float)frame->no_return_value;
    f->zero_is_open = !depth && !frame->invalid_zero;
    f->mode = map->mode == VX_TSDF ? 0 : 1;
    f->trunc = (float)(map->mode == VX_TSDF ? map->truncation_voxels : 0.5);
    f->q_scale = (float)(32767.0 / map->truncation_voxels);
    f->carve = !frame->no_carving;
    f->noise =
        depth ? (float)(0.0012 * vs) : 0.0f; /* sigma(z) of 0.0012 z^2 m: depth cameras by triangulation */
    f->smooth_max = 8;
    /* With the noise it falls from 16 at 1 m to 1 at 4 m; no part of it that falls leaves 1. */
    f->weight_scale = map->weighting == VX_WEIGHT_CONSTANT ? 0.0f : (float)(16 / (vs * vs));
    f->weight_max = map->weighting == VX_WEIGHT_CONSTANT ? 1 : 16;
    f->lo_hit = 868;   /* log(0.7 / 0.3) * 1024 */
    f->lo_miss = -415; /* log(0.4 / 0.6) * 1024 */
    f->lo_free = f->lo_miss;
    f->lo_max = 3559; /* log(0.97 / 0.03) * 1024 */
}

/* Bins of a LiDAR frame.  A point set's are about a sixth of a degree of azimuth by a third of elevation. */
static void convert_bins(const struct vx_frame *frame, struct vxk_frame *f)
{
    if (frame->sensor == VX_RANGE) {
        f->bins_are_rays = 1;
        f->rows_rise = frame->height > 1 && frame->elevation_rad[1] > frame->elevation_rad[0];
        /* within half a turn, so that a column is at most one turn away from where the azimuth puts it */
        f->az0 = (float)(frame->first_azimuth_rad -
                         6.283185307179586 * floor(frame->first_azimuth_rad / 6.283185307179586 + 0.5));
        f->az_scale = (float)(1 / frame->azimuth_step_rad);
        f->az_half = 0.5f;
    } else if (frame->sensor == VX_POINTS) {
        f->width = POINT_COLUMNS;
        f->height = POINT_ROWS;
        f->az0 = -3.14159265f;
        f->az_scale = (float)(POINT_COLUMNS / 6.283185307179586);
    } else {
        f->fx = (float)frame->fx;
        f->fy = (float)frame->fy;
        f->cx = (float)frame->cx;
        f->cy = (float)frame->cy;
    }
    f->el_top = 1.57079633f;
    f->el_scale = (float)(VXK_ROW_STEPS / 3.141592653589793);
    f->el_last = VXK_ROW_STEPS - 1;
    f->el_min = -1.6f;
    f->el_max = 1.6f;
    if (frame->sensor == VX_RANGE) {
        float first = frame->elevation_rad[0], last = frame->elevation_rad[frame->height - 1];
        f->el_min = (first < last ? first : last) - 1e-3f;
        f->el_max = (first < last ? last : first) + 1e-3f;
    }
    f->az_turn = (float)(6.283185307179586 * fabs((double)f->az_scale));
    f->full_turn = (double)f->width + 0.5 >= (double)f->az_turn;
    f->clear = f->mode == 0 ? f->trunc : 0.87f;
    f->clear_plane = f->mode == 0 ? 1.0f : 0.5f;
    f->n_strips = (f->width + VXK_STRIP - 1) / VXK_STRIP;
    for (int l = 0; l < VXK_N_LEVELS; l++) {
        int32_t edge = VXK_TILE << 2 * l;
        f->n_tx[l] = (f->width + edge - 1) / edge;
        f->n_ty[l] = (f->height + edge - 1) / edge;
    }
}

vx_err vx__frame_convert(const struct vx_map_params *map, const struct vx_frame *frame,
                         struct vxk_frame_args *args, struct vx_detail *detail)
{
    struct vxk_frame *f = &args->f;
    struct vx_pose pose = frame->pose[0];
    double R[9], t[3], lo[3], hi[3];
    uint64_t cells = 1;
    convert_readings(map, frame, f);
    convert_bins(frame, f);
    if (frame->n_poses > 1)
        pose = vx__skew_reference(frame, map->voxel_size_m, f);
    vx__rotation_from_quaternion(pose.rotation_xyzw, R);
    for (int k = 0; k < 9; k++)
        f->R[k] = (float)R[k];
    /* voxels in a row along z are asked about side by side: so lie their pixels */
    f->step_u = fabs(R[7]) > fabs(R[6]) ? f->height : 1;
    f->step_v = f->step_u == 1 ? f->width : 1;
    f->spread = (float)((fabs(R[2]) + fabs(R[5]) + fabs(R[8])) * (1 + 1e-6));
    for (int k = 0; k < 3; k++) {
        double x = (pose.position_m[k] - map->origin_m[k]) / map->voxel_size_m;
        if (!(fabs(x) < RANGE_VOXELS))
            return vx_fail(detail, VX_E_INVALID, "pose.position_m",
                           "the sensor is %.3g m from the map's origin; this map reaches %.3g m (create it "
                           "with an origin near the robot)",
                           pose.position_m[k] - map->origin_m[k], RANGE_VOXELS * map->voxel_size_m);
        f->oc[k] = (int32_t)floor(x / 128);
        t[k] = x - 128.0 * f->oc[k];
        f->t[k] = (float)t[k];
    }
    if (!(f->max_d < MAX_REACH_VOXELS))
        return vx_fail(detail, VX_E_INVALID, "max_range_m",
                       "a reach of %g m is %g voxels; at most %g are possible, lower max_range_m",
                       max_range_m(frame), (double)f->max_d, (double)MAX_REACH_VOXELS);
    reach_box(frame, f, R, t, lo, hi);
    for (int k = 0; k < 3; k++) {
        double first = floor(lo[k] / 128) + f->oc[k], last = floor(hi[k] / 128) + f->oc[k];
        if (first < -VXK_KEY_BIAS + 2 || last > VXK_KEY_BIAS - 3)
            f->edge = 1;
        first = fmax(first, -VXK_KEY_BIAS + 1);
        last = fmin(last, VXK_KEY_BIAS - 2);
        args->lo[k] = (int32_t)(first - f->oc[k]);
        args->n[k] = (int32_t)(last - first) + 1;
        cells *= (uint64_t)args->n[k];
        if (cells > MAX_CANDIDATES && f->skew_reach > f->max_d)
            return vx_fail(
                detail, VX_E_INVALID, "pose.position_m",
                "the scan's poses lie up to %.3g m from the middle one: too many voxels of %g m for "
                "one frame; check the poses (metres?)",
                (double)f->skew_reach * map->voxel_size_m, map->voxel_size_m);
        if (cells > MAX_CANDIDATES)
            return vx_fail(detail, VX_E_INVALID, "max_range_m",
                           "a reach of %g m is too many voxels of %g m for one frame; lower max_range_m "
                           "(for a depth camera check fx and fy too)",
                           (double)f->max_d * map->voxel_size_m, map->voxel_size_m);
    }
    return VX_OK;
}

void vx__sincos(double x, double *s, double *c)
{
    /* Reduction by pi/2 in two parts, then Taylor series on [-pi/4, pi/4]. */
    double k = floor(x * 0.63661977236758134 + 0.5),
           r = (x - k * 1.5707963267948966) - k * 6.123233995736766e-17, r2 = r * r;
    double sn = 1, cs = 1;
    int q = (int)(k - 4 * floor(k / 4));
    for (int i = 10; i >= 1; i--) {
        sn = 1 - sn * r2 / ((2 * i) * (2 * i + 1));
        cs = 1 - cs * r2 / ((2 * i - 1) * (2 * i));
    }
    sn *= r;
    *s = q == 0 ? sn : q == 1 ? cs : q == 2 ? -sn : -cs;
    *c = q == 0 ? cs : q == 1 ? -sn : q == 2 ? -cs : sn;
}

uint64_t vx__beam_words(const struct vx_frame *frame)
{
    return VXK_ROW_STEPS + (frame->sensor == VX_RANGE ? 2ull * frame->width + 2ull * frame->height : 0);
}

/* Nearest row of each elevation step. */
static void row_table(const struct vx_frame *frame, uint32_t *row_of)
{
    uint32_t h = frame->height, row = 0;
    bool rise = h > 1 && frame->elevation_rad[1] > frame->elevation_rad[0];
    for (uint32_t i = 0; i < VXK_ROW_STEPS; i++) {
        double e = 1.5707963267948966 - (i + 0.5) * (3.141592653589793 / VXK_ROW_STEPS);
        while (row + 1 < h && fabs((double)frame->elevation_rad[rise ? h - 2 - row : row + 1] - e) <
                                  fabs((double)frame->elevation_rad[rise ? h - 1 - row : row] - e))
            row++;
        row_of[i] = row;
    }
}

void vx__beam_table(const struct vx_frame *frame, uint32_t *words)
{
    float *out = (float *)(words + VXK_ROW_STEPS);
    uint32_t w = frame->width, h = frame->height;
    bool rise;
    if (frame->sensor != VX_RANGE) {
        for (uint32_t i = 0; i < VXK_ROW_STEPS; i++)
            words[i] = i / (VXK_ROW_STEPS / POINT_ROWS);
        return;
    }
    row_table(frame, words);
    for (uint32_t u = 0; u < w; u++) {
        double s, c;
        vx__sincos(frame->first_azimuth_rad + u * frame->azimuth_step_rad, &s, &c);
        out[u] = (float)c;
        out[w + u] = (float)s;
    }
    out += 2 * (uint64_t)w;
    rise = h > 1 && frame->elevation_rad[1] > frame->elevation_rad[0];
    for (uint32_t v = 0; v < h; v++) {
        double s, c;
        vx__sincos((double)frame->elevation_rad[rise ? h - 1 - v : v], &s, &c);
        out[v] = (float)c;
        out[h + v] = (float)s;
    }
}
