/*
 * nvdb_case.h - maps to files in memory and back, for tests of the NanoVDB formats.
 */
#ifndef NVDB_CASE_H
#define NVDB_CASE_H

#include "core_test.h"
#include "nvdb_format.h"
#include "vx/nvdb.h"

/* A file of one grid, which begins at byte grid_at. */
struct nvdb_file {
    uint8_t *bytes;
    uint64_t n, grid_at;
};

/* Options that leave everything to the file. */
struct vx_nvdb_import nvdb_defaults(void);

/* A map of random frames of every sensor round `centre`; 0 of them leave it empty. */
struct vx_map *nvdb_random_map(struct vx_device *d, enum vx_mode mode, double voxel_m, const double centre[3],
                               const double origin_m[3], int n_frames, uint64_t seed);

/* Exports; fails the test on an error. */
void nvdb_export(struct vx_map *map, enum vx_nvdb_format format, struct nvdb_file *out);
/* Reads a file from disk; false: it is not there. */
bool nvdb_load(const char *path, struct nvdb_file *out);
/* The bytes of an open file. */
void nvdb_take(int fd, struct nvdb_file *out);
void nvdb_free(struct nvdb_file *file);
/* A file that holds n bytes and is open; the caller closes it. */
int nvdb_fd(const void *bytes, uint64_t n);
/* Imports from memory. */
vx_err nvdb_import(struct vx_device *d, const struct vx_nvdb_import *options, const void *bytes, uint64_t n,
                   struct vx_map **out, struct vx_detail *detail);

/* Takes the checksum of the file's only grid off (all ones). */
void nvdb_no_sum(struct nvdb_file *file);
/* Copies of parts of the grid. */
struct vx__nvdb_head nvdb_head(const struct nvdb_file *file);
/* Blind data of that name, its data's place from the grid's start in *at; false: none. */
bool nvdb_blind(const struct nvdb_file *file, const char *name, struct vx__nvdb_blind *out, uint64_t *at);

#endif
