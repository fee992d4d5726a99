/*
 * grid.h - index grids: immutable sets of voxels with a number for each voxel, and the operators that make
 * new ones.
 *
 * A grid holds topology only.  Values live in arrays of the caller in device memory ("sidecars"), one entry
 * for each voxel number; vx_grid_inject and its kin carry them from one grid to another.  Layout and
 * numbering: kernels/body/index_grid.h.  Every call gives the same bytes on every backend.
 *
 * An engine owns a queue and the memory that a call of an operator works in.  A call returns when its work is
 * done. Memory is counted against the device's cap; a refused call leaves everything as it was.
 *
 * Thread: an engine is used by one thread at a time; a grid may be read by any number of engines of its
 * device.
 */
#ifndef VX_GRID_H
#define VX_GRID_H

#include "body/index_grid.h"
#include "vx/device.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_map;
struct vx_engine;
struct vx_grid;

/* Voxel coordinates are in [-VX_GRID_RANGE, VX_GRID_RANGE). */
enum { VX_GRID_RANGE = 1 << 27, VX_GRID_MAX_RADIUS = 8 };

/* *out is the caller's until vx_engine_destroy, which must precede vx_device_close.
 * Errors: VX_E_NOMEM, VX_E_EXHAUSTED, VX_E_DEVICE. */
vx_err vx_engine_create(struct vx_device *device, struct vx_engine **out, struct vx_detail *detail);
void vx_engine_destroy(struct vx_engine *engine);

struct vx_engine_stats {
    uint64_t last_bytes; /* most scratch memory that the last call held at once */
    uint64_t peak_bytes; /* most that any call held */
};
void vx_engine_get_stats(const struct vx_engine *engine, struct vx_engine_stats *out);
/* The engine's queue, for kernels of the caller between two calls. */
struct vxk_queue *vx_engine_queue(struct vx_engine *engine);

/* Device memory for sidecars and coordinates, counted against the cap as long as it is held.  bytes > 0.
 * Errors: VX_E_EXHAUSTED, VX_E_NOMEM, VX_E_DEVICE.  Thread: any. */
vx_err vx_engine_alloc(struct vx_engine *engine, uint64_t bytes, void **out, struct vx_detail *detail);
void vx_engine_free(struct vx_engine *engine, void *ptr);

/* ------------------------------------------------------------------ grids */

struct vx_grid_info {
    uint64_t n_voxels;
    uint32_t n_leaves; /* 8^3 voxels, those with a voxel */
    uint32_t n_chunks; /* 128^3 voxels, those with a voxel */
    uint64_t bytes;    /* device memory held, room that was not needed included */
};

/* No call that reads the grid may be running.  NULL is allowed. */
void vx_grid_destroy(struct vx_grid *grid);
void vx_grid_get_info(const struct vx_grid *grid, struct vx_grid_info *out);
/* The arrays, for kernels; valid until the grid is destroyed. */
const struct vxk_index_grid *vx_grid_view(const struct vx_grid *grid);

/* Coordinates of voxels first .. first + n - 1 to ijk[n][3] (host).  Errors: VX_E_INVALID beyond the end. */
vx_err vx_grid_download(struct vx_engine *engine, const struct vx_grid *grid, uint64_t first, uint64_t n,
                        int32_t *ijk, struct vx_detail *detail);
/* SHA-256 over keys, words and leaf masks (not over table slots and room): equal exactly for equal sets. */
vx_err vx_grid_digest(struct vx_engine *engine, const struct vx_grid *grid, uint8_t digest[32],
                      struct vx_detail *detail);

/*
 * Every operator below makes a new grid *out, the caller's until vx_grid_destroy; *out is NULL on error.
 *
 * Errors: VX_E_INVALID (detail names the argument); VX_E_EXHAUSTED the memory cap, or more than 2^20 chunks
 * or 2^32 - 2 leaves; VX_E_NOMEM; VX_E_DEVICE.  Thread: the engine's; blocks until the work is done. Source:
 * DESIGN section 2; Sifakis et al., "Dynamic GPU Sparse Grids and Voxel-sequential Processing in NanoVDB",
 * 2026, section 3.
 */

struct vx_voxels {
    const int32_t *ijk; /* [n][3] */
    uint64_t n;
    bool on_device; /* device memory (vx_engine_alloc); else host memory, uploaded in parts */
};
/* The set of all coordinates in n_batches arrays, in any order, with any number of duplicates; at most 2^33
 * in all. Coordinates outside the range are refused (VX_E_INVALID "ijk"). */
vx_err vx_grid_from_voxels(struct vx_engine *engine, const struct vx_voxels *batches, uint32_t n_batches,
                           struct vx_grid **out, struct vx_detail *detail);

enum vx_layer { VX_ACTIVE = 0, VX_FREE = 1 };
/* The active voxels of a map's newest epoch, or its free ones (tiles included). */
vx_err vx_grid_from_map(struct vx_engine *engine, struct vx_map *map, enum vx_layer layer,
                        struct vx_grid **out, struct vx_detail *detail);

/* A neighbourhood: the faces; faces and edges; or the box of radius 1 .. VX_GRID_MAX_RADIUS (26 neighbours =
 * 1). */
enum vx_shape { VX_FACES = 6, VX_EDGES = 18, VX_BOX = 26 };
/* All voxels that are in the neighbourhood of a voxel of the grid, itself included; clipped at the range's
 * end. radius is 1 for VX_FACES and VX_EDGES. */
vx_err vx_grid_dilate(struct vx_engine *engine, const struct vx_grid *grid, enum vx_shape shape,
                      uint32_t radius, struct vx_grid **out, struct vx_detail *detail);
/* The voxels whose whole neighbourhood is in the grid; what is beyond the range's end is not. */
vx_err vx_grid_erode(struct vx_engine *engine, const struct vx_grid *grid, enum vx_shape shape,
                     uint32_t radius, struct vx_grid **out, struct vx_detail *detail);
/* Voxels of at least one of n grids, n = 1 .. VX_GRID_MAX_MERGE. */
enum { VX_GRID_MAX_MERGE = 8 };
vx_err vx_grid_merge(struct vx_engine *engine, const struct vx_grid *const *grids, uint32_t n,
                     struct vx_grid **out, struct vx_detail *detail);
/* Voxels of both; of a that are not in b. */
vx_err vx_grid_intersect(struct vx_engine *engine, const struct vx_grid *a, const struct vx_grid *b,
                         struct vx_grid **out, struct vx_detail *detail);
vx_err vx_grid_difference(struct vx_engine *engine, const struct vx_grid *a, const struct vx_grid *b,
                          struct vx_grid **out, struct vx_detail *detail);
/* Keeps the voxels whose bit is set in keep[n_leaves][8] (device memory, aligned to 16 bytes; as the leaves'
 * masks; other bits are ignored). */
vx_err vx_grid_prune(struct vx_engine *engine, const struct vx_grid *grid, const uint64_t *keep,
                     struct vx_grid **out, struct vx_detail *detail);
/* Voxels floor(v / 2), and all eight children 2 v + {0,1}^3.  A grid whose children are beyond the range is
 * refused (VX_E_INVALID "grid"). */
vx_err vx_grid_coarsen(struct vx_engine *engine, const struct vx_grid *grid, struct vx_grid **out,
                       struct vx_detail *detail);
vx_err vx_grid_refine(struct vx_engine *engine, const struct vx_grid *grid, struct vx_grid **out,
                      struct vx_detail *detail);

/* ------------------------------------------------------------------ values */

enum vx_value { VX_V_U8 = 0, VX_V_I8, VX_V_U16, VX_V_I16, VX_V_U32, VX_V_I32, VX_V_F32, VX_V_U64, VX_V_F64 };
/* Bytes of a value; 0 for a number that is no type. */
uint32_t vx_value_bytes(enum vx_value type);

/* A sidecar in device memory: component c of voxel v is at data + v * voxel_stride + c * component_stride
 * (bytes, multiples of the value's size; 0 means packed, voxel by voxel). */
struct vx_channel {
    void *data;
    enum vx_value type;
    uint32_t n_components; /* at least 1 */
    uint64_t voxel_stride, component_stride;
};

enum vx_compare { VX_LESS = 0, VX_LESS_EQUAL, VX_GREATER, VX_GREATER_EQUAL, VX_EQUAL, VX_NOT_EQUAL };
/* Keeps the voxels whose value compares true with the threshold: `value OP threshold`, in double (64-bit
 * integers are compared as such: the threshold must be a whole number in their range).  A NaN value compares
 * false, except for VX_NOT_EQUAL.  The channel has one component.  */
vx_err vx_grid_prune_values(struct vx_engine *engine, const struct vx_grid *grid,
                            const struct vx_channel *values, enum vx_compare op, double threshold,
                            struct vx_grid **out, struct vx_detail *detail);

/*
 * Copies the values of the voxels that both grids hold.  The others of `dst` get `initial` (host memory, one
 * value for each component, of the channel's type), or keep what they have where `initial` is NULL.  Both
 * channels have one type and number of components.  src and dst may not overlap.
 *
 * Errors: VX_E_INVALID, VX_E_DEVICE.  Thread: the engine's; blocks until the work is done.
 */
vx_err vx_grid_inject(struct vx_engine *engine, const struct vx_grid *src, const struct vx_channel *from,
                      const struct vx_grid *dst, const struct vx_channel *to, const void *initial,
                      struct vx_detail *detail);

/*
 * Values of a coarse grid from those of a fine one: over the children that the fine grid holds.  A coarse
 * voxel without any gets `initial`, or keeps what it has (NULL).  All types but the 64-bit ones; sums of f32
 * are taken in voxel order and divided once, means of integers are rounded to nearest, halves up.  f32 minima
 * and maxima pass NaN over unless all are.  VX_ANY: 1 where a child is not 0, else 0.
 *
 * Errors, Thread: as vx_grid_inject.
 */
enum vx_restrict { VX_MEAN = 0, VX_MIN, VX_MAX, VX_ANY };
vx_err vx_grid_restrict(struct vx_engine *engine, const struct vx_grid *fine, const struct vx_channel *from,
                        const struct vx_grid *coarse, const struct vx_channel *to, enum vx_restrict how,
                        const void *initial, struct vx_detail *detail);

/*
 * Values of a fine grid from those of a coarse one.  VX_NEAREST: the parent's (any type).  VX_TRILINEAR: of
 * the eight coarse centres round the fine one, weights 27, 9, 3, 1 of 64, over those that the coarse grid
 * holds, divided by the sum of their weights; all types but the 64-bit ones, integers are rounded to nearest,
 * halves up.  A fine voxel without any gets `initial`, or keeps what it has (NULL).
 *
 * Errors, Thread: as vx_grid_inject.
 */
enum vx_prolong { VX_NEAREST = 0, VX_TRILINEAR };
vx_err vx_grid_prolong(struct vx_engine *engine, const struct vx_grid *coarse, const struct vx_channel *from,
                       const struct vx_grid *fine, const struct vx_channel *to, enum vx_prolong how,
                       const void *initial, struct vx_detail *detail);

#endif
