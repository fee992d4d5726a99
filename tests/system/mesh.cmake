# A mesh that follows its map: C client and real daemon.
if(TARGET voxeld AND TARGET vxd_peer)
  vx_test(test_mesh_follow LABELS system LIBS vxd_peer voxeld-client-static
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/mesh/test_mesh_follow.c)
  add_dependencies(test_mesh_follow voxeld)
endif()
# What voxelctl view shows of the room, against the room; and everything that mesh and view may be asked.
if(TARGET voxeld AND TARGET vxd_peer AND TARGET voxelctl)
  vx_test(test_view_truth LABELS system TIMEOUT 600 LIBS vxd_peer voxelctl_parts vx_scene vx_core
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/mesh/test_view_truth.c ${CMAKE_CURRENT_SOURCE_DIR}/support/scene_frame.c)
  add_dependencies(test_view_truth voxeld)
  vx_script(voxelctl_mesh_view LABELS system
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/mesh/test_mesh_view.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
endif()
