vx_test(vx_err LABELS unit SOURCES ${CMAKE_CURRENT_LIST_DIR}/kernels/vx_err_test.c LIBS vx_base)
vx_test(blocks LABELS unit SOURCES ${CMAKE_CURRENT_LIST_DIR}/kernels/blocks_test.c LIBS vx_kernels)
