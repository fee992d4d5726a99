# Frame time, size and digest of a dataset's map; the accuracy of its mesh.
vx_program(bench_integrate SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_integrate.c ${CMAKE_CURRENT_LIST_DIR}/bench_frames.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_util.c
  ${CMAKE_SOURCE_DIR}/clients/cli/ply.c LIBS vxc_readers vx_core)
target_include_directories(bench_integrate PRIVATE ${CMAKE_SOURCE_DIR}/clients/cli)
vx_script(accuracy LABELS oracle bench TIMEOUT 600
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/accuracy.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} quick)
