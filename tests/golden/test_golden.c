/*
 * The messages of messages.hex (prelude and header as hexadecimal digits) are read, hold no field that this
 * program doesn't know, come out as the same bytes when packed again, and are what this program sends for the
 * same content.
 */
#include "wire_fill.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t read_line(FILE *f, char *name, uint8_t *bytes)
{
    static char line[1 << 16];
    char *hex;
    size_t n = 0;
    if (!fgets(line, sizeof line, f))
        return 0;
    hex = strchr(line, ' ');
    ck_assert_ptr_nonnull(hex);
    *hex++ = 0;
    snprintf(name, 64, "%s", line);
    for (unsigned v; sscanf(hex, "%2x", &v) == 1; hex += 2)
        bytes[n++] = (uint8_t)v;
    return n;
}

static bool has_unknown_fields(const ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (m->n_unknown_fields)
        return true;
    for (unsigned i = 0; i < d->n_fields; ++i) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        const char *at = (const char *)m + f->offset;
        const int *which = (const int *)((const char *)m + f->quantifier_offset);
        if (f->type != PROTOBUF_C_TYPE_MESSAGE ||
            ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *which != (int)f->id))
            continue;
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            const ProtobufCMessage *sub = *(ProtobufCMessage *const *)at;
            if (sub && has_unknown_fields(sub))
                return true;
            continue;
        }
        for (size_t k = 0; k < *(const size_t *)which; ++k)
            if (has_unknown_fields((*(ProtobufCMessage *const *const *)at)[k]))
                return true;
    }
    return false;
}

static void check_report(const uint8_t *bytes, size_t n)
{
    Voxeld__V1__StatsReport *r = voxeld__v1__stats_report__unpack(NULL, n, bytes);
    ck_assert_ptr_nonnull(r);
    ck_assert(!has_unknown_fields(&r->base));
    voxeld__v1__stats_report__free_unpacked(r, NULL);
}

static void check_readable(const char *name, const uint8_t *bytes, size_t n)
{
    struct vxw_prelude p;
    struct vx_detail detail = {{0}, {0}};
    vxw_header *h;
    uint8_t prelude[VXW_PRELUDE_BYTES], *packed;
    size_t packed_n;
    ck_assert_msg(vxw_prelude_decode(bytes, VXW_PRELUDE_BYTES, &p, &detail) == VX_OK, "%s: %s", name,
                  detail.text);
    vx_err err = vxw_header_unpack(&p, bytes + VXW_PRELUDE_BYTES, n - VXW_PRELUDE_BYTES, &h, &detail);
    ck_assert_msg(err == VX_OK, "%s: %s", name, detail.text);
    ck_assert_msg(!has_unknown_fields(&h->base), "%s has unknown fields", name);
    ck_assert_int_eq(vxw_header_pack(h, prelude, &packed, &packed_n, NULL), VX_OK);
    ck_assert_msg(packed_n == n - VXW_PRELUDE_BYTES && !memcmp(packed, bytes + VXW_PRELUDE_BYTES, packed_n),
                  "%s comes out differently", name);
    free(packed);
    vxw_header_free(h);
}

START_TEST(golden_messages)
{
    static uint8_t bytes[1 << 15];
    char name[64], made_name[64];
    FILE *f = fopen(GOLDEN_FILE, "r");
    ck_assert_ptr_nonnull(f);
    unsigned i = 0;
    for (size_t n; (n = read_line(f, name, bytes)); ++i) {
        uint8_t *made;
        if (!strcmp(name, "stats_report"))
            check_report(bytes, n);
        else
            check_readable(name, bytes, n);
        size_t made_n = wire_example(i, made_name, &made);
        ck_assert_str_eq(made_name, name);
        ck_assert_msg(made_n == n && !memcmp(made, bytes, n),
                      "%s: this program sends other bytes; if a field was added, run make_golden", name);
        free(made);
    }
    fclose(f);
    uint8_t *made = NULL;
    ck_assert_msg(!wire_example(i, made_name, &made), "%s has no golden message", made_name);
    ck_assert_uint_ge(i, 33);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("golden messages");
    TCase *tc = tcase_create("golden");
    tcase_add_test(tc, golden_messages);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
