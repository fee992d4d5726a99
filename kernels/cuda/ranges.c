/*
 * Growing ranges: addresses are reserved once, physical memory is mapped behind them piece by piece (the
 * driver's virtual memory calls).  The calls are looked up at run time, so that nothing links the driver's
 * library and the program starts on a machine without one.
 */
#include "device.h"

#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The version whose calls are asked for. */
enum { DRIVER_API = 12000 };

#define DRIVER_CALLS(X)                                                                                      \
    X(cuMemGetAllocationGranularity)                                                                         \
    X(cuMemAddressReserve)                                                                                   \
    X(cuMemAddressFree)                                                                                      \
    X(cuMemCreate)                                                                                           \
    X(cuMemRelease)                                                                                          \
    X(cuMemMap)                                                                                              \
    X(cuMemUnmap)                                                                                            \
    X(cuMemSetAccess)

static struct {
#define X(name) __typeof__(&name) name;
    DRIVER_CALLS(X)
#undef X
} driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static int driver_found;

static int find_call(const char *name, void *out)
{
    enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    void *function = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &function, DRIVER_API, cudaEnableDefault, &result);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result);
#endif
    memcpy(out, &function, sizeof function);
    return e == cudaSuccess && result == cudaDriverEntryPointSuccess && function;
}

static void find_driver(void)
{
    driver_found = 1;
#define X(name) driver_found &= find_call(#name, &driver.name);
    DRIVER_CALLS(X)
#undef X
}

struct pieces {
    CUmemAllocationProp property;
    uint64_t step; /* the driver's granularity */
    struct piece {
        CUmemGenericAllocationHandle handle;
        uint64_t offset, bytes;
    } * piece;
    uint32_t n, room;
};

static uint64_t round_up(uint64_t x, uint64_t step)
{
    return (x + step - 1) / step * step;
}

vx_err vxk_cuda_reserve(struct vxk_dev *dev, uint64_t bytes, struct vxk_range *out)
{
    struct vxk_cuda_dev *d = (struct vxk_cuda_dev *)dev;
    struct pieces *p;
    size_t step = 0;
    CUdeviceptr base = 0;
    memset(out, 0, sizeof *out);
    if (bytes == 0)
        return VX_E_INVALID;
    if (bytes > 1ull << 46)
        return VX_E_EXHAUSTED;
    if (cudaSetDevice(d->index) != cudaSuccess)
        return VX_E_DEVICE;
    pthread_once(&driver_once, find_driver);
    if (!driver_found)
        return VX_E_UNAVAILABLE;
    p = (struct pieces *)calloc(1, sizeof *p);
    if (!p)
        return VX_E_NOMEM;
    p->property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p->property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p->property.location.id = d->index;
    if (driver.cuMemGetAllocationGranularity(&step, &p->property, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) !=
        CUDA_SUCCESS) {
        free(p);
        return VX_E_DEVICE;
    }
    p->step = step;
    bytes = round_up(bytes, step);
    if (driver.cuMemAddressReserve(&base, bytes, 0, 0, 0) != CUDA_SUCCESS) {
        free(p);
        return VX_E_EXHAUSTED;
    }
    out->base = (void *)(uintptr_t)base;
    out->reserved_bytes = bytes;
    out->impl = p;
    return VX_OK;
}

/* Physical memory for [offset, offset + bytes) of the range. */
static CUresult map_piece(CUdeviceptr base, struct pieces *p, struct piece *piece)
{
    CUmemAccessDesc access;
    CUresult r = driver.cuMemCreate(&piece->handle, piece->bytes, &p->property, 0);
    if (r != CUDA_SUCCESS)
        return r;
    r = driver.cuMemMap(base + piece->offset, piece->bytes, 0, piece->handle, 0);
    if (r != CUDA_SUCCESS) {
        driver.cuMemRelease(piece->handle);
        return r;
    }
    memset(&access, 0, sizeof access);
    access.location = p->property.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    r = driver.cuMemSetAccess(base + piece->offset, piece->bytes, &access, 1);
    if (r != CUDA_SUCCESS) {
        driver.cuMemUnmap(base + piece->offset, piece->bytes);
        driver.cuMemRelease(piece->handle);
    }
    return r;
}

vx_err vxk_cuda_commit(struct vxk_dev *dev, struct vxk_range *range, uint64_t bytes)
{
    struct vxk_cuda_dev *d = (struct vxk_cuda_dev *)dev;
    struct pieces *p = (struct pieces *)range->impl;
    struct piece *piece;
    CUresult r;
    if (bytes > range->reserved_bytes)
        return VX_E_EXHAUSTED;
    if (bytes <= range->committed_bytes)
        return VX_OK;
    if (cudaSetDevice(d->index) != cudaSuccess)
        return VX_E_DEVICE;
    if (p->n == p->room) {
        uint32_t room = p->room ? 2 * p->room : 16;
        struct piece *more = (struct piece *)realloc(p->piece, room * sizeof *more);
        if (!more)
            return VX_E_NOMEM;
        p->piece = more;
        p->room = room;
    }
    piece = &p->piece[p->n];
    piece->offset = range->committed_bytes;
    piece->bytes = round_up(bytes, p->step) - range->committed_bytes;
    r = map_piece((CUdeviceptr)(uintptr_t)range->base, p, piece);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        vxk_blocks_trim(&d->blocks);
        r = map_piece((CUdeviceptr)(uintptr_t)range->base, p, piece);
    }
    if (r != CUDA_SUCCESS)
        return r == CUDA_ERROR_OUT_OF_MEMORY ? VX_E_EXHAUSTED : VX_E_DEVICE;
    p->n++;
    range->committed_bytes += piece->bytes;
    return VX_OK;
}

void vxk_cuda_release(struct vxk_dev *dev, struct vxk_range *range)
{
    struct pieces *p = (struct pieces *)range->impl;
    CUdeviceptr base = (CUdeviceptr)(uintptr_t)range->base;
    if (p && cudaSetDevice(((struct vxk_cuda_dev *)dev)->index) == cudaSuccess) {
        for (uint32_t i = 0; i < p->n; i++) {
            driver.cuMemUnmap(base + p->piece[i].offset, p->piece[i].bytes);
            driver.cuMemRelease(p->piece[i].handle);
        }
        driver.cuMemAddressFree(base, range->reserved_bytes);
    }
    if (p)
        free(p->piece);
    free(p);
    memset(range, 0, sizeof *range);
}
