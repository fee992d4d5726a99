/*
 * meshcheck.c - distance of a mesh's vertices to the true surface of a scene.
 *
 * Use:    meshcheck --scene room [--workload room.vxwl --radius 0.03] mesh.ply
 *
 * Reads PLY, ascii or binary little endian; any vertex properties besides x, y
 * and z, and any later elements, are skipped.  All figures are in metres.
 *
 *  accuracy      mean, median, 95th, 99th percentile and maximum of the
 *                unsigned distance of the vertices to the surface, and bias, the
 *                mean signed distance (positive = in free space), which shows
 *                systematic shifts such as a half-voxel offset.
 *  completeness  with --workload: rays of the workload are cast again, without
 *                noise, and the fraction of their true hit points that have a
 *                vertex within --radius is printed.  Use a radius of about 1.5
 *                voxels: a mesh with only part of the surface has good accuracy
 *                but poor completeness.
 */
#include "scene.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

struct points {
    size_t count;
    double *xyz; /* count triples */
};

/* ---------------------------------------------------------------- PLY input */

enum { MAX_PROPERTIES = 64 };

struct property {
    int size;  /* bytes */
    char kind; /* 'i' signed, 'u' unsigned, 'f' floating */
};

static bool property_type(const char *name, struct property *p)
{
    static const struct {
        const char *name;
        struct property p;
    } types[] = {{"char", {1, 'i'}},  {"int8", {1, 'i'}},    {"uchar", {1, 'u'}},  {"uint8", {1, 'u'}},
                 {"short", {2, 'i'}}, {"int16", {2, 'i'}},   {"ushort", {2, 'u'}}, {"uint16", {2, 'u'}},
                 {"int", {4, 'i'}},   {"int32", {4, 'i'}},   {"uint", {4, 'u'}},   {"uint32", {4, 'u'}},
                 {"float", {4, 'f'}}, {"float32", {4, 'f'}}, {"double", {8, 'f'}}, {"float64", {8, 'f'}}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *p = types[i].p;
            return true;
        }
    }
    return false;
}

/* Floating-point value at `bytes`; positions in integer types are not supported. */
static double floating_value(const unsigned char *bytes, int size)
{
    if (size == 8) {
        double d;
        memcpy(&d, bytes, 8);
        return d;
    }
    float f;
    memcpy(&f, bytes, 4);
    return f;
}

struct ply_header {
    bool binary;
    size_t vertices, faces;
    int property_count;
    struct property properties[MAX_PROPERTIES];
    int position[3]; /* indices of x, y, z among the properties */
};

static bool read_ply_header(FILE *file, struct ply_header *h)
{
    char line[512], word[64], name[64];
    bool have_format = false, in_vertices = false, first_element = true;
    memset(h, 0, sizeof *h);
    h->position[0] = h->position[1] = h->position[2] = -1;
    if (!fgets(line, sizeof line, file) || strncmp(line, "ply", 3) != 0)
        return false;
    while (fgets(line, sizeof line, file)) {
        unsigned long long n;
        if (strncmp(line, "end_header", 10) == 0)
            return have_format && h->position[0] >= 0 && h->position[1] >= 0 && h->position[2] >= 0;
        if (sscanf(line, "format %63s", word) == 1) {
            h->binary = strcmp(word, "binary_little_endian") == 0;
            have_format = h->binary || strcmp(word, "ascii") == 0;
        } else if (sscanf(line, "element %63s %llu", word, &n) == 2) {
            in_vertices = strcmp(word, "vertex") == 0;
            if (in_vertices && !first_element)
                return false; /* vertices must come first */
            first_element = false;
            if (in_vertices)
                h->vertices = (size_t)n;
            else if (strcmp(word, "face") == 0)
                h->faces = (size_t)n;
        } else if (in_vertices && sscanf(line, "property %63s %63s", word, name) == 2) {
            struct property p;
            if (h->property_count == MAX_PROPERTIES || !property_type(word, &p))
                return false;
            for (int a = 0; a < 3; a++) {
                if (name[0] == "xyz"[a] && name[1] == '\0') {
                    if (p.kind != 'f')
                        return false;
                    h->position[a] = h->property_count;
                }
            }
            h->properties[h->property_count++] = p;
        }
    }
    return false;
}

static bool read_vertices(FILE *file, const struct ply_header *h, struct points *out)
{
    int offset[MAX_PROPERTIES], stride = 0;
    for (int i = 0; i < h->property_count; i++) {
        offset[i] = stride;
        stride += h->properties[i].size;
    }
    unsigned char record[MAX_PROPERTIES * 8];
    for (size_t v = 0; v < h->vertices; v++) {
        double *xyz = out->xyz + 3 * v;
        if (h->binary) {
            if (fread(record, (size_t)stride, 1, file) != 1)
                return false;
            for (int a = 0; a < 3; a++) {
                const int p = h->position[a];
                xyz[a] = floating_value(record + offset[p], h->properties[p].size);
            }
            continue;
        }
        for (int i = 0; i < h->property_count; i++) {
            double value;
            if (fscanf(file, "%lf", &value) != 1)
                return false;
            for (int a = 0; a < 3; a++)
                if (h->position[a] == i)
                    xyz[a] = value;
        }
    }
    return true;
}

static bool load_ply(const char *path, struct points *out, size_t *faces)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "meshcheck: cannot open %s: %s\n", path, strerror(errno));
        return false;
    }
    struct ply_header h;
    bool ok = read_ply_header(file, &h);
    if (ok) {
        out->count = h.vertices;
        out->xyz = malloc((3 * h.vertices + 1) * sizeof *out->xyz);
        ok = out->xyz && read_vertices(file, &h, out);
        *faces = h.faces;
    }
    fclose(file);
    if (!ok)
        fprintf(stderr, "meshcheck: %s is not a PLY file this tool reads, or is cut short\n", path);
    return ok;
}

/* ----------------------------------------------------------------- accuracy */

static int compare_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Value below which the fraction q of the sorted values lies (nearest rank). */
static double percentile(const double *sorted, size_t count, double q)
{
    const size_t rank = (size_t)ceil(q * (double)count);
    return sorted[rank > 0 ? rank - 1 : 0];
}

static bool print_accuracy(const struct scene *scene, const struct points *mesh, size_t faces)
{
    double *distance = malloc(mesh->count * sizeof *distance);
    if (!distance)
        return false;
    double sum = 0, signed_sum = 0;
    size_t not_finite = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum, signed_sum, not_finite)
    for (size_t i = 0; i < mesh->count; i++) {
        const double *p = mesh->xyz + 3 * i;
        if (!isfinite(p[0]) || !isfinite(p[1]) || !isfinite(p[2])) {
            distance[i] = INFINITY;
            not_finite++;
            continue;
        }
        const double d = scene_sdf(scene, p[0], p[1], p[2]);
        distance[i] = fabs(d);
        sum += fabs(d);
        signed_sum += d;
    }
    qsort(distance, mesh->count, sizeof *distance, compare_double);
    const double finite = (double)(mesh->count - not_finite);
    printf("vertices=%zu faces=%zu nonfinite=%zu mean=%.5f median=%.5f p95=%.5f p99=%.5f max=%.5f "
           "bias=%+.5f",
           mesh->count, faces, not_finite, sum / finite, percentile(distance, mesh->count, 0.5),
           percentile(distance, mesh->count, 0.95), percentile(distance, mesh->count, 0.99),
           distance[mesh->count - 1], signed_sum / finite);
    free(distance);
    return true;
}

/* ------------------------------------------------------------- completeness */

/* Hash grid of points: chains of indices per cell of edge `cell`. */
struct grid {
    const struct points *points;
    double cell;
    size_t mask;
    int64_t *head, *next;
};

static size_t cell_hash(const struct grid *g, int64_t x, int64_t y, int64_t z)
{
    uint64_t h = (uint64_t)x * 0x9e3779b97f4a7c15u ^ (uint64_t)y * 0xc2b2ae3d27d4eb4fu ^
                 (uint64_t)z * 0x165667b19e3779f9u;
    h ^= h >> 29;
    return (size_t)h & g->mask;
}

static int64_t cell_of(const struct grid *g, double v)
{
    return (int64_t)floor(v / g->cell);
}

static bool grid_build(struct grid *g, const struct points *points, double cell)
{
    size_t slots = 1024;
    while (slots < points->count)
        slots *= 2;
    *g = (struct grid){points, cell, slots - 1, malloc(slots * sizeof *g->head),
                       malloc((points->count + 1) * sizeof *g->next)};
    if (!g->head || !g->next)
        return false;
    for (size_t i = 0; i < slots; i++)
        g->head[i] = -1;
    for (size_t i = 0; i < points->count; i++) {
        const double *p = points->xyz + 3 * i;
        if (!isfinite(p[0] + p[1] + p[2]))
            continue;
        const size_t h = cell_hash(g, cell_of(g, p[0]), cell_of(g, p[1]), cell_of(g, p[2]));
        g->next[i] = g->head[h];
        g->head[h] = (int64_t)i;
    }
    return true;
}

/* Is there a point within one cell edge of p? */
static bool grid_near(const struct grid *g, const double p[3])
{
    const double limit = g->cell * g->cell;
    for (int n = 0; n < 27; n++) {
        const size_t h = cell_hash(g, cell_of(g, p[0]) + n % 3 - 1, cell_of(g, p[1]) + n / 3 % 3 - 1,
                                   cell_of(g, p[2]) + n / 9 - 1);
        for (int64_t i = g->head[h]; i >= 0; i = g->next[i]) {
            const double *q = g->points->xyz + 3 * i;
            const double dx = p[0] - q[0], dy = p[1] - q[1], dz = p[2] - q[2];
            if (dx * dx + dy * dy + dz * dz <= limit)
                return true;
        }
    }
    return false;
}

static bool print_completeness(const struct scene *scene, const struct points *mesh, const char *workload,
                               double radius)
{
    FILE *file = fopen(workload, "rb");
    char magic[8];
    uint32_t n[4]; /* kind, frames, width, height */
    float k[4];
    if (!file || fread(magic, 8, 1, file) != 1 || memcmp(magic, "VXWL0001", 8) != 0 ||
        fread(n, sizeof n, 1, file) != 1 || fread(k, sizeof k, 1, file) != 1) {
        fprintf(stderr, "meshcheck: %s is not a workload file\n", workload);
        if (file)
            fclose(file);
        return false;
    }
    struct grid grid;
    const size_t pixels = (size_t)n[2] * n[3];
    float *image = malloc(pixels * sizeof *image);
    bool ok = grid_build(&grid, mesh, radius) && image;
    size_t total = 0, found = 0;
    const uint32_t row_step = n[0] == 0 ? 5 : 1; /* LiDAR rows are few */
    for (uint32_t f = 0; ok && f < n[1]; f++) {
        float pose[12];
        ok = fread(pose, sizeof pose, 1, file) == 1 && fread(image, sizeof *image, pixels, file) == pixels;
        if (!ok || f % 5 != 0)
            continue;
        const double origin[3] = {pose[3], pose[7], pose[11]};
#pragma omp parallel for schedule(dynamic, 4) reduction(+ : total, found)
        for (uint32_t row = 0; row < n[3]; row += row_step) {
            for (uint32_t column = row % 5; column < n[2]; column += 5) {
                if (!(image[(size_t)row * n[2] + column] > 0))
                    continue;
                double ray[3] = {((double)column - k[2]) / k[0], ((double)row - k[3]) / k[1], 1};
                if (n[0] != 0) {
                    const double a = -PI + 2 * PI * column / n[2];
                    const double e = k[1] - ((double)k[1] - k[0]) * row / (n[3] - 1);
                    ray[0] = cos(e) * cos(a);
                    ray[1] = cos(e) * sin(a);
                    ray[2] = sin(e);
                }
                double d[3], p[3];
                for (int r = 0; r < 3; r++)
                    d[r] = pose[4 * r] * ray[0] + pose[4 * r + 1] * ray[1] + pose[4 * r + 2] * ray[2];
                /* Static scene: rays that met a moving car are cast past it. */
                const double t = scene_raycast(scene, f, origin, d, 100);
                if (isinf(t))
                    continue;
                for (int r = 0; r < 3; r++)
                    p[r] = origin[r] + t * d[r];
                total++;
                found += grid_near(&grid, p);
            }
        }
    }
    if (ok)
        printf(" completeness=%.4f radius=%.3f samples=%zu", total ? (double)found / (double)total : 0.0,
               radius, total);
    else
        fprintf(stderr, "meshcheck: %s is cut short, or memory ran out\n", workload);
    free(grid.head);
    free(grid.next);
    free(image);
    fclose(file);
    return ok;
}

/* --------------------------------------------------------------------- main */

int main(int argc, char **argv)
{
    enum scene_kind kind = SCENE_ROOM;
    bool have_scene = false;
    const char *mesh_path = NULL, *workload = NULL;
    double radius = 0;
    bool ok = true;
    for (int i = 1; ok && i < argc; i++) {
        if (strcmp(argv[i], "--scene") == 0 && i + 1 < argc)
            ok = have_scene = scene_kind_from_name(argv[++i], &kind);
        else if (strcmp(argv[i], "--workload") == 0 && i + 1 < argc)
            workload = argv[++i];
        else if (strcmp(argv[i], "--radius") == 0 && i + 1 < argc)
            radius = strtod(argv[++i], NULL);
        else if (argv[i][0] != '-' && !mesh_path)
            mesh_path = argv[i];
        else
            ok = false;
    }
    if (!ok || !have_scene || !mesh_path || (workload && !(radius > 0))) {
        fputs("usage: meshcheck --scene room|street [--workload FILE --radius METRES] MESH.ply\n", stderr);
        return 2;
    }
    struct scene *scene = scene_create(kind, false);
    struct points mesh = {0, NULL};
    size_t faces = 0;
    ok = scene && load_ply(mesh_path, &mesh, &faces);
    if (ok && mesh.count == 0) {
        puts("vertices=0");
    } else if (ok) {
        ok = print_accuracy(scene, &mesh, faces);
        if (ok && workload)
            ok = print_completeness(scene, &mesh, workload, radius);
        putchar('\n');
    }
    free(mesh.xyz);
    scene_destroy(scene);
    return ok ? 0 : 1;
}
