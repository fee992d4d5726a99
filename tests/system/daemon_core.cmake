# Every line of "refused" and "skipped" of the contract, over the socket, against the real core; and everything at once.
if(TARGET voxeld)
  foreach(topic refusals stress)
    foreach(backend cpu guard cuda)
      set(labels system)
      if(backend STREQUAL "cuda")
        set(labels system gpu)
      endif()
      if(backend STREQUAL "cuda" AND topic STREQUAL "stress" AND VOXELD_CUDA STREQUAL "EMULATED")
        continue() # its pace wants a device that answers soon
      endif()
      vx_test(test_${topic}_${backend} LABELS ${labels} TIMEOUT 300 LIBS vxd_peer vx_kernels ARGS ${backend}
        ENVIRONMENT TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/tsan.supp
        SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/${topic}/test_${topic}.c)
      add_dependencies(test_${topic}_${backend} voxeld)
    endforeach()
  endforeach()
endif()
