# The Python client against the real daemon.
if(TARGET voxeld AND TARGET voxelctl AND TARGET python_client)
  foreach(name test_python test_questions test_lidar)
    string(REPLACE test_ python_ test ${name})
    string(REPLACE python_python python_client test ${test})
    vx_script(${test} LABELS system
      COMMAND ${CMAKE_CURRENT_LIST_DIR}/python/test_python.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR} ${name})
  endforeach()
endif()
