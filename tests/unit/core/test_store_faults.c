/*
 * Every allocation and every device call fails in turn: errors are coded, the map is as it was, nothing is
 * lost.
 *
 * The backend's table of functions is replaced by one that counts; malloc and calloc are wrapped by the
 * linker.
 */
#include "core_test.h"
#include "vx/nvdb.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What fails: the n-th allocation, all from the n-th on, or (sticky, as a device error is) all queue calls
 * from the n-th. */
enum mode { NONE, ONE, ALL, DEVICE };
static struct {
    enum mode mode;
    int left; /* calls before the failure */
    bool hit;
    const struct vxk_ops *real;
} fault;

static bool fails(bool memory)
{
    if (fault.mode == NONE || (fault.mode == DEVICE) == memory)
        return false;
    if (fault.left > 0) {
        fault.left--;
        return false;
    }
    if (fault.mode == ONE && fault.hit)
        return false;
    fault.hit = true;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n)
{
    return fails(true) ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size)
{
    return fails(true) ? NULL : __real_calloc(n, size);
}

static vx_err f_alloc(struct vxk_dev *d, uint64_t bytes, void **out)
{
    return fails(true) ? VX_E_EXHAUSTED : fault.real->alloc(d, bytes, out);
}
static vx_err f_alloc_host(struct vxk_dev *d, uint64_t bytes, void **out)
{
    return fails(true) ? VX_E_NOMEM : fault.real->alloc_host(d, bytes, out);
}
static vx_err f_commit(struct vxk_dev *d, struct vxk_range *r, uint64_t bytes)
{
    return fails(true) ? VX_E_EXHAUSTED : fault.real->commit(d, r, bytes);
}
static vx_err f_queue_create(struct vxk_dev *d, int priority, struct vxk_queue **out)
{
    return fails(true) ? VX_E_NOMEM : fault.real->queue_create(d, priority, out);
}
static vx_err f_wait(struct vxk_queue *q)
{
    return fails(false) ? VX_E_DEVICE : fault.real->wait(q);
}
static vx_err f_event_record(struct vxk_queue *q, struct vxk_event *e)
{
    return fails(false) ? VX_E_DEVICE : fault.real->event_record(q, e);
}
static vx_err f_event_wait(struct vxk_queue *q, struct vxk_event *e)
{
    return fails(false) ? VX_E_DEVICE : fault.real->event_wait(q, e);
}
static vx_err f_upload(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    return fails(false) ? VX_E_DEVICE : fault.real->upload(q, dst, src, bytes);
}
static vx_err f_download(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    return fails(false) ? VX_E_DEVICE : fault.real->download(q, dst, src, bytes);
}
static vx_err f_copy(struct vxk_queue *q, void *dst, const void *src, uint64_t bytes)
{
    return fails(false) ? VX_E_DEVICE : fault.real->copy(q, dst, src, bytes);
}
static vx_err f_fill(struct vxk_queue *q, void *dst, int byte, uint64_t bytes)
{
    return fails(false) ? VX_E_DEVICE : fault.real->fill(q, dst, byte, bytes);
}
static vx_err f_launch(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t size, uint32_t n)
{
    return fails(false) ? VX_E_DEVICE : fault.real->launch(q, k, args, size, n);
}
static vx_err f_launch_counted(struct vxk_queue *q, enum vxk_kernel k, const void *args, size_t size,
                               const uint32_t *n, uint32_t per, uint32_t most)
{
    return fails(false) ? VX_E_DEVICE : fault.real->launch_counted(q, k, args, size, n, per, most);
}

static struct vxk_ops faulty;

static struct vx_device *faulty_device(void)
{
    struct vx_device *d = test_device(64 << 20);
    fault.real = d->dev->ops;
    faulty = *fault.real;
    faulty.alloc = f_alloc;
    faulty.alloc_host = f_alloc_host;
    faulty.commit = f_commit;
    faulty.queue_create = f_queue_create;
    faulty.wait = f_wait;
    faulty.event_record = f_event_record;
    faulty.event_wait = f_event_wait;
    faulty.upload = f_upload;
    faulty.download = f_download;
    faulty.copy = f_copy;
    faulty.fill = f_fill;
    faulty.launch = f_launch;
    faulty.launch_counted = f_launch_counted;
    d->dev->ops = &faulty;
    return d;
}

static void arm(enum mode mode, int n)
{
    fault.mode = mode;
    fault.left = n;
    fault.hit = false;
}

static vx_err feed(struct vx_map *map, enum vx_sensor sensor, uint64_t seed, enum mode mode, int n)
{
    static const double at[3] = {0.3, -6.4, 0};
    struct frame_shape shape = {.width = 32, .height = 12, .reach_m = 2, .odd = 0.05};
    struct vx_frame_result result;
    struct vx_detail detail = {0};
    struct test_frame t;
    vx_err err;
    test_frame_init(&t, sensor, &seed, &shape, at);
    arm(mode, n);
    err = vx_map_integrate(map, &t.f, &result, &detail);
    fault.mode = NONE;
    test_frame_fini(&t);
    return err;
}

static struct vx_map *filled_map(struct vx_device *d)
{
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *map = test_map(d, &p);
    ck_ok(feed(map, VX_RANGE, test_seed, NONE, 0));
    return map;
}

static bool is_shortage(vx_err err)
{
    return err == VX_E_EXHAUSTED || err == VX_E_NOMEM;
}

enum what { CREATE, DEPTH, POINTS, RANGE, DIGEST, CLEAR, EXPORT, IMPORT, N_WHAT };
static const char *const names[N_WHAT] = {"create", "depth", "points", "range",
                                          "digest", "clear", "export", "import"};

/* A file of a map like filled_map, made once. */
static int import_fd = -1;

static vx_err export_map(struct vx_map *map, int fd, enum mode mode, int n)
{
    const struct vx_nvdb_export o = {.format = VX_NVDB_INDEX};
    vx_err err;
    arm(mode, n);
    err = vx_nvdb_write(map, &o, fd, NULL, NULL, NULL);
    fault.mode = NONE;
    return err;
}

static vx_err import_map(struct vx_device *d, struct vx_map **out, enum mode mode, int n)
{
    struct vx_nvdb_import o = {.weight = 1};
    struct stat st;
    vx_err err;
    vx_map_params_default(&o.params);
    o.params.truncation_voxels = 0;
    ck_assert_int_eq(fstat(import_fd, &st), 0);
    arm(mode, n);
    err = vx_nvdb_read(d, "other", &o, import_fd, (uint64_t)st.st_size, out, NULL, NULL);
    fault.mode = NONE;
    ck_assert((err == VX_OK) == (*out != NULL));
    return err;
}

static vx_err act(struct vx_device *d, struct vx_map *map, enum what what, enum mode mode, int n)
{
    struct vx_map_params p = test_params(0.1, VX_OCCUPANCY);
    struct vx_map *other;
    uint8_t digest[32];
    vx_err err = VX_OK;
    int fd;
    switch (what) {
    case EXPORT:
        fd = memfd_create("export", 0);
        err = export_map(map, fd, mode, n);
        close(fd);
        return err;
    case IMPORT:
        err = import_map(d, &other, mode, n);
        vx_map_destroy(other);
        return err;
    case CREATE:
        arm(mode, n);
        err = vx_map_create(d, "other", &p, &other, NULL);
        fault.mode = NONE;
        ck_assert((err == VX_OK) == (other != NULL));
        vx_map_destroy(other);
        return err;
    case DIGEST:
        arm(mode, n);
        err = vx_map_digest(map, digest, NULL);
        break;
    case CLEAR:
        arm(mode, n);
        err = vx_map_clear(map);
        break;
    default:
        return feed(map,
                    what == DEPTH    ? VX_DEPTH
                    : what == POINTS ? VX_POINTS
                                     : VX_RANGE,
                    test_seed + 1, mode, n);
    }
    fault.mode = NONE;
    return err;
}

static void make_file(void)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map *map = filled_map(d);
    import_fd = memfd_create("import", 0);
    ck_ok(export_map(map, import_fd, NONE, 0));
    vx_map_destroy(map);
    vx_device_close(d);
}

START_TEST(memory)
{
    enum what what = (enum what)(_i / 2);
    enum mode mode = _i & 1 ? ALL : ONE;
    struct vx_device *d = faulty_device();
    int refused = 0, n = 0;
    if (import_fd < 0)
        make_file();
    for (;; n++) {
        struct vx_map *map = filled_map(d);
        struct vx_device_stats before, after;
        uint8_t was[32], now[32];
        char when[64];
        bool hit;
        vx_err err;
        snprintf(when, sizeof when, "%s, allocation %d fails%s", names[what], n,
                 mode == ALL ? " and all after it" : "");
        vx__workspace_drop(map); /* so that the frame has much to ask for */
        ck_ok(vx_map_digest(map, was, NULL));
        vx_device_get_stats(d, &before);
        err = act(d, map, what, mode, n);
        hit = fault.hit;
        ck_assert_msg(err == VX_OK || (fault.hit && is_shortage(err)), "%s: %s", when, vx_err_name(err));
        if (err) {
            refused++;
            ck_ok(vx_map_digest(map, now, NULL));
            ck_assert_msg(!memcmp(was, now, 32), "%s: the map changed", when);
            vx_device_get_stats(d, &after);
            ck_assert_msg(before.used_bytes == after.used_bytes, "%s: %lld bytes leak", when,
                          (long long)(after.used_bytes - before.used_bytes));
        }
        ck_device(d, &map, 1, when);
        ck_ok(act(d, map, what, NONE, 0));
        ck_device(d, &map, 1, when);
        vx_map_destroy(map);
        vx_device_get_stats(d, &after);
        ck_assert_msg(after.used_bytes == 0 && after.scratch_bytes == 0, "%s: %llu + %llu bytes leak", when,
                      (unsigned long long)after.used_bytes, (unsigned long long)after.scratch_bytes);
        if (!hit && err == VX_OK)
            break;
    }
    printf("%s: %d of %d refused\n", names[what], refused, n);
    ck_assert_int_ge(n, 2);
    if (mode == ALL)
        ck_assert_int_ge(refused, 2);
    vx_device_close(d);
}
END_TEST

/* A device error is for good: what counts is that everything can still be taken down. */
START_TEST(device_errors)
{
    enum what what = (enum what)_i;
    int step = 1, n = 0;
    bool hit = true;
    if (import_fd < 0)
        make_file();
    for (; hit; n += step) {
        struct vx_device *d = faulty_device();
        struct vx_map *map = filled_map(d);
        struct vx_map_info info;
        vx_err err;
        arm(DEVICE, n);
        switch (what) {
        case CREATE: {
            struct vx_map_params p = test_params(0.1, VX_OCCUPANCY);
            struct vx_map *other;
            err = vx_map_create(d, "other", &p, &other, NULL);
            hit = fault.hit;
            vx_map_destroy(other);
            break;
        }
        case IMPORT: {
            struct vx_map *other;
            err = import_map(d, &other, DEVICE, n);
            hit = fault.hit;
            vx_map_destroy(other);
            break;
        }
        default:
            err = act(d, map, what, DEVICE, n);
            hit = fault.hit;
        }
        ck_assert_msg(hit ? err == VX_E_DEVICE || err == VX_OK : err == VX_OK, "%s, call %d: %s", names[what],
                      n, vx_err_name(err));
        ck_ok(vx_map_get_info(map, &info));
        fault.mode = hit ? DEVICE : NONE; /* the device stays dead */
        vx_map_destroy(map);
        fault.mode = NONE;
        vx_device_close(d);
    }
    printf("%s: %d device calls\n", names[what], n);
    ck_assert_int_gt(n, 2);
}
END_TEST

/* Opening a device: host memory alone can fail here. */
START_TEST(open_device)
{
    for (int n = 0;; n++) {
        struct vx_device_params p = {.backend = test_backend, .n_threads = 2, .cap_bytes = 32 << 20};
        struct vx_device *d = NULL;
        vx_err err;
        arm(ONE, n);
        err = vx_device_open(&p, &d, NULL);
        fault.mode = NONE;
        if (err == VX_OK) {
            vx_device_close(d);
            if (!fault.hit)
                break;
            continue;
        }
        ck_assert_msg(err == VX_E_NOMEM || err == VX_E_EXHAUSTED, "allocation %d: %s", n, vx_err_name(err));
        ck_assert_ptr_null(d);
    }
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("store_faults");
    ck_add(s, open_device, 1);
    ck_add(s, memory, 2 * N_WHAT);
    ck_add(s, device_errors, N_WHAT);
    return core_test_main(argc, argv, s);
}
