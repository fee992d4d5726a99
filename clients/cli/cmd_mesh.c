/* voxelctl mesh */
#include "cli.h"
#include "outfile.h"
#include "ply.h"

#include <string.h>

static const char HELP[] =
    "voxelctl mesh - the surface of a map as triangles\n"
    "\n"
    "usage: voxelctl mesh NAME -o FILE.ply [--min-weight N]\n"
    "\n"
    "options\n"
    "  -o, --output FILE   binary little-endian PLY with normals, and with colours and labels\n"
    "                      where the map has them; - = stdout\n"
    "  --min-weight N      a voxel needs this much evidence, 1 .. 255; default 1\n"
    "\n"
    "Positions are floats, or doubles when the map lies more than 128 m from the origin.\n"
    "The file appears whole or not at all.\n"
    "\n"
    "exit codes: 0 done, 1 refused or the file cannot be written, 2 wrong usage, 3 no daemon, 130 "
    "interrupted\n";

enum { OUTPUT, MIN_WEIGHT, N_OPTIONS };

static const struct cli_option OPTIONS[N_OPTIONS] = {
    [OUTPUT] = {"output", 'o', true}, [MIN_WEIGHT] = {"min-weight", 0, true}};

static int parse(struct cli *cli, const char **map, const char **path, uint64_t *min_weight)
{
    const char *value;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && *map)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (got == CLI_WORD)
            *map = value;
        else if (got == OUTPUT)
            *path = value;
        else if (!cli_whole(cli, "--min-weight", value, 1, 255, min_weight))
            return CLI_USAGE;
    }
    if (!*map || !*path)
        return cli_usage(cli, "mesh needs the name of a map and -o FILE.ply");
    if (cli->json && strcmp(*path, "-") == 0)
        return cli_usage(cli, "-o - and --json both want stdout");
    return -1;
}

static int report(struct cli *cli, const struct vxc_mesh *mesh, const char *path, double seconds, FILE *to)
{
    if (cli->json) {
        struct json j = {to, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", mesh->state.name);
        json_text(&j, "file", path);
        json_u64(&j, "vertices", mesh->n_vertices);
        json_u64(&j, "triangles", mesh->n_triangles);
        json_state(&j, &mesh->state);
        json_number(&j, "latency_ms", seconds * 1e3);
        json_end(&j, '}');
        return json_finish(&j);
    }
    char text[CLI_TEXT_MAX];
    fprintf(to, "%s: %s vertices", path, cli_count(mesh->n_vertices, text));
    fprintf(to, ", %s triangles%s\n", cli_count(mesh->n_triangles, text),
            mesh->n_triangles == 0 ? " (the map has no surface yet)" : "");
    return CLI_OK;
}

int cmd_mesh(struct cli *cli)
{
    const char *map = NULL, *path = NULL;
    uint64_t min_weight = 0;
    struct vxc_mesh mesh;
    struct vx_detail detail;
    struct outfile out;
    cli->help = HELP;
    int code = parse(cli, &map, &path, &min_weight);
    if (code < 0)
        code = cli_connect(cli);
    if (code != CLI_OK || !cli->client)
        return code;
    const double start_s = cli_now_s();
    vx_err err = vxc_mesh_get(cli->client, map, 0, (uint32_t)min_weight, &mesh, &detail);
    const double seconds = cli_now_s() - start_s;
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, map);
    err = outfile_open(&out, path, &detail);
    if (err == VX_OK)
        err = outfile_close(&out, ply_write(out.file, &mesh, &detail), &detail);
    code = err == VX_OK ? report(cli, &mesh, path, seconds, out.report) : cli_error(cli, err, &detail);
    vxc_mesh_fini(&mesh);
    return code;
}
