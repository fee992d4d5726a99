/* The emulation itself: meetings give what CUDA's give, and misuse ends the program with words that say
 * where. */
#include <cassert>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

static unsigned failures, checks;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        checks++;                                                                                            \
        if (!(condition)) {                                                                                  \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                           \
            failures++;                                                                                      \
        }                                                                                                    \
    } while (0)

template <typename... P, typename... A>
static cudaError_t start(void (*kernel)(P...), unsigned blocks, unsigned threads, cudaStream_t s,
                         const A &...args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = 1024;
    config.stream = s;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

/* What a kernel that misbehaves writes before it ends the program; empty: it did not. */
template <typename... P> static std::string words_of(void (*kernel)(P...), P... args)
{
    int ends[2], status;
    char buffer[4096];
    std::string words;
    pid_t child;
    assert(pipe(ends) == 0);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        cudaStream_t s;
        dup2(ends[1], 2);
        cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0);
        start(kernel, 3, 64, s, args...);
        cudaStreamSynchronize(s);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
        words.append(buffer, (size_t)n);
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? words : "";
}

static bool has(const std::string &words, const char *part)
{
    bool found = words.find(part) != std::string::npos;
    if (!found)
        printf("wanted \"%s\", got \"%s\"\n", part, words.c_str());
    return found;
}

/* Right use */

static __global__ void all_meetings(unsigned *out)
{
    __shared__ unsigned turned[64];
    unsigned t = threadIdx.x, lane = t & 31, warp = t >> 5, ok = 1;
    ok &= __shfl_sync(~0u, t, 5) == warp * 32 + 5;
    ok &= __shfl_sync(~0u, t, 9, 8) == (t & ~7u) + 1;
    ok &= __shfl_up_sync(~0u, t, 3, 16) == ((lane & 15) >= 3 ? t - 3 : t);
    ok &= __shfl_down_sync(~0u, t, 2) == (lane < 30 ? t + 2 : t);
    ok &= __shfl_xor_sync(~0u, (uint64_t)t << 40, 17) == (uint64_t)(t ^ 17) << 40;
    ok &= __ballot_sync(~0u, lane % 3 == 0) == 0x49249249u;
    ok &= !__any_sync(~0u, t > 99) && __any_sync(~0u, lane == 31);
    if (lane < 7)
        ok &= __shfl_sync(0x7f, t, (int)(6 - lane)) == warp * 32 + 6 - lane;
#if __CUDA_ARCH__ >= 800
    ok &= __reduce_add_sync(~0u, lane) == 496 && __reduce_or_sync(~0u, 1u << lane) == ~0u;
#endif
    turned[63 - t] = t;
    __syncthreads();
    ok &= turned[t] == 63 - t;
    ok &= __syncthreads_or(t == 40) && !__syncthreads_or(t == 64);
    out[blockIdx.x * 64 + t] = ok;
}

/* Wrong use */

static __global__ void other_place(unsigned *out)
{
    if (threadIdx.x < 16)
        *out = __ballot_sync(~0u, 1);
    else
        *out = __ballot_sync(~0u, 0);
}
static __global__ void returned(unsigned *out)
{
    if (threadIdx.x == 37)
        return;
    *out = __shfl_sync(~0u, threadIdx.x, 0);
}
static __global__ void not_in_mask(unsigned *out)
{
    *out = __shfl_sync(0xffff, threadIdx.x, 0);
}
static __global__ void reads_outside(unsigned *out)
{
    if (threadIdx.x < 8)
        *out = __shfl_sync(0xff, threadIdx.x, 9);
}
static __global__ void never_comes(unsigned *out)
{
    if (threadIdx.x % 32 < 8)
        *out = __ballot_sync(~0u, 1);
    else
        __syncthreads();
}
static __global__ void leaves_block(unsigned *out)
{
    if (threadIdx.x >= 32)
        return;
    __syncthreads();
    *out = 1;
}
/* Lanes of a warp read what others wrote, without a meeting in between. */
static __global__ void no_meeting(unsigned *out)
{
    __shared__ unsigned turned[64];
    turned[63 - threadIdx.x] = threadIdx.x;
    out[blockIdx.x * 64 + threadIdx.x] = turned[threadIdx.x] == 63 - threadIdx.x;
}

static __global__ void add_one(unsigned *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x]++;
}

int main()
{
    static unsigned out[10 * 64], copy[10 * 64];
    cudaStream_t s, other;
    cudaEvent_t e;
    unsigned sum = 0;
    void *p;
    cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0);
    cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0);
    cudaEventCreate(&e);
    for (unsigned round = 0; round < 50; round++) {
        memset(out, 0, sizeof out);
        CHECK(start(all_meetings, 10, 64, s, (unsigned *)out) == cudaSuccess);
        CHECK(cudaStreamSynchronize(s) == cudaSuccess);
        for (unsigned i = 0; i < 640; i++)
            CHECK(out[i] == 1);
    }
    CHECK(has(words_of(other_place, (unsigned *)out), "wait for each other at different places"));
    CHECK(has(words_of(returned, (unsigned *)out), "ha"));
    CHECK(has(words_of(returned, (unsigned *)out), "kernel returned(unsigned int*)"));
    CHECK(has(words_of(not_in_mask, (unsigned *)out), "itself not among them"));
    CHECK(has(words_of(reads_outside, (unsigned *)out), "reads lane 9, which is not in the mask 000000ff"));
    CHECK(has(words_of(never_comes, (unsigned *)out), "wait for others that never come"));
    CHECK(has(words_of(never_comes, (unsigned *)out), "test_emulated.cu:"));
    CHECK(has(words_of(leaves_block, (unsigned *)out), "returned, others wait for"));

    start(no_meeting, 10, 64, s, (unsigned *)out);
    cudaStreamSynchronize(s);
    for (unsigned i = 0; i < 640; i++)
        sum += out[i];
    CHECK(sum < 640);

    /* Work is put off: most of the time nothing is there before the wait; events order streams. */
    sum = 0;
    for (unsigned round = 0; round < 200; round++) {
        memset(out, 0, sizeof out);
        memset(copy, 0, sizeof copy);
        start(add_one, 10, 64, s, (unsigned *)out);
        start(add_one, 10, 64, s, (unsigned *)out);
        cudaEventRecord(e, s);
        cudaStreamWaitEvent(other, e, 0);
        cudaMemcpyAsync(copy, out, sizeof out, cudaMemcpyDeviceToHost, other);
        sum += copy[639] == 0;
        cudaStreamSynchronize(other);
        CHECK(copy[0] == 2 && copy[639] == 2);
        cudaStreamSynchronize(s);
    }
    CHECK(sum > 100);
    /* A wait is for the record that was there when it was asked for, whoever records the event later. */
    for (unsigned round = 0; round < 50; round++) {
        memset(out, 0, sizeof out);
        start(add_one, 10, 64, s, (unsigned *)out);
        cudaEventRecord(e, s);
        cudaStreamWaitEvent(other, e, 0);
        cudaMemcpyAsync(copy, out, sizeof out, cudaMemcpyDeviceToHost, other);
        cudaEventRecord(e, other);
        cudaStreamWaitEvent(s, e, 0);
        start(add_one, 10, 64, s, (unsigned *)out);
        cudaStreamSynchronize(s);
        CHECK(copy[0] == 1 && copy[639] == 1 && out[0] == 2);
    }
    CHECK(start(add_one, 0, 64, s, (unsigned *)out) == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess);
    CHECK(cudaMalloc(&p, 1ull << 40) == cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&p, 1000) == cudaSuccess && (uintptr_t)p % 512 == 256 && *(unsigned char *)p == 0xcb);
    CHECK(cudaFree(p) == cudaSuccess && cudaFree(p) == cudaErrorInvalidValue);
    cudaEventDestroy(e);
    cudaStreamDestroy(other);
    cudaStreamDestroy(s);
    printf("%u checks, %u failures\n", checks, failures);
    return failures != 0;
}
