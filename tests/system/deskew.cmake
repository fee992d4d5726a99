# Recorded scans with times for their points.
vx_script(test_deskew LABELS system COMMAND ${CMAKE_CURRENT_LIST_DIR}/test_deskew.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
