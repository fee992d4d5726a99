/*
 * nvdb_input.h - a NanoVDB file that need not be trusted: bounded reads, the grid asked for, its heads, its
 * checksum, its blind data (internal to core).
 */
#ifndef VX__NVDB_INPUT_H
#define VX__NVDB_INPUT_H

#include "nvdb_format.h"
#include "vx/nvdb.h"

enum { VX__NVDB_MAX_BLIND = 256, VX__NVDB_NAME_MAX = 1024 };

struct vx__nvdb_input {
    int fd;
    uint64_t n_bytes; /* of the file */
    struct vx_detail *detail;
    /* the grid; bytes from the file's start */
    uint64_t grid_at, end;
    bool has_meta; /* false: a bare grid without a file head */
    struct vx__nvdb_meta meta;
    char name[VX__NVDB_NAME_MAX + 1]; /* for words: printable */
    struct vx__nvdb_head head;
    bool flat;               /* type Float, else OnIndex */
    struct vx__nvdb_box box; /* of the root */
    uint32_t n_tiles;
    float background;
    uint64_t root_at, tiles_at, upper_at, lower_at, leaf_at, nodes_end;
    uint32_t leaf_bytes;
    struct vx__nvdb_blind *blind; /* [head.grid.n_blind], checked; `at` counts from the file's start */
};

/*
 * Finds the grid of that name (NULL or "": the only one), and checks its heads and blind heads.
 * Free with vx__nvdb_input_fini, also after an error.  Errors: as vx_nvdb_read.
 */
vx_err vx__nvdb_input_init(struct vx__nvdb_input *in, int fd, uint64_t n_bytes, const char *grid,
                           struct vx_detail *detail);
void vx__nvdb_input_fini(struct vx__nvdb_input *in);
/* Compares the checksum, if there is one.  total: of the progress told, in bytes of the file. */
vx_err vx__nvdb_input_check_sum(const struct vx__nvdb_input *in, const struct vx_nvdb_watch *watch,
                                uint64_t total);
/* Reads n bytes at `at` of the file.  Errors: VX_E_DATA_LOSS beyond its end; VX_E_UNAVAILABLE. */
vx_err vx__nvdb_input_read(const struct vx__nvdb_input *in, uint64_t at, void *out, uint64_t n);
vx_err vx__nvdb_watch(const struct vx_nvdb_watch *watch, uint64_t done, uint64_t total, const char *what,
                      struct vx_detail *detail);

/* Reads forward through a part of the file. */
struct vx__nvdb_cursor {
    const struct vx__nvdb_input *in;
    uint64_t at; /* of the buffer */
    uint32_t have;
    uint8_t *buffer;
};
enum { VX__NVDB_CURSOR_BYTES = 1 << 19 };
/* Errors: VX_E_NOMEM. */
vx_err vx__nvdb_cursor_init(struct vx__nvdb_cursor *c, const struct vx__nvdb_input *in);
void vx__nvdb_cursor_fini(struct vx__nvdb_cursor *c);
/* n <= VX__NVDB_CURSOR_BYTES bytes at `at` to out; behind the last place it costs no system call. */
vx_err vx__nvdb_cursor_get(struct vx__nvdb_cursor *c, uint64_t at, void *out, uint32_t n);

#endif
