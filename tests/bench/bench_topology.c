/*
 * bench_topology.c - time, bytes and memory of the grid operators on the shapes of TARGETS.
 *
 * Every operation is run once and compared with a reference on the host (columns.h) before the clock starts;
 * a wrong result ends the program with 1.  A timed run is the wall clock of one whole call: allocation from
 * the warm pool and the final synchronisation included; freeing the result is not.  One JSON line an
 * operation on stdout, words on stderr.
 */
#include "bench_util.h"
#include "topology_ops.h"

#include <stdlib.h>
#include <string.h>

/* Device copy of an H200, both ways counted (TARGETS). */
#define FLOOR_GB_S 4300.0

static const char USAGE[] =
    "usage: bench_topology --shape SHAPE --op OP[,OP...] [options]\n"
    "  --shape shell3|shell7|rand25|scatter|tiles\n"
    "  --dim N            edge of the shape's cube; tiles: how far apart (default 256, rand25 512, scatter "
    "2048,\n"
    "                     tiles 32768)\n"
    "  --op OP            all, or one of: voxels_to_grid dilate6 dilate18 dilate26 dilate_box erode6 "
    "erode18\n"
    "                     erode26 erode_box merge intersect difference prune coarsen refine restrict "
    "prolong\n"
    "                     inject vbm_build vbm_decode stencil7 stencil18 stencil19 stencil27\n"
    "  --order sorted|scattered   of the coordinates of voxels_to_grid (default sorted)\n"
    "  --radius R         of dilate_box and erode_box, 1 .. 8 (default 2)\n"
    "  --batch N          1 .. 256 grids at once, vbm_* and stencil* only (default 1)\n"
    "  --cold             vbm_decode and stencil* build the VoxelBlockManager in every call\n"
    "  --backend cpu|cuda|guard  --device N  --threads N  --pool-cap BYTES\n"
    "  --repeat K         timed runs (default 10; 0: validate only)\n"
    "exit: 0 right, 1 wrong or failed, 2 bad usage\n";

struct options {
    struct vx_device_params device;
    uint64_t repeat;
    bool all, op[N_OPS];
};

static bool parse_shape(const char *value, struct topology *t)
{
    for (int k = 0; k < SHAPE_KINDS; k++)
        if (strcmp(value, shape_name((enum shape_kind)k)) == 0) {
            t->kind = (enum shape_kind)k;
            return true;
        }
    return false;
}

/* "all", or names with commas between. */
static bool parse_ops(const char *value, struct options *o)
{
    o->all = strcmp(value, "all") == 0;
    for (const char *at = value; !o->all; at++) {
        const size_t n = strcspn(at, ",");
        int k = 0;
        while (k < N_OPS && (strncmp(at, topology_op_name((enum topology_op)k), n) != 0 ||
                             topology_op_name((enum topology_op)k)[n] != '\0'))
            k++;
        if (k == N_OPS)
            return false;
        o->op[k] = true;
        at += n;
        if (*at == '\0')
            break;
    }
    return true;
}

static bool is_wanted(const struct options *o, const struct topology *t, enum topology_op op)
{
    return o->op[op] || (o->all && (t->batch == 1 || topology_op_is_batched(op)));
}

static bool parse_option(struct options *o, struct topology *t, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--shape") == 0)
        return parse_shape(value, t);
    if (strcmp(name, "--op") == 0)
        return parse_ops(value, o);
    if (strcmp(name, "--dim") == 0)
        return bench_parse_uint(value, 1 << 20, &n) && n >= 16 && ((t->dim = (int32_t)n), true);
    if (strcmp(name, "--order") == 0) {
        t->scattered = strcmp(value, "scattered") == 0;
        return t->scattered || strcmp(value, "sorted") == 0;
    }
    if (strcmp(name, "--radius") == 0)
        return bench_parse_uint(value, VX_GRID_MAX_RADIUS, &n) && n >= 1 && ((t->radius = (uint32_t)n), true);
    if (strcmp(name, "--batch") == 0)
        return bench_parse_uint(value, MAX_BATCH, &n) && n >= 1 && ((t->batch = (uint32_t)n), true);
    if (strcmp(name, "--backend") == 0)
        return bench_parse_backend(value, &o->device.backend);
    if (strcmp(name, "--device") == 0)
        return bench_parse_uint(value, 1023, &n) && ((o->device.index = (int)n), true);
    if (strcmp(name, "--threads") == 0)
        return bench_parse_uint(value, 4096, &n) && ((o->device.n_threads = (int)n), true);
    if (strcmp(name, "--pool-cap") == 0)
        return bench_parse_uint(value, UINT64_MAX, &o->device.cap_bytes);
    if (strcmp(name, "--repeat") == 0)
        return bench_parse_uint(value, 100000, &o->repeat);
    return false;
}

static bool parse_options(int argc, char **argv, struct options *o, struct topology *t)
{
    bool has_shape = false, has_op = false;
    *o = (struct options){.repeat = 10};
    *t = (struct topology){.radius = 2, .batch = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cold") == 0) {
            t->cold = true;
            continue;
        }
        has_shape |= strcmp(argv[i], "--shape") == 0;
        has_op |= strcmp(argv[i], "--op") == 0;
        if (!parse_option(o, t, argv[i], i + 1 < argc ? argv[i + 1] : "")) {
            fprintf(stderr, "bench_topology: bad option %s %s\n", argv[i], i + 1 < argc ? argv[i + 1] : "");
            return false;
        }
        i++;
    }
    if (!has_shape || !has_op) {
        fputs("bench_topology: --shape or --op is missing\n", stderr);
        return false;
    }
    if (t->dim == 0)
        t->dim = shape_default_dim(t->kind);
    const int32_t least = t->kind == SHAPE_TILES ? 64 : 16, most = t->kind == SHAPE_TILES ? 1 << 20 : 4096;
    if (t->dim < least || t->dim > most) {
        fprintf(stderr, "bench_topology: --dim of %s is %d .. %d\n", shape_name(t->kind), least, most);
        return false;
    }
    for (int op = 0; t->batch > 1 && op < N_OPS; op++)
        if (o->op[op] && !topology_op_is_batched((enum topology_op)op)) {
            fprintf(stderr, "bench_topology: %s takes one grid\n", topology_op_name((enum topology_op)op));
            return false;
        }
    return true;
}

/* ------------------------------------------------------------------ one operation */

static void print_line(struct topology *t, enum topology_op op, struct bench_samples *ms,
                       const struct topology_figures *f)
{
    struct vx_device_stats device;
    struct vx_engine_stats engine;
    const double median = bench_quantile(ms, 0.5), floor_ms = (double)f->bytes / FLOOR_GB_S * 1e-6;
    vx_device_get_stats(t->device, &device);
    vx_engine_get_stats(t->engine, &engine);
    printf("{\"bench\":\"topology\",\"op\":\"%s\",\"shape\":\"%s\",\"dim\":%d,\"backend\":\"%s\",\"device\":",
           topology_op_name(op), shape_name(t->kind), t->dim, device.backend);
    bench_json_string(stdout, device.name);
    if (op == OP_voxels_to_grid)
        printf(",\"order\":\"%s\"", t->scattered ? "scattered" : "sorted");
    if (op == OP_dilate_box || op == OP_erode_box)
        printf(",\"radius\":%u", t->radius);
    if (topology_op_is_batched(op))
        printf(",\"batch\":%u,\"cold\":%s", t->batch, t->cold || op == OP_vbm_build ? "true" : "false");
    printf(",\"validated\":true,\"voxels_in\":%llu,\"leaves_in\":%u,\"chunks_in\":%u,\"voxels_out\":%llu,"
           "\"leaves_out\":%u,\"chunks_out\":%u",
           (unsigned long long)f->voxels_in, f->leaves_in, f->chunks_in, (unsigned long long)f->voxels_out,
           f->leaves_out, f->chunks_out);
    if (ms->count > 0)
        printf(
            ",\"repeat\":%zu,\"ms\":%.5f,\"ms_min\":%.5f,\"ms_p90\":%.5f,\"gb_s\":%.1f,\"floor_ratio\":%.2f",
            ms->count, median, bench_quantile(ms, 0), bench_quantile(ms, 0.9),
            (double)f->bytes / median * 1e-6, median / floor_ms);
    printf(",\"bytes\":%llu,\"floor_ms\":%.5f,\"scratch_bytes\":%llu,\"peak_bytes\":%llu}\n",
           (unsigned long long)f->bytes, floor_ms, (unsigned long long)engine.last_bytes,
           (unsigned long long)device.peak_bytes);
    fflush(stdout);
}

static vx_err bench_op(struct topology *t, enum topology_op op, uint64_t repeat)
{
    struct bench_samples ms = {0};
    struct topology_figures figures;
    vx_err err;
    VX_TRY(topology_prepare(t, op));
    VX_TRY(topology_run(t, op));
    VX_TRY(topology_check(t, op));
    topology_count(t, op, &figures);
    topology_forget(t);
    for (uint64_t k = 0; k <= repeat; k++) { /* the first warms up */
        const double start = bench_now_ms();
        VX_TRY(topology_run(t, op));
        const double end = bench_now_ms();
        if (k > 0)
            bench_samples_add(&ms, end - start);
        topology_forget(t);
    }
    print_line(t, op, &ms, &figures);
fail:
    if (err != VX_OK)
        fprintf(stderr, "bench_topology: %s on %s %d: %s: %s\n", topology_op_name(op), shape_name(t->kind),
                t->dim, vx_err_name(err), t->detail.text);
    topology_forget(t);
    topology_drop(t);
    bench_samples_fini(&ms);
    return err;
}

static vx_err run(const struct options *o, struct topology *t)
{
    vx_err err;
    VX_TRY(vx_device_open(&o->device, &t->device, &t->detail));
    VX_TRY(vx_engine_create(t->device, &t->engine, &t->detail));
    const double start = bench_now_ms();
    VX_TRY(topology_open(t));
    fprintf(stderr, "bench_topology: %s %d ready after %.1f s\n", shape_name(t->kind), t->dim,
            (bench_now_ms() - start) * 1e-3);
    for (int op = 0; op < N_OPS; op++)
        if (is_wanted(o, t, (enum topology_op)op))
            VX_TRY(bench_op(t, (enum topology_op)op, o->repeat));
fail:
    if (err != VX_OK && t->detail.text[0])
        fprintf(stderr, "bench_topology: %s\n", t->detail.text);
    if (t->engine) {
        topology_close(t);
        vx_engine_destroy(t->engine);
    }
    if (t->device)
        vx_device_close(t->device);
    return err;
}

int main(int argc, char **argv)
{
    static struct topology t;
    struct options o;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(USAGE, stdout);
        return 0;
    }
    if (!parse_options(argc, argv, &o, &t)) {
        fputs(USAGE, stderr);
        return 2;
    }
    return run(&o, &t) == VX_OK ? 0 : 1;
}
