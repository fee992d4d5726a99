# The VoxelBlockManager and sums on it, on every backend; on CUDA with the tuned kernels and without.
add_library(oracle_vbm_suite OBJECT oracle/test_vbm.c)
target_link_libraries(oracle_vbm_suite PRIVATE vx_grid_testing)
vx_test(oracle_vbm LABELS oracle SOURCES $<TARGET_OBJECTS:oracle_vbm_suite> LIBS vx_grid_testing ARGS cpu 2)
vx_test(oracle_vbm_cpu_1 LABELS oracle SOURCES $<TARGET_OBJECTS:oracle_vbm_suite> LIBS vx_grid_testing ARGS cpu 1)
vx_test(oracle_vbm_guard LABELS oracle backend SOURCES $<TARGET_OBJECTS:oracle_vbm_suite> LIBS vx_grid_testing ARGS guard)
vx_test(oracle_vbm_cuda LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_vbm_suite> LIBS vx_grid_testing ARGS cuda)
vx_test(oracle_vbm_cuda_bodies LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_vbm_suite> LIBS vx_grid_testing
  ARGS cuda ENVIRONMENT VOXELD_CUDA_TUNED=0)
