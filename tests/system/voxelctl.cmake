# The client library against a daemon with a stand-in core, and voxelctl against the real one.
if(TARGET vxd_peer)
  vx_test(test_client LABELS system TIMEOUT 180 LIBS vxd_peer voxeld-client-static
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/voxelctl/test_client.c)
  add_dependencies(test_client voxeld_fake)
endif()
if(TARGET voxeld AND TARGET voxelctl AND TARGET genworkload)
  foreach(what verbs recorded)
    vx_script(voxelctl_${what} LABELS system
      COMMAND ${CMAKE_CURRENT_LIST_DIR}/voxelctl/test_voxelctl.sh ${what} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  endforeach()
  vx_script(voxelctl_outputs LABELS system
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/voxelctl/test_outputs.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  foreach(what verbs tools)
    vx_script(nvdb_${what} LABELS system
      COMMAND ${CMAKE_CURRENT_LIST_DIR}/voxelctl/test_nvdb.sh ${what} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  endforeach()
endif()
