/* voxelctl explain: why a place is free, occupied or unknown. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>

static const char HELP[] =
    "voxelctl explain - why a place of the map is what it is\n"
    "\n"
    "usage: voxelctl explain NAME X Y Z\n"
    "\n"
    "X Y Z: world coordinates in metres.\n"
    "Says what was seen there and when, the distance to the nearest surface and to the nearest unknown "
    "space; in a map that keeps them, also colour and label.\n"
    "\n"
    "exit codes: 0 done, 1 refused, 2 wrong usage, 3 no daemon, 130 interrupted\n";

struct explain {
    const char *map;
    double at_m[3];
    struct vxc_explanation e;
    struct vxc_map_state state;
    struct vxc_tint tint; /* all 0 unless the map keeps colours or labels */
};

static int parse(struct cli *cli, struct explain *x)
{
    static const char *const names[] = {"X", "Y", "Z"};
    const char *value;
    int n = 0;
    for (int got; (got = cli_next(cli, NULL, 0, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (n == 4)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (n == 0)
            x->map = value;
        else if (!cli_number(cli, names[n - 1], value, -1e9, 1e9, &x->at_m[n - 1]))
            return CLI_USAGE;
        n++;
    }
    return n == 4 ? -1 : cli_usage(cli, "explain needs the name of a map and three coordinates");
}

static const char *state_name(uint32_t state)
{
    return state == VXC_FREE ? "free" : state == VXC_OCCUPIED ? "occupied" : "unknown";
}
static const char *why_name(uint32_t why)
{
    static const char *const names[] = {"outside", "never_seen", "seen_empty", "free_cell", "measured"};
    return why < sizeof names / sizeof *names ? names[why] : "unknown";
}

static int report_json(const struct explain *x)
{
    const struct vxc_explanation *e = &x->e;
    const double gradient[3] = {(double)e->answer.gradient[0], (double)e->answer.gradient[1],
                                (double)e->answer.gradient[2]},
                 voxel[3] = {e->voxel[0], e->voxel[1], e->voxel[2]};
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "map", x->map);
    json_vector(&j, "at_m", x->at_m, 3);
    json_text(&j, "state", state_name(e->answer.state));
    json_text(&j, "why", why_name(e->why));
    json_vector(&j, "voxel", voxel, 3);
    json_number(&j, "distance_m", e->answer.status & VXC_Q_DISTANCE ? (double)e->answer.distance_m : NAN);
    if (e->answer.status & VXC_Q_GRADIENT)
        json_vector(&j, "gradient", gradient, 3);
    json_number(&j, "unknown_distance_m", (double)e->unknown_distance_m);
    json_number(&j, "value", (double)e->value);
    json_u64(&j, "weight", e->weight);
    json_u64(&j, "changed_epoch", e->changed_epoch);
    if (x->tint.weight) {
        const double colour[3] = {x->tint.colour[0], x->tint.colour[1], x->tint.colour[2]};
        json_vector(&j, "colour", colour, 3);
    }
    if (x->tint.label)
        json_u64(&j, "label", x->tint.label);
    json_state(&j, &x->state);
    json_end(&j, '}');
    return json_finish(&j);
}

static void report_text(const struct explain *x, bool occupancy)
{
    static const char *const words[] = {"it lies outside the map's coordinates",
                                        "no sensor ever saw this voxel", "a sensor saw through this voxel",
                                        "sensors saw through all of the 8 x 8 x 8 voxels around it",
                                        "it was measured"};
    const struct vxc_explanation *e = &x->e;
    printf("%s: %s\n", state_name(e->answer.state), e->why < 5 ? words[e->why] : "");
    if (e->why == VXC_WHY_OUTSIDE)
        return;
    printf("  voxel              %" PRId32 ", %" PRId32 ", %" PRId32 "\n", e->voxel[0], e->voxel[1],
           e->voxel[2]);
    if (e->why == VXC_WHY_MEASURED && occupancy)
        printf("  log-odds           %+.3f\n", (double)e->value);
    else if (e->why == VXC_WHY_MEASURED)
        printf("  measured distance  %+.4f m, weight %" PRIu32 "\n", (double)e->value, e->weight);
    if (e->answer.status & VXC_Q_DISTANCE)
        printf("  nearest surface    %.4f m\n", (double)e->answer.distance_m);
    else
        printf("  nearest surface    farther than %g m\n", x->state.max_distance_m);
    if (isnan(e->unknown_distance_m))
        printf("  nearest unknown    farther than %g m\n", x->state.max_distance_m);
    else
        printf("  nearest unknown    %.4f m\n", (double)e->unknown_distance_m);
    if (x->tint.weight)
        printf("  colour             %u %u %u\n", x->tint.colour[0], x->tint.colour[1], x->tint.colour[2]);
    if (x->tint.label)
        printf("  label              %u, confidence %u of 255\n", x->tint.label, x->tint.trust);
    if (e->changed_epoch)
        printf("  last change here   epoch %" PRIu32 " of %" PRIu64 "\n", e->changed_epoch, x->state.epoch);
}

int cmd_explain(struct cli *cli)
{
    const float zero[3] = {0, 0, 0};
    struct explain x = {0};
    struct vxc_map_info info;
    struct vx_detail detail;
    cli->help = HELP;
    int code = parse(cli, &x);
    if (code >= 0)
        return code;
    code = cli_connect(cli);
    if (code != CLI_OK)
        return code;
    vx_err err = vxc_map_get_info(cli->client, x.map, &info, &detail);
    if (err == VX_OK) /* the place itself is the origin: no digit is lost */
        err = vxc_explain(cli->client, x.map, info.state.epoch, x.at_m, zero, 1, &x.e, &x.state, &detail);
    if (err == VX_OK && (info.params.colour || info.params.label))
        err = vxc_query_tints(cli->client, x.map, x.state.epoch, x.at_m, zero, 1, &x.tint, NULL, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, x.map);
    if (cli->json)
        return report_json(&x);
    report_text(&x, info.params.mode == VXC_OCCUPANCY);
    return CLI_OK;
}
