/* voxelctl view: a shaded picture of the map, by ray casting. */
#include "cli.h"
#include "outfile.h"
#include "picture.h"
#include "raycast.h"
#include "view_maps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "voxelctl view - shaded picture of a map\n"
    "\n"
    "usage: voxelctl view NAME [--png FILE] [--depth FILE] [--normals FILE] [options]\n"
    "\n"
    "options\n"
    "  --png FILE             the picture; - = stdout\n"
    "  --depth FILE           PNG of 16-bit depths along the camera's axis; 0 = nothing there\n"
    "  --depth-scale UNITS    units of --depth a metre; default 1000 (millimetres)\n"
    "  --normals FILE         PNG of normals in the map's axes: red, green, blue = 127.5 + 127.5 x, y, z\n"
    "  --size WxH             pixels, each way 16 .. 8192; default 1280x960\n"
    "  --samples N            up to N x N rays a pixel, where an edge crosses it; 1 .. 4, default 2;\n"
    "                         size and samples together at most 134,217,728 rays\n"
    "  --fov DEG              of the picture's height; default 45\n"
    "  --eye X,Y,Z            stand here; with --target X,Y,Z and, when up is not z, --up X,Y,Z\n"
    "  --pose X,Y,Z,QX,QY,QZ,QW  camera pose (x right, y down, z forward), as a frame's\n"
    "  --back-faces           show walls from behind too\n"
    "  --heights              colours by height also for a map that keeps colour; default: its own\n"
    "\n"
    "Without a pose one is chosen: of 48 directions from outside, the one that sees most.  A wall that was "
    "mapped from one side\n"
    "is looked through from its back, so a room is seen into like a doll's house.\n"
    "\n"
    "All files show one epoch.  A map that changes meanwhile is looked at up to five times; if it never "
    "stands "
    "still, the last\n"
    "look is taken and said to be of several epochs (--json: epoch, newest_epoch).\n"
    "\n"
    "exit codes: 0 done, 1 refused or the file cannot be written, 2 wrong usage, 3 no daemon, 130 "
    "interrupted\n";

enum { PICTURE, DEPTHS, NORMAL_MAP, N_OUTPUTS };
static const char *const OUTPUT_NAMES[N_OUTPUTS] = {"png", "depth", "normals"};

static const uint64_t MAX_RAYS = 1u << 27; /* their hits take 2 GiB */

struct options {
    const char *map;
    const char *path[N_OUTPUTS]; /* NULL: not asked for */
    uint32_t given;              /* options, a bit each */
    double depth_units_per_m;
    uint64_t width, height, samples;
    double fov_deg;
    bool has_eye, has_target, has_pose, back_faces, heights;
    double eye_m[3], target_m[3], up[3], pose[7];
};

enum {
    PNG,
    DEPTH,
    DEPTH_SCALE,
    NORMALS,
    SIZE,
    SAMPLES,
    FOV,
    EYE,
    TARGET,
    UP,
    POSE,
    BACK_FACES,
    HEIGHTS,
    N_OPTIONS
};

static const struct cli_option OPTIONS[N_OPTIONS] = {
    [PNG] = {"png", 0, true},
    [DEPTH] = {"depth", 0, true},
    [DEPTH_SCALE] = {"depth-scale", 0, true},
    [NORMALS] = {"normals", 0, true},
    [SIZE] = {"size", 0, true},
    [SAMPLES] = {"samples", 0, true},
    [FOV] = {"fov", 0, true},
    [EYE] = {"eye", 0, true},
    [TARGET] = {"target", 0, true},
    [UP] = {"up", 0, true},
    [POSE] = {"pose", 0, true},
    [BACK_FACES] = {"back-faces", 0, false},
    [HEIGHTS] = {"heights", 0, false},
};

static bool take_size(struct cli *cli, const char *value, struct options *o)
{
    char width[16];
    const size_t n = strcspn(value, "xX");
    if (n == 0 || n >= sizeof width || value[n] == '\0')
        return cli_usage(cli, "--size: '%s' is not WIDTHxHEIGHT", value), false;
    memcpy(width, value, n);
    width[n] = '\0';
    return cli_whole(cli, "--size", width, 16, 8192, &o->width) &&
           cli_whole(cli, "--size", value + n + 1, 16, 8192, &o->height);
}

static bool take_option(struct cli *cli, int option, const char *value, struct options *o)
{
    switch (option) {
    case PNG:
        o->path[PICTURE] = value;
        return true;
    case DEPTH:
        o->path[DEPTHS] = value;
        return true;
    case DEPTH_SCALE:
        return cli_number(cli, "--depth-scale", value, 1e-3, 1e6, &o->depth_units_per_m);
    case NORMALS:
        o->path[NORMAL_MAP] = value;
        return true;
    case SIZE:
        return take_size(cli, value, o);
    case SAMPLES:
        return cli_whole(cli, "--samples", value, 1, 4, &o->samples);
    case FOV:
        return cli_number(cli, "--fov", value, 1, 150, &o->fov_deg);
    case EYE:
        return o->has_eye = cli_numbers(cli, "--eye", value, o->eye_m, 3);
    case TARGET:
        return o->has_target = cli_numbers(cli, "--target", value, o->target_m, 3);
    case UP:
        return cli_numbers(cli, "--up", value, o->up, 3);
    case POSE:
        return o->has_pose = cli_numbers(cli, "--pose", value, o->pose, 7);
    case HEIGHTS:
        return o->heights = true;
    default:
        return o->back_faces = true;
    }
}

/* Options that mean something beside another one only. */
static int check_company(struct cli *cli, const struct options *o)
{
    static const struct {
        int option, wants;
        const char *words;
    } NEEDS[] = {{DEPTH_SCALE, DEPTH, "--depth-scale belongs to --depth"},
                 {SAMPLES, PNG, "--samples belongs to --png: depths and normals have one ray a pixel"},
                 {HEIGHTS, PNG, "--heights belongs to --png"},
                 {UP, EYE, "--up belongs to --eye and --target"}};
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        if (o->given >> NEEDS[i].option & 1 && !(o->given >> NEEDS[i].wants & 1))
            return cli_usage(cli, "%s", NEEDS[i].words);
    return -1;
}

static int check_usage(struct cli *cli, const struct options *o)
{
    int n_files = 0, n_stdout = 0;
    for (int i = 0; i < N_OUTPUTS; i++) {
        n_files += o->path[i] != NULL;
        n_stdout += o->path[i] && strcmp(o->path[i], "-") == 0;
    }
    if (!o->map || n_files == 0)
        return cli_usage(cli, "view needs the name of a map and --png, --depth or --normals FILE");
    if (o->has_eye != o->has_target || (o->has_eye && o->has_pose))
        return cli_usage(cli, "give --eye and --target together, or --pose, or neither");
    if (cli->json && n_stdout > 0)
        return cli_usage(cli, "a file on stdout and --json both want stdout");
    if (n_stdout > 1)
        return cli_usage(cli, "only one file can go to stdout");
    for (int i = 0; i < N_OUTPUTS; i++)
        for (int k = 0; k < i; k++)
            if (o->path[i] && o->path[k] && outfile_same(o->path[i], o->path[k]))
                return cli_usage(cli, "--%s and --%s would be one file, %s", OUTPUT_NAMES[k], OUTPUT_NAMES[i],
                                 o->path[i]);
    const uint64_t n_rays = o->width * o->height * (o->path[PICTURE] ? o->samples * o->samples : 1);
    if (n_rays > MAX_RAYS)
        return cli_usage(
            cli,
            "--size %llux%llu with %llu x %llu samples a pixel is %llu rays, at most %llu: take a "
            "smaller --size or --samples",
            (unsigned long long)o->width, (unsigned long long)o->height, (unsigned long long)o->samples,
            (unsigned long long)o->samples, (unsigned long long)n_rays, (unsigned long long)MAX_RAYS);
    return check_company(cli, o);
}

static int parse(struct cli *cli, struct options *o)
{
    const char *value;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && o->map)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (got == CLI_WORD)
            o->map = value;
        else if (!take_option(cli, got, value, o))
            return CLI_USAGE;
        else
            o->given |= 1u << got;
    }
    return check_usage(cli, o);
}

/* ------------------------------------------------------------------ camera */

/* Columns of the rotation of a unit quaternion x y z w are the camera's axes. */
static bool camera_of_pose(struct camera *camera, const double pose[7])
{
    double q[4], norm = 0;
    for (int i = 0; i < 4; i++)
        norm += pose[3 + i] * pose[3 + i];
    norm = sqrt(norm);
    if (fabs(norm - 1) > 1e-3)
        return false;
    for (int i = 0; i < 4; i++)
        q[i] = pose[3 + i] / norm;
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    const double right[3] = {1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)};
    const double down[3] = {2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)};
    const double forward[3] = {2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)};
    memcpy(camera->eye_m, pose, sizeof camera->eye_m);
    memcpy(camera->right, right, sizeof right);
    memcpy(camera->down, down, sizeof down);
    memcpy(camera->forward, forward, sizeof forward);
    return true;
}

/* Places the camera; up: towards the picture's top, for the light.  Returns an exit code. */
static int place(struct cli *cli, const struct options *o, const struct view *view, struct camera *camera,
                 double up[3])
{
    struct vx_detail detail;
    camera->width = (uint32_t)(o->width * o->samples);
    camera->height = (uint32_t)(o->height * o->samples);
    camera->tan_half_fov = tan(o->fov_deg * 3.14159265358979323846 / 360);
    if (o->has_pose) {
        if (!camera_of_pose(camera, o->pose))
            return cli_usage(cli, "--pose: the quaternion's length is not 1");
        for (int i = 0; i < 3; i++)
            up[i] = -camera->down[i];
        return CLI_OK;
    }
    if (o->has_eye) {
        memcpy(up, o->up, sizeof o->up);
        if (!camera_look(camera, o->eye_m, o->target_m, up))
            return cli_usage(
                cli,
                "--eye, --target and --up do not make a camera: the target is the eye, or straight along up");
        return CLI_OK;
    }
    const vx_err err = raycast_automatic(view, camera, up, &detail);
    return err == VX_OK ? CLI_OK : cli_error(cli, err, &detail);
}

/* ------------------------------------------------------------------ shading */

struct shade {
    const struct camera *camera;
    const struct vxc_tint *tints; /* of the hits; NULL: colour by height */
    double light[3];              /* towards it, unit */
    double near_m, far_m;         /* of the hits */
    double up[3], low_m, high_m;  /* heights of the hits along up */
};

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void prepare(struct shade *s, const struct camera *camera, const struct hit *hits, const double up[3])
{
    double length = 0;
    *s = (struct shade){
        .camera = camera, .near_m = INFINITY, .far_m = 0, .low_m = INFINITY, .high_m = -INFINITY};
    memcpy(s->up, up, sizeof s->up);
    for (int i = 0; i < 3; i++)
        s->light[i] = -camera->forward[i] - 0.55 * camera->down[i] - 0.45 * camera->right[i];
    length = sqrt(dot(s->light, s->light));
    for (int i = 0; i < 3; i++)
        s->light[i] /= length;
    for (uint32_t k = 0; k < (uint64_t)camera->width * camera->height; k++) {
        double d[3];
        if (isnan(hits[k].range_m))
            continue;
        camera_ray(camera, k % camera->width, k / camera->width, d);
        const double range = (double)hits[k].range_m;
        const double height = dot(camera->eye_m, s->up) + range * dot(d, s->up);
        s->near_m = fmin(s->near_m, range);
        s->far_m = fmax(s->far_m, range);
        s->low_m = fmin(s->low_m, height);
        s->high_m = fmax(s->high_m, height);
    }
}

/* The colours of the map where the hits are, [height][width]. */
static vx_err find_tints(const struct view *view, const struct camera *camera, const struct hit *hits,
                         struct vxc_tint *out, struct vx_detail *detail)
{
    enum { AT_ONCE = 1 << 16 };
    const uint32_t n = camera->width * camera->height;
    float *points = malloc(AT_ONCE * 3 * sizeof *points);
    vx_err err = VX_OK;
    if (!points)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for the colours of %u rays", n);
    for (uint32_t first = 0, k; first < n && err == VX_OK; first += k) {
        for (k = 0; k < AT_ONCE && first + k < n; k++) {
            const float range = hits[first + k].range_m;
            double d[3];
            camera_ray(camera, (first + k) % camera->width, (first + k) / camera->width, d);
            for (int i = 0; i < 3; i++) /* from the eye; a ray without a hit asks for the eye's own place */
                points[3 * k + (uint32_t)i] = isnan(range) ? 0.0f : (float)(d[i] * (double)range);
        }
        struct vxc_map_state state;
        err = vxc_query_tints(view->client, view->map, view->answered->newest, camera->eye_m, points, k,
                              out + first, &state, detail);
        if (err == VX_OK)
            view_note(view, &state);
    }
    free(points);
    return err;
}

/* Colour by height or of the map, light by normal, haze by distance. */
static struct rgb shade_hit(const struct shade *s, const struct hit *hit, uint32_t u, uint32_t v)
{
    static const struct rgb low = {84, 116, 160}, middle = {196, 190, 176}, high = {212, 138, 74};
    static const struct rgb dark = {22, 24, 36}, haze = {200, 208, 220};
    double d[3], lit = 0;
    camera_ray(s->camera, u, v, d);
    for (int i = 0; i < 3; i++)
        lit += (double)hit->normal[i] * s->light[i];
    const double height = dot(s->camera->eye_m, s->up) + (double)hit->range_m * dot(d, s->up);
    const double t = s->high_m > s->low_m ? (height - s->low_m) / (s->high_m - s->low_m) : 0.5;
    struct rgb base = t < 0.5 ? rgb_mix(low, middle, 2 * t) : rgb_mix(middle, high, 2 * t - 1);
    /* Light wraps round: what turns away from it still shows its shape. */
    double bright = 0.40 + 0.60 * fmax((lit + 0.4) / 1.4, 0);
    const double depth =
        s->far_m > s->near_m ? ((double)hit->range_m - s->near_m) / (s->far_m - s->near_m) : 0;
    if (s->tints) { /* has its own light in it already */
        const uint8_t *colour = s->tints[(size_t)v * s->camera->width + u].colour;
        base = (struct rgb){colour[0], colour[1], colour[2]};
        bright = 0.75 + 0.25 * bright;
    }
    return rgb_mix(rgb_mix(dark, base, bright), haze, (s->tints ? 0.05 : 0.20) * depth);
}

static struct rgb background(double t)
{
    const struct rgb top = {232, 236, 242}, bottom = {250, 250, 252};
    return rgb_mix(top, bottom, t);
}

/* true where two neighbouring hits are not of one smooth surface. */
static bool differ(const struct hit *a, const struct hit *b)
{
    if (isnan(a->range_m) || isnan(b->range_m))
        return isnan(a->range_m) != isnan(b->range_m);
    const float along =
        a->normal[0] * b->normal[0] + a->normal[1] * b->normal[1] + a->normal[2] * b->normal[2];
    return along < 0.9f || fabsf(a->range_m - b->range_m) > 0.03f * a->range_m;
}

/* Casts one ray a pixel, then all rays of the pixels that differ from a neighbour; the others get copies. */
static vx_err cast(const struct view *view, const struct camera *camera, uint32_t samples, struct hit *hits,
                   struct vx_detail *detail)
{
    const uint32_t width = camera->width, height = camera->height;
    if (samples == 1)
        return raycast(view, camera, NULL, hits, detail);
    uint8_t *wanted = calloc((size_t)width * height, 1);
    if (!wanted)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for a picture of %u x %u rays", width, height);
    for (uint32_t v = 0; v < height; v += samples)
        for (uint32_t u = 0; u < width; u += samples)
            wanted[(size_t)v * width + u] = 1;
    vx_err err = raycast(view, camera, wanted, hits, detail);
    memset(wanted, 0, (size_t)width * height);
    for (uint32_t v = 0; v < height && err == VX_OK; v += samples) {
        for (uint32_t u = 0; u < width; u += samples) {
            const struct hit *first = &hits[(size_t)v * width + u];
            const bool edge = (u + samples < width && differ(first, first + samples)) ||
                              (u >= samples && differ(first, first - samples)) ||
                              (v + samples < height && differ(first, first + (size_t)samples * width)) ||
                              (v >= samples && differ(first, first - (size_t)samples * width));
            for (uint32_t k = 1; k < samples * samples; k++) {
                const size_t at = (size_t)(v + k / samples) * width + u + k % samples;
                hits[at] = *first;
                wanted[at] = edge;
            }
        }
    }
    if (err == VX_OK)
        err = raycast(view, camera, wanted, hits, detail);
    free(wanted);
    return err;
}

/* Averages samples x samples rays into each pixel. */
static void paint(struct picture *p, const struct shade *s, const struct hit *hits, uint32_t samples)
{
    for (uint32_t y = 0; y < p->height; y++) {
        for (uint32_t x = 0; x < p->width; x++) {
            uint32_t sum[3] = {0, 0, 0};
            for (uint32_t k = 0; k < samples * samples; k++) {
                const uint32_t u = x * samples + k % samples, v = y * samples + k / samples;
                const struct hit *hit = &hits[(size_t)v * s->camera->width + u];
                const struct rgb c =
                    isnan(hit->range_m) ? background((double)y / p->height) : shade_hit(s, hit, u, v);
                sum[0] += c.r;
                sum[1] += c.g;
                sum[2] += c.b;
            }
            const uint32_t n = samples * samples;
            p->px[(size_t)y * p->width + x] =
                (struct rgb){(uint8_t)(sum[0] / n), (uint8_t)(sum[1] / n), (uint8_t)(sum[2] / n)};
        }
    }
}

/* ------------------------------------------------------------------ command */

/* The view's camera without the rays beside the pixels' own. */
static struct camera pixels_of(const struct camera *camera, const struct options *o)
{
    struct camera out = *camera;
    out.width = (uint32_t)o->width;
    out.height = (uint32_t)o->height;
    return out;
}

struct outcome {
    double hit_fraction;
    uint64_t n_beyond; /* pixels too far away for --depth */
    FILE *report;      /* for words */
};

static int report(struct cli *cli, const struct options *o, const struct view *view,
                  const struct camera *camera, const struct outcome *outcome, double seconds)
{
    const double focal_px = (double)o->height / (2 * camera->tan_half_fov);
    double target_m[3];
    for (int i = 0; i < 3; i++)
        target_m[i] = camera->eye_m[i] + camera->forward[i];
    if (cli->json) {
        struct json j = {outcome->report, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", o->map);
        if (o->path[PICTURE])
            json_text(&j, "file", o->path[PICTURE]);
        if (o->path[DEPTHS]) {
            json_text(&j, "depth", o->path[DEPTHS]);
            json_number(&j, "depth_units_per_m", o->depth_units_per_m);
            json_u64(&j, "depth_beyond", outcome->n_beyond);
        }
        if (o->path[NORMAL_MAP])
            json_text(&j, "normals", o->path[NORMAL_MAP]);
        json_u64(&j, "width", o->width);
        json_u64(&j, "height", o->height);
        json_vector(&j, "eye_m", camera->eye_m, 3);
        json_vector(&j, "target_m", target_m, 3);
        json_vector(&j, "down", camera->down, 3);
        json_vector(
            &j, "intrinsics",
            (const double[4]){focal_px, focal_px, ((double)o->width - 1) / 2, ((double)o->height - 1) / 2},
            4);
        json_number(&j, "hit_fraction", outcome->hit_fraction);
        json_u64(&j, "epoch", view->answered->oldest);
        json_u64(&j, "newest_epoch", view->answered->newest);
        json_number(&j, "latency_ms", seconds * 1e3);
        json_end(&j, '}');
        return json_finish(&j);
    }
    const double percent = 100 * outcome->hit_fraction;
    fprintf(outcome->report, "%s: %llu x %llu px from (%.2f, %.2f, %.2f) towards (%.2f, %.2f, %.2f), ",
            o->path[PICTURE]  ? o->path[PICTURE]
            : o->path[DEPTHS] ? o->path[DEPTHS]
                              : o->path[NORMAL_MAP],
            (unsigned long long)o->width, (unsigned long long)o->height, camera->eye_m[0], camera->eye_m[1],
            camera->eye_m[2], target_m[0], target_m[1], target_m[2]);
    if (percent > 0)
        fprintf(outcome->report, "%.*f %% of it shows the map\n", percent < 1 ? 3 : 0, percent);
    else
        fputs("nothing of the map is in it\n", outcome->report);
    if (view->answered->oldest != view->answered->newest)
        fprintf(outcome->report,
                "the map changed while it was looked at: this view is of epochs %llu to %llu\n",
                (unsigned long long)view->answered->oldest, (unsigned long long)view->answered->newest);
    if (outcome->n_beyond)
        fprintf(outcome->report,
                "%s: %llu px are farther away than %.0f m and are 0: a smaller --depth-scale reaches "
                "farther\n",
                o->path[DEPTHS], (unsigned long long)outcome->n_beyond, 65534 / o->depth_units_per_m);
    return CLI_OK;
}

static vx_err draw(const struct options *o, const struct camera *camera, const struct hit *hits,
                   const struct vxc_tint *tints, const double up[3], FILE *file, struct vx_detail *detail)
{
    struct picture p;
    struct shade shade;
    const struct rgb black = {0, 0, 0};
    VX_TRY_RET(picture_init(&p, (uint32_t)o->width, (uint32_t)o->height, black, detail));
    prepare(&shade, camera, hits, up);
    shade.tints = tints;
    paint(&p, &shade, hits, (uint32_t)o->samples);
    const vx_err err = picture_write_png(&p, file, detail);
    picture_fini(&p);
    return err;
}

static double hit_fraction(const struct hit *hits, size_t n)
{
    size_t n_hits = 0;
    for (size_t k = 0; k < n; k++)
        n_hits += !isnan(hits[k].range_m);
    return (double)n_hits / (double)n;
}

/* What the camera sees: all that the files are made of. */
struct sight {
    struct hit *hits;       /* of the picture's rays; NULL: it is not asked for */
    struct vxc_tint *tints; /* of the same; NULL: colours by height */
    struct hit *pixels;     /* one ray a pixel, for depths and normals; NULL: not asked for */
};

static void sight_fini(struct sight *s)
{
    free(s->hits);
    free(s->tints);
    free(s->pixels);
}

static vx_err sight_init(struct sight *s, const struct options *o, const struct view *view,
                         const struct camera *camera, struct vx_detail *detail)
{
    const size_t n_rays = (size_t)camera->width * camera->height, n_pixels = o->width * o->height;
    const bool tinted = o->path[PICTURE] && view->info.params.colour && !o->heights;
    const bool maps = o->path[DEPTHS] || o->path[NORMAL_MAP];
    s->hits = o->path[PICTURE] ? malloc(n_rays * sizeof *s->hits) : NULL;
    s->tints = tinted ? malloc(n_rays * sizeof *s->tints) : NULL;
    s->pixels = maps ? malloc(n_pixels * sizeof *s->pixels) : NULL;
    if ((o->path[PICTURE] && !s->hits) || (tinted && !s->tints) || (maps && !s->pixels))
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu rays", n_rays);
    return VX_OK;
}

/* Asks for all of it.  A map that changes on the way is looked at again: picture, colours, depths and normals
 * are to be of one epoch.  Where it never stands still the last look is taken, and view->answered tells. */
static vx_err look(struct sight *s, const struct options *o, const struct view *view,
                   const struct camera *camera, struct vx_detail *detail)
{
    enum { MOST_LOOKS = 5 };
    const struct camera pixels = pixels_of(camera, o);
    for (int i = 0; i < MOST_LOOKS; i++) {
        *view->answered = (struct epochs){0, 0};
        if (s->hits)
            VX_TRY_RET(cast(view, camera, (uint32_t)o->samples, s->hits, detail));
        if (s->tints)
            VX_TRY_RET(find_tints(view, camera, s->hits, s->tints, detail));
        if (s->pixels)
            VX_TRY_RET(raycast(view, &pixels, NULL, s->pixels, detail));
        if (view->answered->oldest == view->answered->newest)
            break;
    }
    return VX_OK;
}

static vx_err write_files(const struct options *o, const struct sight *s, const struct camera *camera,
                          const double up[3], const struct outfile *out, struct outcome *outcome,
                          struct vx_detail *detail)
{
    const struct camera pixels = pixels_of(camera, o);
    outcome->hit_fraction = s->hits ? hit_fraction(s->hits, (size_t)camera->width * camera->height)
                                    : hit_fraction(s->pixels, (size_t)pixels.width * pixels.height);
    if (o->path[PICTURE])
        VX_TRY_RET(draw(o, camera, s->hits, s->tints, up, out[PICTURE].file, detail));
    if (o->path[DEPTHS])
        VX_TRY_RET(view_write_depth(&pixels, s->pixels, o->depth_units_per_m, out[DEPTHS].file,
                                    &outcome->n_beyond, detail));
    if (o->path[NORMAL_MAP])
        VX_TRY_RET(view_write_normals(&pixels, s->pixels, out[NORMAL_MAP].file, detail));
    return VX_OK;
}

/* All files, or none. */
static vx_err make(const struct options *o, const struct view *view, const struct camera *camera,
                   const double up[3], struct outcome *outcome, struct vx_detail *detail)
{
    struct outfile out[N_OUTPUTS] = {{.file = NULL}};
    struct sight sight = {.hits = NULL};
    vx_err err = VX_OK;
    outcome->report = stdout;
    for (int i = 0; i < N_OUTPUTS && err == VX_OK; i++) {
        if (o->path[i])
            err = outfile_open(&out[i], o->path[i], detail);
        if (err == VX_OK && out[i].file && out[i].report == stderr)
            outcome->report = stderr;
    }
    if (err == VX_OK)
        err = sight_init(&sight, o, view, camera, detail);
    if (err == VX_OK)
        err = look(&sight, o, view, camera, detail);
    if (err == VX_OK)
        err = write_files(o, &sight, camera, up, out, outcome, detail);
    sight_fini(&sight);
    return outfiles_close(out, N_OUTPUTS, err, detail);
}

static int run(struct cli *cli, const struct options *o)
{
    struct epochs answered = {0, 0};
    struct view view = {
        .client = cli->client, .map = o->map, .back_faces = o->back_faces, .answered = &answered};
    struct outcome outcome = {.report = NULL};
    struct camera camera;
    struct vx_detail detail;
    double up[3];
    const double start_s = cli_now_s();
    vx_err err = vxc_map_get_info(cli->client, o->map, &view.info, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, o->map);
    if (!view.info.has_bounds)
        return cli_fail(cli, "map %s is empty: play something into it first", o->map);
    const int code = place(cli, o, &view, &camera, up);
    if (code != CLI_OK)
        return code;
    err = make(o, &view, &camera, up, &outcome, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, o->map);
    return report(cli, o, &view, &camera, &outcome, cli_now_s() - start_s);
}

int cmd_view(struct cli *cli)
{
    struct options o = {.width = 1280,
                        .height = 960,
                        .samples = 2,
                        .fov_deg = 45,
                        .up = {0, 0, 1},
                        .depth_units_per_m = 1000};
    cli->help = HELP;
    int code = parse(cli, &o);
    if (code >= 0)
        return code;
    code = cli_connect(cli);
    return code == CLI_OK ? run(cli, &o) : code;
}
