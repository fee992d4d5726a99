vx_test(test_wire LABELS unit LIBS vx_wire SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/unit/proto/test_wire.c)
vx_test(test_hist LABELS unit LIBS vx_daemon SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/unit/daemon/test_hist.c)
vx_test(test_config LABELS unit LIBS vx_daemon SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/unit/daemon/test_config.c)
target_compile_definitions(test_config PRIVATE CONFIG_FILE="${CMAKE_SOURCE_DIR}/config/voxeld.yaml")
