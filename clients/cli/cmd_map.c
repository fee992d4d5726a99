/* voxelctl map create|list|info|digest|clear|delete|export|import|protect|unprotect */
#include "map_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "voxelctl map - make, list, describe and remove maps\n"
    "\n"
    "usage: voxelctl map create NAME --voxel-size M [options]\n"
    "       voxelctl map list\n"
    "       voxelctl map info|digest|clear|delete NAME\n"
    "       voxelctl map export NAME --format nvdb|nvdb-float -o FILE [--layer tsdf|occupancy]\n"
    "       voxelctl map import NAME FILE [options]\n"
    "       voxelctl map protect NAME --box X0,Y0,Z0,X1,Y1,Z1 | --ball X,Y,Z,R\n"
    "       voxelctl map unprotect NAME --region ID\n"
    "\n"
    "NAME is 1 to 64 of A-Z a-z 0-9 . _ -\n"
    "\n"
    "options of create\n"
    "  --voxel-size M            edge of a voxel in metres; must be given\n"
    "  --mode tsdf|occupancy     what voxels hold; default tsdf\n"
    "  --weighting W             what a depth image's reading weighs: inverse_square (16 up to 1 m, falling "
    "with\n"
    "                            the square of the depth to 1 at 4 m) or constant (1: weights count "
    "frames);\n"
    "                            a LiDAR's ray weighs 1 in both; occupancy maps ignore it.  Default: the\n"
    "                            daemon's, inverse_square\n"
    "  --truncation-voxels N     half width of the band around surfaces; default 3\n"
    "  --esdf-max-distance M     distances saturate here; default 10 voxels, at most 63\n"
    "  --origin X,Y,Z            world position of voxel (0,0,0)'s lower corner; put it near the data when\n"
    "                            coordinates are large (UTM); default 0,0,0\n"
    "  --frame-budget BYTES      memory that one frame may add; default an eighth of the device's cap\n"
    "  --limit BYTES             memory that the map may hold; default the device's cap\n"
    "  --half-life S             evidence halves in S seconds of sensor time; what has none left is "
    "unknown.\n"
    "                            Free space lasts five half-lives after it was last seen.  Default: it "
    "stays\n"
    "  --spare-seen              what a frame sees does not decay by the time since the frame before it\n"
    "  --forget-radius M         what is farther than M metres from the sensor is forgotten; default: "
    "nothing\n"
    "  --sweep-words N           blocks of 32^3 voxels a frame looks through for both, about; default 4096\n"
    "  --colour                  voxels keep a colour from frames that bring one; 4 bytes each\n"
    "  --label                   voxels keep a label (one byte and its confidence); 2 bytes each\n"
    "\n"
    "options of export\n"
    "  --format nvdb             OnIndex grid, values and weights as blind data; nothing is lost, and\n"
    "                            import makes the same map of it, digest included\n"
    "  --format nvdb-float       dense grid of floats for older tools: distances in metres (class level "
    "set)\n"
    "                            or log-odds (class fog volume).  Weights and known free space are lost:\n"
    "                            voxels that are unknown or free are inactive and hold the background\n"
    "  -o, --output FILE         appears whole or not at all; - is stdout\n"
    "  --layer tsdf|occupancy    refuse a map that holds the other one; default what it holds\n"
    "\n"
    "options of import (NanoVDB 32.x, not compressed, types OnIndex and Float; FILE - is stdin, if that is a "
    "file)\n"
    "  --grid NAME               which grid of the file; needed when there are several\n"
    "  --channel NAME            which blind data holds the values; needed when there are several\n"
    "  --mode tsdf|occupancy     what the values are: distances in metres, or log-odds; default as the file\n"
    "                            says, else tsdf\n"
    "  --weight W                weight of voxels that come without one, 0 .. 255; default 1\n"
    "  --truncation-voxels N     distances are clamped to it; default as the file says, else 3\n"
    "  --weighting W             of frames to come; default as the file says, else the daemon's\n"
    "  --esdf-max-distance, --frame-budget, --limit, --half-life, --spare-seen, --forget-radius, "
    "--sweep-words, --colour, --label\n"
    "                            as of create; what was imported neither decays nor is forgotten\n"
    "\n"
    "protect makes a box or a ball (metres, world) immune to decay and forgetting; frames change it as "
    "ever.\n"
    "info lists the regions with their numbers.\n"
    "\n"
    "import creates the map NAME, or leaves none.  Voxel size and origin come from the file; grids that are\n"
    "turned, sheared or stretched are refused.  A grid without values gives voxels of value 0 and weight 0.\n"
    "Inactive voxels become unknown, never free.\n"
    "\n"
    "info prints voxels, bytes per voxel, bounds (of chunks, and of the leaves with voxels), epoch, newest "
    "stamp.\n"
    "digest is a SHA-256 of the content: two maps with the same digest hold the same voxels, on any "
    "machine.\n"
    "clear makes everything unknown; delete removes the map.  There is no question and no way back.\n"
    "\n"
    "exit codes: 0 done, 1 refused, 2 wrong usage, 3 no daemon\n";

/* ------------------------------------------------------------------ printing */

const char *map_mode_name(enum vxc_map_mode mode)
{
    return mode == VXC_OCCUPANCY ? "occupancy" : "tsdf";
}

static const char *weighting_name(enum vxc_weighting weighting)
{
    return weighting == VXC_WEIGHT_CONSTANT         ? "constant"
           : weighting == VXC_WEIGHT_INVERSE_SQUARE ? "inverse_square"
                                                    : "unknown";
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
    printf("%-18s %g m, %s", "voxels of", p->voxel_size_m, map_mode_name(p->mode));
    if (p->mode == VXC_TSDF)
        printf(", truncation %g voxels, weighting %s", p->truncation_voxels, weighting_name(p->weighting));
    putchar('\n');
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
    map_print_upkeep(info);
    if (info->has_bounds) {
        print_box("chunks", info->bounds_min_m, info->bounds_max_m);
        print_box("leaves with voxels", info->active_min_m, info->active_max_m);
    } else {
        printf("%-18s nothing: the map is empty\n", "bounds");
    }
}

int map_json_info(const struct vxc_map_info *info)
{
    struct json j = {stdout, false};
    const struct vxc_map_params *p = &info->params;
    json_begin(&j, NULL, '{');
    json_text(&j, "map", info->state.name);
    json_state(&j, &info->state);
    json_text(&j, "mode", map_mode_name(p->mode));
    json_number(&j, "voxel_size_m", p->voxel_size_m);
    json_vector(&j, "origin_m", p->origin_m, 3);
    json_number(&j, "truncation_voxels", p->truncation_voxels);
    json_text(&j, "weighting", weighting_name(p->weighting));
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
    map_json_upkeep(&j, info);
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

enum verb { CREATE, LIST, INFO, DIGEST, CLEAR, DELETE, EXPORT, IMPORT, PROTECT, UNPROTECT, N_VERBS };
static const char *const VERBS[N_VERBS] = {"create", "list",   "info",   "digest",  "clear",
                                           "delete", "export", "import", "protect", "unprotect"};

enum {
    VOXEL_SIZE,
    MODE,
    TRUNCATION,
    ESDF,
    ORIGIN,
    BUDGET,
    LIMIT,
    FORMAT,
    OUTPUT,
    LAYER,
    GRID,
    CHANNEL,
    WEIGHT,
    HALF_LIFE,
    SPARE,
    FORGET,
    SWEEP,
    COLOUR,
    LABEL,
    BOX,
    BALL,
    REGION,
    WEIGHTING,
    N_OPTIONS
};

static const struct cli_option OPTIONS[N_OPTIONS] = {
    [VOXEL_SIZE] = {"voxel-size", 0, true},
    [MODE] = {"mode", 0, true},
    [TRUNCATION] = {"truncation-voxels", 0, true},
    [ESDF] = {"esdf-max-distance", 0, true},
    [ORIGIN] = {"origin", 0, true},
    [BUDGET] = {"frame-budget", 0, true},
    [LIMIT] = {"limit", 0, true},
    [FORMAT] = {"format", 0, true},
    [OUTPUT] = {"output", 'o', true},
    [LAYER] = {"layer", 0, true},
    [GRID] = {"grid", 0, true},
    [CHANNEL] = {"channel", 0, true},
    [WEIGHT] = {"weight", 0, true},
    [HALF_LIFE] = {"half-life", 0, true},
    [SPARE] = {"spare-seen", 0, false},
    [FORGET] = {"forget-radius", 0, true},
    [SWEEP] = {"sweep-words", 0, true},
    [COLOUR] = {"colour", 0, false},
    [LABEL] = {"label", 0, false},
    [BOX] = {"box", 0, true},
    [BALL] = {"ball", 0, true},
    [REGION] = {"region", 0, true},
    [WEIGHTING] = {"weighting", 0, true},
};

enum { UPKEEP = 1u << HALF_LIFE | 1u << SPARE | 1u << FORGET | 1u << SWEEP | 1u << COLOUR | 1u << LABEL };
/* Which options a verb takes. */
static const uint32_t TAKES[N_VERBS] = {
    [CREATE] = 1u << VOXEL_SIZE | 1u << MODE | 1u << TRUNCATION | 1u << ESDF | 1u << ORIGIN | 1u << BUDGET |
               1u << LIMIT | 1u << WEIGHTING | UPKEEP,
    [EXPORT] = 1u << FORMAT | 1u << OUTPUT | 1u << LAYER,
    [IMPORT] = 1u << MODE | 1u << TRUNCATION | 1u << ESDF | 1u << BUDGET | 1u << LIMIT | 1u << GRID |
               1u << CHANNEL | 1u << WEIGHT | 1u << WEIGHTING | UPKEEP,
    [PROTECT] = 1u << BOX | 1u << BALL,
    [UNPROTECT] = 1u << REGION,
};

/* tsdf or occupancy. */
static bool take_mode(struct cli *cli, const char *option, const char *value, bool *occupancy)
{
    *occupancy = strcmp(value, "occupancy") == 0;
    if (!*occupancy && strcmp(value, "tsdf") != 0)
        return cli_usage(cli, "%s is tsdf or occupancy, not '%s'", option, value), false;
    return true;
}

static bool take_weighting(struct cli *cli, const char *value, enum vxc_weighting *out)
{
    *out = strcmp(value, "constant") == 0 ? VXC_WEIGHT_CONSTANT : VXC_WEIGHT_INVERSE_SQUARE;
    if (*out == VXC_WEIGHT_INVERSE_SQUARE && strcmp(value, "inverse_square") != 0)
        return cli_usage(cli, "--weighting is inverse_square or constant, not '%s'", value), false;
    return true;
}

/* Decay, forgetting, protected regions. */
static bool take_upkeep(struct cli *cli, int option, const char *value, struct map_args *a)
{
    struct vxc_map_params *p = &a->params;
    struct vxc_region *r = &a->region;
    double n[6];
    uint64_t words;
    switch (option) {
    case HALF_LIFE:
        return cli_number(cli, "--half-life", value, 0.01, 1e5, &p->half_life_s);
    case SPARE:
        p->decay_spares_seen = true;
        return true;
    case COLOUR:
        p->colour = true;
        return true;
    case LABEL:
        p->label = true;
        return true;
    case FORGET:
        return cli_number(cli, "--forget-radius", value, 1e-4, 1e6, &p->forget_radius_m);
    case SWEEP:
        if (!cli_whole(cli, "--sweep-words", value, 1, UINT32_MAX, &words))
            return false;
        p->sweep_words = (uint32_t)words;
        return true;
    case REGION:
        return cli_whole(cli, "--region", value, 1, UINT32_MAX, &a->region_id);
    case BOX:
        if (!cli_numbers(cli, "--box", value, n, 6))
            return false;
        memcpy(r->min_m, n, sizeof r->min_m);
        memcpy(r->max_m, n + 3, sizeof r->max_m);
        return true;
    default:
        if (!cli_numbers(cli, "--ball", value, n, 4))
            return false;
        r->ball = true;
        memcpy(r->centre_m, n, sizeof r->centre_m);
        r->radius_m = n[3];
        return true;
    }
}

static bool take_option(struct cli *cli, int option, const char *value, struct map_args *a)
{
    struct vxc_map_params *p = &a->params;
    bool occupancy;
    switch (option) {
    case VOXEL_SIZE:
        return cli_number(cli, "--voxel-size", value, 1e-4, 100, &p->voxel_size_m);
    case TRUNCATION:
        return cli_number(cli, "--truncation-voxels", value, 1, 16, &p->truncation_voxels);
    case WEIGHTING:
        return take_weighting(cli, value, &p->weighting);
    case ESDF:
        return cli_number(cli, "--esdf-max-distance", value, 1e-4, 6300, &p->esdf_max_distance_m);
    case ORIGIN:
        return cli_numbers(cli, "--origin", value, p->origin_m, 3);
    case BUDGET:
        return cli_whole(cli, "--frame-budget", value, 1, UINT64_MAX, &p->frame_budget_bytes);
    case LIMIT:
        return cli_whole(cli, "--limit", value, 1, UINT64_MAX, &p->limit_bytes);
    case HALF_LIFE:
    case SPARE:
    case FORGET:
    case SWEEP:
    case COLOUR:
    case LABEL:
    case BOX:
    case BALL:
    case REGION:
        return take_upkeep(cli, option, value, a);
    case FORMAT:
        a->format = strcmp(value, "nvdb-float") == 0 ? VXC_FILE_NVDB_FLOAT : VXC_FILE_NVDB;
        if (a->format == VXC_FILE_NVDB && strcmp(value, "nvdb") != 0)
            return cli_usage(cli, "--format is nvdb or nvdb-float, not '%s'", value), false;
        return true;
    case OUTPUT:
        a->file = value;
        return true;
    case LAYER:
        if (!take_mode(cli, "--layer", value, &occupancy))
            return false;
        a->layer = occupancy ? VXC_LAYER_OCCUPANCY : VXC_LAYER_TSDF;
        return true;
    case GRID:
        a->grid = value;
        return true;
    case CHANNEL:
        a->channel = value;
        return true;
    case WEIGHT:
        a->has_weight = true;
        return cli_number(cli, "--weight", value, 0, 255, &a->weight);
    default:
        if (!take_mode(cli, "--mode", value, &occupancy))
            return false;
        p->mode = occupancy ? VXC_OCCUPANCY : VXC_TSDF;
        a->has_mode = true;
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
        return map_json_info(&info);
    printf("map %s: voxels of %g m, %s, distances up to %g m\n", info.state.name, info.params.voxel_size_m,
           map_mode_name(info.params.mode), info.state.max_distance_m);
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
        return map_json_info(&info);
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

/* What a verb needs besides its name; returns an exit code, or -1 to go on. */
static int check_args(struct cli *cli, enum verb verb, const struct map_args *a, uint32_t given)
{
    if (verb == LIST ? a->name != NULL : a->name == NULL)
        return cli_usage(cli, verb == LIST ? "map list takes no name" : "map %s needs the name of a map",
                         VERBS[verb]);
    for (int i = 0; i < N_OPTIONS; i++)
        if (given >> i & 1 && !(TAKES[verb] >> i & 1))
            return cli_usage(cli, "map %s takes no option --%s", VERBS[verb], OPTIONS[i].name);
    if (verb == CREATE && a->params.voxel_size_m == 0)
        return cli_usage(cli, "map create needs --voxel-size M, for example 0.05 for a room");
    if (verb == EXPORT && !(given >> FORMAT & 1))
        return cli_usage(cli, "map export needs --format nvdb or --format nvdb-float");
    if (verb == EXPORT && !a->file)
        return cli_usage(cli, "map export needs -o FILE");
    if (verb == EXPORT && cli->json && strcmp(a->file, "-") == 0)
        return cli_usage(cli, "-o - and --json both want stdout");
    if (verb == PROTECT && !(given >> BOX & 1) == !(given >> BALL & 1))
        return cli_usage(cli, "map protect needs --box X0,Y0,Z0,X1,Y1,Z1 or --ball X,Y,Z,R");
    if (verb == UNPROTECT && !a->region_id)
        return cli_usage(cli, "map unprotect needs --region ID; map info lists them");
    if (verb == IMPORT && !a->file)
        return cli_usage(cli, "map import needs a file: map import NAME FILE");
    return -1;
}

/* The verb's words and options; returns an exit code, or -1 to go on. */
static int parse(struct cli *cli, enum verb *verb, struct map_args *a)
{
    static const char CHOICE[] =
        "create, list, info, digest, clear, delete, export, import, protect or unprotect";
    const char *value, *word = NULL;
    uint32_t given = 0;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && !word)
            word = value;
        else if (got == CLI_WORD && !a->name)
            a->name = value;
        else if (got == CLI_WORD && strcmp(word, VERBS[IMPORT]) == 0 && !a->file)
            a->file = value;
        else if (got == CLI_WORD)
            return cli_usage(cli, "'%s' is one word too many", value);
        else if (!take_option(cli, got, value, a))
            return CLI_USAGE;
        else
            given |= 1u << got;
    }
    if (!word)
        return cli_usage(cli, "map needs a verb: %s", CHOICE);
    int found = 0;
    while (found < N_VERBS && strcmp(word, VERBS[found]) != 0)
        found++;
    if (found == N_VERBS)
        return cli_usage(cli, "map has no verb '%s': %s", word, CHOICE);
    *verb = (enum verb)found;
    return check_args(cli, *verb, a, given);
}

int cmd_map(struct cli *cli)
{
    enum verb verb = LIST;
    struct map_args a = {.weight = 1};
    cli->help = HELP;
    int code = parse(cli, &verb, &a);
    if (code < 0)
        code = cli_connect(cli);
    if (code != CLI_OK || !cli->client)
        return code;
    switch (verb) {
    case CREATE:
        return create(cli, a.name, &a.params);
    case LIST:
        return list(cli);
    case INFO:
        return info(cli, a.name);
    case DIGEST:
        return digest(cli, a.name);
    case EXPORT:
        return map_export(cli, &a);
    case IMPORT:
        return map_import(cli, &a);
    case PROTECT:
        return map_protect(cli, &a);
    case UNPROTECT:
        return map_unprotect(cli, &a);
    default:
        return change(cli, a.name, verb == CLEAR);
    }
}
