# tests/unit/core_nvdb.cmake makes vx_nvdb_case; folders are read in alphabetical order, targets are looked up at the end.
vx_test(test_fuzz_nvdb LABELS fuzz LIBS vx_nvdb_case SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/test_fuzz_nvdb.c)
