/*
 * genworkload.c - writes a mapping workload (poses and depth or range images)
 * rendered from an analytic scene.
 *
 * Use:    genworkload --scene room --frames 100 --noise 0.0012 --output room.vxwl
 *
 * The output depends on the options only, not on the number of threads: every
 * random number is a hash of (seed, frame, pixel).  -ffp-contract=off keeps it
 * the same across compilers that would otherwise fuse multiply and add.
 *
 * File format, little endian:
 *
 *   char     magic[8]     "VXWL0001"
 *   uint32   kind         0 = depth camera, 1 = LiDAR
 *   uint32   nframes
 *   uint32   width        pixels, or azimuth steps
 *   uint32   height       pixels, or beams
 *   float32  intrinsics[4]  depth: fx, fy, cx, cy (pixels)
 *                           LiDAR: lowest elevation, highest elevation (rad), 0, 0
 *   then per frame:
 *   float32  pose[12]     row-major 3 x 4, sensor to world
 *   float32  image[height * width]   row-major
 *
 * Depth camera (axes x right, y down, z forward): image[v][u] is z in metres of
 * the surface along the ray ((u - cx) / fx, (v - cy) / fy, 1); 0 = no reading.
 *
 * LiDAR (axes x forward, y left, z up): image[row][column] is the range in
 * metres along (cos e cos a, cos e sin a, sin e) with azimuth
 * a = -pi + 2 pi column / width and elevation e falling evenly from the highest
 * in row 0 to the lowest in row height - 1; 0 = no return.
 */
#include "scene.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* Room camera (pixels). */
enum { CAMERA_WIDTH = 640, CAMERA_HEIGHT = 480 };
static const double CAMERA_FOCAL = 525.0, CAMERA_CX = 319.5, CAMERA_CY = 239.5;

/* Street LiDAR (rad, m). */
enum { LIDAR_COLUMNS = 1800, LIDAR_BEAMS = 64 };
static const double LIDAR_LOWEST = -24.8 * 3.14159265358979323846 / 180;
static const double LIDAR_HIGHEST = 2.0 * 3.14159265358979323846 / 180;
static const double LIDAR_MAX_RANGE = 60.0;

struct options {
    enum scene_kind kind;
    bool have_scene, moving_cars, self_check;
    uint32_t frames, first_frame, frames_per_orbit;
    double noise;   /* room: sigma = noise * z^2 (1/m); street: sigma = noise (m) */
    double invalid; /* fraction of readings dropped; negative = the scene's default */
    uint64_t seed;
    const char *output;
};

/* ----------------------------------------------------------- random numbers */

static uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Uniform in (0, 1): number `draw` of this pixel of this frame. */
static double uniform_at(uint64_t seed, uint32_t frame, uint32_t pixel, uint32_t draw)
{
    uint64_t h = mix64(seed + 0x9e3779b97f4a7c15u);
    h = mix64(h ^ (((uint64_t)frame << 32) | pixel));
    h = mix64(h + draw * 0x9e3779b97f4a7c15u);
    return ((double)(h >> 12) + 0.5) * 0x1p-52;
}

/* Standard normal (Box-Muller), from draws 1 and 2. */
static double gaussian_at(uint64_t seed, uint32_t frame, uint32_t pixel)
{
    const double u = uniform_at(seed, frame, pixel, 1), v = uniform_at(seed, frame, pixel, 2);
    return sqrt(-2 * log(u)) * cos(2 * PI * v);
}

/* ---------------------------------------------------------------- rendering */

/* Ray of a pixel in sensor axes.  Depth: its z is 1, so t is depth.  LiDAR: unit. */
static void pixel_ray(enum scene_kind kind, int column, int row, double ray[3])
{
    if (kind == SCENE_ROOM) {
        ray[0] = (column - CAMERA_CX) / CAMERA_FOCAL;
        ray[1] = (row - CAMERA_CY) / CAMERA_FOCAL;
        ray[2] = 1;
        return;
    }
    const double azimuth = -PI + 2 * PI * column / LIDAR_COLUMNS;
    const double elevation = LIDAR_HIGHEST - (LIDAR_HIGHEST - LIDAR_LOWEST) * row / (LIDAR_BEAMS - 1);
    ray[0] = cos(elevation) * cos(azimuth);
    ray[1] = cos(elevation) * sin(azimuth);
    ray[2] = sin(elevation);
}

static void rotate(const double pose[12], const double v[3], double out[3])
{
    for (int row = 0; row < 3; row++)
        out[row] = pose[4 * row] * v[0] + pose[4 * row + 1] * v[1] + pose[4 * row + 2] * v[2];
}

/*
 * Renders one frame into image[height * width].  The pose is the one that the
 * file stores (already rounded to float), so reading the file back gives exact
 * geometry.
 */
static void render(const struct scene *scene, const struct options *opt, uint32_t frame,
                   const double pose[12], int width, int height, float *image)
{
    const double origin[3] = {pose[3], pose[7], pose[11]};
    const double t_max = opt->kind == SCENE_ROOM ? 20.0 : LIDAR_MAX_RANGE;
#pragma omp parallel for schedule(dynamic, 4)
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++) {
            const uint32_t pixel = (uint32_t)(row * width + column);
            double ray[3], direction[3];
            pixel_ray(opt->kind, column, row, ray);
            rotate(pose, ray, direction);
            double t = scene_raycast(scene, frame, origin, direction, t_max);
            if (isinf(t) || uniform_at(opt->seed, frame, pixel, 0) < opt->invalid) {
                image[pixel] = 0;
                continue;
            }
            if (opt->noise > 0) {
                const double sigma = opt->kind == SCENE_ROOM ? opt->noise * t * t : opt->noise;
                t += sigma * gaussian_at(opt->seed, frame, pixel);
            }
            image[pixel] = t > 0 ? (float)t : 0.0f;
        }
    }
}

/*
 * Checks that the sensor stays clear of every solid and that each ray's hit lies
 * on the surface that scene_sdf describes.  Returns the number of failures.
 */
static int self_check(const struct scene *scene, const struct options *opt, int width, int height)
{
    int failures = 0;
    double worst_hit = 0, least_clearance = INFINITY;
    for (uint32_t f = opt->first_frame; f < opt->first_frame + opt->frames; f++) {
        double pose[12];
        scene_pose(scene, f, opt->frames_per_orbit, pose);
        const double origin[3] = {pose[3], pose[7], pose[11]};
        const double clearance = scene_sdf_at_frame(scene, f, origin[0], origin[1], origin[2]);
        least_clearance = fmin(least_clearance, clearance);
        if (clearance < 0.2)
            failures++;
        for (int row = 0; row < height; row += 7) {
            for (int column = 0; column < width; column += 7) {
                double ray[3], d[3];
                pixel_ray(opt->kind, column, row, ray);
                rotate(pose, ray, d);
                const double t = scene_raycast(scene, f, origin, d, LIDAR_MAX_RANGE);
                if (isinf(t))
                    continue;
                const double x = origin[0] + t * d[0], y = origin[1] + t * d[1];
                const double z = origin[2] + t * d[2];
                const double error = fabs(scene_sdf_at_frame(scene, f, x, y, z));
                worst_hit = fmax(worst_hit, error);
                if (error > 1e-6)
                    failures++;
                /* Half way to the hit there must be free space. */
                if (scene_sdf_at_frame(scene, f, (origin[0] + x) / 2, (origin[1] + y) / 2,
                                       (origin[2] + z) / 2) < -1e-9)
                    failures++;
            }
        }
    }
    fprintf(stderr, "self-check: least sensor clearance %.3f m, worst hit error %.2e m, %d failures\n",
            least_clearance, worst_hit, failures);
    return failures;
}

/* ------------------------------------------------------------------ options */

static void usage(FILE *to)
{
    fputs("usage: genworkload --scene room|street --output FILE [options]\n"
          "  --frames N             frames to write (default 100; street at most 700)\n"
          "  --first-frame N        start the trajectory here (default 0)\n"
          "  --frames-per-orbit N   room: frames of one camera orbit (default 100)\n"
          "  --noise K              room: depth sigma = K z^2, K = 0.0012 is typical;\n"
          "                         street: range sigma = K metres (default 0: exact)\n"
          "  --invalid F            fraction of readings dropped (default room 0.02, street 0)\n"
          "  --moving-cars          street: add driving cars\n"
          "  --seed N               seed of noise and dropped readings (default 1)\n"
          "  --self-check           check the scene over these frames; needs no --output\n",
          to);
}

static bool parse_double(const char *text, double lo, double hi, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && *value >= lo && *value <= hi;
}

static bool parse_uint(const char *text, uint64_t hi, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value <= hi;
}

static bool parse_options(int argc, char **argv, struct options *opt)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--moving-cars") == 0) {
            opt->moving_cars = true;
            continue;
        }
        if (strcmp(name, "--self-check") == 0) {
            opt->self_check = true;
            continue;
        }
        const char *value = i + 1 < argc ? argv[++i] : "";
        uint64_t n = 0;
        bool ok;
        if (strcmp(name, "--scene") == 0)
            ok = opt->have_scene = scene_kind_from_name(value, &opt->kind);
        else if (strcmp(name, "--output") == 0)
            ok = (opt->output = value)[0] != '\0';
        else if (strcmp(name, "--frames") == 0)
            ok = parse_uint(value, 1000000, &n) && (opt->frames = (uint32_t)n) > 0;
        else if (strcmp(name, "--first-frame") == 0)
            ok = parse_uint(value, 1000000, &n), opt->first_frame = (uint32_t)n;
        else if (strcmp(name, "--frames-per-orbit") == 0)
            ok = parse_uint(value, 1000000, &n) && (opt->frames_per_orbit = (uint32_t)n) > 0;
        else if (strcmp(name, "--seed") == 0)
            ok = parse_uint(value, UINT64_MAX, &opt->seed);
        else if (strcmp(name, "--noise") == 0)
            ok = parse_double(value, 0, 1, &opt->noise);
        else if (strcmp(name, "--invalid") == 0)
            ok = parse_double(value, 0, 1, &opt->invalid);
        else
            ok = false;
        if (!ok) {
            fprintf(stderr, "genworkload: bad option %s %s\n", name, value);
            return false;
        }
    }
    if (!opt->have_scene || (!opt->output && !opt->self_check))
        return false;
    if (opt->kind == SCENE_STREET && opt->first_frame + opt->frames > SCENE_STREET_MAX_FRAMES) {
        fprintf(stderr, "genworkload: the street has %u frames\n", SCENE_STREET_MAX_FRAMES);
        return false;
    }
    if (opt->invalid < 0)
        opt->invalid = opt->kind == SCENE_ROOM ? 0.02 : 0.0;
    return true;
}

/* --------------------------------------------------------------------- main */

static bool write_header(FILE *file, const struct options *opt, int width, int height)
{
    const uint32_t numbers[4] = {opt->kind == SCENE_ROOM ? 0 : 1, opt->frames, (uint32_t)width,
                                 (uint32_t)height};
    const float camera[4] = {(float)CAMERA_FOCAL, (float)CAMERA_FOCAL, (float)CAMERA_CX, (float)CAMERA_CY};
    const float lidar[4] = {(float)LIDAR_LOWEST, (float)LIDAR_HIGHEST, 0, 0};
    return fwrite("VXWL0001", 8, 1, file) == 1 && fwrite(numbers, sizeof numbers, 1, file) == 1 &&
           fwrite(opt->kind == SCENE_ROOM ? camera : lidar, sizeof camera, 1, file) == 1;
}

static bool write_workload(const struct scene *scene, const struct options *opt, int width, int height)
{
    const size_t pixels = (size_t)width * (size_t)height;
    float *image = malloc(pixels * sizeof *image);
    FILE *file = image ? fopen(opt->output, "wb") : NULL;
    bool ok = file && write_header(file, opt, width, height);
    for (uint32_t i = 0; ok && i < opt->frames; i++) {
        const uint32_t frame = opt->first_frame + i;
        double pose[12];
        float stored[12];
        scene_pose(scene, frame, opt->frames_per_orbit, pose);
        for (int k = 0; k < 12; k++) {
            stored[k] = (float)pose[k];
            pose[k] = stored[k];
        }
        render(scene, opt, frame, pose, width, height, image);
        ok = fwrite(stored, sizeof stored, 1, file) == 1 &&
             fwrite(image, sizeof *image, pixels, file) == pixels;
    }
    if (file && fclose(file) != 0)
        ok = false;
    free(image);
    if (!ok)
        fprintf(stderr, "genworkload: cannot write %s: %s\n", opt->output, strerror(errno));
    return ok;
}

int main(int argc, char **argv)
{
    const uint16_t probe = 1;
    if (*(const uint8_t *)&probe != 1) {
        fputs("genworkload: needs a little-endian machine\n", stderr);
        return 1;
    }
    struct options opt = {.frames = 100, .frames_per_orbit = 100, .invalid = -1, .seed = 1};
    if (!parse_options(argc, argv, &opt)) {
        usage(stderr);
        return 2;
    }
    struct scene *scene = scene_create(opt.kind, opt.moving_cars);
    if (!scene) {
        fputs("genworkload: out of memory\n", stderr);
        return 1;
    }
    const int width = opt.kind == SCENE_ROOM ? CAMERA_WIDTH : LIDAR_COLUMNS;
    const int height = opt.kind == SCENE_ROOM ? CAMERA_HEIGHT : LIDAR_BEAMS;
    fprintf(stderr, "genworkload: %d solids, %u frames of %d x %d\n", scene_solid_count(scene), opt.frames,
            width, height);
    bool ok = true;
    if (opt.self_check)
        ok = self_check(scene, &opt, width, height) == 0;
    if (ok && opt.output)
        ok = write_workload(scene, &opt, width, height);
    scene_destroy(scene);
    return ok ? 0 : 1;
}
