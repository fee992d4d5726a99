#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RING = 512, LINE = 600 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    pthread_t thread;
    bool running, stopping;
    enum vxd_log_level level;
    unsigned head, n, n_lost;
    char line[RING][LINE];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .level = VXD_LOG_INFO};

static const char *const level_name[] = {"error", "warn", "info", "debug"};

static void write_all(const char *line)
{
    size_t n = strlen(line);
    while (n) {
        ssize_t k = write(STDERR_FILENO, line, n);
        if (k <= 0)
            return; /* nowhere to report it */
        line += k;
        n -= (size_t)k;
    }
}

static void format_line(char *out, enum vxd_log_level level, const char *event, const char *format,
                        va_list args)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(out, LINE, "time=%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(out + n, LINE - n, ".%03ldZ level=%s event=%s ", now.tv_nsec / 1000000,
                          level_name[level], event);
    int k = vsnprintf(out + n, LINE - n - 1, format, args);
    n += k < 0 ? 0 : (size_t)k;
    if (n > LINE - 2)
        n = LINE - 2;
    out[n] = '\n';
    out[n + 1] = 0;
}

static void *writer(void *arg)
{
    char line[LINE];
    (void)arg;
    pthread_mutex_lock(&state.mutex);
    for (;;) {
        while (!state.n && !state.stopping)
            pthread_cond_wait(&state.filled, &state.mutex);
        if (!state.n)
            break;
        memcpy(line, state.line[state.head], LINE);
        state.head = (state.head + 1) % RING;
        --state.n;
        unsigned n_lost = state.n ? 0 : state.n_lost;
        if (n_lost)
            state.n_lost = 0;
        pthread_mutex_unlock(&state.mutex);
        write_all(line);
        if (n_lost) {
            snprintf(line, sizeof line, "level=warn event=log_lines_lost n=%u\n", n_lost);
            write_all(line);
        }
        pthread_mutex_lock(&state.mutex);
    }
    pthread_mutex_unlock(&state.mutex);
    return NULL;
}

void vxd_log_start(enum vxd_log_level level)
{
    state.level = level;
    state.stopping = false;
    state.running = pthread_create(&state.thread, NULL, writer, NULL) == 0;
}

void vxd_log_stop(void)
{
    pthread_mutex_lock(&state.mutex);
    bool was_running = state.running;
    state.stopping = true;
    state.running = false;
    pthread_cond_signal(&state.filled);
    pthread_mutex_unlock(&state.mutex);
    if (was_running)
        pthread_join(state.thread, NULL);
}

void vxd_log(enum vxd_log_level level, const char *event, const char *format, ...)
{
    if (level > state.level)
        return;
    char line[LINE];
    va_list args;
    va_start(args, format);
    format_line(line, level, event, format, args);
    va_end(args);
    pthread_mutex_lock(&state.mutex);
    bool queued = state.running;
    if (queued && state.n == RING) {
        ++state.n_lost;
    } else if (queued) {
        memcpy(state.line[(state.head + state.n) % RING], line, LINE);
        ++state.n;
        pthread_cond_signal(&state.filled);
    }
    pthread_mutex_unlock(&state.mutex);
    if (!queued)
        write_all(line);
}

struct vxd_quoted vxd_quote(const void *bytes, unsigned long n)
{
    struct vxd_quoted q;
    const unsigned char *b = bytes;
    size_t at = 0;
    q.text[at++] = '"';
    for (unsigned long i = 0; i < n; ++i) {
        if (at > sizeof q.text - 10) {
            memcpy(q.text + at, "...", 3);
            at += 3;
            break;
        }
        if (b[i] >= 0x20 && b[i] < 0x7f && b[i] != '"' && b[i] != '\\')
            q.text[at++] = (char)b[i];
        else
            at += (size_t)snprintf(q.text + at, 5, "\\x%02x", b[i]);
    }
    q.text[at++] = '"';
    q.text[at] = 0;
    return q;
}
