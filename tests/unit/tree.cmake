# Rules of the source tree, and lint.  Label tree: nothing is run that sanitizers could see.
set(tree ${CMAKE_CURRENT_LIST_DIR}/tree)
foreach(tool shellcheck clang-format)
  vx_script(lint_${tool} LABELS unit tree COMMAND ${tree}/test_lint.sh ${tool} ${CMAKE_SOURCE_DIR} TIMEOUT 120)
endforeach()
vx_script(tree LABELS unit tree COMMAND ${tree}/test_tree.sh ${CMAKE_SOURCE_DIR} TIMEOUT 120)
