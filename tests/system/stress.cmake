# Everything at once against the real core; worth running under TSan and ASan.
if(TARGET voxeld)
  vx_test(test_stress LABELS system TIMEOUT 300 LIBS vxd_peer
    ENVIRONMENT TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/tsan.supp
    SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/stress/test_stress.c)
  add_dependencies(test_stress voxeld)
endif()
