/*
 * Random and damaged envelopes and configurations: nothing crashes, nothing is taken that can't be packed
 * again, memory stays under the cap.  Run it under ASan and UBSan.  The seed is printed; VXD_FUZZ_SEED=n
 * repeats a run, VXD_FUZZ_ROUNDS makes it longer.
 */
#include "config.h"
#include "vx/wire.h"
#include "wire_fill.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t seed;
static long n_rounds = 200000;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static size_t below(size_t n)
{
    return (size_t)(next_random() % n);
}

/* Flips bits, overwrites, cuts off, doubles or inserts bytes.  buffer has room for twice n plus 64. */
static size_t damage(uint8_t *b, size_t n)
{
    for (int k = (int)below(6); k >= 0 && n; --k) {
        size_t at = below(n), len;
        switch (below(6)) {
        case 0:
            b[at] ^= (uint8_t)(1u << below(8));
            break;
        case 1:
            b[at] = (uint8_t)next_random();
            break;
        case 2:
            n = at;
            break;
        case 3: /* a piece comes twice */
            len = below(n - at) / 4 + 1;
            memmove(b + at + len, b + at, n - at);
            n += len < n - at ? len : 0;
            break;
        case 4:
            b[at] = 0xff;
            break;
        default:
            memmove(b + at + 1, b + at, n - at);
            b[at] = (uint8_t)next_random();
            ++n;
        }
        if (n > 4000)
            n = 4000;
    }
    return n;
}

static void unpack_and_pack(const struct vxw_prelude *p, const uint8_t *bytes, size_t n)
{
    struct vx_detail detail;
    vxw_header *h = NULL;
    vx_err err = vxw_header_unpack(p, bytes, n, &h, &detail);
    ck_assert((h != NULL) == (err == VX_OK || err == VX_E_UNIMPLEMENTED));
    if (err == VX_OK) {
        uint8_t prelude[VXW_PRELUDE_BYTES], *packed;
        size_t packed_n;
        ck_assert_uint_eq(h->body_case, p->type);
        ck_assert_uint_eq(h->n_payloads, p->n_payloads);
        ck_assert_int_eq(vxw_header_pack(h, prelude, &packed, &packed_n, NULL), VX_OK);
        free(packed);
    }
    vxw_header_free(h);
}

START_TEST(envelopes)
{
    static uint8_t buffer[16384];
    char name[64];
    unsigned n_examples = 0;
    uint8_t *example[64];
    size_t size[64];
    while (n_examples < 64 && (size[n_examples] = wire_example(n_examples, name, &example[n_examples])))
        ++n_examples;
    --n_examples; /* the last one has no envelope */
    for (long round = 0; round < n_rounds; ++round) {
        unsigned e = (unsigned)below(n_examples);
        struct vxw_prelude p;
        memcpy(buffer, example[e], size[e]);
        ck_assert_int_eq(vxw_prelude_decode(buffer, VXW_PRELUDE_BYTES, &p, NULL), VX_OK);
        size_t n = damage(buffer + VXW_PRELUDE_BYTES, size[e] - VXW_PRELUDE_BYTES);
        p.header_bytes = (uint32_t)n;
        unpack_and_pack(&p, buffer + VXW_PRELUDE_BYTES, n);
        if (below(4) == 0) { /* the prelude, too */
            buffer[below(VXW_PRELUDE_BYTES)] ^= (uint8_t)(1u << below(8));
            if (vxw_prelude_decode(buffer, VXW_PRELUDE_BYTES, &p, NULL) == VX_OK)
                unpack_and_pack(&p, buffer + VXW_PRELUDE_BYTES, n);
        }
    }
    for (unsigned i = 0; i <= n_examples; ++i)
        free(example[i]);
}
END_TEST

START_TEST(noise)
{
    uint8_t bytes[512];
    for (long round = 0; round < n_rounds; ++round) {
        size_t n = below(sizeof bytes);
        for (size_t i = 0; i < n; ++i)
            bytes[i] = (uint8_t)next_random();
        struct vxw_prelude p = {.major = 1, .type = (uint16_t)(16 + below(110)), .header_bytes = (uint32_t)n};
        unpack_and_pack(&p, bytes, n);
        (void)vxw_prelude_decode(bytes, n, &p, NULL);
    }
}
END_TEST

/* Whatever 64 KiB hold, the unpacked header stays under the cap (mallinfo counts what malloc holds; ASan
 * replaces it). */
START_TEST(memory_stays_bounded)
{
    static uint8_t bytes[VXW_HEADER_MAX_BYTES];
    static const uint8_t tags[] = {0x2a, 0x0a, 0x12, 0x1a, 0x22, 0x32, 0x3a, 0x42};
    for (int round = 0; round < 200; ++round) {
        size_t inner = sizeof bytes - 5, i = 5;
        uint16_t type = (uint16_t)(16 + below(110));
        uint32_t key = (uint32_t)type << 3 | 2;
        bytes[0] = (uint8_t)(key | 0x80);
        bytes[1] = (uint8_t)(key >> 7);
        bytes[2] = (uint8_t)(inner & 0x7f) | 0x80;
        bytes[3] = (uint8_t)(inner >> 7 & 0x7f) | 0x80;
        bytes[4] = (uint8_t)(inner >> 14);
        uint8_t tag = tags[below(sizeof tags)];
        for (; i + 1 < sizeof bytes; i += 2) {
            bytes[i] = tag;
            bytes[i + 1] = 0;
        }
        struct vxw_prelude p = {.major = 1, .type = type, .header_bytes = sizeof bytes};
        struct vx_detail detail;
        vxw_header *h;
        size_t before = mallinfo2().uordblks;
        vx_err err = vxw_header_unpack(&p, bytes, sizeof bytes, &h, &detail);
        size_t held = mallinfo2().uordblks - before;
        ck_assert_msg(err != VX_OK || held < 2 * VXW_UNPACKED_MAX_BYTES, "type %u holds %zu bytes", type,
                      held);
        vxw_header_free(h);
    }
}
END_TEST

START_TEST(yaml)
{
    static const char *const texts[] = {"backend: cpu\nlimits:\n  sessions: 3\n  maps: 2\nmap_defaults: "
                                        "{truncation_voxels: 4.5, limit_bytes: 1}\n",
                                        "ipc_dir: \"/tmp/a b\"\nlog_level: 'debug'\n# comment\ndevice: 3\n",
                                        "? {a: [b, c]}\n: - d\n", "&a a: *a\n"};
    static char buffer[16384];
    for (long round = 0; round < n_rounds / 2; ++round) {
        struct vxd_config config;
        struct vx_detail detail = {{0}, {0}};
        const char *text = texts[below(4)];
        memcpy(buffer, text, strlen(text));
        size_t n = damage((uint8_t *)buffer, strlen(text));
        vxd_config_default(&config);
        vx_err err = vxd_config_parse(&config, "fuzz", buffer, n, &detail);
        ck_assert(err == VX_OK || (err == VX_E_INVALID && !strncmp(detail.text, "fuzz:", 5)));
        ck_assert(err != VX_OK || (config.limits.sessions >= 1 && config.limits.sessions <= 4096));
    }
}
END_TEST

int main(void)
{
    const char *given = getenv("VXD_FUZZ_SEED"), *rounds = getenv("VXD_FUZZ_ROUNDS");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + (uint64_t)clock();
    n_rounds = rounds ? strtol(rounds, NULL, 10) : n_rounds;
    printf("VXD_FUZZ_SEED=%llu VXD_FUZZ_ROUNDS=%ld\n", (unsigned long long)seed, n_rounds);
    seed = seed ? seed : 1;
    Suite *suite = suite_create("fuzz: envelope and configuration");
    TCase *tc = tcase_create("fuzz");
    tcase_set_timeout(tc, 200);
    tcase_add_test(tc, envelopes);
    tcase_add_test(tc, noise);
    tcase_add_test(tc, memory_stays_bounded);
    tcase_add_test(tc, yaml);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
