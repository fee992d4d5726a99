/* voxelctl map export|import */
#include "map_files.h"
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file on its way, and the bar. */
struct transfer {
    struct outfile out;
    int in; /* file descriptor */
    const char *path;
    const char *running; /* what the daemon does meanwhile */
    struct cli_bar bar;
};

static void show(void *context, enum vxc_stage stage, uint64_t done, uint64_t total)
{
    struct transfer *t = context;
    char text[CLI_TEXT_MAX], all[CLI_TEXT_MAX];
    if (total > 0)
        cli_bar_draw(&t->bar, done, total, false, "%s %s of %s",
                     stage == VXC_STAGE_RUNNING ? t->running : "transfer", cli_bytes(done, text),
                     cli_bytes(total, all));
}

/* ------------------------------------------------------------------ export */

static vx_err take(void *context, const void *bytes, size_t n, struct vx_detail *detail)
{
    struct transfer *t = context;
    if (fwrite(bytes, 1, n, t->out.file) == n)
        return VX_OK;
    return vx_fail(detail, VX_E_UNAVAILABLE, "output", "cannot write %s: %s", t->path, strerror(errno));
}

static int report_export(struct cli *cli, const struct map_args *a, const struct vxc_export_info *info,
                         double seconds, FILE *to)
{
    const char *format = a->format == VXC_FILE_NVDB ? "nvdb" : "nvdb-float";
    if (cli->json) {
        struct json j = {to, false};
        json_begin(&j, NULL, '{');
        json_text(&j, "map", a->name);
        json_text(&j, "file", a->file);
        json_text(&j, "format", format);
        json_u64(&j, "bytes", info->n_bytes);
        json_u64(&j, "voxels", info->n_voxels);
        json_u64(&j, "leaves", info->n_leaves);
        json_state(&j, &info->state);
        json_number(&j, "seconds", seconds);
        json_end(&j, '}');
        return json_finish(&j);
    }
    char text[CLI_TEXT_MAX];
    fprintf(to, "%s: %s,", a->file, format);
    fprintf(to, " %s voxels", cli_count(info->n_voxels, text));
    fprintf(to, " in %s leaves,", cli_count(info->n_leaves, text));
    fprintf(to, " %s%s\n", cli_bytes(info->n_bytes, text),
            info->n_voxels == 0 ? " (the map has no voxel with a value yet)" : "");
    return CLI_OK;
}

int map_export(struct cli *cli, const struct map_args *a)
{
    struct transfer t = {.path = a->file, .running = "export"};
    const struct vxc_export options = {
        .format = a->format, .layer = a->layer, .take = take, .progress = show, .context = &t};
    struct vxc_export_info info;
    struct vx_detail detail;
    const double start_s = cli_now_s();
    cli_bar_init(&t.bar, cli);
    vx_err err = outfile_open(&t.out, a->file, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    err = vxc_map_export(cli->client, a->name, &options, &info, &detail);
    err = outfile_close(&t.out, err, &detail);
    cli_bar_break(&t.bar);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, a->name);
    return report_export(cli, a, &info, cli_now_s() - start_s, t.out.report);
}

/* ------------------------------------------------------------------ import */

static vx_err give(void *context, uint64_t at, void *out, size_t n, struct vx_detail *detail)
{
    struct transfer *t = context;
    for (size_t done = 0; done < n;) {
        const ssize_t k = pread(t->in, (char *)out + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return vx_fail(detail, VX_E_UNAVAILABLE, "file", "cannot read %s: %s", t->path,
                           k < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)k;
    }
    return VX_OK;
}

static vx_err open_input(struct transfer *t, uint64_t *n_bytes, struct vx_detail *detail)
{
    struct stat st;
    const bool is_stdin = strcmp(t->path, "-") == 0;
    /* not blocking: nobody may ever write to a pipe that has a name */
    t->in = is_stdin ? dup(STDIN_FILENO) : open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->in < 0 || fstat(t->in, &st) != 0)
        return vx_fail(detail, VX_E_NOT_FOUND, "file", "cannot read %s: %s", t->path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return vx_fail(detail, VX_E_INVALID, "file", "%s is a folder", t->path);
    if (!S_ISREG(st.st_mode))
        return vx_fail(
            detail, VX_E_INVALID, "file",
            "%s is a pipe or a device, whose size is not known beforehand: store it in a file, and "
            "import that",
            is_stdin ? "stdin" : t->path);
    *n_bytes = (uint64_t)st.st_size;
    return VX_OK;
}

static int report_import(struct cli *cli, const struct map_args *a, const struct vxc_map_info *info)
{
    char text[CLI_TEXT_MAX];
    if (cli->json)
        return map_json_info(info);
    printf("map %s: from %s,", info->state.name, a->file);
    printf(" %s voxels of %g m, %s", cli_count(info->n_voxels, text), info->params.voxel_size_m,
           map_mode_name(info->params.mode));
    printf(", %s\n", cli_bytes(info->used_bytes, text));
    return CLI_OK;
}

int map_import(struct cli *cli, const struct map_args *a)
{
    struct transfer t = {.in = -1, .path = a->file, .running = "import"};
    struct vxc_import options = {.give = give,
                                 .progress = show,
                                 .context = &t,
                                 .grid = a->grid,
                                 .channel = a->channel,
                                 .has_mode = a->has_mode,
                                 .has_weight = a->has_weight,
                                 .weight = a->weight,
                                 .params = a->params};
    struct vxc_map_info info;
    struct vx_detail detail;
    cli_bar_init(&t.bar, cli);
    vx_err err = open_input(&t, &options.n_bytes, &detail);
    if (err == VX_OK)
        err = vxc_map_import(cli->client, a->name, &options, &info, &detail);
    cli_bar_break(&t.bar);
    if (t.in >= 0)
        close(t.in);
    return err == VX_OK ? report_import(cli, a, &info) : cli_error(cli, err, &detail);
}
