# Time, bytes and memory of the grid operators.
vx_program(bench_topology SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_topology.c ${CMAKE_CURRENT_LIST_DIR}/topology_ops.c
  ${CMAKE_CURRENT_LIST_DIR}/topology_check.c ${CMAKE_CURRENT_LIST_DIR}/topology_shape.c ${CMAKE_CURRENT_LIST_DIR}/columns.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_util.c LIBS vx_core)
vx_script(bench_topology_small LABELS bench TIMEOUT 300
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/test_bench_topology.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
