#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char vxd_help_text[] =
    "usage: voxeld [options]\n"
    "\n"
    "The mapping daemon: takes depth and LiDAR frames over ZeroMQ, keeps the maps, answers queries.\n"
    "\n"
    "  --config FILE         read FILE (YAML; config/voxeld.yaml lists every key)\n"
    "  --ipc-dir DIR         folder of the sockets; made with mode 0750 if it isn't there\n"
    "  --backend NAME        auto, cpu, cuda or guard\n"
    "  --device N            which GPU\n"
    "  --memory-cap BYTES    most that all maps together may use; 0 = three quarters of what is free\n"
    "  --check-config        read everything, say the first thing that is wrong, and end\n"
    "  --version, --help\n"
    "\n"
    "Environment: VOXELD_IPC_DIR as --ipc-dir, VOXELD_THREADS threads of the cpu backend.  Options win over "
    "the\n"
    "environment, and that over the file.\n"
    "\n"
    "SIGTERM or SIGINT: accept nothing more, finish accepted frames, end.  A second one ends at once.\n"
    "Exit status: 0 ended as asked; 1 could not start or failed; 2 wrong usage or configuration.\n";

struct option {
    const char *name, *key;
};

static const struct option options[] = {{"--ipc-dir", "ipc_dir"},
                                        {"--backend", "backend"},
                                        {"--device", "device"},
                                        {"--memory-cap", "memory_cap_bytes"}};
static const struct option variables[] = {{"VOXELD_IPC_DIR", "ipc_dir"}, {"VOXELD_THREADS", "threads"}};
enum { N_OPTIONS = sizeof options / sizeof *options, N_VARIABLES = sizeof variables / sizeof *variables };

static vx_err set(struct vxd_config *config, const struct option *option, const char *value,
                  struct vx_detail *detail)
{
    struct vx_detail why = {{0}, {0}};
    vx_err err = vxd_config_set(config, option->key, value, &why);
    if (err != VX_OK)
        return vx_fail(detail, err, "", "%s: %.250s", option->name, why.text);
    return VX_OK;
}

/* The value of argv[*i], as "--name=value" or the next argument; NULL when argv[*i] is another option. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n))
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    if (argv[*i][n])
        return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}

static vx_err read_one(int argc, char **argv, int *i, struct vxd_config *config, struct vx_detail *detail)
{
    const char *word = argv[*i];
    if (value_of("--config", argc, argv, i))
        return VX_OK; /* was read first */
    for (int k = 0; k < N_OPTIONS; ++k) {
        const char *value = value_of(options[k].name, argc, argv, i);
        if (value)
            return set(config, &options[k], value, detail);
    }
    return vx_fail(detail, VX_E_INVALID, "", "'%.80s' is no option; see voxeld --help", word);
}

static bool is_flag(const char *word, enum vxd_action *action)
{
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        *action = VXD_HELP;
    else if (!strcmp(word, "--version"))
        *action = VXD_VERSION;
    else if (!strcmp(word, "--check-config"))
        *action = *action == VXD_RUN ? VXD_CHECK_CONFIG : *action;
    else
        return false;
    return true;
}

static vx_err read_file(int argc, char **argv, struct vxd_config *config, struct vx_detail *detail)
{
    for (int i = 1; i < argc; ++i) {
        const char *path = value_of("--config", argc, argv, &i);
        if (path && !path[0])
            return vx_fail(detail, VX_E_INVALID, "", "--config needs the name of a file");
        if (path)
            return vxd_config_read(config, path, detail);
    }
    return VX_OK;
}

vx_err vxd_options_read(int argc, char **argv, struct vxd_config *config, enum vxd_action *action,
                        struct vx_detail *detail)
{
    *action = VXD_RUN;
    vxd_config_default(config);
    VX_TRY_RET(read_file(argc, argv, config, detail));
    for (int k = 0; k < N_VARIABLES; ++k) {
        const char *value = getenv(variables[k].name);
        if (value && value[0])
            VX_TRY_RET(set(config, &variables[k], value, detail));
    }
    for (int i = 1; i < argc; ++i)
        if (!is_flag(argv[i], action))
            VX_TRY_RET(read_one(argc, argv, &i, config, detail));
    return VX_OK;
}
