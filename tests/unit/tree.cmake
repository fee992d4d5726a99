# Rules of the source tree, and lint.  Label tree: nothing is run that sanitizers could see.
set(tree ${CMAKE_CURRENT_LIST_DIR}/tree)
add_test(NAME tree COMMAND ${tree}/test_tree.sh ${CMAKE_SOURCE_DIR})
add_test(NAME lint_shellcheck COMMAND ${tree}/test_lint.sh shellcheck ${CMAKE_SOURCE_DIR})
set_tests_properties(tree lint_shellcheck PROPERTIES LABELS "unit;tree" TIMEOUT 120 SKIP_RETURN_CODE 77)
