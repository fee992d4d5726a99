# Decay against a brute force over every voxel.
vx_test(oracle_decay LABELS oracle SOURCES oracle/oracle_decay.c LIBS vx_core_testing TIMEOUT 900 ARGS cpu 2)
