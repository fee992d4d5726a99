#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { COMMON_IPC_DIR, COMMON_JSON, COMMON_TIMEOUT, COMMON_HELP, N_COMMON };

static const struct cli_option COMMON[N_COMMON] = {
    [COMMON_IPC_DIR] = {"ipc-dir", 0, true},
    [COMMON_JSON] = {"json", 0, false},
    [COMMON_TIMEOUT] = {"timeout", 0, true},
    [COMMON_HELP] = {"help", 'h', false},
};

/* --json may stand behind the word that is wrong. */
static bool wants_json(const struct cli *cli)
{
    bool wanted = cli->json;
    for (int i = cli->at; i < cli->argc && !cli->only_words; i++)
        wanted |= strcmp(cli->argv[i], "--json") == 0;
    return wanted;
}

int cli_usage(struct cli *cli, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (wants_json(cli))
        json_error("INVALID_ARGUMENT", "usage", text);
    fprintf(stderr, "voxelctl: %s (%s says more)\n", text, cli->help ? "--help" : "voxelctl help");
    return CLI_USAGE;
}

int cli_option_exit(int got)
{
    return got == CLI_HELP ? CLI_OK : CLI_USAGE;
}

/* Index of an option by its name (n bytes) or letter; -1. */
static int find(const struct cli_option *options, size_t n_options, const char *name, size_t n)
{
    for (size_t i = 0; i < n_options; i++) {
        if (n > 0 ? strlen(options[i].name) == n && strncmp(options[i].name, name, n) == 0
                  : options[i].letter != 0 && options[i].letter == name[0])
            return (int)i;
    }
    return -1;
}

/* Takes a common option; false when its value is bad. */
static bool take_common(struct cli *cli, int index, const char *value)
{
    double seconds;
    switch (index) {
    case COMMON_IPC_DIR:
        cli->ipc_dir = value;
        return true;
    case COMMON_JSON:
        cli->json = true;
        return true;
    default:
        if (!cli_number(cli, "--timeout", value, 0.001, 1e6, &seconds))
            return false;
        cli->timeout_ms = (uint32_t)ceil(seconds * 1000);
        return true;
    }
}

int cli_next(struct cli *cli, const struct cli_option *options, size_t n, const char **value)
{
    while (cli->at < cli->argc) {
        const char *word = cli->argv[cli->at++];
        *value = word;
        /* "-" is a file name, and "-1.5" a number. */
        const bool is_word = word[0] != '-' || word[1] == '\0' || strchr("0123456789.", word[1]);
        if (cli->only_words || is_word)
            return CLI_WORD;
        if (strcmp(word, "--") == 0) {
            cli->only_words = true;
            continue;
        }
        const bool is_long = word[1] == '-';
        const char *name = word + 1 + is_long;
        const size_t length = is_long ? strcspn(name, "=") : 0;
        const char *attached =
            is_long ? (name[length] == '=' ? name + length + 1 : NULL) : (name[1] ? name + 1 : NULL);
        int index = find(options, n, name, length);
        const int common = index < 0 ? find(COMMON, N_COMMON, name, length) : -1;
        if (index < 0 && common < 0)
            return cli_usage(cli, "there is no option %s", word), CLI_BAD;
        const struct cli_option *option = index >= 0 ? &options[index] : &COMMON[common];
        if (!option->has_value && attached)
            return cli_usage(cli, "option %s takes no value", word), CLI_BAD;
        if (option->has_value && !attached && cli->at >= cli->argc)
            return cli_usage(cli, "option %s needs a value", word), CLI_BAD;
        *value = !option->has_value ? NULL : attached ? attached : cli->argv[cli->at++];
        if (index >= 0)
            return index;
        if (common == COMMON_HELP) {
            fputs(cli->help ? cli->help : "", stdout);
            return CLI_HELP;
        }
        if (!take_common(cli, common, *value))
            return CLI_BAD;
    }
    return CLI_END;
}

/* ------------------------------------------------------------------ values */

bool cli_number(struct cli *cli, const char *name, const char *text, double lo, double hi, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || errno == ERANGE || !isfinite(*out)) {
        cli_usage(cli, "%s: '%s' is no number", name, text);
        return false;
    }
    if (*out < lo || *out > hi) {
        cli_usage(cli, "%s: %g is outside %g .. %g", name, *out, lo, hi);
        return false;
    }
    return true;
}

bool cli_whole(struct cli *cli, const char *name, const char *text, uint64_t lo, uint64_t hi, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno == ERANGE || *out < lo || *out > hi) {
        cli_usage(cli, "%s: '%s' is no whole number in %llu .. %llu", name, text, (unsigned long long)lo,
                  (unsigned long long)hi);
        return false;
    }
    return true;
}

bool cli_numbers(struct cli *cli, const char *name, const char *text, double *out, int n)
{
    const char *p = text;
    for (int i = 0; i < n; i++) {
        char *end;
        out[i] = strtod(p, &end);
        if (end == p || !isfinite(out[i]) || *end != (i + 1 < n ? ',' : '\0')) {
            cli_usage(cli, "%s: '%s' is not %d numbers with commas between them", name, text, n);
            return false;
        }
        p = end + 1;
    }
    return true;
}
