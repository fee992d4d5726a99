# Time, bytes and memory of the grid operators.
vx_program(bench_topology SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_topology.c ${CMAKE_CURRENT_LIST_DIR}/topology_ops.c
  ${CMAKE_CURRENT_LIST_DIR}/topology_check.c ${CMAKE_CURRENT_LIST_DIR}/topology_shape.c ${CMAKE_CURRENT_LIST_DIR}/columns.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_util.c LIBS vx_core)
