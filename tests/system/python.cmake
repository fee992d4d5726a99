# The Python client against the real daemon.
if(TARGET voxeld AND TARGET voxelctl AND TARGET python_client)
  vx_script(python_client LABELS system
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/python/test_python.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
endif()
