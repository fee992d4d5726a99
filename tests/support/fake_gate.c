#include "fake_gate.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

void fake_gate_shut(void)
{
    snprintf(path, sizeof path, "/tmp/vxd-gate-%d", (int)getpid());
    unlink(path);
    setenv("FAKE_CORE_GATE", path, 1);
}

void fake_gate_open(void)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
}

void fake_gate_remove(void)
{
    unlink(path);
}
