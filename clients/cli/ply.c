#include "ply.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double FLOAT_LIMIT_M = 128; /* 2^7: floats below it are 7.6e-6 m apart at most */

static void put_u32(uint8_t *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

static void put_f32(uint8_t *out, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(out, bits);
}

static void put_f64(uint8_t *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(out, (uint32_t)bits);
    put_u32(out + 4, (uint32_t)(bits >> 32));
}

/* true when some world coordinate is too large for a float. */
static bool needs_double(const struct vxc_mesh *mesh)
{
    for (size_t i = 0; i < (size_t)mesh->n_vertices * 3; i++)
        if (fabs(mesh->origin_m[i % 3] + (double)mesh->vertices[i]) >= FLOAT_LIMIT_M)
            return true;
    return false;
}

/* Which of its channels the mesh has at some vertex. */
struct ply_channels {
    bool colour, label;
};

static struct ply_channels channels_of(const struct vxc_mesh *mesh)
{
    struct ply_channels has = {false, false};
    for (size_t v = 0; mesh->tints && v < mesh->n_vertices; v++) {
        has.colour |= mesh->tints[v].weight > 0;
        has.label |= mesh->tints[v].label > 0;
    }
    return has;
}

static bool write_vertices(FILE *file, const struct vxc_mesh *mesh, bool wide, struct ply_channels has)
{
    const size_t coordinate_bytes = wide ? 8 : 4;
    for (size_t v = 0; v < mesh->n_vertices; v++) {
        uint8_t record[40];
        size_t bytes = 3 * coordinate_bytes + 12;
        for (size_t a = 0; a < 3; a++) {
            const double world = mesh->origin_m[a] + (double)mesh->vertices[3 * v + a];
            if (wide)
                put_f64(record + 8 * a, world);
            else
                put_f32(record + 4 * a, (float)world);
            put_f32(record + 3 * coordinate_bytes + 4 * a, mesh->normals[3 * v + a]);
        }
        if (has.colour) {
            memcpy(record + bytes, mesh->tints[v].colour, 3);
            bytes += 3;
        }
        if (has.label)
            record[bytes++] = mesh->tints[v].label;
        if (fwrite(record, bytes, 1, file) != 1)
            return false;
    }
    return true;
}

static bool write_triangles(FILE *file, const struct vxc_mesh *mesh)
{
    for (size_t t = 0; t < mesh->n_triangles; t++) {
        uint8_t record[13] = {3};
        for (size_t k = 0; k < 3; k++)
            put_u32(record + 1 + 4 * k, mesh->triangles[3 * t + k]);
        if (fwrite(record, sizeof record, 1, file) != 1)
            return false;
    }
    return true;
}

/* The same as text: the shortest numbers that read back as they are. */
static bool write_text(FILE *file, const struct vxc_mesh *mesh, bool wide, struct ply_channels has)
{
    for (size_t v = 0; v < mesh->n_vertices; v++) {
        for (size_t a = 0; a < 3; a++) {
            const double world = mesh->origin_m[a] + (double)mesh->vertices[3 * v + a];
            fprintf(file, wide ? "%.17g " : "%.9g ", wide ? world : (double)(float)world);
        }
        for (size_t a = 0; a < 3; a++)
            fprintf(file, a < 2 ? "%.9g " : "%.9g", (double)mesh->normals[3 * v + a]);
        for (size_t a = 0; a < 3 && has.colour; a++)
            fprintf(file, " %d", mesh->tints[v].colour[a]);
        if (has.label)
            fprintf(file, " %d", mesh->tints[v].label);
        fputc('\n', file);
    }
    for (size_t t = 0; t < mesh->n_triangles; t++)
        fprintf(file, "3 %u %u %u\n", mesh->triangles[3 * t], mesh->triangles[3 * t + 1],
                mesh->triangles[3 * t + 2]);
    return !ferror(file);
}

vx_err ply_write(FILE *file, const struct vxc_mesh *mesh, bool ascii, struct vx_detail *detail)
{
    const struct ply_channels has = channels_of(mesh);
    const bool wide = needs_double(mesh);
    const char *type = wide ? "double" : "float";
    fprintf(file,
            "ply\nformat %s 1.0\ncomment voxeld map %s epoch %llu, metres\n"
            "element vertex %u\nproperty %s x\nproperty %s y\nproperty %s z\n"
            "property float nx\nproperty float ny\nproperty float nz\n%s%s"
            "element face %u\nproperty list uchar int vertex_indices\nend_header\n",
            ascii ? "ascii" : "binary_little_endian", mesh->state.name, (unsigned long long)mesh->state.epoch,
            mesh->n_vertices, type, type, type,
            has.colour ? "property uchar red\nproperty uchar green\nproperty uchar blue\n" : "",
            has.label ? "property uchar label\n" : "", mesh->n_triangles);
    if (ferror(file) ||
        !(ascii ? write_text(file, mesh, wide, has)
                : write_vertices(file, mesh, wide, has) && write_triangles(file, mesh)) ||
        fflush(file) != 0)
        return vx_fail(detail, VX_E_UNAVAILABLE, "output", "the file cannot be written: %s", strerror(errno));
    return VX_OK;
}
