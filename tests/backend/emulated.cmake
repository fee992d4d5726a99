# The emulation of CUDA itself, where it is built (support/cuda_emulated).
if(VOXELD_CUDA STREQUAL "EMULATED")
  set(source ${CMAKE_SOURCE_DIR}/tests/support/cuda_emulated/test_emulated.cu)
  vx_test(cuda_emulated LABELS backend emulated SOURCES ${source} LIBS vx_kernels)
  vx_emulate_cuda(cuda_emulated ${source})
endif()
