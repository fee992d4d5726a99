#include "config.h"
#include "log.h"
#include "yaml_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { TEXT, WORD, COUNT, REAL, CPU };

struct key {
    const char *name;
    enum type type;
    size_t offset;
    double min, max;           /* COUNT, REAL, CPU */
    const char *const *choice; /* WORD: NULL-terminated, value = index */
    const char *preset;
};

static const char *const backends[] = {"auto", "cpu", "cuda", "guard", NULL};
static const char *const levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const weightings[] = {"inverse_square", "constant", NULL};

#define AT(member) offsetof(struct vxd_config, member)
#define GIB        1073741824.0
#define TIB        1099511627776.0

static const struct key keys[] = {
    {"ipc_dir", TEXT, AT(ipc_dir), 1, 79, NULL, "/run/voxeld"},
    {"backend", WORD, AT(backend), 0, 0, backends, "auto"},
    {"device", COUNT, AT(device), 0, 63, NULL, "0"},
    {"threads", COUNT, AT(threads), 0, 1024, NULL, "0"},
    {"memory_cap_bytes", COUNT, AT(memory_cap_bytes), 0, 64 * TIB, NULL, "0"},
    {"spool_dir", TEXT, AT(spool_dir), 1, 255, NULL, "/var/tmp"},
    {"log_level", WORD, AT(log_level), 0, 0, levels, "info"},
    {"esdf_period_ms", COUNT, AT(esdf_period_ms), 0, 60000, NULL, "20"},
    {"query_cpu", CPU, AT(query_cpu), 0, 1023, NULL, "any"},
    {"query_awake_ms", COUNT, AT(query_awake_ms), 0, 60000, NULL, "0"},
    {"limits.sessions", COUNT, AT(limits.sessions), 1, 4096, NULL, "64"},
    {"limits.maps", COUNT, AT(limits.maps), 1, 256, NULL, "32"},
    {"limits.streams_per_session", COUNT, AT(limits.streams_per_session), 1, 256, NULL, "16"},
    {"limits.streams_per_map", COUNT, AT(limits.streams_per_map), 1, 4096, NULL, "256"},
    {"limits.requests_per_session", COUNT, AT(limits.requests_per_session), 1, 1024, NULL, "64"},
    {"limits.credit_frames", COUNT, AT(limits.credit_frames), 1, 256, NULL, "4"},
    {"limits.credit_bytes", COUNT, AT(limits.credit_bytes), 65536, 16 * GIB, NULL, "67108864"},
    {"limits.staging_bytes", COUNT, AT(limits.staging_bytes), 65536, TIB, NULL, "1073741824"},
    {"limits.query_items", COUNT, AT(limits.query_items), 1, 67108864, NULL, "4194304"},
    {"limits.transfer_bytes", COUNT, AT(limits.transfer_bytes), 1048576, TIB, NULL, "2147483648"},
    {"limits.spool_bytes", COUNT, AT(limits.spool_bytes), 1048576, 64 * TIB, NULL, "68719476736"},
    {"limits.transfer_idle_s", COUNT, AT(limits.transfer_idle_s), 1, 86400, NULL, "60"},
    {"limits.upload_parts", COUNT, AT(limits.upload_parts), 1, 64, NULL, "8"},
    {"limits.egress_bytes", COUNT, AT(limits.egress_bytes), 2097152, GIB, NULL, "8388608"},
    {"map_defaults.weighting", WORD, AT(map_defaults.weighting), 0, 0, weightings, "inverse_square"},
    {"map_defaults.truncation_voxels", REAL, AT(map_defaults.truncation_voxels), 1, 16, NULL, "3"},
    {"map_defaults.esdf_max_distance_m", REAL, AT(map_defaults.esdf_max_distance_m), 0, 6300, NULL, "0"},
    {"map_defaults.frame_budget_bytes", COUNT, AT(map_defaults.frame_budget_bytes), 0, 64 * TIB, NULL, "0"},
    {"map_defaults.limit_bytes", COUNT, AT(map_defaults.limit_bytes), 0, 64 * TIB, NULL, "0"},
    {"map_defaults.half_life_s", REAL, AT(map_defaults.half_life_s), 0, 100000, NULL, "0"},
    {"map_defaults.forget_radius_m", REAL, AT(map_defaults.forget_radius_m), 0, 1000000, NULL, "0"},
    {"map_defaults.colour", COUNT, AT(map_defaults.colour), 0, 1, NULL, "0"},
    {"map_defaults.label", COUNT, AT(map_defaults.label), 0, 1, NULL, "0"},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static const struct key *find(const char *name)
{
    for (int i = 0; i < N_KEYS; ++i)
        if (!strcmp(keys[i].name, name))
            return &keys[i];
    return NULL;
}

static vx_err set_word(const struct key *key, int *out, const char *value, struct vx_detail *detail)
{
    char all[128] = "";
    for (int i = 0; key->choice[i]; ++i) {
        if (!strcmp(key->choice[i], value)) {
            *out = i;
            return VX_OK;
        }
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", key->choice[i]);
    }
    return vx_fail(detail, VX_E_INVALID, key->name, "must be one of %s, is '%.60s'", all, value);
}

static vx_err set_number(const struct key *key, void *out, const char *value, struct vx_detail *detail)
{
    char *end;
    errno = 0;
    bool ok;
    const char *what = key->type == REAL    ? "a number"
                       : key->type == COUNT ? "a whole number"
                                            : "'any' or a whole number";
    double real = 0;
    uint64_t count = 0;
    if (key->type == CPU && !strcmp(value, "any")) {
        *(uint64_t *)out = VXD_ANY_CPU;
        return VX_OK;
    }
    if (key->type != REAL) {
        ok = value[0] >= '0' && value[0] <= '9';
        count = strtoull(value, &end, 10);
        real = (double)count;
    } else {
        ok = value[0] != 0 && !strpbrk(value, "xXpPnN \t");
        real = strtod(value, &end);
    }
    if (!ok || *end || errno || !(real >= key->min && real <= key->max))
        return vx_fail(detail, VX_E_INVALID, key->name, "must be %s from %.15g to %.15g, is '%.60s'", what,
                       key->min, key->max, value);
    if (key->type != REAL)
        *(uint64_t *)out = count;
    else
        *(double *)out = real;
    return VX_OK;
}

static vx_err set_value(struct vxd_config *config, const struct key *key, const char *value,
                        struct vx_detail *detail)
{
    void *out = (char *)config + key->offset;
    if (key->type == WORD)
        return set_word(key, out, value, detail);
    if (key->type != TEXT)
        return set_number(key, out, value, detail);
    size_t n = strlen(value);
    if ((double)n < key->min || (double)n > key->max)
        return vx_fail(detail, VX_E_INVALID, key->name, "must have %g to %g bytes, has %zu", key->min,
                       key->max, n);
    memcpy(out, value, n + 1);
    return VX_OK;
}

void vxd_config_default(struct vxd_config *config)
{
    memset(config, 0, sizeof *config);
    for (int i = 0; i < N_KEYS; ++i)
        (void)set_value(config, &keys[i], keys[i].preset, NULL); /* a unit test reads every preset */
}

vx_err vxd_config_set(struct vxd_config *config, const char *name, const char *value,
                      struct vx_detail *detail)
{
    const struct key *key = find(name);
    if (!key)
        return vx_fail(detail, VX_E_INVALID, name, "there is no such key");
    return set_value(config, key, value, detail);
}

/* ------------------------------------------------------------------ YAML */

static vx_err take(void *context, const char *path, const char *value, struct vx_detail *detail)
{
    if (find(path) && !value)
        return vx_fail(detail, VX_E_INVALID, path, "needs a value, not a section");
    if (find(path))
        return vxd_config_set(context, path, value, detail);
    size_t n = strlen(path);
    for (int i = 0; i < N_KEYS; ++i) {
        if (!strncmp(keys[i].name, path, n) && keys[i].name[n] == '.') {
            if (!value)
                return VX_OK;
            return vx_fail(detail, VX_E_INVALID, path, "is a section with keys of its own, not a value");
        }
    }
    return vx_fail(detail, VX_E_INVALID, path, "there is no such key");
}

vx_err vxd_config_parse(struct vxd_config *config, const char *name, const char *text, size_t n,
                        struct vx_detail *detail)
{
    return vxd_yaml_map(name, text, n, take, config, detail);
}

vx_err vxd_config_read(struct vxd_config *config, const char *path, struct vx_detail *detail)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return vx_fail(detail, VX_E_NOT_FOUND, "config", "%.200s: %s", path, strerror(errno));
    char *text = malloc(VXD_YAML_MAX_BYTES + 1);
    size_t n = text ? fread(text, 1, VXD_YAML_MAX_BYTES + 1, file) : 0;
    vx_err err;
    if (!text)
        err = vx_fail(detail, VX_E_NOMEM, "config", "no memory to read %.200s", path);
    else if (ferror(file))
        err = vx_fail(detail, VX_E_NOT_FOUND, "config", "%.200s can't be read", path);
    else
        err = vxd_config_parse(config, path, text, n, detail);
    free(text);
    fclose(file);
    return err;
}

int vxd_config_show(const struct vxd_config *config, unsigned i, char *out, size_t n)
{
    if (i >= N_KEYS)
        return 0;
    const void *at = (const char *)config + keys[i].offset;
    switch (keys[i].type) {
    case TEXT:
        snprintf(out, n, "%s=%s", keys[i].name, (const char *)at);
        break;
    case WORD:
        snprintf(out, n, "%s=%s", keys[i].name, keys[i].choice[*(const int *)at]);
        break;
    case CPU:
        if (*(const uint64_t *)at == VXD_ANY_CPU) {
            snprintf(out, n, "%s=any", keys[i].name);
            break;
        }
        /* fall through */
    case COUNT:
        snprintf(out, n, "%s=%" PRIu64, keys[i].name, *(const uint64_t *)at);
        break;
    case REAL:
        snprintf(out, n, "%s=%.17g", keys[i].name, *(const double *)at);
        break;
    }
    return 1;
}
