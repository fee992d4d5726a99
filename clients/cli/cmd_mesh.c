/* voxelctl mesh */
#include "cli.h"
#include "glb.h"
#include "outfile.h"
#include "ply.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char HELP[] =
    "voxelctl mesh - the surface of a map as triangles\n"
    "\n"
    "usage: voxelctl mesh NAME -o FILE [--format F] [--min-weight N] [--region X,Y,Z,X,Y,Z]\n"
    "\n"
    "options\n"
    "  -o, --output FILE   - = stdout\n"
    "  --format F          ply        binary little-endian PLY with normals, and with colours and labels\n"
    "                                 where the map has them\n"
    "                      ply-ascii  the same as text\n"
    "                      glb        glTF 2.0, binary, with normals and colours; at most 4 GiB\n"
    "                      default: by the file's ending, else ply\n"
    "  --min-weight N      a voxel needs this much evidence, 1 .. 255; default 1\n"
    "  --region BOX        least and greatest corner, metres: the whole blocks of 128^3 voxels that meet "
    "it;\n"
    "                      colours and labels are asked for vertex by vertex, and may be newer than it\n"
    "\n"
    "PLY positions are floats, or doubles when the map lies more than 128 m from the origin; those of glTF\n"
    "are relative to a node.  The file appears whole or not at all.\n"
    "\n"
    "exit codes: 0 done, 1 refused or the file cannot be written, 2 wrong usage, 3 no daemon, 130 "
    "interrupted\n";

enum { OUTPUT, FORMAT, MIN_WEIGHT, REGION, N_OPTIONS };

static const struct cli_option OPTIONS[N_OPTIONS] = {[OUTPUT] = {"output", 'o', true},
                                                     [FORMAT] = {"format", 0, true},
                                                     [MIN_WEIGHT] = {"min-weight", 0, true},
                                                     [REGION] = {"region", 0, true}};

enum format { PLY, PLY_ASCII, GLB, N_FORMATS };
static const char *const FORMATS[N_FORMATS] = {"ply", "ply-ascii", "glb"};

struct mesh_options {
    const char *map, *path;
    enum format format;
    struct vxc_mesh_follow_options what;
};

static bool take_format(struct cli *cli, const char *value, enum format *out)
{
    for (int f = 0; f < N_FORMATS; f++)
        if (strcmp(value, FORMATS[f]) == 0) {
            *out = (enum format)f;
            return true;
        }
    return cli_usage(cli, "--format: '%s' is none of ply, ply-ascii, glb", value), false;
}

static bool take_option(struct cli *cli, int option, const char *value, struct mesh_options *o)
{
    uint64_t weight;
    double box[6];
    switch (option) {
    case OUTPUT:
        o->path = value;
        return true;
    case FORMAT:
        return take_format(cli, value, &o->format);
    case MIN_WEIGHT:
        if (!cli_whole(cli, "--min-weight", value, 1, 255, &weight))
            return false;
        o->what.min_weight = (uint32_t)weight;
        return true;
    default:
        if (!cli_numbers(cli, "--region", value, box, 6))
            return false;
        for (int a = 0; a < 3; a++)
            if (box[a] > box[3 + a])
                return cli_usage(cli, "--region: its first corner must be the least one"), false;
        o->what.has_region = true;
        memcpy(o->what.min_m, box, sizeof o->what.min_m);
        memcpy(o->what.max_m, box + 3, sizeof o->what.max_m);
        return true;
    }
}

static enum format format_of(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcasecmp(path + n - 4, ".glb") == 0 ? GLB : PLY;
}

static int parse(struct cli *cli, struct mesh_options *o)
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
    }
    if (!o->map || !o->path)
        return cli_usage(cli, "mesh needs the name of a map and -o FILE");
    if (cli->json && strcmp(o->path, "-") == 0)
        return cli_usage(cli, "-o - and --json both want stdout");
    if (o->format == N_FORMATS)
        o->format = format_of(o->path);
    return -1;
}

/* The mesh of the region, or of all. */
static vx_err fetch(struct cli *cli, const struct mesh_options *o, struct vxc_mesh *mesh,
                    struct vx_detail *detail)
{
    struct vxc_mesh_follower *follower;
    if (!o->what.has_region)
        return vxc_mesh_get(cli->client, o->map, 0, o->what.min_weight, mesh, detail);
    VX_TRY_RET(vxc_mesh_follow(cli->client, o->map, &o->what, &follower, detail));
    vx_err err = vxc_mesh_update(follower, 0, NULL, detail);
    if (err == VX_OK)
        err = vxc_mesh_weld(follower, mesh, detail);
    vxc_mesh_unfollow(follower);
    return err;
}

static vx_err write_file(FILE *file, enum format format, const struct vxc_mesh *mesh,
                         struct vx_detail *detail)
{
    return format == GLB ? glb_write(file, mesh, detail) : ply_write(file, mesh, format == PLY_ASCII, detail);
}

static int report(struct cli *cli, const struct vxc_mesh *mesh, const struct mesh_options *o, double seconds,
                  FILE *to)
{
    if (cli->json) {
        struct json j = {to, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", mesh->state.name);
        json_text(&j, "file", o->path);
        json_text(&j, "format", FORMATS[o->format]);
        json_u64(&j, "vertices", mesh->n_vertices);
        json_u64(&j, "triangles", mesh->n_triangles);
        json_state(&j, &mesh->state);
        json_number(&j, "latency_ms", seconds * 1e3);
        json_end(&j, '}');
        return json_finish(&j);
    }
    char text[CLI_TEXT_MAX];
    fprintf(to, "%s: %s vertices", o->path, cli_count(mesh->n_vertices, text));
    fprintf(to, ", %s triangles%s\n", cli_count(mesh->n_triangles, text),
            mesh->n_triangles > 0 ? ""
            : o->what.has_region  ? " (no surface in the region)"
                                  : " (the map has no surface yet)");
    return CLI_OK;
}

int cmd_mesh(struct cli *cli)
{
    struct mesh_options o = {.format = N_FORMATS};
    struct vxc_mesh mesh;
    struct vx_detail detail;
    struct outfile out;
    cli->help = HELP;
    int code = parse(cli, &o);
    if (code < 0)
        code = cli_connect(cli);
    if (code != CLI_OK || !cli->client)
        return code;
    const double start_s = cli_now_s();
    vx_err err = fetch(cli, &o, &mesh, &detail);
    const double seconds = cli_now_s() - start_s;
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, o.map);
    err = outfile_open(&out, o.path, &detail);
    if (err == VX_OK)
        err = outfile_close(&out, write_file(out.file, o.format, &mesh, &detail), &detail);
    code = err == VX_OK ? report(cli, &mesh, &o, seconds, out.report) : cli_error(cli, err, &detail);
    vxc_mesh_fini(&mesh);
    return code;
}
