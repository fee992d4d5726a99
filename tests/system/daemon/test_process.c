/* Start, stop, signals, the lock of the folder, options. */
#include "fake_gate.h"
#include "vxd_peer.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct vxd_proc proc;

static void set_up(void)
{
    fake_gate_shut();
    proc.yaml = NULL; /* a test may have had its own */
    vxd_proc_start(&proc, "voxeld_fake", NULL);
}

static void tear_down(void)
{
    vxd_proc_stop(&proc);
    fake_gate_remove();
}

/* Every accepted frame is integrated and acknowledged, one that comes later is refused, and the exit status
 * is 0. */
START_TEST(sigterm_finishes_frames)
{
    struct vxd_peer admin, ingest, query;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "gated", 0.1);
    struct vxd_depth_frame f;
    for (uint64_t s = 1; s <= 3; ++s) {
        vxd_peer_open_stream(&ingest, "gated", s, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
        for (uint64_t seq = 1; seq <= 3; ++seq) {
            vxd_depth_frame_init(&f, s, seq);
            vxd_depth_frame_send(&ingest, &f);
        }
    }
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints points = VOXELD__V1__QUERY_POINTS__INIT;
    float p[3] = {0};
    points.map = vxd_bytes("gated");
    points.n = 1;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &points;
    uint64_t req = vxd_peer_send(&query, &header, p, sizeof p);
    ck_assert(vxd_peer_is_quiet(&ingest));
    ck_assert(vxd_peer_is_quiet(&query));
    kill(proc.pid, SIGTERM);
    vxd_peer_expect_error(&query, req, VOXELD__V1__CODE__CODE_UNAVAILABLE, NULL);
    struct vxd_got got;
    const uint64_t late_stream[2] = {9, 1}; /* 9: none, as one that went with its map at the end */
    for (int i = 0; i < 2; ++i) {           /* stopping has begun: the query's answer said so */
        vxd_depth_frame_init(&f, late_stream[i], 4);
        uint64_t late = vxd_depth_frame_send(&ingest, &f);
        got = vxd_peer_expect(&ingest, VOXELD__V1__HEADER__BODY_NACK, late);
        ck_assert_int_eq(got.header->nack->error->code, VOXELD__V1__CODE__CODE_UNAVAILABLE);
        vxd_got_free(&got);
    }
    fake_gate_open();
    ck_assert_int_eq(vxd_proc_wait(&proc, 0), 0);
    int acks = 0; /* what was sent lies in our socket, also after the daemon has ended */
    while (acks < 9) {
        got = vxd_peer_get(&ingest);
        acks += got.header->body_case == VOXELD__V1__HEADER__BODY_ACK;
        ck_assert_int_ne(got.header->body_case, VOXELD__V1__HEADER__BODY_NACK);
        vxd_got_free(&got);
    }
    vxd_peer_close(&admin);
    vxd_peer_close(&ingest);
    vxd_peer_close(&query);
}
END_TEST

START_TEST(second_signal_ends_at_once)
{
    struct vxd_peer admin, ingest;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_map_create(&admin, "gated", 0.1);
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    struct vxd_depth_frame f;
    vxd_depth_frame_init(&f, 1, 1);
    vxd_depth_frame_send(&ingest, &f);
    ck_assert(vxd_peer_is_quiet(&ingest));
    kill(proc.pid, SIGINT);
    for (bool stopping = false; !stopping;) { /* a HELLO is refused as soon as the first signal was seen */
        struct vxd_peer peer;
        vxw_header header = VOXELD__V1__HEADER__INIT;
        Voxeld__V1__Hello hello = VOXELD__V1__HELLO__INIT;
        vxd_peer_open(&peer, &proc, "query");
        hello.min_major = hello.max_major = 1;
        header.body_case = VOXELD__V1__HEADER__BODY_HELLO;
        header.hello = &hello;
        vxd_peer_send(&peer, &header, NULL, 0);
        struct vxd_got got = vxd_peer_get(&peer);
        stopping = got.header->body_case == VOXELD__V1__HEADER__BODY_ERROR;
        vxd_got_free(&got);
        vxd_peer_close(&peer);
    }
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGINT), 128 + SIGINT);
    vxd_peer_close(&admin);
    vxd_peer_close(&ingest);
}
END_TEST

START_TEST(shutdown_verb)
{
    struct vxd_peer admin;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__Shutdown body = VOXELD__V1__SHUTDOWN__INIT;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_map_create(&admin, "m", 0.1);
    header.body_case = VOXELD__V1__HEADER__BODY_SHUTDOWN;
    header.shutdown = &body;
    struct vxd_got got =
        vxd_peer_expect(&admin, VOXELD__V1__HEADER__BODY_RESULT, vxd_peer_send(&admin, &header, NULL, 0));
    vxd_got_free(&got);
    ck_assert_int_eq(vxd_proc_wait(&proc, 0), 0);
    vxd_peer_close(&admin);
}
END_TEST

/* The frame is answered, then the process ends with an error, so that a supervisor starts a new one. */
START_TEST(device_error_ends_the_process)
{
    struct vxd_peer admin, ingest;
    struct vxd_depth_frame f;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&ingest, &proc, "ingest");
    vxd_peer_map_create(&admin, "broken", 0.1);
    vxd_peer_map_create(&admin, "gated", 0.1); /* a job that hangs doesn't hold the end up */
    vxd_peer_open_stream(&ingest, "gated", 1, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    vxd_peer_open_stream(&ingest, "broken", 2, VOXELD__V1__SENSOR__SENSOR_DEPTH, NULL);
    for (uint64_t stream = 1; stream <= 2; ++stream) {
        vxd_depth_frame_init(&f, stream, 1);
        vxd_depth_frame_send(&ingest, &f);
    }
    struct vxd_got got = vxd_peer_get(&ingest);
    ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_NACK);
    ck_assert_uint_eq(got.header->nack->stream, 2);
    ck_assert_int_eq(got.header->nack->error->code, VOXELD__V1__CODE__CODE_UNAVAILABLE);
    vxd_got_free(&got);
    ck_assert_int_eq(vxd_proc_wait(&proc, 0), 1);
    vxd_peer_close(&admin);
    vxd_peer_close(&ingest);
}
END_TEST

/* The same of a question that the loop answers itself, with others open in its session and behind it. */
START_TEST(device_error_of_a_small_question)
{
    enum { AROUND = 3 };
    struct vxd_peer admin, query;
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints body = VOXELD__V1__QUERY_POINTS__INIT;
    const float point[3] = {1, 2, 3};
    uint64_t req[2 * AROUND + 1];
    int n_told = 0;
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "broken", 0.1);
    vxd_peer_map_create(&admin, "gated", 0.1);
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &body;
    body.n = 1;
    for (int i = 0; i < 2 * AROUND + 1; ++i) {
        header.req_id = 0;
        body.map = vxd_bytes(i == AROUND ? "broken" : "gated");
        req[i] = vxd_peer_send(&query, &header, point, sizeof point);
    }
    while (n_told < AROUND) { /* those that wait are cancelled; one runs, and hangs with the device */
        struct vxd_got got = vxd_peer_get(&query);
        ck_assert_int_eq(got.header->body_case, VOXELD__V1__HEADER__BODY_ERROR);
        ck_assert_int_eq(got.header->error->code, VOXELD__V1__CODE__CODE_UNAVAILABLE);
        ck_assert_uint_ge(got.header->req_id, req[0]);
        if (got.header->req_id == req[AROUND])
            ck_assert_ptr_nonnull(
                memmem(got.header->error->message.data, got.header->error->message.len, "device broke", 12));
        n_told += 1;
        vxd_got_free(&got);
    }
    ck_assert_int_eq(vxd_proc_wait(&proc, 0), 1);
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
}
END_TEST

START_TEST(folder_and_sockets)
{
    struct stat st;
    char path[96];
    ck_assert_int_eq(stat(proc.dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0750);
    snprintf(path, sizeof path, "%s/admin.sock", proc.dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0007, 0); /* nobody else's */
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGTERM), 0);
    ck_assert_int_ne(stat(path, &st), 0); /* and gone afterwards */
}
END_TEST

START_TEST(one_daemon_a_folder)
{
    struct vxd_peer peer;
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--ipc-dir", proc.dir, NULL}), 1);
    vxd_peer_hello(&peer, &proc, "admin"); /* the first one is unharmed */
    ck_assert(vxd_peer_is_quiet(&peer));
    vxd_peer_close(&peer);
}
END_TEST

/* What a killed daemon leaves behind doesn't keep the next one from starting. */
START_TEST(start_after_kill)
{
    char dir[64];
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGKILL), 128 + SIGKILL);
    snprintf(dir, sizeof dir, "%s", proc.dir);
    /* the same folder: its stale sockets and lock file are there */
    char path[96];
    struct stat st;
    snprintf(path, sizeof path, "%s/admin.sock", dir);
    ck_assert_int_eq(lstat(path, &st), 0);
    setenv("VOXELD_IPC_DIR", dir, 1);
    pid_t pid = vxd_proc_spawn("voxeld_fake", NULL);
    unsetenv("VOXELD_IPC_DIR");
    proc.pid = pid;
    struct vxd_peer peer;
    vxd_peer_hello(&peer, &proc, "admin");
    vxd_peer_close(&peer);
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGTERM), 0);
}
END_TEST

START_TEST(options)
{
    char config[96];
    FILE *f;
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--version", NULL}), 0);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--help", NULL}), 0);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--check-config", NULL}), 0);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--backends", "cpu", NULL}), 2);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--backend", "gpu", NULL}), 2);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--backend", NULL}), 2);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--memory-cap=-5", NULL}), 2);
    ck_assert_int_eq(
        vxd_proc_run("voxeld_fake", (const char *const[]){"--config", "/nowhere", "--check-config", NULL}),
        2);
    snprintf(config, sizeof config, "%s/bad.yaml", proc.base);
    f = fopen(config, "w");
    fputs("limits: {sessions: 0}\n", f);
    fclose(f);
    ck_assert_int_eq(
        vxd_proc_run("voxeld_fake", (const char *const[]){"--config", config, "--check-config", NULL}), 2);
    setenv("VOXELD_THREADS", "many", 1);
    ck_assert_int_eq(vxd_proc_run("voxeld_fake", (const char *const[]){"--check-config", NULL}), 2);
    unsetenv("VOXELD_THREADS");
    ck_assert_int_eq(
        vxd_proc_run("voxeld_fake", (const char *const[]){"--ipc-dir", "/nonexistent/deeper/dir", NULL}), 1);
    /* a backend that this build doesn't have is an error, not a silent other one */
    char dir[96];
    snprintf(dir, sizeof dir, "%s/other", proc.base);
    ck_assert_int_eq(
        vxd_proc_run("voxeld_fake", (const char *const[]){"--ipc-dir", dir, "--backend", "cuda", NULL}), 1);
}
END_TEST

/* ------------------------------------------------------------------ a processor for questions */

/* The first processor that this process may run on, and how many there are. */
static int first_cpu(int *n_cpus)
{
    cpu_set_t set;
    int cpu = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    *n_cpus = CPU_COUNT(&set);
    while (!CPU_ISSET(cpu, &set))
        ++cpu;
    return cpu;
}

/* Processors of the thread of that name of the daemon (NULL: of its first thread). */
static int cpus_of(const char *name, int *first)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)proc.pid);
    DIR *tasks = opendir(path);
    ck_assert_ptr_nonnull(tasks);
    int n = 0;
    for (struct dirent *d; (d = readdir(tasks)) && !n;) {
        char comm[32] = "", file[400];
        cpu_set_t set;
        const int tid = atoi(d->d_name);
        snprintf(file, sizeof file, "%s/%s/comm", path, d->d_name);
        FILE *f = fopen(file, "r");
        if (!f || !tid)
            continue;
        ck_assert_ptr_nonnull(fgets(comm, sizeof comm, f));
        fclose(f);
        comm[strcspn(comm, "\n")] = 0;
        if (name ? strcmp(comm, name) : tid != proc.pid)
            continue;
        ck_assert_int_eq(sched_getaffinity(tid, sizeof set, &set), 0);
        n = CPU_COUNT(&set);
        for (*first = 0; !CPU_ISSET(*first, &set);)
            ++*first;
    }
    closedir(tasks);
    ck_assert_int_gt(n, 0);
    return n;
}

/* With query_cpu the loop stays there, workers go where they want; answers are as ever. */
START_TEST(questions_have_a_processor)
{
    static char yaml[96];
    vxw_header header = VOXELD__V1__HEADER__INIT;
    Voxeld__V1__QueryPoints points = VOXELD__V1__QUERY_POINTS__INIT;
    struct vxd_peer admin, query;
    const float p[3] = {1, 2, 3};
    int n_cpus, cpu = first_cpu(&n_cpus), at = -1;
    vxd_proc_stop(&proc);
    snprintf(yaml, sizeof yaml, "log_level: error\nquery_cpu: %d\nquery_awake_ms: 20\n", cpu);
    proc = (struct vxd_proc){.yaml = yaml};
    vxd_proc_start(&proc, "voxeld_fake", NULL);
    vxd_peer_hello(&admin, &proc, "admin");
    vxd_peer_hello(&query, &proc, "query");
    vxd_peer_map_create(&admin, "m", 0.1);
    points.map = vxd_bytes("m");
    points.n = 1;
    header.body_case = VOXELD__V1__HEADER__BODY_QUERY_POINTS;
    header.query_points = &points;
    for (int i = 0; i < 50; ++i, header.req_id = 0) {
        struct vxd_got got = vxd_peer_expect(&query, VOXELD__V1__HEADER__BODY_RESULT,
                                             vxd_peer_send(&query, &header, p, sizeof p));
        vxd_got_free(&got);
    }
    ck_assert_int_eq(cpus_of(NULL, &at), 1);
    ck_assert_int_eq(at, cpu);
    ck_assert_int_eq(cpus_of("awake", &at), 1);
    ck_assert_int_eq(at, cpu);
    ck_assert_int_eq(cpus_of("query", &at), n_cpus);
    ck_assert_int_eq(cpus_of("stage", &at), n_cpus);
    vxd_peer_close(&admin);
    vxd_peer_close(&query);
    ck_assert_int_eq(vxd_proc_wait(&proc, SIGTERM), 0);
}
END_TEST

START_TEST(processors_that_are_not_there)
{
    static const char *const yaml[] = {"query_cpu: 1023\n", "query_awake_ms: 5\n", "query_cpu: -1\n"};
    char file[96], dir[96];
    snprintf(file, sizeof file, "%s/bad.yaml", proc.base);
    snprintf(dir, sizeof dir, "%s/other", proc.base);
    for (int i = 0; i < 3; ++i) {
        FILE *f = fopen(file, "w");
        ck_assert_ptr_nonnull(f);
        fputs(yaml[i], f);
        fclose(f);
        ck_assert_int_ne(
            vxd_proc_run("voxeld_fake", (const char *const[]){"--config", file, "--ipc-dir", dir, NULL}), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("daemon process");
    TCase *tc = tcase_create("process");
    tcase_set_timeout(tc, 100);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, sigterm_finishes_frames);
    tcase_add_test(tc, second_signal_ends_at_once);
    tcase_add_test(tc, shutdown_verb);
    tcase_add_test(tc, device_error_ends_the_process);
    tcase_add_test(tc, device_error_of_a_small_question);
    tcase_add_test(tc, folder_and_sockets);
    tcase_add_test(tc, one_daemon_a_folder);
    tcase_add_test(tc, start_after_kill);
    tcase_add_test(tc, options);
    tcase_add_test(tc, questions_have_a_processor);
    tcase_add_test(tc, processors_that_are_not_there);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
