# Distance field, queries and mesh against slow references, on every backend, and with the tuned kernels off.
add_library(vx_oracle_maps STATIC oracle/random_map.c oracle/field_dump.c oracle/oracle_run.c)
target_include_directories(vx_oracle_maps PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/oracle)
target_link_libraries(vx_oracle_maps PUBLIC vx_grid_fixture vx_mesh_testing PkgConfig::CHECK)
foreach(topic boxes edges esdf mesh planning query)
  add_library(oracle_${topic}_suite OBJECT oracle/test_${topic}.c)
  target_link_libraries(oracle_${topic}_suite PRIVATE vx_oracle_maps PkgConfig::CHECK)
  vx_test(oracle_${topic} LABELS oracle SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_oracle_maps)
  vx_test(oracle_${topic}_guard LABELS oracle backend SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_oracle_maps ARGS guard TIMEOUT 600)
  vx_test(oracle_${topic}_cuda LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_oracle_maps ARGS cuda)
  vx_test(oracle_${topic}_cuda_bodies LABELS oracle gpu SOURCES $<TARGET_OBJECTS:oracle_${topic}_suite> LIBS vx_oracle_maps ARGS cuda
    ENVIRONMENT VOXELD_CUDA_TUNED=0)
endforeach()
