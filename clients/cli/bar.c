/* bar.c - the progress bar of long work. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

void cli_bar_init(struct cli_bar *bar, const struct cli *cli)
{
    const char *no_color = getenv("NO_COLOR");
    *bar = (struct cli_bar){.on = !cli->json && isatty(STDERR_FILENO) && !(no_color && no_color[0])};
}

void cli_bar_draw(struct cli_bar *bar, uint64_t done, uint64_t total, bool last, const char *format, ...)
{
    enum { WIDTH = 40 };
    const double now = cli_now_s();
    if (!bar->on || (!last && bar->drawn && now - bar->drawn_s < 0.1))
        return;
    bar->drawn_s = now;
    bar->drawn = !last;
    char text[WIDTH + 1];
    const double filled = total > 0 ? (double)done / (double)total * WIDTH : WIDTH;
    for (int i = 0; i < WIDTH; i++)
        text[i] = i < filled ? '#' : '.';
    text[WIDTH] = '\0';
    fprintf(stderr, "\r[%s] ", text);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\033[K%s", last ? "\n" : "");
    fflush(stderr);
}

void cli_bar_break(struct cli_bar *bar)
{
    if (bar->drawn)
        fputc('\n', stderr);
    bar->drawn = false;
}
