# Meshes of maps that the integrator made: surfaces by half edges, and chunk by chunk what changed.
add_library(vx_mesh_testing STATIC support/half_edge.c support/mesh_store.c)
target_include_directories(vx_mesh_testing PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/support)
target_link_libraries(vx_mesh_testing PUBLIC m)
vx_test(oracle_mesh_scene LABELS oracle TIMEOUT 900 ARGS cpu 2 ${CMAKE_SOURCE_DIR}
  SOURCES oracle/mesh_scene.c support/scene_frame.c LIBS vx_mesh_testing vx_core_testing vx_scene vxc_readers)
foreach(backend cpu guard cuda)
  set(labels oracle)
  if(backend STREQUAL guard)
    list(APPEND labels backend)
  elseif(backend STREQUAL cuda)
    list(APPEND labels gpu)
  endif()
  vx_test(oracle_mesh_delta_${backend} LABELS ${labels} TIMEOUT 900 ARGS ${backend} 2
    SOURCES oracle/mesh_delta.c LIBS vx_mesh_testing vx_core_testing)
endforeach()
if(VOXELD_CUDA STREQUAL "EMULATED")
  target_compile_definitions(oracle_mesh_delta_cuda PRIVATE VOXELD_TEST_SLOW_BACKEND)
endif()
