/* voxelctl query: points, spheres, and the kinds of cmd_query_kinds.c. */
#include "csv.h"
#include "outfile.h"
#include "query.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "voxelctl query - what a map says of points, spheres, boxes, rays, and robots along paths\n"
    "\n"
    "usage: voxelctl query points  NAME [-i IN.csv] [-o OUT.csv] [--status] [--min-epoch N]\n"
    "       voxelctl query spheres NAME ...\n"
    "       voxelctl query boxes   NAME ...\n"
    "       voxelctl query rays    NAME ... [--max-range M]\n"
    "       voxelctl query configurations|paths NAME ... --robot ROBOT.csv [--unknown report|free|occupied]\n"
    "\n"
    "IN.csv has a header row; other columns are ignored.  Metres, quaternions x y z w.  OUT.csv has one row "
    "for\n"
    "each of its rows (each path), in the same order.  A row has as many columns as the header.\n"
    "\n"
    "  points          x,y,z           -> x,y,z,distance_m,gx,gy,gz,state\n"
    "  spheres         x,y,z,radius       the same, of the sphere's skin\n"
    "    distance_m   to the nearest surface, positive outside; nan: nothing within reach\n"
    "    gx,gy,gz     unit gradient, away from the surface; 0,0,0 where undefined\n"
    "    state        free, occupied or unknown: the evidence at that place; unknown is never free\n"
    "  boxes           min_x,min_y,min_z,max_x,max_y,max_z -> free,occupied,unknown,outside\n"
    "    how many voxels that the box meets are what; outside: it lies partly beyond the map's coordinates\n"
    "  rays            x,y,z,dx,dy,dz  -> range_m,nx,ny,nz,state,unknown_from_m\n"
    "    first surface along the direction and its normal; state occupied: hit, free: all free, unknown: no "
    "hit\n"
    "  configurations  x,y,z,qx,qy,qz,qw -> touches,sphere,contact,clearance_m,unknown,outside\n"
    "  paths           path,x,y,z,qx,qy,qz,qw: rows of one path number are its way-points\n"
    "    touches      1: a sphere of the robot touches something on the way; sphere: which (-1: none);\n"
    "    contact      where: way-point number and part of the way to the next; nan: nowhere\n"
    "    clearance_m  no surface is nearer to the robot; where it touches: there; nan: nothing within reach\n"
    "    unknown      where it first meets unknown space\n"
    "    outside      1: not judged from `unknown` on, which counts as unknown space: a pose is no rotation "
    "of\n"
    "                 length 1 (to 0.1 %) or not finite, way-points are over 4096 voxels apart, or the path\n"
    "                 leaves the map's coordinates\n"
    "\n"
    "options\n"
    "  -i, --input FILE    default -, stdin\n"
    "  -o, --output FILE   default -, stdout\n"
    "  --robot FILE        x,y,z,radius of the spheres in the robot's frame\n"
    "  --unknown HOW       unknown space: report it (default), count it as free, or as occupied\n"
    "  --max-range M       of rays; default 20\n"
    "  --status            points, spheres: more columns at the end: outside (beyond the map's coordinates) "
    "and,\n"
    "                      of spheres, radius, collides (a surface is within the radius) and "
    "touches_unknown; "
    "0 or 1\n"
    "  --unknown-distance  points: a last column unknown_distance_m, to the nearest unknown voxel; nan: none "
    "within reach\n"
    "  --min-epoch N       answer from this epoch or a newer one; default: the newest\n"
    "\n"
    "With --json a summary is printed, and the rows as `answers` when there is no -o.\n"
    "\n"
    "exit codes: 0 done, 1 refused or a file is bad, 2 wrong usage, 3 no daemon, 130 interrupted\n";

static const struct cli_option OPTIONS[N_QUERY_OPTIONS] = {
    [QUERY_INPUT] = {"input", 'i', true},       [QUERY_OUTPUT] = {"output", 'o', true},
    [QUERY_MIN_EPOCH] = {"min-epoch", 0, true}, [QUERY_ROBOT] = {"robot", 0, true},
    [QUERY_UNKNOWN] = {"unknown", 0, true},     [QUERY_MAX_RANGE] = {"max-range", 0, true},
    [QUERY_STATUS] = {"status", 0, false},      [QUERY_UNKNOWN_DISTANCE] = {"unknown-distance", 0, false},
};
static const uint32_t EVERY_KIND = 1u << QUERY_INPUT | 1u << QUERY_OUTPUT | 1u << QUERY_MIN_EPOCH;

static bool take_unknown(struct cli *cli, const char *value, enum vxc_unknown *out)
{
    static const char *const names[] = {"report", "free", "occupied"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (enum vxc_unknown)i;
            return true;
        }
    cli_usage(cli, "--unknown is report, free or occupied, not '%s'", value);
    return false;
}

static bool take(struct cli *cli, struct query *q, int option, const char *value)
{
    switch (option) {
    case QUERY_INPUT:
        q->in_path = value;
        return true;
    case QUERY_OUTPUT:
        q->out_path = value;
        return true;
    case QUERY_ROBOT:
        q->robot_path = value;
        return true;
    case QUERY_UNKNOWN:
        return take_unknown(cli, value, &q->unknown);
    case QUERY_MAX_RANGE:
        return cli_number(cli, "--max-range", value, 1e-3, 1e6, &q->max_range_m);
    case QUERY_STATUS:
        q->status = true;
        return true;
    case QUERY_UNKNOWN_DISTANCE:
        q->unknown_distance = true;
        return true;
    default:
        return cli_whole(cli, "--min-epoch", value, 0, UINT64_MAX, &q->min_epoch);
    }
}

/* ------------------------------------------------------------------ points and spheres */

const char *query_state_name(uint32_t state)
{
    return state == VXC_FREE ? "free" : state == VXC_OCCUPIED ? "occupied" : "unknown";
}

static bool of_spheres(const struct query *q)
{
    return q->kind->n_fields == 4;
}

static vx_err ask_points(struct vxc_client *client, struct query *q, const double origin_m[3],
                         const float *item, struct vx_detail *detail)
{
    if (q->unknown_distance)
        return vxc_query_points_unknown(client, q->map, q->min_epoch, origin_m, item, q->n, q->answer,
                                        &q->state, detail);
    return (of_spheres(q) ? vxc_query_spheres : vxc_query_points)(client, q->map, q->min_epoch, origin_m,
                                                                  item, q->n, q->answer, &q->state, detail);
}

/* Answers with a distance to unknown space begin like those without. */
static const struct vxc_point_answer *point_at(const struct query *q, size_t i)
{
    return q->unknown_distance ? &((const struct vxc_point_unknown_answer *)q->answer)[i].answer
                               : (const struct vxc_point_answer *)q->answer + i;
}
static double unknown_at(const struct query *q, size_t i)
{
    return (double)((const struct vxc_point_unknown_answer *)q->answer)[i].unknown_distance_m;
}

static void write_points(const struct query *q, FILE *file)
{
    const size_t n_fields = (size_t)q->rows.n_fields;
    fputs("x,y,z,distance_m,gx,gy,gz,state", file);
    if (q->status)
        fputs(of_spheres(q) ? ",outside,radius,collides,touches_unknown" : ",outside", file);
    if (q->unknown_distance)
        fputs(",unknown_distance_m", file);
    putc('\n', file);
    for (size_t i = 0; i < q->n && !outfile_stop(file); i++) {
        const double *row = q->rows.value + i * n_fields;
        const struct vxc_point_answer *a = point_at(q, i);
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
        fprintf(file, ",%s", query_state_name(a->state));
        if (q->status)
            fprintf(file, ",%d", (a->status & VXC_Q_OUTSIDE) != 0);
        if (q->status && of_spheres(q))
            fprintf(file, ",%.15g,%d,%d", row[3], (a->status & VXC_Q_COLLIDES) != 0,
                    (a->status & VXC_Q_TOUCHES_UNKNOWN) != 0);
        if (q->unknown_distance)
            fprintf(file, isnan(unknown_at(q, i)) ? ",nan" : ",%.6f", unknown_at(q, i));
        putc('\n', file);
    }
}

static void json_point(struct json *j, const struct query *q, size_t i)
{
    const struct vxc_point_answer *a = point_at(q, i);
    const double gradient[3] = {(double)a->gradient[0], (double)a->gradient[1], (double)a->gradient[2]};
    json_number(j, "distance_m", a->status & VXC_Q_DISTANCE ? (double)a->distance_m : NAN);
    json_vector(j, "gradient", gradient, 3);
    json_text(j, "state", query_state_name(a->state));
    json_bool(j, "outside", (a->status & VXC_Q_OUTSIDE) != 0);
    if (of_spheres(q)) {
        json_bool(j, "collides", (a->status & VXC_Q_COLLIDES) != 0);
        json_bool(j, "touches_unknown", (a->status & VXC_Q_TOUCHES_UNKNOWN) != 0);
    }
    if (q->unknown_distance)
        json_number(j, "unknown_distance_m", unknown_at(q, i));
}

static void count_points(const struct query *q, uint64_t n_state[3], uint64_t *n_collides)
{
    n_state[0] = n_state[1] = n_state[2] = *n_collides = 0;
    for (size_t i = 0; i < q->n; i++) {
        const struct vxc_point_answer *a = point_at(q, i);
        n_state[a->state <= VXC_OCCUPIED ? a->state : VXC_UNKNOWN]++;
        *n_collides += (a->status & VXC_Q_COLLIDES) != 0;
    }
}
static void sum_points(struct json *j, const struct query *q)
{
    uint64_t n_state[3], n_collides;
    count_points(q, n_state, &n_collides);
    json_u64(j, "free", n_state[VXC_FREE]);
    json_u64(j, "occupied", n_state[VXC_OCCUPIED]);
    json_u64(j, "unknown", n_state[VXC_UNKNOWN]);
    if (of_spheres(q))
        json_u64(j, "colliding", n_collides);
}
static void say_points(const struct query *q)
{
    uint64_t n_state[3], n_collides;
    count_points(q, n_state, &n_collides);
    printf("%" PRIu64 " free, %" PRIu64 " occupied, %" PRIu64 " unknown", n_state[VXC_FREE],
           n_state[VXC_OCCUPIED], n_state[VXC_UNKNOWN]);
}

static const char *const SPHERE_FIELDS[] = {"x", "y", "z", "radius"};
static const struct query_kind POINTS = {.verb = "points",
                                         .one = "point",
                                         .n_fields = 3,
                                         .fields = SPHERE_FIELDS,
                                         .n_places = 1,
                                         .answer_bytes = sizeof(struct vxc_point_answer),
                                         .options = 1u << QUERY_STATUS | 1u << QUERY_UNKNOWN_DISTANCE,
                                         .ask = ask_points,
                                         .write = write_points,
                                         .json = json_point,
                                         .sum = sum_points,
                                         .say = say_points};
static const struct query_kind SPHERES = {.verb = "spheres",
                                          .one = "sphere",
                                          .n_fields = 4,
                                          .fields = SPHERE_FIELDS,
                                          .n_places = 1,
                                          .answer_bytes = sizeof(struct vxc_point_answer),
                                          .options = 1u << QUERY_STATUS,
                                          .ask = ask_points,
                                          .write = write_points,
                                          .json = json_point,
                                          .sum = sum_points,
                                          .say = say_points};

/* ------------------------------------------------------------------ the command line */

static const struct query_kind *find_kind(const char *verb)
{
    const struct query_kind *const own[] = {&POINTS, &SPHERES, NULL}, *const *
                                                                          lists[] = {own, query_more_kinds};
    for (int l = 0; l < 2; l++)
        for (const struct query_kind *const *k = lists[l]; *k; k++)
            if (strcmp(verb, (*k)->verb) == 0 || strcmp(verb, (*k)->one) == 0)
                return *k;
    return NULL;
}

static bool takes_robot(const struct query *q)
{
    return q->kind->options >> QUERY_ROBOT & 1;
}

/* An option that means nothing to the kind is refused, not passed over. */
static int check_usage(struct cli *cli, struct query *q, const char *verb, uint32_t given)
{
    if (!verb || !q->map)
        return cli_usage(cli,
                         "query needs points or spheres (or boxes, rays, configurations, paths), and the "
                         "name of a map");
    q->kind = find_kind(verb);
    if (!q->kind)
        return cli_usage(
            cli, "query asks for points or spheres, boxes, rays, configurations or paths, not '%s'", verb);
    for (int i = 0; i < N_QUERY_OPTIONS; i++)
        if (given >> i & 1 && !((EVERY_KIND | q->kind->options) >> i & 1))
            return cli_usage(cli, "query %s takes no option --%s", q->kind->verb, OPTIONS[i].name);
    if (takes_robot(q) && !q->robot_path)
        return cli_usage(cli, "query %s needs --robot", q->kind->verb);
    if (cli->json && q->out_path && strcmp(q->out_path, "-") == 0)
        return cli_usage(cli, "-o - and --json both want stdout");
    return -1;
}

static int parse(struct cli *cli, struct query *q)
{
    const char *value, *verb = NULL;
    uint32_t given = 0;
    for (int got; (got = cli_next(cli, OPTIONS, N_QUERY_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && q->map)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (got == CLI_WORD && !verb)
            verb = value;
        else if (got == CLI_WORD)
            q->map = value;
        else if (!take(cli, q, got, value))
            return CLI_USAGE;
        else
            given |= 1u << got;
    }
    return check_usage(cli, q, verb, given);
}

/* ------------------------------------------------------------------ rows in */

static vx_err read_rows(struct rows *r, struct csv *csv, const char *const *fields, struct vx_detail *detail)
{
    VX_TRY_RET(csv_begin(csv, fields, r->n_fields, detail));
    for (;;) {
        double row[CSV_MAX_COLUMNS];
        int end;
        VX_TRY_RET(csv_next(csv, row, &end, detail));
        if (end)
            return VX_OK;
        if (r->n == r->capacity) {
            const size_t capacity = r->capacity ? 2 * r->capacity : 1024;
            double *grown = realloc(r->value, capacity * (size_t)r->n_fields * sizeof *grown);
            if (!grown)
                return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu rows", capacity);
            r->value = grown;
            r->capacity = capacity;
        }
        memcpy(r->value + r->n++ * (size_t)r->n_fields, row, (size_t)r->n_fields * sizeof *row);
    }
}

vx_err rows_read(struct rows *rows, const char *path, const char *const *fields, int n_fields,
                 uint32_t finite, struct vx_detail *detail)
{
    struct csv csv = {.file = stdin, .name = "stdin", .finite = finite};
    rows->n_fields = n_fields;
    if (strcmp(path, "-") == 0)
        return read_rows(rows, &csv, fields, detail);
    csv.name = path;
    csv.file = fopen(path, "rb");
    if (!csv.file)
        return vx_fail(detail, VX_E_NOT_FOUND, "input", "cannot read %s: %s", path, strerror(errno));
    const vx_err err = read_rows(rows, &csv, fields, detail);
    fclose(csv.file);
    return err;
}

static vx_err read_input(struct query *q, struct vx_detail *detail)
{
    const struct query_kind *k = q->kind;
    if (takes_robot(q) && strcmp(q->in_path, "-") == 0 && strcmp(q->robot_path, "-") == 0)
        return vx_fail(detail, VX_E_INVALID, "robot", "-i and --robot both want stdin");
    if (takes_robot(q))
        VX_TRY_RET(rows_read(&q->robot, q->robot_path, SPHERE_FIELDS, 4, 0xf, detail));
    VX_TRY_RET(rows_read(&q->rows, q->in_path, k->fields, k->n_fields, k->finite, detail));
    q->n = q->rows.n;
    return k->check ? k->check(q, detail) : VX_OK;
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
    const size_t n_fields = (size_t)q->rows.n_fields, n = q->rows.n * n_fields,
                 places = 3 * (size_t)q->kind->n_places;
    double origin_m[3];
    VX_TRY_RET(choose_origin(cli, q, origin_m, detail));
    float *item = malloc((n + 1) * sizeof *item);
    q->answer = malloc(
        (q->n + 1) * (q->unknown_distance ? sizeof(struct vxc_point_unknown_answer) : q->kind->answer_bytes));
    vx_err err = item && q->answer ? VX_OK : vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu rows", q->n);
    for (size_t i = 0; err == VX_OK && i < n; i++)
        item[i] =
            (float)(i % n_fields < places ? q->rows.value[i] - origin_m[i % n_fields % 3] : q->rows.value[i]);
    const double start_s = cli_now_s();
    if (err == VX_OK)
        err = q->kind->ask(cli->client, q, origin_m, item, detail);
    q->seconds = cli_now_s() - start_s;
    free(item);
    return err;
}

/* ------------------------------------------------------------------ rows out */

static int report(struct cli *cli, const struct query *q)
{
    if (cli->json) {
        struct json j = {stdout, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", q->map);
        json_u64(&j, "n", q->n);
        q->kind->sum(&j, q);
        json_state(&j, &q->state);
        json_number(&j, "latency_ms", q->seconds * 1e3);
        if (!q->out_path) {
            json_begin(&j, "answers", '[');
            for (size_t i = 0; i < q->n && !outfile_stop(j.file); i++) {
                json_begin(&j, NULL, '{');
                q->kind->json(&j, q, i);
                json_end(&j, '}');
            }
            json_end(&j, ']');
        }
        json_end(&j, '}');
        const int code = json_finish(&j);
        return cli_interrupted() ? CLI_INTERRUPTED : code;
    }
    if (q->out_path && strcmp(q->out_path, "-") != 0) {
        printf("%s: %zu answers (", q->out_path, q->n);
        q->kind->say(q);
        printf(") from epoch %" PRIu64 ", %.2f ms\n", q->state.epoch, q->seconds * 1e3);
    }
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
            q->kind->write(q, out.file);
            err = outfile_close(&out, VX_OK, &detail);
        }
        if (err != VX_OK)
            return cli_error(cli, err, &detail);
    }
    return report(cli, q);
}

int cmd_query(struct cli *cli)
{
    struct query q = {.in_path = "-", .max_range_m = 20};
    struct vx_detail detail;
    cli->help = HELP;
    int code = parse(cli, &q);
    if (code >= 0)
        return code;
    const vx_err err = read_input(&q, &detail);
    code = err != VX_OK ? cli_error(cli, err, &detail) : cli_connect(cli);
    if (code == CLI_OK)
        code = answer(cli, &q);
    free(q.rows.value);
    free(q.robot.value);
    free(q.answer);
    return code;
}
