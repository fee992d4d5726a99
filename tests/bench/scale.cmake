# How much a map holds before it refuses, and that the refusal changes nothing.
vx_program(bench_scale SOURCES ${CMAKE_CURRENT_LIST_DIR}/bench_scale.c ${CMAKE_CURRENT_LIST_DIR}/scale_field.c ${CMAKE_CURRENT_LIST_DIR}/field_view.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_frames.c ${CMAKE_CURRENT_LIST_DIR}/bench_util.c LIBS vxc_readers vx_core)
target_include_directories(bench_scale PRIVATE ${CMAKE_SOURCE_DIR}/core/src)
vx_script(bench_scale_small LABELS bench TIMEOUT 300
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/test_bench_scale.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
