# The ray traversal against brute force over all voxels of a map.
vx_test(oracle_dda LABELS oracle SOURCES oracle/test_dda.c LIBS vx_oracle_maps)
