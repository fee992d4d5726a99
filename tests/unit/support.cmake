# What the tests lean on is tested too: the scenes agree with themselves, meshcheck measures what it says.
vx_script(support_meshcheck LABELS unit
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/support/test_meshcheck.sh ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
vx_script(support_room LABELS unit
  COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/genworkload --scene room --frames 100 --self-check)
vx_script(support_street LABELS unit
  COMMAND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/genworkload --scene street --frames 60 --moving-cars --self-check)
