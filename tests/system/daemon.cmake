# The daemon from outside: a real process, a stand-in for the core that can be made to stand still.
add_library(vxd_peer STATIC ${CMAKE_CURRENT_SOURCE_DIR}/support/vxd_peer.c
  ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_gate.c)
target_include_directories(vxd_peer PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/support)
target_link_libraries(vxd_peer PUBLIC vx_wire PkgConfig::ZMQ PkgConfig::CHECK)

add_executable(voxeld_fake ${CMAKE_SOURCE_DIR}/daemon/src/main.c ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_core.c)
target_link_libraries(voxeld_fake PRIVATE vx_daemon)

foreach(topic session maps files frames queries small hostile process)
  vx_test(test_daemon_${topic} LABELS system TIMEOUT 120 LIBS vxd_peer
    ENVIRONMENT TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/tsan.supp
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/daemon/test_${topic}.c)
  target_include_directories(test_daemon_${topic} PRIVATE ${CMAKE_SOURCE_DIR}/core/include)
  add_dependencies(test_daemon_${topic} voxeld_fake)
endforeach()
