/* voxelctl query points|spheres */
#include "cli.h"
#include "csv.h"
#include "outfile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "voxelctl query - distance, gradient and state at points or of spheres\n"
    "\n"
    "usage: voxelctl query points  NAME [-i IN.csv] [-o OUT.csv] [--status] [--min-epoch N]\n"
    "       voxelctl query spheres NAME ...\n"
    "\n"
    "IN.csv has a header row with x,y,z (spheres: x,y,z,radius) in metres; other columns are ignored.\n"
    "OUT.csv has one row for each, in the same order:\n"
    "  x,y,z,distance_m,gx,gy,gz,state\n"
    "    distance_m   to the nearest surface, positive outside; of a sphere: of its skin; nan: nothing "
    "within reach\n"
    "    gx,gy,gz     unit gradient, away from the surface; 0,0,0 where undefined\n"
    "    state        free, occupied or unknown: the evidence at that place; unknown is never free\n"
    "\n"
    "options\n"
    "  -i, --input FILE    default -, stdin\n"
    "  -o, --output FILE   default -, stdout\n"
    "  --status            more columns at the end: outside (beyond the map's coordinates) and, of spheres, "
    "radius,\n"
    "                      collides (a surface is within the radius) and touches_unknown; 0 or 1\n"
    "  --min-epoch N       answer from this epoch or a newer one; default: the newest\n"
    "\n"
    "With --json a summary is printed, and the rows as `answers` when there is no -o.\n"
    "\n"
    "exit codes: 0 done, 1 refused or a file is bad, 2 wrong usage, 3 no daemon, 130 interrupted\n";

struct query {
    const char *map, *in_path, *out_path;
    bool spheres, status;
    uint64_t min_epoch;
    /* rows */
    double *value; /* [n][3 or 4], as read */
    size_t n, capacity;
    struct vxc_point_answer *answer;
    struct vxc_map_state state;
    double seconds; /* asking */
};

enum { INPUT, OUTPUT, STATUS, MIN_EPOCH, N_OPTIONS };

static const struct cli_option OPTIONS[N_OPTIONS] = {[INPUT] = {"input", 'i', true},
                                                     [OUTPUT] = {"output", 'o', true},
                                                     [STATUS] = {"status", 0, false},
                                                     [MIN_EPOCH] = {"min-epoch", 0, true}};

static int parse(struct cli *cli, struct query *q)
{
    const char *value, *verb = NULL;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && q->map)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (got == CLI_WORD && !verb)
            verb = value;
        else if (got == CLI_WORD)
            q->map = value;
        else if (got == INPUT)
            q->in_path = value;
        else if (got == OUTPUT)
            q->out_path = value;
        else if (got == STATUS)
            q->status = true;
        else if (!cli_whole(cli, "--min-epoch", value, 0, UINT64_MAX, &q->min_epoch))
            return CLI_USAGE;
    }
    if (!verb || !q->map)
        return cli_usage(cli, "query needs points or spheres, and the name of a map");
    q->spheres = strcmp(verb, "spheres") == 0;
    if (!q->spheres && strcmp(verb, "points") != 0)
        return cli_usage(cli, "query asks for points or spheres, not '%s'", verb);
    if (cli->json && q->out_path && strcmp(q->out_path, "-") == 0)
        return cli_usage(cli, "-o - and --json both want stdout");
    return -1;
}

/* ------------------------------------------------------------------ rows in */

static vx_err read_rows(struct query *q, FILE *file, struct vx_detail *detail)
{
    static const char *const fields[] = {"x", "y", "z", "radius"};
    struct csv csv = {.file = file, .name = q->in_path};
    const int n_fields = q->spheres ? 4 : 3;
    VX_TRY_RET(csv_begin(&csv, fields, n_fields, detail));
    for (;;) {
        double row[CSV_MAX_COLUMNS];
        int end;
        VX_TRY_RET(csv_next(&csv, row, &end, detail));
        if (end)
            return VX_OK;
        if (q->n == q->capacity) {
            const size_t capacity = q->capacity ? 2 * q->capacity : 1024;
            double *grown = realloc(q->value, capacity * (size_t)n_fields * sizeof *grown);
            if (!grown)
                return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu rows", capacity);
            q->value = grown;
            q->capacity = capacity;
        }
        memcpy(q->value + q->n++ * (size_t)n_fields, row, (size_t)n_fields * sizeof *row);
    }
}

static vx_err read_input(struct query *q, struct vx_detail *detail)
{
    if (strcmp(q->in_path, "-") == 0) {
        q->in_path = "stdin";
        return read_rows(q, stdin, detail);
    }
    FILE *file = fopen(q->in_path, "rb");
    if (!file)
        return vx_fail(detail, VX_E_NOT_FOUND, "input", "cannot read %s: %s", q->in_path, strerror(errno));
    const vx_err err = read_rows(q, file, detail);
    fclose(file);
    return err;
}

/* ------------------------------------------------------------------ question */

/*
 * Coordinates travel as floats relative to an origin.  Near the world's origin that is 0; else the middle of
 * the map, in whole metres, so that a map at (5e5, 4e6, 100) is asked as finely as one at the origin.
 */
static vx_err choose_origin(struct cli *cli, struct query *q, double origin_m[3], struct vx_detail *detail)
{
    struct vxc_map_info info;
    VX_TRY_RET(vxc_map_get_info(cli->client, q->map, &info, detail));
    if (q->min_epoch < info.state.epoch) /* the map as it is now */
        q->min_epoch = info.state.epoch;
    for (int a = 0; a < 3; a++) {
        const double middle =
            info.has_bounds ? (info.bounds_min_m[a] + info.bounds_max_m[a]) / 2 : info.params.origin_m[a];
        origin_m[a] = fabs(middle) > 1024 ? rint(middle) : 0;
    }
    return VX_OK;
}

static vx_err ask(struct cli *cli, struct query *q, struct vx_detail *detail)
{
    const size_t n_fields = q->spheres ? 4 : 3;
    double origin_m[3];
    VX_TRY_RET(choose_origin(cli, q, origin_m, detail));
    float *item = malloc((q->n * n_fields + 1) * sizeof *item);
    q->answer = malloc((q->n + 1) * sizeof *q->answer);
    vx_err err = item && q->answer ? VX_OK : vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu rows", q->n);
    for (size_t i = 0; err == VX_OK && i < q->n * n_fields; i++)
        item[i] = (float)(i % n_fields < 3 ? q->value[i] - origin_m[i % n_fields] : q->value[i]);
    const double start_s = cli_now_s();
    if (err == VX_OK)
        err = (q->spheres ? vxc_query_spheres : vxc_query_points)(cli->client, q->map, q->min_epoch, origin_m,
                                                                  item, q->n, q->answer, &q->state, detail);
    q->seconds = cli_now_s() - start_s;
    free(item);
    return err;
}

/* ------------------------------------------------------------------ rows out */

static const char *state_name(uint32_t state)
{
    return state == VXC_FREE ? "free" : state == VXC_OCCUPIED ? "occupied" : "unknown";
}

static void write_rows(const struct query *q, FILE *file)
{
    const size_t n_fields = q->spheres ? 4 : 3;
    fputs("x,y,z,distance_m,gx,gy,gz,state", file);
    if (q->status)
        fputs(q->spheres ? ",outside,radius,collides,touches_unknown" : ",outside", file);
    putc('\n', file);
    for (size_t i = 0; i < q->n; i++) {
        const double *row = q->value + i * n_fields;
        const struct vxc_point_answer *a = &q->answer[i];
        fprintf(file, "%.15g,%.15g,%.15g,", row[0], row[1], row[2]);
        if (a->status & VXC_Q_DISTANCE)
            fprintf(file, "%.6f", (double)a->distance_m);
        else
            fputs("nan", file);
        if (a->status & VXC_Q_GRADIENT)
            fprintf(file, ",%.6f,%.6f,%.6f", (double)a->gradient[0], (double)a->gradient[1],
                    (double)a->gradient[2]);
        else
            fputs(",0,0,0", file);
        fprintf(file, ",%s", state_name(a->state));
        if (q->status)
            fprintf(file, ",%d", (a->status & VXC_Q_OUTSIDE) != 0);
        if (q->status && q->spheres)
            fprintf(file, ",%.15g,%d,%d", row[3], (a->status & VXC_Q_COLLIDES) != 0,
                    (a->status & VXC_Q_TOUCHES_UNKNOWN) != 0);
        putc('\n', file);
    }
}

static void json_rows(struct json *j, const struct query *q)
{
    json_begin(j, "answers", '[');
    for (size_t i = 0; i < q->n; i++) {
        const struct vxc_point_answer *a = &q->answer[i];
        const double gradient[3] = {(double)a->gradient[0], (double)a->gradient[1], (double)a->gradient[2]};
        json_begin(j, NULL, '{');
        json_number(j, "distance_m", a->status & VXC_Q_DISTANCE ? (double)a->distance_m : NAN);
        json_vector(j, "gradient", gradient, 3);
        json_text(j, "state", state_name(a->state));
        json_bool(j, "outside", (a->status & VXC_Q_OUTSIDE) != 0);
        if (q->spheres) {
            json_bool(j, "collides", (a->status & VXC_Q_COLLIDES) != 0);
            json_bool(j, "touches_unknown", (a->status & VXC_Q_TOUCHES_UNKNOWN) != 0);
        }
        json_end(j, '}');
    }
    json_end(j, ']');
}

static int report(struct cli *cli, const struct query *q)
{
    uint64_t n_state[3] = {0, 0, 0}, n_collides = 0;
    for (size_t i = 0; i < q->n; i++) {
        n_state[q->answer[i].state <= VXC_OCCUPIED ? q->answer[i].state : VXC_UNKNOWN]++;
        n_collides += (q->answer[i].status & VXC_Q_COLLIDES) != 0;
    }
    if (cli->json) {
        struct json j = {stdout, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", q->map);
        json_u64(&j, "n", q->n);
        json_u64(&j, "free", n_state[VXC_FREE]);
        json_u64(&j, "occupied", n_state[VXC_OCCUPIED]);
        json_u64(&j, "unknown", n_state[VXC_UNKNOWN]);
        if (q->spheres)
            json_u64(&j, "colliding", n_collides);
        json_state(&j, &q->state);
        json_number(&j, "latency_ms", q->seconds * 1e3);
        if (!q->out_path)
            json_rows(&j, q);
        json_end(&j, '}');
        return json_finish(&j);
    }
    if (q->out_path && strcmp(q->out_path, "-") != 0)
        printf("%s: %zu answers (%" PRIu64 " free, %" PRIu64 " occupied, %" PRIu64
               " unknown) from epoch %" PRIu64 ", %.2f ms\n",
               q->out_path, q->n, n_state[VXC_FREE], n_state[VXC_OCCUPIED], n_state[VXC_UNKNOWN],
               q->state.epoch, q->seconds * 1e3);
    return CLI_OK;
}

static int answer(struct cli *cli, struct query *q)
{
    struct vx_detail detail;
    struct outfile out;
    vx_err err = ask(cli, q, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, q->map);
    if (q->out_path || !cli->json) {
        err = outfile_open(&out, q->out_path ? q->out_path : "-", &detail);
        if (err == VX_OK) {
            write_rows(q, out.file);
            err = outfile_close(&out, VX_OK, &detail);
        }
        if (err != VX_OK)
            return cli_error(cli, err, &detail);
    }
    return report(cli, q);
}

int cmd_query(struct cli *cli)
{
    struct query q = {.in_path = "-"};
    struct vx_detail detail;
    cli->help = HELP;
    int code = parse(cli, &q);
    if (code >= 0)
        return code;
    const vx_err err = read_input(&q, &detail);
    code = err != VX_OK ? cli_error(cli, err, &detail) : cli_connect(cli);
    if (code == CLI_OK)
        code = answer(cli, &q);
    free(q.value);
    free(q.answer);
    return code;
}
