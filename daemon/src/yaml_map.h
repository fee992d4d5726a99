/*
 * yaml_map.h - reads a YAML file of nested sections and scalars, one call for each key, with positions in
 * errors.
 *
 * Takes one document of at most 256 KiB whose root is a mapping.  Refused, with line and column: lists,
 * aliases, anchors, tags, more than 32 levels, a key that comes twice in a section, keys that are not plain
 * words.
 */
#ifndef VXD_YAML_MAP_H
#define VXD_YAML_MAP_H

#include "base/vx_err.h"

#include <stddef.h>

enum { VXD_YAML_MAX_BYTES = 256 * 1024, VXD_YAML_MAX_DEPTH = 32 };

/*
 * path: "limits.sessions".  value: the scalar's text, or NULL for a section that begins here.  An error stops
 * the reading; its words get the position in front.
 */
typedef vx_err (*vxd_yaml_take)(void *context, const char *path, const char *value, struct vx_detail *detail);

/* name: of the file, for messages.  An empty document is fine.
 * Errors: VX_E_INVALID; those of `take`; VX_E_NOMEM. */
vx_err vxd_yaml_map(const char *name, const char *text, size_t n, vxd_yaml_take take, void *context,
                    struct vx_detail *detail);

#endif
