# Every line of "refused" and "skipped" of the contract, over the socket, against the real core.
if(TARGET voxeld)
  foreach(backend cpu guard)
    vx_test(test_refusals_${backend} LABELS system TIMEOUT 240 LIBS vxd_peer ARGS ${backend}
      ENVIRONMENT TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/tsan.supp
      SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/refusals/test_refusals.c)
    add_dependencies(test_refusals_${backend} voxeld)
  endforeach()
endif()
