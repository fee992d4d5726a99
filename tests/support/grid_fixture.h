/*
 * grid_fixture.h - a map made by hand: voxels in, a pinned snapshot out, without the integrator.
 *
 * Defines `struct vx_map` and the functions of core/src/snapshot.h, so that a test links the readers of core
 * (distance field, queries, mesh) and nothing else of it.  The voxels stay readable on the host for oracles.
 */
#ifndef GRID_FIXTURE_H
#define GRID_FIXTURE_H

#include "snapshot.h"
#include "vxk.h"

struct grid_fixture;

/* Backend of a test program's first argument (cpu, guard, cuda; default cpu).  Ends the program with 77 and
 * the reason when this machine or this build lacks it. */
enum vxk_backend grid_fixture_backend(int argc, char **argv);

/* Opens a device and makes an empty map.  cap_bytes: of scratch and held memory together, 0 = none.  Ends the
 * test program when the backend does not open. */
struct grid_fixture *grid_fixture_create(enum vxk_backend backend, int n_threads,
                                         const struct vx_map_params *params, uint64_t cap_bytes);
/* Frees all; returns the number of blocks that the readers did not give back (0 when right). */
unsigned grid_fixture_destroy(struct grid_fixture *f);
struct vx_map *grid_fixture_map(struct grid_fixture *f);

/* Host side.  kind: VXK_UNKNOWN, VXK_FREE or VXK_ACTIVE (with a value). */
void grid_fixture_set(struct grid_fixture *f, int32_t x, int32_t y, int32_t z, int kind, uint32_t value);
int grid_fixture_get(const struct grid_fixture *f, int32_t x, int32_t y, int32_t z, uint32_t *value);
void grid_fixture_clear(struct grid_fixture *f);
/* Calls visit for every voxel that is not unknown. */
void grid_fixture_each(const struct grid_fixture *f,
                       void (*visit)(void *context, int32_t x, int32_t y, int32_t z, int kind,
                                     uint32_t value),
                       void *context);
/* Copies the host's voxels to the device as a new epoch. */
void grid_fixture_publish(struct grid_fixture *f);
/* From the newest epoch on, until the next clear, words say when they changed for all that do: the caller
 * sees to it that none becomes empty.  Without this call readers are told that chunks may have gone unseen.
 */
void grid_fixture_date(struct grid_fixture *f);

/* Device memory that readers hold at this moment, and the highest of scratch + held so far. */
uint64_t grid_fixture_held(const struct grid_fixture *f);
uint64_t grid_fixture_peak(const struct grid_fixture *f);
void grid_fixture_set_cap(struct grid_fixture *f, uint64_t cap_bytes);

/* A deterministic generator of numbers. */
uint64_t grid_fixture_random(uint64_t *state);
double grid_fixture_uniform(uint64_t *state, double from, double to);

#endif
