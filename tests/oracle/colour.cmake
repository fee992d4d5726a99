# Colours and labels of voxels against double-precision references.
foreach(backend cpu cuda)
  set(labels oracle)
  if(backend STREQUAL "cuda")
    set(labels oracle gpu)
  endif()
  vx_test(oracle_colour_${backend} LABELS ${labels} LIBS vx_core_testing ARGS ${backend} 2
    SOURCES oracle/oracle_colour.c oracle/observe.c oracle/observe_depth.c)
endforeach()
