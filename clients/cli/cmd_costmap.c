/* voxelctl costmap: what a ground robot may drive over, as an image and a description that Nav2's map_server
 * reads. */
#include "cli.h"
#include "outfile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char HELP[] =
    "voxelctl costmap - 2D costs over a band of heights, for ground robots\n"
    "\n"
    "usage: voxelctl costmap NAME --min-z Z --max-z Z -o FILE.pgm [options]\n"
    "\n"
    "options\n"
    "  --min-z Z, --max-z Z   world heights that the robot fills, m\n"
    "  -o, --output FILE      image (PGM); FILE.yaml beside it says resolution and origin\n"
    "  --cell M               edge of a cell; default: the voxel size\n"
    "  --inscribed M          cells nearer to a surface than this count as blocked; default 0\n"
    "  --unknown-free         unknown space counts as free; without it any unknown voxel of the band makes a "
    "cell "
    "unknown\n"
    "\n"
    "Pixels: 0 occupied, or nearer than --inscribed; 205 unknown; 254 free.  x runs to the right, y up.\n"
    "\n"
    "exit codes: 0 done, 1 refused or a file cannot be written, 2 wrong usage, 3 no daemon, 130 "
    "interrupted\n";

struct costmap {
    const char *map, *path;
    char description[4096]; /* the file beside it */
    bool has_min, has_max;
    double min_z_m, max_z_m;
    struct vxc_slice slice;
    struct vxc_slice_cell *cell;
    struct vxc_map_info info;
    struct vxc_map_state state;
    uint64_t n_free, n_blocked, n_unknown;
};

enum { MIN_Z, MAX_Z, OUTPUT, CELL, INSCRIBED, UNKNOWN_FREE, N_OPTIONS };

static const struct cli_option OPTIONS[N_OPTIONS] = {
    [MIN_Z] = {"min-z", 0, true},         [MAX_Z] = {"max-z", 0, true},
    [OUTPUT] = {"output", 'o', true},     [CELL] = {"cell", 0, true},
    [INSCRIBED] = {"inscribed", 0, true}, [UNKNOWN_FREE] = {"unknown-free", 0, false}};

static bool take(struct cli *cli, struct costmap *m, int option, const char *value)
{
    switch (option) {
    case MIN_Z:
        return m->has_min = cli_number(cli, "--min-z", value, -1e9, 1e9, &m->min_z_m);
    case MAX_Z:
        return m->has_max = cli_number(cli, "--max-z", value, -1e9, 1e9, &m->max_z_m);
    case CELL:
        return cli_number(cli, "--cell", value, 1e-4, 1e4, &m->slice.cell_m);
    case INSCRIBED:
        return cli_number(cli, "--inscribed", value, 0, 1e4, &m->slice.inscribed_m);
    case UNKNOWN_FREE:
        m->slice.unknown = VXC_UNKNOWN_FREE;
        return true;
    default:
        m->path = value;
        return true;
    }
}

static int parse(struct cli *cli, struct costmap *m)
{
    struct stat st;
    const char *value;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && m->map)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (got == CLI_WORD)
            m->map = value;
        else if (!take(cli, m, got, value))
            return CLI_USAGE;
    }
    if (!m->map || !m->path || !m->has_min || !m->has_max)
        return cli_usage(cli, "costmap needs the name of a map, --min-z, --max-z and -o FILE.pgm");
    if (m->min_z_m > m->max_z_m)
        return cli_usage(cli, "--min-z is above --max-z");
    if (strcmp(m->path, "-") == 0 || (stat(m->path, &st) == 0 && !S_ISREG(st.st_mode)))
        return cli_usage(cli, "costmap writes two files: -o %s is not one", m->path);
    if (snprintf(m->description, sizeof m->description, "%s.yaml", m->path) >= (int)sizeof m->description)
        return cli_usage(cli, "-o: the path is too long");
    if (outfile_same(m->path, m->description))
        return cli_usage(cli, "%s and %s are one file", m->path, m->description);
    return -1;
}

/* Cells over the map's chunks that hold anything, on its voxel grid. */
static vx_err ask(struct cli *cli, struct costmap *m, struct vx_detail *detail)
{
    struct vxc_slice *s = &m->slice;
    if (s->cell_m == 0)
        s->cell_m = m->info.params.voxel_size_m;
    for (int a = 0; a < 2; a++) {
        const double lo = m->info.active_min_m[a], size = m->info.active_max_m[a] - lo;
        const double n = ceil(size / s->cell_m - 1e-6);
        if (n > 1e5)
            return vx_fail(detail, VX_E_INVALID, "cell", "%g cells a side are too many; ask for larger ones",
                           n);
        s->origin_m[a] = lo;
        *(a ? &s->n_y : &s->n_x) = (uint32_t)n;
    }
    s->min_z_m = m->min_z_m;
    s->max_z_m = m->max_z_m;
    m->cell = malloc(((size_t)s->n_x * s->n_y + 1) * sizeof *m->cell);
    if (!m->cell)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %u x %u cells", s->n_x, s->n_y);
    return vxc_query_slice(cli->client, m->map, m->info.state.epoch, s, m->cell, &m->state, detail);
}

static void write_image(struct costmap *m, FILE *file)
{
    const struct vxc_slice *s = &m->slice;
    fprintf(file, "P5\n%u %u\n255\n", s->n_x, s->n_y);
    for (uint32_t row = s->n_y; row-- > 0 && !outfile_stop(file);) /* the first line is the highest y */
        for (uint32_t x = 0; x < s->n_x; x++) {
            const uint8_t cost = m->cell[(size_t)row * s->n_x + x].cost;
            m->n_free += cost == VXC_COST_FREE;
            m->n_unknown += cost == VXC_COST_UNKNOWN;
            m->n_blocked += cost == VXC_COST_OCCUPIED || cost == VXC_COST_INSCRIBED;
            putc(cost == VXC_COST_FREE ? 254 : cost == VXC_COST_UNKNOWN ? 205 : 0, file);
        }
}

static void write_description(const struct costmap *m, FILE *file)
{
    const char *slash = strrchr(m->path, '/');
    fprintf(file,
            "image: %s\nmode: trinary\nresolution: %.9g\norigin: [%.9g, %.9g, 0]\nnegate: 0\n"
            "occupied_thresh: 0.65\nfree_thresh: 0.25\n",
            slash ? slash + 1 : m->path, m->slice.cell_m, m->slice.origin_m[0], m->slice.origin_m[1]);
}

/* Both or neither. */
static vx_err write_files(struct costmap *m, struct vx_detail *detail)
{
    struct outfile out[2] = {{.file = NULL}, {.file = NULL}};
    vx_err err = outfile_open(&out[0], m->path, detail);
    if (err == VX_OK)
        err = outfile_open(&out[1], m->description, detail);
    if (err == VX_OK) {
        write_image(m, out[0].file);
        write_description(m, out[1].file);
    }
    return outfiles_close(out, 2, err, detail);
}

static int report(const struct cli *cli, const struct costmap *m)
{
    if (cli->json) {
        struct json j = {stdout, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", m->map);
        json_text(&j, "file", m->path);
        json_u64(&j, "columns", m->slice.n_x);
        json_u64(&j, "rows", m->slice.n_y);
        json_number(&j, "cell_m", m->slice.cell_m);
        json_vector(&j, "origin_m", m->slice.origin_m, 2);
        json_u64(&j, "free", m->n_free);
        json_u64(&j, "blocked", m->n_blocked);
        json_u64(&j, "unknown", m->n_unknown);
        json_state(&j, &m->state);
        json_end(&j, '}');
        return json_finish(&j);
    }
    printf("%s: %u x %u cells of %g m (%" PRIu64 " free, %" PRIu64 " blocked, %" PRIu64
           " unknown) from epoch %" PRIu64 "; %s.yaml\n",
           m->path, m->slice.n_x, m->slice.n_y, m->slice.cell_m, m->n_free, m->n_blocked, m->n_unknown,
           m->state.epoch, m->path);
    return CLI_OK;
}

static int run(struct cli *cli, struct costmap *m)
{
    struct vx_detail detail;
    vx_err err = vxc_map_get_info(cli->client, m->map, &m->info, &detail);
    if (err == VX_OK && !m->info.has_bounds)
        return cli_fail(cli, "map %s is empty: play something into it first", m->map);
    if (err == VX_OK)
        err = ask(cli, m, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, m->map);
    err = write_files(m, &detail);
    return err == VX_OK ? report(cli, m) : cli_error(cli, err, &detail);
}

int cmd_costmap(struct cli *cli)
{
    struct costmap m = {0};
    cli->help = HELP;
    int code = parse(cli, &m);
    if (code >= 0)
        return code;
    code = cli_connect(cli);
    if (code == CLI_OK)
        code = run(cli, &m);
    free(m.cell);
    return code;
}
