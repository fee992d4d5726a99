/*
 * runtime.h - what the files of the runtime share.
 */
#ifndef EMULATED_RUNTIME_H
#define EMULATED_RUNTIME_H

#include "include/cuda_runtime_api.h"

#include <functional>
#include <mutex>

namespace emulated
{

/* Held by every call, and while work runs. */
std::recursive_mutex &lock();
/* Keeps an error for cudaGetLastError. */
cudaError_t say(cudaError_t e);
/* Work for a stream. */
cudaError_t queue(cudaStream_t s, std::function<void()> run);
/* All that streams have to do. */
void run_everything();

} // namespace emulated

#endif
