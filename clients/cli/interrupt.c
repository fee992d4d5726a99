/* What SIGINT asked for; main.c sets it, whatever takes long looks at it. */
#include "cli.h"

#include <signal.h>

static volatile sig_atomic_t interrupted;

void cli_interrupt(void)
{
    interrupted = 1;
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}
