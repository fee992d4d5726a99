# Decay against a brute force over every voxel.
vx_test(oracle_decay LABELS oracle SOURCES oracle/oracle_decay.c LIBS vx_core_testing TIMEOUT 900 ARGS cpu 2)
# A drive with moving cars: bounded with decay, and no trail.
vx_test(oracle_street_decay LABELS oracle SOURCES oracle/street_decay.c LIBS vx_core_testing vx_scene TIMEOUT 900 ARGS cpu 2)
