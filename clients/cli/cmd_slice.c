/* voxelctl slice: the distance field at one height, as a picture. */
#include "cli.h"
#include "outfile.h"
#include "picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "voxelctl slice - picture of the distance field at a height\n"
    "\n"
    "usage: voxelctl slice NAME --z Z --png FILE [--max-pixels N]\n"
    "\n"
    "options\n"
    "  --z Z            world height of the slice, m\n"
    "  --png FILE       the picture; - = stdout\n"
    "  --max-pixels N   longest side of the map's part of the picture; default 2048\n"
    "\n"
    "x runs to the right, y up.  Each voxel is asked once; maps with more voxels than --max-pixels are asked "
    "at every second,\n"
    "third ... voxel, smaller ones are drawn with several pixels a voxel.  Colours: distance to the nearest "
    "surface from pale (near) to\n"
    "dark (the end of reach); white: free, farther than reach; black: occupied; grey: unknown.\n"
    "\n"
    "exit codes: 0 done, 1 refused or the file cannot be written, 2 wrong usage, 3 no daemon, 130 "
    "interrupted\n";

static const struct rgb UNKNOWN = {150, 150, 154}, OCCUPIED = {0, 0, 0}, FAR = {255, 255, 255},
                        PAPER = {240, 240, 242}, INK = {30, 30, 34};

struct slice {
    const char *map, *path;
    double z_m;
    bool has_z;
    uint64_t max_px;
    struct vxc_map_info info;
    struct vxc_map_state state;
    double step_m;                   /* between samples */
    double min_m[2];                 /* centre of the lower left sample */
    uint32_t n[2];                   /* samples */
    uint32_t px;                     /* pixels a sample, each way */
    struct vxc_point_answer *answer; /* [n[1]][n[0]], y upwards */
    double seconds;
};

enum { Z, PNG, MAX_PIXELS, N_OPTIONS };

static const struct cli_option OPTIONS[N_OPTIONS] = {
    [Z] = {"z", 0, true}, [PNG] = {"png", 0, true}, [MAX_PIXELS] = {"max-pixels", 0, true}};

static int parse(struct cli *cli, struct slice *s)
{
    const char *value;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && s->map)
            return cli_usage(cli, "'%s' is one word too many", value);
        bool good = true;
        if (got == CLI_WORD)
            s->map = value;
        else if (got == PNG)
            s->path = value;
        else if (got == Z)
            good = s->has_z = cli_number(cli, "--z", value, -1e9, 1e9, &s->z_m);
        else
            good = cli_whole(cli, "--max-pixels", value, 16, 16384, &s->max_px);
        if (!good)
            return CLI_USAGE;
    }
    if (!s->map || !s->path || !s->has_z)
        return cli_usage(cli, "slice needs the name of a map, --z Z and --png FILE");
    if (cli->json && strcmp(s->path, "-") == 0)
        return cli_usage(cli, "--png - and --json both want stdout");
    return -1;
}

/* ------------------------------------------------------------------ samples */

/* Samples at voxel centres over the leaves with voxels and the reach around them, inside the map's chunks. */
static void lay_grid(struct slice *s)
{
    const struct vxc_map_info *i = &s->info;
    const double voxel = i->params.voxel_size_m;
    int64_t first[2], count[2];
    for (int a = 0; a < 2; a++) {
        const double origin = i->params.origin_m[a], reach = i->state.max_distance_m;
        const double lo = fmax(i->bounds_min_m[a], i->active_min_m[a] - reach);
        const double hi = fmin(i->bounds_max_m[a], i->active_max_m[a] + reach);
        first[a] = (int64_t)rint((lo - origin) / voxel);
        count[a] = (int64_t)rint((hi - origin) / voxel) - first[a];
        if (count[a] < 1)
            count[a] = 1;
    }
    const int64_t longest = count[0] > count[1] ? count[0] : count[1], most = (int64_t)s->max_px;
    const int64_t stride = (longest + most - 1) / most;
    s->step_m = voxel * (double)stride;
    s->px = longest * 2 <= 900 ? (uint32_t)(900 / longest) : 1; /* small maps large enough to look at */
    if (s->px > 16)
        s->px = 16;
    while (s->px > 1 && longest * s->px > most)
        s->px--;
    for (int a = 0; a < 2; a++) {
        s->n[a] = (uint32_t)((count[a] + stride - 1) / stride);
        s->min_m[a] = i->params.origin_m[a] + ((double)first[a] + 0.5 * (double)stride) * voxel;
        if (stride % 2 == 0) /* the middle of an even block is an edge: take the voxel above it */
            s->min_m[a] += 0.5 * voxel;
    }
}

static vx_err ask(struct cli *cli, struct slice *s, struct vx_detail *detail)
{
    const size_t n = (size_t)s->n[0] * s->n[1];
    const double origin_m[3] = {s->min_m[0], s->min_m[1], s->z_m};
    float *point = malloc(n * 3 * sizeof *point);
    s->answer = malloc(n * sizeof *s->answer);
    vx_err err = point && s->answer ? VX_OK : vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu points", n);
    for (size_t k = 0; err == VX_OK && k < n; k++) {
        point[3 * k] = (float)((double)(k % s->n[0]) * s->step_m);
        point[3 * k + 1] = (float)((double)(k / s->n[0]) * s->step_m);
        point[3 * k + 2] = 0;
    }
    const double start_s = cli_now_s();
    if (err == VX_OK)
        err = vxc_query_points(cli->client, s->map, s->info.state.epoch, origin_m, point, n, s->answer,
                               &s->state, detail);
    s->seconds = cli_now_s() - start_s;
    free(point);
    return err;
}

/* ------------------------------------------------------------------ drawing */

static struct rgb colour_of(const struct slice *s, const struct vxc_point_answer *a)
{
    if (a->state == VXC_UNKNOWN)
        return UNKNOWN;
    if (a->state == VXC_OCCUPIED)
        return OCCUPIED;
    return a->status & VXC_Q_DISTANCE ? rgb_distance((double)a->distance_m / s->state.max_distance_m) : FAR;
}

/* A length of 1, 2 or 5 times a power of ten that fits into limit_m. */
static double round_length(double limit_m)
{
    double length = pow(10, floor(log10(limit_m)));
    if (length * 5 <= limit_m)
        length *= 5;
    else if (length * 2 <= limit_m)
        length *= 2;
    return length;
}

static void swatch(struct picture *p, int x, int y, struct rgb colour, const char *text)
{
    picture_fill(p, x, y, 16, 16, INK);
    picture_fill(p, x + 1, y + 1, 14, 14, colour);
    picture_text(p, x + 22, y + 1, 2, INK, text);
}

/* Under the map: what is shown, a scale bar, the ramp with its ends, and the three other colours. */
static void draw_legend(struct picture *p, const struct slice *s, int top)
{
    enum { MARGIN = 12, RAMP = 260 };
    char text[160];
    int y = top + MARGIN;
    snprintf(text, sizeof text, "%.40s  z = %g m  epoch %" PRIu64, s->map, s->z_m, s->state.epoch);
    picture_text(p, MARGIN, y, 2, INK, text);
    y += 24;
    const double metres_a_pixel = s->step_m / s->px, bar_m = round_length(200 * metres_a_pixel);
    const int bar_px = (int)rint(bar_m / metres_a_pixel);
    picture_fill(p, MARGIN, y + 4, bar_px, 6, INK);
    snprintf(text, sizeof text, "%g m   1 px = %.4g m", bar_m, metres_a_pixel);
    picture_text(p, MARGIN + bar_px + 10, y, 2, INK, text);
    y += 24;
    picture_text(p, MARGIN, y + 1, 2, INK, "0");
    for (int i = 0; i < RAMP; i++)
        picture_fill(p, MARGIN + 18 + i, y, 1, 16, rgb_distance((double)i / (RAMP - 1)));
    snprintf(text, sizeof text, "%.4g m to a surface", s->state.max_distance_m);
    picture_text(p, MARGIN + 18 + RAMP + 8, y + 1, 2, INK, text);
    y += 24;
    swatch(p, MARGIN, y, FAR, "free, farther");
    swatch(p, MARGIN + 200, y, OCCUPIED, "occupied");
    swatch(p, MARGIN + 340, y, UNKNOWN, "unknown");
}

static vx_err draw(const struct slice *s, FILE *file, struct vx_detail *detail)
{
    enum { LEGEND_WIDTH = 560, LEGEND_HEIGHT = 116 };
    struct picture p;
    const uint32_t map_width = s->n[0] * s->px, map_height = s->n[1] * s->px;
    const uint32_t width = map_width > LEGEND_WIDTH ? map_width : LEGEND_WIDTH;
    VX_TRY_RET(picture_init(&p, width, map_height + LEGEND_HEIGHT, PAPER, detail));
    for (uint32_t row = 0; row < s->n[1]; row++)
        for (uint32_t column = 0; column < s->n[0]; column++)
            picture_fill(&p, (int)(column * s->px), (int)((s->n[1] - 1 - row) * s->px), (int)s->px,
                         (int)s->px, colour_of(s, &s->answer[(size_t)row * s->n[0] + column]));
    draw_legend(&p, s, (int)map_height);
    const vx_err err = picture_write_png(&p, file, detail);
    picture_fini(&p);
    return err;
}

/* ------------------------------------------------------------------ command */

static int report(struct cli *cli, const struct slice *s, FILE *to)
{
    const double metres_a_pixel = s->step_m / s->px;
    uint64_t n_state[3] = {0, 0, 0};
    for (size_t k = 0; k < (size_t)s->n[0] * s->n[1]; k++)
        n_state[s->answer[k].state <= VXC_OCCUPIED ? s->answer[k].state : VXC_UNKNOWN]++;
    if (cli->json) {
        struct json j = {to, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", s->map);
        json_text(&j, "file", s->path);
        json_number(&j, "z_m", s->z_m);
        json_number(&j, "metres_per_pixel", metres_a_pixel);
        json_number(&j, "sample_m", s->step_m);
        json_vector(&j, "first_sample_m", s->min_m, 2);
        json_u64(&j, "columns", s->n[0]);
        json_u64(&j, "rows", s->n[1]);
        json_u64(&j, "free", n_state[VXC_FREE]);
        json_u64(&j, "occupied", n_state[VXC_OCCUPIED]);
        json_u64(&j, "unknown", n_state[VXC_UNKNOWN]);
        json_state(&j, &s->state);
        json_number(&j, "latency_ms", s->seconds * 1e3);
        json_end(&j, '}');
        return json_finish(&j);
    }
    fprintf(to, "%s: z = %g m, %u x %u samples of %g m, 1 px = %.4g m\n", s->path, s->z_m, s->n[0], s->n[1],
            s->step_m, metres_a_pixel);
    if (n_state[VXC_FREE] + n_state[VXC_OCCUPIED] == 0)
        fprintf(to, "nothing is known at this height: the map's voxels lie at z = %.3f .. %.3f m\n",
                s->info.active_min_m[2], s->info.active_max_m[2]);
    return CLI_OK;
}

static int run(struct cli *cli, struct slice *s)
{
    struct vx_detail detail;
    struct outfile out;
    vx_err err = vxc_map_get_info(cli->client, s->map, &s->info, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, s->map);
    if (!s->info.has_bounds)
        return cli_fail(cli, "map %s is empty: play something into it first", s->map);
    lay_grid(s);
    err = ask(cli, s, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, s->map);
    err = outfile_open(&out, s->path, &detail);
    if (err == VX_OK)
        err = outfile_close(&out, draw(s, out.file, &detail), &detail);
    return err == VX_OK ? report(cli, s, out.report) : cli_error(cli, err, &detail);
}

int cmd_slice(struct cli *cli)
{
    struct slice s = {.max_px = 2048};
    cli->help = HELP;
    int code = parse(cli, &s);
    if (code >= 0)
        return code;
    code = cli_connect(cli);
    if (code == CLI_OK)
        code = run(cli, &s);
    free(s.answer);
    return code;
}
