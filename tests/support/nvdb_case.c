#include "nvdb_case.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct vx_nvdb_import nvdb_defaults(void)
{
    struct vx_nvdb_import o = {.weight = 1};
    vx_map_params_default(&o.params);
    o.params.truncation_voxels = 0;
    return o;
}

/* A wall and the space in front of it: free tiles. */
static void see_wall(struct vx_map *map, double voxel_m, const double centre[3], uint64_t *seed)
{
    const struct frame_shape shape = {.width = 96, .height = 72, .reach_m = 60 * voxel_m};
    struct test_frame t;
    struct vx_frame_result result;
    test_frame_init(&t, VX_DEPTH, seed, &shape, centre);
    for (uint32_t i = 0; i < shape.width * shape.height; i++)
        ((float *)t.data)[i] = (float)(45 * voxel_m);
    ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
    test_frame_fini(&t);
}

struct vx_map *nvdb_random_map(struct vx_device *d, enum vx_mode mode, double voxel_m, const double centre[3],
                               const double origin_m[3], int n_frames, uint64_t seed)
{
    struct vx_map_params p = test_params(voxel_m, mode);
    struct vx_map *map;
    memcpy(p.origin_m, origin_m, sizeof p.origin_m);
    map = test_map(d, &p);
    if (n_frames)
        see_wall(map, voxel_m, centre, &seed);
    for (int i = 1; i < n_frames; i++) {
        struct test_frame t;
        struct vx_frame_result result;
        test_any_frame(&t, &seed, 60 * voxel_m, centre, 30 * voxel_m);
        ck_ok(vx_map_integrate(map, &t.f, &result, NULL));
        test_frame_fini(&t);
    }
    return map;
}

static void locate_grid(struct nvdb_file *f)
{
    uint32_t name_bytes;
    memcpy(&name_bytes, f->bytes + sizeof(struct vx__nvdb_file) + offsetof(struct vx__nvdb_meta, name_bytes),
           4);
    f->grid_at = sizeof(struct vx__nvdb_file) + sizeof(struct vx__nvdb_meta) + name_bytes;
}

void nvdb_take(int fd, struct nvdb_file *out)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    out->n = (uint64_t)st.st_size;
    out->bytes = malloc(out->n + 1);
    ck_assert_ptr_nonnull(out->bytes);
    for (uint64_t at = 0; at < out->n;) {
        ssize_t k = pread(fd, out->bytes + at, out->n - at, (off_t)at);
        ck_assert(k > 0);
        at += (uint64_t)k;
    }
    locate_grid(out);
}

void nvdb_export(struct vx_map *map, enum vx_nvdb_format format, struct nvdb_file *out)
{
    struct vx_nvdb_export o = {.format = format};
    struct vx_nvdb_summary summary;
    struct vx_detail detail = {0};
    int fd = memfd_create("nvdb", 0);
    vx_err err = vx_nvdb_write(map, &o, fd, &summary, NULL, &detail);
    ck_assert_msg(err == VX_OK, "export: %s %s", vx_err_name(err), detail.text);
    nvdb_take(fd, out);
    ck_assert_uint_eq(out->n, summary.n_bytes);
    close(fd);
}

bool nvdb_load(const char *path, struct nvdb_file *out)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    nvdb_take(fd, out);
    close(fd);
    return true;
}

void nvdb_free(struct nvdb_file *f)
{
    free(f->bytes);
    f->bytes = NULL;
}

int nvdb_fd(const void *bytes, uint64_t n)
{
    int fd = memfd_create("nvdb", 0);
    ck_assert_int_ge(fd, 0);
    for (uint64_t at = 0; at < n;) {
        ssize_t k = pwrite(fd, (const uint8_t *)bytes + at, n - at, (off_t)at);
        ck_assert(k > 0);
        at += (uint64_t)k;
    }
    return fd;
}

vx_err nvdb_import(struct vx_device *d, const struct vx_nvdb_import *options, const void *bytes, uint64_t n,
                   struct vx_map **out, struct vx_detail *detail)
{
    int fd = nvdb_fd(bytes, n);
    vx_err err = vx_nvdb_read(d, "imported", options, fd, n, out, NULL, detail);
    close(fd);
    return err;
}

void nvdb_no_sum(struct nvdb_file *f)
{
    memset(f->bytes + f->grid_at + offsetof(struct vx__nvdb_grid, head_crc), 0xff, 8);
}

struct vx__nvdb_head nvdb_head(const struct nvdb_file *f)
{
    struct vx__nvdb_head h;
    memcpy(&h, f->bytes + f->grid_at, sizeof h);
    return h;
}

bool nvdb_blind(const struct nvdb_file *f, const char *name, struct vx__nvdb_blind *out, uint64_t *at)
{
    struct vx__nvdb_head h = nvdb_head(f);
    for (uint32_t i = 0; i < h.grid.n_blind; i++) {
        uint64_t head_at = (uint64_t)h.grid.blind_at + i * sizeof *out;
        memcpy(out, f->bytes + f->grid_at + head_at, sizeof *out);
        *at = head_at + (uint64_t)out->at;
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}
