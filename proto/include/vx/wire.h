/*
 * wire.h - the envelope of VXP/1: prelude, header, payload declarations.  Daemon and clients link this
 * library.
 *
 *     [prelude 16 B] [Header, protobuf, <= 64 KiB] [0..8 payload frames]
 *
 * Everything here checks before it allocates, and nothing blocks.  Thread: any; no state is shared.
 * Source: proto/README.md.
 */
#ifndef VX_WIRE_H
#define VX_WIRE_H

#include "base/vx_err.h"
#include "voxeld/v1/voxeld.pb-c.h"

#include <stddef.h>
#include <stdint.h>

enum {
    VXW_MAJOR = 1,
    VXW_MINOR = 0,
    VXW_PRELUDE_BYTES = 16,
    VXW_HEADER_MAX_BYTES = 64 * 1024,
    VXW_UNPACKED_MAX_BYTES = 512 * 1024, /* memory that one unpacked header may take */
    VXW_MAX_PAYLOADS = 8,
    VXW_PART_MAX_BYTES = 1024 * 1024,       /* payload of every message but FRAME */
    VXW_FRAME_MAX_BYTES = 64 * 1024 * 1024, /* payload of FRAME */
    VXW_SESSION_BYTES = 16
};

typedef Voxeld__V1__Header vxw_header;

/* The fixed start of every message.  type = field number of the header's body. */
struct vxw_prelude {
    uint8_t major, minor;
    uint16_t type;
    uint32_t header_bytes;
    uint8_t n_payloads;
};

/* Writes a prelude; out: [16] bytes. */
void vxw_prelude_encode(const struct vxw_prelude *prelude, uint8_t *out);

/*
 * Reads and checks a prelude of n bytes.
 * Errors: VX_E_VERSION another major; VX_E_INVALID size, magic, header length (1 .. 64 KiB), more than 8
 * payloads, non-zero flags or reserved bytes.
 */
vx_err vxw_prelude_decode(const void *bytes, size_t n, struct vxw_prelude *out, struct vx_detail *detail);

/*
 * Unpacks a header under the caps above; *out is the caller's, vxw_header_free frees it.
 * The top level is scanned first: each singular field at most once, the body exactly once and of the
 * prelude's type. Errors (*out = NULL): VX_E_INVALID not the declared length, malformed, a body of another
 * type, a repeated field, not as many payload declarations as the prelude says, an encoding that is no
 * encoding; VX_E_EXHAUSTED over VXW_UNPACKED_MAX_BYTES. VX_E_UNIMPLEMENTED: a well-formed header with a body
 * of a type that this build doesn't know; *out then holds the rest of the header, so that it can be answered.
 */
vx_err vxw_header_unpack(const struct vxw_prelude *prelude, const void *bytes, size_t n, vxw_header **out,
                         struct vx_detail *detail);
void vxw_header_free(vxw_header *header);

/*
 * Packs a header with its prelude.  prelude: [16] bytes, the caller's.  *bytes (free with free()) has *n
 * bytes. Errors: VX_E_INVALID no body, or more than 64 KiB or 8 payloads; VX_E_NOMEM.
 */
vx_err vxw_header_pack(const vxw_header *header, uint8_t *prelude, uint8_t **bytes, size_t *n,
                       struct vx_detail *detail);

/* Declares a raw payload of n bytes. */
void vxw_payload_declare(const void *data, size_t n, Voxeld__V1__Payload *out);
/*
 * Checks payload frame `index` against its declaration.
 * Errors: VX_E_INVALID size or checksum; VX_E_UNIMPLEMENTED an encoding other than raw.  The detail names
 * payloads[index].n_bytes, .crc32c or .encoding.
 */
vx_err vxw_payload_check(const vxw_header *header, uint32_t index, const void *data, size_t n,
                         struct vx_detail *detail);

/* CRC32C (Castagnoli) of n bytes after those that gave `crc`; start with 0. */
uint32_t vxw_crc32c(uint32_t crc, const void *data, size_t n);
/* The same without the processor's instruction; for tests. */
uint32_t vxw_crc32c_portable(uint32_t crc, const void *data, size_t n);

/* The one mapping between error codes and the wire's.  Numbers that are no code become INTERNAL. */
Voxeld__V1__Code vxw_code_from_err(vx_err e);
vx_err vxw_err_from_code(Voxeld__V1__Code code);

/* "query_points"; "unknown" for numbers that are no type. */
const char *vxw_type_name(unsigned type);

#endif
