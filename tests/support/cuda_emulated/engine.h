/*
 * engine.h - runs the blocks of a launch on the calling thread, and what lanes of a warp or block do
 * together.
 *
 * Every CUDA thread runs until it meets others; then the next one runs.  In which order, a seed says
 * (VOXELD_EMULATED_SEED, printed when the device is first asked for).  Lanes that do not meet as CUDA demands
 * end the program with words: what kernel, what block, where each lane stands.
 *
 * Thread: one launch at a time (runtime.cpp holds a lock).
 */
#ifndef EMULATED_ENGINE_H
#define EMULATED_ENGINE_H

#include "include/cuda_runtime_api.h"

#include <memory>

struct uint3 {
    unsigned x, y, z;
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace emulated
{

enum meeting { SYNC, SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT, ANY, ADD, OR, BLOCK };

/* The calling lane meets those of `mask` (or all threads of its block) and gets its result. */
uint64_t warp_meets(meeting kind, unsigned mask, uint64_t value, int which, int width, const char *file,
                    int line);
int block_meets(int value, const char *file, int line);
void *dynamic_shared();
void waited_for_grid_before();

/* A kernel with its arguments. */
struct call {
    virtual ~call() = default;
    virtual void run() const = 0;
    virtual const void *address() const = 0;
};
struct kernel_entry {
    std::shared_ptr<const call> (*make)(void *const *args);
};

/* Queues a launch (runtime.cpp). */
cudaError_t launch(const cudaLaunchConfig_t &config, std::shared_ptr<const call> what);
/* Runs all blocks.  early: launched so that it may start before the launch in front of it ended. */
void run_grid(const call &what, dim3 grid, dim3 block, size_t shared_bytes, bool early);

/* Random numbers of the seed; for order only. */
uint64_t seed();
uint64_t random(uint64_t &state);
/* Name of a function of this program, as far as its symbol table says (symbols.cpp). */
const char *name_of(const void *function);

} // namespace emulated

#endif
