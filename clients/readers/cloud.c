#include "cloud.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

vx_err vxc__cloud_resize(struct vxc__cloud *cloud, uint64_t n, const char *name, struct vx_detail *detail)
{
    if (n > VXC__POINTS_MAX)
        return vx_fail(detail, VX_E_EXHAUSTED, "points",
                       "%s holds %llu points, at most %d are read as one frame", name, (unsigned long long)n,
                       VXC__POINTS_MAX);
    if (n > cloud->capacity) {
        float *grown = realloc(cloud->xyz, (size_t)n * 3 * sizeof *grown);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "points", "no memory for %s", name);
        cloud->xyz = grown;
        grown = realloc(cloud->fourth, (size_t)n * sizeof *grown);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "points", "no memory for %s", name);
        cloud->fourth = grown;
        cloud->capacity = (size_t)n;
    }
    cloud->n = (size_t)n;
    cloud->has_times = false;
    return VX_OK;
}

vx_err vxc__cloud_want_times(struct vxc__cloud *cloud, const char *name, struct vx_detail *detail)
{
    if (cloud->n > cloud->time_capacity) {
        int64_t *grown = realloc(cloud->time_ns, cloud->n * sizeof *grown);
        if (!grown)
            return vx_fail(detail, VX_E_NOMEM, "points", "no memory for %s", name);
        cloud->time_ns = grown;
        cloud->time_capacity = cloud->n;
    }
    cloud->has_times = true;
    return VX_OK;
}

void vxc__cloud_fini(struct vxc__cloud *cloud)
{
    free(cloud->xyz);
    free(cloud->fourth);
    free(cloud->time_ns);
    memset(cloud, 0, sizeof *cloud);
}

vx_err vxc__cloud_read_raw(struct vxc__cloud *cloud, const char *path, int n_columns,
                           struct vx_detail *detail)
{
    enum { BLOCK_POINTS = 4096, MAX_COLUMNS = 8 };
    float block[BLOCK_POINTS * MAX_COLUMNS];
    const char *name = vxc__base_name(path);
    FILE *file;
    uint64_t size;
    VX_TRY_RET(vxc__open_file(path, &file, &size, detail));
    const uint64_t stride = (uint64_t)n_columns * sizeof *block;
    vx_err err = VX_OK;
    if (size % stride != 0)
        err =
            vx_fail(detail, VX_E_INVALID, "points",
                    "%s has %llu bytes, no whole number of points of %llu bytes: cut off, or another layout",
                    name, (unsigned long long)size, (unsigned long long)stride);
    if (err == VX_OK)
        err = vxc__cloud_resize(cloud, size / stride, name, detail);
    for (size_t i = 0; err == VX_OK && i < cloud->n;) {
        const size_t left = cloud->n - i, want = left < BLOCK_POINTS ? left : BLOCK_POINTS;
        if (fread(block, (size_t)stride, want, file) != want) {
            err = vx_fail(detail, VX_E_INVALID, "points", "%s ends near point %zu of %zu", name, i, cloud->n);
            break;
        }
        for (size_t k = 0; k < want; k++) {
            memcpy(cloud->xyz + 3 * (i + k), block + (size_t)n_columns * k, 3 * sizeof *block);
            if (n_columns > 3)
                cloud->fourth[i + k] = block[(size_t)n_columns * k + 3];
        }
        i += want;
    }
    fclose(file);
    return err;
}
