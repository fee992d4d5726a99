# One suite for every backend, compiled once; and what only the guard backend does.
add_library(backend_suite OBJECT ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/memory_test.c
  ${CMAKE_CURRENT_LIST_DIR}/launch_test.c ${CMAKE_CURRENT_LIST_DIR}/primitive_test.c
  ${CMAKE_CURRENT_LIST_DIR}/queue_test.c)
target_link_libraries(backend_suite PRIVATE vx_kernels PkgConfig::CHECK)
vx_test(backend_cpu_1 LABELS backend SOURCES $<TARGET_OBJECTS:backend_suite> LIBS vx_kernels ARGS cpu 1)
vx_test(backend_cpu_2 LABELS backend SOURCES $<TARGET_OBJECTS:backend_suite> LIBS vx_kernels ARGS cpu 2)
vx_test(backend_cpu_5 LABELS backend SOURCES $<TARGET_OBJECTS:backend_suite> LIBS vx_kernels ARGS cpu 5)
vx_test(backend_guard LABELS backend SOURCES $<TARGET_OBJECTS:backend_suite> LIBS vx_kernels ARGS guard 2)
vx_test(backend_cuda LABELS backend gpu SOURCES $<TARGET_OBJECTS:backend_suite> LIBS vx_kernels ARGS cuda)
vx_test(guard_walls LABELS backend SOURCES ${CMAKE_CURRENT_LIST_DIR}/guard_test.c LIBS vx_kernels)
