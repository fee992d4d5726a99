/* cmd_query_kinds.c - voxelctl query boxes, rays, configurations and paths. */
#include "outfile.h"
#include "query.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number as CSV has it. */
static void put(FILE *file, double v)
{
    if (isnan(v))
        fputs("nan", file);
    else
        fprintf(file, "%.6f", v);
}

/* ------------------------------------------------------------------ boxes */

static vx_err ask_boxes(struct vxc_client *client, struct query *q, const double origin_m[3],
                        const float *item, struct vx_detail *detail)
{
    return vxc_query_boxes(client, q->map, q->min_epoch, origin_m, item, q->n, q->answer, &q->state, detail);
}

static void write_boxes(const struct query *q, FILE *file)
{
    const struct vxc_box_answer *a = q->answer;
    fputs("min_x,min_y,min_z,max_x,max_y,max_z,free,occupied,unknown,outside\n", file);
    for (size_t i = 0; i < q->n && !outfile_stop(file); i++) {
        for (int k = 0; k < 6; k++)
            fprintf(file, "%.15g,", q->rows.value[6 * i + (size_t)k]);
        fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", a[i].n_free, a[i].n_occupied,
                a[i].n_unknown, (a[i].status & VXC_Q_OUTSIDE) != 0);
    }
}
static void json_box(struct json *j, const struct query *q, size_t i)
{
    const struct vxc_box_answer *a = (const struct vxc_box_answer *)q->answer + i;
    json_u64(j, "free", a->n_free);
    json_u64(j, "occupied", a->n_occupied);
    json_u64(j, "unknown", a->n_unknown);
    json_bool(j, "outside", (a->status & VXC_Q_OUTSIDE) != 0);
}
static void count_boxes(const struct query *q, uint64_t n[2])
{
    const struct vxc_box_answer *a = q->answer;
    n[0] = n[1] = 0;
    for (size_t i = 0; i < q->n; i++) {
        n[0] += a[i].n_occupied != 0;
        n[1] += a[i].n_unknown != 0;
    }
}
static void sum_boxes(struct json *j, const struct query *q)
{
    uint64_t n[2];
    count_boxes(q, n);
    json_u64(j, "with_occupied", n[0]);
    json_u64(j, "with_unknown", n[1]);
}
static void say_boxes(const struct query *q)
{
    uint64_t n[2];
    count_boxes(q, n);
    printf("%" PRIu64 " with occupied voxels, %" PRIu64 " with unknown ones", n[0], n[1]);
}

/* ------------------------------------------------------------------ rays */

static vx_err ask_rays(struct vxc_client *client, struct query *q, const double origin_m[3],
                       const float *item, struct vx_detail *detail)
{
    return vxc_query_rays(client, q->map, q->min_epoch, origin_m, item, q->n, q->max_range_m, q->answer,
                          &q->state, detail);
}

static void write_rays(const struct query *q, FILE *file)
{
    const struct vxc_ray_answer *a = q->answer;
    fputs("x,y,z,dx,dy,dz,range_m,nx,ny,nz,state,unknown_from_m\n", file);
    for (size_t i = 0; i < q->n && !outfile_stop(file); i++) {
        for (int k = 0; k < 6; k++)
            fprintf(file, "%.15g,", q->rows.value[6 * i + (size_t)k]);
        put(file, (double)a[i].range_m);
        fprintf(file, ",%.6f,%.6f,%.6f,%s,", (double)a[i].normal[0], (double)a[i].normal[1],
                (double)a[i].normal[2], query_state_name(a[i].state));
        put(file, (double)a[i].unknown_from_m);
        putc('\n', file);
    }
}
static void json_ray(struct json *j, const struct query *q, size_t i)
{
    const struct vxc_ray_answer *a = (const struct vxc_ray_answer *)q->answer + i;
    const double normal[3] = {(double)a->normal[0], (double)a->normal[1], (double)a->normal[2]};
    json_number(j, "range_m", (double)a->range_m);
    json_vector(j, "normal", normal, 3);
    json_text(j, "state", query_state_name(a->state));
    json_number(j, "unknown_from_m", (double)a->unknown_from_m);
}
static uint64_t count_hits(const struct query *q)
{
    const struct vxc_ray_answer *a = q->answer;
    uint64_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        n += a[i].state == VXC_OCCUPIED;
    return n;
}
static void sum_rays(struct json *j, const struct query *q)
{
    json_u64(j, "hits", count_hits(q));
}
static void say_rays(const struct query *q)
{
    printf("%" PRIu64 " hit something", count_hits(q));
}

/* ------------------------------------------------------------------ robots */

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* A path's rows lie behind each other; number[n] of the paths as they came. */
static vx_err check_numbers(double *number, size_t n, struct vx_detail *detail)
{
    qsort(number, n, sizeof *number, compare_numbers);
    for (size_t i = 1; i < n; i++)
        if (number[i] == number[i - 1])
            return vx_fail(detail, VX_E_INVALID, "path",
                           "path %.15g goes on behind the rows of another path; its rows must lie together",
                           number[i]);
    return VX_OK;
}

/* Way-points of a path are rows behind each other with its number; all paths have as many. */
static vx_err count_waypoints(struct query *q, double *number, struct vx_detail *detail)
{
    const double *v = q->rows.value;
    size_t n = 0, first = 0;
    for (size_t i = 1; i <= q->rows.n; i++) {
        if (i < q->rows.n && v[8 * i] == v[8 * first])
            continue;
        if (!n)
            q->n_waypoints = (uint32_t)(i - first);
        else if (i - first != q->n_waypoints)
            return vx_fail(detail, VX_E_INVALID, "path",
                           "path %.15g has %zu way-points, the first path has %" PRIu32
                           "; all paths of a request have as many",
                           v[8 * first], i - first, q->n_waypoints);
        number[n++] = v[8 * first];
        first = i;
    }
    q->n = n;
    return check_numbers(number, n, detail);
}

static vx_err check_paths(struct query *q, struct vx_detail *detail)
{
    double *number = malloc((q->rows.n + 1) * sizeof *number);
    if (!number)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu rows", q->rows.n);
    const vx_err err = count_waypoints(q, number, detail);
    free(number);
    VX_TRY_RET(err);
    for (size_t i = 0; i < q->rows.n; i++) /* poses only */
        memmove(q->rows.value + 7 * i, q->rows.value + 8 * i + 1, 7 * sizeof(double));
    q->rows.n_fields = 7;
    if (!q->n)
        q->n_waypoints = 1;
    return VX_OK;
}
static vx_err check_configurations(struct query *q, struct vx_detail *detail)
{
    (void)detail;
    q->n_waypoints = 1;
    return VX_OK;
}

static vx_err ask_paths(struct vxc_client *client, struct query *q, const double origin_m[3],
                        const float *item, struct vx_detail *detail)
{
    float *spheres = malloc((4 * q->robot.n + 1) * sizeof *spheres);
    if (!spheres)
        return vx_fail(detail, VX_E_NOMEM, "", "no memory for %zu spheres", q->robot.n);
    for (size_t i = 0; i < 4 * q->robot.n; i++)
        spheres[i] = (float)q->robot.value[i];
    const struct vxc_robot robot = {.spheres = spheres,
                                    .n_spheres = (uint32_t)q->robot.n,
                                    .n_waypoints = q->n_waypoints,
                                    .unknown = q->unknown};
    const vx_err err = vxc_query_paths(client, q->map, q->min_epoch, origin_m, &robot, item, q->n, q->answer,
                                       &q->state, detail);
    free(spheres);
    return err;
}

static void write_paths(const struct query *q, FILE *file)
{
    const struct vxc_path_answer *a = q->answer;
    fputs("touches,sphere,contact,clearance_m,unknown,outside\n", file);
    for (size_t i = 0; i < q->n && !outfile_stop(file); i++) {
        fprintf(file, "%d,%" PRId32 ",", (a[i].status & VXC_Q_COLLIDES) != 0, (int32_t)a[i].sphere);
        put(file, (double)a[i].contact);
        putc(',', file);
        put(file, (double)a[i].clearance_m);
        putc(',', file);
        put(file, (double)a[i].unknown);
        fprintf(file, ",%d\n", (a[i].status & VXC_Q_OUTSIDE) != 0);
    }
}
static void json_path(struct json *j, const struct query *q, size_t i)
{
    const struct vxc_path_answer *a = (const struct vxc_path_answer *)q->answer + i;
    json_bool(j, "touches", (a->status & VXC_Q_COLLIDES) != 0);
    if (a->status & VXC_Q_COLLIDES)
        json_u64(j, "sphere", a->sphere);
    json_number(j, "contact", (double)a->contact);
    json_number(j, "clearance_m", (double)a->clearance_m);
    json_number(j, "unknown", (double)a->unknown);
    json_bool(j, "outside", (a->status & VXC_Q_OUTSIDE) != 0);
}
static void count_paths(const struct query *q, uint64_t n[3])
{
    const struct vxc_path_answer *a = q->answer;
    n[0] = n[1] = n[2] = 0;
    for (size_t i = 0; i < q->n; i++) {
        n[0] += (a[i].status & VXC_Q_COLLIDES) != 0;
        n[1] += (a[i].status & VXC_Q_TOUCHES_UNKNOWN) != 0;
        n[2] += (a[i].status & VXC_Q_OUTSIDE) != 0;
    }
}
static void sum_paths(struct json *j, const struct query *q)
{
    uint64_t n[3];
    count_paths(q, n);
    json_u64(j, "touching", n[0]);
    json_u64(j, "meeting_unknown", n[1]);
    json_u64(j, "not_judged_whole", n[2]);
}
static void say_paths(const struct query *q)
{
    uint64_t n[3];
    count_paths(q, n);
    printf("%" PRIu64 " touch something, %" PRIu64 " meet unknown space", n[0], n[1]);
    if (n[2])
        printf(", %" PRIu64 " could not be judged whole (column outside)", n[2]);
}

static const char *const BOX_FIELDS[] = {"min_x", "min_y", "min_z", "max_x", "max_y", "max_z"};
static const char *const RAY_FIELDS[] = {"x", "y", "z", "dx", "dy", "dz"};
static const char *const PATH_FIELDS[] = {"path", "x", "y", "z", "qx", "qy", "qz", "qw"};
static const struct query_kind BOXES = {.verb = "boxes",
                                        .one = "box",
                                        .n_fields = 6,
                                        .fields = BOX_FIELDS,
                                        .n_places = 2,
                                        .answer_bytes = sizeof(struct vxc_box_answer),
                                        .ask = ask_boxes,
                                        .write = write_boxes,
                                        .json = json_box,
                                        .sum = sum_boxes,
                                        .say = say_boxes};
static const struct query_kind RAYS = {.verb = "rays",
                                       .one = "ray",
                                       .n_fields = 6,
                                       .fields = RAY_FIELDS,
                                       .n_places = 1,
                                       .options = 1u << QUERY_MAX_RANGE,
                                       .answer_bytes = sizeof(struct vxc_ray_answer),
                                       .ask = ask_rays,
                                       .write = write_rays,
                                       .json = json_ray,
                                       .sum = sum_rays,
                                       .say = say_rays};
static const struct query_kind CONFIGURATIONS = {.verb = "configurations",
                                                 .one = "configuration",
                                                 .n_fields = 7,
                                                 .fields = PATH_FIELDS + 1,
                                                 .n_places = 1,
                                                 .options = 1u << QUERY_ROBOT | 1u << QUERY_UNKNOWN,
                                                 .answer_bytes = sizeof(struct vxc_path_answer),
                                                 .check = check_configurations,
                                                 .ask = ask_paths,
                                                 .write = write_paths,
                                                 .json = json_path,
                                                 .sum = sum_paths,
                                                 .say = say_paths};
static const struct query_kind PATHS = {.verb = "paths",
                                        .one = "path",
                                        .n_fields = 8,
                                        .fields = PATH_FIELDS,
                                        .finite = 1, /* the path's number */
                                        .n_places = 1,
                                        .options = 1u << QUERY_ROBOT | 1u << QUERY_UNKNOWN,
                                        .answer_bytes = sizeof(struct vxc_path_answer),
                                        .check = check_paths,
                                        .ask = ask_paths,
                                        .write = write_paths,
                                        .json = json_path,
                                        .sum = sum_paths,
                                        .say = say_paths};
const struct query_kind *const query_more_kinds[] = {&BOXES, &RAYS, &CONFIGURATIONS, &PATHS, NULL};
