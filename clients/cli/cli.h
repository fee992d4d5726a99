/*
 * cli.h - what every command of voxelctl shares: options, the connection, errors, and output as text or JSON.
 */
#ifndef VOXELCTL_CLI_H
#define VOXELCTL_CLI_H

#include "voxeld/client.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes; `voxelctl help` lists them. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1, /* refused by the daemon, or a file could not be read or written */
    CLI_USAGE = 2,
    CLI_NO_DAEMON = 3,
    CLI_SOME_REFUSED = 4, /* play: some frames are not in the map */
    CLI_NOTHING = 5,      /* play: no frame is in the map */
    CLI_INTERRUPTED = 130
};

struct cli {
    const char *ipc_dir; /* NULL: the default */
    bool json;
    uint32_t timeout_ms; /* 0: the library's */
    int argc, at;
    char **argv;
    bool only_words;  /* behind "--" */
    const char *help; /* of the command that runs */
    struct vxc_client *client;
};

/* ------------------------------------------------------------------ options */

struct cli_option {
    const char *name; /* "voxel-size" */
    char letter;      /* 'o', or 0 */
    bool has_value;
};

enum { CLI_END = -1, CLI_WORD = -2, CLI_BAD = -3, CLI_HELP = -4 };

/*
 * The next option or word of the command line: an index into `options`, CLI_WORD (value = the word), CLI_END,
 * CLI_HELP (help was printed) or CLI_BAD (the error was printed).  Options of every command (--json,
 * --ipc-dir, --timeout, --help) are taken here.
 */
int cli_next(struct cli *cli, const struct cli_option *options, size_t n, const char **value);
/* For what cli_next gives below CLI_WORD: the exit code that the command ends with. */
int cli_option_exit(int got);
/* Prints "voxelctl: words" and where help is; returns CLI_USAGE. */
int cli_usage(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A finite number in lo .. hi; else prints what is wrong with option `name`. */
bool cli_number(struct cli *cli, const char *name, const char *text, double lo, double hi, double *out);
bool cli_whole(struct cli *cli, const char *name, const char *text, uint64_t lo, uint64_t hi, uint64_t *out);
/* n numbers separated by commas. */
bool cli_numbers(struct cli *cli, const char *name, const char *text, double *out, int n);

/* ------------------------------------------------------------------ connection and errors */

/* Connects; SIGINT then ends the call that waits.  Returns an exit code, and has printed what is wrong. */
int cli_connect(struct cli *cli);
/* Remembers that SIGINT came; for a signal handler. */
void cli_interrupt(void);
/* Whether it came. */
bool cli_interrupted(void);
/* Prints an error of the library or of the readers (JSON: an object on stdout as well); returns the exit
 * code. */
int cli_error(struct cli *cli, vx_err err, const struct vx_detail *detail);
/* An error of ours, such as a file that cannot be written. */
int cli_fail(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a map that the daemon does not have: says how to make one. */
int cli_map_error(struct cli *cli, vx_err err, const struct vx_detail *detail, const char *map);

/* ------------------------------------------------------------------ JSON */

/* Writes one JSON value to a file, member by member; commas and quotes are its business. */
struct json {
    FILE *file;
    bool comma;
};

void json_begin(struct json *j, const char *key,
                char bracket); /* key NULL: in an array or at the top; '{' or '[' */
void json_end(struct json *j, char bracket);
void json_text(struct json *j, const char *key, const char *value);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_number(struct json *j, const char *key, double value); /* null when not finite */
void json_bool(struct json *j, const char *key, bool value);
void json_vector(struct json *j, const char *key, const double *value, int n);
/* uuid, epoch, ... of an answer, as members. */
void json_state(struct json *j, const struct vxc_map_state *state);
void json_counts(struct json *j, const char *key, const struct vxc_counts *counts);
/* Line end; the exit code is CLI_FAILED when stdout is full or closed. */
int json_finish(struct json *j);
/* The whole object of an error: {"error": {code, field, message}}. */
void json_error(const char *code, const char *field, const char *message);

/* ------------------------------------------------------------------ text */

enum { CLI_TEXT_MAX = 48 };
/* "1.50 MiB" and "12,345,678"; out has CLI_TEXT_MAX bytes and is returned. */
const char *cli_bytes(uint64_t n_bytes, char *out);
const char *cli_count(uint64_t n, char *out);
const char *cli_hex(const uint8_t *bytes, size_t n, char *out); /* out: 2 n + 1 bytes */
/* Seconds on a clock that only goes forward. */
double cli_now_s(void);

/* A progress bar on stderr: only on a terminal, without --json and NO_COLOR. */
struct cli_bar {
    bool on, drawn;
    double drawn_s;
};
void cli_bar_init(struct cli_bar *bar, const struct cli *cli);
/* Draws done of total and words behind it, ten times a second at most; last: always, and a line end. */
void cli_bar_draw(struct cli_bar *bar, uint64_t done, uint64_t total, bool last, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Ends the line of a bar that will not be finished. */
void cli_bar_break(struct cli_bar *bar);

/* ------------------------------------------------------------------ commands */

int cmd_map(struct cli *cli);
int cmd_play(struct cli *cli);
int cmd_mesh(struct cli *cli);
int cmd_query(struct cli *cli);
int cmd_slice(struct cli *cli);
int cmd_explain(struct cli *cli);
int cmd_costmap(struct cli *cli);
int cmd_view(struct cli *cli);
int cmd_stats(struct cli *cli);
int cmd_ping(struct cli *cli);
int cmd_shutdown(struct cli *cli);

#endif
