# The frame pipeline against a double-precision reference.
vx_test(oracle_integrate LABELS oracle
  SOURCES oracle/oracle_integrate.c oracle/observe.c oracle/observe_depth.c oracle/observe_lidar.c LIBS vx_core_testing ARGS cpu 2)
# Weights of pixels and of maps, on every backend, with and without tuned kernels.
foreach(how cpu cpu_bodies guard cuda cuda_bodies)
  string(REGEX REPLACE "_.*" "" backend ${how})
  set(labels oracle)
  set(environment)
  if(backend STREQUAL "cuda")
    list(APPEND labels gpu)
  endif()
  if(how MATCHES "_bodies$")
    string(TOUPPER VOXELD_${backend}_TUNED=0 environment)
  endif()
  vx_test(oracle_weighting_${how} LABELS ${labels} LIBS vx_core_testing ARGS ${backend} 2 ENVIRONMENT ${environment}
    SOURCES oracle/oracle_weighting.c)
  vx_test(oracle_weights_${how} LABELS ${labels} LIBS vx_core_testing ARGS ${backend} 2 weights ENVIRONMENT ${environment}
    SOURCES oracle/oracle_integrate.c oracle/observe.c oracle/observe_depth.c oracle/observe_lidar.c)
endforeach()
vx_test(oracle_lidar LABELS oracle SOURCES oracle/oracle_lidar.c LIBS vx_core_testing ARGS cpu 2)
