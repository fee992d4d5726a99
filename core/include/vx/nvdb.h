/*
 * nvdb.h - maps to and from NanoVDB files (.nvdb, ABI 32).
 *
 * VX_NVDB_INDEX, "nvdb": a grid of type OnIndex whose active voxels are the map's voxels with a value, and
 * blind data: one item an index (0 = background, n = the voxel that NanoVDB numbers n):
 *     tsdf      f32, distance in metres, positive outside       (TSDF maps)
 *     weight    f32, 0 .. 255                                   (TSDF maps)
 *     log_odds  f32, > 0 occupied, < 0 free                     (occupancy maps)
 *     colour    RGBA8, 0 where there is none              (maps with colour)
 *     vx:value  u32, the map's own packed value
 *     vx:colour, vx:label   u32, packed                    (maps with colour, labels)
 *     vx:map, vx:tile, vx:free   parameters, free tiles, free voxels (core/README.md)
 * Nothing is lost: a map that is exported and imported has the same digest.  Other programs see values and
 * weights; what is known to be free is in vx:* alone.
 *
 * VX_NVDB_FLOAT, "nvdb-float": a dense grid of floats for tools that know no index grids (old magic numbers,
 * no checksum).  TSDF: a level set of distances in metres, background = truncation.  Occupancy: log-odds,
 * class FogVolume, background 0.  Every voxel without a value is inactive and holds the background: the
 * format has no word for unknown, and what is known to be free cannot be told from it.  Weights, colours and
 * labels are lost.
 *
 * A voxel (i, j, k) of the map is the voxel (i, j, k) of the grid; the grid's transform takes it to its
 * centre.
 */
#ifndef VX_NVDB_H
#define VX_NVDB_H

#include "vx/query.h"

enum vx_nvdb_format { VX_NVDB_INDEX = 0, VX_NVDB_FLOAT = 1 };
/* What of a map is exported; one of the two that it does not hold is refused. */
enum vx_nvdb_layer { VX_NVDB_ANY = 0, VX_NVDB_TSDF = 1, VX_NVDB_OCCUPANCY = 2 };

/* May be asked to stop, and told how far it is; both may be NULL.  Called on the caller's thread. */
struct vx_nvdb_watch {
    bool (*cancelled)(void *context);
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};

struct vx_nvdb_export {
    enum vx_nvdb_format format;
    enum vx_nvdb_layer layer;
    uint64_t min_epoch; /* this epoch or a newer one */
    uint64_t max_bytes; /* a larger file is refused before anything is written; 0 = any size */
    struct vx_nvdb_watch watch;
};

/* What a file holds. */
struct vx_nvdb_summary {
    uint64_t n_bytes;
    uint64_t n_voxels; /* active voxels of the grid */
    uint64_t n_leaves;
};

/*
 * Writes the newest epoch to a file that is empty and open for reading and writing.  Frames go on meanwhile.
 * The file is written in several places and read once for its checksum; memory is bounded (some 24 MiB, and
 * 32 bytes a chunk).  reply, out: may be NULL.
 * Errors: VX_E_INVALID the layer; VX_E_STALE min_epoch; VX_E_CANCELLED; VX_E_EXHAUSTED max_bytes, the disk is
 * full, more nodes than the format counts, or scratch over the cap; VX_E_UNAVAILABLE another failure of the
 * file; VX_E_NOMEM; VX_E_DEVICE.  Thread: any, beside the writer; blocks.
 */
vx_err vx_nvdb_write(struct vx_map *map, const struct vx_nvdb_export *options, int fd,
                     struct vx_nvdb_summary *out, struct vx_reply *reply, struct vx_detail *detail);

struct vx_nvdb_import {
    const char *grid;    /* which grid of the file; NULL or "" = the only one */
    const char *channel; /* which blind data holds the values of an index grid; NULL or "" = the only one */
    float weight;        /* of voxels that come without one, 0 .. 255 */
    bool has_mode;       /* params.mode is the caller's word; else the file decides, then TSDF */
    bool has_weighting;  /* so is params.weighting; else the file decides, then params.weighting */
    /* Truncation, distances, budget and limit of the new map; voxel size and origin come from the file.
     * truncation_voxels 0: from the file, else 3.  esdf_max_distance_m 0: from the file, else 10 voxels. */
    struct vx_map_params params;
    struct vx_nvdb_watch watch;
};

/*
 * Makes a map of a grid in the first n_bytes of a file.  Every number of the file is checked before it is
 * used, and the file need not be trusted; it must not change meanwhile.  What comes of it:
 *   our own index grid            the map as it was, digest included, with the channels that the file has
 *   OnIndex grid with one channel its values (clamped to the truncation; log-odds), `weight`
 *   OnIndex grid alone            value 0, weight 0: active, without a surface
 *   Float grid                    active voxels, values clamped to the truncation, `weight`
 * Inactive voxels become unknown, never free.  Numbering with gaps is taken as it says.
 * *out: the new map, epoch 1; NULL on any error.  summary may be NULL.
 * Errors: VX_E_INVALID a malformed file, or something that no map can be (words say what); VX_E_DATA_LOSS cut
 * short, or the checksum is wrong; VX_E_VERSION another major version; VX_E_UNIMPLEMENTED compressed, or a
 * type that is not read; VX_E_NOT_FOUND no grid or channel of that name; VX_E_EXHAUSTED the map's limit or
 * the device's cap; VX_E_CANCELLED; VX_E_UNAVAILABLE the file cannot be read; those of vx_map_create.
 * Thread: any; blocks.
 */
vx_err vx_nvdb_read(struct vx_device *device, const char *name, const struct vx_nvdb_import *options, int fd,
                    uint64_t n_bytes, struct vx_map **out, struct vx_nvdb_summary *summary,
                    struct vx_detail *detail);

#endif
