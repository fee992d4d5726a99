#include "vx/wire.h"

#include <string.h>

/* "VXP1" | major u8 | minor u8 | type u16 | header_len u32 | n_payload u8 | flags u8 | 0 u16, little endian.
 */
static const uint8_t magic[4] = {'V', 'X', 'P', '1'};

void vxw_prelude_encode(const struct vxw_prelude *prelude, uint8_t *out)
{
    memcpy(out, magic, sizeof magic);
    out[4] = prelude->major;
    out[5] = prelude->minor;
    out[6] = (uint8_t)(prelude->type & 0xff);
    out[7] = (uint8_t)(prelude->type >> 8);
    for (int i = 0; i < 4; ++i)
        out[8 + i] = (uint8_t)(prelude->header_bytes >> (8 * i));
    out[12] = prelude->n_payloads;
    out[13] = out[14] = out[15] = 0;
}

vx_err vxw_prelude_decode(const void *bytes, size_t n, struct vxw_prelude *out, struct vx_detail *detail)
{
    const uint8_t *b = bytes;
    if (n != VXW_PRELUDE_BYTES)
        return vx_fail(detail, VX_E_INVALID, "prelude", "must have %d bytes, has %zu", VXW_PRELUDE_BYTES, n);
    if (memcmp(b, magic, sizeof magic))
        return vx_fail(detail, VX_E_INVALID, "prelude.magic", "does not start with VXP1");
    if (b[4] != VXW_MAJOR)
        return vx_fail(detail, VX_E_VERSION, "prelude.major",
                       "this program speaks major %d, the message is of %u", VXW_MAJOR, b[4]);
    struct vxw_prelude p = {.major = b[4], .minor = b[5], .n_payloads = b[12]};
    p.type = (uint16_t)(b[6] | b[7] << 8);
    p.header_bytes = (uint32_t)b[8] | (uint32_t)b[9] << 8 | (uint32_t)b[10] << 16 | (uint32_t)b[11] << 24;
    if (p.header_bytes < 1 || p.header_bytes > VXW_HEADER_MAX_BYTES)
        return vx_fail(detail, VX_E_INVALID, "prelude.header_len", "must be 1 .. %d, is %u",
                       VXW_HEADER_MAX_BYTES, p.header_bytes);
    if (p.n_payloads > VXW_MAX_PAYLOADS)
        return vx_fail(detail, VX_E_INVALID, "prelude.n_payload", "at most %d payloads, got %u",
                       VXW_MAX_PAYLOADS, p.n_payloads);
    if (b[13] || b[14] || b[15])
        return vx_fail(detail, VX_E_INVALID, "prelude.flags", "flags and reserved bytes must be 0");
    *out = p;
    return VX_OK;
}
