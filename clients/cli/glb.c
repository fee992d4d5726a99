#include "glb.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GLTF = 0x46546c67, JSON = 0x4e4f534a, BIN = 0x004e4942, HEAD_BYTES = 12, CHUNK_HEAD_BYTES = 8 };
/* The head has a fixed number of numbers and a map's name: it stays far below. */
enum { MOST_JSON = 65536 };
enum { FLOATS = 5126, UNSIGNED_INTS = 5125, VERTEX_DATA = 34962, INDEX_DATA = 34963 };

/* Arrays of the binary part, in their order. */
enum { POSITIONS, NORMALS, INDICES, N_ARRAYS };

static void put_u32(uint8_t *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t bytes_of(const struct vxc_mesh *mesh, int array)
{
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

static void write_views(FILE *json, const struct vxc_mesh *mesh)
{
    uint64_t at = 0;
    fprintf(json, ",\"bufferViews\":[");
    for (int i = 0; i < N_ARRAYS; at += bytes_of(mesh, i++))
        fprintf(json, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu,\"target\":%d}", i ? "," : "",
                (unsigned long long)at, (unsigned long long)bytes_of(mesh, i),
                i == INDICES ? INDEX_DATA : VERTEX_DATA);
    fprintf(json, "],\"buffers\":[{\"byteLength\":%llu}]", (unsigned long long)at);
}

static void write_mesh(FILE *json, const struct vxc_mesh *mesh)
{
    float lo[3], hi[3];
    bounds(mesh, lo, hi);
    fprintf(json,
            ",\"nodes\":[{\"name\":\"z is up\",\"rotation\":[-0.70710678118654757,0,0,0.70710678118654757],"
            "\"children\":[1]},{\"name\":\"%s\",\"mesh\":0,\"translation\":[%.17g,%.17g,%.17g]}]",
            mesh->state.name, mesh->origin_m[0], mesh->origin_m[1], mesh->origin_m[2]);
    fprintf(json,
            ",\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":%d,\"NORMAL\":%d},\"indices\":%d,"
            "\"material\":0,\"mode\":4}]}]",
            POSITIONS, NORMALS, INDICES);
    fprintf(json,
            ",\"materials\":[{\"doubleSided\":true,\"pbrMetallicRoughness\":{\"baseColorFactor\":[0.8,0.78,"
            "0.74,1],\"metallicFactor\":0,\"roughnessFactor\":0.9}}]");
    fprintf(json,
            ",\"accessors\":[{\"bufferView\":%d,\"componentType\":%d,\"count\":%u,\"type\":\"VEC3\","
            "\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]},",
            POSITIONS, FLOATS, mesh->n_vertices, (double)lo[0], (double)lo[1], (double)lo[2], (double)hi[0],
            (double)hi[1], (double)hi[2]);
    fprintf(json, "{\"bufferView\":%d,\"componentType\":%d,\"count\":%u,\"type\":\"VEC3\"},", NORMALS, FLOATS,
            mesh->n_vertices);
    fprintf(json, "{\"bufferView\":%d,\"componentType\":%d,\"count\":%llu,\"type\":\"SCALAR\"}]", INDICES,
            UNSIGNED_INTS, 3ull * mesh->n_triangles);
    write_views(json, mesh);
}

/* The file's first part, filled up with spaces to a multiple of 4: *text is the caller's to free. */
static vx_err make_json(const struct vxc_mesh *mesh, char **text, size_t *n, struct vx_detail *detail)
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
            write_mesh(json, mesh);
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

static bool write_binary(FILE *file, const struct vxc_mesh *mesh)
{
    const void *const array[N_ARRAYS] = {mesh->vertices, mesh->normals, mesh->triangles};
    bool good = true;
    for (int i = 0; i < N_ARRAYS && good; i++)
        good = write_words(file, array[i], bytes_of(mesh, i) / 4);
    return good;
}

vx_err glb_write(FILE *file, const struct vxc_mesh *mesh, struct vx_detail *detail)
{
    uint64_t n_binary = 0, n_all;
    uint8_t head[HEAD_BYTES];
    char *json = NULL;
    size_t n_json = 0;
    vx_err err = VX_OK;
    for (int i = 0; i < N_ARRAYS && mesh->n_triangles; i++)
        n_binary += bytes_of(mesh, i);
    if (n_binary > UINT32_MAX - MOST_JSON)
        return vx_fail(detail, VX_E_EXHAUSTED, "format",
                       "the mesh takes %llu bytes, a .glb file holds less than 4 GiB: write PLY, or a region",
                       (unsigned long long)n_binary);
    VX_TRY_RET(make_json(mesh, &json, &n_json, detail));
    n_all = HEAD_BYTES + CHUNK_HEAD_BYTES + n_json + (n_binary ? CHUNK_HEAD_BYTES + n_binary : 0);
    put_u32(head, GLTF);
    put_u32(head + 4, 2);
    put_u32(head + 8, (uint32_t)n_all);
    if (fwrite(head, sizeof head, 1, file) != 1 || !write_chunk_head(file, n_json, JSON) ||
        fwrite(json, n_json, 1, file) != 1 ||
        (n_binary && (!write_chunk_head(file, n_binary, BIN) || !write_binary(file, mesh))) ||
        fflush(file) != 0)
        err = vx_fail(detail, VX_E_UNAVAILABLE, "output", "the file cannot be written: %s", strerror(errno));
    free(json);
    return err;
}
