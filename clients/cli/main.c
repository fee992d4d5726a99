/* voxelctl: the command line of voxeld.  Finds the command, runs it, gives its exit code. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "voxelctl - maps, frames and questions for a voxeld daemon\n"
    "\n"
    "usage: voxelctl [--ipc-dir DIR] [--json] [--timeout S] NOUN [VERB] ...\n"
    "\n"
    "  map create NAME --voxel-size M    make an empty map\n"
    "  map list                          all maps\n"
    "  map info|digest|clear|delete NAME facts, content hash, empty it, remove it\n"
    "  map export NAME --format F -o FILE   a NanoVDB file of it\n"
    "  map import NAME FILE              make a map of a NanoVDB file\n"
    "  play PATH --map NAME              stream a dataset into a map\n"
    "  mesh NAME -o FILE.ply             the surface as triangles\n"
    "  query points|spheres|... NAME     distances, boxes, rays, robots along paths, CSV in and out\n"
    "  slice NAME --z Z --png FILE       picture of the distance field at a height\n"
    "  explain NAME X Y Z                why a place is free, occupied or unknown\n"
    "  costmap NAME --min-z A --max-z B -o FILE.pgm   what a ground robot may drive over\n"
    "  view NAME --png FILE              shaded picture of the map\n"
    "  stats                             what the daemon does\n"
    "  ping                              round trip to the daemon\n"
    "  shutdown                          finish accepted frames, then end the daemon\n"
    "  version                           version of this program\n"
    "  help [NOUN]                       this, or the manual of a noun (also NOUN --help)\n"
    "\n"
    "options of every command\n"
    "  --ipc-dir DIR   folder with the daemon's sockets; default $VOXELD_IPC_DIR, else /run/voxeld\n"
    "  --json          one JSON object on stdout instead of text; of an error {\"error\": {code, field, "
    "message}}\n"
    "  --timeout S     give up when the daemon shows no progress for S seconds; default 600\n"
    "\n"
    "environment\n"
    "  VOXELD_IPC_DIR  as --ipc-dir\n"
    "  NO_COLOR        no colour and no progress bar\n"
    "\n"
    "exit codes\n"
    "  0    done\n"
    "  1    the daemon refused, or a file could not be read or written\n"
    "  2    wrong usage\n"
    "  3    no daemon answers, or it went away before it answered\n"
    "  4    play: some frames were refused (the rest is in the map)\n"
    "  5    play: no frame went into the map\n"
    "  130  interrupted\n";

static const struct command {
    const char *name;
    int (*run)(struct cli *cli);
} COMMANDS[] = {
    {"map", cmd_map},     {"play", cmd_play}, {"mesh", cmd_mesh},         {"query", cmd_query},
    {"slice", cmd_slice}, {"view", cmd_view}, {"explain", cmd_explain},   {"costmap", cmd_costmap},
    {"stats", cmd_stats}, {"ping", cmd_ping}, {"shutdown", cmd_shutdown},
};

/* ------------------------------------------------------------------ connection */

static struct vxc_client *volatile interruptible;

/* A signal just before a call that blocks (a full pipe) does not end it; one every second does. */
static void on_alarm(int number)
{
    (void)number;
    alarm(1);
}

static void on_signal(int number)
{
    cli_interrupt();
    struct vxc_client *client = interruptible;
    if (client)
        vxc_interrupt(client);
    on_alarm(number);
}

int cli_connect(struct cli *cli)
{
    const struct vxc_connect_options options = {.name = "voxelctl/" VOXELD_VERSION,
                                                .timeout_ms = cli->timeout_ms};
    struct vx_detail detail;
    const vx_err err = vxc_connect(cli->ipc_dir, &options, &cli->client, &detail);
    if (err != VX_OK) {
        const int code = cli_error(cli, err, &detail);
        if (code == CLI_NO_DAEMON)
            fprintf(stderr, "start one with: voxeld --ipc-dir %s\n",
                    cli->ipc_dir ? cli->ipc_dir : vxc_default_ipc_dir());
        return code;
    }
    interruptible = cli->client;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    return CLI_OK;
}

/* ------------------------------------------------------------------ errors */

static int exit_of(vx_err err, const struct vx_detail *detail)
{
    if (err == VX_E_CANCELLED)
        return CLI_INTERRUPTED;
    const bool gone = strcmp(detail->field, "ipc_dir") == 0 || strcmp(detail->field, "connection") == 0;
    return err == VX_E_UNAVAILABLE && gone ? CLI_NO_DAEMON : CLI_FAILED;
}

int cli_error(struct cli *cli, vx_err err, const struct vx_detail *detail)
{
    if (cli->json)
        json_error(vx_err_name(err), detail->field, detail->text);
    fprintf(stderr, "voxelctl: %s [%s%s%s]\n", detail->text[0] ? detail->text : vx_err_text(err),
            vx_err_name(err), detail->field[0] ? " " : "", detail->field);
    return exit_of(err, detail);
}

int cli_fail(struct cli *cli, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (cli->json)
        json_error("FAILED", "", text);
    fprintf(stderr, "voxelctl: %s\n", text);
    return CLI_FAILED;
}

int cli_map_error(struct cli *cli, vx_err err, const struct vx_detail *detail, const char *map)
{
    const int code = cli_error(cli, err, detail);
    if (err == VX_E_NOT_FOUND && strcmp(detail->field, "map") == 0)
        fprintf(stderr,
                "make it with: voxelctl map create %s --voxel-size 0.05   (voxelctl map list shows those "
                "that exist)\n",
                map);
    return code;
}

/* ------------------------------------------------------------------ main */

/* The noun: the first word that is no common option. */
static int find_noun(struct cli *cli, const char **noun)
{
    cli->help = HELP;
    const int got = cli_next(cli, NULL, 0, noun);
    if (got == CLI_END) {
        fputs(HELP, stderr);
        return CLI_BAD;
    }
    return got;
}

static int print_version(struct cli *cli)
{
    const char *value;
    cli->help = HELP;
    const int got = cli_next(cli, NULL, 0, &value); /* options may stand behind the noun */
    if (got == CLI_WORD)
        return cli_usage(cli, "'%s' is one word too many", value);
    if (got != CLI_END)
        return cli_option_exit(got);
    if (!cli->json) {
        puts("voxelctl " VOXELD_VERSION);
        return CLI_OK;
    }
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "version", VOXELD_VERSION);
    json_end(&j, '}');
    return json_finish(&j);
}

static int run(struct cli *cli)
{
    const char *noun;
    const int got = find_noun(cli, &noun);
    if (got != CLI_WORD)
        return cli_option_exit(got);
    const bool help = strcmp(noun, "help") == 0;
    if (strcmp(noun, "version") == 0)
        return print_version(cli);
    if (help) {
        if (cli_next(cli, NULL, 0, &noun) != CLI_WORD) {
            fputs(HELP, stdout);
            return CLI_OK;
        }
        static char option[] = "--help";
        static char *words[] = {option, NULL};
        cli->argc = 1;
        cli->argv = words;
        cli->at = 0;
    }
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (strcmp(noun, COMMANDS[i].name) == 0)
            return COMMANDS[i].run(cli);
    cli->help = NULL;
    return cli_usage(cli, "there is no command '%s'", noun);
}

int main(int argc, char **argv)
{
    struct cli cli = {.argc = argc, .at = 1, .argv = argv};
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("voxelctl " VOXELD_VERSION);
        return CLI_OK;
    }
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, not a death */
    signal(SIGXFSZ, SIG_IGN); /* so is a limit on the size of files */
    int code = run(&cli);
    interruptible = NULL;
    vxc_disconnect(cli.client);
    if (fflush(stdout) != 0 && code == CLI_OK) {
        fprintf(stderr, "voxelctl: cannot write to stdout: %s\n", strerror(errno));
        code = CLI_FAILED;
    }
    return code;
}
