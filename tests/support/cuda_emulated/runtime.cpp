/* The runtime: streams whose work is put off until someone waits, events, launches. */
#include "runtime.h"

#include "engine.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

namespace emulated
{

std::recursive_mutex &lock()
{
    static std::recursive_mutex mutex;
    return mutex;
}

static thread_local cudaError_t last_error;

cudaError_t say(cudaError_t e)
{
    if (e != cudaSuccess)
        last_error = e;
    return e;
}

} // namespace emulated

using emulated::say;

/* A place in the work of a stream that an event was recorded at. */
struct mark {
    emulated_stream *stream;
    bool done;
    std::chrono::steady_clock::time_point at;
};
struct emulated_event {
    std::shared_ptr<mark> last; /* the newest record */
};
struct work {
    std::function<void()> run;
    std::shared_ptr<mark> after; /* this must have happened first */
};
struct emulated_stream {
    std::deque<work> todo;
};

/* All streams, and how often work is done before anyone waits. */
static std::vector<emulated_stream *> streams;

static void run_one(emulated_stream *s)
{
    work w = std::move(s->todo.front());
    s->todo.pop_front();
    while (w.after && !w.after->done)
        run_one(w.after->stream); /* it is among what that stream has to do */
    if (w.run)
        w.run();
}

static void run_all(emulated_stream *s)
{
    while (!s->todo.empty())
        run_one(s);
}

void emulated::run_everything()
{
    for (emulated_stream *s : streams)
        run_all(s);
}

/* Most work stays until it is waited for; now and then some is done early, as a device may. */
static cudaError_t put(emulated_stream *s, work w)
{
    static uint64_t state = emulated::seed() * 0x9e3779b97f4a7c15ull | 1;
    if (!s)
        return say(cudaErrorInvalidResourceHandle);
    s->todo.push_back(std::move(w));
    uint64_t r = emulated::random(state);
    if (r % 16 == 0)
        run_all(s);
    else if (r % 16 == 1) {
        emulated_stream *any = streams[r / 16 % streams.size()];
        if (!any->todo.empty())
            run_one(any);
    }
    return cudaSuccess;
}

static cudaError_t put(emulated_stream *s, std::function<void()> run)
{
    return put(s, work{std::move(run), nullptr});
}

cudaError_t emulated::queue(cudaStream_t s, std::function<void()> run)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    return put(s, std::move(run));
}

extern "C" {

/* Errors */

struct error_words {
    const char *name, *text;
};
static const struct error_words error_words[] = {
    {"cudaSuccess", "no error"},
    {"cudaErrorInvalidValue", "invalid argument"},
    {"cudaErrorMemoryAllocation", "out of memory"},
    {"cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {"cudaErrorInvalidDevice", "invalid device ordinal"},
    {"cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {"cudaErrorNoKernelImageForDevice", "no kernel image is available"},
    {"cudaErrorNotReady", "device not ready"},
    {"cudaErrorNotSupported", "operation not supported"},
};
const char *cudaGetErrorName(cudaError_t e)
{
    return error_words[e].name;
}
const char *cudaGetErrorString(cudaError_t e)
{
    return error_words[e].text;
}
cudaError_t cudaGetLastError(void)
{
    cudaError_t e = emulated::last_error;
    emulated::last_error = cudaSuccess;
    return e;
}

/* The device: few multiprocessors, so that launches are strided over; how many, the seed says. */

cudaError_t cudaGetDeviceCount(int *n)
{
    emulated::seed();
    *n = 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int index)
{
    return say(index == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int index)
{
    static const int counts[] = {5, 1, 2, 3, 8, 132};
    if (index != 0)
        return say(cudaErrorInvalidDevice);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "CUDA emulated on the CPU (compute capability %d.%d)",
             __CUDA_ARCH__ / 100, __CUDA_ARCH__ / 10 % 10);
    out->major = __CUDA_ARCH__ / 100;
    out->minor = __CUDA_ARCH__ / 10 % 10;
    out->multiProcessorCount = counts[emulated::seed() % 6];
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    *lowest = 0;
    *highest = -5;
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel)
{
    if (!kernel)
        return say(cudaErrorInvalidValue);
    out->binaryVersion = __CUDA_ARCH__ / 10;
    return cudaSuccess;
}

/* Streams and events */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    (void)flags;
    if (priority > 0 || priority < -5)
        return say(cudaErrorInvalidValue);
    *out = new emulated_stream();
    streams.push_back(*out);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    run_all(s);
    for (size_t k = 0; k < streams.size(); k++)
        if (streams[k] == s) {
            streams.erase(streams.begin() + (ptrdiff_t)k);
            break;
        }
    delete s;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    if (!s)
        return say(cudaErrorInvalidResourceHandle);
    run_all(s);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    (void)flags;
    if (!e)
        return say(cudaErrorInvalidResourceHandle);
    return put(s, work{nullptr, e->last});
}
cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = new emulated_event();
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    if (!e || !s)
        return say(cudaErrorInvalidResourceHandle);
    std::shared_ptr<mark> m = std::make_shared<mark>();
    m->stream = s;
    e->last = m;
    return put(s, [m] {
        m->done = true;
        m->at = std::chrono::steady_clock::now();
    });
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    if (!from->last || !to->last)
        return say(cudaErrorInvalidResourceHandle);
    if (!from->last->done || !to->last->done)
        return say(cudaErrorNotReady);
    *ms = std::chrono::duration<float, std::milli>(to->last->at - from->last->at).count();
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    (void)kind;
    return emulated::queue(s, [=] { memmove(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t s)
{
    return emulated::queue(s, [=] { memset(to, byte, bytes); });
}

/* Launches */

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **args)
{
    return emulated::launch(*config, ((const emulated::kernel_entry *)kernel)->make(args));
}

} // extern "C"

cudaError_t emulated::launch(const cudaLaunchConfig_t &c, std::shared_ptr<const call> what)
{
    const dim3 grid = c.gridDim, block = c.blockDim;
    const size_t shared_bytes = c.dynamicSmemBytes;
    bool early = false;
    if (grid.x == 0 || grid.x > 0x7fffffffu || grid.y == 0 || grid.y > 65535 || grid.z != 1 || block.x == 0 ||
        block.x > 1024 || block.y != 1 || block.z != 1)
        return say(cudaErrorInvalidConfiguration);
    if (shared_bytes > 48 << 10)
        return say(cudaErrorInvalidValue);
    for (unsigned k = 0; k < c.numAttrs; k++)
        early |= c.attrs[k].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                 c.attrs[k].val.programmaticStreamSerializationAllowed;
    return queue(c.stream, [=] { run_grid(*what, grid, block, shared_bytes, early); });
}
