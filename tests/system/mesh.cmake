# A mesh that follows its map: C client and real daemon.
if(TARGET voxeld AND TARGET vxd_peer)
  vx_test(test_mesh_follow LABELS system LIBS vxd_peer voxeld-client-static
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/mesh/test_mesh_follow.c)
  add_dependencies(test_mesh_follow voxeld)
endif()
