/*
 * config.h - what can be set, its defaults, and reading it from YAML.
 *
 * One table (config.c) lists every key with type, range and place; reading, the check of config/voxeld.yaml
 * against the built-in defaults and the words of errors all come from it.
 */
#ifndef VXD_CONFIG_H
#define VXD_CONFIG_H

#include "base/vx_err.h"

#include <stddef.h>
#include <stdint.h>

enum vxd_backend { VXD_BACKEND_AUTO, VXD_BACKEND_CPU, VXD_BACKEND_CUDA, VXD_BACKEND_GUARD };

#define VXD_ANY_CPU UINT64_MAX

struct vxd_limits {
    uint64_t sessions;
    uint64_t maps;
    uint64_t streams_per_session;
    uint64_t streams_per_map;
    uint64_t requests_per_session;
    uint64_t credit_frames;
    uint64_t credit_bytes;
    uint64_t staging_bytes;
    uint64_t query_items;
    uint64_t transfer_bytes;
    uint64_t spool_bytes;
    uint64_t transfer_idle_s;
    uint64_t upload_parts;
    uint64_t egress_bytes;
};

struct vxd_map_defaults {
    int weighting; /* enum vx_weighting */
    double truncation_voxels;
    double esdf_max_distance_m;
    uint64_t frame_budget_bytes;
    uint64_t limit_bytes;
    double half_life_s;
    double forget_radius_m;
    uint64_t colour, label; /* 0 or 1 */
};

struct vxd_config {
    char ipc_dir[80]; /* a socket's path has at most 107 bytes */
    int backend;      /* enum vxd_backend */
    uint64_t device;
    uint64_t threads;
    uint64_t memory_cap_bytes;
    char spool_dir[256];
    int log_level; /* enum vxd_log_level */
    uint64_t esdf_period_ms;
    uint64_t query_cpu; /* or VXD_ANY_CPU */
    uint64_t query_awake_ms;
    struct vxd_limits limits;
    struct vxd_map_defaults map_defaults;
};

void vxd_config_default(struct vxd_config *config);

/*
 * Reads YAML text over *config; keys that are not named keep their value.
 * Errors: VX_E_INVALID; the detail has the key, and "NAME:LINE:COLUMN: " before the words.  *config is then
 * undefined.
 */
vx_err vxd_config_parse(struct vxd_config *config, const char *name, const char *text, size_t n,
                        struct vx_detail *detail);
/* The same for a file.  Errors: VX_E_NOT_FOUND; VX_E_INVALID, also when it is larger than 256 KiB. */
vx_err vxd_config_read(struct vxd_config *config, const char *path, struct vx_detail *detail);

/* Sets one key ("limits.sessions") from text, for the command line and the environment.
 * Errors: VX_E_INVALID no such key, or not a value for it. */
vx_err vxd_config_set(struct vxd_config *config, const char *key, const char *value,
                      struct vx_detail *detail);

/* For tests: writes key i of the table as "key=value" into out; 0 when there are no more. */
int vxd_config_show(const struct vxd_config *config, unsigned i, char *out, size_t n);

#endif
