/* Device and pinned memory, and ranges: all of it is the host's, filled with 0xCB at first. */
#include "runtime.h"

#include "include/cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, bytes)   ((void)(ptr), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, bytes) ((void)(ptr), (void)(bytes))
#endif

namespace
{

/* ZONE bytes before and behind a block; blocks are aligned to 256 bytes and no more. */
constexpr size_t ZONE = 256, STEP = 2 << 20, TOTAL = 4ull << 30;
constexpr int FRESH = 0xcb, WALL = 0xa5;

std::map<void *, size_t> blocks, pinned;
std::map<CUmemGenericAllocationHandle, size_t> pieces;
CUmemGenericAllocationHandle n_pieces;
size_t used;

void *make(std::map<void *, size_t> &in, size_t bytes)
{
    void *raw = nullptr;
    if (bytes > TOTAL || posix_memalign(&raw, 2 * ZONE, bytes + 2 * ZONE) != 0)
        return nullptr;
    char *at = (char *)raw + ZONE;
    memset(raw, WALL, ZONE);
    memset(at, FRESH, bytes);
    memset(at + bytes, WALL, ZONE);
    ASAN_POISON_MEMORY_REGION(raw, ZONE);
    ASAN_POISON_MEMORY_REGION(at + bytes, ZONE);
    in[at] = bytes;
    return at;
}

/* False: not a block. */
bool drop(std::map<void *, size_t> &in, void *ptr, size_t *bytes)
{
    auto found = in.find(ptr);
    if (found == in.end())
        return false;
    *bytes = found->second;
    unsigned char *at = (unsigned char *)ptr;
    ASAN_UNPOISON_MEMORY_REGION(at - ZONE, ZONE + *bytes + ZONE);
    for (size_t k = 0; k < ZONE; k++)
        if (at[k - ZONE] != WALL || at[*bytes + k] != WALL) {
            fprintf(stderr, "cuda emulated: a write outside of a block of %zu bytes\n", *bytes);
            abort();
        }
    free(at - ZONE);
    in.erase(found);
    return true;
}

} // namespace

using emulated::say;

extern "C" {

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    if (bytes > TOTAL - used || !(*out = make(blocks, bytes)))
        return say(cudaErrorMemoryAllocation);
    used += bytes;
    return cudaSuccess;
}

/* Waits for all work, as the real one does. */
cudaError_t cudaFree(void *ptr)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    size_t bytes;
    emulated::run_everything();
    if (!ptr)
        return cudaSuccess;
    if (!drop(blocks, ptr, &bytes))
        return say(cudaErrorInvalidValue);
    used -= bytes;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    (void)flags;
    *out = make(pinned, bytes);
    return *out ? cudaSuccess : say(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *ptr)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    size_t bytes;
    emulated::run_everything();
    return !ptr || drop(pinned, ptr, &bytes) ? cudaSuccess : say(cudaErrorInvalidValue);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *ptr)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    auto within = [ptr](const std::map<void *, size_t> &in) {
        auto behind = in.upper_bound((void *)ptr);
        return behind != in.begin() &&
               (const char *)ptr < (const char *)std::prev(behind)->first + std::prev(behind)->second;
    };
    out->type = within(pinned)   ? cudaMemoryTypeHost
                : within(blocks) ? cudaMemoryTypeDevice
                                 : cudaMemoryTypeUnregistered;
    out->devicePointer = out->type == cudaMemoryTypeUnregistered ? nullptr : (void *)ptr;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    *free_bytes = TOTAL - used;
    *total_bytes = TOTAL;
    return cudaSuccess;
}

/* Ranges: addresses without access, which mapping makes usable. */

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *property,
                                       CUmemAllocationGranularity_flags option)
{
    (void)property;
    (void)option;
    *out = STEP;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr at,
                             unsigned long long flags)
{
    void *base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)alignment;
    (void)at;
    (void)flags;
    if (bytes == 0 || bytes % STEP)
        return CUDA_ERROR_INVALID_VALUE;
    if (base == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
    return munmap((void *)(uintptr_t)base, bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *property,
                     unsigned long long flags)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    (void)property;
    (void)flags;
    if (bytes == 0 || bytes % STEP)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > TOTAL - used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    used += bytes;
    *out = ++n_pieces;
    pieces[*out] = bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    auto found = pieces.find(handle);
    if (found == pieces.end())
        return CUDA_ERROR_INVALID_VALUE;
    used -= found->second;
    pieces.erase(found);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    auto found = pieces.find(handle);
    (void)at;
    (void)flags;
    return found != pieces.end() && offset == 0 && bytes == found->second ? CUDA_SUCCESS
                                                                          : CUDA_ERROR_INVALID_VALUE;
}

/* Waits for all work, as the real one does. */
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> hold(emulated::lock());
    void *base = (void *)(uintptr_t)at;
    emulated::run_everything();
    return mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
                   base
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    void *base = (void *)(uintptr_t)at;
    if (n != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    if (mprotect(base, bytes, PROT_READ | PROT_WRITE) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(base, FRESH, bytes);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    static const struct {
        const char *name;
        void *function;
    } calls[] = {
        {"cuMemGetAllocationGranularity", (void *)cuMemGetAllocationGranularity},
        {"cuMemAddressReserve", (void *)cuMemAddressReserve},
        {"cuMemAddressFree", (void *)cuMemAddressFree},
        {"cuMemCreate", (void *)cuMemCreate},
        {"cuMemRelease", (void *)cuMemRelease},
        {"cuMemMap", (void *)cuMemMap},
        {"cuMemUnmap", (void *)cuMemUnmap},
        {"cuMemSetAccess", (void *)cuMemSetAccess},
    };
    (void)version;
    (void)flags;
    *out = nullptr;
    *result = cudaDriverEntryPointSymbolNotFound;
    for (const auto &c : calls)
        if (!strcmp(c.name, name)) {
            *out = c.function;
            *result = cudaDriverEntryPointSuccess;
        }
    return cudaSuccess;
}

} // extern "C"
