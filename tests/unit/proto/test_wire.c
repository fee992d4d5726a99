/* Prelude, header caps, payload checks, CRC32C, codes. */
#include "vx/wire.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ CRC32C */

START_TEST(crc_known_vectors)
{
    /* RFC 3720, B.4 */
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; ++i) {
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    uint32_t (*const crc[2])(uint32_t, const void *, size_t) = {vxw_crc32c, vxw_crc32c_portable};
    for (int k = 0; k < 2; ++k) {
        ck_assert_uint_eq(crc[k](0, zeros, 32), 0x8a9136aa);
        ck_assert_uint_eq(crc[k](0, ones, 32), 0x62a8ab43);
        ck_assert_uint_eq(crc[k](0, up, 32), 0x46dd794e);
        ck_assert_uint_eq(crc[k](0, down, 32), 0x113fdb5c);
        ck_assert_uint_eq(crc[k](0, "123456789", 9), 0xe3069283);
        ck_assert_uint_eq(crc[k](0, "", 0), 0);
    }
}
END_TEST

START_TEST(crc_any_length_and_alignment)
{
    uint8_t data[300];
    for (int i = 0; i < 300; ++i)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t at = 0; at < 9; ++at) {
        for (size_t n = 0; n < 280; ++n) {
            uint32_t whole = vxw_crc32c(0, data + at, n);
            ck_assert_uint_eq(whole, vxw_crc32c_portable(0, data + at, n));
            ck_assert_uint_eq(whole,
                              vxw_crc32c(vxw_crc32c(0, data + at, n / 3), data + at + n / 3, n - n / 3));
        }
    }
}
END_TEST

/* Long ones go in stretches that are put together. */
START_TEST(crc_of_long_data)
{
    enum { N = 20000 };
    static uint8_t data[N];
    uint32_t x = 2463534242u;
    for (int i = 0; i < N; ++i) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        data[i] = (uint8_t)(x >> 11);
    }
    for (size_t n = 1000; n + 7 < N; n += n < 7000 ? 37 : 1499) {
        const size_t at = n % 7;
        const uint32_t whole = vxw_crc32c(x, data + at, n);
        ck_assert_uint_eq(whole, vxw_crc32c_portable(x, data + at, n));
        ck_assert_uint_eq(whole, vxw_crc32c(vxw_crc32c(x, data + at, n / 2), data + at + n / 2, n - n / 2));
        data[at + n / 2] ^= 4;
        ck_assert_uint_ne(whole, vxw_crc32c(x, data + at, n));
        data[at + n / 2] ^= 4;
    }
}
END_TEST

/* ------------------------------------------------------------------ prelude */

START_TEST(prelude_round_trip)
{
    struct vxw_prelude in = {.major = 1, .minor = 9, .type = 0x1234, .header_bytes = 65536, .n_payloads = 8},
                       out;
    uint8_t bytes[VXW_PRELUDE_BYTES];
    static const uint8_t expected[] = {'V', 'X', 'P', '1', 1, 9, 0x34, 0x12, 0, 0, 1, 0, 8, 0, 0, 0};
    vxw_prelude_encode(&in, bytes);
    ck_assert_mem_eq(bytes, expected, sizeof bytes);
    ck_assert_int_eq(vxw_prelude_decode(bytes, sizeof bytes, &out, NULL), VX_OK);
    ck_assert_uint_eq(out.major, 1);
    ck_assert_uint_eq(out.minor, 9);
    ck_assert_uint_eq(out.type, 0x1234);
    ck_assert_uint_eq(out.header_bytes, 65536);
    ck_assert_uint_eq(out.n_payloads, 8);
}
END_TEST

START_TEST(prelude_refusals)
{
    static const struct {
        int at;
        uint8_t value;
        vx_err err;
        const char *field;
    } bad[] = {{0, 'v', VX_E_INVALID, "prelude.magic"},        {3, '2', VX_E_INVALID, "prelude.magic"},
               {4, 0, VX_E_VERSION, "prelude.major"},          {4, 2, VX_E_VERSION, "prelude.major"},
               {8, 0, VX_E_INVALID, "prelude.header_len"},     {10, 1, VX_E_INVALID, "prelude.header_len"},
               {11, 0xff, VX_E_INVALID, "prelude.header_len"}, {12, 9, VX_E_INVALID, "prelude.n_payload"},
               {13, 1, VX_E_INVALID, "prelude.flags"},         {14, 1, VX_E_INVALID, "prelude.flags"},
               {15, 1, VX_E_INVALID, "prelude.flags"}};
    struct vxw_prelude good = {.major = 1, .type = 18, .header_bytes = 1, .n_payloads = 0}, out;
    uint8_t bytes[VXW_PRELUDE_BYTES + 1] = {0};
    struct vx_detail detail;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        vxw_prelude_encode(&good, bytes);
        bytes[bad[i].at] = bad[i].value;
        ck_assert_int_eq(vxw_prelude_decode(bytes, VXW_PRELUDE_BYTES, &out, &detail), bad[i].err);
        ck_assert_str_eq(detail.field, bad[i].field);
    }
    vxw_prelude_encode(&good, bytes);
    for (size_t n = 0; n <= sizeof bytes; ++n)
        ck_assert_int_eq(vxw_prelude_decode(bytes, n, &out, &detail),
                         n == VXW_PRELUDE_BYTES ? VX_OK : VX_E_INVALID);
}
END_TEST

/* ------------------------------------------------------------------ header */

static vx_err unpack(uint16_t type, uint8_t n_payloads, const uint8_t *bytes, size_t n, vxw_header **out,
                     struct vx_detail *detail)
{
    struct vxw_prelude p = {.major = 1, .type = type, .header_bytes = (uint32_t)n, .n_payloads = n_payloads};
    return vxw_header_unpack(&p, bytes, n, out, detail);
}

START_TEST(header_round_trip)
{
    vxw_header in = VOXELD__V1__HEADER__INIT, *out;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    Voxeld__V1__Payload payload, *list[1] = {&payload};
    uint8_t prelude[VXW_PRELUDE_BYTES], *bytes;
    size_t n;
    struct vxw_prelude p;
    vxw_payload_declare("abc", 3, &payload);
    in.req_id = 77;
    in.payloads = list;
    in.n_payloads = 1;
    in.body_case = VOXELD__V1__HEADER__BODY_PING;
    in.ping = &ping;
    ck_assert_int_eq(vxw_header_pack(&in, prelude, &bytes, &n, NULL), VX_OK);
    ck_assert_int_eq(vxw_prelude_decode(prelude, sizeof prelude, &p, NULL), VX_OK);
    ck_assert_uint_eq(p.type, 18);
    ck_assert_uint_eq(p.n_payloads, 1);
    ck_assert_int_eq(vxw_header_unpack(&p, bytes, n, &out, NULL), VX_OK);
    ck_assert_uint_eq(out->req_id, 77);
    ck_assert_int_eq(vxw_payload_check(out, 0, "abc", 3, NULL), VX_OK);
    struct vx_detail detail;
    ck_assert_int_eq(vxw_payload_check(out, 0, "abd", 3, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "payloads[0].crc32c");
    ck_assert_int_eq(vxw_payload_check(out, 0, "abcd", 4, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "payloads[0].n_bytes");
    out->payloads[0]->encoding = VOXELD__V1__ENCODING__ENCODING_ZSTD;
    ck_assert_int_eq(vxw_payload_check(out, 0, "abc", 3, &detail), VX_E_UNIMPLEMENTED);
    ck_assert_str_eq(detail.field, "payloads[0].encoding");
    vxw_header_free(out);
    free(bytes);
}
END_TEST

START_TEST(header_refusals)
{
    /* tags: session 0x0a, req_id 0x10, payloads 0x2a, ping (18) 0x92 0x01, pong (19) 0x9a 0x01 */
    static const struct {
        const char *what;
        uint8_t bytes[24];
        size_t n;
        uint16_t type;
        uint8_t n_payloads;
        const char *field;
    } bad[] = {
        {"no body", {0x10, 5}, 2, 18, 0, "header"},
        {"another body than the prelude's", {0x9a, 1, 0}, 3, 18, 0, "prelude.type"},
        {"two bodies", {0x92, 1, 0, 0x9a, 1, 0}, 6, 18, 0, "prelude.type"},
        {"the same body twice", {0x92, 1, 0, 0x92, 1, 0}, 6, 18, 0, "prelude.type"},
        {"req_id twice", {0x10, 5, 0x10, 6, 0x92, 1, 0}, 7, 18, 0, "header"},
        {"a varint without end", {0xff, 0xff, 0xff}, 3, 18, 0, "header"},
        {"a varint that is too long",
         {0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
         12,
         18,
         0,
         "header"},
        {"a length beyond the end", {0x92, 1, 9, 0}, 4, 18, 0, "header"},
        {"a group", {0x93, 1, 0x94, 1}, 4, 18, 0, "header"},
        {"field 0", {0x02, 0, 0x92, 1, 0}, 5, 18, 0, "header"},
        {"a declaration too many", {0x2a, 0, 0x92, 1, 0}, 5, 18, 0, "payloads"},
        {"a declaration too few", {0x92, 1, 0}, 3, 18, 1, "payloads"},
        {"an encoding that is none", {0x2a, 2, 0x10, 9, 0x92, 1, 0}, 7, 18, 1, "payloads[0].encoding"},
        {"payload and parts", {0x2a, 0, 0x30, 5, 0x92, 1, 0}, 7, 18, 1, "body_bytes"},
        {"a body of another wire type", {0x90, 1, 0}, 3, 18, 0, "header"},
    };
    struct vx_detail detail;
    vxw_header *out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        vx_err err = unpack(bad[i].type, bad[i].n_payloads, bad[i].bytes, bad[i].n, &out, &detail);
        ck_assert_msg(err == VX_E_INVALID, "%s: %s", bad[i].what, vx_err_name(err));
        ck_assert_msg(!strcmp(detail.field, bad[i].field), "%s: %s", bad[i].what, detail.field);
        ck_assert_ptr_null(out);
    }
    struct vxw_prelude p = {.major = 1, .type = 18, .header_bytes = 4};
    ck_assert_int_eq(vxw_header_unpack(&p, bad[0].bytes, 3, &out, &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, "prelude.header_len");
}
END_TEST

START_TEST(unknown_type_keeps_the_header)
{
    static const uint8_t bytes[] = {0x10, 42, 0xc2, 0x3e, 0}; /* req_id 42, field 1000 */
    vxw_header *out;
    ck_assert_int_eq(unpack(1000, 0, bytes, sizeof bytes, &out, NULL), VX_E_UNIMPLEMENTED);
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(out->req_id, 42);
    vxw_header_free(out);
}
END_TEST

/* 64 KiB of empty submessages would take megabytes. */
START_TEST(amplification_is_capped)
{
    enum { N = 65000 };
    uint8_t *bytes = calloc(1, N);
    size_t n = 0, inner = N - 8;
    bytes[n++] = 0x92; /* field 34, FRAME */
    bytes[n++] = 0x02;
    bytes[n++] = (uint8_t)(inner & 0x7f) | 0x80;
    bytes[n++] = (uint8_t)(inner >> 7 & 0x7f) | 0x80;
    bytes[n++] = (uint8_t)(inner >> 14);
    for (size_t i = 0; i + 1 < inner; i += 2)
        bytes[n + i] = 0x2a; /* poses, length 0 */
    struct vx_detail detail;
    vxw_header *out;
    ck_assert_int_eq(unpack(34, 0, bytes, n + inner, &out, &detail), VX_E_EXHAUSTED);
    ck_assert_ptr_null(out);
    free(bytes);
}
END_TEST

START_TEST(pack_refuses_too_much)
{
    vxw_header h = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Ping ping = VOXELD__V1__PING__INIT;
    uint8_t prelude[VXW_PRELUDE_BYTES], *bytes, *big = calloc(1, VXW_HEADER_MAX_BYTES);
    size_t n;
    ck_assert_int_eq(vxw_header_pack(&h, prelude, &bytes, &n, NULL), VX_E_INVALID);
    h.body_case = VOXELD__V1__HEADER__BODY_PING;
    h.ping = &ping;
    ping.data = (ProtobufCBinaryData){VXW_HEADER_MAX_BYTES, big};
    ck_assert_int_eq(vxw_header_pack(&h, prelude, &bytes, &n, NULL), VX_E_INVALID);
    free(big);
}
END_TEST

START_TEST(codes_map_both_ways)
{
    for (vx_err e = VX_OK; e >= VX_E_INTERNAL; --e) {
        ck_assert_int_eq(vxw_err_from_code(vxw_code_from_err(e)), e);
        const ProtobufCEnumValue *v =
            protobuf_c_enum_descriptor_get_value(&voxeld__v1__code__descriptor, (int)vxw_code_from_err(e));
        ck_assert_str_eq(v->name + strlen("CODE_"), vx_err_name(e)); /* one name on both sides */
    }
    ck_assert_int_eq(vxw_code_from_err(VX_E_NOMEM), VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(vxw_code_from_err(VX_E_DEVICE), VOXELD__V1__CODE__CODE_UNAVAILABLE);
    ck_assert_int_eq(vxw_code_from_err(-99), VOXELD__V1__CODE__CODE_INTERNAL);
    ck_assert_int_eq(vxw_code_from_err(5), VOXELD__V1__CODE__CODE_INTERNAL);
    ck_assert_int_eq(vxw_err_from_code((Voxeld__V1__Code)77), VX_E_INTERNAL);
    ck_assert_str_eq(vxw_type_name(48), "query_points");
    ck_assert_str_eq(vxw_type_name(1), "unknown");
    ck_assert_str_eq(vxw_type_name(55), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *tc = tcase_create("wire");
    tcase_add_test(tc, crc_known_vectors);
    tcase_add_test(tc, crc_any_length_and_alignment);
    tcase_add_test(tc, crc_of_long_data);
    tcase_add_test(tc, prelude_round_trip);
    tcase_add_test(tc, prelude_refusals);
    tcase_add_test(tc, header_round_trip);
    tcase_add_test(tc, header_refusals);
    tcase_add_test(tc, unknown_type_keeps_the_header);
    tcase_add_test(tc, amplification_is_capped);
    tcase_add_test(tc, pack_refuses_too_much);
    tcase_add_test(tc, codes_map_both_ways);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
