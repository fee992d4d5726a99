# Time of the distance field, the mesh and the queries on the map of a workload.
vx_program(bench_field SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_field.c ${CMAKE_CURRENT_LIST_DIR}/field_view.c ${CMAKE_CURRENT_LIST_DIR}/bench_frames.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_util.c ${CMAKE_CURRENT_LIST_DIR}/../support/path_reference.c LIBS vxc_readers vx_core)
target_include_directories(bench_field PRIVATE ${CMAKE_SOURCE_DIR}/core/src ${CMAKE_CURRENT_LIST_DIR}/../support)
# How true the field is, against the analytic room.
vx_program(bench_field_accuracy SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_field_accuracy.c ${CMAKE_CURRENT_LIST_DIR}/field_view.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_frames.c ${CMAKE_CURRENT_LIST_DIR}/bench_util.c LIBS vxc_readers vx_core vx_scene)
target_include_directories(bench_field_accuracy PRIVATE ${CMAKE_SOURCE_DIR}/core/src)
vx_script(accuracy_field LABELS oracle bench TIMEOUT 600
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/accuracy_field.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
