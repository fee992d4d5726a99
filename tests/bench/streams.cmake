# Queries through the daemon while sensors stream into the same map.
if(TARGET voxeld)
  vx_program(bench_streams SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_streams.c ${CMAKE_CURRENT_LIST_DIR}/bench_util.c
    LIBS vxc_readers voxeld-client-static vx_core)
  vx_script(bench_streams_short LABELS bench system TIMEOUT 120
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/test_bench_streams.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endif()
# Queries while frames are integrated back to back, in one process.
vx_program(bench_beside SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_beside.c ${CMAKE_CURRENT_LIST_DIR}/bench_frames.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_util.c LIBS vxc_readers vx_core)
