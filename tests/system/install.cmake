# The installed tree: programs, configuration, client library.  Not in a bundle, which has no CMake; a sanitized library does
# not load into a plain program.
if(NOT sanitizers)
  add_test(NAME install COMMAND ${CMAKE_CURRENT_LIST_DIR}/test_install.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  set_tests_properties(install PROPERTIES LABELS "system" TIMEOUT 300)
endif()

# Not in a bundle either: quickstart.sh stays in the tree.  Sanitizers see its programs in the other tests.
add_test(NAME quickstart COMMAND ${CMAKE_CURRENT_LIST_DIR}/test_quickstart.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
set_tests_properties(quickstart PROPERTIES LABELS "system;tree" TIMEOUT 300)
