# Index grids against plain sets of coordinates, on every backend; on CUDA with the tuned kernels and without.
add_library(vx_grid_testing STATIC oracle/voxel_set.c oracle/grid_check.c)
target_include_directories(vx_grid_testing PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/oracle)
target_link_libraries(vx_grid_testing PUBLIC vx_core_testing)
foreach(topic grid grid_values)
  add_library(oracle_${topic}_suite OBJECT oracle/test_${topic}.c)
  target_link_libraries(oracle_${topic}_suite PRIVATE vx_grid_testing)
  vx_test(oracle_${topic} LABELS oracle SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_grid_testing ARGS cpu 2)
  vx_test(oracle_${topic}_cpu_1 LABELS oracle SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_grid_testing ARGS cpu 1)
  vx_test(oracle_${topic}_guard LABELS oracle backend SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_grid_testing ARGS guard)
  vx_test(oracle_${topic}_cuda LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_grid_testing ARGS cuda)
  vx_test(oracle_${topic}_cuda_bodies LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_grid_testing
    ARGS cuda ENVIRONMENT VOXELD_CUDA_TUNED=0)
endforeach()
