# Scripts for people, against a machine made of stubs.
vx_script(deploy_setup LABELS unit tree COMMAND ${CMAKE_CURRENT_LIST_DIR}/deploy/test_setup.sh ${CMAKE_SOURCE_DIR} TIMEOUT 60)
