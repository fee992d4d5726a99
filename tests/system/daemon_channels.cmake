# Colour and labels through the client library and the socket, against the real core.  (daemon.cmake makes vxd_peer.)
if(TARGET voxeld AND TARGET vxd_peer)
  foreach(backend cpu guard cuda)
    set(labels system)
    if(backend STREQUAL "cuda")
      set(labels system gpu)
    endif()
    vx_test(test_channels_${backend} LABELS ${labels} TIMEOUT 300 LIBS vxd_peer vx_kernels voxeld-client-static ARGS ${backend}
      ENVIRONMENT TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/support/tsan.supp
      SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/system/channels/test_channels.c)
    add_dependencies(test_channels_${backend} voxeld)
  endforeach()
endif()
