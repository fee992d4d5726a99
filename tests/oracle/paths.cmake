# Path queries against their definition, to the bit.
vx_test(oracle_paths LABELS oracle SOURCES oracle/test_paths.c support/path_reference.c LIBS vx_oracle_maps)
