#include "vx/wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ capped allocator */

struct cap {
    size_t left;
    bool exceeded;
};

/* protobuf-c frees with the allocator that it is given later; ours hands out plain malloc memory, so NULL
 * serves. */
static void *cap_alloc(void *data, size_t n)
{
    struct cap *cap = data;
    if (n > cap->left) {
        cap->exceeded = true;
        return NULL;
    }
    cap->left -= n;
    return malloc(n ? n : 1);
}

static void cap_free(void *data, void *ptr)
{
    (void)data;
    free(ptr);
}

/* ------------------------------------------------------------------ scan of the top level */

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t b = *(*at)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool skip_value(const uint8_t **at, const uint8_t *end, unsigned wire_type)
{
    uint64_t n;
    switch (wire_type) {
    case 0:
        return read_varint(at, end, &n);
    case 1:
        n = 8;
        break;
    case 2:
        if (!read_varint(at, end, &n))
            return false;
        break;
    case 5:
        n = 4;
        break;
    default: /* groups don't exist in proto3 */
        return false;
    }
    if (n > (uint64_t)(end - *at))
        return false;
    *at += n;
    return true;
}

enum { FIRST_BODY = 16, PAYLOADS_FIELD = 5 };

/*
 * protobuf-c merges a submessage that comes twice, and a oneof that comes twice frees what it had; nothing
 * honest sends either, so both are refused before it sees them.  So is a body of another type than the
 * prelude's.
 */
static vx_err scan(const struct vxw_prelude *prelude, const uint8_t *at, size_t n, struct vx_detail *detail)
{
    const uint8_t *end = at + n;
    uint32_t seen = 0;
    bool have_body = false;
    while (at < end) {
        uint64_t key;
        if (!read_varint(&at, end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff ||
            !skip_value(&at, end, key & 7))
            return vx_fail(detail, VX_E_INVALID, "header", "is not a protobuf message");
        uint32_t field = (uint32_t)(key >> 3);
        if (field >= FIRST_BODY) {
            if (have_body || field != prelude->type)
                return vx_fail(detail, VX_E_INVALID, "prelude.type", "says %u, but the header has body %u",
                               prelude->type, field);
            have_body = true;
        } else if (field != PAYLOADS_FIELD) {
            if (seen >> field & 1)
                return vx_fail(detail, VX_E_INVALID, "header", "field %u comes twice", field);
            seen |= 1u << field;
        }
    }
    if (!have_body)
        return vx_fail(detail, VX_E_INVALID, "header", "has no body");
    return VX_OK;
}

/* ------------------------------------------------------------------ unpack and pack */

static vx_err check_payloads(const struct vxw_prelude *prelude, const vxw_header *h, struct vx_detail *detail)
{
    if (h->n_payloads != prelude->n_payloads)
        return vx_fail(detail, VX_E_INVALID, "payloads", "%zu are declared, the prelude says %u",
                       h->n_payloads, prelude->n_payloads);
    for (size_t i = 0; i < h->n_payloads; ++i) {
        if ((unsigned)h->payloads[i]->encoding > VOXELD__V1__ENCODING__ENCODING_PNG) {
            char field[32];
            snprintf(field, sizeof field, "payloads[%zu].encoding", i);
            return vx_fail(detail, VX_E_INVALID, field, "%u is no encoding",
                           (unsigned)h->payloads[i]->encoding);
        }
    }
    if (h->body_bytes && h->n_payloads)
        return vx_fail(detail, VX_E_INVALID, "body_bytes",
                       "a body travels as a payload or as parts, not as both");
    return VX_OK;
}

vx_err vxw_header_unpack(const struct vxw_prelude *prelude, const void *bytes, size_t n, vxw_header **out,
                         struct vx_detail *detail)
{
    *out = NULL;
    if (n != prelude->header_bytes)
        return vx_fail(detail, VX_E_INVALID, "prelude.header_len", "says %u, the header has %zu bytes",
                       prelude->header_bytes, n);
    VX_TRY_RET(scan(prelude, bytes, n, detail));
    struct cap cap = {.left = VXW_UNPACKED_MAX_BYTES};
    ProtobufCAllocator allocator = {.alloc = cap_alloc, .free = cap_free, .allocator_data = &cap};
    vxw_header *h = voxeld__v1__header__unpack(&allocator, n, bytes);
    if (!h && cap.exceeded)
        return vx_fail(detail, VX_E_EXHAUSTED, "header", "takes more than %d bytes when unpacked",
                       VXW_UNPACKED_MAX_BYTES);
    if (!h)
        return vx_fail(detail, VX_E_INVALID, "header", "is not a well-formed voxeld.v1.Header");
    vx_err err = check_payloads(prelude, h, detail);
    if (err != VX_OK) {
        vxw_header_free(h);
        return err;
    }
    *out = h;
    if (h->body_case == VOXELD__V1__HEADER__BODY__NOT_SET)
        return vx_fail(detail, VX_E_UNIMPLEMENTED, "prelude.type", "message type %u is not known here",
                       prelude->type);
    return VX_OK;
}

void vxw_header_free(vxw_header *header)
{
    if (header)
        voxeld__v1__header__free_unpacked(header, NULL);
}

vx_err vxw_header_pack(const vxw_header *header, uint8_t *prelude, uint8_t **bytes, size_t *n,
                       struct vx_detail *detail)
{
    if (header->body_case == VOXELD__V1__HEADER__BODY__NOT_SET)
        return vx_fail(detail, VX_E_INVALID, "header", "has no body");
    if (header->n_payloads > VXW_MAX_PAYLOADS)
        return vx_fail(detail, VX_E_INVALID, "payloads", "at most %d, got %zu", VXW_MAX_PAYLOADS,
                       header->n_payloads);
    size_t size = voxeld__v1__header__get_packed_size(header);
    if (size > VXW_HEADER_MAX_BYTES)
        return vx_fail(detail, VX_E_INVALID, "header", "has %zu bytes, at most %d are allowed", size,
                       VXW_HEADER_MAX_BYTES);
    uint8_t *buffer = malloc(size);
    if (!buffer)
        return vx_fail(detail, VX_E_NOMEM, "header", "no memory for %zu bytes", size);
    voxeld__v1__header__pack(header, buffer);
    struct vxw_prelude p = {.major = VXW_MAJOR,
                            .minor = VXW_MINOR,
                            .type = (uint16_t)header->body_case,
                            .header_bytes = (uint32_t)size,
                            .n_payloads = (uint8_t)header->n_payloads};
    vxw_prelude_encode(&p, prelude);
    *bytes = buffer;
    *n = size;
    return VX_OK;
}

/* ------------------------------------------------------------------ payloads */

void vxw_payload_declare(const void *data, size_t n, Voxeld__V1__Payload *out)
{
    voxeld__v1__payload__init(out);
    out->n_bytes = n;
    out->encoding = VOXELD__V1__ENCODING__ENCODING_RAW;
    out->crc32c = vxw_crc32c(0, data, n);
}

vx_err vxw_payload_check(const vxw_header *header, uint32_t index, const void *data, size_t n,
                         struct vx_detail *detail)
{
    char field[48];
    const Voxeld__V1__Payload *p = header->payloads[index];
    if (p->encoding != VOXELD__V1__ENCODING__ENCODING_RAW) {
        snprintf(field, sizeof field, "payloads[%u].encoding", index);
        return vx_fail(detail, VX_E_UNIMPLEMENTED, field, "only raw payloads are supported by this build");
    }
    if (p->n_bytes != n) {
        snprintf(field, sizeof field, "payloads[%u].n_bytes", index);
        return vx_fail(detail, VX_E_INVALID, field, "%llu bytes are declared, the frame has %zu",
                       (unsigned long long)p->n_bytes, n);
    }
    uint32_t crc = vxw_crc32c(0, data, n);
    if (p->crc32c != crc) {
        snprintf(field, sizeof field, "payloads[%u].crc32c", index);
        return vx_fail(detail, VX_E_INVALID, field, "checksum is %08x, %08x was declared", crc, p->crc32c);
    }
    return VX_OK;
}
