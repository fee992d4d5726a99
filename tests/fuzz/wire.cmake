# tests/golden/golden.cmake makes wire_fill; folders are read in alphabetical order, targets are looked up at the end.
vx_test(test_fuzz_wire LABELS fuzz LIBS vx_daemon wire_fill SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/test_fuzz_wire.c)
