#include "ipc_dir.h"
#include "log.h"
#include "options.h"
#include "server.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* `auto` takes a GPU when there is one; that it took the CPU is logged, not hidden. */
static vx_err open_device(const struct vxd_config *config, struct vx_device **out, struct vx_detail *detail)
{
    struct vx_device_params params = {.backend = VXK_CPU,
                                      .index = (int)config->device,
                                      .n_threads = (int)config->threads,
                                      .cap_bytes = config->memory_cap_bytes};
    if (config->backend == VXD_BACKEND_AUTO) {
        params.backend = VXK_CUDA;
        vx_err err = vx_device_open(&params, out, detail);
        if (err == VX_OK || (err != VX_E_UNIMPLEMENTED && err != VX_E_UNAVAILABLE))
            return err;
        vxd_log(VXD_LOG_INFO, "no_gpu", "why=\"%s\"", detail->text);
        params.backend = VXK_CPU;
    } else if (config->backend == VXD_BACKEND_CUDA) {
        params.backend = VXK_CUDA;
    } else if (config->backend == VXD_BACKEND_GUARD) {
        params.backend = VXK_GUARD;
    }
    return vx_device_open(&params, out, detail);
}

static vx_err serve(const struct vxd_config *config, struct vx_device *device, struct vx_detail *detail)
{
    static struct vxd_server server;
    struct vx_device_stats stats;
    vx_device_get_stats(device, &stats);
    vx_err err = vxd_server_open(&server, config, device, detail);
    if (err != VX_OK)
        return err;
    vxd_log(VXD_LOG_INFO, "ready", "version=%s ipc_dir=%s backend=%s device=\"%s\" cap_bytes=%llu pid=%ld",
            VOXELD_VERSION, config->ipc_dir, stats.backend, stats.name, (unsigned long long)stats.cap_bytes,
            (long)getpid());
    err = vxd_server_run(&server);
    vxd_server_close(&server);
    return err == VX_OK ? VX_OK : vx_fail(detail, err, "", "the device failed");
}

static vx_err run(const struct vxd_config *config, struct vx_detail *detail)
{
    struct vx_device *device = NULL;
    int lock = -1;
    vx_err err;
    umask(0027);
    signal(SIGPIPE, SIG_IGN);
    VX_TRY(vxd_ipc_dir_take(config->ipc_dir, &lock, detail));
    VX_TRY(open_device(config, &device, detail));
    VX_TRY(serve(config, device, detail));
fail:
    if (device)
        vx_device_close(device);
    if (lock >= 0)
        vxd_ipc_dir_leave(config->ipc_dir, lock);
    return err;
}

int main(int argc, char **argv)
{
    struct vxd_config config;
    enum vxd_action action;
    struct vx_detail detail = {{0}, {0}};
    if (vxd_options_read(argc, argv, &config, &action, &detail) != VX_OK) {
        fprintf(stderr, "voxeld: %s%s%s\n", detail.field, detail.field[0] ? ": " : "", detail.text);
        return EXIT_USAGE;
    }
    if (action == VXD_HELP)
        fputs(vxd_help_text, stdout);
    else if (action == VXD_VERSION)
        puts("voxeld " VOXELD_VERSION);
    if (action != VXD_RUN)
        return 0;
    vxd_log_start((enum vxd_log_level)config.log_level);
    vx_err err = run(&config, &detail);
    if (err != VX_OK)
        vxd_log(VXD_LOG_ERROR, "failed", "code=%s why=\"%s\"", vx_err_name(err), detail.text);
    else
        vxd_log(VXD_LOG_INFO, "stopped", "code=OK");
    vxd_log_stop();
    return err == VX_OK ? 0 : EXIT_FAILED;
}
