/* voxelctl map create|list|info|digest|clear|delete */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "voxelctl map - make, list, describe and remove maps\n"
    "\n"
    "usage: voxelctl map create NAME --voxel-size M [options]\n"
    "       voxelctl map list\n"
    "       voxelctl map info|digest|clear|delete NAME\n"
    "\n"
    "NAME is 1 to 64 of A-Z a-z 0-9 . _ -\n"
    "\n"
    "options of create\n"
    "  --voxel-size M            edge of a voxel in metres; must be given\n"
    "  --mode tsdf|occupancy     what voxels hold; default tsdf\n"
    "  --truncation-voxels N     half width of the band around surfaces; default 3\n"
    "  --esdf-max-distance M     distances saturate here; default 10 voxels, at most 63\n"
    "  --origin X,Y,Z            world position of voxel (0,0,0)'s lower corner; put it near the data when\n"
    "                            coordinates are large (UTM); default 0,0,0\n"
    "  --frame-budget BYTES      memory that one frame may add; default an eighth of the device's cap\n"
    "  --limit BYTES             memory that the map may hold; default the device's cap\n"
    "\n"
    "info prints voxels, bytes per voxel, bounds (of chunks, and of the leaves with voxels), epoch, newest "
    "stamp.\n"
    "digest is a SHA-256 of the content: two maps with the same digest hold the same voxels, on any "
    "machine.\n"
    "clear makes everything unknown; delete removes the map.  There is no question and no way back.\n"
    "\n"
    "exit codes: 0 done, 1 refused, 2 wrong usage, 3 no daemon\n";

/* ------------------------------------------------------------------ printing */

static const char *mode_name(enum vxc_map_mode mode)
{
    return mode == VXC_OCCUPANCY ? "occupancy" : "tsdf";
}

static void print_box(const char *name, const double lo[3], const double hi[3])
{
    printf("%-18s (%.3f, %.3f, %.3f) .. (%.3f, %.3f, %.3f) m\n", name, lo[0], lo[1], lo[2], hi[0], hi[1],
           hi[2]);
}

static void print_info(const struct vxc_map_info *info)
{
    char text[CLI_TEXT_MAX], uuid[33];
    const struct vxc_map_params *p = &info->params;
    printf("%-18s %s\n", "map", info->state.name);
    printf("%-18s %s\n", "uuid", cli_hex(info->state.uuid, sizeof info->state.uuid, uuid));
    printf("%-18s %g m, %s", "voxels of", p->voxel_size_m, mode_name(p->mode));
    printf(p->mode == VXC_TSDF ? ", truncation %g voxels\n" : "\n", p->truncation_voxels);
    printf("%-18s (%.3f, %.3f, %.3f) m\n", "origin", p->origin_m[0], p->origin_m[1], p->origin_m[2]);
    printf("%-18s up to %g m (%u voxels)\n", "distances", info->state.max_distance_m,
           info->esdf_radius_voxels);
    printf("%-18s %" PRIu64 ", newest stamp %.3f s\n", "epoch", info->state.epoch,
           (double)info->state.newest_stamp_ns * 1e-9);
    printf("%-18s %s", "frames", cli_count(info->n_frames, text));
    printf(", refused %s\n", cli_count(info->n_refused, text));
    printf("%-18s %s", "voxels", cli_count(info->n_voxels, text));
    printf(" in %s leaves", cli_count(info->n_leaves, text));
    printf(", %s chunks", cli_count(info->n_chunks, text));
    printf(", %s free tiles\n", cli_count(info->n_tiles, text));
    printf("%-18s %s, %.2f bytes a voxel\n", "memory", cli_bytes(info->used_bytes, text),
           info->bytes_per_voxel);
    if (info->has_bounds) {
        print_box("chunks", info->bounds_min_m, info->bounds_max_m);
        print_box("leaves with voxels", info->active_min_m, info->active_max_m);
    } else {
        printf("%-18s nothing: the map is empty\n", "bounds");
    }
}

static int json_info(const struct vxc_map_info *info)
{
    struct json j = {stdout, false};
    const struct vxc_map_params *p = &info->params;
    json_begin(&j, NULL, '{');
    json_text(&j, "map", info->state.name);
    json_state(&j, &info->state);
    json_text(&j, "mode", mode_name(p->mode));
    json_number(&j, "voxel_size_m", p->voxel_size_m);
    json_vector(&j, "origin_m", p->origin_m, 3);
    json_number(&j, "truncation_voxels", p->truncation_voxels);
    json_number(&j, "esdf_max_distance_m", p->esdf_max_distance_m);
    json_u64(&j, "esdf_radius_voxels", info->esdf_radius_voxels);
    json_u64(&j, "frame_budget_bytes", p->frame_budget_bytes);
    json_u64(&j, "limit_bytes", p->limit_bytes);
    json_u64(&j, "frames", info->n_frames);
    json_u64(&j, "refused", info->n_refused);
    json_u64(&j, "voxels", info->n_voxels);
    json_u64(&j, "leaves", info->n_leaves);
    json_u64(&j, "tiles", info->n_tiles);
    json_u64(&j, "chunks", info->n_chunks);
    json_u64(&j, "used_bytes", info->used_bytes);
    json_number(&j, "bytes_per_voxel", info->bytes_per_voxel);
    if (info->has_bounds) {
        json_vector(&j, "bounds_min_m", info->bounds_min_m, 3);
        json_vector(&j, "bounds_max_m", info->bounds_max_m, 3);
        json_vector(&j, "active_min_m", info->active_min_m, 3);
        json_vector(&j, "active_max_m", info->active_max_m, 3);
    }
    json_end(&j, '}');
    return json_finish(&j);
}

/* ------------------------------------------------------------------ verbs */

enum { VOXEL_SIZE, MODE, TRUNCATION, ESDF, ORIGIN, BUDGET, LIMIT, N_CREATE };

static const struct cli_option CREATE[N_CREATE] = {
    [VOXEL_SIZE] = {"voxel-size", 0, true},
    [MODE] = {"mode", 0, true},
    [TRUNCATION] = {"truncation-voxels", 0, true},
    [ESDF] = {"esdf-max-distance", 0, true},
    [ORIGIN] = {"origin", 0, true},
    [BUDGET] = {"frame-budget", 0, true},
    [LIMIT] = {"limit", 0, true},
};

static bool take_create(struct cli *cli, int option, const char *value, struct vxc_map_params *p)
{
    switch (option) {
    case VOXEL_SIZE:
        return cli_number(cli, "--voxel-size", value, 1e-4, 100, &p->voxel_size_m);
    case TRUNCATION:
        return cli_number(cli, "--truncation-voxels", value, 1, 16, &p->truncation_voxels);
    case ESDF:
        return cli_number(cli, "--esdf-max-distance", value, 1e-4, 6300, &p->esdf_max_distance_m);
    case ORIGIN:
        return cli_numbers(cli, "--origin", value, p->origin_m, 3);
    case BUDGET:
        return cli_whole(cli, "--frame-budget", value, 1, UINT64_MAX, &p->frame_budget_bytes);
    case LIMIT:
        return cli_whole(cli, "--limit", value, 1, UINT64_MAX, &p->limit_bytes);
    default:
        p->mode = strcmp(value, "occupancy") == 0 ? VXC_OCCUPANCY : VXC_TSDF;
        if (p->mode == VXC_TSDF && strcmp(value, "tsdf") != 0)
            return cli_usage(cli, "--mode is tsdf or occupancy, not '%s'", value), false;
        return true;
    }
}

static int create(struct cli *cli, const char *name, const struct vxc_map_params *params)
{
    struct vxc_map_info info;
    struct vx_detail detail;
    const vx_err err = vxc_map_create(cli->client, name, params, &info, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    if (cli->json)
        return json_info(&info);
    printf("map %s: voxels of %g m, %s, distances up to %g m\n", info.state.name, info.params.voxel_size_m,
           mode_name(info.params.mode), info.state.max_distance_m);
    return CLI_OK;
}

static int list(struct cli *cli)
{
    struct vxc_map_state *maps;
    struct vx_detail detail;
    size_t n;
    const vx_err err = vxc_map_list(cli->client, &maps, &n, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    int code = CLI_OK;
    if (cli->json) {
        struct json j = {stdout, false};
        json_begin(&j, NULL, '{');
        json_begin(&j, "maps", '[');
        for (size_t i = 0; i < n; i++) {
            json_begin(&j, NULL, '{');
            json_text(&j, "map", maps[i].name);
            json_state(&j, &maps[i]);
            json_end(&j, '}');
        }
        json_end(&j, ']');
        json_end(&j, '}');
        code = json_finish(&j);
    } else if (n == 0) {
        puts("no maps");
    } else {
        printf("%-32s %12s %16s\n", "map", "epoch", "newest stamp, s");
        for (size_t i = 0; i < n; i++)
            printf("%-32s %12" PRIu64 " %16.3f\n", maps[i].name, maps[i].epoch,
                   (double)maps[i].newest_stamp_ns * 1e-9);
    }
    free(maps);
    return code;
}

static int info(struct cli *cli, const char *name)
{
    struct vxc_map_info info;
    struct vx_detail detail;
    const vx_err err = vxc_map_get_info(cli->client, name, &info, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, name);
    if (cli->json)
        return json_info(&info);
    print_info(&info);
    return CLI_OK;
}

static int digest(struct cli *cli, const char *name)
{
    uint8_t digest[32];
    char hex[65];
    struct vxc_map_state state;
    struct vx_detail detail;
    const vx_err err = vxc_map_digest(cli->client, name, digest, &state, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, name);
    cli_hex(digest, sizeof digest, hex);
    if (!cli->json) {
        puts(hex);
        return CLI_OK;
    }
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "digest", hex);
    json_text(&j, "map", name);
    json_u64(&j, "epoch", state.epoch);
    json_end(&j, '}');
    return json_finish(&j);
}

/* clear or delete. */
static int change(struct cli *cli, const char *name, bool clear)
{
    struct vxc_map_state state = {.epoch = 0};
    struct vx_detail detail;
    const vx_err err = clear ? vxc_map_clear(cli->client, name, &state, &detail)
                             : vxc_map_delete(cli->client, name, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, name);
    if (cli->json) {
        struct json j = {stdout, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", name);
        json_text(&j, "done", clear ? "clear" : "delete");
        if (clear)
            json_u64(&j, "epoch", state.epoch);
        json_end(&j, '}');
        return json_finish(&j);
    }
    printf("map %s %s\n", name, clear ? "is empty" : "is gone");
    return CLI_OK;
}

/* The verb's words and options; returns an exit code, or -1 to go on. */
static int parse(struct cli *cli, const char **verb, const char **name, struct vxc_map_params *params)
{
    static const char *const verbs[] = {"create", "list", "info", "digest", "clear", "delete", NULL};
    const char *value;
    bool given = false;
    for (int got; (got = cli_next(cli, CREATE, N_CREATE, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && !*verb)
            *verb = value;
        else if (got == CLI_WORD && !*name)
            *name = value;
        else if (got == CLI_WORD)
            return cli_usage(cli, "'%s' is one word too many", value);
        else if (!take_create(cli, got, value, params))
            return CLI_USAGE;
        else
            given = true;
    }
    if (!*verb)
        return cli_usage(cli, "map needs a verb: create, list, info, digest, clear or delete");
    bool known = false;
    for (const char *const *v = verbs; *v; v++)
        known = known || strcmp(*verb, *v) == 0;
    if (!known)
        return cli_usage(cli, "map has no verb '%s': create, list, info, digest, clear or delete", *verb);
    const bool is_list = strcmp(*verb, "list") == 0, is_create = strcmp(*verb, "create") == 0;
    if (is_list ? *name != NULL : *name == NULL)
        return cli_usage(cli, is_list ? "map list takes no name" : "map %s needs the name of a map", *verb);
    if (given && !is_create)
        return cli_usage(cli, "map %s takes no such option", *verb);
    if (is_create && params->voxel_size_m == 0)
        return cli_usage(cli, "map create needs --voxel-size M, for example 0.05 for a room");
    return -1;
}

int cmd_map(struct cli *cli)
{
    const char *verb = NULL, *name = NULL;
    struct vxc_map_params params = {0};
    cli->help = HELP;
    int code = parse(cli, &verb, &name, &params);
    if (code < 0)
        code = cli_connect(cli);
    if (code != CLI_OK || !cli->client)
        return code;
    if (strcmp(verb, "create") == 0)
        return create(cli, name, &params);
    if (strcmp(verb, "list") == 0)
        return list(cli);
    if (strcmp(verb, "info") == 0)
        return info(cli, name);
    if (strcmp(verb, "digest") == 0)
        return digest(cli, name);
    return change(cli, name, strcmp(verb, "clear") == 0);
}
