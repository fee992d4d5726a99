/* map_files.h - what `voxelctl map` hands to its verbs in other files. */
#ifndef VOXELCTL_MAP_FILES_H
#define VOXELCTL_MAP_FILES_H

#include "cli.h"

struct map_args {
    const char *name, *file;
    struct vxc_map_params params;
    enum vxc_file_format format;
    enum vxc_layer layer;
    const char *grid, *channel;
    bool has_mode, has_weight;
    double weight;
    struct vxc_region region;
    uint64_t region_id;
};

/* Each returns an exit code. */
int map_export(struct cli *cli, const struct map_args *args);
int map_import(struct cli *cli, const struct map_args *args);
int map_protect(struct cli *cli, const struct map_args *args);
int map_unprotect(struct cli *cli, const struct map_args *args);

/* map_regions.c: the lines of `map info` on memory, decay and protected regions. */
void map_print_upkeep(const struct vxc_map_info *info);
void map_json_upkeep(struct json *j, const struct vxc_map_info *info);
void map_json_memory(struct json *j, const struct vxc_map_memory *memory);

/* cmd_map.c */
const char *map_mode_name(enum vxc_map_mode mode);
int map_json_info(const struct vxc_map_info *info);

#endif
