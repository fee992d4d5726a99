# The frame pipeline against a double-precision reference.
vx_test(oracle_integrate LABELS oracle
  SOURCES oracle/oracle_integrate.c oracle/observe_depth.c oracle/observe_lidar.c LIBS vx_core_testing ARGS cpu 2)
vx_test(oracle_lidar LABELS oracle SOURCES oracle/oracle_lidar.c LIBS vx_core_testing ARGS cpu 2)
