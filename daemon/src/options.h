/*
 * options.h - the command line and the environment of voxeld, over the configuration file.
 *
 * The command line wins over the environment (VOXELD_IPC_DIR, VOXELD_THREADS), which wins over the file.
 */
#ifndef VXD_OPTIONS_H
#define VXD_OPTIONS_H

#include "config.h"

#include <stdbool.h>

enum vxd_action { VXD_RUN, VXD_CHECK_CONFIG, VXD_VERSION, VXD_HELP };

extern const char vxd_help_text[];

/* Errors: VX_E_INVALID, VX_E_NOT_FOUND; the detail has words for the user. */
vx_err vxd_options_read(int argc, char **argv, struct vxd_config *config, enum vxd_action *action,
                        struct vx_detail *detail);

#endif
