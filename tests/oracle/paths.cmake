# Path queries against their definition, to the bit.
add_library(oracle_paths_suite OBJECT oracle/test_paths.c support/path_reference.c)
target_link_libraries(oracle_paths_suite PRIVATE vx_oracle_maps PkgConfig::CHECK)
target_include_directories(oracle_paths_suite PRIVATE ${CMAKE_SOURCE_DIR}/tests/support)
vx_test(oracle_paths LABELS oracle SOURCES $<TARGET_OBJECTS:oracle_paths_suite> LIBS vx_oracle_maps)
vx_test(oracle_paths_cuda LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_paths_suite> LIBS vx_oracle_maps ARGS cuda)
vx_test(oracle_paths_cuda_bodies LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_paths_suite> LIBS vx_oracle_maps ARGS cuda
  ENVIRONMENT VOXELD_CUDA_TUNED=0)
