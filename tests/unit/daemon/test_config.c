/* Configuration: defaults == config/voxeld.yaml, values, errors with line and column. */
#include "config.h"
#include "yaml_map.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static vx_err parse(const char *text, struct vxd_config *config, struct vx_detail *detail)
{
    vxd_config_default(config);
    return vxd_config_parse(config, "t.yaml", text, strlen(text), detail);
}

START_TEST(file_equals_defaults)
{
    struct vxd_config file, built_in;
    struct vx_detail detail = {{0}, {0}};
    char key[160], at_file[160], *text = calloc(1, 65536);
    memset(&file, 0xa5, sizeof file); /* so that a key missing in the file shows */
    vxd_config_default(&built_in);
    vx_err err = vxd_config_read(&file, CONFIG_FILE, &detail);
    ck_assert_msg(err == VX_OK, "%s", detail.text);
    FILE *f = fopen(CONFIG_FILE, "r");
    ck_assert_uint_gt(fread(text, 1, 65535, f), 0);
    fclose(f);
    unsigned i = 0;
    for (; vxd_config_show(&built_in, i, key, sizeof key); ++i) {
        *strchr(key, '=') = 0;
        const char *leaf = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;
        snprintf(at_file, sizeof at_file, "\n%s%s:", strchr(key, '.') ? "  " : "", leaf);
        ck_assert_msg(strstr(text, at_file) != NULL, "%s is not in voxeld.yaml", key);
        vxd_config_show(&built_in, i, key, sizeof key);
        vxd_config_show(&file, i, at_file, sizeof at_file);
        ck_assert_str_eq(at_file, key);
    }
    ck_assert_uint_gt(i, 20);
    free(text);
}
END_TEST

START_TEST(values_are_taken)
{
    struct vxd_config c;
    struct vx_detail detail = {{0}, {0}};
    vx_err err = parse(
        "backend: guard\nipc_dir: \"/tmp/x\"\nlimits: {sessions: 7, credit_frames: 2}\n"
        "map_defaults:\n  truncation_voxels: 4.5\n  weighting: constant\nmemory_cap_bytes: 70368744177664\n",
        &c, &detail);
    ck_assert_msg(err == VX_OK, "%s", detail.text);
    ck_assert_int_eq(c.backend, VXD_BACKEND_GUARD);
    ck_assert_str_eq(c.ipc_dir, "/tmp/x");
    ck_assert_uint_eq(c.limits.sessions, 7);
    ck_assert_uint_eq(c.limits.credit_frames, 2);
    ck_assert_double_eq(c.map_defaults.truncation_voxels, 4.5);
    ck_assert_int_eq(c.map_defaults.weighting, 1); /* enum vx_weighting */
    ck_assert_uint_eq(c.memory_cap_bytes, 70368744177664u);
    ck_assert_uint_eq(c.limits.maps, 32); /* not named: the default */
    ck_assert_int_eq(parse("", &c, NULL), VX_OK);
    ck_assert_int_eq(parse("# nothing\n---\n", &c, NULL), VX_OK);
}
END_TEST

START_TEST(errors_have_positions)
{
    static const struct {
        const char *text, *field, *where, *words;
    } bad[] = {
        {"backend: cpu\nbackends: cpu\n", "backends", "t.yaml:2:11:", "no such key"},
        {"limits:\n  sessions: 3\n  nonsense: 4\n", "limits.nonsense", "t.yaml:3:13:", "no such key"},
        {"backend: cpu\ndevice: 1\nbackend: cuda\n", "backend", "t.yaml:3:1:", "twice"},
        {"limits:\n  maps: 3\n  maps: 3\n", "limits.maps", "t.yaml:3:3:", "twice"},
        {"limits:\n  maps: 3\nlimits:\n  sessions: 3\n", "limits", "t.yaml:3:1:", "twice"},
        {"backend: gpu\n", "backend", "t.yaml:1:10:", "auto, cpu, cuda, guard"},
        {"map_defaults: {weighting: 1}\n", "map_defaults.weighting",
         "t.yaml:1:27:", "inverse_square, constant"},
        {"device: -1\n", "device", "t.yaml:1:9:", "whole number"},
        {"device: 1.5\n", "device", "t.yaml:1:9:", "whole number"},
        {"device: 99\n", "device", "t.yaml:1:9:", "0 to 63"},
        {"limits:\n  sessions: 99999999999999999999999\n", "limits.sessions", "t.yaml:2:13:", "1 to 4096"},
        {"map_defaults: {truncation_voxels: nan}\n", "map_defaults.truncation_voxels",
         "t.yaml:1:35:", "a number"},
        {"map_defaults: {truncation_voxels: 0x10}\n", "map_defaults.truncation_voxels",
         "t.yaml:1:35:", "a number"},
        {"ipc_dir: ''\n", "ipc_dir", "t.yaml:1:10:", "bytes"},
        {"limits: 3\n", "limits", "t.yaml:1:9:", "section"},
        {"backend:\n  a: 1\n", "backend", "t.yaml:2:3:", "section"},
        {"backend: [cpu]\n", "backend", "t.yaml:1:10:", "lists"},
        {"- a\n", "", "t.yaml:1:1:", "lists"},
        {"hello\n", "", "t.yaml:1:1:", "key: value"},
        {"backend: &x cpu\n", "", "t.yaml:1:10:", "anchors"},
        {"device: *x\n", "device", "t.yaml:1:9:", "aliases"},
        {"backend: !!str cpu\n", "", "t.yaml:1:10:", "tags"},
        {"a: 1\n--- \nb: 2\n", "a", "t.yaml:1:4:", "no such key"},
        {"backend: cpu\n---\ndevice: 1\n", "", "t.yaml:2:1:", "one document"},
        {"backend: 'cpu\n", "", "t.yaml:", "end"},
        {"Backend: cpu\n", "", "t.yaml:1:1:", "a-z"},
        {"\"back\\0end\": cpu\n", "", "t.yaml:1:1:", "NUL"},
        {"? {a: b}\n: c\n", "", "t.yaml:1:3:", "can't be a key"},
        {"\tbackend: cpu\n", "", "t.yaml:1:1:", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        struct vxd_config c;
        struct vx_detail d = {{0}, {0}};
        ck_assert_msg(parse(bad[i].text, &c, &d) == VX_E_INVALID, "accepted: %s", bad[i].text);
        ck_assert_msg(!strcmp(d.field, bad[i].field), "%s: field '%s' (%s)", bad[i].text, d.field, d.text);
        ck_assert_msg(!strncmp(d.text, bad[i].where, strlen(bad[i].where)), "%s: %s", bad[i].text, d.text);
        ck_assert_msg(strstr(d.text, bad[i].words) != NULL, "%s: %s", bad[i].text, d.text);
    }
}
END_TEST

/* 80 KB of '[' took 14 s in libyaml before anything was refused; here the first event ends it. */
START_TEST(deep_and_large_files_end_at_once)
{
    struct vxd_config c;
    struct vx_detail d;
    char *text = malloc(300000);
    static const char patterns[] = "[{?-";
    for (int k = 0; patterns[k]; ++k) {
        for (int i = 0; i < 80000; i += 2) {
            text[i] = patterns[k];
            text[i + 1] = k < 2 ? patterns[k] : ' ';
        }
        vxd_config_default(&c);
        ck_assert_int_eq(vxd_config_parse(&c, "t.yaml", text, 80000, &d), VX_E_INVALID);
    }
    size_t n = 0;
    for (int i = 0; i < 100; ++i)
        n += (size_t)sprintf(text + n, "%*sa%d:\n", i, "", i);
    ck_assert_int_eq(vxd_config_parse(&c, "t.yaml", text, n, &d), VX_E_INVALID);
    memset(text, '#', 300000);
    ck_assert_int_eq(vxd_config_parse(&c, "t.yaml", text, VXD_YAML_MAX_BYTES, &d), VX_OK);
    ck_assert_int_eq(vxd_config_parse(&c, "t.yaml", text, VXD_YAML_MAX_BYTES + 1, &d), VX_E_INVALID);
    free(text);
}
END_TEST

static vx_err take_any(void *context, const char *path, const char *value, struct vx_detail *detail)
{
    (void)value;
    (void)detail;
    snprintf(context, 512, "%s", path);
    return VX_OK;
}

START_TEST(thirty_two_levels)
{
    char text[4096], last[512];
    for (int levels = 31; levels <= 33; ++levels) {
        size_t n = 0;
        for (int i = 0; i < levels; ++i)
            n += (size_t)sprintf(text + n, "%*sa:\n", i, "");
        n += (size_t)sprintf(text + n - 1, " 1\n") - 1;
        struct vx_detail d = {{0}, {0}};
        vx_err err = vxd_yaml_map("t.yaml", text, n, take_any, last, &d);
        ck_assert_msg(err == (levels <= 32 ? VX_OK : VX_E_INVALID), "%d levels: %s", levels, d.text);
        if (levels > 32)
            ck_assert_ptr_nonnull(strstr(d.text, "32 levels"));
    }
}
END_TEST

START_TEST(missing_file)
{
    struct vxd_config c;
    struct vx_detail d;
    ck_assert_int_eq(vxd_config_read(&c, "/nonexistent/voxeld.yaml", &d), VX_E_NOT_FOUND);
    ck_assert_int_eq(vxd_config_read(&c, "/", &d), VX_E_NOT_FOUND);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("configuration");
    TCase *tc = tcase_create("configuration");
    tcase_add_test(tc, file_equals_defaults);
    tcase_add_test(tc, values_are_taken);
    tcase_add_test(tc, errors_have_positions);
    tcase_add_test(tc, deep_and_large_files_end_at_once);
    tcase_add_test(tc, thirty_two_levels);
    tcase_add_test(tc, missing_file);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
