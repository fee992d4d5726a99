# Time of the distance field, the mesh and the queries on the map of a workload.
vx_program(bench_field SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_field.c ${CMAKE_CURRENT_LIST_DIR}/bench_frames.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_util.c LIBS vxc_readers vx_core)
target_include_directories(bench_field PRIVATE ${CMAKE_SOURCE_DIR}/core/src)
