#include "glb.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GLTF = 0x46546c67, JSON = 0x4e4f534a, BIN = 0x004e4942, HEAD_BYTES = 12, CHUNK_HEAD_BYTES = 8 };
/* The head has a fixed number of numbers and a map's name: it stays far below. */
enum { MOST_JSON = 65536 };
enum { FLOATS = 5126, UNSIGNED_INTS = 5125, UNSIGNED_SHORTS = 5123, VERTEX_DATA = 34962, INDEX_DATA = 34963 };

/* Arrays of the binary part, in their order. */
enum { POSITIONS, NORMALS, INDICES, COLOURS, N_ARRAYS };

static void put_u32(uint8_t *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

static bool has_colours(const struct vxc_mesh *mesh)
{
    for (size_t v = 0; mesh->tints && v < mesh->n_vertices; v++)
        if (mesh->tints[v].weight > 0)
            return true;
    return false;
}

static uint64_t bytes_of(const struct vxc_mesh *mesh, int array, bool colours)
{
    if (array == COLOURS)
        return colours ? 8ull * mesh->n_vertices : 0;
    return 12ull * (array == INDICES ? mesh->n_triangles : mesh->n_vertices);
}

/* Corners of the box of the positions: the format wants them exactly as they are in the file. */
static void bounds(const struct vxc_mesh *mesh, float lo[3], float hi[3])
{
    for (int a = 0; a < 3; a++) {
        lo[a] = INFINITY;
        hi[a] = -INFINITY;
    }
    for (size_t i = 0; i < 3 * (size_t)mesh->n_vertices; i++) {
        lo[i % 3] = fminf(lo[i % 3], mesh->vertices[i]);
        hi[i % 3] = fmaxf(hi[i % 3], mesh->vertices[i]);
    }
}

static void write_views(FILE *json, const struct vxc_mesh *mesh, bool colours)
{
    uint64_t at = 0;
    fprintf(json, ",\"bufferViews\":[");
    for (int i = 0; i < (colours ? N_ARRAYS : COLOURS); at += bytes_of(mesh, i++, colours))
        fprintf(json, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu,\"target\":%d}", i ? "," : "",
                (unsigned long long)at, (unsigned long long)bytes_of(mesh, i, colours),
                i == INDICES ? INDEX_DATA : VERTEX_DATA);
    fprintf(json, "],\"buffers\":[{\"byteLength\":%llu}]", (unsigned long long)at);
}

static void write_mesh(FILE *json, const struct vxc_mesh *mesh, bool colours)
{
    float lo[3], hi[3];
    bounds(mesh, lo, hi);
    fprintf(json,
            ",\"nodes\":[{\"name\":\"z is up\",\"rotation\":[-0.70710678118654757,0,0,0.70710678118654757],"
            "\"children\":[1]},{\"name\":\"%s\",\"mesh\":0,\"translation\":[%.17g,%.17g,%.17g]}]",
            mesh->state.name, mesh->origin_m[0], mesh->origin_m[1], mesh->origin_m[2]);
    fprintf(json, ",\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":%d,\"NORMAL\":%d", POSITIONS,
            NORMALS);
    if (colours)
        fprintf(json, ",\"COLOR_0\":%d", COLOURS);
    fprintf(json, "},\"indices\":%d,\"material\":0,\"mode\":4}]}]", INDICES);
    fprintf(json,
            ",\"materials\":[{\"doubleSided\":true,\"pbrMetallicRoughness\":{\"baseColorFactor\":[%s],"
            "\"metallicFactor\":0,\"roughnessFactor\":0.9}}]",
            colours ? "1,1,1,1" : "0.8,0.78,0.74,1");
    fprintf(json,
            ",\"accessors\":[{\"bufferView\":%d,\"componentType\":%d,\"count\":%u,\"type\":\"VEC3\","
            "\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]},",
            POSITIONS, FLOATS, mesh->n_vertices, (double)lo[0], (double)lo[1], (double)lo[2], (double)hi[0],
            (double)hi[1], (double)hi[2]);
    fprintf(json, "{\"bufferView\":%d,\"componentType\":%d,\"count\":%u,\"type\":\"VEC3\"},", NORMALS, FLOATS,
            mesh->n_vertices);
    fprintf(json, "{\"bufferView\":%d,\"componentType\":%d,\"count\":%llu,\"type\":\"SCALAR\"}", INDICES,
            UNSIGNED_INTS, 3ull * mesh->n_triangles);
    if (colours)
        fprintf(
            json,
            ",{\"bufferView\":%d,\"componentType\":%d,\"normalized\":true,\"count\":%u,\"type\":\"VEC4\"}",
            COLOURS, UNSIGNED_SHORTS, mesh->n_vertices);
    fputc(']', json);
    write_views(json, mesh, colours);
}

/* The file's first part, filled up with spaces to a multiple of 4: *text is the caller's to free. */
static vx_err make_json(const struct vxc_mesh *mesh, bool colours, char **text, size_t *n,
                        struct vx_detail *detail)
{
    FILE *json = open_memstream(text, n);
    const bool empty = mesh->n_triangles == 0;
    bool failed = !json;
    if (json) {
        fprintf(json,
                "{\"asset\":{\"version\":\"2.0\",\"generator\":\"voxelctl\",\"extras\":{\"map\":\"%s\","
                "\"epoch\":%llu}},"
                "\"scene\":0,\"scenes\":[{%s}]",
                mesh->state.name, (unsigned long long)mesh->state.epoch, empty ? "" : "\"nodes\":[0]");
        if (!empty)
            write_mesh(json, mesh, colours);
        fputc('}', json);
        for (long at = ftell(json); at % 4; at++)
            fputc(' ', json);
        failed = ferror(json) != 0;
        failed = fclose(json) != 0 || failed;
    }
    return failed ? vx_fail(detail, VX_E_NOMEM, "", "no memory for the head of the file") : VX_OK;
}

/* Numbers of 4 bytes, little endian. */
static bool write_words(FILE *file, const void *words, uint64_t n)
{
    const uint8_t *in = words;
    for (uint64_t i = 0; i < n; i++, in += 4) {
        uint8_t out[4];
        uint32_t v;
        memcpy(&v, in, 4);
        put_u32(out, v);
        if (fwrite(out, 4, 1, file) != 1)
            return false;
    }
    return true;
}

static bool write_chunk_head(FILE *file, uint64_t n, uint32_t type)
{
    uint8_t head[CHUNK_HEAD_BYTES];
    put_u32(head, (uint32_t)n);
    put_u32(head + 4, type);
    return fwrite(head, sizeof head, 1, file) == 1;
}

/* The format's colours are linear in light; a map's are as cameras give them (sRGB). */
static bool write_colours(FILE *file, const struct vxc_mesh *mesh)
{
    uint16_t linear[256];
    for (int i = 0; i < 256; i++) {
        const double c = i / 255.0;
        linear[i] = (uint16_t)(65535 * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4)) + 0.5);
    }
    for (size_t v = 0; v < mesh->n_vertices; v++) {
        uint8_t out[8] = {0, 0, 0, 0, 0, 0, 0xff, 0xff};
        for (int a = 0; a < 3; a++) {
            out[2 * a] = (uint8_t)linear[mesh->tints[v].colour[a]];
            out[2 * a + 1] = (uint8_t)(linear[mesh->tints[v].colour[a]] >> 8);
        }
        if (fwrite(out, sizeof out, 1, file) != 1)
            return false;
    }
    return true;
}

static bool write_binary(FILE *file, const struct vxc_mesh *mesh, bool colours)
{
    const void *const array[COLOURS] = {mesh->vertices, mesh->normals, mesh->triangles};
    bool good = true;
    for (int i = 0; i < COLOURS && good; i++)
        good = write_words(file, array[i], bytes_of(mesh, i, colours) / 4);
    return good && (!colours || write_colours(file, mesh));
}

vx_err glb_write(FILE *file, const struct vxc_mesh *mesh, struct vx_detail *detail)
{
    uint64_t n_binary = 0, n_all;
    uint8_t head[HEAD_BYTES];
    char *json = NULL;
    size_t n_json = 0;
    vx_err err = VX_OK;
    bool colours = mesh->tints != NULL;
    for (int i = 0; i < N_ARRAYS && mesh->n_triangles; i++)
        n_binary += bytes_of(mesh, i, colours);
    if (n_binary > UINT32_MAX - MOST_JSON)
        return vx_fail(detail, VX_E_EXHAUSTED, "format",
                       "the mesh takes %llu bytes, a .glb file holds less than 4 GiB: write PLY, or a region",
                       (unsigned long long)n_binary);
    if (colours && !has_colours(mesh)) {
        colours = false;
        n_binary -= mesh->n_triangles ? bytes_of(mesh, COLOURS, true) : 0;
    }
    VX_TRY_RET(make_json(mesh, colours, &json, &n_json, detail));
    n_all = HEAD_BYTES + CHUNK_HEAD_BYTES + n_json + (n_binary ? CHUNK_HEAD_BYTES + n_binary : 0);
    put_u32(head, GLTF);
    put_u32(head + 4, 2);
    put_u32(head + 8, (uint32_t)n_all);
    if (fwrite(head, sizeof head, 1, file) != 1 || !write_chunk_head(file, n_json, JSON) ||
        fwrite(json, n_json, 1, file) != 1 ||
        (n_binary && (!write_chunk_head(file, n_binary, BIN) || !write_binary(file, mesh, colours))) ||
        fflush(file) != 0)
        err = vx_fail(detail, VX_E_UNAVAILABLE, "output", "the file cannot be written: %s", strerror(errno));
    free(json);
    return err;
}
