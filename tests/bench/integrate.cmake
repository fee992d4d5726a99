# Frame time, size and digest of a dataset's map; the accuracy of its mesh.
if(TARGET vxc_readers AND TARGET vx_core)
  set(sources ${CMAKE_CURRENT_LIST_DIR}/bench_integrate.c ${CMAKE_CURRENT_LIST_DIR}/bench_util.c)
  file(GLOB mesh ${CMAKE_SOURCE_DIR}/core/src/mesh*.c)
  if(NOT mesh)
    list(APPEND sources ${CMAKE_CURRENT_LIST_DIR}/ahead.c)
  endif()
  vx_program(bench_integrate SOURCES ${sources} LIBS vxc_readers vx_core)
  vx_script(accuracy LABELS oracle bench TIMEOUT 600
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/accuracy.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} quick)
endif()
