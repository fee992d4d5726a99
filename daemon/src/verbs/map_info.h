/*
 * map_info.h - MAP_INFO_REPLY, which answers MAP_INFO and MAP_CREATE.
 */
#ifndef VXD_MAP_INFO_H
#define VXD_MAP_INFO_H

#include "map.h"

void vxd_map_reply_from_info(const struct vx_map_info *info, struct vx_reply *out);
/* Sends it and frees the request. */
void vxd_map_info_send(struct vxd_request *request, const struct vxd_map *map,
                       const struct vx_map_info *info);

void vxd_map_memory_fill(const struct vx_map_memory *memory, Voxeld__V1__MapMemory *out);

#endif
